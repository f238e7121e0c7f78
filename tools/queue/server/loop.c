// SPDX-License-Identifier: GPL-2.0
/*
 * The loop of the daemon, which one thread runs.
 *
 * A turn has four steps. epoll makes clients runnable, fires alarms, and accepts clients. Then
 * clients run commands for about a millisecond. Then the queue ends its turn: the changes of
 * all clients are one commit. Then replies are sent, except those that wait for a commit that
 * is not on disk; those that wait for none, such as RESERVED, are sent before the queue ends its
 * turn. The loop sleeps when no step has more to do.
 *
 * Listeners are level-triggered. They are out of epoll while there are max_connections
 * clients, and for ACCEPT_PAUSE_MS when accept() runs out of files or memory.
 *
 * On SIGTERM or SIGINT the listeners close, and no more commands are run. Commands that were
 * run are committed and synced, and their replies are sent, for STOP_MS at most. A second
 * signal ends that too: a reply that was not sent has promised nothing.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/log.h"
#include "common/notify.h"
#include "common/util.h"
#include "queue/jobs/queue.h"
#include "queue/server/loop.h"
#include "queue/server/replies.h"
#include "queue/server/state.h"
#include "queue/store/sync.h"
#include "queue/store/writer.h"

#define MAX_EVENTS		256
/* The clients that one listener accepts in a turn. */
#define MAX_ACCEPTS		64
#define ACCEPT_PAUSE_MS		100
#define STOP_MS			5000
/* While a put or alarms wait for the store, look this often whether they may go on. */
#define STALL_MS		1
/* If the writer does not catch up, the next ones of very many alarms go on after this. */
#define HOLD_MS			200

struct server {
	const struct server_config *config;
	int epoll;
	struct source alarms;
	struct source store;
	struct source signals;
	struct source extra;
	struct clients clients;
	bool alarmed;		/* call queue_alarms() */
	bool more_alarms;	/* some may be left, as the store's writer was behind */
	bool held;		/* so @alarms are out of epoll */
	uint64_t held_ms;	/* since when */
	bool clients_first;	/* clients have their turn before more alarms */
	bool later;		/* the store has commits that are synced later */
	bool accepts;		/* the listeners are in epoll */
	uint64_t accept_ms;	/* when they come back, if files are short */
	struct log_limit say_full;	/* limits a message: too many clients */
	struct log_limit say_failed;	/* limits a message: accept() failed */
	unsigned int nr_stops;	/* SIGTERM and SIGINT that came */
	bool stopping;
	uint64_t stop_ms;	/* the latest end */
};

static uint64_t now_ms(void)
{
	return time_now_ns(CLOCK_MONOTONIC) / NSEC_PER_MSEC;
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

static bool has_all_clients(const struct server *server)
{
	return server->clients.nr >= server->config->max_connections;
}

/* Accept again, if the reason for the pause is gone. */
static void check_accept(struct server *server)
{
	if (server->accepts || server->stopping || has_all_clients(server))
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

	/* The client is gone already, or the network reports an error of it. */
	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return;
	if (log_limit(&server->say_failed))
		log_say(LOG_WARNING, "cannot accept a client: %s; it waits", strerror(error));
	pause_accept(server);
	server->accept_ms = now_ms() + ACCEPT_PAUSE_MS;
}

static void set_tcp_options(int fd)
{
	const int yes = 1;

	/* Send small replies at once; notice a client that is gone without a FIN. */
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
		if (has_all_clients(server)) {
			if (log_limit(&server->say_full))
				log_say(LOG_WARNING, "there are %u clients: more must wait",
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

/* --- other files that are polled ------------------------------------------------------ */

static void alarms_ready(struct source *source, uint32_t events)
{
	(void)events;
	container_of(source, struct server, alarms)->alarmed = true;
}

/* It only wakes the loop: clients_send() asks the store. */
static void store_ready(struct source *source, uint32_t events)
{
	(void)source;
	(void)events;
}

static void run_extra(struct server *server)
{
	const struct server_extra *extra = &server->config->extra;
	int fd;

	extra->run(extra->context);
	fd = server->stopping ? -1 : extra->take_client(extra->context);
	if (fd >= 0)
		add_client(server, fd);
}

static void extra_ready(struct source *source, uint32_t events)
{
	(void)events;
	run_extra(container_of(source, struct server, extra));
}

/* Not called while events are handled: some of them may be of listeners. */
static void server_stop(struct server *server)
{
	log_say(LOG_INFO, "stopping");
	notify("STOPPING=1");
	server->stopping = true;
	server->stop_ms = now_ms() + STOP_MS;
	pause_accept(server);
	listen_close(server->config->listeners);
	clients_stop(&server->clients);
	queue_turn(server->config->protocol->queue);
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
		log_say(LOG_NOTICE, "draining: puts are refused");
		queue_drain(server->config->protocol->queue);
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
	if (server->accept_ms && !has_all_clients(server))
		timeout = sooner(timeout, until_ms(server->accept_ms));
	if (server->stopping)
		timeout = sooner(timeout, until_ms(server->stop_ms));
	if (server->held || clients_stalled(&server->clients))
		timeout = sooner(timeout, STALL_MS);
	if (server->later)
		timeout = sooner(timeout, STORE_LATER_MS);
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
		run_extra(server);
}

static void hold_alarms(struct server *server, bool hold)
{
	struct epoll_event event = {
		.events = hold ? 0 : EPOLLIN,
		.data.ptr = &server->alarms,
	};

	if (hold == server->held)
		return;
	server->held = hold;
	server->held_ms = now_ms();
	epoll_ctl(server->epoll, EPOLL_CTL_MOD, server->alarms.fd, &event);
}

/*
 * Very many alarms at once that have changes, such as ends of times to run, keep the store's writer
 * busy. The next ones wait until it has caught up, as clients with bodies do; and then they and
 * these clients take turns, as either has enough for it to be behind again.
 */
static bool alarms_must_wait(struct server *server)
{
	if (!server->more_alarms || (server->held && now_ms() - server->held_ms >= HOLD_MS))
		return false;
	if (store_writer_is_behind(server->config->store))
		return true;
	server->clients_first = !server->clients_first && clients_stalled(&server->clients);
	return server->clients_first;
}

static void run_alarms(struct server *server)
{
	bool hold = server->alarmed && alarms_must_wait(server);

	hold_alarms(server, hold);
	if (!server->alarmed)
		server->more_alarms = false;
	if (!server->alarmed || hold)
		return;
	server->alarmed = false;
	server->more_alarms = queue_alarms(server->config->protocol->queue);
	clients_send_at_once(&server->clients);
}

/* Returns true if there is more to do at once. */
static bool server_turn(struct server *server)
{
	bool busy;

	run_alarms(server);
	clients_run(&server->clients);
	clients_send_at_once(&server->clients);
	store_sync_waiting(server->config->store, clients_held(&server->clients));
	busy = queue_turn(server->config->protocol->queue);
	server->later = store_sync_later(server->config->store, clients_held(&server->clients));
	clients_send(&server->clients);
	check_accept(server);
	return busy || clients_busy(&server->clients);
}

static bool is_over(const struct server *server)
{
	return server->stopping && (clients_all_sent(&server->clients) ||
				    server->nr_stops > 1 || server->stop_ms <= now_ms());
}

static void server_loop(struct server *server)
{
	bool busy = true;

	while (!is_over(server)) {
		handle_events(server, timeout_ms(server, busy));
		if (server->nr_stops && !server->stopping)
			server_stop(server);
		busy = server_turn(server);
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
	clients_init(&server->clients, &config->clients, config->protocol, config->store);
	error = open_sources(server);
	if (!error) {
		notify("READY=1");
		server_loop(server);
	}
	queue_stop(config->protocol->queue);
	clients_destroy(&server->clients);
	close_sources(server);
	free(server);
	return error;
}
