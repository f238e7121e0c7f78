// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl run: events by lines on stdin, expirations as JSON on stdout.
 *
 *	add DELAY NAME		{"event":"added","id":"5","name":"hello"}
 *	modify ID DELAY		{"event":"modified",...}
 *	cancel ID		{"event":"cancelled",...}
 *	query ID		{"event":"state",...,"state":"armed",...}
 *
 * A delay begins with a digit and the name is all that follows it. Anything
 * else in the place of a delay is refused, so that words can be given a meaning
 * there later (an absolute time, a period, a slack).
 *
 * The names live here: each event that is armed or ready is in a tree,
 * by id, from the answer to its ADD to its record or the answer to its
 * CANCEL. As one thread does both, the tree always has what the kernel has.
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
#include "number.h"

#define MAX_LINE	4096
#define NR_RECORDS	256

/* An event that is armed or ready. */
struct event {
	__u64 id;
	char name[];
};

/**
 * struct run - the state of the command
 * @settings: the options of all commands.
 * @no_wait: --no-wait.
 * @dev: the device.
 * @start_ns: when it began; times are told from here on.
 * @events: a tree of struct event, by id.
 * @nr_events: how many it has.
 * @line: the number of the line at hand, from 1.
 * @input: what was read of stdin and has no end of line yet.
 * @input_used: how many bytes that is.
 * @too_long: the line at hand is longer than @input and is left out.
 * @input_ended: there will be no more of it.
 */
struct run {
	struct settings *settings;
	bool no_wait;
	struct device dev;
	__u64 start_ns;
	void *events;
	size_t nr_events;
	unsigned int line;
	char input[MAX_LINE];
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

static void insert_event(struct run *run, __u64 id, const char *name)
{
	struct event *event = malloc(sizeof(*event) + strlen(name) + 1);

	if (event) {
		event->id = id;
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
void bad_line(const struct run *run, const char *format, ...)
{
	char message[MAX_LINE + 256];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	if (!is_utf8(message))
		make_ascii(message);
	json_line(json_pack("{s:s, s:i, s:s}", "event", "error", "line",
			    run->line, "message", message), stdout);
}

/* Runs one command. Returns what it says of itself, or of the device. */
static int submit(struct run *run, struct twheel_cmd *cmd)
{
	int ret = device_submit(&run->dev, cmd, 1);

	if (ret)
		errx(EXIT_FAILURE, "%s takes no commands: %s",
		     run->settings->device, strerror(-ret));
	return cmd->result;
}

static void failed(const struct run *run, const char *what, int result)
{
	if (result == -ENOENT)
		bad_line(run, "%s: there is no such event: it has ended, or never was",
			 what);
	else if (result == -ENOSPC)
		bad_line(run, "%s: there are as many events as allowed (here %llu)",
			 what, run->dev.info.max_events);
	else
		bad_line(run, "%s: %s", what, strerror(-result));
}

/* Takes the next word off a line; empty at its end. */
static char *take_word(char **rest)
{
	char *word;

	*rest += strspn(*rest, " \t");
	word = *rest;
	*rest += strcspn(*rest, " \t");
	if (**rest)
		*(*rest)++ = '\0';
	return word;
}

static bool take_id(const struct run *run, char **rest, __u64 *id)
{
	const char *text = take_word(rest);
	const char *wrong = count_parse(text, id);

	if (wrong)
		bad_line(run, "id \"%s\" %s: it is the number that add answered",
			 text, wrong);
	return !wrong;
}

static bool take_delay(const struct run *run, char **rest, __u64 *delay_ns)
{
	const char *text = take_word(rest);
	const char *wrong = duration_parse(text, delay_ns);

	if (wrong)
		bad_line(run, "delay \"%s\" %s", text, wrong);
	return !wrong;
}

static bool take_end(const struct run *run, char **rest)
{
	*rest += strspn(*rest, " \t");
	if (**rest)
		bad_line(run, "there is more than expected: \"%s\"", *rest);
	return !**rest;
}

static bool take_name(const struct run *run, char **rest)
{
	*rest += strspn(*rest, " \t");
	if (!**rest)
		bad_line(run, "a name is missing: add DELAY NAME");
	else if (!is_utf8(*rest))
		bad_line(run, "the name is not UTF-8, as all JSON is");
	else
		return true;
	return false;
}

static void add(struct run *run, char *rest)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD };
	int result;

	if (!take_delay(run, &rest, &cmd.time_ns) || !take_name(run, &rest))
		return;
	result = submit(run, &cmd);
	if (result) {
		failed(run, "add", result);
		return;
	}
	insert_event(run, cmd.id, rest);
	json_line(json_pack("{s:s, s:o, s:s}", "event", "added",
			    "id", json_id(cmd.id), "name", rest), stdout);
}

/* Answers a command on an event that there is. */
static void answer(const struct run *run, const char *what, __u64 id)
{
	const struct event *event = find_event(run, id);

	json_line(json_pack("{s:s, s:o, s:s?}", "event", what,
			    "id", json_id(id), "name",
			    event ? event->name : NULL), stdout);
}

static void modify(struct run *run, char *rest)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_MODIFY };
	int result;

	if (!take_id(run, &rest, &cmd.id) ||
	    !take_delay(run, &rest, &cmd.time_ns) || !take_end(run, &rest))
		return;
	result = submit(run, &cmd);
	if (result)
		failed(run, "modify", result);
	else
		answer(run, "modified", cmd.id);
}

static void cancel(struct run *run, char *rest)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_CANCEL };
	struct event *event;
	int result;

	if (!take_id(run, &rest, &cmd.id) || !take_end(run, &rest))
		return;
	result = submit(run, &cmd);
	if (result) {
		failed(run, "cancel", result);
		return;
	}
	answer(run, "cancelled", cmd.id);
	event = find_event(run, cmd.id);
	if (event)
		remove_event(run, event);
}

static void query(struct run *run, char *rest)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_QUERY };
	const struct event *event;
	int result;

	if (!take_id(run, &rest, &cmd.id) || !take_end(run, &rest))
		return;
	result = submit(run, &cmd);
	if (result < 0) {
		failed(run, "query", result);
		return;
	}
	event = find_event(run, cmd.id);
	json_line(json_pack("{s:s, s:o, s:s?, s:s, s:o}", "event", "state",
			    "id", json_id(cmd.id),
			    "name", event ? event->name : NULL,
			    "state", result == TWHEEL_READY ? "ready" : "armed",
			    "due_s", since_start(run, cmd.time_ns)), stdout);
}

static void run_line(struct run *run, char *text)
{
	static const struct {
		const char *name;
		void (*function)(struct run *run, char *rest);
	} verbs[] = {
		{ "add", add },
		{ "modify", modify },
		{ "cancel", cancel },
		{ "query", query },
	};
	const char *word;

	text[strcspn(text, "\r")] = '\0';
	word = take_word(&text);
	if (!*word || *word == '#')
		return;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!strcmp(word, verbs[i].name)) {
			verbs[i].function(run, text);
			return;
		}
	}
	bad_line(run, "unknown command \"%s\": it is add, modify, cancel or query",
		 word);
}

/* At the end of a line: runs it, unless it was too long to keep. */
static void end_line(struct run *run, char *text)
{
	run->line++;
	if (run->too_long)
		bad_line(run, "longer than %d bytes", MAX_LINE - 1);
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

	json_line(json_pack("{s:s, s:o, s:s?, s:o, s:o, s:f, s:I, s:s}",
			    "event", "expired", "id", json_id(record->id),
			    "name", event ? event->name : NULL,
			    "due_s", since_start(run, record->due_ns),
			    "fired_s", since_start(run, record->fired_ns),
			    "late_us", late_us,
			    "count", (json_int_t)record->count,
			    "reason", reason_name(record->reason)), stdout);
	if (event)
		remove_event(run, event);
}

static void read_records(struct run *run)
{
	struct twheel_record records[NR_RECORDS];
	int nr = device_read(&run->dev, records, NR_RECORDS);

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
	if (files[1].revents)
		read_input(run);
}

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
	struct run *run = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = run->settings;
		return 0;
	case 'n':
		run->no_wait = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option run_argp_options[] = {
	{ "no-wait", 'n', NULL, 0,
	  "Exit at the end of input; what is still armed is gone", 0 },
	{ 0 }
};

static const struct argp run_argp = {
	.options = run_argp_options,
	.parser = parse_run,
	.children = settings_child,
	.doc = "Arms and cancels events by lines on stdin and prints what becomes of them, one\n"
	       "line of JSON each.\vLines:\n"
	       "  add DELAY NAME   a new event; the answer has its ID\n"
	       "  modify ID DELAY  it is now due DELAY from now\n"
	       "  cancel ID        it will not expire\n"
	       "  query ID         is it armed or ready, and when is it due\n"
	       "\n"
	       "DELAY is a number with a unit: 250us, 1.5s, 2h (ns us ms s m h d). NAME is any\n"
	       "text. Blank lines and lines that begin with # are left out. A line that makes\n"
	       "no sense is answered by an \"error\" with its number, and the rest goes on. Times\n"
	       "(due_s, fired_s) are seconds since the command began. At the end of input it\n"
	       "waits until every event has ended.",
};

static bool is_over(const struct run *run)
{
	return run->input_ended && (run->no_wait || !run->nr_events);
}

enum status run_main(int argc, char **argv, struct settings *settings)
{
	struct run run = { .settings = settings };

	argp_parse(&run_argp, argc, argv, 0, NULL, &run);
	if (device_open(&run.dev, settings->device))
		return STATUS_FAILURE;
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.start_ns = now_ns();
	while (!is_over(&run))
		wait_and_serve(&run);
	return STATUS_OK;
}
