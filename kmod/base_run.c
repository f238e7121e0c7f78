// SPDX-License-Identifier: GPL-2.0
/*
 * Runs: handling the nodes of a base that are due.
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
 * In hard interrupt context
 * -------------------------
 * Most events are alone at their tick, and a softirq would be the larger part of what they
 * cost.  So for a tick that is far enough ahead, the base of plain events sets @lone in
 * place of @hrtimer.  base_lone() handles what is due there, if no run and no pause is
 * under way: it touches LONE_BATCH nodes at most, in one hold, and wakes those who wait for
 * them, if these are not many.  If something is left, the tasklet @rest runs the base as
 * @hrtimer would.  (An hrtimer that is set into the past would cost another interrupt.)
 *
 *	@hrtimer ------------------------> base_run()
 *	@lone ----> base_lone() --@rest--> base_run()
 *
 * What base_lone() takes belongs to no budget: it is short, and comes LONE_AHEAD_NS after
 * the last time that the hrtimer was set at the earliest.
 *
 * Memory
 * ------
 * An event's memory is not touched after event_ops->due_end(): until then the ready lock
 * of its context is held, which keeps the event from being freed.  A timer's memory is
 * not touched after its function was called.  event_ops->wake() gets the wake list with
 * no spinlock held.
 *
 * While a timer's function is running, the timer can be armed only on the base that
 * calls it, so the function never runs twice at the same time.  That base looks for its
 * next tick when the run ends.
 */
#include <linux/interrupt.h>

#include "base_hold.h"
#include "base_run.h"
#include "budget.h"
#include "compat.h"
#include "timer_debug.h"

/* How many nodes are touched in hard interrupt context. */
#define LONE_BATCH	8

/*
 * The longest &struct base_lag.length_ns: longer than looks at all events of a user take.
 * A machine may have been stopped for longer.
 */
#define LAG_MAX_NS	(10 * (u64)NSEC_PER_SEC)

static const struct base_ops *event_ops;

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

static bool has_work(struct base_hold *hold)
{
	u64 now_ns = hold_now_ns(hold);

	return base_next_work(hold->base, now_ns) <= base_tick_at(now_ns);
}

static void take_off(struct base *base, struct twheel_node *node)
{
	lockdep_assert_held(&base->lock);
	wheels_del(&base->wheels, &node->wheel);
}

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

/* Are nodes of that role due on this CPU?  @now_ns: CLOCK_MONOTONIC. */
static bool is_role_due(enum base_kind kind, enum base_clock clock, u64 now_ns)
{
	const struct base *base = base_get(smp_processor_id(), base_role(kind, clock));

	if (!base)
		return false;
	if (clock != BASE_MONOTONIC)
		now_ns = base_clock_ns(clock);
	return READ_ONCE(base->programmed_tick) <= base_tick_at(now_ns);
}

/* Are nodes of that kind due on this CPU, and is there no pause for them? */
static bool is_kind_due(enum base_kind kind, u64 now_ns)
{
	enum base_clock clock;

	if (budget_has_pause(kind))
		return false;
	for (clock = 0; clock < BASE_CLOCKS; clock++)
		if (is_role_due(kind, clock, now_ns))
			return true;
	return false;
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
 * Those who wait for events are woken before that, for two reasons.  Waking them may take long,
 * and counts for the run's time.  And an hrtimer that is started during its callback stays on
 * the CPU of the callback: before another CPU is kicked to set it, this one must be about to
 * return from the callback.
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
		if (done && list_empty(&run->due.wake))
			break;
		base_release(hold);
		wake_all(run);
		local_irq_save(hold->flags);
		hold_enter(hold, base);
		used_up = is_used_up(run);
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
	base_start_resume(base);
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

/* What calls base_run(): @hrtimer, @resume, or @rest. */
enum run_cause { RUN_DUE, RUN_RESUMED, RUN_REST };

static void base_run(struct base *base, enum run_cause cause)
{
	struct base_run run = {};
	struct base_hold *hold = &run.hold;

	run.due.expired = &base->expired;
	INIT_LIST_HEAD(&run.due.wake);
	base_expiry_lock(base);
	local_irq_save(hold->flags);
	hold_enter(hold, base);
	list_splice_init(&base->late_wake, &run.due.wake);
	base->interrupts += cause != RUN_REST;
	if (cause == RUN_DUE && is_early(hold))
		wait_a_tick(base);
	else
		run_or_pause(&run);
	base_release(hold);
	base_expiry_unlock(base);
	wake_all(&run);
}

static enum hrtimer_restart base_interrupt(struct hrtimer *hrtimer)
{
	base_run(container_of(hrtimer, struct base, hrtimer), RUN_DUE);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart base_resume(struct hrtimer *hrtimer)
{
	base_run(container_of(hrtimer, struct base, resume), RUN_RESUMED);
	return HRTIMER_NORESTART;
}

static void base_run_rest(struct tasklet_struct *tasklet)
{
	base_run(container_of(tasklet, struct base, rest), RUN_REST);
}

/* Touch at most LONE_BATCH nodes.  Returns true if something is left for base_run(). */
static bool run_lone(struct base_run *run)
{
	struct base_hold *hold = &run->hold;
	struct base *base = hold->base;
	u64 expired = base->nr_expired;
	bool more;

	if (base->cpu != smp_processor_id() || !list_empty(&base->expired) ||
	    budget_pause_left_ns(base))
		return true;
	budget_end_pause(base);
	more = wheels_advance(&base->wheels, base_tick_at(hold_now_ns(hold)), LONE_BATCH,
			      &base->expired);
	expire_events(run);
	hold->touched = base->wheels.touched;
	hold->program = !more;
	trace_twheel_run(base, base->nr_expired - expired, 0, more);
	return more;
}

/* Wake those who wait for events.  If they are many, the rest is left to base_run(). */
static void wake_few(struct base *base, struct list_head *wake)
{
	if (list_empty(wake))
		return;
	event_ops->wake_few(wake);
	if (list_empty(wake))
		return;
	raw_spin_lock(&base->lock);
	list_splice_tail(wake, &base->late_wake);
	raw_spin_unlock(&base->lock);
	tasklet_hi_schedule(&base->rest);
}

static enum hrtimer_restart base_lone(struct hrtimer *hrtimer)
{
	struct base *base = container_of(hrtimer, struct base, lone);
	struct base_run run = {};
	bool more;

	run.due.expired = &base->expired;
	INIT_LIST_HEAD(&run.due.wake);
	hold_enter(&run.hold, base);
	base->interrupts++;
	/* A run that is under way sets an hrtimer when it ends. */
	more = !base->running && run_lone(&run);
	if (more)
		tasklet_hi_schedule(&base->rest);
	hold_leave(&run.hold);
	wake_few(base, &run.due.wake);
	return HRTIMER_NORESTART;
}

/* --- beginning and end ------------------------------------------------------ */

/**
 * base_run_init() - make the hrtimers of a base
 * @base: the base, which is being made.
 */
void base_run_init(struct base *base)
{
	clockid_t clock = base_clock_id(base->clock);

	base_expiry_init(base);
	twheel_hrtimer_setup(&base->hrtimer, base_interrupt, clock,
			     HRTIMER_MODE_ABS_PINNED_SOFT);
	twheel_hrtimer_setup(&base->lone, base_lone, clock, HRTIMER_MODE_ABS_PINNED);
	tasklet_setup(&base->rest, base_run_rest);
	twheel_hrtimer_setup(&base->resume, base_resume, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * base_run_stop() - wait for the last run
 * @base: a base on which nothing is armed, and nothing will be.
 *
 * Context: a task; sleeps.
 */
void base_run_stop(struct base *base)
{
	hrtimer_cancel(&base->hrtimer);
	hrtimer_cancel(&base->lone);
	tasklet_kill(&base->rest);
	hrtimer_cancel(&base->resume);
}
