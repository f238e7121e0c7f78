// SPDX-License-Identifier: GPL-2.0
/*
 * Commits: for each partition the lowest offset that is not done, and as text with it which
 * offsets above are done (rules/runs.c). The next reader of the partition skips these. So after
 * a rebalance no record comes twice, and after a crash only those that were done since the last
 * commit; more, if the text had no room for all records that were done out of order.
 *
 * Brokers store commits in a topic of their own, those of a request as one batch, whose size is
 * limited, and each text in full. So a request has few partitions, and a partition whose text
 * is long is not committed each second. Only one round of commits is in flight at a time: a
 * commit that waits behind it in a queue would be older than the one that is made afterwards.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/log.h"
#include "relay/commit.h"
#include "relay/doubt.h"
#include "relay/partition.h"
#include "relay/state.h"

/* How long a revoke waits for its commit. */
#define WAIT_MS		10000

/* Partitions in a request: 256 KiB of text. The default of brokers' limit is 1 MiB. */
#define PARTITIONS_MAX	64

/* A partition whose text is longer than TEXT_SHORT is not committed more often than this. */
#define TEXT_SHORT	512
#define TEXT_EVERY_MS	8000

/* How often an unchanged offset is committed again. */
#define ANEW_EVERY_MS	(3600 * 1000)

/* How long a round of commits may take until the next one starts all the same. */
#define ROUND_MS	60000

/* How often failing commits are logged, and after what time as an error. */
#define LOG_EVERY_MS	60000
#define FAILING_MS	60000

/* --- the offset and the text ------------------------------------------------------------ */

/* Is a commit due? Unchanged offsets, too: old brokers forget them after a day. */
static bool needs_commit(const struct relay_partition *partition)
{
	uint64_t now_ms = relay_boot_ms();

	if (!partition->started || now_ms < partition->commit_ms)
		return false;
	return partition->dirty || partition->mark.low != partition->committed ||
		now_ms >= partition->commit_ms + ANEW_EVERY_MS;
}

/* Returns how many done records the text has no room for. */
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

/* The commit carries the value that partition->done_committed gets when it has succeeded. */
static void add_done_count(rd_kafka_topic_partition_t *to,
			   const struct relay_partition *partition, uint64_t left_out)
{
	uint64_t ours = partition->done - partition->done_at_assign;

	to->opaque = (void *)(uintptr_t)(partition->done - MIN(left_out, ours));
}

static void add_to_list(struct relay *relay, rd_kafka_topic_partition_list_t *list,
			struct relay_partition *partition)
{
	rd_kafka_topic_partition_t *to;
	uint64_t left_out;

	to = rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
	to->offset = partition->mark.low;
	left_out = relay->no_text ? watermark_done_above(&partition->mark) :
		add_text(to, partition);
	add_done_count(to, partition, left_out);
	partition->commit_ms = relay_boot_ms();
	if (to->metadata_size > TEXT_SHORT)
		partition->commit_ms += TEXT_EVERY_MS;
	partition->dirty = false;
}

/* The commit of these partitions failed: commit them again. */
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

static bool is_about_text(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE ||
		error == RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE;
}

static void note_commit(struct relay *relay, const rd_kafka_topic_partition_t *committed,
			rd_kafka_resp_err_t error)
{
	struct relay_partition *partition;

	if ((is_about_text(committed->err) || is_about_text(error)) && !relay->no_text) {
		log_say(LOG_WARNING,
			"brokers refuse %d bytes of metadata: after a crash, more records come twice",
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
	partition->done_committed = MAX((uintptr_t)committed->opaque, partition->done_at_assign);
}

static void log_failure(struct relay *relay, rd_kafka_resp_err_t error)
{
	uint64_t now_ms = relay_boot_ms();

	relay->stats.commit_errors++;
	if (!relay->commits_fail_ms)
		relay->commits_fail_ms = now_ms;
	if (relay->commits_logged_ms && now_ms - relay->commits_logged_ms < LOG_EVERY_MS)
		return;
	relay->commits_logged_ms = now_ms;
	log_say(now_ms - relay->commits_fail_ms < FAILING_MS ? LOG_WARNING : LOG_ERR,
		"a commit failed, and is tried again: %s", rd_kafka_err2str(error));
}

static void handle_answer(struct relay *relay, rd_kafka_resp_err_t error,
			  const rd_kafka_topic_partition_list_t *list)
{
	int i;

	if (error)
		log_failure(relay, error);
	else
		relay->commits_fail_ms = 0;
	for (i = 0; list && i < list->cnt; i++)
		note_commit(relay, &list->elems[i], error);
}

void relay_commit_report(rd_kafka_t *client, rd_kafka_resp_err_t error,
			 rd_kafka_topic_partition_list_t *list, void *context)
{
	struct relay *relay = context;

	(void)client;
	if (relay->nr_commits)
		relay->nr_commits--;
	handle_answer(relay, error, list);
}

/* The answer to relay_commit_ask(). */
static void report_asked(rd_kafka_t *client, rd_kafka_resp_err_t error,
			 rd_kafka_topic_partition_list_t *list, void *context)
{
	(void)client;
	handle_answer(context, error, list);
	relay_doubt_answer(context, error ?: list ? list->elems[0].err : 0);
}

/* An answer that relay_commit_wait() waits for. */
static void report_waited(rd_kafka_t *client, rd_kafka_resp_err_t error,
			  rd_kafka_topic_partition_list_t *list, void *context)
{
	(void)client;
	handle_answer(context, error, list);
}

/* --- requests ------------------------------------------------------------------------- */

/**
 * struct round - commits of several partitions, as many in a request as it may have
 * @queue: receives the answers, if they are waited for; NULL: relay_commit_report() does.
 * @list: the partitions of the next request.
 * @nr: requests that were sent.
 */
struct round {
	rd_kafka_queue_t *queue;
	rd_kafka_topic_partition_list_t *list;
	unsigned int nr;
};

static void send_request(struct relay *relay, struct round *round)
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
	add_to_list(relay, round->list, partition);
	if (round->list->cnt == PARTITIONS_MAX)
		send_request(relay, round);
}

void relay_commit(struct relay *relay)
{
	struct relay_partition *partition;
	struct round round = { 0 };

	if (relay->nr_commits && relay_boot_ms() < relay->commits_started_ms + ROUND_MS)
		return;
	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (needs_commit(partition))
			commit(relay, &round, partition);
	send_request(relay, &round);
	relay->nr_commits = round.nr;
	relay->commits_started_ms = relay_boot_ms();
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

/* Commit all of the partitions, also unchanged ones: their commit in flight may fail. */
void relay_commit_wait(struct relay *relay, const rd_kafka_topic_partition_list_t *list)
{
	struct round round = { .queue = rd_kafka_queue_new(relay->consumer) };
	struct relay_partition *partition;
	int i;

	for (i = 0; i < list->cnt; i++) {
		partition = relay_partition_find(relay, list->elems[i].topic,
						 list->elems[i].partition);
		if (partition && partition->started)
			commit(relay, &round, partition);
	}
	send_request(relay, &round);
	wait_answers(&round);
	rd_kafka_queue_destroy(round.queue);
}

static struct relay_partition *find_started(struct relay *relay)
{
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (partition->started)
			return partition;
	return NULL;
}

bool relay_commit_ask(struct relay *relay)
{
	struct relay_partition *partition = find_started(relay);
	rd_kafka_topic_partition_list_t *list;
	rd_kafka_resp_err_t error;

	if (!partition)
		return false;
	list = rd_kafka_topic_partition_list_new(1);
	add_to_list(relay, list, partition);
	error = rd_kafka_commit_queue(relay->consumer, list, relay->reader, report_asked, relay);
	if (error)
		set_dirty(relay, list);
	rd_kafka_topic_partition_list_destroy(list);
	return !error;
}
