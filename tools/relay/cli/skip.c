// SPDX-License-Identifier: GPL-2.0
/*
 * twheel-relay skip: a partition that is stopped goes on at the first record that is left.
 *
 * Only the committed offset is set. The map of what is done stays: its pieces are void for
 * records that they cannot have meant, by time and leader epoch, and hold for all others.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/text.h"
#include "common/util.h"
#include "relay/cli/cluster.h"
#include "relay/cli/skip.h"

struct skip {
	struct command command;
	const char *topic;
	int64_t partition;
	int64_t to;
	bool to_begin;
	bool yes;
	struct cluster cluster;
};

/* --- options ------------------------------------------------------------------------------ */

static int64_t number_of(struct argp_state *state, const char *what, const char *arg, uint64_t max)
{
	struct text text = { arg, arg + strlen(arg) };
	uint64_t number = 0;

	if (!text_digits(&text, max, &number) || !text_empty(&text))
		argp_error(state, "\"%s\" is not the number of %s", arg, what);
	return number;
}

static void parse_to(struct argp_state *state, char *arg, void *values)
{
	struct skip *skip = values;

	skip->to = number_of(state, "an offset", arg, INT64_MAX);
}

#define AT(member)	offsetof(struct skip, member)

static const struct option_rule rules[] = {
	COMMAND_BROKERS, COMMAND_GROUP, COMMAND_TOPIC, COMMAND_SETTING, COMMAND_CONFIG,
	{ "to", 0, "OFFSET", "Go on at this offset",
	  OPTION_OTHER, 0, 0, 0, parse_to },
	{ "to-begin", 0, NULL, "Go on at the first record that there is",
	  OPTION_FLAG, AT(to_begin), 0, 0, NULL },
	{ "yes", 'y', NULL, "Do it; otherwise only print what would be done",
	  OPTION_FLAG, AT(yes), 0, 0, NULL },
};

static void parse_operand(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	struct skip *skip = values;

	if (nr == 0)
		skip->topic = text;
	else if (nr == 1)
		skip->partition = number_of(state, "a partition", text, INT32_MAX);
	else
		argp_error(state, "\"%s\" is too much: there are a topic and a partition", text);
}

static void check(struct argp_state *state, const void *values)
{
	const struct skip *skip = values;

	if (skip->partition < 0)
		argp_error(state, "which topic and partition?");
	if (skip->to >= 0 && skip->to_begin)
		argp_error(state, "--to and --to-begin are two places");
}

/* --- what is to be done ------------------------------------------------------------------- */

static const struct place *find_place(const struct skip *skip)
{
	const struct place *place;

	place = cluster_find(&skip->cluster, skip->topic, skip->partition);
	if (place && place->error)
		errx(EXIT_CANNOT, "%s [%" PRId64 "]: %s", skip->topic, skip->partition,
		     place->error);
	if (place)
		return place;
	if (cluster_partitions(&skip->cluster, skip->topic))
		errx(EXIT_CANNOT, "%s has no partition %" PRId64 " that group %s reads",
		     skip->topic, skip->partition, skip->command.group);
	errx(EXIT_CANNOT, "there is no topic %s", skip->topic);
}

static void refuse_members(const struct skip *skip)
{
	const rd_kafka_ConsumerGroupDescription_t *group;
	rd_kafka_event_t *event = cluster_ask_group(&skip->cluster, &group);
	size_t nr = rd_kafka_ConsumerGroupDescription_member_count(group), i;

	for (i = 0; i < nr; i++) {
		const rd_kafka_MemberDescription_t *member;

		member = rd_kafka_ConsumerGroupDescription_member(group, i);
		warnx("in the group: %s at %s", rd_kafka_MemberDescription_client_id(member),
		      cluster_host(member));
	}
	if (nr)
		errx(EXIT_CANNOT,
		     "group %s has %zu members: stop all relays first; one that was killed stays for its session.timeout.ms",
		     skip->command.group, nr);
	rd_kafka_event_destroy(event);
}

#define OFFSET_TEXT	32

static const char *offset_text(char text[OFFSET_TEXT], int64_t offset)
{
	snprintf(text, OFFSET_TEXT, "%" PRId64, offset);
	return offset < 0 ? "nothing" : text;
}

static int64_t choose(const struct skip *skip, const struct place *place)
{
	char why[PLACE_WHY], committed[OFFSET_TEXT];

	if (skip->to_begin)
		return place->low;
	if (skip->to < 0 && !place_stopped(place, why))
		errx(EXIT_CANNOT, "%s [%" PRId64 "] is not stopped: %s is committed, of %" PRId64
		     " to %" PRId64 "; --to OFFSET moves it all the same",
		     skip->topic, skip->partition, offset_text(committed, place->committed),
		     place->low, place->end);
	if (skip->to < 0)
		return place->low;
	if (skip->to < place->low || skip->to > place->end)
		errx(EXIT_CANNOT, "%s [%" PRId64 "] has no offset %" PRId64 ": it has %" PRId64
		     " to %" PRId64, skip->topic, skip->partition, skip->to, place->low,
		     place->end);
	return skip->to;
}

/* Say what becomes of the records between the old and the new offset. */
static void explain(const struct place *place, int64_t to)
{
	int64_t start = place_start(place), committed = place->committed;
	char why[PLACE_WHY], text[OFFSET_TEXT];
	uint64_t done;

	printf("%s [%" PRId32 "]: %s is committed, and its offsets are %" PRId64 " to %" PRId64
	       "\n", place->topic, place->number, offset_text(text, committed), place->low,
	       place->end);
	if (place_stopped(place, why))
		printf("it is stopped: %s\n", why);
	if (committed >= 0 && committed < place->low)
		printf("deleted and lost, unless a relay had done them: at most %" PRId64
		       " records\n", place->low - committed);
	if (to > start) {
		done = place_done(place, start, to);
		printf("skipped: %" PRIu64 " records that are not done, and %" PRIu64
		       " that are\n", to - start - done, done);
	}
	if (committed > to)
		printf("read again: up to %" PRId64 " records, which may be delivered twice\n",
		       (committed < place->end ? committed : place->end) - to);
	printf("the relays go on at %" PRId64 "\n", to);
}

/* --- doing it ----------------------------------------------------------------------------- */

static const char *in_words(rd_kafka_resp_err_t error)
{
	switch (error) {
	case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
	case RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP:
	case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
		return "a relay is in the group: stop all relays first";
	case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
		return "this user may not change the group's offsets (Read of the group)";
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
		return "this user may not read the topic";
	default:
		return rd_kafka_err2str(error);
	}
}

/* The error of the answer: of the whole, of the group, or of the partition. */
static rd_kafka_resp_err_t error_of(rd_kafka_event_t *event)
{
	const rd_kafka_AlterConsumerGroupOffsets_result_t *result;
	const rd_kafka_topic_partition_list_t *list;
	const rd_kafka_group_result_t **groups;
	const rd_kafka_error_t *error;
	size_t nr;

	if (!event)
		return RD_KAFKA_RESP_ERR__TIMED_OUT;
	if (rd_kafka_event_error(event))
		return rd_kafka_event_error(event);
	result = rd_kafka_event_AlterConsumerGroupOffsets_result(event);
	groups = rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &nr);
	error = rd_kafka_group_result_error(groups[0]);
	if (error)
		return rd_kafka_error_code(error);
	list = rd_kafka_group_result_partitions(groups[0]);
	return list && list->cnt ? list->elems[0].err : 0;
}

static rd_kafka_event_t *alter(const struct skip *skip,
			       const rd_kafka_topic_partition_list_t *list)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(skip->cluster.client);
	rd_kafka_AlterConsumerGroupOffsets_t *question;
	rd_kafka_event_t *event;

	question = rd_kafka_AlterConsumerGroupOffsets_new(skip->command.group, list);
	rd_kafka_AlterConsumerGroupOffsets(skip->cluster.client, &question, 1, NULL, queue);
	event = rd_kafka_queue_poll(queue, COMMAND_TIMEOUT_MS);
	rd_kafka_AlterConsumerGroupOffsets_destroy(question);
	rd_kafka_queue_destroy(queue);
	return event;
}

/* It may be done twice: the offset is the same. */
static void set_offset(const struct skip *skip, int64_t to)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	uint64_t end_ms = command_now_ms() + COMMAND_TIMEOUT_MS;
	rd_kafka_resp_err_t error;
	rd_kafka_event_t *event;

	rd_kafka_topic_partition_list_add(list, skip->topic, skip->partition)->offset = to;
	do {
		event = alter(skip, list);
		error = error_of(event);
		if (event)
			rd_kafka_event_destroy(event);
	} while (error && cluster_again(error, end_ms));
	if (error)
		errx(EXIT_CANNOT, "the offset of group %s is not set: %s", skip->command.group,
		     in_words(error));
	rd_kafka_topic_partition_list_destroy(list);
}

int skip_main(int argc, char **argv)
{
	static const struct option_table table = {
		.rules = rules,
		.nr = ARRAY_SIZE(rules),
		.doc = "Let a stopped partition go on at the first record that is left.",
		.operands = "TOPIC PARTITION",
		.operand = parse_operand,
		.check = check,
	};
	struct skip skip = { .partition = -1, .to = -1 };
	const struct place *place;
	int64_t to;

	command_begin(&table, &skip, argc, argv);
	cluster_open(&skip.cluster, &skip.command, RELAY_HORIZON_MIN_MS);
	cluster_read_done(&skip.cluster);
	cluster_ask(&skip.cluster);
	place = find_place(&skip);
	to = choose(&skip, place);
	explain(place, to);
	refuse_members(&skip);
	if (!skip.yes)
		errx(EXIT_CANNOT, "nothing is changed without --yes");
	set_offset(&skip, to);
	puts("done: start the relays");
	cluster_close(&skip.cluster);
	return command_end(&skip.command, 0);
}
