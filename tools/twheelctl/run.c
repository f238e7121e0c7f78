// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl run: events by lines on stdin, expirations as JSON on stdout.
 *
 *	add WHEN NAME		{"event":"added","id":"5","name":"hello"}
 *	modify ID WHEN		{"event":"modified",...}
 *	cancel ID		{"event":"cancelled",...}
 *	watch ID KEY>=NEED	{"event":"watched",...}
 *	level ID KEY>=NEED	{"event":"watched",...}
 *	signal KEY VALUE	{"event":"signalled",...}
 *	signal KEY quiet	{"event":"cancelled",...} for each, {"event":"signalled",...}
 *	complete ID		{"event":"ended",...}
 *	store DEADLINE WHEN	{"event":"stored",...}
 *	query ID		{"event":"state",...,"state":"armed",...}
 *	list			one {"event":"entry",...} for each, {"event":"list",...}
 *
 * Only this file knows the names of events: a tree has each event that is armed or
 * ready, by id, from the answer to its ADD until its last record or until it is cancelled.
 * One thread does all of this, so the tree always has the same events as the kernel. For a
 * quiet signal the kernel returns only the number of cancelled events: a QUERY of each
 * event that watches finds out which ones are gone.
 */
#include <err.h>
#include <errno.h>
#include <search.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/time.h"
#include "common/wait.h"
#include "twheelctl/command.h"
#include "common/util.h"
#include "twheelctl/device.h"
#include "twheelctl/json.h"
#include "twheelctl/key.h"
#include "twheelctl/line.h"
#include "common/number.h"
#include "common/options.h"
#include "twheelctl/setup.h"

#define NR_RECORDS	256

/*
 * An event that is armed or ready. @watches: it has watched a key at some time. @deadline:
 * the index of its deadline plus 1, or 0.
 */
struct event {
	__u64 id;
	__u64 deadline;
	bool periodic;
	bool watches;
	char name[];
};

/**
 * struct run - the state of the command
 * @settings: the options of all commands.
 * @setup: the options of the context.
 * @no_wait: --no-wait.
 * @max_records: --count; 0: no limit.
 * @dev: the device.
 * @start_ns: the start of the command; printed times count from it.
 * @events: a tree of struct event, by id.
 * @nr_events: the number of events in it.
 * @names: the names of keys.
 * @nr_records: the number of records printed so far.
 * @nr_errors: the number of lines answered by an error.
 * @nr_lines: the number of the current line.
 * @line: the current line, parsed.
 * @input: bytes of stdin after the last end of line.
 * @input_used: the number of these bytes.
 * @too_long: the current line is longer than @input and is left out.
 * @input_ended: stdin is at its end.
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
	struct key_names names;
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

/* The index of the deadline that a command gives an event, plus 1; 0: none. */
static __u64 deadline_of(const struct twheel_cmd *cmd)
{
	return cmd->flags & TWHEEL_DEADLINE ? cmd->key + 1 : 0;
}

static void insert_event(struct run *run, const struct line *line)
{
	const struct twheel_cmd *cmd = &line->cmd;
	const char *name = line->name;
	struct event *event = malloc(sizeof(*event) + strlen(name) + 1);

	if (event) {
		event->id = cmd->id;
		event->deadline = deadline_of(cmd);
		event->periodic = cmd->interval_ns;
		event->watches = line->nr_cmds > 1;
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

/* Replaces bytes that are not UTF-8, which JSON cannot have. */
static void make_ascii(char *text)
{
	for (; *text; text++)
		if (*text & 0x80)
			*text = '?';
}

static PRINTF_LIKE(2, 3)
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

/* The meaning of an error, if strerror() does not say enough. */
static const struct meaning {
	int error;
	__u16 op;
	const char *text;
} meanings[] = {
	{ ENOENT, 0, "there is no such event: it has ended, or never was" },
	{ EALREADY, 0, "it has ended already; its record follows" },
	{ EINVAL, TWHEEL_OP_MODIFY,
	  "what has watches or a quorum cannot be periodic" },
	{ EINVAL, TWHEEL_OP_WATCH, "a periodic event takes none" },
	{ ENOSPC, TWHEEL_OP_WATCH,
	  "there are as many watches as the event, or this user, may have" },
	{ EOPNOTSUPP, 0,
	  "this module cannot do that; twheelctl info lists its features" },
};

static const char *explain(__u16 op, int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (meanings[i].error == error &&
		    (!meanings[i].op || meanings[i].op == op))
			return meanings[i].text;
	return strerror(error);
}

/* Prints that a command failed. @what: the words of the line that asked for it. */
static void failed(struct run *run, const char *what, __u16 op, int result)
{
	if (result == -ENOSPC && op == TWHEEL_OP_ADD)
		bad_line(run,
			 "%s: there are as many events as allowed (here %llu, or to this user)",
			 what, run->dev.info.max_events);
	else
		bad_line(run, "%s: %s", what, explain(op, -result));
}

static void submit_all(struct run *run, struct twheel_cmd *cmds, size_t nr)
{
	int ret = device_submit(&run->dev, cmds, nr);

	if (ret)
		errx(EXIT_FAILURE, "%s takes no commands: %s",
		     run->settings->device, strerror(-ret));
}

/* Runs the line's commands. Returns whether the first one succeeded. */
static bool submit(struct run *run, const char *what)
{
	struct line *line = &run->line;

	submit_all(run, line->cmds, line->nr_cmds);
	if (line->cmd.result < 0)
		failed(run, what, line->cmd.op, line->cmd.result);
	return line->cmd.result >= 0;
}

/*
 * Check that all watches of an add succeeded. If not, cancel the event: with only some of
 * its watches it is not what the line asked for. An event that is due at once has ended
 * before its watches: that is not an error.
 */
static bool check_watches(struct run *run)
{
	struct line *line = &run->line;
	struct twheel_cmd cancel = {
		.op = TWHEEL_OP_CANCEL,
		.id = line->cmd.id,
	};
	char what[LINE_MESSAGE];
	size_t i = 1;

	while (i < line->nr_cmds && (line->cmds[i].result >= 0 ||
				     line->cmds[i].result == -EALREADY))
		i++;
	if (i == line->nr_cmds)
		return true;
	submit_all(run, &cancel, 1);
	snprintf(what, sizeof(what), "add: %s %s" KEY_SIGN "%llu",
		 line->cmds[i].flags & TWHEEL_LEVEL ? "level" : "watch",
		 line->keys[i], line->cmds[i].value);
	failed(run, what, TWHEEL_OP_WATCH, line->cmds[i].result);
	return false;
}

static void add(struct run *run)
{
	const struct twheel_cmd *cmd = &run->line.cmd;
	const char *name = run->line.name;

	if (!is_utf8(name)) {
		bad_line(run, "the name is not UTF-8, as all JSON is");
		return;
	}
	if (!submit(run, "add") || !check_watches(run))
		return;
	insert_event(run, &run->line);
	json_line(json_pack("{s:s, s:o, s:s}", "event", "added",
			    "id", json_u64(cmd->id), "name", name), stdout);
}

/* Answers a command on an existing event. */
static void answer(const struct run *run, const char *what, __u64 id)
{
	const struct event *event = find_event(run, id);

	json_line(json_pack("{s:s, s:o, s:s?}", "event", what,
			    "id", json_u64(id),
			    "name", event ? event->name : NULL), stdout);
}

static void modify(struct run *run)
{
	struct event *event;

	if (!submit(run, "modify"))
		return;
	answer(run, "modified", run->line.cmd.id);
	event = find_event(run, run->line.cmd.id);
	if (!event)
		return;
	event->periodic = run->line.cmd.interval_ns;
	event->deadline = deadline_of(&run->line.cmd);
}

/* Stores a deadline. This is not a command: the kernel reads it when the earlier time comes. */
static void store(struct run *run)
{
	const struct twheel_cmd *cmd = &run->line.cmd;
	__u64 time_ns = cmd->time_ns;

	if (!(cmd->flags & TWHEEL_ABS))
		time_ns += wait_now_ns();
	device_store(&run->dev, cmd->key, time_ns);
	json_line(json_pack("{s:s, s:I, s:o, s:o}", "event", "stored",
			    "deadline", (json_int_t)cmd->key,
			    "due_s", since_start(run, time_ns),
			    "due", json_time(time_ns)), stdout);
}

/* Prints that an event has ended without a record. */
static void cancelled(struct run *run, __u64 id)
{
	struct event *event = find_event(run, id);

	answer(run, "cancelled", id);
	if (event)
		remove_event(run, event);
}

static void cancel(struct run *run)
{
	if (submit(run, "cancel"))
		cancelled(run, run->line.cmd.id);
}

static json_t *key_json(const struct run *run, __u64 key)
{
	const char *name = key_names_find(&run->names, key);

	return name ? json_string(name) : json_u64(key);
}

static void run_watch(struct run *run)
{
	const struct twheel_cmd *cmd = &run->line.cmd;
	bool level = cmd->flags & TWHEEL_LEVEL;
	struct event *event;

	if (!submit(run, level ? "level" : "watch"))
		return;
	event = find_event(run, cmd->id);
	if (event)
		event->watches = true;
	json_line(json_pack("{s:s, s:o, s:s?, s:o, s:o, s:b}", "event", "watched",
			    "id", json_u64(cmd->id),
			    "name", event ? event->name : NULL,
			    "key", key_json(run, cmd->key),
			    "need", json_u64(cmd->value), "level", level), stdout);
}

/* Makes a QUERY for each event that a quiet signal may have cancelled. */
struct queries {
	struct twheel_cmd *cmds;
	size_t nr;
};

static void add_query(const void *node, VISIT visit, void *closure)
{
	const struct event *event = *(struct event **)node;
	struct queries *queries = closure;

	if (event->watches && (visit == postorder || visit == leaf))
		queries->cmds[queries->nr++] = (struct twheel_cmd){
			.op = TWHEEL_OP_QUERY,
			.id = event->id,
		};
}

/* Prints the events that a quiet signal cancelled. */
static void find_cancelled(struct run *run)
{
	struct queries queries = {
		.cmds = calloc(run->nr_events, sizeof(*queries.cmds)),
	};

	if (!queries.cmds)
		errx(EXIT_FAILURE, "out of memory for a query of each event");
	twalk_r(run->events, add_query, &queries);
	submit_all(run, queries.cmds, queries.nr);
	for (size_t i = 0; i < queries.nr; i++)
		if (queries.cmds[i].result == -ENOENT)
			cancelled(run, queries.cmds[i].id);
	free(queries.cmds);
}

static void signal_key(struct run *run)
{
	const struct twheel_cmd *cmd = &run->line.cmd;
	bool quiet = cmd->flags & TWHEEL_QUIET;

	if (!submit(run, "signal"))
		return;
	if (quiet && cmd->result)
		find_cancelled(run);
	json_line(json_pack("{s:s, s:o, s:o*, s:o*, s:i}", "event", "signalled",
			    "key", key_json(run, cmd->key),
			    "value", quiet ? NULL : json_u64(cmd->value),
			    "quiet", quiet ? json_true() : NULL,
			    "ended", cmd->result), stdout);
}

static void complete(struct run *run)
{
	if (submit(run, "complete"))
		answer(run, "ended", run->line.cmd.id);
}

/* Prints an event for query and list. @entry: its quorum is 0 if it is not known. */
static void print_event(const struct run *run, const char *what,
			const struct twheel_entry *entry)
{
	const struct event *event = find_event(run, entry->id);
	bool listed = entry->quorum;

	json_line(json_pack("{s:s, s:o, s:s?, s:s, s:o, s:o, s:o, s:o, s:o*, s:o*, s:o*, s:o*}",
			    "event", what, "id", json_u64(entry->id),
			    "name", event ? event->name : NULL, "state",
			    entry->state == TWHEEL_READY ? "ready" : "armed",
			    "due_s", since_start(run, entry->due_ns),
			    "due", json_time(entry->due_ns),
			    "every_s", json_seconds(entry->interval_ns),
			    "slack_s", json_seconds(entry->slack_ns),
			    "deadline", entry->deadline ?
			    json_integer(entry->deadline - 1) : NULL,
			    "cancel_on_set", entry->flags & TWHEEL_CANCEL_ON_SET ?
			    json_true() : NULL,
			    "quorum", listed ? json_integer(entry->quorum) : NULL,
			    "watches", listed ? json_integer(entry->watches) : NULL),
		  stdout);
}

static void query(struct run *run)
{
	const struct twheel_cmd *cmd = &run->line.cmd;
	const struct event *event;
	struct twheel_entry entry;

	if (!submit(run, "query"))
		return;
	event = find_event(run, cmd->id);
	entry = (struct twheel_entry){
		.id = cmd->id,
		.due_ns = cmd->time_ns,
		.interval_ns = cmd->interval_ns,
		.slack_ns = cmd->slack_ns,
		.deadline = event ? event->deadline : 0,
		.state = cmd->result,
	};
	print_event(run, "state", &entry);
}

/* Ends a list: prints the number of events, and what fdinfo says about deadlines. */
static void end_list(struct run *run, __u64 total)
{
	struct counters counters = { 0 };
	bool has_words = run->dev.words && !device_counters(&run->dev, &counters);

	json_line(json_pack("{s:s, s:I, s:o*, s:o*}", "event", "list",
			    "events", (json_int_t)total, "deadlines",
			    has_words ? json_integer(counters.deadlines) : NULL,
			    "postponed",
			    has_words ? json_integer(counters.postponed) : NULL),
		  stdout);
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
		failed(run, "list", 0, nr);
	else
		end_list(run, total);
}

/* Remembers the names of the line's keys. Returns false if JSON cannot have them. */
static bool learn_keys(struct run *run)
{
	const struct line *line = &run->line;
	const char *known;

	for (size_t i = 0; i < line->nr_cmds; i++) {
		if (!line->keys[i])
			continue;
		if (!is_utf8(line->keys[i])) {
			bad_line(run, "the key is not UTF-8, as all JSON is");
			return false;
		}
		known = key_names_learn(&run->names, line->cmds[i].key,
					line->keys[i]);
		if (strcmp(known, line->keys[i])) {
			bad_line(run, "key \"%s\" has the hash of \"%s\", %llu: use another name",
				 line->keys[i], known, line->cmds[i].key);
			return false;
		}
	}
	return true;
}

static void run_line(struct run *run, char *text)
{
	if (!line_parse(&run->line, text)) {
		bad_line(run, "%s", run->line.message);
		return;
	}
	if (!learn_keys(run))
		return;
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
	case LINE_WATCH:
		run_watch(run);
		return;
	case LINE_SIGNAL:
		signal_key(run);
		return;
	case LINE_COMPLETE:
		complete(run);
		return;
	case LINE_STORE:
		store(run);
		return;
	case LINE_QUERY:
		query(run);
		return;
	case LINE_LIST:
		list(run);
		return;
	}
}

/* Runs a complete line, unless it was too long. */
static void end_line(struct run *run, char *text, size_t length)
{
	const char *why = line_cut(text, length);

	run->nr_lines++;
	if (run->too_long)
		bad_line(run, "longer than %d bytes", LINE_MAX_LENGTH);
	else if (why)
		bad_line(run, "%s", why);
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
		end_line(run, text, newline - text);
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
		end_line(run, run->input, run->input_used);
}

static void print_record(struct run *run, const struct twheel_record *record)
{
	struct event *event = find_event(run, record->id);
	/* An event that was completed, or ended by a clock change, may end before it is due. */
	__s64 late_ns = (__s64)(record->fired_ns - record->due_ns);
	bool completed = record->reason == TWHEEL_COMPLETED;

	json_line(json_pack("{s:s, s:o, s:s?, s:o, s:o, s:o, s:f, s:I, s:s, s:o*, s:o*}",
			    "event", reason_name(record->reason),
			    "id", json_u64(record->id),
			    "name", event ? event->name : NULL,
			    "due_s", since_start(run, record->due_ns),
			    "due", json_time(record->due_ns),
			    "fired_s", since_start(run, record->fired_ns),
			    "late_us", late_ns > 0 ? (double)late_ns / NSEC_PER_USEC : 0.0,
			    "count", (json_int_t)record->count,
			    "reason", reason_name(record->reason),
			    "key", completed ? key_json(run, record->key) : NULL,
			    "value", completed ? json_u64(record->value) : NULL),
		  stdout);
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

	int ret = wait_until(files, ARRAY_SIZE(files), TIME_NEVER_NS);

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
	case 'd':
		run->setup.config.nr_deadlines =
			option_count(state, "deadlines", arg, 1, ~0U);
		run->setup.given = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option run_argp_options[] = {
	{ "no-wait", 'n', NULL, 0,
	  "Exit at the end of input; events that are still armed are lost", 0 },
	{ "count", 'c', "N", 0, "Exit after N records", 0 },
	{ "deadlines", 'd', "N", 0, "Share N words with the kernel, for \"deadline\"", 0 },
	{ 0 }
};

static const struct argp run_argp = {
	.options = run_argp_options,
	.parser = parse_run,
	.children = setup_children,
	.doc = "Arms and cancels events by lines on stdin and prints what becomes of them, one\n"
	       "line of JSON each.\vLines:\n"
	       "  add WHEN [OPTION]... NAME   a new event; the answer has its ID\n"
	       "  modify ID WHEN [OPTION]...  give it another time, with these options only\n"
	       "  cancel ID                   end it without a record\n"
	       "  watch ID KEY>=NEED          complete it when later signals on KEY add up to\n"
	       "                              NEED\n"
	       "  level ID KEY>=NEED          complete it when a signal on KEY is NEED or more\n"
	       "  signal KEY VALUE            signal VALUE to all events that watch KEY\n"
	       "  signal KEY quiet            cancel all events that watch KEY\n"
	       "  complete ID [VALUE]         complete it now\n"
	       "  store DEADLINE WHEN         move the events of that deadline; no system call\n"
	       "  query ID                    print its state and its time\n"
	       "  list                        the same for all events, with the number of\n"
	       "                              their watches and how many must be satisfied\n"
	       "\n"
	       "WHEN:\n"
	       "  1.5s            that long from now: ns us ms s m h d\n"
	       "  @1700000000.5   at that time on the clock, in seconds\n"
	       "  deadline 3      at the time in the shared word with that number; with\n"
	       "                  --deadlines N, from 0 to N - 1. A store moves it; to an\n"
	       "                  earlier time, only together with a modify.\n"
	       "  never           only for store, which does not take a deadline\n"
	       "\n"
	       "OPTION, before or after NAME:\n"
	       "  every 100ms     repeat it; without WHEN, the first time after that interval\n"
	       "  slack 10ms      allow it to be that late, to share an interrupt\n"
	       "  cancel-on-set   end it as \"clock_set\" when the clock is set (with\n"
	       "                  --clock realtime and @TIME)\n"
	       "and only for add:\n"
	       "  watch KEY>=NEED, level KEY>=NEED\n"
	       "                  as the lines of these names; up to 64 in all\n"
	       "  quorum K        the number of satisfied watches that complete it; default 1\n"
	       "\n"
	       "KEY is a number, or a name that stands for its 64-bit FNV-1a hash.\n"
	       "\n"
	       "NAME is any text. Put it in \"double quotes\" if it has the word of an option.\n"
	       "Blank lines and lines that begin with # are left out. The answer to a wrong\n"
	       "line is an \"error\" with the number of the line, which changes nothing; the\n"
	       "next lines are run, and the exit status is 1.\n"
	       "\n"
	       "A printed record has the time at which the event was due and fired (due_s,\n"
	       "fired_s: seconds since the command began; due: on the clock, as after @), its\n"
	       "lateness (0: in time, or it ended before it was due), the number of expirations of\n"
	       "a periodic event that it covers (count), and the reason: \"expired\",\n"
	       "\"clock_set\", or \"completed\" with the key and the value of the signal (key 0:\n"
	       "completed by its ID).\n"
	       "A signal has no effect on later watches. At the end of input the command waits\n"
	       "until every event has ended; a periodic event never ends.\n"
	       "\n"
	       "Examples:\n"
	       "  twheelctl run <<<'add 1.5s hello slack 10ms'\n"
	       "  twheelctl run --deadlines 1 --no-wait <<<'add deadline 0 idle'",
};

static bool is_over(const struct run *run)
{
	return has_enough(run) ||
	       (run->input_ended && (run->no_wait || !run->nr_events));
}

enum status run_main(int argc, char **argv, struct settings *settings)
{
	struct run run = { .settings = settings };

	options_argp(&run_argp, argc, argv, 0, &run);
	if (setup_open(&run.dev, settings->device, &run.setup))
		return STATUS_FAILURE;
	run.line.clockid = run.setup.config.clockid;
	run.line.tick_ns = run.dev.info.tick_ns;
	run.line.nr_deadlines = run.setup.config.nr_deadlines;
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.start_ns = wait_now_ns();
	while (!is_over(&run))
		wait_and_serve(&run);
	return run.nr_errors ? STATUS_FAILURE : STATUS_OK;
}
