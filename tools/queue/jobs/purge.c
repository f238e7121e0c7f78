// SPDX-License-Identifier: GPL-2.0
/*
 * Purges: deleting all jobs of a tube that have one status.
 *
 * A purge deletes a job if it had the status when the purge began, and has it when its turn
 * comes. So it walks through a view of the store as it was at the beginning: jobs that are put,
 * released, kicked or due later are not in there, or in another index. A job that was reserved
 * then has a mark there.
 *
 * A turn deletes a piece of one purge; the next turn continues with the next purge. While
 * the store is behind with its compactions, purges wait.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "queue/jobs/job.h"
#include "queue/jobs/purge.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/tube.h"
#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/stats.h"
#include "queue/store/view.h"

/* The jobs that a turn looks at, and that share a commit. */
#define PIECE		512
#define COMMIT_PIECE	64
/* A turn ends after the commit that exceeds this time. */
#define TURN_NS		(2 * NSEC_PER_MSEC)
/* How long purges wait if the store is behind, and how often before they go on all the same. */
#define PAUSE_NS	(5 * NSEC_PER_MSEC)
#define PAUSES		200

/**
 * struct purge - an unfinished purge
 * @session: waits for it.
 * @tube: the tube.
 * @status: the status of the jobs.
 * @view: the store when it began.
 * @index: the index that it walks through, of purge_indexes[].
 * @first: by index: the first place when it began, or one before that.
 * @from: where it continues.
 * @until_ns: by index: when it began, a delayed job that was due later was not ready.
 * @end_id: the jobs that were there had smaller ids.
 * @had_reserved: jobs of the tube were reserved then.
 * @purged: number of jobs that are deleted.
 * @entry: in the queue's list.
 */
struct purge {
	struct session *session;
	struct tube *tube;
	enum job_status status;
	struct store_view *view;
	size_t index;
	struct job_place first[JOB_BURIED + 1];
	struct job_place from;
	uint64_t until_ns[JOB_BURIED + 1];
	uint64_t end_id;
	bool had_reserved;
	uint64_t purged;
	TAILQ_ENTRY(purge) entry;
};

/* The indexes that have jobs of a status, which may be READY in memory only. */
static const struct purge_index {
	enum job_status status;
	enum job_state state;
} purge_indexes[] = {
	{ IS_READY, JOB_READY }, { IS_READY, JOB_DELAYED }, { IS_READY, JOB_WALL },
	{ IS_DELAYED, JOB_DELAYED }, { IS_DELAYED, JOB_WALL },
	{ IS_BURIED, JOB_BURIED },
};

/* --- a piece --------------------------------------------------------------------------------- */

struct purge_piece {
	struct purge *purge;
	struct job_place places[PIECE];
	bool same[PIECE];
	size_t nr;
};

static bool collect(void *context, const struct job_place *place, bool same)
{
	struct purge_piece *piece = context;
	const struct purge *purge = piece->purge;

	if (purge->status == IS_READY && place->state != JOB_READY &&
	    place->order > purge->until_ns[place->state])
		return false;
	piece->same[piece->nr] = same;
	piece->places[piece->nr++] = *place;
	return piece->nr < PIECE;
}

/* Delete a job that has the status; @record is that of job_find(). */
static void purge_job(struct queue *queue, struct purge *purge, struct job *job,
		      struct job_record *record)
{
	if (job_needs_record(job) && job_read(queue, job, record))
		return;
	job_gone(queue, job, record);
	purge->purged++;
}

/*
 * Find a job by its place in the view. @same: it has this place now, too, and its entry tells
 * all that the delete needs, unless it has a key, a schedule, or is dead.
 */
static int find_job(struct queue *queue, const struct job_place *place, bool same,
		    struct job **job, struct job_record *record)
{
	bool plain = !place->keyed && !place->scheduled && place->state != JOB_BURIED;

	if (!same || !plain || job_resident(queue, place->id))
		return job_find(queue, place->id, job, record);
	*job = job_new(queue, place);
	return *job ? 0 : -ENOMEM;
}

static void purge_one(struct queue *queue, struct purge *purge,
		      const struct job_place *place, bool same)
{
	struct job_record record;
	struct job *job;

	if (purge->had_reserved && store_view_is_marked(purge->view, place->id))
		return;
	if (find_job(queue, place, same, &job, &record))
		return;
	if (job->tube == purge->tube && job->status == purge->status)
		purge_job(queue, purge, job, &record);
	else
		job_settle(queue, job);
}

/* Go on with the next index of the status, @index or behind it; false: there is none. */
static bool next_index(struct purge *purge, size_t index)
{
	while (index < ARRAY_SIZE(purge_indexes) &&
	       purge_indexes[index].status != purge->status)
		index++;
	if (index == ARRAY_SIZE(purge_indexes))
		return false;
	purge->index = index;
	purge->from = purge->first[purge_indexes[index].state];
	return true;
}

/* Returns 0: more is left; 1: it is complete; or a negative errno. */
static int purge_continue(struct queue *queue, struct purge *purge)
{
	uint64_t end_ns = alarms_now_ns(ALARM_BOOT) + TURN_NS;
	struct purge_piece piece;
	size_t nr = 0;
	int err;

	piece.purge = purge;
	piece.nr = 0;
	err = store_view_walk(purge->view, &purge->from, collect, &piece);
	while (nr < piece.nr) {
		purge_one(queue, purge, &piece.places[nr], piece.same[nr]);
		if (++nr % COMMIT_PIECE)
			continue;
		store_commit(queue->store);
		if (alarms_now_ns(ALARM_BOOT) >= end_ns)
			break;
	}
	if (err)
		return err;
	if (nr == piece.nr && nr < PIECE)
		return !next_index(purge, purge->index + 1);
	purge->from = piece.places[nr - 1];
	purge->from.id++;
	return 0;
}

/* --- beginning and end ----------------------------------------------------------------------- */

static void set_bounds(struct queue *queue, struct purge *purge)
{
	enum job_state state;

	for (state = JOB_READY; state <= JOB_BURIED; state++) {
		purge->first[state] = (struct job_place){
			.tube = purge->tube->number, .state = state,
		};
		store_first_place(queue->store, &purge->first[state]);
	}
	purge->until_ns[JOB_DELAYED] = clock_now_ns(&queue->clock);
	purge->until_ns[JOB_WALL] = alarms_now_ns(ALARM_WALL);
	purge->end_id = queue->next_id;
}

int purge_begin(struct session *session, struct tube *tube, enum job_status status)
{
	struct queue *queue = session->queue;
	struct purge *purge = calloc(1, sizeof(*purge));

	if (!purge)
		return -ENOMEM;
	purge->view = store_view_open(queue->store);
	if (!purge->view) {
		free(purge);
		return -ENOMEM;
	}
	purge->session = session;
	purge->tube = tube;
	purge->status = status;
	purge->had_reserved = tube->nr[IS_RESERVED] > 0;
	set_bounds(queue, purge);
	next_index(purge, 0);
	tube->nr_purging++;
	session->purge = purge;
	TAILQ_INSERT_TAIL(&queue->purges, purge, entry);
	return 0;
}

void purge_end(struct session *session)
{
	struct purge *purge = session->purge;
	struct queue *queue = session->queue;

	if (!purge)
		return;
	session->purge = NULL;
	TAILQ_REMOVE(&queue->purges, purge, entry);
	store_view_close(purge->view);
	purge->tube->nr_purging--;
	tube_put(queue, purge->tube);
	free(purge);
}

bool purge_takes(struct queue *queue, struct job *job, struct job_record *record)
{
	struct purge *purge;

	TAILQ_FOREACH(purge, &queue->purges, entry)
		if (purge->tube == job->tube && purge->status == job->status &&
		    job_id(job) < purge->end_id)
			break;
	if (!purge || job_read(queue, job, record))
		return false;
	purge_job(queue, purge, job, record);
	return true;
}

/* On a full disk the store may be behind for long. */
static bool must_pause(struct queue *queue)
{
	if (!store_is_behind(queue->store) || ++queue->purge_pauses > PAUSES) {
		queue->purge_pauses = 0;
		return false;
	}
	alarm_add(queue->alarms, &queue->purge_alarm, ID_OF(ID_WINDOW, ID_PURGES), ALARM_BOOT,
		  alarms_now_ns(ALARM_BOOT) + PAUSE_NS);
	return true;
}

bool purges_turn(struct queue *queue)
{
	struct purge *purge = TAILQ_FIRST(&queue->purges);
	struct session *session;
	int ret;

	if (!purge || alarm_pending(&queue->purge_alarm))
		return false;
	if (must_pause(queue))
		return false;
	TAILQ_REMOVE(&queue->purges, purge, entry);
	TAILQ_INSERT_TAIL(&queue->purges, purge, entry);
	ret = purge_continue(queue, purge);
	if (ret) {
		session = purge->session;
		session->purged = purge->purged;
		session->purge_err = ret < 0 ? ret : 0;
		purge_end(session);
		session->ops->resumed(session, SESSION_PURGED);
	}
	return !TAILQ_EMPTY(&queue->purges);
}
