// SPDX-License-Identifier: GPL-2.0
/*
 * Events: slots in pages, and their ids.
 *
 * Ids
 * ---
 * An id is the generation of the slot, and the page's number and the position in
 * it.  Each use of a slot has a generation of its own; a slot that had the last
 * one is never used again.  A page that is given back leaves behind, in the array
 * of pages, the generation that its number goes on with.  So no id matches a later
 * event, and any 64 bits that a caller brings name one of its events or none.
 *
 * A page belongs to a table and is aligned, so an event finds its page and the page
 * names the table, which is a part of a context: no pointer per event.
 *
 * The caller serialises all calls about a table.
 */
#include <linux/err.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "base.h"
#include "event.h"

static_assert(sizeof(struct event) <= 64);
static_assert(sizeof(struct event_page) <= EVENT_PAGE_SIZE);
static_assert(offsetof(struct event, fired_ns) + sizeof(u64) <=
	      offsetof(struct event, node.base));
static_assert(EVENT_PAGE_EVENTS < 1 << EVENT_INDEX_BITS);

/*
 * In &struct event_table.pages, a number without a page has a value, the generation that
 * its slots begin with, and this mark unless that is used up.
 */
#define PAGE_VACANT	XA_MARK_0

static struct kmem_cache *page_cache;

/* --- pages ------------------------------------------------------------------ */

static struct event_page *page_create(struct event_table *table, u32 number,
				      u32 generation)
{
	struct event_page *page = kmem_cache_alloc(page_cache, EVENT_GFP);
	unsigned int i;

	if (!page)
		return NULL;
	page->table = table;
	page->usable = GENMASK_ULL(EVENT_PAGE_EVENTS - 1, 0);
	page->used = 0;
	page->number = number;
	for (i = 0; i < EVENT_PAGE_EVENTS; i++) {
		page->events[i].node = (struct twheel_node){
			.flags = NODE_EVENT,
			.state = EVENT_FREE,
			.tag = generation,
		};
	}
	return page;
}

/**
 * events_grow() - get a page with usable slots
 * @table: the table.
 *
 * Context: a task that holds the mutex and no base; sleeps.
 *
 * Return: 0; -ENOSPC, there are no more ids, or the user is full; -ENOMEM.
 */
int events_grow(struct event_table *table)
{
	unsigned long number = 0;
	struct event_page *page;
	u32 generation = 1;
	void *vacant, *old;

	vacant = xa_find(&table->pages, &number, ULONG_MAX, PAGE_VACANT);
	if (vacant)
		generation = xa_to_value(vacant);
	else
		number = table->next_number;
	if (number >= EVENT_PAGES_MAX ||
	    !account_charge(table->account, EVENT_PAGE_EVENTS))
		return -ENOSPC;

	page = page_create(table, number, generation);
	if (!page)
		goto no_page;
	old = xa_store(&table->pages, number, page, EVENT_GFP);
	if (xa_is_err(old))
		goto no_place;
	if (vacant)
		xa_clear_mark(&table->pages, number, PAGE_VACANT);
	else
		table->next_number++;
	list_add_tail(&page->partial, &table->partial);
	table->nr_empty++;
	return 0;

no_place:
	kmem_cache_free(page_cache, page);
no_page:
	account_uncharge(table->account, EVENT_PAGE_EVENTS);
	return -ENOMEM;
}

static void page_free(struct event_page *page)
{
	account_uncharge(page->table->account, EVENT_PAGE_EVENTS);
	kmem_cache_free(page_cache, page);
}

/* Give an empty page back; its number remembers how far its slots have come. */
static void page_release(struct event_table *table, struct event_page *page)
{
	u32 generation = 0;
	unsigned int i;

	for (i = 0; i < EVENT_PAGE_EVENTS; i++)
		generation = max(generation, page->events[i].node.tag);

	/* Replaces an entry, which needs no memory. */
	xa_store(&table->pages, page->number, xa_mk_value(generation), GFP_KERNEL);
	if (generation <= EVENT_GENERATION_MAX)
		xa_set_mark(&table->pages, page->number, PAGE_VACANT);
	list_del(&page->partial);
	table->nr_empty--;
	page_free(page);
}

/**
 * events_trim() - give empty pages back
 * @table: the table.
 *
 * One stays, so that a lone event does not cost a page each time.
 *
 * Context: as events_grow().
 */
void events_trim(struct event_table *table)
{
	while (table->nr_empty > 1) {
		page_release(table, list_last_entry(&table->partial,
						    struct event_page, partial));
		cond_resched();
	}
}

/* --- events ----------------------------------------------------------------- */

/**
 * event_find() - the event of an id
 * @table: the table.
 * @id: any number.
 *
 * Return: the event; NULL: there is none.
 */
struct event *event_find(struct event_table *table, u64 id)
{
	u32 slot = id & ((1U << EVENT_INDEX_BITS) - 1);
	struct event_page *page;
	struct event *event;

	page = xa_load(&table->pages, (u32)id >> EVENT_INDEX_BITS);
	if (!page || xa_is_value(page) || slot >= EVENT_PAGE_EVENTS)
		return NULL;

	event = &page->events[array_index_nospec(slot, EVENT_PAGE_EVENTS)];
	if (event->node.tag != id >> 32 || event_state(event) == EVENT_FREE)
		return NULL;
	return event;
}

/**
 * event_alloc() - take a slot
 * @table: the table, which has a page with a usable one.
 *
 * Return: an event that is nowhere; its state is FREE until it is armed.
 */
struct event *event_alloc(struct event_table *table)
{
	struct event_page *page = list_first_entry(&table->partial,
						   struct event_page, partial);
	struct event *event = &page->events[__ffs64(page->usable)];

	page->usable &= page->usable - 1;
	if (!page->usable)
		list_del(&page->partial);
	if (!page->used++)
		table->nr_empty--;
	wheel_node_init(&event->node.wheel);
	return event;
}

/**
 * event_free() - give a slot back
 * @event: an event without operation, on no wheel and in no queue.
 *
 * events_trim() must follow.
 */
void event_free(struct event *event)
{
	struct event_page *page = page_of(event);
	struct event_table *table = page->table;

	event_set_state(event, EVENT_FREE);
	page->used--;
	if (event->node.tag++ < EVENT_GENERATION_MAX) {
		if (!page->usable)
			list_add(&page->partial, &table->partial);
		page->usable |= BIT_ULL(event - page->events);
	}
	/* One whose slots are all used up stays until the end. */
	if (!page->used && page->usable) {
		list_move_tail(&page->partial, &table->partial);
		table->nr_empty++;
	}
}

/* --- beginning and end ------------------------------------------------------ */

/**
 * events_create() - make an empty table
 * @table: the table.
 *
 * Context: a task; sleeps.
 *
 * Return: 0 or -ENOMEM.
 */
int events_create(struct event_table *table)
{
	table->account = account_open();
	if (IS_ERR(table->account))
		return PTR_ERR(table->account);
	xa_init_flags(&table->pages, XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&table->partial);
	table->next_number = 0;
	table->nr_empty = 0;
	return 0;
}

/**
 * events_destroy() - free all that a table has
 * @table: the table, none of whose events is on a wheel or has an operation.
 */
void events_destroy(struct event_table *table)
{
	struct event_page *page;
	unsigned long number;

	xa_for_each(&table->pages, number, page) {
		if (!xa_is_value(page))
			page_free(page);
		cond_resched();
	}
	xa_destroy(&table->pages);
	account_close(table->account);
}

/**
 * events_init() - before the first event
 *
 * Return: 0 or -ENOMEM.
 */
int events_init(void)
{
	page_cache = kmem_cache_create("twheel_events", EVENT_PAGE_SIZE,
				       EVENT_PAGE_SIZE, SLAB_ACCOUNT, NULL);
	return page_cache ? 0 : -ENOMEM;
}

/**
 * events_exit() - after the last one, also if there was none
 */
void events_exit(void)
{
	kmem_cache_destroy(page_cache);
}
