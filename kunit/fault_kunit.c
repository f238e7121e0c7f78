// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of failing allocations: each allocation of a context, or of an operation of a
 * module, fails in turn, alone or with all that follow. Everything must then be as before,
 * except that the call returns an errno.
 *
 * The kernel's fault injection does it for this task: its fail_nth says which allocation
 * fails, its make_it_fail is for those after that. tools/test/kunit sets it up. The
 * allocation that fails is often one of a debugging aid, which makes no difference.
 */
#include <kunit/test.h>
#include <linux/sched.h>

#include "commands.h"
#include "tally.h"

#ifdef CONFIG_FAULT_INJECTION
/* Let the @nth allocation of this task from now on fail; with @all, also those after it. */
static void fault_begin(unsigned int nth, bool all)
{
	current->make_it_fail = all;
	current->fail_nth = nth;
}

/* Let no more allocations fail; return whether one did. */
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
 * struct attempt - a call that can fail
 * @run: make the call.
 * @undo: undo a call that succeeded, or NULL.
 * @all: when an allocation fails, so do all that follow.
 * @failed: number of calls that failed.
 * @id: the event that the call is about, or
 * @key: the key, or
 * @nr_words: the number of words, or
 * @tally: the operation.
 */
struct attempt {
	int (*run)(struct kunit *test, const struct attempt *attempt);
	void (*undo)(struct kunit *test, const struct attempt *attempt);
	bool all;
	unsigned int failed;
	u64 id;
	u64 key;
	u32 nr_words;
	struct tally *tally;
};

/*
 * Repeat the attempt until no allocation is left to fail. One that succeeds although an
 * allocation failed, as that of a debugging aid, is the last one if it cannot be undone.
 */
static void try_all_faults(struct kunit *test, struct attempt *attempt)
{
	unsigned int nth;

	attempt->failed = 0;
	for (nth = 1; nth < 1000; nth++) {
		bool happened;
		int ret;

		fault_begin(nth, attempt->all);
		ret = attempt->run(test, attempt);
		happened = fault_end();
		if (!ret && (!happened || !attempt->undo))
			return;
		if (!ret) {
			attempt->undo(test, attempt);
			continue;
		}
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
	/* If nothing failed: is failslab/ignore-gfp-wait N? */
	KUNIT_EXPECT_GT(test, attempt->failed, 0U);
}

static int fault_suite_init(struct kunit *test)
{
	test->priv = twheel_context_create();
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	return 0;
}

static void fault_suite_exit(struct kunit *test)
{
	if (test->priv)
		twheel_context_destroy(test->priv);
}

static int open_context(struct kunit *test, const struct attempt *attempt)
{
	test->priv = twheel_context_create();
	return test->priv ? 0 : -ENOMEM;
}

/* --- contexts and events ---------------------------------------------------- */

static void failing_open_leaves_nothing_behind(struct kunit *test)
{
	struct attempt one = { .run = open_context };
	struct attempt all = { .run = open_context, .all = true };
	u64 id;

	twheel_context_destroy(test->priv);
	try_all_faults(test, &one);
	twheel_context_destroy(test->priv);
	try_all_faults(test, &all);
	KUNIT_EXPECT_EQ(test, add(test, HOUR_NS, &id), 0);
	expect_faults(test, &one);
	expect_faults(test, &all);
}

static int add_one(struct kunit *test, const struct attempt *attempt)
{
	struct context *context = test->priv;
	u64 added = context->counts.added, id;
	int ret = add(test, HOUR_NS, &id);

	/* An attempt that failed has added no event and has no id. */
	if (ret && (context->counts.added != added || id))
		return -EIO;
	return ret;
}

/* So many events that the array of page numbers has to grow several times too. */
static void failing_add_changes_nothing(struct kunit *test)
{
	enum { PAGES = 66 };
	struct context *context = test->priv;
	struct attempt attempt = { .run = add_one };
	unsigned int i, failed = 0;

	for (i = 1; i <= PAGES * EVENT_PAGE_EVENTS; i++) {
		attempt.all = i / EVENT_PAGE_EVENTS % 2;
		try_all_faults(test, &attempt);
		KUNIT_ASSERT_EQ(test, context->counts.added, (u64)i);
		failed += attempt.failed;
	}
	attempt.failed = failed;
	KUNIT_EXPECT_EQ(test, context->events.nr_numbers, (u32)PAGES);
	/* At least a page for each. */
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

	return twheel_context_configure(test->priv, &config);
}

static int use_boottime(struct kunit *test, const struct attempt *attempt)
{
	return configure(test, CLOCK_BOOTTIME);
}

static int use_realtime(struct kunit *test, const struct attempt *attempt)
{
	return configure(test, CLOCK_REALTIME);
}

/*
 * The bases of a clock are made once, so this suite must be the first to use them. If a
 * single allocation fails, vmalloc makes up for it.
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

/* --- words ------------------------------------------------------------------ */

/*
 * An attempt that failed has changed nothing: neither the words nor the rest of the
 * configuration.
 */
static int configure_words(struct kunit *test, const struct attempt *attempt)
{
	struct context *context = test->priv;
	const struct context before = *context;
	struct twheel_config config = {
		.clockid = CLOCK_BOOTTIME,
		.slack_ns = before.slack_ns + 1,
		.nr_deadlines = attempt->nr_words,
	};
	int ret = twheel_context_configure(context, &config);

	if (ret && (context->deadlines != before.deadlines ||
		    context->nr_deadlines != before.nr_deadlines ||
		    context->clock != before.clock ||
		    context->slack_ns != before.slack_ns ||
		    *word_of(test, 0) != 77))
		return -EIO;
	return ret;
}

/*
 * When the allocation of a page fails, the pages before it are given back. kmemleak would
 * not see a leak of pages, so the test compares the free memory, with a limit far below
 * what would be lost.
 */
static void failing_config_leaves_the_words_as_they_were(struct kunit *test)
{
	enum { PAGES = 60, ROUNDS = 8, LOST = (ROUNDS - 1) * PAGES * (PAGES - 1) / 2 };
	struct attempt attempt = {
		.run = configure_words,
		.nr_words = PAGES * DEADLINES_PAGE,
	};
	struct context *context = test->priv;
	unsigned int i, failed = 0;
	long available;
	u64 id;

	KUNIT_ASSERT_EQ(test, configure_deadlines(test, 1), 0);
	available = si_mem_available();
	for (i = 0; i < ROUNDS; i++) {
		store(test, 0, 77);
		/* A single failure may be that of a debugging aid. */
		attempt.all = i;
		try_all_faults(test, &attempt);
		failed += attempt.failed;
		KUNIT_EXPECT_EQ(test, context->nr_deadlines, attempt.nr_words);
		KUNIT_EXPECT_EQ(test, *word_of(test, 0), 0ULL);
	}
	/* If fewer failed than there are pages: is fail_page_alloc/min-order 0? */
	kunit_info(test, "%u refused", failed);
	KUNIT_EXPECT_TRUE(test, !failed || failed >= (ROUNDS - 1) * PAGES);
	KUNIT_EXPECT_GT(test, si_mem_available(), available - LOST / 2);
	KUNIT_EXPECT_EQ(test, add_deadline(test, 0, 0, &id), 0);
	attempt.failed = failed;
	expect_faults(test, &attempt);
}

static int add_by_word(struct kunit *test, const struct attempt *attempt)
{
	struct context *context = test->priv;
	u64 added = context->counts.added, id;
	int ret = add_deadline(test, added % 2, 0, &id);

	if (ret && (context->counts.added != added || id))
		return -EIO;
	return ret;
}

static void failing_add_with_a_word_changes_nothing(struct kunit *test)
{
	enum { NR = 3 * EVENT_PAGE_EVENTS };
	struct attempt attempt = { .run = add_by_word };
	unsigned int i, failed = 0;

	KUNIT_ASSERT_EQ(test, configure_deadlines(test, 2), 0);
	store(test, 0, BIT_ULL(63));
	for (i = 0; i < NR; i++) {
		attempt.all = i % 2;
		try_all_faults(test, &attempt);
		failed += attempt.failed;
	}
	attempt.failed = failed;
	expect_faults(test, &attempt);
}

/* A command that ends or moves an event must not need memory. */
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

/* --- operations ------------------------------------------------------------- */

static int nr_keys(const struct context *context)
{
	return context->keys ? atomic_read(&context->keys->nelems) : 0;
}

static int watch_one(struct kunit *test, const struct attempt *attempt)
{
	struct context *context = test->priv;
	u64 watches = context->nr_watches;
	int keys = nr_keys(context), ret;
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_WATCH,
		.id = attempt->id,
		.value = 1,
		.key = attempt->key,
	};

	ret = run(test, &cmd);
	if (ret && (context->nr_watches != watches || nr_keys(context) != keys))
		return -EIO;
	return ret;
}

static int signal(struct kunit *test, u64 key, u16 flags)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_SIGNAL,
		.flags = flags,
		.value = 1,
		.key = key,
	};

	return run(test, &cmd);
}

/* Enough keys that their table has to grow; each third watch is of an old key. */
static void failing_watch_attaches_nothing(struct kunit *test)
{
	enum { EVENTS = 8, WATCHES = EVENTS * TWHEEL_MAX_WATCHES };
	struct attempt attempt = { .run = watch_one };
	struct context *context = test->priv;
	unsigned int i, failed = 0, ended = 0;

	for (i = 0; i < WATCHES; i++) {
		if (i % TWHEEL_MAX_WATCHES == 0)
			KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &attempt.id), 0);
		attempt.key = i % 3 ? i : i / 2;
		attempt.all = i % 2;
		try_all_faults(test, &attempt);
		KUNIT_ASSERT_EQ(test, context->nr_watches, i + 1ULL);
		failed += attempt.failed;
	}
	KUNIT_EXPECT_TRUE(test, !failed || failed >= WATCHES);
	attempt.failed = failed;
	for (i = 0; i < WATCHES; i++)
		ended += signal(test, i, 0);
	KUNIT_EXPECT_EQ(test, ended, (unsigned int)EVENTS);
	KUNIT_EXPECT_EQ(test, nr_keys(context), 0);
	expect_faults(test, &attempt);
}

static int complete_one(struct kunit *test, const struct attempt *attempt)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_COMPLETE, .id = attempt->id };
	int ret = run(test, &cmd);

	if (query(test, attempt->id) != (ret ? TWHEEL_ARMED : TWHEEL_READY))
		return -EIO;
	return ret;
}

/* An event with a word keeps its index in memory that it has to allocate. */
static void failing_complete_leaves_the_event_with_its_word(struct kunit *test)
{
	enum { NR = 20 };
	struct context *context = test->priv;
	struct attempt attempt = { .run = complete_one };
	unsigned int i, failed = 0;

	KUNIT_ASSERT_EQ(test, configure_deadlines(test, NR), 0);
	for (i = 0; i < NR; i++) {
		struct twheel_record record;

		store(test, i, BIT_ULL(63));
		KUNIT_ASSERT_EQ(test, add_deadline(test, i, 0, &attempt.id), 0);
		attempt.all = i % 2;
		store(test, i, BIT_ULL(63) + i);
		try_all_faults(test, &attempt);
		failed += attempt.failed;
		KUNIT_EXPECT_EQ(test, event_deadline(event_find(&context->events,
								attempt.id)), i);
		read_record(test, &record, CONTEXT_NONBLOCK);
		KUNIT_EXPECT_EQ(test, record.id, attempt.id);
		KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_COMPLETED);
		KUNIT_EXPECT_EQ(test, record.due_ns, BIT_ULL(63) + i);
	}
	/* At least one failure for each. */
	KUNIT_EXPECT_TRUE(test, !failed || failed >= NR);
	KUNIT_EXPECT_EQ(test, context->counts.completed, (u64)NR);
	attempt.failed = failed;
	expect_faults(test, &attempt);
}

/* COMPLETE needs memory only for a periodic event and for one with a word. */
static void failing_complete_leaves_the_event_armed(struct kunit *test)
{
	enum { NR = 20 };
	struct context *context = test->priv;
	struct attempt attempt = { .run = complete_one };
	unsigned int i, failed = 0;

	for (i = 0; i < NR; i++) {
		struct twheel_record record;
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.time_ns = HOUR_NS,
			.interval_ns = HOUR_NS,
		};

		KUNIT_ASSERT_EQ(test, run(test, &cmd), 0);
		attempt.all = i % 2;
		attempt.id = cmd.id;
		try_all_faults(test, &attempt);
		failed += attempt.failed;
		read_record(test, &record, CONTEXT_NONBLOCK);
		KUNIT_EXPECT_EQ(test, record.id, attempt.id);
		KUNIT_EXPECT_EQ(test, record.reason, (u32)TWHEEL_COMPLETED);
	}
	KUNIT_EXPECT_EQ(test, context->counts.completed, (u64)NR);
	attempt.failed = failed;
	expect_faults(test, &attempt);
}

static int add_with_quorum(struct kunit *test, const struct attempt *attempt)
{
	struct context *context = test->priv;
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.time_ns = HOUR_NS,
		.quorum = 2,
	};
	u64 added = context->counts.added;
	int ret = run(test, &cmd);

	if (ret && (context->counts.added != added || cmd.id))
		return -EIO;
	return ret;
}

static void failing_add_with_a_quorum_changes_nothing(struct kunit *test)
{
	enum { NR = 2 * EVENT_PAGE_EVENTS };
	struct context *context = test->priv;
	struct attempt attempt = { .run = add_with_quorum };
	unsigned int i, failed = 0;

	for (i = 1; i <= NR; i++) {
		attempt.all = i % 2;
		try_all_faults(test, &attempt);
		KUNIT_ASSERT_EQ(test, context->counts.added, (u64)i);
		failed += attempt.failed;
	}
	KUNIT_EXPECT_TRUE(test, !failed || failed >= NR);
	attempt.failed = failed;
	expect_faults(test, &attempt);
}

/* A call that ends operations must not need memory. */
static void signals_and_completions_need_no_memory(struct kunit *test)
{
	enum { FAULTS = 20 };
	struct attempt watch = { .run = watch_one };
	struct attempt complete = { .run = complete_one };
	struct context *context = test->priv;
	unsigned int nth;

	for (nth = 1; nth <= FAULTS; nth++) {
		struct twheel_record record;
		int answers[5];

		KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &complete.id), 0);
		for (watch.key = 1; watch.key <= 2; watch.key++) {
			KUNIT_ASSERT_EQ(test, add(test, HOUR_NS, &watch.id), 0);
			KUNIT_ASSERT_EQ(test, watch_one(test, &watch), 0);
		}
		fault_begin(nth, nth % 2);
		answers[0] = signal(test, 1, 0);
		answers[1] = signal(test, 2, TWHEEL_QUIET);
		answers[2] = read_records(test, &record, 1, CONTEXT_NONBLOCK);
		answers[3] = complete_one(test, &complete);
		answers[4] = cancel(test, complete.id);
		fault_end();
		KUNIT_ASSERT_EQ(test, answers[0], 1);
		KUNIT_ASSERT_EQ(test, answers[1], 1);
		KUNIT_ASSERT_EQ(test, answers[2], (int)sizeof(record));
		KUNIT_ASSERT_EQ(test, record.key, 1ULL);
		KUNIT_ASSERT_EQ(test, answers[3], 0);
		KUNIT_ASSERT_EQ(test, answers[4], 0);
		KUNIT_ASSERT_EQ(test, context->nr_watches, 0ULL);
		KUNIT_ASSERT_EQ(test, nr_keys(context), 0);
	}
}

static int wait_for_keys(struct kunit *test, const struct attempt *attempt)
{
	struct twheel_operation *operation = &attempt->tally->operation;
	u64 keys[8];
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		keys[i] = attempt->key + i;
	ret = twheel_try_complete_else_watch(operation, keys, ARRAY_SIZE(keys),
					     HOUR_NS, 0, TWHEEL_TIMER_REL);
	/* The operation does not wait, and the last one before it still does. */
	if (ret && (twheel_timer_pending(&operation->timer) ||
		    operation->watcher.nr_watches ||
		    watched_keys(operation->registry) != attempt->key))
		return -EIO;
	return ret;
}

static void end_wait(struct kunit *test, const struct attempt *attempt)
{
	struct twheel_operation *operation = &attempt->tally->operation;

	KUNIT_ASSERT_TRUE(test, twheel_operation_cancel_sync(operation));
	tally_init(attempt->tally, operation->registry);
}

static void failing_wait_of_a_module_s_operation_watches_nothing(struct kunit *test)
{
	/*
	 * A watch and a key for each of 8.  A few of them may be passed over, since debugging
	 * aids allocate more in one attempt than in the next.
	 */
	enum { NR = 40, ALLOCATIONS = 16 };
	struct tally *tallies = kunit_kcalloc(test, NR, sizeof(*tallies), GFP_KERNEL);
	struct attempt attempt = { .run = wait_for_keys, .undo = end_wait };
	struct twheel_registry *registry = kunit_kzalloc(test, sizeof(*registry),
							 GFP_KERNEL);
	unsigned int i, failed = 0, ended = 0;

	KUNIT_ASSERT_NOT_NULL(test, tallies);
	KUNIT_ASSERT_NOT_NULL(test, registry);
	KUNIT_ASSERT_EQ(test, twheel_registry_init(registry), 0);
	for (i = 0; i < NR; i++) {
		attempt.tally = &tallies[i];
		attempt.key = i * 8;
		attempt.all = i % 2;
		tally_init(&tallies[i], registry);
		try_all_faults(test, &attempt);
		KUNIT_EXPECT_TRUE(test, !attempt.failed || attempt.failed >= ALLOCATIONS / 2);
		failed += attempt.failed;
	}
	for (i = 0; i < NR; i++) {
		KUNIT_EXPECT_EQ(test, tally_calls(&tallies[i]), 0);
		tallies[i].holds = true;
		fault_begin(i + 1, i % 2);
		ended += twheel_check_and_complete(registry, i * 8 + 7);
		fault_end();
	}
	KUNIT_EXPECT_EQ(test, ended, (unsigned int)NR);
	twheel_registry_destroy(registry);
	KUNIT_EXPECT_TRUE(test, !failed || failed >= NR * ALLOCATIONS);
	attempt.failed = failed;
	expect_faults(test, &attempt);
}

static struct kunit_case fault_cases[] = {
	KUNIT_CASE(failing_first_use_of_a_clock_leaves_the_context_as_it_was),
	KUNIT_CASE(failing_open_leaves_nothing_behind),
	KUNIT_CASE(failing_add_changes_nothing),
	KUNIT_CASE(modify_cancel_query_and_read_need_no_memory),
	KUNIT_CASE(failing_config_leaves_the_words_as_they_were),
	KUNIT_CASE(failing_add_with_a_word_changes_nothing),
	KUNIT_CASE(failing_watch_attaches_nothing),
	KUNIT_CASE(failing_complete_leaves_the_event_armed),
	KUNIT_CASE(failing_complete_leaves_the_event_with_its_word),
	KUNIT_CASE(failing_add_with_a_quorum_changes_nothing),
	KUNIT_CASE(signals_and_completions_need_no_memory),
	KUNIT_CASE(failing_wait_of_a_module_s_operation_watches_nothing),
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
