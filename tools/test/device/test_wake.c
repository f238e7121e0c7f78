// SPDX-License-Identifier: GPL-2.0
/* wake_count and wake_delay_ns: when a file with records is readable. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "device.h"
#include "util.h"
#include "waiter.h"

/* A context readable at @count records, or when the oldest is @delay_ns old. */
static int open_waking(int flags, __u32 count, __u64 delay_ns)
{
	struct twheel_config config = default_config();

	config.wake_count = count;
	config.wake_delay_ns = delay_ns;
	return device_open_configured(flags | O_RDWR, &config);
}

static int open_waking_nonblock(__u32 count, __u64 delay_ns)
{
	return open_waking(O_NONBLOCK, count, delay_ns);
}

/* Make @nr records ready, whose data is 0, 1, ... */
static void add_ready(int fd, size_t nr)
{
	long long ready = get_counters(fd).ready;

	add_many(fd, 0, 0, nr, NULL);
	wait_ready(fd, ready + nr);
}

static int select_now(int fd)
{
	struct timeval zero = { 0 };
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(fd, &fds);
	return select(fd + 1, &fds, NULL, NULL, &zero);
}

static int epoll_open(int fd, __u32 events)
{
	struct epoll_event event = { .events = events };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_GE(epoll, 0);
	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	return epoll;
}

static int epoll_events(int epoll, int timeout_ms)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, timeout_ms);
}

static void check_readable(int fd, bool expected)
{
	int level = epoll_open(fd, EPOLLIN);

	ASSERT_EQ(poll_events(fd, 0), expected ? POLLIN : 0);
	ASSERT_EQ(select_now(fd), expected);
	ASSERT_EQ(epoll_events(level, 0), expected);
	close(level);
}

/* --- wake_count ------------------------------------------------------------- */

TEST(wake_count_of_records_makes_it_readable_and_fewer_do_not)
{
	static const __u32 counts[] = { 2, 3, 10, 64, 65, 300 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		int fd = open_waking_nonblock(counts[i], FAR_NS);

		test_about("wake_count %u", counts[i]);
		add_ready(fd, counts[i] - 1);
		check_readable(fd, false);
		add_ready(fd, 1);
		check_readable(fd, true);
		add_ready(fd, 1);
		check_readable(fd, true);
	}
}

TEST(wake_count_of_0_and_1_make_it_readable_at_one_record)
{
	__u32 count;

	for (count = 0; count < 2; count++) {
		int fd = open_waking_nonblock(count, 0);

		check_readable(fd, false);
		add_ready(fd, 1);
		check_readable(fd, true);
	}
}

TEST(wake_count_is_not_reached_by_armed_events)
{
	int fd = open_waking_nonblock(3, FAR_NS);

	add_many(fd, 0, FAR_NS, 10, NULL);
	add_ready(fd, 2);
	check_readable(fd, false);
}

TEST(wake_count_is_not_reached_any_more_after_a_read)
{
	struct twheel_record records[2];
	int fd = open_waking_nonblock(3, FAR_NS);

	add_ready(fd, 4);
	check_readable(fd, true);
	ASSERT_EQ(read_records(fd, records, 2), 2);
	check_readable(fd, false);
	add_ready(fd, 1);
	check_readable(fd, true);
}

TEST(wake_count_is_not_reached_any_more_after_a_cancel)
{
	int fd = open_waking_nonblock(3, FAR_NS);
	__u64 ids[3];

	add_many(fd, 0, 0, 3, ids);
	wait_ready(fd, 3);
	check_readable(fd, true);
	ASSERT_EQ(cancel(fd, ids[1]), 0);
	check_readable(fd, false);
}

TEST(wake_count_is_not_reached_any_more_after_a_modify)
{
	int fd = open_waking_nonblock(3, FAR_NS);
	__u64 ids[3];

	add_many(fd, 0, 0, 3, ids);
	wait_ready(fd, 3);
	ASSERT_EQ(modify(fd, ids[0], 0, FAR_NS), 0);
	check_readable(fd, false);
	ASSERT_EQ(modify(fd, ids[0], 0, 0), 0);
	check_readable(fd, true);
}

TEST(wake_count_is_not_heeded_by_a_read_that_does_not_wait)
{
	struct twheel_record records[10];
	int fd = open_waking_nonblock(100, FAR_NS);

	ASSERT_EQ(read_records(fd, records, 10), -EAGAIN);
	add_ready(fd, 3);
	check_readable(fd, false);
	ASSERT_EQ(read_records(fd, records, 10), 3);
	ASSERT_EQ(read_records(fd, records, 10), -EAGAIN);
}

/* --- wake_delay_ns ---------------------------------------------------------- */

TEST(wake_delay_makes_it_readable_when_the_oldest_is_that_old)
{
	static const __u64 delays[] = {
		1, NSEC_PER_USEC, NSEC_PER_MSEC, SOON_NS,
	};
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		int fd = open_waking_nonblock(100, delays[i]);

		for (k = 0; k < 5; k++) {
			struct twheel_record record;
			__u64 now_ns;

			test_about("wake_delay_ns %llu, turn %zu", delays[i],
				   k);
			add(fd, 0, k % 2 * NSEC_PER_MSEC, 0);
			wait_readable(fd);
			now_ns = monotonic_ns();
			record = wait_record(fd);
			ASSERT_GE(now_ns, record.fired_ns + delays[i]);
			check_readable(fd, false);
		}
	}
}

TEST(wake_delay_wakes_a_read_that_waits)
{
	int fd = open_waking(0, 100, SOON_NS);
	unsigned int i;

	for (i = 0; i < 5; i++) {
		struct twheel_record record;
		__u64 now_ns;

		add(fd, 0, i % 2 * NSEC_PER_MSEC, i);
		ASSERT_EQ(read_records(fd, &record, 1), 1);
		now_ns = monotonic_ns();
		check_record(&record);
		ASSERT_EQ(record.data, i);
		ASSERT_GE(now_ns, record.fired_ns + SOON_NS);
	}
}

TEST(wake_delay_wakes_epoll)
{
	static const __u32 kinds[] = { EPOLLIN, EPOLLIN | EPOLLET };
	size_t i, k;

	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		int fd = open_waking_nonblock(100, NSEC_PER_MSEC);
		int epoll = epoll_open(fd, kinds[k]);

		for (i = 0; i < 20; i++) {
			struct twheel_record record;
			__u64 now_ns;

			test_about("kind %zu, turn %zu", k, i);
			add(fd, 0, i % 3 * NSEC_PER_MSEC, i);
			ASSERT_EQ(epoll_events(epoll, FOR_EVER), 1);
			now_ns = monotonic_ns();
			ASSERT_EQ(read_records(fd, &record, 1), 1);
			ASSERT_GE(now_ns, record.fired_ns + NSEC_PER_MSEC);
			ASSERT_EQ(epoll_events(epoll, 0), 0);
		}
	}
}

TEST(wake_delay_counts_from_the_oldest_record_that_is_left)
{
	int fd = open_waking_nonblock(100, SOON_NS);
	struct twheel_record record;
	__u64 id, now_ns;

	/* Each time the oldest goes, the next one's age counts. */
	add_ready(fd, 1);
	id = add(fd, 0, NSEC_PER_MSEC, 1);
	wait_ready(fd, 2);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	add(fd, 0, 2 * NSEC_PER_MSEC, 2);
	wait_ready(fd, 2);
	ASSERT_EQ(cancel(fd, id), 0);
	wait_readable(fd);
	now_ns = monotonic_ns();
	record = wait_record(fd);
	ASSERT_EQ(record.data, 2);
	ASSERT_GE(now_ns, record.fired_ns + SOON_NS);
}

TEST(wake_delay_of_any_length_is_taken)
{
	static const __u64 delays[] = {
		FAR_NS, NEVER_NS - 1, NEVER_NS, ~0ULL - 1, ~0ULL,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		int fd = open_waking_nonblock(2, delays[i]);

		test_about("wake_delay_ns %llu", delays[i]);
		add_ready(fd, 1);
		check_readable(fd, false);
		add(fd, 0, SOON_NS, 1);
		wait_ready(fd, 2);
		check_readable(fd, true);
	}
}

/* --- contexts that are full ------------------------------------------------- */

static int open_small(int flags, __u64 max_events)
{
	struct twheel_config config = default_config();

	config.max_events = max_events;
	config.wake_count = 100;
	config.wake_delay_ns = FAR_NS;
	return device_open_configured(flags | O_RDWR, &config);
}

TEST(wake_count_above_max_events_is_no_matter_when_the_context_is_full)
{
	struct twheel_record records[4];
	int fd = open_small(O_NONBLOCK, 4);

	add_ready(fd, 3);
	check_readable(fd, false);
	add_ready(fd, 1);
	check_readable(fd, true);
	ASSERT_EQ(read_records(fd, records, 4), 4);
	check_readable(fd, false);
}

TEST(wake_of_a_context_full_of_armed_events_needs_one_record)
{
	int fd = open_small(O_NONBLOCK, 4);

	add_many(fd, 0, FAR_NS, 3, NULL);
	check_readable(fd, false);
	add_ready(fd, 1);
	check_readable(fd, true);
	wait_record(fd);
	check_readable(fd, false);
	add(fd, 0, FAR_NS, 0);
	check_readable(fd, false);
}

TEST(wake_of_a_read_that_waits_by_a_context_that_is_full)
{
	struct twheel_record records[4];
	int fd = open_small(0, 4);

	add_many(fd, TWHEEL_ABS, monotonic_ns() + SOON_NS, 4, NULL);
	ASSERT_EQ(read_records(fd, records, 4), 4);
}

/* --- who is woken ----------------------------------------------------------- */

/* Check that a waiter sleeps on at 1 to @count - 1 records, and wakes at @count. */
static void check_wakes_at(struct waiter *waiter, void *(*wait)(void *arg),
			   size_t count)
{
	pthread_t thread = start_thread(wait, waiter);
	size_t i;

	for (i = 0; i < count - 1; i++) {
		wait_waiter_asleep(waiter);
		add(waiter->fd, 0, i % 2 * NSEC_PER_MSEC, i);
		wait_ready(waiter->fd, i + 1);
	}
	wait_waiter_asleep(waiter);
	add(waiter->fd, 0, NSEC_PER_MSEC, i);
	join_thread(thread);
	ASSERT_EQ(waiter->ret, count);
}

TEST(poll_sleeps_on_until_there_are_wake_count_records)
{
	struct waiter waiter = { .fd = open_waking_nonblock(5, FAR_NS) };

	check_wakes_at(&waiter, wait_in_poll, 5);
}

TEST(epoll_by_edge_sleeps_on_until_there_are_wake_count_records)
{
	struct waiter waiter = { .fd = open_waking_nonblock(5, FAR_NS) };

	check_wakes_at(&waiter, wait_in_epoll, 5);
}

TEST(read_sleeps_on_until_there_are_wake_count_records)
{
	struct waiter waiter = { .fd = open_waking(0, 5, FAR_NS) };
	size_t i;

	check_wakes_at(&waiter, wait_in_read, 5);
	for (i = 0; i < 5; i++)
		ASSERT_EQ(waiter.records[i].data, i);
}

TEST(read_that_leaves_wake_count_records_wakes_the_next_reader)
{
	int fd = open_waking(0, 2, FAR_NS);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		struct waiter waiters[2] = {
			{ .fd = fd, .room = 2 }, { .fd = fd, .room = 2 },
		};
		pthread_t threads[2];

		test_about("round %u", i);
		threads[0] = start_thread(wait_in_read, &waiters[0]);
		wait_waiter_asleep(&waiters[0]);
		threads[1] = start_thread(wait_in_read, &waiters[1]);
		wait_waiter_asleep(&waiters[1]);
		add_many(fd, TWHEEL_ABS, monotonic_ns() + NSEC_PER_MSEC, 4,
			 NULL);
		join_thread(threads[0]);
		join_thread(threads[1]);
		ASSERT_EQ(waiters[0].ret, 2);
		ASSERT_EQ(waiters[1].ret, 2);
	}
}

TEST(read_sleeps_on_after_the_records_were_cancelled)
{
	struct waiter waiter = { .fd = open_waking(0, 3, FAR_NS) };
	pthread_t thread = start_thread(wait_in_read, &waiter);
	unsigned int i;
	__u64 ids[2];

	for (i = 0; i < 20; i++) {
		wait_waiter_asleep(&waiter);
		add_many(waiter.fd, 0, 0, 2, ids);
		wait_ready(waiter.fd, 2);
		ASSERT_EQ(cancel(waiter.fd, ids[i % 2]), 0);
		ASSERT_EQ(cancel(waiter.fd, ids[(i + 1) % 2]), 0);
	}
	wait_waiter_asleep(&waiter);
	add_many(waiter.fd, 0, 0, 3, NULL);
	join_thread(thread);
	ASSERT_EQ(waiter.ret, 3);
}

TEST(poll_is_woken_when_an_add_makes_the_context_full)
{
	struct waiter waiter = { .fd = open_small(O_NONBLOCK, 4) };
	pthread_t thread = start_thread(wait_in_poll, &waiter);

	add_ready(waiter.fd, 1);
	add_many(waiter.fd, 0, FAR_NS, 2, NULL);
	wait_waiter_asleep(&waiter);
	add(waiter.fd, 0, FAR_NS, 0);
	join_thread(thread);
	ASSERT_EQ(waiter.ret, 1);
}

/* --- again and again -------------------------------------------------------- */

TEST(epoll_by_edge_shows_each_wake_count_of_records)
{
	struct twheel_record records[5];
	int fd = open_waking_nonblock(5, FAR_NS);
	int epoll = epoll_open(fd, EPOLLIN | EPOLLET);
	unsigned int i;

	for (i = 0; i < 200; i++) {
		test_about("edge %u", i);
		add_many(fd, 0, i % 3 * 50 * NSEC_PER_USEC, 5, NULL);
		ASSERT_EQ(epoll_events(epoll, FOR_EVER), 1);
		ASSERT_EQ(read_records(fd, records, 5), 5);
		ASSERT_EQ(epoll_events(epoll, 0), 0);
	}
}

TEST(wake_count_of_records_that_come_one_by_one)
{
	int fd = open_waking_nonblock(10, FAR_NS);
	struct twheel_record records[64];
	size_t done = 0, i;

	for (i = 0; i < 500; i++)
		add(fd, 0, 5 * NSEC_PER_MSEC + i * 100 * NSEC_PER_USEC, i);
	while (done < 500) {
		long ret;

		wait_readable(fd);
		ret = read_records(fd, records, ARRAY_SIZE(records));
		ASSERT_GE(ret, 10);
		for (i = 0; i < (size_t)ret; i++)
			check_record(&records[i]);
		done += ret;
		if (500 - done < 10)
			break;
	}
	wait_ready(fd, 500 - done);
	check_readable(fd, false);
}

TEST(wake_count_and_delay_may_be_set_anew_before_the_first_event)
{
	struct twheel_config config = default_config();
	int fd = open_waking_nonblock(100, FAR_NS);

	config.wake_count = 2;
	config.wake_delay_ns = FAR_NS;
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
	config = default_config();
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
	add_ready(fd, 1);
	check_readable(fd, true);
}

TEST(wake_count_does_not_make_a_read_take_an_event_twice)
{
	enum { EVENTS = 200, ROOM = 10000 };
	struct twheel_record *records = calloc(ROOM, sizeof(*records));
	int fd = open_waking_nonblock(2, FAR_NS);
	size_t i;

	ASSERT(records);
	for (i = 0; i < EVENTS; i++)
		add_by(fd, make_periodic(0, 0, 100 * NSEC_PER_USEC, i));
	wait_ready(fd, EVENTS);
	ASSERT_EQ(read_records(fd, records, ROOM), EVENTS);
	free(records);
}

/* When the record that is there, if one is, was not yet there. */
struct young {
	int fd;
	_Atomic __u64 added_ns;
	atomic_bool stop;
};

#define YOUNG_NS	(1 * NSEC_PER_MSEC)

static void *poll_young(void *arg)
{
	struct young *young = arg;

	while (!young->stop) {
		__u64 added_ns = young->added_ns;
		int events = poll_events(young->fd, 0);
		__u64 now_ns = monotonic_ns();

		if (events && added_ns && young->added_ns == added_ns)
			ASSERT_GE(now_ns, added_ns + YOUNG_NS);
	}
	return NULL;
}

TEST(wake_delay_is_that_of_the_record_that_is_there)
{
	const unsigned int rounds = test_count(20000);
	struct young young = { .fd = open_waking_nonblock(10, YOUNG_NS) };
	pthread_t thread = start_thread(poll_young, &young);
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		__u64 id;

		young.added_ns = monotonic_ns();
		id = add(young.fd, 0, 0, 0);
		ASSERT_EQ(cancel(young.fd, id), 0);
	}
	young.stop = true;
	join_thread(thread);
}

TEST(wake_count_counts_a_periodic_event_once)
{
	int fd = open_waking_nonblock(2, FAR_NS);
	__u64 due_ns = monotonic_ns();

	add_by(fd, make_periodic(TWHEEL_ABS, due_ns, NSEC_PER_MSEC, 0));
	while (monotonic_ns() < due_ns + 5 * NSEC_PER_MSEC)
		;
	check_readable(fd, false);
	add_ready(fd, 1);
	check_readable(fd, true);
}

TEST(close_while_a_wake_delay_runs)
{
	const unsigned int rounds = test_count(1000);
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		__u64 delay_ns = 200 * NSEC_PER_USEC;
		int fd = open_waking_nonblock(100, delay_ns);
		__u64 until_ns;

		add(fd, 0, 0, 0);
		until_ns = monotonic_ns() + i % 20 * 20 * NSEC_PER_USEC;
		while (monotonic_ns() < until_ns)
			;
		ASSERT_EQ(close(fd), 0);
	}
}

TEST(wake_delay_around_cancel_and_read_leaves_nothing_behind)
{
	const unsigned int rounds = test_count(2000);
	__u64 delay_ns = 100 * NSEC_PER_USEC;
	int fd = open_waking_nonblock(100, delay_ns);
	struct twheel_record record;
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		__u64 id = add(fd, 0, 0, i), until_ns;

		until_ns = monotonic_ns() + i % 16 * delay_ns / 8;
		while (monotonic_ns() < until_ns)
			;
		if (i % 2)
			ASSERT_EQ(cancel(fd, id), 0);
		else
			ASSERT_EQ(read_records(fd, &record, 1), 1);
		ASSERT_EQ(poll_events(fd, 0), 0);
	}
	add(fd, 0, 0, 0);
	wait_readable(fd);
	wait_record(fd);
}
