// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of deadlines: events whose time is a word of their context's, which is
 * stored to from here as a process does that maps it.  How a process maps it is tested
 * by tools/test/device/.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "counter.h"
#include "deadline_model.h"
#include "patience.h"
#include "spy.h"

#define MODEL_STEPS	20000

static ulong seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "Seed of the model test (default: a random one)");

static int deadline_suite_init(struct kunit *test)
{
	test->priv = twheel_context_create();
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	return 0;
}

static void deadline_suite_exit(struct kunit *test)
{
	twheel_context_destroy(test->priv);
}

static void make_words(struct kunit *test, u32 nr)
{
	KUNIT_ASSERT_EQ(test, configure_deadlines(test, nr), 0);
}

static struct event *event_of(struct kunit *test, u64 id)
{
	struct context *context = test->priv;
	struct event *event = event_find(&context->events, id);

	KUNIT_ASSERT_NOT_NULL(test, event);
	return event;
}

static u64 nr_postponed(struct kunit *test)
{
	struct context *context = test->priv;

	return atomic64_read(&context->nr_postponed);
}

/* A tick is 2^this ns, as can be seen in a context of its own. */
static unsigned int tick_shift(struct kunit *test)
{
	struct context *context = test->priv;
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_ABS,
		.time_ns = BIT_ULL(62),
	};
	unsigned int shift;

	test->priv = twheel_context_create();
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	shift = 62 - ilog2(wheel_due(&event_of(test, cmd.id)->node.wheel));
	twheel_context_destroy(test->priv);
	test->priv = context;
	return shift;
}

#define SOON_NS		(20 * NSEC_PER_MSEC)

/*
 * Add an event that waits for a time soon, and store another one before that has come;
 * return for what it waits.
 */
static u64 add_and_store(struct kunit *test, u32 index, u64 slack_ns, u64 time_ns, u64 *id)
{
	for (;;) {
		u64 soon_ns = ktime_get_ns() + SOON_NS;

		store(test, index, soon_ns);
		KUNIT_ASSERT_EQ(test, add_deadline(test, index, slack_ns, id), 0);
		store(test, index, time_ns);
		if (ktime_get_ns() < soon_ns)
			return soon_ns;
		KUNIT_ASSERT_EQ(test, cancel(test, *id), 0);
	}
}

/* Wait until an event that was postponed waits for that tick. */
static void wait_until_it_waits_for(struct kunit *test, u64 id, u64 tick)
{
	const struct event *event = event_of(test, id);
	unsigned long slept_us = 0;
	struct wheel_node node;

	do {
		node.place = READ_ONCE(event->node.wheel.place);
	} while (wheel_due(&node) != tick && sleep_again(&slept_us, 1000));
	KUNIT_ASSERT_EQ(test, wheel_due(&node), tick);
}

/* Wait until events were postponed so often. */
static void wait_until_postponed(struct kunit *test, u64 nr)
{
	unsigned long slept_us = 0;

	while (nr_postponed(test) < nr && sleep_again(&slept_us, 1000))
		;
	KUNIT_ASSERT_GE(test, nr_postponed(test), nr);
}

/* Read a record, for which there should be one soon. */
static void read_soon(struct kunit *test, struct twheel_record *record)
{
	unsigned long slept_us = 0;

	while (!twheel_context_readable(test->priv) && sleep_again(&slept_us, 500))
		;
	read_record(test, record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_GE(test, record->fired_ns, record->due_ns);
}

/* --- the words -------------------------------------------------------------- */

static void words_are_zero_and_due_at_once(struct kunit *test)
{
	enum { NR = 3 * DEADLINES_PAGE / 2 };
	struct twheel_record record;
	unsigned int i;
	u64 id;

	make_words(test, NR);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, *word_of(test, i), 0ULL);
	KUNIT_EXPECT_EQ(test, add_deadline(test, 0, 0, &id), 0);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_READY);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.id, id);
	KUNIT_EXPECT_EQ(test, record.due_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_EXPIRED);
	KUNIT_EXPECT_EQ(test, nr_postponed(test), 0ULL);
}

/* On both pages, the last one too; and no further. */
static void index_names_its_word_and_none_beyond_the_last(struct kunit *test)
{
	static const u32 indices[] = {
		0, 1, DEADLINES_PAGE - 1, DEADLINES_PAGE, DEADLINES_PAGE + 1
	};
	enum { NR = DEADLINES_PAGE + 2 };
	u64 ids[ARRAY_SIZE(indices)], id;
	unsigned int i;

	make_words(test, NR);
	for (i = 0; i < NR; i++)
		store(test, i, NEVER_NS + i);
	for (i = 0; i < ARRAY_SIZE(indices); i++) {
		struct twheel_cmd look = { .op = TWHEEL_OP_QUERY };

		KUNIT_EXPECT_EQ(test, add_deadline(test, indices[i], 0, &ids[i]), 0);
		look.id = ids[i];
		KUNIT_EXPECT_EQ(test, run(test, &look), TWHEEL_ARMED);
		KUNIT_EXPECT_EQ(test, look.time_ns, NEVER_NS + indices[i]);
	}
	KUNIT_EXPECT_EQ(test, add_deadline(test, NR, 0, &id), -EINVAL);
	KUNIT_EXPECT_EQ(test, id, 0ULL);
	KUNIT_EXPECT_EQ(test, add_deadline(test, U32_MAX, 0, &id), -EINVAL);
	KUNIT_EXPECT_EQ(test, modify_deadline(test, ids[0], NR), -EINVAL);
	KUNIT_EXPECT_EQ(test, query(test, ids[0]), TWHEEL_ARMED);
}

static void words_are_made_anew_until_there_is_an_event(struct kunit *test)
{
	struct context *context = test->priv;
	u64 id;

	KUNIT_EXPECT_EQ(test, add_deadline(test, 0, 0, &id), -EINVAL);
	make_words(test, 10);
	store(test, 3, 1);
	make_words(test, 10);
	KUNIT_EXPECT_EQ(test, *word_of(test, 3), 0ULL);
	make_words(test, 0);
	KUNIT_EXPECT_NULL(test, context->deadlines);
	KUNIT_EXPECT_EQ(test, add_deadline(test, 0, 0, &id), -EINVAL);
	make_words(test, 4);
	store(test, 3, NEVER_NS);
	KUNIT_EXPECT_EQ(test, add_deadline(test, 3, 0, &id), 0);
	KUNIT_EXPECT_EQ(test, configure_deadlines(test, 10), -EBUSY);
	KUNIT_EXPECT_EQ(test, *word_of(test, 3), NEVER_NS);
	KUNIT_EXPECT_EQ(test, context->nr_deadlines, 4U);
}

static void words_are_at_most_as_many_as_events(struct kunit *test)
{
	struct twheel_config config = {
		.clockid = CLOCK_MONOTONIC,
		.max_events = 100,
		.nr_deadlines = 101,
	};
	struct context *context = test->priv;

	KUNIT_EXPECT_EQ(test, twheel_context_configure(context, &config), -EINVAL);
	KUNIT_EXPECT_EQ(test, configure_deadlines(test, U32_MAX), -EINVAL);
	KUNIT_EXPECT_NULL(test, context->deadlines);
	config.nr_deadlines = 100;
	KUNIT_EXPECT_EQ(test, twheel_context_configure(context, &config), 0);
	KUNIT_EXPECT_EQ(test, context->nr_deadlines, 100U);
}

/* --- what becomes of an event ----------------------------------------------- */

static void event_is_ready_at_what_its_word_said_last(struct kunit *test)
{
	struct twheel_record record;
	u64 last_ns, id;

	make_words(test, 1);
	for (;;) {
		u64 soon_ns = add_and_store(test, 0, 0, NEVER_NS, &id);

		last_ns = soon_ns + 2 * SOON_NS;
		store(test, 0, ktime_get_ns() + HOUR_NS);
		store(test, 0, U64_MAX);
		store(test, 0, last_ns);
		if (ktime_get_ns() < soon_ns)
			break;
		KUNIT_ASSERT_EQ(test, cancel(test, id), 0);
	}
	read_soon(test, &record);
	KUNIT_EXPECT_EQ(test, record.id, id);
	KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_EXPIRED);
	KUNIT_EXPECT_EQ(test, record.count, 1ULL);
	KUNIT_EXPECT_EQ(test, record.due_ns, last_ns);
	KUNIT_EXPECT_EQ(test, query(test, id), -ENOENT);
}

static void earlier_time_is_seen_when_the_older_one_comes(struct kunit *test)
{
	struct twheel_record record;
	u64 soon_ns, id;

	make_words(test, 1);
	soon_ns = add_and_store(test, 0, 0, 1, &id);
	read_soon(test, &record);
	KUNIT_EXPECT_EQ(test, record.id, id);
	KUNIT_EXPECT_EQ(test, record.due_ns, 1ULL);
	KUNIT_EXPECT_GE(test, record.fired_ns, soon_ns);
	KUNIT_EXPECT_EQ(test, nr_postponed(test), 0ULL);
}

static void word_that_says_never_parks_its_event(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	static const u64 times_ns[] = { NEVER_NS, NEVER_NS + 1, U64_MAX };
	struct twheel_record record;
	unsigned int i;
	u64 id;

	make_words(test, 1);
	for (i = 0; i < ARRAY_SIZE(times_ns); i++) {
		u64 due_ns;

		add_and_store(test, 0, 0, times_ns[i], &id);
		wait_until_it_waits_for(test, id, NEVER_NS >> shift);
		/* A store does not bring it back, a MODIFY does. */
		due_ns = ktime_get_ns();
		store(test, 0, due_ns);
		KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_ARMED);
		KUNIT_EXPECT_EQ(test, wheel_due(&event_of(test, id)->node.wheel),
				NEVER_NS >> shift);
		KUNIT_EXPECT_EQ(test, modify_deadline(test, id, 0), 0);
		KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_READY);
		read_record(test, &record, CONTEXT_NONBLOCK);
		KUNIT_EXPECT_EQ(test, record.due_ns, due_ns);
	}
}

/* Each on its own: they come out at one tick, wait on, and come with one due time. */
static void several_events_may_name_one_word(struct kunit *test)
{
	enum { NR = 100 };
	struct twheel_record record;
	u64 soon_ns, due_ns, id;
	unsigned int i;
	bool in_time;

	make_words(test, 2);
	soon_ns = ktime_get_ns() + 5 * SOON_NS;
	due_ns = soon_ns + 2 * SOON_NS;
	store(test, 1, soon_ns);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, add_deadline(test, 1, 0, &id), 0);
	store(test, 1, due_ns);
	in_time = ktime_get_ns() < soon_ns;
	for (i = 0; i < NR; i++) {
		read_soon(test, &record);
		if (in_time)
			KUNIT_EXPECT_EQ(test, record.due_ns, due_ns);
	}
	KUNIT_EXPECT_LE(test, nr_postponed(test), (u64)NR);
	expect_nothing_to_read(test);
}

static void modify_makes_an_event_go_by_a_word_and_back(struct kunit *test)
{
	struct twheel_cmd look = { .op = TWHEEL_OP_QUERY };
	struct twheel_record record;
	u64 id;

	make_words(test, 2);
	store(test, 0, NEVER_NS + 5);
	store(test, 1, NEVER_NS + 6);
	KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &id), 0);
	KUNIT_EXPECT_EQ(test, modify_deadline(test, id, 0), 0);
	look.id = id;
	KUNIT_EXPECT_EQ(test, run(test, &look), TWHEEL_ARMED);
	KUNIT_EXPECT_EQ(test, look.time_ns, NEVER_NS + 5);
	KUNIT_EXPECT_EQ(test, modify_deadline(test, id, 1), 0);
	look = (struct twheel_cmd){ .op = TWHEEL_OP_QUERY, .id = id };
	KUNIT_EXPECT_EQ(test, run(test, &look), TWHEEL_ARMED);
	KUNIT_EXPECT_EQ(test, look.time_ns, NEVER_NS + 6);

	/* An ordinary one again: its word does not matter. */
	KUNIT_EXPECT_EQ(test, modify(test, id, NSEC_PER_MSEC), 0);
	store(test, 1, NEVER_NS);
	read_soon(test, &record);
	KUNIT_EXPECT_EQ(test, record.id, id);
	KUNIT_EXPECT_LT(test, record.due_ns, NEVER_NS);
	KUNIT_EXPECT_EQ(test, nr_postponed(test), 0ULL);
}

static void event_with_a_word_has_no_period(struct kunit *test)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD, .quorum = 2 };
	u64 ids[2];
	unsigned int i;

	make_words(test, 1000);
	store(test, 999, NEVER_NS);
	KUNIT_ASSERT_EQ(test, add_deadline(test, 999, 0, &ids[0]), 0);
	cmd.flags = TWHEEL_DEADLINE;
	cmd.key = 999;
	KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	ids[1] = cmd.id;
	for (i = 0; i < 2; i++) {
		cmd = (struct twheel_cmd){ .op = TWHEEL_OP_QUERY, .id = ids[i] };
		KUNIT_EXPECT_EQ(test, run(test, &cmd), TWHEEL_ARMED);
		KUNIT_EXPECT_EQ(test, cmd.interval_ns, 0ULL);
		KUNIT_EXPECT_EQ(test, event_interval_ns(event_of(test, ids[i])), 0ULL);
		KUNIT_EXPECT_EQ(test, event_deadline(event_of(test, ids[i])), 999U);
	}
	KUNIT_EXPECT_EQ(test, sizeof(struct event), (size_t)64);
}

static void postponed_event_keeps_its_slack(struct kunit *test)
{
	static const u64 slacks_ns[] = {
		0, 1, 65536, 65537, 262143, NSEC_PER_MSEC, 20 * NSEC_PER_MSEC
	};
	unsigned int shift = tick_shift(test), i;
	u64 id;

	make_words(test, ARRAY_SIZE(slacks_ns));
	for (i = 0; i < ARRAY_SIZE(slacks_ns); i++) {
		u64 due_ns = ktime_get_ns() + DAY_NS + (get_random_u64() >> 14);

		add_and_store(test, i, slacks_ns[i], due_ns, &id);
		wait_until_it_waits_for(test, id,
					roundest_tick(due_ns, slacks_ns[i], shift));
		KUNIT_EXPECT_EQ(test, event_of(test, id)->slack_ns, slacks_ns[i]);
	}
}

/* --- lists ------------------------------------------------------------------ */

/* What a list says of an event. */
static struct twheel_entry entry_of(struct kunit *test, u64 id)
{
	struct twheel_entry entry;
	u64 cursor = 0;

	while (list_entries(test, &cursor, &entry, 1) == 1)
		if (entry.id == id)
			return entry;
	KUNIT_FAIL(test, "the event is not listed");
	return (struct twheel_entry){};
}

static int watch(struct kunit *test, u64 id, u64 key)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_WATCH,
		.id = id,
		.value = 1,
		.key = key,
	};

	return run(test, &cmd);
}

static int signal(struct kunit *test, u64 key)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_SIGNAL, .value = 7, .key = key };

	return run(test, &cmd);
}

static void expect_entry(struct kunit *test, u64 id, u64 deadline, u64 due_ns, u32 state,
			 u32 reason)
{
	struct twheel_entry entry = entry_of(test, id);

	KUNIT_EXPECT_EQ(test, entry.deadline, deadline);
	KUNIT_EXPECT_EQ(test, entry.due_ns, due_ns);
	KUNIT_EXPECT_EQ(test, entry.interval_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, entry.state, state);
	KUNIT_EXPECT_EQ(test, entry.reason, reason);
}

/* In every state, and however it was completed; of a READY one also what it said. */
static void list_tells_the_word_of_each_event(struct kunit *test)
{
	u64 expired, forced, watching, signalled, plain;

	make_words(test, 1001);
	store(test, 0, 7);
	store(test, 1000, NEVER_NS + 1);
	KUNIT_ASSERT_EQ(test, add_deadline(test, 0, 0, &expired), 0);
	KUNIT_ASSERT_EQ(test, add_deadline(test, 1000, 0, &forced), 0);
	KUNIT_ASSERT_EQ(test, add_deadline(test, 1000, 0, &watching), 0);
	KUNIT_ASSERT_EQ(test, add_deadline(test, 1000, 0, &signalled), 0);
	KUNIT_ASSERT_EQ(test, add(test, 0, &plain), 0);
	KUNIT_ASSERT_EQ(test, watch(test, watching, 1), 0);
	KUNIT_ASSERT_EQ(test, watch(test, signalled, 2), 0);
	expect_entry(test, forced, 1001, NEVER_NS + 1, TWHEEL_ARMED, 0);
	expect_entry(test, watching, 1001, NEVER_NS + 1, TWHEEL_ARMED, 0);

	store(test, 1000, NEVER_NS + 2);
	KUNIT_EXPECT_EQ(test, complete_event(test, forced, 5), 0);
	KUNIT_EXPECT_EQ(test, signal(test, 2), 1);
	store(test, 0, NEVER_NS);
	store(test, 1000, NEVER_NS + 3);
	expect_entry(test, expired, 1, 7, TWHEEL_READY, TWHEEL_EXPIRED);
	expect_entry(test, forced, 1001, NEVER_NS + 2, TWHEEL_READY, TWHEEL_COMPLETED);
	expect_entry(test, signalled, 1001, NEVER_NS + 2, TWHEEL_READY, TWHEEL_COMPLETED);
	expect_entry(test, watching, 1001, NEVER_NS + 3, TWHEEL_ARMED, 0);
	KUNIT_EXPECT_EQ(test, entry_of(test, plain).deadline, 0ULL);
}

static void completed_event_s_record_has_its_word_and_value(struct kunit *test)
{
	struct twheel_record record;
	u64 id;

	make_words(test, 3);
	add_and_store(test, 2, 0, NEVER_NS + 9, &id);
	KUNIT_EXPECT_EQ(test, complete_event(test, id, 55), 0);
	KUNIT_EXPECT_EQ(test, complete_event(test, id, 56), -EALREADY);
	KUNIT_EXPECT_EQ(test, modify_deadline(test, id, 2), -EALREADY);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.id, id);
	KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_COMPLETED);
	KUNIT_EXPECT_EQ(test, record.due_ns, NEVER_NS + 9);
	KUNIT_EXPECT_EQ(test, record.value, 55ULL);
	KUNIT_EXPECT_EQ(test, record.count, 1ULL);
	KUNIT_EXPECT_EQ(test, query(test, id), -ENOENT);
}

/* Its watches go on while it is postponed, and end when its time has come. */
static void postponed_operation_keeps_its_watches(struct kunit *test)
{
	unsigned int shift = tick_shift(test);
	struct twheel_record record;
	u64 due_ns, id;
	int ret;

	make_words(test, 1);
	add_and_store(test, 0, 0, NEVER_NS, &id);
	KUNIT_ASSERT_EQ(test, watch(test, id, 1), 0);
	wait_until_it_waits_for(test, id, NEVER_NS >> shift);
	KUNIT_EXPECT_EQ(test, entry_of(test, id).watches, 1U);
	KUNIT_EXPECT_EQ(test, signal(test, 1), 1);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_COMPLETED);
	KUNIT_EXPECT_EQ(test, record.flags, (u32)TWHEEL_RECORD_SIGNAL);
	KUNIT_EXPECT_EQ(test, record.value, 7ULL);
	KUNIT_EXPECT_EQ(test, record.key, 1ULL);

	due_ns = ktime_get_ns() + 3 * SOON_NS;
	add_and_store(test, 0, 0, due_ns, &id);
	ret = watch(test, id, 1);
	/* If the machine stood still, it has come already. */
	if (ret)
		KUNIT_EXPECT_EQ(test, ret, -EALREADY);
	read_soon(test, &record);
	KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_EXPIRED);
	KUNIT_EXPECT_EQ(test, record.due_ns, due_ns);
	KUNIT_EXPECT_EQ(test, signal(test, 1), 0);
}

/* --- clocks ----------------------------------------------------------------- */

static const struct clock {
	const char *name;
	clockid_t id;
	u64 (*now_ns)(void);
} clocks[] = {
	{ "monotonic", CLOCK_MONOTONIC, ktime_get_ns },
	{ "boottime", CLOCK_BOOTTIME, ktime_get_boottime_ns },
	{ "realtime", CLOCK_REALTIME, ktime_get_real_ns },
};

static void clock_name(const struct clock *clock, char *name)
{
	strscpy(name, clock->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(clock, clocks, clock_name);

static void configure_clock(struct kunit *test, clockid_t id)
{
	struct twheel_config config = { .clockid = id, .nr_deadlines = 1 };

	KUNIT_ASSERT_EQ(test, twheel_context_configure(test->priv, &config), 0);
}

static void word_is_a_time_on_the_clock_of_its_context(struct kunit *test)
{
	const struct clock *clock = test->param_value;
	struct twheel_record record;
	u64 due_ns, id;

	configure_clock(test, clock->id);
	store(test, 0, clock->now_ns() + SOON_NS);
	KUNIT_ASSERT_EQ(test, add_deadline(test, 0, 0, &id), 0);
	due_ns = clock->now_ns() + 2 * SOON_NS;
	store(test, 0, due_ns);
	read_soon(test, &record);
	KUNIT_EXPECT_GE(test, clock->now_ns(), record.fired_ns);
	/* Unless the machine stood still until the first one had come. */
	if (nr_postponed(test))
		KUNIT_EXPECT_EQ(test, record.due_ns, due_ns);
}

/* Move CLOCK_REALTIME. */
static void step_clock(struct kunit *test, s64 by_ns)
{
	struct timespec64 time;

	ktime_get_real_ts64(&time);
	time = timespec64_add(time, ns_to_timespec64(by_ns));
	KUNIT_ASSERT_EQ(test, do_settimeofday64(&time), 0);
}

/* Set the clock back when an event has waited on, or before; false: its time had come. */
static bool set_back(struct kunit *test, u64 lead_ns, bool waits_on)
{
	u64 begin_ns = ktime_get_ns(), soon_ns = ktime_get_real_ns() + lead_ns;
	u64 postponed = nr_postponed(test), left_ns = lead_ns, read_ns, id;
	s64 step_ns = lead_ns + 300 * NSEC_PER_MSEC;
	struct twheel_record record;
	bool in_time;

	store(test, 0, soon_ns);
	KUNIT_ASSERT_EQ(test, add_deadline(test, 0, 0, &id), 0);
	store(test, 0, soon_ns + lead_ns);
	if (waits_on) {
		while (nr_postponed(test) == postponed && query(test, id) == TWHEEL_ARMED)
			usleep_range(100, 200);
		left_ns = nr_postponed(test) > postponed ? 2 * lead_ns : 0;
	}
	step_clock(test, -step_ns);
	in_time = ktime_get_ns() - begin_ns < left_ns;
	read_soon(test, &record);
	read_ns = ktime_get_real_ns();
	step_clock(test, step_ns);
	KUNIT_EXPECT_GE(test, record.due_ns, soon_ns);
	if (in_time)
		KUNIT_EXPECT_GE(test, read_ns, record.due_ns);
	return in_time;
}

static bool set_back_before_it_comes_out(struct kunit *test, u64 lead_ns)
{
	return set_back(test, lead_ns, false);
}

static bool set_back_after_it_came_out(struct kunit *test, u64 lead_ns)
{
	return set_back(test, lead_ns, true);
}

static void setting_the_clock_back_makes_no_word_early(struct kunit *test)
{
	configure_clock(test, CLOCK_REALTIME);
	attempt_in_time(test, SOON_NS, set_back_before_it_comes_out);
	attempt_in_time(test, SOON_NS, set_back_after_it_came_out);
}

/* --- what the base does ----------------------------------------------------- */

enum { CROWD = 3000 };

/* Who is told when the context wakes those who poll it. */
struct sleeper {
	wait_queue_entry_t entry;
	atomic_t woken;
};

static int note_wake(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	atomic_inc(&container_of(entry, struct sleeper, entry)->woken);
	return 0;
}

/* Words of a crowd: all of them say that. */
static void store_all(struct kunit *test, u64 time_ns)
{
	unsigned int i;

	for (i = 0; i < CROWD; i++)
		store(test, i, time_ns);
}

/* Add an event to each word, in order, in one batch. */
static void add_crowd(struct kunit *test, u64 data)
{
	struct context_batch batch;
	unsigned int i, failed = 0;

	KUNIT_ASSERT_EQ(test, twheel_context_begin(test->priv, &batch, CONTEXT_BLOCK), 0);
	for (i = 0; i < CROWD; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.flags = TWHEEL_DEADLINE,
			.data = data + i,
			.key = i,
		};

		failed += !!twheel_command_run(&batch, &cmd);
	}
	twheel_context_end(&batch);
	KUNIT_ASSERT_EQ(test, failed, 0U);
}

/*
 * A crowd that is due at one tick and is postponed; if the machine stood still for long,
 * that has come already.  Return when it is due at first.
 */
static u64 make_crowd(struct kunit *test, u64 data, u64 lead_ns, u64 later_ns)
{
	u64 soon_ns = ktime_get_ns() + lead_ns;

	store_all(test, soon_ns);
	add_crowd(test, data);
	store_all(test, soon_ns + later_ns);
	return soon_ns;
}

static void crowd_that_waits_on_wakes_nobody_and_does_not_expire(struct kunit *test)
{
	struct context *context = test->priv;
	struct sleeper *sleeper = kunit_kzalloc(test, sizeof(*sleeper), GFP_KERNEL);
	const struct base *base;
	u64 soon_ns, expired, postponed;
	struct twheel_record record;
	unsigned int i, wrong = 0;
	struct event *event;
	u64 cursor = 0;
	bool in_time;

	need_tracepoints(test);
	KUNIT_ASSERT_NOT_NULL(test, sleeper);
	make_words(test, CROWD);
	init_waitqueue_func_entry(&sleeper->entry, note_wake);
	migrate_disable();
	base = base_here(test);
	expired = READ_ONCE(base->nr_expired);
	postponed = READ_ONCE(base->nr_postponed);
	add_wait_queue(&context->pollers, &sleeper->entry);
	soon_ns = make_crowd(test, 0, NSEC_PER_SEC, HOUR_NS);
	in_time = ktime_get_ns() < soon_ns;
	migrate_enable();
	if (!in_time)
		kunit_skip(test, "the machine stood still");
	wait_until_postponed(test, CROWD);
	KUNIT_EXPECT_EQ(test, nr_postponed(test), (u64)CROWD);
	KUNIT_EXPECT_EQ(test, READ_ONCE(base->nr_postponed) - postponed, (u64)CROWD);
	KUNIT_EXPECT_EQ(test, READ_ONCE(base->nr_expired) - expired, 0ULL);
	KUNIT_EXPECT_LE(test, READ_ONCE(base->most_touched), (unsigned int)BASE_BATCH);
	KUNIT_EXPECT_EQ(test, atomic_read(&sleeper->woken), 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(context->nr_ready), 0ULL);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(context));
	KUNIT_EXPECT_TRUE(test, context_has_armed(context));
	expect_nothing_to_read(test);
	for (i = 0; i < CROWD; i++) {
		struct twheel_entry entry;

		KUNIT_ASSERT_EQ(test, list_entries(test, &cursor, &entry, 1), (ssize_t)1);
		event = event_of(test, entry.id);
		wrong += event_state(event) != EVENT_ARMED;
		wrong += event->node.base != base->number;
		wrong += entry.due_ns != soon_ns + HOUR_NS;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0U);

	/* Who is told would have been told. */
	store(test, 0, 0);
	KUNIT_EXPECT_EQ(test, add_deadline(test, 0, 0, &record.id), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&sleeper->woken), 0);
	remove_wait_queue(&context->pollers, &sleeper->entry);
}

/* False: some were armed late, or came out when the later time had come too. */
static bool postpone_in_order(struct kunit *test, u64 lead_ns)
{
	enum { BEFORE = 100 };
	u64 postponed = nr_postponed(test), later_ns = 2 * lead_ns, soon_ns, i;
	struct twheel_record record;
	unsigned int wrong = 0;
	bool in_time;

	migrate_disable();
	soon_ns = make_crowd(test, BEFORE, lead_ns, later_ns);
	for (i = 0; i < BEFORE; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.flags = TWHEEL_ABS,
			.data = i,
			.time_ns = soon_ns + later_ns,
		};

		KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	}
	in_time = ktime_get_ns() < soon_ns;
	migrate_enable();
	for (i = 0; i < BEFORE + CROWD; i++) {
		read_soon(test, &record);
		wrong += record.data != i || record.due_ns != soon_ns + later_ns;
	}
	expect_nothing_to_read(test);
	postponed = nr_postponed(test) - postponed;
	KUNIT_EXPECT_LE(test, postponed, (u64)CROWD);
	if (!in_time || postponed < CROWD)
		return false;
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	return true;
}

/*
 * Those that wait on come after those that were armed for that tick before, and among
 * themselves in the order of arming.
 */
static void crowd_that_is_postponed_keeps_its_order(struct kunit *test)
{
	make_words(test, CROWD);
	attempt_in_time(test, NSEC_PER_SEC, postpone_in_order);
}

/* --- anything goes ---------------------------------------------------------- */

static void events_agree_with_plain_arrays_at_every_step(struct kunit *test)
{
	struct deadline_model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, model);
	seed = seed ?: get_random_u32();
	kunit_info(test, "seed %lu", seed);
	model->test = test;
	model->shift = tick_shift(test);
	prandom_seed_state(&model->random, seed);
	make_words(test, MODEL_WORDS);
	migrate_disable();
	while (model->step < MODEL_STEPS && READ_ONCE(test->status) == KUNIT_SUCCESS) {
		model_step(model);
		cond_resched();
	}
	model_end(model);
	migrate_enable();
	kunit_info(test, "%llu added, %llu cancelled, %llu completed; postponed %llu to %llu times, %llu by the context",
		   model->added, model->cancelled, model->completed, model->least,
		   model->most, nr_postponed(test));
	KUNIT_EXPECT_GT(test, model->least, MODEL_STEPS / 100ULL);
}

/* --- races ------------------------------------------------------------------ */

/*
 * All CPUs but the first store ever later times into words of their own, while the first
 * one reads records and adds the events again.  A value that was replaced before it had
 * come must not be what a record says, but for one of an event that was due when it was
 * added, as the word is read a little before the clock then.
 */
#define RACE_STORES	1000
#define RACE_OWN_WORDS	3

/* Where the CPUs seldom run at the same time, there are more stores until there was this. */
#define RACE_POSTPONED	100
#define RACE_STORES_MAX	10000

/* On two CPUs, a store and a look at the clock have an order if they are so far apart. */
#define RACE_MARGIN_NS	2000

/**
 * struct race_word - what was stored into a word, by its only writer
 * @nr: how many values there are.
 * @values: these.
 * @replaced: the next one was stored before this had come.
 * @seen: it was in a record.
 */
struct race_word {
	unsigned int nr;
	u64 values[RACE_STORES_MAX + 1];
	bool replaced[RACE_STORES_MAX + 1];
	bool seen[RACE_STORES_MAX + 1];
};

/**
 * struct race - words that are stored to, and their one reader
 * @test: the test.
 * @words: the words.
 * @nr: how many there are.
 * @next: how many have a writer.
 * @reader: the CPU that reads.
 * @writers: how many CPUs are still storing.
 * @armed: the reader has armed all events.
 * @last: no more is stored, and the events were added after that.
 * @records: how many were read.
 * @wrong: how many of them said what was never stored, or were early.
 * @lost: how many events did not come at the end.
 */
struct race {
	struct kunit *test;
	struct race_word *words;
	unsigned int nr;
	atomic_t next;
	unsigned int reader;
	atomic_t writers;
	struct completion armed;
	bool last;
	u64 records;
	unsigned int wrong;
	unsigned int lost;
};

static void race_store(struct race *race, unsigned int index)
{
	struct race_word *word = &race->words[index];
	u64 last_ns = word->values[word->nr - 1];
	u64 time_ns = max(last_ns + 1, ktime_get_ns() + get_random_u32() % 3000000);

	if (word->nr > RACE_STORES_MAX)
		return;
	word->values[word->nr] = time_ns;
	/* Pairs with race_find(). */
	smp_store_release(&word->nr, word->nr + 1);
	store(race->test, index, time_ns);
	/* The clock is read when everybody sees the word. */
	smp_mb();
	word->replaced[word->nr - 2] = ktime_get_ns() + RACE_MARGIN_NS < last_ns;
}

static bool race_goes_on(const struct race *race, unsigned int stores)
{
	return stores < RACE_OWN_WORDS * RACE_STORES ||
	       (stores < RACE_OWN_WORDS * RACE_STORES_MAX &&
		nr_postponed(race->test) < RACE_POSTPONED);
}

static void race_write(struct race *race)
{
	unsigned int first = atomic_add_return(RACE_OWN_WORDS, &race->next) - RACE_OWN_WORDS;
	unsigned int i;

	wait_for_completion(&race->armed);
	for (i = 0; race_goes_on(race, i); i++) {
		race_store(race, first + get_random_u32() % RACE_OWN_WORDS);
		udelay(get_random_u32() % 100);
		/* Some are to come. */
		if (i % 64 == 0)
			usleep_range(3000, 6000);
		cond_resched();
	}
	atomic_dec(&race->writers);
}

/* Which of the values of a word is that? */
static int race_find(const struct race_word *word, u64 time_ns)
{
	/* Pairs with race_store(). */
	unsigned int low = 0, high = smp_load_acquire(&word->nr);

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (word->values[middle] == time_ns)
			return middle;
		if (word->values[middle] < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return -ENOENT;
}

/* When the events were added. */
static u64 race_added_ns[NR_CPUS * RACE_OWN_WORDS];

static void race_add_again(struct race *race, unsigned int index)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_DEADLINE,
		.data = index,
		.key = index,
	};

	race->wrong += !!run(race->test, &cmd);
	race_added_ns[index] = ktime_get_ns();
}

static void race_was_read(struct race *race, const struct twheel_record *record)
{
	unsigned int index = record->data;
	struct race_word *word = &race->words[index];
	int which = race_find(word, record->due_ns);

	race->records++;
	if (which < 0 || record->fired_ns < record->due_ns ||
	    (race->last && which != word->nr - 1))
		race->wrong++;
	else if (record->fired_ns > race_added_ns[index])
		word->seen[which] = true;
}

/* Read some records; with @again, the events are added again. */
static unsigned int race_read(struct race *race, bool again)
{
	struct twheel_record records[8];
	ssize_t i, bytes = read_records(race->test, records, ARRAY_SIZE(records),
					CONTEXT_NONBLOCK);
	unsigned int nr = bytes > 0 ? bytes / sizeof(records[0]) : 0;

	for (i = 0; i < nr; i++) {
		race_was_read(race, &records[i]);
		if (again)
			race_add_again(race, records[i].data);
	}
	return nr;
}

/* Each event comes once more; return how many do not. */
static unsigned int race_drain(struct race *race)
{
	unsigned int left = race->nr;
	unsigned long slept_us = 0;

	do {
		left -= race_read(race, false);
	} while (left && sleep_again(&slept_us, 500));
	return left;
}

static void race_read_all(struct race *race)
{
	unsigned int i;

	for (i = 0; i < race->nr; i++)
		race_add_again(race, i);
	complete_all(&race->armed);
	while (atomic_read(&race->writers)) {
		race_read(race, true);
		usleep_range(20, 50);
	}
	race->lost = race_drain(race);
	/* No word changes any more: now each event comes for the last value. */
	for (i = 0; i < race->nr; i++)
		race_add_again(race, i);
	race->last = true;
	race->lost += race_drain(race);
}

static void race_run(void *data)
{
	struct race *race = data;

	if (smp_processor_id() == race->reader)
		race_read_all(race);
	else
		race_write(race);
}

static void stores_of_all_cpus_are_seen_in_time_and_lose_nothing(struct kunit *test)
{
	struct race race = {
		.test = test,
		.nr = (num_online_cpus() - 1) * RACE_OWN_WORDS,
		.reader = cpumask_first(cpu_online_mask),
		.writers = ATOMIC_INIT(num_online_cpus() - 1),
	};
	unsigned int i, k, seen = 0, replaced = 0, stale = 0;

	if (!race.nr)
		kunit_skip(test, "needs two CPUs");
	make_words(test, race.nr);
	race.words = kvcalloc(race.nr, sizeof(*race.words), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, race.words);
	init_completion(&race.armed);
	for (i = 0; i < race.nr; i++) {
		race.words[i].values[0] = ktime_get_ns() + 10 * NSEC_PER_MSEC;
		race.words[i].nr = 1;
		store(test, i, race.words[i].values[0]);
	}
	run_on_all_cpus(test, race_run, &race);
	for (i = 0; i < race.nr; i++) {
		const struct race_word *word = &race.words[i];

		for (k = 0; k < word->nr; k++) {
			seen += word->seen[k];
			replaced += word->replaced[k];
			stale += word->seen[k] && word->replaced[k];
		}
	}
	kunit_info(test, "%llu records, %u values seen, %u replaced in time, %llu times postponed",
		   race.records, seen, replaced, nr_postponed(test));
	KUNIT_EXPECT_EQ(test, stale, 0U);
	KUNIT_EXPECT_EQ(test, race.wrong, 0U);
	KUNIT_EXPECT_EQ(test, race.lost, 0U);
	KUNIT_EXPECT_GT(test, seen, 0U);
	KUNIT_EXPECT_GT(test, replaced, 0U);
	KUNIT_EXPECT_GT(test, nr_postponed(test), 0ULL);
	expect_nothing_to_read(test);
	kvfree(race.words);
}

static struct kunit_case deadline_cases[] = {
	KUNIT_CASE(words_are_zero_and_due_at_once),
	KUNIT_CASE(index_names_its_word_and_none_beyond_the_last),
	KUNIT_CASE(words_are_made_anew_until_there_is_an_event),
	KUNIT_CASE(words_are_at_most_as_many_as_events),
	KUNIT_CASE(event_is_ready_at_what_its_word_said_last),
	KUNIT_CASE(earlier_time_is_seen_when_the_older_one_comes),
	KUNIT_CASE(word_that_says_never_parks_its_event),
	KUNIT_CASE(several_events_may_name_one_word),
	KUNIT_CASE(modify_makes_an_event_go_by_a_word_and_back),
	KUNIT_CASE(event_with_a_word_has_no_period),
	KUNIT_CASE(postponed_event_keeps_its_slack),
	KUNIT_CASE(list_tells_the_word_of_each_event),
	KUNIT_CASE(completed_event_s_record_has_its_word_and_value),
	KUNIT_CASE(postponed_operation_keeps_its_watches),
	KUNIT_CASE_PARAM(word_is_a_time_on_the_clock_of_its_context, clock_gen_params),
	KUNIT_CASE(setting_the_clock_back_makes_no_word_early),
	KUNIT_CASE(crowd_that_waits_on_wakes_nobody_and_does_not_expire),
	KUNIT_CASE(crowd_that_is_postponed_keeps_its_order),
	KUNIT_CASE(events_agree_with_plain_arrays_at_every_step),
	KUNIT_CASE(stores_of_all_cpus_are_seen_in_time_and_lose_nothing),
	{}
};

static struct kunit_suite deadline_suite = {
	.name = "twheel_deadline",
	.init = deadline_suite_init,
	.exit = deadline_suite_exit,
	.test_cases = deadline_cases,
};

kunit_test_suite(deadline_suite);

MODULE_DESCRIPTION("KUnit suite of twheel's deadlines in shared memory");
MODULE_LICENSE("GPL");
TWHEEL_IMPORT_FOR_KUNIT();
