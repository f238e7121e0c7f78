// SPDX-License-Identifier: GPL-2.0
/* Purges: which jobs they delete, and which not, piece by piece. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/test/fake_alarm.h"
#include "common/log.h"
#include "queue/integrity/check.h"
#include "queue/jobs/purge.h"
#include "queue/store/stats.h"
#include "queue/test/queue_lib.h"
#include "queue/test/store_lib.h"

#define SEC	NSEC_PER_SEC
#define LONG	(100000 * SEC)
/* Jobs that are in memory at most, and jobs that take several turns. */
#define ROOM	256
#define MANY	3000

/* The linker calls this in place of store_is_behind(). */
bool __real_store_is_behind(struct store *store);
bool __wrap_store_is_behind(struct store *store);

static bool is_behind;

bool __wrap_store_is_behind(struct store *store)
{
	return is_behind || __real_store_is_behind(store);
}

static void open_queue(void)
{
	struct queue_config config = queue_test_config(ROOM);

	log_set_level(LOG_CRIT);
	queue_open(&config);
}

static void end(void)
{
	struct store_config store_config = test_config(test_dir());

	queue_close(true);
	store_config.read_only = true;
	ASSERT_EQ(store_check(&store_config, stdout), 0);
	remove_tree(test_dir());
}

static void begin_purge(unsigned int who, enum list_state state)
{
	struct command command = { .op = OP_PURGE, .tube = "default", .state = state };

	client_begin(who, &command, NULL);
}

static uint64_t purged(unsigned int who)
{
	unsigned long long nr;

	ASSERT_EQ(clients[who].replies, 1);
	if (sscanf(clients[who].line, "PURGED %llu", &nr) != 1)
		test_fail(__FILE__, __LINE__, "%s", clients[who].line);
	return nr;
}

/* A purge waits while the store is behind: let this time pass. */
static void wait_for_store(void)
{
	if (alarm_pending(&queue->purge_alarm))
		fake_advance(NSEC_PER_MSEC);
}

static void finish(unsigned int who)
{
	while (!clients[who].replies) {
		wait_for_store();
		settle();
	}
}

/* A turn that does a piece. */
static void piece(void)
{
	uint64_t before = nr_of_all(queue->nr);

	while (nr_of_all(queue->nr) == before) {
		wait_for_store();
		turn();
	}
	ASSERT_GE(nr_of_all(queue->nr) + 512, before);
}

static uint64_t purge(unsigned int who, enum list_state state)
{
	begin_purge(who, state);
	finish(who);
	return purged(who);
}

static const char *put_unique(unsigned int who, enum command_op op, const char *key,
			      uint64_t delay_ns)
{
	struct command command = { .op = op, .delay_ns = delay_ns, .ttr_ns = LONG,
				   .has_body = true, .body_len = 1 };

	strcpy(command.key, key);
	return client_run(who, &command, "x");
}

static void bury_all(void)
{
	struct command command = { .op = OP_BURY };

	while ((command.id = client_reserve(0)))
		ASSERT_SAID(client_run(0, &command, NULL), "BURIED");
}

static void put_many(size_t nr, uint64_t delay_ns)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		client_put(0, i % 7, delay_ns ? delay_ns + i % 11 * SEC : 0, LONG);
		if (i % 64 == 0)
			settle();
	}
	settle();
}

TEST(each_state_is_purged_and_the_others_stay)
{
	open_queue();
	put_many(MANY, 0);
	bury_all();
	put_many(MANY, 0);
	put_many(MANY, 50 * SEC);
	client_put_at(0, fake.now_ns[ALARM_WALL] + LONG);
	ASSERT_GT(queue->nr_resident, 0);
	ASSERT_EQ(purge(0, LIST_READY), MANY);
	ASSERT_EQ(queue->nr[IS_READY], 0);
	ASSERT_EQ(queue->nr[IS_DELAYED], MANY + 1);
	ASSERT_EQ(purge(0, LIST_BURIED), MANY);
	ASSERT_EQ(queue->nr[IS_BURIED], 0);
	ASSERT_EQ(purge(0, LIST_DELAYED), MANY + 1);
	ASSERT_EQ(nr_of_all(queue->nr), 0);
	ASSERT_EQ(queue->nr_resident, 0);
	ASSERT_EQ(purge(0, LIST_DELAYED), 0);
	end();
}

TEST(a_turn_deletes_a_piece_and_other_clients_go_on)
{
	struct command unknown = { .op = OP_PURGE, .tube = "nobody" };
	uint64_t id;

	open_queue();
	put_many(MANY, 50 * SEC);
	begin_purge(0, LIST_DELAYED);
	ASSERT_EQ(clients[0].replies, 0);
	piece();
	ASSERT_EQ(clients[0].replies, 0);
	ASSERT_GE(queue->nr[IS_DELAYED], MANY - 512);
	ASSERT_SAID(client_run(1, &unknown, NULL), "PURGED 0");
	id = client_put(1, 0, 0, LONG);
	ASSERT_EQ(client_reserve(1), id);
	finish(0);
	ASSERT_EQ(purged(0), MANY);
	end();
}

TEST(a_purge_pauses_while_the_store_is_behind_but_goes_on_in_the_end)
{
	unsigned int pauses = 0;

	open_queue();
	put_many(MANY, 50 * SEC);
	is_behind = true;
	begin_purge(0, LIST_DELAYED);
	for (; !purges_turn(queue); pauses++) {
		ASSERT(alarm_pending(&queue->purge_alarm));
		fake_advance(5 * NSEC_PER_MSEC - 1);
		queue_alarms(queue);
		ASSERT(!purges_turn(queue));
		ASSERT_EQ(queue->nr[IS_DELAYED], MANY);
		fake_advance(1);
		queue_alarms(queue);
		ASSERT(!alarm_pending(&queue->purge_alarm));
	}
	ASSERT_EQ(pauses, 200);
	ASSERT_LT(queue->nr[IS_DELAYED], MANY);
	is_behind = false;
	finish(0);
	ASSERT_EQ(purged(0), MANY);
	end();
}

TEST(jobs_that_are_put_meanwhile_stay)
{
	open_queue();
	put_many(MANY, 50 * SEC);
	begin_purge(0, LIST_DELAYED);
	piece();
	client_put(1, 0, 1 * SEC, LONG);
	client_put(1, 0, 55 * SEC, LONG);
	client_put(1, 0, LONG, LONG);
	client_put_at(1, fake.now_ns[ALARM_WALL] + LONG);
	finish(0);
	ASSERT_EQ(purged(0), MANY);
	ASSERT_EQ(nr_of_all(queue->nr), 4);
	end();
}

TEST(a_job_that_had_another_state_at_the_beginning_stays)
{
	uint64_t reserved, delayed, buried, sent;
	struct command bury = { .op = OP_BURY, .pri = 5 };

	open_queue();
	buried = client_put(1, 5, 0, LONG);
	bury.id = client_reserve(1);
	ASSERT_SAID(client_run(1, &bury, NULL), "BURIED");
	reserved = client_put(1, 5, 0, LONG);
	ASSERT_EQ(client_reserve(1), reserved);
	delayed = client_put(1, 5, 10 * SEC, LONG);
	sent = client_put(1, 5, LONG, LONG);
	put_many(MANY, 0);
	begin_purge(0, LIST_READY);
	client_release(1, reserved, 5, 0);
	ASSERT_SAID(client_run_id(1, OP_KICK_JOB, buried), "KICKED");
	ASSERT_SAID(client_run_id(1, OP_KICK_JOB, sent), "KICKED");
	fake_advance(10 * SEC);
	finish(0);
	ASSERT_EQ(purged(0), MANY);
	ASSERT_EQ(queue->nr[IS_READY], 4);
	ASSERT_SAID(client_run_id(1, OP_DELETE, delayed), "DELETED");
	end();
}

TEST(a_job_that_has_another_state_when_its_turn_comes_stays)
{
	uint64_t ids[8], i;

	open_queue();
	put_many(MANY, 0);
	begin_purge(0, LIST_READY);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ASSERT((ids[i] = client_reserve(1)));
	client_run_id(1, OP_DELETE, ids[0]);
	finish(0);
	ASSERT_EQ(purged(0), MANY - 8);
	ASSERT_EQ(queue->nr[IS_RESERVED], 7);
	end();
}

/* They are ready in memory, and delayed on disk. */
TEST(jobs_that_became_ready_are_purged_as_ready_ones)
{
	open_queue();
	put_many(100, 10 * SEC);
	client_put(0, 1, LONG, LONG);
	fake_advance(30 * SEC);
	settle();
	ASSERT_EQ(queue->nr[IS_READY], 100);
	ASSERT_EQ(purge(0, LIST_DELAYED), 1);
	ASSERT_EQ(purge(0, LIST_READY), 100);
	ASSERT_EQ(nr_of_all(queue->nr), 0);
	end();
}

TEST(two_purges_of_the_same_jobs_delete_each_once)
{
	open_queue();
	put_many(MANY, 0);
	begin_purge(0, LIST_READY);
	piece();
	begin_purge(1, LIST_READY);
	finish(0);
	finish(1);
	ASSERT_EQ(purged(0) + purged(1), MANY);
	ASSERT_EQ(queue->nr[IS_READY], 0);
	end();
}

TEST(a_purge_ends_where_it_is_when_its_client_leaves)
{
	open_queue();
	put_many(MANY, 0);
	begin_purge(0, LIST_READY);
	piece();
	client_hang_up(0);
	settle();
	ASSERT_GE(queue->nr[IS_READY], MANY - 512);
	end();
}

TEST(the_tube_of_a_purge_stays_until_it_ends)
{
	struct command command = { .op = OP_PURGE, .tube = "t", .state = LIST_READY };

	open_queue();
	client_run_tube(0, OP_USE, "t");
	put_many(1024, 0);
	client_run_tube(0, OP_USE, "default");
	client_begin(0, &command, NULL);
	turn();
	ASSERT(tube_find(queue, "t"));
	finish(0);
	ASSERT_EQ(purged(0), 1024);
	ASSERT(!tube_find(queue, "t"));
	end();
}

TEST(keys_of_purged_jobs_are_free_again)
{
	char key[16];
	size_t i;

	open_queue();
	for (i = 0; i < 2000; i++) {
		snprintf(key, sizeof(key), "k%zu", i);
		put_unique(0, OP_PUT_UNIQUE, key, 50 * SEC);
	}
	settle();
	ASSERT_EQ(purge(0, LIST_DELAYED), 2000);
	for (i = 0; i < 2000; i++) {
		snprintf(key, sizeof(key), "k%zu", i);
		ASSERT(!strncmp(put_unique(0, OP_KEEP_UNIQUE, key, 50 * SEC), "INSERTED", 8));
	}
	end();
}

TEST(a_job_that_is_replaced_while_its_purge_goes_on_is_a_new_one)
{
	char key[16];
	size_t i;

	open_queue();
	for (i = 0; i < 2000; i++) {
		snprintf(key, sizeof(key), "k%zu", i);
		put_unique(0, OP_PUT_UNIQUE, key, 50 * SEC);
	}
	settle();
	begin_purge(0, LIST_DELAYED);
	piece();
	/* The last one is still there, and is to be purged. */
	ASSERT(!strncmp(put_unique(1, OP_PUT_UNIQUE, "k1999", 50 * SEC), "INSERTED", 8));
	ASSERT(!strncmp(put_unique(1, OP_PUT_UNIQUE, "k1999", 50 * SEC), "REPLACED", 8));
	ASSERT(!strncmp(put_unique(1, OP_KEEP_UNIQUE, "k1998", 50 * SEC), "INSERTED", 8));
	finish(0);
	ASSERT_EQ(purged(0), 2000);
	ASSERT_EQ(queue->nr[IS_DELAYED], 2);
	end();
}

TEST(dead_jobs_are_purged_with_what_is_known_of_their_tube)
{
	struct command command = { .op = OP_PURGE, .tube = "t.dead", .state = LIST_BURIED };
	uint64_t id;

	open_queue();
	/* Tubes with an odd and an even number. */
	client_policy(0, "odd", 1, SEC);
	client_policy(0, "t", 1, SEC);
	client_run_tube(0, OP_USE, "t");
	client_run_tube(0, OP_WATCH, "t");
	id = client_put(0, 1, 0, LONG);
	ASSERT_EQ(client_reserve(0), id);
	ASSERT_SAID(client_run_id(0, OP_FAIL, id), "DEAD");
	client_begin(0, &command, NULL);
	finish(0);
	ASSERT_EQ(purged(0), 1);
	ASSERT(!tube_find(queue, "t.dead"));
	client_policy(0, "t", 0, 0);
	client_run_tube(0, OP_USE, "default");
	client_run_tube(0, OP_IGNORE, "t");
	ASSERT(!tube_find(queue, "t"));
	end();
}

/* A schedule whose last job is purged goes on at once. */
TEST(a_schedule_goes_on_when_its_job_is_purged)
{
	struct command command = {
		.op = OP_EVERY, .delay_ns = 10 * SEC, .due_ns = fake.now_ns[ALARM_WALL],
		.ttr_ns = LONG, .has_body = true, .body_len = 1, .key = "tick",
	};

	open_queue();
	client_run(0, &command, "x");
	settle();
	fake_advance(25 * SEC);
	settle();
	ASSERT_EQ(queue->stats.total_jobs, 1);
	ASSERT_EQ(purge(0, LIST_READY), 1);
	ASSERT_EQ(queue->stats.total_jobs, 2);
	end();
}
