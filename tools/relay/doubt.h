/* SPDX-License-Identifier: GPL-2.0 */
/* Whether the partitions are still ours, after the process stood still. */
#ifndef RELAY_DOUBT_H
#define RELAY_DOUBT_H

#include "relay/state.h"

/* Call this once, when the consumer exists. */
void relay_doubt_init(struct relay *relay);

/*
 * Call this when a turn of the loop begins, before waiting records are sent: it notices that
 * the process stood still, and that the group has answered since.
 */
void relay_doubt_check(struct relay *relay);

/* Has the process stood still since the last turn began? */
bool relay_doubt_stood_still(const struct relay *relay);

/* The group has answered. */
void relay_doubt_answer(struct relay *relay, rd_kafka_resp_err_t error);

/* The partitions are revoked: nothing is in doubt any more. */
void relay_doubt_end(struct relay *relay);

#endif /* RELAY_DOUBT_H */
