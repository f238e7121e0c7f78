// SPDX-License-Identifier: GPL-2.0
/* Schedules in the store: what is kept, found, checked, repaired, dumped and loaded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/cli/dump.h"
#include "queue/cli/load.h"
#include "queue/integrity/check.h"
#include "queue/integrity/open.h"
#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/schedule.h"
#include "queue/test/store_lib.h"

static struct schedule_record make_schedule(uint64_t id, const char *name)
{
	struct schedule_record record = {
		.id = id, .tube = 7, .pri = 4000000000u, .ttr_ns = 6, .body_len = 3,
		.interval_ns = NSEC_PER_SEC, .next_ns = 1790000000 * NSEC_PER_SEC + id,
		.missed = 12, .last = 3, .name_len = strlen(name),
	};

	record.at_ns = record.next_ns;
	strcpy(record.name, name);
	return record;
}

static void see_schedule(struct store *store, const struct schedule_record *expected)
{
	struct schedule_record seen;
	const void *body;
	uint64_t id;
	size_t len;

	memset(&seen, 0xcc, sizeof(seen));
	ASSERT_EQ(store_find_schedule(store, expected->tube, expected->name, &id), 0);
	ASSERT_EQ(id, expected->id);
	ASSERT_EQ(store_get_schedule(store, id, &seen), 0);
	ASSERT(!strcmp(seen.name, expected->name));
	ASSERT_EQ(seen.tube, expected->tube);
	ASSERT_EQ(seen.pri, expected->pri);
	ASSERT_EQ(seen.ttr_ns, expected->ttr_ns);
	ASSERT_EQ(seen.interval_ns, expected->interval_ns);
	ASSERT_EQ(seen.next_ns, expected->next_ns);
	ASSERT_EQ(seen.at_ns, expected->at_ns);
	ASSERT_EQ(seen.missed, expected->missed);
	ASSERT_EQ(seen.last, expected->last);
	ASSERT_EQ(store_get_schedule_body(store, id, &body, &len), 0);
	ASSERT(len == 3 && !memcmp(body, "abc", 3));
}

struct seen {
	uint64_t ids[16];
	uint64_t times[16];
	size_t nr;
};

static bool see_time(void *context, uint64_t at_ns, uint64_t id)
{
	struct seen *seen = context;

	seen->ids[seen->nr] = id;
	seen->times[seen->nr++] = at_ns;
	return seen->nr < 16;
}

static bool see_id(void *context, uint64_t id)
{
	return see_time(context, 0, id);
}

static struct seen times_of(struct store *store)
{
	struct seen seen = { .nr = 0 };

	ASSERT_EQ(store_walk_schedules(store, see_time, &seen), 0);
	return seen;
}

static int check(const char *dir)
{
	struct store_config config = test_config(dir);
	FILE *out = fopen("/dev/null", "w");
	int errors = store_check(&config, out);

	fclose(out);
	return errors;
}

TEST(a_schedule_is_there_after_a_restart)
{
	char longest[JOB_KEY_MAX + 1] = "";
	struct schedule_record one = make_schedule(9, "one"), two;
	struct store *store = open_store();

	memset(longest, 'n', JOB_KEY_MAX);
	two = make_schedule(11, longest);
	put_tube(store, 7, "seven");
	store_put_schedule(store, &one, "abc");
	store_put_schedule(store, &two, "abc");
	see_schedule(store, &one);
	see_schedule(store, &two);
	store_close(store);
	store = open_store();
	see_schedule(store, &one);
	see_schedule(store, &two);
	ASSERT_EQ(store_counts(store, 7)->schedules, 2);
	ASSERT_EQ(store_next_id(store), 12);
	store_close(store);
	ASSERT_EQ(check(test_dir()), 0);
}

TEST(a_job_knows_its_schedule_after_a_restart)
{
	struct job_record job = make_job(5, JOB_DELAYED, 1, 2, 3), seen;
	struct store *store = open_store();

	put_tube(store, 1, "one");
	job.schedule = 9;
	job.missed = UINT64_MAX;
	job.place.scheduled = 1;
	job.place.keyed = 1;
	job.key_len = 1;
	job.key[0] = 'k';
	put_job(store, &job);
	store_close(store);
	store = open_store();
	ASSERT_EQ(store_get(store, 5, &seen), 0);
	ASSERT(!memcmp(&job, &seen, sizeof(job)));
	store_close(store);
	ASSERT_EQ(check(test_dir()), 0);
}

TEST(times_are_in_order_and_move)
{
	struct schedule_record record;
	struct store *store = open_store();
	struct seen seen;
	uint64_t id;

	put_tube(store, 7, "seven");
	for (id = 5; id; id--) {
		char name[2] = { (char)('a' + id), 0 };

		record = make_schedule(id, name);
		store_put_schedule(store, &record, "abc");
	}
	seen = times_of(store);
	ASSERT_EQ(seen.nr, 5);
	for (id = 1; id <= 5; id++)
		ASSERT_EQ(seen.ids[id - 1], id);
	/* The first one is now the last one; another one waits, and is waked. */
	record.at_ns += 1000;
	store_move_schedule(store, record.next_ns, &record);
	ASSERT_EQ(store_get_schedule(store, 3, &record), 0);
	record.at_ns = 0;
	store_move_schedule(store, record.next_ns, &record);
	seen = times_of(store);
	ASSERT_EQ(seen.nr, 4);
	ASSERT_EQ(seen.ids[0], 2);
	ASSERT_EQ(seen.ids[3], 1);
	store_wake_schedule(store, 3);
	seen = times_of(store);
	ASSERT_EQ(seen.nr, 5);
	ASSERT_EQ(seen.ids[0], 3);
	ASSERT_EQ(seen.times[0], 0);
	store_drop_schedule_time(store, 0, 3);
	store_delete_schedule(store, &record);
	ASSERT_EQ(times_of(store).nr, 4);
	ASSERT_EQ(store_get_schedule(store, 3, &record), -ENOENT);
	ASSERT_EQ(store_find_schedule(store, 7, "d", &id), -ENOENT);
	ASSERT_EQ(store_counts(store, 7)->schedules, 4);
	store_close(store);
	ASSERT_EQ(check(test_dir()), 0);
}

TEST(a_list_is_of_one_tube_and_goes_on_behind_a_name)
{
	static const char *const names[] = { "a", "ab", "b" };
	struct store *store = open_store();
	struct schedule_record record;
	struct seen seen = { .nr = 0 };
	uint64_t id;

	for (id = 1; id <= 3; id++) {
		record = make_schedule(id, names[id - 1]);
		store_put_schedule(store, &record, "abc");
		record.tube = 8;
		record.id += 10;
		store_put_schedule(store, &record, "abc");
	}
	ASSERT_EQ(store_list_schedules(store, 7, "", see_id, &seen), 0);
	ASSERT_EQ(seen.nr, 3);
	for (id = 1; id <= 3; id++)
		ASSERT_EQ(seen.ids[id - 1], id);
	seen.nr = 0;
	ASSERT_EQ(store_list_schedules(store, 7, "a", see_id, &seen), 0);
	ASSERT_EQ(seen.nr, 2);
	ASSERT_EQ(seen.ids[0], 2);
	seen.nr = 0;
	ASSERT_EQ(store_list_schedules(store, 7, "b", see_id, &seen), 0);
	ASSERT_EQ(seen.nr, 0);
	store_close(store);
}

/* --- check and repair ------------------------------------------------------------------------- */

/* A store with a schedule that has a time, and one that waits for its last job. */
static struct store *two_schedules(struct schedule_record *timed,
				   struct schedule_record *waiting)
{
	struct job_record job = make_job(3, JOB_READY, 7, 0, 0);
	struct store *store = open_store();

	put_tube(store, 7, "seven");
	put_job(store, &job);
	*timed = make_schedule(9, "timed");
	*waiting = make_schedule(10, "waiting");
	waiting->at_ns = 0;
	store_put_schedule(store, timed, "abc");
	store_put_schedule(store, waiting, "abc");
	return store;
}

TEST(check_finds_what_is_missing)
{
	struct schedule_record timed, waiting;
	struct store *store;
	int kind;

	for (kind = 0; kind < 6; kind++) {
		uint8_t key[STORE_KEY_MAX];
		size_t len = 0;

		test_about("kind %d", kind);
		store = two_schedules(&timed, &waiting);
		switch (kind) {
		case 1:
			len = store_key_schedule_name(key, 7, "timed", 5);
			break;
		case 2:
			len = store_key_schedule_time(key, timed.at_ns, 9);
			break;
		case 3:
			len = store_key_id(key, 'f', 9);
			break;
		case 4:
			len = store_key_id(key, 'e', 10);
			break;
		case 5:
			/* The job that it waits for. */
			store_delete(store, &(struct job_place){ .id = 3, .tube = 7 }, NULL, 0);
			break;
		}
		if (len)
			store_delete_raw(store, key, len);
		store_close(store);
		ASSERT_EQ(check(test_dir()) > 0, kind > 0);
		remove_tree(test_dir());
	}
}

TEST(a_repair_keeps_schedules)
{
	struct store_config config = test_config(test_dir());
	struct schedule_record timed, waiting;
	struct store *store = two_schedules(&timed, &waiting);
	uint8_t key[STORE_KEY_MAX];

	/* The counts are gone, and the names and times. */
	store_close(store);
	store = open_store();
	store_delete_raw(store, key, store_key_tube(key, 'c', 7));
	store_delete_raw(store, key, store_key_schedule_name(key, 7, "timed", 5));
	store_delete_raw(store, key, store_key_schedule_time(key, timed.at_ns, 9));
	store_close(store);
	ASSERT_EQ(store_open(&store, &config), -EBADMSG);
	config.repair = true;
	ASSERT_EQ(store_open(&store, &config), 0);
	see_schedule(store, &timed);
	waiting.at_ns = waiting.next_ns;
	see_schedule(store, &waiting);
	ASSERT_GT(store_next_id(store), 1ull << 40);
	store_close(store);
	ASSERT_EQ(check(test_dir()), 0);
}

/* --- dump and load ---------------------------------------------------------------------------- */

static char *dump(const struct store_config *config)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct store *store;

	ASSERT_EQ(store_open_unscanned(&store, config), 0);
	ASSERT_EQ(store_dump(store, out), 0);
	store_close(store);
	fclose(out);
	return text;
}

static int load(const struct store_config *config, const char *text)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	int ret;

	*log_text = 0;
	ret = store_load(config, in);
	fclose(in);
	return ret;
}

TEST(schedules_are_dumped_and_loaded)
{
	struct store_config first = test_config(test_dir()), second;
	struct schedule_record timed, waiting;
	struct store *store = two_schedules(&timed, &waiting);
	struct job_record job = make_job(20, JOB_READY, 7, 0, 0);
	char *text, *again, dir[200];

	job.schedule = 9;
	job.missed = 4;
	job.place.scheduled = 1;
	put_job(store, &job);
	store_close(store);
	text = dump(&first);
	snprintf(dir, sizeof(dir), "%s/second", test_dir());
	second = test_config(dir);
	ASSERT_EQ(load(&second, text), 0);
	again = dump(&second);
	ASSERT(!strcmp(text, again));
	ASSERT_EQ(check(dir), 0);
	ASSERT_EQ(store_open(&store, &second), 0);
	timed.tube = 1;
	see_schedule(store, &timed);
	ASSERT_EQ(store_get(store, 20, &job), 0);
	ASSERT_EQ(job.schedule, 9);
	ASSERT_EQ(job.missed, 4);
	ASSERT_EQ(job.place.scheduled, 1);
	store_close(store);
	/* The store has these names and ids by now. */
	ASSERT_EQ(load(&second, strstr(text, "{\"every\"")), -EINVAL);
	free(text);
	free(again);
}

#define HEAD	"{\"every\":\"n\",\"tube\":\"one\",\"id\":5,"
#define SAME_NAME "{\"every\":\"n\",\"tube\":\"one\",\"id\":6,"
#define GOOD	HEAD "\"interval_ns\":1000000000,\"next_ns\":1,\"body\":\"b\"}\n"

TEST(a_wrong_schedule_is_named_and_not_loaded)
{
	static const char *const lines[] = {
		HEAD "\"body\":\"b\"}",
		HEAD "\"interval_ns\":999999999,\"next_ns\":1,\"body\":\"b\"}",
		HEAD "\"interval_ns\":-1,\"next_ns\":1,\"body\":\"b\"}",
		HEAD "\"interval_ns\":1000000000,\"body\":\"b\"}",
		HEAD "\"interval_ns\":1000000000,\"next_ns\":1,\"body\":7}",
		HEAD "\"interval_ns\":1000000000,\"next_ns\":1,\"pri\":-1,\"body\":\"\"}",
		"{\"every\":\"\",\"tube\":\"one\",\"id\":5,\"interval_ns\":1000000000,\"next_ns\":1}",
		"{\"every\":7,\"tube\":\"one\",\"id\":5,\"interval_ns\":1000000000,\"next_ns\":1}",
		"{\"every\":\"n\",\"id\":5,\"interval_ns\":1000000000,\"next_ns\":1}",
		"{\"every\":\"n\",\"tube\":\"one\",\"interval_ns\":1000000000,\"next_ns\":1}",
		GOOD GOOD,
		GOOD SAME_NAME "\"interval_ns\":1000000000,\"next_ns\":1,\"body\":\"\"}",
	};
	struct store_config config = test_config(test_dir());
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		test_about("%s", lines[i]);
		ASSERT_EQ(load(&config, lines[i]), -EINVAL);
	}
	ASSERT_EQ(load(&config, GOOD), 0);
	ASSERT_EQ(check(test_dir()), 0);
}
