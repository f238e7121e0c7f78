// SPDX-License-Identifier: GPL-2.0
/*
 * Serves the page of metrics over HTTP. The module may be loaded and unloaded meanwhile: the
 * wheels are read for each request, but at most once in METRICS_PAGE_AGE_NS.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/signals.h"
#include "common/time.h"
#include "common/util.h"
#include "metrics/http.h"
#include "twheelctl/http.h"
#include "twheelctl/page.h"

/**
 * struct source - where the pages come from
 * @debugfs: the directory of the wheels.
 * @read_ns: when they were last read, CLOCK_MONOTONIC.
 * @wheels: the wheels, as they were then.
 * @failure: why they could not be read, or NULL.
 */
struct source {
	const char *debugfs;
	uint64_t read_ns;
	struct wheels wheels;
	char *failure;
};

/* A failure is reported once, and then that it is over. */
static void report(const char *before, const char *now)
{
	if (now && (!before || strcmp(before, now)))
		warnx("%s", now);
	else if (before && !now)
		warnx("the wheels can be read again");
}

static void read_wheels(struct source *source)
{
	char *failure = NULL;

	wheels_free(&source->wheels);
	wheels_try_read(&source->wheels, source->debugfs, &failure);
	report(source->failure, failure);
	free(source->failure);
	source->failure = failure;
	source->read_ns = time_now_ns(CLOCK_MONOTONIC);
}

/*
 * The wheels, or NULL if they cannot be read. To read a wheel is to take its lock, so that
 * frequent requests get the same wheels for a moment.
 */
static const struct wheels *recent_wheels(struct source *source)
{
	if (time_now_ns(CLOCK_MONOTONIC) - source->read_ns >= METRICS_PAGE_AGE_NS)
		read_wheels(source);
	return source->failure ? NULL : &source->wheels;
}

static int write_page(FILE *out, void *context)
{
	page_write(out, recent_wheels(context));
	return 0;
}

static const char *health(void *context)
{
	return recent_wheels(context) ? NULL : "the wheels of the module cannot be read\n";
}

static enum status serve(struct metrics *metrics)
{
	struct pollfd files[] = {
		{ .fd = metrics_fd(metrics), .events = POLLIN },
		{ .fd = signals_open(), .events = POLLIN },
	};

	warnx("metrics on http://%s/metrics", metrics_address(metrics));
	while (!files[1].revents) {
		if (poll(files, ARRAY_SIZE(files), metrics_timeout_ms(metrics)) < 0 &&
		    errno != EINTR) {
			warn("poll");
			return STATUS_FAILURE;
		}
		metrics_run(metrics);
	}
	return STATUS_OK;
}

enum status http_serve(const char *address, const char *debugfs)
{
	struct source source = { .debugfs = debugfs };
	const struct metrics_source pages = {
		.write = write_page,
		.health = health,
		.context = &source,
	};
	const char *wrong = metrics_check_address(address);
	struct metrics *metrics;
	enum status status;
	int err;

	if (wrong) {
		warnx("--http \"%s\" %s", address, wrong);
		return STATUS_USAGE;
	}
	err = metrics_open(&metrics, address, &pages);
	if (err) {
		warnx("cannot listen on %s: %s", address, strerror(-err));
		return STATUS_FAILURE;
	}
	/* Report a failure at start, but serve: the module may be loaded later. */
	read_wheels(&source);
	status = serve(metrics);
	metrics_close(metrics);
	wheels_free(&source.wheels);
	free(source.failure);
	return status;
}
