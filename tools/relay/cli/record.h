/* SPDX-License-Identifier: GPL-2.0 */
/* What a record that waits says about itself, by its headers. */
#ifndef RELAY_CLI_RECORD_H
#define RELAY_CLI_RECORD_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include "relay/cli/cluster.h"
#include "relay/rules/rules.h"

/* Room for the id that a record gets if it has none: topic, partition and offset. */
#define RECORD_ID_MAX	(RELAY_TOPIC_MAX + 40)

/**
 * struct record - a record that waits; texts point into the message
 * @id: its id; points to @own_id if it has none of its own.
 * @own_id: room for that.
 * @target: its target; no data: it has none.
 * @has_due: @due_ms is known. A retry's is by the policy, which only the relays have.
 * @due_ms: when it is due.
 * @timestamp_ms: its timestamp; negative: it has none.
 * @attempt: attempts that were made.
 * @tries: how often it was parked because its target could not be written.
 * @held_since_ms: when that began; 0: it is not held, or that is unknown.
 * @takes_back: it takes another record back, whose id is @id.
 * @why: why it is going to be refused; NULL: it is not.
 */
struct record {
	struct relay_text id;
	char own_id[RECORD_ID_MAX];
	struct relay_text target;
	bool has_due;
	uint64_t due_ms;
	int64_t timestamp_ms;
	uint32_t attempt;
	uint32_t tries;
	uint64_t held_since_ms;
	bool takes_back;
	const char *why;
};

/* Read a record of the topic of delays, or of a bucket, which has a width. */
void record_read(struct record *record, const struct relay_rules *rules, uint64_t width_ms,
		 const rd_kafka_message_t *message, uint64_t now_ms);

/* Does the map say that the record is done? */
bool record_is_done(const struct place *place, const rd_kafka_message_t *message);

#endif /* RELAY_CLI_RECORD_H */
