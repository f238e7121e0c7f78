/* SPDX-License-Identifier: GPL-2.0 */
/* Retry policies: the delay of each retry. */
#ifndef COMMON_RETRY_POLICY_H
#define COMMON_RETRY_POLICY_H

#include <stdint.h>

#include "common/text.h"

/* The longest name of a tube for dead jobs. */
#define RETRY_DEAD_MAX	200

/**
 * struct retry_policy - when a failed attempt is retried
 * @max_attempts: attempts in all; 0: no policy was set.
 * @jitter_percent: a delay is this much longer or shorter at most.
 * @base_ns: the delay of the first retry.
 * @cap_ns: the longest delay, without jitter.
 * @factor: each delay is the one before times this.
 * @dead: the tube for dead jobs; empty: the name of the tube and ".dead".
 */
struct retry_policy {
	uint32_t max_attempts;
	uint32_t jitter_percent;
	uint64_t base_ns;
	uint64_t cap_ns;
	double factor;
	char dead[RETRY_DEAD_MAX + 1];
};

/* The policy if none was set. */
extern const struct retry_policy retry_policy_default;

/*
 * The delay of the retry after @k failed attempts, from 1 on. @share, from -1 to 1, is the
 * part of the jitter to add.
 */
uint64_t retry_policy_delay_ns(const struct retry_policy *policy, uint32_t k, double share);

/* Are its numbers within the limits? Those of a text are. The name of @dead is not looked at. */
bool retry_policy_is_valid(const struct retry_policy *policy);

/*
 * Parse "MAX_ATTEMPTS BASE FACTOR CAP JITTER_PERCENT" from the front of a text. Returns false
 * if the text does not begin with that; @policy is undefined then.
 */
bool retry_policy_parse(struct retry_policy *policy, struct text *text);

#endif /* COMMON_RETRY_POLICY_H */
