/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clients of the daemon: their connections, and the turns that they get.
 */
#ifndef TWHEELQ_CLIENT_H
#define TWHEELQ_CLIENT_H

#include "output.h"
#include "session.h"
#include "say.h"
#include "source.h"

struct client;
struct store;

TAILQ_HEAD(client_list, client);

/**
 * struct clients_config - limits of all clients together
 * @memory: bytes for their buffers.
 * @max_job_size: bytes of a body.
 */
struct clients_config {
	size_t memory;
	uint32_t max_job_size;
};

/* A client's turn reads so much at most, or less when buffers are short of memory. */
#define CLIENT_READ_SIZE	(16 * 1024)

/**
 * struct clients - all of them
 * @queue: what their sessions are of.
 * @store: tells what is on disk.
 * @synced: up to which number that is, as far as we know.
 * @turn_end_ns: when others than clients have their turn.
 * @max_job_size: bytes of a body.
 * @bodies: memory of bodies that are not whole yet, and how much that may be.
 * @inputs: memory of what was read and not looked at yet; above its limit less is read.
 * @outputs: memory of what was not sent yet, and above what clients that have some
 *	run no commands, and above what slow ones are ended.
 * @all: every client.
 * @run: those that may have something to do.
 * @sending: those that have something to send, and whose socket may take it.
 * @held: those that have something to send which waits for the disk.
 * @full: those that have something to send, and whose socket does not take it; the one that
 *	took something last at the end.
 * @filling: those with a body, the one that got bytes of it last at the end.
 * @dead: those that are to be destroyed.
 * @nr: how many there are.
 * @stopping: no more commands are run.
 * @say_slow: slow clients were disconnected.
 * @scratch: what is read comes here first.
 */
struct clients {
	struct queue *queue;
	struct store *store;
	uint64_t synced;
	uint64_t turn_end_ns;
	uint32_t max_job_size;
	size_t bodies, max_bodies;
	size_t inputs, max_inputs;
	size_t outputs, max_outputs, end_outputs;
	struct client_list all;
	struct client_list run;
	struct client_list sending;
	struct client_list held;
	struct client_list full;
	struct client_list filling;
	struct client_list dead;
	unsigned int nr;
	bool stopping;
	struct say say_slow;
	char scratch[CLIENT_READ_SIZE];
};

void clients_init(struct clients *clients, const struct clients_config *config,
		  struct queue *queue, struct store *store);

/* The largest max_job_size for which @memory is enough. */
uint64_t clients_max_job_size(size_t memory);

/*
 * A new client, whose non-blocking socket is ours from now on. The caller has its source
 * called when there is EPOLLIN, EPOLLOUT or EPOLLRDHUP, edge-triggered. Returns NULL if
 * there is no memory, and has closed the socket.
 */
struct source *client_create(struct clients *clients, int fd);

/*
 * A turn: run commands of those that have some, each some, all for about a millisecond;
 * then destroy those that are gone. After that the queue has its turn.
 */
void clients_run(struct clients *clients);

/* The end of a turn: send what may be sent. */
void clients_send(struct clients *clients);

/* There is more to do at once. */
bool clients_busy(const struct clients *clients);

/* Nothing is to be sent any more, whether it waits for the disk or for the client. */
bool clients_all_sent(const struct clients *clients);

/* Run no more commands: only what is to be sent is sent. */
void clients_stop(struct clients *clients);

/* End all of them. */
void clients_destroy(struct clients *clients);

#endif /* TWHEELQ_CLIENT_H */
