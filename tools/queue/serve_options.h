/* SPDX-License-Identifier: GPL-2.0 */
/* What "twheelq serve" is told. */
#ifndef TWHEELQ_SERVE_OPTIONS_H
#define TWHEELQ_SERVE_OPTIONS_H

#include <bsd/sys/queue.h>
#include <sys/types.h>
#include "alarm.h"
#include "store.h"

/* An address to listen on, in the order of the options. */
struct address_option {
	const char *text;
	STAILQ_ENTRY(address_option) entry;
};

STAILQ_HEAD(address_options, address_option);

/**
 * struct serve_options - what was told, or what holds if nothing was
 * @dir: where the jobs are kept.
 * @listen: where to listen.
 * @socket_mode: the mode of unix sockets' files.
 * @sync: when changes are synced.
 * @sync_interval_ns: how often, for SYNC_INTERVAL.
 * @memory: for everything.
 * @make: which wheel.
 * @max_connections: clients at a time.
 * @max_jobs: in all; 0: as many as the disk holds.
 * @max_tube_jobs: in a tube; the same.
 * @max_job_size: bytes of a body.
 * @window_ns: jobs that are due within it are in memory.
 * @metrics: the address for these; NULL: none.
 * @log_level: what is said.
 * @repair: start with a damaged store.
 * @reserve: bytes of the disk; 0: the store knows.
 * @scrub_interval_ns: how often all is read; 0: never.
 */
struct serve_options {
	const char *dir;
	struct address_options listen;
	mode_t socket_mode;
	enum store_sync sync;
	uint64_t sync_interval_ns;
	uint64_t memory;
	enum alarm_make make;
	uint64_t max_connections;
	uint64_t max_jobs;
	uint64_t max_tube_jobs;
	uint64_t max_job_size;
	uint64_t window_ns;
	const char *metrics;
	int log_level;
	bool repair;
	uint64_t reserve;
	uint64_t scrub_interval_ns;
};

/**
 * struct memory_split - who gets how much of --memory
 * @store: buffers and caches of the store.
 * @clients: what is read and not run, and what is not sent.
 * @jobs: jobs that are near or ready.
 */
struct memory_split {
	size_t store;
	size_t clients;
	size_t jobs;
};

void split_memory(struct memory_split *split, uint64_t memory);

/* Exits if an option is wrong, with a message that says which, and what would be right. */
void serve_options_parse(struct serve_options *options, int argc, char **argv);

#endif /* TWHEELQ_SERVE_OPTIONS_H */
