// SPDX-License-Identifier: GPL-2.0
/* Words, numbers and durations of a line; the two languages of durations; and policies. */
#include <string.h>

#include "common/number.h"
#include "common/retry_policy.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "test/device/harness.h"

static struct text text_of(const char *string)
{
	return (struct text){ string, string + strlen(string) };
}

TEST(words_are_between_spaces)
{
	struct text text = text_of("  one two   "), word;

	ASSERT(text_word(&text, &word));
	ASSERT(text_is(&word, "one"));
	ASSERT(!text_is(&word, "on"));
	ASSERT(!text_is(&word, "one "));
	ASSERT(text_word(&text, &word));
	ASSERT(text_is(&word, "two"));
	ASSERT(!text_word(&text, &word));
}

/* The text ends where its end is, and not at a NUL. */
TEST(a_text_ends_where_its_end_is)
{
	static const char bytes[] = "12345";
	struct text text = { bytes, bytes + 3 };
	uint64_t value;

	ASSERT(text_digits(&text, UINT64_MAX, &value));
	ASSERT_EQ(value, 123);
	ASSERT(text_empty(&text));
}

TEST(a_number_is_digits_up_to_its_limit)
{
	static const struct {
		const char *string;
		uint64_t max;
		bool good;
	} numbers[] = {
		{ "0", 0, true }, { "1", 0, false }, { "007", 7, true }, { "8", 7, false },
		{ "18446744073709551615", UINT64_MAX, true },
		{ "18446744073709551616", UINT64_MAX, false },
		{ "99999999999999999999", UINT64_MAX, false },
		{ "", 9, false }, { "-1", 9, false }, { "+1", 9, false }, { "1x", 9, false },
		{ "0x1", 9, false }, { "1.0", 9, false },
	};
	uint64_t value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		struct text text = text_of(numbers[i].string);

		test_about("\"%s\"", numbers[i].string);
		ASSERT_EQ(text_number(&text, numbers[i].max, &value), numbers[i].good);
	}
}

TEST(a_fraction_is_rounded_down)
{
	static const struct {
		const char *string;
		uint64_t whole, value;
	} fractions[] = {
		{ "", 10, 0 }, { "x", 10, 0 }, { ".5", 10, 5 }, { ".59", 10, 5 },
		{ ".999999999999", 1000, 999 },
		/* Each digit of this is worth less than one part, and all of them more. */
		{ ".000000000012", 86400 * NSEC_PER_SEC, 1036 },
		{ ".00000000000999999999", 60 * NSEC_PER_SEC, 0 },
		{ ".0000000000199999999", 60 * NSEC_PER_SEC, 1 },
	};
	uint64_t value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fractions); i++) {
		struct text text = text_of(fractions[i].string);

		test_about("\"%s\"", fractions[i].string);
		ASSERT(text_fraction(&text, fractions[i].whole, &value));
		ASSERT_EQ(value, fractions[i].value);
	}
}

TEST(a_dot_without_digits_is_not_a_fraction)
{
	struct text text = text_of(".");
	uint64_t value;

	ASSERT(!text_fraction(&text, 10, &value));
	text = text_of(".x");
	ASSERT(!text_fraction(&text, 10, &value));
}

/* UINT64_MAX: refused. */
static const struct {
	const char *string;
	uint64_t queue_ns;
	uint64_t twheelctl_ns;
} durations[] = {
	/* Both have units and fractions. */
	{ "1us", 1000, 1000 }, { "250ms", 250000000, 250000000 },
	{ "1.5s", 1500000000, 1500000000 },
	{ "2m", 120000000000, 120000000000 }, { "0.5h", 1800000000000, 1800000000000 },
	{ "1d", 86400000000000, 86400000000000 }, { "0s", 0, 0 },
	/* A bare number is seconds in the queue, and nanoseconds are of twheelctl. */
	{ "5", 5000000000, UINT64_MAX }, { "1.5", 1500000000, UINT64_MAX },
	{ "5ns", UINT64_MAX, 5 },
	/* Each has a limit of its own. */
	{ "4294967295s", 4294967295000000000, 4294967295000000000 },
	{ "4294967296s", UINT64_MAX, 4294967296000000000 },
	{ "4294967295.000000001s", UINT64_MAX, 4294967295000000001 },
	{ "9223372036.854775807s", UINT64_MAX, INT64_MAX },
	{ "9223372036.854775808s", UINT64_MAX, UINT64_MAX },
	/* Neither takes these. */
	{ "", UINT64_MAX, UINT64_MAX }, { "s", UINT64_MAX, UINT64_MAX },
	{ ".5s", UINT64_MAX, UINT64_MAX }, { "1.s", UINT64_MAX, UINT64_MAX },
	{ "1.2.3s", UINT64_MAX, UINT64_MAX }, { "-1s", UINT64_MAX, UINT64_MAX },
	{ "1 s", UINT64_MAX, UINT64_MAX }, { " 1s", UINT64_MAX, UINT64_MAX },
	{ "1s ", UINT64_MAX, UINT64_MAX }, { "1y", UINT64_MAX, UINT64_MAX },
	{ "1S", UINT64_MAX, UINT64_MAX }, { "1ss", UINT64_MAX, UINT64_MAX },
	{ "99999999999999999999999s", UINT64_MAX, UINT64_MAX },
};

TEST(durations_of_the_queue_and_of_twheelctl_differ_only_where_they_should)
{
	uint64_t queue_ns;
	__u64 twheelctl_ns;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(durations); i++) {
		test_about("\"%s\"", durations[i].string);
		if (!text_duration(durations[i].string, &queue_ns))
			queue_ns = UINT64_MAX;
		if (duration_parse(durations[i].string, &twheelctl_ns))
			twheelctl_ns = UINT64_MAX;
		ASSERT_EQ(queue_ns, durations[i].queue_ns);
		ASSERT_EQ(twheelctl_ns, durations[i].twheelctl_ns);
	}
}

/* --- policies --------------------------------------------------------------------------- */

TEST(a_policy_is_five_words)
{
	struct text text = text_of("25 1s 1.25 1h 10 rest");
	struct retry_policy policy;

	ASSERT(retry_policy_parse(&policy, &text));
	ASSERT_EQ(policy.max_attempts, 25);
	ASSERT_EQ(policy.base_ns, NSEC_PER_SEC);
	ASSERT(policy.factor == 1.25);
	ASSERT_EQ(policy.cap_ns, 3600 * NSEC_PER_SEC);
	ASSERT_EQ(policy.jitter_percent, 10);
	/* The rest is left. */
	ASSERT_EQ(text.end - text.start, strlen(" rest"));
}

TEST(a_bad_policy_is_refused)
{
	static const char *const policies[] = {
		"", "25", "25 1s 2 1h", "0 1s 2 1h 10", "25 x 2 1h 10", "25 1s 0.9 1h 10",
		"25 1s 1000.1 1h 10", "25 1s 2x 1h 10", "25 1s 2 y 10", "25 1s 2 1h 101",
		"25 1s 2 1h -1", "4294967296 1s 2 1h 10",
	};
	struct retry_policy policy;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		struct text text = text_of(policies[i]);

		test_about("\"%s\"", policies[i]);
		ASSERT(!retry_policy_parse(&policy, &text));
	}
}

TEST(delays_grow_by_the_factor_up_to_the_cap)
{
	const struct retry_policy policy = {
		.max_attempts = 10, .base_ns = 100, .factor = 3, .cap_ns = 1000,
	};

	ASSERT_EQ(retry_policy_delay_ns(&policy, 1, 0), 100);
	ASSERT_EQ(retry_policy_delay_ns(&policy, 2, 0), 300);
	ASSERT_EQ(retry_policy_delay_ns(&policy, 3, 0), 900);
	ASSERT_EQ(retry_policy_delay_ns(&policy, 4, 0), 1000);
	ASSERT_EQ(retry_policy_delay_ns(&policy, UINT32_MAX, 0), 1000);
}

TEST(jitter_is_at_most_its_share)
{
	struct retry_policy policy = {
		.max_attempts = 10, .base_ns = 1000, .factor = 1, .cap_ns = 1000,
		.jitter_percent = 10,
	};

	ASSERT_EQ(retry_policy_delay_ns(&policy, 1, 1), 1100);
	ASSERT_EQ(retry_policy_delay_ns(&policy, 1, -1), 900);
	policy.jitter_percent = 100;
	ASSERT_EQ(retry_policy_delay_ns(&policy, 1, -1), 0);
	policy.base_ns = 0;
	ASSERT_EQ(retry_policy_delay_ns(&policy, 5, 1), 0);
}
