/* SPDX-License-Identifier: GPL-2.0 */
/* Opening and closing a store. */
#ifndef QUEUE_INTEGRITY_OPEN_H
#define QUEUE_INTEGRITY_OPEN_H

#include "queue/store/config.h"

/*
 * Open a store. Returns 0; -ENODATA, the directory is empty and @config->create is not set;
 * -ENOTEMPTY, the directory has other files and no store; -EBUSY, another process has the
 * store open; -EPROTO, its marker is of another version, or unreadable; -EBADMSG, it is
 * damaged; or another negative errno. The details go to @config->log.
 */
int store_open(struct store **store, const struct store_config *config);

/* Sync all changes, and close the store. */
void store_close(struct store *store);


/* As store_open(), but read-only and without the scan of the contents. */
int store_open_unscanned(struct store **store, const struct store_config *config);

/* The exit status for a negative errno of the store. */
int store_status(int error);

/* Log why the store in @dir could not be opened. Returns the exit status. */
int store_cannot_open(const char *dir, int error);

#endif /* QUEUE_INTEGRITY_OPEN_H */
