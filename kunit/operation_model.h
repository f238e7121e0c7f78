/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The events of a context beside plain arrays that must agree with them.
 *
 * Each step is a random command or a read, and is done to both. The arrays use no trees,
 * totals or modular numbers: each watch has the sum of the signals since it was attached,
 * and each signal goes through all watches. Times are an hour or zero, so that the result
 * does not depend on the clock.
 *
 * Included by context_kunit.c.
 */
#ifndef TWHEEL_OPERATION_MODEL_H
#define TWHEEL_OPERATION_MODEL_H

#include <linux/prandom.h>

#include "commands.h"

#define MODEL_EVENTS	24
#define MODEL_KEYS	4

struct model_watch {
	u64 key;
	bool level;
	u64 need;
	u64 sum;		/* sum of signals since it was attached; saturates */
};

/**
 * struct model_event - what an event must be like
 * @id: its id; while it is FREE, that of the last one here.
 * @state: FREE, ARMED or READY.
 * @since: READY: the step in which that happened.
 * @satisfied: how many watches were.
 * @watches: those that it still waits for.
 */
struct model_event {
	u64 id;
	u64 data;
	u64 interval_ns;
	enum event_state state;
	u64 since;
	u32 reason;
	u64 value;
	u64 key;
	u32 flags;
	u32 quorum;
	u32 satisfied;
	unsigned int nr_watches;
	struct model_watch watches[TWHEEL_MAX_WATCHES];
};

struct operation_model {
	struct kunit *test;
	struct rnd_state random;
	u64 step;
	u64 added;
	u64 finished;
	u64 cancelled;
	u64 completed;
	u64 records;
	struct model_event events[MODEL_EVENTS];
	struct twheel_entry entries[MODEL_EVENTS + 1];
};

static u32 model_random(struct operation_model *model, u32 below)
{
	return prandom_u32_state(&model->random) % below;
}

/* Most values are small, so that several add up; some are as large as possible. */
static u64 model_amount(struct operation_model *model)
{
	u64 number = (u64)prandom_u32_state(&model->random) << 32 |
		     prandom_u32_state(&model->random);

	switch (model_random(model, 8)) {
	case 0:
		return U64_MAX - number % 20;
	case 1:
		return number >> model_random(model, 64);
	default:
		return number % 20;
	}
}

static u64 model_time(struct operation_model *model)
{
	return model_random(model, 6) ? HOUR_NS : 0;
}

/* A random event, mostly one that exists. */
static struct model_event *model_any(struct operation_model *model)
{
	struct model_event *event = &model->events[model_random(model, MODEL_EVENTS)];

	if (event->state == EVENT_FREE)
		event = &model->events[model_random(model, MODEL_EVENTS)];
	return event;
}

/* An event that is FREE, or NULL. */
static struct model_event *model_free(struct operation_model *model)
{
	unsigned int i;

	for (i = 0; i < MODEL_EVENTS; i++) {
		if (model->events[i].state == EVENT_FREE)
			return &model->events[i];
	}
	return NULL;
}

static void model_ready(struct operation_model *model, struct model_event *event,
			u32 reason)
{
	event->state = EVENT_READY;
	event->since = model->step;
	event->reason = reason;
	event->value = 0;
	event->key = 0;
	event->flags = 0;
	event->nr_watches = 0;
}

static void model_complete(struct operation_model *model, struct model_event *event,
			   u32 flags, u64 key, u64 value)
{
	model_ready(model, event, TWHEEL_COMPLETED);
	event->flags = flags;
	event->key = key;
	event->value = value;
	model->completed++;
}

static void model_arm(struct operation_model *model, struct model_event *event,
		      const struct twheel_cmd *cmd)
{
	event->state = EVENT_ARMED;
	event->interval_ns = cmd->interval_ns;
	if (!cmd->time_ns)
		model_ready(model, event, TWHEEL_EXPIRED);
}

/* --- what each command must answer, and does -------------------------------- */

static int model_add(struct operation_model *model, struct model_event *event,
		     const struct twheel_cmd *cmd)
{
	if (cmd->quorum > TWHEEL_MAX_WATCHES || (cmd->quorum && cmd->interval_ns))
		return -EINVAL;
	event->data = cmd->data;
	event->quorum = max(cmd->quorum, 1U);
	event->satisfied = 0;
	event->nr_watches = 0;
	model_arm(model, event, cmd);
	model->added++;
	return 0;
}

static int model_modify(struct operation_model *model, struct model_event *event,
			const struct twheel_cmd *cmd)
{
	if (event->state == EVENT_FREE)
		return -ENOENT;
	if (event->state == EVENT_READY && event->reason != TWHEEL_EXPIRED)
		return -EALREADY;
	if (cmd->interval_ns && (event->quorum > 1 || event->nr_watches))
		return -EINVAL;
	if (event->state == EVENT_READY)
		event->satisfied = 0;
	if (cmd->flags & TWHEEL_SET_DATA)
		event->data = cmd->data;
	model_arm(model, event, cmd);
	return 0;
}

static int model_cancel(struct operation_model *model, struct model_event *event)
{
	if (event->state == EVENT_FREE)
		return -ENOENT;
	event->state = EVENT_FREE;
	model->cancelled++;
	return 0;
}

static int model_complete_by_id(struct operation_model *model,
				struct model_event *event, u64 value)
{
	if (event->state == EVENT_FREE)
		return -ENOENT;
	if (event->state == EVENT_READY)
		return -EALREADY;
	model_complete(model, event, 0, 0, value);
	return 0;
}

static int model_watch(struct model_event *event, const struct twheel_cmd *cmd)
{
	if (!cmd->value)
		return -EINVAL;
	if (event->state == EVENT_FREE)
		return -ENOENT;
	if (event->interval_ns)
		return -EINVAL;
	if (event->state == EVENT_READY)
		return -EALREADY;
	if (event->nr_watches == TWHEEL_MAX_WATCHES)
		return -ENOSPC;
	event->watches[event->nr_watches++] = (struct model_watch){
		.key = cmd->key,
		.level = cmd->flags & TWHEEL_LEVEL,
		.need = cmd->value,
	};
	return 0;
}

/* Add a signal to a watch; true: the watch is satisfied. */
static bool model_tell(struct model_watch *watch, u64 value)
{
	if (watch->level)
		return value >= watch->need;
	if (check_add_overflow(watch->sum, value, &watch->sum))
		watch->sum = U64_MAX;
	return watch->sum >= watch->need;
}

/* Add a signal to all watches of the key that an event has; return their number. */
static unsigned int model_tell_all(struct model_event *event,
				   const struct twheel_cmd *cmd)
{
	unsigned int i = 0, told = 0;

	while (i < event->nr_watches) {
		struct model_watch *watch = &event->watches[i];

		told += watch->key == cmd->key;
		if (watch->key == cmd->key && model_tell(watch, cmd->value)) {
			event->satisfied++;
			*watch = event->watches[--event->nr_watches];
		} else {
			i++;
		}
	}
	return told;
}

static int model_signal(struct operation_model *model, const struct twheel_cmd *cmd)
{
	unsigned int i;
	int ended = 0;

	for (i = 0; i < MODEL_EVENTS; i++) {
		struct model_event *event = &model->events[i];

		if (event->state != EVENT_ARMED || !model_tell_all(event, cmd))
			continue;
		if (cmd->flags & TWHEEL_QUIET)
			model_cancel(model, event);
		else if (event->satisfied >= event->quorum)
			model_complete(model, event, TWHEEL_RECORD_SIGNAL, cmd->key,
				       cmd->value);
		ended += event->state != EVENT_ARMED;
	}
	return ended;
}

/* --- steps ------------------------------------------------------------------ */

static void model_expect(struct operation_model *model, struct twheel_cmd *cmd,
			 int expected)
{
	KUNIT_ASSERT_EQ_MSG(model->test, run(model->test, cmd), expected,
			    "step %llu, op %u", model->step, cmd->op);
}

static void model_step_add(struct operation_model *model)
{
	static const u32 quorums[] = { 0, 0, 0, 0, 1, 2, 2, 3, 5, 64, 65 };
	struct model_event *event = model_free(model);
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.data = model->step,
		.time_ns = model_time(model),
		.interval_ns = model_random(model, 6) ? 0 : HOUR_NS,
		.quorum = quorums[model_random(model, ARRAY_SIZE(quorums))],
	};

	if (!event)
		return;
	model_expect(model, &cmd, model_add(model, event, &cmd));
	if (cmd.id)
		event->id = cmd.id;
}

static void model_step_modify(struct operation_model *model)
{
	struct model_event *event = model_any(model);
	bool data = model_random(model, 2);
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_MODIFY,
		.flags = data ? TWHEEL_SET_DATA : 0,
		.id = event->id,
		.data = data ? model->step : 0,
		.time_ns = model_time(model),
		.interval_ns = model_random(model, 6) ? 0 : HOUR_NS,
	};

	model_expect(model, &cmd, model_modify(model, event, &cmd));
}

static void model_step_cancel(struct operation_model *model)
{
	struct model_event *event = model_any(model);
	struct twheel_cmd cmd = { .op = TWHEEL_OP_CANCEL, .id = event->id };

	model_expect(model, &cmd, model_cancel(model, event));
}

static void model_step_complete(struct operation_model *model)
{
	struct model_event *event = model_any(model);
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_COMPLETE,
		.id = event->id,
		.value = model_amount(model),
	};

	model_expect(model, &cmd, model_complete_by_id(model, event, cmd.value));
}

/* Add one watch, or now and then more than an event may have. */
static void model_step_watch(struct operation_model *model)
{
	struct model_event *event = model_any(model);
	unsigned int nr = model_random(model, 100) ? 1 : TWHEEL_MAX_WATCHES + 1;

	while (nr--) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_WATCH,
			.flags = model_random(model, 3) ? 0 : TWHEEL_LEVEL,
			.id = event->id,
			.value = model_amount(model),
			.key = model_random(model, MODEL_KEYS),
		};

		model_expect(model, &cmd, model_watch(event, &cmd));
	}
}

static void model_step_signal(struct operation_model *model)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_SIGNAL,
		.flags = model_random(model, 20) ? 0 : TWHEEL_QUIET,
		.value = model_amount(model),
		.key = model_random(model, MODEL_KEYS),
	};

	model_expect(model, &cmd, model_signal(model, &cmd));
}

static struct model_event *model_find(struct operation_model *model, u64 id)
{
	struct model_event *event = model->events;

	while (event < model->events + MODEL_EVENTS &&
	       (event->state == EVENT_FREE || event->id != id))
		event++;
	KUNIT_ASSERT_LT_MSG(model->test, event - model->events,
			    (ptrdiff_t)MODEL_EVENTS, "step %llu", model->step);
	return event;
}

/* Count the READY events; @since: the step of the oldest one. */
static unsigned int model_nr_ready(const struct operation_model *model, u64 *since)
{
	unsigned int i, nr = 0;

	*since = U64_MAX;
	for (i = 0; i < MODEL_EVENTS; i++) {
		if (model->events[i].state != EVENT_READY)
			continue;
		*since = min(*since, model->events[i].since);
		nr++;
	}
	return nr;
}

static void model_read_one(struct operation_model *model,
			   const struct twheel_record *record)
{
	struct model_event *event = model_find(model, record->id);
	struct kunit *test = model->test;
	u64 since;

	model_nr_ready(model, &since);
	KUNIT_ASSERT_EQ(test, (int)event->state, (int)EVENT_READY);
	KUNIT_ASSERT_EQ(test, event->since, since);
	KUNIT_ASSERT_EQ(test, record->data, event->data);
	KUNIT_ASSERT_EQ(test, record->reason, event->reason);
	KUNIT_ASSERT_EQ(test, record->value, event->value);
	KUNIT_ASSERT_EQ(test, record->key, event->key);
	KUNIT_ASSERT_EQ(test, record->count, 1ULL);
	KUNIT_ASSERT_EQ(test, record->flags, event->flags);
	model->records++;
	if (event->interval_ns && event->reason == TWHEEL_EXPIRED) {
		event->state = EVENT_ARMED;
	} else {
		event->state = EVENT_FREE;
		model->finished++;
	}
}

static void model_step_read(struct operation_model *model)
{
	struct twheel_record records[8];
	unsigned int i, room = 1 + model_random(model, ARRAY_SIZE(records));
	u64 since;
	unsigned int nr = min(room, model_nr_ready(model, &since));
	ssize_t expected = nr ? (ssize_t)(nr * sizeof(records[0])) : -EAGAIN;

	KUNIT_ASSERT_EQ(model->test, read_records(model->test, records, room,
						  CONTEXT_NONBLOCK), expected);
	for (i = 0; i < nr; i++)
		model_read_one(model, &records[i]);
}

/* --- comparison ------------------------------------------------------------- */

static void model_compare_one(struct operation_model *model,
			      const struct twheel_entry *entry)
{
	const struct model_event *event = model_find(model, entry->id);
	bool ready = event->state == EVENT_READY;
	struct kunit *test = model->test;

	KUNIT_ASSERT_EQ(test, entry->state, (u32)event->state);
	KUNIT_ASSERT_EQ(test, entry->reason, ready ? event->reason : 0);
	KUNIT_ASSERT_EQ(test, entry->data, event->data);
	KUNIT_ASSERT_EQ(test, entry->interval_ns, event->interval_ns);
	KUNIT_ASSERT_EQ(test, entry->quorum, event->quorum);
	KUNIT_ASSERT_EQ(test, entry->watches, event->nr_watches);
}

static void model_compare(struct operation_model *model)
{
	const struct context *context = model->test->priv;
	struct kunit *test = model->test;
	u64 cursor = 0, since;
	ssize_t nr, i;

	nr = list_entries(test, &cursor, model->entries, ARRAY_SIZE(model->entries));
	KUNIT_ASSERT_EQ(test, (u64)nr,
			model->added - model->finished - model->cancelled);
	for (i = 0; i < nr; i++)
		model_compare_one(model, &model->entries[i]);
	KUNIT_ASSERT_EQ(test, READ_ONCE(context->nr_ready),
			(u64)model_nr_ready(model, &since));
	KUNIT_ASSERT_EQ(test, context->counts.added, model->added);
	KUNIT_ASSERT_EQ(test, context->counts.finished, model->finished);
	KUNIT_ASSERT_EQ(test, context->counts.cancelled, model->cancelled);
	KUNIT_ASSERT_EQ(test, context->counts.completed, model->completed);
	KUNIT_ASSERT_EQ(test, context->counts.records, model->records);
}

/* Do a random command on both. */
static void model_step(struct operation_model *model)
{
	model->step++;
	switch (model_random(model, 20)) {
	case 0 ... 4:
		model_step_add(model);
		break;
	case 5 ... 10:
		model_step_watch(model);
		break;
	case 11 ... 14:
		model_step_signal(model);
		break;
	case 15 ... 16:
		model_step_modify(model);
		break;
	case 17:
		if (model_random(model, 2))
			model_step_complete(model);
		else
			model_step_cancel(model);
		break;
	default:
		model_step_read(model);
	}
	model_compare(model);
}

/* End all events; then there must be no watch and no key. */
static void model_end(struct operation_model *model)
{
	const struct context *context = model->test->priv;
	unsigned int i;

	for (i = 0; i < MODEL_EVENTS; i++) {
		struct model_event *event = &model->events[i];
		struct twheel_cmd cmd = { .op = TWHEEL_OP_CANCEL, .id = event->id };

		model_expect(model, &cmd, model_cancel(model, event));
	}
	model_compare(model);
	KUNIT_EXPECT_EQ(model->test, context->nr_watches, 0ULL);
	KUNIT_EXPECT_EQ(model->test, atomic_read(&context->keys->nelems), 0);
}

#endif /* TWHEEL_OPERATION_MODEL_H */
