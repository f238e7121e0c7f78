/* SPDX-License-Identifier: GPL-2.0 */
/* How long a retry waits: the arithmetic of policies, which the queue and the relay share. */
#ifndef TWHEELQ_RETRY_POLICY_H
#define TWHEELQ_RETRY_POLICY_H

#include "record.h"

/* What holds where no policy was set. */
extern const struct retry_policy retry_policy_default;

/*
 * How long the retry after @k failed attempts waits, k from 1; @share, from -1 to 1, is how
 * much of the jitter is added.
 */
uint64_t retry_policy_delay_ns(const struct retry_policy *policy, uint32_t k, double share);

#endif /* TWHEELQ_RETRY_POLICY_H */
