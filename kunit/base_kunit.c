// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of what bases stand on: their numbers, and the budget of their runs.
 *
 * base_number.c and budget.c are compiled into the suite, so the table and the budgets here
 * are not those of the module.
 */
#include <kunit/test.h>

#include "../kmod/base_number.c"
#include "../kmod/budget.c"

#define HOUR_NS		(3600 * (u64)NSEC_PER_SEC)

/* --- numbers ---------------------------------------------------------------- */

/* No base is made: an address is enough. */
static struct base *base_at(size_t index)
{
	return (struct base *)(0x1000 + 0x100 * index);
}

/* Give as many numbers as there are, and check that one more is refused. */
static void give_all(struct kunit *test, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, base_give_number(base_at(i)), (int)i);
	KUNIT_EXPECT_EQ(test, base_give_number(base_at(nr)), -ENOSPC);
	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_PTR_EQ(test, base_of_number(i), base_at(i));
}

static void number_leads_to_its_base(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, base_numbers_init(10), 0);
	give_all(test, 10);
	base_numbers_exit();
}

static void no_more_numbers_are_given_than_a_node_can_name(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, base_numbers_init(8192 * 12), 0);
	give_all(test, BASE_MIGRATING);
	base_numbers_exit();
}

static void numbers_begin_again_with_a_new_table(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, base_numbers_init(3), 0);
		give_all(test, 3);
		base_numbers_exit();
	}
}

/* --- budgets ---------------------------------------------------------------- */

/* Bases of one CPU, of which only the kind matters, and a clock that the test sets. */
struct fixture {
	struct base *bases[BASE_KINDS];
	u64 now_ns;
};

/* The test stays on this CPU until it calls leave(). */
static struct fixture *enter(struct kunit *test)
{
	struct fixture *fixture = kunit_kzalloc(test, sizeof(*fixture), GFP_KERNEL);
	unsigned int kind;

	KUNIT_ASSERT_NOT_NULL(test, fixture);
	for (kind = 0; kind < BASE_KINDS; kind++) {
		fixture->bases[kind] = kunit_kzalloc(test, sizeof(struct base), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, fixture->bases[kind]);
		fixture->bases[kind]->kind = kind;
	}
	fixture->now_ns = HOUR_NS;
	migrate_disable();
	*this_cpu_ptr(&twheel_budgets) = (struct budget){};
	return fixture;
}

static void leave(void)
{
	migrate_enable();
}

static u64 resume_ns(const struct fixture *fixture, enum base_kind kind)
{
	return budget_resume_ns(fixture->bases[kind]);
}

/* Is there no pause of that kind, or is it over? */
static bool may_run(const struct fixture *fixture, enum base_kind kind)
{
	return resume_ns(fixture, kind) <= fixture->now_ns;
}

/* Let a base run for that long; true if it has used up its time. */
static bool run_for(struct fixture *fixture, enum base_kind kind, u64 ns)
{
	struct base *base = fixture->bases[kind];
	struct run_time time = {};
	bool used_up;

	budget_end_pause(base);
	budget_begin(&time, base, fixture->now_ns);
	fixture->now_ns += ns;
	used_up = budget_is_used_up(&time, fixture->now_ns);
	budget_end(&time, base, used_up);
	return used_up;
}

static void pause_is_as_long_as_the_run(struct kunit *test)
{
	struct fixture *fixture = enter(test);

	KUNIT_EXPECT_FALSE(test, run_for(fixture, BASE_EVENTS, BUDGET_RUN_NS - 1));
	KUNIT_EXPECT_TRUE(test, may_run(fixture, BASE_EVENTS));
	fixture->now_ns += HOUR_NS;
	KUNIT_EXPECT_TRUE(test, run_for(fixture, BASE_EVENTS, 3 * BUDGET_RUN_NS));
	/* One more nanosecond, because it was the last to run. */
	KUNIT_EXPECT_EQ(test, resume_ns(fixture, BASE_EVENTS),
			fixture->now_ns + 3 * BUDGET_RUN_NS + 1);
	leave();
}

/* They take turns: the base whose run caused the pause is resumed after the others. */
static void pause_of_a_kind_holds_for_its_bases_of_all_clocks(struct kunit *test)
{
	struct base *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct fixture *fixture;

	KUNIT_ASSERT_NOT_NULL(test, other);
	other->kind = BASE_EVENTS;
	other->clock = BASE_BOOTTIME;
	fixture = enter(test);
	KUNIT_EXPECT_TRUE(test, run_for(fixture, BASE_EVENTS, BUDGET_RUN_NS));
	KUNIT_EXPECT_EQ(test, budget_resume_ns(other), fixture->now_ns + BUDGET_RUN_NS);
	KUNIT_EXPECT_GT(test, resume_ns(fixture, BASE_EVENTS), budget_resume_ns(other));
	leave();
}

static void pause_of_a_kind_does_not_hold_another(struct kunit *test)
{
	struct fixture *fixture = enter(test);

	KUNIT_EXPECT_TRUE(test, run_for(fixture, BASE_DEADLINES, BUDGET_RUN_NS));
	KUNIT_EXPECT_FALSE(test, may_run(fixture, BASE_DEADLINES));
	KUNIT_EXPECT_TRUE(test, may_run(fixture, BASE_EVENTS));
	KUNIT_EXPECT_TRUE(test, may_run(fixture, BASE_TIMERS));
	KUNIT_EXPECT_FALSE(test, run_for(fixture, BASE_TIMERS, BUDGET_RUN_NS - 1));
	leave();
}

static void pause_grows_by_what_other_kinds_run_meanwhile(struct kunit *test)
{
	struct fixture *fixture = enter(test);
	u64 before_ns;

	run_for(fixture, BASE_DEADLINES, BUDGET_RUN_NS);
	before_ns = resume_ns(fixture, BASE_DEADLINES);
	fixture->now_ns += BUDGET_RUN_NS / 2;
	run_for(fixture, BASE_EVENTS, 1000);
	run_for(fixture, BASE_TIMERS, 200);
	KUNIT_EXPECT_EQ(test, resume_ns(fixture, BASE_DEADLINES), before_ns + 1200);
	leave();
}

/* Nobody waits for as long as a machine was stopped in the middle of a run. */
static void pause_grows_by_no_more_than_the_longest_pause(struct kunit *test)
{
	struct fixture *fixture = enter(test);
	u64 before_ns;

	run_for(fixture, BASE_DEADLINES, BUDGET_RUN_NS);
	before_ns = resume_ns(fixture, BASE_DEADLINES);
	run_for(fixture, BASE_EVENTS, HOUR_NS);
	KUNIT_EXPECT_EQ(test, resume_ns(fixture, BASE_EVENTS),
			fixture->now_ns + BUDGET_PAUSE_NS + 1);
	KUNIT_EXPECT_EQ(test, resume_ns(fixture, BASE_DEADLINES),
			before_ns + BUDGET_PAUSE_NS);
	leave();
}

static void short_runs_in_a_row_share_a_budget(struct kunit *test)
{
	const u64 run_ns = BUDGET_RUN_NS / 10;
	struct fixture *fixture = enter(test);
	unsigned int i;

	for (i = 0; i < 9; i++) {
		KUNIT_EXPECT_FALSE(test, run_for(fixture, BASE_EVENTS, run_ns));
		fixture->now_ns += run_ns / 2;
	}
	KUNIT_EXPECT_TRUE(test, run_for(fixture, BASE_EVENTS, run_ns));
	KUNIT_EXPECT_FALSE(test, may_run(fixture, BASE_EVENTS));
	leave();
}

/* No time is left to tasks: the runs of one kind are no pause for the other. */
static void short_runs_of_two_kinds_in_turn_use_up_both_budgets(struct kunit *test)
{
	const u64 run_ns = BUDGET_RUN_NS / 10;
	struct fixture *fixture = enter(test);
	unsigned int i;

	for (i = 0; i < 9; i++) {
		KUNIT_EXPECT_FALSE(test, run_for(fixture, BASE_EVENTS, run_ns));
		KUNIT_EXPECT_FALSE(test, run_for(fixture, BASE_DEADLINES, run_ns));
	}
	KUNIT_EXPECT_TRUE(test, run_for(fixture, BASE_EVENTS, run_ns));
	KUNIT_EXPECT_TRUE(test, run_for(fixture, BASE_DEADLINES, run_ns));
	leave();
}

/*
 * Let the kinds below @nr run whenever they may, each for @run_ns, and check that none of
 * them is left behind.  Returns the part of the time that was left to tasks, in thousandths.
 */
static u64 share_of_tasks(struct kunit *test, unsigned int nr, u64 run_ns)
{
	struct fixture *fixture = enter(test);
	u64 begin_ns = fixture->now_ns, spare_ns = 0;
	u64 most_ns = 0, least_ns = U64_MAX;
	u64 ran_ns[BASE_KINDS] = {};
	unsigned int kind;

	while (fixture->now_ns < begin_ns + 1000 * BUDGET_RUN_NS) {
		u64 next_ns = U64_MAX;

		for (kind = 0; kind < nr; kind++) {
			if (may_run(fixture, kind)) {
				run_for(fixture, kind, run_ns);
				ran_ns[kind] += run_ns;
			}
		}
		for (kind = 0; kind < nr; kind++)
			next_ns = min(next_ns, resume_ns(fixture, kind));
		if (next_ns > fixture->now_ns) {
			spare_ns += next_ns - fixture->now_ns;
			fixture->now_ns = next_ns;
		}
	}
	for (kind = 0; kind < nr; kind++) {
		most_ns = max(most_ns, ran_ns[kind]);
		least_ns = min(least_ns, ran_ns[kind]);
	}
	leave();
	KUNIT_EXPECT_LE(test, most_ns - least_ns, 4 * max_t(u64, run_ns, BUDGET_RUN_NS));
	return div64_u64(1000 * spare_ns, fixture->now_ns - begin_ns);
}

static void tasks_get_as_much_as_each_kind_that_never_ends(struct kunit *test)
{
	static const u64 run_ns[] = {
		1000, BUDGET_RUN_NS / 7, BUDGET_RUN_NS, 5 * BUDGET_RUN_NS
	};
	unsigned int nr, i;

	for (nr = 1; nr <= BASE_KINDS; nr++)
		for (i = 0; i < ARRAY_SIZE(run_ns); i++)
			KUNIT_EXPECT_GE(test, share_of_tasks(test, nr, run_ns[i]),
					950 / (nr + 1));
}

static struct kunit_case base_cases[] = {
	KUNIT_CASE(number_leads_to_its_base),
	KUNIT_CASE(no_more_numbers_are_given_than_a_node_can_name),
	KUNIT_CASE(numbers_begin_again_with_a_new_table),
	KUNIT_CASE(pause_is_as_long_as_the_run),
	KUNIT_CASE(pause_of_a_kind_holds_for_its_bases_of_all_clocks),
	KUNIT_CASE(pause_of_a_kind_does_not_hold_another),
	KUNIT_CASE(pause_grows_by_what_other_kinds_run_meanwhile),
	KUNIT_CASE(pause_grows_by_no_more_than_the_longest_pause),
	KUNIT_CASE(short_runs_in_a_row_share_a_budget),
	KUNIT_CASE(short_runs_of_two_kinds_in_turn_use_up_both_budgets),
	KUNIT_CASE(tasks_get_as_much_as_each_kind_that_never_ends),
	{}
};

static struct kunit_suite base_suite = {
	.name = "twheel_base",
	.test_cases = base_cases,
};

kunit_test_suite(base_suite);

MODULE_DESCRIPTION("KUnit suite of what twheel's bases stand on");
MODULE_LICENSE("GPL");
