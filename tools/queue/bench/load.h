/* SPDX-License-Identifier: GPL-2.0 */
/* A load for a server with the protocol of beanstalkd: one thread, many connections. */
#ifndef QUEUE_BENCH_LOAD_H
#define QUEUE_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/time.h"

struct load;
struct client;

enum reply_kind {
	REPLY_INSERTED,
	REPLY_RESERVED,
	REPLY_DELETED,
	REPLY_TIMED_OUT,
	REPLY_USING,
	REPLY_WATCHING,
	NR_REPLIES
};

/**
 * struct reply - a reply of the server
 * @kind: its kind.
 * @id: INSERTED, RESERVED: the id of the job.
 * @body: RESERVED: its body.
 * @len: RESERVED: the length of its body.
 */
struct reply {
	enum reply_kind kind;
	uint64_t id;
	const char *body;
	size_t len;
};

/**
 * struct role - the behaviour of a client
 * @fill: send commands, as far as the pipeline of @client has room.
 * @reply: handle a reply; @fill is called after it.
 */
struct role {
	void (*fill)(struct client *client);
	void (*reply)(struct client *client, const struct reply *reply);
};

/**
 * struct buffer - bytes to be sent or to be parsed
 * @bytes: memory for them.
 * @room: its size.
 * @begin: the first byte.
 * @end: behind the last byte.
 */
struct buffer {
	char *bytes;
	size_t room;
	size_t begin;
	size_t end;
};

/**
 * struct client - a connection
 * @load: the load.
 * @role: its behaviour.
 * @fd: its socket.
 * @outstanding: commands without a reply.
 * @out: bytes that the socket has not taken yet.
 * @in: bytes that have not been parsed yet.
 * @waits_for_room: epoll waits for EPOLLOUT.
 * @idle: a worker: there are no more jobs.
 */
struct client {
	struct load *load;
	const struct role *role;
	int fd;
	unsigned int outstanding;
	struct buffer out;
	struct buffer in;
	bool waits_for_room;
	bool idle;
};

/**
 * struct load - the load
 * @to: the server's address, HOST:PORT or unix:PATH.
 * @tube: the tube that is used and watched; NULL: the default one.
 * @nr_clients: number of connections.
 * @depth: limit of the commands without a reply, for each connection.
 * @jobs: number of jobs in all.
 * @duration_ns: no new jobs later than this; 0: until @jobs are done.
 * @size: bytes of a body.
 * @delay_ms: the least delay of a job.
 * @delay_max_ms: the greatest one.
 * @milliseconds: delays are sent in ms, else in seconds.
 * @at: a put tells the time of day at which its job is due: waiting to be put delays nothing.
 * @timed: puts, or questions, are spread evenly over @duration_ns, and a body has the due
 *	time of its job.
 * @clients: the connections.
 * @epoll_fd: polls all of them.
 * @start_ns: the start, CLOCK_MONOTONIC.
 * @put: puts that were sent.
 * @inserted: puts that were confirmed.
 * @reserved: jobs that were reserved.
 * @deleted: jobs that were deleted.
 * @late_ns: the lateness of each reserved job, or of each answer.
 * @by_second: puts confirmed in each second, or NULL.
 * @early: number of jobs that came before their due time.
 */
struct load {
	const char *to;
	const char *tube;
	uint64_t nr_clients;
	uint64_t depth;
	uint64_t jobs;
	uint64_t duration_ns;
	uint64_t size;
	uint64_t delay_ms;
	uint64_t delay_max_ms;
	bool milliseconds;
	bool at;
	bool timed;
	struct client *clients;
	int epoll_fd;
	uint64_t start_ns;
	uint64_t put;
	uint64_t inserted;
	uint64_t reserved;
	uint64_t deleted;
	uint64_t *late_ns;
	uint64_t *by_second;
	uint64_t early;
};

#endif /* QUEUE_BENCH_LOAD_H */
