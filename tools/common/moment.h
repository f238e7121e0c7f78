/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parses a moment in wall-clock time.
 */
#ifndef COMMON_MOMENT_H
#define COMMON_MOMENT_H

#include <linux/types.h>

const char *moment_parse(const char *text, __u64 now_ns, __u64 *ns);

#endif /* COMMON_MOMENT_H */
