/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events whose time is a word, beside plain arrays that must agree with them.
 *
 * Each step stores a time, runs a command, reads records or lets time pass.  Time is real
 * and short.  All events are armed on this CPU and come out in its interrupts, so none comes
 * out while interrupts are off.  A store is made in one piece with a look at all events,
 * thus no word changes between two looks.  So the word tells what became of an event since
 * the last look: either it still waits for the tick that it waited for; or that tick has
 * come, and it waits for the time in the word; or it is READY for the time in the word.
 *
 * How often events were postponed is not known exactly.  An event may be READY at the
 * next look though its word had a later time than the tick that it waited for: either it
 * was postponed, or it came out late.  So the model keeps a lower and an upper bound.
 *
 * Included by deadline_kunit.c.
 */
#ifndef TWHEEL_DEADLINE_MODEL_H
#define TWHEEL_DEADLINE_MODEL_H

#include <linux/delay.h>
#include <linux/prandom.h>

#include "commands.h"
#include "patience.h"
#include "ticks.h"

#define MODEL_EVENTS	32
#define MODEL_WORDS	8

/**
 * struct model_event - what an event must be like
 * @id: its id.
 * @state: FREE, ARMED or READY.
 * @by_word: its time is a word.
 * @word: the index of that word.
 * @tick: ARMED: the tick that it waits for.
 * @due_ns: READY, or not @by_word: the time that its record must have.
 * @slack_ns: its slack.
 * @reason: READY: the reason in its record.
 */
struct model_event {
	u64 id;
	enum event_state state;
	bool by_word;
	u32 word;
	u64 tick;
	u64 due_ns;
	u64 slack_ns;
	u32 reason;
};

/**
 * struct deadline_model - a context, and what must be in it
 * @shift: a tick is 2^this ns.
 * @words: the times in the words.
 * @looked_ns: time of the last look at the events.
 * @least: lower bound of how often events were postponed.
 * @most: upper bound of that.
 */
struct deadline_model {
	struct kunit *test;
	struct rnd_state random;
	unsigned int shift;
	u64 step;
	u64 words[MODEL_WORDS];
	struct model_event events[MODEL_EVENTS];
	u64 looked_ns;
	u64 least;
	u64 most;
	u64 added;
	u64 finished;
	u64 cancelled;
	u64 completed;
	struct twheel_record records[4];
};

static u32 model_random(struct deadline_model *model, u32 below)
{
	return prandom_u32_state(&model->random) % below;
}

/* Read the events from memory with interrupts off: no command does. */
static const struct event *model_look_up(struct deadline_model *model,
					 const struct model_event *mine)
{
	const struct context *context = model->test->priv;
	const struct event *event = event_find(&context->events, mine->id);

	if (!event)
		KUNIT_FAIL(model->test, "step %llu: event %llx is gone", model->step,
			   mine->id);
	return event;
}

static u64 model_due_ns(const struct deadline_model *model,
			const struct model_event *mine)
{
	return mine->by_word ? model->words[mine->word] : mine->due_ns;
}

/* The tick of an event that is armed for a time. */
static u64 model_tick(const struct deadline_model *model,
		      const struct model_event *mine, u64 due_ns)
{
	return due_ns >= NEVER_NS ? NEVER_NS >> model->shift :
	       roundest_tick(due_ns, mine->slack_ns, model->shift);
}

/*
 * An event was ARMED at the last look, and is not ARMED now or may have come out since. It
 * may have been postponed before that.
 */
static void model_note_doubt(struct deadline_model *model, const struct model_event *mine)
{
	u64 tick_ns = mine->tick << model->shift;

	if (mine->by_word && mine->state == EVENT_ARMED && ktime_get_ns() >= tick_ns &&
	    model->words[mine->word] > max(tick_ns, model->looked_ns))
		model->most++;
}

/* An event expired since the last look. */
static void model_expired(struct deadline_model *model, struct model_event *mine,
			  u64 due_ns, u64 fired_ns)
{
	struct kunit *test = model->test;

	KUNIT_EXPECT_EQ(test, due_ns, model_due_ns(model, mine));
	KUNIT_EXPECT_GE(test, fired_ns, due_ns);
	KUNIT_EXPECT_GE(test, fired_ns, mine->tick << model->shift);
	KUNIT_EXPECT_GE(test, fired_ns, model->looked_ns);
	KUNIT_EXPECT_LE(test, fired_ns, ktime_get_ns());
	mine->due_ns = due_ns;
	mine->state = EVENT_READY;
	mine->reason = TWHEEL_EXPIRED;
}

/* An event waits for another tick than at the last look. */
static void model_waits_on(struct deadline_model *model, struct model_event *mine,
			   u64 tick)
{
	struct kunit *test = model->test;
	u64 word_ns = model->words[mine->word], tick_ns = mine->tick << model->shift;

	KUNIT_EXPECT_TRUE(test, mine->by_word);
	KUNIT_EXPECT_EQ(test, tick, model_tick(model, mine, word_ns));
	/*
	 * The word is later than the tick that the event waited for, and that tick has
	 * come.
	 */
	KUNIT_EXPECT_GT(test, word_ns, tick_ns);
	KUNIT_EXPECT_GE(test, ktime_get_ns(), tick_ns);
	mine->tick = tick;
	model->least++;
	model->most++;
}

static void model_look_at(struct deadline_model *model, struct model_event *mine)
{
	const struct event *event = model_look_up(model, mine);

	if (!event)
		return;
	if (event_state(event) == EVENT_READY) {
		model_note_doubt(model, mine);
		model_expired(model, mine, event->due_ns, event->fired_ns);
	} else if (wheel_due(&event->node.wheel) != mine->tick) {
		model_waits_on(model, mine, wheel_due(&event->node.wheel));
	}
}

/* Look at all events, with interrupts off. */
static void model_look(struct deadline_model *model)
{
	const struct context *context = model->test->priv;
	u64 postponed;
	unsigned int i;

	for (i = 0; i < MODEL_EVENTS; i++)
		if (model->events[i].state == EVENT_ARMED)
			model_look_at(model, &model->events[i]);
	postponed = atomic64_read(&context->nr_postponed);
	KUNIT_EXPECT_GE(model->test, postponed, model->least);
	KUNIT_EXPECT_LE(model->test, postponed, model->most);
	model->looked_ns = ktime_get_ns();
}

static void model_look_now(struct deadline_model *model)
{
	local_irq_disable();
	model_look(model);
	local_irq_enable();
}

/* --- steps ------------------------------------------------------------------ */

/* A random time: one in eight is never or in the past, the others are soon. */
static u64 model_time(struct deadline_model *model)
{
	u64 now_ns = ktime_get_ns();

	switch (model_random(model, 16)) {
	case 0:
		return NEVER_NS + model_random(model, 2);
	case 1:
		return U64_MAX - model_random(model, 2);
	case 2:
		return model_random(model, 2);
	case 3:
		return now_ns - model_random(model, NSEC_PER_MSEC);
	default:
		return now_ns + model_random(model, 4 * NSEC_PER_MSEC);
	}
}

/*
 * Look at the events and store to some words, with interrupts off, so that none comes out
 * between.
 */
static void model_store(struct deadline_model *model)
{
	unsigned int nr = 1 + model_random(model, MODEL_WORDS);

	local_irq_disable();
	model_look(model);
	while (nr--) {
		u32 index = model_random(model, MODEL_WORDS);

		model->words[index] = model_time(model);
		store(model->test, index, model->words[index]);
	}
	local_irq_enable();
}

/* An event was just armed: expect it as armed now, unless it is READY already. */
static void model_armed(struct deadline_model *model, struct model_event *mine)
{
	struct kunit *test = model->test;
	const struct event *event;
	u64 due_ns;

	local_irq_disable();
	event = model_look_up(model, mine);
	due_ns = model_due_ns(model, mine);
	mine->state = EVENT_ARMED;
	mine->tick = model_tick(model, mine, due_ns);
	if (event && event_state(event) == EVENT_READY) {
		/* An event with a past time is READY without waiting for a tick. */
		mine->tick = due_ns >> model->shift;
		model_expired(model, mine, event->due_ns, event->fired_ns);
	} else if (event) {
		KUNIT_EXPECT_GT(test, due_ns, model->looked_ns);
		KUNIT_EXPECT_EQ(test, wheel_due(&event->node.wheel), mine->tick);
		KUNIT_EXPECT_EQ(test, event_interval_ns(event), 0ULL);
	}
	local_irq_enable();
}

/* Write a random time for an event into a command, by a word or not. */
static void model_choose(struct deadline_model *model, struct model_event *mine,
			 struct twheel_cmd *cmd)
{
	mine->by_word = model_random(model, 4);
	mine->slack_ns = model_random(model, 3) ? 0 : model_random(model, 500000);
	cmd->slack_ns = mine->slack_ns;
	if (mine->by_word) {
		mine->word = model_random(model, MODEL_WORDS);
		cmd->flags = TWHEEL_DEADLINE;
		cmd->key = mine->word;
	} else {
		mine->due_ns = model_time(model);
		cmd->flags = TWHEEL_ABS;
		cmd->time_ns = mine->due_ns;
	}
}

static void model_add(struct deadline_model *model, struct model_event *mine)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.data = mine - model->events,
	};

	if (mine->state != EVENT_FREE)
		return;
	model_choose(model, mine, &cmd);
	KUNIT_EXPECT_EQ(model->test, run(model->test, &cmd), 0);
	mine->id = cmd.id;
	model->added++;
	model_armed(model, mine);
}

static void model_modify(struct deadline_model *model, struct model_event *mine)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_MODIFY, .id = mine->id };
	struct model_event before = *mine;
	int ret;

	if (mine->state == EVENT_FREE)
		return;
	model_choose(model, mine, &cmd);
	ret = run(model->test, &cmd);
	if (before.state == EVENT_READY && before.reason == TWHEEL_COMPLETED) {
		KUNIT_EXPECT_EQ(model->test, ret, -EALREADY);
		*mine = before;
		return;
	}
	KUNIT_EXPECT_EQ(model->test, ret, 0);
	model_note_doubt(model, &before);
	model_armed(model, mine);
}

static void model_cancel(struct deadline_model *model, struct model_event *mine)
{
	if (mine->state == EVENT_FREE)
		return;
	KUNIT_EXPECT_EQ(model->test, cancel(model->test, mine->id), 0);
	model_note_doubt(model, mine);
	mine->state = EVENT_FREE;
	model->cancelled++;
}

static void model_complete(struct deadline_model *model, struct model_event *mine)
{
	int ret;

	if (mine->state == EVENT_FREE)
		return;
	ret = complete_event(model->test, mine->id, 0);
	if (mine->state == EVENT_READY)
		KUNIT_EXPECT_EQ(model->test, ret, -EALREADY);
	/* If the event has become READY meanwhile, the next look finds that. */
	if (ret == -EALREADY)
		return;
	KUNIT_EXPECT_EQ(model->test, ret, 0);
	model_note_doubt(model, mine);
	mine->due_ns = model_due_ns(model, mine);
	mine->state = EVENT_READY;
	mine->reason = TWHEEL_COMPLETED;
	model->completed++;
}

static void model_query(struct deadline_model *model, const struct model_event *mine)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_QUERY, .id = mine->id };
	struct kunit *test = model->test;
	int ret;

	if (mine->state == EVENT_FREE)
		return;
	ret = run(test, &cmd);
	if (ret != TWHEEL_READY)
		KUNIT_EXPECT_EQ(test, ret, (int)mine->state);
	/* An event that has become READY meanwhile has this due time too. */
	KUNIT_EXPECT_EQ(test, cmd.time_ns, mine->state == EVENT_ARMED ?
					   model_due_ns(model, mine) : mine->due_ns);
	KUNIT_EXPECT_EQ(test, cmd.interval_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, cmd.slack_ns, mine->slack_ns);
}

static void model_was_read(struct deadline_model *model,
			   const struct twheel_record *record)
{
	struct model_event *mine = &model->events[record->data % MODEL_EVENTS];
	struct kunit *test = model->test;

	KUNIT_EXPECT_NE(test, (int)mine->state, (int)EVENT_FREE);
	if (mine->state == EVENT_ARMED) {
		model_note_doubt(model, mine);
		model_expired(model, mine, record->due_ns, record->fired_ns);
	}
	KUNIT_EXPECT_EQ(test, record->id, mine->id);
	KUNIT_EXPECT_EQ(test, record->due_ns, mine->due_ns);
	KUNIT_EXPECT_EQ(test, record->reason, mine->reason);
	KUNIT_EXPECT_EQ(test, record->count, 1ULL);
	mine->state = EVENT_FREE;
	model->finished++;
}

static void model_read(struct deadline_model *model)
{
	ssize_t i, bytes = read_records(model->test, model->records,
					ARRAY_SIZE(model->records), CONTEXT_NONBLOCK);

	for (i = 0; i < bytes / (ssize_t)sizeof(model->records[0]); i++)
		model_was_read(model, &model->records[i]);
}

static void model_step(struct deadline_model *model)
{
	const struct context *context = model->test->priv;
	struct model_event *mine = &model->events[model_random(model, MODEL_EVENTS)];

	model->step++;
	model_look_now(model);
	switch (model_random(model, 16)) {
	case 0 ... 5:
		model_store(model);
		break;
	case 6 ... 8:
		udelay(model_random(model, 100));
		break;
	case 9 ... 10:
		model_add(model, mine);
		break;
	case 11:
		model_modify(model, mine);
		break;
	case 12:
		if (model_random(model, 2))
			model_cancel(model, mine);
		else
			model_complete(model, mine);
		break;
	case 13:
		model_query(model, mine);
		break;
	default:
		model_read(model);
	}
	KUNIT_EXPECT_EQ(model->test, context->counts.added, model->added);
	KUNIT_EXPECT_EQ(model->test, context->counts.finished, model->finished);
	KUNIT_EXPECT_EQ(model->test, context->counts.cancelled, model->cancelled);
	KUNIT_EXPECT_EQ(model->test, context->counts.completed, model->completed);
}

/* --- the end ---------------------------------------------------------------- */

/* Will there be a record of that event, if no word changes any more? */
static bool model_expects(const struct deadline_model *model,
			  const struct model_event *mine)
{
	if (mine->state == EVENT_ARMED)
		return mine->tick < NEVER_NS >> model->shift &&
		       model_due_ns(model, mine) < NEVER_NS;
	return mine->state == EVENT_READY;
}

/* Read the records that are there; return whether more are expected. */
static bool model_read_expects_more(struct deadline_model *model)
{
	unsigned int i;

	model_look_now(model);
	model_read(model);
	for (i = 0; i < MODEL_EVENTS; i++)
		if (model_expects(model, &model->events[i]))
			return true;
	return false;
}

/* Read all records that are expected; false: some do not come. */
static bool model_drain(struct deadline_model *model)
{
	return sleep_until(!model_read_expects_more(model), 500);
}

/*
 * End the test: no word changes any more. An event that does not wait for ever comes, for
 * the last value of its word; one that waits for ever comes after a MODIFY; each event that
 * is left has a word that says never.
 */
static void model_end(struct deadline_model *model)
{
	struct kunit *test = model->test;
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, model_drain(model));
	for (i = 0; i < MODEL_EVENTS; i++) {
		struct model_event *mine = &model->events[i];

		if (mine->state == EVENT_FREE || !mine->by_word)
			continue;
		KUNIT_EXPECT_EQ(test, modify_deadline(test, mine->id, mine->word), 0);
		mine->slack_ns = 0;
		model_armed(model, mine);
	}
	KUNIT_EXPECT_TRUE(test, model_drain(model));
	for (i = 0; i < MODEL_EVENTS; i++) {
		struct model_event *mine = &model->events[i];

		if (mine->state == EVENT_FREE)
			continue;
		KUNIT_EXPECT_GE(test, model_due_ns(model, mine), NEVER_NS);
		model_query(model, mine);
		model_cancel(model, mine);
	}
	KUNIT_EXPECT_EQ(test, model->added, model->finished + model->cancelled);
}

#endif /* TWHEEL_DEADLINE_MODEL_H */
