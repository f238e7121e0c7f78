// SPDX-License-Identifier: GPL-2.0
/*
 * Asks brokers for the partitions of topics, in a thread. The thread owns the query until it
 * sets @over; then it touches it no more, and the loop owns it again.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "relay/query.h"

/* The relay's end waits for this at most. */
#define TIMEOUT_MS	5000

/**
 * struct relay_query - a question in a thread
 * @thread: the thread.
 * @client: a client of librdkafka, which any thread may use.
 * @topic: the topic; NULL: all topics.
 * @metadata: the answer; NULL: none.
 * @over: the thread has done its work.
 */
struct relay_query {
	pthread_t thread;
	rd_kafka_t *client;
	char *topic;
	const struct rd_kafka_metadata *metadata;
	atomic_bool over;
};

static void *ask(void *argument)
{
	struct relay_query *query = argument;
	rd_kafka_topic_t *topic = NULL;
	rd_kafka_resp_err_t error;

	if (query->topic)
		topic = rd_kafka_topic_new(query->client, query->topic, NULL);
	error = rd_kafka_metadata(query->client, !topic, topic, &query->metadata, TIMEOUT_MS);
	if (error) {
		query->metadata = NULL;
		log_say(LOG_DEBUG, "cannot ask for partitions: %s", rd_kafka_err2str(error));
	}
	if (topic)
		rd_kafka_topic_destroy(topic);
	atomic_store(&query->over, true);
	return NULL;
}

static void free_query(struct relay_query *query)
{
	free(query->topic);
	free(query);
}

struct relay_query *relay_query_start(rd_kafka_t *client, const char *topic)
{
	struct relay_query *query = calloc(1, sizeof(*query));

	if (!query)
		return NULL;
	query->client = client;
	query->topic = topic ? strdup(topic) : NULL;
	if ((!topic || query->topic) && !pthread_create(&query->thread, NULL, ask, query))
		return query;
	free_query(query);
	return NULL;
}

bool relay_query_is_over(const struct relay_query *query)
{
	return atomic_load(&query->over);
}

const struct rd_kafka_metadata *relay_query_end(struct relay_query *query)
{
	const struct rd_kafka_metadata *metadata;

	pthread_join(query->thread, NULL);
	metadata = query->metadata;
	free_query(query);
	return metadata;
}
