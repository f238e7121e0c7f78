/* SPDX-License-Identifier: GPL-2.0 */
/* What this relay writes to the map of done offsets. */
#ifndef RELAY_MAP_H
#define RELAY_MAP_H

#include "relay/state.h"

/* The record at this offset is done. */
void relay_map_note(struct relay *relay, struct relay_partition *partition, int64_t offset,
		    int64_t timestamp_ms, int32_t epoch);

/* What a relay of version 1 has committed as text becomes pieces. */
void relay_map_import(struct relay *relay, struct relay_partition *partition, const char *text,
		      int64_t committed);

/* Add what the map has to be told of the partition to a list. */
void relay_map_collect(struct relay *relay, struct relay_partition *partition,
		       struct relay_map_writes *list);

/* Writes of the list could not be made: they are to be collected again. Frees them. */
void relay_map_put_back(struct relay *relay, struct relay_map_writes *list);

/* Free the writes of a list. */
void relay_map_free_writes(struct relay_map_writes *list);

/* An offset was committed, and that is acknowledged: pieces below it are deleted. */
void relay_map_passed(struct relay *relay, struct relay_partition *partition, int64_t low);

/* Delete a key in a topic, with the next writes. */
void relay_map_queue_deletion(struct relay *relay, const char *topic, int32_t number,
			      const void *key, size_t len);

/* At least once: produce what there is to write, for all partitions. */
void relay_map_flush(struct relay *relay);

/* At least once: wait until everything is acknowledged, for a limited time. */
bool relay_map_wait(struct relay *relay);

/* A write was acknowledged, or failed. Frees it. */
void relay_map_report(struct relay *relay, struct relay_map_write *write,
		      rd_kafka_resp_err_t error);

/* A write was acknowledged. Frees it. */
void relay_map_acknowledge(struct relay *relay, struct relay_map_write *write);

/* Forget what is known of a partition. */
void relay_map_free(struct relay_partition *partition);

/* The memory of @ranges and @before, and the number of pieces that they are. */
size_t relay_map_bytes(const struct relay_partition *partition);
uint64_t relay_map_pieces(const struct relay_partition *partition);

#endif /* RELAY_MAP_H */
