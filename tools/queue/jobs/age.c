// SPDX-License-Identifier: GPL-2.0
/*
 * How long the ready jobs of a tube have been ready.
 *
 * Jobs in memory are in a list of their tube in the order in which they became ready. Jobs
 * that are on disk only have no age of their own: all of them count as ready since the oldest
 * one of them left memory, or since the start of the daemon. So the age of the oldest job may
 * be too great for a while, but it is not too small, with one exception: where jobs are loaded
 * behind an older one, a few others that are older, too, are behind them.
 */
#include "common/time.h"
#include "queue/jobs/age.h"

uint32_t age_now_s(const struct queue *queue)
{
	return (alarms_now_ns(ALARM_BOOT) - queue->start_ns) / NSEC_PER_SEC & READY_S_MASK;
}

static uint32_t age_s(const struct queue *queue, uint32_t since_s)
{
	return (age_now_s(queue) - since_s) & READY_S_MASK;
}

void age_enter(struct queue *queue, struct job *job, uint32_t ready_s)
{
	struct job_list *list = &job->tube->by_age;
	struct job *oldest = TAILQ_FIRST(list);

	job->ready_s = ready_s;
	if (ready_s == age_now_s(queue))
		TAILQ_INSERT_TAIL(list, job, by_age);
	else if (oldest && age_s(queue, oldest->ready_s) > age_s(queue, ready_s))
		TAILQ_INSERT_AFTER(list, oldest, job, by_age);
	else
		TAILQ_INSERT_HEAD(list, job, by_age);
}

void age_leave(struct job *job)
{
	TAILQ_REMOVE(&job->tube->by_age, job, by_age);
	job->holder = NULL;
}

void age_cut(struct queue *queue, struct tube *tube, uint32_t ready_s)
{
	if (tube->whole || age_s(queue, tube->cut_s) < age_s(queue, ready_s))
		tube->cut_s = ready_s;
}

uint64_t age_oldest_s(const struct queue *queue, const struct tube *tube)
{
	struct job *oldest = TAILQ_FIRST(&tube->by_age);
	uint32_t oldest_s = oldest ? age_s(queue, oldest->ready_s) : 0;
	uint32_t cut_s = tube->whole ? 0 : age_s(queue, tube->cut_s);

	return oldest_s > cut_s ? oldest_s : cut_s;
}
