// SPDX-License-Identifier: GPL-2.0
/* A fake of brokers, as far as the relay's topics go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/test/fake_alarm.h"
#include "relay/create.h"
#include "relay/describe.h"
#include "relay/query.h"
#include "relay/test/fake_brokers.h"
#include "test/device/harness.h"

struct fake_brokers brokers;

struct relay_query {
	char topic[RELAY_TOPIC_MAX + 1];
};

struct fake_topic *fake_topic(const char *name)
{
	unsigned int i;

	for (i = 0; i < brokers.nr; i++)
		if (!strcmp(brokers.topics[i].name, name))
			return &brokers.topics[i];
	return NULL;
}

void fake_make(const char *name, int partitions, int replicas)
{
	struct fake_topic *topic = fake_topic(name);

	if (!topic) {
		ASSERT_LT(brokers.nr, 2 * RELAY_TOPICS_MAX);
		topic = &brokers.topics[brokers.nr++];
		snprintf(topic->name, sizeof(topic->name), "%s", name);
	}
	topic->partitions = partitions;
	topic->known = brokers.slow ? topic->known : partitions;
	topic->replicas = replicas;
}

/* --- metadata ------------------------------------------------------------------------- */

/* Another broker gets to know what was created. */
static void pass_time(void)
{
	unsigned int i;

	if (brokers.slow && --brokers.slow)
		return;
	for (i = 0; i < brokers.nr; i++)
		brokers.topics[i].known = brokers.topics[i].partitions;
}

/* The metadata of a topic, or of all; the caller frees it. */
static const struct rd_kafka_metadata *metadata_of(const char *name)
{
	struct rd_kafka_metadata *metadata = calloc(1, sizeof(*metadata));
	struct rd_kafka_metadata_topic *topic;
	unsigned int i;
	int k;

	pass_time();
	metadata->broker_cnt = brokers.nr_brokers;
	metadata->brokers = calloc(brokers.nr_brokers, sizeof(*metadata->brokers));
	metadata->topics = calloc(brokers.nr + 1, sizeof(*metadata->topics));
	for (i = 0; i < brokers.nr; i++) {
		if (!brokers.topics[i].known || (*name && strcmp(brokers.topics[i].name, name)))
			continue;
		topic = &metadata->topics[metadata->topic_cnt++];
		topic->topic = brokers.topics[i].name;
		topic->partition_cnt = brokers.topics[i].known;
		topic->partitions = calloc(topic->partition_cnt, sizeof(*topic->partitions));
		for (k = 0; k < topic->partition_cnt; k++)
			topic->partitions[k].replica_cnt = brokers.topics[i].replicas;
	}
	return metadata;
}

rd_kafka_resp_err_t rd_kafka_metadata(rd_kafka_t *client, int all_topics, rd_kafka_topic_t *topic,
				      const struct rd_kafka_metadata **metadata, int timeout_ms)
{
	(void)client;
	(void)topic;
	(void)timeout_ms;
	ASSERT(all_topics);
	if (brokers.down)
		return RD_KAFKA_RESP_ERR__TRANSPORT;
	*metadata = metadata_of("");
	return 0;
}

void rd_kafka_metadata_destroy(const struct rd_kafka_metadata *metadata)
{
	int i;

	for (i = 0; i < metadata->topic_cnt; i++)
		free(metadata->topics[i].partitions);
	free(metadata->topics);
	free(metadata->brokers);
	free((void *)metadata);
}

struct relay_query *relay_query_start(rd_kafka_t *client, const char *topic)
{
	struct relay_query *query = calloc(1, sizeof(*query));

	(void)client;
	snprintf(query->topic, sizeof(query->topic), "%s", topic ?: "");
	brokers.nr_counts += !!topic;
	brokers.nr_lists += !topic;
	return query;
}

bool relay_query_is_over(const struct relay_query *query)
{
	ASSERT(query);
	return !brokers.silent;
}

const struct rd_kafka_metadata *relay_query_end(struct relay_query *query)
{
	const struct rd_kafka_metadata *metadata = NULL;

	if (!brokers.down && !brokers.silent)
		metadata = metadata_of(query->topic);
	free(query);
	return metadata;
}

const struct rd_kafka_metadata *relay_query_broker(rd_kafka_t *client,
						   const struct rd_kafka_metadata_broker *broker,
						   int timeout_ms)
{
	(void)client;
	(void)broker;
	(void)timeout_ms;
	fake_advance(NSEC_PER_SEC);
	brokers.nr_broker_queries++;
	return brokers.down ? NULL : metadata_of("");
}

/* --- requests ------------------------------------------------------------------------- */

bool relay_create_topics(struct relay *relay, const struct relay_topics *topics,
			 rd_kafka_queue_t *queue)
{
	int partitions = topics->topic[0].partitions ?: 12;
	bool missing = false;
	unsigned int i;

	(void)queue;
	for (i = 0; i < topics->nr; i++) {
		if (topics->topic[i].partitions)
			continue;
		missing = true;
		if (!brokers.refuse)
			fake_make(topics->topic[i].name, partitions,
				  relay_topics_replicas(topics, &relay->options));
	}
	brokers.nr_creates += missing;
	brokers.answer |= missing;
	return missing;
}

bool relay_create_partitions(struct relay *relay, const struct relay_topics *topics,
			     rd_kafka_queue_t *queue)
{
	bool missing = false;
	unsigned int i;

	(void)relay;
	(void)queue;
	for (i = 0; i < topics->nr; i++) {
		const struct relay_topic *topic = &topics->topic[i];
		int least = relay_topics_least(topics, i);

		if (!topic->partitions || topic->partitions >= least)
			continue;
		missing = true;
		if (!brokers.refuse)
			fake_make(topic->name, least, topic->replicas);
	}
	brokers.nr_adds += missing;
	brokers.answer |= missing;
	return missing;
}

bool relay_describe(struct relay *relay, const struct relay_topics *topics,
		    rd_kafka_queue_t *queue)
{
	(void)relay;
	(void)topics;
	(void)queue;
	brokers.nr_describes++;
	brokers.answer = true;
	return true;
}

/* --- answers -------------------------------------------------------------------------- */

rd_kafka_queue_t *rd_kafka_queue_new(rd_kafka_t *client)
{
	(void)client;
	return (rd_kafka_queue_t *)&brokers;
}

void rd_kafka_queue_destroy(rd_kafka_queue_t *queue)
{
	(void)queue;
}

rd_kafka_event_t *rd_kafka_queue_poll(rd_kafka_queue_t *queue, int timeout_ms)
{
	(void)queue;
	(void)timeout_ms;
	if (brokers.silent || !brokers.answer)
		return NULL;
	brokers.answer = false;
	return (rd_kafka_event_t *)&brokers;
}

bool relay_create_answered(rd_kafka_event_t *event)
{
	ASSERT(event);
	return !brokers.refuse;
}

bool relay_described(const struct relay_topics *topics, rd_kafka_event_t *event, bool *silent)
{
	(void)topics;
	(void)silent;
	ASSERT(event);
	return brokers.wrong;
}
