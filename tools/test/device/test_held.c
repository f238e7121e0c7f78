// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of others while one thread is in the middle of a call and cannot go on, as the
 * memory that it was given is not there: what needs no lock does not wait for it.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "device.h"
#include "missing_page.h"
#include "stuck.h"
#include "util.h"

/* A thread in SUBMIT or read(), and what came of it. */
struct held {
	int fd;
	struct missing_page page;
	void *buffer;
	size_t nr;
	long ret;
};

static void *submit_held(void *arg)
{
	struct held *held = arg;

	held->ret = submit(held->fd, held->buffer, held->nr);
	return NULL;
}

static void *read_held(void *arg)
{
	struct held *held = arg;

	held->ret = read_records(held->fd, held->buffer, held->nr);
	return NULL;
}

/* A context with 3 ARMED events, 2 READY ones, 1 cancelled and 1 read. */
static int open_with_some_of_each(struct counters *expected)
{
	int fd = device_open_nonblock();

	add(fd, 0, 0, 0);
	wait_record(fd);
	ASSERT_EQ(cancel(fd, add(fd, 0, FAR_NS, 0)), 0);
	add_many(fd, 0, FAR_NS, 3, NULL);
	add_many(fd, 0, 0, 2, NULL);
	wait_ready(fd, 2);
	*expected = get_counters(fd);
	ASSERT_EQ(expected->added, 7);
	ASSERT_EQ(expected->armed, 3);
	ASSERT_EQ(expected->ready, 2);
	ASSERT_EQ(expected->finished, 1);
	ASSERT_EQ(expected->cancelled, 1);
	return fd;
}

TEST(fdinfo_does_not_wait_for_commands_that_are_not_there)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct held held = { .page = missing_page_map(), .nr = 1 };
	struct counters expected;
	pthread_t thread;

	held.buffer = held.page.memory;
	held.fd = open_with_some_of_each(&expected);
	thread = start_thread(submit_held, &held);
	missing_page_wait(&held.page);
	check_counters(held.fd, &expected);
	missing_page_resolve(&held.page, &cmd, sizeof(cmd));
	join_thread(thread);
	ASSERT_EQ(held.ret, 1);
	expected.added++;
	expected.armed++;
	check_counters(held.fd, &expected);
}

TEST(fdinfo_counts_what_expires_while_a_call_is_held)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct held held = { .page = missing_page_map(), .nr = 1 };
	struct counters now;
	pthread_t thread;

	held.buffer = held.page.memory;
	held.fd = device_open_nonblock();
	add_many(held.fd, 0, SOON_NS, 100, NULL);
	thread = start_thread(submit_held, &held);
	missing_page_wait(&held.page);
	do {
		now = get_counters(held.fd);
		check_sum(&now);
	} while (now.ready < 100);
	ASSERT_EQ(now.added, 100);
	ASSERT_EQ(now.armed, 0);
	ASSERT_EQ(poll_events(held.fd, 0), POLLIN);
	missing_page_resolve(&held.page, &cmd, sizeof(cmd));
	join_thread(thread);
}

/* The second page of the buffer is missing: some records are copied out, not all. */
TEST(fdinfo_adds_up_while_a_read_is_held_half_way)
{
	struct twheel_record *records = map_pages(2 * PAGE_BYTES);
	const size_t nr = 2 * PAGE_BYTES / sizeof(*records);
	struct held held = {
		.buffer = records,
		.nr = nr,
		.fd = device_open_nonblock(),
		.page = missing_page_at((char *)records + PAGE_BYTES),
	};
	struct counters now;
	pthread_t thread;
	size_t i;

	add_many(held.fd, 0, 0, nr, NULL);
	wait_ready(held.fd, nr);
	thread = start_thread(read_held, &held);
	missing_page_wait(&held.page);
	now = get_counters(held.fd);
	check_sum(&now);
	ASSERT_EQ(now.added, nr);
	ASSERT_EQ(now.armed, 0);
	ASSERT_GT(now.finished, 0);
	ASSERT_LT(now.finished, nr);
	ASSERT_EQ(now.records, now.finished);
	missing_page_resolve(&held.page, "", 1);
	join_thread(thread);
	ASSERT_EQ(held.ret, nr);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(records[i].data, i);
	ASSERT_EQ(get_counters(held.fd).finished, nr);
}

TEST(read_of_nothing_ready_does_not_wait_for_a_call_that_is_held)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct held held = { .page = missing_page_map(), .nr = 1 };
	struct twheel_record record;
	pthread_t thread;

	held.buffer = held.page.memory;
	held.fd = device_open_nonblock();
	add(held.fd, 0, FAR_NS, 0);
	thread = start_thread(submit_held, &held);
	missing_page_wait(&held.page);
	ASSERT_EQ(read_records(held.fd, &record, 1), -EAGAIN);
	missing_page_resolve(&held.page, &cmd, sizeof(cmd));
	join_thread(thread);
	ASSERT_EQ(held.ret, 1);
}

static ssize_t read_nowait(int fd, void *records, size_t nr)
{
	struct iovec iov = { .iov_base = records, .iov_len = nr * sizeof(struct twheel_record) };
	ssize_t len = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

	return len < 0 ? -errno : len / (ssize_t)sizeof(struct twheel_record);
}

static void *read_nowait_held(void *arg)
{
	struct held *held = arg;

	held->ret = read_nowait(held->fd, held->buffer, held->nr);
	return NULL;
}

/* By edge, epoll shows once that the context is readable: then it says so again. */
TEST(epoll_by_edge_is_woken_again_if_a_read_met_a_call_that_was_held)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int fd = device_open(O_RDWR), epoll = epoll_create1(EPOLL_CLOEXEC);
	struct twheel_record record;
	struct stuck stuck;
	ssize_t ret;

	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	add(fd, 0, 0, 7);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, FOR_EVER), 1);
	start_stuck(&stuck, fd);
	ret = read_nowait(fd, &record, 1);
	if (ret == -EOPNOTSUPP)
		test_skip("no RWF_NOWAIT");
	ASSERT_EQ(ret, -EAGAIN);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	finish_stuck(&stuck);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, FOR_EVER), 1);
	ASSERT_EQ(read_nowait(fd, &record, 1), 1);
	ASSERT_EQ(record.data, 7);
	close(epoll);
}

/*
 * A read that ends early, as another call waits; with a signal, or else because it does not wait.
 * False: that call had its turn meanwhile.
 */
static bool read_makes_way(void *(*read)(void *arg), int signal)
{
	const size_t nr = 1000, pages = 1 + nr * sizeof(struct twheel_record) / PAGE_BYTES;
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct twheel_record *records = map_pages(pages * PAGE_BYTES);
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct waiter other = { .fd = device_open_nonblock(), .cmds = &cmd, .nr_cmds = 1 };
	struct held held = { .fd = other.fd, .buffer = records, .nr = nr };
	pthread_t reader, caller;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	add_many(held.fd, 0, 0, nr, NULL);
	wait_ready(held.fd, nr);
	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, held.fd, &event), 0);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, FOR_EVER), 1);
	held.page = missing_page_at(records);
	reader = start_thread(read, &held);
	missing_page_wait(&held.page);
	caller = start_thread(wait_in_submit, &other);
	wait_waiter_asleep(&other);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	if (signal)
		ASSERT_EQ(pthread_kill(reader, signal), 0);
	missing_page_resolve(&held.page, "", 1);
	join_thread(reader);
	join_thread(caller);
	ASSERT_EQ(other.ret, 1);
	ASSERT_GT(held.ret, 0);
	if ((size_t)held.ret < nr) {
		ASSERT_EQ(epoll_wait(epoll, &event, 1, FOR_EVER), 1);
		ASSERT_EQ(read_records(held.fd, records, nr), nr - held.ret);
	}
	close(epoll);
	close(held.fd);
	return (size_t)held.ret < nr;
}

/* By edge, epoll shows the records that such a read leaves. */
TEST(epoll_by_edge_is_woken_again_if_a_read_made_way_for_another_call)
{
	struct twheel_record record;
	unsigned int attempts = 0;

	if (read_nowait(device_open(O_RDWR), &record, 1) == -EOPNOTSUPP)
		test_skip("no RWF_NOWAIT");
	/* The other call, which is woken on the same CPU, has no turn before the read ends. */
	pin_to_this_cpu();
	while (!read_makes_way(read_nowait_held, 0))
		if (++attempts == 20)
			test_skip("this kernel preempts the reader");
}

TEST(epoll_by_edge_is_woken_again_if_a_signal_ended_a_read)
{
	unsigned int attempts = 0;

	count_signals(SIGUSR1, 0);
	pin_to_this_cpu();
	while (!read_makes_way(read_held, SIGUSR1))
		if (++attempts == 20)
			test_skip("this kernel preempts the reader");
}
