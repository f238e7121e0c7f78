// SPDX-License-Identifier: GPL-2.0
/*
 * Space on the disk, which other programs use too.
 *
 * A file, the ballast, holds `reserve` bytes. New jobs are accepted while the ballast exists
 * and a quarter of the reserve is free beside it:
 *
 *	free, with the ballast     < reserve / 4      no new jobs: deletes need some space at
 *	                                              first; data that is in memory only
 *	                                              counts as written
 *	                           < reserve / 8      release a part of the ballast for writes
 *	free, without the ballast  > reserve * 3 / 2  take the ballast back, and accept jobs
 *
 * Another program that fills the disk takes what is released, too. So the ballast is released in
 * parts: so much that a reserve / 8 is free, and then no more until a write buffer of our own
 * has been written. If the log needs more before that, exactly so much is released.
 *
 * The most that RocksDB needs at once, its buffers and its largest compaction, is less than
 * the reserve, see rocksdb.c. When RocksDB finds no space, it tries again some seconds later,
 * and then starts no compaction unless twice the space is free that it takes. So a fourth of
 * the ballast is released after such an error, and the rest if nobody takes it; else one more
 * fourth every 10 s, as long as RocksDB finds no space. It is not taken back in the next 10 s.
 * The free space is checked before each write of the log; by store_has_room(), at most every
 * 10 ms unless much has been put since; and every second by the scrub thread.
 *
 * While there is no room, the scrub thread asks RocksDB, every second after deletes, to compact
 * them with the data that they delete, although that costs writes. By itself RocksDB would wait
 * for more deletes, and there may be none, as no new jobs are put. Each such push moves the
 * deletes down by about a level. The pushes end when all data is in the last level. If they
 * have not ended 20 s after the last delete, because another program left no space, they go
 * on every 30 s only. The scrub thread does this because it may block.
 *
 * RocksDB cannot go on after a failed write of its log. So when there is no space even without
 * the ballast, as another program has taken it, that write waits for space. Replies are late
 * then, and nothing is lost. A store that is not served yet, as it is being repaired, ends the
 * process instead, since no job can be deleted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/time.h"
#include "queue/store/dir.h"
#include "queue/store/fault.h"
#include "queue/store/rocksdb.h"
#include "queue/store/space.h"
#include "queue/store/state.h"

#define CHECK_NS	10000000ull
/* Seconds with a push in each after the last delete, and seconds between later pushes. */
#define PUSHES		20
#define PUSHES_RARE	30
/* Number of levels of RocksDB; merged data is in the last one. */
#define LEVELS		7
/* Seconds after RocksDB had no space in which the ballast is not taken back. */
#define LACK_S		10
/* Keys before and after all others. */
#define FIRST_KEY	"a"
#define LAST_KEY	"z"
#define RESERVE_LEAST	(4ull << 20)
/* A small disk keeps a quarter of itself, up to this, for the reserve. */
#define RESERVE_SMALL	(128ull << 20)
/* More than this makes nothing faster. */
#define RESERVE_MOST	(1ull << 30)
/* Bytes of the log that may be in memory; RocksDB itself writes them at twice that. */
#define UNWRITTEN_MOST	(512u << 10)
/* Space that a write of the log, or opening, needs beside its bytes: for last blocks and files. */
#define MARGIN		(256u << 10)
/* Few file systems have larger blocks. */
#define BLOCK		(64u << 10)
#define WAIT_US		10000
/*
 * Retries of a write that has enough space: about a minute. RocksDB looks for space every 5 s, and
 * a fourth of the ballast is released every LACK_S until it finds some.
 */
#define RETRIES		6000

/* Called for each write: an error of some ms does not matter. */
static uint64_t coarse_ns(void)
{
	return time_now_ns(CLOCK_MONOTONIC_COARSE);
}

static uint64_t free_bytes(const struct store *store)
{
	struct statvfs disk;

	if (fstatvfs(store->dir_fd, &disk))
		return 0;
	return (uint64_t)disk.f_bavail * disk.f_frsize;
}

static uint64_t default_reserve(const struct store *store)
{
	struct statvfs disk;
	uint64_t small, part;

	if (fstatvfs(store->dir_fd, &disk))
		return RESERVE_LEAST;
	small = (uint64_t)disk.f_blocks * disk.f_frsize / 4;
	small = small < RESERVE_SMALL ? small : RESERVE_SMALL;
	part = (uint64_t)disk.f_bavail * disk.f_frsize / 16;
	part = part < RESERVE_MOST ? part : RESERVE_MOST;
	part = part < small ? small : part;
	return part < RESERVE_LEAST ? RESERVE_LEAST : part;
}

/* --- the ballast; callers hold the lock, if the store has threads ------------------------- */

static void take_ballast(struct store *store)
{
	struct store_space *space = &store->space;

	if (posix_fallocate(space->ballast_fd, 0, (off_t)space->reserve)) {
		(void)!ftruncate(space->ballast_fd, (off_t)space->ballast);
		return;
	}
	space->ballast = space->reserve;
	space->held = true;
}

/*
 * Release at least @bytes of the ballast, or all there is, in whole blocks, as a file keeps the one
 * it ends in.
 */
static void release_part(struct store *store, uint64_t bytes)
{
	struct store_space *space = &store->space;
	uint64_t keep = space->ballast - (bytes < space->ballast ? bytes : space->ballast);

	if (!space->ballast)
		return;
	keep -= keep % BLOCK;
	if (ftruncate(space->ballast_fd, (off_t)keep)) {
		if (!space->stuck)
			store_say(store, LOG_ERR, "%s: cannot release the reserve: %m",
				  store->dir);
		space->stuck = true;
		return;
	}
	if (space->held)
		store_say(store, LOG_WARNING, "%s: the disk is full: the reserve is used",
			  store->dir);
	space->ballast = keep;
	space->stuck = false;
	space->held = false;
	space->spent = 0;
}

/*
 * For RocksDB, which had no space. If another program takes what is released, more of it would
 * be lost too, and deletes need the rest: a fourth first, and all of it if half of that is still
 * free, as RocksDB writes, too.
 */
static void release_for_errors(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t keep = space->reserve / 4 * 3;

	if (!space->held && free_bytes(store) >= space->reserve / 8)
		keep = 0;
	if (space->ballast > keep)
		release_part(store, space->ballast - keep);
}

/* The same, if that was not enough. */
static void release_for_longer_errors(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t before = space->ballast;

	release_for_errors(store);
	if (space->ballast == before)
		release_part(store, space->reserve / 4);
}

/* Data in memory will be written twice: to a table and, if it is not there, to the log. */
static uint64_t owed_bytes(const struct store *store)
{
	uint64_t bytes = 0;

	if (store->served)
		rocksdb_property_int(store->db, "rocksdb.cur-size-all-mem-tables", &bytes);
	return bytes + 2 * store->space.unwritten;
}

static void check_space(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t bytes = free_bytes(store), owed = owed_bytes(store);

	space->added = 0;
	if (bytes < space->reserve / 8 && space->spent > store->write_buffer) {
		release_part(store, space->reserve / 8 - bytes);
	} else if (!space->held && !space->lack_s &&
		   bytes + space->ballast > space->reserve / 2 * 3) {
		take_ballast(store);
		bytes = free_bytes(store);
	}
	space->least = space->reserve / 4 + owed;
	space->room = space->held && bytes >= space->least;
}

/* --- freeing the space of deletes --------------------------------------------------------- */

static void warn_and_free(struct store *store, const char *what, char *error)
{
	if (error)
		store_say(store, LOG_WARNING, "%s: %s: %s", store->dir, what, error);
	rocksdb_free(error);
}

static uint64_t property(struct store *store, const char *name)
{
	uint64_t value = 0;

	rocksdb_property_int(store->db, name, &value);
	return value;
}

/* Does RocksDB have compactions or flushes to do that it does not begin? */
static bool waits_for_space(struct store *store)
{
	return (property(store, "rocksdb.compaction-pending") ||
		property(store, "rocksdb.mem-table-flush-pending")) &&
		!property(store, "rocksdb.num-running-compactions") &&
		!property(store, "rocksdb.num-running-flushes");
}

static void begin_lack(struct store_space *space, uint64_t errors)
{
	space->lack_s = LACK_S;
	space->lack_errors = errors;
}

/*
 * RocksDB had no space for a compaction, or later considers the free space too small, and will
 * retry for ever, each second or without saying so: release a part of the ballast, although more
 * than an eighth of the reserve is free; and one more each time that RocksDB has not gone on some
 * seconds later. The error may have another reason; then the ballast is missing for some seconds
 * only.
 */
static void check_errors(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t errors = property(store, "rocksdb.background-errors");

	pthread_mutex_lock(&space->lock);
	if (errors != space->errors && free_bytes(store) < 2 * space->reserve) {
		if (!space->lack_s)
			begin_lack(space, errors);
		space->room = false;
		release_for_errors(store);
	}
	if (space->lack_s && !--space->lack_s &&
	    (errors != space->lack_errors || waits_for_space(store))) {
		begin_lack(space, errors);
		release_for_longer_errors(store);
	}
	space->errors = errors;
	pthread_mutex_unlock(&space->lock);
}

static uint64_t files_of_level(struct store *store, int level)
{
	char name[] = "rocksdb.num-files-at-level0";
	uint64_t nr = 0;
	char *files;

	name[sizeof(name) - 2] = (char)('0' + level);
	files = rocksdb_property_value(store->db, name);
	if (files)
		nr = strtoull(files, NULL, 10);
	rocksdb_free(files);
	return nr;
}

/* Returns whether all data is in the last level: then no deleted data is left. */
static bool is_merged(struct store *store)
{
	int level;

	if (property(store, "rocksdb.num-entries-active-mem-table") ||
	    property(store, "rocksdb.num-immutable-mem-table"))
		return false;
	for (level = 0; level < LEVELS - 1; level++)
		if (files_of_level(store, level))
			return false;
	return true;
}

/*
 * A flush blocks when too many tables wait to be written or compacted. So do not start one when
 * there are some: this thread must not wait for the space that it has to free.
 */
static void flush_deletes(struct store *store)
{
	rocksdb_flushoptions_t *options;
	char *error = NULL;

	if (property(store, "rocksdb.num-immutable-mem-table") ||
	    files_of_level(store, 0) >= STORE_TABLES_COMPACT)
		return;
	options = rocksdb_flushoptions_create();
	rocksdb_flushoptions_set_wait(options, 0);
	rocksdb_flush(store->db, options, &error);
	rocksdb_flushoptions_destroy(options);
	warn_and_free(store, "cannot flush deletes", error);
}

/* A flush moves deletes to level 0, and compactions move them down to the data they delete. */
static void push_deletes_down(struct store *store)
{
	char *error = NULL;

	flush_deletes(store);
	rocksdb_suggest_compact_range(store->db, FIRST_KEY, 1, LAST_KEY, 1, &error);
	warn_and_free(store, "cannot compact deletes", error);
}

static bool is_time_to_push(struct store_space *space)
{
	if (atomic_exchange(&space->deleted, false)) {
		space->pushing = true;
		space->pushes = 0;
	}
	if (!space->pushing)
		return false;
	space->pushes++;
	return space->pushes <= PUSHES || space->pushes % PUSHES_RARE == 0;
}

void store_space_push(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t now = coarse_ns();

	if (now - space->pushed_ns < NSEC_PER_SEC)
		return;
	space->pushed_ns = now;
	check_errors(store);
	store_space_check(store);
	if (space->room || !is_time_to_push(space))
		return;
	if (is_merged(store))
		space->pushing = false;
	else
		push_deletes_down(store);
}

/* --- for the other files ------------------------------------------------------------------ */

void store_space_check(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t now = coarse_ns();

	if (now - space->checked_ns < CHECK_NS)
		return;
	space->checked_ns = now;
	pthread_mutex_lock(&space->lock);
	check_space(store);
	pthread_mutex_unlock(&space->lock);
}

/* Check again at once if many bytes were added since the last check. */
bool store_has_room(struct store *store)
{
	if (store->space.added > store->space.reserve / 64)
		store->space.checked_ns = 0;
	store_space_check(store);
	return store->space.room;
}

bool store_has_room_for(struct store *store, uint64_t bytes)
{
	return store_has_room(store) && free_bytes(store) >= 2 * bytes + MARGIN;
}

static void wait_for_room(struct store *store, uint64_t bytes)
{
	bool logged = false, stuck, used;
	uint64_t there;

	while ((there = free_bytes(store)) < bytes) {
		pthread_mutex_lock(&store->space.lock);
		store->space.room = false;
		release_part(store, bytes - there);
		stuck = store->space.stuck;
		used = !store->space.ballast;
		pthread_mutex_unlock(&store->space.lock);
		if (free_bytes(store) >= bytes)
			break;
		if (!store->served && used)
			store_die(store, "cannot write",
				  "the disk is full, even without the reserve");
		if (!logged && (stuck || used)) {
			store_say(store, LOG_ERR, "%s: the disk is full%s: replies wait",
				  store->dir, stuck ? "" : ", even without the reserve");
			logged = true;
		}
		usleep(WAIT_US);
	}
}

void store_space_added(struct store *store, size_t bytes)
{
	store->space.unwritten += bytes;
	store->space.added += bytes;
	store->space.spent += bytes;
}

void store_space_add(struct store *store, size_t bytes)
{
	store_space_added(store, bytes);
	if (store->space.unwritten > UNWRITTEN_MOST)
		wait_for_room(store, store->space.unwritten + MARGIN);
}

void store_space_write_out(struct store *store)
{
	uint64_t bytes = atomic_exchange(&store->space.unwritten, 0);

	store_space_check(store);
	wait_for_room(store, bytes + MARGIN);
}

bool store_space_try_write_out(struct store *store)
{
	store_space_check(store);
	if (!store->space.room || free_bytes(store) < store->space.unwritten + MARGIN)
		return false;
	store->space.unwritten = 0;
	return true;
}

/*
 * After an error for lack of space RocksDB may demand more space for a compaction than is free,
 * although there is enough for the write. Then only a restart makes it go on.
 */
void store_space_retry(struct store *store, unsigned int tries)
{
	wait_for_room(store, store->space.reserve / 8);
	if (tries >= RETRIES)
		store_die(store, "cannot write", "RocksDB does not recover from a full disk");
	usleep(WAIT_US);
}

/* The file may be in parts, longer than its blocks, or made for another reserve. */
static void set_ballast(struct store_space *space, const struct stat *file)
{
	uint64_t blocks = (uint64_t)file->st_blocks * 512;

	space->ballast = (uint64_t)file->st_size < blocks ? (uint64_t)file->st_size : blocks;
	if (space->ballast > space->reserve)
		space->ballast = space->reserve;
	space->held = space->ballast == space->reserve;
}

void store_space_for_files(struct store *store, uint64_t bytes)
{
	uint64_t there = free_bytes(store);

	if (there < bytes + MARGIN)
		release_part(store, bytes + MARGIN - there);
}

/*
 * Opening makes a table of what is in the logs, a new log and a new manifest. No more than that is
 * released: another program that takes it would have all after some restarts.
 */
void store_space_for_opening(struct store *store)
{
	uint64_t bytes = 2 * store_dir_log_bytes(store), half = store->space.reserve / 2;

	if (bytes + MARGIN > half)
		bytes = half > MARGIN ? half - MARGIN : 0;
	store_space_for_files(store, bytes);
}

bool store_space_open_again(struct store *store)
{
	struct store_space *space = &store->space;

	if (!space->ballast || space->stuck)
		return false;
	release_part(store, space->reserve / 8);
	return !space->stuck;
}

/*
 * A copy takes as much as the store at most, and while it is made a fourth of the reserve for
 * compactions (rocksdb.c). If so much is free, it was a quota, which does not show.
 */
bool store_space_copy_again(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t keep = space->reserve / 8, there = free_bytes(store), needed, most;

	if (space->ballast <= keep || space->stuck)
		return false;
	most = space->ballast - keep;
	needed = store_dir_bytes(store) + space->reserve / 4 + MARGIN;
	release_part(store, there < needed && needed - there < most ? needed - there : most);
	return !space->stuck;
}

int store_space_open(struct store *store)
{
	struct store_space *space = &store->space;
	struct statvfs disk;
	struct stat file;

	pthread_mutex_init(&space->lock, NULL);
	space->reserve = store->config.reserve;
	if (!space->reserve)
		space->reserve = default_reserve(store);
	space->ballast_fd = openat(store->dir_fd, "reserve",
				   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (space->ballast_fd < 0)
		return -errno;
	if (fstat(space->ballast_fd, &file))
		return -errno;
	if (!fstatvfs(store->dir_fd, &disk) &&
	    space->reserve > (uint64_t)disk.f_blocks * disk.f_frsize)
		store_say(store, LOG_WARNING,
			  "%s: the reserve is larger than the file system: all puts are refused",
			  store->dir);
	set_ballast(space, &file);
	if (ftruncate(space->ballast_fd, (off_t)space->ballast))
		return -errno;
	check_space(store);
	return 0;
}

void store_space_close(struct store *store)
{
	if (store->space.ballast_fd >= 0)
		close(store->space.ballast_fd);
}
