// SPDX-License-Identifier: GPL-2.0
/*
 * Records of a partition: they are read in their order, decided in their order, and done in
 * any.
 *
 * A partition is paused while it has at least one reason for it (enum relay_pause). What
 * librdkafka had handed over already, or hands over all the same, is not lost: it waits in
 * @ahead, and what comes again is known by its offset.
 *
 * The head of a bucket may wait for weeks, in each of its partitions. If it is large, it is
 * read again when it is ready, rather than kept in memory: librdkafka is told to seek to it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "log.h"
#include "relay.h"
#include "retry_policy.h"
#include "source.h"

/* Those that wait for less are kept. */
#define PUT_BACK_MS	10000

/* How long librdkafka is waited for, which does it at once, and how often it is asked. */
#define SEEK_MS		5000
#define SEEKS_MAX	5

/* How long brokers are asked where a partition begins. */
#define QUERY_MS	10000

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
 * librdkafka is told of many at once, as each time we wait for its thread.
 */
struct change {
	rd_kafka_topic_partition_list_t *pause;
	rd_kafka_topic_partition_list_t *resume;
};

/* Note what librdkafka does not know yet. */
static void note_change(struct change *change, struct relay_partition *partition)
{
	rd_kafka_topic_partition_list_t **list;

	if (!partition->pauses == !partition->is_paused)
		return;
	partition->is_paused = partition->pauses;
	list = partition->pauses ? &change->pause : &change->resume;
	if (!*list)
		*list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(*list, partition->topic, partition->number);
}

static void tell_change(struct relay *relay, const struct change *change)
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
	note_change(&change, partition);
	tell_change(relay, &change);
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

void relay_partition_press(struct relay *relay)
{
	if (memcmp(relay->pressed, relay->pressure.paused, sizeof(relay->pressed)))
		relay_partition_press_all(relay);
}

void relay_partition_press_all(struct relay *relay)
{
	struct relay_partition *partition;
	struct change change = { 0 };

	memcpy(relay->pressed, relay->pressure.paused, sizeof(relay->pressed));
	RB_FOREACH(partition, relay_partitions, &relay->partitions) {
		if (relay->pressed[partition->kind])
			partition->pauses |= PAUSE_MEMORY;
		else
			partition->pauses &= ~PAUSE_MEMORY;
		note_change(&change, partition);
	}
	tell_change(relay, &change);
}

/* Records are gone, or nobody may read them: no other record of it is touched. */
static void stop(struct relay *relay, struct relay_partition *partition, const char *why)
{
	if (!(partition->pauses & PAUSE_STOPPED))
		log_say(LOG_ERR, "%s [%" PRId32 "] is stopped at offset %" PRId64
			": records may be gone. Stop the relays and set the group's offset: %s",
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
	};

	record.policy = find_policy(relay, &record.target);
	relay_decide(&relay->rules, &record, relay_now_ms(), &entry->decision);
}

/* A near entry is due, or seems so: somebody may have set the clock back. */
static void wake_entry(struct relay *relay, struct relay_waker *waker)
{
	struct relay_entry *entry = container_of(waker, struct relay_entry, waker);

	if (entry->decision.due_ms > relay_now_ms()) {
		relay_wake_at(relay, waker, entry->decision.due_ms);
	} else {
		relay->nr_near--;
		relay_send(relay, entry);
	}
}

/* Do what was decided about an entry, which is in no list. */
static void go_on_with(struct relay *relay, struct relay_entry *entry)
{
	if (entry->decision.action == RELAY_NEAR) {
		entry->state = ENTRY_NEAR;
		relay->nr_near++;
		entry->waker.wake = wake_entry;
		relay_wake_at(relay, &entry->waker, entry->decision.due_ms);
	} else {
		relay_send(relay, entry);
	}
}

bool relay_partition_reconsider(struct relay *relay, struct relay_entry *entry)
{
	struct relay_decision before = entry->decision;

	if (before.action != RELAY_PARK)
		return false;
	decide(relay, entry);
	/* Where somebody has set the clock back, it is as it was. */
	if (entry->decision.action == RELAY_WAIT || entry->decision.action == RELAY_REFUSE)
		entry->decision = before;
	if (entry->decision.action == RELAY_PARK && entry->decision.bucket == before.bucket)
		return false;
	relay_send_forget(relay, entry);
	entry->alone = false;
	go_on_with(relay, entry);
	return true;
}

/* The window cannot be longer: later. */
static void window_is_full(struct relay *relay, struct relay_partition *partition)
{
	if (!(partition->pauses & PAUSE_WINDOW))
		log_say(LOG_WARNING, "%s [%" PRId32 "] is paused: %" PRIu64
			" records are done above the first that is not", partition->topic,
			partition->number, watermark_done_above(&partition->mark));
	pause_for(relay, partition, PAUSE_WINDOW);
}

static void has_no_memory(struct relay *relay, const char *what)
{
	log_say(LOG_ERR, "there is no memory for %s", what);
	relay_end(relay, EX_OSERR);
}

static void finish(struct relay *relay, struct relay_entry *entry);

/* Another relay has done it, before the partition came to us. */
static void pass_over(struct relay *relay, struct relay_entry *entry)
{
	relay->stats.done_before++;
	finish(relay, entry);
}

/* --- heads that wait ------------------------------------------------------------------ */

static bool seek(struct relay *relay, struct relay_partition *partition, int64_t offset)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_error_t *error;
	bool done;

	rd_kafka_topic_partition_list_add(list, partition->topic, partition->number)->offset =
		offset;
	error = rd_kafka_seek_partitions(relay->consumer, list, SEEK_MS);
	done = !error && !list->elems[0].err;
	rd_kafka_error_destroy(error);
	rd_kafka_topic_partition_list_destroy(list);
	return done;
}

/* All heads that wait may take an eighth of the memory. */
static bool is_large(const struct relay *relay, const struct relay_partition *partition)
{
	return partition->ahead_bytes > relay->pressure.cap / 8 / relay->nr_partitions;
}

/* Free what waits, if that is worth it: Kafka has it, and gives it again. */
static void put_back(struct relay *relay, struct relay_partition *partition)
{
	struct relay_entry *entry = TAILQ_FIRST(&partition->ahead);

	if (!entry || !is_large(relay, partition) || relay->stopped ||
	    partition->head.time_ms < relay_now_ms() + PUT_BACK_MS ||
	    !seek(relay, partition, entry->offset))
		return;
	partition->next = entry->offset;
	partition->awaited = entry->offset;
	partition->awaited_timestamp_ms = entry->timestamp_ms;
	while ((entry = TAILQ_FIRST(&partition->ahead)))
		relay_entry_free(relay, entry);
}

/*
 * Is the record at this offset one that may come now? If not, it is not read: a record that
 * waits is before it, and would be taken for a gap.
 */
static bool may_come(struct relay *relay, struct relay_partition *partition, int64_t offset)
{
	if (partition->awaited < 0 || offset < partition->awaited)
		return true;
	if (offset == partition->awaited) {
		partition->awaited = -1;
		partition->nr_seeks = 0;
		return true;
	}
	if (partition->nr_seeks++ >= SEEKS_MAX ||
	    !seek(relay, partition, partition->awaited))
		stop(relay, partition, "it is not given again");
	return false;
}

/* --- what is ahead -------------------------------------------------------------------- */

void relay_partition_take_ahead(struct relay_partition *partition, struct relay_entry *entry)
{
	TAILQ_REMOVE(&partition->ahead, entry, in_queue);
	entry->state = ENTRY_LOOSE;
	partition->ahead_bytes -= entry->size;
}

/* What the window takes is of the same memory as records. */
static void weigh_mark(struct relay *relay, struct relay_partition *partition)
{
	size_t bytes = watermark_bytes(&partition->mark);

	if (bytes > partition->mark_bytes)
		relay_pressure_add(&relay->pressure, bytes - partition->mark_bytes);
	else if (bytes < partition->mark_bytes)
		relay_pressure_sub(&relay->pressure, partition->mark_bytes - bytes);
	partition->mark_bytes = bytes;
}

/* Look at the first of those ahead. Returns whether there may be more to do. */
static bool take_one(struct relay *relay, struct relay_partition *partition)
{
	struct relay_entry *entry = TAILQ_FIRST(&partition->ahead);
	bool done;
	int error;

	if (!entry)
		return false;
	done = runs_has(&partition->done_before, entry->offset, entry->timestamp_ms);
	if (!done)
		decide(relay, entry);
	if (!done && entry->decision.action == RELAY_WAIT) {
		pause_for(relay, partition, PAUSE_HEAD);
		relay_wake_at(relay, &partition->head,
			      entry->decision.until_ms + relay->rules.linger_ms);
		put_back(relay, partition);
		return false;
	}
	error = watermark_read(&partition->mark, entry->offset);
	weigh_mark(relay, partition);
	if (error == -ENOMEM)
		has_no_memory(relay, "which offsets are done");
	else if (error)
		window_is_full(relay, partition);
	if (error)
		return false;
	relay_partition_take_ahead(partition, entry);
	if (done)
		pass_over(relay, entry);
	else
		go_on_with(relay, entry);
	return true;
}

/* Look at what is ahead until something has to wait. */
static void take_ahead(struct relay *relay, struct relay_partition *partition)
{
	if (partition->pauses & (PAUSE_HEAD | PAUSE_WINDOW))
		return;
	while (take_one(relay, partition))
		;
}

static void wake_head(struct relay *relay, struct relay_waker *waker)
{
	struct relay_partition *partition = container_of(waker, struct relay_partition, head);

	/* librdkafka is told only if it is not paused again at once. */
	partition->pauses &= ~PAUSE_HEAD;
	take_ahead(relay, partition);
	set_pauses(relay, partition, partition->pauses);
}

/* --- reading -------------------------------------------------------------------------- */

static void begin(struct relay_partition *partition, int64_t offset)
{
	partition->begun = true;
	partition->next = offset;
	watermark_init(&partition->mark, offset);
}

/*
 * Are there records that nobody gives us? Of those that librdkafka cannot read, it goes on
 * with the next: they would be taken for a gap, which is done.
 */
static bool is_of_lost_records(rd_kafka_resp_err_t error)
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

static void read_error(struct relay *relay, struct relay_partition *partition,
		       const rd_kafka_message_t *message)
{
	if (is_of_lost_records(message->err))
		stop(relay, partition, rd_kafka_message_errstr(message));
	else
		log_say(LOG_WARNING, "%s [%" PRId32 "]: %s", partition->topic,
			partition->number, rd_kafka_message_errstr(message));
}

/*
 * Nothing is committed, and this is the first record that is there: were there others, that
 * nobody has read? Logs begin at 0, and their first records go with time.
 */
static bool is_first(struct relay *relay, struct relay_partition *partition, int64_t offset)
{
	rd_kafka_resp_err_t error;
	int64_t low, high;

	if (!offset || relay->options.from_beginning)
		return true;
	error = rd_kafka_query_watermark_offsets(relay->consumer, partition->topic,
						 partition->number, &low, &high, QUERY_MS);
	if (!error && !low)
		return true;
	partition->next = offset;
	stop(relay, partition, error ? rd_kafka_err2str(error) :
	     "nothing is committed, and those before are gone (--from-beginning)");
	return false;
}

static bool has_readable_headers(const rd_kafka_message_t *message)
{
	rd_kafka_headers_t *headers;
	rd_kafka_resp_err_t error = rd_kafka_message_headers(message, &headers);

	return !error || error == RD_KAFKA_RESP_ERR__NOENT;
}

static void read_record(struct relay *relay, struct relay_partition *partition,
			const rd_kafka_message_t *message)
{
	struct relay_entry *entry;

	if (!partition->begun && !is_first(relay, partition, message->offset))
		return;
	if (!partition->begun)
		begin(partition, message->offset);
	if (message->offset < partition->next) {
		relay->stats.repeated++;
		return;
	}
	if (!may_come(relay, partition, message->offset))
		return;
	if (!has_readable_headers(message)) {
		stop(relay, partition, "its headers are damaged");
		return;
	}
	entry = relay_entry_new(relay, message);
	if (!entry) {
		/* It cannot be left out, and librdkafka does not give it again. */
		has_no_memory(relay, "a record");
		return;
	}
	partition->next = message->offset + 1;
	entry->partition = partition;
	entry->state = ENTRY_AHEAD;
	TAILQ_INSERT_TAIL(&partition->entries, entry, in_partition);
	TAILQ_INSERT_TAIL(&partition->ahead, entry, in_queue);
	partition->ahead_bytes += entry->size;
	take_ahead(relay, partition);
	/* It was on its way when its partition was paused. */
	if (partition->pauses & PAUSE_HEAD)
		put_back(relay, partition);
	relay_partition_press(relay);
}

void relay_partition_read(struct relay *relay, const rd_kafka_message_t *message)
{
	struct relay_partition *partition;

	partition = relay_partition_find(relay, rd_kafka_topic_name(message->rkt),
					 message->partition);
	if (!partition || (partition->pauses & PAUSE_STOPPED))
		return;
	if (message->err)
		read_error(relay, partition, message);
	else
		read_record(relay, partition, message);
}

/* Is there room again for some more offsets? */
static bool has_window(const struct relay_partition *partition)
{
	uint64_t window = partition->mark.next - partition->mark.low;

	return window < WATERMARK_SPAN_MAX / 8 * 7;
}

/* It is done, by whomever. */
static void finish(struct relay *relay, struct relay_entry *entry)
{
	struct relay_partition *partition = entry->partition;

	watermark_done(&partition->mark, entry->offset);
	weigh_mark(relay, partition);
	partition->dirty = true;
	relay_entry_free(relay, entry);
	if ((partition->pauses & PAUSE_WINDOW) && has_window(partition)) {
		end_pause(relay, partition, PAUSE_WINDOW);
		take_ahead(relay, partition);
	}
}

void relay_partition_done(struct relay *relay, struct relay_entry *entry)
{
	entry->partition->done++;
	relay->nr_done++;
	finish(relay, entry);
}

/* --- coming and going ----------------------------------------------------------------- */

static enum relay_kind kind_of(struct relay *relay, const char *topic, uint64_t *width_ms)
{
	*width_ms = 0;
	return relay_is_bucket(&relay->rules, topic, width_ms) ? RELAY_BUCKET : RELAY_INPUT;
}

/* Copy the name, and the text that was committed with the offset, if there is one. */
static struct relay_partition *new_partition(const rd_kafka_topic_partition_t *assigned)
{
	struct relay_partition *partition = calloc(1, sizeof(*partition));

	if (!partition)
		return NULL;
	partition->topic = strdup(assigned->topic);
	partition->done_text = strndup(assigned->metadata ?: "", assigned->metadata_size);
	if (partition->topic && partition->done_text)
		return partition;
	free(partition->topic);
	free(partition->done_text);
	free(partition);
	return NULL;
}

void relay_partition_add(struct relay *relay, const rd_kafka_topic_partition_t *assigned)
{
	struct relay_partition *partition = new_partition(assigned);

	if (!partition) {
		has_no_memory(relay, "a partition");
		return;
	}
	partition->number = assigned->partition;
	partition->kind = kind_of(relay, assigned->topic, &partition->width_ms);
	partition->committed = assigned->offset;
	partition->done_at_first = relay->nr_done;
	partition->done = relay->nr_done;
	partition->told = relay->nr_done;
	TAILQ_INIT(&partition->entries);
	TAILQ_INIT(&partition->ahead);
	partition->head.wake = wake_head;
	partition->awaited = -1;
	partition->end = -1;
	if (assigned->offset >= 0)
		begin(partition, assigned->offset);
	runs_begin(&partition->done_before, partition->done_text, assigned->offset);
	RB_INSERT(relay_partitions, &relay->partitions, partition);
	relay->nr_partitions++;
}

void relay_partition_forget(struct relay *relay, struct relay_partition *partition)
{
	struct relay_entry *entry;

	while ((entry = TAILQ_FIRST(&partition->entries))) {
		if (entry->state != ENTRY_SENDING) {
			relay_entry_free(relay, entry);
			continue;
		}
		TAILQ_REMOVE(&partition->entries, entry, in_partition);
		entry->partition = NULL;
	}
	relay_wake_never(relay, &partition->head);
	/* librdkafka would remember the pause, for when it is assigned again. */
	set_pauses(relay, partition, 0);
	RB_REMOVE(relay_partitions, &relay->partitions, partition);
	relay->nr_partitions--;
	watermark_free(&partition->mark);
	weigh_mark(relay, partition);
	free(partition->topic);
	free(partition->done_text);
	free(partition);
}
