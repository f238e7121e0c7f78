// SPDX-License-Identifier: GPL-2.0
/*
 * A client's commands: what each checks, changes and says.
 *
 * A command that changes a job reads its record, changes that, and hands it to
 * job_become(), which brings disk and memory to the same. Its reply waits for the number
 * that the store's next commit will have.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* A client that reserves is warned so long before its time to run is over. */
#define SAFETY_MARGIN_NS	NSEC_PER_SEC

/* What a client may watch: each takes memory, and a turn at each reserve. */
#define MAX_WATCHES	1000

/* A kick goes on a turn later after so many jobs. */
#define KICK_PIECE	64

void session_say(struct session *session, uint64_t seq, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line) - 2, format, args);
	va_end(args);
	strcat(line, "\r\n");
	session_reply(session, seq, line, NULL, 0);
}

/* Of a change: it is said when that is on disk. */
#define say_changed(session, ...) \
	session_say(session, store_seq((session)->queue->store), __VA_ARGS__)

#define say(session, ...)	session_say(session, 0, __VA_ARGS__)

/* Why there is no such job, or not for this. */
static void say_error(struct session *session, int err)
{
	if (err == -ENOENT)
		say(session, "NOT_FOUND");
	else if (err == -ENOMEM)
		say(session, "OUT_OF_MEMORY");
	else
		say(session, "INTERNAL_ERROR");
}

/* What the disk has of a job, which is set aside where that is damaged. */
static int read_record(struct queue *queue, struct job *job, struct job_record *record)
{
	int err = store_get(queue->store, job_id(job), record);

	if (err)
		job_break(queue, job);
	return err ? -EBADMSG : 0;
}

/* --- tubes of a session --------------------------------------------------------------- */

static struct watch *watch_find(struct session *session, const struct tube *tube)
{
	struct watch *watch;

	TAILQ_FOREACH(watch, &session->watches, entry)
		if (watch->tube == tube)
			return watch;
	return NULL;
}

static int watch_add(struct session *session, struct tube *tube)
{
	struct watch *watch;

	if (session->nr_watches >= MAX_WATCHES ||
	    session->queue->nr_watches >= session->queue->max_watches)
		return -ENOMEM;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	watch->session = session;
	watch->tube = tube;
	TAILQ_INSERT_TAIL(&session->watches, watch, entry);
	session->nr_watches++;
	session->queue->nr_watches++;
	tube->nr_watching++;
	return 0;
}

static void watch_remove(struct session *session, struct watch *watch)
{
	struct tube *tube = watch->tube;

	TAILQ_REMOVE(&session->watches, watch, entry);
	free(watch);
	session->nr_watches--;
	session->queue->nr_watches--;
	tube->nr_watching--;
	tube_put(session->queue, tube);
}

static void use(struct session *session, struct tube *tube)
{
	struct tube *old = session->used;

	session->used = tube;
	tube->nr_using++;
	if (old) {
		old->nr_using--;
		tube_put(session->queue, old);
	}
}

int session_init(struct session *session, struct queue *queue)
{
	memset(session, 0, sizeof(*session));
	session->queue = queue;
	TAILQ_INIT(&session->watches);
	session->holder = calloc(1, sizeof(*session->holder));
	if (!session->holder)
		return -ENOMEM;
	if (watch_add(session, queue->default_tube)) {
		free(session->holder);
		return -ENOMEM;
	}
	session->holder->session = session;
	RB_INIT(&session->holder->reserved);
	use(session, queue->default_tube);
	session->id = queue->next_session++;
	LIST_INSERT_HEAD(&queue->sessions[session->id % SESSION_BUCKETS], session, entry);
	queue->nr_sessions++;
	queue->stats.total_connections++;
	return 0;
}

/* What a session that is gone had reserved is given back by sessions_give_back(). */
static void holder_orphan(struct queue *queue, struct holder *holder)
{
	holder->session = NULL;
	TAILQ_INSERT_TAIL(&queue->orphans, holder, orphans);
}

/* Where the daemon stops, what is reserved stays so on disk. */
static void give_back(struct queue *queue, struct job *job)
{
	if (!queue->stopping) {
		job_abandoned(queue, job);
		return;
	}
	RB_REMOVE(job_tree, &job->holder->reserved, job);
	alarm_cancel(queue->alarms, &job->alarm);
	job_forget(queue, job);
}

bool sessions_give_back(struct queue *queue, size_t most)
{
	struct holder *holder;
	struct job *job;

	while (most && (holder = TAILQ_FIRST(&queue->orphans))) {
		job = RB_MIN(job_tree, &holder->reserved);
		if (job) {
			give_back(queue, job);
			most--;
			continue;
		}
		TAILQ_REMOVE(&queue->orphans, holder, orphans);
		free(holder);
	}
	return !TAILQ_EMPTY(&queue->orphans);
}

void session_destroy(struct session *session)
{
	struct queue *queue = session->queue;
	struct watch *watch;

	session_stop_waiting(session);
	if (session->kicks_left)
		TAILQ_REMOVE(&queue->kicking, session, kicking);
	holder_orphan(queue, session->holder);
	while ((watch = TAILQ_FIRST(&session->watches)))
		watch_remove(session, watch);
	session->used->nr_using--;
	tube_put(queue, session->used);
	alarm_cancel(queue->alarms, &session->alarm);
	LIST_REMOVE(session, entry);
	queue->nr_sessions--;
}

/* --- waiting -------------------------------------------------------------------------- */

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

static void start_waiting(struct session *session, uint64_t until_ns)
{
	struct watch *watch;

	session->waiting = true;
	session->wait_until_ns = until_ns;
	session->queue->stats.waiting++;
	TAILQ_FOREACH(watch, &session->watches, entry) {
		TAILQ_INSERT_TAIL(&watch->tube->waiting, watch, waiting);
		watch->tube->nr_waiting++;
	}
	session_rearm(session);
}

/* When it is to be warned of the end of a time to run; ~0 if it has reserved nothing. */
static uint64_t warn_at_ns(struct session *session)
{
	struct job *job = RB_MIN(job_tree, &session->holder->reserved);

	if (!job)
		return ~0ULL;
	return job->deadline_ns > SAFETY_MARGIN_NS ? job->deadline_ns - SAFETY_MARGIN_NS : 0;
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
	if (at_ns != ~0ULL && alarm_add(queue->alarms, &session->alarm,
					ID_OF(ID_SESSION, session->id), ALARM_BOOT, at_ns))
		queue->has_unarmed = true;
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
	uint64_t now_ns = alarms_now_ns(ALARM_BOOT);

	if (!session || !session->waiting)
		return;
	if (warn_at_ns(session) <= now_ns)
		say(session, "DEADLINE_SOON");
	else if (session->wait_until_ns <= now_ns)
		say(session, "TIMED_OUT");
	else
		return;
	session_stop_waiting(session);
	session_resume(session);
}

/* --- reserve -------------------------------------------------------------------------- */

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

/*
 * What is reserved has to be in memory. A session may have eight times as much of it as it
 * leaves for all others, so that none can take all.
 */
static bool too_much_reserved(const struct session *session)
{
	const struct queue *queue = session->queue;
	size_t most = queue->max_resident / 4 * 3;

	return queue->nr[IS_RESERVED] >= most ||
	       session->holder->nr / 8 >= most - queue->nr[IS_RESERVED];
}

static bool reserve(struct session *session, uint64_t timeout_ns)
{
	struct queue *queue = session->queue;
	uint64_t now_ns = alarms_now_ns(ALARM_BOOT);
	struct job *job;

	session->worker = true;
	if (too_much_reserved(session)) {
		say(session, "OUT_OF_MEMORY");
		return true;
	}
	while ((job = session_best_job(session)))
		if (!job_reserve(queue, session, job))
			return true;
	if (warn_at_ns(session) <= now_ns) {
		say(session, "DEADLINE_SOON");
		return true;
	}
	if (!timeout_ns) {
		say(session, "TIMED_OUT");
		return true;
	}
	start_waiting(session, timeout_ns > ~0ULL - now_ns ? ~0ULL : now_ns + timeout_ns);
	return false;
}

static bool run_reserve(struct session *session, const struct command *command,
			const void *body)
{
	(void)command;
	(void)body;
	return reserve(session, ~0ULL);
}

static bool run_reserve_with_timeout(struct session *session, const struct command *command,
				     const void *body)
{
	(void)body;
	return reserve(session, command->delay_ns);
}

static bool run_reserve_job(struct session *session, const struct command *command,
			    const void *body)
{
	struct queue *queue = session->queue;
	struct job *job;
	int err = job_find(queue, command->id, &job);

	(void)body;
	session->worker = true;
	if (err) {
		say_error(session, err);
	} else if (job->status == IS_RESERVED) {
		say(session, "NOT_FOUND");
	} else if (too_much_reserved(session)) {
		job_settle(queue, job);
		say(session, "OUT_OF_MEMORY");
	} else if (job_reserve(queue, session, job)) {
		say(session, "INTERNAL_ERROR");
	}
	return true;
}

/* --- put ------------------------------------------------------------------------------ */

static bool is_full(const struct queue *queue, const struct tube *tube)
{
	const struct queue_config *config = &queue->config;

	return (config->max_jobs && nr_of_all(queue->nr) >= config->max_jobs) ||
	       (config->max_tube_jobs && nr_of_all(tube->nr) >= config->max_tube_jobs);
}

/* May it put a body at all? If not, that was said. */
static bool may_put(struct session *session, const struct command *command)
{
	struct queue *queue = session->queue;

	session->producer = true;
	if (command->body_len > queue->config.max_job_size) {
		say(session, "JOB_TOO_BIG");
		return false;
	}
	if (queue->draining) {
		say(session, "DRAINING");
		return false;
	}
	if (!store_has_room(queue->store)) {
		queue->stats.refused_full++;
		say(session, "OUT_OF_MEMORY");
		return false;
	}
	return true;
}

/* Where a put has a job. */
static void place_put(struct queue *queue, struct job_place *place,
		      const struct command *command)
{
	if (command->op != OP_PUT_AT) {
		place_delayed(queue, place, command->delay_ns);
	} else if (command->due_ns <= alarms_now_ns(ALARM_WALL)) {
		place_ready(place);
	} else {
		place->state = JOB_WALL;
		place->order = command->due_ns;
	}
}

static bool put(struct session *session, const struct command *command, const void *body)
{
	struct queue *queue = session->queue;
	struct tube *tube = session->used;
	struct job_record record;

	if (is_full(queue, tube)) {
		queue->stats.refused_full++;
		say(session, "OUT_OF_MEMORY");
		return true;
	}
	memset(&record, 0, offsetof(struct job_record, key));
	tube_keep(queue, tube);
	record.place.id = queue->next_id++;
	record.place.tube = tube->number;
	record.place.pri = command->pri;
	place_put(queue, &record.place, command);
	record.created_ns = clock_now_ns(&queue->clock);
	record.delay_ns = command->delay_ns;
	record.ttr_ns = command->ttr_ns;
	record.body_len = command->body_len;
	record.key_len = command->op == OP_PUT_UNIQUE ? strlen(command->key) : 0;
	record.place.keyed = record.key_len > 0;
	memcpy(record.key, command->key, record.key_len);
	store_put(queue->store, &record, body);
	job_arrived(queue, tube, &record);
	say_changed(session, "INSERTED %llu", (unsigned long long)record.place.id);
	return true;
}

static bool run_put(struct session *session, const struct command *command, const void *body)
{
	return !may_put(session, command) || put(session, command, body);
}

/* The job of this key gets another time and another body. */
static void replace(struct session *session, struct job *job, const struct command *command,
		    const void *body)
{
	struct queue *queue = session->queue;
	struct job_record record;
	int err = read_record(queue, job, &record);

	if (err) {
		say_error(session, err);
		return;
	}
	store_replace_body(queue->store, job_id(job), body, command->body_len);
	record.body_len = command->body_len;
	record.delay_ns = command->delay_ns;
	place_delayed(queue, &record.place, command->delay_ns);
	job_become(queue, job, &record);
	say_changed(session, "REPLACED %llu", (unsigned long long)record.place.id);
}

static bool run_put_unique(struct session *session, const struct command *command,
			   const void *body)
{
	struct queue *queue = session->queue;
	struct job *job;
	uint64_t id;
	int err;

	if (!may_put(session, command))
		return true;
	err = store_get_key(queue->store, session->used->number, command->key,
			    strlen(command->key), &id);
	if (err == -ENOENT)
		return put(session, command, body);
	/* A key without a job is damage. */
	if (!err)
		err = job_find(queue, id, &job) ? -EBADMSG : 0;
	if (err)
		say_error(session, err);
	else if (job->status == IS_RESERVED)
		say(session, "RESERVED %llu", (unsigned long long)id);
	else
		replace(session, job, command, body);
	return true;
}

/* --- what a holder does --------------------------------------------------------------- */

/* The record of a job that the session has reserved; if it has not, that was said. */
static struct job *held_job(struct session *session, uint64_t id, struct job_record *record)
{
	struct queue *queue = session->queue;
	struct job *job = job_resident(queue, id);
	int err;

	if (!job || job->status != IS_RESERVED || job->holder != session->holder) {
		say(session, "NOT_FOUND");
		return NULL;
	}
	err = store_get(queue->store, id, record);
	if (err) {
		say_error(session, err);
		return NULL;
	}
	record->reserves++;
	return job;
}

static bool run_release(struct session *session, const struct command *command,
			const void *body)
{
	struct queue *queue = session->queue;
	struct job_record record;
	struct job *job = held_job(session, command->id, &record);

	(void)body;
	if (!job)
		return true;
	record.releases++;
	record.delay_ns = command->delay_ns;
	record.place.pri = command->pri;
	place_delayed(queue, &record.place, command->delay_ns);
	job_become(queue, job, &record);
	say_changed(session, "RELEASED");
	return true;
}

static bool run_bury(struct session *session, const struct command *command, const void *body)
{
	struct queue *queue = session->queue;
	struct job_record record;
	struct job *job = held_job(session, command->id, &record);

	(void)body;
	if (!job)
		return true;
	record.buries++;
	record.place.pri = command->pri;
	place_buried(queue, &record.place);
	job_become(queue, job, &record);
	say_changed(session, "BURIED");
	return true;
}

static bool run_touch(struct session *session, const struct command *command, const void *body)
{
	struct queue *queue = session->queue;
	struct job_record record;
	struct job *job = held_job(session, command->id, &record);

	(void)body;
	if (!job)
		return true;
	RB_REMOVE(job_tree, &session->holder->reserved, job);
	job->deadline_ns = alarms_now_ns(ALARM_BOOT) + record.ttr_ns;
	RB_INSERT(job_tree, &session->holder->reserved, job);
	if (alarm_move(queue->alarms, &job->alarm, job->deadline_ns))
		queue->has_unarmed = true;
	say(session, "TOUCHED");
	return true;
}

/* What the reason keeps of a body: the first bytes. */
static void set_reason(struct job_record *record, const void *body, uint64_t len)
{
	record->reason_len = len < JOB_REASON_MAX ? len : JOB_REASON_MAX;
	if (record->reason_len)
		memcpy(record->reason, body, record->reason_len);
}

static bool run_fail(struct session *session, const struct command *command, const void *body)
{
	struct queue *queue = session->queue;
	struct job_record record;
	struct job *job;
	uint64_t delay_ns;

	if (command->body_len > queue->config.max_job_size) {
		say(session, "JOB_TOO_BIG");
		return true;
	}
	job = held_job(session, command->id, &record);
	if (!job)
		return true;
	set_reason(&record, body, command->has_body ? command->body_len : 0);
	if (retry_or_bury(queue, job, &record, &delay_ns))
		say_changed(session, "DEAD");
	else
		say_changed(session, "RETRY %u %llu", record.attempts,
			    (unsigned long long)(delay_ns / NSEC_PER_MSEC));
	job_become(queue, job, &record);
	return true;
}

/* --- what anybody does ---------------------------------------------------------------- */

static bool run_delete(struct session *session, const struct command *command,
		       const void *body)
{
	struct queue *queue = session->queue;
	struct job_record record = { .key_len = 0 };
	struct job *job;
	int err = job_find(queue, command->id, &job);

	(void)body;
	if (!err && job->status == IS_RESERVED && job->holder != session->holder)
		err = -ENOENT;
	else if (!err && job->keyed)
		err = read_record(queue, job, &record);
	if (err) {
		say_error(session, err);
		return true;
	}
	job->tube->cmd_delete++;
	job_gone(queue, job, record.key, record.key_len);
	say_changed(session, "DELETED");
	return true;
}

static bool run_reschedule(struct session *session, const struct command *command,
			   const void *body)
{
	struct queue *queue = session->queue;
	struct job_record record;
	struct job *job;
	int err = job_find(queue, command->id, &job);

	(void)body;
	if (!err && job->status != IS_READY && job->status != IS_DELAYED) {
		job_settle(queue, job);
		err = -ENOENT;
	}
	if (!err)
		err = read_record(queue, job, &record);
	if (err) {
		say_error(session, err);
		return true;
	}
	record.delay_ns = command->delay_ns;
	place_delayed(queue, &record.place, command->delay_ns);
	job_become(queue, job, &record);
	say_changed(session, "RESCHEDULED");
	return true;
}

/* A buried or delayed job becomes ready, where it came from. */
static int kick_job(struct queue *queue, struct job *job)
{
	struct job_record record;
	int err = read_record(queue, job, &record);

	if (err)
		return err;
	record.kicks++;
	retry_revive(queue, &record);
	place_ready(&record.place);
	job_become(queue, job, &record);
	return 0;
}

static bool run_kick_job(struct session *session, const struct command *command,
			 const void *body)
{
	struct queue *queue = session->queue;
	struct job *job;
	int err = job_find(queue, command->id, &job);

	(void)body;
	if (!err && job->status != IS_BURIED && job->status != IS_DELAYED) {
		job_settle(queue, job);
		err = -ENOENT;
	}
	if (!err)
		err = kick_job(queue, job);
	if (err)
		say_error(session, err);
	else
		say_changed(session, "KICKED");
	return true;
}

/* --- kick: the first of a tube -------------------------------------------------------- */

struct found {
	struct queue *queue;
	enum job_status status;
	struct job_place *places;
	size_t nr;
	size_t most;
};

/* A job that is what the disk says, as far as memory knows. */
static bool find_one(void *context, const struct job_place *place)
{
	struct found *found = context;
	struct job *job = job_resident(found->queue, place->id);

	if (!job || job->status == found->status)
		found->places[found->nr++] = *place;
	return found->nr < found->most;
}

/*
 * The first place of a tube in an index. Those that are due already are as good as ready.
 */
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

static size_t first_of(struct session *session, enum job_state state,
		       struct job_place *place)
{
	struct job_place from = first_place(session, state);

	return find_jobs(session->queue, &from, place, 1);
}

/*
 * One whose record is damaged is set aside, in memory; all that is known of it is its entry
 * in the index.
 */
static bool kick_at(struct queue *queue, const struct job_place *place)
{
	struct job *job = job_resident(queue, place->id);

	if (!job)
		job = job_new(queue, place);
	return job && !kick_job(queue, job);
}

/* A piece of a kick, which goes on behind it; false: there is nothing more in this index. */
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
	/* Not from the beginning: it is full of what was kicked. */
	if (nr) {
		session->kick_from.order = places[nr - 1].order;
		session->kick_from.id = places[nr - 1].id + 1;
	}
	return nr > 0;
}

/* Buried jobs, or if there are none, delayed ones of both clocks; never both. */
static bool kick_elsewhere(struct session *session)
{
	if (session->kick_from.state != JOB_DELAYED)
		return false;
	session->kick_from = first_place(session, JOB_WALL);
	return true;
}

/* True: it is over, and that was said. */
static bool kick_on(struct session *session)
{
	bool found = session->kicks_left && kick_piece(session);

	if (session->kicks_left && (found || kick_elsewhere(session)))
		return false;
	session->kicks_left = 0;
	session_say(session, store_last(session->queue->store), "KICKED %llu",
		    (unsigned long long)session->kicked);
	return true;
}

bool sessions_kick(struct queue *queue)
{
	struct session *session, *next;

	for (session = TAILQ_FIRST(&queue->kicking); session; session = next) {
		next = TAILQ_NEXT(session, kicking);
		if (!kick_on(session))
			continue;
		TAILQ_REMOVE(&queue->kicking, session, kicking);
		session_resume(session);
	}
	return !TAILQ_EMPTY(&queue->kicking);
}

static bool run_kick(struct session *session, const struct command *command, const void *body)
{
	(void)body;
	session->kicks_left = command->count;
	session->kicked = 0;
	session->kick_from = first_place(session, session->used->nr[IS_BURIED] ? JOB_BURIED :
								   JOB_DELAYED);
	if (kick_on(session))
		return true;
	TAILQ_INSERT_TAIL(&session->queue->kicking, session, kicking);
	return false;
}

/* --- peek ----------------------------------------------------------------------------- */

static void say_found(struct session *session, uint64_t id)
{
	struct queue *queue = session->queue;
	struct job *job = job_resident(queue, id);
	const void *body;
	char line[64];
	size_t len;
	int err = store_get_body(queue->store, id, &body, &len);

	if (err) {
		say_error(session, err);
		return;
	}
	snprintf(line, sizeof(line), "FOUND %llu %zu\r\n", (unsigned long long)id, len);
	session_reply(session, job ? job->seq : store_last(queue->store), line, body, len);
}

static bool run_peek(struct session *session, const struct command *command, const void *body)
{
	(void)body;
	say_found(session, command->id);
	return true;
}

static bool run_peek_ready(struct session *session, const struct command *command,
			   const void *body)
{
	struct job *job = tube_next_job(session->queue, session->used);

	(void)command;
	(void)body;
	if (job)
		say_found(session, job_id(job));
	else
		say(session, "NOT_FOUND");
	return true;
}

/* The one of two delayed jobs that is due first: one by each clock. */
static const struct job_place *sooner(struct queue *queue, const struct job_place *delayed,
				      const struct job_place *wall)
{
	return delayed->order - clock_now_ns(&queue->clock) <=
	       wall->order - alarms_now_ns(ALARM_WALL) ? delayed : wall;
}

static bool run_peek_delayed(struct session *session, const struct command *command,
			     const void *body)
{
	struct job_place delayed, wall;
	size_t nr_delayed = first_of(session, JOB_DELAYED, &delayed);
	size_t nr_wall = first_of(session, JOB_WALL, &wall);

	(void)command;
	(void)body;
	if (nr_delayed && nr_wall)
		say_found(session, sooner(session->queue, &delayed, &wall)->id);
	else if (nr_delayed || nr_wall)
		say_found(session, nr_delayed ? delayed.id : wall.id);
	else
		say(session, "NOT_FOUND");
	return true;
}

static bool run_peek_buried(struct session *session, const struct command *command,
			    const void *body)
{
	struct job_place place;

	(void)command;
	(void)body;
	if (first_of(session, JOB_BURIED, &place))
		say_found(session, place.id);
	else
		say(session, "NOT_FOUND");
	return true;
}

/* --- tubes ---------------------------------------------------------------------------- */

static bool run_use(struct session *session, const struct command *command, const void *body)
{
	struct tube *tube = tube_get(session->queue, command->tube);

	(void)body;
	if (!tube) {
		say(session, "OUT_OF_MEMORY");
		return true;
	}
	use(session, tube);
	say(session, "USING %s", tube->name);
	return true;
}

static bool run_watch(struct session *session, const struct command *command,
		      const void *body)
{
	struct tube *tube = tube_get(session->queue, command->tube);

	(void)body;
	if (tube && watch_find(session, tube)) {
		say(session, "WATCHING %u", session->nr_watches);
	} else if (!tube || watch_add(session, tube)) {
		if (tube)
			tube_put(session->queue, tube);
		say(session, "OUT_OF_MEMORY");
	} else {
		say(session, "WATCHING %u", session->nr_watches);
	}
	return true;
}

static bool run_ignore(struct session *session, const struct command *command,
		       const void *body)
{
	struct tube *tube = tube_find(session->queue, command->tube);
	struct watch *watch = tube ? watch_find(session, tube) : NULL;

	(void)body;
	if (watch && session->nr_watches < 2) {
		say(session, "NOT_IGNORED");
		return true;
	}
	if (watch)
		watch_remove(session, watch);
	say(session, "WATCHING %u", session->nr_watches);
	return true;
}

static bool run_pause_tube(struct session *session, const struct command *command,
			   const void *body)
{
	struct tube *tube = tube_find(session->queue, command->tube);

	(void)body;
	if (!tube) {
		say(session, "NOT_FOUND");
		return true;
	}
	tube_pause(session->queue, tube, command->delay_ns);
	say(session, "PAUSED");
	return true;
}

static bool run_policy(struct session *session, const struct command *command,
		       const void *body)
{
	struct queue *queue = session->queue;
	struct tube *tube = tube_get(queue, command->tube);

	(void)body;
	if (!tube) {
		say(session, "OUT_OF_MEMORY");
		return true;
	}
	tube->policy = command->policy;
	tube_keep(queue, tube);
	tube_save(queue, tube);
	say_changed(session, "POLICY");
	return true;
}

static bool run_list_tube_used(struct session *session, const struct command *command,
			       const void *body)
{
	(void)command;
	(void)body;
	say(session, "USING %s", session->used->name);
	return true;
}

static bool run_list_tubes(struct session *session, const struct command *command,
			   const void *body)
{
	(void)command;
	(void)body;
	return list_tubes(session);
}

static bool run_list_watched(struct session *session, const struct command *command,
			     const void *body)
{
	(void)command;
	(void)body;
	return list_watched(session);
}

static bool run_list_jobs(struct session *session, const struct command *command,
			  const void *body)
{
	(void)body;
	return list_jobs(session, command);
}

static bool run_stats(struct session *session, const struct command *command,
		      const void *body)
{
	(void)command;
	(void)body;
	return stats_of_queue(session);
}

static bool run_stats_tube(struct session *session, const struct command *command,
			   const void *body)
{
	(void)body;
	return stats_of_tube(session, command->tube);
}

static bool run_stats_job(struct session *session, const struct command *command,
			  const void *body)
{
	(void)body;
	return stats_of_job(session, command->id);
}

/* Each says one thing, or returns false and says it later. */
static bool (*const runs[NR_OPS])(struct session *session, const struct command *command,
				  const void *body) = {
	[OP_PUT] = run_put,
	[OP_PEEK] = run_peek,
	[OP_PEEK_READY] = run_peek_ready,
	[OP_PEEK_DELAYED] = run_peek_delayed,
	[OP_PEEK_BURIED] = run_peek_buried,
	[OP_RESERVE] = run_reserve,
	[OP_RESERVE_WITH_TIMEOUT] = run_reserve_with_timeout,
	[OP_RESERVE_JOB] = run_reserve_job,
	[OP_DELETE] = run_delete,
	[OP_RELEASE] = run_release,
	[OP_USE] = run_use,
	[OP_WATCH] = run_watch,
	[OP_IGNORE] = run_ignore,
	[OP_BURY] = run_bury,
	[OP_KICK] = run_kick,
	[OP_KICK_JOB] = run_kick_job,
	[OP_TOUCH] = run_touch,
	[OP_STATS] = run_stats,
	[OP_STATS_JOB] = run_stats_job,
	[OP_STATS_TUBE] = run_stats_tube,
	[OP_LIST_TUBES] = run_list_tubes,
	[OP_LIST_TUBE_USED] = run_list_tube_used,
	[OP_LIST_TUBES_WATCHED] = run_list_watched,
	[OP_PAUSE_TUBE] = run_pause_tube,
	[OP_PUT_AT] = run_put,
	[OP_PUT_UNIQUE] = run_put_unique,
	[OP_RESCHEDULE] = run_reschedule,
	[OP_FAIL] = run_fail,
	[OP_POLICY] = run_policy,
	[OP_LIST_JOBS] = run_list_jobs,
};

bool session_run(struct session *session, const struct command *command, const void *body)
{
	bool said;

	session->queue->stats.commands[command->op]++;
	said = runs[command->op](session, command, body);
	queue_serve(session->queue);
	return said || !(session->waiting || session->kicks_left);
}
