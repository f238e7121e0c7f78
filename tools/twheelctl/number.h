/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers and times as text.
 *
 * A parser returns NULL, or what is wrong with the text in words that follow
 * the text itself in a message: `delay "5x" has no unit that is known: ...`.
 * Times are exact: no floating point comes near them.  Nothing a parser accepts
 * is above NUMBER_MAX_NS, 292 years, so that the sum of two fits in 64 bits.
 */
#ifndef _TWHEELCTL_NUMBER_H
#define _TWHEELCTL_NUMBER_H

#include <stddef.h>
#include <linux/types.h>

#define NUMBER_MAX_NS	((1ULL << 63) - 1)

/* Room for what seconds_format() and duration_format() write. */
#define NUMBER_TEXT	32

const char *count_parse(const char *text, __u64 *value);
const char *seconds_parse(const char *text, __u64 *ns);
const char *duration_parse(const char *text, __u64 *ns);

const char *seconds_format(char text[NUMBER_TEXT], __u64 ns);
const char *duration_format(char text[NUMBER_TEXT], double ns);

#endif /* _TWHEELCTL_NUMBER_H */
