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
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "twheel.h"
#include "wheel.h"

/* The most nodes touched while a base's lock is held once. */
#define BASE_BATCH	64

/* For how long a run may go on before it leaves the CPU to others. */
#define BASE_RUN_NS	(1 * NSEC_PER_MSEC)

/* For how long it does so at most: a run is longer where the machine stalls. */
#define BASE_PAUSE_NS	(10 * NSEC_PER_MSEC)

/* Buckets of the lateness histogram: bucket k is below 2^(k + 10) ns. */
#define BASE_LATENESS_SHIFT	10
#define BASE_LATENESS_BUCKETS	24

/* From here on, a time is never. */
#define BASE_NEVER_NS	((u64)S64_MAX + 1)

/* For base_hold_cpu(): whichever CPU we are on. */
#define BASE_ANY_CPU	UINT_MAX

enum base_clock {
	BASE_MONOTONIC,
	BASE_BOOTTIME,
	BASE_REALTIME,
	BASE_CLOCKS,
};

/* &struct twheel_node.flags: an event, for &struct base_sink; else a timer. */
#define NODE_EVENT	BIT(7)

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
 * struct base - the wheel of a CPU and clock, and what drives it
 * @lock: guards all below, and the nodes that name this base.
 * @hrtimer: wakes it at @deadline_ns.
 * @programmed: the earliest work that is seen to: by @hrtimer, by a kick on its way
 *	or by the run under way; WHEEL_NEVER: none.
 * @deadline_ns: the time that @hrtimer was last set for.
 * @retry: REALTIME: wakes it, by CLOCK_MONOTONIC, when @hrtimer was early.
 * @csd: calls its CPU to set @hrtimer there.
 * @kicked: @csd is under way.
 * @online: nodes may be armed here: its CPU is up.
 * @running: base_run() is under way, and will set @hrtimer when it ends.
 * @current_timer: the timer whose function is being called, without @lock.
 * @number: which base this is.
 * @cpu: the CPU it serves.
 * @clock: the clock it follows.
 * @interrupts: how often an hrtimer called, ever.
 * @nr_expired: how many nodes came out, ever.
 * @lateness: of these, how many were how late.
 * @limbo: REALTIME: nodes for which no wheel stands early enough yet.
 * @main: which one of @wheels nodes are armed on.
 * @wheels: one, or two for REALTIME, which can be set back; the second one
 *	is then being emptied into the first.
 */
struct base {
	raw_spinlock_t lock;
	struct hrtimer hrtimer;
	u64 programmed;
	u64 deadline_ns;
	struct hrtimer retry;
	call_single_data_t csd;
	bool kicked;
	bool online;
	bool running;
	struct twheel_timer *current_timer;
	u16 number;
	unsigned int cpu;
	enum base_clock clock;
	u64 interrupts;
	u64 nr_expired;
	u64 lateness[BASE_LATENESS_BUCKETS];
#ifdef CONFIG_PREEMPT_RT
	/** @expiry_lock: held by a run, for those who wait for a function to return. */
	spinlock_t expiry_lock;
#endif
	struct list_head limbo;
	unsigned int main;
	struct wheel wheels[];
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

/**
 * struct base_view - what people look at of a base
 * @base: a copy; its locks, timers and lists mean nothing.
 * @now_tick: what tick it was then.
 * @next: the next tick that has work, or WHEEL_NEVER.
 * @moving: how many nodes are still in the wheel that is being emptied.
 * @wheel: a copy of the wheel that nodes are armed on.
 */
struct base_view {
	struct base base;
	u64 now_tick;
	u64 next;
	u64 moving;
	struct wheel wheel;
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

u64 base_clock_ns(enum base_clock clock);
clockid_t base_clock_id(enum base_clock clock);
const char *base_clock_name(enum base_clock clock);

void base_hold_cpu(struct base_hold *hold, enum base_clock clock,
		   unsigned int cpu);
void base_hold_node(struct base_hold *hold, const struct twheel_node *node);
void base_release(struct base_hold *hold);

void base_arm(struct base_hold *hold, struct twheel_node *node, u64 due_ns,
	      u64 slack_ns);
void base_disarm(struct base_hold *hold, struct twheel_node *node);
void base_complete(struct base_hold *hold, struct twheel_node *node, u64 key,
		   u64 value);
void base_move_here(struct base_hold *hold, struct twheel_node *node);
void base_wait_for_function(struct base *base);

struct base *base_get(unsigned int cpu, enum base_clock clock);
unsigned int base_serving_cpu(unsigned int cpu);
unsigned int base_departures(unsigned int cpu);
void base_look(struct base *base, struct base_view *view);

int base_use(enum base_clock clock);
int base_init(const struct base_sink *sink);
void base_exit(void);

#endif /* TWHEEL_BASE_H */
