/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How fast the wheels turn: the sums over all of them, at two moments.
 */
#ifndef _TWHEELCTL_RATES_H
#define _TWHEELCTL_RATES_H

#include <stdio.h>
#include <linux/types.h>

#include "number.h"
#include "wheels.h"

/**
 * struct sample - the sums over all wheels, at one moment
 * @at_ns: the moment, on CLOCK_MONOTONIC.
 * @pending: how many events they hold.
 * @expired: how many came out, so far.
 * @interrupts: how many they took, so far.
 * @postponed: how often an event's time came and had been moved, so far.
 * @cascaded: how many times an event was moved to a lower level, so far.
 * @lateness: as in struct wheel.
 */
struct sample {
	__u64 at_ns;
	__u64 pending;
	__u64 expired;
	__u64 interrupts;
	__u64 postponed;
	__u64 cascaded;
	__u64 lateness[WHEEL_LATENESS];
};

/* What a lateness is called that is in the last bucket, which has no end. */
#define RATES_ENDLESS	(~0ULL)

/**
 * struct rates - what happened between two samples
 * @pending: how many events there are, at the second.
 * @expired: how many came out.
 * @per_s: of these, in a second.
 * @interrupts_per_s: interrupts in a second.
 * @postponed_per_s: events in a second whose time came and had been moved.
 * @cascaded_per_s: moves to a lower level in a second.
 * @p99_ns: less than this late were 99 of 100 that came out; 0 where none did.
 * @worst_ns: less than this late were all.
 */
struct rates {
	__u64 pending;
	__u64 expired;
	double per_s;
	double interrupts_per_s;
	double postponed_per_s;
	double cascaded_per_s;
	__u64 p99_ns;
	__u64 worst_ns;
};

void sample_take(struct sample *sample, const struct wheels *wheels,
		 __u64 at_ns);
void rates_between(struct rates *rates, const struct sample *before,
		   const struct sample *after);
const char *lateness_format(char text[NUMBER_TEXT], __u64 below_ns);

#endif /* _TWHEELCTL_RATES_H */
