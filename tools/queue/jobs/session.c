// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: their tubes, their waits, their kicks, and their end.
 *
 * A session waits in the lists of all tubes that it watches, and its alarm wakes it for the
 * earlier of two times: the end of its timeout, and SAFETY_MARGIN_NS before the time to run of
 * a job that it holds ends.
 *
 * The jobs of a session that ends stay with its holder, and later turns give them back, so the
 * end of a session with many jobs delays no other session. A kick of many jobs takes several
 * turns likewise.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/backup.h"
#include "queue/jobs/job.h"
#include "queue/jobs/purge.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/session.h"
#include "queue/jobs/tube.h"
#include "queue/jobs/window.h"
#include "queue/store/read.h"

/* DEADLINE_SOON comes this long before the end of a time to run. */
#define SAFETY_MARGIN_NS	NSEC_PER_SEC

/* Limit of the tubes that a session watches: each takes memory, and time in each reserve. */
#define MAX_WATCHES	1000
/* So many each session may have, whatever others have: "watch" and then "ignore default" works. */
#define OWN_WATCHES	2

/* A kick continues in the next turn after this many jobs. */
#define KICK_PIECE	64

/* --- its tubes ------------------------------------------------------------------------ */

struct watch *session_find_watch(struct session *session, const struct tube *tube)
{
	struct watch *watch;

	TAILQ_FOREACH(watch, &session->watches, entry)
		if (watch->tube == tube)
			return watch;
	return NULL;
}

int session_watch(struct session *session, struct tube *tube)
{
	struct watch *watch;

	if (session_find_watch(session, tube))
		return 0;
	if (session->nr_watches >= MAX_WATCHES)
		return -ENOMEM;
	if (session->nr_watches >= OWN_WATCHES &&
	    session->queue->nr_watches >= session->queue->max_watches)
		return -ENOMEM;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	watch->session = session;
	watch->tube = tube;
	TAILQ_INSERT_TAIL(&session->watches, watch, entry);
	if (++session->nr_watches > OWN_WATCHES)
		session->queue->nr_watches++;
	tube->nr_watching++;
	return 0;
}

void session_ignore(struct session *session, struct watch *watch)
{
	struct tube *tube = watch->tube;

	TAILQ_REMOVE(&session->watches, watch, entry);
	free(watch);
	if (session->nr_watches-- > OWN_WATCHES)
		session->queue->nr_watches--;
	tube->nr_watching--;
	tube_put(session->queue, tube);
}

void session_use(struct session *session, struct tube *tube)
{
	struct tube *old = session->used;

	session->used = tube;
	tube->nr_using++;
	if (old) {
		old->nr_using--;
		tube_put(session->queue, old);
	}
}

/* --- beginning and end ---------------------------------------------------------------- */

int session_init(struct session *session, struct queue *queue, const struct session_ops *ops)
{
	memset(session, 0, sizeof(*session));
	session->queue = queue;
	session->ops = ops;
	TAILQ_INIT(&session->watches);
	session->holder = calloc(1, sizeof(*session->holder));
	if (!session->holder)
		return -ENOMEM;
	if (session_watch(session, queue->default_tube)) {
		free(session->holder);
		return -ENOMEM;
	}
	session->holder->session = session;
	RB_INIT(&session->holder->reserved);
	session_use(session, queue->default_tube);
	session->id = queue->next_session++;
	LIST_INSERT_HEAD(&queue->sessions[session->id % SESSION_BUCKETS], session, entry);
	queue->nr_sessions++;
	queue->stats.total_connections++;
	return 0;
}

/* sessions_give_back() frees it when it holds no job any more. */
static void holder_orphan(struct queue *queue, struct holder *holder)
{
	holder->session = NULL;
	TAILQ_INSERT_TAIL(&queue->orphans, holder, orphans);
}

bool sessions_give_back(struct queue *queue, size_t most)
{
	struct holder *holder;
	struct job *job;

	while (most && (holder = TAILQ_FIRST(&queue->orphans))) {
		job = RB_MIN(job_tree, &holder->reserved);
		if (!job) {
			TAILQ_REMOVE(&queue->orphans, holder, orphans);
			free(holder);
			continue;
		}
		if (queue->stopping)
			job_leave_reserved(queue, job);
		else
			job_abandoned(queue, job, holder->hung_up);
		most--;
	}
	return !TAILQ_EMPTY(&queue->orphans);
}

void session_hung_up(struct session *session)
{
	session->holder->hung_up = true;
}

void session_destroy(struct session *session)
{
	struct queue *queue = session->queue;
	struct watch *watch;

	session_stop_waiting(session);
	if (session->kicks_left)
		TAILQ_REMOVE(&queue->kicking, session, kicking);
	session_forget_backup(session);
	purge_end(session);
	holder_orphan(queue, session->holder);
	while ((watch = TAILQ_FIRST(&session->watches)))
		session_ignore(session, watch);
	session->used->nr_using--;
	tube_put(queue, session->used);
	alarm_cancel(queue->alarms, &session->alarm);
	LIST_REMOVE(session, entry);
	queue->nr_sessions--;
}

/* --- waiting -------------------------------------------------------------------------- */

struct job *session_best_job(struct session *session)
{
	struct job *best = NULL, *job;
	struct watch *watch;

	TAILQ_FOREACH(watch, &session->watches, entry) {
		if (watch->tube->pause_ns)
			continue;
		job = tube_next_job(session->queue, watch->tube);
		if (job && (!best || job_compare(job, best) < 0))
			best = job;
	}
	return best;
}

bool session_may_reserve(const struct session *session)
{
	const struct queue *queue = session->queue;
	size_t most = queue->max_resident / 4 * 3;

	return queue->nr[IS_RESERVED] < most &&
	       session->holder->nr / 8 < most - queue->nr[IS_RESERVED];
}

/* When DEADLINE_SOON is due; ~0 if it holds no job. */
static uint64_t warn_at_ns(struct session *session)
{
	struct job *job = RB_MIN(job_tree, &session->holder->reserved);

	if (!job)
		return ~0ULL;
	return job->deadline_ns > SAFETY_MARGIN_NS ? job->deadline_ns - SAFETY_MARGIN_NS : 0;
}

bool session_deadline_is_soon(struct session *session)
{
	return warn_at_ns(session) <= alarms_now_ns(ALARM_BOOT);
}

void session_stop_waiting(struct session *session)
{
	struct watch *watch;

	if (!session->waiting)
		return;
	session->waiting = false;
	session->queue->stats.waiting--;
	TAILQ_FOREACH(watch, &session->watches, entry) {
		TAILQ_REMOVE(&watch->tube->waiting, watch, waiting);
		watch->tube->nr_waiting--;
	}
	alarm_cancel(session->queue->alarms, &session->alarm);
}

void session_wait(struct session *session, uint64_t timeout_ns)
{
	uint64_t now_ns = alarms_now_ns(ALARM_BOOT);
	struct watch *watch;

	session->waiting = true;
	session->wait_until_ns = timeout_ns > ~0ULL - now_ns ? ~0ULL : now_ns + timeout_ns;
	session->queue->stats.waiting++;
	TAILQ_FOREACH(watch, &session->watches, entry) {
		TAILQ_INSERT_TAIL(&watch->tube->waiting, watch, waiting);
		watch->tube->nr_waiting++;
	}
	session_rearm(session);
}

void session_rearm(struct session *session)
{
	struct queue *queue = session->queue;
	uint64_t at_ns = warn_at_ns(session);

	if (!session->waiting)
		return;
	if (session->wait_until_ns < at_ns)
		at_ns = session->wait_until_ns;
	alarm_cancel(queue->alarms, &session->alarm);
	if (at_ns != ~0ULL)
		alarm_add(queue->alarms, &session->alarm, ID_OF(ID_SESSION, session->id),
			  ALARM_BOOT, at_ns);
}

static struct session *session_by_id(struct queue *queue, uint64_t id)
{
	struct session *session;

	LIST_FOREACH(session, &queue->sessions[id % SESSION_BUCKETS], entry)
		if (session->id == id)
			break;
	return session;
}

void session_alarm(struct queue *queue, uint64_t number)
{
	struct session *session = session_by_id(queue, number);
	enum session_event event;

	if (!session || !session->waiting)
		return;
	if (session_deadline_is_soon(session))
		event = SESSION_DEADLINE_SOON;
	else if (session->wait_until_ns <= alarms_now_ns(ALARM_BOOT))
		event = SESSION_TIMED_OUT;
	else
		return;
	session_stop_waiting(session);
	session->ops->resumed(session, event);
}

/* --- jobs of the used tube, for kick and peek ------------------------------------------ */

struct found {
	struct queue *queue;
	enum job_status status;
	struct job_place *places;
	size_t nr;
	size_t most;
};

/* Memory may know that a job has left the status that the disk says. */
static bool find_one(void *context, const struct job_place *place)
{
	struct found *found = context;
	struct job *job = job_resident(found->queue, place->id);

	if (!job || job->status == found->status)
		found->places[found->nr++] = *place;
	return found->nr < found->most;
}

/* The first place of the used tube in an index. Delayed jobs that are due count as ready. */
static struct job_place first_place(struct session *session, enum job_state state)
{
	struct job_place place = { .tube = session->used->number, .state = state };

	if (state == JOB_DELAYED)
		place.order = clock_now_ns(&session->queue->clock);
	else if (state == JOB_WALL)
		place.order = alarms_now_ns(ALARM_WALL);
	return place;
}

/* Up to @most jobs from a place on. */
static size_t find_jobs(struct queue *queue, const struct job_place *from,
			struct job_place *places, size_t most)
{
	struct found found = {
		.queue = queue,
		.status = from->state == JOB_BURIED ? IS_BURIED : IS_DELAYED,
		.places = places,
		.most = most,
	};

	if (!from->tube || !most)
		return 0;
	if (from->state == JOB_BURIED)
		store_walk(queue->store, from, find_one, &found);
	else
		store_walk_tube(queue->store, from, find_one, &found);
	return found.nr;
}

/* Jobs that are reserved while they are delayed or buried stay in these indexes. */
static bool has_jobs(const struct session *session, enum job_state state)
{
	return session->used->nr[state == JOB_BURIED ? IS_BURIED : IS_DELAYED];
}

bool session_first_job(struct session *session, enum job_state state,
		       struct job_place *place)
{
	struct job_place from = first_place(session, state);

	return has_jobs(session, state) && find_jobs(session->queue, &from, place, 1);
}

/* --- kick ------------------------------------------------------------------------------ */

/* A job whose record is damaged is set aside in memory, with what its index entry says. */
static bool kick_at(struct queue *queue, const struct job_place *place)
{
	struct job_record record = { .place.id = 0 };
	struct job *job = job_resident(queue, place->id);

	if (!job)
		job = job_new(queue, place);
	if (!job || job_read(queue, job, &record))
		return false;
	job_kick(queue, job, &record);
	return true;
}

/* Kick a piece; false: no job is left in this index. */
static bool kick_piece(struct session *session)
{
	struct queue *queue = session->queue;
	struct job_place places[KICK_PIECE];
	size_t most = session->kicks_left < KICK_PIECE ? session->kicks_left : KICK_PIECE;
	size_t nr = find_jobs(queue, &session->kick_from, places, most), i;

	for (i = 0; i < nr; i++)
		if (kick_at(queue, &places[i])) {
			session->kicked++;
			session->kicks_left--;
		}
	/* Walk on from here: the beginning of the index is full of deleted entries. */
	if (nr) {
		session->kick_from.order = places[nr - 1].order;
		session->kick_from.id = places[nr - 1].id + 1;
	}
	return nr > 0;
}

/* The delayed jobs of the tube are in two indexes; the buried ones in one. */
static bool kick_next_index(struct session *session)
{
	if (session->kick_from.state != JOB_DELAYED)
		return false;
	session->kick_from = first_place(session, JOB_WALL);
	return true;
}

/* Returns true if the kick is complete. */
static bool kick_continue(struct session *session)
{
	bool found = session->kicks_left && kick_piece(session);

	if (session->kicks_left && (found || kick_next_index(session)))
		return false;
	session->kicks_left = 0;
	return true;
}

bool session_kick(struct session *session, uint64_t most)
{
	enum job_state state = has_jobs(session, JOB_BURIED) ? JOB_BURIED : JOB_DELAYED;

	session->kicks_left = has_jobs(session, state) ? most : 0;
	session->kicked = 0;
	session->kick_from = first_place(session, state);
	if (kick_continue(session))
		return true;
	TAILQ_INSERT_TAIL(&session->queue->kicking, session, kicking);
	return false;
}

bool sessions_kick(struct queue *queue)
{
	struct session *session, *next;

	for (session = TAILQ_FIRST(&queue->kicking); session; session = next) {
		next = TAILQ_NEXT(session, kicking);
		if (!kick_continue(session))
			continue;
		TAILQ_REMOVE(&queue->kicking, session, kicking);
		session->ops->resumed(session, SESSION_KICKED);
	}
	return !TAILQ_EMPTY(&queue->kicking);
}
