// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the trace events of the module.
 *
 * An event is a line of text. Its time is that of CLOCK_MONOTONIC:
 *
 *	<idle>-0  [001] d.h2.  5123.004711: twheel_due: node=... base=1/monotonic late_ns=...
 *
 * Where events came faster than they were read, there is a line in their place:
 *
 *	CPU:1 [LOST 1024 EVENTS]
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/time.h"
#include "common/util.h"
#include "twheelctl/json.h"
#include "twheelctl/tracefs.h"

/* How often the pipe is read at a time: events may come as fast as they are read. */
#define MAX_READS	64

/* The instance to remove at the end of the process. */
static struct tracefs *opened;

static void path_in(char path[8192], const struct tracefs *tracefs, const char *name)
{
	snprintf(path, 8192, "%s/%s", tracefs->directory, name);
}

/* Write a word to a file of the instance. */
static int set(const struct tracefs *tracefs, const char *name, const char *word)
{
	char path[8192];
	ssize_t done;
	int fd, ret;

	path_in(path, tracefs, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	done = write(fd, word, strlen(word));
	ret = done < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static int make_directory(struct tracefs *tracefs, const char *directory)
{
	int ret;

	snprintf(tracefs->directory, sizeof(tracefs->directory),
		 "%s/instances/twheelctl-%d", directory, getpid());
	if (!mkdir(tracefs->directory, 0700))
		return 0;
	ret = -errno;
	warnx("cannot make %s: %s%s", tracefs->directory, strerror(-ret),
	      ret == -ENOENT ? "\ntracefs is not mounted there. As root:\n"
			       "    mount -t tracefs none /sys/kernel/tracing" :
	      ret == -EACCES ? "\nOnly root can trace: run this as root." : "");
	return ret;
}

static int enable(struct tracefs *tracefs)
{
	char path[8192];
	int ret;

	ret = set(tracefs, "events/twheel/enable", "1");
	if (ret) {
		warnx("%s has no events of twheel (%s): is the module loaded?",
		      tracefs->directory, strerror(-ret));
		return ret;
	}
	ret = set(tracefs, "trace_clock", "mono");
	if (ret) {
		warnx("%s/trace_clock cannot be set to mono: %s", tracefs->directory,
		      strerror(-ret));
		return ret;
	}
	path_in(path, tracefs, "trace_pipe");
	tracefs->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (tracefs->fd < 0) {
		ret = -errno;
		warnx("cannot open %s: %s", path, strerror(-ret));
	}
	return ret;
}

static void close_opened(void)
{
	if (opened)
		tracefs_close(opened);
}

/*
 * Begin to trace the events of the module. The instance is also removed at exit().
 *
 * @directory: where tracefs is mounted.
 *
 * Return: 0, or a negative errno after a message.
 */
int tracefs_open(struct tracefs *tracefs, const char *directory)
{
	int ret = make_directory(tracefs, directory);

	tracefs->fd = -1;
	tracefs->length = 0;
	if (ret)
		return ret;
	opened = tracefs;
	ret = atexit(close_opened) ? -ENOMEM : enable(tracefs);
	if (ret)
		tracefs_close(tracefs);
	return ret;
}

/* Stop tracing: tracefs_read() comes to an end. */
void tracefs_stop(struct tracefs *tracefs)
{
	set(tracefs, "events/twheel/enable", "0");
}

/* Stop tracing, and remove the instance. */
void tracefs_close(struct tracefs *tracefs)
{
	opened = NULL;
	tracefs_stop(tracefs);
	if (tracefs->fd >= 0)
		close(tracefs->fd);
	tracefs->fd = -1;
	if (rmdir(tracefs->directory))
		warn("cannot remove %s", tracefs->directory);
}

/* Handle all whole lines that were read; keep the rest. */
static void handle_lines(struct tracefs *tracefs, void (*handle)(char *line, void *arg),
			 void *arg)
{
	char *begin = tracefs->text, *end;

	while ((end = memchr(begin, '\n', tracefs->text + tracefs->length - begin))) {
		*end = '\0';
		handle(begin, arg);
		begin = end + 1;
	}
	tracefs->length -= begin - tracefs->text;
	/* No line of the kernel's is so long: leave it out. */
	if (tracefs->length == sizeof(tracefs->text))
		tracefs->length = 0;
	memmove(tracefs->text, begin, tracefs->length);
}

/*
 * Read events that there are now.
 *
 * @handle: is called for each line.
 *
 * Return: 0, no more are there; 1, there may be more; or a negative errno after a message.
 */
int tracefs_read(struct tracefs *tracefs, void (*handle)(char *line, void *arg), void *arg)
{
	ssize_t nr = 1;

	for (int i = 0; i < MAX_READS && nr > 0; i++) {
		nr = read(tracefs->fd, tracefs->text + tracefs->length,
			  sizeof(tracefs->text) - tracefs->length);
		if (nr > 0) {
			tracefs->length += nr;
			handle_lines(tracefs, handle, arg);
		}
	}
	if (nr < 0 && errno != EAGAIN && errno != EINTR) {
		nr = -errno;
		warnx("cannot read %s/trace_pipe: %s", tracefs->directory, strerror(-nr));
		return nr;
	}
	return nr > 0;
}

/* --- lines ------------------------------------------------------------------ */

/* These have 64 bits: a double does not hold them. */
static bool is_text(const char *name)
{
	return !strcmp(name, "node") || !strcmp(name, "key") || !strcmp(name, "value") ||
	       !strcmp(name, "kind");
}

/* "1/monotonic" becomes the CPU and the clock. */
static bool add_base(json_t *object, char *text)
{
	char *clock = text, *end;
	const char *cpu = strsep(&clock, "/");

	if (!clock)
		return false;
	json_object_set_new(object, "cpu", json_integer(strtoul(cpu, &end, 10)));
	json_object_set_new(object, "clock", json_string(clock));
	return !*end;
}

static bool add_field(json_t *object, char *field)
{
	char *value = field, *end;
	const char *name = strsep(&value, "=");
	__u64 number;

	if (!value)
		return false;
	if (!strcmp(name, "base"))
		return add_base(object, value);
	if (is_text(name))
		return !json_object_set_new(object, name, json_string(value));
	number = strtoull(value, &end, 10);
	return end != value && !*end && !json_object_set_new(object, name, json_integer(number));
}

/* The time before the colon at @colon: seconds and microseconds. */
static bool take_time(const char *line, const char *colon, __u64 *ns)
{
	unsigned long long seconds, us;

	while (colon > line && (isdigit(colon[-1]) || colon[-1] == '.'))
		colon--;
	if (sscanf(colon, "%llu.%6llu:", &seconds, &us) != 2)
		return false;
	*ns = seconds * NSEC_PER_SEC + us * NSEC_PER_USEC;
	return true;
}

static json_t *lost_json(const char *line)
{
	const char *lost = strstr(line, "[LOST ");
	unsigned long long nr;

	if (!lost || sscanf(lost, "[LOST %llu EVENTS]", &nr) != 1)
		return NULL;
	return json_pack("{s:s, s:I}", "type", "lost", "events", (json_int_t)nr);
}

/*
 * Make an object of a line of the pipe.
 *
 * @line: the line; it is changed.
 * @start_ns: times count from here; what was earlier is at 0.
 *
 * Return: the object, or NULL if the line is no event of the module.
 */
json_t *trace_line_json(char *line, __u64 start_ns)
{
	static const char prefix[] = ": twheel_";
	char *event = strstr(line, prefix), *fields, *field;
	json_t *object;
	__u64 ns;

	if (!event)
		return lost_json(line);
	if (!take_time(line, event, &ns))
		return NULL;
	fields = event + strlen(prefix);
	event = strsep(&fields, ":");
	if (!fields)
		return NULL;
	object = json_pack("{s:s, s:o, s:s}", "type", "event", "at_s",
			   json_seconds(ns > start_ns ? ns - start_ns : 0), "event", event);
	while ((field = strsep(&fields, " "))) {
		if (*field && !add_field(object, field)) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}
