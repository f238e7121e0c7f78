// SPDX-License-Identifier: GPL-2.0
/*
 * Damage of a store. Change any byte, or cut a file anywhere: either the store is refused, or
 * its contents are exactly those after some commit. If that is not the last commit, the loss
 * is logged. A refused store can be repaired.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/store/read.h"
#include "queue/store/sync.h"
#include "queue/test/store_lib.h"

#define TUBE		3
#define OTHER_TUBE	4
#define STEPS		12
#define FILES_MOST	64
#define WITNESS_LEN	16

/* --- contents ----------------------------------------------------------------------------- */

static uint64_t print_of(uint64_t print, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len--)
		print = (print ^ *at++) * 1099511628211ull;
	return print;
}

struct reading {
	struct store *store;
	uint64_t print;
	bool damaged;
};

static bool read_job(void *context, const struct job_place *place)
{
	struct reading *reading = context;
	struct job_record job;
	const void *body;
	size_t len;

	reading->damaged |= store_get(reading->store, place->id, &job) != 0 ||
		memcmp(&job.place, place, sizeof(*place)) ||
		store_get_body(reading->store, place->id, &body, &len) != 0;
	if (reading->damaged)
		return false;
	reading->print = print_of(reading->print, &job, sizeof(job));
	reading->print = print_of(reading->print, body, len);
	return true;
}

static void read_index(struct reading *reading, enum job_state state, uint32_t tube)
{
	struct job_place from = { .state = (uint8_t)state, .tube = tube };

	reading->damaged |= store_walk(reading->store, &from, read_job, reading) != 0;
}

static bool read_mark(void *context, uint64_t id)
{
	struct reading *reading = context;

	reading->print = print_of(reading->print, &id, sizeof(id));
	return true;
}

static bool read_tube(void *context, const struct tube_record *tube)
{
	struct reading *reading = context;

	reading->print = print_of(reading->print, tube, sizeof(*tube));
	return true;
}

/* Returns a hash of the contents of the store; 0: a part of it is damaged. */
static uint64_t read_all(struct store *store)
{
	struct reading reading = { .store = store, .print = 14695981039346656037ull };
	uint64_t next_id = store_next_id(store), number = 0;

	reading.damaged = store_get_number(store, "step", 0, &number) != 0;
	read_index(&reading, JOB_READY, TUBE);
	read_index(&reading, JOB_READY, OTHER_TUBE);
	read_index(&reading, JOB_BURIED, TUBE);
	read_index(&reading, JOB_BURIED, OTHER_TUBE);
	read_index(&reading, JOB_DELAYED, 0);
	read_index(&reading, JOB_WALL, 0);
	reading.damaged |= store_each_mark(store, 0, read_mark, &reading) != 0 ||
		store_each_tube(store, read_tube, &reading) != 0;
	reading.print = print_of(reading.print, &number, sizeof(number));
	reading.print = print_of(reading.print, &next_id, sizeof(next_id));
	return reading.damaged ? 0 : reading.print;
}

/* --- a small store ------------------------------------------------------------------------ */

/*
 * Shared by the processes of a test: the contents after each commit, and the results of the
 * copies. Each copy is opened by a process of its own, because damage may trigger one of
 * RocksDB's assertions, which ends the process: no wrong data is served then either.
 */
static struct shared {
	uint64_t prints[STEPS + 1];
	unsigned int refused;
	unsigned int older;
	unsigned int unharmed;
	unsigned int copies;
} *shared;

/* Like a command: all reads come before the changes. */
static void step(struct store *store, unsigned int n)
{
	struct job_record job = make_job(n, n % 4, n % 3 ? TUBE : OTHER_TUBE, n,
					 n % 4 ? n * 100 : 0);
	struct job_record old;
	bool has_old = n > 4 && !store_get(store, n - 4, &old);

	put_job(store, &job);
	store_put_number(store, "step", n);
	if (n == 1) {
		put_tube(store, TUBE, "three");
		put_tube(store, OTHER_TUBE, "four");
	}
	if (n % 4 == 0)
		store_mark(store, n);
	if (has_old && n % 2)
		store_delete(store, &old.place, NULL, 0);
	store_flush(store);
}

static char whole[80], copy[80];

static struct store_config small_config(const char *dir)
{
	struct store_config config = test_config(dir);

	config.create = false;
	config.reserve = 64 << 10;
	return config;
}

static void make_steps(unsigned int from, unsigned int to)
{
	struct store_config config = small_config(whole);
	struct store *store;

	config.create = true;
	ASSERT_EQ(store_open(&store, &config), 0);
	for (; from <= to; from++) {
		step(store, from);
		shared->prints[from] = read_all(store);
		ASSERT_NE(shared->prints[from], 0);
	}
	store_close(store);
}

static void make_first_steps(void)
{
	make_steps(1, STEPS / 2);
}

static void make_last_steps(void)
{
	make_steps(STEPS / 2 + 1, STEPS);
}

static void make_directory(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT(shared != MAP_FAILED);
	mkdir(test_dir(), 0700);
	snprintf(whole, sizeof(whole), "%s/whole", test_dir());
	snprintf(copy, sizeof(copy), "%s/copy", test_dir());
}

/* Damage only the log; the witness is as old as after a crash of the machine. */
static bool log_only;
static uint8_t old_witness[2 * WITNESS_LEN];

static void keep_witness(void)
{
	char path[100];
	FILE *file;

	snprintf(path, sizeof(path), "%s/synced", whole);
	file = fopen(path, "r");
	ASSERT(file && fread(old_witness, 1, sizeof(old_witness), file) == WITNESS_LEN);
	fclose(file);
}

/* The store has a table, written by the second open, and a log. */
static void make_store(void)
{
	make_directory();
	ASSERT_EQ(in_child(make_first_steps), 0);
	keep_witness();
	ASSERT_EQ(in_child(make_last_steps), 0);
}

struct file {
	char name[300];
	uint8_t *bytes;
	size_t len;
};


static struct file files[FILES_MOST];
static size_t nr_files;

static void read_file(const char *folder, const char *name)
{
	struct file *file = &files[nr_files];
	char path[400];
	struct stat stat;
	int fd;

	snprintf(path, sizeof(path), "%s/%s%s", whole, folder, name);
	fd = open(path, O_RDONLY);
	ASSERT(fd >= 0 && !fstat(fd, &stat));
	if (S_ISREG(stat.st_mode)) {
		ASSERT_LT(nr_files, FILES_MOST);
		snprintf(file->name, sizeof(file->name), "%s%s", folder, name);
		file->len = (size_t)stat.st_size;
		file->bytes = malloc(file->len + 1);
		ASSERT_EQ(read(fd, file->bytes, file->len), file->len);
		if (log_only && !strcmp(name, "synced"))
			memcpy(file->bytes, old_witness, WITNESS_LEN);
		nr_files++;
	}
	close(fd);
}

/* All files except the ballast and RocksDB's messages. */
static void read_files(const char *folder)
{
	char path[100];
	struct dirent *entry;
	DIR *list;

	snprintf(path, sizeof(path), "%s/%s", whole, folder);
	list = opendir(path);
	ASSERT(list);
	while ((entry = readdir(list)))
		if (*entry->d_name != '.' && strcmp(entry->d_name, "reserve") &&
		    strncmp(entry->d_name, "LOG", 3))
			read_file(folder, entry->d_name);
	closedir(list);
}

static void write_copy(void)
{
	char path[400];
	size_t i;
	int fd;

	remove_tree(copy);
	mkdir(copy, 0700);
	snprintf(path, sizeof(path), "%s/db", copy);
	mkdir(path, 0700);
	for (i = 0; i < nr_files; i++) {
		snprintf(path, sizeof(path), "%s/%s", copy, files[i].name);
		fd = open(path, O_WRONLY | O_CREAT, 0600);
		ASSERT(fd >= 0);
		ASSERT_EQ(write(fd, files[i].bytes, files[i].len), files[i].len);
		close(fd);
	}
}

/* --- results of damage -------------------------------------------------------------------- */

/* RocksDB says nothing of a record that seems to be of a log that was used before. */
static bool seems_recycled;

/* A record's first 7 bytes are its checksum, its length and its type. */
static bool is_type_of_record(const struct file *file, size_t at)
{
	size_t start = 0;

	while (start + 6 < at)
		start += 7 + file->bytes[start + 4] + 256 * file->bytes[start + 5];
	return start + 6 == at;
}

static void see_content(uint64_t print)
{
	unsigned int n;

	ASSERT_NE(print, 0);
	for (n = 0; n < STEPS && shared->prints[n] != print; n++)
		;
	ASSERT_EQ(shared->prints[n], print);
	if (n < STEPS && !seems_recycled)
		ASSERT_NE(*log_text, 0);
	/* Damage behind the witness looks like a torn end. */
	if (log_only)
		ASSERT_GE(n, STEPS / 2);
	if (n < STEPS)
		shared->older++;
	else
		shared->unharmed++;
}

/* After a repair, all jobs are ones that were put, and the store is consistent. */
static void see_repaired(void)
{
	struct store_config config = small_config(copy);
	struct store *store;
	unsigned int n;
	int ret;

	config.repair = true;
	*log_text = 0;
	ret = store_open(&store, &config);
	if (ret) {
		/* Only an invalid marker cannot be repaired. */
		ASSERT_EQ(ret, -EPROTO);
		return;
	}
	for (n = 1; n <= STEPS; n++) {
		struct job_record job;

		ret = store_get(store, n, &job);
		if (!ret)
			see_body(store, &job);
		else
			ASSERT_EQ(ret, -ENOENT);
	}
	ASSERT_GE(store_next_id(store), 1ull << 40);
	ASSERT(!strstr(log_text, " 0 jobs are lost"));
	ASSERT_NE(read_all(store), 0);
	store_close(store);
	config.repair = false;
	ret = store_check(&config, stdout);
	if (ret)
		test_about("%s", log_text);
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(store_open(&store, &config), 0);
	store_close(store);
}

static void see_copy(void)
{
	struct store_config config = small_config(copy);
	struct store *store;
	uint64_t print;
	int ret;

	*log_text = 0;
	ret = store_open(&store, &config);
	if (ret) {
		ASSERT(ret == -EBADMSG || ret == -EPROTO);
		ASSERT_NE(*log_text, 0);
		shared->refused++;
		if (shared->copies++ % 7 == 0)
			see_repaired();
		return;
	}
	print = read_all(store);
	store_close(store);
	see_content(print);
}

static void see_all(void (*harm)(struct file *file, size_t at, uint8_t *saved),
		    void (*heal)(struct file *file, size_t at, uint8_t *saved))
{
	size_t every = 10 / test_count(10), i, at, n = 0;
	unsigned int asserted = 0;
	uint8_t saved[1];
	int status;

	make_store();
	read_files("");
	read_files("db/");
	for (i = 0; i < nr_files; i++) {
		if (log_only && !strstr(files[i].name, ".log"))
			continue;
		for (at = 0; at < files[i].len; at++) {
			/* RocksDB's options are only for people: test few of their bytes. */
			if (n++ % (strstr(files[i].name, "OPTIONS") ? 97 : every))
				continue;
			test_about("%s, byte %zu of %zu", files[i].name, at, files[i].len);
			seems_recycled = log_only && is_type_of_record(&files[i], at);
			harm(&files[i], at, saved);
			seems_recycled &= files[i].bytes[at] >= 5 && files[i].bytes[at] <= 8;
			write_copy();
			status = in_child(see_copy);
			asserted += status != 0;
			ASSERT(!status || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
			heal(&files[i], at, saved);
		}
	}
	printf("# %zu files: %u refused, %u by an assertion, %u went on with less, %u unharmed\n",
	       nr_files, shared->refused, asserted, shared->older, shared->unharmed);
	/* Assertions must be rare. */
	ASSERT_LT(asserted * 20, n / every + 20);
	fflush(stdout);
}

static void flip(struct file *file, size_t at, uint8_t *saved)
{
	*saved = file->bytes[at];
	file->bytes[at] ^= (uint8_t)(1 + at % 255);
}

static void restore(struct file *file, size_t at, uint8_t *saved)
{
	file->bytes[at] = *saved;
}

TEST(a_changed_byte_is_never_served)
{
	see_all(flip, restore);
}

TEST(a_changed_byte_of_the_log_takes_only_what_is_behind_the_witness)
{
	log_only = true;
	see_all(flip, restore);
	ASSERT_EQ(shared->refused, 0);
}

/* RocksDB's type of a record that is in a log that was used before. */
static void recycle_record(struct file *file)
{
	file->bytes[6] ^= 4;
}

static void see_copy_in_time(void)
{
	alarm(60);
	see_copy();
	ASSERT_EQ(shared->refused, 1);
}

TEST(a_repair_ends_although_a_record_seems_to_be_of_a_recycled_log)
{
	size_t i;

	make_store();
	read_files("");
	read_files("db/");
	for (i = 0; i < nr_files; i++)
		if (strstr(files[i].name, ".log"))
			recycle_record(&files[i]);
	write_copy();
	ASSERT_EQ(in_child(see_copy_in_time), 0);
}

static size_t whole_len;

static void shorten(struct file *file, size_t at, uint8_t *saved)
{
	(void)saved;
	whole_len = file->len;
	file->len = at;
}

static void lengthen(struct file *file, size_t at, uint8_t *saved)
{
	(void)at;
	(void)saved;
	file->len = whole_len;
}

TEST(a_file_that_ends_too_early_is_never_served)
{
	see_all(shorten, lengthen);
}

/* --- several logs ------------------------------------------------------------------------- */

#define LOGS_LEAST	3
#define LOG_JOBS	1000

/* No table is written, so that RocksDB keeps its logs. */
static bool tables_wait;

static bool is_table(int fd)
{
	char link[40], path[400];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	return strstr(path, ".sst");
}

/* Replaces the C library's for RocksDB. */
ssize_t write(int fd, const void *bytes, size_t len)
{
	while (tables_wait && is_table(fd))
		pause();
	return syscall(SYS_write, fd, bytes, len);
}

static unsigned int count_logs(void)
{
	struct dirent *entry;
	unsigned int nr = 0;
	DIR *list;
	char path[100];

	snprintf(path, sizeof(path), "%s/db", whole);
	list = opendir(path);
	ASSERT(list);
	while ((entry = readdir(list)))
		nr += !!strstr(entry->d_name, ".log");
	closedir(list);
	return nr;
}

/* Ends without closing the store, as a kill would. */
static void make_logs(void)
{
	struct store_config config = small_config(whole);
	struct store *store;
	unsigned int n;

	config.create = true;
	ASSERT_EQ(store_open(&store, &config), 0);
	tables_wait = true;
	put_tube(store, TUBE, "three");
	for (n = 1; count_logs() < LOGS_LEAST; n++) {
		struct job_record job = make_job(n, JOB_READY, TUBE, n, 0);

		ASSERT_LT(n, LOG_JOBS);
		put_job(store, &job);
		store_put_number(store, "step", n);
		store_flush(store);
	}
}

static void see_whole_copy(void)
{
	struct store_config config = small_config(copy);
	struct store *store;
	int ret = store_open(&store, &config);

	test_about("%s", log_text);
	ASSERT_EQ(ret, 0);
	store_close(store);
}

static void see_refused_copy(void)
{
	struct store_config config = small_config(copy);
	struct store *store;

	/* Without a scan, which a large store does not get before it is served. */
	ASSERT_EQ(store_open_unscanned(&store, &config), -EBADMSG);
	ASSERT_EQ(store_open(&store, &config), -EBADMSG);
	see_repaired();
}

TEST(a_log_that_is_missing_or_short_is_noticed)
{
	size_t i, len;

	make_directory();
	ASSERT_EQ(in_child(make_logs), 0);
	read_files("");
	read_files("db/");
	write_copy();
	ASSERT_EQ(in_child(see_whole_copy), 0);
	for (i = 0; i < nr_files; i++) {
		char path[400];

		if (!strstr(files[i].name, ".log"))
			continue;
		test_about("%s", files[i].name);
		write_copy();
		snprintf(path, sizeof(path), "%s/%s", copy, files[i].name);
		ASSERT_EQ(unlink(path), 0);
		ASSERT_EQ(in_child(see_refused_copy), 0);
		len = files[i].len;
		files[i].len -= 100;
		write_copy();
		files[i].len = len;
		ASSERT_EQ(in_child(see_refused_copy), 0);
	}
}
