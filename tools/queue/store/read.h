/* SPDX-License-Identifier: GPL-2.0 */
/* Reads of jobs and tubes: gets, and walks in the order of an index. */
#ifndef QUEUE_STORE_READ_H
#define QUEUE_STORE_READ_H

#include "queue/store/config.h"
#include "queue/store/record.h"

/*
 * Reads see all earlier changes. -EBADMSG: the data is damaged. It is logged and not returned,
 * and from then on the store opens only with @repair. -EIO: the data cannot be read now, for
 * lack of files or memory.
 */

/* Read the record of a job. Returns 0; -ENOENT, there is no such job; -EBADMSG; -EIO. */
int store_get(struct store *store, uint64_t id, struct job_record *record);

/*
 * Like store_get(), of a job that has not changed since the last store_hand_over(). The batch goes
 * on: store_get() may end it for another job's sake.
 */
int store_get_unchanged(struct store *store, uint64_t id, struct job_record *record);

/* Read a body. It is valid until the next call of this. Returns as store_get(). */
int store_get_body(struct store *store, uint64_t id, const void **body, size_t *len);

/* Find the job with a key in a tube. Returns as store_get(). */
int store_get_key(struct store *store, uint32_t tube, const char *key, size_t len,
		  uint64_t *id);

/*
 * Read a number of store_put_number(); it is @missing if there is none. Returns 0, -EBADMSG if it
 * is damaged, or -EIO if it cannot be read now; then *@number is not set.
 */
int store_get_number(struct store *store, const char *name, uint64_t missing, uint64_t *number);

/* Greater than all ids that were ever put. */
uint64_t store_next_id(const struct store *store);

/* Call @each for every tube, with its counts, until it returns false. */
int store_each_tube(struct store *store,
		    bool (*each)(void *context, const struct tube_record *record),
		    void *context);

/* Call @each for every marked job whose id is above @after_id, until it returns false. */
int store_each_mark(struct store *store, uint64_t after_id,
		    bool (*each)(void *context, uint64_t id), void *context);

/*
 * Call @each for the jobs of an index in order, until it returns false. READY and BURIED: the
 * jobs of the tube of @from; DELAYED and WALL: the jobs of all tubes. The walk starts at
 * @from, which need not exist; its id and its order or priority are used. It does not see
 * changes that @each makes.
 */
int store_walk(struct store *store, const struct job_place *from,
	       bool (*each)(void *context, const struct job_place *place), void *context);

/* As store_walk(), for DELAYED and WALL: only the jobs of the tube of @from. */
int store_walk_tube(struct store *store, const struct job_place *from,
		    bool (*each)(void *context, const struct job_place *place),
		    void *context);

/* As store_walk(), but backwards, from the last place that is not after @from. */
int store_walk_back(struct store *store, const struct job_place *from,
		    bool (*each)(void *context, const struct job_place *place),
		    void *context);


/* --- for store/ and integrity/ --- */

/* Read the body of a kind, for store_get_body(). Returns as store_get(). */
int store_get_body_of(struct store *store, char kind, uint64_t id, const void **body,
		      size_t *len);
/* Read a value; if this returns 0, the caller destroys it. Returns as store_get(). */
struct rocksdb_pinnableslice_t;
int store_get_raw(struct store *store, const void *key, size_t key_len, const char *what,
		  struct rocksdb_pinnableslice_t **value);
/*
 * Call @each for the entries with a prefix, in order, from the key @from on, until it returns
 * false. Returns 0, -EBADMSG or -EIO.
 */
typedef bool store_raw_fn(void *context, const char *key, size_t key_len, const char *value,
			  size_t len);
int store_each_raw(struct store *store, const void *prefix, size_t prefix_len, const void *from,
		   size_t from_len, const char *what, store_raw_fn *each, void *context);
/* Read a number. Returns as store_get(). */
int store_number(struct store *store, const char *name, uint64_t *number);
/* Read the record of a tube, without its counts. Returns as store_get(). */
int store_get_tube(struct store *store, uint32_t tube, struct tube_record *record);

#endif /* QUEUE_STORE_READ_H */
