// SPDX-License-Identifier: GPL-2.0
/* Events with an interval. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

/* Not a whole number of ticks. */
#define INTERVAL_NS	(2 * NSEC_PER_MSEC + 12345)

/* One that no test lives to see over. */
#define FAR_INTERVAL_NS	FAR_NS

static void spin_until(__u64 time_ns)
{
	while (monotonic_ns() < time_ns)
		;
}

/* MODIFY of time and interval: the result. */
static int modify_periodic(int fd, __u64 id, __u16 flags, __u64 time_ns,
			   __u64 interval_ns)
{
	struct twheel_cmd cmd = make_modify(id, flags, time_ns);

	cmd.interval_ns = interval_ns;
	return run(fd, &cmd);
}

/*
 * Check that a record read between two moments covers all expirations up to the
 * read, from the one at @due_ns on, and none after it.
 */
static void check_covers(const struct twheel_record *record, __u64 due_ns,
			 __u64 interval_ns, __u64 before_ns, __u64 after_ns)
{
	__u64 tick_ns = 1 << 20;	/* the longest there is */
	__u64 last_ns;

	check_expired(record);
	ASSERT_EQ(record->due_ns, due_ns);
	last_ns = due_ns + (record->count - 1) * interval_ns;
	ASSERT_LE(last_ns, after_ns);
	ASSERT_GT(last_ns + interval_ns + tick_ns, before_ns);
}

/* Wait for the record of a periodic event, which has the next turn at @due_ns. */
static struct twheel_record wait_periodic(int fd, __u64 due_ns,
					  __u64 interval_ns)
{
	struct twheel_record record;
	__u64 before_ns;

	wait_readable(fd);
	before_ns = monotonic_ns();
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	check_covers(&record, due_ns, interval_ns, before_ns, monotonic_ns());
	ASSERT_LE(record.fired_ns, before_ns);
	return record;
}

/* A context with a periodic event that is READY and not due again soon. */
static int open_with_ready_periodic(__u64 *id)
{
	int fd = device_open_nonblock();

	*id = add_by(fd, make_periodic(0, 0, FAR_INTERVAL_NS, 1));
	wait_readable(fd);
	return fd;
}

/* --- the grid --------------------------------------------------------------- */

TEST(periodic_event_stays_on_its_grid_however_late_it_is_read)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS;
	unsigned int i;

	add_by(fd, make_periodic(TWHEEL_ABS, due_ns, INTERVAL_NS, 0));
	for (i = 0; i < 60; i++) {
		test_about("record %u", i);
		due_ns += wait_periodic(fd, due_ns, INTERVAL_NS).count *
			  INTERVAL_NS;
		spin_until(due_ns + i % 4 * INTERVAL_NS);
	}
}

TEST(periodic_event_of_a_relative_time_begins_that_long_after_the_call)
{
	int fd = device_open_nonblock();
	__u64 before_ns = monotonic_ns(), after_ns, due_ns, id;

	id = add_by(fd, make_periodic(0, SOON_NS, INTERVAL_NS, 0));
	after_ns = monotonic_ns();
	due_ns = query_time(fd, id);
	ASSERT_LE(before_ns + SOON_NS, due_ns);
	ASSERT_LE(due_ns, after_ns + SOON_NS);
	due_ns += wait_periodic(fd, due_ns, INTERVAL_NS).count * INTERVAL_NS;
	wait_periodic(fd, due_ns, INTERVAL_NS);
}

TEST(periodic_event_that_missed_nine_turns_gives_one_record_of_ten)
{
	struct twheel_record records[10];
	int fd = device_open_nonblock();
	__u64 before_ns, interval_ns, id;
	bool in_time;

	/* Due since the clock began, so that nine and a half intervals are over. */
	do {
		before_ns = monotonic_ns();
		interval_ns = before_ns / 19 * 2;
		id = add_by(fd, make_periodic(TWHEEL_ABS, 0, interval_ns, 0));
		ASSERT_EQ(poll_events(fd, 0), POLLIN);
		ASSERT_EQ(read_records(fd, records, ARRAY_SIZE(records)), 1);
		check_covers(records, 0, interval_ns, before_ns,
			     monotonic_ns());
		in_time = monotonic_ns() < 10 * interval_ns;
		if (in_time)
			ASSERT_EQ(records[0].count, 10);
		ASSERT_EQ(cancel(fd, id), 0);
	} while (!in_time);
}

TEST(periodic_event_that_missed_turns_while_armed_counts_them)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + NSEC_PER_MSEC;
	struct twheel_record record;

	add_by(fd, make_periodic(TWHEEL_ABS, due_ns, NSEC_PER_MSEC, 0));
	spin_until(due_ns + 29 * NSEC_PER_MSEC);
	record = wait_periodic(fd, due_ns, NSEC_PER_MSEC);
	ASSERT_GE(record.count, 30);
}

TEST(periodic_event_is_not_armed_again_before_it_is_read)
{
	int fd = device_open_nonblock();
	__u64 tick_ns = get_info(fd).tick_ns, due_ns;
	long long armed = armed_on_machine(), interrupts;
	__u64 id;

	id = add_by(fd, make_periodic(0, 0, tick_ns, 0));
	due_ns = query_time(fd, id);
	wait_readable(fd);
	interrupts = interrupts_on_machine();
	spin_until(monotonic_ns() + 300 * tick_ns);
	/* Others have theirs; it would have had one a tick. */
	ASSERT_LT(interrupts_on_machine() - interrupts, 100);
	ASSERT_EQ(armed_on_machine(), armed);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
	ASSERT_GE(wait_periodic(fd, due_ns, tick_ns).count, 300);
}

TEST(periodic_event_is_armed_again_by_the_read)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() - 1;
	__u64 id = add_by(fd, make_periodic(TWHEEL_ABS, due_ns,
					    FAR_INTERVAL_NS, 0));
	struct twheel_cmd answer;

	wait_periodic(fd, due_ns, FAR_INTERVAL_NS);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, id, &answer), TWHEEL_ARMED);
	ASSERT_EQ(answer.time_ns, due_ns + FAR_INTERVAL_NS);
	ASSERT_EQ(answer.interval_ns, FAR_INTERVAL_NS);
}

/* --- one event -------------------------------------------------------------- */

TEST(periodic_event_keeps_its_id_and_data)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(0, 0, NSEC_PER_MSEC, 0x1234));
	__u64 due_ns = query_time(fd, id);
	unsigned int i;

	for (i = 0; i < 5; i++) {
		struct twheel_record record;

		record = wait_periodic(fd, due_ns, NSEC_PER_MSEC);
		ASSERT_EQ(record.id, id);
		ASSERT_EQ(record.data, 0x1234);
		due_ns += record.count * NSEC_PER_MSEC;
	}
}

TEST(periodic_event_is_one_event_in_the_counters)
{
	int fd = device_open_nonblock();
	struct counters expected = get_counters(fd);
	__u64 due_ns = monotonic_ns() - 1, id;

	id = add_by(fd, make_periodic(TWHEEL_ABS, due_ns, FAR_INTERVAL_NS, 0));
	expected.added = 1;
	expected.ready = 1;
	check_counters(fd, &expected);
	wait_periodic(fd, due_ns, FAR_INTERVAL_NS);
	expected.ready = 0;
	expected.armed = 1;
	expected.records = 1;
	check_counters(fd, &expected);
	ASSERT_EQ(cancel(fd, id), 0);
	expected.armed = 0;
	expected.cancelled = 1;
	check_counters(fd, &expected);
}

TEST(periodic_event_that_is_ready_says_its_first_unread_turn)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + NSEC_PER_MSEC;
	__u64 id = add_by(fd, make_periodic(TWHEEL_ABS, due_ns,
					    NSEC_PER_MSEC, 0));
	struct twheel_cmd answer;

	wait_readable(fd);
	spin_until(due_ns + 3 * NSEC_PER_MSEC);
	ASSERT_EQ(query(fd, id, &answer), TWHEEL_READY);
	ASSERT_EQ(answer.time_ns, due_ns);
	ASSERT_EQ(answer.interval_ns, NSEC_PER_MSEC);
	wait_periodic(fd, due_ns, NSEC_PER_MSEC);
}

/* --- intervals -------------------------------------------------------------- */

TEST(periodic_event_takes_an_interval_of_a_tick)
{
	int fd = device_open_nonblock();
	__u64 tick_ns = get_info(fd).tick_ns;
	__u64 due_ns = monotonic_ns() + NSEC_PER_MSEC;
	unsigned int i;

	add_by(fd, make_periodic(TWHEEL_ABS, due_ns, tick_ns, 0));
	for (i = 0; i < 100; i++)
		due_ns += wait_periodic(fd, due_ns, tick_ns).count * tick_ns;
}

TEST(periodic_event_takes_an_interval_of_any_length)
{
	static const __u64 intervals[] = {
		FAR_NS, NEVER_NS - 1, NEVER_NS, NEVER_NS + 1, ~0ULL - 1, ~0ULL,
	};
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(intervals); i++) {
		__u64 due_ns = monotonic_ns() + NSEC_PER_MSEC;
		struct twheel_cmd cmd = make_periodic(TWHEEL_ABS, due_ns,
						      intervals[i], i);
		struct twheel_cmd answer;
		__u64 id = add_by(fd, cmd);
		struct twheel_record record;

		test_about("interval %llu", intervals[i]);
		record = wait_record(fd);
		ASSERT_EQ(record.id, id);
		ASSERT_EQ(record.due_ns, due_ns);
		ASSERT_EQ(query(fd, id, &answer), TWHEEL_ARMED);
		ASSERT_EQ(answer.interval_ns, intervals[i]);
		if (intervals[i] == FAR_NS)
			ASSERT_EQ(answer.time_ns, due_ns + FAR_NS);
		else
			ASSERT(answer.time_ns >= NEVER_NS);
		check_nothing_ready(fd);
		ASSERT_EQ(cancel(fd, id), 0);
	}
}

TEST(periodic_event_that_never_begins_stays_armed_until_it_is_modified)
{
	static const __u64 nevers[] = { NEVER_NS, ~0ULL };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nevers); i++) {
		__u64 id = add_by(fd, make_periodic(TWHEEL_ABS, nevers[i],
						    NSEC_PER_MSEC, 0));
		__u64 due_ns = monotonic_ns() + SOON_NS;
		struct twheel_cmd answer;

		ASSERT_EQ(query(fd, id, &answer), TWHEEL_ARMED);
		ASSERT_EQ(answer.interval_ns, NSEC_PER_MSEC);
		check_nothing_ready(fd);
		ASSERT_EQ(modify_periodic(fd, id, TWHEEL_ABS, due_ns,
					  NSEC_PER_MSEC), 0);
		wait_periodic(fd, due_ns, NSEC_PER_MSEC);
		ASSERT_EQ(cancel(fd, id), 0);
	}
}

TEST(add_refuses_a_quorum_of_a_periodic_event)
{
	static const __u32 quorums[] = { 1, 2, TWHEEL_MAX_WATCHES };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(quorums); i++) {
		struct twheel_cmd cmd = make_periodic(0, FAR_NS, NSEC_PER_SEC,
						      0);

		test_about("quorum %u", quorums[i]);
		cmd.quorum = quorums[i];
		check_refused(fd, &cmd, EINVAL);
	}
}

/* --- CANCEL and MODIFY ------------------------------------------------------ */

TEST(cancel_of_an_armed_periodic_event_ends_it)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS;
	__u64 id = add_by(fd, make_periodic(TWHEEL_ABS, due_ns, NSEC_PER_MSEC,
					    1));

	ASSERT_EQ(cancel(fd, id), 0);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	add(fd, TWHEEL_ABS, due_ns + 5 * NSEC_PER_MSEC, 2);
	ASSERT_EQ(wait_record(fd).data, 2);
	check_nothing_ready(fd);
}

TEST(cancel_of_a_ready_periodic_event_suppresses_its_record)
{
	__u64 id;
	int fd = open_with_ready_periodic(&id);

	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	ASSERT_EQ(get_counters(fd).cancelled, 1);
	ASSERT_EQ(get_counters(fd).records, 0);
}

TEST(cancel_between_two_records_of_a_periodic_event_ends_it)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(0, 0, NSEC_PER_MSEC, 1));
	struct twheel_record record;

	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(cancel(fd, id), -ENOENT);
	ASSERT_EQ(get_counters(fd).finished, 0);
	ASSERT_EQ(get_counters(fd).cancelled, 1);
}

TEST(modify_of_an_armed_periodic_event_replaces_time_and_interval)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(0, FAR_NS, FAR_INTERVAL_NS, 1));
	__u64 due_ns = monotonic_ns() + SOON_NS;
	struct twheel_cmd answer;
	unsigned int i;

	ASSERT_EQ(modify_periodic(fd, id, TWHEEL_ABS, due_ns, INTERVAL_NS), 0);
	ASSERT_GT(query(fd, id, &answer), 0);
	ASSERT_EQ(answer.time_ns, due_ns);
	ASSERT_EQ(answer.interval_ns, INTERVAL_NS);
	for (i = 0; i < 5; i++)
		due_ns += wait_periodic(fd, due_ns, INTERVAL_NS).count *
			  INTERVAL_NS;
}

TEST(modify_of_a_ready_periodic_event_suppresses_its_record)
{
	__u64 id, due_ns;
	int fd = open_with_ready_periodic(&id);

	ASSERT_EQ(modify_periodic(fd, id, 0, FAR_NS, NSEC_PER_SEC), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	due_ns = monotonic_ns() + NSEC_PER_MSEC;
	ASSERT_EQ(modify_periodic(fd, id, TWHEEL_ABS, due_ns, INTERVAL_NS), 0);
	wait_periodic(fd, due_ns, INTERVAL_NS);
	ASSERT_EQ(get_counters(fd).records, 1);
}

TEST(modify_of_a_periodic_event_to_its_own_time_keeps_the_grid)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(0, SOON_NS, INTERVAL_NS, 1));
	__u64 due_ns = query_time(fd, id);
	unsigned int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(modify_periodic(fd, id, TWHEEL_ABS, due_ns,
					  INTERVAL_NS), 0);
		due_ns += wait_periodic(fd, due_ns, INTERVAL_NS).count *
			  INTERVAL_NS;
	}
}

TEST(modify_with_set_data_of_a_periodic_event_replaces_the_data)
{
	__u64 id;
	int fd = open_with_ready_periodic(&id);
	struct twheel_cmd cmd = make_modify(id, TWHEEL_SET_DATA, 0);

	cmd.interval_ns = FAR_INTERVAL_NS;
	cmd.data = 0x5678;
	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_EQ(wait_record(fd).data, 0x5678);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
}

/* Check that an event that has become one-shot gives one record and is gone. */
static void check_ends_at(int fd, __u64 id, __u64 due_ns)
{
	struct twheel_cmd answer;
	struct twheel_record record;

	ASSERT_GT(query(fd, id, &answer), 0);
	ASSERT_EQ(answer.interval_ns, 0);
	record = wait_record(fd);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).finished, 1);
}

TEST(modify_makes_an_armed_periodic_event_one_shot)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(0, FAR_NS, NSEC_PER_MSEC, 1));
	__u64 due_ns = monotonic_ns() + SOON_NS;

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	check_ends_at(fd, id, due_ns);
}

TEST(modify_makes_a_ready_periodic_event_one_shot)
{
	__u64 id, due_ns = monotonic_ns() + SOON_NS;
	int fd = open_with_ready_periodic(&id);

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	check_ends_at(fd, id, due_ns);
}

static void check_becomes_periodic(int fd, __u64 id)
{
	__u64 due_ns = monotonic_ns() + NSEC_PER_MSEC;
	unsigned int i;

	ASSERT_EQ(modify_periodic(fd, id, TWHEEL_ABS, due_ns, INTERVAL_NS), 0);
	for (i = 0; i < 5; i++)
		due_ns += wait_periodic(fd, due_ns, INTERVAL_NS).count *
			  INTERVAL_NS;
	ASSERT_GT(query(fd, id, NULL), 0);
	ASSERT_EQ(get_counters(fd).finished, 0);
}

TEST(modify_makes_an_armed_one_shot_event_periodic)
{
	int fd = device_open_nonblock();

	check_becomes_periodic(fd, add(fd, 0, FAR_NS, 1));
}

TEST(modify_makes_a_ready_one_shot_event_periodic)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 1);

	wait_readable(fd);
	check_becomes_periodic(fd, id);
}

TEST(modify_to_and_fro_between_one_shot_and_periodic_counts_as_one_event)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	struct counters before = get_counters(fd);
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(modify_periodic(fd, id, 0, FAR_NS,
					  i % 2 ? NSEC_PER_SEC : 0), 0);
		check_counters(fd, &before);
	}
}

TEST(modify_refused_leaves_a_periodic_event_as_it_was)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(0, FAR_NS, NSEC_PER_SEC, 1));
	__u64 time_ns = query_time(fd, id);
	struct twheel_cmd cmd = make_modify(id, 0, 0), answer;

	cmd.interval_ns = get_info(fd).tick_ns - 1;
	check_refused(fd, &cmd, EINVAL);
	ASSERT_EQ(query(fd, id, &answer), TWHEEL_ARMED);
	ASSERT_EQ(answer.time_ns, time_ns);
	ASSERT_EQ(answer.interval_ns, NSEC_PER_SEC);
}

/* --- reading ---------------------------------------------------------------- */

TEST(read_of_a_periodic_record_that_faults_loses_nothing)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() - 1;
	struct counters before;
	unsigned int i;
	__u64 id;

	id = add_by(fd, make_periodic(TWHEEL_ABS, due_ns, INTERVAL_NS, 1));
	before = get_counters(fd);
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(read_records(fd, NULL, 1), -EFAULT);
		ASSERT_EQ(read_records(fd, map_before_hole(32), 1), -EFAULT);
		check_counters(fd, &before);
		ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
		ASSERT_EQ(query_time(fd, id), due_ns);
	}
	spin_until(due_ns + 5 * INTERVAL_NS);
	ASSERT_GE(wait_periodic(fd, due_ns, INTERVAL_NS).count, 6);
}

TEST(read_that_faults_between_periodic_records_arms_those_before_only)
{
	struct twheel_record *records = map_before_hole(2 * sizeof(*records) +
							32);
	int fd = device_open_nonblock();
	__u64 ids[4];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = add_by(fd, make_periodic(0, 0, FAR_INTERVAL_NS, i));
	ASSERT_EQ(read_records(fd, records, 4), 2);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(query(fd, ids[i], NULL),
			  i < 2 ? TWHEEL_ARMED : TWHEEL_READY);
	ASSERT_EQ(wait_record(fd).id, ids[2]);
	ASSERT_EQ(wait_record(fd).id, ids[3]);
	check_nothing_ready(fd);
}

TEST(read_that_faults_leaves_a_periodic_event_that_can_be_cancelled)
{
	__u64 id;
	int fd = open_with_ready_periodic(&id);

	ASSERT_EQ(read_records(fd, NULL, 1), -EFAULT);
	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
}

TEST(periodic_events_and_others_are_read_the_oldest_first)
{
	struct twheel_record records[10];
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(records); i++)
		add_by(fd, make_periodic(0, 0, i % 2 ? 0 : FAR_INTERVAL_NS, i));
	ASSERT_EQ(read_records(fd, records, ARRAY_SIZE(records)),
		  ARRAY_SIZE(records));
	for (i = 0; i < ARRAY_SIZE(records); i++)
		ASSERT_EQ(records[i].data, i);
	ASSERT_EQ(get_counters(fd).finished, ARRAY_SIZE(records) / 2);
	ASSERT_EQ(get_counters(fd).armed, ARRAY_SIZE(records) / 2);
}

TEST(periodic_events_by_the_hundred_each_stay_on_their_grid)
{
	const size_t nr = 500;
	__u64 *dues = map_pages(nr * sizeof(*dues));
	unsigned int *turns = map_pages(nr * sizeof(*turns));
	int fd = device_open_nonblock();
	size_t left = nr, i;

	for (i = 0; i < nr; i++) {
		__u64 interval_ns = 3 * NSEC_PER_MSEC + i * 7777;
		struct twheel_cmd cmd;

		dues[i] = monotonic_ns() + i * 50000;
		cmd = make_periodic(TWHEEL_ABS, dues[i], interval_ns, i);
		add_by(fd, cmd);
	}
	while (left) {
		struct twheel_record records[64];
		__u64 before_ns;
		long ret, r;

		wait_readable(fd);
		before_ns = monotonic_ns();
		ret = read_records(fd, records, ARRAY_SIZE(records));
		for (r = 0; r < ret; r++) {
			i = records[r].data;
			ASSERT_LT(i, nr);
			test_about("event %zu, turn %u", i, turns[i]);
			check_covers(&records[r], dues[i],
				     3 * NSEC_PER_MSEC + i * 7777, before_ns,
				     monotonic_ns());
			dues[i] += records[r].count *
				   (3 * NSEC_PER_MSEC + i * 7777);
			left -= ++turns[i] == 5;
		}
	}
	ASSERT_EQ(get_counters(fd).added, nr);
	ASSERT_EQ(get_counters(fd).finished, 0);
}

TEST(read_that_waits_is_woken_by_each_turn_of_a_periodic_event)
{
	int fd = device_open(O_RDWR);
	__u64 due_ns = monotonic_ns() + NSEC_PER_MSEC;
	unsigned int i;

	add_by(fd, make_periodic(TWHEEL_ABS, due_ns, INTERVAL_NS, 1));
	for (i = 0; i < 20; i++) {
		__u64 before_ns = monotonic_ns();
		struct twheel_record record;

		ASSERT_EQ(read_records(fd, &record, 1), 1);
		check_covers(&record, due_ns, INTERVAL_NS, before_ns,
			     monotonic_ns());
		due_ns += record.count * INTERVAL_NS;
	}
}

TEST(epoll_by_edge_shows_each_turn_of_a_periodic_event_that_is_read)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int fd = device_open_nonblock();
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	unsigned int i;

	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	add_by(fd, make_periodic(0, 0, NSEC_PER_MSEC, 1));
	for (i = 0; i < 100; i++) {
		struct twheel_record record;

		ASSERT_EQ(epoll_wait(epoll, &event, 1, FOR_EVER), 1);
		ASSERT_EQ(read_records(fd, &record, 1), 1);
		check_expired(&record);
	}
}

/* --- many, coming and going ------------------------------------------------- */

TEST(close_ends_periodic_events_armed_and_ready)
{
	long long armed = armed_on_machine();
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < 300; i++) {
		add_by(fd, make_periodic(0, FAR_NS, NSEC_PER_SEC, i));
		add_by(fd, make_periodic(0, 0, FAR_INTERVAL_NS, i));
		add_by(fd, make_periodic(0, 0, NSEC_PER_MSEC, i));
	}
	ASSERT_EQ(armed_on_machine(), armed + 300);
	ASSERT_EQ(close(fd), 0);
	wait_armed_on_machine(armed);
}

TEST(add_to_a_full_context_of_periodic_events_is_refused_until_one_ends)
{
	struct twheel_config config = default_config();
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct twheel_record record;
	int fd;
	__u64 id;

	config.max_events = 1;
	fd = device_open_configured(O_RDWR | O_NONBLOCK, &config);
	id = add_by(fd, make_periodic(0, 0, NSEC_PER_MSEC, 0));
	check_refused(fd, &cmd, ENOSPC);
	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(run(fd, &cmd), -ENOSPC);
	ASSERT_EQ(cancel(fd, id), 0);
	add(fd, 0, FAR_NS, 0);
}

/*
 * Threads that make periodic events one-shot and back, cancel and read them.
 * An id belongs to one thread, but any may read its records.
 */
struct churn {
	int fd;
	size_t rounds;
	atomic_size_t running;
	atomic_size_t cancelled;
	atomic_size_t records;
};

static void *churn_events(void *arg)
{
	struct churn *churn = arg;
	__u64 ids[16] = { 0 }, seed = thread_id();
	size_t round, i;

	for (round = 0; round < churn->rounds; round++) {
		__u64 random = next_random(&seed);
		__u64 time_ns = random >> 32 & (NSEC_PER_MSEC - 1);
		__u64 *id = &ids[random % ARRAY_SIZE(ids)];
		int result;

		if (!*id) {
			*id = add_by(churn->fd,
				     make_periodic(0, time_ns,
						   random & 64 ? 0 : 1 << 20,
						   0));
			continue;
		}
		if (random & 128) {
			result = modify_periodic(churn->fd, *id, 0, time_ns,
						 random & 64 ? 0 : 1 << 20);
		} else {
			result = cancel(churn->fd, *id);
			churn->cancelled += !result;
			*id = 0;
		}
		if (result)
			ASSERT_EQ(result, -ENOENT);
		if (result == -ENOENT)
			*id = 0;
	}
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		churn->cancelled += ids[i] && !cancel(churn->fd, ids[i]);
	churn->running--;
	return NULL;
}

static void *churn_records(void *arg)
{
	struct churn *churn = arg;
	struct twheel_record records[20];
	long ret, i;

	do {
		poll_events(churn->fd, 10);
		ret = read_records(churn->fd, records, ARRAY_SIZE(records));
		for (i = 0; i < ret; i++)
			check_expired(&records[i]);
		if (ret > 0)
			churn->records += ret;
	} while (churn->running || get_counters(churn->fd).ready);
	return NULL;
}

TEST(stress_periodic_events_that_come_and_go_add_up)
{
	struct churn churn = {
		.fd = device_open_nonblock(),
		.rounds = test_count(30000),
		.running = 2,
	};
	pthread_t threads[4];
	struct counters counters;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = start_thread(i < 2 ? churn_events : churn_records,
					  &churn);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		join_thread(threads[i]);
	counters = get_counters(churn.fd);
	check_sum(&counters);
	ASSERT_EQ(counters.armed, 0);
	ASSERT_EQ(counters.ready, 0);
	ASSERT_EQ(counters.cancelled, churn.cancelled);
	ASSERT_EQ(counters.records, churn.records);
}
