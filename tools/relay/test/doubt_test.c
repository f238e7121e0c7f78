// SPDX-License-Identifier: GPL-2.0
/* A relay that stood still sends nothing until the group has confirmed its membership. */
#include <string.h>

#include "relay/commit.h"
#include "relay/doubt.h"
#include "relay/test/fixture_lib.h"

#define SESSION_MS	(45 * SECOND_MS)

/* A turn, as the loop makes it. */
static void turn_of_loop(void)
{
	relay_doubt_check(&relay);
	turn();
}

/* Read a record that is due in a second and one that is due in an hour, and commit. */
static void open_with_one_near(void)
{
	open_relay();
	relay.session_ms = SESSION_MS;
	assign_partitions("delays", 1);
	read_delayed(0, SECOND_MS);
	read_delayed(1, 2 * H_MS - 1);
	relay_commit(&relay);
	fake_answer_commits(0);
	turn_of_loop();
}

static void stand_still(uint64_t ms)
{
	fake_advance(ms * NSEC_PER_MSEC);
	turn_of_loop();
}

/* Make turns of the loop for some time. */
static void go_on(uint64_t ms)
{
	uint64_t end_ns = fake.now_ns[ALARM_BOOT] + ms * NSEC_PER_MSEC;

	while (fake.now_ns[ALARM_BOOT] < end_ns)
		stand_still(500);
}

TEST(records_that_became_due_are_sent_when_the_group_has_accepted_a_commit)
{
	open_with_one_near();
	stand_still(SESSION_MS / 2);
	ASSERT_EQ(kafka.nr_produced, 0);
	ASSERT_EQ(kafka.nr_unanswered, 1);
	ASSERT_EQ(relay.stats.standstills, 1);
	fake_answer_commits(0);
	turn_of_loop();
	ASSERT_EQ(fake_count("target", true), 1);
	/* A record that is read now is sent, too. */
	read_due(2, "target");
	ASSERT_EQ(fake_count("target", true), 2);
}

TEST(a_shorter_pause_is_not_a_standstill)
{
	open_with_one_near();
	stand_still(SESSION_MS / 2 - 1);
	ASSERT_EQ(fake_count("target", true), 1);
	ASSERT_EQ(kafka.nr_unanswered, 0);
	ASSERT_EQ(relay.stats.standstills, 0);
}

TEST(a_relay_that_is_not_in_the_group_any_more_sends_nothing)
{
	open_with_one_near();
	stand_still(SESSION_MS);
	fake_answer_commits(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
	read_due(2, "target");
	go_on(SECOND_MS / 2);
	ASSERT_EQ(kafka.nr_produced, 0);
	kafka.lost = true;
	revoke_partitions("delays", 1);
	turn_of_loop();
	ASSERT_EQ(kafka.nr_produced, 0);
	ASSERT_EQ(relay.nr_entries, 0);
	/* When it gets partitions again, it is a member like all others. */
	kafka.lost = false;
	assign_partitions("delays", 1);
	read_due(0, "target");
	ASSERT_EQ(fake_count("target", true), 1);
}

/* Old brokers give this answer also to relays that are not members any more. */
TEST(a_rebalance_in_progress_does_not_end_the_doubt)
{
	open_with_one_near();
	stand_still(SESSION_MS);
	fake_answer_commits(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS);
	turn_of_loop();
	ASSERT_EQ(kafka.nr_produced, 0);
}

TEST(a_relay_that_stands_still_in_the_middle_of_a_turn_sends_nothing_either)
{
	open_with_one_near();
	fake_advance(SESSION_MS * NSEC_PER_MSEC);
	turn();
	read_due(2, "target");
	ASSERT_EQ(kafka.nr_produced, 0);
	turn_of_loop();
	ASSERT_EQ(kafka.nr_produced, 0);
	fake_answer_commits(0);
	turn_of_loop();
	ASSERT_EQ(fake_count("target", true), 2);
}

TEST(a_record_read_after_the_answer_is_sent_after_those_that_waited)
{
	open_with_one_near();
	stand_still(SESSION_MS);
	fake_answer_commits(0);
	read_due(2, "other");
	ASSERT_EQ(kafka.nr_produced, 0);
	turn_of_loop();
	ASSERT_EQ(kafka.nr_produced, 2);
	ASSERT(!strcmp(kafka.produced[0].topic, "target"));
	ASSERT(!strcmp(kafka.produced[1].topic, "other"));
}

TEST(an_answer_to_an_older_question_does_not_count)
{
	open_with_one_near();
	stand_still(SESSION_MS);
	stand_still(SESSION_MS);
	ASSERT_EQ(kafka.nr_unanswered, 2);
	fake_answer_commit(0);
	turn_of_loop();
	ASSERT_EQ(kafka.nr_produced, 0);
	fake_answer_commit(0);
	turn_of_loop();
	ASSERT_EQ(fake_count("target", true), 1);
}

TEST(the_commit_that_asks_has_the_records_that_are_done)
{
	open_with_one_near();
	read_due(2, "target");
	fake_report_all("target", 0);
	stand_still(SESSION_MS);
	fake_answer_commits(0);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 0);
}

TEST(it_asks_again_if_the_answer_decides_nothing)
{
	open_with_one_near();
	stand_still(SESSION_MS);
	fake_answer_commits(RD_KAFKA_RESP_ERR_NOT_COORDINATOR);
	go_on(2 * SECOND_MS);
	ASSERT_EQ(kafka.nr_produced, 0);
	ASSERT_EQ(kafka.nr_unanswered, 1);
	fake_answer_commits(0);
	turn_of_loop();
	ASSERT_EQ(fake_count("target", true), 1);
}

TEST(it_asks_again_if_it_could_not_ask)
{
	open_with_one_near();
	kafka.commit_refused = RD_KAFKA_RESP_ERR__STATE;
	stand_still(SESSION_MS);
	ASSERT_EQ(kafka.nr_unanswered, 0);
	kafka.commit_refused = 0;
	go_on(2 * SECOND_MS);
	ASSERT_EQ(kafka.nr_produced, 0);
	ASSERT_EQ(kafka.nr_unanswered, 1);
}

TEST(a_coordinator_that_is_down_does_not_stop_the_relay_for_ever)
{
	open_with_one_near();
	stand_still(SESSION_MS);
	go_on(SESSION_MS - SECOND_MS);
	ASSERT_EQ(kafka.nr_produced, 0);
	go_on(2 * SECOND_MS);
	ASSERT_EQ(fake_count("target", true), 1);
}
