// SPDX-License-Identifier: GPL-2.0
/*
 * Events: slots in pages, and their ids.
 *
 * Ids
 * ---
 * An id consists of the generation of the slot, the number of the page, and the position
 * in the page.  Each use of a slot has its own generation; a slot that had the last one
 * is never used again.  When a page is freed, its number keeps the generation with which
 * the next page of that number begins.  So no id matches a later event, and any 64 bits
 * that a caller passes name one of its events or none.
 *
 * The numbers are an array, which grows by doubling and stays as long as the table, so
 * that an id leads to its event by two loads.  A number without a page is used again
 * before a new one, unless its generations are used up.
 *
 * A page belongs to a table and is aligned, so an event finds its page and the page
 * names the table, which is a part of a context: no pointer per event.
 *
 * The caller serialises all calls for a table.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "event.h"

static_assert(sizeof(struct twheel_node) == 32);
static_assert(sizeof(struct event) == 64);
static_assert(sizeof(struct event_page) == EVENT_PAGE_SIZE);
static_assert(EVENT_PAGE_SLOTS - EVENT_SLOT_FIRST == EVENT_PAGE_EVENTS);
static_assert(offsetof(struct event, fired_ns) + sizeof(u64) <=
	      offsetof(struct event, node.base));
static_assert(EVENT_PAGE_SLOTS == 1 << EVENT_INDEX_BITS);
static_assert(EVENT_READY < 1 << EVENT_STATE_BITS);
static_assert(TWHEEL_CLOCK_SET << EVENT_STATE_BITS <= U8_MAX);
static_assert(!((EVENT_BY_MONOTONIC | EVENT_CANCEL_ON_SET | EVENT_MISSED_SET |
		 EVENT_OPERATION) & (NODE_EVENT | NODE_DEADLINE)));
static_assert(offsetofend(struct event_page, number) <= sizeof(struct event));

/* The length of the first array of numbers. */
#define NUMBERS_MIN	8

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
	page->usable = GENMASK_ULL(EVENT_PAGE_SLOTS - 1, EVENT_SLOT_FIRST);
	page->used = 0;
	page->number = number;
	for (i = EVENT_SLOT_FIRST; i < EVENT_PAGE_SLOTS; i++) {
		page->slots[i].node = (struct twheel_node){
			.flags = NODE_EVENT,
			.state = EVENT_FREE,
			.tag = generation,
		};
	}
	return page;
}

/*
 * More than a page is got by vmalloc: looking for contiguous pages could take long, and
 * other tasks wait for the mutex.
 */
static struct event_number *numbers_alloc(u32 room)
{
	size_t size = array_size(room, sizeof(struct event_number));

	return size > PAGE_SIZE ? __vmalloc(size, EVENT_GFP | __GFP_ACCOUNT) :
	       kmalloc(size, EVENT_GFP | __GFP_ACCOUNT);
}

/* Make the array of numbers longer; false: there is no memory. */
static bool numbers_grow(struct event_table *table)
{
	u32 room = max(2 * table->room, (u32)NUMBERS_MIN);
	struct event_number *numbers = numbers_alloc(room);

	if (!numbers)
		return false;
	if (table->numbers)
		memcpy(numbers, table->numbers, table->nr_numbers * sizeof(*numbers));
	kvfree(table->numbers);
	table->numbers = numbers;
	table->room = room;
	return true;
}

/* Take a number that has no page; NULL: there is no memory. */
static struct event_number *number_take(struct event_table *table)
{
	struct event_number *number;

	if (table->vacant) {
		number = &table->numbers[table->vacant - 1];
		table->vacant = number->next_vacant;
		return number;
	}
	if (table->nr_numbers == table->room && !numbers_grow(table))
		return NULL;
	number = &table->numbers[table->nr_numbers++];
	*number = (struct event_number){ .generation = 1 };
	return number;
}

/* Give back a number that has no page any more, or never had one. */
static void number_give(struct event_table *table, struct event_number *number)
{
	number->page = NULL;
	if (number->generation > EVENT_GENERATION_MAX)
		return;
	number->next_vacant = table->vacant;
	table->vacant = number - table->numbers + 1;
}

/* Get an empty page.  Returns as events_make_room(). */
static int events_grow(struct event_table *table)
{
	struct event_number *number;

	if (!table->vacant && table->nr_numbers == EVENT_PAGES_MAX)
		return -ENOSPC;
	if (!account_charge(table->account, EVENT_PAGE_EVENTS))
		return -ENOSPC;

	number = number_take(table);
	if (!number)
		goto no_number;
	number->page = page_create(table, number - table->numbers, number->generation);
	if (!number->page)
		goto no_page;
	hlist_add_head(&number->page->place, &table->empty);
	table->nr_empty++;
	return 0;

no_page:
	number_give(table, number);
no_number:
	account_uncharge(table->account, EVENT_PAGE_EVENTS);
	return -ENOMEM;
}

/**
 * events_make_room() - make sure that there is a usable slot
 * @table: the table; all its pages that have events are full.  The caller adds an event.
 *
 * Context: a task that holds the mutex and no base; sleeps.
 *
 * Return: 0; -ENOSPC, there are no more ids, or the user has as many events as allowed;
 * -ENOMEM.
 */
int events_make_room(struct event_table *table)
{
	struct hlist_node *place;

	if (!table->nr_empty) {
		int ret = events_grow(table);

		if (ret)
			return ret;
	}
	place = table->empty.first;
	hlist_del(place);
	hlist_add_head(place, &table->partial);
	table->nr_empty--;
	return 0;
}

/**
 * page_end() - the last event of a page was freed
 * @page: the page.
 */
void page_end(struct event_page *page)
{
	/* A page whose slots are all used up stays until the table is freed. */
	if (!page->usable)
		return;
	hlist_del(&page->place);
	hlist_add_head(&page->place, &page->table->empty);
	page->table->nr_empty++;
}

/**
 * events_page_from() - the page with the lowest number that is not below @number
 * @table: the table.
 * @number: the number; out: that of the page.
 *
 * Context: a task that holds the mutex, or the last user of the context; sleeps.
 *
 * Return: the page, or NULL.
 */
struct event_page *events_page_from(const struct event_table *table, u32 *number)
{
	for (; *number < table->nr_numbers; ++*number) {
		if (table->numbers[*number].page)
			return table->numbers[*number].page;
		cond_resched();
	}
	return NULL;
}

static void page_free(struct event_page *page)
{
	account_uncharge(page->table->account, EVENT_PAGE_EVENTS);
	kmem_cache_free(page_cache, page);
}

/* Free an empty page; its number keeps the highest generation of its slots. */
static void page_release(struct event_table *table, struct event_page *page)
{
	struct event_number *number = &table->numbers[page->number];
	unsigned int i;

	for (i = EVENT_SLOT_FIRST; i < EVENT_PAGE_SLOTS; i++)
		number->generation = max(number->generation, page->slots[i].node.tag);
	number_give(table, number);
	hlist_del(&page->place);
	table->nr_empty--;
	page_free(page);
}

/* Free all empty pages but one, for events_trim(). */
void events_free_pages(struct event_table *table)
{
	while (table->nr_empty > 1) {
		page_release(table, hlist_entry(table->empty.first, struct event_page,
						place));
		cond_resched();
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
	table->numbers = NULL;
	table->nr_numbers = 0;
	table->room = 0;
	table->vacant = 0;
	INIT_HLIST_HEAD(&table->partial);
	INIT_HLIST_HEAD(&table->empty);
	table->nr_empty = 0;
	return 0;
}

/**
 * events_destroy() - free the pages of a table
 * @table: the table, none of whose events is on a wheel or has an operation.
 */
void events_destroy(struct event_table *table)
{
	struct event_page *page;
	u32 number;

	for (number = 0; (page = events_page_from(table, &number)); number++) {
		page_free(page);
		cond_resched();
	}
	kvfree(table->numbers);
	account_close(table->account);
}

/**
 * events_init() - make the cache of pages, before the first event
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
 * events_exit() - free the cache of pages, also if there is none
 */
void events_exit(void)
{
	kmem_cache_destroy(page_cache);
}
