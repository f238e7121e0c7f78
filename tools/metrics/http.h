/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /metrics for Prometheus and /healthz over HTTP, and a page for people (site.h).
 *
 * The loop of the program polls metrics_fd() together with its other files and calls
 * metrics_run(), so the counters need no lock. Without a page for people there is no thread.
 */
#ifndef METRICS_HTTP_H
#define METRICS_HTTP_H

#include <stdio.h>
#include <stdint.h>

#include "common/time.h"

/* Connections at a time, 8 KiB each. More wait to be accepted. */
#define METRICS_MAX_CONNECTIONS	64

/* The same with a page for people: its streams, and as many again for all else. */
#define METRICS_MAX_WITH_SITE	192

/* A connection that is silent for this time is closed. */
#define METRICS_TIMEOUT_S	10

/* A page is reused for this time, so that frequent requests do not keep the program busy. */
#define METRICS_PAGE_AGE_NS	(100 * NSEC_PER_MSEC)

/* The Content-Type of a page. */
#define METRICS_PAGE_TYPE	"text/plain; version=0.0.4; charset=utf-8"

struct metrics;
struct site;

/**
 * struct metrics_source - the source of the pages
 * @write: writes the page /metrics to @out. Returns 0 or a negative errno.
 * @health: /healthz: returns NULL if all is well, else a line that says what is not.
 * @context: the argument of both.
 * @site: a page for people; NULL: there is none.
 * @max_connections: fewer connections at a time than the limits above; 0: as many.
 */
struct metrics_source {
	int (*write)(FILE *out, void *context);
	const char *(*health)(void *context);
	void *context;
	const struct site *site;
	unsigned int max_connections;
};

/*
 * Listen at @address: "HOST:PORT", "[HOST]:PORT", or ":PORT" and "PORT" for the loopback
 * interface. Returns 0; -EINVAL, it is not an address; -EADDRNOTAVAIL, its host is not known; the
 * error of bind(); -ENOMEM.
 */
int metrics_open(struct metrics **metrics, const char *address,
		 const struct metrics_source *source);

/* Returns what is wrong with such an address, or NULL. Its host is not looked up. */
const char *metrics_check_address(const char *address);

void metrics_close(struct metrics *metrics);

/* The address that it listens on, as "HOST:PORT". */
const char *metrics_address(const struct metrics *metrics);

/* The file to poll for EPOLLIN, level-triggered. */
int metrics_fd(const struct metrics *metrics);

/* The ms after which to call metrics_run() even if the file is not readable; -1: never. */
int metrics_timeout_ms(const struct metrics *metrics);

/* Serve all connections, without waiting. */
void metrics_run(struct metrics *metrics);

#endif /* METRICS_HTTP_H */
