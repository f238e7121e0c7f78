// SPDX-License-Identifier: GPL-2.0
/* Repairs that are stopped, or cannot read now what is not damaged: no job is lost for that. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "common/util.h"
#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/integrity/repair.h"
#include "queue/store/batch.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/rocksdb.h"
#include "queue/store/schedule.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/test/store_lib.h"

#define JOBS 1000

/* --- what the linker calls in place of those without a prefix ----------------------------- */

int __real_store_repair_jobs(struct store *store);
int __wrap_store_repair_jobs(struct store *store);
int __real_store_get_body(struct store *store, uint64_t id, const void **body, size_t *len);
int __wrap_store_get_body(struct store *store, uint64_t id, const void **body, size_t *len);
int __real_store_get(struct store *store, uint64_t id, struct job_record *record);
int __wrap_store_get(struct store *store, uint64_t id, struct job_record *record);
int __real_store_get_schedule(struct store *store, uint64_t id, struct schedule_record *record);
int __wrap_store_get_schedule(struct store *store, uint64_t id, struct schedule_record *record);
int __real_store_get_key(struct store *store, uint32_t tube, const char *key, size_t len,
			 uint64_t *id);
int __wrap_store_get_key(struct store *store, uint32_t tube, const char *key, size_t len,
			 uint64_t *id);
int __real_store_find_schedule(struct store *store, uint32_t tube, const char *name, uint64_t *id);
int __wrap_store_find_schedule(struct store *store, uint32_t tube, const char *name, uint64_t *id);
int __real_store_get_tube(struct store *store, uint32_t tube, struct tube_record *record);
int __wrap_store_get_tube(struct store *store, uint32_t tube, struct tube_record *record);
int __real_store_number(struct store *store, const char *name, uint64_t *number);
int __wrap_store_number(struct store *store, const char *name, uint64_t *number);
uint64_t __real_store_commit(struct store *store);
uint64_t __wrap_store_commit(struct store *store);
int __real_fstatvfs(int fd, struct statvfs *fs);
int __wrap_fstatvfs(int fd, struct statvfs *fs);
rocksdb_t *__real_rocksdb_open(const rocksdb_options_t *options, const char *name, char **error);
rocksdb_t *__wrap_rocksdb_open(const rocksdb_options_t *options, const char *name, char **error);
rocksdb_t *__real_rocksdb_open_for_read_only(const rocksdb_options_t *options, const char *name,
					     unsigned char fails_with_log, char **error);
rocksdb_t *__wrap_rocksdb_open_for_read_only(const rocksdb_options_t *options, const char *name,
					     unsigned char fails_with_log, char **error);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
void __real_rocksdb_repair_db(const rocksdb_options_t *options, const char *name, char **error);
void __wrap_rocksdb_repair_db(const rocksdb_options_t *options, const char *name, char **error);

static bool ends_after_copy, fills_after_copy, is_full, ends_after_commit, lacks_space;
/* Of this job. */
static uint64_t body_without_memory;

/* What a repair cannot read now: a kind, or the name of a number. */
static const char *unreadable = "";
static bool repairing;

int __wrap_store_repair_jobs(struct store *store)
{
	int ret;

	if (ends_after_copy)
		_exit(1);
	is_full = fills_after_copy;
	repairing = true;
	ret = __real_store_repair_jobs(store);
	repairing = false;
	return ret;
}

static bool is_readable(const char *name)
{
	return !repairing || strcmp(name, unreadable);
}

int __wrap_store_get(struct store *store, uint64_t id, struct job_record *record)
{
	return is_readable("a job") ? __real_store_get(store, id, record) : -EIO;
}

int __wrap_store_get_schedule(struct store *store, uint64_t id, struct schedule_record *record)
{
	return is_readable("a schedule") ? __real_store_get_schedule(store, id, record) : -EIO;
}

int __wrap_store_get_key(struct store *store, uint32_t tube, const char *key, size_t len,
			 uint64_t *id)
{
	return is_readable("a key") ? __real_store_get_key(store, tube, key, len, id) : -EIO;
}

int __wrap_store_find_schedule(struct store *store, uint32_t tube, const char *name, uint64_t *id)
{
	return is_readable("a name") ? __real_store_find_schedule(store, tube, name, id) : -EIO;
}

int __wrap_store_get_tube(struct store *store, uint32_t tube, struct tube_record *record)
{
	return is_readable("a tube") ? __real_store_get_tube(store, tube, record) : -EIO;
}

/* The read of the next id, counted from 1, that lacks files; 0: none. */
static unsigned int next_id_lacks_files_at;

int __wrap_store_number(struct store *store, const char *name, uint64_t *number)
{
	if (!strcmp(name, NUMBER_NEXT_ID) && next_id_lacks_files_at && !--next_id_lacks_files_at)
		return -EIO;
	return is_readable(name) ? __real_store_number(store, name, number) : -EIO;
}

uint64_t __wrap_store_commit(struct store *store)
{
	uint64_t commit = __real_store_commit(store);

	if (!ends_after_commit)
		return commit;
	ends_after_commit = false;
	store_flush(store);
	_exit(1);
}

int __wrap_fstatvfs(int fd, struct statvfs *fs)
{
	int ret = __real_fstatvfs(fd, fs);

	if (is_full)
		fs->f_bavail = 0;
	return ret;
}

int __wrap_store_get_body(struct store *store, uint64_t id, const void **body, size_t *len)
{
	return id == body_without_memory ? -EIO : __real_store_get_body(store, id, body, len);
}

rocksdb_t *__wrap_rocksdb_open(const rocksdb_options_t *options, const char *name, char **error)
{
	if (!lacks_space)
		return __real_rocksdb_open(options, name, error);
	*error = strdup("IO error: No space left on device: While appending to file: 000009.log");
	return NULL;
}

/* The open of a store for reading, counted from 1, that lacks files; 0: none. */
static unsigned int lacks_files_at;
static bool lacks_processes, child_is_killed, child_lacks_threads;
/* std::terminate(), as after an exception that nobody catches. */
void _ZSt9terminatev(void);

rocksdb_t *__wrap_rocksdb_open_for_read_only(const rocksdb_options_t *options, const char *name,
					     unsigned char fails_with_log, char **error)
{
	if (child_is_killed)
		raise(SIGKILL);
	if (child_lacks_threads)
		_ZSt9terminatev();
	if (!lacks_files_at || --lacks_files_at)
		return __real_rocksdb_open_for_read_only(options, name, fails_with_log, error);
	*error = strdup("IO error: While open a file: 000012.sst: Too many open files in system");
	return NULL;
}

pid_t __wrap_fork(void)
{
	if (!lacks_processes)
		return __real_fork();
	errno = EAGAIN;
	return -1;
}

/* RocksDB cannot make a list of all files, as after some compactions. */
static bool whole_fails;

void __wrap_rocksdb_repair_db(const rocksdb_options_t *options, const char *name, char **error)
{
	if (whole_fails && strstr(name, "/whole"))
		*error = strdup("Corruption: the tables overlap");
	else
		__real_rocksdb_repair_db(options, name, error);
}

/* --- a store, and its damage -------------------------------------------------------------- */

/* Each run of it writes tables of what was in the log before. */
static void put_jobs(void)
{
	struct store *store = open_store();
	uint64_t first = store_next_id(store), id;

	for (id = first; id < first + JOBS / 2; id++) {
		struct job_record job = make_job(id, JOB_DELAYED, 1, 1, id);

		put_job(store, &job);
	}
	store_flush(store);
	store_close(store);
}

/* What is lost is an entry of an index: the jobs can be read, and are copied. */
static void lose_entry(void)
{
	struct store *store = open_store();
	uint8_t key[STORE_KEY_MAX];
	struct job_record job;

	ASSERT_EQ(store_get(store, JOBS / 2, &job), 0);
	lose(store, key, store_key_place(key, &job.place));
	store_close(store);
}

/* In the folder of the store. */
static void shell(const char *commands)
{
	char command[400];

	snprintf(command, sizeof(command), "cd %s && %s", test_dir(), commands);
	ASSERT_EQ(system(command), 0);
}

static void lose_list(void)
{
	shell("for f in db/MANIFEST*; do echo lost >$f; done");
}

static void lose_logs(void)
{
	shell("rm db/*.log");
}

#define MIDDLE (-1)

/* A block at this place, or in the middle, of each table with at least so many bytes. */
static void damage_tables(off_t least, off_t at)
{
	DIR *list = list_files();
	const struct dirent *file;
	struct stat found;
	char path[400];
	int fd;

	while ((file = readdir(list))) {
		path_of(path, sizeof(path), file);
		if (!strstr(path, ".sst") || stat(path, &found) || found.st_size < least)
			continue;
		fd = open(path, O_WRONLY | O_CLOEXEC);
		ASSERT_EQ(pwrite(fd, "xxxxxxxx", 8, at == MIDDLE ? found.st_size / 2 : at), 8);
		close(fd);
	}
	closedir(list);
}

static void make_damaged(void (*damage)(void))
{
	/* It is that of the process that asks first. */
	test_dir();
	ASSERT_EQ(in_child(put_jobs), 0);
	ASSERT_EQ(in_child(put_jobs), 0);
	ASSERT_EQ(in_child(damage), 0);
}

/* --- repairs ------------------------------------------------------------------------------ */

static struct store_config config_of_repair(void)
{
	struct store_config config = test_config(test_dir());

	config.repair = true;
	return config;
}

/* Returns an errno; or else how many of the jobs there are. */
static int repair(void)
{
	struct store_config config = config_of_repair();
	struct store *store;
	struct job_record job;
	int ret, nr = 0;
	uint64_t id;

	ret = store_open(&store, &config);
	test_about("%s", log_text);
	if (ret)
		return ret;
	for (id = 1; id <= JOBS; id++)
		nr += !store_get(store, id, &job);
	store_close(store);
	ASSERT_EQ(store_check(&config, stdout), 0);
	return nr;
}

static void repair_until_copied(void)
{
	struct store_config config = config_of_repair();
	struct store *store;

	ends_after_copy = true;
	store_open(&store, &config);
}

static unsigned int count_copies(void)
{
	unsigned int nr = 0;
	const struct dirent *file;
	DIR *list = opendir(test_dir());

	ASSERT(list);
	while ((file = readdir(list)))
		nr += !strncmp(file->d_name, "damaged-", 8);
	closedir(list);
	return nr;
}

static void see_pieces_gone(void)
{
	struct stat found;
	char path[300];

	snprintf(path, sizeof(path), "%s/db.pieces", test_dir());
	ASSERT_EQ(stat(path, &found), -1);
}

/* --- with a copy -------------------------------------------------------------------------- */

/* Else whoever starts the daemon again and again fills the disk. */
TEST(a_repair_that_ends_after_its_copy_makes_no_other_one)
{
	struct store_config config = test_config(test_dir());
	struct store *store;
	int i;

	make_damaged(lose_entry);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(in_child(repair_until_copied), 1 << 8);
		ASSERT_EQ(count_copies(), 1);
	}
	ASSERT_EQ(store_open(&store, &config), -EBADMSG);
	shell("mkdir -p db.pieces/whole && echo x >db.pieces/whole/000009.sst");
	ASSERT_EQ(repair(), JOBS);
	ASSERT_EQ(count_copies(), 1);
	see_pieces_gone();
}

TEST(a_copy_for_which_there_is_no_space_now_is_used_later)
{
	make_damaged(lose_entry);
	ASSERT_EQ(in_child(repair_until_copied), 1 << 8);
	lacks_space = true;
	ASSERT_EQ(repair(), -ENOSPC);
	lacks_space = false;
	ASSERT_EQ(repair(), JOBS);
	ASSERT_EQ(count_copies(), 1);
}

TEST(a_copy_that_is_damaged_is_copied_once_more)
{
	int nr;

	make_damaged(lose_entry);
	ASSERT_EQ(in_child(repair_until_copied), 1 << 8);
	damage_tables(0, 300);
	/* What has read the block in vain marks the damage. */
	ASSERT_EQ(repair(), -EBADMSG);
	nr = repair();
	ASSERT_GT(nr, JOBS / 10 * 9);
	ASSERT_LT(nr, JOBS);
	ASSERT_EQ(count_copies(), 2);
}

TEST(a_copy_that_has_lost_the_name_of_its_list_is_copied_once_more)
{
	make_damaged(lose_entry);
	ASSERT_EQ(in_child(repair_until_copied), 1 << 8);
	shell("rm db/CURRENT");
	ASSERT_EQ(repair(), JOBS);
	ASSERT_EQ(count_copies(), 2);
}

/* --- tubes -------------------------------------------------------------------------------- */

#define TUBES 3000

/* Names that do not become shorter in a table. */
static void put_tubes(void)
{
	struct store *store = open_store();
	char name[TUBE_NAME_MAX + 1] = "";
	uint32_t tube;
	size_t i;

	for (tube = 1; tube <= TUBES; tube++) {
		for (i = 0; i < TUBE_NAME_MAX - 8; i++)
			name[i] = (char)('a' + rand() % 26);
		snprintf(name + i, sizeof(name) - i, "%u", tube);
		put_tube(store, tube, name);
	}
	store_flush(store);
	store_close(store);
}

TEST(tubes_before_and_after_a_damaged_block_keep_their_names)
{
	struct store_config config = config_of_repair();
	struct tube_record tube;
	struct store *store;
	uint32_t number, first, last, kept = 0;
	const char *line;

	ASSERT_EQ(in_child(put_tubes), 0);
	/* Opening it writes the tables. */
	ASSERT_EQ(in_child(put_jobs), 0);
	damage_tables(TUBES, MIDDLE);
	ASSERT_EQ(store_open(&store, &config), 0);
	test_about("%s", log_text);
	for (number = 1; number <= TUBES; number++)
		kept += !store_get_tube(store, number, &tube);
	ASSERT_GT(kept, TUBES / 10 * 9);
	line = strstr(log_text, "entries of kind 't' from ");
	ASSERT(line);
	first = (uint32_t)strtoul(strstr(line, "from ") + 5, NULL, 10);
	last = (uint32_t)strtoul(strstr(line, "to ") + 3, NULL, 10);
	ASSERT_LE(first, last);
	ASSERT_EQ(kept, TUBES - (last + 1 - first));
	ASSERT(!strstr(log_text, "numbers are lost"));
	store_close(store);
}

/* --- files one by one ---------------------------------------------------------------------- */

/* Each run of it changes all jobs, and writes tables of the changes before. */
static void release_jobs(void)
{
	struct store *store = open_store();
	struct job_record job;
	uint64_t id;

	for (id = 1; id <= JOBS / 2; id++) {
		struct job_place old;

		ASSERT_EQ(store_get(store, id, &job), 0);
		old = job.place;
		job.releases++;
		store_move(store, &old, &job);
	}
	store_flush(store);
	store_close(store);
}

TEST(of_each_job_the_last_state_is_kept_when_files_are_read_one_by_one)
{
	struct store_config config = config_of_repair();
	struct store *store;
	struct job_record job;
	uint64_t id;
	int i;

	ASSERT_EQ(in_child(put_jobs), 0);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(in_child(release_jobs), 0);
	lose_list();
	/* The numbers of files do not tell which is the last. */
	shell("mv db/*.log db/000001.log");
	whole_fails = true;
	ASSERT_EQ(store_open(&store, &config), 0);
	ASSERT(strstr(log_text, "one by one"));
	for (id = 1; id <= JOBS / 2; id++) {
		test_about("job %d", (int)id);
		ASSERT_EQ(store_get(store, id, &job), 0);
		ASSERT_EQ(job.releases, 4);
	}
	store_close(store);
}

/* --- what cannot be read now -------------------------------------------------------------- */

/* What root may do beyond the owner of a file. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
}

static void repair_in_vain(void)
{
	drop_capabilities();
	ASSERT_LT(repair(), 0);
}

static void see_kept_after(const char *forbid, const char *allow)
{
	make_damaged(lose_list);
	shell(forbid);
	ASSERT_EQ(in_child(repair_in_vain), 0);
	ASSERT_EQ(count_copies(), 0);
	shell(allow);
	ASSERT_EQ(repair(), JOBS);
}

TEST(logs_that_may_not_be_read_are_not_left_out)
{
	see_kept_after("chmod 000 db/*.log", "chmod 600 db/*.log");
}

TEST(tables_that_may_not_be_read_are_not_left_out)
{
	see_kept_after("chmod 000 db/*.sst", "chmod 600 db/*.sst");
}

/* As after root has run a command on the store. */
TEST(tables_of_another_user_are_not_left_out)
{
	FILE *file = fopen("/proc/sys/fs/protected_hardlinks", "r");

	if (geteuid())
		test_skip("only root can have files of another user");
	if (!file || fgetc(file) != '1')
		test_skip("this kernel lets any user link them");
	fclose(file);
	see_kept_after("chown 1 db/*.sst && chmod 644 db/*.sst", "chown 0 db/*.sst");
}

static void open_in_vain(void)
{
	struct store_config config = test_config(test_dir());
	struct store *store;

	drop_capabilities();
	ASSERT_EQ(store_open(&store, &config), -EACCES);
	ASSERT_EQ(store_check(&config, stdout), -EACCES);
	config.repair = true;
	ASSERT_EQ(store_open(&store, &config), -EACCES);
}

/* Else a whole store is taken for one whose repair did not come to its end. */
TEST(a_mark_that_may_not_be_read_is_no_damage)
{
	struct store_config config = test_config(test_dir());
	struct store *store;

	ASSERT_EQ(in_child(put_jobs), 0);
	shell("echo found >damaged && chmod 000 damaged");
	ASSERT_EQ(in_child(open_in_vain), 0);
	ASSERT_EQ(count_copies(), 0);
	shell("rm -f damaged");
	ASSERT_EQ(store_open(&store, &config), 0);
	store_close(store);
}

TEST(a_body_that_cannot_be_read_now_is_not_lost)
{
	make_damaged(lose_entry);
	body_without_memory = JOBS / 2;
	ASSERT_EQ(repair(), -EIO);
	body_without_memory = 0;
	ASSERT_EQ(repair(), JOBS);
}

static void nothing(void)
{
}

/* In pieces, RocksDB leaves out a whole table for a damaged block. */
TEST(a_store_that_cannot_be_opened_as_a_whole_now_is_not_read_in_pieces)
{
	int nr;

	make_damaged(nothing);
	ASSERT_EQ(in_child(put_jobs), 0);
	damage_tables(20000, MIDDLE);
	lacks_files_at = 1;
	ASSERT_EQ(repair(), -EIO);
	/* In this process, the first one looks for damage. */
	lacks_files_at = 2;
	ASSERT_EQ(repair(), -EIO);
	lacks_files_at = 0;
	lacks_processes = true;
	ASSERT_EQ(repair(), -EAGAIN);
	lacks_processes = false;
	child_is_killed = true;
	ASSERT_EQ(repair(), -EIO);
	child_is_killed = false;
	child_lacks_threads = true;
	ASSERT_EQ(repair(), -ENOMEM);
	child_lacks_threads = false;
	/* The first one is that of the copy. */
	next_id_lacks_files_at = 1;
	ASSERT_EQ(repair(), -EIO);
	ASSERT_EQ(count_copies(), 0);
	nr = repair();
	ASSERT_GT(nr, JOBS / 10 * 8);
	ASSERT_LT(nr, JOBS);
}

static void put_first_job(void)
{
	struct store *store = open_store();
	struct job_record job = make_job(1, JOB_DELAYED, 1, 1, 1);

	put_tube(store, 1, "one");
	put_job(store, &job);
	store_flush(store);
	store_close(store);
}

/* The older table is damaged, and the newer one has all numbers that there are now. */
static void put_numbers_beside_damage(void)
{
	struct store *store = open_store();

	damage_tables(0, 100);
	store_put_number(store, NUMBER_SKEW, 12345);
	store_put_number(store, NUMBER_VERSION, STORE_VERSION);
	store_flush(store);
	store_close(store);
}

TEST(numbers_behind_a_damaged_block_are_kept)
{
	struct store_config config = config_of_repair();
	struct store *store;
	uint64_t skew;

	test_dir();
	ASSERT_EQ(in_child(put_first_job), 0);
	ASSERT_EQ(in_child(put_numbers_beside_damage), 0);
	ASSERT_EQ(store_open(&store, &config), 0);
	test_about("%s", log_text);
	ASSERT_EQ(store_get_number(store, NUMBER_SKEW, 0, &skew), 0);
	ASSERT_EQ(skew, 12345);
	ASSERT(!strstr(log_text, "the number 'skew' is lost"));
	store_close(store);
}

/* A job with a key, in a tube with a name, and a schedule. */
static void put_names(void)
{
	struct store *store = open_store();
	uint64_t id = store_next_id(store);
	struct job_record job = make_job(id, JOB_READY, 7, 1, id);
	struct schedule_record schedule = {
		.id = id + 1, .tube = 7, .body_len = 1, .interval_ns = NSEC_PER_SEC,
		.next_ns = NSEC_PER_SEC, .at_ns = NSEC_PER_SEC, .name_len = 3, .name = "day",
	};

	ASSERT_EQ(id, JOBS + 1);
	put_tube(store, 7, "seven");
	job.key_len = 3;
	memcpy(job.key, "key", 3);
	job.place.keyed = 1;
	put_job(store, &job);
	store_put_schedule(store, &schedule, "x");
	store_flush(store);
	store_close(store);
}

static void put_names_and_lose_entry(void)
{
	put_names();
	lose_entry();
}

static void see_names(void)
{
	struct store *store = open_store();
	struct tube_record tube;
	uint64_t id;

	ASSERT_EQ(store_get_key(store, 7, "key", 3, &id), 0);
	ASSERT_EQ(id, JOBS + 1);
	ASSERT_EQ(store_find_schedule(store, 7, "day", &id), 0);
	ASSERT_EQ(id, JOBS + 2);
	ASSERT_EQ(store_get_tube(store, 7, &tube), 0);
	ASSERT(!strcmp(tube.name, "seven"));
	ASSERT_GT(store_next_id(store), JOBS + 2);
	store_close(store);
}

TEST(what_a_repair_cannot_read_now_is_not_missing)
{
	static const char *const names[] = {
		"a job", "a key", "a schedule", "a name", "a tube", NUMBER_NEXT_ID, NUMBER_CHANGES,
		NUMBER_FOUND, NUMBER_SYNCED,
	};
	size_t i;
	int ret;

	make_damaged(put_names_and_lose_entry);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		unreadable = names[i];
		ret = repair();
		test_about("%s: %s", names[i], log_text);
		ASSERT_EQ(ret, -EIO);
	}
	unreadable = "";
	ASSERT_EQ(repair(), JOBS);
	ASSERT_EQ(in_child(see_names), 0);
}

/* --- what it says ------------------------------------------------------------------------- */

/* What a process has seen that the next one should see, too. */
struct seen {
	int kept;
	char lost[100];
};

static struct seen *seen;

static void repair_and_note(void)
{
	const char *line;

	seen->kept = repair();
	line = strstr(log_text, "the changes after number");
	test_about("%s", log_text);
	ASSERT(line);
	snprintf(seen->lost, sizeof(seen->lost), "%.*s", (int)strcspn(line, "\n"), line);
}

static void repair_until_committed(void)
{
	struct store_config config = config_of_repair();
	struct store *store;

	ends_after_commit = true;
	store_open(&store, &config);
}

TEST(the_changes_that_are_lost_are_said_also_after_a_repair_that_was_stopped)
{
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT(seen != MAP_FAILED);
	make_damaged(lose_logs);
	shell("mkdir keep && cp -r db synced twheelq keep");
	ASSERT_EQ(in_child(repair_and_note), 0);
	ASSERT_LT(seen->kept, JOBS);
	shell("rm -r db && cp -r keep/* . && rm -r keep");
	ASSERT_EQ(in_child(repair_until_committed), 1 << 8);
	ASSERT_EQ(repair(), seen->kept);
	ASSERT(strstr(log_text, seen->lost));
}

static void repair_and_fill(void)
{
	fills_after_copy = true;
	repair();
}

TEST(a_repair_for_which_there_is_no_space_even_without_the_reserve_ends)
{
	make_damaged(lose_entry);
	ASSERT_EQ(in_child(repair_and_fill), STORE_EXIT_IO << 8);
	ASSERT_EQ(repair(), JOBS);
	ASSERT_EQ(count_copies(), 1);
}
