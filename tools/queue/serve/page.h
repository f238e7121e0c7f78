/* SPDX-License-Identifier: GPL-2.0 */
/* The pages /metrics and /healthz of the queue. */
#ifndef QUEUE_SERVE_PAGE_H
#define QUEUE_SERVE_PAGE_H

#include <stdio.h>
#include "alarm/alarm.h"
#include "queue/protocol/peer.h"

/* This many tubes have metrics of their own; the others are only counted. */
#define METRICS_MAX_TUBES	1000

/* Write the page to @out. Returns 0; -ENOMEM: it lacks the tubes. */
int metrics_page_write(FILE *out, const struct protocol *protocol, struct store *store,
		       struct alarms *alarms);

/* For /healthz: NULL, or a line that says what is wrong. */
const char *metrics_health(const struct queue *queue, struct store *store);

#endif /* QUEUE_SERVE_PAGE_H */
