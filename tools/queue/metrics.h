/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /metrics for Prometheus: what the daemon counts, as text over HTTP.
 *
 * It has no thread. The loop of the server polls metrics_fd() beside its other files, and
 * calls metrics_run(): so what is counted needs no lock.
 */
#ifndef TWHEELQ_METRICS_H
#define TWHEELQ_METRICS_H

#include <stdio.h>
#include <stdint.h>

/* Scrapes that are served at a time. More wait for their turn to be accepted. */
#define METRICS_MAX_CONNECTIONS	8

/* A connection that is silent for so long is closed. */
#define METRICS_TIMEOUT_S	10

/* A page that is younger serves again: who asks in a loop does not keep the daemon busy. */
#define METRICS_PAGE_AGE_NS	(100 * 1000 * 1000ULL)

/* What a page is. */
#define METRICS_PAGE_TYPE	"text/plain; version=0.0.4; charset=utf-8"

struct metrics;

/**
 * struct metrics_source - what is counted
 * @write: write the page to @out. Returns 0 or a negative errno: there is no page.
 * @context: for it.
 */
struct metrics_source {
	int (*write)(FILE *out, void *context);
	void *context;
};

/*
 * Listen at @address: "HOST:PORT", "[HOST]:PORT", or ":PORT" and "PORT" for the loopback
 * interface. Returns 0; -EINVAL, it is no address; what bind() says; -ENOMEM.
 */
int metrics_open(struct metrics **metrics, const char *address,
		 const struct metrics_source *source);

void metrics_close(struct metrics *metrics);

/* Where it listens, as "HOST:PORT". */
const char *metrics_address(const struct metrics *metrics);

/* The file to poll for EPOLLIN, level-triggered. */
int metrics_fd(const struct metrics *metrics);

/* In how many ms metrics_run() is to be called although the file is silent; -1: never. */
int metrics_timeout_ms(const struct metrics *metrics);

/* Go on with all connections, as far as they go without waiting. */
void metrics_run(struct metrics *metrics);

#endif /* TWHEELQ_METRICS_H */
