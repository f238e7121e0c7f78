/* SPDX-License-Identifier: GPL-2.0 */
/* Errors of RocksDB: damage, and errors that end the process. */
#ifndef QUEUE_STORE_FAULT_H
#define QUEUE_STORE_FAULT_H

#include "queue/store/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RocksDB's paths of a store that is in use begin with this and a descriptor: see dir.c. */
#define STORE_FD_PATHS	"/proc/self/fd/"

/* Log a line. RocksDB's paths in it become relative to the store. Any thread may call it. */
void store_say(const struct store *store, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Make all of RocksDB's paths in a text relative to the store. */
void store_shorten_paths(char *text);

/* Log the failed action @what and RocksDB's @error, and end the process. */
void store_die(struct store *store, const char *what, const char *error)
	__attribute__((noreturn));

/*
 * Log a failed read of @what, and free RocksDB's @error; NULL stands for invalid contents.
 * Returns -EBADMSG for damage, which a store that is in use also marks, or -EIO for an error
 * that may be temporary. Any thread may call it.
 */
int store_damaged(struct store *store, const char *what, char *error);
/*
 * The same for a read of the queue's thread. A store that is in use ends the process for an error
 * that may be temporary: whatever the queue did without what it has to know, it would be wrong, and
 * the next start goes on from what is on the disk.
 */
int store_unread(struct store *store, const char *what, char *error);
/* Returns whether an error is damage, and not a lack of files or memory. */
bool store_is_damage(const char *error);
/* Returns whether an error is the end of the user's or the tree's quota. */
bool store_is_quota(const char *error);
/* Returns whether an error is a lack of space, also for the user's or the tree's quota. */
bool store_is_no_space(const char *error);
/*
 * Returns -ENOSPC for a lack of space; -EIO for an error of the system that may be temporary, or
 * that its administrator can end, such as a lack of files; -EBADMSG for any other, which is damage
 * in files that cannot be opened as a whole.
 */
int store_errno(const char *error);
/* Mark damage on disk, once, if the store is in use. Any thread may call it. */
void store_mark_damage(struct store *store, const char *what);
/* Returns whether damage was marked since the store was opened. Any thread may call it. */
bool store_is_damaged(const struct store *store);

#ifdef __cplusplus
}
#endif

#endif /* QUEUE_STORE_FAULT_H */
