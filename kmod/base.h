/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bases: a wheel, its lock and its hrtimer, one for each CPU, clock and kind of nodes.
 *
 * base.c tells who may touch what.
 */
#ifndef TWHEEL_BASE_H
#define TWHEEL_BASE_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "base_number.h"
#include "twheel.h"
#include "wheels.h"

/* The most nodes touched while a base's lock is held once. */
#define BASE_BATCH	64

/* Buckets of the lateness histogram: bucket k is below 2^(k + 10) ns. */
#define BASE_LATENESS_SHIFT	10
#define BASE_LATENESS_BUCKETS	24

/* The first time that stands for never. */
#define BASE_NEVER_NS	((u64)S64_MAX + 1)

/* For base_hold_cpu(): the CPU that we are on. */
#define BASE_ANY_CPU	UINT_MAX

enum base_clock {
	BASE_MONOTONIC,
	BASE_BOOTTIME,
	BASE_REALTIME,
	BASE_CLOCKS,
};

/* The nodes of each kind have bases of their own: base.c tells why. */
enum base_kind {
	BASE_EVENTS,	/* events without NODE_DEADLINE */
	BASE_DEADLINES,	/* events with NODE_DEADLINE */
	BASE_TIMERS,	/* timers of modules, on BASE_MONOTONIC only */
	BASE_KINDS,
};

/* A role is a kind, and in this many lower bits a clock. */
#define BASE_CLOCK_BITS	2
#define BASE_ROLES	(BASE_KINDS << BASE_CLOCK_BITS)

/* &struct twheel_node.flags */
#define NODE_EVENT	BIT(7)	/* an event, for &struct base_ops; else a timer */
#define NODE_DEADLINE	BIT(6)	/* an event whose time may have been moved meanwhile */

struct context;

/**
 * struct base_due - what the layer above keeps from one due event to the next
 * @expired: the list that the events are on; the events for which due() was called are at
 *	its head.
 * @context: the context whose ready lock is held, or NULL.
 * @last: the last event of that context for which due() was called.
 * @nr: how many events of that context there were.
 * @wake: the contexts to wake.
 */
struct base_due {
	struct list_head *expired;
	struct context *context;
	struct twheel_node *last;
	unsigned int nr;
	struct list_head wake;
};

/**
 * struct base_lag - how far a base is behind with its nodes
 * @since_ns: when a run began that used up its time and left nodes, if no run since then has
 *	handled all; the first such run, on CLOCK_MONOTONIC; 0: there is none.
 * @length_ns: how long that was ago when a batch began; a limit if it was
 *	longer.
 */
struct base_lag {
	u64 since_ns;
	u64 length_ns;
};

/* The functions of the layer above that handle events. */
struct base_ops {
	/*
	 * An event with NODE_DEADLINE has come out.  If its time was moved, this sets
	 * @due_ns to its new due time, and returns the tick at which it comes out again;
	 * otherwise it returns 0, and due() is called next.  Called with the lock of its
	 * base held.
	 */
	u64 (*postponed)(struct twheel_node *node, u64 now_ns, const struct base_lag *lag,
			 u64 *due_ns);
	/*
	 * An event is due.  Called with the lock of its base held, at most BASE_BATCH
	 * times in a hold, in the order of @expired.
	 */
	void (*due)(struct twheel_node *node, u64 now_ns, struct base_due *due);
	/*
	 * Called after the last call of due(), with the lock of the base still held.  Takes
	 * the events that were due off @expired.
	 */
	void (*due_end)(struct base_due *due);
	/* Wake the contexts on the list.  Called with no spinlock held. */
	void (*wake)(struct list_head *wake);
	/*
	 * The same in hard interrupt context: only few tasks are looked at.  Contexts for
	 * which there are more stay on the list.
	 */
	void (*wake_few)(struct list_head *wake);
};

/**
 * struct base - the wheels of a CPU and role, and the hrtimers that drive them
 * @lock: guards all other fields, and the nodes that name this base.
 * @number: base_of_number() of it is this base.
 * @online: nodes may be armed here: its CPU is up.
 * @running: base_run() is under way, and will set an hrtimer when it ends.
 * @cpu: the CPU it serves.
 * @role: base_role() of its kind and clock.
 * @kind: the kind of nodes that it takes.
 * @clock: the clock it follows.
 * @programmed_tick: the tick for which an hrtimer is set, or will be set by a kick in
 *	flight or by the run under way; WHEEL_NEVER: none.
 * @read_tick: the tick at which the clock was last read in a hold.
 * @current_timer: the timer whose function is being called, without @lock.
 * @most_touched: the most nodes touched in one hold, ever.
 * @longest_hold_ns: how long the longest hold took, in a kernel that debugs spinlocks.
 * @wheels: its wheels.
 * @expired: nodes that came out and were not handled yet.
 * @hrtimer: calls base_run() at @deadline_ns, on the base's clock.
 * @deadline_ns: the time that @hrtimer or @lone was last set for.
 * @lone: calls base_lone() at @deadline_ns instead, in hard interrupt context.
 * @rest: calls base_run() for what base_lone() leaves.
 * @late_wake: the contexts that it leaves to be woken.
 * @resume: calls base_run() at the end of a pause, on CLOCK_MONOTONIC.
 * @not_before_ns: after the clock was set back: the earliest time at which this base is
 *	run again, on CLOCK_MONOTONIC; 0, or a time that has passed: it may run now.
 * @lag: how far it is behind.
 * @csd: calls base_kicked() on its CPU.
 * @kicked: @csd is in flight.
 * @interrupts: how often one of the hrtimers called, ever.
 * @nr_expired: how many nodes were due and handled, ever.
 * @nr_postponed: how many nodes came out and went back because their time had been moved.
 * @due_ticks: how often a node was due at another tick than the one before it.
 * @last_due_tick: the due tick of the last node that was handled.
 * @lateness: how many nodes were handled with each lateness, in buckets.
 * @more_wheels: the memory of the wheels that CLOCK_REALTIME needs after it was set back,
 *	or NULL; only base_grow() writes it.
 * @wheel: the memory of the first wheel.
 *
 * The fields that arming and cancelling use come first.
 */
struct base {
	raw_spinlock_t lock;
	u16 number;
	bool online;
	bool running;
	unsigned int cpu;
	u8 role;
	u8 kind;
	u8 clock;
	u64 programmed_tick;
	u64 read_tick;
	struct twheel_timer *current_timer;
	unsigned int most_touched;
#ifdef CONFIG_DEBUG_SPINLOCK
	u64 longest_hold_ns;
#endif
	struct wheels wheels;
	struct list_head expired;
	struct hrtimer hrtimer;
	u64 deadline_ns;
	struct hrtimer lone;
	struct tasklet_struct rest;
	struct list_head late_wake;
	struct hrtimer resume;
	u64 not_before_ns;
	struct base_lag lag;
	call_single_data_t csd;
	bool kicked;
	u64 interrupts;
	u64 nr_expired;
	u64 nr_postponed;
	u64 due_ticks;
	u64 last_due_tick;
	u64 lateness[BASE_LATENESS_BUCKETS];
#ifdef CONFIG_PREEMPT_RT
	/** @expiry_lock: held by a run; a task takes it to wait for the run's end. */
	spinlock_t expiry_lock;
#endif
	struct wheel *more_wheels;
	struct wheel wheel[];
};

/**
 * struct base_view - a copy of a base, for debugfs
 * @base: a copy; its locks, hrtimers and lists must not be used.
 * @now_tick: the tick at which it was made.
 * @next_tick: the next tick that has work, or WHEEL_NEVER.
 * @gap: how many nodes are not on @wheel, because the clock was set back.
 * @wheel: a copy of the farthest wheel, usually the only one in use, without its lists.
 */
struct base_view {
	struct base base;
	u64 now_tick;
	u64 next_tick;
	u64 gap;
	struct wheel wheel;
};

extern unsigned int base_tick_shift;

/* The first tick that does not begin before @ns, which is below 2^63. */
static inline u64 base_tick_after(u64 ns)
{
	return (ns + (1ULL << base_tick_shift) - 1) >> base_tick_shift;
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

static inline unsigned int base_role(enum base_kind kind, enum base_clock clock)
{
	return kind << BASE_CLOCK_BITS | clock;
}

static inline enum base_kind base_role_kind(unsigned int role)
{
	return role >> BASE_CLOCK_BITS;
}

static inline enum base_clock base_role_clock(unsigned int role)
{
	return role & ((1U << BASE_CLOCK_BITS) - 1);
}

u64 base_clock_ns(enum base_clock clock);
clockid_t base_clock_id(enum base_clock clock);
const char *base_clock_name(enum base_clock clock);
const char *base_kind_suffix(enum base_kind kind);

void base_wait_for_function(struct base *base);

DECLARE_PER_CPU(struct base *, twheel_bases[BASE_ROLES]);

/**
 * base_get() - the base of a CPU and role
 * @cpu: a possible CPU.
 * @role: the role.
 *
 * Return: the base, which stays until bases_exit(); NULL if the role was not used
 * yet, or if the CPU never came up.
 */
static inline struct base *base_get(unsigned int cpu, unsigned int role)
{
	return per_cpu(twheel_bases[role], cpu);
}

unsigned int base_serving_cpu(unsigned int cpu);
void base_open_cpu(unsigned int cpu);
void base_close_cpu(unsigned int cpu);

void base_set_ops(const struct base_ops *ops);
void base_init(struct base *base, u16 number, unsigned int cpu, unsigned int role);
bool base_go_back(struct base *base);
void base_grow(struct base *base, struct wheel *more);
void base_look(struct base *base, struct base_view *view);
void base_stop(struct base *base);

#endif /* TWHEEL_BASE_H */
