// SPDX-License-Identifier: GPL-2.0
/*
 * The queue as a whole.
 *
 * A turn of the loop runs commands, and alarms call queue_alarms(). Both make jobs ready.
 * Sessions that wait get them only at the end of a command or of queue_alarms(), in
 * queue_serve(): of jobs that become ready together the most urgent one is given out first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/stdlib.h>

#include "common/log.h"
#include "queue/jobs/age.h"
#include "queue/jobs/anchor.h"
#include "queue/jobs/backup.h"
#include "queue/jobs/job.h"
#include "queue/jobs/purge.h"
#include "queue/jobs/queue.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/retry.h"
#include "queue/jobs/schedule.h"
#include "queue/jobs/show.h"
#include "queue/jobs/tube.h"
#include "queue/jobs/window.h"
#include "queue/store/batch.h"
#include "queue/store/read.h"
#include "queue/store/writer.h"

/* This many watches are allowed in all with any amount of memory. */
#define MIN_WATCHES	1000

/* The number of alarms that are taken at a time, and how often in a turn. */
#define TAKE_IDS	256
#define TAKE_TURNS	16

/* The jobs of ended sessions that become ready in a turn. */
#define GIVE_BACK	128

/* --- sessions that wait --------------------------------------------------------------- */

void queue_serve_later(struct queue *queue, struct tube *tube)
{
	if (tube->to_serve || TAILQ_EMPTY(&tube->waiting) || !tube->nr[IS_READY])
		return;
	tube->to_serve = true;
	TAILQ_INSERT_TAIL(&queue->to_serve, tube, serve_entry);
}

/*
 * The most urgent job that the session waits for, which may be in another tube. If another
 * session waits longer for that tube, look for that session's most urgent job, and so on. This
 * ends: each of these jobs is more urgent than the one before.
 */
static struct job *next_job(struct session **session)
{
	struct session *first;
	struct job *job;

	for (;; *session = first) {
		job = session_best_job(*session);
		if (!job)
			return NULL;
		first = TAILQ_FIRST(&job->tube->waiting)->session;
		if (first == *session)
			return job;
	}
}

/*
 * Give a job of the tube, or a more urgent one, to a session that waits. Returns false if the
 * tube has no job for any session.
 */
static bool serve_one(struct tube *tube)
{
	struct watch *watch = TAILQ_FIRST(&tube->waiting);
	struct session *session;
	struct job *job;

	if (!watch || tube->pause_ns)
		return false;
	session = watch->session;
	job = next_job(&session);
	if (!job)
		return false;
	if (!job_reserve(session, job, NULL)) {
		session_stop_waiting(session);
		session->ops->resumed(session, SESSION_RESERVED);
	}
	return true;
}

void queue_serve(struct queue *queue)
{
	struct tube *tube;

	while ((tube = TAILQ_FIRST(&queue->to_serve))) {
		TAILQ_REMOVE(&queue->to_serve, tube, serve_entry);
		tube->to_serve = false;
		while (serve_one(tube))
			;
	}
}

/* --- alarms --------------------------------------------------------------------------- */

static void one_alarm(struct queue *queue, uint64_t id)
{
	switch (ID_KIND(id)) {
	case ID_JOB:
		job_alarm(queue, id);
		break;
	case ID_SESSION:
		session_alarm(queue, ID_NUMBER(id));
		break;
	case ID_TUBE:
		tube_alarm(queue, ID_NUMBER(id));
		break;
	case ID_WINDOW:
		/* A turn continues loading jobs, or purging, and arms this again. */
		if (ID_NUMBER(id) == ID_SCHEDULES)
			schedules_alarm(queue);
		break;
	}
}

bool queue_alarms(struct queue *queue)
{
	size_t bytes = store_batch_bytes(queue->store), nr, i;
	uint64_t ids[TAKE_IDS];
	bool behind = false;
	unsigned int turn;

	for (turn = 0; turn < TAKE_TURNS && !behind; turn++) {
		nr = alarms_take(queue->alarms, ids, TAKE_IDS);
		for (i = 0; i < nr; i++)
			one_alarm(queue, ids[i]);
		if (nr < TAKE_IDS)
			break;
		/* A job that becomes due writes nothing. */
		behind = store_batch_bytes(queue->store) != bytes &&
			store_writer_is_behind(queue->store);
	}
	if (alarms_clock_was_set(queue->alarms)) {
		anchor_clock_was_set(queue);
		schedules_clock_was_set(queue);
	}
	queue_serve(queue);
	return behind;
}

/* --- a turn of the loop --------------------------------------------------------------- */

bool queue_turn(struct queue *queue)
{
	bool more = sessions_kick(queue);

	more |= purges_turn(queue);
	more |= sessions_give_back(queue, GIVE_BACK);
	more |= schedules_turn(queue);
	queue_serve(queue);
	more |= window_turn(queue);
	anchor_note(queue);
	store_commit(queue->store);
	backups_turn(queue);
	alarms_flush(queue->alarms);
	return more;
}

void queue_stop(struct queue *queue)
{
	queue->stopping = true;
	anchor_note_now(queue);
}

void queue_drain(struct queue *queue)
{
	queue->draining = true;
}

bool queue_is_draining(const struct queue *queue)
{
	return queue->draining;
}

/* --- numbers -------------------------------------------------------------------------- */

void queue_stats(struct queue *queue, struct queue_stats *stats)
{
	struct session *session;
	size_t i;

	show_queue(queue, stats);
	for (i = 0; i < SESSION_BUCKETS; i++)
		LIST_FOREACH(session, &queue->sessions[i], entry) {
			stats->producers += session->producer;
			stats->workers += session->worker;
		}
}

void queue_each_tube(struct queue *queue,
		     void (*each)(void *context, const struct tube_stats *stats),
		     void *context)
{
	struct tube *tube;

	for (tube = tube_first(queue); tube; tube = tube_next(tube)) {
		struct tube_stats stats = {
			.name = tube->name,
			.urgent = tube->nr_urgent,
			.ready = tube->nr[IS_READY],
			.reserved = tube->nr[IS_RESERVED],
			.delayed = tube->nr[IS_DELAYED],
			.buried = tube->nr[IS_BURIED],
			.waiting = tube->nr_waiting,
			.oldest_ready_s = age_oldest_s(queue, tube),
			.total = tube->total_jobs,
			.reserves = tube->reserves,
			.retries = tube->retries,
			.dead = tube->dead,
		};

		each(context, &stats);
	}
}

/* --- opening and closing -------------------------------------------------------------- */

struct marks {
	uint64_t *ids;
	size_t nr;
	size_t room;
	bool no_memory;
};

static bool collect_mark(void *context, uint64_t id)
{
	struct marks *marks = context;
	uint64_t *ids = marks->ids;

	if (marks->nr == marks->room) {
		marks->room = marks->room * 2 + 64;
		ids = reallocarray(ids, marks->room, sizeof(*ids));
		marks->no_memory = !ids;
		if (!ids)
			return false;
		marks->ids = ids;
	}
	ids[marks->nr++] = id;
	return true;
}

/* A job was reserved when the daemon ended. That was not its worker's fault. */
static void recover_mark(struct queue *queue, uint64_t id)
{
	struct job_record record;
	struct job_place old;

	if (store_get(queue->store, id, &record)) {
		log_say(LOG_ERR, "job %llu was reserved, and is damaged on disk",
			(unsigned long long)id);
		return;
	}
	old = record.place;
	record.reserves++;
	retry_undone(queue, &record);
	store_move(queue->store, &old, &record);
	if (record.schedule && record.place.state == JOB_BURIED)
		schedule_job_ended(queue, record.schedule);
}

static int recover_marks(struct queue *queue)
{
	struct marks marks = { .ids = NULL };
	int err = store_each_mark(queue->store, 0, collect_mark, &marks);
	size_t i;

	if (!err && marks.no_memory)
		err = -ENOMEM;
	for (i = 0; !err && i < marks.nr; i++) {
		store_batch_bound(queue->store);
		recover_mark(queue, marks.ids[i]);
	}
	free(marks.ids);
	return err;
}

static void make_instance(struct queue *queue)
{
	snprintf(queue->instance, sizeof(queue->instance), "%08x%08x", arc4random(),
		 arc4random());
}

/* Count the jobs and tubes of the disk; later turns load jobs into memory. */
static int queue_load(struct queue *queue)
{
	int err = anchor_start(queue);

	if (err)
		return err;
	schedules_init(queue);
	queue->next_id = store_next_id(queue->store);
	/* Make it first: the tubes of the disk may be more than the limit. */
	queue->default_tube = tube_get(queue, "default");
	if (!queue->default_tube)
		return -ENOMEM;
	err = recover_marks(queue);
	if (!err)
		err = tubes_load(queue);
	return err;
}

int queue_create(struct queue **out, const struct queue_config *config, struct store *store,
		 struct alarms *alarms)
{
	struct queue *queue = calloc(1, sizeof(*queue));
	int err;

	if (!queue)
		return -ENOMEM;
	queue->config = *config;
	queue->store = store;
	queue->alarms = alarms;
	queue->start_ns = alarms_now_ns(ALARM_BOOT);
	queue->next_session = 1;
	TAILQ_INIT(&queue->kicking);
	TAILQ_INIT(&queue->backups);
	TAILQ_INIT(&queue->purges);
	TAILQ_INIT(&queue->orphans);
	queue->max_watches = config->memory / 16 / sizeof(struct watch) + MIN_WATCHES;
	make_instance(queue);
	tubes_init(queue);
	windows_init(queue);
	err = residents_init(queue);
	if (!err)
		err = queue_load(queue);
	if (err)
		queue_destroy(queue);
	else
		*out = queue;
	return err;
}

void queue_destroy(struct queue *queue)
{
	while (sessions_give_back(queue, SIZE_MAX))
		;
	tubes_destroy(queue);
	residents_destroy(queue);
	anchor_free(queue);
	free(queue);
}
