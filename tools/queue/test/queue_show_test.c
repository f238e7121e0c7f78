// SPDX-License-Identifier: GPL-2.0
/* What a page for people shows: each number, with clocks that the test sets. */
#include <string.h>

#include "alarm/test/fake_alarm.h"
#include "common/log.h"
#include "queue/jobs/show.h"
#include "queue/store/read.h"
#include "queue/test/queue_lib.h"

#define SEC	NSEC_PER_SEC
#define LONG	(100000 * SEC)

/* Jobs 1 to 4 are delayed; of 5 to 20, 5 to 9 are reserved, 5 to 7 then buried, and 8 deleted. */
static void open_with_jobs(void)
{
	struct queue_config config = queue_test_config(1000);
	struct command bury = { .op = OP_BURY };
	unsigned int i;

	log_set_level(LOG_CRIT);
	queue_open(&config);
	for (i = 1; i <= 20; i++)
		client_put(0, i, i <= 4 ? 100 * SEC : 0, LONG);
	for (i = 5; i <= 9; i++)
		ASSERT_EQ(client_reserve(0), i);
	for (bury.id = 5; bury.id <= 7; bury.id++)
		ASSERT_SAID(client_run(0, &bury, NULL), "BURIED");
	ASSERT_SAID(client_run_id(0, OP_DELETE, 8), "DELETED");
	settle();
}

static struct tube_details details(void)
{
	struct tube_details details;

	memset(&details, 1, sizeof(details));
	ASSERT(show_tube(queue, "default", &details));
	return details;
}

TEST(numbers_of_a_tube_are_those_of_its_jobs)
{
	struct tube_shown shown;

	open_with_jobs();
	memset(&shown, 1, sizeof(shown));
	ASSERT_EQ(client_reserve(1), 10);
	fake_advance(7 * SEC);
	ASSERT_EQ(show_tubes(queue, "", &shown, 1), 1);
	ASSERT_SAID(shown.name, "default");
	ASSERT_EQ(shown.ready, 10);
	ASSERT_EQ(shown.reserved, 2);
	ASSERT_EQ(shown.delayed, 4);
	ASSERT_EQ(shown.buried, 3);
	ASSERT_EQ(shown.dead, 0);
	ASSERT_EQ(shown.waiting, 0);
	ASSERT_EQ(shown.oldest_ready_s, 7);
	ASSERT_EQ(shown.put, 20);
	ASSERT_EQ(shown.reserves, 6);
	ASSERT_EQ(shown.deleted, 1);
	ASSERT_EQ(shown.retries, 0);
	ASSERT_EQ(shown.died, 0);
	ASSERT_EQ(show_tubes(queue, "default", &shown, 1), 0);
	queue_remove();
}

TEST(dead_jobs_are_shown_with_the_tube_where_they_died)
{
	struct job_shown job = { .place.id = 10 };
	struct tube_shown shown;
	struct job_record record;

	open_with_jobs();
	client_policy(0, "default", 1, SEC);
	ASSERT_EQ(client_reserve(0), 10);
	ASSERT_SAID(client_release(0, 10, 1, 0), "RELEASED");
	settle();
	show_tubes(queue, "", &shown, 1);
	ASSERT_EQ(shown.dead, 1);
	ASSERT_EQ(shown.died, 1);
	ASSERT_EQ(store_get(store, 10, &record), 0);
	job.place = record.place;
	job.origin = record.origin;
	job.created_ns = record.created_ns;
	fake_advance(30 * SEC);
	show_job(queue, &job);
	ASSERT_SAID(job.tube_name, "default.dead");
	ASSERT_SAID(job.origin_name, "default");
	ASSERT_EQ(job.age_ns, 30 * SEC);
	ASSERT_EQ(job.due_ms, 0);
	queue_remove();
}

TEST(a_tube_has_its_pause_policy_and_sessions)
{
	struct command pause = { .op = OP_PAUSE_TUBE, .tube = "default", .delay_ns = 60 * SEC };

	open_with_jobs();
	ASSERT_EQ(details().pause_left_ns, 0);
	ASSERT_EQ(details().using, NR_CLIENTS);
	ASSERT_EQ(details().watching, NR_CLIENTS);
	ASSERT(!details().has_policy);
	ASSERT_GT(details().number, 0);
	ASSERT_SAID(client_run(0, &pause, NULL), "PAUSED");
	client_policy(0, "default", 3, SEC);
	fake_advance(20 * SEC);
	settle();
	ASSERT_EQ(details().pause_left_ns, 40 * SEC);
	ASSERT(details().has_policy);
	ASSERT_EQ(details().policy.max_attempts, 3);
	client_leave(7);
	settle();
	ASSERT_EQ(details().using, NR_CLIENTS - 1);
	ASSERT_EQ(details().watching, NR_CLIENTS - 1);
	fake_advance(40 * SEC);
	settle();
	ASSERT_EQ(details().pause_left_ns, 0);
	queue_remove();
}

TEST(numbers_of_the_queue_are_those_of_all_jobs)
{
	struct queue_stats stats;

	open_with_jobs();
	fake_advance(9 * SEC);
	memset(&stats, 1, sizeof(stats));
	show_queue(queue, &stats);
	ASSERT_EQ(stats.ready, 11);
	ASSERT_EQ(stats.reserved, 1);
	ASSERT_EQ(stats.delayed, 4);
	ASSERT_EQ(stats.buried, 3);
	ASSERT_EQ(stats.schedules, 0);
	ASSERT_EQ(stats.tubes, 1);
	ASSERT_EQ(stats.max_tubes, queue->max_tubes);
	ASSERT_EQ(stats.resident, queue->nr_resident);
	ASSERT_EQ(stats.resident_bytes, queue->nr_resident * sizeof(struct job));
	ASSERT_EQ(stats.connections, NR_CLIENTS);
	ASSERT_EQ(stats.uptime_ns, 9 * SEC);
	ASSERT(!stats.draining);
	queue_remove();
}
