// SPDX-License-Identifier: GPL-2.0
/* The tracepoints tell what becomes of an event. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define TRACING	"/sys/kernel/tracing/"

static void stop_tracing(const void *arg)
{
	(void)arg;
	write_file(TRACING "events/twheel/enable", "0");
}

static void start_tracing(void)
{
	int trace;

	if (access(TRACING "events/twheel/enable", W_OK))
		test_skip("no tracefs");
	/* That empties it. */
	trace = open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);
	ASSERT_GE(trace, 0);
	close(trace);
	/*
	 * Names of commands would be kept by a tracepoint of the scheduler.  Where that is
	 * put into the code that idle processors run, QEMU's emulated ones were seen to go on
	 * executing the breakpoint of the change when it was gone, for ever.
	 */
	write_file(TRACING "options/record-cmd", "0");
	ASSERT_EQ(write_file(TRACING "events/twheel/enable", "1"), 0);
	at_end(stop_tracing, NULL);
}

/* How many lines of the trace have both. */
static int count_traced(const char *event, const char *text)
{
	FILE *trace = fopen(TRACING "trace", "re");
	char line[512];
	int nr = 0;

	ASSERT(trace);
	while (fgets(line, sizeof(line), trace))
		nr += strstr(line, event) && strstr(line, text);
	fclose(trace);
	return nr;
}

/* A count that a file tells of can be ahead of the trace, which is written after it. */
static void wait_traced(const char *event, const char *text)
{
	while (!count_traced(event, text))
		poll(NULL, 0, 1);
}

TEST(trace_tells_of_arming_and_cancelling_and_expiring)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + FAR_NS, id;
	char due[32];

	start_tracing();
	snprintf(due, sizeof(due), "due_ns=%llu ", due_ns);
	id = add(fd, TWHEEL_ABS, due_ns, 0);
	ASSERT_EQ(count_traced("twheel_arm:", due), 1);
	ASSERT_EQ(count_traced("twheel_cancel:", "/monotonic"), 0);
	ASSERT_EQ(cancel(fd, id), 0);
	ASSERT_EQ(count_traced("twheel_cancel:", "/monotonic"), 1);

	add(fd, 0, NSEC_PER_MSEC, 0);
	wait_record(fd);
	ASSERT_EQ(count_traced("twheel_arm:", "/monotonic"), 2);
	ASSERT_EQ(count_traced("twheel_arm:", "kind=events"), 2);
	ASSERT_EQ(count_traced("twheel_due:", "/monotonic"), 1);
	wait_traced("twheel_run:", "expired=1 ");
}

/* perf and trace-cmd have nothing but the format file to go by. */
TEST(trace_formats_have_numbers_where_the_source_has_names)
{
	static const char * const events[] = {
		"twheel_arm", "twheel_cancel", "twheel_complete", "twheel_due",
		"twheel_postpone", "twheel_run",
	};
	size_t i;

	start_tracing();
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		char path[128], format[4096] = "";
		FILE *file;

		test_about("%s", events[i]);
		snprintf(path, sizeof(path), TRACING "events/twheel/%s/format",
			 events[i]);
		file = fopen(path, "re");
		ASSERT(file);
		ASSERT_GT(fread(format, 1, sizeof(format) - 1, file), 0);
		fclose(file);
		ASSERT(strstr(format, "{ 0, \"monotonic\" }"));
		ASSERT(strstr(format, "{ 2, \"realtime\" }"));
		ASSERT(!strstr(format, "BASE_"));
	}
}

TEST(trace_tells_of_completing_and_of_the_signal)
{
	int fd = device_open_nonblock();
	__u64 id;

	start_tracing();
	add_watching(fd, 123456, 10, 0);
	id = add(fd, 0, FAR_NS, 0);
	ASSERT_EQ(signal_key(fd, 123456, 9), 0);
	ASSERT_EQ(count_traced("twheel_complete:", ""), 0);
	ASSERT_EQ(signal_key(fd, 123456, 654321), 1);
	ASSERT_EQ(count_traced("twheel_complete:", "/monotonic"), 1);
	ASSERT_EQ(count_traced("twheel_complete:", "key=123456 "), 1);
	ASSERT_EQ(count_traced("twheel_complete:", "value=654321"), 1);
	ASSERT_EQ(complete(fd, id, 777), 0);
	ASSERT_EQ(count_traced("twheel_complete:", "key=0 "), 1);
	ASSERT_EQ(count_traced("twheel_complete:", "value=777"), 1);
	ASSERT_EQ(count_traced("twheel_cancel:", ""), 0);
}

TEST(trace_tells_of_cancelling_by_a_quiet_signal)
{
	int fd = device_open_nonblock();

	start_tracing();
	add_watching(fd, 1, 10, 0);
	ASSERT_EQ(signal_quietly(fd, 1), 1);
	ASSERT_EQ(count_traced("twheel_cancel:", "/monotonic"), 1);
	ASSERT_EQ(count_traced("twheel_complete:", ""), 0);
}

TEST(trace_tells_of_postponing)
{
	_Atomic __u64 *words;
	__u64 due_ns = monotonic_ns() + FAR_NS, id;
	int fd = open_deadlines(1, &words);
	char due[32];

	start_tracing();
	snprintf(due, sizeof(due), "due_ns=%llu ", due_ns);
	id = add_postponed(fd, words, 0, due_ns, 0);
	wait_traced("twheel_postpone:", due);
	ASSERT_EQ(count_traced("twheel_postpone:", "/monotonic"), 1);
	ASSERT_EQ(count_traced("twheel_postpone:", "kind=deadlines"), 1);
	ASSERT_EQ(count_traced("twheel_arm:", due), 0);
	ASSERT_EQ(modify_deadline(fd, id, 0), 0);
	ASSERT_EQ(count_traced("twheel_arm:", due), 1);
	ASSERT_EQ(count_traced("twheel_postpone:", ""), 1);
}
