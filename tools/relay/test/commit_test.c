// SPDX-License-Identifier: GPL-2.0
/* The relay's commits: which done offsets they have, when they are made, and how they fail. */
#include <stdlib.h>
#include <string.h>

#include "relay/commit.h"
#include "relay/group.h"
#include "relay/test/fixture_lib.h"

/* Read near records from an offset on: none of them is done soon. */
static void read_near(int64_t first, int64_t nr)
{
	int64_t offset;

	for (offset = first; offset < first + nr; offset++)
		read_delayed(offset, 2 * H_MS - 1);
}

/* --- commits that fail ------------------------------------------------------------------ */

/* The first record is read, and is near. */
static void commit_first(void)
{
	read_near(0, 1);
	relay_commit(&relay);
	fake_answer_commits(0);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 0);
	wait_ms(20 * SECOND_MS);
}

TEST(a_commit_that_could_not_start_is_tried_again)
{
	open_relay();
	assign_partitions("delays", 1);
	commit_first();
	read_due(1, "target");
	fake_report_all("target", 0);
	kafka.commit_refused = RD_KAFKA_RESP_ERR__STATE;
	relay_commit(&relay);
	kafka.commit_refused = 0;
	wait_ms(20 * SECOND_MS);
	relay_commit(&relay);
	fake_answer_commits(0);
	turn();
	ASSERT_EQ(partition_of_delays(0)->done_committed, partition_of_delays(0)->done);
}

/* What a relay that ends in order leaves is known, or it says that it is not. */
static bool ends_cleanly(rd_kafka_resp_err_t map_error, bool waits)
{
	open_relay();
	assign_partitions("delays", 1);
	if (waits)
		read_delayed(0, H_MS);
	read_due(waits, "target");
	fake_report_all("target", 0);
	turn();
	kafka.map_error = map_error;
	revoke_partitions("delays", 1);
	return !relay.unclean;
}

TEST(an_end_is_in_order_if_all_that_is_done_is_known)
{
	ASSERT(ends_cleanly(0, true));
	ASSERT(ends_cleanly(0, false));
}

TEST(an_end_is_not_in_order_if_the_map_cannot_be_written)
{
	ASSERT(!ends_cleanly(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, true));
}

TEST(an_end_is_in_order_without_the_map_if_nothing_waits)
{
	ASSERT(ends_cleanly(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, false));
}

TEST(an_end_is_not_in_order_if_the_commit_is_refused_and_the_map_cannot_be_written)
{
	kafka.wait_answer = RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
	ASSERT(!ends_cleanly(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, false));
}

/* --- requests --------------------------------------------------------------------------- */

#define MANY	1500
#define IN_A_REQUEST	1000

TEST(many_partitions_are_committed_in_requests_that_brokers_accept)
{
	int32_t i;

	open_relay();
	assign_partitions("delays", MANY);
	for (i = 0; i < MANY; i++)
		read_record(&(struct record){ .partition = i });
	fake_report_all("target", 0);
	relay_commit(&relay);
	ASSERT_LE(kafka.most_committed, IN_A_REQUEST);
	fake_answer_commits(0);
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(fake_partition("delays", i)->committed, 1);
	/* The same in a revoke. */
	for (i = 0; i < MANY; i++)
		read_record(&(struct record){ .partition = i, .offset = 1 });
	fake_report_all("target", 0);
	revoke_partitions("delays", MANY);
	ASSERT_LE(kafka.most_committed, IN_A_REQUEST);
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(fake_partition("delays", i)->committed, 2);
}

TEST(commits_do_not_queue_up_behind_one_without_an_answer)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	for (offset = 0; offset < 30; offset++) {
		read_due(offset, "target");
		fake_report_all("target", 0);
		relay_commit(&relay);
		wait_ms(SECOND_MS);
	}
	ASSERT_EQ(kafka.nr_commits, 1);
	fake_answer_commits(RD_KAFKA_RESP_ERR__TIMED_OUT);
	relay_commit(&relay);
	fake_answer_commits(0);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 30);
	/* The relay does not wait for ever for an answer that was lost. */
	read_due(30, "target");
	fake_report_all("target", 0);
	relay_commit(&relay);
	fake_drop_commit();
	wait_ms(2 * MINUTE_MS);
	read_due(31, "target");
	fake_report_all("target", 0);
	relay_commit(&relay);
	fake_answer_commits(0);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 32);
}

/* --- committed offsets ------------------------------------------------------------------- */

TEST(a_partition_with_an_unknown_committed_offset_is_not_read_from_its_beginning)
{
	struct fake_partition *partition = fake_partition("delays", 1);

	open_relay();
	fake_partition("delays", 0)->committed = 70;
	partition->committed = 50;
	partition->error = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
	partition->nr_errors = 3;
	assign_partitions("delays", 2);
	ASSERT_EQ(kafka.nr_assigned, 2);
	ASSERT_EQ(low_of(0), 70);
	ASSERT_EQ(low_of(1), 50);
}

TEST(a_rebalance_that_fails_leaves_us_no_partition)
{
	open_relay();
	assign_partitions("delays", 2);
	read_due(0, "target");
	read_near(1, 1);
	rebalance("delays", 2, RD_KAFKA_RESP_ERR__FAIL);
	ASSERT(RB_EMPTY(&relay.partitions));
	fake_report_all(NULL, 0);
	ASSERT_EQ(relay.nr_entries, 0);
	assign_partitions("delays", 2);
	ASSERT_EQ(relay.nr_partitions, 2);
}

TEST(a_relay_that_left_the_group_has_no_partition_whatever_was_revoked)
{
	open_relay();
	assign_partitions("delays", 2);
	read_due(0, "target");
	relay_group_leave(&relay);
	ASSERT(RB_EMPTY(&relay.partitions));
	fake_report_all(NULL, 0);
	ASSERT_EQ(relay.nr_entries, 0);
}

TEST(an_unchanged_partition_is_committed_each_hour)
{
	unsigned int nr_commits;

	open_relay();
	assign_partitions("delays", 1);
	read_delayed(0, 100 * HOUR_MS);
	relay_commit(&relay);
	fake_answer_commits(0);
	wait_ms(MINUTE_MS);
	nr_commits = kafka.nr_commits;
	wait_ms(HOUR_MS);
	relay_commit(&relay);
	fake_answer_commits(0);
	ASSERT_EQ(kafka.nr_commits, nr_commits + 1);
	relay_commit(&relay);
	ASSERT_EQ(kafka.nr_commits, nr_commits + 1);
}
