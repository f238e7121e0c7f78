// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of failing allocations: each one that a context makes is refused in
 * its turn, alone or with all that follow, and all is as it was before, but for an
 * errno.
 *
 * The kernel's fault injection does it for the task, whose fail_nth says which
 * allocation and whose make_it_fail is for those after it.  tools/test/kunit sets
 * it up so.  What is refused is often something of a debugging aid's, and makes
 * no difference.
 */
#include <kunit/test.h>
#include <linux/sched.h>

#include "commands.h"

#ifdef CONFIG_FAULT_INJECTION
/* Let the @nth allocation of this task fail from now on; @all: and the others. */
static void fault_begin(unsigned int nth, bool all)
{
	current->make_it_fail = all;
	current->fail_nth = nth;
}

/* No more of that; was there such an allocation? */
static bool fault_end(void)
{
	bool happened = !current->fail_nth;

	current->fail_nth = 0;
	current->make_it_fail = false;
	return happened;
}
#else
static void fault_begin(unsigned int nth, bool all) { }

static bool fault_end(void)
{
	return false;
}
#endif

/**
 * struct attempt - something that can fail
 * @run: do it.
 * @all: when an allocation fails, so do all that follow.
 * @failed: how often it failed.
 */
struct attempt {
	int (*run)(struct kunit *test);
	bool all;
	unsigned int failed;
};

/*
 * Do it until nothing is left to fail.  If it succeeds although something failed,
 * that may be the end of it.
 */
static void try_all_faults(struct kunit *test, struct attempt *attempt)
{
	unsigned int nth;

	attempt->failed = 0;
	for (nth = 1; nth < 1000; nth++) {
		bool happened;
		int ret;

		fault_begin(nth, attempt->all);
		ret = attempt->run(test);
		happened = fault_end();
		if (!ret)
			return;
		KUNIT_ASSERT_TRUE(test, happened);
		KUNIT_ASSERT_EQ(test, ret, -ENOMEM);
		attempt->failed++;
	}
	KUNIT_FAIL(test, "it never succeeds");
}

static void expect_faults(struct kunit *test, const struct attempt *attempt)
{
	if (!IS_ENABLED(CONFIG_FAILSLAB))
		kunit_skip(test, "the kernel has no CONFIG_FAILSLAB");
	/* If none: does failslab/ignore-gfp-wait say N? */
	KUNIT_EXPECT_GT(test, attempt->failed, 0U);
}

static int fault_suite_init(struct kunit *test)
{
	test->priv = context_create();
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	return 0;
}

static void fault_suite_exit(struct kunit *test)
{
	if (test->priv)
		context_destroy(test->priv);
}

static int open_context(struct kunit *test)
{
	test->priv = context_create();
	return test->priv ? 0 : -ENOMEM;
}

static void failing_open_leaves_nothing_behind(struct kunit *test)
{
	struct attempt one = { .run = open_context };
	struct attempt all = { .run = open_context, .all = true };
	u64 id;

	context_destroy(test->priv);
	try_all_faults(test, &one);
	context_destroy(test->priv);
	try_all_faults(test, &all);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &id), 0);
	expect_faults(test, &one);
	expect_faults(test, &all);
}

static int add_one(struct kunit *test)
{
	struct context *context = test->priv;
	u64 added = context->added, id;
	int ret = add(test, HOUR_NS, &id);

	/* What failed has added nothing and has no id. */
	if (ret && (context->added != added || id))
		return -EIO;
	return ret;
}

/* So many that the array of pages has to grow too, by two levels. */
static void failing_add_changes_nothing(struct kunit *test)
{
	enum { PAGES = 66 };
	struct context *context = test->priv;
	struct attempt attempt = { .run = add_one };
	unsigned int i, failed = 0;

	for (i = 1; i <= PAGES * EVENT_PAGE_EVENTS; i++) {
		attempt.all = i / EVENT_PAGE_EVENTS % 2;
		try_all_faults(test, &attempt);
		KUNIT_ASSERT_EQ(test, context->added, (u64)i);
		failed += attempt.failed;
	}
	attempt.failed = failed;
	KUNIT_EXPECT_EQ(test, context->next_number, (u32)PAGES);
	/* A page each, at least. */
	KUNIT_EXPECT_TRUE(test, !failed || failed >= PAGES);
	expect_faults(test, &attempt);
}

static int configure(struct kunit *test, clockid_t clock)
{
	struct twheel_config config = {
		.clockid = clock,
		.wake_count = 2,
		.wake_delay_ns = 1,
	};

	return context_configure(test->priv, &config);
}

static int use_boottime(struct kunit *test)
{
	return configure(test, CLOCK_BOOTTIME);
}

static int use_realtime(struct kunit *test)
{
	return configure(test, CLOCK_REALTIME);
}

/*
 * The bases of a clock are made once, so this suite must be the first to ask.  If
 * only one allocation fails, vmalloc makes up for it.
 */
static void failing_first_use_of_a_clock_leaves_the_context_as_it_was(struct kunit *test)
{
	struct attempt boottime = { .run = use_boottime, .all = true };
	struct attempt realtime = { .run = use_realtime, .all = true };
	struct context *context = test->priv;
	u64 id;

	try_all_faults(test, &boottime);
	KUNIT_EXPECT_EQ(test, (int)context->clock, (int)BASE_BOOTTIME);
	try_all_faults(test, &realtime);
	KUNIT_EXPECT_EQ(test, (int)context->clock, (int)BASE_REALTIME);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &id), 0);
	expect_faults(test, &boottime);
	expect_faults(test, &realtime);
}

/* What ends an event, or moves it, must not need what may not be there. */
static void modify_cancel_query_and_read_need_no_memory(struct kunit *test)
{
	enum { FAULTS = 20 };
	struct twheel_record record;
	struct twheel_entry entry;
	unsigned int nth;

	for (nth = 1; nth <= FAULTS; nth++) {
		u64 cursor = 0, ids[2];
		ssize_t answers[6];

		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &ids[0]), 0);
		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &ids[1]), 0);
		fault_begin(nth, nth % 2);
		answers[0] = query(test, ids[0]);
		answers[1] = modify(test, ids[0], 0);
		answers[2] = modify(test, ids[1], 2 * HOUR_NS);
		answers[3] = list_entries(test, &cursor, &entry, 1);
		answers[4] = read_records(test, &record, 1, CONTEXT_BLOCK);
		answers[5] = cancel(test, ids[1]);
		fault_end();
		KUNIT_ASSERT_EQ(test, answers[0], (ssize_t)TWHEEL_ARMED);
		KUNIT_ASSERT_EQ(test, answers[1], (ssize_t)0);
		KUNIT_ASSERT_EQ(test, answers[2], (ssize_t)0);
		KUNIT_ASSERT_EQ(test, answers[3], (ssize_t)1);
		KUNIT_ASSERT_EQ(test, answers[4], (ssize_t)sizeof(record));
		KUNIT_ASSERT_EQ(test, answers[5], (ssize_t)0);
		KUNIT_ASSERT_EQ(test, record.id, ids[0]);
	}
}

static struct kunit_case fault_cases[] = {
	KUNIT_CASE(failing_first_use_of_a_clock_leaves_the_context_as_it_was),
	KUNIT_CASE(failing_open_leaves_nothing_behind),
	KUNIT_CASE(failing_add_changes_nothing),
	KUNIT_CASE(modify_cancel_query_and_read_need_no_memory),
	{}
};

static struct kunit_suite fault_suite = {
	.name = "twheel_fault",
	.init = fault_suite_init,
	.exit = fault_suite_exit,
	.test_cases = fault_cases,
};

kunit_test_suite(fault_suite);

MODULE_DESCRIPTION("KUnit suite of failing allocations under twheel's contexts");
MODULE_LICENSE("GPL");
TWHEEL_IMPORT_FOR_KUNIT();
