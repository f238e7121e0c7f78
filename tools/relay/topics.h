/* SPDX-License-Identifier: GPL-2.0 */
/* The topics of the relay: which there are, and whether the brokers have them as they should be. */
#ifndef RELAY_TOPICS_H
#define RELAY_TOPICS_H

#include "relay/state.h"

/* Bits, for lists of them. */
enum relay_topic_role {
	RELAY_TOPIC_DELAYS = 1,
	RELAY_TOPIC_BUCKET = 2,
	RELAY_TOPIC_DONE = 4,
	RELAY_TOPIC_CANCELLED = 8,
	RELAY_TOPIC_INVALID = 16,
};

/* Delays, done, cancelled and invalid, and the buckets. */
#define RELAY_TOPICS_MAX	(RELAY_BUCKETS_MAX + 4)

/**
 * struct relay_topic - a topic that the relay needs
 * @name: its name.
 * @role: what it is for.
 * @least_ms: if it keeps records for less than this, some are deleted while they wait; 0: none
 *	waits there.
 * @partitions: the number of its partitions; 0: it does not exist.
 * @replicas: the number of replicas of the partition that has the fewest.
 */
struct relay_topic {
	char name[RELAY_TOPIC_MAX + 1];
	enum relay_topic_role role;
	uint64_t least_ms;
	int partitions;
	int replicas;
};

/**
 * struct relay_topics - all topics that the relay needs
 * @topic: the topics; the first is the topic of delays.
 * @nr: their number.
 * @nr_brokers: the number of brokers that are up.
 */
struct relay_topics {
	struct relay_topic topic[RELAY_TOPICS_MAX];
	unsigned int nr;
	int nr_brokers;
};

/* Set the names; no topic exists yet. */
void relay_topics_init(struct relay_topics *topics, const struct relay_options *options,
		       const struct relay_rules *rules);

/* Set what the brokers have. */
void relay_topics_fill(struct relay_topics *topics, const struct rd_kafka_metadata *metadata);

/* The least number of partitions that a topic needs. */
int relay_topics_least(const struct relay_topics *topics, unsigned int i);

/* Do all topics exist, with the partitions that they need? */
bool relay_topics_complete(const struct relay_topics *topics);

/* How many replicas a topic should have. */
int relay_topics_replicas(const struct relay_topics *topics, const struct relay_options *options);

/* Log what is wrong with their partitions and replicas. Returns whether a topic is missing. */
bool relay_topics_judge(const struct relay_topics *topics, const struct relay_options *options);

/*
 * Create the topics and partitions that are missing, if the options say so; log what is wrong;
 * and ask for the topics' settings (relay_settings_check()). Returns an exit status.
 */
int relay_topics_open(struct relay *relay);

#endif /* RELAY_TOPICS_H */
