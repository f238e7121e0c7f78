// SPDX-License-Identifier: GPL-2.0
/* Shared functions of the store's tests. */
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/time.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/store/read.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/test/store_lib.h"

char log_text[1 << 16];

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The test directory of this process. */
static void name_own(char *path, size_t size)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(path, size, "%.40s/store_test.%d", tmp ? tmp : "/tmp", getpid());
}

static void remove_own(void)
{
	char path[64];

	name_own(path, sizeof(path));
	remove_tree(path);
}

const char *test_dir(void)
{
	static char path[64];

	if (!*path) {
		name_own(path, sizeof(path));
		/* A killed process with the same pid may have left the directory. */
		remove_tree(path);
		atexit(remove_own);
	}
	return path;
}

DIR *list_files(void)
{
	char db[100];
	DIR *list;

	snprintf(db, sizeof(db), "%s/db", test_dir());
	list = opendir(db);
	ASSERT(list);
	return list;
}

void path_of(char *path, size_t size, const struct dirent *entry)
{
	snprintf(path, size, "%s/db/%s", test_dir(), entry->d_name);
}

static void __printf(2, 3) to_text(int priority, const char *format, ...)
{
	size_t len = strlen(log_text);
	char line[1000];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	snprintf(log_text + len, sizeof(log_text) - len, "%s\n", line);
	/* Print it: if the process ends, log_text is lost. */
	if (priority == LOG_ERR && getenv("STORE_TEST_LOG"))
		fprintf(stderr, "# %s", log_text + len);
}

struct store_config test_config(const char *dir)
{
	return (struct store_config){
		.dir = dir,
		.create = true,
		.sync = SYNC_ALWAYS,
		.sync_interval_ns = 20000000,
		.memory = 16 << 20,
		.reserve = 4 << 20,
		.log = to_text,
	};
}

struct store *open_store(void)
{
	struct store_config config = test_config(test_dir());
	struct store *store;
	int ret = store_open(&store, &config);

	if (ret)
		test_about("%s", log_text);
	ASSERT_EQ(ret, 0);
	return store;
}

struct job_record make_job(uint64_t id, enum job_state state, uint32_t tube, uint32_t pri,
			   uint64_t order)
{
	return (struct job_record){
		.place = {
			.id = id, .order = order, .tube = tube, .pri = pri,
			.state = (uint8_t)state,
		},
		.created_ns = id * 1000,
		.ttr_ns = NSEC_PER_SEC,
	};
}

void put_tube(struct store *store, uint32_t tube, const char *name)
{
	struct tube_record record = { .tube = tube };

	snprintf(record.name, sizeof(record.name), "%s", name);
	store_put_tube(store, &record);
}

static size_t make_body(char *body, uint64_t id)
{
	size_t len = (size_t)(id * 37 % 300), i;

	for (i = 0; i < len; i++)
		body[i] = (char)(id + i * i);
	return len;
}

void put_job(struct store *store, struct job_record *job)
{
	char body[300];

	job->body_len = (uint32_t)make_body(body, job->place.id);
	store_put(store, job, body);
}

void put_garbage(struct store *store, const void *key, size_t len)
{
	char *error = NULL;

	store_flush(store);
	rocksdb_put(store->db, store->write_options, key, len, "?", 1, &error);
	ASSERT(!error);
}

void lose(struct store *store, const void *key, size_t len)
{
	char *error = NULL;

	store_flush(store);
	rocksdb_delete(store->db, store->write_options, key, len, &error);
	ASSERT(!error);
}

void see_body(struct store *store, const struct job_record *job)
{
	char expected[300];
	const void *body;
	size_t len;

	ASSERT_EQ(store_get_body(store, job->place.id, &body, &len), 0);
	ASSERT_EQ(len, make_body(expected, job->place.id));
	ASSERT(!memcmp(body, expected, len));
}

struct ids {
	uint64_t *ids;
	size_t nr;
	size_t max;
};

static bool add_id(void *context, const struct job_place *place)
{
	struct ids *ids = context;

	if (ids->nr < ids->max)
		ids->ids[ids->nr++] = place->id;
	return ids->nr < ids->max;
}

size_t walk_ids(struct store *store, struct job_place from, uint64_t *ids, size_t nr,
		bool back)
{
	struct ids context = { .ids = ids, .max = nr };

	if (back)
		ASSERT_EQ(store_walk_back(store, &from, add_id, &context), 0);
	else
		ASSERT_EQ(store_walk(store, &from, add_id, &context), 0);
	return context.nr;
}

int in_child(void (*run)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		run();
		_exit(0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return status;
}
