/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lane: a thread that does one piece of work after the other. What may take long, such as reads
 * of a disk, is done in one, so that it delays nothing but the same kind of work.
 */
#ifndef METRICS_LANE_H
#define METRICS_LANE_H

#include <bsd/sys/queue.h>
#include <pthread.h>
#include <stdbool.h>

/* So many pieces of work may wait for one lane. */
#define LANE_MAX	64

/**
 * struct lane_work - a piece of work, embedded in a structure of its owner
 * @run: does it, in the thread of the lane; or, if @stopped, only says that it is not done.
 * @entry: in the lane.
 */
struct lane_work {
	void (*run)(struct lane_work *work, bool stopped);
	TAILQ_ENTRY(lane_work) entry;
};

TAILQ_HEAD(lane_list, lane_work);

/**
 * struct lane - a lane
 * @thread: its thread.
 * @lock: guards what follows.
 * @wake: signalled when there is work, and for the stop.
 * @list: the work that waits, the oldest first.
 * @nr: its number of pieces.
 * @stop: no more work is done.
 */
struct lane {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct lane_list list;
	unsigned int nr;
	bool stop;
};

/* Returns 0 or a negative errno. */
int lane_start(struct lane *lane);

/* Do no more work, and wait for the end of the thread. Work that waits is told so. */
void lane_stop(struct lane *lane);

/* Returns false if there is too much work, or the lane stops. */
bool lane_add(struct lane *lane, struct lane_work *work);

/* The calling thread gives way to others: it is for people, and they can wait for a moment. */
void lane_be_nice(void);

#endif /* METRICS_LANE_H */
