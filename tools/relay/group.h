/* SPDX-License-Identifier: GPL-2.0 */
/* The consumer group: rebalances, and reading. */
#ifndef RELAY_GROUP_H
#define RELAY_GROUP_H

#include "relay/state.h"

/* Join the group. Returns an exit status. */
int relay_group_join(struct relay *relay);

/* Begin to read partitions that were loaded. Call this in each turn of the loop. */
void relay_group_update(struct relay *relay);

/* Forget all partitions, and load them again. */
void relay_group_reload(struct relay *relay);

/* The generation of the group that this relay knows; negative: it is no member. */
int32_t relay_group_generation(struct relay *relay);

/*
 * The group's metadata, to fence off others in a transaction; NULL if this relay is no member, as
 * brokers would accept it then without a check. The caller destroys it.
 */
rd_kafka_consumer_group_metadata_t *relay_group_metadata(struct relay *relay);

/* Read records, up to a limit for one turn. Returns whether there may be more. */
bool relay_group_read(struct relay *relay);

/* Leave the group: wait for records in flight, and commit. */
void relay_group_leave(struct relay *relay);

/* Callback for librdkafka. */
void relay_group_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t error,
			   rd_kafka_topic_partition_list_t *list, void *context);

#endif /* RELAY_GROUP_H */
