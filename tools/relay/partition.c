// SPDX-License-Identifier: GPL-2.0
/*
 * Records of a partition: they are read and decided in the order of offsets, and done in any
 * order.
 *
 * A partition is paused while it has at least one reason for it (enum relay_pause); only behind a
 * head that waits, some records are read ahead first. Records that librdkafka had handed over
 * before the pause, or hands over all the same, are not lost: they wait in @undecided. Records
 * that come again are recognised by their offset.
 *
 * The head of a bucket may wait for weeks, in each of its partitions. A large head is not kept
 * in memory for that long: it is freed, librdkafka is told to seek to it, and it is read again
 * when it is ready.
 *
 * A record is done when Kafka has acknowledged what was written for it. In a turn it counts as
 * done from when the turn begins, since the turn commits that together with the record; if the
 * turn is aborted, that is undone.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/log.h"
#include "common/retry_policy.h"
#include "common/util.h"
#include "relay/cancels.h"
#include "relay/clocks.h"
#include "relay/entry.h"
#include "relay/load.h"
#include "relay/map.h"
#include "relay/near.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/state.h"
#include "relay/wake.h"

/* How often it is logged that memory is short. */
#define LOG_EVERY_MS	60000

/* A head that is ready sooner than this is kept in memory. */
#define REWIND_MIN_MS	10000

/* Limit of a seek, and when one that failed is repeated. */
#define SEEK_MS		5000
#define SEEK_AGAIN_MS	1000

int relay_partition_compare(const struct relay_partition *a, const struct relay_partition *b)
{
	return a->number != b->number ? (a->number > b->number) - (a->number < b->number) :
		strcmp(a->topic, b->topic);
}

RB_GENERATE(relay_partitions, relay_partition, node, relay_partition_compare);

struct relay_partition *relay_partition_find(struct relay *relay, const char *topic,
					     int32_t number)
{
	const struct relay_partition key = { .topic = (char *)topic, .number = number };

	return RB_FIND(relay_partitions, &relay->partitions, (struct relay_partition *)&key);
}

/* --- pauses --------------------------------------------------------------------------- */

/**
 * struct change - partitions to pause, and to resume
 *
 * librdkafka is told of many at once, because each call waits for its thread.
 */
struct change {
	rd_kafka_topic_partition_list_t *pause;
	rd_kafka_topic_partition_list_t *resume;
};

/*
 * Behind a head that waits in memory, some records are read ahead: with a pause, librdkafka forgets
 * what it has fetched, and fetches it again.
 */
static bool may_read_ahead(const struct relay *relay, const struct relay_partition *partition)
{
	size_t most = relay->pressure.cap / 16 / relay->nr_partitions;

	return partition->reread_offset < 0 &&
		partition->undecided_bytes <= (partition->is_paused ? most / 2 : most);
}

static bool is_to_pause(const struct relay *relay, const struct relay_partition *partition)
{
	return partition->pauses == PAUSE_HEAD ? !may_read_ahead(relay, partition) :
		partition->pauses;
}

/* Add a partition to the change if librdkafka has to pause or resume it. */
static void note_change(const struct relay *relay, struct change *change,
			struct relay_partition *partition)
{
	rd_kafka_topic_partition_list_t **list;

	if (is_to_pause(relay, partition) == partition->is_paused)
		return;
	partition->is_paused = !partition->is_paused;
	list = partition->is_paused ? &change->pause : &change->resume;
	if (!*list)
		*list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(*list, partition->topic, partition->number);
}

static void apply_change(struct relay *relay, const struct change *change)
{
	if (change->pause) {
		rd_kafka_pause_partitions(relay->consumer, change->pause);
		rd_kafka_topic_partition_list_destroy(change->pause);
	}
	if (change->resume) {
		rd_kafka_resume_partitions(relay->consumer, change->resume);
		rd_kafka_topic_partition_list_destroy(change->resume);
	}
}

static void set_pauses(struct relay *relay, struct relay_partition *partition,
		       unsigned int pauses)
{
	struct change change = { 0 };

	partition->pauses = pauses;
	note_change(relay, &change, partition);
	apply_change(relay, &change);
}

static void pause_for(struct relay *relay, struct relay_partition *partition,
		      enum relay_pause reason)
{
	set_pauses(relay, partition, partition->pauses | reason);
}

static void end_pause(struct relay *relay, struct relay_partition *partition,
		      enum relay_pause reason)
{
	set_pauses(relay, partition, partition->pauses & ~reason);
}

/* Of ids and records that are due soon only time, or more memory, makes less. */
static void log_short_memory(struct relay *relay)
{
	if (!relay->pressure.paused[RELAY_INPUT] || relay->memory_pauses[RELAY_INPUT] ||
	    !log_again(&relay->memory_logged_ms, relay_boot_ms(), LOG_EVERY_MS))
		return;
	log_say(LOG_WARNING, "memory is short: new records are not read until there is room; of %"
		PRIu64 " of %" PRIu64 " bytes, %" PRIu64 " are for ids that were taken back",
		relay->pressure.bytes, relay->pressure.cap, relay_cancels_bytes(relay));
}

void relay_partition_backpressure(struct relay *relay)
{
	log_short_memory(relay);
	if (memcmp(relay->memory_pauses, relay->pressure.paused, sizeof(relay->memory_pauses)))
		relay_partition_backpressure_all(relay);
}

void relay_partition_backpressure_all(struct relay *relay)
{
	struct relay_partition *partition;
	struct change change = { 0 };

	memcpy(relay->memory_pauses, relay->pressure.paused, sizeof(relay->memory_pauses));
	RB_FOREACH(partition, relay_partitions, &relay->partitions) {
		if (relay->memory_pauses[partition->kind])
			partition->pauses |= PAUSE_MEMORY;
		else
			partition->pauses &= ~PAUSE_MEMORY;
		note_change(relay, &change, partition);
	}
	apply_change(relay, &change);
}

/* Records are missing or cannot be read: leave all others of the partition as they are. */
static void stop_partition(struct relay *relay, struct relay_partition *partition,
			   const char *why)
{
	if (!(partition->pauses & PAUSE_STOPPED))
		log_say(LOG_ERR, "%s [%" PRId32 "] is stopped at offset %" PRId64
			": %s. Records may be missing: see twheel-relay skip",
			partition->topic, partition->number, partition->next, why);
	pause_for(relay, partition, PAUSE_STOPPED);
}

/* --- deciding ------------------------------------------------------------------------- */

static const struct retry_policy *find_policy(const struct relay *relay,
					      const struct relay_text *target)
{
	const struct relay_policy *policy;

	STAILQ_FOREACH(policy, &relay->options.policies, entry)
		if (strlen(policy->target) == target->len &&
		    !memcmp(policy->target, target->data, target->len))
			return &policy->policy;
	return &retry_policy_default;
}

static void decide(struct relay *relay, struct relay_entry *entry)
{
	const struct relay_partition *partition = entry->partition;
	struct relay_record record = {
		.width_ms = partition->width_ms,
		.timestamp_ms = entry->timestamp_ms,
		.seed = (uint64_t)partition->number << 48 ^ (uint64_t)entry->offset,
		.target = relay_entry_header(entry, RELAY_TARGET),
		.deliver_at = relay_entry_header(entry, RELAY_DELIVER_AT),
		.delay = relay_entry_header(entry, RELAY_DELAY),
		.attempt = relay_entry_header(entry, RELAY_ATTEMPT),
		.due = relay_entry_header(entry, RELAY_DUE),
		.parked = relay_entry_header(entry, RELAY_PARKED),
		.tries = relay_entry_header(entry, RELAY_TRIES),
		.held_since = relay_entry_header(entry, RELAY_HELD_SINCE),
		.cancel = relay_entry_header(entry, RELAY_CANCEL),
	};

	record.policy = find_policy(relay, &record.target);
	relay_decide(&relay->rules, &record, relay_now_ms(), &entry->decision);
}

/* Carry out the decision about an entry, which is in no list. */
static void carry_out(struct relay *relay, struct relay_entry *entry)
{
	if (entry->decision.action == RELAY_NEAR)
		relay_near_add(relay, entry);
	else
		relay_send(relay, entry);
}

/* Is the bucket of an entry that gives way still over in time? */
static bool still_gives_way(const struct relay *relay, const struct relay_entry *entry)
{
	uint64_t now_ms = relay_now_ms(), due_ms = entry->decision.due_ms;

	return due_ms > now_ms && relay_give_way_bucket(&relay->rules, due_ms - now_ms) >=
		(int)entry->decision.bucket;
}

bool relay_partition_reconsider(struct relay *relay, struct relay_entry *entry)
{
	struct relay_decision before = entry->decision;

	if (before.action != RELAY_PARK || entry->is_parked_again ||
	    (entry->gives_way && still_gives_way(relay, entry)))
		return false;
	decide(relay, entry);
	/* Somebody has set the clock back: the earlier decision stands. */
	if (entry->decision.action == RELAY_WAIT || entry->decision.action == RELAY_REFUSE)
		entry->decision = before;
	if (entry->decision.action == RELAY_PARK && entry->decision.bucket == before.bucket)
		return false;
	relay_send_forget(relay, entry);
	relay_entry_stays(relay, entry);
	entry->isolated = false;
	carry_out(relay, entry);
	return true;
}

/* The window cannot grow any more: read on when the lowest offsets are done. */
static void pause_for_window(struct relay *relay, struct relay_partition *partition)
{
	if (!(partition->pauses & PAUSE_WINDOW))
		log_say(LOG_WARNING, "%s [%" PRId32 "] is paused: %" PRIu64
			" records are done above the first one that is not done", partition->topic,
			partition->number, watermark_done_above(&partition->mark));
	pause_for(relay, partition, PAUSE_WINDOW);
}

static void end_for_memory(struct relay *relay, const char *what)
{
	log_say(LOG_ERR, "out of memory for %s", what);
	relay_end(relay, EX_OSERR);
}

static void finish_entry(struct relay *relay, struct relay_entry *entry);
static void wake_head(struct relay *relay, struct relay_waker *waker);

/* Another relay has done the record, before the partition was assigned to us. */
static void skip_done(struct relay *relay, struct relay_entry *entry)
{
	relay->stats.done_before++;
	finish_entry(relay, entry);
}

/* --- heads that wait ------------------------------------------------------------------ */

/* Before 2.1, librdkafka waits for a thousandth of the time that it is told (its issue 4230). */
static int seek_timeout(void)
{
	return rd_kafka_version() < 0x02010000 ? SEEK_MS * 1000 : SEEK_MS;
}

static bool seek(struct relay *relay, struct relay_partition *partition, int64_t offset)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_error_t *error;
	bool done;

	rd_kafka_topic_partition_list_add(list, partition->topic, partition->number)->offset =
		offset;
	error = rd_kafka_seek_partitions(relay->consumer, list, seek_timeout());
	done = !error && !list->elems[0].err;
	rd_kafka_error_destroy(error);
	rd_kafka_topic_partition_list_destroy(list);
	return done;
}

/* All heads that wait may take an eighth of the memory together. */
static bool is_large(const struct relay *relay, const struct relay_partition *partition)
{
	return partition->undecided_bytes > relay->pressure.cap / 8 / relay->nr_partitions;
}

/* Free the undecided entries, if that is worth it, and seek to them: Kafka has them still. */
static void rewind_to_head(struct relay *relay, struct relay_partition *partition)
{
	struct relay_entry *entry = TAILQ_FIRST(&partition->undecided);

	if (!entry || !is_large(relay, partition) || relay->revoking ||
	    partition->head.time_ms < relay_now_ms() + REWIND_MIN_MS ||
	    !seek(relay, partition, entry->offset))
		return;
	partition->next = entry->offset;
	partition->reread_offset = entry->offset;
	partition->reread_timestamp_ms = entry->timestamp_ms;
	/* It may have an earlier epoch than the records that were read after it. */
	partition->last_epoch = -1;
	while ((entry = TAILQ_FIRST(&partition->undecided)))
		relay_send_free(relay, entry);
}

/* The head did not come: seek to it again. */
static void wake_seek(struct relay *relay, struct relay_waker *waker)
{
	struct relay_partition *partition = container_of(waker, struct relay_partition, head);

	if (partition->state == PARTITION_READY && !relay->revoking &&
	    partition->reread_offset >= 0 &&
	    !seek(relay, partition, partition->reread_offset))
		relay_wake_in(relay, waker, SEEK_AGAIN_MS);
}

/*
 * May the record at this offset be read now? Not if the head that was freed is before it and has
 * not come again: the head would then be taken for a gap, which counts as done.
 */
static bool may_read(struct relay *relay, struct relay_partition *partition, int64_t offset)
{
	if (partition->reread_offset < 0 || offset < partition->reread_offset)
		return true;
	if (offset == partition->reread_offset) {
		partition->reread_offset = -1;
		return true;
	}
	if (!relay_wake_pending(&partition->head)) {
		partition->head.wake = wake_seek;
		relay_wake_in(relay, &partition->head, 0);
	}
	return false;
}

/* --- undecided entries ---------------------------------------------------------------- */

/* The window takes its memory from the same limit as records. */
void relay_partition_account(struct relay *relay, struct relay_partition *partition)
{
	size_t bytes = watermark_bytes(&partition->mark);

	bytes += relay_map_bytes(partition);
	if (bytes > partition->mark_bytes)
		relay_pressure_add(&relay->pressure, bytes - partition->mark_bytes);
	else if (bytes < partition->mark_bytes)
		relay_pressure_sub(&relay->pressure, partition->mark_bytes - bytes);
	partition->mark_bytes = bytes;
}

/* It takes another record back: count it if that may be too late. */
static void note_take_back(struct relay *relay, const struct relay_entry *entry)
{
	relay->stats.cancelled_late += entry->decision.action == RELAY_TAKE_BACK &&
		relay_cancel_is_late(&relay->rules, entry->decision.due_ms, relay_now_ms());
}

/* Decide the first undecided entry. Returns whether there may be more to decide. */
static bool decide_first(struct relay *relay, struct relay_partition *partition)
{
	struct relay_entry *entry = TAILQ_FIRST(&partition->undecided);
	bool done;
	int error;

	if (!entry)
		return false;
	done = done_map_has(&partition->before, partition->use_low, entry->offset,
			    entry->timestamp_ms, entry->epoch);
	if (!done)
		decide(relay, entry);
	if (!done && entry->decision.action == RELAY_WAIT) {
		pause_for(relay, partition, PAUSE_HEAD);
		partition->head.wake = wake_head;
		relay_wake_at(relay, &partition->head, entry->decision.until_ms +
			      relay_linger_ms(&relay->rules, partition->width_ms));
		rewind_to_head(relay, partition);
		return false;
	}
	error = watermark_read(&partition->mark, entry->offset);
	relay_partition_account(relay, partition);
	if (error == -ENOMEM)
		end_for_memory(relay, "the list of done offsets");
	else if (error)
		pause_for_window(relay, partition);
	if (error)
		return false;
	relay_entry_decided(entry);
	if (done) {
		skip_done(relay, entry);
		return true;
	}
	note_take_back(relay, entry);
	carry_out(relay, entry);
	return true;
}

/* Decide entries until one has to wait. */
static void decide_undecided(struct relay *relay, struct relay_partition *partition)
{
	if (partition->pauses & (PAUSE_HEAD | PAUSE_WINDOW))
		return;
	while (decide_first(relay, partition))
		;
}

static void wake_head(struct relay *relay, struct relay_waker *waker)
{
	struct relay_partition *partition = container_of(waker, struct relay_partition, head);

	/* librdkafka is told only if the next head does not pause the partition again at once. */
	partition->pauses &= ~PAUSE_HEAD;
	decide_undecided(relay, partition);
	set_pauses(relay, partition, partition->pauses);
}

/* --- reading -------------------------------------------------------------------------- */

/*
 * Does the error mean that we miss records? librdkafka skips those that it cannot read: they
 * would be taken for a gap, which counts as done.
 */
static bool means_missing_records(rd_kafka_resp_err_t error)
{
	switch (error) {
	case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
	case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
	case RD_KAFKA_RESP_ERR__BAD_MSG:
	case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
	case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
		return true;
	default:
		return false;
	}
}

static void handle_read_error(struct relay *relay, struct relay_partition *partition,
			      const rd_kafka_message_t *message)
{
	if (means_missing_records(message->err))
		stop_partition(relay, partition, rd_kafka_message_errstr(message));
	else
		log_say(LOG_WARNING, "%s [%" PRId32 "]: %s", partition->topic,
			partition->number, rd_kafka_message_errstr(message));
}

static bool has_readable_headers(const rd_kafka_message_t *message)
{
	rd_kafka_headers_t *headers;
	rd_kafka_resp_err_t error = rd_kafka_message_headers(message, &headers);

	return !error || error == RD_KAFKA_RESP_ERR__NOENT;
}

/* Leader epochs grow along the log of a topic. A topic that is made anew begins with 0. */
static bool goes_back(struct relay_partition *partition, const struct relay_entry *entry)
{
	bool back = entry->epoch >= 0 && entry->epoch < partition->last_epoch;

	if (entry->epoch >= 0)
		partition->last_epoch = entry->epoch;
	return back;
}

static void read_record(struct relay *relay, struct relay_partition *partition,
			const rd_kafka_message_t *message)
{
	struct relay_entry *entry;

	if (message->offset < partition->next) {
		relay->stats.repeated++;
		return;
	}
	if (!may_read(relay, partition, message->offset))
		return;
	if (!has_readable_headers(message)) {
		stop_partition(relay, partition, "the record's headers are damaged");
		return;
	}
	entry = relay_entry_new(relay, message);
	if (!entry) {
		/* The record cannot be skipped, and librdkafka does not return it again. */
		end_for_memory(relay, "a record");
		return;
	}
	if (goes_back(partition, entry)) {
		relay_entry_free(relay, entry);
		partition->is_void = true;
		stop_partition(relay, partition,
			       "the leader epoch goes back: the topic was made anew");
		return;
	}
	partition->next = message->offset + 1;
	entry->partition = partition;
	entry->state = ENTRY_UNDECIDED;
	TAILQ_INSERT_TAIL(&partition->entries, entry, in_partition);
	TAILQ_INSERT_TAIL(&partition->undecided, entry, in_queue);
	partition->undecided_bytes += entry->size;
	decide_undecided(relay, partition);
	/* It may be too much to be read ahead, or was in flight when its partition was paused. */
	if (partition->pauses & PAUSE_HEAD) {
		rewind_to_head(relay, partition);
		set_pauses(relay, partition, partition->pauses);
	}
	relay_partition_backpressure(relay);
}

void relay_partition_read(struct relay *relay, const rd_kafka_message_t *message)
{
	struct clock_difference difference = { 0 };
	struct relay_partition *partition;

	partition = relay_partition_find(relay, rd_kafka_topic_name(message->rkt),
					 message->partition);
	if (!partition || partition->state != PARTITION_READY ||
	    (partition->pauses & PAUSE_STOPPED))
		return;
	if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
		/* Not while a head is to be read again: then @next is before it. */
		if (partition->reread_offset < 0)
			partition->at_end = partition->next;
		partition->log_end = message->offset;
	} else if (message->err) {
		handle_read_error(relay, partition, message);
	} else {
		clock_difference_read(&difference, message);
		relay_clocks_add(relay, &difference);
		read_record(relay, partition, message);
	}
}

/* Does the window have room for more offsets again? */
static bool has_window(const struct relay_partition *partition)
{
	uint64_t window = partition->mark.next - partition->mark.low;

	return window < WATERMARK_SPAN_MAX / 8 * 7;
}

/* Its record is done: Kafka has acknowledged it, or it is not to be written. */
static void note_done(struct relay *relay, const struct relay_entry *entry)
{
	struct relay_partition *partition = entry->partition;

	watermark_done(&partition->mark, entry->offset);
	relay_map_note(relay, partition, entry->offset, entry->timestamp_ms, entry->epoch);
	relay_partition_account(relay, partition);
	partition->dirty = true;
}

/* Read no more of them: they cannot be parked again to make room. */
void relay_partition_put_off(struct relay *relay, struct relay_entry *entry)
{
	struct relay_partition *partition = entry->partition;

	if (entry->is_put_off)
		return;
	entry->is_put_off = true;
	partition->nr_put_off++;
	pause_for(relay, partition, PAUSE_PUT_OFF);
}

static void release(struct relay *relay, struct relay_entry *entry)
{
	struct relay_partition *partition = entry->partition;

	if (entry->is_put_off && !--partition->nr_put_off)
		end_pause(relay, partition, PAUSE_PUT_OFF);
	relay_send_free(relay, entry);
	if ((partition->pauses & PAUSE_WINDOW) && has_window(partition)) {
		end_pause(relay, partition, PAUSE_WINDOW);
		decide_undecided(relay, partition);
	}
}

static void finish_entry(struct relay *relay, struct relay_entry *entry)
{
	note_done(relay, entry);
	release(relay, entry);
}

void relay_partition_drop(struct relay *relay, struct relay_entry *entry)
{
	relay->stats.cancelled++;
	finish_entry(relay, entry);
}

void relay_partition_done(struct relay *relay, struct relay_entry *entry)
{
	entry->partition->done++;
	relay->nr_done++;
	/* In a turn it is done since then. */
	if (relay->turn)
		release(relay, entry);
	else
		finish_entry(relay, entry);
}

void relay_partition_expect_done(struct relay *relay, const struct relay_entry *entry)
{
	note_done(relay, entry);
}

void relay_partition_undo(struct relay *relay, const struct relay_entry *entry)
{
	struct relay_partition *partition = entry->partition;

	if (watermark_undo(&partition->mark, entry->offset))
		end_for_memory(relay, "the list of done offsets");
	relay_partition_account(relay, partition);
	partition->dirty = true;
}

/* --- assigned and revoked ------------------------------------------------------------- */

static enum relay_kind kind_of(struct relay *relay, const char *topic, uint64_t *width_ms)
{
	*width_ms = 0;
	return relay_is_bucket(&relay->rules, topic, width_ms) ? RELAY_BUCKET : RELAY_INPUT;
}

static struct relay_partition *new_partition(const char *topic)
{
	struct relay_partition *partition = calloc(1, sizeof(*partition));

	if (partition)
		partition->topic = strdup(topic);
	if (partition && partition->topic)
		return partition;
	free(partition);
	return NULL;
}

void relay_partition_add(struct relay *relay, const char *topic, int32_t number,
			 int64_t generation)
{
	struct relay_partition *partition = new_partition(topic);

	if (!partition) {
		end_for_memory(relay, "a partition");
		return;
	}
	partition->number = number;
	partition->serial = ++relay->serial;
	partition->generation = generation;
	partition->kind = kind_of(relay, topic, &partition->width_ms);
	partition->committed = RD_KAFKA_OFFSET_INVALID;
	partition->done_at_assign = relay->nr_done;
	partition->done = relay->nr_done;
	partition->done_committed = relay->nr_done;
	partition->commit_done = relay->nr_done;
	partition->done_mapped = relay->nr_done;
	TAILQ_INIT(&partition->entries);
	TAILQ_INIT(&partition->undecided);
	partition->reread_offset = -1;
	partition->end = -1;
	partition->at_end = -1;
	partition->newest_ms = -1;
	partition->epoch = -1;
	partition->last_epoch = -1;
	partition->low_written = -1;
	partition->low_mapped = -1;
	RB_INSERT(relay_partitions, &relay->partitions, partition);
	relay->nr_partitions++;
	relay_cancels_take(relay, number);
}

/* The low offset stays a piece for all that it has covered so far. */
static void inherit_low(struct relay_partition *partition)
{
	const struct done_piece *low = done_map_low_piece(&partition->before);

	if (!low)
		return;
	partition->newest_ms = low->piece.newest_ms;
	partition->epoch = low->piece.epoch;
}

void relay_partition_loaded(struct relay *relay, struct relay_loaded *loaded, int32_t number)
{
	struct relay_partition *partition = relay_partition_find(relay, loaded->topic, number);

	if (!partition || partition->serial != loaded->serial ||
	    partition->state != PARTITION_LOADING)
		return;
	partition->loaded = true;
	partition->before = loaded->map;
	memset(&loaded->map, 0, sizeof(loaded->map));
	partition->committed = loaded->committed;
	partition->use_low = loaded->committed < 0;
	partition->next = loaded->begin;
	watermark_init(&partition->mark, loaded->begin);
	inherit_low(partition);
	if (loaded->text)
		relay_map_import(relay, partition, loaded->text, loaded->committed);
	relay_partition_account(relay, partition);
	partition->is_void = *loaded->why;
	if (partition->is_void)
		stop_partition(relay, partition, loaded->why);
	relay->assign_again = true;
	log_say(LOG_DEBUG, "%s [%" PRId32 "] is ours from offset %" PRId64, partition->topic,
		number, loaded->begin);
}

void relay_partition_forget(struct relay *relay, struct relay_partition *partition)
{
	struct relay_entry *entry;

	while ((entry = TAILQ_FIRST(&partition->entries))) {
		if (entry->state != ENTRY_SENDING) {
			relay_send_free(relay, entry);
			continue;
		}
		TAILQ_REMOVE(&partition->entries, entry, in_partition);
		entry->partition = NULL;
	}
	relay_wake_never(relay, &partition->head);
	relay_cancels_drop(relay, partition->number);
	/* Otherwise librdkafka remembers the pause, for when the partition is assigned again. */
	set_pauses(relay, partition, 0);
	RB_REMOVE(relay_partitions, &relay->partitions, partition);
	relay->nr_partitions--;
	watermark_free(&partition->mark);
	relay_map_free(partition);
	relay_partition_account(relay, partition);
	free(partition->topic);
	free(partition);
}
