/* SPDX-License-Identifier: GPL-2.0 */
/* Schedules: jobs that are put again and again by the wall clock. */
#ifndef QUEUE_JOBS_SCHEDULE_H
#define QUEUE_JOBS_SCHEDULE_H

#include "queue/jobs/state.h"

/**
 * struct schedule_wish - a schedule that a client asks for
 * @name: its name, unique in the tube.
 * @pri: priority of its jobs.
 * @interval_ns: time between them.
 * @first_ns: one of their times, on the wall clock; none is before.
 * @ttr_ns: their time to run.
 * @body: their body.
 * @body_len: its length.
 */
struct schedule_wish {
	const char *name;
	uint32_t pri;
	uint64_t interval_ns;
	uint64_t first_ns;
	uint64_t ttr_ns;
	const void *body;
	uint32_t body_len;
};

void schedules_init(struct queue *queue);

/*
 * Make a schedule of a tube, or replace the one of this name. Times before now are not its
 * own. Returns 0; -ENOMEM: a limit is reached; -EBADMSG; -EIO.
 */
int schedule_set(struct queue *queue, struct tube *tube, const struct schedule_wish *wish);

/* End a schedule; its last job stays. Returns 0; -ENOENT; -EBADMSG; -EIO. */
int schedule_stop(struct queue *queue, struct tube *tube, const char *name);

/* A job of a schedule is deleted, buried or dead: the schedule may wait for that. */
void schedule_job_ended(struct queue *queue, uint64_t id);

/* The alarm of the schedules has fired. */
void schedules_alarm(struct queue *queue);

/* The wall clock was set. */
void schedules_clock_was_set(struct queue *queue);

/* Put the jobs that are due, a piece a turn; true: more are left. */
bool schedules_turn(struct queue *queue);

#endif /* QUEUE_JOBS_SCHEDULE_H */
