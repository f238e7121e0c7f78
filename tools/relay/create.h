/* SPDX-License-Identifier: GPL-2.0 */
/* Creates topics and adds partitions. */
#ifndef RELAY_CREATE_H
#define RELAY_CREATE_H

#include "relay/topics.h"

/* Create the topics that are missing. Returns whether @queue will get an answer. */
bool relay_create_topics(struct relay *relay, const struct relay_topics *topics,
			 rd_kafka_queue_t *queue);

/*
 * Add the partitions that are missing, and those of --partitions; never to the topic of delays,
 * because that changes the partitions of keys. Returns whether @queue will get an answer.
 */
bool relay_create_partitions(struct relay *relay, const struct relay_topics *topics,
			     rd_kafka_queue_t *queue);

/* Log the errors in an answer, and free it. Returns whether there were none. */
bool relay_create_answered(rd_kafka_event_t *event);

#endif /* RELAY_CREATE_H */
