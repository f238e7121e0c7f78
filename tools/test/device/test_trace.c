// SPDX-License-Identifier: GPL-2.0
/* The tracepoints tell what becomes of an event. */
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
	if (access(TRACING "events/twheel/enable", W_OK))
		test_skip("no tracefs");
	ASSERT_EQ(write_file(TRACING "trace", ""), 0);
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
	ASSERT_EQ(count_traced("twheel_due:", "/monotonic"), 1);
	while (!count_traced("twheel_run:", "expired=1 "))
		;
}
