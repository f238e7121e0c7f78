// SPDX-License-Identifier: GPL-2.0
/* Colours of a terminal, as in ECMA-48; only the eight that every terminal has. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/color.h"
#include "common/util.h"

static const char * const sequences[NR_COLORS] = {
	[COLOR_END] =		"\033[0m",
	[COLOR_TITLE] =		"\033[1m",
	[COLOR_HEADING] =	"\033[7m",
	[COLOR_SORTED] =	"\033[1;7m",
	[COLOR_STRONG] =	"\033[1m",
	[COLOR_ALARM] =		"\033[1;31m",
	[COLOR_MARK] =		"\033[33m",
	[COLOR_CELL] =		"\033[36m",
};

static bool chosen;

/* https://no-color.org: a variable that is empty counts as one that is not set. */
static bool terminal_has_colors(void)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no_color && *no_color)
		return false;
	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

void color_choose(enum color_when when)
{
	chosen = when == COLOR_ALWAYS || (when == COLOR_AUTO && terminal_has_colors());
}

const char *color(enum color which)
{
	return chosen ? sequences[which] : "";
}

enum color_when option_color(struct argp_state *state, const char *text)
{
	static const char * const names[] = { "auto", "always", "never" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(text, names[i]))
			return i;
	argp_error(state, "--color \"%s\" is not auto, always or never", text);
	return COLOR_AUTO;
}
