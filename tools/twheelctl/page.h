/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheels as a page of metrics for Prometheus.
 */
#ifndef _TWHEELCTL_PAGE_H
#define _TWHEELCTL_PAGE_H

#include <stdio.h>

#include "twheelctl/wheels.h"

/* Write the page. @wheels is NULL if the wheels cannot be read: then it only says so. */
void page_write(FILE *out, const struct wheels *wheels);

#endif /* _TWHEELCTL_PAGE_H */
