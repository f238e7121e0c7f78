/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rates of events and interrupts, from two samples of all wheels.
 */
#ifndef _TWHEELCTL_RATES_H
#define _TWHEELCTL_RATES_H

#include <stdio.h>
#include <linux/types.h>

#include "common/number.h"
#include "twheelctl/wheels.h"

/**
 * struct sample - the sums over all wheels, at one moment
 * @at_ns: the moment, on CLOCK_MONOTONIC.
 * @pending: events on the wheels.
 * @expired: events that have expired so far.
 * @interrupts: interrupts so far.
 * @postponed: how often so far an event's time came after its deadline had been moved.
 * @cascaded: how often so far an event was moved to a lower level.
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

/* The lateness of events in the last bucket, which has no upper end. */
#define RATES_ENDLESS	(~0ULL)

/**
 * struct rates - what happened between two samples
 * @pending: events on the wheels at the second sample.
 * @expired: events that expired between the samples.
 * @per_s: expired events in a second.
 * @interrupts_per_s: interrupts in a second.
 * @postponed_per_s: events in a second whose time came after their deadline had been moved.
 * @cascaded_per_s: moves to a lower level in a second.
 * @p99_ns: 99 of 100 expired events were less late than this; 0 if none expired.
 * @worst_ns: all expired events were less late than this.
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
