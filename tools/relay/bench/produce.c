// SPDX-License-Identifier: GPL-2.0
/* Produce the same delayed records for each program. */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/time.h"
#include "relay/bench/load.h"

#define KEYS		1000
#define FLUSH_MS	120000
#define SEED		2463534242U

/* What is written: the other bytes of a value are a window of these. */
#define NOISE_BYTES	(4 << 20)

struct producer {
	const struct load *load;
	rd_kafka_t *client;
	rd_kafka_topic_t *topic;
	uint32_t random;
	char *noise;
	char *value;
	uint64_t number;
};

static uint64_t acknowledged;

static void on_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context)
{
	(void)client;
	(void)context;
	if (message->err)
		errx(1, "a record was not written: %s", rd_kafka_err2str(message->err));
	acknowledged++;
}

static uint32_t draw(struct producer *producer)
{
	producer->random ^= producer->random << 13;
	producer->random ^= producer->random >> 17;
	producer->random ^= producer->random << 5;
	return producer->random;
}

static void *get_memory(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		err(2, "no memory for %zu bytes", size);
	return memory;
}

static void make_noise(struct producer *producer)
{
	size_t i;

	producer->noise = get_memory(NOISE_BYTES + producer->load->size);
	producer->value = get_memory(producer->load->size);
	for (i = 0; i < NOISE_BYTES + producer->load->size; i++)
		producer->noise[i] = draw(producer);
}

static uint64_t due_of_next(struct producer *producer)
{
	const struct load *load = producer->load;
	uint64_t delay_ms = load->delay_ms +
		draw(producer) % (load->delay_max_ms - load->delay_ms + 1);

	if (load->due_ms)
		return load->due_ms;
	return time_now_ns(CLOCK_REALTIME) / NSEC_PER_MSEC + delay_ms;
}

static void fill_value(struct producer *producer, uint64_t due_ms)
{
	struct stamp stamp = { producer->number, due_ms };

	memcpy(producer->value, producer->noise + draw(producer) % NOISE_BYTES,
	       producer->load->size);
	memcpy(producer->value, &stamp, sizeof(stamp));
}

static void produce_next(struct producer *producer)
{
	uint64_t due_ms = due_of_next(producer);
	rd_kafka_resp_err_t error;
	char key[32], due[32];

	fill_value(producer, due_ms);
	snprintf(key, sizeof(key), "customer-%" PRIu64, producer->number % KEYS);
	snprintf(due, sizeof(due), "%" PRIu64, due_ms);
	do {
		error = rd_kafka_producev(producer->client,
					  RD_KAFKA_V_RKT(producer->topic),
					  RD_KAFKA_V_KEY(key, strlen(key)),
					  RD_KAFKA_V_VALUE(producer->value, producer->load->size),
					  RD_KAFKA_V_HEADER("twheel-target",
							    producer->load->target, -1),
					  RD_KAFKA_V_HEADER("twheel-deliver-at", due, -1),
					  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
					  RD_KAFKA_V_END);
		rd_kafka_poll(producer->client,
			      error == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 10 : 0);
	} while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL);
	if (error)
		errx(1, "%s", rd_kafka_err2str(error));
	producer->number++;
}

/* How many may be written by now. */
static uint64_t allowed(const struct load *load, uint64_t start_ns)
{
	double s = (time_now_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;

	return load->rate && s * load->rate < load->count ? s * load->rate : load->count;
}

void load_produce(const struct load *load)
{
	struct producer producer = {
		.load = load, .client = load_producer(load, on_report), .random = SEED,
	};
	uint64_t start_ns = time_now_ns(CLOCK_MONOTONIC), limit;

	producer.topic = rd_kafka_topic_new(producer.client, load->topic, NULL);
	make_noise(&producer);
	while (producer.number < load->count && !load_ends) {
		limit = allowed(load, start_ns);
		while (producer.number < limit && !load_ends)
			produce_next(&producer);
		if (load->rate)
			rd_kafka_poll(producer.client, 1);
	}
	rd_kafka_flush(producer.client, FLUSH_MS);
	if (acknowledged != producer.number)
		errx(1, "%" PRIu64 " of %" PRIu64 " records were acknowledged", acknowledged,
		     producer.number);
	printf("result produced %" PRIu64 " records\n", acknowledged);
	printf("result took %.3f s\n", (time_now_ns(CLOCK_MONOTONIC) - start_ns) / 1e9);
	rd_kafka_topic_destroy(producer.topic);
	rd_kafka_destroy(producer.client);
	free(producer.noise);
	free(producer.value);
}
