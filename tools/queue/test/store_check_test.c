// SPDX-License-Identifier: GPL-2.0
/*
 * The check of a store: entries of jobs that are missing, changed, or too many, in a store that
 * RocksDB finds nothing wrong with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/integrity/scan.h"
#include "queue/store/batch.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/test/store_lib.h"

#define TUBE	3
/* The kinds of entries that a job may have beside its record. */
#define KINDS	"rdwbqukp"

static char said[1 << 12];

static int check(void)
{
	struct store_config config = test_config(test_dir());
	FILE *out = fmemopen(said, sizeof(said), "w");
	int errors = store_check(&config, out);

	fclose(out);
	test_about("%s", said);
	return errors;
}

static void put_keyed(struct store *store, uint64_t id, enum job_state state)
{
	struct job_record job = make_job(id, state, TUBE, 1, id * 1000);

	job.key_len = (uint8_t)snprintf(job.key, sizeof(job.key), "key-%d", (int)id);
	job.place.keyed = 1;
	put_job(store, &job);
}

/* Three jobs in each state, one of them with a key. */
static struct store *make_jobs(void)
{
	struct store *store = open_store();
	uint64_t id = 1, end;
	int state;

	put_tube(store, TUBE, "three");
	for (state = JOB_READY; state <= JOB_BURIED; state++) {
		for (end = id + 2; id < end; id++) {
			struct job_record job = make_job(id, (enum job_state)state, TUBE, 1,
							 id * 1000);

			put_job(store, &job);
		}
		put_keyed(store, id++, (enum job_state)state);
	}
	store_flush(store);
	return store;
}

struct copy {
	char kind;
	size_t key_len;
	size_t value_len;
	char key[300];
	char value[2000];
};

static bool copy_first(void *context, const struct store_entry *entry)
{
	struct copy *copy = context;

	if (entry->kind != copy->kind)
		return true;
	copy->key_len = entry->key_len;
	copy->value_len = entry->value_len;
	memcpy(copy->key, entry->key, entry->key_len);
	memcpy(copy->value, entry->value, entry->value_len);
	return false;
}

static void delete_it(struct store *store, struct copy *entry)
{
	store_delete_raw(store, entry->key, entry->key_len);
}

static void put_raw(struct store *store, const struct copy *entry)
{
	char *error = NULL;

	rocksdb_put(store->db, store->write_options, entry->key, entry->key_len, entry->value,
		    entry->value_len, &error);
	ASSERT(!error);
}

static void lengthen_it(struct store *store, struct copy *entry)
{
	entry->value[entry->value_len++] = 'x';
	put_raw(store, entry);
}

/* The last byte of a key belongs to an id, or to a job's key. */
static void add_another(struct store *store, struct copy *entry)
{
	entry->key[entry->key_len - 1] ^= 0x40;
	put_raw(store, entry);
}

static void see_found(void (*harm)(struct store *store, struct copy *entry))
{
	const char *kind;

	for (kind = KINDS; *kind; kind++) {
		struct store *store = make_jobs();
		struct copy entry = { .kind = *kind };

		ASSERT_EQ(store_scan_entries(store, *kind, copy_first, &entry), 0);
		ASSERT_GT(entry.key_len, 0);
		harm(store, &entry);
		store_close(store);
		ASSERT_GT(check(), 0);
		ASSERT(strstr(said, "job") || strchr(said, *kind));
		remove_tree(test_dir());
	}
}

TEST(a_store_that_is_whole_has_no_errors)
{
	store_close(make_jobs());
	ASSERT_EQ(check(), 0);
}

TEST(an_entry_that_is_missing_is_found)
{
	see_found(delete_it);
	/* The job is named. */
	ASSERT(strstr(said, "job "));
}

TEST(an_entry_with_another_value_is_found)
{
	see_found(lengthen_it);
}

TEST(an_entry_too_many_is_found)
{
	see_found(add_another);
}
