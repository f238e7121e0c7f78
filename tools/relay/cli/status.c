// SPDX-License-Identifier: GPL-2.0
/*
 * twheel-relay status: the group, what waits in each topic, and what is wrong.
 *
 * Offsets tell how many records wait, and whether their bucket's width is over. Whether one of
 * them is late only it can tell: so the first record of each partition is read.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "relay/cli/cluster.h"
#include "relay/cli/record.h"
#include "relay/cli/status.h"

/* A record that is due for less than this is on its way. */
#define LATE_MS		5000

struct status {
	struct command command;
	uint64_t horizon_ms;
	struct cluster cluster;
	uint64_t now_ms;
	json_t *topics;
	json_t *problems;
	bool has_map;
};

/**
 * struct sums - the sums of a topic's partitions
 * @partitions: how many there are.
 * @waiting: records that are not done.
 * @not_ready: those of them whose bucket's width is not over.
 * @done_above: records that are done above one that is not.
 * @oldest_ms: since when the oldest of the first records is there; 0: there is none.
 * @late_ms: how late the latest of them is; 0: none is late.
 * @late: partitions whose first record is late.
 * @stopped: partitions that no relay may read.
 */
struct sums {
	uint64_t partitions;
	uint64_t waiting;
	uint64_t not_ready;
	uint64_t done_above;
	uint64_t oldest_ms;
	uint64_t late_ms;
	uint64_t late;
	uint64_t stopped;
};

/* What the first record of a place says. */
struct head {
	const struct place *place;
	int64_t timestamp_ms;
	uint64_t late_ms;
};

struct heads {
	const struct status *status;
	struct head *head;
	size_t nr;
};

/* --- options ------------------------------------------------------------------------------ */

static void parse_horizon(struct argp_state *state, char *arg, void *values)
{
	struct status *status = values;
	uint64_t ns = 0;

	if (!text_duration(arg, &ns))
		argp_error(state, "--horizon \"%s\" is not a time, such as 10m", arg);
	status->horizon_ms = ns / NSEC_PER_SEC * 1000;
	if (ns % NSEC_PER_SEC || status->horizon_ms < RELAY_HORIZON_MIN_MS ||
	    status->horizon_ms > RELAY_HORIZON_MAX_MS)
		argp_error(state, "--horizon %s is not whole seconds from 1s to 1d", arg);
}

static const struct option_rule rules[] = {
	COMMAND_BROKERS, COMMAND_GROUP, COMMAND_TOPIC, COMMAND_JSON, COMMAND_SETTING,
	COMMAND_CONFIG, COMMAND_SCALE,
	{ "horizon", 0, "DURATION",
	  "That of the relays: it says which buckets there should be (default 10m, from 1s to 1d)",
	  OPTION_OTHER, 0, 0, 0, parse_horizon },
};

/* --- what is wrong ------------------------------------------------------------------------ */

static void complain(struct status *status, const char *format, ...) PRINTF_LIKE(2, 3);

static void complain(struct status *status, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_array_append_new(status->problems, json_string(text));
}

static void need_topic(struct status *status, const char *topic, int least)
{
	int partitions = cluster_partitions(&status->cluster, topic);

	if (!partitions)
		complain(status, "there is no topic %s: start a relay with --create", topic);
	else if (partitions < least)
		complain(status, "%s has %d partitions, and needs %d: start a relay with --create",
			 topic, partitions, least);
}

static void need_topic_of(struct status *status, const char *suffix, int least)
{
	char topic[RELAY_TOPIC_MAX + 32];

	snprintf(topic, sizeof(topic), "%s%s", status->command.topic, suffix);
	need_topic(status, topic, least);
}

static void check_topics(struct status *status)
{
	const struct relay_rules *rules = &status->cluster.rules;
	int least = cluster_partitions(&status->cluster, status->command.topic);
	char topic[RELAY_TOPIC_MAX + 1];
	unsigned int i;

	need_topic(status, status->command.topic, 1);
	for (i = 0; i < rules->nr_buckets; i++) {
		relay_bucket_name(rules, rules->width_s[i], topic);
		need_topic(status, topic, least);
	}
	need_topic_of(status, RELAY_INVALID_SUFFIX, 1);
	need_topic_of(status, RELAY_DONE_SUFFIX, 1);
	need_topic_of(status, RELAY_CANCELLED_SUFFIX, least);
}

static void check_place(struct status *status, const struct place *place, struct sums *sums)
{
	char text[PLACE_WHY];
	const char *why = place_stopped(place, text);

	if (place->error)
		complain(status, "%s [%" PRId32 "]: %s", place->topic, place->number,
			 place->error);
	if (!why)
		return;
	sums->stopped++;
	complain(status, "%s [%" PRId32 "] is stopped: %s; see twheel-relay skip", place->topic,
		 place->number, why);
}

/* --- the first records -------------------------------------------------------------------- */

static bool read_head(const struct scan_part *part, const rd_kafka_message_t *message,
		      void *context)
{
	const struct place *place = part->context;
	struct heads *heads = context;
	struct record record;

	if (record_is_done(place, message))
		return true;
	record_read(&record, &heads->status->cluster.rules, place->width_ms, message,
		    heads->status->now_ms);
	heads->head[heads->nr++] = (struct head){
		.place = place, .timestamp_ms = record.timestamp_ms,
		/* One that is held waits for its target, and not for a relay. */
		.late_ms = record.has_due && !record.tries &&
			record.due_ms + LATE_MS < heads->status->now_ms ?
			heads->status->now_ms - record.due_ms : 0,
	};
	return false;
}

static void read_heads(struct status *status, struct heads *heads)
{
	struct scan_part *parts;
	size_t nr = cluster_parts(&status->cluster, &parts);

	*heads = (struct heads){ .status = status };
	heads->head = command_memory(calloc(nr + 1, sizeof(*heads->head)));
	scan(status->cluster.client, parts, nr, read_head, heads);
	free(parts);
}

static void add_head(const struct heads *heads, const struct place *place, struct sums *sums)
{
	uint64_t age_ms;
	size_t i;

	for (i = 0; i < heads->nr && heads->head[i].place != place; i++)
		;
	if (i == heads->nr)
		return;
	age_ms = heads->status->now_ms - heads->head[i].timestamp_ms;
	if (heads->head[i].timestamp_ms >= 0 && (int64_t)age_ms > 0)
		sums->oldest_ms = MAX(sums->oldest_ms, age_ms);
	sums->late_ms = MAX(sums->late_ms, heads->head[i].late_ms);
	sums->late += !!heads->head[i].late_ms;
}

/* --- sums --------------------------------------------------------------------------------- */

static void add_place(struct status *status, const struct heads *heads,
		      const struct place *place, struct sums *sums)
{
	int64_t start = place_start(place), ready = MAX(place->ready, start);

	sums->partitions++;
	check_place(status, place, sums);
	if (place->low < 0 || place->end <= start)
		return;
	sums->done_above += place_done(place, start, place->end);
	sums->waiting += place->end - start - place_done(place, start, place->end);
	if (place->width_ms && place->end > ready)
		sums->not_ready += place->end - ready - place_done(place, ready, place->end);
	add_head(heads, place, sums);
}

static void add_topic(struct status *status, const struct place *place, const struct sums *sums)
{
	uint64_t width_s = place->width_ms * status->command.scale / 1000;
	json_t *topic = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
				  "topic", place->topic, "width_s", (json_int_t)width_s,
				  "partitions", (json_int_t)sums->partitions,
				  "waiting", (json_int_t)sums->waiting,
				  "not_ready", (json_int_t)sums->not_ready,
				  "done_above", (json_int_t)sums->done_above,
				  "oldest_ms", (json_int_t)sums->oldest_ms,
				  "late_ms", (json_int_t)sums->late_ms,
				  "late_partitions", (json_int_t)sums->late,
				  "stopped", (json_int_t)sums->stopped);

	json_array_append_new(status->topics, command_memory(topic));
}

static void add_topics(struct status *status, const struct heads *heads)
{
	const struct cluster *cluster = &status->cluster;
	struct sums sums = { 0 };
	size_t i;

	for (i = 0; i < cluster->nr; i++) {
		const struct place *place = &cluster->place[i];

		add_place(status, heads, place, &sums);
		if (i + 1 < cluster->nr && !strcmp(place[1].topic, place->topic))
			continue;
		add_topic(status, place, &sums);
		sums = (struct sums){ 0 };
	}
}

/* The records of a topic that nobody reads but people. */
static json_t *count_invalid(const struct status *status)
{
	char topic[RELAY_TOPIC_MAX + 32];
	struct scan_part *parts;
	uint64_t count = 0;
	size_t nr, i;

	snprintf(topic, sizeof(topic), "%s" RELAY_INVALID_SUFFIX, status->command.topic);
	nr = cluster_ask_topic(&status->cluster, topic, &parts);
	for (i = 0; i < nr; i++)
		count += parts[i].to - parts[i].from;
	free(parts);
	return json_integer(count);
}

/* --- the group ---------------------------------------------------------------------------- */

static void add_member(json_t *members, const rd_kafka_MemberDescription_t *member)
{
	const rd_kafka_MemberAssignment_t *assignment;
	const rd_kafka_topic_partition_list_t *list;
	json_t *json;

	assignment = rd_kafka_MemberDescription_assignment(member);
	list = assignment ? rd_kafka_MemberAssignment_partitions(assignment) : NULL;
	json = json_pack("{s:s, s:s, s:s, s:i}",
			 "member", rd_kafka_MemberDescription_consumer_id(member) ?: "",
			 "client", rd_kafka_MemberDescription_client_id(member) ?: "",
			 "host", cluster_host(member), "partitions", list ? list->cnt : 0);
	json_array_append_new(members, json);
}

/* No broker tells the generation. The pieces of the map have that of their writer. */
static json_t *latest_generation(const struct cluster *cluster)
{
	int32_t latest = -1;
	size_t i;

	for (i = 0; i < cluster->nr; i++)
		latest = MAX(latest, cluster->place[i].generation);
	return latest < 0 ? json_null() : json_integer(latest);
}

static json_t *group_json(struct status *status)
{
	const rd_kafka_ConsumerGroupDescription_t *group;
	rd_kafka_event_t *event = cluster_ask_group(&status->cluster, &group);
	json_t *members = json_array(), *json;
	rd_kafka_consumer_group_state_t state;
	size_t i;

	for (i = 0; i < rd_kafka_ConsumerGroupDescription_member_count(group); i++)
		add_member(members, rd_kafka_ConsumerGroupDescription_member(group, i));
	if (!json_array_size(members))
		complain(status, "no relay is in group %s", status->command.group);
	state = rd_kafka_ConsumerGroupDescription_state(group);
	json = json_pack("{s:s, s:s, s:o, s:o}", "group", status->command.group,
			 "state", rd_kafka_consumer_group_state_name(state),
			 "generation_of_map", latest_generation(&status->cluster),
			 "members", members);
	rd_kafka_event_destroy(event);
	return command_memory(json);
}

/* --- printing ----------------------------------------------------------------------------- */

static uint64_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *string_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key)) ?: "";
}

static void print_group(const json_t *group)
{
	const json_t *members = json_object_get(group, "members"), *member;
	size_t i;

	printf("group %s: %s, %zu members\n", string_of(group, "group"),
	       string_of(group, "state"), json_array_size(members));
	json_array_foreach(members, i, member)
		printf("  %s at %s: %" PRIu64 " partitions\n", string_of(member, "client"),
		       string_of(member, "host"), number_of(member, "partitions"));
}

static const char *age_text(char text[COMMAND_AGE_TEXT], uint64_t ms)
{
	return ms ? command_age_text(text, ms) : "-";
}

static void print_topics(const json_t *topics)
{
	char oldest[COMMAND_AGE_TEXT], late[COMMAND_AGE_TEXT];
	const json_t *topic;
	size_t i;
	int width = 20;

	json_array_foreach(topics, i, topic)
		width = MAX(width, (int)strlen(string_of(topic, "topic")));
	printf("\n%-*s %10s %9s %10s %9s %11s %9s %9s\n", width, "topic", "partitions", "waiting",
	       "not ready", "ready", "done above", "oldest", "late by");
	json_array_foreach(topics, i, topic) {
		uint64_t waiting = number_of(topic, "waiting");
		uint64_t not_ready = number_of(topic, "not_ready");

		printf("%-*s %10" PRIu64 " %9" PRIu64 " %10" PRIu64 " %9" PRIu64 " %11" PRIu64
		       " %9s %9s\n", width, string_of(topic, "topic"),
		       number_of(topic, "partitions"), waiting, not_ready, waiting - not_ready,
		       number_of(topic, "done_above"),
		       age_text(oldest, number_of(topic, "oldest_ms")),
		       age_text(late, number_of(topic, "late_ms")));
	}
}

static void print_problems(const json_t *problems)
{
	const json_t *problem;
	size_t i;

	if (!json_array_size(problems)) {
		puts("\nNothing is wrong.");
		return;
	}
	puts("\nWhat is wrong:");
	json_array_foreach(problems, i, problem)
		printf("  %s\n", json_string_value(problem));
}

static void print(const struct status *status, json_t *all)
{
	if (status->command.json) {
		json_dumpf(all, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
		return;
	}
	print_group(json_object_get(all, "group"));
	print_topics(status->topics);
	printf("\n%s" RELAY_INVALID_SUFFIX ": %" PRIu64 " records\n", status->command.topic,
	       number_of(all, "invalid"));
	if (!status->has_map)
		puts("There is no map of what is done: what is not committed counts as waiting.");
	print_problems(status->problems);
}

int status_main(int argc, char **argv)
{
	static const struct option_table table = {
		.rules = rules,
		.nr = ARRAY_SIZE(rules),
		.doc = "Show the group of the relays, what waits in each topic, and what is wrong.",
	};
	struct status status = {
		.horizon_ms = 600 * 1000, .topics = json_array(), .problems = json_array(),
	};
	struct heads heads;
	json_t *all, *group;

	command_begin(&table, &status, argc, argv);
	cluster_open(&status.cluster, &status.command, status.horizon_ms);
	status.now_ms = command_now_ms();
	check_topics(&status);
	status.has_map = cluster_read_done(&status.cluster);
	cluster_ask(&status.cluster);
	cluster_ask_ready(&status.cluster, status.now_ms);
	read_heads(&status, &heads);
	add_topics(&status, &heads);
	group = group_json(&status);
	all = command_memory(json_pack("{s:o, s:O, s:o, s:b, s:O}", "group", group, "topics",
				       status.topics, "invalid", count_invalid(&status), "map",
				       status.has_map, "problems", status.problems));
	print(&status, all);
	json_decref(all);
	json_decref(status.topics);
	json_decref(status.problems);
	free(heads.head);
	cluster_close(&status.cluster);
	return command_end(&status.command, 0);
}
