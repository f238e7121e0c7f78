/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What brokers say: which topics there are, what they have, what the group has committed, and,
 * by the topic "delays-done", what is done above that.
 */
#ifndef RELAY_CLI_CLUSTER_H
#define RELAY_CLI_CLUSTER_H

#include <librdkafka/rdkafka.h>

#include "relay/cli/command.h"
#include "relay/cli/scan.h"
#include "relay/rules/pieces.h"
#include "relay/rules/rules.h"

/**
 * struct place - a partition of the topic of delays or of a bucket
 * @topic: its topic.
 * @number: its number.
 * @width_ms: the width of the bucket, scaled; 0: it is the topic of delays.
 * @committed: what the group has committed; negative: nothing.
 * @low: the first offset that there is.
 * @end: the offset after the last one; of records of transactions that are not over, none.
 * @ready: the first offset that is not ready, see cluster_ask_ready().
 * @error: why some of these are unknown, which are negative then; NULL: they are known.
 * @done: the map of what is done.
 * @done_begin: no piece of @done covers an offset below.
 * @done_end: no piece covers this offset or a later one.
 * @generation: the latest of them; negative: there is none.
 */
struct place {
	const char *topic;
	int32_t number;
	uint64_t width_ms;
	int64_t committed;
	int64_t low;
	int64_t end;
	int64_t ready;
	const char *error;
	struct done_map done;
	int64_t done_begin;
	int64_t done_end;
	int32_t generation;
};

/**
 * struct cluster - what brokers say
 * @client: a consumer of the group.
 * @command: the options.
 * @rules: the names of buckets.
 * @metadata: all topics.
 * @place: all places, by topic and number.
 * @nr: how many they are.
 */
struct cluster {
	rd_kafka_t *client;
	const struct command *command;
	struct relay_rules rules;
	const struct rd_kafka_metadata *metadata;
	struct place *place;
	size_t nr;
};

/* Ask which topics there are. @horizon_ms is that of the rules. */
void cluster_open(struct cluster *cluster, const struct command *command, uint64_t horizon_ms);
void cluster_close(struct cluster *cluster);

/* The number of partitions of a topic; 0: there is no such topic. */
int cluster_partitions(const struct cluster *cluster, const char *topic);

struct place *cluster_find(const struct cluster *cluster, const char *topic, int32_t number);

/* Ask for @low, @end and @committed of all places. */
void cluster_ask(struct cluster *cluster);

/* Ask for the ends of the partitions of another topic, from its first offsets on. */
size_t cluster_ask_topic(const struct cluster *cluster, const char *topic,
			 struct scan_part **parts);

/* Ask from which offset on records have not waited for the width of their bucket. */
void cluster_ask_ready(struct cluster *cluster, uint64_t now_ms);

/* Read the map of what is done. Returns false if there is no such topic. */
bool cluster_read_done(struct cluster *cluster);

/* The first offset that is not known to be done, or, if records are deleted, that is left. */
int64_t place_start(const struct place *place);

/* How many offsets from @from on and below @to are done. */
uint64_t place_done(const struct place *place, int64_t from, int64_t to);

/* Why no relay may read this partition; NULL: any may. @why is room for it. */
#define PLACE_WHY	256
const char *place_stopped(const struct place *place, char why[PLACE_WHY]);

/* All of the places that have something from their start on, to be scanned; the caller frees. */
size_t cluster_parts(const struct cluster *cluster, struct scan_part **parts);

/*
 * Ask who is in the group. Returns an event that the caller destroys, and the description, which
 * belongs to it.
 */
rd_kafka_event_t *cluster_ask_group(const struct cluster *cluster,
				    const rd_kafka_ConsumerGroupDescription_t **group);

/* Is the error one that passes by itself, and is it not @end_ms yet? Then it waits a moment. */
bool cluster_again(rd_kafka_resp_err_t error, uint64_t end_ms);

/* Where a member of the group runs. */
const char *cluster_host(const rd_kafka_MemberDescription_t *member);

#endif /* RELAY_CLI_CLUSTER_H */
