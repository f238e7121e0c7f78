// SPDX-License-Identifier: GPL-2.0
/*
 * Room on the disk, which others fill too.
 *
 * A file, the ballast, holds `reserve` bytes. While it is there, and a quarter of that is
 * free beside it, new jobs are taken:
 *
 *	free beside it    < reserve / 4		no new jobs; deletes need some room at first;
 *					what is in memory only is counted as written
 *			  < reserve / 8		the ballast is given up: its room is used now
 *	free without it   > reserve * 3 / 2	it is taken back, and new jobs are taken again
 *
 * What RocksDB may need at once, its buffers and its largest compaction, is less than the
 * reserve, see store_open.c; when it finds no room, it tries again some seconds later, and does
 * not begin a compaction then without twice the room that it would take. So the ballast is given
 * up too when RocksDB has met such an error, and is not taken back in the next 10 s. The room
 * is looked at before each write of the log, by store_has_room(), not more often than each
 * 10 ms, unless much is put meanwhile, and each second by the thread of store_scrub.c.
 *
 * While there is no room, RocksDB is asked, each second after deletes, to merge them with what
 * they delete, though that takes more writing: by itself it would do so when there are more
 * of them, and there may never be, as nothing new is put. Each time moves them by a level or
 * so. It ends when all is in the last level, and comes each 30 s only when it has not ended
 * 20 s after the last delete, as another program may have left no room for it. The thread of
 * store_scrub.c does that, since it may have to wait.
 *
 * RocksDB cannot go on after a write of its log that failed. So when there is no room even
 * without the ballast, as another program takes what is given back, that write waits until
 * there is; and with it the queue's thread, when much of the log is in memory. Replies wait
 * then; nothing is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "store_internal.h"

#define LOOK_NS		10000000ull
/* Deletes are pushed each second so often after the last of them; then rarely, in seconds. */
#define PUSHES		20
#define PUSHES_RARE	30
/* RocksDB keeps everything in the last level at last. */
#define LEVELS		7
/* So many seconds after RocksDB had no room, the ballast is not taken back. */
#define LACK_S		10
/* Keys around all others. */
#define FIRST_KEY	"a"
#define LAST_KEY	"z"
#define RESERVE_MOST	(128ull << 20)
#define RESERVE_LEAST	(4ull << 20)
/* So much of the log may be in memory; RocksDB writes it out by itself at twice that. */
#define UNWRITTEN_MOST	(512u << 10)
/* Free when a write of the log begins, beside what is written: its last block and files. */
#define MARGIN		(256u << 10)
#define WAIT_US		10000
/* So often a write is tried again with room for it: some 20 s. */
#define RETRIES		2000

/* It is asked for at each write: some ms more or less do not matter. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * STORE_SECOND_NS + (uint64_t)now.tv_nsec;
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
	uint64_t quarter;

	if (fstatvfs(store->dir_fd, &disk))
		return RESERVE_LEAST;
	quarter = (uint64_t)disk.f_blocks * disk.f_frsize / 4;
	if (quarter > RESERVE_MOST)
		return RESERVE_MOST;
	return quarter < RESERVE_LEAST ? RESERVE_LEAST : quarter;
}

/* --- the ballast, with the lock ----------------------------------------------------------- */

static void take(struct store *store)
{
	struct store_space *space = &store->space;

	if (posix_fallocate(space->ballast_fd, 0, (off_t)space->reserve)) {
		(void)!ftruncate(space->ballast_fd, 0);
		return;
	}
	space->held = true;
}

static void give_up(struct store *store)
{
	struct store_space *space = &store->space;

	if (!space->held)
		return;
	if (ftruncate(space->ballast_fd, 0))
		store_say(store, LOG_ERR, "%s: cannot give up the reserve: %m", store->dir);
	else
		store_say(store, LOG_WARNING, "%s: the disk is full: the reserve is used",
			  store->dir);
	space->held = false;
}

/* What is in memory will be written twice: to the log, if it is not, and to a table. */
static uint64_t owed_bytes(const struct store *store)
{
	uint64_t bytes = 0;

	if (store->served)
		rocksdb_property_int(store->db, "rocksdb.cur-size-all-mem-tables", &bytes);
	return bytes + 2 * store->space.unwritten;
}

static void look(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t bytes = free_bytes(store), owed = owed_bytes(store);

	space->added = 0;
	if (space->held && bytes < space->reserve / 8) {
		give_up(store);
	} else if (!space->held && !space->lack_s && bytes > space->reserve / 2 * 3) {
		take(store);
		bytes -= space->held ? space->reserve : 0;
	}
	space->room = space->held && bytes >= space->reserve / 4 + owed;
}

/* --- giving back what was deleted --------------------------------------------------------- */

static void say_and_free(struct store *store, const char *what, char *error)
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

/*
 * RocksDB has had no room for merging something, or after that takes what there is for too
 * little, and will try the same again for ever: then the reserve is what it needs, though
 * more than an eighth is free beside it. An error may be for something else: then some room
 * is lost for a while.
 */
static void see_lack(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t errors = property(store, "rocksdb.background-errors");

	pthread_mutex_lock(&space->lock);
	if (errors != space->errors && free_bytes(store) < 2 * space->reserve) {
		space->lack_s = LACK_S;
		space->room = false;
		give_up(store);
	} else if (space->lack_s) {
		space->lack_s--;
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

/* All is in the last level: there is nothing left that was deleted. */
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
 * A flush waits where one more table to be written or merged would be too many: it is not begun
 * where there are some, as this thread may not wait for room that it has to make.
 */
static void write_deletes_out(struct store *store)
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
	say_and_free(store, "deletes cannot be written out", error);
}

/* Deletes go to the first level, and from each level to the next, where what they delete is. */
static void push_deletes_down(struct store *store)
{
	char *error = NULL;

	write_deletes_out(store);
	rocksdb_suggest_compact_range(store->db, FIRST_KEY, 1, LAST_KEY, 1, &error);
	say_and_free(store, "room cannot be given back", error);
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
	uint64_t now = now_ns();

	if (now - space->pushed_ns < STORE_SECOND_NS)
		return;
	space->pushed_ns = now;
	see_lack(store);
	store_space_look(store);
	if (space->room || !is_time_to_push(space))
		return;
	if (is_merged(store))
		space->pushing = false;
	else
		push_deletes_down(store);
}

/* --- for the other parts ------------------------------------------------------------------ */

void store_space_look(struct store *store)
{
	struct store_space *space = &store->space;
	uint64_t now = now_ns();

	if (now - space->looked_ns < LOOK_NS)
		return;
	space->looked_ns = now;
	pthread_mutex_lock(&space->lock);
	look(store);
	pthread_mutex_unlock(&space->lock);
}

/* Much may have come since it was looked last. */
bool store_has_room(struct store *store)
{
	if (store->space.added > store->space.reserve / 64)
		store->space.looked_ns = 0;
	store_space_look(store);
	return store->space.room;
}

static void wait_for_room(struct store *store, uint64_t bytes)
{
	bool said = false;

	while (free_bytes(store) < bytes) {
		pthread_mutex_lock(&store->space.lock);
		store->space.room = false;
		give_up(store);
		pthread_mutex_unlock(&store->space.lock);
		if (free_bytes(store) >= bytes)
			break;
		if (!said)
			store_say(store, LOG_ERR,
				  "%s: the disk is full, without the reserve too: answers wait",
				  store->dir);
		said = true;
		usleep(WAIT_US);
	}
}

void store_space_add(struct store *store, size_t bytes)
{
	store->space.unwritten += bytes;
	store->space.added += bytes;
	if (store->space.unwritten > UNWRITTEN_MOST)
		wait_for_room(store, store->space.unwritten + MARGIN);
}

void store_space_write_out(struct store *store)
{
	uint64_t bytes = atomic_exchange(&store->space.unwritten, 0);

	store_space_look(store);
	wait_for_room(store, bytes + MARGIN);
}

/*
 * After an error for want of room RocksDB may want more room for a compaction than there is,
 * though there is enough to write: then only a new opening gets it to go on.
 */
void store_space_retry(struct store *store, unsigned int tries)
{
	wait_for_room(store, store->space.reserve / 8);
	if (tries >= RETRIES)
		store_die(store, "cannot write", "it does not recover from a full disk");
	usleep(WAIT_US);
}

/* A store that is opened on a full disk needs the room for its opening. */
int store_space_open(struct store *store)
{
	struct store_space *space = &store->space;
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
	space->held = (uint64_t)file.st_blocks * 512 >= space->reserve;
	if ((uint64_t)file.st_size != space->reserve || !space->held)
		space->held = !ftruncate(space->ballast_fd,
					 space->held ? (off_t)space->reserve : 0) && space->held;
	if (space->held && free_bytes(store) < space->reserve / 2)
		give_up(store);
	look(store);
	return 0;
}

void store_space_close(struct store *store)
{
	if (store->space.ballast_fd >= 0)
		close(store->space.ballast_fd);
}
