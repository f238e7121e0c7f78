/* SPDX-License-Identifier: GPL-2.0 */
/* Backups that sessions have asked for: the store makes one at a time. */
#ifndef QUEUE_JOBS_BACKUP_H
#define QUEUE_JOBS_BACKUP_H

#include <stdbool.h>

struct queue;
struct session;

/*
 * Make a backup with this name as soon as earlier ones have ended; SESSION_BACKED_UP follows,
 * with @session->backup_result. Returns 0 or -ENOMEM.
 */
int session_backup(struct session *session, const char *name);

/* The session ends: a backup that has begun goes on, and one that has not is not made. */
void session_forget_backup(struct session *session);

/* End the backup that is done, and begin the next one. */
void backups_turn(struct queue *queue);

#endif /* QUEUE_JOBS_BACKUP_H */
