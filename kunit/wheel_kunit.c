// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the wheel: order, bounds, and how few ticks need work.
 *
 * The suite compiles a wheel.c of its own, as the module exports none of it.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../kmod/wheel.c"
#include "options.h"
#include "wheel_model.h"

#define MODEL_STEPS	200000

/* A wheel and an array of nodes, in the test's own memory. */
struct fixture {
	struct kunit *test;
	struct wheel *wheel;
	struct wheel_node *nodes;
	unsigned int stops;	/* distinct ticks at which something was done */
	unsigned int extra;	/* of these, at which nothing came out */
	u64 most_before_due;	/* nodes moved at a tick before one came out */
};

static struct fixture fixture_make(struct kunit *test, unsigned int nr, u64 now)
{
	struct fixture fixture = {
		.test = test,
		.wheel = kunit_kzalloc(test, sizeof(struct wheel), GFP_KERNEL),
		.nodes = kunit_kcalloc(test, nr, sizeof(struct wheel_node),
				       GFP_KERNEL),
	};
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, fixture.wheel);
	KUNIT_ASSERT_NOT_NULL(test, fixture.nodes);
	wheel_init(fixture.wheel, now);
	for (i = 0; i < nr; i++)
		wheel_node_init(&fixture.nodes[i]);
	return fixture;
}

static void check(struct fixture *fixture)
{
	KUNIT_ASSERT_STREQ(fixture->test, wheel_check(fixture->wheel) ?: "holds",
			   "holds");
}

/* With many nodes the check takes long. */
static void check_at_times(struct fixture *fixture)
{
	if (fixture->wheel->armed < 1000 || fixture->stops % 256 == 0)
		check(fixture);
}

/* Advance towards a tick; true: the budget was not enough. */
static bool advance(struct fixture *fixture, u64 now, unsigned int budget,
		    struct list_head *out)
{
	return wheel_advance(fixture->wheel, now, &budget, out);
}

static u64 moves(const struct fixture *fixture)
{
	return fixture->wheel->cascaded + fixture->wheel->prefetched;
}

/*
 * Advance as the owner of a wheel does in one hold of its lock; true: there is more to do.
 */
static bool hold(struct fixture *fixture, u64 now, struct list_head *out)
{
	u64 before = moves(fixture) - fixture->wheel->armed;
	unsigned int budget = 64;
	bool more = wheel_advance(fixture->wheel, now, &budget, out) ||
		    wheel_prefetch(fixture->wheel, now, &budget);

	KUNIT_ASSERT_EQ(fixture->test, 64ULL - budget,
			moves(fixture) - fixture->wheel->armed - before);
	return more;
}

/* Advance to the next tick with work and do all of it; nodes that come out go to @out. */
static void hop(struct fixture *fixture, struct list_head *out)
{
	u64 next = wheel_next(fixture->wheel), armed = fixture->wheel->armed;
	u64 before = moves(fixture), moved;
	bool more;

	fixture->stops++;
	do {
		bool first = fixture->wheel->armed == armed;

		moved = moves(fixture) - before - fixture->wheel->cascaded;
		more = hold(fixture, next, out);
		moved += fixture->wheel->cascaded;
		if (first && fixture->wheel->armed < armed)
			fixture->most_before_due = max(fixture->most_before_due,
						       moved);
		check_at_times(fixture);
	} while (more);
	KUNIT_ASSERT_GT(fixture->test, wheel_next(fixture->wheel), next);
	if (fixture->wheel->armed == armed)
		fixture->extra++;
}

static void hop_until_empty(struct fixture *fixture, struct list_head *out)
{
	while (fixture->wheel->armed)
		hop(fixture, out);
}

/* Take the first node off a list and return its index. */
static long pop(struct fixture *fixture, struct list_head *out)
{
	struct wheel_node *node =
		list_first_entry_or_null(out, struct wheel_node, list);

	if (!node)
		return -1;
	wheel_del(fixture->wheel, node);
	return node - fixture->nodes;
}

/* --- against a model -------------------------------------------------------- */

static void wheel_agrees_with_a_sorted_array(struct kunit *test)
{
	struct model_generator generator = {
		.source.draw = model_generate,
		.seed = seed_of(test),
	};
	struct wheel_model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	const char *broken;
	unsigned int step;

	KUNIT_ASSERT_NOT_NULL(test, model);
	model_init(model, &generator.source);
	for (step = 0; step < rounds_of(MODEL_STEPS); step++) {
		if (!model_step(model, &broken)) {
			KUNIT_FAIL(test, "step %u: %s\n", step, broken);
			return;
		}
		if (step % 1024 == 0)
			cond_resched();
	}
}

/* --- ticks and their order -------------------------------------------------- */

static void empty_wheel_has_no_next_tick(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 1, 1000);

	KUNIT_EXPECT_EQ(test, wheel_next(fixture.wheel), WHEEL_NEVER);
	wheel_add(fixture.wheel, &fixture.nodes[0], 5000, 1000);
	KUNIT_EXPECT_EQ(test, wheel_next(fixture.wheel), 5000ULL);
	wheel_del(fixture.wheel, &fixture.nodes[0]);
	KUNIT_EXPECT_EQ(test, wheel_next(fixture.wheel), WHEEL_NEVER);
	check(&fixture);
}

static void lone_node_at_any_distance_takes_one_stop(struct kunit *test)
{
	unsigned int bits;

	for (bits = 0; bits <= 53; bits++) {
		u64 now = BIT_ULL(bits) - 1, due = now + BIT_ULL(bits);
		struct fixture fixture = fixture_make(test, 1, now);
		LIST_HEAD(out);

		wheel_add(fixture.wheel, &fixture.nodes[0], due, now);
		KUNIT_EXPECT_EQ(test, wheel_next(fixture.wheel), due);
		hop(&fixture, &out);
		KUNIT_EXPECT_EQ(test, pop(&fixture, &out), 0L);
		KUNIT_EXPECT_EQ(test, fixture.wheel->clk, due);
		KUNIT_EXPECT_LE(test, fixture.wheel->cascaded, 1ULL);
	}
}

static void node_does_not_come_out_before_its_tick(struct kunit *test)
{
	static const u64 distances[] = { 1, 31, 32, 63, 64, 65, 2047, 2048, 2049,
					 65535, 1ULL << 40 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(distances); i++) {
		struct fixture fixture = fixture_make(test, 1, 7777);
		u64 due = 7777 + distances[i];
		LIST_HEAD(out);

		wheel_add(fixture.wheel, &fixture.nodes[0], due, 7777);
		KUNIT_EXPECT_FALSE(test, advance(&fixture, due - 1, 64, &out));
		KUNIT_EXPECT_TRUE(test, list_empty(&out));
		check(&fixture);
		advance(&fixture, due, 64, &out);
		KUNIT_EXPECT_EQ(test, pop(&fixture, &out), 0L);
	}
}

/* The example at the head of wheel.c, "The order". */
static void older_node_that_falls_past_a_younger_one_comes_out_first(struct kunit *test)
{
	enum { Z, X, Y };
	struct fixture fixture = fixture_make(test, 3, 0);
	LIST_HEAD(out);

	wheel_add(fixture.wheel, &fixture.nodes[Z], 2050, 0);
	wheel_add(fixture.wheel, &fixture.nodes[X], 2100, 0);
	wheel_add(fixture.wheel, &fixture.nodes[Y], 2100, 100);
	hop_until_empty(&fixture, &out);
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), (long)Z);
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), (long)X);
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), (long)Y);
}

static void equal_ticks_come_out_in_the_order_of_arming(struct kunit *test)
{
	const u64 due = 1000000;
	struct fixture fixture = fixture_make(test, 600, 0);
	LIST_HEAD(out);
	long i;

	/* Arm from nearer and nearer ticks, so that nodes are on every level. */
	for (i = 0; i < 600; i++)
		wheel_add(fixture.wheel, &fixture.nodes[i], due,
			  due - (due >> (i / 30)));
	check(&fixture);
	hop_until_empty(&fixture, &out);
	KUNIT_EXPECT_EQ(test, fixture.stops, 1U);
	for (i = 0; i < 600; i++)
		KUNIT_ASSERT_EQ(test, pop(&fixture, &out), i);
}

static void node_armed_while_its_tick_is_run_comes_out_last(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 101, 0);
	LIST_HEAD(out);
	long i;

	for (i = 0; i < 100; i++)
		wheel_add(fixture.wheel, &fixture.nodes[i], 5000, 0);
	KUNIT_EXPECT_TRUE(test, advance(&fixture, 5000, 150, &out));
	wheel_add(fixture.wheel, &fixture.nodes[100], 5000, 5000);
	check(&fixture);
	hop_until_empty(&fixture, &out);
	for (i = 0; i <= 100; i++)
		KUNIT_ASSERT_EQ(test, pop(&fixture, &out), i);
}

/* --- what it costs ---------------------------------------------------------- */

static void advance_touches_no_more_nodes_than_its_budget(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 1000, 0);
	unsigned int i, out_before = 0, calls = 0;
	LIST_HEAD(out);
	bool more;

	for (i = 0; i < 1000; i++)
		wheel_add(fixture.wheel, &fixture.nodes[i], 3000000, 0);
	do {
		u64 cascaded = fixture.wheel->cascaded;
		u64 armed = fixture.wheel->armed;

		more = advance(&fixture, 3000000, 64, &out);
		KUNIT_ASSERT_LE(test, fixture.wheel->cascaded - cascaded +
				armed - fixture.wheel->armed, 64ULL);
		check(&fixture);
		calls++;
	} while (more);
	KUNIT_EXPECT_GE(test, calls, 2000U / 64);
	while (pop(&fixture, &out) >= 0)
		out_before++;
	KUNIT_EXPECT_EQ(test, out_before, 1000U);
}

static void each_distinct_tick_takes_one_stop(struct kunit *test)
{
	struct model_generator generator = { .seed = 42 };
	struct fixture fixture = fixture_make(test, 2000, 0);
	unsigned int i, distinct = 0;
	u64 last = WHEEL_NEVER;
	LIST_HEAD(out);
	long index;

	for (i = 0; i < 2000; i++) {
		u64 number;

		model_generate(&generator.source, &number);
		wheel_add(fixture.wheel, &fixture.nodes[i], number % BIT(20), 0);
	}
	hop_until_empty(&fixture, &out);
	while ((index = pop(&fixture, &out)) >= 0) {
		distinct += wheel_due(&fixture.nodes[index]) != last;
		last = wheel_due(&fixture.nodes[index]);
	}
	KUNIT_EXPECT_EQ(test, fixture.stops, distinct);
}

static void cancelled_node_is_never_moved(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 1000, 0);
	LIST_HEAD(out);
	long i;

	for (i = 0; i < 1000; i++)
		wheel_add(fixture.wheel, &fixture.nodes[i], 100000 + i, 0);
	for (i = 0; i < 1000; i++)
		wheel_del(fixture.wheel, &fixture.nodes[i]);
	KUNIT_EXPECT_FALSE(test, advance(&fixture, 200000, 64, &out));
	KUNIT_EXPECT_EQ(test, fixture.wheel->cascaded, 0ULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&out));
	check(&fixture);
}

static void node_that_came_out_can_be_taken_off_the_list(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 3, 0);
	LIST_HEAD(out);
	long i;

	for (i = 0; i < 3; i++)
		wheel_add(fixture.wheel, &fixture.nodes[i], 10, 0);
	advance(&fixture, 10, 64, &out);
	wheel_del(fixture.wheel, &fixture.nodes[1]);
	KUNIT_EXPECT_FALSE(test, wheel_queued(&fixture.nodes[1]));
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), 0L);
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), 2L);
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), -1L);
}

static void wheel_that_lags_behind_places_nodes_low(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 1, 0);

	wheel_add(fixture.wheel, &fixture.nodes[0], 1000010, 1000000);
	KUNIT_EXPECT_EQ(test, wheel_level(&fixture.nodes[0]), 0U);
	check(&fixture);
}

static void due_tick_that_has_passed_is_taken_as_the_current_one(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 1, 5000);
	LIST_HEAD(out);

	wheel_add(fixture.wheel, &fixture.nodes[0], 10, 5000);
	check(&fixture);
	advance(&fixture, 5000, 64, &out);
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), 0L);
}

/* --- prefetch --------------------------------------------------------------- */

/* Arm nodes evenly in [@first, @first + @span), in a random order. */
static void arm_evenly(struct fixture *fixture, unsigned int nr, u64 first, u64 span)
{
	struct model_generator generator = { .seed = 42 };
	unsigned int i;

	for (i = 0; i < nr; i++) {
		u64 number;

		model_generate(&generator.source, &number);
		wheel_add(fixture->wheel, &fixture->nodes[i], first + number % span,
			  fixture->wheel->clk);
	}
}

/* Count the distinct due ticks of nodes on a list, which is in order. */
static unsigned int count_ticks(struct fixture *fixture, struct list_head *out)
{
	unsigned int distinct = 0;
	u64 last = WHEEL_NEVER;
	long i;

	while ((i = pop(fixture, out)) >= 0) {
		u64 due = wheel_due(&fixture->nodes[i]);

		KUNIT_ASSERT_TRUE(fixture->test, last == WHEEL_NEVER || last <= due);
		distinct += due != last;
		last = due;
	}
	return distinct;
}

/* Slot 40 of level 2, which begins at 40960. */
#define SLOT_BEGIN	(40ULL << 10)
#define SLOT_TICKS	BIT_ULL(10)

static void crowded_slot_is_moved_down_in_the_window_before_its_own(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 100, 0);
	LIST_HEAD(out);

	arm_evenly(&fixture, 100, SLOT_BEGIN, SLOT_TICKS);
	KUNIT_EXPECT_FALSE(test, hold(&fixture, SLOT_BEGIN - SLOT_TICKS - 1, &out));
	KUNIT_EXPECT_EQ(test, moves(&fixture), 0ULL);
	KUNIT_EXPECT_FALSE(test, hold(&fixture, SLOT_BEGIN - SLOT_TICKS, &out));
	KUNIT_EXPECT_EQ(test, fixture.wheel->prefetched, 64ULL);
	check(&fixture);
	/* The nodes that are left do not make the slot crowded. */
	KUNIT_EXPECT_FALSE(test, hold(&fixture, SLOT_BEGIN - SLOT_TICKS, &out));
	KUNIT_EXPECT_EQ(test, fixture.wheel->prefetched, 64ULL);
	KUNIT_EXPECT_TRUE(test, list_empty(&out));
	hop_until_empty(&fixture, &out);
	KUNIT_EXPECT_EQ(test, fixture.extra, 0U);
}

static void crowded_slot_that_is_not_urgent_forces_no_wakeup(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 256, 0);
	LIST_HEAD(out);

	arm_evenly(&fixture, 256, SLOT_BEGIN, SLOT_TICKS);
	KUNIT_EXPECT_GE(test, wheel_next(fixture.wheel), SLOT_BEGIN);
	hop_until_empty(&fixture, &out);
	KUNIT_EXPECT_EQ(test, fixture.extra, 0U);
	KUNIT_EXPECT_EQ(test, fixture.stops, count_ticks(&fixture, &out));
}

static void urgent_slot_forces_wakeups_as_late_as_they_can_be(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 1793, 0);
	LIST_HEAD(out);

	arm_evenly(&fixture, 1793, SLOT_BEGIN, SLOT_TICKS);
	/* Eight rounds of 256, the last one of a single node and a slot of level 1. */
	KUNIT_EXPECT_EQ(test, wheel_next(fixture.wheel), SLOT_BEGIN - 32 - 8);
	hop(&fixture, &out);
	KUNIT_EXPECT_EQ(test, fixture.wheel->prefetched, 256ULL);
	KUNIT_EXPECT_EQ(test, wheel_next(fixture.wheel), SLOT_BEGIN - 32 - 7);
	hop_until_empty(&fixture, &out);
	KUNIT_EXPECT_GT(test, fixture.extra, 0U);
	KUNIT_EXPECT_LE(test, fixture.extra * 256ULL, fixture.wheel->prefetched);
	KUNIT_EXPECT_EQ(test, fixture.stops - fixture.extra,
			count_ticks(&fixture, &out));
}

static void add_that_makes_a_slot_urgent_tells_when(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 600, 0);
	unsigned int i;

	for (i = 0; i < 600; i++) {
		u64 expected = SLOT_BEGIN + i;
		u64 wanted = wheel_add(fixture.wheel, &fixture.nodes[i],
				       SLOT_BEGIN + i, 0);

		if (i == 256)
			expected = SLOT_BEGIN - 32 - 2;
		else if (i == 512)
			expected = SLOT_BEGIN - 32 - 3;
		KUNIT_ASSERT_EQ(test, wanted, expected);
	}
	KUNIT_EXPECT_EQ(test, wheel_next(fixture.wheel), SLOT_BEGIN - 32 - 3);
}

/* A slot reached after its forced tick, however late, is moved at once, in parts. */
static void urgent_slot_that_is_reached_late_is_moved_in_holds(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 2000, 0);
	unsigned int holds = 1;
	LIST_HEAD(out);

	arm_evenly(&fixture, 2000, SLOT_BEGIN, SLOT_TICKS);
	while (hold(&fixture, SLOT_BEGIN - 1, &out)) {
		KUNIT_ASSERT_EQ(test, wheel_next(fixture.wheel), SLOT_BEGIN - 1);
		KUNIT_ASSERT_LT(test, holds++, 4000U / 64);
		check(&fixture);
	}
	KUNIT_EXPECT_LE(test, fixture.wheel->slots[2][40].count, 64U);
	KUNIT_EXPECT_TRUE(test, list_empty(&out));
}

/* A node that becomes due during a round comes out in the next hold. */
static void due_node_comes_out_before_a_round_goes_on(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 2001, 0);
	u64 forced = SLOT_BEGIN - 32 - 8;
	LIST_HEAD(out);

	arm_evenly(&fixture, 2000, SLOT_BEGIN, SLOT_TICKS);
	KUNIT_EXPECT_TRUE(test, hold(&fixture, forced, &out));
	wheel_add(fixture.wheel, &fixture.nodes[2000], forced, forced);
	KUNIT_EXPECT_TRUE(test, hold(&fixture, forced, &out));
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), 2000L);
}

static void uniform_load_needs_no_extra_wakeup(struct kunit *test)
{
	static const unsigned int bits[] = { 10, 13, 20 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bits); i++) {
		struct fixture fixture = fixture_make(test, 8000, 12345);
		LIST_HEAD(out);

		arm_evenly(&fixture, 8000, 12346, BIT_ULL(bits[i]));
		hop_until_empty(&fixture, &out);
		KUNIT_EXPECT_EQ(test, fixture.extra, 0U);
		KUNIT_EXPECT_EQ(test, fixture.stops, count_ticks(&fixture, &out));
		KUNIT_EXPECT_LE(test, fixture.most_before_due, 256ULL);
	}
}

static void few_nodes_are_moved_before_one_that_is_due(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 20000, 0);
	LIST_HEAD(out);

	/* All nodes are in one slot of level 3. */
	arm_evenly(&fixture, 20000, 40ULL << 15, BIT_ULL(15));
	hop_until_empty(&fixture, &out);
	KUNIT_EXPECT_LE(test, fixture.most_before_due, 256ULL);
	KUNIT_EXPECT_LE(test, fixture.extra * 256ULL, fixture.wheel->prefetched);
	KUNIT_EXPECT_EQ(test, fixture.stops - fixture.extra,
			count_ticks(&fixture, &out));
}

/* Of one tick, the younger nodes are moved down first. */
static void half_prefetched_slot_keeps_the_order_of_a_tick(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 300, 0);
	LIST_HEAD(out);
	long i;

	for (i = 0; i < 200; i++)
		wheel_add(fixture.wheel, &fixture.nodes[i], SLOT_BEGIN + 500, 0);
	hold(&fixture, SLOT_BEGIN - 500, &out);
	KUNIT_EXPECT_EQ(test, fixture.wheel->slots[2][40].count, 200U - 64);
	for (i = 200; i < 300; i++)
		wheel_add(fixture.wheel, &fixture.nodes[i], SLOT_BEGIN + 500,
			  SLOT_BEGIN - 500);
	check(&fixture);
	hop_until_empty(&fixture, &out);
	for (i = 0; i < 300; i++)
		KUNIT_ASSERT_EQ(test, pop(&fixture, &out), i);
}

/* --- slack ------------------------------------------------------------------ */

static void roundest_tick_is_a_multiple_of_the_power_of_two_that_fits(struct kunit *test)
{
	static const struct {
		u64 first, last, roundest;
	} ranges[] = {
		{ 0, 0, 0 },
		{ 7, 7, 7 },
		{ 7, 8, 8 },
		{ 6, 8, 6 },	/* of two, though 8 is a multiple of four */
		{ 5, 8, 8 },
		{ 8, 15, 8 },
		{ 9, 15, 12 },
		{ 9, 16, 16 },
		{ 1000, 1127, 1024 },
		{ 1000, 1511, 1024 },
		{ 1025, 1536, 1536 },
		{ 1, BIT_ULL(40), BIT_ULL(40) },
		{ 1, BIT_ULL(40) - 1, BIT_ULL(39) },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		KUNIT_EXPECT_EQ(test, wheel_roundest(ranges[i].first, ranges[i].last),
				ranges[i].roundest);
}

static void roundest_tick_never_leaves_its_range(struct kunit *test)
{
	unsigned int low, high;

	KUNIT_EXPECT_EQ(test, wheel_roundest(U64_MAX, U64_MAX), U64_MAX);
	KUNIT_EXPECT_EQ(test, wheel_roundest(1, U64_MAX), BIT_ULL(63));
	for (low = 0; low < 64; low++) {
		for (high = 0; high < 64; high++) {
			u64 first = U64_MAX << low, last = U64_MAX - (BIT_ULL(high) - 1);
			u64 tick;

			if (last < first)
				continue;
			tick = wheel_roundest(first, last);
			KUNIT_ASSERT_GE(test, tick, first);
			KUNIT_ASSERT_LE(test, tick, last);
			KUNIT_ASSERT_EQ(test, tick, model_roundest(first, last));
		}
	}
}

/* The purpose of slack: one stop for each window of its size. */
static void nodes_with_slack_share_their_stops(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 2000, 0);
	LIST_HEAD(out);
	long i;

	for (i = 0; i < 2000; i++)
		wheel_add(fixture.wheel, &fixture.nodes[i],
			  wheel_roundest(1 + i, 1 + i + 127), 0);
	check(&fixture);
	hop_until_empty(&fixture, &out);
	KUNIT_EXPECT_EQ(test, fixture.stops, DIV_ROUND_UP(2000U, 128));
	for (i = 0; i < 2000; i++) {
		KUNIT_ASSERT_EQ(test, pop(&fixture, &out), i);
		KUNIT_ASSERT_GE(test, wheel_due(&fixture.nodes[i]), 1ULL + i);
		KUNIT_ASSERT_LE(test, wheel_due(&fixture.nodes[i]), 1ULL + i + 127);
	}
}

/* --- a clock that is set back, a CPU that goes ------------------------------ */

/* This happens when a clock is set back, and when a CPU goes offline. */
static void nodes_that_move_to_another_wheel_come_out_before_younger_ones(struct kunit *test)
{
	enum { OLD = 300, YOUNG = 100 };
	const u64 due = 1000000;
	struct fixture fixture = fixture_make(test, OLD + YOUNG, 0);
	struct wheel *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	LIST_HEAD(out);
	long i;

	KUNIT_ASSERT_NOT_NULL(test, other);
	wheel_init(other, 0);
	/* Arm from nearer and nearer ticks, so that both wheels have nodes on every level. */
	for (i = 0; i < OLD; i++)
		wheel_add(other, &fixture.nodes[i], due, due - (due >> (i / 15)));
	for (i = OLD; i < OLD + YOUNG; i++)
		wheel_add(fixture.wheel, &fixture.nodes[i], due,
			  due - (due >> ((i - OLD) / 5)));
	while (other->armed) {
		struct wheel_node *node = wheel_pop(other);

		KUNIT_ASSERT_FALSE(test, wheel_queued(node));
		wheel_add_older(fixture.wheel, node, due, 0);
		check(&fixture);
	}
	KUNIT_EXPECT_EQ(test, wheel_next(other), WHEEL_NEVER);
	hop_until_empty(&fixture, &out);
	KUNIT_EXPECT_EQ(test, fixture.stops - fixture.extra, 1U);
	for (i = 0; i < OLD + YOUNG; i++)
		KUNIT_ASSERT_EQ(test, pop(&fixture, &out), i);
}

static void empty_wheel_can_stand_at_an_earlier_tick(struct kunit *test)
{
	struct fixture fixture = fixture_make(test, 1, 0);
	LIST_HEAD(out);

	wheel_add(fixture.wheel, &fixture.nodes[0], 1ULL << 40, 0);
	hop(&fixture, &out);
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), 0L);
	wheel_restart(fixture.wheel, 500);
	wheel_add(fixture.wheel, &fixture.nodes[0], 510, 500);
	KUNIT_EXPECT_EQ(test, wheel_next(fixture.wheel), 510ULL);
	check(&fixture);
	KUNIT_EXPECT_FALSE(test, advance(&fixture, 509, 64, &out));
	KUNIT_EXPECT_TRUE(test, list_empty(&out));
	hop(&fixture, &out);
	KUNIT_EXPECT_EQ(test, pop(&fixture, &out), 0L);
}

static struct kunit_case wheel_cases[] = {
	KUNIT_CASE(wheel_agrees_with_a_sorted_array),
	KUNIT_CASE(empty_wheel_has_no_next_tick),
	KUNIT_CASE(lone_node_at_any_distance_takes_one_stop),
	KUNIT_CASE(node_does_not_come_out_before_its_tick),
	KUNIT_CASE(older_node_that_falls_past_a_younger_one_comes_out_first),
	KUNIT_CASE(equal_ticks_come_out_in_the_order_of_arming),
	KUNIT_CASE(node_armed_while_its_tick_is_run_comes_out_last),
	KUNIT_CASE(advance_touches_no_more_nodes_than_its_budget),
	KUNIT_CASE(each_distinct_tick_takes_one_stop),
	KUNIT_CASE(cancelled_node_is_never_moved),
	KUNIT_CASE(node_that_came_out_can_be_taken_off_the_list),
	KUNIT_CASE(wheel_that_lags_behind_places_nodes_low),
	KUNIT_CASE(due_tick_that_has_passed_is_taken_as_the_current_one),
	KUNIT_CASE(crowded_slot_is_moved_down_in_the_window_before_its_own),
	KUNIT_CASE(crowded_slot_that_is_not_urgent_forces_no_wakeup),
	KUNIT_CASE(urgent_slot_forces_wakeups_as_late_as_they_can_be),
	KUNIT_CASE(add_that_makes_a_slot_urgent_tells_when),
	KUNIT_CASE(urgent_slot_that_is_reached_late_is_moved_in_holds),
	KUNIT_CASE(due_node_comes_out_before_a_round_goes_on),
	KUNIT_CASE(uniform_load_needs_no_extra_wakeup),
	KUNIT_CASE(few_nodes_are_moved_before_one_that_is_due),
	KUNIT_CASE(half_prefetched_slot_keeps_the_order_of_a_tick),
	KUNIT_CASE(roundest_tick_is_a_multiple_of_the_power_of_two_that_fits),
	KUNIT_CASE(roundest_tick_never_leaves_its_range),
	KUNIT_CASE(nodes_with_slack_share_their_stops),
	KUNIT_CASE(nodes_that_move_to_another_wheel_come_out_before_younger_ones),
	KUNIT_CASE(empty_wheel_can_stand_at_an_earlier_tick),
	{}
};

static struct kunit_suite wheel_suite = {
	.name = "twheel_wheel",
	.test_cases = wheel_cases,
};

kunit_test_suite(wheel_suite);

MODULE_DESCRIPTION("KUnit suite of twheel's wheel");
MODULE_LICENSE("GPL");
