// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl after, every and at: run a command when its time comes.
 */
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/standard.h"
#include "common/time.h"
#include "common/wait.h"
#include "twheelctl/command.h"
#include "common/util.h"
#include "twheelctl/device.h"
#include "twheelctl/json.h"
#include "common/moment.h"
#include "common/number.h"
#include "common/options.h"
#include "twheelctl/setup.h"

/* Exit statuses as those of a shell. */
#define STATUS_CANNOT_RUN	126
#define STATUS_NOT_FOUND	127
#define STATUS_SIGNAL		128

enum kind { AFTER, EVERY, AT };

/**
 * struct launch - a command and the time to run it
 * @kind: after, every or at.
 * @settings: the options of all twheelctl commands.
 * @setup: the options of those that arm events.
 * @when: the first argument.
 * @argv: the command and its arguments, then NULL.
 * @time_ns: the time that @when means: from now on, or absolute with AT.
 * @count: EVERY: how many times to run the command; 0: without end.
 * @now: EVERY: run it at once, too.
 * @stop: EVERY: end when the command fails.
 * @json: print a line of JSON for each run.
 */
struct launch {
	enum kind kind;
	struct settings *settings;
	struct setup setup;
	const char *when;
	char **argv;
	__u64 time_ns;
	__u64 count;
	bool now;
	bool stop;
	bool json;
};

enum { KEY_NOW = 256 };

/* --- the command line --------------------------------------------------------- */

static void parse_when(struct argp_state *state, struct launch *launch)
{
	const char *wrong;

	if (launch->kind == AT) {
		wait_choose_clock(CLOCK_REALTIME);
		wrong = moment_parse(launch->when, wait_now_ns(), &launch->time_ns);
	} else {
		wrong = duration_parse(launch->when, &launch->time_ns);
	}
	if (wrong)
		argp_error(state, "\"%s\" %s", launch->when, wrong);
	if (launch->kind == EVERY && !launch->time_ns)
		argp_error(state, "\"%s\" is not an interval of at least one tick",
			   launch->when);
}

static void check_launch(struct argp_state *state, struct launch *launch)
{
	if (launch->kind == AT && launch->setup.given &&
	    launch->setup.config.clockid != CLOCK_REALTIME)
		argp_error(state, "--clock: at takes only realtime, the clock of times of day");
	if (!launch->when)
		argp_error(state, "TIME and COMMAND are missing, such as: %s -- COMMAND",
			   launch->kind == AT ? "12:30" : "1.5s");
	if (!launch->argv)
		argp_error(state, "COMMAND is missing");
}

static error_t parse_launch(int key, char *arg, struct argp_state *state)
{
	struct launch *launch = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		setup_children_init(state, launch->settings, &launch->setup);
		if (launch->kind == AT)
			launch->setup.config.clockid = CLOCK_REALTIME;
		return 0;
	case 'n':
		launch->count = option_count(state, "count", arg, 1, ~0ULL);
		return 0;
	case KEY_NOW:
		launch->now = true;
		return 0;
	case 'e':
		launch->stop = true;
		return 0;
	case 'j':
		launch->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (!launch->when) {
			launch->when = arg;
			return 0;
		}
		/* The rest, with its options, belongs to the command. */
		launch->argv = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		check_launch(state, launch);
		parse_when(state, launch);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

#define JSON_OPTION	{ "json", 'j', NULL, 0, "Print a line of JSON for each run of COMMAND", 0 }

static const struct argp_option once_options[] = {
	JSON_OPTION,
	{ 0 }
};

static const struct argp_option every_options[] = {
	{ "count", 'n', "N", 0, "End after N runs of COMMAND", 0 },
	{ "now", KEY_NOW, NULL, 0, "Run COMMAND at once, too", 0 },
	{ "stop-on-error", 'e', NULL, 0, "End when COMMAND fails, with its exit status", 0 },
	JSON_OPTION,
	{ 0 }
};

#define STATUS_DOC								\
	"The exit status is that of COMMAND: 128 and more if a signal ended it, 127 if it\n"	\
	"was not found, 126 if it cannot be run. Else it is 1 if something failed, and 2 if\n"	\
	"the command line is wrong."

static const struct argp launch_argps[] = {
	[AFTER] = {
		.options = once_options,
		.parser = parse_launch,
		.children = setup_children,
		.args_doc = "TIME [--] COMMAND [ARGUMENT...]",
		.doc = "Waits for TIME, such as 1.5s or 2h, and runs COMMAND in its place.\n"
		       "\vExamples:\n"
		       "  twheelctl after 5s -- echo done\n"
		       "  twheelctl after 8h --clock boottime -- beep    (also while asleep)\n"
		       "\n"
		       STATUS_DOC,
	},
	[EVERY] = {
		.options = every_options,
		.parser = parse_launch,
		.children = setup_children,
		.args_doc = "INTERVAL [--] COMMAND [ARGUMENT...]",
		.doc = "Runs COMMAND every INTERVAL, such as 1s. Intervals count from the\n"
		       "beginning, not from the end of the previous run, so they do not drift.\n"
		       "COMMAND never runs twice at a time: intervals that end while it runs\n"
		       "are left out.\n"
		       "\vExamples:\n"
		       "  twheelctl every 1s -- date\n"
		       "  twheelctl every 10m --slack 30s --now -- sync-mail\n"
		       "\n"
		       "With --count the exit status is that of the last run.\n"
		       STATUS_DOC,
	},
	[AT] = {
		.options = once_options,
		.parser = parse_launch,
		.children = setup_children,
		.args_doc = "TIME [--] COMMAND [ARGUMENT...]",
		.doc = "Waits until it is TIME by the realtime clock, also if that is set in the\n"
		       "meantime, and runs COMMAND in its place. If TIME has passed, COMMAND runs at\n"
		       "once.\n"
		       "\vTIME is one of these forms of systemd.time(7): 12:30[:15] (the next such time\n"
		       "of day); today, tomorrow or 2026-12-24, with or without a time of day;\n"
		       "now+90s; @SECONDS since 1970. With UTC at the end it is in UTC.\n"
		       "\n"
		       "Examples:\n"
		       "  twheelctl at 7:30 -- wake-up\n"
		       "  twheelctl at '2026-12-24 18:00' -- echo presents\n"
		       "  twheelctl at 'tomorrow 3:00 UTC' -- backup\n"
		       "\n"
		       STATUS_DOC,
	},
};

/* --- waiting ------------------------------------------------------------------ */

/* Arm the event.  Returns 0, or a negative errno after a message. */
static int arm(struct device *dev, const struct launch *launch)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = launch->kind == AT ? TWHEEL_ABS : 0,
		.time_ns = launch->now ? 0 : launch->time_ns,
		.interval_ns = launch->kind == EVERY ? launch->time_ns : 0,
	};
	int ret = device_submit(dev, &cmd, 1) ?: cmd.result;

	if (ret == -EINVAL && launch->kind == EVERY)
		warnx("\"%s\" is too short an interval: a tick is %llu ns", launch->when,
		      dev->info.tick_ns);
	else if (ret)
		warnx("cannot arm: %s", strerror(-ret));
	return ret;
}

/* Wait for the next record.  Returns 0, or a negative errno after a message. */
static int next_record(struct device *dev, struct twheel_record *record)
{
	struct pollfd file = { .fd = dev->fd, .events = POLLIN };
	int ret;

	do {
		ret = wait_until(&file, 1, TIME_NEVER_NS);
		if (ret >= 0)
			ret = device_read(dev, record, 1);
	} while (!ret);
	if (ret < 0)
		warnx("cannot read the device: %s", strerror(-ret));
	return ret < 0 ? ret : 0;
}

static void tell(const struct twheel_record *record)
{
	json_line(json_pack("{s:s, s:o, s:o, s:I}", "event", "run",
			    "due", json_time(record->due_ns),
			    "fired", json_time(record->fired_ns),
			    "count", (json_int_t)record->count), stdout);
	standard_output_check();
}

/* --- running ------------------------------------------------------------------ */

/* Replace this process by the command. Returns only if that fails: the exit status. */
static int become(char **argv)
{
	execvp(argv[0], argv);
	warn("cannot run %s", argv[0]);
	return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

/* Run the command and wait for its end.  Returns its status as a shell would. */
static int run_child(char **argv)
{
	pid_t child = fork();
	int status;

	if (child < 0) {
		warn("cannot fork");
		return STATUS_FAILURE;
	}
	if (!child)
		_exit(become(argv));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_FAILURE;
	return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_once(struct device *dev, const struct launch *launch)
{
	struct twheel_record record;

	if (next_record(dev, &record))
		return STATUS_FAILURE;
	if (launch->json)
		tell(&record);
	return become(launch->argv);
}

static int run_again(struct device *dev, const struct launch *launch)
{
	struct twheel_record record;
	int status = STATUS_OK;

	for (__u64 i = 0; !launch->count || i < launch->count; i++) {
		if (next_record(dev, &record))
			return STATUS_FAILURE;
		if (launch->json)
			tell(&record);
		status = run_child(launch->argv);
		if (status && launch->stop)
			break;
	}
	return status;
}

static enum status launch_main(enum kind kind, int argc, char **argv,
			       struct settings *settings)
{
	struct launch launch = { .kind = kind, .settings = settings };
	struct device dev;

	options_argp(&launch_argps[kind], argc, argv, ARGP_IN_ORDER, &launch);
	launch.setup.given |= kind == AT;
	if (setup_open(&dev, settings->device, &launch.setup) || arm(&dev, &launch))
		return STATUS_FAILURE;
	return kind == EVERY ? run_again(&dev, &launch) : run_once(&dev, &launch);
}

enum status after_main(int argc, char **argv, struct settings *settings)
{
	return launch_main(AFTER, argc, argv, settings);
}

enum status every_main(int argc, char **argv, struct settings *settings)
{
	return launch_main(EVERY, argc, argv, settings);
}

enum status at_main(int argc, char **argv, struct settings *settings)
{
	return launch_main(AT, argc, argv, settings);
}
