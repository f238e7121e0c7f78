// SPDX-License-Identifier: GPL-2.0
/*
 * Bases: one wheel per CPU and clock, and the hrtimer that advances it.
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
 * A run that used its time up (BASE_RUN_NS) goes on after a pause as long as the
 * run was, so that tasks get as much of the CPU as expiry did.
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
 * Memory is not touched after sink->due() or a timer's function got it.  The wake
 * list is handed to sink->wake() with no lock held.
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
 * front of its tick.  What is left or armed there all the same, by a function
 * that is running, stays and comes out on whatever CPU the hrtimer has moved to:
 * the callback finds its base by container_of() and not by the CPU it is on.
 *
 * Isolated CPUs are left alone: what they arm lives on a housekeeping CPU.  Which
 * these are can change, so it is asked each time.
 *
 * A clock that is set back
 * ------------------------
 * An hrtimer of CLOCK_REALTIME follows the clock by itself, but a wheel cannot
 * stand before the tick that it has come to.  So such a base has two.  When it
 * finds the time before the wheel's clk, it goes on with the other wheel, which
 * it lets stand at the present tick, and moves the nodes there bit by bit, each
 * before the younger ones of its tick.  Should the clock be set back once more
 * while that goes on, new nodes wait in limbo, for no longer than it takes.
 *
 * The hrtimer code takes the time once for all that it calls in a row, so after
 * the clock was set back it may call too early, and would do so again at once.
 * The @retry timer, which goes by CLOCK_MONOTONIC, lets it come to its senses.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>

#include "base.h"
#include "compat.h"
#include "debugfs.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* &struct twheel_node.base of a node between two bases. */
#define BASE_MIGRATING	U16_MAX

#define TICK_SHIFT_MIN	10
#define TICK_SHIFT_MAX	20

/* The wheel must reach what never comes from any clk. */
static_assert((BASE_NEVER_NS >> TICK_SHIFT_MIN) <= WHEEL_REACH);
static_assert((BASE_NEVER_NS >> TICK_SHIFT_MIN) < 1ULL << 56);
static_assert(CONFIG_NR_CPUS * BASE_CLOCKS < BASE_MIGRATING);

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

static DEFINE_PER_CPU(struct base *, bases[BASE_CLOCKS]);
static DEFINE_PER_CPU(unsigned int, departures);
static const struct base_sink *sink;

/* CPUs whose bases are online, or about to be. */
static struct cpumask open_cpus;
static enum cpuhp_state hotplug_state = CPUHP_INVALID;

static struct base *base_of_number(unsigned int number)
{
	return base_get(number / BASE_CLOCKS, number % BASE_CLOCKS);
}

/**
 * base_get() - the base of a CPU and clock
 * @cpu: a possible CPU.
 * @clock: the clock.
 *
 * Return: the base, which stays until base_exit(); NULL before base_use().
 */
struct base *base_get(unsigned int cpu, enum base_clock clock)
{
	return per_cpu(bases[clock], cpu);
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

/* The wheel that nodes are armed on. */
static struct wheel *main_wheel(struct base *base)
{
	return &base->wheels[base->main];
}

/* The one that is being emptied after the clock was set back. */
static struct wheel *other_wheel(struct base *base)
{
	return &base->wheels[!base->main];
}

static unsigned int nr_wheels(enum base_clock clock)
{
	return clock == BASE_REALTIME ? 2 : 1;
}

/* Are there nodes that have to get to the main wheel? */
static bool is_moving(struct base *base)
{
	return base->clock == BASE_REALTIME &&
	       (other_wheel(base)->armed || !list_empty(&base->limbo));
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

/* The CPU that takes what one that is down leaves, and is bound to. */
static unsigned int substitute_cpu(void)
{
	unsigned int cpu;

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
	if (cpu != BASE_ANY_CPU)
		return cpumask_test_cpu(cpu, &open_cpus) ? cpu : substitute_cpu();

	cpu = raw_smp_processor_id();
	if (likely(may_serve(cpu)))
		return cpu;
	cpu = housekeeping_any_cpu(HK_TYPE_TIMER);
	return may_serve(cpu) ? cpu : substitute_cpu();
}

/**
 * base_departures() - how often a CPU went down since the module was loaded
 * @cpu: a possible CPU.
 */
unsigned int base_departures(unsigned int cpu)
{
	return READ_ONCE(per_cpu(departures, cpu));
}

/* --- the hrtimer ------------------------------------------------------------ */

/* The next tick that has work. */
static u64 next_work(struct base *base, u64 now_ns)
{
	u64 next = wheel_next(main_wheel(base));

	return is_moving(base) ? min(next, base_tick_at(now_ns) + 1) : next;
}

/*
 * Set the hrtimer, on this CPU, for the next tick that has work, but not before
 * @earliest_ns nor for a tick that has begun.
 */
static void base_program(struct base *base, u64 now_ns, u64 earliest_ns)
{
	u64 next = next_work(base, now_ns);

	lockdep_assert_held(&base->lock);
	base->programmed = next;
	if (next >= base_tick_at(BASE_NEVER_NS))
		return;

	next = max(next, base_tick_at(now_ns) + 1);
	base->deadline_ns = max(base_tick_ns(next), earliest_ns);
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
		base_program(base, base_clock_ns(base->clock), 0);
	raw_spin_unlock(&base->lock);
}

/*
 * Let the base's CPU set the hrtimer.  With interrupts off since the base was
 * seen online, that CPU cannot be gone; what it holds then moves when it goes.
 */
static void base_kick(struct base *base)
{
	if (!WARN_ON_ONCE(smp_call_function_single_async(base->cpu, &base->csd)))
		return;
	raw_spin_lock(&base->lock);
	base->kicked = false;
	raw_spin_unlock(&base->lock);
}

/* Set the hrtimer, or return true if base_kick() has to. */
static bool program_or_kick(struct base *base, u64 now_ns)
{
	if (base->cpu == smp_processor_id() || !base->online) {
		base_program(base, now_ns, 0);
		return false;
	}
	base->programmed = next_work(base, now_ns);
	if (base->kicked)
		return false;
	base->kicked = true;
	return true;
}

/* --- holds ------------------------------------------------------------------ */

/* The clock is behind the main wheel: go on with the other one, if it is empty. */
static void turn_back(struct base_hold *hold)
{
	struct base *base = hold->base;

	if (main_wheel(base)->armed) {
		if (other_wheel(base)->armed)
			return;
		base->main = !base->main;
		hold->program = true;
	}
	wheel_restart(main_wheel(base), base_tick_at(hold->now_ns));
}

/* Is the clock behind the main wheel? */
static bool is_behind(const struct base_hold *hold)
{
	return hold->base->clock == BASE_REALTIME &&
	       base_tick_at(hold->now_ns) < main_wheel(hold->base)->clk;
}

/* Interrupts are off.  sparse: the hold owns the lock until hold_leave(). */
static void hold_enter(struct base_hold *hold, struct base *base)
{
	raw_spin_lock(&base->lock);
	__release(&base->lock);
	hold->base = base;
	hold->now_ns = base_clock_ns(base->clock);
	hold->touched = 0;
	hold->program = false;
	if (unlikely(is_behind(hold)))
		turn_back(hold);
}

static void hold_leave(struct base_hold *hold)
{
	struct base *base = hold->base;
	bool kick = hold->program && !base->running &&
		    program_or_kick(base, hold->now_ns);

	hold->base = NULL;
	__acquire(&base->lock);
	raw_spin_unlock(&base->lock);
	if (kick)
		base_kick(base);
}

/* Hold the base that serves @cpu.  Interrupts are off. */
static void hold_enter_cpu(struct base_hold *hold, enum base_clock clock,
			   unsigned int cpu)
{
	hold_enter(hold, base_get(base_serving_cpu(cpu), clock));
	while (unlikely(!hold->base->online)) {
		hold_leave(hold);
		hold_enter(hold, base_get(substitute_cpu(), clock));
	}
}

/**
 * base_release() - end a hold
 * @hold: a hold, of a base or of none.
 *
 * Sets the hrtimer if what was armed asks for it.
 */
void base_release(struct base_hold *hold)
{
	if (!hold->base)
		return;
	hold_leave(hold);
	local_irq_restore(hold->flags);
}
EXPORT_SYMBOL_FOR_KUNIT(base_release);

/* End @hold unless it is one of @base that may touch another node. */
static bool hold_continues(struct base_hold *hold, const struct base *base)
{
	if (hold->base == base && hold->touched < BASE_BATCH) {
		hold->touched++;
		return true;
	}
	base_release(hold);
	return false;
}

/**
 * base_hold_cpu() - hold the base that nodes are armed on
 * @hold: a hold, of a base or of none.
 * @clock: the clock.
 * @cpu: the CPU that their owner names, or BASE_ANY_CPU.
 *
 * Context: any but NMI.  Interrupts are off until base_release().
 */
void base_hold_cpu(struct base_hold *hold, enum base_clock clock,
		   unsigned int cpu)
{
	if (hold->base && hold->base->online &&
	    hold_continues(hold, base_get(base_serving_cpu(cpu), clock)))
		return;
	base_release(hold);
	local_irq_save(hold->flags);
	hold_enter_cpu(hold, clock, cpu);
}

/**
 * base_hold_node() - hold the base that a node is on, or was last
 * @hold: a hold, of a base or of none.
 * @node: the node.
 *
 * Context: any but NMI.  Interrupts are off until base_release().
 */
void base_hold_node(struct base_hold *hold, const struct twheel_node *node)
{
	for (;;) {
		unsigned int number = READ_ONCE(node->base);

		if (number == BASE_MIGRATING) {
			base_release(hold);
			cpu_relax();
			continue;
		}
		if (!hold_continues(hold, base_of_number(number))) {
			local_irq_save(hold->flags);
			hold_enter(hold, base_of_number(number));
		}
		if (node->base == number)
			return;
	}
}

/**
 * base_move_here() - let a node be armed on the CPU that we are on
 * @hold: a hold of the base of @node; then of the base that serves this CPU.
 * @node: a node that is on no wheel.
 */
void base_move_here(struct base_hold *hold, struct twheel_node *node)
{
	enum base_clock clock = hold->base->clock;

	if (hold->base->online &&
	    hold->base->cpu == base_serving_cpu(BASE_ANY_CPU))
		return;
	WRITE_ONCE(node->base, BASE_MIGRATING);
	hold_leave(hold);
	hold_enter_cpu(hold, clock, BASE_ANY_CPU);
	WRITE_ONCE(node->base, hold->base->number);
}

/* --- nodes ------------------------------------------------------------------ */

/* When a node comes out that is due at @due_ns: a tick. */
static u64 choose_tick(u64 due_ns, u64 slack_ns)
{
	u64 last_ns;

	if (due_ns >= BASE_NEVER_NS)
		return base_tick_at(BASE_NEVER_NS);
	if (check_add_overflow(due_ns, slack_ns, &last_ns))
		last_ns = S64_MAX;
	return wheel_roundest(base_tick_after(due_ns),
			      base_tick_at(min_t(u64, last_ns, S64_MAX)));
}

/* Set aside what no wheel of this base could take for its time. */
static void limbo_add(struct twheel_node *node, u64 due, struct list_head *after)
{
	node->wheel.due = due;
	node->wheel.level = WHEEL_OUT;
	list_add(&node->wheel.list, after);
}

/* Set the hrtimer when the hold ends, if it has to be earlier. */
static void hold_wants(struct base_hold *hold, u64 due)
{
	if (due < hold->base->programmed)
		hold->program = true;
}

/**
 * base_arm() - put a node on the wheel of the base that is held
 * @hold: a hold of a base.
 * @node: a node that is on no wheel.
 * @due_ns: when it is due, on the base's clock; 2^63 and more is never.
 * @slack_ns: how much later than that it may come out.
 */
void base_arm(struct base_hold *hold, struct twheel_node *node, u64 due_ns,
	      u64 slack_ns)
{
	struct base *base = hold->base;
	u64 due = choose_tick(due_ns, slack_ns);

	lockdep_assert_held(&base->lock);
	WRITE_ONCE(node->base, base->number);
	if (unlikely(is_behind(hold) || !list_empty(&base->limbo)))
		limbo_add(node, due, base->limbo.prev);
	else
		wheel_add(main_wheel(base), &node->wheel, due,
			  base_tick_at(hold->now_ns));
	hold_wants(hold, due);
	trace_twheel_arm(base, node, due_ns, base_tick_ns(due));
}

static void take_off(struct base *base, struct twheel_node *node)
{
	wheel_del(&base->wheels[node->wheel.side], &node->wheel);
}

/**
 * base_disarm() - take a node off before its time
 * @hold: a hold of the base of @node.
 * @node: a node that is on a wheel, or has just come out of it.
 */
void base_disarm(struct base_hold *hold, struct twheel_node *node)
{
	lockdep_assert_held(&hold->base->lock);
	take_off(hold->base, node);
	trace_twheel_cancel(hold->base, node);
}

/**
 * base_complete() - take a node off because what it waited for has come
 * @hold: a hold of the base of @node.
 * @node: a node that is on a wheel.
 * @key: for the trace: the key of the signal that completed it.
 * @value: for the trace: the value.
 */
void base_complete(struct base_hold *hold, struct twheel_node *node, u64 key,
		   u64 value)
{
	lockdep_assert_held(&hold->base->lock);
	take_off(hold->base, node);
	trace_twheel_complete(hold->base, node, key, value);
}

/* Put a node before all that are there for its tick. */
static void place_older(struct base_hold *hold, struct twheel_node *node)
{
	struct base *base = hold->base;
	u64 due = node->wheel.due;

	if (is_behind(hold) && due < main_wheel(base)->clk)
		limbo_add(node, due, &base->limbo);
	else
		wheel_add_older(main_wheel(base), &node->wheel, due,
				base_tick_at(hold->now_ns));
	hold_wants(hold, due);
}

/* Get some nodes of a base whose clock was set back to its main wheel. */
static void move_some(struct base_hold *hold, unsigned int budget)
{
	struct base *base = hold->base;
	struct twheel_node *node;

	for (; budget && is_moving(base); budget--) {
		if (!list_empty(&base->limbo) && !is_behind(hold)) {
			node = list_first_entry(&base->limbo, struct twheel_node,
						wheel.list);
			take_off(base, node);
			wheel_add(main_wheel(base), &node->wheel,
				  node->wheel.due, base_tick_at(hold->now_ns));
		} else if (other_wheel(base)->armed) {
			node = container_of(wheel_pop(other_wheel(base)),
					    struct twheel_node, wheel);
			place_older(hold, node);
		} else {
			return;
		}
	}
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

static void wake_all(struct list_head *wake)
{
	if (!list_empty(wake))
		sink->wake(wake);
}

/*
 * Call a timer's function, which may free the timer, and may take its time: so
 * those who wait for events are woken first.
 */
static void call_timer(struct base_hold *hold, struct twheel_timer *timer,
		       struct list_head *wake)
{
	void (*function)(struct twheel_timer *timer) = timer->function;
	struct base *base = hold->base;

	base->current_timer = timer;
	base_release(hold);
	wake_all(wake);
	function(timer);
	local_irq_save(hold->flags);
	hold_enter(hold, base);
	base->current_timer = NULL;
}

/* Account for a node that has come out. */
static void note_due(struct base *base, const struct twheel_node *node,
		     u64 now_ns)
{
	u64 due_ns = base_tick_ns(node->wheel.due);
	u64 late_ns = now_ns > due_ns ? now_ns - due_ns : 0;
	unsigned int bucket = fls64(late_ns >> BASE_LATENESS_SHIFT);

	base->lateness[min(bucket, BASE_LATENESS_BUCKETS - 1U)]++;
	base->nr_expired++;
	trace_twheel_due(base, node, late_ns);
}

/*
 * Deal with up to BASE_BATCH nodes, that are due or have to move; true if there
 * are more.  What came out stays cancellable while a function is called.
 */
static bool run_batch(struct base_hold *hold, struct list_head *wake)
{
	struct base *base = hold->base;
	unsigned int budget = BASE_BATCH;
	LIST_HEAD(expired);
	bool more;

	if (unlikely(is_moving(base))) {
		budget /= 2;
		move_some(hold, budget);
	}
	more = wheel_advance(main_wheel(base), base_tick_at(hold->now_ns),
			     budget, &expired);
	more |= is_moving(base);
	while (!list_empty(&expired)) {
		struct twheel_node *node =
			list_first_entry(&expired, struct twheel_node, wheel.list);

		note_due(base, node, hold->now_ns);
		take_off(base, node);
		if (node->flags & NODE_EVENT)
			sink->due(node, hold->now_ns, wake);
		else
			call_timer(hold, container_of(node, struct twheel_timer,
						      node), wake);
	}
	return more;
}

/* Run what is due, and then set the hrtimer. */
static void run_held(struct base_hold *hold, struct list_head *wake)
{
	struct base *base = hold->base;
	u64 start_ns = ktime_get_ns(), expired = base->nr_expired, spent_ns;
	bool more;

	base->running = true;
	for (;;) {
		more = run_batch(hold, wake);
		spent_ns = ktime_get_ns() - start_ns;
		if (!more || spent_ns >= BASE_RUN_NS)
			break;
		base_release(hold);
		wake_all(wake);
		local_irq_save(hold->flags);
		hold_enter(hold, base);
	}
	base->running = false;
	hold->program = false;

	trace_twheel_run(base, base->nr_expired - expired, spent_ns, more);
	if (more)
		spent_ns = min_t(u64, spent_ns, BASE_PAUSE_NS);
	base_program(base, hold->now_ns, more ? hold->now_ns + spent_ns : 0);
}

/* Called too early, by the hrtimer's idea of a clock that was set back? */
static bool is_early(const struct base_hold *hold)
{
	return hold->base->clock == BASE_REALTIME &&
	       hold->now_ns < hold->base->deadline_ns;
}

static void base_run(struct base *base, bool retried)
{
	struct base_hold hold = {};
	LIST_HEAD(wake);

	base_expiry_lock(base);
	local_irq_save(hold.flags);
	hold_enter(&hold, base);
	base->interrupts++;
	if (!retried && is_early(&hold))
		hrtimer_start(&base->retry, ns_to_ktime(base_tick_ns(1)),
			      HRTIMER_MODE_REL_PINNED_SOFT);
	else if (!base->running)
		run_held(&hold, &wake);
	base_release(&hold);
	base_expiry_unlock(base);
	wake_all(&wake);
}

static enum hrtimer_restart base_interrupt(struct hrtimer *hrtimer)
{
	base_run(container_of(hrtimer, struct base, hrtimer), false);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart base_retry(struct hrtimer *hrtimer)
{
	base_run(container_of(hrtimer, struct base, retry), true);
	return HRTIMER_NORESTART;
}

/* --- CPUs that come and go -------------------------------------------------- */

/* Take any node out, of those of its tick the youngest; NULL: there is none. */
static struct twheel_node *base_pop(struct base *base)
{
	unsigned int i;

	if (!list_empty(&base->limbo)) {
		struct twheel_node *node =
			list_last_entry(&base->limbo, struct twheel_node,
					wheel.list);

		take_off(base, node);
		return node;
	}
	for (i = 0; i < nr_wheels(base->clock); i++) {
		struct wheel *wheel = &base->wheels[base->main ^ i];

		if (wheel->armed)
			return container_of(wheel_pop(wheel),
					    struct twheel_node, wheel);
	}
	return NULL;
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
	}
	hold_leave(&hold);
	return running || !list_empty(nodes);
}

/* Put nodes, the youngest first, on the base that serves instead of @base. */
static void put_batch(const struct base *base, struct list_head *nodes)
{
	struct base_hold hold = {};

	hold_enter_cpu(&hold, base->clock, base->cpu);
	while (!list_empty(nodes)) {
		struct twheel_node *node =
			list_first_entry(nodes, struct twheel_node, wheel.list);

		list_del(&node->wheel.list);
		place_older(&hold, node);
		WRITE_ONCE(node->base, hold.base->number);
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

static int base_cpu_up(unsigned int cpu)
{
	unsigned int clock;

	for (clock = 0; clock < BASE_CLOCKS; clock++) {
		struct base *base = base_get(cpu, clock);

		if (base)
			base_set_online(base, true);
	}
	cpumask_set_cpu(cpu, &open_cpus);
	return 0;
}

/* In a task on that CPU, which others still see as up. */
static int base_cpu_down(unsigned int cpu)
{
	unsigned int clock;

	cpumask_clear_cpu(cpu, &open_cpus);
	WRITE_ONCE(per_cpu(departures, cpu), per_cpu(departures, cpu) + 1);
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
	memcpy(&view->wheel, main_wheel(base), sizeof(view->wheel));
	view->next = next_work(base, now_ns);
	view->moving = is_moving(base) ? other_wheel(base)->armed : 0;
	raw_spin_unlock_irqrestore(&base->lock, flags);
	view->now_tick = base_tick_at(now_ns);
}

/* --- beginning and end ------------------------------------------------------ */

static struct base *base_create(unsigned int cpu, enum base_clock clock)
{
	unsigned int i, nr = nr_wheels(clock);
	struct base *base;

	base = kvzalloc_node(struct_size(base, wheels, nr),
			     GFP_KERNEL | __GFP_NOWARN, cpu_to_node(cpu));
	if (!base)
		return NULL;
	raw_spin_lock_init(&base->lock);
	base_expiry_init(base);
	base->cpu = cpu;
	base->clock = clock;
	base->number = cpu * BASE_CLOCKS + clock;
	base->programmed = WHEEL_NEVER;
	base->online = cpumask_test_cpu(cpu, &open_cpus);
	INIT_LIST_HEAD(&base->limbo);
	for (i = 0; i < nr; i++) {
		wheel_init(&base->wheels[i], base_tick_at(base_clock_ns(clock)));
		base->wheels[i].side = i;
	}
	INIT_CSD(&base->csd, base_kicked, base);
	twheel_hrtimer_setup(&base->hrtimer, base_interrupt,
			     base_clock_id(clock), HRTIMER_MODE_ABS_PINNED_SOFT);
	twheel_hrtimer_setup(&base->retry, base_retry, CLOCK_MONOTONIC,
			     HRTIMER_MODE_REL_PINNED_SOFT);
	return base;
}

/* Nothing is armed on it, and nothing will be. */
static void base_stop(struct base *base)
{
	while (READ_ONCE(base->kicked))
		cpu_relax();
	/* The kick that was has let go of the lock. */
	raw_spin_lock_irq(&base->lock);
	raw_spin_unlock_irq(&base->lock);
	/* A stale one may yet start the other one, but not the reverse. */
	hrtimer_cancel(&base->hrtimer);
	hrtimer_cancel(&base->retry);
	WARN_ON_ONCE(base->wheels[0].armed);
}

static void free_bases(enum base_clock clock)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		kvfree(per_cpu(bases[clock], cpu));
		per_cpu(bases[clock], cpu) = NULL;
	}
}

static int make_bases(enum base_clock clock)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct base *base = base_create(cpu, clock);

		if (!base) {
			free_bases(clock);
			return -ENOMEM;
		}
		per_cpu(bases[clock], cpu) = base;
	}
	twheel_debugfs_add(clock);
	return 0;
}

/**
 * base_use() - make sure that there are bases of a clock
 * @clock: the clock.
 *
 * They stay until base_exit().
 *
 * Context: a task; sleeps.
 *
 * Return: 0 or -ENOMEM.
 */
int base_use(enum base_clock clock)
{
	static DEFINE_MUTEX(mutex);
	int ret = 0;

	cpus_read_lock();
	mutex_lock(&mutex);
	if (!base_get(cpumask_first(cpu_possible_mask), clock))
		ret = make_bases(clock);
	mutex_unlock(&mutex);
	cpus_read_unlock();
	return ret;
}

/**
 * base_init() - make the bases of CLOCK_MONOTONIC and follow the CPUs
 * @event_sink: what is done with events that are due.
 *
 * Return: 0, or an errno: then base_exit() undoes what was done.
 */
int base_init(const struct base_sink *event_sink)
{
	int ret;

	sink = event_sink;
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
 * base_exit() - stop and free all bases
 *
 * Nothing is armed any more, and nothing will be.
 */
void base_exit(void)
{
	unsigned int cpu, clock;

	if (hotplug_state != CPUHP_INVALID)
		cpuhp_remove_state_nocalls(hotplug_state);
	for (clock = 0; clock < BASE_CLOCKS; clock++) {
		for_each_possible_cpu(cpu) {
			if (base_get(cpu, clock))
				base_stop(base_get(cpu, clock));
		}
	}
	/* A kick's last instructions may be ours still. */
	synchronize_rcu();
	for (clock = 0; clock < BASE_CLOCKS; clock++)
		free_bases(clock);
}
