/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads the wheels, which the module shows in debugfs: one file for each wheel, named
 * cpu<N>-<clock> or cpu<N>-<clock>-<kind>, with lines "name:<tab>value".
 *
 * Slot s of level L holds the events whose due tick d has
 * ((d >> 5 * L) & 63) == s; the current slot of the level is (clk >> 5 * L) & 63.
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

#define WHEEL_PLAIN	"events"	/* the kind of a wheel whose name has none */

#define WHEEL_SPAN_BITS	5	/* a slot spans 32 of the level below */

/**
 * struct level - one level of a wheel
 * @occupied: bit s is set if slot s holds events.
 * @crowded: bit s is set if slot s holds many events.
 * @armed: the number of events on the level.
 * @count: the number of events in each slot.
 */
struct level {
	__u64 occupied;
	__u64 crowded;
	__u64 armed;
	__u64 count[WHEEL_SLOTS];
};

/**
 * struct wheel - one wheel, at one moment
 * @cpu: the wheel's CPU.
 * @clock: the wheel's clock.
 * @kind: what is on it: "events", "deadlines" (events with a word as their time) or
 *	"timers" (of kernel modules).
 * @tick_ns: the length of a tick.
 * @clk: the tick that the wheel has run to.
 * @now: the current tick.
 * @next: the next tick with work; 0 if there is none.
 * @armed: the number of events on the wheel.
 * @online: the CPU is online, so the wheel takes events.
 * @gap: the number of events that are due before @clk because the clock was set back;
 *	they are on other wheels.
 * @interrupts: interrupts so far.
 * @expired: events that have expired so far.
 * @postponed: how often so far an event's time came after its deadline had been moved.
 * @cascaded: how often so far an event was moved to a lower level.
 * @lateness: bucket k has the number of expired events that were less than 2^(k + 10) ns
 *	late and are not in bucket k - 1; the last bucket has the rest.
 * @level: the levels, from the lowest.
 */
struct wheel {
	unsigned int cpu;
	char clock[16];
	char kind[16];
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

/* All wheels, by CPU, clock and kind. */
struct wheels {
	struct wheel *wheel;
	size_t nr;
};

int wheels_try_read(struct wheels *wheels, const char *directory, char **why);
int wheels_read(struct wheels *wheels, const char *directory);
void wheels_free(struct wheels *wheels);
__u64 wheels_interrupts(const struct wheels *wheels);

static inline unsigned int wheel_position(const struct wheel *wheel,
					  unsigned int level)
{
	return wheel->clk >> (WHEEL_SPAN_BITS * level) & (WHEEL_SLOTS - 1);
}

#endif /* _TWHEELCTL_WHEELS_H */
