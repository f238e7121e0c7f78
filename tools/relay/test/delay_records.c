// SPDX-License-Identifier: GPL-2.0
/*
 * A producer for the demonstration. It delays records, and knows nothing of the relay except its
 * headers.
 *
 * Usage: delay_records BROKERS TOPIC TARGET COUNT SPAN_MS
 *
 * It writes COUNT records to TOPIC, which the relay reads, for the topic TARGET, with random
 * delays from 0 to SPAN_MS. One half of them has a time (twheel-deliver-at), the other a delay
 * (twheel-delay). For each record that Kafka has acknowledged, it prints a line: key, value, and
 * when it is due, in ms since 1970. The exit status is 0 if all were acknowledged.
 */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEYS		100
#define POLL_MS		100
#define FLUSH_MS	60000
#define MOCK_TIMESTAMP	1234

static uint64_t acknowledged;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/*
 * When a record is due. A delay counts from the record's timestamp, and that is the broker's, if
 * its topic has LogAppendTime. The report has it; but the mock cluster reports MOCK_TIMESTAMP for
 * each record, and keeps the producer's.
 */
struct promise {
	uint64_t made_ms;
	uint64_t delay_ms;
	bool says_when;
};

static uint64_t due_ms_of(const rd_kafka_message_t *message)
{
	const struct promise *promise = message->_private;
	rd_kafka_timestamp_type_t type;
	int64_t stored_ms = rd_kafka_message_timestamp(message, &type);

	if (promise->says_when || stored_ms == MOCK_TIMESTAMP)
		stored_ms = promise->made_ms;
	return stored_ms + promise->delay_ms;
}

static void on_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context)
{
	(void)client;
	(void)context;
	if (message->err) {
		fprintf(stderr, "delay_records: %s\n", rd_kafka_err2str(message->err));
		free(message->_private);
		return;
	}
	printf("%.*s %.*s %" PRIu64 "\n", (int)message->key_len, (const char *)message->key,
	       (int)message->len, (const char *)message->payload, due_ms_of(message));
	free(message->_private);
	acknowledged++;
}

static rd_kafka_t *open_client(const char *brokers)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256] = "";
	rd_kafka_t *client;

	rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof(why));
	rd_kafka_conf_set(conf, "enable.idempotence", "true", why, sizeof(why));
	rd_kafka_conf_set(conf, "partitioner", "murmur2_random", why, sizeof(why));
	rd_kafka_conf_set_dr_msg_cb(conf, on_report);
	client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	if (!client)
		fprintf(stderr, "delay_records: %s\n", why);
	return client;
}

static rd_kafka_resp_err_t delay(rd_kafka_t *client, const char *topic, const char *target,
				 uint64_t number, uint64_t delay_ms)
{
	struct promise *promise = malloc(sizeof(*promise));
	char key[32], value[32], text[32];
	rd_kafka_resp_err_t error;

	if (!promise)
		return RD_KAFKA_RESP_ERR__FAIL;
	*promise = (struct promise){ now_ms(), delay_ms, number % 2 };
	snprintf(key, sizeof(key), "customer-%" PRIu64, number % KEYS);
	snprintf(value, sizeof(value), "reminder-%" PRIu64, number);
	snprintf(text, sizeof(text), "%" PRIu64,
		 promise->says_when ? promise->made_ms + delay_ms : delay_ms);
	error = rd_kafka_producev(client,
				  RD_KAFKA_V_TOPIC(topic),
				  RD_KAFKA_V_TIMESTAMP((int64_t)promise->made_ms),
				  RD_KAFKA_V_KEY(key, strlen(key)),
				  RD_KAFKA_V_VALUE(value, strlen(value)),
				  RD_KAFKA_V_HEADER("twheel-target", target, -1),
				  RD_KAFKA_V_HEADER(promise->says_when ? "twheel-deliver-at" :
						    "twheel-delay", text, -1),
				  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
				  RD_KAFKA_V_OPAQUE(promise),
				  RD_KAFKA_V_END);
	if (error)
		free(promise);
	return error;
}

static bool delay_all(rd_kafka_t *client, const char *topic, const char *target, uint64_t count,
		      uint64_t span_ms)
{
	rd_kafka_resp_err_t error = 0;
	uint64_t number = 0;

	while (!error && number < count) {
		error = delay(client, topic, target, number, random() % (span_ms + 1));
		if (!error)
			number++;
		rd_kafka_poll(client, error ? POLL_MS : 0);
		if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL)
			error = 0;
	}
	if (error)
		fprintf(stderr, "delay_records: %s\n", rd_kafka_err2str(error));
	rd_kafka_flush(client, FLUSH_MS);
	return acknowledged == count;
}

int main(int argc, char **argv)
{
	rd_kafka_t *client;
	bool all;

	if (argc != 6) {
		fputs("usage: delay_records BROKERS TOPIC TARGET COUNT SPAN_MS\n", stderr);
		return 2;
	}
	client = open_client(argv[1]);
	if (!client)
		return 1;
	all = delay_all(client, argv[2], argv[3], strtoull(argv[4], NULL, 10),
			strtoull(argv[5], NULL, 10));
	rd_kafka_destroy(client);
	return all ? 0 : 1;
}
