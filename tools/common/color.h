/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Colours of a terminal.
 *
 * color() gives the bytes that begin a colour, and COLOR_END those that end it. Both are empty
 * where there are to be no colours, so that callers need not ask.
 */
#ifndef COMMON_COLOR_H
#define COMMON_COLOR_H

#include <argp.h>

/* When to use colours. */
enum color_when {
	COLOR_AUTO,	/* stdout is a terminal that has them, and NO_COLOR is not set */
	COLOR_ALWAYS,
	COLOR_NEVER,
};

/* What a text is, which decides its colour. */
enum color {
	COLOR_END,	/* the end of a colour */
	COLOR_TITLE,
	COLOR_HEADING,	/* of a column */
	COLOR_SORTED,	/* heading of the column by which rows are sorted */
	COLOR_STRONG,	/* a row of sums, a key in the legend */
	COLOR_ALARM,	/* what somebody has to look at */
	COLOR_MARK,	/* the current slot of a wheel */
	COLOR_CELL,	/* a slot with events */
	NR_COLORS
};

/* Choose; before that there are no colours. */
void color_choose(enum color_when when);

const char *color(enum color which);

/* The value of --color, for parsers of argp. */
enum color_when option_color(struct argp_state *state, const char *text);

/* The option, for tables of argp. */
#define COLOR_OPTION(key) { \
	"color", key, "auto|always|never", 0, \
	"Use colours: auto, the default, if the output is a terminal that has them and " \
	"NO_COLOR is not set", 0 }

#endif /* COMMON_COLOR_H */
