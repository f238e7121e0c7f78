/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The backend in this process; and its wheels, where the backend on the device puts alarms
 * that the device has no room for.
 */
#ifndef ALARM_PROCESS_H
#define ALARM_PROCESS_H

#include "alarm/backend.h"

extern const struct alarm_ops alarm_process;

struct process_wheels;

/*
 * Open the wheels of all clocks; alarms_fd() of @alarms is readable while something on them
 * is due. Returns 0 or a negative errno. Their memory and files are allocated here, so that
 * process_wheels_add() cannot fail, but the memory is not touched before that.
 */
int process_wheels_open(struct process_wheels **wheels, struct alarms *alarms);

/* @wheels may be NULL. Alarms on them are forgotten. */
void process_wheels_close(struct process_wheels *wheels);

/* Put an alarm on the wheels of its clock; it becomes ALARM_IN_PROCESS. */
void process_wheels_add(struct process_wheels *wheels, struct alarm *alarm, uint64_t time_ns);

/* Take an alarm that is ALARM_IN_PROCESS off its wheel. It becomes ALARM_IDLE. */
void process_wheels_del(struct process_wheels *wheels, struct alarm *alarm);

/* Set the timerfds to the next tick that has work. */
void process_wheels_flush(struct process_wheels *wheels);

/* Take what is due of one clock, at most @nr ids; as alarms_take(). */
size_t process_wheels_take(struct process_wheels *wheels, enum alarm_clock clock,
			   uint64_t *ids, size_t nr);

#endif /* ALARM_PROCESS_H */
