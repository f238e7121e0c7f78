// SPDX-License-Identifier: GPL-2.0
/*
 * The loop of the daemon, which one thread runs.
 *
 * A turn is: what epoll has to say, which makes clients runnable, fires alarms, accepts
 * clients; then clients run commands for about a millisecond; then the queue ends its turn,
 * by which the changes of all of them are one commit; then replies are sent that wait for
 * nothing, or for a commit that is on disk by now. The loop sleeps when none of these has
 * more to do.
 *
 * A listener is level-triggered and out of epoll while accept pauses: when there are
 * max_connections clients, until one is gone; and when accept() says that files or memory
 * are short, for ACCEPT_PAUSE_MS.
 *
 * SIGTERM or SIGINT: the listeners close, and no command is run any more. What was run is
 * committed and synced, and its replies are sent, for STOP_MS at most. A second one of these
 * signals ends that too. What is not sent then was not promised.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "notify.h"
#include "server.h"

#define MAX_EVENTS		256
/* So many clients are accepted in a turn from one listener. */
#define MAX_ACCEPTS		64
#define ACCEPT_PAUSE_MS		100
#define STOP_MS			5000

struct server {
	const struct server_config *config;
	int epoll;
	struct source alarms;
	struct source store;
	struct source signals;
	struct source extra;
	struct clients clients;
	bool alarmed;		/* queue_alarms() is to be called */
	bool accepts;		/* the listeners are in epoll */
	uint64_t accept_ms;	/* when they come back, where files are short */
	struct say say_full;	/* there were too many clients */
	struct say say_failed;	/* accept() failed */
	unsigned int nr_stops;	/* signals that told to stop */
	bool stopping;
	uint64_t stop_ms;	/* when stopping ends anyway */
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

static int poll_source(struct server *server, struct source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, source->fd, &event) ? -errno : 0;
}

/* --- accepting ----------------------------------------------------------------------- */

static void pause_accept(struct server *server)
{
	struct listener *listener;

	if (!server->accepts)
		return;
	server->accepts = false;
	TAILQ_FOREACH(listener, server->config->listeners, entry)
		epoll_ctl(server->epoll, EPOLL_CTL_DEL, listener->source.fd, NULL);
}

static int resume_accept(struct server *server)
{
	struct listener *listener;
	int error;

	server->accepts = true;
	server->accept_ms = 0;
	TAILQ_FOREACH(listener, server->config->listeners, entry) {
		error = poll_source(server, &listener->source, EPOLLIN);
		if (error)
			return error;
	}
	return 0;
}

static bool is_full(const struct server *server)
{
	return server->clients.nr >= server->config->max_connections;
}

/* May listeners come back? */
static void look_at_accept(struct server *server)
{
	if (server->accepts || server->stopping || is_full(server))
		return;
	if (server->accept_ms > now_ms())
		return;
	/* It can fail only for lack of memory: try again. */
	if (resume_accept(server)) {
		pause_accept(server);
		server->accept_ms = now_ms() + ACCEPT_PAUSE_MS;
	}
}

static void accept_failed(struct server *server)
{
	int error = errno;

	/* The client is gone already, or the network has something to say of it. */
	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return;
	if (say_now(&server->say_failed))
		log_say(LOG_WARNING, "cannot accept a client: %s; it waits", strerror(error));
	pause_accept(server);
	server->accept_ms = now_ms() + ACCEPT_PAUSE_MS;
}

static void set_tcp_options(int fd)
{
	const int yes = 1;

	/* Replies are small and wait for nothing; who is gone without a word is noticed. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
}

static void add_client(struct server *server, int fd)
{
	struct source *source = client_create(&server->clients, fd);

	if (!source) {
		log_say(LOG_WARNING, "a client is disconnected: no memory for it");
		return;
	}
	if (poll_source(server, source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)) {
		log_say(LOG_WARNING, "a client is disconnected: epoll: %m");
		source->ready(source, EPOLLERR);
	}
}

static void listener_ready(struct source *source, uint32_t events)
{
	struct listener *listener = container_of(source, struct listener, source);
	struct server *server = listener->server;
	int fd, n;

	(void)events;
	for (n = 0; n < MAX_ACCEPTS && server->accepts; n++) {
		if (is_full(server)) {
			if (say_now(&server->say_full))
				log_say(LOG_WARNING, "there are %u clients: more have to wait",
					server->clients.nr);
			pause_accept(server);
			return;
		}
		fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0) {
			accept_failed(server);
			continue;
		}
		if (listener->is_tcp)
			set_tcp_options(fd);
		add_client(server, fd);
	}
}

/* --- what else is polled -------------------------------------------------------------- */

static void alarms_ready(struct source *source, uint32_t events)
{
	(void)events;
	container_of(source, struct server, alarms)->alarmed = true;
}

/* clients_send() asks the store anyway. */
static void store_ready(struct source *source, uint32_t events)
{
	(void)source;
	(void)events;
}

static void extra_ready(struct source *source, uint32_t events)
{
	const struct server_extra *extra =
		&container_of(source, struct server, extra)->config->extra;

	(void)events;
	extra->run(extra->context);
}

/* Not called among events, which may be of listeners. */
static void stop(struct server *server)
{
	log_say(LOG_INFO, "stopping");
	notify("STOPPING=1");
	server->stopping = true;
	server->stop_ms = now_ms() + STOP_MS;
	pause_accept(server);
	listen_close(server->config->listeners);
	clients_stop(&server->clients);
	queue_turn(server->config->queue);
	store_flush(server->config->store);
}

static void signals_ready(struct source *source, uint32_t events)
{
	struct server *server = container_of(source, struct server, signals);
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1) {
		log_say(LOG_NOTICE, "draining: no more jobs are taken");
		queue_drain(server->config->queue);
	} else {
		server->nr_stops++;
	}
}

static void loop_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGUSR1);
}

void server_block_signals(void)
{
	sigset_t signals;

	loop_signals(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* --- the loop ------------------------------------------------------------------------ */

static int sooner(int a_ms, int b_ms)
{
	if (a_ms < 0 || b_ms < 0)
		return a_ms < 0 ? b_ms : a_ms;
	return a_ms < b_ms ? a_ms : b_ms;
}

static int until_ms(uint64_t time_ms)
{
	uint64_t now = now_ms();

	return time_ms > now ? (int)(time_ms - now) : 0;
}

static int timeout_ms(const struct server *server, bool busy)
{
	const struct server_extra *extra = &server->config->extra;
	int timeout = -1;

	if (busy)
		return 0;
	if (extra->fd >= 0)
		timeout = extra->timeout_ms(extra->context);
	if (server->accept_ms && !is_full(server))
		timeout = sooner(timeout, until_ms(server->accept_ms));
	if (server->stopping)
		timeout = sooner(timeout, until_ms(server->stop_ms));
	return timeout;
}

static void handle_events(struct server *server, int timeout)
{
	const struct server_extra *extra = &server->config->extra;
	struct epoll_event events[MAX_EVENTS];
	int nr = epoll_wait(server->epoll, events, MAX_EVENTS, timeout);
	struct source *source;
	int i;

	for (i = 0; i < nr; i++) {
		source = events[i].data.ptr;
		source->ready(source, events[i].events);
	}
	if (extra->fd >= 0 && !extra->timeout_ms(extra->context))
		extra->run(extra->context);
}

/* Returns true if there is more to do at once. */
static bool turn(struct server *server)
{
	bool busy;

	if (server->alarmed) {
		server->alarmed = false;
		queue_alarms(server->config->queue);
	}
	clients_run(&server->clients);
	busy = queue_turn(server->config->queue);
	clients_send(&server->clients);
	look_at_accept(server);
	return busy || clients_busy(&server->clients);
}

static bool is_over(const struct server *server)
{
	return server->stopping && (clients_all_sent(&server->clients) ||
				    server->nr_stops > 1 || server->stop_ms <= now_ms());
}

static void loop(struct server *server)
{
	bool busy = true;

	while (!is_over(server)) {
		handle_events(server, timeout_ms(server, busy));
		if (server->nr_stops && !server->stopping)
			stop(server);
		busy = turn(server);
	}
}

/* --- beginning and end --------------------------------------------------------------- */

static int poll_all(struct server *server)
{
	int error;

	error = poll_source(server, &server->alarms, EPOLLIN);
	if (!error)
		error = poll_source(server, &server->store, EPOLLIN | EPOLLET);
	if (!error)
		error = poll_source(server, &server->signals, EPOLLIN);
	if (!error && server->extra.fd >= 0)
		error = poll_source(server, &server->extra, EPOLLIN);
	if (!error)
		error = resume_accept(server);
	return error;
}

static int open_sources(struct server *server)
{
	const struct server_config *config = server->config;
	struct listener *listener;
	sigset_t signals;

	loop_signals(&signals);
	server->signals = (struct source){ -1, signals_ready };
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0)
		return -errno;
	server->signals.fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (server->signals.fd < 0)
		return -errno;
	server->alarms = (struct source){ alarms_fd(config->alarms), alarms_ready };
	server->store = (struct source){ store_fd(config->store), store_ready };
	server->extra = (struct source){ config->extra.fd, extra_ready };
	TAILQ_FOREACH(listener, config->listeners, entry) {
		listener->server = server;
		listener->source.ready = listener_ready;
	}
	return poll_all(server);
}

static void close_sources(struct server *server)
{
	if (server->signals.fd >= 0)
		close(server->signals.fd);
	if (server->epoll >= 0)
		close(server->epoll);
}

int server_run(const struct server_config *config)
{
	struct server *server = calloc(1, sizeof(*server));
	int error;

	if (!server)
		return -ENOMEM;
	server->config = config;
	clients_init(&server->clients, &config->clients, config->queue, config->store);
	error = open_sources(server);
	if (!error) {
		notify("READY=1");
		loop(server);
	}
	queue_stop(config->queue);
	clients_destroy(&server->clients);
	close_sources(server);
	free(server);
	return error;
}
