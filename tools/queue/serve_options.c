// SPDX-License-Identifier: GPL-2.0
/* The options of "twheelq serve". */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "log.h"
#include "arguments.h"
#include "serve_options.h"
#include "subcommand.h"
#include "util.h"

#define NS_PER_S		1000000000ULL

#define MEMORY_MIN		(32 * MIB)
#define STORE_MEMORY_MIN	(8 * MIB)
/* What is counted nowhere: libraries, stacks, and RocksDB while it merges tables. */
#define UNCOUNTED_MEMORY	(4 * MIB)
#define MAX_JOB_SIZE_MAX	GIB

enum option_key {
	OPTION_DIR = 'd',
	OPTION_LISTEN = 'l',
	OPTION_MAX_JOB_SIZE = 'z',
	OPTION_SYNC = 's',
	OPTION_MEMORY = 'm',
	OPTION_SOCKET_MODE = 256,
	OPTION_WHEEL,
	OPTION_MAX_CONNECTIONS,
	OPTION_MAX_JOBS,
	OPTION_MAX_TUBE_JOBS,
	OPTION_WINDOW,
	OPTION_METRICS,
	OPTION_LOG_LEVEL,
	OPTION_REPAIR,
	OPTION_RESERVE,
	OPTION_SCRUB,
};

static const struct argp_option argp_options[] = {
	{ "dir", OPTION_DIR, "DIR", 0, "Where the jobs are kept (default /var/lib/twheelq)", 0 },
	{ "listen", OPTION_LISTEN, "ADDRESS", 0,
	  "HOST:PORT, [HOST]:PORT or unix:PATH; may be repeated (default 127.0.0.1:11300)", 0 },
	{ "socket-mode", OPTION_SOCKET_MODE, "MODE", 0,
	  "Who may use a unix socket, in octal (default 0660)", 0 },
	{ "sync", OPTION_SYNC, "always|DURATION|never", 0,
	  "When changes are forced to the disk (default always: before they are answered)", 0 },
	{ "memory", OPTION_MEMORY, "SIZE", 0,
	  "What it takes at most (default 256M, at least 32M)", 0 },
	{ "wheel", OPTION_WHEEL, "auto|device|process", 0,
	  "Which timing wheel (default auto: /dev/twheel if it is there)", 0 },
	{ "max-connections", OPTION_MAX_CONNECTIONS, "N", 0,
	  "Clients at a time; more wait (default 16384)", 0 },
	{ "max-jobs", OPTION_MAX_JOBS, "N", 0,
	  "Jobs in all (default 0: as many as the disk holds)", 0 },
	{ "max-tube-jobs", OPTION_MAX_TUBE_JOBS, "N", 0, "Jobs in a tube (default 0)", 0 },
	{ "max-job-size", OPTION_MAX_JOB_SIZE, "SIZE", 0,
	  "Bytes of a body (default 65535, at most 1G)", 0 },
	{ "window", OPTION_WINDOW, "DURATION", 0,
	  "Jobs that are due within it are kept in memory (default 10m)", 0 },
	{ "metrics", OPTION_METRICS, "ADDRESS", 0, "Where Prometheus finds /metrics", 0 },
	{ "log-level", OPTION_LOG_LEVEL, "LEVEL", 0,
	  "error, warning, notice, info (default) or debug", 0 },
	{ "scrub", OPTION_SCRUB, "DURATION", 0,
	  "How often all jobs are read, to find damage (default 24h)", 0 },
	{ "repair", OPTION_REPAIR, NULL, 0, "Start without the jobs that are damaged", 0 },
	{ "reserve", OPTION_RESERVE, "SIZE", 0,
	  "What is kept free of the disk, for all but new jobs", 0 },
	{ 0 }
};

static void take_sync(struct argp_state *state, const char *arg, struct serve_options *options)
{
	if (!strcmp(arg, "always")) {
		options->sync = SYNC_ALWAYS;
	} else if (!strcmp(arg, "never")) {
		options->sync = SYNC_NEVER;
	} else {
		options->sync = SYNC_INTERVAL;
		if (!command_duration(arg, &options->sync_interval_ns) ||
		    !options->sync_interval_ns)
			argp_error(state, "--sync \"%s\" is not always, never or a time",
				   arg);
	}
}

static void take_scrub(struct argp_state *state, const char *arg, struct serve_options *options)
{
	if (!command_duration(arg, &options->scrub_interval_ns))
		argp_error(state, "--scrub \"%s\" is no time, such as 24h, or 0", arg);
}

static void take_mode(struct argp_state *state, const char *arg, struct serve_options *options)
{
	char *end;

	options->socket_mode = strtoul(arg, &end, 8);
	if (end == arg || *end || strlen(arg) > 4 || options->socket_mode > 0777)
		argp_error(state, "--socket-mode \"%s\" is no mode, such as 0660", arg);
}

static void take_listen(struct argp_state *state, const char *arg, struct serve_options *options)
{
	struct address_option *address = malloc(sizeof(*address));

	if (!address) {
		argp_failure(state, EXIT_CANNOT, ENOMEM, "--listen %s", arg);
		return;
	}
	address->text = arg;
	STAILQ_INSERT_TAIL(&options->listen, address, entry);
}

/* Options that hold each other's limits. */
static void look_at_all(struct argp_state *state, const struct serve_options *options)
{
	struct memory_split split;

	split_memory(&split, options->memory);
	if (options->max_job_size > clients_max_job_size(split.clients))
		argp_error(state, "--max-job-size %llu is above %llu: all of --memory is %llu",
			   (unsigned long long)options->max_job_size,
			   (unsigned long long)clients_max_job_size(split.clients),
			   (unsigned long long)options->memory);
}

static error_t parse_limit(int key, const char *arg, struct argp_state *state)
{
	struct serve_options *options = state->input;

	switch (key) {
	case OPTION_MEMORY:
		take_size(state, "memory", arg, MEMORY_MIN, INT64_MAX, &options->memory);
		return 0;
	case OPTION_MAX_CONNECTIONS:
		take_count(state, "max-connections", arg, 1, 1000000, &options->max_connections);
		return 0;
	case OPTION_MAX_JOBS:
		take_count(state, "max-jobs", arg, 0, UINT64_MAX, &options->max_jobs);
		return 0;
	case OPTION_MAX_TUBE_JOBS:
		take_count(state, "max-tube-jobs", arg, 0, UINT64_MAX, &options->max_tube_jobs);
		return 0;
	case OPTION_MAX_JOB_SIZE:
		take_size(state, "max-job-size", arg, 1, MAX_JOB_SIZE_MAX,
			  &options->max_job_size);
		return 0;
	case OPTION_RESERVE:
		take_size(state, "reserve", arg, 1, INT64_MAX, &options->reserve);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_manner(int key, char *arg, struct argp_state *state)
{
	struct serve_options *options = state->input;

	switch (key) {
	case OPTION_DIR:
		options->dir = arg;
		return 0;
	case OPTION_LISTEN:
		take_listen(state, arg, options);
		return 0;
	case OPTION_SOCKET_MODE:
		take_mode(state, arg, options);
		return 0;
	case OPTION_SYNC:
		take_sync(state, arg, options);
		return 0;
	case OPTION_WHEEL:
		options->make = take_wheel(state, arg);
		return 0;
	case OPTION_WINDOW:
		take_duration(state, "window", arg, &options->window_ns);
		return 0;
	case OPTION_METRICS:
		options->metrics = arg;
		return 0;
	case OPTION_LOG_LEVEL:
		options->log_level = take_log_level(state, arg);
		return 0;
	case OPTION_REPAIR:
		options->repair = true;
		return 0;
	case OPTION_SCRUB:
		take_scrub(state, arg, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is no option", arg);
		return 0;
	case ARGP_KEY_END:
		look_at_all(state, state->input);
		return 0;
	default:
		if (!parse_limit(key, arg, state))
			return 0;
		return parse_manner(key, arg, state);
	}
}

/*
 * The store has a quarter, but what RocksDB cannot do without; clients' buffers an eighth,
 * which is for thousands of clients enough, as idle ones have none; jobs have the rest, but
 * for what nobody counts.
 */
void split_memory(struct memory_split *split, uint64_t memory)
{
	split->store = memory / 4 > STORE_MEMORY_MIN ? memory / 4 : STORE_MEMORY_MIN;
	split->clients = memory / 8;
	split->jobs = memory - split->store - split->clients - UNCOUNTED_MEMORY;
}

void serve_options_parse(struct serve_options *options, int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options,
		.parser = parse,
		.doc = "Be the queue: until SIGTERM or SIGINT. SIGUSR1: take no more jobs.",
	};

	*options = (struct serve_options){
		.dir = "/var/lib/twheelq",
		.socket_mode = 0660,
		.sync = SYNC_ALWAYS,
		.memory = 256 * MIB,
		.make = ALARM_AUTO,
		.max_connections = 16384,
		.max_job_size = 65535,
		.window_ns = 600 * NS_PER_S,
		.scrub_interval_ns = 24 * 3600 * NS_PER_S,
		.log_level = LOG_INFO,
	};
	STAILQ_INIT(&options->listen);
	argp_err_exit_status = EXIT_CANNOT;
	argp_parse(&argp, argc, argv, 0, NULL, options);
}
