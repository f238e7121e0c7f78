// SPDX-License-Identifier: GPL-2.0
/*
 * Bases: one wheel per CPU and clock, and the hrtimer that advances it.
 *
 * How a base works
 * ----------------
 * A base arms its hrtimer for the next tick that has work, and for nothing else:
 * there is no periodic tick, and an empty wheel takes no interrupt.  A node is
 * armed on the base of the CPU that arms it.  The hrtimer is set only when that
 * makes the next tick earlier, once for a hold of the lock; a cancel never sets
 * it, as one interrupt too many costs less than setting it each time.
 *
 *           base_arm(), earlier than programmed
 *              |
 *              v                       the hrtimer calls
 *   hrtimer_start() ...................> base_interrupt()
 *              ^                            |  batches of BASE_BATCH nodes, the
 *              |                            |  lock dropped between them and
 *              +------- wheel_next() -------+  around each timer's function
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
 * base->lock guards a base, its wheel and every node whose ->base names it.  It
 * is raw and taken with interrupts off, so nodes can be armed and cancelled from
 * any context but NMI.  The order of locks in this module, none nested otherwise:
 *
 *   context mutex  >  base->lock  >  ready lock of a context
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
 * The hrtimer's callback finds its base by container_of() and not by the CPU it
 * is on: when a CPU goes down, even a pinned hrtimer moves to another one.
 */
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>

#include "base.h"
#include "compat.h"

/* &struct twheel_node.base of a node between two bases. */
#define BASE_MIGRATING	U16_MAX

#define TICK_SHIFT_MIN	10
#define TICK_SHIFT_MAX	20

/* What never comes is due at 2^63 ns.  The wheel must reach it from any clk. */
#define BASE_NEVER_NS	((u64)S64_MAX + 1)
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
static const struct base_sink *sink;

static struct base *base_of_number(unsigned int number)
{
	return base_get(number / BASE_CLOCKS, number % BASE_CLOCKS);
}

/**
 * base_get() - the base of a CPU and clock
 * @cpu: a possible CPU.
 * @clock: the clock.
 *
 * Return: the base; it stays until base_exit().
 */
struct base *base_get(unsigned int cpu, enum base_clock clock)
{
	return per_cpu(bases[clock], cpu);
}

const char *base_clock_name(enum base_clock clock)
{
	static const char * const names[BASE_CLOCKS] = {
		[BASE_MONOTONIC] = "monotonic",
	};

	return names[clock];
}

/*
 * Set the hrtimer for the next tick that has work, but not before @earliest_ns
 * nor for a tick that has begun.
 */
static void base_program(struct base *base, u64 now_ns, u64 earliest_ns)
{
	u64 next = wheel_next(&base->wheel);

	lockdep_assert_held(&base->lock);
	base->programmed = next;
	if (next >= base_tick_at(BASE_NEVER_NS))
		return;

	next = max(next, base_tick_at(now_ns) + 1);
	hrtimer_start(&base->hrtimer, max(base_tick_ns(next), earliest_ns),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* Interrupts are off.  sparse: the hold owns the lock until hold_leave(). */
static void hold_enter(struct base_hold *hold, struct base *base)
{
	raw_spin_lock(&base->lock);
	__release(&base->lock);
	hold->base = base;
	hold->now_ns = ktime_get_ns();
	hold->touched = 0;
	hold->program = false;
}

static void hold_leave(struct base_hold *hold)
{
	struct base *base = hold->base;

	if (hold->program)
		base_program(base, hold->now_ns, 0);
	hold->base = NULL;
	__acquire(&base->lock);
	raw_spin_unlock(&base->lock);
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
 * base_hold_local() - hold the base of the CPU that we are on
 * @hold: a hold, of a base or of none.
 * @clock: the clock.
 *
 * Context: any but NMI.  Interrupts are off until base_release().
 */
void base_hold_local(struct base_hold *hold, enum base_clock clock)
{
	if (hold_continues(hold, raw_cpu_read(bases[clock])))
		return;
	local_irq_save(hold->flags);
	hold_enter(hold, this_cpu_read(bases[clock]));
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
 * base_move_local() - let a node be armed on the CPU that we are on
 * @hold: a hold of the base of @node; then of the local base of that clock.
 * @node: a node that is on no wheel.
 */
void base_move_local(struct base_hold *hold, struct twheel_node *node)
{
	struct base *local = this_cpu_read(bases[hold->base->clock]);

	if (hold->base == local)
		return;
	WRITE_ONCE(node->base, BASE_MIGRATING);
	hold_leave(hold);
	hold_enter(hold, local);
	WRITE_ONCE(node->base, local->number);
}

/**
 * base_arm() - put a node on the wheel of the base that is held
 * @hold: a hold of a base.
 * @node: a node that is on no wheel.
 * @due_ns: when it is due, on the base's clock; 2^63 and more is never.
 */
void base_arm(struct base_hold *hold, struct twheel_node *node, u64 due_ns)
{
	struct base *base = hold->base;
	u64 due = base_tick_after(min(due_ns, BASE_NEVER_NS));

	lockdep_assert_held(&base->lock);
	WRITE_ONCE(node->base, base->number);
	wheel_add(&base->wheel, &node->wheel, due, base_tick_at(hold->now_ns));
	if (due < base->programmed && !base->running)
		hold->program = true;
}

/**
 * base_disarm() - take a node off its wheel
 * @hold: a hold of the base of @node.
 * @node: a node that is on a wheel, or has just come out of it.
 */
void base_disarm(struct base_hold *hold, struct twheel_node *node)
{
	lockdep_assert_held(&hold->base->lock);
	wheel_del(&hold->base->wheel, &node->wheel);
}

#ifdef CONFIG_PREEMPT_RT
static void base_expiry_init(struct base *base)
{
	spin_lock_init(&base->expiry_lock);
}

static void base_expiry_lock(struct base *base)
{
	spin_lock(&base->expiry_lock);
}

static void base_expiry_unlock(struct base *base)
{
	spin_unlock(&base->expiry_lock);
}

/*
 * A waiter that spins could keep the function that it waits for from ever being
 * scheduled; one that blocks lends it its priority.
 */
void base_wait_for_function(struct base *base)
{
	spin_lock(&base->expiry_lock);
	spin_unlock(&base->expiry_lock);
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

/* Call a timer's function, which may free the timer. */
static void call_timer(struct base_hold *hold, struct twheel_timer *timer)
{
	void (*function)(struct twheel_timer *timer) = timer->function;
	struct base *base = hold->base;

	base->current_timer = timer;
	base_release(hold);
	function(timer);
	local_irq_save(hold->flags);
	hold_enter(hold, base);
	base->current_timer = NULL;
}

static void count_lateness(struct base *base, const struct twheel_node *node,
			   u64 now_ns)
{
	u64 late_ns = now_ns - base_tick_ns(node->wheel.due);
	unsigned int bucket = fls64(late_ns >> BASE_LATENESS_SHIFT);

	base->lateness[min(bucket, BASE_LATENESS_BUCKETS - 1U)]++;
	base->nr_expired++;
}

/*
 * Deal with up to BASE_BATCH nodes that are due; true if there are more.  What
 * came out stays cancellable while a function is called.
 */
static bool run_batch(struct base_hold *hold, struct list_head *wake)
{
	struct base *base = hold->base;
	LIST_HEAD(expired);
	bool more;

	more = wheel_advance(&base->wheel, base_tick_at(hold->now_ns),
			     BASE_BATCH, &expired);
	while (!list_empty(&expired)) {
		struct twheel_node *node =
			list_first_entry(&expired, struct twheel_node, wheel.list);

		count_lateness(base, node, hold->now_ns);
		base_disarm(hold, node);
		if (node->kind == BASE_EVENT)
			sink->due(node, hold->now_ns, wake);
		else
			call_timer(hold, container_of(node, struct twheel_timer,
						      node));
	}
	return more;
}

static void wake_all(struct list_head *wake)
{
	if (!list_empty(wake))
		sink->wake(wake);
}

static enum hrtimer_restart base_interrupt(struct hrtimer *hrtimer)
{
	struct base *base = container_of(hrtimer, struct base, hrtimer);
	struct base_hold hold = {};
	u64 start_ns, spent_ns;
	LIST_HEAD(wake);
	bool more;

	base_expiry_lock(base);
	local_irq_save(hold.flags);
	hold_enter(&hold, base);
	base->interrupts++;
	base->running = true;
	start_ns = hold.now_ns;

	for (;;) {
		more = run_batch(&hold, &wake);
		spent_ns = hold.now_ns - start_ns;
		if (!more || spent_ns >= BASE_RUN_NS)
			break;
		base_release(&hold);
		wake_all(&wake);
		local_irq_save(hold.flags);
		hold_enter(&hold, base);
	}

	base->running = false;
	base_program(base, hold.now_ns, more ? hold.now_ns + spent_ns : 0);
	base_release(&hold);
	base_expiry_unlock(base);
	wake_all(&wake);
	return HRTIMER_NORESTART;
}

/**
 * base_snapshot() - copy a base's numbers, for people to look at
 * @base: the base.
 * @copy: out: the copy; its lists and its lock mean nothing.
 */
void base_snapshot(struct base *base, struct base *copy)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&base->lock, flags);
	memcpy(copy, base, sizeof(*copy));
	raw_spin_unlock_irqrestore(&base->lock, flags);
}

static struct base *base_create(unsigned int cpu, enum base_clock clock)
{
	struct base *base = kvzalloc_node(sizeof(*base), GFP_KERNEL,
					  cpu_to_node(cpu));

	if (!base)
		return NULL;
	raw_spin_lock_init(&base->lock);
	base_expiry_init(base);
	base->cpu = cpu;
	base->clock = clock;
	base->number = cpu * BASE_CLOCKS + clock;
	base->programmed = WHEEL_NEVER;
	wheel_init(&base->wheel, base_tick_at(ktime_get_ns()));
	twheel_hrtimer_setup(&base->hrtimer, base_interrupt, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS_PINNED_SOFT);
	return base;
}

/**
 * base_init() - make the bases of all CPUs
 * @event_sink: what is done with events that are due.
 *
 * Return: 0 or -ENOMEM.
 */
int base_init(const struct base_sink *event_sink)
{
	unsigned int cpu, clock;

	sink = event_sink;
	for_each_possible_cpu(cpu) {
		for (clock = 0; clock < BASE_CLOCKS; clock++) {
			struct base *base = base_create(cpu, clock);

			if (!base) {
				base_exit();
				return -ENOMEM;
			}
			per_cpu(bases[clock], cpu) = base;
		}
	}
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

	for_each_possible_cpu(cpu) {
		for (clock = 0; clock < BASE_CLOCKS; clock++) {
			struct base *base = base_get(cpu, clock);

			if (!base)
				continue;
			per_cpu(bases[clock], cpu) = NULL;
			hrtimer_cancel(&base->hrtimer);
			WARN_ON_ONCE(base->wheel.armed);
			kvfree(base);
		}
	}
}
