/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Batches: the mutex of a context, and a series of commands under it.
 */
#ifndef TWHEEL_BATCH_H
#define TWHEEL_BATCH_H

#include "context_types.h"
#include "event_time.h"
#include "ready.h"

/* How to wait: flags. */
#define CONTEXT_BLOCK		0	/* wait until the context is readable */
#define CONTEXT_NONBLOCK	BIT(0)	/* read the records that there are: O_NONBLOCK */
#define CONTEXT_NOWAIT		BIT(1)	/* do not wait, not even for the mutex: IOCB_NOWAIT */

/* The event of an id, or NULL. */
static inline struct event *batch_find(struct context_batch *batch, u64 id)
{
	lockdep_assert_held(&batch->context->mutex);
	return event_find(&batch->context->events, id);
}

/* How many events the context has now. */
static inline u64 batch_used(const struct context_batch *batch)
{
	lockdep_assert_held(&batch->context->mutex);
	return counts_used(&batch->counts);
}

/* Assert that the batch holds a base, whichever one. */
static inline void batch_assert_base_held(const struct context_batch *batch)
{
	lockdep_assert(batch->hold.base);
	lockdep_assert_held(&batch->hold.base->lock);
}

void context_lock_init(struct context *context);
int context_lock_contended(struct context *context, unsigned int how);
bool context_is_wanted(const struct context *context);
int context_give_way(struct context *context, bool *tired);

/**
 * context_lock() - take the mutex
 * @context: the context.
 * @how: CONTEXT_BLOCK; or CONTEXT_NOWAIT: do not wait for it.
 *
 * Return: 0, it is held; -ERESTARTSYS, a signal; -EAGAIN, with CONTEXT_NOWAIT: it is
 * locked by another task.
 */
static inline int context_lock(struct context *context, unsigned int how)
{
	return likely(mutex_trylock(&context->mutex)) ? 0 :
		context_lock_contended(context, how);
}

/**
 * context_unlock() - drop the mutex
 * @context: the context.
 *
 * If the clock was set while the mutex was held, the work of @notice could not take it;
 * so the notice is given again.  The same for readers that did not wait for it.
 */
static inline void context_unlock(struct context *context)
{
	mutex_unlock(&context->mutex);
	/* Pairs with lock_nowait(), and with the trylock in context_clock_set(). */
	smp_mb();
	if (context_wants_sweep(context))
		clock_notice_give(&context->notice);
	if (unlikely(READ_ONCE(context->poll_again)))
		context_poll_again(context);
}

int twheel_context_begin(struct context *context, unsigned int how);
void twheel_context_end(struct context_batch *batch);

void batch_publish(struct context_batch *batch);
void batch_wake(struct context_batch *batch);

/**
 * batch_settle() - publish what was done so far, and wake the tasks that wait for it
 * @batch: the batch, which holds no base afterwards.
 *
 * To be called before user memory is touched, because a fault may take for ever.
 */
static inline void batch_settle(struct context_batch *batch)
{
	batch_publish(batch);
	if (!list_empty(&batch->wake))
		batch_wake(batch);
}

/**
 * event_ready_here() - make an event READY that is on no wheel
 * @batch: the batch, which holds a base of the event's clock.
 * @event: the event, which is in no queue either.
 * @reason: why, TWHEEL_EXPIRED or TWHEEL_CLOCK_SET.
 */
static inline void event_ready_here(struct context_batch *batch, struct event *event,
				    u32 reason)
{
	struct base_hold *hold = &batch->hold;

	batch_assert_base_held(batch);
	WRITE_ONCE(event->node.base, hold->base->number);
	event_ready(event, reason, hold_now_ns(hold), &batch->wake);
}

/**
 * event_place() - arm an event, or make it READY if its time is past
 * @batch: the batch, which holds the base that the event goes to.
 * @event: an event that is on no wheel and in no queue.
 * @due_ns: when it is due, by the host's clock that it goes by.
 */
static __always_inline void event_place(struct context_batch *batch, struct event *event,
					u64 due_ns)
{
	struct base_hold *hold = &batch->hold;

	batch_assert_base_held(batch);
	if (due_ns <= hold_now_ns(hold)) {
		event_ready_here(batch, event, TWHEEL_EXPIRED);
	} else {
		event_set_state(event, EVENT_ARMED);
		base_arm(hold, &event->node, base_due_tick(due_ns, event->slack_ns),
			 due_ns);
	}
}

#endif /* TWHEEL_BATCH_H */
