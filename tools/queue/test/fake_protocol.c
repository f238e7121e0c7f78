// SPDX-License-Identifier: GPL-2.0
/* A protocol without jobs, for tests of connections. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "queue/store/sync.h"
#include "queue/store/writer.h"
#include "queue/test/fake_protocol.h"

struct fake_protocol fake = { .body_max = FAKE_BODY_MAX };

uint64_t store_synced(struct store *store)
{
	(void)store;
	return fake.synced;
}

bool store_writer_is_behind(const struct store *store)
{
	(void)store;
	return fake.behind;
}

static struct peer **slot_of(uint64_t id)
{
	return &fake.peers[id % FAKE_PEERS];
}

int peer_init(struct peer *peer, struct protocol *protocol, const struct peer_ops *ops)
{
	if (fake.fail_init)
		return -ENOMEM;
	peer->protocol = protocol;
	peer->ops = ops;
	peer->session.id = ++fake.next_id;
	*slot_of(fake.next_id) = peer;
	fake.nr_peers++;
	return 0;
}

void peer_hung_up(struct peer *peer)
{
	if (*slot_of(peer->session.id) != peer)
		abort();
	fake.nr_hung_up++;
}

void peer_lacks_memory(struct peer *peer, const struct command *command)
{
	(void)peer;
	if (!command->has_body)
		abort();
	fake.nr_lacking++;
}

void peer_destroy(struct peer *peer)
{
	struct peer **slot = slot_of(peer->session.id);

	/* A second call does not find it any more. */
	if (*slot != peer)
		abort();
	*slot = NULL;
	fake.nr_peers--;
}

void fake_wake(uint64_t id)
{
	struct peer *peer = *slot_of(id);

	if (!peer || peer->session.id != id || !peer->session.waiting)
		return;
	peer->session.waiting = false;
	peer->ops->reply(peer, fake.seq, "RESERVED 1 2\r\n", "ab", 2);
	peer->ops->resume(peer);
}

static void reply_text(struct peer *peer, uint64_t seq, const char *format, const char *text)
{
	char line[512];

	snprintf(line, sizeof(line), format, text);
	peer->ops->reply(peer, seq, line, NULL, 0);
}

static void reply_number(struct peer *peer, uint64_t seq, const char *format, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	reply_text(peer, seq, format, text);
}

static void run_peek(struct peer *peer, size_t len)
{
	char line[64];
	char *body = malloc(len + 1);

	memset(body, 'b', len);
	snprintf(line, sizeof(line), "FOUND %zu %zu\r\n", len, len);
	peer->ops->reply(peer, 0, line, body, len);
	free(body);
}

/* Read all bytes of the body, so that a sanitizer checks them. */
static void copy_body(const struct command *command, const void *body)
{
	fake.body_len = command->body_len;
	if (fake.body_len <= FAKE_BODY_MAX && command->has_body)
		memcpy(fake.body, body, fake.body_len);
}

static void take_time(void)
{
	uint64_t end_ns = time_now_ns(CLOCK_MONOTONIC) + fake.run_ns;

	while (fake.run_ns && time_now_ns(CLOCK_MONOTONIC) < end_ns)
		;
}

bool peer_run(struct peer *peer, const struct command *command, const void *body)
{
	/* A peer that waits or is destroyed runs nothing. */
	if (peer->session.waiting || *slot_of(peer->session.id) != peer ||
	    command->op == OP_QUIT || command->has_body != !!body)
		abort();
	fake.nr_runs++;
	take_time();
	if (command->has_body)
		copy_body(command, body);
	switch (command->op) {
	case OP_PUT:
		fake.seq++;
		reply_number(peer, fake.seq, "INSERTED %s\r\n", fake.seq);
		return true;
	case OP_USE:
		reply_text(peer, 0, "USING %s\r\n", command->tube);
		return true;
	case OP_FAIL:
		reply_text(peer, 0, "FAILED\r\n", "");
		return true;
	case OP_PEEK:
		run_peek(peer, command->id < fake.body_max ? command->id : fake.body_max);
		return true;
	case OP_RESERVE:
		peer->session.waiting = true;
		return false;
	case OP_KICK:
		fake_wake(command->count);
		reply_number(peer, 0, "KICKED %s\r\n", 1);
		return true;
	default:
		reply_text(peer, 0, "%s\r\n", command_name(command->op));
		return true;
	}
}
