/* SPDX-License-Identifier: GPL-2.0 */
/* What the C library lacks. */
#ifndef TWHEELQ_UTIL_H
#define TWHEELQ_UTIL_H

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#endif /* TWHEELQ_UTIL_H */
