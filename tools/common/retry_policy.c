// SPDX-License-Identifier: GPL-2.0
/* Retry policies. */
#include <math.h>

#include "common/retry_policy.h"
#include "common/time.h"

#define FACTOR_MAX	1000
#define JITTER_MAX	100

const struct retry_policy retry_policy_default = {
	.max_attempts = 25,
	.jitter_percent = 10,
	.base_ns = NSEC_PER_SEC,
	.cap_ns = 3600 * NSEC_PER_SEC,
	.factor = 2,
};

uint64_t retry_policy_delay_ns(const struct retry_policy *policy, uint32_t k, double share)
{
	double delay_ns = policy->base_ns * pow(policy->factor, k - 1.0);

	/* The power may be infinite, and its product with 0 is not a number. */
	if (!policy->base_ns)
		return 0;
	if (!(delay_ns < policy->cap_ns))
		delay_ns = policy->cap_ns;
	delay_ns += delay_ns * policy->jitter_percent / 100 * share;
	return delay_ns > 0 ? delay_ns : 0;
}

static bool next_factor(struct text *text, double *factor)
{
	const uint64_t parts = NSEC_PER_SEC;
	uint64_t whole, fraction;
	struct text word;

	if (!text_word(text, &word) || !text_digits(&word, FACTOR_MAX, &whole) ||
	    !text_fraction(&word, parts, &fraction) || !text_empty(&word))
		return false;
	*factor = (double)whole + (double)fraction / (double)parts;
	return true;
}

bool retry_policy_is_valid(const struct retry_policy *policy)
{
	return policy->max_attempts && policy->factor >= 1 && policy->factor <= FACTOR_MAX &&
		policy->base_ns <= TEXT_DURATION_MAX_NS &&
		policy->cap_ns <= TEXT_DURATION_MAX_NS && policy->jitter_percent <= JITTER_MAX;
}

bool retry_policy_parse(struct retry_policy *policy, struct text *text)
{
	return text_u32(text, &policy->max_attempts) &&
		text_next_duration(text, &policy->base_ns) &&
		next_factor(text, &policy->factor) &&
		text_next_duration(text, &policy->cap_ns) &&
		text_u32(text, &policy->jitter_percent) && retry_policy_is_valid(policy);
}
