// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: one open file, its life, and the arming of its events.
 *
 * The object model
 * ----------------
 * An open file has a context, a context has pages of events, and an event is a
 * slot of a page:
 *
 *             ADD      due, completed, clock set            read
 *   FREE  ----------->  ARMED  ----------->  READY  ----------->  FREE
 *                       |   ^                |   |
 *                CANCEL |   | MODIFY, or     |   | CANCEL
 *                       v   | read: periodic |   v
 *                     FREE  +----------------+  FREE, no record
 *
 * event.c keeps the pages and tells what an id is.  An event is on a wheel while it
 * is ARMED and in the ready queue while it is READY, in the same memory: expiry
 * allocates nothing, so it cannot fail.  Only ADD checks the limits.
 *
 * A periodic event that is READY is on no wheel.  When its record is read, the number of
 * its expirations since then is calculated, and the event is armed again, on its grid.
 *
 * These files share the work.  None of them calls one above it:
 *
 *	context.c		lifecycle, words, arming, setting of the clock
 *	record.c		copying out: records, lists
 *	event_operation.c	WATCH, SIGNAL, COMPLETE
 *	batch.c			the mutex, and a series of commands under it
 *	ready.c			the ready queue and the tasks that wait for it
 *	event_time.c		the host's times and the caller's
 *	event.c			pages, events, ids
 *	deadlines.c		the words that are shared with the process
 *
 * Locking
 * -------
 * The mutex serialises everything that processes do to a context: running commands,
 * copying records out, CONFIG.  User memory is touched under it and under no other lock.
 * Only its holder adds and frees events, so an event that the holder has found stays; and
 * only the holder accesses keys, watches and operations.  Memory is allocated and freed
 * while no base is held, as PREEMPT_RT demands.  Expiry, in interrupt context, does one
 * thing to an event: it makes an ARMED one READY, under the lock of the event's base
 * and the ready lock.  So
 *
 *   - the state ARMED can be relied upon only with the lock of the base held;
 *   - READY and FREE are final for everybody but the holder of the mutex.
 *
 * Lifetime: the file holds a reference.  Its last close takes the events off their
 * wheels, after which nothing refers to the context but wake lists, and frees the pages.
 * A wake list may keep the context itself a little longer, by a reference.
 */
#include <linux/cpumask.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "compat.h"
#include "context.h"
#include "cpu.h"
#include "deadlines.h"
#include "event_operation.h"
#include "event_time.h"
#include "ready.h"

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
		 "Most events of a context: its default and its upper limit (default 1048576)");

/* --- a context's beginning and end ------------------------------------------ */

/**
 * twheel_context_create() - make the context of a file that is being opened
 *
 * Return: the context, with one reference; NULL if there is no memory.
 */
struct context *twheel_context_create(void)
{
	struct context *context = kzalloc(sizeof(*context), GFP_KERNEL_ACCOUNT);
	unsigned int clock;

	if (!context)
		return NULL;
	if (events_create(&context->events)) {
		kfree(context);
		return NULL;
	}
	context_lock_init(context);
	context->clock = BASE_MONOTONIC;
	context->cpu = BASE_ANY_CPU;
	for (clock = 0; clock < BASE_CLOCKS; clock++)
		context->namespace_ns[clock] = clock_namespace_ns(clock);
	context->max_events = context_max_events;
	context->wake_count = 1;
	mutex_init(&context->map_mutex);
	ready_init(context);
	refcount_set(&context->refs, 1);
	return context;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_create);

static void page_disarm(struct event_page *page)
{
	struct base_hold hold = {};
	unsigned int i;

	for (i = EVENT_SLOT_FIRST; i < EVENT_PAGE_SLOTS; i++) {
		struct event *event = &page->slots[i];

		if (event_state(event) != EVENT_ARMED)
			continue;
		base_hold_node(&hold, &event->node);
		if (event_state(event) == EVENT_ARMED)
			base_disarm(&hold, &event->node);
	}
	base_release(&hold);
}

/**
 * twheel_context_destroy() - end a context at the last close of its file
 * @context: the context, which no process uses any more.
 *
 * Takes its events off their wheels and frees everything.
 *
 * Context: a task; sleeps.
 */
void twheel_context_destroy(struct context *context)
{
	struct event_table *table = &context->events;
	struct event_page *page;
	u32 number;

	if (context->has_notice)
		clock_notice_end(&context->notice);
	/* Until all are off, an event that is due is added to the ready queue. */
	for (number = 0; (page = events_page_from(table, &number)); number++) {
		page_disarm(page);
		cond_resched();
	}
	ready_exit(context);

	event_operations_destroy(context);
	deadlines_destroy(context->deadlines);
	events_destroy(&context->events);
	mutex_destroy(&context->map_mutex);
	mutex_destroy(&context->mutex);
	context_put(context);
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_destroy);

static enum base_clock clock_of_id(clockid_t id)
{
	switch (id) {
	case CLOCK_REALTIME:
		return BASE_REALTIME;
	case CLOCK_BOOTTIME:
		return BASE_BOOTTIME;
	default:
		return BASE_MONOTONIC;
	}
}

/* May the caller bind a context to that CPU? */
static int check_cpu(unsigned int cpu)
{
	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		return -EINVAL;
	if (!cpumask_test_cpu(cpu, current->cpus_ptr) && !capable(CAP_SYS_NICE))
		return -EPERM;
	return 0;
}

static u64 config_max_events(const struct twheel_config *config)
{
	return config->max_events ?: context_max_events;
}

/*
 * Replace the words of a context by @nr new ones, unless they were mapped.  Returns 0,
 * -EBUSY, or an errno of deadlines_create().
 */
static int replace_deadlines(struct context *context, u32 nr)
{
	struct deadlines *deadlines = NULL;
	int ret = 0;

	lockdep_assert_held(&context->mutex);
	if (nr)
		deadlines = deadlines_create(context->events.account, nr,
					     context->deadlines);
	if (IS_ERR(deadlines))
		return PTR_ERR(deadlines);
	mutex_lock(&context->map_mutex);
	if (context->mapped) {
		ret = -EBUSY;
	} else {
		deadlines_take_over(deadlines, context->deadlines);
		swap(context->deadlines, deadlines);
	}
	mutex_unlock(&context->map_mutex);
	deadlines_destroy(deadlines);
	return ret;
}

/* Copy the values of a CONFIG to the context. */
static void apply_config(struct context *context,
			 const struct twheel_config *config)
{
	bool bound = config->flags & TWHEEL_CONFIG_CPU;
	unsigned int offline_count = bound ? bases_offline_count(config->cpu) : 0;

	preempt_disable();
	write_seqcount_begin(&context->counts_seq);
	context->clock = clock_of_id(config->clockid);
	context->cpu = bound ? config->cpu : BASE_ANY_CPU;
	context->offline_count = offline_count;
	context->max_events = config_max_events(config);
	context->nr_deadlines = config->nr_deadlines;
	context->slack_ns = config->slack_ns;
	context->wake_count = config->wake_count ?: 1;
	context->wake_delay_ns = config->wake_delay_ns;
	write_seqcount_end(&context->counts_seq);
	preempt_enable();
}

/**
 * twheel_context_configure() - configure a context that never had an event
 * @context: the context.
 * @config: the configuration, well-formed.
 *
 * Return: 0; -EBUSY, it had an event, or its words were mapped; -ENOSPC, max_events is
 * above the limit, the words would exceed the user's limit, or as bases_use(); -EINVAL,
 * there is no such CPU, or there would be more words than events; -EPERM, the caller may
 * not use that CPU; -EOPNOTSUPP, this kernel cannot have words; -ENOMEM; -ERESTARTSYS, a
 * signal.
 */
int twheel_context_configure(struct context *context, const struct twheel_config *config)
{
	enum base_clock clock = clock_of_id(config->clockid);
	int ret = 0;

	if (config->max_events > context_max_events)
		return -ENOSPC;
	if (config->nr_deadlines && !CONTEXT_HAS_DEADLINES)
		return -EOPNOTSUPP;
	if (config->nr_deadlines > config_max_events(config))
		return -EINVAL;
	if (config->flags & TWHEEL_CONFIG_CPU)
		ret = check_cpu(config->cpu);
	if (!ret)
		ret = bases_use(BASE_EVENTS, clock);
	if (!ret && config->nr_deadlines)
		ret = bases_use(BASE_DEADLINES, clock);
	if (ret)
		return ret;

	ret = context_lock(context, CONTEXT_BLOCK);
	if (ret)
		return ret;
	if (context->counts.added || READ_ONCE(context->mapped))
		ret = -EBUSY;
	else
		ret = replace_deadlines(context, config->nr_deadlines);
	if (!ret)
		apply_config(context, config);
	context_unlock(context);
	return ret;
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_context_configure);

/**
 * context_map() - let a process map the words of a context
 * @context: the context.
 * @vma: the mapping.
 *
 * The mm of the caller is locked, so this must not wait for the mutex: see the order of
 * locks in HACKING.md.
 *
 * Return: 0; -ENODEV, it has no words; -EINVAL, as deadlines_map().
 */
int context_map(struct context *context, struct vm_area_struct *vma)
{
	int ret = -ENODEV;

	mutex_lock(&context->map_mutex);
	if (context->deadlines)
		ret = deadlines_map(context->deadlines, vma);
	if (!ret)
		WRITE_ONCE(context->mapped, true);
	mutex_unlock(&context->map_mutex);
	return ret;
}

/* --- commands --------------------------------------------------------------- */

/*
 * Arm an event, which is on no wheel and in no queue, for an ADD or MODIFY.  @flags is
 * EVENT_OPERATION if the event has an operation, or 0.
 *
 * Without __always_inline here, below and in batch.h, an ADD takes 370 -> 390 instructions
 * and a MODIFY 449 -> 473 (tools/bench/timers).
 */
static __always_inline void event_arm(struct context_batch *batch, struct event *event,
				      const struct twheel_cmd *cmd, u8 flags)
{
	struct context *context = batch->context;
	enum base_clock clock = context->clock;
	enum base_kind kind = BASE_EVENTS;
	u64 due_ns;

	/* One of the two is 0, and both are stored in the same place. */
	if (!flags)
		event->interval_ns = cmd->interval_ns | cmd->key;
	else
		event->operation->interval_ns = cmd->interval_ns | cmd->key;
	event->slack_ns = max(cmd->slack_ns, context->slack_ns);
	flags |= NODE_EVENT;
	if (cmd->flags & TWHEEL_DEADLINE) {
		flags |= NODE_DEADLINE;
		kind = BASE_DEADLINES;
	} else if (cmd->flags & TWHEEL_CANCEL_ON_SET) {
		flags |= EVENT_CANCEL_ON_SET;
	}
	if (!(cmd->flags & TWHEEL_ABS) && clock == BASE_REALTIME) {
		flags |= EVENT_BY_MONOTONIC;
		clock = BASE_MONOTONIC;
	}
	event->node.flags = flags;

	base_hold_cpu(&batch->hold, base_role(kind, clock), context->cpu);
	if (cmd->flags & TWHEEL_ABS) {
		due_ns = context_host_ns(context, clock, cmd->time_ns);
		event->due_ns = cmd->time_ns;
	} else {
		due_ns = add_saturating(hold_now_ns(&batch->hold), cmd->time_ns);
		event->due_ns = flags & EVENT_BY_MONOTONIC ?
				event_monotonic_due_ns(event, due_ns) :
				context_seen_ns(context, clock, due_ns);
	}
	event_place(batch, event, due_ns);
}

/* Take an event, whose base is held, off its wheel or out of the ready queue. */
static __always_inline void event_stop_held(struct context_batch *batch,
					    struct event *event)
{
	batch_assert_base_held(batch);
	if (event_state(event) == EVENT_ARMED)
		base_disarm(&batch->hold, &event->node);
	else
		event_unready(event);
}

static __always_inline void event_stop(struct context_batch *batch, struct event *event)
{
	base_hold_node(&batch->hold, &event->node);
	event_stop_held(batch, event);
}

/* The clock was set: end an event that has TWHEEL_CANCEL_ON_SET. */
static void event_clock_set(struct context_batch *batch, struct event *event)
{
	struct base_hold *hold = &batch->hold;

	base_hold_node(hold, &event->node);
	if (event_state(event) == EVENT_ARMED) {
		base_disarm(hold, &event->node);
		event_ready(event, TWHEEL_CLOCK_SET, hold_now_ns(hold), &batch->wake);
	} else {
		event->node.flags |= EVENT_MISSED_SET;
	}
}

static void page_clock_set(struct context_batch *batch, struct event_page *page)
{
	unsigned int i;

	for (i = EVENT_SLOT_FIRST; i < EVENT_PAGE_SLOTS; i++) {
		struct event *event = &page->slots[i];

		if (event_state(event) != EVENT_FREE &&
		    event->node.flags & EVENT_CANCEL_ON_SET)
			event_clock_set(batch, event);
	}
	base_release(&batch->hold);
}

/* If the clock was set, end all events with TWHEEL_CANCEL_ON_SET that were armed before. */
static void sweep_clock_set(struct context_batch *batch)
{
	struct context *context = batch->context;
	unsigned long nr_sets = clock_nr_sets();
	struct event_table *table = &context->events;
	struct event_page *page;
	u32 number;

	lockdep_assert_held(&context->mutex);
	if (nr_sets == context->nr_sets)
		return;
	base_release(&batch->hold);
	for (number = 0; (page = events_page_from(table, &number)); number++) {
		page_clock_set(batch, page);
		cond_resched();
	}
	/* Until this is written, events that are due also see that the clock was set. */
	WRITE_ONCE(context->nr_sets, nr_sets);
}

/* If the mutex is held there is no need to wait: context_unlock() checks again. */
static void context_clock_set(struct work_struct *work)
{
	struct context *context = container_of(work, struct context, notice.work);

	if (twheel_context_begin(context, CONTEXT_NOWAIT))
		return;
	sweep_clock_set(&context->batch);
	twheel_context_end(&context->batch);
}

/* To be called before an event with TWHEEL_CANCEL_ON_SET is armed. */
static void follow_clock(struct context_batch *batch)
{
	struct context *context = batch->context;

	if (context->has_notice) {
		sweep_clock_set(batch);
		return;
	}
	base_release(&batch->hold);
	clock_notice_begin(&context->notice, context_clock_set);
	WRITE_ONCE(context->nr_sets, clock_nr_sets());
	/* Pairs with context_wants_sweep(). */
	smp_store_release(&context->has_notice, true);
}

/* Set the time of an ADD or MODIFY with TWHEEL_DEADLINE to that of its word. */
static int read_deadline(const struct context *context, struct twheel_cmd *cmd)
{
	u32 nr = context->nr_deadlines;

	if (cmd->key >= nr)
		return -EINVAL;
	cmd->key = array_index_nospec((u32)cmd->key, nr);
	cmd->time_ns = deadlines_read(context->deadlines, cmd->key);
	cmd->flags |= TWHEEL_ABS;
	return 0;
}

/* prepare_arm() of a command with TWHEEL_CANCEL_ON_SET or TWHEEL_DEADLINE. */
static noinline int prepare_special(struct context_batch *batch, struct twheel_cmd *cmd)
{
	if (cmd->flags & TWHEEL_DEADLINE)
		return read_deadline(batch->context, cmd);
	if (!(cmd->flags & TWHEEL_ABS) || batch->context->clock != BASE_REALTIME)
		return -EINVAL;
	follow_clock(batch);
	return 0;
}

/* Check what an ADD or MODIFY needs of its context, and prepare it; 0 or -EINVAL. */
static __always_inline int prepare_arm(struct context_batch *batch, struct twheel_cmd *cmd)
{
	if (!(cmd->flags & (TWHEEL_CANCEL_ON_SET | TWHEEL_DEADLINE)))
		return 0;
	return prepare_special(batch, cmd);
}

/* Add an event, with @operation or NULL.  Returns 0, -ENOSPC or -ENOMEM. */
static __always_inline int add_event(struct context_batch *batch, struct twheel_cmd *cmd,
				     struct event_operation *operation)
{
	struct context *context = batch->context;
	struct event *event;

	if (events_lack_room(&context->events)) {
		int ret;

		base_release(&batch->hold);
		ret = events_make_room(&context->events);
		if (ret)
			return ret;
	}

	event = event_alloc(&context->events);
	if (operation)
		event_set_operation(event, operation);
	event->data = cmd->data;
	cmd->id = event_id(event);
	batch->counts.added++;
	/* Before it can be READY: context_has_armed(). */
	WRITE_ONCE(context->used, context->used + 1);
	event_arm(batch, event, cmd, operation ? EVENT_OPERATION : 0);
	return 0;
}

/* Add an event that has a quorum of more than one watch. */
static noinline int add_operation(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct event_operation *operation;
	int ret;

	base_release(&batch->hold);
	operation = event_operation_create(cmd->quorum, 0);
	if (!operation)
		return -ENOMEM;
	ret = add_event(batch, cmd, operation);
	if (ret)
		event_operation_free(operation);
	return ret;
}

/**
 * context_add() - arm a new event
 * @batch: the batch.
 * @cmd: a well-formed ADD; its id is written, and with TWHEEL_DEADLINE its time.
 *
 * Return: 0; -EINVAL, TWHEEL_CANCEL_ON_SET without an absolute time on CLOCK_REALTIME, or
 * there is no such word; -ENOSPC, the context or its user has as many events as allowed;
 * -ENOMEM.
 */
int context_add(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct context *context = batch->context;
	int ret = prepare_arm(batch, cmd);

	if (ret)
		return ret;
	/* @used may be too high during a batch, but never too low. */
	if (context->used >= context->max_events && batch_used(batch) >= context->max_events)
		return -ENOSPC;
	if (cmd->quorum > 1)
		return add_operation(batch, cmd);
	return add_event(batch, cmd, NULL);
}

/**
 * context_undo_add() - undo an ADD whose id could not be written to the caller
 * @batch: the batch that it was in.
 * @id: the id.
 *
 * The caller may have guessed the id and cancelled the event in the same batch.
 */
void context_undo_add(struct context_batch *batch, u64 id)
{
	struct event *event = batch_find(batch, id);

	if (!event)
		return;
	event_stop(batch, event);
	if (event_reason(event) == TWHEEL_COMPLETED)
		batch->counts.completed--;
	batch_free_event(batch, event);
	batch->counts.added--;
}

/*
 * An operation that had expired is armed again: it waits for its new time, and for the
 * watches that it gets from now on.
 */
static void event_revive(struct context_batch *batch, struct event *event)
{
	struct event_operation *operation = event->operation;

	base_release(&batch->hold);
	if (operation->quorum == 1) {
		event_free_operation(batch->context, event);
		return;
	}
	event_free_watches(batch->context, event);
	operation->satisfied = 0;
}

/* Does an event, whose base is held, watch keys, or will it? */
static bool is_waiting(const struct context_batch *batch, const struct event *event)
{
	const struct event_operation *operation = event_operation(event);

	batch_assert_base_held(batch);
	if (!operation)
		return false;
	return operation->quorum > 1 ||
	       (event_state(event) == EVENT_ARMED && operation->watcher.nr_watches);
}

/**
 * context_modify() - give an event another time
 * @batch: the batch.
 * @cmd: a well-formed MODIFY; with TWHEEL_DEADLINE its time is written.
 *
 * The record of a READY event that expired is suppressed.  An ARMED operation keeps its
 * watches; one that expired starts again without watches.
 *
 * Return: 0; -EINVAL, as for context_add(), or an operation would become periodic;
 * -ENOENT, no such event; -EALREADY, it was completed, or ended because the clock was
 * set.
 */
int context_modify(struct context_batch *batch, struct twheel_cmd *cmd)
{
	int ret = prepare_arm(batch, cmd);
	struct event *event;
	bool expired;

	if (ret)
		return ret;
	event = batch_find(batch, cmd->id);
	if (!event)
		return -ENOENT;
	base_hold_node(&batch->hold, &event->node);
	if (event_reason(event) != TWHEEL_EXPIRED)
		return -EALREADY;
	if (cmd->interval_ns && is_waiting(batch, event))
		return -EINVAL;
	expired = event_state(event) == EVENT_READY;
	event_stop_held(batch, event);
	if (expired && event_operation(event))
		event_revive(batch, event);
	if (cmd->flags & TWHEEL_SET_DATA)
		event->data = cmd->data;
	event_arm(batch, event, cmd, event->node.flags & EVENT_OPERATION);
	return 0;
}

/**
 * context_cancel() - end an event without a record
 * @batch: the batch.
 * @cmd: a well-formed CANCEL.
 *
 * Return: 0, no record of it will be read; -ENOENT, no such event.
 */
int context_cancel(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct event *event = batch_find(batch, cmd->id);

	if (!event)
		return -ENOENT;
	event_stop(batch, event);
	batch_free_event(batch, event);
	batch->counts.cancelled++;
	return 0;
}

/**
 * context_query() - read the state and times of an event
 * @batch: the batch.
 * @cmd: a well-formed QUERY; its times are written.
 *
 * Return: TWHEEL_ARMED or TWHEEL_READY; -ENOENT, no such event.
 */
int context_query(struct context_batch *batch, struct twheel_cmd *cmd)
{
	struct event *event = batch_find(batch, cmd->id);
	enum event_state state;

	if (!event)
		return -ENOENT;
	state = event_state(event);
	cmd->time_ns = event_due_seen_ns(event, state);
	cmd->interval_ns = event_interval_ns(event);
	cmd->slack_ns = event->slack_ns;
	return state;
}

/* --- fdinfo ----------------------------------------------------------------- */

/* What fdinfo shows: fields of &struct context, and how many events are in each state. */
struct context_view {
	enum base_clock clock;
	unsigned int cpu;
	unsigned int offline_count;
	u64 max_events;
	u64 slack_ns;
	u32 wake_count;
	u64 wake_delay_ns;
	u32 nr_deadlines;
	struct context_counts counts;
	u64 ready;
	u64 armed;
};

/*
 * Copy a context without its mutex, which may be held for ever during a fault on user
 * memory.  While a batch is under way, more events may be READY than the counts include.
 */
static struct context_view context_look(const struct context *context)
{
	struct context_view view;
	unsigned int seq;
	u64 used;

	do {
		seq = read_seqcount_begin(&context->counts_seq);
		view.clock = context->clock;
		view.cpu = context->cpu;
		view.offline_count = context->offline_count;
		view.max_events = context->max_events;
		view.slack_ns = context->slack_ns;
		view.wake_count = context->wake_count;
		view.wake_delay_ns = context->wake_delay_ns;
		view.nr_deadlines = context->nr_deadlines;
		view.counts = context->counts;
	} while (read_seqcount_retry(&context->counts_seq, seq));
	used = counts_used(&view.counts);
	view.ready = min(READ_ONCE(context->nr_ready), used);
	view.armed = used - view.ready;
	return view;
}

/* Of a context that is bound to a CPU: where its events are armed, and if they moved. */
static void show_cpu(const struct context_view *view, struct seq_file *seq)
{
	seq_printf(seq, "cpu:\t%u\n", base_serving_cpu(view->cpu));
	seq_printf(seq, "moved:\t%d\n",
		   bases_offline_count(view->cpu) != view->offline_count);
}

/**
 * context_show() - write the lines of fdinfo
 * @context: the context.
 * @seq: where they go.
 *
 * Takes none of the context's locks.
 */
void context_show(const struct context *context, struct seq_file *seq)
{
	const struct context_view view = context_look(context);

	seq_printf(seq, "clockid:\t%d\n", base_clock_id(view.clock));
	seq_printf(seq, "max_events:\t%llu\n", view.max_events);
	seq_printf(seq, "added:\t%llu\n", view.counts.added);
	seq_printf(seq, "armed:\t%llu\n", view.armed);
	seq_printf(seq, "ready:\t%llu\n", view.ready);
	seq_printf(seq, "finished:\t%llu\n", view.counts.finished);
	seq_printf(seq, "cancelled:\t%llu\n", view.counts.cancelled);
	seq_printf(seq, "completed:\t%llu\n", view.counts.completed);
	seq_printf(seq, "records:\t%llu\n", view.counts.records);
	seq_printf(seq, "slack_ns:\t%llu\n", view.slack_ns);
	seq_printf(seq, "wake_count:\t%u\n", view.wake_count);
	seq_printf(seq, "wake_delay_ns:\t%llu\n", view.wake_delay_ns);
	if (view.nr_deadlines) {
		seq_printf(seq, "deadlines:\t%u\n", view.nr_deadlines);
		seq_printf(seq, "postponed:\t%llu\n",
			   (u64)atomic64_read(&context->nr_postponed));
	}
	if (view.cpu != BASE_ANY_CPU)
		show_cpu(&view, seq);
}
