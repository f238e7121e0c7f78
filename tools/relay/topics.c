// SPDX-License-Identifier: GPL-2.0
/*
 * Topics: that of delays, a bucket for each width, the map of what is done, the list of what is
 * taken back, and that of invalid records.
 *
 * A record keeps the number of its partition in all of them except the last. So a partition of
 * the topic of delays needs one of the same number in each bucket and in the two compacted
 * topics. Where these are missing, the relay runs, and that partition waits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "relay/create.h"
#include "relay/query.h"
#include "relay/settings.h"
#include "relay/state.h"
#include "relay/topics.h"

#define TIMEOUT_MS	30000

/* How long brokers may take to know a topic that was created; and one to answer. */
#define KNOWN_MS	60000
#define QUERY_MS	3000
#define QUERY_EVERY_MS	200

/* More replicas than this are not wanted, unless an option says so. */
#define REPLICAS	3

#define MS_PER_S	1000ULL

/* --- names ---------------------------------------------------------------------------- */

static struct relay_topic *add(struct relay_topics *topics, enum relay_topic_role role)
{
	struct relay_topic *topic = &topics->topic[topics->nr++];

	topic->role = role;
	return topic;
}

static void add_suffix(struct relay_topics *topics, enum relay_topic_role role,
		       const struct relay_rules *rules, const char *suffix)
{
	struct relay_topic *topic = add(topics, role);

	snprintf(topic->name, sizeof(topic->name), "%s%s", rules->topic, suffix);
}

void relay_topics_init(struct relay_topics *topics, const struct relay_options *options,
		       const struct relay_rules *rules)
{
	struct relay_topic *topic;
	unsigned int i;

	memset(topics, 0, sizeof(*topics));
	add_suffix(topics, RELAY_TOPIC_DELAYS, rules, "");
	/* A record that is near is not done before it is delivered. */
	topics->topic[0].least_ms = 2 * options->horizon_ms;
	for (i = 0; i < rules->nr_buckets; i++) {
		topic = add(topics, RELAY_TOPIC_BUCKET);
		relay_bucket_name(rules, rules->width_s[i], topic->name);
		topic->least_ms = 2 * rules->width_s[i] * MS_PER_S;
	}
	add_suffix(topics, RELAY_TOPIC_DONE, rules, RELAY_DONE_SUFFIX);
	add_suffix(topics, RELAY_TOPIC_CANCELLED, rules, RELAY_CANCELLED_SUFFIX);
	add_suffix(topics, RELAY_TOPIC_INVALID, rules, RELAY_INVALID_SUFFIX);
}

/* --- what the brokers have ------------------------------------------------------------ */

static void fill(struct relay_topic *topic, const struct rd_kafka_metadata_topic *found)
{
	int i;

	topic->partitions = found->partition_cnt;
	topic->replicas = found->partition_cnt ? found->partitions[0].replica_cnt : 0;
	for (i = 1; i < found->partition_cnt; i++)
		if (found->partitions[i].replica_cnt < topic->replicas)
			topic->replicas = found->partitions[i].replica_cnt;
}

void relay_topics_fill(struct relay_topics *topics, const struct rd_kafka_metadata *metadata)
{
	unsigned int i;
	int k;

	topics->nr_brokers = metadata->broker_cnt;
	for (i = 0; i < topics->nr; i++) {
		topics->topic[i].partitions = 0;
		for (k = 0; k < metadata->topic_cnt; k++)
			if (!strcmp(metadata->topics[k].topic, topics->topic[i].name) &&
			    !metadata->topics[k].err)
				fill(&topics->topic[i], &metadata->topics[k]);
	}
}

/* --- judging -------------------------------------------------------------------------- */

int relay_topics_least(const struct relay_topics *topics, unsigned int i)
{
	const enum relay_topic_role same = RELAY_TOPIC_BUCKET | RELAY_TOPIC_DONE |
		RELAY_TOPIC_CANCELLED;

	return topics->topic[i].role & same && topics->topic[0].partitions ?
		topics->topic[0].partitions : 1;
}

bool relay_topics_complete(const struct relay_topics *topics)
{
	unsigned int i;

	for (i = 0; i < topics->nr; i++)
		if (topics->topic[i].partitions < relay_topics_least(topics, i))
			return false;
	return true;
}

int relay_topics_replicas(const struct relay_topics *topics, const struct relay_options *options)
{
	if (options->replicas)
		return options->replicas;
	return topics->nr_brokers < REPLICAS ? topics->nr_brokers : REPLICAS;
}

static void judge_partitions(const struct relay_topics *topics, unsigned int i, const char *hint)
{
	const struct relay_topic *topic = &topics->topic[i];
	int least = relay_topics_least(topics, i);

	if (topic->partitions < least)
		log_say(LOG_ERR,
			"%s has %d partitions, and should have %d, %s: partitions of %s from number %d on wait",
			topic->name, topic->partitions, least, hint, topics->topic[0].name,
			topic->partitions);
}

static void judge_replicas(const struct relay_topic *topic, int replicas)
{
	if (topic->replicas < replicas)
		log_say(LOG_WARNING,
			"%s has replication factor %d, and should have %d: the loss of a broker can lose records",
			topic->name, topic->replicas, replicas);
}

bool relay_topics_judge(const struct relay_topics *topics, const struct relay_options *options)
{
	const char *hint = options->create ? "and --create did not work" :
		"and --create was not given";
	int replicas = relay_topics_replicas(topics, options);
	bool missing = false;
	unsigned int i;

	for (i = 0; i < topics->nr; i++) {
		const struct relay_topic *topic = &topics->topic[i];

		if (topic->partitions) {
			judge_partitions(topics, i, hint);
			judge_replicas(topic, replicas);
			continue;
		}
		log_say(LOG_ERR, "there is no topic %s, %s; or no right to describe it",
			topic->name, hint);
		missing = true;
	}
	return missing;
}

/* --- at the start --------------------------------------------------------------------- */

/* Returns NULL and logs that, if brokers do not answer. */
static const struct rd_kafka_metadata *query(struct relay *relay)
{
	const struct rd_kafka_metadata *metadata;
	rd_kafka_resp_err_t error;

	error = rd_kafka_metadata(relay->consumer, 1, NULL, &metadata, TIMEOUT_MS);
	if (!error)
		return metadata;
	log_say(LOG_ERR, "%s does not answer: %s", relay->options.brokers,
		rd_kafka_err2str(error));
	return NULL;
}

/* Returns whether it was done. */
static bool wait_answer(rd_kafka_queue_t *queue)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);

	if (event)
		return relay_create_answered(event);
	log_say(LOG_ERR, "creating topics: brokers do not answer");
	return false;
}

/* Returns whether all is there now, because it was created. */
static bool create(struct relay *relay, const struct relay_topics *topics)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(relay->consumer);
	bool created = !relay_topics_complete(topics);

	if (relay_create_topics(relay, topics, queue))
		created &= wait_answer(queue);
	if (relay_create_partitions(relay, topics, queue))
		created &= wait_answer(queue);
	rd_kafka_queue_destroy(queue);
	return created;
}

/* Does this broker know that all is complete? */
static bool knows(struct relay *relay, const struct rd_kafka_metadata_broker *broker)
{
	const struct rd_kafka_metadata *metadata;
	struct relay_topics topics;

	metadata = relay_query_broker(relay->consumer, broker, QUERY_MS);
	if (!metadata)
		return false;
	relay_topics_init(&topics, &relay->options, &relay->rules);
	relay_topics_fill(&topics, metadata);
	rd_kafka_metadata_destroy(metadata);
	return relay_topics_complete(&topics);
}

static bool all_know(struct relay *relay, const struct rd_kafka_metadata *metadata)
{
	int i;

	for (i = 0; i < metadata->broker_cnt; i++)
		if (!knows(relay, &metadata->brokers[i]))
			return false;
	return true;
}

/*
 * Wait until all brokers know what was created. The one that coordinates the group is asked for
 * the partitions when they are assigned; those that it does not know yet would remain without a
 * relay until the next rebalance.
 */
static void wait_until_known(struct relay *relay, const struct rd_kafka_metadata *metadata)
{
	uint64_t end_ms = relay_boot_ms() + KNOWN_MS;

	while (!all_know(relay, metadata)) {
		if (relay_boot_ms() > end_ms) {
			log_say(LOG_WARNING,
				"not all brokers know the topics: some partitions may have no relay until another relay starts or ends");
			break;
		}
		usleep(QUERY_EVERY_MS * 1000);
	}
}

/* Create what is missing. Returns the new metadata; NULL: brokers do not answer. */
static const struct rd_kafka_metadata *complete(struct relay *relay, struct relay_topics *topics,
						const struct rd_kafka_metadata *metadata)
{
	if (create(relay, topics))
		wait_until_known(relay, metadata);
	rd_kafka_metadata_destroy(metadata);
	metadata = query(relay);
	if (metadata)
		relay_topics_fill(topics, metadata);
	return metadata;
}

int relay_topics_open(struct relay *relay)
{
	const struct rd_kafka_metadata *metadata = query(relay);
	struct relay_topics topics;

	if (!metadata)
		return EXIT_CANNOT;
	relay_topics_init(&topics, &relay->options, &relay->rules);
	relay_topics_fill(&topics, metadata);
	if (relay->options.create)
		metadata = complete(relay, &topics, metadata);
	if (!metadata)
		return EXIT_CANNOT;
	rd_kafka_metadata_destroy(metadata);
	if (relay_topics_judge(&topics, &relay->options))
		return EXIT_CANNOT;
	return relay_settings_start(relay, &topics);
}
