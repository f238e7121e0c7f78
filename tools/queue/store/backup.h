/* SPDX-License-Identifier: GPL-2.0 */
/* Backups: copies of an open store, in backups/ of its directory. */
#ifndef QUEUE_STORE_BACKUP_H
#define QUEUE_STORE_BACKUP_H

#include "queue/store/config.h"

/* The directory of backups, in that of the store. */
#define BACKUPS_DIR	"backups"

/*
 * Make backups/@name in a thread of its own: all that was committed before is in it. There is
 * one backup at a time: begin the next one after store_backup_ended() has returned true.
 * Returns 0 or a negative errno.
 */
int store_backup_begin(struct store *store, const char *name);

/*
 * Has the backup ended? store_fd() becomes readable then. @result: 0, it is whole and on disk;
 * -EEXIST; -ENOSPC; or another errno, which is logged.
 */
bool store_backup_ended(struct store *store, int *result);


/* --- for integrity/ --- */

/* End a backup that is not whole, and wait for its thread. */
void store_backup_stop(struct store *store);
/* Remove what a crash has left of a backup. */
void store_backup_clean(struct store *store);
/* If the store is a backup that was never used, give other ids than the one it was made of. */
void store_backup_restored(struct store *store);

#endif /* QUEUE_STORE_BACKUP_H */
