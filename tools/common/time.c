// SPDX-License-Identifier: GPL-2.0
/* Units of time, and reading clocks. */
#include "common/time.h"

const struct time_unit time_units[TIME_UNITS] = {
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "s",  NSEC_PER_SEC },
	{ "m",  60 * NSEC_PER_SEC },
	{ "h",  3600 * NSEC_PER_SEC },
	{ "d",  86400 * NSEC_PER_SEC },
	{ "y",  31557600 * NSEC_PER_SEC },
};

uint64_t time_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

struct timespec time_spec(uint64_t time_ns)
{
	return (struct timespec){
		.tv_sec = time_ns / NSEC_PER_SEC,
		.tv_nsec = time_ns % NSEC_PER_SEC,
	};
}
