// SPDX-License-Identifier: GPL-2.0
/* Memory for incomplete bodies, which all clients share. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <syslog.h>

#include "common/log.h"
#include "queue/server/body.h"

/*
 * If memory is short, a client whose body comes more slowly than this, counted from its beginning,
 * loses its memory to others, but not in the first second. So does one whose body is not complete
 * after half a minute.
 */
#define BODY_BYTES_PER_MS	16
#define BODY_YOUNG_NS		NSEC_PER_SEC
#define BODY_WHOLE_NS		(30 * NSEC_PER_SEC)

size_t client_body_memory(uint64_t len)
{
	return sizeof(struct body) + len + CRLF_LEN;
}

void client_body_free(struct client *client)
{
	if (!client->body)
		return;
	TAILQ_REMOVE(&client->clients->begun, client, begun_entry);
	client->clients->bodies -= client_body_memory(client->body->command.body_len);
	free(client->body);
	client->body = NULL;
}

void client_swallow(struct client *client, uint64_t len, const char *reply)
{
	client->state = CLIENT_SWALLOW;
	client->swallow = len;
	client->swallow_reply = reply;
}

/* The daemon may have stood still: what is in the socket has come, too. */
static bool is_slow(const struct client *client, uint64_t age_ns)
{
	uint64_t expected = age_ns / NSEC_PER_MSEC * BODY_BYTES_PER_MS;
	size_t got = client->body->got;
	int unread;

	if (age_ns >= BODY_WHOLE_NS)
		return true;
	return got < expected &&
		(ioctl(client->source.fd, FIONREAD, &unread) || got + (size_t)unread < expected);
}

static bool makes_room(const struct client *client, uint64_t age_ns)
{
	/* The body of a stalled one is complete. */
	return client->state != CLIENT_STALLED && is_slow(client, age_ns);
}

/* What is still to come of it is read, and forgotten. */
static void refuse_body(struct client *client, const struct command *command, size_t got)
{
	peer_lacks_memory(&client->peer, command);
	client_swallow(client, command->body_len + CRLF_LEN - got, "OUT_OF_MEMORY");
}

/* Free the memory of bodies whose clients are too slow, those that began first before others. */
static void free_slow_bodies(struct clients *clients, size_t needed)
{
	uint64_t now = time_now_ns(CLOCK_MONOTONIC), age_ns;
	struct client *client, *next;
	unsigned long times;

	TAILQ_FOREACH_SAFE(client, &clients->begun, begun_entry, next) {
		age_ns = now - client->body->began_ns;
		if (clients->bodies + needed <= clients->max_bodies || age_ns < BODY_YOUNG_NS)
			break;
		if (!makes_room(client, age_ns))
			continue;
		times = log_limit(&clients->say_trickles);
		if (times)
			log_say(LOG_WARNING,
				"memory is short: refused bodies that come slowly: %lu", times);
		refuse_body(client, &client->body->command, client->body->got);
		client_body_free(client);
	}
}

static struct body *body_alloc(struct clients *clients, const struct command *command)
{
	size_t memory = client_body_memory(command->body_len);
	struct body *body;

	if (clients->bodies + memory > clients->max_bodies)
		free_slow_bodies(clients, memory);
	if (clients->bodies + memory > clients->max_bodies)
		return NULL;
	body = malloc(memory);
	if (!body)
		return NULL;
	clients->bodies += memory;
	body->command = *command;
	body->len = command->body_len + CRLF_LEN;
	body->got = 0;
	body->began_ns = time_now_ns(CLOCK_MONOTONIC);
	return body;
}

static bool give_body(struct client *client, const struct command *command)
{
	client->body = body_alloc(client->clients, command);
	if (!client->body)
		return false;
	client->state = CLIENT_BODY;
	TAILQ_INSERT_TAIL(&client->clients->begun, client, begun_entry);
	return true;
}

void client_begin_body(struct client *client, const struct command *command)
{
	if (!give_body(client, command))
		refuse_body(client, command, 0);
}

bool client_keep_body(struct client *client, const struct command *command, const char *data)
{
	struct clients *clients = client->clients;

	/* Others must not lose their bodies for it. */
	if (clients->bodies + client_body_memory(command->body_len) > clients->max_bodies)
		return false;
	if (!give_body(client, command))
		return false;
	client->body->got = client->body->len;
	memcpy(client->body->data, data, client->body->len);
	return true;
}
