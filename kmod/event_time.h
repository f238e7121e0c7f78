/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The times of events: what callers see and what the host's clocks say.
 *
 * event_time.c tells which times are stored where.
 */
#ifndef TWHEEL_EVENT_TIME_H
#define TWHEEL_EVENT_TIME_H

#include "context_types.h"
#include "deadlines.h"

static inline u64 add_saturating(u64 a, u64 b)
{
	u64 sum;

	return check_add_overflow(a, b, &sum) ? U64_MAX : sum;
}

/* The clock of the base that an event is armed on. */
static inline enum base_clock event_clock(const struct event *event)
{
	return event->node.flags & EVENT_BY_MONOTONIC ?
	       BASE_MONOTONIC : event_context(event)->clock;
}

/**
 * context_host_ns() - translate a caller's time to the host's
 * @context: the context.
 * @clock: the clock of the time.
 * @ns: the time; 2^63 and more is never.
 */
static inline u64 context_host_ns(const struct context *context,
				  enum base_clock clock, u64 ns)
{
	s64 host_ns;

	if (ns >= BASE_NEVER_NS)
		return ns;
	if (check_sub_overflow((s64)ns, context->namespace_ns[clock], &host_ns))
		return BASE_NEVER_NS;
	return max_t(s64, host_ns, 0);
}

/**
 * context_seen_ns() - translate a time of the host to the caller's
 * @context: the context.
 * @clock: the clock of the time.
 * @ns: the time; 2^63 and more is never.
 */
static inline u64 context_seen_ns(const struct context *context,
				  enum base_clock clock, u64 ns)
{
	return ns >= BASE_NEVER_NS ? ns : ns + context->namespace_ns[clock];
}

bool context_clock_was_set(const struct context *context);

/**
 * context_wants_sweep() - was the clock set, and may there be events that end then?
 * @context: the context.
 *
 * Context: any; without its mutex, the answer is a hint.
 */
static inline bool context_wants_sweep(const struct context *context)
{
	/* Pairs with follow_clock(): with @has_notice, @notice and @nr_sets are set. */
	return smp_load_acquire(&context->has_notice) && context_clock_was_set(context);
}

u64 event_monotonic_seen_ns(const struct event *event);
u64 event_due_host_ns(const struct event *event);
u64 event_monotonic_due_ns(const struct event *event, u64 due_ns);
u64 event_postponed(struct twheel_node *node, u64 now_ns, const struct base_lag *lag,
		    u64 *due_ns);
u64 event_count_now(const struct event *event);

/* With NODE_DEADLINE: the time of the event's word, which may change at any moment. */
static inline u64 event_word_ns(const struct event *event)
{
	return deadlines_read(event_context(event)->deadlines, event_deadline(event));
}

/**
 * event_due_seen_ns() - when an event is due, as its caller sees it
 * @event: the event.
 * @state: its state, which was read before; it may become READY meanwhile.
 */
static inline u64 event_due_seen_ns(const struct event *event, enum event_state state)
{
	if (event->node.flags & NODE_DEADLINE && state == EVENT_ARMED)
		return event_word_ns(event);
	if (event->node.flags & EVENT_BY_MONOTONIC)
		return event_monotonic_seen_ns(event);
	return event->due_ns;
}

/* Will a READY event be armed again when its record is read? */
static inline bool event_goes_on(const struct event *event)
{
	return event_reason(event) == TWHEEL_EXPIRED && event_interval_ns(event);
}

/**
 * event_count() - how many expirations a record covers if it is read now
 * @event: a READY event.
 */
static inline u64 event_count(const struct event *event)
{
	return event_goes_on(event) ? event_count_now(event) : 1;
}

#endif /* TWHEEL_EVENT_TIME_H */
