// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the wheels of a clock that can be set back.
 *
 * The suite compiles a wheel.c and a wheels.c of its own, as the module exports none of
 * them.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../kmod/wheel.c"
#include "../kmod/wheels.c"
#include "options.h"
#include "wheels_model.h"

#define MODEL_STEPS	100000

/* Wheels and an array of nodes, in the test's own memory. */
struct fixture {
	struct kunit *test;
	struct wheels wheels;
	struct wheel_node *nodes;
};

static struct fixture *fixture_make(struct kunit *test, unsigned int nr, u64 now)
{
	struct fixture *fixture = kunit_kzalloc(test, sizeof(*fixture), GFP_KERNEL);
	struct wheel *wheel = kunit_kcalloc(test, WHEELS_MAX, sizeof(*wheel),
					    GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, fixture);
	KUNIT_ASSERT_NOT_NULL(test, wheel);
	fixture->test = test;
	fixture->nodes = kunit_kcalloc(test, nr, sizeof(struct wheel_node),
				       GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fixture->nodes);
	wheels_init(&fixture->wheels, wheel, WHEELS_MAX, now);
	for (i = 0; i < nr; i++)
		wheel_node_init(&fixture->nodes[i]);
	return fixture;
}

static void arm(struct fixture *fixture, unsigned int i, u64 due, u64 now)
{
	wheels_add(&fixture->wheels, &fixture->nodes[i], due, now);
	KUNIT_ASSERT_STREQ(fixture->test, wheels_check(&fixture->wheels) ?: "holds",
			   "holds");
}

/* Do all work that is due at a tick, and expect these nodes to come out in this order. */
static void expect_out(struct fixture *fixture, u64 now, const int *order, int nr)
{
	LIST_HEAD(out);
	int i;

	while (wheels_advance(&fixture->wheels, now, 64, &out))
		;
	for (i = 0; i < nr; i++) {
		struct wheel_node *node =
			list_first_entry(&out, struct wheel_node, list);

		KUNIT_ASSERT_FALSE(fixture->test, list_empty(&out));
		KUNIT_EXPECT_EQ(fixture->test, (int)(node - fixture->nodes), order[i]);
		wheels_del(&fixture->wheels, node);
	}
	KUNIT_ASSERT_TRUE(fixture->test, list_empty(&out));
}

#define EXPECT_OUT(fixture, now, ...)					\
	expect_out(fixture, now, (const int[]){ __VA_ARGS__ },		\
		   ARRAY_SIZE(((const int[]){ __VA_ARGS__ })))

static u64 cascaded(const struct fixture *fixture)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < WHEELS_MAX; i++)
		sum += fixture->wheels.wheel[i]->cascaded;
	return sum;
}

static void wheels_agree_with_a_sorted_array(struct kunit *test)
{
	struct wheels_model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	struct model_generator generator = {
		.source.draw = model_generate,
		.seed = seed_of(test),
	};
	const char *broken;
	unsigned int step;

	KUNIT_ASSERT_NOT_NULL(test, model);
	wheels_model_init(model, &generator.source);
	for (step = 0; step < rounds_of(MODEL_STEPS); step++) {
		if (!wheels_model_step(model, &broken)) {
			KUNIT_FAIL(test, "step %u: %s", step, broken);
			return;
		}
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, model->most_used, (unsigned int)WHEELS_MAX);
	KUNIT_EXPECT_GT(test, model->most_waiting, 0ULL);
	KUNIT_EXPECT_GT(test, model->most_limbo, 0ULL);
	KUNIT_EXPECT_GT(test, model->moved_limbo, 0ULL);
	KUNIT_EXPECT_GT(test, model->nr_late, 0ULL);
}

static void set_back_clock_moves_no_node(struct kunit *test)
{
	enum { NR = 1000 };
	struct fixture *fixture = fixture_make(test, NR + 2, 1000000);
	u64 due = 1100000;
	LIST_HEAD(out);
	unsigned int i;

	for (i = 0; i < NR; i++)
		arm(fixture, i, due + i, 1000000);
	/* Set the clock back twice, and arm a node after each step. */
	arm(fixture, NR, due - 1, 999000);
	arm(fixture, NR + 1, 990001, 990000);
	KUNIT_EXPECT_FALSE(test, wheels_advance(&fixture->wheels, 990000, 64, &out));
	KUNIT_EXPECT_EQ(test, cascaded(fixture), 0ULL);
	KUNIT_EXPECT_EQ(test, wheels_farthest(&fixture->wheels)->armed, (u64)NR + 1);
	EXPECT_OUT(fixture, 990001, NR + 1);
}

static void one_tick_keeps_its_order_across_steps_back(struct kunit *test)
{
	struct fixture *fixture = fixture_make(test, 6, 10000);

	arm(fixture, 0, 20000, 10000);
	arm(fixture, 1, 20000, 9000);	/* set back by 1000 */
	arm(fixture, 2, 9500, 9000);	/* in the gap */
	arm(fixture, 3, 20000, 5000);	/* set back again, in the gap */
	arm(fixture, 4, 9500, 5000);
	arm(fixture, 5, 6000, 5000);
	EXPECT_OUT(fixture, 6000, 5);
	EXPECT_OUT(fixture, 9500, 2, 4);
	EXPECT_OUT(fixture, 20000, 0, 1, 3);
	KUNIT_EXPECT_EQ(test, fixture->wheels.nr_used, 1U);
}

static void node_for_the_gap_is_on_time_whatever_the_others_are(struct kunit *test)
{
	enum { NR = 500 };
	struct fixture *fixture = fixture_make(test, NR + 1, 1 << 20);
	LIST_HEAD(out);
	unsigned int i;

	for (i = 0; i < NR; i++)
		arm(fixture, i, (1 << 20) + 40000 + i, 1 << 20);
	arm(fixture, NR, (1 << 20) - 50, (1 << 20) - 100);
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, (1 << 20) - 100),
			(1ULL << 20) - 50);
	/* A budget of two is enough for the one that is due. */
	wheels_advance(&fixture->wheels, (1 << 20) - 50, 2, &out);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&out, struct wheel_node, list),
			    &fixture->nodes[NR]);
}

/* Forced prefetch waits until the clock has reached its tick again. */
static void clock_set_back_in_a_round_of_prefetch_finds_nothing_to_do(struct kunit *test)
{
	enum { NR = 2000, BEGIN = 40 << 10, FORCED = BEGIN - 32 - 8 };
	struct fixture *fixture = fixture_make(test, NR, 0);
	LIST_HEAD(out);
	unsigned int i;

	for (i = 0; i < NR; i++)
		wheels_add(&fixture->wheels, &fixture->nodes[i], BEGIN + i % 1000, 0);
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 0), (u64)FORCED);
	KUNIT_EXPECT_TRUE(test, wheels_advance(&fixture->wheels, FORCED, 64, &out));
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, FORCED), (u64)FORCED);
	KUNIT_EXPECT_FALSE(test, wheels_advance(&fixture->wheels, FORCED - 1, 64, &out));
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, FORCED - 1), (u64)FORCED);
	KUNIT_EXPECT_TRUE(test, list_empty(&out));
}

static void fourth_step_back_loses_nothing_and_keeps_the_order(struct kunit *test)
{
	struct fixture *fixture = fixture_make(test, 8, 40000);

	arm(fixture, 0, 50000, 40000);
	arm(fixture, 1, 39000, 30000);
	arm(fixture, 2, 39000, 30000);
	arm(fixture, 3, 29000, 20000);
	arm(fixture, 4, 19000, 10000);	/* limbo */
	KUNIT_EXPECT_EQ(test, fixture->wheels.nr_limbo, 1ULL);
	arm(fixture, 5, 39000, 10000);
	arm(fixture, 6, 19000, 10000);
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 10000), 10000ULL);
	expect_out(fixture, 10001, NULL, 0);
	KUNIT_EXPECT_EQ(test, fixture->wheels.nr_limbo, 0ULL);
	arm(fixture, 7, 19000, 10001);
	EXPECT_OUT(fixture, 19000, 4, 6, 7);
	EXPECT_OUT(fixture, 29000, 3);
	EXPECT_OUT(fixture, 39000, 1, 2, 5);
	EXPECT_OUT(fixture, 50000, 0);
	KUNIT_EXPECT_EQ(test, wheels_armed(&fixture->wheels), 0ULL);
}

static void node_in_limbo_can_be_taken_off(struct kunit *test)
{
	struct fixture *fixture = fixture_make(test, 4, 40000);

	arm(fixture, 0, 50000, 40000);
	arm(fixture, 1, 39000, 30000);
	arm(fixture, 2, 29000, 20000);
	arm(fixture, 3, 19000, 10000);
	KUNIT_ASSERT_EQ(test, fixture->wheels.nr_limbo, 1ULL);
	wheels_del(&fixture->wheels, &fixture->nodes[3]);
	KUNIT_EXPECT_FALSE(test, wheel_queued(&fixture->nodes[3]));
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 10000), 29000ULL);
	KUNIT_EXPECT_EQ(test, wheels_armed(&fixture->wheels), 3ULL);
}

/* As when a CPU goes down then: base.c puts nodes on another base by wheels_add_older(). */
static void older_node_waits_in_limbo_before_the_others_of_its_tick(struct kunit *test)
{
	struct fixture *fixture = fixture_make(test, 6, 40000);

	arm(fixture, 0, 50000, 40000);
	arm(fixture, 1, 39000, 30000);
	arm(fixture, 2, 29000, 20000);
	arm(fixture, 3, 19000, 10000);
	arm(fixture, 4, 19000, 10000);
	KUNIT_EXPECT_EQ(test, wheels_add_older(&fixture->wheels, &fixture->nodes[5], 19000, 10000),
			10000ULL);
	KUNIT_ASSERT_EQ(test, fixture->wheels.nr_limbo, 3ULL);
	KUNIT_ASSERT_STREQ(test, wheels_check(&fixture->wheels) ?: "holds", "holds");
	expect_out(fixture, 10001, NULL, 0);
	KUNIT_EXPECT_EQ(test, fixture->wheels.nr_limbo, 0ULL);
	EXPECT_OUT(fixture, 19000, 5, 3, 4);
}

/* However late the node is: each node comes out once and not early, tick by tick. */
static void nodes_in_limbo_come_out_while_time_goes_on(struct kunit *test)
{
	enum { NR = 600, LIMBO = 100 };
	struct fixture *fixture = fixture_make(test, NR + LIMBO + 2, 40000);
	unsigned int i, left = NR + LIMBO + 2;
	struct wheel_node *node, *safe;
	u64 now;

	arm(fixture, NR + LIMBO, 50000, 40000);
	for (i = 0; i < NR; i++)
		wheels_add(&fixture->wheels, &fixture->nodes[i], 39000 + i % 7, 30000);
	arm(fixture, NR + LIMBO + 1, 29000, 20000);
	for (i = NR; i < NR + LIMBO; i++)
		arm(fixture, i, 10005 + i % 50, 10000);
	KUNIT_ASSERT_EQ(test, fixture->wheels.nr_limbo, (u64)LIMBO);
	for (now = 10000; left && now <= 50000; now++) {
		LIST_HEAD(out);

		while (wheels_advance(&fixture->wheels, now, 64, &out))
			;
		list_for_each_entry_safe(node, safe, &out, list) {
			KUNIT_ASSERT_LE(test, wheel_due(node), now);
			wheels_del(&fixture->wheels, node);
			left--;
		}
		/* Limbo is empty at the end of each tick if its owner keeps advancing. */
		KUNIT_ASSERT_EQ(test, fixture->wheels.nr_limbo, 0ULL);
	}
	KUNIT_EXPECT_EQ(test, left, 0U);
}

/* As when a CPU goes down then: base.c moves nodes by wheels_pop(). */
static void half_emptied_limbo_is_popped_before_the_wheels(struct kunit *test)
{
	enum { LIMBO = 8 };
	struct fixture *fixture = fixture_make(test, LIMBO + 3, 40000);
	LIST_HEAD(out);
	int i;

	arm(fixture, LIMBO, 50000, 40000);
	arm(fixture, LIMBO + 1, 39000, 30000);
	arm(fixture, LIMBO + 2, 29000, 20000);
	for (i = 0; i < LIMBO; i++)
		arm(fixture, i, 19000, 10000);
	KUNIT_ASSERT_EQ(test, fixture->wheels.nr_limbo, (u64)LIMBO);
	while (fixture->wheels.nr_limbo > LIMBO / 2)
		wheels_advance(&fixture->wheels, 10000, 2, &out);
	KUNIT_ASSERT_TRUE(test, list_empty(&out));
	KUNIT_ASSERT_EQ(test, fixture->wheels.nr_limbo, (u64)LIMBO / 2);

	/* Of the tick 19000, the youngest node comes first. */
	for (i = LIMBO; i > 0;) {
		struct wheel_node *node = wheels_pop(&fixture->wheels);

		KUNIT_ASSERT_NOT_NULL(test, node);
		if (wheel_due(node) != 19000)
			continue;
		KUNIT_EXPECT_EQ(test, (int)(node - fixture->nodes), --i);
	}
}

static void clock_that_never_goes_back_has_one_wheel(struct kunit *test)
{
	struct fixture *fixture = fixture_make(test, 2, 1000);

	wheels_init(&fixture->wheels, fixture->wheels.wheel[0], 1, 1000);
	arm(fixture, 0, 2000, 1000);
	/*
	 * The clock was read just before another CPU advanced the wheel, and is used after
	 * that.
	 */
	arm(fixture, 1, 999, 998);
	KUNIT_EXPECT_EQ(test, fixture->wheels.nr_used, 1U);
	EXPECT_OUT(fixture, 1000, 1);
	EXPECT_OUT(fixture, 2000, 0);
}

/* Wheels of which only the first is there. */
static struct fixture *fixture_make_growing(struct kunit *test, unsigned int nr, u64 now)
{
	struct fixture *fixture = fixture_make(test, nr, now);

	wheels_init_growing(&fixture->wheels, fixture->wheels.wheel[0], now);
	/* There is memory for one wheel. */
	KUNIT_ASSERT_EQ(test, fixture->wheels.nr, 1U);
	return fixture;
}

static void grow(struct fixture *fixture, u64 now)
{
	struct wheel *more = kunit_kcalloc(fixture->test, WHEELS_MAX - 1, sizeof(*more),
					   GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(fixture->test, more);
	for (i = 0; i < WHEELS_MAX - 1; i++)
		wheel_init(&more[i], 0);
	wheels_grow(&fixture->wheels, more);
	KUNIT_EXPECT_FALSE(fixture->test, wheels_go_back(&fixture->wheels, now));
}

static void node_for_the_gap_waits_for_a_wheel_and_is_on_time_then(struct kunit *test)
{
	struct fixture *fixture = fixture_make_growing(test, 4, 1000);

	arm(fixture, 0, 2000, 1000);
	KUNIT_EXPECT_FALSE(test, wheels_go_back(&fixture->wheels, 1000));
	/* Set back: node 0 stays. */
	KUNIT_EXPECT_TRUE(test, wheels_go_back(&fixture->wheels, 500));
	arm(fixture, 1, 700, 500);
	arm(fixture, 2, 600, 500);
	arm(fixture, 3, 700, 500);
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 500), 1000ULL);
	grow(fixture, 501);
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 501), 501ULL);
	EXPECT_OUT(fixture, 600, 2);
	EXPECT_OUT(fixture, 700, 1, 3);
	EXPECT_OUT(fixture, 2000, 0);
}

static void node_for_the_gap_is_no_later_than_the_step_without_memory(struct kunit *test)
{
	struct fixture *fixture = fixture_make_growing(test, 4, 1000);
	LIST_HEAD(out);

	arm(fixture, 0, 1500, 1000);
	arm(fixture, 1, 700, 500);
	arm(fixture, 2, 600, 500);
	KUNIT_EXPECT_FALSE(test, wheels_advance(&fixture->wheels, 999, 64, &out));
	KUNIT_EXPECT_TRUE(test, list_empty(&out));
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 999), 1000ULL);
	/* They can be taken off, and come out when the clock gets to the wheel. */
	wheels_del(&fixture->wheels, &fixture->nodes[1]);
	EXPECT_OUT(fixture, 1000, 2);
	EXPECT_OUT(fixture, 1500, 0);
}

/*
 * Without memory for more wheels.  The clock is set forth beyond the only wheel, which takes
 * a part of limbo, and back by less than before.
 */
static void nodes_in_limbo_wait_for_the_wheel_where_it_is_now(struct kunit *test)
{
	enum { NR = 200 };
	struct fixture *fixture = fixture_make_growing(test, NR + 1, 1000);
	LIST_HEAD(out);
	unsigned int i;

	arm(fixture, NR, 50000, 1000);
	for (i = 0; i < NR; i++)
		arm(fixture, i, 700, 500);
	KUNIT_EXPECT_TRUE(test, wheels_advance(&fixture->wheels, 1500, 64, &out));
	KUNIT_ASSERT_GT(test, fixture->wheels.nr_limbo, 0ULL);
	KUNIT_ASSERT_GT(test, wheels_farthest(&fixture->wheels)->clk, 1200ULL);
	KUNIT_EXPECT_FALSE(test, wheels_advance(&fixture->wheels, 1200, 64, &out));
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 1200),
			wheels_farthest(&fixture->wheels)->clk);
}

/* The only wheel got empty and went back, and the clock goes back behind it once more. */
static void nodes_in_limbo_wait_no_longer_than_for_the_wheel(struct kunit *test)
{
	enum { NR = 100 };
	struct fixture *fixture = fixture_make_growing(test, NR + 2, 1000);
	LIST_HEAD(out);
	unsigned int i;

	arm(fixture, NR, 2000, 1000);
	for (i = 0; i < NR; i++)
		arm(fixture, i, 900, 500);
	arm(fixture, NR + 1, 450, 400);
	wheels_del(&fixture->wheels, &fixture->nodes[NR]);
	KUNIT_EXPECT_TRUE(test, wheels_advance(&fixture->wheels, 500, 64, &out));
	KUNIT_ASSERT_GT(test, fixture->wheels.nr_limbo, 0ULL);
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 400), 500ULL);
}

/* All wheels have gone on, and the clock goes back to between limbo's first end and them. */
static void two_nodes_of_a_tick_keep_their_order_in_a_limbo_that_was_there(struct kunit *test)
{
	enum { NR = 300, FAR = NR, FIRST = NR + 3, SECOND };
	struct fixture *fixture = fixture_make(test, NR + 5, 40000);
	struct wheel_node *node;
	unsigned int i, nr = 0;
	LIST_HEAD(out);

	arm(fixture, FAR, 50000, 40000);
	arm(fixture, FAR + 1, 39000, 30000);
	arm(fixture, FAR + 2, 29000, 20000);
	for (i = 0; i < NR; i++)
		arm(fixture, i, 19500, 19000);
	wheels_advance(&fixture->wheels, 21000, 64, &out);
	wheels_advance(&fixture->wheels, 21000, 64, &out);
	arm(fixture, FIRST, 20700, 20500);
	KUNIT_ASSERT_EQ(test, (unsigned int)wheel_level(&fixture->nodes[FIRST]), WHEEL_LIMBO);
	for (;;) {
		arm(fixture, SECOND, 20700, 20500);
		if (wheel_level(&fixture->nodes[SECOND]) != WHEEL_LIMBO)
			break;
		wheels_del(&fixture->wheels, &fixture->nodes[SECOND]);
		wheels_advance(&fixture->wheels, 20500, 8, &out);
	}
	KUNIT_EXPECT_NE(test, (unsigned int)wheel_level(&fixture->nodes[FIRST]), WHEEL_LIMBO);
	while (wheels_advance(&fixture->wheels, 20700, 64, &out))
		;
	list_for_each_entry(node, &out, list) {
		if (node == &fixture->nodes[FIRST])
			KUNIT_EXPECT_EQ(test, nr++, 0U);
		if (node == &fixture->nodes[SECOND])
			KUNIT_EXPECT_EQ(test, nr++, 1U);
	}
	KUNIT_EXPECT_EQ(test, nr, 2U);
}

/* The first node after the step is beyond the wheel's old clk, and would keep it there. */
static void wheel_that_is_empty_goes_back_before_a_far_node(struct kunit *test)
{
	struct fixture *fixture = fixture_make_growing(test, 2, 1000);

	KUNIT_EXPECT_FALSE(test, wheels_go_back(&fixture->wheels, 500));
	arm(fixture, 0, 2000, 500);
	arm(fixture, 1, 700, 500);
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 500), 700ULL);
	EXPECT_OUT(fixture, 700, 1);
	EXPECT_OUT(fixture, 2000, 0);
	KUNIT_EXPECT_EQ(test, fixture->wheels.nr, 1U);
}

/* The node that kept the wheel in the future is gone when the notice comes. */
static void wheels_are_asked_for_if_only_limbo_has_nodes(struct kunit *test)
{
	struct fixture *fixture = fixture_make_growing(test, 2, 1000);

	arm(fixture, 0, 2000, 1000);
	arm(fixture, 1, 700, 500);
	wheels_del(&fixture->wheels, &fixture->nodes[0]);
	KUNIT_ASSERT_TRUE(test, wheels_go_back(&fixture->wheels, 500));
	grow(fixture, 501);
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 501), 501ULL);
	EXPECT_OUT(fixture, 700, 1);
}

/* The budget ends while the only wheel, which is empty, takes the nodes in limbo. */
static void wheel_that_got_empty_takes_all_of_limbo(struct kunit *test)
{
	struct fixture *fixture = fixture_make_growing(test, 4, 1000);
	LIST_HEAD(out);

	arm(fixture, 0, 2000, 1000);
	arm(fixture, 1, 700, 500);
	arm(fixture, 2, 600, 500);
	arm(fixture, 3, 700, 500);
	wheels_del(&fixture->wheels, &fixture->nodes[0]);
	KUNIT_EXPECT_TRUE(test, wheels_advance(&fixture->wheels, 500, 2, &out));
	KUNIT_EXPECT_EQ(test, wheels_next(&fixture->wheels, 500), 500ULL);
	EXPECT_OUT(fixture, 600, 2);
	EXPECT_OUT(fixture, 700, 1, 3);
	KUNIT_EXPECT_EQ(test, fixture->wheels.nr, 1U);
}

static void wheel_that_is_empty_goes_back_and_needs_no_other(struct kunit *test)
{
	struct fixture *fixture = fixture_make_growing(test, 1, 1000);

	KUNIT_EXPECT_FALSE(test, wheels_go_back(&fixture->wheels, 500));
	arm(fixture, 0, 600, 500);
	EXPECT_OUT(fixture, 600, 0);
	KUNIT_EXPECT_EQ(test, fixture->wheels.nr, 1U);
}

static struct kunit_case wheels_cases[] = {
	KUNIT_CASE(wheels_agree_with_a_sorted_array),
	KUNIT_CASE(set_back_clock_moves_no_node),
	KUNIT_CASE(one_tick_keeps_its_order_across_steps_back),
	KUNIT_CASE(node_for_the_gap_is_on_time_whatever_the_others_are),
	KUNIT_CASE(clock_set_back_in_a_round_of_prefetch_finds_nothing_to_do),
	KUNIT_CASE(fourth_step_back_loses_nothing_and_keeps_the_order),
	KUNIT_CASE(node_in_limbo_can_be_taken_off),
	KUNIT_CASE(older_node_waits_in_limbo_before_the_others_of_its_tick),
	KUNIT_CASE(nodes_in_limbo_come_out_while_time_goes_on),
	KUNIT_CASE(half_emptied_limbo_is_popped_before_the_wheels),
	KUNIT_CASE(clock_that_never_goes_back_has_one_wheel),
	KUNIT_CASE(node_for_the_gap_waits_for_a_wheel_and_is_on_time_then),
	KUNIT_CASE(node_for_the_gap_is_no_later_than_the_step_without_memory),
	KUNIT_CASE(nodes_in_limbo_wait_for_the_wheel_where_it_is_now),
	KUNIT_CASE(nodes_in_limbo_wait_no_longer_than_for_the_wheel),
	KUNIT_CASE(two_nodes_of_a_tick_keep_their_order_in_a_limbo_that_was_there),
	KUNIT_CASE(wheel_that_got_empty_takes_all_of_limbo),
	KUNIT_CASE(wheel_that_is_empty_goes_back_and_needs_no_other),
	KUNIT_CASE(wheel_that_is_empty_goes_back_before_a_far_node),
	KUNIT_CASE(wheels_are_asked_for_if_only_limbo_has_nodes),
	{}
};

static struct kunit_suite wheels_suite = {
	.name = "twheel_wheels",
	.test_cases = wheels_cases,
};

kunit_test_suite(wheels_suite);

MODULE_DESCRIPTION("KUnit suite of twheel's wheels of a clock that can be set back");
MODULE_LICENSE("GPL");
