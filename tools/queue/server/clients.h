/* SPDX-License-Identifier: GPL-2.0 */
/* All clients: their limits, their turns, and their beginning and end. */
#ifndef QUEUE_SERVER_CLIENTS_H
#define QUEUE_SERVER_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct clients;
struct protocol;
struct store;

/**
 * struct clients_config - limits of all clients together
 * @memory: bytes for their buffers.
 * @max_job_size: limit of the bytes of a body.
 */
struct clients_config {
	size_t memory;
	uint32_t max_job_size;
};

void clients_init(struct clients *clients, const struct clients_config *config,
		  struct protocol *protocol, struct store *store);

/* The largest max_job_size for which @memory is enough. */
uint64_t clients_max_job_size(size_t memory);

/*
 * Add a client, which takes over its non-blocking socket. The caller polls its source for
 * EPOLLIN, EPOLLOUT and EPOLLRDHUP, edge-triggered. Returns NULL without memory; the socket is
 * closed then.
 */
struct source *client_create(struct clients *clients, int fd);

/*
 * Run commands of the clients that have some, for about a millisecond; then destroy the
 * clients that are gone. The queue ends the turn after this.
 */
void clients_run(struct clients *clients);

/* Somebody waits for the store to write: look again soon. */
bool clients_stalled(const struct clients *clients);

/* There is more to do now. */
bool clients_busy(const struct clients *clients);

/* No client has anything unsent, whether it waits for the disk or for its socket. */
bool clients_all_sent(const struct clients *clients);

/* Run no more commands; replies are still sent. */
void clients_stop(struct clients *clients);

/* End all clients. */
void clients_destroy(struct clients *clients);

/* --- one client ----------------------------------------------------------------------- */

/* Put a client at the end of the run list, or take it out of it. */
void client_queue_run(struct client *client);
void client_leave_run(struct client *client);

/* Destroy a client at the end of the turn. */
void client_end(struct client *client);

#endif /* QUEUE_SERVER_CLIENTS_H */
