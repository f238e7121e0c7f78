// SPDX-License-Identifier: GPL-2.0
/* Memory for incomplete bodies, which all clients share. */
#include <stdlib.h>
#include <string.h>

#include "queue/server/body.h"

/* A client that sends nothing for this long loses its memory to others. */
#define BODY_IDLE_NS		(5 * NSEC_PER_SEC)

/* So does one whose body is not complete after this time: it may send a byte now and then. */
#define BODY_WHOLE_NS		(30 * NSEC_PER_SEC)

size_t client_body_memory(uint64_t len)
{
	return sizeof(struct body) + len + CRLF_LEN;
}

void client_body_free(struct client *client)
{
	if (!client->body)
		return;
	TAILQ_REMOVE(&client->clients->filling, client, filling_entry);
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

/* The first client whose body is incomplete, from @client on. */
static struct client *next_filling(struct client *client)
{
	while (client && client->state == CLIENT_STALLED)
		client = TAILQ_NEXT(client, filling_entry);
	return client;
}

static struct client *next_begun(struct client *client)
{
	while (client && client->state == CLIENT_STALLED)
		client = TAILQ_NEXT(client, begun_entry);
	return client;
}

/* A client that has to make room for others; NULL: there is none. */
static struct client *slow_client(struct clients *clients)
{
	uint64_t now = time_now_ns(CLOCK_MONOTONIC);
	struct client *client = next_filling(TAILQ_FIRST(&clients->filling));

	if (client && now - client->body->moved_ns >= BODY_IDLE_NS)
		return client;
	client = next_begun(TAILQ_FIRST(&clients->begun));
	return client && now - client->body->began_ns >= BODY_WHOLE_NS ? client : NULL;
}

/* Free the memory of bodies whose clients are too slow. */
static void free_slow_bodies(struct clients *clients, size_t needed)
{
	struct client *client;

	while (clients->bodies + needed > clients->max_bodies) {
		client = slow_client(clients);
		if (!client)
			return;
		client_swallow(client, client->body->len - client->body->got, "OUT_OF_MEMORY");
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
	body->moved_ns = body->began_ns;
	return body;
}

static bool give_body(struct client *client, const struct command *command)
{
	client->body = body_alloc(client->clients, command);
	if (!client->body)
		return false;
	client->state = CLIENT_BODY;
	TAILQ_INSERT_TAIL(&client->clients->filling, client, filling_entry);
	TAILQ_INSERT_TAIL(&client->clients->begun, client, begun_entry);
	return true;
}

void client_begin_body(struct client *client, const struct command *command)
{
	if (!give_body(client, command))
		client_swallow(client, command->body_len + CRLF_LEN, "OUT_OF_MEMORY");
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
