// SPDX-License-Identifier: GPL-2.0
/*
 * Bases: the wheels of a CPU and clock, and the hrtimer that advances them.
 *
 * How a base works
 * ----------------
 * A base arms its hrtimer for the next tick that has work, and for nothing else:
 * there is no periodic tick, and an empty wheel takes no interrupt.  A node is
 * armed on the base of the CPU that arms it, unless its owner names another one.
 * The hrtimer is set only when that makes the next tick earlier, once for a hold
 * of the lock; a cancel never sets it, as one interrupt too many costs less than
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
 * The time of a node may have been moved by a store, which no lock guards: of an event
 * with NODE_DEADLINE by its process, of a timer by twheel_timer_postpone().  It is looked
 * at when the node comes out.  A later time puts the node back on the wheel that it was
 * on; that takes of the run's time and of its batches as a node does that is due.
 *
 * A run looks at the time after each batch and after each timer's function.  When it
 * has used its time up (BASE_RUN_NS), there is a pause as long as the run was, so
 * that tasks get as much of the CPU as expiry did.  The pause is one of the CPU, for
 * its bases of all clocks, which then take turns: the one that led to it comes back a
 * nanosecond after the others.  It goes by another hrtimer of each, @resume, on
 * CLOCK_MONOTONIC: so setting the base's clock does not stretch it, and whatever is
 * armed meanwhile does not cut it short.  Nodes that came out and were not dealt with
 * wait for its end in @expired; they can be cancelled there as on a wheel.
 *
 * Never early: a due time is rounded up to a tick, and a tick is run when the
 * clock is at or past its beginning.
 *
 * Locking
 * -------
 * base->lock guards a base, its wheels and every node whose ->base names it.  It
 * is raw and taken with interrupts off, so nodes can be armed and cancelled from
 * any context but NMI.  The order of the locks that contexts and bases nest:
 *
 *   context mutex  >  registry->lock  >  base->lock  >  ready lock of a context
 *
 * On PREEMPT_RT a base's expiry lock is held around all that a run calls, and so
 * outside a registry's.
 *
 * A node's base changes only while it is on no wheel: node->base is then
 * BASE_MIGRATING, with interrupts off, until it has the new one.  base_hold_node()
 * finds the base, locks it and looks again.
 *
 * Memory of an event is not touched after event_ops->due_end(): until then its ready
 * lock is held, which keeps it.  That of a timer is not touched after its function got
 * it.  The wake list is handed to event_ops->wake() with no spinlock held.
 *
 * A timer whose function is being called is armed again on the base that calls it
 * and nowhere else, so it never runs twice at once; that base looks for its next
 * tick when the run ends.
 *
 * CPUs
 * ----
 * The hrtimer is set on the CPU that the base serves.  From another one, that CPU
 * is kicked to do it: @kicked, under the lock, makes it one call at a time.
 *
 * A base takes nodes while it is online.  When its CPU goes down, it goes offline
 * and its nodes move to another base in batches, the youngest first, each to the
 * front of its tick, when no function of a timer is running there any more.  The
 * hrtimer moves to another CPU, as all of its do: the callback finds its base by
 * container_of() and not by the CPU it is on.  When the CPU has come back, the next
 * run that ends elsewhere kicks it to set the hrtimer there again.  A kick that is
 * quicker than the return from the callback leaves the hrtimer where it is, and the
 * run after that kicks again.
 *
 * Bases are made for CPUs that are up, when a clock is first used or when a CPU
 * comes for the first time, and stay until the end.
 *
 * Isolated CPUs are left alone: what they arm lives on a housekeeping CPU, always
 * the same one, as the order of events is kept on one wheel only.  Which CPUs are
 * isolated can change, so it is asked each time.
 *
 * A clock that is set back
 * ------------------------
 * An hrtimer of CLOCK_REALTIME follows the clock by itself; wheels.c tells what
 * becomes of the wheel, which cannot go back.
 *
 * After that the hrtimer may call too early, and again and again: wait_a_tick().
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>

#include "base_hold.h"
#include "compat.h"
#include "timer_debug.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

#define TICK_SHIFT_MIN	10
#define TICK_SHIFT_MAX	20

/*
 * What never comes is due at BASE_NEVER_NS.  With the shortest ticks that is the
 * largest tick there is: a wheel must reach it wherever it stands, and it must fit
 * into &struct wheel_node.place.
 */
static_assert((BASE_NEVER_NS >> TICK_SHIFT_MIN) <= WHEEL_REACH);
static_assert((BASE_NEVER_NS >> TICK_SHIFT_MIN) < 1ULL << WHEEL_DUE_BITS);
/* No base has the number that stands for none. */
static_assert(CONFIG_NR_CPUS << BASE_CLOCK_BITS < BASE_MIGRATING);
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

DEFINE_PER_CPU(struct base *, twheel_bases[BASE_CLOCKS]);
static DEFINE_PER_CPU(unsigned int, offline_count);
static const struct base_ops *event_ops;
static void (*base_made)(struct base *base);

/* CPUs whose bases are online, or about to be. */
static struct cpumask open_cpus;
/* A bit for each clock that has a base for each of these CPUs. */
static unsigned long clocks_in_use;
static enum cpuhp_state hotplug_state = CPUHP_INVALID;

const char *base_clock_name(enum base_clock clock)
{
	static const char * const names[BASE_CLOCKS] = {
		[BASE_MONOTONIC] = "monotonic",
		[BASE_BOOTTIME] = "boottime",
		[BASE_REALTIME] = "realtime",
	};

	return names[clock];
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
 * The CPU that serves instead of one that is down or isolated: the first that may,
 * if possible of the same memory node.
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
 * base_serving_cpu() - where nodes are armed now
 * @cpu: the CPU that their owner names, or BASE_ANY_CPU.
 *
 * Return: a CPU, which may go down at any moment.
 */
unsigned int base_serving_cpu(unsigned int cpu)
{
	bool serves;

	/* The masks of isolated CPUs may be replaced. */
	rcu_read_lock();
	if (cpu != BASE_ANY_CPU) {
		serves = cpumask_test_cpu(cpu, &open_cpus);
	} else {
		cpu = raw_smp_processor_id();
		serves = may_serve(cpu);
	}
	if (unlikely(!serves))
		cpu = substitute_cpu(cpu);
	rcu_read_unlock();
	/* Pairs with base_cpu_up(): the bases of an open CPU are there. */
	smp_rmb();
	return cpu;
}

/**
 * base_offline_count() - how often a CPU went down since the module was loaded
 * @cpu: a possible CPU.
 */
unsigned int base_offline_count(unsigned int cpu)
{
	return READ_ONCE(per_cpu(offline_count, cpu));
}

/* --- the hrtimer ------------------------------------------------------------ */

/* The next tick that has work. */
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

/* No tick comes as late as that. */
static bool is_never(u64 tick)
{
	return tick >= base_tick_at(BASE_NEVER_NS);
}

/**
 * struct budget - what runs take of a CPU's time, whichever base it is
 * @pause_end_ns: until when no base is run there; 0, or a time that has passed: there is
 *	no pause.
 * @last: the base whose run led to the last pause; after it, the others go first.
 * @run_end_ns: when the last run ended.
 * @run_ns: how long it took, with those right before; 0 if a pause followed.
 *
 * On CLOCK_MONOTONIC.  Touched on that CPU only, with interrupts off.
 */
struct budget {
	u64 pause_end_ns;
	const struct base *last;
	u64 run_end_ns;
	u64 run_ns;
};

static DEFINE_PER_CPU(struct budget, budgets);

/* From when on a base may be run on this CPU, on CLOCK_MONOTONIC. */
static u64 resume_ns(const struct base *base)
{
	const struct budget *budget = this_cpu_ptr(&budgets);

	if (!budget->pause_end_ns)
		return base->not_before_ns;
	return max(base->not_before_ns, budget->pause_end_ns + (budget->last == base));
}

/* How much is left of a pause. */
static u64 pause_left_ns(const struct base *base)
{
	u64 until_ns = resume_ns(base), now_ns;

	if (!until_ns)
		return 0;
	now_ns = ktime_get_ns();
	return now_ns < until_ns ? until_ns - now_ns : 0;
}

static void start_resume(struct base *base)
{
	hrtimer_start(&base->resume, ns_to_ktime(resume_ns(base)),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/*
 * Set the hrtimer, on this CPU, for the next tick that has work, but not for one that
 * has begun.  If that comes in a pause, @resume is set instead, for the end of it.
 */
static void base_program(struct base *base, u64 now_ns)
{
	u64 next_tick = next_work(base, now_ns), pause_ns;

	lockdep_assert_held(&base->lock);
	base->programmed_tick = next_tick;
	if (is_never(next_tick))
		return;

	/* What is overdue comes at the end of a pause, in turn, and not at a tick after it. */
	pause_ns = pause_left_ns(base);
	if (pause_ns && base_tick_ns(next_tick) < now_ns + pause_ns) {
		start_resume(base);
		return;
	}
	base->deadline_ns = base_tick_ns(max(next_tick, base_tick_at(now_ns) + 1));
	hrtimer_start(&base->hrtimer, ns_to_ktime(base->deadline_ns),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* On the base's CPU, in hardirq context: set the hrtimer for others. */
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
 * seen online, so that CPU cannot be gone; what it holds moves when it goes.
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
 * A hold that armed something earlier ends: set the hrtimer, or return true if
 * base_kick() has to.
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

/* Lock the base that serves @cpu.  Interrupts are off.  sparse: as hold_enter(). */
struct base *base_lock_serving(enum base_clock clock, unsigned int cpu)
{
	struct base *base = base_get(base_serving_cpu(cpu), clock);

	raw_spin_lock(&base->lock);
	while (unlikely(!base->online)) {
		unsigned int gone = base->cpu;

		raw_spin_unlock(&base->lock);
		rcu_read_lock();
		base = base_get(substitute_cpu(gone), clock);
		rcu_read_unlock();
		raw_spin_lock(&base->lock);
	}
	__release(&base->lock);
	return base;
}

/* Does a base, which is held, serve that CPU? */
bool base_serves(const struct base *base, unsigned int cpu)
{
	return base->online && base == base_get(base_serving_cpu(cpu), base->clock);
}

/* Hold the base that serves @cpu.  Interrupts are off. */
static void hold_enter_cpu(struct base_hold *hold, enum base_clock clock,
			   unsigned int cpu)
{
	hold_begin(hold, base_lock_serving(clock, cpu));
	hold->serves = true;
	hold->cpu = cpu;
}

/*
 * Does the base that is held serve that CPU?  As long as it is held it stays online,
 * and we stay on this CPU, so this is found out once.
 */
static bool hold_serves(struct base_hold *hold, enum base_clock clock,
			unsigned int cpu)
{
	const struct base *base = hold->base;

	if (!base || base->clock != clock)
		return false;
	if (!hold->serves || hold->cpu != cpu) {
		hold->serves = base_serves(base, cpu);
		hold->cpu = cpu;
	}
	return hold->serves;
}

/* The slow path of base_hold_cpu(). */
void base_hold_serving(struct base_hold *hold, enum base_clock clock,
		       unsigned int cpu)
{
	if (hold_serves(hold, clock, cpu) && hold->touched < BASE_BATCH) {
		hold->touched++;
		return;
	}
	base_release(hold);
	local_irq_save(hold->flags);
	hold_enter_cpu(hold, clock, cpu);
	hold->touched = 1;
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

/* Put a node before all that are there for its tick. */
static void place_older(struct base_hold *hold, struct twheel_node *node)
{
	struct base *base = hold->base;

	base_assert_held(hold);
	hold_wants(hold, wheels_add_older(&base->wheels, &node->wheel,
					  wheel_due(&node->wheel), hold_tick(hold)));
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
 * A waiter that spins could keep the function that it waits for from ever being
 * scheduled; one that blocks lends it its priority.
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
 * Context: a task, not one that holds up softirqs.
 */
void base_wait_for_function(struct base *base)
{
	cpu_relax();
}
#endif

/**
 * struct base_run - a run of a base
 * @hold: the hold of the base.
 * @due: what becomes of the events, and whom to wake when no spinlock is held.
 * @start_ns: when it began, on CLOCK_MONOTONIC.
 * @spent_ns: how long it has taken, when that was last looked at.
 * @carried_ns: how long the runs right before it took, which count with it.
 */
struct base_run {
	struct base_hold hold;
	struct base_due due;
	u64 start_ns;
	u64 spent_ns;
	u64 carried_ns;
};

static void wake_all(struct base_run *run)
{
	if (!list_empty(&run->due.wake))
		event_ops->wake(&run->due.wake);
}

/* CLOCK_MONOTONIC, which is the clock of most bases: they know it then. */
static u64 run_now_ns(struct base_run *run)
{
	if (run->hold.base->clock != BASE_MONOTONIC)
		return ktime_get_ns();
	run->hold.now_ns = base_read_clock(run->hold.base);
	return run->hold.now_ns;
}

/*
 * Call a timer's function, which may free the timer, and may take its time: so
 * those who wait for events are woken first.
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

/* A node came out whose time was moved: it waits on. */
static void wait_on(struct base_run *run, struct twheel_node *node, u64 due_tick,
		    u64 due_ns)
{
	struct base *base = run->hold.base;

	take_off(base, node);
	wheels_add(&base->wheels, &node->wheel, due_tick, hold_tick(&run->hold));
	base->nr_postponed++;
	trace_twheel_postpone(base, node, due_ns, base_tick_ns(due_tick));
}

/* Does an event with NODE_DEADLINE that came out wait on? */
static bool event_waits_on(struct base_run *run, struct twheel_node *node)
{
	u64 due_tick, due_ns;

	due_tick = event_ops->postponed(node, hold_now_ns(&run->hold), &due_ns);
	if (!due_tick)
		return false;
	wait_on(run, node, due_tick, due_ns);
	return true;
}

/* Does a timer that came out wait on? */
static bool timer_waits_on(struct base_run *run, struct twheel_timer *timer)
{
	u64 due_ns = atomic64_read(&timer->postponed_ns);

	if (likely(due_ns <= hold_now_ns(&run->hold)))
		return false;
	wait_on(run, &timer->node,
		base_due_tick(due_ns, base_tick_ns(timer->node.tag)), due_ns);
	return true;
}

/*
 * A run that begins sooner after the last one than that one took goes on with its
 * budget.  Else short runs in a row could keep all others from the CPU.
 */
static void run_begin(struct base_run *run)
{
	const struct budget *budget = this_cpu_ptr(&budgets);

	run->start_ns = run_now_ns(run);
	if (run->start_ns - budget->run_end_ns < budget->run_ns)
		run->carried_ns = budget->run_ns;
	run->hold.base->running = true;
}

/* If the run has used its time up, there is a pause. */
static void run_end(struct base_run *run, bool time_is_up)
{
	struct budget *budget = this_cpu_ptr(&budgets);
	struct base *base = run->hold.base;
	u64 ran_ns = run->carried_ns + run->spent_ns;

	base->running = false;
	budget->run_end_ns = run->start_ns + run->spent_ns;
	budget->run_ns = time_is_up ? 0 : ran_ns;
	if (!time_is_up)
		return;
	budget->pause_end_ns = budget->run_end_ns + min_t(u64, ran_ns, BASE_PAUSE_NS);
	budget->last = base;
}

/* Has the run used its time up? */
static bool time_is_up(struct base_run *run)
{
	run->spent_ns = run_now_ns(run) - run->start_ns;
	return run->carried_ns + run->spent_ns >= BASE_RUN_NS;
}

/* The next node that came out; NULL: there is none. */
static struct twheel_node *first_expired(struct base *base)
{
	return list_first_entry_or_null(&base->expired, struct twheel_node, wheel.list);
}

/* Give the events away that came out, up to the next timer. */
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
		if (unlikely(node->flags & NODE_DEADLINE)) {
			/* Nobody's ready lock is held while a word is looked at. */
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

/* Deal with what came out, until the time is up. */
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
		if (time_is_up(run))
			return;
	}
}

/* Is the base's own CPU to be kicked when the run ends? */
static bool is_abroad(const struct base *base)
{
	return base->online && base->cpu != smp_processor_id();
}

/* Get nodes that are due off the wheels, or prefetch. */
static void advance(struct base_hold *hold)
{
	struct base *base = hold->base;

	wheels_advance(&base->wheels, base_tick_at(hold_now_ns(hold)), BASE_BATCH,
		       &base->expired);
	hold->touched = base->wheels.touched;
}

/*
 * Run what is due.  A timer is set when the hold ends.  If that is done by kicking
 * another CPU, this one must be about to return from the hrtimer's callback, as an
 * hrtimer that is started during its callback stays on the callback's CPU: so
 * whoever waits is woken before.
 */
static void run_held(struct base_run *run)
{
	struct base_hold *hold = &run->hold;
	struct base *base = hold->base;
	u64 expired = base->nr_expired;
	bool late, done;

	run_begin(run);
	do {
		if (list_empty(&base->expired))
			advance(hold);
		expire(run);
		late = time_is_up(run);
		done = late || !has_work(hold);
		if (done && (list_empty(&run->due.wake) || !is_abroad(base)))
			break;
		base_release(hold);
		wake_all(run);
		local_irq_save(hold->flags);
		hold_enter(hold, base);
	} while (!done);
	run_end(run, late);
	trace_twheel_run(base, base->nr_expired - expired, run->spent_ns,
			 has_work(hold));
}

/* Called too early, by the hrtimer's idea of a clock that was set back? */
static bool is_early(struct base_hold *hold)
{
	return hold->base->clock == BASE_REALTIME &&
	       hold_now_ns(hold) < hold->base->deadline_ns && !has_work(hold);
}

/*
 * The hrtimer code takes the time once for all that it calls in a row.  It would call
 * again and again at once if @hrtimer was set for the same time, so it is not.
 */
static void wait_a_tick(struct base *base)
{
	base->not_before_ns = ktime_get_ns() + base_tick_ns(1);
	start_resume(base);
}

/* Run the base, unless there is a pause; then set a timer. */
static void run_or_pause(struct base_run *run)
{
	struct base *base = run->hold.base;

	if (!pause_left_ns(base)) {
		base->not_before_ns = 0;
		this_cpu_write(budgets.pause_end_ns, 0);
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

/* --- CPUs that come and go -------------------------------------------------- */

/* Take a node out, of those of its tick the youngest; NULL: there is none. */
static struct twheel_node *base_pop(struct base *base)
{
	struct wheel_node *node = wheels_pop(&base->wheels);

	if (!node && !list_empty(&base->expired)) {
		node = list_last_entry(&base->expired, struct wheel_node, list);
		wheels_del(&base->wheels, node);
	}
	return node ? container_of(node, struct twheel_node, wheel) : NULL;
}

/*
 * Take some nodes of a base that is offline; false: none is left.  A timer whose
 * function is running could be running, so that has to end first.
 */
static bool take_batch(struct base *base, struct list_head *nodes)
{
	unsigned int budget = BASE_BATCH;
	struct base_hold hold = {};
	struct twheel_node *node;
	bool running;

	hold_enter(&hold, base);
	running = base->running;
	while (!running && budget-- && (node = base_pop(base))) {
		WRITE_ONCE(node->base, BASE_MIGRATING);
		list_add_tail(&node->wheel.list, nodes);
		hold.touched++;
	}
	hold_leave(&hold);
	return running || !list_empty(nodes);
}

/* Put nodes, the youngest first, on the base that serves instead of @base. */
static void put_batch(const struct base *base, struct list_head *nodes)
{
	struct base_hold hold = {};

	hold_enter_cpu(&hold, base->clock, base->cpu);
	/* That wheel may not have been used for long: where it stands counts. */
	hold_now_ns(&hold);
	while (!list_empty(nodes)) {
		struct twheel_node *node =
			list_first_entry(nodes, struct twheel_node, wheel.list);

		list_del(&node->wheel.list);
		place_older(&hold, node);
		WRITE_ONCE(node->base, hold.base->number);
		hold.touched++;
	}
	hold_leave(&hold);
}

static void base_evacuate(struct base *base)
{
	bool more, taken;

	do {
		LIST_HEAD(nodes);

		local_irq_disable();
		more = take_batch(base, &nodes);
		taken = !list_empty(&nodes);
		if (taken)
			put_batch(base, &nodes);
		local_irq_enable();
		if (more && !taken)
			base_wait_for_function(base);
		cond_resched();
	} while (more);
}

static void base_set_online(struct base *base, bool online)
{
	raw_spin_lock_irq(&base->lock);
	base->online = online;
	raw_spin_unlock_irq(&base->lock);
}

/* --- beginning and end ------------------------------------------------------ */

static unsigned int nr_wheels(enum base_clock clock)
{
	return clock == BASE_REALTIME ? WHEELS_MAX : 1;
}

static struct base *base_create(unsigned int cpu, enum base_clock clock)
{
	unsigned int nr = nr_wheels(clock);
	struct base *base;

	base = kvzalloc_node(struct_size(base, wheel, nr),
			     GFP_KERNEL | __GFP_NOWARN, cpu_to_node(cpu));
	if (!base)
		return NULL;
	raw_spin_lock_init(&base->lock);
	base_expiry_init(base);
	base->cpu = cpu;
	base->clock = clock;
	base->number = base_number(cpu, clock);
	base->programmed_tick = WHEEL_NEVER;
	base->online = cpumask_test_cpu(cpu, &open_cpus);
	INIT_LIST_HEAD(&base->expired);
	base->read_tick = base_tick_at(base_clock_ns(clock));
	wheels_init(&base->wheels, base->wheel, nr, base->read_tick);
	INIT_CSD(&base->csd, base_kicked, base);
	twheel_hrtimer_setup(&base->hrtimer, base_interrupt,
			     base_clock_id(clock), HRTIMER_MODE_ABS_PINNED_SOFT);
	twheel_hrtimer_setup(&base->resume, base_resume, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS_PINNED_SOFT);
	return base;
}

/* Make the base of a CPU and clock, unless there is one.  Returns 0 or -ENOMEM. */
static int make_base(unsigned int cpu, enum base_clock clock)
{
	struct base *base;

	if (base_get(cpu, clock))
		return 0;
	base = base_create(cpu, clock);
	if (!base)
		return -ENOMEM;
	per_cpu(twheel_bases[clock], cpu) = base;
	base_made(base);
	return 0;
}

/* Make the bases of a CPU, of all clocks that are in use. */
static int make_bases(unsigned int cpu)
{
	unsigned int clock;
	int ret = 0;

	for (clock = 0; clock < BASE_CLOCKS && !ret; clock++)
		if (clocks_in_use & BIT(clock))
			ret = make_base(cpu, clock);
	return ret;
}

/* A CPU without memory for its bases does not come up. */
static int base_cpu_up(unsigned int cpu)
{
	unsigned int clock;
	int ret = make_bases(cpu);

	if (ret)
		return ret;
	for (clock = 0; clock < BASE_CLOCKS; clock++)
		if (base_get(cpu, clock))
			base_set_online(base_get(cpu, clock), true);
	/* Pairs with base_serving_cpu(). */
	smp_mb__before_atomic();
	cpumask_set_cpu(cpu, &open_cpus);
	return 0;
}

/* In a task on that CPU, which others still see as up. */
static int base_cpu_down(unsigned int cpu)
{
	unsigned int clock;

	cpumask_clear_cpu(cpu, &open_cpus);
	WRITE_ONCE(per_cpu(offline_count, cpu), per_cpu(offline_count, cpu) + 1);
	for (clock = 0; clock < BASE_CLOCKS; clock++) {
		struct base *base = base_get(cpu, clock);

		if (!base)
			continue;
		base_set_online(base, false);
		base_evacuate(base);
	}
	return 0;
}

/**
 * base_look() - copy a base, for people to look at
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

/*
 * Nothing is armed on it, and nothing will be, so nothing that comes starts anything.
 * Wait for what may still be on its way: a kick, and stale timers.
 */
static void base_stop(struct base *base)
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

static void free_bases(enum base_clock clock)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		kvfree(per_cpu(twheel_bases[clock], cpu));
		per_cpu(twheel_bases[clock], cpu) = NULL;
	}
}

/**
 * base_use() - make sure that there are bases of a clock
 * @clock: the clock.
 *
 * They stay until base_exit().  Where it fails, those that were made stay too, for
 * the next attempt.
 *
 * Context: a task; sleeps.
 *
 * Return: 0 or -ENOMEM.
 */
int base_use(enum base_clock clock)
{
	static DEFINE_MUTEX(mutex);
	unsigned int cpu;
	int ret = 0;

	cpus_read_lock();
	mutex_lock(&mutex);
	if (!(clocks_in_use & BIT(clock))) {
		for_each_online_cpu(cpu) {
			ret = make_base(cpu, clock);
			if (ret)
				break;
		}
		if (!ret)
			clocks_in_use |= BIT(clock);
	}
	mutex_unlock(&mutex);
	cpus_read_unlock();
	return ret;
}

/**
 * base_init() - make the bases of CLOCK_MONOTONIC and follow the CPUs
 * @ops: what is done with events that are due.
 * @made: called for each base when it was made, in a task that may sleep.
 *
 * Return: 0, or an errno: then base_ignore_cpus() and base_exit() undo what was done.
 */
int base_init(const struct base_ops *ops, void (*made)(struct base *base))
{
	int ret;

	event_ops = ops;
	base_made = made;
	ret = base_use(BASE_MONOTONIC);
	if (ret)
		return ret;
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "twheel:online",
				base_cpu_up, base_cpu_down);
	if (ret < 0)
		return ret;
	hotplug_state = ret;
	return 0;
}

/**
 * base_ignore_cpus() - make no bases any more, whatever CPUs come
 *
 * Nothing is armed any more, and nothing will be.
 */
void base_ignore_cpus(void)
{
	if (hotplug_state != CPUHP_INVALID)
		cpuhp_remove_state_nocalls(hotplug_state);
}

/**
 * base_exit() - stop and free all bases, after base_ignore_cpus()
 */
void base_exit(void)
{
	unsigned int cpu, clock;

	for (clock = 0; clock < BASE_CLOCKS; clock++) {
		for_each_possible_cpu(cpu) {
			if (base_get(cpu, clock))
				base_stop(base_get(cpu, clock));
		}
	}
	/* A CPU may still be in the last instructions of base_kicked(), in our text. */
	synchronize_rcu();
	for (clock = 0; clock < BASE_CLOCKS; clock++)
		free_bases(clock);
}
