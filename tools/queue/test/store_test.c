// SPDX-License-Identifier: GPL-2.0
/* Tests of the store: jobs that were put are there after a restart, in order and counted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/time.h"
#include "common/util.h"
#include "queue/integrity/open.h"
#include "queue/store/backup.h"
#include "queue/store/batch.h"
#include "queue/store/browse.h"
#include "queue/store/counts.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/state.h"
#include "queue/store/stats.h"
#include "queue/store/sync.h"
#include "queue/store/writer.h"
#include "queue/test/store_lib.h"

static void see_record(struct store *store, const struct job_record *expected)
{
	struct job_record seen;

	memset(&seen, 0xcc, sizeof(seen));
	ASSERT_EQ(store_get(store, expected->place.id, &seen), 0);
	ASSERT(!memcmp(&seen, expected, sizeof(seen)));
}

static struct job_record full_job(uint64_t id)
{
	struct job_record job = make_job(id, JOB_DELAYED, 7, 4000000000u, 123456789012345ull);

	job.created_ns = UINT64_MAX;
	job.delay_ns = 5;
	job.ttr_ns = 6;
	job.reserves = 1;
	job.timeouts = 2;
	job.releases = 3;
	job.buries = 4;
	job.kicks = 5;
	job.attempts = 6;
	job.origin = 7;
	job.died_ns = 8;
	job.place.keyed = 1;
	job.key_len = JOB_KEY_MAX;
	job.reason_len = JOB_REASON_MAX;
	memset(job.key, 'k', job.key_len);
	memset(job.reason, 'r', job.reason_len);
	return job;
}

TEST(all_of_a_record_is_there_after_a_restart)
{
	struct job_record job = full_job(9), least = make_job(10, JOB_READY, 1, 0, 0);
	struct store *store = open_store();

	put_job(store, &job);
	put_job(store, &least);
	see_record(store, &job);
	store_close(store);
	store = open_store();
	see_record(store, &job);
	see_record(store, &least);
	see_body(store, &job);
	see_body(store, &least);
	ASSERT_EQ(store_next_id(store), 11);
	store_close(store);
}

TEST(what_is_not_there_is_not_found)
{
	struct store *store = open_store();
	struct job_record job;
	const void *body;
	uint64_t id, number;
	size_t len;

	ASSERT_EQ(store_get(store, 1, &job), -ENOENT);
	ASSERT_EQ(store_get_body(store, 1, &body, &len), -ENOENT);
	ASSERT_EQ(store_get_key(store, 1, "k", 1, &id), -ENOENT);
	ASSERT_EQ(store_get_number(store, "none", 17, &number), 0);
	ASSERT_EQ(number, 17);
	ASSERT_EQ(store_next_id(store), 1);
	ASSERT_EQ(store_counts(store, 5)->nr[JOB_READY], 0);
	store_close(store);
}

TEST(a_walk_goes_in_order_and_from_a_place_on)
{
	struct store *store = open_store();
	static const uint32_t pris[] = { 5, 1, 1, 1024, 0 };
	uint64_t ids[10];
	size_t i;

	for (i = 0; i < 5; i++) {
		struct job_record job = make_job(i + 1, JOB_READY, 3, pris[i], 0);

		put_job(store, &job);
		job = make_job(i + 11, JOB_READY, 4, 0, 0);
		put_job(store, &job);
	}
	ASSERT_EQ(walk_ids(store, make_job(0, JOB_READY, 3, 0, 0).place, ids, 10, false), 5);
	ASSERT_EQ(ids[0], 5);
	ASSERT_EQ(ids[1], 2);
	ASSERT_EQ(ids[2], 3);
	ASSERT_EQ(ids[3], 1);
	ASSERT_EQ(ids[4], 4);
	ASSERT_EQ(walk_ids(store, make_job(3, JOB_READY, 3, 1, 0).place, ids, 10, false), 3);
	ASSERT_EQ(ids[0], 3);
	ASSERT_EQ(walk_ids(store, make_job(0, JOB_READY, 3, 5, 0).place, ids, 10, true), 3);
	ASSERT_EQ(ids[0], 3);
	ASSERT_EQ(ids[2], 5);
	ASSERT_EQ(store_counts(store, 3)->urgent, 4);
	store_close(store);
}

struct listed {
	uint64_t ids[8];
	size_t nr;
};

static bool list_id(void *context, const struct job_place *place)
{
	struct listed *listed = context;

	ASSERT_LT(listed->nr, 8);
	listed->ids[listed->nr++] = place->id;
	return true;
}

TEST(a_list_has_the_jobs_of_one_tube_and_state)
{
	static const enum job_state states[] = { JOB_READY, JOB_DELAYED, JOB_BURIED };
	struct store *store = open_store();
	struct job_record job;
	uint64_t id = 0;
	uint32_t tube;
	size_t i;

	for (i = 0; i < 3; i++) {
		for (tube = 2; tube <= 4; tube++) {
			job = make_job(++id, states[i], tube, 0, 0);
			put_job(store, &job);
			job = make_job(++id, states[i], tube, 0, 0);
			put_job(store, &job);
		}
	}
	store_flush(store);
	for (i = 0; i < 3; i++) {
		for (tube = 2; tube <= 4; tube++) {
			struct listed all = {}, one = {};
			const uint64_t first = i * 6 + (tube - 2) * 2 + 1;

			job = make_job(0, states[i], tube, 0, 0);
			ASSERT_EQ(store_browse(store, &job.place, 8, list_id, &all), 0);
			ASSERT_EQ(all.nr, 2);
			ASSERT_EQ(all.ids[0], first);
			ASSERT_EQ(all.ids[1], first + 1);
			ASSERT_EQ(store_browse(store, &job.place, 1, list_id, &one), 0);
			ASSERT_EQ(one.nr, 1);
			ASSERT_EQ(one.ids[0], first);
		}
	}
	store_close(store);
}

static bool count_mark(void *context, uint64_t id)
{
	size_t *nr = context;

	(void)id;
	++*nr;
	return true;
}

TEST(a_list_ends_at_an_entry_that_is_none_and_says_so)
{
	struct job_record first = make_job(1, JOB_BURIED, 3, 0, 0);
	struct job_record second = make_job(2, JOB_BURIED, 3, 0, 1);
	struct store *store = open_store();
	struct listed listed = {};
	uint8_t key[STORE_KEY_MAX] = { 0 };
	struct job_record job;
	size_t marks = 0;

	put_job(store, &first);
	put_job(store, &second);
	put_garbage(store, key, store_key_place(key, &second.place));
	ASSERT_EQ(store_browse(store, &first.place, 8, list_id, &listed), -EBADMSG);
	ASSERT_EQ(listed.nr, 1);
	ASSERT(store_is_damaged(store));

	put_garbage(store, key, store_key_id(key, 'v', 1));
	put_garbage(store, key, store_key_id(key, 'v', 2) + 1);
	ASSERT_EQ(store_browse_marks(store, 0, 8, count_mark, &marks), -EBADMSG);
	ASSERT_EQ(marks, 1);
	put_garbage(store, key, store_key_id(key, 'j', 2));
	ASSERT_EQ(store_browse_job(store, 1, &job), 0);
	ASSERT_EQ(store_browse_job(store, 2, &job), -EBADMSG);
	ASSERT_EQ(store_browse_job(store, 3, &job), -ENOENT);
	store_close(store);
}

TEST(a_place_says_whether_a_schedule_made_the_job_and_nothing_else)
{
	struct job_record job = make_job(1, JOB_DELAYED, 3, 7, 100);
	struct job_place seen;
	uint8_t key[64], value[64];
	size_t key_len, len, at;

	job.place.scheduled = 1;
	key_len = store_key_place(key, &job.place);
	len = store_encode_place(value, &job.place);
	ASSERT(store_decode_place(key, key_len, value, len, &seen));
	ASSERT(!memcmp(&seen, &job.place, sizeof(seen)));
	for (at = 0; at < len && value[at] != 2; at++)
		;
	ASSERT_LT(at, len);
	for (value[at] = 4; value[at]; value[at] += 2)
		ASSERT(!store_decode_place(key, key_len, value, len, &seen));
}

TEST(counts_that_earlier_versions_wrote_are_read)
{
	const struct tube_counts all = { { 1, 2, 3, 4 }, .urgent = 5, .schedules = 7, .died = 6 };
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
	size_t key_len = store_key_tube(key, 'c', 9), len = store_encode_counts(value, &all), cut;
	struct tube_counts counts;
	uint32_t tube;

	ASSERT_EQ(len, 7 * 8);
	for (cut = 0; cut <= len; cut++) {
		bool valid = cut == 5 * 8 || cut == 6 * 8 || cut == 7 * 8;

		ASSERT_EQ(store_decode_counts(key, key_len, value, cut, &tube, &counts), valid);
		if (!valid)
			continue;
		ASSERT_EQ(tube, 9);
		ASSERT_EQ(counts.nr[3], 4);
		ASSERT_EQ(counts.urgent, 5);
		ASSERT_EQ(counts.died, cut > 5 * 8 ? 6 : 0);
		ASSERT_EQ(counts.schedules, cut > 6 * 8 ? 7 : 0);
	}
}

static int back_up(struct store *store, const char *name)
{
	struct pollfd poll_fd = { .fd = store_fd(store), .events = POLLIN };
	int result = 1;

	ASSERT_EQ(store_backup_begin(store, name), 0);
	while (!store_backup_ended(store, &result)) {
		ASSERT_EQ(poll(&poll_fd, 1, -1), 1);
		store_synced(store);
	}
	ASSERT(!store_backup_ended(store, &result));
	return result;
}

/* The linker calls these in place of fsync() and renameat(). */
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);

static _Atomic int rename_error;
static _Atomic ino_t synced[64];
static _Atomic unsigned int nr_synced, nr_synced_before_name;

int __wrap_fsync(int fd)
{
	struct stat stat;

	if (!fstat(fd, &stat) && nr_synced < ARRAY_SIZE(synced))
		synced[nr_synced++] = stat.st_ino;
	return __real_fsync(fd);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	nr_synced_before_name = nr_synced;
	if (!rename_error)
		return __real_renameat(from_fd, from, to_fd, to);
	errno = rename_error;
	return -1;
}

/* Was it synced by one of the calls from @first on that came before the one numbered @end? */
static bool was_synced(const char *path, unsigned int first, unsigned int end)
{
	struct stat stat_of;

	ASSERT_EQ(stat(path, &stat_of), 0);
	for (; first < end; first++)
		if (synced[first] == stat_of.st_ino)
			return true;
	return false;
}

TEST(a_backup_is_on_the_disk_before_it_has_its_name)
{
	struct job_record job = make_job(1, JOB_READY, 1, 0, 0);
	struct store *store = open_store();
	char path[256];

	put_job(store, &job);
	nr_synced = 0;
	ASSERT_EQ(back_up(store, "one"), 0);
	ASSERT_LT(nr_synced, ARRAY_SIZE(synced));
	snprintf(path, sizeof(path), "%s/" BACKUPS_DIR "/one/db", test_dir());
	ASSERT(was_synced(path, 0, nr_synced_before_name));
	snprintf(path, sizeof(path), "%s/" BACKUPS_DIR, test_dir());
	ASSERT(was_synced(path, nr_synced_before_name, nr_synced));
	store_close(store);
}

TEST(a_backup_that_cannot_get_its_name_says_why_and_is_removed)
{
	static const int errors[][2] = { { ENOTEMPTY, EEXIST }, { ENOTDIR, EEXIST }, { EIO, EIO } };
	struct store *store = open_store();
	char path[256];
	size_t i;

	snprintf(path, sizeof(path), "%s/" BACKUPS_DIR "/.new", test_dir());
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		rename_error = errors[i][0];
		ASSERT_EQ(back_up(store, "one"), -errors[i][1]);
		ASSERT_EQ(access(path, F_OK), -1);
	}
	rename_error = 0;
	ASSERT_EQ(back_up(store, "one"), 0);
	store_close(store);
}

int __real_fstatat(int dir_fd, const char *name, struct stat *stat, int flags);
int __wrap_fstatat(int dir_fd, const char *name, struct stat *stat, int flags);

/* Goes on to another log as soon as one of its logs is found. */
static struct store *_Atomic to_switch;

/* RocksDB goes on to another log and removes the one that it has. */
static void switch_logs(struct store *store)
{
	rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
	char *error = NULL;

	rocksdb_flush(store->db, options, &error);
	rocksdb_flushoptions_destroy(options);
	ASSERT(!error);
}

int __wrap_fstatat(int dir_fd, const char *name, struct stat *stat, int flags)
{
	const char *end = strrchr(name, '.');
	int ret = __real_fstatat(dir_fd, name, stat, flags);

	if (ret || !to_switch || !end || strcmp(end, ".log"))
		return ret;
	switch_logs(to_switch);
	to_switch = NULL;
	return __real_fstatat(dir_fd, name, stat, flags);
}

/* Does this process have a log open that was removed? */
static bool keeps_a_removed_log(void)
{
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *entry;
	bool keeps = false;
	char file[300];
	ssize_t len;

	ASSERT(fds);
	while ((entry = readdir(fds))) {
		len = readlinkat(dirfd(fds), entry->d_name, file, sizeof(file) - 1);
		file[len < 0 ? 0 : len] = '\0';
		keeps |= !!strstr(file, ".log (deleted)");
	}
	closedir(fds);
	return keeps;
}

TEST(logs_that_rocksdb_itself_removes_are_neither_missed_nor_kept)
{
	struct store *store = open_store();
	uint64_t first;

	for (int i = 1; i <= 10; i++) {
		struct job_record job = make_job(i, JOB_READY, 1, 0, 0);

		put_job(store, &job);
		store_flush(store);
		first = store->syncer.log_number;
		switch_logs(store);
		job = make_job(100 + i, JOB_READY, 1, 0, 0);
		to_switch = store;
		put_job(store, &job);
		store_flush(store);
		ASSERT(!to_switch);
		ASSERT_GE(store->syncer.log_number, first + 2);
		switch_logs(store);
		ASSERT(!keeps_a_removed_log());
	}
	store_close(store);
}

static void rename_dir(const char *from, const char *to)
{
	char old[256], new[256];

	snprintf(old, sizeof(old), "%s%s", test_dir(), from);
	snprintf(new, sizeof(new), "%s%s", test_dir(), to);
	ASSERT_EQ(rename(old, new), 0);
}

/* Both have files with the same numbers. */
static void flush_some(struct store *store, uint64_t id)
{
	for (int i = 0; i < 5; i++) {
		struct job_record job = make_job(id + i, JOB_READY, 1, 0, 0);

		put_job(store, &job);
		store_flush(store);
		switch_logs(store);
	}
}

TEST(a_store_in_the_place_of_another_keeps_its_files)
{
	struct store *store = open_store(), *other;
	struct job_record job;

	flush_some(store, 1);
	rename_dir("", ".away");
	other = open_store();
	flush_some(other, 100);
	store_close(other);
	rocksdb_compact_range(store->db, NULL, 0, NULL, 0);
	other = open_store();
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(store_get(other, 100 + i, &job), 0);
		ASSERT_EQ(store_get(store, 1 + i, &job), 0);
	}
	store_close(other);
	rename_dir("", ".other");
	rename_dir(".away", "");
	rename_dir(".other", "/other");
	store_close(store);
}

TEST(the_end_of_a_backup_is_told_once)
{
	struct job_record job = make_job(1, JOB_READY, 1, 0, 0);
	struct store *store = open_store();
	char path[256];

	put_job(store, &job);
	ASSERT_EQ(back_up(store, "one"), 0);
	ASSERT_EQ(back_up(store, "one"), -EEXIST);
	ASSERT_EQ(back_up(store, "two"), 0);
	snprintf(path, sizeof(path), "%s/" BACKUPS_DIR "/two/db", test_dir());
	ASSERT_EQ(access(path, F_OK), 0);
	store_close(store);
}

TEST(a_moved_job_is_in_one_index_only)
{
	struct store *store = open_store();
	struct job_record job = make_job(1, JOB_DELAYED, 3, 7, 100), moved = job;
	struct job_place any = { .tube = 3, .state = JOB_DELAYED };
	uint64_t ids[2];

	put_job(store, &job);
	store_mark(store, 1);
	moved.place.state = JOB_BURIED;
	moved.place.order = 9;
	store_move(store, &job.place, &moved);
	ASSERT_EQ(walk_ids(store, any, ids, 2, false), 0);
	any.state = JOB_BURIED;
	ASSERT_EQ(walk_ids(store, any, ids, 2, false), 1);
	see_record(store, &moved);
	ASSERT_EQ(store_counts(store, 3)->nr[JOB_DELAYED], 0);
	ASSERT_EQ(store_counts(store, 3)->nr[JOB_BURIED], 1);
	store_close(store);
}

static size_t batch_bytes(const struct store *store)
{
	size_t bytes;

	rocksdb_writebatch_data(store->batch, &bytes);
	return bytes;
}

TEST(a_move_takes_no_more_of_a_batch_than_it_says)
{
	struct store *store = open_store();
	struct job_record jobs[] = { make_job(1, JOB_DELAYED, 3, 7, 100), full_job(2) };
	struct job_place old;
	size_t i, before;

	for (i = 0; i < ARRAY_SIZE(jobs); i++) {
		put_job(store, &jobs[i]);
		old = jobs[i].place;
		jobs[i].place.order++;
		before = batch_bytes(store);
		store_move(store, &old, &jobs[i]);
		ASSERT_LE(batch_bytes(store) - before, store_move_bytes(&jobs[i]));
	}
	store_close(store);
}

/* Not even if RocksDB makes the writer wait. */
TEST(commits_do_not_wait_for_the_writer_and_reads_see_them)
{
	struct store *store = open_store();
	uint64_t id, before, last = 0;
	const uint64_t nr = 2000;
	struct job_record job;

	store_flush(store);
	before = store_synced(store);
	pthread_mutex_lock(&store->writer.writing);
	for (id = 1; id <= nr; id++) {
		job = make_job(id, JOB_READY, 1, 0, 0);
		put_job(store, &job);
		last = store_commit(store);
	}
	ASSERT_EQ(store_synced(store), before);
	ASSERT(store_writer_is_behind(store));
	pthread_mutex_unlock(&store->writer.writing);
	for (id = 1; id <= nr; id++) {
		job = make_job(id, JOB_READY, 1, 0, 0);
		see_body(store, &job);
	}
	ASSERT(!store_writer_is_behind(store));
	store_flush(store);
	ASSERT_EQ(store_synced(store), last);
	store_close(store);
}

TEST(stats_tell_the_time_of_a_sync_and_the_memory)
{
	struct job_record job = make_job(1, JOB_READY, 1, 0, 0);
	struct job_record other = make_job(2, JOB_READY, 1, 0, 0);
	uint64_t begin_ns = time_now_ns(CLOCK_MONOTONIC), buffers, cached;
	struct store *store = open_store();
	struct store_stats stats;

	put_job(store, &job);
	store_close(store);
	/* Now it is in a table: a read brings it to the cache. */
	store = open_store();
	see_body(store, &job);
	put_job(store, &other);
	store_flush(store);
	ASSERT_EQ(rocksdb_property_int(store->db, "rocksdb.cur-size-all-mem-tables", &buffers), 0);
	cached = rocksdb_cache_get_usage(store->cache);
	store_stats(store, &stats);
	ASSERT_GT(stats.syncs, 0);
	ASSERT_GT(stats.sync_max_ns, 0);
	ASSERT_LE(stats.sync_ns, time_now_ns(CLOCK_MONOTONIC) - begin_ns);
	ASSERT_GT(buffers, 0);
	ASSERT_GT(cached, 0);
	ASSERT_GE(stats.memory_bytes, buffers + cached);
	ASSERT_LE(stats.memory_bytes, 2 * (uint64_t)store->config.memory);
	store_close(store);
}

/* --- who syncs ------------------------------------------------------------------------------ */

static uint64_t commit_next(struct store *store, uint64_t *id, unsigned int nr_waiting)
{
	struct job_record job = make_job(++*id, JOB_READY, 1, 0, 0);

	put_job(store, &job);
	store_sync_waiting(store, nr_waiting);
	return store_commit(store);
}

static void wait_for_sync(struct store *store, uint64_t seq)
{
	struct pollfd poll_fd = { .fd = store_fd(store), .events = POLLIN };

	while (store_synced(store) < seq)
		ASSERT_EQ(poll(&poll_fd, 1, -1), 1);
}

/* The sync thread's time on a processor, which is the same as before if it did not run. */
static uint64_t sync_thread_ns(const struct store *store)
{
	clockid_t clock;

	ASSERT_EQ(pthread_getcpuclockid(store->syncer.thread, &clock), 0);
	return time_now_ns(clock);
}

/*
 * Until a commit is synced when store_commit() returns, and not by the thread: on a slow disk one
 * a second is.
 */
static void sync_here(struct store *store, uint64_t *id)
{
	uint64_t seq, before;

	for (;;) {
		before = sync_thread_ns(store);
		seq = commit_next(store, id, 1);
		if (store_synced(store) >= seq && store->syncer.alone >= 8 &&
		    sync_thread_ns(store) == before)
			return;
		wait_for_sync(store, seq);
	}
}

TEST(one_client_that_waits_is_synced_without_the_thread)
{
	struct store *store = open_store();
	uint64_t id = 0, seq;

	while (id < 7) {
		seq = commit_next(store, &id, 1);
		wait_for_sync(store, seq);
	}
	ASSERT_EQ(store->syncer.alone, 7);
	sync_here(store, &id);
	/* With another one, the thread is to sync. */
	wait_for_sync(store, commit_next(store, &id, 2));
	ASSERT_EQ(store->syncer.alone, 0);
	store_close(store);
	store = open_store();
	ASSERT_EQ(store_counts(store, 1)->nr[JOB_READY], id);
	store_close(store);
}

TEST(a_commit_that_would_wait_for_the_writer_is_left_to_the_thread)
{
	struct store *store = open_store();
	uint64_t id = 0, seq;

	sync_here(store, &id);
	pthread_mutex_lock(&store->writer.writing);
	seq = commit_next(store, &id, 1);
	ASSERT_LT(store_synced(store), seq);
	pthread_mutex_unlock(&store->writer.writing);
	wait_for_sync(store, seq);
	store_close(store);
}

TEST(a_commit_that_nobody_waits_for_is_synced_later)
{
	struct store *store = open_store();
	uint64_t id = 0, seq, syncs;

	store_flush(store);
	syncs = store->syncer.syncs;
	seq = commit_next(store, &id, 0);
	ASSERT(store->syncer.later_ns);
	ASSERT_EQ(store->syncer.syncs, syncs);
	ASSERT(!store_writer_is_idle(store));
	ASSERT(!store_sync_later(store, 1));
	wait_for_sync(store, seq);
	/* Or when its time has come. */
	seq = commit_next(store, &id, 0);
	while (store_sync_later(store, 0))
		;
	wait_for_sync(store, seq);
	/* Or with the next one. */
	commit_next(store, &id, 0);
	seq = commit_next(store, &id, 2);
	ASSERT(!store->syncer.later_ns);
	wait_for_sync(store, seq);
	store_close(store);
}

TEST(with_an_interval_a_commit_is_written_at_once_and_synced_when_it_is_over)
{
	struct store_config config = test_config(test_dir());
	struct store *store;
	uint64_t id = 0, seq;

	config.sync = SYNC_INTERVAL;
	config.sync_interval_ns = 1000000;
	ASSERT_EQ(store_open(&store, &config), 0);
	store_flush(store);
	/* A slow one lets the thread write for a second. */
	do
		seq = commit_next(store, &id, 2);
	while (store_synced(store) < seq);
	ASSERT(store_writer_is_idle(store));
	pthread_mutex_lock(&store->syncer.lock);
	while (store->syncer.on_disk < seq)
		pthread_cond_wait(&store->syncer.done, &store->syncer.lock);
	pthread_mutex_unlock(&store->syncer.lock);
	store_close(store);
}

TEST(a_number_of_a_commit_is_synced_and_told)
{
	struct store *store = open_store();
	struct job_record job = make_job(1, JOB_READY, 3, 7, 0);
	struct pollfd poll_fd = { .fd = store_fd(store), .events = POLLIN };
	uint64_t seq = store_seq(store);

	put_job(store, &job);
	ASSERT_EQ(store_seq(store), seq);
	ASSERT_LT(store_synced(store), seq);
	ASSERT_EQ(store_commit(store), seq);
	ASSERT_EQ(store_commit(store), seq);
	while (store_synced(store) < seq)
		ASSERT_EQ(poll(&poll_fd, 1, -1), 1);
	ASSERT_EQ(poll(&poll_fd, 1, 0), 0);
	ASSERT_EQ(store_seq(store), seq + 1);
	store_close(store);
}
