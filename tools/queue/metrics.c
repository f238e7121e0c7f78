// SPDX-License-Identifier: GPL-2.0
/*
 * /metrics over HTTP, by libmicrohttpd.
 *
 *	             a place is free            GET /metrics
 *	(listening) ----------------> connection ------------> page is sent
 *	                                  |                      |
 *	                                  | silent for too long  | all of it, or silent
 *	                                  v                      v  for too long
 *	                               (closed) <----------------+
 *
 * The library has no thread here: its epoll file is readable when a connection can go on,
 * and metrics_run() goes on. It never waits. What is bounded is how many connections there
 * are, what each may hold, how long each may be silent, and how often a page is made. So a
 * scraper that is slow, or many of them, cost other scrapers time, but not the clients of
 * the queue.
 *
 * Connections are accepted here and not in the library, which tries in vain again and again
 * while the process has no file left. Our own epoll file has the library's, and the socket
 * that listens; that is not waited for while there is no place for one more connection,
 * or, for a moment, after there was no file for it.
 *
 * A page belongs to those connections that it is being sent to, and to us as long as it is
 * the last one: the library counts the references.
 */
#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "log.h"
#include "metrics.h"

/* For the line and the headers of a request, and those of the answer. */
#define CONNECTION_MEMORY	((size_t)8192)

/* Where there is only a host. */
#define DEFAULT_PORT		"11380"

/* When it is tried again to accept a connection that there was no file for. */
#define ACCEPT_AGAIN_MS		100

/**
 * struct metrics - what listens
 * @daemon: the library's.
 * @epoll_fd: has its epoll file, and @listen_fd.
 * @listen_fd: where connections come from.
 * @listening: @listen_fd is waited for.
 * @accept_ns: not before this time of CLOCK_MONOTONIC.
 * @source: what is counted.
 * @page: the last page, NULL if there was none yet.
 * @page_ns: when it was made, CLOCK_MONOTONIC.
 * @address: where it listens.
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
};

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

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

/* Make the last page anew, if it is not young enough. */
static void renew_page(struct metrics *metrics)
{
	uint64_t now_ns = monotonic_ns();

	if (metrics->page && now_ns - metrics->page_ns < METRICS_PAGE_AGE_NS)
		return;
	if (metrics->page)
		MHD_destroy_response(metrics->page);
	metrics->page = make_page(metrics);
	metrics->page_ns = now_ns;
}

/* An answer that is only a line. */
static enum MHD_Result say(struct MHD_Connection *connection, unsigned int status,
			   const char *line)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	response = MHD_create_response_from_buffer(strlen(line), (void *)line,
						   MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

/* The library calls it when a request has come, before what may follow the headers. */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection,
			      const char *url, const char *method, const char *version,
			      const char *upload, size_t *upload_len, void **request)
{
	struct metrics *metrics = context;

	(void)version;
	(void)upload;
	(void)upload_len;
	(void)request;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "There is only GET.\n");
	if (strcmp(url, "/metrics"))
		return say(connection, MHD_HTTP_NOT_FOUND, "There is only /metrics.\n");
	renew_page(metrics);
	if (!metrics->page)
		return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "There is no memory.\n");
	return MHD_queue_response(connection, MHD_HTTP_OK, metrics->page);
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

/* Start the library, which listens nowhere. */
static int start(struct metrics *metrics)
{
	metrics->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
					   MHD_USE_ERROR_LOG, 0, NULL, NULL, answer, metrics,
		MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)METRICS_MAX_CONNECTIONS,
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

int metrics_open(struct metrics **result, const char *text,
		 const struct metrics_source *source)
{
	struct metrics *metrics;
	struct address address;
	int fd, err;

	if (address_parse(&address, text, DEFAULT_PORT) ||
	    address.socket.ss_family == AF_UNIX)
		return -EINVAL;
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
	metrics->source = *source;
	address_format(metrics->address, &address);
	err = start(metrics);
	if (err)
		metrics_close(metrics);
	else
		*result = metrics;
	return err;
}

void metrics_close(struct metrics *metrics)
{
	if (metrics->page)
		MHD_destroy_response(metrics->page);
	if (metrics->daemon)
		MHD_stop_daemon(metrics->daemon);
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
	return metrics->epoll_fd;
}

int metrics_timeout_ms(const struct metrics *metrics)
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
		->num_connections < METRICS_MAX_CONNECTIONS;
}

/* Accept one connection. Returns whether there may be more. */
static bool accept_one(struct metrics *metrics)
{
	struct address from = { .len = sizeof(from.socket) };
	struct sockaddr *name = (struct sockaddr *)&from.socket;
	int fd = accept4(metrics->listen_fd, name, &from.len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		MHD_add_connection(metrics->daemon, fd, name, from.len);
		return true;
	}
	if (errno == ECONNABORTED || errno == EINTR)
		return true;
	if (errno != EAGAIN)
		metrics->accept_ns = monotonic_ns() + ACCEPT_AGAIN_MS * 1000000ULL;
	return false;
}

static void accept_all(struct metrics *metrics)
{
	if (metrics->accept_ns && monotonic_ns() < metrics->accept_ns)
		return;
	metrics->accept_ns = 0;
	while (has_place(metrics) && accept_one(metrics))
		;
}

/* Wait for connections only while one could be accepted. */
static void listen_or_not(struct metrics *metrics)
{
	bool listening = !metrics->accept_ns && has_place(metrics);
	struct epoll_event event = { .events = listening ? EPOLLIN : 0 };

	if (listening == metrics->listening)
		return;
	epoll_ctl(metrics->epoll_fd, EPOLL_CTL_MOD, metrics->listen_fd, &event);
	metrics->listening = listening;
}

void metrics_run(struct metrics *metrics)
{
	accept_all(metrics);
	MHD_run(metrics->daemon);
	listen_or_not(metrics);
}
