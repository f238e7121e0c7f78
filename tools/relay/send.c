// SPDX-License-Identifier: GPL-2.0
/*
 * Producing: an entry is sent to its target, and is done when its delivery report says so.
 *
 * If a target cannot be written (it is missing, or the relay may not write it, or its broker
 * does not answer), its entries are held in memory, and their partitions' watermarks do not
 * advance. The target is probed with one entry at a time, less and less often:
 *
 *	               an entry failed
 *	  (written) -------------------> failing <--+
 *	      ^                             | probe  | it failed
 *	      |   the probe was written     v        |
 *	      +------------------------- (probing) --+
 *
 * An entry that its target refuses because of the record itself goes to the topic of invalid
 * records. But brokers refuse a whole batch, because of its size or of one record in it: so an
 * entry of such a batch is sent once more, isolated, with nothing else of its target in flight.
 * An entry that is too large for the topic of invalid records, too, would be tried for ever.
 * Instead a record is written there that names its place, where it can be found as long as its
 * topic keeps it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/log.h"
#include "common/util.h"
#include "relay/doubt.h"
#include "relay/entry.h"
#include "relay/send.h"
#include "relay/state.h"
#include "relay/wake.h"

/* How long a failing target is not probed: the time doubles. */
#define BACKOFF_MIN_MS	500
#define BACKOFF_MAX_MS	16000

/*
 * Limit of the records of one target that are in flight: the producer has one queue, and other
 * targets need room in it while one does not answer.
 */
#define SENDING_MAX	10000

/* When a record whose bucket has too few partitions is tried again. */
#define PUT_OFF_MS	10000

/* How often a failure that goes on is logged. */
#define LOG_EVERY_MS	60000

int relay_target_compare(const struct relay_target *a, const struct relay_target *b)
{
	return strcmp(a->name, b->name);
}

RB_GENERATE(relay_targets, relay_target, node, relay_target_compare);

static void send_again(struct relay *relay, struct relay_entry *entry);
static void send_held(struct relay *relay, struct relay_target *target);
static void hold_behind(struct relay *relay, struct relay_entry *entry);

/* --- targets -------------------------------------------------------------------------- */

static void name_target(const struct relay *relay, const struct relay_entry *entry,
			char name[RELAY_TOPIC_MAX + 1])
{
	struct relay_text target = relay_entry_header(entry, RELAY_TARGET);
	enum relay_action action = entry->decision.action;

	if (action == RELAY_REFUSE)
		snprintf(name, RELAY_TOPIC_MAX + 1, "%s" RELAY_INVALID_SUFFIX,
			 relay->rules.topic);
	else if (action == RELAY_PARK)
		relay_bucket_name(&relay->rules, relay->rules.width_s[entry->decision.bucket],
				  name);
	else
		snprintf(name, RELAY_TOPIC_MAX + 1, "%.*s%s", (int)target.len, target.data,
			 action == RELAY_BURY ? RELAY_DEAD_SUFFIX : "");
}

static void release_held(struct relay *relay, struct relay_entry *entry)
{
	struct relay_target *target = entry->target;

	relay_wake_never(relay, &entry->waker);
	TAILQ_REMOVE(&target->held, entry, in_queue);
	entry->state = ENTRY_LOOSE;
	target->nr_held--;
}

/* Try one of the held entries after a time, unless that is planned already. */
static void probe_after(struct relay *relay, struct relay_target *target, uint64_t ms)
{
	if (!relay_wake_pending(&target->probe))
		relay_wake_in(relay, &target->probe, ms);
}

static void wake_probe(struct relay *relay, struct relay_waker *waker)
{
	struct relay_target *target = container_of(waker, struct relay_target, probe);
	struct relay_entry *entry = TAILQ_FIRST(&target->held);

	if (!entry) {
		target->failing = false;
		target->held_since_ms = 0;
	} else if (!target->failing) {
		send_held(relay, target);
	} else if (entry->isolated && target->nr_sending) {
		probe_after(relay, target, BACKOFF_MIN_MS);
	} else {
		release_held(relay, entry);
		send_again(relay, entry);
	}
}

/* Find or create the target of a name. Returns NULL if there is no memory. */
static struct relay_target *get_target(struct relay *relay, const char *name)
{
	struct relay_target key, *target;

	snprintf(key.name, sizeof(key.name), "%s", name);
	target = RB_FIND(relay_targets, &relay->targets, &key);
	if (target)
		return target;
	target = calloc(1, sizeof(*target));
	if (!target)
		return NULL;
	snprintf(target->name, sizeof(target->name), "%s", name);
	TAILQ_INIT(&target->held);
	target->probe.wake = wake_probe;
	target->labelled = relay->nr_labels < RELAY_LABELS_MAX;
	relay->nr_labels += target->labelled;
	RB_INSERT(relay_targets, &relay->targets, target);
	return target;
}

static void put_target(struct relay *relay, struct relay_target *target)
{
	if (--target->nr || target->is_unused)
		return;
	LIST_INSERT_HEAD(&relay->unused, target, unused);
	target->is_unused = true;
}

/* Nothing is to be written to it: whether that can be done is not known any more. */
static void reset_target(struct relay *relay, struct relay_target *target)
{
	relay_wake_never(relay, &target->probe);
	target->failing = false;
	target->held_since_ms = 0;
}

/*
 * Not at once when a target becomes unused: its probe may be in the current batch of wakers, or
 * a caller is still sending its entries.
 */
static void free_unused(struct relay *relay)
{
	struct relay_target *target;

	while ((target = LIST_FIRST(&relay->unused))) {
		LIST_REMOVE(target, unused);
		target->is_unused = false;
		if (target->nr || target->invalid)
			continue;
		if (target->labelled) {
			reset_target(relay, target);
			continue;
		}
		relay->stats.written_other += target->written;
		relay->stats.parked_again_other += target->parked_again;
		relay_wake_never(relay, &target->probe);
		RB_REMOVE(relay_targets, &relay->targets, target);
		free(target);
	}
}

void relay_send_forget(struct relay *relay, struct relay_entry *entry)
{
	struct relay_target *target = entry->target;

	if (!target)
		return;
	if (entry->state == ENTRY_BLOCKED)
		TAILQ_REMOVE(&relay->blocked, entry, in_queue);
	if (entry->state == ENTRY_HELD)
		release_held(relay, entry);
	/* The other entries may have waited for the report of this one. */
	if (!TAILQ_EMPTY(&target->held))
		probe_after(relay, target, target->backoff_ms);
	entry->target = NULL;
	put_target(relay, target);
}

void relay_send_free(struct relay *relay, struct relay_entry *entry)
{
	relay_send_forget(relay, entry);
	relay_entry_free(relay, entry);
}

/* --- failing -------------------------------------------------------------------------- */

/* The target will never accept this record. */
static bool is_hopeless(rd_kafka_resp_err_t error)
{
	switch (error) {
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
	case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_INVALID_RECORD:
	case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
	case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
	case RD_KAFKA_RESP_ERR__INVALID_ARG:
		return true;
	default:
		return false;
	}
}

static void log_failure(struct relay_target *target, rd_kafka_resp_err_t error)
{
	uint64_t now_ms = relay_boot_ms();

	if (target->logged_ms && now_ms - target->logged_ms < LOG_EVERY_MS)
		return;
	target->logged_ms = now_ms;
	log_say(LOG_ERR, "%s cannot be written, %" PRIu64 " records wait: %s", target->name,
		target->nr, rd_kafka_err2str(error));
}

/* A held record has become near: decide again, it needs no bucket. */
static void wake_held(struct relay *relay, struct relay_waker *waker)
{
	struct relay_entry *entry = container_of(waker, struct relay_entry, waker);

	/* The probe woke in the same batch, before this waker, and has sent the entry. */
	if (entry->state != ENTRY_HELD)
		return;
	release_held(relay, entry);
	if (!relay->handlers.reconsider(relay, entry))
		hold_behind(relay, entry);
}

static void hold(struct relay *relay, struct relay_entry *entry)
{
	uint64_t near_ms = entry->decision.due_ms - 2 * relay->rules.horizon_ms;

	entry->state = ENTRY_HELD;
	TAILQ_INSERT_TAIL(&entry->target->held, entry, in_queue);
	entry->target->nr_held++;
	if (entry->decision.action != RELAY_PARK)
		return;
	entry->waker.wake = wake_held;
	/* Near means less than two horizons: so it begins one ms later. */
	relay_wake_at(relay, &entry->waker, near_ms + 1);
}

/* Hold an entry that did not fail itself. If no report will release it, the probe has to. */
static void hold_behind(struct relay *relay, struct relay_entry *entry)
{
	hold(relay, entry);
	if (!entry->target->nr_sending)
		probe_after(relay, entry->target, entry->target->backoff_ms);
}

/* The write of an entry failed: it is tried again later, with all others of its target. */
static void hold_failed(struct relay *relay, struct relay_entry *entry, rd_kafka_resp_err_t error)
{
	struct relay_target *target = entry->target;

	log_failure(target, error);
	hold(relay, entry);
	if (!target->held_since_ms)
		target->held_since_ms = relay_boot_ms();
	if (!target->failing)
		target->backoff_ms = BACKOFF_MIN_MS;
	else if (!relay_wake_pending(&target->probe) && target->backoff_ms < BACKOFF_MAX_MS)
		target->backoff_ms *= 2;
	target->failing = true;
	probe_after(relay, target, target->backoff_ms);
}

static bool is_full(const struct relay_target *target)
{
	return target->nr_sending >= SENDING_MAX;
}

/* Send the held entries, up to the first that has to be sent isolated. */
static void send_held(struct relay *relay, struct relay_target *target)
{
	struct relay_entry *entry;

	while (!target->failing && !is_full(target) && (entry = TAILQ_FIRST(&target->held))) {
		if (entry->isolated) {
			target->failing = true;
			probe_after(relay, target, 0);
			return;
		}
		release_held(relay, entry);
		send_again(relay, entry);
	}
}

/* The target has answered. */
static void recover(struct relay *relay, struct relay_target *target)
{
	const struct relay_entry *entry = TAILQ_FIRST(&target->held);

	if (!target->failing) {
		send_held(relay, target);
		return;
	}
	relay_wake_never(relay, &target->probe);
	if (entry && entry->isolated) {
		probe_after(relay, target, 0);
		return;
	}
	log_say(LOG_NOTICE, "%s can be written again", target->name);
	target->failing = false;
	target->held_since_ms = 0;
	send_held(relay, target);
}

/* Write the record to the topic of invalid ones; the target itself has answered. */
static void refuse(struct relay *relay, struct relay_entry *entry, rd_kafka_resp_err_t error)
{
	log_say(LOG_WARNING, "%s refuses a record: %s", entry->target->name,
		rd_kafka_err2str(error));
	/* Before the entry is removed from it: the target may be freed without entries. */
	recover(relay, entry->target);
	relay_send_forget(relay, entry);
	entry->isolated = false;
	entry->decision.action = RELAY_REFUSE;
	entry->decision.reason = rd_kafka_err2str(error);
	relay_send(relay, entry);
}

static bool is_about_size(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
		error == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE ||
		error == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE;
}

/* Can the reason for the refusal be another record of the same batch? */
static bool is_about_batch(rd_kafka_resp_err_t error)
{
	return is_about_size(error) ||
		error == RD_KAFKA_RESP_ERR_INVALID_RECORD ||
		error == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP;
}

/*
 * After brokers have refused a name as invalid, librdkafka reports an unknown topic: return the
 * brokers' error.
 */
static rd_kafka_resp_err_t translate_error(struct relay_target *target, rd_kafka_resp_err_t error)
{
	if (error == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION)
		target->invalid = true;
	return target->invalid && error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ?
		RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION : error;
}

/* The record is too large for the topic of invalid ones: write only its place there. */
static void strip(struct relay *relay, struct relay_entry *entry)
{
	log_say(LOG_ERR, "%s refuses the record at %s [%" PRId32 "] offset %" PRId64
		" for its size: only its place is written there", entry->target->name,
		entry->partition->topic, entry->partition->number, entry->offset);
	recover(relay, entry->target);
	relay_send_forget(relay, entry);
	entry->stripped = true;
	relay_send(relay, entry);
}

static void wake_put_off(struct relay *relay, struct relay_waker *waker)
{
	struct relay_entry *entry = container_of(waker, struct relay_entry, waker);

	if (!relay->handlers.reconsider(relay, entry))
		relay_send(relay, entry);
}

/*
 * The bucket has no partition of this number. Its other partitions can be written, so the
 * target is not failing.
 */
static void put_off(struct relay *relay, struct relay_entry *entry)
{
	uint64_t now_ms = relay_boot_ms();

	if (!relay->put_off_logged_ms || now_ms - relay->put_off_logged_ms >= LOG_EVERY_MS) {
		relay->put_off_logged_ms = now_ms;
		log_say(LOG_ERR, "%s has no partition %" PRId32 ": start a relay with --create",
			entry->target->name, entry->partition->number);
	}
	relay_send_forget(relay, entry);
	entry->waker.wake = wake_put_off;
	relay_wake_in(relay, &entry->waker, PUT_OFF_MS);
}

/* A write failed: refuse the record, or try again later. */
static void handle_write_error(struct relay *relay, struct relay_entry *entry,
			       rd_kafka_resp_err_t error)
{
	bool invalid = entry->decision.action == RELAY_REFUSE;
	bool again = is_about_batch(error) && !entry->isolated;

	relay->stats.send_errors++;
	error = translate_error(entry->target, error);
	entry->isolated |= again;
	if (error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION &&
	    entry->decision.action == RELAY_PARK)
		put_off(relay, entry);
	else if (is_hopeless(error) && !again && !invalid)
		refuse(relay, entry, error);
	else if (is_about_size(error) && !again && !entry->stripped)
		strip(relay, entry);
	else
		hold_failed(relay, entry, error);
}

/* --- sending -------------------------------------------------------------------------- */

/* A parked record keeps the number of its partition, so that records stay in their order. */
static int32_t partition_of(const struct relay_entry *entry)
{
	return entry->decision.action == RELAY_PARK ? entry->partition->number :
		RD_KAFKA_PARTITION_UA;
}

/* Hand an entry to librdkafka, which uses its memory until the report. */
static rd_kafka_resp_err_t produce(struct relay *relay, struct relay_entry *entry)
{
	rd_kafka_headers_t *headers = relay_entry_headers(entry);
	char *value = entry->stripped ? NULL : entry->value;
	char *key = entry->stripped ? NULL : entry->key;
	size_t value_len = value ? entry->value_len : 0;
	size_t key_len = key ? entry->key_len : 0;
	rd_kafka_resp_err_t error;

	if (!headers)
		return RD_KAFKA_RESP_ERR__QUEUE_FULL;
	error = rd_kafka_producev(relay->producer,
				  RD_KAFKA_V_TOPIC(entry->target->name),
				  RD_KAFKA_V_PARTITION(partition_of(entry)),
				  RD_KAFKA_V_KEY(key, key_len),
				  RD_KAFKA_V_VALUE(value, value_len),
				  RD_KAFKA_V_HEADERS(headers),
				  RD_KAFKA_V_OPAQUE(entry),
				  RD_KAFKA_V_END);
	if (error)
		rd_kafka_headers_destroy(headers);
	return error;
}

/*
 * Not while partitions are revoked: their entries are forgotten with them. And not while it is
 * in doubt whether the partitions are still ours.
 */
static bool may_produce(const struct relay *relay)
{
	return !relay->revoking && !relay->doubt && !relay_doubt_stood_still(relay);
}

static rd_kafka_resp_err_t try_produce(struct relay *relay, struct relay_entry *entry)
{
	return may_produce(relay) ? produce(relay, entry) : RD_KAFKA_RESP_ERR__QUEUE_FULL;
}

static void send_to_target(struct relay *relay, struct relay_entry *entry)
{
	rd_kafka_resp_err_t error = try_produce(relay, entry);

	if (!error) {
		entry->state = ENTRY_SENDING;
		entry->partition->nr_sending++;
		entry->target->nr_sending++;
		relay->nr_sending++;
	} else if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
		entry->state = ENTRY_BLOCKED;
		TAILQ_INSERT_TAIL(&relay->blocked, entry, in_queue);
	} else {
		handle_write_error(relay, entry, error);
	}
}

/* Send an entry that has waited: decide again first. */
static void send_again(struct relay *relay, struct relay_entry *entry)
{
	if (!relay->handlers.reconsider(relay, entry))
		send_to_target(relay, entry);
}

static bool has_to_wait(const struct relay_target *target)
{
	return target->failing || is_full(target);
}

void relay_send(struct relay *relay, struct relay_entry *entry)
{
	char name[RELAY_TOPIC_MAX + 1];

	entry->state = ENTRY_LOOSE;
	if (entry->decision.action == RELAY_NEAR)
		entry->decision.action = RELAY_DELIVER;
	name_target(relay, entry, name);
	entry->target = get_target(relay, name);
	if (!entry->target) {
		log_say(LOG_ERR, "out of memory for a target");
		relay_end(relay, EX_OSERR);
		return;
	}
	entry->target->nr++;
	if (has_to_wait(entry->target) || !TAILQ_EMPTY(&entry->target->held))
		hold_behind(relay, entry);
	else
		send_to_target(relay, entry);
}

/* Returns false if the producer has no room yet: then the entry is the first of @blocked. */
static bool send_blocked_one(struct relay *relay, struct relay_entry *entry)
{
	send_again(relay, entry);
	if (entry->state != ENTRY_BLOCKED)
		return true;
	TAILQ_REMOVE(&relay->blocked, entry, in_queue);
	TAILQ_INSERT_HEAD(&relay->blocked, entry, in_queue);
	return false;
}

/* The producer may have room again. */
static void send_blocked(struct relay *relay)
{
	struct relay_entry *entry;

	while (may_produce(relay) && (entry = TAILQ_FIRST(&relay->blocked))) {
		TAILQ_REMOVE(&relay->blocked, entry, in_queue);
		entry->state = ENTRY_LOOSE;
		if (has_to_wait(entry->target)) {
			hold_behind(relay, entry);
			continue;
		}
		if (!send_blocked_one(relay, entry))
			return;
	}
}

/* --- reports -------------------------------------------------------------------------- */

static void note_lateness(struct relay *relay, const struct relay_entry *entry)
{
	uint64_t now_ns = alarms_now_ns(ALARM_WALL);
	uint64_t due_ns = entry->decision.due_ms * NSEC_PER_MSEC;

	if (entry->decision.action == RELAY_DELIVER && now_ns > due_ns)
		histogram_add(&relay->stats.late, now_ns - due_ns);
}

static void succeed(struct relay *relay, struct relay_entry *entry)
{
	relay->stats.sent[entry->decision.action]++;
	entry->target->written++;
	note_lateness(relay, entry);
	entry->target->invalid = false;
	recover(relay, entry->target);
	if (entry->partition)
		relay->handlers.done(relay, entry);
	else
		relay_send_free(relay, entry);
}

/*
 * The error of a report. librdkafka reports a refused batch as written if the broker accepted
 * the batch after it: it relies on brokers to accept nothing after a gap. But a broker without
 * state of the producer accepts any batch as the first one. Such a report has no offset: no
 * broker has acknowledged the record, so it is sent again.
 */
static rd_kafka_resp_err_t error_of(const rd_kafka_message_t *message)
{
	if (!message->err && message->offset == RD_KAFKA_OFFSET_INVALID)
		return RD_KAFKA_RESP_ERR__RETRY;
	return message->err;
}

void relay_send_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context)
{
	struct relay_entry *entry = message->_private;
	rd_kafka_resp_err_t error = error_of(message);
	struct relay *relay = context;

	(void)client;
	relay->nr_sending--;
	entry->target->nr_sending--;
	if (entry->partition)
		entry->partition->nr_sending--;
	if (error && rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED)
		relay->stats.maybe_twice++;
	if (!error)
		succeed(relay, entry);
	else if (!entry->partition)
		relay_send_free(relay, entry);
	else
		handle_write_error(relay, entry, error);
}

void relay_send_poll(struct relay *relay, int timeout_ms)
{
	while (rd_kafka_poll(relay->producer, timeout_ms))
		timeout_ms = 0;
	send_blocked(relay);
	free_unused(relay);
}
