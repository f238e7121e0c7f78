// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the parts of twheelctl that have no output of their own.
 *
 * Prints TAP; each test is a function whose name says what holds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/time.h"
#include "common/util.h"
#include "twheelctl/device.h"
#include "twheelctl/key.h"
#include "twheelctl/line.h"
#include "common/number.h"
#include "twheelctl/rates.h"
#include "twheelctl/replay/histogram.h"
#include "twheelctl/replay/ledger.h"
#include "twheelctl/tracefs.h"

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
			struct fine_histogram histogram = { 0 };
			__u64 ns = (1ULL << power) + step;
			__u64 found;

			fine_histogram_add(&histogram, ns);
			fine_histogram_add(&histogram, ~0ULL);
			found = fine_histogram_quantile(&histogram, 0.5);
			CHECK(found >= ns && found - ns <= ns / 8);
			CHECK(histogram.max_ns == ~0ULL);
		}
	}
}

static void histogram_quantile_is_of_what_was_counted(void)
{
	struct fine_histogram histogram = { 0 };

	CHECK(fine_histogram_quantile(&histogram, 0.99) == 0);
	for (__u64 ns = 1; ns <= 1000; ns++)
		fine_histogram_add(&histogram, ns);
	CHECK(fine_histogram_quantile(&histogram, 0) == 1);
	CHECK(fine_histogram_quantile(&histogram, 0.5) >= 500);
	CHECK(fine_histogram_quantile(&histogram, 0.5) <= 563);
	CHECK(fine_histogram_quantile(&histogram, 1) == 1000);
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

static void ledger_run(struct ledger *ledger, const struct schedule_line *line,
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
	ledger_run(&ledger, &add_a, 0, 7);
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

	ledger_run(&ledger, &add_a, 0, 7);
	CHECK(!ledger_plan(&ledger, &arm_a_when_over, &cmd));
	ledger_record(&ledger, &record, 1062, 1070);
	CHECK(ledger_plan(&ledger, &arm_a_when_over, &cmd));
	CHECK(cmd.op == TWHEEL_OP_ADD);
}

static void ledger_is_clean_when_each_event_ends_once(void)
{
	struct ledger ledger = begin();
	struct twheel_record record = record_of_a(7, 1120);

	ledger_run(&ledger, &add_a, 0, 7);
	CHECK(!ledger_clean(&ledger));
	ledger_run(&ledger, &arm_a, 0, 7);
	ledger_record(&ledger, &record, 1122, 1130);
	ledger_run(&ledger, &cancel_a, -ENOENT, 0);
	ledger_run(&ledger, &add_a, 0, 8);
	ledger_run(&ledger, &cancel_a, 0, 0);
	CHECK(ledger_clean(&ledger));
	CHECK(ledger.armed == 2 && ledger.modified == 1 && ledger.missed == 1);
	CHECK(ledger.cancelled == 1 && ledger.finished == 1);
}

static void ledger_counts_early(void)
{
	struct ledger ledger = begin();
	struct twheel_record record = record_of_a(7, 1060);

	ledger_run(&ledger, &add_a, 0, 7);
	record.fired_ns = 1059;
	ledger_record(&ledger, &record, 1062, 1070);
	CHECK(ledger.early == 1 && ledger.wrong == 0 && !ledger.live);

	ledger = begin();
	ledger_run(&ledger, &add_a, 0, 7);
	record.fired_ns = 1060;
	ledger_record(&ledger, &record, 1059, 1059);
	CHECK(ledger.early == 1);
}

static void ledger_counts_duplicated(void)
{
	struct ledger ledger = begin();
	struct twheel_record record = record_of_a(7, 1060);

	ledger_record(&ledger, &record, 1062, 1070);
	CHECK(ledger.duplicated == 1);
	ledger_run(&ledger, &add_a, 0, 7);
	ledger_run(&ledger, &cancel_a, 0, 0);
	ledger_record(&ledger, &record, 1062, 1070);
	CHECK(ledger.duplicated == 2);
	ledger_run(&ledger, &add_a, 0, 8);
	ledger_record(&ledger, &record, 1062, 1070);
	CHECK(ledger.duplicated == 3);
	record.data = 2;
	ledger_record(&ledger, &record, 1062, 1070);
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

		ledger_run(&ledger, &add_a, 0, 7);
		ledger_record(&ledger, &bad[i], 1062, 1070);
		CHECK(ledger.wrong == 1 && ledger.finished == 1);
	}
}

static void ledger_counts_failed(void)
{
	struct ledger ledger = begin();

	ledger_run(&ledger, &add_a, -ENOSPC, 0);
	CHECK(ledger.failed == 1 && ledger.armed == 0);
	ledger_run(&ledger, &add_a, 0, 0);
	CHECK(ledger.failed == 2);
	ledger_run(&ledger, &add_a, 0, 7);
	ledger_run(&ledger, &cancel_a, -ENOENT, 0);
	CHECK(ledger.failed == 3 && ledger.cancelled == 0);
	ledger_run(&ledger, &cancel_a, 0, 0);
	ledger_run(&ledger, &cancel_a, 0, 0);
	CHECK(ledger.failed == 4);
	ledger_run(&ledger, &add_a, 0, 7);
	CHECK(ledger.failed == 5);
}

/* Due at 1060, 1080, 1100 and so on. */
static const struct schedule_line every_a = {
	.command = SCHEDULE_ADD, .at_ns = 10, .delay_ns = 50, .interval_ns = 20,
};

static struct ledger begin_periodic(void)
{
	struct ledger ledger = begin();

	ledger_run(&ledger, &every_a, 0, 7);
	return ledger;
}

static struct twheel_record periodic_record(__u64 due_ns, __u64 count)
{
	struct twheel_record record = record_of_a(7, due_ns);

	record.count = count;
	return record;
}

static void ledger_follows_the_grid_of_a_periodic_event(void)
{
	struct ledger ledger = begin_periodic();
	struct twheel_record one = periodic_record(1060, 1);
	struct twheel_record three = periodic_record(1080, 3);
	struct twheel_record last = periodic_record(1140, 1);

	ledger_record(&ledger, &one, 1065, 1070);
	ledger_record(&ledger, &three, 1130, 1135);
	ledger_record(&ledger, &last, 1140, 1150);
	CHECK(ledger.live == 1 && ledger.finished == 0);
	CHECK(ledger.records == 3 && ledger.expirations == 5);
	ledger_run(&ledger, &cancel_a, 0, 0);
	CHECK(ledger_clean(&ledger) && ledger.cancelled == 1);
}

static void ledger_holds_a_line_until_what_was_due_is_covered(void)
{
	static const struct schedule_line cancel_at_85 = {
		.command = SCHEDULE_CANCEL, .at_ns = 85,
	};
	struct twheel_record one = periodic_record(1060, 1);
	struct twheel_record two = periodic_record(1080, 1);
	struct ledger ledger = begin_periodic();
	struct twheel_cmd cmd;

	CHECK(!ledger_plan(&ledger, &cancel_at_85, &cmd));
	ledger_record(&ledger, &one, 1070, 1075);
	CHECK(!ledger_plan(&ledger, &cancel_at_85, &cmd));
	ledger_record(&ledger, &two, 1085, 1090);
	CHECK(ledger_plan(&ledger, &cancel_at_85, &cmd));
}

static void ledger_counts_a_skipped_expiration_as_lost(void)
{
	struct ledger ledger = begin_periodic();
	struct twheel_record late = periodic_record(1100, 1);

	ledger_record(&ledger, &late, 1105, 1110);
	CHECK(ledger.skipped == 2 && ledger_lost(&ledger) == 3);
	ledger_run(&ledger, &cancel_a, 0, 0);
	CHECK(ledger_lost(&ledger) == 2 && !ledger_clean(&ledger));
}

static void ledger_counts_what_is_covered_again_as_duplicated(void)
{
	struct ledger ledger = begin_periodic();
	struct twheel_record two = periodic_record(1060, 2);
	struct twheel_record again = periodic_record(1080, 2);

	ledger_record(&ledger, &two, 1085, 1090);
	ledger_record(&ledger, &again, 1105, 1110);
	CHECK(ledger.duplicated == 1);
}

static void ledger_counts_what_is_covered_too_soon_as_early(void)
{
	struct ledger ledger = begin_periodic();
	struct twheel_record three = periodic_record(1060, 3);

	ledger_record(&ledger, &three, 1085, 1099);
	CHECK(ledger.early == 1);
	ledger = begin_periodic();
	ledger_record(&ledger, &three, 1085, 1100);
	CHECK(ledger.early == 0 && ledger.wrong == 0);
}

static void ledger_counts_a_record_that_covers_too_little_as_wrong(void)
{
	struct ledger ledger = begin_periodic();
	struct twheel_record one = periodic_record(1060, 1);

	ledger_record(&ledger, &one, 1080, 1090);
	CHECK(ledger.wrong == 1);
	ledger = begin_periodic();
	ledger_record(&ledger, &one, 1079, 1090);
	CHECK(ledger.wrong == 0);
	one.count = 0;
	ledger = begin_periodic();
	ledger_record(&ledger, &one, 1062, 1070);
	CHECK(ledger.wrong == 1);
}

static void ledger_lets_a_modify_end_or_begin_a_period(void)
{
	static const struct schedule_line every = {
		.command = SCHEDULE_MODIFY, .at_ns = 20, .delay_ns = 30,
		.interval_ns = 40,
	};
	static const struct schedule_line once = {
		.command = SCHEDULE_MODIFY, .at_ns = 60, .delay_ns = 10,
	};
	struct twheel_record periodic = periodic_record(1050, 1);
	struct twheel_record last = periodic_record(1070, 1);
	struct ledger ledger = begin();

	ledger_run(&ledger, &add_a, 0, 7);
	ledger_run(&ledger, &every, 0, 0);
	ledger_record(&ledger, &periodic, 1055, 1056);
	CHECK(ledger.live == 1);
	ledger_run(&ledger, &once, 0, 0);
	ledger_record(&ledger, &last, 1075, 1076);
	CHECK(ledger.live == 0 && ledger.finished == 1 && ledger_clean(&ledger));
}

static void ledger_asks_a_clock_that_is_set_for_no_moment(void)
{
	struct twheel_record record = record_of_a(7, 1060);
	struct ledger ledger = begin();

	ledger.settable = true;
	ledger_run(&ledger, &add_a, 0, 7);
	ledger_record(&ledger, &record, 1000, 1010);
	CHECK(ledger_clean(&ledger));
	record.fired_ns = 1059;
	record.id = 8;
	ledger_run(&ledger, &add_a, 0, 8);
	ledger_record(&ledger, &record, 1062, 1070);
	CHECK(ledger.early == 1);
}

static void ledger_takes_counters_that_add_up(void)
{
	struct counters counters = { .added = 1, .ready = 1 };
	struct ledger ledger = begin();

	ledger_run(&ledger, &add_a, 0, 7);
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
		{ .added = 1, .ready = 1, .records = 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ledger ledger = begin();

		ledger_run(&ledger, &add_a, 0, 7);
		ledger_counters(&ledger, &bad[i]);
		CHECK(ledger.violations == 1);
	}
}

static struct ledger begin_with_deadlines(void)
{
	struct ledger ledger = begin();

	ledger.deadlines = true;
	return ledger;
}

static void ledger_arms_by_words(void)
{
	struct ledger ledger = begin_with_deadlines();
	struct twheel_cmd cmd;

	CHECK(ledger_plan(&ledger, &add_a, &cmd) == PLAN_COMMAND);
	CHECK(cmd.op == TWHEEL_OP_ADD && cmd.flags == TWHEEL_DEADLINE);
	CHECK(cmd.key == 0 && cmd.time_ns == 0 && cmd.interval_ns == 0);
	ledger.entries[0].queued = false;
	CHECK(ledger_plan(&ledger, &cancel_a, &cmd) == PLAN_COMMAND);
	CHECK(cmd.op == TWHEEL_OP_CANCEL && !cmd.flags);
}

static void ledger_puts_off_by_a_store(void)
{
	struct twheel_record record = record_of_a(7, 1120);
	struct ledger ledger = begin_with_deadlines();
	struct twheel_cmd cmd;

	ledger_run(&ledger, &add_a, 0, 7);
	CHECK(ledger_plan(&ledger, &arm_a, &cmd) == PLAN_STORE);
	CHECK(!ledger_store_will_do(&ledger, &arm_a, 1060));
	CHECK(ledger_store_will_do(&ledger, &arm_a, 1059));
	CHECK(ledger_plan(&ledger, &cancel_a, &cmd) == PLAN_WAIT);
	ledger_stored(&ledger, &arm_a);
	CHECK(ledger.stored == 1 && ledger.modified == 0);
	ledger_record(&ledger, &record, 1122, 1130);
	CHECK(ledger_clean(&ledger) && ledger.finished == 1);
}

static void ledger_modifies_after_a_store_that_may_have_crossed(void)
{
	struct twheel_record record = record_of_a(7, 1120);
	struct ledger ledger = begin_with_deadlines();

	ledger_run(&ledger, &add_a, 0, 7);
	ledger_run(&ledger, &arm_a, 0, 0);
	CHECK(ledger.stored == 0 && ledger.modified == 1);
	ledger_record(&ledger, &record, 1122, 1130);
	CHECK(ledger_clean(&ledger));
}

static void ledger_counts_what_a_store_did_not_move_as_wrong(void)
{
	struct twheel_record record = record_of_a(7, 1060);
	struct ledger ledger = begin_with_deadlines();
	struct twheel_cmd cmd;

	ledger_run(&ledger, &add_a, 0, 7);
	CHECK(ledger_plan(&ledger, &arm_a, &cmd) == PLAN_STORE);
	ledger_stored(&ledger, &arm_a);
	ledger_record(&ledger, &record, 1122, 1130);
	CHECK(ledger.wrong == 1);
}

static void ledger_brings_forward_by_modify(void)
{
	static const struct schedule_line sooner = {
		.command = SCHEDULE_ARM, .at_ns = 20, .delay_ns = 39,
	};
	static const struct schedule_line with_slack = {
		.command = SCHEDULE_ARM, .at_ns = 20, .delay_ns = 50, .slack_ns = 1,
	};
	struct ledger ledger = begin_with_deadlines();
	struct twheel_cmd cmd;

	ledger_run(&ledger, &add_a, 0, 7);
	CHECK(ledger_plan(&ledger, &sooner, &cmd) == PLAN_COMMAND);
	CHECK(cmd.op == TWHEEL_OP_MODIFY && cmd.flags == TWHEEL_DEADLINE);
	CHECK(cmd.id == 7 && cmd.key == 0 && cmd.time_ns == 0);
	ledger.entries[0].queued = false;
	CHECK(ledger_plan(&ledger, &with_slack, &cmd) == PLAN_COMMAND);
	CHECK(cmd.slack_ns == 1);
}

static void ledger_holds_the_counters_of_words_against_its_own(void)
{
	static const struct counters bad[] = {
		{ .added = 1, .armed = 1, .deadlines = 1 },
		{ .added = 1, .armed = 1, .deadlines = 2, .postponed = 2 },
		{ .added = 1, .armed = 1, .deadlines = 2, .postponed = 0 },
	};
	struct counters good = {
		.added = 1, .armed = 1, .deadlines = 2, .postponed = 1,
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ledger ledger = begin_with_deadlines();
		struct twheel_cmd cmd;

		ledger_run(&ledger, &add_a, 0, 7);
		CHECK(ledger_plan(&ledger, &arm_a, &cmd) == PLAN_STORE);
		ledger_stored(&ledger, &arm_a);
		ledger_counters(&ledger, &good);
		CHECK(ledger.violations == 0 && ledger.postponed == 1);
		ledger_counters(&ledger, &bad[i]);
		CHECK(ledger.violations == 1);
	}
}

/* Parses a line, on a context that goes by @clockid with ticks of 65536 ns. */
static bool parse(struct line *line, clockid_t clockid, const char *text)
{
	static char copy[LINE_MAX_LENGTH + 1];

	line->clockid = clockid;
	line->tick_ns = 65536;
	strcpy(copy, text);
	return line_parse(line, copy);
}

static bool adds(const char *text, const char *name, const struct twheel_cmd *cmd)
{
	static struct line line;

	return parse(&line, CLOCK_REALTIME, text) && line.verb == LINE_ADD &&
	       !strcmp(line.name, name) &&
	       line.cmd.op == TWHEEL_OP_ADD && line.cmd.flags == cmd->flags &&
	       line.cmd.time_ns == cmd->time_ns &&
	       line.cmd.interval_ns == cmd->interval_ns &&
	       line.cmd.slack_ns == cmd->slack_ns;
}

static bool refuses_line(clockid_t clockid, const char *text, const char *reason)
{
	static struct line line;

	if (!parse(&line, clockid, text) && strstr(line.message, reason))
		return true;
	printf("# \"%s\": %s\n", text, line.message);
	return false;
}

static void line_takes_options_before_and_after_the_name(void)
{
	const struct twheel_cmd plain = { .time_ns = 5 };
	const struct twheel_cmd every = { .time_ns = 5, .interval_ns = 100000 };
	const struct twheel_cmd both = {
		.time_ns = 5, .interval_ns = 100000, .slack_ns = 7000,
	};

	CHECK(adds("add 5ns a", "a", &plain));
	CHECK(adds("\tadd  5ns  a  b ", "a  b", &plain));
	CHECK(adds("add 5ns a every 100us", "a", &every));
	CHECK(adds("add 5ns every 100us a", "a", &every));
	CHECK(adds("add 5ns every 100us slack 7us a b", "a b", &both));
	CHECK(adds("add 5ns slack 7us a b every 100us ", "a b", &both));
	CHECK(adds("add 5ns a b slack 7us every 100us", "a b", &both));
}

static void line_takes_a_quoted_name_as_it_is(void)
{
	const struct twheel_cmd every = { .time_ns = 5, .interval_ns = 100000 };
	const struct twheel_cmd plain = { .time_ns = 5 };

	CHECK(adds("add 5ns \"meet every 5m\"", "meet every 5m", &plain));
	CHECK(adds("add 5ns \" a \" every 100us", " a ", &every));
	CHECK(adds("add 5ns a\"b\"", "a\"b\"", &plain));
	CHECK(adds("add 5ns everyone", "everyone", &plain));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 5ns \"a", "no closing quote"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 5ns \"\"", "is empty"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 5ns \"a\" b",
			   "more than expected: \"b\""));
}

static void line_takes_absolute_times(void)
{
	const struct twheel_cmd absolute = {
		.flags = TWHEEL_ABS, .time_ns = 1700000000500000000,
	};
	const struct twheel_cmd set = {
		.flags = TWHEEL_ABS | TWHEEL_CANCEL_ON_SET,
		.time_ns = 1700000000500000000,
	};

	CHECK(adds("add @1700000000.5 a", "a", &absolute));
	CHECK(adds("add @1700000000.5 cancel-on-set a", "a", &set));
	CHECK(adds("add @1700000000.5 a cancel-on-set", "a", &set));
	CHECK(refuses_line(CLOCK_REALTIME, "add @5s a", "has a unit"));
	CHECK(refuses_line(CLOCK_REALTIME, "add @ a", "time \"@\" is not a number"));
	CHECK(refuses_line(CLOCK_REALTIME, "add @99999999999 a", "292 years"));
}

static void line_takes_a_period_as_the_first_delay(void)
{
	const struct twheel_cmd every = {
		.time_ns = 1000000000, .interval_ns = 1000000000,
	};

	CHECK(adds("add every 1s a", "a", &every));
	CHECK(adds("add slack 0s every 1s a", "a", &every));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add slack 1s a", "when is it due?"));
}

static void line_refuses_options_that_make_no_sense(void)
{
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s every a", "every \"a\" is not"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s every 5 a", "lacks its unit"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s every 65us a",
			   "every 65000ns: the least period is a tick, 65536ns"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s every 0s a", "least period"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a every 1s every 1s", "twice"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a slack 1s slack 1s", "twice"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s every 1s", "name is missing"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add @1 cancel-on-set a", "realtime"));
	CHECK(refuses_line(CLOCK_REALTIME, "add 1s cancel-on-set a", "realtime"));
	CHECK(refuses_line(CLOCK_REALTIME, "modify 1 1s cancel-on-set", "realtime"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "modify 1 1s a", "more than expected"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "list 5", "more than expected"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add every", "every \"\" is not"));
}

static void line_modifies_with_all_options(void)
{
	static struct line line;

	CHECK(parse(&line, CLOCK_REALTIME,
		    "modify 7 @5 every 1s slack 1ms cancel-on-set"));
	CHECK(line.verb == LINE_MODIFY && line.cmd.op == TWHEEL_OP_MODIFY);
	CHECK(line.cmd.id == 7 && line.cmd.time_ns == 5 * NSEC_PER_SEC);
	CHECK(line.cmd.flags == (TWHEEL_ABS | TWHEEL_CANCEL_ON_SET));
	CHECK(line.cmd.interval_ns == NSEC_PER_SEC);
	CHECK(line.cmd.slack_ns == NSEC_PER_MSEC);
	CHECK(parse(&line, CLOCK_MONOTONIC, "modify 7 every 2s"));
	CHECK(line.cmd.time_ns == 2 * NSEC_PER_SEC && !line.cmd.flags);
}

static const char *reason_to_refuse_key(const char *text)
{
	__u64 key;

	return key_parse(text, &key);
}

static void key_of_digits_is_that_number(void)
{
	CHECK(parses(key_parse, "0", 0));
	CHECK(parses(key_parse, "18446744073709551615", ~0ULL));
	CHECK(refuses(key_parse, "18446744073709551616", "too large"));
}

/* The hashes are of the authors of FNV, and of other implementations. */
static void key_of_a_name_is_its_fnv_1a_hash(void)
{
	CHECK(parses(key_parse, "a", 0xaf63dc4c8601ec8c));
	CHECK(parses(key_parse, "foobar", 0x85944171f73967e8));
	CHECK(parses(key_parse, "topic-1", 6642144009190285966));
	CHECK(parses(key_parse, "\xff", 0xaf64724c8602eb6e));
	CHECK(!reason_to_refuse_key("-1") && !reason_to_refuse_key("0x10"));
}

static void key_is_not_empty_and_has_no_sign(void)
{
	CHECK(refuses(key_parse, "", "is empty"));
	CHECK(refuses(key_parse, "a>=5", "has \">=\" in it"));
	CHECK(!reason_to_refuse_key("a>5"));
}

static void key_is_called_by_its_first_name(void)
{
	struct key_names names = { 0 };

	CHECK(!key_names_find(&names, 5));
	CHECK(!strcmp(key_names_learn(&names, 5, "5"), "5"));
	CHECK(!key_names_find(&names, 5));
	CHECK(!strcmp(key_names_learn(&names, 5, "five"), "five"));
	CHECK(!strcmp(key_names_learn(&names, 6, "six"), "six"));
	CHECK(!strcmp(key_names_learn(&names, 5, "cinq"), "five"));
	CHECK(!strcmp(key_names_learn(&names, 5, "5"), "5"));
	CHECK(!strcmp(key_names_find(&names, 5), "five"));
	CHECK(!strcmp(key_names_find(&names, 6), "six"));
}

static bool watches(const struct line *line, size_t i, const char *key,
		    __u64 need, __u16 flags)
{
	const struct twheel_cmd *cmd = &line->cmds[i];

	return cmd->op == TWHEEL_OP_WATCH && !strcmp(line->keys[i], key) &&
	       parses(key_parse, key, cmd->key) && cmd->value == need &&
	       cmd->flags == flags;
}

static void line_adds_with_watches(void)
{
	static const char most[] =
		"add 1s level 7>=1 a b quorum 2 watch x>=2 slack 1ms watch x>=18446744073709551615";
	static struct line line;

	CHECK(parse(&line, CLOCK_MONOTONIC, "add 30s fetch watch topic-1>=4096"));
	CHECK(!strcmp(line.name, "fetch") && line.nr_cmds == 2);
	CHECK(line.cmd.op == TWHEEL_OP_ADD && !line.cmd.quorum && !line.keys[0]);
	CHECK(watches(&line, 1, "topic-1", 4096, 0) && !line.cmds[1].id);
	CHECK(parse(&line, CLOCK_MONOTONIC, most));
	CHECK(!strcmp(line.name, "a b") && line.nr_cmds == 4);
	CHECK(line.cmd.quorum == 2 && line.cmd.slack_ns == NSEC_PER_MSEC);
	CHECK(watches(&line, 1, "7", 1, TWHEEL_LEVEL));
	CHECK(watches(&line, 2, "x", 2, 0) && watches(&line, 3, "x", ~0ULL, 0));
	CHECK(parse(&line, CLOCK_MONOTONIC, "add 1s \"watch a>=b\" quorum 64"));
	CHECK(line.nr_cmds == 1 && line.cmd.quorum == 64);
	CHECK(parse(&line, CLOCK_MONOTONIC, "add every 1s a quorum 1"));
}

static void line_adds_with_up_to_64_watches(void)
{
	static struct line line;
	char text[LINE_MAX_LENGTH] = "add 1s a";

	for (int i = 0; i < TWHEEL_MAX_WATCHES; i++)
		strcat(text, " watch k>=1");
	CHECK(parse(&line, CLOCK_MONOTONIC, text));
	CHECK(line.nr_cmds == LINE_MAX_CMDS && watches(&line, 64, "k", 1, 0));
	strcat(text, " level k>=1");
	CHECK(refuses_line(CLOCK_MONOTONIC, text, "more than 64 watches"));
	CHECK(parse(&line, CLOCK_MONOTONIC, "add 1s a") && line.nr_cmds == 1);
}

static void line_refuses_watches_that_make_no_sense(void)
{
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a watch",
			   "watch \"\" is not KEY>=NEED"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s watch the pot",
			   "watch \"the\" is not KEY>=NEED"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a level k >= 5",
			   "level \"k\" is not KEY>=NEED, in one word"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a watch k>5", "is not KEY>=NEED"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a watch >=5", "key \"\" is empty"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a watch k>=",
			   "need \"\" is not a whole number"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a watch k>=-1",
			   "need \"-1\" is not a whole number"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a watch k>=18446744073709551616",
			   "need \"18446744073709551616\" is too large"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a watch k>=0",
			   "the least need is 1"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a watch 99999999999999999999>=1",
			   "key \"99999999999999999999\" is too large"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s watch k>=1", "name is missing"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a every 1s watch k>=1",
			   "\"every\" goes with no watch"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add every 1s a quorum 2",
			   "\"every\" goes with no watch"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a quorum",
			   "quorum \"\" is not a whole number from 1 to 64"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a quorum 0", "from 1 to 64"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a quorum 65", "from 1 to 64"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a quorum 2.5", "from 1 to 64"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "add 1s a quorum 1 quorum 1", "twice"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "modify 1 1s watch k>=1",
			   "a line of its own: watch ID KEY>=NEED"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "modify 1 1s level k>=1",
			   "a line of its own: level ID KEY>=NEED"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "modify 1 1s quorum 2", "add only"));
}

static void line_watches_what_there_is(void)
{
	static struct line line;

	CHECK(parse(&line, CLOCK_MONOTONIC, "watch 7 k>=5"));
	CHECK(line.verb == LINE_WATCH && line.cmd.id == 7);
	CHECK(line.nr_cmds == 1 && watches(&line, 0, "k", 5, 0));
	CHECK(parse(&line, CLOCK_MONOTONIC, "level 7 k>=5"));
	CHECK(line.verb == LINE_WATCH && watches(&line, 0, "k", 5, TWHEEL_LEVEL));
	CHECK(refuses_line(CLOCK_MONOTONIC, "watch k>=5", "id \"k>=5\" is not"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "watch 7", "is not KEY>=NEED"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "level 7 k", "level \"k\" is not"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "watch 7 k>=5 k>=6",
			   "more than expected: \"k>=6\""));
}

static void line_signals(void)
{
	static struct line line;

	CHECK(parse(&line, CLOCK_MONOTONIC, "signal k 512"));
	CHECK(line.verb == LINE_SIGNAL && line.cmd.op == TWHEEL_OP_SIGNAL);
	CHECK(!strcmp(line.keys[0], "k") && parses(key_parse, "k", line.cmd.key));
	CHECK(line.cmd.value == 512 && !line.cmd.flags);
	CHECK(parse(&line, CLOCK_MONOTONIC, "signal 7 quiet"));
	CHECK(line.cmd.key == 7 && !line.cmd.value);
	CHECK(line.cmd.flags == TWHEEL_QUIET);
	CHECK(refuses_line(CLOCK_MONOTONIC, "signal", "key \"\" is empty"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "signal k>=5", "has \">=\" in it"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "signal k", "value \"\" is not a whole number"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "signal k Quiet", "say a number, or quiet"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "signal k 1 quiet",
			   "more than expected: \"quiet\""));
}

static void line_completes(void)
{
	static struct line line;

	CHECK(parse(&line, CLOCK_MONOTONIC, "complete 7"));
	CHECK(line.verb == LINE_COMPLETE && line.cmd.op == TWHEEL_OP_COMPLETE);
	CHECK(line.cmd.id == 7 && !line.cmd.value && !line.keys[0]);
	CHECK(parse(&line, CLOCK_MONOTONIC, "complete 7 5") && line.cmd.value == 5);
	CHECK(refuses_line(CLOCK_MONOTONIC, "complete", "id \"\" is not"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "complete k", "id \"k\" is not"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "complete 7 x",
			   "value \"x\" is not a whole number"));
	CHECK(refuses_line(CLOCK_MONOTONIC, "complete 7 5 6", "more than expected"));
}

/* How many commands the kernel below runs in a call. */
static unsigned int cmds_per_call;

/*
 * In place of the system call: a kernel that is stopped by a signal again and
 * again.  An ADD gets an id, and a WATCH notes the one that it went to.
 */
int ioctl(int fd, unsigned long request, ...)
{
	unsigned int nr_cmds = cmds_per_call;
	struct twheel_submit *submit;
	struct twheel_cmd *cmds;
	__u64 added = 0;
	va_list args;

	(void)fd;
	CHECK(request == TWHEEL_IOC_SUBMIT);
	va_start(args, request);
	submit = va_arg(args, struct twheel_submit *);
	va_end(args);
	cmds = (struct twheel_cmd *)(unsigned long)submit->cmds;
	if (submit->nr < nr_cmds)
		nr_cmds = submit->nr;
	for (unsigned int i = 0; i < nr_cmds; i++) {
		if (cmds[i].op == TWHEEL_OP_ADD) {
			added = cmds[i].data;
			cmds[i].id = added;
		} else {
			cmds[i].result = cmds[i].id ? cmds[i].id : added;
		}
	}
	return nr_cmds;
}

static void watches_go_to_their_add_however_the_call_is_cut(void)
{
	for (cmds_per_call = 1; cmds_per_call <= 7; cmds_per_call++) {
		struct twheel_cmd cmds[] = {
			{ .op = TWHEEL_OP_WATCH },
			{ .op = TWHEEL_OP_ADD, .data = 5 },
			{ .op = TWHEEL_OP_WATCH },
			{ .op = TWHEEL_OP_WATCH, .id = 9 },
			{ .op = TWHEEL_OP_WATCH },
			{ .op = TWHEEL_OP_ADD, .data = 6 },
			{ .op = TWHEEL_OP_WATCH },
		};
		const int went_to[] = { 0, 0, 5, 9, 5, 0, 6 };
		struct device dev = { .fd = -1 };

		CHECK(!device_submit(&dev, cmds, ARRAY_SIZE(cmds)));
		for (size_t i = 0; i < ARRAY_SIZE(cmds); i++)
			CHECK(cmds[i].result == went_to[i]);
	}
}

static struct sample sample_at(__u64 at_ns, __u64 expired)
{
	return (struct sample){
		.at_ns = at_ns, .pending = 5, .expired = expired,
		.interrupts = expired / 2, .cascaded = expired / 4,
		.postponed = expired / 10,
	};
}

static void rates_are_of_the_time_between(void)
{
	struct sample before = sample_at(1000, 100);
	struct sample after = sample_at(1000 + 2 * NSEC_PER_SEC, 500);
	struct rates rates;

	rates_between(&rates, &before, &after);
	CHECK(rates.expired == 400 && rates.per_s == 200 && rates.pending == 5);
	CHECK(rates.interrupts_per_s == 100 && rates.cascaded_per_s == 50);
	CHECK(rates.postponed_per_s == 20);
	CHECK(rates.p99_ns == 0 && rates.worst_ns == 0);
}

static void rates_begin_anew_with_the_module(void)
{
	struct sample before = sample_at(1000, 500);
	struct sample after = sample_at(1000 + NSEC_PER_SEC, 100);
	struct rates rates;

	rates_between(&rates, &before, &after);
	CHECK(rates.expired == 100);
}

static void rates_bound_the_lateness_of_99_and_of_all(void)
{
	struct sample before = { .lateness = { 7, 1000 } };
	struct sample after = before;
	struct rates rates;

	after.at_ns = NSEC_PER_SEC;
	after.lateness[0] += 990;
	after.lateness[3] += 10;
	rates_between(&rates, &before, &after);
	CHECK(rates.p99_ns == 1024 && rates.worst_ns == 8192);
	after.lateness[3]++;
	rates_between(&rates, &before, &after);
	CHECK(rates.p99_ns == 8192 && rates.worst_ns == 8192);
	after.lateness[WHEEL_LATENESS - 1]++;
	rates_between(&rates, &before, &after);
	CHECK(rates.p99_ns == 8192 && rates.worst_ns == RATES_ENDLESS);
}

static void rates_add_all_wheels_up(void)
{
	struct wheel wheel[2] = {
		{ .armed = 1, .gap = 2, .expired = 3, .interrupts = 4 },
		{ .armed = 10, .expired = 30, .interrupts = 40, .cascaded = 50,
		  .postponed = 60,
		  .lateness = { 6, 7 } },
	};
	const struct wheels wheels = { .wheel = wheel, .nr = 2 };
	struct sample sample;

	sample_take(&sample, &wheels, 9);
	CHECK(sample.at_ns == 9 && sample.pending == 13);
	CHECK(sample.expired == 33 && sample.interrupts == 44);
	CHECK(sample.cascaded == 50 && sample.postponed == 60);
	CHECK(sample.lateness[1] == 7);
}

static bool shows(__u64 below_ns, const char *expected)
{
	char text[NUMBER_TEXT];

	return !strcmp(lateness_format(text, below_ns), expected);
}

static void lateness_is_told_as_its_bucket(void)
{
	CHECK(shows(0, "-"));
	CHECK(shows(131072, "< 131us"));
	CHECK(shows(RATES_ENDLESS, "> 4.29s"));
}

/* Does a line of trace_pipe become an object that ends so? It is written with ' for ". */
static bool traces(const char *text, const char *expected)
{
	char line[256], *is, *quote;
	json_t *object;
	bool same;

	snprintf(line, sizeof(line), "%s", text);
	object = trace_line_json(line, 5000 * NSEC_PER_SEC);
	is = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(15)) : strdup("none");
	while ((quote = strchr(is, '"')))
		*quote = '\'';
	same = strlen(is) >= strlen(expected) &&
	       !strcmp(is + strlen(is) - strlen(expected), expected);
	if (!same)
		printf("# %s\n# is %s\n", text, is);
	free(is);
	json_decref(object);
	return same;
}

static void ignore_line(char *line, void *arg)
{
	(void)line;
	(void)arg;
}

static void tracefs_is_read_for_a_while_if_events_keep_coming(void)
{
	static struct tracefs tracefs;

	tracefs.fd = open("/dev/zero", O_RDONLY);
	CHECK(tracefs_read(&tracefs, ignore_line, NULL) == 1);
	close(tracefs.fd);
	tracefs.fd = open("/dev/null", O_RDONLY);
	CHECK(tracefs_read(&tracefs, ignore_line, NULL) == 0);
	close(tracefs.fd);
}

static void trace_line_is_an_event_with_its_fields(void)
{
	CHECK(traces("  <idle>-0   [001] d.h2.  5123.004711: twheel_due: late_ns=42",
		     "{'type':'event','at_s':123.004711,'event':'due','late_ns':42}"));
	CHECK(traces("  a b-77  [000] d..1.  5000.000001: twheel_run: node=00a1 base=1/boottime",
		     "'event':'run','node':'00a1','cpu':1,'clock':'boottime'}"));
}

static void trace_line_keeps_64_bits(void)
{
	CHECK(traces("x-1 [000] .....  5001.000000: twheel_complete: key=18446744073709551615",
		     "'at_s':1.0,'event':'complete','key':'18446744073709551615'}"));
}

static void trace_line_from_before_the_start_is_at_0(void)
{
	CHECK(traces("x-1 [000] .....  4999.999999: twheel_cancel: kind=events",
		     "{'type':'event','at_s':0.0,'event':'cancel','kind':'events'}"));
}

static void trace_line_tells_what_was_lost(void)
{
	CHECK(traces("CPU:1 [LOST 1024 EVENTS]", "{'type':'lost','events':1024}"));
}

static void trace_line_of_others_is_left_out(void)
{
	CHECK(traces("", "none"));
	CHECK(traces("# tracer: nop", "none"));
	CHECK(traces("x-1 [000] .....  5001.000000: sched_switch: prev=a", "none"));
	CHECK(traces("x-1 [000] .....  soon: twheel_due: base=0/monotonic", "none"));
	CHECK(traces("x-1 [000] .....  5001.000000: twheel_due", "none"));
	CHECK(traces("x-1 [000] .....  5001.000000: twheel_due: base=0", "none"));
	CHECK(traces("x-1 [000] .....  5001.000000: twheel_due: base=x/monotonic", "none"));
	CHECK(traces("x-1 [000] .....  5001.000000: twheel_due: late_ns=", "none"));
	CHECK(traces("x-1 [000] .....  5001.000000: twheel_due: late_ns=5x", "none"));
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
	TEST(ledger_follows_the_grid_of_a_periodic_event),
	TEST(ledger_holds_a_line_until_what_was_due_is_covered),
	TEST(ledger_counts_a_skipped_expiration_as_lost),
	TEST(ledger_counts_what_is_covered_again_as_duplicated),
	TEST(ledger_counts_what_is_covered_too_soon_as_early),
	TEST(ledger_counts_a_record_that_covers_too_little_as_wrong),
	TEST(ledger_lets_a_modify_end_or_begin_a_period),
	TEST(ledger_asks_a_clock_that_is_set_for_no_moment),
	TEST(ledger_takes_counters_that_add_up),
	TEST(ledger_finds_counters_that_do_not),
	TEST(ledger_arms_by_words),
	TEST(ledger_puts_off_by_a_store),
	TEST(ledger_modifies_after_a_store_that_may_have_crossed),
	TEST(ledger_counts_what_a_store_did_not_move_as_wrong),
	TEST(ledger_brings_forward_by_modify),
	TEST(ledger_holds_the_counters_of_words_against_its_own),
	TEST(line_takes_options_before_and_after_the_name),
	TEST(line_takes_a_quoted_name_as_it_is),
	TEST(line_takes_absolute_times),
	TEST(line_takes_a_period_as_the_first_delay),
	TEST(line_refuses_options_that_make_no_sense),
	TEST(line_modifies_with_all_options),
	TEST(key_of_digits_is_that_number),
	TEST(key_of_a_name_is_its_fnv_1a_hash),
	TEST(key_is_not_empty_and_has_no_sign),
	TEST(key_is_called_by_its_first_name),
	TEST(line_adds_with_watches),
	TEST(line_adds_with_up_to_64_watches),
	TEST(line_refuses_watches_that_make_no_sense),
	TEST(line_watches_what_there_is),
	TEST(line_signals),
	TEST(line_completes),
	TEST(watches_go_to_their_add_however_the_call_is_cut),
	TEST(rates_are_of_the_time_between),
	TEST(rates_begin_anew_with_the_module),
	TEST(rates_bound_the_lateness_of_99_and_of_all),
	TEST(rates_add_all_wheels_up),
	TEST(lateness_is_told_as_its_bucket),
	TEST(tracefs_is_read_for_a_while_if_events_keep_coming),
	TEST(trace_line_is_an_event_with_its_fields),
	TEST(trace_line_keeps_64_bits),
	TEST(trace_line_from_before_the_start_is_at_0),
	TEST(trace_line_tells_what_was_lost),
	TEST(trace_line_of_others_is_left_out),
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
