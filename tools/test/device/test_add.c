// SPDX-License-Identifier: GPL-2.0
/* TWHEEL_OP_ADD: times, ids, data, order and the limit. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "util.h"

/* --- times ------------------------------------------------------------------ */

TEST(add_of_a_relative_time_is_due_that_long_after_the_call)
{
	static const __u64 delays[] = {
		1, 1000, NSEC_PER_MSEC, 10 * NSEC_PER_MSEC, 50 * NSEC_PER_MSEC,
	};
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		struct twheel_record record;
		__u64 before_ns, after_ns;

		test_about("delay %llu ns", delays[i]);
		before_ns = monotonic_ns();
		add(fd, 0, delays[i], 0);
		after_ns = monotonic_ns();
		record = wait_record(fd);
		ASSERT_LE(before_ns + delays[i], record.due_ns);
		ASSERT_LE(record.due_ns, after_ns + delays[i]);
	}
}

TEST(add_of_an_absolute_time_is_due_then)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS;

	add(fd, TWHEEL_ABS, due_ns, 0);
	ASSERT_EQ(wait_record(fd).due_ns, due_ns);
}

TEST(add_of_a_time_soon_is_armed_until_then)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS;
	__u64 id = add(fd, TWHEEL_ABS, due_ns, 0);
	int state;

	do {
		__u64 now_ns;

		state = query(fd, id, NULL);
		now_ns = monotonic_ns();
		ASSERT_GT(state, 0);
		if (state == TWHEEL_READY)
			ASSERT_GE(now_ns, due_ns);
	} while (state == TWHEEL_ARMED);
}

TEST(add_of_a_relative_zero_is_ready_at_once)
{
	int fd = device_open_nonblock();
	__u64 before_ns = monotonic_ns(), after_ns;
	struct twheel_record record;

	add(fd, 0, 0, 0);
	after_ns = monotonic_ns();
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	record = wait_record(fd);
	ASSERT_LE(before_ns, record.due_ns);
	ASSERT_LE(record.due_ns, after_ns);
}

TEST(add_of_an_absolute_past_is_ready_at_once)
{
	const __u64 pasts[] = { 0, 1, NSEC_PER_MSEC, monotonic_ns() - 1 };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pasts); i++) {
		test_about("time %llu", pasts[i]);
		add(fd, TWHEEL_ABS, pasts[i], 0);
		ASSERT_EQ(poll_events(fd, 0), POLLIN);
		ASSERT_EQ(wait_record(fd).due_ns, pasts[i]);
	}
}

static void check_never(__u16 flags, __u64 time_ns)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, flags, time_ns, 1);

	/* Another event comes and goes, and this one stays. */
	add(fd, 0, SOON_NS, 2);
	ASSERT_EQ(wait_record(fd).data, 2);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(get_counters(fd).armed, 1);
	ASSERT_EQ(cancel(fd, id), 0);
}

TEST(add_of_an_absolute_time_from_2_to_the_63_on_is_never)
{
	check_never(TWHEEL_ABS, NEVER_NS);
	check_never(TWHEEL_ABS, NEVER_NS + 1);
	check_never(TWHEEL_ABS, ~0ULL);
}

TEST(add_of_a_relative_time_from_2_to_the_63_on_is_never)
{
	check_never(0, NEVER_NS);
	check_never(0, NEVER_NS + 1);
	check_never(0, ~0ULL);
}

TEST(add_of_a_relative_time_that_overflows_is_never)
{
	check_never(0, NEVER_NS - 1);
	check_never(0, NEVER_NS - monotonic_ns());
	check_never(0, ~0ULL - monotonic_ns());
}

TEST(add_of_the_last_time_before_never_stays_armed)
{
	check_never(TWHEEL_ABS, NEVER_NS - 1);
}

TEST(add_of_every_distance_stays_armed)
{
	int fd = device_open_nonblock();
	__u64 now_ns = monotonic_ns();
	unsigned int bit;

	for (bit = 40; bit < 63; bit++) {
		__u64 due_ns = now_ns + (1ULL << bit);
		__u64 id;

		if (due_ns >= NEVER_NS)
			break;
		test_about("2^%u ns from now", bit);
		id = add(fd, TWHEEL_ABS, due_ns, bit);
		ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
		ASSERT_EQ(query_time(fd, id), due_ns);
	}
	check_nothing_ready(fd);
}

/* --- other fields ----------------------------------------------------------- */

TEST(add_gives_the_data_back_in_the_record)
{
	static const __u64 values[] = {
		0, 1, 1ULL << 32, 1ULL << 63, ~0ULL, 0x0123456789abcdefULL,
	};
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		test_about("data %#llx", values[i]);
		add(fd, 0, NSEC_PER_MSEC, values[i]);
		ASSERT_EQ(wait_record(fd).data, values[i]);
	}
}

TEST(add_gives_the_id_of_the_record)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, NSEC_PER_MSEC, 0);

	ASSERT_EQ(wait_record(fd).id, id);
}

TEST(add_takes_a_quorum_of_one_as_the_default)
{
	struct twheel_cmd cmd = make_add(0, NSEC_PER_MSEC, 0);
	int fd = device_open_nonblock();

	cmd.quorum = 1;
	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_EQ(wait_record(fd).id, cmd.id);
}

TEST(add_does_not_look_at_its_outputs)
{
	static const __u64 fills[] = { 0, 1, FILL_U64, ~0ULL };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fills); i++) {
		struct twheel_cmd cmd = make_add(0, FAR_NS, 0);

		cmd.id = fills[i];
		cmd.result = (__s32)fills[i];
		ASSERT_EQ(run(fd, &cmd), 0);
		ASSERT_EQ(query(fd, cmd.id, NULL), TWHEEL_ARMED);
	}
}

/* --- ids -------------------------------------------------------------------- */

static int compare_u64(const void *left, const void *right)
{
	const __u64 *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void check_distinct(__u64 *ids, size_t nr)
{
	size_t i;

	qsort(ids, nr, sizeof(*ids), compare_u64);
	ASSERT_NE(ids[0], 0);
	for (i = 1; i < nr; i++)
		ASSERT(ids[i] != ids[i - 1]);
}

TEST(add_gives_ids_that_differ)
{
	const size_t nr = test_count(100000);
	__u64 *ids = map_pages(nr * sizeof(*ids));

	add_many(device_open_nonblock(), 0, FAR_NS, nr, ids);
	check_distinct(ids, nr);
}

/*
 * Adds and cancels, @batch events at a time, so that the same few slots are
 * used over and over.
 */
static void check_ids_never_used_again(size_t nr, size_t batch)
{
	struct twheel_cmd *cmds = map_pages(batch * sizeof(*cmds));
	__u64 *ids = map_pages(nr * sizeof(*ids));
	int fd = device_open_nonblock();
	size_t done, i;

	for (done = 0; done < nr; done += batch) {
		add_many(fd, 0, FAR_NS, batch, ids + done);
		for (i = 0; i < batch; i++)
			cmds[i] = make_cmd(TWHEEL_OP_CANCEL, ids[done + i]);
		ASSERT_EQ(submit(fd, cmds, batch), batch);
		for (i = 0; i < batch; i++)
			ASSERT_EQ(cmds[i].result, 0);
	}
	add_many(fd, 0, FAR_NS, batch, NULL);
	for (done = 0; done < nr; done += batch) {
		for (i = 0; i < batch; i++)
			cmds[i] = make_cmd(TWHEEL_OP_CANCEL, ids[done + i]);
		ASSERT_EQ(submit(fd, cmds, batch), batch);
		for (i = 0; i < batch; i++)
			ASSERT_EQ(cmds[i].result, -ENOENT);
	}
	ASSERT_EQ(get_counters(fd).armed, batch);
	check_distinct(ids, nr);
}

TEST(ids_of_a_million_events_are_never_used_again)
{
	check_ids_never_used_again(test_count(1000000), 1000);
}

TEST(ids_of_a_slot_used_100000_times_are_never_used_again)
{
	check_ids_never_used_again(test_count(100000), 1);
}

TEST(ids_are_not_used_again_after_all_events_have_gone)
{
	const size_t nr = test_count(50000);
	__u64 *ids = map_pages(4 * nr * sizeof(*ids));
	struct twheel_cmd *cmds = map_pages(nr * sizeof(*cmds));
	int fd = device_open_nonblock();
	size_t round, i;

	for (round = 0; round < 4; round++) {
		add_many(fd, 0, FAR_NS, nr, ids + round * nr);
		for (i = 0; i < nr; i++)
			cmds[i] = make_cmd(TWHEEL_OP_CANCEL,
					   ids[round * nr + i]);
		ASSERT_EQ(submit(fd, cmds, nr), nr);
		ASSERT_EQ(get_counters(fd).armed, 0);
	}
	check_distinct(ids, 4 * nr);
}

/* --- order ------------------------------------------------------------------ */

/* One event of the tests of order: its due time and when it was armed. */
struct planned {
	__u64 due_ns;
	size_t number;
};

static __u64 tick_of(__u64 time_ns, __u64 tick_ns)
{
	return (time_ns + tick_ns - 1) / tick_ns;
}

/*
 * Arm @nr events from one CPU, due within @spread_ns from a moment on that is
 * not reached before all are armed.
 */
static void arm_planned(int fd, struct planned *plan, size_t nr,
			__u64 spread_ns)
{
	struct twheel_cmd *cmds = map_pages(nr * sizeof(*cmds));
	__u64 seed = 1;
	size_t i;

	pin_to_this_cpu();
	for_each_attempt(lead_ns, 5 * SOON_NS) {
		__u64 start_ns = monotonic_ns() + lead_ns;

		for (i = 0; i < nr; i++) {
			plan[i].number = i;
			plan[i].due_ns = start_ns +
					 next_random(&seed) % spread_ns;
			cmds[i] = make_add(TWHEEL_ABS, plan[i].due_ns, i);
		}
		ASSERT_EQ(submit(fd, cmds, nr), nr);
		if (monotonic_ns() < start_ns)
			return;
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(cmds[i].result, 0);
			ASSERT_EQ(cancel(fd, cmds[i].id), 0);
		}
	}
}

/* Check that the events come in the order of their ticks, and of arming. */
static void check_order(int fd, const struct planned *plan, size_t nr)
{
	__u64 tick_ns = get_info(fd).tick_ns;
	__u64 last_tick = 0, last_fired_ns = 0;
	size_t i, last_number = 0;

	for (i = 0; i < nr; i++) {
		struct twheel_record record = wait_record(fd);
		__u64 tick = tick_of(record.due_ns, tick_ns);

		test_about("record %zu", i);
		ASSERT_LT(record.data, nr);
		ASSERT_EQ(record.due_ns, plan[record.data].due_ns);
		ASSERT_GE(record.fired_ns, tick * tick_ns);
		ASSERT_GE(tick, last_tick);
		if (tick == last_tick)
			ASSERT_GT(record.data, last_number);
		ASSERT_GE(record.fired_ns, last_fired_ns);
		last_tick = tick;
		last_number = record.data;
		last_fired_ns = record.fired_ns;
	}
	check_nothing_ready(fd);
}

TEST(events_come_in_the_order_of_their_ticks)
{
	const size_t nr = 10000;
	struct planned *plan = map_pages(nr * sizeof(*plan));
	int fd = device_open_nonblock();

	arm_planned(fd, plan, nr, 400 * NSEC_PER_MSEC);
	check_order(fd, plan, nr);
}

TEST(events_of_one_tick_come_in_the_order_of_arming)
{
	const size_t nr = 10000;
	struct planned *plan = map_pages(nr * sizeof(*plan));
	int fd = device_open_nonblock();

	arm_planned(fd, plan, nr, 4 * get_info(fd).tick_ns);
	check_order(fd, plan, nr);
}

TEST(events_armed_at_different_distances_to_one_tick_come_in_that_order)
{
	int fd = device_open_nonblock();
	__u64 ids[2000];
	size_t i;

	/* One by one, while time goes by: they enter the wheel at many levels. */
	pin_to_this_cpu();
	for_each_attempt(lead_ns, 10 * SOON_NS) {
		__u64 due_ns = monotonic_ns() + lead_ns;

		for (i = 0; i < ARRAY_SIZE(ids); i++)
			ids[i] = add(fd, TWHEEL_ABS, due_ns, i);
		if (monotonic_ns() < due_ns)
			break;
		for (i = 0; i < ARRAY_SIZE(ids); i++)
			ASSERT_EQ(cancel(fd, ids[i]), 0);
	}
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(wait_record(fd).data, i);
}

/* --- limits ----------------------------------------------------------------- */

/* A context for at most @max_events events. */
static int open_limited(__u64 max_events)
{
	struct twheel_config config = default_config();
	int fd = device_open_nonblock();

	config.max_events = max_events;
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
	return fd;
}

static void check_full(int fd)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);

	check_refused(fd, &cmd, ENOSPC);
}

TEST(add_to_a_full_context_is_refused)
{
	static const __u64 limits[] = { 1, 2, 63, 64, 65, 1000 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		int fd = open_limited(limits[i]);

		test_about("limit %llu", limits[i]);
		add_many(fd, 0, FAR_NS, limits[i], NULL);
		check_full(fd);
		ASSERT_EQ(get_counters(fd).armed, limits[i]);
	}
}

TEST(add_of_more_than_the_limit_in_one_call_arms_up_to_it)
{
	struct twheel_cmd cmds[10];
	int fd = open_limited(6);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		cmds[i] = make_add(0, FAR_NS, i);
	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		ASSERT_EQ(cmds[i].result, i < 6 ? 0 : -ENOSPC);
}

TEST(add_works_again_after_a_cancel_made_room)
{
	int fd = open_limited(3);
	__u64 ids[3];

	add_many(fd, 0, FAR_NS, 3, ids);
	check_full(fd);
	ASSERT_EQ(cancel(fd, ids[1]), 0);
	add(fd, 0, FAR_NS, 0);
	check_full(fd);
}

TEST(add_counts_an_unread_event_to_the_limit)
{
	int fd = open_limited(3);

	add_many(fd, 0, 0, 3, NULL);
	wait_ready(fd, 3);
	check_full(fd);
}

TEST(add_works_again_after_a_read_made_room)
{
	int fd = open_limited(3);

	add_many(fd, 0, 0, 3, NULL);
	wait_ready(fd, 3);
	wait_record(fd);
	add(fd, 0, FAR_NS, 0);
	check_full(fd);
}

TEST(add_works_again_after_a_cancel_of_a_ready_event_made_room)
{
	int fd = open_limited(1);
	__u64 id = add(fd, 0, 0, 0);

	wait_readable(fd);
	check_full(fd);
	ASSERT_EQ(cancel(fd, id), 0);
	add(fd, 0, FAR_NS, 0);
	check_full(fd);
}
