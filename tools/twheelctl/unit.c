// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the parts of twheelctl that have no output of their own.
 *
 * Prints TAP; each test is a function whose name says what holds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "common.h"
#include "device.h"
#include "histogram.h"
#include "ledger.h"
#include "number.h"

static bool failed;

#define CHECK(condition) do {						\
	if (!(condition)) {						\
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition);\
		failed = true;						\
	}								\
} while (0)

static bool parses(const char *(*parse)(const char *, __u64 *),
		   const char *text, __u64 expected)
{
	__u64 value = ~expected;

	return !parse(text, &value) && value == expected;
}

static bool refuses(const char *(*parse)(const char *, __u64 *),
		    const char *text, const char *reason)
{
	__u64 value;
	const char *wrong = parse(text, &value);

	return wrong && strstr(wrong, reason);
}

static void duration_takes_each_unit(void)
{
	CHECK(parses(duration_parse, "7ns", 7));
	CHECK(parses(duration_parse, "7us", 7000));
	CHECK(parses(duration_parse, "7ms", 7000000));
	CHECK(parses(duration_parse, "7s", 7000000000));
	CHECK(parses(duration_parse, "7m", 420000000000));
	CHECK(parses(duration_parse, "7h", 25200000000000));
	CHECK(parses(duration_parse, "7d", 604800000000000));
	CHECK(parses(duration_parse, "0s", 0));
	CHECK(parses(duration_parse, "0007s", 7000000000));
}

static void duration_takes_decimals_exactly(void)
{
	CHECK(parses(duration_parse, "1.5s", 1500000000));
	CHECK(parses(duration_parse, "0.1s", 100000000));
	CHECK(parses(duration_parse, "0.000000001s", 1));
	CHECK(parses(duration_parse, "1.000001ms", 1000001));
	CHECK(parses(duration_parse, "0.1m", 6000000000));
	CHECK(parses(duration_parse, "0.000000000012d", 1036));
	CHECK(parses(duration_parse, "299999.999999999s", 299999999999999));
}

static void duration_drops_what_is_below_a_nanosecond(void)
{
	CHECK(parses(duration_parse, "1.9ns", 1));
	CHECK(parses(duration_parse, "0.0000000019s", 1));
	CHECK(parses(duration_parse, "0.99999999999999999999999999s", 999999999));
}

static void duration_refuses_what_is_no_time(void)
{
	CHECK(refuses(duration_parse, "", "not a number"));
	CHECK(refuses(duration_parse, "s", "not a number"));
	CHECK(refuses(duration_parse, "-1s", "not a number"));
	CHECK(refuses(duration_parse, " 1s", "not a number"));
	CHECK(refuses(duration_parse, ".5s", "not a number"));
	CHECK(refuses(duration_parse, "1.s", "not a number"));
	CHECK(refuses(duration_parse, "1.2.3s", "not a number"));
	CHECK(refuses(duration_parse, "5", "lacks its unit"));
	CHECK(refuses(duration_parse, "5x", "unknown unit"));
	CHECK(refuses(duration_parse, "5y", "unknown unit"));
	CHECK(refuses(duration_parse, "5 s", "unknown unit"));
	CHECK(refuses(duration_parse, "1e3s", "unknown unit"));
}

static void duration_ends_at_292_years(void)
{
	CHECK(parses(duration_parse, "106750d", 106750ULL * 86400 * NSEC_PER_SEC));
	CHECK(refuses(duration_parse, "106752d", "292 years"));
	CHECK(refuses(duration_parse, "9223372036.9s", "292 years"));
	CHECK(refuses(duration_parse, "9223372037s", "292 years"));
	CHECK(refuses(duration_parse, "99999999999999999999999999s", "292 years"));
}

static void seconds_take_no_unit(void)
{
	CHECK(parses(seconds_parse, "1800.5", 1800500000000));
	CHECK(parses(seconds_parse, "0", 0));
	CHECK(refuses(seconds_parse, "5s", "without one"));
	CHECK(refuses(seconds_parse, "", "not a number"));
	CHECK(refuses(seconds_parse, "abc", "not a number"));
	CHECK(refuses(seconds_parse, "-1", "not a number"));
	CHECK(refuses(seconds_parse, "1 ", "not a number"));
}

static void count_is_any_64_bits(void)
{
	CHECK(parses(count_parse, "0", 0));
	CHECK(parses(count_parse, "18446744073709551615", ~0ULL));
	CHECK(refuses(count_parse, "18446744073709551616", "too large"));
	CHECK(refuses(count_parse, "", "whole number"));
	CHECK(refuses(count_parse, "1.5", "whole number"));
	CHECK(refuses(count_parse, "0x10", "whole number"));
}

static bool formats(double ns, const char *expected)
{
	char text[NUMBER_TEXT];

	return !strcmp(duration_format(text, ns), expected);
}

static void duration_is_told_in_three_digits(void)
{
	CHECK(formats(0, "0ns"));
	CHECK(formats(999, "999ns"));
	CHECK(formats(1000, "1.00us"));
	CHECK(formats(65536, "65.5us"));
	CHECK(formats(999600, "1.00ms"));
	CHECK(formats(999940, "1.00ms"));
	CHECK(formats(2097152, "2.10ms"));
	CHECK(formats(68719476736., "1.15m"));
	CHECK(formats(86400e9 * 100, "100d"));
}

static void histogram_bounds_each_time_by_an_eighth(void)
{
	for (unsigned int power = 0; power < 64; power++) {
		for (int step = -1; step <= 1; step++) {
			struct histogram histogram = { 0 };
			__u64 ns = (1ULL << power) + step;
			__u64 found;

			histogram_add(&histogram, ns);
			histogram_add(&histogram, ~0ULL);
			found = histogram_quantile(&histogram, 0.5);
			CHECK(found >= ns && found - ns <= ns / 8);
			CHECK(histogram.max_ns == ~0ULL);
		}
	}
}

static void histogram_quantile_is_of_what_was_counted(void)
{
	struct histogram histogram = { 0 };

	CHECK(histogram_quantile(&histogram, 0.99) == 0);
	for (__u64 ns = 1; ns <= 1000; ns++)
		histogram_add(&histogram, ns);
	CHECK(histogram_quantile(&histogram, 0) == 1);
	CHECK(histogram_quantile(&histogram, 0.5) >= 500);
	CHECK(histogram_quantile(&histogram, 0.5) <= 563);
	CHECK(histogram_quantile(&histogram, 1) == 1000);
}

/* Two events, "a" and "b"; the ledger begins at 1000. */
static const char * const names[] = { "a", "b" };

static const struct schedule schedule = {
	.source = "unit", .names = names, .nr_events = 2,
};

static const struct schedule_line add_a = {
	.command = SCHEDULE_ADD, .at_ns = 10, .delay_ns = 50,
};

static const struct schedule_line arm_a = {
	.command = SCHEDULE_ARM, .at_ns = 20, .delay_ns = 100,
};

static const struct schedule_line cancel_a = {
	.command = SCHEDULE_CANCEL, .at_ns = 30,
};

static const struct schedule_line arm_a_when_over = {
	.command = SCHEDULE_ARM, .at_ns = 60, .delay_ns = 5,
};

static struct ledger begin(void)
{
	struct ledger ledger;

	ledger_init(&ledger, &schedule, 1000);
	return ledger;
}

static void run(struct ledger *ledger, const struct schedule_line *line,
		int result, __u64 id)
{
	struct twheel_cmd cmd;

	CHECK(ledger_plan(ledger, line, &cmd));
	cmd.result = result;
	if (cmd.op == TWHEEL_OP_ADD)
		cmd.id = id;
	ledger_result(ledger, line, &cmd);
}

static struct twheel_record record_of_a(__u64 id, __u64 due_ns)
{
	return (struct twheel_record){
		.id = id, .due_ns = due_ns, .fired_ns = due_ns + 3, .count = 1,
	};
}

static void ledger_plans_absolute_times(void)
{
	struct ledger ledger = begin();
	struct twheel_cmd cmd;

	CHECK(ledger_plan(&ledger, &add_a, &cmd));
	CHECK(cmd.op == TWHEEL_OP_ADD && cmd.flags == TWHEEL_ABS);
	CHECK(cmd.time_ns == 1060 && cmd.data == 0 && cmd.id == 0);
}

static void ledger_arms_by_modify_what_is_live(void)
{
	struct ledger ledger = begin();
	struct twheel_cmd cmd;

	CHECK(ledger_plan(&ledger, &arm_a, &cmd));
	CHECK(cmd.op == TWHEEL_OP_ADD);
	ledger = begin();
	run(&ledger, &add_a, 0, 7);
	CHECK(ledger_plan(&ledger, &arm_a, &cmd));
	CHECK(cmd.op == TWHEEL_OP_MODIFY && cmd.id == 7 && cmd.time_ns == 1120);
}

static void ledger_holds_a_second_command_of_one_batch(void)
{
	struct ledger ledger = begin();
	struct twheel_cmd cmd;

	CHECK(ledger_plan(&ledger, &add_a, &cmd));
	CHECK(!ledger_plan(&ledger, &cancel_a, &cmd));
}

static void ledger_holds_a_line_until_the_record_it_follows(void)
{
	struct ledger ledger = begin();
	struct twheel_record record = record_of_a(7, 1060);
	struct twheel_cmd cmd;

	run(&ledger, &add_a, 0, 7);
	CHECK(!ledger_plan(&ledger, &arm_a_when_over, &cmd));
	ledger_record(&ledger, &record, 1070);
	CHECK(ledger_plan(&ledger, &arm_a_when_over, &cmd));
	CHECK(cmd.op == TWHEEL_OP_ADD);
}

static void ledger_is_clean_when_each_event_ends_once(void)
{
	struct ledger ledger = begin();
	struct twheel_record record = record_of_a(7, 1120);

	run(&ledger, &add_a, 0, 7);
	CHECK(!ledger_clean(&ledger));
	run(&ledger, &arm_a, 0, 7);
	ledger_record(&ledger, &record, 1130);
	run(&ledger, &cancel_a, -ENOENT, 0);
	run(&ledger, &add_a, 0, 8);
	run(&ledger, &cancel_a, 0, 0);
	CHECK(ledger_clean(&ledger));
	CHECK(ledger.armed == 2 && ledger.modified == 1 && ledger.missed == 1);
	CHECK(ledger.cancelled == 1 && ledger.finished == 1);
}

static void ledger_counts_early(void)
{
	struct ledger ledger = begin();
	struct twheel_record record = record_of_a(7, 1060);

	run(&ledger, &add_a, 0, 7);
	record.fired_ns = 1059;
	ledger_record(&ledger, &record, 1070);
	CHECK(ledger.early == 1 && ledger.wrong == 0 && !ledger.live);

	ledger = begin();
	run(&ledger, &add_a, 0, 7);
	record.fired_ns = 1060;
	ledger_record(&ledger, &record, 1059);
	CHECK(ledger.early == 1);
}

static void ledger_counts_duplicated(void)
{
	struct ledger ledger = begin();
	struct twheel_record record = record_of_a(7, 1060);

	ledger_record(&ledger, &record, 1070);
	CHECK(ledger.duplicated == 1);
	run(&ledger, &add_a, 0, 7);
	run(&ledger, &cancel_a, 0, 0);
	ledger_record(&ledger, &record, 1070);
	CHECK(ledger.duplicated == 2);
	run(&ledger, &add_a, 0, 8);
	ledger_record(&ledger, &record, 1070);
	CHECK(ledger.duplicated == 3);
	record.data = 2;
	ledger_record(&ledger, &record, 1070);
	CHECK(ledger.duplicated == 4 && ledger.finished == 0);
}

static void ledger_counts_wrong(void)
{
	const struct twheel_record good = record_of_a(7, 1060);
	struct twheel_record bad[] = { good, good, good, good, good, good, good };

	bad[0].due_ns++;
	bad[1].fired_ns = 1071;
	bad[2].count = 2;
	bad[3].reason = TWHEEL_COMPLETED;
	bad[4].value = 1;
	bad[5].key = 1;
	bad[6].flags = 1;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ledger ledger = begin();

		run(&ledger, &add_a, 0, 7);
		ledger_record(&ledger, &bad[i], 1070);
		CHECK(ledger.wrong == 1 && ledger.finished == 1);
	}
}

static void ledger_counts_failed(void)
{
	struct ledger ledger = begin();

	run(&ledger, &add_a, -ENOSPC, 0);
	CHECK(ledger.failed == 1 && ledger.armed == 0);
	run(&ledger, &add_a, 0, 0);
	CHECK(ledger.failed == 2);
	run(&ledger, &add_a, 0, 7);
	run(&ledger, &cancel_a, -ENOENT, 0);
	CHECK(ledger.failed == 3 && ledger.cancelled == 0);
	run(&ledger, &cancel_a, 0, 0);
	run(&ledger, &cancel_a, 0, 0);
	CHECK(ledger.failed == 4);
	run(&ledger, &add_a, 0, 7);
	CHECK(ledger.failed == 5);
}

static void ledger_takes_counters_that_add_up(void)
{
	struct counters counters = { .added = 1, .ready = 1 };
	struct ledger ledger = begin();

	run(&ledger, &add_a, 0, 7);
	ledger_counters(&ledger, &counters);
	CHECK(ledger.checks == 1 && ledger.violations == 0);
}

static void ledger_finds_counters_that_do_not(void)
{
	static const struct counters bad[] = {
		{ .added = 1, .ready = 1, .armed = 1 },
		{ .added = 2, .ready = 1, .armed = 1 },
		{ .added = 1, .finished = 1 },
		{ .added = 1, .cancelled = 1 },
		{ .added = 1, .ready = 1, .completed = 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ledger ledger = begin();

		run(&ledger, &add_a, 0, 7);
		ledger_counters(&ledger, &bad[i]);
		CHECK(ledger.violations == 1);
	}
}

#define TEST(function)	{ #function, function }

static const struct test {
	const char *name;
	void (*function)(void);
} tests[] = {
	TEST(duration_takes_each_unit),
	TEST(duration_takes_decimals_exactly),
	TEST(duration_drops_what_is_below_a_nanosecond),
	TEST(duration_refuses_what_is_no_time),
	TEST(duration_ends_at_292_years),
	TEST(seconds_take_no_unit),
	TEST(count_is_any_64_bits),
	TEST(duration_is_told_in_three_digits),
	TEST(histogram_bounds_each_time_by_an_eighth),
	TEST(histogram_quantile_is_of_what_was_counted),
	TEST(ledger_plans_absolute_times),
	TEST(ledger_arms_by_modify_what_is_live),
	TEST(ledger_holds_a_second_command_of_one_batch),
	TEST(ledger_holds_a_line_until_the_record_it_follows),
	TEST(ledger_is_clean_when_each_event_ends_once),
	TEST(ledger_counts_early),
	TEST(ledger_counts_duplicated),
	TEST(ledger_counts_wrong),
	TEST(ledger_counts_failed),
	TEST(ledger_takes_counters_that_add_up),
	TEST(ledger_finds_counters_that_do_not),
};

int main(void)
{
	int status = EXIT_SUCCESS;

	printf("1..%zu\n", ARRAY_SIZE(tests));
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		failed = false;
		tests[i].function();
		printf("%s %zu %s\n", failed ? "not ok" : "ok", i + 1,
		       tests[i].name);
		if (failed)
			status = EXIT_FAILURE;
	}
	return status;
}
