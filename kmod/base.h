/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bases: a wheel, its lock and its hrtimer, one for each CPU and clock.
 *
 * base.c tells who may touch what.
 */
#ifndef TWHEEL_BASE_H
#define TWHEEL_BASE_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/spinlock.h>

#include "twheel.h"
#include "wheel.h"

/* The most nodes touched while a base's lock is held once. */
#define BASE_BATCH	64

/* For how long a run may go on before it leaves the CPU to others. */
#define BASE_RUN_NS	(1 * NSEC_PER_MSEC)

/* Buckets of the lateness histogram: bucket k is below 2^(k + 10) ns. */
#define BASE_LATENESS_SHIFT	10
#define BASE_LATENESS_BUCKETS	24

enum base_clock {
	BASE_MONOTONIC,
	BASE_CLOCKS,
};

/* &struct twheel_node.kind */
enum base_kind {
	BASE_TIMER,	/* a struct twheel_timer, for base.c to call */
	BASE_EVENT,	/* for &struct base_sink */
};

/* What the layer above does with events. */
struct base_sink {
	/*
	 * An event is due.  Called with the lock of its base held, after it was
	 * taken off the wheel; whom to wake goes to @wake.
	 */
	void (*due)(struct twheel_node *node, u64 now_ns, struct list_head *wake);
	/* Wake those, with no lock held. */
	void (*wake)(struct list_head *wake);
};

/**
 * struct base - one wheel and what drives it
 * @lock: guards all below, and the nodes that name this base.
 * @hrtimer: wakes it at @programmed.
 * @programmed: the tick that @hrtimer was last set for; WHEEL_NEVER: it is not.
 * @running: base_run() is under way, and will program @hrtimer when it ends.
 * @current_timer: the timer whose function is being called, without @lock.
 * @number: which base this is.
 * @cpu: the CPU it serves.
 * @clock: the clock it follows.
 * @interrupts: how often @hrtimer called, ever.
 * @nr_expired: how many nodes came out, ever.
 * @lateness: of these, how many were how late.
 * @wheel: the wheel.
 */
struct base {
	raw_spinlock_t lock;
	struct hrtimer hrtimer;
	u64 programmed;
	bool running;
	struct twheel_timer *current_timer;
	u16 number;
	unsigned int cpu;
	enum base_clock clock;
	u64 interrupts;
	u64 nr_expired;
	u64 lateness[BASE_LATENESS_BUCKETS];
#ifdef CONFIG_PREEMPT_RT
	/* Held by a run, for those who wait for a function to return. */
	spinlock_t expiry_lock;
#endif
	struct wheel wheel;
};

/**
 * struct base_hold - somebody's hold of one base's lock
 * @base: whose lock is held, with interrupts off; NULL: none.
 * @flags: for the end of the hold.
 * @now_ns: the base's clock when the lock was taken.
 * @touched: how many nodes were touched since.
 * @program: the hrtimer must be set when the hold ends.
 *
 * Lets a series of commands take the lock once.  It is dropped when another base
 * is needed, after BASE_BATCH nodes, and by base_release().
 */
struct base_hold {
	struct base *base;
	unsigned long flags;
	u64 now_ns;
	unsigned int touched;
	bool program;
};

extern unsigned int base_tick_shift;

/* The first tick that does not begin before @ns. */
static inline u64 base_tick_after(u64 ns)
{
	return (ns >> base_tick_shift) + !!(ns & ((1ULL << base_tick_shift) - 1));
}

/* The tick that @ns is in. */
static inline u64 base_tick_at(u64 ns)
{
	return ns >> base_tick_shift;
}

static inline u64 base_tick_ns(u64 tick)
{
	return tick << base_tick_shift;
}

void base_hold_local(struct base_hold *hold, enum base_clock clock);
void base_hold_node(struct base_hold *hold, const struct twheel_node *node);
void base_release(struct base_hold *hold);

void base_arm(struct base_hold *hold, struct twheel_node *node, u64 due_ns);
void base_disarm(struct base_hold *hold, struct twheel_node *node);
void base_move_local(struct base_hold *hold, struct twheel_node *node);
void base_wait_for_function(struct base *base);

struct base *base_get(unsigned int cpu, enum base_clock clock);
const char *base_clock_name(enum base_clock clock);
void base_snapshot(struct base *base, struct base *copy);
int base_init(const struct base_sink *sink);
void base_exit(void);

#endif /* TWHEEL_BASE_H */
