/* SPDX-License-Identifier: GPL-2.0 */
/* Counts of jobs by tube and state. */
#ifndef QUEUE_STORE_COUNTS_H
#define QUEUE_STORE_COUNTS_H

#include "queue/store/config.h"
#include "queue/store/record.h"

/* The current counts of a tube; all 0 if it is not known. */
const struct tube_counts *store_counts(struct store *store, uint32_t tube);

/*
 * Set the order, the priority and the id of @place to those of the first entry of its index and
 * tube, or to smaller ones: the keys before it are of entries that were deleted.
 */
void store_first_place(struct store *store, struct job_place *place);

/* A job that came from @tube has died (@by is 1), or is dead no more (-1). */
void store_count_died(struct store *store, uint32_t tube, int by);

/* --- for store/ and integrity/ --- */

struct store_head;

/* Read the counts from disk. Returns 0 or a negative errno, as store_get(). */
int store_tubes_load(struct store *store);
void store_tubes_free(struct store *store);
/* Count a job that entered a place, or left it. */
void store_tubes_enter(struct store *store, const struct job_place *place);
void store_tubes_leave(struct store *store, const struct job_place *place);
/* Remove a deleted tube from memory. */
void store_tubes_forget(struct store *store, uint32_t tube);
/* Add the counts that have changed to the batch. */
void store_tubes_write(struct store *store);
/* The head of the index that @place is in, see state.h. */
struct store_head *store_head(struct store *store, const struct job_place *place);
/* Add @by to the number of schedules of a tube. */
void store_count_schedules(struct store *store, uint32_t tube, int by);
/* Count an entry, or a schedule, that a scan has read. */
void store_tubes_see(struct store *store, const struct job_place *place);
void store_tubes_see_schedule(struct store *store, uint32_t tube);
/* Returns whether the entries that a scan has read agree with the counts; if not, the tube. */
bool store_tubes_agree(struct store *store, uint32_t *wrong);

#endif /* QUEUE_STORE_COUNTS_H */
