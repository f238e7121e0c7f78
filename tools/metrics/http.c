// SPDX-License-Identifier: GPL-2.0
/*
 * /metrics and /healthz over HTTP, by libmicrohttpd, and the page for people, if there is one.
 *
 *	             below the limit            GET /metrics
 *	(listening) ----------------> connection ------------> page is sent
 *	                                  |                      |
 *	                                  | silent for too long  | complete, or silent
 *	                                  v                      v  for too long
 *	                               (closed) <----------------+
 *
 * The library runs without a thread: its epoll file is readable when a connection can make
 * progress, and metrics_run() then calls it. It never waits. The number of connections, the
 * memory of each, the time that each may be silent, and the number of pages a second are
 * bounded. So slow or many scrapers delay other scrapers, but not the rest of the program.
 *
 * Connections are accepted here and not by the library, because the library would spin while
 * the process is out of file descriptors. Our epoll file holds the library's epoll file and
 * the listening socket. The socket is not polled while there are as many connections as
 * allowed, nor for a moment after accept() has failed.
 *
 * With a page for people (site.h) this is no longer the loop's: a thread of ours runs the library,
 * so that the loop has nothing to do with HTTP. metrics_fd() is then the file of the errands, by
 * which /metrics and /healthz are asked for too.
 *
 * A page has a reference from each connection that it is being sent to, and one from us while
 * it is the latest page; the library counts them.
 */
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/address.h"
#include "common/log.h"
#include "common/time.h"
#include "common/util.h"
#include "metrics/errands.h"
#include "metrics/http.h"
#include "metrics/lane.h"
#include "metrics/site.h"

/* For the headers of a request and of the response. */
#define CONNECTION_MEMORY	((size_t)8192)

/* The port of an address that is only a host. */
#define DEFAULT_PORT		"11380"

/* The time until the next try after accept() has failed. */
#define ACCEPT_AGAIN_MS		100

/* The kernel holds at most about this much for a client of the page that does not read. */
#define SEND_BUFFER		65536

/**
 * struct metrics - the server
 * @daemon: the server of the library.
 * @epoll_fd: holds the epoll file of @daemon, and @listen_fd.
 * @listen_fd: the listening socket.
 * @listening: @listen_fd is polled.
 * @accept_ns: do not accept before this time of CLOCK_MONOTONIC; 0: accept now.
 * @source: the source of the page.
 * @page: the latest page; NULL: none.
 * @page_ns: the time of the latest page, CLOCK_MONOTONIC.
 * @address: the address that it listens on.
 * @max_connections: limit of connections.
 * @site: the page for people, or NULL: there is none, and what follows is unused.
 * @errands: what the threads of the page want of the loop.
 * @thread: runs the library.
 * @runs: it was started.
 * @wake_fd: an eventfd that wakes it.
 * @stop: it is to end.
 */
struct metrics {
	struct MHD_Daemon *daemon;
	int epoll_fd;
	int listen_fd;
	bool listening;
	uint64_t accept_ns;
	struct metrics_source source;
	struct MHD_Response *page;
	uint64_t page_ns;
	char address[ADDRESS_TEXT];
	unsigned int max_connections;
	struct site_server *site;
	struct errands errands;
	pthread_t thread;
	bool runs;
	int wake_fd;
	_Atomic bool stop;
};

/* --- answers -------------------------------------------------------------------------- */

static struct MHD_Response *make_page(struct metrics *metrics)
{
	struct MHD_Response *page;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int err;

	if (!out)
		return NULL;
	err = metrics->source.write(out, metrics->source.context);
	if (fclose(out) || err) {
		free(text);
		return NULL;
	}
	page = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (!page)
		free(text);
	else
		MHD_add_response_header(page, MHD_HTTP_HEADER_CONTENT_TYPE, METRICS_PAGE_TYPE);
	return page;
}

static void replace_page(void *context)
{
	struct metrics *metrics = context;

	metrics->page = make_page(metrics);
}

/* Let the loop do it, which may be the calling thread. */
static void in_loop(struct metrics *metrics, void (*function)(void *context), void *context)
{
	if (metrics->site)
		errands_do(&metrics->errands, function, context);
	else
		function(context);
}

/* Replace the latest page if it is too old. */
static void renew_page(struct metrics *metrics)
{
	uint64_t now_ns = time_now_ns(CLOCK_MONOTONIC);

	if (metrics->page && now_ns - metrics->page_ns < METRICS_PAGE_AGE_NS)
		return;
	if (metrics->page)
		MHD_destroy_response(metrics->page);
	metrics->page = NULL;
	in_loop(metrics, replace_page, metrics);
	metrics->page_ns = now_ns;
}

/* Respond with a line of text. */
static enum MHD_Result say(struct MHD_Connection *connection, unsigned int status,
			   const char *line)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	response = MHD_create_response_from_buffer(strlen(line), (void *)line,
						   MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

/**
 * struct health - the errand that asks for the health
 * @source: whom to ask.
 * @wrong: what is wrong, or "". The program may use its own memory for another text.
 */
struct health {
	const struct metrics_source *source;
	char wrong[512];
};

static void ask_health(void *context)
{
	struct health *health = context;

	const char *wrong = health->source->health(health->source->context);

	snprintf(health->wrong, sizeof(health->wrong), "%s", wrong ? wrong : "");
}

/* A status that is not 200 says that a person should look. */
static enum MHD_Result say_health(struct metrics *metrics,
				  struct MHD_Connection *connection)
{
	struct health health = { .source = &metrics->source, .wrong = "ending\n" };

	in_loop(metrics, ask_health, &health);
	return *health.wrong ? say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, health.wrong) :
		       say(connection, MHD_HTTP_OK, "ok\n");
}

/* The library calls this when it has read the headers of a request. */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection,
			      const char *url, const char *method, const char *version,
			      const char *upload, size_t *upload_len, void **request)
{
	struct metrics *metrics = context;

	(void)version;
	(void)upload;
	if (metrics->site && (*request || site_has(url)))
		return site_request(metrics->site, connection, url, method, upload_len, request);
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
	if (!strcmp(url, "/healthz"))
		return say_health(metrics, connection);
	if (strcmp(url, "/metrics"))
		return say(connection, MHD_HTTP_NOT_FOUND, metrics->site ?
			   "Not found; see /, /metrics and /healthz.\n" :
			   "Not found; see /metrics and /healthz.\n");
	renew_page(metrics);
	if (!metrics->page)
		return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "Cannot write the page.\n");
	return MHD_queue_response(connection, MHD_HTTP_OK, metrics->page);
}

static void request_ended(void *context, struct MHD_Connection *connection, void **request,
			  enum MHD_RequestTerminationCode why)
{
	(void)context;
	(void)connection;
	(void)why;
	site_request_ended(*request);
	*request = NULL;
}

/* --- opening and closing -------------------------------------------------------------- */

static void log_library(void *context, const char *format, va_list args)
{
	char line[256];

	(void)context;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\r\n")] = '\0';
	log_say(LOG_DEBUG, "metrics: %s", line);
}

/* Returns a socket that listens, or a negative errno. */
static int listen_at(struct address *address)
{
	struct sockaddr *name = (struct sockaddr *)&address->socket;
	int on = 1;
	int fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, name, address->len) || listen(fd, METRICS_MAX_CONNECTIONS) ||
	    getsockname(fd, name, &address->len)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static int watch(struct metrics *metrics, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(metrics->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int library_fd(const struct metrics *metrics)
{
	return MHD_get_daemon_info(metrics->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

/* Start the library, without a listening socket of its own. */
static int start(struct metrics *metrics)
{
	unsigned int suspend = metrics->site ? MHD_ALLOW_SUSPEND_RESUME : 0;

	metrics->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
					   MHD_USE_ERROR_LOG | suspend, 0, NULL, NULL, answer,
					   metrics,
		MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,
		MHD_OPTION_NOTIFY_COMPLETED, request_ended, NULL,
		MHD_OPTION_CONNECTION_LIMIT, metrics->max_connections,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)METRICS_TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
		MHD_OPTION_END);
	if (!metrics->daemon)
		return -ENOMEM;
	metrics->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (metrics->epoll_fd >= 0 && !watch(metrics, library_fd(metrics)) &&
	    !watch(metrics, metrics->listen_fd)) {
		metrics->listening = true;
		return 0;
	}
	return -errno;
}

static void run_library(struct metrics *metrics);

static int sooner(int a_ms, int b_ms)
{
	return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static int library_timeout_ms(const struct metrics *metrics);

/* The thread of the page. */
static void *run_thread(void *context)
{
	struct metrics *metrics = context;
	struct pollfd files[] = {
		{ .fd = metrics->epoll_fd, .events = POLLIN },
		{ .fd = metrics->wake_fd, .events = POLLIN },
	};
	uint64_t count;
	int ms;

	lane_be_nice();
	while (!metrics->stop) {
		ms = site_turn(metrics->site);
		run_library(metrics);
		poll(files, ARRAY_SIZE(files), sooner(library_timeout_ms(metrics), ms));
		/* It only wakes. */
		if (files[1].revents && read(metrics->wake_fd, &count, sizeof(count)) < 0)
			continue;
	}
	return NULL;
}

/* Begin with the page: the threads run from now on. */
static int start_site(struct metrics *metrics, const struct site *site, bool local)
{
	int err = errands_init(&metrics->errands);

	if (err)
		return err;
	metrics->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (metrics->wake_fd < 0)
		return -errno;
	site->begin(site->context, &metrics->errands);
	return site_open(&metrics->site, site, local, metrics->wake_fd);
}

static int start_thread(struct metrics *metrics)
{
	int err = -pthread_create(&metrics->thread, NULL, run_thread, metrics);

	metrics->runs = !err;
	return err;
}

static void stop_thread(struct metrics *metrics)
{
	errands_close(&metrics->errands);
	if (!metrics->runs)
		return;
	metrics->stop = true;
	site_wake(metrics->site);
	pthread_join(metrics->thread, NULL);
}

static void free_site(struct metrics *metrics)
{
	if (metrics->site)
		site_free(metrics->site);
	if (metrics->wake_fd >= 0)
		close(metrics->wake_fd);
	errands_destroy(&metrics->errands);
}

static int start_all(struct metrics *metrics, const struct site *site, bool local)
{
	int err = site ? start_site(metrics, site, local) : 0;

	if (!err)
		err = start(metrics);
	if (!err && site)
		err = start_thread(metrics);
	return err;
}

const char *metrics_check_address(const char *text)
{
	return !strncmp(text, "unix:", 5) || address_check(text) ?
		"is not HOST:PORT, [HOST]:PORT, :PORT or PORT" : NULL;
}

int metrics_open(struct metrics **result, const char *text,
		 const struct metrics_source *source)
{
	struct metrics *metrics;
	struct address address;
	int fd, err;

	if (metrics_check_address(text))
		return -EINVAL;
	if (address_parse(&address, text, DEFAULT_PORT))
		return -EADDRNOTAVAIL;
	fd = listen_at(&address);
	if (fd < 0)
		return fd;
	metrics = calloc(1, sizeof(*metrics));
	if (!metrics) {
		close(fd);
		return -ENOMEM;
	}
	metrics->listen_fd = fd;
	metrics->epoll_fd = -1;
	metrics->wake_fd = -1;
	metrics->errands.fd = -1;
	metrics->source = *source;
	metrics->max_connections = source->site ? METRICS_MAX_WITH_SITE : METRICS_MAX_CONNECTIONS;
	if (source->max_connections && source->max_connections < metrics->max_connections)
		metrics->max_connections = source->max_connections;
	address_format(metrics->address, &address);
	err = start_all(metrics, source->site, address_is_local(&address));
	if (err)
		metrics_close(metrics);
	else
		*result = metrics;
	return err;
}

void metrics_close(struct metrics *metrics)
{
	if (metrics->site) {
		stop_thread(metrics);
		site_stop(metrics->site);
	}
	if (metrics->page)
		MHD_destroy_response(metrics->page);
	if (metrics->daemon)
		MHD_stop_daemon(metrics->daemon);
	if (metrics->site)
		free_site(metrics);
	if (metrics->epoll_fd >= 0)
		close(metrics->epoll_fd);
	close(metrics->listen_fd);
	free(metrics);
}

/* --- the loop ------------------------------------------------------------------------- */

const char *metrics_address(const struct metrics *metrics)
{
	return metrics->address;
}

int metrics_fd(const struct metrics *metrics)
{
	return metrics->site ? metrics->errands.fd : metrics->epoll_fd;
}

int metrics_timeout_ms(const struct metrics *metrics)
{
	return metrics->site ? -1 : library_timeout_ms(metrics);
}

static int library_timeout_ms(const struct metrics *metrics)
{
	MHD_UNSIGNED_LONG_LONG ms;
	int timeout_ms = -1;

	if (MHD_get_timeout(metrics->daemon, &ms) == MHD_YES)
		timeout_ms = ms < INT_MAX ? (int)ms : INT_MAX;
	if (metrics->accept_ns && (timeout_ms < 0 || timeout_ms > ACCEPT_AGAIN_MS))
		timeout_ms = ACCEPT_AGAIN_MS;
	return timeout_ms;
}

static bool has_place(const struct metrics *metrics)
{
	return MHD_get_daemon_info(metrics->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		->num_connections < metrics->max_connections;
}

/* Accept one connection. Returns whether there may be more. */
static bool accept_one(struct metrics *metrics)
{
	struct address from = { .len = sizeof(from.socket) };
	struct sockaddr *name = (struct sockaddr *)&from.socket;
	int fd = accept4(metrics->listen_fd, name, &from.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	const int buffer = SEND_BUFFER;

	if (fd >= 0) {
		if (metrics->site)
			setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
		MHD_add_connection(metrics->daemon, fd, name, from.len);
		return true;
	}
	if (errno == ECONNABORTED || errno == EINTR)
		return true;
	if (errno != EAGAIN)
		metrics->accept_ns = time_now_ns(CLOCK_MONOTONIC) + ACCEPT_AGAIN_MS * NSEC_PER_MSEC;
	return false;
}

static void accept_all(struct metrics *metrics)
{
	if (metrics->accept_ns && time_now_ns(CLOCK_MONOTONIC) < metrics->accept_ns)
		return;
	metrics->accept_ns = 0;
	while (has_place(metrics) && accept_one(metrics))
		;
}

/* Poll the listening socket only while a connection could be accepted. */
static void listen_or_not(struct metrics *metrics)
{
	bool listening = !metrics->accept_ns && has_place(metrics);
	struct epoll_event event = { .events = listening ? EPOLLIN : 0 };

	if (listening == metrics->listening)
		return;
	epoll_ctl(metrics->epoll_fd, EPOLL_CTL_MOD, metrics->listen_fd, &event);
	metrics->listening = listening;
}

static void run_library(struct metrics *metrics)
{
	accept_all(metrics);
	MHD_run(metrics->daemon);
	listen_or_not(metrics);
}

void metrics_run(struct metrics *metrics)
{
	if (metrics->site)
		errands_run(&metrics->errands);
	else
		run_library(metrics);
}
