// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: the mutex of a context, and a series of commands under it.
 *
 * A batch holds the mutex.  It also keeps one base held from command to command, and
 * collects the contexts to wake after that base, and with it the last spinlock, is
 * released.
 *
 * A long call, of many commands or records, drops the mutex after each part of its work.
 * That alone does not help other tasks: the task that has just dropped a mutex takes it
 * again before another one that spins for it notices.  So a task that has to wait for the
 * mutex counts itself in @nr_locking, and in @nr_turns when it has got it.  The long call
 * goes on only after a waiter has had its turn, or when no task waits any more.  Then it
 * waits for the mutex as they did, so that two long calls take turns.
 *
 * A waiter that has a CPU takes the mutex within microseconds.  A waiter that has none,
 * because tasks of higher priority run there, must not hold up the long call.  So the long
 * call waits for GIVE_WAY_NS at most, plus the slack that the task itself asked for by
 * prctl(), and after that it does not wait again.  The waiter does not starve: when it runs,
 * and finds the mutex locked again and again, it is given it next.  With PREEMPT_RT a task
 * of higher priority comes first, as with each of its mutexes.
 */
#include "batch.h"
#include "compat.h"

#define GIVE_WAY_NS	NSEC_PER_MSEC

/**
 * context_lock_init() - make the mutex and the batch of a new context
 * @context: the context, filled with 0.
 */
void context_lock_init(struct context *context)
{
	mutex_init(&context->mutex);
	seqcount_init(&context->counts_seq);
	init_waitqueue_head(&context->giving_way);
	context->batch.context = context;
	INIT_LIST_HEAD(&context->batch.wake);
}

/*
 * Fail if another task holds the mutex.  A reader that is only told of changes, by epoll's
 * edge or as a multishot read of io_uring, takes -EAGAIN for "not readable" and waits for
 * the next change.  So that task wakes it when it drops the mutex.
 */
static int lock_nowait(struct context *context)
{
	WRITE_ONCE(context->poll_again, 1);
	/* Pairs with context_unlock(): if it does not see @poll_again, the mutex was dropped. */
	smp_mb();
	return mutex_trylock(&context->mutex) ? 0 : -EAGAIN;
}

/* The slow path of context_lock(): the mutex is locked by another task. */
int context_lock_contended(struct context *context, unsigned int how)
{
	int ret;

	if (how & CONTEXT_NOWAIT)
		return lock_nowait(context);
	atomic_inc(&context->nr_locking);
	ret = mutex_lock_interruptible(&context->mutex) ? -ERESTARTSYS : 0;
	if (!ret)
		WRITE_ONCE(context->nr_turns, context->nr_turns + 1);
	atomic_dec(&context->nr_locking);
	if (wq_has_sleeper(&context->giving_way))
		wake_up_interruptible(&context->giving_way);
	return ret;
}

/**
 * context_is_wanted() - does a task wait for the mutex?
 * @context: the context.
 */
bool context_is_wanted(const struct context *context)
{
	return atomic_read(&context->nr_locking);
}

/**
 * context_give_way() - let a task that waits for the mutex have it
 * @context: the context.
 * @tired: false in the first call of a system call; becomes true if a task did not take the
 *	mutex in time: then the next calls do not wait.
 *
 * Context: a task that has just dropped the mutex, and holds no lock.
 *
 * Return: 0, or -ERESTARTSYS, a signal.
 */
int context_give_way(struct context *context, bool *tired)
{
	u64 nr_turns = READ_ONCE(context->nr_turns);
	int ret;

	if (*tired || !context_is_wanted(context))
		return 0;
	ret = wait_event_interruptible_hrtimeout(context->giving_way,
						 READ_ONCE(context->nr_turns) != nr_turns ||
						 !context_is_wanted(context),
						 ns_to_ktime(GIVE_WAY_NS));
	*tired = ret == -ETIME;
	return *tired ? 0 : ret;
}

/**
 * twheel_context_begin() - begin a series of commands
 * @context: the context, whose batch is to be ended by twheel_context_end().
 * @how: CONTEXT_BLOCK; or CONTEXT_NOWAIT: do not wait for the mutex.
 *
 * Return: 0, the mutex is held; -ERESTARTSYS, a signal; -EAGAIN, with CONTEXT_NOWAIT: it
 * is locked by another task.
 */
int twheel_context_begin(struct context *context, unsigned int how)
{
	int ret = context_lock(context, how);

	if (!ret)
		context->batch.last_add = 0;
	return ret;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_begin);

/* Show the counts of the batch to fdinfo, which reads those of the context at any time. */
static void batch_count(struct context_batch *batch)
{
	struct context *context = batch->context;

	preempt_disable();
	write_seqcount_begin(&context->counts_seq);
	context->counts = batch->counts;
	write_seqcount_end(&context->counts_seq);
	preempt_enable();
}

/*
 * Publish the number of events.  If no more records can come before some are read, because
 * the context is full or no event is ARMED, wake the tasks that wait for more records.
 */
static void batch_note_used(struct context_batch *batch)
{
	struct context *context = batch->context;
	u64 used = counts_used(&batch->counts);
	bool full = used >= context->max_events;

	lockdep_assert_held(&context->mutex);
	if (used == context->used && full == context->full)
		return;
	WRITE_ONCE(context->used, used);
	WRITE_ONCE(context->full, full);
	/*
	 * Pairs with wq_has_sleeper() in wake_waiters(), after @nr_ready was changed, and
	 * with prepare_to_wait_event(): either we see their change, or they see @used.
	 */
	smp_mb();
	if (full || !context_has_armed(context))
		want_wake_unlocked(context, &batch->wake);
}

/* Make visible to other tasks what the batch has done so far. */
void batch_publish(struct context_batch *batch)
{
	base_release(&batch->hold);
	batch_count(batch);
	batch_note_used(batch);
}

/* Wake the tasks that wait for what the batch has done. */
void batch_wake(struct context_batch *batch)
{
	context_wake(&batch->wake);
	INIT_LIST_HEAD(&batch->wake);
}

/**
 * twheel_context_end() - end a series of commands
 * @batch: the batch, which is the next holder's when the mutex is dropped.
 */
void twheel_context_end(struct context_batch *batch)
{
	struct context *context = batch->context;
	LIST_HEAD(wake);

	batch_publish(batch);
	events_trim(&context->events);
	list_splice_init(&batch->wake, &wake);
	context_unlock(context);
	context_wake(&wake);
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_end);
