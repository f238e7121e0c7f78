// SPDX-License-Identifier: GPL-2.0
/*
 * The number of records of a partition that Kafka has and the relay has not read.
 *
 * The end of a partition is known from fetches. But paused partitions are not fetched, and
 * buckets are paused most of the time. So when a page of metrics is written, brokers are asked
 * for the ends of paused partitions. The loop waits for the answer and does nothing else
 * meanwhile: so it waits only shortly and asks only rarely. Without an answer, the page has the
 * ends that are known already.
 */
#include "relay/lag.h"
#include "relay/partition.h"
#include "relay/state.h"

#define ASK_EVERY_MS	5000
#define WAIT_MS		100

static rd_kafka_topic_partition_list_t *list_paused(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (partition->pauses)
			rd_kafka_topic_partition_list_add(list, partition->topic,
							  partition->number)->offset =
				RD_KAFKA_OFFSET_END;
	return list;
}

static void note_end(struct relay *relay, const rd_kafka_topic_partition_t *end)
{
	struct relay_partition *partition;

	partition = relay_partition_find(relay, end->topic, end->partition);
	if (partition && !end->err && end->offset > partition->end)
		partition->end = end->offset;
}

void relay_lag_ask(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list;
	uint64_t now_ms = relay_boot_ms();
	int i;

	if (now_ms - relay->lag_asked_ms < ASK_EVERY_MS)
		return;
	relay->lag_asked_ms = now_ms;
	list = list_paused(relay);
	if (list->cnt && !rd_kafka_offsets_for_times(relay->consumer, list, WAIT_MS))
		for (i = 0; i < list->cnt; i++)
			note_end(relay, &list->elems[i]);
	rd_kafka_topic_partition_list_destroy(list);
}

int64_t relay_lag(struct relay *relay, const struct relay_partition *partition)
{
	int64_t low, high, next = partition->next;

	if (rd_kafka_get_watermark_offsets(relay->consumer, partition->topic,
					   partition->number, &low, &high))
		return -1;
	if (high < partition->end)
		high = partition->end;
	if (high < 0)
		return -1;
	if (partition->state == PARTITION_LOADING)
		next = low < 0 ? 0 : low;
	return high > next ? high - next : 0;
}
