/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A schedule: commands for events, each at a time.
 *
 * Its file is CSV with one command a line. Blank lines and lines that begin with # are left
 * out:
 *
 *	at_s,command,name,delay_s[,interval_s[,slack_s]]
 *	0,add,a,1.5		arm a new event "a", due at 1.5
 *	0.2,modify,a,3		"a" is now due at 3.2
 *	0.2,arm,b,1		"modify" if "b" has not expired yet, else "add"
 *	0.5,cancel,b		no delay
 *	1,add,c,2,0.1		periodic: due at 3, 3.1, 3.2 and so on
 *	1,add,d,2,,0.01		due at 3, and may be up to 0.01 late
 *
 * Times are seconds since the start, exact to the nanosecond; an event is due
 * at at_s + delay_s, even if its line is run late. at_s never decreases.
 *
 * In memory, lines and events are arrays. Each name has a number, its place in sorted
 * order, and a line has only that number. The whole schedule is checked before anything
 * runs, by simulating it: an event due at t has ended for each line with at_s >= t; of a
 * periodic event, that expiration has. It is an error to "add" an event that has not ended,
 * and to "modify" or "cancel" one that was never added. It is not an error to "modify" or
 * "cancel" an event that has ended: the line counts as missed. At the end, periodic events
 * that no line cancels are cancelled by lines that the check adds.
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
 * @at_ns: the time of the command, since the start.
 * @delay_ns: the time from @at_ns until the event is due; 0 for cancel.
 * @interval_ns: the event's period; 0 for a one-shot event and for cancel.
 * @slack_ns: how late the event may be.
 * @event: the number of the event's name.
 * @number: the number of the line in the file, from 1, for messages.  A line that the
 *	check added has the number of the last line of its event.
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
 * @source: the name of its file, for messages.
 * @lines: the commands, by time.
 * @nr_lines: the number of @lines.
 * @names: the names of the events.
 * @nr_events: the number of @names.
 * @text: the memory of the names.
 * @expirations: the number of expirations if everything is on time.
 * @end_ns: the time of the last line or due time, since the start.
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
