/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the suites of operations: an operation that counts the calls of its functions.
 */
#ifndef TWHEEL_TALLY_H
#define TWHEEL_TALLY_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/preempt.h>

#include "../kmod/twheel.h"

/**
 * struct tally - an operation that counts its calls
 * @operation: the operation; its functions are those below.
 * @ended: completed by each call of on_complete() and of on_expiration().
 * @asked: number of calls of try_complete().
 * @completed: number of calls of on_complete().
 * @expired: number of calls of on_expiration().
 * @asking: number of calls of try_complete() in progress.
 * @inside: number of calls of any of them in progress.
 * @overlapped: two calls of try_complete() were in progress at the same time.
 * @refusals: number of times that try_complete() still returns false.
 * @holds: what try_complete() returns after that.
 * @at_ns: when the operation ended.
 * @softirq: it ended in softirq context.
 * @ask: called by try_complete() before it returns, or NULL.
 * @end: called by on_complete() and on_expiration(), or NULL.
 * @data: for @ask and @end.
 */
struct tally {
	struct twheel_operation operation;
	struct completion ended;
	atomic_t asked;
	atomic_t completed;
	atomic_t expired;
	atomic_t asking;
	atomic_t inside;
	bool overlapped;
	unsigned int refusals;
	bool holds;
	u64 at_ns;
	bool softirq;
	void (*ask)(struct tally *tally);
	void (*end)(struct tally *tally);
	void *data;
};

static inline struct tally *tally_of(struct twheel_operation *operation)
{
	return container_of(operation, struct tally, operation);
}

static inline bool tally_try_complete(struct twheel_operation *operation)
{
	struct tally *tally = tally_of(operation);
	bool holds;

	lockdep_assert_not_held(&operation->registry->lock);
	atomic_inc(&tally->inside);
	if (atomic_inc_return(&tally->asking) > 1)
		tally->overlapped = true;
	atomic_inc(&tally->asked);
	if (tally->ask)
		tally->ask(tally);
	holds = READ_ONCE(tally->holds) && !tally->refusals;
	if (tally->refusals)
		tally->refusals--;
	atomic_dec(&tally->asking);
	atomic_dec(&tally->inside);
	return holds;
}

static inline void tally_end(struct tally *tally, atomic_t *calls)
{
	lockdep_assert_not_held(&tally->operation.registry->lock);
	atomic_inc(&tally->inside);
	tally->at_ns = ktime_get_ns();
	tally->softirq = in_serving_softirq();
	atomic_inc(calls);
	if (tally->end)
		tally->end(tally);
	atomic_dec(&tally->inside);
	complete(&tally->ended);
}

static inline void tally_on_complete(struct twheel_operation *operation)
{
	tally_end(tally_of(operation), &tally_of(operation)->completed);
}

static inline void tally_on_expiration(struct twheel_operation *operation)
{
	tally_end(tally_of(operation), &tally_of(operation)->expired);
}

static const struct twheel_operation_ops tally_ops = {
	.try_complete = tally_try_complete,
	.on_complete = tally_on_complete,
	.on_expiration = tally_on_expiration,
};

static inline void tally_init(struct tally *tally, struct twheel_registry *registry)
{
	init_completion(&tally->ended);
	twheel_operation_setup(&tally->operation, registry, &tally_ops);
}

/* The number of calls of on_complete() and on_expiration(). */
static inline int tally_calls(struct tally *tally)
{
	return atomic_read(&tally->completed) + atomic_read(&tally->expired);
}

/* The number of keys that are watched or being checked. */
static inline int watched_keys(struct twheel_registry *registry)
{
	return atomic_read(&registry->keys.nelems);
}

#endif /* TWHEEL_TALLY_H */
