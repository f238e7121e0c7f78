// SPDX-License-Identifier: GPL-2.0
/*
 * Damage while a store is in use: the scrub thread or a read finds it, intact jobs are still
 * served, and the next open finds the mark.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/time.h"
#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/store/read.h"
#include "queue/store/state.h"
#include "queue/store/stats.h"
#include "queue/store/sync.h"
#include "queue/test/store_lib.h"

#define TUBE		3
#define OFTEN_NS	NSEC_PER_MSEC
#define ONCE_NS		(3600 * NSEC_PER_SEC)
#define WAIT_MS		120000
#define JOBS		200
/* Larger than the stores that are scanned when they are opened. */
#define LARGE_JOBS	80
#define LARGE_BODY	(1u << 20)

/* --- stores ------------------------------------------------------------------------------- */

static struct store *open_with(uint64_t scrub_interval_ns)
{
	struct store_config config = test_config(test_dir());
	struct store *store;

	config.scrub_interval_ns = scrub_interval_ns;
	*log_text = 0;
	ASSERT_EQ(store_open(&store, &config), 0);
	return store;
}

/* Put each @step-th job. The second open writes the log to a table. */
static void make_table(uint64_t first, uint64_t step)
{
	struct store *store = open_with(0);
	uint64_t id;

	put_tube(store, TUBE, "three");
	for (id = first; id <= JOBS; id += step) {
		struct job_record job = make_job(id, JOB_READY, TUBE, (uint32_t)id, 0);

		put_job(store, &job);
	}
	store_close(store);
	store_close(open_with(0));
}

static void make_small(void)
{
	make_table(1, 1);
}

/* Put jobs with bodies that cannot be compressed. */
static void make_large(void)
{
	struct store *store = open_with(0);
	uint32_t *body = malloc(LARGE_BODY), seed = 1, id, i;

	put_tube(store, TUBE, "three");
	for (id = 1; id <= LARGE_JOBS; id++) {
		struct job_record job = make_job(id, JOB_READY, TUBE, id, 0);

		for (i = 0; i < LARGE_BODY / sizeof(*body); i++) {
			seed = seed * 1664525 + 1013904223;
			body[i] = seed;
		}
		job.body_len = LARGE_BODY;
		store_put(store, &job, body);
		store_flush(store);
	}
	free(body);
	store_close(store);
	store_close(open_with(0));
}

/* The largest table of the store, and its size. */
static off_t find_table(char *path, size_t size)
{
	DIR *list = list_files();
	struct dirent *entry;
	struct stat stat_of;
	char name[400];
	off_t most = 0;

	while ((entry = readdir(list))) {
		path_of(name, sizeof(name), entry);
		if (!strstr(name, ".sst") || stat(name, &stat_of) || stat_of.st_size <= most)
			continue;
		most = stat_of.st_size;
		snprintf(path, size, "%s", name);
	}
	closedir(list);
	ASSERT_GT(most, 0);
	return most;
}

/* Change a byte of a table; a second call undoes it. */
static void harm_file(const char *path, off_t at)
{
	uint8_t byte;
	int fd;

	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT(fd >= 0);
	ASSERT_EQ(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	ASSERT_EQ(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

/* Damage the middle of the largest table: its first block was read before. */
static void harm(void)
{
	char path[400];
	off_t size = find_table(path, sizeof(path));

	harm_file(path, size / 2);
}

static struct store_stats stats_of(struct store *store)
{
	struct store_stats stats;

	store_stats(store, &stats);
	return stats;
}

static void wait_for_damage(struct store *store)
{
	int ms;

	for (ms = 0; !stats_of(store).damaged; ms += 10) {
		ASSERT_LT(ms, WAIT_MS);
		usleep(10000);
	}
}

static void wait_for_passes(struct store *store, uint64_t passes)
{
	int ms;

	for (ms = 0; stats_of(store).scrubs < passes; ms += 10) {
		ASSERT_LT(ms, WAIT_MS);
		usleep(10000);
	}
}

/* No id above JOBS is given; a repair takes the next one from far above. */
static uint64_t count_jobs(struct store *store)
{
	uint64_t nr = 0, id;

	for (id = 1; id <= JOBS; id++) {
		struct job_record job;
		const void *body;
		size_t len;

		nr += !store_get(store, id, &job) && !store_get_body(store, id, &body, &len) &&
			len == job.body_len;
	}
	return nr;
}

/*
 * Check that a store that was damaged while in use is refused until it is repaired. Returns
 * the number of jobs after the repair.
 */
static uint64_t see_refused(void)
{
	struct store_config config = test_config(test_dir());
	FILE *out = fopen("/dev/null", "w");
	struct store *store;
	uint64_t nr;

	*log_text = 0;
	ASSERT_EQ(store_open(&store, &config), -EBADMSG);
	ASSERT(strstr(log_text, "while the store was in use"));
	ASSERT_GT(store_check(&config, out), 0);
	config.repair = true;
	ASSERT_EQ(store_open(&store, &config), 0);
	store_close(store);
	config.repair = false;
	ASSERT_EQ(store_open(&store, &config), 0);
	nr = count_jobs(store);
	store_close(store);
	ASSERT_EQ(store_check(&config, out), 0);
	fclose(out);
	return nr;
}

/* --- tests -------------------------------------------------------------------------------- */

TEST(damage_that_nobody_asks_for_is_found)
{
	struct job_record job = make_job(JOBS + 1, JOB_READY, TUBE, 1, 0);
	struct store *store;

	make_small();
	store = open_with(OFTEN_NS);
	wait_for_passes(store, 2);
	ASSERT_EQ(stats_of(store).damaged, 0);
	harm();
	wait_for_damage(store);
	ASSERT(strstr(log_text, "damaged: a block"));
	/* The store still takes changes. */
	put_job(store, &job);
	see_body(store, &job);
	store_close(store);
	ASSERT_GT(see_refused(), JOBS / 2);
}

/* Read each job. Returns the number of damaged ones; the store is marked then. */
static unsigned int harm_and_read(void)
{
	struct store *store = open_with(0);
	unsigned int damaged = 0;
	const void *body;
	uint64_t id;
	size_t len;

	harm();
	for (id = 1; id <= JOBS; id++) {
		struct job_record job;

		damaged += store_get(store, id, &job) == -EBADMSG ||
			store_get_body(store, id, &body, &len) == -EBADMSG;
	}
	ASSERT_GT(damaged, 0);
	ASSERT_EQ(stats_of(store).damaged, 1);
	ASSERT_EQ(stats_of(store).scrubs, 0);
	store_close(store);
	return damaged;
}

TEST(damage_that_is_read_is_marked_without_a_scrub)
{
	unsigned int damaged;

	make_small();
	damaged = harm_and_read();
	ASSERT_EQ(see_refused(), JOBS - damaged);
}

/* A walk over both tables ends at the damaged block, and misses jobs of the other table. */
TEST(a_repair_keeps_what_another_table_has_of_the_same_ids)
{
	unsigned int damaged;

	make_table(1, 2);
	make_table(2, 2);
	damaged = harm_and_read();
	ASSERT_EQ(see_refused(), JOBS - damaged);
}

TEST(a_store_too_large_to_be_read_before_is_read_while_it_is_served)
{
	struct store *store;

	make_large();
	harm();
	store = open_with(ONCE_NS);
	wait_for_damage(store);
	store_close(store);
	/* A body has a block of its own. */
	ASSERT_EQ(see_refused(), LARGE_JOBS - 1);
}

TEST(a_store_that_was_read_before_is_not_read_again_at_once)
{
	struct store *store;

	make_small();
	store = open_with(ONCE_NS);
	usleep(300000);
	ASSERT_EQ(stats_of(store).scrubbed_bytes, 0);
	store_close(store);
}

TEST(each_pass_reads_all_once_however_large_an_entry_is)
{
	const uint64_t least = (uint64_t)LARGE_JOBS * LARGE_BODY;
	struct store_stats stats;
	struct store *store;

	make_large();
	store = open_with(ONCE_NS);
	wait_for_passes(store, 1);
	stats = stats_of(store);
	printf("# %llu bytes of bodies, %llu read\n", (unsigned long long)least,
	       (unsigned long long)stats.scrubbed_bytes);
	ASSERT_GE(stats.scrubbed_bytes, least);
	ASSERT_LT(stats.scrubbed_bytes, least + least / 10);
	ASSERT_EQ(stats.damaged, 0);
	store_close(store);
}

TEST(jobs_that_come_and_go_meanwhile_are_no_damage)
{
	struct store *store;
	uint64_t id;

	make_small();
	store = open_with(OFTEN_NS);
	for (id = JOBS + 1; id <= JOBS + 20000 || stats_of(store).scrubs < 20; id++) {
		struct job_record job = make_job(id, JOB_READY, TUBE, (uint32_t)id, 0);

		put_job(store, &job);
		if (id % 4) {
			store_delete(store, &job.place, NULL, 0);
			store_commit(store);
		}
		ASSERT_LT(id, 100000000);
	}
	ASSERT_EQ(stats_of(store).damaged, 0);
	store_close(store);
}

static void lose_the_list(void)
{
	DIR *list = list_files();
	struct dirent *entry;
	char name[400];

	while ((entry = readdir(list))) {
		path_of(name, sizeof(name), entry);
		if (strstr(name, "MANIFEST"))
			ASSERT_EQ(truncate(name, 30), 0);
	}
	closedir(list);
}

/*
 * The repair of RocksDB 7.8 refuses this store, because the changes of its tables overlap in
 * time. The repair of 9.10 accepts it, so the tables need not be read one by one.
 */
TEST(a_repair_goes_on_without_the_list_of_tables)
{
	struct store_config config = test_config(test_dir());
	struct store *store;

	make_large();
	lose_the_list();
	ASSERT_EQ(store_open(&store, &config), -EBADMSG);
	config.repair = true;
	*log_text = 0;
	ASSERT_EQ(store_open(&store, &config), 0);
	test_about("%s", log_text);
	if (!strstr(log_text, "one by one"))
		printf("# repaired by RocksDB\n");
	ASSERT_EQ(count_jobs(store), LARGE_JOBS);
	store_close(store);
	config.repair = false;
	ASSERT_EQ(store_check(&config, stdout), 0);
}

/* --- walks past damage -------------------------------------------------------------------- */

#define DELAYED	20000

static void make_delayed(void)
{
	struct store *store = open_with(0);
	uint64_t id;

	put_tube(store, TUBE, "three");
	for (id = 1; id <= DELAYED; id++) {
		struct job_record job = make_job(id, JOB_DELAYED, TUBE, 7, id * 1000003);

		put_job(store, &job);
	}
	/* One level of tables that RocksDB does not compact. */
	store_flush(store);
	rocksdb_compact_range(store->db, NULL, 0, NULL, 0);
	store_close(store);
}

static uint64_t walked;

static bool count_one(void *context, const struct job_place *place)
{
	uint64_t *last = context;

	ASSERT_GT(place->id, *last);
	*last = place->id;
	walked++;
	return true;
}

/* Remove the mark of damage that was undone. */
static void unmark(void)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/damaged", test_dir());
	ASSERT_EQ(unlink(path), 0);
}

/*
 * Walk while a table is damaged at @at. Returns whether the damage was in the index of delayed
 * jobs, and not at its end.
 */
static bool walk_harmed(const char *path, off_t at)
{
	const struct job_place from = { .state = JOB_DELAYED, .tube = TUBE };
	struct store *store = open_with(0);
	uint64_t last = 0;
	bool hit = false;
	int ret;

	harm_file(path, at);
	walked = 0;
	ret = store_walk(store, &from, count_one, &last);
	if (ret) {
		ASSERT_EQ(ret, -EBADMSG);
		ASSERT_EQ(stats_of(store).damaged, 1);
		printf("# %llu of %d seen\n", (unsigned long long)walked, DELAYED);
		hit = last == DELAYED;
		ASSERT_LT(walked, DELAYED);
		ASSERT_GT(walked, DELAYED - 1000);
		last = 0;
		walked = 0;
		ASSERT_EQ(store_walk_tube(store, &from, count_one, &last), 0);
	}
	ASSERT_EQ(walked, DELAYED);
	harm_file(path, at);
	store_close(store);
	if (ret)
		unmark();
	return hit;
}

/* The first table with entries of delayed jobs. */
static void path_of_delayed(char *path, size_t size)
{
	struct store *store = open_with(0);
	const rocksdb_livefiles_t *files = rocksdb_livefiles(store->db);
	int nr = rocksdb_livefiles_count(files), i;
	size_t len;

	for (i = 0; i < nr; i++)
		if (*rocksdb_livefiles_smallestkey(files, i, &len) <= 'd' &&
		    *rocksdb_livefiles_largestkey(files, i, &len) >= 'd')
			break;
	ASSERT_LT(i, nr);
	snprintf(path, size, "%s/db/%s", test_dir(), rocksdb_livefiles_name(files, i));
	rocksdb_livefiles_destroy(files);
	store_close(store);
}

/* They fill only a part of it. */
#define PARTS	50

TEST(a_walk_goes_on_behind_a_block_that_is_damaged)
{
	struct stat stat_of;
	char path[400];
	bool hit = false;
	int part;

	make_delayed();
	path_of_delayed(path, sizeof(path));
	ASSERT_EQ(stat(path, &stat_of), 0);
	for (part = 1; part < PARTS && !hit; part++)
		hit = walk_harmed(path, stat_of.st_size / PARTS * part);
	ASSERT(hit);
}

/* Returns whether a walk found damage; if not, it has seen all jobs. */
static bool meets_damage(struct store *store,
			 int (*walk)(struct store *store, const struct job_place *from,
				     bool (*each)(void *context, const struct job_place *place),
				     void *context))
{
	const struct job_place from = { .state = JOB_DELAYED, .tube = TUBE };
	uint64_t last = 0;
	int ret;

	walked = 0;
	ret = walk(store, &from, count_one, &last);
	if (!ret)
		ASSERT_EQ(walked, DELAYED);
	else
		ASSERT_EQ(ret, -EBADMSG);
	return ret;
}

TEST(a_table_whose_beginning_is_damaged_is_no_end_of_a_walk)
{
	unsigned int tables = 0, met = 0;
	struct dirent *entry;
	char path[400];
	DIR *list;

	make_delayed();
	list = list_files();
	while ((entry = readdir(list))) {
		struct store *store;
		bool damaged;

		path_of(path, sizeof(path), entry);
		if (!strstr(path, ".sst"))
			continue;
		test_about("%s", path);
		store = open_with(0);
		harm_file(path, 10);
		damaged = meets_damage(store, store_walk);
		damaged |= meets_damage(store, store_walk_tube);
		harm_file(path, 10);
		store_close(store);
		if (damaged)
			unmark();
		tables++;
		met += damaged;
	}
	closedir(list);
	printf("# %u tables, %u with an index\n", tables, met);
	ASSERT_GT(met, 0);
}

/* --- interrupted repairs ------------------------------------------------------------------ */

/* Returns whether the repair was finished. */
static bool repair_for(unsigned int us)
{
	struct store_config config = test_config(test_dir());
	struct store *store;
	int status;
	pid_t pid;

	config.repair = true;
	fflush(stdout);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(store_open(&store, &config) ? 1 : 2);
	usleep(us);
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 2;
}

/* Open it in a process of its own: RocksDB's threads do not survive the next fork. */
static int jobs_if_open(void)
{
	struct store_config config = test_config(test_dir());
	int ends[2], nr = -1;
	pid_t pid;

	ASSERT_EQ(pipe(ends), 0);
	fflush(stdout);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		const struct job_place from = { .state = JOB_DELAYED, .tube = TUBE };
		struct store *store;
		uint64_t last = 0;

		if (!store_open(&store, &config)) {
			walked = 0;
			nr = store_walk(store, &from, count_one, &last) ? -2 : (int)walked;
		}
		_exit(write(ends[1], &nr, sizeof(nr)) != sizeof(nr));
	}
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_EQ(read(ends[0], &nr, sizeof(nr)), sizeof(nr));
	close(ends[0]);
	close(ends[1]);
	return nr;
}

static void make_damaged(void)
{
	pid_t pid;

	/* The directory belongs to this process, not to the child. */
	remove_tree(test_dir());
	fflush(stdout);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		make_delayed();
		lose_the_list();
		_exit(0);
	}
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_EQ(jobs_if_open(), -1);
}

/* Kill repairs, each later than the one before, until one ends. Returns the number of kills. */
static unsigned int repair_with_kills(void)
{
	unsigned int kills = 0, ms;
	bool done = false;
	int jobs;

	for (ms = 5; !done; ms += 20 + ms / 8) {
		ASSERT_LT(ms, WAIT_MS);
		done = repair_for(ms * 1000);
		kills += !done;
		jobs = jobs_if_open();
		if (!done && jobs == -1)
			continue;
		/* The kill came after the last step, or never. */
		ASSERT_EQ(jobs, DELAYED);
		done = true;
	}
	printf("# %u kills\n", kills);
	return kills;
}

/* A late kill may find a finished repair. */
TEST(a_repair_that_is_killed_leaves_nothing_that_is_served)
{
	unsigned int tries = 0;

	do {
		ASSERT_LT(tries++, 50);
		make_damaged();
	} while (repair_with_kills() < 2);
}
