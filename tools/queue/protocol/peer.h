/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A peer: a client as the protocol sees it. It sends commands, which run.c runs in its
 * session, and gets one reply for each.
 */
#ifndef QUEUE_PROTOCOL_PEER_H
#define QUEUE_PROTOCOL_PEER_H

#include "queue/jobs/session.h"
#include "queue/protocol/parse.h"

struct peer;

/**
 * struct protocol - all peers of a queue
 * @queue: the queue.
 * @commands: how often each command was run.
 */
struct protocol {
	struct queue *queue;
	uint64_t commands[NR_OPS];
};

/**
 * struct peer_ops - the connection of a peer
 * @reply: send @line, a whole line with its \r\n, and if @body is not NULL, @body and \r\n.
 *	Neither this nor a later reply may be sent before store_synced() reaches @seq. All
 *	bytes are copied.
 * @resume: the reply of a command that had to wait was given: run the next command.
 *
 * Neither may destroy the peer, nor call the protocol.
 */
struct peer_ops {
	void (*reply)(struct peer *peer, uint64_t seq, const char *line, const void *body,
		      size_t len);
	void (*resume)(struct peer *peer);
};

/**
 * struct peer - a client
 * @session: its session.
 * @protocol: counts its commands.
 * @ops: its connection.
 */
struct peer {
	struct session session;
	struct protocol *protocol;
	const struct peer_ops *ops;
};

/* Returns 0 or -ENOMEM. */
int peer_init(struct peer *peer, struct protocol *protocol, const struct peer_ops *ops);

/* The client itself has ended its connection: see session_hung_up(). */
void peer_hung_up(struct peer *peer);

/* A command of the client is refused, as there is no memory for its body. */
void peer_lacks_memory(struct peer *peer, const struct command *command);

/* The client is gone. */
void peer_destroy(struct peer *peer);

/* Reply with a line, given without its \r\n. */
void peer_say(struct peer *peer, uint64_t seq, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The reply of a kick: all that was kicked is in the store. */
void peer_say_kicked(struct peer *peer);

#endif /* QUEUE_PROTOCOL_PEER_H */
