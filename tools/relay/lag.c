// SPDX-License-Identifier: GPL-2.0
/*
 * The number of records of a partition that Kafka has and the relay has not read.
 *
 * The end of a partition is known from fetches. But paused partitions are not fetched, and large
 * buckets are paused most of the time. So when a page of metrics is written, brokers are asked
 * for the ends of paused partitions. They may not answer for long, and the loop must not wait: so
 * a thread asks. Its answer is for the next page; the present one has the ends that are known.
 *
 *	loop                          thread
 *	 |--- @question, a list ------->|
 *	 |                              |--- asks brokers
 *	 |<-- @answer, the same list ---|
 *
 * The lists change hands under @lock. The thread touches nothing else but the consumer, whose
 * functions may be called by any thread.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/log.h"
#include "relay/lag.h"
#include "relay/partition.h"
#include "relay/state.h"

#define ASK_EVERY_MS	5000
#define WAIT_MS		2000

/**
 * struct relay_lag - the thread, and what it shares with the loop
 * @consumer: the client that asks.
 * @thread: the thread.
 * @asked_ms: when the loop last asked, by the clock since boot; only the loop uses it.
 * @lock: guards what follows.
 * @changed: @question or @over has changed.
 * @question: what the loop wants to know; NULL: nothing.
 * @answer: the last answer; NULL: the loop has taken it.
 * @busy: the thread has a question.
 * @over: the thread is to end.
 */
struct relay_lag {
	rd_kafka_t *consumer;
	pthread_t thread;
	uint64_t asked_ms;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	rd_kafka_topic_partition_list_t *question;
	rd_kafka_topic_partition_list_t *answer;
	bool busy;
	bool over;
};

static void destroy_list(rd_kafka_topic_partition_list_t *list)
{
	if (list)
		rd_kafka_topic_partition_list_destroy(list);
}

/* --- the thread --------------------------------------------------------------------------- */

/* Wait for a question. Returns NULL if there is none any more. Call it with the lock held. */
static rd_kafka_topic_partition_list_t *take_question(struct relay_lag *lag)
{
	rd_kafka_topic_partition_list_t *question;

	while (!lag->question && !lag->over)
		pthread_cond_wait(&lag->changed, &lag->lock);
	if (lag->over)
		return NULL;
	question = lag->question;
	lag->question = NULL;
	return question;
}

/* Call it with the lock held; it lets go of that while it asks. */
static void answer(struct relay_lag *lag, rd_kafka_topic_partition_list_t *list)
{
	rd_kafka_resp_err_t error;

	lag->busy = true;
	pthread_mutex_unlock(&lag->lock);
	error = rd_kafka_offsets_for_times(lag->consumer, list, WAIT_MS);
	pthread_mutex_lock(&lag->lock);
	lag->busy = false;
	if (error) {
		destroy_list(list);
		return;
	}
	destroy_list(lag->answer);
	lag->answer = list;
}

static void *run(void *context)
{
	rd_kafka_topic_partition_list_t *list;
	struct relay_lag *lag = context;

	pthread_mutex_lock(&lag->lock);
	while ((list = take_question(lag)))
		answer(lag, list);
	pthread_mutex_unlock(&lag->lock);
	return NULL;
}

int relay_lag_open(struct relay *relay)
{
	struct relay_lag *lag = calloc(1, sizeof(*lag));
	int error = lag ? 0 : ENOMEM;

	if (lag) {
		lag->consumer = relay->consumer;
		pthread_mutex_init(&lag->lock, NULL);
		pthread_cond_init(&lag->changed, NULL);
		error = pthread_create(&lag->thread, NULL, run, lag);
	}
	if (!error) {
		relay->lag = lag;
		return 0;
	}
	free(lag);
	log_say(LOG_ERR, "cannot start a thread: %s", strerror(error));
	return EX_OSERR;
}

void relay_lag_close(struct relay *relay)
{
	struct relay_lag *lag = relay->lag;

	if (!lag)
		return;
	pthread_mutex_lock(&lag->lock);
	lag->over = true;
	pthread_cond_signal(&lag->changed);
	pthread_mutex_unlock(&lag->lock);
	pthread_join(lag->thread, NULL);
	destroy_list(lag->question);
	destroy_list(lag->answer);
	pthread_cond_destroy(&lag->changed);
	pthread_mutex_destroy(&lag->lock);
	free(lag);
	relay->lag = NULL;
}

/* --- the loop ----------------------------------------------------------------------------- */

static rd_kafka_topic_partition_list_t *list_paused(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (partition->pauses)
			rd_kafka_topic_partition_list_add(list, partition->topic,
							  partition->number)->offset =
				RD_KAFKA_OFFSET_END;
	return list;
}

static void note_ends(struct relay *relay, const rd_kafka_topic_partition_list_t *ends)
{
	struct relay_partition *partition;
	int i;

	for (i = 0; i < ends->cnt; i++) {
		const rd_kafka_topic_partition_t *end = &ends->elems[i];

		partition = relay_partition_find(relay, end->topic, end->partition);
		if (partition && !end->err && end->offset > partition->end)
			partition->end = end->offset;
	}
}

static rd_kafka_topic_partition_list_t *take_answer(struct relay_lag *lag, bool *busy)
{
	rd_kafka_topic_partition_list_t *answer;

	pthread_mutex_lock(&lag->lock);
	answer = lag->answer;
	lag->answer = NULL;
	*busy = lag->busy || lag->question;
	pthread_mutex_unlock(&lag->lock);
	return answer;
}

static void ask(struct relay_lag *lag, rd_kafka_topic_partition_list_t *question)
{
	pthread_mutex_lock(&lag->lock);
	lag->question = question;
	pthread_cond_signal(&lag->changed);
	pthread_mutex_unlock(&lag->lock);
}

void relay_lag_ask(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list;
	struct relay_lag *lag = relay->lag;
	uint64_t now_ms = relay_boot_ms();
	bool busy;

	if (!lag)
		return;
	list = take_answer(lag, &busy);
	if (list)
		note_ends(relay, list);
	destroy_list(list);
	if (busy || now_ms - lag->asked_ms < ASK_EVERY_MS)
		return;
	lag->asked_ms = now_ms;
	list = list_paused(relay);
	if (list->cnt)
		ask(lag, list);
	else
		destroy_list(list);
}

int64_t relay_lag(struct relay *relay, const struct relay_partition *partition)
{
	const struct relay_entry *head = TAILQ_FIRST(&partition->undecided);
	int64_t waiting = head ? partition->next - head->offset : 0;
	int64_t low, high, next = partition->next;

	if (rd_kafka_get_watermark_offsets(relay->consumer, partition->topic,
					   partition->number, &low, &high))
		return -1;
	if (high < partition->end)
		high = partition->end;
	if (high < 0)
		return -1;
	if (partition->state == PARTITION_LOADING)
		next = low < 0 ? 0 : low;
	else if (next == partition->at_end)
		next = partition->log_end;
	return waiting + (high > next ? high - next : 0);
}
