// SPDX-License-Identifier: GPL-2.0
/*
 * Schedules: jobs that are put again and again by the wall clock.
 *
 *	             its time has come, the job is put
 *	             +------+
 *	   set       v      |     the last job is still there   +--------------------------+
 *	 -------> +-----------+ ------------------------------> | waits for the end of its |
 *	          | has a time|                                 | last job: has no time    |
 *	          +-----------+ <------------------------------ +--------------------------+
 *	             |      ^     that job is deleted, buried or dead: time 0
 *	             +------+
 *	             the tube is full: looked at again later
 *
 * Schedules are on disk only, in the order of the time when to look at them. One alarm waits
 * for the first of these times, and a turn looks at those that have come: so they take no
 * memory, however many they are.
 *
 * A schedule has the first of its times that no job was put for. The times that have passed
 * since are counted by a division. A job and the next time of its schedule are one change, so
 * no time has two jobs, and none is forgotten. While the queue as a whole takes no jobs (a full
 * disk, a limit, a drain), schedules stay as they are, and nothing is written.
 */
#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "queue/jobs/job.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/schedule.h"
#include "queue/jobs/tube.h"
#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/read.h"
#include "queue/store/schedule.h"
#include "queue/store/space.h"

/* The schedules that are looked at in a turn; less if these bytes of bodies are put. */
#define PIECE		64
#define PIECE_BYTES	(256 << 10)

/* When nothing can be put, it is tried again after this time. */
#define RETRY_NS	NSEC_PER_SEC
/* After damage in the index of times, which is logged each time. */
#define DAMAGED_NS	(60 * NSEC_PER_SEC)
/* In a full tube, after an interval / 16, but at least RETRY_NS and at most this. */
#define RETRY_MOST_NS	(60 * NSEC_PER_SEC)

/* An entry of the index of times. */
struct due {
	uint64_t at_ns;
	uint64_t id;
};

struct piece {
	uint64_t now_ns;
	struct due due[PIECE];
	size_t nr;
	uint64_t next_ns;
};

void schedules_init(struct queue *queue)
{
	struct schedules *schedules = &queue->schedules;

	schedules->look = true;
	schedules->passed_ns = alarms_now_ns(ALARM_WALL) - 1;
}

/* --- the next time ------------------------------------------------------------------------ */

/* The first of the times first, first + interval ... that is not before @from_ns. */
static uint64_t time_from(uint64_t first_ns, uint64_t interval_ns, uint64_t from_ns)
{
	if (first_ns >= from_ns)
		return first_ns;
	return first_ns + ((from_ns - first_ns - 1) / interval_ns + 1) * interval_ns;
}

/* Move the schedule to another time to look at it, and write its record. */
static void look_again(struct queue *queue, struct schedule_record *record, uint64_t at_ns)
{
	uint64_t old_at_ns = record->at_ns;

	record->at_ns = at_ns;
	store_move_schedule(queue->store, old_at_ns, record);
}

/* --- putting a job -------------------------------------------------------------------------- */

/* Is the last job ready, reserved or delayed? */
static bool last_job_is_there(struct queue *queue, const struct schedule_record *schedule)
{
	struct job *job = job_resident(queue, schedule->last);
	struct job_record record;

	if (!schedule->last)
		return false;
	if (job)
		return job->status != IS_BURIED && job->status != IS_BROKEN;
	return !store_get(queue->store, schedule->last, &record) &&
	       record.place.state != JOB_BURIED;
}

static uint64_t retry_after_ns(const struct schedule_record *record)
{
	uint64_t ns = record->interval_ns / 16;

	if (ns < RETRY_NS)
		return RETRY_NS;
	return ns < RETRY_MOST_NS ? ns : RETRY_MOST_NS;
}

static void make_job(struct queue *queue, const struct schedule_record *schedule,
		     struct job_record *job)
{
	memset(job, 0, offsetof(struct job_record, key));
	job->place.id = queue->next_id++;
	job->place.tube = schedule->tube;
	job->place.pri = schedule->pri;
	job->place.scheduled = true;
	place_ready(&job->place);
	job->created_ns = clock_now_ns(&queue->clock);
	job->ttr_ns = schedule->ttr_ns;
	job->body_len = schedule->body_len;
	job->schedule = schedule->id;
}

/*
 * Put a job for the @times that have passed. None of them is missed if the schedule waited for
 * this time only, and the job could be put then.
 */
static void put_job(struct queue *queue, struct tube *tube, const struct due *due,
		    struct schedule_record *schedule, uint64_t now_ns)
{
	uint64_t passed = schedule_passed(schedule, now_ns);
	struct job_record job;
	const void *body;
	size_t len;

	if (store_get_schedule_body(queue->store, schedule->id, &body, &len)) {
		log_say(LOG_ERR, "schedule \"%s\" of tube \"%s\" is damaged; it is set aside",
			schedule->name, tube->name);
		look_again(queue, schedule, 0);
		return;
	}
	make_job(queue, schedule, &job);
	queue->schedules.bytes += len;
	job.body_len = len;
	job.missed = schedule->missed + passed;
	if (job.missed == 1 && passed && due->at_ns == schedule->next_ns &&
	    schedule->next_ns > queue->schedules.passed_ns) {
		job.missed = 0;
		histogram_add(&queue->stats.ready_late, now_ns - schedule->next_ns);
	}
	store_put(queue->store, &job, body);
	schedule->last = job.place.id;
	schedule->missed = 0;
	schedule->next_ns += passed * schedule->interval_ns;
	look_again(queue, schedule, schedule->next_ns);
	job_arrived(queue, tube, &job);
}

/* --- looking at a schedule ------------------------------------------------------------------ */

/* The schedule of an entry; false: the entry is of no use any more. */
static bool get_schedule(struct queue *queue, const struct due *due,
			 struct schedule_record *record, struct tube **tube)
{
	int err = store_get_schedule(queue->store, due->id, record);

	if (err == -ENOENT || (!err && due->at_ns && due->at_ns != record->at_ns))
		return false;
	*tube = err ? NULL : tube_by_number(queue, record->tube);
	if (*tube)
		return true;
	log_say(LOG_ERR, "schedule %llu is damaged; it is set aside",
		(unsigned long long)due->id);
	return false;
}

/* Can no tube take a job now? */
static bool queue_refuses(struct queue *queue)
{
	return !store_has_room(queue->store) || queue_is_full(queue);
}

/* Look at a schedule. Returns false if nothing can be put now: it stays as it is. */
static bool look_at(struct queue *queue, const struct due *due, uint64_t now_ns)
{
	struct schedule_record record;
	struct tube *tube;
	bool found = get_schedule(queue, due, &record, &tube);
	bool waits = found && record.missed + schedule_passed(&record, now_ns);
	bool held = waits && last_job_is_there(queue, &record);

	if (waits && !held && queue_refuses(queue))
		return false;
	if (found && !waits && record.at_ns != record.next_ns)
		look_again(queue, &record, record.next_ns);
	else if (held)
		look_again(queue, &record, 0);
	else if (waits && tube_is_full(queue, tube))
		look_again(queue, &record, now_ns + retry_after_ns(&record));
	else if (waits)
		put_job(queue, tube, due, &record, now_ns);
	if (!found || !due->at_ns)
		store_drop_schedule_time(queue->store, due->at_ns, due->id);
	return true;
}

/* --- turns ---------------------------------------------------------------------------------- */

static void arm(struct queue *queue, uint64_t at_ns)
{
	struct alarm *alarm = &queue->schedules.alarm;

	alarm_cancel(queue->alarms, alarm);
	if (at_ns <= INT64_MAX)
		alarm_add(queue->alarms, alarm, ID_OF(ID_WINDOW, ID_SCHEDULES), ALARM_WALL,
			  at_ns);
}

static bool collect(void *context, uint64_t at_ns, uint64_t id)
{
	struct piece *piece = context;

	if (at_ns > piece->now_ns) {
		piece->next_ns = at_ns;
		return false;
	}
	piece->due[piece->nr++] = (struct due){ .at_ns = at_ns, .id = id };
	return piece->nr < PIECE;
}

bool schedules_turn(struct queue *queue)
{
	struct schedules *schedules = &queue->schedules;
	struct piece piece = { .now_ns = alarms_now_ns(ALARM_WALL), .next_ns = ~0ULL };
	size_t i;

	if (!schedules->look || queue->draining || queue->stopping)
		return false;
	if (store_walk_schedules(queue->store, collect, &piece))
		piece.next_ns = piece.now_ns + DAMAGED_NS;
	schedules->bytes = 0;
	for (i = 0; i < piece.nr && schedules->bytes < PIECE_BYTES; i++) {
		if (look_at(queue, &piece.due[i], piece.now_ns))
			continue;
		schedules->passed_ns = piece.now_ns;
		piece.next_ns = piece.now_ns + RETRY_NS;
		piece.nr = 0;
	}
	/* If some were looked at, the next turn looks at what has changed. */
	schedules->look = piece.nr > 0;
	if (!schedules->look)
		arm(queue, piece.next_ns);
	return schedules->look;
}

void schedules_alarm(struct queue *queue)
{
	queue->schedules.look = true;
}

void schedules_clock_was_set(struct queue *queue)
{
	uint64_t now_ns = alarms_now_ns(ALARM_WALL);

	if (queue->schedules.passed_ns > now_ns)
		queue->schedules.passed_ns = now_ns;
}

void schedule_job_ended(struct queue *queue, uint64_t id)
{
	store_wake_schedule(queue->store, id);
	queue->schedules.look = true;
}

/* --- what clients ask for ------------------------------------------------------------------- */

static void take_wish(struct schedule_record *record, const struct schedule_wish *wish)
{
	record->pri = wish->pri;
	record->ttr_ns = wish->ttr_ns;
	record->body_len = wish->body_len;
	record->interval_ns = wish->interval_ns;
}

static int schedule_add(struct queue *queue, struct tube *tube,
			const struct schedule_wish *wish)
{
	struct schedule_record record = { .name_len = strlen(wish->name) };

	if (tube_refuses(queue, tube))
		return -ENOMEM;
	tube_keep(queue, tube);
	take_wish(&record, wish);
	memcpy(record.name, wish->name, record.name_len);
	record.id = queue->next_id++;
	record.tube = tube->number;
	record.next_ns = time_from(wish->first_ns, wish->interval_ns,
				   alarms_now_ns(ALARM_WALL));
	record.at_ns = record.next_ns;
	store_put_schedule(queue->store, &record, wish->body);
	queue->schedules.nr++;
	return 0;
}

/*
 * The times that have passed are counted for the next job, which may be put at once. It still
 * waits for the end of the last job.
 */
static int schedule_replace(struct queue *queue, uint64_t id, const struct schedule_wish *wish)
{
	uint64_t now_ns = alarms_now_ns(ALARM_WALL);
	struct schedule_record record;
	int err = store_get_schedule(queue->store, id, &record);

	if (err)
		return -EBADMSG;
	record.missed += schedule_passed(&record, now_ns);
	take_wish(&record, wish);
	record.next_ns = time_from(wish->first_ns, wish->interval_ns, now_ns + 1);
	store_replace_schedule_body(queue->store, id, wish->body, wish->body_len);
	look_again(queue, &record, record.missed ? now_ns : record.next_ns);
	return 0;
}

int schedule_set(struct queue *queue, struct tube *tube, const struct schedule_wish *wish)
{
	uint64_t id;
	int err = store_find_schedule(queue->store, tube->number, wish->name, &id);

	queue->schedules.look = true;
	if (err == -ENOENT)
		return schedule_add(queue, tube, wish);
	return err ? err : schedule_replace(queue, id, wish);
}

int schedule_stop(struct queue *queue, struct tube *tube, const char *name)
{
	struct schedule_record record;
	uint64_t id;
	int err = store_find_schedule(queue->store, tube->number, name, &id);

	if (err)
		return err;
	if (store_get_schedule(queue->store, id, &record))
		return -EBADMSG;
	store_delete_schedule(queue->store, &record);
	queue->schedules.nr--;
	tube_put(queue, tube);
	return 0;
}
