// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of jobs.
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
 * The disk has the truth, but for reservations. What is in memory is a part of it:
 *
 * 1. A job that is in memory is as the disk has it (struct job's @stored, @order, @pri,
 *    @tube, @keyed), and besides it may be further than that: RESERVED; or READY although
 *    the disk has it DELAYED, since what is due needs no write. A job that is not in memory
 *    is what the disk says.
 * 2. In memory are: all that are reserved; the delayed ones before the cut of their window;
 *    of each tube the ready ones before its cut; those that are ready but DELAYED on disk;
 *    and the one that a command is about.
 * 3. Every change goes to the store first, which cannot fail, and then to memory; and each
 *    command makes one, so that the disk never has half of one.
 * 4. Jobs are counted by status in memory and out of it, by tube and in all; the disk's own
 *    counts are by where it has them.
 *
 * Everything here is of one thread. Sessions that wait are served when a command, or what
 * was due, is done (queue_serve()), so that of jobs that become ready together the most
 * urgent one is given out first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <bsd/stdlib.h>

#include "core.h"
#include "log.h"

#define URGENT_PRI	1024

/* So many watches there may be in all with however little memory. */
#define MIN_WATCHES	1000

/* So many ids of alarms are taken at a time, and so many in a turn. */
#define TAKE_IDS	256
#define TAKE_TURNS	16

/* So many jobs of sessions that are gone become ready in a turn. */
#define GIVE_BACK	128

/* --- counts --------------------------------------------------------------------------- */

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

/* Jobs on disk become those of the queue. */
static void count_tube(struct queue *queue, struct tube *tube)
{
	const struct tube_counts *counts = store_counts(queue->store, tube->number);

	tube->nr[IS_READY] = counts->nr[JOB_READY];
	tube->nr[IS_DELAYED] = counts->nr[JOB_DELAYED] + counts->nr[JOB_WALL];
	tube->nr[IS_BURIED] = counts->nr[JOB_BURIED];
	tube->nr_urgent = counts->urgent;
	tube->whole = !tube->nr[IS_READY];
	queue->nr[IS_READY] += tube->nr[IS_READY];
	queue->nr[IS_DELAYED] += tube->nr[IS_DELAYED];
	queue->nr[IS_BURIED] += tube->nr[IS_BURIED];
	queue->stats.urgent += tube->nr_urgent;
}

/* --- places --------------------------------------------------------------------------- */

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

/* --- in memory and out of it ---------------------------------------------------------- */

void job_enter_tube(struct job *job)
{
	RB_INSERT(job_tree, &job->tube->ready, job);
	job->tube->nr_resident++;
	job->placed = true;
}

void job_leave_tube(struct job *job)
{
	RB_REMOVE(job_tree, &job->tube->ready, job);
	job->tube->nr_resident--;
	job->placed = false;
}

/* Out of the structures that its status has it in. */
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
		RB_REMOVE(job_tree, &job->holder->reserved, job);
		job->holder->nr--;
		alarm_cancel(queue->alarms, &job->alarm);
		if (job->holder->session)
			session_rearm(job->holder->session);
		job->holder = NULL;
		break;
	default:
		break;
	}
	job->placed = false;
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
		job_enter_tube(job);
	else
		job_forget(queue, job);
	queue_hungry(queue, tube);
}

static void settle_delayed(struct queue *queue, struct job *job)
{
	struct job_place place = job_place(job);

	if (!window_has(queue, &place) || !window_arm(queue, job))
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

int job_find(struct queue *queue, uint64_t id, struct job **job)
{
	struct job_record record;
	int err;

	*job = job_resident(queue, id);
	if (*job)
		return (*job)->status == IS_BROKEN ? -EBADMSG : 0;
	err = store_get(queue->store, id, &record);
	if (err)
		return err;
	if (!tube_by_number(queue, record.place.tube))
		return -EBADMSG;
	*job = job_new(queue, &record.place);
	return *job ? 0 : -ENOMEM;
}

/* Another status, the place on disk being the same. */
static void job_is(struct queue *queue, struct job *job, enum job_status status)
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
	job_displace(queue, job);
	count_job(queue, tube, job->status, job->pri, -1);
	job->tube = tube_by_number(queue, place->tube);
	job->order = place->order;
	job->pri = place->pri;
	job->stored = place->state;
	job->keyed = place->keyed;
	job->seq = store_seq(queue->store);
	job->status = statuses[place->state];
	count_job(queue, job->tube, job->status, job->pri, 1);
	job_settle(queue, job);
	tube_put(queue, tube);
}

void job_gone(struct queue *queue, struct job *job, const char *key, size_t key_len)
{
	struct job_place place = job_place(job);
	struct tube *tube = job->tube;

	store_delete(queue->store, &place, key, key_len);
	job_displace(queue, job);
	count_job(queue, tube, job->status, job->pri, -1);
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
	/* It is on disk already, from where tube_takes() may have read it. */
	if ((ready ? !tube_takes(queue, tube, place) : !window_has(queue, place)) ||
	    job_resident(queue, place->id)) {
		queue_hungry(queue, tube);
		return;
	}
	job = job_new(queue, place);
	if (job)
		job_settle(queue, job);
	else
		window_cut(queue, place);
}

/* --- reservations --------------------------------------------------------------------- */

void job_break(struct queue *queue, struct job *job)
{
	log_say(LOG_ERR, "job %llu of tube \"%s\" is damaged on disk; it is set aside",
		(unsigned long long)job_id(job), job->tube->name);
	job_is(queue, job, IS_BROKEN);
}

static void note_lateness(struct queue *queue, const struct job *job,
			  struct histogram *histogram)
{
	uint64_t now_ns = job->stored == JOB_WALL ? alarms_now_ns(ALARM_WALL) :
						    clock_now_ns(&queue->clock);

	if (now_ns >= job->order)
		histogram_add(histogram, now_ns - job->order);
}

static void say_reserved(struct session *session, const struct job *job, const void *body,
			 size_t len)
{
	char line[64];

	snprintf(line, sizeof(line), "RESERVED %llu %zu\r\n", (unsigned long long)job_id(job),
		 len);
	session_reply(session, job->seq, line, body, len);
}

int job_reserve(struct queue *queue, struct session *session, struct job *job)
{
	struct job_record record;
	const void *body;
	size_t len;
	int err;

	err = store_get(queue->store, job_id(job), &record);
	if (!err)
		err = store_get_body(queue->store, job_id(job), &body, &len);
	if (err) {
		job_break(queue, job);
		return -EBADMSG;
	}
	/* It waited for a time, which came, and for somebody: nobody wrote it since. */
	if (job->status == IS_READY && job->stored != JOB_READY)
		note_lateness(queue, job, &queue->stats.reserved_late);
	job_is(queue, job, IS_RESERVED);
	job->holder = session->holder;
	job->deadline_ns = alarms_now_ns(ALARM_BOOT) + record.ttr_ns;
	RB_INSERT(job_tree, &job->holder->reserved, job);
	job->holder->nr++;
	job->placed = true;
	/* Without room for its alarm: see retry_unarmed(). */
	if (alarm_add(queue->alarms, &job->alarm, job_id(job), ALARM_BOOT, job->deadline_ns))
		queue->has_unarmed = true;
	say_reserved(session, job, body, len);
	store_mark(queue->store, job_id(job));
	return 0;
}

void job_abandoned(struct queue *queue, struct job *job)
{
	struct job_record record;

	if (store_get(queue->store, job_id(job), &record)) {
		job_break(queue, job);
		return;
	}
	record.reserves++;
	/* Whatever it was reserved from. */
	place_ready(&record.place);
	job_become(queue, job, &record);
}

static void job_timed_out(struct queue *queue, struct job *job)
{
	struct job_record record;
	uint64_t delay_ns;

	queue->stats.job_timeouts++;
	if (store_get(queue->store, job_id(job), &record)) {
		job_break(queue, job);
		return;
	}
	record.reserves++;
	record.timeouts++;
	if (job->tube->policy.max_attempts) {
		record.reason_len = strlen(strcpy(record.reason, "time to run is over"));
		retry_or_bury(queue, job, &record, &delay_ns);
	} else {
		place_ready(&record.place);
	}
	job_become(queue, job, &record);
}

/* --- who waits ------------------------------------------------------------------------ */

void queue_hungry(struct queue *queue, struct tube *tube)
{
	if (tube->is_hungry || TAILQ_EMPTY(&tube->waiting) || !tube->nr[IS_READY])
		return;
	tube->is_hungry = true;
	TAILQ_INSERT_TAIL(&queue->hungry, tube, hungry);
}

/*
 * The most urgent job of all that the session waits for, which may be of another tube; and
 * if somebody waits longer for that, then for that session, and so on. This ends, since each
 * of these jobs is more urgent than the one before.
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

/* A job of the tube, or a more urgent one, for a session that waits; false: that is all. */
static bool serve_one(struct queue *queue, struct tube *tube)
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
	if (!job_reserve(queue, session, job)) {
		session_stop_waiting(session);
		session_resume(session);
	}
	return true;
}

void queue_serve(struct queue *queue)
{
	struct tube *tube;

	while ((tube = TAILQ_FIRST(&queue->hungry))) {
		TAILQ_REMOVE(&queue->hungry, tube, hungry);
		tube->is_hungry = false;
		while (serve_one(queue, tube))
			;
	}
}

/* --- alarms --------------------------------------------------------------------------- */

/* Its time has come; an id of an alarm that was moved since is not for now. */
static void job_alarm(struct queue *queue, uint64_t id)
{
	struct job *job = job_resident(queue, id);

	if (!job || !job->placed)
		return;
	if (job->status == IS_DELAYED) {
		note_lateness(queue, job, &queue->stats.ready_late);
		job_is(queue, job, IS_READY);
		job_settle(queue, job);
	} else if (job->status == IS_RESERVED && alarms_now_ns(ALARM_BOOT) < job->deadline_ns) {
		/* It was touched, and its alarm could not be moved. */
		queue->has_unarmed = true;
	} else if (job->status == IS_RESERVED) {
		job_timed_out(queue, job);
	}
}

static void tube_alarm(struct queue *queue, uint32_t number)
{
	struct tube *tube = tube_by_number(queue, number);

	if (tube && tube->pause_ns)
		tube_resume(queue, tube);
}

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
		window_alarm(queue, ID_NUMBER(id));
		break;
	}
}

/* The wall clock was set: the queue's clock is as far from it as it is now. */
static void clock_was_set(struct queue *queue)
{
	uint64_t skew_ns = clock_skew_ns(&queue->clock);

	log_say(LOG_NOTICE, "the wall clock was set; delays go on, %lld s from it",
		(long long)skew_ns / (long long)NSEC_PER_SEC);
	store_put_number(queue->store, "skew", skew_ns);
}

void queue_alarms(struct queue *queue)
{
	uint64_t ids[TAKE_IDS];
	unsigned int turn;
	size_t nr, i;

	for (turn = 0; turn < TAKE_TURNS; turn++) {
		nr = alarms_take(queue->alarms, ids, TAKE_IDS);
		for (i = 0; i < nr; i++)
			one_alarm(queue, ids[i]);
		if (nr < TAKE_IDS)
			break;
	}
	if (alarms_clock_was_set(queue->alarms))
		clock_was_set(queue);
	queue_serve(queue);
}

/* --- a turn of the loop --------------------------------------------------------------- */

/*
 * What the device had no room for. Delayed jobs go out of memory, and the window is shorter;
 * all else needs its alarm, so that delayed ones make room for it.
 */
static void take_refused(struct queue *queue)
{
	uint64_t id;

	while (alarms_refused(queue->alarms, &id)) {
		struct job *job = ID_KIND(id) == ID_JOB ? job_resident(queue, id) : NULL;

		if (job && job->status == IS_DELAYED)
			window_refused(queue, job);
		else
			queue->has_unarmed = true;
	}
}

static void arm_reserved(struct queue *queue, struct session *session)
{
	struct job *job;

	RB_FOREACH(job, job_tree, &session->holder->reserved)
		if (!alarm_pending(&job->alarm) &&
		    alarm_add(queue->alarms, &job->alarm, job_id(job), ALARM_BOOT,
			      job->deadline_ns))
			queue->has_unarmed = true;
}

static void arm_pauses(struct queue *queue)
{
	struct tube *tube;

	for (tube = tube_first(queue); tube; tube = tube_next(tube))
		if (tube->pause_ns && !alarm_pending(&tube->alarm) &&
		    alarm_add(queue->alarms, &tube->alarm, ID_OF(ID_TUBE, tube->number),
			      ALARM_BOOT, tube->pause_until_ns))
			queue->has_unarmed = true;
}

/* Some delayed jobs give way, not all; and none comes back to where these were. */
static bool make_way(struct queue *queue)
{
	size_t some = queue->nr_armed / 2 + 1;

	if (!window_shrink(queue, some < 64 ? some : 64, 0))
		return false;
	queue->max_armed = queue->nr_armed ?: 1;
	return true;
}

/*
 * Arm what has to be armed, though the device was full. Where others have taken all of it,
 * and there is no delayed job to give way, this is tried again and again.
 */
static void retry_unarmed(struct queue *queue)
{
	static const struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };
	struct session *session;
	size_t i;

	if (!make_way(queue))
		nanosleep(&pause, NULL);
	queue->has_unarmed = false;
	for (i = 0; i < SESSION_BUCKETS; i++)
		LIST_FOREACH(session, &queue->sessions[i], entry) {
			arm_reserved(queue, session);
			session_rearm(session);
		}
	arm_pauses(queue);
}

/* What was refused may be armed again, where others gave way. True: again next turn. */
static bool flush_alarms(struct queue *queue)
{
	unsigned int tries;

	for (tries = 0; tries < 3; tries++) {
		if (!alarms_flush(queue->alarms))
			return false;
		take_refused(queue);
	}
	return true;
}

bool queue_turn(struct queue *queue)
{
	bool more = sessions_kick(queue);

	more |= sessions_give_back(queue, GIVE_BACK);
	queue_serve(queue);
	if (queue->has_unarmed)
		retry_unarmed(queue);
	more |= window_turn(queue);
	store_commit(queue->store);
	more |= flush_alarms(queue);
	return more || queue->has_unarmed;
}

void queue_stop(struct queue *queue)
{
	queue->stopping = true;
}

void queue_drain(struct queue *queue)
{
	queue->draining = true;
}

/* --- from the start to the end -------------------------------------------------------- */

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

/* What was reserved when the daemon ended is ready, one attempt older. */
static void recover_mark(struct queue *queue, uint64_t id)
{
	struct job_record record;
	struct job_place old;

	if (store_get(queue->store, id, &record)) {
		log_say(LOG_ERR, "job %llu, which was reserved, is damaged on disk",
			(unsigned long long)id);
		return;
	}
	old = record.place;
	place_ready(&record.place);
	record.reserves++;
	record.attempts++;
	store_move(queue->store, &old, &record);
}

static int recover_marks(struct queue *queue)
{
	struct marks marks = { .ids = NULL };
	int err = store_each_mark(queue->store, 0, collect_mark, &marks);
	size_t i;

	if (!err && marks.no_memory)
		err = -ENOMEM;
	for (i = 0; !err && i < marks.nr; i++)
		recover_mark(queue, marks.ids[i]);
	free(marks.ids);
	return err;
}

static void make_instance(struct queue *queue)
{
	snprintf(queue->instance, sizeof(queue->instance), "%08x%08x", arc4random(),
		 arc4random());
}

/* What the disk has becomes what is counted; jobs come into memory later. */
static int queue_load(struct queue *queue)
{
	struct tube *tube, *next;
	int err;

	clock_start(&queue->clock, store_get_number(queue->store, "skew", 0));
	queue->next_id = store_next_id(queue->store);
	/* Before those of the disk, which may be more than there is room for. */
	queue->default_tube = tube_get(queue, "default");
	if (!queue->default_tube)
		return -ENOMEM;
	err = recover_marks(queue);
	if (!err)
		err = tubes_load(queue);
	if (err)
		return err;
	for (tube = tube_first(queue); tube; tube = next) {
		next = tube_next(tube);
		count_tube(queue, tube);
		/* One that was only paused, say. */
		tube_put(queue, tube);
	}
	return 0;
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
	TAILQ_INIT(&queue->orphans);
	queue->max_watches = config->memory / 16 / sizeof(struct watch) + MIN_WATCHES;
	make_instance(queue);
	tubes_init(queue);
	windows_init(queue);
	err = jobs_init(queue);
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
	jobs_destroy(queue);
	free(queue);
}
