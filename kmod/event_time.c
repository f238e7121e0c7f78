// SPDX-License-Identifier: GPL-2.0
/*
 * The times of events: what callers see and what the host's clocks say.
 *
 * Callers see the clock of the context, shifted by the time namespace in which the file
 * was opened; bases see the host's clock.  The time that a caller asked for is stored as
 * the caller sees it, and translated when the event is armed.
 *
 * An event with a relative time on CLOCK_REALTIME is on a base of CLOCK_MONOTONIC, so its
 * due time does not move when the clock is set (EVENT_BY_MONOTONIC).
 *
 * An event with EVENT_CANCEL_ON_SET ends when the offset of these two clocks changes.  The
 * change is noticed when such an event is due, and by the sweep of context.c over all
 * events: on the notice that the clock was set, or before the next such event is armed.
 *
 * The time of an event with NODE_DEADLINE is a word that its process writes.  The word is
 * read when the event is armed, when it comes out of its wheel, and when a QUERY or a list
 * shows it.  When the event becomes READY, the time of the word is stored in due_ns.
 *
 * To read a word when its event comes out is called a look.  A process may move a word
 * that a million events name, again and again, so that looks never end; other files'
 * events on that wheel would come out as much later as the looks at all of the million
 * take.  So while its base is behind, each file has a number of free looks.  At each look
 * after these, the event is put off by as long as the base is behind already: what is due
 * meanwhile comes in between, and as the wait doubles the base catches up.
 */
#include "base_hold.h"
#include "event_time.h"

/* How many looks a file has free while a base is behind. */
#define FREE_LOOKS	16

/* Is the event's due_ns on CLOCK_MONOTONIC though its context is not? */
static bool due_is_monotonic(const struct event *event)
{
	return event->node.flags & EVENT_BY_MONOTONIC && event_interval_ns(event);
}

/**
 * event_monotonic_seen_ns() - event_due_seen_ns() of an event with EVENT_BY_MONOTONIC
 * @event: the event, of a context on CLOCK_REALTIME.
 */
u64 event_monotonic_seen_ns(const struct event *event)
{
	if (!due_is_monotonic(event) || event->due_ns >= BASE_NEVER_NS)
		return event->due_ns;
	return event->due_ns + clock_offset_ns();
}

/**
 * event_due_host_ns() - when an event is due on event_clock(), as the host sees it
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
 * event_monotonic_due_ns() - &struct event.due_ns of an event with EVENT_BY_MONOTONIC
 * @event: the event, which is being armed, of a context on CLOCK_REALTIME.
 * @due_ns: when it is due, on CLOCK_MONOTONIC.
 *
 * Return: the value to store.
 */
u64 event_monotonic_due_ns(const struct event *event, u64 due_ns)
{
	if (due_ns >= BASE_NEVER_NS || due_is_monotonic(event))
		return due_ns;
	return due_ns + clock_offset_ns();
}

/*
 * Count a look at an event of the context while a base is behind.  Returns whether the
 * context has used up its free looks.
 *
 * Bases of several CPUs may do this at the same time, and then a look may be lost.  All
 * begin to count anew only if the context was not looked at since they are behind.
 */
static bool is_looked_at_often(struct context *context, const struct base_lag *lag)
{
	u32 nr_looks = READ_ONCE(context->nr_looks) + 1;

	if (READ_ONCE(context->looks_since_ns) < lag->since_ns) {
		WRITE_ONCE(context->looks_since_ns, lag->since_ns + lag->length_ns);
		nr_looks = 1;
	}
	WRITE_ONCE(context->nr_looks, min_t(u32, nr_looks, FREE_LOOKS + 1));
	return nr_looks > FREE_LOOKS;
}

/**
 * event_postponed() - check if the word of an event with NODE_DEADLINE has a later time
 * @node: the node of the event, which has come out; its base is held.
 * @now_ns: the time, on the base's clock.
 * @lag: how far the base is behind.
 * @due_ns: out: its new due time, on that clock, if that is later.
 *
 * The word is read once.  The effect is as if the event had been armed for that time, or
 * for a later one if the base is behind.
 *
 * Return: the tick at which it comes out again; 0: it is due.
 */
u64 event_postponed(struct twheel_node *node, u64 now_ns, const struct base_lag *lag,
		    u64 *due_ns)
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
	if (unlikely(lag->since_ns) && is_looked_at_often(context, lag))
		*due_ns = max(*due_ns, now_ns + lag->length_ns);
	return base_due_tick(*due_ns, event->slack_ns);
}

/**
 * event_count_now() - how often a periodic event has expired until now
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
	return 1 + (now_ns - event->due_ns) / event->interval_ns;
}

/**
 * context_clock_was_set() - was CLOCK_REALTIME set since the last sweep?
 * @context: the context, which has events with EVENT_CANCEL_ON_SET.
 *
 * A sweep ends the events with EVENT_CANCEL_ON_SET that were armed before that.
 */
bool context_clock_was_set(const struct context *context)
{
	return clock_nr_sets() != READ_ONCE(context->nr_sets);
}
