/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client as the queue knows it: which tube it uses, which it watches, what it has
 * reserved, and whether it waits. What reads and writes its socket is client.c.
 */
#ifndef TWHEELQ_SESSION_H
#define TWHEELQ_SESSION_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include "alarm.h"
#include "command.h"

struct holder;
struct queue;
struct tube;
struct watch;

TAILQ_HEAD(watch_list, watch);

/**
 * struct session - a client of the queue
 * @queue: its queue.
 * @used: the tube for puts.
 * @watches: the tubes it watches, in the order of watch.
 * @nr_watches: how many.
 * @holder: holds what it has reserved.
 * @alarm: while it waits: when that ends, or DEADLINE_SOON is to be said.
 * @id: its number, from 1, never used again.
 * @wait_until_ns: when its wait ends.
 * @kicks_left: how many jobs it still has to kick; 0: it is in no kick.
 * @kicked: how many it has kicked.
 * @kick_from: where the kick goes on.
 * @waiting: it waits in a reserve.
 * @producer: it has put a job.
 * @worker: it has asked for one.
 * @entry: in the list of the queue's sessions.
 * @kicking: in the list of those that are in a kick.
 */
struct session {
	struct queue *queue;
	struct tube *used;
	struct watch_list watches;
	unsigned int nr_watches;
	struct holder *holder;
	struct alarm alarm;
	uint64_t id;
	uint64_t wait_until_ns;
	uint64_t kicks_left;
	uint64_t kicked;
	struct job_place kick_from;
	bool waiting;
	bool producer;
	bool worker;
	LIST_ENTRY(session) entry;
	TAILQ_ENTRY(session) kicking;
};

/* Returns 0 or -ENOMEM. */
int session_init(struct session *session, struct queue *queue);

/* The client is gone: what it has reserved is ready again, a piece at a time. */
void session_destroy(struct session *session);

/*
 * Run a command, with the body that came with it, which stays the caller's. Exactly one
 * reply is given with session_reply(), before this returns true, or later: then it returns
 * false, the session waits, and runs no other command before session_resume(). OP_QUIT is
 * not for here.
 */
bool session_run(struct session *session, const struct command *command,
		 const void *body);

/* --- what client.c has for the queue ------------------------------------------------- */

/*
 * Say something to the client: @line, a whole line with its \r\n, and if @body is not
 * NULL these bytes and \r\n. Nothing of it, nor of what follows, is sent before
 * store_synced() has come to @seq. All is copied.
 */
void session_reply(struct session *session, uint64_t seq, const char *line,
		   const void *body, size_t len);

/* The wait is over, and its reply was given: read on. Never calls back into the queue. */
void session_resume(struct session *session);

#endif /* TWHEELQ_SESSION_H */
