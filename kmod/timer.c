// SPDX-License-Identifier: GPL-2.0
/*
 * Timers for other kernel modules: twheel.h, on top of the bases.
 *
 * A timer is idle, or armed (on a wheel, or out of it and about to be called);
 * its function may be running in both cases, as base->current_timer tells.  All
 * of it is guarded by the lock of the base that the timer names, but for the time
 * that it is postponed to: that is stored without, and looked at when the timer comes
 * out of its wheel.  To arm it forgets that time.
 */
#include <linux/export.h>

#include "base_hold.h"
#include "compat.h"
#include "timer_debug.h"
#include "twheel.h"

/* &struct twheel_node.state of a timer */
enum timer_state {
	TIMER_USABLE,
	TIMER_SHUT_DOWN,	/* refuses to be armed */
};

#ifdef CONFIG_DEBUG_OBJECTS_TIMERS
static void *timer_function(void *timer)
{
	return ((struct twheel_timer *)timer)->function;
}

/* An armed timer is set up again. */
static bool fix_init(void *timer, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	twheel_timer_cancel(timer);
	debug_object_init(timer, &twheel_timer_debug);
	return true;
}

/* The memory of an armed timer is freed.  Its state must change, or they ask again. */
static bool fix_free(void *timer, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	twheel_timer_cancel(timer);
	debug_object_free(timer, &twheel_timer_debug);
	return true;
}

const struct debug_obj_descr twheel_timer_debug = {
	.name = "twheel_timer",
	.debug_hint = timer_function,
	.fixup_init = fix_init,
	.fixup_free = fix_free,
};
#endif

/**
 * twheel_timer_init() - prepare a timer for its first use
 * @timer: as for twheel_timer_setup(), which is what to use.
 * @function: the same.
 * @name: what lockdep calls it.
 * @key: lockdep's class of timers that it belongs to.
 *
 * Context: any.
 */
void twheel_timer_init(struct twheel_timer *timer,
		       void (*function)(struct twheel_timer *timer),
		       const char *name, struct lock_class_key *key)
{
	unsigned int cpu = base_serving_cpu(BASE_ANY_CPU);

	timer_debug_init(timer);
	timer->node = (struct twheel_node){
		.base = base_get(cpu, BASE_MONOTONIC)->number,
		.state = TIMER_USABLE,
	};
	wheel_node_init(&timer->node.wheel);
	timer->function = function;
	atomic64_set(&timer->postponed_ns, 0);
	lockdep_init_map(&timer->lockdep_map, name, key, 0);
}
EXPORT_SYMBOL_GPL(twheel_timer_init);

/* Is its function being called by the base that is held? */
static __always_inline bool function_runs(const struct base_hold *hold,
					  const struct twheel_timer *timer)
{
	base_assert_held(hold);
	return hold->base->current_timer == timer;
}

/* Take the timer off; true if it was armed. */
static __always_inline bool disarm(struct base_hold *hold, struct twheel_timer *timer)
{
	base_assert_held(hold);
	if (!wheel_queued(&timer->node.wheel))
		return false;
	base_disarm(hold, &timer->node);
	timer_debug_deactivate(timer);
	return true;
}

/* Put the timer on the wheel of the base that is held. */
static __always_inline void place(struct base_hold *hold, struct twheel_timer *timer,
				  u64 time_ns, u64 slack_ns, unsigned int flags)
{
	u64 due_tick = base_due_tick(time_ns, slack_ns);
	u64 now_ns;

	timer_debug_activate(timer);
	/* For when it is postponed: its slack, in ticks. */
	timer->node.tag = min_t(u64, base_tick_at(slack_ns), U32_MAX);
	if (unlikely(atomic64_read(&timer->postponed_ns)))
		atomic64_set(&timer->postponed_ns, 0);
	if (!(flags & TWHEEL_TIMER_ABS) || !base_sees_to(hold, due_tick)) {
		now_ns = hold_now_ns(hold);
		if (!(flags & TWHEEL_TIMER_ABS) &&
		    check_add_overflow(time_ns, now_ns, &time_ns))
			time_ns = U64_MAX;
		/* The tick that has begun is too soon: see twheel_timer_arm(). */
		time_ns = max(time_ns, base_tick_ns(base_tick_at(now_ns) + 1));
		due_tick = base_due_tick(time_ns, slack_ns);
	}
	base_arm(hold, &timer->node, due_tick, time_ns);
}

/* Arm the timer, unless @only_pending asks for one that is armed already. */
static __always_inline int arm(struct twheel_timer *timer, u64 time_ns, u64 slack_ns,
			       unsigned int flags, bool only_pending)
{
	struct base_hold hold;
	int ret;

	if (flags & ~TWHEEL_TIMER_ABS)
		return -EINVAL;

	base_hold_first(&hold, &timer->node);
	if (unlikely(timer->node.state == TIMER_SHUT_DOWN)) {
		ret = -ESHUTDOWN;
	} else if (only_pending && !wheel_queued(&timer->node.wheel)) {
		ret = 0;
	} else {
		ret = disarm(&hold, timer);
		if (!function_runs(&hold, timer))
			base_move_here(&hold, &timer->node);
		place(&hold, timer, time_ns, slack_ns, flags);
	}
	base_release(&hold);
	return ret;
}

/**
 * twheel_timer_arm() - arm a timer, or give an armed one another time
 * @timer: the timer.
 * @time_ns: when to call its function, in nanoseconds, from now or absolute.  A
 *	time that has passed goes to the next run of its CPU's wheel, at the next tick
 *	at the latest, as the function must not run under its caller's locks; 2^63
 *	and more is never.
 * @slack_ns: how much later it may be called, so that it shares an interrupt
 *	with its neighbours; 0: at the tick.
 * @flags: TWHEEL_TIMER_REL or TWHEEL_TIMER_ABS.
 *
 * The function is called at most once for each time that it was armed and not
 * cancelled or armed again before, on the CPU that armed it, or the one that serves
 * an isolated CPU; where it is running at that moment, on the CPU where it runs, after
 * it has returned.
 *
 * Context: any but NMI.
 *
 * Return: 1 if the timer was armed before, 0 if not; -EINVAL, unknown flags;
 * -ESHUTDOWN, after twheel_timer_shutdown().
 */
int twheel_timer_arm(struct twheel_timer *timer, u64 time_ns, u64 slack_ns,
		     unsigned int flags)
{
	return arm(timer, time_ns, slack_ns, flags, false);
}
EXPORT_SYMBOL_GPL(twheel_timer_arm);

/**
 * twheel_timer_modify() - give an armed timer another time
 * @timer: the timer.
 * @time_ns: as for twheel_timer_arm().
 * @slack_ns: as for twheel_timer_arm().
 * @flags: TWHEEL_TIMER_REL or TWHEEL_TIMER_ABS.
 *
 * A timer that is not armed stays so.
 *
 * Context: any but NMI.
 *
 * Return: 1 if the timer was armed and has the new time, 0 if it was not;
 * -EINVAL, unknown flags; -ESHUTDOWN, after twheel_timer_shutdown().
 */
int twheel_timer_modify(struct twheel_timer *timer, u64 time_ns, u64 slack_ns,
			unsigned int flags)
{
	return arm(timer, time_ns, slack_ns, flags, true);
}
EXPORT_SYMBOL_GPL(twheel_timer_modify);

/**
 * twheel_timer_cancel() - disarm a timer
 * @timer: the timer.
 *
 * The function may be running on another CPU, and may go on after this returns.
 *
 * Context: any but NMI.
 *
 * Return: true if it was armed: the function will not be called for that.
 */
bool twheel_timer_cancel(struct twheel_timer *timer)
{
	struct base_hold hold;
	bool armed;

	base_hold_first(&hold, &timer->node);
	armed = disarm(&hold, timer);
	base_release(&hold);
	return armed;
}
EXPORT_SYMBOL_GPL(twheel_timer_cancel);

/**
 * twheel_timer_postpone() - let an armed timer be called later, by a store
 * @timer: the timer.
 * @time_ns: when to call its function instead, absolute, as ktime_get_ns() counts;
 *	2^63 and more is never.
 *
 * For a timeout that is moved again and again and hardly ever comes.  The time is only
 * stored; when the timer comes out of its wheel, at the time that it was armed for or
 * was last found to be postponed to, it is looked at, and waits on until then, on the
 * wheel that it was on, with the slack that it was armed with, in whole ticks.  So its
 * function is called at the time that was stored last, unless that is before the one that
 * it waits for: an earlier time counts when that comes, and not before.  To bring it
 * forward, use twheel_timer_modify().
 *
 * Arming forgets what was stored before, and a timer that is not armed does not care.
 * Calls that cross each other, or with the function being called or the timer being
 * armed, take effect in some order: the function is then called for the older time, or
 * the timer waits for the one that it is armed for.  A function that has to know
 * compares the time of its owner's with the clock and arms its timer again.
 *
 * Context: any, also NMI, where the kernel has 64-bit atomics of its own; takes no lock.
 */
void twheel_timer_postpone(struct twheel_timer *timer, u64 time_ns)
{
	atomic64_set(&timer->postponed_ns, time_ns);
}
EXPORT_SYMBOL_GPL(twheel_timer_postpone);

/* Disarm, and wait until the function has returned; then it is in @state. */
static bool cancel_sync(struct twheel_timer *timer, enum timer_state state)
{
	bool armed = false;

	might_sleep_if(IS_ENABLED(CONFIG_PREEMPT_RT));
	WARN_ON_ONCE(in_hardirq() || in_serving_softirq());
	timer_debug_wait(timer);

	for (;;) {
		struct base_hold hold;
		struct base *base;
		bool runs;

		base_hold_first(&hold, &timer->node);
		base = hold.base;
		if (state == TIMER_SHUT_DOWN)
			timer->node.state = TIMER_SHUT_DOWN;
		armed |= disarm(&hold, timer);
		runs = function_runs(&hold, timer);
		base_release(&hold);
		if (!runs)
			break;
		base_wait_for_function(base);
	}
	if (state == TIMER_SHUT_DOWN)
		timer_debug_free(timer);
	return armed;
}

/**
 * twheel_timer_cancel_sync() - disarm a timer and wait for its function
 * @timer: the timer.
 *
 * When it returns, the timer is not armed and its function is running nowhere,
 * also if the function arms its timer; unless somebody else arms it again.
 *
 * Context: a task, with softirqs on.  Not from the timer's own function, and not
 * with a lock held that the function takes.
 *
 * Return: true if it was armed.
 */
bool twheel_timer_cancel_sync(struct twheel_timer *timer)
{
	return cancel_sync(timer, TIMER_USABLE);
}
EXPORT_SYMBOL_GPL(twheel_timer_cancel_sync);

/**
 * twheel_timer_shutdown() - disarm a timer for good and wait for its function
 * @timer: the timer.
 *
 * As twheel_timer_cancel_sync(), but from then on it refuses to be armed, until
 * twheel_timer_setup().  Then its memory can be freed.
 *
 * Context: as twheel_timer_cancel_sync().
 *
 * Return: true if it was armed.
 */
bool twheel_timer_shutdown(struct twheel_timer *timer)
{
	return cancel_sync(timer, TIMER_SHUT_DOWN);
}
EXPORT_SYMBOL_GPL(twheel_timer_shutdown);

/**
 * twheel_timer_pending() - is a timer armed?
 * @timer: the timer.
 *
 * Context: any but NMI.
 *
 * Return: true if its function is going to be called.
 */
bool twheel_timer_pending(struct twheel_timer *timer)
{
	struct base_hold hold;
	bool armed;

	base_hold_first(&hold, &timer->node);
	armed = wheel_queued(&timer->node.wheel);
	base_release(&hold);
	return armed;
}
EXPORT_SYMBOL_GPL(twheel_timer_pending);
