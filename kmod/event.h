/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: slots in pages, and their ids.
 *
 * event.c tells what an id is, context.c which lock guards what.
 */
#ifndef TWHEEL_EVENT_H
#define TWHEEL_EVENT_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/nospec.h>

#include "account.h"
#include "base.h"
#include "twheel.h"
#include "uapi/linux/twheel.h"

/* At the limit of a memory cgroup the allocation fails; no process is killed. */
#define EVENT_GFP	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* The last generation of a slot, which is not used again after it. */
#define EVENT_GENERATION_MAX	((u32)S32_MAX)

/*
 * &struct event.node.state has one of these in its lower bits, and above them why a READY
 * event is READY.  ARMED and READY have the values that userspace sees, the reasons too.
 */
enum event_state {
	EVENT_FREE = 0,
	EVENT_ARMED = TWHEEL_ARMED,
	EVENT_READY = TWHEEL_READY,
};

#define EVENT_STATE_BITS	2

/* &struct event.node.flags, besides NODE_EVENT and NODE_DEADLINE; bits 4 and 5 are free */
#define EVENT_BY_MONOTONIC	BIT(0)	/* relative, of a context on CLOCK_REALTIME */
#define EVENT_CANCEL_ON_SET	BIT(1)	/* ends when the clock is set */
#define EVENT_MISSED_SET	BIT(2)	/* periodic: it was READY when the clock was set */
#define EVENT_OPERATION		BIT(3)	/* it has an operation */

/**
 * struct event - a delayed event
 * @node: ARMED: its place on a wheel.  Always: its state and the reason for it, its flags,
 *	and its generation (the tag); while it is FREE, that of its next use.
 * @ready: READY: its place in the ready queue.
 * @fired_ns: READY: when it became READY, on the context's clock.
 * @data: the caller's cookie.
 * @due_ns: when it is due, as the caller sees it; of a periodic event with
 *	EVENT_BY_MONOTONIC, on CLOCK_MONOTONIC; of a READY event with NODE_DEADLINE, the
 *	time of its word when it became READY.
 * @interval_ns: its period, or 0; unless the union has one of the following.
 * @deadline: with NODE_DEADLINE: the index of the word.
 * @operation: with EVENT_OPERATION: its operation.
 * @value: READY because it was completed, without operation: the value of the COMPLETE.
 * @slack_ns: its slack.
 *
 * It is on a wheel or in the ready queue, never both, so both share memory and expiry
 * allocates none.  It has its own cache line.
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
		u64 deadline;
		struct event_operation *operation;
		u64 value;
	};
	u64 slack_ns;
} __aligned(64);

/**
 * struct event_operation - fields that few events need, mostly those that watch keys
 * @event: the event.
 * @watcher: its watches; they are dead if the event is READY.
 * @quorum: how many watches have to be satisfied.
 * @satisfied: how many watches were satisfied.
 * @signalled: COMPLETED: a signal completed it.
 * @interval_ns: the event's period, or 0.
 * @deadline: with NODE_DEADLINE, instead: the index of the word.
 * @value: COMPLETED: the value of the SIGNAL or COMPLETE.
 * @key: COMPLETED: the key of the SIGNAL, or 0.
 */
struct event_operation {
	struct event *event;
	struct twheel_watcher watcher;
	u16 quorum;
	u16 satisfied;
	bool signalled;
	union {
		u64 interval_ns;
		u64 deadline;
	};
	u64 value;
	u64 key;
};

/*
 * A page of events has 64 slots of 64 bytes, so the index of an event consists of the
 * page's number and six bits for the slot.  Slot 0 is the head of the page.
 */
#define EVENT_PAGE_SIZE		4096
#define EVENT_PAGE_SLOTS	64
#define EVENT_SLOT_FIRST	1
#define EVENT_PAGE_EVENTS	63
#define EVENT_INDEX_BITS	6
#define EVENT_PAGES_MAX		(1U << (32 - EVENT_INDEX_BITS))

/**
 * struct event_number - the number of a page
 * @page: the page, or NULL.
 * @generation: the first generation of the slots of its page; without a page: of those
 *	of the next page.
 * @next_vacant: without a page: see &struct event_table.vacant.
 */
struct event_number {
	struct event_page *page;
	u32 generation;
	u32 next_vacant;
};

/**
 * struct event_table - the events of a context
 * @account: the account that is charged for them, the opener's; or NULL.
 * @numbers: an array of all numbers of pages that were ever used.
 * @nr_numbers: how many numbers there are.
 * @room: the length of the array.
 * @vacant: a number, plus 1, that has no page and may get another one; it names the
 *	next such number, and so on; 0: there is none.
 * @partial: pages with a usable slot that have an event, or are about to get one.
 * @empty: pages with a usable slot and no event.
 * @nr_empty: how many pages are in @empty.
 */
struct event_table {
	struct account *account;
	struct event_number *numbers;
	u32 nr_numbers;
	u32 room;
	u32 vacant;
	struct hlist_head partial;
	struct hlist_head empty;
	unsigned int nr_empty;
};

/**
 * struct event_page - events of one table, aligned to EVENT_PAGE_SIZE
 * @table: the table.
 * @usable: a bit for each slot that is FREE and may be used again.
 * @place: its place in one of the table's lists, if it has a usable slot.
 * @used: how many slots are not FREE.
 * @number: the page's number, a part of the indices of its events.
 * @slots: the slots; from EVENT_SLOT_FIRST on they are events.
 */
struct event_page {
	union {
		struct {
			struct event_table *table;
			u64 usable;
			struct hlist_node place;
			u32 used;
			u32 number;
		};
		struct event slots[EVENT_PAGE_SLOTS];
	};
};

static inline struct event_page *page_of(const struct event *event)
{
	return PTR_ALIGN_DOWN((struct event_page *)event, EVENT_PAGE_SIZE);
}

/* The position of an event in its page. */
static inline u32 event_slot(const struct event *event)
{
	return event - page_of(event)->slots;
}

static inline u32 event_index(const struct event *event)
{
	return page_of(event)->number << EVENT_INDEX_BITS | event_slot(event);
}

static inline u64 event_id(const struct event *event)
{
	return (u64)event->node.tag << 32 | event_index(event);
}

/* Make an event FREE or ARMED. */
static inline void event_set_state(struct event *event, enum event_state state)
{
	/* Pairs with event_state(). */
	smp_store_release(&event->node.state, state);
}

/* Make an event READY; @reason is as in &struct twheel_record.reason. */
static inline void event_set_ready(struct event *event, u32 reason)
{
	/* Pairs with event_state(): whoever reads READY sees what was written before. */
	smp_store_release(&event->node.state, EVENT_READY | reason << EVENT_STATE_BITS);
}

static inline enum event_state event_state(const struct event *event)
{
	/* Pairs with event_set_state() and event_set_ready(). */
	return smp_load_acquire(&event->node.state) & ((1U << EVENT_STATE_BITS) - 1);
}

/* Why an event is READY; TWHEEL_EXPIRED, which is 0, also if it is not. */
static inline u32 event_reason(const struct event *event)
{
	return READ_ONCE(event->node.state) >> EVENT_STATE_BITS;
}

/* The operation of an event, or NULL. */
static inline struct event_operation *event_operation(const struct event *event)
{
	return event->node.flags & EVENT_OPERATION ? event->operation : NULL;
}

static inline u64 event_interval_ns(const struct event *event)
{
	u8 flags = event->node.flags;

	if (flags & NODE_DEADLINE)
		return 0;
	if (flags & EVENT_OPERATION)
		return event->operation->interval_ns;
	return event_reason(event) == TWHEEL_COMPLETED ? 0 : event->interval_ns;
}

/* With NODE_DEADLINE: the index of the event's word. */
static inline u32 event_deadline(const struct event *event)
{
	if (event->node.flags & EVENT_OPERATION)
		return event->operation->deadline;
	return event->deadline;
}

/**
 * event_find() - find the event of an id
 * @table: the table.
 * @id: any number.
 *
 * Return: the event; NULL: there is none.
 */
static inline struct event *event_find(const struct event_table *table, u64 id)
{
	u32 number = (u32)id >> EVENT_INDEX_BITS;
	u32 slot = id % EVENT_PAGE_SLOTS;
	struct event_page *page;
	struct event *event;

	if (number >= table->nr_numbers || !slot)
		return NULL;
	page = table->numbers[array_index_nospec(number, table->nr_numbers)].page;
	if (!page)
		return NULL;
	event = &page->slots[slot];
	/* Keep this address, do not calculate it again each time: figures in user_words.h. */
	OPTIMIZER_HIDE_VAR(event);
	if (event->node.tag != id >> 32 || event_state(event) == EVENT_FREE)
		return NULL;
	return event;
}

/* Does events_make_room() have to be called before event_alloc()? */
static inline bool events_lack_room(const struct event_table *table)
{
	return hlist_empty(&table->partial);
}

/**
 * event_alloc() - take a slot
 * @table: the table, which does not lack room.
 *
 * Return: an event that is nowhere; its state is FREE until it is armed.
 */
static inline struct event *event_alloc(struct event_table *table)
{
	struct event_page *page = hlist_entry(table->partial.first, struct event_page,
					      place);
	struct event *event = &page->slots[__ffs64(page->usable)];

	/* As in event_find(). */
	OPTIMIZER_HIDE_VAR(event);
	page->used++;
	page->usable &= page->usable - 1;
	if (!page->usable)
		__hlist_del(&page->place);
	wheel_node_init(&event->node.wheel);
	return event;
}

void page_end(struct event_page *page);

/**
 * event_free() - free a slot
 * @event: an event without operation, on no wheel and in no queue.
 *
 * events_trim() must follow.
 */
static inline void event_free(struct event *event)
{
	struct event_page *page = page_of(event);

	event_set_state(event, EVENT_FREE);
	if (event->node.tag++ < EVENT_GENERATION_MAX) {
		if (!page->usable)
			hlist_add_head(&page->place, &page->table->partial);
		page->usable |= BIT_ULL(event_slot(event));
	}
	if (!--page->used)
		page_end(page);
}

struct event_page *events_page_from(const struct event_table *table, u32 *number);

int events_create(struct event_table *table);
int events_make_room(struct event_table *table);
void events_free_pages(struct event_table *table);
void events_destroy(struct event_table *table);

/**
 * events_trim() - free empty pages
 * @table: the table.
 *
 * One stays, so that a lone event that comes and goes does not allocate a page each time.
 *
 * Context: as events_make_room().
 */
static inline void events_trim(struct event_table *table)
{
	if (table->nr_empty > 1)
		events_free_pages(table);
}

int events_init(void);
void events_exit(void);

#endif /* TWHEEL_EVENT_H */
