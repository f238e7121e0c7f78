/* SPDX-License-Identifier: GPL-2.0 */
/* The jobs that are in memory: a table by id, and their memory. */
#ifndef QUEUE_JOBS_RESIDENT_H
#define QUEUE_JOBS_RESIDENT_H

#include "queue/jobs/state.h"

/* Returns 0 or -ENOMEM. */
int residents_init(struct queue *queue);
void residents_destroy(struct queue *queue);

/* A job that is in memory, or NULL. */
struct job *job_resident(struct queue *queue, uint64_t id);

/* Take a job into memory. It is in no tree yet. Returns NULL without memory. */
struct job *job_new(struct queue *queue, const struct job_place *place);

/* Remove a job from memory; the disk still has it. It must be in no tree. */
void job_forget(struct queue *queue, struct job *job);

/* Its place on disk, without @scheduled. */
struct job_place job_place(const struct job *job);

#endif /* QUEUE_JOBS_RESIDENT_H */
