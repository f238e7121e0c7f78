/* SPDX-License-Identifier: GPL-2.0 */
/* Writing: delivery reports, and targets that cannot be written. */
#ifndef RELAY_SEND_H
#define RELAY_SEND_H

#include "relay/state.h"

/* Send an entry, which is in no list, as its decision says. */
void relay_send(struct relay *relay, struct relay_entry *entry);

/* Remove an entry from the list in which it waits to be sent. */
void relay_send_forget(struct relay *relay, struct relay_entry *entry);

/* Free an entry in any state but ENTRY_SENDING. */
void relay_send_free(struct relay *relay, struct relay_entry *entry);

/*
 * When relay_send_poll() is to send some of the entries that are gathered for buckets, by the clock
 * since boot. 0: now. UINT64_MAX: there are none.
 */
uint64_t relay_send_gathers_until(const struct relay *relay);

/* Handle delivery reports. Waits up to @timeout_ms for the first. */
void relay_send_poll(struct relay *relay, int timeout_ms);

/* Callback for librdkafka. */
void relay_send_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context);

/**
 * struct relay_product - a record for librdkafka
 * @topic: its topic.
 * @partition: its partition, or RD_KAFKA_PARTITION_UA.
 * @key: its key; NULL: null.
 * @key_len: the length of @key.
 * @value: its value; NULL: null.
 * @value_len: the length of @value.
 * @headers: its headers, which librdkafka frees; NULL: none.
 * @opaque: for the delivery report.
 * @copy: key and value may be freed at once; else they have to stay until the report.
 */
struct relay_product {
	const char *topic;
	int32_t partition;
	const void *key;
	size_t key_len;
	const void *value;
	size_t value_len;
	rd_kafka_headers_t *headers;
	void *opaque;
	bool copy;
};

/* Hand a record to librdkafka. Frees the headers if it does not take them. */
rd_kafka_resp_err_t relay_produce(rd_kafka_t *client, const struct relay_product *product);

/* What is written for an entry that has a target. Returns false if there is no memory. */
bool relay_send_describe(const struct relay_entry *entry, struct relay_product *product);

/*
 * For a turn: an entry was taken from @blocked. Decide again, and hold or park it if its target
 * fails. Returns whether it is to be written now: then it is in state ENTRY_SENDING.
 */
bool relay_send_take(struct relay *relay, struct relay_entry *entry);

/*
 * The entry was written; or its target may be the reason why the turn was aborted; or it was not
 * written, and waits in @blocked again; or why it could not be.
 */
void relay_send_succeeded(struct relay *relay, struct relay_entry *entry);
void relay_send_suspect(struct relay_entry *entry);
void relay_send_untaken(struct relay *relay, struct relay_entry *entry);
void relay_send_failed(struct relay *relay, struct relay_entry *entry, rd_kafka_resp_err_t error);

RB_PROTOTYPE(relay_targets, relay_target, node, relay_target_compare);
int relay_target_compare(const struct relay_target *a, const struct relay_target *b);

#endif /* RELAY_SEND_H */
