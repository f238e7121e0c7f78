// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl show: draws the wheels, or prints them as JSON.
 */
#include "twheelctl/command.h"
#include "twheelctl/draw.h"
#include "twheelctl/json.h"

struct show_options {
	struct settings *settings;
	struct draw_style style;
	bool json;
};

static json_t *json_numbers(const __u64 *values, size_t nr)
{
	json_t *array = json_array();

	for (size_t i = 0; i < nr; i++)
		json_array_append_new(array, json_integer(values[i]));
	return array;
}

static json_t *json_level(const struct wheel *wheel, unsigned int nr)
{
	const struct level *level = &wheel->level[nr];

	return json_pack("{s:i, s:i, s:o, s:o, s:I, s:o}", "level", nr,
			 "position", wheel_position(wheel, nr),
			 "occupied", json_sprintf("%016llx", level->occupied),
			 "crowded", json_sprintf("%016llx", level->crowded),
			 "armed", (json_int_t)level->armed,
			 "count", json_numbers(level->count, WHEEL_SLOTS));
}

static json_t *json_levels(const struct wheel *wheel)
{
	json_t *levels = json_array();

	for (unsigned int i = 0; i < WHEEL_LEVELS; i++)
		json_array_append_new(levels, json_level(wheel, i));
	return levels;
}

static void print_wheel(const struct wheel *wheel)
{
	json_t *next = wheel->next ? json_integer(wheel->next) : json_null();
	json_t *object;

	object = json_pack("{s:i,s:s,s:s,s:b,s:I,s:I,s:I,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o}",
			   "cpu", wheel->cpu, "clock", wheel->clock, "kind", wheel->kind,
			   "online", !!wheel->online,
			   "tick_ns", (json_int_t)wheel->tick_ns,
			   "clk", (json_int_t)wheel->clk,
			   "now", (json_int_t)wheel->now,
			   "next", next,
			   "armed", (json_int_t)wheel->armed,
			   "gap", (json_int_t)wheel->gap,
			   "interrupts", (json_int_t)wheel->interrupts,
			   "expired", (json_int_t)wheel->expired,
			   "postponed", (json_int_t)wheel->postponed,
			   "cascaded", (json_int_t)wheel->cascaded,
			   "lateness", json_numbers(wheel->lateness,
						    WHEEL_LATENESS),
			   "levels", json_levels(wheel));
	json_line(object, stdout);
}

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
			print_wheel(&wheels.wheel[i]);
	else if (wheels.nr)
		draw_wheels(&wheels, &options.style, stdout);
	else
		puts("no wheel has been used yet");
	wheels_free(&wheels);
	return STATUS_OK;
}
