// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of topics, as brokers have them, are looked at: records of a bucket have to be
 * kept for longer than they wait there, and none may be thrown away as its key comes again.
 * Who is not allowed to ask, or asks brokers that do not know, goes on; and nobody waits for
 * the answer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "relay.h"
#include "subcommand.h"

/* Delays and buckets. */
#define TOPICS_MAX	(RELAY_BUCKETS_MAX + 1)

/* --- what is right -------------------------------------------------------------------- */

/* How long a topic has to keep records, in ms; 0: nothing of ours stands on that. */
static uint64_t least_retention_ms(const struct relay_rules *rules, const char *topic)
{
	uint64_t width_ms;

	if (relay_is_bucket(rules, topic, &width_ms))
		return 2 * width_ms * rules->scale;
	return strcmp(topic, rules->topic) ? 0 : 2 * rules->horizon_ms * rules->scale;
}

enum relay_opinion relay_settings_judge(const struct relay_rules *rules, const char *topic,
					const char *name, const char *value)
{
	uint64_t least_ms = least_retention_ms(rules, topic);

	if (!least_ms)
		return RELAY_RIGHT;
	if (!strcmp(name, "cleanup.policy"))
		return strstr(value, "compact") ? RELAY_WRONG : RELAY_RIGHT;
	if (!strcmp(name, "retention.bytes"))
		return *value != '-' ? RELAY_DOUBTFUL : RELAY_RIGHT;
	if (!strcmp(name, "retention.ms") && *value != '-')
		return strtoull(value, NULL, 10) < least_ms ? RELAY_WRONG : RELAY_RIGHT;
	return RELAY_RIGHT;
}

/* --- what is there -------------------------------------------------------------------- */

static void say_opinion(enum relay_opinion opinion, const struct relay_rules *rules,
			const char *topic, const char *name, const char *value)
{
	if (opinion == RELAY_WRONG)
		log_say(LOG_ERR, "%s has %s=%s, and needs delete and at least %" PRIu64 " ms",
			topic, name, value, least_retention_ms(rules, topic));
	else if (opinion == RELAY_DOUBTFUL)
		log_say(LOG_WARNING, "%s may lose records by its %s=%s", topic, name, value);
}

/* Returns whether one is wrong. */
static bool look_at_topic(const struct relay_rules *rules,
			  const rd_kafka_ConfigResource_t *resource)
{
	const char *topic = rd_kafka_ConfigResource_name(resource);
	const rd_kafka_ConfigEntry_t **entries;
	bool wrong = false;
	size_t nr, i;

	if (rd_kafka_ConfigResource_error(resource)) {
		log_say(LOG_INFO, "settings of %s are not known: %s", topic,
			rd_kafka_ConfigResource_error_string(resource));
		return false;
	}
	entries = rd_kafka_ConfigResource_configs(resource, &nr);
	for (i = 0; i < nr; i++) {
		const char *name = rd_kafka_ConfigEntry_name(entries[i]);
		const char *value = rd_kafka_ConfigEntry_value(entries[i]) ?: "";
		enum relay_opinion opinion = relay_settings_judge(rules, topic, name, value);

		say_opinion(opinion, rules, topic, name, value);
		wrong |= opinion == RELAY_WRONG;
	}
	return wrong;
}

/* Returns whether one is wrong. */
static bool look_at_all(const struct relay_rules *rules, rd_kafka_event_t *event)
{
	const rd_kafka_DescribeConfigs_result_t *result;
	const rd_kafka_ConfigResource_t **resources;
	bool wrong = false;
	size_t nr, i;

	if (rd_kafka_event_error(event)) {
		log_say(LOG_INFO, "settings of topics are not known: %s",
			rd_kafka_event_error_string(event));
		return false;
	}
	result = rd_kafka_event_DescribeConfigs_result(event);
	resources = rd_kafka_DescribeConfigs_result_resources(result, &nr);
	for (i = 0; i < nr; i++)
		wrong |= look_at_topic(rules, resources[i]);
	return wrong;
}

/* --- asking --------------------------------------------------------------------------- */

/* All that records wait in. */
static size_t name_resources(const struct relay_rules *rules,
			     rd_kafka_ConfigResource_t *resources[TOPICS_MAX])
{
	char name[RELAY_TOPIC_MAX + 1];
	unsigned int i;

	resources[0] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, rules->topic);
	for (i = 0; i < rules->nr_buckets; i++) {
		relay_bucket_name(rules, rules->width_s[i], name);
		resources[i + 1] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name);
	}
	return rules->nr_buckets + 1;
}

void relay_settings_ask(struct relay *relay)
{
	rd_kafka_ConfigResource_t *resources[TOPICS_MAX];
	size_t nr = name_resources(&relay->rules, resources);

	relay->settings = rd_kafka_queue_new(relay->producer);
	rd_kafka_DescribeConfigs(relay->producer, resources, nr, NULL, relay->settings);
	rd_kafka_ConfigResource_destroy_array(resources, nr);
}

void relay_settings_end(struct relay *relay)
{
	if (relay->settings)
		rd_kafka_queue_destroy(relay->settings);
	relay->settings = NULL;
}

void relay_settings_look(struct relay *relay)
{
	rd_kafka_event_t *event;

	event = relay->settings ? rd_kafka_queue_poll(relay->settings, 0) : NULL;
	if (!event)
		return;
	if (look_at_all(&relay->rules, event))
		relay_end(relay, EXIT_CANNOT);
	rd_kafka_event_destroy(event);
	relay_settings_end(relay);
}
