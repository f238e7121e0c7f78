// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: the mutex of a context, and a series of commands under it.
 *
 * A batch holds the mutex.  Besides it keeps one base held from command to command,
 * and gathers whom to wake when that base, and with it the last spinlock, is let go of.
 *
 * A long call, of many commands or records, lets go of the mutex after each part of
 * its work.  That alone helps nobody: the task that has just dropped a mutex takes
 * it again before the one that spins for it has noticed.  So whoever has to wait for
 * the mutex counts itself in @nr_locking, and in @nr_turns when it has got it; and the
 * long call goes on only when one of those who waited had its turn, or none waits any
 * more.  It then waits for the mutex as they did, so that two long calls take turns.
 */
#include "batch.h"
#include "compat.h"

/**
 * context_unlock() - let go of the mutex
 * @context: the context.
 *
 * While it was held, the notice that the clock was set may have come and gone.
 */
void context_unlock(struct context *context)
{
	mutex_unlock(&context->mutex);
	/* Pairs with the trylock in context_clock_set(). */
	smp_mb();
	if (context_wants_sweep(context))
		clock_notice_give(&context->notice);
}

/**
 * context_lock_init() - make the mutex of a new context
 * @context: the context.
 */
void context_lock_init(struct context *context)
{
	mutex_init(&context->mutex);
	seqcount_init(&context->shown_seq);
	init_waitqueue_head(&context->giving_way);
}

/**
 * context_lock() - take the mutex
 * @context: the context.
 * @how: with CONTEXT_NOWAIT, it is not waited for.
 *
 * Return: 0; -ERESTARTSYS, a signal; -EAGAIN, it is taken and not to be waited for.
 */
int context_lock(struct context *context, unsigned int how)
{
	int ret;

	if (mutex_trylock(&context->mutex))
		return 0;
	if (how & CONTEXT_NOWAIT)
		return -EAGAIN;
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
 * context_give_way() - let one of those have the mutex who wait for it
 * @context: the context.
 * @how: with CONTEXT_NOWAIT, this does not wait.
 *
 * Context: a task that has just let go of the mutex, and holds no lock.
 *
 * Return: 0, nobody waits or one has got it; -ERESTARTSYS, a signal; -EAGAIN, one
 * waits, and that is not to be waited for.
 */
int context_give_way(struct context *context, unsigned int how)
{
	u64 nr_turns = READ_ONCE(context->nr_turns);

	if (likely(!atomic_read(&context->nr_locking)))
		return 0;
	if (how & CONTEXT_NOWAIT)
		return -EAGAIN;
	return wait_event_interruptible(context->giving_way,
					READ_ONCE(context->nr_turns) != nr_turns ||
					!atomic_read(&context->nr_locking));
}

/**
 * batch_init() - make a batch, for who has taken the mutex
 * @batch: the batch, to be ended by twheel_context_end().
 * @context: the context.
 */
void batch_init(struct context_batch *batch, struct context *context)
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

/* Let fdinfo see what happened. */
static void batch_show(struct context_batch *batch)
{
	struct context *context = batch->context;

	preempt_disable();
	write_seqcount_begin(&context->shown_seq);
	context->shown = context->counts;
	write_seqcount_end(&context->shown_seq);
	preempt_enable();
}

/*
 * Tell how many events there are now.  Where no more records can come before some are
 * read, because the context is full or nothing is ARMED any more, those who wait for
 * more of them are woken.
 */
static void batch_note_used(struct context_batch *batch)
{
	struct context *context = batch->context;
	u64 used = context_used(context);
	bool full = used >= context->max_events;

	lockdep_assert_held(&context->mutex);
	if (used == context->used && full == context->full)
		return;
	WRITE_ONCE(context->used, used);
	WRITE_ONCE(context->full, full);
	/*
	 * Pairs with wq_has_sleeper() in wake_waiters(), after @nr_ready was changed, and
	 * with prepare_to_wait_event(): either we see what they did, or they see @used.
	 */
	smp_mb();
	if (full || !context_has_armed(context))
		want_wake_unlocked(context, &batch->wake);
}

/* Let everybody see what was done so far. */
static void batch_publish(struct context_batch *batch)
{
	base_release(&batch->hold);
	batch_show(batch);
	batch_note_used(batch);
}

/**
 * batch_settle() - let everybody see what was done so far, and wake who waits for it
 * @batch: the batch, which holds no base afterwards.
 *
 * To be called before user memory is touched, as that may take for ever.
 */
void batch_settle(struct context_batch *batch)
{
	batch_publish(batch);
	context_wake(&batch->wake);
	INIT_LIST_HEAD(&batch->wake);
}

/**
 * twheel_context_end() - end a series of commands
 * @batch: the batch.
 */
void twheel_context_end(struct context_batch *batch)
{
	batch_publish(batch);
	events_trim(&batch->context->events);
	context_unlock(batch->context);
	context_wake(&batch->wake);
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_end);
