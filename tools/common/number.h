/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers and times as text, for people.
 *
 * A parser returns NULL, or what is wrong with the text, in words that follow the text in a
 * message: `delay "5x" has an unknown unit: ...`. Times are exact, without floating point.
 * No value is above NUMBER_MAX_NS, 292 years, so that the sum of two fits in 64 bits.
 */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

#include <stddef.h>
#include <linux/types.h>

#define NUMBER_MAX_NS	((1ULL << 63) - 1)

/* Room for what seconds_format() and duration_format() write. */
#define NUMBER_TEXT	32

/* A whole number. */
const char *count_parse(const char *string, __u64 *value);

/* A time in seconds without a unit: "1.5". */
const char *seconds_parse(const char *string, __u64 *ns);

/* A time with its unit, one of ns us ms s m h d: "1.5s", "250us". */
const char *duration_parse(const char *string, __u64 *ns);

/* A time in seconds, to the nanosecond. */
const char *seconds_format(char text[NUMBER_TEXT], __u64 ns);

/* A time with its unit, in three digits. */
const char *duration_format(char text[NUMBER_TEXT], double ns);

#endif /* COMMON_NUMBER_H */
