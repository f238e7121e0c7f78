// SPDX-License-Identifier: GPL-2.0
/*
 * Going on with what is intact of a damaged store.
 *
 * What can be read is copied before, see store_salvage.c. Here all that follows from records
 * is made anew: entries of indexes, keys, counts. A job whose record or body is gone is lost,
 * and is named if its id is known. A job that was deleted may be back, where what told of
 * that was damaged: that is said, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store_internal.h"

#define ENTRIES_A_COMMIT 1000

struct repair {
	struct store *store;
	uint64_t last_id;
	uint64_t entries;
	uint64_t kept;
	uint64_t lost;
};

static bool next_entry(struct repair *repair)
{
	if (++repair->entries % ENTRIES_A_COMMIT == 0)
		store_commit(repair->store);
	return true;
}

/* --- what follows from records is dropped --------------------------------------------------- */

static bool drop_next(void *context, const struct store_entry *entry)
{
	struct repair *repair = context;

	/* Numbers, names of tubes, bodies and records are what is left; records are next. */
	if (entry->sound && strchr("jptm", entry->kind))
		return true;
	store_delete_raw(repair->store, entry->key, entry->key_len);
	return next_entry(repair);
}

/* --- and made anew -------------------------------------------------------------------------- */

static bool has_body(struct store *store, const struct job_record *job)
{
	const void *body;
	size_t len;

	return !store_get_body(store, job->place.id, &body, &len) && len == job->body_len;
}

static void lose(struct repair *repair, uint64_t id)
{
	store_say(repair->store, LOG_ERR, "%s: job %" PRIu64 " is lost: not all of it is there",
		  repair->store->dir, id);
	store_drop_job(repair->store, id);
	repair->lost++;
}

/* A tube whose name is lost gets another one. */
static void keep_tube(struct repair *repair, uint32_t number)
{
	struct tube_record tube;

	if (store_get_tube(repair->store, number, &tube) != -ENOENT)
		return;
	memset(&tube, 0, sizeof(tube));
	tube.tube = number;
	snprintf(tube.name, sizeof(tube.name), "lost-name-%" PRIu32, number);
	store_say(repair->store, LOG_ERR, "%s: the name of a tube is lost: it is '%s' now",
		  repair->store->dir, tube.name);
	store_put_tube(repair->store, &tube);
	store_commit(repair->store);
}

/* Of two jobs with the same key, of which one should be gone, the first has it. */
static void keep(struct repair *repair, struct job_record *job)
{
	uint64_t other;

	if (job->key_len && !store_get_key(repair->store, job->place.tube, job->key,
					   job->key_len, &other)) {
		job->key_len = 0;
		job->place.keyed = 0;
	}
	keep_tube(repair, job->place.tube);
	store_keep_job(repair->store, job);
	repair->kept++;
}

static bool keep_next(void *context, const struct store_entry *entry)
{
	struct repair *repair = context;
	struct job_record job = entry->job;

	if (entry->kind != 'j')
		return false;
	if (job.place.id > repair->last_id)
		repair->last_id = job.place.id;
	if (has_body(repair->store, &job))
		keep(repair, &job);
	else
		lose(repair, job.place.id);
	return next_entry(repair);
}

static bool drop_body(void *context, const struct store_entry *entry)
{
	struct repair *repair = context;
	struct job_record job;

	if (entry->kind != 'p')
		return false;
	if (entry->job.place.id > repair->last_id)
		repair->last_id = entry->job.place.id;
	if (store_get(repair->store, entry->job.place.id, &job))
		lose(repair, entry->job.place.id);
	return next_entry(repair);
}

/* Numbers that are lost begin where nothing that is there is contradicted. */
static void repair_numbers(struct repair *repair)
{
	struct store *store = repair->store;
	uint64_t next_id = store_get_number(store, NUMBER_NEXT_ID, 1);

	store->next_id = next_id > repair->last_id ? next_id : repair->last_id + 1;
	store->next_id_changed = true;
	store_put_number(store, NUMBER_VERSION, STORE_VERSION);
}

static int rebuild(struct repair *repair)
{
	struct store *store = repair->store;
	int ret = store_scan_entries(store, 0, drop_next, repair);

	store_tubes_free(store);
	if (!ret)
		ret = store_scan_entries(store, 'j', keep_next, repair);
	if (!ret)
		ret = store_scan_entries(store, 'p', drop_body, repair);
	if (ret)
		return ret;
	repair_numbers(repair);
	store_flush(store);
	store_say(store, LOG_WARNING,
		  "%s: repaired: %" PRIu64 " jobs are there, %" PRIu64 " are known to be lost",
		  store->dir, repair->kept, repair->lost);
	store_say(store, LOG_WARNING, "%s: some that were deleted may be back", store->dir);
	return 0;
}

int store_repair_jobs(struct store *store)
{
	struct repair repair = { .store = store };

	store->changes = store_get_number(store, NUMBER_CHANGES, 0);
	if (store->changes < store_witness(store))
		store->changes = store_witness(store);
	return rebuild(&repair);
}
