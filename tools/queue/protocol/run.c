// SPDX-License-Identifier: GPL-2.0
/*
 * Running commands: the checks, the change and the reply of each.
 *
 * A command that changes a job reads its record, changes it, and hands it to job_become(),
 * which changes disk and memory alike. The reply waits for the number that the next commit of
 * the store will have.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "queue/jobs/backup.h"
#include "queue/jobs/job.h"
#include "queue/jobs/purge.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/retry.h"
#include "queue/jobs/schedule.h"
#include "queue/jobs/tube.h"
#include "queue/jobs/window.h"
#include "queue/protocol/list.h"
#include "queue/protocol/run.h"
#include "queue/protocol/stats.h"
#include "queue/store/batch.h"
#include "queue/store/read.h"
#include "queue/store/space.h"

/**
 * struct run - a command that is run
 * @peer: the peer that sent it.
 * @session: the peer's session.
 * @queue: the queue.
 * @command: the command.
 * @body: its body, or NULL.
 */
struct run {
	struct peer *peer;
	struct session *session;
	struct queue *queue;
	const struct command *command;
	const void *body;
};

/* Reply when the change that was made is on disk. */
#define say_changed(run, ...) \
	peer_say((run)->peer, store_seq((run)->queue->store), __VA_ARGS__)

#define say(run, ...)	peer_say((run)->peer, 0, __VA_ARGS__)

static void say_error(const struct run *run, int err)
{
	if (err == -ENOENT)
		say(run, "NOT_FOUND");
	else if (err == -ENOMEM)
		say(run, "OUT_OF_MEMORY");
	else
		say(run, "INTERNAL_ERROR");
}

/* --- reserve -------------------------------------------------------------------------- */

static bool reserve(const struct run *run, uint64_t timeout_ns)
{
	struct job *job;

	run->session->worker = true;
	if (!session_may_reserve(run->session)) {
		say(run, "OUT_OF_MEMORY");
		return true;
	}
	while ((job = session_best_job(run->session)))
		if (!job_reserve(run->session, job, NULL))
			return true;
	if (session_deadline_is_soon(run->session)) {
		say(run, "DEADLINE_SOON");
		return true;
	}
	if (!timeout_ns) {
		say(run, "TIMED_OUT");
		return true;
	}
	session_wait(run->session, timeout_ns);
	return false;
}

static bool run_reserve(const struct run *run)
{
	return reserve(run, ~0ULL);
}

static bool run_reserve_with_timeout(const struct run *run)
{
	return reserve(run, run->command->delay_ns);
}

static bool run_reserve_job(const struct run *run)
{
	struct job_record record;
	struct job *job;
	int err = job_find(run->queue, run->command->id, &job, &record);

	run->session->worker = true;
	if (err) {
		say_error(run, err);
	} else if (job->status == IS_RESERVED) {
		say(run, "NOT_FOUND");
	} else if (!session_may_reserve(run->session)) {
		job_settle(run->queue, job);
		say(run, "OUT_OF_MEMORY");
	} else if (job_reserve(run->session, job, &record)) {
		say(run, "INTERNAL_ERROR");
	}
	return true;
}

/* --- put ------------------------------------------------------------------------------ */

/* May the session put a body at all? If not, reply. */
static bool may_put(const struct run *run)
{
	struct queue *queue = run->queue;

	run->session->producer = true;
	if (run->command->body_len > queue->config.max_job_size) {
		say(run, "JOB_TOO_BIG");
		return false;
	}
	if (queue->draining) {
		say(run, "DRAINING");
		return false;
	}
	if (queue_lacks_disk(queue)) {
		say(run, "OUT_OF_MEMORY");
		return false;
	}
	return true;
}

/* The place of a new job. */
static void place_put(const struct run *run, struct job_place *place)
{
	const struct command *command = run->command;

	if (command->op != OP_PUT_AT) {
		place_delayed(run->queue, place, command->delay_ns);
	} else if (command->due_ns <= alarms_now_ns(ALARM_WALL)) {
		place_ready(place);
	} else {
		place->state = JOB_WALL;
		place->order = command->due_ns;
	}
}

static void put_job(const struct run *run)
{
	const struct command *command = run->command;
	struct tube *tube = run->session->used;
	struct queue *queue = run->queue;
	struct job_record record;

	if (tube_refuses(queue, tube)) {
		say(run, "OUT_OF_MEMORY");
		return;
	}
	memset(&record, 0, offsetof(struct job_record, key));
	tube_keep(queue, tube);
	record.place.id = queue->next_id++;
	record.place.tube = tube->number;
	record.place.pri = command->pri;
	place_put(run, &record.place);
	record.created_ns = clock_now_ns(&queue->clock);
	record.delay_ns = command->delay_ns;
	record.ttr_ns = command->ttr_ns;
	record.body_len = command->body_len;
	record.key_len = strlen(command->key);
	record.place.keyed = record.key_len > 0;
	memcpy(record.key, command->key, record.key_len);
	store_put(queue->store, &record, run->body);
	job_arrived(queue, tube, &record);
	say_changed(run, "INSERTED %llu", (unsigned long long)record.place.id);
}

static bool run_put(const struct run *run)
{
	if (may_put(run))
		put_job(run);
	return true;
}

/* The job with this key becomes as if it were put anew, but for its id. */
static void replace(const struct run *run, struct job *job, struct job_record *record)
{
	const struct command *command = run->command;
	struct queue *queue = run->queue;
	int err = job_read(queue, job, record);

	if (err) {
		say_error(run, err);
		return;
	}
	store_replace_body(queue->store, job_id(job), run->body, command->body_len);
	record->body_len = command->body_len;
	record->delay_ns = command->delay_ns;
	record->ttr_ns = command->ttr_ns;
	record->place.pri = command->pri;
	record->attempts = 0;
	record->reason_len = 0;
	place_delayed(queue, &record->place, command->delay_ns);
	job_become(queue, job, record);
	say_changed(run, "REPLACED %llu", (unsigned long long)record->place.id);
}

/* The job with this key stays as it is. */
static void keep(const struct run *run, struct job *job)
{
	say(run, "KEPT %llu", (unsigned long long)job_id(job));
	job_settle(run->queue, job);
}

static bool run_put_unique(const struct run *run)
{
	const char *key = run->command->key;
	struct job_record record;
	struct job *job;
	uint64_t id;
	int err;

	if (!may_put(run))
		return true;
	err = store_get_key(run->queue->store, run->session->used->number, key, strlen(key),
			    &id);
	if (err == -ENOENT) {
		put_job(run);
		return true;
	}
	/* A key without a job is damage. */
	if (!err)
		err = job_find(run->queue, id, &job, &record) ? -EBADMSG : 0;
	if (err)
		say_error(run, err);
	else if (job->status == IS_RESERVED)
		say(run, "RESERVED %llu", (unsigned long long)id);
	else if (purge_takes(run->queue, job, &record))
		put_job(run);
	else if (run->command->op == OP_KEEP_UNIQUE)
		keep(run, job);
	else
		replace(run, job, &record);
	return true;
}

/* --- schedules ------------------------------------------------------------------------ */

static bool run_every(const struct run *run)
{
	const struct command *command = run->command;
	struct schedule_wish wish = {
		.name = command->key,
		.pri = command->pri,
		.interval_ns = command->delay_ns,
		.first_ns = command->due_ns,
		.ttr_ns = command->ttr_ns,
		.body = run->body,
		.body_len = command->body_len,
	};
	int err;

	if (!may_put(run))
		return true;
	err = schedule_set(run->queue, run->session->used, &wish);
	if (err)
		say_error(run, err);
	else
		say_changed(run, "EVERY");
	return true;
}

static bool run_every_stop(const struct run *run)
{
	int err = schedule_stop(run->queue, run->session->used, run->command->key);

	if (err)
		say_error(run, err);
	else
		say_changed(run, "STOPPED");
	return true;
}

/* --- commands of the session that holds the job ----------------------------------------- */

/* A job that the session has reserved, and its record. If it has not reserved it, reply. */
static struct job *held_job(const struct run *run, struct job_record *record)
{
	struct job *job = job_resident(run->queue, run->command->id);
	int err;

	if (!job || job->status != IS_RESERVED || job->holder != run->session->holder) {
		say(run, "NOT_FOUND");
		return NULL;
	}
	err = store_get(run->queue->store, run->command->id, record);
	if (err) {
		say_error(run, err);
		return NULL;
	}
	record->reserves++;
	return job;
}

/* The holder gives the job back, with another priority, to the place of @record. */
static bool give_back(const struct run *run, struct job *job, struct job_record *record,
		      const char *reply)
{
	record->place.pri = run->command->pri;
	job_become(run->queue, job, record);
	say_changed(run, "%s", reply);
	return true;
}

static bool run_release(const struct run *run)
{
	struct job_record record;
	struct job *job = held_job(run, &record);

	if (!job)
		return true;
	record.releases++;
	retry_released(run->queue, job, &record, run->command->delay_ns);
	return give_back(run, job, &record, "RELEASED");
}

static bool run_bury(const struct run *run)
{
	struct job_record record;
	struct job *job = held_job(run, &record);

	if (!job)
		return true;
	record.buries++;
	place_buried(run->queue, &record.place);
	return give_back(run, job, &record, "BURIED");
}

static bool run_touch(const struct run *run)
{
	struct job_record record;
	struct job *job = held_job(run, &record);

	if (!job)
		return true;
	job_touch(run->queue, job, record.ttr_ns);
	say(run, "TOUCHED");
	return true;
}

static bool run_fail(const struct run *run)
{
	const struct command *command = run->command;
	struct job_record record;
	struct job *job;
	uint64_t delay_ns;

	if (command->body_len > run->queue->config.max_job_size) {
		say(run, "JOB_TOO_BIG");
		return true;
	}
	job = held_job(run, &record);
	if (!job)
		return true;
	retry_set_reason(&record, run->body, command->has_body ? command->body_len : 0);
	if (retry_or_bury(run->queue, job, &record, &delay_ns))
		say_changed(run, "DEAD");
	else
		say_changed(run, "RETRY %u %llu", record.attempts,
			    (unsigned long long)(delay_ns / NSEC_PER_MSEC));
	job_become(run->queue, job, &record);
	return true;
}

/* --- commands of any session ------------------------------------------------------------ */

static bool run_delete(const struct run *run)
{
	struct job_record record;
	struct job *job;
	int err = job_find(run->queue, run->command->id, &job, &record);

	if (!err && job->status == IS_RESERVED && job->holder != run->session->holder)
		err = -ENOENT;
	else if (!err && job_needs_record(job))
		err = job_read(run->queue, job, &record);
	if (err) {
		say_error(run, err);
		return true;
	}
	job->tube->cmd_delete++;
	job_gone(run->queue, job, &record);
	say_changed(run, "DELETED");
	return true;
}

/* A job of the command with one of two statuses, and its record; else reply. */
static struct job *job_of_status(const struct run *run, enum job_status one,
				 enum job_status other, struct job_record *record)
{
	struct job *job;
	int err = job_find(run->queue, run->command->id, &job, record);

	if (!err && job->status != one && job->status != other) {
		job_settle(run->queue, job);
		err = -ENOENT;
	}
	if (!err)
		err = job_read(run->queue, job, record);
	if (!err)
		return job;
	say_error(run, err);
	return NULL;
}

static bool run_reschedule(const struct run *run)
{
	struct job_record record;
	struct job *job = job_of_status(run, IS_READY, IS_DELAYED, &record);

	if (!job)
		return true;
	record.delay_ns = run->command->delay_ns;
	place_delayed(run->queue, &record.place, record.delay_ns);
	job_become(run->queue, job, &record);
	say_changed(run, "RESCHEDULED");
	return true;
}

static bool run_kick_job(const struct run *run)
{
	struct job_record record;
	struct job *job = job_of_status(run, IS_BURIED, IS_DELAYED, &record);

	if (!job)
		return true;
	job_kick(run->queue, job, &record);
	say_changed(run, "KICKED");
	return true;
}

static bool run_purge(const struct run *run)
{
	static const enum job_status statuses[] = {
		[LIST_READY] = IS_READY,
		[LIST_DELAYED] = IS_DELAYED,
		[LIST_BURIED] = IS_BURIED,
	};
	enum job_status status = statuses[run->command->state];
	struct tube *tube = tube_find(run->queue, run->command->tube);

	if (!tube || !tube->nr[status]) {
		say(run, "PURGED 0");
		return true;
	}
	if (!purge_begin(run->session, tube, status))
		return false;
	say(run, "OUT_OF_MEMORY");
	return true;
}

static bool run_kick(const struct run *run)
{
	if (!session_kick(run->session, run->command->count))
		return false;
	peer_say_kicked(run->peer);
	return true;
}

/* --- peek ----------------------------------------------------------------------------- */

static bool say_found(const struct run *run, uint64_t id)
{
	struct store *store = run->queue->store;
	struct job *job = job_resident(run->queue, id);
	const void *body;
	char line[64];
	size_t len;
	int err = store_get_body(store, id, &body, &len);

	if (err) {
		say_error(run, err);
		return true;
	}
	snprintf(line, sizeof(line), "FOUND %llu %zu\r\n", (unsigned long long)id, len);
	run->peer->ops->reply(run->peer, job ? job->seq : store_last(store), line, body, len);
	return true;
}

static bool say_not_found(const struct run *run)
{
	say(run, "NOT_FOUND");
	return true;
}

static bool run_peek(const struct run *run)
{
	return say_found(run, run->command->id);
}

static bool run_peek_ready(const struct run *run)
{
	struct job *job = tube_next_job(run->queue, run->session->used);

	return job ? say_found(run, job_id(job)) : say_not_found(run);
}

/* Of two delayed jobs, one by each clock, the one that is due first. */
static const struct job_place *sooner(struct queue *queue, const struct job_place *delayed,
				      const struct job_place *wall)
{
	return delayed->order - clock_now_ns(&queue->clock) <=
	       wall->order - alarms_now_ns(ALARM_WALL) ? delayed : wall;
}

static bool run_peek_delayed(const struct run *run)
{
	struct job_place delayed, wall;
	bool has_delayed = session_first_job(run->session, JOB_DELAYED, &delayed);
	bool has_wall = session_first_job(run->session, JOB_WALL, &wall);

	if (has_delayed && has_wall)
		return say_found(run, sooner(run->queue, &delayed, &wall)->id);
	if (has_delayed || has_wall)
		return say_found(run, has_delayed ? delayed.id : wall.id);
	return say_not_found(run);
}

static bool run_peek_buried(const struct run *run)
{
	struct job_place place;

	if (session_first_job(run->session, JOB_BURIED, &place))
		return say_found(run, place.id);
	return say_not_found(run);
}

/* --- tubes ---------------------------------------------------------------------------- */

static bool say_using(const struct run *run)
{
	say(run, "USING %s", run->session->used->name);
	return true;
}

static bool say_watching(const struct run *run)
{
	say(run, "WATCHING %u", run->session->nr_watches);
	return true;
}

static bool run_use(const struct run *run)
{
	struct tube *tube = tube_get(run->queue, run->command->tube);

	if (!tube) {
		say(run, "OUT_OF_MEMORY");
		return true;
	}
	session_use(run->session, tube);
	return say_using(run);
}

static bool run_watch(const struct run *run)
{
	struct tube *tube = tube_get(run->queue, run->command->tube);

	if (tube && !session_watch(run->session, tube))
		return say_watching(run);
	if (tube)
		tube_put(run->queue, tube);
	say(run, "OUT_OF_MEMORY");
	return true;
}

static bool run_ignore(const struct run *run)
{
	struct tube *tube = tube_find(run->queue, run->command->tube);
	struct watch *watch = tube ? session_find_watch(run->session, tube) : NULL;

	if (watch && run->session->nr_watches < 2) {
		say(run, "NOT_IGNORED");
		return true;
	}
	if (watch)
		session_ignore(run->session, watch);
	return say_watching(run);
}

static bool run_pause_tube(const struct run *run)
{
	struct tube *tube = tube_find(run->queue, run->command->tube);

	if (!tube)
		return say_not_found(run);
	tube_pause(run->queue, tube, run->command->delay_ns);
	say(run, "PAUSED");
	return true;
}

/* Take the policy of a tube away. */
static bool run_policy_default(const struct run *run)
{
	struct tube *tube = tube_find(run->queue, run->command->tube);

	if (!tube || !tube->number) {
		say(run, "POLICY");
		return true;
	}
	tube->policy = run->command->policy;
	tube_save(run->queue, tube);
	tube_put(run->queue, tube);
	say_changed(run, "POLICY");
	return true;
}

static bool run_policy(const struct run *run)
{
	struct tube *tube;

	if (!run->command->policy.max_attempts)
		return run_policy_default(run);
	tube = tube_get(run->queue, run->command->tube);
	if (!tube) {
		say(run, "OUT_OF_MEMORY");
		return true;
	}
	tube->policy = run->command->policy;
	tube_keep(run->queue, tube);
	tube_save(run->queue, tube);
	say_changed(run, "POLICY");
	return true;
}

/* --- backups -------------------------------------------------------------------------- */

static bool run_backup(const struct run *run)
{
	int err = session_backup(run->session, run->command->tube);

	if (err)
		say_error(run, err);
	return err != 0;
}

/* --- stats and lists -------------------------------------------------------------------- */

static bool run_list_tubes(const struct run *run)
{
	list_tubes(run->peer);
	return true;
}

static bool run_list_watched(const struct run *run)
{
	list_watched(run->peer);
	return true;
}

static bool run_list_jobs(const struct run *run)
{
	list_jobs(run->peer, run->command);
	return true;
}

static bool run_list_every(const struct run *run)
{
	list_every(run->peer, run->command->key);
	return true;
}

static bool run_stats(const struct run *run)
{
	stats_of_queue(run->peer);
	return true;
}

static bool run_stats_tube(const struct run *run)
{
	stats_of_tube(run->peer, run->command->tube);
	return true;
}

static bool run_stats_job(const struct run *run)
{
	stats_of_job(run->peer, run->command->id);
	return true;
}

/* Each replies and returns true; or returns false, and its session waits. */
static bool (*const runs[NR_OPS])(const struct run *run) = {
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
	[OP_LIST_TUBE_USED] = say_using,
	[OP_LIST_TUBES_WATCHED] = run_list_watched,
	[OP_PAUSE_TUBE] = run_pause_tube,
	[OP_PUT_AT] = run_put,
	[OP_PUT_UNIQUE] = run_put_unique,
	[OP_KEEP_UNIQUE] = run_put_unique,
	[OP_RESCHEDULE] = run_reschedule,
	[OP_FAIL] = run_fail,
	[OP_POLICY] = run_policy,
	[OP_LIST_JOBS] = run_list_jobs,
	[OP_BACKUP] = run_backup,
	[OP_EVERY] = run_every,
	[OP_EVERY_STOP] = run_every_stop,
	[OP_LIST_EVERY] = run_list_every,
	[OP_PURGE] = run_purge,
};

bool peer_run(struct peer *peer, const struct command *command, const void *body)
{
	struct session *session = &peer->session;
	const struct run run = {
		.peer = peer,
		.session = session,
		.queue = session->queue,
		.command = command,
		.body = body,
	};
	bool replied;

	peer->protocol->commands[command->op]++;
	replied = runs[command->op](&run);
	queue_serve(session->queue);
	/* A session that began to wait may have been served at once. */
	return replied || !(session->waiting || session->kicks_left || session->purge ||
			    session->backup);
}
