/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between alarm.c and the backends of the alarms.
 */
#ifndef ALARM_BACKEND_H
#define ALARM_BACKEND_H

#include "alarm/alarm.h"

/* &struct alarm.state: where the alarm waits. */
enum alarm_state {
	ALARM_IDLE,
	ALARM_ON_DEVICE,	/* &struct alarm.device is valid */
	ALARM_IN_PROCESS	/* &struct alarm.node is on a wheel of process.c */
};

/**
 * struct alarm_ops - a backend
 * @backend: which one.
 * @name: its name, as alarms_name() returns it.
 * @open: as alarms_open(). The result begins with &struct alarms, after alarms_init().
 * @close: as alarms_close(); calls alarms_end().
 * @arm: arm an alarm in any state for a time.
 * @cancel: as alarm_cancel(), of an alarm that is not idle.
 * @flush: as alarms_flush().
 * @take: as alarms_take().
 */
struct alarm_ops {
	enum alarm_backend backend;
	const char *name;
	int (*open)(struct alarms **alarms);
	void (*close)(struct alarms *alarms);
	void (*arm)(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns);
	void (*cancel)(struct alarms *alarms, struct alarm *alarm);
	void (*flush)(struct alarms *alarms);
	size_t (*take)(struct alarms *alarms, uint64_t *ids, size_t nr);
};

/**
 * struct alarms - the part that all backends have
 * @ops: the backend.
 * @epoll_fd: holds the files that are readable when there is something to take.
 * @set_fd: a timerfd that never expires; its read() fails when the wall clock was set.
 * @nr_sets: how often it was set since the last alarms_clock_was_set().
 * @turn: counts calls of alarms_take(): its sources take turns to be the first, so that
 *	none waits for ever behind another.
 */
struct alarms {
	const struct alarm_ops *ops;
	int epoll_fd;
	int set_fd;
	unsigned int nr_sets;
	unsigned int turn;
};

/* The clocks as the system calls know them. */
extern const int alarm_clock_ids[ALARM_CLOCKS];

/* Returns 0 or a negative errno; alarms_end() has to follow in both cases. */
int alarms_init(struct alarms *alarms, const struct alarm_ops *ops);
void alarms_end(struct alarms *alarms);

/* Let alarms_fd() be readable while @fd is. Returns 0 or a negative errno. */
int alarms_watch(struct alarms *alarms, int fd);

#endif /* ALARM_BACKEND_H */
