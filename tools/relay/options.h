/* SPDX-License-Identifier: GPL-2.0 */
/* The options of twheel-relay. */
#ifndef RELAY_OPTIONS_H
#define RELAY_OPTIONS_H

#include <regex.h>
#include <stdbool.h>
#include <bsd/sys/queue.h>

#include "alarm/alarm.h"
#include "relay/client/config.h"
#include "relay/rules/rules.h"

/* What is promised about a record that its target has: see "Delivery" in the README. */
enum relay_delivery {
	RELAY_AT_LEAST_ONCE,	/* it may come again after a crash */
	RELAY_EXACTLY_ONCE,	/* records and offsets are written in transactions */
};

/* Limits of the options. */
#define RELAY_INSTANCE_MAX	100
#define RELAY_HOLD_LIMIT_MS	(3600 * 1000ULL)
#define RELAY_HOLD_MAX_LIMIT_MS	(366 * 24 * 3600 * 1000ULL)

/* The policy of a target. */
struct relay_policy {
	const char *target;
	struct retry_policy policy;
	STAILQ_ENTRY(relay_policy) entry;
};

STAILQ_HEAD(relay_policies, relay_policy);

/**
 * struct relay_options - the options, or their defaults
 * @brokers: the brokers of Kafka to ask first.
 * @group: the consumer group; NULL: "twheelq-" and the topic.
 * @topic: the topic of delays.
 * @horizon_ms: records due within twice this time are in memory.
 * @memory: limit of the records in memory, in bytes.
 * @delivery: what is promised about a record that its target has.
 * @instance: the name of this relay, part of its transactional.id; NULL: one is made up.
 * @hold_ms: how long a record waits in memory for a target that cannot be written.
 * @hold_max_ms: how long it waits in all, before it goes to the topic of invalid records.
 * @policies: by target; of several for one, the last on the command line holds.
 * @settings: in their order; of several with one name, the last holds.
 * @metrics: the address of the page and of /metrics; NULL: none.
 * @http_host: one more name of this server in addresses of the page; or NULL.
 * @create: create the topics that are missing.
 * @from_beginning: if nothing is committed, begin with the first record that is left.
 * @partitions: of a topic that is created; 0: as many as @topic has, or 12.
 * @replicas: of a topic that is created; 0: as many as there are brokers, up to 3.
 * @targets: matches the names of the topics that may be targets, if @has_targets.
 * @has_targets: otherwise any topic may be a target.
 * @wheel: where the alarms wait.
 * @log_level: the least urgent lines that are logged.
 * @scale: divisor of all times, for tests.
 */
struct relay_options {
	const char *brokers;
	const char *group;
	const char *topic;
	uint64_t horizon_ms;
	uint64_t memory;
	enum relay_delivery delivery;
	const char *instance;
	uint64_t hold_ms;
	uint64_t hold_max_ms;
	struct relay_policies policies;
	struct relay_settings settings;
	const char *metrics;
	const char *http_host;
	bool create;
	bool from_beginning;
	uint64_t partitions;
	uint64_t replicas;
	regex_t targets;
	bool has_targets;
	enum alarm_backend wheel;
	int log_level;
	uint64_t scale;
};

/* Ends the program if an option is wrong. */
void relay_options_parse(struct relay_options *options, int argc, char **argv);

void relay_options_free(struct relay_options *options);

#endif /* RELAY_OPTIONS_H */
