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

/* --- several owners --------------------------------------------------------------------- */

/* The first owner has done all of 100 records but 0 and 50. */
static void have_done_most(void)
{
	int64_t offset;

	assign_partitions("delays", 1);
	for (offset = 0; offset < 100; offset++)
		if (offset == 0 || offset == 50)
			read_delayed(offset, H_MS);
		else
			read_due(offset, "target");
	fake_report_all("target", 0);
	revoke_partitions("delays", 1);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 0);
}

TEST(records_done_while_catching_up_are_committed_with_those_done_before)
{
	size_t sent;

	open_relay();
	have_done_most();
	sent = kafka.nr_produced;
	/* The second reads and does 0, and then the partition is revoked. */
	assign_partitions("delays", 1);
	read_due(0, "target");
	fake_report_all("target", 0);
	ASSERT_EQ(kafka.nr_produced, sent + 1);
	revoke_partitions("delays", 1);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 1);
	/* Only 50 is left for the third. */
	assign_partitions("delays", 1);
	fake_advance(NSEC_PER_SEC);
	for (int64_t offset = 1; offset < 100; offset++)
		read_record(&(struct record){ .offset = offset, .made_ms = NOW_MS });
	ASSERT_EQ(kafka.nr_produced, sent + 2);
	fake_report_all("target", 0);
	ASSERT_EQ(low_of(0), 100);
}

TEST(records_at_offsets_of_lost_records_are_not_skipped)
{
	size_t sent;

	open_relay();
	have_done_most();
	sent = kafka.nr_produced;
	assign_partitions("delays", 1);
	fake_advance(NSEC_PER_SEC);
	/* The log has lost its end, and other records have the offsets. */
	for (int64_t offset = 0; offset < 10; offset++)
		read_record(&(struct record){ .offset = offset, .made_ms = NOW_MS });
	for (int64_t offset = 10; offset < 20; offset++)
		read_due(offset, "target");
	ASSERT_EQ(kafka.nr_produced, sent + 1 + 10);
}

/* The first record is read, and is near. */
static void commit_first(void)
{
	read_near(0, 1);
	relay_commit(&relay);
	fake_answer_commits(0);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 0);
	wait_ms(20 * SECOND_MS);
}

TEST(a_revoke_commits_again_what_an_earlier_commit_could_not)
{
	open_relay();
	assign_partitions("delays", 1);
	commit_first();
	read_due(1, "target");
	fake_report_all("target", 0);
	relay_commit(&relay);
	ASSERT_EQ(kafka.nr_unanswered, 1);
	/* The answer comes too late. */
	fake_drop_commit();
	revoke_partitions("delays", 1);
	assign_partitions("delays", 1);
	read_near(0, 1);
	read_record(&(struct record){ .offset = 1, .made_ms = NOW_MS });
	ASSERT_EQ(fake_count("target", false), 1);
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
	ASSERT_GT(strlen(fake_partition("delays", 0)->text), 0);
}

/* --- requests --------------------------------------------------------------------------- */

#define MANY	300

TEST(many_partitions_are_committed_in_requests_that_brokers_accept)
{
	int32_t i;

	open_relay();
	assign_partitions("delays", MANY);
	for (i = 0; i < MANY; i++)
		read_record(&(struct record){ .partition = i });
	fake_report_all("target", 0);
	relay_commit(&relay);
	ASSERT_LE(kafka.most_committed * RUNS_TEXT_MAX, 1 << 19);
	fake_answer_commits(0);
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(fake_partition("delays", i)->committed, 1);
	/* The same in a revoke. */
	for (i = 0; i < MANY; i++)
		read_record(&(struct record){ .partition = i, .offset = 1 });
	fake_report_all("target", 0);
	revoke_partitions("delays", MANY);
	ASSERT_LE(kafka.most_committed * RUNS_TEXT_MAX, 1 << 19);
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(fake_partition("delays", i)->committed, 2);
}

TEST(if_texts_are_too_large_only_offsets_are_committed)
{
	open_relay();
	assign_partitions("delays", 1);
	commit_first();
	read_due(1, "target");
	fake_report_all("target", 0);
	relay_commit(&relay);
	fake_answer_commits(RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE);
	wait_ms(20 * SECOND_MS);
	relay_commit(&relay);
	fake_answer_commits(0);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 0);
	ASSERT_EQ(strlen(fake_partition("delays", 0)->text), 0);
}

/* Every third record is done, so that the text is long. */
static void do_every_third(int64_t first, int64_t nr)
{
	int64_t offset;

	for (offset = first; offset < first + nr; offset++)
		if (offset % 3)
			read_delayed(offset, H_MS);
		else
			read_due(offset, "target");
	fake_report_all("target", 0);
}

TEST(a_long_text_is_not_committed_each_second)
{
	unsigned int second, long_ones, short_ones;

	open_relay();
	assign_partitions("delays", 1);
	read_near(0, 1);
	do_every_third(1, 3000);
	for (second = 0; second < 60; second++) {
		do_every_third(3001 + 3 * second, 3);
		relay_commit(&relay);
		fake_answer_commits(0);
		wait_ms(SECOND_MS);
	}
	long_ones = kafka.nr_commits;
	ASSERT_GE(long_ones, 5);
	ASSERT_LE(long_ones, 10);
	revoke_partitions("delays", 1);
	ASSERT_EQ(kafka.nr_commits, long_ones + 1);
	assign_partitions("delays", 2);
	for (second = 0; second < 60; second++) {
		read_record(&(struct record){ .partition = 1, .offset = second });
		fake_report_all("target", 0);
		relay_commit(&relay);
		fake_answer_commits(0);
		wait_ms(SECOND_MS);
	}
	short_ones = kafka.nr_commits - long_ones - 1;
	ASSERT_GE(short_ones, 60);
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
	revoke_partitions("delays", 2);
	partition->error = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
	assign_partitions("delays", 2);
	ASSERT(relay.ending);
	ASSERT_EQ(kafka.nr_assigned, 0);
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
