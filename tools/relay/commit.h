/* SPDX-License-Identifier: GPL-2.0 */
/* Commits. */
#ifndef RELAY_COMMIT_H
#define RELAY_COMMIT_H

#include "relay/state.h"

/* Start to write to the map and to commit all that has changed. */
void relay_commit(struct relay *relay);

/* Commit all partitions, and wait for a limited time. Returns whether all are committed. */
bool relay_commit_wait(struct relay *relay);

/* Callback for librdkafka. */
void relay_commit_report(rd_kafka_t *client, rd_kafka_resp_err_t error,
			 rd_kafka_topic_partition_list_t *list, void *context);

/*
 * Commit one partition, only to learn from the answer whether the partitions are still ours.
 * Returns whether there will be an answer.
 */
bool relay_commit_ask(struct relay *relay);

#endif /* RELAY_COMMIT_H */
