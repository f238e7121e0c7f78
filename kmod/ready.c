// SPDX-License-Identifier: GPL-2.0
/*
 * The ready queue of a context, and the tasks that wait for it.
 *
 * The queue has two parts, so that neither side waits for the other: expiry adds to
 * @ready under the ready lock, the reader moves all of it to the end of @reading in
 * one step, and copies out from there under the mutex alone.  A record leaves
 * @reading after it was copied out whole.
 *
 * Tasks are woken with no spinlock held.  A run or a batch that makes an event READY puts
 * the context on its own wake list, with a reference, and wakes the contexts of that list
 * after it has dropped all spinlocks.  A context is not put on the list in three cases: it
 * is already on a list from which waking has not begun; or it has too few records, and no
 * task waits in ENTER; or no task waits at all.  Before a waiter is woken, it is checked
 * whether there are enough records for it.
 *
 * If the age of a record makes the context readable (@wake_delay_ns), an hrtimer wakes.
 * It may come after that record was read; then it finds that the context is not readable.
 * The age is measured on the context's clock: if that clock is set while a record waits,
 * the age is wrong by up to @wake_delay_ns.
 */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "event_time.h"
#include "ready.h"

/* In hard interrupt context, the search ends at this many tasks that are not woken. */
#define LOOKS_FEW	8

/* An event goes from one list to the other without being unlinked: context_due(). */
static_assert(offsetof(struct event, ready) == offsetof(struct event, node.wheel.list));

/* --- the queue -------------------------------------------------------------- */

/* Do @nr records make the context readable, whatever their age? */
static bool is_enough(const struct context *context, u64 nr)
{
	return nr && (nr >= context->wake_count || READ_ONCE(context->full));
}

/**
 * twheel_context_readable() - are there enough records to be read?
 * @context: the context.
 *
 * There are enough if there are @wake_count records; or if the oldest one has the age
 * @wake_delay_ns; or if there is one, and the context is full.
 */
bool twheel_context_readable(const struct context *context)
{
	/* Pairs with set_nr_ready(): the first record comes with its time. */
	u64 nr = smp_load_acquire(&context->nr_ready);

	return is_enough(context, nr) ||
	       (nr && ktime_get_ns() >= READ_ONCE(context->wake_at_ns));
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_readable);

/*
 * In an interrupt the CPU may be idle.  Then the kernel would queue a timer that is not pinned
 * on a busy CPU, which may be one that goes down: that one is busy for a moment after its
 * timers have left it, and a timer that comes then is lost.  The CPU of a task is busy itself,
 * so the timer is queued there.  If that CPU is isolated, the kernel looks for another one all
 * the same, and may lose the timer.
 */
static enum hrtimer_mode wake_timer_mode(void)
{
	return in_task() ? HRTIMER_MODE_ABS_SOFT : HRTIMER_MODE_ABS_PINNED_SOFT;
}

/* The age of the oldest record makes the context readable @after_ns from now. */
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
			      wake_timer_mode());
}

/* Change @nr_ready.  @wake_at_ns must have been set before. */
static void set_nr_ready(struct context *context, u64 nr)
{
	lockdep_assert_held(&context->ready_lock);
	/* Pairs with twheel_context_readable(). */
	smp_store_release(&context->nr_ready, nr);
}

/*
 * Does a task wait?  It looks at the records after it has put itself into a queue, with a
 * full barrier between; here it is the other way round.
 */
static bool has_sleepers(struct context *context)
{
	if (wq_has_sleeper(&context->readers))
		return true;
	/* wq_has_sleeper() has a full barrier. */
	return waitqueue_active(&context->pollers);
}

/*
 * Put the context on a wake list, if there may be a task to wake.  When the age of a
 * record makes the context readable, @wake_timer wakes instead: wake_time_came().
 */
static void want_wake(struct context *context, struct list_head *wake)
{
	lockdep_assert_held(&context->ready_lock);
	if (context->waking ||
	    !(context->nr_waiting || is_enough(context, context->nr_ready)))
		return;
	if (!has_sleepers(context))
		return;
	context->waking = true;
	refcount_inc(&context->refs);
	list_add_tail(&context->wake_entry, wake);
}

/**
 * want_wake_unlocked() - put a context on a wake list, if there may be a task to wake
 * @context: the context; it became full or has no ARMED event any more.  The caller has
 *	written that, and then executed a full barrier.
 * @wake: the list, for context_wake().
 */
void want_wake_unlocked(struct context *context, struct list_head *wake)
{
	if (context->wake_count < 2 && !READ_ONCE(context->nr_waiting))
		return;
	raw_spin_lock_irq(&context->ready_lock);
	want_wake(context, wake);
	raw_spin_unlock_irq(&context->ready_lock);
}

/* Make an event READY.  The caller adds it to the queue before it drops the ready lock. */
static void set_ready(struct event *event, u32 reason, u64 now_ns)
{
	if (event->node.flags & EVENT_BY_MONOTONIC)
		now_ns = ktime_get_real_ns();
	event_set_ready(event, reason);
	event->fired_ns = now_ns;
}

/* Account for events that were appended since the ready lock was taken. */
static void ready_appended(struct context *context, unsigned int nr,
			   struct list_head *wake)
{
	lockdep_assert_held(&context->ready_lock);
	if (!context->nr_ready)
		set_wake_time(context, context->wake_delay_ns);
	set_nr_ready(context, context->nr_ready + nr);
	want_wake(context, wake);
}

/**
 * event_ready() - make an event READY
 * @event: an event that is on no wheel, and whose base is held.
 * @reason: why: as in &struct twheel_record.reason.
 * @now_ns: the time, of the clock that it goes by.
 * @wake: for context_wake(), when no spinlock is held any more.
 */
void event_ready(struct event *event, u32 reason, u64 now_ns, struct list_head *wake)
{
	struct context *context = event_context(event);

	/* A base is held with interrupts off. */
	lockdep_assert_irqs_disabled();
	raw_spin_lock(&context->ready_lock);
	set_ready(event, reason, now_ns);
	list_add_tail(&event->ready, &context->ready);
	ready_appended(context, 1, wake);
	raw_spin_unlock(&context->ready_lock);
}

/**
 * ready_collect() - move all READY events to @reading, which the mutex alone guards
 * @context: the context, whose mutex is held.
 *
 * Return: how many events are READY.
 */
u64 ready_collect(struct context *context)
{
	u64 nr;

	lockdep_assert_held(&context->mutex);
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

/*
 * @nr events were taken out of the queue.  If the age of a record makes the context
 * readable, the oldest remaining event counts from now on.
 */
static void count_left(struct context *context, unsigned int nr)
{
	lockdep_assert_held(&context->mutex);
	lockdep_assert_held(&context->ready_lock);
	if (context->wake_count > 1 && context->nr_ready > nr) {
		list_splice_tail_init(&context->ready, &context->reading);
		set_wake_time(context, time_to_wake(context));
	}
	set_nr_ready(context, context->nr_ready - nr);
}

/**
 * ready_left() - events have left the older part of the ready queue
 * @context: the context, whose mutex is held.
 * @nr: how many they are.
 */
void ready_left(struct context *context, unsigned int nr)
{
	raw_spin_lock_irq(&context->ready_lock);
	count_left(context, nr);
	raw_spin_unlock_irq(&context->ready_lock);
}

/**
 * event_unready() - take an event out of the ready queue
 * @event: a READY event, in either part of the queue; its base and the mutex are held.
 */
void event_unready(struct event *event)
{
	struct context *context = event_context(event);

	/* A base is held with interrupts off. */
	lockdep_assert_irqs_disabled();
	raw_spin_lock(&context->ready_lock);
	list_del(&event->ready);
	count_left(context, 1);
	raw_spin_unlock(&context->ready_lock);
}

/*
 * Called after the last event in a row of one context: move them all at once from the
 * run's list of expired nodes to the ready queue, and drop the ready lock.
 */
static void context_due_end(struct base_due *due)
{
	struct context *context = due->context;
	LIST_HEAD(events);

	if (!context)
		return;
	list_cut_position(&events, due->expired, &due->last->wheel.list);
	list_splice_tail(&events, &context->ready);
	ready_appended(context, due->nr, &due->wake);
	due->context = NULL;
	__acquire(&context->ready_lock);
	raw_spin_unlock(&context->ready_lock);
}

/* sparse: the run owns the lock until context_due_end(). */
static void context_due_begin(struct base_due *due, struct context *context)
{
	raw_spin_lock(&context->ready_lock);
	__release(&context->ready_lock);
	due->context = context;
	due->nr = 0;
}

/*
 * An event is due.  It stays where it is in the list, because &struct event.ready is the
 * same memory.  The ready lock is taken once for events of one context in a row.
 */
static void context_due(struct twheel_node *node, u64 now_ns, struct base_due *due)
{
	struct event *event = container_of(node, struct event, node);
	struct context *context = event_context(event);
	u32 reason = TWHEEL_EXPIRED;

	if (due->context != context) {
		context_due_end(due);
		context_due_begin(due, context);
	}
	if (node->flags & EVENT_CANCEL_ON_SET && context_clock_was_set(context))
		reason = TWHEEL_CLOCK_SET;
	set_ready(event, reason, now_ns);
	due->last = node;
	due->nr++;
}

/* --- waiting ---------------------------------------------------------------- */

/**
 * context_put() - drop a reference
 * @context: the context, which is freed with the last one.
 */
void context_put(struct context *context)
{
	if (refcount_dec_and_test(&context->refs))
		kfree(context);
}

static void wake_pollers(struct context *context)
{
	if (wq_has_sleeper(&context->pollers) && twheel_context_readable(context))
		wake_up_interruptible_poll(&context->pollers, EPOLLIN | EPOLLRDNORM);
}

/*
 * Wake the tasks that wait.  Of those that read() or are in ENTER one is woken, the first that
 * has enough.  @looks: the search ends at so many that have not; NULL: it goes through all.  It is
 * counted down for each, and is 0 if the search was given up.
 */
static void wake_waiters(struct context *context, unsigned int *looks)
{
	if (wq_has_sleeper(&context->readers))
		__wake_up(&context->readers, TASK_INTERRUPTIBLE, 1, looks);
	wake_pollers(context);
}

/**
 * context_poll_again() - wake those that poll, as a read that does not wait has left records
 * @context: the context, whose mutex was just dropped.
 */
void context_poll_again(struct context *context)
{
	/* A read that set it before is woken now; one that sets it later tries the mutex again. */
	xchg(&context->poll_again, 0);
	wake_pollers(context);
}

/* Take the first context off a wake list.  Its reference goes to the caller. */
static struct context *next_to_wake(struct list_head *wake)
{
	struct context *context = list_first_entry(wake, struct context, wake_entry);
	unsigned long flags;

	raw_spin_lock_irqsave(&context->ready_lock, flags);
	list_del(&context->wake_entry);
	context->waking = false;
	raw_spin_unlock_irqrestore(&context->ready_lock, flags);
	return context;
}

/**
 * context_wake() - wake the tasks that wait for the contexts of a wake list
 * @wake: the list, which is empty then.
 *
 * Context: any, with no spinlock held.
 */
void context_wake(struct list_head *wake)
{
	while (!list_empty(wake)) {
		struct context *context = next_to_wake(wake);

		wake_waiters(context, NULL);
		context_put(context);
	}
}

/* The search for a task to wake was given up: it has to begin again. */
static void put_back(struct context *context, struct list_head *wake)
{
	bool listed;

	raw_spin_lock(&context->ready_lock);
	listed = context->waking;
	if (!listed) {
		context->waking = true;
		list_add(&context->wake_entry, wake);
	}
	raw_spin_unlock(&context->ready_lock);
	if (listed)
		context_put(context);
}

/* The tasks that poll() are not counted: they are woken here as they are by a timerfd. */
static void context_wake_few(struct list_head *wake)
{
	unsigned int looks = LOOKS_FEW;

	lockdep_assert_irqs_disabled();
	while (looks && !list_empty(wake)) {
		struct context *context = next_to_wake(wake);

		wake_waiters(context, &looks);
		if (looks)
			context_put(context);
		else
			put_back(context, wake);
	}
}

const struct base_ops context_ops = {
	.postponed = event_postponed,
	.due = context_due,
	.due_end = context_due_end,
	.wake = context_wake,
	.wake_few = context_wake_few,
};

/* The age of a record makes the context readable, unless the record was read already. */
static enum hrtimer_restart wake_time_came(struct hrtimer *timer)
{
	wake_waiters(container_of(timer, struct context, wake_timer), NULL);
	return HRTIMER_NORESTART;
}

/**
 * struct context_waiter - a task that waits for records
 * @entry: its place in &struct context.readers.
 * @context: the context.
 * @nr: how many records it needs; 0: it waits until the context is readable.
 * @at_hand: it has got some records already.
 */
struct context_waiter {
	struct wait_queue_entry entry;
	struct context *context;
	u64 nr;
	bool at_hand;
};

/*
 * May the waiter stop waiting?  A task that waits for a number of records gets fewer if
 * no more can come before some are read: when no event is ARMED, or the context is full.
 * If there is no record, and it has got none, it goes on waiting, because another task
 * may ADD an event.
 */
static bool is_satisfied(const struct context_waiter *waiter)
{
	const struct context *context = waiter->context;
	u64 nr_ready = READ_ONCE(context->nr_ready);

	if (!waiter->nr)
		return twheel_context_readable(context);
	if (nr_ready >= waiter->nr || (nr_ready && READ_ONCE(context->full)))
		return true;
	return (nr_ready || waiter->at_hand) && !context_has_armed(context);
}

/*
 * A waiter that would sleep again must not use up a wake-up that another one needs.  A negative
 * value ends the search for one: see wake_waiters().
 */
static int wake_if_satisfied(struct wait_queue_entry *entry, unsigned int mode,
			     int sync, void *key)
{
	struct context_waiter *waiter =
		container_of(entry, struct context_waiter, entry);
	unsigned int *looks = key;
	int woken = 0;

	if (is_satisfied(waiter))
		woken = autoremove_wake_function(entry, mode, sync, key);
	return !woken && looks && !--*looks ? -1 : woken;
}

static void count_waiting(struct context *context, int change)
{
	raw_spin_lock_irq(&context->ready_lock);
	WRITE_ONCE(context->nr_waiting, context->nr_waiting + change);
	raw_spin_unlock_irq(&context->ready_lock);
}

/**
 * wake_next() - wake one more waiter, if there are records or none can come
 * @context: the context.
 *
 * Called by a task that leaves records unread, or was woken and did not take any.
 */
void wake_next(struct context *context)
{
	if ((READ_ONCE(context->nr_ready) || !context_has_armed(context)) &&
	    wq_has_sleeper(&context->readers))
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
		/* Records were cancelled; the others may be enough for another waiter. */
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
 * twheel_context_wait() - wait until a context is readable
 * @context: the context.
 *
 * Context: a task that holds no lock.
 *
 * Return: 0, it is; -ERESTARTSYS, a signal.
 */
int twheel_context_wait(struct context *context)
{
	struct context_waiter waiter = { .context = context };

	return is_satisfied(&waiter) ? 0 : waiter_sleep(&waiter, NULL);
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_wait);

/**
 * context_wait_for() - wait for a number of records
 * @context: the context.
 * @nr: how many, not 0.
 * @at_hand: the caller has got some already.
 * @until: when to stop waiting, on CLOCK_MONOTONIC; NULL: never.
 *
 * Context: a task that holds no lock.
 *
 * Return: 0, there are as many, or no more can come before some are read; -ETIME;
 * -ERESTARTSYS, a signal.
 */
int context_wait_for(struct context *context, u64 nr, bool at_hand, ktime_t *until)
{
	struct context_waiter waiter = {
		.context = context,
		.nr = nr,
		.at_hand = at_hand,
	};
	int ret;

	if (is_satisfied(&waiter))
		return 0;
	count_waiting(context, 1);
	ret = waiter_sleep(&waiter, until);
	count_waiting(context, -1);
	return ret;
}

/**
 * ready_init() - make the ready queue of a new context
 * @context: the context.
 */
void ready_init(struct context *context)
{
	INIT_LIST_HEAD(&context->reading);
	raw_spin_lock_init(&context->ready_lock);
	INIT_LIST_HEAD(&context->ready);
	twheel_hrtimer_setup(&context->wake_timer, wake_time_came,
			     CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	init_waitqueue_head(&context->readers);
	init_waitqueue_head(&context->pollers);
}

/**
 * ready_exit() - end the ready queue of a context
 * @context: a context none of whose events is on a wheel.
 */
void ready_exit(struct context *context)
{
	/* The CPU that made the last event READY may still hold the ready lock. */
	raw_spin_lock_irq(&context->ready_lock);
	raw_spin_unlock_irq(&context->ready_lock);
	hrtimer_cancel(&context->wake_timer);
}
