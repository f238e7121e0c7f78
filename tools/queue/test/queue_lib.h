/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For the tests of the queue's core: a queue with a store of its own, clients without sockets,
 * and turns of the loop.
 */
#ifndef QUEUE_TEST_QUEUE_LIB_H
#define QUEUE_TEST_QUEUE_LIB_H

#include "common/util.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/tube.h"
#include "queue/protocol/run.h"
#include "test/device/harness.h"

#define NR_CLIENTS	8

/* A client, and the last reply to it. */
struct client {
	struct peer peer;
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
extern struct protocol protocol;
extern struct client clients[NR_CLIENTS];
/* The most jobs that were in memory after a turn. */
extern size_t max_seen_resident;

/* --- the daemon's life ------------------------------------------------------------------ */

/* A configuration with room for @nr_jobs in memory. */
struct queue_config queue_test_config(size_t nr_jobs);

/* Open the store of the test, made if there is none, and all clients. */
void queue_open(const struct queue_config *config);

/* Close it; @in_order: as the daemon does, so the next start finds reserved jobs reserved. */
void queue_close(bool in_order);
void queue_reopen(const struct queue_config *config, bool in_order);

/* The end of the test: remove the store. */
void queue_remove(void);

/* A client disconnects. */
void client_leave(unsigned int who);

/* Its client ends the connection. */
void client_hang_up(unsigned int who);

/* A turn of the loop; true: more work is left. */
bool turn(void);
void turn_for(uint64_t ns);

/* Turns until there is nothing to do; returns their number. More than 2000 are a failure. */
unsigned int settle(void);

/* --- commands ---------------------------------------------------------------------------- */

/* Run a command that is answered at once; returns the line, without its end. */
const char *client_run(unsigned int who, const struct command *command, const char *body);

/* Run a command that may wait; true: it was answered. */
bool client_begin(unsigned int who, const struct command *command, const char *body);

const char *client_run_id(unsigned int who, enum command_op op, uint64_t id);
const char *client_run_tube(unsigned int who, enum command_op op, const char *tube);
void client_policy(unsigned int who, const char *tube, uint32_t max_attempts,
		   uint64_t base_ns);
const char *client_release(unsigned int who, uint64_t id, uint32_t pri, uint64_t delay_ns);

/* Each returns the id of the job. Its body is this id, in digits. */
uint64_t client_put(unsigned int who, uint32_t pri, uint64_t delay_ns, uint64_t ttr_ns);
uint64_t client_put_at(unsigned int who, uint64_t due_ns);

/* Reserve a job without waiting; returns its id, or 0. */
uint64_t client_reserve(unsigned int who);

/* Begin to wait for a job; then the id of the job that it got, or 0: it still waits. */
void client_wait(unsigned int who, uint64_t timeout_ns);
uint64_t client_got(unsigned int who);

/* A number of stats-job; and the ids of a page of list-jobs, and their number. */
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

#endif /* QUEUE_TEST_QUEUE_LIB_H */
