// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: the events of one open file, their ids, and the ready queue.
 *
 * The object model
 * ----------------
 * An open file has a context, a context has pages of events, and an event is a
 * slot of a page:
 *
 *             ADD                 due                       read
 *   FREE  ----------->  ARMED  ----------->  READY  ----------->  FREE
 *                       |   ^                |   |
 *                CANCEL |   | MODIFY         |   | CANCEL
 *                       v   |                |   v
 *                     FREE  +----------------+  FREE, no record
 *
 * Pages belong to the context and are aligned, so an event finds its page and the
 * page names the context: no pointer per event.  An event is on a wheel while it
 * is ARMED and in the ready queue while it is READY, in the same memory; expiry
 * allocates nothing and so can drop nothing.  Limits are applied by ADD.
 *
 * Ids
 * ---
 * An id is the generation of the slot, and the page's number and the position in
 * it.  Each use of a slot has a generation of its own; a slot that had the last
 * one is never used again.  A page that is given back leaves behind, in the array
 * of pages, the generation that its number goes on with.  So no id matches a later
 * event, and whatever 64 bits a caller brings are either an event of his or not.
 *
 * Locking
 * -------
 * The mutex serialises all that a process does to a context: commands, records
 * being copied out, the setting up.  User memory is touched under it and under no
 * other lock.  Only its holder frees and adds events, so an event that he found
 * stays.  Expiry, in softirq context, does one thing to an event: it makes an
 * ARMED one READY, under the lock of the event's base and the ready lock.  So
 *
 *   - the state ARMED can be relied upon only with the lock of the base held;
 *   - READY and FREE are final for everybody but the holder of the mutex.
 *
 * The ready queue has two parts, so that neither side waits for the other: expiry
 * adds to @ready under the ready lock, the reader moves all of it to the end of
 * @reading in one step, and copies out from there under the mutex alone.  A record
 * leaves @reading after it was copied out whole.
 *
 * Waking up happens with no lock held.  Who makes an event READY puts the context
 * on a wake list of his own, with a reference, unless it is on somebody's list
 * already, who then has not yet begun to wake.
 *
 * Lifetime: the file holds a reference; its last close takes the events off their
 * wheels, after which nothing finds the context any more, and frees the pages.  A
 * wake list may hold the context itself a little longer.
 */
#include <linux/fs.h>
#include <linux/moduleparam.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "context.h"

static_assert(sizeof(struct event) <= 64);
static_assert(sizeof(struct event_page) <= EVENT_PAGE_SIZE);
static_assert(offsetof(struct event, fired_ns) + sizeof(u64) <=
	      offsetof(struct event, node.base));
static_assert(EVENT_PAGE_EVENTS < 1 << EVENT_INDEX_BITS);

/* A number in &struct context.pages that a new page may have. */
#define CONTEXT_VACANT	XA_MARK_0

#define MAX_EVENTS_LIMIT	1073741824

unsigned int context_max_events = 1048576;

static int set_max_events(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 1, MAX_EVENTS_LIMIT);
}

static const struct kernel_param_ops max_events_ops = {
	.set = set_max_events,
	.get = param_get_uint,
};

module_param_cb(max_events, &max_events_ops, &context_max_events, 0444);
MODULE_PARM_DESC(max_events,
		 "Events a context may have: default and ceiling (default 1048576)");

/* An ADD at the limit of a memory cgroup fails; nobody is killed for it. */
#define EVENT_GFP	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

static struct kmem_cache *page_cache;

static struct event_page *page_of(const struct event *event)
{
	return PTR_ALIGN_DOWN((struct event_page *)event, EVENT_PAGE_SIZE);
}

static u64 event_id(const struct event *event)
{
	const struct event_page *page = page_of(event);
	u32 index = page->number << EVENT_INDEX_BITS | (event - page->events);

	return (u64)event->node.tag << 32 | index;
}

static void event_set_state(struct event *event, enum event_state state)
{
	WRITE_ONCE(event->node.state, state);
}

static enum event_state event_state(const struct event *event)
{
	return READ_ONCE(event->node.state);
}

/* The event of an id, or NULL. */
static struct event *event_find(struct context *context, u64 id)
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
			.kind = BASE_EVENT,
			.state = EVENT_FREE,
			.tag = generation,
		};
	}
	return page;
}

/* Get a page with usable slots.  May sleep: no base is held. */
static int context_grow(struct context *context)
{
	unsigned long number = 0;
	struct event_page *page;
	u32 generation = 1;
	void *vacant, *old;

	vacant = xa_find(&context->pages, &number, ULONG_MAX, CONTEXT_VACANT);
	if (vacant)
		generation = xa_to_value(vacant);
	else
		number = context->next_number;
	if (number >= EVENT_PAGES_MAX)
		return -ENOSPC;

	page = page_create(context, number, generation);
	if (!page)
		return -ENOMEM;
	old = xa_store(&context->pages, number, page, EVENT_GFP);
	if (xa_is_err(old)) {
		kmem_cache_free(page_cache, page);
		return xa_err(old);
	}
	if (vacant)
		xa_clear_mark(&context->pages, number, CONTEXT_VACANT);
	else
		context->next_number++;
	list_add_tail(&page->partial, &context->partial);
	context->nr_empty++;
	return 0;
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
		xa_set_mark(&context->pages, page->number, CONTEXT_VACANT);
	list_del(&page->partial);
	context->nr_empty--;
	kmem_cache_free(page_cache, page);
}

/*
 * Give empty pages back, but for one, so that a lone event does not cost a page
 * each time.  May sleep: no base is held.
 */
static void context_trim(struct context *context)
{
	while (context->nr_empty > 1)
		page_release(context, list_last_entry(&context->partial,
						      struct event_page,
						      partial));
}

/* Take a slot.  There is a partial page. */
static struct event *event_alloc(struct context *context)
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

/* The event is on no wheel and in no queue.  context_trim() must follow. */
static void event_free(struct context *context, struct event *event)
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

/* How many slots are in use. */
static u64 context_used(const struct context *context)
{
	return context->added - context->finished - context->cancelled;
}

static void context_put(struct context *context)
{
	if (refcount_dec_and_test(&context->refs))
		kfree(context);
}

/* Make an event READY.  Its base is held, and it is on no wheel. */
static void event_ready(struct event *event, u64 now_ns, struct list_head *wake)
{
	struct context *context = page_of(event)->context;

	raw_spin_lock(&context->ready_lock);
	event_set_state(event, EVENT_READY);
	event->fired_ns = now_ns;
	list_add_tail(&event->ready, &context->ready);
	WRITE_ONCE(context->nr_ready, context->nr_ready + 1);
	if (!context->waking) {
		context->waking = true;
		refcount_inc(&context->refs);
		list_add_tail(&context->wake_entry, wake);
	}
	raw_spin_unlock(&context->ready_lock);
}

/* Take a READY event out of the ready queue, from whichever part it is in. */
static void event_unready(struct event *event)
{
	struct context *context = page_of(event)->context;
	unsigned long flags;

	lockdep_assert_held(&context->mutex);
	raw_spin_lock_irqsave(&context->ready_lock, flags);
	list_del(&event->ready);
	WRITE_ONCE(context->nr_ready, context->nr_ready - 1);
	raw_spin_unlock_irqrestore(&context->ready_lock, flags);
}

static void context_due(struct twheel_node *node, u64 now_ns,
			struct list_head *wake)
{
	event_ready(container_of(node, struct event, node), now_ns, wake);
}

static void context_wake(struct list_head *wake)
{
	struct context *context, *next;
	unsigned long flags;

	list_for_each_entry_safe(context, next, wake, wake_entry) {
		raw_spin_lock_irqsave(&context->ready_lock, flags);
		list_del(&context->wake_entry);
		context->waking = false;
		raw_spin_unlock_irqrestore(&context->ready_lock, flags);

		if (wq_has_sleeper(&context->readers))
			wake_up_interruptible(&context->readers);
		if (wq_has_sleeper(&context->pollers))
			wake_up_interruptible_poll(&context->pollers,
						   EPOLLIN | EPOLLRDNORM);
		context_put(context);
	}
}

const struct base_sink context_sink = {
	.due = context_due,
	.wake = context_wake,
};

/**
 * context_create() - make the context of a file that is being opened
 *
 * Return: the context, with one reference, or NULL for want of memory.
 */
struct context *context_create(void)
{
	struct context *context = kzalloc(sizeof(*context), GFP_KERNEL_ACCOUNT);

	if (!context)
		return NULL;
	mutex_init(&context->mutex);
	context->clock = BASE_MONOTONIC;
	context->max_events = context_max_events;
	xa_init_flags(&context->pages, XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&context->partial);
	INIT_LIST_HEAD(&context->reading);
	raw_spin_lock_init(&context->ready_lock);
	INIT_LIST_HEAD(&context->ready);
	init_waitqueue_head(&context->readers);
	init_waitqueue_head(&context->pollers);
	refcount_set(&context->refs, 1);
	return context;
}
EXPORT_SYMBOL_FOR_KUNIT(context_create);

static void page_disarm(struct event_page *page)
{
	struct base_hold hold = {};
	unsigned int i;

	for (i = 0; i < EVENT_PAGE_EVENTS; i++) {
		struct event *event = &page->events[i];

		if (event_state(event) != EVENT_ARMED)
			continue;
		base_hold_node(&hold, &event->node);
		if (event_state(event) == EVENT_ARMED)
			base_disarm(&hold, &event->node);
	}
	base_release(&hold);
}

/**
 * context_destroy() - end a context at the last close of its file
 * @context: the context, which nobody uses any more.
 *
 * Takes its events off their wheels and frees everything.
 */
void context_destroy(struct context *context)
{
	struct event_page *page;
	unsigned long number;

	/* An event that is due meanwhile gets into the ready queue: all first. */
	xa_for_each(&context->pages, number, page) {
		if (!xa_is_value(page))
			page_disarm(page);
		cond_resched();
	}
	xa_for_each(&context->pages, number, page) {
		if (!xa_is_value(page))
			kmem_cache_free(page_cache, page);
		cond_resched();
	}
	xa_destroy(&context->pages);
	mutex_destroy(&context->mutex);
	context_put(context);
}
EXPORT_SYMBOL_FOR_KUNIT(context_destroy);

/**
 * context_configure() - set a context up that had no event yet
 * @context: the context.
 * @config: what is asked for, well-formed.
 *
 * Return: 0; -EBUSY, it had an event; -ENOSPC, max_events is above the ceiling;
 * -ERESTARTSYS, a signal.
 */
int context_configure(struct context *context, const struct twheel_config *config)
{
	int ret = 0;

	if (mutex_lock_interruptible(&context->mutex))
		return -ERESTARTSYS;
	if (context->added)
		ret = -EBUSY;
	else if (config->max_events > context_max_events)
		ret = -ENOSPC;
	else
		context->max_events = config->max_events ?: context_max_events;
	mutex_unlock(&context->mutex);
	return ret;
}
EXPORT_SYMBOL_FOR_KUNIT(context_configure);

/**
 * context_begin() - begin a series of commands
 * @context: the context.
 * @batch: out: the batch, to be ended by context_end().
 *
 * Takes the mutex.
 *
 * Return: 0; -ERESTARTSYS, a signal.
 */
int context_begin(struct context *context, struct context_batch *batch)
{
	if (mutex_lock_interruptible(&context->mutex))
		return -ERESTARTSYS;
	*batch = (struct context_batch){ .context = context };
	INIT_LIST_HEAD(&batch->wake);
	return 0;
}
EXPORT_SYMBOL_FOR_KUNIT(context_begin);

/**
 * context_end() - end a series of commands
 * @batch: the batch.
 */
void context_end(struct context_batch *batch)
{
	base_release(&batch->hold);
	context_trim(batch->context);
	mutex_unlock(&batch->context->mutex);
	context_wake(&batch->wake);
}
EXPORT_SYMBOL_FOR_KUNIT(context_end);

/* When an event is due that is armed now, on the base that is held. */
static u64 due_ns(const struct context_batch *batch, const struct twheel_cmd *cmd)
{
	u64 due;

	if (cmd->flags & TWHEEL_ABS)
		return cmd->time_ns;
	if (check_add_overflow(batch->hold.now_ns, cmd->time_ns, &due))
		return U64_MAX;
	return due;
}

/* Arm an event that is on no wheel and in no queue; what is past is READY. */
static void event_arm(struct context_batch *batch, struct event *event,
		      const struct twheel_cmd *cmd)
{
	struct base_hold *hold = &batch->hold;

	base_hold_local(hold, batch->context->clock);
	event->due_ns = due_ns(batch, cmd);
	if (event->due_ns <= hold->now_ns) {
		WRITE_ONCE(event->node.base, hold->base->number);
		event_ready(event, hold->now_ns, &batch->wake);
	} else {
		event_set_state(event, EVENT_ARMED);
		base_arm(hold, &event->node, event->due_ns);
	}
}

/* Take an event off its wheel or out of the ready queue. */
static void event_stop(struct context_batch *batch, struct event *event)
{
	base_hold_node(&batch->hold, &event->node);
	if (event_state(event) == EVENT_ARMED)
		base_disarm(&batch->hold, &event->node);
	else
		event_unready(event);
}

/**
 * context_add() - arm a new event
 * @batch: the batch.
 * @cmd: a well-formed ADD; its id is written.
 *
 * Return: 0; -ENOSPC, the context is full; -ENOMEM.
 */
int context_add(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	struct event *event;

	if (context_used(context) >= context->max_events)
		return -ENOSPC;
	if (list_empty(&context->partial)) {
		int ret;

		base_release(&batch->hold);
		ret = context_grow(context);
		if (ret)
			return ret;
	}

	event = event_alloc(context);
	event->data = cmd->data;
	cmd->id = event_id(event);
	context->added++;
	event_arm(batch, event, cmd);
	return 0;
}
EXPORT_SYMBOL_FOR_KUNIT(context_add);

/**
 * context_undo_add() - undo an ADD whose id the caller could not be told
 * @batch: the batch that it was in.
 * @id: the id.
 */
void context_undo_add(struct context_batch *batch, u64 id)
{
	struct context *context = batch->context;
	struct event *event = event_find(context, id);

	event_stop(batch, event);
	event_free(context, event);
	context->added--;
}

/**
 * context_modify() - give an event another time
 * @batch: the batch.
 * @cmd: a well-formed MODIFY.
 *
 * The record of a READY event is suppressed.
 *
 * Return: 0; -ENOENT, no such event.
 */
int context_modify(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct event *event = event_find(batch->context, cmd->id);

	if (!event)
		return -ENOENT;
	event_stop(batch, event);
	if (cmd->flags & TWHEEL_SET_DATA)
		event->data = cmd->data;
	event_arm(batch, event, cmd);
	return 0;
}
EXPORT_SYMBOL_FOR_KUNIT(context_modify);

/**
 * context_cancel() - end an event without a record
 * @batch: the batch.
 * @cmd: a well-formed CANCEL.
 *
 * Return: 0, and no record of it will be read; -ENOENT, no such event.
 */
int context_cancel(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	struct event *event = event_find(context, cmd->id);

	if (!event)
		return -ENOENT;
	event_stop(batch, event);
	event_free(context, event);
	context->cancelled++;
	return 0;
}
EXPORT_SYMBOL_FOR_KUNIT(context_cancel);

/**
 * context_query() - look at an event
 * @batch: the batch.
 * @cmd: a well-formed QUERY; its times are written.
 *
 * Return: TWHEEL_ARMED or TWHEEL_READY; -ENOENT, no such event.
 */
int context_query(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct event *event = event_find(batch->context, cmd->id);

	if (!event)
		return -ENOENT;
	cmd->time_ns = event->due_ns;
	cmd->interval_ns = 0;
	cmd->slack_ns = 0;
	return event_state(event);
}
EXPORT_SYMBOL_FOR_KUNIT(context_query);

/* Move all that is READY to where the mutex alone guards it. */
static void ready_collect(struct context *context)
{
	raw_spin_lock_irq(&context->ready_lock);
	list_splice_tail_init(&context->ready, &context->reading);
	raw_spin_unlock_irq(&context->ready_lock);
}

/* Write the records of the oldest READY events into the chunk; return how many. */
static unsigned int records_prepare(struct context *context, size_t room)
{
	struct event *event;
	unsigned int nr = 0;

	list_for_each_entry(event, &context->reading, ready) {
		if (nr == CONTEXT_CHUNK || nr == room)
			break;
		context->out[nr++] = (struct twheel_record){
			.data = event->data,
			.id = event_id(event),
			.due_ns = event->due_ns,
			.fired_ns = event->fired_ns,
			.count = 1,
			.reason = TWHEEL_EXPIRED,
		};
	}
	return nr;
}

/* End the oldest @nr READY events, whose records were copied out. */
static void records_finish(struct context *context, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct event *event = list_first_entry(&context->reading,
						       struct event, ready);

		list_del(&event->ready);
		event_free(context, event);
	}
	raw_spin_lock_irq(&context->ready_lock);
	WRITE_ONCE(context->nr_ready, context->nr_ready - nr);
	raw_spin_unlock_irq(&context->ready_lock);
	context->finished += nr;
	context->records += nr;
}

/*
 * Copy out as many records as fit and are there; return how many, or -EFAULT if
 * there was one and it could not be copied.
 */
static ssize_t records_copy(struct context *context, struct iov_iter *to)
{
	size_t total = 0;

	lockdep_assert_held(&context->mutex);
	for (;;) {
		size_t room = iov_iter_count(to) / sizeof(struct twheel_record);
		unsigned int nr, copied;

		ready_collect(context);
		nr = records_prepare(context, room);
		if (!nr)
			return total;
		copied = copy_to_iter(context->out, nr * sizeof(context->out[0]),
				      to) / sizeof(context->out[0]);
		records_finish(context, copied);
		total += copied;
		if (copied < nr)
			return total ?: -EFAULT;
		cond_resched();
	}
}

/**
 * context_readable() - is there a record to be read?
 * @context: the context.
 */
bool context_readable(const struct context *context)
{
	return READ_ONCE(context->nr_ready);
}
EXPORT_SYMBOL_FOR_KUNIT(context_readable);

static int wait_readable(struct context *context)
{
	return wait_event_interruptible_exclusive(context->readers,
						  context_readable(context));
}

/**
 * context_read() - read records
 * @context: the context.
 * @to: where they go.
 * @wait: wait for the first one.
 *
 * Return: how many bytes, whole records; -EINVAL, there is no room for one;
 * -EAGAIN, nothing is ready; -EFAULT, the first record could not be copied out
 * and is still there; -ERESTARTSYS, a signal.
 */
ssize_t context_read(struct context *context, struct iov_iter *to, bool wait)
{
	ssize_t ret = 0;

	if (iov_iter_count(to) < sizeof(struct twheel_record))
		return -EINVAL;

	do {
		if (wait)
			ret = wait_readable(context);
		if (!ret)
			ret = mutex_lock_interruptible(&context->mutex);
		if (!ret) {
			ret = records_copy(context, to);
			context_trim(context);
			mutex_unlock(&context->mutex);
		}
	} while (!ret && wait);

	/* What we leave behind, or were woken for and did not take, is for the next. */
	if (context_readable(context))
		wake_up_interruptible(&context->readers);

	if (ret > 0)
		return ret * sizeof(struct twheel_record);
	if (ret == -EINTR)
		return -ERESTARTSYS;
	return ret ?: -EAGAIN;
}
EXPORT_SYMBOL_FOR_KUNIT(context_read);

/**
 * context_show() - write the lines of fdinfo
 * @context: the context.
 * @seq: where they go.
 */
void context_show(struct context *context, struct seq_file *seq)
{
	u64 armed, ready;

	if (mutex_lock_killable(&context->mutex))
		return;
	ready = READ_ONCE(context->nr_ready);
	armed = context_used(context) - ready;
	seq_printf(seq, "clockid:\t%d\n", CLOCK_MONOTONIC);
	seq_printf(seq, "max_events:\t%llu\n", context->max_events);
	seq_printf(seq, "added:\t%llu\n", context->added);
	seq_printf(seq, "armed:\t%llu\n", armed);
	seq_printf(seq, "ready:\t%llu\n", ready);
	seq_printf(seq, "finished:\t%llu\n", context->finished);
	seq_printf(seq, "cancelled:\t%llu\n", context->cancelled);
	seq_printf(seq, "completed:\t%u\n", 0);
	seq_printf(seq, "records:\t%llu\n", context->records);
	mutex_unlock(&context->mutex);
}

/**
 * context_init() - before the first context
 *
 * Return: 0 or -ENOMEM.
 */
int context_init(void)
{
	page_cache = kmem_cache_create("twheel_events", EVENT_PAGE_SIZE,
				       EVENT_PAGE_SIZE, SLAB_ACCOUNT, NULL);
	return page_cache ? 0 : -ENOMEM;
}

/**
 * context_exit() - after the last one
 */
void context_exit(void)
{
	kmem_cache_destroy(page_cache);
}
