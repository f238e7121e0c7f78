/* SPDX-License-Identifier: GPL-2.0 */
/* Which jobs are in memory: loading them from disk, and evicting them. */
#ifndef QUEUE_JOBS_WINDOW_H
#define QUEUE_JOBS_WINDOW_H

#include "queue/jobs/state.h"

void windows_init(struct queue *queue);

/* --- delayed jobs ------------------------------------------------------------------------ */

/* Does a delayed job with this place belong in memory? */
bool window_has(struct queue *queue, const struct job_place *place);

/* There is no memory for the job of this place: move the cut in front of it. */
void window_cut(struct queue *queue, const struct job_place *place);

/* Arm a delayed job, and disarm it. */
void window_arm(struct queue *queue, struct job *job);
void window_disarm(struct queue *queue, struct job *job);

/*
 * Evict up to @nr delayed jobs, the last due first, that are due more than @beyond_ns from
 * now. Returns false if there are none.
 */
bool window_shrink(struct queue *queue, size_t nr, uint64_t beyond_ns);

/*
 * The clock of delays will make a jump: arm nothing by it until the next turn loads it again.
 * Returns an error if some are still armed, as an index cannot be read.
 */
int window_reload(struct queue *queue);

/* --- ready jobs of a tube ---------------------------------------------------------------- */

/*
 * Does a job that becomes ready now belong in memory? This may load more jobs of its tube.
 */
bool tube_takes(struct queue *queue, struct tube *tube, const struct job_place *place);

/* The next ready job of the tube, loaded from disk if need be; NULL: it has none. */
struct job *tube_next_job(struct queue *queue, struct tube *tube);

/* --- turns ------------------------------------------------------------------------------- */

/* Load and evict a piece; returns true if more work is left. */
bool window_turn(struct queue *queue);

#endif /* QUEUE_JOBS_WINDOW_H */
