// SPDX-License-Identifier: GPL-2.0
/* Exactly once: what happens to the records of a turn when one of its steps fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "relay/check.h"
#include "relay/clocks.h"
#include "relay/group.h"
#include "relay/kafka.h"
#include "relay/test/fake_transactions.h"
#include "relay/test/fixture_lib.h"
#include "relay/turn.h"

/* How long a turn begins after the last one, and more than it waits after one that failed. */
#define START_MS	50
#define STEP_MS		250

static void open_turns(void)
{
	open_relay();
	relay.own_producer = NULL;
	relay.options.delivery = RELAY_EXACTLY_ONCE;
	relay.options.brokers = "127.0.0.1:1";
	STAILQ_INIT(&relay.options.settings);
	ASSERT_EQ(relay_turn_open(&relay), 0);
	ASSERT_EQ(relay_check_open(&relay), 0);
	assign_partitions("delays", 1);
}

static void run_turn(void)
{
	fake_advance(STEP_MS * NSEC_PER_MSEC);
	turn();
	relay_turn_run(&relay);
	ASSERT(relay_turn_wait(&relay));
	turn();
}

static void run_turns(unsigned int nr)
{
	while (nr--)
		run_turn();
}

static int64_t committed(void)
{
	return fake_partition("delays", 0)->committed;
}

TEST(a_turn_commits_records_and_their_offsets_together)
{
	open_turns();
	read_due(0, "a");
	read_due(1, "b");
	run_turns(4);
	ASSERT_EQ(fake_committed("a"), 1);
	ASSERT_EQ(fake_committed("b"), 1);
	ASSERT_EQ(committed(), 2);
	ASSERT_EQ(transactions.nr_committed, 2);
	ASSERT_EQ(relay.nr_entries, 0);
	relay_turn_close(&relay);
	relay_check_close(&relay);
	ASSERT_EQ(transactions.nr_clients, 0);
}

TEST(reports_of_a_turn_show_the_clocks_of_brokers)
{
	open_turns();
	kafka.broker_stamps = true;
	kafka.report_stamp_ms = relay_now_ms() - HOUR_MS;
	read_due(0, "a");
	run_turns(2);
	ASSERT_EQ(fake_committed("a"), 1);
	ASSERT_GE(relay_clocks_get(&relay).behind_ms, HOUR_MS);
	ASSERT_EQ(relay_clocks_get(&relay).ahead_ms, 0);
}

TEST(what_goes_to_buckets_is_gathered_for_a_turn)
{
	open_turns();
	read_delayed(0, HOUR_MS);
	read_due(1, "a");
	read_delayed(2, HOUR_MS);
	turn();
	relay_turn_run(&relay);
	ASSERT(relay_turn_wait(&relay));
	ASSERT_EQ(fake_committed("a"), 1);
	ASSERT_EQ(transactions.nr_committed, 1);
	ASSERT_EQ(committed(), 0);
	run_turns(3);
	ASSERT_EQ(transactions.nr_committed, 3);
	ASSERT_EQ(committed(), 3);
}

TEST(a_turn_begins_at_once_and_the_next_one_some_time_after_it)
{
	uint64_t begun_ms;

	open_turns();
	read_due(0, "a");
	turn();
	begun_ms = relay_boot_ms();
	ASSERT_EQ(relay_turn_waits_until(&relay), UINT64_MAX);
	relay_turn_run(&relay);
	ASSERT(relay_turn_wait(&relay));
	ASSERT_EQ(fake_committed("a"), 1);
	ASSERT_EQ(relay_turn_waits_until(&relay), UINT64_MAX);
	read_due(1, "a");
	turn();
	relay_turn_run(&relay);
	ASSERT(relay_turn_wait(&relay));
	ASSERT_EQ(fake_committed("a"), 1);
	ASSERT_EQ(relay_turn_waits_until(&relay), begun_ms + START_MS);
	fake_advance(START_MS * NSEC_PER_MSEC);
	relay_turn_run(&relay);
	ASSERT(relay_turn_wait(&relay));
	ASSERT_EQ(fake_committed("a"), 2);
}

/* The loop asks how long it may sleep a moment after it has asked for a turn. */
TEST(a_turn_that_was_too_early_is_not_slept_through)
{
	uint64_t begun_ms;

	open_turns();
	read_due(0, "a");
	turn();
	begun_ms = relay_boot_ms();
	relay_turn_run(&relay);
	ASSERT(relay_turn_wait(&relay));
	read_due(1, "a");
	fake_advance((START_MS - 1) * NSEC_PER_MSEC);
	turn();
	relay_turn_run(&relay);
	fake_advance(NSEC_PER_MSEC);
	ASSERT_EQ(relay_turn_waits_until(&relay), begun_ms + START_MS);
}

/* --- a record is not written ------------------------------------------------------------ */

static rd_kafka_resp_err_t refuse_large(const struct fake_write *write)
{
	return strcmp(write->topic, "large") ? 0 : RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
}

TEST(a_refused_record_is_invalid_and_holds_up_no_other)
{
	open_turns();
	transactions.refuse = refuse_large;
	read_due(0, "good");
	read_due(1, "large");
	read_due(2, "good");
	run_turns(10);
	ASSERT_GE(transactions.nr_aborts, 1);
	ASSERT_EQ(fake_committed("good"), 2);
	ASSERT_EQ(fake_committed("large"), 0);
	ASSERT_EQ(fake_committed("delays.invalid"), 1);
	ASSERT_EQ(committed(), 3);
}

#define LARGE		5000

static bool has_large;

static rd_kafka_resp_err_t note_large(const struct fake_write *write)
{
	has_large = (write->position && has_large) ||
		(!strcmp(write->topic, "target") && write->value_len >= LARGE);
	return 0;
}

/* All records of a batch are refused together. */
static rd_kafka_resp_err_t refuse_batch(const struct fake_write *write)
{
	return has_large && !strcmp(write->topic, "target") ?
		RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE : 0;
}

static void read_sized(int64_t offset, size_t value_len)
{
	read_record(&(struct record){ .offset = offset, .value_len = value_len });
}

TEST(one_record_that_is_too_large_is_found_soon_and_does_not_slow_down_the_others)
{
	unsigned int turns_aborted, tried;
	int64_t offset;

	open_turns();
	transactions.at_once = note_large;
	transactions.refuse = refuse_batch;
	for (offset = 0; offset < 500; offset++)
		read_sized(offset, offset == 250 ? LARGE : 100);
	run_turns(10);
	ASSERT_EQ(fake_committed("target"), 499);
	ASSERT_EQ(fake_committed("delays.invalid"), 1);
	/* The turns, and those that were tried alone. */
	ASSERT_LE(transactions.nr_aborts, 5);
	/* Later ones of that size abort no turn, however long after that. */
	fake_advance(HOUR_MS * NSEC_PER_MSEC);
	run_turns(2);
	turns_aborted = relay.stats.turns_aborted;
	tried = transactions.nr_aborts;
	for (; offset < 1000; offset++)
		read_sized(offset, offset % 100 ? 100 : LARGE + offset);
	run_turns(30);
	ASSERT_EQ(relay.stats.turns_aborted, turns_aborted);
	ASSERT_EQ(transactions.nr_aborts, tried + 5);
	ASSERT_EQ(fake_committed("delays.invalid"), 6);
	ASSERT_EQ(fake_committed("target"), 994);
	/* The limit was raised. */
	transactions.refuse = NULL;
	read_sized(1000, 2 * LARGE);
	for (; offset < 1500; offset++)
		read_sized(offset + 1, 2 * LARGE);
	run_turns(10);
	ASSERT_EQ(fake_committed("target"), 994 + 501);
	ASSERT_LE(transactions.nr_aborts, tried + 5 + 5);
	ASSERT_EQ(committed(), 1501);
}

TEST(many_records_that_are_too_large_are_all_found_before_the_next_turn)
{
	int64_t offset;

	open_turns();
	transactions.at_once = note_large;
	transactions.refuse = refuse_batch;
	for (offset = 0; offset < 100; offset++)
		read_sized(offset, offset % 2 ? 100 : LARGE + 100 - offset);
	run_turns(10);
	ASSERT_LE(relay.stats.turns_aborted, 2);
	ASSERT_EQ(fake_committed("target"), 50);
	ASSERT_EQ(fake_committed("delays.invalid"), 50);
}

static rd_kafka_resp_err_t refuse_5000(const struct fake_write *write)
{
	return write->value_len >= LARGE ? RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE : 0;
}

TEST(records_that_are_too_large_for_each_topic_abort_few_turns)
{
	int64_t offset;

	open_turns();
	transactions.refuse = refuse_5000;
	for (offset = 0; offset < 20; offset++) {
		read_sized(offset, LARGE);
		run_turns(10);
		fake_advance(2 * MINUTE_MS * NSEC_PER_MSEC);
	}
	ASSERT_EQ(fake_committed("delays.invalid"), 20);
	ASSERT_EQ(committed(), 20);
	ASSERT_LE(relay.stats.turns_aborted, 2);
}

/* Brokers take so many records until message.timeout.ms is over. */
#define IN_TIME		150

static rd_kafka_resp_err_t refuse_late(const struct fake_write *write)
{
	return write->position < IN_TIME ? 0 : RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
}

TEST(turns_that_take_too_long_become_smaller_and_no_target_has_the_blame)
{
	int64_t offset;

	open_turns();
	transactions.refuse = refuse_late;
	for (offset = 0; offset < 10 * IN_TIME; offset++)
		read_due(offset, "target");
	run_turns(100);
	ASSERT_EQ(fake_committed("target"), 10 * IN_TIME);
	ASSERT_EQ(committed(), 10 * IN_TIME);
	ASSERT_LE(transactions.most_records, IN_TIME);
	ASSERT_EQ(transactions.nr_committed, 10 * IN_TIME);
}

static bool infer_first(const struct fake_write *write)
{
	return !write->position;
}

/* No broker has acknowledged it, whatever librdkafka concludes. */
TEST(a_record_that_is_reported_without_an_offset_is_not_committed)
{
	open_turns();
	transactions.infers = infer_first;
	read_due(0, "a");
	read_due(1, "a");
	run_turns(2);
	ASSERT_EQ(transactions.nr_committed, 0);
	ASSERT_EQ(committed(), RD_KAFKA_OFFSET_INVALID);
	transactions.infers = NULL;
	run_turns(20);
	ASSERT_EQ(fake_committed("a"), 2);
	ASSERT_EQ(committed(), 2);
}

TEST(records_that_are_not_reported_in_time_are_not_committed)
{
	open_turns();
	transactions.is_silent = true;
	read_due(0, "a");
	run_turn();
	ASSERT_EQ(transactions.nr_aborts, 1);
	ASSERT_EQ(transactions.nr_committed, 0);
	ASSERT_EQ(committed(), RD_KAFKA_OFFSET_INVALID);
	transactions.is_silent = false;
	run_turns(20);
	ASSERT_EQ(fake_committed("a"), 1);
	ASSERT_EQ(committed(), 1);
}

static rd_kafka_resp_err_t refuse_all_late(const struct fake_write *write)
{
	return strcmp(write->topic, "slow") ? 0 : RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
}

TEST(a_target_that_takes_nothing_in_time_fails_and_others_go_on)
{
	open_turns();
	transactions.refuse = refuse_all_late;
	read_due(0, "slow");
	run_turns(2);
	read_due(1, "good");
	run_turns(8);
	ASSERT_EQ(fake_committed("good"), 1);
	ASSERT_EQ(fake_committed("slow"), 0);
	ASSERT_EQ(committed(), 0);
	transactions.refuse = NULL;
	run_turns(100);
	ASSERT_EQ(fake_committed("slow") + fake_committed("delays-b10s"), 1);
	ASSERT_EQ(committed(), 2);
}

static rd_kafka_resp_err_t lack_buckets(const struct fake_write *write)
{
	return strncmp(write->topic, "delays-b", 8) ? 0 : RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

TEST(records_whose_bucket_lacks_their_partition_abort_one_turn_together)
{
	int64_t offset;

	open_turns();
	transactions.at_once = lack_buckets;
	for (offset = 0; offset < 10; offset++)
		read_delayed(offset, HOUR_MS);
	run_turns(5);
	ASSERT_EQ(transactions.nr_aborts, 1);
	read_due(10, "good");
	run_turns(3);
	ASSERT_EQ(fake_committed("good"), 1);
	ASSERT_EQ(committed(), 0);
	transactions.at_once = NULL;
	run_turns(60);
	ASSERT_EQ(committed(), 11);
	ASSERT_EQ(transactions.nr_committed, 11);
}

/* --- a right is missing ----------------------------------------------------------------- */

static rd_kafka_resp_err_t forbid(const struct fake_write *write)
{
	return strcmp(write->topic, "forbidden") ? 0 : RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
}

TEST(if_a_right_is_missing_each_target_of_the_turn_is_tried_alone)
{
	open_turns();
	transactions.offsets_error = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
	read_due(0, "good");
	read_due(1, "forbidden");
	run_turn();
	ASSERT_EQ(transactions.nr_aborts, 1);
	transactions.offsets_error = 0;
	transactions.refuse = forbid;
	run_turns(8);
	ASSERT_EQ(fake_committed("good"), 1);
	ASSERT_EQ(fake_committed("forbidden"), 0);
	/* The tries were aborted, too, and no turn was but the first. */
	ASSERT_EQ(relay.stats.turns_aborted, 1);
	run_turns(40);
	ASSERT_EQ(fake_committed("delays-b10s"), 1);
	ASSERT_EQ(committed(), 2);
}

/* --- the group -------------------------------------------------------------------------- */

TEST(a_turn_that_the_group_fences_off_is_repeated_in_its_order)
{
	char target[16];
	int64_t offset;

	open_turns();
	for (offset = 0; offset < 10; offset++) {
		snprintf(target, sizeof(target), "t%d", (int)offset);
		read_due(offset, target);
	}
	transactions.offsets_error = RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION;
	run_turn();
	ASSERT_EQ(transactions.nr_commits, 0);
	transactions.offsets_error = 0;
	run_turns(3);
	ASSERT_EQ(transactions.nr_committed, 10);
	for (offset = 0; offset < 10; offset++)
		ASSERT_EQ(transactions.committed[offset].topic[1], '0' + (char)offset);
	ASSERT_EQ(committed(), 10);
}

TEST(offsets_of_a_topic_that_was_made_anew_are_not_committed)
{
	open_turns();
	read_due(5, "a");
	run_turns(3);
	ASSERT_EQ(committed(), 6);
	partition_of_delays(0)->is_void = true;
	read_due(6, "a");
	run_turns(3);
	ASSERT_EQ(fake_committed("a"), 2);
	ASSERT_EQ(committed(), 6);
}

/* --- the producers ---------------------------------------------------------------------- */

static void wait_until(const unsigned int *number, unsigned int least)
{
	while (__atomic_load_n(number, __ATOMIC_RELAXED) < least)
		usleep(1000);
}

/* One of its id that was killed may have left a transaction, which blocks readers. */
TEST(a_relay_ends_the_transaction_of_its_predecessor_at_once)
{
	open_turns();
	/* It had two producers. */
	wait_until(&transactions.nr_ready, 2);
	relay_turn_close(&relay);
	ASSERT_EQ(transactions.nr_made, 2);
}

/* Before the transaction that they end, there may be no turn that needs a producer. */
TEST(producers_begin_as_soon_as_brokers_answer)
{
	transactions.init_error = RD_KAFKA_RESP_ERR__TIMED_OUT;
	open_turns();
	wait_until(&transactions.nr_waits, 3);
	__atomic_store_n(&transactions.init_error, 0, __ATOMIC_RELAXED);
	wait_until(&transactions.nr_ready, 2);
	relay_turn_close(&relay);
	ASSERT_EQ(transactions.nr_made, 2);
	ASSERT_EQ(transactions.nr_clients, 0);
}

TEST(producers_that_failed_are_made_anew)
{
	transactions.init_error = RD_KAFKA_RESP_ERR__FAIL;
	open_turns();
	wait_until(&transactions.nr_made, 3);
	__atomic_store_n(&transactions.init_error, 0, __ATOMIC_RELAXED);
	wait_until(&transactions.nr_ready, 2);
	relay_turn_close(&relay);
	ASSERT_EQ(transactions.nr_clients, 0);
}

/* The coordinator of one of the two ids is away. */
static void do_without(const char *id)
{
	int64_t offset;

	transactions.away = id;
	open_turns();
	wait_until(&transactions.nr_ready, 1);
	for (offset = 0; offset < 10; offset++) {
		read_due(offset, "a");
		run_turns(2);
	}
	ASSERT_EQ(fake_committed("a"), 10);
	ASSERT_EQ(relay.stats.turns_aborted, 0);
	ASSERT_EQ(transactions.nr_same, transactions.nr_commits - 1);
	__atomic_store_n(&transactions.away, NULL, __ATOMIC_RELAXED);
	wait_until(&transactions.nr_ready, 2);
	transactions.nr_same = 0;
	transactions.nr_commits = 0;
	for (; offset < 20; offset++) {
		read_due(offset, "a");
		run_turns(2);
	}
	ASSERT_EQ(fake_committed("a"), 20);
	ASSERT_GE(transactions.nr_commits, 10);
	ASSERT_EQ(transactions.nr_same, 0);
	ASSERT_EQ(transactions.nr_made, 2);
}

TEST(while_the_second_producer_cannot_write_the_first_one_does_all_turns)
{
	do_without("/2");
}

TEST(while_the_first_producer_cannot_write_the_second_one_does_all_turns)
{
	char id[RELAY_CLIENT_ID_MAX];

	open_relay();
	relay_client_id(&relay, "", id);
	do_without(id);
}

TEST(the_next_turn_is_the_other_producers)
{
	int64_t offset;

	open_turns();
	wait_until(&transactions.nr_ready, 2);
	for (offset = 0; offset < 4; offset++) {
		read_due(offset, "a");
		run_turns(2);
	}
	ASSERT_EQ(fake_committed("a"), 4);
	ASSERT_GE(transactions.nr_commits, 4);
	ASSERT_EQ(transactions.nr_same, 0);
}

TEST(records_wait_until_transactions_can_begin)
{
	transactions.init_error = RD_KAFKA_RESP_ERR__TIMED_OUT;
	open_turns();
	read_due(0, "a");
	run_turns(3);
	transactions.init_error = 0;
	transactions.begin_error = RD_KAFKA_RESP_ERR__STATE;
	run_turns(3);
	ASSERT_EQ(transactions.nr_committed, 0);
	transactions.begin_error = 0;
	run_turns(3);
	ASSERT_EQ(fake_committed("a"), 1);
	ASSERT_EQ(committed(), 1);
	ASSERT_LE(transactions.nr_clients, 2);
}

TEST(a_commit_that_is_refused_is_aborted_and_repeated)
{
	open_turns();
	transactions.commit_error = RD_KAFKA_RESP_ERR__TIMED_OUT;
	transactions.requires_abort = true;
	read_due(0, "a");
	run_turn();
	ASSERT_EQ(transactions.nr_aborts, 1);
	ASSERT_EQ(relay.nr_entries, 1);
	transactions.commit_error = 0;
	run_turns(3);
	ASSERT_EQ(fake_committed("a"), 1);
	ASSERT_EQ(committed(), 1);
}

/* A turn whose end nobody knows, since a commit was not answered, and an abort was not possible. */
static void end_unknown(bool requires_abort, bool is_committed)
{
	open_turns();
	read_due(0, "a");
	run_turns(3);
	transactions.commit_error = RD_KAFKA_RESP_ERR__TIMED_OUT;
	transactions.commits_all_the_same = is_committed;
	transactions.requires_abort = requires_abort;
	transactions.abort_error = RD_KAFKA_RESP_ERR__TIMED_OUT;
	read_due(1, "a");
	run_turn();
	transactions.commit_error = 0;
	transactions.abort_error = 0;
	run_turns(3);
	/* The old producer may not be used on, and Kafka is asked what is there. */
	wait_until(&transactions.nr_made, 3);
	ASSERT_EQ(transactions.nr_made, 3);
	ASSERT_EQ(relay.nr_entries, 0);
	ASSERT_EQ(partition_of_delays(0)->next, is_committed ? 2 : 1);
	ASSERT_EQ(fake_committed("a"), is_committed ? 2 : 1);
}

static void read_second_again(void)
{
	read_due(1, "a");
	run_turns(3);
	ASSERT_EQ(fake_committed("a"), 2);
	ASSERT_EQ(committed(), 2);
}

TEST(after_a_commit_without_an_answer_that_was_made_nothing_comes_twice)
{
	end_unknown(false, true);
	read_second_again();
}

TEST(after_a_commit_without_an_answer_that_was_not_made_nothing_is_lost)
{
	end_unknown(false, false);
	read_second_again();
}

TEST(a_commit_that_may_have_been_made_is_not_taken_for_aborted)
{
	end_unknown(true, true);
}
