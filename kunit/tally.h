/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites of operations share: an operation that counts what is called.
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
 * @asked: how many calls of try_complete() there were,
 * @completed: of on_complete(),
 * @expired: and of on_expiration().
 * @asking: how many calls of try_complete() are under way.
 * @inside: how many calls of any of them.
 * @overlapped: try_complete() was called while it was being called.
 * @refusals: how often try_complete() is still to say no,
 * @holds: and what it says then.
 * @at_ns: when it ended.
 * @softirq: that was in softirq context.
 * @ask: what try_complete() does before it answers, or NULL.
 * @end: what the other two do, or NULL.
 * @data: theirs.
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

/* How many calls of on_complete() and on_expiration() there were. */
static inline int tally_calls(struct tally *tally)
{
	return atomic_read(&tally->completed) + atomic_read(&tally->expired);
}

/* How many keys are watched, or being checked. */
static inline int watched_keys(struct twheel_registry *registry)
{
	return atomic_read(&registry->keys.nelems);
}

#endif /* TWHEEL_TALLY_H */
