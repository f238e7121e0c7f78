/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of the queue's core share: a queue with a store of its own, clients without
 * sockets, and turns of the loop.
 */
#ifndef QUEUE_LIB_H
#define QUEUE_LIB_H

#include "core.h"
#include "harness.h"

#define NR_CLIENTS	8

/* A session as client.c would have it: what was said to it last. */
struct client {
	struct session session;
	char line[256];
	char body[1 << 18];
	size_t len;
	unsigned int replies;
	unsigned int resumed;
	bool gone;
};

extern struct store *store;
extern struct alarms *alarms;
extern struct queue *queue;
extern struct client clients[NR_CLIENTS];
/* The most jobs that were in memory after a turn. */
extern size_t max_seen_resident;

/* --- the daemon's life ------------------------------------------------------------------ */

/* A configuration with room for so many jobs in memory. */
struct queue_config queue_test_config(size_t nr_jobs);

/* Open the test's own store, made if there is none, and all clients. */
void queue_open(const struct queue_config *config);

/* End it; where the daemon is stopped in order, what is reserved is found so later. */
void queue_close(bool in_order);
void queue_reopen(const struct queue_config *config, bool in_order);

/* The end of the test: the store is removed. */
void queue_remove(void);

/* A client goes away. */
void client_leave(unsigned int who);

/* A turn of the loop; true: there is more to do. */
bool turn(void);
void turn_for(uint64_t ns);

/* Turns until there is nothing to do; returns how many. That it does not end is a failure. */
unsigned int settle(void);

/* --- commands ---------------------------------------------------------------------------- */

/* A command that is answered at once: the line, without its end. */
const char *client_run(unsigned int who, const struct command *command, const char *body);

/* One that may wait; true: it was answered. */
bool client_begin(unsigned int who, const struct command *command, const char *body);

const char *client_run_id(unsigned int who, enum command_op op, uint64_t id);
const char *client_run_tube(unsigned int who, enum command_op op, const char *tube);
void client_policy(unsigned int who, const char *tube, uint32_t max_attempts,
		   uint64_t base_ns);
const char *client_release(unsigned int who, uint64_t id, uint32_t pri, uint64_t delay_ns);

/* Each returns the job's id. A body is its id, in digits, and so on. */
uint64_t client_put(unsigned int who, uint32_t pri, uint64_t delay_ns, uint64_t ttr_ns);
uint64_t client_put_at(unsigned int who, uint64_t due_ns);

/* Returns the id of the job that it got; 0: none. */
uint64_t client_reserve(unsigned int who);

/* Begin to wait for a job; it does wait. And what it got since; 0: it still waits. */
void client_wait(unsigned int who, uint64_t timeout_ns);
uint64_t client_got(unsigned int who);

/* A number of stats-job; of the page of list-jobs, the ids, and how many. */
uint64_t client_stat(unsigned int who, uint64_t id, const char *key);
size_t client_list(unsigned int who, const char *tube, enum list_state state, uint64_t after,
		   uint64_t most, uint64_t *ids);

#define ASSERT_SAID(line, expected)						\
	do {									\
		const char *said_ = (line);					\
										\
		if (strcmp(said_, expected))					\
			test_fail(__FILE__, __LINE__, "\"%s\" was said, not \"%s\"", \
				  said_, expected);				\
	} while (0)

/* --- what client.c has for the queue: queue_sessions.h calls these --------------------- */

void client_said(struct session *session, uint64_t seq, const char *line, const void *body,
		 size_t len);
void client_resumed(struct session *session);

#endif /* QUEUE_LIB_H */
