// SPDX-License-Identifier: GPL-2.0
/*
 * The queue under pressure: many tubes, little memory, many sessions that wait, long kicks,
 * sessions that end, limits, keys, damage, and lists of jobs that change meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/test/queue_lib.h"
#include "queue/test/store_lib.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC
#define LONG	(100000 * SEC)

_Static_assert(sizeof(struct job) + sizeof(struct job *) <= 150, "a job in memory has grown");

/* The linker calls this in place of job_new(). */
struct job *__real_job_new(struct queue *of_queue, const struct job_place *place);
struct job *__wrap_job_new(struct queue *of_queue, const struct job_place *place);

static bool has_no_memory;

struct job *__wrap_job_new(struct queue *of_queue, const struct job_place *place)
{
	return has_no_memory ? NULL : __real_job_new(of_queue, place);
}

static void open_with(size_t nr_jobs)
{
	struct queue_config config = queue_test_config(nr_jobs);

	log_set_level(LOG_CRIT);
	queue_open(&config);
}

static void reopen(size_t nr_jobs, bool in_order)
{
	struct queue_config config = queue_test_config(nr_jobs);

	queue_reopen(&config, in_order);
}

static const char *tube_name(unsigned int n)
{
	static char name[16];

	snprintf(name, sizeof(name), "t%u", n);
	return name;
}

static void delete(unsigned int who, uint64_t id)
{
	ASSERT_SAID(client_run_id(who, OP_DELETE, id), "DELETED");
}

/* Run turns until the wait of @who is over. */
static void finish(unsigned int who)
{
	while (!clients[who].resumed)
		turn();
}

/* --- many tubes ---------------------------------------------------------------------- */

TEST(all_jobs_of_more_tubes_than_there_is_room_for_come_after_a_restart)
{
	const unsigned int nr = 1500;
	bool seen[1501] = { false };
	unsigned int i;
	uint64_t id;

	open_with(50000);
	for (i = 1; i <= nr; i++) {
		ASSERT_SAID(client_run_tube(0, OP_USE, tube_name(i)) + 6, tube_name(i));
		ASSERT_EQ(client_put(0, 1, i % 2 ? 0 : 1 * MSEC, LONG), i);
	}
	reopen(10, true);
	/* The default tube is one more: it is not on disk. */
	ASSERT_GT(queue->nr_tubes, queue->max_tubes);
	turn_for(5 * MSEC);
	for (i = 1; i <= nr; i++) {
		client_run_tube(1, OP_WATCH, tube_name(i));
		do {
			turn();
			id = client_reserve(1);
		} while (!id);
		ASSERT(!seen[id]);
		ASSERT_EQ(id, i);
		seen[id] = true;
		delete(1, id);
		client_run_tube(1, OP_IGNORE, tube_name(i));
	}
	ASSERT_SAID(client_run_tube(0, OP_USE, "another"), "USING another");
	queue_remove();
}

#define NR_WATCHED	999
#define NR_LONG		40

static uint32_t pris[NR_LONG * 300 + NR_WATCHED * 20 + 1];

/* Some tubes have more jobs than one load reads. */
static void fill_tubes(void)
{
	unsigned int tube, i, pri;

	for (tube = 1; tube <= NR_WATCHED; tube++) {
		client_run_tube(0, OP_USE, tube_name(tube));
		for (i = 0; i < (tube % 25 ? 20 : 300); i++) {
			pri = i * 31 % 7 + tube % 6 / 5;
			pris[client_put(0, pri, 0, LONG)] = pri;
		}
		turn();
	}
}

/* Its priority and id as one number. */
static uint64_t urgency(uint64_t id)
{
	return (uint64_t)pris[id] << 32 | id;
}

TEST(reserve_over_a_thousand_tubes_is_in_order_and_takes_little_memory)
{
	unsigned int tube, i;
	uint64_t id, last = 0;
	size_t most = 0;

	open_with(30000);
	fill_tubes();
	reopen(600, true);
	for (tube = 1; tube <= NR_WATCHED; tube++)
		ASSERT(strcmp(client_run_tube(0, OP_WATCH, tube_name(tube)),
			      "OUT_OF_MEMORY"));
	for (i = 0; i < 400; i++) {
		id = client_reserve(0);
		ASSERT_GT(urgency(id), last);
		last = urgency(id);
		if (queue->nr_resident > most)
			most = queue->nr_resident;
		ASSERT_LE(queue->nr_resident, queue->max_resident + NR_WATCHED + 256);
		turn();
		delete(0, id);
	}
	printf("# %zu jobs were in memory at most, with a limit of %zu\n", most,
	       queue->max_resident);
	settle();
	ASSERT_LE(queue->nr_resident, queue->max_resident);
	queue_remove();
}

/* --- waiting --------------------------------------------------------------------------- */

static void watch_only(unsigned int who, const char *first, const char *second)
{
	client_run_tube(who, OP_WATCH, first);
	if (second)
		client_run_tube(who, OP_WATCH, second);
	client_run_tube(who, OP_IGNORE, "default");
}

static uint64_t put_in(const char *tube, uint32_t pri, uint64_t delay_ns)
{
	client_run_tube(7, OP_USE, tube);
	return client_put(7, pri, delay_ns, LONG);
}

/* A session waits for jobs that become ready after @delay_ns. Returns the most urgent one. */
static uint64_t wait_for_some(uint64_t delay_ns)
{
	uint64_t best;

	watch_only(0, "a", "b");
	client_wait(0, LONG);
	put_in("a", 20, delay_ns);
	put_in("a", 5, delay_ns);
	put_in("b", 10, delay_ns);
	best = put_in("b", 2, delay_ns);
	put_in("c", 1, delay_ns);
	settle();
	return best;
}

TEST(waiting_session_gets_the_most_urgent_of_jobs_that_become_ready_together)
{
	uint64_t delay_ns, begin_ns, best;

	for (delay_ns = 10 * MSEC;; delay_ns *= 2) {
		open_with(1000);
		begin_ns = alarms_now_ns(ALARM_BOOT);
		best = wait_for_some(delay_ns);
		if (alarms_now_ns(ALARM_BOOT) < begin_ns + delay_ns)
			break;
		queue_remove();
	}
	/* All become ready in one call. */
	usleep(delay_ns / 1000 * 3 / 2);
	turn();
	ASSERT_EQ(clients[0].resumed, 1);
	ASSERT_EQ(client_got(0), best);
	queue_remove();
}

TEST(waiting_sessions_are_served_first_come_first_served)
{
	unsigned int i;
	uint64_t ids[4];

	open_with(1000);
	for (i = 0; i < 4; i++) {
		watch_only(i, i % 2 ? "a" : "b", i % 2 ? "b" : "a");
		client_wait(i, LONG);
	}
	for (i = 0; i < 4; i++) {
		ids[i] = put_in(i < 2 ? "a" : "b", 100 - i, 0);
		ASSERT_EQ(client_got(i), ids[i]);
	}
	/* A session that waits again is the last one. */
	client_wait(2, LONG);
	client_wait(0, LONG);
	ids[0] = put_in("a", 1, 0);
	ASSERT_EQ(client_got(2), ids[0]);
	ASSERT_EQ(clients[0].replies, 0);
	queue_remove();
}

/* The first session waits for jobs of "b" only, and has waited longest for them. */
TEST(session_that_waits_for_other_tubes_too_takes_no_job_from_one_that_waits_longer)
{
	uint64_t a, b;

	open_with(1000);
	watch_only(0, "b", NULL);
	client_wait(0, LONG);
	watch_only(1, "a", "b");
	client_wait(1, LONG);
	a = put_in("a", 10, 10 * MSEC);
	b = put_in("b", 1, 10 * MSEC);
	settle();
	usleep(15000);
	turn();
	ASSERT_EQ(client_got(0), b);
	ASSERT_EQ(client_got(1), a);
	queue_remove();
}

/* --- kick ------------------------------------------------------------------------------ */

#define NR_KICKED	10000

static void bury_all(unsigned int nr)
{
	struct command bury = { .op = OP_BURY };
	unsigned int i;

	for (i = 0; i < nr; i++) {
		client_put(0, i % 3, 0, LONG);
		bury.id = client_reserve(0);
		ASSERT_SAID(client_run(0, &bury, NULL), "BURIED");
		if (i % 256 == 0)
			turn();
	}
}

static const struct command kick_all = { .op = OP_KICK, .count = 1000000 };

TEST(long_kick_waits_and_does_not_delay_other_sessions)
{
	unsigned int between = 0;

	open_with(1000);
	bury_all(NR_KICKED);
	put_in("default", 1, LONG);
	ASSERT(!client_begin(1, &kick_all, NULL));
	ASSERT_LT(queue->nr[IS_READY], NR_KICKED / 10);
	while (!clients[1].resumed) {
		turn();
		ASSERT_GT(client_put(2, 1, LONG, LONG), NR_KICKED);
		between++;
	}
	ASSERT_SAID(clients[1].line, "KICKED 10000");
	ASSERT_GT(between, 10);
	ASSERT_EQ(queue->nr[IS_READY], NR_KICKED);
	/* Delayed jobs are unchanged; they are kicked when no job is buried. */
	ASSERT_EQ(queue->nr[IS_DELAYED], between + 1);
	if (!client_begin(1, &kick_all, NULL))
		finish(1);
	ASSERT_EQ(queue->nr[IS_DELAYED], 0);
	ASSERT_EQ(queue->nr[IS_READY], NR_KICKED + between + 1);
	settle();
	ASSERT_LE(queue->nr_resident, queue->max_resident);
	queue_remove();
}

TEST(session_that_ends_during_a_kick_leaves_the_rest)
{
	uint64_t left;

	open_with(1000);
	bury_all(1000);
	ASSERT(!client_begin(1, &kick_all, NULL));
	ASSERT(!client_begin(2, &kick_all, NULL));
	turn();
	client_leave(1);
	client_leave(2);
	settle();
	left = queue->nr[IS_BURIED];
	ASSERT_GT(left, 100);
	ASSERT_EQ(queue->nr[IS_READY], 1000 - left);
	queue_remove();
}

static unsigned long kicked_by(unsigned int who)
{
	static const char word[] = "KICKED ";

	ASSERT(!strncmp(clients[who].line, word, strlen(word)));
	return strtoul(clients[who].line + strlen(word), NULL, 10);
}

TEST(two_kicks_at_a_time_kick_each_job_once)
{
	open_with(1000);
	bury_all(1000);
	ASSERT(!client_begin(1, &kick_all, NULL));
	ASSERT(!client_begin(2, &kick_all, NULL));
	finish(1);
	finish(2);
	ASSERT_EQ(kicked_by(1) + kicked_by(2), 1000);
	ASSERT_EQ(queue->nr[IS_READY], 1000);
	queue_remove();
}

static void die(unsigned int who, uint64_t id)
{
	struct command fail = { .op = OP_FAIL, .id = id };

	ASSERT_SAID(client_run(who, &fail, NULL), "DEAD");
}

TEST(kick_moves_dead_jobs_to_their_first_tube)
{
	unsigned int i;

	open_with(1000);
	client_policy(0, "a", 1, 1 * SEC);
	client_policy(0, "b", 1, 1 * SEC);
	watch_only(1, "a", "b");
	for (i = 1; i <= 400; i++) {
		put_in(i % 2 ? "a" : "b", 1, 0);
		die(1, client_reserve(1));
	}
	ASSERT_EQ(tube_find(queue, "a.dead")->nr[IS_BURIED], 200);
	ASSERT_EQ(client_stat(0, 1, "attempts"), 1);
	reopen(1000, true);
	client_run_tube(1, OP_USE, "a.dead");
	if (!client_begin(1, &kick_all, NULL))
		finish(1);
	ASSERT_SAID(clients[1].line, "KICKED 200");
	ASSERT_EQ(tube_find(queue, "a")->nr[IS_READY], 200);
	ASSERT_EQ(tube_find(queue, "b.dead")->nr[IS_BURIED], 200);
	ASSERT_EQ(client_stat(0, 1, "attempts"), 0);
	ASSERT_SAID(client_run_id(0, OP_KICK_JOB, 2), "KICKED");
	ASSERT_EQ(tube_find(queue, "b")->nr[IS_READY], 1);
	queue_remove();
}

/* --- tubes that nothing refers to --------------------------------------------------------- */

/* A job of tube "a" dies; then nothing but its origin refers to the tube. */
static uint64_t die_in_a(void)
{
	uint64_t id;

	client_policy(0, "a", 1, 1 * SEC);
	id = put_in("a", 1, 0);
	client_run_tube(7, OP_USE, "default");
	client_run_tube(1, OP_WATCH, "a");
	ASSERT_EQ(client_reserve(1), id);
	die(1, id);
	client_run_tube(1, OP_IGNORE, "a");
	return id;
}

static void take_policy_away(const char *tube)
{
	client_policy(0, tube, 0, 0);
}

TEST(tube_without_a_policy_stays_while_dead_jobs_came_from_it)
{
	uint64_t first, second;

	open_with(1000);
	first = die_in_a();
	second = die_in_a();
	take_policy_away("a");
	reopen(1000, true);
	ASSERT(tube_find(queue, "a"));
	ASSERT_SAID(client_run_id(0, OP_KICK_JOB, first), "KICKED");
	ASSERT_EQ(tube_find(queue, "a")->nr[IS_READY], 1);
	delete(0, first);
	ASSERT(tube_find(queue, "a"));
	reopen(1000, true);
	ASSERT(tube_find(queue, "a"));
	delete(0, second);
	ASSERT(!tube_find(queue, "a"));
	ASSERT(!tube_find(queue, "a.dead"));
	reopen(1000, true);
	ASSERT(!tube_find(queue, "a"));
	queue_remove();
}

TEST(dead_job_that_is_reserved_and_deleted_frees_its_first_tube)
{
	uint64_t id;

	open_with(1000);
	id = die_in_a();
	take_policy_away("a");
	client_run_id(2, OP_RESERVE_JOB, id);
	ASSERT_SAID(client_release(2, id, 1, 0), "RELEASED");
	client_run_id(2, OP_RESERVE_JOB, id);
	ASSERT(tube_find(queue, "a"));
	delete(2, id);
	ASSERT(!tube_find(queue, "a"));
	queue_remove();
}

TEST(tubes_that_policies_have_used_up_are_given_back)
{
	unsigned int i, nr = 0;

	open_with(10);
	while (queue->nr_tubes < queue->max_tubes) {
		ASSERT_EQ(queue->tubes_warned, queue->nr_tubes >= queue->max_tubes / 5 * 4);
		client_policy(0, tube_name(++nr), 1, 1 * SEC);
	}
	reopen(10, true);
	ASSERT(queue->tubes_warned);
	ASSERT_SAID(client_run_tube(0, OP_USE, "new"), "OUT_OF_MEMORY");
	/* A tube that is not there is not made. */
	take_policy_away("other");
	for (i = 1; i <= nr; i++)
		take_policy_away(tube_name(i));
	ASSERT_EQ(queue->nr_tubes, 1);
	ASSERT(!queue->tubes_warned);
	ASSERT_SAID(client_run_tube(0, OP_USE, "new"), "USING new");
	reopen(10, true);
	ASSERT_EQ(queue->nr_tubes, 1);
	queue_remove();
}

/* --- sessions that end ------------------------------------------------------------------- */

static void reserve_thousand(void)
{
	unsigned int i;

	open_with(4000);
	for (i = 0; i < 1000; i++)
		client_put(0, 1, 0, LONG);
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(client_reserve(1), i + 1);
	settle();
}

TEST(jobs_of_a_session_that_ends_come_back_a_piece_a_turn)
{
	uint64_t before = 0;

	reserve_thousand();
	client_leave(1);
	while (queue->nr[IS_RESERVED]) {
		turn();
		ASSERT_GT(queue->nr[IS_READY], before);
		ASSERT_LE(queue->nr[IS_READY], before + 128);
		before = queue->nr[IS_READY];
	}
	ASSERT_EQ(before, 1000);
	ASSERT_EQ(client_stat(0, 500, "reserves"), 1);
	ASSERT_EQ(client_stat(0, 500, "attempts"), 0);
	reopen(1000, true);
	ASSERT_EQ(queue->nr[IS_READY], 1000);
	ASSERT_EQ(client_stat(0, 500, "reserves"), 1);
	ASSERT_EQ(client_stat(0, 500, "attempts"), 0);
	queue_remove();
}

TEST(reserved_jobs_are_ready_with_the_same_attempts_after_a_restart)
{
	uint64_t id;

	reserve_thousand();
	queue_stop(queue);
	client_leave(1);
	/* A turn of a daemon that stops gives no job back. */
	ASSERT_EQ(client_reserve(2), 0);
	turn();
	ASSERT_EQ(client_reserve(2), 0);
	reopen(1000, true);
	ASSERT_EQ(queue->nr[IS_READY], 1000);
	for (id = 1; id <= 1000; id++) {
		ASSERT_EQ(client_stat(0, id, "reserves"), 1);
		ASSERT_EQ(client_stat(0, id, "attempts"), 0);
	}
	queue_remove();
}

/* --- limits and keys --------------------------------------------------------------------- */

static const char *put_unique(unsigned int who, const char *key, uint64_t delay_ns)
{
	struct command command = { .op = OP_PUT_UNIQUE, .delay_ns = delay_ns, .ttr_ns = LONG,
				   .has_body = true, .body_len = 1 };

	strcpy(command.key, key);
	return client_run(who, &command, "1");
}

static const char *try_put(unsigned int who)
{
	struct command command = { .op = OP_PUT, .ttr_ns = LONG };

	return client_run(who, &command, "");
}

TEST(limits_of_jobs_hold_in_all_states_and_over_a_restart)
{
	struct queue_config config = queue_test_config(1000);
	unsigned int i;

	config.max_jobs = 20;
	config.max_tube_jobs = 10;
	queue_open(&config);
	bury_all(2);
	for (i = 0; i < 4; i++)
		client_put(0, 1, i % 2 * LONG, LONG);
	ASSERT(client_reserve(1));
	client_put_at(0, alarms_now_ns(ALARM_WALL) + LONG);
	ASSERT_SAID(put_unique(0, "k", 0), "INSERTED 8");
	client_put(0, 1, 0, LONG);
	client_put(0, 1, 0, LONG);
	ASSERT_SAID(try_put(0), "OUT_OF_MEMORY");
	ASSERT_SAID(put_unique(0, "other", 0), "OUT_OF_MEMORY");
	/* Replacing adds no job. */
	ASSERT_SAID(put_unique(0, "k", LONG), "REPLACED 8");
	queue_reopen(&config, true);
	ASSERT_SAID(try_put(0), "OUT_OF_MEMORY");
	client_run_tube(2, OP_USE, "second");
	for (i = 0; i < 10; i++)
		client_put(2, 1, 0, LONG);
	ASSERT_SAID(try_put(2), "OUT_OF_MEMORY");
	delete(2, 11);
	ASSERT_SAID(try_put(0), "OUT_OF_MEMORY");
	client_run_tube(3, OP_USE, "third");
	ASSERT(strcmp(try_put(3), "OUT_OF_MEMORY"));
	ASSERT_SAID(try_put(3), "OUT_OF_MEMORY");
	ASSERT_EQ(queue->stats.refused_full, 4);
	queue_remove();
}

TEST(puts_without_memory_for_their_body_count_as_refused)
{
	struct command put = { .op = OP_PUT, .has_body = true };
	struct command fail = { .op = OP_FAIL, .has_body = true };

	open_with(1000);
	peer_lacks_memory(&clients[0].peer, &put);
	peer_lacks_memory(&clients[0].peer, &fail);
	ASSERT_EQ(queue->stats.refused_full, 1);
	queue_remove();
}

static void keys_are_unique(const char *key)
{
	struct command bury = { .op = OP_BURY, .id = 1 };
	struct command fail = { .op = OP_FAIL, .id = 1 };

	open_with(1000);
	client_policy(0, "default", 2, 1 * MSEC);
	ASSERT_SAID(put_unique(0, key, 0), "INSERTED 1");
	ASSERT_SAID(put_unique(1, key, 0), "REPLACED 1");
	ASSERT_SAID(put_unique(1, key, LONG), "REPLACED 1");
	reopen(1000, true);
	ASSERT_SAID(put_unique(1, key, 0), "REPLACED 1");
	/* Another tube has keys of its own. */
	client_run_tube(2, OP_USE, "other");
	ASSERT_SAID(put_unique(2, key, LONG), "INSERTED 2");
	ASSERT_EQ(client_reserve(0), 1);
	ASSERT_SAID(put_unique(1, key, 0), "RESERVED 1");
	ASSERT_SAID(client_run(0, &bury, NULL), "BURIED");
	ASSERT_SAID(put_unique(1, key, 0), "REPLACED 1");
	ASSERT_EQ(queue->nr[IS_BURIED], 0);
	ASSERT_EQ(client_reserve(0), 1);
	reopen(1000, true);
	ASSERT_SAID(put_unique(1, key, 0), "REPLACED 1");
	ASSERT_EQ(client_reserve(0), 1);
	ASSERT_SAID(client_run(0, &fail, NULL), "RETRY 1 1");
	while (client_reserve(0) != 1)
		turn_for(1 * MSEC);
	die(0, 1);
	ASSERT_SAID(put_unique(1, key, 0), "INSERTED 3");
	reopen(1000, true);
	client_run_tube(2, OP_USE, "other");
	ASSERT_SAID(client_run_id(0, OP_KICK_JOB, 1), "KICKED");
	ASSERT_SAID(put_unique(1, key, LONG), "REPLACED 3");
	/* The job that came back has no key any more, and deleting it removes none. */
	ASSERT_EQ(client_reserve(0), 1);
	delete(0, 1);
	ASSERT_SAID(put_unique(1, key, LONG), "REPLACED 3");
	delete(0, 3);
	ASSERT_SAID(put_unique(1, key, LONG), "INSERTED 4");
	ASSERT_SAID(put_unique(2, key, LONG), "REPLACED 2");
	queue_remove();
}

TEST(key_of_one_byte_is_unique_in_all_states_over_restart_and_death)
{
	keys_are_unique("k");
}

TEST(key_of_two_hundred_bytes_is_unique_in_all_states_over_restart_and_death)
{
	char key[JOB_KEY_MAX + 1] = "";

	memset(key, 'x', JOB_KEY_MAX);
	keys_are_unique(key);
}

/* --- damage ------------------------------------------------------------------------------- */

static void damage(char kind, uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];

	put_garbage(store, key, store_key_id(key, kind, id));
}

static void lose_body(uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];

	lose(store, key, store_key_id(key, 'p', id));
}

static void damage_entry(uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];
	struct job_record record;

	ASSERT_EQ(store_get(store, id, &record), 0);
	put_garbage(store, key, store_key_place(key, &record.place));
}

/* Some of the damaged jobs are in memory, others on disk only. */
TEST(jobs_behind_damaged_ready_ones_are_reserved)
{
	static const uint64_t damaged[] = { 1, 5, 10, 300, 310, 320, 321 };
	bool seen[601] = { false };
	unsigned int i, nr = 0;
	uint64_t id;

	open_with(100);
	for (i = 0; i < 600; i++)
		client_put(0, 1, 0, LONG);
	settle();
	ASSERT(!job_resident(queue, 300));
	damage('j', 1);
	lose_body(5);
	damage_entry(10);	/* in memory */
	damage_entry(300);
	damage('j', 310);
	lose_body(320);
	damage('j', 321);
	while ((id = client_reserve(0))) {
		ASSERT(!seen[id]);
		seen[id] = true;
		nr++;
		delete(0, id);
		turn();
	}
	for (i = 0; i < ARRAY_SIZE(damaged); i++)
		ASSERT_EQ(seen[damaged[i]], damaged[i] == 10);
	ASSERT_EQ(nr, 594);
	ASSERT_EQ(queue->nr[IS_BROKEN], 5);
	ASSERT_SAID(client_run_id(0, OP_RESERVE_JOB, 1), "INTERNAL_ERROR");
	ASSERT_SAID(client_run_id(0, OP_DELETE, 321), "INTERNAL_ERROR");
	queue_remove();
}

TEST(damaged_jobs_of_a_holder_are_set_aside_and_the_others_come_back)
{
	struct command fail = { .op = OP_FAIL, .id = 2 };
	unsigned int i;

	open_with(100);
	for (i = 0; i < 10; i++)
		client_put(0, 1, 0, i < 5 ? LONG : 20 * MSEC);
	for (i = 0; i < 10; i++)
		ASSERT(client_reserve(1));
	damage('j', 1);
	damage('j', 2);
	damage('j', 7);
	ASSERT_SAID(client_release(1, 1, 1, 0), "INTERNAL_ERROR");
	ASSERT_SAID(client_run_id(1, OP_TOUCH, 1), "INTERNAL_ERROR");
	ASSERT_SAID(client_run(1, &fail, NULL), "INTERNAL_ERROR");
	while (queue->nr[IS_READY] + queue->nr[IS_BROKEN] < 5)
		turn();
	ASSERT_EQ(queue->nr[IS_READY], 4);
	ASSERT_EQ(queue->nr[IS_BROKEN], 1);
	client_leave(1);
	settle();
	ASSERT_EQ(queue->nr[IS_READY], 7);
	ASSERT_EQ(queue->nr[IS_BROKEN], 3);
	ASSERT_EQ(queue->nr[IS_RESERVED], 0);
	queue_remove();
}

TEST(memory_is_bounded_with_more_damaged_jobs_than_fit)
{
	unsigned int i;

	open_with(50);
	for (i = 1; i <= 60; i++) {
		client_put(0, 1, 0, LONG);
		damage('j', i);
		ASSERT_EQ(client_reserve(1), 0);
	}
	ASSERT_EQ(queue->nr[IS_BROKEN], 60);
	for (i = 0; i < 500; i++) {
		client_put(0, 1, i % 2 * LONG, LONG);
		turn();
		ASSERT_LE(queue->nr_resident, 61);
	}
	for (i = 0; i < 30; i++)
		ASSERT(client_reserve(0));
	queue_remove();
}

TEST(jobs_for_which_there_was_no_memory_come_in_their_order)
{
	open_with(1000);
	client_put(0, 1, 0, LONG);
	client_put(0, 2, 0, LONG);
	has_no_memory = true;
	client_put(0, 1, 0, LONG);
	client_put(0, 3, 0, LONG);
	has_no_memory = false;
	client_put(0, 2, 0, LONG);
	client_put(0, 4, 0, LONG);
	ASSERT_EQ(client_reserve(1), 1);
	ASSERT_EQ(client_reserve(1), 3);
	ASSERT_EQ(client_reserve(1), 2);
	ASSERT_EQ(client_reserve(1), 5);
	ASSERT_EQ(client_reserve(1), 4);
	ASSERT_EQ(client_reserve(1), 6);
	queue_remove();
}

TEST(kick_skips_damaged_jobs)
{
	struct command kick = { .op = OP_KICK, .count = 1 };
	unsigned int i;

	open_with(1000);
	bury_all(200);
	for (i = 1; i <= 99; i++)
		damage('j', i);
	damage('j', 200);
	damage_entry(100);
	ASSERT(client_begin(1, &kick, NULL) || (finish(1), true));
	ASSERT_SAID(clients[1].line, "KICKED 1");
	kick.count = 1000;
	ASSERT(client_begin(1, &kick, NULL) || (finish(1), true));
	ASSERT_SAID(clients[1].line, "KICKED 98");
	ASSERT_EQ(queue->nr[IS_READY], 99);
	queue_remove();
}

/* --- pages -------------------------------------------------------------------------------- */

#define NR_LISTED	600

/* Jobs in a state; every third one leaves it while the pages are read. */
static void fill_state(enum list_state state)
{
	struct command bury = { .op = OP_BURY };
	uint64_t id;

	for (id = 1; id <= NR_LISTED; id++) {
		if (state == LIST_DELAYED && id % 2)
			client_put_at(0, alarms_now_ns(ALARM_WALL) + LONG + id % 50 * SEC);
		else
			client_put(0, id % 7, state == LIST_DELAYED ? LONG : 0, LONG);
		turn();
	}
	if (state != LIST_BURIED && state != LIST_RESERVED)
		return;
	while ((bury.id = client_reserve(0)))
		if (state == LIST_BURIED)
			ASSERT_SAID(client_run(0, &bury, NULL), "BURIED");
}

/* Sometimes a job comes, and some leave that are not the last of the page. */
static void change_some(enum list_state state, unsigned int page, uint64_t cursor)
{
	uint64_t id;

	if (page % 3 == 0)
		client_put(0, page % 9, state == LIST_DELAYED ? LONG : 0, LONG);
	if (state == LIST_RESERVED)
		client_reserve(0);
	for (id = 3 + page * 9 % NR_LISTED; id < 12 + page * 9 % NR_LISTED; id += 3)
		if (id != cursor)
			client_run_id(0, OP_DELETE, id);
	turn();
}

static void pages_are_whole(enum list_state state)
{
	unsigned int seen[NR_LISTED * 2] = { 0 }, page = 0;
	uint64_t ids[16], cursor = 0, id;
	size_t nr, i;

	/* Reserved jobs must be in memory; of the other jobs few are. */
	open_with(state == LIST_RESERVED ? 1500 : 100);
	fill_state(state);
	while ((nr = client_list(1, "default", state, cursor, 13, ids))) {
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(seen[ids[i]], 0);
			seen[ids[i]]++;
		}
		cursor = ids[nr - 1];
		change_some(state, page++, cursor);
	}
	ASSERT_GT(page, 30);
	for (id = 1; id <= NR_LISTED; id++)
		if (id % 3)
			ASSERT_EQ(seen[id], 1);
	queue_remove();
}

TEST(pages_of_ready_jobs_are_complete_while_others_change)
{
	pages_are_whole(LIST_READY);
}

TEST(pages_of_reserved_jobs_are_complete_while_others_change)
{
	pages_are_whole(LIST_RESERVED);
}

TEST(pages_of_delayed_jobs_are_complete_while_others_change)
{
	pages_are_whole(LIST_DELAYED);
}

TEST(pages_of_buried_jobs_are_complete_while_others_change)
{
	pages_are_whole(LIST_BURIED);
}

static void cursor_is_lost(enum list_state state, uint64_t id)
{
	struct command list = { .op = OP_LIST_JOBS, .state = state, .id = id, .count = 10,
				.tube = "default" };

	ASSERT_SAID(client_run(1, &list, NULL), "NOT_FOUND");
}

/* The reply is not an empty page, which would say that it was the last. */
TEST(page_after_a_job_that_left_its_state_is_refused)
{
	struct command bury = { .op = OP_BURY, .id = 1 };
	uint64_t ids[16];

	open_with(100);
	client_put(0, 1, 0, LONG);
	client_put(0, 1, 0, LONG);
	client_put(0, 1, LONG, LONG);
	client_put(0, 1, LONG, LONG);
	cursor_is_lost(LIST_DELAYED, 1);
	cursor_is_lost(LIST_BURIED, 1);
	ASSERT_SAID(client_run_id(0, OP_KICK_JOB, 3), "KICKED");
	cursor_is_lost(LIST_DELAYED, 3);
	ASSERT_EQ(client_reserve(0), 1);
	/* A reserved job keeps its place. */
	ASSERT_EQ(client_list(1, "default", LIST_READY, 1, 10, ids), 2);
	ASSERT_SAID(client_run(0, &bury, NULL), "BURIED");
	cursor_is_lost(LIST_READY, 1);
	ASSERT_EQ(client_reserve(0), 2);
	ASSERT_SAID(client_release(0, 2, 1, LONG), "RELEASED");
	cursor_is_lost(LIST_READY, 2);
	cursor_is_lost(LIST_READY, 77);
	queue_remove();
}
