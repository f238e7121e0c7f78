// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of contexts: ids, generations, memory, limits, counters, and what
 * can only be seen from inside.  What a process sees is tested by tools/test/.
 */
#include <kunit/test.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "commands.h"

static int context_suite_init(struct kunit *test)
{
	test->priv = context_create();
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	return 0;
}

static void context_suite_exit(struct kunit *test)
{
	context_destroy(test->priv);
}

/* The event of an id, from inside. */
static struct event *event_of(struct kunit *test, u64 id)
{
	struct context *context = test->priv;
	struct event_page *page = xa_load(&context->pages,
					  (u32)id >> EVENT_INDEX_BITS);

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_FALSE(test, xa_is_value(page));
	return &page->events[id % (1U << EVENT_INDEX_BITS)];
}

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
	KUNIT_EXPECT_EQ(test, context->next_number, 2U);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &ids[0]), 0);
	KUNIT_EXPECT_EQ(test, (u32)ids[0] >> EVENT_INDEX_BITS, 2U);
	KUNIT_EXPECT_EQ(test, context->next_number, 3U);
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
	KUNIT_EXPECT_LE(test, context->next_number,
			DIV_ROUND_UP(NR, EVENT_PAGE_EVENTS) + 1);
	kvfree(ids);
}

static void empty_pages_but_one_are_given_back(struct kunit *test)
{
	enum { NR = 200 };
	struct context *context = test->priv;
	u64 *ids = kunit_kcalloc(test, NR, sizeof(*ids), GFP_KERNEL);
	unsigned int i, pages = 0;
	unsigned long number;
	void *entry;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &ids[i]), 0);
	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, cancel(test, ids[i]), 0);
	xa_for_each(&context->pages, number, entry)
		pages += !xa_is_value(entry);
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

	KUNIT_EXPECT_EQ(test, context_configure(test->priv, &config), 0);
	for (i = 0; i < 100; i++)
		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &ids[i]), 0);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &ids[100]), -ENOSPC);
	KUNIT_EXPECT_EQ(test, cancel(test, ids[50]), 0);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &ids[100]), 0);
	KUNIT_EXPECT_EQ(test, context_configure(test->priv, &config), -EBUSY);
}

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
	KUNIT_EXPECT_FALSE(test, context_readable(test->priv));
	expect_nothing_to_read(test);
}

static void events_of_one_tick_are_read_in_the_order_of_arming(struct kunit *test)
{
	enum { NR = 500 };
	u64 due_ns = ktime_get_ns() + 20 * NSEC_PER_MSEC;
	struct twheel_record record;
	struct context_batch batch;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, context_begin(test->priv, &batch, CONTEXT_BLOCK), 0);
	migrate_disable();
	for (i = 0; i < NR; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.flags = TWHEEL_ABS,
			.data = i,
			.time_ns = due_ns,
		};

		if (command_run(&batch, &cmd))
			KUNIT_FAIL(test, "ADD failed");
	}
	base_release(&batch.hold);
	migrate_enable();
	context_end(&batch);
	for (i = 0; i < NR; i++) {
		read_record(test, &record, CONTEXT_BLOCK);
		KUNIT_ASSERT_EQ(test, record.data, (u64)i);
		KUNIT_ASSERT_GE(test, record.fired_ns, due_ns);
	}
}

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
		KUNIT_ASSERT_EQ(test, context->added, added);
		KUNIT_ASSERT_EQ(test, context->cancelled, cancelled);
		KUNIT_ASSERT_EQ(test, context->finished, finished);
		KUNIT_ASSERT_LE(test, READ_ONCE(context->nr_ready),
				added - cancelled - finished);
	}
	while (added > cancelled + finished) {
		struct twheel_record record;

		read_record(test, &record, CONTEXT_BLOCK);
		KUNIT_ASSERT_GE(test, record.fired_ns, record.due_ns);
		finished++;
	}
	KUNIT_EXPECT_EQ(test, context->finished, finished);
	KUNIT_EXPECT_FALSE(test, context_readable(context));
}

static struct kunit_case context_cases[] = {
	KUNIT_CASE(id_is_of_no_use_after_the_events_end),
	KUNIT_CASE(any_64_bits_are_a_safe_id),
	KUNIT_CASE(slot_with_the_last_generation_is_retired),
	KUNIT_CASE(page_of_retired_slots_leaves_its_number_unused),
	KUNIT_CASE(memory_given_back_does_not_bring_old_ids_back),
	KUNIT_CASE(empty_pages_but_one_are_given_back),
	KUNIT_CASE(full_context_refuses_and_recovers),
	KUNIT_CASE(past_event_is_ready_when_add_returns),
	KUNIT_CASE(cancel_of_a_ready_event_leaves_no_record),
	KUNIT_CASE(events_of_one_tick_are_read_in_the_order_of_arming),
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
