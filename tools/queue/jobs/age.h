/* SPDX-License-Identifier: GPL-2.0 */
/* How long the ready jobs of a tube have been ready. */
#ifndef QUEUE_JOBS_AGE_H
#define QUEUE_JOBS_AGE_H

#include "queue/jobs/state.h"

/* Now, in seconds since the start, modulo 2^READY_S_BITS. */
uint32_t age_now_s(const struct queue *queue);

/* A job enters the tree of its tube, ready since @ready_s; and leaves it. */
void age_enter(struct queue *queue, struct job *job, uint32_t ready_s);
void age_leave(struct job *job);

/* The tube is about to have ready jobs behind its cut, the oldest one since @ready_s. */
void age_cut(struct queue *queue, struct tube *tube, uint32_t ready_s);

/* The age of the job that has been ready for the longest, in seconds; 0 if there is none. */
uint64_t age_oldest_s(const struct queue *queue, const struct tube *tube);

#endif /* QUEUE_JOBS_AGE_H */
