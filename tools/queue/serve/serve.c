// SPDX-License-Identifier: GPL-2.0
/* twheelq serve: open all parts of the daemon, run its loop, and close them. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/util.h"
#include "common/version.h"
#include "metrics/guard.h"
#include "metrics/http.h"
#include "queue/integrity/open.h"
#include "queue/jobs/queue.h"
#include "queue/protocol/peer.h"
#include "queue/serve/options.h"
#include "queue/serve/page.h"
#include "queue/serve/serve.h"
#include "queue/server/listen.h"
#include "queue/server/loop.h"
#include "queue/web/web.h"

/* Files of the process that are not clients: tables of the store, 256, pages' connections, 192. */
#define OTHER_FILES	512
/* With fewer, the store may lack some while it is in use, which ends the daemon. */
#define FILES_LEAST	256

/**
 * struct daemon - the parts, in the order in which they are opened
 * @files: how many files the process may open, if they are few; 0: enough.
 */
struct daemon {
	struct serve_options options;
	struct memory_split memory;
	unsigned int files;
	struct listeners listeners;
	struct store *store;
	struct alarms *alarms;
	struct queue *queue;
	struct protocol protocol;
	struct web *web;
	struct metrics *metrics;
};

/* --- opening: each logs its error, and returns an exit status ------------------------- */

/*
 * Raise RLIMIT_NOFILE. If that is not enough, there are fewer clients; and if it is very low, half
 * of the files are for clients, a fourth for tables of the store, and an eighth for pages.
 */
static int split_files(struct daemon *daemon)
{
	uint64_t *max_connections = &daemon->options.max_connections;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	if (limit.rlim_cur < FILES_LEAST) {
		log_say(LOG_ERR, "the process may open only %llu files: it needs %d",
			(unsigned long long)limit.rlim_cur, FILES_LEAST);
		return EXIT_CANNOT;
	}
	if (limit.rlim_cur < 2 * OTHER_FILES)
		daemon->files = limit.rlim_cur;
	if (*max_connections + OTHER_FILES <= limit.rlim_cur)
		return 0;
	*max_connections = limit.rlim_cur > 2 * OTHER_FILES ?
		limit.rlim_cur - OTHER_FILES : limit.rlim_cur / 2;
	log_say(LOG_WARNING, "at most %llu clients: the process may open only %llu files",
		(unsigned long long)*max_connections, (unsigned long long)limit.rlim_cur);
	return 0;
}

static int open_listener(struct daemon *daemon, const char *text)
{
	const char *wrong = listen_open(&daemon->listeners, text, daemon->options.socket_mode);

	if (!wrong)
		return 0;
	log_say(LOG_ERR, "cannot listen on \"%s\": %s", text, wrong);
	return EXIT_CANNOT;
}

/* The sockets of systemd and the addresses of --listen; without either, the default one. */
static int open_listeners(struct daemon *daemon)
{
	const char *wrong = listen_inherit(&daemon->listeners);
	struct address_option *address;
	int status = 0;

	if (wrong) {
		log_say(LOG_ERR, "a file of LISTEN_FDS %s", wrong);
		return EXIT_CANNOT;
	}
	STAILQ_FOREACH(address, &daemon->options.listen, entry) {
		status = open_listener(daemon, address->text);
		if (status)
			return status;
	}
	if (TAILQ_EMPTY(&daemon->listeners))
		status = open_listener(daemon, ADDRESS_DEFAULT);
	return status;
}

/*
 * A repair may take long, and the loop, which handles these signals, does not run yet. A
 * repair that is ended by one begins again at the next start.
 */
static void *await_signal(void *context)
{
	const sigset_t *signals = context;
	int number;

	sigwait(signals, &number);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	log_say(LOG_ERR, "stopped during the repair: start with --repair again");
	signal(number, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, signals, NULL);
	raise(number);
	return NULL;
}

static int open_with_repair(struct daemon *daemon, const struct store_config *config)
{
	pthread_t thread;
	sigset_t signals;
	int error;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	error = -pthread_create(&thread, NULL, await_signal, &signals);
	if (error)
		return error;
	error = store_open(&daemon->store, config);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	return error;
}

static int open_store(struct daemon *daemon)
{
	const struct serve_options *options = &daemon->options;
	const struct store_config config = {
		.dir = options->dir,
		.create = true,
		.repair = options->repair,
		.sync = options->sync,
		.sync_interval_ns = options->sync_interval_ns,
		.memory = daemon->memory.store,
		.reserve = options->reserve,
		.open_tables = daemon->files / 4,
		.scrub_interval_ns = options->scrub_interval_ns,
		.log = log_say,
	};
	int error = options->repair ? open_with_repair(daemon, &config) :
				      store_open(&daemon->store, &config);

	return error ? store_cannot_open(options->dir, error) : 0;
}

static int open_alarms(struct daemon *daemon)
{
	int error = alarms_open(&daemon->alarms, daemon->options.wheel);

	if (!error)
		return 0;
	log_say(LOG_ERR, "cannot open the timing wheel%s: %s",
		daemon->options.wheel == ALARM_DEVICE ? " of /dev/twheel" : "", strerror(-error));
	return EXIT_CANNOT;
}

static int open_queue(struct daemon *daemon)
{
	const struct serve_options *options = &daemon->options;
	const struct queue_config config = {
		.memory = daemon->memory.jobs,
		.max_jobs = options->max_jobs,
		.max_tube_jobs = options->max_tube_jobs,
		.max_job_size = options->max_job_size,
		.window_ns = options->window_ns,
		.clock_wait_ns = options->clock_wait_ns,
		.sync = options->sync,
		.sync_interval_ns = options->sync_interval_ns,
	};
	int error = queue_create(&daemon->queue, &config, daemon->store, daemon->alarms);

	daemon->protocol.queue = daemon->queue;
	if (!error)
		return 0;
	log_say(LOG_ERR, "cannot read the jobs of %s: %s%s", options->dir, strerror(-error),
		error == -ENOMEM ? "; is --memory more than there is?" : "");
	return store_status(error);
}

static int write_metrics(FILE *out, void *context)
{
	struct daemon *daemon = context;

	return metrics_page_write(out, &daemon->protocol, daemon->store, daemon->alarms);
}

static const char *check_health(void *context)
{
	struct daemon *daemon = context;

	return metrics_health(daemon->queue, daemon->store);
}

static int open_page(struct daemon *daemon)
{
	const struct serve_options *options = &daemon->options;
	const struct web_config config = {
		.queue = daemon->queue,
		.store = daemon->store,
		.memory = daemon->memory.page,
		.token = *options->token ? options->token : NULL,
		.host = options->http_host,
		.health = check_health,
		.context = daemon,
	};

	if (options->token_file && guard_others_may_read(options->token_file))
		log_say(LOG_WARNING, "all users can read the token in %s", options->token_file);
	daemon->web = web_create(&config);
	return daemon->web ? 0 : -ENOMEM;
}

static int open_metrics(struct daemon *daemon)
{
	struct metrics_source source = {
		.write = write_metrics, .health = check_health, .context = daemon,
		.max_connections = daemon->files / 8,
	};
	const char *address = daemon->options.metrics;
	int error;

	if (!address)
		return 0;
	error = open_page(daemon);
	if (!error) {
		source.site = web_site(daemon->web);
		error = metrics_open(&daemon->metrics, address, &source);
	}
	if (!error)
		return 0;
	if (error == -EADDRINUSE) {
		log_say(LOG_WARNING, "no metrics: %s is in use", address);
		return 0;
	}
	log_say(LOG_ERR, "cannot listen on \"%s\" for metrics: %s", address, strerror(-error));
	return EXIT_CANNOT;
}

static int open_all(struct daemon *daemon)
{
	static int (*const opens[])(struct daemon *daemon) = {
		open_listeners, open_store, open_alarms, open_queue, open_metrics,
	};
	int status = 0;
	size_t i;

	for (i = 0; !status && i < ARRAY_SIZE(opens); i++)
		status = opens[i](daemon);
	return status;
}

/* Close the parts that are open, the last opened first. */
static void close_all(struct daemon *daemon)
{
	if (daemon->metrics)
		metrics_close(daemon->metrics);
	if (daemon->web)
		web_destroy(daemon->web);
	if (daemon->queue)
		queue_destroy(daemon->queue);
	if (daemon->alarms)
		alarms_close(daemon->alarms);
	if (daemon->store)
		store_close(daemon->store);
	listen_close(&daemon->listeners);
}

/* --- running -------------------------------------------------------------------------- */

static const char *sync_text(const struct serve_options *options, char *text, size_t size)
{
	switch (options->sync) {
	case SYNC_ALWAYS:
		return "always";
	case SYNC_NEVER:
		return "never";
	default:
		snprintf(text, size, "every %g ms", (double)options->sync_interval_ns / 1e6);
		return text;
	}
}

static void say_page(const struct daemon *daemon)
{
	const char *address = metrics_address(daemon->metrics);

	log_say(LOG_INFO, "metrics on %s", address);
	log_say(LOG_INFO, "page for people at http://%s/%s", address,
		daemon->options.token_file ? "" : ", to read only: there is no --http-token-file");
}

static void say_start(const struct daemon *daemon)
{
	const struct serve_options *options = &daemon->options;
	struct listener *listener;
	char text[32];

	log_say(LOG_INFO, "twheelq " TWHEEL_VERSION ", jobs in %s, wheel: %s, sync: %s",
		options->dir, alarms_name(daemon->alarms), sync_text(options, text, sizeof(text)));
	TAILQ_FOREACH(listener, &daemon->listeners, entry) {
		log_say(LOG_INFO, "listening on %s", listener->name);
		if (!listener->is_local)
			log_say(LOG_WARNING,
				"other machines can connect to %s, without a password or encryption; for certificates see TLS in twheelq(8)",
				listener->name);
	}
	if (daemon->metrics)
		say_page(daemon);
}

static void run_metrics(void *context)
{
	struct daemon *daemon = context;

	metrics_run(daemon->metrics);
}

static int metrics_timeout(void *context)
{
	struct daemon *daemon = context;

	return metrics_timeout_ms(daemon->metrics);
}

static int take_client(void *context)
{
	struct daemon *daemon = context;

	return web_take_client(daemon->web);
}

static int run_daemon(struct daemon *daemon)
{
	struct metrics *metrics = daemon->metrics;
	const struct server_config config = {
		.protocol = &daemon->protocol,
		.store = daemon->store,
		.alarms = daemon->alarms,
		.listeners = &daemon->listeners,
		.clients = {
			.memory = daemon->memory.clients,
			.max_job_size = daemon->options.max_job_size,
		},
		.max_connections = daemon->options.max_connections,
		.extra = {
			.fd = metrics ? metrics_fd(metrics) : -1,
			.run = run_metrics,
			.timeout_ms = metrics_timeout,
			.take_client = take_client,
			.context = daemon,
		},
	};
	int error;

	say_start(daemon);
	error = server_run(&config);
	if (!error)
		return 0;
	log_say(LOG_ERR, "cannot poll: %s", strerror(-error));
	return EXIT_CANNOT;
}

int serve_main(int argc, char **argv)
{
	struct daemon daemon = { .listeners = TAILQ_HEAD_INITIALIZER(daemon.listeners) };
	int status;

	serve_options_parse(&daemon.options, argc, argv);
	log_set_level(daemon.options.log_level);
	split_memory(&daemon.memory, daemon.options.memory, daemon.options.metrics);
	server_block_signals();
	status = split_files(&daemon);
	if (!status)
		status = open_all(&daemon);
	if (!status)
		status = run_daemon(&daemon);
	close_all(&daemon);
	return status;
}
