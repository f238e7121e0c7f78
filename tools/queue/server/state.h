/* SPDX-License-Identifier: GPL-2.0 */
/* The structures of the server: a client, and all clients. */
#ifndef QUEUE_SERVER_STATE_H
#define QUEUE_SERVER_STATE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/log.h"
#include "common/time.h"
#include "queue/protocol/peer.h"
#include "queue/server/output.h"
#include "queue/server/source.h"

struct store;

#define CRLF			"\r\n"
#define CRLF_LEN		2

/* A client reads at most this much in a turn; less when input buffers are short of memory. */
#define CLIENT_READ_SIZE	(16 * 1024)

/* client.c draws them. */
enum client_state {
	CLIENT_LINE,
	CLIENT_BODY,
	CLIENT_SWALLOW,
	CLIENT_WAIT,
	CLIENT_STALLED,
	CLIENT_CLOSING
};

/**
 * struct body - a body that is incomplete
 * @command: its command.
 * @len: its bytes with the \r\n.
 * @got: the bytes that have come.
 * @began_ns: when its line came.
 * @data: these bytes.
 */
struct body {
	struct command command;
	size_t len;
	size_t got;
	uint64_t began_ns;
	char data[];
};

TAILQ_HEAD(client_list, client);

/**
 * struct client - a connection
 * @source: its socket.
 * @peer: the protocol's side of it.
 * @clients: all clients.
 * @state: see client.c.
 * @readable: a read may return something.
 * @writable: a write may take something.
 * @hung_up: the other side sends nothing more, or is gone.
 * @left: @peer is destroyed.
 * @dead: the client is to be destroyed.
 * @in_run: it is in the run list.
 * @out_list: the list of outputs that it is in, or NULL.
 * @full_ns: if that list is clients.full: since when its socket is full.
 * @nr_commands: the commands that it has run in this turn.
 * @kept: bytes that were read and not run; NULL: none.
 * @kept_start: where in @kept they begin.
 * @kept_len: their number.
 * @kept_size: bytes of memory of @kept.
 * @body: CLIENT_BODY: the incomplete body; CLIENT_STALLED: a complete one.
 * @swallow: CLIENT_SWALLOW: bytes that are still to be thrown away.
 * @swallow_reply: the reply after them.
 * @output: what is to be sent.
 */
struct client {
	struct source source;
	struct peer peer;
	struct clients *clients;
	enum client_state state;
	bool readable;
	bool writable;
	bool hung_up;
	bool left;
	bool dead;
	bool in_run;
	struct client_list *out_list;
	uint64_t full_ns;
	unsigned int nr_commands;
	char *kept;
	size_t kept_start;
	size_t kept_len;
	size_t kept_size;
	struct body *body;
	uint64_t swallow;
	const char *swallow_reply;
	struct output output;
	TAILQ_ENTRY(client) all_entry;
	TAILQ_ENTRY(client) run_entry;	/* also of clients.dead */
	TAILQ_ENTRY(client) out_entry;
	TAILQ_ENTRY(client) begun_entry;
	TAILQ_ENTRY(client) stalled_entry;
};

/**
 * struct clients - all clients
 * @protocol: runs their commands.
 * @store: tells what is on disk.
 * @synced: the last number that store_synced() has told.
 * @share_end_ns: the turn of a client ends with the first command after this time.
 * @max_job_size: limit of the bytes of a body.
 * @bodies: memory of bodies that are incomplete or wait, and its limit.
 * @inputs: memory of bytes that were read and not run; above its limit less is read.
 * @outputs: memory of unsent bytes. Above the first limit clients with unsent bytes run no
 *	commands; above the second one slow clients are disconnected.
 * @all: every client.
 * @run: clients that may have something to do; they are @nr_run.
 * @sending: clients with something to send, whose socket may take it.
 * @held: clients with something to send that waits for the disk.
 * @full: clients with something to send, whose socket is full; the one whose socket took
 *	something last is at the end.
 * @stalled: clients whose complete body waits for the store; the first one is served first.
 * @begun: clients with a body; the one whose body began last is at the end.
 * @dead: clients that are to be destroyed.
 * @nr: number of clients.
 * @stopping: run no more commands.
 * @say_slow: limits a log message: slow clients were disconnected.
 * @say_trickles: limits a log message: bodies that come slowly were refused.
 * @scratch: the buffer of reads.
 */
struct clients {
	struct protocol *protocol;
	struct store *store;
	uint64_t synced;
	uint64_t share_end_ns;
	uint32_t max_job_size;
	size_t bodies, max_bodies;
	size_t inputs, max_inputs;
	size_t outputs, max_outputs, end_outputs;
	struct client_list all;
	struct client_list run;
	size_t nr_run;
	struct client_list sending;
	struct client_list held;
	struct client_list full;
	struct client_list stalled;
	struct client_list begun;
	struct client_list dead;
	unsigned int nr;
	bool stopping;
	struct log_limit say_slow;
	struct log_limit say_trickles;
	char scratch[CLIENT_READ_SIZE];
};

#endif /* QUEUE_SERVER_STATE_H */
