// SPDX-License-Identifier: GPL-2.0
/* All clients: their turns, and their beginning and end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/server/body.h"
#include "queue/server/client.h"
#include "queue/server/clients.h"
#include "queue/server/replies.h"
#include "queue/server/state.h"
#include "queue/store/writer.h"

/* The clients' part of a turn ends with the first command after this time. */
#define TURN_NS			1000000ULL
/* The clients in the run list share this time: one waits about so long for its next turn. */
#define ROUND_NS		20000000ULL

void client_queue_run(struct client *client)
{
	if (client->in_run || client->dead)
		return;
	client->in_run = true;
	TAILQ_INSERT_TAIL(&client->clients->run, client, run_entry);
	client->clients->nr_run++;
}

void client_leave_run(struct client *client)
{
	if (!client->in_run)
		return;
	client->in_run = false;
	TAILQ_REMOVE(&client->clients->run, client, run_entry);
	client->clients->nr_run--;
}

void client_end(struct client *client)
{
	if (client->dead)
		return;
	client_leave_run(client);
	client_leave_out_list(client);
	client_leave_stalled(client);
	client->dead = true;
	TAILQ_INSERT_TAIL(&client->clients->dead, client, run_entry);
}

struct source *client_create(struct clients *clients, int fd)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client || peer_init(&client->peer, clients->protocol, &client_ops)) {
		free(client);
		close(fd);
		return NULL;
	}
	client->source = (struct source){ .fd = fd, .ready = client_ready };
	client->clients = clients;
	client->writable = true;
	clients->nr++;
	TAILQ_INSERT_TAIL(&clients->all, client, all_entry);
	return &client->source;
}

static void client_destroy(struct client *client)
{
	struct clients *clients = client->clients;

	client_leave(client);
	client_leave_run(client);
	client_leave_out_list(client);
	client_body_free(client);
	client_forget_kept(client);
	client_forget_output(client);
	clients->nr--;
	TAILQ_REMOVE(&clients->all, client, all_entry);
	close(client->source.fd);
	free(client);
}

void clients_init(struct clients *clients, const struct clients_config *config,
		  struct protocol *protocol, struct store *store)
{
	memset(clients, 0, sizeof(*clients));
	clients->protocol = protocol;
	clients->store = store;
	clients->max_job_size = config->max_job_size;
	clients->max_bodies = config->memory / 2;
	clients->max_inputs = config->memory / 8;
	clients->max_outputs = config->memory / 8;
	clients->end_outputs = config->memory / 4;
	TAILQ_INIT(&clients->all);
	TAILQ_INIT(&clients->run);
	TAILQ_INIT(&clients->sending);
	TAILQ_INIT(&clients->held);
	TAILQ_INIT(&clients->full);
	TAILQ_INIT(&clients->stalled);
	TAILQ_INIT(&clients->begun);
	TAILQ_INIT(&clients->dead);
}

uint64_t clients_max_job_size(size_t memory)
{
	return memory / 2 > client_body_memory(0) ? memory / 2 - client_body_memory(0) : 0;
}

/* The jobs of a client may go to others, whose connection may fail: then they are dead too. */
static void bury_dead(struct clients *clients)
{
	struct client *client;

	while ((client = TAILQ_FIRST(&clients->dead))) {
		TAILQ_REMOVE(&clients->dead, client, run_entry);
		client_destroy(client);
	}
}

static void end_stalls(struct clients *clients)
{
	struct client *client;

	while ((client = TAILQ_FIRST(&clients->stalled)) && !clients->stopping &&
	       !store_writer_is_behind(clients->store))
		client_go_on(client);
}

bool clients_stalled(const struct clients *clients)
{
	return !TAILQ_EMPTY(&clients->stalled) && !clients->stopping;
}

void clients_run(struct clients *clients)
{
	struct client *last = TAILQ_LAST(&clients->run, client_list);
	uint64_t now_ns, end_ns;
	struct client *client;

	end_stalls(clients);
	now_ns = time_now_ns(CLOCK_MONOTONIC);
	end_ns = now_ns + TURN_NS;
	while ((client = TAILQ_FIRST(&clients->run))) {
		clients->share_end_ns = now_ns + ROUND_NS / clients->nr_run;
		if (clients->share_end_ns > end_ns)
			clients->share_end_ns = end_ns;
		client_leave_run(client);
		client_run(client);
		now_ns = time_now_ns(CLOCK_MONOTONIC);
		if (client == last || now_ns >= end_ns)
			break;
	}
	bury_dead(clients);
}

bool clients_busy(const struct clients *clients)
{
	return !TAILQ_EMPTY(&clients->run) || !TAILQ_EMPTY(&clients->dead) ||
		!TAILQ_EMPTY(&clients->sending);
}

bool clients_all_sent(const struct clients *clients)
{
	return !clients->outputs;
}

void clients_stop(struct clients *clients)
{
	clients->stopping = true;
}

void clients_destroy(struct clients *clients)
{
	struct client *client, *next;

	TAILQ_FOREACH_SAFE(client, &clients->all, all_entry, next)
		client_end(client);
	bury_dead(clients);
}
