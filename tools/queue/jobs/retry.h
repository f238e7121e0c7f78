/* SPDX-License-Identifier: GPL-2.0 */
/* Retries of jobs whose attempt has failed, and dead jobs. */
#ifndef QUEUE_JOBS_RETRY_H
#define QUEUE_JOBS_RETRY_H

#include "common/retry_policy.h"
#include "queue/jobs/state.h"

/* The policy of a tube: its own or the default one, and the name of its dead tube. */
struct retry_policy retry_policy_of(const struct tube *tube);

/* Why an attempt has failed; the record keeps the first bytes. */
void retry_set_reason(struct job_record *record, const void *reason, uint64_t len);

/*
 * An attempt at a reserved job has failed: change @record, its record, so that the job is
 * delayed for the next attempt, or is dead. Returns true if it is dead, else *@delay_ns is
 * the delay. The caller hands @record to job_become().
 */
bool retry_or_bury(struct queue *queue, struct job *job, struct job_record *record,
		   uint64_t *delay_ns);

/*
 * The holder of a job has given it back by "release": change its record. With a policy that
 * was set this is a failed attempt; the delay is the policy's if @delay_ns is 0.
 */
void retry_released(struct queue *queue, struct job *job, struct job_record *record,
		    uint64_t delay_ns);

/*
 * A job was taken from its holder: change its record. With a policy that was set this is a
 * failed attempt, for that reason, else the job is ready.
 */
void retry_taken(struct queue *queue, struct job *job, struct job_record *record,
		 const char *reason);

/*
 * A job is given back, and no attempt has failed: change its record. It is ready, or stays
 * dead, whatever it was when it was reserved by its id.
 */
void retry_undone(struct queue *queue, struct job_record *record);

/* Change the record of a dead job: it returns to its first tube, with no failed attempts. */
void retry_revive(struct queue *queue, struct job_record *record);

/* A dead job that came from tube @number is deleted. */
void retry_forget_origin(struct queue *queue, uint32_t number);

#endif /* QUEUE_JOBS_RETRY_H */
