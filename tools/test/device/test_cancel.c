// SPDX-License-Identifier: GPL-2.0
/* TWHEEL_OP_CANCEL. */
#include <errno.h>
#include <string.h>

#include "device.h"
#include "util.h"

/* Check that an id is unknown, for every operation that takes one. */
static void check_unknown(int fd, __u64 id)
{
	struct twheel_cmd cmd;

	cmd = make_cmd(TWHEEL_OP_CANCEL, id);
	check_refused(fd, &cmd, ENOENT);
	cmd = make_cmd(TWHEEL_OP_QUERY, id);
	check_refused(fd, &cmd, ENOENT);
	cmd = make_modify(id, 0, FAR_NS);
	check_refused(fd, &cmd, ENOENT);
}

TEST(cancel_of_an_armed_event_suppresses_its_record)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS;
	__u64 id = add(fd, TWHEEL_ABS, due_ns, 1);

	ASSERT_EQ(cancel(fd, id), 0);

	/* Armed later and due later, so it comes later. */
	add(fd, TWHEEL_ABS, due_ns + SOON_NS, 2);
	ASSERT_EQ(wait_record(fd).data, 2);
	check_nothing_ready(fd);
}

TEST(cancel_of_a_ready_event_suppresses_its_record)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, NSEC_PER_MSEC, 1);

	wait_readable(fd);
	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
}

TEST(cancel_of_a_ready_event_leaves_its_neighbours)
{
	int fd = device_open_nonblock();
	__u64 ids[5];

	add_many(fd, 0, 0, 5, ids);
	wait_ready(fd, 5);
	ASSERT_EQ(cancel(fd, ids[0]), 0);
	ASSERT_EQ(cancel(fd, ids[2]), 0);
	ASSERT_EQ(cancel(fd, ids[4]), 0);
	ASSERT_EQ(wait_record(fd).data, 1);
	ASSERT_EQ(wait_record(fd).data, 3);
	check_nothing_ready(fd);
}

TEST(cancel_twice_finds_nothing_the_second_time)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 0);

	ASSERT_EQ(cancel(fd, id), 0);
	check_unknown(fd, id);
}

TEST(cancel_twice_in_one_call_finds_nothing_the_second_time)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 0);
	struct twheel_cmd cmds[] = {
		make_cmd(TWHEEL_OP_CANCEL, id), make_cmd(TWHEEL_OP_CANCEL, id),
	};

	ASSERT_EQ(submit(fd, cmds, 2), 2);
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, -ENOENT);
	ASSERT_EQ(get_counters(fd).cancelled, 1);
}

TEST(cancel_of_a_read_event_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 0);

	wait_record(fd);
	check_unknown(fd, id);
}

TEST(cancel_of_the_id_0_finds_nothing)
{
	int fd = device_open_nonblock();

	check_unknown(fd, 0);
	add(fd, 0, FAR_NS, 0);
	check_unknown(fd, 0);
}

TEST(cancel_of_random_ids_finds_nothing)
{
	const size_t nr = test_count(100000);
	struct twheel_cmd *cmds = map_pages(nr * sizeof(*cmds));
	int fd = device_open_nonblock();
	__u64 live = add(fd, 0, FAR_NS, 0);
	__u64 seed = 2;
	size_t i;

	for (i = 0; i < nr; i++) {
		__u64 id = next_random(&seed);

		/* Small ones too, in either half, and negative ones. */
		if (i % 5 == 1)
			id >>= 32;
		else if (i % 5 == 2)
			id &= ~0ULL << 32;
		else if (i % 5 == 3)
			id >>= id % 64;
		else if (i % 5 == 4)
			id = -(id >> id % 64);
		cmds[i] = make_cmd(TWHEEL_OP_CANCEL, id == live ? 0 : id);
	}
	ASSERT_EQ(submit(fd, cmds, nr), nr);
	for (i = 0; i < nr; i++) {
		test_about("id %#llx", cmds[i].id);
		ASSERT_EQ(cmds[i].result, -ENOENT);
	}
	ASSERT_EQ(query(fd, live, NULL), TWHEEL_ARMED);
}

TEST(cancel_of_an_id_with_one_bit_changed_finds_nothing)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 0);
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		test_about("id %#llx, bit %u", id, bit);
		check_unknown(fd, id ^ (1ULL << bit));
	}
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
}

TEST(cancel_of_an_id_of_another_context_finds_nothing)
{
	int fd = device_open_nonblock(), other = device_open_nonblock();
	__u64 ids[100];
	size_t i;

	add_many(fd, 0, FAR_NS, ARRAY_SIZE(ids), ids);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		check_unknown(other, ids[i]);
	ASSERT_EQ(get_counters(fd).armed, ARRAY_SIZE(ids));
}

TEST(cancel_around_the_due_time_suppresses_the_record)
{
	const unsigned int rounds = test_count(2000);
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
		ASSERT_EQ(cancel(fd, id), 0);
		check_nothing_ready(fd);
	}
	ASSERT_EQ(get_counters(fd).cancelled, rounds);
}
