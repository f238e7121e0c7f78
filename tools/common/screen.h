/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A table that is shown again and again with new figures, as by top: on a full screen with
 * keys, or as a line each time where there is no terminal.
 */
#ifndef COMMON_SCREEN_H
#define COMMON_SCREEN_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/types.h>

#include "common/table.h"

struct screen;

/**
 * struct screen_calls - what a program does
 * @refresh: takes new figures. Returns false after a message if it cannot.
 * @compose: writes the text of the full screen, without the legend of keys.
 * @print: writes a line to stdout.
 */
struct screen_calls {
	bool (*refresh)(struct screen *screen);
	void (*compose)(struct screen *screen, FILE *out);
	void (*print)(struct screen *screen);
};

/**
 * struct screen - figures that are shown again and again
 * @calls: what the program does.
 * @table: the columns, and the order of the rows.
 * @interval_ns: the time between refreshes.
 * @count: the number of refreshes; 0 for any number.
 * @only_lines: a terminal gets lines too.
 * @nr: the number of refreshes so far.
 * @is_full: a terminal shows the full screen; set by screen_watch().
 */
struct screen {
	const struct screen_calls *calls;
	struct table table;
	__u64 interval_ns;
	__u64 count;
	bool only_lines;
	__u64 nr;
	bool is_full;
};

/*
 * Refresh and show until the user quits or @count is reached; the first refresh comes after one
 * interval. Returns false after a message if a refresh has failed. The program ends with a
 * message if the output cannot be written.
 */
bool screen_watch(struct screen *screen);

#endif /* COMMON_SCREEN_H */
