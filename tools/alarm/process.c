// SPDX-License-Identifier: GPL-2.0
/*
 * Alarms on wheels of this process: wheel.c and wheels.c of the module, unchanged.
 *
 * Each clock has its wheels, and a timerfd that is set to the next tick that has work:
 *
 *	alarm_add() ---> wheels of CLOCK_BOOTTIME --- timerfd --+
 *	             \                                           > epoll_fd
 *	              -> wheels of CLOCK_REALTIME --- timerfd --+
 *
 * The wall clock has as many wheels as wheels.c needs for a clock that can be set back. Its
 * timerfd has an absolute time and follows the clock by itself.
 *
 * A time is rounded up to a tick, and alarms of a tick are taken after the tick has begun:
 * so no alarm is early. An alarm that alarms_take() takes off a wheel is returned by the
 * same call: an alarm is on a wheel or idle, and nothing else refers to it.
 *
 * What always holds: after process_wheels_flush(), a timerfd is readable when its clock has
 * come to the next tick that has work. It may be readable too early when the wheel was
 * advanced or its first alarm cancelled meanwhile: then nothing is taken, and the next flush
 * sets it anew.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <linux/minmax.h>

#include "../../kmod/wheels.h"
#include "alarm/process.h"
#include "common/time.h"

/* A tick is 2^12 ns, 4 us: what a job is late by it is little beside the turn of a loop. */
#define TICK_SHIFT	12

/* How many nodes are touched at most before the clock is read again. */
#define BUDGET		1024

/* A timerfd cannot be set to later ticks. */
#define TICK_MAX	((uint64_t)INT64_MAX >> TICK_SHIFT)

/* &struct process_clock.set_tick: the timerfd has to be set. */
#define TICK_UNKNOWN	(WHEEL_NEVER - 1)

/**
 * struct process_clock - the wheels of one clock
 * @wheels: these.
 * @wheel: their memory.
 * @clock: which clock.
 * @fd: the timerfd.
 * @set_tick: the tick that it is set to; WHEEL_NEVER: none.
 * @started: the wheels were initialised, by the first alarm: before that their memory is
 *	not touched.
 * @busy: an alarm is on the wheels, or the timerfd is still set.
 */
struct process_clock {
	struct wheels wheels;
	struct wheel *wheel;
	enum alarm_clock clock;
	int fd;
	uint64_t set_tick;
	bool started;
	bool busy;
};

struct process_wheels {
	struct process_clock clocks[ALARM_CLOCKS];
};

/* struct alarm has the memory of a node without the kernel's types. */
_Static_assert(sizeof(struct wheel_node) == sizeof(((struct alarm *)NULL)->node),
	       "struct wheel_node does not have the size that alarm.h has for it");

static struct wheel_node *node_of(struct alarm *alarm)
{
	return (struct wheel_node *)&alarm->node;
}

static struct alarm *alarm_of(struct wheel_node *node)
{
	return container_of((void *)node, struct alarm, node);
}

/* --- the wheels of one clock ------------------------------------------------------------ */

static unsigned int nr_wheels(enum alarm_clock clock)
{
	return clock == ALARM_WALL ? WHEELS_MAX : 1;
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

static void start(struct process_clock *clock)
{
	wheels_init(&clock->wheels, clock->wheel, nr_wheels(clock->clock), now_tick(clock));
	clock->started = true;
}

/* Let the timerfd expire when a tick begins. */
static void set_timer(struct process_clock *clock, uint64_t tick)
{
	/* A time of 0 would disarm it. */
	uint64_t time_ns = tick ? tick << TICK_SHIFT : 1;
	struct itimerspec time = { 0 };

	if (tick <= TICK_MAX)
		time.it_value = time_spec(time_ns);
	timerfd_settime(clock->fd, TFD_TIMER_ABSTIME, &time, NULL);
	clock->set_tick = tick;
}

static void flush_clock(struct process_clock *clock)
{
	uint64_t next;

	if (!clock->busy)
		return;
	next = wheels_next(&clock->wheels, now_tick(clock));
	if (next != clock->set_tick)
		set_timer(clock, next);
	clock->busy = next != WHEEL_NEVER;
}

/* Return the ids of the first alarms of a list, at most @nr; returns how many. */
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

/* Put the rest of what came out back on the wheels, as the oldest of their ticks. */
static void put_back(struct process_clock *clock, struct list_head *out)
{
	while (!list_empty(out)) {
		struct wheel_node *node = list_last_entry(out, struct wheel_node, list);

		wheels_del(&clock->wheels, node);
		wheels_add_older(&clock->wheels, node, wheel_due(node), now_tick(clock));
	}
}

static size_t take_of(struct process_clock *clock, uint64_t *ids, size_t nr)
{
	size_t taken = 0;
	bool more = true;

	while (more && taken < nr) {
		/* As many may come out; wheels_advance() wants at least 2. */
		unsigned int budget = max(2U, min_t(size_t, BUDGET, nr - taken));
		struct list_head out;

		INIT_LIST_HEAD(&out);
		more = wheels_advance(&clock->wheels, now_tick(clock), budget, &out);
		taken += give_out(clock, &out, ids + taken, nr - taken);
		put_back(clock, &out);
	}
	/* The timerfd was readable too early, or for a cancelled or prefetched alarm. */
	if (!taken && clock->set_tick != WHEEL_NEVER)
		clock->set_tick = TICK_UNKNOWN;
	return taken;
}

/* Returns 0 or a negative errno; process_wheels_close() has to follow in both cases. */
static int open_clock(struct process_clock *clock, enum alarm_clock id,
		      struct alarms *alarms)
{
	clock->clock = id;
	clock->set_tick = WHEEL_NEVER;
	clock->wheel = calloc(nr_wheels(id), sizeof(*clock->wheel));
	if (!clock->wheel)
		return -ENOMEM;
	clock->fd = timerfd_create(alarm_clock_ids[id], TFD_CLOEXEC | TFD_NONBLOCK);
	if (clock->fd < 0)
		return -errno;
	return alarms_watch(alarms, clock->fd);
}

/* --- the wheels of all clocks ----------------------------------------------------------- */

void process_wheels_close(struct process_wheels *wheels)
{
	unsigned int i;

	if (!wheels)
		return;
	for (i = 0; i < ALARM_CLOCKS; i++) {
		if (wheels->clocks[i].fd >= 0)
			close(wheels->clocks[i].fd);
		free(wheels->clocks[i].wheel);
	}
	free(wheels);
}

int process_wheels_open(struct process_wheels **out, struct alarms *alarms)
{
	struct process_wheels *wheels = calloc(1, sizeof(*wheels));
	enum alarm_clock i;
	int ret = 0;

	if (!wheels)
		return -ENOMEM;
	for (i = 0; i < ALARM_CLOCKS; i++)
		wheels->clocks[i].fd = -1;
	for (i = 0; !ret && i < ALARM_CLOCKS; i++)
		ret = open_clock(&wheels->clocks[i], i, alarms);
	if (ret)
		process_wheels_close(wheels);
	else
		*out = wheels;
	return ret;
}

void process_wheels_add(struct process_wheels *wheels, struct alarm *alarm, uint64_t time_ns)
{
	struct process_clock *clock = &wheels->clocks[alarm->clock];

	if (!clock->started)
		start(clock);
	wheels_add(&clock->wheels, node_of(alarm), tick_of(time_ns), now_tick(clock));
	clock->busy = true;
	alarm->state = ALARM_IN_PROCESS;
}

void process_wheels_del(struct process_wheels *wheels, struct alarm *alarm)
{
	wheels_del(&wheels->clocks[alarm->clock].wheels, node_of(alarm));
	alarm->state = ALARM_IDLE;
}

void process_wheels_flush(struct process_wheels *wheels)
{
	unsigned int i;

	for (i = 0; i < ALARM_CLOCKS; i++)
		flush_clock(&wheels->clocks[i]);
}

size_t process_wheels_take(struct process_wheels *wheels, enum alarm_clock clock,
			   uint64_t *ids, size_t nr)
{
	return wheels->clocks[clock].busy ? take_of(&wheels->clocks[clock], ids, nr) : 0;
}

/* --- the backend ------------------------------------------------------------------------ */

struct process {
	struct alarms alarms;
	struct process_wheels *wheels;
};

static struct process *process_of(struct alarms *alarms)
{
	return container_of(alarms, struct process, alarms);
}

static void process_arm(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns)
{
	struct process_wheels *wheels = process_of(alarms)->wheels;

	if (alarm->state == ALARM_IN_PROCESS)
		process_wheels_del(wheels, alarm);
	process_wheels_add(wheels, alarm, time_ns);
}

static void process_cancel(struct alarms *alarms, struct alarm *alarm)
{
	process_wheels_del(process_of(alarms)->wheels, alarm);
}

static void process_flush(struct alarms *alarms)
{
	process_wheels_flush(process_of(alarms)->wheels);
}

static size_t process_take(struct alarms *alarms, uint64_t *ids, size_t nr)
{
	struct process_wheels *wheels = process_of(alarms)->wheels;
	size_t taken = 0;
	unsigned int i;

	for (i = 0; i < ALARM_CLOCKS; i++)
		taken += process_wheels_take(wheels, (alarms->turn + i) % ALARM_CLOCKS,
					     ids + taken, nr - taken);
	return taken;
}

static void process_close(struct alarms *alarms)
{
	struct process *process = process_of(alarms);

	process_wheels_close(process->wheels);
	alarms_end(alarms);
	free(process);
}

static int process_open(struct alarms **alarms)
{
	struct process *process = calloc(1, sizeof(*process));
	int ret;

	*alarms = NULL;
	if (!process)
		return -ENOMEM;
	ret = alarms_init(&process->alarms, &alarm_process);
	if (!ret)
		ret = process_wheels_open(&process->wheels, &process->alarms);
	if (ret)
		process_close(&process->alarms);
	else
		*alarms = &process->alarms;
	return ret;
}

const struct alarm_ops alarm_process = {
	.backend = ALARM_PROCESS,
	.name = "process",
	.open = process_open,
	.close = process_close,
	.arm = process_arm,
	.cancel = process_cancel,
	.flush = process_flush,
	.take = process_take,
};
