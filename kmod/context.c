// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: the events of one open file, their ids, and the ready queue.
 *
 * The object model
 * ----------------
 * An open file has a context, a context has pages of events, and an event is a
 * slot of a page:
 *
 *             ADD      due, completed, clock set            read
 *   FREE  ----------->  ARMED  ----------->  READY  ----------->  FREE
 *                       |   ^                |   |
 *                CANCEL |   | MODIFY, or     |   | CANCEL
 *                       v   | read: periodic |   v
 *                     FREE  +----------------+  FREE, no record
 *
 * event.c keeps the pages and tells what an id is.  An event is on a wheel while it
 * is ARMED and in the ready queue while it is READY, in the same memory; expiry
 * allocates nothing and so can drop nothing.  Limits are applied by ADD.
 *
 * A periodic event that is READY is on no wheel.  How often it has expired since
 * is worked out when its record is read, which also arms it again, on its grid.
 *
 * An event that watches keys, or has a quorum, has an operation besides, which has
 * what few events need; so has a periodic one that is completed.  operation.c tells
 * how a signal finds the watches that it satisfies.  Whoever makes the event READY
 * leaves its watches alone, which are dead from then on: a signal that satisfies them
 * finds that the event is not ARMED.  They are freed then, or with the event, or when
 * it is armed again.
 *
 * Times
 * -----
 * Callers see the clock of the context, shifted as the time namespace is in which
 * the file was opened; bases see the host's.  What a caller asked for is kept as
 * he sees it and translated when the event is armed.
 *
 * A relative time on CLOCK_REALTIME goes by CLOCK_MONOTONIC, on a base of that
 * clock, so that it does not move when the clock is set.  EVENT_CANCEL_ON_SET is
 * about the offset of the two: an event that is due finds it changed, and so does
 * the sweep over all events, on the notice that the clock was set or when the next
 * such event is armed, whichever is first.
 *
 * Locking
 * -------
 * The mutex serialises all that a process does to a context: commands, records
 * being copied out, the setting up.  User memory is touched under it and under no
 * other lock.  Only its holder frees and adds events, so an event that he found
 * stays; and only he looks at keys, watches and operations.  Memory is got and freed
 * while no base is held, as PREEMPT_RT demands.  Expiry, in softirq context, does one
 * thing to an event: it makes an ARMED one READY, under the lock of the event's base
 * and the ready lock.  So
 *
 *   - the state ARMED can be relied upon only with the lock of the base held;
 *   - READY and FREE are final for everybody but the holder of the mutex.
 *
 * The ready queue has two parts, so that neither side waits for the other: expiry
 * adds to @ready under the ready lock, the reader moves all of it to the end of
 * @reading in one step, and copies out from there under the mutex alone.  A record
 * leaves @reading after it was copied out whole.
 *
 * Waking up happens with no lock held.  Who makes an event READY puts the context
 * on a wake list of his own, with a reference, unless it is on somebody's list
 * already, who then has not yet begun to wake, or is not readable yet and nobody
 * waits in ENTER.  Each waiter is asked whether what is there is enough for him.
 * Where the age of a record counts, a timer wakes; it may come for one that is
 * gone, and then finds the context not readable.  The age is that by the context's
 * clock: of records from before that was set, it may be off, by up to the delay.
 *
 * Lifetime: the file holds a reference; its last close takes the events off their
 * wheels, after which nothing finds the context any more, and frees the pages.  A
 * wake list may hold the context itself a little longer.
 */
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "context.h"

#define MAX_EVENTS_LIMIT	1073741824

unsigned int context_max_events = 1048576;

static int set_max_events(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 1, MAX_EVENTS_LIMIT);
}

static const struct kernel_param_ops max_events_ops = {
	.set = set_max_events,
	.get = param_get_uint,
};

module_param_cb(max_events, &max_events_ops, &context_max_events, 0444);
MODULE_PARM_DESC(max_events,
		 "Events a context may have: default and ceiling (default 1048576)");

/*
 * Give an event back that is on no wheel and in no queue.  events_trim() must
 * follow.
 */
static void batch_free(struct context_batch *batch, struct event *event)
{
	if (event_operation(event)) {
		base_release(&batch->hold);
		event_free_operation(batch->context, event);
	}
	event_free(batch->context, event);
}

/* How many slots are in use. */
static u64 context_used(const struct context *context)
{
	return context->added - context->finished - context->cancelled;
}

static void context_put(struct context *context)
{
	if (refcount_dec_and_test(&context->refs))
		kfree(context);
}

/* --- times ------------------------------------------------------------------ */

/**
 * context_host_ns() - a time that a caller gave, as the host counts
 * @context: the context.
 * @clock: the clock that it is on.
 * @ns: the time; 2^63 and more is never.
 */
u64 context_host_ns(const struct context *context, enum base_clock clock, u64 ns)
{
	s64 host_ns;

	if (ns >= BASE_NEVER_NS)
		return ns;
	if (check_sub_overflow((s64)ns, context->namespace_ns[clock], &host_ns))
		return BASE_NEVER_NS;
	return max_t(s64, host_ns, 0);
}

/* The reverse: a time of the host's as the caller sees it. */
static u64 seen_ns(const struct context *context, enum base_clock clock, u64 ns)
{
	return ns >= BASE_NEVER_NS ? ns : ns + context->namespace_ns[clock];
}

static u64 add_saturating(u64 a, u64 b)
{
	u64 sum;

	return check_add_overflow(a, b, &sum) ? U64_MAX : sum;
}

/* The clock that an event goes by. */
static enum base_clock event_clock(const struct event *event)
{
	return event->node.flags & EVENT_BY_MONOTONIC ?
	       BASE_MONOTONIC : page_of(event)->context->clock;
}

/* Is the event's due_ns on CLOCK_MONOTONIC though its context is not? */
static bool due_is_monotonic(const struct event *event)
{
	return event->node.flags & EVENT_BY_MONOTONIC && event_interval_ns(event);
}

/* When an event is due, as its caller sees it. */
static u64 event_due_seen_ns(const struct event *event)
{
	if (!due_is_monotonic(event) || event->due_ns >= BASE_NEVER_NS)
		return event->due_ns;
	return event->due_ns + clock_offset_ns();
}

/* When it is due on the clock that it goes by.  For periodic ones only. */
static u64 event_due_host_ns(const struct event *event)
{
	if (due_is_monotonic(event))
		return event->due_ns;
	return context_host_ns(page_of(event)->context, event_clock(event),
			       event->due_ns);
}

/* Why an event is READY. */
static u32 event_reason(const struct event *event)
{
	if (event->node.flags & EVENT_COMPLETED)
		return TWHEEL_COMPLETED;
	return event->node.flags & EVENT_CLOCK_SET ?
	       TWHEEL_CLOCK_SET : TWHEEL_EXPIRED;
}

/* How many expirations a record covers that is read now. */
static u64 event_count(const struct event *event)
{
	u64 now_ns;

	if (!event_interval_ns(event) || event_reason(event) != TWHEEL_EXPIRED)
		return 1;
	now_ns = base_clock_ns(event_clock(event));
	if (!due_is_monotonic(event))
		now_ns = seen_ns(page_of(event)->context, event_clock(event),
				 now_ns);
	/* The clock may have been set back. */
	if (now_ns <= event->due_ns)
		return 1;
	return 1 + div64_u64(now_ns - event->due_ns, event->interval_ns);
}

/* --- the ready queue -------------------------------------------------------- */

/**
 * twheel_context_readable() - is there enough to be read?
 * @context: the context.
 *
 * Enough is a number of records, or one of some age, or any if no more can come
 * before some are read.
 */
bool twheel_context_readable(const struct context *context)
{
	/* Pairs with set_nr_ready(): the first record comes with its time. */
	u64 nr = smp_load_acquire(&context->nr_ready);

	return nr && (nr >= context->wake_count || READ_ONCE(context->full) ||
		      ktime_get_ns() >= READ_ONCE(context->wake_at_ns));
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_readable);

/* The oldest record makes the context readable by its age @after_ns from now. */
static void set_wake_time(struct context *context, u64 after_ns)
{
	lockdep_assert_held(&context->ready_lock);
	if (context->wake_count < 2)
		return;
	WRITE_ONCE(context->wake_at_ns,
		   add_saturating(ktime_get_ns(), after_ns));
	if (context->wake_at_ns < BASE_NEVER_NS)
		hrtimer_start(&context->wake_timer,
			      ns_to_ktime(context->wake_at_ns),
			      HRTIMER_MODE_ABS_SOFT);
}

/* Change @nr_ready, after what of the oldest record goes with it. */
static void set_nr_ready(struct context *context, u64 nr)
{
	lockdep_assert_held(&context->ready_lock);
	/* Pairs with twheel_context_readable(). */
	smp_store_release(&context->nr_ready, nr);
}

/* Put the context on a wake list, if there may be somebody to wake. */
static void want_wake(struct context *context, struct list_head *wake)
{
	lockdep_assert_held(&context->ready_lock);
	if (context->waking ||
	    !(context->nr_waiting || twheel_context_readable(context)))
		return;
	context->waking = true;
	refcount_inc(&context->refs);
	list_add_tail(&context->wake_entry, wake);
}

/*
 * Make an event READY, at a time of the clock that it goes by.  Its base is held,
 * and it is on no wheel.
 */
static void event_ready(struct event *event, u64 now_ns, struct list_head *wake)
{
	struct context *context = page_of(event)->context;

	if (event->node.flags & EVENT_BY_MONOTONIC)
		now_ns = ktime_get_real_ns();

	raw_spin_lock(&context->ready_lock);
	event_set_state(event, EVENT_READY);
	event->fired_ns = now_ns;
	list_add_tail(&event->ready, &context->ready);
	if (!context->nr_ready)
		set_wake_time(context, context->wake_delay_ns);
	set_nr_ready(context, context->nr_ready + 1);
	want_wake(context, wake);
	raw_spin_unlock(&context->ready_lock);
}

/* Move all that is READY to where the mutex alone guards it; return how many. */
static u64 ready_collect(struct context *context)
{
	u64 nr;

	raw_spin_lock_irq(&context->ready_lock);
	list_splice_tail_init(&context->ready, &context->reading);
	nr = context->nr_ready;
	raw_spin_unlock_irq(&context->ready_lock);
	return nr;
}

/* How long until the age of the oldest record makes the context readable. */
static u64 time_to_wake(const struct context *context)
{
	const struct event *oldest =
		list_first_entry(&context->reading, struct event, ready);
	u64 now_ns = base_clock_ns(context->clock);
	u64 age_ns = now_ns > oldest->fired_ns ? now_ns - oldest->fired_ns : 0;

	return context->wake_delay_ns - min(age_ns, context->wake_delay_ns);
}

/* Account for @nr events that are not READY any more, and for who is next. */
static void ready_left(struct context *context, unsigned int nr)
{
	u64 after_ns = context->wake_delay_ns;

	lockdep_assert_held(&context->mutex);
	if (context->wake_count > 1) {
		ready_collect(context);
		if (!list_empty(&context->reading))
			after_ns = time_to_wake(context);
	}
	raw_spin_lock_irq(&context->ready_lock);
	if (context->nr_ready > nr)
		set_wake_time(context, after_ns);
	set_nr_ready(context, context->nr_ready - nr);
	raw_spin_unlock_irq(&context->ready_lock);
}

/* Take a READY event out of the ready queue, from whichever part it is in. */
static void event_unready(struct event *event)
{
	struct context *context = page_of(event)->context;

	lockdep_assert_held(&context->mutex);
	raw_spin_lock_irq(&context->ready_lock);
	list_del(&event->ready);
	raw_spin_unlock_irq(&context->ready_lock);
	ready_left(context, 1);
}

/* Was the clock set since the context's events that care were armed? */
static bool clock_was_set(const struct context *context)
{
	return clock_offset_ns() != READ_ONCE(context->offset_ns);
}

static void context_due(struct twheel_node *node, u64 now_ns,
			struct list_head *wake)
{
	struct event *event = container_of(node, struct event, node);

	if (unlikely(node->flags & EVENT_CANCEL_ON_SET) &&
	    clock_was_set(page_of(event)->context))
		node->flags |= EVENT_CLOCK_SET;
	event_ready(event, now_ns, wake);
}

static void wake_waiters(struct context *context)
{
	if (wq_has_sleeper(&context->readers))
		wake_up_interruptible(&context->readers);
	if (wq_has_sleeper(&context->pollers) && twheel_context_readable(context))
		wake_up_interruptible_poll(&context->pollers,
					   EPOLLIN | EPOLLRDNORM);
}

static void context_wake(struct list_head *wake)
{
	struct context *context, *next;
	unsigned long flags;

	list_for_each_entry_safe(context, next, wake, wake_entry) {
		raw_spin_lock_irqsave(&context->ready_lock, flags);
		list_del(&context->wake_entry);
		context->waking = false;
		raw_spin_unlock_irqrestore(&context->ready_lock, flags);

		wake_waiters(context);
		context_put(context);
	}
}

const struct base_ops context_ops = {
	.due = context_due,
	.wake = context_wake,
};

/* The age of a record makes the context readable, unless it was read already. */
static enum hrtimer_restart wake_time_came(struct hrtimer *timer)
{
	wake_waiters(container_of(timer, struct context, wake_timer));
	return HRTIMER_NORESTART;
}

/* --- a context's beginning and end ------------------------------------------ */

/**
 * twheel_context_create() - make the context of a file that is being opened
 *
 * Return: the context, with one reference, or NULL for want of memory.
 */
struct context *twheel_context_create(void)
{
	struct context *context = kzalloc(sizeof(*context), GFP_KERNEL_ACCOUNT);
	unsigned int clock;

	if (!context)
		return NULL;
	context->account = account_open();
	if (IS_ERR(context->account)) {
		kfree(context);
		return NULL;
	}
	mutex_init(&context->mutex);
	context->clock = BASE_MONOTONIC;
	context->cpu = BASE_ANY_CPU;
	for (clock = 0; clock < BASE_CLOCKS; clock++)
		context->namespace_ns[clock] = clock_namespace_ns(clock);
	context->max_events = context_max_events;
	context->wake_count = 1;
	xa_init_flags(&context->pages, XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&context->partial);
	INIT_LIST_HEAD(&context->reading);
	raw_spin_lock_init(&context->ready_lock);
	INIT_LIST_HEAD(&context->ready);
	twheel_hrtimer_setup(&context->wake_timer, wake_time_came,
			     CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	init_waitqueue_head(&context->readers);
	init_waitqueue_head(&context->pollers);
	refcount_set(&context->refs, 1);
	return context;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_create);

static void page_disarm(struct event_page *page)
{
	struct base_hold hold = {};
	unsigned int i;

	for (i = 0; i < EVENT_PAGE_EVENTS; i++) {
		struct event *event = &page->events[i];

		if (event_state(event) != EVENT_ARMED)
			continue;
		base_hold_node(&hold, &event->node);
		if (event_state(event) == EVENT_ARMED)
			base_disarm(&hold, &event->node);
	}
	base_release(&hold);
}

/**
 * twheel_context_destroy() - end a context at the last close of its file
 * @context: the context, which nobody uses any more.
 *
 * Takes its events off their wheels and frees everything.
 *
 * Context: a task; sleeps.
 */
void twheel_context_destroy(struct context *context)
{
	struct event_page *page;
	unsigned long number;

	if (context->has_notice)
		clock_notice_end(&context->notice);
	/* An event that is due meanwhile gets into the ready queue: all first. */
	xa_for_each(&context->pages, number, page) {
		if (!xa_is_value(page))
			page_disarm(page);
		cond_resched();
	}
	/* Whoever made the last one READY has let go of it. */
	raw_spin_lock_irq(&context->ready_lock);
	raw_spin_unlock_irq(&context->ready_lock);
	hrtimer_cancel(&context->wake_timer);

	events_destroy(context);
	account_close(context->account);
	mutex_destroy(&context->mutex);
	context_put(context);
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_destroy);

/*
 * Let go of the mutex.  While it was held, the notice that the clock was set may
 * have come and gone.
 */
static void context_unlock(struct context *context)
{
	mutex_unlock(&context->mutex);
	/* Pairs with the trylock in context_clock_set(). */
	smp_mb();
	/* Pairs with follow_clock(). */
	if (smp_load_acquire(&context->has_notice) && clock_was_set(context))
		clock_notice_give(&context->notice);
}

static enum base_clock clock_of_id(clockid_t id)
{
	switch (id) {
	case CLOCK_REALTIME:
		return BASE_REALTIME;
	case CLOCK_BOOTTIME:
		return BASE_BOOTTIME;
	default:
		return BASE_MONOTONIC;
	}
}

/* May the caller bind a context to that CPU? */
static int check_cpu(unsigned int cpu)
{
	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		return -EINVAL;
	if (!cpumask_test_cpu(cpu, current->cpus_ptr) && !capable(CAP_SYS_NICE))
		return -EPERM;
	return 0;
}

/* Take over what a context is to be like. */
static void apply_config(struct context *context,
			 const struct twheel_config *config)
{
	bool bound = config->flags & TWHEEL_CONFIG_CPU;

	context->clock = clock_of_id(config->clockid);
	context->cpu = bound ? config->cpu : BASE_ANY_CPU;
	context->offline_count = bound ? base_offline_count(config->cpu) : 0;
	context->max_events = config->max_events ?: context_max_events;
	context->slack_ns = config->slack_ns;
	context->wake_count = config->wake_count ?: 1;
	context->wake_delay_ns = config->wake_delay_ns;
}

/**
 * twheel_context_configure() - set a context up that had no event yet
 * @context: the context.
 * @config: what is asked for, well-formed.
 *
 * Return: 0; -EBUSY, it had an event; -ENOSPC, max_events is above the ceiling;
 * -EINVAL, there is no such CPU; -EPERM, the caller may not use it; -ENOMEM;
 * -ERESTARTSYS, a signal.
 */
int twheel_context_configure(struct context *context, const struct twheel_config *config)
{
	int ret = 0;

	if (config->max_events > context_max_events)
		return -ENOSPC;
	if (config->flags & TWHEEL_CONFIG_CPU)
		ret = check_cpu(config->cpu);
	if (!ret)
		ret = base_use(clock_of_id(config->clockid));
	if (ret)
		return ret;

	if (mutex_lock_interruptible(&context->mutex))
		return -ERESTARTSYS;
	if (context->added)
		ret = -EBUSY;
	else
		apply_config(context, config);
	context_unlock(context);
	return ret;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_configure);

/* --- commands --------------------------------------------------------------- */

static int context_lock(struct context *context, unsigned int how)
{
	if (how & CONTEXT_NOWAIT)
		return mutex_trylock(&context->mutex) ? 0 : -EAGAIN;
	return mutex_lock_interruptible(&context->mutex) ? -ERESTARTSYS : 0;
}

static void batch_init(struct context_batch *batch, struct context *context)
{
	*batch = (struct context_batch){ .context = context };
	INIT_LIST_HEAD(&batch->wake);
}

/**
 * twheel_context_begin() - begin a series of commands
 * @context: the context.
 * @batch: out: the batch, to be ended by twheel_context_end().
 * @how: with CONTEXT_NOWAIT, it does not wait for the mutex, which it takes.
 *
 * Return: 0; -ERESTARTSYS, a signal; -EAGAIN, it is taken and not to be waited for.
 */
int twheel_context_begin(struct context *context, struct context_batch *batch,
			 unsigned int how)
{
	int ret = context_lock(context, how);

	if (!ret)
		batch_init(batch, context);
	return ret;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_begin);

/* A context that becomes full becomes readable, if there is a record. */
static void batch_note_full(struct context_batch *batch)
{
	struct context *context = batch->context;
	bool full = context_used(context) >= context->max_events;

	if (full == context->full)
		return;
	WRITE_ONCE(context->full, full);
	if (!full || context->wake_count < 2)
		return;
	raw_spin_lock_irq(&context->ready_lock);
	want_wake(context, &batch->wake);
	raw_spin_unlock_irq(&context->ready_lock);
}

/**
 * twheel_context_end() - end a series of commands
 * @batch: the batch.
 */
void twheel_context_end(struct context_batch *batch)
{
	base_release(&batch->hold);
	batch_note_full(batch);
	events_trim(batch->context);
	context_unlock(batch->context);
	context_wake(&batch->wake);
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_end);

/* Make an event READY that is on no wheel.  Some base of its clock is held. */
static void event_ready_here(struct context_batch *batch, struct event *event)
{
	struct base_hold *hold = &batch->hold;

	WRITE_ONCE(event->node.base, hold->base->number);
	event_ready(event, hold->now_ns, &batch->wake);
}

/*
 * Arm an event that is on no wheel and in no queue, for a time of the clock that
 * it goes by; what is past is READY.  The base that it goes to is held.
 */
static void event_place(struct context_batch *batch, struct event *event,
			u64 due_ns)
{
	struct base_hold *hold = &batch->hold;

	if (due_ns <= hold->now_ns) {
		event_ready_here(batch, event);
	} else {
		event_set_state(event, EVENT_ARMED);
		base_arm(hold, &event->node, due_ns, event->slack_ns);
	}
}

/* When an event is due that is armed now: as the caller sees it. */
static u64 relative_seen_ns(const struct context *context,
			    const struct event *event, u64 due_ns)
{
	if (due_ns >= BASE_NEVER_NS || due_is_monotonic(event))
		return due_ns;
	if (event->node.flags & EVENT_BY_MONOTONIC)
		return due_ns + clock_offset_ns();
	return seen_ns(context, context->clock, due_ns);
}

/* Arm an event that is on no wheel and in no queue, as an ADD or MODIFY asks. */
static void event_arm(struct context_batch *batch, struct event *event,
		      const struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	bool absolute = cmd->flags & TWHEEL_ABS;
	u64 due_ns;

	if (!event_operation(event))
		event->interval_ns = cmd->interval_ns;
	event->slack_ns = max(cmd->slack_ns, context->slack_ns);
	event->node.flags &= EVENT_OPERATION;
	event->node.flags |= NODE_EVENT;
	if (cmd->flags & TWHEEL_CANCEL_ON_SET)
		event->node.flags |= EVENT_CANCEL_ON_SET;
	if (!absolute && context->clock == BASE_REALTIME)
		event->node.flags |= EVENT_BY_MONOTONIC;

	base_hold_cpu(&batch->hold, event_clock(event), context->cpu);
	if (absolute) {
		due_ns = context_host_ns(context, context->clock, cmd->time_ns);
		event->due_ns = cmd->time_ns;
	} else {
		due_ns = add_saturating(batch->hold.now_ns, cmd->time_ns);
		event->due_ns = relative_seen_ns(context, event, due_ns);
	}
	event_place(batch, event, due_ns);
}

/* Take an event, whose base is held, off its wheel or out of the ready queue. */
static void event_stop_held(struct context_batch *batch, struct event *event)
{
	if (event_state(event) == EVENT_ARMED) {
		base_disarm(&batch->hold, &event->node);
	} else {
		base_release(&batch->hold);
		event_unready(event);
	}
}

static void event_stop(struct context_batch *batch, struct event *event)
{
	base_hold_node(&batch->hold, &event->node);
	event_stop_held(batch, event);
}

/* The clock was set: end an event that is to end then. */
static void event_clock_set(struct context_batch *batch, struct event *event)
{
	struct base_hold *hold = &batch->hold;

	base_hold_node(hold, &event->node);
	if (event_state(event) == EVENT_ARMED) {
		base_disarm(hold, &event->node);
		event->node.flags |= EVENT_CLOCK_SET;
		event_ready(event, hold->now_ns, &batch->wake);
	} else {
		event->node.flags |= EVENT_MISSED_SET;
	}
}

static void page_clock_set(struct context_batch *batch, struct event_page *page)
{
	unsigned int i;

	for (i = 0; i < EVENT_PAGE_EVENTS; i++) {
		struct event *event = &page->events[i];

		if (event_state(event) != EVENT_FREE &&
		    event->node.flags & EVENT_CANCEL_ON_SET)
			event_clock_set(batch, event);
	}
	base_release(&batch->hold);
}

/* If the clock was set, end all that were armed before and are to end then. */
static void sweep_clock_set(struct context_batch *batch)
{
	struct context *context = batch->context;
	s64 offset_ns = clock_offset_ns();
	struct event_page *page;
	unsigned long number;

	if (offset_ns == context->offset_ns)
		return;
	base_release(&batch->hold);
	xa_for_each(&context->pages, number, page) {
		if (!xa_is_value(page))
			page_clock_set(batch, page);
		cond_resched();
	}
	/* What is due until here still finds that the clock was set. */
	WRITE_ONCE(context->offset_ns, offset_ns);
}

/* A mutex that somebody holds is not waited for: context_unlock() looks again. */
static void context_clock_set(struct work_struct *work)
{
	struct context *context = container_of(work, struct context, notice.work);
	struct context_batch batch;

	if (!mutex_trylock(&context->mutex))
		return;
	batch_init(&batch, context);
	sweep_clock_set(&batch);
	twheel_context_end(&batch);
}

/* Before an event is armed that is to end when the clock is set. */
static void follow_clock(struct context_batch *batch)
{
	struct context *context = batch->context;

	if (context->has_notice) {
		sweep_clock_set(batch);
		return;
	}
	base_release(&batch->hold);
	clock_notice_begin(&context->notice, context_clock_set);
	WRITE_ONCE(context->offset_ns, clock_offset_ns());
	/* Pairs with context_unlock(): the notice is complete. */
	smp_store_release(&context->has_notice, true);
}

/* What an ADD or MODIFY asks for that depends on the context's clock. */
static int prepare_arm(struct context_batch *batch, const struct twheel_cmd *cmd)
{
	if (!(cmd->flags & TWHEEL_CANCEL_ON_SET))
		return 0;
	if (!(cmd->flags & TWHEEL_ABS) || batch->context->clock != BASE_REALTIME)
		return -EINVAL;
	follow_clock(batch);
	return 0;
}

/**
 * context_add() - arm a new event
 * @batch: the batch.
 * @cmd: a well-formed ADD; its id is written.
 *
 * Return: 0; -EINVAL, TWHEEL_CANCEL_ON_SET is for absolute times on
 * CLOCK_REALTIME; -ENOSPC, the context or its user is full; -ENOMEM.
 */
int context_add(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	struct operation *operation = NULL;
	struct event *event;
	int ret = prepare_arm(batch, cmd);

	if (ret)
		return ret;
	if (context_used(context) >= context->max_events)
		return -ENOSPC;
	if (list_empty(&context->partial)) {
		base_release(&batch->hold);
		ret = events_grow(context);
		if (ret)
			return ret;
	}
	if (cmd->quorum > 1) {
		base_release(&batch->hold);
		operation = operation_create(cmd->quorum, 0);
		if (!operation)
			return -ENOMEM;
	}

	event = event_alloc(context);
	if (operation)
		event_set_operation(event, operation);
	event->data = cmd->data;
	cmd->id = event_id(event);
	context->added++;
	event_arm(batch, event, cmd);
	return 0;
}

/**
 * context_undo_add() - undo an ADD whose id the caller could not be told
 * @batch: the batch that it was in.
 * @id: the id.
 *
 * The caller may have guessed it and cancelled the event in the same batch.
 */
void context_undo_add(struct context_batch *batch, u64 id)
{
	struct context *context = batch->context;
	struct event *event = event_find(context, id);

	if (!event)
		return;
	event_stop(batch, event);
	if (event->node.flags & EVENT_COMPLETED)
		context->completed--;
	batch_free(batch, event);
	context->added--;
}

/*
 * An operation that had expired is to wait again: for its time, and for what it
 * will watch from now on.
 */
static void event_revive(struct context_batch *batch, struct event *event)
{
	struct operation *operation = event->operation;

	base_release(&batch->hold);
	if (operation->quorum == 1) {
		event_free_operation(batch->context, event);
		return;
	}
	event_free_watches(batch->context, event);
	operation->satisfied = 0;
}

/* Does an event, whose base is held, watch keys, or is it going to? */
static bool is_waiting(const struct event *event)
{
	const struct operation *operation = event_operation(event);

	if (!operation)
		return false;
	return operation->quorum > 1 ||
	       (event_state(event) == EVENT_ARMED && operation->watcher.nr_watches);
}

/**
 * context_modify() - give an event another time
 * @batch: the batch.
 * @cmd: a well-formed MODIFY.
 *
 * The record of a READY event that expired is suppressed.  An ARMED operation goes
 * on with its watches, one that expired begins anew without.
 *
 * Return: 0; -EINVAL, as for context_add(), or an operation cannot be periodic;
 * -ENOENT, no such event; -EALREADY, it was completed or ended by the clock being
 * set.
 */
int context_modify(struct context_batch *batch, struct twheel_cmd *cmd)
{
	int ret = prepare_arm(batch, cmd);
	struct event *event;
	bool expired;

	if (ret)
		return ret;
	event = event_find(batch->context, cmd->id);
	if (!event)
		return -ENOENT;
	base_hold_node(&batch->hold, &event->node);
	if (event->node.flags & (EVENT_CLOCK_SET | EVENT_COMPLETED))
		return -EALREADY;
	if (cmd->interval_ns && is_waiting(event))
		return -EINVAL;
	expired = event_state(event) == EVENT_READY;
	event_stop_held(batch, event);
	if (expired && event_operation(event))
		event_revive(batch, event);
	if (cmd->flags & TWHEEL_SET_DATA)
		event->data = cmd->data;
	event_arm(batch, event, cmd);
	return 0;
}

/**
 * context_cancel() - end an event without a record
 * @batch: the batch.
 * @cmd: a well-formed CANCEL.
 *
 * Return: 0, and no record of it will be read; -ENOENT, no such event.
 */
int context_cancel(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	struct event *event = event_find(context, cmd->id);

	if (!event)
		return -ENOENT;
	event_stop(batch, event);
	batch_free(batch, event);
	context->cancelled++;
	return 0;
}

/**
 * context_query() - look at an event
 * @batch: the batch.
 * @cmd: a well-formed QUERY; its times are written.
 *
 * Return: TWHEEL_ARMED or TWHEEL_READY; -ENOENT, no such event.
 */
int context_query(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct event *event = event_find(batch->context, cmd->id);

	if (!event)
		return -ENOENT;
	cmd->time_ns = event_due_seen_ns(event);
	cmd->interval_ns = event_interval_ns(event);
	cmd->slack_ns = event->slack_ns;
	return event_state(event);
}

/* --- commands of operations ------------------------------------------------- */

/* Hold the base of an event if it is ARMED.  Returns 0 or -EALREADY. */
static int event_hold_armed(struct context_batch *batch, struct event *event)
{
	base_hold_node(&batch->hold, &event->node);
	return event_state(event) == EVENT_ARMED ? 0 : -EALREADY;
}

/*
 * See to it that an ARMED event has an operation, and hold its base.
 *
 * Returns 0; -EALREADY, it is READY; -ENOMEM.  Then no base is held.
 */
static int event_make_operation(struct context_batch *batch, struct event *event)
{
	struct operation *operation = NULL;
	int ret;

	if (!event_operation(event)) {
		base_release(&batch->hold);
		operation = operation_create(1, event->interval_ns);
		if (!operation)
			return -ENOMEM;
	}
	ret = event_hold_armed(batch, event);
	if (ret) {
		base_release(&batch->hold);
		operation_free(operation);
	} else if (operation) {
		event_set_operation(event, operation);
	}
	return ret;
}

/**
 * context_watch() - let signals on a key complete an event
 * @batch: the batch.
 * @cmd: a well-formed WATCH.
 *
 * Return: 0; -ENOENT, no such event, or the ADD that it goes with failed; -EINVAL,
 * it is periodic; -EALREADY, it is READY; -ENOSPC, it has TWHEEL_MAX_WATCHES, or
 * the user is full; -ENOMEM.
 */
int context_watch(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	struct event *event = event_find(context, cmd->id ?: batch->last_add);
	struct operation *operation;
	struct watch *watch;
	int ret;

	if (!event)
		return -ENOENT;
	if (event_interval_ns(event))
		return -EINVAL;
	if (event_state(event) == EVENT_READY)
		return -EALREADY;
	operation = event_operation(event);
	if (operation && operation->watcher.nr_watches == TWHEEL_MAX_WATCHES)
		return -ENOSPC;

	base_release(&batch->hold);
	watch = event_new_watch(context, cmd->key);
	if (IS_ERR(watch))
		return PTR_ERR(watch);
	ret = event_make_operation(batch, event);
	base_release(&batch->hold);
	if (ret)
		event_free_watch(context, watch);
	else
		watch_link(watch, &event->operation->watcher,
			   cmd->flags & TWHEEL_LEVEL ? WATCH_LEVEL : WATCH_SUM,
			   cmd->value);
	return ret;
}

/* Make an ARMED event READY.  Its base is held.  Without an operation, @key is 0. */
static void event_complete(struct context_batch *batch, struct event *event,
			   u64 key, u64 value)
{
	struct base_hold *hold = &batch->hold;

	if (event_operation(event)) {
		event->operation->key = key;
		event->operation->value = value;
	} else {
		event->value = value;
	}
	event->node.flags |= EVENT_COMPLETED;
	base_complete(hold, &event->node, key, value);
	event_ready(event, hold->now_ns, &batch->wake);
	batch->context->completed++;
}

/**
 * context_complete() - end an event now, as completed
 * @batch: the batch.
 * @cmd: a well-formed COMPLETE.
 *
 * Return: 0; -ENOENT, no such event; -EALREADY, it is READY; -ENOMEM, only of a
 * periodic one.
 */
int context_complete(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct event *event = event_find(batch->context, cmd->id);
	int ret;

	if (!event)
		return -ENOENT;
	if (event_state(event) == EVENT_READY)
		return -EALREADY;
	if (event_interval_ns(event))
		ret = event_make_operation(batch, event);
	else
		ret = event_hold_armed(batch, event);
	if (!ret)
		event_complete(batch, event, 0, cmd->value);
	return ret;
}

/* Another watch of an operation is satisfied; true if that completes it. */
static bool operation_advance(struct context_batch *batch,
			      struct operation *operation, u64 key, u64 value)
{
	struct event *event = operation->event;

	if (++operation->satisfied != operation->quorum)
		return false;
	if (event_hold_armed(batch, event))
		return false;
	event_complete(batch, event, key, value);
	return true;
}

/* Unlink some watches that a signal satisfies; false: there are no more. */
static bool take_satisfied(const struct watched_key *key, u64 value,
			   struct list_head *watches)
{
	unsigned int nr;

	for (nr = 0; nr < BASE_BATCH; nr++) {
		struct watch *watch = key_satisfied(key, value);

		if (!watch)
			return false;
		watch_unlink(watch);
		list_add_tail(&watch->siblings, watches);
	}
	return true;
}

/*
 * Satisfy watches of a key; return how many operations that completed.  A signal
 * that is cut short counts for none of those that it did not reach.
 */
static int signal_complete(struct context_batch *batch, struct watched_key *key,
			   u64 value)
{
	struct watch *watch, *next;
	int ended = 0;
	bool more;

	do {
		LIST_HEAD(satisfied);

		more = take_satisfied(key, value, &satisfied);
		list_for_each_entry(watch, &satisfied, siblings)
			ended += operation_advance(batch, operation_of(watch),
						   key->key, value);
		base_release(&batch->hold);
		list_for_each_entry_safe(watch, next, &satisfied, siblings)
			event_free_watch(batch->context, watch);
		cond_resched();
	} while (more && !fatal_signal_pending(current));
	if (!more)
		key->total += value;
	return ended;
}

/* Cancel an operation, or just forget the watch if it has ended; true: cancelled. */
static bool cancel_watching(struct context_batch *batch, struct watch *watch)
{
	struct event *event = operation_of(watch)->event;

	if (event_hold_armed(batch, event)) {
		base_release(&batch->hold);
		event_free_watch(batch->context, watch);
		return false;
	}
	base_disarm(&batch->hold, &event->node);
	batch_free(batch, event);
	batch->context->cancelled++;
	return true;
}

/* Cancel all operations that watch a key; return how many. */
static int signal_cancel(struct context_batch *batch, struct watched_key *key)
{
	struct watch *watch;
	int ended = 0;

	while ((watch = key_any(key)) && !fatal_signal_pending(current)) {
		ended += cancel_watching(batch, watch);
		events_trim(batch->context);
		cond_resched();
	}
	return ended;
}

/**
 * context_signal() - tell the watches of a key
 * @batch: the batch.
 * @cmd: a well-formed SIGNAL.
 *
 * However many operations it ends, no other command of the context comes in between;
 * only a fatal signal to the caller cuts it short.
 *
 * Return: how many operations it ended.
 */
int context_signal(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	struct watched_key *key = NULL;
	int ended;

	base_release(&batch->hold);
	if (context->keys)
		key = keys_get(context->keys, cmd->key);
	if (!key)
		return 0;
	if (cmd->flags & TWHEEL_QUIET)
		ended = signal_cancel(batch, key);
	else
		ended = signal_complete(batch, key, cmd->value);
	keys_put(context->keys, key);
	return ended;
}

/* --- records ---------------------------------------------------------------- */

static struct twheel_record event_record(const struct event *event)
{
	const struct context *context = page_of(event)->context;
	struct twheel_record record = {
		.data = event->data,
		.id = event_id(event),
		.due_ns = event_due_seen_ns(event),
		.fired_ns = seen_ns(context, context->clock, event->fired_ns),
		.count = event_count(event),
		.reason = event_reason(event),
	};

	if (record.reason != TWHEEL_COMPLETED)
		return record;
	if (event_operation(event)) {
		record.key = event->operation->key;
		record.value = event->operation->value;
	} else {
		record.value = event->value;
	}
	return record;
}

/* Write the records of the oldest READY events into the chunk; return how many. */
static unsigned int records_prepare(struct context *context, size_t room)
{
	struct event *event;
	unsigned int nr = 0;

	list_for_each_entry(event, &context->reading, ready) {
		if (nr == CONTEXT_CHUNK || nr == room)
			break;
		context->out[nr++] = event_record(event);
	}
	return nr;
}

/*
 * Arm a periodic event again of whose expirations @count were read.  If the clock
 * was set meanwhile and it is to end then, it does.
 */
static void event_rearm(struct context_batch *batch, struct event *event,
			u64 count)
{
	struct context *context = batch->context;
	u64 covered_ns;

	if (check_mul_overflow(event->interval_ns, count, &covered_ns))
		covered_ns = U64_MAX;
	event->due_ns = add_saturating(event->due_ns, covered_ns);
	base_hold_cpu(&batch->hold, event_clock(event), context->cpu);
	if (event->node.flags & EVENT_MISSED_SET ||
	    (event->node.flags & EVENT_CANCEL_ON_SET && clock_was_set(context))) {
		event->node.flags |= EVENT_CLOCK_SET;
		event_ready_here(batch, event);
	} else {
		event_place(batch, event, event_due_host_ns(event));
	}
}

/* Take the oldest @nr READY events, whose records were copied out, off the queue. */
static void records_finish(struct context_batch *batch, unsigned int nr)
{
	struct context *context = batch->context;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct event *event = list_first_entry(&context->reading,
						       struct event, ready);

		list_del(&event->ready);
		if (event_interval_ns(event) &&
		    event_reason(event) == TWHEEL_EXPIRED) {
			event_rearm(batch, event, context->out[i].count);
		} else {
			batch_free(batch, event);
			context->finished++;
		}
	}
	base_release(&batch->hold);
	ready_left(context, nr);
	context->records += nr;
}

/* Copy @nr structures of @size out, each with zeros up to @stride; how many. */
static unsigned int copy_out(const void *from, size_t size, unsigned int nr,
			     struct iov_iter *to, size_t stride)
{
	unsigned int i;

	if (stride == size)
		return copy_to_iter(from, nr * size, to) / size;

	for (i = 0; i < nr; i++) {
		if (copy_to_iter(from + i * size, size, to) != size ||
		    iov_iter_zero(stride - size, to) != stride - size)
			break;
	}
	return i;
}

/*
 * Copy out as many records as fit and were there when it began; return how many,
 * or -EFAULT if there was one and it could not be copied.  Where that goes wrong,
 * there is no more room.
 */
static ssize_t records_copy(struct context_batch *batch, struct iov_iter *to,
			    size_t stride)
{
	struct context *context = batch->context;
	u64 there, total = 0;

	lockdep_assert_held(&context->mutex);
	there = ready_collect(context);
	for (;;) {
		u64 room = iov_iter_count(to) / stride;
		unsigned int nr, copied;

		nr = records_prepare(context, min(room, there - total));
		if (!nr)
			return total;
		copied = copy_out(context->out, sizeof(context->out[0]), nr, to,
				  stride);
		records_finish(batch, copied);
		total += copied;
		if (copied < nr) {
			iov_iter_truncate(to, 0);
			return total ?: -EFAULT;
		}
		cond_resched();
	}
}

/**
 * struct context_waiter - somebody who waits for records
 * @entry: his place in &struct context.readers.
 * @context: the context.
 * @nr: how many he needs; 0: until it is readable.
 */
struct context_waiter {
	struct wait_queue_entry entry;
	struct context *context;
	u64 nr;
};

static bool is_satisfied(const struct context_waiter *waiter)
{
	if (!waiter->nr)
		return twheel_context_readable(waiter->context);
	return READ_ONCE(waiter->context->nr_ready) >= waiter->nr;
}

/* A waiter who would sleep on must not use up a wake-up that another one needs. */
static int wake_if_satisfied(struct wait_queue_entry *entry, unsigned int mode,
			     int sync, void *key)
{
	struct context_waiter *waiter =
		container_of(entry, struct context_waiter, entry);

	return is_satisfied(waiter) ?
	       autoremove_wake_function(entry, mode, sync, key) : 0;
}

static void count_waiting(struct context *context, int change)
{
	raw_spin_lock_irq(&context->ready_lock);
	context->nr_waiting += change;
	raw_spin_unlock_irq(&context->ready_lock);
}

/* What we leave, or were woken for and did not take, is for the next one. */
static void wake_next(struct context *context)
{
	if (READ_ONCE(context->nr_ready) && wq_has_sleeper(&context->readers))
		wake_up_interruptible(&context->readers);
}

static int waiter_sleep(struct context_waiter *waiter, ktime_t *until)
{
	struct wait_queue_head *queue = &waiter->context->readers;
	bool woken = false;
	int ret = 0;

	init_wait_entry(&waiter->entry, WQ_FLAG_EXCLUSIVE);
	waiter->entry.func = wake_if_satisfied;
	for (;;) {
		long signal = prepare_to_wait_event(queue, &waiter->entry,
						    TASK_INTERRUPTIBLE);

		if (is_satisfied(waiter))
			break;
		/* Records were cancelled; what is left may do for another one. */
		if (woken)
			wake_next(waiter->context);
		woken = true;
		if (signal) {
			ret = signal;
			break;
		}
		if (!schedule_hrtimeout_range(until, current->timer_slack_ns,
					      HRTIMER_MODE_ABS)) {
			ret = -ETIME;
			break;
		}
	}
	finish_wait(queue, &waiter->entry);
	return ret;
}

/**
 * twheel_context_wait_for() - wait for records
 * @context: the context.
 * @nr: for how many; 0: until the context is readable.
 * @until: until when at most, on CLOCK_MONOTONIC; NULL: for ever.
 *
 * Context: a task that holds no lock.
 *
 * Return: 0, they were there; -ETIME; -ERESTARTSYS, a signal.
 */
int twheel_context_wait_for(struct context *context, u64 nr, ktime_t *until)
{
	struct context_waiter waiter = { .context = context, .nr = nr };
	int ret;

	if (is_satisfied(&waiter))
		return 0;
	if (nr)
		count_waiting(context, 1);
	ret = waiter_sleep(&waiter, until);
	if (nr)
		count_waiting(context, -1);
	return ret;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_wait_for);

/* Read once, having waited if asked to; 0: others were faster. */
static ssize_t read_once(struct context *context, struct iov_iter *to,
			 unsigned int how)
{
	struct context_batch batch;
	ssize_t ret = 0;

	if (how == CONTEXT_BLOCK)
		ret = twheel_context_wait_for(context, 0, NULL);
	if (!ret)
		ret = twheel_context_begin(context, &batch, how);
	if (ret)
		return ret;
	if (how & CONTEXT_NONBLOCK || twheel_context_readable(context))
		ret = records_copy(&batch, to, sizeof(struct twheel_record));
	twheel_context_end(&batch);
	return ret;
}

/**
 * twheel_context_read() - read records
 * @context: the context.
 * @to: where they go.
 * @how: whether to wait, and for what.
 *
 * Return: how many bytes, whole records; -EINVAL, there is no room for one;
 * -EAGAIN, nothing is ready, or with CONTEXT_NOWAIT the context is not readable or
 * its mutex is taken; -EFAULT, the first record could not be copied out and is
 * still there; -ERESTARTSYS, a signal.
 */
ssize_t twheel_context_read(struct context *context, struct iov_iter *to,
			    unsigned int how)
{
	ssize_t ret;

	if (iov_iter_count(to) < sizeof(struct twheel_record))
		return -EINVAL;
	do {
		ret = read_once(context, to, how);
	} while (!ret && how == CONTEXT_BLOCK);
	wake_next(context);

	if (ret > 0)
		return ret * sizeof(struct twheel_record);
	return ret ?: -EAGAIN;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_read);

/**
 * context_reap() - read what records there are
 * @context: the context.
 * @to: where they go; when one cannot be written, the room there is 0 afterwards.
 * @stride: the distance from one to the next; between them go zeros.
 *
 * Return: how many records; -EFAULT, as twheel_context_read(); -ERESTARTSYS, a signal.
 */
ssize_t context_reap(struct context *context, struct iov_iter *to, size_t stride)
{
	struct context_batch batch;
	ssize_t ret = twheel_context_begin(context, &batch, CONTEXT_BLOCK);

	if (!ret) {
		ret = records_copy(&batch, to, stride);
		twheel_context_end(&batch);
	}
	wake_next(context);
	return ret;
}

/* --- looking at it ---------------------------------------------------------- */

static struct twheel_entry event_entry(const struct event *event)
{
	const struct operation *operation = event_operation(event);
	enum event_state state = event_state(event);

	return (struct twheel_entry){
		.id = event_id(event),
		.data = event->data,
		.due_ns = event_due_seen_ns(event),
		.interval_ns = event_interval_ns(event),
		.slack_ns = event->slack_ns,
		.state = state,
		.reason = state == EVENT_READY ? event_reason(event) : 0,
		.quorum = operation ? operation->quorum : 1,
		.watches = operation && state == EVENT_ARMED ?
			   operation->watcher.nr_watches : 0,
	};
}

/* The page with the lowest number that is not below @number, which it changes. */
static struct event_page *page_from(struct context *context,
				    unsigned long *number)
{
	void *page;

	for (page = xa_find(&context->pages, number, ULONG_MAX, XA_PRESENT);
	     xa_is_value(page);
	     page = xa_find_after(&context->pages, number, ULONG_MAX, XA_PRESENT))
		cond_resched();
	return page;
}

/*
 * Write entries of the events from an index on into the chunk; return how many.
 * @index becomes that of the last one.
 */
static unsigned int entries_prepare(struct context *context, u64 *index,
				    size_t room)
{
	unsigned long number = *index >> EVENT_INDEX_BITS;
	unsigned int slot = *index & ((1U << EVENT_INDEX_BITS) - 1);
	unsigned int nr = 0;
	struct event_page *page;

	while ((page = page_from(context, &number))) {
		if (number != *index >> EVENT_INDEX_BITS)
			slot = 0;
		for (; slot < EVENT_PAGE_EVENTS; slot++) {
			if (nr == CONTEXT_CHUNK || nr == room)
				return nr;
			if (event_state(&page->events[slot]) == EVENT_FREE)
				continue;
			context->entries[nr++] = event_entry(&page->events[slot]);
			*index = event_index(&page->events[slot]);
		}
		number++;
	}
	return nr;
}

/**
 * twheel_context_list() - list events, in the order of their indices
 * @context: the context.
 * @cursor: 0 at first; becomes the one to go on with, of what was listed.
 * @to: where the entries go.
 * @stride: the distance from one to the next; between them go zeros.
 *
 * An event keeps its index for life, so one that exists throughout is listed once.
 *
 * Return: how many entries, 0 at the end; -EFAULT, not even one could be copied;
 * -ERESTARTSYS, a signal.
 */
ssize_t twheel_context_list(struct context *context, u64 *cursor, struct iov_iter *to,
			    size_t stride)
{
	ssize_t total = 0, ret = context_lock(context, CONTEXT_BLOCK);

	if (ret)
		return ret;
	while (*cursor <= U32_MAX) {
		u64 index = *cursor;
		unsigned int nr, copied;

		nr = entries_prepare(context, &index,
				     iov_iter_count(to) / stride);
		copied = copy_out(context->entries, sizeof(context->entries[0]),
				  nr, to, stride);
		if (copied)
			*cursor = (u32)context->entries[copied - 1].id + 1ULL;
		total += copied;
		if (copied < nr && !total)
			total = -EFAULT;
		if (copied < nr || nr < CONTEXT_CHUNK || signal_pending(current))
			break;
		cond_resched();
	}
	context_unlock(context);
	return total;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_list);

/* Of a context that is bound: where its events are armed, and was that always so? */
static void show_cpu(const struct context *context, struct seq_file *seq)
{
	seq_printf(seq, "cpu:\t%u\n", base_serving_cpu(context->cpu));
	seq_printf(seq, "moved:\t%d\n",
		   base_offline_count(context->cpu) != context->offline_count);
}

/**
 * context_show() - write the lines of fdinfo
 * @context: the context.
 * @seq: where they go.
 */
void context_show(struct context *context, struct seq_file *seq)
{
	u64 armed, ready;

	if (mutex_lock_killable(&context->mutex))
		return;
	ready = READ_ONCE(context->nr_ready);
	armed = context_used(context) - ready;
	seq_printf(seq, "clockid:\t%d\n", base_clock_id(context->clock));
	seq_printf(seq, "max_events:\t%llu\n", context->max_events);
	seq_printf(seq, "added:\t%llu\n", context->added);
	seq_printf(seq, "armed:\t%llu\n", armed);
	seq_printf(seq, "ready:\t%llu\n", ready);
	seq_printf(seq, "finished:\t%llu\n", context->finished);
	seq_printf(seq, "cancelled:\t%llu\n", context->cancelled);
	seq_printf(seq, "completed:\t%llu\n", context->completed);
	seq_printf(seq, "records:\t%llu\n", context->records);
	if (context->cpu != BASE_ANY_CPU)
		show_cpu(context, seq);
	context_unlock(context);
}
