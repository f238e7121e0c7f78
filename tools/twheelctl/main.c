// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl: shows the timing wheels and uses /dev/twheel from the command line.
 */
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/standard.h"
#include "common/version.h"
#include "twheelctl/command.h"
#include "common/util.h"
#include "twheelctl/device.h"
#include "twheelctl/json.h"

/* argp takes --version from here. */
const char *argp_program_version = "twheelctl " TWHEEL_VERSION;

static const struct command {
	const char *name;
	enum status (*main)(int argc, char **argv, struct settings *settings);
} commands[] = {
	{ "info", info_main },
	{ "run", run_main },
	{ "replay", replay_main },
	{ "show", show_main },
	{ "top", top_main },
	{ "record", record_main },
	{ "files", files_main },
	{ "metrics", metrics_main },
	{ "after", after_main },
	{ "every", every_main },
	{ "at", at_main },
};

#define COMMAND_NAMES	"info, run, replay, show, top, record, files, metrics, after, every, at"

static error_t parse_setting(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;

	switch (key) {
	case 'D':
		settings->device = arg;
		return 0;
	case 'G':
		settings->debugfs = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option setting_options[] = {
	{ "device", 'D', "PATH", 0, "The device; default " DEVICE_PATH, 2 },
	{ "debugfs", 'G', "PATH", 0,
	  "Where the module shows its wheels; default /sys/kernel/debug/twheel", 2 },
	{ 0 }
};

const struct argp settings_argp = {
	.options = setting_options,
	.parser = parse_setting,
};

const struct argp_child settings_child[] = {
	{ .argp = &settings_argp },
	{ 0 }
};

/**
 * struct invocation - the command line of the whole program
 * @settings: the options before the command.
 * @command: the command, or NULL if none was given.
 * @first: the index of the command's name in argv.
 */
struct invocation {
	struct settings settings;
	const struct command *command;
	int first;
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static error_t parse_main(int key, char *arg, struct argp_state *state)
{
	struct invocation *invocation = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &invocation->settings;
		return 0;
	case ARGP_KEY_ARG:
		invocation->command = find_command(arg);
		if (!invocation->command)
			argp_error(state,
				   "there is no command \"%s\"; the commands are " COMMAND_NAMES,
				   arg);
		invocation->first = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "a command is missing; the commands are " COMMAND_NAMES);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp main_argp = {
	.children = settings_child,
	.parser = parse_main,
	.args_doc = "COMMAND [OPTION...]",
	.doc = "Shows the timing wheels of the twheel module and uses its device.\vCommands:\n"
	       "  info     show the version and the features of the device\n"
	       "  run      arm and cancel events by lines on stdin\n"
	       "  replay   run a schedule of events and check that each ends exactly once\n"
	       "  show     draw the wheels\n"
	       "  top      watch the wheels as they turn\n"
	       "  record   write what the wheels do, for the page that shows them\n"
	       "  files    list the open files of the device, of all processes\n"
	       "  metrics  print the counters of the wheels for Prometheus\n"
	       "  after    run a command after some time\n"
	       "  every    run a command again and again\n"
	       "  at       run a command at a time of day\n"
	       "Each has a --help of its own.\n"
	       "\n"
	       "The exit status is 0 if all went well, 1 if something failed, and 2 if the\n"
	       "command line is wrong. That of after, every and at is the status of the\n"
	       "command that they run.\n"
	       "\n"
	       "Examples:\n"
	       "  twheelctl info\n"
	       "  twheelctl run <<<'add 1.5s hello'\n"
	       "  twheelctl every 1s -- date",
};

int main(int argc, char **argv)
{
	static char name[64] = "twheelctl ";
	struct invocation invocation = {
		.settings = {
			.device = DEVICE_PATH,
			.debugfs = "/sys/kernel/debug/twheel",
		},
	};
	char **args;

	standard_files_open();
	json_setup();
	argp_err_exit_status = STATUS_USAGE;
	options_argp(&main_argp, argc, argv, ARGP_IN_ORDER, &invocation);

	/* The command's --help and errors go under "twheelctl COMMAND". */
	args = argv + invocation.first;
	args[0] = strcat(name, invocation.command->name);
	return invocation.command->main(argc - invocation.first, args,
					&invocation.settings);
}
