/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A schedule: what is to be done to which event, and when.
 *
 * As a file it is CSV, one command a line, with blank lines and lines that
 * begin with # left out:
 *
 *	at_s,command,name,delay_s[,interval_s[,slack_s]]
 *	0,add,a,1.5		arm a new event "a", due at 1.5
 *	0.2,modify,a,3		it is now due at 3.2
 *	0.2,arm,b,1		"modify" if it is still to come, else "add"
 *	0.5,cancel,b		no delay
 *	1,add,c,2,0.1		periodic: due at 3, 3.1, 3.2 and so on
 *	1,add,d,2,,0.01		due at 3, and may be up to 0.01 late
 *
 * Times are seconds since the start, exact to the nanosecond; an event is due
 * at at_s + delay_s, whenever its line was really run. at_s never decreases.
 *
 * In memory the lines are an array, and so are the events: each name has a
 * number, its place in the order of names, and a line has only that number.
 * What is read or generated is checked as a whole before anything runs, by
 * playing it through on paper: an event due at t is over for each line with
 * at_s >= t, and of a periodic one, that expiration is. "add" of an event that
 * is not over, and "modify" or "cancel" of one that never was, are mistakes of
 * the schedule. "modify" and "cancel" of one that is over are not: they find
 * nothing, and count as missed. A periodic event that no line ends is cancelled
 * when all else is over, by a line that the check adds.
 */
#ifndef _TWHEELCTL_SCHEDULE_H
#define _TWHEELCTL_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

enum schedule_command {
	SCHEDULE_ADD,
	SCHEDULE_ARM,
	SCHEDULE_MODIFY,
	SCHEDULE_CANCEL,
	NR_SCHEDULE_COMMANDS
};

#define SCHEDULE_FIELDS	"at_s,command,name,delay_s[,interval_s[,slack_s]]"

extern const char * const schedule_command_names[NR_SCHEDULE_COMMANDS];

/**
 * struct schedule_line - one command
 * @at_ns: when, since the start.
 * @delay_ns: how long after @at_ns the event is due; 0 for cancel.
 * @interval_ns: its period; 0 for a one-shot event and for cancel.
 * @slack_ns: how much later than that it may be.
 * @event: the number of the event's name.
 * @number: of the line in the file, from 1; what messages call it.  A line that
 *	the check added has that of the last line of its event.
 * @command: enum schedule_command.
 */
struct schedule_line {
	__u64 at_ns;
	__u64 delay_ns;
	__u64 interval_ns;
	__u64 slack_ns;
	__u32 event;
	__u32 number;
	__u8 command;
};

/**
 * struct schedule - a whole schedule
 * @source: what messages call it: the name of its file.
 * @lines: the commands, by time.
 * @nr_lines: how many there are.
 * @names: of the events.
 * @nr_events: how many there are.
 * @text: holds the names.
 * @expirations: how many times an event expires if all goes by the schedule.
 * @end_ns: when the last line or event is due, since the start.
 * @slack_ns: the greatest slack of a line.
 */
struct schedule {
	const char *source;
	struct schedule_line *lines;
	size_t nr_lines;
	const char * const *names;
	size_t nr_events;
	char *text;
	__u64 expirations;
	__u64 end_ns;
	__u64 slack_ns;
};

int schedule_read(struct schedule *schedule, const char *path);
int schedule_write(const struct schedule *schedule, const char *path);
int schedule_check(struct schedule *schedule);
int schedule_check_one_shot(const struct schedule *schedule);
int schedule_check_intervals(const struct schedule *schedule, __u64 tick_ns);

void schedule_generate(struct schedule *schedule, __u32 nr_events,
		       __u64 span_ns, __u64 seed);

#endif /* _TWHEELCTL_SCHEDULE_H */
