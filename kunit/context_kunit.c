// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of contexts: ids, generations, memory, limits, counters, and what
 * can only be seen from inside.  What a process sees is tested by tools/test/.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "commands.h"
#include "operation_model.h"
#include "patience.h"

#define MODEL_STEPS	50000

static ulong seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "Seed of the model test (default: a random one)");

static int context_suite_init(struct kunit *test)
{
	test->priv = twheel_context_create();
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	return 0;
}

static void context_suite_exit(struct kunit *test)
{
	twheel_context_destroy(test->priv);
}

/* The event of an id, from inside. */
static struct event *event_of(struct kunit *test, u64 id)
{
	struct context *context = test->priv;
	u32 number = (u32)id >> EVENT_INDEX_BITS;
	struct event_page *page;

	KUNIT_ASSERT_LT(test, number, context->events.nr_numbers);
	page = context->events.numbers[number].page;
	KUNIT_ASSERT_NOT_NULL(test, page);
	return &page->slots[id % EVENT_PAGE_SLOTS];
}

/* --- ids and memory --------------------------------------------------------- */

static void id_is_of_no_use_after_the_events_end(struct kunit *test)
{
	u64 id, other;

	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &id), 0);
	KUNIT_EXPECT_NE(test, id, 0ULL);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_ARMED);
	KUNIT_EXPECT_EQ(test, cancel(test, id), 0);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &other), 0);
	KUNIT_EXPECT_PTR_EQ(test, event_of(test, other), event_of(test, id));
	KUNIT_EXPECT_EQ(test, query(test, id), -ENOENT);
	KUNIT_EXPECT_EQ(test, cancel(test, id), -ENOENT);
	KUNIT_EXPECT_EQ(test, query(test, other), TWHEEL_ARMED);
}

static void any_64_bits_are_a_safe_id(struct kunit *test)
{
	unsigned int i;
	u64 id;

	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &id), 0);
	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_EQ(test, query(test, id ^ BIT_ULL(i)), -ENOENT);
	for (i = 0; i < 100000; i++) {
		u64 number = get_random_u64();

		if (number != id)
			KUNIT_ASSERT_EQ(test, query(test, number), -ENOENT);
	}
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_ARMED);
}

static void slot_with_the_last_generation_is_retired(struct kunit *test)
{
	struct event *event;
	u64 id, i;

	KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &id), 0);
	event = event_of(test, id);
	event->node.tag = EVENT_GENERATION_MAX;
	id = (u64)EVENT_GENERATION_MAX << 32 | (u32)id;
	KUNIT_EXPECT_EQ(test, cancel(test, id), 0);
	for (i = 0; i < 200; i++) {
		u64 other;

		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &other), 0);
		KUNIT_ASSERT_NE(test, (u32)other, (u32)id);
	}
}

static void page_of_retired_slots_leaves_its_number_unused(struct kunit *test)
{
	enum { NR = 2 * EVENT_PAGE_EVENTS };
	struct context *context = test->priv;
	u64 *ids = kunit_kcalloc(test, NR, sizeof(*ids), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &ids[i]), 0);
	/* Two pages are emptied, of which one is kept: use up both. */
	for (i = 0; i < NR; i++) {
		event_of(test, ids[i])->node.tag = EVENT_GENERATION_MAX;
		ids[i] = (u64)EVENT_GENERATION_MAX << 32 | (u32)ids[i];
	}
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, cancel(test, ids[i]), 0);
	KUNIT_EXPECT_EQ(test, context->events.nr_numbers, 2U);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &ids[0]), 0);
	KUNIT_EXPECT_EQ(test, (u32)ids[0] >> EVENT_INDEX_BITS, 2U);
	KUNIT_EXPECT_EQ(test, context->events.nr_numbers, 3U);
}

static void memory_given_back_does_not_bring_old_ids_back(struct kunit *test)
{
	enum { NR = 1000, ROUNDS = 20 };
	u64 *ids = kvcalloc(NR * ROUNDS, sizeof(*ids), GFP_KERNEL);
	struct context *context = test->priv;
	unsigned int round, i;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (round = 0; round < ROUNDS; round++) {
		u64 *mine = ids + round * NR;

		for (i = 0; i < NR; i++)
			KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &mine[i]), 0);
		for (i = 0; i < round * NR; i++)
			KUNIT_ASSERT_EQ(test, query(test, ids[i]), -ENOENT);
		for (i = 0; i < NR; i++)
			KUNIT_ASSERT_EQ(test, cancel(test, mine[i]), 0);
	}
	/* The numbers were used again, so the ids differ by generation alone. */
	KUNIT_EXPECT_LE(test, context->events.nr_numbers,
			DIV_ROUND_UP(NR, EVENT_PAGE_EVENTS) + 1);
	kvfree(ids);
}

/* Cancel events in an order of pages by chance; each page goes when it is empty. */
static void cancel_page_by_page(struct kunit *test, const u64 *ids, unsigned int pages)
{
	unsigned int step = 1 + 2 * (get_random_u32() % (pages / 2)), i, k;

	for (i = 0; i < pages; i++) {
		const u64 *page = ids + i * step % pages * EVENT_PAGE_EVENTS;

		for (k = 0; k < EVENT_PAGE_EVENTS; k++)
			KUNIT_ASSERT_EQ(test, cancel(test, page[k]), 0);
	}
}

/* While the array of page numbers grows, and pages go and come in any order. */
static void id_leads_to_its_event_wherever_its_page_is(struct kunit *test)
{
	enum { PAGES = 64, NR = PAGES * EVENT_PAGE_EVENTS, ROUNDS = 4 };
	u64 *ids = kvcalloc(NR * ROUNDS, sizeof(*ids), GFP_KERNEL);
	struct context *context = test->priv;
	unsigned int round, i;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (round = 0; round < ROUNDS; round++) {
		u64 *mine = ids + round * NR;

		for (i = 0; i < NR; i++) {
			KUNIT_ASSERT_EQ(test, add(test, HOUR_NS + i, &mine[i]), 0);
			event_of(test, mine[i])->data = i;
		}
		for (i = 0; i < NR; i++) {
			struct event *event = event_find(&context->events, mine[i]);

			KUNIT_ASSERT_NOT_NULL(test, event);
			KUNIT_ASSERT_EQ(test, event->data, (u64)i);
			KUNIT_ASSERT_EQ(test, event_id(event), mine[i]);
		}
		for (i = 0; i < round * NR; i++)
			KUNIT_ASSERT_NULL(test, event_find(&context->events, ids[i]));
		cancel_page_by_page(test, mine, PAGES);
	}
	KUNIT_EXPECT_EQ(test, context->events.nr_numbers, (u32)PAGES);
	kvfree(ids);
}

static void empty_pages_but_one_are_given_back(struct kunit *test)
{
	enum { NR = 200 };
	struct context *context = test->priv;
	u64 *ids = kunit_kcalloc(test, NR, sizeof(*ids), GFP_KERNEL);
	unsigned int i, pages = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &ids[i]), 0);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, cancel(test, ids[i]), 0);
	for (i = 0; i < context->events.nr_numbers; i++)
		pages += !!context->events.numbers[i].page;
	KUNIT_EXPECT_EQ(test, pages, 1U);
}

static void full_context_refuses_and_recovers(struct kunit *test)
{
	struct twheel_config config = {
		.clockid = CLOCK_MONOTONIC,
		.max_events = 100,
	};
	u64 ids[101];
	unsigned int i;

	KUNIT_EXPECT_EQ(test, twheel_context_configure(test->priv, &config), 0);
	for (i = 0; i < 100; i++)
		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &ids[i]), 0);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &ids[100]), -ENOSPC);
	KUNIT_EXPECT_EQ(test, cancel(test, ids[50]), 0);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &ids[100]), 0);
	KUNIT_EXPECT_EQ(test, twheel_context_configure(test->priv, &config), -EBUSY);
}

/* --- one-shot events -------------------------------------------------------- */

static void past_event_is_ready_when_add_returns(struct kunit *test)
{
	struct twheel_record record;
	u64 id;

	KUNIT_EXPECT_EQ(test, add(test, 0, &id), 0);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_READY);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.id, id);
	KUNIT_EXPECT_GE(test, record.fired_ns, record.due_ns);
	KUNIT_EXPECT_EQ(test, query(test, id), -ENOENT);
	expect_nothing_to_read(test);
}

static void cancel_of_a_ready_event_leaves_no_record(struct kunit *test)
{
	struct twheel_record record;
	u64 ids[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, add(test, 0, &ids[i]), 0);
	/* Once from the part that expiry adds to, once from the reader's. */
	KUNIT_EXPECT_EQ(test, cancel(test, ids[0]), 0);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.id, ids[1]);
	KUNIT_EXPECT_EQ(test, cancel(test, ids[2]), 0);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(test->priv));
	expect_nothing_to_read(test);
}

static bool arm_for_one_tick(struct kunit *test, u64 lead_ns)
{
	enum { NR = 500 };
	u64 due_ns = ktime_get_ns() + lead_ns;
	unsigned int i, disordered = 0;
	struct twheel_record record;
	struct context_batch batch;
	bool in_time;

	KUNIT_ASSERT_EQ(test, twheel_context_begin(test->priv, &batch, CONTEXT_BLOCK), 0);
	migrate_disable();
	for (i = 0; i < NR; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.flags = TWHEEL_ABS,
			.data = i,
			.time_ns = due_ns,
		};

		if (twheel_command_run(&batch, &cmd))
			KUNIT_FAIL(test, "ADD failed");
	}
	twheel_context_end(&batch);
	in_time = ktime_get_ns() < due_ns;
	migrate_enable();
	for (i = 0; i < NR; i++) {
		read_record(test, &record, CONTEXT_BLOCK);
		KUNIT_ASSERT_GE(test, record.fired_ns, due_ns);
		disordered += record.data != i;
	}
	if (in_time)
		KUNIT_EXPECT_EQ(test, disordered, 0U);
	return in_time;
}

static void events_of_one_tick_are_read_in_the_order_of_arming(struct kunit *test)
{
	attempt_in_time(test, 20 * NSEC_PER_MSEC, arm_for_one_tick);
}

/*
 * ENTER asks that without a lock, also in the middle of others' commands: a far event
 * is ARMED at each moment, however many are READY.
 */
static void armed_event_is_seen_while_a_batch_adds_and_cancels(struct kunit *test)
{
	struct context *context = test->priv;
	struct context_batch batch;
	unsigned int i;
	u64 far;

	KUNIT_EXPECT_FALSE(test, context_has_armed(context));
	KUNIT_ASSERT_EQ(test, add(test, DAY_NS, &far), 0);
	KUNIT_EXPECT_TRUE(test, context_has_armed(context));
	KUNIT_ASSERT_EQ(test, twheel_context_begin(context, &batch, CONTEXT_BLOCK), 0);
	for (i = 0; i < 10; i++) {
		struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD };

		KUNIT_EXPECT_EQ(test, twheel_command_run(&batch, &cmd), 0);
		KUNIT_EXPECT_TRUE(test, context_has_armed(context));
		if (i % 2)
			continue;
		cmd = (struct twheel_cmd){ .op = TWHEEL_OP_CANCEL, .id = cmd.id };
		KUNIT_EXPECT_EQ(test, twheel_command_run(&batch, &cmd), 0);
		KUNIT_EXPECT_TRUE(test, context_has_armed(context));
	}
	twheel_context_end(&batch);
	KUNIT_EXPECT_TRUE(test, context_has_armed(context));
	KUNIT_EXPECT_EQ(test, cancel(test, far), 0);
	KUNIT_EXPECT_FALSE(test, context_has_armed(context));
}

/* --- MODIFY and CANCEL of what is READY -------------------------------------- */

/* Events that are READY: two that expiry has just queued, two the reader has seen. */
static void add_four_ready(struct kunit *test, u64 ids[4])
{
	struct twheel_record record;
	unsigned int i;
	u64 first;

	KUNIT_ASSERT_EQ(test, add(test, 0, &first), 0);
	KUNIT_ASSERT_EQ(test, add(test, 0, &ids[0]), 0);
	KUNIT_ASSERT_EQ(test, add(test, 0, &ids[1]), 0);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_ASSERT_EQ(test, record.id, first);
	KUNIT_ASSERT_EQ(test, add(test, 0, &ids[2]), 0);
	KUNIT_ASSERT_EQ(test, add(test, 0, &ids[3]), 0);
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, query(test, ids[i]), TWHEEL_READY);
}

static void modify_of_a_ready_event_suppresses_its_record(struct kunit *test)
{
	struct context *context = test->priv;
	struct twheel_record record;
	u64 ids[4];

	add_four_ready(test, ids);
	KUNIT_EXPECT_EQ(test, modify(test, ids[0], HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, modify(test, ids[2], HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, query(test, ids[0]), TWHEEL_ARMED);
	KUNIT_EXPECT_EQ(test, query(test, ids[2]), TWHEEL_ARMED);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.id, ids[1]);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.id, ids[3]);
	expect_nothing_to_read(test);

	/* Due at once again: one record, and at the end of the queue. */
	KUNIT_EXPECT_EQ(test, modify(test, ids[2], 0), 0);
	KUNIT_EXPECT_EQ(test, modify(test, ids[0], 0), 0);
	KUNIT_EXPECT_EQ(test, modify(test, ids[2], 0), 0);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.id, ids[0]);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.id, ids[2]);
	expect_nothing_to_read(test);
	KUNIT_EXPECT_EQ(test, context->counts.finished, 5ULL);
	KUNIT_EXPECT_EQ(test, context->counts.added, 5ULL);
}

static void modify_replaces_data_only_if_told_to(struct kunit *test)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD, .data = 1 };
	struct twheel_record record;
	u64 id;

	KUNIT_EXPECT_EQ(test, run(test, &cmd), 0);
	id = cmd.id;
	KUNIT_EXPECT_EQ(test, modify(test, id, 0), 0);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.data, 1ULL);

	KUNIT_EXPECT_EQ(test, run(test, &cmd), 0);
	cmd.op = TWHEEL_OP_MODIFY;
	cmd.flags = TWHEEL_SET_DATA;
	cmd.data = 2;
	KUNIT_EXPECT_EQ(test, run(test, &cmd), 0);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.data, 2ULL);
}

/* --- periodic events -------------------------------------------------------- */

static int add_periodic(struct kunit *test, u64 time_ns, u64 interval_ns,
			u16 flags, u64 *id)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = flags,
		.time_ns = time_ns,
		.interval_ns = interval_ns,
	};
	int ret = run(test, &cmd);

	*id = cmd.id;
	return ret;
}

static void periodic_event_stays_on_its_grid(struct kunit *test)
{
	enum { ROUNDS = 30, INTERVAL_NS = 3 * NSEC_PER_MSEC + 77 };
	struct context *context = test->priv;
	u64 id, due_ns = ktime_get_ns() + NSEC_PER_MSEC;
	struct twheel_record record;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, add_periodic(test, due_ns, INTERVAL_NS, TWHEEL_ABS,
					   &id), 0);
	for (i = 0; i < ROUNDS; i++) {
		read_record(test, &record, CONTEXT_BLOCK);
		KUNIT_ASSERT_EQ(test, record.id, id);
		KUNIT_ASSERT_EQ(test, record.due_ns, due_ns);
		KUNIT_ASSERT_GE(test, record.fired_ns, due_ns);
		KUNIT_ASSERT_GE(test, record.count, 1ULL);
		due_ns += record.count * INTERVAL_NS;
		KUNIT_ASSERT_GT(test, query(test, id), 0);
	}
	KUNIT_EXPECT_EQ(test, context->counts.added, 1ULL);
	KUNIT_EXPECT_EQ(test, context->counts.finished, 0ULL);
	KUNIT_EXPECT_EQ(test, context->counts.records, (u64)ROUNDS);
	KUNIT_EXPECT_EQ(test, cancel(test, id), 0);
	expect_nothing_to_read(test);
}

static void count_is_worked_out_when_the_record_is_read(struct kunit *test)
{
	const u64 interval_ns = 10 * NSEC_PER_MSEC;
	u64 id, due_ns = ktime_get_ns() - NSEC_PER_SEC, before_ns, after_ns;
	struct twheel_record record;

	KUNIT_ASSERT_EQ(test, add_periodic(test, due_ns, interval_ns, TWHEEL_ABS,
					   &id), 0);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_READY);
	/* It covers what passes meanwhile. */
	usleep_range(2 * interval_ns / NSEC_PER_USEC,
		     3 * interval_ns / NSEC_PER_USEC);
	before_ns = ktime_get_ns();
	read_record(test, &record, CONTEXT_NONBLOCK);
	after_ns = ktime_get_ns();
	KUNIT_EXPECT_EQ(test, record.due_ns, due_ns);
	KUNIT_EXPECT_LT(test, record.fired_ns, before_ns);
	KUNIT_EXPECT_GE(test, record.count,
			1 + div64_u64(before_ns - due_ns, interval_ns));
	KUNIT_EXPECT_LE(test, record.count,
			1 + div64_u64(after_ns - due_ns, interval_ns));
	read_record(test, &record, CONTEXT_BLOCK);
	KUNIT_EXPECT_EQ(test, (record.due_ns - due_ns) % interval_ns, 0ULL);
	KUNIT_EXPECT_GE(test, record.due_ns, before_ns);
}

/* It costs nothing until it is read, whatever happens to its grid. */
static void unread_periodic_event_is_on_no_wheel(struct kunit *test)
{
	struct context *context = test->priv;
	u64 id;

	KUNIT_ASSERT_EQ(test, add_periodic(test, NSEC_PER_MSEC, 2 * NSEC_PER_MSEC,
					   0, &id), 0);
	KUNIT_ASSERT_EQ(test, twheel_context_wait(context), 0);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_READY);
	KUNIT_EXPECT_PTR_EQ(test, context->ready.next, &event_of(test, id)->ready);
	usleep_range(8000, 9000);
	KUNIT_EXPECT_EQ(test, READ_ONCE(context->nr_ready), 1ULL);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_READY);
	KUNIT_EXPECT_EQ(test, cancel(test, id), 0);
	expect_nothing_to_read(test);
}

static void period_beyond_all_clocks_comes_once(struct kunit *test)
{
	struct twheel_cmd look = { .op = TWHEEL_OP_QUERY };
	struct twheel_record record;
	u64 id;

	KUNIT_ASSERT_EQ(test, add_periodic(test, 0, U64_MAX, 0, &id), 0);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.count, 1ULL);
	look.id = id;
	KUNIT_EXPECT_EQ(test, run(test, &look), TWHEEL_ARMED);
	KUNIT_EXPECT_GE(test, look.time_ns, BIT_ULL(63));
	KUNIT_EXPECT_EQ(test, look.interval_ns, U64_MAX);
	KUNIT_EXPECT_EQ(test, cancel(test, id), 0);
}

static void modify_makes_a_periodic_event_a_one_shot_and_back(struct kunit *test)
{
	struct context *context = test->priv;
	struct twheel_cmd again = {
		.op = TWHEEL_OP_MODIFY,
		.interval_ns = HOUR_NS,
	};
	struct twheel_record record;
	u64 id;

	KUNIT_ASSERT_EQ(test, add_periodic(test, 0, HOUR_NS, 0, &id), 0);
	again.id = id;
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_ARMED);
	KUNIT_EXPECT_EQ(test, run(test, &again), 0);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, query(test, id), TWHEEL_ARMED);
	KUNIT_EXPECT_EQ(test, modify(test, id, 0), 0);
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, query(test, id), -ENOENT);
	KUNIT_EXPECT_EQ(test, context->counts.finished, 1ULL);
	KUNIT_EXPECT_EQ(test, context->counts.records, 3ULL);
}

/* --- slack ------------------------------------------------------------------ */

static void context_slack_is_the_least_of_every_event(struct kunit *test)
{
	struct twheel_config config = {
		.clockid = CLOCK_MONOTONIC,
		.slack_ns = 10 * NSEC_PER_SEC,
	};
	static const u64 asked_ns[] = { 0, 1, 10 * NSEC_PER_SEC, HOUR_NS };
	unsigned int i;

	KUNIT_ASSERT_EQ(test, twheel_context_configure(test->priv, &config), 0);
	for (i = 0; i < ARRAY_SIZE(asked_ns); i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.time_ns = DAY_NS,
			.slack_ns = asked_ns[i],
		};
		u64 id;

		KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
		id = cmd.id;
		cmd = (struct twheel_cmd){ .op = TWHEEL_OP_QUERY, .id = id };
		KUNIT_EXPECT_EQ(test, run(test, &cmd), TWHEEL_ARMED);
		KUNIT_EXPECT_EQ(test, cmd.slack_ns,
				max_t(u64, asked_ns[i], 10 * NSEC_PER_SEC));
	}
}

static void events_with_slack_share_a_tick_and_keep_their_due_time(struct kunit *test)
{
	u64 due_ns = ktime_get_ns() + DAY_NS, tick = 0;
	unsigned int i, distinct = 0;

	for (i = 0; i < 100; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.flags = TWHEEL_ABS,
			.time_ns = due_ns + i * 10 * NSEC_PER_MSEC,
			.slack_ns = 10 * NSEC_PER_SEC,
		};
		u64 id, mine;

		KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
		id = cmd.id;
		mine = wheel_due(&event_of(test, id)->node.wheel);
		KUNIT_EXPECT_GE(test, mine, tick);
		distinct += mine != tick;
		tick = mine;
		cmd = (struct twheel_cmd){ .op = TWHEEL_OP_QUERY, .id = id };
		KUNIT_EXPECT_EQ(test, run(test, &cmd), TWHEEL_ARMED);
		KUNIT_EXPECT_EQ(test, cmd.time_ns, due_ns + i * 10 * NSEC_PER_MSEC);
	}
	/* A second of events, in steps of at least five. */
	KUNIT_EXPECT_LE(test, distinct, 2U);
}

/* --- when a context is readable --------------------------------------------- */

static void configure_wake(struct kunit *test, u32 count, u64 delay_ns,
			   u64 max_events)
{
	struct twheel_config config = {
		.clockid = CLOCK_MONOTONIC,
		.max_events = max_events,
		.wake_count = count,
		.wake_delay_ns = delay_ns,
	};

	KUNIT_ASSERT_EQ(test, twheel_context_configure(test->priv, &config), 0);
}

static void context_is_readable_when_enough_is_ready(struct kunit *test)
{
	struct twheel_record records[3];
	unsigned int i;
	u64 id;

	configure_wake(test, 3, HOUR_NS, 0);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_FALSE(test, twheel_context_readable(test->priv));
		KUNIT_EXPECT_EQ(test, add(test, 0, &id), 0);
	}
	KUNIT_EXPECT_TRUE(test, twheel_context_readable(test->priv));
	KUNIT_EXPECT_EQ(test, read_records(test, records, 3, CONTEXT_BLOCK),
			(ssize_t)sizeof(records));
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(test->priv));
}

static void read_without_waiting_takes_what_there_is(struct kunit *test)
{
	struct twheel_record record;
	u64 id;

	configure_wake(test, 3, HOUR_NS, 0);
	KUNIT_EXPECT_EQ(test, add(test, 0, &id), 0);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(test->priv));
	read_record(test, &record, CONTEXT_NONBLOCK);
	KUNIT_EXPECT_EQ(test, record.id, id);
	expect_nothing_to_read(test);
}

static void context_is_readable_when_it_is_full(struct kunit *test)
{
	u64 ids[2];

	configure_wake(test, 3, HOUR_NS, 2);
	KUNIT_EXPECT_EQ(test, add(test, 0, &ids[0]), 0);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(test->priv));
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &ids[1]), 0);
	KUNIT_EXPECT_TRUE(test, twheel_context_readable(test->priv));
	KUNIT_EXPECT_EQ(test, cancel(test, ids[1]), 0);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(test->priv));
}

static void context_is_readable_when_a_record_is_old_and_not_before(struct kunit *test)
{
	enum { ROUNDS = 20, DELAY_NS = 5 * NSEC_PER_MSEC };
	struct twheel_record records[2];
	unsigned int i;
	u64 id;

	configure_wake(test, 1000, DELAY_NS, 0);
	for (i = 0; i < ROUNDS; i++) {
		KUNIT_ASSERT_EQ(test, add(test, i % 2 ? NSEC_PER_MSEC : 0, &id), 0);
		KUNIT_ASSERT_EQ(test, read_records(test, records, 2, CONTEXT_BLOCK),
				(ssize_t)sizeof(records[0]));
		KUNIT_ASSERT_GE(test, ktime_get_ns(), records[0].fired_ns + DELAY_NS);
	}
}

/* --- listing ---------------------------------------------------------------- */

#define LISTED	500

/* How often each event was listed, by the data that it has. */
struct listing {
	u64 ids[LISTED];
	unsigned int listed[LISTED];
	struct twheel_entry entries[7];
};

static struct listing *listing_make(struct kunit *test)
{
	struct listing *listing = kunit_kzalloc(test, sizeof(*listing), GFP_KERNEL);
	u64 i;

	KUNIT_ASSERT_NOT_NULL(test, listing);
	for (i = 0; i < LISTED; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.data = i,
			.time_ns = i % 5 ? HOUR_NS : 0,
		};

		KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
		listing->ids[i] = cmd.id;
	}
	return listing;
}

/* List the next few; false at the end. */
static bool list_some(struct kunit *test, struct listing *listing, u64 *cursor)
{
	ssize_t i, nr = list_entries(test, cursor, listing->entries,
				     ARRAY_SIZE(listing->entries));

	KUNIT_ASSERT_GE(test, nr, (ssize_t)0);
	for (i = 0; i < nr; i++) {
		const struct twheel_entry *entry = &listing->entries[i];

		if (entry->data >= LISTED)
			continue;
		listing->listed[entry->data]++;
		KUNIT_EXPECT_EQ(test, entry->id, listing->ids[entry->data]);
		KUNIT_EXPECT_EQ(test, entry->state,
				entry->data % 5 ? (u32)TWHEEL_ARMED : (u32)TWHEEL_READY);
		KUNIT_EXPECT_EQ(test, entry->deadline, 0ULL);
	}
	return nr;
}

static void every_event_is_listed_once(struct kunit *test)
{
	struct listing *listing = listing_make(test);
	unsigned int i, steps = 0;
	u64 cursor = 0;

	while (list_some(test, listing, &cursor))
		KUNIT_ASSERT_LT(test, ++steps, (unsigned int)LISTED);
	for (i = 0; i < LISTED; i++)
		KUNIT_EXPECT_EQ(test, listing->listed[i], 1U);
	KUNIT_EXPECT_FALSE(test, list_some(test, listing, &cursor));
}

/* Others come, go, and come to where those that went had been. */
static void event_that_stays_is_listed_once_whatever_others_do(struct kunit *test)
{
	struct listing *listing = listing_make(test);
	struct twheel_record record;
	unsigned int i, step = 0;
	u64 cursor = 0;

	while (list_some(test, listing, &cursor)) {
		unsigned int victim = step++ * 6 % LISTED;
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.data = LISTED,
			.time_ns = HOUR_NS,
		};

		KUNIT_ASSERT_LT(test, step, 10U * LISTED);
		if (victim % 5)
			cancel(test, listing->ids[victim]);
		else if (step % 4 == 0)
			read_record(test, &record, CONTEXT_NONBLOCK);
		if (step < LISTED)
			KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	}
	for (i = 0; i < LISTED; i++) {
		KUNIT_EXPECT_LE(test, listing->listed[i], 1U);
		if (query(test, listing->ids[i]) != -ENOENT)
			KUNIT_EXPECT_EQ(test, listing->listed[i], 1U);
	}
}

/* --- clocks and CPUs -------------------------------------------------------- */

static const struct clock {
	const char *name;
	clockid_t id;
	enum base_clock base;
	u64 (*now_ns)(void);
} clocks[] = {
	{ "monotonic", CLOCK_MONOTONIC, BASE_MONOTONIC, ktime_get_ns },
	{ "boottime", CLOCK_BOOTTIME, BASE_BOOTTIME, ktime_get_boottime_ns },
	{ "realtime", CLOCK_REALTIME, BASE_REALTIME, ktime_get_real_ns },
};

static void clock_name(const struct clock *clock, char *name)
{
	strscpy(name, clock->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(clock, clocks, clock_name);

static void configure_clock(struct kunit *test, clockid_t id)
{
	struct twheel_config config = { .clockid = id };

	KUNIT_ASSERT_EQ(test, twheel_context_configure(test->priv, &config), 0);
}

static void event_goes_by_the_clock_of_its_context(struct kunit *test)
{
	const struct clock *clock = test->param_value;
	struct twheel_record record;
	struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD, .flags = TWHEEL_ABS };
	u64 due_ns = clock->now_ns() + 20 * NSEC_PER_MSEC;

	configure_clock(test, clock->id);
	cmd.time_ns = due_ns;
	KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	KUNIT_EXPECT_EQ(test,
			(int)base_number_clock(event_of(test, cmd.id)->node.base),
			(int)clock->base);
	read_record(test, &record, CONTEXT_BLOCK);
	KUNIT_EXPECT_GE(test, clock->now_ns(), record.fired_ns);
	KUNIT_EXPECT_GE(test, record.fired_ns, due_ns);
	KUNIT_EXPECT_EQ(test, record.due_ns, due_ns);
}

static void relative_time_is_told_on_the_clock_of_the_context(struct kunit *test)
{
	const struct clock *clock = test->param_value;
	struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD, .time_ns = HOUR_NS };
	struct twheel_record record;
	u64 before_ns, after_ns, id;

	configure_clock(test, clock->id);
	before_ns = clock->now_ns();
	KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	after_ns = clock->now_ns();
	id = cmd.id;
	cmd = (struct twheel_cmd){ .op = TWHEEL_OP_QUERY, .id = id };
	KUNIT_EXPECT_EQ(test, run(test, &cmd), TWHEEL_ARMED);
	KUNIT_EXPECT_GE(test, cmd.time_ns, before_ns + HOUR_NS);
	KUNIT_EXPECT_LE(test, cmd.time_ns, after_ns + HOUR_NS);

	KUNIT_EXPECT_EQ(test, modify(test, id, NSEC_PER_MSEC), 0);
	read_record(test, &record, CONTEXT_BLOCK);
	KUNIT_EXPECT_GE(test, record.fired_ns, record.due_ns);
	KUNIT_EXPECT_GE(test, record.due_ns, before_ns + NSEC_PER_MSEC);
}

static void cancel_on_set_is_for_absolute_times_on_realtime(struct kunit *test)
{
	const struct clock *clock = test->param_value;
	unsigned int absolute;

	configure_clock(test, clock->id);
	for (absolute = 0; absolute < 2; absolute++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.flags = TWHEEL_CANCEL_ON_SET | absolute * TWHEEL_ABS,
			.time_ns = absolute * clock->now_ns() + HOUR_NS,
		};

		KUNIT_EXPECT_EQ(test, run(test, &cmd),
				absolute && clock->id == CLOCK_REALTIME ? 0 : -EINVAL);
	}
}

/* Move CLOCK_REALTIME. */
static void step_clock(struct kunit *test, s64 by_ns)
{
	struct timespec64 time;

	ktime_get_real_ts64(&time);
	time = timespec64_add(time, ns_to_timespec64(by_ns));
	KUNIT_ASSERT_EQ(test, do_settimeofday64(&time), 0);
}

static void setting_the_clock_ends_the_events_that_asked_for_it(struct kunit *test)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_ABS | TWHEEL_CANCEL_ON_SET,
		.interval_ns = HOUR_NS,
	};
	struct twheel_record record;
	u64 id, other;

	configure_clock(test, CLOCK_REALTIME);
	cmd.time_ns = ktime_get_real_ns() + DAY_NS;
	KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	id = cmd.id;
	KUNIT_ASSERT_EQ(test, add(test, DAY_NS, &other), 0);
	step_clock(test, -(s64)NSEC_PER_SEC);
	KUNIT_ASSERT_EQ(test, twheel_context_wait(test->priv), 0);

	/* It cannot be taken back by a MODIFY, and is the last of a periodic one. */
	KUNIT_EXPECT_EQ(test, modify(test, id, HOUR_NS), -EALREADY);
	read_record(test, &record, CONTEXT_BLOCK);
	KUNIT_EXPECT_EQ(test, record.id, id);
	KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_CLOCK_SET);
	KUNIT_EXPECT_EQ(test, record.count, 1ULL);
	KUNIT_EXPECT_EQ(test, query(test, id), -ENOENT);
	KUNIT_EXPECT_EQ(test, query(test, other), TWHEEL_ARMED);
	expect_nothing_to_read(test);
	step_clock(test, NSEC_PER_SEC);
}

/* False: some had come before the clock was set. */
static bool set_back_in_time(struct kunit *test, u64 lead_ns)
{
	enum { NR = 300 };
	struct twheel_record record;
	struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD, .flags = TWHEEL_ABS };
	u64 begin_ns = ktime_get_ns(), now_ns = ktime_get_real_ns(), i;
	unsigned int early = 0;
	bool in_time;

	for (i = 0; i < NR; i++) {
		cmd.data = i;
		cmd.time_ns = now_ns + lead_ns + i * NSEC_PER_MSEC / 10;
		KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
	}
	step_clock(test, -300 * (s64)NSEC_PER_MSEC);
	in_time = ktime_get_ns() - begin_ns < lead_ns;
	for (i = 0; i < NR; i++) {
		read_record(test, &record, CONTEXT_BLOCK);
		KUNIT_ASSERT_GE(test, record.fired_ns, record.due_ns);
		early += ktime_get_real_ns() < record.due_ns;
	}
	expect_nothing_to_read(test);
	step_clock(test, 300 * NSEC_PER_MSEC);
	if (in_time)
		KUNIT_EXPECT_EQ(test, early, 0U);
	return in_time;
}

static void setting_the_clock_back_makes_nothing_early(struct kunit *test)
{
	configure_clock(test, CLOCK_REALTIME);
	attempt_in_time(test, NSEC_PER_SEC, set_back_in_time);
}

static void bound_context_arms_on_its_cpu_alone(struct kunit *test)
{
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		struct twheel_config config = {
			.flags = TWHEEL_CONFIG_CPU,
			.clockid = CLOCK_MONOTONIC,
			.cpu = cpu,
		};
		struct twheel_record record;
		unsigned int i;
		u64 id;

		twheel_context_destroy(test->priv);
		test->priv = twheel_context_create();
		KUNIT_ASSERT_NOT_NULL(test, test->priv);
		KUNIT_ASSERT_EQ(test, twheel_context_configure(test->priv, &config), 0);
		for (i = 0; i < 100; i++) {
			KUNIT_ASSERT_EQ(test, add(test, NSEC_PER_MSEC, &id), 0);
			KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &id), 0);
			KUNIT_EXPECT_EQ(test, event_of(test, id)->node.base,
					(int)base_number(cpu, BASE_MONOTONIC));
		}
		for (i = 0; i < 100; i++)
			read_record(test, &record, CONTEXT_BLOCK);
	}
}

/* --- operations ------------------------------------------------------------- */

static void operations_agree_with_plain_arrays_at_every_step(struct kunit *test)
{
	struct operation_model *model = kunit_kzalloc(test, sizeof(*model),
						      GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, model);
	seed = seed ?: get_random_u32();
	kunit_info(test, "seed %lu", seed);
	model->test = test;
	prandom_seed_state(&model->random, seed);
	while (model->step < MODEL_STEPS) {
		model_step(model);
		cond_resched();
	}
	model_end(model);
	kunit_info(test, "%llu added, %llu completed, %llu cancelled", model->added,
		   model->completed, model->cancelled);
	KUNIT_EXPECT_GT(test, model->completed, MODEL_STEPS / 100ULL);
}

/* --- memory and counters ---------------------------------------------------- */

static void event_needs_at_most_64_bytes(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, sizeof(struct event), (size_t)64);
	KUNIT_EXPECT_LE(test, sizeof(struct event_page), (size_t)EVENT_PAGE_SIZE);
}

/* Random commands; an account of our own must agree with the context's. */
static void counters_add_up_at_every_step(struct kunit *test)
{
	enum { STEPS = 20000, SLOTS = 200 };
	struct context *context = test->priv;
	u64 added = 0, cancelled = 0, finished = 0;
	u64 *ids = kunit_kcalloc(test, SLOTS, sizeof(*ids), GFP_KERNEL);
	unsigned int step;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (step = 0; step < STEPS; step++) {
		u32 number = get_random_u32();
		u64 *id = &ids[number % SLOTS];
		u64 delay_ns = number % (2 * NSEC_PER_MSEC);
		struct twheel_record record;

		switch ((number >> 16) % 8) {
		case 0 ... 3:
			if (query(test, *id) != -ENOENT)
				break;
			KUNIT_ASSERT_EQ(test, add(test, delay_ns, id), 0);
			added++;
			break;
		case 4:
			modify(test, *id, delay_ns);
			break;
		case 5:
			cancelled += !cancel(test, *id);
			break;
		default:
			finished += read_records(test, &record, 1,
						 CONTEXT_NONBLOCK) > 0;
		}
		KUNIT_ASSERT_EQ(test, context->counts.added, added);
		KUNIT_ASSERT_EQ(test, context->counts.cancelled, cancelled);
		KUNIT_ASSERT_EQ(test, context->counts.finished, finished);
		KUNIT_ASSERT_LE(test, READ_ONCE(context->nr_ready),
				added - cancelled - finished);
	}
	while (added > cancelled + finished) {
		struct twheel_record record;

		read_record(test, &record, CONTEXT_BLOCK);
		KUNIT_ASSERT_GE(test, record.fired_ns, record.due_ns);
		finished++;
	}
	KUNIT_EXPECT_EQ(test, context->counts.finished, finished);
	KUNIT_EXPECT_FALSE(test, twheel_context_readable(context));
}

/* --- the budget of a CPU ------------------------------------------------------ */

#define RIVAL_CALLS	100

/**
 * struct rivals - a timer whose function takes its time, beside events on another clock
 * @timer: the timer, on this CPU as the events are.
 * @linger_ns: how long its function takes.
 * @calls: how often it is to be called, each time for the next tick.
 * @nr: how often it was.
 * @at_ns: when each call began, on CLOCK_MONOTONIC.
 * @ahead_ns: how far the clock of the events is ahead of that.
 */
struct rivals {
	struct twheel_timer timer;
	u64 linger_ns;
	unsigned int calls;
	unsigned int nr;
	u64 at_ns[RIVAL_CALLS];
	s64 ahead_ns;
};

static void rival_call(struct twheel_timer *timer)
{
	struct rivals *rivals = container_of(timer, struct rivals, timer);
	u64 now_ns = ktime_get_ns();

	rivals->at_ns[rivals->nr] = now_ns;
	if (rivals->nr + 1 < rivals->calls)
		twheel_timer_arm(timer, 0, 0, TWHEEL_TIMER_REL);
	while (ktime_get_ns() < now_ns + rivals->linger_ns)
		cpu_relax();
	/* Pairs with rivals_wait(). */
	smp_store_release(&rivals->nr, rivals->nr + 1);
}

static struct rivals *rivals_make(struct kunit *test, u64 linger_ns, unsigned int calls)
{
	struct twheel_config config = {
		.flags = TWHEEL_CONFIG_CPU,
		.clockid = CLOCK_BOOTTIME,
		.cpu = smp_processor_id(),
	};
	struct rivals *rivals = kunit_kzalloc(test, sizeof(*rivals), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rivals);
	KUNIT_ASSERT_EQ(test, twheel_context_configure(test->priv, &config), 0);
	twheel_timer_setup(&rivals->timer, rival_call);
	rivals->linger_ns = linger_ns;
	rivals->calls = calls;
	rivals->ahead_ns = ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_BOOT));
	return rivals;
}

static void rivals_wait(struct rivals *rivals)
{
	/* Pairs with rival_call(). */
	while (smp_load_acquire(&rivals->nr) < rivals->calls)
		usleep_range(1000, 2000);
}

/*
 * Arm the timer, and an event for @after_ns later; return when that fired, on
 * CLOCK_MONOTONIC, when the timer's function was called for the last time; 0 where the
 * machine stood still until they were due.
 */
static u64 rivals_meet(struct kunit *test, struct rivals *rivals, u64 after_ns)
{
	u64 due_ns = ktime_get_ns() + 20 * NSEC_PER_MSEC;
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_ABS,
		.time_ns = due_ns + rivals->ahead_ns + after_ns,
	};
	struct twheel_record record;
	bool in_time;

	rivals->nr = 0;
	twheel_timer_arm(&rivals->timer, due_ns, 0, TWHEEL_TIMER_ABS);
	KUNIT_EXPECT_EQ(test, run(test, &cmd), 0);
	in_time = ktime_get_ns() < due_ns;
	read_record(test, &record, CONTEXT_BLOCK);
	rivals_wait(rivals);
	return in_time ? record.fired_ns - rivals->ahead_ns : 0;
}

/*
 * That the pause of one base is one for the others is a lower bound of when their events
 * come.  Where the event came before the function was called, this says nothing.
 */
static void pause_of_a_cpu_is_one_for_all_of_its_clocks(struct kunit *test)
{
	struct rivals *rivals;
	unsigned int tries;
	u64 fired_ns = 0;

	migrate_disable();
	rivals = rivals_make(test, 3 * NSEC_PER_MSEC, 1);
	for (tries = 0; tries < 20 && fired_ns <= rivals->at_ns[0]; tries++)
		fired_ns = rivals_meet(test, rivals, NSEC_PER_MSEC);
	migrate_enable();
	KUNIT_EXPECT_GE(test, fired_ns, rivals->at_ns[0] + 2 * rivals->linger_ns);
	twheel_timer_shutdown(&rivals->timer);
}

/* An event that is due while another base runs again and again has the next turn. */
static void bases_of_a_cpu_take_turns(struct kunit *test)
{
	u64 after_ns = 10 * NSEC_PER_MSEC, fired_ns;
	unsigned int i, nr = 0, tries = 0;
	struct rivals *rivals;

	migrate_disable();
	rivals = rivals_make(test, 1500 * NSEC_PER_USEC, RIVAL_CALLS);
	do {
		fired_ns = rivals_meet(test, rivals, after_ns);
	} while (!fired_ns && ++tries < 20);
	migrate_enable();
	for (i = 0; i < RIVAL_CALLS; i++)
		nr += rivals->at_ns[i] > rivals->at_ns[0] + after_ns &&
		      rivals->at_ns[i] < fired_ns;
	/* The one that was running then, one that came sooner after a pause, and some spare. */
	KUNIT_EXPECT_LE(test, nr, 5U);
	twheel_timer_shutdown(&rivals->timer);
}

static struct kunit_case context_cases[] = {
	KUNIT_CASE(id_is_of_no_use_after_the_events_end),
	KUNIT_CASE(armed_event_is_seen_while_a_batch_adds_and_cancels),
	KUNIT_CASE(any_64_bits_are_a_safe_id),
	KUNIT_CASE(slot_with_the_last_generation_is_retired),
	KUNIT_CASE(page_of_retired_slots_leaves_its_number_unused),
	KUNIT_CASE(memory_given_back_does_not_bring_old_ids_back),
	KUNIT_CASE(id_leads_to_its_event_wherever_its_page_is),
	KUNIT_CASE(empty_pages_but_one_are_given_back),
	KUNIT_CASE(full_context_refuses_and_recovers),
	KUNIT_CASE(past_event_is_ready_when_add_returns),
	KUNIT_CASE(cancel_of_a_ready_event_leaves_no_record),
	KUNIT_CASE(events_of_one_tick_are_read_in_the_order_of_arming),
	KUNIT_CASE(modify_of_a_ready_event_suppresses_its_record),
	KUNIT_CASE(modify_replaces_data_only_if_told_to),
	KUNIT_CASE(periodic_event_stays_on_its_grid),
	KUNIT_CASE(count_is_worked_out_when_the_record_is_read),
	KUNIT_CASE(unread_periodic_event_is_on_no_wheel),
	KUNIT_CASE(period_beyond_all_clocks_comes_once),
	KUNIT_CASE(modify_makes_a_periodic_event_a_one_shot_and_back),
	KUNIT_CASE(context_slack_is_the_least_of_every_event),
	KUNIT_CASE(events_with_slack_share_a_tick_and_keep_their_due_time),
	KUNIT_CASE(context_is_readable_when_enough_is_ready),
	KUNIT_CASE(read_without_waiting_takes_what_there_is),
	KUNIT_CASE(context_is_readable_when_it_is_full),
	KUNIT_CASE(context_is_readable_when_a_record_is_old_and_not_before),
	KUNIT_CASE(every_event_is_listed_once),
	KUNIT_CASE(event_that_stays_is_listed_once_whatever_others_do),
	KUNIT_CASE_PARAM(event_goes_by_the_clock_of_its_context, clock_gen_params),
	KUNIT_CASE_PARAM(relative_time_is_told_on_the_clock_of_the_context,
			 clock_gen_params),
	KUNIT_CASE_PARAM(cancel_on_set_is_for_absolute_times_on_realtime,
			 clock_gen_params),
	KUNIT_CASE(setting_the_clock_ends_the_events_that_asked_for_it),
	KUNIT_CASE(setting_the_clock_back_makes_nothing_early),
	KUNIT_CASE(bound_context_arms_on_its_cpu_alone),
	KUNIT_CASE(pause_of_a_cpu_is_one_for_all_of_its_clocks),
	KUNIT_CASE(bases_of_a_cpu_take_turns),
	KUNIT_CASE(operations_agree_with_plain_arrays_at_every_step),
	KUNIT_CASE(event_needs_at_most_64_bytes),
	KUNIT_CASE(counters_add_up_at_every_step),
	{}
};

static struct kunit_suite context_suite = {
	.name = "twheel_context",
	.init = context_suite_init,
	.exit = context_suite_exit,
	.test_cases = context_cases,
};

kunit_test_suite(context_suite);

MODULE_DESCRIPTION("KUnit suite of twheel's contexts");
MODULE_LICENSE("GPL");
TWHEEL_IMPORT_FOR_KUNIT();
