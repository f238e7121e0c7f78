// SPDX-License-Identifier: GPL-2.0
/*
 * A schedule: reading, checking and writing it.
 */
#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "common/number.h"
#include "twheelctl/line.h"
#include "twheelctl/replay/schedule.h"

/* The fields of a line; the last three may be missing. */
enum {
	FIELD_AT,
	FIELD_COMMAND,
	FIELD_NAME,
	FIELD_DELAY,
	FIELD_INTERVAL,
	FIELD_SLACK,
	NR_FIELDS
};

const char * const schedule_command_names[NR_SCHEDULE_COMMANDS] = {
	[SCHEDULE_ADD] = "add",
	[SCHEDULE_ARM] = "arm",
	[SCHEDULE_MODIFY] = "modify",
	[SCHEDULE_CANCEL] = "cancel",
};

/**
 * struct reader - a schedule while its file is read
 * @schedule: the result.
 * @number: the number of the current line.
 * @line_room: the number of lines that fit into the memory allocated.
 * @text_room: the bytes allocated for text.
 * @text_used: the bytes of text in use.
 * @offsets: the offset of each line's name in the text, which may still be moved.
 */
struct reader {
	struct schedule *schedule;
	unsigned int number;
	size_t line_room;
	size_t text_room;
	size_t text_used;
	size_t *offsets;
};

/* A name and its line, to be sorted. */
struct mention {
	const char *name;
	size_t line;
};

static void *grow(void *memory, size_t nr, size_t size)
{
	memory = reallocarray(memory, nr, size);
	if (!memory)
		errx(EXIT_FAILURE, "out of memory for the schedule");
	return memory;
}

static void print_error(const struct schedule *schedule, unsigned int number,
			const char *format, va_list args)
{
	char message[512];

	vsnprintf(message, sizeof(message), format, args);
	warnx("%s:%u: %s", schedule->source, number, message);
}

static PRINTF_LIKE(2, 3)
int reader_error(const struct reader *reader, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_error(reader->schedule, reader->number, format, args);
	va_end(args);
	return -EINVAL;
}

static PRINTF_LIKE(3, 4)
int line_error(const struct schedule *schedule,
	       const struct schedule_line *line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_error(schedule, line->number, format, args);
	va_end(args);
	return -EINVAL;
}

/* Cuts a line at its commas; missing fields are empty. */
static int split_line(const struct reader *reader, char *text,
		      char *fields[NR_FIELDS])
{
	static char empty[1];
	int nr = 0;

	while (text && nr < NR_FIELDS)
		fields[nr++] = strsep(&text, ",");
	if (text || nr <= FIELD_NAME)
		return reader_error(reader, "%s fields: a line is %s",
				    text ? "too many" : "too few",
				    SCHEDULE_FIELDS);
	while (nr < NR_FIELDS)
		fields[nr++] = empty;
	return 0;
}

static int parse_command(const struct reader *reader, const char *text,
			 struct schedule_line *line)
{
	for (int i = 0; i < NR_SCHEDULE_COMMANDS; i++) {
		if (!strcmp(text, schedule_command_names[i])) {
			line->command = i;
			return 0;
		}
	}
	return reader_error(reader,
			    "unknown command \"%s\": it is add, arm, modify or cancel",
			    text);
}

static int parse_time(const struct reader *reader, const char *name,
		      const char *text, __u64 *ns)
{
	const char *wrong = seconds_parse(text, ns);

	if (wrong)
		return reader_error(reader, "%s \"%s\" %s", name, text, wrong);
	return 0;
}

static int refuse_times(const struct reader *reader, char *fields[NR_FIELDS])
{
	static const char * const names[NR_FIELDS] = {
		[FIELD_DELAY] = "delay_s",
		[FIELD_INTERVAL] = "interval_s",
		[FIELD_SLACK] = "slack_s",
	};

	for (int i = FIELD_DELAY; i < NR_FIELDS; i++)
		if (*fields[i])
			return reader_error(reader, "%s \"%s\": cancel takes none",
					    names[i], fields[i]);
	return 0;
}

static int parse_times(const struct reader *reader, char *fields[NR_FIELDS],
		       struct schedule_line *line)
{
	int ret;

	if (line->command == SCHEDULE_CANCEL)
		return refuse_times(reader, fields);
	if (!*fields[FIELD_DELAY])
		return reader_error(reader, "%s without delay_s: when is it due?",
				    schedule_command_names[line->command]);
	ret = parse_time(reader, "delay_s", fields[FIELD_DELAY],
			 &line->delay_ns);
	if (!ret && line->delay_ns > NUMBER_MAX_NS - line->at_ns)
		ret = reader_error(reader,
				   "delay_s \"%s\" ends more than 292 years after the start",
				   fields[FIELD_DELAY]);
	if (!ret && *fields[FIELD_INTERVAL])
		ret = parse_time(reader, "interval_s", fields[FIELD_INTERVAL],
				 &line->interval_ns);
	if (!ret && *fields[FIELD_SLACK])
		ret = parse_time(reader, "slack_s", fields[FIELD_SLACK],
				 &line->slack_ns);
	return ret;
}

static int parse_fields(const struct reader *reader, char *fields[NR_FIELDS],
			struct schedule_line *line)
{
	int ret = parse_time(reader, "at_s", fields[FIELD_AT], &line->at_ns);

	if (!ret)
		ret = parse_command(reader, fields[FIELD_COMMAND], line);
	if (ret)
		return ret;
	if (!*fields[FIELD_NAME])
		return reader_error(reader, "the name is empty");
	return parse_times(reader, fields, line);
}

static void append_line(struct reader *reader, const struct schedule_line *line,
			const char *name)
{
	struct schedule *schedule = reader->schedule;
	size_t len = strlen(name) + 1;

	if (schedule->nr_lines == reader->line_room) {
		reader->line_room = 2 * reader->line_room + 1024;
		schedule->lines = grow(schedule->lines, reader->line_room,
				       sizeof(*schedule->lines));
		reader->offsets = grow(reader->offsets, reader->line_room,
				       sizeof(*reader->offsets));
	}
	if (reader->text_room - reader->text_used < len) {
		reader->text_room = 2 * reader->text_room + len;
		schedule->text = grow(schedule->text, reader->text_room, 1);
	}
	memcpy(schedule->text + reader->text_used, name, len);
	reader->offsets[schedule->nr_lines] = reader->text_used;
	reader->text_used += len;
	schedule->lines[schedule->nr_lines++] = *line;
}

static int read_line(struct reader *reader, char *text, size_t len)
{
	struct schedule_line line = { .number = reader->number };
	const char *why = line_cut(text, len), *begin = text + strspn(text, " \t");
	char *fields[NR_FIELDS];
	int ret;

	if (why)
		return reader_error(reader, "%s", why);
	if (!*begin || *begin == '#')
		return 0;
	ret = split_line(reader, text, fields);
	if (!ret)
		ret = parse_fields(reader, fields, &line);
	if (!ret)
		append_line(reader, &line, fields[FIELD_NAME]);
	return ret;
}

static int compare_mentions(const void *a, const void *b)
{
	const struct mention *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/* Numbers the names. After sorting, all lines of a name stand side by side. */
static void number_events(struct reader *reader)
{
	struct schedule *schedule = reader->schedule;
	struct mention *mentions = grow(NULL, schedule->nr_lines,
					sizeof(*mentions));
	const char **names = grow(NULL, schedule->nr_lines, sizeof(*names));
	size_t nr = 0;

	for (size_t i = 0; i < schedule->nr_lines; i++) {
		mentions[i].name = schedule->text + reader->offsets[i];
		mentions[i].line = i;
	}
	qsort(mentions, schedule->nr_lines, sizeof(*mentions), compare_mentions);
	for (size_t i = 0; i < schedule->nr_lines; i++) {
		if (!nr || strcmp(names[nr - 1], mentions[i].name))
			names[nr++] = mentions[i].name;
		schedule->lines[mentions[i].line].event = nr - 1;
	}
	schedule->names = grow(names, nr, sizeof(*names));
	schedule->nr_events = nr;
	free(mentions);
}

static int read_lines(struct reader *reader, FILE *file)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t len;
	int ret = 0;

	while (!ret && (len = getline(&text, &room, file)) >= 0) {
		reader->number++;
		ret = read_line(reader, text, len);
	}
	if (!ret && !feof(file)) {
		ret = -errno;
		warn("cannot read %s", reader->schedule->source);
	}
	free(text);
	return ret;
}

/*
 * Read a schedule and check it.
 *
 * @path: its file, or "-" for stdin.
 *
 * Return: 0, or a negative errno after a message that names the line.
 */
int schedule_read(struct schedule *schedule, const char *path)
{
	struct reader reader = { .schedule = schedule };
	bool is_stdin = !strcmp(path, "-");
	FILE *file = is_stdin ? stdin : fopen(path, "re");
	int ret;

	*schedule = (struct schedule){ .source = is_stdin ? "stdin" : path };
	if (!file) {
		ret = -errno;
		warn("cannot open %s", path);
		return ret;
	}
	ret = read_lines(&reader, file);
	if (!is_stdin)
		fclose(file);
	if (ret)
		return ret;
	if (!schedule->nr_lines) {
		warnx("%s has no commands: a line is %s", schedule->source,
		      SCHEDULE_FIELDS);
		return -EINVAL;
	}
	number_events(&reader);
	free(reader.offsets);
	return schedule_check(schedule);
}

/* An event in the simulated run; @number is the number of its last line. */
struct sketch {
	bool known;
	bool armed;
	__u64 due_ns;
	__u64 interval_ns;
	unsigned int number;
};

/* Lets an event expire up to a time, in the simulated run. */
static void expire_until(struct schedule *schedule, struct sketch *event,
			 __u64 until_ns)
{
	__u64 times = 1;

	if (!event->armed || event->due_ns > until_ns)
		return;
	if (event->interval_ns) {
		times += (until_ns - event->due_ns) / event->interval_ns;
		event->due_ns += times * event->interval_ns;
	} else {
		event->armed = false;
	}
	schedule->expirations += times;
}

/* Checks a line against the state of its event. */
static int check_command(const struct schedule *schedule,
			 const struct schedule_line *line,
			 const struct sketch *event)
{
	const char *name = schedule->names[line->event];
	char due[NUMBER_TEXT];

	if (line->command == SCHEDULE_ADD && event->armed)
		return line_error(schedule, line,
				  "add of \"%s\", which is armed %s %s: use arm or modify",
				  name, event->interval_ns ? "and next due at" : "until",
				  seconds_format(due, event->due_ns));
	if (!event->known && (line->command == SCHEDULE_MODIFY ||
			      line->command == SCHEDULE_CANCEL))
		return line_error(schedule, line,
				  "%s of \"%s\", which no line above has added",
				  schedule_command_names[line->command], name);
	return 0;
}

static int check_line(struct schedule *schedule,
		      const struct schedule_line *line, struct sketch *event)
{
	expire_until(schedule, event, line->at_ns);
	if (check_command(schedule, line, event))
		return -EINVAL;
	event->known = true;
	event->number = line->number;
	if (line->command == SCHEDULE_CANCEL)
		event->armed = false;
	else if (line->command != SCHEDULE_MODIFY)
		event->armed = true;
	if (!event->armed)
		return 0;
	event->due_ns = line->at_ns + line->delay_ns;
	event->interval_ns = line->interval_ns;
	if (event->due_ns > schedule->end_ns)
		schedule->end_ns = event->due_ns;
	if (line->slack_ns > schedule->slack_ns)
		schedule->slack_ns = line->slack_ns;
	return 0;
}

static int check_order(const struct schedule *schedule, size_t i)
{
	const struct schedule_line *line = &schedule->lines[i];
	char at[NUMBER_TEXT], before[NUMBER_TEXT];

	if (!i || line->at_ns >= line[-1].at_ns)
		return 0;
	return line_error(schedule, line,
			  "at_s %s is before that of line %u, %s: lines go by time",
			  seconds_format(at, line->at_ns), line[-1].number,
			  seconds_format(before, line[-1].at_ns));
}

static void append_cancel(struct schedule *schedule, __u32 event,
			  unsigned int number)
{
	schedule->lines = grow(schedule->lines, schedule->nr_lines + 1,
			       sizeof(*schedule->lines));
	schedule->lines[schedule->nr_lines++] = (struct schedule_line){
		.at_ns = schedule->end_ns,
		.event = event,
		.number = number,
		.command = SCHEDULE_CANCEL,
	};
}

/* Ends the simulated run: one-shot events expire, periodic ones are cancelled. */
static void check_end(struct schedule *schedule, struct sketch *events)
{
	for (size_t i = 0; i < schedule->nr_events; i++) {
		expire_until(schedule, &events[i], schedule->end_ns);
		if (events[i].armed)
			append_cancel(schedule, i, events[i].number);
	}
}

/*
 * Simulate a run of the schedule.
 *
 * Return: 0, with @expirations, @end_ns and @slack_ns set, or -EINVAL after a message that
 * names the line.
 */
int schedule_check(struct schedule *schedule)
{
	struct sketch *events = calloc(schedule->nr_events, sizeof(*events));
	int ret = 0;

	if (!events)
		errx(EXIT_FAILURE, "out of memory for the schedule");
	schedule->expirations = 0;
	schedule->slack_ns = 0;
	schedule->end_ns = schedule->lines[schedule->nr_lines - 1].at_ns;
	for (size_t i = 0; !ret && i < schedule->nr_lines; i++) {
		const struct schedule_line *line = &schedule->lines[i];

		ret = check_order(schedule, i);
		if (!ret)
			ret = check_line(schedule, line, &events[line->event]);
	}
	if (!ret)
		check_end(schedule, events);
	free(events);
	return ret;
}

/*
 * Check that all events are one-shot, as events with a deadline have to be.
 *
 * Return: 0, or -EINVAL after a message that names the line.
 */
int schedule_check_one_shot(const struct schedule *schedule)
{
	char interval[NUMBER_TEXT];

	for (size_t i = 0; i < schedule->nr_lines; i++) {
		const struct schedule_line *line = &schedule->lines[i];

		if (line->interval_ns)
			return line_error(schedule, line,
					  "interval_s %s: with --deadlines, no event is periodic",
					  seconds_format(interval, line->interval_ns));
	}
	return 0;
}

/*
 * Check that all periods are possible on a device with this tick.
 *
 * Return: 0, or -EINVAL after a message that names the line.
 */
int schedule_check_intervals(const struct schedule *schedule, __u64 tick_ns)
{
	char interval[NUMBER_TEXT], tick[NUMBER_TEXT];

	for (size_t i = 0; i < schedule->nr_lines; i++) {
		const struct schedule_line *line = &schedule->lines[i];

		if (line->interval_ns && line->interval_ns < tick_ns)
			return line_error(schedule, line,
					  "interval_s %s is less than a tick of the device, %s",
					  seconds_format(interval, line->interval_ns),
					  seconds_format(tick, tick_ns));
	}
	return 0;
}

static void write_line(const struct schedule *schedule,
		       const struct schedule_line *line, FILE *file)
{
	char text[NUMBER_TEXT];

	fprintf(file, "%s,%s,%s", seconds_format(text, line->at_ns),
		schedule_command_names[line->command],
		schedule->names[line->event]);
	if (line->command != SCHEDULE_CANCEL)
		fprintf(file, ",%s", seconds_format(text, line->delay_ns));
	if (line->interval_ns || line->slack_ns)
		fprintf(file, ",%s", seconds_format(text, line->interval_ns));
	if (line->slack_ns)
		fprintf(file, ",%s", seconds_format(text, line->slack_ns));
	fputc('\n', file);
}

/*
 * Write a schedule as a file.
 *
 * @path: its file, or "-" for stdout.
 */
int schedule_write(const struct schedule *schedule, const char *path)
{
	bool is_stdout = !strcmp(path, "-");
	FILE *file = is_stdout ? stdout : fopen(path, "we");
	int error;

	if (!file) {
		error = errno;
		warn("cannot create %s", path);
		return -error;
	}
	fprintf(file, "# %s\n", SCHEDULE_FIELDS);
	for (size_t i = 0; i < schedule->nr_lines; i++)
		write_line(schedule, &schedule->lines[i], file);
	error = fflush(file) ? errno : 0;
	if (!is_stdout)
		fclose(file);
	if (error)
		warnx("cannot write %s: %s", path, strerror(error));
	return -error;
}
