// SPDX-License-Identifier: GPL-2.0
/*
 * Checks the settings of topics: a bucket has to keep records for longer than they wait there,
 * and no record may be deleted because a newer one has its key. If the relay may not read the
 * settings, or brokers cannot tell them, it goes on; and it does not wait for the answer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/log.h"
#include "relay/settings.h"
#include "relay/state.h"

/* The topics of delays and of buckets. */
#define TOPICS_MAX	(RELAY_BUCKETS_MAX + 1)

/* --- judging -------------------------------------------------------------------------- */

/* How long a topic has to keep records, in ms; 0: the relay does not depend on it. */
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

/* --- checking ------------------------------------------------------------------------- */

static void log_opinion(enum relay_opinion opinion, const struct relay_rules *rules,
			const char *topic, const char *name, const char *value)
{
	if (opinion == RELAY_WRONG)
		log_say(LOG_ERR,
			"%s has %s=%s, but needs cleanup.policy=delete and retention.ms=%" PRIu64
			" or more", topic, name, value, least_retention_ms(rules, topic));
	else if (opinion == RELAY_DOUBTFUL)
		log_say(LOG_WARNING, "%s may lose records by its %s=%s", topic, name, value);
}

/* Returns whether a setting of the topic is wrong. */
static bool check_topic(const struct relay_rules *rules,
			const rd_kafka_ConfigResource_t *resource)
{
	const char *topic = rd_kafka_ConfigResource_name(resource);
	const rd_kafka_ConfigEntry_t **entries;
	bool wrong = false;
	size_t nr, i;

	if (rd_kafka_ConfigResource_error(resource)) {
		log_say(LOG_INFO, "cannot read the settings of %s: %s", topic,
			rd_kafka_ConfigResource_error_string(resource));
		return false;
	}
	entries = rd_kafka_ConfigResource_configs(resource, &nr);
	for (i = 0; i < nr; i++) {
		const char *name = rd_kafka_ConfigEntry_name(entries[i]);
		const char *value = rd_kafka_ConfigEntry_value(entries[i]) ?: "";
		enum relay_opinion opinion = relay_settings_judge(rules, topic, name, value);

		log_opinion(opinion, rules, topic, name, value);
		wrong |= opinion == RELAY_WRONG;
	}
	return wrong;
}

/* Returns whether a setting of any topic is wrong. */
static bool check_topics(const struct relay_rules *rules, rd_kafka_event_t *event)
{
	const rd_kafka_DescribeConfigs_result_t *result;
	const rd_kafka_ConfigResource_t **resources;
	bool wrong = false;
	size_t nr, i;

	if (rd_kafka_event_error(event)) {
		log_say(LOG_INFO, "cannot read the settings of topics: %s",
			rd_kafka_event_error_string(event));
		return false;
	}
	result = rd_kafka_event_DescribeConfigs_result(event);
	resources = rd_kafka_DescribeConfigs_result_resources(result, &nr);
	for (i = 0; i < nr; i++)
		wrong |= check_topic(rules, resources[i]);
	return wrong;
}

/* --- asking --------------------------------------------------------------------------- */

/* The topics in which records wait. */
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

void relay_settings_check(struct relay *relay)
{
	rd_kafka_event_t *event;

	event = relay->settings ? rd_kafka_queue_poll(relay->settings, 0) : NULL;
	if (!event)
		return;
	if (check_topics(&relay->rules, event))
		relay_end(relay, EXIT_CANNOT);
	rd_kafka_event_destroy(event);
	relay_settings_end(relay);
}
