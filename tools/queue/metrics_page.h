/* SPDX-License-Identifier: GPL-2.0 */
/* The text of /metrics: format 0.0.4 of Prometheus. */
#ifndef TWHEELQ_METRICS_PAGE_H
#define TWHEELQ_METRICS_PAGE_H

#include <stdio.h>
#include "alarm.h"
#include "queue.h"
#include "store.h"

#define METRICS_PAGE_TYPE	"text/plain; version=0.0.4; charset=utf-8"

/* Write all there is to @out. Returns 0; -ENOMEM: tubes are missing. */
int metrics_page_write(FILE *out, struct queue *queue, struct store *store,
		       struct alarms *alarms);

#endif /* TWHEELQ_METRICS_PAGE_H */
