// SPDX-License-Identifier: GPL-2.0
/*
 * A plain loop: consume a record, produce it to another topic. It writes as the relay does, and
 * commits as librdkafka does by default, whether the records are written or not. It shows how fast
 * brokers and librdkafka are when nothing is delayed, counted or promised.
 */
#include <err.h>

#include "relay/bench/load.h"

#define POLL_MS		100
#define FLUSH_MS	30000

static void on_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context)
{
	(void)client;
	(void)context;
	if (message->err)
		errx(1, "a record was not written: %s", rd_kafka_err2str(message->err));
}

static rd_kafka_t *subscribe(const struct load *load)
{
	const struct setting settings[] = {
		{ "group.id", load->group },
		{ "auto.offset.reset", "earliest" },
		{ NULL, NULL },
	};
	rd_kafka_t *consumer = load_client(load, RD_KAFKA_CONSUMER, settings);
	rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
	rd_kafka_resp_err_t error;

	rd_kafka_poll_set_consumer(consumer);
	rd_kafka_topic_partition_list_add(topics, load->topic, RD_KAFKA_PARTITION_UA);
	error = rd_kafka_subscribe(consumer, topics);
	if (error)
		errx(1, "%s", rd_kafka_err2str(error));
	rd_kafka_topic_partition_list_destroy(topics);
	return consumer;
}

static void forward(rd_kafka_t *producer, rd_kafka_topic_t *target, rd_kafka_message_t *message)
{
	rd_kafka_headers_t *headers = NULL;
	rd_kafka_resp_err_t error;

	rd_kafka_message_detach_headers(message, &headers);
	do {
		error = rd_kafka_producev(producer, RD_KAFKA_V_RKT(target),
					  RD_KAFKA_V_KEY(message->key, message->key_len),
					  RD_KAFKA_V_VALUE(message->payload, message->len),
					  RD_KAFKA_V_HEADERS(headers),
					  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
					  RD_KAFKA_V_END);
		rd_kafka_poll(producer, error ? 10 : 0);
	} while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL);
	if (error)
		errx(1, "%s", rd_kafka_err2str(error));
}

void load_copy(const struct load *load)
{
	rd_kafka_t *producer = load_producer(load, on_report), *consumer = subscribe(load);
	rd_kafka_topic_t *target = rd_kafka_topic_new(producer, load->target, NULL);
	rd_kafka_message_t *message;

	while (!load_ends) {
		message = rd_kafka_consumer_poll(consumer, POLL_MS);
		if (!message) {
			rd_kafka_poll(producer, 0);
			continue;
		}
		if (message->err)
			warnx("%s", rd_kafka_message_errstr(message));
		else
			forward(producer, target, message);
		rd_kafka_message_destroy(message);
	}
	rd_kafka_flush(producer, FLUSH_MS);
	rd_kafka_consumer_close(consumer);
	rd_kafka_destroy(consumer);
	rd_kafka_topic_destroy(target);
	rd_kafka_destroy(producer);
}
