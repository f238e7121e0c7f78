// SPDX-License-Identifier: GPL-2.0
/*
 * Repair of a store: rebuild all that follows from the intact records.
 *
 * The readable data was copied before, see salvage.c. Here the entries of indexes, the keys and
 * the counts are rebuilt from the records. A job whose record or body is missing is lost; its
 * id is logged if it is known. A deleted job may be back if the delete was in damaged data;
 * this is logged, too. The same goes for schedules; each is looked at again at its next time,
 * whatever has become of its last job.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/integrity/repair.h"
#include "queue/integrity/scan.h"
#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/dir.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"

#define ENTRIES_A_COMMIT 1000

/**
 * struct repair - state of a repair
 * @store: the store, which has the copied data only.
 * @last_id: the highest id of a record or a body.
 * @entries: number of entries read.
 * @kept: number of jobs that are kept.
 * @lost: number of jobs that are known to be lost.
 * @changes: number of the last change in the copied data.
 * @synced: number of the last change that was synced; 0: unknown.
 * @error: of a read that may succeed later, which ends the repair; 0: none.
 */
struct repair {
	struct store *store;
	uint64_t last_id;
	uint64_t entries;
	uint64_t kept;
	uint64_t lost;
	uint64_t changes;
	uint64_t synced;
	int error;
};

/* Returns whether the scan goes on. */
static bool next_entry(struct repair *repair)
{
	if (++repair->entries % ENTRIES_A_COMMIT == 0)
		store_commit(repair->store);
	return !repair->error;
}

/* Is what a read has not found lost? There may be no memory or files now: then it may be there. */
static bool is_lost(struct repair *repair, int error)
{
	if (error == -ENOENT || error == -EBADMSG)
		return true;
	repair->error = error;
	return false;
}

/* A number that is lost is @missing; one that cannot be read now ends the repair. */
static uint64_t find_number(struct repair *repair, const char *name, uint64_t missing)
{
	uint64_t number;
	int ret = store_number(repair->store, name, &number);

	if (!ret)
		return number;
	is_lost(repair, ret);
	return missing;
}

/* --- drop indexes, keys, marks and counts ------------------------------------------------- */

static bool drop_next(void *context, const struct store_entry *entry)
{
	struct repair *repair = context;

	/* Keep records, bodies, tubes and numbers. */
	if (entry->sound && strchr("jptmef", entry->kind))
		return true;
	store_delete_raw(repair->store, entry->key, entry->key_len);
	return next_entry(repair);
}

/* --- rebuild them ------------------------------------------------------------------------- */

static int find_body(struct store *store, const struct job_record *job)
{
	const void *body;
	size_t len;
	int ret = store_get_body(store, job->place.id, &body, &len);

	return ret || len == job->body_len ? ret : -ENOENT;
}

static void drop_lost_job(struct repair *repair, uint64_t id)
{
	store_say(repair->store, LOG_ERR,
		  "%s: job %" PRIu64 " is lost, or was deleted: its record or body is missing",
		  repair->store->dir, id);
	store_drop_job(repair->store, id);
	repair->lost++;
}

/* Give a tube whose name is lost a new name. */
static void keep_tube(struct repair *repair, uint32_t number)
{
	struct tube_record tube;
	int ret = store_get_tube(repair->store, number, &tube);

	if (!ret || !is_lost(repair, ret))
		return;
	memset(&tube, 0, sizeof(tube));
	tube.tube = number;
	snprintf(tube.name, sizeof(tube.name), "lost-name-%" PRIu32, number);
	store_say(repair->store, LOG_ERR, "%s: the name of a tube is lost: its new name is '%s'",
		  repair->store->dir, tube.name);
	store_put_tube(repair->store, &tube);
	store_commit(repair->store);
}

/* If two jobs have the same key, as a deleted one is back, the first one keeps it. */
static void restore_job(struct repair *repair, struct job_record *job)
{
	uint64_t other;
	int ret;

	if (job->key_len) {
		ret = store_get_key(repair->store, job->place.tube, job->key, job->key_len,
				    &other);
		if (ret && !is_lost(repair, ret))
			return;
		if (!ret) {
			job->key_len = 0;
			job->place.keyed = 0;
		}
	}
	keep_tube(repair, job->place.tube);
	store_keep_job(repair->store, job);
	repair->kept++;
}

static bool restore_next(void *context, const struct store_entry *entry)
{
	struct repair *repair = context;
	struct job_record job = entry->job;
	int ret;

	if (entry->kind != 'j')
		return false;
	if (job.place.id > repair->last_id)
		repair->last_id = job.place.id;
	ret = find_body(repair->store, &job);
	if (!ret)
		restore_job(repair, &job);
	else if (is_lost(repair, ret))
		drop_lost_job(repair, job.place.id);
	return next_entry(repair);
}

static bool drop_body(void *context, const struct store_entry *entry)
{
	struct repair *repair = context;
	struct job_record job;
	int ret;

	if (entry->kind != 'p')
		return false;
	if (entry->job.place.id > repair->last_id)
		repair->last_id = entry->job.place.id;
	ret = store_get(repair->store, entry->job.place.id, &job);
	if (ret && is_lost(repair, ret))
		drop_lost_job(repair, entry->job.place.id);
	return next_entry(repair);
}

/* --- schedules ---------------------------------------------------------------------------- */

static void drop_lost_schedule(struct repair *repair, uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];

	store_say(repair->store, LOG_ERR,
		  "%s: schedule %" PRIu64 " is lost: it is not whole, or its name is taken",
		  repair->store->dir, id);
	store_delete_raw(repair->store, key, store_key_id(key, 'e', id));
	store_delete_raw(repair->store, key, store_key_id(key, 'f', id));
	store_touch_id(repair->store, id);
}

/* Returns -ENOENT also if another schedule has its name. */
static int find_schedule_body(struct store *store, const struct schedule_record *schedule)
{
	const void *body;
	uint64_t other;
	size_t len;
	int ret = store_get_schedule_body(store, schedule->id, &body, &len);

	if (ret)
		return ret;
	if (len != schedule->body_len)
		return -ENOENT;
	ret = store_find_schedule(store, schedule->tube, schedule->name, &other);
	if (!ret)
		return -ENOENT;
	return ret == -ENOENT ? 0 : ret;
}

static bool restore_schedule(void *context, const struct store_entry *entry)
{
	struct repair *repair = context;
	struct schedule_record schedule = entry->schedule;
	int ret;

	if (entry->kind != 'e')
		return false;
	if (schedule.id > repair->last_id)
		repair->last_id = schedule.id;
	ret = find_schedule_body(repair->store, &schedule);
	if (ret) {
		if (is_lost(repair, ret))
			drop_lost_schedule(repair, schedule.id);
		return next_entry(repair);
	}
	keep_tube(repair, schedule.tube);
	schedule.at_ns = schedule.next_ns;
	store_keep_schedule(repair->store, &schedule);
	return next_entry(repair);
}

static bool drop_schedule_body(void *context, const struct store_entry *entry)
{
	struct repair *repair = context;
	struct schedule_record schedule;
	uint64_t id = entry->schedule.id;
	int ret;

	if (entry->kind != 'f')
		return false;
	if (id > repair->last_id)
		repair->last_id = id;
	ret = store_get_schedule(repair->store, id, &schedule);
	if (ret && is_lost(repair, ret))
		drop_lost_schedule(repair, id);
	return next_entry(repair);
}

/* --- the whole store ---------------------------------------------------------------------- */

/* Which changes are lost is said in the end; and by the next repair, if this one is stopped. */
static void note_lost_changes(struct repair *repair)
{
	struct store *store = repair->store;

	repair->changes = find_number(repair, NUMBER_FOUND, store->changes);
	repair->synced = find_number(repair, NUMBER_SYNCED, store_witness(store));
	if (repair->error || repair->changes >= repair->synced)
		return;
	store_put_number(store, NUMBER_FOUND, repair->changes);
	store_put_number(store, NUMBER_SYNCED, repair->synced);
}

static void forget_number(struct store *store, const char *name)
{
	uint8_t key[STORE_KEY_MAX];

	store_delete_raw(store, key, store_key_number(key, name));
}

/* Choose values for lost numbers that fit the jobs that are left. */
static void repair_numbers(struct repair *repair)
{
	struct store *store = repair->store;

	store->next_id = find_number(repair, NUMBER_NEXT_ID, 1);
	if (repair->error)
		return;
	store_skip_ids(store, repair->last_id);
	store_put_number(store, NUMBER_VERSION, STORE_VERSION);
	forget_number(store, NUMBER_FOUND);
	forget_number(store, NUMBER_SYNCED);
}

/* What was in a damaged part is not known, so no number of lost jobs is complete. */
static void say_result(const struct repair *repair)
{
	struct store *store = repair->store;

	store_say(store, LOG_WARNING, "%s: repaired: %" PRIu64 " jobs are kept", store->dir,
		  repair->kept);
	if (repair->lost)
		store_say(store, LOG_WARNING,
			  "%s: %" PRIu64 " jobs are lost, or were deleted; each is named above",
			  store->dir, repair->lost);
	if (repair->changes < repair->synced)
		store_say(store, LOG_WARNING,
			  "%s: the changes after number %" PRIu64 ", up to %" PRIu64 ", are lost",
			  store->dir, repair->changes, repair->synced);
	store_say(store, LOG_WARNING,
		  "%s: more jobs may be lost, and deleted or older ones may be back: what was in the damaged part is not known",
		  store->dir);
	store_say(store, LOG_WARNING, "%s: the next id is %" PRIu64 ", so that none is given twice",
		  store->dir, store->next_id);
}

/* See all entries from this kind on, until @each returns false. */
static int each_entry(struct repair *repair, char kind,
		      bool (*each)(void *context, const struct store_entry *entry))
{
	int ret = store_scan_entries(repair->store, kind, each, repair);

	return ret ? ret : repair->error;
}

static int rebuild(struct repair *repair)
{
	struct store *store = repair->store;
	int ret = each_entry(repair, 0, drop_next);

	store_tubes_free(store);
	if (!ret)
		ret = each_entry(repair, 'j', restore_next);
	if (!ret)
		ret = each_entry(repair, 'p', drop_body);
	if (!ret)
		ret = each_entry(repair, 'e', restore_schedule);
	if (!ret)
		ret = each_entry(repair, 'f', drop_schedule_body);
	if (ret)
		return ret;
	repair_numbers(repair);
	if (repair->error)
		return repair->error;
	store_flush(store);
	say_result(repair);
	return 0;
}

int store_repair_jobs(struct store *store)
{
	struct repair repair = { .store = store };

	store->changes = find_number(&repair, NUMBER_CHANGES, 0);
	note_lost_changes(&repair);
	if (repair.error)
		return repair.error;
	if (store->changes < store_witness(store))
		store->changes = store_witness(store);
	return rebuild(&repair);
}
