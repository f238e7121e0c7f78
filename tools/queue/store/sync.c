// SPDX-License-Identifier: GPL-2.0
/*
 * The sync thread: group commit.
 *
 *	commits made during a sync   ->   the next sync covers them all
 *
 * The thread waits for a commit that it has not written, saves the number of the last one,
 * passes the batches of all up to it to RocksDB, makes it write the buffer of its log and sync
 * it, and publishes that number: all commits up to it are on disk. Commits do not wait for the
 * sync; those made during a sync belong to the next one. RocksDB syncs all logs that are not
 * synced yet, also older ones.
 *
 * With SYNC_INTERVAL and SYNC_NEVER the thread writes the buffer at once and publishes the
 * number then. It syncs when the interval is over, or when store_flush() asks for it.
 *
 * To wake a thread and to be woken by it takes as long as a sync of a fast disk, and longer
 * than a write. So the queue's thread does itself what is short:
 *
 *	SYNC_ALWAYS      the sync, if for ALONE commits in succession one client has waited for
 *	                 each; with more, those commands that come during a sync gain more by
 *	                 being run meanwhile
 *	the others       the write; the thread goes on to sync
 *
 * It does not where it would wait: for space, for compactions, for the thread. When it once took
 * more than HERE_MOST_NS, it leaves everything to the thread for a second: a slow disk holds up
 * those who do not need it once in a while, not at each command.
 *
 * A commit for which no client waits, such as of jobs that were reserved, promises nothing. With
 * SYNC_ALWAYS it is synced with the next one, or after STORE_LATER_MS.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/time.h"
#include "queue/store/batch.h"
#include "queue/store/dir.h"
#include "queue/store/fault.h"
#include "queue/store/space.h"
#include "queue/store/state.h"
#include "queue/store/stats.h"
#include "queue/store/sync.h"
#include "queue/store/writer.h"

/* After so many commits with one client that waits, the next sync is for one client too. */
#define ALONE			8
#define HERE_MOST_NS		2000000ull
/* No commit with more than this is left for later. */
#define LATER_BYTES		(64u << 10)

/* --- the sync thread ---------------------------------------------------------------------- */

/* All commits that RocksDB has: its buffer to the disk, which may wait for a sync. */
static void write_log(struct store *store, bool sync)
{
	char *error = NULL;

	rocksdb_flush_wal(store->db, sync, &error);
	if (error)
		store_die(store, "cannot write the log", error);
}

static void count_sync(struct store_syncer *syncer, uint64_t took_ns)
{
	syncer->syncs++;
	syncer->sync_ns += took_ns;
	syncer->slow_syncs += took_ns >= STORE_SLOW_SYNC_NS;
	if (took_ns > syncer->sync_max_ns)
		syncer->sync_max_ns = took_ns;
}

void store_wake(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;
	uint64_t one = 1;

	if (!atomic_exchange(&syncer->signalled, true) &&
	    write(syncer->event_fd, &one, sizeof(one)) < 0)
		abort();
}

/* Make store_synced() return @committed. Called with the lock. */
static void publish(struct store_syncer *syncer, uint64_t committed)
{
	if (syncer->synced < committed)
		syncer->synced = committed;
}

static bool sync_is_wanted(const struct store *store, uint64_t next_ns)
{
	const struct store_syncer *syncer = &store->syncer;

	if (syncer->committed == syncer->on_disk || syncer->busy)
		return false;
	if (syncer->flush_to > syncer->on_disk || store->config.sync == SYNC_ALWAYS)
		return true;
	return store->config.sync == SYNC_INTERVAL && time_now_ns(CLOCK_MONOTONIC) >= next_ns;
}

static void wait_for_work(struct store *store, uint64_t next_ns)
{
	struct store_syncer *syncer = &store->syncer;
	struct timespec until = time_spec(next_ns);

	if (store->config.sync == SYNC_INTERVAL && syncer->committed != syncer->on_disk)
		pthread_cond_timedwait(&syncer->work, &syncer->lock, &until);
	else
		pthread_cond_wait(&syncer->work, &syncer->lock);
}

/* Nothing fails if somebody removes or replaces the files: look before each promise. */
static void check_files(struct store *store)
{
	bool there;

	pthread_mutex_lock(&store->syncer.files_lock);
	there = store_dir_has_files(store);
	pthread_mutex_unlock(&store->syncer.files_lock);
	if (!there)
		store_die(store, "cannot keep jobs", "its files were removed, moved or replaced");
}

/* The log has all commits up to @changes: sync it. Returns how long that took. */
static uint64_t sync_log(struct store *store, uint64_t changes)
{
	uint64_t begin_ns = time_now_ns(CLOCK_MONOTONIC), took_ns;

	write_log(store, true);
	took_ns = time_now_ns(CLOCK_MONOTONIC) - begin_ns;
	count_sync(&store->syncer, took_ns);
	store_witness_write(store, changes);
	return took_ns;
}

/* Called with the lock, which is released during the system calls. */
static void sync_once(struct store *store, bool sync)
{
	struct store_syncer *syncer = &store->syncer;
	uint64_t committed = syncer->committed, changes = syncer->changes;

	syncer->busy = sync;
	pthread_mutex_unlock(&syncer->lock);
	store_writer_drain(store);
	store_space_write_out(store);
	if (sync)
		sync_log(store, changes);
	else
		write_log(store, false);
	check_files(store);
	pthread_mutex_lock(&syncer->lock);
	publish(syncer, committed);
	if (sync)
		syncer->on_disk = committed;
	syncer->busy = false;
	pthread_cond_broadcast(&syncer->done);
	store_wake(store);
}

static void *sync_thread(void *context)
{
	struct store *store = context;
	struct store_syncer *syncer = &store->syncer;
	uint64_t next_ns = 0;

	pthread_mutex_lock(&syncer->lock);
	while (!syncer->stop) {
		if (sync_is_wanted(store, next_ns)) {
			sync_once(store, true);
			next_ns = time_now_ns(CLOCK_MONOTONIC) + store->config.sync_interval_ns;
		} else if (syncer->committed != syncer->synced && !syncer->busy) {
			sync_once(store, false);
		} else {
			wait_for_work(store, next_ns);
		}
	}
	pthread_mutex_unlock(&syncer->lock);
	return NULL;
}

/* --- the queue's thread ------------------------------------------------------------------- */

/* Pass the commits to RocksDB, and the buffer of its log on; false: the thread must. */
static bool write_here(struct store *store)
{
	if (!store_writer_try(store) || !store_space_try_write_out(store))
		return false;
	write_log(store, false);
	check_files(store);
	return true;
}

/* Called with the lock; like sync_once(), but where that would wait it returns false. */
static bool sync_here(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;
	bool done;

	syncer->busy = true;
	pthread_mutex_unlock(&syncer->lock);
	done = store_writer_try(store) && store_space_try_write_out(store);
	if (done) {
		sync_log(store, store->changes);
		check_files(store);
	}
	pthread_mutex_lock(&syncer->lock);
	syncer->busy = false;
	if (done)
		syncer->on_disk = store->commits;
	return done;
}

static bool do_here(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;
	bool done;

	if (store->config.sync == SYNC_ALWAYS)
		return !syncer->busy && syncer->alone >= ALONE && sync_here(store);
	pthread_mutex_unlock(&syncer->lock);
	done = write_here(store);
	pthread_mutex_lock(&syncer->lock);
	return done;
}

static bool try_here(struct store *store)
{
	uint64_t begin_ns = time_now_ns(CLOCK_MONOTONIC), end_ns;
	struct store_syncer *syncer = &store->syncer;

	if (begin_ns < syncer->here_ns || !do_here(store))
		return false;
	end_ns = time_now_ns(CLOCK_MONOTONIC);
	if (end_ns - begin_ns > HERE_MOST_NS)
		syncer->here_ns = end_ns + NSEC_PER_SEC;
	publish(syncer, store->commits);
	return true;
}

void store_sync_waiting(struct store *store, unsigned int nr)
{
	store->syncer.nr_waiting = nr;
}

/* A commit for which nobody waits, as of jobs that are due, says nothing about the next. */
static void count_alone(struct store_syncer *syncer)
{
	if (syncer->nr_waiting > 1)
		syncer->alone = 0;
	else if (syncer->nr_waiting && syncer->alone < ALONE)
		syncer->alone++;
}

static bool leave_for_later(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;

	if (store->config.sync != SYNC_ALWAYS || syncer->nr_waiting ||
	    store->writer.bytes > LATER_BYTES)
		return false;
	if (!syncer->later_ns)
		syncer->later_ns = time_now_ns(CLOCK_MONOTONIC_COARSE) +
			STORE_LATER_MS * NSEC_PER_MSEC;
	return true;
}

bool store_sync_later(struct store *store, unsigned int nr)
{
	struct store_syncer *syncer = &store->syncer;

	if (!syncer->later_ns)
		return false;
	if (!nr && time_now_ns(CLOCK_MONOTONIC_COARSE) < syncer->later_ns)
		return true;
	syncer->later_ns = 0;
	pthread_mutex_lock(&syncer->lock);
	pthread_cond_signal(&syncer->work);
	pthread_mutex_unlock(&syncer->lock);
	return false;
}

void store_sync_commit(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;
	bool idle, later = leave_for_later(store);

	count_alone(syncer);
	pthread_mutex_lock(&syncer->lock);
	idle = syncer->on_disk == syncer->committed;
	syncer->committed = store->commits;
	syncer->changes = store->changes;
	if (!later) {
		syncer->later_ns = 0;
		/* The thread may wait with no end, and not know of a sync that is wanted later. */
		if (!try_here(store) || (idle && syncer->on_disk != syncer->committed))
			pthread_cond_signal(&syncer->work);
	}
	pthread_mutex_unlock(&syncer->lock);
}

uint64_t store_synced(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;
	uint64_t count;

	/*
	 * Clear the event before reading the number: a number published in between is
	 * returned here, or the sync thread signals the event again.
	 */
	if (syncer->signalled) {
		if (read(syncer->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			abort();
		syncer->signalled = false;
	}
	return syncer->synced;
}

int store_fd(const struct store *store)
{
	return store->syncer.event_fd;
}

void store_flush(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;
	uint64_t commit = store_commit(store);

	pthread_mutex_lock(&syncer->lock);
	syncer->flush_to = commit;
	pthread_cond_signal(&syncer->work);
	while (syncer->on_disk < commit)
		pthread_cond_wait(&syncer->done, &syncer->lock);
	pthread_mutex_unlock(&syncer->lock);
}

int store_monotonic_cond(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;
	int error = pthread_condattr_init(&monotonic);

	if (error)
		return -error;
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	error = pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return -error;
}

int store_sync_start(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;
	int ret;

	syncer->nr_waiting = 2;
	syncer->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (syncer->event_fd < 0)
		return -errno;
	pthread_mutex_init(&syncer->lock, NULL);
	pthread_mutex_init(&syncer->files_lock, NULL);
	pthread_cond_init(&syncer->done, NULL);
	ret = store_monotonic_cond(&syncer->work);
	if (!ret)
		ret = -pthread_create(&syncer->thread, NULL, sync_thread, store);
	syncer->running = !ret;
	return ret;
}

void store_sync_stop(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;

	if (syncer->running) {
		pthread_mutex_lock(&syncer->lock);
		syncer->stop = true;
		pthread_cond_signal(&syncer->work);
		pthread_mutex_unlock(&syncer->lock);
		pthread_join(syncer->thread, NULL);
	}
	if (syncer->event_fd >= 0)
		close(syncer->event_fd);
}
