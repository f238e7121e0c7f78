/* SPDX-License-Identifier: GPL-2.0 */
/* The page of /metrics. */
#ifndef RELAY_PAGE_H
#define RELAY_PAGE_H

#include <stdio.h>

/* For metrics_open(); @context is the relay. */
int relay_page_write(FILE *out, void *context);

#endif /* RELAY_PAGE_H */
