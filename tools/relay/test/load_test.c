// SPDX-License-Identifier: GPL-2.0
/* What a relay reads of the map when it gets a partition, and when. */
#include <stdlib.h>
#include <string.h>

#include "relay/cancels.h"
#include "relay/test/fixture_lib.h"

/* One more relay has noted that the record at this offset of delays [0] is done. */
static void note_done(int64_t offset)
{
	struct piece_key key = {
		.topic = "delays",
		.begin = piece_begin(offset),
		.generation = kafka.nr_map + 1,
	};
	struct piece piece = { .newest_ms = NOW_MS, .epoch = -1 };

	piece.bits[(offset - key.begin) / 64] = 1ULL << (offset - key.begin) % 64;
	fake_map_add(&key, &piece);
}

static void read_all(int64_t nr)
{
	int64_t offset;

	for (offset = 0; offset < nr; offset++)
		read_due(offset, "target");
}

static void end_of_another(void)
{
	kafka.at_committed = NULL;
	note_done(1);
}

/* See load.c: the committed offset may count on them. */
TEST(what_is_written_to_the_map_when_the_offset_is_asked_for_is_read)
{
	open_relay();
	fake_partition("delays", 0)->committed = 0;
	kafka.at_committed = end_of_another;
	assign_partitions("delays", 1);
	read_all(3);
	ASSERT_EQ(fake_count("target", false), 2);
}

TEST(a_map_that_cannot_be_read_is_read_again_before_any_record)
{
	open_relay();
	fake_partition("delays", 0)->committed = 0;
	note_done(1);
	note_done(PIECE_SPAN);
	kafka.map_read_error = RD_KAFKA_RESP_ERR__TRANSPORT;
	assign_partitions("delays", 1);
	ASSERT_EQ(kafka.map_read_error, 0);
	read_all(3);
	read_due(PIECE_SPAN, "target");
	read_due(PIECE_SPAN + 1, "target");
	ASSERT_EQ(fake_count("target", false), 3);
}

TEST(a_piece_that_was_deleted_says_nothing)
{
	struct piece_key key = { .topic = "delays", .generation = 1 };

	open_relay();
	fake_partition("delays", 0)->committed = 0;
	note_done(1);
	fake_map_add(&key, NULL);
	assign_partitions("delays", 1);
	read_all(3);
	ASSERT_EQ(fake_count("target", false), 3);
}

TEST(pieces_of_other_partitions_and_what_is_none_are_left_alone)
{
	struct piece_key others[] = {
		{ .topic = "delays-b10s" },
		{ .topic = "delays", .partition = 1 },
	};
	struct piece piece = { .newest_ms = NOW_MS, .epoch = -1, .bits = { UINT64_MAX } };

	open_relay();
	fake_partition("delays", 0)->committed = 0;
	fake_map_add(&others[0], &piece);
	fake_map_add(&others[1], &piece);
	note_done(0);
	kafka.map[kafka.nr_map - 1].key[0] = ':';
	note_done(0);
	kafka.map[kafka.nr_map - 1].value_len = 1;
	note_done(2);
	assign_partitions("delays", 1);
	read_all(3);
	ASSERT_EQ(fake_count("target", false), 2);
}

TEST(without_a_committed_offset_the_low_one_of_the_map_counts)
{
	struct piece_key key = { .topic = "delays", .begin = PIECE_LOW };
	struct piece piece = { .newest_ms = NOW_MS, .epoch = -1, .low = 2 };

	open_relay();
	fake_map_add(&key, &piece);
	assign_partitions("delays", 1);
	read_all(3);
	ASSERT_EQ(fake_count("target", false), 1);
}

/* --- ids that were taken back ------------------------------------------------------------- */

/* Returns how many are deleted of the one that comes, which was due long ago. */
static uint64_t deleted_ids(const char *topic)
{
	uint64_t nr;

	assign_partitions(topic, 1);
	kafka.ids_keep_coming = true;
	wait_ms(10 * SECOND_MS);
	kafka.ids_keep_coming = false;
	nr = relay_cancels_nr(&relay);
	ASSERT_EQ(nr, 1);
	relay_cancels_expire(&relay);
	ASSERT_EQ(TAILQ_EMPTY(&relay.map_queue), relay_cancels_nr(&relay));
	return nr - relay_cancels_nr(&relay);
}

/* Each relay that has a bucket of that number reads them, too. */
TEST(only_the_relay_that_reads_new_delays_deletes_ids)
{
	open_relay();
	ASSERT_EQ(deleted_ids("delays-b10s"), 0);
	wait_ms(HOUR_MS);
	ASSERT_EQ(deleted_ids("delays"), 1);
}
