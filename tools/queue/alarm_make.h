/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a make of the alarms has for alarm.c, and alarm.c for the makes.
 */
#ifndef TWHEELQ_ALARM_MAKE_H
#define TWHEELQ_ALARM_MAKE_H

#include "alarm.h"

/* &struct alarm.state */
enum alarm_state {
	ALARM_IDLE,
	ALARM_ARMED,
	ALARM_REFUSED	/* the device had no room; alarms_refused() has not told it yet */
};

/**
 * struct alarm_ops - a make
 * @make: which.
 * @name: how it is called.
 * @open: as alarms_open(); what it makes begins with &struct alarms, after alarms_init().
 * @close: as alarms_close(), and then alarms_end().
 * @arm: give an alarm of any state a time, and make it armed. Returns 0 or -ENOMEM, and
 *	then it is as it was.
 * @cancel: as alarm_cancel(), of an alarm that is not idle.
 * @flush: as alarms_flush().
 * @refused: as alarms_refused().
 * @take: as alarms_take().
 */
struct alarm_ops {
	enum alarm_make make;
	const char *name;
	int (*open)(struct alarms **alarms);
	void (*close)(struct alarms *alarms);
	int (*arm)(struct alarms *alarms, struct alarm *alarm, uint64_t time_ns);
	void (*cancel)(struct alarms *alarms, struct alarm *alarm);
	int (*flush)(struct alarms *alarms);
	bool (*refused)(struct alarms *alarms, uint64_t *id);
	size_t (*take)(struct alarms *alarms, uint64_t *ids, size_t nr);
};

/**
 * struct alarms - what all makes have
 * @ops: the make.
 * @epoll_fd: holds the files that are readable when there is something to take.
 * @set_fd: a timerfd that never expires, and tells when the wall clock is set.
 * @nr_sets: how often it has told that, since alarms_clock_was_set() was called last.
 * @turn: which clock comes first when alarms are taken: each in its turn, so that none
 *	waits for ever behind another one.
 */
struct alarms {
	const struct alarm_ops *ops;
	int epoll_fd;
	int set_fd;
	unsigned int nr_sets;
	unsigned int turn;
};

extern const struct alarm_ops alarm_device;
extern const struct alarm_ops alarm_process;

/* The clocks as the system calls know them. */
extern const int alarm_clock_ids[ALARM_CLOCKS];

/* Returns 0 or a negative errno; alarms_end() has to follow also then. */
int alarms_init(struct alarms *alarms, const struct alarm_ops *ops);
void alarms_end(struct alarms *alarms);

/* Let alarms_fd() be readable when @fd is. Returns 0 or a negative errno. */
int alarms_watch(struct alarms *alarms, int fd);

#endif /* TWHEELQ_ALARM_MAKE_H */
