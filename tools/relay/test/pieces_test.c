// SPDX-License-Identifier: GPL-2.0
/* The pieces of the map of done offsets; map_model_test.c tests the protocol around them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/device/harness.h"
#include "relay/rules/pieces.h"
#include "common/util.h"

#define NOON_MS		1700000000000LL
#define MINUTE_MS	60000LL

static struct piece_key key_of(const char *topic, int32_t partition, int64_t begin,
			       int64_t generation)
{
	struct piece_key key = {
		.partition = partition, .begin = begin, .generation = generation,
	};

	snprintf(key.topic, sizeof(key.topic), "%s", topic);
	return key;
}

static void set_bit(struct piece *piece, int64_t offset)
{
	uint64_t i = offset - piece_begin(offset);

	piece->bits[i / 64] |= 1ULL << i % 64;
}

/* A piece without a leader epoch. */
static struct piece piece_of(int64_t newest_ms)
{
	return (struct piece){ .newest_ms = newest_ms, .epoch = -1 };
}

/* --- keys ----------------------------------------------------------------------------- */

static void write_and_read(struct piece_key key, const char *expected)
{
	char text[PIECE_KEY_MAX];
	size_t len = piece_key_write(&key, text);
	struct piece_key read;

	test_about("%s", expected);
	ASSERT_EQ(len, strlen(expected));
	ASSERT(!memcmp(text, expected, len));
	memset(&read, 0xcc, sizeof(read));
	ASSERT(piece_key_read(&read, text, len));
	ASSERT(!strcmp(read.topic, key.topic));
	ASSERT_EQ(read.partition, key.partition);
	ASSERT_EQ(read.begin, key.begin);
	ASSERT_EQ(read.generation, key.generation);
}

TEST(a_key_is_read_as_it_was_written)
{
	char name[250] = "", longest[PIECE_KEY_MAX];

	write_and_read(key_of("delays", 0, 0, 0), "delays:0:0:0");
	write_and_read(key_of("delays-b600s", 11, 8192, 77), "delays-b600s:11:8192:77");
	write_and_read(key_of("low", 3, PIECE_LOW, 5), "low:3:low:5");
	memset(name, 'x', 249);
	snprintf(longest, sizeof(longest), "%s:2147483647:9223372036854771712:9223372036854775807",
		 name);
	write_and_read(key_of(name, INT32_MAX, piece_begin(INT64_MAX), INT64_MAX), longest);
}

TEST(what_is_not_a_key_is_refused)
{
	static const char * const wrong[] = {
		"", ":", "delays", "delays:0", "delays:0:0", "delays:0:0:", ":0:0:0",
		"delays:0:0:0:", "delays:0:0:0:0", "delays:0:0:0 ", " delays:0:0:x",
		"delays:-1:0:0", "delays:0:-1:0", "delays:0:-4096:0", "delays:0:0:-1",
		"delays:0:4095:0", "delays:0:04096:0", "delays:+0:0:0", "delays:0: 0:0",
		"delays:2147483648:0:0", "delays:0:9223372036854775808:0",
		"delays:0:0:9223372036854775808", "delays:0:LOW:0", "delays:0:low2:0",
		"delays:0:0:00",
	};
	char too_long[PIECE_KEY_MAX + 8];
	struct piece_key key;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		test_about("\"%s\"", wrong[i]);
		ASSERT(!piece_key_read(&key, wrong[i], strlen(wrong[i])));
	}
	ASSERT(!piece_key_read(&key, "delays:0:0:0\0", 13));
	memset(too_long, 'x', sizeof(too_long));
	ASSERT(!piece_key_read(&key, too_long, sizeof(too_long)));
	memcpy(too_long + 250, ":0:0:0", 6);
	ASSERT(!piece_key_read(&key, too_long, 256));
}

TEST(writers_of_the_same_group_generation_have_different_keys_if_the_group_was_forgotten)
{
	int64_t first = piece_generation(1, NOON_MS);

	ASSERT_NE(first, piece_generation(1, NOON_MS + MINUTE_MS));
	ASSERT_NE(first, piece_generation(2, NOON_MS));
	ASSERT_GE(piece_generation(INT32_MAX, 4294967295999ULL), 0);
	ASSERT_EQ(piece_generation(INT32_MAX, 4294967295999ULL), INT64_MAX);
}

/* --- values --------------------------------------------------------------------------- */

static size_t write_value(const struct piece *piece, bool is_low,
			  unsigned char value[PIECE_VALUE_MAX])
{
	struct piece read;
	size_t len;

	memset(value, 0xcc, PIECE_VALUE_MAX);
	len = piece_write(piece, is_low, value);
	ASSERT_LE(len, PIECE_VALUE_MAX);
	memset(&read, 0xcc, sizeof(read));
	ASSERT(piece_read(&read, is_low, value, len));
	ASSERT_EQ(read.newest_ms, piece->newest_ms);
	ASSERT_EQ(read.epoch, piece->epoch);
	if (is_low)
		ASSERT_EQ(read.low, piece->low);
	else
		ASSERT(!memcmp(read.bits, piece->bits, sizeof(read.bits)));
	return len;
}

TEST(a_value_has_bits_up_to_the_last_byte_that_is_not_0)
{
	unsigned char value[PIECE_VALUE_MAX];
	struct piece piece = piece_of(NOON_MS);

	ASSERT_EQ(write_value(&piece, false, value), 13);
	set_bit(&piece, 0);
	ASSERT_EQ(write_value(&piece, false, value), 14);
	ASSERT_EQ(value[13], 1);
	set_bit(&piece, 7);
	ASSERT_EQ(write_value(&piece, false, value), 14);
	ASSERT_EQ(value[13], 0x81);
	set_bit(&piece, 8);
	ASSERT_EQ(write_value(&piece, false, value), 15);
	set_bit(&piece, 64);
	ASSERT_EQ(write_value(&piece, false, value), 13 + 9);
	set_bit(&piece, PIECE_SPAN - 1);
	ASSERT_EQ(write_value(&piece, false, value), 13 + PIECE_SPAN / 8);
	memset(piece.bits, 0xff, sizeof(piece.bits));
	ASSERT_EQ(write_value(&piece, false, value), 13 + PIECE_SPAN / 8);
}

TEST(the_numbers_of_a_value_are_big_endian)
{
	static const unsigned char low[] = {
		1, 0, 0, 1, 2, 3, 4, 5, 6, 0x7f, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 0,
	};
	unsigned char value[PIECE_VALUE_MAX];
	struct piece piece = { .newest_ms = 0x010203040506, .epoch = 0x7f000009, .low = 256 };

	ASSERT_EQ(write_value(&piece, true, value), sizeof(low));
	ASSERT(!memcmp(value, low, sizeof(low)));
}

TEST(the_extremes_of_numbers_are_written_and_read)
{
	static const int64_t extremes[] = { INT64_MIN, -1, 0, 1, INT64_MAX };
	unsigned char value[PIECE_VALUE_MAX];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(extremes); i++) {
		struct piece piece = {
			.newest_ms = extremes[i], .epoch = extremes[i] < 0 ? INT32_MIN : INT32_MAX,
			.low = extremes[i] < 0 ? 0 : extremes[i],
		};

		write_value(&piece, true, value);
		write_value(&piece, false, value);
	}
}

TEST(a_damaged_value_is_refused)
{
	unsigned char value[PIECE_VALUE_MAX + 1] = { 0 };
	struct piece piece = piece_of(NOON_MS);
	size_t len, i;

	piece.low = 100;
	len = piece_write(&piece, true, value);
	for (i = 0; i < len; i++)
		ASSERT(!piece_read(&piece, true, value, i));
	ASSERT(!piece_read(&piece, true, value, len + 1));
	value[13] = 0x80;
	ASSERT(!piece_read(&piece, true, value, len));
	set_bit(&piece, 100);
	len = piece_write(&piece, false, value);
	for (i = 0; i < 13; i++)
		ASSERT(!piece_read(&piece, false, value, i));
	ASSERT(!piece_read(&piece, false, value, 13 + PIECE_SPAN / 8 + 1));
	value[0]++;
	ASSERT(!piece_read(&piece, false, value, len));
	value[0] = 0;
	ASSERT(!piece_read(&piece, false, value, len));
}

/* Whatever the bytes are, what is accepted is written the same again, but for zeros at its end. */
TEST(random_bytes_do_no_harm)
{
	unsigned char value[PIECE_VALUE_MAX], again[PIECE_VALUE_MAX];
	struct piece piece;
	size_t len, i;
	int round;

	for (round = 0; round < 20000; round++) {
		bool is_low = random() % 2;

		len = random() % 4 ? (size_t)random() % 40 : (size_t)random() % sizeof(value);
		for (i = 0; i < len; i++)
			value[i] = random();
		value[0] = 1;
		if (!piece_read(&piece, is_low, value, len))
			continue;
		i = piece_write(&piece, is_low, again);
		ASSERT_LE(i, len);
		ASSERT(!memcmp(value, again, i));
	}
}

/* --- the map -------------------------------------------------------------------------- */

static void add(struct done_map *map, int64_t begin, int64_t generation, struct piece piece)
{
	ASSERT_EQ(done_map_add(map, begin, generation, &piece), 0);
}

TEST(a_record_is_done_if_a_piece_of_any_generation_says_so)
{
	struct piece one = piece_of(NOON_MS), two = piece_of(NOON_MS);
	struct done_map map = { 0 };

	set_bit(&one, 4096);
	set_bit(&two, 8191);
	add(&map, 4096, 1, one);
	add(&map, 4096, 2, two);
	ASSERT(done_map_has(&map, true, 4096, NOON_MS, 0));
	ASSERT(done_map_has(&map, true, 8191, NOON_MS, 0));
	ASSERT(!done_map_has(&map, true, 4097, NOON_MS, 0));
	ASSERT(!done_map_has(&map, true, 0, NOON_MS, 0));
	ASSERT(!done_map_has(&map, true, 8192, NOON_MS, 0));
	done_map_remove(&map, 4096, 1);
	ASSERT(!done_map_has(&map, true, 4096, NOON_MS, 0));
	ASSERT(done_map_has(&map, true, 8191, NOON_MS, 0));
	done_map_free(&map);
}

TEST(a_piece_replaces_that_of_the_same_key)
{
	struct piece one = piece_of(NOON_MS), two = piece_of(NOON_MS);
	struct done_map map = { 0 };
	size_t bytes;

	set_bit(&one, 1);
	set_bit(&two, 2);
	add(&map, 0, 1, one);
	bytes = map.bytes;
	ASSERT_GT(bytes, sizeof(struct piece));
	add(&map, 0, 1, two);
	ASSERT_EQ(map.bytes, bytes);
	ASSERT(!done_map_has(&map, false, 1, NOON_MS, 0));
	ASSERT(done_map_has(&map, false, 2, NOON_MS, 0));
	done_map_remove(&map, 0, 2);
	done_map_remove(&map, 4096, 1);
	ASSERT_EQ(map.bytes, bytes);
	done_map_remove(&map, 0, 1);
	ASSERT_EQ(map.bytes, 0);
}

TEST(a_piece_is_void_for_a_younger_record)
{
	struct done_map map = { 0 };
	struct piece piece = piece_of(NOON_MS);

	set_bit(&piece, 7);
	add(&map, 0, 1, piece);
	ASSERT(done_map_has(&map, false, 7, NOON_MS, -1));
	ASSERT(done_map_has(&map, false, 7, 0, -1));
	ASSERT(!done_map_has(&map, false, 7, NOON_MS + 1, -1));
	ASSERT(!done_map_has(&map, false, 7, INT64_MAX, -1));
	/* Its age is unknown. */
	ASSERT(done_map_has(&map, false, 7, -1, -1));
	/* A piece of records without timestamps did not mean one that has one. */
	piece.newest_ms = -1;
	add(&map, 0, 1, piece);
	ASSERT(done_map_has(&map, false, 7, -1, -1));
	ASSERT(!done_map_has(&map, false, 7, 0, -1));
	done_map_free(&map);
}

TEST(a_piece_is_void_for_a_record_of_a_later_leader)
{
	struct done_map map = { 0 };
	struct piece piece = piece_of(NOON_MS);

	piece.epoch = 5;
	set_bit(&piece, 7);
	add(&map, 0, 1, piece);
	ASSERT(done_map_has(&map, false, 7, NOON_MS, 4));
	ASSERT(done_map_has(&map, false, 7, NOON_MS, 5));
	ASSERT(!done_map_has(&map, false, 7, NOON_MS, 6));
	ASSERT(done_map_has(&map, false, 7, NOON_MS, -1));
	piece.epoch = -1;
	add(&map, 0, 1, piece);
	ASSERT(done_map_has(&map, false, 7, NOON_MS, 6));
	done_map_free(&map);
}

/* The example at the head of pieces.h. */
TEST(a_piece_of_a_new_topic_does_not_vouch_for_one_of_the_old_topic)
{
	struct piece old = piece_of(NOON_MS), new = piece_of(NOON_MS + 60 * MINUTE_MS), merged;
	int64_t age_ms = NOON_MS + 59 * MINUTE_MS;
	struct done_map map = { 0 };

	set_bit(&old, 7);
	set_bit(&new, 3);
	add(&map, 0, 1, old);
	add(&map, 0, 2, new);
	ASSERT(done_map_has(&map, false, 3, age_ms, -1));
	ASSERT(!done_map_has(&map, false, 7, age_ms, -1));
	/* If they were merged, record 7 of the new topic would be lost. */
	merged = new;
	merged.bits[0] |= old.bits[0];
	add(&map, 0, 2, merged);
	ASSERT(done_map_has(&map, false, 7, age_ms, -1));
	done_map_free(&map);
}

TEST(a_low_offset_covers_all_below_it_where_it_is_asked_for)
{
	struct done_map map = { 0 };
	struct piece low = piece_of(NOON_MS);

	ASSERT_EQ(done_map_low(&map), -1);
	low.low = 10000;
	low.epoch = 3;
	add(&map, PIECE_LOW, 1, low);
	low.low = 5000;
	low.newest_ms = NOON_MS + MINUTE_MS;
	add(&map, PIECE_LOW, 2, low);
	ASSERT_EQ(done_map_low(&map), 10000);
	ASSERT(!done_map_has(&map, false, 0, NOON_MS, 0));
	ASSERT(done_map_has(&map, true, 0, NOON_MS, 0));
	ASSERT(done_map_has(&map, true, 9999, NOON_MS, 3));
	ASSERT(!done_map_has(&map, true, 10000, NOON_MS, 3));
	ASSERT(!done_map_has(&map, true, 9999, NOON_MS, 4));
	/* The lower one is of younger records. */
	ASSERT(!done_map_has(&map, true, 9999, NOON_MS + 1, 3));
	ASSERT(done_map_has(&map, true, 4999, NOON_MS + 1, 3));
	ASSERT(!done_map_has(&map, true, 5000, NOON_MS + 1, 3));
	done_map_free(&map);
}

TEST(pieces_below_the_low_offset_are_passed)
{
	struct done_map map = { 0 };
	const struct done_piece *passed;
	struct piece piece = piece_of(NOON_MS);
	int nr = 0;

	piece.low = 1;
	add(&map, PIECE_LOW, 1, piece);
	ASSERT(!done_map_passed(&map, INT64_MAX));
	add(&map, 0, 1, piece);
	add(&map, 0, 3, piece);
	add(&map, 4096, 2, piece);
	add(&map, 8192, 2, piece);
	ASSERT(!done_map_passed(&map, 0));
	ASSERT(!done_map_passed(&map, 4095));
	ASSERT_EQ(done_map_passed(&map, 4096)->begin, 0);
	while ((passed = done_map_passed(&map, 8192))) {
		ASSERT_LE(passed->begin, 4096);
		done_map_remove(&map, passed->begin, passed->generation);
		nr++;
	}
	ASSERT_EQ(nr, 3);
	ASSERT_EQ(done_map_passed(&map, INT64_MAX)->begin, 8192);
	ASSERT_EQ(done_map_low(&map), 1);
	done_map_free(&map);
}

TEST(low_offsets_of_other_generations_are_passed_when_they_say_nothing_more)
{
	struct done_map map = { 0 };
	struct piece piece = piece_of(NOON_MS);

	ASSERT(!done_map_passed_low(&map, INT64_MAX, 1));
	piece.low = 100;
	add(&map, PIECE_LOW, 1, piece);
	piece.low = 200;
	add(&map, PIECE_LOW, 2, piece);
	piece.low = 150;
	add(&map, PIECE_LOW, 3, piece);
	add(&map, 0, 1, piece);
	ASSERT(!done_map_passed_low(&map, 99, 3));
	ASSERT_EQ(done_map_passed_low(&map, 150, 3)->generation, 1);
	done_map_remove(&map, PIECE_LOW, 1);
	/* The topic was made anew: the higher low offset is of the old one. */
	ASSERT(!done_map_passed_low(&map, 150, 3));
	ASSERT_EQ(done_map_passed_low(&map, 200, 3)->generation, 2);
	done_map_free(&map);
}

TEST(offsets_may_be_as_high_as_kafka_allows)
{
	int64_t last = INT64_MAX;
	struct done_map map = { 0 };
	struct piece piece = piece_of(INT64_MAX);

	set_bit(&piece, last);
	add(&map, piece_begin(last), INT64_MAX, piece);
	ASSERT(done_map_has(&map, true, last, INT64_MAX, INT32_MAX));
	ASSERT(!done_map_has(&map, true, last - 1, INT64_MAX, INT32_MAX));
	ASSERT(!done_map_passed(&map, INT64_MAX));
	piece.low = INT64_MAX;
	add(&map, PIECE_LOW, INT64_MAX, piece);
	ASSERT(done_map_has(&map, true, last - 1, INT64_MAX, INT32_MAX));
	ASSERT_EQ(done_map_low(&map), INT64_MAX);
	done_map_free(&map);
}

/* --- beside the simplest map ----------------------------------------------------------- */

#define GENERATIONS	4
#define RANGES		3

/* All pieces that there can be; range RANGES is that of low offsets. */
static struct {
	bool in;
	struct piece piece;
} plain[RANGES + 1][GENERATIONS];

static int64_t begin_of(int range)
{
	return range == RANGES ? PIECE_LOW : (int64_t)range * PIECE_SPAN;
}

static bool plain_is_void(const struct piece *piece, int64_t timestamp_ms, int32_t epoch)
{
	bool younger = timestamp_ms != -1 && timestamp_ms > piece->newest_ms;
	bool later = epoch != -1 && piece->epoch != -1 && epoch > piece->epoch;

	return younger || later;
}

static bool plain_has(bool use_low, int64_t offset, int64_t timestamp_ms, int32_t epoch)
{
	int range = offset / PIECE_SPAN, bit = offset % PIECE_SPAN, g;

	for (g = 0; g < GENERATIONS; g++) {
		const struct piece *piece = &plain[range][g].piece;
		const struct piece *low = &plain[RANGES][g].piece;

		if (range < RANGES && plain[range][g].in && piece->bits[bit / 64] >> bit % 64 & 1 &&
		    !plain_is_void(piece, timestamp_ms, epoch))
			return true;
		if (use_low && plain[RANGES][g].in && offset < low->low &&
		    !plain_is_void(low, timestamp_ms, epoch))
			return true;
	}
	return false;
}

static void change(struct done_map *map)
{
	int range = random() % (RANGES + 1), generation = random() % GENERATIONS, i;
	struct piece piece = {
		.newest_ms = random() % 6 - 1,
		.epoch = random() % 4 - 1,
		.low = random() % (RANGES * PIECE_SPAN + 1),
	};

	if (random() % 4 == 0) {
		done_map_remove(map, begin_of(range), generation);
		plain[range][generation].in = false;
		return;
	}
	for (i = 0; i < PIECE_WORDS; i++)
		piece.bits[i] = random() & random() & random();
	add(map, begin_of(range), generation, piece);
	plain[range][generation].in = true;
	plain[range][generation].piece = piece;
}

TEST(the_map_is_as_the_simplest_one)
{
	struct done_map map = { 0 };
	int round, i, seen = 0;

	for (round = 0; round < 20000; round++) {
		change(&map);
		for (i = 0; i < 20; i++) {
			int64_t offset = random() % ((RANGES + 1) * PIECE_SPAN);
			int64_t timestamp_ms = random() % 7 - 1;
			int32_t epoch = random() % 5 - 1;
			bool use_low = random() % 2;
			bool has = done_map_has(&map, use_low, offset, timestamp_ms, epoch);

			ASSERT_EQ(has, plain_has(use_low, offset, timestamp_ms, epoch));
			seen += has;
		}
	}
	ASSERT_GT(seen, round);
	done_map_free(&map);
	ASSERT_EQ(map.bytes, 0);
}
