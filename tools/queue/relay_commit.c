// SPDX-License-Identifier: GPL-2.0
/*
 * Commits: of each partition the lowest offset that is not done, and with it, as text, what
 * is done above (relay_runs.c). So the next to read the partition does not do that again:
 * after a rebalance nothing comes twice, and after a crash what was done since the last
 * commit; or more, where more is done out of order than the text has room for.
 *
 * Brokers keep commits in a topic of theirs, a request's as one batch, which has to be small
 * enough; and each text in full. So a request has few partitions, and a partition whose text
 * is long is not committed each second. One round of commits is under way at a time: what is
 * behind it in a queue would only say less than the next.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "log.h"
#include "relay.h"

/* How long a revoke waits for its commit. */
#define WAIT_MS		10000

/* So many partitions in a request: 256 KiB of text. Brokers' limit is 1 MiB, if not told. */
#define PARTITIONS_MAX	64

/* A text that is longer is not committed more often than this. */
#define TEXT_SHORT	512
#define TEXT_EVERY_MS	8000

/* How often the same is committed. */
#define ANEW_EVERY_MS	(3600 * 1000)

/* How long a round of commits may take until another begins. */
#define ROUND_MS	60000

/* How often it is said that commits fail, and when it is an error. */
#define SAY_EVERY_MS	60000
#define FAILING_MS	60000

/* --- what is committed ---------------------------------------------------------------- */

/* It is committed anew also if it says the same: old brokers forget what is a day old. */
static bool is_to_be_committed(const struct relay_partition *partition)
{
	uint64_t now_ms = relay_boot_ms();

	if (!partition->begun || now_ms < partition->commit_ms)
		return false;
	return partition->dirty || partition->mark.low != partition->committed ||
		now_ms >= partition->commit_ms + ANEW_EVERY_MS;
}

/* Returns how many of those that are done it does not tell. */
static uint64_t add_text(rd_kafka_topic_partition_t *to,
			 const struct relay_partition *partition)
{
	const struct watermark *mark = &partition->mark;
	char text[RUNS_TEXT_MAX];
	uint64_t left_out;
	size_t len = runs_write(mark, &partition->done_before, relay_now_ms(), text,
				&left_out);

	if (!len)
		return 0;
	to->metadata = strdup(text);
	if (!to->metadata)
		return watermark_done_above(mark);
	to->metadata_size = len;
	return left_out;
}

/* The commit carries what partition->told is to be when it has succeeded. */
static void add_told(rd_kafka_topic_partition_t *to, const struct relay_partition *partition,
		     uint64_t left_out)
{
	uint64_t ours = partition->done - partition->done_at_first;

	to->opaque = (void *)(uintptr_t)(partition->done - MIN(left_out, ours));
}

static void add(struct relay *relay, rd_kafka_topic_partition_list_t *list,
		struct relay_partition *partition)
{
	rd_kafka_topic_partition_t *to;
	uint64_t left_out;

	to = rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
	to->offset = partition->mark.low;
	left_out = relay->no_text ? watermark_done_above(&partition->mark) :
		add_text(to, partition);
	add_told(to, partition, left_out);
	partition->commit_ms = relay_boot_ms();
	if (to->metadata_size > TEXT_SHORT)
		partition->commit_ms += TEXT_EVERY_MS;
	partition->dirty = false;
}

/* It was not committed. */
static void set_dirty(struct relay *relay, const rd_kafka_topic_partition_list_t *list)
{
	struct relay_partition *partition;
	int i;

	for (i = 0; i < list->cnt; i++) {
		partition = relay_partition_find(relay, list->elems[i].topic,
						 list->elems[i].partition);
		if (partition)
			partition->dirty = true;
	}
}

/* --- answers -------------------------------------------------------------------------- */

static bool is_of_text(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE ||
		error == RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE;
}

static void note(struct relay *relay, const rd_kafka_topic_partition_t *committed,
		 rd_kafka_resp_err_t error)
{
	struct relay_partition *partition;

	if ((is_of_text(committed->err) || is_of_text(error)) && !relay->no_text) {
		log_say(LOG_WARNING, "brokers take no %d bytes with an offset: more comes twice",
			RUNS_TEXT_MAX);
		relay->no_text = true;
	}
	partition = relay_partition_find(relay, committed->topic, committed->partition);
	if (!partition)
		return;
	if (error || committed->err) {
		partition->dirty = true;
		return;
	}
	partition->committed = committed->offset;
	partition->told = MAX((uintptr_t)committed->opaque, partition->done_at_first);
}

static void say_failure(struct relay *relay, rd_kafka_resp_err_t error)
{
	uint64_t now_ms = relay_boot_ms();

	relay->stats.commit_errors++;
	if (!relay->commits_fail_ms)
		relay->commits_fail_ms = now_ms;
	if (relay->commits_said_ms && now_ms - relay->commits_said_ms < SAY_EVERY_MS)
		return;
	relay->commits_said_ms = now_ms;
	log_say(now_ms - relay->commits_fail_ms < FAILING_MS ? LOG_WARNING : LOG_ERR,
		"a commit failed, and is tried again: %s", rd_kafka_err2str(error));
}

static void take_answer(struct relay *relay, rd_kafka_resp_err_t error,
			const rd_kafka_topic_partition_list_t *list)
{
	int i;

	if (error)
		say_failure(relay, error);
	else
		relay->commits_fail_ms = 0;
	for (i = 0; list && i < list->cnt; i++)
		note(relay, &list->elems[i], error);
}

void relay_commit_report(rd_kafka_t *client, rd_kafka_resp_err_t error,
			 rd_kafka_topic_partition_list_t *list, void *context)
{
	struct relay *relay = context;

	(void)client;
	if (relay->nr_commits)
		relay->nr_commits--;
	take_answer(relay, error, list);
}

/* The same, of one by which it was asked whether a partition is ours. */
static void report_asked(rd_kafka_t *client, rd_kafka_resp_err_t error,
			 rd_kafka_topic_partition_list_t *list, void *context)
{
	(void)client;
	take_answer(context, error, list);
	relay_doubt_answer(context, error ?: list ? list->elems[0].err : 0);
}

/* The same, of one that is waited for. */
static void report_waited(rd_kafka_t *client, rd_kafka_resp_err_t error,
			  rd_kafka_topic_partition_list_t *list, void *context)
{
	(void)client;
	take_answer(context, error, list);
}

/* --- requests ------------------------------------------------------------------------- */

/**
 * struct round - some partitions are committed, as many as fit a request at a time
 * @queue: where answers come, if they are waited for.
 * @list: what the next request has.
 * @nr: requests that were begun.
 */
struct round {
	rd_kafka_queue_t *queue;
	rd_kafka_topic_partition_list_t *list;
	unsigned int nr;
};

static void begin_request(struct relay *relay, struct round *round)
{
	rd_kafka_resp_err_t error = 0;

	if (!round->list)
		return;
	if (round->queue)
		error = rd_kafka_commit_queue(relay->consumer, round->list, round->queue,
					      report_waited, relay);
	else
		error = rd_kafka_commit(relay->consumer, round->list, 1);
	if (error)
		set_dirty(relay, round->list);
	else
		round->nr++;
	rd_kafka_topic_partition_list_destroy(round->list);
	round->list = NULL;
}

static void commit(struct relay *relay, struct round *round, struct relay_partition *partition)
{
	if (!round->list)
		round->list = rd_kafka_topic_partition_list_new(PARTITIONS_MAX);
	add(relay, round->list, partition);
	if (round->list->cnt == PARTITIONS_MAX)
		begin_request(relay, round);
}

void relay_commit(struct relay *relay)
{
	struct relay_partition *partition;
	struct round round = { 0 };

	if (relay->nr_commits && relay_boot_ms() < relay->commits_begun_ms + ROUND_MS)
		return;
	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (is_to_be_committed(partition))
			commit(relay, &round, partition);
	begin_request(relay, &round);
	relay->nr_commits = round.nr;
	relay->commits_begun_ms = relay_boot_ms();
}

static void wait_answers(const struct round *round)
{
	uint64_t end_ms = relay_boot_ms() + WAIT_MS, now_ms = relay_boot_ms();
	unsigned int nr = 0;

	for (; nr < round->nr && now_ms < end_ms; now_ms = relay_boot_ms())
		nr += rd_kafka_queue_poll_callback(round->queue, end_ms - now_ms);
	if (nr < round->nr)
		log_say(LOG_WARNING, "a commit was not answered for %d s", WAIT_MS / 1000);
}

/* All are committed, as a commit of theirs that is on its way may fail. */
void relay_commit_wait(struct relay *relay, const rd_kafka_topic_partition_list_t *list)
{
	struct round round = { .queue = rd_kafka_queue_new(relay->consumer) };
	struct relay_partition *partition;
	int i;

	for (i = 0; i < list->cnt; i++) {
		partition = relay_partition_find(relay, list->elems[i].topic,
						 list->elems[i].partition);
		if (partition && partition->begun)
			commit(relay, &round, partition);
	}
	begin_request(relay, &round);
	wait_answers(&round);
	rd_kafka_queue_destroy(round.queue);
}

static struct relay_partition *find_begun(struct relay *relay)
{
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (partition->begun)
			return partition;
	return NULL;
}

bool relay_commit_ask(struct relay *relay)
{
	struct relay_partition *partition = find_begun(relay);
	rd_kafka_topic_partition_list_t *list;
	rd_kafka_resp_err_t error;

	if (!partition)
		return false;
	list = rd_kafka_topic_partition_list_new(1);
	add(relay, list, partition);
	error = rd_kafka_commit_queue(relay->consumer, list, relay->reader, report_asked, relay);
	if (error)
		set_dirty(relay, list);
	rd_kafka_topic_partition_list_destroy(list);
	return !error;
}
