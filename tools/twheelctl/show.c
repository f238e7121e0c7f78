// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl show: draws the wheels, or prints them as JSON.
 */
#include "twheelctl/command.h"
#include "twheelctl/draw.h"
#include "twheelctl/json.h"
#include "twheelctl/wheel_json.h"

struct show_options {
	struct settings *settings;
	struct draw_style style;
	bool json;
};

static error_t parse_show(int key, char *arg, struct argp_state *state)
{
	struct show_options *options = state->input;

	(void)arg;
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

enum status show_main(int argc, char **argv, struct settings *settings)
{
	struct show_options options = {
		.settings = settings,
		.style.ascii = draw_needs_ascii(),
	};
	struct wheels wheels;

	argp_parse(&show_argp, argc, argv, 0, NULL, &options);
	if (wheels_read(&wheels, settings->debugfs))
		return STATUS_FAILURE;
	if (options.json)
		for (size_t i = 0; i < wheels.nr; i++)
			json_line(wheel_json(&wheels.wheel[i], true), stdout);
	else if (wheels.nr)
		draw_wheels(&wheels, &options.style, stdout);
	else
		puts("no wheel has been used yet");
	wheels_free(&wheels);
	return STATUS_OK;
}
