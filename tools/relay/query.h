/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Asks brokers for the partitions of topics, without blocking the loop. librdkafka has only a
 * blocking function for that (DescribeTopics is from 2.3 on), so a thread of its own calls it.
 */
#ifndef RELAY_QUERY_H
#define RELAY_QUERY_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

struct relay_query;

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
