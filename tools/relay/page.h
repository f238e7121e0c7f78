/* SPDX-License-Identifier: GPL-2.0 */
/* The pages /metrics and /healthz. */
#ifndef RELAY_PAGE_H
#define RELAY_PAGE_H

#include <stdio.h>

/* For metrics_open(); @context is the relay. */
int relay_page_write(FILE *out, void *context);

/* For /healthz: NULL, or a line that says what is wrong. */
const char *relay_health(void *context);

#endif /* RELAY_PAGE_H */
