// SPDX-License-Identifier: GPL-2.0
/*
 * Loading: what a relay has to know of a partition before it reads it. It runs in a thread of
 * work.c, for all partitions of one number together, since these share a partition of the map:
 *
 *	1. the committed offset. If a transaction has one for it that is still open, this waits;
 *	2. the high watermark of the map: the end of all that is written, be it committed or not;
 *	3. the map, up to there.
 *
 * The order matters. The relay that had the partition before may have ended a transaction just
 * now. Once its offset is stable, its pieces are written, but the markers that end it may not
 * have reached the map: so "all that is stable" may lack pieces which the offset counts on. All
 * of them are below the high watermark that is read afterwards.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/log.h"
#include "common/util.h"
#include "relay/cancels.h"
#include "relay/load.h"
#include "relay/partition.h"
#include "relay/query.h"
#include "relay/state.h"
#include "relay/work.h"

/* Limits of calls that wait for brokers, and of the wait for the next record of the map. */
#define ASK_MS		5000
#define POLL_MS		100

/* Without a record of the map for this time, it is read from its beginning again. */
#define STUCK_MS	30000

/* How often a failure that goes on is logged. */
#define LOG_EVERY_MS	10000

/**
 * struct relay_load - the loading of the partitions of a number
 * @job: the job.
 * @link: in @loads of the relay.
 * @done_topic: the topic of the map.
 * @cancelled_topic: the topic of ids that were taken back.
 * @cancelled_end: the end of its partition, for which was asked at @cancelled_ms.
 * @cancelled_ms: as relay_boot_ms().
 * @from_beginning: the option.
 * @logged_ms: when a failure was last logged.
 * @nr_asked: partitions whose offsets are known.
 * @nr: the number of partitions.
 * @part: what is known of each.
 */
struct relay_load {
	struct relay_job job;
	LIST_ENTRY(relay_load) link;
	char done_topic[RELAY_TOPIC_MAX + 1];
	char cancelled_topic[RELAY_TOPIC_MAX + 1];
	int64_t cancelled_end;
	uint64_t cancelled_ms;
	bool from_beginning;
	uint64_t logged_ms;
	size_t nr_asked;
	size_t nr;
	struct relay_loaded part[];
};

/* Log a failure, not too often. Returns false: it is tried again. */
static bool fail(struct relay_load *load, const char *what, rd_kafka_resp_err_t error)
{
	if (log_again(&load->logged_ms, relay_boot_ms(), LOG_EVERY_MS))
		log_say(error == RD_KAFKA_RESP_ERR__TIMED_OUT ? LOG_NOTICE : LOG_WARNING,
			"partitions %" PRId32 " wait: cannot read %s: %s", load->job.number, what,
			rd_kafka_err2str(error));
	return false;
}

/* --- offsets -------------------------------------------------------------------------- */

/*
 * Ask for one partition at a time: if the offset of one is not stable, librdkafka answers for
 * none. A failure never means that nothing is committed.
 */
static bool ask_committed(struct relay *relay, struct relay_load *load, struct relay_loaded *part)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_t *asked;
	rd_kafka_resp_err_t error;

	asked = rd_kafka_topic_partition_list_add(list, part->topic, load->job.number);
	error = rd_kafka_committed(relay->consumer, list, ASK_MS) ?: asked->err;
	if (!error) {
		part->committed = asked->offset;
		if (asked->metadata_size)
			part->text = strndup(asked->metadata, asked->metadata_size);
	}
	rd_kafka_topic_partition_list_destroy(list);
	return !error || fail(load, "the committed offset", error);
}

/* Is the committed offset one that Kafka has? If not, records are gone: say why. */
static void judge(const struct relay_load *load, struct relay_loaded *part, int64_t low,
		  int64_t high)
{
	part->begin = part->committed < 0 ? low : part->committed;
	if (part->committed > high)
		snprintf(part->why, sizeof(part->why), "offset %" PRId64
			 " is committed, but the log ends at %" PRId64, part->committed, high);
	else if (part->committed >= 0 && part->committed < low)
		snprintf(part->why, sizeof(part->why), "offset %" PRId64
			 " is committed, but the log begins at %" PRId64, part->committed, low);
	else if (part->committed < 0 && low > 0 && !load->from_beginning &&
		 done_map_low(&part->map) < low)
		snprintf(part->why, sizeof(part->why),
			 "nothing is committed, and offsets below %" PRId64
			 " are deleted (--from-beginning)", low);
}

/* Take what is known. Returns whether that is anything. */
static bool take_ends(struct relay_load *load, const struct relay_ends *ends)
{
	const struct relay_ends *cancelled = &ends[load->nr];
	bool any = false;
	size_t i;

	if (cancelled->error)
		return fail(load, cancelled->topic, cancelled->error);
	load->cancelled_end = cancelled->low < cancelled->high ? cancelled->high : 0;
	for (i = 0; i < load->nr; i++) {
		load->part[i].is_known = !ends[i].error;
		if (ends[i].error)
			fail(load, ends[i].topic, ends[i].error);
		else
			judge(load, &load->part[i], ends[i].low, ends[i].high);
		any |= !ends[i].error;
	}
	return any;
}

/*
 * The ends of the log come after the committed offset: so they are not older. The last one is that
 * of ids that were taken back.
 */
static bool judge_all(struct relay *relay, struct relay_load *load)
{
	struct relay_ends *ends = calloc(load->nr + 1, sizeof(*ends));
	bool any;
	size_t i;

	if (!ends)
		return fail(load, load->cancelled_topic, RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
	for (i = 0; i < load->nr; i++)
		ends[i].topic = load->part[i].topic;
	ends[i].topic = load->cancelled_topic;
	load->cancelled_ms = relay_boot_ms();
	relay_query_ends(relay->producer, load->job.number, ends, load->nr + 1);
	any = take_ends(load, ends);
	free(ends);
	return any;
}

/* --- the map -------------------------------------------------------------------------- */

static struct relay_loaded *find_part(struct relay_load *load, const struct piece_key *key)
{
	size_t i;

	for (i = 0; i < load->nr; i++)
		if (key->partition == load->job.number &&
		    !strcmp(key->topic, load->part[i].topic))
			return &load->part[i];
	return NULL;
}

/* Returns false if there is no memory. What is not a piece is left alone. */
static bool note_piece(struct relay_load *load, const rd_kafka_message_t *message)
{
	struct relay_loaded *part;
	struct piece_key key;
	struct piece piece;

	if (!piece_key_read(&key, message->key, message->key_len))
		return true;
	part = find_part(load, &key);
	if (!part)
		return true;
	if (!message->payload) {
		done_map_remove(&part->map, key.begin, key.generation);
		return true;
	}
	if (!piece_read(&piece, key.begin == PIECE_LOW, message->payload, message->len))
		return true;
	return !done_map_add(&part->map, key.begin, key.generation, &piece);
}

static void free_maps(struct relay_load *load)
{
	size_t i;

	for (i = 0; i < load->nr; i++)
		done_map_free(&load->part[i].map);
}

enum progress { PROGRESS_NONE, PROGRESS_MORE, PROGRESS_END, PROGRESS_ERROR };

static enum progress read_piece(struct relay_load *load, rd_kafka_queue_t *queue, int64_t end)
{
	rd_kafka_message_t *message = rd_kafka_consume_queue(queue, POLL_MS);
	enum progress progress = PROGRESS_MORE;

	if (!message)
		return PROGRESS_NONE;
	if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
		if (message->offset >= end)
			progress = PROGRESS_END;
	} else if (message->err) {
		fail(load, load->done_topic, message->err);
		progress = PROGRESS_ERROR;
	} else if (!note_piece(load, message)) {
		fail(load, load->done_topic, RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE);
		progress = PROGRESS_ERROR;
	} else if (message->offset + 1 >= end) {
		progress = PROGRESS_END;
	}
	rd_kafka_message_destroy(message);
	return progress;
}

/* Read the map up to an offset. Returns false if it has to be read again. */
static bool read_pieces(struct relay *relay, struct relay_load *load, rd_kafka_queue_t *queue,
			int64_t end)
{
	uint64_t moved_ms = relay_boot_ms();
	enum progress progress;

	while (!relay_work_over(relay, &load->job)) {
		progress = read_piece(load, queue, end);
		if (progress == PROGRESS_END)
			return true;
		if (progress == PROGRESS_ERROR)
			return false;
		if (progress == PROGRESS_MORE)
			moved_ms = relay_boot_ms();
		else if (relay_boot_ms() - moved_ms > STUCK_MS)
			return fail(load, load->done_topic, RD_KAFKA_RESP_ERR__TIMED_OUT);
	}
	return false;
}

static bool consume_pieces(struct relay *relay, struct relay_load *load, int64_t end)
{
	rd_kafka_topic_t *topic = rd_kafka_topic_new(relay->follower, load->done_topic, NULL);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(relay->follower);
	bool read = false;

	if (rd_kafka_consume_start_queue(topic, load->job.number, RD_KAFKA_OFFSET_BEGINNING,
					 queue)) {
		fail(load, load->done_topic, rd_kafka_last_error());
	} else {
		read = read_pieces(relay, load, queue, end);
		rd_kafka_consume_stop(topic, load->job.number);
	}
	rd_kafka_queue_destroy(queue);
	rd_kafka_topic_destroy(topic);
	return read;
}

static bool read_map(struct relay *relay, struct relay_load *load)
{
	struct relay_ends ends = { .topic = load->done_topic };

	free_maps(load);
	relay_query_ends(relay->producer, load->job.number, &ends, 1);
	if (ends.error)
		return fail(load, ends.topic, ends.error);
	return ends.low >= ends.high || consume_pieces(relay, load, ends.high);
}

/* --- the job -------------------------------------------------------------------------- */

static bool run(struct relay *relay, struct relay_job *job)
{
	struct relay_load *load = container_of(job, struct relay_load, job);

	for (; load->nr_asked < load->nr; load->nr_asked++)
		if (relay_work_over(relay, job) ||
		    !ask_committed(relay, load, &load->part[load->nr_asked]))
			return false;
	return read_map(relay, load) && judge_all(relay, load);
}

static void done(struct relay *relay, struct relay_job *job)
{
	struct relay_load *load = container_of(job, struct relay_load, job);
	bool over = relay_work_over(relay, job), again = false;
	size_t i;

	LIST_REMOVE(load, link);
	if (!over)
		relay_cancels_expect(relay, job->number, load->cancelled_end, load->cancelled_ms);
	for (i = 0; i < load->nr; i++) {
		if (!over && load->part[i].is_known)
			relay_partition_loaded(relay, &load->part[i], job->number);
		again |= !over && !load->part[i].is_known;
		done_map_free(&load->part[i].map);
		free(load->part[i].text);
	}
	/* One without a leader holds up no other. */
	if (again)
		relay_load_start(relay, job->number);
	free(load);
}

static bool is_to_load(const struct relay_partition *partition, int32_t number)
{
	return partition->number == number && partition->state == PARTITION_LOADING &&
		!partition->loaded;
}

static void add_part(struct relay_load *load, const struct relay_partition *partition)
{
	struct relay_loaded *part = &load->part[load->nr++];

	snprintf(part->topic, sizeof(part->topic), "%s", partition->topic);
	part->serial = partition->serial;
	part->committed = RD_KAFKA_OFFSET_INVALID;
}

void relay_load_start(struct relay *relay, int32_t number)
{
	struct relay_partition *partition;
	struct relay_load *load;
	size_t nr = 0;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		nr += is_to_load(partition, number);
	if (!nr)
		return;
	load = calloc(1, sizeof(*load) + nr * sizeof(load->part[0]));
	if (!load) {
		log_say(LOG_ERR, "out of memory for the map");
		relay_end(relay, EX_OSERR);
		return;
	}
	load->job = (struct relay_job){ .number = number, .run = run, .done = done };
	load->from_beginning = relay->options.from_beginning;
	snprintf(load->done_topic, sizeof(load->done_topic), "%s" RELAY_DONE_SUFFIX,
		 relay->rules.topic);
	snprintf(load->cancelled_topic, sizeof(load->cancelled_topic),
		 "%s" RELAY_CANCELLED_SUFFIX, relay->rules.topic);
	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (is_to_load(partition, number))
			add_part(load, partition);
	LIST_INSERT_HEAD(&relay->loads, load, link);
	relay_work_add(relay, &load->job);
}

void relay_load_abandon(struct relay *relay)
{
	struct relay_load *load;

	LIST_FOREACH(load, &relay->loads, link)
		load->job.abandoned = true;
}
