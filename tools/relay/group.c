// SPDX-License-Identifier: GPL-2.0
/*
 * The consumer group: partitions are assigned and revoked.
 *
 * The group revokes all partitions of all members before it assigns them anew (its protocol is
 * the eager one, see README.md). That is made cheap: a relay keeps what it has of a partition
 * while it is suspended, and goes on at once if it gets the partition back in the next
 * generation. Nobody else can have had it in between.
 *
 *	            assign          loaded: read from the committed offset
 *	  (others') -------> loading ----------------------------------> ready
 *	      ^                                                         |     ^
 *	      |                          revoke: write no more, wait    |     | assign, in the
 *	      |                          for what is in flight, commit  v     | next generation
 *	      +---------------------------------------------------- suspended-+
 *	          assign: it is not among them
 *
 * A partition that was lost (the group has assigned it to another relay already) is forgotten
 * at once. At least once: the other relay delivers again what was done since the last commit.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/exit.h"
#include "common/log.h"
#include "relay/cancels.h"
#include "relay/commit.h"
#include "relay/doubt.h"
#include "relay/group.h"
#include "relay/kafka.h"
#include "relay/load.h"
#include "relay/map.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/state.h"
#include "relay/turn.h"

/* How many records are read in a turn of the loop. */
#define BATCH		500

/* How long partitions that are ready wait for others, at most. */
#define APPLY_EVERY_MS	1000

/* How long a revoke waits for reports in all, and for the next one. */
#define FLUSH_MS	10000
#define QUIET_MS	2000

/* Only one of the producers ends a wait when it reports. */
#define POLL_MS		10

/* --- the generation ------------------------------------------------------------------- */

/* What rd_kafka_consumer_group_metadata_write() writes begins with this, and the generation. */
#define METADATA_MAGIC	"CGMDv2:"

/* librdkafka 2.0 tells the generation only in a buffer. */
static int32_t generation_of(const rd_kafka_consumer_group_metadata_t *metadata)
{
	size_t size = 0, magic = strlen(METADATA_MAGIC);
	int32_t generation = -1;
	void *buffer = NULL;
	rd_kafka_error_t *error = rd_kafka_consumer_group_metadata_write(metadata, &buffer, &size);

	if (!error && size >= magic + sizeof(generation) &&
	    !memcmp(buffer, METADATA_MAGIC, magic))
		memcpy(&generation, (char *)buffer + magic, sizeof(generation));
	rd_kafka_error_destroy(error);
	/* It is librdkafka's allocation. */
	rd_kafka_mem_free(NULL, buffer);
	return generation;
}

rd_kafka_consumer_group_metadata_t *relay_group_metadata(struct relay *relay)
{
	rd_kafka_consumer_group_metadata_t *metadata;

	if (relay->revoking || rd_kafka_assignment_lost(relay->consumer))
		return NULL;
	metadata = rd_kafka_consumer_group_metadata(relay->consumer);
	if (!metadata || generation_of(metadata) >= 0)
		return metadata;
	rd_kafka_consumer_group_metadata_destroy(metadata);
	return NULL;
}

int32_t relay_group_generation(struct relay *relay)
{
	rd_kafka_consumer_group_metadata_t *metadata =
		rd_kafka_consumer_group_metadata(relay->consumer);
	int32_t generation = metadata ? generation_of(metadata) : -1;

	if (metadata)
		rd_kafka_consumer_group_metadata_destroy(metadata);
	return generation;
}

/* --- what librdkafka reads -------------------------------------------------------------- */

static bool is_read(const struct relay_partition *partition)
{
	return partition->state == PARTITION_READY && !(partition->pauses & PAUSE_STOPPED);
}

/* librdkafka forgets pauses when it begins to read a partition, in some versions. */
static void pause_again(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (is_read(partition) && partition->is_paused)
			rd_kafka_topic_partition_list_add(list, partition->topic,
							  partition->number);
	if (list->cnt)
		rd_kafka_pause_partitions(relay->consumer, list);
	rd_kafka_topic_partition_list_destroy(list);
}

/*
 * Wait until librdkafka has stopped the partitions of an earlier assignment. It asserts that none
 * is told to stop twice, which the next assignment would do. Its main thread handles requests in
 * their order: it has told all to stop when the first of these is answered, and has noted that
 * they did when the second is.
 */
static void wait_until_stopped(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list;
	int i;

	for (i = 0; i < 2; i++)
		if (!rd_kafka_assignment(relay->consumer, &list))
			rd_kafka_topic_partition_list_destroy(list);
}

/* Tell librdkafka to read all partitions that are ready, each from where it stands. */
static void apply_assignment(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
	struct relay_partition *partition;
	rd_kafka_resp_err_t error;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (is_read(partition))
			rd_kafka_topic_partition_list_add(list, partition->topic,
							  partition->number)->offset =
				partition->next;
	error = rd_kafka_assign(relay->consumer, list);
	if (error)
		log_say(LOG_ERR, "cannot read the assigned partitions: %s",
			rd_kafka_err2str(error));
	rd_kafka_topic_partition_list_destroy(list);
	wait_until_stopped(relay);
	relay->applied_ms = relay_boot_ms();
	relay_partition_backpressure_all(relay);
	pause_again(relay);
}

static bool is_loaded(struct relay *relay, const struct relay_partition *partition)
{
	return partition->loaded && relay_cancels_ready(relay, partition->number);
}

static bool are_all_loaded(struct relay *relay)
{
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (partition->state == PARTITION_LOADING && !is_loaded(relay, partition))
			return false;
	return true;
}

/*
 * Partitions that were loaded, and whose ids that were taken back are known, are ready. They wait
 * for each other a while: with each assignment librdkafka fetches again what it had fetched of
 * all partitions.
 */
void relay_group_update(struct relay *relay)
{
	struct relay_partition *partition;
	bool changed = false;

	if (!relay->assign_again || relay->revoking)
		return;
	if (relay_boot_ms() < relay->applied_ms + APPLY_EVERY_MS && !are_all_loaded(relay))
		return;
	relay->assign_again = false;
	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (partition->state == PARTITION_LOADING && is_loaded(relay, partition)) {
			partition->state = PARTITION_READY;
			changed = true;
		}
	if (changed)
		apply_assignment(relay);
}

/* --- assigned ------------------------------------------------------------------------- */

static void forget_all(struct relay *relay)
{
	struct relay_partition *partition;

	while ((partition = RB_MIN(relay_partitions, &relay->partitions)))
		relay_partition_forget(relay, partition);
}

static bool is_in(const rd_kafka_topic_partition_list_t *list,
		  const struct relay_partition *partition)
{
	return rd_kafka_topic_partition_list_find((rd_kafka_topic_partition_list_t *)list,
						  partition->topic, partition->number);
}

/* Go on with the suspended partitions that are assigned to us again, and forget the others. */
static void resume_partitions(struct relay *relay, const rd_kafka_topic_partition_list_t *list,
			      int32_t generation)
{
	bool next = relay->suspended >= 0 && generation == relay->suspended + 1;
	struct relay_partition *partition, *after;

	RB_FOREACH_SAFE(partition, relay_partitions, &relay->partitions, after) {
		if (next && partition->state == PARTITION_SUSPENDED && is_in(list, partition)) {
			partition->state = PARTITION_READY;
			relay->stats.kept++;
		} else {
			relay_partition_forget(relay, partition);
		}
	}
	relay->suspended = -1;
}

static void add_partitions(struct relay *relay, const rd_kafka_topic_partition_list_t *list,
			   int32_t group_generation)
{
	int64_t generation = piece_generation(group_generation, relay_now_ms());
	int i;

	for (i = 0; i < list->cnt; i++)
		if (!relay_partition_find(relay, list->elems[i].topic,
					  list->elems[i].partition))
			relay_partition_add(relay, list->elems[i].topic, list->elems[i].partition,
					    generation);
}

/* Partitions are in the order of their numbers. */
void relay_group_load(struct relay *relay)
{
	struct relay_partition *partition;
	int32_t last = -1;

	relay_load_abandon(relay);
	RB_FOREACH(partition, relay_partitions, &relay->partitions) {
		if (partition->state != PARTITION_LOADING || partition->loaded ||
		    partition->number == last)
			continue;
		last = partition->number;
		relay_load_start(relay, last);
	}
}

static void assign(struct relay *relay, const rd_kafka_topic_partition_list_t *list)
{
	int32_t generation = relay_group_generation(relay);

	resume_partitions(relay, list, generation);
	log_say(LOG_INFO, "%d partitions are assigned", list->cnt);
	add_partitions(relay, list, generation);
	relay->revoking = false;
	relay_group_load(relay);
	relay->assign_again = true;
	apply_assignment(relay);
}

/* --- revoked -------------------------------------------------------------------------- */

/*
 * Wait for the reports of all that is in flight. A target that does not answer is not waited for
 * when nothing else comes any more.
 */
static void flush(struct relay *relay)
{
	uint64_t now_ms = relay_boot_ms(), end_ms = now_ms + FLUSH_MS, quiet_ms = now_ms;
	uint64_t nr = relay->nr_reports;

	while (relay->nr_sending && now_ms < end_ms && now_ms < quiet_ms + QUIET_MS) {
		relay_send_poll(relay, POLL_MS);
		now_ms = relay_boot_ms();
		if (relay->nr_reports != nr)
			quiet_ms = now_ms;
		nr = relay->nr_reports;
	}
	if (!relay->nr_sending)
		return;
	relay->unclean = true;
	log_say(LOG_WARNING, "%" PRIu64 " records have no delivery report yet, and may come twice",
		relay->nr_sending);
	/* What has not left yet must not be written after another relay has written it. */
	rd_kafka_purge(relay->producer, RD_KAFKA_PURGE_F_QUEUE);
	rd_kafka_purge(relay->own_producer, RD_KAFKA_PURGE_F_QUEUE);
	relay_send_poll(relay, 0);
}

/* Does Kafka know all that is done of a partition, by the map, or by the committed offset alone? */
static bool is_known(const struct relay_partition *partition)
{
	return partition->done_mapped == partition->done ||
		(partition->commit_done == partition->done &&
		 partition->committed == partition->mark.low &&
		 !watermark_done_above(&partition->mark));
}

static bool is_all_known(struct relay *relay)
{
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (partition->state == PARTITION_READY && !is_known(partition))
			return false;
	return true;
}

/* At least once: everything that is done becomes known to the next owner. */
static void finish_once(struct relay *relay)
{
	flush(relay);
	relay_map_wait(relay);
	relay_map_flush(relay);
	relay->unclean |= !relay_commit_wait(relay);
	relay->unclean |= !relay_map_wait(relay) || !is_all_known(relay);
}

static void suspend_partitions(struct relay *relay)
{
	struct relay_partition *partition, *after;

	RB_FOREACH_SAFE(partition, relay_partitions, &relay->partitions, after) {
		if (partition->state == PARTITION_READY)
			partition->state = PARTITION_SUSPENDED;
		else
			relay_partition_forget(relay, partition);
	}
}

/* The whole assignment is revoked at once. */
static void revoke(struct relay *relay, const rd_kafka_topic_partition_list_t *list)
{
	bool lost = rd_kafka_assignment_lost(relay->consumer);

	log_say(LOG_INFO, "%d partitions are %s", list->cnt, lost ? "lost" : "revoked");
	relay->revoking = true;
	relay_load_abandon(relay);
	relay->suspended = -1;
	/* Only what the last end has left open counts. */
	relay->unclean = false;
	if (lost) {
		relay_turn_wait(relay);
		forget_all(relay);
	} else {
		if (relay->turn)
			relay->unclean |= !relay_turn_wait(relay);
		else
			finish_once(relay);
		relay->suspended = relay_group_generation(relay);
		suspend_partitions(relay);
	}
	rd_kafka_assign(relay->consumer, NULL);
}

void relay_group_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t error,
			   rd_kafka_topic_partition_list_t *list, void *context)
{
	struct relay *relay = context;

	relay->stats.rebalances++;
	/* A relay may have stood still while it joined, so an assignment does not end the doubt. */
	if (error == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
		assign(relay, list);
		return;
	}
	relay_doubt_end(relay);
	if (error == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
		revoke(relay, list);
	} else {
		log_say(LOG_ERR, "rebalance: %s", rd_kafka_err2str(error));
		relay->revoking = true;
		relay_load_abandon(relay);
		relay_turn_wait(relay);
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

static void log_error(const struct relay *relay, const rd_kafka_message_t *message)
{
	char group[RELAY_GROUP_MAX];

	if (message->err != RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
		log_say(LOG_WARNING, "kafka: %s", rd_kafka_message_errstr(message));
		return;
	}
	relay_client_group(relay, group);
	log_say(LOG_ERR, "this user may not read the group %s (Read of the group)", group);
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
			log_error(relay, message);
		rd_kafka_message_destroy(message);
	}
	return true;
}

/* The end of a transaction is unknown: what is done has to be read from Kafka again. */
void relay_group_reload(struct relay *relay)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
	int32_t generation = relay_group_generation(relay);
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
	forget_all(relay);
	if (!relay->revoking) {
		add_partitions(relay, list, generation);
		relay_group_load(relay);
		apply_assignment(relay);
	}
	rd_kafka_topic_partition_list_destroy(list);
}

void relay_group_leave(struct relay *relay)
{
	rd_kafka_consumer_close(relay->consumer);
	/* After a fatal error the consumer does not revoke them. */
	relay->revoking = true;
	relay_turn_wait(relay);
	forget_all(relay);
	if (relay->unclean && !relay->status) {
		log_say(LOG_ERR, "ended before brokers had taken all that is done%s",
			relay->options.delivery == RELAY_EXACTLY_ONCE ? "" :
			": records may come twice");
		relay->status = EX_UNAVAILABLE;
	}
}
