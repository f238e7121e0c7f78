// SPDX-License-Identifier: GPL-2.0
/*
 * Copying what can be read of a damaged store.
 *
 * A walk ends at the first block that cannot be read, though there is more behind it, and
 * other tables have good entries of the same range. Records and bodies have ids, and tubes
 * numbers, so it can be told where the walk goes on, and what was left out can be asked for
 * one by one, which reads only the table that should have it:
 *
 *	walk, copying | cannot be read: each id by itself | walk, copying | ...
 *	                ^ last id + 1                       ^ the first that a walk can
 *	                                                      begin with, by bisection
 *
 * What cannot be opened is read in pieces, see store_pieces.c. An error that is no damage,
 * such as a lack of memory, ends it, and nothing is changed.
 *
 *	db/ is damaged			db.copy/ is made, and thrown away if that fails
 *	db/ -> damaged-SECONDS/		db.copy/ is whole
 *	db.copy/ -> db/			has records and bodies; store_repair.c adds the rest
 *
 * The store is marked all the while, so who is ended between two steps leaves one that is
 * not served. A repair that finds db.copy/ and no db/ goes on with the last step.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store_internal.h"

#define COPY		"db.copy"
#define BATCH_BYTES	(1u << 20)
/* So many numbers are asked for one by one; and where it is not known how many there are. */
#define ONE_BY_ONE_MOST	(16u << 20)
#define UNKNOWN_MOST	(64u << 10)

/**
 * struct salvage - what is copied, and where to
 * @store: the damaged one, open for reading.
 * @path: of the copy.
 * @to: the copy.
 * @batch: what it gets next, @bytes of keys and values.
 * @options: of writes; there is no log.
 * @entries: that were copied.
 * @error: of a write, or one that is no damage; NULL: none.
 */
struct salvage {
	struct store *store;
	char *path;
	rocksdb_t *to;
	rocksdb_writebatch_t *batch;
	size_t bytes;
	rocksdb_writeoptions_t *options;
	uint64_t entries;
	char *error;
};

/**
 * struct kind - entries with a number behind the first letter of their keys
 * @letter: the first letter.
 * @bytes: of the number.
 * @next: greater than all numbers of it that there may be.
 * @most: how many are asked for one by one, of a stretch that cannot be read.
 */
struct kind {
	char letter;
	unsigned int bytes;
	uint64_t next;
	uint64_t most;
};

/* --- the copy ----------------------------------------------------------------------------- */

static void hand_over(struct salvage *salvage)
{
	if (!salvage->error)
		rocksdb_write(salvage->to, salvage->options, salvage->batch, &salvage->error);
	rocksdb_writebatch_clear(salvage->batch);
	salvage->bytes = 0;
}

static void copy(struct salvage *salvage, const char *key, size_t key_len, const char *value,
		 size_t len)
{
	salvage->entries++;
	rocksdb_writebatch_put(salvage->batch, key, key_len, value, len);
	salvage->bytes += key_len + len;
	if (salvage->bytes >= BATCH_BYTES)
		hand_over(salvage);
}

/* --- kinds with numbers ------------------------------------------------------------------- */

static size_t key_of(const struct kind *kind, uint64_t number, char *key)
{
	unsigned int i;

	*key = kind->letter;
	for (i = 0; i < kind->bytes; i++)
		key[1 + i] = (char)(number >> 8 * (kind->bytes - 1 - i));
	return 1 + kind->bytes;
}

static uint64_t number_of(const struct kind *kind, const char *key)
{
	uint64_t number = 0;
	unsigned int i;

	for (i = 0; i < kind->bytes; i++)
		number = number << 8 | (uint8_t)key[1 + i];
	return number;
}

/* Returns whether there is one, and keeps it if it is no damage, else frees it. */
static bool take_error(struct salvage *salvage, char *error)
{
	if (!error)
		return false;
	if (store_is_damage(error) || salvage->error)
		rocksdb_free(error);
	else
		salvage->error = error;
	return true;
}

static bool failed(struct salvage *salvage, rocksdb_iterator_t *iterator)
{
	char *error = NULL;

	rocksdb_iter_get_error(iterator, &error);
	return take_error(salvage, error);
}

/* Entries of a kind come one after the other. */
static bool is_of(char letter, rocksdb_iterator_t *iterator)
{
	size_t len;

	return rocksdb_iter_valid(iterator) && *rocksdb_iter_key(iterator, &len) == letter;
}

/* Copy from @*from on, and move it behind the last. Returns whether all was read. */
static bool walk(struct salvage *salvage, const struct kind *kind, uint64_t *from)
{
	rocksdb_iterator_t *iterator =
		rocksdb_create_iterator(salvage->store->db, salvage->store->read_options);
	char first[STORE_KEY_MAX];
	const char *key, *value;
	size_t key_len, len;
	bool whole;

	rocksdb_iter_seek(iterator, first, key_of(kind, *from, first));
	for (; is_of(kind->letter, iterator) && !salvage->error; rocksdb_iter_next(iterator)) {
		key = rocksdb_iter_key(iterator, &key_len);
		if (key_len != 1 + kind->bytes || number_of(kind, key) == UINT64_MAX)
			continue;
		value = rocksdb_iter_value(iterator, &len);
		copy(salvage, key, key_len, value, len);
		*from = number_of(kind, key) + 1;
	}
	whole = !failed(salvage, iterator);
	rocksdb_iter_destroy(iterator);
	return whole;
}

static bool can_begin(struct salvage *salvage, const struct kind *kind, uint64_t number)
{
	rocksdb_iterator_t *iterator =
		rocksdb_create_iterator(salvage->store->db, salvage->store->read_options);
	char key[STORE_KEY_MAX];
	bool can;

	rocksdb_iter_seek(iterator, key, key_of(kind, number, key));
	can = !failed(salvage, iterator);
	rocksdb_iter_destroy(iterator);
	return can;
}

/* The first number above @from that a walk can begin with; @next of the kind if none can. */
static uint64_t find_beginning(struct salvage *salvage, const struct kind *kind, uint64_t from)
{
	uint64_t cannot = from, can = kind->next, step = 1;

	while (step < can - cannot && !can_begin(salvage, kind, cannot + step)) {
		cannot += step;
		step *= 2;
	}
	if (step < can - cannot)
		can = cannot + step;
	while (can - cannot > 1) {
		uint64_t middle = cannot + (can - cannot) / 2;

		if (can_begin(salvage, kind, middle))
			can = middle;
		else
			cannot = middle;
	}
	return can;
}

static void copy_one(struct salvage *salvage, const struct kind *kind, uint64_t number)
{
	char key[STORE_KEY_MAX], *value, *error = NULL;
	size_t key_len = key_of(kind, number, key), len;

	value = rocksdb_get(salvage->store->db, salvage->store->read_options, key, key_len, &len,
			    &error);
	if (!take_error(salvage, error) && value)
		copy(salvage, key, key_len, value, len);
	rocksdb_free(value);
}

/*
 * Of numbers that are too many for that, those at both ends are asked for: where many were
 * deleted, a walk cannot begin anywhere among them, and what is there is at one of the ends.
 */
static void copy_each(struct salvage *salvage, const struct kind *kind, uint64_t from,
		      uint64_t to)
{
	uint64_t left = to - from > kind->most ? kind->most : to - from;

	store_say(salvage->store, LOG_WARNING,
		  "%s: entries of kind '%c' from %" PRIu64 " to %" PRIu64 " are damaged in part%s",
		  salvage->store->dir, kind->letter, from, to - 1,
		  to - from > left ? ", and not all were asked for" : "");
	if (to - from > left)
		for (; left > kind->most / 2 && !salvage->error; left--)
			copy_one(salvage, kind, from++);
	for (; left && !salvage->error; left--)
		copy_one(salvage, kind, to - left);
}

static void copy_kind(struct salvage *salvage, const struct kind *kind)
{
	uint64_t from = 0, next;

	while (!walk(salvage, kind, &from) && from < kind->next && !salvage->error) {
		next = find_beginning(salvage, kind, from);
		copy_each(salvage, kind, from, next);
		from = next;
	}
}

/* --- all of it ---------------------------------------------------------------------------- */

/* Those that cannot be read begin anew, see store_repair.c. */
static void copy_numbers(struct salvage *salvage)
{
	static const char letter = 'm';
	rocksdb_iterator_t *iterator =
		rocksdb_create_iterator(salvage->store->db, salvage->store->read_options);
	const char *key, *value;
	size_t key_len, len;

	rocksdb_iter_seek(iterator, &letter, 1);
	for (; is_of(letter, iterator); rocksdb_iter_next(iterator)) {
		key = rocksdb_iter_key(iterator, &key_len);
		value = rocksdb_iter_value(iterator, &len);
		copy(salvage, key, key_len, value, len);
	}
	if (failed(salvage, iterator))
		store_say(salvage->store, LOG_ERR,
			  "%s: numbers are lost: times may be off if the clock was ever set",
			  salvage->store->dir);
	rocksdb_iter_destroy(iterator);
}

/* All that can be read of what is open. */
static void copy_open(void *context)
{
	struct salvage *salvage = context;
	struct kind tubes = {
		.letter = 't', .bytes = 4, .next = UINT32_MAX, .most = UNKNOWN_MOST,
	};
	struct kind jobs = {
		.letter = 'j', .bytes = 8, .most = ONE_BY_ONE_MOST,
	};

	if (store_number(salvage->store, NUMBER_NEXT_ID, &jobs.next)) {
		jobs.next = UINT64_MAX;
		jobs.most = UNKNOWN_MOST;
	}
	copy_numbers(salvage);
	copy_kind(salvage, &tubes);
	copy_kind(salvage, &jobs);
	jobs.letter = 'p';
	copy_kind(salvage, &jobs);
	hand_over(salvage);
}

static void flush(struct salvage *salvage)
{
	rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();

	if (!salvage->error)
		rocksdb_flush(salvage->to, options, &salvage->error);
	rocksdb_flushoptions_destroy(options);
}

static int say_error(struct salvage *salvage)
{
	int ret = 0;

	if (salvage->error) {
		ret = strstr(salvage->error, "No space") ? -ENOSPC : -EIO;
		store_say(salvage->store, LOG_ERR, "%s: cannot be copied: %s",
			  salvage->path, salvage->error);
	}
	rocksdb_free(salvage->error);
	salvage->error = NULL;
	return ret;
}

/* Logs are read beyond what is damaged of them. */
static int copy_all(struct salvage *salvage)
{
	struct store *store = salvage->store;
	char *error = NULL;
	int ret = 0;

	rocksdb_options_set_wal_recovery_mode(store->options, SKIP_CORRUPT);
	store->db = rocksdb_open_for_read_only(store->options, store->db_path, 0, &error);
	if (!error) {
		copy_open(salvage);
		rocksdb_close(store->db);
	} else {
		store_damaged(store, "its files cannot be put together", error);
		store->db = NULL;
		ret = store_each_piece(store, copy_open, salvage);
	}
	store->db = NULL;
	rocksdb_options_set_wal_recovery_mode(store->options, TOLERATE_TORN_TAIL);
	return ret;
}

static void fill_copy(struct salvage *salvage)
{
	salvage->options = rocksdb_writeoptions_create();
	rocksdb_writeoptions_disable_WAL(salvage->options, 1);
	salvage->batch = rocksdb_writebatch_create();
	if ((copy_all(salvage) || !salvage->entries) && !salvage->error)
		salvage->error = strdup("nothing of it can be read");
	flush(salvage);
	rocksdb_writebatch_destroy(salvage->batch);
	rocksdb_writeoptions_destroy(salvage->options);
}

/* Make the copy, and close both. */
static int make_copy(struct salvage *salvage)
{
	rocksdb_options_t *options = rocksdb_options_create_copy(salvage->store->options);
	int ret;

	rocksdb_options_set_create_if_missing(options, 1);
	rocksdb_destroy_db(options, salvage->path, &salvage->error);
	if (!salvage->error)
		salvage->to = rocksdb_open(options, salvage->path, &salvage->error);
	if (!salvage->error) {
		fill_copy(salvage);
		rocksdb_close(salvage->to);
	}
	ret = say_error(salvage);
	if (ret) {
		rocksdb_destroy_db(options, salvage->path, &salvage->error);
		rocksdb_free(salvage->error);
	}
	rocksdb_options_destroy(options);
	return ret;
}

static bool is_there(const struct store *store, const char *name)
{
	return !faccessat(store->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* What was damaged is kept, for whoever can read more of it. */
static int put_aside(struct store *store)
{
	long long second = time(NULL);
	char kept[64];

	do {
		snprintf(kept, sizeof(kept), "damaged-%lld", second++);
	} while (is_there(store, kept));
	if (renameat(store->dir_fd, "db", store->dir_fd, kept))
		return -errno;
	store_say(store, LOG_WARNING, "%s/%s has what was there before: it may be removed",
		  store->dir, kept);
	return 0;
}

static int take_its_place(struct store *store)
{
	if (renameat(store->dir_fd, COPY, store->dir_fd, "db") || fsync(store->dir_fd))
		return -errno;
	return 0;
}

static int say_rename(struct store *store, int ret)
{
	if (ret)
		store_say(store, LOG_ERR, "%s: the copy cannot take its place: %s", store->dir,
			  strerror(-ret));
	return ret;
}

int store_salvage(struct store *store)
{
	struct salvage salvage = { .store = store };
	int ret;

	if (!is_there(store, "db") && is_there(store, COPY))
		return say_rename(store, take_its_place(store));
	if (asprintf(&salvage.path, "%s/" COPY, store->dir) < 0)
		abort();
	ret = make_copy(&salvage);
	free(salvage.path);
	if (ret)
		return ret;
	ret = put_aside(store);
	return say_rename(store, ret ? ret : take_its_place(store));
}
