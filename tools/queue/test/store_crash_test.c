// SPDX-License-Identifier: GPL-2.0
/*
 * The store is compared with a model, also after crashes. After a kill at any moment it has
 * all steps that it had reported as synced, and maybe some whole steps after them.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/store/read.h"
#include "queue/store/sync.h"
#include "queue/test/model_lib.h"

static struct store *open_small(enum store_sync sync)
{
	struct store_config config = test_config(test_dir());
	struct store *store;
	int ret;

	config.sync = sync;
	config.memory = 8 << 20;
	ret = store_open(&store, &config);
	if (ret)
		test_about("%s", log_text);
	ASSERT_EQ(ret, 0);
	return store;
}

TEST(a_store_has_what_a_model_has)
{
	unsigned long steps = test_count(4000), n;
	struct store *store = open_small(SYNC_NEVER);
	struct model *model = malloc(sizeof(*model));

	model_init(model, 7);
	for (n = 0; n < steps; n++) {
		model_step(model, store);
		if (n % 50 == 0)
			model_compare(model, store);
		if (n % 400 == 399) {
			store_close(store);
			store = open_small(SYNC_NEVER);
			model_compare(model, store);
		}
	}
	store_close(store);
	free(model);
}

/* --- logs that are no longer needed ------------------------------------------------------- */

/* The name of the log after a store was opened and closed. */
static void name_log(char *name, size_t size)
{
	DIR *list = list_files();
	struct dirent *entry;

	*name = '\0';
	while ((entry = readdir(list)))
		if (strstr(entry->d_name, ".log"))
			path_of(name, size, entry);
	closedir(list);
	ASSERT_NE(*name, '\0');
}

static void put_some(uint64_t id)
{
	struct store *store = open_small(SYNC_ALWAYS);
	struct job_record job = make_job(id, JOB_DELAYED, 1, 1, id);

	put_tube(store, 1, "tube");
	put_job(store, &job);
	store_close(store);
}

/*
 * RocksDB deletes such logs in any order. So a kill may leave an old one and a needed one, and
 * none of those between.
 */
TEST(a_log_whose_changes_are_in_tables_may_be_followed_by_a_gap)
{
	struct store_config config = test_config(test_dir());
	char log[400], kept[500];
	struct job_record job;
	struct store *store;
	uint64_t id;

	put_some(1);
	name_log(log, sizeof(log));
	snprintf(kept, sizeof(kept), "%s.kept", log);
	ASSERT_EQ(link(log, kept), 0);
	put_some(2);
	put_some(3);
	ASSERT_EQ(rename(kept, log), 0);
	if (store_check(&config, stdout))
		test_fail(__FILE__, __LINE__, "the check found: %s", log_text);
	store = open_small(SYNC_ALWAYS);
	for (id = 1; id <= 3; id++)
		ASSERT_EQ(store_get(store, id, &job), 0);
	store_close(store);
}

/* --- crashes ------------------------------------------------------------------------------ */

/* Shared by the process that is killed and the one that checks the store. */
struct shared {
	/* The last step that was reported as synced, and the last one that was started. */
	_Atomic uint64_t synced;
	_Atomic uint64_t begun;
	_Atomic uint64_t found;
	_Atomic bool opened;
};

static struct shared *shared;

/* Replaces the C library's for RocksDB. It is slow, so that a kill often comes before it. */
static bool writes_are_slow;

ssize_t write(int fd, const void *bytes, size_t len)
{
	if (writes_are_slow && len > sizeof(uint64_t))
		usleep(1000);
	return syscall(SYS_write, fd, bytes, len);
}

/* Run steps until the kill. */
static void work(struct model *model, enum store_sync sync)
{
	struct store *store = open_small(sync);
	/* Steps in flight, by the number of their commit. */
	static uint64_t steps[1 << 16];
	uint64_t told = store_synced(store), seq, synced;

	shared->opened = true;
	writes_are_slow = true;
	for (;;) {
		shared->begun = model->step + 1;
		seq = model_step(model, store);
		steps[seq % (1 << 16)] = model->step;
		synced = store_synced(store);
		if (synced > told)
			shared->synced = steps[synced % (1 << 16)];
		told = synced;
	}
}

static pid_t start_work(const struct model *model, enum store_sync sync)
{
	struct model *own;
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (pid)
		return pid;
	own = malloc(sizeof(*own));
	*own = *model;
	work(own, sync);
	_exit(0);
}

/* In a process of its own: RocksDB's threads do not survive a fork. */
static void look(const struct model *before)
{
	struct store_config config = test_config(test_dir());
	struct model *model = malloc(sizeof(*model));
	struct store *store;
	uint64_t found;

	*model = *before;
	if (shared->opened && store_check(&config, stdout))
		test_fail(__FILE__, __LINE__, "the check found: %s", log_text);
	store = open_small(SYNC_ALWAYS);
	ASSERT_EQ(store_get_number(store, "step", 0, &found), 0);
	shared->found = found;
	ASSERT_GE(shared->found, shared->synced);
	ASSERT_LE(shared->found, shared->begun);
	while (model->step < shared->found)
		model_step(model, NULL);
	if (model->step)
		model_compare(model, store);
	store_close(store);
	_exit(0);
}

static void crash_and_look(struct model *model, enum store_sync sync, unsigned int after_us)
{
	pid_t pid = start_work(model, sync);
	int status;

	while (!shared->opened)
		usleep(100);
	usleep(after_us);
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT(WIFSIGNALED(status));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		look(model);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_EQ(status, 0);
	while (model->step < shared->found)
		model_step(model, NULL);
}

static void crash_often(enum store_sync sync, unsigned long times)
{
	struct model *model = malloc(sizeof(*model));
	uint64_t random = 1;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	model_init(model, (uint64_t)sync + 1);
	/* All following processes use this directory. */
	test_dir();
	while (times--) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		shared->opened = false;
		test_about("kill after step %llu", (unsigned long long)model->step);
		crash_and_look(model, sync, (unsigned int)(random >> 33) % 30000);
	}
	printf("# %llu steps\n", (unsigned long long)model->step);
	fflush(stdout);
	free(model);
}

TEST(what_was_synced_outlives_a_kill_at_any_moment)
{
	crash_often(SYNC_ALWAYS, test_count(200));
}

TEST(what_was_written_out_outlives_a_kill_with_syncs_at_intervals)
{
	crash_often(SYNC_INTERVAL, test_count(100));
}

TEST(what_was_written_out_outlives_a_kill_without_syncs)
{
	crash_often(SYNC_NEVER, test_count(100));
}
