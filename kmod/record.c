// SPDX-License-Identifier: GPL-2.0
/*
 * What is copied out of a context: records, and lists of its events.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "compat.h"
#include "event_operation.h"
#include "event_time.h"
#include "ready.h"
#include "record.h"
#include "user_words.h"

/* How many records or entries are copied out before others may have the mutex. */
#define RECORD_TURN	(8 * CONTEXT_CHUNK)
#define LIST_TURN	(8 * CONTEXT_ENTRIES)

/* --- records ---------------------------------------------------------------- */

/* Fill in the fields that tell what completed an event. */
static void record_completion(const struct event *event, struct twheel_record *record)
{
	if (event_operation(event)) {
		if (event->operation->signalled)
			record->flags = TWHEEL_RECORD_SIGNAL;
		record->key = event->operation->key;
		record->value = event->operation->value;
	} else {
		record->value = event->value;
	}
}

static __always_inline void event_record(const struct context *context,
					 const struct event *event,
					 struct twheel_record *record)
{
	record->data = event->data;
	record->id = event_id(event);
	record->due_ns = event_due_seen_ns(event, EVENT_READY);
	record->fired_ns = context_seen_ns(context, context->clock, event->fired_ns);
	record->count = event_count(event);
	record->value = 0;
	record->key = 0;
	record->reason = event_reason(event);
	record->flags = 0;
	if (record->reason == TWHEEL_COMPLETED)
		record_completion(event, record);
}

/* Write the records of the oldest READY events into the chunk; return how many. */
static unsigned int records_prepare(struct context *context, size_t room)
{
	unsigned int max = min_t(size_t, room, CONTEXT_CHUNK);
	struct twheel_record *record = context->out;
	struct event *event;

	list_for_each_entry(event, &context->reading, ready) {
		if (record == &context->out[max])
			break;
		event_record(context, event, record++);
	}
	return record - context->out;
}

/*
 * Arm a periodic event again, after a record of @count expirations was read.  If it has
 * EVENT_CANCEL_ON_SET and the clock was set meanwhile, it ends instead.
 */
static void event_rearm(struct context_batch *batch, struct event *event,
			u64 count)
{
	struct context *context = batch->context;
	u64 covered_ns;

	lockdep_assert_held(&context->mutex);
	if (check_mul_overflow(event->interval_ns, count, &covered_ns))
		covered_ns = U64_MAX;
	event->due_ns = add_saturating(event->due_ns, covered_ns);
	base_hold_cpu(&batch->hold, base_role(BASE_EVENTS, event_clock(event)), context->cpu);
	if (event->node.flags & EVENT_MISSED_SET ||
	    (event->node.flags & EVENT_CANCEL_ON_SET && context_clock_was_set(context))) {
		event_ready_here(batch, event, TWHEEL_CLOCK_SET);
	} else {
		event_place(batch, event, event_due_host_ns(event));
	}
}

/* Take the oldest @nr READY events, whose records were copied out, off the queue. */
static void records_finish(struct context_batch *batch, unsigned int nr)
{
	struct context *context = batch->context;
	struct event *event, *next;
	struct list_head *end;
	unsigned int i = 0;
	LIST_HEAD(done);

	lockdep_assert_held(&context->mutex);
	for (end = context->reading.next; i < nr; i++)
		end = end->next;
	list_cut_before(&done, &context->reading, end);

	i = 0;
	list_for_each_entry_safe(event, next, &done, ready) {
		if (event_goes_on(event)) {
			event_rearm(batch, event, context->out[i].count);
		} else {
			batch_free_event(batch, event);
			batch->counts.finished++;
		}
		i++;
	}
	batch->counts.records += nr;
	base_release(&batch->hold);
	ready_left(context, nr);
	batch_settle(batch);
}

/* Copy @nr structures of 64 bytes to one user buffer; return how many were copied. */
static unsigned int copy_to_piece(const void *from, unsigned int nr, struct iov_iter *to)
{
	void __user *user = to->ubuf + to->iov_offset;
	unsigned int i;

	might_fault();
	if (!user_write_access_begin(user, nr * USER_WORDS_SIZE))
		return 0;
	for (i = 0; i < nr; i++, from += USER_WORDS_SIZE, user += USER_WORDS_SIZE)
		if (!put_user_words(from, user))
			break;
	user_write_access_end();
	iov_iter_advance(to, i * USER_WORDS_SIZE);
	return i;
}

/*
 * Copy @nr structures of @size out, each with zeros up to @stride, or only as much of it as
 * @stride; return how many.
 */
static unsigned int copy_out(const void *from, size_t size, unsigned int nr,
			     struct iov_iter *to, size_t stride)
{
	unsigned int i;
	size_t used;

	if (size == USER_WORDS_SIZE && stride == size && iter_is_ubuf(to))
		return copy_to_piece(from, nr, to);
	if (stride == size)
		return copy_to_iter(from, nr * size, to) / size;

	used = min(size, stride);
	for (i = 0; i < nr; i++) {
		if (copy_to_iter(from + i * size, used, to) != used ||
		    iov_iter_zero(stride - used, to) != stride - used)
			break;
	}
	return i;
}

/*
 * Copy out as many records as there are and fit, at most @max; return how many, or
 * -EFAULT if there was one but the first could not be copied.  If a copy fails, @to has
 * no room afterwards.
 */
static ssize_t records_copy(struct context_batch *batch, struct iov_iter *to,
			    size_t stride, u64 max)
{
	struct context *context = batch->context;
	u64 total = 0;

	lockdep_assert_held(&context->mutex);
	for (;;) {
		u64 room = iov_iter_count(to) / stride;
		unsigned int nr, copied;

		nr = records_prepare(context, min(room, max - total));
		if (!nr)
			return total;
		copied = copy_out(context->out, sizeof(context->out[0]), nr, to,
				  stride);
		records_finish(batch, copied);
		total += copied;
		if (copied < nr) {
			iov_iter_truncate(to, 0);
			return total ?: -EFAULT;
		}
		cond_resched();
	}
}

/**
 * struct reading - a call that copies records out
 * @context: the context.
 * @to: where they go.
 * @stride: the distance from one to the next.
 * @how: the CONTEXT_ flags.
 * @total: how many were copied out.
 * @there: how many of the records that there were at the beginning are still to be read;
 *	later ones are for the next call.
 * @left: how many events the context had at the end.
 */
struct reading {
	struct context *context;
	struct iov_iter *to;
	size_t stride;
	unsigned int how;
	u64 total;
	u64 there;
	u64 left;
};

/* Are there enough records to copy out?  For O_NONBLOCK and ENTER, any number is enough. */
static bool is_wanted(const struct reading *reading)
{
	return reading->how & CONTEXT_NONBLOCK ||
	       twheel_context_readable(reading->context);
}

/* Copy records out for one turn of the mutex; return how many, or an errno. */
static ssize_t read_turn(struct reading *reading)
{
	struct context *context = reading->context;
	struct context_batch *batch = &context->batch;
	ssize_t ret = twheel_context_begin(context, reading->how);
	u64 there;

	if (ret)
		return ret;
	there = ready_collect(context);
	if (!reading->total)
		reading->there = is_wanted(reading) ? there : 0;
	ret = records_copy(batch, reading->to, reading->stride,
			   min3(there, reading->there, (u64)RECORD_TURN));
	reading->left = batch_used(batch);
	twheel_context_end(batch);
	if (ret > 0) {
		reading->total += ret;
		reading->there -= ret;
	}
	return ret;
}

static int give_way(const struct reading *reading, bool *tired)
{
	if (reading->how & CONTEXT_NOWAIT)
		return context_is_wanted(reading->context) ? -EAGAIN : 0;
	return context_give_way(reading->context, tired);
}

/*
 * Copy out as many records as fit and were there at the beginning.  Other tasks have
 * their turns meanwhile; each record goes to one reader only.
 *
 * Returns how many; if none, the error that ended it.
 */
static ssize_t read_all(struct reading *reading)
{
	bool tired = false;
	ssize_t ret;

	for (;;) {
		ret = read_turn(reading);
		if (ret < RECORD_TURN || !reading->there ||
		    iov_iter_count(reading->to) < reading->stride ||
		    fatal_signal_pending(current))
			break;
		ret = give_way(reading, &tired);
		if (ret)
			break;
	}
	/*
	 * It was ended by a signal, or does not wait for another task.  A reader that is only told
	 * of changes may think that these were all.
	 */
	if (reading->total && ret < 0)
		context_poll_again(reading->context);
	return reading->total ?: ret;
}

/* Wait if @how says so, and read once; 0: other readers took the records. */
static ssize_t read_once(struct context *context, struct iov_iter *to,
			 unsigned int how)
{
	struct reading reading = {
		.context = context,
		.to = to,
		.stride = sizeof(struct twheel_record),
		.how = how,
	};
	ssize_t ret;

	if (how == CONTEXT_BLOCK) {
		ret = twheel_context_wait(context);
		if (ret)
			return ret;
	}
	/* Avoid the mutex if there is nothing to read: a fault may hold it for ever. */
	if (!READ_ONCE(context->nr_ready) || !is_wanted(&reading))
		return 0;
	return read_all(&reading);
}

/**
 * twheel_context_read() - read records
 * @context: the context.
 * @to: where they go.
 * @how: the CONTEXT_ flags.
 *
 * Return: how many bytes, in whole records; -EINVAL, there is no room for one;
 * -EAGAIN, no record is ready, or with CONTEXT_NOWAIT the context is not readable or
 * its mutex is locked by another task; -EFAULT, the first record could not be copied out
 * and stays in the queue; -ERESTARTSYS, a signal.
 */
ssize_t twheel_context_read(struct context *context, struct iov_iter *to,
			    unsigned int how)
{
	ssize_t ret;

	if (iov_iter_count(to) < sizeof(struct twheel_record))
		return -EINVAL;
	do {
		ret = read_once(context, to, how);
	} while (!ret && how == CONTEXT_BLOCK);
	wake_next(context);

	if (ret > 0)
		return ret * sizeof(struct twheel_record);
	return ret ?: -EAGAIN;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_read);

/**
 * context_reap() - read the records that there are
 * @context: the context.
 * @to: where they go; if one cannot be written, the room there is 0 afterwards.
 * @stride: the distance from one to the next; the bytes between them are set to 0.
 * @left: out: how many events there are afterwards, READY or ARMED.
 *
 * Return: how many records; -EFAULT, as twheel_context_read(); -ERESTARTSYS, a signal.
 */
ssize_t context_reap(struct context *context, struct iov_iter *to, size_t stride,
		     u64 *left)
{
	struct reading reading = {
		.context = context,
		.to = to,
		.stride = stride,
		.how = CONTEXT_NONBLOCK,
	};
	ssize_t ret = read_all(&reading);

	*left = reading.left;
	wake_next(context);
	return ret;
}

/* --- lists ------------------------------------------------------------------ */

/* The flags of an ADD that makes an event again. */
static u32 event_add_flags(const struct event *event)
{
	u8 flags = event->node.flags;

	if (flags & NODE_DEADLINE)
		return TWHEEL_DEADLINE;
	return (flags & EVENT_BY_MONOTONIC ? 0 : TWHEEL_ABS) |
	       (flags & EVENT_CANCEL_ON_SET ? TWHEEL_CANCEL_ON_SET : 0);
}

static struct twheel_entry event_entry(const struct event *event)
{
	const struct event_operation *operation = event_operation(event);
	enum event_state state = event_state(event);

	return (struct twheel_entry){
		.id = event_id(event),
		.data = event->data,
		.due_ns = event_due_seen_ns(event, state),
		.interval_ns = event_interval_ns(event),
		.slack_ns = event->slack_ns,
		.deadline = event->node.flags & NODE_DEADLINE ?
			    event_deadline(event) + 1ULL : 0,
		.state = state,
		.reason = state == EVENT_READY ? event_reason(event) : 0,
		.quorum = operation ? operation->quorum : 1,
		.watches = operation && state == EVENT_ARMED ?
			   operation->watcher.nr_watches : 0,
		.flags = event_add_flags(event),
	};
}

/*
 * Write entries into the chunk, of the events whose index is @index or higher; return how
 * many.  @index becomes that of the last one.
 */
static unsigned int entries_prepare(struct context *context, u64 *index,
				    size_t room)
{
	u32 number = *index >> EVENT_INDEX_BITS;
	unsigned int slot = max_t(u32, *index % EVENT_PAGE_SLOTS, EVENT_SLOT_FIRST);
	unsigned int nr = 0;
	struct event_page *page;

	lockdep_assert_held(&context->mutex);
	while ((page = events_page_from(&context->events, &number))) {
		if (number != *index >> EVENT_INDEX_BITS)
			slot = EVENT_SLOT_FIRST;
		for (; slot < EVENT_PAGE_SLOTS; slot++) {
			const struct event *event = &page->slots[slot];

			if (nr == CONTEXT_ENTRIES || nr == room)
				return nr;
			if (event_state(event) == EVENT_FREE)
				continue;
			context->entries[nr++] = event_entry(event);
			*index = event_index(event);
		}
		number++;
	}
	return nr;
}

/* List events for one turn of the mutex; return how many, or -EFAULT. */
static ssize_t list_turn(struct context *context, u64 *cursor, struct iov_iter *to,
			 size_t stride)
{
	unsigned int nr, copied;
	ssize_t total = 0;

	do {
		u64 index = *cursor;

		nr = entries_prepare(context, &index, iov_iter_count(to) / stride);
		copied = copy_out(context->entries, sizeof(context->entries[0]),
				  nr, to, stride);
		if (copied)
			*cursor = (u32)context->entries[copied - 1].id + 1ULL;
		total += copied;
		if (copied < nr)
			return total ?: -EFAULT;
		cond_resched();
	} while (nr == CONTEXT_ENTRIES && total < LIST_TURN && *cursor <= U32_MAX &&
		 !signal_pending(current));
	return total;
}

/**
 * twheel_context_list() - list events, in the order of their indices
 * @context: the context.
 * @cursor: 0 in the first call; becomes the cursor for the next call.
 * @to: where the entries go.
 * @stride: the distance from one to the next; the bytes between them are set to 0.
 *
 * An event keeps its index as long as it exists.  So an event that exists from the first
 * call to the last one is listed once, whatever other tasks do in between.
 *
 * Return: how many entries, 0 at the end; -EFAULT, the first one could not be copied;
 * -ERESTARTSYS, a signal.
 */
ssize_t twheel_context_list(struct context *context, u64 *cursor, struct iov_iter *to,
			    size_t stride)
{
	ssize_t total = 0, ret = 0;
	bool tired = false;

	while (!ret && *cursor <= U32_MAX) {
		ret = context_lock(context, CONTEXT_BLOCK);
		if (ret)
			break;
		ret = list_turn(context, cursor, to, stride);
		context_unlock(context);
		if (ret > 0)
			total += ret;
		if (ret < LIST_TURN || iov_iter_count(to) < stride ||
		    signal_pending(current))
			break;
		ret = context_give_way(context, &tired);
	}
	return total ?: ret;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_list);
