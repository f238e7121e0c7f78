// SPDX-License-Identifier: GPL-2.0
/* The parts of the commands that need no Kafka. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "relay/cli/cluster.h"
#include "relay/cli/command.h"
#include "relay/cli/replayed.h"
#include "test/device/harness.h"

/* --- replayed --------------------------------------------------------------------------- */

static void assert_text(const struct replayed *set, int64_t low, const char *expected)
{
	char text[REPLAYED_TEXT_MAX];

	ASSERT_EQ(replayed_write(set, text), 0);
	test_about("\"%s\" and not \"%s\"", text, expected);
	ASSERT(!strcmp(text, expected));
	ASSERT_EQ(set->low, low);
}

TEST(offsets_that_are_replayed_in_order_need_no_text)
{
	struct replayed set;
	int64_t offset;

	replayed_init(&set, 5, NULL, 0);
	for (offset = 5; offset < 1000; offset++)
		ASSERT_EQ(replayed_add(&set, offset), 0);
	assert_text(&set, 1000, "");
	replayed_free(&set);
}

TEST(single_offsets_are_ranges_until_the_gap_is_filled)
{
	struct replayed set;

	replayed_init(&set, 0, NULL, 0);
	replayed_add(&set, 7);
	replayed_add(&set, 3);
	assert_text(&set, 0, "r1:3-4,7-8");
	replayed_add(&set, 4);
	replayed_add(&set, 6);
	replayed_add(&set, 6);
	assert_text(&set, 0, "r1:3-5,6-8");
	replayed_add(&set, 5);
	assert_text(&set, 0, "r1:3-8");
	replayed_add(&set, 0);
	replayed_add(&set, 1);
	assert_text(&set, 2, "r1:3-8");
	replayed_add(&set, 2);
	assert_text(&set, 8, "");
	replayed_free(&set);
}

TEST(a_set_is_read_back_from_its_text)
{
	char text[REPLAYED_TEXT_MAX];
	struct replayed set, again;
	int64_t offset;

	replayed_init(&set, 10, NULL, 0);
	for (offset = 12; offset < 300; offset += 1 + offset % 5)
		replayed_add(&set, offset);
	ASSERT_EQ(replayed_write(&set, text), 0);
	replayed_init(&again, 10, text, strlen(text));
	for (offset = 0; offset < 310; offset++) {
		test_about("offset %d", (int)offset);
		ASSERT_EQ(replayed_has(&again, offset), replayed_has(&set, offset));
	}
	replayed_free(&set);
	replayed_free(&again);
}

TEST(a_text_that_is_not_valid_counts_as_empty)
{
	static const char * const texts[] = {
		"", "r1:", "r2:3-4", "3-4", "r1:3", "r1:3-", "r1:3-4,", "r1:4-3", "r1:3-3",
		"r1:3-5,4-6", "r1:3-5,5-6", "r1:3-5 6-7", "r1:0-1", "2:0:5:xyz", "r1:x-y",
	};
	struct replayed set;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		test_about("\"%s\"", texts[i]);
		replayed_init(&set, 0, texts[i], strlen(texts[i]));
		ASSERT_EQ(set.nr, 0);
		ASSERT(!replayed_has(&set, 3));
		replayed_free(&set);
	}
}

TEST(what_does_not_fit_into_a_commit_is_counted_and_all_else_remembered)
{
	char text[REPLAYED_TEXT_MAX];
	struct replayed set, again;
	int64_t offset;
	size_t most;

	replayed_init(&set, 0, NULL, 0);
	for (offset = 1; !replayed_write(&set, text); offset += 2)
		replayed_add(&set, offset);
	most = set.nr - 1;
	ASSERT_GT(most, 300);
	ASSERT_LT(most, 1000);
	ASSERT_EQ(replayed_write(&set, text), 1);
	for (; set.nr < 3 * most; offset += 3) {
		replayed_add(&set, offset);
		replayed_add(&set, offset + 1);
	}
	ASSERT_EQ(replayed_write(&set, text), 1 + 2 * (set.nr - most - 1));
	replayed_init(&again, 0, text, strlen(text));
	ASSERT_EQ(again.nr, most);
	for (offset = 0; offset < (int64_t)(2 * most); offset++)
		ASSERT_EQ(replayed_has(&again, offset), replayed_has(&set, offset));
	replayed_free(&set);
	replayed_free(&again);
}

TEST(offsets_below_the_first_record_count_as_replayed)
{
	struct replayed set;

	replayed_init(&set, 0, "r1:3-5,8-9", strlen("r1:3-5,8-9"));
	replayed_raise(&set, 4);
	assert_text(&set, 5, "r1:8-9");
	replayed_raise(&set, 8);
	assert_text(&set, 9, "");
	replayed_raise(&set, 3);
	assert_text(&set, 9, "");
	replayed_free(&set);
}

/* --- places ----------------------------------------------------------------------------- */

static struct place make_place(int64_t committed, int64_t low, int64_t end)
{
	return (struct place){
		.topic = "delays", .committed = committed, .low = low, .end = end,
		.generation = -1,
	};
}

static void assert_stopped(const struct place *place, const char *words)
{
	char text[PLACE_WHY];
	const char *why = place_stopped(place, text);

	test_about("\"%s\" and not \"%s\"", why ?: "not stopped", words ?: "not stopped");
	ASSERT_EQ(!!why, !!words);
	if (words)
		ASSERT(strstr(why, words));
}

TEST(a_partition_stops_when_what_is_committed_is_not_there)
{
	struct place place;

	place = make_place(5, 0, 10);
	assert_stopped(&place, NULL);
	place = make_place(10, 10, 10);
	assert_stopped(&place, NULL);
	place = make_place(5, 6, 10);
	assert_stopped(&place, "records 5 to 5 are deleted");
	place = make_place(11, 0, 10);
	assert_stopped(&place, "beyond the end");
	place = make_place(-1, 0, 10);
	assert_stopped(&place, NULL);
	place = make_place(-1, 4, 10);
	assert_stopped(&place, "nothing is committed");
}

TEST(the_low_offset_of_the_map_stands_in_for_a_commit)
{
	const struct piece piece = { .newest_ms = -1, .epoch = -1, .low = 7 };
	struct place place = make_place(-1, 4, 10);

	ASSERT_EQ(place_start(&place), 4);
	ASSERT_EQ(done_map_add(&place.done, PIECE_LOW, 1, &piece), 0);
	assert_stopped(&place, NULL);
	ASSERT_EQ(place_start(&place), 7);
	place.low = 8;
	assert_stopped(&place, "records 7 to 7 are deleted");
	ASSERT_EQ(place_start(&place), 8);
	place.committed = 9;
	ASSERT_EQ(place_start(&place), 9);
	done_map_free(&place.done);
}

TEST(done_offsets_of_all_generations_are_counted_once)
{
	struct piece piece = { .newest_ms = -1, .epoch = -1 };
	struct place place = make_place(4096, 0, 9000);

	piece.bits[0] = 0xff;
	ASSERT_EQ(done_map_add(&place.done, 4096, 1, &piece), 0);
	piece.bits[0] = 0xf0f;
	ASSERT_EQ(done_map_add(&place.done, 4096, 2, &piece), 0);
	place.done_begin = 4096;
	place.done_end = 8192;
	ASSERT_EQ(place_done(&place, 0, 9000), 12);
	ASSERT_EQ(place_done(&place, 4100, 9000), 8);
	ASSERT_EQ(place_done(&place, 4100, 4105), 5);
	ASSERT_EQ(place_done(&place, 4108, 9000), 0);
	done_map_free(&place.done);
}

/* --- printing --------------------------------------------------------------------------- */

TEST(times_are_printed_for_people)
{
	char text[COMMAND_TIME_TEXT], age[COMMAND_AGE_TEXT];

	ASSERT(!strcmp(command_time_text(text, 1795581330123), "2026-11-25T04:35:30.123Z"));
	ASSERT(!strcmp(command_time_text(text, INT64_MAX), "9223372036854775807"));
	ASSERT(!strcmp(command_age_text(age, 1500), "1.5 s"));
	ASSERT(!strcmp(command_age_text(age, 119000), "119.0 s"));
	ASSERT(!strcmp(command_age_text(age, 150000), "2.5 min"));
	ASSERT(!strcmp(command_age_text(age, 9000000), "2.5 h"));
	ASSERT(!strcmp(command_age_text(age, 864000000), "10.0 d"));
}

TEST(nothing_that_a_terminal_takes_for_a_command_is_printed)
{
	char *text = command_text("a\033[2Jb\0c\x9b", 9);
	json_t *json = command_json_text("a\xff", 2);

	ASSERT(!strcmp(text, "a?[2Jb?c?"));
	ASSERT(!strcmp(json_string_value(json), "a?"));
	json_decref(json);
	free(text);
}
