// SPDX-License-Identifier: GPL-2.0
/*
 * The consumer group: partitions are assigned and revoked.
 *
 *	            assign: read from the committed offset
 *	  (others') --------------------------------------> ours
 *	      ^                                               | revoke: send no more
 *	      |  forget                                       v
 *	      +------- commit <------- wait for the reports of records in flight
 *
 * A partition that was lost (the group has assigned it to another relay already) is forgotten
 * at once: the other relay delivers again what was done since the last commit.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "relay/commit.h"
#include "relay/doubt.h"
#include "relay/group.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/state.h"

/* How many records are read in a turn of the loop. */
#define BATCH		500

/* How long a revoke waits for reports. */
#define FLUSH_MS	10000
#define POLL_MS		100

/* How long to wait for committed offsets, how often to ask, and the pause in between. */
#define ASK_MS		10000
#define ASK_TIMES	6
#define ASK_AGAIN_MS	200

/* --- assigned ------------------------------------------------------------------------- */

/* An error for one partition does not mean that nothing is committed for it. */
static rd_kafka_resp_err_t error_of(const rd_kafka_topic_partition_list_t *list)
{
	int i;

	for (i = 0; i < list->cnt; i++)
		if (list->elems[i].err)
			return list->elems[i].err;
	return 0;
}

/* Ask for the committed offsets. Returns false if there is no answer. */
static bool ask_committed(struct relay *relay, rd_kafka_topic_partition_list_t *list)
{
	rd_kafka_resp_err_t error;
	int times;

	for (times = 1; times <= ASK_TIMES; times++) {
		error = rd_kafka_committed(relay->consumer, list, ASK_MS) ?: error_of(list);
		if (!error)
			return true;
		log_say(LOG_WARNING, "cannot read the committed offsets, try %d of %d: %s",
			times, ASK_TIMES, rd_kafka_err2str(error));
		usleep(ASK_AGAIN_MS * 1000);
	}
	return false;
}

/*
 * Read from the committed offset or, if there is none, from the beginning, and from nowhere
 * else: an offset that does not exist is an error.
 */
static void add_partition(struct relay *relay, rd_kafka_topic_partition_t *assigned)
{
	relay_partition_add(relay, assigned);
	if (assigned->offset < 0)
		assigned->offset = RD_KAFKA_OFFSET_BEGINNING;
	log_say(LOG_DEBUG, "%s [%" PRId32 "] is ours from offset %" PRId64, assigned->topic,
		assigned->partition, assigned->offset);
}

static void assign(struct relay *relay, rd_kafka_topic_partition_list_t *list)
{
	int i;

	log_say(LOG_INFO, "%d partitions are assigned", list->cnt);
	if (list->cnt && !ask_committed(relay, list)) {
		log_say(LOG_ERR, "cannot read the committed offsets: ending");
		relay_end(relay, EX_UNAVAILABLE);
		return;
	}
	for (i = 0; i < list->cnt; i++)
		add_partition(relay, &list->elems[i]);
	rd_kafka_assign(relay->consumer, list);
	relay_partition_backpressure_all(relay);
}

/* --- revoked -------------------------------------------------------------------------- */

static struct relay_partition *find_partition(struct relay *relay,
					      const rd_kafka_topic_partition_list_t *list, int i)
{
	return relay_partition_find(relay, list->elems[i].topic, list->elems[i].partition);
}

static bool is_in_flight(struct relay *relay, const rd_kafka_topic_partition_list_t *list)
{
	struct relay_partition *partition;
	int i;

	for (i = 0; i < list->cnt; i++) {
		partition = find_partition(relay, list, i);
		if (partition && partition->nr_sending)
			return true;
	}
	return false;
}

static void flush(struct relay *relay, const rd_kafka_topic_partition_list_t *list)
{
	uint64_t end_ms = relay_boot_ms() + FLUSH_MS;

	while (is_in_flight(relay, list) && relay_boot_ms() < end_ms)
		relay_send_poll(relay, POLL_MS);
	if (is_in_flight(relay, list))
		log_say(LOG_WARNING,
			"some records have no delivery report yet, and may come twice");
}

static void forget_partitions(struct relay *relay, const rd_kafka_topic_partition_list_t *list)
{
	int i;

	for (i = 0; i < list->cnt; i++) {
		struct relay_partition *partition = find_partition(relay, list, i);

		if (partition)
			relay_partition_forget(relay, partition);
	}
}

/* Forget all partitions, as if they were lost. */
static void forget_all(struct relay *relay)
{
	struct relay_partition *partition;

	relay->revoking = true;
	while ((partition = RB_MIN(relay_partitions, &relay->partitions)))
		relay_partition_forget(relay, partition);
	relay->revoking = false;
}

static void revoke_partitions(struct relay *relay, rd_kafka_topic_partition_list_t *list)
{
	bool lost = rd_kafka_assignment_lost(relay->consumer);

	log_say(LOG_INFO, "%d partitions are %s", list->cnt, lost ? "lost" : "revoked");
	/* The whole assignment is revoked at once. */
	relay->revoking = true;
	if (!lost) {
		flush(relay, list);
		relay_commit_wait(relay, list);
	}
	forget_partitions(relay, list);
	relay->revoking = false;
	rd_kafka_assign(relay->consumer, NULL);
}

void relay_group_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t error,
			   rd_kafka_topic_partition_list_t *list, void *context)
{
	struct relay *relay = context;

	relay->stats.rebalances++;
	if (error == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
		assign(relay, list);
		return;
	}
	relay_doubt_end(relay);
	if (error == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
		revoke_partitions(relay, list);
	} else {
		log_say(LOG_ERR, "rebalance: %s", rd_kafka_err2str(error));
		forget_all(relay);
		rd_kafka_assign(client, NULL);
	}
}

/* --- the group ------------------------------------------------------------------------ */

/* Write the regular expression that matches a name. */
static void quote_regex(char *to, const char *name)
{
	for (; *name; name++) {
		if (!isalnum((unsigned char)*name) && *name != '_' && *name != '-')
			*to++ = '\\';
		*to++ = *name;
	}
	*to = '\0';
}

/* Subscribe to the topic of delays and the buckets of any horizon. */
int relay_group_join(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	char quoted[2 * RELAY_TOPIC_MAX + 1], topics[2 * RELAY_TOPIC_MAX + 32];
	rd_kafka_resp_err_t error;

	quote_regex(quoted, relay->options.topic);
	snprintf(topics, sizeof(topics),
		 "^%s(" RELAY_BUCKET_INFIX "[1-9][0-9]{0,8}" RELAY_BUCKET_SUFFIX ")?$", quoted);
	rd_kafka_topic_partition_list_add(list, topics, RD_KAFKA_PARTITION_UA);
	error = rd_kafka_subscribe(relay->consumer, list);
	rd_kafka_topic_partition_list_destroy(list);
	if (!error)
		return 0;
	log_say(LOG_ERR, "cannot subscribe to %s: %s", topics, rd_kafka_err2str(error));
	return EXIT_CANNOT;
}

bool relay_group_read(struct relay *relay)
{
	rd_kafka_message_t *message = NULL;
	int nr;

	for (nr = 0; nr < BATCH && !relay->ending; nr++) {
		message = rd_kafka_consumer_poll(relay->consumer, 0);
		if (!message)
			return false;
		if (message->rkt)
			relay_partition_read(relay, message);
		else
			log_say(LOG_WARNING, "kafka: %s", rd_kafka_message_errstr(message));
		rd_kafka_message_destroy(message);
	}
	return true;
}

void relay_group_leave(struct relay *relay)
{
	rd_kafka_consumer_close(relay->consumer);
	/* After a fatal error the consumer does not revoke them. */
	forget_all(relay);
}
