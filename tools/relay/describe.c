// SPDX-License-Identifier: GPL-2.0
/* Asks brokers for the settings of the relay's topics, and judges them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "relay/describe.h"
#include "relay/wanted.h"

bool relay_describe(struct relay *relay, const struct relay_topics *topics,
		    rd_kafka_queue_t *queue)
{
	rd_kafka_ConfigResource_t *resources[RELAY_TOPICS_MAX];
	unsigned int i;
	size_t nr = 0;

	for (i = 0; i < topics->nr; i++)
		if (topics->topic[i].partitions)
			resources[nr++] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC,
								      topics->topic[i].name);
	if (!nr)
		return false;
	rd_kafka_DescribeConfigs(relay->consumer, resources, nr, NULL, queue);
	rd_kafka_ConfigResource_destroy_array(resources, nr);
	return true;
}

/* --- judging -------------------------------------------------------------------------- */

static const struct relay_topic *find_topic(const struct relay_topics *topics, const char *name)
{
	unsigned int i;

	for (i = 0; i < topics->nr; i++)
		if (!strcmp(topics->topic[i].name, name))
			return &topics->topic[i];
	return NULL;
}

/* Returns whether the setting is wrong. */
static bool check_setting(const struct relay_topic *topic, const rd_kafka_ConfigEntry_t *entry)
{
	const char *value = rd_kafka_ConfigEntry_value(entry) ?: "";
	const char *name = rd_kafka_ConfigEntry_name(entry);
	struct relay_judgement judgement = relay_wanted_judge(topic, name, value);

	if (judgement.opinion == RELAY_WRONG)
		log_say(LOG_ERR, "%s has %s=%s, and must have %s: %s", topic->name, name, value,
			judgement.right, judgement.why);
	else if (judgement.opinion == RELAY_DOUBTFUL)
		log_say(LOG_WARNING, "%s has %s=%s, and should have %s: %s", topic->name, name,
			value, judgement.right, judgement.why);
	return judgement.opinion == RELAY_WRONG;
}

static void say_unreadable(bool silent, const char *what, const char *why)
{
	log_say(silent ? LOG_DEBUG : LOG_INFO, "cannot read the settings of %s: %s", what, why);
}

/* Returns whether a setting of the topic is wrong. */
static bool check_topic(const struct relay_topics *topics,
			const rd_kafka_ConfigResource_t *resource, bool silent)
{
	const char *name = rd_kafka_ConfigResource_name(resource);
	const struct relay_topic *topic = find_topic(topics, name);
	const rd_kafka_ConfigEntry_t **entries;
	bool wrong = false;
	size_t nr, i;

	if (rd_kafka_ConfigResource_error(resource))
		say_unreadable(silent, name, rd_kafka_ConfigResource_error_string(resource));
	entries = rd_kafka_ConfigResource_configs(resource, &nr);
	for (i = 0; topic && i < nr; i++)
		wrong |= check_setting(topic, entries[i]);
	return wrong;
}

/* The limit of a topic's records; 0: it is unknown. */
static uint64_t record_limit(const rd_kafka_ConfigResource_t *resource)
{
	const rd_kafka_ConfigEntry_t **entries;
	size_t nr, i;

	entries = rd_kafka_ConfigResource_configs(resource, &nr);
	for (i = 0; i < nr; i++)
		if (!strcmp(rd_kafka_ConfigEntry_name(entries[i]), "max.message.bytes"))
			return strtoull(rd_kafka_ConfigEntry_value(entries[i]) ?: "0", NULL, 10);
	return 0;
}

static void check_size(const struct relay_topics *topics, const char *name, uint64_t limit,
		       uint64_t least)
{
	const struct relay_topic *topic = find_topic(topics, name);
	const char *delays = topics->topic[0].name;

	if (topic && topic->role == RELAY_TOPIC_BUCKET && limit && limit < least)
		log_say(LOG_WARNING, "%s has max.message.bytes=%" PRIu64 ", and should have %"
			PRIu64 " or more, as %s has: larger records go to %s" RELAY_INVALID_SUFFIX,
			name, limit, least, delays, delays);
}

/* A record that the topic of delays took has to fit into each bucket. */
static void check_sizes(const struct relay_topics *topics,
			const rd_kafka_ConfigResource_t **resources, size_t nr)
{
	uint64_t least = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(rd_kafka_ConfigResource_name(resources[i]), topics->topic[0].name))
			least = record_limit(resources[i]);
	for (i = 0; i < nr; i++)
		check_size(topics, rd_kafka_ConfigResource_name(resources[i]),
			   record_limit(resources[i]), least);
}

/* Returns whether a setting of any topic is wrong. */
static bool check_topics(const struct relay_topics *topics, rd_kafka_event_t *event, bool silent)
{
	const rd_kafka_DescribeConfigs_result_t *result;
	const rd_kafka_ConfigResource_t **resources;
	bool wrong = false;
	size_t nr, i;

	if (rd_kafka_event_error(event)) {
		say_unreadable(silent, "topics", rd_kafka_event_error_string(event));
		return false;
	}
	result = rd_kafka_event_DescribeConfigs_result(event);
	resources = rd_kafka_DescribeConfigs_result_resources(result, &nr);
	for (i = 0; i < nr; i++)
		wrong |= check_topic(topics, resources[i], silent);
	check_sizes(topics, resources, nr);
	return wrong;
}

bool relay_described(const struct relay_topics *topics, rd_kafka_event_t *event, bool *silent)
{
	bool wrong = check_topics(topics, event, *silent);

	*silent = true;
	rd_kafka_event_destroy(event);
	return wrong;
}
