// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the operations of other modules: what each call does and returns, from
 * task and softirq context, and what the owner's functions may do. operation_race_kunit.c
 * makes such calls on the same operations at the same time.
 *
 * The registry of a test is test->priv. If the test calls from a task, the functions are
 * called in that task with no lock held, and can be made to wait.
 */
#include <kunit/test.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "counter.h"
#include "patience.h"
#include "places.h"
#include "tally.h"

#define KEY		42
#define LINGER_US	300

static int operation_suite_init(struct kunit *test)
{
	struct twheel_registry *registry = kunit_kzalloc(test, sizeof(*registry),
							 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, registry);
	KUNIT_ASSERT_EQ(test, twheel_registry_init(registry), 0);
	test->priv = registry;
	return 0;
}

/* Warns if there are keys. */
static void operation_suite_exit(struct kunit *test)
{
	if (test->priv)
		twheel_registry_destroy(test->priv);
}

static struct tally *tallies_make(struct kunit *test, unsigned int nr)
{
	struct tally *tallies = kunit_kcalloc(test, nr, sizeof(*tallies), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, tallies);
	for (i = 0; i < nr; i++)
		tally_init(&tallies[i], test->priv);
	return tallies;
}

static struct tally *tally_make(struct kunit *test)
{
	return tallies_make(test, 1);
}

/* Let an operation wait until a time. */
static int watch_keys(struct tally *tally, const u64 *keys, unsigned int nr,
		      u64 delay_ns)
{
	return twheel_try_complete_else_watch(&tally->operation, keys, nr, delay_ns,
					      0, TWHEEL_TIMER_REL);
}

/* Let an operation wait for an hour, or until a check of KEY completes it. */
static int watch(struct tally *tally)
{
	static const u64 key = KEY;

	return watch_keys(tally, &key, 1, HOUR_NS);
}

static int check(struct kunit *test, u64 key)
{
	return twheel_check_and_complete(test->priv, key);
}

/* The operation does not wait any more, and its functions were called so often. */
static void expect_over(struct kunit *test, struct tally *tally, int asked,
			int completed, int expired)
{
	KUNIT_EXPECT_FALSE(test, twheel_operation_complete(&tally->operation));
	KUNIT_EXPECT_FALSE(test, twheel_operation_cancel_sync(&tally->operation));
	KUNIT_EXPECT_EQ(test, tally->operation.watcher.nr_watches, 0U);
	KUNIT_EXPECT_FALSE(test, twheel_timer_pending(&tally->operation.timer));
	KUNIT_EXPECT_EQ(test, atomic_read(&tally->asked), asked);
	KUNIT_EXPECT_EQ(test, atomic_read(&tally->completed), completed);
	KUNIT_EXPECT_EQ(test, atomic_read(&tally->expired), expired);
	KUNIT_EXPECT_EQ(test, atomic_read(&tally->inside), 0);
	KUNIT_EXPECT_FALSE(test, tally->overlapped);
}

/* --- places to call from ---------------------------------------------------- */

static void go_to_task_with_softirqs_off(struct errand *errand)
{
	local_bh_disable();
	errand_do(errand, in_task() && in_softirq());
	local_bh_enable();
}

/* A timer of the suite, whose function does the work. */
struct excursion {
	struct twheel_timer timer;
	struct errand *errand;
};

static void excursion_function(struct twheel_timer *timer)
{
	errand_do(container_of(timer, struct excursion, timer)->errand,
		  in_serving_softirq());
}

static void go_to_function_of_a_timer(struct errand *errand)
{
	struct excursion excursion = { .errand = errand };

	twheel_timer_setup(&excursion.timer, excursion_function);
	twheel_timer_arm(&excursion.timer, 0, 0, TWHEEL_TIMER_REL);
	wait_for_completion(&errand->done);
	twheel_timer_shutdown(&excursion.timer);
}

static const struct place places[] = {
	{ "task", go_to_task },
	{ "task with softirqs off", go_to_task_with_softirqs_off },
	{ "softirq", go_to_softirq },
	{ "function of a timer", go_to_function_of_a_timer },
};

KUNIT_ARRAY_PARAM(place, places, place_name);

/* --- what each call answers ------------------------------------------------- */

#define ANSWERS_MAX	16

/* Calls, and their results. */
struct usage {
	struct twheel_registry *registry;
	struct tally *tally;
	struct tally *other;
	int answers[ANSWERS_MAX];
};

/* Make the calls in that context, and compare the results. */
static void expect_answers(struct kunit *test, struct usage *usage,
			   void (*use)(void *data), const int *answers,
			   unsigned int nr)
{
	unsigned int i;

	usage->registry = test->priv;
	usage->tally = tally_make(test);
	usage->other = tally_make(test);
	do_there(test, use, usage);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ_MSG(test, usage->answers[i], answers[i],
				    "answer %u", i);
}

static void use_one_that_holds(void *data)
{
	struct usage *usage = data;
	struct tally *tally = usage->tally;
	int *answer = usage->answers;

	tally->holds = true;
	*answer++ = watch(tally);
	*answer++ = atomic_read(&tally->asked);
	*answer++ = atomic_read(&tally->completed);
	*answer++ = watched_keys(usage->registry);
	*answer++ = twheel_check_and_complete(usage->registry, KEY);
	*answer++ = twheel_operation_complete(&tally->operation);
}

static void operation_that_holds_is_completed_at_once(struct kunit *test)
{
	static const int answers[] = { 1, 1, 1, 0, 0, 0 };
	struct usage usage;

	expect_answers(test, &usage, use_one_that_holds, answers,
		       ARRAY_SIZE(answers));
	expect_over(test, usage.tally, 1, 1, 0);
}

static void use_one_that_holds_when_it_watches(void *data)
{
	struct usage *usage = data;
	struct tally *tally = usage->tally;
	int *answer = usage->answers;

	tally->holds = true;
	tally->refusals = 1;
	*answer++ = watch(tally);
	*answer++ = atomic_read(&tally->asked);
	*answer++ = atomic_read(&tally->completed);
	*answer++ = watched_keys(usage->registry);
	*answer++ = twheel_check_and_complete(usage->registry, KEY);
}

static void operation_is_asked_again_after_it_watches(struct kunit *test)
{
	static const int answers[] = { 1, 2, 1, 0, 0 };
	struct usage usage;

	expect_answers(test, &usage, use_one_that_holds_when_it_watches, answers,
		       ARRAY_SIZE(answers));
	expect_over(test, usage.tally, 2, 1, 0);
}

static void use_one_that_waits(void *data)
{
	struct usage *usage = data;
	struct tally *tally = usage->tally;
	int *answer = usage->answers;

	*answer++ = watch(tally);
	*answer++ = watch(tally);
	*answer++ = watched_keys(usage->registry);
	*answer++ = twheel_check_and_complete(usage->registry, KEY);
	*answer++ = twheel_check_and_complete(usage->registry, KEY + 1);
	*answer++ = tally_calls(tally);
	tally->holds = true;
	*answer++ = twheel_check_and_complete(usage->registry, KEY + 1);
	*answer++ = twheel_check_and_complete(usage->registry, KEY);
	*answer++ = atomic_read(&tally->completed);
	*answer++ = twheel_check_and_complete(usage->registry, KEY);
	*answer++ = watched_keys(usage->registry);
}

static void check_of_its_key_completes_an_operation_that_holds(struct kunit *test)
{
	static const int answers[] = { 0, -EBUSY, 1, 0, 0, 0, 0, 1, 1, 0, 0 };
	struct usage usage;

	expect_answers(test, &usage, use_one_that_waits, answers,
		       ARRAY_SIZE(answers));
	expect_over(test, usage.tally, 4, 1, 0);
}

static void use_one_that_is_forced(void *data)
{
	struct usage *usage = data;
	struct tally *tally = usage->tally;
	int *answer = usage->answers;

	*answer++ = twheel_operation_complete(&tally->operation);
	*answer++ = watch(tally);
	*answer++ = twheel_operation_complete(&tally->operation);
	*answer++ = atomic_read(&tally->completed);
	*answer++ = twheel_operation_complete(&tally->operation);
	*answer++ = twheel_check_and_complete(usage->registry, KEY);
	*answer++ = watched_keys(usage->registry);
	*answer++ = watch(tally);
	*answer++ = twheel_operation_complete(&tally->operation);
	*answer++ = atomic_read(&tally->completed);
}

static void operation_can_be_completed_whatever_it_waits_for(struct kunit *test)
{
	static const int answers[] = { 0, 0, 1, 1, 0, 0, 0, 0, 1, 2 };
	struct usage usage;

	expect_answers(test, &usage, use_one_that_is_forced, answers,
		       ARRAY_SIZE(answers));
	expect_over(test, usage.tally, 4, 2, 0);
}

static void use_wrongly(void *data)
{
	struct usage *usage = data;
	struct twheel_operation *operation = &usage->tally->operation;
	u64 keys[TWHEEL_OPERATION_KEYS + 1] = {};
	int *answer = usage->answers;

	*answer++ = twheel_try_complete_else_watch(operation, keys, ARRAY_SIZE(keys),
						   0, 0, TWHEEL_TIMER_REL);
	*answer++ = twheel_try_complete_else_watch(operation, keys, UINT_MAX, 0, 0,
						   TWHEEL_TIMER_REL);
	*answer++ = twheel_try_complete_else_watch(operation, keys, 1, 0, 0, 2);
	*answer++ = twheel_try_complete_else_watch(operation, keys, 1, 0, 0,
						   TWHEEL_TIMER_ABS | BIT(31));
	*answer++ = atomic_read(&usage->tally->asked);
	*answer++ = watched_keys(usage->registry);
	*answer++ = twheel_operation_complete(operation);
}

static void what_is_malformed_is_refused_before_anything_is_asked(struct kunit *test)
{
	static const int answers[] = {
		-EINVAL, -EINVAL, -EINVAL, -EINVAL, 0, 0, 0
	};
	struct usage usage;

	expect_answers(test, &usage, use_wrongly, answers, ARRAY_SIZE(answers));
	expect_over(test, usage.tally, 0, 0, 0);
}

/* --- keys ------------------------------------------------------------------- */

static void operation_is_completed_by_a_check_of_any_of_its_keys(struct kunit *test)
{
	u64 keys[TWHEEL_OPERATION_KEYS];
	struct tally *tally = tally_make(test);
	unsigned int i;

	/* Adjacent keys, and keys that differ in the upper half alone. */
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		keys[i] = i % 2 ? i : (u64)i << 32;
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		tally->holds = false;
		KUNIT_ASSERT_EQ(test, watch_keys(tally, keys, ARRAY_SIZE(keys),
						 HOUR_NS), 0);
		KUNIT_EXPECT_EQ(test, watched_keys(test->priv), (int)ARRAY_SIZE(keys));
		tally->holds = true;
		KUNIT_EXPECT_EQ(test, check(test, 1ULL << 63), 0);
		KUNIT_EXPECT_EQ(test, check(test, keys[i]), 1);
		KUNIT_EXPECT_EQ(test, watched_keys(test->priv), 0);
	}
	expect_over(test, tally, 3 * i, i, 0);
}

static void operation_may_watch_a_key_twice(struct kunit *test)
{
	static const u64 keys[] = { KEY, KEY + 1, KEY };
	struct tally *tally = tally_make(test);
	int asked;

	KUNIT_EXPECT_EQ(test, watch_keys(tally, keys, ARRAY_SIZE(keys), HOUR_NS), 0);
	KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
	asked = atomic_read(&tally->asked);
	KUNIT_EXPECT_GE(test, asked, 3);
	tally->holds = true;
	KUNIT_EXPECT_EQ(test, check(test, KEY), 1);
	expect_over(test, tally, asked + 1, 1, 0);
}

static void operation_without_keys_waits_for_its_time(struct kunit *test)
{
	struct tally *tally = tally_make(test);
	u64 before_ns = ktime_get_ns();

	KUNIT_EXPECT_EQ(test, watch_keys(tally, NULL, 0, NSEC_PER_MSEC), 0);
	wait_for_completion(&tally->ended);
	KUNIT_EXPECT_GE(test, tally->at_ns, before_ns + NSEC_PER_MSEC);
	expect_over(test, tally, 2, 0, 1);

	KUNIT_EXPECT_EQ(test, watch_keys(tally, NULL, 0, HOUR_NS), 0);
	KUNIT_EXPECT_TRUE(test, twheel_operation_complete(&tally->operation));
	expect_over(test, tally, 4, 1, 1);
}

/* --- time ------------------------------------------------------------------- */

/* An operation and how long it waits. */
struct wait {
	struct tally *tally;
	u64 time_ns;
	u64 slack_ns;
	unsigned int flags;
	u64 due_ns;
	int ret;
};

static void begin_wait(void *data)
{
	static const u64 keys[] = { KEY, KEY + 1 };
	struct wait *wait = data;

	wait->due_ns = ktime_get_ns() + wait->time_ns;
	if (wait->flags & TWHEEL_TIMER_ABS)
		wait->time_ns = wait->due_ns;
	wait->ret = twheel_try_complete_else_watch(&wait->tally->operation, keys, 2,
						   wait->time_ns, wait->slack_ns,
						   wait->flags);
}

static void operation_expires_once_and_never_early(struct kunit *test)
{
	static const u64 times_ns[] = { 0, 1, 65536, NSEC_PER_MSEC,
					20 * NSEC_PER_MSEC };
	static const u64 slacks_ns[] = { 0, 100, NSEC_PER_MSEC };
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(times_ns) * ARRAY_SIZE(slacks_ns); i++) {
		struct wait wait = {
			.tally = tally_make(test),
			.time_ns = times_ns[i / 2 % ARRAY_SIZE(times_ns)],
			.slack_ns = slacks_ns[i / 2 / ARRAY_SIZE(times_ns)],
			.flags = i % 2 ? TWHEEL_TIMER_ABS : TWHEEL_TIMER_REL,
		};

		do_there(test, begin_wait, &wait);
		KUNIT_EXPECT_EQ(test, wait.ret, 0);
		wait_for_completion(&wait.tally->ended);
		KUNIT_EXPECT_GE(test, wait.tally->at_ns, wait.due_ns);
		wait.tally->holds = true;
		KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
		expect_over(test, wait.tally, atomic_read(&wait.tally->asked), 0, 1);
		KUNIT_EXPECT_EQ(test, watched_keys(test->priv), 0);
	}
}

static void time_that_has_passed_expires_an_operation_that_does_not_hold(struct kunit *test)
{
	struct tally *tally = tally_make(test);
	unsigned int holds;

	for (holds = 0; holds < 2; holds++) {
		int ret;

		tally->holds = holds;
		ret = twheel_try_complete_else_watch(&tally->operation, NULL, 0, 1, 0,
						     TWHEEL_TIMER_ABS);
		KUNIT_EXPECT_EQ(test, ret, (int)holds);
		wait_for_completion(&tally->ended);
		expect_over(test, tally, atomic_read(&tally->asked), holds, 1);
	}
}

/*
 * Begin two operations that are due at the same time, one after the other; return that
 * time.
 */
static u64 begin_two_waits(struct tally *tallies, u64 lead_ns)
{
	u64 due_ns = ktime_get_ns() + lead_ns;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct wait wait = { .tally = &tallies[i], .time_ns = lead_ns };

		begin_wait(&wait);
	}
	return due_ns;
}

static bool complete_in_time(struct kunit *test, u64 lead_ns)
{
	struct tally *tallies = tallies_make(test, 2);
	bool completed, in_time;
	u64 due_ns;

	migrate_disable();
	due_ns = begin_two_waits(tallies, lead_ns);
	completed = twheel_operation_complete(&tallies[0].operation);
	in_time = ktime_get_ns() < due_ns;
	migrate_enable();
	wait_for_completion(&tallies[0].ended);
	wait_for_completion(&tallies[1].ended);
	if (!in_time)
		return false;
	KUNIT_EXPECT_TRUE(test, completed);
	expect_over(test, &tallies[0], 2, 1, 0);
	expect_over(test, &tallies[1], 2, 0, 1);
	return true;
}

static void completed_operation_does_not_expire(struct kunit *test)
{
	attempt_in_time(test, 200 * NSEC_PER_MSEC, complete_in_time);
}

static bool cancel_in_time(struct kunit *test, u64 lead_ns)
{
	struct tally *tallies = tallies_make(test, 2);
	bool cancelled, in_time;
	int completed;
	u64 due_ns;

	migrate_disable();
	due_ns = begin_two_waits(tallies, lead_ns);
	migrate_enable();
	cancelled = twheel_operation_cancel_sync(&tallies[0].operation);
	tallies[0].holds = true;
	completed = check(test, KEY);
	in_time = ktime_get_ns() < due_ns;
	wait_for_completion(&tallies[1].ended);
	if (!in_time)
		return false;
	KUNIT_EXPECT_TRUE(test, cancelled);
	KUNIT_EXPECT_EQ(test, completed, 0);
	expect_over(test, &tallies[0], 2, 0, 0);
	expect_over(test, &tallies[1], 3, 0, 1);
	return true;
}

static void cancelled_operation_is_not_called(struct kunit *test)
{
	struct tally *tally = tally_make(test);

	KUNIT_EXPECT_FALSE(test, twheel_operation_cancel_sync(&tally->operation));
	attempt_in_time(test, 200 * NSEC_PER_MSEC, cancel_in_time);
}

/* --- checks of many --------------------------------------------------------- */

static void check_counts_what_it_ended(struct kunit *test)
{
	enum { NR = 100 };
	struct tally *tallies = tallies_make(test, NR);
	unsigned int i;

	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, watch(&tallies[i]), 0);
	for (i = 0; i < NR; i += 3)
		tallies[i].holds = true;
	KUNIT_EXPECT_EQ(test, check(test, KEY), DIV_ROUND_UP(NR, 3));
	for (i = 0; i < NR; i++) {
		KUNIT_EXPECT_EQ(test, atomic_read(&tallies[i].asked), 3);
		KUNIT_EXPECT_EQ(test, tally_calls(&tallies[i]), i % 3 ? 0 : 1);
		tallies[i].holds = true;
	}
	KUNIT_EXPECT_EQ(test, check(test, KEY), NR - DIV_ROUND_UP(NR, 3));
	for (i = 0; i < NR; i++)
		expect_over(test, &tallies[i], i % 3 ? 4 : 3, 1, 0);
}

/* Records the order in which the operations are asked. */
struct parade {
	struct tally *tallies;
	unsigned int *order;
	unsigned int nr;
};

static void note_order(struct tally *tally)
{
	struct parade *parade = tally->data;

	parade->order[parade->nr++] = tally - parade->tallies;
}

static void check_asks_each_once_in_the_order_in_which_they_came(struct kunit *test)
{
	enum { NR = 5000, CHECKS = 3 };
	struct parade parade = {
		.tallies = kvcalloc(NR, sizeof(*parade.tallies), GFP_KERNEL),
		.order = kvcalloc(CHECKS * NR, sizeof(*parade.order), GFP_KERNEL),
	};
	unsigned int i, wrong = 0;

	KUNIT_ASSERT_NOT_NULL(test, parade.tallies);
	KUNIT_ASSERT_NOT_NULL(test, parade.order);
	for (i = 0; i < NR; i++) {
		struct tally *tally = &parade.tallies[i];

		tally_init(tally, test->priv);
		wrong += watch(tally) != 0;
		tally->ask = note_order;
		tally->data = &parade;
		tally->refusals = CHECKS - 1;
		tally->holds = true;
	}
	for (i = 1; i < CHECKS; i++)
		KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
	KUNIT_EXPECT_EQ(test, check(test, KEY), NR);
	KUNIT_EXPECT_EQ(test, parade.nr, (unsigned int)CHECKS * NR);
	for (i = 0; i < parade.nr; i++)
		wrong += parade.order[i] != i % NR;
	for (i = 0; i < NR; i++)
		wrong += atomic_read(&parade.tallies[i].completed) != 1;
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	KUNIT_EXPECT_EQ(test, watched_keys(test->priv), 0);
	kvfree(parade.order);
	kvfree(parade.tallies);
}

/* Lets the next operation, its neighbour in an array, watch the same key. */
static void let_another_one_in(struct tally *tally)
{
	tally->ask = NULL;
	watch(tally + 1);
}

/* If they were part of the check, it would end only after the last one. */
static void operations_that_join_during_a_check_are_no_part_of_it(struct kunit *test)
{
	enum { NR = 1000 };
	struct tally *tallies = kvcalloc(2 * NR, sizeof(*tallies), GFP_KERNEL);
	unsigned int i, wrong = 0;

	KUNIT_ASSERT_NOT_NULL(test, tallies);
	for (i = 0; i < 2 * NR; i++)
		tally_init(&tallies[i], test->priv);
	for (i = 0; i < 2 * NR; i += 2) {
		wrong += watch(&tallies[i]) != 0;
		tallies[i].ask = let_another_one_in;
	}
	KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
	for (i = 0; i < 2 * NR; i++) {
		/* watch() itself asks each operation twice. */
		wrong += atomic_read(&tallies[i].asked) != (i % 2 ? 2 : 3);
		tallies[i].holds = true;
	}
	KUNIT_EXPECT_EQ(test, check(test, KEY), 2 * NR);
	for (i = 0; i < 2 * NR; i++)
		wrong += atomic_read(&tallies[i].completed) != 1;
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	kvfree(tallies);
}

/* Each lets the next one watch, as long as the check goes on. */
static void check_ends_though_each_one_it_asks_lets_another_one_in(struct kunit *test)
{
	enum { NR = 50 };
	struct tally *tallies = tallies_make(test, NR + 1);
	unsigned int i, waiting = 0;

	KUNIT_EXPECT_EQ(test, watch(&tallies[0]), 0);
	for (i = 0; i < NR; i++)
		tallies[i].ask = let_another_one_in;
	/* The first call for each already goes down the whole chain. */
	KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
	for (i = 0; i <= NR; i++)
		waiting += twheel_operation_cancel_sync(&tallies[i].operation);
	KUNIT_EXPECT_EQ(test, waiting, NR + 1U);
}

/* --- what the owner's functions may do -------------------------------------- */

static void watch_again(struct tally *tally)
{
	unsigned int *left = tally->data;

	if (!*left)
		return;
	--*left;
	tally->holds = false;
	if (watch(tally))
		*left = UINT_MAX;
}

static void operation_may_watch_again_when_it_completes(struct kunit *test)
{
	enum { NR = 50, AGAIN = 20 };
	struct tally *tallies = tallies_make(test, NR);
	unsigned int left[NR], i, round;

	for (i = 0; i < NR; i++) {
		left[i] = AGAIN;
		tallies[i].data = &left[i];
		tallies[i].end = watch_again;
		KUNIT_ASSERT_EQ(test, watch(&tallies[i]), 0);
	}
	for (round = 0; round <= AGAIN; round++) {
		for (i = 0; i < NR; i++)
			tallies[i].holds = true;
		/* Operations that watch again are not part of the check. */
		KUNIT_ASSERT_EQ(test, check(test, KEY), NR);
	}
	for (i = 0; i < NR; i++) {
		KUNIT_EXPECT_EQ(test, left[i], 0U);
		expect_over(test, &tallies[i], 3 * (AGAIN + 1), AGAIN + 1, 0);
	}
}

static void watch_again_for_a_moment(struct tally *tally)
{
	static const u64 key = KEY;
	unsigned int *left = tally->data;

	if (!*left)
		return;
	--*left;
	watch_keys(tally, &key, 1, *left * 50000);
}

static void operation_may_watch_again_when_it_expires(struct kunit *test)
{
	enum { AGAIN = 20 };
	struct tally *tally = tally_make(test);
	unsigned int left = AGAIN, i;

	tally->data = &left;
	tally->end = watch_again_for_a_moment;
	KUNIT_EXPECT_EQ(test, watch_keys(tally, NULL, 0, 0), 0);
	for (i = 0; i <= AGAIN; i++)
		wait_for_completion(&tally->ended);
	expect_over(test, tally, atomic_read(&tally->asked), 0, AGAIN + 1);
	KUNIT_EXPECT_EQ(test, left, 0U);
}

/* An operation that lives for one wait. */
struct mayfly {
	struct twheel_operation operation;
	struct completion *died;
	bool holds;
};

static bool mayfly_try_complete(struct twheel_operation *operation)
{
	return READ_ONCE(container_of(operation, struct mayfly, operation)->holds);
}

static void mayfly_die(struct twheel_operation *operation)
{
	struct mayfly *mayfly = container_of(operation, struct mayfly, operation);
	struct completion *died = mayfly->died;

	memset(mayfly, 0x5a, sizeof(*mayfly));
	kfree(mayfly);
	complete(died);
}

static const struct twheel_operation_ops mayfly_ops = {
	.try_complete = mayfly_try_complete,
	.on_complete = mayfly_die,
	.on_expiration = mayfly_die,
};

static struct mayfly *mayfly_make(struct kunit *test, struct completion *died)
{
	struct mayfly *mayfly = kzalloc(sizeof(*mayfly), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mayfly);
	mayfly->died = died;
	twheel_operation_setup(&mayfly->operation, test->priv, &mayfly_ops);
	return mayfly;
}

static int mayfly_watch(struct mayfly *mayfly, u64 delay_ns)
{
	static const u64 keys[] = { KEY, KEY + 1, KEY };

	return twheel_try_complete_else_watch(&mayfly->operation, keys,
					      ARRAY_SIZE(keys), delay_ns, 0,
					      TWHEEL_TIMER_REL);
}

static void operation_may_be_freed_when_it_completes(struct kunit *test)
{
	enum { NR = 100 };
	DECLARE_COMPLETION_ONSTACK(died);
	struct mayfly *mayfly;
	unsigned int i;

	/* Completed at once, by force, and by a check of many. */
	mayfly = mayfly_make(test, &died);
	mayfly->holds = true;
	KUNIT_EXPECT_EQ(test, mayfly_watch(mayfly, HOUR_NS), 1);
	mayfly = mayfly_make(test, &died);
	KUNIT_EXPECT_EQ(test, mayfly_watch(mayfly, HOUR_NS), 0);
	KUNIT_EXPECT_TRUE(test, twheel_operation_complete(&mayfly->operation));
	for (i = 0; i < NR; i++) {
		mayfly = mayfly_make(test, &died);
		KUNIT_ASSERT_EQ(test, mayfly_watch(mayfly, HOUR_NS), 0);
		mayfly->holds = true;
	}
	KUNIT_EXPECT_EQ(test, check(test, KEY), NR);
	for (i = 0; i < NR + 2; i++)
		wait_for_completion(&died);
	KUNIT_EXPECT_EQ(test, watched_keys(test->priv), 0);
}

static void operation_may_be_freed_when_it_expires(struct kunit *test)
{
	enum { NR = 100 };
	DECLARE_COMPLETION_ONSTACK(died);
	unsigned int i;

	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, mayfly_watch(mayfly_make(test, &died),
						   i * 10000), 0);
	for (i = 0; i < NR; i++)
		wait_for_completion(&died);
	KUNIT_EXPECT_EQ(test, watched_keys(test->priv), 0);
}

static void complete_itself(struct tally *tally)
{
	int *answers = tally->data;

	if (atomic_read(&tally->asked) < 3)
		return;
	answers[0] = watch(tally);
	answers[1] = twheel_operation_complete(&tally->operation);
	answers[2] = twheel_operation_complete(&tally->operation);
	answers[3] = atomic_read(&tally->completed);
}

/*
 * The call that began the wait and the call that completed it have a result each: the
 * completion counts for the latter.
 */
static void operation_may_be_completed_while_it_is_asked(struct kunit *test)
{
	struct tally *tally = tally_make(test);
	int answers[4];

	tally->ask = complete_itself;
	tally->data = answers;
	KUNIT_EXPECT_EQ(test, watch(tally), 0);
	tally->holds = true;
	KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
	KUNIT_EXPECT_EQ(test, answers[0], -EBUSY);
	KUNIT_EXPECT_EQ(test, answers[1], 1);
	KUNIT_EXPECT_EQ(test, answers[2], 0);
	KUNIT_EXPECT_EQ(test, answers[3], 0);
	expect_over(test, tally, 3, 1, 0);
}

/*
 * When one ends, it ends its neighbour too, by a check or by twheel_operation_complete().
 */
static void end_the_next_one(struct tally *tally)
{
	struct tally *next = tally + 1;

	next->holds = true;
	if (tally->data)
		twheel_check_and_complete(tally->operation.registry, KEY);
	else
		twheel_operation_complete(&next->operation);
}

static void operation_may_complete_others_when_it_completes(struct kunit *test)
{
	enum { NR = 8 };
	struct tally *tallies = tallies_make(test, NR);
	unsigned int i, by_check;

	for (by_check = 0; by_check < 2; by_check++) {
		for (i = 0; i < NR; i++) {
			tally_init(&tallies[i], test->priv);
			tallies[i].holds = false;
			tallies[i].data = by_check ? tallies : NULL;
			tallies[i].end = i + 1 < NR ? end_the_next_one : NULL;
			KUNIT_ASSERT_EQ(test, watch(&tallies[i]), 0);
		}
		tallies[0].holds = true;
		KUNIT_EXPECT_GE(test, check(test, KEY), 1);
		for (i = 0; i < NR; i++)
			expect_over(test, &tallies[i],
				    atomic_read(&tallies[i].asked), by_check + 1, 0);
	}
	KUNIT_EXPECT_EQ(test, watched_keys(test->priv), 0);
}

/* --- two at once ------------------------------------------------------------ */

/* A second task that makes a call while the test does something else. */
struct aide {
	void (*work)(struct aide *aide);
	struct tally *tally;
	int ret;
	bool quiet;		/* no function was running when it returned */
	bool returned;
	struct task_struct *task;
	struct completion done;
};

static int aide_thread(void *data)
{
	struct aide *aide = data;

	aide->work(aide);
	aide->quiet = !atomic_read(&aide->tally->inside);
	WRITE_ONCE(aide->returned, true);
	kthread_complete_and_exit(&aide->done, 0);
}

static void aide_start(struct kunit *test, struct aide *aide)
{
	init_completion(&aide->done);
	aide->task = kthread_run(aide_thread, aide, "twheel-aide");
	KUNIT_ASSERT_FALSE(test, IS_ERR(aide->task));
}

static void watch_it(struct aide *aide)
{
	aide->ret = watch(aide->tally);
}

static void check_it(struct aide *aide)
{
	aide->ret = twheel_check_and_complete(aide->tally->operation.registry, KEY);
}

static void force_it(struct aide *aide)
{
	aide->ret = twheel_operation_complete(&aide->tally->operation);
}

static void cancel_it(struct aide *aide)
{
	aide->ret = twheel_operation_cancel_sync(&aide->tally->operation);
}

/* A gate: a function waits at it until the test opens it. */
struct gate {
	struct completion arrived;
	struct completion open;
	unsigned int calls;	/* number of calls before the one that waits */
};

static void wait_at_gate(struct tally *tally)
{
	struct gate *gate = tally->data;

	if (gate->calls--)
		return;
	complete(&gate->arrived);
	wait_for_completion(&gate->open);
}

static void gate_init(struct gate *gate, unsigned int calls)
{
	init_completion(&gate->arrived);
	init_completion(&gate->open);
	gate->calls = calls;
}

/* Wait until so many tasks wait for calls of the registry to end. */
static void wait_for_waiters(struct kunit *test, unsigned int nr)
{
	struct wait_queue_head *queue = &((struct twheel_registry *)test->priv)->quiet;
	struct list_head *entry;
	unsigned int there;

	do {
		cond_resched();
		there = 0;
		spin_lock_irq(&queue->lock);
		list_for_each(entry, &queue->head)
			there++;
		spin_unlock_irq(&queue->lock);
	} while (there < nr);
}

/*
 * Contexts in which a task calls try_complete(): when the operation begins to wait, after
 * it has begun to watch, or in a check.
 */
static const struct asking {
	const char *name;
	void (*work)(struct aide *aide);
	unsigned int calls;
} askings[] = {
	{ "when it watches", watch_it, 1 },
	{ "in a check", check_it, 0 },
	{ "before it watches", watch_it, 0 },
};

static void asking_name(const struct asking *asking, char *name)
{
	strscpy(name, asking->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(asking, askings, asking_name);

static struct tally *begin_asking(struct kunit *test, struct aide *asker,
				  struct gate *gate)
{
	const struct asking *asking = test->param_value;
	struct tally *tally = tally_make(test);

	if (asking->work == check_it)
		watch(tally);
	gate_init(gate, asking->calls);
	tally->ask = wait_at_gate;
	tally->data = gate;
	*asker = (struct aide){ .work = asking->work, .tally = tally };
	aide_start(test, asker);
	wait_for_completion(&gate->arrived);
	tally->ask = NULL;
	return tally;
}

/* Number of calls of try_complete() up to the gate, including the one at the gate. */
static int asked_by_then(struct kunit *test)
{
	const struct asking *asking = test->param_value;

	return asking->work == check_it ? 3 : asking->calls + 1;
}

/* --- two at once, one in try_complete --------------------------------------- */

/* If try_complete() returns true, that counts. */
static void cancel_sync_waits_for_try_complete(struct kunit *test)
{
	unsigned int holds;

	for (holds = 0; holds < 2; holds++) {
		struct aide asker, canceller;
		struct gate gate;
		struct tally *tally = begin_asking(test, &asker, &gate);

		tally->holds = holds;
		canceller = (struct aide){ .work = cancel_it, .tally = tally };
		aide_start(test, &canceller);
		wait_for_waiters(test, 1);
		KUNIT_EXPECT_FALSE(test, READ_ONCE(canceller.returned));
		KUNIT_EXPECT_EQ(test, watch(tally), -EBUSY);
		KUNIT_EXPECT_FALSE(test, twheel_operation_complete(&tally->operation));
		KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
		complete(&gate.open);
		wait_for_completion(&canceller.done);
		wait_for_completion(&asker.done);
		KUNIT_EXPECT_EQ(test, canceller.ret, !holds);
		KUNIT_EXPECT_TRUE(test, canceller.quiet);
		KUNIT_EXPECT_EQ(test, asker.ret, (int)holds);
		expect_over(test, tally, asked_by_then(test), holds, 0);
		KUNIT_EXPECT_EQ(test, watched_keys(test->priv), 0);
	}
}

static void one_of_two_that_cancel_during_try_complete_has_done_it(struct kunit *test)
{
	struct aide asker, cancellers[2];
	struct gate gate;
	struct tally *tally = begin_asking(test, &asker, &gate);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		cancellers[i] = (struct aide){ .work = cancel_it, .tally = tally };
		aide_start(test, &cancellers[i]);
	}
	wait_for_waiters(test, 2);
	complete(&gate.open);
	for (i = 0; i < 2; i++) {
		wait_for_completion(&cancellers[i].done);
		KUNIT_EXPECT_TRUE(test, cancellers[i].quiet);
	}
	wait_for_completion(&asker.done);
	KUNIT_EXPECT_EQ(test, cancellers[0].ret + cancellers[1].ret, 1);
	KUNIT_EXPECT_EQ(test, asker.ret, 0);
	expect_over(test, tally, asked_by_then(test), 0, 0);
	/* The operation can be used again. */
	tally->holds = true;
	KUNIT_EXPECT_EQ(test, watch(tally), 1);
}

static void complete_during_try_complete_is_kept_until_it_returns(struct kunit *test)
{
	unsigned int holds;

	for (holds = 0; holds < 2; holds++) {
		struct aide asker;
		struct gate gate;
		struct tally *tally = begin_asking(test, &asker, &gate);

		tally->holds = holds;
		KUNIT_EXPECT_TRUE(test, twheel_operation_complete(&tally->operation));
		KUNIT_EXPECT_FALSE(test, twheel_operation_complete(&tally->operation));
		KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
		KUNIT_EXPECT_EQ(test, tally_calls(tally), 0);
		complete(&gate.open);
		wait_for_completion(&asker.done);
		KUNIT_EXPECT_EQ(test, asker.ret, 0);
		expect_over(test, tally, asked_by_then(test), 1, 0);
	}
}

/* The call that completed it returned so, thus no other call may have ended it. */
static void cancel_sync_does_not_undo_a_complete_during_try_complete(struct kunit *test)
{
	struct aide asker, canceller;
	struct gate gate;
	struct tally *tally = begin_asking(test, &asker, &gate);

	KUNIT_EXPECT_TRUE(test, twheel_operation_complete(&tally->operation));
	canceller = (struct aide){ .work = cancel_it, .tally = tally };
	aide_start(test, &canceller);
	wait_for_waiters(test, 1);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(canceller.returned));
	complete(&gate.open);
	wait_for_completion(&canceller.done);
	wait_for_completion(&asker.done);
	KUNIT_EXPECT_FALSE(test, canceller.ret);
	KUNIT_EXPECT_TRUE(test, canceller.quiet);
	KUNIT_EXPECT_EQ(test, asker.ret, 0);
	expect_over(test, tally, asked_by_then(test), 1, 0);
}

static void check_during_try_complete_has_it_asked_again(struct kunit *test)
{
	const struct asking *asking = test->param_value;
	struct aide asker;
	struct gate gate;
	struct tally *tally = begin_asking(test, &asker, &gate);

	/* The first answer is false, from before the check; then the operation holds. */
	tally->refusals = 1;
	tally->holds = true;
	KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
	KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
	complete(&gate.open);
	wait_for_completion(&asker.done);
	KUNIT_EXPECT_EQ(test, asker.ret, 1);
	expect_over(test, tally, asking->work == check_it ? 4 : 2 + asking->calls,
		    1, 0);
}

/* Let the time come of an operation for which try_complete() runs, if it has a time yet. */
static bool let_it_expire(struct tally *tally)
{
	if (!tally->operation.armed)
		return false;
	twheel_timer_modify(&tally->operation.timer, 0, 0, TWHEEL_TIMER_REL);
	while (READ_ONCE(tally->operation.armed))
		cond_resched();
	return true;
}

/* But if try_complete() returns true, that counts, though it is later. */
static void time_that_comes_during_try_complete_is_kept_until_it_returns(struct kunit *test)
{
	unsigned int holds;

	for (holds = 0; holds < 2; holds++) {
		struct aide asker;
		struct gate gate;
		struct tally *tally = begin_asking(test, &asker, &gate);

		bool expires = let_it_expire(tally);

		tally->holds = holds;
		KUNIT_EXPECT_EQ(test, tally_calls(tally), 0);
		KUNIT_EXPECT_NE(test, twheel_operation_complete(&tally->operation),
				expires);
		KUNIT_EXPECT_EQ(test, check(test, KEY), 0);
		complete(&gate.open);
		wait_for_completion(&asker.done);
		KUNIT_EXPECT_EQ(test, asker.ret, (int)(holds && expires));
		expect_over(test, tally, asked_by_then(test), holds || !expires,
			    !holds && expires);
	}
}

/* --- two at once, one in on_complete or on_expiration ----------------------- */

static void cancel_sync_waits_for_on_complete(struct kunit *test)
{
	struct tally *tally = tally_make(test);
	struct aide forcer = { .work = force_it, .tally = tally };
	struct aide canceller = { .work = cancel_it, .tally = tally };
	struct gate gate;

	gate_init(&gate, 0);
	tally->end = wait_at_gate;
	tally->data = &gate;
	KUNIT_EXPECT_EQ(test, watch(tally), 0);
	aide_start(test, &forcer);
	wait_for_completion(&gate.arrived);
	aide_start(test, &canceller);
	wait_for_waiters(test, 1);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(canceller.returned));
	complete(&gate.open);
	wait_for_completion(&canceller.done);
	wait_for_completion(&forcer.done);
	KUNIT_EXPECT_FALSE(test, canceller.ret);
	KUNIT_EXPECT_TRUE(test, canceller.quiet);
	KUNIT_EXPECT_TRUE(test, forcer.ret);
	expect_over(test, tally, 2, 1, 0);
}

/* It cancels the wait that on_complete() begins. */
static void watch_again_at_gate(struct tally *tally)
{
	wait_at_gate(tally);
	tally->end = NULL;
	watch(tally);
}

static void cancel_sync_ends_an_operation_that_watches_again(struct kunit *test)
{
	struct tally *tally = tally_make(test);
	struct aide forcer = { .work = force_it, .tally = tally };
	struct aide canceller = { .work = cancel_it, .tally = tally };
	struct gate gate;

	gate_init(&gate, 0);
	tally->end = watch_again_at_gate;
	tally->data = &gate;
	KUNIT_EXPECT_EQ(test, watch(tally), 0);
	aide_start(test, &forcer);
	wait_for_completion(&gate.arrived);
	aide_start(test, &canceller);
	wait_for_waiters(test, 1);
	complete(&gate.open);
	wait_for_completion(&canceller.done);
	wait_for_completion(&forcer.done);
	KUNIT_EXPECT_TRUE(test, canceller.ret);
	KUNIT_EXPECT_TRUE(test, canceller.quiet);
	expect_over(test, tally, 4, 1, 0);
}

/* Cancel in a softirq, which must not sleep. */
static void linger(struct tally *tally)
{
	complete(&tally->ended);
	udelay(LINGER_US);
}

static void cancel_sync_waits_for_on_expiration(struct kunit *test)
{
	static const u64 key = KEY;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		struct tally *tally = tally_make(test);

		tally->end = linger;
		KUNIT_ASSERT_EQ(test, watch_keys(tally, &key, 1, 0), 0);
		wait_for_completion(&tally->ended);
		KUNIT_EXPECT_FALSE(test, twheel_operation_cancel_sync(&tally->operation));
		KUNIT_EXPECT_EQ(test, atomic_read(&tally->inside), 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&tally->expired), 1);
	}
}

/* A registry in memory of its own, which is freed as soon as that is allowed. */
static void registry_may_go_right_after_cancel_sync(struct kunit *test)
{
	enum { ROUNDS = 100 };
	static const u64 keys[] = { 1, 2, 3 };
	unsigned int i, cancelled = 0;

	for (i = 0; i < ROUNDS; i++) {
		struct twheel_registry *registry = kzalloc(sizeof(*registry),
							   GFP_KERNEL);
		struct tally *tally = kzalloc(sizeof(*tally), GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, registry);
		KUNIT_ASSERT_NOT_NULL(test, tally);
		KUNIT_ASSERT_EQ(test, twheel_registry_init(registry), 0);
		tally_init(tally, registry);
		KUNIT_EXPECT_EQ(test, watch_keys(tally, keys, ARRAY_SIZE(keys), 0), 0);
		udelay(get_random_u32() % 200);
		cancelled += twheel_operation_cancel_sync(&tally->operation);
		kfree(tally);
		twheel_registry_destroy(registry);
		kfree(registry);
	}
	kunit_info(test, "%u of %u were cancelled", cancelled, i);
}

static struct kunit_case operation_cases[] = {
	KUNIT_CASE_PARAM(operation_that_holds_is_completed_at_once, place_gen_params),
	KUNIT_CASE_PARAM(operation_is_asked_again_after_it_watches, place_gen_params),
	KUNIT_CASE_PARAM(check_of_its_key_completes_an_operation_that_holds,
			 place_gen_params),
	KUNIT_CASE_PARAM(operation_can_be_completed_whatever_it_waits_for,
			 place_gen_params),
	KUNIT_CASE_PARAM(what_is_malformed_is_refused_before_anything_is_asked,
			 place_gen_params),
	KUNIT_CASE(operation_is_completed_by_a_check_of_any_of_its_keys),
	KUNIT_CASE(operation_may_watch_a_key_twice),
	KUNIT_CASE(operation_without_keys_waits_for_its_time),
	KUNIT_CASE_PARAM(operation_expires_once_and_never_early, place_gen_params),
	KUNIT_CASE(time_that_has_passed_expires_an_operation_that_does_not_hold),
	KUNIT_CASE(completed_operation_does_not_expire),
	KUNIT_CASE(cancelled_operation_is_not_called),
	KUNIT_CASE(check_counts_what_it_ended),
	KUNIT_CASE(check_asks_each_once_in_the_order_in_which_they_came),
	KUNIT_CASE(operations_that_join_during_a_check_are_no_part_of_it),
	KUNIT_CASE(check_ends_though_each_one_it_asks_lets_another_one_in),
	KUNIT_CASE(operation_may_watch_again_when_it_completes),
	KUNIT_CASE(operation_may_watch_again_when_it_expires),
	KUNIT_CASE(operation_may_be_freed_when_it_completes),
	KUNIT_CASE(operation_may_be_freed_when_it_expires),
	KUNIT_CASE(operation_may_be_completed_while_it_is_asked),
	KUNIT_CASE(operation_may_complete_others_when_it_completes),
	KUNIT_CASE_PARAM(cancel_sync_waits_for_try_complete, asking_gen_params),
	KUNIT_CASE_PARAM(one_of_two_that_cancel_during_try_complete_has_done_it,
			 asking_gen_params),
	KUNIT_CASE_PARAM(complete_during_try_complete_is_kept_until_it_returns,
			 asking_gen_params),
	KUNIT_CASE_PARAM(cancel_sync_does_not_undo_a_complete_during_try_complete,
			 asking_gen_params),
	KUNIT_CASE_PARAM(check_during_try_complete_has_it_asked_again,
			 asking_gen_params),
	KUNIT_CASE_PARAM(time_that_comes_during_try_complete_is_kept_until_it_returns,
			 asking_gen_params),
	KUNIT_CASE(cancel_sync_waits_for_on_complete),
	KUNIT_CASE(cancel_sync_ends_an_operation_that_watches_again),
	KUNIT_CASE(cancel_sync_waits_for_on_expiration),
	KUNIT_CASE(registry_may_go_right_after_cancel_sync),
	{}
};

static struct kunit_suite operation_suite = {
	.name = "twheel_operation",
	.init = operation_suite_init,
	.exit = operation_suite_exit,
	.test_cases = operation_cases,
};

kunit_test_suite(operation_suite);

MODULE_DESCRIPTION("KUnit suite of operations of other modules");
MODULE_LICENSE("GPL");
