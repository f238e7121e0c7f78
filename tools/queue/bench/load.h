/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A load for a server that speaks beanstalkd's protocol: one thread, many connections.
 */
#ifndef QUEUE_BENCH_LOAD_H
#define QUEUE_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECOND_NS	1000000000ULL

struct load;
struct client;

enum reply_kind {
	REPLY_INSERTED,
	REPLY_RESERVED,
	REPLY_DELETED,
	REPLY_TIMED_OUT,
	NR_REPLIES
};

/**
 * struct reply - what a server said
 * @kind: which of the replies that a load expects.
 * @id: INSERTED, RESERVED: the job.
 * @body: RESERVED: its body.
 * @len: bytes of that.
 */
struct reply {
	enum reply_kind kind;
	uint64_t id;
	const char *body;
	size_t len;
};

/**
 * struct role - what a client does
 * @fill: send what there is to send, as far as @client has room for it in its pipeline.
 * @reply: a reply came; @fill follows.
 */
struct role {
	void (*fill)(struct client *client);
	void (*reply)(struct client *client, const struct reply *reply);
};

/**
 * struct buffer - bytes that wait
 * @bytes: memory for them.
 * @room: how much there is.
 * @begin: the first one that waits.
 * @end: behind the last one.
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
 * @role: what it does.
 * @fd: its socket.
 * @outstanding: commands without a reply.
 * @out: what the socket has not taken yet.
 * @in: what has not been looked at yet.
 * @waits_for_room: EPOLLOUT is asked for.
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
 * @nr_clients: connections.
 * @depth: how many commands each has without a reply.
 * @jobs: how many jobs in all.
 * @duration_ns: no new jobs later than this; 0: until @jobs are done.
 * @size: bytes of a body.
 * @delay_ms: a job's delay, at least.
 * @delay_max_ms: at most.
 * @milliseconds: delays are sent in ms, else in seconds.
 * @timed: delayed: puts come evenly over @duration_ns, and a body says when it is due.
 * @clients: the connections.
 * @epoll_fd: all of them.
 * @start_ns: when it began, CLOCK_MONOTONIC.
 * @put: puts that were sent.
 * @inserted: and answered.
 * @reserved: jobs that came.
 * @deleted: jobs that are done.
 * @late_ns: of each that came, how long after its time.
 * @early: how many came before.
 */
struct load {
	const char *to;
	uint64_t nr_clients;
	uint64_t depth;
	uint64_t jobs;
	uint64_t duration_ns;
	uint64_t size;
	uint64_t delay_ms;
	uint64_t delay_max_ms;
	bool milliseconds;
	bool timed;
	struct client *clients;
	int epoll_fd;
	uint64_t start_ns;
	uint64_t put;
	uint64_t inserted;
	uint64_t reserved;
	uint64_t deleted;
	uint64_t *late_ns;
	uint64_t early;
};

extern const struct role role_put;
extern const struct role role_work;
extern const struct role role_mixed;
extern const struct role role_wait;

uint64_t now_ns(void);

/* Is the time for new jobs over? */
bool time_is_over(const struct load *load);

/* When the next put of a timed load is due; UINT64_MAX: there is none. */
uint64_t next_put_ns(const struct load *load);

/* wire.c: what goes over the connection. All end the program where something is wrong. */

/* A socket that is connected; -1, with errno: there is nobody. */
int dial(const char *to);
void client_connect(struct client *client, struct load *load, const struct role *role);

/* Room for @len bytes to send; client_sent() says how many were filled. */
char *client_room(struct client *client, size_t len);
void client_sent(struct client *client, size_t len);

/* The socket is ready: send what waits, read replies, and let the role go on. */
void client_turn(struct client *client);

#endif /* QUEUE_BENCH_LOAD_H */
