// SPDX-License-Identifier: GPL-2.0
/* Backups that sessions have asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/backup.h"
#include "queue/jobs/session.h"
#include "queue/jobs/state.h"
#include "queue/store/backup.h"
#include "queue/store/space.h"

int session_backup(struct session *session, const char *name)
{
	session->backup = strdup(name);
	if (!session->backup)
		return -ENOMEM;
	TAILQ_INSERT_TAIL(&session->queue->backups, session, backups);
	return 0;
}

static void leave(struct session *session)
{
	TAILQ_REMOVE(&session->queue->backups, session, backups);
	free(session->backup);
	session->backup = NULL;
}

void session_forget_backup(struct session *session)
{
	if (session->queue->backup_of == session)
		session->queue->backup_of = NULL;
	if (session->backup)
		leave(session);
}

static void end_backup(struct session *session, int result)
{
	leave(session);
	session->backup_result = result;
	session->ops->resumed(session, SESSION_BACKED_UP);
}

/* Returns whether the backup has begun; else the session has its answer. */
static bool begin_backup(struct queue *queue, struct session *session)
{
	int result = store_has_room(queue->store) ?
		store_backup_begin(queue->store, session->backup) : -ENOSPC;

	if (result) {
		end_backup(session, result);
		return false;
	}
	queue->backup_runs = true;
	queue->backup_of = session;
	return true;
}

void backups_turn(struct queue *queue)
{
	struct session *session = queue->backup_of;
	int result;

	if (queue->backup_runs) {
		if (!store_backup_ended(queue->store, &result))
			return;
		queue->backup_runs = false;
		queue->backup_of = NULL;
		if (session)
			end_backup(session, result);
	}
	while ((session = TAILQ_FIRST(&queue->backups)))
		if (begin_backup(queue, session))
			return;
}
