// SPDX-License-Identifier: GPL-2.0
/* How much later than asked an event may be: its own slack and its context's. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "util.h"

/* A slack of 2^6 - 1 ticks holds exactly one multiple of 2^6 ticks. */
#define COARSE_TICKS	64

static struct twheel_cmd make_slack_add(__u16 flags, __u64 time_ns,
					__u64 slack_ns, __u64 data)
{
	struct twheel_cmd cmd = make_add(flags, time_ns, data);

	cmd.slack_ns = slack_ns;
	return cmd;
}

static __u64 query_slack(int fd, __u64 id)
{
	struct twheel_cmd answer;

	ASSERT_GT(query(fd, id, &answer), 0);
	return answer.slack_ns;
}

static int open_with_slack(__u64 slack_ns)
{
	struct twheel_config config = default_config();

	config.slack_ns = slack_ns;
	return device_open_configured(O_RDWR | O_NONBLOCK, &config);
}

static __u64 round_up(__u64 value, __u64 to)
{
	return (value + to - 1) / to * to;
}

#define NR_COARSE	(3 * COARSE_TICKS)

/* Arm events, each due a tick later; returns when the first one is, or 0: it was by then. */
static __u64 arm_at_each_tick(int fd, __u64 slack_ns, __u64 soon_ns)
{
	__u64 tick_ns = get_info(fd).tick_ns;
	__u64 start_ns = round_up(monotonic_ns() + soon_ns, tick_ns);
	__u64 ids[NR_COARSE];
	size_t i;

	for (i = 0; i < NR_COARSE; i++)
		ids[i] = add_by(fd, make_slack_add(TWHEEL_ABS, start_ns + i * tick_ns,
						   slack_ns, i));
	if (monotonic_ns() < start_ns)
		return start_ns;
	/* An event armed for a past time does not wait for its slack. */
	for (i = 0; i < NR_COARSE; i++)
		ASSERT_EQ(cancel(fd, ids[i]), 0);
	return 0;
}

/*
 * Check that events of a coarse slack, each due at another tick, wait for the
 * one round tick that the slack lets them reach.
 */
static void check_wait_for_round_tick(int fd, __u64 slack_ns)
{
	const size_t nr = NR_COARSE;
	__u64 tick_ns = get_info(fd).tick_ns;
	__u64 coarse_ns = COARSE_TICKS * tick_ns;
	__u64 start_ns;
	size_t i;

	for_each_attempt(soon_ns, SOON_NS) {
		start_ns = arm_at_each_tick(fd, slack_ns, soon_ns);
		if (start_ns)
			break;
	}
	for (i = 0; i < nr; i++) {
		struct twheel_record record = wait_record(fd);

		test_about("event %llu", record.data);
		ASSERT_EQ(record.due_ns, start_ns + record.data * tick_ns);
		ASSERT_GE(record.fired_ns, round_up(record.due_ns, coarse_ns));
	}
	check_nothing_ready(fd);
}

/* --- when it expires -------------------------------------------------------- */

TEST(slack_lets_an_event_wait_for_the_round_tick_in_its_reach)
{
	int fd = device_open_nonblock();

	check_wait_for_round_tick(fd, (COARSE_TICKS - 1) *
				  get_info(fd).tick_ns);
}

TEST(slack_of_a_context_lets_every_event_wait_for_the_round_tick)
{
	__u64 tick_ns = get_info(device_open_nonblock()).tick_ns;

	check_wait_for_round_tick(open_with_slack((COARSE_TICKS - 1) * tick_ns),
				  0);
}

TEST(slack_of_an_event_counts_where_it_is_more_than_that_of_its_context)
{
	__u64 tick_ns = get_info(device_open_nonblock()).tick_ns;

	check_wait_for_round_tick(open_with_slack(tick_ns),
				  (COARSE_TICKS - 1) * tick_ns);
}

TEST(slack_of_a_context_counts_where_it_is_more_than_that_of_an_event)
{
	__u64 tick_ns = get_info(device_open_nonblock()).tick_ns;

	check_wait_for_round_tick(open_with_slack((COARSE_TICKS - 1) * tick_ns),
				  tick_ns);
}

TEST(slack_lets_neighbours_share_an_interrupt)
{
	const size_t nr = 2 * COARSE_TICKS;
	int fd = device_open_nonblock();
	__u64 tick_ns = get_info(fd).tick_ns, start_ns;
	long long interrupts;
	size_t i;

	need_debugfs();
	pin_to_this_cpu();
	start_ns = monotonic_ns() + 10 * SOON_NS;
	interrupts = interrupts_on_machine();
	for (i = 0; i < nr; i++)
		add_by(fd, make_slack_add(TWHEEL_ABS, start_ns + i * tick_ns,
					  (2 * nr - 1) * tick_ns, i));
	for (i = 0; i < nr; i++)
		wait_record(fd);

	/* Two round ticks; a slow machine may need several runs for each. */
	ASSERT_LE(interrupts_on_machine() - interrupts, nr / 4);
}

TEST(slack_never_makes_an_event_early)
{
	static const __u64 slacks[] = {
		1, 1000, 65536, NSEC_PER_MSEC, 3 * NSEC_PER_MSEC + 777,
		10 * NSEC_PER_MSEC, 100 * NSEC_PER_MSEC,
	};
	int fd = device_open_nonblock();
	__u64 seed = 5;
	size_t i;

	for (i = 0; i < 2000; i++) {
		__u64 delay_ns = next_random(&seed) % (50 * NSEC_PER_MSEC);
		__u64 slack_ns = slacks[i % ARRAY_SIZE(slacks)];

		add_by(fd, make_slack_add(TWHEEL_ABS,
					  monotonic_ns() + delay_ns, slack_ns,
					  i));
	}
	for (i = 0; i < 2000; i++)
		wait_record(fd);
	check_nothing_ready(fd);
}

TEST(slack_does_not_change_when_an_event_says_it_is_due)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS;
	__u64 id = add_by(fd, make_slack_add(TWHEEL_ABS, due_ns, SOON_NS, 1));

	ASSERT_EQ(query_time(fd, id), due_ns);
	ASSERT_EQ(list_one(fd, id).due_ns, due_ns);
	ASSERT_EQ(wait_record(fd).due_ns, due_ns);
}

TEST(slack_does_not_hold_up_what_is_past_due_already)
{
	static const __u64 slacks[] = { 1, NSEC_PER_SEC, FAR_NS, ~0ULL };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(slacks); i++) {
		test_about("slack %llu", slacks[i]);
		add_by(fd, make_slack_add(TWHEEL_ABS, 1, slacks[i], i));
		ASSERT_EQ(poll_events(fd, 0), POLLIN);
		ASSERT_EQ(wait_record(fd).due_ns, 1);
		add_by(fd, make_slack_add(0, 0, slacks[i], i));
		ASSERT_EQ(poll_events(fd, 0), POLLIN);
		wait_record(fd);
	}
}

TEST(slack_may_be_of_any_length)
{
	static const __u64 slacks[] = {
		FAR_NS, NEVER_NS - 1, NEVER_NS, NEVER_NS + 1, ~0ULL - 1, ~0ULL,
	};
	static const __u64 dues[] = {
		FAR_NS, 1ULL << 62, NEVER_NS - 1, NEVER_NS, ~0ULL,
	};
	int fd = device_open_nonblock();
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(slacks); i++) {
		for (k = 0; k < ARRAY_SIZE(dues); k++) {
			__u64 id;

			test_about("slack %llu, due %llu", slacks[i], dues[k]);
			id = add_by(fd, make_slack_add(TWHEEL_ABS, dues[k],
						       slacks[i], i));
			ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
			ASSERT_EQ(query_slack(fd, id), slacks[i]);
			check_nothing_ready(fd);

			/* And it is not lost: */
			ASSERT_EQ(modify(fd, id, 0, NSEC_PER_MSEC), 0);
			ASSERT_EQ(wait_record(fd).id, id);
		}
	}
}

/* Two at each tick, of which the first one must not fall back; false: it was by then. */
static bool arm_pairs(int fd, struct twheel_cmd *cmds, size_t nr, __u64 soon_ns)
{
	__u64 tick_ns = get_info(fd).tick_ns;
	__u64 start_ns = round_up(monotonic_ns() + soon_ns, tick_ns);
	size_t i;

	for (i = 0; i < nr; i++)
		cmds[i] = make_slack_add(TWHEEL_ABS, start_ns + i / 2 * tick_ns,
					 i % 2 ? 0 : tick_ns - 1, i);
	ASSERT_EQ(submit(fd, cmds, nr), nr);
	return monotonic_ns() < start_ns;
}

TEST(slack_below_a_tick_changes_nothing)
{
	struct twheel_cmd cmds[200];
	int fd = device_open_nonblock();
	size_t i;

	pin_to_this_cpu();
	for_each_attempt(soon_ns, 10 * SOON_NS) {
		if (arm_pairs(fd, cmds, ARRAY_SIZE(cmds), soon_ns))
			break;
		for (i = 0; i < ARRAY_SIZE(cmds); i++)
			ASSERT_EQ(cancel(fd, cmds[i].id), 0);
	}
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		ASSERT_EQ(wait_record(fd).data, i);
}

/* --- what is told, and MODIFY ----------------------------------------------- */

TEST(query_and_list_say_the_slack_that_was_asked_for)
{
	static const __u64 slacks[] = { 0, 1, 12345, NSEC_PER_SEC, ~0ULL };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(slacks); i++) {
		__u64 id = add_by(fd, make_slack_add(0, FAR_NS, slacks[i], i));

		test_about("slack %llu", slacks[i]);
		ASSERT_EQ(query_slack(fd, id), slacks[i]);
		ASSERT_EQ(list_one(fd, id).slack_ns, slacks[i]);
	}
}

TEST(query_and_list_say_the_slack_of_the_context_where_it_is_more)
{
	static const __u64 slacks[] = { 0, 1, 999, 1000, 1001, NSEC_PER_SEC };
	int fd = open_with_slack(1000);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(slacks); i++) {
		__u64 id = add_by(fd, make_slack_add(0, FAR_NS, slacks[i], i));
		__u64 expected = slacks[i] > 1000 ? slacks[i] : 1000;

		test_about("slack %llu", slacks[i]);
		ASSERT_EQ(query_slack(fd, id), expected);
		ASSERT_EQ(list_one(fd, id).slack_ns, expected);
	}
}

TEST(query_of_a_ready_event_says_its_slack)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_slack_add(0, 0, 12345, 1));

	wait_readable(fd);
	ASSERT_EQ(query_slack(fd, id), 12345);
}

TEST(modify_replaces_the_slack)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_slack_add(0, FAR_NS, 12345, 1));
	struct twheel_cmd cmd = make_modify(id, 0, FAR_NS);

	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_EQ(query_slack(fd, id), 0);
	cmd.slack_ns = 777;
	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_EQ(query_slack(fd, id), 777);
	cmd.time_ns = 0;
	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_EQ(wait_record(fd).id, id);
}

TEST(periodic_event_with_slack_stays_on_its_grid)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS, interval_ns = 1234567;
	struct twheel_cmd cmd = make_periodic(TWHEEL_ABS, due_ns, interval_ns,
					      1);
	unsigned int i;

	cmd.slack_ns = 5 * NSEC_PER_MSEC;
	cmd.id = add_by(fd, cmd);
	for (i = 0; i < 20; i++) {
		struct twheel_record record;

		wait_readable(fd);
		ASSERT_EQ(read_records(fd, &record, 1), 1);
		check_expired(&record);
		ASSERT_EQ(record.due_ns, due_ns);
		due_ns += record.count * interval_ns;
		ASSERT_EQ(query_slack(fd, cmd.id), cmd.slack_ns);
	}
}

/* --- interrupts ------------------------------------------------------------- */

/*
 * How many interrupts slack saves: SPREAD_EVENTS over SPREAD_NS.  tools/test/slack runs
 * these tests in a machine whose time stands still while it is busy.
 */
#define SPREAD_EVENTS	10000
#define SPREAD_NS	(10 * NSEC_PER_SEC)

static int compare_u64(const void *left, const void *right)
{
	const __u64 *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* How many ticks there are at which at least one of them is due. */
static size_t count_ticks(__u64 *dues, size_t nr, __u64 tick_ns)
{
	size_t ticks = 0, i;

	qsort(dues, nr, sizeof(*dues), compare_u64);
	for (i = 0; i < nr; i++)
		ticks += !i || round_up(dues[i], tick_ns) !=
			       round_up(dues[i - 1], tick_ns);
	return ticks;
}

/* Arm the events and read them all; return how many interrupts that took. */
static long long spread_interrupts(__u64 slack_ns, size_t *ticks)
{
	struct twheel_cmd *cmds = map_pages(SPREAD_EVENTS * sizeof(*cmds));
	__u64 *dues = map_pages(SPREAD_EVENTS * sizeof(*dues));
	int fd = device_open_nonblock();
	__u64 start_ns = monotonic_ns() + NSEC_PER_SEC, seed = 6;
	long long interrupts;
	size_t i;

	for (i = 0; i < SPREAD_EVENTS; i++) {
		dues[i] = start_ns + next_random(&seed) % SPREAD_NS;
		cmds[i] = make_slack_add(TWHEEL_ABS, dues[i], slack_ns, i);
	}
	interrupts = interrupts_on_machine();
	ASSERT_EQ(submit(fd, cmds, SPREAD_EVENTS), SPREAD_EVENTS);
	ASSERT_LT(monotonic_ns(), start_ns);
	for (i = 0; i < SPREAD_EVENTS; i++) {
		struct twheel_record record = wait_record(fd);

		ASSERT_EQ(record.due_ns, dues[record.data]);
		dues[record.data] = 0;
	}
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).finished, SPREAD_EVENTS);
	for (i = 0; i < SPREAD_EVENTS; i++) {
		ASSERT_EQ(dues[i], 0);
		dues[i] = cmds[i].time_ns;
	}
	*ticks = count_ticks(dues, SPREAD_EVENTS, get_info(fd).tick_ns);
	return interrupts_on_machine() - interrupts;
}

TEST_NAMED(slack_of_0_takes_an_interrupt_for_each_tick_with_an_event)
{
	size_t ticks;
	long long interrupts = spread_interrupts(0, &ticks);

	test_about("%zu ticks", ticks);
	ASSERT_LE(interrupts, ticks);
	ASSERT_GE(interrupts, ticks * 9 / 10);
}

TEST_NAMED(slack_of_10_ms_takes_at_most_1250_interrupts_for_10000_events)
{
	size_t ticks;

	ASSERT_LE(spread_interrupts(10 * NSEC_PER_MSEC, &ticks), 1250);
}
