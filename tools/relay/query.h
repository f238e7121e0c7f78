/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Asks brokers for topics, for their partitions, and for the ends of these. librdkafka has only
 * functions for that which block (DescribeTopics is from 2.3 on). So threads of work.c ask most of
 * it, and a relay_query has a thread of its own.
 */
#ifndef RELAY_QUERY_H
#define RELAY_QUERY_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

struct relay_query;

/*
 * Does a topic exist? The topic is not created by that, and the client knows its leaders anew.
 * Blocks up to 5 s. Returns 0, or why it cannot be used, or why nobody answers.
 */
rd_kafka_resp_err_t relay_query_topic(rd_kafka_t *client, const char *name);

/**
 * struct relay_ends - the ends of the log of a partition
 * @topic: its topic, which the caller owns.
 * @low: its first offset.
 * @high: that of the record that will be next.
 * @error: why they are not known; 0: they are.
 */
struct relay_ends {
	const char *topic;
	int64_t low;
	int64_t high;
	rd_kafka_resp_err_t error;
};

/*
 * Ask leaders for the ends of partitions, which all have the same number. Blocks up to 20 s. If a
 * leader has changed, this is an error, and it is known the next time.
 */
void relay_query_ends(rd_kafka_t *client, int32_t number, struct relay_ends *ends, size_t nr);

/*
 * Ask for a topic, or for all if @topic is NULL. The topic is not created by that if @client is
 * a consumer. Returns NULL if there is no memory for it. @client must stay until the query is
 * over.
 */
struct relay_query *relay_query_start(rd_kafka_t *client, const char *topic);

bool relay_query_is_over(const struct relay_query *query);

/*
 * Free a query. Waits until it is over, up to 5 s. Returns the answer, which the caller destroys
 * by rd_kafka_metadata_destroy(); NULL: there is none.
 */
const struct rd_kafka_metadata *relay_query_end(struct relay_query *query);

/*
 * Ask one broker for all topics, by a client of its own that is configured as @client is. Blocks
 * up to @timeout_ms. Returns the answer, as above; NULL: there is none.
 */
const struct rd_kafka_metadata *relay_query_broker(rd_kafka_t *client,
						   const struct rd_kafka_metadata_broker *broker,
						   int timeout_ms);

#endif /* RELAY_QUERY_H */
