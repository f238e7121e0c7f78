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
 * WHEN is a delay (1.5s), an absolute time on the context's clock
 * (@1700000000.5), a word that is shared with the kernel (deadline 3; not of store,
 * which puts a time there, or never), or missing where the period says it all: every
 * 1s. The
 * options are words that a name does not have: every PERIOD, slack TIME,
 * cancel-on-set, and of add also watch KEY>=NEED, level KEY>=NEED, quorum K. So a
 * name is all that stands between them; one that has such a word is put in double
 * quotes. KEY is a number or a name, see key.h.
 */
#ifndef _TWHEELCTL_LINE_H
#define _TWHEELCTL_LINE_H

#include <stdbool.h>
#include <time.h>
#include <linux/twheel.h>

/* The longest line, and room for a message that quotes it. */
#define LINE_MAX_LENGTH	4095
#define LINE_MESSAGE	(LINE_MAX_LENGTH + 256)

/* The most commands that a line is: an add with its watches. */
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
 * struct line - what a line says
 * @clockid: the context's clock; set by the caller.
 * @tick_ns: the length of a tick; set by the caller.
 * @nr_deadlines: how many words are shared; set by the caller.
 * @verb: what to do.
 * @cmd: the command for it, but for LINE_BLANK and LINE_LIST. Of LINE_STORE, which
 *	is none, @key is the word, @time_ns the time, and TWHEEL_ABS as of an ADD.
 * @cmds: that, and after an ADD its watches.
 * @nr_cmds: how many there are.
 * @keys: of each that has a key, the text that it stands as, else NULL; a part
 *	of the text.
 * @name: of the event, for LINE_ADD; a part of the text.
 * @message: what is wrong with it.
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

bool line_parse(struct line *line, char *text);

#endif /* _TWHEELCTL_LINE_H */
