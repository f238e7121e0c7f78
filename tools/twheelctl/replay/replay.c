// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl replay: runs a schedule and checks that each event ends once.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/time.h"
#include "twheelctl/command.h"
#include "twheelctl/draw.h"
#include "common/options.h"
#include "twheelctl/setup.h"
#include "twheelctl/replay/player.h"
#include "twheelctl/replay/schedule.h"
#include "twheelctl/replay/summary.h"

struct replay_options {
	struct settings *settings;
	const char *file;
	__u64 nr_generate;
	__u64 seed;
	__u64 span_ns;
	struct setup setup;
	__u64 grace_ns;
	__u64 draw_at_ns;
	const char *write;
	const char *records;
	bool deadlines;
	bool interrupts;
	bool quiet;
	bool json;
};

enum {
	KEY_SEED = 256,
	KEY_DURATION,
	KEY_GRACE,
	KEY_DRAW_AT,
	KEY_INTERRUPTS,
	KEY_DEADLINES,
};

/* The shortest span in which generated events have different times. */
#define MIN_SPAN_NS	NSEC_PER_MSEC

static void check_options(struct argp_state *state,
			  const struct replay_options *options)
{
	if (!options->file && !options->nr_generate)
		argp_error(state, "a schedule is missing: FILE, - for stdin, or --generate N");
	if (options->file && options->nr_generate)
		argp_error(state, "FILE \"%s\" and --generate exclude each other",
			   options->file);
}

static error_t parse_replay(int key, char *arg, struct argp_state *state)
{
	struct replay_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		setup_children_init(state, options->settings, &options->setup);
		return 0;
	case 'g':
		options->nr_generate = option_count(state, "generate", arg, 1,
						    ~0U / 2);
		return 0;
	case KEY_SEED:
		options->seed = option_count(state, "seed", arg, 0, ~0ULL);
		return 0;
	case KEY_DURATION:
		options->span_ns = option_seconds(state, "duration", arg,
						  MIN_SPAN_NS);
		return 0;
	case KEY_GRACE:
		options->grace_ns = option_seconds(state, "grace", arg, 0);
		return 0;
	case KEY_DRAW_AT:
		options->draw_at_ns = option_seconds(state, "draw-at", arg, 0);
		return 0;
	case KEY_DEADLINES:
		options->deadlines = true;
		return 0;
	case KEY_INTERRUPTS:
		options->interrupts = true;
		return 0;
	case 'w':
		options->write = arg;
		return 0;
	case 'r':
		options->records = arg;
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case 'j':
		options->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (options->file)
			argp_error(state, "\"%s\" is one FILE too many", arg);
		options->file = arg;
		return 0;
	case ARGP_KEY_END:
		check_options(state, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option replay_argp_options[] = {
	{ "generate", 'g', "N", 0, "Generate a schedule of N events instead", 0 },
	{ "seed", KEY_SEED, "N", 0, "The seed of --generate; default 1", 0 },
	{ "duration", KEY_DURATION, "S", 0,
	  "The duration of the schedule of --generate; default 10", 0 },
	{ "write", 'w', "FILE", 0,
	  "Write the schedule to FILE (- for stdout) and run nothing", 0 },
	{ "records", 'r', "FILE", 0,
	  "Write name,due_s,fired_s,count,reason of each record to FILE", 0 },
	{ "grace", KEY_GRACE, "S", 0,
	  "Give up when a record is due, slack included, and none came for S; default 5", 0 },
	{ "draw-at", KEY_DRAW_AT, "S", 0, "Draw the wheels S seconds after the start", 0 },
	{ "deadlines", KEY_DEADLINES, NULL, 0,
	  "Arm each event by a deadline in shared memory, and postpone it by a store", 0 },
	{ "interrupts", KEY_INTERRUPTS, NULL, 0,
	  "Count the interrupts of the wheels", 0 },
	{ "quiet", 'q', NULL, 0, "Print only errors", 0 },
	{ "json", 'j', NULL, 0, "Print the summary as one line of JSON", 0 },
	{ 0 }
};

static const struct argp replay_argp = {
	.options = replay_argp_options,
	.parser = parse_replay,
	.children = setup_children,
	.args_doc = "FILE\n--generate N",
	.doc = "Runs a schedule of events on the device and checks that each event ends\n"
	       "exactly once: by a record that is not early, or by a cancel.\n"
	       "\vFILE (- for stdin) has lines\n"
	       "  " SCHEDULE_FIELDS "\n"
	       "Blank lines and comments that begin with # are left out. at_s seconds after\n"
	       "the start, the command is run for the event of that name:\n"
	       "  add     add a new event\n"
	       "  modify  give an event another time, interval and slack\n"
	       "  arm     modify the event if it has not expired yet, else add it\n"
	       "  cancel  end the event (the line ends with the name)\n"
	       "The event is due at at_s + delay_s, even if the line is run late. With\n"
	       "interval_s it repeats; with slack_s it may be that late. at_s never\n"
	       "decreases. The whole schedule is checked before anything is armed.\n"
	       "\n"
	       "At the end, periodic events that no line ends are cancelled. Exactly one\n"
	       "record must cover each of their expirations; its count has their number.\n"
	       "\n"
	       "With --deadlines, each name has a word in memory that is shared with the\n"
	       "kernel, and add, arm and modify store the time there. A new event is then\n"
	       "added with that word as its time. For an existing event the store is enough,\n"
	       "unless the new time is earlier, the slack changes, or the old time has come:\n"
	       "these lines need a modify, too. No event can be periodic. The summary counts\n"
	       "the lines that were only a store.\n"
	       "\n"
	       "The exit status is 1 if a record was early, lost, duplicated or wrong, a\n"
	       "command failed, or the counters in fdinfo were wrong.\n"
	       "\n"
	       "Examples:\n"
	       "  twheelctl replay --generate 100000 --interrupts\n"
	       "  twheelctl replay --deadlines --records visits.csv weblog.csv",
};

static int get_schedule(struct schedule *schedule,
			const struct replay_options *options)
{
	if (options->file)
		return schedule_read(schedule, options->file);
	schedule_generate(schedule, options->nr_generate, options->span_ns,
			  options->seed);
	return schedule_check(schedule);
}

/* Draws the wheels as show does. With --json stdout is left to the line of JSON. */
static void draw(void *context)
{
	const struct replay_options *options = context;
	struct draw_style style = { .ascii = draw_needs_ascii() };
	struct wheels wheels;

	if (wheels_read(&wheels, options->settings->debugfs))
		return;
	draw_wheels(&wheels, &style, options->json ? stderr : stdout);
	wheels_free(&wheels);
}

/* Returns whether it is known. */
static bool count_interrupts(const struct replay_options *options, __u64 *count)
{
	struct wheels wheels;

	if (!options->interrupts ||
	    wheels_read(&wheels, options->settings->debugfs))
		return false;
	*count = wheels_interrupts(&wheels);
	wheels_free(&wheels);
	return true;
}

static int open_records(struct player *player,
			const struct replay_options *options)
{
	if (!options->records)
		return 0;
	player->records_file = fopen(options->records, "we");
	if (player->records_file)
		return 0;
	warn("cannot create %s", options->records);
	return -EIO;
}

static int close_records(struct player *player,
			 const struct replay_options *options)
{
	if (!player->records_file || !fclose(player->records_file))
		return 0;
	warn("cannot write %s", options->records);
	return -EIO;
}

static int play(struct player *player, const struct replay_options *options,
		struct interrupts *interrupts)
{
	int ret = open_records(player, options);
	int closed;

	if (ret)
		return ret;
	interrupts->known = count_interrupts(options, &interrupts->before);
	ret = player_run(player);
	interrupts->known = interrupts->known &&
			    count_interrupts(options, &interrupts->after);
	closed = close_records(player, options);
	return ret ? ret : closed;
}

static __u64 greater(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

static enum status replay(const struct schedule *schedule,
			  struct replay_options *options)
{
	struct twheel_config *config = &options->setup.config;
	static struct player player;
	struct interrupts interrupts = { 0 };
	struct device dev;

	if (options->deadlines) {
		if (schedule_check_one_shot(schedule))
			return STATUS_FAILURE;
		config->nr_deadlines = schedule->nr_events;
		options->setup.given = true;
	}
	if (setup_open(&dev, options->settings->device, &options->setup) ||
	    schedule_check_intervals(schedule, dev.info.tick_ns))
		return STATUS_FAILURE;
	player = (struct player){
		.dev = &dev,
		.schedule = schedule,
		.settable = config->clockid == CLOCK_REALTIME,
		.deadlines = options->deadlines,
		.grace_ns = options->grace_ns + greater(config->slack_ns,
							schedule->slack_ns),
		.draw_at_ns = options->draw_at_ns,
		.draw = draw,
		.draw_context = options,
		.show_progress = !options->quiet && isatty(STDERR_FILENO),
	};
	if (play(&player, options, &interrupts))
		return STATUS_FAILURE;
	if (options->json)
		summary_print_json(&player, &interrupts, stdout);
	else if (!options->quiet)
		summary_print(&player, &interrupts, stdout);
	return summary_is_good(&player) ? STATUS_OK : STATUS_FAILURE;
}

enum status replay_main(int argc, char **argv, struct settings *settings)
{
	struct replay_options options = {
		.settings = settings,
		.seed = 1,
		.span_ns = 10 * NSEC_PER_SEC,
		.grace_ns = 5 * NSEC_PER_SEC,
		.draw_at_ns = TIME_NEVER_NS,
	};
	struct schedule schedule;

	options_argp(&replay_argp, argc, argv, 0, &options);
	if (get_schedule(&schedule, &options))
		return STATUS_FAILURE;
	if (options.write)
		return schedule_write(&schedule, options.write) ?
		       STATUS_FAILURE : STATUS_OK;
	return replay(&schedule, &options);
}
