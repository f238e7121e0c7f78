// SPDX-License-Identifier: GPL-2.0
/* A thread in a call that may keep it waiting, and what came of it. */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util.h"
#include "waiter.h"

void waiter_begin(struct waiter *waiter)
{
	waiter->tid = thread_id();
}

void waiter_end(struct waiter *waiter, long ret)
{
	waiter->ret = ret;
	waiter->done = true;
}

static __u32 waiter_room(const struct waiter *waiter)
{
	return waiter->room ?: ARRAY_SIZE(waiter->records);
}

static long read_now(struct waiter *waiter)
{
	return read_records(waiter->fd, waiter->records, waiter_room(waiter));
}

void *wait_in_read(void *arg)
{
	struct waiter *waiter = arg;

	waiter_begin(waiter);
	waiter_end(waiter, read_now(waiter));
	return NULL;
}

void *wait_in_submit(void *arg)
{
	struct waiter *waiter = arg;

	waiter_begin(waiter);
	waiter_end(waiter, submit(waiter->fd, waiter->cmds, waiter->nr_cmds));
	return NULL;
}

void *wait_in_enter(void *arg)
{
	struct waiter *waiter = arg;

	waiter->arg = make_enter(waiter->cmds, waiter->nr_cmds, waiter->records,
				 waiter_room(waiter));
	waiter->arg.min_records = waiter->min_records;
	waiter->arg.flags = waiter->flags;
	waiter->arg.timeout_ns = waiter->timeout_ns ?: ENTER_FOR_EVER;
	waiter_begin(waiter);
	waiter_end(waiter, enter(waiter->fd, &waiter->arg));
	return NULL;
}

void *wait_in_poll(void *arg)
{
	struct waiter *waiter = arg;

	waiter_begin(waiter);
	wait_readable(waiter->fd);
	waiter_end(waiter, read_now(waiter));
	return NULL;
}

void *wait_in_epoll(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct waiter *waiter = arg;

	ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, waiter->fd, &event), 0);
	waiter_begin(waiter);
	ASSERT_EQ(epoll_wait(epoll, &event, 1, FOR_EVER), 1);
	waiter_end(waiter, read_now(waiter));
	close(epoll);
	return NULL;
}

void wait_waiter_asleep(struct waiter *waiter)
{
	while (!waiter->tid)
		poll(NULL, 0, 1);
	wait_asleep(waiter->tid);
	ASSERT(!waiter->done);
}
