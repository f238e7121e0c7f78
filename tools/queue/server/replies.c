// SPDX-License-Identifier: GPL-2.0
/* Sending replies to clients, when the disk has what they promise. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/log.h"
#include "common/util.h"
#include "queue/server/client.h"
#include "queue/server/clients.h"
#include "queue/server/replies.h"
#include "queue/store/sync.h"

/* When outputs are short of memory, a client whose socket is full for this long is ended. */
#define OUTPUT_IDLE_NS		(10 * NSEC_PER_SEC)

void client_leave_out_list(struct client *client)
{
	if (client->out_list)
		TAILQ_REMOVE(client->out_list, client, out_entry);
	client->out_list = NULL;
}

static struct client_list *right_out_list(struct client *client)
{
	struct clients *clients = client->clients;

	if (client->dead || !client->output.len)
		return NULL;
	if (!output_sendable(&client->output, clients->synced))
		return &clients->held;
	return client->writable ? &clients->sending : &clients->full;
}

void client_place_output(struct client *client)
{
	struct client_list *list = right_out_list(client);

	if (list == client->out_list)
		return;
	client_leave_out_list(client);
	client->out_list = list;
	if (!list)
		return;
	TAILQ_INSERT_TAIL(list, client, out_entry);
	if (list == &client->clients->full)
		client->full_ns = time_now_ns(CLOCK_MONOTONIC);
}

static void count_output(struct client *client, size_t before)
{
	client->clients->outputs += output_memory(&client->output) - before;
}

void client_forget_output(struct client *client)
{
	size_t memory = output_memory(&client->output);

	output_free(&client->output);
	count_output(client, memory);
}

/* Send what may be sent. This makes room, so the client may run commands again. */
static void client_send(struct client *client)
{
	struct output *output = &client->output;
	size_t memory = output_memory(output);
	size_t len = output_sendable(output, client->clients->synced);
	ssize_t sent;

	if (!len || !client->writable || client->dead)
		return;
	sent = send(client->source.fd, output_data(output), len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0 && errno != EAGAIN && errno != EINTR) {
		client_hung_up(client);
		client_end(client);
		return;
	}
	client->writable = sent == (ssize_t)len || (sent < 0 && errno == EINTR);
	if (sent > 0) {
		output_sent(output, sent);
		count_output(client, memory);
		client_queue_run(client);
	}
	client_place_output(client);
}

static void client_reply(struct client *client, uint64_t seq, const struct iovec *parts,
			 size_t nr_parts)
{
	struct clients *clients = client->clients;
	size_t memory = output_memory(&client->output);

	if (client->dead || client->left)
		return;
	if (!output_append(&client->output, seq, clients->synced, parts, nr_parts)) {
		log_say(LOG_WARNING, "a client is disconnected: no memory for its reply");
		client_end(client);
		return;
	}
	count_output(client, memory);
	client_place_output(client);
	/* Many waiting clients may get large jobs in one turn. */
	if (clients->outputs > clients->max_outputs)
		client_send(client);
}

void client_say(struct client *client, const char *line)
{
	const struct iovec parts[] = {
		{ (void *)line, strlen(line) }, { (void *)CRLF, CRLF_LEN },
	};

	client_reply(client, 0, parts, 2);
}

static void peer_reply(struct peer *peer, uint64_t seq, const char *line, const void *body,
		       size_t len)
{
	const struct iovec parts[] = {
		{ (void *)line, strlen(line) }, { (void *)body, len },
		{ (void *)CRLF, CRLF_LEN },
	};

	client_reply(container_of(peer, struct client, peer), seq, parts, body ? 3 : 1);
}

static void peer_resume(struct peer *peer)
{
	struct client *client = container_of(peer, struct client, peer);

	if (client->state != CLIENT_WAIT)
		return;
	client->state = CLIENT_LINE;
	client_queue_run(client);
}

const struct peer_ops client_ops = {
	.reply = peer_reply,
	.resume = peer_resume,
};

/* --- all clients --------------------------------------------------------------------- */

static void release_held(struct clients *clients)
{
	uint64_t synced = store_synced(clients->store);
	struct client *client, *next;

	if (synced == clients->synced)
		return;
	clients->synced = synced;
	TAILQ_FOREACH_SAFE(client, &clients->held, out_entry, next)
		client_place_output(client);
}

static size_t largest_output(const struct clients *clients)
{
	const struct client *client;
	size_t largest = 0;

	TAILQ_FOREACH(client, &clients->full, out_entry)
		if (output_memory(&client->output) > largest)
			largest = output_memory(&client->output);
	return largest;
}

/* Disconnect the first client of @full, so that there is memory for others? */
static bool is_too_slow(const struct clients *clients, const struct client *slowest)
{
	if (clients->outputs <= clients->max_outputs)
		return false;
	if (time_now_ns(CLOCK_MONOTONIC) - slowest->full_ns >= OUTPUT_IDLE_NS)
		return true;
	return clients->outputs > clients->end_outputs &&
		clients->outputs - largest_output(clients) > clients->end_outputs;
}

static void end_slow(struct clients *clients)
{
	struct client *slowest;
	unsigned long times;

	while ((slowest = TAILQ_FIRST(&clients->full)) && is_too_slow(clients, slowest)) {
		times = log_limit(&clients->say_slow);
		if (times)
			log_say(LOG_WARNING, "disconnected clients that do not read: %lu",
				times);
		client_end(slowest);
		client_forget_output(slowest);
	}
}

unsigned int clients_held(const struct clients *clients)
{
	const struct client *first = TAILQ_FIRST(&clients->held);

	if (!first)
		return 0;
	return TAILQ_NEXT(first, out_entry) ? 2 : 1;
}

void clients_send_at_once(struct clients *clients)
{
	struct client *client, *next;

	TAILQ_FOREACH_SAFE(client, &clients->sending, out_entry, next)
		client_send(client);
}

void clients_send(struct clients *clients)
{
	release_held(clients);
	clients_send_at_once(clients);
	end_slow(clients);
}
