/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: slots in pages, and their ids.
 *
 * event.c tells what an id is, context.c who may touch what.
 */
#ifndef TWHEEL_EVENT_H
#define TWHEEL_EVENT_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/xarray.h>

#include "account.h"
#include "twheel.h"
#include "uapi/linux/twheel.h"

/* An event needs memory at the limit of a memory cgroup: it fails, nobody is killed. */
#define EVENT_GFP	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* An id is a generation and a slot index; a slot is never used beyond this. */
#define EVENT_GENERATION_MAX	((u32)S32_MAX)

/* &struct event.node.state; the values of the two that userspace sees. */
enum event_state {
	EVENT_FREE = 0,
	EVENT_ARMED = TWHEEL_ARMED,
	EVENT_READY = TWHEEL_READY,
};

/* &struct event.node.flags, besides NODE_EVENT */
#define EVENT_BY_MONOTONIC	BIT(0)	/* relative, on CLOCK_REALTIME */
#define EVENT_CANCEL_ON_SET	BIT(1)	/* ends when the clock is set */
#define EVENT_CLOCK_SET		BIT(2)	/* READY: that is why */
#define EVENT_MISSED_SET	BIT(3)	/* periodic: it was READY at that time */
#define EVENT_COMPLETED		BIT(4)	/* READY: because it was completed */
#define EVENT_OPERATION		BIT(5)	/* it has an operation */
#define EVENT_SIGNALLED		BIT(6)	/* with EVENT_COMPLETED: by a signal */

/**
 * struct event - a delayed event
 * @node: ARMED: its place on a wheel.  Always: its state and flags and, as the
 *	tag, its generation, which is the one of its next use while it is FREE.
 * @ready: READY: its place in the ready queue.
 * @fired_ns: READY: when that happened, on the context's clock.
 * @data: the caller's cookie.
 * @due_ns: when it is due, as the caller sees it; of a periodic one that goes by
 *	CLOCK_MONOTONIC, on that clock.
 * @interval_ns: its period, or 0; unless it has one of the following.
 * @operation: with EVENT_OPERATION.
 * @value: with EVENT_COMPLETED but no operation: of what completed it.
 * @slack_ns: its slack.
 *
 * It is on a wheel or in the ready queue, never both, so that the two share
 * memory and expiry needs none.
 */
struct event {
	union {
		struct twheel_node node;
		struct {
			struct list_head ready;
			u64 fired_ns;
		};
	};
	u64 data;
	u64 due_ns;
	union {
		u64 interval_ns;
		struct event_operation *operation;
		u64 value;
	};
	u64 slack_ns;
};

/**
 * struct event_operation - what few events have, above all those that watch keys
 * @event: the event.
 * @watcher: its watches; dead ones if the event is READY.
 * @quorum: how many watches have to be satisfied.
 * @satisfied: how many were.
 * @interval_ns: the event's period, or 0.
 * @value: COMPLETED: of what completed it.
 * @key: COMPLETED: of the signal that did, or 0.
 */
struct event_operation {
	struct event *event;
	struct twheel_watcher watcher;
	u32 quorum;
	u32 satisfied;
	u64 interval_ns;
	u64 value;
	u64 key;
};

/*
 * A page of events: a head and 63 slots of at most 64 bytes, so that the id of an
 * event, the index of a slot, is the page's number and six bits.
 */
#define EVENT_PAGE_SIZE		4096
#define EVENT_PAGE_EVENTS	63
#define EVENT_INDEX_BITS	6
#define EVENT_PAGES_MAX		(1U << (32 - EVENT_INDEX_BITS))

/**
 * struct event_table - the events of a context
 * @account: who is charged for them: the opener's account, or NULL.
 * @pages: the pages by number; event.c tells more.
 * @next_number: the lowest number that never had a page.
 * @partial: pages with a usable slot, those without an event at the end.
 * @nr_empty: how many these are.
 */
struct event_table {
	struct account *account;
	struct xarray pages;
	u32 next_number;
	struct list_head partial;
	unsigned int nr_empty;
};

/**
 * struct event_page - events of one table, aligned to EVENT_PAGE_SIZE
 * @table: the table.
 * @partial: its place in the table's list of pages with a usable slot.
 * @usable: a bit for each slot that is FREE and may be used again.
 * @used: how many slots are not FREE.
 * @number: the page's part of the indices.
 * @events: the slots.
 */
struct event_page {
	struct event_table *table;
	struct list_head partial;
	u64 usable;
	u32 used;
	u32 number;
	struct event events[EVENT_PAGE_EVENTS];
};

static inline struct event_page *page_of(const struct event *event)
{
	return PTR_ALIGN_DOWN((struct event_page *)event, EVENT_PAGE_SIZE);
}

static inline u32 event_index(const struct event *event)
{
	const struct event_page *page = page_of(event);

	return page->number << EVENT_INDEX_BITS | (event - page->events);
}

static inline u64 event_id(const struct event *event)
{
	return (u64)event->node.tag << 32 | event_index(event);
}

static inline void event_set_state(struct event *event, enum event_state state)
{
	/* Pairs with event_state(): READY comes with the flags that say why. */
	smp_store_release(&event->node.state, state);
}

static inline enum event_state event_state(const struct event *event)
{
	/* Pairs with event_set_state(). */
	return smp_load_acquire(&event->node.state);
}

/* The operation of an event, or NULL. */
static inline struct event_operation *event_operation(const struct event *event)
{
	return event->node.flags & EVENT_OPERATION ? event->operation : NULL;
}

static inline u64 event_interval_ns(const struct event *event)
{
	if (event->node.flags & EVENT_OPERATION)
		return event->operation->interval_ns;
	return event->node.flags & EVENT_COMPLETED ? 0 : event->interval_ns;
}

/* Why an event is READY. */
static inline u32 event_reason(const struct event *event)
{
	if (event->node.flags & EVENT_COMPLETED)
		return TWHEEL_COMPLETED;
	return event->node.flags & EVENT_CLOCK_SET ?
	       TWHEEL_CLOCK_SET : TWHEEL_EXPIRED;
}

struct event *event_find(struct event_table *table, u64 id);
struct event *event_alloc(struct event_table *table);
void event_free(struct event *event);

int events_create(struct event_table *table);
int events_grow(struct event_table *table);
void events_trim(struct event_table *table);
void events_destroy(struct event_table *table);

int events_init(void);
void events_exit(void);

#endif /* TWHEEL_EVENT_H */
