// SPDX-License-Identifier: GPL-2.0
/*
 * How long the oldest ready job of a tube has been ready. Time passes as the test moves the
 * start of the daemon back, so no test waits.
 */
#include <string.h>

#include "queue/jobs/state.h"
#include "queue/test/queue_lib.h"

#define SLACK_S	3600

static uint64_t oldest_s;

static void note_default(void *context, const struct tube_stats *stats)
{
	(void)context;
	if (!strcmp(stats->name, "default"))
		oldest_s = stats->oldest_ready_s;
}

static uint64_t age(void)
{
	oldest_s = ~0ULL;
	queue_each_tube(queue, note_default, NULL);
	return oldest_s;
}

static void pass(uint64_t seconds)
{
	queue->start_ns -= seconds * NSEC_PER_SEC;
}

/* The test itself may take up to SLACK_S. */
#define ASSERT_AGE(expected)					\
	do {							\
		uint64_t age_ = age();				\
								\
		ASSERT_GE(age_, expected);			\
		ASSERT_LT(age_, (expected) + SLACK_S);		\
	} while (0)

static void start(size_t nr_jobs)
{
	struct queue_config config = queue_test_config(nr_jobs);

	queue_open(&config);
}

TEST(age_is_that_of_the_job_that_was_ready_first)
{
	uint64_t id;

	start(1000);
	ASSERT_EQ(age(), 0);
	client_put(0, 9, 0, 60 * NSEC_PER_SEC);
	pass(100000);
	id = client_put(0, 1, 0, 60 * NSEC_PER_SEC);
	ASSERT_AGE(100000);
	ASSERT_EQ(client_reserve(0), id);
	pass(100000);
	ASSERT_AGE(200000);
	ASSERT_EQ(client_reserve(0), 1);
	ASSERT_EQ(age(), 0);
	queue_remove();
}

TEST(age_begins_anew_with_a_release)
{
	uint64_t id;

	start(1000);
	id = client_put(0, 9, 0, 60 * NSEC_PER_SEC);
	pass(100000);
	ASSERT_EQ(client_reserve(0), id);
	client_release(0, id, 9, 0);
	ASSERT_LT(age(), SLACK_S);
	queue_remove();
}

TEST(age_of_a_delayed_job_begins_when_it_is_due)
{
	start(1000);
	client_put(0, 9, 3600 * NSEC_PER_SEC, 60 * NSEC_PER_SEC);
	pass(100000);
	ASSERT_EQ(age(), 0);
	queue_remove();
}

TEST(age_of_jobs_that_are_on_disk_only_is_not_too_small)
{
	unsigned int i;

	start(45);
	client_put(0, 5, 0, 60 * NSEC_PER_SEC);
	pass(100000);
	/* These are before it, and push it out of memory. */
	for (i = 0; i < 200; i++)
		client_put(0, 1, 0, 60 * NSEC_PER_SEC);
	settle();
	ASSERT_AGE(100000);
	for (i = 0; i < 200; i++)
		client_run_id(0, OP_DELETE, client_reserve(0));
	settle();
	ASSERT_AGE(100000);
	ASSERT_EQ(client_reserve(0), 1);
	settle();
	ASSERT_EQ(age(), 0);
	queue_remove();
}

TEST(age_begins_with_the_start_of_the_daemon)
{
	struct queue_config config = queue_test_config(1000);

	queue_open(&config);
	client_put(0, 5, 0, 60 * NSEC_PER_SEC);
	pass(100000);
	queue_reopen(&config, true);
	ASSERT_LT(age(), SLACK_S);
	pass(5000);
	ASSERT_AGE(5000);
	queue_remove();
}

TEST(age_is_right_when_its_counter_wraps)
{
	start(1000);
	pass(READY_S_MASK - 50000);
	client_put(0, 5, 0, 60 * NSEC_PER_SEC);
	pass(100000);
	client_put(0, 5, 0, 60 * NSEC_PER_SEC);
	ASSERT_AGE(100000);
	queue_remove();
}
