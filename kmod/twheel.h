/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers for other kernel modules: tick-exact, O(1) to arm and to cancel.
 *
 * A timer is embedded in its owner's structure, set up once, and then armed,
 * modified and cancelled from any context except NMI.  Its function runs in
 * softirq context, never before the time asked for and never twice at once; it
 * may arm its timer again, or free it.
 *
 * Times are in nanoseconds on CLOCK_MONOTONIC.  A timer may be given slack, so
 * that its tick becomes one that neighbours share.  Nothing here allocates memory.
 * The owner frees the timer's memory, after twheel_timer_shutdown() or in the
 * timer's own function as the last thing done with it.
 */
#ifndef TWHEEL_H
#define TWHEEL_H

#include <linux/types.h>

#include "wheel.h"

/**
 * struct twheel_node - where something that waits is
 * @wheel: its place on a wheel.
 * @base: which base's lock guards it.
 * @flags: what it is a part of; the rest is its owner's.
 * @state: its owner's.
 * @tag: its owner's.
 *
 * A part of timers and of events; not for users of this header.
 */
struct twheel_node {
	struct wheel_node wheel;
	u16 base;
	u8 flags;
	u8 state;
	u32 tag;
};

/**
 * struct twheel_timer - a timer
 * @node: private.
 * @function: what to call when it expires, in softirq context, with no lock of
 *	ours held and interrupts on.
 */
struct twheel_timer {
	struct twheel_node node;
	void (*function)(struct twheel_timer *timer);
};

/* How to understand the time given to twheel_timer_arm(). */
#define TWHEEL_TIMER_REL	0	/* from now */
#define TWHEEL_TIMER_ABS	1	/* as ktime_get_ns() counts */

void twheel_timer_setup(struct twheel_timer *timer,
			void (*function)(struct twheel_timer *timer));
int twheel_timer_arm(struct twheel_timer *timer, u64 time_ns, u64 slack_ns,
		     unsigned int flags);
int twheel_timer_modify(struct twheel_timer *timer, u64 time_ns, u64 slack_ns,
			unsigned int flags);
bool twheel_timer_cancel(struct twheel_timer *timer);
bool twheel_timer_cancel_sync(struct twheel_timer *timer);
bool twheel_timer_shutdown(struct twheel_timer *timer);
bool twheel_timer_pending(struct twheel_timer *timer);

#endif /* TWHEEL_H */
