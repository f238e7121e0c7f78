/* SPDX-License-Identifier: GPL-2.0 */
/* A load for programs that delay records in Kafka, and a ledger of what comes. */
#ifndef RELAY_BENCH_LOAD_H
#define RELAY_BENCH_LOAD_H

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct load - the command line
 * @mode: "produce", "ledger" or "copy".
 * @brokers: the brokers to ask first.
 * @topic: the topic that is written (produce) or read.
 * @target: produce: the topic that the records are for; copy: the one that is written.
 * @group: copy: its consumer group.
 * @count: number of records.
 * @rate: produce: records a second; 0: as fast as it goes.
 * @delay_ms: produce: the least delay.
 * @delay_max_ms: produce: the greatest one.
 * @due_ms: produce: when all of them are due, in ms since 1970; 0: after their delays.
 * @size: produce: bytes of a value.
 * @late_ms: ledger: a record that is later than this counts as late in @series.
 * @skip: ledger: the lateness of so many of the first records is not judged.
 * @series: ledger: a file for what came in each 100 ms, or NULL.
 */
struct load {
	const char *mode;
	const char *brokers;
	const char *topic;
	const char *target;
	const char *group;
	uint64_t count;
	uint64_t rate;
	uint64_t delay_ms;
	uint64_t delay_max_ms;
	uint64_t due_ms;
	uint64_t size;
	uint64_t late_ms;
	uint64_t skip;
	const char *series;
};

/**
 * struct stamp - what a value begins with
 * @number: of the record, from 0 on.
 * @due_ms: when it is due, in ms since 1970.
 *
 * Random bytes follow, which no compression makes smaller.
 */
struct stamp {
	uint64_t number;
	uint64_t due_ms;
};

struct setting {
	const char *name;
	const char *value;
};

/* SIGTERM or SIGINT has come. */
extern atomic_bool load_ends;

/* A client with these settings, the last of which has no name. Errors end the program. */
rd_kafka_t *load_client(const struct load *load, rd_kafka_type_t type,
			const struct setting *settings);

/* A producer that writes as twheel-relay does. */
rd_kafka_t *load_producer(const struct load *load,
			  void (*on_report)(rd_kafka_t *client, const rd_kafka_message_t *message,
					    void *context));

/* Each runs a mode. */
void load_produce(const struct load *load);
void load_ledger(const struct load *load);
void load_copy(const struct load *load);

#endif /* RELAY_BENCH_LOAD_H */
