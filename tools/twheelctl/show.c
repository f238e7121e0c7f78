// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl show: draws the wheels, or prints them as JSON.
 */
#include <time.h>
#include <unistd.h>
#include <sys/utsname.h>

#include "common/color.h"
#include "common/options.h"
#include "common/table.h"
#include "common/terminal.h"
#include "twheelctl/command.h"
#include "twheelctl/draw.h"
#include "twheelctl/json.h"
#include "twheelctl/wheel_json.h"

struct show_options {
	struct settings *settings;
	struct draw_style style;
	enum color_when color;
	bool json;
};

static error_t parse_show(int key, char *arg, struct argp_state *state)
{
	struct show_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = options->settings;
		return 0;
	case 'a':
		options->style.all = true;
		return 0;
	case 'A':
		options->style.ascii = true;
		return 0;
	case 'C':
		options->color = option_color(state, arg);
		return 0;
	case 'j':
		options->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option show_argp_options[] = {
	{ "all", 'a', NULL, 0, "Draw empty levels and wheels too", 0 },
	{ "ascii", 'A', NULL, 0,
	  "Draw with ASCII characters; the default if the locale is not UTF-8", 0 },
	COLOR_OPTION('C'),
	{ "json", 'j', NULL, 0, "Print one line of JSON for each wheel", 0 },
	{ 0 }
};

static const struct argp show_argp = {
	.options = show_argp_options,
	.parser = parse_show,
	.children = settings_child,
	.doc = "Draws the wheels of each CPU and clock, which the module shows in debugfs. A\n"
	       "wheel named \"deadlines\" has the events whose time is a word in shared memory,\n"
	       "one named \"timers\" those of kernel modules, the others all other events. A\n"
	       "wheel has a row for each level, and a cell for each of its 64 slots. A cell is\n"
	       "darker if the slot has more events (on a logarithmic scale up to the fullest\n"
	       "slot). A mark stands before the current slot of the level; the slots before\n"
	       "the mark come after the last slot. A wheel without events is one line.\n"
	       "\"postponed\" counts events whose time came when their deadline in shared\n"
	       "memory was a later one already.\n"
	       "\vExamples:\n"
	       "  twheelctl show\n"
	       "  twheelctl show --json",
};

/* For a terminal: as wide as it is, with a line above the wheels and one below. */
static void show_to_people(const struct wheels *wheels, struct draw_style *style)
{
	struct utsname host;
	struct table table = { 0 };

	uname(&host);
	style->columns = terminal_columns();
	style->fold = draw_fold(style->columns);
	table_title(&table, "twheelctl show", host.nodename, time(NULL), "", stdout);
	draw_wheels(wheels, style, stdout);
	draw_legend(style, stdout);
}

enum status show_main(int argc, char **argv, struct settings *settings)
{
	struct show_options options = {
		.settings = settings,
		.style.ascii = draw_needs_ascii(),
	};
	struct wheels wheels;

	options_argp(&show_argp, argc, argv, 0, &options);
	color_choose(options.color);
	if (wheels_read(&wheels, settings->debugfs))
		return STATUS_FAILURE;
	if (options.json)
		for (size_t i = 0; i < wheels.nr; i++)
			json_line(wheel_json(&wheels.wheel[i], true), stdout);
	else if (!wheels.nr)
		puts("no wheel has been used yet");
	else if (isatty(STDOUT_FILENO))
		show_to_people(&wheels, &options.style);
	else
		draw_wheels(&wheels, &options.style, stdout);
	wheels_free(&wheels);
	return STATUS_OK;
}
