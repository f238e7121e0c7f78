/* SPDX-License-Identifier: GPL-2.0 */
/* The page of metrics of the queue. */
#ifndef TWHEELQ_METRICS_PAGE_H
#define TWHEELQ_METRICS_PAGE_H

#include <stdio.h>
#include "alarm.h"
#include "queue.h"
#include "store.h"

/* So many tubes have metrics of their own; of the rest there is their number. */
#define METRICS_MAX_TUBES	1000

/* Write all there is to @out. Returns 0; -ENOMEM: tubes are missing. */
int metrics_page_write(FILE *out, struct queue *queue, struct store *store,
		       struct alarms *alarms);

#endif /* TWHEELQ_METRICS_PAGE_H */
