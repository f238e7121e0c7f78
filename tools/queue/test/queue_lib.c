// SPDX-License-Identifier: GPL-2.0
/* For the tests of the queue's core. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/test/queue_lib.h"
#include "queue/test/store_lib.h"

struct store *store;
struct alarms *alarms;
struct queue *queue;
struct protocol protocol;
struct client clients[NR_CLIENTS];
size_t max_seen_resident;

static void client_said(struct peer *peer, uint64_t seq, const char *line, const void *body,
			size_t len)
{
	struct client *client = container_of(peer, struct client, peer);

	ASSERT(seq <= store_seq(store));
	snprintf(client->line, sizeof(client->line), "%.*s", (int)strcspn(line, "\r"), line);
	client->len = 0;
	if (body) {
		client->len = len < sizeof(client->body) ? len : sizeof(client->body) - 1;
		memcpy(client->body, body, client->len);
	}
	client->body[client->len] = 0;
	client->replies++;
}

/* A wait ends after its reply, and once. */
static void client_resumed(struct peer *peer)
{
	struct client *client = container_of(peer, struct client, peer);

	client->resumed++;
	ASSERT_EQ(client->replies, 1);
	ASSERT_EQ(client->resumed, 1);
}

static const struct peer_ops client_ops = {
	.reply = client_said,
	.resume = client_resumed,
};

/* --- the daemon's life ------------------------------------------------------------------ */

struct queue_config queue_test_config(size_t nr_jobs)
{
	/* Three quarters of the memory are for jobs. */
	return (struct queue_config){
		.memory = (nr_jobs + 1) * 4 / 3 * (sizeof(struct job) + sizeof(void *)),
		.max_job_size = 65535,
		.window_ns = 100 * NSEC_PER_SEC,
	};
}

void queue_open(const struct queue_config *config)
{
	struct store_config store_config = {
		.dir = test_dir(), .create = true, .sync = SYNC_NEVER, .memory = 8 << 20,
		.reserve = 16 << 20, .log = log_say,
	};
	unsigned int i;

	ASSERT_EQ(store_open(&store, &store_config), 0);
	ASSERT_EQ(alarms_open(&alarms, ALARM_PROCESS), 0);
	ASSERT_EQ(queue_create(&queue, config, store, alarms), 0);
	protocol.queue = queue;
	for (i = 0; i < NR_CLIENTS; i++) {
		ASSERT_EQ(peer_init(&clients[i].peer, &protocol, &client_ops), 0);
		clients[i].gone = false;
	}
}

void client_leave(unsigned int who)
{
	peer_destroy(&clients[who].peer);
	clients[who].gone = true;
}

void client_hang_up(unsigned int who)
{
	peer_hung_up(&clients[who].peer);
	client_leave(who);
}

void queue_close(bool in_order)
{
	unsigned int i;

	if (in_order)
		queue_stop(queue);
	for (i = 0; i < NR_CLIENTS; i++)
		if (!clients[i].gone)
			client_leave(i);
	queue_destroy(queue);
	alarms_close(alarms);
	store_close(store);
}

void queue_reopen(const struct queue_config *config, bool in_order)
{
	queue_close(in_order);
	queue_open(config);
}

void queue_remove(void)
{
	queue_close(true);
	remove_tree(test_dir());
}

bool turn(void)
{
	struct pollfd ready = { .fd = alarms_fd(alarms), .events = POLLIN };
	bool more;

	if (poll(&ready, 1, 0) > 0)
		queue_alarms(queue);
	more = queue_turn(queue);
	if (queue->nr_resident > max_seen_resident)
		max_seen_resident = queue->nr_resident;
	return more;
}

void turn_for(uint64_t ns)
{
	uint64_t end_ns = alarms_now_ns(ALARM_BOOT) + ns;

	do {
		turn();
		usleep(200);
	} while (alarms_now_ns(ALARM_BOOT) < end_ns);
	/* The last sleep may have been long. */
	turn();
}

/* An alarm that a turn arms for a past time fires in the next turn. */
unsigned int settle(void)
{
	unsigned int turns = 0, quiet = 0;

	for (; quiet < 2; turns++) {
		quiet = turn() ? 0 : quiet + 1;
		if (turns > 2000)
			test_fail(__FILE__, __LINE__, "turns do not end: %zu jobs in memory",
				  queue->nr_resident);
	}
	return turns;
}

/* --- commands ---------------------------------------------------------------------------- */

bool client_begin(unsigned int who, const struct command *command, const char *body)
{
	struct client *client = &clients[who];
	bool said;

	client->replies = 0;
	client->resumed = 0;
	said = peer_run(&client->peer, command, body);
	/* It may have begun to wait and been served at once. */
	ASSERT_EQ(client->replies, said || client->resumed);
	return said || client->resumed;
}

const char *client_run(unsigned int who, const struct command *command, const char *body)
{
	ASSERT(client_begin(who, command, body));
	ASSERT_EQ(clients[who].resumed, 0);
	return clients[who].line;
}

const char *client_run_id(unsigned int who, enum command_op op, uint64_t id)
{
	struct command command = { .op = op, .id = id };

	return client_run(who, &command, NULL);
}

const char *client_run_tube(unsigned int who, enum command_op op, const char *tube)
{
	struct command command = { .op = op };

	strcpy(command.tube, tube);
	return client_run(who, &command, NULL);
}

void client_policy(unsigned int who, const char *tube, uint32_t max_attempts,
		   uint64_t base_ns)
{
	struct command command = {
		.op = OP_POLICY,
		.policy = {
			.max_attempts = max_attempts, .base_ns = base_ns, .cap_ns = base_ns,
			.factor = 1,
		},
	};

	strcpy(command.tube, tube);
	ASSERT_SAID(client_run(who, &command, NULL), "POLICY");
}

const char *client_release(unsigned int who, uint64_t id, uint32_t pri, uint64_t delay_ns)
{
	struct command command = { .op = OP_RELEASE, .id = id, .pri = pri,
				   .delay_ns = delay_ns };

	return client_run(who, &command, NULL);
}

static uint64_t put(unsigned int who, struct command *command)
{
	unsigned long long id;
	char body[32];

	snprintf(body, sizeof(body), "%llu", (unsigned long long)queue->next_id);
	command->has_body = true;
	command->body_len = strlen(body);
	if (sscanf(client_run(who, command, body), "INSERTED %llu", &id) != 1)
		test_fail(__FILE__, __LINE__, "%s", clients[who].line);
	return id;
}

uint64_t client_put(unsigned int who, uint32_t pri, uint64_t delay_ns, uint64_t ttr_ns)
{
	struct command command = { .op = OP_PUT, .pri = pri, .delay_ns = delay_ns,
				   .ttr_ns = ttr_ns };

	return put(who, &command);
}

uint64_t client_put_at(unsigned int who, uint64_t due_ns)
{
	struct command command = { .op = OP_PUT_AT, .due_ns = due_ns,
				   .ttr_ns = 1000 * NSEC_PER_SEC };

	return put(who, &command);
}

uint64_t client_got(unsigned int who)
{
	unsigned long long id;

	if (!clients[who].replies ||
	    sscanf(clients[who].line, "RESERVED %llu", &id) != 1)
		return 0;
	ASSERT_EQ(strtoull(clients[who].body, NULL, 10), id);
	return id;
}

uint64_t client_reserve(unsigned int who)
{
	struct command command = { .op = OP_RESERVE_WITH_TIMEOUT };

	client_run(who, &command, NULL);
	return client_got(who);
}

void client_wait(unsigned int who, uint64_t timeout_ns)
{
	struct command command = { .op = OP_RESERVE_WITH_TIMEOUT, .delay_ns = timeout_ns };

	ASSERT(!client_begin(who, &command, NULL));
}

uint64_t client_stat(unsigned int who, uint64_t id, const char *key)
{
	char pattern[64];
	char *at;

	ASSERT(!strncmp(client_run_id(who, OP_STATS_JOB, id), "OK ", 3));
	snprintf(pattern, sizeof(pattern), "\n%s: ", key);
	at = strstr(clients[who].body, pattern);
	ASSERT(at);
	return strtoull(at + strlen(pattern), NULL, 10);
}

size_t client_list(unsigned int who, const char *tube, enum list_state state, uint64_t after,
		   uint64_t most, uint64_t *ids)
{
	struct command command = { .op = OP_LIST_JOBS, .state = state, .id = after,
				   .count = most };
	size_t nr = 0;
	char *line;

	strcpy(command.tube, tube);
	ASSERT(!strncmp(client_run(who, &command, NULL), "OK ", 3));
	ASSERT_LT(clients[who].len, sizeof(clients[who].body) - 1);
	for (line = strchr(clients[who].body, '\n'); line && line[1];
	     line = strchr(line + 1, '\n'))
		if (strncmp(line + 1, "next", 4))
			ids[nr++] = strtoull(line + 1, NULL, 10);
	return nr;
}
