// SPDX-License-Identifier: GPL-2.0
/*
 * Commits: of each partition the lowest offset that is not done, as soon as that has
 * changed, but at most so often as the loop asks.
 */
#include "log.h"
#include "relay.h"

/* How long a revoke waits for its commit. */
#define WAIT_MS	10000

static bool has_changed(const struct relay_partition *partition)
{
	return partition->begun && partition->mark.low != partition->committed;
}

static void add(rd_kafka_topic_partition_list_t *list, const struct relay_partition *partition)
{
	rd_kafka_topic_partition_list_add(list, partition->topic, partition->number)->offset =
		partition->mark.low;
}

static void note(struct relay *relay, const rd_kafka_topic_partition_t *committed)
{
	struct relay_partition *partition;

	partition = relay_partition_find(relay, committed->topic, committed->partition);
	if (partition && !committed->err)
		partition->committed = committed->offset;
}

void relay_commit_report(rd_kafka_t *client, rd_kafka_resp_err_t error,
			 rd_kafka_topic_partition_list_t *list, void *context)
{
	struct relay *relay = context;
	int i;

	(void)client;
	if (error && error != RD_KAFKA_RESP_ERR__NO_OFFSET) {
		relay->stats.commit_errors++;
		log_say(LOG_INFO, "a commit failed, and is tried again: %s",
			rd_kafka_err2str(error));
		return;
	}
	for (i = 0; list && i < list->cnt; i++)
		note(relay, &list->elems[i]);
}

void relay_commit(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (has_changed(partition))
			add(list, partition);
	if (list->cnt)
		rd_kafka_commit(relay->consumer, list, 1);
	rd_kafka_topic_partition_list_destroy(list);
}

void relay_commit_wait(struct relay *relay, const rd_kafka_topic_partition_list_t *which)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(which->cnt);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(relay->consumer);
	struct relay_partition *partition;
	int i;

	for (i = 0; i < which->cnt; i++) {
		partition = relay_partition_find(relay, which->elems[i].topic,
						 which->elems[i].partition);
		if (partition && has_changed(partition))
			add(list, partition);
	}
	if (list->cnt && !rd_kafka_commit_queue(relay->consumer, list, queue,
						relay_commit_report, relay) &&
	    !rd_kafka_queue_poll_callback(queue, WAIT_MS))
		log_say(LOG_WARNING, "a commit was not answered for %d s", WAIT_MS / 1000);
	rd_kafka_topic_partition_list_destroy(list);
	rd_kafka_queue_destroy(queue);
}
