// SPDX-License-Identifier: GPL-2.0
/*
 * Serves the page of metrics over HTTP. The wheels are read for each page: the module may be
 * loaded and unloaded meanwhile.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/util.h"
#include "metrics/http.h"
#include "twheelctl/http.h"
#include "twheelctl/page.h"

/**
 * struct source - where the pages come from
 * @debugfs: the directory of the wheels.
 * @failed: they could not be read, and a message has said why.
 */
struct source {
	const char *debugfs;
	bool failed;
};

/* Read the wheels. A message says why that fails, but not again for each page. */
static bool read_wheels(struct source *source, struct wheels *wheels)
{
	if (source->failed && access(source->debugfs, R_OK | X_OK))
		return false;
	source->failed = wheels_read(wheels, source->debugfs);
	return !source->failed;
}

static int write_page(FILE *out, void *context)
{
	struct wheels wheels;

	if (!read_wheels(context, &wheels)) {
		page_write(out, NULL);
		return 0;
	}
	page_write(out, &wheels);
	wheels_free(&wheels);
	return 0;
}

static const char *health(void *context)
{
	struct wheels wheels;

	if (!read_wheels(context, &wheels))
		return "the wheels of the module cannot be read\n";
	wheels_free(&wheels);
	return NULL;
}

/* The file of the signals that end it. */
static int catch_signals(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (fd < 0)
		err(STATUS_FAILURE, "signalfd");
	return fd;
}

static enum status serve(struct metrics *metrics)
{
	struct pollfd files[] = {
		{ .fd = metrics_fd(metrics), .events = POLLIN },
		{ .fd = catch_signals(), .events = POLLIN },
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
	struct metrics *metrics;
	struct wheels wheels;
	enum status status;
	int ret = metrics_open(&metrics, address, &pages);

	if (ret == -EINVAL) {
		warnx("--http \"%s\" is not HOST:PORT, [HOST]:PORT, :PORT or PORT", address);
		return STATUS_USAGE;
	}
	if (ret) {
		warnx("cannot listen on %s: %s", address, strerror(-ret));
		return STATUS_FAILURE;
	}
	/* What is wrong is said at once, but may be put right later. */
	if (read_wheels(&source, &wheels))
		wheels_free(&wheels);
	status = serve(metrics);
	metrics_close(metrics);
	return status;
}
