// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl record: writes what the wheels do over time, as lines of JSON, for
 * tools/wheelview and for whoever wants to look later.
 *
 * Each sample reads the files of debugfs once. Trace events, where they are asked for, are
 * read before each sample, and when half of the kernel's buffer is full.
 *
 * A reader of the lines may stall. So the command waits for it and for signals at the same
 * time, and has a stream of its own in place of stdout. A pipe that is ready for writing
 * takes PIPE_BUF bytes without waiting.
 */
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/options.h"
#include "common/signals.h"
#include "common/time.h"
#include "common/util.h"
#include "common/version.h"
#include "common/wait.h"
#include "twheelctl/command.h"
#include "twheelctl/json.h"
#include "twheelctl/tracefs.h"
#include "twheelctl/wheel_json.h"

#define MIN_INTERVAL_NS		(10 * NSEC_PER_MSEC)

/* How long a reader that stalls has at the end, to take the rest. */
#define GRACE_NS		NSEC_PER_SEC

/* The format of the lines, which tools/wheelview knows by this number. */
#define RECORD_VERSION		1

enum {
	KEY_TRACEFS = 512,
};

/* What the command waits for, besides the time. */
enum { FILE_SIGNALS, FILE_TRACE, FILES };

/**
 * struct record - the state of the command
 * @settings: the options of all commands.
 * @interval_ns: --interval.
 * @duration_ns: --duration; 0: no limit.
 * @count: --count; 0: no limit.
 * @trace: --trace.
 * @tracefs_path: --tracefs.
 * @tracefs: the trace events, with @trace.
 * @files: signals, and the trace events.
 * @out: the stream to stdout.
 * @error: why it cannot be written, an errno; ETIMEDOUT: the reader has stalled.
 * @start_ns: when the command began.
 * @give_up_ns: when a stalled reader is not waited for any more, after a signal; 0: none came.
 * @samples: the number of samples so far.
 * @lines: the number of wheels in them.
 */
struct record {
	struct settings *settings;
	__u64 interval_ns;
	__u64 duration_ns;
	__u64 count;
	bool trace;
	const char *tracefs_path;
	struct tracefs tracefs;
	struct pollfd files[FILES];
	FILE *out;
	int error;
	__u64 start_ns;
	__u64 give_up_ns;
	__u64 samples;
	__u64 lines;
};

/* --- output --------------------------------------------------------------------------- */

/* How long to wait for the reader, in ms; -1: as long as it takes. */
static int wait_ms(const struct record *record)
{
	__u64 now_ns = wait_now_ns(), end_ns = UINT64_MAX, left_ms;

	if (record->duration_ns)
		end_ns = record->start_ns + record->duration_ns + GRACE_NS;
	if (record->give_up_ns && record->give_up_ns < end_ns)
		end_ns = record->give_up_ns;
	if (end_ns == UINT64_MAX)
		return -1;
	left_ms = end_ns > now_ns ? (end_ns - now_ns) / NSEC_PER_MSEC : 0;
	return left_ms < INT_MAX ? left_ms : INT_MAX;
}

/* Wait until stdout can be written. Returns false if the time is over before. */
static bool wait_writable(struct record *record)
{
	struct pollfd files[] = {
		{ .fd = STDOUT_FILENO, .events = POLLOUT },
		record->files[FILE_SIGNALS],
	};
	int ret;

	do {
		ret = poll(files, record->give_up_ns ? 1 : ARRAY_SIZE(files), wait_ms(record));
		if (ret > 0 && !record->give_up_ns && files[1].revents)
			record->give_up_ns = wait_now_ns() + GRACE_NS;
	} while ((ret < 0 && errno == EINTR) || (ret > 0 && !files[0].revents));
	return ret > 0;
}

/* The write function of the stream. */
static ssize_t write_out(void *cookie, const char *text, size_t size)
{
	struct record *record = cookie;
	size_t done = 0;
	ssize_t nr;

	while (done < size && !record->error) {
		if (!wait_writable(record)) {
			record->error = ETIMEDOUT;
			break;
		}
		nr = write(STDOUT_FILENO, text + done,
			   size - done < PIPE_BUF ? size - done : PIPE_BUF);
		if (nr >= 0)
			done += nr;
		else if (errno != EAGAIN && errno != EINTR)
			record->error = errno;
	}
	/* 0 is an error. */
	return done < size ? 0 : done;
}

static void open_out(struct record *record)
{
	record->out = fopencookie(record, "w", (cookie_io_functions_t){ .write = write_out });
	if (!record->out)
		errx(STATUS_FAILURE, "out of memory");
}

/* The reader may have gone, or the disk may be full. */
static bool flush(const struct record *record)
{
	if (!fflush(record->out) && !ferror(record->out))
		return true;
	if (record->error == ETIMEDOUT)
		warnx("cannot write: the reader has stalled, and the end is missing");
	else if (record->error != EPIPE)
		warnx("cannot write: %s", strerror(record->error));
	return false;
}

/* --- lines ---------------------------------------------------------------------------- */

static json_t *elapsed_json(const struct record *record, __u64 now_ns)
{
	return json_seconds(now_ns - record->start_ns);
}

static void write_start(const struct record *record)
{
	char text[32];
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_write(json_pack("{s:s, s:i, s:s, s:s, s:o, s:b}", "type", "start",
			     "version", RECORD_VERSION, "twheelctl", TWHEEL_VERSION,
			     "time", text, "interval_s", json_seconds(record->interval_ns),
			     "trace", record->trace), record->out);
}

static void write_end(const struct record *record)
{
	json_write(json_pack("{s:s, s:o, s:I}", "type", "end",
			     "at_s", elapsed_json(record, wait_now_ns()),
			     "samples", (json_int_t)record->samples), record->out);
}

static void write_wheel(const struct record *record, const struct wheel *wheel, __u64 ns)
{
	json_t *line = json_pack("{s:s, s:o}", "type", "wheel", "at_s", json_seconds(ns));
	json_t *object = wheel_json(wheel, false);

	if (json_object_update(line, object))
		errx(STATUS_FAILURE, "the name of a wheel is not UTF-8");
	json_decref(object);
	json_write(line, record->out);
}

static void write_event(char *line, void *arg)
{
	const struct record *record = arg;
	json_t *object = trace_line_json(line, record->start_ns);

	if (object)
		json_write(object, record->out);
}

static bool write_events(struct record *record)
{
	return !record->trace || tracefs_read(&record->tracefs, write_event, record) >= 0;
}

/* Write all trace events that are left. */
static bool write_last_events(struct record *record)
{
	int ret = record->trace;

	if (record->trace)
		tracefs_stop(&record->tracefs);
	while (ret > 0 && !ferror(record->out))
		ret = tracefs_read(&record->tracefs, write_event, record);
	return ret >= 0;
}

static bool sample(struct record *record)
{
	__u64 now_ns = wait_now_ns();
	struct wheels wheels;

	if (!write_events(record) || wheels_read(&wheels, record->settings->debugfs))
		return false;
	for (size_t i = 0; i < wheels.nr; i++)
		write_wheel(record, &wheels.wheel[i], now_ns - record->start_ns);
	record->samples++;
	record->lines += wheels.nr;
	wheels_free(&wheels);
	return flush(record);
}

/* Wait for the next sample. Returns false after a signal, or if trace events are broken. */
static bool wait_for(struct record *record, __u64 until_ns)
{
	do {
		if (wait_until(record->files, record->trace ? FILES : FILE_TRACE, until_ns) < 0)
			return false;
		if (record->files[FILE_SIGNALS].revents)
			return false;
		if (record->files[FILE_TRACE].revents && (!write_events(record) || !flush(record)))
			return false;
	} while (wait_now_ns() < until_ns);
	return true;
}

static bool is_last(const struct record *record, __u64 next_ns)
{
	return (record->count && record->samples >= record->count) ||
	       (record->duration_ns && next_ns - record->start_ns > record->duration_ns);
}

/* Samples until the limit or a signal. Returns false if one failed. */
static bool take_samples(struct record *record)
{
	__u64 next_ns = record->start_ns;

	for (;;) {
		if (!sample(record))
			return false;
		next_ns += record->interval_ns;
		/* Leave out samples for which it is too late. */
		if (next_ns < wait_now_ns())
			next_ns = wait_now_ns();
		if (is_last(record, next_ns))
			return true;
		if (!wait_for(record, next_ns))
			return record->files[FILE_SIGNALS].revents;
	}
}

/* A signal ends the recording as its limit does: the instance of tracefs has to go. */
static void catch_signals(struct record *record)
{
	record->files[FILE_SIGNALS] = (struct pollfd){ .fd = signals_open(), .events = POLLIN };
}

static enum status record_all(struct record *record)
{
	bool well;

	record->start_ns = wait_now_ns();
	write_start(record);
	well = take_samples(record) && write_last_events(record);
	if (!ferror(record->out)) {
		write_end(record);
		well = flush(record) && well;
	}
	fclose(record->out);
	if (well && !record->lines)
		warnx("no wheel was used meanwhile");
	return well ? STATUS_OK : STATUS_FAILURE;
}

static error_t parse_record(int key, char *arg, struct argp_state *state)
{
	struct record *record = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = record->settings;
		return 0;
	case 'i':
		record->interval_ns = option_seconds(state, "interval", arg, MIN_INTERVAL_NS);
		return 0;
	case 'd':
		record->duration_ns = option_seconds(state, "duration", arg, MIN_INTERVAL_NS);
		return 0;
	case 'c':
		record->count = option_count(state, "count", arg, 1, ~0ULL);
		return 0;
	case 't':
		record->trace = true;
		return 0;
	case KEY_TRACEFS:
		record->tracefs_path = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option record_argp_options[] = {
	{ "interval", 'i', "S", 0, "Look each S seconds; default 1", 0 },
	{ "duration", 'd', "S", 0, "End after S seconds", 0 },
	{ "count", 'c', "N", 0, "End after N samples", 0 },
	{ "trace", 't', NULL, 0, "Write the trace events of the module, too", 0 },
	{ "tracefs", KEY_TRACEFS, "PATH", 0,
	  "Where tracefs is mounted; default /sys/kernel/tracing", 0 },
	{ 0 }
};

static const struct argp record_argp = {
	.options = record_argp_options,
	.parser = parse_record,
	.children = settings_child,
	.doc = "Looks at the wheels again and again, and writes lines of JSON: what show --json\n"
	       "prints of each wheel, without levels that are empty, and at_s, the seconds since\n"
	       "the command began. It ends after --duration, after --count samples or at ^C,\n"
	       "whichever is first. The page tools/wheelview shows the wheels turn from that.\n"
	       "\vWith --trace there is a line for each event that is armed, postponed, cancelled,\n"
	       "completed or due, and for each run of a wheel, too. Many of them cost time: use\n"
	       "it for a short while.\n"
	       "\n"
	       "Examples:\n"
	       "  twheelctl record --interval 0.1 --duration 60 > minute.json\n"
	       "  twheelctl record --trace --duration 5 | grep '\"event\":\"due\"'",
};

enum status record_main(int argc, char **argv, struct settings *settings)
{
	struct record record = {
		.settings = settings,
		.interval_ns = NSEC_PER_SEC,
		.tracefs_path = "/sys/kernel/tracing",
	};
	struct wheels wheels;
	enum status status;

	options_argp(&record_argp, argc, argv, 0, &record);
	/* What is wrong is said before anything is written. */
	if (wheels_read(&wheels, settings->debugfs))
		return STATUS_FAILURE;
	wheels_free(&wheels);
	catch_signals(&record);
	open_out(&record);
	if (record.trace && tracefs_open(&record.tracefs, record.tracefs_path))
		return STATUS_FAILURE;
	record.files[FILE_TRACE] = (struct pollfd){
		.fd = record.tracefs.fd,
		.events = POLLIN,
	};
	status = record_all(&record);
	if (record.trace)
		tracefs_close(&record.tracefs);
	return status;
}
