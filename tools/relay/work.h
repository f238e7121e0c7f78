/* SPDX-License-Identifier: GPL-2.0 */
/* Threads for calls of librdkafka that wait for brokers. */
#ifndef RELAY_WORK_H
#define RELAY_WORK_H

#include <stdatomic.h>

#include "relay/state.h"

/**
 * struct relay_job - something that may take long
 * @link: in a list.
 * @number: of two jobs with one number, only one runs at a time; negative: any may run.
 * @abandoned: nobody wants the result any more: @run should return true soon.
 * @run: called in another thread. It may use the clients of the relay, and nothing else that
 *	the loop may change. Returns false if it is to be called again after a while.
 * @done: called in the loop afterwards; frees the job.
 *
 * From relay_work_add() until @done is called, only @abandoned may be used by the loop.
 */
struct relay_job {
	TAILQ_ENTRY(relay_job) link;
	int32_t number;
	atomic_bool abandoned;
	bool (*run)(struct relay *relay, struct relay_job *job);
	void (*done)(struct relay *relay, struct relay_job *job);
};

/* Start the threads. Logs what is wrong; returns an exit status. */
int relay_work_open(struct relay *relay);

/* Abandon all jobs, wait for those that run, and call @done of all. */
void relay_work_close(struct relay *relay);

/* Becomes readable when a job is done. */
int relay_work_fd(const struct relay_work *work);

void relay_work_add(struct relay *relay, struct relay_job *job);

/* Call @done of the jobs that are done. */
void relay_work_poll(struct relay *relay);

/* For @run: is the job to end? */
bool relay_work_over(const struct relay *relay, const struct relay_job *job);

#endif /* RELAY_WORK_H */
