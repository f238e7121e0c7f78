/* SPDX-License-Identifier: GPL-2.0 */
/* The consumer group: rebalances, and reading. */
#ifndef RELAY_GROUP_H
#define RELAY_GROUP_H

#include "relay/state.h"

/* Join the group. Returns an exit status. */
int relay_group_join(struct relay *relay);

/* Read records, up to a limit for one turn. Returns whether there may be more. */
bool relay_group_read(struct relay *relay);

/* Leave the group: wait for records in flight, and commit. */
void relay_group_leave(struct relay *relay);

/* Callback for librdkafka. */
void relay_group_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t error,
			   rd_kafka_topic_partition_list_t *list, void *context);

#endif /* RELAY_GROUP_H */
