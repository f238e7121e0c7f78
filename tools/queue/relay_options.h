/* SPDX-License-Identifier: GPL-2.0 */
/* What "twheelq relay" is told. */
#ifndef TWHEELQ_RELAY_OPTIONS_H
#define TWHEELQ_RELAY_OPTIONS_H

#include <stdbool.h>
#include <bsd/sys/queue.h>

#include "alarm.h"
#include "relay_rules.h"

/* A policy, and whose it is. */
struct relay_policy {
	const char *target;
	struct retry_policy policy;
	STAILQ_ENTRY(relay_policy) entry;
};

/**
 * struct relay_setting - a setting of librdkafka's
 * @name: which.
 * @value: to what. It may be a secret: we never say it.
 * @path: the file that has it; NULL: the command line.
 * @line: which of that.
 * @entry: in the list.
 * @text: where name and value are, if they are of a file.
 */
struct relay_setting {
	const char *name;
	const char *value;
	const char *path;
	unsigned int line;
	STAILQ_ENTRY(relay_setting) entry;
	char text[];
};

STAILQ_HEAD(relay_policies, relay_policy);
STAILQ_HEAD(relay_settings, relay_setting);

/**
 * struct relay_options - what was told, or what holds if nothing was
 * @brokers: where Kafka is.
 * @group: the consumer group; NULL: "twheelq-" and the topic.
 * @topic: where delays come from.
 * @horizon_ms: H.
 * @memory: bytes for records that are in memory.
 * @policies: by target; a later one holds.
 * @settings: in their order; a later one holds.
 * @metrics: the address for these; NULL: none.
 * @create: make topics that are missing.
 * @from_beginning: read what is left, where nothing is committed.
 * @partitions: of a topic that is made; 0: as many as @topic has, or 12.
 * @make: which wheel.
 * @log_level: what is said.
 * @scale: by what times are divided, for tests.
 */
struct relay_options {
	const char *brokers;
	const char *group;
	const char *topic;
	uint64_t horizon_ms;
	uint64_t memory;
	struct relay_policies policies;
	struct relay_settings settings;
	const char *metrics;
	bool create;
	bool from_beginning;
	uint64_t partitions;
	enum alarm_make make;
	int log_level;
	uint64_t scale;
};

/* Exits if an option is wrong, with a message that says which, and what would be right. */
void relay_options_parse(struct relay_options *options, int argc, char **argv);

void relay_options_free(struct relay_options *options);

#endif /* TWHEELQ_RELAY_OPTIONS_H */
