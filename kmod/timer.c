// SPDX-License-Identifier: GPL-2.0
/*
 * Timers for other kernel modules: twheel.h, on top of the bases.
 *
 * A timer is idle, or armed (on a wheel, or out of it and about to be called).  In both
 * states its function may be running: base->current_timer.  The lock of the base that the
 * timer names guards all its fields but @postponed_ns, the time that it is postponed to.
 * That is stored without a lock, read when the timer comes out of its wheel, and reset
 * when the timer is armed.
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

/* The owner of an armed timer sets it up again: cancel it. */
static bool fix_init(void *timer, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	twheel_timer_cancel(timer);
	debug_object_init(timer, &twheel_timer_debug);
	return true;
}

/* The memory of an armed timer is freed: change its state, or this is called again. */
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
 * @timer: as for twheel_timer_setup(), which modules use.
 * @function: as for twheel_timer_setup().
 * @name: its name for lockdep.
 * @key: its class for lockdep.
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
		.base = base_get(cpu, base_role(BASE_TIMERS, BASE_MONOTONIC))->number,
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

/* Take the timer off its wheel; true if it was armed. */
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
	/* Its slack in ticks, for timer_waits_on(). */
	timer->node.tag = min_t(u64, base_tick_at(slack_ns), U32_MAX);
	if (atomic64_read(&timer->postponed_ns))
		atomic64_set(&timer->postponed_ns, 0);
	if (!(flags & TWHEEL_TIMER_ABS) || !base_sees_to(hold, due_tick)) {
		now_ns = hold_now_ns(hold);
		if (!(flags & TWHEEL_TIMER_ABS) &&
		    check_add_overflow(time_ns, now_ns, &time_ns))
			time_ns = U64_MAX;
		/* The tick that has begun would be too early: see twheel_timer_arm(). */
		time_ns = max(time_ns, base_tick_ns(base_tick_at(now_ns) + 1));
		due_tick = base_due_tick(time_ns, slack_ns);
	}
	base_arm(hold, &timer->node, due_tick, time_ns);
}

/* Arm the timer; with @only_pending only if it is armed already. */
static __always_inline int arm(struct twheel_timer *timer, u64 time_ns, u64 slack_ns,
			       unsigned int flags, bool only_pending)
{
	struct base_hold hold;
	int ret;

	if (flags & ~TWHEEL_TIMER_ABS)
		return -EINVAL;

	base_hold_first(&hold, &timer->node);
	if (timer->node.state == TIMER_SHUT_DOWN) {
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
 * @time_ns: when to call its function, in nanoseconds, relative or absolute.  If the
 *	time has passed, the next run of the CPU's wheel calls it, at the next tick at the
 *	latest: it must not be called under its caller's locks.  2^63 and more is never.
 * @slack_ns: how much later it may be called, so that it shares an interrupt
 *	with its neighbours; 0: at the tick.
 * @flags: TWHEEL_TIMER_REL or TWHEEL_TIMER_ABS.
 *
 * The function is called at most once for each time that the timer is armed, and not at
 * all if it is cancelled or armed again before.  It is called on the CPU that armed the
 * timer, or on the one that serves an isolated CPU.  If the function is running when the
 * timer is armed, it is called on the same CPU again, after it has returned.
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
 * A timer that is not armed is not changed.
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
 * The function may be running on another CPU, also after this returns.
 *
 * Context: any but NMI.
 *
 * Return: true if it was armed: the function will not be called for that time.
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
 * twheel_timer_postpone() - move the time of an armed timer to a later one, by a store
 * @timer: the timer.
 * @time_ns: when to call its function instead: absolute, as ktime_get_ns() counts;
 *	2^63 and more is never.
 *
 * For a timeout that is moved again and again and hardly ever expires.  The time is only
 * stored.  When the timer comes out of its wheel, the stored time is read; if it is in the
 * future, the timer goes back to the same wheel for that time, with the slack that it was
 * armed with, in whole ticks.  So the function is called at the time that was stored last.
 * But a stored time that is earlier than the one that the timer waits for has no effect
 * before the timer comes out.  To make a timer earlier, use twheel_timer_modify().
 *
 * Arming resets the stored time.  Postponing a timer that is not armed has no effect.
 * When calls are made at the same time as each other, as the call of the function, or as
 * the arming of the timer, they take effect in some order: then the function is called
 * for the older time, or the timer waits for the time that it is armed for.  A function
 * that needs to know compares a time of its owner's with the clock, and arms its timer
 * again.
 *
 * Context: any, also NMI; takes no lock.
 */
void twheel_timer_postpone(struct twheel_timer *timer, u64 time_ns)
{
	atomic64_set(&timer->postponed_ns, time_ns);
}
EXPORT_SYMBOL_GPL(twheel_timer_postpone);

/* Disarm the timer and wait until its function has returned; then its state is @state. */
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
 * When it returns, the timer is not armed and its function is running on no CPU, also if
 * the function arms its own timer.  Other callers must not arm it at the same time.
 *
 * Context: a task, with softirqs enabled.  Not from the timer's own function, and not
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
 * As twheel_timer_cancel_sync(); but afterwards arming the timer fails, until
 * twheel_timer_setup().  Its memory can be freed.
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
 * Return: true if its function will be called.
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
