// SPDX-License-Identifier: GPL-2.0
/*
 * A scan: read every entry, so that RocksDB checks every block, and decode it.
 *
 * A small store is scanned before the daemon serves it, a larger one while it does, see
 * scrub.c. The scan before also compares the counts with the indexes: a count differs if it
 * was written together with changes that are lost.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/integrity/scan.h"
#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/rocksdb.h"
#include "queue/store/state.h"
#include "queue/store/verify.h"

/* --- entries ------------------------------------------------------------------------------ */

static bool decode_job(const char *key, size_t key_len, const char *value, size_t len,
		       struct job_record *job)
{
	uint64_t id;

	return store_decode_id(key, key_len, 'j', &id) && store_decode_job(id, value, len, job);
}

static bool decode_schedule(const char *key, size_t key_len, const char *value, size_t len,
			    struct schedule_record *schedule)
{
	uint64_t id;

	return store_decode_id(key, key_len, 'e', &id) &&
		store_decode_schedule(id, value, len, schedule);
}

static bool decode_counts(const char *key, size_t key_len, const char *value, size_t len)
{
	struct tube_counts counts;
	uint32_t tube;

	return store_decode_counts(key, key_len, value, len, &tube, &counts);
}

static bool decode(struct store_entry *entry, const char *key, size_t key_len,
		   const char *value, size_t len)
{
	uint64_t number;

	switch (entry->kind) {
	case 'p':
	case 'v':
		return store_decode_id(key, key_len, entry->kind, &entry->job.place.id);
	case 'j':
		return decode_job(key, key_len, value, len, &entry->job);
	case 'r':
	case 'd':
	case 'w':
	case 'b':
	case 'q':
	case 'u':
		return store_decode_place(key, key_len, value, len, &entry->job.place);
	case 't':
		return store_decode_tube(key, key_len, value, len, &entry->tube);
	case 'c':
		return decode_counts(key, key_len, value, len);
	case 'k':
	case 'm':
	case 'n':
		return store_decode_u64(value, len, &number);
	case 'e':
		return decode_schedule(key, key_len, value, len, &entry->schedule);
	case 'f':
		return store_decode_id(key, key_len, 'f', &entry->schedule.id);
	case 's':
		return store_decode_schedule_time(key, key_len, &entry->schedule.at_ns,
						  &entry->schedule.id);
	}
	return false;
}

bool store_is_place(const struct store_entry *entry)
{
	return entry->sound && strchr("rdwb", entry->kind);
}

static void each_entry(rocksdb_iterator_t *iterator,
		       bool (*each)(void *context, const struct store_entry *entry),
		       void *context)
{
	struct store_entry entry;
	const char *key, *value;
	size_t key_len, len;

	for (; rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
		key = rocksdb_iter_key(iterator, &key_len);
		value = rocksdb_iter_value(iterator, &len);
		entry.key = key;
		entry.key_len = key_len;
		entry.value = value;
		entry.value_len = len;
		entry.kind = key_len ? *key : '?';
		entry.sound = decode(&entry, key, key_len, value, len);
		if (!each(context, &entry))
			return;
	}
}

int store_scan_from(struct store *store, const char *from, size_t len,
		    bool (*each)(void *context, const struct store_entry *entry), void *context)
{
	rocksdb_readoptions_t *options = store_make_read_options();
	rocksdb_iterator_t *iterator;
	char *error = NULL;

	rocksdb_readoptions_set_fill_cache(options, 0);
	rocksdb_readoptions_set_verify_checksums(options, 1);
	iterator = rocksdb_create_iterator(store->db, options);
	rocksdb_iter_seek(iterator, from, len);
	each_entry(iterator, each, context);
	rocksdb_iter_get_error(iterator, &error);
	rocksdb_iter_destroy(iterator);
	rocksdb_readoptions_destroy(options);
	return error ? store_damaged(store, "a block", error) : 0;
}

int store_scan_entries(struct store *store, char first,
		       bool (*each)(void *context, const struct store_entry *entry),
		       void *context)
{
	store_hand_over(store);
	return store_scan_from(store, &first, 1, each, context);
}

/* --- the whole store ---------------------------------------------------------------------- */

struct scan {
	struct store *store;
	uint64_t nr_jobs;
	uint64_t nr_places;
	int ret;
};

static bool scan_next(void *context, const struct store_entry *entry)
{
	struct scan *scan = context;
	char what[64];

	if (store_is_place(entry)) {
		store_tubes_see(scan->store, &entry->job.place);
		scan->nr_places++;
	}
	scan->nr_jobs += entry->kind == 'j';
	if (entry->kind == 'e' && entry->sound)
		store_tubes_see_schedule(scan->store, entry->schedule.tube);
	if (entry->sound)
		return true;
	snprintf(what, sizeof(what), "an entry of kind '%c'", entry->kind);
	scan->ret = store_damaged(scan->store, what, NULL);
	return false;
}

int store_scan(struct store *store)
{
	struct scan scan = { .store = store };
	char what[64], *error;
	uint32_t wrong;
	int ret = store_scan_entries(store, 0, scan_next, &scan);

	if (ret || scan.ret)
		return ret == -EIO ? ret : -EBADMSG;
	error = verify_tables(store->db);
	if (error)
		return store_damaged(store, "a block", error);
	if (scan.nr_jobs != scan.nr_places)
		return store_damaged(store, "jobs are missing in an index", NULL);
	if (store_tubes_agree(store, &wrong))
		return 0;
	snprintf(what, sizeof(what), "the counts of tube %" PRIu32, wrong);
	return store_damaged(store, what, NULL);
}
