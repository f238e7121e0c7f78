/* SPDX-License-Identifier: GPL-2.0 */
/* A relay without Kafka, for tests: they assign partitions to it and give it records. */
#ifndef RELAY_TEST_FIXTURE_LIB_H
#define RELAY_TEST_FIXTURE_LIB_H

#include "alarm/test/fake_alarm.h"
#include "relay/state.h"
#include "relay/test/fake_kafka.h"
#include "test/device/harness.h"

#define SECOND_MS	1000ULL
#define MINUTE_MS	(60 * SECOND_MS)
#define HOUR_MS		(60 * MINUTE_MS)
#define H_MS		(10 * MINUTE_MS)
#define NOW_MS		(FAKE_WALL_NS / NSEC_PER_MSEC)

/* The relay that is tested. */
extern struct relay relay;

/**
 * struct record - a record that the relay is to read
 * @topic: its topic; NULL: delays.
 * @partition: the number of its partition.
 * @offset: its offset.
 * @target: its target; NULL: "target".
 * @made_ms: its timestamp; 0: now.
 * @delay_ms: its delay, if @due_ms is 0.
 * @due_ms: when it is due: it is a record of a bucket.
 * @parked_ms: with @due_ms: when it was parked.
 * @value_len: the length of its value.
 */
struct record {
	const char *topic;
	int32_t partition;
	int64_t offset;
	const char *target;
	uint64_t made_ms;
	uint64_t delay_ms;
	uint64_t due_ms;
	uint64_t parked_ms;
	uint64_t held_since_ms;
	size_t value_len;
};

/* Open a relay without partitions, at the fake clock's NOW_MS. */
void open_relay(void);

/* The group assigns partitions of a topic, revokes them, or reports an error. */
void rebalance(const char *topic, int32_t partitions, rd_kafka_resp_err_t what);

/* The group assigns partitions of a topic to the relay. */
void assign_partitions(const char *topic, int32_t partitions);

/* The group revokes them. */
void revoke_partitions(const char *topic, int32_t partitions);

/* Kafka gives the relay a record. */
void read_record(const struct record *record);

/* A record of partition 0 that is due at once. */
void read_due(int64_t offset, const char *target);

/* A record of partition 0 with a delay. */
void read_delayed(int64_t offset, uint64_t delay_ms);

/* A turn of the loop, without reading. */
void turn(void);

/* Advance the fake clock in steps of half a second, with a turn after each. */
void wait_ms(uint64_t ms);

/* A partition of the topic of delays. */
struct relay_partition *partition_of_delays(int32_t number);

/* The lowest offset of it that is not done. */
int64_t low_of(int32_t number);

#endif /* RELAY_TEST_FIXTURE_LIB_H */
