// SPDX-License-Identifier: GPL-2.0
/*
 * The thread that syncs: group commit.
 *
 *	while it syncs, commits come   ->   the next sync has them all
 *
 * It waits until there is a commit that it has not written out, notes its number, has
 * RocksDB write the buffer of its log and sync it, and tells that number: all that was
 * committed before it began is on disk then. Commits meanwhile go on, and are of the next
 * sync. RocksDB syncs every log that is not synced yet, also one that it has changed from.
 *
 * With SYNC_INTERVAL and SYNC_NEVER the buffer is written out at once, and the number is
 * told then; the sync comes when its time has come, or when store_flush() wants one.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "store_internal.h"

uint64_t store_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * STORE_SECOND_NS + (uint64_t)now.tv_nsec;
}

struct timespec store_timespec(uint64_t time_ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(time_ns / STORE_SECOND_NS),
		.tv_nsec = (long)(time_ns % STORE_SECOND_NS),
	};
}

/* --- of the thread ------------------------------------------------------------------------ */

static void write_out(struct store *store, bool sync)
{
	char *error = NULL;

	store_space_write_out(store);
	rocksdb_flush_wal(store->db, sync, &error);
	if (error)
		store_die(store, "cannot write the log", error);
}

static void timed_sync(struct store *store)
{
	struct store_syncer *syncer = &store->syncer;
	uint64_t begin_ns = store_now_ns(), took_ns;

	write_out(store, true);
	took_ns = store_now_ns() - begin_ns;
	syncer->syncs++;
	syncer->sync_ns += took_ns;
	if (took_ns > syncer->sync_max_ns)
		syncer->sync_max_ns = took_ns;
}

/* Whoever takes the number after this sees @committed. */
static void tell(struct store_syncer *syncer, uint64_t committed)
{
	uint64_t one = 1;

	syncer->synced = committed;
	if (!atomic_exchange(&syncer->signalled, true) &&
	    write(syncer->event_fd, &one, sizeof(one)) < 0)
		abort();
}

static bool sync_is_wanted(const struct store *store, uint64_t next_ns)
{
	const struct store_syncer *syncer = &store->syncer;

	if (syncer->committed == syncer->on_disk)
		return false;
	if (syncer->flush_to > syncer->on_disk || store->config.sync == SYNC_ALWAYS)
		return true;
	return store->config.sync == SYNC_INTERVAL && store_now_ns() >= next_ns;
}

static void wait_for_work(struct store *store, uint64_t next_ns)
{
	struct store_syncer *syncer = &store->syncer;
	struct timespec until = store_timespec(next_ns);

	if (store->config.sync == SYNC_INTERVAL && syncer->committed != syncer->on_disk)
		pthread_cond_timedwait(&syncer->work, &syncer->lock, &until);
	else
		pthread_cond_wait(&syncer->work, &syncer->lock);
}

/* With the lock, which is released for the time of the system calls. */
static void work_once(struct store *store, bool sync)
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
	tell(syncer, committed);
	pthread_mutex_lock(&syncer->lock);
	if (sync)
		syncer->on_disk = committed;
	pthread_cond_broadcast(&syncer->done);
}

static void *run(void *context)
{
	struct store *store = context;
	struct store_syncer *syncer = &store->syncer;
	uint64_t next_ns = 0;

	pthread_mutex_lock(&syncer->lock);
	while (!syncer->stop) {
		if (sync_is_wanted(store, next_ns)) {
			work_once(store, true);
			next_ns = store_now_ns() + store->config.sync_interval_ns;
		} else if (syncer->committed != syncer->synced) {
			work_once(store, false);
		} else {
			wait_for_work(store, next_ns);
		}
	}
	pthread_mutex_unlock(&syncer->lock);
	return NULL;
}

/* --- of the queue's thread ---------------------------------------------------------------- */

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
	 * In this order: what the thread tells between the two steps is either read here, or
	 * written again. The number is read last.
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
		ret = -pthread_create(&syncer->thread, NULL, run, store);
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
