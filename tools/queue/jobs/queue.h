/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue as a whole: opening and closing, a turn of the loop, alarms, and numbers for
 * stats and metrics.
 */
#ifndef QUEUE_JOBS_QUEUE_H
#define QUEUE_JOBS_QUEUE_H

#include "alarm/alarm.h"
#include "common/histogram.h"
#include "queue/store/config.h"

struct queue;
struct tube;

/**
 * struct queue_config - limits
 * @memory: bytes for jobs and tubes in memory.
 * @max_jobs: limit of all jobs and schedules; 0: the disk is the limit.
 * @max_tube_jobs: limit of those of a tube; 0: the disk is the limit.
 * @max_job_size: limit of the bytes of a body.
 * @window_ns: jobs that are due within it are in memory, as far as there is room.
 * @clock_wait_ns: how long to wait at the start for a wall clock that is behind.
 * @sync: as the store was opened, for stats.
 * @sync_interval_ns: as the store was opened, for stats.
 */
struct queue_config {
	size_t memory;
	uint64_t max_jobs;
	uint64_t max_tube_jobs;
	uint32_t max_job_size;
	uint64_t window_ns;
	uint64_t clock_wait_ns;
	enum store_sync sync;
	uint64_t sync_interval_ns;
};

/**
 * struct queue_stats - for stats and metrics; gauges first
 */
struct queue_stats {
	uint64_t urgent;
	uint64_t ready;
	uint64_t reserved;
	uint64_t delayed;
	uint64_t buried;
	uint64_t tubes;
	uint64_t max_tubes;
	uint64_t resident;		/* jobs that are in memory */
	uint64_t resident_bytes;
	uint64_t connections;
	uint64_t producers;
	uint64_t workers;
	uint64_t waiting;
	uint64_t schedules;
	/* Since the start. */
	uint64_t total_jobs;
	uint64_t total_connections;
	uint64_t job_timeouts;
	uint64_t retries;
	uint64_t dead;
	uint64_t refused_full;		/* puts answered with OUT_OF_MEMORY */
	uint64_t loaded;		/* jobs taken into memory from disk */
	uint64_t evicted;
	uint64_t uptime_ns;
	bool draining;
	/* Of delayed jobs, in ns: from due to ready, and from due to reserved. */
	struct histogram ready_late;
	struct histogram reserved_late;
};

/*
 * @store and @alarms stay the caller's, and are closed after the queue. Returns 0; -ENOMEM;
 * -EBADMSG.
 */
int queue_create(struct queue **queue, const struct queue_config *config,
		 struct store *store, struct alarms *alarms);

/* Every session must have ended before. */
void queue_destroy(struct queue *queue);

/*
 * The daemon stops: sessions that end from now on do not give their jobs back. The next
 * start finds these jobs reserved.
 */
void queue_stop(struct queue *queue);

/* Refuse puts from now on (SIGUSR1). */
void queue_drain(struct queue *queue);

bool queue_is_draining(const struct queue *queue);

/*
 * alarms_fd() is readable: handle what is due. Returns true if some may be left, because they have
 * changes and the store's writer is behind; the caller should wait for that before the next call.
 */
bool queue_alarms(struct queue *queue);

/*
 * End a turn of the loop: hand changes to the kernel and to the store, and continue work
 * that is done piece by piece. Returns true if more work is left: do not sleep.
 */
bool queue_turn(struct queue *queue);

/* Sessions wait for this tube, and it may have a job for them: serve it this turn. */
void queue_serve_later(struct queue *queue, struct tube *tube);

/* Give ready jobs to the sessions that wait for them. */
void queue_serve(struct queue *queue);

void queue_stats(struct queue *queue, struct queue_stats *stats);

/* Numbers of a tube, for metrics. */
struct tube_stats {
	const char *name;
	uint64_t urgent, ready, reserved, delayed, buried, waiting;
	uint64_t oldest_ready_s;	/* how long the oldest ready job has been ready */
	/* Since the start. */
	uint64_t total, reserves, retries, dead;
};

void queue_each_tube(struct queue *queue,
		     void (*each)(void *context, const struct tube_stats *stats),
		     void *context);

#endif /* QUEUE_JOBS_QUEUE_H */
