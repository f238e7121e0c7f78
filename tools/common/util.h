/* SPDX-License-Identifier: GPL-2.0 */
/* Small macros that the C library lacks. */
#ifndef COMMON_UTIL_H
#define COMMON_UTIL_H

#include <stddef.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* The structure that has @pointer as its @member. */
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

/* A function whose argument @format is a format of printf(), for those from @first on. */
#define PRINTF_LIKE(format, first) \
	__attribute__((__format__(printf, format, first)))

#endif /* COMMON_UTIL_H */
