// SPDX-License-Identifier: GPL-2.0
/*
 * Asks brokers for topics and partitions.
 *
 * The thread of a relay_query owns the query until it sets @over; then it touches it no more, and
 * the loop owns it again.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "relay/query.h"
#include "relay/state.h"

/* The relay's end waits for this at most. */
#define TIMEOUT_MS	5000

#define ADDRESS_SIZE	300
#define WHY_SIZE	512

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

/* --- one topic, one partition --------------------------------------------------------- */

/* Ask for a topic. Without an error, the caller destroys the metadata. */
static rd_kafka_resp_err_t ask_topic(rd_kafka_t *client, const char *name,
				     const struct rd_kafka_metadata **metadata)
{
	rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
	rd_kafka_resp_err_t error;

	if (!topic)
		return rd_kafka_last_error();
	error = rd_kafka_metadata(client, 0, topic, metadata, TIMEOUT_MS);
	rd_kafka_topic_destroy(topic);
	return error;
}

rd_kafka_resp_err_t relay_query_topic(rd_kafka_t *client, const char *name)
{
	const struct rd_kafka_metadata *metadata;
	rd_kafka_resp_err_t error = ask_topic(client, name, &metadata);

	if (error)
		return error;
	error = metadata->topic_cnt ? metadata->topics[0].err :
		RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	rd_kafka_metadata_destroy(metadata);
	return error;
}

/* Ask for one end of those without an error. */
static void ask_ends(rd_kafka_t *client, int32_t number, struct relay_ends *ends, size_t nr,
		     bool high)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(nr);
	rd_kafka_topic_partition_t *part;
	rd_kafka_resp_err_t error = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		if (!ends[i].error)
			rd_kafka_topic_partition_list_add(list, ends[i].topic, number)->offset =
				high ? RD_KAFKA_OFFSET_END : RD_KAFKA_OFFSET_BEGINNING;
	if (list->cnt)
		error = rd_kafka_offsets_for_times(client, list, TIMEOUT_MS);
	for (i = 0; i < nr; i++) {
		part = ends[i].error ? NULL :
			rd_kafka_topic_partition_list_find(list, ends[i].topic, number);
		if (!part)
			continue;
		ends[i].error = error ?: part->err;
		*(high ? &ends[i].high : &ends[i].low) = part->offset;
	}
	rd_kafka_topic_partition_list_destroy(list);
}

/*
 * librdkafka keeps the leaders of topics that this client has not written to for 15 minutes, even
 * if a broker says that it is not the leader, or does not answer.
 */
static void forget_leaders(rd_kafka_t *client, const struct relay_ends *ends, size_t nr)
{
	uint64_t end_ms = relay_boot_ms() + TIMEOUT_MS;
	size_t i;

	for (i = 0; i < nr && relay_boot_ms() < end_ms; i++)
		if (ends[i].error)
			relay_query_topic(client, ends[i].topic);
}

/*
 * Not rd_kafka_query_watermark_offsets(): while a leader does not answer, that waits for minutes,
 * whatever its time-out is.
 */
void relay_query_ends(rd_kafka_t *client, int32_t number, struct relay_ends *ends, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		ends[i].error = 0;
	ask_ends(client, number, ends, nr, false);
	ask_ends(client, number, ends, nr, true);
	forget_leaders(client, ends, nr);
}

/* --- in a thread ---------------------------------------------------------------------- */

static void *ask(void *argument)
{
	struct relay_query *query = argument;
	rd_kafka_resp_err_t error;

	error = query->topic ? ask_topic(query->client, query->topic, &query->metadata) :
		rd_kafka_metadata(query->client, 1, NULL, &query->metadata, TIMEOUT_MS);
	if (error) {
		query->metadata = NULL;
		log_say(LOG_DEBUG, "cannot ask for partitions: %s", rd_kafka_err2str(error));
	}
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

/* --- one broker ----------------------------------------------------------------------- */

/* It connects to this broker alone, as long as nothing else is asked of it. */
static rd_kafka_t *client_of(rd_kafka_t *like, const struct rd_kafka_metadata_broker *broker)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_dup(rd_kafka_conf(like));
	char address[ADDRESS_SIZE], why[WHY_SIZE];
	rd_kafka_t *client = NULL;

	/* An address of IPv6 has colons. */
	snprintf(address, sizeof(address), strchr(broker->host, ':') ? "[%s]:%d" : "%s:%d",
		 broker->host, broker->port);
	/* It would complain of each setting that only a consumer has. */
	rd_kafka_conf_set(conf, "log_level", "0", why, sizeof(why));
	if (!rd_kafka_conf_set(conf, "bootstrap.servers", address, why, sizeof(why)))
		client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	if (!client) {
		log_say(LOG_DEBUG, "cannot ask %s: %s", address, why);
		rd_kafka_conf_destroy(conf);
	}
	return client;
}

const struct rd_kafka_metadata *relay_query_broker(rd_kafka_t *client,
						   const struct rd_kafka_metadata_broker *broker,
						   int timeout_ms)
{
	const struct rd_kafka_metadata *metadata = NULL;
	rd_kafka_t *own = client_of(client, broker);

	if (!own)
		return NULL;
	if (rd_kafka_metadata(own, 1, NULL, &metadata, timeout_ms))
		metadata = NULL;
	rd_kafka_destroy(own);
	return metadata;
}
