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
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
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

/* --- the sync thread ---------------------------------------------------------------------- */

static void write_out(struct store *store, bool sync)
{
	char *error = NULL;

	store_writer_drain(store);
	store_space_write_out(store);
	rocksdb_flush_wal(store->db, sync, &error);
	if (error)
		store_die(store, "cannot write the log", error);
}

static void timed_sync(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;
	uint64_t begin_ns = time_now_ns(CLOCK_MONOTONIC), took_ns;

	write_out(store, true);
	took_ns = time_now_ns(CLOCK_MONOTONIC) - begin_ns;
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

/* Make store_synced() return @committed. */
static void publish(struct store *store, uint64_t committed)
{
	store->syncer.synced = committed;
	store_wake(store);
}

static bool sync_is_wanted(const struct store *store, uint64_t next_ns)
{
	const struct store_syncer *syncer = &store->syncer;

	if (syncer->committed == syncer->on_disk)
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

/* Nothing fails if somebody removes the files of a running daemon: look before a promise. */
static void check_files(struct store *store)
{
	struct stat stat;

	if (!fstat(store->syncer.witness_fd, &stat) && !stat.st_nlink)
		store_die(store, "cannot keep jobs", "its files were removed");
}

/* Called with the lock, which is released during the system calls. */
static void sync_once(struct store *store, bool sync)
{
	struct store_syncer *syncer = &store->syncer;
	uint64_t committed = syncer->committed, changes = syncer->changes;

	pthread_mutex_unlock(&syncer->lock);
	if (sync) {
		timed_sync(store);
		store_witness_write(store, changes);
	} else {
		write_out(store, false);
	}
	check_files(store);
	publish(store, committed);
	pthread_mutex_lock(&syncer->lock);
	if (sync)
		syncer->on_disk = committed;
	pthread_cond_broadcast(&syncer->done);
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
		} else if (syncer->committed != syncer->synced) {
			sync_once(store, false);
		} else {
			wait_for_work(store, next_ns);
		}
	}
	pthread_mutex_unlock(&syncer->lock);
	return NULL;
}

/* --- the queue's thread ------------------------------------------------------------------- */

void store_sync_commit(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;

	pthread_mutex_lock(&syncer->lock);
	syncer->committed = store->commits;
	syncer->changes = store->changes;
	pthread_cond_signal(&syncer->work);
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

	syncer->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (syncer->event_fd < 0)
		return -errno;
	pthread_mutex_init(&syncer->lock, NULL);
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
