// SPDX-License-Identifier: GPL-2.0
/* poll(), select() and epoll. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "device.h"
#include "util.h"
#include "waiter.h"

static int select_readable(int fd, struct timeval *timeout)
{
	fd_set fds;
	int ret;

	FD_ZERO(&fds);
	FD_SET(fd, &fds);
	ret = select(fd + 1, &fds, NULL, NULL, timeout);
	ASSERT_EQ(ret, !!FD_ISSET(fd, &fds));
	return ret;
}

static int select_now(int fd)
{
	struct timeval zero = { 0 };

	return select_readable(fd, &zero);
}

static int epoll_open(int fd, __u32 events)
{
	struct epoll_event event = { .events = events, .data.u64 = FILL_U64 };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_GE(epoll, 0);
	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	return epoll;
}

/* How many events there are; the one that there may be must be EPOLLIN. */
static int epoll_events(int epoll, int timeout_ms)
{
	struct epoll_event events[2];
	int ret = epoll_wait(epoll, events, 2, timeout_ms);

	ASSERT_GE(ret, 0);
	ASSERT_LE(ret, 1);
	if (ret) {
		ASSERT_EQ(events[0].events, EPOLLIN);
		ASSERT_EQ(events[0].data.u64, FILL_U64);
	}
	return ret;
}

TEST(poll_of_a_fresh_context_shows_nothing)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(poll_events(fd, 0), 0);
	ASSERT_EQ(select_now(fd), 0);
	ASSERT_EQ(epoll_events(epoll_open(fd, EPOLLIN), 0), 0);
}

TEST(poll_of_a_context_with_armed_events_shows_nothing)
{
	int fd = device_open_nonblock();

	add(fd, 0, FAR_NS, 0);
	ASSERT_EQ(poll_events(fd, 0), 0);
	ASSERT_EQ(select_now(fd), 0);
	ASSERT_EQ(epoll_events(epoll_open(fd, EPOLLIN), 0), 0);
}

TEST(poll_never_shows_that_writing_is_possible)
{
	int fd = device_open_nonblock();
	struct pollfd pollfd = { .fd = fd, .events = POLLIN | POLLOUT };

	ASSERT_EQ(poll(&pollfd, 1, 0), 0);
	add(fd, 0, 0, 0);
	ASSERT_EQ(poll(&pollfd, 1, FOR_EVER), 1);
	ASSERT_EQ(pollfd.revents, POLLIN);
}

TEST(poll_shows_a_ready_event_until_it_is_read)
{
	int fd = device_open_nonblock();
	int level = epoll_open(fd, EPOLLIN);

	add(fd, 0, NSEC_PER_MSEC, 0);
	wait_readable(fd);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	ASSERT_EQ(select_now(fd), 1);
	ASSERT_EQ(epoll_events(level, 0), 1);
	ASSERT_EQ(epoll_events(level, 0), 1);

	wait_record(fd);
	ASSERT_EQ(poll_events(fd, 0), 0);
	ASSERT_EQ(select_now(fd), 0);
	ASSERT_EQ(epoll_events(level, 0), 0);
}

TEST(poll_shows_what_is_left_after_a_read_of_some)
{
	struct twheel_record records[3];
	int fd = device_open_nonblock();
	int level = epoll_open(fd, EPOLLIN);

	add_many(fd, 0, 0, 5, NULL);
	wait_ready(fd, 5);
	ASSERT_EQ(read_records(fd, records, 3), 3);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	ASSERT_EQ(epoll_events(level, 0), 1);
	ASSERT_EQ(read_records(fd, records, 3), 2);
	ASSERT_EQ(poll_events(fd, 0), 0);
	ASSERT_EQ(epoll_events(level, 0), 0);
}

TEST(poll_shows_nothing_after_the_ready_event_was_cancelled)
{
	int fd = device_open_nonblock();
	int level = epoll_open(fd, EPOLLIN);
	__u64 id = add(fd, 0, 0, 0);

	wait_readable(fd);
	ASSERT_EQ(cancel(fd, id), 0);
	ASSERT_EQ(poll_events(fd, 0), 0);
	ASSERT_EQ(epoll_events(level, 0), 0);
}

TEST(poll_is_woken_by_an_expiry)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS;

	add(fd, TWHEEL_ABS, due_ns, 0);
	ASSERT_EQ(poll_events(fd, FOR_EVER), POLLIN);
	ASSERT_GE(monotonic_ns(), due_ns);
}

TEST(select_is_woken_by_an_expiry)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS;

	add(fd, TWHEEL_ABS, due_ns, 0);
	ASSERT_EQ(select_readable(fd, NULL), 1);
	ASSERT_GE(monotonic_ns(), due_ns);
}

TEST(epoll_wait_is_woken_by_an_expiry)
{
	int fd = device_open_nonblock();
	int epoll = epoll_open(fd, EPOLLIN);
	__u64 due_ns = monotonic_ns() + SOON_NS;

	add(fd, TWHEEL_ABS, due_ns, 0);
	ASSERT_EQ(epoll_events(epoll, FOR_EVER), 1);
	ASSERT_GE(monotonic_ns(), due_ns);
}

static void *wait_by_level(void *arg)
{
	struct waiter *waiter = arg;

	waiter_begin(waiter);
	waiter_end(waiter, epoll_events(epoll_open(waiter->fd, EPOLLIN),
					FOR_EVER));
	return NULL;
}

TEST(epoll_wait_is_woken_by_an_event_armed_meanwhile)
{
	struct waiter waiter = { .fd = device_open_nonblock() };
	pthread_t thread = start_thread(wait_by_level, &waiter);

	wait_waiter_asleep(&waiter);
	add(waiter.fd, TWHEEL_ABS, 1, 0);
	join_thread(thread);
	ASSERT_EQ(waiter.ret, 1);
}

TEST(epoll_by_edge_shows_an_edge_once)
{
	int fd = device_open_nonblock();
	int epoll = epoll_open(fd, EPOLLIN | EPOLLET);

	add(fd, 0, NSEC_PER_MSEC, 0);
	ASSERT_EQ(epoll_events(epoll, FOR_EVER), 1);
	ASSERT_EQ(epoll_events(epoll, 0), 0);
	wait_record(fd);
	ASSERT_EQ(epoll_events(epoll, 0), 0);
}

TEST(epoll_by_edge_shows_each_new_readiness)
{
	int fd = device_open_nonblock();
	int epoll = epoll_open(fd, EPOLLIN | EPOLLET);
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		test_about("edge %u", i);
		add(fd, 0, i % 3 * 50 * NSEC_PER_USEC, i);
		ASSERT_EQ(epoll_events(epoll, FOR_EVER), 1);
		ASSERT_EQ(wait_record(fd).data, i);
		check_nothing_ready(fd);
	}
}

TEST(epoll_added_when_an_event_is_ready_already_shows_it)
{
	int fd = device_open_nonblock();

	add(fd, 0, 0, 0);
	wait_readable(fd);
	ASSERT_EQ(epoll_events(epoll_open(fd, EPOLLIN), FOR_EVER), 1);
	ASSERT_EQ(epoll_events(epoll_open(fd, EPOLLIN | EPOLLET), FOR_EVER),
		  1);
}

TEST(epoll_oneshot_shows_it_once_until_it_is_armed_again)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT,
				     .data.u64 = FILL_U64 };
	int fd = device_open_nonblock();
	int epoll = epoll_open(fd, EPOLLIN | EPOLLONESHOT);

	add(fd, 0, 0, 0);
	ASSERT_EQ(epoll_events(epoll, FOR_EVER), 1);
	ASSERT_EQ(epoll_events(epoll, 0), 0);
	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event), 0);
	ASSERT_EQ(epoll_events(epoll, FOR_EVER), 1);
}

TEST(epoll_of_many_contexts_shows_those_that_are_ready)
{
	struct epoll_event events[100];
	int fds[100], epoll = epoll_create1(EPOLL_CLOEXEC);
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		struct epoll_event event = { .events = EPOLLIN,
					     .data.u64 = i };

		fds[i] = device_open_nonblock();
		ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event), 0);
		add(fds[i], 0, i % 2 ? FAR_NS : 0, 0);
	}
	for (i = 0; i < ARRAY_SIZE(fds); i += 2)
		wait_readable(fds[i]);
	ret = epoll_wait(epoll, events, ARRAY_SIZE(events), FOR_EVER);
	ASSERT_EQ(ret, ARRAY_SIZE(fds) / 2);
	while (ret--)
		ASSERT_EQ(events[ret].data.u64 % 2, 0);
}

TEST(closing_a_watched_context_leaves_epoll_working)
{
	int fd = device_open_nonblock(), other = device_open_nonblock();
	int epoll = epoll_open(fd, EPOLLIN);
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = FILL_U64 };

	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, other, &event), 0);
	add(fd, 0, 0, 0);
	wait_readable(fd);
	add(fd, 0, NSEC_PER_MSEC, 0);
	ASSERT_EQ(close(fd), 0);
	ASSERT_EQ(epoll_events(epoll, 0), 0);
	add(other, 0, 0, 0);
	ASSERT_EQ(epoll_events(epoll, FOR_EVER), 1);
}
