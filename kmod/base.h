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
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "twheel.h"
#include "wheels.h"

/* The most nodes touched while a base's lock is held once. */
#define BASE_BATCH	64

/* For how long a run may go on before it leaves the CPU to others. */
#define BASE_RUN_NS	(1 * NSEC_PER_MSEC)

/*
 * The longest pause after a run.  A pause is as long as the run was; but a virtual
 * machine that was stopped in the middle of a run for seconds shall not then keep
 * its timers waiting for as long again.
 */
#define BASE_PAUSE_NS	(100 * NSEC_PER_MSEC)

/* Buckets of the lateness histogram: bucket k is below 2^(k + 10) ns. */
#define BASE_LATENESS_SHIFT	10
#define BASE_LATENESS_BUCKETS	24

/* From here on, a time is never. */
#define BASE_NEVER_NS	((u64)S64_MAX + 1)

/* For base_hold_cpu(): whichever CPU we are on. */
#define BASE_ANY_CPU	UINT_MAX

/* &struct twheel_node.base of a node between two bases. */
#define BASE_MIGRATING	U16_MAX

enum base_clock {
	BASE_MONOTONIC,
	BASE_BOOTTIME,
	BASE_REALTIME,
	BASE_CLOCKS,
};

/* A base's number has its CPU above, and its clock in, this many bits. */
#define BASE_CLOCK_BITS	2

/* &struct twheel_node.flags */
#define NODE_EVENT	BIT(7)	/* an event, for &struct base_ops; else a timer */
#define NODE_DEADLINE	BIT(6)	/* an event whose time may have been moved meanwhile */

struct context;

/**
 * struct base_due - what the layer above keeps from one due event to the next
 * @expired: the list that the events are on; the next one is at its head, but for those
 *	that were given already.
 * @context: whose ready lock it holds, or NULL.
 * @last: the last event that it was given of that context.
 * @nr: how many these were.
 * @wake: whom to wake.
 */
struct base_due {
	struct list_head *expired;
	struct context *context;
	struct twheel_node *last;
	unsigned int nr;
	struct list_head wake;
};

/* What the layer above does with events. */
struct base_ops {
	/*
	 * An event with NODE_DEADLINE has come out.  If its time was moved, @due_ns becomes
	 * when it is due now, and what base_due_tick() makes of that is returned; else 0, and
	 * due() follows.  Called with the lock of its base held.
	 */
	u64 (*postponed)(struct twheel_node *node, u64 now_ns, u64 *due_ns);
	/*
	 * An event is due.  Called with the lock of its base held, at most BASE_BATCH
	 * times in a hold, in the order of @expired.
	 */
	void (*due)(struct twheel_node *node, u64 now_ns, struct base_due *due);
	/*
	 * That was the last one for now; the lock of the base is still held.  Those that
	 * were due are off @expired afterwards.
	 */
	void (*due_end)(struct base_due *due);
	/* Wake what is on the list, with no spinlock held. */
	void (*wake)(struct list_head *wake);
};

/**
 * struct base - the wheels of a CPU and clock, and what drives them
 * @lock: guards all below, and the nodes that name this base.
 * @number: which base this is.
 * @online: nodes may be armed here: its CPU is up.
 * @running: base_run() is under way, and will set a timer when it ends.
 * @cpu: the CPU it serves.
 * @clock: the clock it follows.
 * @programmed_tick: the earliest work that is seen to: by a timer, by a kick on its
 *	way or by the run under way; WHEEL_NEVER: none.
 * @read_tick: the tick that it was when somebody last read the clock in a hold.
 * @current_timer: the timer whose function is being called, without @lock.
 * @most_touched: the most nodes touched in one hold, ever.
 * @longest_hold_ns: how long the longest hold took, in a kernel that debugs spinlocks.
 * @wheels: its wheels.
 * @expired: nodes that came out and were not dealt with yet.
 * @hrtimer: calls base_run() at @deadline_ns, on the base's clock.
 * @deadline_ns: the time that @hrtimer was last set for.
 * @resume: calls base_run() at the end of a pause, on CLOCK_MONOTONIC.
 * @not_before_ns: where the clock was set back: until when this base is not run, on
 *	CLOCK_MONOTONIC; 0, or a time that has passed: that does not matter.
 * @csd: calls its CPU to set the timers there.
 * @kicked: @csd is under way.
 * @interrupts: how often one of the two timers called, ever.
 * @nr_expired: how many nodes were dealt with, ever.
 * @nr_postponed: how many came out and went on waiting, as their time had been moved.
 * @due_ticks: how many ticks they were due at, where these came in order.
 * @last_due_tick: the tick that the last one was due at.
 * @lateness: of these, how many were how late.
 * @wheel: the memory of @wheels: one wheel, or WHEELS_MAX for CLOCK_REALTIME.
 *
 * What arming and cancelling need comes first.
 */
struct base {
	raw_spinlock_t lock;
	u16 number;
	bool online;
	bool running;
	unsigned int cpu;
	enum base_clock clock;
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
	struct hrtimer resume;
	u64 not_before_ns;
	call_single_data_t csd;
	bool kicked;
	u64 interrupts;
	u64 nr_expired;
	u64 nr_postponed;
	u64 due_ticks;
	u64 last_due_tick;
	u64 lateness[BASE_LATENESS_BUCKETS];
#ifdef CONFIG_PREEMPT_RT
	/** @expiry_lock: held by a run, for those who wait for a function to return. */
	spinlock_t expiry_lock;
#endif
	struct wheel wheel[];
};

/**
 * struct base_view - what people look at of a base
 * @base: a copy; its locks, timers and lists mean nothing.
 * @now_tick: what tick it was then.
 * @next_tick: the next tick that has work, or WHEEL_NEVER.
 * @gap: how many nodes are due before the clk of @wheel, as the clock was set back.
 * @wheel: a copy of the farthest wheel, as a rule the only one in use, but for its lists.
 */
struct base_view {
	struct base base;
	u64 now_tick;
	u64 next_tick;
	u64 gap;
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

static inline enum base_clock base_number_clock(u16 number)
{
	return number & ((1U << BASE_CLOCK_BITS) - 1);
}

static inline u16 base_number(unsigned int cpu, enum base_clock clock)
{
	return cpu << BASE_CLOCK_BITS | clock;
}

u64 base_clock_ns(enum base_clock clock);
clockid_t base_clock_id(enum base_clock clock);
const char *base_clock_name(enum base_clock clock);

void base_wait_for_function(struct base *base);

DECLARE_PER_CPU(struct base *, twheel_bases[BASE_CLOCKS]);

/**
 * base_get() - the base of a CPU and clock
 * @cpu: a possible CPU.
 * @clock: the clock.
 *
 * Return: the base, which stays until base_exit(); NULL if the clock was not used
 * yet, or if the CPU never came.
 */
static inline struct base *base_get(unsigned int cpu, enum base_clock clock)
{
	return per_cpu(twheel_bases[clock], cpu);
}

static inline struct base *base_of_number(u16 number)
{
	return base_get(number >> BASE_CLOCK_BITS, base_number_clock(number));
}

unsigned int base_serving_cpu(unsigned int cpu);
unsigned int base_offline_count(unsigned int cpu);
void base_look(struct base *base, struct base_view *view);

int base_use(enum base_clock clock);
int base_init(const struct base_ops *ops, void (*made)(struct base *base));
void base_ignore_cpus(void);
void base_exit(void);

#endif /* TWHEEL_BASE_H */
