/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a page for people shows of the queue. Each function is a small piece of work, whatever the
 * number of jobs, tubes and sessions.
 */
#ifndef QUEUE_JOBS_SHOW_H
#define QUEUE_JOBS_SHOW_H

#include "common/retry_policy.h"
#include "queue/jobs/queue.h"
#include "queue/jobs/state.h"

/**
 * struct tube_shown - numbers of a tube
 * @name: its name.
 * @ready: jobs by status.
 * @reserved: jobs by status.
 * @delayed: jobs by status.
 * @buried: jobs by status.
 * @dead: jobs that died in it, and are still there, in any tube.
 * @waiting: sessions that wait for a job of it.
 * @oldest_ready_s: how long its oldest ready job has been ready.
 * @put: jobs put since the start.
 * @reserves: reserves since the start.
 * @deleted: deletes since the start.
 * @retries: failed attempts since the start that are retried.
 * @died: jobs that died since the start.
 */
struct tube_shown {
	char name[TUBE_NAME_MAX + 1];
	uint64_t ready;
	uint64_t reserved;
	uint64_t delayed;
	uint64_t buried;
	uint64_t dead;
	uint64_t waiting;
	uint64_t oldest_ready_s;
	uint64_t put;
	uint64_t reserves;
	uint64_t deleted;
	uint64_t retries;
	uint64_t died;
};

/*
 * Copy the numbers of at most @most tubes whose names are after @after. Returns how many there
 * were; fewer than @most: these are the last ones.
 */
size_t show_tubes(struct queue *queue, const char *after, struct tube_shown *tubes, size_t most);

/**
 * struct tube_details - more of one tube
 * @numbers: its numbers.
 * @number: its number on disk; 0: it has no jobs.
 * @first: by state: not after the first job of its index.
 * @now_ns: by state: a delayed job that is due later is not ready.
 * @policy: its retry policy, or the default one.
 * @has_policy: it was set.
 * @using: sessions that use it.
 * @watching: sessions that watch it.
 * @pause_left_ns: 0: it is not paused.
 */
struct tube_details {
	struct tube_shown numbers;
	uint32_t number;
	struct job_place first[JOB_BURIED + 1];
	uint64_t now_ns[JOB_BURIED + 1];
	struct retry_policy policy;
	bool has_policy;
	uint64_t using;
	uint64_t watching;
	uint64_t pause_left_ns;
};

/* Returns false if there is no such tube. */
bool show_tube(struct queue *queue, const char *name, struct tube_details *details);

/**
 * struct job_shown - a job
 * @place: its place on disk, as it was read; only @id is used of a job that is in memory.
 * @created_ns: when it was put, on the queue's clock.
 * @origin: the number of the tube where it died; or 0.
 * @status: result: its status now; NR_STATUS: it is not there any more.
 * @tube: result: the number of its tube.
 * @due_ms: result: when its delay or its time to run ends, by the wall clock; 0: it has neither.
 * @age_ns: result: the time since it was put.
 * @tube_name: result: of its tube.
 * @origin_name: result: of the tube @origin; or "".
 */
struct job_shown {
	struct job_place place;
	uint64_t created_ns;
	uint32_t origin;
	enum job_status status;
	uint32_t tube;
	uint64_t due_ms;
	uint64_t age_ns;
	char tube_name[TUBE_NAME_MAX + 1];
	char origin_name[TUBE_NAME_MAX + 1];
};

/* Fill in the results of a job. */
void show_job(struct queue *queue, struct job_shown *job);

/* When a delay or a time to run ends, by the wall clock; 0: the job has neither. */
uint64_t show_due_ms(struct queue *queue, const struct job_place *place, enum job_status status);

/* queue_stats() without the producers and workers, for which it looks at each session. */
void show_queue(struct queue *queue, struct queue_stats *stats);

#endif /* QUEUE_JOBS_SHOW_H */
