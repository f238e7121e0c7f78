// SPDX-License-Identifier: GPL-2.0
/*
 * Reads that cannot be done now, for lack of files or memory: they are not taken for damage, nor
 * for "there is none". They end a daemon, and the next one has all jobs; to commands, they are
 * errors.
 */
#include <errno.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "queue/cli/dump.h"
#include "queue/cli/load.h"
#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/store/browse.h"
#include "queue/store/numbers.h"
#include "queue/store/read.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/store/view.h"
#include "queue/test/store_lib.h"

#define TUBE	3
#define JOBS	5

/* --- what the linker calls in place of those without a prefix ----------------------------- */

rocksdb_pinnableslice_t *__real_rocksdb_get_pinned(rocksdb_t *db,
						   const rocksdb_readoptions_t *options,
						   const char *key, size_t len, char **error);
rocksdb_pinnableslice_t *__wrap_rocksdb_get_pinned(rocksdb_t *db,
						   const rocksdb_readoptions_t *options,
						   const char *key, size_t len, char **error);
void __real_rocksdb_iter_get_error(const rocksdb_iterator_t *iterator, char **error);
void __wrap_rocksdb_iter_get_error(const rocksdb_iterator_t *iterator, char **error);

static char *make_error(void)
{
	return strdup("IO error: While open a file: 000012.sst: Too many open files in system");
}

/* The kind of key of which reads fail; only those with this name, if there is one. */
static char unread_kind;
static const char *unread_name = "";
static bool unread_walk;

rocksdb_pinnableslice_t *__wrap_rocksdb_get_pinned(rocksdb_t *db,
						   const rocksdb_readoptions_t *options,
						   const char *key, size_t len, char **error)
{
	size_t name_len = strlen(unread_name);

	if (*key != unread_kind || len < name_len ||
	    memcmp(key + len - name_len, unread_name, name_len))
		return __real_rocksdb_get_pinned(db, options, key, len, error);
	*error = make_error();
	return NULL;
}

void __wrap_rocksdb_iter_get_error(const rocksdb_iterator_t *iterator, char **error)
{
	if (unread_walk)
		*error = make_error();
	else
		__real_rocksdb_iter_get_error(iterator, error);
}

/* --- a store that is in use --------------------------------------------------------------- */

static void put_jobs(void)
{
	struct store *store = open_store();
	struct job_record job;
	uint64_t id;

	put_tube(store, TUBE, "three");
	for (id = 1; id <= JOBS; id++) {
		job = make_job(id, JOB_READY, TUBE, 1, id);
		put_job(store, &job);
	}
	store_put_number(store, NUMBER_TUBE, TUBE + 1);
	store_flush(store);
	store_close(store);
}

static bool next_place(void *context, const struct job_place *place)
{
	(void)context;
	(void)place;
	return true;
}

static void get_job(struct store *store)
{
	struct job_record job;

	unread_kind = 'j';
	store_get(store, 1, &job);
}

static void walk_tube(struct store *store)
{
	struct job_place from = { .state = JOB_READY, .tube = TUBE };

	unread_walk = true;
	store_walk(store, &from, next_place, NULL);
}

static void walk_back(struct store *store)
{
	struct job_place from = { .state = JOB_READY, .tube = TUBE, .pri = 9 };

	unread_walk = true;
	store_walk_back(store, &from, next_place, NULL);
}

static void look_for_mark(struct store *store)
{
	struct store_view *view = store_view_open(store);

	unread_kind = 'v';
	store_view_is_marked(view, 1);
}

static void (*read_of_test)(struct store *store);

static void read_in_child(void)
{
	struct store *store = open_store();

	read_of_test(store);
	printf("# the read came back: %s\n", log_text);
}

TEST(a_read_of_the_queue_that_cannot_be_done_now_ends_the_process)
{
	void (*const reads[])(struct store *store) = {
		get_job, walk_tube, walk_back, look_for_mark,
	};
	struct store *store;
	struct job_record job;
	size_t i;

	test_dir();
	ASSERT_EQ(in_child(put_jobs), 0);
	for (i = 0; i < ARRAY_SIZE(reads); i++) {
		test_about("read %d", (int)i);
		read_of_test = reads[i];
		ASSERT_EQ(in_child(read_in_child), STORE_EXIT_IO << 8);
	}
	/* It is no damage, and all is there. */
	store = open_store();
	for (i = 1; i <= JOBS; i++)
		ASSERT_EQ(store_get(store, i, &job), 0);
	store_close(store);
}

TEST(a_page_that_cannot_read_now_ends_nothing)
{
	struct job_place from = { .state = JOB_READY, .tube = TUBE };
	struct store *store;
	struct job_record job;

	test_dir();
	ASSERT_EQ(in_child(put_jobs), 0);
	store = open_store();
	unread_kind = 'j';
	ASSERT_EQ(store_browse_job(store, 1, &job), -EIO);
	unread_kind = 0;
	unread_walk = true;
	ASSERT_EQ(store_browse(store, &from, JOBS, next_place, NULL), -EIO);
	unread_walk = false;
	ASSERT_EQ(store_browse_job(store, 1, &job), 0);
	store_close(store);
}

/* --- commands ----------------------------------------------------------------------------- */

TEST(a_check_that_cannot_read_now_finds_no_damage)
{
	static const char kinds[] = { 'j', 't', 'p', 'v' };
	struct store_config config = test_config(test_dir());
	char *text;
	size_t i, len;
	FILE *out;

	ASSERT_EQ(in_child(put_jobs), 0);
	config.read_only = true;
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		out = open_memstream(&text, &len);
		unread_kind = kinds[i];
		/* Bodies and marks are not looked up as long as all sums agree. */
		ASSERT_EQ(store_check(&config, out), strchr("pjv", kinds[i]) ? 0 : -EIO);
		fclose(out);
		test_about("%s", text);
		ASSERT_EQ(len, 0);
		free(text);
	}
	unread_kind = 0;
}

TEST(a_dump_that_cannot_read_the_clock_fails)
{
	struct store_config config = test_config(test_dir());
	struct store *store;
	FILE *out = tmpfile();

	ASSERT_EQ(in_child(put_jobs), 0);
	config.read_only = true;
	ASSERT_EQ(store_open(&store, &config), 0);
	unread_kind = 'm';
	unread_name = NUMBER_SKEW;
	ASSERT_EQ(store_dump(store, out), -EIO);
	unread_kind = 0;
	ASSERT_EQ(store_dump(store, out), 0);
	store_close(store);
	fclose(out);
}

static void load_line(void)
{
	struct store_config config = test_config(test_dir());
	char line[] = "{\"id\":6,\"tube\":\"new\",\"state\":\"ready\",\"body\":\"a\"}\n";
	FILE *in = fmemopen(line, strlen(line), "r");

	unread_kind = 'm';
	_exit(store_load(&config, in) == 0);
}

/* Else a tube gets the number of another one, or jobs are due at the wrong time. */
TEST(a_load_that_cannot_read_its_numbers_changes_nothing)
{
	static const char *const names[] = { NUMBER_TUBE, NUMBER_SKEW };
	struct store_config config = test_config(test_dir());
	struct job_record job;
	struct store *store;
	size_t i;

	ASSERT_EQ(in_child(put_jobs), 0);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		unread_name = names[i];
		ASSERT_EQ(in_child(load_line), STORE_EXIT_IO << 8);
	}
	ASSERT_EQ(store_open(&store, &config), 0);
	ASSERT_EQ(store_get(store, JOBS + 1, &job), -ENOENT);
	store_close(store);
}
