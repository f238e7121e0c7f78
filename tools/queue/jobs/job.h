/* SPDX-License-Identifier: GPL-2.0 */
/* The changes of a job: from put to delete, in memory and on disk. */
#ifndef QUEUE_JOBS_JOB_H
#define QUEUE_JOBS_JOB_H

#include "queue/jobs/state.h"

/* Ready jobs are ordered by priority and id, reserved ones by the end of their time to run. */
RB_PROTOTYPE(job_tree, job, node, job_compare)
int job_compare(const struct job *a, const struct job *b);

/* --- places on disk: ready, due after a delay, buried now -------------------------------- */

void place_ready(struct job_place *place);
void place_delayed(struct queue *queue, struct job_place *place, uint64_t delay_ns);
void place_buried(struct queue *queue, struct job_place *place);

/* --- a job for a command that names it --------------------------------------------------- */

/*
 * Find a job. It may be in memory for this command only, which therefore ends with
 * job_settle(), job_become(), job_reserve() or job_gone(). @record is for job_read() alone.
 * Returns 0; -ENOENT; -EBADMSG, it is damaged; another negative errno.
 */
int job_find(struct queue *queue, uint64_t id, struct job **job, struct job_record *record);

/*
 * Read the record of a job, unless job_find() has read it. Returns 0, or -EBADMSG: it cannot
 * be read, and the job is set aside.
 */
int job_read(struct queue *queue, struct job *job, struct job_record *record);

/* Put a job where its status belongs: into a tree, or out of memory. */
void job_settle(struct queue *queue, struct job *job);

/* --- changes, on disk and in memory ------------------------------------------------------ */

/* A new job is in the store: count it, and keep it in memory if it belongs there. */
void job_arrived(struct queue *queue, struct tube *tube, const struct job_record *record);

/*
 * Write @record, whose place says the new status and tube of the job, and change the job
 * likewise. It may be out of memory afterwards.
 */
void job_become(struct queue *queue, struct job *job, const struct job_record *record);

/* Delete a job, and its key. @record is its own if job_needs_record(), else unused. */
bool job_needs_record(const struct job *job);
void job_gone(struct queue *queue, struct job *job, const struct job_record *record);

/* Make a buried or delayed job ready; a dead one in its first tube. @record is its own. */
void job_kick(struct queue *queue, struct job *job, struct job_record *record);

/* Set aside a job whose record or body is damaged: no session gets it. */
void job_break(struct queue *queue, struct job *job);

/* --- reservations ------------------------------------------------------------------------ */

/*
 * Reserve a job for a session, which is told by session_ops.reserved(). @record is that of
 * job_find(), or NULL. Returns 0, or -EBADMSG: it is damaged, and is set aside.
 */
int job_reserve(struct session *session, struct job *job, const struct job_record *record);

/* Its time to run begins again. */
void job_touch(struct queue *queue, struct job *job, uint64_t ttr_ns);

/* The session that has reserved it has ended, by its client (@hung_up) or by the daemon. */
void job_abandoned(struct queue *queue, struct job *job, bool hung_up);

/* The same while the daemon stops: it stays reserved on disk. */
void job_leave_reserved(struct queue *queue, struct job *job);

/* The alarm of job @id has fired: its delay or its time to run is over. */
void job_alarm(struct queue *queue, uint64_t id);

/* --- for window.c ------------------------------------------------------------------------ */

/* Put a job that is ready since @ready_s (age.h) into its tube's tree, or remove it. */
void job_enter_tube(struct queue *queue, struct job *job, uint32_t ready_s);
void job_leave_tube(struct job *job);

/*
 * A job that is ready in memory and delayed on disk must be written before it leaves memory.
 * Returns false if its record is damaged.
 */
bool job_write_ready(struct queue *queue, struct job *job);

#endif /* QUEUE_JOBS_JOB_H */
