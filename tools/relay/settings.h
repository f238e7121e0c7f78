/* SPDX-License-Identifier: GPL-2.0 */
/* Checks the relay's topics while it runs: their partitions, replicas and settings. */
#ifndef RELAY_SETTINGS_H
#define RELAY_SETTINGS_H

#include "relay/topics.h"

/*
 * Begin with the settings of @topics, which were found at the start: if these would lose
 * records, relay_end() is called. Returns an exit status.
 */
int relay_settings_start(struct relay *relay, const struct relay_topics *topics);

/* Go on: at each tick of the loop. Does not block. */
void relay_settings_check(struct relay *relay);

/* Do not wait for answers any more; before the consumer is closed. */
void relay_settings_end(struct relay *relay);

#endif /* RELAY_SETTINGS_H */
