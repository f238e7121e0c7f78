// SPDX-License-Identifier: GPL-2.0
/*
 * Topics: that of delays, a bucket for each width, and that of the invalid. They are made
 * where they are missing and --create was told; and looked at, always: a bucket with fewer
 * partitions than the topic of delays could not take what has to keep its partition.
 *
 * A bucket keeps records for twice its width and a week more. Time for retention is that of
 * records, which for those parked is when they were parked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "relay.h"
#include "subcommand.h"

#define TIMEOUT_MS		30000
#define WHY_SIZE		512

/* How long brokers may take to know what was made. */
#define LOOK_TIMES		20
#define LOOK_EVERY_MS		500

#define DEFAULT_PARTITIONS	12
#define RETENTION_EXTRA_MS	(7 * 24 * 3600 * 1000ULL)
/* Of a record; eight times what brokers take if they are not told. */
#define MESSAGE_BYTES		"8388608"

/* Delays, buckets and the invalid. */
#define TOPICS_MAX		(RELAY_BUCKETS_MAX + 2)

/**
 * struct topic - one that there should be
 * @name: its name.
 * @is_input: it is that of delays.
 * @retention_ms: how long records are kept; 0: as the brokers say.
 * @partitions: how many it has; 0: there is none.
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

/* The first is that of delays, the last that of the invalid. */
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

/* --- looking -------------------------------------------------------------------------- */

static int partitions_of(const struct rd_kafka_metadata *metadata, const char *name)
{
	int i;

	for (i = 0; i < metadata->topic_cnt; i++)
		if (!strcmp(metadata->topics[i].topic, name) && !metadata->topics[i].err)
			return metadata->topics[i].partition_cnt;
	return 0;
}

/* Returns an exit status. */
static int look(struct relay *relay, struct topics *topics)
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

/* Is this one whose partitions have to be as many as those of delays? */
static bool is_bucket(const struct topics *topics, unsigned int i)
{
	return i > 0 && i < topics->nr - 1;
}

/* How many partitions a topic has to have. */
static int least_of(const struct topics *topics, unsigned int i)
{
	return is_bucket(topics, i) && topics->topic[0].partitions ?
		topics->topic[0].partitions : 1;
}

static bool all_are_there(const struct topics *topics)
{
	unsigned int i;

	for (i = 0; i < topics->nr; i++)
		if (topics->topic[i].partitions < least_of(topics, i))
			return false;
	return true;
}

/* Say what is wrong with a topic; returns whether something is. */
static bool is_wrong(const struct relay *relay, const struct topics *topics, unsigned int i)
{
	const char *hint = relay->options.create ? "and it could not be made" :
		"and --create was not told";
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

/* --- making --------------------------------------------------------------------------- */

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
	/* Whatever brokers do with topics if nothing is said. */
	rd_kafka_NewTopic_set_config(new, "cleanup.policy", "delete");
	rd_kafka_NewTopic_set_config(new, "retention.bytes", "-1");
	if (topic->retention_ms) {
		snprintf(number, sizeof(number), "%" PRIu64, topic->retention_ms);
		rd_kafka_NewTopic_set_config(new, "retention.ms", number);
	}
	/* Records grow on their way, by headers. */
	if (!topic->is_input)
		rd_kafka_NewTopic_set_config(new, "max.message.bytes", MESSAGE_BYTES);
	return new;
}

/* Say what did not work. */
static void say_result(const rd_kafka_topic_result_t **results, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		rd_kafka_resp_err_t error = rd_kafka_topic_result_error(results[i]);

		/* Another relay may have been faster. */
		if (error && error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
			log_say(LOG_ERR, "%s: %s", rd_kafka_topic_result_name(results[i]),
				rd_kafka_topic_result_error_string(results[i]));
	}
}

static void say_results(rd_kafka_event_t *event)
{
	const rd_kafka_CreatePartitions_result_t *added;
	const rd_kafka_CreateTopics_result_t *made;
	const rd_kafka_topic_result_t **results;
	size_t nr;

	made = rd_kafka_event_CreateTopics_result(event);
	added = rd_kafka_event_CreatePartitions_result(event);
	if (made)
		results = rd_kafka_CreateTopics_result_topics(made, &nr);
	else
		results = rd_kafka_CreatePartitions_result_topics(added, &nr);
	say_result(results, nr);
}

static void wait_result(rd_kafka_queue_t *queue)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);

	if (!event)
		log_say(LOG_ERR, "topics: no answer");
	else if (rd_kafka_event_error(event))
		log_say(LOG_WARNING, "topics: %s", rd_kafka_event_error_string(event));
	else
		say_results(event);
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
		log_say(LOG_NOTICE, "making %s with %d partitions", topics->topic[i].name,
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
		log_say(LOG_NOTICE, "%s gets %d partitions", topic->name, partitions);
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

/* Those that were made: other brokers may hear of them a while later. */
static int look_again(struct relay *relay, struct topics *topics)
{
	unsigned int times;
	int status;

	for (times = 0; times < LOOK_TIMES; times++) {
		status = look(relay, topics);
		if (status || all_are_there(topics))
			return status;
		usleep(LOOK_EVERY_MS * 1000);
	}
	return 0;
}

int relay_topics_open(struct relay *relay)
{
	struct topics topics;
	int status;

	name_topics(relay, &topics);
	status = look(relay, &topics);
	if (!status && relay->options.create) {
		create(relay, &topics);
		status = look_again(relay, &topics);
	}
	status = status ?: judge(relay, &topics);
	if (!status)
		relay_settings_ask(relay);
	return status;
}
