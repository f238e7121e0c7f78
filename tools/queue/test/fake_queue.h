/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A queue that has no jobs, for tests of clients: it answers so that a test can tell what
 * came, and a test decides what is on disk and when a wait ends.
 *
 *	use NAME		USING NAME
 *	put ...			INSERTED N, which waits for change N; its body is @body
 *	fail ID [BYTES]		FAILED, with its body in @body
 *	peek N			FOUND N N, with N bytes of body
 *	reserve			waits
 *	kick ID			the session ID, which waits, is given RESERVED; KICKED 1
 *	others			their name
 */
#ifndef TWHEELQ_FAKE_QUEUE_H
#define TWHEELQ_FAKE_QUEUE_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "store.h"

/* More sessions than a test makes. */
#define FAKE_SESSIONS	20000
#ifndef FAKE_BODY_MAX
#define FAKE_BODY_MAX	(1024 * 1024)
#endif

/**
 * struct fake_queue - what it has seen
 * @synced: what store_synced() says.
 * @seq: the number of the last put.
 * @nr_runs: commands.
 * @nr_sessions: how many there are.
 * @next_id: of the next one.
 * @sessions: by id.
 * @body: of the last command that had one.
 * @body_len: how long it was.
 * @fail_init: sessions cannot be made.
 */
struct fake_queue {
	uint64_t synced;
	uint64_t seq;
	uint64_t nr_runs;
	unsigned int nr_sessions;
	uint64_t next_id;
	struct session *sessions[FAKE_SESSIONS];
	char body[FAKE_BODY_MAX];
	size_t body_len;
	bool fail_init;
};

static struct fake_queue fake;

uint64_t store_synced(struct store *store)
{
	(void)store;
	return fake.synced;
}

int session_init(struct session *session, struct queue *queue)
{
	(void)queue;
	if (fake.fail_init)
		return -ENOMEM;
	session->id = ++fake.next_id;
	fake.sessions[session->id % FAKE_SESSIONS] = session;
	fake.nr_sessions++;
	return 0;
}

void session_destroy(struct session *session)
{
	/* Who is destroyed twice is not there the second time. */
	if (fake.sessions[session->id % FAKE_SESSIONS] != session)
		abort();
	fake.sessions[session->id % FAKE_SESSIONS] = NULL;
	fake.nr_sessions--;
}

/* End the wait of a session, as when a job is there for it. */
static void fake_wake(uint64_t id)
{
	struct session *session = fake.sessions[id % FAKE_SESSIONS];

	if (!session || session->id != id || !session->waiting)
		return;
	session->waiting = false;
	session_reply(session, fake.seq, "RESERVED 1 2\r\n", "ab", 2);
	session_resume(session);
}

static void reply_text(struct session *session, uint64_t seq, const char *format, const char *text)
{
	char line[512];

	snprintf(line, sizeof(line), format, text);
	session_reply(session, seq, line, NULL, 0);
}

static void reply_number(struct session *session, uint64_t seq, const char *format, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	reply_text(session, seq, format, text);
}

static void peek(struct session *session, size_t len)
{
	char line[64];
	char *body = malloc(len + 1);

	memset(body, 'b', len);
	snprintf(line, sizeof(line), "FOUND %zu %zu\r\n", len, len);
	session_reply(session, 0, line, body, len);
	free(body);
}

/* Reads all of the body, so that a sanitizer sees if that is not there. */
static void take_body(const struct command *command, const void *body)
{
	fake.body_len = command->body_len;
	if (fake.body_len <= FAKE_BODY_MAX && command->has_body)
		memcpy(fake.body, body, fake.body_len);
}

bool session_run(struct session *session, const struct command *command, const void *body)
{
	/* A session that waits, or is gone, runs nothing. */
	if (session->waiting || fake.sessions[session->id % FAKE_SESSIONS] != session ||
	    command->op == OP_QUIT || command->has_body != !!body)
		abort();
	fake.nr_runs++;
	if (command->has_body)
		take_body(command, body);
	switch (command->op) {
	case OP_PUT:
		fake.seq++;
		reply_number(session, fake.seq, "INSERTED %s\r\n", fake.seq);
		return true;
	case OP_USE:
		reply_text(session, 0, "USING %s\r\n", command->tube);
		return true;
	case OP_FAIL:
		reply_text(session, 0, "FAILED\r\n", "");
		return true;
	case OP_PEEK:
		peek(session, command->id < FAKE_BODY_MAX ? command->id : FAKE_BODY_MAX);
		return true;
	case OP_RESERVE:
		session->waiting = true;
		return false;
	case OP_KICK:
		fake_wake(command->count);
		reply_number(session, 0, "KICKED %s\r\n", 1);
		return true;
	default:
		reply_text(session, 0, "%s\r\n", command_name(command->op));
		return true;
	}
}

#endif /* TWHEELQ_FAKE_QUEUE_H */
