// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a context: slots in pages, their ids, and their operations.
 *
 * Ids
 * ---
 * An id is the generation of the slot, and the page's number and the position in
 * it.  Each use of a slot has a generation of its own; a slot that had the last
 * one is never used again.  A page that is given back leaves behind, in the array
 * of pages, the generation that its number goes on with.  So no id matches a later
 * event, and whatever 64 bits a caller brings are either an event of his or not.
 *
 * A page belongs to a context and is aligned, so an event finds its page and the page
 * names the context: no pointer per event.
 */
#include <linux/err.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "context.h"

static_assert(sizeof(struct event) <= 64);
static_assert(sizeof(struct event_page) <= EVENT_PAGE_SIZE);
static_assert(offsetof(struct event, fired_ns) + sizeof(u64) <=
	      offsetof(struct event, node.base));
static_assert(EVENT_PAGE_EVENTS < 1 << EVENT_INDEX_BITS);

/*
 * In &struct context.pages, a number without a page has a value, the generation that
 * its slots begin with, and this mark unless that is used up.
 */
#define PAGE_VACANT	XA_MARK_0

/* An ADD at the limit of a memory cgroup fails; nobody is killed for it. */
#define EVENT_GFP	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

static struct kmem_cache *page_cache;
static struct kmem_cache *operation_cache;

/* --- pages ------------------------------------------------------------------ */

static struct event_page *page_create(struct context *context, u32 number,
				      u32 generation)
{
	struct event_page *page = kmem_cache_alloc(page_cache, EVENT_GFP);
	unsigned int i;

	if (!page)
		return NULL;
	page->context = context;
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
 * @context: the context.
 *
 * Context: a task that holds the mutex and no base; sleeps.
 *
 * Return: 0; -ENOSPC, there are no more ids, or the user is full; -ENOMEM.
 */
int events_grow(struct context *context)
{
	unsigned long number = 0;
	struct event_page *page;
	u32 generation = 1;
	void *vacant, *old;

	vacant = xa_find(&context->pages, &number, ULONG_MAX, PAGE_VACANT);
	if (vacant)
		generation = xa_to_value(vacant);
	else
		number = context->next_number;
	if (number >= EVENT_PAGES_MAX ||
	    !account_charge(context->account, EVENT_PAGE_EVENTS))
		return -ENOSPC;

	page = page_create(context, number, generation);
	if (!page)
		goto no_page;
	old = xa_store(&context->pages, number, page, EVENT_GFP);
	if (xa_is_err(old))
		goto no_place;
	if (vacant)
		xa_clear_mark(&context->pages, number, PAGE_VACANT);
	else
		context->next_number++;
	list_add_tail(&page->partial, &context->partial);
	context->nr_empty++;
	return 0;

no_place:
	kmem_cache_free(page_cache, page);
no_page:
	account_uncharge(context->account, EVENT_PAGE_EVENTS);
	return -ENOMEM;
}

static void page_free(struct event_page *page)
{
	account_uncharge(page->context->account, EVENT_PAGE_EVENTS);
	kmem_cache_free(page_cache, page);
}

/* Give an empty page back; its number remembers how far its slots have come. */
static void page_release(struct context *context, struct event_page *page)
{
	u32 generation = 0;
	unsigned int i;

	for (i = 0; i < EVENT_PAGE_EVENTS; i++)
		generation = max(generation, page->events[i].node.tag);

	/* Replaces an entry, which needs no memory. */
	xa_store(&context->pages, page->number, xa_mk_value(generation), GFP_KERNEL);
	if (generation <= EVENT_GENERATION_MAX)
		xa_set_mark(&context->pages, page->number, PAGE_VACANT);
	list_del(&page->partial);
	context->nr_empty--;
	page_free(page);
}

/**
 * events_trim() - give empty pages back
 * @context: the context.
 *
 * One stays, so that a lone event does not cost a page each time.
 *
 * Context: as events_grow().
 */
void events_trim(struct context *context)
{
	while (context->nr_empty > 1) {
		page_release(context, list_last_entry(&context->partial,
						      struct event_page,
						      partial));
		cond_resched();
	}
}

/* --- events ----------------------------------------------------------------- */

/**
 * event_find() - the event of an id
 * @context: the context, whose mutex is held.
 * @id: any number.
 *
 * Return: the event; NULL: there is none.
 */
struct event *event_find(struct context *context, u64 id)
{
	u32 slot = id & ((1U << EVENT_INDEX_BITS) - 1);
	struct event_page *page;
	struct event *event;

	lockdep_assert_held(&context->mutex);
	page = xa_load(&context->pages, (u32)id >> EVENT_INDEX_BITS);
	if (!page || xa_is_value(page) || slot >= EVENT_PAGE_EVENTS)
		return NULL;

	event = &page->events[array_index_nospec(slot, EVENT_PAGE_EVENTS)];
	if (event->node.tag != id >> 32 || event_state(event) == EVENT_FREE)
		return NULL;
	return event;
}

/**
 * event_alloc() - take a slot
 * @context: the context, which has a page with a usable one.
 *
 * Return: an event that is nowhere; its state is FREE until it is armed.
 */
struct event *event_alloc(struct context *context)
{
	struct event_page *page = list_first_entry(&context->partial,
						   struct event_page, partial);
	struct event *event = &page->events[__ffs64(page->usable)];

	page->usable &= page->usable - 1;
	if (!page->usable)
		list_del(&page->partial);
	if (!page->used++)
		context->nr_empty--;
	wheel_node_init(&event->node.wheel);
	return event;
}

/**
 * event_free() - give a slot back
 * @context: the context; events_trim() must follow.
 * @event: an event without operation, on no wheel and in no queue.
 */
void event_free(struct context *context, struct event *event)
{
	struct event_page *page = page_of(event);

	event_set_state(event, EVENT_FREE);
	page->used--;
	if (event->node.tag++ < EVENT_GENERATION_MAX) {
		if (!page->usable)
			list_add(&page->partial, &context->partial);
		page->usable |= BIT_ULL(event - page->events);
	}
	/* One whose slots are all used up stays until the end. */
	if (!page->used && page->usable) {
		list_move_tail(&page->partial, &context->partial);
		context->nr_empty++;
	}
}

/* --- operations and watches ------------------------------------------------- */

/*
 * Watches are charged to the user in blocks, as events are.  The table of keys is in
 * proportion to them; it alone is not charged to a memory cgroup.
 */
#define WATCH_BLOCK	64

static bool charge_watch(struct context *context)
{
	if (context->nr_watches == context->watches_charged) {
		if (!account_charge(context->account, WATCH_BLOCK))
			return false;
		context->watches_charged += WATCH_BLOCK;
	}
	context->nr_watches++;
	return true;
}

/* One block stays, so that a lone watch does not touch the account each time. */
static void uncharge_watches(struct context *context, unsigned int nr)
{
	context->nr_watches -= nr;
	while (context->watches_charged - context->nr_watches >= 2 * WATCH_BLOCK) {
		account_uncharge(context->account, WATCH_BLOCK);
		context->watches_charged -= WATCH_BLOCK;
	}
}

/**
 * operation_create() - make an operation for an event
 * @quorum: how many watches have to be satisfied.
 * @interval_ns: the event's period, or 0.
 *
 * Return: the operation, for event_set_operation() or operation_free(); NULL for
 * want of memory.
 */
struct operation *operation_create(u32 quorum, u64 interval_ns)
{
	struct operation *operation = kmem_cache_alloc(operation_cache, EVENT_GFP);

	if (!operation)
		return NULL;
	*operation = (struct operation){
		.quorum = quorum,
		.interval_ns = interval_ns,
	};
	watcher_init(&operation->watcher);
	return operation;
}

/**
 * operation_free() - free an operation that no event has
 * @operation: the operation, or NULL.
 */
void operation_free(struct operation *operation)
{
	if (operation)
		kmem_cache_free(operation_cache, operation);
}

/**
 * event_set_operation() - give an event its operation
 * @event: an event without one, that is on no wheel, or whose base is held.
 * @operation: the operation.
 */
void event_set_operation(struct event *event, struct operation *operation)
{
	operation->event = event;
	event->operation = operation;
	event->node.flags |= EVENT_OPERATION;
}

/* The table of keys, NULL for want of memory. */
static struct rhashtable *events_keys(struct context *context)
{
	struct rhashtable *keys;

	if (context->keys)
		return context->keys;
	keys = kzalloc(sizeof(*keys), EVENT_GFP | __GFP_ACCOUNT);
	if (!keys)
		return NULL;
	if (keys_init(keys)) {
		kfree(keys);
		return NULL;
	}
	context->keys = keys;
	return keys;
}

/**
 * event_new_watch() - make a watch of a key
 * @context: the context.
 * @key: the key.
 *
 * Context: as events_grow().
 *
 * Return: the watch, not linked, for event_free_watch(); ERR_PTR(-ENOSPC), the
 * user is full; ERR_PTR(-ENOMEM).
 */
struct watch *event_new_watch(struct context *context, u64 key)
{
	struct rhashtable *keys = events_keys(context);
	struct watch *watch;

	if (!keys)
		return ERR_PTR(-ENOMEM);
	if (!charge_watch(context))
		return ERR_PTR(-ENOSPC);
	watch = watch_create(keys, key, EVENT_GFP | __GFP_ACCOUNT);
	if (watch)
		return watch;
	uncharge_watches(context, 1);
	return ERR_PTR(-ENOMEM);
}

/**
 * event_free_watch() - free a watch
 * @context: the context.
 * @watch: the watch, linked or not.
 */
void event_free_watch(struct context *context, struct watch *watch)
{
	watch_free(context->keys, watch);
	uncharge_watches(context, 1);
}

/**
 * event_free_watches() - free the watches of an event
 * @context: the context.
 * @event: an event with an operation.
 *
 * Context: as events_grow().
 */
void event_free_watches(struct context *context, struct event *event)
{
	struct twheel_watcher *watcher = &event->operation->watcher;
	unsigned int nr = watcher->nr_watches;

	watcher_drop(context->keys, watcher);
	uncharge_watches(context, nr);
	cond_resched();
}

/**
 * event_free_operation() - free the operation of an event, and its watches
 * @context: the context.
 * @event: an event with an operation, on no wheel.
 *
 * Context: as events_grow().
 */
void event_free_operation(struct context *context, struct event *event)
{
	struct operation *operation = event->operation;

	event_free_watches(context, event);
	event->interval_ns = operation->interval_ns;
	event->node.flags &= ~EVENT_OPERATION;
	operation_free(operation);
}

/* --- beginning and end ------------------------------------------------------ */

static void page_free_operations(struct event_page *page)
{
	unsigned int i;

	for (i = 0; i < EVENT_PAGE_EVENTS; i++) {
		if (event_operation(&page->events[i]))
			event_free_operation(page->context, &page->events[i]);
	}
}

static void free_keys(struct context *context)
{
	account_uncharge(context->account, context->watches_charged);
	if (!context->keys)
		return;
	keys_destroy(context->keys);
	kfree(context->keys);
}

/**
 * events_destroy() - free all that a context has of events
 * @context: the context, none of whose events is on a wheel.
 */
void events_destroy(struct context *context)
{
	struct event_page *page;
	unsigned long number;

	xa_for_each(&context->pages, number, page) {
		if (!xa_is_value(page)) {
			page_free_operations(page);
			page_free(page);
		}
		cond_resched();
	}
	xa_destroy(&context->pages);
	free_keys(context);
}

/**
 * events_init() - before the first event
 *
 * Return: 0 or -ENOMEM; then events_exit() undoes what was done.
 */
int events_init(void)
{
	page_cache = kmem_cache_create("twheel_events", EVENT_PAGE_SIZE,
				       EVENT_PAGE_SIZE, SLAB_ACCOUNT, NULL);
	operation_cache = kmem_cache_create("twheel_operations",
					    sizeof(struct operation), 0,
					    SLAB_ACCOUNT, NULL);
	return page_cache && operation_cache ? 0 : -ENOMEM;
}

/**
 * events_exit() - after the last one
 */
void events_exit(void)
{
	kmem_cache_destroy(operation_cache);
	kmem_cache_destroy(page_cache);
}
