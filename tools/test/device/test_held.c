// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of others while one thread is in the middle of a call and cannot go on, as the
 * memory that it was given is not there: what needs no lock does not wait for it.
 */
#include <errno.h>
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

/* By edge, epoll shows once that the context is readable: then it says so again. */
TEST(epoll_by_edge_is_woken_again_if_a_read_met_a_call_that_was_held)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int fd = device_open(O_RDWR), epoll = epoll_create1(EPOLL_CLOEXEC);
	struct twheel_record record;
	struct iovec iov = { .iov_base = &record, .iov_len = sizeof(record) };
	struct stuck stuck;

	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	add(fd, 0, 0, 7);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, FOR_EVER), 1);
	start_stuck(&stuck, fd);
	ASSERT_EQ(preadv2(fd, &iov, 1, -1, RWF_NOWAIT), -1);
	if (errno == EOPNOTSUPP)
		test_skip("no RWF_NOWAIT");
	ASSERT_EQ(errno, EAGAIN);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	finish_stuck(&stuck);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, FOR_EVER), 1);
	ASSERT_EQ(preadv2(fd, &iov, 1, -1, RWF_NOWAIT), sizeof(record));
	ASSERT_EQ(record.data, 7);
	close(epoll);
}
