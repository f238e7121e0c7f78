// SPDX-License-Identifier: GPL-2.0
/* TWHEEL_OP_MODIFY and TWHEEL_OP_QUERY. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "device.h"
#include "util.h"

/* Check that an event stays armed while a later one comes and goes. */
static void check_stays_armed(int fd, __u64 id)
{
	add(fd, 0, 2 * SOON_NS, 99);
	ASSERT_EQ(wait_record(fd).data, 99);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
}

TEST(modify_to_an_earlier_time)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	__u64 before_ns = monotonic_ns(), after_ns;
	struct twheel_record record;

	ASSERT_EQ(modify(fd, id, 0, SOON_NS), 0);
	after_ns = monotonic_ns();
	record = wait_record(fd);
	ASSERT_LE(before_ns + SOON_NS, record.due_ns);
	ASSERT_LE(record.due_ns, after_ns + SOON_NS);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.data, 1);
	check_nothing_ready(fd);
}

TEST(modify_to_a_later_time)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, SOON_NS, 1);

	ASSERT_EQ(modify(fd, id, 0, FAR_NS), 0);
	check_stays_armed(fd, id);
}

TEST(modify_to_an_absolute_time)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	__u64 due_ns = monotonic_ns() + SOON_NS;

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	ASSERT_EQ(wait_record(fd).due_ns, due_ns);
}

TEST(modify_to_its_own_time)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, SOON_NS, 1);
	__u64 due_ns = query_time(fd, id);

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	ASSERT_EQ(query_time(fd, id), due_ns);
	ASSERT_EQ(wait_record(fd).due_ns, due_ns);
	check_nothing_ready(fd);
}

TEST(modify_to_the_past_is_ready_at_once)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	struct twheel_record record;

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, 1), 0);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	record = wait_record(fd);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.due_ns, 1);
	check_nothing_ready(fd);
}

TEST(modify_to_a_relative_zero_is_ready_at_once)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);

	ASSERT_EQ(modify(fd, id, 0, 0), 0);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	ASSERT_EQ(wait_record(fd).id, id);
}

TEST(modify_to_never_and_back)
{
	static const struct {
		__u16 flags;
		__u64 time_ns;
	} nevers[] = {
		{ TWHEEL_ABS, NEVER_NS }, { TWHEEL_ABS, ~0ULL },
		{ 0, NEVER_NS - 1 }, { 0, ~0ULL },
	};
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nevers); i++) {
		__u64 id = add(fd, 0, SOON_NS, 1);

		test_about("never number %zu", i);
		ASSERT_EQ(modify(fd, id, nevers[i].flags, nevers[i].time_ns),
			  0);
		check_stays_armed(fd, id);
		ASSERT_EQ(modify(fd, id, 0, SOON_NS), 0);
		ASSERT_EQ(wait_record(fd).id, id);
	}
}

TEST(modify_keeps_the_data)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 0x1234);

	ASSERT_EQ(modify(fd, id, 0, 0), 0);
	ASSERT_EQ(wait_record(fd).data, 0x1234);
}

TEST(modify_with_set_data_replaces_the_data)
{
	static const __u64 values[] = { 0, 1, ~0ULL };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		__u64 id = add(fd, 0, FAR_NS, 0x1234);
		struct twheel_cmd cmd = make_modify(id, TWHEEL_SET_DATA, 0);

		test_about("data %#llx", values[i]);
		cmd.data = values[i];
		ASSERT_EQ(run(fd, &cmd), 0);
		ASSERT_EQ(wait_record(fd).data, values[i]);
	}
}

TEST(modify_of_a_ready_event_suppresses_its_record_and_arms_it_again)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 1);
	__u64 due_ns;

	wait_readable(fd);
	due_ns = monotonic_ns() + SOON_NS;
	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, FAR_NS + due_ns), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	ASSERT_EQ(wait_record(fd).due_ns, due_ns);
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).records, 1);
}

TEST(modify_of_a_ready_event_to_the_past_gives_one_record)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 1);
	struct twheel_record record;

	wait_readable(fd);
	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, 5), 0);
	record = wait_record(fd);
	ASSERT_EQ(record.due_ns, 5);
	ASSERT_EQ(record.id, id);
	check_nothing_ready(fd);
}

TEST(modify_of_a_ready_event_leaves_its_neighbours)
{
	int fd = device_open_nonblock();
	__u64 ids[3];

	add_many(fd, 0, 0, 3, ids);
	wait_ready(fd, 3);
	ASSERT_EQ(modify(fd, ids[1], 0, FAR_NS), 0);
	ASSERT_EQ(wait_record(fd).id, ids[0]);
	ASSERT_EQ(wait_record(fd).id, ids[2]);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, ids[1], NULL), TWHEEL_ARMED);
}

TEST(modify_around_the_due_time_gives_one_record)
{
	const unsigned int rounds = test_count(1000);
	int fd = device_open_nonblock();
	__u64 tick_ns = get_info(fd).tick_ns;
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		__u64 due_ns = monotonic_ns() + 2 * tick_ns;
		__u64 id = add(fd, TWHEEL_ABS, due_ns, i);

		/* Up to two ticks before and after, in steps of a quarter. */
		while (monotonic_ns() < due_ns + (i % 16) * tick_ns / 4 -
					2 * tick_ns)
			;
		due_ns += 8 * tick_ns;
		ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
		ASSERT_EQ(wait_record(fd).due_ns, due_ns);
		check_nothing_ready(fd);
	}
	ASSERT_EQ(get_counters(fd).records, rounds);
}

TEST(modify_again_and_again_counts_as_one_event)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	struct counters before = get_counters(fd);
	unsigned int i;

	for (i = 0; i < 1000; i++)
		ASSERT_EQ(modify(fd, id, 0, FAR_NS + i * NSEC_PER_SEC), 0);
	check_counters(fd, &before);
}

TEST(modify_of_a_cancelled_event_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	struct twheel_cmd cmd = make_modify(id, 0, 0);

	ASSERT_EQ(cancel(fd, id), 0);
	check_refused(fd, &cmd, ENOENT);
	check_nothing_ready(fd);
}

TEST(modify_of_a_read_event_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 1);
	struct twheel_cmd cmd = make_modify(id, 0, 0);

	wait_record(fd);
	check_refused(fd, &cmd, ENOENT);
	check_nothing_ready(fd);
}

TEST(query_of_an_armed_event_says_when_it_is_due)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + FAR_NS;
	__u64 id = add(fd, TWHEEL_ABS, due_ns, 1);
	struct twheel_cmd answer;

	ASSERT_EQ(query(fd, id, &answer), TWHEEL_ARMED);
	ASSERT_EQ(answer.time_ns, due_ns);
	ASSERT_EQ(answer.interval_ns, 0);
	ASSERT_EQ(answer.slack_ns, 0);
	ASSERT_EQ(answer.id, id);
}

TEST(query_of_a_relative_time_says_the_absolute_one)
{
	int fd = device_open_nonblock();
	__u64 before_ns, after_ns, time_ns, id;

	before_ns = monotonic_ns();
	id = add(fd, 0, FAR_NS, 1);
	after_ns = monotonic_ns();
	time_ns = query_time(fd, id);
	ASSERT_LE(before_ns + FAR_NS, time_ns);
	ASSERT_LE(time_ns, after_ns + FAR_NS);
}

TEST(query_changes_nothing)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	struct counters before = get_counters(fd);
	struct twheel_cmd first, second;

	ASSERT_EQ(query(fd, id, &first), TWHEEL_ARMED);
	ASSERT_EQ(query(fd, id, &second), TWHEEL_ARMED);
	ASSERT_EQ(memcmp(&first, &second, sizeof(first)), 0);
	check_counters(fd, &before);
}

TEST(query_after_a_modify_says_the_new_time)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	__u64 due_ns = monotonic_ns() + 2 * FAR_NS;

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	ASSERT_EQ(query_time(fd, id), due_ns);
}

TEST(query_of_a_ready_event_says_ready_and_when_it_was_due)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + NSEC_PER_MSEC;
	__u64 id = add(fd, TWHEEL_ABS, due_ns, 1);
	struct twheel_cmd answer;

	wait_readable(fd);
	ASSERT_EQ(query(fd, id, &answer), TWHEEL_READY);
	ASSERT_EQ(answer.time_ns, due_ns);
	ASSERT_EQ(wait_record(fd).id, id);
}

TEST(query_does_not_look_at_its_outputs)
{
	static const __u64 fills[] = { 0, 1, FILL_U64, ~0ULL };
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fills); i++) {
		struct twheel_cmd cmd = make_cmd(TWHEEL_OP_QUERY, id);

		cmd.time_ns = fills[i];
		cmd.interval_ns = fills[i];
		cmd.slack_ns = fills[i];
		ASSERT_EQ(run(fd, &cmd), TWHEEL_ARMED);
	}
}

TEST(query_of_an_ended_event_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 cancelled = add(fd, 0, FAR_NS, 1);
	__u64 finished = add(fd, 0, 0, 2);
	struct twheel_cmd cmd;

	ASSERT_EQ(cancel(fd, cancelled), 0);
	wait_record(fd);
	cmd = make_cmd(TWHEEL_OP_QUERY, cancelled);
	check_refused(fd, &cmd, ENOENT);
	cmd = make_cmd(TWHEEL_OP_QUERY, finished);
	check_refused(fd, &cmd, ENOENT);
}
