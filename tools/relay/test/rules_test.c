// SPDX-License-Identifier: GPL-2.0
/* The rules of the relay one by one; model_test.c tests them together. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/device/harness.h"
#include "relay/rules/cancelled.h"
#include "relay/rules/rules.h"
#include "relay/rules/runs.h"
#include "relay/rules/watermark.h"
#include "common/retry_policy.h"
#include "common/util.h"

#define MINUTE_MS	(60 * 1000ULL)
#define HOUR_MS		(60 * MINUTE_MS)
#define DAY_MS		(24 * HOUR_MS)
#define H_MS		(10 * MINUTE_MS)
#define NOW_MS		1700000000000ULL

static struct relay_rules rules;

static void make_rules(uint64_t horizon_ms, uint64_t scale)
{
	relay_rules_init(&rules, "delays", horizon_ms, scale);
}

static struct relay_text text(const char *string)
{
	return (struct relay_text){ string, string ? strlen(string) : 0 };
}

static struct relay_text number(uint64_t value, char digits[24])
{
	snprintf(digits, 24, "%" PRIu64, value);
	return text(digits);
}

/* --- headers -------------------------------------------------------------------------- */

/**
 * struct headers - the headers of a record, and what is decided
 * @reason: for RELAY_REFUSE: the beginning of the reason.
 * @due_ms: otherwise: when it is due.
 */
struct headers {
	const char *target;
	const char *deliver_at;
	const char *delay;
	const char *attempt;
	enum relay_action action;
	const char *reason;
	uint64_t due_ms;
};

static void look_at(const struct headers *headers)
{
	struct retry_policy policy = retry_policy_default;
	struct relay_record record = {
		.timestamp_ms = NOW_MS - 1000,
		.policy = &policy,
		.target = text(headers->target),
		.deliver_at = text(headers->deliver_at),
		.delay = text(headers->delay),
		.attempt = text(headers->attempt),
	};
	struct relay_decision decision;

	policy.jitter_percent = 0;
	relay_decide(&rules, &record, NOW_MS, &decision);
	test_about("target %s, deliver-at %s, delay %s, attempt %s", headers->target,
		   headers->deliver_at, headers->delay, headers->attempt);
	ASSERT_EQ(decision.action, headers->action);
	if (decision.action == RELAY_REFUSE)
		ASSERT(!strncmp(decision.reason, headers->reason, strlen(headers->reason)));
	else
		ASSERT_EQ(decision.due_ms, headers->due_ms);
}

static void look_at_all(const struct headers *headers, size_t nr)
{
	size_t i;

	make_rules(H_MS, 1);
	for (i = 0; i < nr; i++)
		look_at(&headers[i]);
}

TEST(a_record_is_due_when_its_headers_say)
{
	static const struct headers headers[] = {
		{ "t", NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 },
		{ "t", NULL, "1000", NULL, RELAY_DELIVER, NULL, NOW_MS },
		{ "t", NULL, "1001", NULL, RELAY_NEAR, NULL, NOW_MS + 1 },
		{ "t", NULL, "0001001", NULL, RELAY_NEAR, NULL, NOW_MS + 1 },
		{ "t", NULL, "1200999", NULL, RELAY_NEAR, NULL, NOW_MS + 2 * H_MS - 1 },
		{ "t", NULL, "1201000", NULL, RELAY_PARK, NULL, NOW_MS + 2 * H_MS },
		{ "t", "978307200000", NULL, NULL, RELAY_DELIVER, NULL, RELAY_TIME_MIN_MS },
		{ "t", "1700000000000", NULL, NULL, RELAY_DELIVER, NULL, NOW_MS },
		{ "t", "1700000000001", NULL, NULL, RELAY_NEAR, NULL, NOW_MS + 1 },
		{ "t", "1700000000001", NULL, "7", RELAY_NEAR, NULL, NOW_MS + 1 },
		{ "t", NULL, NULL, "1", RELAY_DELIVER, NULL, NOW_MS },
		{ "t", NULL, NULL, "2", RELAY_NEAR, NULL, NOW_MS + 1000 },
		{ "t", NULL, NULL, "3", RELAY_NEAR, NULL, NOW_MS + 3000 },
		{ "t", NULL, NULL, "24", RELAY_PARK, NULL, NOW_MS - 1000 + HOUR_MS },
		{ "t", NULL, NULL, "25", RELAY_BURY, NULL, NOW_MS - 1000 },
		{ "t", NULL, NULL, "4294967295", RELAY_BURY, NULL, NOW_MS - 1000 },
		{ "Az.0_9-", NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 },
		{ "delays-b600", NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 },
		{ "delays-bs", NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 },
		{ "delays-b600s-x", NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 },
		{ "delays.b600s", NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 },
		{ "delay-b600s", NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 },
		{ "delays-done-x", NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 },
		{ "_x", NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 },
	};

	look_at_all(headers, ARRAY_SIZE(headers));
}

struct wrong_headers {
	const char *target;
	const char *deliver_at;
	const char *delay;
	const char *attempt;
	const char *reason;
};

TEST(a_record_with_wrong_headers_is_refused_with_the_reason)
{
	static const struct wrong_headers wrong[] = {
		{ NULL, NULL, "1", NULL, "there is no twheel-target" },
		{ "", NULL, "1", NULL, "there is no twheel-target" },
		{ ".", NULL, "1", NULL, "twheel-target is not a name" },
		{ "..", NULL, "1", NULL, "twheel-target is not a name" },
		{ "a b", NULL, "1", NULL, "twheel-target is not a name" },
		{ "a\xc3\xa4", NULL, "1", NULL, "twheel-target is not a name" },
		{ "delays", NULL, "1", NULL, "twheel-target is a topic of" },
		{ "delays-b600s", NULL, "1", NULL, "twheel-target is a topic of" },
		{ "delays-b77s", NULL, "1", NULL, "twheel-target is a topic of" },
		{ "delays-b0600s", NULL, "1", NULL, "twheel-target is a topic of" },
		{ "delays-b0s", NULL, "1", NULL, "twheel-target is a topic of" },
		{ "delays-b99999999999s", NULL, "1", NULL, "twheel-target is a topic of" },
		{ "delays-done", NULL, "1", NULL, "twheel-target is a topic of" },
		{ "delays-cancelled", NULL, "1", NULL, "twheel-target is a topic of" },
		{ "delays.invalid", NULL, "1", NULL, "twheel-target is a topic of" },
		{ "__consumer_offsets", NULL, "1", NULL, "twheel-target begins with __" },
		{ "__", NULL, "1", NULL, "twheel-target begins with __" },
		{ "t", NULL, NULL, NULL, "there is no twheel-deliver-at" },
		{ "t", "1", "1", NULL, "there are both" },
		{ "t", NULL, "", NULL, "twheel-delay is not a time" },
		{ "t", NULL, "-1", NULL, "twheel-delay is not a time" },
		{ "t", NULL, "+1", NULL, "twheel-delay is not a time" },
		{ "t", NULL, " 1", NULL, "twheel-delay is not a time" },
		{ "t", NULL, "1.5", NULL, "twheel-delay is not a time" },
		{ "t", NULL, "1s", NULL, "twheel-delay is not a time" },
		{ "t", NULL, "0x10", NULL, "twheel-delay is not a time" },
		{ "t", NULL, "18446744073709551617", NULL, "twheel-delay is no" },
		{ "t", NULL, "9223372036854775807", NULL, "twheel-delay is no" },
		{ "t", "978307199999", NULL, NULL, "twheel-deliver-at is before 2001: it must" },
		{ "t", "1700000000", NULL, NULL, "twheel-deliver-at is before 2001: it must" },
		{ "t", "0", NULL, NULL, "twheel-deliver-at is before 2001: it must be in ms" },
		{ "t", "soon", NULL, NULL, "twheel-deliver-at is not a time" },
		{ "t", "9223372036854775808", NULL, NULL, "twheel-deliver-at is" },
		{ "t", "9223372036854775807", NULL, NULL, "it is due in more" },
		{ "t", "1700000000000000", NULL, NULL, "it is due in more" },
		{ "t", NULL, NULL, "0", "twheel-attempt of a retry is 0" },
		{ "t", NULL, NULL, "one", "twheel-attempt is not a number" },
		{ "t", NULL, NULL, "4294967296", "twheel-attempt is not a number" },
		{ "t", NULL, "1", "x", "twheel-attempt is not a number" },
	};

	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct headers headers = {
			wrong[i].target, wrong[i].deliver_at, wrong[i].delay, wrong[i].attempt,
			RELAY_REFUSE, wrong[i].reason, 0
		};

		look_at_all(&headers, 1);
	}
}

static enum relay_action decide_for(const char *target, uint64_t width_ms, const char *tries)
{
	struct relay_record record = {
		.width_ms = width_ms,
		.timestamp_ms = NOW_MS,
		.policy = &retry_policy_default,
		.target = text(target),
		.delay = text(width_ms ? NULL : "0"),
		.due = text(width_ms ? "1600000000000" : NULL),
		.tries = text(tries),
	};
	struct relay_decision decision;

	test_about("target %.20s, tries %s", target, tries);
	relay_decide(&rules, &record, NOW_MS, &decision);
	if (decision.action == RELAY_REFUSE)
		ASSERT(!strncmp(decision.reason, RELAY_TARGET " ", strlen(RELAY_TARGET " ")));
	return decision.action;
}

TEST(only_allowed_targets_are_written)
{
	regex_t targets;

	make_rules(H_MS, 1);
	ASSERT_EQ(regcomp(&targets, "^(orders|mail-.*|__.*)$", REG_EXTENDED | REG_NOSUB), 0);
	rules.targets = &targets;
	ASSERT_EQ(decide_for("orders", 0, NULL), RELAY_DELIVER);
	ASSERT_EQ(decide_for("mail-2", 0, NULL), RELAY_DELIVER);
	ASSERT_EQ(decide_for("orders2", 0, NULL), RELAY_REFUSE);
	ASSERT_EQ(decide_for("my-orders", 0, NULL), RELAY_REFUSE);
	ASSERT_EQ(decide_for("orders", H_MS, NULL), RELAY_DELIVER);
	ASSERT_EQ(decide_for("payments", H_MS, NULL), RELAY_REFUSE);
	/* What the option allows, the relay may still refuse. */
	ASSERT_EQ(decide_for("__consumer_offsets", 0, NULL), RELAY_REFUSE);
	regfree(&targets);
}

TEST(the_dead_letters_of_an_allowed_target_are_a_target_of_held_records_only)
{
	regex_t targets;

	make_rules(H_MS, 1);
	ASSERT_EQ(regcomp(&targets, "^(orders|x\\.dead)$", REG_EXTENDED | REG_NOSUB), 0);
	rules.targets = &targets;
	ASSERT_EQ(decide_for("orders.dead", 0, NULL), RELAY_REFUSE);
	ASSERT_EQ(decide_for("orders.dead", 0, "1"), RELAY_REFUSE);
	ASSERT_EQ(decide_for("orders.dead", H_MS, NULL), RELAY_REFUSE);
	ASSERT_EQ(decide_for("orders.dead", H_MS, "0"), RELAY_REFUSE);
	ASSERT_EQ(decide_for("orders.dead", H_MS, "1"), RELAY_DELIVER);
	ASSERT_EQ(decide_for("mail.dead", H_MS, "1"), RELAY_REFUSE);
	ASSERT_EQ(decide_for("x.dead", H_MS, "1"), RELAY_DELIVER);
	regfree(&targets);
}

TEST(the_name_of_dead_letters_may_be_as_long_as_kafka_allows)
{
	char name[RELAY_TOPIC_MAX + 2] = "";

	make_rules(H_MS, 1);
	memset(name, 'x', RELAY_TOPIC_MAX);
	ASSERT_EQ(decide_for(name, H_MS, "1"), RELAY_REFUSE);
	memcpy(name + RELAY_TARGET_MAX, ".dead", 5);
	ASSERT_EQ(decide_for(name, H_MS, NULL), RELAY_REFUSE);
	ASSERT_EQ(decide_for(name, H_MS, "1"), RELAY_DELIVER);
	memcpy(name + RELAY_TARGET_MAX, "x.dead", 6);
	ASSERT_EQ(decide_for(name, H_MS, "1"), RELAY_REFUSE);
}

TEST(a_target_leaves_room_for_its_suffix)
{
	char name[RELAY_TARGET_MAX + 2] = "";
	struct headers headers = { name, NULL, "0", NULL, RELAY_DELIVER, NULL, NOW_MS - 1000 };

	memset(name, 'x', RELAY_TARGET_MAX);
	look_at_all(&headers, 1);
	name[RELAY_TARGET_MAX] = 'x';
	headers.action = RELAY_REFUSE;
	headers.reason = "twheel-target is longer";
	look_at_all(&headers, 1);
}

/* 8 bytes of a binary number, or digits with a NUL at the end, are not a number. */
TEST(a_header_of_bytes_is_not_a_number)
{
	static const struct relay_text values[] = {
		{ "\0\0\0\0\0\0\0\1", 8 }, { "12\0", 3 }, { "1\n", 2 },
	};
	struct relay_record record = { .timestamp_ms = NOW_MS, .target = text("t") };
	struct relay_decision decision;
	size_t i;

	make_rules(H_MS, 1);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		record.delay = values[i];
		relay_decide(&rules, &record, NOW_MS, &decision);
		ASSERT_EQ(decision.action, RELAY_REFUSE);
	}
}

TEST(a_target_with_a_nul_is_not_a_name)
{
	struct relay_record record = {
		.timestamp_ms = NOW_MS, .target = { "a\0b", 3 }, .delay = text("1"),
	};
	struct relay_decision decision;

	make_rules(H_MS, 1);
	relay_decide(&rules, &record, NOW_MS, &decision);
	ASSERT_EQ(decision.action, RELAY_REFUSE);
}

TEST(a_record_without_a_timestamp_needs_a_time_in_place_of_a_delay)
{
	struct relay_record record = {
		.timestamp_ms = -1, .policy = &retry_policy_default, .target = text("t"),
		.delay = text("1"),
	};
	struct relay_decision decision;

	make_rules(H_MS, 1);
	relay_decide(&rules, &record, NOW_MS, &decision);
	ASSERT_EQ(decision.action, RELAY_REFUSE);
	record.delay = text(NULL);
	record.attempt = text("1");
	relay_decide(&rules, &record, NOW_MS, &decision);
	ASSERT_EQ(decision.action, RELAY_REFUSE);
	record.deliver_at = text("1600000000000");
	relay_decide(&rules, &record, NOW_MS, &decision);
	ASSERT_EQ(decision.action, RELAY_DELIVER);
}

TEST(the_jitter_of_a_retry_is_the_same_each_time_it_is_read)
{
	struct relay_record record = {
		.timestamp_ms = NOW_MS, .policy = &retry_policy_default, .target = text("t"),
		.attempt = text("8"),
	};
	struct relay_decision first, second;
	uint64_t seed, least = UINT64_MAX, most = 0;

	make_rules(H_MS, 1);
	for (seed = 0; seed < 1000; seed++) {
		record.seed = seed;
		relay_decide(&rules, &record, NOW_MS, &first);
		relay_decide(&rules, &record, NOW_MS + 60, &second);
		ASSERT_EQ(first.due_ms, second.due_ms);
		least = first.due_ms < least ? first.due_ms : least;
		most = first.due_ms > most ? first.due_ms : most;
	}
	/* 128 s, and 10 % of it. */
	ASSERT_GE(least, NOW_MS + 115200);
	ASSERT_LE(most, NOW_MS + 140800);
	ASSERT_GT(most - least, 20000);
}

TEST(all_times_but_those_of_the_wall_clock_are_scaled)
{
	struct relay_record record = {
		.timestamp_ms = NOW_MS, .policy = &retry_policy_default, .target = text("t"),
		.delay = text("86400000"),
	};
	struct relay_decision decision;

	make_rules(H_MS, 1000);
	ASSERT_EQ(rules.horizon_ms, 600);
	ASSERT_EQ(rules.width_ms[0], 10);
	ASSERT_EQ(rules.width_s[0], 10);
	ASSERT_EQ(rules.width_ms[3], 1200);
	ASSERT_EQ(rules.width_s[3], 1200);
	relay_decide(&rules, &record, NOW_MS, &decision);
	ASSERT_EQ(decision.action, RELAY_PARK);
	ASSERT_EQ(decision.due_ms, NOW_MS + 86400);
	record.delay = text(NULL);
	record.attempt = text("24");
	relay_decide(&rules, &record, NOW_MS, &decision);
	ASSERT_GE(decision.due_ms, NOW_MS + 3240);
	ASSERT_LE(decision.due_ms, NOW_MS + 3960);
}

/* --- buckets -------------------------------------------------------------------------- */

TEST(widths_double_from_the_horizon_to_30_days)
{
	unsigned int i;

	make_rules(H_MS, 1);
	ASSERT_EQ(rules.nr_small, 2);
	ASSERT_EQ(rules.nr_buckets, 2 + 13);
	for (i = 2; i < rules.nr_buckets; i++)
		ASSERT_EQ(rules.width_ms[i], H_MS << (i - 2));
	make_rules(RELAY_HORIZON_MIN_MS, 1);
	ASSERT_EQ(rules.nr_buckets, RELAY_BUCKETS_MAX - 2);
	make_rules(RELAY_HORIZON_MAX_MS, 1);
	ASSERT_EQ(rules.nr_buckets, 2 + 5);
}

TEST(there_are_small_buckets_below_the_horizon)
{
	static const unsigned int nr_small[][2] = {
		{ 1, 0 }, { 10, 0 }, { 11, 1 }, { 60, 1 }, { 61, 2 }, { 86400, 2 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nr_small); i++) {
		make_rules(nr_small[i][0] * 1000ULL, 1);
		test_about("H is %u s", nr_small[i][0]);
		ASSERT_EQ(rules.nr_small, nr_small[i][1]);
		ASSERT_EQ(rules.width_s[rules.nr_small], nr_small[i][0]);
		ASSERT_LE(rules.nr_buckets, RELAY_BUCKETS_MAX);
		if (rules.nr_small > 0)
			ASSERT_EQ(rules.width_ms[0], 10000);
		if (rules.nr_small > 1)
			ASSERT_EQ(rules.width_ms[1], 60000);
	}
}

TEST(the_bucket_is_the_widest_that_leaves_the_horizon)
{
	uint64_t remaining_ms;

	make_rules(H_MS, 1);
	for (remaining_ms = 2 * H_MS; remaining_ms < 60 * DAY_MS; remaining_ms += 59999) {
		unsigned int bucket = relay_bucket(&rules, remaining_ms);

		ASSERT_GE(bucket, rules.nr_small);
		ASSERT_LE(rules.width_ms[bucket], remaining_ms - H_MS);
		if (bucket + 1 < rules.nr_buckets)
			ASSERT_GT(rules.width_ms[bucket + 1], remaining_ms - H_MS);
	}
}

TEST(a_near_record_gives_way_to_the_widest_bucket_that_is_over_before_it_is_due)
{
	uint64_t remaining_ms;

	make_rules(H_MS, 1);
	ASSERT_EQ(relay_give_way_bucket(&rules, 0), -1);
	/* 10 s, a linger of 312 ms, and the margin of 2 s. */
	ASSERT_EQ(relay_give_way_bucket(&rules, 12311), -1);
	ASSERT_EQ(relay_give_way_bucket(&rules, 12312), 0);
	ASSERT_EQ(relay_give_way_bucket(&rules, 63874), 0);
	ASSERT_EQ(relay_give_way_bucket(&rules, 63875), 1);
	ASSERT_EQ(relay_give_way_bucket(&rules, 620749), 1);
	ASSERT_EQ(relay_give_way_bucket(&rules, 620750), 2);
	for (remaining_ms = 12312; remaining_ms < 60 * DAY_MS; remaining_ms += 59999) {
		unsigned int bucket = relay_give_way_bucket(&rules, remaining_ms);

		ASSERT_LE(rules.width_ms[bucket] + 2000, remaining_ms);
		if (bucket + 1 < rules.nr_buckets)
			ASSERT_GT(rules.width_ms[bucket + 1] + 2000 + rules.linger_ms,
				  remaining_ms);
	}
	make_rules(H_MS, 10);
	ASSERT_EQ(relay_give_way_bucket(&rules, 1230), -1);
	ASSERT_EQ(relay_give_way_bucket(&rules, 1232), 0);
}

TEST(a_held_record_goes_to_wider_buckets_with_each_try)
{
	static const struct {
		unsigned int horizon_s;
		unsigned int width_s[4];
	} held[] = {
		{ 600, { 10, 60, 600, 600 } },
		{ 86400, { 10, 60, 86400, 86400 } },
		/* Small buckets that do not exist are replaced by the next wider one. */
		{ 60, { 10, 60, 60, 60 } },
		{ 40, { 10, 80, 80, 80 } },
		{ 10, { 10, 80, 80, 80 } },
		{ 1, { 16, 64, 64, 64 } },
	};
	size_t i;
	int try;

	for (i = 0; i < ARRAY_SIZE(held); i++) {
		make_rules(held[i].horizon_s * 1000ULL, 1);
		for (try = 0; try < 4; try++) {
			unsigned int bucket = relay_hold_bucket(&rules, try);

			test_about("H is %u s, try %d", held[i].horizon_s, try);
			ASSERT_EQ(rules.width_s[bucket], held[i].width_s[try]);
			ASSERT_LT(bucket, rules.nr_buckets);
		}
		ASSERT_EQ(relay_hold_bucket(&rules, UINT32_MAX), relay_hold_bucket(&rules, 2));
	}
}

TEST(the_head_of_a_small_bucket_lingers_less)
{
	make_rules(H_MS, 1);
	ASSERT_EQ(relay_linger_ms(&rules, 10000), 312);
	ASSERT_EQ(relay_linger_ms(&rules, 60000), 1875);
	ASSERT_EQ(relay_linger_ms(&rules, H_MS), rules.linger_ms);
	ASSERT_EQ(relay_linger_ms(&rules, 30 * DAY_MS), rules.linger_ms);
}

TEST(buckets_are_recognised_by_their_names)
{
	static const char * const others[] = {
		"delays", "delays-b", "delays-bs", "delays-b600", "delays-b+600s",
		"delays-b0600s", "delays-b-600s", "delays-b600s.dead", "delays.invalid",
		"other-b600s", "delays-c600s", "delays-b 600s", "delays-b0s",
		"delays-b99999999999999999999s",
	};
	char name[RELAY_TOPIC_MAX + 1];
	uint64_t width_ms;
	size_t i;

	make_rules(H_MS, 1);
	relay_bucket_name(&rules, rules.width_s[4], name);
	ASSERT(!strcmp(name, "delays-b2400s"));
	ASSERT(relay_is_bucket(&rules, name, &width_ms));
	ASSERT_EQ(width_ms, 4 * H_MS);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		test_about("%s", others[i]);
		ASSERT(!relay_is_bucket(&rules, others[i], &width_ms));
	}
}

static enum relay_action parked(const char *due, const char *parked_at,
				struct relay_decision *decision)
{
	struct relay_record record = {
		.width_ms = 2 * H_MS,
		.timestamp_ms = NOW_MS,
		.target = text("t"),
		.due = text(due),
		.parked = text(parked_at),
		/* These were decided when the record was first read. */
		.delay = text("1"),
		.attempt = text("99"),
	};

	make_rules(H_MS, 1);
	relay_decide(&rules, &record, NOW_MS, decision);
	return decision->action;
}

TEST(a_parked_record_waits_its_width_and_is_decided_again)
{
	struct relay_decision decision;

	/* Due in 100,000 s, parked a second ago, or 1200 s. */
	ASSERT_EQ(parked("1700100000000", "1699999999000", &decision), RELAY_WAIT);
	ASSERT_EQ(decision.until_ms, NOW_MS - 1000 + 2 * H_MS);
	ASSERT_EQ(parked("1700100000000", "1699998800001", &decision), RELAY_WAIT);
	ASSERT_EQ(parked("1700100000000", "1699998800000", &decision), RELAY_PARK);
	ASSERT_EQ(decision.attempt, 99);
	ASSERT_EQ(decision.tries, 0);
}

TEST(a_near_record_waits_its_width_too_but_not_past_its_due_time)
{
	uint64_t before_ms = 2000 + H_MS / 32;
	struct relay_decision decision;

	/* Due in 21 minutes, so near after another second; parked now. */
	ASSERT_EQ(parked("1700001260000", "1700000000000", &decision), RELAY_WAIT);
	ASSERT_EQ(decision.until_ms, NOW_MS + 2 * H_MS);
	/* Due in 19 minutes, but its bucket is of 20. */
	ASSERT_EQ(parked("1700001140000", "1700000000000", &decision), RELAY_WAIT);
	ASSERT_EQ(decision.until_ms, NOW_MS + 1140000 - before_ms);
	ASSERT_EQ(parked("1700000020751", "1700000000000", &decision), RELAY_WAIT);
	ASSERT_EQ(decision.until_ms, NOW_MS + 1);
	ASSERT_EQ(parked("1700000020750", "1700000000000", &decision), RELAY_NEAR);
	/* Overdue. */
	ASSERT_EQ(parked("1700000000000", "1700000000000", &decision), RELAY_DELIVER);
	ASSERT_EQ(parked("1", "1700000000000", &decision), RELAY_DELIVER);
}

/* With a short horizon, as much is left then as a record has that gives way, or less. */
TEST(with_each_horizon_a_parked_record_waits_its_width)
{
	uint64_t horizon_ms, left_ms;

	for (horizon_ms = RELAY_HORIZON_MIN_MS; horizon_ms < 10000; horizon_ms += 1000) {
		make_rules(horizon_ms, 1);
		for (left_ms = 2 * horizon_ms; left_ms < 9 * horizon_ms; left_ms += 7) {
			uint64_t width_ms = rules.width_ms[relay_bucket(&rules, left_ms)];
			char due[24], parked_at[24];
			const struct relay_record record = {
				.width_ms = width_ms,
				.timestamp_ms = NOW_MS,
				.target = text("t"),
				.due = number(NOW_MS + left_ms, due),
				.parked = number(NOW_MS, parked_at),
			};
			struct relay_decision decision;

			relay_decide(&rules, &record, NOW_MS, &decision);
			ASSERT_EQ(decision.action, RELAY_WAIT);
			ASSERT_EQ(decision.until_ms, NOW_MS + width_ms);
		}
	}
}

/* Decide about a record of the bucket of 10 s, due 5 s ago, that was held. */
static enum relay_action held(const char *tries, const char *since, const char *parked_at,
			      struct relay_decision *decision)
{
	struct relay_record record = {
		.width_ms = 10000,
		.timestamp_ms = NOW_MS,
		.target = text("t"),
		.due = text("1699999995000"),
		.parked = text(parked_at),
		.tries = text(tries),
		.held_since = text(since),
	};

	make_rules(H_MS, 1);
	relay_decide(&rules, &record, NOW_MS, decision);
	return decision->action;
}

TEST(a_held_record_waits_its_width_though_it_is_overdue)
{
	struct relay_decision decision;

	ASSERT_EQ(held("3", "1699999990000", "1699999999000", &decision), RELAY_WAIT);
	ASSERT_EQ(decision.until_ms, NOW_MS + 9000);
	ASSERT_EQ(decision.tries, 3);
	ASSERT_EQ(held("3", "1699999990000", "1699999990001", &decision), RELAY_WAIT);
	ASSERT_EQ(held("3", "1699999990000", "1699999990000", &decision), RELAY_DELIVER);
	ASSERT_EQ(decision.tries, 3);
	ASSERT_EQ(decision.held_since_ms, NOW_MS - 10000);
	ASSERT_EQ(held("4294967295", NULL, "1699999990000", &decision), RELAY_DELIVER);
	ASSERT_EQ(decision.tries, UINT32_MAX);
	ASSERT_EQ(decision.held_since_ms, 0);
	/* Whatever it says of its tries, it does not wait if no relay has parked it. */
	ASSERT_EQ(held("3", "1699999990000", NULL, &decision), RELAY_DELIVER);
	ASSERT_EQ(held("3", "1699999990000", "1700000060001", &decision), RELAY_DELIVER);
}

TEST(wrong_headers_of_a_held_record_are_ignored)
{
	static const char * const wrong[] = { NULL, "", "0", "x", "-1", "4294967296" };
	struct relay_decision decision;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		test_about("tries %s", wrong[i]);
		ASSERT_EQ(held(wrong[i], "1699999990000", "1699999999000", &decision),
			  RELAY_DELIVER);
		ASSERT_EQ(decision.tries, 0);
		ASSERT_EQ(decision.held_since_ms, 0);
	}
	ASSERT_EQ(held("1", "yesterday", "1699999990000", &decision), RELAY_DELIVER);
	ASSERT_EQ(decision.tries, 1);
	ASSERT_EQ(decision.held_since_ms, 0);
}

TEST(tries_of_a_record_that_was_never_parked_are_ignored)
{
	struct relay_record record = {
		.timestamp_ms = NOW_MS, .target = text("t"), .delay = text("0"),
		.tries = text("7"), .held_since = text("1"), .parked = text("1700000000000"),
	};
	struct relay_decision decision;

	make_rules(H_MS, 1);
	relay_decide(&rules, &record, NOW_MS, &decision);
	ASSERT_EQ(decision.action, RELAY_DELIVER);
	ASSERT_EQ(decision.tries, 0);
	ASSERT_EQ(decision.held_since_ms, 0);
}

/* A record in a bucket: when it was parked there, and when it is ready. */
struct parked {
	uint64_t due_ms;
	uint64_t parked_ms;
	unsigned int bucket;
	uint32_t tries;
};

static void decide_parked(const struct parked *parked, uint64_t now_ms,
			  struct relay_decision *decision)
{
	char due[24], at[24], tries[24];
	struct relay_record record = {
		.width_ms = rules.width_ms[parked->bucket],
		.timestamp_ms = parked->parked_ms,
		.target = text("t"),
	};

	snprintf(due, sizeof(due), "%llu", (unsigned long long)parked->due_ms);
	snprintf(at, sizeof(at), "%llu", (unsigned long long)parked->parked_ms);
	snprintf(tries, sizeof(tries), "%u", parked->tries);
	record.due = text(due);
	record.parked = text(at);
	if (parked->tries)
		record.tries = text(tries);
	relay_decide(&rules, &record, now_ms, decision);
}

/* Park a record in one of the three ways: for its delay, to give way, or held. */
static bool park(struct parked *parked, uint64_t now_ms)
{
	uint64_t left_ms = random() % (random() % 2 ? 3 * H_MS : 60 * DAY_MS);
	int bucket;

	*parked = (struct parked){ .due_ms = now_ms + left_ms, .parked_ms = now_ms };
	if (random() % 3 == 0) {
		parked->due_ms = now_ms - left_ms;
		parked->tries = 1 + random() % 3;
		parked->bucket = relay_hold_bucket(&rules, parked->tries - 1);
		return true;
	}
	if (random() % 2 && left_ms >= 2 * H_MS) {
		parked->bucket = relay_bucket(&rules, left_ms);
		return true;
	}
	bucket = relay_give_way_bucket(&rules, left_ms);
	parked->bucket = bucket;
	return bucket >= 0;
}

TEST(no_record_of_a_bucket_waits_behind_one_that_is_ready_later)
{
	uint64_t ready_ms[RELAY_BUCKETS_MAX] = { 0 }, now_ms = NOW_MS;
	struct relay_decision decision;
	struct parked parked;
	int i;

	make_rules(H_MS, 1);
	for (i = 0; i < 100000; i++, now_ms += random() % 3) {
		if (!park(&parked, now_ms))
			continue;
		decide_parked(&parked, now_ms, &decision);
		ASSERT_EQ(decision.action, RELAY_WAIT);
		/* This is so whatever it is parked for: so it is the order of the bucket. */
		ASSERT_EQ(decision.until_ms, now_ms + rules.width_ms[parked.bucket]);
		ASSERT_GE(decision.until_ms, ready_ms[parked.bucket]);
		ready_ms[parked.bucket] = decision.until_ms;
		decide_parked(&parked, decision.until_ms, &decision);
		ASSERT_NE(decision.action, RELAY_WAIT);
	}
}

TEST(a_record_that_waits_its_width_is_not_late)
{
	uint64_t now_ms = NOW_MS, left_ms;
	struct relay_decision decision;
	struct parked parked;
	int i;

	make_rules(H_MS, 1);
	for (i = 0; i < 100000; i++) {
		if (!park(&parked, now_ms) || parked.tries)
			continue;
		decide_parked(&parked, now_ms, &decision);
		left_ms = parked.due_ms - decision.until_ms;
		ASSERT_GE(left_ms, 2000 + relay_linger_ms(&rules, rules.width_ms[parked.bucket]));
		if (parked.bucket < rules.nr_small || parked.due_ms - now_ms < 2 * H_MS)
			continue;
		/* It was parked for its delay, to a bucket of that; or it gave way. */
		if (parked.bucket == relay_bucket(&rules, parked.due_ms - now_ms))
			ASSERT_GE(left_ms, H_MS);
	}
}

TEST(a_record_parked_in_the_future_does_not_wait)
{
	struct relay_decision decision;
	char ten_years[24];

	/* A minute in the future may be the difference of clocks. */
	ASSERT_EQ(parked("1700100000000", "1700000060000", &decision), RELAY_WAIT);
	ASSERT_EQ(decision.until_ms, NOW_MS + 60000 + 2 * H_MS);
	ASSERT_EQ(parked("1700100000000", "1700000060001", &decision), RELAY_PARK);
	ASSERT_EQ(parked("1700100000000", "1900000000000", &decision), RELAY_PARK);
	/* It is due in 20 minutes, in a bucket of 20. */
	ASSERT_EQ(parked("1700001200000", "1700000030000", &decision), RELAY_WAIT);
	ASSERT_EQ(decision.until_ms, NOW_MS + 2 * H_MS - 2000 - H_MS / 32);
	ASSERT_EQ(parked("1700100000000", "x", &decision), RELAY_PARK);
	ASSERT_EQ(parked("1700100000000", NULL, &decision), RELAY_PARK);
	ASSERT_EQ(parked(NULL, "1700000000000", &decision), RELAY_REFUSE);
	/* Its delay of ten years was valid by the clock of the relay that parked it. */
	snprintf(ten_years, sizeof(ten_years), "%llu", NOW_MS + RELAY_DELAY_MAX_MS + 1);
	ASSERT_EQ(parked(ten_years, "1700000001000", &decision), RELAY_WAIT);
	ASSERT_EQ(parked("x", "1700000000000", &decision), RELAY_REFUSE);
}

/* --- taking back ---------------------------------------------------------------------- */

static struct relay_decision cancel(struct relay_text id, const char *due)
{
	struct relay_record record = {
		.timestamp_ms = NOW_MS, .cancel = id, .due = text(due),
	};
	struct relay_decision decision;

	make_rules(H_MS, 1);
	test_about("%.*s, due %s", (int)id.len, id.data, due);
	relay_decide(&rules, &record, NOW_MS, &decision);
	return decision;
}

TEST(a_record_that_takes_another_back_needs_no_target)
{
	struct relay_decision decision = cancel(text("order-7"), "1700000100000");

	ASSERT_EQ(decision.action, RELAY_TAKE_BACK);
	ASSERT_EQ(decision.due_ms, NOW_MS + 100000);
	/* Too late, but it may still help. */
	ASSERT_EQ(cancel(text("order-7"), "1600000000000").action, RELAY_TAKE_BACK);
}

TEST(a_wrong_record_that_takes_another_back_is_refused_with_the_reason)
{
	static const struct {
		const char *id;
		const char *due;
		const char *reason;
	} wrong[] = {
		{ "", "1700000100000", "twheel-cancel is not an id" },
		{ "x", NULL, "there is no twheel-due" },
		{ "x", "", "twheel-due is not a time" },
		{ "x", "soon", "twheel-due is not a time" },
		{ "x", "1700000100", "twheel-due is before 2001" },
		{ "x", "1700000100000000", "it is due in more than 10 years" },
	};
	char id[RELAY_ID_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct relay_decision decision = cancel(text(wrong[i].id), wrong[i].due);

		ASSERT_EQ(decision.action, RELAY_REFUSE);
		ASSERT(!strncmp(decision.reason, wrong[i].reason, strlen(wrong[i].reason)));
	}
	memset(id, 'x', sizeof(id));
	ASSERT_EQ(cancel((struct relay_text){ id, RELAY_ID_MAX }, "1700000100000").action,
		  RELAY_TAKE_BACK);
	ASSERT_EQ(cancel((struct relay_text){ id, RELAY_ID_MAX + 1 }, "1700000100000").action,
		  RELAY_REFUSE);
}

TEST(a_record_of_a_bucket_takes_nothing_back)
{
	struct relay_record record = {
		.width_ms = H_MS, .timestamp_ms = NOW_MS, .cancel = text("x"), .target = text("t"),
		.due = text("1700000000000"),
	};
	struct relay_decision decision;

	make_rules(H_MS, 1);
	relay_decide(&rules, &record, NOW_MS, &decision);
	ASSERT_EQ(decision.action, RELAY_DELIVER);
}

TEST(a_record_is_taken_back_too_late_within_5_s_of_its_due_time)
{
	make_rules(H_MS, 1);
	ASSERT(!relay_cancel_is_late(&rules, NOW_MS + 5000, NOW_MS));
	ASSERT(relay_cancel_is_late(&rules, NOW_MS + 4999, NOW_MS));
	ASSERT(relay_cancel_is_late(&rules, NOW_MS - 1, NOW_MS));
	make_rules(H_MS, 10);
	ASSERT(!relay_cancel_is_late(&rules, NOW_MS + 500, NOW_MS));
	ASSERT(relay_cancel_is_late(&rules, NOW_MS + 499, NOW_MS));
}

TEST(an_id_is_taken_back_until_it_expires)
{
	struct cancelled set = { 0 };

	ASSERT(!cancelled_has(&set, "a", 1));
	ASSERT(!cancelled_remove(&set, "a", 1));
	ASSERT_EQ(cancelled_add(&set, "a", 1, 1000), 0);
	ASSERT_EQ(cancelled_add(&set, "a\0", 2, 1000), 0);
	ASSERT(cancelled_has(&set, "a", 1));
	ASSERT(cancelled_has(&set, "a\0", 2));
	ASSERT(!cancelled_has(&set, "b", 1));
	ASSERT_EQ(set.nr, 2);
	ASSERT_GT(set.bytes, 0);
	ASSERT(cancelled_remove(&set, "a\0", 2));
	ASSERT(cancelled_has(&set, "a", 1));
	ASSERT(cancelled_remove(&set, "a", 1));
	ASSERT_EQ(set.nr, 0);
	ASSERT_EQ(set.bytes, 0);
	cancelled_free(&set);
}

#define IDS	500

/* The simplest set: an array. */
static struct {
	bool in;
	uint64_t due_ms;
} ids[IDS];

static void note_gone(void *context, const void *id, size_t len)
{
	int i;

	ASSERT_EQ(len, sizeof(i));
	memcpy(&i, id, sizeof(i));
	ASSERT(ids[i].in);
	ids[i].in = false;
	++*(size_t *)context;
}

static void expire(struct cancelled *set, uint64_t now_ms)
{
	size_t nr = 0, before = set->nr;
	int i;

	ASSERT_EQ(cancelled_expire(set, now_ms, 1000, SIZE_MAX, note_gone, &nr), before - set->nr);
	ASSERT_EQ(nr, before - set->nr);
	for (i = 0; i < IDS; i++)
		if (ids[i].in)
			ASSERT_GT(ids[i].due_ms + 1000, now_ms);
}

TEST(a_set_of_ids_is_as_a_plain_array_of_them)
{
	struct cancelled set = { 0 };
	uint64_t now_ms = 0;
	int step, i;

	for (step = 0; step < 100000; step++) {
		i = random() % IDS;
		if (random() % 3) {
			ids[i].in = true;
			ids[i].due_ms = now_ms + random() % 2000;
			ASSERT_EQ(cancelled_add(&set, &i, sizeof(i), ids[i].due_ms), 0);
		} else {
			ASSERT_EQ(cancelled_remove(&set, &i, sizeof(i)), ids[i].in);
			ids[i].in = false;
		}
		i = random() % IDS;
		ASSERT_EQ(cancelled_has(&set, &i, sizeof(i)), ids[i].in);
		if (step % 10 == 0)
			expire(&set, now_ms += random() % 20);
	}
	expire(&set, now_ms + 10000);
	ASSERT_EQ(set.nr, 0);
	ASSERT_EQ(set.bytes, 0);
	cancelled_free(&set);
}

TEST(an_id_is_kept_until_its_record_was_due_for_the_time_that_it_is_kept)
{
	struct cancelled set = { 0 };
	size_t nr = 0;
	int i = 0;

	ids[0].in = true;
	ASSERT_EQ(cancelled_add(&set, &i, sizeof(i), NOW_MS), 0);
	ASSERT_EQ(cancelled_expire(&set, NOW_MS + HOUR_MS - 1, RELAY_CANCEL_KEEP_MS, SIZE_MAX,
				   note_gone, &nr), 0);
	/* It is replaced by the same with a later time. */
	ASSERT_EQ(cancelled_add(&set, &i, sizeof(i), NOW_MS + 1), 0);
	ASSERT_EQ(cancelled_expire(&set, NOW_MS + HOUR_MS, RELAY_CANCEL_KEEP_MS, SIZE_MAX,
				   note_gone, &nr), 0);
	ASSERT_EQ(cancelled_expire(&set, NOW_MS + HOUR_MS + 1, RELAY_CANCEL_KEEP_MS, SIZE_MAX,
				   note_gone, &nr), 1);
	ASSERT_EQ(nr, 1);
	cancelled_free(&set);
}

static void count_gone(void *context, const void *id, size_t len)
{
	(void)id;
	(void)len;
	++*(size_t *)context;
}

TEST(ids_expire_some_at_a_time)
{
	struct cancelled set = { 0 };
	size_t nr = 0;
	int i;

	for (i = 0; i < 10000; i++)
		ASSERT_EQ(cancelled_add(&set, &i, sizeof(i), i < 5000 ? 1 : 5000), 0);
	while (cancelled_expire(&set, 2000, 1000, 100, count_gone, &nr))
		ASSERT_LE(nr, 5000);
	ASSERT_EQ(nr, 5000);
	ASSERT_EQ(set.nr, 5000);
	ASSERT_GT(cancelled_expire(&set, 6000, 1000, 100, count_gone, &nr), 0);
	ASSERT_LT(nr, 5200);
	cancelled_free(&set);
}

TEST(the_value_of_an_id_is_its_time_in_digits)
{
	static const char * const wrong[] = { "", "x", "-1", "1 ", "99999999999999999999" };
	uint64_t due_ms;
	char value[24];
	size_t i;

	ASSERT_EQ(cancelled_value_write(NOW_MS, value), 13);
	ASSERT(cancelled_value_read(value, 13, &due_ms));
	ASSERT_EQ(due_ms, NOW_MS);
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		ASSERT(!cancelled_value_read(wrong[i], strlen(wrong[i]), &due_ms));
	ASSERT(!cancelled_value_read("\0", 1, &due_ms));
}

/* --- a target that cannot be written --------------------------------------------------- */

static const struct relay_holding young = {
	.hold_ms = RELAY_HOLD_MS, .hold_max_ms = RELAY_HOLD_MAX_MS, .now_ms = NOW_MS,
};

TEST(a_record_is_held_in_memory_for_some_time_and_then_parked)
{
	struct relay_holding holding = young;

	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_WAIT);
	holding.failing_ms = 59999;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_WAIT);
	holding.failing_ms = 60000;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_PARK);
	holding.hold_ms = 0;
	holding.failing_ms = 0;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_PARK);
}

TEST(a_record_for_a_missing_target_is_parked_sooner)
{
	struct relay_holding holding = young;

	holding.lasting = true;
	holding.failing_ms = 4999;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_WAIT);
	holding.failing_ms = 5000;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_PARK);
	holding.hold_ms = 1000;
	holding.failing_ms = 1000;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_PARK);
}

TEST(a_held_record_is_parked_at_once_if_memory_is_above_half)
{
	struct relay_pressure pressure = { .cap = 800 };
	struct relay_holding holding = young;

	relay_pressure_add(&pressure, 400);
	holding.above_half = relay_pressure_is_above_half(&pressure);
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_WAIT);
	relay_pressure_add(&pressure, 1);
	holding.above_half = relay_pressure_is_above_half(&pressure);
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_PARK);
}

TEST(a_record_that_was_held_for_too_long_is_refused)
{
	struct relay_holding holding = young;

	holding.held_since_ms = NOW_MS - 7 * DAY_MS + 1;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_WAIT);
	holding.held_since_ms = NOW_MS - 7 * DAY_MS;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_REFUSE);
	holding.above_half = true;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_REFUSE);
	/* It says that it was held from a time in the future on. */
	holding.held_since_ms = UINT64_MAX;
	ASSERT_EQ(relay_hold(&holding), RELAY_HOLD_PARK);
}

/* --- memory --------------------------------------------------------------------------- */

TEST(records_give_way_first_then_new_ones_are_paused_and_then_those_of_buckets)
{
	struct relay_pressure pressure = { .cap = 800 };

	relay_pressure_add(&pressure, 599);
	ASSERT(!pressure.give_way);
	relay_pressure_add(&pressure, 1);
	ASSERT(pressure.give_way);
	relay_pressure_add(&pressure, 99);
	ASSERT(!pressure.paused[RELAY_INPUT]);
	relay_pressure_add(&pressure, 1);
	ASSERT(pressure.paused[RELAY_INPUT]);
	relay_pressure_add(&pressure, 99);
	ASSERT(!pressure.paused[RELAY_BUCKET]);
	relay_pressure_add(&pressure, 1);
	ASSERT(pressure.paused[RELAY_BUCKET]);
	relay_pressure_sub(&pressure, 100);
	ASSERT(pressure.paused[RELAY_BUCKET]);
	relay_pressure_sub(&pressure, 1);
	ASSERT(!pressure.paused[RELAY_BUCKET]);
	relay_pressure_sub(&pressure, 99);
	ASSERT(pressure.paused[RELAY_INPUT]);
	relay_pressure_sub(&pressure, 1);
	ASSERT(!pressure.paused[RELAY_INPUT]);
	relay_pressure_sub(&pressure, 99);
	ASSERT(pressure.give_way);
	relay_pressure_sub(&pressure, 1);
	ASSERT(!pressure.give_way);
}

/* --- the watermark -------------------------------------------------------------------- */

#define OFFSETS	5000

/* The simplest watermark: an array that is searched from the beginning. */
static struct {
	bool pending[OFFSETS];
	int64_t next;
} plain;

static int64_t plain_low(void)
{
	int64_t low;

	for (low = 0; low < plain.next && !plain.pending[low]; low++)
		;
	return low;
}

static void done_one(struct watermark *mark)
{
	int64_t offset = random() % (mark->next ?: 1);

	ASSERT_EQ(watermark_done(mark, offset), plain.pending[offset]);
	plain.pending[offset] = false;
}

TEST(the_watermark_is_the_lowest_offset_that_is_not_done)
{
	struct watermark mark;
	int i;

	watermark_init(&mark, 0);
	for (i = 0; i < 200000; i++) {
		/* Some offsets are skipped. */
		int64_t offset = mark.next + (random() % 8 ? 0 : random() % 50);

		if (random() % 20 == 0 && offset < OFFSETS) {
			ASSERT_EQ(watermark_read(&mark, offset), 0);
			plain.pending[offset] = true;
			plain.next = offset + 1;
		} else {
			done_one(&mark);
		}
		ASSERT_EQ(mark.low, plain_low());
	}
	while (mark.pending)
		done_one(&mark);
	ASSERT_EQ(mark.low, mark.next);
	ASSERT_GT(mark.next, OFFSETS - 100);
	watermark_free(&mark);
}

TEST(an_offset_is_read_once_and_done_once)
{
	struct watermark mark;

	watermark_init(&mark, 100);
	ASSERT_EQ(watermark_read(&mark, 99), -EEXIST);
	ASSERT_EQ(watermark_read(&mark, 100), 0);
	ASSERT_EQ(watermark_read(&mark, 100), -EEXIST);
	ASSERT_EQ(watermark_read(&mark, 101), 0);
	ASSERT(watermark_done(&mark, 101));
	ASSERT(!watermark_done(&mark, 101));
	ASSERT(!watermark_done(&mark, 99));
	ASSERT(!watermark_done(&mark, 102));
	ASSERT_EQ(mark.low, 100);
	ASSERT_EQ(watermark_done_above(&mark), 1);
	ASSERT(watermark_done(&mark, 100));
	ASSERT_EQ(mark.low, 102);
	watermark_free(&mark);
}

TEST(the_window_of_a_watermark_is_bounded)
{
	int64_t first = 123456789;
	struct watermark mark;

	watermark_init(&mark, 0);
	/* Offsets before the first pending one take no memory. */
	ASSERT_EQ(watermark_read(&mark, first), 0);
	ASSERT_EQ(mark.low, first);
	ASSERT_LE(mark.size, 1024);
	ASSERT_EQ(watermark_read(&mark, first + WATERMARK_SPAN_MAX), -ENOSPC);
	ASSERT_EQ(watermark_read(&mark, first + WATERMARK_SPAN_MAX - 1), 0);
	ASSERT_LE(watermark_bytes(&mark), 8 << 20);
	ASSERT(watermark_done(&mark, first));
	ASSERT_EQ(mark.low, first + (int64_t)WATERMARK_SPAN_MAX - 1);
	/* When nothing is pending, there is no long window. */
	ASSERT(watermark_done(&mark, mark.low));
	ASSERT_EQ(watermark_bytes(&mark), 0);
	ASSERT_EQ(mark.low, mark.next);
	ASSERT_EQ(watermark_read(&mark, mark.next), 0);
	watermark_free(&mark);
}

TEST(an_offset_that_was_done_may_be_undone)
{
	struct watermark mark;

	watermark_init(&mark, 100);
	ASSERT_EQ(watermark_undo(&mark, 99), 0);
	ASSERT_EQ(mark.low, 99);
	ASSERT_EQ(watermark_undo(&mark, 100), -EINVAL);
	ASSERT_EQ(watermark_undo(&mark, 99), -EEXIST);
	ASSERT(watermark_done(&mark, 99));
	ASSERT_EQ(mark.low, 100);
	ASSERT_EQ(watermark_read(&mark, 100), 0);
	ASSERT_EQ(watermark_read(&mark, 101), 0);
	ASSERT(watermark_done(&mark, 101));
	ASSERT_EQ(watermark_undo(&mark, 101), 0);
	ASSERT_EQ(mark.pending, 2);
	ASSERT(watermark_done(&mark, 101));
	ASSERT(watermark_done(&mark, 100));
	ASSERT_EQ(mark.low, 102);
	ASSERT_EQ(watermark_undo(&mark, 100), 0);
	ASSERT_EQ(mark.low, 100);
	ASSERT(!watermark_is_pending(&mark, 101));
	ASSERT_EQ(watermark_done_above(&mark), 1);
	watermark_free(&mark);
}

TEST(an_undone_offset_may_make_the_window_longer_than_its_ring)
{
	int64_t last = 100000;
	struct watermark mark;
	int64_t offset;

	watermark_init(&mark, 0);
	ASSERT_EQ(watermark_read(&mark, 0), 0);
	ASSERT(watermark_done(&mark, 0));
	ASSERT_EQ(watermark_read(&mark, last), 0);
	ASSERT_LE(mark.size, 1024);
	ASSERT_EQ(watermark_undo(&mark, 0), 0);
	ASSERT_GT(mark.size, last);
	ASSERT_EQ(mark.pending, 2);
	for (offset = 1; offset < last; offset++)
		ASSERT(!watermark_is_pending(&mark, offset));
	ASSERT(watermark_done(&mark, last));
	ASSERT(watermark_done(&mark, 0));
	ASSERT_EQ(mark.low, last + 1);
	ASSERT_EQ(watermark_read(&mark, (int64_t)WATERMARK_SPAN_MAX), 0);
	ASSERT_EQ(watermark_undo(&mark, 0), -ENOSPC);
	ASSERT_EQ(watermark_undo(&mark, 1), 0);
	watermark_free(&mark);
}

/* Which of 64 offsets are done, one at a time. */
static uint64_t plain_word(int64_t offset)
{
	uint64_t word = 0;
	int i;

	for (i = 0; i < 64; i++)
		if (offset + i < plain.next && !plain.pending[offset + i])
			word |= 1ULL << i;
	return word;
}

static void undo_one(struct watermark *mark)
{
	int64_t offset = random() % (mark->next + 2);
	int expected = offset >= mark->next ? -EINVAL : plain.pending[offset] ? -EEXIST : 0;

	ASSERT_EQ(watermark_undo(mark, offset), expected);
	if (!expected)
		plain.pending[offset] = true;
}

TEST(offsets_that_are_done_and_undone_are_as_in_a_plain_array)
{
	struct watermark mark;
	int64_t offset;
	int i;

	watermark_init(&mark, 0);
	for (i = 0; i < 100000; i++) {
		offset = mark.next + (random() % 8 ? 0 : random() % 50);
		if (random() % 20 == 0 && offset < OFFSETS) {
			ASSERT_EQ(watermark_read(&mark, offset), 0);
			plain.pending[offset] = true;
			plain.next = offset + 1;
		} else if (random() % 8 == 0) {
			undo_one(&mark);
		} else if (mark.pending && random() % 2) {
			offset = watermark_find(&mark, mark.low, true);
			ASSERT(watermark_done(&mark, offset));
			plain.pending[offset] = false;
		} else {
			done_one(&mark);
		}
		ASSERT_EQ(mark.low, plain_low());
		offset = random() % (OFFSETS - 64) / 64 * 64;
		ASSERT_EQ(watermark_done_word(&mark, offset), plain_word(offset));
	}
	watermark_free(&mark);
}

TEST(no_offset_is_done_from_the_next_one_on)
{
	struct watermark mark;

	watermark_init(&mark, 70);
	ASSERT_EQ(watermark_done_word(&mark, 0), UINT64_MAX);
	ASSERT_EQ(watermark_done_word(&mark, 64), 0x3f);
	ASSERT_EQ(watermark_done_word(&mark, 128), 0);
	ASSERT_EQ(watermark_read(&mark, 71), 0);
	ASSERT_EQ(watermark_done_word(&mark, 64), 0x7f);
	ASSERT(watermark_done(&mark, 71));
	ASSERT_EQ(watermark_done_word(&mark, 64), 0xff);
	watermark_free(&mark);
	watermark_init(&mark, 0);
	ASSERT_EQ(watermark_done_word(&mark, 0), 0);
}

/* --- done offsets above it, as text ---------------------------------------------------- */

/* Read offsets from @low on, of which @permille are done; the first is not. */
static void make_mark(struct watermark *mark, int64_t low, int nr, int permille)
{
	int64_t offset;

	watermark_init(mark, low);
	for (offset = low; offset < low + nr; offset++)
		ASSERT_EQ(watermark_read(mark, offset), 0);
	for (offset = low + 1; offset < low + nr; offset++)
		if (random() % 1000 < permille)
			watermark_done(mark, offset);
}

/* Write a text, as of now and without one of an earlier owner. */
static size_t write_runs(const struct watermark *mark, char text[RUNS_TEXT_MAX],
			 uint64_t *left_out)
{
	struct runs none;

	runs_begin(&none, NULL, mark->low);
	return runs_write(mark, &none, NOW_MS, text, left_out);
}

/* All offsets of the text are done; those that are done and not in it are after its end. */
static int64_t compare(const struct watermark *mark, const char *text)
{
	int64_t offset, wrong = 0;
	struct runs runs;

	ASSERT(runs_begin(&runs, text, mark->low));
	for (offset = mark->low; offset < mark->next + 100; offset++) {
		bool done = offset < mark->next && !watermark_is_pending(mark, offset);
		bool said = runs_has(&runs, offset, NOW_MS);

		ASSERT(done || !said);
		wrong += done && !said;
		if (wrong)
			ASSERT(!said && runs_over(&runs, offset));
	}
	return wrong;
}

TEST(offsets_done_above_the_watermark_are_written_as_text)
{
	static const int permilles[] = { 1, 20, 500, 980, 1000 };
	char text[RUNS_TEXT_MAX];
	struct watermark mark;
	uint64_t left_out;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(permilles); i++) {
		make_mark(&mark, 1234567890123 + i, 3000, permilles[i]);
		ASSERT_GT(write_runs(&mark, text, &left_out), 0);
		ASSERT_EQ(compare(&mark, text), 0);
		ASSERT_EQ(left_out, 0);
		watermark_free(&mark);
	}
}

TEST(a_text_that_is_too_long_has_the_lowest_offsets_and_counts_those_left_out)
{
	char text[RUNS_TEXT_MAX];
	struct watermark mark;
	uint64_t left_out;
	int64_t missing;

	make_mark(&mark, 77, 200000, 500);
	ASSERT_LT(write_runs(&mark, text, &left_out), RUNS_TEXT_MAX);
	ASSERT_GT(strlen(text), RUNS_TEXT_MAX - 40);
	missing = compare(&mark, text);
	ASSERT_GT(missing, 90000);
	ASSERT_LT(missing, 99000);
	ASSERT_EQ(left_out, missing);
	watermark_free(&mark);
}

TEST(long_runs_take_few_letters)
{
	char text[RUNS_TEXT_MAX];
	struct watermark mark;
	uint64_t left_out;

	make_mark(&mark, 5, 1000000, 1000);
	ASSERT_EQ(write_runs(&mark, text, &left_out), strlen("2:5:1700000000000:Bxxxx"));
	ASSERT_EQ(compare(&mark, text), 0);
	ASSERT_EQ(left_out, 0);
	watermark_free(&mark);
}

TEST(if_nothing_is_done_above_there_is_no_text)
{
	char text[RUNS_TEXT_MAX];
	struct watermark mark;
	struct runs runs;
	uint64_t left_out;

	make_mark(&mark, 5, 100, 0);
	ASSERT_EQ(write_runs(&mark, text, &left_out), 0);
	ASSERT(!*text);
	ASSERT(!runs_begin(&runs, text, 5));
	ASSERT(!runs_has(&runs, 6, NOW_MS));
	watermark_free(&mark);
	watermark_init(&mark, 9);
	ASSERT_EQ(write_runs(&mark, text, &left_out), 0);
	ASSERT_EQ(left_out, 0);
}

/* "T" stands for the time. */
static void with_time(char text[64], const char *from)
{
	const char *t = strchr(from, 'T');

	if (t)
		snprintf(text, 64, "%.*s%llu%s", (int)(t - from), from, NOW_MS, t + 1);
	else
		snprintf(text, 64, "%s", from);
}

TEST(a_text_that_is_not_complete_is_ignored)
{
	static const char * const texts[] = {
		"", "2:", "2:5", "2:5:", "2:5:BB", "2:5:T", "2:5:T:B", "2:5:T:BB*", "2:5:T:B*B",
		"2:6:T:BB", "1:5:BB", "3:5:T:BB", "2:5:T:BBB", "2:5:T:BAAA", "2:5:x:BB",
		"2:5:T:ggggggggggB", "2:5:T:BBg", "2:05:T:BB", " 2:5:T:BB", "2:5:T:BB ",
		"2:-5:T:BB", "hello",
	};
	char text[64];
	struct runs runs;
	size_t i;

	with_time(text, "2:5:T:BB");
	ASSERT(runs_begin(&runs, text, 5));
	ASSERT(!runs_has(&runs, 5, NOW_MS));
	ASSERT(runs_has(&runs, 6, NOW_MS));
	ASSERT(!runs_has(&runs, 7, NOW_MS));
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		test_about("\"%s\"", texts[i]);
		with_time(text, texts[i]);
		ASSERT(!runs_begin(&runs, text, 5));
		ASSERT(!runs_has(&runs, 6, NOW_MS));
		ASSERT(runs_over(&runs, 5));
	}
	ASSERT(!runs_begin(&runs, NULL, 5));
}

/* Anybody who may write the offsets of the group can write that. */
TEST(a_text_whose_offsets_are_too_high_is_ignored)
{
	/* Of offsets from INT64_MAX - 2 on. */
	ASSERT(runs_begin(&(struct runs){ 0 }, "2:9223372036854775805:1:BB",
			  9223372036854775805));
	ASSERT(!runs_begin(&(struct runs){ 0 }, "2:9223372036854775805:1:BC",
			   9223372036854775805));
	ASSERT(!runs_begin(&(struct runs){ 0 }, "2:9223372036854775805:1:DB",
			   9223372036854775805));
}

TEST(a_record_that_is_younger_than_the_text_is_not_done)
{
	char text[RUNS_TEXT_MAX];
	struct watermark mark;
	uint64_t left_out;
	struct runs runs;

	make_mark(&mark, 5, 3, 1000);
	write_runs(&mark, text, &left_out);
	ASSERT(runs_begin(&runs, text, 5));
	ASSERT(runs_has(&runs, 6, -1));
	ASSERT(runs_has(&runs, 6, NOW_MS));
	ASSERT(!runs_has(&runs, 7, NOW_MS + 1));
	watermark_free(&mark);
}

/* --- one owner after the other --------------------------------------------------------- */

#define LOG	400

/* The record that Kafka has at an offset, and whether it was done. */
static struct {
	bool gap;
	bool done;
} log_of_records[LOG];

/*
 * An owner reads some of the log from the committed offset on, does some of it, and commits at
 * @now_ms. Returns the committed offset. Checks that no record is skipped that is not done, and
 * that no record is done twice.
 */
static int64_t own(int64_t low, char text[RUNS_TEXT_MAX], uint64_t now_ms)
{
	int64_t end = low + random() % (LOG - low + 1), offset;
	struct watermark mark;
	uint64_t left_out;
	struct runs before;
	char old[RUNS_TEXT_MAX];

	strcpy(old, text);
	runs_begin(&before, old, low);
	watermark_init(&mark, low);
	for (offset = low; offset < end; offset++) {
		if (log_of_records[offset].gap)
			continue;
		ASSERT_EQ(runs_has(&before, offset, NOW_MS), log_of_records[offset].done);
		ASSERT_EQ(watermark_read(&mark, offset), 0);
		if (log_of_records[offset].done || random() % 3 == 0) {
			log_of_records[offset].done = true;
			watermark_done(&mark, offset);
		}
	}
	runs_write(&mark, &before, now_ms, text, &left_out);
	ASSERT_EQ(left_out, 0);
	low = mark.low;
	watermark_free(&mark);
	return low;
}

TEST(records_that_an_owner_has_done_are_skipped_by_all_later_owners)
{
	uint64_t now_ms = NOW_MS;
	int round;

	for (round = 0; round < 300; round++) {
		char text[RUNS_TEXT_MAX] = "";
		int64_t low = 0, offset;
		int owners = 0;

		for (offset = 0; offset < LOG; offset++) {
			log_of_records[offset].gap = random() % 8 == 0;
			log_of_records[offset].done = false;
		}
		/* The last offset of the log is not a gap: otherwise the end would be unknown. */
		log_of_records[LOG - 1].gap = false;
		while (low < LOG && owners++ < 1000)
			low = own(low, text, ++now_ms);
		ASSERT_EQ(low, LOG);
	}
}

TEST(the_part_of_an_earlier_owner_keeps_the_time_of_its_text)
{
	char text[RUNS_TEXT_MAX], next[RUNS_TEXT_MAX];
	struct watermark mark;
	struct runs before, runs;
	uint64_t left_out;

	make_mark(&mark, 5, 10, 1000);
	write_runs(&mark, text, &left_out);
	watermark_free(&mark);
	ASSERT(runs_begin(&before, text, 5));
	make_mark(&mark, 5, 5, 0);
	ASSERT_GT(runs_write(&mark, &before, NOW_MS + 10, next, &left_out), 0);
	ASSERT(runs_begin(&runs, next, 5));
	ASSERT(runs_has(&runs, 10, NOW_MS));
	ASSERT(!runs_has(&runs, 11, NOW_MS + 1));
	watermark_free(&mark);
	/* When all of the older text was read, the new text has the time of now. */
	make_mark(&mark, 5, 10, 1000);
	ASSERT_GT(runs_write(&mark, &before, NOW_MS + 10, next, &left_out), 0);
	ASSERT(runs_begin(&runs, next, 5));
	ASSERT(runs_has(&runs, 6, NOW_MS + 10));
	watermark_free(&mark);
}
