/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loop of the daemon: sockets, alarms, the store and signals.
 */
#ifndef QUEUE_SERVER_LOOP_H
#define QUEUE_SERVER_LOOP_H

#include "queue/server/clients.h"
#include "queue/server/listen.h"

struct alarms;

/**
 * struct server_extra - another file that the loop polls for EPOLLIN, level-triggered
 * @fd: the file; -1: there is none.
 * @run: called when the file is ready, and after @timeout_ms().
 * @timeout_ms: the ms until @run is called in any case; -1: never.
 * @take_client: called after @run: a non-blocking socket that becomes a client; -1: there is none.
 * @context: argument of both.
 */
struct server_extra {
	int fd;
	void (*run)(void *context);
	int (*timeout_ms)(void *context);
	int (*take_client)(void *context);
	void *context;
};

/**
 * struct server_config - what the loop serves
 * @protocol: runs the commands of clients.
 * @store: the store of its queue.
 * @alarms: the alarms of its queue.
 * @listeners: accept clients.
 * @clients: limits of clients.
 * @max_connections: limit of clients at a time. More clients wait to be accepted.
 * @extra: the metrics.
 */
struct server_config {
	struct protocol *protocol;
	struct store *store;
	struct alarms *alarms;
	struct listeners *listeners;
	struct clients_config clients;
	unsigned int max_connections;
	struct server_extra extra;
};

/*
 * Leave SIGTERM, SIGINT and SIGUSR1 to the loop, and ignore SIGPIPE. Call this before a thread
 * is made.
 */
void server_block_signals(void);

/*
 * Serve clients until SIGTERM or SIGINT comes; then send the replies of commands that were run,
 * and close the connections. Returns 0, or a negative errno: the loop could not begin.
 */
int server_run(const struct server_config *config);

#endif /* QUEUE_SERVER_LOOP_H */
