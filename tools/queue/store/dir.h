/* SPDX-License-Identifier: GPL-2.0 */
/* The directory of a store: its lock, its marker, its damage mark, its witness. */
#ifndef QUEUE_STORE_DIR_H
#define QUEUE_STORE_DIR_H

#include "queue/store/config.h"

/*
 * Lock the directory, and check its marker. Sets @store->fresh if there is no store yet.
 * Returns 0 or a negative errno, as store_open().
 */
int store_dir_open(struct store *store);
/* Turn the marker of a fresh store into the final one. Returns 0 or a negative errno. */
int store_dir_made(struct store *store);
void store_dir_close(struct store *store);
/* Mark the store as damaged for the next open. Returns whether the mark is on disk. */
bool store_dir_mark(struct store *store, const char *what);
/*
 * Returns 1 if there is that mark, and logs it; 0 if not; or a negative errno if there is no
 * telling now. @unfinished: a repair was interrupted.
 */
int store_dir_is_marked(struct store *store, bool *unfinished);
void store_dir_unmark(struct store *store);
/*
 * The content of the mark while a repair goes on. Older versions have written these words: a
 * store of theirs is recognized by them, so they stay.
 */
#define MARK_UNFINISHED	"a repair did not come to its end"
/* The same when the copy is in its place: only its indexes are to be made. */
#define MARK_COPIED	"a repair did not come to its end after its copy"
/* Is that the content of the mark? Returns 1, 0 or a negative errno. */
int store_dir_is_copied(const struct store *store);
/*
 * Write the files of a backup beside its db/, and sync them: the marker, the mark of a backup,
 * and the witness with the number of a change that is in it. Returns 0 or a negative errno.
 */
int store_dir_make_backup(int dir_fd, uint64_t changes);
/* Has the store the mark of a backup? And remove it. */
bool store_dir_is_backup(const struct store *store);
void store_dir_not_backup(struct store *store);
/* Open the witness. Returns 0; -EBADMSG, a synced change is missing; another errno. */
int store_witness_open(struct store *store);
void store_witness_write(struct store *store, uint64_t changes);
/* The number of the last synced change; 0 if the witness cannot be read. */
uint64_t store_witness(const struct store *store);
/*
 * Are the files that have the changes still there, and found by their names? Looks for db/, and for
 * the log that was RocksDB's newest one when the log before it had gone. Called by one thread at a
 * time.
 */
bool store_dir_has_files(struct store *store);
/* Note the db/ that RocksDB has opened, for store_dir_has_files(). Returns 0 or negative errno. */
int store_dir_note_db(struct store *store);
/* Write the absolute path of the directory, as far as it is known. */
void store_dir_path(const struct store *store, char *path, size_t size);
/* Disk space that the store takes, in bytes, without the ballast. */
uint64_t store_dir_bytes(struct store *store);
/* Of that, what RocksDB's logs take. */
uint64_t store_dir_log_bytes(struct store *store);

#endif /* QUEUE_STORE_DIR_H */
