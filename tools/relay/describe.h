/* SPDX-License-Identifier: GPL-2.0 */
/* Asks brokers for the settings of the relay's topics, and judges them. */
#ifndef RELAY_DESCRIBE_H
#define RELAY_DESCRIBE_H

#include "relay/topics.h"

/* Ask for the settings of the topics that exist. Returns whether @queue will get an answer. */
bool relay_describe(struct relay *relay, const struct relay_topics *topics,
		    rd_kafka_queue_t *queue);

/*
 * Log what is wrong with the settings in an answer, and free it. That settings cannot be read is
 * logged at debug level only if *@silent, which is set. Returns whether records would be lost.
 */
bool relay_described(const struct relay_topics *topics, rd_kafka_event_t *event, bool *silent);

#endif /* RELAY_DESCRIBE_H */
