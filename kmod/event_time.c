// SPDX-License-Identifier: GPL-2.0
/*
 * The times of events: what callers see and what the host's clocks say.
 *
 * Callers see the clock of the context, shifted as the time namespace is in which
 * the file was opened; bases see the host's.  What a caller asked for is kept as
 * the caller sees it and translated when the event is armed.
 *
 * A relative time on CLOCK_REALTIME goes by CLOCK_MONOTONIC, on a base of that
 * clock, so that it does not move when the clock is set.  EVENT_CANCEL_ON_SET is
 * about the offset of the two: an event that is due finds it changed, and so does
 * the sweep of context.c over all events, on the notice that the clock was set or
 * when the next such event is armed, whichever is first.
 *
 * The time of an event with NODE_DEADLINE is a word that its process writes.  It is read
 * when the event is armed, when it comes out of its wheel and when somebody looks at it;
 * what it said when the event became READY is kept in due_ns.
 */
#include <linux/math64.h>

#include "base_hold.h"
#include "event_time.h"

/* Is the event's due_ns on CLOCK_MONOTONIC though its context is not? */
static bool due_is_monotonic(const struct event *event)
{
	return event->node.flags & EVENT_BY_MONOTONIC && event_interval_ns(event);
}

/**
 * event_monotonic_seen_ns() - event_due_seen_ns() of one that goes by CLOCK_MONOTONIC
 * @event: the event, of a context on CLOCK_REALTIME.
 */
u64 event_monotonic_seen_ns(const struct event *event)
{
	if (!due_is_monotonic(event) || event->due_ns >= BASE_NEVER_NS)
		return event->due_ns;
	return event->due_ns + clock_offset_ns();
}

/**
 * event_due_host_ns() - when it is due on the host's clock that it goes by
 * @event: a periodic event.
 */
u64 event_due_host_ns(const struct event *event)
{
	if (due_is_monotonic(event))
		return event->due_ns;
	return context_host_ns(event_context(event), event_clock(event),
			       event->due_ns);
}

/**
 * event_monotonic_due_ns() - what to keep of the due time of a relative event
 * @event: the event, which is being armed, of a context on CLOCK_REALTIME.
 * @due_ns: when it is due, on CLOCK_MONOTONIC.
 *
 * Return: the value for &struct event.due_ns.
 */
u64 event_monotonic_due_ns(const struct event *event, u64 due_ns)
{
	if (due_ns >= BASE_NEVER_NS || due_is_monotonic(event))
		return due_ns;
	return due_ns + clock_offset_ns();
}

/**
 * event_postponed() - an event with NODE_DEADLINE has come out: does its word postpone it?
 * @node: the event's node, whose base is held.
 * @now_ns: the time, of the base's clock.
 * @due_ns: out, if so: when it is due then, on that clock.
 *
 * The word is read once.  What it says is as if the event had been armed for that.
 *
 * Return: the tick at which it comes out again; 0: it is due.
 */
u64 event_postponed(struct twheel_node *node, u64 now_ns, u64 *due_ns)
{
	struct event *event = container_of(node, struct event, node);
	struct context *context = event_context(event);
	u64 word_ns = event_word_ns(event);

	*due_ns = context_host_ns(context, context->clock, word_ns);
	if (*due_ns <= now_ns) {
		event->due_ns = word_ns;
		return 0;
	}
	atomic64_inc(&context->nr_postponed);
	return base_due_tick(*due_ns, event->slack_ns);
}

/**
 * event_count_now() - how often a periodic event has expired up to now
 * @event: a READY event that expired.
 */
u64 event_count_now(const struct event *event)
{
	u64 now_ns;

	now_ns = base_clock_ns(event_clock(event));
	if (!due_is_monotonic(event))
		now_ns = context_seen_ns(event_context(event), event_clock(event),
					 now_ns);
	/* The clock may have been set back. */
	if (now_ns <= event->due_ns)
		return 1;
	return 1 + div64_u64(now_ns - event->due_ns, event->interval_ns);
}

/**
 * context_clock_was_set() - was CLOCK_REALTIME set since the last sweep?
 * @context: the context, which has events with EVENT_CANCEL_ON_SET.
 *
 * A sweep ends those that were armed before the clock was set.
 */
bool context_clock_was_set(const struct context *context)
{
	return clock_offset_ns() != READ_ONCE(context->offset_ns);
}

/**
 * context_wants_sweep() - was the clock set, and are there events that care?
 * @context: the context.
 *
 * Context: any; without its mutex, the answer is a hint.
 */
bool context_wants_sweep(const struct context *context)
{
	/* Pairs with follow_clock(): the notice is complete. */
	return smp_load_acquire(&context->has_notice) && context_clock_was_set(context);
}
