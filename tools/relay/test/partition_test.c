// SPDX-License-Identifier: GPL-2.0
/* The relay's partitions: which records are read, when they are paused, and when they stop. */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "relay/lag.h"
#include "relay/partition.h"
#include "relay/test/caught_lib.h"
#include "relay/test/fixture_lib.h"

static void read_error_of(const char *topic, rd_kafka_resp_err_t error)
{
	rd_kafka_message_t message = {
		.err = error,
		.rkt = (rd_kafka_topic_t *)topic,
	};

	relay_partition_read(&relay, &message);
}

static void read_error(rd_kafka_resp_err_t error)
{
	read_error_of("delays", error);
}

TEST(records_that_cannot_be_read_stop_their_partition)
{
	static const rd_kafka_resp_err_t errors[] = {
		RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE,
		RD_KAFKA_RESP_ERR__BAD_MSG, RD_KAFKA_RESP_ERR__BAD_COMPRESSION,
		RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
	};
	size_t i;

	open_relay();
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		test_about("%s", rd_kafka_err2name(errors[i]));
		assign_partitions("delays", 1);
		read_due(10 * i, "target");
		read_error(RD_KAFKA_RESP_ERR__TRANSPORT);
		ASSERT(!fake_partition("delays", 0)->paused);
		read_error(errors[i]);
		ASSERT(fake_partition("delays", 0)->paused);
		/* The records after the missing ones are not read. */
		read_due(10 * i + 5, "target");
		fake_report_all("target", 0);
		revoke_partitions("delays", 1);
		ASSERT_EQ(fake_partition("delays", 0)->committed, 10 * i + 1);
	}
}

TEST(a_record_whose_headers_cannot_be_read_stops_its_partition)
{
	struct fake_message fake_message = {
		.headers_error = RD_KAFKA_RESP_ERR__BAD_MSG,
		.message = {
			.rkt = (rd_kafka_topic_t *)"delays",
			.offset = 1,
		},
	};

	open_relay();
	assign_partitions("delays", 1);
	read_due(0, "target");
	fake_message.message._private = &fake_message;
	relay_partition_read(&relay, &fake_message.message);
	ASSERT(fake_partition("delays", 0)->paused);
	ASSERT_EQ(fake_count("delays.invalid", false), 0);
}

TEST(a_partition_without_a_commit_whose_first_records_are_deleted_stops)
{
	open_relay();
	/* Partition 0 begins with a gap of a transaction, partition 1 was deleted up to 100. */
	fake_partition("delays", 1)->begins = 100;
	assign_partitions("delays", 2);
	read_due(100, "target");
	read_record(&(struct record){ .partition = 1, .offset = 100 });
	ASSERT_EQ(kafka.nr_produced, 1);
	ASSERT(!fake_partition("delays", 0)->paused);
	ASSERT(fake_partition("delays", 1)->paused);
	fake_report_all(NULL, 0);
	revoke_partitions("delays", 2);
	ASSERT_EQ(fake_partition("delays", 1)->committed, RD_KAFKA_OFFSET_INVALID);
	relay.options.from_beginning = true;
	assign_partitions("delays", 2);
	read_record(&(struct record){ .partition = 1, .offset = 100 });
	ASSERT_EQ(kafka.nr_produced, 2);
}

/* --- pauses ----------------------------------------------------------------------------- */

TEST(partitions_are_paused_for_memory_in_one_call_and_once)
{
	int32_t i;

	open_relay();
	relay.pressure.cap = 1 << 20;
	assign_partitions("delays", 100);
	log_set_level(LOG_WARNING);
	catch_stderr();
	for (i = 0; i < 100; i++) {
		struct record record = { .partition = i, .delay_ms = H_MS, .value_len = 10000 };

		read_record(&record);
	}
	ASSERT(relay.pressure.paused[RELAY_INPUT]);
	ASSERT(strstr(caught(), "memory is short: new records are not read"));
	ASSERT_EQ(kafka.nr_pause_calls, 1);
	wait_ms(H_MS);
	fake_report_all("target", 0);
	turn();
	ASSERT_EQ(kafka.nr_pause_calls, 1);
	ASSERT_EQ(kafka.nr_resume_calls, 1);
	for (i = 0; i < 100; i++)
		ASSERT(!fake_partition("delays", i)->paused);
}

TEST(partitions_assigned_after_memory_is_free_again_are_not_paused)
{
	open_relay();
	relay.pressure.cap = 1 << 20;
	assign_partitions("delays", 1);
	read_record(&(struct record){ .delay_ms = H_MS, .value_len = 930000 });
	ASSERT(fake_partition("delays", 0)->paused);
	revoke_partitions("delays", 1);
	assign_partitions("delays", 1);
	ASSERT(!fake_partition("delays", 0)->paused);
	ASSERT_EQ(kafka.nr_pause_calls, 1);
}

/* More than the pieces of the map take. */
#define SMALL	10000

TEST(the_window_of_done_offsets_counts_as_memory)
{
	int64_t offset;

	open_relay();
	assign_partitions("delays", 1);
	read_delayed(0, H_MS);
	for (offset = 1; offset < 100; offset++)
		read_due(offset * 1000000LL / 100, "target");
	fake_report_all("target", 0);
	ASSERT_GE(relay.pressure.bytes, 1000000 / 8);
	wait_ms(H_MS);
	fake_report_all("target", 0);
	ASSERT_LT(relay.pressure.bytes, SMALL);
	read_due(2000000, "target");
	fake_report_all("target", 0);
	ASSERT_LT(relay.pressure.bytes, SMALL);
	revoke_partitions("delays", 1);
	ASSERT_LT(relay.pressure.bytes, SMALL);
}

/* A record that was parked now, for ten minutes. */
static void read_parked(int64_t offset, size_t value_len)
{
	read_record(&(struct record){
		.topic = "delays-b600s",
		.offset = offset,
		.due_ms = relay_now_ms() + 31 * MINUTE_MS,
		.parked_ms = relay_now_ms(),
		.value_len = value_len,
	});
}

/* For the only partition: a 16th of the memory may be read ahead. */
#define AHEAD		100000

static void limit_reading_ahead(void)
{
	relay.pressure.cap = 16 * AHEAD;
}

/* A pause is a call for librdkafka's thread, which then fetches the same again. */
TEST(a_bucket_is_not_paused_for_little_that_waits)
{
	int64_t offset;

	open_relay();
	limit_reading_ahead();
	assign_partitions("delays-b600s", 1);
	for (offset = 0; offset < 10; offset++)
		read_parked(offset, AHEAD / 20);
	ASSERT_EQ(kafka.nr_pause_calls, 0);
	ASSERT_EQ(relay.nr_entries, 10);
	wait_ms(11 * MINUTE_MS);
	ASSERT_EQ(kafka.nr_produced, 10);
	ASSERT_EQ(kafka.nr_pause_calls + kafka.nr_resume_calls, 0);
}

TEST(a_bucket_is_paused_for_much_that_waits_and_until_half_of_it_is_left)
{
	int64_t offset;

	open_relay();
	limit_reading_ahead();
	assign_partitions("delays-b600s", 1);
	for (offset = 0; !fake_partition("delays-b600s", 0)->paused && offset < 10; offset++) {
		read_parked(offset, AHEAD / 4);
		wait_ms(MINUTE_MS);
	}
	ASSERT_EQ(offset, 4);
	ASSERT_EQ(kafka.nr_seeks, 0);
	wait_ms(7 * MINUTE_MS);
	ASSERT_EQ(relay.nr_entries, 4);
	ASSERT_EQ(kafka.nr_produced, 1);
	ASSERT(fake_partition("delays-b600s", 0)->paused);
	wait_ms(2 * MINUTE_MS);
	ASSERT_EQ(kafka.nr_produced, 3);
	ASSERT(!fake_partition("delays-b600s", 0)->paused);
	ASSERT_EQ(kafka.nr_pause_calls, 1);
	ASSERT_EQ(kafka.nr_resume_calls, 1);
}

TEST(a_bucket_that_waits_is_paused_for_any_other_reason)
{
	struct fake_partition *bucket = fake_partition("delays-b600s", 0);

	open_relay();
	assign_partitions("delays-b600s", 1);
	read_parked(0, 0);
	ASSERT(!bucket->paused);
	relay.pressure.paused[RELAY_BUCKET] = true;
	relay_partition_backpressure(&relay);
	ASSERT(bucket->paused);
	relay.pressure.paused[RELAY_BUCKET] = false;
	relay_partition_backpressure(&relay);
	ASSERT(!bucket->paused);
	read_error_of("delays-b600s", RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
	ASSERT(bucket->paused);
}

TEST(records_that_are_read_ahead_count_as_not_read)
{
	int64_t offset, nothing;

	open_relay();
	assign_partitions("delays-b600s", 1);
	nothing = relay_lag(&relay, relay_partition_find(&relay, "delays-b600s", 0));
	for (offset = 0; offset < 5; offset++)
		read_parked(offset, 0);
	ASSERT_EQ(relay_lag(&relay, relay_partition_find(&relay, "delays-b600s", 0)), nothing);
	wait_ms(11 * MINUTE_MS);
	ASSERT_EQ(relay_lag(&relay, relay_partition_find(&relay, "delays-b600s", 0)),
		  nothing - 5);
}

/* --- large heads ------------------------------------------------------------------------ */

#define LARGE	1000000

static struct fake_partition *bucket(void)
{
	return fake_partition("delays-b600s", 0);
}

static void open_bucket(void)
{
	open_relay();
	relay.pressure.cap = 4 << 20;
	assign_partitions("delays-b600s", 1);
}

TEST(a_large_head_that_waits_takes_no_memory_and_is_read_again)
{
	struct record record = {
		.topic = "delays-b600s",
		.offset = 5,
		.due_ms = NOW_MS + 33 * MINUTE_MS,
		.parked_ms = NOW_MS,
		.value_len = LARGE,
	};

	open_bucket();
	read_record(&record);
	ASSERT_LT(relay.pressure.bytes, SMALL);
	ASSERT_EQ(bucket()->seek, 5);
	ASSERT(bucket()->paused);
	wait_ms(11 * MINUTE_MS);
	ASSERT(!bucket()->paused);
	read_record(&record);
	record.offset = 6;
	read_record(&record);
	/* What goes to a bucket is gathered. */
	wait_ms(1000);
	ASSERT_EQ(kafka.nr_produced, 2);
	fake_report_all(NULL, 0);
	ASSERT_EQ(relay_partition_find(&relay, "delays-b600s", 0)->mark.low, 7);
}

TEST(small_heads_that_wait_are_kept)
{
	open_bucket();
	read_parked(0, 1000);
	ASSERT_EQ(kafka.nr_seeks, 0);
	/* The next record was in flight to us; with it, it is too much. */
	read_parked(1, LARGE);
	ASSERT_EQ(bucket()->seek, 0);
	ASSERT_EQ(relay.nr_entries, 0);
}

TEST(a_head_that_cannot_be_read_again_is_kept)
{
	open_bucket();
	kafka.seek_error = RD_KAFKA_RESP_ERR__STATE;
	read_parked(0, LARGE);
	ASSERT_EQ(relay.nr_entries, 1);
	wait_ms(11 * MINUTE_MS);
	ASSERT_EQ(kafka.nr_produced, 1);
}

TEST(records_behind_a_head_that_is_to_be_read_again_are_not_read_before_it)
{
	unsigned int i;

	open_bucket();
	read_parked(3, LARGE);
	wait_ms(11 * MINUTE_MS);
	bucket()->seek = -1;
	read_parked(4, 10);
	turn();
	ASSERT_EQ(bucket()->seek, 3);
	ASSERT_EQ(relay.nr_entries, 0);
	for (i = 0; i < 10; i++)
		read_parked(4, 10);
	ASSERT_EQ(relay.nr_entries, 0);
	revoke_partitions("delays-b600s", 1);
	ASSERT_LE(bucket()->committed, 3);
}
