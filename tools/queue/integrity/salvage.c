// SPDX-License-Identifier: GPL-2.0
/*
 * Salvage: copy the readable data of a damaged store.
 *
 * A walk ends at the first block that cannot be read, although there are entries after it, and
 * other tables may have intact entries of the same range. Records and bodies have ids, and
 * tubes have numbers. So the place where a walk can go on is found by bisection, and the
 * entries before it are read one by one; each such get reads only the table that should have
 * the entry:
 *
 *	walk and copy | unreadable: get each id | walk and copy | ...
 *	                ^ last id + 1             ^ the first id where a walk can
 *	                                            start, by bisection
 *
 * A store that RocksDB cannot open is read in pieces, see pieces.c. An error that is not
 * damage, such as a lack of memory, ends the salvage, and nothing is changed.
 *
 *	db/ is damaged			db.copy/ is filled, and removed if that fails
 *	db/ -> damaged-SECONDS/		db.copy/ is complete
 *	db.copy/ -> db/			has records and bodies; repair.c adds the rest
 *
 * The store has its damage mark during all steps, so after a crash between two of them it is
 * not served. A repair that finds db.copy/ and no db/ goes on with the last step. After it, the
 * mark says that the copy was made, and a repair that finds that goes on with db/, see open.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "queue/integrity/pieces.h"
#include "queue/integrity/salvage.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/rocksdb.h"
#include "queue/store/space.h"
#include "queue/store/state.h"
#include "queue/store/terminate.h"

#define COPY		"db.copy"
#define BATCH_BYTES	(1u << 20)
/* Entries read one by one per range; and the same if the next id is unknown. */
#define ONE_BY_ONE_MOST	(16u << 20)
#define UNKNOWN_MOST	(64u << 10)
/* The same at the end: after a repair or a load, most ids below the next one were not given. */
#define END_MOST	(1u << 20)
/* To read the logs, of 64 MiB at most, takes a second or two. */
#define TRY_CPU_S	10
/* At the hard limit, the kernel sends a SIGKILL, which says nothing of the log. */
#define TRY_CPU_HARD_S	(TRY_CPU_S + 10)
#define TRY_MOST_S	600

/**
 * struct salvage - state of a salvage
 * @store: the damaged store, open for reading.
 * @path: path of the copy.
 * @to: the copy.
 * @batch: entries that are not yet written to the copy.
 * @bytes: bytes of keys and values in @batch.
 * @options: write options of the copy, which has no log.
 * @entries: number of copied entries.
 * @error: an error of a write, or of a read if it is not damage; NULL: none.
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
 * struct kind - a kind of entries whose keys are a letter and a number
 * @letter: the letter.
 * @bytes: length of the number in bytes.
 * @next: upper bound of the numbers: all are smaller.
 * @most: number of entries read one by one per unreadable range.
 */
struct kind {
	char letter;
	unsigned int bytes;
	uint64_t next;
	uint64_t most;
};

/* --- the copy ----------------------------------------------------------------------------- */

static void write_copy(struct salvage *salvage)
{
	if (!salvage->error)
		rocksdb_write(salvage->to, salvage->options, salvage->batch, &salvage->error);
	rocksdb_writebatch_clear(salvage->batch);
	salvage->bytes = 0;
}

static void copy_entry(struct salvage *salvage, const char *key, size_t key_len,
		       const char *value, size_t len)
{
	salvage->entries++;
	rocksdb_writebatch_put(salvage->batch, key, key_len, value, len);
	salvage->bytes += key_len + len;
	if (salvage->bytes >= BATCH_BYTES)
		write_copy(salvage);
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

/* Returns whether there is an error. Saves it if it is not damage; else frees it. */
static bool save_error(struct salvage *salvage, char *error)
{
	if (!error)
		return false;
	if (store_is_damage(error) || salvage->error)
		rocksdb_free(error);
	else
		salvage->error = error;
	return true;
}

static bool walk_failed(struct salvage *salvage, rocksdb_iterator_t *iterator)
{
	char *error = NULL;

	rocksdb_iter_get_error(iterator, &error);
	return save_error(salvage, error);
}

/* Returns whether the walk is still within this kind. */
static bool is_of_kind(char letter, rocksdb_iterator_t *iterator)
{
	size_t len;

	return rocksdb_iter_valid(iterator) && *rocksdb_iter_key(iterator, &len) == letter;
}

/* Copy from @*from on, and set it to the last number plus one. Returns whether all was read. */
static bool copy_walk(struct salvage *salvage, const struct kind *kind, uint64_t *from)
{
	rocksdb_iterator_t *iterator =
		rocksdb_create_iterator(salvage->store->db, salvage->store->read_options);
	char first[STORE_KEY_MAX];
	const char *key, *value;
	size_t key_len, len;
	bool whole;

	rocksdb_iter_seek(iterator, first, key_of(kind, *from, first));
	for (; is_of_kind(kind->letter, iterator) && !salvage->error; rocksdb_iter_next(iterator)) {
		key = rocksdb_iter_key(iterator, &key_len);
		if (key_len != 1 + kind->bytes || number_of(kind, key) == UINT64_MAX)
			continue;
		value = rocksdb_iter_value(iterator, &len);
		copy_entry(salvage, key, key_len, value, len);
		*from = number_of(kind, key) + 1;
	}
	whole = !walk_failed(salvage, iterator);
	rocksdb_iter_destroy(iterator);
	return whole;
}

static bool can_walk_from(struct salvage *salvage, const struct kind *kind, uint64_t number)
{
	rocksdb_iterator_t *iterator =
		rocksdb_create_iterator(salvage->store->db, salvage->store->read_options);
	char key[STORE_KEY_MAX];
	bool can;

	rocksdb_iter_seek(iterator, key, key_of(kind, number, key));
	can = !walk_failed(salvage, iterator);
	rocksdb_iter_destroy(iterator);
	return can;
}

/* Returns the first number above @from where a walk can start; or else @next of the kind. */
static uint64_t find_walk_start(struct salvage *salvage, const struct kind *kind, uint64_t from)
{
	uint64_t cannot = from, can = kind->next, step = 1;

	while (step < can - cannot && !can_walk_from(salvage, kind, cannot + step)) {
		cannot += step;
		step *= 2;
	}
	if (step < can - cannot)
		can = cannot + step;
	while (can - cannot > 1) {
		uint64_t middle = cannot + (can - cannot) / 2;

		if (can_walk_from(salvage, kind, middle))
			can = middle;
		else
			cannot = middle;
	}
	return can;
}

/* Returns false if it cannot be read. */
static bool copy_key(struct salvage *salvage, const char *key, size_t key_len)
{
	char *value, *error = NULL;
	size_t len;

	value = rocksdb_get(salvage->store->db, salvage->store->read_options, key, key_len, &len,
			    &error);
	if (save_error(salvage, error))
		return false;
	if (value)
		copy_entry(salvage, key, key_len, value, len);
	rocksdb_free(value);
	return true;
}

static void copy_one(struct salvage *salvage, const struct kind *kind, uint64_t number)
{
	char key[STORE_KEY_MAX];

	copy_key(salvage, key, key_of(kind, number, key));
}

/*
 * If the range has too many numbers, read those at both ends of it: after many deletes a walk
 * cannot start within the range, and the remaining entries are near one of the ends.
 */
static void copy_range(struct salvage *salvage, const struct kind *kind, uint64_t from,
		       uint64_t to)
{
	uint64_t most = kind->most, left = to - from;

	if (left > most && to == kind->next && most > END_MOST)
		most = END_MOST;
	if (left > most)
		left = most;

	store_say(salvage->store, LOG_WARNING,
		  "%s: entries of kind '%c' from %" PRIu64 " to %" PRIu64 " are partly damaged%s",
		  salvage->store->dir, kind->letter, from, to - 1,
		  to - from > left ? ", and not all of them are read" : "");
	if (to - from > left)
		for (; left > most / 2 && !salvage->error; left--)
			copy_one(salvage, kind, from++);
	for (; left && !salvage->error; left--)
		copy_one(salvage, kind, to - left);
}

static void copy_kind(struct salvage *salvage, const struct kind *kind)
{
	uint64_t from = 0, next;

	while (!copy_walk(salvage, kind, &from) && from < kind->next && !salvage->error) {
		next = find_walk_start(salvage, kind, from);
		copy_range(salvage, kind, from, next);
		from = next;
	}
}

/* --- the store ---------------------------------------------------------------------------- */

/* Returns whether all was read. */
static bool walk_numbers(struct salvage *salvage)
{
	static const char letter = 'm';
	rocksdb_iterator_t *iterator =
		rocksdb_create_iterator(salvage->store->db, salvage->store->read_options);
	const char *key, *value;
	size_t key_len, len;
	bool whole;

	rocksdb_iter_seek(iterator, &letter, 1);
	for (; is_of_kind(letter, iterator); rocksdb_iter_next(iterator)) {
		key = rocksdb_iter_key(iterator, &key_len);
		value = rocksdb_iter_value(iterator, &len);
		copy_entry(salvage, key, key_len, value, len);
	}
	whole = !walk_failed(salvage, iterator);
	rocksdb_iter_destroy(iterator);
	return whole;
}

/*
 * A walk ends at a damaged block, although there may be newer values in a whole one. Numbers that
 * cannot be read are set to new values, see repair.c.
 */
static void copy_numbers(struct salvage *salvage)
{
	static const char *const names[] = NUMBERS;
	uint8_t key[STORE_KEY_MAX];
	size_t i;

	if (walk_numbers(salvage))
		return;
	for (i = 0; i < ARRAY_SIZE(names) && !salvage->error; i++)
		if (!copy_key(salvage, (char *)key, store_key_number(key, names[i])))
			store_say(salvage->store, LOG_ERR, "%s: the number '%s' is lost%s",
				  salvage->store->dir, names[i],
				  strcmp(names[i], NUMBER_SKEW) ? "" :
				  ": due times may be wrong if the clock was ever set");
}

/* Copy the readable data of the open store, or of the open piece. */
static void copy_open(void *context)
{
	struct salvage *salvage = context;
	struct kind tubes = {
		.letter = 't', .bytes = 4, .next = UINT32_MAX, .most = UNKNOWN_MOST,
	};
	struct kind jobs = {
		.letter = 'j', .bytes = 8, .most = ONE_BY_ONE_MOST,
	};
	int ret;

	copy_numbers(salvage);
	ret = store_number(salvage->store, NUMBER_NEXT_ID, &jobs.next);
	if (ret == -EIO && !salvage->error)
		salvage->error = strdup("its next id cannot be read now");
	if (ret) {
		jobs.next = UINT64_MAX;
		jobs.most = UNKNOWN_MOST;
	}
	copy_kind(salvage, &tubes);
	copy_kind(salvage, &jobs);
	jobs.letter = 'p';
	copy_kind(salvage, &jobs);
	/* Schedules have ids of the same numbers; there are few. */
	jobs.most = UNKNOWN_MOST;
	jobs.letter = 'e';
	copy_kind(salvage, &jobs);
	jobs.letter = 'f';
	copy_kind(salvage, &jobs);
	write_copy(salvage);
}

static void flush_copy(struct salvage *salvage)
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
		ret = store_is_no_space(salvage->error) ? -ENOSPC : -EIO;
		store_say(salvage->store, LOG_ERR, "%s: cannot be copied: %s",
			  salvage->path, salvage->error);
	}
	rocksdb_free(salvage->error);
	salvage->error = NULL;
	return ret;
}

/*
 * Open the store as a whole; damaged records of the logs are skipped. Returns 0, or an error of
 * store_errno(): only -EBADMSG is damage.
 */
static int open_whole(struct store *store)
{
	rocksdb_options_t *options = store_make_salvage_options(store);
	char *error = NULL;
	int ret;

	store->db = rocksdb_open_for_read_only(options, store->db_path, 0, &error);
	rocksdb_options_destroy(options);
	if (!error)
		return 0;
	store_say(store, LOG_ERR, "%s: it cannot be opened as a whole: %s", store->dir, error);
	ret = store_errno(error);
	rocksdb_free(error);
	store->db = NULL;
	return ret;
}

static int copy_all(struct salvage *salvage)
{
	struct store *store = salvage->store;
	int ret = store->openable ? open_whole(store) : -EBADMSG;

	if (!ret) {
		copy_open(salvage);
		rocksdb_close(store->db);
	} else if (ret == -EBADMSG) {
		ret = store_each_piece(store, copy_open, salvage);
	}
	store->db = NULL;
	return ret;
}

/* Why there is no copy, if store_each_piece() has returned @ret. */
static const char *say_why(int ret)
{
	if (ret == -ENOSPC)
		return "No space left on device, for tables of the logs";
	if (ret && ret != -EBADMSG)
		return strerror(-ret);
	return "nothing can be read: restore a backup, or take another directory";
}

static void fill_copy(struct salvage *salvage)
{
	int ret;

	salvage->options = rocksdb_writeoptions_create();
	rocksdb_writeoptions_disable_WAL(salvage->options, 1);
	salvage->batch = rocksdb_writebatch_create();
	ret = copy_all(salvage);
	if ((ret || !salvage->entries) && !salvage->error)
		salvage->error = strdup(say_why(ret));
	flush_copy(salvage);
	rocksdb_writebatch_destroy(salvage->batch);
	rocksdb_writeoptions_destroy(salvage->options);
}

/* Make the copy, and close the store and the copy. */
static int make_copy(struct salvage *salvage)
{
	rocksdb_options_t *options = rocksdb_options_create_copy(salvage->store->options);
	int ret;

	salvage->entries = 0;
	rocksdb_options_set_create_if_missing(options, 1);
	/* What an earlier attempt has left goes; it is an error if there is no directory. */
	if (!mkdir(salvage->path, 0700) || errno == EEXIST)
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
		salvage->error = NULL;
	}
	rocksdb_options_destroy(options);
	return ret;
}

static bool file_exists(const struct store *store, const char *name)
{
	return !faccessat(store->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* Keep the damaged files: another tool may be able to read more of them. */
static int keep_damaged_files(struct store *store)
{
	long long second = time(NULL);
	char kept[64];

	do {
		snprintf(kept, sizeof(kept), "damaged-%lld", second++);
	} while (file_exists(store, kept));
	if (renameat(store->dir_fd, "db", store->dir_fd, kept))
		return -errno;
	store_say(store, LOG_WARNING, "%s/%s has the damaged files: it may be removed",
		  store->dir, kept);
	return 0;
}

static int install_copy(struct store *store)
{
	if (renameat(store->dir_fd, COPY, store->dir_fd, "db") || fsync(store->dir_fd))
		return -errno;
	return 0;
}

static int say_rename(struct store *store, int ret)
{
	if (ret)
		store_say(store, LOG_ERR, "%s: the copy cannot be moved to db/: %s", store->dir,
			  strerror(-ret));
	return ret;
}

static void try_to_open(struct store *store)
{
	const struct rlimit limit = { .rlim_cur = TRY_CPU_S, .rlim_max = TRY_CPU_HARD_S };

	/* It has the lock of the directory, too. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	store_end_by_exceptions(store->config.log, ENOMEM);
	setrlimit(RLIMIT_CPU, &limit);
	alarm(TRY_MOST_S);
	_exit(-open_whole(store));
}

int store_salvage_try(struct store *store)
{
	pid_t child = fork();
	int status, ret;

	if (!child)
		try_to_open(store);
	if (child < 0 || waitpid(child, &status, 0) != child) {
		ret = -errno;
		store_say(store, LOG_ERR, "%s: no process can be started to try its log: %s",
			  store->dir, strerror(-ret));
		return ret;
	}
	store->openable = !status;
	if (WIFEXITED(status))
		return WEXITSTATUS(status) == EBADMSG ? 0 : -WEXITSTATUS(status);
	if (WTERMSIG(status) == SIGKILL) {
		/* As the kernel does for lack of memory. */
		store_say(store, LOG_ERR, "%s: the process that tried its log was killed",
			  store->dir);
		return -EIO;
	}
	store_say(store, LOG_ERR,
		  "%s: RocksDB cannot pass a damaged place in its log: signal %d", store->dir,
		  WTERMSIG(status));
	return 0;
}

int store_salvage(struct store *store)
{
	struct salvage salvage = { .store = store };
	int ret;

	if (!file_exists(store, "db") && file_exists(store, COPY))
		return say_rename(store, install_copy(store));
	if (asprintf(&salvage.path, "%s/" COPY, store->path) < 0)
		abort();
	do {
		ret = make_copy(&salvage);
	} while (ret == -ENOSPC && store_space_copy_again(store));
	free(salvage.path);
	if (ret)
		return ret;
	ret = keep_damaged_files(store);
	return say_rename(store, ret ? ret : install_copy(store));
}
