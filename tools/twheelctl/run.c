// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl run: events by lines on stdin, expirations as JSON on stdout.
 *
 *	add WHEN NAME		{"event":"added","id":"5","name":"hello"}
 *	modify ID WHEN		{"event":"modified",...}
 *	cancel ID		{"event":"cancelled",...}
 *	query ID		{"event":"state",...,"state":"armed",...}
 *	list			one {"event":"entry",...} for each, {"event":"list",...}
 *
 * The names live here: each event that is armed or ready is in a tree, by id,
 * from the answer to its ADD to its last record or the answer to its CANCEL. As
 * one thread does both, the tree always has what the kernel has.
 */
#include <err.h>
#include <errno.h>
#include <search.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "common.h"
#include "device.h"
#include "json.h"
#include "line.h"
#include "number.h"
#include "options.h"
#include "setup.h"

#define NR_RECORDS	256

/* An event that is armed or ready. */
struct event {
	__u64 id;
	bool periodic;
	char name[];
};

/**
 * struct run - the state of the command
 * @settings: the options of all commands.
 * @setup: those of the context.
 * @no_wait: --no-wait.
 * @max_records: --count; 0 for any number.
 * @dev: the device.
 * @start_ns: when it began; times are told from here on.
 * @events: a tree of struct event, by id.
 * @nr_events: how many it has.
 * @nr_records: how many records were printed.
 * @nr_errors: how many lines were answered by an error.
 * @nr_lines: how many lines there were, so the number of the line at hand.
 * @line: what it says.
 * @input: what was read of stdin and has no end of line yet.
 * @input_used: how many bytes that is.
 * @too_long: the line at hand is longer than @input and is left out.
 * @input_ended: there will be no more of it.
 */
struct run {
	struct settings *settings;
	struct setup setup;
	bool no_wait;
	__u64 max_records;
	struct device dev;
	__u64 start_ns;
	void *events;
	size_t nr_events;
	__u64 nr_records;
	__u64 nr_errors;
	unsigned int nr_lines;
	struct line line;
	char input[LINE_MAX_LENGTH + 1];
	size_t input_used;
	bool too_long;
	bool input_ended;
};

static int compare_events(const void *a, const void *b)
{
	const struct event *left = a, *right = b;

	return left->id < right->id ? -1 : left->id > right->id;
}

static struct event *find_event(const struct run *run, __u64 id)
{
	struct event key = { .id = id };
	struct event **found = tfind(&key, &run->events, compare_events);

	return found ? *found : NULL;
}

static void insert_event(struct run *run, const struct twheel_cmd *cmd,
			 const char *name)
{
	struct event *event = malloc(sizeof(*event) + strlen(name) + 1);

	if (event) {
		event->id = cmd->id;
		event->periodic = cmd->interval_ns;
		strcpy(event->name, name);
	}
	if (!event || !tsearch(event, &run->events, compare_events))
		errx(EXIT_FAILURE, "out of memory for one more event");
	run->nr_events++;
}

static void remove_event(struct run *run, struct event *event)
{
	tdelete(event, &run->events, compare_events);
	free(event);
	run->nr_events--;
}

static json_t *since_start(const struct run *run, __u64 ns)
{
	if (ns >= NUMBER_MAX_NS)
		return json_null();
	return json_real((double)(__s64)(ns - run->start_ns) / NSEC_PER_SEC);
}

static bool is_utf8(const char *text)
{
	json_t *string = json_string(text);
	bool valid = string;

	json_decref(string);
	return valid;
}

/* Makes a text that quotes what is no UTF-8 fit for JSON. */
static void make_ascii(char *text)
{
	for (; *text; text++)
		if (*text & 0x80)
			*text = '?';
}

static __printf(2, 3)
void bad_line(struct run *run, const char *format, ...)
{
	char message[LINE_MESSAGE];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	if (!is_utf8(message))
		make_ascii(message);
	run->nr_errors++;
	json_line(json_pack("{s:s, s:i, s:s}", "event", "error", "line",
			    run->nr_lines, "message", message), stdout);
}

static void failed(struct run *run, const char *what, int result)
{
	if (result == -ENOENT)
		bad_line(run, "%s: there is no such event: it has ended, or never was",
			 what);
	else if (result == -ENOSPC)
		bad_line(run,
			 "%s: there are as many events as allowed (here %llu, or to this user)",
			 what, run->dev.info.max_events);
	else if (result == -EOPNOTSUPP)
		bad_line(run,
			 "%s: this module cannot do that; twheelctl info tells what it can",
			 what);
	else
		bad_line(run, "%s: %s", what, strerror(-result));
}

/* Runs the line's command. Returns whether it gave 0 or more. */
static bool submit(struct run *run, const char *what)
{
	struct twheel_cmd *cmd = &run->line.cmd;
	int ret = device_submit(&run->dev, cmd, 1);

	if (ret)
		errx(EXIT_FAILURE, "%s takes no commands: %s",
		     run->settings->device, strerror(-ret));
	if (cmd->result < 0)
		failed(run, what, cmd->result);
	return cmd->result >= 0;
}

static void add(struct run *run)
{
	const struct twheel_cmd *cmd = &run->line.cmd;
	const char *name = run->line.name;

	if (!is_utf8(name)) {
		bad_line(run, "the name is not UTF-8, as all JSON is");
		return;
	}
	if (!submit(run, "add"))
		return;
	insert_event(run, cmd, name);
	json_line(json_pack("{s:s, s:o, s:s}", "event", "added",
			    "id", json_id(cmd->id), "name", name), stdout);
}

/* Answers a command on an event that there is. */
static void answer(const struct run *run, const char *what,
		   const struct event *event)
{
	json_line(json_pack("{s:s, s:o, s:s?}", "event", what,
			    "id", json_id(run->line.cmd.id),
			    "name", event ? event->name : NULL), stdout);
}

static void modify(struct run *run)
{
	struct event *event;

	if (!submit(run, "modify"))
		return;
	event = find_event(run, run->line.cmd.id);
	answer(run, "modified", event);
	if (event)
		event->periodic = run->line.cmd.interval_ns;
}

static void cancel(struct run *run)
{
	struct event *event;

	if (!submit(run, "cancel"))
		return;
	event = find_event(run, run->line.cmd.id);
	answer(run, "cancelled", event);
	if (event)
		remove_event(run, event);
}

/* What query and list tell of an event. */
static void print_event(const struct run *run, const char *what,
			const struct twheel_entry *entry)
{
	const struct event *event = find_event(run, entry->id);

	json_line(json_pack("{s:s, s:o, s:s?, s:s, s:o, s:o, s:o, s:o}",
			    "event", what, "id", json_id(entry->id),
			    "name", event ? event->name : NULL, "state",
			    entry->state == TWHEEL_READY ? "ready" : "armed",
			    "due_s", since_start(run, entry->due_ns),
			    "due", json_time(entry->due_ns),
			    "every_s", json_seconds(entry->interval_ns),
			    "slack_s", json_seconds(entry->slack_ns)), stdout);
}

static void query(struct run *run)
{
	const struct twheel_cmd *cmd = &run->line.cmd;
	struct twheel_entry entry;

	if (!submit(run, "query"))
		return;
	entry = (struct twheel_entry){
		.id = cmd->id,
		.due_ns = cmd->time_ns,
		.interval_ns = cmd->interval_ns,
		.slack_ns = cmd->slack_ns,
		.state = cmd->result,
	};
	print_event(run, "state", &entry);
}

static void list(struct run *run)
{
	struct twheel_entry entries[NR_RECORDS];
	__u64 cursor = 0, total = 0;
	int nr;

	while ((nr = device_list(&run->dev, entries, NR_RECORDS, &cursor)) > 0) {
		for (int i = 0; i < nr; i++)
			print_event(run, "entry", &entries[i]);
		total += nr;
	}
	if (nr < 0)
		failed(run, "list", nr);
	else
		json_line(json_pack("{s:s, s:I}", "event", "list",
				    "events", (json_int_t)total), stdout);
}

static void run_line(struct run *run, char *text)
{
	if (!line_parse(&run->line, text)) {
		bad_line(run, "%s", run->line.message);
		return;
	}
	switch (run->line.verb) {
	case LINE_BLANK:
		return;
	case LINE_ADD:
		add(run);
		return;
	case LINE_MODIFY:
		modify(run);
		return;
	case LINE_CANCEL:
		cancel(run);
		return;
	case LINE_QUERY:
		query(run);
		return;
	case LINE_LIST:
		list(run);
		return;
	}
}

/* At the end of a line: runs it, unless it was too long to keep. */
static void end_line(struct run *run, char *text)
{
	run->nr_lines++;
	if (run->too_long)
		bad_line(run, "longer than %d bytes", LINE_MAX_LENGTH);
	else
		run_line(run, text);
	run->too_long = false;
}

static void run_lines(struct run *run)
{
	char *text = run->input;
	char *end = run->input + run->input_used;
	char *newline;

	while ((newline = memchr(text, '\n', end - text))) {
		*newline = '\0';
		end_line(run, text);
		text = newline + 1;
	}
	run->input_used = end - text;
	memmove(run->input, text, run->input_used);
	if (run->input_used == sizeof(run->input) - 1) {
		run->too_long = true;
		run->input_used = 0;
	}
}

static void read_input(struct run *run)
{
	ssize_t len = read(STDIN_FILENO, run->input + run->input_used,
			   sizeof(run->input) - 1 - run->input_used);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len < 0)
		err(EXIT_FAILURE, "cannot read stdin");
	if (len > 0) {
		run->input_used += len;
		run_lines(run);
		return;
	}
	run->input_ended = true;
	run->input[run->input_used] = '\0';
	if (run->input_used || run->too_long)
		end_line(run, run->input);
}

static void print_record(struct run *run, const struct twheel_record *record)
{
	struct event *event = find_event(run, record->id);
	double late_us = (double)(__s64)(record->fired_ns - record->due_ns) /
			 NSEC_PER_USEC;

	json_line(json_pack("{s:s, s:o, s:s?, s:o, s:o, s:o, s:f, s:I, s:s}",
			    "event", reason_name(record->reason),
			    "id", json_id(record->id),
			    "name", event ? event->name : NULL,
			    "due_s", since_start(run, record->due_ns),
			    "due", json_time(record->due_ns),
			    "fired_s", since_start(run, record->fired_ns),
			    "late_us", late_us,
			    "count", (json_int_t)record->count,
			    "reason", reason_name(record->reason)), stdout);
	run->nr_records++;
	if (event && !(event->periodic && record->reason == TWHEEL_EXPIRED))
		remove_event(run, event);
}

static bool has_enough(const struct run *run)
{
	return run->max_records && run->nr_records >= run->max_records;
}

static void read_records(struct run *run)
{
	struct twheel_record records[NR_RECORDS];
	__u64 room = NR_RECORDS;
	int nr;

	if (run->max_records && run->max_records - run->nr_records < room)
		room = run->max_records - run->nr_records;
	nr = device_read(&run->dev, records, room);
	if (nr < 0)
		errx(EXIT_FAILURE, "cannot read %s: %s", run->settings->device,
		     strerror(-nr));
	for (int i = 0; i < nr; i++)
		print_record(run, &records[i]);
}

static void wait_and_serve(struct run *run)
{
	struct pollfd files[] = {
		{ .fd = run->dev.fd, .events = POLLIN },
		{ .fd = run->input_ended ? -1 : STDIN_FILENO, .events = POLLIN },
	};

	int ret = wait_until(files, ARRAY_SIZE(files), NEVER_NS);

	if (ret < 0)
		errx(EXIT_FAILURE, "cannot wait for %s: %s",
		     run->settings->device, strerror(-ret));
	if (files[0].revents & ~POLLIN)
		errx(EXIT_FAILURE, "%s is no longer there",
		     run->settings->device);
	if (files[0].revents)
		read_records(run);
	if (files[1].revents && !has_enough(run))
		read_input(run);
}

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
	struct run *run = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		setup_children_init(state, run->settings, &run->setup);
		return 0;
	case 'n':
		run->no_wait = true;
		return 0;
	case 'c':
		run->max_records = option_count(state, "count", arg, 1, ~0ULL);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option run_argp_options[] = {
	{ "no-wait", 'n', NULL, 0,
	  "Exit at the end of input; what is still armed is gone", 0 },
	{ "count", 'c', "N", 0, "Exit when N records were read", 0 },
	{ 0 }
};

static const struct argp run_argp = {
	.options = run_argp_options,
	.parser = parse_run,
	.children = setup_children,
	.doc = "Arms and cancels events by lines on stdin and prints what becomes of them, one\n"
	       "line of JSON each.\vLines:\n"
	       "  add WHEN [OPTION]... NAME   a new event; the answer has its ID\n"
	       "  modify ID WHEN [OPTION]...  it is now due then, with these options only\n"
	       "  cancel ID                   it will not expire\n"
	       "  query ID                    is it armed or ready, and when is it due\n"
	       "  list                        so for all events\n"
	       "\n"
	       "WHEN:\n"
	       "  1.5s            that long from now: ns us ms s m h d\n"
	       "  @1700000000.5   at that time on the clock, in seconds\n"
	       "\n"
	       "OPTION, before or after NAME:\n"
	       "  every 100ms     again and again; without WHEN, first after that time\n"
	       "  slack 10ms      up to that much later, to share an interrupt\n"
	       "  cancel-on-set   ends as \"clock_set\" when the clock is set (with\n"
	       "                  --clock realtime and @TIME)\n"
	       "\n"
	       "NAME is any text; one with a word of an option is put in \"double quotes\".\n"
	       "Blank lines and lines that begin with # are left out. A line that makes no\n"
	       "sense is answered by an \"error\" with its number and changes nothing; the rest\n"
	       "goes on, and the exit status is 1.\n"
	       "\n"
	       "A record is printed with when it was due and fired (due_s, fired_s: seconds\n"
	       "since the command began; due: on the clock, as after @), by how much it was\n"
	       "late, how many expirations of a periodic event it covers (count), and why it\n"
	       "is there (reason). At the end of input the command waits until every event\n"
	       "has ended; a periodic one never does.",
};

static bool is_over(const struct run *run)
{
	return has_enough(run) ||
	       (run->input_ended && (run->no_wait || !run->nr_events));
}

enum status run_main(int argc, char **argv, struct settings *settings)
{
	struct run run = { .settings = settings };

	argp_parse(&run_argp, argc, argv, 0, NULL, &run);
	if (setup_open(&run.dev, settings->device, &run.setup))
		return STATUS_FAILURE;
	run.line.clockid = run.setup.config.clockid;
	run.line.tick_ns = run.dev.info.tick_ns;
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.start_ns = now_ns();
	while (!is_over(&run))
		wait_and_serve(&run);
	return run.nr_errors ? STATUS_FAILURE : STATUS_OK;
}
