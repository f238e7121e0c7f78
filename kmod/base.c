// SPDX-License-Identifier: GPL-2.0
/*
 * Bases: the wheels of a CPU, clock and kind of nodes, and the hrtimer that advances them.
 *
 * How a base works
 * ----------------
 * A base arms its hrtimer for the next tick that has work, and for nothing else:
 * there is no periodic tick, and an empty wheel causes no interrupt.  A node is
 * armed on the base of the CPU that arms it, unless its owner names another one.
 * The hrtimer is set only when the next tick becomes earlier, and once for a hold of
 * the lock.  A cancel never sets it, because one interrupt too many costs less than
 * setting it each time.
 *
 *           base_arm(), earlier than programmed
 *              |           |
 *     this CPU |           | another CPU: base_kick() calls it there
 *              v           v               the hrtimer calls
 *   hrtimer_start() .......................> base_run()
 *              ^                               |  batches of BASE_BATCH nodes,
 *              |                               |  the lock dropped between them
 *              +--------- next_work() ---------+  and around timers' functions
 *
 * The hrtimer is never set into the past: what is overdue goes to the next tick.
 *
 * The time of a node can be moved by a store without a lock: the process moves the time
 * of an event with NODE_DEADLINE, twheel_timer_postpone() the time of a timer.  The run
 * reads the new time when the node comes out.  If it is later, the node goes back to the
 * wheel that it was on.  Such a node counts for the run's time and batches like one that
 * is due.
 *
 * If one store moves the time of a million events, and again before all have been looked
 * at, the base would never get to other nodes.  So while it is behind with its nodes
 * (struct base_lag), event_ops->postponed() puts the events of a file that has many of
 * them no nearer than the base is behind: event_time.c.
 *
 * A run reads the clock after each batch and after each timer's function.  When its time
 * is used up there is a pause: budget.c.  Another hrtimer of each base, @resume, ends the
 * pause.  It is on CLOCK_MONOTONIC: setting the base's clock does not make the pause
 * longer, and arming something does not make it shorter.  Nodes that came out and were
 * not handled yet stay in @expired until the pause ends; they can be cancelled there as
 * on a wheel.
 *
 * Never early: a due time is rounded up to a tick, and a tick is run when the
 * clock is at or past its beginning.
 *
 * Kinds
 * -----
 * A wheel stands at a tick until all nodes of that tick are handled.  One store can make
 * a million events with NODE_DEADLINE come out and go back, again and again.  So that no
 * other nodes wait for them, these have bases of their own, and so have the timers of
 * modules: enum base_kind.  An hrtimer's callback does not begin while another one is
 * running on that CPU, so a run that looks at deadlines ends when others are due.  A kind
 * and a clock are a role; each CPU has one base of each role that was used.
 *
 * Locking
 * -------
 * base->lock guards a base, its wheels and every node whose ->base names it.  It
 * is raw and taken with interrupts off, so nodes can be armed and cancelled from
 * any context but NMI.  The order of all locks: HACKING.md.
 *
 * A node's base changes only while the node is on no wheel.  node->base is
 * BASE_MIGRATING, with interrupts off, until it names the new base.  base_hold_node()
 * finds the base, locks it, and then checks that node->base still names it.
 *
 * An event's memory is not touched after event_ops->due_end(): until then the ready lock
 * of its context is held, which keeps the event from being freed.  A timer's memory is
 * not touched after its function was called.  event_ops->wake() gets the wake list with
 * no spinlock held.
 *
 * While a timer's function is running, the timer can be armed only on the base that
 * calls it, so the function never runs twice at the same time.  That base looks for its
 * next tick when the run ends.
 *
 * CPUs
 * ----
 * The hrtimer is set on the CPU that the base serves.  Another CPU kicks that CPU to set
 * it: @kicked, under the lock, allows one call at a time.  The callback finds its base by
 * container_of() and not by the CPU it runs on, because an hrtimer moves to another CPU
 * when its own goes down (cpu.c).
 *
 * Isolated CPUs are not disturbed: nodes that they arm go to a housekeeping CPU.  It is
 * always the same one, because the order of events is kept only within a wheel.  The set
 * of isolated CPUs can change, so it is checked each time.
 *
 * A clock that is set back
 * ------------------------
 * An hrtimer of CLOCK_REALTIME follows the clock by itself.  A wheel cannot go back:
 * wheels.c tells what is done instead.  The wheels that this takes are made by a work, on
 * the notice that the clock was set (cpu.c); here, in softirq context, there may be no
 * memory.
 *
 * After the clock was set back, the hrtimer may call too early, again and again:
 * wait_a_tick().
 */
#include <linux/cpumask.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sched/isolation.h>

#include "base_hold.h"
#include "budget.h"
#include "compat.h"
#include "timer_debug.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

#define TICK_SHIFT_MIN	10
#define TICK_SHIFT_MAX	20

/*
 * The longest &struct base_lag.length_ns: longer than looks at all events of a user take.
 * A machine may have been stopped for longer.
 */
#define LAG_MAX_NS	(10 * (u64)NSEC_PER_SEC)

/*
 * A node that is never due has the due time BASE_NEVER_NS.  With the shortest ticks, its
 * tick is the largest one there is: a wheel must reach it from any clk, and it must fit
 * into &struct wheel_node.place.
 */
static_assert((BASE_NEVER_NS >> TICK_SHIFT_MIN) <= WHEEL_REACH);
static_assert((BASE_NEVER_NS >> TICK_SHIFT_MIN) < 1ULL << WHEEL_DUE_BITS);
static_assert(BASE_CLOCKS <= 1 << BASE_CLOCK_BITS);

unsigned int base_tick_shift = 16;

static int set_tick_shift(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, TICK_SHIFT_MIN, TICK_SHIFT_MAX);
}

static const struct kernel_param_ops tick_shift_ops = {
	.set = set_tick_shift,
	.get = param_get_uint,
};

module_param_cb(tick_shift, &tick_shift_ops, &base_tick_shift, 0444);
MODULE_PARM_DESC(tick_shift, "A tick is 2^tick_shift ns (10 to 20, default 16)");

DEFINE_PER_CPU(struct base *, twheel_bases[BASE_ROLES]);
static const struct base_ops *event_ops;

/* CPUs whose bases are online, or about to be. */
static struct cpumask open_cpus;

/**
 * base_set_ops() - set the functions that handle events which are due
 * @ops: the functions.
 *
 * To be called before the first base is made.
 */
void base_set_ops(const struct base_ops *ops)
{
	event_ops = ops;
}

const char *base_clock_name(enum base_clock clock)
{
	static const char * const names[BASE_CLOCKS] = {
		[BASE_MONOTONIC] = "monotonic",
		[BASE_BOOTTIME] = "boottime",
		[BASE_REALTIME] = "realtime",
	};

	return names[clock];
}

/* What a base's name has after the name of its clock. */
const char *base_kind_suffix(enum base_kind kind)
{
	static const char * const suffixes[BASE_KINDS] = {
		[BASE_EVENTS] = "",
		[BASE_DEADLINES] = "-deadlines",
		[BASE_TIMERS] = "-timers",
	};

	return suffixes[kind];
}

/**
 * base_clock_ns() - read a clock
 * @clock: the clock.
 *
 * Context: any.
 */
u64 base_clock_ns(enum base_clock clock)
{
	switch (clock) {
	case BASE_BOOTTIME:
		return ktime_get_boottime_ns();
	case BASE_REALTIME:
		return ktime_get_real_ns();
	default:
		return ktime_get_ns();
	}
}

clockid_t base_clock_id(enum base_clock clock)
{
	static const clockid_t ids[BASE_CLOCKS] = {
		[BASE_MONOTONIC] = CLOCK_MONOTONIC,
		[BASE_BOOTTIME] = CLOCK_BOOTTIME,
		[BASE_REALTIME] = CLOCK_REALTIME,
	};

	return ids[clock];
}

/* --- which CPU -------------------------------------------------------------- */

static bool is_isolated(unsigned int cpu)
{
	return !housekeeping_test_cpu(cpu, HK_TYPE_TIMER) ||
	       !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN);
}

static bool may_serve(unsigned int cpu)
{
	return cpumask_test_cpu(cpu, &open_cpus) && !is_isolated(cpu);
}

/*
 * The CPU that serves instead of one that is down or isolated: the first CPU that may
 * serve, of the same memory node if possible.
 */
static unsigned int substitute_cpu(unsigned int instead_of)
{
	unsigned int cpu;

	for_each_cpu_and(cpu, &open_cpus, cpumask_of_node(cpu_to_node(instead_of)))
		if (!is_isolated(cpu))
			return cpu;
	for_each_cpu(cpu, &open_cpus)
		if (!is_isolated(cpu))
			return cpu;
	return cpumask_first(&open_cpus);
}

/**
 * base_serving_cpu() - the CPU on whose base nodes are armed now
 * @cpu: the CPU that their owner names, or BASE_ANY_CPU.
 *
 * Return: a CPU, which may go down at any moment.
 */
unsigned int base_serving_cpu(unsigned int cpu)
{
	bool serves;

	/* RCU keeps the masks of isolated CPUs, which may be replaced. */
	rcu_read_lock();
	if (cpu != BASE_ANY_CPU) {
		serves = cpumask_test_cpu(cpu, &open_cpus);
	} else {
		cpu = raw_smp_processor_id();
		serves = may_serve(cpu);
	}
	if (!serves)
		cpu = substitute_cpu(cpu);
	rcu_read_unlock();
	/* Pairs with base_open_cpu(): a CPU in open_cpus has its bases. */
	smp_rmb();
	return cpu;
}

/**
 * base_open_cpu() - let nodes be armed on a CPU
 * @cpu: the CPU, whose bases are all made and online.
 */
void base_open_cpu(unsigned int cpu)
{
	/* Pairs with base_serving_cpu(). */
	smp_mb__before_atomic();
	cpumask_set_cpu(cpu, &open_cpus);
}

/**
 * base_close_cpu() - choose other CPUs than this one from now on
 * @cpu: the CPU, whose bases go offline after this.
 */
void base_close_cpu(unsigned int cpu)
{
	cpumask_clear_cpu(cpu, &open_cpus);
}

/* --- the hrtimer ------------------------------------------------------------ */

/* The next tick that has work: nodes on the wheels, or in @expired. */
static u64 next_work(const struct base *base, u64 now_ns)
{
	u64 now_tick = base_tick_at(now_ns);

	return list_empty(&base->expired) ? wheels_next(&base->wheels, now_tick) :
	       now_tick;
}

static bool has_work(struct base_hold *hold)
{
	u64 now_ns = hold_now_ns(hold);

	return next_work(hold->base, now_ns) <= base_tick_at(now_ns);
}

/* Is it the tick of nodes that are never due, or an empty wheel's WHEEL_NEVER? */
static bool is_never(u64 tick)
{
	return tick >= base_tick_at(BASE_NEVER_NS);
}

static void start_resume(struct base *base)
{
	hrtimer_start(&base->resume, ns_to_ktime(budget_resume_ns(base)),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/*
 * Set the hrtimer, on this CPU, for the next tick that has work, but not for a tick that
 * has begun.  If the tick comes during a pause, set @resume for the end of the pause.
 */
static void base_program(struct base *base, u64 now_ns)
{
	u64 next_tick = next_work(base, now_ns), pause_ns;

	lockdep_assert_held(&base->lock);
	base->programmed_tick = next_tick;
	if (is_never(next_tick))
		return;

	/* Overdue nodes are run when the pause ends, not at the next tick after it. */
	pause_ns = budget_pause_left_ns(base);
	if (pause_ns && base_tick_ns(next_tick) < now_ns + pause_ns) {
		start_resume(base);
		return;
	}
	base->deadline_ns = base_tick_ns(max(next_tick, base_tick_at(now_ns) + 1));
	hrtimer_start(&base->hrtimer, ns_to_ktime(base->deadline_ns),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* On the base's CPU, in hardirq context: set the hrtimer for another CPU. */
static void base_kicked(void *info)
{
	struct base *base = info;

	raw_spin_lock(&base->lock);
	base->kicked = false;
	if (!base->running)
		base_program(base, base_clock_ns(base->clock));
	raw_spin_unlock(&base->lock);
}

/*
 * Let the base's CPU set the hrtimer.  Interrupts have been off since the base was
 * seen online, so that CPU is still up; its nodes move when it goes down.
 */
void base_kick(struct base *base)
{
	if (!WARN_ON_ONCE(smp_call_function_single_async(base->cpu, &base->csd)))
		return;
	raw_spin_lock(&base->lock);
	base->kicked = false;
	base->programmed_tick = WHEEL_NEVER;
	raw_spin_unlock(&base->lock);
}

/*
 * Called at the end of a hold in which the next tick became earlier: set the hrtimer, or
 * return true if base_kick() has to be called for that.
 */
bool base_program_or_kick(struct base *base, u64 now_ns)
{
	if (base->cpu == smp_processor_id() || !base->online) {
		base_program(base, now_ns);
		return false;
	}
	base->programmed_tick = next_work(base, now_ns);
	if (base->kicked || is_never(base->programmed_tick))
		return false;
	base->kicked = true;
	return true;
}

/* --- holds ------------------------------------------------------------------ */

/* Read the clock of a base that is held. */
u64 base_read_clock(struct base *base)
{
	u64 now_ns = base_clock_ns(base->clock);

	lockdep_assert_held(&base->lock);
	base->read_tick = base_tick_at(now_ns);
	return now_ns;
}

/* base_lock_serving(); inline for an ADD that is alone in its call. */
static __always_inline struct base *lock_serving(unsigned int role, unsigned int cpu)
{
	struct base *base = NULL;

	/* Nearly always it is this CPU's own; if it is not online, the loop finds another. */
	if (cpu == BASE_ANY_CPU && !twheel_may_be_isolated())
		base = base_get(smp_processor_id(), role);
	if (!base)
		base = base_get(base_serving_cpu(cpu), role);
	raw_spin_lock(&base->lock);
	while (!base->online) {
		unsigned int gone = base->cpu;

		raw_spin_unlock(&base->lock);
		rcu_read_lock();
		base = base_get(substitute_cpu(gone), role);
		rcu_read_unlock();
		raw_spin_lock(&base->lock);
	}
	__release(&base->lock);
	return base;
}

/* Lock the base that serves @cpu.  Interrupts are off.  sparse: as hold_enter(). */
struct base *base_lock_serving(unsigned int role, unsigned int cpu)
{
	return lock_serving(role, cpu);
}

/* Does a base, which is held, serve that CPU? */
bool base_serves(const struct base *base, unsigned int cpu)
{
	return base->online && base == base_get(base_serving_cpu(cpu), base->role);
}

/*
 * Does the base that is held serve that CPU?  During a hold the base stays online and we
 * stay on this CPU, so the answer stays true and @serves keeps it.
 */
static bool hold_serves(struct base_hold *hold, unsigned int role,
			unsigned int cpu)
{
	const struct base *base = hold->base;

	if (!base || base->role != role)
		return false;
	if (!hold->serves || hold->cpu != cpu) {
		hold->serves = base_serves(base, cpu);
		hold->cpu = cpu;
	}
	return hold->serves;
}

/* base_hold_cpu() while none is held. */
static __always_inline void hold_first_cpu(struct base_hold *hold, unsigned int role,
					   unsigned int cpu)
{
	local_irq_save(hold->flags);
	hold_begin(hold, lock_serving(role, cpu));
	hold->serves = true;
	hold->cpu = cpu;
	hold->touched = 1;
}

/* base_hold_cpu() while one is held, which may serve. */
static noinline void hold_another_cpu(struct base_hold *hold, unsigned int role,
				      unsigned int cpu)
{
	if (hold_serves(hold, role, cpu) && hold->touched < BASE_BATCH) {
		hold->touched++;
		return;
	}
	base_release(hold);
	hold_first_cpu(hold, role, cpu);
}

/* The slow path of base_hold_cpu(). */
void base_hold_serving(struct base_hold *hold, unsigned int role,
		       unsigned int cpu)
{
	if (hold->base)
		hold_another_cpu(hold, role, cpu);
	else
		hold_first_cpu(hold, role, cpu);
}

/* The slow path of base_hold_node(). */
void base_hold_another(struct base_hold *hold, const struct twheel_node *node)
{
	base_release(hold);
	base_hold_first(hold, node);
}

/* --- nodes ------------------------------------------------------------------ */

static void take_off(struct base *base, struct twheel_node *node)
{
	lockdep_assert_held(&base->lock);
	wheels_del(&base->wheels, &node->wheel);
}

/* --- runs ------------------------------------------------------------------- */

#ifdef CONFIG_PREEMPT_RT
static void base_expiry_init(struct base *base)
{
	spin_lock_init(&base->expiry_lock);
}

static void base_expiry_lock(struct base *base)
	__acquires(&base->expiry_lock)
{
	spin_lock(&base->expiry_lock);
}

static void base_expiry_unlock(struct base *base)
	__releases(&base->expiry_lock)
{
	spin_unlock(&base->expiry_lock);
}

/*
 * A waiter that spins could prevent the function that it waits for from ever being
 * scheduled.  A waiter that blocks lends its priority to the function.
 */
void base_wait_for_function(struct base *base)
{
	spin_lock_bh(&base->expiry_lock);
	spin_unlock_bh(&base->expiry_lock);
}
#else
static void base_expiry_init(struct base *base) { }
static void base_expiry_lock(struct base *base) { }
static void base_expiry_unlock(struct base *base) { }

/**
 * base_wait_for_function() - let the function that a base calls make progress
 * @base: the base, not held.
 *
 * Context: a task with softirqs enabled.
 */
void base_wait_for_function(struct base *base)
{
	cpu_relax();
}
#endif

/**
 * struct base_run - a run of a base
 * @hold: the hold of the base.
 * @due: the events that are being made READY, and the contexts to wake afterwards.
 * @time: how long it has taken.
 */
struct base_run {
	struct base_hold hold;
	struct base_due due;
	struct run_time time;
};

/* Wake those who wait for events.  No spinlock is held. */
static void wake_all(struct base_run *run)
{
	if (!list_empty(&run->due.wake))
		event_ops->wake(&run->due.wake);
}

/* CLOCK_MONOTONIC.  Most bases have this clock: the hold keeps the time then. */
static u64 run_now_ns(struct base_run *run)
{
	if (run->hold.base->clock != BASE_MONOTONIC)
		return ktime_get_ns();
	run->hold.now_ns = base_read_clock(run->hold.base);
	return run->hold.now_ns;
}

/*
 * Call a timer's function, which may free the timer.  It may take long, so those who
 * wait for events are woken first.
 */
static void call_timer(struct base_run *run, struct twheel_timer *timer)
{
	struct base_hold *hold = &run->hold;
	struct base *base = hold->base;

	base->current_timer = timer;
	timer_debug_deactivate(timer);
	base_release(hold);
	wake_all(run);
	timer_debug_call(timer);
	local_irq_save(hold->flags);
	hold_enter(hold, base);
	base->current_timer = NULL;
}

/* Account for a node that has come out. */
static void note_due(struct base *base, const struct twheel_node *node,
		     u64 now_ns)
{
	u64 due_tick = wheel_due(&node->wheel);
	u64 due_ns = base_tick_ns(due_tick);
	u64 late_ns = now_ns > due_ns ? now_ns - due_ns : 0;
	unsigned int bucket = fls64(late_ns >> BASE_LATENESS_SHIFT);

	base->lateness[min(bucket, BASE_LATENESS_BUCKETS - 1U)]++;
	base->nr_expired++;
	base->due_ticks += due_tick != base->last_due_tick;
	base->last_due_tick = due_tick;
	trace_twheel_due(base, node, late_ns);
}

/* A node came out, but its time was moved: put it back on the wheel. */
static void wait_on(struct base_run *run, struct twheel_node *node, u64 due_tick,
		    u64 due_ns)
{
	struct base *base = run->hold.base;

	take_off(base, node);
	wheels_add(&base->wheels, &node->wheel, due_tick, hold_tick(&run->hold));
	base->nr_postponed++;
	trace_twheel_postpone(base, node, due_ns, base_tick_ns(due_tick));
}

/* If the word of an event with NODE_DEADLINE has a later time, put the event back. */
static bool event_waits_on(struct base_run *run, struct twheel_node *node)
{
	u64 due_tick, due_ns;

	due_tick = event_ops->postponed(node, hold_now_ns(&run->hold),
					&run->hold.base->lag, &due_ns);
	if (!due_tick)
		return false;
	wait_on(run, node, due_tick, due_ns);
	return true;
}

/* If a timer was postponed to a later time, put it back. */
static bool timer_waits_on(struct base_run *run, struct twheel_timer *timer)
{
	u64 due_ns = atomic64_read(&timer->postponed_ns);

	if (due_ns <= hold_now_ns(&run->hold))
		return false;
	wait_on(run, &timer->node,
		base_due_tick(due_ns, base_tick_ns(timer->node.tag)), due_ns);
	return true;
}

/* A run begins, or goes on after a batch. */
static void measure_lag(struct base_run *run)
{
	struct base_lag *lag = &run->hold.base->lag;

	if (lag->since_ns)
		lag->length_ns = min(run->time.start_ns + run->time.spent_ns - lag->since_ns,
				     LAG_MAX_NS);
}

/* A run ends. */
static void note_lag(struct base_run *run, bool used_up)
{
	struct base_lag *lag = &run->hold.base->lag;

	if (!used_up && !lag->since_ns)
		return;
	if (!has_work(&run->hold))
		lag->since_ns = 0;
	else if (!lag->since_ns)
		lag->since_ns = run->time.start_ns;
}

/* Is the base of that kind for CLOCK_MONOTONIC due on this CPU, and in no pause? */
static bool is_kind_due(enum base_kind kind, u64 now_ns)
{
	const struct base *base = base_get(smp_processor_id(),
					   base_role(kind, BASE_MONOTONIC));

	return base && READ_ONCE(base->programmed_tick) <= base_tick_at(now_ns) &&
	       !budget_has_pause(kind);
}

/*
 * Looks may never end, and others must not come later for that: a run that looks lets
 * them pass after each batch, and goes on at the next tick.
 */
static bool lets_others_pass(const struct base_run *run)
{
	u64 now_ns = run->time.start_ns + run->time.spent_ns;

	return run->hold.base->kind == BASE_DEADLINES &&
	       (is_kind_due(BASE_EVENTS, now_ns) || is_kind_due(BASE_TIMERS, now_ns));
}

/* Has the run used up its time? */
static bool is_used_up(struct base_run *run)
{
	return budget_is_used_up(&run->time, run_now_ns(run));
}

/* The first node that came out and was not handled yet, or NULL. */
static struct twheel_node *first_expired(struct base *base)
{
	return list_first_entry_or_null(&base->expired, struct twheel_node, wheel.list);
}

/* Make the events that came out READY, up to the next timer. */
static void expire_events(struct base_run *run)
{
	struct base *base = run->hold.base;
	u64 now_ns = hold_now_ns(&run->hold);
	struct twheel_node *node, *next;
	unsigned int nr = 0;

	list_for_each_entry_safe(node, next, &base->expired, wheel.list) {
		if (!(node->flags & NODE_EVENT))
			break;
		nr++;
		if (node->flags & NODE_DEADLINE) {
			/* No ready lock may be held while a word is read. */
			event_ops->due_end(&run->due);
			if (event_waits_on(run, node))
				continue;
		}
		note_due(base, node, now_ns);
		event_ops->due(node, now_ns, &run->due);
	}
	event_ops->due_end(&run->due);
	run->hold.touched = max(run->hold.touched, nr);
}

/* Handle the nodes that came out, until the run has used up its time. */
static void expire(struct base_run *run)
{
	struct base *base = run->hold.base;
	struct twheel_node *node;

	while ((node = first_expired(base))) {
		struct twheel_timer *timer =
			container_of(node, struct twheel_timer, node);

		if (node->flags & NODE_EVENT) {
			expire_events(run);
			continue;
		}
		if (timer_waits_on(run, timer))
			continue;
		note_due(base, node, hold_now_ns(&run->hold));
		take_off(base, node);
		call_timer(run, timer);
		if (is_used_up(run))
			return;
	}
}

/*
 * Does the base serve another CPU than this one?  That CPU is kicked when the run ends,
 * unless it is down.
 */
static bool runs_on_other_cpu(const struct base *base)
{
	return base->online && base->cpu != smp_processor_id();
}

/* Take nodes that are due off the wheels, or prefetch. */
static void advance_base(struct base_hold *hold)
{
	struct base *base = hold->base;

	wheels_advance(&base->wheels, base_tick_at(hold_now_ns(hold)), BASE_BATCH,
		       &base->expired);
	hold->touched = base->wheels.touched;
}

/*
 * Handle all nodes that are due.  An hrtimer is set when the hold ends.
 *
 * An hrtimer that is started during its callback stays on the CPU of the callback.  So
 * before another CPU is kicked to set it, this one must be about to return from the
 * callback: those who wait for events are woken before the hold ends.
 */
static void run_held(struct base_run *run)
{
	struct base_hold *hold = &run->hold;
	struct base *base = hold->base;
	u64 expired = base->nr_expired;
	bool used_up, done;

	base->running = true;
	budget_begin(&run->time, base, run_now_ns(run));
	do {
		if (list_empty(&base->expired))
			advance_base(hold);
		measure_lag(run);
		expire(run);
		used_up = is_used_up(run);
		done = used_up || !has_work(hold) || lets_others_pass(run);
		if (done && (list_empty(&run->due.wake) || !runs_on_other_cpu(base)))
			break;
		base_release(hold);
		wake_all(run);
		local_irq_save(hold->flags);
		hold_enter(hold, base);
	} while (!done);
	base->running = false;
	budget_end(&run->time, base, used_up);
	note_lag(run, used_up);
	trace_twheel_run(base, base->nr_expired - expired, run->time.spent_ns,
			 has_work(hold));
}

/* Did the hrtimer call too early, because CLOCK_REALTIME was set back? */
static bool is_early(struct base_hold *hold)
{
	return hold->base->clock == BASE_REALTIME &&
	       hold_now_ns(hold) < hold->base->deadline_ns && !has_work(hold);
}

/*
 * The hrtimer code reads the time once for all hrtimers that it calls in a row.  If
 * @hrtimer was set for the same time again, it would be called again at once, in a loop.
 * So @resume is set for a tick later.
 */
static void wait_a_tick(struct base *base)
{
	base->not_before_ns = ktime_get_ns() + base_tick_ns(1);
	start_resume(base);
}

/* Run the base, unless there is a pause.  An hrtimer is set when the hold ends. */
static void run_or_pause(struct base_run *run)
{
	struct base *base = run->hold.base;

	if (!budget_pause_left_ns(base)) {
		base->not_before_ns = 0;
		budget_end_pause(base);
		if (!base->running)
			run_held(run);
	}
	run->hold.program = true;
}

static void base_run(struct base *base, bool resumed)
{
	struct base_run run = {};
	struct base_hold *hold = &run.hold;

	run.due.expired = &base->expired;
	INIT_LIST_HEAD(&run.due.wake);
	base_expiry_lock(base);
	local_irq_save(hold->flags);
	hold_enter(hold, base);
	base->interrupts++;
	if (!resumed && is_early(hold))
		wait_a_tick(base);
	else
		run_or_pause(&run);
	base_release(hold);
	base_expiry_unlock(base);
	wake_all(&run);
}

static enum hrtimer_restart base_interrupt(struct hrtimer *hrtimer)
{
	base_run(container_of(hrtimer, struct base, hrtimer), false);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart base_resume(struct hrtimer *hrtimer)
{
	base_run(container_of(hrtimer, struct base, resume), true);
	return HRTIMER_NORESTART;
}

/* --- beginning and end ------------------------------------------------------ */

/**
 * base_init() - prepare a base
 * @base: the base, all zeros, with memory for a wheel at its end.
 * @number: its number.
 * @cpu: the CPU that it serves.
 * @role: its role.
 */
void base_init(struct base *base, u16 number, unsigned int cpu, unsigned int role)
{
	enum base_clock clock = base_role_clock(role);

	raw_spin_lock_init(&base->lock);
	base_expiry_init(base);
	base->number = number;
	base->cpu = cpu;
	base->role = role;
	base->kind = base_role_kind(role);
	base->clock = clock;
	base->programmed_tick = WHEEL_NEVER;
	base->online = cpumask_test_cpu(cpu, &open_cpus);
	INIT_LIST_HEAD(&base->expired);
	base->read_tick = base_tick_at(base_clock_ns(clock));
	if (clock == BASE_REALTIME)
		wheels_init_growing(&base->wheels, base->wheel, base->read_tick);
	else
		wheels_init(&base->wheels, base->wheel, 1, base->read_tick);
	INIT_CSD(&base->csd, base_kicked, base);
	twheel_hrtimer_setup(&base->hrtimer, base_interrupt,
			     base_clock_id(clock), HRTIMER_MODE_ABS_PINNED_SOFT);
	twheel_hrtimer_setup(&base->resume, base_resume, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * base_must_grow() - was the clock of a base set back, and does it need more wheels?
 * @base: the base.
 */
bool base_must_grow(struct base *base)
{
	unsigned long flags;
	bool must;

	raw_spin_lock_irqsave(&base->lock, flags);
	must = wheels_must_grow(&base->wheels, base_tick_at(base_clock_ns(base->clock)));
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return must;
}

/**
 * base_grow() - give a base more wheels
 * @base: a base for which base_must_grow() was true.
 * @more: WHEELS_MAX - 1 empty wheels, which stay as long as the base.
 *
 * Nodes that have waited for these wheels are put on them at the next tick.
 */
void base_grow(struct base *base, struct wheel *more)
{
	struct base_hold hold = {};

	local_irq_save(hold.flags);
	hold_enter(&hold, base);
	wheels_grow(&base->wheels, more);
	base->more_wheels = more;
	hold_wants(&hold, next_work(base, hold_now_ns(&hold)));
	base_release(&hold);
}

/**
 * base_look() - copy a base for debugfs
 * @base: the base.
 * @view: out: the copy.
 */
void base_look(struct base *base, struct base_view *view)
{
	u64 now_ns = base_clock_ns(base->clock);
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	memcpy(&view->base, base, sizeof(*base));
	memcpy(&view->wheel, wheels_farthest(&base->wheels),
	       offsetof(struct wheel, lists));
	view->next_tick = next_work(base, now_ns);
	view->gap = wheels_armed(&base->wheels) - view->wheel.armed;
	raw_spin_unlock_irqrestore(&base->lock, flags);
	view->now_tick = base_tick_at(now_ns);
}

/**
 * base_stop() - wait for the last kick and cancel the hrtimers
 * @base: a base on which nothing is armed, and nothing will be.
 *
 * Context: a task; sleeps.
 */
void base_stop(struct base *base)
{
	while (READ_ONCE(base->kicked))
		cpu_relax();
	/* Wait until base_kicked(), which has cleared @kicked, drops the lock. */
	raw_spin_lock_irq(&base->lock);
	raw_spin_unlock_irq(&base->lock);
	hrtimer_cancel(&base->hrtimer);
	hrtimer_cancel(&base->resume);
	WARN_ON_ONCE(wheels_armed(&base->wheels) || !list_empty(&base->expired));
}
