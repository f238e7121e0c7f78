/* SPDX-License-Identifier: GPL-2.0 */
/* Changes to the store: puts, moves and deletes of jobs, tubes and numbers. */
#ifndef QUEUE_STORE_BATCH_H
#define QUEUE_STORE_BATCH_H

#include "queue/store/config.h"
#include "queue/store/record.h"

/*
 * Changes are collected in a batch, and a batch is atomic: after a crash the disk has all of
 * it or nothing. A batch ends at store_commit(). It also ends when something is read that it
 * has changed, and store_put() may end it. So a command reads first, calls store_put() as its
 * first change, and reads nothing between its changes. Many commands may share a batch.
 *
 * Changes do not fail. Lack of room is found before, by store_has_room(); if the disk cannot
 * be written, the process ends with status 74.
 */

/*
 * Add a job: its record, its body, its entry in the index and, if it has one, its key. The
 * id must be new, and the tube must have no other job with the same key.
 */
void store_put(struct store *store, const struct job_record *record, const void *body);

/*
 * Move a job from @old, its current place, to the place of @record, replace its record, and
 * remove its reserved mark. Keys are not moved: if @record lost its key, or is in another
 * tube, the caller calls store_drop_key() for the old one after this.
 */
void store_move(struct store *store, const struct job_place *old,
		const struct job_record *record);

/* How many bytes a move of this job takes of a batch, at most, with the counts of its tube. */
size_t store_move_bytes(const struct job_record *record);
/* As many bytes of moves as one batch should have: a sixteenth of the reserve. */
size_t store_move_bytes_most(const struct store *store);

/* Replace the body of a job. The caller writes the new length with store_move(). */
void store_replace_body(struct store *store, uint64_t id, const void *body, size_t len);

/* Delete a job: its record, body, entry and mark and, if @key_len is not 0, its @key. */
void store_delete(struct store *store, const struct job_place *old, const char *key,
		  size_t key_len);

/* Set the reserved mark: a restart finds out that the job was reserved. */
void store_mark(struct store *store, uint64_t id);

/* Remove the key of a job, as store_delete() does. */
void store_drop_key(struct store *store, uint32_t tube, const char *key, size_t len);

/* Add a tube, or replace its policy. @record->counts is ignored: the store counts itself. */
void store_put_tube(struct store *store, const struct tube_record *record);

/* Delete a tube, which has no jobs and no policy. */
void store_delete_tube(struct store *store, uint32_t tube);

/*
 * Let the next id be 2^40 above @last and all that are known: ids that were given are unknown
 * after a repair or a load, and none may be given twice.
 */
void store_skip_ids(struct store *store, uint64_t last);

/* Store a number under a name of at most 16 letters, such as "clock". */
void store_put_number(struct store *store, const char *name, uint64_t number);

/*
 * Commit all changes made so far as one atomic unit. Returns the number of this commit; the
 * numbers grow. The event loop calls it at least once per turn; it is cheap if nothing has
 * changed.
 */
uint64_t store_commit(struct store *store);

/*
 * The number that the next commit will have. Use it only after a change: without one,
 * there is no commit of this number.
 */
uint64_t store_seq(const struct store *store);

/* The number of the commit that has the last change: once synced, all that reads see is. */
uint64_t store_last(const struct store *store);

/* End the batch, and pass all changes to RocksDB. May wait as store_writer_drain() does. */
void store_hand_over(struct store *store);

/* --- for store/ and integrity/ --- */

/* store_hand_over(), if there may be a change of this job or key. */
void store_hand_over_id(struct store *store, uint64_t id);
void store_hand_over_key(struct store *store, uint32_t tube, const char *key, size_t len);

/* Add one entry to the batch, and note that the batch changes an id or a key. */
void store_batch_put(struct store *store, const void *key, size_t key_len, const void *value,
		     size_t len);
void store_touch_id(struct store *store, uint64_t id);
void store_touch_key(struct store *store, uint32_t tube, const char *key, size_t len);
/* End the batch if it is large; before the first change of a command. */
void store_batch_bound(struct store *store);
/* The next id is above @id. */
void store_use_id(struct store *store, uint64_t id);

/* For repairs, and for the other files of store/. Delete one entry by its key. */
void store_delete_raw(struct store *store, const void *key, size_t key_len);
/* Delete the record, body and mark of a job; its index entry is already gone. */
void store_drop_job(struct store *store, uint64_t id);
/* Write the record, index entry and key of a job whose body is intact. */
void store_keep_job(struct store *store, const struct job_record *record);

#endif /* QUEUE_STORE_BATCH_H */
