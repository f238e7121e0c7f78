/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Moments as text: when something is to be, by the clock on the wall.
 */
#ifndef _TWHEELCTL_MOMENT_H
#define _TWHEELCTL_MOMENT_H

#include <linux/types.h>

const char *moment_parse(const char *text, __u64 now_ns, __u64 *ns);

#endif /* _TWHEELCTL_MOMENT_H */
