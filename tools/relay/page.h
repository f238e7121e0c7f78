/* SPDX-License-Identifier: GPL-2.0 */
/* The pages /metrics and /healthz. */
#ifndef RELAY_PAGE_H
#define RELAY_PAGE_H

#include <stdint.h>
#include <stdio.h>

/* For metrics_open(); @context is the relay. */
int relay_page_write(FILE *out, void *context);

/* For /healthz: NULL, or a line that says what is wrong. */
const char *relay_health(void *context);

/* The age of the record at the lowest offset that is not done, by its timestamp; 0: all are. */
struct relay_partition;
uint64_t relay_page_oldest_s(const struct relay_partition *partition);

#endif /* RELAY_PAGE_H */
