// SPDX-License-Identifier: GPL-2.0
/* The counters in fdinfo. */
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "device.h"
#include "util.h"

TEST(fdinfo_of_a_fresh_context_is_all_zero)
{
	int fd = device_open_nonblock();
	struct counters expected = {
		.clockid = CLOCK_MONOTONIC,
		.max_events = get_info(fd).max_events,
	};

	check_counters(fd, &expected);
}

/* With the list of its events, enough to make the context again. */
TEST(fdinfo_tells_of_slack_and_wake_ups_as_configured)
{
	struct twheel_config config = default_config();
	int fd = device_open_nonblock();

	ASSERT_EQ(fdinfo_number(fd, "slack_ns"), 0);
	ASSERT_EQ(fdinfo_number(fd, "wake_count"), 1);
	ASSERT_EQ(fdinfo_number(fd, "wake_delay_ns"), 0);

	config.slack_ns = 12345;
	config.wake_count = 678;
	config.wake_delay_ns = 1ULL << 40;
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
	ASSERT_EQ(fdinfo_number(fd, "slack_ns"), 12345);
	ASSERT_EQ(fdinfo_number(fd, "wake_count"), 678);
	ASSERT_EQ(fdinfo_number(fd, "wake_delay_ns"), 1LL << 40);

	/* 0 stands for what is told without a CONFIG. */
	config = default_config();
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
	ASSERT_EQ(fdinfo_number(fd, "slack_ns"), 0);
	ASSERT_EQ(fdinfo_number(fd, "wake_count"), 1);
	ASSERT_EQ(fdinfo_number(fd, "wake_delay_ns"), 0);
}

TEST(fdinfo_counts_an_event_through_its_life)
{
	int fd = device_open_nonblock();
	struct counters expected = get_counters(fd);
	__u64 id = add(fd, 0, FAR_NS, 0);

	expected.added = 1;
	expected.armed = 1;
	check_counters(fd, &expected);

	ASSERT_EQ(modify(fd, id, 0, 0), 0);
	wait_readable(fd);
	expected.armed = 0;
	expected.ready = 1;
	check_counters(fd, &expected);

	wait_record(fd);
	expected.ready = 0;
	expected.finished = 1;
	expected.records = 1;
	check_counters(fd, &expected);
}

TEST(fdinfo_counts_a_cancelled_event)
{
	int fd = device_open_nonblock();
	struct counters expected = get_counters(fd);

	ASSERT_EQ(cancel(fd, add(fd, 0, FAR_NS, 0)), 0);
	expected.added = 1;
	expected.cancelled = 1;
	check_counters(fd, &expected);
}

TEST(fdinfo_counts_a_ready_event_that_is_cancelled)
{
	int fd = device_open_nonblock();
	struct counters expected = get_counters(fd);
	__u64 id = add(fd, 0, 0, 0);

	wait_readable(fd);
	ASSERT_EQ(cancel(fd, id), 0);
	expected.added = 1;
	expected.cancelled = 1;
	check_counters(fd, &expected);
}

TEST(fdinfo_counts_a_ready_event_that_is_armed_again)
{
	int fd = device_open_nonblock();
	struct counters expected = get_counters(fd);
	__u64 id = add(fd, 0, 0, 0);

	wait_readable(fd);
	ASSERT_EQ(modify(fd, id, 0, FAR_NS), 0);
	expected.added = 1;
	expected.armed = 1;
	check_counters(fd, &expected);
}

/* A thread that arms, cancels and reads until all is done. */
struct worker {
	int fd;
	size_t rounds;
	atomic_bool done;
};

static void *arm_cancel_and_read(void *arg)
{
	struct twheel_record records[32];
	struct twheel_cmd cmds[32];
	struct worker *worker = arg;
	__u64 seed = 4;
	size_t round, i;

	for (round = 0; round < worker->rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(cmds); i++)
			cmds[i] = make_add(0, next_random(&seed) %
					   NSEC_PER_MSEC, i);
		ASSERT_EQ(submit(worker->fd, cmds, ARRAY_SIZE(cmds)),
			  ARRAY_SIZE(cmds));
		for (i = 0; i < ARRAY_SIZE(cmds); i++)
			cmds[i] = make_cmd(TWHEEL_OP_CANCEL, cmds[i].id);
		ASSERT_EQ(submit(worker->fd, cmds, ARRAY_SIZE(cmds) / 2),
			  ARRAY_SIZE(cmds) / 2);
		read_records(worker->fd, records, ARRAY_SIZE(records));
	}
	worker->done = true;
	return NULL;
}

TEST(fdinfo_adds_up_at_every_look)
{
	struct worker worker = {
		.fd = device_open_nonblock(),
		.rounds = test_count(5000),
	};
	pthread_t thread = start_thread(arm_cancel_and_read, &worker);
	struct counters last = { 0 };

	while (!worker.done) {
		struct counters now = get_counters(worker.fd);

		check_sum(&now);
		ASSERT_GE(now.added, last.added);
		ASSERT_GE(now.finished, last.finished);
		ASSERT_GE(now.cancelled, last.cancelled);
		ASSERT_GE(now.armed, 0);
		ASSERT_GE(now.ready, 0);
		ASSERT_EQ(now.records, now.finished);
		last = now;
	}
	join_thread(thread);
}
