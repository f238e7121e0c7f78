/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A line of twheelctl run, as text and as the commands to submit.
 *
 *	add WHEN [OPTION]... NAME [OPTION]...
 *	modify ID WHEN [OPTION]...
 *	cancel ID
 *	watch ID KEY>=NEED
 *	level ID KEY>=NEED
 *	signal KEY VALUE
 *	signal KEY quiet
 *	complete ID [VALUE]
 *	store DEADLINE WHEN
 *	query ID
 *	list
 *
 * WHEN is a delay (1.5s), an absolute time on the context's clock (@1700000000.5), or a
 * word shared with the kernel (deadline 3). A store takes "never" instead of a word. WHEN
 * may be missing if there is a period (every 1s).
 *
 * The options are every PERIOD, slack TIME and cancel-on-set, and for add also watch
 * KEY>=NEED, level KEY>=NEED and quorum K. NAME is all text between options; a name that
 * has the word of an option stands in double quotes. KEY is a number or a name, see key.h.
 */
#ifndef _TWHEELCTL_LINE_H
#define _TWHEELCTL_LINE_H

#include <stdbool.h>
#include <time.h>
#include <linux/twheel.h>

/* The longest line, and room for a message that quotes it. */
#define LINE_MAX_LENGTH	4095
#define LINE_MESSAGE	(LINE_MAX_LENGTH + 256)

/* The maximum number of commands of a line: an add with its watches. */
#define LINE_MAX_CMDS	(1 + TWHEEL_MAX_WATCHES)

enum verb {
	LINE_BLANK,
	LINE_ADD,
	LINE_MODIFY,
	LINE_CANCEL,
	LINE_WATCH,
	LINE_SIGNAL,
	LINE_COMPLETE,
	LINE_STORE,
	LINE_QUERY,
	LINE_LIST,
};

/**
 * struct line - a line, parsed
 * @clockid: the context's clock; set by the caller.
 * @tick_ns: the length of a tick; set by the caller.
 * @nr_deadlines: the number of shared deadlines; set by the caller.
 * @verb: what to do.
 * @cmd: the command, except for LINE_BLANK and LINE_LIST. LINE_STORE is not a command: its
 *	@key is the index of the deadline, its @time_ns the time, and TWHEEL_ABS has the
 *	meaning that it has in an ADD.
 * @cmds: @cmd and, after an ADD, its watches.
 * @nr_cmds: the number of @cmds.
 * @keys: for each command with a key, the key as text (a part of the line), else NULL.
 * @name: the name of the event, for LINE_ADD; a part of the line.
 * @message: what is wrong with the line.
 */
struct line {
	clockid_t clockid;
	__u64 tick_ns;
	__u64 nr_deadlines;
	enum verb verb;
	union {
		struct twheel_cmd cmd;
		struct twheel_cmd cmds[LINE_MAX_CMDS];
	};
	size_t nr_cmds;
	const char *keys[LINE_MAX_CMDS];
	const char *name;
	char message[LINE_MESSAGE];
};

const char *line_cut(char *text, size_t length);
bool line_parse(struct line *line, char *text);

#endif /* _TWHEELCTL_LINE_H */
