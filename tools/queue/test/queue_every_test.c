// SPDX-License-Identifier: GPL-2.0
/* Schedules, with clocks that the test sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/test/fake_alarm.h"
#include "common/log.h"
#include "queue/integrity/check.h"
#include "queue/store/keys.h"
#include "queue/store/schedule.h"
#include "queue/test/queue_lib.h"
#include "queue/test/store_lib.h"

#define SEC	NSEC_PER_SEC
#define HOUR	(3600 * SEC)
#define LONG	(100000 * SEC)
#define START	FAKE_WALL_NS

static struct queue_config config;

static void open_queue(void)
{
	config = queue_test_config(256);
	log_set_level(LOG_CRIT);
	queue_open(&config);
}

/* All that the disk has fits together. */
static void check_disk(void)
{
	struct store_config store_config = test_config(test_dir());

	store_config.read_only = true;
	ASSERT_EQ(store_check(&store_config, stdout), 0);
}

static void end(void)
{
	queue_close(true);
	check_disk();
	remove_tree(test_dir());
}

/* The daemon is down for @ns. */
static void be_down(uint64_t ns, bool in_order)
{
	queue_close(in_order);
	check_disk();
	fake_advance(ns);
	queue_open(&config);
	settle();
}

static const char *every(unsigned int who, const char *name, uint64_t interval_ns,
			 uint64_t first_ns, const char *body)
{
	struct command command = {
		.op = OP_EVERY, .pri = 7, .delay_ns = interval_ns, .due_ns = first_ns,
		.ttr_ns = LONG, .has_body = true, .body_len = strlen(body),
	};

	strcpy(command.key, name);
	return client_run(who, &command, body);
}

static const char *stop(unsigned int who, const char *name)
{
	struct command command = { .op = OP_EVERY_STOP };

	strcpy(command.key, name);
	return client_run(who, &command, NULL);
}

static const char *list(unsigned int who, const char *after)
{
	struct command command = { .op = OP_LIST_EVERY };

	strcpy(command.key, after);
	ASSERT(!strncmp(client_run(who, &command, NULL), "OK ", 3));
	return clients[who].body;
}

static void go(uint64_t ns)
{
	fake_advance(ns);
	settle();
}

/* Reserve a job, which has @body; returns its id. */
static uint64_t take(unsigned int who, const char *body)
{
	struct command command = { .op = OP_RESERVE_WITH_TIMEOUT };
	unsigned long long id;

	if (sscanf(client_run(who, &command, NULL), "RESERVED %llu", &id) != 1)
		test_fail(__FILE__, __LINE__, "%s", clients[who].line);
	ASSERT_SAID(clients[who].body, body);
	return id;
}

static void done(unsigned int who, uint64_t id)
{
	ASSERT_SAID(client_run_id(who, OP_DELETE, id), "DELETED");
	settle();
}

/* A job is there, put for @missed times that passed; it is done. */
static void take_job(uint64_t missed)
{
	uint64_t id = take(0, "x");

	ASSERT_EQ(client_stat(0, id, "missed"), missed);
	done(0, id);
}

static void see_no_job(void)
{
	ASSERT_EQ(nr_of_all(queue->nr), 0);
}

/* --- times ----------------------------------------------------------------------------------- */

TEST(a_job_comes_at_each_time_and_not_before)
{
	uint64_t i;

	open_queue();
	ASSERT_SAID(every(0, "tick", 10 * SEC, START + 5 * SEC, "x"), "EVERY");
	settle();
	go(5 * SEC - 1);
	for (i = 0; i < 100; i++) {
		see_no_job();
		go(1);
		take_job(0);
		/* Turns that come late do not move the times. */
		go(i * 7 % 10 * SEC + 10);
		go(10 * SEC - i * 7 % 10 * SEC - 11);
	}
	ASSERT_EQ(queue->stats.total_jobs, 100);
	end();
}

TEST(a_job_that_is_put_late_is_counted_with_how_late_it_is)
{
	open_queue();
	ASSERT_SAID(every(0, "tick", 10 * SEC, START + 5 * SEC, "x"), "EVERY");
	settle();
	go(8 * SEC);
	take_job(0);
	ASSERT_EQ(queue->stats.ready_late.count, 1);
	ASSERT_EQ(queue->stats.ready_late.sum_ns, 3 * SEC);
	end();
}

TEST(a_schedule_whose_first_time_is_past_begins_at_its_next_time)
{
	open_queue();
	ASSERT_SAID(every(0, "tick", 10 * SEC, 3 * SEC, "x"), "EVERY");
	settle();
	see_no_job();
	/* The start is a multiple of ten seconds. */
	go(3 * SEC - 1);
	see_no_job();
	go(1);
	take_job(0);
	end();
}

TEST(a_schedule_whose_first_time_is_now_begins_now)
{
	open_queue();
	ASSERT_SAID(every(0, "tick", 10 * SEC, START - 20 * SEC, "x"), "EVERY");
	settle();
	take_job(0);
	see_no_job();
	end();
}

TEST(jobs_have_what_the_schedule_says)
{
	uint64_t id;

	open_queue();
	every(0, "report:1", 10 * SEC, START, "x");
	settle();
	id = take(0, "x");
	ASSERT_EQ(client_stat(0, id, "pri"), 7);
	ASSERT_EQ(client_stat(0, id, "ttr"), LONG / SEC);
	ASSERT_EQ(client_stat(0, id, "delay"), 0);
	ASSERT(strstr(clients[0].body, "\nevery: \"report:1\"\n"));
	done(0, id);
	end();
}

TEST(a_session_that_waits_gets_the_job_at_its_time)
{
	open_queue();
	every(0, "tick", 10 * SEC, START + 10 * SEC, "x");
	settle();
	client_wait(1, LONG);
	go(10 * SEC - 1);
	ASSERT_EQ(clients[1].replies, 0);
	go(1);
	ASSERT_EQ(clients[1].replies, 1);
	ASSERT(!strncmp(clients[1].line, "RESERVED", 8));
	end();
}

/* --- the last job is still there ------------------------------------------------------------- */

TEST(times_that_pass_while_the_last_job_is_ready_are_counted_for_one_job)
{
	uint64_t id;

	open_queue();
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	go(35 * SEC);
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	ASSERT(strstr(list(0, ""), "missed: 3\n"));
	id = take(0, "x");
	ASSERT_EQ(client_stat(0, id, "missed"), 0);
	done(0, id);
	/* At once, and not at the next time. */
	ASSERT_EQ(queue->nr[IS_READY], 1);
	take_job(3);
	see_no_job();
	go(5 * SEC);
	take_job(0);
	end();
}

TEST(a_reserved_or_delayed_last_job_holds_the_next_one_up)
{
	uint64_t id;

	open_queue();
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	id = take(0, "x");
	go(25 * SEC);
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	ASSERT_SAID(client_release(0, id, 7, 1000 * SEC), "RELEASED");
	settle();
	ASSERT_EQ(queue->nr[IS_DELAYED], 1);
	go(20 * SEC);
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	done(0, id);
	take_job(4);
	see_no_job();
	end();
}

TEST(a_buried_last_job_does_not_hold_the_next_one_up)
{
	uint64_t id;
	struct command bury = { .op = OP_BURY };

	open_queue();
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	id = take(0, "x");
	bury.id = id;
	go(25 * SEC);
	ASSERT_SAID(client_run(0, &bury, NULL), "BURIED");
	settle();
	take_job(2);
	go(5 * SEC);
	take_job(0);
	/* It is not the last one any more. */
	ASSERT_SAID(client_run_id(0, OP_KICK_JOB, id), "KICKED");
	go(10 * SEC);
	ASSERT_EQ(queue->nr[IS_READY], 2);
	end();
}

TEST(a_buried_last_job_that_is_kicked_holds_the_next_one_up_again)
{
	struct command bury = { .op = OP_BURY };

	open_queue();
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	bury.id = take(0, "x");
	ASSERT_SAID(client_run(0, &bury, NULL), "BURIED");
	ASSERT_SAID(client_run_id(0, OP_KICK_JOB, bury.id), "KICKED");
	settle();
	go(15 * SEC);
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	done(0, bury.id);
	take_job(1);
	end();
}

TEST(a_dead_last_job_does_not_hold_the_next_one_up)
{
	uint64_t id;

	open_queue();
	client_policy(0, "default", 1, SEC);
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	id = take(0, "x");
	go(15 * SEC);
	ASSERT_SAID(client_run_id(0, OP_FAIL, id), "DEAD");
	settle();
	take_job(1);
	end();
}

/* A dead job that a worker has reserved by its id is buried again by a restart. */
TEST(a_dead_job_that_was_reserved_at_the_end_of_the_daemon_does_not_hold_the_next_one_up)
{
	uint64_t id;

	open_queue();
	client_policy(0, "default", 1, SEC);
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	id = take(0, "x");
	ASSERT_SAID(client_run_id(0, OP_FAIL, id), "DEAD");
	ASSERT(!strncmp(client_run_id(0, OP_RESERVE_JOB, id), "RESERVED", 8));
	go(15 * SEC);
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	be_down(SEC, true);
	take_job(1);
	end();
}

/* --- the daemon is down, or refuses ---------------------------------------------------------- */

TEST(times_that_pass_while_the_daemon_is_down_are_counted_for_one_job)
{
	open_queue();
	every(0, "tick", 10 * SEC, START + 10 * SEC, "x");
	settle();
	be_down(35 * SEC, true);
	take_job(3);
	see_no_job();
	be_down(6 * SEC, true);
	take_job(1);
	be_down(5 * SEC, true);
	see_no_job();
	go(4 * SEC);
	take_job(0);
	end();
}

TEST(a_last_job_is_still_known_after_a_restart)
{
	uint64_t id;

	open_queue();
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	go(25 * SEC);
	be_down(10 * SEC, true);
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	id = take(0, "x");
	go(10 * SEC);
	be_down(10 * SEC, true);
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	done(0, id);
	take_job(5);
	end();
}

TEST(a_limit_delays_the_job_and_counts_the_times)
{
	uint64_t id;

	open_queue();
	config.max_jobs = 2;
	be_down(0, true);
	ASSERT_SAID(every(0, "tick", 10 * SEC, START + 10 * SEC, "x"), "EVERY");
	id = client_put(0, 1, LONG, LONG);
	ASSERT_SAID(every(0, "tock", 10 * SEC, START, "x"), "OUT_OF_MEMORY");
	settle();
	go(35 * SEC);
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	ASSERT(!turn());
	done(0, id);
	go(SEC);
	take_job(3);
	go(4 * SEC);
	take_job(0);
	end();
}

TEST(a_limit_of_one_tube_does_not_hold_up_another_tube)
{
	uint64_t id;

	open_queue();
	config.max_tube_jobs = 2;
	be_down(0, true);
	client_run_tube(1, OP_USE, "other");
	client_run_tube(1, OP_WATCH, "other");
	client_run_tube(1, OP_IGNORE, "default");
	ASSERT_SAID(every(0, "tick", 10 * SEC, START + 10 * SEC, "x"), "EVERY");
	ASSERT_SAID(every(1, "tick", 10 * SEC, START + 10 * SEC, "y"), "EVERY");
	id = client_put(0, 1, LONG, LONG);
	settle();
	go(10 * SEC);
	done(1, take(1, "y"));
	ASSERT_EQ(queue->nr[IS_READY], 0);
	done(0, id);
	go(SEC);
	take_job(1);
	end();
}

TEST(a_drain_counts_the_times_until_the_next_start)
{
	open_queue();
	every(0, "tick", 10 * SEC, START + 10 * SEC, "x");
	settle();
	queue_drain(queue);
	ASSERT_SAID(every(0, "tock", 10 * SEC, START, "x"), "DRAINING");
	go(25 * SEC);
	see_no_job();
	ASSERT(!turn());
	be_down(0, true);
	take_job(2);
	end();
}

/* --- replacing and stopping ------------------------------------------------------------------ */

TEST(a_schedule_that_is_replaced_has_the_new_times_and_body)
{
	open_queue();
	every(0, "tick", 10 * SEC, START + 10 * SEC, "old");
	settle();
	ASSERT_SAID(every(0, "tick", 20 * SEC, START + 15 * SEC, "x"), "EVERY");
	ASSERT_EQ(queue->schedules.nr, 1);
	settle();
	go(15 * SEC - 1);
	see_no_job();
	go(1);
	take_job(0);
	go(10 * SEC);
	see_no_job();
	go(10 * SEC);
	take_job(0);
	end();
}

TEST(replacing_neither_doubles_nor_loses_a_time)
{
	uint64_t id;

	open_queue();
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	/* It was put, and is the last one still. */
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	go(25 * SEC);
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	go(10 * SEC);
	id = take(0, "x");
	done(0, id);
	take_job(3);
	/* A time that has come, and was not looked at yet. */
	fake_advance(5 * SEC);
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	take_job(1);
	see_no_job();
	go(10 * SEC);
	take_job(0);
	end();
}

TEST(a_schedule_that_is_stopped_puts_no_more_and_leaves_its_job)
{
	open_queue();
	ASSERT_SAID(stop(0, "tick"), "NOT_FOUND");
	every(0, "tick", 10 * SEC, START, "x");
	every(0, "tick2", 10 * SEC, START + 500 * SEC, "x");
	settle();
	go(15 * SEC);
	ASSERT_SAID(stop(0, "tick"), "STOPPED");
	ASSERT_SAID(stop(0, "tick"), "NOT_FOUND");
	go(100 * SEC);
	ASSERT_EQ(nr_of_all(queue->nr), 1);
	take_job(0);
	see_no_job();
	ASSERT_EQ(queue->schedules.nr, 1);
	end();
}

TEST(a_tube_with_a_schedule_does_not_go_away)
{
	open_queue();
	client_run_tube(0, OP_USE, "mine");
	every(0, "tick", 10 * SEC, START + 100 * SEC, "x");
	client_run_tube(0, OP_USE, "default");
	settle();
	ASSERT(tube_find(queue, "mine"));
	ASSERT_SAID(stop(0, "tick"), "NOT_FOUND");
	be_down(SEC, true);
	ASSERT(tube_find(queue, "mine"));
	ASSERT_EQ(queue->schedules.nr, 1);
	client_run_tube(0, OP_USE, "mine");
	ASSERT_SAID(stop(0, "tick"), "STOPPED");
	client_run_tube(0, OP_USE, "default");
	ASSERT(!tube_find(queue, "mine"));
	end();
}

/* --- the wall clock is set ------------------------------------------------------------------- */

TEST(a_schedule_follows_the_wall_clock)
{
	open_queue();
	every(0, "tick", HOUR, START + 10 * SEC, "x");
	settle();
	fake_set_wall(-3600 * (int64_t)SEC);
	settle();
	go(HOUR);
	see_no_job();
	fake_set_wall(10 * (int64_t)SEC);
	settle();
	take_job(0);
	end();
}

TEST(a_clock_that_is_set_back_does_not_double_a_time)
{
	open_queue();
	every(0, "tick", 10 * SEC, START, "x");
	settle();
	take_job(0);
	fake_set_wall(-5 * (int64_t)SEC);
	settle();
	go(5 * SEC);
	see_no_job();
	go(10 * SEC);
	take_job(0);
	end();
}

TEST(a_clock_that_was_in_1970_makes_one_job_for_billions_of_times)
{
	open_queue();
	fake.now_ns[ALARM_WALL] = 5 * SEC;
	be_down(0, true);
	every(0, "tick", SEC, 0, "x");
	settle();
	take_job(0);
	fake_set_wall(START - 5 * SEC);
	ASSERT_LE(settle(), 8);
	take_job(START / SEC - 5);
	see_no_job();
	go(SEC);
	take_job(0);
	end();
}

/* --- many ------------------------------------------------------------------------------------ */

#define MANY	5000

TEST(many_schedules_take_no_memory_and_are_put_a_piece_a_turn)
{
	char name[32];
	size_t i, resident;
	uint64_t id;

	open_queue();
	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "n%zu", i);
		ASSERT_SAID(every(0, name, 10 * SEC, START + 10 * SEC, "x"), "EVERY");
	}
	settle();
	ASSERT_EQ(queue->nr_resident, 0);
	ASSERT_EQ(queue->schedules.nr, MANY);
	fake_advance(10 * SEC);
	queue_alarms(queue);
	turn();
	ASSERT_EQ(queue->nr[IS_READY], 64);
	settle();
	ASSERT_EQ(queue->nr[IS_READY], MANY);
	resident = queue->nr_resident;
	ASSERT_LE(resident, queue->max_resident);
	for (i = 0; i < MANY; i++) {
		id = take(0, "x");
		ASSERT_SAID(client_run_id(0, OP_DELETE, id), "DELETED");
	}
	settle();
	see_no_job();
	be_down(10 * SEC, false);
	ASSERT_EQ(queue->nr[IS_READY], MANY);
	end();
}

TEST(large_bodies_are_put_fewer_a_turn)
{
	static char body[60001];
	char name[2] = "a";

	open_queue();
	memset(body, 'x', sizeof(body) - 1);
	for (; *name <= 't'; ++*name)
		every(0, name, 10 * SEC, START + 10 * SEC, body);
	settle();
	fake_advance(10 * SEC);
	queue_alarms(queue);
	turn();
	ASSERT_EQ(queue->nr[IS_READY], 5);
	settle();
	ASSERT_EQ(queue->nr[IS_READY], 20);
	end();
}

TEST(a_schedule_whose_body_is_missing_is_set_aside_and_the_others_go_on)
{
	uint8_t key[STORE_KEY_MAX];

	open_queue();
	ASSERT_SAID(every(0, "bad", 10 * SEC, START + 10 * SEC, "y"), "EVERY");
	ASSERT_SAID(every(0, "good", 10 * SEC, START + 10 * SEC, "x"), "EVERY");
	settle();
	lose(store, key, store_key_id(key, 'f', 1));
	go(10 * SEC);
	take_job(0);
	see_no_job();
	go(10 * SEC);
	take_job(0);
	see_no_job();
	queue_remove();
}

TEST(a_list_has_pages_in_the_order_of_names)
{
	char name[32], after[32] = "";
	size_t i, nr = 0;
	const char *at;

	open_queue();
	for (i = 0; i < 2500; i++) {
		snprintf(name, sizeof(name), "n%04zu", i * 7 % 2500);
		every(0, name, HOUR, START + HOUR, "x");
	}
	client_run_tube(1, OP_USE, "other");
	every(1, "n", HOUR, START + HOUR, "x");
	ASSERT(strstr(list(1, ""), "- name: \"n\"\n  tube: \"other\"\n  pri: 7\n"
				   "  interval-ms: 3600000\n"));
	ASSERT_SAID(list(1, "n"), "---\n");
	/* A page has 1000, and the buffer of this test has room for one. */
	do {
		i = 0;
		for (at = strstr(list(0, after), "- name: "); at;
		     at = strstr(at + 1, "- name: ")) {
			snprintf(after, sizeof(after), "%.5s", at + strlen("- name: \""));
			snprintf(name, sizeof(name), "n%04zu", nr + i++);
			ASSERT_SAID(after, name);
		}
		ASSERT_LE(i, 1000);
		nr += i;
	} while (i);
	ASSERT_EQ(nr, 2500);
	end();
}

/* What the disk has of a schedule after any number of changes is right for another daemon. */
TEST(each_time_is_put_or_counted_through_any_course_of_events)
{
	uint64_t times = 0, accounted = 0, id = 0, missed, step, start_ns;
	unsigned int n;

	open_queue();
	srand(1);
	every(0, "tick", SEC, START + SEC, "x");
	start_ns = START;
	for (n = 0; n < 3000; n++) {
		step = rand() % 3000 * NSEC_PER_MSEC;
		switch (rand() % 6) {
		case 0:
			be_down(step, rand() % 2);
			id = 0;
			break;
		case 1:
			fake_advance(step);
			every(0, "tick", SEC, START + SEC, "x");
			break;
		case 2:
		case 3:
			go(step);
			break;
		default:
			if (!id && queue->nr[IS_READY]) {
				id = take(0, "x");
			} else if (id) {
				missed = client_stat(0, id, "missed");
				accounted += missed ? missed : 1;
				done(0, id);
				id = 0;
			}
		}
		ASSERT_LE(nr_of_all(queue->nr), 1);
	}
	settle();
	if (id)
		client_release(0, id, 7, 0);
	while (queue->nr[IS_READY]) {
		id = take(0, "x");
		missed = client_stat(0, id, "missed");
		accounted += missed ? missed : 1;
		done(0, id);
	}
	times = (fake.now_ns[ALARM_WALL] - start_ns) / SEC;
	ASSERT_EQ(accounted, times);
	end();
}
