/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What client.c has for the queue, for a test that has queue_lib.c's clients instead. It is
 * defined here, as an archive with it would be in the way of the tests of client.c itself.
 */
#ifndef QUEUE_SESSIONS_H
#define QUEUE_SESSIONS_H

#include "queue_lib.h"

void session_reply(struct session *session, uint64_t seq, const char *line, const void *body,
		   size_t len)
{
	client_said(session, seq, line, body, len);
}

void session_resume(struct session *session)
{
	client_resumed(session);
}

#endif /* QUEUE_SESSIONS_H */
