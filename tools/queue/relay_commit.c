// SPDX-License-Identifier: GPL-2.0
/*
 * Commits: of each partition the lowest offset that is not done, and with it, as text, what
 * is done above (relay_runs.c). So the next to read the partition does not do that again:
 * after a rebalance nothing comes twice, and after a crash what was done since the last
 * commit; or more, where more is done out of order than the text has room for.
 *
 * While a partition is read to where its last reader was, the text also has what that one
 * had done and was not read again.
 */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "relay.h"

/* How long a revoke waits for its commit. */
#define WAIT_MS	10000

static bool has_changed(const struct relay_partition *partition)
{
	return partition->dirty || partition->mark.low != partition->committed;
}

static void add_text(rd_kafka_topic_partition_t *to, const struct relay_partition *partition)
{
	char text[RUNS_TEXT_MAX];
	size_t len = runs_write(&partition->mark, partition->done_before, text);

	if (!len)
		return;
	to->metadata = strdup(text);
	to->metadata_size = to->metadata ? len : 0;
}

static void add(struct relay *relay, rd_kafka_topic_partition_list_t *list,
		struct relay_partition *partition)
{
	rd_kafka_topic_partition_t *to;

	if (!partition->begun || !has_changed(partition))
		return;
	to = rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
	to->offset = partition->mark.low;
	if (!relay->no_text)
		add_text(to, partition);
	partition->dirty = false;
}

static void note(struct relay *relay, const rd_kafka_topic_partition_t *committed,
		 rd_kafka_resp_err_t error)
{
	struct relay_partition *partition;

	if (committed->err == RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE && !relay->no_text) {
		log_say(LOG_WARNING, "offset.metadata.max.bytes is below %d: more may come twice",
			RUNS_TEXT_MAX);
		relay->no_text = true;
	}
	partition = relay_partition_find(relay, committed->topic, committed->partition);
	if (!partition)
		return;
	if (error || committed->err)
		partition->dirty = true;
	else
		partition->committed = committed->offset;
}

void relay_commit_report(rd_kafka_t *client, rd_kafka_resp_err_t error,
			 rd_kafka_topic_partition_list_t *list, void *context)
{
	struct relay *relay = context;
	int i;

	(void)client;
	if (error) {
		relay->stats.commit_errors++;
		log_say(LOG_INFO, "a commit failed, and is tried again: %s",
			rd_kafka_err2str(error));
	}
	for (i = 0; list && i < list->cnt; i++)
		note(relay, &list->elems[i], error);
}

void relay_commit(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		add(relay, list, partition);
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
		if (partition)
			add(relay, list, partition);
	}
	if (list->cnt && !rd_kafka_commit_queue(relay->consumer, list, queue,
						relay_commit_report, relay) &&
	    !rd_kafka_queue_poll_callback(queue, WAIT_MS))
		log_say(LOG_WARNING, "a commit was not answered for %d s", WAIT_MS / 1000);
	rd_kafka_topic_partition_list_destroy(list);
	rd_kafka_queue_destroy(queue);
}
