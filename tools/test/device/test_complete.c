// SPDX-License-Identifier: GPL-2.0
/* TWHEEL_OP_COMPLETE: ending an event by its id, as completed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "device.h"
#include "util.h"

#define KEY		0x1234

TEST(complete_ends_an_armed_event_with_a_record)
{
	__u64 due_ns = monotonic_ns() + FAR_NS, before_ns;
	int fd = device_open_nonblock();
	struct twheel_record record;
	__u64 id = add(fd, TWHEEL_ABS, due_ns, 42);

	before_ns = monotonic_ns();
	ASSERT_EQ(complete(fd, id, 7), 0);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
	record = wait_completed(fd, 7, 0);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.data, 42);
	ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_GE(record.fired_ns, before_ns);
	check_nothing_ready(fd);
}

TEST(complete_hands_its_value_on)
{
	static const __u64 values[] = { 0, 1, 1ULL << 63, ~0ULL };
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		test_about("value %llu", values[i]);
		ASSERT_EQ(complete(fd, add(fd, 0, FAR_NS, i), values[i]), 0);
		ASSERT_EQ(wait_completed(fd, values[i], 0).data, i);
	}
}

TEST(complete_of_an_operation_ends_its_watches)
{
	int fd = device_open_nonblock();
	__u64 id = add_operation(fd, 2, 42);

	ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	ASSERT_EQ(watch(fd, id, KEY, 2), 0);
	ASSERT_EQ(watch_level(fd, id, 1, 5), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	ASSERT_EQ(complete(fd, id, 9), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	ASSERT_EQ(signal_key(fd, 1, 5), 0);
	ASSERT_EQ(signal_quietly(fd, KEY), 0);
	ASSERT_EQ(wait_completed(fd, 9, 0).id, id);
	ASSERT_EQ(signal_key(fd, KEY, 1), 0);
	check_nothing_ready(fd);
}

TEST(complete_of_an_event_that_is_never_due)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, TWHEEL_ABS, NEVER_NS, 42);

	ASSERT_EQ(complete(fd, id, 1), 0);
	ASSERT_EQ(wait_completed(fd, 1, 0).id, id);
}

TEST(complete_of_a_periodic_event_ends_it_with_one_record)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + FAR_NS;
	__u64 id = add_by(fd, make_periodic(TWHEEL_ABS, due_ns, NSEC_PER_SEC,
					    42));
	struct twheel_record record;
	struct counters counters;

	ASSERT_EQ(complete(fd, id, 7), 0);
	record = wait_completed(fd, 7, 0);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.data, 42);
	ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_EQ(record.count, 1);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	check_nothing_ready(fd);
	counters = get_counters(fd);
	check_sum(&counters);
	ASSERT_EQ(counters.finished, 1);
	ASSERT_EQ(counters.completed, 1);
	ASSERT_EQ(counters.records, 1);
}

TEST(complete_of_a_periodic_event_that_was_read_before_ends_it)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(0, 0, FAR_NS, 42));
	struct twheel_record record;

	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	check_expired(&record);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(complete(fd, id, 7), 0);
	ASSERT_EQ(wait_completed(fd, 7, 0).id, id);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	ASSERT_EQ(get_counters(fd).finished, 1);
	ASSERT_EQ(get_counters(fd).records, 2);
}

TEST(complete_of_a_periodic_event_leaves_no_further_turns)
{
	int fd = device_open_nonblock();
	struct twheel_record record;
	__u64 id;

	/* Again if its first turn came before. */
	for (;;) {
		id = add_by(fd, make_periodic(0, SOON_NS, NSEC_PER_MSEC, 42));
		if (!complete(fd, id, 7))
			break;
		ASSERT_EQ(cancel(fd, id), 0);
	}
	add(fd, 0, 2 * SOON_NS, 43);
	wait_ready(fd, 2);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	check_completed(&record, 7, 0);
	ASSERT_EQ(wait_record(fd).data, 43);
	check_nothing_ready(fd);
}

static void check_complete_refused(int fd, __u64 id, int error)
{
	struct twheel_cmd cmd = make_complete(id, 7);

	check_refused(fd, &cmd, error);
}

TEST(complete_of_an_expired_event_is_too_late)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 42);

	wait_ready(fd, 1);
	check_complete_refused(fd, id, EALREADY);
	ASSERT_EQ(wait_record(fd).id, id);
	check_nothing_ready(fd);
}

TEST(complete_of_an_unread_periodic_event_is_too_late)
{
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(0, 0, FAR_NS, 42));
	struct twheel_record record;

	wait_ready(fd, 1);
	check_complete_refused(fd, id, EALREADY);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	check_expired(&record);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
}

TEST(complete_twice_is_too_late_the_second_time)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 42);

	ASSERT_EQ(complete(fd, id, 1), 0);
	ASSERT_EQ(complete(fd, id, 2), -EALREADY);
	ASSERT_EQ(wait_completed(fd, 1, 0).id, id);
	ASSERT_EQ(get_counters(fd).completed, 1);
}

TEST(complete_after_a_signal_is_too_late)
{
	int fd = device_open_nonblock();
	__u64 id = add_watching(fd, KEY, 1, 42);

	ASSERT_EQ(signal_key(fd, KEY, 5), 1);
	check_complete_refused(fd, id, EALREADY);
	ASSERT_EQ(wait_completed(fd, 5, KEY).id, id);
	check_nothing_ready(fd);
}

TEST(complete_of_an_ended_event_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 cancelled = add(fd, 0, FAR_NS, 1), expired = add(fd, 0, 0, 2);
	__u64 completed = add(fd, 0, FAR_NS, 3), quieted;

	quieted = add_watching(fd, KEY, 1, 4);
	ASSERT_EQ(cancel(fd, cancelled), 0);
	ASSERT_EQ(wait_record(fd).id, expired);
	ASSERT_EQ(complete(fd, completed, 1), 0);
	wait_completed(fd, 1, 0);
	ASSERT_EQ(signal_quietly(fd, KEY), 1);
	check_complete_refused(fd, cancelled, ENOENT);
	check_complete_refused(fd, expired, ENOENT);
	check_complete_refused(fd, completed, ENOENT);
	check_complete_refused(fd, quieted, ENOENT);
	check_complete_refused(fd, 0, ENOENT);
}

TEST(complete_of_an_id_with_one_bit_changed_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 0);
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		test_about("id %#llx, bit %u", id, bit);
		check_complete_refused(fd, id ^ (1ULL << bit), ENOENT);
	}
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
}

TEST(complete_of_an_event_of_another_context_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 0);

	check_complete_refused(device_open_nonblock(), id, ENOENT);
}

TEST(complete_takes_no_id_of_the_add_before_it)
{
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 42), make_complete(0, 1),
	};

	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[1].result, -ENOENT);
	ASSERT_EQ(query(fd, cmds[0].id, NULL), TWHEEL_ARMED);
}

TEST(complete_of_an_event_that_expired_and_was_armed_again)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 42);

	wait_ready(fd, 1);
	ASSERT_EQ(modify(fd, id, 0, FAR_NS), 0);
	ASSERT_EQ(complete(fd, id, 3), 0);
	ASSERT_EQ(wait_completed(fd, 3, 0).id, id);
	check_nothing_ready(fd);
}

TEST(modify_of_an_event_ended_by_complete_is_refused)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 42);
	struct twheel_cmd cmd = make_modify(id, 0, 0);

	ASSERT_EQ(complete(fd, id, 3), 0);
	check_refused(fd, &cmd, EALREADY);
	ASSERT_EQ(wait_completed(fd, 3, 0).id, id);
}

TEST(cancel_of_an_event_ended_by_complete_suppresses_its_record)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 42);
	struct counters counters;

	ASSERT_EQ(complete(fd, id, 3), 0);
	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
	counters = get_counters(fd);
	check_sum(&counters);
	ASSERT_EQ(counters.cancelled, 1);
}

TEST(list_tells_of_an_event_ended_by_complete_that_it_was_completed)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 42);

	ASSERT_EQ(complete(fd, id, 3), 0);
	ASSERT_EQ(list_one(fd, id).state, TWHEEL_READY);
	ASSERT_EQ(list_one(fd, id).reason, TWHEEL_COMPLETED);
	wait_completed(fd, 3, 0);
}

TEST(completed_events_come_in_the_order_of_their_ends)
{
	int fd = device_open_nonblock();
	__u64 ids[3];

	add_many(fd, 0, FAR_NS, 3, ids);
	ASSERT_EQ(complete(fd, ids[2], 1), 0);
	add(fd, TWHEEL_ABS, 1, 42);
	ASSERT_EQ(complete(fd, ids[0], 2), 0);
	ASSERT_EQ(wait_completed(fd, 1, 0).id, ids[2]);
	ASSERT_EQ(wait_record(fd).data, 42);
	ASSERT_EQ(wait_completed(fd, 2, 0).id, ids[0]);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, ids[1], NULL), TWHEEL_ARMED);
}
