// SPDX-License-Identifier: GPL-2.0
/* A peer: its replies, and what its session tells. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "queue/jobs/state.h"
#include "queue/jobs/tube.h"
#include "queue/protocol/peer.h"
#include "queue/store/batch.h"

void peer_say(struct peer *peer, uint64_t seq, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line) - 2, format, args);
	va_end(args);
	strcat(line, "\r\n");
	peer->ops->reply(peer, seq, line, NULL, 0);
}

void peer_say_kicked(struct peer *peer)
{
	peer_say(peer, store_last(peer->session.queue->store), "KICKED %llu",
		 (unsigned long long)peer->session.kicked);
}

void peer_lacks_memory(struct peer *peer, const struct command *command)
{
	/* All others put a job, now or later. */
	if (command->op != OP_FAIL)
		queue_lacks_memory(peer->session.queue);
}

static void say_purged(struct peer *peer)
{
	uint64_t seq = store_last(peer->session.queue->store);

	if (peer->session.purge_err)
		peer_say(peer, seq, "INTERNAL_ERROR");
	else
		peer_say(peer, seq, "PURGED %llu", (unsigned long long)peer->session.purged);
}

static void peer_reserved(struct session *session, const struct job *job, const void *body,
			  size_t len)
{
	struct peer *peer = container_of(session, struct peer, session);
	char line[64];

	snprintf(line, sizeof(line), "RESERVED %llu %zu\r\n", (unsigned long long)job_id(job),
		 len);
	peer->ops->reply(peer, job->seq, line, body, len);
}

static void peer_say_backup(struct peer *peer)
{
	switch (peer->session.backup_result) {
	case 0:
		peer_say(peer, 0, "BACKUP");
		break;
	case -EEXIST:
		peer_say(peer, 0, "EXISTS");
		break;
	case -ENOSPC:
	case -ENOMEM:
		peer_say(peer, 0, "OUT_OF_MEMORY");
		break;
	default:
		peer_say(peer, 0, "INTERNAL_ERROR");
		break;
	}
}

static void peer_resumed(struct session *session, enum session_event event)
{
	struct peer *peer = container_of(session, struct peer, session);

	switch (event) {
	case SESSION_RESERVED:
		break;
	case SESSION_TIMED_OUT:
		peer_say(peer, 0, "TIMED_OUT");
		break;
	case SESSION_DEADLINE_SOON:
		peer_say(peer, 0, "DEADLINE_SOON");
		break;
	case SESSION_KICKED:
		peer_say_kicked(peer);
		break;
	case SESSION_PURGED:
		say_purged(peer);
		break;
	case SESSION_BACKED_UP:
		peer_say_backup(peer);
		break;
	}
	peer->ops->resume(peer);
}

int peer_init(struct peer *peer, struct protocol *protocol, const struct peer_ops *ops)
{
	static const struct session_ops session_ops = {
		.reserved = peer_reserved,
		.resumed = peer_resumed,
	};

	peer->protocol = protocol;
	peer->ops = ops;
	return session_init(&peer->session, protocol->queue, &session_ops);
}

void peer_hung_up(struct peer *peer)
{
	session_hung_up(&peer->session);
}

void peer_destroy(struct peer *peer)
{
	session_destroy(&peer->session);
}
