/* SPDX-License-Identifier: GPL-2.0 */
/* The queue's clock over restarts, and when the wall clock is set. */
#ifndef QUEUE_JOBS_ANCHOR_H
#define QUEUE_JOBS_ANCHOR_H

#include <stdint.h>

struct job_record;
struct queue;

/*
 * Start the clock, when the store is open; this waits for a wall clock that is behind. Returns an
 * error of store_get_number().
 */
int anchor_start(struct queue *queue);
void anchor_free(struct queue *queue);

/* Before a commit, and before the queue stops: write the time, at most once a second or now. */
void anchor_note(struct queue *queue);
void anchor_note_now(struct queue *queue);

/* A delay of this job has begun. @record is what the store has of it. */
void anchor_delay_began(struct queue *queue, const struct job_record *record);

/* The wall clock was set. */
void anchor_clock_was_set(struct queue *queue);

#endif /* QUEUE_JOBS_ANCHOR_H */
