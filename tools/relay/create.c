// SPDX-License-Identifier: GPL-2.0
/* Creates topics, with the settings that they should have, and adds partitions. */
#include <stdio.h>

#include "common/log.h"
#include "relay/create.h"
#include "relay/wanted.h"

#define WHY_SIZE		512
#define DEFAULT_PARTITIONS	12

/* At least as many as the topic of delays has: a record keeps the number of its partition. */
static int wanted_partitions(const struct relay *relay, const struct relay_topics *topics)
{
	int option = relay->options.partitions, have = topics->topic[0].partitions;

	if (!have && !option)
		return DEFAULT_PARTITIONS;
	return option > have ? option : have;
}

/* --- topics --------------------------------------------------------------------------- */

static rd_kafka_NewTopic_t *new_topic(const struct relay_topic *topic, int partitions,
				      int replicas)
{
	struct relay_topic made = *topic;
	char why[WHY_SIZE], value[RELAY_WANTED_TEXT];
	rd_kafka_NewTopic_t *new;
	const char *name;
	unsigned int i;

	new = rd_kafka_NewTopic_new(topic->name, partitions, replicas, why, sizeof(why));
	if (!new) {
		log_say(LOG_ERR, "cannot create %s: %s", topic->name, why);
		return NULL;
	}
	made.replicas = replicas;
	/* Whatever the brokers' defaults are. */
	for (i = 0; i < relay_wanted_nr(); i++) {
		name = relay_wanted(&made, i, value);
		if (name)
			rd_kafka_NewTopic_set_config(new, name, value);
	}
	return new;
}

bool relay_create_topics(struct relay *relay, const struct relay_topics *topics,
			 rd_kafka_queue_t *queue)
{
	int replicas = relay_topics_replicas(topics, &relay->options);
	int partitions = wanted_partitions(relay, topics);
	rd_kafka_NewTopic_t *new[RELAY_TOPICS_MAX];
	unsigned int i;
	size_t nr = 0;

	for (i = 0; i < topics->nr; i++) {
		if (topics->topic[i].partitions)
			continue;
		new[nr] = new_topic(&topics->topic[i], partitions, replicas);
		if (!new[nr])
			continue;
		log_say(LOG_NOTICE, "creating %s with %d partitions and replication factor %d",
			topics->topic[i].name, partitions, replicas);
		nr++;
	}
	if (!nr)
		return false;
	rd_kafka_CreateTopics(relay->consumer, new, nr, NULL, queue);
	rd_kafka_NewTopic_destroy_array(new, nr);
	return true;
}

/* --- partitions ----------------------------------------------------------------------- */

static bool needs_partitions(const struct relay_topic *topic, int partitions)
{
	const enum relay_topic_role same = RELAY_TOPIC_BUCKET | RELAY_TOPIC_DONE |
		RELAY_TOPIC_CANCELLED;

	return topic->role & same && topic->partitions && topic->partitions < partitions;
}

bool relay_create_partitions(struct relay *relay, const struct relay_topics *topics,
			     rd_kafka_queue_t *queue)
{
	int partitions = wanted_partitions(relay, topics);
	rd_kafka_NewPartitions_t *new[RELAY_TOPICS_MAX];
	char why[WHY_SIZE];
	unsigned int i;
	size_t nr = 0;

	for (i = 0; i < topics->nr; i++) {
		const struct relay_topic *topic = &topics->topic[i];

		if (!needs_partitions(topic, partitions))
			continue;
		new[nr] = rd_kafka_NewPartitions_new(topic->name, partitions, why, sizeof(why));
		if (!new[nr])
			continue;
		log_say(LOG_NOTICE, "adding partitions to %s, up to %d", topic->name, partitions);
		nr++;
	}
	if (!nr)
		return false;
	rd_kafka_CreatePartitions(relay->consumer, new, nr, NULL, queue);
	rd_kafka_NewPartitions_destroy_array(new, nr);
	return true;
}

/* --- answers -------------------------------------------------------------------------- */

/* Another relay may have done the same first. What is missing then is found when it is judged. */
static bool is_fine(rd_kafka_resp_err_t error)
{
	return !error || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS ||
		error == RD_KAFKA_RESP_ERR_INVALID_PARTITIONS;
}

static bool check_results(const rd_kafka_topic_result_t **results, size_t nr)
{
	bool fine = true;
	size_t i;

	for (i = 0; i < nr; i++) {
		rd_kafka_resp_err_t error = rd_kafka_topic_result_error(results[i]);

		if (is_fine(error))
			continue;
		log_say(LOG_ERR, "%s: %s", rd_kafka_topic_result_name(results[i]),
			rd_kafka_topic_result_error_string(results[i]) ?:
			rd_kafka_err2str(error));
		fine = false;
	}
	return fine;
}

static bool check_event(rd_kafka_event_t *event)
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
	return check_results(results, nr);
}

bool relay_create_answered(rd_kafka_event_t *event)
{
	bool fine = !rd_kafka_event_error(event) && check_event(event);

	if (rd_kafka_event_error(event))
		log_say(LOG_ERR, "creating topics: %s", rd_kafka_event_error_string(event));
	rd_kafka_event_destroy(event);
	return fine;
}
