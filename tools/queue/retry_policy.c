// SPDX-License-Identifier: GPL-2.0
/* How long a retry waits. */
#include <math.h>

#include "clock.h"
#include "retry_policy.h"

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

	/* The power may be infinite, and the product with 0 no number. */
	if (!policy->base_ns)
		return 0;
	if (!(delay_ns < policy->cap_ns))
		delay_ns = policy->cap_ns;
	delay_ns += delay_ns * policy->jitter_percent / 100 * share;
	return delay_ns > 0 ? delay_ns : 0;
}
