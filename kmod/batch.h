/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Batches: the mutex of a context, and a series of commands under it.
 */
#ifndef TWHEEL_BATCH_H
#define TWHEEL_BATCH_H

#include "base_hold.h"
#include "context_types.h"
#include "event_time.h"
#include "ready.h"

/**
 * struct context_batch - a series of commands to one context, under its mutex
 * @context: the context.
 * @hold: the base that is held, if one is.
 * @wake: contexts to wake when no spinlock is held any more.
 * @last_add: the event of the last ADD in this call; 0: none, or it failed.
 */
struct context_batch {
	struct context *context;
	struct base_hold hold;
	struct list_head wake;
	u64 last_add;
};

/* How to wait: flags. */
#define CONTEXT_BLOCK		0	/* until the context is readable */
#define CONTEXT_NONBLOCK	BIT(0)	/* read what there is: O_NONBLOCK */
#define CONTEXT_NOWAIT		BIT(1)	/* not at all, nor for the mutex: IOCB_NOWAIT */

/* The event of an id, or NULL. */
static inline struct event *batch_find(struct context_batch *batch, u64 id)
{
	lockdep_assert_held(&batch->context->mutex);
	return event_find(&batch->context->events, id);
}

/* For what needs a base held, whichever it is. */
static inline void batch_assert_base_held(const struct context_batch *batch)
{
	lockdep_assert(batch->hold.base);
	lockdep_assert_held(&batch->hold.base->lock);
}

void context_lock_init(struct context *context);
int context_lock(struct context *context, unsigned int how);
int context_give_way(struct context *context, unsigned int how);
void context_unlock(struct context *context);

void batch_init(struct context_batch *batch, struct context *context);
int twheel_context_begin(struct context *context, struct context_batch *batch,
			 unsigned int how);
void twheel_context_end(struct context_batch *batch);

void batch_settle(struct context_batch *batch);

/**
 * event_ready_here() - make an event READY that is on no wheel
 * @batch: the batch, which holds some base of the event's clock.
 * @event: the event, which is in no queue either.
 */
static inline void event_ready_here(struct context_batch *batch, struct event *event)
{
	struct base_hold *hold = &batch->hold;

	batch_assert_base_held(batch);
	WRITE_ONCE(event->node.base, hold->base->number);
	event_ready(event, hold_now_ns(hold), &batch->wake);
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
		event_ready_here(batch, event);
	} else {
		event_set_state(event, EVENT_ARMED);
		base_arm(hold, &event->node, base_due_tick(due_ns, event->slack_ns),
			 due_ns);
	}
}

#endif /* TWHEEL_BATCH_H */
