// SPDX-License-Identifier: GPL-2.0
/* A relay without Kafka, for tests. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "relay/cancels.h"
#include "relay/commit.h"
#include "relay/group.h"
#include "relay/map.h"
#include "relay/near.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/test/fixture_lib.h"
#include "relay/wake.h"
#include "relay/work.h"

struct relay relay;

void open_relay(void)
{
	log_set_level(LOG_CRIT);
	relay.options.topic = "delays";
	STAILQ_INIT(&relay.options.policies);
	relay.pressure.cap = 256 << 20;
	relay.handlers.done = relay_partition_done;
	relay.handlers.reconsider = relay_partition_reconsider;
	relay.handlers.drop = relay_partition_drop;
	relay.handlers.put_off = relay_partition_put_off;
	relay.handlers.ask = relay_commit_ask;
	relay.handlers.map_report = relay_map_report;
	relay.options.hold_ms = RELAY_HOLD_MS;
	relay.options.hold_max_ms = RELAY_HOLD_MAX_MS;
	relay.suspended = -1;
	RB_INIT(&relay.partitions);
	RB_INIT(&relay.targets);
	RB_INIT(&relay.near);
	TAILQ_INIT(&relay.blocked);
	TAILQ_INIT(&relay.blocked_own);
	TAILQ_INIT(&relay.gathered);
	TAILQ_INIT(&relay.dropped);
	TAILQ_INIT(&relay.map_queue);
	LIST_INIT(&relay.loads);
	/* Tests check that targets are freed, which those with a label are not. */
	relay.nr_labels = RELAY_LABELS_MAX;
	relay_rules_init(&relay.rules, "delays", H_MS, 1);
	alarms_open(&relay.alarms, ALARM_AUTO);
	kafka.relay = &relay;
	relay.own_producer = fake_own_producer();
	relay.again_ms = 100;
	relay_work_open(&relay);
	relay_cancels_open(&relay);
}

static bool is_checking(void)
{
	struct relay_target *target;

	RB_FOREACH(target, relay_targets, &relay.targets)
		if (target->checking)
			return true;
	return false;
}

/* Wait for the threads that load partitions and ask for targets. */
static void settle(void)
{
	while (!LIST_EMPTY(&relay.loads) || is_checking()) {
		usleep(100);
		relay_work_poll(&relay);
	}
	relay_group_update(&relay);
}

static rd_kafka_topic_partition_list_t *list_of(const char *topic, int32_t partitions)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
	int32_t i;

	for (i = 0; i < partitions; i++)
		rd_kafka_topic_partition_list_add(list, topic, i);
	return list;
}

void rebalance(const char *topic, int32_t partitions, rd_kafka_resp_err_t what)
{
	rd_kafka_topic_partition_list_t *list = list_of(topic, partitions);

	/* Another relay may have had the partitions in the generation between. */
	kafka.generation += 2;
	relay_group_rebalance(NULL, what, list, &relay);
	settle();
	rd_kafka_topic_partition_list_destroy(list);
}

void assign_partitions(const char *topic, int32_t partitions)
{
	rebalance(topic, partitions, RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS);
}

void revoke_partitions(const char *topic, int32_t partitions)
{
	rebalance(topic, partitions, RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS);
}

static void add_header(rd_kafka_headers_t *headers, const char *name, const char *value)
{
	rd_kafka_header_add(headers, name, -1, value, -1);
}

static rd_kafka_headers_t *headers_of(const struct record *record)
{
	rd_kafka_headers_t *headers = rd_kafka_headers_new(4);
	char number[24];

	add_header(headers, RELAY_TARGET, record->target ?: "target");
	snprintf(number, sizeof(number), "%" PRIu64, record->due_ms ?: record->delay_ms);
	add_header(headers, record->due_ms ? RELAY_DUE : RELAY_DELAY, number);
	snprintf(number, sizeof(number), "%" PRIu64, record->parked_ms);
	if (record->due_ms)
		add_header(headers, RELAY_PARKED, number);
	snprintf(number, sizeof(number), "%" PRIu64, record->held_since_ms);
	if (record->held_since_ms)
		add_header(headers, RELAY_HELD_SINCE, number);
	return headers;
}

void read_record(const struct record *record)
{
	struct fake_message fake_message = {
		.timestamp_ms = record->made_ms ?: relay_now_ms(),
		.headers = headers_of(record),
		.message = {
			.rkt = (rd_kafka_topic_t *)(record->topic ?: "delays"),
			.partition = record->partition,
			.offset = record->offset,
			.payload = calloc(1, record->value_len + 1),
			.len = record->value_len,
		},
	};

	fake_message.message._private = &fake_message;
	relay_partition_read(&relay, &fake_message.message);
	settle();
	rd_kafka_headers_destroy(fake_message.headers);
	free(fake_message.message.payload);
}

void read_due(int64_t offset, const char *target)
{
	read_record(&(struct record){ .offset = offset, .target = target });
}

void read_delayed(int64_t offset, uint64_t delay_ms)
{
	read_record(&(struct record){ .offset = offset, .delay_ms = delay_ms });
}

void turn(void)
{
	relay_send_poll(&relay, 0);
	relay_cancels_ask(&relay);
	relay_cancels_poll(&relay);
	while (relay_wake_due(&relay))
		;
	settle();
	relay_near_give_way(&relay);
	relay_partition_backpressure(&relay);
	relay_wake_flush(&relay);
}

void wait_ms(uint64_t ms)
{
	uint64_t end_ns = fake.now_ns[ALARM_BOOT] + ms * NSEC_PER_MSEC;

	while (fake.now_ns[ALARM_BOOT] < end_ns) {
		fake_advance(500 * NSEC_PER_MSEC);
		turn();
	}
}

struct relay_partition *partition_of_delays(int32_t number)
{
	return relay_partition_find(&relay, "delays", number);
}

int64_t low_of(int32_t number)
{
	return partition_of_delays(number)->mark.low;
}
