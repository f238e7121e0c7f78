/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client, for the files that make up one: client.c reads and runs its commands, and draws
 * its states; client_body.c has memory for bodies; client_output.c sends; clients.c gives
 * all of them their turns.
 */
#ifndef TWHEELQ_CLIENT_PRIVATE_H
#define TWHEELQ_CLIENT_PRIVATE_H

#include <time.h>
#include "client.h"

#define NS_PER_S		1000000000ULL

#define CRLF			"\r\n"
#define CRLF_LEN		2

/* Who has so much to be sent runs no commands. */
#define CLIENT_OUTPUT_MAX	(256 * 1024)

enum client_state {
	CLIENT_LINE,
	CLIENT_SKIP,
	CLIENT_BODY,
	CLIENT_SWALLOW,
	CLIENT_WAIT,
	CLIENT_CLOSING
};

/**
 * struct body - a body that is not whole yet
 * @command: what it is for.
 * @len: its bytes with the \r\n.
 * @got: how many have come.
 * @moved_ns: when the last came.
 * @data: they are here.
 */
struct body {
	struct command command;
	size_t len;
	size_t got;
	uint64_t moved_ns;
	char data[];
};

/**
 * struct client - a connection
 * @source: its socket.
 * @session: what the queue knows of it.
 * @clients: all of them.
 * @state: see client.c.
 * @readable: a read may give something.
 * @writable: a write may take something.
 * @hung_up: the other side sends nothing more, or is gone.
 * @left: its session is destroyed.
 * @dead: it is to be destroyed.
 * @in_run: it is in the run list.
 * @out_list: in which list of output it is, or NULL.
 * @full_ns: since when its socket is full, if that is the list.
 * @nr_commands: what it has run in this turn.
 * @kept: what was read and is not run, NULL if there is nothing.
 * @kept_start: where in it that begins.
 * @kept_len: how much it is.
 * @kept_size: bytes of memory.
 * @body: CLIENT_BODY: what there is of it.
 * @swallow: CLIENT_SWALLOW: how many bytes are to come.
 * @swallow_reply: and what is said then.
 * @output: what is to be sent.
 */
struct client {
	struct source source;
	struct session session;
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
	TAILQ_ENTRY(client) run_entry;	/* also of the dead */
	TAILQ_ENTRY(client) out_entry;
	TAILQ_ENTRY(client) filling_entry;
};

static inline uint64_t client_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Give it a turn, after those that are waiting for theirs; or take it out of that list. */
void client_queue_run(struct client *client);
void client_leave_run(struct client *client);

/* It is to be destroyed at the end of the turn. */
void client_end(struct client *client);

/* --- client.c ------------------------------------------------------------------------ */

/* Its turn. */
void client_run(struct client *client);

/* There is something on its socket. */
void client_ready(struct source *source, uint32_t events);

/* What it has of its session, or asked for, is given back. */
void client_leave(struct client *client);

/* What was read and not run is forgotten. */
void client_forget_kept(struct client *client);

/* --- client_body.c ------------------------------------------------------------------- */

/* Bytes for a body of this length. */
size_t client_body_memory(uint64_t len);

/* A body begins: it gets memory, or is swallowed. */
void client_begin_body(struct client *client, const struct command *command);

/* The memory of its body is given back, if it has one. */
void client_body_free(struct client *client);

/* Throw away the next @len bytes, and say @reply then. */
void client_swallow(struct client *client, uint64_t len, const char *reply);

/* --- client_output.c ----------------------------------------------------------------- */

/* Say something of our own: @line without its end. */
void client_say(struct client *client, const char *line);

/* Put it into the list that its output belongs to, or take it out of any. */
void client_place_output(struct client *client);
void client_leave_out_list(struct client *client);

/* What was to be sent is forgotten. */
void client_forget_output(struct client *client);

#endif /* TWHEELQ_CLIENT_PRIVATE_H */
