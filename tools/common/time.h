/* SPDX-License-Identifier: GPL-2.0 */
/* Units of time, and what a clock says. */
#ifndef COMMON_TIME_H
#define COMMON_TIME_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

/* From ns to the year, which is for people: texts that are parsed have units up to the day. */
struct time_unit {
	const char *name;
	uint64_t ns;
};

#define TIME_UNITS		8
#define TIME_UNITS_PARSED	7

extern const struct time_unit time_units[TIME_UNITS];

/* A time that does not come. */
#define TIME_NEVER_NS	(~0ULL)

/* The time of a clock of the kernel, in ns. */
uint64_t time_now_ns(clockid_t clock);

/* A time in ns as the system calls take it. */
struct timespec time_spec(uint64_t time_ns);

#endif /* COMMON_TIME_H */
