/* SPDX-License-Identifier: GPL-2.0 */
/* Assigned partitions: records read, decided and done, and pauses. */
#ifndef RELAY_PARTITION_H
#define RELAY_PARTITION_H

#include "relay/state.h"

struct relay_loaded;

/* A partition is assigned: it is to be loaded. @generation is that of piece_generation(). */
void relay_partition_add(struct relay *relay, const char *topic, int32_t number,
			 int64_t generation);

/* It was loaded. Takes the map. */
void relay_partition_loaded(struct relay *relay, struct relay_loaded *loaded, int32_t number);

/* Forget a partition and its entries, except those that librdkafka has. */
void relay_partition_forget(struct relay *relay, struct relay_partition *partition);

struct relay_partition *relay_partition_find(struct relay *relay, const char *topic,
					     int32_t number);

/* A record, or an error of its partition, has come. */
void relay_partition_read(struct relay *relay, const rd_kafka_message_t *message);

/*
 * Decide again about an entry that could not be parked until now. Returns false if the earlier
 * decision stands; else the entry was handled by the new one.
 */
bool relay_partition_reconsider(struct relay *relay, struct relay_entry *entry);

/* An entry was written: note that its offset is done, and free it. */
void relay_partition_done(struct relay *relay, struct relay_entry *entry);

/* An entry was taken back: the same. */
void relay_partition_drop(struct relay *relay, struct relay_entry *entry);

/* An entry waits for a partition of its bucket that does not exist. */
void relay_partition_put_off(struct relay *relay, struct relay_entry *entry);

/* An entry is part of a turn: note that its offset is done; or undo that. */
void relay_partition_expect_done(struct relay *relay, const struct relay_entry *entry);
void relay_partition_undo(struct relay *relay, const struct relay_entry *entry);

/* Pause the kinds of partitions that memory is kept from, or resume them. */
void relay_partition_backpressure(struct relay *relay);

/* The same for partitions that were just assigned. */
void relay_partition_backpressure_all(struct relay *relay);

/* What is known of its done offsets has changed: account the memory of that. */
void relay_partition_account(struct relay *relay, struct relay_partition *partition);

int relay_partition_compare(const struct relay_partition *a, const struct relay_partition *b);
RB_PROTOTYPE(relay_partitions, relay_partition, node, relay_partition_compare);

#endif /* RELAY_PARTITION_H */
