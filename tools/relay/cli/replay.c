// SPDX-License-Identifier: GPL-2.0
/*
 * twheel-relay replay: dead letters are written to the topic of delays again.
 *
 * Which ones were replayed is remembered in the commits of a group of its own, so that the next
 * time these are passed over. Records are written by the thousand, and a commit follows when all of
 * these are acknowledged: if the command is killed before that, they are replayed once more, with
 * the same ids.
 *
 * For each partition there are two sets: the offsets that are chosen, and those of them that are
 * written. The first is there to refuse a record in time, if the text of a commit would have no
 * room to remember it. Where a write fails, the second has holes, and may need more room: what it
 * then cannot remember is counted, and is of the last thousand.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/sys/queue.h>

#include "common/exit.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "relay/cli/cluster.h"
#include "relay/cli/replay.h"
#include "relay/cli/replayed.h"
#include "relay/client/report.h"

/* So many records are written, and acknowledged, before a commit. */
#define COMMIT_EVERY	1000

#define NUMBER_TEXT_MAX	24

/* An --id, and whether a record has it. */
struct wanted {
	const char *id;
	bool found;
	STAILQ_ENTRY(wanted) entry;
};

STAILQ_HEAD(wanteds, wanted);

/**
 * struct dead - a partition of dead letters
 * @chosen: the records that were replayed before, or are to be.
 * @written: those of them whose write is acknowledged.
 * @next: the offset after the last record that was read.
 */
struct dead {
	struct replayed chosen;
	struct replayed written;
	int64_t next;
};

struct replay {
	struct command command;
	const char *topic;
	const char *to;
	uint64_t delay_ns;
	uint64_t since_ms;
	uint64_t until_ms;
	uint64_t limit;
	bool dry_run;
	struct wanteds wanteds;
	char group[COMMAND_GROUP_MAX + 16];
	char target[RELAY_TOPIC_MAX + 1];
	struct cluster cluster;
	rd_kafka_t *producer;
	struct scan_part *parts;
	struct dead *dead;
	size_t nr;
	uint64_t replayed;
	uint64_t before;
	uint64_t not_chosen;
	uint64_t in_flight;
	uint64_t not_committed;
	uint64_t forgotten;
	bool full;
	rd_kafka_resp_err_t error;
};

/* A record that librdkafka has. */
struct sent {
	struct dead *dead;
	int64_t offset;
};

/* --- options ------------------------------------------------------------------------------ */

static void parse_id(struct argp_state *state, char *arg, void *values)
{
	struct wanted *wanted = command_memory(calloc(1, sizeof(*wanted)));
	struct replay *replay = values;

	if (!*arg)
		argp_error(state, "--id is empty");
	wanted->id = arg;
	STAILQ_INSERT_TAIL(&replay->wanteds, wanted, entry);
}

static void parse_since(struct argp_state *state, char *arg, void *values)
{
	struct replay *replay = values;

	replay->since_ms = command_time(state, "--since", arg);
}

static void parse_until(struct argp_state *state, char *arg, void *values)
{
	struct replay *replay = values;

	replay->until_ms = command_time(state, "--until", arg);
}

#define AT(member)	offsetof(struct replay, member)

static const struct option_rule rules[] = {
	COMMAND_BROKERS, COMMAND_GROUP, COMMAND_TOPIC, COMMAND_SETTING, COMMAND_CONFIG,
	COMMAND_SCALE,
	{ "to", 0, "NAME", "The target (default: the topic's name without .dead)",
	  OPTION_TEXT, AT(to), 0, 0, NULL },
	{ "delay", 0, "DURATION", "Deliver them after this time (default 0)",
	  OPTION_DURATION, AT(delay_ns), 0, RELAY_DELAY_MAX_MS * NSEC_PER_MSEC, NULL },
	{ "id", 0, "ID", "Only the record of this twheel-id; may be repeated",
	  OPTION_OTHER, 0, 0, 0, parse_id },
	{ "since", 0, "TIME", "Only records whose timestamp is not before a time",
	  OPTION_OTHER, 0, 0, 0, parse_since },
	{ "until", 0, "TIME", "Only records whose timestamp is before a time",
	  OPTION_OTHER, 0, 0, 0, parse_until },
	{ "limit", 0, "N", "At most N records", OPTION_COUNT, AT(limit), 1, INT64_MAX, NULL },
	{ "dry-run", 'n', NULL, "Print which records that would be, and write nothing",
	  OPTION_FLAG, AT(dry_run), 0, 0, NULL },
};

static void parse_operand(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	struct replay *replay = values;

	if (nr || !*text || strlen(text) > RELAY_TOPIC_MAX)
		argp_error(state, "\"%s\" is not the one topic to replay", text);
	replay->topic = text;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(name + len - suffix_len, suffix);
}

static void check(struct argp_state *state, const void *values)
{
	const struct replay *replay = values;

	if (!replay->topic)
		argp_error(state, "which topic of dead letters is to be replayed?");
	else if (!has_suffix(replay->topic, RELAY_DEAD_SUFFIX) &&
		 !has_suffix(replay->topic, RELAY_INVALID_SUFFIX))
		argp_error(state, "%s is no topic of dead letters: its name ends neither in "
			   RELAY_DEAD_SUFFIX " nor in " RELAY_INVALID_SUFFIX, replay->topic);
	else if (!has_suffix(replay->topic, RELAY_DEAD_SUFFIX) && !replay->to)
		argp_error(state, "--to is missing: records of %s have no valid target",
			   replay->topic);
}

/* --- commits ------------------------------------------------------------------------------ */

static void read_commits(struct replay *replay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(replay->nr);
	rd_kafka_resp_err_t error;
	size_t i;

	for (i = 0; i < replay->nr; i++)
		rd_kafka_topic_partition_list_add(list, replay->topic, i);
	error = rd_kafka_committed(replay->cluster.client, list, COMMAND_TIMEOUT_MS);
	if (error)
		errx(EXIT_CANNOT, "brokers do not say what group %s has committed: %s",
		     replay->group, rd_kafka_err2str(error));
	for (i = 0; i < replay->nr; i++) {
		const rd_kafka_topic_partition_t *committed = &list->elems[i];
		struct dead *dead = &replay->dead[i];
		int64_t low = committed->offset < 0 ? 0 : committed->offset;
		const char *text = committed->metadata;

		if (committed->err)
			errx(EXIT_CANNOT, "%s [%zu]: %s", replay->topic, i,
			     rd_kafka_err2str(committed->err));
		/* The topic was made anew: nothing of it was replayed. */
		if (low > replay->parts[i].to) {
			low = 0;
			text = NULL;
		}
		replayed_init(&dead->chosen, low, text, committed->metadata_size);
		replayed_init(&dead->written, low, text, committed->metadata_size);
		replayed_raise(&dead->chosen, replay->parts[i].from);
		replayed_raise(&dead->written, replay->parts[i].from);
		replay->before += dead->chosen.low - replay->parts[i].from;
		replay->parts[i].from = dead->chosen.low;
		replay->parts[i].context = dead;
		dead->next = dead->chosen.low;
	}
	rd_kafka_topic_partition_list_destroy(list);
}

static void commit(struct replay *replay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(replay->nr);
	char text[REPLAYED_TEXT_MAX];
	rd_kafka_resp_err_t error;
	size_t i;

	replay->forgotten = 0;
	for (i = 0; i < replay->nr; i++) {
		rd_kafka_topic_partition_t *to;

		to = rd_kafka_topic_partition_list_add(list, replay->topic, i);
		to->offset = replay->dead[i].written.low;
		replay->forgotten += replayed_write(&replay->dead[i].written, text);
		to->metadata = *text ? command_memory(strdup(text)) : NULL;
		to->metadata_size = strlen(text);
	}
	error = rd_kafka_commit(replay->cluster.client, list, 0);
	if (error)
		errx(EXIT_CANNOT, "%" PRIu64
		     " records will be replayed again, as group %s cannot remember them: %s",
		     replay->not_committed, replay->group, rd_kafka_err2str(error));
	replay->not_committed = 0;
	rd_kafka_topic_partition_list_destroy(list);
}

/* --- writing ------------------------------------------------------------------------------ */

static void report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context)
{
	rd_kafka_resp_err_t error = client_report_error(message);
	struct sent *sent = message->_private;
	struct replay *replay = context;

	(void)client;
	replay->in_flight--;
	if (error) {
		replay->error = error;
	} else {
		if (replayed_add(&sent->dead->written, sent->offset))
			errx(EXIT_CANNOT, "out of memory");
		replay->replayed++;
		replay->not_committed++;
	}
	free(sent);
}

static void add_header(rd_kafka_headers_t *headers, const char *name, const char *value,
		       size_t len)
{
	if (rd_kafka_header_add(headers, name, -1, value, len))
		errx(EXIT_CANNOT, "out of memory");
}

/* Those of the record, with its id, and without what the relays have added. */
static rd_kafka_headers_t *make_headers(const struct replay *replay,
					const rd_kafka_message_t *message)
{
	static const char *const ours[] = {
		RELAY_DELIVER_AT, RELAY_DELAY, RELAY_TARGET, RELAY_ATTEMPT, RELAY_DUE,
		RELAY_PARKED, RELAY_ERROR, RELAY_CANCEL, RELAY_TRIES, RELAY_HELD_SINCE,
	};
	char id[RELAY_TOPIC_MAX + 40], delay[NUMBER_TEXT_MAX];
	rd_kafka_headers_t *theirs, *headers;
	size_t i;

	headers = rd_kafka_message_headers(message, &theirs) ? rd_kafka_headers_new(4) :
		rd_kafka_headers_copy(theirs);
	for (i = 0; i < ARRAY_SIZE(ours); i++)
		rd_kafka_header_remove(headers, ours[i]);
	if (!scan_header(message, RELAY_ID).len) {
		rd_kafka_header_remove(headers, RELAY_ID);
		snprintf(id, sizeof(id), "%s-%" PRId32 "-%" PRId64, replay->topic,
			 message->partition, message->offset);
		add_header(headers, RELAY_ID, id, strlen(id));
	}
	snprintf(delay, sizeof(delay), "%" PRIu64, (uint64_t)(replay->delay_ns / NSEC_PER_MSEC));
	add_header(headers, RELAY_DELAY, delay, strlen(delay));
	add_header(headers, RELAY_TARGET, replay->target, strlen(replay->target));
	return headers;
}

static void write_record(struct replay *replay, struct dead *dead,
			 const rd_kafka_message_t *message)
{
	rd_kafka_headers_t *headers = make_headers(replay, message);
	struct sent *sent = command_memory(malloc(sizeof(*sent)));
	rd_kafka_resp_err_t error;

	*sent = (struct sent){ dead, message->offset };
	/* Its report may come within the following poll. */
	replay->in_flight++;
	do {
		error = rd_kafka_producev(replay->producer,
					  RD_KAFKA_V_TOPIC(replay->command.topic),
					  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
					  RD_KAFKA_V_KEY(message->key, message->key_len),
					  RD_KAFKA_V_VALUE(message->payload, message->len),
					  RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(sent),
					  RD_KAFKA_V_END);
		rd_kafka_poll(replay->producer, error ? 100 : 0);
	} while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL);
	if (!error)
		return;
	replay->in_flight--;
	replay->error = error;
	rd_kafka_headers_destroy(headers);
	free(sent);
}

static void wait_for_reports(struct replay *replay)
{
	while (replay->in_flight)
		rd_kafka_poll(replay->producer, 100);
}

/* --- choosing ----------------------------------------------------------------------------- */

static bool is_wanted_id(struct replay *replay, const struct relay_text *id)
{
	struct wanted *wanted;

	if (STAILQ_EMPTY(&replay->wanteds))
		return true;
	STAILQ_FOREACH(wanted, &replay->wanteds, entry) {
		if (id->len != strlen(wanted->id) || memcmp(id->data, wanted->id, id->len))
			continue;
		wanted->found = true;
		return true;
	}
	return false;
}

static bool is_wanted(struct replay *replay, const rd_kafka_message_t *message)
{
	int64_t timestamp_ms = scan_timestamp(message);
	struct relay_text id = scan_header(message, RELAY_ID);

	if (replay->since_ms && timestamp_ms < (int64_t)replay->since_ms)
		return false;
	if (replay->until_ms && timestamp_ms >= (int64_t)replay->until_ms)
		return false;
	return is_wanted_id(replay, &id);
}

/* Is there room to remember this one? */
static bool choose(struct replay *replay, struct dead *dead, int64_t offset)
{
	char text[REPLAYED_TEXT_MAX];

	if (replayed_add(&dead->chosen, offset))
		errx(EXIT_CANNOT, "out of memory");
	replay->full = replayed_write(&dead->chosen, text) > 0;
	return !replay->full;
}

static void print_record(const struct replay *replay, const rd_kafka_message_t *message)
{
	struct relay_text id = scan_header(message, RELAY_ID);
	struct relay_text error = scan_header(message, RELAY_ERROR);
	char *id_text = command_text(id.data ?: "", id.len);
	int64_t timestamp_ms = scan_timestamp(message);
	char time[COMMAND_TIME_TEXT];
	size_t i;

	printf("%s/%" PRId32 "/%" PRId64 "  %s  %s  ", replay->topic, message->partition,
	       message->offset, command_time_text(time, timestamp_ms < 0 ? 0 : timestamp_ms),
	       *id_text ? id_text : "-");
	for (i = 0; i < error.len; i++)
		putchar(error.data[i] >= ' ' && error.data[i] < 0x7f ? error.data[i] : '?');
	putchar('\n');
	free(id_text);
}

/* Offsets that the partition does not have: markers of transactions, for example. */
static void pass_gap(struct dead *dead, int64_t offset)
{
	for (; dead->next < offset; dead->next++)
		if (replayed_add(&dead->chosen, dead->next) ||
		    replayed_add(&dead->written, dead->next))
			errx(EXIT_CANNOT, "out of memory");
	dead->next = offset + 1;
}

static bool read_record(const struct scan_part *part, const rd_kafka_message_t *message,
			void *context)
{
	struct dead *dead = part->context;
	struct replay *replay = context;
	uint64_t chosen = replay->replayed + replay->in_flight;

	if (replay->error || replay->full || (replay->limit && chosen >= replay->limit))
		return false;
	pass_gap(dead, message->offset);
	if (replayed_has(&dead->chosen, message->offset)) {
		replay->before++;
		return true;
	}
	if (!is_wanted(replay, message)) {
		replay->not_chosen++;
		return true;
	}
	if (!choose(replay, dead, message->offset))
		return false;
	if (replay->dry_run) {
		print_record(replay, message);
		replay->replayed++;
		return true;
	}
	write_record(replay, dead, message);
	if (replay->not_committed + replay->in_flight >= COMMIT_EVERY) {
		wait_for_reports(replay);
		commit(replay);
	}
	return true;
}

/* --- the command -------------------------------------------------------------------------- */

static void open_all(struct replay *replay)
{
	size_t len = strlen(replay->topic);

	snprintf(replay->group, sizeof(replay->group), "%s-replay", replay->command.group);
	replay->command.group = replay->group;
	if (has_suffix(replay->topic, RELAY_DEAD_SUFFIX))
		len -= strlen(RELAY_DEAD_SUFFIX);
	snprintf(replay->target, sizeof(replay->target), "%.*s", (int)len, replay->topic);
	if (replay->to)
		snprintf(replay->target, sizeof(replay->target), "%s", replay->to);
	cluster_open(&replay->cluster, &replay->command, RELAY_HORIZON_MIN_MS);
	if (!cluster_partitions(&replay->cluster, replay->topic))
		errx(EXIT_CANNOT, "there is no topic %s", replay->topic);
	if (!cluster_partitions(&replay->cluster, replay->command.topic))
		errx(EXIT_CANNOT, "there is no topic %s, which is that of delays",
		     replay->command.topic);
	if (!cluster_partitions(&replay->cluster, replay->target))
		warnx("there is no topic %s: relays hold its records until there is one",
		      replay->target);
	replay->nr = cluster_ask_topic(&replay->cluster, replay->topic, &replay->parts);
	replay->dead = command_memory(calloc(replay->nr, sizeof(*replay->dead)));
	replay->producer = command_producer(&replay->command, report, replay);
}

static void close_all(struct replay *replay)
{
	struct wanted *wanted;
	size_t i;

	for (i = 0; i < replay->nr; i++) {
		replayed_free(&replay->dead[i].chosen);
		replayed_free(&replay->dead[i].written);
	}
	while ((wanted = STAILQ_FIRST(&replay->wanteds))) {
		STAILQ_REMOVE_HEAD(&replay->wanteds, entry);
		free(wanted);
	}
	free(replay->dead);
	free(replay->parts);
	rd_kafka_destroy(replay->producer);
	cluster_close(&replay->cluster);
}

/* Say what was done, and what not. Returns the exit status. */
static int sum_up(const struct replay *replay)
{
	const struct wanted *wanted;
	int status = 0;

	printf("%s%" PRIu64 " records of %s %s to %s for %s; %" PRIu64
	       " were replayed before, %" PRIu64 " are not chosen\n",
	       replay->dry_run ? "dry run: " : "", replay->replayed, replay->topic,
	       replay->dry_run ? "would be written" : "are written", replay->command.topic,
	       replay->target, replay->before, replay->not_chosen);
	STAILQ_FOREACH(wanted, &replay->wanteds, entry) {
		if (wanted->found || replay->error || replay->full)
			continue;
		warnx("%s has no record with the id \"%s\" that is not replayed yet",
		      replay->topic, wanted->id);
		status = EXIT_CANNOT;
	}
	if (replay->full) {
		warnx("group %s has no room to remember more single records: replay all of %s",
		      replay->group, replay->topic);
		status = EXIT_CANNOT;
	}
	if (replay->forgotten) {
		warnx("%" PRIu64 " records will be replayed again: group %s has no room for them",
		      replay->forgotten, replay->group);
		status = EXIT_CANNOT;
	}
	if (replay->error) {
		warnx("%s cannot be written: %s", replay->command.topic,
		      rd_kafka_err2str(replay->error));
		status = EXIT_CANNOT;
	}
	return status;
}

int replay_main(int argc, char **argv)
{
	static const struct option_table table = {
		.rules = rules,
		.nr = ARRAY_SIZE(rules),
		.doc = "Write dead letters to the topic of delays again, each at least once.",
		.operands = "TOPIC.dead",
		.operand = parse_operand,
		.check = check,
	};
	struct replay replay = { .wanteds = STAILQ_HEAD_INITIALIZER(replay.wanteds) };
	int status;

	command_begin(&table, &replay, argc, argv);
	open_all(&replay);
	read_commits(&replay);
	scan(replay.cluster.client, replay.parts, replay.nr, read_record, &replay);
	wait_for_reports(&replay);
	if (!replay.dry_run)
		commit(&replay);
	status = sum_up(&replay);
	close_all(&replay);
	return command_end(&replay.command, status);
}
