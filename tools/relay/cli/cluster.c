// SPDX-License-Identifier: GPL-2.0
/* What brokers say. */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "common/exit.h"
#include "relay/cli/cluster.h"

/* How long to wait before a question is put again. */
#define AGAIN_MS	200

/* --- topics ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct place *left = a, *right = b;
	int order = (left->width_ms > right->width_ms) - (left->width_ms < right->width_ms);

	order = order ?: strcmp(left->topic, right->topic);
	return order ?: (left->number > right->number) - (left->number < right->number);
}

static bool is_ours(const struct cluster *cluster, const char *topic, uint64_t *width_ms)
{
	*width_ms = 0;
	return !strcmp(topic, cluster->rules.topic) ||
		relay_is_bucket(&cluster->rules, topic, width_ms);
}

static void add_places(struct cluster *cluster, const struct rd_kafka_metadata_topic *topic)
{
	uint64_t width_ms;
	int i;

	if (topic->err || !is_ours(cluster, topic->topic, &width_ms))
		return;
	cluster->place = command_memory(reallocarray(cluster->place,
						     cluster->nr + topic->partition_cnt,
						     sizeof(*cluster->place)));
	for (i = 0; i < topic->partition_cnt; i++)
		cluster->place[cluster->nr++] = (struct place){
			.topic = topic->topic, .number = topic->partitions[i].id,
			.width_ms = width_ms, .committed = -1, .low = -1, .end = -1,
			.generation = -1,
		};
}

void cluster_open(struct cluster *cluster, const struct command *command, uint64_t horizon_ms)
{
	rd_kafka_resp_err_t error;
	int i;

	*cluster = (struct cluster){ .command = command };
	relay_rules_init(&cluster->rules, command->topic, horizon_ms, command->scale);
	cluster->client = command_consumer(command, command->group);
	error = rd_kafka_metadata(cluster->client, 1, NULL, &cluster->metadata,
				  COMMAND_TIMEOUT_MS);
	if (error)
		errx(EXIT_CANNOT, "%s does not answer: %s", command->brokers,
		     rd_kafka_err2str(error));
	for (i = 0; i < cluster->metadata->topic_cnt; i++)
		add_places(cluster, &cluster->metadata->topics[i]);
	qsort(cluster->place, cluster->nr, sizeof(*cluster->place), compare);
}

void cluster_close(struct cluster *cluster)
{
	size_t i;

	for (i = 0; i < cluster->nr; i++)
		done_map_free(&cluster->place[i].done);
	free(cluster->place);
	rd_kafka_metadata_destroy(cluster->metadata);
	rd_kafka_destroy_flags(cluster->client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

int cluster_partitions(const struct cluster *cluster, const char *topic)
{
	const struct rd_kafka_metadata *metadata = cluster->metadata;
	int i;

	for (i = 0; i < metadata->topic_cnt; i++)
		if (!strcmp(metadata->topics[i].topic, topic) && !metadata->topics[i].err)
			return metadata->topics[i].partition_cnt;
	return 0;
}

struct place *cluster_find(const struct cluster *cluster, const char *topic, int32_t number)
{
	struct place key = { .topic = topic, .number = number };

	if (!is_ours(cluster, topic, &key.width_ms))
		return NULL;
	return bsearch(&key, cluster->place, cluster->nr, sizeof(key), compare);
}

/* --- asking again ------------------------------------------------------------------------- */

/* librdkafka 2.0.2 does not ask again itself, when it asks on behalf of an administrator. */
bool cluster_again(rd_kafka_resp_err_t error, uint64_t end_ms)
{
	switch (error) {
	case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
	case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
	case RD_KAFKA_RESP_ERR__TRANSPORT:
	case RD_KAFKA_RESP_ERR__TIMED_OUT:
		break;
	default:
		return false;
	}
	if (command_now_ms() > end_ms)
		return false;
	usleep(AGAIN_MS * 1000);
	return true;
}

/* --- offsets ------------------------------------------------------------------------------ */

/* The error of an answer, or of one of its partitions. */
static rd_kafka_resp_err_t times_error(rd_kafka_resp_err_t error,
				       const rd_kafka_topic_partition_list_t *list)
{
	int i;

	for (i = 0; !error && i < list->cnt; i++)
		error = list->elems[i].err;
	return error;
}

/*
 * The answers to a question about offsets, in the order of the list. Partitions may have errors
 * that last. Others pass: a topic was made, or a leader elected, a moment ago.
 */
static void ask_times(const struct cluster *cluster, rd_kafka_topic_partition_list_t *list)
{
	rd_kafka_topic_partition_list_t *question = rd_kafka_topic_partition_list_copy(list);
	uint64_t end_ms = command_now_ms() + COMMAND_TIMEOUT_MS;
	rd_kafka_resp_err_t error;
	int i;

	if (!list->cnt)
		goto out;
	do {
		for (i = 0; i < list->cnt; i++) {
			list->elems[i].offset = question->elems[i].offset;
			list->elems[i].err = 0;
		}
		error = rd_kafka_offsets_for_times(cluster->client, list, COMMAND_TIMEOUT_MS);
	} while (cluster_again(times_error(error, list), end_ms));
	if (error)
		errx(EXIT_CANNOT, "brokers do not say which offsets there are: %s",
		     rd_kafka_err2str(error));
out:
	rd_kafka_topic_partition_list_destroy(question);
}

static rd_kafka_topic_partition_list_t *list_places(const struct cluster *cluster,
						    int64_t (*time)(const struct place *place,
								    uint64_t now_ms),
						    uint64_t now_ms)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(cluster->nr);
	size_t i;

	for (i = 0; i < cluster->nr; i++)
		rd_kafka_topic_partition_list_add(list, cluster->place[i].topic,
						  cluster->place[i].number)->offset =
			time(&cluster->place[i], now_ms);
	return list;
}

static int64_t at_beginning(const struct place *place, uint64_t now_ms)
{
	(void)place;
	(void)now_ms;
	return RD_KAFKA_OFFSET_BEGINNING;
}

static int64_t at_end(const struct place *place, uint64_t now_ms)
{
	(void)place;
	(void)now_ms;
	return RD_KAFKA_OFFSET_END;
}

static int64_t at_ready(const struct place *place, uint64_t now_ms)
{
	return place->width_ms ? (int64_t)(now_ms - place->width_ms) : RD_KAFKA_OFFSET_END;
}

static int64_t note(struct place *place, const rd_kafka_topic_partition_t *answer)
{
	if (!answer->err)
		return answer->offset;
	place->error = rd_kafka_err2str(answer->err);
	return -1;
}

/* The error of an answer about groups: of the whole, or of the group; @why is in words. */
static rd_kafka_resp_err_t committed_error(rd_kafka_event_t *event, const char **why)
{
	const rd_kafka_ListConsumerGroupOffsets_result_t *result;
	const rd_kafka_group_result_t **groups;
	const rd_kafka_error_t *error;
	size_t nr;

	*why = event ? rd_kafka_event_error_string(event) : "time is over";
	if (!event || rd_kafka_event_error(event))
		return event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
	result = rd_kafka_event_ListConsumerGroupOffsets_result(event);
	groups = rd_kafka_ListConsumerGroupOffsets_result_groups(result, &nr);
	error = nr ? rd_kafka_group_result_error(groups[0]) : NULL;
	*why = error ? rd_kafka_error_string(error) : "no answer";
	return error ? rd_kafka_error_code(error) : nr ? 0 : RD_KAFKA_RESP_ERR__FAIL;
}

static rd_kafka_event_t *ask_group_offsets(const struct cluster *cluster,
					   const rd_kafka_topic_partition_list_t *list)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(cluster->client);
	rd_kafka_ListConsumerGroupOffsets_t *question;
	rd_kafka_event_t *event;

	question = rd_kafka_ListConsumerGroupOffsets_new(cluster->command->group, list);
	rd_kafka_ListConsumerGroupOffsets(cluster->client, &question, 1, NULL, queue);
	event = rd_kafka_queue_poll(queue, COMMAND_TIMEOUT_MS);
	rd_kafka_ListConsumerGroupOffsets_destroy(question);
	rd_kafka_queue_destroy(queue);
	return event;
}

static void note_committed(struct cluster *cluster, rd_kafka_event_t *event)
{
	const rd_kafka_ListConsumerGroupOffsets_result_t *result;
	const rd_kafka_topic_partition_list_t *answer;
	const rd_kafka_group_result_t **groups;
	size_t nr;
	int i;

	result = rd_kafka_event_ListConsumerGroupOffsets_result(event);
	groups = rd_kafka_ListConsumerGroupOffsets_result_groups(result, &nr);
	answer = rd_kafka_group_result_partitions(groups[0]);
	for (i = 0; i < answer->cnt; i++) {
		struct place *place = cluster_find(cluster, answer->elems[i].topic,
						   answer->elems[i].partition);

		if (place)
			place->committed = note(place, &answer->elems[i]);
	}
}

static void ask_committed(struct cluster *cluster)
{
	rd_kafka_topic_partition_list_t *list = list_places(cluster, at_end, 0);
	uint64_t end_ms = command_now_ms() + COMMAND_TIMEOUT_MS;
	rd_kafka_event_t *event = ask_group_offsets(cluster, list);
	rd_kafka_resp_err_t error;
	const char *why;

	while ((error = committed_error(event, &why)) && cluster_again(error, end_ms)) {
		if (event)
			rd_kafka_event_destroy(event);
		event = ask_group_offsets(cluster, list);
	}
	if (error)
		errx(EXIT_CANNOT, "brokers do not say what group %s has committed: %s",
		     cluster->command->group, why);
	note_committed(cluster, event);
	rd_kafka_event_destroy(event);
	rd_kafka_topic_partition_list_destroy(list);
}

void cluster_ask(struct cluster *cluster)
{
	rd_kafka_topic_partition_list_t *low, *end;
	size_t i;

	if (!cluster->nr)
		return;
	/* First what is committed: it does not exceed an end that is asked for later. */
	ask_committed(cluster);
	low = list_places(cluster, at_beginning, 0);
	end = list_places(cluster, at_end, 0);
	ask_times(cluster, low);
	ask_times(cluster, end);
	for (i = 0; i < cluster->nr; i++) {
		cluster->place[i].low = note(&cluster->place[i], &low->elems[i]);
		cluster->place[i].end = note(&cluster->place[i], &end->elems[i]);
		cluster->place[i].ready = cluster->place[i].end;
	}
	rd_kafka_topic_partition_list_destroy(low);
	rd_kafka_topic_partition_list_destroy(end);
}

void cluster_ask_ready(struct cluster *cluster, uint64_t now_ms)
{
	rd_kafka_topic_partition_list_t *list = list_places(cluster, at_ready, now_ms);
	size_t i;

	ask_times(cluster, list);
	for (i = 0; i < cluster->nr; i++) {
		struct place *place = &cluster->place[i];

		/* If no record is so young, the answer is the end, or a negative number. */
		if (place->width_ms && !list->elems[i].err && list->elems[i].offset >= 0)
			place->ready = MIN(list->elems[i].offset, place->end);
	}
	rd_kafka_topic_partition_list_destroy(list);
}

size_t cluster_ask_topic(const struct cluster *cluster, const char *topic,
			 struct scan_part **parts)
{
	int nr = cluster_partitions(cluster, topic), i;
	rd_kafka_topic_partition_list_t *low = rd_kafka_topic_partition_list_new(nr + 1);
	rd_kafka_topic_partition_list_t *end = rd_kafka_topic_partition_list_new(nr + 1);

	*parts = command_memory(calloc(nr + 1, sizeof(**parts)));
	for (i = 0; i < nr; i++) {
		rd_kafka_topic_partition_list_add(low, topic, i)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
		rd_kafka_topic_partition_list_add(end, topic, i)->offset = RD_KAFKA_OFFSET_END;
	}
	ask_times(cluster, low);
	ask_times(cluster, end);
	for (i = 0; i < nr; i++) {
		if (low->elems[i].err || end->elems[i].err)
			errx(EXIT_CANNOT, "%s [%d]: %s", topic, i,
			     rd_kafka_err2str(low->elems[i].err ?: end->elems[i].err));
		(*parts)[i] = (struct scan_part){
			.topic = topic, .number = i, .from = low->elems[i].offset,
			.to = end->elems[i].offset,
		};
	}
	rd_kafka_topic_partition_list_destroy(low);
	rd_kafka_topic_partition_list_destroy(end);
	return nr;
}

/* --- what is done ------------------------------------------------------------------------- */

static void add_piece(struct place *place, const struct piece_key *key, const struct piece *piece)
{
	if (done_map_add(&place->done, key->begin, key->generation, piece))
		errx(EXIT_CANNOT, "out of memory for the map of done offsets");
	place->generation = MAX(place->generation, key->generation);
	if (key->begin == PIECE_LOW)
		return;
	if (place->done_end == 0 || key->begin < place->done_begin)
		place->done_begin = key->begin;
	place->done_end = MAX(place->done_end, key->begin + PIECE_SPAN);
}

static bool read_piece(const struct scan_part *part, const rd_kafka_message_t *message,
		       void *context)
{
	struct cluster *cluster = context;
	struct piece_key key;
	struct place *place;
	struct piece piece;

	(void)part;
	if (!piece_key_read(&key, message->key, message->key_len))
		return true;
	place = cluster_find(cluster, key.topic, key.partition);
	if (!place)
		return true;
	if (!message->payload)
		done_map_remove(&place->done, key.begin, key.generation);
	else if (piece_read(&piece, key.begin == PIECE_LOW, message->payload, message->len))
		add_piece(place, &key, &piece);
	return true;
}

bool cluster_read_done(struct cluster *cluster)
{
	char topic[RELAY_TOPIC_MAX + 32];
	struct scan_part *parts;
	size_t nr;

	snprintf(topic, sizeof(topic), "%s" RELAY_DONE_SUFFIX, cluster->rules.topic);
	if (!cluster_partitions(cluster, topic))
		return false;
	nr = cluster_ask_topic(cluster, topic, &parts);
	scan(cluster->client, parts, nr, read_piece, cluster);
	free(parts);
	return true;
}

/* --- places ------------------------------------------------------------------------------- */

int64_t place_start(const struct place *place)
{
	int64_t floor = place->committed;

	if (floor < 0)
		floor = done_map_low(&place->done);
	return MAX(floor, place->low);
}

uint64_t place_done(const struct place *place, int64_t from, int64_t to)
{
	int64_t offset, end = MIN(to, place->done_end);
	uint64_t done = 0;

	for (offset = MAX(from, place->done_begin); offset < end; offset++)
		done += done_map_has(&place->done, false, offset, -1, -1);
	return done;
}

const char *place_stopped(const struct place *place, char why[PLACE_WHY])
{
	int64_t floor = place->committed;

	if (place->low < 0 || place->end < 0)
		return NULL;
	if (floor < 0)
		floor = done_map_low(&place->done);
	if (floor < 0 && place->low)
		snprintf(why, PLACE_WHY, "nothing is committed, and the records before %" PRId64
			 " are deleted", place->low);
	else if (floor >= 0 && floor < place->low)
		snprintf(why, PLACE_WHY, "records %" PRId64 " to %" PRId64
			 " are deleted, which no relay has committed", floor, place->low - 1);
	else if (floor > place->end)
		snprintf(why, PLACE_WHY, "the committed offset %" PRId64 " is beyond the end, %"
			 PRId64, floor, place->end);
	else
		return NULL;
	return why;
}

size_t cluster_parts(const struct cluster *cluster, struct scan_part **parts)
{
	size_t i, nr = 0;

	*parts = command_memory(calloc(cluster->nr + 1, sizeof(**parts)));
	for (i = 0; i < cluster->nr; i++) {
		struct place *place = &cluster->place[i];

		if (place->low < 0 || place_start(place) >= place->end)
			continue;
		(*parts)[nr++] = (struct scan_part){
			.topic = place->topic, .number = place->number,
			.from = place_start(place), .to = place->end, .context = place,
		};
	}
	return nr;
}

/* --- the group ---------------------------------------------------------------------------- */

static rd_kafka_event_t *ask_description(const struct cluster *cluster)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(cluster->client);
	const char *name = cluster->command->group;
	rd_kafka_event_t *event;

	rd_kafka_DescribeConsumerGroups(cluster->client, &name, 1, NULL, queue);
	event = rd_kafka_queue_poll(queue, COMMAND_TIMEOUT_MS);
	rd_kafka_queue_destroy(queue);
	return event;
}

static rd_kafka_resp_err_t description_error(rd_kafka_event_t *event, const char **why,
					     const rd_kafka_ConsumerGroupDescription_t **group)
{
	const rd_kafka_DescribeConsumerGroups_result_t *result;
	const rd_kafka_ConsumerGroupDescription_t **groups;
	const rd_kafka_error_t *error;
	size_t nr;

	*why = event ? rd_kafka_event_error_string(event) : "time is over";
	if (!event || rd_kafka_event_error(event))
		return event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
	result = rd_kafka_event_DescribeConsumerGroups_result(event);
	groups = rd_kafka_DescribeConsumerGroups_result_groups(result, &nr);
	*why = "no answer";
	if (!nr)
		return RD_KAFKA_RESP_ERR__FAIL;
	*group = groups[0];
	error = rd_kafka_ConsumerGroupDescription_error(groups[0]);
	*why = error ? rd_kafka_error_string(error) : NULL;
	return error ? rd_kafka_error_code(error) : 0;
}

rd_kafka_event_t *cluster_ask_group(const struct cluster *cluster,
				    const rd_kafka_ConsumerGroupDescription_t **group)
{
	uint64_t end_ms = command_now_ms() + COMMAND_TIMEOUT_MS;
	rd_kafka_event_t *event = ask_description(cluster);
	rd_kafka_resp_err_t error;
	const char *why;

	while ((error = description_error(event, &why, group)) && cluster_again(error, end_ms)) {
		if (event)
			rd_kafka_event_destroy(event);
		event = ask_description(cluster);
	}
	if (error)
		errx(EXIT_CANNOT, "brokers do not describe group %s: %s", cluster->command->group,
		     why);
	return event;
}

/* Brokers write "/127.0.0.1". */
const char *cluster_host(const rd_kafka_MemberDescription_t *member)
{
	const char *host = rd_kafka_MemberDescription_host(member) ?: "";

	return host + (*host == '/');
}
