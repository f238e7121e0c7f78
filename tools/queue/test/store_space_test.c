// SPDX-License-Identifier: GPL-2.0
/*
 * A full disk: new jobs are refused in time, and all other commands go on, no matter which
 * program has filled it. Each test has a small file system, which ends with its process.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "queue/cli/load.h"
#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/integrity/scrub.h"
#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/space.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/test/store_lib.h"

#define DISK	(64u << 20)
#define BODY	1000
#define RESERVE	(16u << 20)

static char disk[80], filler[100], dir[100];

static void make_disk(const char *options)
{
	mkdir(test_dir(), 0700);
	snprintf(disk, sizeof(disk), "%s/disk", test_dir());
	snprintf(filler, sizeof(filler), "%s/filler", disk);
	snprintf(dir, sizeof(dir), "%s/store", disk);
	mkdir(disk, 0700);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", disk, "tmpfs", 0, options))
		test_skip("no file system can be mounted: %s", strerror(errno));
}

/* Another program fills the disk. Returns the bytes that it has taken. */
static size_t fill_disk(void)
{
	static char zeros[65536];
	int fd = open(filler, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	size_t sum = 0;
	ssize_t n;

	ASSERT(fd >= 0);
	for (n = sizeof(zeros); n > 0; ) {
		ssize_t written = write(fd, zeros, (size_t)n);

		if (written > 0)
			sum += (size_t)written;
		else
			n /= 2;
	}
	close(fd);
	return sum;
}

static struct store *open_with_reserve(uint64_t reserve)
{
	struct store_config config = test_config(dir);
	struct store *store;
	int ret;

	config.reserve = reserve;
	ret = store_open(&store, &config);
	if (ret)
		test_about("%s", log_text);
	ASSERT_EQ(ret, 0);
	return store;
}

static struct store *open_on_disk(void)
{
	return open_with_reserve(0);
}

/* Put up to @nr jobs from @id on, until there is no room. Returns the id after the last. */
static uint64_t put_while_room(struct store *store, uint64_t id, uint64_t nr)
{
	static char body[BODY];
	uint64_t end = id + nr;
	size_t i;

	for (; id < end && store_has_room(store); id++) {
		struct job_record job = make_job(id, JOB_DELAYED, 1, 1, id);

		for (i = 0; i < sizeof(body); i++)
			body[i] = (char)rand();
		job.body_len = sizeof(body);
		store_put(store, &job, body);
		if (id % 20 == 0)
			store_flush(store);
	}
	store_flush(store);
	return id;
}

/*
 * Wait until RocksDB writes no table. Debian's RocksDB has assertions, and one of them ends the
 * process when the write of a table fails at some places.
 */
static void settle(struct store *store)
{
	static const char *const busy[] = {
		"rocksdb.num-immutable-mem-table", "rocksdb.num-running-flushes",
		"rocksdb.num-running-compactions", "rocksdb.compaction-pending",
	};
	size_t i = 0;

	while (i < ARRAY_SIZE(busy)) {
		uint64_t nr = 0;

		ASSERT_EQ(rocksdb_property_int(store->db, busy[i], &nr), 0);
		if (nr)
			usleep(1000);
		i = nr ? 0 : i + 1;
	}
}

static void delete_all(struct store *store, uint64_t id, uint64_t end)
{
	for (; id < end; id++) {
		struct job_record job;

		ASSERT_EQ(store_get(store, id, &job), 0);
		store_delete(store, &job.place, NULL, 0);
		if (id % 20 == 0)
			store_flush(store);
	}
	store_flush(store);
	ASSERT_EQ(store_counts(store, 1)->nr[JOB_DELAYED], 0);
}

static void wait_for_room(struct store *store)
{
	while (!store_has_room(store))
		usleep(1000);
}

/* There may be little space at first, and more later. */
static void put_all(struct store *store, uint64_t id, uint64_t nr)
{
	uint64_t end = id + nr;

	while (id < end) {
		wait_for_room(store);
		id = put_while_room(store, id, end - id);
	}
}

TEST(a_disk_that_its_jobs_have_filled_has_room_again_when_they_are_deleted)
{
	struct store *store;
	uint64_t end;

	make_disk("size=64m");
	store = open_on_disk();
	end = put_while_room(store, 1, UINT32_MAX);
	printf("# %llu jobs of %d bytes\n", (unsigned long long)end - 1, BODY);
	ASSERT_GT(end, DISK / BODY / 4);
	delete_all(store, 1, end);
	put_all(store, end, 1000);
	store_close(store);
}

static uint64_t table_bytes(struct store *store)
{
	uint64_t bytes = 0;

	ASSERT_EQ(rocksdb_property_int(store->db, "rocksdb.live-sst-files-size", &bytes), 0);
	return bytes;
}

static bool is_pushing(struct store *store)
{
	return store->space.deleted || store->space.pushing;
}

/*
 * Wait until the space of deleted jobs is free. The scrub thread notices deletes in two steps,
 * so wait until it has run once more.
 */
static void wait_for_pushes(struct store *store)
{
	uint64_t pushed_ns;

	do {
		while (is_pushing(store))
			usleep(1000);
		pushed_ns = store->space.pushed_ns;
		while (store->space.pushed_ns == pushed_ns)
			usleep(1000);
	} while (is_pushing(store));
}

/* Another program has taken the rest, so there is still no room for new jobs. */
TEST(what_was_deleted_is_given_back_and_then_no_more_is_written_for_that)
{
	struct store *store;
	uint64_t end;

	make_disk("size=64m");
	store = open_on_disk();
	end = put_while_room(store, 1, 4000);
	settle(store);
	fill_disk();
	while (store_has_room(store))
		usleep(1000);
	delete_all(store, 1, end);
	wait_for_pushes(store);
	ASSERT(!store_has_room(store));
	ASSERT_LT(table_bytes(store), 64u << 10);
	store_close(store);
}

/* --- space for compactions ---------------------------------------------------------------- */

struct watch {
	struct store *store;
	uint64_t most;
	_Atomic bool stop;
};

/* Tables that are being written or are no longer needed, and logs. */
static uint64_t beside_tables(struct store *store)
{
	uint64_t tables = table_bytes(store);
	struct statvfs fs;

	ASSERT_EQ(statvfs(disk, &fs), 0);
	return (fs.f_blocks - fs.f_bfree) * fs.f_frsize - RESERVE - tables;
}

static void *watch_disk(void *context)
{
	struct watch *watch = context;

	while (!watch->stop) {
		uint64_t bytes = beside_tables(watch->store);

		if ((int64_t)bytes > (int64_t)watch->most)
			watch->most = bytes;
		usleep(1000);
	}
	return NULL;
}

/* With enough space: measures how much RocksDB takes then. */
TEST(what_is_merged_at_once_needs_less_than_the_reserve)
{
	struct watch watch = { 0 };
	pthread_t thread;
	uint64_t end;

	make_disk("size=512m");
	watch.store = open_with_reserve(RESERVE);
	ASSERT_EQ(pthread_create(&thread, NULL, watch_disk, &watch), 0);
	end = put_while_room(watch.store, 1, 60000);
	delete_all(watch.store, 1, end);
	watch.stop = true;
	ASSERT_EQ(pthread_join(thread, NULL), 0);
	printf("# %llu KiB at most\n", (unsigned long long)watch.most >> 10);
	ASSERT_LT(watch.most, RESERVE);
	store_close(watch.store);
}

/* Delete jobs, and take the rest of the disk again before each delete. */
static void delete_while_it_fills(struct store *store, uint64_t nr)
{
	uint64_t id;

	for (id = 1; id <= nr; id++) {
		struct job_record job;

		fill_disk();
		ASSERT_EQ(store_get(store, id, &job), 0);
		store_delete(store, &job.place, NULL, 0);
		store_flush(store);
	}
}

TEST(deletes_go_on_although_another_program_takes_all_that_is_given_back)
{
	struct store *store;

	make_disk("size=64m");
	store = open_on_disk();
	ASSERT_EQ(put_while_room(store, 1, 1000), 1001);
	settle(store);
	delete_while_it_fills(store, 30);
	unlink(filler);
	wait_for_room(store);
	store_close(store);
}

TEST(jobs_are_deleted_while_another_program_takes_all_of_the_disk)
{
	struct store *store;
	uint64_t end, id;

	make_disk("size=64m");
	store = open_on_disk();
	end = put_while_room(store, 1, 20000);
	ASSERT_EQ(end, 20001);
	settle(store);
	fill_disk();
	while (store_has_room(store))
		usleep(1000);
	for (id = 1; id < end; id += 1000) {
		struct job_record job;
		uint64_t i;

		for (i = id; i < id + 1000; i++) {
			ASSERT_EQ(store_get(store, i, &job), 0);
			store_delete(store, &job.place, NULL, 0);
			if (i % 20 == 0)
				store_flush(store);
		}
	}
	store_flush(store);
	unlink(filler);
	put_all(store, end, 1000);
	store_close(store);
}

TEST(a_store_on_a_full_disk_is_opened_and_its_jobs_deleted)
{
	struct store *store;
	uint64_t end;

	make_disk("size=64m");
	store = open_on_disk();
	end = put_while_room(store, 1, 20000);
	store_close(store);
	fill_disk();
	store = open_on_disk();
	ASSERT(!store_has_room(store));
	delete_all(store, 1, end);
	store_close(store);
	store = open_on_disk();
	ASSERT_EQ(store_next_id(store), end);
	store_close(store);
}

/* Another program takes each time what the restart has released. */
TEST(restarts_on_a_full_disk_do_not_use_up_the_reserve)
{
	struct store *store;
	struct job_record job;
	uint64_t end;

	make_disk("size=64m");
	store = open_on_disk();
	end = put_while_room(store, 1, 2000);
	store_close(store);
	for (int i = 0; i < 8; i++) {
		fill_disk();
		store = open_on_disk();
		ASSERT_EQ(store_next_id(store), end);
		ASSERT_EQ(store_get(store, 1, &job), 0);
		store_close(store);
	}
	store = open_on_disk();
	printf("# %llu of %llu KiB are left\n", (unsigned long long)store->space.ballast >> 10,
	       (unsigned long long)store->space.reserve >> 10);
	ASSERT_GT(store->space.ballast, RESERVE / 2);
	store_close(store);
}

/* What is lost is an entry of an index: the jobs can be read, and are copied. */
static void damage_one(uint64_t id)
{
	struct store *store = open_on_disk();
	uint8_t key[STORE_KEY_MAX];
	struct job_record job;

	ASSERT_EQ(store_get(store, id, &job), 0);
	lose(store, key, store_key_place(key, &job.place));
	store_close(store);
}

/* RocksDB cannot open a store that has lost the list of its files. */
static void damage_list(uint64_t id)
{
	char command[200];

	(void)id;
	snprintf(command, sizeof(command), "cd %s/db && for f in MANIFEST*; do echo lost >$f; done",
		 dir);
	ASSERT_EQ(system(command), 0);
}

static void see_repair_on_a_full_disk(uint64_t reserve, uint64_t nr, void (*damage)(uint64_t id))
{
	struct store_config config;
	struct store *store;
	struct job_record job;
	uint64_t end, id;
	int ret;

	store = open_with_reserve(reserve);
	end = put_while_room(store, 1, nr);
	ASSERT_EQ(end, nr + 1);
	store_close(store);
	damage(end / 2);
	fill_disk();
	config = test_config(dir);
	config.reserve = reserve;
	ASSERT_EQ(store_open(&store, &config), -EBADMSG);
	config.repair = true;
	*log_text = '\0';
	fill_disk();
	ret = store_open(&store, &config);
	test_about("%s", log_text);
	ASSERT_EQ(ret, 0);
	for (id = 1; id < end; id++)
		ASSERT_EQ(store_get(store, id, &job), 0);
	ASSERT(!store_has_room(store));
	delete_all(store, 1, end);
	store_close(store);
}

TEST(a_damaged_store_on_a_full_disk_is_repaired)
{
	make_disk("size=64m");
	see_repair_on_a_full_disk(0, 3000, damage_one);
	/* What was released at first was not enough. */
	ASSERT(strstr(log_text, "cannot be copied"));
}

TEST(a_store_on_a_full_disk_that_has_lost_its_list_of_files_is_repaired)
{
	make_disk("size=512m");
	see_repair_on_a_full_disk(256u << 20, 700, damage_list);
}

/* The linker calls this in place of the one without a prefix. */
uint64_t __real_store_dir_log_bytes(const struct store *store);
uint64_t __wrap_store_dir_log_bytes(const struct store *store);

static bool logs_seem_empty;

uint64_t __wrap_store_dir_log_bytes(const struct store *store)
{
	return logs_seem_empty ? 0 : __real_store_dir_log_bytes(store);
}

/* Nothing is released for the tables of logs, and RocksDB's repair returns no error without one. */
TEST(a_repair_on_a_full_disk_leaves_out_no_log_for_which_there_is_no_space)
{
	make_disk("size=512m");
	logs_seem_empty = true;
	see_repair_on_a_full_disk(256u << 20, 700, damage_list);
	ASSERT(strstr(log_text, "for tables of the logs"));
}

static void allow_inodes(uint64_t nr)
{
	char options[40];
	struct statvfs fs;

	ASSERT_EQ(statvfs(disk, &fs), 0);
	snprintf(options, sizeof(options), "nr_inodes=%llu",
		 (unsigned long long)(fs.f_files - fs.f_ffree + nr));
	ASSERT_EQ(mount("none", disk, "tmpfs", MS_REMOUNT, options), 0);
}

static void put_some(void)
{
	struct store *store = open_on_disk();

	put_all(store, 1, 100);
	store_close(store);
}

/* With the jobs, or with an error: the next one has more files. */
static void repair(void)
{
	struct store_config config = test_config(dir);
	struct job_record job;
	struct store *store;
	uint64_t id;

	config.repair = true;
	if (store_open(&store, &config))
		return;
	for (id = 1; id <= 100; id++)
		ASSERT_EQ(store_get(store, id, &job), 0);
	store_close(store);
}

TEST(a_repair_on_a_disk_that_has_no_more_files_changes_nothing)
{
	unsigned int nr;

	make_disk("size=64m");
	ASSERT_EQ(in_child(put_some), 0);
	damage_list(1);
	for (nr = 0; nr < 12; nr++) {
		test_about("%u files", nr);
		allow_inodes(nr);
		ASSERT_EQ(in_child(repair), 0);
	}
	allow_inodes(1000);
	ASSERT_EQ(in_child(repair), 0);
	store_close(open_on_disk());
}

/* A load ends where puts would be refused, and says so. */
static void load_until_full(int lines, size_t body_len)
{
	struct store_config config = test_config(dir);
	char *body = calloc(1, body_len + 1);
	FILE *in = tmpfile();
	struct store *store;
	struct job_record job;
	int i;

	ASSERT(body && in);
	for (i = 1; i <= lines; i++) {
		for (size_t n = 0; n < body_len; n++)
			body[n] = (char)('a' + rand() % 26);
		fprintf(in, "{\"id\":%d,\"tube\":\"t\",\"state\":\"ready\",\"body\":\"%s\"}\n", i,
			body);
	}
	rewind(in);
	*log_text = '\0';
	ASSERT_EQ(store_load(&config, in), -ENOSPC);
	ASSERT(strstr(log_text, "there is no room for it"));
	config.create = false;
	ASSERT_EQ(store_open(&store, &config), 0);
	ASSERT_EQ(store_get(store, 1, &job), body_len > DISK / 4 ? -ENOENT : 0);
	ASSERT_EQ(store_get(store, lines, &job), -ENOENT);
	store_close(store);
	fclose(in);
	free(body);
}

TEST(a_load_for_which_there_is_no_room_ends)
{
	make_disk("size=64m");
	load_until_full(900, 60000);
}

#define POLICY \
	"{\"tube\":\"%0150d\",\"policy\":{\"max_attempts\":1,\"base_ns\":1," \
	"\"factor\":1,\"cap_ns\":1,\"jitter_percent\":0,\"dead\":\"\"}}\n"

/* Lines that are no jobs need room, too. */
TEST(a_load_of_policies_for_which_there_is_no_room_ends)
{
	struct store_config config = test_config(dir);
	FILE *in = tmpfile();
	int i;

	ASSERT(in);
	for (i = 0; i < 20000; i++)
		fprintf(in, POLICY, i);
	rewind(in);
	make_disk("size=64m");
	store_close(open_on_disk());
	fill_disk();
	config.reserve = 0;
	ASSERT_EQ(store_load(&config, in), -ENOSPC);
	ASSERT(strstr(log_text, "there is no room"));
	fclose(in);
}

TEST(a_load_of_a_body_for_which_there_is_no_room_ends)
{
	make_disk("size=64m");
	load_until_full(2, 30 << 20);
}

/* --- a disk that says that it is full ------------------------------------------------------ */

/* The linker calls these in place of those without a prefix. */
int __real_rocksdb_property_int(rocksdb_t *db, const char *name, uint64_t *value);
int __wrap_rocksdb_property_int(rocksdb_t *db, const char *name, uint64_t *value);
int __real_fstatvfs(int fd, struct statvfs *fs);
int __wrap_fstatvfs(int fd, struct statvfs *fs);
int __real_ftruncate(int fd, off_t len);
int __wrap_ftruncate(int fd, off_t len);
int __real_posix_fallocate(int fd, off_t offset, off_t len);
int __wrap_posix_fallocate(int fd, off_t offset, off_t len);
void __real_rocksdb_write(rocksdb_t *db, const rocksdb_writeoptions_t *options,
			  rocksdb_writebatch_t *batch, char **error);
void __wrap_rocksdb_write(rocksdb_t *db, const rocksdb_writeoptions_t *options,
			  rocksdb_writebatch_t *batch, char **error);

rocksdb_t *__real_rocksdb_open(const rocksdb_options_t *options, const char *name, char **error);
rocksdb_t *__wrap_rocksdb_open(const rocksdb_options_t *options, const char *name, char **error);

static _Atomic bool says_full, allocates_nothing;
static _Atomic unsigned int nr_said_full;

int __wrap_posix_fallocate(int fd, off_t offset, off_t len)
{
	return allocates_nothing ? ENOSPC : __real_posix_fallocate(fd, offset, len);
}

/* If not negative: so many bytes are free. */
static int64_t says_free = -1;
/* If not 0: how many errors RocksDB has had. */
static uint64_t says_errors;

int __wrap_rocksdb_property_int(rocksdb_t *db, const char *name, uint64_t *value)
{
	if (!says_errors || strcmp(name, "rocksdb.background-errors"))
		return __real_rocksdb_property_int(db, name, value);
	*value = says_errors;
	return 0;
}

int __wrap_fstatvfs(int fd, struct statvfs *fs)
{
	int ret = __real_fstatvfs(fd, fs);

	if (says_free >= 0)
		fs->f_bavail = (uint64_t)says_free / fs->f_frsize;
	if (says_full) {
		fs->f_bavail = 0;
		nr_said_full++;
	}
	return ret;
}

/* If not negative: opening succeeds only while the file system has so many bytes free. */
static int64_t quota = -1;

rocksdb_t *__wrap_rocksdb_open(const rocksdb_options_t *options, const char *name, char **error)
{
	struct statvfs fs;

	ASSERT_EQ(statvfs(disk, &fs), 0);
	if ((int64_t)(fs.f_bavail * fs.f_frsize) >= quota)
		return __real_rocksdb_open(options, name, error);
	*error = strdup("IO error: Disk quota exceeded: While appending to file: 000009.log");
	return NULL;
}

TEST(a_path_that_has_the_word_quota_is_no_lack_of_space)
{
	ASSERT(!store_is_no_space("Corruption: bad block in file /srv/quota/db/MANIFEST-000005"));
	ASSERT(store_is_no_space("IO error: While appending to file: a.log: Disk quota exceeded"));
}

/* The free bytes that the file system shows are then those of others. */
TEST(a_store_whose_quota_is_used_up_is_opened_with_a_part_of_the_reserve)
{
	struct store *store;
	struct statvfs fs;
	uint64_t end;

	make_disk("size=64m");
	store = open_on_disk();
	end = put_while_room(store, 1, 100);
	store_close(store);
	ASSERT_EQ(statvfs(disk, &fs), 0);
	quota = (int64_t)(fs.f_bavail * fs.f_frsize) + (3 << 20);
	allocates_nothing = true;
	store = open_on_disk();
	ASSERT(!store_has_room(store));
	ASSERT_GT(store->space.ballast, RESERVE / 2);
	delete_all(store, 1, end);
	allocates_nothing = false;
	wait_for_room(store);
	store_close(store);
}

static unsigned int nr_truncated;

/* Of the reserve. A file system gives back whole blocks only, which are up to 64 kB. */
int __wrap_ftruncate(int fd, off_t len)
{
	ASSERT_EQ(len % 65536, 0);
	nr_truncated++;
	return __real_ftruncate(fd, len);
}

TEST(there_is_no_room_for_jobs_before_the_reserve_could_be_allocated)
{
	struct store *store;
	struct stat file;
	char path[120];

	make_disk("size=64m");
	allocates_nothing = true;
	store = open_on_disk();
	ASSERT(!store_has_room(store));
	allocates_nothing = false;
	wait_for_room(store);
	snprintf(path, sizeof(path), "%s/reserve", dir);
	ASSERT_EQ(stat(path, &file), 0);
	ASSERT_EQ((uint64_t)file.st_blocks * 512, RESERVE);
	store_close(store);
}

/* The next writes fail so; the last one succeeds. */
static const char *const *write_errors;

void __wrap_rocksdb_write(rocksdb_t *db, const rocksdb_writeoptions_t *options,
			  rocksdb_writebatch_t *batch, char **error)
{
	if (!write_errors || !*write_errors)
		__real_rocksdb_write(db, options, batch, error);
	else
		*error = strdup(*write_errors++);
}

/* What the scrub thread does in so many seconds, with so many errors in each. */
static void push_for(struct store *store, unsigned int seconds, unsigned int errors)
{
	for (; seconds; seconds--) {
		says_errors += errors;
		store->space.pushed_ns = 0;
		store_space_push(store);
	}
}

/* RocksDB had its first error, and a fourth was released. Only push_for() makes pushes. */
static struct store *open_with_a_lack(int64_t free_bytes)
{
	struct store *store;

	make_disk("size=64m");
	store = open_on_disk();
	store_scrub_stop(store);
	says_errors = 1;
	says_free = free_bytes;
	push_for(store, 1, 1);
	ASSERT_EQ(store->space.ballast, RESERVE / 4 * 3);
	return store;
}

TEST(errors_of_rocksdb_that_go_on_get_the_rest_of_a_reserve_that_nobody_takes)
{
	/* RocksDB has written a little since a fourth was released. */
	struct store *store = open_with_a_lack(RESERVE / 5);

	push_for(store, 1, 1);
	ASSERT_EQ(store->space.ballast, 0);
	store_close(store);
}

TEST(errors_of_rocksdb_that_go_on_get_a_fourth_at_a_time_of_a_reserve_that_others_take)
{
	struct store *store = open_with_a_lack(0);

	push_for(store, 8, 1);
	ASSERT_EQ(store->space.ballast, RESERVE / 4 * 3);
	push_for(store, 1, 1);
	ASSERT_EQ(store->space.ballast, RESERVE / 2);
	/* No more errors, and RocksDB waits for nothing. */
	push_for(store, 40, 0);
	ASSERT_EQ(store->space.ballast, RESERVE / 2);
	push_for(store, 11, 1);
	ASSERT_EQ(store->space.ballast, RESERVE / 4);
	store_close(store);
}

TEST(a_write_for_which_rocksdb_has_no_room_is_made_later)
{
	static const char *const errors[] = {
		"IO error: No space left on device: While appending to file: 000004.log",
		"IO error: Space limit reached: Max allowed space was reached",
		NULL
	};
	struct job_record job = make_job(1, JOB_DELAYED, 1, 1, 1), seen;
	struct store *store;

	make_disk("size=64m");
	store = open_on_disk();
	write_errors = errors;
	store_put(store, &job, "");
	store_flush(store);
	ASSERT(!*write_errors);
	store_close(store);
	store = open_on_disk();
	ASSERT_EQ(store_get(store, 1, &seen), 0);
	store_close(store);
}

static void *delete_one(void *context)
{
	struct store *store = context;
	struct job_record job;

	ASSERT_EQ(store_get(store, 1, &job), 0);
	store_delete(store, &job.place, NULL, 0);
	store_flush(store);
	return NULL;
}

/* There is space again. @line was logged once meanwhile. */
static void end_waiting(struct store *store, pthread_t deleting, const char *line)
{
	const char *first;

	says_full = false;
	pthread_join(deleting, NULL);
	first = strstr(log_text, line);
	ASSERT(first);
	ASSERT(!strstr(first + 1, line));
	wait_for_room(store);
	store_close(store);
}

TEST(replies_that_wait_for_room_are_logged_once)
{
	const char *line = "the disk is full, even without the reserve";
	struct store *store;
	pthread_t deleting;
	unsigned int asked;

	make_disk("size=64m");
	store = open_on_disk();
	ASSERT_EQ(put_while_room(store, 1, 100), 101);
	says_full = true;
	ASSERT_EQ(pthread_create(&deleting, NULL, delete_one, store), 0);
	while (!strstr(log_text, line))
		usleep(1000);
	ASSERT_EQ(store->space.ballast, 0);
	ASSERT_GE(nr_truncated, 2);
	asked = nr_said_full;
	while (nr_said_full < asked + 100)
		usleep(1000);
	end_waiting(store, deleting, line);
}

TEST(a_reserve_that_cannot_be_released_is_released_when_it_can_be)
{
	const char *line = "cannot release the reserve";
	struct stat file;
	struct store *store;
	pthread_t deleting;
	int fd, read_only;
	char path[40];

	make_disk("size=64m");
	store = open_on_disk();
	ASSERT_EQ(put_while_room(store, 1, 100), 101);
	/* Only a file that can be written can be shortened. */
	fd = dup(store->space.ballast_fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT(fd >= 0 && read_only >= 0);
	ASSERT_EQ(dup2(read_only, store->space.ballast_fd), store->space.ballast_fd);
	says_full = true;
	ASSERT_EQ(pthread_create(&deleting, NULL, delete_one, store), 0);
	while (nr_said_full < 100)
		usleep(1000);
	ASSERT(strstr(log_text, "the disk is full: replies wait"));
	ASSERT_EQ(dup2(fd, store->space.ballast_fd), store->space.ballast_fd);
	do {
		usleep(1000);
		ASSERT_EQ(fstat(fd, &file), 0);
	} while (file.st_size);
	end_waiting(store, deleting, line);
}

/* --- a process that takes all free space -------------------------------------------------- */

static pid_t start_filling(void)
{
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (pid)
		return pid;
	for (;;) {
		fill_disk();
		usleep(1000);
	}
}

/* @order of a job is its number of moves; *@moved is the number that was promised. */
static void move_jobs(struct store *store, uint64_t nr, unsigned long moves,
		      _Atomic uint64_t *moved)
{
	unsigned long n;

	for (n = 0; n < moves; n++) {
		struct job_record job;
		struct job_place old;

		ASSERT_EQ(store_get(store, 1 + n % nr, &job), 0);
		old = job.place;
		job.place.order++;
		store_move(store, &old, &job);
		if (n % 20)
			continue;
		store_flush(store);
		*moved = n;
	}
	store_close(store);
	_exit(0);
}

static void see_moved(uint64_t nr, uint64_t moved)
{
	struct store *store = open_on_disk();
	struct job_record job;
	uint64_t id;

	for (id = 1; id <= nr; id++) {
		ASSERT_EQ(store_get(store, id, &job), 0);
		ASSERT_GE(job.place.order, id + (moved + nr - (id - 1)) / nr);
	}
	store_close(store);
	_exit(0);
}

/*
 * If no space is left for the log, the process may end or wait. In both cases the promised
 * changes are there afterwards.
 */
TEST(what_was_promised_is_kept_while_another_program_takes_what_is_given_back)
{
	_Atomic uint64_t *moved = mmap(NULL, sizeof(*moved), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t filling, moving, looking;
	const uint64_t nr = 2000;
	int status;

	make_disk("size=64m");
	filling = start_filling();
	kill(filling, SIGSTOP);
	moving = fork();
	if (!moving) {
		struct store *store = open_on_disk();

		put_while_room(store, 1, nr);
		kill(filling, SIGCONT);
		move_jobs(store, nr, test_count(40000), moved);
	}
	while (!*moved)
		usleep(1000);
	sleep(2);
	kill(filling, SIGKILL);
	waitpid(filling, &status, 0);
	unlink(filler);
	ASSERT_EQ(waitpid(moving, &status, 0), moving);
	printf("# it ended with status %#x after %llu moves\n", (unsigned int)status,
	       (unsigned long long)*moved);
	fflush(stdout);
	looking = fork();
	if (!looking)
		see_moved(nr, *moved);
	ASSERT_EQ(waitpid(looking, &status, 0), looking);
	ASSERT_EQ(status, 0);
}
