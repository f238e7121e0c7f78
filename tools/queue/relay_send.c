// SPDX-License-Identifier: GPL-2.0
/*
 * Producing: an entry is sent to its target, and is done when its delivery report says so.
 *
 * A target that cannot be written (it is missing, or not allowed, or its broker does not
 * answer) keeps its entries in memory, and their partitions' watermarks stand still. It is
 * tried with one entry at a time, less and less often:
 *
 *	               an entry failed
 *	  (written) -------------------> failing <--+
 *	      ^                             | probe  | it failed
 *	      |   the probe was written     v        |
 *	      +------------------------- (probing) --+
 *
 * An entry that its target refuses for what it is goes to the invalid ones. But brokers
 * refuse a batch as one, for its size or for one record in it: so an entry that was in such
 * a batch is sent once more, alone, with nothing else of its target in flight. One that is
 * too large for the invalid ones, too, would be tried for ever: then these get a record that
 * says where it is, as long as its topic keeps it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "log.h"
#include "relay.h"
#include "source.h"

/* How long a target that fails is left alone: doubling. */
#define BACKOFF_MIN_MS	500
#define BACKOFF_MAX_MS	16000

/*
 * So many records of a target are in flight at most: the producer has one queue, and others
 * have to have room there while one does not answer.
 */
#define SENDING_MAX	10000

/* A record whose bucket has too few partitions is tried again after so long. */
#define PUT_OFF_MS	10000

/* How often it is said that it still fails. */
#define SAY_EVERY_MS	60000

int relay_target_compare(const struct relay_target *a, const struct relay_target *b)
{
	return strcmp(a->name, b->name);
}

RB_GENERATE(relay_targets, relay_target, node, relay_target_compare);

static void send_again(struct relay *relay, struct relay_entry *entry);
static void send_held(struct relay *relay, struct relay_target *target);
static void keep(struct relay *relay, struct relay_entry *entry);

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

static void take_held(struct relay *relay, struct relay_entry *entry)
{
	struct relay_target *target = entry->target;

	relay_wake_never(relay, &entry->waker);
	TAILQ_REMOVE(&target->held, entry, in_queue);
	entry->state = ENTRY_LOOSE;
	target->nr_held--;
}

/* Try one of those that are held, when others had their time. */
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
	} else if (!target->failing) {
		send_held(relay, target);
	} else if (entry->alone && target->nr_sending) {
		probe_after(relay, target, BACKOFF_MIN_MS);
	} else {
		take_held(relay, entry);
		send_again(relay, entry);
	}
}

/* The target of a name, which is made if there is none; NULL: there is no memory. */
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

/* Its probe may have been taken in a batch of wakers, or its entries are being sent. */
static void free_unused(struct relay *relay)
{
	struct relay_target *target;

	while ((target = LIST_FIRST(&relay->unused))) {
		LIST_REMOVE(target, unused);
		target->is_unused = false;
		if (target->nr || target->invalid)
			continue;
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
		take_held(relay, entry);
	/* It may have been the one that others waited for. */
	if (!TAILQ_EMPTY(&target->held))
		probe_after(relay, target, target->backoff_ms);
	entry->target = NULL;
	put_target(relay, target);
}

/* --- failing -------------------------------------------------------------------------- */

/* The target does not want this record, whenever it comes. */
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

static void say_failing(struct relay_target *target, rd_kafka_resp_err_t error)
{
	uint64_t now_ms = relay_boot_ms();

	if (target->said_ms && now_ms - target->said_ms < SAY_EVERY_MS)
		return;
	target->said_ms = now_ms;
	log_say(LOG_ERR, "%s cannot be written, %" PRIu64 " records wait: %s", target->name,
		target->nr, rd_kafka_err2str(error));
}

/* It is near, while it is held: now it does not wait for its bucket any more. */
static void wake_held(struct relay *relay, struct relay_waker *waker)
{
	struct relay_entry *entry = container_of(waker, struct relay_entry, waker);

	/* Both were due at once, and the probe was first. */
	if (entry->state != ENTRY_HELD)
		return;
	take_held(relay, entry);
	if (!relay_partition_reconsider(relay, entry))
		keep(relay, entry);
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
	/* What is near is so from the next ms on. */
	relay_wake_at(relay, &entry->waker, near_ms + 1);
}

/* The same for one that did not fail: what others wait for is a report, or the probe. */
static void keep(struct relay *relay, struct relay_entry *entry)
{
	hold(relay, entry);
	if (!entry->target->nr_sending)
		probe_after(relay, entry->target, entry->target->backoff_ms);
}

/* It failed, and is tried again later, with all others of its target. */
static void fail(struct relay *relay, struct relay_entry *entry, rd_kafka_resp_err_t error)
{
	struct relay_target *target = entry->target;

	say_failing(target, error);
	hold(relay, entry);
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

/* Send all but those that have to be alone: up to the first of them. */
static void send_held(struct relay *relay, struct relay_target *target)
{
	struct relay_entry *entry;

	while (!target->failing && !is_full(target) && (entry = TAILQ_FIRST(&target->held))) {
		if (entry->alone) {
			target->failing = true;
			probe_after(relay, target, 0);
			return;
		}
		take_held(relay, entry);
		send_again(relay, entry);
	}
}

/* It has answered. */
static void recover(struct relay *relay, struct relay_target *target)
{
	const struct relay_entry *entry = TAILQ_FIRST(&target->held);

	if (!target->failing) {
		send_held(relay, target);
		return;
	}
	relay_wake_never(relay, &target->probe);
	if (entry && entry->alone) {
		probe_after(relay, target, 0);
		return;
	}
	log_say(LOG_NOTICE, "%s can be written again", target->name);
	target->failing = false;
	send_held(relay, target);
}

/* The record goes to the invalid ones; the target itself has answered. */
static void refuse(struct relay *relay, struct relay_entry *entry, rd_kafka_resp_err_t error)
{
	log_say(LOG_WARNING, "%s does not take a record: %s", entry->target->name,
		rd_kafka_err2str(error));
	/* Its target is there as long as this one is of it. */
	recover(relay, entry->target);
	relay_send_forget(relay, entry);
	entry->alone = false;
	entry->decision.action = RELAY_REFUSE;
	entry->decision.reason = rd_kafka_err2str(error);
	relay_send(relay, entry);
}

static bool is_of_size(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
		error == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE ||
		error == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE;
}

/* May it be for the others of its batch that a record was refused? */
static bool is_of_batch(rd_kafka_resp_err_t error)
{
	return is_of_size(error) ||
		error == RD_KAFKA_RESP_ERR_INVALID_RECORD ||
		error == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP;
}

/* What brokers said once, librdkafka says with other words. */
static rd_kafka_resp_err_t what_it_means(struct relay_target *target, rd_kafka_resp_err_t error)
{
	if (error == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION)
		target->invalid = true;
	return target->invalid && error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ?
		RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION : error;
}

/* The invalid ones do not take it. */
static void strip(struct relay *relay, struct relay_entry *entry)
{
	log_say(LOG_ERR, "%s does not take %s [%" PRId32 "] offset %" PRId64
		": only its place is written there", entry->target->name,
		entry->partition->topic, entry->partition->number, entry->offset);
	recover(relay, entry->target);
	relay_send_forget(relay, entry);
	entry->bare = true;
	relay_send(relay, entry);
}

static void wake_put_off(struct relay *relay, struct relay_waker *waker)
{
	struct relay_entry *entry = container_of(waker, struct relay_entry, waker);

	if (!relay_partition_reconsider(relay, entry))
		relay_send(relay, entry);
}

/*
 * Its bucket has no partition of its number: those of other numbers can be written, so the
 * target does not fail for that.
 */
static void put_off(struct relay *relay, struct relay_entry *entry)
{
	uint64_t now_ms = relay_boot_ms();

	if (!relay->put_off_said_ms || now_ms - relay->put_off_said_ms >= SAY_EVERY_MS) {
		relay->put_off_said_ms = now_ms;
		log_say(LOG_ERR, "%s has no partition %" PRId32 ": start a relay with --create",
			entry->target->name, entry->partition->number);
	}
	relay_send_forget(relay, entry);
	entry->waker.wake = wake_put_off;
	relay_wake_in(relay, &entry->waker, PUT_OFF_MS);
}

static void give_up_or_fail(struct relay *relay, struct relay_entry *entry,
			    rd_kafka_resp_err_t error)
{
	bool invalid = entry->decision.action == RELAY_REFUSE;
	bool again = is_of_batch(error) && !entry->alone;

	relay->stats.send_errors++;
	error = what_it_means(entry->target, error);
	entry->alone |= again;
	if (error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION &&
	    entry->decision.action == RELAY_PARK)
		put_off(relay, entry);
	else if (is_hopeless(error) && !again && !invalid)
		refuse(relay, entry, error);
	else if (is_of_size(error) && !again && !entry->bare)
		strip(relay, entry);
	else
		fail(relay, entry, error);
}

/* --- sending -------------------------------------------------------------------------- */

/* A parked record keeps the number of its partition, so that records stay in their order. */
static int32_t partition_of(const struct relay_entry *entry)
{
	return entry->decision.action == RELAY_PARK ? entry->partition->number :
		RD_KAFKA_PARTITION_UA;
}

/* Hand an entry to librdkafka, which has its memory until the report. */
static rd_kafka_resp_err_t produce(struct relay *relay, struct relay_entry *entry)
{
	rd_kafka_headers_t *headers = relay_entry_headers(entry);
	char *value = entry->bare ? NULL : entry->value;
	char *key = entry->bare ? NULL : entry->key;
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
 * While partitions are taken from us, nothing has room: what waits is forgotten with them.
 * Nothing has room either while it is not known whether they are ours.
 */
static bool may_produce(const struct relay *relay)
{
	return !relay->stopped && !relay->doubt && !relay_doubt_stood_still(relay);
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
		give_up_or_fail(relay, entry, error);
	}
}

/* The same for one that has waited. */
static void send_again(struct relay *relay, struct relay_entry *entry)
{
	if (!relay_partition_reconsider(relay, entry))
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
		log_say(LOG_ERR, "there is no memory for a target");
		relay_end(relay, EX_OSERR);
		return;
	}
	entry->target->nr++;
	if (has_to_wait(entry->target) || !TAILQ_EMPTY(&entry->target->held))
		keep(relay, entry);
	else
		send_to_target(relay, entry);
}

/* Returns false if there is no room yet: then it is the first again. */
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
			keep(relay, entry);
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
	note_lateness(relay, entry);
	entry->target->invalid = false;
	recover(relay, entry->target);
	if (entry->partition)
		relay_partition_done(relay, entry);
	else
		relay_entry_free(relay, entry);
}

/*
 * The error of a report. librdkafka reports a batch that was refused as written when the one
 * behind it was taken: it counts on brokers to take nothing behind a gap. But a broker that has
 * no state of the producer takes any batch as the first. Such a report has no offset: no broker
 * has said that the record is there, and it is sent again.
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
		relay_entry_free(relay, entry);
	else
		give_up_or_fail(relay, entry, error);
}

void relay_send_poll(struct relay *relay, int timeout_ms)
{
	while (rd_kafka_poll(relay->producer, timeout_ms))
		timeout_ms = 0;
	send_blocked(relay);
	free_unused(relay);
}
