// SPDX-License-Identifier: GPL-2.0
/* What a page for people shows of the queue. */
#include <string.h>

#include "common/time.h"
#include "queue/jobs/age.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/retry.h"
#include "queue/jobs/show.h"
#include "queue/jobs/tube.h"
#include "queue/store/counts.h"

/* --- the queue -------------------------------------------------------------------------- */

void show_queue(struct queue *queue, struct queue_stats *stats)
{
	*stats = queue->stats;
	stats->ready = queue->nr[IS_READY];
	stats->reserved = queue->nr[IS_RESERVED];
	stats->delayed = queue->nr[IS_DELAYED];
	stats->buried = queue->nr[IS_BURIED];
	stats->schedules = queue->schedules.nr;
	stats->tubes = queue->nr_tubes;
	stats->max_tubes = queue->max_tubes;
	stats->resident = queue->nr_resident;
	stats->resident_bytes = queue->nr_resident * sizeof(struct job);
	stats->connections = queue->nr_sessions;
	stats->uptime_ns = alarms_now_ns(ALARM_BOOT) - queue->start_ns;
	stats->draining = queue->draining;
}

/* --- tubes ------------------------------------------------------------------------------ */

static void copy_name(char *to, const struct tube *tube)
{
	strcpy(to, tube ? tube->name : "");
}

static void show_numbers(struct queue *queue, const struct tube *tube, struct tube_shown *shown)
{
	copy_name(shown->name, tube);
	shown->ready = tube->nr[IS_READY];
	shown->reserved = tube->nr[IS_RESERVED];
	shown->delayed = tube->nr[IS_DELAYED];
	shown->buried = tube->nr[IS_BURIED];
	shown->dead = store_counts(queue->store, tube->number)->died;
	shown->waiting = tube->nr_waiting;
	shown->oldest_ready_s = age_oldest_s(queue, tube);
	shown->put = tube->total_jobs;
	shown->reserves = tube->reserves;
	shown->deleted = tube->cmd_delete;
	shown->retries = tube->retries;
	shown->died = tube->dead;
}

size_t show_tubes(struct queue *queue, const char *after, struct tube_shown *tubes, size_t most)
{
	struct tube *tube = tube_after(queue, after);
	size_t nr;

	for (nr = 0; nr < most && tube; nr++, tube = tube_next(tube))
		show_numbers(queue, tube, &tubes[nr]);
	return nr;
}

bool show_tube(struct queue *queue, const char *name, struct tube_details *details)
{
	struct tube *tube = tube_find(queue, name);
	uint64_t now_ns = alarms_now_ns(ALARM_BOOT);
	enum job_state state;

	if (!tube)
		return false;
	show_numbers(queue, tube, &details->numbers);
	details->number = tube->number;
	details->now_ns[JOB_READY] = 0;
	details->now_ns[JOB_BURIED] = 0;
	details->now_ns[JOB_DELAYED] = clock_now_ns(&queue->clock);
	details->now_ns[JOB_WALL] = alarms_now_ns(ALARM_WALL);
	for (state = JOB_READY; state <= JOB_BURIED; state++) {
		details->first[state] = (struct job_place){ .tube = tube->number, .state = state };
		if (tube->number && (state == JOB_READY || state == JOB_BURIED))
			store_first_place(queue->store, &details->first[state]);
	}
	details->policy = retry_policy_of(tube);
	details->has_policy = tube->policy.max_attempts;
	details->using = tube->nr_using;
	details->watching = tube->nr_watching;
	details->pause_left_ns = tube->pause_ns && tube->pause_until_ns > now_ns ?
		tube->pause_until_ns - now_ns : 0;
	return true;
}

/* --- jobs ------------------------------------------------------------------------------- */

uint64_t show_due_ms(struct queue *queue, const struct job_place *place, enum job_status status)
{
	struct job *job = job_resident(queue, place->id);
	uint64_t due_ns = 0;

	if (status == IS_RESERVED)
		due_ns = job->deadline_ns + queue->clock.base_ns + clock_skew_ns(&queue->clock);
	else if (status == IS_DELAYED && place->state == JOB_WALL)
		due_ns = place->order;
	else if (status == IS_DELAYED)
		due_ns = place->order + clock_skew_ns(&queue->clock);
	return due_ns / NSEC_PER_MSEC;
}

/* A job that is due counts as delayed until it is loaded. */
static enum job_status status_on_disk(enum job_state state)
{
	switch (state) {
	case JOB_READY:
		return IS_READY;
	case JOB_BURIED:
		return IS_BURIED;
	default:
		return IS_DELAYED;
	}
}

void show_job(struct queue *queue, struct job_shown *shown)
{
	struct job *job = job_resident(queue, shown->place.id);
	uint64_t now_ns = clock_now_ns(&queue->clock);

	if (job)
		shown->place = job_place(job);
	shown->status = job ? job->status : status_on_disk(shown->place.state);
	shown->tube = shown->place.tube;
	shown->due_ms = show_due_ms(queue, &shown->place, shown->status);
	shown->age_ns = now_ns > shown->created_ns ? now_ns - shown->created_ns : 0;
	copy_name(shown->tube_name, tube_by_number(queue, shown->tube));
	copy_name(shown->origin_name, shown->origin ? tube_by_number(queue, shown->origin) : NULL);
}
