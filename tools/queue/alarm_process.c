// SPDX-License-Identifier: GPL-2.0
/*
 * Alarms on wheels of this process: the module's wheel.c and wheels.c, as they are.
 *
 * Each clock has its wheels, and a timerfd that is set to the next tick that has work:
 *
 *	alarm_add() ---> wheels of CLOCK_BOOTTIME --- timerfd --+
 *	             \                                           > epoll_fd
 *	              -> wheels of CLOCK_REALTIME --- timerfd --+
 *
 * The wall clock has as many wheels as wheels.c needs for one that is set back; its
 * timerfd follows the clock by itself, as its time is absolute.
 *
 * A time is rounded up to a tick, and what is due at a tick is taken when that has begun:
 * so nothing is early. What alarms_take() takes off a wheel it gives out in the same call:
 * an alarm is on a wheel or idle, and nothing else knows of it.
 *
 * What always holds: after alarms_flush(), a timerfd is readable when its clock has come to
 * the next tick that has work. Between two calls it may be readable too early, as the
 * wheel is advanced, and its first node is cancelled: then nothing is taken, and it is
 * set anew.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <linux/minmax.h>

#include "../../kmod/wheels.h"
#include "alarm_make.h"

/* A tick is 2^15 ns, 33 us: beanstalkd, which spins in the last ms, is as exact. */
#define TICK_SHIFT	15

/* How many nodes are touched at most before the clock is looked at again. */
#define BUDGET		1024

/* Later ticks have no time that a timerfd could be set to. */
#define TICK_MAX	((uint64_t)INT64_MAX >> TICK_SHIFT)

/* &struct process_clock.set_tick: the timerfd has to be set. */
#define TICK_UNKNOWN	(WHEEL_NEVER - 1)

/**
 * struct process_clock - the wheels of one clock
 * @wheels: these.
 * @wheel: their memory.
 * @fd: the timerfd.
 * @set_tick: what it is set to; WHEEL_NEVER: nothing.
 * @clock: which clock.
 */
struct process_clock {
	struct wheels wheels;
	struct wheel *wheel;
	int fd;
	uint64_t set_tick;
	enum alarm_clock clock;
};

/**
 * struct process - the alarms
 * @alarms: what all makes have.
 * @clocks: the wheels of each clock.
 */
struct process {
	struct alarms alarms;
	struct process_clock clocks[ALARM_CLOCKS];
};

/* An alarm's own memory for this is declared without the kernel's types. */
_Static_assert(sizeof(struct wheel_node) == sizeof(((struct alarm *)NULL)->node),
	       "struct wheel_node is not as large as alarm.h has it");

static struct process *process_of(struct alarms *alarms)
{
	return container_of(alarms, struct process, alarms);
}

static struct wheel_node *node_of(struct alarm *alarm)
{
	return (struct wheel_node *)&alarm->node;
}

static struct alarm *alarm_of(struct wheel_node *node)
{
	return container_of((void *)node, struct alarm, node);
}

static uint64_t now_tick(const struct process_clock *clock)
{
	return alarms_now_ns(clock->clock) >> TICK_SHIFT;
}

/* The first tick that begins at a time or after it. */
static uint64_t tick_of(uint64_t time_ns)
{
	return (time_ns >> TICK_SHIFT) + !!(time_ns & ((1ULL << TICK_SHIFT) - 1));
}

static int process_arm(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns)
{
	struct process_clock *clock = &process_of(alarms)->clocks[alarm->clock];

	if (alarm->state == ALARM_ARMED)
		wheels_del(&clock->wheels, node_of(alarm));
	alarm->state = ALARM_ARMED;
	wheels_add(&clock->wheels, node_of(alarm), tick_of(time_ns), now_tick(clock));
	return 0;
}

static void process_cancel(struct alarms *alarms, struct alarm *alarm)
{
	wheels_del(&process_of(alarms)->clocks[alarm->clock].wheels, node_of(alarm));
	alarm->state = ALARM_IDLE;
}

/* Let a timerfd expire when a tick begins. */
static void set_timer(struct process_clock *clock, uint64_t tick)
{
	/* A time of 0 would disarm it. */
	uint64_t time_ns = tick ? tick << TICK_SHIFT : 1;
	struct itimerspec time = { 0 };

	if (tick <= TICK_MAX) {
		time.it_value.tv_sec = time_ns / 1000000000;
		time.it_value.tv_nsec = time_ns % 1000000000;
	}
	timerfd_settime(clock->fd, TFD_TIMER_ABSTIME, &time, NULL);
	clock->set_tick = tick;
}

static int process_flush(struct alarms *alarms)
{
	struct process *process = process_of(alarms);
	struct process_clock *clock;

	for (clock = process->clocks; clock < process->clocks + ALARM_CLOCKS; clock++) {
		uint64_t next = wheels_next(&clock->wheels, now_tick(clock));

		if (next != clock->set_tick)
			set_timer(clock, next);
	}
	return 0;
}

static bool process_refused(struct alarms *alarms, uint64_t *id)
{
	(void)alarms;
	(void)id;
	return false;
}

/* Give out the first alarms of a list, at most @nr; returns how many. */
static size_t give_out(struct process_clock *clock, struct list_head *out, uint64_t *ids,
		       size_t nr)
{
	size_t given;

	for (given = 0; given < nr && !list_empty(out); given++) {
		struct wheel_node *node = list_first_entry(out, struct wheel_node, list);
		struct alarm *alarm = alarm_of(node);

		wheels_del(&clock->wheels, node);
		alarm->state = ALARM_IDLE;
		ids[given] = alarm->id;
	}
	return given;
}

/* Put what came out back on the wheels, where it is the first again. */
static void put_back(struct process_clock *clock, struct list_head *out)
{
	while (!list_empty(out)) {
		struct wheel_node *node = list_last_entry(out, struct wheel_node, list);

		wheels_del(&clock->wheels, node);
		wheels_add_older(&clock->wheels, node, wheel_due(node), now_tick(clock));
	}
}

/* Take what is due of one clock: as many as @nr only if there is more. */
static size_t take_of(struct process_clock *clock, uint64_t *ids, size_t nr)
{
	size_t taken = 0;
	bool more = true;

	while (more && taken < nr) {
		/* As many may come out; and it is at least 2. */
		unsigned int budget = max(2U, min_t(size_t, BUDGET, nr - taken));
		struct list_head out;

		INIT_LIST_HEAD(&out);
		more = wheels_advance(&clock->wheels, now_tick(clock), budget, &out);
		taken += give_out(clock, &out, ids + taken, nr - taken);
		put_back(clock, &out);
	}
	/* If it is readable, then too early, or for what was cancelled or prefetched. */
	if (!taken && clock->set_tick != WHEEL_NEVER)
		clock->set_tick = TICK_UNKNOWN;
	return taken;
}

static size_t process_take(struct alarms *alarms, uint64_t *ids, size_t nr)
{
	struct process *process = process_of(alarms);
	size_t taken = 0;
	unsigned int i;

	for (i = 0; i < ALARM_CLOCKS; i++)
		taken += take_of(&process->clocks[(alarms->turn + i) % ALARM_CLOCKS],
				 ids + taken, nr - taken);
	return taken;
}

static void process_close(struct alarms *alarms)
{
	struct process *process = process_of(alarms);
	unsigned int i;

	for (i = 0; i < ALARM_CLOCKS; i++) {
		if (process->clocks[i].fd >= 0)
			close(process->clocks[i].fd);
		free(process->clocks[i].wheel);
	}
	alarms_end(alarms);
	free(process);
}

/* Returns 0 or a negative errno; process_close() has to follow also then. */
static int open_clock(struct process *process, enum alarm_clock id)
{
	struct process_clock *clock = &process->clocks[id];
	unsigned int nr = id == ALARM_WALL ? WHEELS_MAX : 1;

	clock->clock = id;
	clock->set_tick = WHEEL_NEVER;
	clock->wheel = calloc(nr, sizeof(*clock->wheel));
	if (!clock->wheel)
		return -ENOMEM;
	wheels_init(&clock->wheels, clock->wheel, nr, now_tick(clock));
	clock->fd = timerfd_create(alarm_clock_ids[id], TFD_CLOEXEC | TFD_NONBLOCK);
	if (clock->fd < 0)
		return -errno;
	return alarms_watch(&process->alarms, clock->fd);
}

static int process_open(struct alarms **alarms)
{
	struct process *process = calloc(1, sizeof(*process));
	enum alarm_clock i;
	int ret;

	*alarms = NULL;
	if (!process)
		return -ENOMEM;
	for (i = 0; i < ALARM_CLOCKS; i++)
		process->clocks[i].fd = -1;
	ret = alarms_init(&process->alarms, &alarm_process);
	for (i = 0; !ret && i < ALARM_CLOCKS; i++)
		ret = open_clock(process, i);
	if (ret)
		process_close(&process->alarms);
	else
		*alarms = &process->alarms;
	return ret;
}

const struct alarm_ops alarm_process = {
	.make = ALARM_PROCESS,
	.name = "process",
	.open = process_open,
	.close = process_close,
	.arm = process_arm,
	.cancel = process_cancel,
	.flush = process_flush,
	.refused = process_refused,
	.take = process_take,
};
