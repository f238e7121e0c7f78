/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheels as the module shows them in debugfs: one file for each CPU and
 * clock that has one, named cpu<N>-<clock>, of lines "name:<tab>value".
 *
 * Slot s of level L holds the events whose due tick d has
 * ((d >> 5 * L) & 63) == s; the level is at slot (clk >> 5 * L) & 63.
 */
#ifndef _TWHEELCTL_WHEELS_H
#define _TWHEELCTL_WHEELS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#define WHEEL_LEVELS	11
#define WHEEL_SLOTS	64
#define WHEEL_LATENESS	24
#define WHEEL_LATENESS_SHIFT	10

#define WHEEL_SPAN_BITS	5	/* a slot spans 32 of the level below */

/**
 * struct level - one level of a wheel
 * @occupied: bit s tells that slot s holds events.
 * @crowded: bit s tells that slot s holds many.
 * @armed: how many events it holds.
 * @count: how many each slot holds.
 */
struct level {
	__u64 occupied;
	__u64 crowded;
	__u64 armed;
	__u64 count[WHEEL_SLOTS];
};

/**
 * struct wheel - one wheel, at one moment
 * @cpu: whose it is.
 * @clock: what it goes by.
 * @tick_ns: the length of a tick.
 * @clk: the tick the wheel has run to.
 * @now: the tick it is.
 * @next: the tick with work next; 0 where there is none.
 * @armed: how many events it holds.
 * @online: whether it takes events: its CPU is there.
 * @gap: how many more are due before clk, since the clock was set back: they are
 *	on other wheels.
 * @interrupts: how many it took, so far.
 * @expired: how many events came out, so far.
 * @postponed: how often one came out and waited on, as its time had been moved, so
 *	far.
 * @cascaded: how many times one was moved to a lower level, so far.
 * @lateness: of those that came out, how many were less than 2^(k + 10) ns
 *	late, and not in the bucket before; the last has all the rest.
 * @level: its levels, from the lowest.
 */
struct wheel {
	unsigned int cpu;
	char clock[16];
	__u64 tick_ns;
	__u64 clk;
	__u64 now;
	__u64 next;
	__u64 armed;
	__u64 online;
	__u64 gap;
	__u64 interrupts;
	__u64 expired;
	__u64 postponed;
	__u64 cascaded;
	__u64 lateness[WHEEL_LATENESS];
	struct level level[WHEEL_LEVELS];
};

/* All wheels, by CPU and clock. */
struct wheels {
	struct wheel *wheel;
	size_t nr;
};

int wheels_read(struct wheels *wheels, const char *directory);
void wheels_free(struct wheels *wheels);
__u64 wheels_interrupts(const struct wheels *wheels);

static inline unsigned int wheel_position(const struct wheel *wheel,
					  unsigned int level)
{
	return wheel->clk >> (WHEEL_SPAN_BITS * level) & (WHEEL_SLOTS - 1);
}

#endif /* _TWHEELCTL_WHEELS_H */
