// SPDX-License-Identifier: GPL-2.0
/* The relay's commits: what they tell of what is done, when, and how they fail. */
#include "relay_fixture.h"

/* Near records from an offset on: nothing of them is done for an hour. */
static void read_near(int64_t first, int64_t nr)
{
	int64_t offset;

	for (offset = first; offset < first + nr; offset++)
		read_delayed(offset, 2 * H_MS - 1);
}

/* --- who comes after whom --------------------------------------------------------------- */

/* The first owner has done all but 0 and 50 of 100. */
static void have_done_most(void)
{
	int64_t offset;

	give("delays", 1);
	for (offset = 0; offset < 100; offset++)
		if (offset == 0 || offset == 50)
			read_delayed(offset, H_MS);
		else
			read_due(offset, "target");
	fake_report_all("target", 0);
	take_back("delays", 1);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 0);
}

TEST(what_is_done_while_catching_up_is_committed_with_what_was_done_before)
{
	size_t sent;

	open_relay();
	have_done_most();
	sent = kafka.nr_produced;
	/* The second reads and does 0, and has to give it up. */
	give("delays", 1);
	read_due(0, "target");
	fake_report_all("target", 0);
	ASSERT_EQ(kafka.nr_produced, sent + 1);
	take_back("delays", 1);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 1);
	/* The third has to do 50, and nothing else. */
	give("delays", 1);
	fake_advance(NSEC_PER_SEC);
	for (int64_t offset = 1; offset < 100; offset++)
		read_record(&(struct record){ .offset = offset, .made_ms = NOW_MS });
	ASSERT_EQ(kafka.nr_produced, sent + 2);
	fake_report_all("target", 0);
	ASSERT_EQ(low_of(0), 100);
}

TEST(records_that_came_to_the_offsets_of_others_are_not_passed_over)
{
	size_t sent;

	open_relay();
	have_done_most();
	sent = kafka.nr_produced;
	give("delays", 1);
	fake_advance(NSEC_PER_SEC);
	/* The log has lost its end, and other records came. */
	for (int64_t offset = 0; offset < 10; offset++)
		read_record(&(struct record){ .offset = offset, .made_ms = NOW_MS });
	for (int64_t offset = 10; offset < 20; offset++)
		read_due(offset, "target");
	ASSERT_EQ(kafka.nr_produced, sent + 1 + 10);
}

/* The first is read, and is near. */
static void commit_first(void)
{
	read_near(0, 1);
	relay_commit(&relay);
	fake_answer_commits(0);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 0);
	wait_ms(20 * SECOND_MS);
}

TEST(a_revoke_commits_what_a_commit_before_it_could_not)
{
	open_relay();
	give("delays", 1);
	commit_first();
	read_due(1, "target");
	fake_report_all("target", 0);
	relay_commit(&relay);
	ASSERT_EQ(kafka.nr_unanswered, 1);
	/* Its answer comes when it is too late. */
	fake_drop_commit();
	take_back("delays", 1);
	give("delays", 1);
	read_near(0, 1);
	read_record(&(struct record){ .offset = 1, .made_ms = NOW_MS });
	ASSERT_EQ(fake_count("target", false), 1);
}

TEST(a_commit_that_did_not_begin_is_tried_again)
{
	open_relay();
	give("delays", 1);
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

TEST(many_partitions_are_committed_in_requests_that_brokers_take)
{
	int32_t i;

	open_relay();
	give("delays", MANY);
	for (i = 0; i < MANY; i++)
		read_record(&(struct record){ .partition = i });
	fake_report_all("target", 0);
	relay_commit(&relay);
	ASSERT_LE(kafka.most_committed * RUNS_TEXT_MAX, 1 << 19);
	fake_answer_commits(0);
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(fake_partition("delays", i)->committed, 1);
	/* And so in a revoke. */
	for (i = 0; i < MANY; i++)
		read_record(&(struct record){ .partition = i, .offset = 1 });
	fake_report_all("target", 0);
	take_back("delays", MANY);
	ASSERT_LE(kafka.most_committed * RUNS_TEXT_MAX, 1 << 19);
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(fake_partition("delays", i)->committed, 2);
}

TEST(where_texts_are_too_large_offsets_are_committed_alone)
{
	open_relay();
	give("delays", 1);
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

/* One of three is done, so that the text is long. */
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
	give("delays", 1);
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
	take_back("delays", 1);
	ASSERT_EQ(kafka.nr_commits, long_ones + 1);
	give("delays", 2);
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

TEST(commits_do_not_queue_up_behind_one_that_is_not_answered)
{
	int64_t offset;

	open_relay();
	give("delays", 1);
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
	/* One whose answer is lost is waited for, but not for ever. */
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

/* --- what was committed ------------------------------------------------------------------ */

TEST(a_partition_whose_committed_offset_is_not_told_is_not_read_from_its_beginning)
{
	struct fake_partition *partition = fake_partition("delays", 1);

	open_relay();
	fake_partition("delays", 0)->committed = 70;
	partition->committed = 50;
	partition->error = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
	partition->nr_errors = 3;
	give("delays", 2);
	ASSERT_EQ(kafka.nr_assigned, 2);
	ASSERT_EQ(low_of(0), 70);
	ASSERT_EQ(low_of(1), 50);
	take_back("delays", 2);
	partition->error = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
	give("delays", 2);
	ASSERT(relay.over);
	ASSERT_EQ(kafka.nr_assigned, 0);
}

TEST(a_rebalance_that_fails_leaves_no_partition_of_ours)
{
	open_relay();
	give("delays", 2);
	read_due(0, "target");
	read_near(1, 1);
	rebalance("delays", 2, RD_KAFKA_RESP_ERR__FAIL);
	ASSERT(RB_EMPTY(&relay.partitions));
	fake_report_all(NULL, 0);
	ASSERT_EQ(relay.nr_entries, 0);
	give("delays", 2);
	ASSERT_EQ(relay.nr_partitions, 2);
}

TEST(who_leaves_the_group_has_no_partition_whatever_was_revoked)
{
	open_relay();
	give("delays", 2);
	read_due(0, "target");
	relay_group_leave(&relay);
	ASSERT(RB_EMPTY(&relay.partitions));
	fake_report_all(NULL, 0);
	ASSERT_EQ(relay.nr_entries, 0);
}

TEST(a_partition_in_which_nothing_happens_is_committed_each_hour)
{
	unsigned int nr_commits;

	open_relay();
	give("delays", 1);
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
