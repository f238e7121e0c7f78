// SPDX-License-Identifier: GPL-2.0
/*
 * The queue with clocks that the test sets: which delayed jobs are in memory, times to run,
 * and the wall clock.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "alarm/test/fake_alarm.h"
#include "common/log.h"
#include "queue/store/batch.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/test/queue_lib.h"
#include "queue/test/store_lib.h"

#define MSEC	NSEC_PER_MSEC
#define SEC	NSEC_PER_SEC
#define LONG	(100000 * SEC)

static void open_with(size_t nr_jobs)
{
	struct queue_config config = queue_test_config(nr_jobs);

	log_set_level(LOG_CRIT);
	queue_open(&config);
}

/* Reserve and delete all ready jobs. */
static size_t drain(uint64_t *ids, size_t room)
{
	size_t nr = 0;

	while (nr < room && (ids[nr] = client_reserve(0))) {
		ASSERT_SAID(client_run_id(0, OP_DELETE, ids[nr]), "DELETED");
		nr++;
	}
	return nr;
}

/* Advance ALARM_BOOT to @until_ns in steps, with all turns in each. */
static void go_to(uint64_t until_ns, uint64_t step_ns)
{
	while (fake.now_ns[ALARM_BOOT] < until_ns) {
		fake_advance(MIN(step_ns, until_ns - fake.now_ns[ALARM_BOOT]));
		settle();
	}
}

/* --- near jobs are in memory ------------------------------------------------------------ */

#define ROOM	256

/*
 * Put far jobs by one clock, ten times more than fit into memory, then near jobs by the other;
 * all are due within the window of 100 s. Each near job must be ready at its time.
 */
static void near_and_far(bool far_by_wall)
{
	uint64_t start_ns, ids[8], i;

	open_with(ROOM);
	start_ns = fake.now_ns[ALARM_BOOT];
	for (i = 0; i < ROOM * 10; i++) {
		if (far_by_wall)
			client_put_at(0, fake.now_ns[ALARM_WALL] + 30 * SEC + i * MSEC);
		else
			client_put(0, 1, 30 * SEC + i * MSEC, LONG);
		if (i % 16 == 0)
			turn();
	}
	settle();
	ASSERT_GT(queue->nr_armed, ROOM / 2);
	for (i = 1; i <= ROOM / 2; i++)
		if (far_by_wall)
			client_put(0, 1, i * 100 * MSEC, LONG);
		else
			client_put_at(0, fake.now_ns[ALARM_WALL] + i * 100 * MSEC);
	settle();
	for (i = 1; i <= ROOM / 2; i++) {
		/* It is in memory before it is due. */
		ASSERT(job_resident(queue, ROOM * 10 + i));
		fake_advance(100 * MSEC - 1);
		settle();
		ASSERT_EQ(queue->nr[IS_READY], 0);
		fake_advance(1);
		/* One call of queue_alarms() is enough. */
		queue_alarms(queue);
		ASSERT_EQ(drain(ids, 8), 1);
		ASSERT_EQ(ids[0], ROOM * 10 + i);
		settle();
		ASSERT_LE(queue->nr_resident, queue->max_resident);
	}
	/* And each far job at its time. */
	for (i = 0; i < ROOM * 10; i += 8) {
		go_to(start_ns + 30 * SEC + i * MSEC - 1, LONG);
		ASSERT_EQ(queue->nr[IS_READY], 0);
		go_to(start_ns + 30 * SEC + (i + 7) * MSEC, 1 * MSEC);
		ASSERT_EQ(queue->nr[IS_READY], 8);
		ASSERT_EQ(drain(ids, 8), 8);
		ASSERT_EQ(ids[0], i + 1);
		ASSERT_EQ(ids[7], i + 8);
	}
	queue_remove();
}

TEST(near_delays_come_in_time_with_many_far_wall_clock_jobs)
{
	near_and_far(true);
}

TEST(near_wall_clock_jobs_come_in_time_with_many_far_delays)
{
	near_and_far(false);
}

/* An idle queue loads and evicts nothing. */
static void check_settled(void)
{
	uint64_t loaded, evicted, i;

	settle();
	loaded = queue->stats.loaded;
	evicted = queue->stats.evicted;
	for (i = 0; i < 100; i++)
		ASSERT(!turn());
	ASSERT_EQ(queue->stats.loaded, loaded);
	ASSERT_EQ(queue->stats.evicted, evicted);
	ASSERT_LE(queue->nr_resident, queue->max_resident);
}

TEST(idle_queue_with_reserved_and_delayed_jobs_over_its_limit_settles)
{
	size_t i;

	open_with(1000);
	for (i = 0; i < 600; i++)
		client_put(0, 1, 0, LONG);
	for (i = 0; i < 600; i++)
		ASSERT(client_reserve(i % 4));
	for (i = 0; i < 3000; i++) {
		client_put(0, 1, 20 * SEC + i * MSEC, LONG);
		client_put_at(0, fake.now_ns[ALARM_WALL] + 20 * SEC + i * MSEC);
	}
	check_settled();
	ASSERT_GT(queue->nr_armed, 0);
	queue_remove();
}

/* Each tube has a ready job in memory; these fill the room that delayed jobs need. */
TEST(idle_queue_with_reserved_delayed_and_ready_jobs_of_many_tubes_settles)
{
	char name[16];
	size_t i;

	open_with(1000);
	for (i = 0; i < 600; i++)
		client_put(0, 1, 0, LONG);
	for (i = 0; i < 600; i++)
		ASSERT(client_reserve(0));
	for (i = 0; i < 3000; i++)
		client_put(0, 1, 20 * SEC + i * MSEC, LONG);
	settle();
	for (i = 0; i < 700; i++) {
		snprintf(name, sizeof(name), "t%zu", i);
		client_run_tube(1, OP_USE, name);
		client_put(1, 1, 0, LONG);
		client_run(1, &(struct command){ .op = OP_PEEK_READY }, NULL);
	}
	check_settled();
	ASSERT_GT(queue->nr_armed, 0);
	queue_remove();
}

/* One window evicts jobs for the other one, and would load them again. */
TEST(idle_queue_with_far_delays_and_denser_near_wall_clock_jobs_settles)
{
	size_t i;

	open_with(300);
	for (i = 0; i < 150; i++)
		client_put(0, 1, 55 * SEC + i * 250 * MSEC, LONG);
	for (i = 0; i < 2000; i++) {
		client_put_at(0, fake.now_ns[ALARM_WALL] + 30 * SEC + i * 10 * MSEC);
		turn();
	}
	check_settled();
	queue_remove();
}

/* Damage the index entry of a job that is not in memory. */
static void damage_entry(uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];
	struct job_record record;

	ASSERT(!job_resident(queue, id));
	ASSERT_EQ(store_get(store, id, &record), 0);
	put_garbage(store, key, store_key_place(key, &record.place));
}

TEST(delayed_jobs_behind_a_damaged_one_come_in_time)
{
	size_t i;

	open_with(500);
	for (i = 0; i < 3000; i++) {
		client_put(0, 1, 10 * SEC + i * MSEC, LONG);
		turn();
	}
	settle();
	damage_entry(1000);
	damage_entry(1001);
	damage_entry(2000);
	fake_advance(10 * SEC);
	for (i = 0; i < 3000; i++) {
		settle();
		ASSERT_EQ(client_reserve(0), i == 999 || i == 1000 || i == 1999 ? 0 : i + 1);
		if (clients[0].len)
			ASSERT_SAID(client_run_id(0, OP_DELETE, i + 1), "DELETED");
		fake_advance(1 * MSEC);
	}
	queue_remove();
}

/* --- the limit of memory ----------------------------------------------------------------- */

static void random_command(void)
{
	unsigned int who = rand() % 4;
	uint64_t id;

	if (clients[who].peer.session.kicks_left)
		return;
	switch (rand() % 8) {
	case 0 ... 2:
		client_put(who, rand() % 5, rand() % 2000 * 100 * MSEC, 10 * SEC);
		break;
	case 3:
		client_put_at(who, fake.now_ns[ALARM_WALL] + rand() % 200 * SEC);
		break;
	case 4:
		client_put(who, rand() % 5, 0, 1 * SEC);
		break;
	case 5:
		id = client_reserve(who);
		if (id && rand() % 2)
			client_release(who, id, rand() % 5, rand() % 3 * 20 * SEC);
		break;
	case 6:
		client_run_tube(who, OP_USE, rand() % 2 ? "default" : "b");
		break;
	case 7:
		client_begin(who, &(struct command){ .op = OP_KICK, .count = 3 }, NULL);
		break;
	}
}

static void run_at_random(unsigned int seed)
{
	unsigned long i, n = test_count(20000);

	open_with(300);
	srand(seed);
	test_about("seed %u", seed);
	client_run_tube(1, OP_WATCH, "b");
	for (i = 0; i < n; i++) {
		random_command();
		/* A command adds one job, and a tube's first one. */
		ASSERT_LE(queue->nr_resident, queue->max_resident + 256 + 8);
		if (rand() % 4 == 0) {
			fake_advance(rand() % 400 * MSEC);
			turn();
			ASSERT_LE(queue->nr_resident, queue->max_resident + 256);
		}
		if (rand() % 50 == 0) {
			settle();
			ASSERT_LE(queue->nr_resident, queue->max_resident);
		}
	}
	printf("# %zu jobs were in memory at most, with a limit of %zu, of %llu\n",
	       max_seen_resident, queue->max_resident,
	       (unsigned long long)queue->stats.total_jobs);
	queue_remove();
}

TEST(memory_exceeds_its_limit_by_the_jobs_of_one_turn_at_most)
{
	run_at_random(getpid());
}

/* With this seed each window once loaded into the room that the other had made, for ever. */
TEST(queue_settles_in_a_run_that_had_windows_take_each_others_room)
{
	run_at_random(16803);
}

/* A far job that is reserved by its id is in memory; the disk has it as a delayed one. */
TEST(a_turn_passes_no_more_than_a_piece_of_reserved_jobs)
{
	unsigned int i;

	open_with(4000);
	for (i = 0; i < 1000; i++)
		client_put(0, 1, LONG, 2 * LONG);
	settle();
	for (i = 1; i <= 1000; i++)
		ASSERT(!strncmp(client_run_id(1, OP_RESERVE_JOB, i), "RESERVED ", 9));
	settle();
	fake_advance(LONG);
	queue_alarms(queue);
	turn();
	ASSERT_GT(queue->windows[0].cut.id, 0);
	ASSERT_LE(queue->windows[0].cut.id, 257);
	queue_remove();
}

/* --- order ------------------------------------------------------------------------------- */

#define NR_MANY	10000

/* Jobs are put in any order, due a millisecond apart. They come by due time, never early. */
static void come_in_order(size_t room)
{
	uint64_t start_ns, ids[64], due[64];
	size_t i, j, nr;

	open_with(room);
	start_ns = fake.now_ns[ALARM_BOOT];
	for (i = 0; i < NR_MANY; i++) {
		client_put(0, 1, (1 + i * 7919 % NR_MANY) * MSEC, LONG);
		if (i % 64 == 0)
			turn();
	}
	settle();
	for (i = 0; i < NR_MANY; i += nr) {
		fake_advance(20 * MSEC);
		settle();
		nr = drain(ids, ARRAY_SIZE(ids));
		ASSERT_GT(nr, 0);
		/* They became ready together, so they come by id: order them by due time. */
		memset(due, 0, sizeof(due));
		for (j = 0; j < nr; j++) {
			uint64_t at = 1 + (ids[j] - 1) * 7919 % NR_MANY;

			ASSERT_GE(fake.now_ns[ALARM_BOOT], start_ns + at * MSEC);
			ASSERT(at > i && at <= i + nr);
			ASSERT_EQ(due[at - i - 1]++, 0);
		}
		settle();
	}
	ASSERT_EQ(queue->nr[IS_DELAYED], 0);
	queue_remove();
}

TEST(delayed_jobs_that_are_all_in_memory_come_in_order)
{
	come_in_order(NR_MANY * 2);
}

TEST(delayed_jobs_with_room_for_few_in_memory_come_in_order)
{
	come_in_order(256);
}

TEST(near_jobs_push_far_ones_out_of_memory)
{
	uint64_t ids[64];
	size_t i;

	open_with(100);
	for (i = 0; i < 300; i++)
		client_put(0, 1, 20 * SEC + i * MSEC, LONG);
	settle();
	for (i = 0; i < 50; i++)
		client_put(0, 1, 1 * SEC + i * MSEC, LONG);
	settle();
	fake_advance(1 * SEC + 49 * MSEC);
	queue_alarms(queue);
	ASSERT_EQ(drain(ids, ARRAY_SIZE(ids)), 50);
	ASSERT_EQ(ids[0], 301);
	ASSERT_EQ(ids[49], 350);
	queue_remove();
}

/* --- times to run ------------------------------------------------------------------------ */

/* Most of the jobs in memory are reserved; most of the delayed ones are on disk only. */
TEST(times_to_run_end_in_time_beside_more_delayed_jobs_than_fit)
{
	size_t i;

	open_with(100);
	for (i = 0; i < 60; i++)
		client_put(0, 1, 0, 5 * SEC);
	for (i = 0; i < 1000; i++)
		client_put(0, 1, 10 * SEC + i * MSEC, LONG);
	settle();
	for (i = 0; i < 60; i++)
		ASSERT(client_reserve(0));
	settle();
	fake_advance(5 * SEC - 1);
	settle();
	ASSERT_EQ(queue->nr[IS_RESERVED], 60);
	fake_advance(1);
	queue_alarms(queue);
	ASSERT_EQ(queue->nr[IS_RESERVED], 0);
	ASSERT_EQ(queue->nr[IS_READY], 60);
	queue_remove();
}

TEST(pause_delay_wall_clock_time_and_wait_end_at_their_times)
{
	struct command pause = { .op = OP_PAUSE_TUBE, .delay_ns = 2 * SEC, .tube = "paused" };
	uint64_t ids[8];

	open_with(1000);
	client_run_tube(1, OP_USE, "paused");
	client_run_tube(1, OP_WATCH, "paused");
	ASSERT_SAID(client_run(1, &pause, NULL), "PAUSED");
	client_put(1, 1, 0, LONG);
	client_put(0, 1, 1 * SEC, LONG);
	client_put_at(0, fake.now_ns[ALARM_WALL] + 1 * SEC);
	client_run_tube(2, OP_WATCH, "nothing");
	client_run_tube(2, OP_IGNORE, "default");
	client_wait(2, 2 * SEC);
	settle();
	fake_advance(1 * SEC - 1);
	settle();
	ASSERT_EQ(queue->nr[IS_DELAYED], 2);
	fake_advance(1);
	settle();
	ASSERT_EQ(drain(ids, 8), 2);
	fake_advance(1 * SEC - 1);
	settle();
	ASSERT_EQ(client_reserve(1), 0);
	ASSERT_EQ(clients[2].replies, 0);
	fake_advance(1);
	settle();
	ASSERT_EQ(client_reserve(1), 1);
	ASSERT_SAID(clients[2].line, "TIMED_OUT");
	check_settled();
	queue_remove();
}

TEST(jobs_that_are_ready_or_taken_late_are_counted_with_how_late_they_are)
{
	uint64_t id;

	open_with(1000);
	client_put(0, 1, 10 * SEC, LONG);
	settle();
	fake_advance(14 * SEC);
	settle();
	fake_advance(2 * SEC);
	ASSERT_EQ(drain(&id, 1), 1);
	ASSERT_EQ(queue->stats.ready_late.count, 1);
	ASSERT_EQ(queue->stats.ready_late.sum_ns, 4 * SEC);
	ASSERT_EQ(queue->stats.reserved_late.count, 1);
	ASSERT_EQ(queue->stats.reserved_late.sum_ns, 6 * SEC);
	queue_remove();
}

TEST(time_to_run_that_ends_while_the_holder_is_gone_makes_the_job_ready_once)
{
	uint64_t ids[512];
	size_t i;

	open_with(1000);
	for (i = 0; i < 300; i++)
		client_put(0, 1, 0, 1 * SEC);
	for (i = 0; i < 300; i++)
		ASSERT(client_reserve(1));
	client_leave(1);
	/* This is before the first turn gives a piece of them back. */
	fake_advance(1 * SEC);
	queue_alarms(queue);
	settle();
	ASSERT_EQ(queue->nr[IS_READY], 300);
	ASSERT_EQ(drain(ids, ARRAY_SIZE(ids)), 300);
	queue_remove();
}

/* Its time to run is over, and queue_alarms() has not run yet. */
TEST(commands_work_until_the_end_of_a_time_to_run_is_handled)
{
	uint64_t touched, released, buried;

	open_with(1000);
	client_put(0, 1, 0, 1 * SEC);
	client_put(0, 1, 0, 1 * SEC);
	client_put(0, 1, 0, 1 * SEC);
	touched = client_reserve(0);
	released = client_reserve(0);
	buried = client_reserve(0);
	settle();
	fake_advance(1 * SEC);
	ASSERT_SAID(client_run_id(0, OP_TOUCH, touched), "TOUCHED");
	ASSERT_SAID(client_release(0, released, 1, 0), "RELEASED");
	ASSERT_SAID(client_run_id(0, OP_BURY, buried), "BURIED");
	settle();
	ASSERT_EQ(queue->stats.job_timeouts, 0);
	ASSERT_EQ(queue->nr[IS_RESERVED], 1);
	ASSERT_EQ(queue->nr[IS_READY], 1);
	ASSERT_EQ(queue->nr[IS_BURIED], 1);
	fake_advance(1 * SEC - 1);
	settle();
	ASSERT_EQ(queue->nr[IS_RESERVED], 1);
	fake_advance(1);
	settle();
	ASSERT_EQ(queue->stats.job_timeouts, 1);
	ASSERT_SAID(client_run_id(0, OP_TOUCH, touched), "NOT_FOUND");
	ASSERT_EQ(queue->nr[IS_READY], 2);
	queue_remove();
}

TEST(waiting_session_is_warned_a_second_before_its_time_to_run_is_over)
{
	open_with(1000);
	client_put(0, 1, 0, 10 * SEC);
	ASSERT(client_reserve(0));
	client_wait(0, LONG);
	settle();
	fake_advance(9 * SEC - 1);
	settle();
	ASSERT_EQ(clients[0].replies, 0);
	fake_advance(1);
	settle();
	ASSERT_EQ(clients[0].resumed, 1);
	ASSERT_SAID(clients[0].line, "DEADLINE_SOON");
	/* The next reserve gets the same reply. */
	ASSERT_EQ(client_reserve(0), 0);
	ASSERT_SAID(clients[0].line, "DEADLINE_SOON");
	ASSERT_SAID(client_run_id(0, OP_TOUCH, 1), "TOUCHED");
	client_wait(0, 3 * SEC);
	fake_advance(3 * SEC);
	settle();
	ASSERT_SAID(clients[0].line, "TIMED_OUT");
	queue_remove();
}

TEST(time_to_run_that_ends_counts_as_an_attempt_with_a_policy)
{
	unsigned int k;

	open_with(1000);
	client_policy(0, "default", 3, 4 * SEC);
	client_put(0, 7, 0, 1 * SEC);
	for (k = 1; k <= 3; k++) {
		ASSERT_EQ(client_reserve(0), 1);
		settle();
		fake_advance(1 * SEC);
		settle();
		ASSERT_EQ(client_stat(1, 1, "attempts"), k);
		ASSERT_EQ(client_stat(1, 1, "timeouts"), k);
		ASSERT_EQ(queue->nr[IS_DELAYED], k < 3);
		fake_advance(4 * SEC - 1);
		settle();
		ASSERT_EQ(client_reserve(0), 0);
		fake_advance(1);
		settle();
	}
	ASSERT_EQ(queue->nr[IS_BURIED], 1);
	ASSERT_EQ(tube_find(queue, "default.dead")->nr[IS_BURIED], 1);
	ASSERT_EQ(queue->stats.dead, 1);
	queue_remove();
}

static void give_back(unsigned int who, uint64_t delay_ns)
{
	struct command release = { .op = OP_RELEASE, .id = 1, .pri = 1, .delay_ns = delay_ns };

	ASSERT_SAID(client_run(who, &release, NULL), "RELEASED");
	settle();
}

/* The only job is delayed by exactly so much. */
static void check_delayed_by(uint64_t delay_ns)
{
	ASSERT_EQ(queue->nr[IS_DELAYED], 1);
	fake_advance(delay_ns - 1);
	settle();
	ASSERT_EQ(queue->nr[IS_DELAYED], 1);
	fake_advance(1);
	settle();
	ASSERT_EQ(queue->nr[IS_READY], 1);
}

TEST(release_counts_as_an_attempt_with_a_policy)
{
	open_with(1000);
	client_policy(0, "default", 3, 4 * SEC);
	client_put(0, 1, 0, LONG);
	ASSERT_EQ(client_reserve(0), 1);
	give_back(0, 0);
	ASSERT_EQ(client_stat(1, 1, "attempts"), 1);
	check_delayed_by(4 * SEC);
	ASSERT_EQ(client_reserve(0), 1);
	give_back(0, 7 * SEC);
	ASSERT_EQ(client_stat(1, 1, "attempts"), 2);
	check_delayed_by(7 * SEC);
	ASSERT_EQ(client_reserve(0), 1);
	give_back(0, 7 * SEC);
	ASSERT_EQ(tube_find(queue, "default.dead")->nr[IS_BURIED], 1);
	ASSERT_EQ(client_stat(1, 1, "attempts"), 3);
	ASSERT_EQ(client_stat(1, 1, "releases"), 3);
	queue_remove();
}

TEST(release_counts_as_no_attempt_without_a_policy)
{
	open_with(1000);
	client_put(0, 1, 0, LONG);
	ASSERT_EQ(client_reserve(0), 1);
	give_back(0, 0);
	ASSERT_EQ(queue->nr[IS_READY], 1);
	ASSERT_EQ(client_reserve(0), 1);
	give_back(0, 7 * SEC);
	check_delayed_by(7 * SEC);
	ASSERT_EQ(client_stat(1, 1, "attempts"), 0);
	queue_remove();
}

TEST(connection_that_its_client_ends_counts_as_an_attempt_with_a_policy)
{
	open_with(1000);
	client_policy(0, "default", 2, 4 * SEC);
	client_put(0, 1, 0, LONG);
	/* The daemon ends it. */
	ASSERT_EQ(client_reserve(1), 1);
	client_leave(1);
	settle();
	ASSERT_EQ(queue->nr[IS_READY], 1);
	ASSERT_EQ(client_stat(0, 1, "attempts"), 0);
	ASSERT_EQ(client_reserve(2), 1);
	client_hang_up(2);
	settle();
	ASSERT_EQ(client_stat(0, 1, "attempts"), 1);
	check_delayed_by(4 * SEC);
	ASSERT_EQ(client_reserve(3), 1);
	client_hang_up(3);
	settle();
	ASSERT_EQ(client_stat(0, 1, "attempts"), 2);
	ASSERT_EQ(tube_find(queue, "default.dead")->nr[IS_BURIED], 1);
	queue_remove();
}

TEST(connection_that_its_client_ends_counts_as_no_attempt_without_a_policy)
{
	open_with(1000);
	client_put(0, 1, 0, LONG);
	ASSERT_EQ(client_reserve(1), 1);
	client_hang_up(1);
	settle();
	ASSERT_EQ(queue->nr[IS_READY], 1);
	ASSERT_EQ(client_stat(0, 1, "attempts"), 0);
	queue_remove();
}

TEST(dead_job_that_is_reserved_by_its_id_stays_dead)
{
	struct command bury = { .op = OP_BURY, .id = 1, .pri = 1 };
	struct command fail = { .op = OP_FAIL, .id = 1 };

	open_with(1000);
	client_policy(0, "default", 1, 4 * SEC);
	client_policy(0, "default.dead", 9, 4 * SEC);
	client_put(0, 1, 0, 3 * SEC);
	ASSERT_EQ(client_reserve(0), 1);
	ASSERT_SAID(client_run(0, &fail, NULL), "DEAD");
	client_run_id(0, OP_RESERVE_JOB, 1);
	give_back(0, 0);
	ASSERT_EQ(queue->nr[IS_BURIED], 1);
	client_run_id(0, OP_RESERVE_JOB, 1);
	give_back(0, 7 * SEC);
	ASSERT_EQ(queue->nr[IS_BURIED], 1);
	client_run_id(0, OP_RESERVE_JOB, 1);
	ASSERT_SAID(client_run(0, &bury, NULL), "BURIED");
	ASSERT_EQ(queue->nr[IS_BURIED], 1);
	client_run_id(0, OP_RESERVE_JOB, 1);
	ASSERT_SAID(client_run(0, &fail, NULL), "DEAD");
	ASSERT_EQ(queue->nr[IS_BURIED], 1);
	client_run_id(1, OP_RESERVE_JOB, 1);
	client_hang_up(1);
	settle();
	ASSERT_EQ(queue->nr[IS_BURIED], 1);
	client_run_id(2, OP_RESERVE_JOB, 1);
	settle();
	fake_advance(3 * SEC);
	settle();
	ASSERT_EQ(queue->nr[IS_BURIED], 1);
	ASSERT_EQ(client_stat(0, 1, "attempts"), 1);
	ASSERT_SAID(client_run_id(0, OP_KICK_JOB, 1), "KICKED");
	ASSERT_EQ(tube_find(queue, "default")->nr[IS_READY], 1);
	queue_remove();
}

/* The bucket of 5 ms ends at 8.2 ms. */
TEST(no_percentile_of_stats_is_above_the_maximum)
{
	struct command stats = { .op = OP_STATS };

	open_with(1000);
	client_put(0, 1, 1 * SEC, LONG);
	settle();
	fake_advance(1 * SEC + 5 * MSEC);
	settle();
	client_run(0, &stats, NULL);
	ASSERT(strstr(clients[0].body, "\ndue-to-ready-p99-us: 5000\n"));
	ASSERT(strstr(clients[0].body, "\ndue-to-ready-max-us: 5000\n"));
	queue_remove();
}

/* --- the wall clock ---------------------------------------------------------------------- */

TEST(setting_the_wall_clock_moves_put_at_jobs_and_no_delays)
{
	uint64_t ids[4];

	open_with(1000);
	client_put(0, 1, 100 * SEC, LONG);
	client_put_at(0, fake.now_ns[ALARM_WALL] + 100 * SEC);
	settle();
	fake_set_wall(-1000 * (int64_t)SEC);
	settle();
	fake_advance(100 * SEC);
	settle();
	ASSERT_EQ(drain(ids, 4), 1);
	ASSERT_EQ(ids[0], 1);
	client_put(0, 1, 950 * SEC, LONG);
	settle();
	fake_set_wall(900 * (int64_t)SEC - 1);
	settle();
	ASSERT_EQ(drain(ids, 4), 0);
	fake_set_wall(100 * (int64_t)SEC + 1);
	settle();
	ASSERT_EQ(drain(ids, 4), 1);
	ASSERT_EQ(ids[0], 2);
	fake_advance(950 * SEC - 1);
	settle();
	ASSERT_EQ(drain(ids, 4), 0);
	fake_advance(1);
	settle();
	ASSERT_EQ(drain(ids, 4), 1);
	ASSERT_EQ(ids[0], 3);
	queue_remove();
}

/* Reboot: ALARM_BOOT begins again, and the wall clock has advanced. */
static void reboot_after(bool in_order, int64_t down_ns)
{
	struct queue_config config = queue_test_config(1000);

	queue_close(in_order);
	fake.now_ns[ALARM_BOOT] = 10 * SEC;
	fake.now_ns[ALARM_WALL] += (uint64_t)down_ns;
	queue_open(&config);
}

static void reboot(uint64_t down_ns)
{
	reboot_after(true, (int64_t)down_ns);
}

/* What list-jobs shows of the only job that has this state. */
static uint64_t shown_ms(enum list_state state)
{
	unsigned long long id, ms;
	uint64_t ids[2];

	ASSERT_EQ(client_list(1, "default", state, 0, 2, ids), 1);
	if (sscanf(strchr(clients[1].body, '\n'), "%llu: %llu", &id, &ms) != 2)
		test_fail(__FILE__, __LINE__, "%s", clients[1].body);
	return ms;
}

TEST(times_are_shown_by_the_wall_clock_after_it_was_set)
{
	open_with(1000);
	client_put(0, 1, 100 * SEC, 50 * SEC);
	settle();
	fake_set_wall(7000 * (int64_t)SEC);
	settle();
	ASSERT_EQ(shown_ms(LIST_DELAYED), (fake.now_ns[ALARM_WALL] + 100 * SEC) / MSEC);
	fake_advance(100 * SEC);
	settle();
	ASSERT_EQ(client_reserve(0), 1);
	ASSERT_EQ(shown_ms(LIST_RESERVED), (fake.now_ns[ALARM_WALL] + 50 * SEC) / MSEC);
	queue_remove();
}

TEST(a_set_clock_is_remembered_over_a_restart_and_a_reboot)
{
	uint64_t ids[4];

	open_with(1000);
	client_put(0, 1, 1000 * SEC, LONG);
	settle();
	fake_set_wall(7000 * (int64_t)SEC);
	settle();
	fake_advance(100 * SEC);
	reboot(300 * SEC);
	settle();
	client_put(0, 1, 600 * SEC + 1, LONG);
	fake_set_wall(-5000 * (int64_t)SEC);
	settle();
	reboot(500 * SEC);
	fake_advance(100 * SEC - 1);
	settle();
	ASSERT_EQ(drain(ids, 4), 0);
	fake_advance(1);
	settle();
	ASSERT_EQ(drain(ids, 4), 1);
	ASSERT_EQ(ids[0], 1);
	fake_advance(1);
	settle();
	ASSERT_EQ(drain(ids, 4), 1);
	queue_remove();
}

/* --- a machine that boots with a wrong clock ------------------------------------------------ */

#define BEHIND		((int64_t)(1000000000 * SEC))
#define DOWN		(300 * SEC)

/* Advance to the time at which the next job is ready, and reserve and delete it. */
static void job_comes_after(uint64_t ns, uint64_t id)
{
	uint64_t ids[2];

	fake_advance(ns - 1);
	settle();
	ASSERT_EQ(drain(ids, 2), 0);
	fake_advance(1);
	settle();
	ASSERT_EQ(drain(ids, 2), 1);
	ASSERT_EQ(ids[0], id);
}

/* A job of 60 s and one of 1000 s; the machine is off for DOWN; then its clock is behind. */
static void boot_behind(bool in_order)
{
	open_with(1000);
	client_put(0, 1, 60 * SEC, LONG);
	client_put(0, 1, 1000 * SEC, LONG);
	settle();
	reboot_after(in_order, (int64_t)DOWN - BEHIND);
	settle();
	ASSERT(queue->in_doubt);
}

TEST(a_delay_goes_on_when_the_clock_is_behind_at_the_start)
{
	boot_behind(true);
	job_comes_after(60 * SEC, 1);
	job_comes_after(940 * SEC, 2);
	queue_remove();
}

TEST(a_delay_goes_on_when_the_clock_is_behind_after_a_crash)
{
	boot_behind(false);
	job_comes_after(60 * SEC, 1);
	job_comes_after(940 * SEC, 2);
	queue_remove();
}

TEST(when_the_clock_is_set_delays_are_as_if_it_had_been_right)
{
	uint64_t ids[2];

	boot_behind(true);
	fake_advance(20 * SEC);
	settle();
	fake_set_wall(BEHIND);
	settle();
	ASSERT(!queue->in_doubt);
	ASSERT_EQ(drain(ids, 2), 1);
	ASSERT_EQ(ids[0], 1);
	/* As in a start with a clock that is right; and the next one knows nothing of it. */
	fake_advance(100 * SEC);
	reboot(DOWN);
	job_comes_after(1000 * SEC - 2 * DOWN - 120 * SEC, 2);
	queue_remove();
}

/* The linker calls these in place of those without a prefix. */
int __real_store_get_unchanged(struct store *store, uint64_t id, struct job_record *record);
int __wrap_store_get_unchanged(struct store *store, uint64_t id, struct job_record *record);

static bool reads_fail;

int __wrap_store_get_unchanged(struct store *store, uint64_t id, struct job_record *record)
{
	return reads_fail ? -EIO : __real_store_get_unchanged(store, id, record);
}

bool __real_store_writer_is_behind(const struct store *store);
bool __wrap_store_writer_is_behind(const struct store *store);

static bool is_behind;

bool __wrap_store_writer_is_behind(const struct store *store)
{
	return is_behind || __real_store_writer_is_behind(store);
}

TEST(jobs_that_are_due_do_not_wait_for_a_store_that_is_behind)
{
	int i;

	open_with(4096);
	for (i = 0; i < 1000; i++)
		client_put(0, 1, 1 * SEC, LONG);
	settle();
	is_behind = true;
	fake_advance(1 * SEC);
	ASSERT(!queue_alarms(queue));
	ASSERT_EQ(queue->nr[IS_READY], 1000);
}

TEST(times_to_run_that_end_wait_for_a_store_that_is_behind)
{
	int i;

	open_with(4096);
	for (i = 0; i < 1000; i++) {
		client_put(0, 1, 0, 1 * SEC);
		ASSERT(client_reserve(0));
	}
	settle();
	is_behind = true;
	fake_advance(1 * SEC);
	ASSERT(queue_alarms(queue));
	ASSERT_GT(queue->nr[IS_READY], 0);
	ASSERT_LT(queue->nr[IS_READY], 1000);
	is_behind = false;
	ASSERT(!queue_alarms(queue));
	ASSERT_EQ(queue->nr[IS_READY], 1000);
}

int __real_store_walk_back(struct store *store, const struct job_place *from,
			   bool (*each)(void *context, const struct job_place *place),
			   void *context);
int __wrap_store_walk_back(struct store *store, const struct job_place *from,
			   bool (*each)(void *context, const struct job_place *place),
			   void *context);

static bool walks_back_fail;

int __wrap_store_walk_back(struct store *store, const struct job_place *from,
			   bool (*each)(void *context, const struct job_place *place),
			   void *context)
{
	return walks_back_fail ? -EBADMSG : __real_store_walk_back(store, from, each, context);
}

/* The delays go on then, as if the clock had not been set. */
TEST(a_delay_that_cannot_be_read_when_the_clock_is_set_is_no_shorter)
{
	boot_behind(true);
	client_put(0, 1, 100 * SEC, LONG);
	settle();
	reads_fail = true;
	fake_set_wall(BEHIND);
	settle();
	reads_fail = false;
	ASSERT(!queue->in_doubt);
	job_comes_after(60 * SEC, 1);
	job_comes_after(40 * SEC, 3);
	job_comes_after(900 * SEC, 2);
	queue_remove();
}

/* Jobs in memory would keep their times on disk, by a clock that has made a jump. */
TEST(delays_whose_index_is_damaged_when_the_clock_is_set_are_no_shorter)
{
	boot_behind(true);
	client_put(0, 1, 100 * SEC, LONG);
	settle();
	walks_back_fail = true;
	fake_set_wall(BEHIND);
	settle();
	walks_back_fail = false;
	ASSERT(!queue->in_doubt);
	/* Of all delays, a second has passed. */
	reboot(1 * SEC);
	job_comes_after(59 * SEC, 1);
	job_comes_after(40 * SEC, 3);
	queue_remove();
}

/* After DOWN, 20 s in doubt and a step: the rest of the delay of job 2 is no shorter. */
static void job_2_comes(uint64_t after_ns)
{
	reboot(DOWN);
	job_comes_after(1000 * SEC - 2 * DOWN - 20 * SEC - after_ns, 2);
	queue_remove();
}

TEST(when_the_clock_is_set_only_delays_that_began_before_the_start_are_shorter)
{
	uint64_t ids[2];

	boot_behind(true);
	client_put(0, 1, 100 * SEC, LONG);
	settle();
	fake_advance(20 * SEC);
	settle();
	fake_set_wall(BEHIND);
	settle();
	ASSERT(!queue->in_doubt);
	ASSERT_EQ(drain(ids, 2), 1);
	ASSERT_EQ(ids[0], 1);
	job_comes_after(80 * SEC, 3);
	job_2_comes(80 * SEC);
}

TEST(when_the_clock_is_set_far_delays_are_moved_on_disk_too)
{
	enum { NR = 3000 };
	static uint64_t ids[NR + 4];

	boot_behind(true);
	for (int i = 0; i < NR; i++)
		client_put(0, 1, 2000 * SEC + i, LONG);
	settle();
	fake_advance(20 * SEC);
	settle();
	fake_set_wall(BEHIND);
	settle();
	ASSERT_EQ(drain(ids, 4), 1);
	fake_advance(1980 * SEC - 1);
	settle();
	ASSERT_EQ(drain(ids, NR + 4), 1);
	ASSERT_EQ(ids[0], 2);
	fake_advance(NR / 2);
	settle();
	ASSERT_EQ(drain(ids, NR + 4), NR / 2);
	ASSERT_EQ(ids[0], 3);
	fake_advance(NR);
	settle();
	ASSERT_EQ(drain(ids, NR + 4), NR / 2);
	queue_remove();
}

/* Move two delays when the clock is set. Returns how many batches that took. */
static uint64_t move_two(uint64_t apart)
{
	uint64_t before, after, ids[2];

	boot_behind(true);
	client_put(0, 1, 100 * SEC, LONG);
	settle();
	queue->next_id += apart - 1;
	client_put(0, 1, 110 * SEC, LONG);
	settle();
	fake_advance(20 * SEC);
	settle();
	before = store->changes;
	fake_set_wall(BEHIND);
	settle();
	ASSERT(!queue->in_doubt);
	after = store->changes;
	ASSERT_EQ(drain(ids, 2), 1);
	job_comes_after(80 * SEC, 3);
	job_comes_after(10 * SEC, 3 + apart);
	queue_remove();
	return after - before;
}

/* A read in between would end the batch, if the store took one for the other. */
TEST(when_the_clock_is_set_all_delays_are_moved_in_one_batch)
{
	ASSERT_EQ(move_two(TOUCHED_BITS), move_two(1));
}

TEST(after_a_release_a_delay_began_after_the_start)
{
	uint64_t ids[2];

	boot_behind(true);
	client_put(0, 1, 0, LONG);
	settle();
	/* Twice, which moves it once. */
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(client_reserve(0), 3);
		ASSERT_SAID(client_release(0, 3, 1, 50 * SEC), "RELEASED");
		if (!i)
			ASSERT_SAID(client_run_id(0, OP_KICK_JOB, 3), "KICKED");
	}
	settle();
	fake_advance(20 * SEC);
	settle();
	fake_set_wall(BEHIND);
	settle();
	ASSERT_EQ(drain(ids, 2), 1);
	ASSERT_EQ(ids[0], 1);
	job_comes_after(30 * SEC, 3);
	job_2_comes(30 * SEC);
}

TEST(when_too_many_delays_have_begun_the_older_jobs_are_late)
{
	size_t i, most;

	boot_behind(true);
	most = store_move_bytes_most(store) / store_move_bytes(&(struct job_record){ 0 });
	client_put(0, 1, 100 * SEC, LONG);
	for (i = 1; i < most; i++)
		client_put(0, 1, 3000 * SEC, LONG);
	settle();
	ASSERT(!queue->begun.overflow);
	client_put(0, 1, 3000 * SEC, LONG);
	settle();
	ASSERT(queue->begun.overflow);
	fake_advance(20 * SEC);
	settle();
	fake_set_wall(BEHIND);
	settle();
	ASSERT(!queue->in_doubt);
	job_comes_after(40 * SEC, 1);
	job_comes_after(40 * SEC, 3);
	reboot(DOWN);
	job_comes_after(1000 * SEC - 100 * SEC - DOWN, 2);
	queue_remove();
}

TEST(delays_with_reasons_are_too_many_earlier)
{
	struct command fail = { .op = OP_FAIL, .has_body = true, .body_len = JOB_REASON_MAX };
	static const char reason[JOB_REASON_MAX] = { 'r' };
	size_t nr = 0;

	boot_behind(true);
	client_policy(0, "default", 3, 4 * SEC);
	while (!queue->begun.overflow) {
		client_put(0, 1, 0, LONG);
		settle();
		fail.id = client_reserve(0);
		ASSERT_SAID(client_run(0, &fail, reason), "RETRY 1 4000");
		nr++;
	}
	ASSERT_EQ(nr - 1, store_move_bytes_most(store) /
		  (store_move_bytes(&(struct job_record){ 0 }) + JOB_REASON_MAX));
	queue_remove();
}

TEST(no_delay_that_began_while_the_clock_was_behind_is_shorter_after_a_restart)
{
	boot_behind(true);
	client_put(0, 1, 100 * SEC, LONG);
	settle();
	/* It is set while the daemon is not there, and it does not know how long that was. */
	reboot_after(false, BEHIND);
	ASSERT(!queue->in_doubt);
	job_comes_after(60 * SEC, 1);
	job_comes_after(40 * SEC, 3);
	/* From now on a restart counts. */
	reboot(DOWN);
	job_comes_after(1000 * SEC - 100 * SEC - DOWN, 2);
	queue_remove();
}

TEST(a_clock_that_was_adjusted_by_less_than_a_second_is_right)
{
	open_with(1000);
	client_put(0, 1, 60 * SEC, LONG);
	settle();
	reboot_after(true, -(int64_t)(SEC / 2));
	ASSERT(!queue->in_doubt);
	job_comes_after(60 * SEC, 1);
	queue_remove();
}

/* Close in order, and open with the clock behind and an hour to wait for it. */
static void wait_at_start(void)
{
	struct queue_config config = queue_test_config(1000);

	config.clock_wait_ns = 3600 * SEC;
	queue_close(true);
	fake.now_ns[ALARM_WALL] -= (uint64_t)BEHIND;
	queue_open(&config);
}

static void *set_clock(void *context)
{
	(void)context;
	usleep(1000);
	__atomic_add_fetch(&fake.now_ns[ALARM_WALL], (uint64_t)BEHIND, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(a_start_waits_for_a_clock_that_is_behind)
{
	pthread_t thread;

	open_with(1000);
	client_put(0, 1, 60 * SEC, LONG);
	settle();
	ASSERT_EQ(pthread_create(&thread, NULL, set_clock, NULL), 0);
	wait_at_start();
	pthread_join(thread, NULL);
	ASSERT(!queue->in_doubt);
	job_comes_after(60 * SEC, 1);
	queue_remove();
}

TEST(a_start_that_is_told_to_end_waits_for_no_clock)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	open_with(1000);
	client_put(0, 1, 60 * SEC, LONG);
	settle();
	raise(SIGTERM);
	wait_at_start();
	ASSERT(queue->in_doubt);
	queue_remove();
}
