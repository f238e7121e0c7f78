// SPDX-License-Identifier: GPL-2.0
/* The relay's producing: targets that fail, are full, or refuse records. */
#include <stdlib.h>
#include <string.h>

#include "relay/cancels.h"
#include "relay/commit.h"
#include "relay/send.h"
#include "relay/test/fixture_lib.h"
#include "relay/wake.h"

/* Each poll reports one record of those in flight. */
static void report_one(void)
{
	static size_t i;

	for (; i < kafka.nr_produced; i++) {
		if (kafka.produced[i].in_flight) {
			fake_report(i, 0);
			return;
		}
	}
}

/* Targets are remembered: does one of them have entries? */
static bool have_entries(void)
{
	struct relay_target *target;

	RB_FOREACH(target, relay_targets, &relay.targets)
		if (target->nr)
			return true;
	return false;
}

/* --- targets that refuse a record ------------------------------------------------------- */

/* librdkafka itself refuses the record, as with -X message.max.bytes. */
static rd_kafka_resp_err_t refuse_large(const struct fake_produced *produced)
{
	return produced->value_len > 1000 && !strcmp(produced->topic, "target") ?
		RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE : 0;
}

TEST(a_record_that_is_refused_at_once_does_not_disturb_those_behind_it)
{
	int64_t offset;

	open_relay();
	kafka.at_once = refuse_large;
	assign_partitions("delays", 1);
	read_record(&(struct record){ .offset = 0, .value_len = 2000 });
	for (offset = 1; offset < 5; offset++)
		read_due(offset, "target");
	wait_ms(5 * SECOND_MS);
	ASSERT_EQ(fake_count("delays.invalid", true), 1);
	ASSERT_EQ(fake_count("target", true), 4);
	wait_ms(60 * SECOND_MS);
	ASSERT_EQ(fake_count("target", false), 4);
	fake_report_all(NULL, 0);
	turn();
	ASSERT_EQ(low_of(0), 5);
	ASSERT_EQ(relay.nr_entries, 0);
	ASSERT(!have_entries());
}

/* Counters of targets would go backwards on the page if these were freed and made anew. */
TEST(a_target_with_a_label_is_kept)
{
	struct relay_target *target;

	open_relay();
	relay.nr_labels = RELAY_LABELS_MAX - 1;
	assign_partitions("delays", 1);
	read_due(0, "target");
	fake_report_all("target", 0);
	turn();
	target = RB_MIN(relay_targets, &relay.targets);
	ASSERT(target && target->labelled);
	ASSERT_EQ(target->written, 1);
	ASSERT_EQ(target->nr, 0);
	read_due(1, "target");
	fake_report_all("target", RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
	turn();
	ASSERT(target->failing);
	revoke_partitions("delays", 1);
	wait_ms(MINUTE_MS);
	ASSERT_EQ(RB_MIN(relay_targets, &relay.targets), target);
	RB_REMOVE(relay_targets, &relay.targets, target);
	free(target);
}

/* A batch is reported as one: the target refuses it if record 3 is in it. */
static void report_batch(void)
{
	rd_kafka_resp_err_t error = 0;
	size_t nr = kafka.nr_produced, i;

	for (i = 0; i < nr; i++)
		if (kafka.produced[i].in_flight && !strcmp(fake_header(i, RELAY_ID), "delays-0-3"))
			error = RD_KAFKA_RESP_ERR_INVALID_RECORD;
	fake_report_all("target", error);
	fake_report_all("delays.invalid", 0);
}

TEST(one_bad_record_of_a_batch_goes_to_the_invalid_ones_and_the_others_to_their_target)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	for (offset = 0; offset < 10; offset++)
		read_due(offset, "target");
	kafka.at_poll = report_batch;
	wait_ms(MINUTE_MS);
	ASSERT_EQ(fake_count("delays.invalid", false), 1);
	ASSERT_EQ(relay.stats.sent[RELAY_DELIVER], 9);
	ASSERT_EQ(low_of(0), 10);
	ASSERT(!have_entries());
}

/* Brokers refuse large records, in every topic. */
static void report_large(void)
{
	size_t nr = kafka.nr_produced, i;

	for (i = 0; i < nr; i++)
		if (kafka.produced[i].in_flight)
			fake_report(i, kafka.produced[i].value_len > 1000 ?
				    RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE : 0);
}

TEST(a_record_that_every_topic_refuses_leaves_a_record_of_its_place)
{
	size_t i;

	open_relay();
	assign_partitions("delays", 1);
	read_record(&(struct record){ .offset = 0, .value_len = 2000 });
	read_due(1, "target");
	kafka.at_poll = report_large;
	wait_ms(MINUTE_MS);
	ASSERT_EQ(low_of(0), 2);
	ASSERT_EQ(relay.stats.sent[RELAY_REFUSE], 1);
	for (i = kafka.nr_produced - 1; strcmp(kafka.produced[i].topic, "delays.invalid"); i--)
		ASSERT_GT(i, 0);
	ASSERT_EQ(kafka.produced[i].value_len, 0);
	ASSERT(!strcmp(fake_header(i, RELAY_ID), "delays-0-0"));
	ASSERT(strstr(fake_header(i, RELAY_ERROR), "too large"));
	ASSERT_EQ(strlen(fake_header(i, RELAY_TARGET)), 0);
}

TEST(an_invalid_record_has_its_place_as_its_id)
{
	open_relay();
	assign_partitions("delays", 1);
	read_due(7, "no name");
	ASSERT_EQ(fake_count("delays.invalid", true), 1);
	ASSERT(!strcmp(fake_header(0, RELAY_ID), "delays-0-7"));
	ASSERT(!strcmp(fake_header(0, RELAY_TARGET), "no name"));
}

/* librdkafka's error for a topic whose name brokers have refused. */
static rd_kafka_resp_err_t know_no_topic(const struct fake_produced *produced)
{
	return strcmp(produced->topic, "a.b") ? 0 : RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
}

TEST(a_target_whose_name_brokers_refuse_holds_no_records)
{
	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "a.b");
	fake_report(0, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION);
	ASSERT_EQ(fake_count("delays.invalid", true), 1);
	fake_report_all(NULL, 0);
	kafka.at_once = know_no_topic;
	read_due(1, "a.b");
	ASSERT_EQ(fake_count("delays.invalid", true), 1);
	ASSERT(strstr(fake_header(2, RELAY_ERROR), "Invalid topic"));
	fake_report_all(NULL, 0);
	ASSERT_EQ(low_of(0), 2);
}

/* --- a target that does not answer --------------------------------------------------------- */

/* Report the records for other targets; and those for the dead one after half a minute. */
static void report_all_but_dead(void)
{
	fake_report_all("target", 0);
	if (relay_now_ms() > NOW_MS + 30 * SECOND_MS)
		fake_report_all("dead", RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
}

TEST(a_dead_target_leaves_room_in_the_producer_for_others)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	kafka.at_poll = report_all_but_dead;
	for (offset = 0; offset < 150000; offset++)
		read_due(offset, offset % 10 ? "dead" : "target");
	turn();
	ASSERT_EQ(relay.stats.sent[RELAY_DELIVER], 15000);
	ASSERT_LE(kafka.nr_in_flight, kafka.queue_size / 2);
}

TEST(other_targets_do_not_wait_for_blocked_records_of_a_failing_one)
{
	int64_t offset;

	open_relay();
	kafka.queue_size = 100;
	assign_partitions("delays", 1);
	for (offset = 0; offset < 1000; offset++)
		read_due(offset, "dead");
	for (offset = 1000; offset < 1050; offset++)
		read_due(offset, "target");
	kafka.at_poll = report_all_but_dead;
	wait_ms(31 * SECOND_MS);
	ASSERT_EQ(relay.stats.sent[RELAY_DELIVER], 50);
	ASSERT_LE(fake_count("dead", true), 1);
}

TEST(all_records_of_a_target_are_written_however_many_there_are)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	for (offset = 0; offset < 50000; offset++)
		read_due(offset, "target");
	kafka.at_poll = report_one;
	while (relay.stats.sent[RELAY_DELIVER] < 25000)
		turn();
	kafka.at_poll = report_all_but_dead;
	wait_ms(10 * SECOND_MS);
	ASSERT_EQ(low_of(0), 50000);
	ASSERT(!have_entries());
}

TEST(a_failing_target_is_tried_again_even_if_the_wall_clock_is_set)
{
	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "target");
	fake_report(0, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
	fake_set_wall(-24 * 3600 * (int64_t)NSEC_PER_SEC);
	wait_ms(5 * SECOND_MS);
	ASSERT_EQ(fake_count("target", true), 1);
	fake_report_all("target", 0);
	ASSERT_EQ(low_of(0), 1);
}

TEST(a_record_whose_write_is_only_inferred_is_not_done_and_is_sent_again)
{
	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "target");
	read_due(1, "target");
	fake_report_inferred(0);
	ASSERT_EQ(low_of(0), 0);
	fake_report(1, 0);
	turn();
	ASSERT_EQ(low_of(0), 0);
	ASSERT_EQ(fake_count("target", true), 1);
	ASSERT(!strcmp(fake_header(2, RELAY_ID), "delays-0-0"));
	fake_report(2, 0);
	ASSERT_EQ(low_of(0), 2);
	ASSERT_EQ(relay.stats.sent[RELAY_DELIVER], 2);
}

TEST(if_all_writes_are_only_inferred_the_records_are_sent_again_later)
{
	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "target");
	fake_report_inferred(0);
	turn();
	ASSERT_EQ(fake_count("target", true), 0);
	wait_ms(SECOND_MS);
	ASSERT_EQ(fake_count("target", true), 1);
	fake_report(1, 0);
	ASSERT_EQ(low_of(0), 1);
}

/*
 * Record 0 times out after 10 s, which starts a new producer epoch. Record 1 was in flight all the
 * time. Record 2 was just sent, and is acknowledged too soon to have been sent again. Record 3 is
 * sent after the new epoch began.
 */
TEST(a_record_in_flight_when_an_epoch_starts_may_be_written_twice)
{
	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "target");
	read_due(1, "target");
	wait_ms(10 * SECOND_MS);
	read_due(2, "target");
	ASSERT_EQ(fake_count("target", true), 3);
	fake_report(0, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
	ASSERT_EQ(relay.stats.maybe_twice, 0);
	fake_report(2, 0);
	ASSERT_EQ(relay.stats.maybe_twice, 0);
	fake_report(1, 0);
	ASSERT_EQ(relay.stats.maybe_twice, 1);
	wait_ms(10 * SECOND_MS);
	read_due(3, "target");
	wait_ms(10 * SECOND_MS);
	fake_report_all("target", 0);
	ASSERT_EQ(relay.stats.maybe_twice, 1);
	ASSERT_EQ(low_of(0), 4);
}

TEST(failed_writes_that_the_broker_may_have_made_are_counted)
{
	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "target");
	read_due(1, "target");
	fake_report(0, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC);
	kafka.status = RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED;
	fake_report(1, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
	ASSERT_EQ(relay.stats.maybe_twice, 1);
}

static void set_clock_back(void)
{
	fake_set_wall(-(int64_t)NSEC_PER_SEC);
}

TEST(a_revoke_ends_even_if_the_clock_is_set_back_again_and_again)
{
	uint64_t begun_ns;

	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "target");
	kafka.at_poll = set_clock_back;
	begun_ns = fake.now_ns[ALARM_BOOT];
	revoke_partitions("delays", 1);
	ASSERT_LE(fake.now_ns[ALARM_BOOT] - begun_ns, 11 * NSEC_PER_SEC);
	ASSERT_EQ(partition_of_delays(0)->state, PARTITION_SUSPENDED);
}

/* --- buckets that cannot be written --------------------------------------------------------- */

#define BUCKET	"delays-b2400s"

static void fail_buckets(void)
{
	size_t nr = kafka.nr_produced, i;

	for (i = 0; i < nr; i++)
		if (kafka.produced[i].in_flight && !strncmp(kafka.produced[i].topic, "delays-b", 8))
			fake_report(i, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
}

static rd_kafka_resp_err_t know_no_bucket(const struct fake_produced *produced)
{
	return strncmp(produced->topic, "delays-b", 8) ? 0 : RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
}

/* A record with a delay of an hour is to be parked for 40 minutes, but buckets are down for 30. */
static void park_in_vain(void)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	for (offset = 0; offset < 3; offset++)
		read_delayed(offset, HOUR_MS);
	/* What goes to a bucket is gathered. */
	wait_ms(SECOND_MS);
	ASSERT_EQ(fake_count(BUCKET, true), 3);
	kafka.at_poll = fail_buckets;
	wait_ms(30 * MINUTE_MS);
	fail_buckets();
	kafka.at_poll = NULL;
}

TEST(a_record_that_could_not_be_parked_goes_to_the_bucket_that_is_right_later)
{
	park_in_vain();
	wait_ms(MINUTE_MS);
	ASSERT_EQ(fake_count("delays-b600s", true), 3);
	fake_report_all("delays-b600s", 0);
	turn();
	ASSERT_EQ(low_of(0), 3);
}

TEST(a_record_that_could_not_be_parked_is_delivered_in_time_while_its_bucket_is_down)
{
	park_in_vain();
	kafka.at_once = know_no_bucket;
	wait_ms(12 * MINUTE_MS);
	ASSERT_EQ(relay.nr_near, 3);
	ASSERT_EQ(relay.nr_sending, 0);
	wait_ms(17 * MINUTE_MS);
	ASSERT_EQ(kafka.nr_in_flight, 0);
	wait_ms(2 * MINUTE_MS);
	ASSERT_EQ(fake_count("target", true), 3);
	fake_report_all("target", 0);
	turn();
	ASSERT_EQ(low_of(0), 3);
	ASSERT(!have_entries());
}

/*
 * Record 0 is in flight to a bucket, by the relay's own producer, and record 2 to a target. The own
 * producer starts a new epoch, since what is said of record 1 cannot be written to the map.
 */
TEST(a_failed_write_to_the_map_starts_an_epoch_of_the_own_producer_only)
{
	open_relay();
	assign_partitions("delays", 1);
	read_delayed(0, HOUR_MS);
	wait_ms(SECOND_MS);
	read_due(1, "target");
	fake_report_all("target", 0);
	read_due(2, "target");
	ASSERT_EQ(fake_count(BUCKET, true), 1);
	kafka.map_error = RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
	relay_commit(&relay);
	ASSERT_GT(kafka.nr_map_writes, 0);
	wait_ms(10 * SECOND_MS);
	ASSERT_EQ(relay.stats.maybe_twice, 0);
	fake_report_all("target", 0);
	ASSERT_EQ(relay.stats.maybe_twice, 0);
	fake_report_all(BUCKET, 0);
	ASSERT_EQ(relay.stats.maybe_twice, 1);
}

/* Partitions were added to the topic of delays, but not to its buckets. */
static rd_kafka_resp_err_t know_partition_0(const struct fake_produced *produced)
{
	return produced->partition > 0 ? RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION : 0;
}

TEST(a_bucket_with_too_few_partitions_fails_for_the_missing_ones_only)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 2);
	kafka.at_once = know_partition_0;
	for (offset = 0; offset < 10; offset++) {
		read_record(&(struct record){ .partition = 1, .offset = offset,
			    .delay_ms = HOUR_MS });
		read_delayed(offset, HOUR_MS);
	}
	wait_ms(SECOND_MS);
	ASSERT_EQ(fake_count(BUCKET, true), 10);
	fake_report_all(BUCKET, 0);
	wait_ms(5 * SECOND_MS);
	ASSERT_EQ(relay.stats.send_errors, 10);
	kafka.at_once = NULL;
	wait_ms(20 * SECOND_MS);
	ASSERT_EQ(fake_count(BUCKET, true), 10);
	fake_report_all(BUCKET, 0);
	turn();
	ASSERT_EQ(low_of(1), 10);
	ASSERT(!have_entries());
}

TEST(a_partition_that_a_bucket_lacks_fills_no_memory_of_others)
{
	int64_t offset = 0;

	open_relay();
	assign_partitions("delays", 2);
	kafka.at_once = know_partition_0;
	while (!partition_of_delays(1)->is_paused && offset < 3000)
		read_record(&(struct record){ .partition = 1, .offset = offset++,
			    .delay_ms = HOUR_MS });
	wait_ms(SECOND_MS);
	ASSERT(partition_of_delays(1)->is_paused);
	ASSERT(!partition_of_delays(0)->is_paused);
	/* Trying again in vain lets it read no more. */
	wait_ms(MINUTE_MS);
	ASSERT(partition_of_delays(1)->is_paused);
	kafka.at_once = NULL;
	wait_ms(20 * SECOND_MS);
	fake_report_all(BUCKET, 0);
	turn();
	ASSERT(!partition_of_delays(1)->is_paused);
}

/* --- what goes to a bucket is gathered ------------------------------------------------------ */

/* A tenth of what is gathered is sent each time. */
#define SLICE_MS	50

TEST(records_whose_bucket_changes_while_they_are_gathered_are_sent_together)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	/* After some ms, one of 20 min is too wide for them. */
	for (offset = 0; offset < 100; offset++)
		read_delayed(offset, 30 * MINUTE_MS + 50);
	ASSERT_EQ(kafka.nr_produced, 0);
	fake_advance(501 * NSEC_PER_MSEC);
	turn();
	ASSERT_EQ(kafka.nr_in_flight, 100);
}

TEST(what_is_gathered_holds_up_no_record_that_is_due)
{
	open_relay();
	assign_partitions("delays", 1);
	read_delayed(0, 30 * MINUTE_MS);
	kafka.queue_size = 0;
	read_due(1, "target");
	kafka.queue_size = 1;
	turn();
	ASSERT_EQ(fake_count("target", true), 1);
	ASSERT_EQ(kafka.nr_produced, 1);
}

/* A record is to be moved, and the producer has no room for it. */
static void block_a_move(void)
{
	open_relay();
	assign_partitions("delays", 1);
	kafka.own_is_full = true;
	read_delayed(0, 30 * MINUTE_MS);
	wait_ms(SECOND_MS);
}

TEST(records_that_only_move_hold_up_none_that_is_due)
{
	block_a_move();
	ASSERT_EQ(kafka.nr_produced, 0);
	read_due(1, "target");
	ASSERT_EQ(fake_count("target", true), 1);
	kafka.own_is_full = false;
	turn();
	ASSERT_EQ(kafka.nr_produced, 2);
}

TEST(partitions_are_revoked_while_their_records_wait_to_be_moved)
{
	block_a_move();
	revoke_partitions("delays", 1);
	kafka.own_is_full = false;
	assign_partitions("delays", 1);
	turn();
	ASSERT_EQ(relay.nr_entries, 0);
	ASSERT_EQ(kafka.nr_produced, 0);
}

static void read_large(int64_t offset)
{
	read_record(&(struct record){
		.offset = offset,
		.delay_ms = HOUR_MS,
		.value_len = 10000,
	});
}

TEST(a_16th_of_the_memory_at_most_is_gathered)
{
	int64_t offset;

	open_relay();
	relay.pressure.cap = 16 * 100000;
	assign_partitions("delays", 1);
	for (offset = 0; offset < 9; offset++) {
		read_large(offset);
		turn();
	}
	ASSERT_EQ(kafka.nr_produced, 0);
	read_large(9);
	turn();
	ASSERT_EQ(kafka.nr_produced, 10);
}

TEST(partitions_are_revoked_while_their_records_are_gathered)
{
	open_relay();
	assign_partitions("delays", 2);
	read_delayed(0, HOUR_MS);
	revoke_partitions("delays", 2);
	wait_ms(SECOND_MS);
	ASSERT_EQ(kafka.nr_produced, 0);
	assign_partitions("delays", 1);
	read_delayed(0, HOUR_MS);
	wait_ms(SECOND_MS);
	ASSERT_EQ(kafka.nr_produced, 1);
}

TEST(partitions_are_lost_while_their_records_are_gathered)
{
	open_relay();
	assign_partitions("delays", 2);
	read_delayed(0, HOUR_MS);
	ASSERT_EQ(relay.nr_gathered, 1);
	kafka.lost = true;
	revoke_partitions("delays", 2);
	ASSERT_EQ(relay.nr_gathered, 0);
	ASSERT_EQ(relay.gathered_bytes, 0);
	ASSERT(TAILQ_EMPTY(&relay.gathered));
}

TEST(records_are_gathered_for_a_part_of_the_horizon_only)
{
	open_relay();
	relay_rules_init(&relay.rules, "delays", HOUR_MS, 20000);
	assign_partitions("delays", 1);
	/* Two horizons of 180 ms are less than that. */
	read_delayed(0, 400 * 20000);
	fake_advance(relay.rules.horizon_ms / 8 * NSEC_PER_MSEC);
	turn();
	ASSERT_EQ(kafka.nr_produced, 1);
	ASSERT_EQ(fake_count("target", false), 0);
}

TEST(what_is_gathered_is_sent_a_part_at_a_time)
{
	unsigned int nr;
	int32_t i;

	open_relay();
	assign_partitions("delays", 20);
	for (i = 0; i < 20; i++)
		read_record(&(struct record){ .partition = i, .delay_ms = HOUR_MS });
	for (nr = 1; nr <= 10; nr++) {
		fake_advance(SLICE_MS * NSEC_PER_MSEC);
		turn();
		ASSERT_EQ(kafka.nr_produced, 2 * nr);
	}
	ASSERT_EQ(relay.nr_gathered, 0);
}

/* Each time it is enough, and some of it is left. */
TEST(what_is_left_of_a_flood_is_sent_soon)
{
	int32_t i, number;

	open_relay();
	relay.pressure.cap = 16 * 10000;
	assign_partitions("delays", 10);
	for (i = 0; i < 100; i++) {
		struct record record = { .offset = i, .delay_ms = HOUR_MS };

		for (number = 0; number < 10; number++) {
			record.partition = number;
			record.value_len = number == i % 2 * 5 ? 10000 : 0;
			read_record(&record);
		}
		turn();
	}
	ASSERT_GT(relay.nr_gathered, 0);
	ASSERT_LE(relay_send_gathers_until(&relay), relay_boot_ms() + SLICE_MS);
	fake_advance(10 * SLICE_MS * NSEC_PER_MSEC);
	turn();
	ASSERT_EQ(relay.nr_gathered, 0);
}

TEST(the_loop_does_not_sleep_when_enough_is_gathered)
{
	open_relay();
	relay.pressure.cap = 16 * 10000;
	assign_partitions("delays", 1);
	ASSERT_EQ(relay_send_gathers_until(&relay), UINT64_MAX);
	read_delayed(0, HOUR_MS);
	ASSERT_EQ(relay_send_gathers_until(&relay), relay_boot_ms() + SLICE_MS);
	read_large(1);
	ASSERT_EQ(relay_send_gathers_until(&relay), 0);
	turn();
	ASSERT_EQ(kafka.nr_produced, 2);
	ASSERT_EQ(relay_send_gathers_until(&relay), UINT64_MAX);
}

/* --- the topic of invalid records as a target ------------------------------------------------ */

static rd_kafka_resp_err_t fail_invalid(const struct fake_produced *produced)
{
	return strcmp(produced->topic, "delays.invalid") ? 0 : RD_KAFKA_RESP_ERR__TIMED_OUT;
}

TEST(a_record_for_the_topic_of_invalid_ones_that_waited_too_long_waits_on)
{
	open_relay();
	assign_partitions("delays-b10s", 1);
	kafka.at_once = fail_invalid;
	read_record(&(struct record){
		.topic = "delays-b10s",
		.target = "delays.invalid",
		.due_ms = NOW_MS - SECOND_MS,
		.parked_ms = NOW_MS - 20 * SECOND_MS,
		.held_since_ms = NOW_MS - 8 * 24 * HOUR_MS,
	});
	wait_ms(5 * SECOND_MS);
	kafka.at_once = NULL;
	wait_ms(20 * SECOND_MS);
	ASSERT_EQ(fake_count("delays.invalid", true), 1);
}

/* --- what may have been taken back ---------------------------------------------------------- */

TEST(what_may_have_been_taken_back_waits_until_that_is_known)
{
	open_relay();
	assign_partitions("delays", 2);
	read_delayed(0, MINUTE_MS);
	read_record(&(struct record){ .partition = 1, .delay_ms = MINUTE_MS });
	wait_ms(50 * SECOND_MS);
	kafka.stands_still = true;
	wait_ms(10 * SECOND_MS);
	/* One of another number does not wait. */
	ASSERT_EQ(fake_count("target", true), 1);
	wait_ms(HOUR_MS);
	ASSERT_EQ(fake_count("target", true), 1);
	kafka.stands_still = false;
	wait_ms(5 * SECOND_MS);
	ASSERT_EQ(fake_count("target", true), 2);
}

/* It would have had to be taken back before that. */
TEST(what_is_known_of_shortly_before_is_enough)
{
	open_relay();
	assign_partitions("delays", 1);
	read_delayed(0, MINUTE_MS);
	wait_ms(57 * SECOND_MS);
	kafka.stands_still = true;
	wait_ms(3 * SECOND_MS);
	ASSERT_EQ(fake_count("target", true), 1);
	/* Late records need to be known of then only, too. */
	read_record(&(struct record){ .offset = 1, .made_ms = NOW_MS, .delay_ms = MINUTE_MS });
	wait_ms(HOUR_MS);
	read_record(&(struct record){ .offset = 2, .made_ms = NOW_MS, .delay_ms = MINUTE_MS });
	ASSERT_EQ(fake_count("target", true), 3);
	read_due(3, "target");
	wait_ms(HOUR_MS);
	ASSERT_EQ(fake_count("target", true), 3);
}

/* There is never an end: what one answer has is enough. */
TEST(ids_that_keep_coming_hold_up_nothing)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	kafka.ids_keep_coming = true;
	for (offset = 0; offset < 10; offset++)
		read_delayed(offset, (offset + 1) * MINUTE_MS);
	for (offset = 0; offset < 10; offset++) {
		wait_ms(MINUTE_MS);
		ASSERT_EQ(fake_count("target", false), (size_t)offset + 1);
	}
	ASSERT_GT(kafka.nr_ids, 100);
}

/* As a topic that was made anew is. */
TEST(a_shorter_topic_of_ids_holds_up_nothing)
{
	open_relay();
	kafka.nr_ids = 1000;
	assign_partitions("delays", 1);
	wait_ms(10 * SECOND_MS);
	ASSERT(partition_of_delays(0)->state == PARTITION_READY);
	kafka.nr_ids = 3;
	kafka.ids_keep_coming = true;
	read_delayed(0, MINUTE_MS);
	wait_ms(HOUR_MS);
	ASSERT_EQ(fake_count("target", false), 1);
}

TEST(a_relay_that_stood_still_asks_before_it_delivers)
{
	open_relay();
	assign_partitions("delays", 1);
	read_delayed(0, MINUTE_MS);
	wait_ms(10 * SECOND_MS);
	fake_advance(HOUR_MS * NSEC_PER_MSEC);
	while (relay_wake_due(&relay))
		;
	ASSERT_EQ(fake_count("target", true), 0);
	wait_ms(2 * SECOND_MS);
	ASSERT_EQ(fake_count("target", true), 1);
}

/* --- the group revokes partitions ---------------------------------------------------------- */

TEST(a_revoke_sends_nothing_more_and_waits_for_records_in_flight)
{
	int64_t offset;

	open_relay();
	kafka.queue_size = 10;
	assign_partitions("delays", 1);
	for (offset = 0; offset < 100; offset++)
		read_due(offset, "target");
	ASSERT_EQ(kafka.nr_produced, 10);
	kafka.at_poll = report_one;
	revoke_partitions("delays", 1);
	ASSERT_EQ(kafka.nr_produced, 10);
	ASSERT_EQ(kafka.nr_in_flight, 0);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 10);
	/* They are kept, in case that the partition comes back at once. */
	ASSERT_EQ(relay.nr_entries, 90);
	assign_partitions("delays", 1);
	ASSERT_EQ(relay.nr_entries, 0);
}

TEST(a_target_that_recovers_during_a_revoke_is_sent_nothing)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "target");
	fake_report(0, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
	for (offset = 1; offset < 10; offset++)
		read_due(offset, "target");
	wait_ms(SECOND_MS);
	ASSERT_EQ(kafka.nr_produced, 2);
	kafka.at_poll = report_one;
	revoke_partitions("delays", 1);
	ASSERT_EQ(kafka.nr_produced, 2);
	ASSERT_EQ(fake_partition("delays", 0)->committed, 1);
	/* After that, the relay goes on. */
	assign_partitions("delays", 1);
	for (offset = 1; offset < 10; offset++)
		read_due(offset, "target");
	ASSERT_EQ(kafka.nr_produced, 11);
}

TEST(what_was_not_sent_when_a_revoke_waited_in_vain_is_never_sent)
{
	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "target");
	read_delayed(1, HOUR_MS);
	wait_ms(SECOND_MS);
	ASSERT_EQ(kafka.nr_in_flight, 2);
	revoke_partitions("delays", 1);
	ASSERT(relay.unclean);
	ASSERT_EQ(kafka.purged, RD_KAFKA_PURGE_F_QUEUE);
	ASSERT_EQ(kafka.own_purged, RD_KAFKA_PURGE_F_QUEUE);
	fake_report_all(NULL, RD_KAFKA_RESP_ERR__PURGE_QUEUE);
}

static rd_kafka_resp_err_t full_for_targets(const struct fake_produced *produced)
{
	return strcmp(produced->topic, "target") ? 0 : RD_KAFKA_RESP_ERR__QUEUE_FULL;
}

/* Both producers are full, and some of what was to be parked becomes due meanwhile. */
TEST(what_becomes_due_while_it_waits_to_be_moved_holds_up_nobody)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	kafka.own_is_full = true;
	for (offset = 0; offset < 5; offset++)
		read_delayed(offset, 20 * MINUTE_MS + 30 * SECOND_MS);
	for (; offset < 10; offset++)
		read_delayed(offset, 10 * HOUR_MS);
	wait_ms(2 * SECOND_MS);
	ASSERT_EQ(kafka.nr_produced, 0);
	kafka.at_once = full_for_targets;
	fake_advance(21 * MINUTE_MS * NSEC_PER_MSEC);
	relay_cancels_ask(&relay);
	relay_cancels_poll(&relay);
	read_due(10, "target");
	kafka.own_is_full = false;
	turn();
	turn();
	ASSERT_EQ(kafka.nr_produced, 5);
	ASSERT_EQ(fake_count("target", false), 0);
	/* What was due first is first. */
	ASSERT_EQ(TAILQ_FIRST(&relay.blocked)->offset, 10);
	kafka.at_once = NULL;
	turn();
	ASSERT_EQ(fake_count("target", true), 6);
	fake_report_all(NULL, 0);
	turn();
	ASSERT_EQ(low_of(0), 11);
}
