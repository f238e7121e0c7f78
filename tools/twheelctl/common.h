/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What any of the files may need, as the kernel has it.
 */
#ifndef _TWHEELCTL_COMMON_H
#define _TWHEELCTL_COMMON_H

#include <time.h>
#include <linux/types.h>

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define __printf(a, b)		__attribute__((format(printf, a, b)))

/* The time on CLOCK_MONOTONIC. */
static inline __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

#endif /* _TWHEELCTL_COMMON_H */
