// SPDX-License-Identifier: GPL-2.0
/*
 * Commits: for each partition the lowest offset that is not done. What is done above it is in the
 * map (map.c). So after a rebalance no record comes twice, and after a crash only those that were
 * done since the last tick. With exactly once, turns commit.
 *
 * Brokers store commits in a topic of their own, those of a request as one batch, whose size is
 * limited: so a request has few partitions. Only one round of commits is in flight at a time: a
 * commit that waits behind it in a queue would be older than the one that is made afterwards.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "common/log.h"
#include "relay/commit.h"
#include "relay/doubt.h"
#include "relay/map.h"
#include "relay/partition.h"
#include "relay/state.h"

/* How long a revoke waits for its commit. */
#define WAIT_MS		10000

/* Partitions in a request. */
#define PARTITIONS_MAX	1000

/* How often an unchanged offset is committed again. */
#define ANEW_EVERY_MS	(3600 * 1000)

/* How long a round of commits may take until the next one starts all the same. */
#define ROUND_MS	60000

/* How often failing commits are logged, and after what time as an error. */
#define LOG_EVERY_MS	60000
#define FAILING_MS	60000

/* --- the offset ------------------------------------------------------------------------ */

/* Do we know its lowest offset, and is none of its records missing? */
static bool may_commit(const struct relay_partition *partition)
{
	return partition->state == PARTITION_READY && !partition->is_void;
}

/* Is a commit due? Unchanged offsets, too: old brokers forget them after a day. */
static bool needs_commit(const struct relay_partition *partition)
{
	return may_commit(partition) &&
		(partition->dirty || partition->mark.low != partition->committed ||
		 relay_boot_ms() >= partition->commit_ms + ANEW_EVERY_MS);
}

/* It carries the value that partition->commit_done gets when it has succeeded. */
static void add_to_list(rd_kafka_topic_partition_list_t *list, struct relay_partition *partition)
{
	rd_kafka_topic_partition_t *to;

	to = rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
	to->offset = partition->mark.low;
	to->opaque = (void *)(uintptr_t)partition->done;
	partition->commit_ms = relay_boot_ms();
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

static void note_commit(struct relay *relay, const rd_kafka_topic_partition_t *committed,
			rd_kafka_resp_err_t error)
{
	struct relay_partition *partition;

	partition = relay_partition_find(relay, committed->topic, committed->partition);
	if (!partition)
		return;
	if (error || committed->err) {
		partition->dirty = true;
		return;
	}
	partition->committed = committed->offset;
	partition->commit_done = MAX((uintptr_t)committed->opaque, partition->done_at_assign);
	partition->done_committed = MIN(partition->commit_done, partition->done_mapped);
	relay_map_passed(relay, partition, committed->offset);
	relay_partition_account(relay, partition);
}

static void log_failure(struct relay *relay, rd_kafka_resp_err_t error)
{
	uint64_t now_ms = relay_boot_ms();

	relay->stats.commit_errors++;
	if (!relay->commits_fail_ms)
		relay->commits_fail_ms = now_ms;
	if (log_again(&relay->commits_logged_ms, now_ms, LOG_EVERY_MS))
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
	add_to_list(round->list, partition);
	if (round->list->cnt == PARTITIONS_MAX)
		send_request(relay, round);
}

void relay_commit(struct relay *relay)
{
	struct relay_partition *partition;
	struct round round = { 0 };

	/* Between a revoke and the next assignment, librdkafka could lose that (its issue 4059). */
	if (relay->turn || relay->revoking)
		return;
	relay_map_flush(relay);
	if (relay->nr_commits && relay_boot_ms() < relay->commits_started_ms + ROUND_MS)
		return;
	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (needs_commit(partition))
			commit(relay, &round, partition);
	send_request(relay, &round);
	relay->nr_commits = round.nr;
	relay->commits_started_ms = relay_boot_ms();
}

/* Returns whether all were answered. */
static bool wait_answers(const struct round *round)
{
	uint64_t end_ms = relay_boot_ms() + WAIT_MS, now_ms = relay_boot_ms();
	unsigned int nr = 0;

	for (; nr < round->nr && now_ms < end_ms; now_ms = relay_boot_ms())
		nr += rd_kafka_queue_poll_callback(round->queue, end_ms - now_ms);
	if (nr < round->nr)
		log_say(LOG_WARNING, "a commit was not answered for %d s", WAIT_MS / 1000);
	return nr >= round->nr;
}

/* Commit also unchanged ones: their commit in flight may fail. */
bool relay_commit_wait(struct relay *relay)
{
	struct round round = { .queue = rd_kafka_queue_new(relay->consumer) };
	struct relay_partition *partition;
	bool answered;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (may_commit(partition))
			commit(relay, &round, partition);
	send_request(relay, &round);
	answered = wait_answers(&round);
	rd_kafka_queue_destroy(round.queue);
	return answered;
}

static struct relay_partition *find_any(struct relay *relay)
{
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (may_commit(partition))
			return partition;
	return NULL;
}

bool relay_commit_ask(struct relay *relay)
{
	struct relay_partition *partition = relay->revoking ? NULL : find_any(relay);
	rd_kafka_topic_partition_list_t *list;
	rd_kafka_resp_err_t error;

	if (!partition)
		return false;
	list = rd_kafka_topic_partition_list_new(1);
	add_to_list(list, partition);
	error = rd_kafka_commit_queue(relay->consumer, list, relay->reader, report_asked, relay);
	if (error)
		set_dirty(relay, list);
	rd_kafka_topic_partition_list_destroy(list);
	return !error;
}
