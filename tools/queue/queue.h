/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs and tubes. See queue.c for what must always hold.
 */
#ifndef TWHEELQ_QUEUE_H
#define TWHEELQ_QUEUE_H

#include "alarm.h"
#include "histogram.h"
#include "session.h"
#include "store.h"

/**
 * struct queue_config - limits
 * @memory: bytes for jobs and tubes that are in memory.
 * @max_jobs: how many jobs there may be in all; 0: as many as the disk has room for.
 * @max_tube_jobs: how many in one tube; 0: the same.
 * @max_job_size: bytes of a body.
 * @window_ns: jobs that are due within it are in memory, as far as there is room.
 * @sync: as the store was opened, for stats.
 * @sync_interval_ns: the same.
 */
struct queue_config {
	size_t memory;
	uint64_t max_jobs;
	uint64_t max_tube_jobs;
	uint32_t max_job_size;
	uint64_t window_ns;
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
	uint64_t resident;		/* jobs that are in memory */
	uint64_t resident_bytes;
	uint64_t connections;
	uint64_t producers;
	uint64_t workers;
	uint64_t waiting;
	/* Since the start. */
	uint64_t commands[NR_OPS];
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
	/* Of jobs that were delayed: from due to ready, and from due to reserved, in ns. */
	struct histogram ready_late;
	struct histogram reserved_late;
};

struct queue;

/* Both stay the caller's. Returns 0; -ENOMEM, -EBADMSG. */
int queue_create(struct queue **queue, const struct queue_config *config,
		 struct store *store, struct alarms *alarms);

/* All sessions are gone before. */
void queue_destroy(struct queue *queue);

/*
 * The daemon stops: what sessions have reserved is not given back any more when they end, but
 * is found to have been reserved at the next start.
 */
void queue_stop(struct queue *queue);

/* Refuse puts from now on (SIGUSR1). */
void queue_drain(struct queue *queue);

/* alarms_fd() is readable: make ready what is due. */
void queue_alarms(struct queue *queue);

/*
 * A turn of the loop is over: bring what changed to the kernel and to the store, and go on
 * with work that is done a piece at a time. Returns true if there is more of that: then the
 * loop does not sleep.
 */
bool queue_turn(struct queue *queue);

void queue_stats(struct queue *queue, struct queue_stats *stats);

/* Tubes for metrics. */
struct tube_stats {
	const char *name;
	uint64_t urgent, ready, reserved, delayed, buried, waiting, total;
};

void queue_each_tube(struct queue *queue,
		     void (*each)(void *context, const struct tube_stats *stats),
		     void *context);

#endif /* TWHEELQ_QUEUE_H */
