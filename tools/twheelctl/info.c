// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl info: shows the version and the features of the device.
 */
#include <stdbool.h>
#include <stdio.h>

#include "common/options.h"
#include "twheelctl/command.h"
#include "common/util.h"
#include "twheelctl/device.h"
#include "twheelctl/json.h"
#include "common/number.h"

struct info_options {
	struct settings *settings;
	bool json;
};

/* The name of each bit of struct twheel_info.features, from bit 0. */
static const char * const feature_names[] = {
	"periodic", "slack", "clocks", "enter", "wake", "cpu", "list",
	"operations", "uring_cmd", "deadlines", "entry_flags",
};

#define KNOWN_FEATURES	((1ULL << ARRAY_SIZE(feature_names)) - 1)

static const char *feature_name(unsigned int bit, char text[NUMBER_TEXT])
{
	if (bit < ARRAY_SIZE(feature_names))
		return feature_names[bit];
	snprintf(text, NUMBER_TEXT, "bit%u", bit);
	return text;
}

static void print_json(const struct twheel_info *info, const char *path)
{
	json_t *features = json_array();
	char text[NUMBER_TEXT];

	for (unsigned int bit = 0; bit < 64; bit++)
		if (info->features >> bit & 1)
			json_array_append_new(features,
					      json_string(feature_name(bit, text)));
	json_line(json_pack("{s:s, s:I, s:I, s:I, s:o}", "device", path,
			    "abi", (json_int_t)info->abi,
			    "tick_ns", (json_int_t)info->tick_ns,
			    "max_events", (json_int_t)info->max_events,
			    "features", features), stdout);
}

static void print_features(const char *title, __u64 features)
{
	char text[NUMBER_TEXT];

	printf("%-11s", title);
	for (unsigned int bit = 0; bit < 64; bit++)
		if (features >> bit & 1)
			printf(" %s", feature_name(bit, text));
	printf("%s\n", features ? "" : " none");
}

static void print_text(const struct twheel_info *info, const char *path)
{
	char text[NUMBER_TEXT];

	printf("device      %s\n", path);
	printf("abi         %u\n", info->abi);
	printf("tick        %llu ns (%s)\n", info->tick_ns,
	       duration_format(text, info->tick_ns));
	printf("max events  %llu\n", info->max_events);
	print_features("features", info->features);
	print_features("lacks", KNOWN_FEATURES & ~info->features);
}

static error_t parse_info(int key, char *arg, struct argp_state *state)
{
	struct info_options *options = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = options->settings;
		return 0;
	case 'j':
		options->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option info_argp_options[] = {
	{ "json", 'j', NULL, 0, "Print one line of JSON", 0 },
	{ 0 }
};

static const struct argp info_argp = {
	.options = info_argp_options,
	.parser = parse_info,
	.children = settings_child,
	.doc = "Shows the version of the device's interface, the length of a tick, how many\n"
	       "events an open file may have at once, and the features of the module:\n"
	       "  periodic     events that repeat\n"
	       "  slack        events that may be late, so that several share an interrupt\n"
	       "  clocks       BOOTTIME and REALTIME; events that end when REALTIME is set\n"
	       "  enter        one call that submits, waits and reads\n"
	       "  wake         wake a reader only for a number of records, or after a delay\n"
	       "  cpu          arm all events of an open file on one CPU\n"
	       "  list         list the events of an open file\n"
	       "  operations   events that signals on a key can complete\n"
	       "  uring_cmd    submit by io_uring\n"
	       "  deadlines    events whose time is a word in memory shared with the program\n"
	       "  entry_flags  lists tell the flags of events\n"
	       "\vExamples:\n"
	       "  twheelctl info\n"
	       "  twheelctl info --json | jq .features",
};

enum status info_main(int argc, char **argv, struct settings *settings)
{
	struct info_options options = { .settings = settings };
	struct device dev;

	options_argp(&info_argp, argc, argv, 0, &options);
	if (device_open(&dev, settings->device))
		return STATUS_FAILURE;
	if (options.json)
		print_json(&dev.info, settings->device);
	else
		print_text(&dev.info, settings->device);
	return STATUS_OK;
}
