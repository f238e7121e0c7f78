/* SPDX-License-Identifier: GPL-2.0 */
/* How many records were not read yet. */
#ifndef RELAY_LAG_H
#define RELAY_LAG_H

#include "relay/state.h"

/* Start the thread that asks brokers. Logs what is wrong; returns an exit status. */
int relay_lag_open(struct relay *relay);

/* End it. It may wait for an answer, for a limited time. */
void relay_lag_close(struct relay *relay);

/*
 * Take the last answer, and ask for the ends of paused partitions, unless that was done a moment
 * ago. It does not wait.
 */
void relay_lag_ask(struct relay *relay);

/* Records of a partition in Kafka that were not read; -1 if that is not known yet. */
int64_t relay_lag(struct relay *relay, const struct relay_partition *partition);

#endif /* RELAY_LAG_H */
