// SPDX-License-Identifier: GPL-2.0
/* Timers by timer_create(), their signals queued and read from a signalfd. */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "way.h"

struct posix_set {
	struct set set;
	int signals;
	timer_t *timers;
};

static struct posix_set *posix(struct set *set)
{
	return (struct posix_set *)set;
}

static void set_time(struct posix_set *set, __u32 timer, __u64 due_ns)
{
	struct itimerspec time = { .it_value = to_timespec(due_ns) };

	if (timer_settime(set->timers[timer], TIMER_ABSTIME, &time, NULL))
		err(1, "timer_settime");
	set->set.calls++;
}

static void posix_arm(struct set *of, const struct timers *timers)
{
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		set_time(posix(of), timers->timer[i], timers->due_ns[i]);
}

static void posix_cancel(struct set *of, const struct timers *timers)
{
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		set_time(posix(of), timers->timer[i], 0);
}

static void posix_query(struct set *of, const struct timers *timers)
{
	struct itimerspec time;
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		if (timer_gettime(posix(of)->timers[timers->timer[i]], &time))
			err(1, "timer_gettime");
	of->calls += timers->nr;
}

static __u32 posix_collect(struct set *of, __u32 *timers, __u32 room, bool wait)
{
	struct pollfd poll_fd = { .fd = posix(of)->signals, .events = POLLIN };
	struct signalfd_siginfo infos[COLLECT_MAX];
	ssize_t size;
	__u32 i, nr;

	if (wait) {
		of->calls++;
		if (poll(&poll_fd, 1, -1) != 1)
			err(1, "poll");
	}
	of->calls++;
	size = read(poll_fd.fd, infos, room * sizeof(*infos));
	if (size < 0 && errno != EAGAIN)
		err(1, "read of a signalfd");
	nr = size < 0 ? 0 : size / sizeof(*infos);
	for (i = 0; i < nr; i++)
		timers[i] = infos[i].ssi_int;
	return nr;
}

static void open_timer(struct posix_set *set, __u32 timer)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGRTMIN,
		.sigev_value.sival_int = timer,
	};

	if (timer_create(CLOCK_MONOTONIC, &event, &set->timers[timer]))
		err(1, "timer_create, %u timers before it", timer);
}

static struct set *posix_open(const struct way *way, __u32 nr)
{
	struct posix_set *set = bench_alloc(1, sizeof(*set));
	sigset_t signals;
	__u32 i;

	raise_limits(nr);
	set->set.way = way;
	set->set.nr = nr;
	set->timers = bench_alloc(nr, sizeof(*set->timers));
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	set->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (set->signals < 0)
		err(1, "signalfd");
	for (i = 0; i < nr; i++)
		open_timer(set, i);
	return &set->set;
}

static void posix_close(struct set *of)
{
	struct posix_set *set = posix(of);
	__u32 i;

	for (i = 0; i < of->nr; i++)
		timer_delete(set->timers[i]);
	close(set->signals);
	free(set->timers);
	free(set);
}

const struct way way_posix = {
	.name = "posix",
	.text = "timer_create, signalfd",
	.most = 100000,
	.why = "timer_create walks one of 512 lists for a free id",
	.delivers = true,
	.open = posix_open,
	.close = posix_close,
	.arm = posix_arm,
	.cancel = posix_cancel,
	.rearm = posix_arm,
	.query = posix_query,
	.collect = posix_collect,
};
