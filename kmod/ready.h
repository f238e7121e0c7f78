/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ready queue of a context, and who waits for it.
 *
 * ready.c tells how it is kept and who may touch what.
 */
#ifndef TWHEEL_READY_H
#define TWHEEL_READY_H

#include "context_types.h"

extern const struct base_ops context_ops;

void ready_init(struct context *context);
void ready_exit(struct context *context);

void event_ready(struct event *event, u32 reason, u64 now_ns, struct list_head *wake);
void event_unready(struct event *event);
u64 ready_collect(struct context *context);
void ready_left(struct context *context, unsigned int nr);
bool twheel_context_readable(const struct context *context);

/*
 * Is any event ARMED?  Takes no lock.  @used is never too low, and @nr_ready was the same
 * before and after @used was read: so if the answer is no, it was true at that moment.
 */
static inline bool context_has_armed(const struct context *context)
{
	u64 nr_ready, used;

	do {
		/* Pairs with set_nr_ready(): a READY event was counted in @used before. */
		nr_ready = smp_load_acquire(&context->nr_ready);
		/* The second read of @nr_ready comes after this one. */
		used = smp_load_acquire(&context->used);
	} while (READ_ONCE(context->nr_ready) != nr_ready);
	return used > nr_ready;
}

void want_wake_unlocked(struct context *context, struct list_head *wake);
void context_wake(struct list_head *wake);
void wake_next(struct context *context);
void context_poll_again(struct context *context);
int twheel_context_wait(struct context *context);
int context_wait_for(struct context *context, u64 nr, bool at_hand, ktime_t *until);

void context_put(struct context *context);

#endif /* TWHEEL_READY_H */
