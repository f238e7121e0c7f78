/* SPDX-License-Identifier: GPL-2.0 */
/* Records in memory. */
#ifndef RELAY_ENTRY_H
#define RELAY_ENTRY_H

#include "relay/state.h"

/* Copy a record. Returns NULL if there is no memory. */
struct relay_entry *relay_entry_new(struct relay *relay, const rd_kafka_message_t *message);

/* Remove an entry in state ENTRY_UNDECIDED from that list of its partition. */
void relay_entry_decided(struct relay_entry *entry);

/* It does not give way any more. */
void relay_entry_stays(struct relay *relay, struct relay_entry *entry);

/* Free an entry that has no target: relay_send_free() frees one that may have one. */
void relay_entry_free(struct relay *relay, struct relay_entry *entry);

/* The last header of this name. */
struct relay_text relay_entry_header(const struct relay_entry *entry, const char *name);

/* Room for an id from topic, partition and offset. */
#define RELAY_PLACE_MAX		(RELAY_TOPIC_MAX + 40)

/* The id that the record has, or its place, written to @place, if this is its first appearance. */
struct relay_text relay_entry_id(const struct relay_entry *entry, char place[RELAY_PLACE_MAX]);

/* The headers to send the entry with. Returns NULL if there is no memory. */
rd_kafka_headers_t *relay_entry_headers(const struct relay_entry *entry);

#endif /* RELAY_ENTRY_H */
