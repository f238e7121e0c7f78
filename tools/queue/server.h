/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loop of the daemon: sockets, alarms, the store and signals.
 */
#ifndef TWHEELQ_SERVER_H
#define TWHEELQ_SERVER_H

#include "client.h"
#include "listen.h"
#include "queue.h"

/**
 * struct server_extra - one more file that the loop polls for EPOLLIN, level-triggered
 * @fd: the file; -1: there is none.
 * @run: called when there is something, and when @timeout_ms says so.
 * @timeout_ms: in how many ms to call it anyway; -1: never.
 * @context: for both.
 */
struct server_extra {
	int fd;
	void (*run)(void *context);
	int (*timeout_ms)(void *context);
	void *context;
};

/**
 * struct server_config - what the loop is for
 * @queue: the queue.
 * @store: its store.
 * @alarms: its alarms.
 * @listeners: where clients come.
 * @clients: limits of theirs.
 * @max_connections: as many of them at a time. More wait to be accepted.
 * @extra: the metrics.
 */
struct server_config {
	struct queue *queue;
	struct store *store;
	struct alarms *alarms;
	struct listeners *listeners;
	struct clients_config clients;
	unsigned int max_connections;
	struct server_extra extra;
};

/*
 * Before any thread is made: SIGTERM, SIGINT and SIGUSR1 are for the loop, and SIGPIPE for
 * nobody.
 */
void server_block_signals(void);

/*
 * Serve until SIGTERM or SIGINT comes; then send what clients were promised, and end them.
 * Returns 0, or a negative errno: the loop could not begin.
 */
int server_run(const struct server_config *config);

#endif /* TWHEELQ_SERVER_H */
