// SPDX-License-Identifier: GPL-2.0
/*
 * Operations, which are events that watch keys: WATCH, SIGNAL and COMPLETE.
 *
 * An event that watches keys, or has a quorum, has an &struct event_operation for the
 * fields that few events need.  An event that is periodic or has TWHEEL_DEADLINE gets one
 * when it is completed.  watch.c tells how a signal finds the watches that it satisfies.
 *
 * The mutex of the context guards all of this; expiry accesses neither keys nor watches.
 * When an event becomes READY, its watches stay linked, but are dead: a signal that
 * satisfies them finds that the event is not ARMED.  They are freed then, or with the
 * event, or when it is armed again.
 */
#include <linux/err.h>
#include <linux/rhashtable.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "event_operation.h"
#include "ready.h"

static struct kmem_cache *operation_cache;

/* --- operations and watches ------------------------------------------------- */

/*
 * Watches are charged to the user in blocks, like events.  The table of keys is not
 * charged to a memory cgroup; its size is proportional to the number of watches.
 */
#define WATCH_BLOCK	64

static bool charge_watch(struct context *context)
{
	lockdep_assert_held(&context->mutex);
	if (context->nr_watches == context->watches_charged) {
		if (!account_charge(context->events.account, WATCH_BLOCK))
			return false;
		context->watches_charged += WATCH_BLOCK;
	}
	context->nr_watches++;
	return true;
}

/* One block stays charged, so that a lone watch does not change the account each time. */
static void uncharge_watches(struct context *context, unsigned int nr)
{
	context->nr_watches -= nr;
	while (context->watches_charged - context->nr_watches >= 2 * WATCH_BLOCK) {
		account_uncharge(context->events.account, WATCH_BLOCK);
		context->watches_charged -= WATCH_BLOCK;
	}
}

/**
 * event_operation_create() - make an operation for an event
 * @quorum: how many watches have to be satisfied.
 * @interval_ns: the event's period, or the other member of that union.
 *
 * Return: the operation, for event_set_operation(); NULL if there is no memory.
 */
struct event_operation *event_operation_create(u32 quorum, u64 interval_ns)
{
	struct event_operation *operation = kmem_cache_alloc(operation_cache, EVENT_GFP);

	if (!operation)
		return NULL;
	*operation = (struct event_operation){
		.quorum = quorum,
		.interval_ns = interval_ns,
	};
	watcher_init(&operation->watcher);
	return operation;
}

/**
 * event_operation_free() - free an operation that no event has
 * @operation: the operation, or NULL.
 */
void event_operation_free(struct event_operation *operation)
{
	if (operation)
		kmem_cache_free(operation_cache, operation);
}

/**
 * event_set_operation() - give an event its operation
 * @event: an event without an operation; it is on no wheel, or its base is held.
 * @operation: the operation.
 */
void event_set_operation(struct event *event, struct event_operation *operation)
{
	operation->event = event;
	event->operation = operation;
	event->node.flags |= EVENT_OPERATION;
}

/* The table of keys, made if there is none; NULL: there is no memory. */
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

/*
 * Make a watch of a key, not linked yet.  No base is held.
 *
 * Returns ERR_PTR(-ENOSPC) if the user has as many as allowed; ERR_PTR(-ENOMEM).
 */
static struct watch *event_new_watch(struct context *context, u64 key)
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

/* Free a watch, linked or not. */
static void event_free_watch(struct context *context, struct watch *watch)
{
	watch_free(context->keys, watch);
	uncharge_watches(context, 1);
}

/**
 * event_free_watches() - free the watches of an event
 * @context: the context.
 * @event: an event with an operation.
 *
 * Context: a task that holds the mutex and no base; sleeps.
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
 * Context: a task that holds the mutex and no base; sleeps.
 */
void event_free_operation(struct context *context, struct event *event)
{
	struct event_operation *operation = event->operation;

	event_free_watches(context, event);
	event->interval_ns = operation->interval_ns;
	event->node.flags &= ~EVENT_OPERATION;
	event_operation_free(operation);
}

/* --- commands --------------------------------------------------------------- */

/* Hold the base of an event if it is ARMED.  Returns 0 or -EALREADY. */
static int event_hold_armed(struct context_batch *batch, struct event *event)
{
	base_hold_node(&batch->hold, &event->node);
	return event_state(event) == EVENT_ARMED ? 0 : -EALREADY;
}

/*
 * Make an operation for an ARMED event that has none, and hold its base.
 *
 * Returns 0; -EALREADY, it is READY; -ENOMEM.  Then no base is held.
 */
static int event_make_operation(struct context_batch *batch, struct event *event)
{
	struct event_operation *operation = NULL;
	int ret;

	if (!event_operation(event)) {
		base_release(&batch->hold);
		operation = event_operation_create(1, event->interval_ns);
		if (!operation)
			return -ENOMEM;
	}
	ret = event_hold_armed(batch, event);
	if (ret) {
		base_release(&batch->hold);
		event_operation_free(operation);
	} else if (operation) {
		event_set_operation(event, operation);
	}
	return ret;
}

/**
 * context_watch() - let signals on a key complete an event
 * @batch: the batch.
 * @cmd: a well-formed WATCH.
 *
 * Return: 0; -ENOENT, no such event, or the ADD before it failed; -EINVAL, the event is
 * periodic; -EALREADY, it is READY; -ENOSPC, it has TWHEEL_MAX_WATCHES, or the user has
 * as many as allowed; -ENOMEM.
 */
int context_watch(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	struct event *event = batch_find(batch, cmd->id ?: batch->last_add);
	struct event_operation *operation;
	struct watch *watch;
	int ret;

	if (!event)
		return -ENOENT;
	if (event_interval_ns(event))
		return -EINVAL;
	if (event_state(event) == EVENT_READY)
		return -EALREADY;
	operation = event_operation(event);
	if (operation && operation->watcher.nr_watches == TWHEEL_MAX_WATCHES)
		return -ENOSPC;

	base_release(&batch->hold);
	watch = event_new_watch(context, cmd->key);
	if (IS_ERR(watch))
		return PTR_ERR(watch);
	ret = event_make_operation(batch, event);
	base_release(&batch->hold);
	if (ret)
		event_free_watch(context, watch);
	else
		watch_link(watch, &event->operation->watcher,
			   cmd->flags & TWHEEL_LEVEL ? WATCH_LEVEL : WATCH_SUM,
			   cmd->value);
	return ret;
}

/*
 * Make an ARMED event, whose base is held, READY.  If it has no operation, @signalled is
 * false and @key is 0.
 */
static void event_complete(struct context_batch *batch, struct event *event,
			   bool signalled, u64 key, u64 value)
{
	struct base_hold *hold = &batch->hold;

	batch_assert_base_held(batch);
	if (event_operation(event)) {
		event->operation->signalled = signalled;
		event->operation->key = key;
		event->operation->value = value;
	} else {
		event->value = value;
	}
	if (event->node.flags & NODE_DEADLINE)
		event->due_ns = event_word_ns(event);
	base_complete(hold, &event->node, key, value);
	event_ready(event, TWHEEL_COMPLETED, hold_now_ns(hold), &batch->wake);
	batch->counts.completed++;
}

/**
 * context_complete() - complete an event
 * @batch: the batch.
 * @cmd: a well-formed COMPLETE.
 *
 * Return: 0; -ENOENT, no such event; -EALREADY, it is READY; -ENOMEM, only of an event
 * that is periodic or has TWHEEL_DEADLINE.
 */
int context_complete(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct event *event = batch_find(batch, cmd->id);
	int ret;

	if (!event)
		return -ENOENT;
	if (event_state(event) == EVENT_READY)
		return -EALREADY;
	/* The operation keeps the period, or the index of the word. */
	if (event_interval_ns(event) || event->node.flags & NODE_DEADLINE)
		ret = event_make_operation(batch, event);
	else
		ret = event_hold_armed(batch, event);
	if (!ret)
		event_complete(batch, event, false, 0, cmd->value);
	return ret;
}

static struct event_operation *operation_of(const struct watch *watch)
{
	return container_of(watch->watcher, struct event_operation, watcher);
}

/* One more watch of an operation is satisfied; true if that completes the operation. */
static bool operation_advance(struct context_batch *batch,
			      struct event_operation *operation, u64 key, u64 value)
{
	struct event *event = operation->event;

	if (++operation->satisfied != operation->quorum)
		return false;
	if (event_hold_armed(batch, event))
		return false;
	event_complete(batch, event, true, key, value);
	return true;
}

/* Unlink up to BASE_BATCH watches that a signal satisfies; false: there are no more. */
static bool take_satisfied(const struct watched_key *key, u64 value,
			   struct list_head *watches)
{
	unsigned int nr;

	for (nr = 0; nr < BASE_BATCH; nr++) {
		struct watch *watch = key_satisfied(key, value);

		if (!watch)
			return false;
		watch_unlink(watch);
		list_add_tail(&watch->siblings, watches);
	}
	return true;
}

/*
 * Satisfy watches of a key; return how many operations that completed.  If a fatal signal
 * ends it early, the value is not added for the watches that were not reached.
 */
static int signal_complete(struct context_batch *batch, struct watched_key *key,
			   u64 value)
{
	struct watch *watch, *next;
	int ended = 0;
	bool more;

	do {
		LIST_HEAD(satisfied);

		more = take_satisfied(key, value, &satisfied);
		list_for_each_entry(watch, &satisfied, siblings)
			ended += operation_advance(batch, operation_of(watch),
						   key->key, value);
		base_release(&batch->hold);
		list_for_each_entry_safe(watch, next, &satisfied, siblings)
			event_free_watch(batch->context, watch);
		cond_resched();
	} while (more && !fatal_signal_pending(current));
	if (!more)
		key->total += value;
	return ended;
}

/* Cancel an operation, or free only the watch if it has ended; true: it was cancelled. */
static bool cancel_watching(struct context_batch *batch, struct watch *watch)
{
	struct event *event = operation_of(watch)->event;

	if (event_hold_armed(batch, event)) {
		base_release(&batch->hold);
		event_free_watch(batch->context, watch);
		return false;
	}
	base_disarm(&batch->hold, &event->node);
	batch_free_event(batch, event);
	batch->counts.cancelled++;
	return true;
}

/* Cancel all operations that watch a key; return how many. */
static int signal_cancel(struct context_batch *batch, struct watched_key *key)
{
	struct watch *watch;
	int ended = 0;

	while ((watch = key_any(key)) && !fatal_signal_pending(current)) {
		ended += cancel_watching(batch, watch);
		events_trim(&batch->context->events);
		cond_resched();
	}
	return ended;
}

/**
 * context_signal() - run a SIGNAL on the watches of a key
 * @batch: the batch.
 * @cmd: a well-formed SIGNAL.
 *
 * No other command of the context is run before it has ended all operations; only a
 * fatal signal to the caller ends it early.
 *
 * Return: how many operations it ended.
 */
int context_signal(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	struct watched_key *key = NULL;
	int ended;

	base_release(&batch->hold);
	if (context->keys)
		key = keys_get(context->keys, cmd->key);
	if (!key)
		return 0;
	if (cmd->flags & TWHEEL_QUIET)
		ended = signal_cancel(batch, key);
	else
		ended = signal_complete(batch, key, cmd->value);
	keys_put(context->keys, key);
	return ended;
}

/* As context_unlinks(), of a SIGNAL of @value. */
static unsigned int signal_unlinks(struct context *context, const struct twheel_cmd *cmd,
				   u64 value, unsigned int max)
{
	struct watched_key *key = NULL;
	unsigned int nr;

	if (context->keys)
		key = keys_get(context->keys, cmd->key);
	if (!key)
		return 0;
	if (cmd->flags & TWHEEL_QUIET)
		nr = key_count_siblings(key, max);
	else
		nr = key_count_satisfied(key, value, max);
	keys_put(context->keys, key);
	return nr;
}

/* How many watches does an event have, also if they are dead? */
static unsigned int event_nr_watches(const struct event *event)
{
	const struct event_operation *operation = event_operation(event);

	return operation ? operation->watcher.nr_watches : 0;
}

/**
 * context_unlinks() - count the watches that a command would unlink
 * @context: the context, whose mutex is held.
 * @cmd: the command.
 * @value: the value to assume for a SIGNAL.
 * @max: where to stop counting.
 */
unsigned int context_unlinks(struct context *context, const struct twheel_cmd *cmd,
			     u64 value, unsigned int max)
{
	const struct event *event;

	lockdep_assert_held(&context->mutex);
	switch (cmd->op) {
	case TWHEEL_OP_SIGNAL:
		return signal_unlinks(context, cmd, value, max);
	case TWHEEL_OP_CANCEL:
		event = event_find(&context->events, cmd->id);
		return event ? min(event_nr_watches(event), max) : 0;
	case TWHEEL_OP_MODIFY:
		/* An ARMED operation keeps its watches. */
		event = event_find(&context->events, cmd->id);
		if (!event || event_state(event) == EVENT_ARMED)
			return 0;
		return min(event_nr_watches(event), max);
	default:
		return 0;
	}
}

/* --- beginning and end ------------------------------------------------------ */

static void page_free_operations(struct event_page *page)
{
	unsigned int i;

	for (i = EVENT_SLOT_FIRST; i < EVENT_PAGE_SLOTS; i++) {
		struct event *event = &page->slots[i];

		if (event_operation(event))
			event_free_operation(event_context(event), event);
	}
}

static void free_keys(struct context *context)
{
	account_uncharge(context->events.account, context->watches_charged);
	if (!context->keys)
		return;
	keys_destroy(context->keys);
	kfree(context->keys);
}

/**
 * event_operations_destroy() - free all operations, watches and keys of a context
 * @context: the context, none of whose events is on a wheel.
 */
void event_operations_destroy(struct context *context)
{
	struct event_table *table = &context->events;
	struct event_page *page;
	u32 number;

	for (number = 0; (page = events_page_from(table, &number)); number++) {
		page_free_operations(page);
		cond_resched();
	}
	free_keys(context);
}

/**
 * event_operations_init() - make the cache of operations, before the first one
 *
 * Return: 0 or -ENOMEM.
 */
int event_operations_init(void)
{
	operation_cache = kmem_cache_create("twheel_operations",
					    sizeof(struct event_operation), 0,
					    SLAB_ACCOUNT, NULL);
	return operation_cache ? 0 : -ENOMEM;
}

/**
 * event_operations_exit() - free the cache of operations, also if there is none
 */
void event_operations_exit(void)
{
	kmem_cache_destroy(operation_cache);
}
