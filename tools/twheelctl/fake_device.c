// SPDX-License-Identifier: GPL-2.0
/*
 * A device for the test, in place of device.c: it needs no module, and breaks
 * the one rule that the environment variable TWHEELCTL_FAULT names, for every
 * tenth event.
 *
 *	lose		it never expires
 *	duplicate	its record comes twice
 *	early		it fires 50 ms before it is due
 *	hasty		so too, and it says that it fired when it was due
 *	mixup		its record has the data of its neighbour
 *	misdated	its record says another due time
 *	uncancelled	CANCEL gives 0 and it expires all the same
 *	unmodified	MODIFY gives 0 and changes nothing
 *	stale		CANCEL and MODIFY give 0 when it has ended
 *	full		ADD gives -ENOSPC, from the first event on
 *	forgetful	MODIFY gives -ENOENT
 *	miscounted	it is counted as added twice
 *
 * An event's id is its place in a table that only grows. The file is a timerfd,
 * set to when the next event is due, or to the past while one is ready.
 */
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#include "common.h"
#include "device.h"

#define MAX_EVENTS	10000
#define EARLY_NS	(50 * NSEC_PER_MSEC)
#define NEVER_NS	(~0ULL)

static struct fake_event {
	__u64 data;
	__u64 due_ns;
	bool live;
	bool again;
} events[MAX_EVENTS];

static size_t nr_events;
static struct counters totals;

static bool fault(const char *name, size_t event)
{
	const char *wanted = getenv("TWHEELCTL_FAULT");

	return wanted && !strcmp(wanted, name) && event % 10 == 0;
}

/* When an event will fire. */
static __u64 fires_ns(size_t i)
{
	if (!events[i].live || fault("lose", i))
		return NEVER_NS;
	if (fault("early", i) || fault("hasty", i))
		return events[i].due_ns - EARLY_NS;
	return events[i].due_ns;
}

/* The event that fires first. */
static size_t first_event(void)
{
	size_t first = 0;

	for (size_t i = 1; i < nr_events; i++)
		if (fires_ns(i) < fires_ns(first))
			first = i;
	return first;
}

static void set_alarm(struct device *dev)
{
	__u64 ns = nr_events ? fires_ns(first_event()) : NEVER_NS;
	struct itimerspec alarm = { 0 };

	if (ns != NEVER_NS) {
		alarm.it_value.tv_sec = ns / NSEC_PER_SEC;
		alarm.it_value.tv_nsec = ns % NSEC_PER_SEC;
	}
	timerfd_settime(dev->fd, TFD_TIMER_ABSTIME, &alarm, NULL);
}

int device_open(struct device *dev, const char *path)
{
	(void)path;
	dev->info = (struct twheel_info){
		.abi = TWHEEL_ABI_VERSION,
		.features = TWHEEL_FEATURE_PERIODIC | 1ULL << 63,
		.tick_ns = 65536,
		.max_events = MAX_EVENTS,
	};
	dev->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	return dev->fd < 0 ? -errno : 0;
}

int device_limit(struct device *dev, __u64 max_events)
{
	if (max_events > MAX_EVENTS)
		return -ENOSPC;
	dev->info.max_events = max_events;
	return 0;
}

static int add(struct device *dev, struct twheel_cmd *cmd, __u64 time_ns)
{
	if (nr_events == dev->info.max_events || fault("full", nr_events))
		return -ENOSPC;
	totals.added += fault("miscounted", nr_events) ? 2 : 1;
	events[nr_events++] = (struct fake_event){
		.data = cmd->data,
		.due_ns = time_ns,
		.live = true,
	};
	cmd->id = nr_events;
	return 0;
}

static int change(struct twheel_cmd *cmd, __u64 time_ns)
{
	size_t i = cmd->id - 1;

	if (i >= nr_events)
		return -ENOENT;
	if (!events[i].live)
		return fault("stale", i) ? 0 : -ENOENT;
	if (cmd->op == TWHEEL_OP_CANCEL) {
		totals.cancelled++;
		events[i].live = fault("uncancelled", i);
	} else if (cmd->op == TWHEEL_OP_QUERY) {
		cmd->time_ns = events[i].due_ns;
		return events[i].due_ns <= now_ns() ? TWHEEL_READY : TWHEEL_ARMED;
	} else if (fault("forgetful", i)) {
		return -ENOENT;
	} else if (!fault("unmodified", i)) {
		events[i].due_ns = time_ns;
	}
	return 0;
}

int device_submit(struct device *dev, struct twheel_cmd *cmds, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		__u64 base_ns = cmds[i].flags & TWHEEL_ABS ? 0 : now_ns();
		__u64 time_ns = base_ns + cmds[i].time_ns;

		cmds[i].result = cmds[i].op == TWHEEL_OP_ADD ?
				 add(dev, &cmds[i], time_ns) :
				 change(&cmds[i], time_ns);
	}
	set_alarm(dev);
	return 0;
}

static void expire(size_t i, struct twheel_record *record)
{
	struct fake_event *event = &events[i];

	*record = (struct twheel_record){
		.data = event->data + fault("mixup", i),
		.id = i + 1,
		.due_ns = event->due_ns - fault("misdated", i),
		.fired_ns = fault("hasty", i) ? event->due_ns : now_ns(),
		.count = 1,
	};
	event->live = fault("duplicate", i) && !event->again;
	event->again = event->live;
	totals.finished += !event->live;
	totals.records++;
}

int device_read(struct device *dev, struct twheel_record *records, size_t nr)
{
	__u64 now = now_ns();
	size_t done = 0;

	while (done < nr && nr_events) {
		size_t i = first_event();

		if (fires_ns(i) > now)
			break;
		expire(i, &records[done++]);
	}
	set_alarm(dev);
	return done;
}

int device_counters(struct device *dev, struct counters *counters)
{
	(void)dev;
	*counters = totals;
	for (size_t i = 0; i < nr_events; i++) {
		if (events[i].live && events[i].due_ns <= now_ns())
			counters->ready++;
		else
			counters->armed += events[i].live;
	}
	return 0;
}
