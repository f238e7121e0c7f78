// SPDX-License-Identifier: GPL-2.0
/*
 * The roles of clients: put, work, both, wait, ask.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queue/bench/roles.h"
#include "queue/bench/wire.h"

/* More than a command has without its body. */
#define LINE_ROOM	128

bool time_is_over(const struct load *load)
{
	return load->duration_ns &&
	       time_now_ns(CLOCK_MONOTONIC) - load->start_ns >= load->duration_ns;
}

static uint64_t random_below(uint64_t limit)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

/* --- put ---------------------------------------------------------------------------- */

/* @size bytes that no compression makes less. */
static void write_noise(char *to, size_t size)
{
	static char noise[65536];
	size_t from, len;

	if (!noise[0])
		for (from = 0; from < sizeof(noise); from++)
			noise[from] = (char)('!' + random_below(94));
	while (size) {
		from = random_below(sizeof(noise) / 2);
		len = size < sizeof(noise) / 2 ? size : sizeof(noise) / 2;
		memcpy(to, noise + from, len);
		to += len;
		size -= len;
	}
}

/* A body begins with the due time of its job. */
static size_t write_body(char *to, size_t size, uint64_t due_ns)
{
	char due[24];
	size_t len = snprintf(due, sizeof(due), "%020" PRIu64 " ", due_ns);

	write_noise(to, size);
	memcpy(to, due, len < size ? len : size);
	memcpy(to + size, "\r\n", 2);
	return size + 2;
}

static void send_put(struct client *client)
{
	struct load *load = client->load;
	char *to = client_room(client, LINE_ROOM + load->size);
	uint64_t delay_ms = load->delay_ms, at_ms;
	size_t len;

	if (load->delay_max_ms > delay_ms)
		delay_ms += random_below(load->delay_max_ms - delay_ms + 1);
	/* In whole milliseconds, not before that delay. */
	at_ms = time_now_ns(CLOCK_REALTIME) / NSEC_PER_MSEC + delay_ms + 1;
	if (load->at)
		len = sprintf(to, "put-at 1024 %" PRIu64 " 120 %" PRIu64 "\r\n", at_ms,
			      load->size);
	else if (load->milliseconds)
		len = sprintf(to, "put 1024 %" PRIu64 "ms 120 %" PRIu64 "\r\n", delay_ms,
			      load->size);
	else
		len = sprintf(to, "put 1024 %" PRIu64 " 120 %" PRIu64 "\r\n",
			      delay_ms / 1000, load->size);
	if (!load->milliseconds && !load->at)
		delay_ms -= delay_ms % 1000;
	len += write_body(to + len, load->size,
			  time_now_ns(CLOCK_MONOTONIC) + delay_ms * NSEC_PER_MSEC);
	client_sent(client, len);
	load->put++;
}

static uint64_t planned_ns(const struct load *load, uint64_t n)
{
	return load->start_ns + load->duration_ns / load->jobs * n;
}

uint64_t next_put_ns(const struct load *load)
{
	if (!load->timed || load->put >= load->jobs)
		return UINT64_MAX;
	return planned_ns(load, load->put);
}

static bool may_put(const struct client *client)
{
	const struct load *load = client->load;

	if (load->timed)
		return next_put_ns(load) <= time_now_ns(CLOCK_MONOTONIC);
	return client->outstanding < client->load->depth &&
	       (!load->jobs || load->put < load->jobs) && !time_is_over(load);
}

static void put_fill(struct client *client)
{
	/* Send when half of the pipeline is free: one command is not worth a system call. */
	if (!client->load->timed && client->outstanding > client->load->depth / 2)
		return;
	while (may_put(client))
		send_put(client);
}

static void put_reply(struct client *client, const struct reply *reply)
{
	struct load *load = client->load;
	uint64_t second = (time_now_ns(CLOCK_MONOTONIC) - load->start_ns) / NSEC_PER_SEC;

	if (reply->kind != REPLY_INSERTED)
		return;
	load->inserted++;
	if (load->by_second && second < load->duration_ns / NSEC_PER_SEC)
		load->by_second[second]++;
}

const struct role role_put = { .fill = put_fill, .reply = put_reply };

/* --- work: reserve and delete, as long as there are jobs ------------------------------- */

static void send_line(struct client *client, const char *line)
{
	size_t len = strlen(line);

	memcpy(client_room(client, len), line, len);
	client_sent(client, len);
}

static void send_delete(struct client *client, uint64_t id)
{
	char *to = client_room(client, LINE_ROOM);

	client_sent(client, sprintf(to, "delete %" PRIu64 "\r\n", id));
}

static void work_fill(struct client *client)
{
	if (client->idle || time_is_over(client->load))
		return;
	while (client->outstanding < client->load->depth)
		send_line(client, "reserve-with-timeout 0\r\n");
}

static void work_reply(struct client *client, const struct reply *reply)
{
	struct load *load = client->load;

	if (reply->kind == REPLY_RESERVED) {
		load->reserved++;
		send_delete(client, reply->id);
	}
	load->deleted += reply->kind == REPLY_DELETED;
	if (reply->kind == REPLY_TIMED_OUT)
		client->idle = true;
}

const struct role role_work = { .fill = work_fill, .reply = work_reply };

/* --- mixed: put some, reserve as many, delete what comes ---------------------------------- */

static void mixed_fill(struct client *client)
{
	struct load *load = client->load;
	unsigned int i;

	if (client->outstanding || time_is_over(load) || (load->jobs && load->put >= load->jobs))
		return;
	for (i = 0; i < load->depth; i++)
		send_put(client);
	for (i = 0; i < load->depth; i++)
		send_line(client, "reserve-with-timeout 0\r\n");
}

static void mixed_reply(struct client *client, const struct reply *reply)
{
	if (reply->kind == REPLY_RESERVED)
		send_delete(client, reply->id);
	client->load->deleted += reply->kind == REPLY_DELETED;
}

const struct role role_mixed = { .fill = mixed_fill, .reply = mixed_reply };

/* --- wait for jobs that are delayed ------------------------------------------------------ */

static void wait_fill(struct client *client)
{
	if (!client->outstanding && client->load->reserved < client->load->jobs)
		send_line(client, "reserve\r\n");
}

static void note_late(struct load *load, const struct reply *reply)
{
	uint64_t now = time_now_ns(CLOCK_MONOTONIC), due = strtoull(reply->body, NULL, 10);

	load->early += now < due;
	load->late_ns[load->reserved++] = now < due ? 0 : now - due;
}

static void wait_reply(struct client *client, const struct reply *reply)
{
	if (reply->kind == REPLY_RESERVED) {
		note_late(client->load, reply);
		send_delete(client, reply->id);
	}
	client->load->deleted += reply->kind == REPLY_DELETED;
}

const struct role role_wait = { .fill = wait_fill, .reply = wait_reply };

/* --- ask: something that needs no disk --------------------------------------------------- */

/* At the planned times, whether the last answer came or not. */
static void ask_fill(struct client *client)
{
	while (may_put(client)) {
		send_line(client, "reserve-with-timeout 0\r\n");
		client->load->put++;
	}
}

static void ask_reply(struct client *client, const struct reply *reply)
{
	struct load *load = client->load;

	if (reply->kind != REPLY_TIMED_OUT)
		return;
	load->late_ns[load->reserved] = time_now_ns(CLOCK_MONOTONIC) -
					planned_ns(load, load->reserved);
	load->reserved++;
	load->deleted++;
}

const struct role role_ask = { .fill = ask_fill, .reply = ask_reply };
