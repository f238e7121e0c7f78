// SPDX-License-Identifier: GPL-2.0
/* The options of "twheelq serve". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/options.h"
#include "common/address.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/options.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "metrics/http.h"
#include "queue/serve/options.h"
#include "queue/server/clients.h"
#include "queue/store/config.h"
#include "queue/store/record.h"

#define MEMORY_MIN		(32 * MIB)
#define STORE_MEMORY_MIN	(8 * MIB)
/* Memory that no part counts: libraries, stacks, and RocksDB while it merges tables. */
#define UNCOUNTED_MEMORY	(4 * MIB)
#define MAX_JOB_SIZE_MAX	JOB_BODY_MAX

/* --- options that the table has no kind for --------------------------------------------- */

static void parse_sync(struct argp_state *state, char *text, void *values)
{
	struct serve_options *options = values;

	if (!strcmp(text, "always")) {
		options->sync = SYNC_ALWAYS;
	} else if (!strcmp(text, "never")) {
		options->sync = SYNC_NEVER;
	} else {
		options->sync = SYNC_INTERVAL;
		if (!text_duration(text, &options->sync_interval_ns) ||
		    !options->sync_interval_ns)
			argp_error(state, "--sync \"%s\" is not always, never or a time", text);
	}
}

static void parse_socket_mode(struct argp_state *state, char *text, void *values)
{
	struct serve_options *options = values;
	char *end;

	options->socket_mode = strtoul(text, &end, 8);
	if (end == text || *end || strlen(text) > 4 || options->socket_mode > 0777)
		argp_error(state, "--socket-mode \"%s\" is not a mode, such as 0660", text);
}

static void parse_listen(struct argp_state *state, char *text, void *values)
{
	struct serve_options *options = values;
	struct address_option *address;

	if (!*text)
		argp_error(state, "--listen is empty");
	address = malloc(sizeof(*address));
	if (!address) {
		argp_failure(state, EXIT_CANNOT, ENOMEM, "--listen %s", text);
		return;
	}
	address->text = text;
	STAILQ_INSERT_TAIL(&options->listen, address, entry);
}

static void parse_wheel(struct argp_state *state, char *text, void *values)
{
	struct serve_options *options = values;

	options->wheel = alarm_backend_option(state, text);
}

static void parse_token_file(struct argp_state *state, char *text, void *values)
{
	struct serve_options *options = values;
	const char *wrong = guard_read_token(text, options->token);

	if (wrong)
		argp_error(state, "--http-token-file \"%s\": %s", text, wrong);
	options->token_file = text;
}

/* --- the table -------------------------------------------------------------------------- */

#define AT(member)	offsetof(struct serve_options, member)

static const struct option_rule rules[] = {
	{ "dir", 'd', "DIR", "The directory of the jobs (default /var/lib/twheelq)",
	  OPTION_TEXT, AT(dir), 0, 0, NULL },
	{ "listen", 'l', "ADDRESS",
	  "HOST:PORT, [HOST]:PORT or unix:PATH; may be repeated (default 127.0.0.1:11300)",
	  OPTION_OTHER, 0, 0, 0, parse_listen },
	{ "socket-mode", 0, "MODE", "The mode of a unix socket, in octal (default 0660)",
	  OPTION_OTHER, 0, 0, 0, parse_socket_mode },
	{ "sync", 's', "always|DURATION|never",
	  "When to sync changes to the disk (default always: before they are answered)",
	  OPTION_OTHER, 0, 0, 0, parse_sync },
	{ "memory", 'm', "SIZE", "Use at most this much memory (default 256M, at least 32M)",
	  OPTION_SIZE, AT(memory), MEMORY_MIN, INT64_MAX, NULL },
	{ "wheel", 0, "auto|device|process",
	  "Which timing wheel to use (default auto: /dev/twheel if it is there)",
	  OPTION_OTHER, 0, 0, 0, parse_wheel },
	{ "max-connections", 0, "N", "Clients at a time; more have to wait (default 16384)",
	  OPTION_COUNT, AT(max_connections), 1, 1000000, NULL },
	{ "max-jobs", 0, "N", "Jobs and schedules in all (default 0: as many as the disk holds)",
	  OPTION_COUNT, AT(max_jobs), 0, UINT64_MAX, NULL },
	{ "max-tube-jobs", 0, "N", "The same in a tube (default 0: as many as the disk holds)",
	  OPTION_COUNT, AT(max_tube_jobs), 0, UINT64_MAX, NULL },
	{ "max-job-size", 'z', "SIZE", "Bytes of a body (default 65535, at most 1G)",
	  OPTION_SIZE, AT(max_job_size), 1, MAX_JOB_SIZE_MAX, NULL },
	{ "window", 0, "DURATION",
	  "Keep jobs that are due within this time in memory (default 10m)",
	  OPTION_DURATION, AT(window_ns), 1, UINT64_MAX, NULL },
	{ "clock-wait", 0, "DURATION",
	  "Wait so long at the start for a clock that is behind (default 10s)",
	  OPTION_DURATION, AT(clock_wait_ns), 0, UINT64_MAX, NULL },
	{ "http", 0, "ADDRESS",
	  "Serve a page for people, /metrics for Prometheus, and /healthz at HOST:PORT",
	  OPTION_TEXT, AT(metrics), 0, 0, NULL },
	{ "http-token-file", 0, "FILE",
	  "The token in it lets people kick, delete, pause and the like on the page",
	  OPTION_OTHER, 0, 0, 0, parse_token_file },
	{ "http-host", 0, "NAME", "A name under which a proxy serves the page",
	  OPTION_TEXT, AT(http_host), 0, 0, NULL },
	/* Its former name. */
	{ "metrics", 0, "ADDRESS", NULL, OPTION_TEXT, AT(metrics), 0, 0, NULL },
	{ "log-level", 0, "LEVEL", "error, warning, notice, info (default) or debug",
	  OPTION_LOG_LEVEL, AT(log_level), 0, 0, NULL },
	{ "scrub", 0, "DURATION",
	  "How often to read all jobs, to find damage (default 24h; 0: never)",
	  OPTION_DURATION, AT(scrub_interval_ns), 0, UINT64_MAX, NULL },
	{ "repair", 0, NULL, "Start without the jobs that are damaged",
	  OPTION_FLAG, AT(repair), 0, 0, NULL },
	{ "reserve", 0, "SIZE", "Disk space that new jobs leave free, for all other changes",
	  OPTION_SIZE, AT(reserve), 1, INT64_MAX, NULL },
};

static void check_addresses(struct argp_state *state, const struct serve_options *options)
{
	const char *wrong = options->metrics ? metrics_check_address(options->metrics) : NULL;
	const struct address_option *address;

	if (wrong)
		argp_error(state, "--http \"%s\" %s", options->metrics, wrong);
	STAILQ_FOREACH(address, &options->listen, entry) {
		wrong = address_check(address->text);
		if (wrong)
			argp_error(state, "--listen \"%s\" %s", address->text, wrong);
	}
}

/* Limits that depend on other options. */
static void check_options(struct argp_state *state, const void *values)
{
	const struct serve_options *options = values;
	struct memory_split split;

	check_addresses(state, options);
	split_memory(&split, options->memory, options->metrics);
	if (options->max_job_size > clients_max_job_size(split.clients))
		argp_error(state, "--max-job-size %llu is above %llu, the limit with --memory %llu",
			   (unsigned long long)options->max_job_size,
			   (unsigned long long)clients_max_job_size(split.clients),
			   (unsigned long long)options->memory);
	if (options->token_file && !options->metrics)
		argp_error(state, "--http-token-file is for the page of --http, which is missing");
	if (options->http_host && !options->metrics)
		argp_error(state, "--http-host is for the page of --http, which is missing");
	if (options->http_host && !guard_is_name(options->http_host))
		argp_error(state, "--http-host \"%s\" is not a name, such as queue.example.org",
			   options->http_host);
}

/*
 * The store has a quarter, but at least what RocksDB needs. The buffers of clients have an
 * eighth, which is enough for thousands of clients, as idle ones have none. With @page, the page
 * has a sixteenth. Jobs have the rest, less the memory that no part counts.
 */
void split_memory(struct memory_split *split, uint64_t memory, bool page)
{
	split->store = memory / 4 > STORE_MEMORY_MIN ? memory / 4 : STORE_MEMORY_MIN;
	split->clients = memory / 8;
	split->page = page ? memory / 16 : 0;
	split->jobs = memory - split->store - split->clients - split->page - UNCOUNTED_MEMORY;
}

void serve_options_parse(struct serve_options *options, int argc, char **argv)
{
	static const struct option_table table = {
		.rules = rules,
		.nr = ARRAY_SIZE(rules),
		.doc = "Run the queue until SIGTERM or SIGINT. After SIGUSR1 it takes no jobs.",
		.check = check_options,
	};

	*options = (struct serve_options){
		.dir = "/var/lib/twheelq",
		.socket_mode = 0660,
		.sync = SYNC_ALWAYS,
		.memory = 256 * MIB,
		.wheel = ALARM_AUTO,
		.max_connections = 16384,
		.max_job_size = 65535,
		.window_ns = 600 * NSEC_PER_SEC,
		.clock_wait_ns = 10 * NSEC_PER_SEC,
		.scrub_interval_ns = 24 * 3600 * NSEC_PER_SEC,
		.log_level = LOG_INFO,
	};
	STAILQ_INIT(&options->listen);
	options_parse(&table, options, argc, argv);
}
