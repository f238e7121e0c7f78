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
 *   hrtimer_start() .......................> base_run(): base_run.c
 *              ^                               |  batches of BASE_BATCH nodes,
 *              |                               |  the lock dropped between them
 *              +------ base_next_work() ------+  and around timers' functions
 *
 * The hrtimer is never set into the past: what is overdue goes to the next tick.
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
#include "base_run.h"
#include "budget.h"
#include "compat.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/*
 * How far ahead a tick is whose events may be handled in hard interrupt context.  This
 * bounds how often that happens, whatever the length of a tick is; base_run.c bounds what
 * it takes each time.
 */
#define LONE_AHEAD_NS	(16 * NSEC_PER_USEC)

#define TICK_SHIFT_MIN	10
#define TICK_SHIFT_MAX	20

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

/* CPUs whose bases are online, or about to be. */
static struct cpumask open_cpus;

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
u64 base_next_work(const struct base *base, u64 now_ns)
{
	u64 now_tick = base_tick_at(now_ns);

	return list_empty(&base->expired) ? wheels_next(&base->wheels, now_tick) :
	       now_tick;
}

/* Is it the tick of nodes that are never due, or an empty wheel's WHEEL_NEVER? */
static bool is_never(u64 tick)
{
	return tick >= base_tick_at(BASE_NEVER_NS);
}

/* Set @resume for the end of the pause, or for @not_before_ns. */
void base_start_resume(struct base *base)
{
	hrtimer_start(&base->resume, ns_to_ktime(budget_resume_ns(base)),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/*
 * May what is due so far ahead be handled in hard interrupt context?  Not on PREEMPT_RT,
 * where a wake-up may sleep.
 */
static bool may_be_lone(const struct base *base, u64 ahead_ns)
{
	return !IS_ENABLED(CONFIG_PREEMPT_RT) && base->kind == BASE_EVENTS &&
	       base->clock != BASE_REALTIME && ahead_ns >= LONE_AHEAD_NS;
}

/* Set @lone or @hrtimer for @deadline_ns, and not the other. */
static void start_hrtimer(struct base *base, u64 now_ns)
{
	ktime_t deadline = ns_to_ktime(base->deadline_ns);

	if (may_be_lone(base, base->deadline_ns - now_ns)) {
		hrtimer_try_to_cancel(&base->hrtimer);
		hrtimer_start(&base->lone, deadline, HRTIMER_MODE_ABS_PINNED);
	} else {
		hrtimer_try_to_cancel(&base->lone);
		hrtimer_start(&base->hrtimer, deadline, HRTIMER_MODE_ABS_PINNED_SOFT);
	}
}

/*
 * Set the hrtimer, on this CPU, for the next tick that has work, but not for a tick that
 * has begun.  If the tick comes during a pause, set @resume for the end of the pause.
 */
static void base_program(struct base *base, u64 now_ns)
{
	u64 next_tick = base_next_work(base, now_ns), pause_ns;

	lockdep_assert_held(&base->lock);
	base->programmed_tick = next_tick;
	if (is_never(next_tick))
		return;

	/* Overdue nodes are run when the pause ends, not at the next tick after it. */
	pause_ns = budget_pause_left_ns(base);
	if (pause_ns && base_tick_ns(next_tick) < now_ns + pause_ns) {
		base_start_resume(base);
		return;
	}
	base->deadline_ns = base_tick_ns(max(next_tick, base_tick_at(now_ns) + 1));
	start_hrtimer(base, now_ns);
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
	base->programmed_tick = base_next_work(base, now_ns);
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
		unsigned int other = base->cpu;

		raw_spin_unlock(&base->lock);
		rcu_read_lock();
		other = substitute_cpu(other);
		rcu_read_unlock();
		/* As in base_serving_cpu(). */
		smp_rmb();
		base = base_get(other, role);
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
	base->number = number;
	base->cpu = cpu;
	base->role = role;
	base->kind = base_role_kind(role);
	base->clock = clock;
	base->programmed_tick = WHEEL_NEVER;
	base->online = cpumask_test_cpu(cpu, &open_cpus);
	INIT_LIST_HEAD(&base->expired);
	INIT_LIST_HEAD(&base->late_wake);
	base->read_tick = base_tick_at(base_clock_ns(clock));
	if (clock == BASE_REALTIME)
		wheels_init_growing(&base->wheels, base->wheel, base->read_tick);
	else
		wheels_init(&base->wheels, base->wheel, 1, base->read_tick);
	INIT_CSD(&base->csd, base_kicked, base);
	base_run_init(base);
}

/**
 * base_go_back() - go back with the clock of a base, if it was set back
 * @base: the base.
 *
 * Return: true if it needs more wheels for that: base_grow().
 */
bool base_go_back(struct base *base)
{
	unsigned long flags;
	bool must;

	raw_spin_lock_irqsave(&base->lock, flags);
	must = wheels_go_back(&base->wheels, base_tick_at(base_clock_ns(base->clock)));
	raw_spin_unlock_irqrestore(&base->lock, flags);
	return must;
}

/**
 * base_grow() - give a base more wheels
 * @base: a base for which base_go_back() was true.
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
	hold_wants(&hold, base_next_work(base, hold_now_ns(&hold)));
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
	view->next_tick = base_next_work(base, now_ns);
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
	base_run_stop(base);
	WARN_ON_ONCE(wheels_armed(&base->wheels) || !list_empty(&base->expired) ||
		     !list_empty(&base->late_wake));
}
