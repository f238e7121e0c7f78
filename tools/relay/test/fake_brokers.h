/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fake of brokers, as far as the relay's topics go: their partitions, replicas and settings. A
 * program that is linked with fake_brokers.o gets it in place of query.c, create.c, describe.c
 * and some functions of librdkafka.
 */
#ifndef RELAY_TEST_FAKE_BROKERS_H
#define RELAY_TEST_FAKE_BROKERS_H

#include "relay/topics.h"

/**
 * struct fake_topic - a topic
 * @partitions: their number.
 * @known: how many of these the broker knows that is asked.
 */
struct fake_topic {
	char name[RELAY_TOPIC_MAX + 1];
	int partitions;
	int known;
	int replicas;
};

/**
 * struct fake_brokers - the state of the fake
 * @relay: the relay that is tested.
 * @topics: the topics that exist.
 * @nr: their number.
 * @nr_brokers: the number of brokers that are up.
 * @silent: nothing is answered, for now.
 * @down: the answer is that there is none.
 * @refuse: what is created or added is refused.
 * @slow: how often brokers are asked until they know what was created or added.
 * @wrong: settings would lose records.
 * @nr_counts: how often a single topic was asked for.
 * @nr_lists: how often all topics were asked for.
 * @nr_broker_queries: how often a single broker was asked.
 * @nr_creates: how often topics were created.
 * @nr_adds: how often partitions were added.
 * @nr_describes: how often settings were asked for.
 * @answer: an answer waits in the queue.
 */
struct fake_brokers {
	struct relay *relay;
	struct fake_topic topics[2 * RELAY_TOPICS_MAX];
	unsigned int nr;
	int nr_brokers;
	bool silent;
	bool down;
	bool refuse;
	unsigned int slow;
	bool wrong;
	unsigned int nr_counts;
	unsigned int nr_lists;
	unsigned int nr_broker_queries;
	unsigned int nr_creates;
	unsigned int nr_adds;
	unsigned int nr_describes;
	bool answer;
};

extern struct fake_brokers brokers;

/* A topic; NULL: there is none. */
struct fake_topic *fake_topic(const char *name);

/* Make a topic, or change it. */
void fake_make(const char *name, int partitions, int replicas);

#endif /* RELAY_TEST_FAKE_BROKERS_H */
