// SPDX-License-Identifier: GPL-2.0
/*
 * Topics: that of delays, a bucket for each width, and that of invalid records. With --create,
 * those that are missing are created. All are checked in any case: a bucket with fewer partitions
 * than the topic of delays lacks some of the partitions that records have to keep.
 *
 * A bucket keeps records for twice its width and a week. Retention counts from the timestamp of
 * a record, which for a parked record is when it was parked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "relay/settings.h"
#include "relay/state.h"
#include "relay/topics.h"

#define TIMEOUT_MS		30000
#define WHY_SIZE		512

/* How long brokers may take to know a topic that was created. */
#define QUERY_TIMES		20
#define QUERY_EVERY_MS		500

#define DEFAULT_PARTITIONS	12
#define RETENTION_EXTRA_MS	(7 * 24 * 3600 * 1000ULL)
/* Limit of a record: eight times the brokers' default. */
#define MESSAGE_BYTES		"8388608"

/* The topics of delays, of buckets and of invalid records. */
#define TOPICS_MAX		(RELAY_BUCKETS_MAX + 2)

/**
 * struct topic - a topic that the relay needs
 * @name: its name.
 * @is_input: it is the topic of delays.
 * @retention_ms: how long it keeps records; 0: the brokers' default.
 * @partitions: the number of its partitions; 0: it does not exist.
 */
struct topic {
	char name[RELAY_TOPIC_MAX + 1];
	bool is_input;
	uint64_t retention_ms;
	int partitions;
};

struct topics {
	struct topic topic[TOPICS_MAX];
	unsigned int nr;
};

/* The first is the topic of delays, the last the topic of invalid records. */
static void name_topics(const struct relay *relay, struct topics *topics)
{
	const struct relay_rules *rules = &relay->rules;
	struct topic *topic = topics->topic;
	unsigned int i;

	memset(topics, 0, sizeof(*topics));
	snprintf(topic->name, sizeof(topic->name), "%s", rules->topic);
	topic->is_input = true;
	for (i = 0; i < rules->nr_buckets; i++) {
		topic++;
		relay_bucket_name(rules, rules->width_s[i], topic->name);
		topic->retention_ms = 2 * rules->width_s[i] * 1000 + RETENTION_EXTRA_MS;
	}
	topic++;
	snprintf(topic->name, sizeof(topic->name), "%s" RELAY_INVALID_SUFFIX, rules->topic);
	topics->nr = topic - topics->topic + 1;
}

/* --- checking ------------------------------------------------------------------------- */

static int partitions_of(const struct rd_kafka_metadata *metadata, const char *name)
{
	int i;

	for (i = 0; i < metadata->topic_cnt; i++)
		if (!strcmp(metadata->topics[i].topic, name) && !metadata->topics[i].err)
			return metadata->topics[i].partition_cnt;
	return 0;
}

/* Ask the brokers how many partitions each topic has. Returns an exit status. */
static int query_partitions(struct relay *relay, struct topics *topics)
{
	const struct rd_kafka_metadata *metadata;
	rd_kafka_resp_err_t error;
	unsigned int i;

	error = rd_kafka_metadata(relay->producer, 1, NULL, &metadata, TIMEOUT_MS);
	if (error) {
		log_say(LOG_ERR, "%s does not answer: %s", relay->options.brokers,
			rd_kafka_err2str(error));
		return EXIT_CANNOT;
	}
	for (i = 0; i < topics->nr; i++)
		topics->topic[i].partitions = partitions_of(metadata, topics->topic[i].name);
	rd_kafka_metadata_destroy(metadata);
	return 0;
}

/* Buckets need at least as many partitions as the topic of delays. */
static bool is_bucket(const struct topics *topics, unsigned int i)
{
	return i > 0 && i < topics->nr - 1;
}

/* The least number of partitions that a topic needs. */
static int least_of(const struct topics *topics, unsigned int i)
{
	return is_bucket(topics, i) && topics->topic[0].partitions ?
		topics->topic[0].partitions : 1;
}

static bool all_exist(const struct topics *topics)
{
	unsigned int i;

	for (i = 0; i < topics->nr; i++)
		if (topics->topic[i].partitions < least_of(topics, i))
			return false;
	return true;
}

/* Log what is wrong with a topic. Returns whether something is. */
static bool is_wrong(const struct relay *relay, const struct topics *topics, unsigned int i)
{
	const char *hint = relay->options.create ? "and --create did not work" :
		"and --create was not given";
	const struct topic *topic = &topics->topic[i];
	int least = least_of(topics, i);

	if (topic->partitions >= least)
		return false;
	if (!topic->partitions)
		log_say(LOG_ERR, "there is no topic %s, %s", topic->name, hint);
	else
		log_say(LOG_ERR, "%s has %d partitions, and should have %d, %s", topic->name,
			topic->partitions, least, hint);
	return true;
}

static int judge(const struct relay *relay, const struct topics *topics)
{
	bool wrong = false;
	unsigned int i;

	for (i = 0; i < topics->nr; i++)
		wrong |= is_wrong(relay, topics, i);
	return wrong ? EXIT_CANNOT : 0;
}

/* --- creating ------------------------------------------------------------------------- */

static int wanted_partitions(const struct relay *relay, const struct topics *topics)
{
	if (topics->topic[0].partitions)
		return topics->topic[0].partitions;
	return relay->options.partitions ?: DEFAULT_PARTITIONS;
}

static rd_kafka_NewTopic_t *new_topic(const struct topic *topic, int partitions)
{
	char number[24], why[WHY_SIZE];
	rd_kafka_NewTopic_t *new = rd_kafka_NewTopic_new(topic->name, partitions, -1, why,
							 sizeof(why));

	if (!new)
		return NULL;
	/* Whatever the brokers' defaults are. */
	rd_kafka_NewTopic_set_config(new, "cleanup.policy", "delete");
	rd_kafka_NewTopic_set_config(new, "retention.bytes", "-1");
	if (topic->retention_ms) {
		snprintf(number, sizeof(number), "%" PRIu64, topic->retention_ms);
		rd_kafka_NewTopic_set_config(new, "retention.ms", number);
	}
	/* The relay adds headers, so records become larger. */
	if (!topic->is_input)
		rd_kafka_NewTopic_set_config(new, "max.message.bytes", MESSAGE_BYTES);
	return new;
}

/* Log the errors. */
static void log_errors(const rd_kafka_topic_result_t **results, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		rd_kafka_resp_err_t error = rd_kafka_topic_result_error(results[i]);

		/* Another relay may have created the topic first. */
		if (error && error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
			log_say(LOG_ERR, "%s: %s", rd_kafka_topic_result_name(results[i]),
				rd_kafka_topic_result_error_string(results[i]));
	}
}

static void log_result(rd_kafka_event_t *event)
{
	const rd_kafka_CreatePartitions_result_t *added;
	const rd_kafka_CreateTopics_result_t *created;
	const rd_kafka_topic_result_t **results;
	size_t nr;

	created = rd_kafka_event_CreateTopics_result(event);
	added = rd_kafka_event_CreatePartitions_result(event);
	if (created)
		results = rd_kafka_CreateTopics_result_topics(created, &nr);
	else
		results = rd_kafka_CreatePartitions_result_topics(added, &nr);
	log_errors(results, nr);
}

static void wait_result(rd_kafka_queue_t *queue)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);

	if (!event)
		log_say(LOG_ERR, "creating topics: brokers do not answer");
	else if (rd_kafka_event_error(event))
		log_say(LOG_WARNING, "creating topics: %s", rd_kafka_event_error_string(event));
	else
		log_result(event);
	if (event)
		rd_kafka_event_destroy(event);
}

static void create_missing(struct relay *relay, const struct topics *topics, int partitions,
			   rd_kafka_queue_t *queue)
{
	rd_kafka_NewTopic_t *new[TOPICS_MAX];
	unsigned int i;
	size_t nr = 0;

	for (i = 0; i < topics->nr; i++) {
		if (topics->topic[i].partitions)
			continue;
		new[nr] = new_topic(&topics->topic[i], partitions);
		if (!new[nr])
			continue;
		log_say(LOG_NOTICE, "creating %s with %d partitions", topics->topic[i].name,
			partitions);
		nr++;
	}
	if (!nr)
		return;
	rd_kafka_CreateTopics(relay->producer, new, nr, NULL, queue);
	rd_kafka_NewTopic_destroy_array(new, nr);
	wait_result(queue);
}

static void add_partitions(struct relay *relay, const struct topics *topics, int partitions,
			   rd_kafka_queue_t *queue)
{
	rd_kafka_NewPartitions_t *new[TOPICS_MAX];
	char why[WHY_SIZE];
	unsigned int i;
	size_t nr = 0;

	for (i = 0; i < topics->nr; i++) {
		const struct topic *topic = &topics->topic[i];

		if (!is_bucket(topics, i) || !topic->partitions ||
		    topic->partitions >= partitions)
			continue;
		new[nr] = rd_kafka_NewPartitions_new(topic->name, partitions, why, sizeof(why));
		if (new[nr])
			nr++;
		log_say(LOG_NOTICE, "adding partitions to %s, up to %d", topic->name, partitions);
	}
	if (!nr)
		return;
	rd_kafka_CreatePartitions(relay->producer, new, nr, NULL, queue);
	rd_kafka_NewPartitions_destroy_array(new, nr);
	wait_result(queue);
}

static void create(struct relay *relay, const struct topics *topics)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(relay->producer);
	int partitions = wanted_partitions(relay, topics);

	create_missing(relay, topics, partitions, queue);
	add_partitions(relay, topics, partitions, queue);
	rd_kafka_queue_destroy(queue);
}

/* Wait for the created topics: other brokers may know them only a while later. */
static int wait_for_topics(struct relay *relay, struct topics *topics)
{
	unsigned int times;
	int status;

	for (times = 0; times < QUERY_TIMES; times++) {
		status = query_partitions(relay, topics);
		if (status || all_exist(topics))
			return status;
		usleep(QUERY_EVERY_MS * 1000);
	}
	return 0;
}

int relay_topics_open(struct relay *relay)
{
	struct topics topics;
	int status;

	name_topics(relay, &topics);
	status = query_partitions(relay, &topics);
	if (!status && relay->options.create) {
		create(relay, &topics);
		status = wait_for_topics(relay, &topics);
	}
	status = status ?: judge(relay, &topics);
	if (!status)
		relay_settings_ask(relay);
	return status;
}
