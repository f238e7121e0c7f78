// SPDX-License-Identifier: GPL-2.0
/* Timers by a timerfd each, all in one epoll set. */
#include <err.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"
#include "way.h"

struct timerfd_set {
	struct set set;
	int epoll;
	int *fds;
};

static struct timerfd_set *timerfd(struct set *set)
{
	return (struct timerfd_set *)set;
}

static void set_time(struct timerfd_set *set, __u32 timer, __u64 due_ns)
{
	struct itimerspec time = { .it_value = to_timespec(due_ns) };

	if (timerfd_settime(set->fds[timer], TFD_TIMER_ABSTIME, &time, NULL))
		err(1, "timerfd_settime");
	set->set.calls++;
}

static void timerfd_arm(struct set *of, const struct timers *timers)
{
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		set_time(timerfd(of), timers->timer[i], timers->due_ns[i]);
}

static void timerfd_cancel(struct set *of, const struct timers *timers)
{
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		set_time(timerfd(of), timers->timer[i], 0);
}

static void timerfd_query(struct set *of, const struct timers *timers)
{
	struct itimerspec time;
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		if (timerfd_gettime(timerfd(of)->fds[timers->timer[i]], &time))
			err(1, "timerfd_gettime");
	of->calls += timers->nr;
}

static __u32 timerfd_collect(struct set *of, __u32 *timers, __u32 room,
			     bool wait)
{
	struct epoll_event events[COLLECT_MAX];
	struct timerfd_set *set = timerfd(of);
	int i, nr = epoll_wait(set->epoll, events, room, wait ? -1 : 0);
	__u64 count;

	if (nr < 0)
		err(1, "epoll_wait");
	if (wait)
		of->told_ns = clock_ns();
	for (i = 0; i < nr; i++) {
		timers[i] = events[i].data.u32;
		if (read(set->fds[timers[i]], &count, sizeof(count)) < 0)
			err(1, "read of a timerfd");
	}
	of->calls += 1 + nr;
	return nr;
}

static void open_timer(struct timerfd_set *set, __u32 timer)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = timer };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0)
		err(1, "timerfd_create, %u timers before it", timer);
	if (epoll_ctl(set->epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl, %u timers before it", timer);
	set->fds[timer] = fd;
}

static struct set *timerfd_open(const struct way *way, __u32 nr)
{
	struct timerfd_set *set = bench_alloc(1, sizeof(*set));
	__u32 i;

	raise_limits(nr);
	set->set.way = way;
	set->set.nr = nr;
	set->fds = bench_alloc(nr, sizeof(*set->fds));
	set->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (set->epoll < 0)
		err(1, "epoll_create1");
	for (i = 0; i < nr; i++)
		open_timer(set, i);
	return &set->set;
}

static void timerfd_close(struct set *of)
{
	struct timerfd_set *set = timerfd(of);
	__u32 i;

	close(set->epoll);
	for (i = 0; i < of->nr; i++)
		close(set->fds[i]);
	free(set->fds);
	free(set);
}

const struct way way_timerfd = {
	.name = "timerfd",
	.text = "timerfd, epoll",
	.most = 1000000,
	.why = "the kernel has not as many files",
	.delivers = true,
	.open = timerfd_open,
	.close = timerfd_close,
	.arm = timerfd_arm,
	.cancel = timerfd_cancel,
	.rearm = timerfd_arm,
	.query = timerfd_query,
	.collect = timerfd_collect,
};
