// SPDX-License-Identifier: GPL-2.0
/*
 * The changes of a job.
 *
 *	   put, due, kick,               reserve
 *	   TTR over, release   +-------+ -------> +----------+
 *	  -------------------> | READY |          | RESERVED |
 *	                       +-------+ <------- +----------+
 *	    due ^                 |      release, TTR,  |  |
 *	        |                 |      disconnect     |  | bury, the last attempt
 *	   +---------+  <---------|---------------------+  |
 *	   | DELAYED |   release with a delay, a retry     v
 *	   +---------+ ---------------------------->  +--------+
 *	        ^           (never by itself)         | BURIED |
 *	        +------ put, reschedule               +--------+ --- kick ---> READY
 *
 * The disk has the truth, except for reservations. Memory has a part of it:
 *
 * 1. A job in memory has the fields of its record on disk (struct job's @stored, @order,
 *    @pri, @tube, @keyed). Its status may be further: RESERVED; or READY while the disk has
 *    it DELAYED, since becoming due is not written. A job that is not in memory has the
 *    status that the disk says.
 * 2. In memory are: every reserved job; the delayed jobs before the cut of their window; the
 *    ready jobs of each tube before its cut; jobs that are READY in memory and DELAYED on
 *    disk; and the job that a command names, while it runs.
 * 3. Every change goes to the store first, which cannot fail, then to memory. A command makes
 *    one change, so the disk never has half of one.
 * 4. Jobs are counted by status, in memory or not, by tube and in all. The store's own counts
 *    are by index.
 *
 * All of this runs in one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "queue/jobs/age.h"
#include "queue/jobs/anchor.h"
#include "queue/jobs/job.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/retry.h"
#include "queue/jobs/schedule.h"
#include "queue/jobs/tube.h"
#include "queue/jobs/window.h"
#include "queue/store/batch.h"
#include "queue/store/read.h"

#define URGENT_PRI	1024

/* --- order ------------------------------------------------------------------------------ */

static uint64_t job_rank(const struct job *job)
{
	return job->status == IS_RESERVED ? job->deadline_ns : job->pri;
}

int job_compare(const struct job *a, const struct job *b)
{
	uint64_t rank_a = job_rank(a), rank_b = job_rank(b);

	if (rank_a != rank_b)
		return rank_a < rank_b ? -1 : 1;
	if (job_id(a) != job_id(b))
		return job_id(a) < job_id(b) ? -1 : 1;
	return 0;
}

RB_GENERATE(job_tree, job, node, job_compare)

/* --- counts ----------------------------------------------------------------------------- */

static void count_job(struct queue *queue, struct tube *tube, enum job_status status,
		      uint32_t pri, int by)
{
	tube->nr[status] += by;
	queue->nr[status] += by;
	if (status == IS_READY && pri < URGENT_PRI) {
		tube->nr_urgent += by;
		queue->stats.urgent += by;
	}
}

/* --- places ----------------------------------------------------------------------------- */

void place_ready(struct job_place *place)
{
	place->state = JOB_READY;
	place->order = 0;
}

void place_delayed(struct queue *queue, struct job_place *place, uint64_t delay_ns)
{
	if (!delay_ns) {
		place_ready(place);
		return;
	}
	place->state = JOB_DELAYED;
	place->order = clock_now_ns(&queue->clock) + delay_ns;
}

void place_buried(struct queue *queue, struct job_place *place)
{
	uint64_t now_ns = clock_now_ns(&queue->clock);

	place->state = JOB_BURIED;
	queue->last_buried = now_ns > queue->last_buried ? now_ns : queue->last_buried + 1;
	place->order = queue->last_buried;
}

/* --- in memory and out of it ------------------------------------------------------------ */

void job_enter_tube(struct queue *queue, struct job *job, uint32_t ready_s)
{
	RB_INSERT(job_tree, &job->tube->ready, job);
	age_enter(queue, job, ready_s);
	job->tube->nr_resident++;
	job->placed = true;
}

void job_leave_tube(struct job *job)
{
	RB_REMOVE(job_tree, &job->tube->ready, job);
	age_leave(job);
	job->tube->nr_resident--;
	job->placed = false;
}

static void leave_holder(struct queue *queue, struct job *job)
{
	struct holder *holder = job->holder;

	RB_REMOVE(job_tree, &holder->reserved, job);
	holder->nr--;
	alarm_cancel(queue->alarms, &job->alarm);
	if (holder->session)
		session_rearm(holder->session);
	job->holder = NULL;
}

/* Remove a job from the tree and the alarm of its status. */
static void job_displace(struct queue *queue, struct job *job)
{
	if (!job->placed)
		return;
	switch (job->status) {
	case IS_READY:
		job_leave_tube(job);
		break;
	case IS_DELAYED:
		window_disarm(queue, job);
		break;
	case IS_RESERVED:
		leave_holder(queue, job);
		break;
	default:
		break;
	}
	job->placed = false;
}

bool job_needs_record(const struct job *job)
{
	return job->keyed || job->linked;
}

bool job_write_ready(struct queue *queue, struct job *job)
{
	struct job_place old = job_place(job);
	struct job_record record;

	if (job->stored == JOB_READY)
		return true;
	if (store_get(queue->store, job_id(job), &record))
		return false;
	place_ready(&record.place);
	store_move(queue->store, &old, &record);
	job->stored = JOB_READY;
	job->order = 0;
	return true;
}

static void settle_ready(struct queue *queue, struct job *job)
{
	struct job_place place = job_place(job);
	struct tube *tube = job->tube;

	if (tube_takes(queue, tube, &place) || !job_write_ready(queue, job))
		job_enter_tube(queue, job, age_now_s(queue));
	else
		job_forget(queue, job);
	queue_serve_later(queue, tube);
}

static void settle_delayed(struct queue *queue, struct job *job)
{
	struct job_place place = job_place(job);

	if (window_has(queue, &place))
		window_arm(queue, job);
	else
		job_forget(queue, job);
}

void job_settle(struct queue *queue, struct job *job)
{
	if (job->placed)
		return;
	switch (job->status) {
	case IS_READY:
		settle_ready(queue, job);
		break;
	case IS_DELAYED:
		settle_delayed(queue, job);
		break;
	case IS_BURIED:
		job_forget(queue, job);
		break;
	default:
		break;
	}
}

int job_find(struct queue *queue, uint64_t id, struct job **job, struct job_record *record)
{
	int err;

	record->place.id = 0;
	*job = job_resident(queue, id);
	if (*job)
		return (*job)->status == IS_BROKEN ? -EBADMSG : 0;
	err = store_get(queue->store, id, record);
	if (err)
		return err;
	if (!tube_by_number(queue, record->place.tube))
		return -EBADMSG;
	*job = job_new(queue, &record->place);
	if (!*job)
		return -ENOMEM;
	(*job)->linked = record->origin || record->schedule;
	return 0;
}

int job_read(struct queue *queue, struct job *job, struct job_record *record)
{
	if (record->place.id == job_id(job))
		return 0;
	if (!store_get(queue->store, job_id(job), record))
		return 0;
	job_break(queue, job);
	return -EBADMSG;
}

/* --- changes ---------------------------------------------------------------------------- */

/* Change the status in memory; the place on disk stays. */
static void set_status(struct queue *queue, struct job *job, enum job_status status)
{
	job_displace(queue, job);
	count_job(queue, job->tube, job->status, job->pri, -1);
	job->status = status;
	count_job(queue, job->tube, status, job->pri, 1);
}

void job_become(struct queue *queue, struct job *job, const struct job_record *record)
{
	static const enum job_status statuses[] = {
		[JOB_READY] = IS_READY,
		[JOB_DELAYED] = IS_DELAYED,
		[JOB_WALL] = IS_DELAYED,
		[JOB_BURIED] = IS_BURIED,
	};
	const struct job_place *place = &record->place;
	struct job_place old = job_place(job);
	struct tube *tube = job->tube;

	store_move(queue->store, &old, record);
	if (place->state == JOB_DELAYED && place->order != old.order)
		anchor_delay_began(queue, record);
	if (record->schedule && place->state == JOB_BURIED)
		schedule_job_ended(queue, record->schedule);
	job_displace(queue, job);
	count_job(queue, tube, job->status, job->pri, -1);
	job->tube = tube_by_number(queue, place->tube);
	job->order = place->order;
	job->pri = place->pri;
	job->stored = place->state;
	job->keyed = place->keyed;
	job->linked = record->origin || record->schedule;
	job->seq = store_seq(queue->store);
	job->status = statuses[place->state];
	count_job(queue, job->tube, job->status, job->pri, 1);
	job_settle(queue, job);
	tube_put(queue, tube);
}

void job_gone(struct queue *queue, struct job *job, const struct job_record *record)
{
	struct job_place place = job_place(job);
	struct tube *tube = job->tube;

	store_delete(queue->store, &place, record->key, job->keyed ? record->key_len : 0);
	if (job->linked && record->schedule)
		schedule_job_ended(queue, record->schedule);
	job_displace(queue, job);
	count_job(queue, tube, job->status, job->pri, -1);
	if (job->linked && record->origin)
		retry_forget_origin(queue, record->origin);
	job_forget(queue, job);
	tube_put(queue, tube);
}

void job_arrived(struct queue *queue, struct tube *tube, const struct job_record *record)
{
	const struct job_place *place = &record->place;
	bool ready = place->state == JOB_READY;
	struct job *job;

	count_job(queue, tube, ready ? IS_READY : IS_DELAYED, place->pri, 1);
	tube->total_jobs++;
	queue->stats.total_jobs++;
	if (place->state == JOB_DELAYED)
		anchor_delay_began(queue, record);
	/* tube_takes() may have loaded the job already: the store has it. */
	if ((ready ? !tube_takes(queue, tube, place) : !window_has(queue, place)) ||
	    job_resident(queue, place->id)) {
		queue_serve_later(queue, tube);
		return;
	}
	job = job_new(queue, place);
	if (job)
		job_settle(queue, job);
	else
		window_cut(queue, place);
}

void job_kick(struct queue *queue, struct job *job, struct job_record *record)
{
	record->kicks++;
	retry_revive(queue, record);
	place_ready(&record->place);
	job_become(queue, job, record);
}

void job_break(struct queue *queue, struct job *job)
{
	log_say(LOG_ERR, "job %llu of tube \"%s\" is damaged on disk; it is set aside",
		(unsigned long long)job_id(job), job->tube->name);
	set_status(queue, job, IS_BROKEN);
}

/* --- reservations ----------------------------------------------------------------------- */

static void note_lateness(struct queue *queue, const struct job *job,
			  struct histogram *histogram)
{
	uint64_t now_ns = job->stored == JOB_WALL ? alarms_now_ns(ALARM_WALL) :
						    clock_now_ns(&queue->clock);

	if (now_ns >= job->order)
		histogram_add(histogram, now_ns - job->order);
}

static void enter_holder(struct job *job, struct holder *holder, uint64_t deadline_ns)
{
	job->holder = holder;
	job->deadline_ns = deadline_ns;
	RB_INSERT(job_tree, &holder->reserved, job);
	holder->nr++;
	job->placed = true;
}

/* The time to run of a job, of @record or of the disk. */
static int get_ttr(struct queue *queue, struct job *job, const struct job_record *record,
		   uint64_t *ttr_ns)
{
	struct job_record read;
	int err = 0;

	if (!record || record->place.id != job_id(job)) {
		err = store_get(queue->store, job_id(job), &read);
		record = &read;
	}
	if (!err)
		*ttr_ns = record->ttr_ns;
	return err;
}

int job_reserve(struct session *session, struct job *job, const struct job_record *record)
{
	struct queue *queue = session->queue;
	const void *body;
	uint64_t ttr_ns;
	size_t len;

	if (get_ttr(queue, job, record, &ttr_ns) ||
	    store_get_body(queue->store, job_id(job), &body, &len)) {
		job_break(queue, job);
		return -EBADMSG;
	}
	/* Became ready by its due time: record the latency. */
	if (job->status == IS_READY && job->stored != JOB_READY)
		note_lateness(queue, job, &queue->stats.reserved_late);
	set_status(queue, job, IS_RESERVED);
	job->tube->reserves++;
	enter_holder(job, session->holder, alarms_now_ns(ALARM_BOOT) + ttr_ns);
	alarm_add(queue->alarms, &job->alarm, job_id(job), ALARM_BOOT, job->deadline_ns);
	session->ops->reserved(session, job, body, len);
	store_mark(queue->store, job_id(job));
	return 0;
}

void job_touch(struct queue *queue, struct job *job, uint64_t ttr_ns)
{
	RB_REMOVE(job_tree, &job->holder->reserved, job);
	job->deadline_ns = alarms_now_ns(ALARM_BOOT) + ttr_ns;
	RB_INSERT(job_tree, &job->holder->reserved, job);
	alarm_move(queue->alarms, &job->alarm, job->deadline_ns);
}

void job_abandoned(struct queue *queue, struct job *job, bool hung_up)
{
	struct job_record record;

	if (store_get(queue->store, job_id(job), &record)) {
		job_break(queue, job);
		return;
	}
	record.reserves++;
	if (hung_up)
		retry_taken(queue, job, &record, "connection closed");
	else
		retry_undone(queue, &record);
	job_become(queue, job, &record);
}

void job_leave_reserved(struct queue *queue, struct job *job)
{
	RB_REMOVE(job_tree, &job->holder->reserved, job);
	alarm_cancel(queue->alarms, &job->alarm);
	job_forget(queue, job);
}

static void job_timed_out(struct queue *queue, struct job *job)
{
	struct job_record record;

	queue->stats.job_timeouts++;
	if (store_get(queue->store, job_id(job), &record)) {
		job_break(queue, job);
		return;
	}
	record.reserves++;
	record.timeouts++;
	retry_taken(queue, job, &record, "time to run is over");
	job_become(queue, job, &record);
}

void job_alarm(struct queue *queue, uint64_t id)
{
	struct job *job = job_resident(queue, id);

	/* The alarm may have been armed again after its id was taken. */
	if (!job || !job->placed || alarm_pending(&job->alarm))
		return;
	if (job->status == IS_DELAYED) {
		note_lateness(queue, job, &queue->stats.ready_late);
		set_status(queue, job, IS_READY);
		job_settle(queue, job);
	} else if (job->status == IS_RESERVED) {
		job_timed_out(queue, job);
	}
}
