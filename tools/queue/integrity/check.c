// SPDX-License-Identifier: GPL-2.0
/*
 * store_check(): read the whole store and check that it is consistent.
 *
 * All other entries are compared with the records. Each job has a body of the length in its
 * record, an entry in the index of its state, and its key. There are no more entries, bodies
 * and keys than the records need. Each mark belongs to a job. The tube of each job has a name.
 * The counts equal the numbers of entries in the indexes. The next id is above all ids.
 *
 * To look each entry of a job up takes many times as long as to read them in their order, as
 * soon as the store is larger than the cache. So the entries are read once, and each is added to
 * a sum of hashes of its kind, as is each entry that a record has to have. Only if two sums of a
 * kind differ, a second pass looks the entries up, to name the jobs.
 *
 * Each schedule has a body, its name, and its entry in the index of times; without one its last
 * job is there, or an entry of time 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/integrity/scan.h"
#include "queue/store/counts.h"
#include "queue/store/dir.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/state.h"
#include "queue/store/verify.h"

/**
 * struct check - state of a check
 * @store: the store.
 * @out: where errors are printed.
 * @errors: number of errors.
 * @error: of a read that may succeed later, which ends the check; 0: none.
 * @keyed: number of jobs that have a key.
 * @timed: number of schedules that have an entry in the index of times.
 * @times: number of such entries, without those of time 0.
 * @tube: the tube whose name was found last.
 * @by_name: this is the second pass.
 * @kinds: number of entries by the first letter of their keys.
 * @found: sum of the hashes of these entries.
 * @expected: sum of the hashes of the entries that the records of jobs have to have.
 */
struct check {
	struct store *store;
	FILE *out;
	int errors;
	int error;
	uint64_t keyed;
	uint64_t timed;
	uint64_t times;
	uint32_t tube;
	bool by_name;
	uint64_t kinds[256];
	uint64_t found[256];
	uint64_t expected[256];
};

static void __attribute__((format(printf, 2, 3)))
report(struct check *check, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(check->out, format, args);
	va_end(args);
	fputc('\n', check->out);
	check->errors++;
}

/* Does what a read has returned mean that the store is damaged? If it may succeed later, not. */
static bool is_wrong(struct check *check, int ret)
{
	if (ret == -EIO)
		check->error = ret;
	return ret && ret != -EIO;
}

/* The same for an error of RocksDB; NULL: there is none. */
static bool is_wrong_error(struct check *check, const char *error)
{
	return error && is_wrong(check, store_is_damage(error) ? -EBADMSG : -EIO);
}

/* --- the entries of a record -------------------------------------------------------------- */

/* Returns whether there is an entry with this key and this value, or the check has ended. */
static bool has_entry(struct check *check, const void *key, size_t key_len, const void *value,
		      size_t len)
{
	char *error = NULL;
	size_t seen_len = 0;
	char *seen = rocksdb_get(check->store->db, check->store->read_options, key, key_len,
				 &seen_len, &error);
	bool same = seen && seen_len == len && !memcmp(seen, value, len);

	if (is_wrong_error(check, error))
		report(check, "cannot read: %s", error);
	rocksdb_free(error);
	rocksdb_free(seen);
	return same || check->error;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len--)
		hash = (hash ^ *at++) * 1099511628211ull;
	return hash;
}

/* FNV-1a; mixed in the end, as hashes are added up. */
static uint64_t hash_entry(const void *key, size_t key_len, const void *value, size_t len)
{
	uint64_t hash = hash_bytes(14695981039346656037ull, key, key_len);

	hash = hash_bytes(hash_bytes(hash, &len, sizeof(len)), value, len);
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ull;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebull;
	return hash ^ hash >> 31;
}

/* A job has to have this entry; @lack is what is said if it does not. */
static void expect(struct check *check, uint64_t id, const uint8_t *key, size_t key_len,
		   const void *value, size_t len, const char *lack)
{
	if (!check->by_name)
		check->expected[*key] += hash_entry(key, key_len, value, len);
	else if (!has_entry(check, key, key_len, value, len))
		report(check, "job %" PRIu64 ": it %s", id, lack);
}

static void look_up_body(struct check *check, const struct job_record *job)
{
	const void *body;
	size_t len;
	int ret = store_get_body(check->store, job->place.id, &body, &len);

	if (is_wrong(check, ret))
		report(check, "job %" PRIu64 ": its body is %s", job->place.id,
		       ret == -ENOENT ? "missing" : "damaged");
	else if (!ret && len != job->body_len)
		report(check, "job %" PRIu64 ": its body has %zu bytes, not %" PRIu32,
		       job->place.id, len, job->body_len);
}

/* Of a body only the length is known. */
static void expect_body(struct check *check, const struct job_record *job)
{
	uint8_t key[STORE_KEY_MAX];
	uint64_t len = job->body_len;

	if (check->by_name)
		look_up_body(check, job);
	else
		check->expected['p'] += hash_entry(key, store_key_id(key, 'p', job->place.id),
						   &len, sizeof(len));
}

static void expect_entries(struct check *check, const struct job_record *job)
{
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
	const struct job_place *place = &job->place;
	size_t len;

	expect_body(check, job);
	len = store_encode_place(value, place);
	expect(check, place->id, key, store_key_place(key, place), value, len,
	       "is missing in the index of its state");
	len = store_encode_of_tube(value, place);
	if (store_key_tube_kind(place->state))
		expect(check, place->id, key, store_key_of_tube(key, place), value, len,
		       "is missing among the delayed jobs of its tube");
	len = store_encode_u64(value, place->id);
	if (job->key_len)
		expect(check, place->id, key,
		       store_key_unique(key, place->tube, job->key, job->key_len), value, len,
		       "cannot be found by its key");
}

static void find_entry(struct check *check, const struct store_entry *entry)
{
	uint64_t len = entry->value_len;

	check->found[(uint8_t)entry->kind] += entry->kind == 'p' ?
		hash_entry(entry->key, entry->key_len, &len, sizeof(len)) :
		hash_entry(entry->key, entry->key_len, entry->value, entry->value_len);
}

static void check_job(struct check *check, const struct job_record *job)
{
	const struct job_place *place = &job->place;
	struct tube_record tube;
	int ret;

	expect_entries(check, job);
	check->keyed += job->key_len > 0;
	if (place->id >= check->store->next_id)
		report(check, "job %" PRIu64 ": the next id is %" PRIu64, place->id,
		       check->store->next_id);
	if (check->tube == place->tube)
		return;
	ret = store_get_tube(check->store, place->tube, &tube);
	if (is_wrong(check, ret))
		report(check, "job %" PRIu64 ": its tube %" PRIu32 " has no name", place->id,
		       place->tube);
	else if (!ret)
		check->tube = place->tube;
}

static bool look_up_next(void *context, const struct store_entry *entry)
{
	struct check *check = context;

	if (entry->kind != 'j')
		return false;
	if (entry->sound)
		expect_entries(check, &entry->job);
	return !check->error;
}

/* Compare the sums; if they differ, look for the jobs whose entries are missing. */
static void check_hashes(struct check *check)
{
	static const char kinds[] = "rdwbqukp";
	int errors = check->errors;
	const char *kind = kinds;

	while (*kind && check->found[(uint8_t)*kind] == check->expected[(uint8_t)*kind])
		kind++;
	if (!*kind)
		return;
	check->by_name = true;
	if (is_wrong(check, store_scan_entries(check->store, 'j', look_up_next, check)))
		report(check, "a block cannot be read, and what is behind it was not checked");
	if (check->errors == errors && !check->error)
		report(check, "there are entries of kind '%c' that no job has", *kind);
}

/* --- the entries of a schedule ------------------------------------------------------------ */

static bool has_time(struct check *check, uint64_t at_ns, uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];

	return has_entry(check, key, store_key_schedule_time(key, at_ns, id), "", 0);
}

/* Is the last job of a schedule there, and not buried, or reserved? */
static bool has_last_job(struct check *check, const struct schedule_record *schedule)
{
	uint8_t key[STORE_KEY_MAX];
	struct job_record job;
	int ret = store_get(check->store, schedule->last, &job);

	if (ret)
		return !is_wrong(check, ret);
	return job.place.state != JOB_BURIED ||
		has_entry(check, key, store_key_id(key, 'v', schedule->last), "", 0);
}

static void check_schedule_body(struct check *check, const struct schedule_record *schedule)
{
	const void *body;
	size_t len;
	int ret = store_get_schedule_body(check->store, schedule->id, &body, &len);

	if (is_wrong(check, ret))
		report(check, "schedule '%s': its body is %s", schedule->name,
		       ret == -ENOENT ? "missing" : "damaged");
	else if (!ret && len != schedule->body_len)
		report(check, "schedule '%s': its body has %zu bytes, not %" PRIu32,
		       schedule->name, len, schedule->body_len);
}

static void check_schedule(struct check *check, const struct schedule_record *schedule)
{
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
	struct tube_record tube;
	size_t len;

	check_schedule_body(check, schedule);
	store_tubes_see_schedule(check->store, schedule->tube);
	len = store_encode_u64(value, schedule->id);
	if (!has_entry(check, key, store_key_schedule_name(key, schedule->tube, schedule->name,
							   schedule->name_len), value, len))
		report(check, "schedule '%s': it cannot be found by its name", schedule->name);
	check->timed += schedule->at_ns > 0;
	if (schedule->at_ns ? !has_time(check, schedule->at_ns, schedule->id) :
	    !has_last_job(check, schedule) && !has_time(check, 0, schedule->id))
		report(check, "schedule '%s': it is missing in the index of times",
		       schedule->name);
	if (schedule->id >= check->store->next_id)
		report(check, "schedule '%s': its id is %" PRIu64 ", and the next id %" PRIu64,
		       schedule->name, schedule->id, check->store->next_id);
	if (is_wrong(check, store_get_tube(check->store, schedule->tube, &tube)))
		report(check, "schedule '%s': its tube %" PRIu32 " has no name", schedule->name,
		       schedule->tube);
}

/* --- entry by entry ----------------------------------------------------------------------- */

static void check_mark(struct check *check, uint64_t id)
{
	struct job_record job;

	if (is_wrong(check, store_get(check->store, id, &job)))
		report(check, "job %" PRIu64 ": it has a mark, but no record", id);
}

static void check_entry(struct check *check, const struct store_entry *entry)
{
	check->kinds[(uint8_t)entry->kind]++;
	find_entry(check, entry);
	if (store_is_place(entry))
		store_tubes_see(check->store, &entry->job.place);
	if (!entry->sound)
		report(check, "an entry of kind '%c' is not valid", entry->kind);
	else if (entry->kind == 'j')
		check_job(check, &entry->job);
	else if (entry->kind == 'v')
		check_mark(check, entry->job.place.id);
	else if (entry->kind == 'e')
		check_schedule(check, &entry->schedule);
	else if (entry->kind == 's')
		check->times += entry->schedule.at_ns > 0;
}

static bool check_next(void *context, const struct store_entry *entry)
{
	struct check *check = context;

	check_entry(check, entry);
	return !check->error;
}

static void check_sums(struct check *check)
{
	uint64_t *kinds = check->kinds;
	uint64_t places = kinds['r'] + kinds['d'] + kinds['w'] + kinds['b'];
	uint32_t tube;

	if (places != kinds['j'])
		report(check, "the indexes have %" PRIu64 " entries for %" PRIu64 " jobs", places,
		       kinds['j']);
	if (kinds['q'] != kinds['d'] || kinds['u'] != kinds['w'])
		report(check, "the tubes have %" PRIu64 " delayed jobs, and the store has %" PRIu64,
		       kinds['q'] + kinds['u'], kinds['d'] + kinds['w']);
	if (kinds['p'] != kinds['j'])
		report(check, "there are %" PRIu64 " bodies for %" PRIu64 " jobs", kinds['p'],
		       kinds['j']);
	if (kinds['k'] != check->keyed)
		report(check, "there are %" PRIu64 " keys for %" PRIu64 " jobs that have one",
		       kinds['k'], check->keyed);
	if (kinds['f'] != kinds['e'] || kinds['n'] != kinds['e'])
		report(check, "there are %" PRIu64 " bodies and %" PRIu64 " names for %" PRIu64
		       " schedules", kinds['f'], kinds['n'], kinds['e']);
	if (check->times != check->timed)
		report(check, "the index of times has %" PRIu64 " entries for %" PRIu64
		       " schedules", check->times, check->timed);
	if (!store_tubes_agree(check->store, &tube))
		report(check, "the counts of tube %" PRIu32 " do not match its jobs and schedules",
		       tube);
}

/* Filters and indexes, too: a walk does not read them, but a look at one job does. */
static void check_blocks(struct check *check)
{
	char *error = verify_tables(check->store->db);

	if (is_wrong_error(check, error))
		report(check, "a block cannot be read: %s", error);
	rocksdb_free(error);
}

int store_check(const struct store_config *config, FILE *out)
{
	struct check check = { .out = out, .tube = UINT32_MAX };
	bool unfinished;
	int marked, ret = store_open_unscanned(&check.store, config);

	if (ret == -EBADMSG) {
		report(&check, "it cannot be opened: serve --repair keeps what can be read");
		return check.errors;
	}
	if (ret)
		return ret;
	marked = store_dir_is_marked(check.store, &unfinished);
	if (marked < 0)
		check.error = marked;
	else if (marked)
		report(&check, unfinished ? MARK_UNFINISHED :
		       "damage was found while the store was in use");
	ret = store_scan_entries(check.store, 0, check_next, &check);
	if (is_wrong(&check, ret)) {
		report(&check, "a block cannot be read, and what is behind it was not checked");
	} else if (!check.error) {
		check_blocks(&check);
		check_hashes(&check);
		check_sums(&check);
	}
	store_close(check.store);
	return check.error ? check.error : check.errors;
}
