/* SPDX-License-Identifier: GPL-2.0 */
/* Purges: deleting all jobs of a tube that have one status. */
#ifndef QUEUE_JOBS_PURGE_H
#define QUEUE_JOBS_PURGE_H

#include "queue/jobs/state.h"

/*
 * Begin to delete the jobs of a tube that are ready, delayed or buried now. The session waits:
 * SESSION_PURGED follows, when all are deleted. Returns 0 or -ENOMEM.
 */
int purge_begin(struct session *session, struct tube *tube, enum job_status status);

/* End the purge of a session where it is, if it has one. */
void purge_end(struct session *session);

/*
 * A command is about to give new contents to a job, which is not reserved. If a purge is going
 * to delete the job, do so now and return true: else the purge would delete what was put
 * after it began. @record is that of job_find().
 */
bool purge_takes(struct queue *queue, struct job *job, struct job_record *record);

/* Continue a purge by a piece; true: one is unfinished. */
bool purges_turn(struct queue *queue);

#endif /* QUEUE_JOBS_PURGE_H */
