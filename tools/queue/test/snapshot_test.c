// SPDX-License-Identifier: GPL-2.0
/* What twheelq stats and top read off a daemon's answers, and the rates they make of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/time.h"
#include "test/device/harness.h"
#include "queue/cli/snapshot.h"
#include "queue/cli/yaml.h"

#define S	NSEC_PER_SEC

/* --- yaml ----------------------------------------------------------------------------- */

static void expect(char **text, const char *key, const char *value)
{
	char *seen_key, *seen_value;

	test_about("%s: %s", key, value);
	ASSERT(yaml_next(text, &seen_key, &seen_value));
	ASSERT_EQ(strcmp(seen_key, key), 0);
	ASSERT_EQ(strcmp(seen_value, value), 0);
}

static void expect_end(char **text)
{
	char *key, *value;

	ASSERT(!yaml_next(text, &key, &value));
}

TEST(keys_and_values_are_read)
{
	char *text = strdup("---\na: 1\nname: x: y\nempty: ");

	expect(&text, "a", "1");
	expect(&text, "name", "x: y");
	expect(&text, "empty", "");
	expect_end(&text);
}

TEST(items_of_lists_have_no_key)
{
	char *text = strdup("---\n- default\n- a: b\n");

	expect(&text, "", "default");
	expect(&text, "", "a: b");
	expect_end(&text);
}

TEST(quotes_are_taken_off)
{
	char *text = strdup("a: \"1.12\"\n"
			    "b: \"say \\\"hi\\\" \\\\\"\nc: \"\\x41\\x1b[2J\"\nd: \"open");

	expect(&text, "a", "1.12");
	expect(&text, "b", "say \"hi\" \\");
	/* No daemon can write escapes to the terminal of "stats". */
	expect(&text, "c", "A\\x1b[2J");
	expect(&text, "d", "open");
	expect_end(&text);
}

TEST(lines_that_make_no_sense_are_left_out)
{
	char *text = strdup("\n:\nabc\na:b\nc: d");

	expect(&text, "c", "d");
	expect_end(&text);
}

/* --- snapshots ---------------------------------------------------------------------------- */

static struct snapshot snapshot_of(const char *answer)
{
	struct snapshot snapshot = { 0 };
	char *text = strdup(answer);

	snapshot_parse_stats(&snapshot, text);
	free(text);
	return snapshot;
}

TEST(numbers_of_the_daemon_are_read)
{
	struct snapshot snapshot =
		snapshot_of("---\ncurrent-jobs-ready: 1\ncurrent-jobs-reserved: 2\n"
			    "current-jobs-delayed: 18446744073709551615\n"
			    "current-jobs-buried: 4\ncurrent-connections: 5\n"
			    "current-waiting: 6\nuptime: 7\ntotal-jobs: 8\n"
			    "cmd-delete: 9\njob-timeouts: 10\nretries: 11\ndead: 12\n");

	ASSERT_EQ(snapshot.ready, 1);
	ASSERT_EQ(snapshot.reserved, 2);
	ASSERT_EQ(snapshot.delayed, UINT64_MAX);
	ASSERT_EQ(snapshot.buried, 4);
	ASSERT_EQ(snapshot.connections, 5);
	ASSERT_EQ(snapshot.waiting, 6);
	ASSERT_EQ(snapshot.uptime_s, 7);
	ASSERT_EQ(snapshot.put, 8);
	ASSERT_EQ(snapshot.deleted, 9);
	ASSERT_EQ(snapshot.timeouts, 10);
	ASSERT_EQ(snapshot.retries, 11);
	ASSERT_EQ(snapshot.dead, 12);
}

TEST(the_host_is_read_as_text_for_a_terminal)
{
	struct snapshot snapshot = snapshot_of("hostname: \"a\\x9b31m.example\"\n");

	ASSERT_EQ(strcmp(snapshot.host, "a?31m.example"), 0);
}

TEST(commands_of_all_kinds_are_added_up)
{
	ASSERT_EQ(snapshot_of("cmd-put: 1\ncmd-delete: 20\ncmd-list-jobs: 300\n").commands, 321);
}

TEST(the_histogram_is_read_into_its_buckets)
{
	struct snapshot snapshot =
		snapshot_of("due-to-reserved-count: 6\ndue-to-reserved-below-1-us: 1\n"
			    "due-to-reserved-below-1024-us: 2\n"
			    "due-to-reserved-below-2147483648-us: 3\n"
			    "due-to-ready-below-4-us: 9\n"
			    "due-to-reserved-below-8-ms: 9\n"
			    "due-to-reserved-below-0-us: 9\n"
			    "due-to-reserved-below-99999999999-us: 9\n");

	ASSERT_EQ(snapshot.late.nr[0], 1);
	ASSERT_EQ(snapshot.late.nr[10], 2);
	ASSERT_EQ(snapshot.late.nr[31], 3);
	ASSERT_EQ(snapshot.late.count, 6);
	ASSERT_EQ(snapshot.ready_late.nr[2], 9);
	ASSERT_EQ(snapshot.ready_late.count, 9);
}

TEST(numbers_of_a_tube_are_read)
{
	struct tube_snapshot tube = { 0 };
	char *text = strdup("---\nname: a\ncurrent-jobs-ready: 1\ncurrent-jobs-reserved: 2\n"
			    "current-jobs-delayed: 3\ncurrent-jobs-buried: 4\n"
			    "current-waiting: 5\ntotal-jobs: 6\ncmd-delete: 7\n"
			    "current-jobs-dead: 8\n");

	snapshot_parse_tube(&tube, text);
	ASSERT_EQ(tube.ready, 1);
	ASSERT_EQ(tube.reserved, 2);
	ASSERT_EQ(tube.delayed, 3);
	ASSERT_EQ(tube.buried, 4);
	ASSERT_EQ(tube.waiting, 5);
	ASSERT_EQ(tube.put, 6);
	ASSERT_EQ(tube.deleted, 7);
	ASSERT_EQ(tube.dead, 8);
}

/* --- rates ---------------------------------------------------------------------------- */

TEST(rates_are_of_the_time_between)
{
	struct snapshot before = { .at_ns = 1 * S, .put = 100, .commands = 10, .dead = 1 };
	struct snapshot after = { .at_ns = 3 * S, .put = 150, .commands = 30, .dead = 1 };
	struct rates rates;

	snapshot_rates(&rates, &before, &after);
	ASSERT_EQ(rates.put, 25);
	ASSERT_EQ(rates.commands, 10);
	ASSERT_EQ(rates.dead, 0);
}

TEST(a_daemon_that_was_started_anew_has_counted_from_0)
{
	struct snapshot before = { .at_ns = 0, .put = 1000 };
	struct snapshot after = { .at_ns = 1 * S, .put = 7 };
	struct rates rates;

	snapshot_rates(&rates, &before, &after);
	ASSERT_EQ(rates.put, 7);
}

TEST(two_snapshots_of_one_moment_have_finite_rates)
{
	struct snapshot before = { .at_ns = S }, after = { .at_ns = S, .put = 5 };
	struct rates rates;

	snapshot_rates(&rates, &before, &after);
	ASSERT(isfinite(rates.put));
}

TEST(lateness_is_of_what_came_between)
{
	struct snapshot before = { 0 }, after = { .at_ns = S };
	struct rates rates;

	before.late.nr[20] = 1;
	after.late.nr[20] = 1;
	after.late.nr[3] = 99;
	after.late.nr[5] = 1;
	before.ready_late.nr[4] = 1;
	after.ready_late.nr[4] = 3;
	snapshot_rates(&rates, &before, &after);
	ASSERT_EQ(rates.late.count, 100);
	ASSERT_EQ(histogram_permille_us(&rates.late, 500), 8);
	ASSERT_EQ(rates.late.max_ns, 32000);
	ASSERT_EQ(rates.ready_late.count, 2);
	ASSERT_EQ(rates.ready_late.max_ns, 16000);
}

TEST(a_tube_is_compared_with_itself)
{
	struct tube_snapshot old[] = { { .name = "a", .put = 10 }, { .name = "c", .put = 30 } };
	struct tube_snapshot new[] = { { .name = "a", .put = 11 }, { .name = "b", .put = 5 },
				   { .name = "c", .put = 33, .deleted = 2 } };
	struct snapshot before = { .tube = old, .nr_tubes = 2 };
	struct snapshot after = { .at_ns = S, .tube = new, .nr_tubes = 3 };
	struct rates rates;

	snapshot_rates(&rates, &before, &after);
	ASSERT_EQ(new[0].put_per_s, 1);
	ASSERT_EQ(new[1].put_per_s, 5);
	ASSERT_EQ(new[2].put_per_s, 3);
	ASSERT_EQ(new[2].deleted_per_s, 2);
}
