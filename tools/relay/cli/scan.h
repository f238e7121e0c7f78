/* SPDX-License-Identifier: GPL-2.0 */
/* Reads partitions from an offset up to their ends as these are when it begins. */
#ifndef RELAY_CLI_SCAN_H
#define RELAY_CLI_SCAN_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include "relay/rules/rules.h"

/**
 * struct scan_part - a partition to read
 * @topic: its topic.
 * @number: its number.
 * @from: the first offset.
 * @to: the offset after the last one.
 * @context: whatever the caller wants.
 * @over: private.
 */
struct scan_part {
	const char *topic;
	int32_t number;
	int64_t from;
	int64_t to;
	void *context;
	bool over;
};

/* A record was read. Returns false if no more of its partition is wanted. */
typedef bool scan_record(const struct scan_part *part, const rd_kafka_message_t *message,
			 void *context);

/*
 * Read @nr partitions, each in the order of its offsets. The order of @parts may change. The
 * program ends if brokers do not answer, or do not let it read.
 */
void scan(rd_kafka_t *client, struct scan_part *parts, size_t nr, scan_record *record,
	  void *context);

/* The value of the last header of this name; its data is NULL if there is none. */
struct relay_text scan_header(const rd_kafka_message_t *message, const char *name);

/* The timestamp of a record; negative: it has none. */
int64_t scan_timestamp(const rd_kafka_message_t *message);

/* The leader epoch of a record; negative: this version of librdkafka does not tell. */
int32_t scan_epoch(const rd_kafka_message_t *message);

#endif /* RELAY_CLI_SCAN_H */
