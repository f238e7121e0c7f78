/* SPDX-License-Identifier: GPL-2.0 */
/* The options of "twheelq serve". */
#ifndef QUEUE_SERVE_OPTIONS_H
#define QUEUE_SERVE_OPTIONS_H

#include <bsd/sys/queue.h>
#include <sys/types.h>
#include "alarm/alarm.h"
#include "metrics/guard.h"
#include "queue/store/config.h"

/* An address to listen on, in the order of the options. */
struct address_option {
	const char *text;
	STAILQ_ENTRY(address_option) entry;
};

STAILQ_HEAD(address_options, address_option);

/**
 * struct serve_options - the options, or their defaults
 * @dir: the directory of the jobs.
 * @listen: the addresses to listen on.
 * @socket_mode: the mode of unix sockets.
 * @sync: when changes are synced.
 * @sync_interval_ns: how often, for SYNC_INTERVAL.
 * @memory: limit of all memory.
 * @wheel: where the alarms wait.
 * @max_connections: clients at a time.
 * @max_jobs: jobs in all; 0: as many as the disk holds.
 * @max_tube_jobs: jobs in a tube; 0: as many as the disk holds.
 * @max_job_size: bytes of a body.
 * @window_ns: jobs that are due within this time are in memory.
 * @clock_wait_ns: how long to wait at the start for a wall clock that is behind.
 * @metrics: the address of the page, /metrics and /healthz; NULL: none.
 * @token_file: the file with the token for actions of the page; NULL: it has none.
 * @token: that token.
 * @http_host: one more name of this server in addresses of the page; or NULL.
 * @log_level: the least urgent lines that are logged.
 * @repair: start with a damaged store.
 * @reserve: bytes of the disk that new jobs leave free; 0: the store decides.
 * @scrub_interval_ns: how often all jobs are read; 0: never.
 */
struct serve_options {
	const char *dir;
	struct address_options listen;
	mode_t socket_mode;
	enum store_sync sync;
	uint64_t sync_interval_ns;
	uint64_t memory;
	enum alarm_backend wheel;
	uint64_t max_connections;
	uint64_t max_jobs;
	uint64_t max_tube_jobs;
	uint64_t max_job_size;
	uint64_t window_ns;
	uint64_t clock_wait_ns;
	const char *metrics;
	const char *token_file;
	char token[GUARD_TOKEN_MAX + 1];
	const char *http_host;
	int log_level;
	bool repair;
	uint64_t reserve;
	uint64_t scrub_interval_ns;
};

/**
 * struct memory_split - the parts of --memory
 * @store: buffers and caches of the store.
 * @clients: commands that are read and not run, and replies that are not sent.
 * @page: the last ten minutes of tubes, for the page; 0 without it.
 * @jobs: jobs that are due soon or ready.
 */
struct memory_split {
	size_t store;
	size_t clients;
	size_t page;
	size_t jobs;
};

void split_memory(struct memory_split *split, uint64_t memory, bool page);

/* Ends the program if an option is wrong. */
void serve_options_parse(struct serve_options *options, int argc, char **argv);

#endif /* QUEUE_SERVE_OPTIONS_H */
