/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheels as a page of metrics for Prometheus.
 */
#ifndef _TWHEELCTL_PAGE_H
#define _TWHEELCTL_PAGE_H

#include <stdio.h>

#include "twheelctl/wheels.h"

/*
 * Write the page. @wheels is NULL if they cannot be read: then the page has twheel_up 0, the
 * version and the time.
 */
void page_write(FILE *out, const struct wheels *wheels);

#endif /* _TWHEELCTL_PAGE_H */
