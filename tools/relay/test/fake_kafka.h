/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fake of the functions of librdkafka that the relay calls. With it a test decides when and
 * how a record is reported, which calls fail, and which offsets are committed. Lists, headers
 * and errors are librdkafka's own. A program that is linked with fake_kafka.o gets these
 * functions in place of librdkafka's.
 *
 * It is strict where librdkafka is not: an entry that is produced while it is in flight ends
 * the test.
 */
#ifndef RELAY_TEST_FAKE_KAFKA_H
#define RELAY_TEST_FAKE_KAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/rules/pieces.h"
#include "relay/rules/runs.h"
#include "relay/state.h"

/**
 * struct fake_produced - a record that was given to the producer
 * @opaque: the relay's entry; its memory must stay while the record is @in_flight.
 */
struct fake_produced {
	char topic[RELAY_TOPIC_MAX + 1];
	int32_t partition;
	size_t value_len;
	rd_kafka_headers_t *headers;
	void *opaque;
	bool in_flight;
	uint64_t produced_ns;
};

/* Room for the text of a commit of version 1. */
#define FAKE_TEXT_MAX	4096

/**
 * struct fake_partition - a partition, as the consumer knows it
 * @committed: the committed offset; RD_KAFKA_OFFSET_INVALID: none.
 * @text: the metadata of the committed offset.
 * @error: the error for those who ask for the committed offset.
 * @nr_errors: how many times @error is returned; 0: always.
 * @begins: its first offset.
 * @seek: the offset of the last seek; -1: none.
 * @paused: the relay has paused it.
 */
struct fake_partition {
	char topic[RELAY_TOPIC_MAX + 1];
	int32_t number;
	int64_t committed;
	char text[FAKE_TEXT_MAX];
	rd_kafka_resp_err_t error;
	unsigned int nr_errors;
	int64_t begins;
	int64_t seek;
	bool paused;
};

#define FAKE_PARTITIONS_MAX	8192
#define FAKE_COMMITS_MAX	64
#define FAKE_MAP_WRITES_MAX	4096
#define FAKE_MAP_MAX		16

/* A record of the map; its offset is its index. */
struct fake_map_record {
	char key[PIECE_KEY_MAX];
	size_t key_len;
	unsigned char value[PIECE_VALUE_MAX];
	size_t value_len;
};

/**
 * struct fake_message - a record that is given to the relay
 */
struct fake_message {
	rd_kafka_message_t message;
	int64_t timestamp_ms;
	rd_kafka_headers_t *headers;
	rd_kafka_resp_err_t headers_error;
};

/* A commit, and the function that gets its answer. */
struct fake_commit {
	rd_kafka_topic_partition_list_t *list;
	void (*report)(rd_kafka_t *client, rd_kafka_resp_err_t error,
		       rd_kafka_topic_partition_list_t *list, void *context);
};

/**
 * struct fake_kafka - the state of the fake
 * @relay: the relay that is tested.
 * @produced: the records that were produced.
 * @nr_produced: their number.
 * @room: the capacity of @produced.
 * @nr_in_flight: those of them without a report.
 * @queue_size: limit of @nr_in_flight.
 * @own_is_full: the producer of the relay's own topics has no room.
 * @purged: flags with which the producer of targets was purged.
 * @own_purged: the same of the producer of the relay's own topics.
 * @at_once: if set, returns the error of rd_kafka_produceva() for a record.
 * @topic_error: the error of each topic that the relay asks for before it writes it.
 * @at_poll: if set, is called by each rd_kafka_poll().
 * @broker_stamps: brokers have given the timestamps.
 * @report_stamp_ms: the timestamp of each record that is reported.
 * @reported: the record that is being reported.
 * @status: what its report says of whether it was written.
 * @map_error: the error of the next reports of writes to the map.
 * @nr_events: reports that were made during this poll.
 * @map_writes: writes to the map, which are acknowledged by the next poll.
 * @nr_map_writes: their number.
 * @map: what is read of the map, in each of its partitions. What the relay writes is not added.
 * @nr_map: how many there are.
 * @nr_map_read: of these, how many were read since reading began at the first one.
 * @map_read_error: comes in place of the last one, once.
 * @at_committed: if set, is called after each answer with committed offsets.
 * @partitions: the partitions.
 * @nr_partitions: their number.
 * @lost: the assignment was lost.
 * @generation: of the group.
 * @nr_assigned: the number of assigned partitions.
 * @nr_pause_calls: calls of rd_kafka_pause_partitions().
 * @nr_resume_calls: calls of rd_kafka_resume_partitions().
 * @nr_seeks: calls of rd_kafka_seek_partitions().
 * @seek_error: the error of a seek.
 * @asked: numbers of partitions that were seeked to their end, and are read there anew.
 * @nr_asked: how many there are.
 * @stands_still: partition 0 is not read.
 * @ids_keep_coming: a record comes for each that was asked for, and no end.
 * @nr_ids: how many have come.
 * @commits: the commits without an answer, the oldest first.
 * @nr_unanswered: their number.
 * @nr_commits: the number of all commits.
 * @most_committed: the most partitions that a commit had.
 * @commit_refused: the error with which a commit is refused at once.
 * @wait_answer: the answer to a commit that the relay waits for.
 */
struct fake_kafka {
	struct relay *relay;
	struct fake_produced *produced;
	size_t nr_produced;
	size_t room;
	size_t nr_in_flight;
	size_t queue_size;
	bool own_is_full;
	int purged;
	int own_purged;
	rd_kafka_resp_err_t (*at_once)(const struct fake_produced *produced);
	rd_kafka_resp_err_t topic_error;
	void (*at_poll)(void);
	bool broker_stamps;
	int64_t report_stamp_ms;
	const struct fake_produced *reported;
	rd_kafka_msg_status_t status;
	rd_kafka_resp_err_t map_error;
	unsigned int nr_events;
	void *map_writes[FAKE_MAP_WRITES_MAX];
	unsigned int nr_map_writes;
	struct fake_map_record map[FAKE_MAP_MAX];
	unsigned int nr_map;
	unsigned int nr_map_read;
	rd_kafka_resp_err_t map_read_error;
	void (*at_committed)(void);

	struct fake_partition partitions[FAKE_PARTITIONS_MAX];
	unsigned int nr_partitions;
	bool lost;
	int32_t generation;
	unsigned int nr_assigned;
	unsigned int nr_pause_calls;
	unsigned int nr_resume_calls;
	unsigned int nr_seeks;
	rd_kafka_resp_err_t seek_error;
	int32_t asked[FAKE_PARTITIONS_MAX];
	unsigned int nr_asked;
	bool stands_still;
	bool ids_keep_coming;
	int64_t nr_ids;

	struct fake_commit commits[FAKE_COMMITS_MAX];
	unsigned int nr_unanswered;
	unsigned int nr_commits;
	int most_committed;
	rd_kafka_resp_err_t commit_refused;
	rd_kafka_resp_err_t wait_answer;
};

extern struct fake_kafka kafka;

/* The producer of the relay's own topics; the one of targets is NULL. */
rd_kafka_t *fake_own_producer(void);

/* Report the record produced[i]. */
void fake_report(size_t i, rd_kafka_resp_err_t error);

/* Report it as librdkafka does if it only infers the write from that of a later record. */
void fake_report_inferred(size_t i);

/* Report all records in flight to a topic; NULL: to any topic. */
void fake_report_all(const char *topic, rd_kafka_resp_err_t error);

/* How many records were produced to a topic; if @in_flight, only those without a report. */
size_t fake_count(const char *topic, bool in_flight);

/* A header of produced[i]; "" if it has none of that name. */
const char *fake_header(size_t i, const char *name);

/* Add a record to the map; without a piece it is a tombstone. */
void fake_map_add(const struct piece_key *key, const struct piece *piece);

/* Find a partition, or add it. */
struct fake_partition *fake_partition(const char *topic, int32_t number);

/* Drop the only commit: it never gets an answer. */
void fake_drop_commit(void);

/* Answer the oldest commit. */
void fake_answer_commit(rd_kafka_resp_err_t error);

/* Answer all commits. */
void fake_answer_commits(rd_kafka_resp_err_t error);

#endif /* RELAY_TEST_FAKE_KAFKA_H */
