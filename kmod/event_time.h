/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The times of events: what callers see and what the host's clocks say.
 *
 * event_time.c tells which is kept where.
 */
#ifndef TWHEEL_EVENT_TIME_H
#define TWHEEL_EVENT_TIME_H

#include "context_types.h"

static inline u64 add_saturating(u64 a, u64 b)
{
	u64 sum;

	return check_add_overflow(a, b, &sum) ? U64_MAX : sum;
}

/* The clock that an event goes by. */
static inline enum base_clock event_clock(const struct event *event)
{
	return event->node.flags & EVENT_BY_MONOTONIC ?
	       BASE_MONOTONIC : event_context(event)->clock;
}

u64 context_host_ns(const struct context *context, enum base_clock clock, u64 ns);
u64 context_seen_ns(const struct context *context, enum base_clock clock, u64 ns);
bool context_clock_was_set(const struct context *context);
bool context_wants_sweep(const struct context *context);

u64 event_due_seen_ns(const struct event *event);
u64 event_due_host_ns(const struct event *event);
u64 event_relative_seen_ns(const struct event *event, u64 due_ns);
u64 event_count(const struct event *event);

#endif /* TWHEEL_EVENT_TIME_H */
