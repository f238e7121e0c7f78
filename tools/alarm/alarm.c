// SPDX-License-Identifier: GPL-2.0
/*
 * Alarms: the choice of a backend, and the part that is common to both: clocks, a file to
 * poll, and the notice that the wall clock was set.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "alarm/device.h"
#include "alarm/process.h"
#include "common/time.h"

const int alarm_clock_ids[ALARM_CLOCKS] = {
	[ALARM_BOOT] = CLOCK_BOOTTIME,
	[ALARM_WALL] = CLOCK_REALTIME,
};

/* A million of them may be in memory. */
_Static_assert(sizeof(struct alarm) <= 40, "an alarm has grown");

/* A timer without a time: readable, with ECANCELED, once the clock has been set. */
static int open_set_fd(void)
{
	const struct itimerspec never = { 0 };
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0)
		timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
	return fd;
}

int alarms_init(struct alarms *alarms, const struct alarm_ops *ops)
{
	alarms->ops = ops;
	alarms->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	alarms->set_fd = open_set_fd();
	if (alarms->epoll_fd < 0 || alarms->set_fd < 0)
		return -errno;
	return alarms_watch(alarms, alarms->set_fd);
}

void alarms_end(struct alarms *alarms)
{
	if (alarms->set_fd >= 0)
		close(alarms->set_fd);
	if (alarms->epoll_fd >= 0)
		close(alarms->epoll_fd);
}

int alarms_watch(struct alarms *alarms, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(alarms->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int alarms_open(struct alarms **alarms, enum alarm_backend backend)
{
	int ret;

	if (backend != ALARM_PROCESS) {
		ret = alarm_device.open(alarms);
		if (!ret || backend == ALARM_DEVICE)
			return ret;
	}
	return alarm_process.open(alarms);
}

void alarms_close(struct alarms *alarms)
{
	if (alarms)
		alarms->ops->close(alarms);
}

enum alarm_backend alarms_backend(const struct alarms *alarms)
{
	return alarms->ops->backend;
}

const char *alarms_name(const struct alarms *alarms)
{
	return alarms->ops->name;
}

uint64_t alarms_now_ns(enum alarm_clock clock)
{
	return time_now_ns(alarm_clock_ids[clock]);
}

void alarm_add(struct alarms *alarms, struct alarm *alarm, uint64_t id,
	       enum alarm_clock clock, uint64_t time_ns)
{
	alarm->id = id;
	alarm->clock = clock;
	alarms->ops->arm(alarms, alarm, time_ns);
}

void alarm_move(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns)
{
	alarms->ops->arm(alarms, alarm, time_ns);
}

void alarm_cancel(struct alarms *alarms, struct alarm *alarm)
{
	if (alarm->state != ALARM_IDLE)
		alarms->ops->cancel(alarms, alarm);
}

bool alarm_pending(const struct alarm *alarm)
{
	return alarm->state != ALARM_IDLE;
}

int alarms_fd(const struct alarms *alarms)
{
	return alarms->epoll_fd;
}

void alarms_flush(struct alarms *alarms)
{
	alarms->ops->flush(alarms);
}

/* Count it if the clock was set since the last call. */
static void note_clock_set(struct alarms *alarms)
{
	uint64_t expirations;

	if (read(alarms->set_fd, &expirations, sizeof(expirations)) < 0 && errno == ECANCELED)
		alarms->nr_sets++;
}

size_t alarms_take(struct alarms *alarms, uint64_t *ids, size_t nr)
{
	size_t taken;

	alarms->turn++;
	taken = alarms->ops->take(alarms, ids, nr);
	/* Otherwise alarms_fd() would stay readable. */
	if (!taken)
		note_clock_set(alarms);
	return taken;
}

unsigned int alarms_clock_was_set(struct alarms *alarms)
{
	unsigned int nr;

	note_clock_set(alarms);
	nr = alarms->nr_sets;
	alarms->nr_sets = 0;
	return nr;
}
