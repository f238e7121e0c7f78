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

/* How many records or entries are copied out before others may have the mutex. */
#define RECORD_TURN	(8 * CONTEXT_CHUNK)

/* --- records ---------------------------------------------------------------- */

/* What completed an event. */
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
 * Arm a periodic event again of whose expirations @count were read.  If the clock
 * was set meanwhile and it is to end then, it does.
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
	base_hold_cpu(&batch->hold, event_clock(event), context->cpu);
	if (event->node.flags & EVENT_MISSED_SET ||
	    (event->node.flags & EVENT_CANCEL_ON_SET && context_clock_was_set(context))) {
		event->node.flags |= EVENT_CLOCK_SET;
		event_ready_here(batch, event);
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
		if (unlikely(event_goes_on(event))) {
			event_rearm(batch, event, context->out[i].count);
		} else {
			batch_free_event(batch, event);
			context->counts.finished++;
		}
		i++;
	}
	context->counts.records += nr;
	base_release(&batch->hold);
	ready_left(context, nr);
	batch_settle(batch);
}

/*
 * Copy a structure of 64 bytes, while user memory is accessible; false: not possible.
 * Word by word, as unsafe_copy_to_user() is a loop that takes 40 instructions more.
 */
static __always_inline bool put_structure(const u64 *from, u64 __user *to)
{
	unsafe_put_user(from[0], to + 0, fault);
	unsafe_put_user(from[1], to + 1, fault);
	unsafe_put_user(from[2], to + 2, fault);
	unsafe_put_user(from[3], to + 3, fault);
	unsafe_put_user(from[4], to + 4, fault);
	unsafe_put_user(from[5], to + 5, fault);
	unsafe_put_user(from[6], to + 6, fault);
	unsafe_put_user(from[7], to + 7, fault);
	return true;
fault:
	return false;
}

/* Copy @nr structures of 64 bytes to where user memory is in one piece; how many. */
static unsigned int copy_to_piece(const void *from, unsigned int nr, struct iov_iter *to)
{
	u64 __user *user = to->ubuf + to->iov_offset;
	const u64 *word = from;
	unsigned int i;

	might_fault();
	if (!user_write_access_begin(user, nr * 64))
		return 0;
	for (i = 0; i < nr; i++, word += 8, user += 8)
		if (!put_structure(word, user))
			break;
	user_write_access_end();
	iov_iter_advance(to, i * 64);
	return i;
}

/* Copy @nr structures of @size out, each with zeros up to @stride; how many. */
static unsigned int copy_out(const void *from, size_t size, unsigned int nr,
			     struct iov_iter *to, size_t stride)
{
	unsigned int i;

	if (size == 64 && stride == 64 && iter_is_ubuf(to))
		return copy_to_piece(from, nr, to);
	if (stride == size)
		return copy_to_iter(from, nr * size, to) / size;

	for (i = 0; i < nr; i++) {
		if (copy_to_iter(from + i * size, size, to) != size ||
		    iov_iter_zero(stride - size, to) != stride - size)
			break;
	}
	return i;
}

/*
 * Copy out up to @max records, as many as fit and are there; return how many, or
 * -EFAULT if there was one and it could not be copied.  Where that goes wrong, there
 * is no more room.
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
 * @how: what to wait for.
 * @total: how many were copied out.
 * @there: how many more there were when it began, or fewer: those that come meanwhile
 *	are for the next call.
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

/* Is what is there enough to be copied out?  O_NONBLOCK and ENTER take anything. */
static bool is_wanted(const struct reading *reading)
{
	return reading->how & CONTEXT_NONBLOCK ||
	       twheel_context_readable(reading->context);
}

/* Copy records out for one turn of the mutex; return how many, or an errno. */
static ssize_t read_turn(struct reading *reading)
{
	struct context *context = reading->context;
	struct context_batch batch;
	ssize_t ret = twheel_context_begin(context, &batch, reading->how);
	u64 there;

	if (ret)
		return ret;
	there = ready_collect(context);
	if (!reading->total)
		reading->there = is_wanted(reading) ? there : 0;
	ret = records_copy(&batch, reading->to, reading->stride,
			   min3(there, reading->there, (u64)RECORD_TURN));
	reading->left = context_used(context);
	twheel_context_end(&batch);
	if (ret > 0) {
		reading->total += ret;
		reading->there -= ret;
	}
	return ret;
}

/*
 * Copy out as many records as fit and were there when it began.  Others have their
 * turns meanwhile; each record goes to one of those who read.
 *
 * Returns how many, or if none what kept it from copying one.
 */
static ssize_t read_all(struct reading *reading)
{
	ssize_t ret;

	for (;;) {
		ret = read_turn(reading);
		if (ret < RECORD_TURN || !reading->there ||
		    iov_iter_count(reading->to) < reading->stride ||
		    fatal_signal_pending(current))
			break;
		ret = context_give_way(reading->context, reading->how);
		if (ret)
			break;
	}
	return reading->total ?: ret;
}

/* Read once, having waited if asked to; 0: others were faster. */
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
	/* The mutex may be held over a fault that takes for ever. */
	if (!READ_ONCE(context->nr_ready) || !is_wanted(&reading))
		return 0;
	return read_all(&reading);
}

/**
 * twheel_context_read() - read records
 * @context: the context.
 * @to: where they go.
 * @how: whether to wait, and for what.
 *
 * Return: how many bytes, whole records; -EINVAL, there is no room for one;
 * -EAGAIN, nothing is ready, or with CONTEXT_NOWAIT the context is not readable or
 * its mutex is taken; -EFAULT, the first record could not be copied out and is
 * still there; -ERESTARTSYS, a signal.
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
 * context_reap() - read what records there are
 * @context: the context.
 * @to: where they go; when one cannot be written, the room there is 0 afterwards.
 * @stride: the distance from one to the next; between them go zeros.
 * @left: out: how many events there are still, READY or ARMED.
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
	};
}

/*
 * Write entries of the events from an index on into the chunk; return how many.
 * @index becomes that of the last one.
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

			if (nr == CONTEXT_CHUNK || nr == room)
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
	} while (nr == CONTEXT_CHUNK && total < RECORD_TURN && *cursor <= U32_MAX &&
		 !signal_pending(current));
	return total;
}

/**
 * twheel_context_list() - list events, in the order of their indices
 * @context: the context.
 * @cursor: 0 at first; becomes the one to go on with, of what was listed.
 * @to: where the entries go.
 * @stride: the distance from one to the next; between them go zeros.
 *
 * An event keeps its index for life, so one that exists throughout is listed once,
 * whatever others do when they have their turns.
 *
 * Return: how many entries, 0 at the end; -EFAULT, not even one could be copied;
 * -ERESTARTSYS, a signal.
 */
ssize_t twheel_context_list(struct context *context, u64 *cursor, struct iov_iter *to,
			    size_t stride)
{
	ssize_t total = 0, ret = 0;

	while (!ret && *cursor <= U32_MAX) {
		ret = context_lock(context, CONTEXT_BLOCK);
		if (ret)
			break;
		ret = list_turn(context, cursor, to, stride);
		context_unlock(context);
		if (ret > 0)
			total += ret;
		if (ret < RECORD_TURN || iov_iter_count(to) < stride ||
		    signal_pending(current))
			break;
		ret = context_give_way(context, CONTEXT_BLOCK);
	}
	return total ?: ret;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_list);
