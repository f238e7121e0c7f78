/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads by other threads than the queue's, for pages that people look at.
 *
 * They see what was passed to RocksDB: all that clients have had confirmed, and perhaps more. They
 * touch nothing of the store that the queue's thread owns, take no lock of it, and leave the
 * caches as they are. The store must stay open meanwhile.
 */
#ifndef QUEUE_STORE_BROWSE_H
#define QUEUE_STORE_BROWSE_H

#include "queue/store/config.h"
#include "queue/store/record.h"

/*
 * Call @each for at most @most jobs of the tube of @from in an index, in order, from @from on,
 * which need not exist, until it returns false. Returns 0, -EBADMSG or -EIO.
 */
int store_browse(struct store *store, const struct job_place *from, size_t most,
		 bool (*each)(void *context, const struct job_place *place), void *context);

/* The same for jobs with a reserved mark, of any tube, in the order of ids from @from on. */
int store_browse_marks(struct store *store, uint64_t from, size_t most,
		       bool (*each)(void *context, uint64_t id), void *context);

/* Read the record of a job. Returns 0; -ENOENT, there is no such job; -EBADMSG; -EIO. */
int store_browse_job(struct store *store, uint64_t id, struct job_record *record);

/*
 * Read the first @size bytes of a body; *@len becomes their number. Returns as
 * store_browse_job().
 */
int store_browse_body(struct store *store, uint64_t id, void *bytes, size_t size, size_t *len);

#endif /* QUEUE_STORE_BROWSE_H */
