// SPDX-License-Identifier: GPL-2.0
/*
 * Writing: an entry is sent to its target, and is done when that is acknowledged.
 *
 * A target that cannot be written holds up nobody. It may be missing, the relay may not have the
 * right to write it, or its broker does not answer. Its entries wait in memory for a while, as an
 * outage of seconds should cost seconds; then they are parked in a small bucket, which is done
 * like any other record (relay_hold() of rules/rules.h). Meanwhile the target is tried with one
 * entry at a time, less and less often:
 *
 *	   check.c: does it exist?          an entry failed
 *	  (new) -------------> (written) -------------------> (failing) <--+
 *	                           ^                             | try     | it failed
 *	                           +-------- it was written -----+---------+
 *
 *	   entries of a failing target: held in memory ----> parked again ----> invalid
 *	                                 --hold, or while      in buckets       --hold-max
 *	                                 memory is below half
 *
 * The relay's own topics (buckets, and that of invalid records) cannot be helped like that. Their
 * entries are held until they can be written.
 *
 * An entry that its target refuses because of the record itself goes to the topic of invalid
 * records. But brokers refuse a whole batch, because of its size or of one record in it: so an
 * entry of such a batch is sent once more, isolated, with nothing else of its target in flight.
 * An entry that is too large for the topic of invalid records, too, would be tried for ever.
 * Instead a record is written there that names its place, where it can be found as long as its
 * topic keeps it.
 *
 * With exactly once, "sent" is to wait in @blocked for the next turn (turn.c), and a failing target
 * is tried by check.c in a transaction of its own. So are for a time the records of a target that
 * has refused one: a refused record aborts the turn that it is in. If a right is missing, brokers
 * do not say of which topic: then all targets of the turn are suspect, and each is tried so.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sysexits.h>

#include "common/log.h"
#include "common/util.h"
#include "relay/cancels.h"
#include "relay/check.h"
#include "relay/client/report.h"
#include "relay/clocks.h"
#include "relay/doubt.h"
#include "relay/entry.h"
#include "relay/send.h"
#include "relay/state.h"
#include "relay/wake.h"

/* How long a failing target is not tried: the time doubles. */
#define BACKOFF_MIN_MS	500
#define BACKOFF_MAX_MS	16000

/* How often held entries are looked at, and how many are parked then. */
#define SWEEP_MS	1000
#define SWEEP_MAX	1000

/* How long the records of a target that has refused one are tried alone. */
#define DELICATE_MS	60000

/*
 * How long entries for buckets are gathered, a part of H at most, and how many. Not all of them are
 * sent at the same time, since brokers and turns would be slow for so long: there are slices.
 */
#define GATHER_MS	500
#define GATHER_PART	8
#define GATHER_SLICES	10
#define GATHER_MAX	2000

/*
 * Limit of the records of one target that are in flight: the producer has one queue, and other
 * targets need room in it while one does not answer.
 */
#define SENDING_MAX	10000

/* How many failing targets are remembered that have no entries. */
#define IDLE_MAX	10000

/* How long a name that is not valid for a topic is not asked for again. */
#define INVALID_MS	60000

/* When a record whose bucket has too few partitions is tried again. */
#define PUT_OFF_MS	10000

/* When is it looked again whether a record was taken back? */
#define UNKNOWN_MS	500

/* How often a failure that goes on is logged. */
#define LOG_EVERY_MS	60000

int relay_target_compare(const struct relay_target *a, const struct relay_target *b)
{
	return strcmp(a->name, b->name);
}

RB_GENERATE(relay_targets, relay_target, node, relay_target_compare);

static void send_again(struct relay *relay, struct relay_entry *entry);
static void send_held(struct relay *relay, struct relay_target *target);
static void sweep(struct relay *relay, struct relay_target *target);
static void wait_or_park(struct relay *relay, struct relay_entry *entry);
static void start_check(struct relay *relay, struct relay_target *target,
			const struct relay_entry *entry);
static void handle_write_error(struct relay *relay, struct relay_entry *entry,
			       rd_kafka_resp_err_t error);

/* --- targets -------------------------------------------------------------------------- */

/* Write the name of the topic that the entry is written to. Returns whether it is our own. */
static bool name_target(const struct relay *relay, const struct relay_entry *entry,
			char name[RELAY_TOPIC_MAX + 1])
{
	struct relay_text target = relay_entry_header(entry, RELAY_TARGET);
	const struct relay_rules *rules = &relay->rules;

	switch (entry->decision.action) {
	case RELAY_REFUSE:
		snprintf(name, RELAY_TOPIC_MAX + 1, "%s" RELAY_INVALID_SUFFIX, rules->topic);
		return true;
	case RELAY_PARK:
		relay_bucket_name(rules, rules->width_s[entry->decision.bucket], name);
		return true;
	case RELAY_TAKE_BACK:
		snprintf(name, RELAY_TOPIC_MAX + 1, "%s" RELAY_CANCELLED_SUFFIX, rules->topic);
		return true;
	default:
		snprintf(name, RELAY_TOPIC_MAX + 1, "%.*s%s", (int)target.len, target.data,
			 entry->decision.action == RELAY_BURY ? RELAY_DEAD_SUFFIX : "");
		return false;
	}
}

static void wake_target(struct relay *relay, struct relay_waker *waker)
{
	struct relay_target *target = container_of(waker, struct relay_target, probe);

	if (target->failing)
		sweep(relay, target);
	else
		send_held(relay, target);
}

/* Look at the held entries after a time, unless that is planned already. */
static void look_after(struct relay *relay, struct relay_target *target, uint64_t ms)
{
	if (!relay_wake_pending(&target->probe))
		relay_wake_in(relay, &target->probe, ms);
}

/* Find or create the target of a name. Returns NULL if there is no memory. */
static struct relay_target *get_target(struct relay *relay, const char *name, bool is_own)
{
	struct relay_target key, *target;

	snprintf(key.name, sizeof(key.name), "%s", name);
	target = RB_FIND(relay_targets, &relay->targets, &key);
	if (target) {
		/* A record may have named it as its target before. */
		target->is_own |= is_own;
		return target;
	}
	target = calloc(1, sizeof(*target));
	if (!target)
		return NULL;
	snprintf(target->name, sizeof(target->name), "%s", name);
	TAILQ_INIT(&target->held);
	target->is_own = is_own;
	target->checked = is_own;
	target->failed_number = RD_KAFKA_PARTITION_UA;
	target->probe.wake = wake_target;
	target->labelled = relay->nr_labels < RELAY_LABELS_MAX;
	relay->nr_labels += target->labelled;
	RB_INSERT(relay_targets, &relay->targets, target);
	relay->nr_targets++;
	return target;
}

static void put_target(struct relay *relay, struct relay_target *target)
{
	if (--target->nr || target->is_unused)
		return;
	LIST_INSERT_HEAD(&relay->unused, target, unused);
	target->is_unused = true;
}

/* Is it worth to remember a target that has no entries? */
static bool is_remembered(const struct relay *relay, const struct relay_target *target)
{
	return target->nr || target->checking || target->labelled ||
		((target->checked || target->failing || target->invalid) &&
		 relay->nr_targets < IDLE_MAX);
}

/*
 * Not at once when a target becomes unused: its waker may be in the current batch of wakers, or
 * a caller is still sending its entries.
 */
static void free_unused(struct relay *relay)
{
	struct relay_target *target;

	while ((target = LIST_FIRST(&relay->unused))) {
		LIST_REMOVE(target, unused);
		target->is_unused = false;
		if (is_remembered(relay, target))
			continue;
		relay->stats.written_other += target->written;
		relay->stats.parked_again_other += target->parked_again;
		relay_wake_never(relay, &target->probe);
		RB_REMOVE(relay_targets, &relay->targets, target);
		relay->nr_targets--;
		free(target);
	}
}

static void release_held(struct relay *relay, struct relay_entry *entry)
{
	struct relay_target *target = entry->target;

	relay_wake_never(relay, &entry->waker);
	TAILQ_REMOVE(&target->held, entry, in_queue);
	entry->state = ENTRY_LOOSE;
	target->nr_held--;
}

/* The list in which the entry is while it is blocked. */
static struct relay_entries *queue_of(struct relay *relay, const struct relay_entry *entry)
{
	return entry->is_own ? &relay->blocked_own : &relay->blocked;
}

static void release_gathered(struct relay *relay, struct relay_entry *entry)
{
	TAILQ_REMOVE(&relay->gathered, entry, in_queue);
	entry->state = ENTRY_LOOSE;
	relay->nr_gathered--;
	relay->gathered_bytes -= entry->size;
}

void relay_send_forget(struct relay *relay, struct relay_entry *entry)
{
	struct relay_target *target = entry->target;

	if (entry->state == ENTRY_DROPPED)
		TAILQ_REMOVE(&relay->dropped, entry, in_queue);
	if (!target)
		return;
	if (entry->state == ENTRY_BLOCKED)
		TAILQ_REMOVE(queue_of(relay, entry), entry, in_queue);
	if (entry->state == ENTRY_GATHERED)
		release_gathered(relay, entry);
	if (entry->state == ENTRY_HELD)
		release_held(relay, entry);
	entry->state = ENTRY_LOOSE;
	/* The other entries may have waited for the report of this one. */
	if (!TAILQ_EMPTY(&target->held))
		look_after(relay, target, BACKOFF_MIN_MS);
	entry->target = NULL;
	put_target(relay, target);
}

void relay_send_free(struct relay *relay, struct relay_entry *entry)
{
	relay_send_forget(relay, entry);
	relay_entry_free(relay, entry);
}

/* --- errors --------------------------------------------------------------------------- */

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

/* The topic is missing. */
static bool is_missing(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
		error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
		error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

/* The reason does not pass by itself in some seconds. */
static bool is_lasting(rd_kafka_resp_err_t error)
{
	return is_missing(error) ||
		error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
		error == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
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
	if (error == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION) {
		target->invalid = true;
		target->checked = false;
	}
	return target->invalid && is_missing(error) ? RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION : error;
}

static void log_failure(struct relay_target *target, rd_kafka_resp_err_t error)
{
	if (log_again(&target->logged_ms, relay_boot_ms(), LOG_EVERY_MS))
		log_say(LOG_ERR, "%s cannot be written, %" PRIu64 " records wait: %s",
			target->name, target->nr, rd_kafka_err2str(error));
}

/* --- holding -------------------------------------------------------------------------- */

/*
 * While it was held, an entry has become near, and needs no bucket; or it gave way, and its
 * bucket would now be too wide.
 */
static void wake_held(struct relay *relay, struct relay_waker *waker)
{
	struct relay_entry *entry = container_of(waker, struct relay_entry, waker);

	/* Its target woke in the same batch, before this waker, and has sent the entry. */
	if (entry->state != ENTRY_HELD)
		return;
	release_held(relay, entry);
	send_again(relay, entry);
}

/* When an entry that is held is to be decided again; 0: never. */
static uint64_t again_ms(const struct relay *relay, const struct relay_entry *entry)
{
	if (entry->decision.action != RELAY_PARK || entry->is_parked_again)
		return 0;
	if (entry->gives_way)
		return entry->decision.due_ms;
	/* Near means less than two horizons: so it begins one ms later. */
	return entry->decision.due_ms - 2 * relay->rules.horizon_ms + 1;
}

static void hold(struct relay *relay, struct relay_entry *entry)
{
	uint64_t time_ms = again_ms(relay, entry);

	entry->is_alone = false;
	entry->state = ENTRY_HELD;
	TAILQ_INSERT_TAIL(&entry->target->held, entry, in_queue);
	entry->target->nr_held++;
	if (time_ms > relay_now_ms()) {
		entry->waker.wake = wake_held;
		relay_wake_at(relay, &entry->waker, time_ms);
	}
}

/* Hold an entry that did not fail itself. If no report will release it, the waker has to. */
static void hold_behind(struct relay *relay, struct relay_entry *entry)
{
	hold(relay, entry);
	if (!entry->target->nr_sending && !entry->target->checking)
		look_after(relay, entry->target, BACKOFF_MIN_MS);
}

/* Send it to another topic than its target. */
static void redirect(struct relay *relay, struct relay_entry *entry, enum relay_action action)
{
	relay_send_forget(relay, entry);
	entry->isolated = false;
	entry->decision.action = action;
	relay_send(relay, entry);
}

/* Park an entry because its target cannot be written. */
static void park_again(struct relay *relay, struct relay_entry *entry)
{
	struct relay_decision *decision = &entry->decision;

	relay->stats.parked_again++;
	entry->target->parked_again++;
	entry->is_dead = decision->action == RELAY_BURY;
	entry->is_parked_again = true;
	decision->bucket = relay_hold_bucket(&relay->rules, decision->tries);
	decision->tries++;
	if (!decision->held_since_ms)
		decision->held_since_ms = relay_now_ms();
	redirect(relay, entry, RELAY_PARK);
}

static enum relay_hold judge(const struct relay *relay, const struct relay_entry *entry)
{
	const struct relay_target *target = entry->target;
	const struct relay_holding holding = {
		.failing_ms = target->failing ? relay_boot_ms() - target->failing_ms : 0,
		.lasting = target->lasting,
		.hold_ms = relay->options.hold_ms,
		.above_half = relay_pressure_is_above_half(&relay->pressure),
		.held_since_ms = entry->decision.held_since_ms,
		.hold_max_ms = relay->options.hold_max_ms,
		.now_ms = relay_now_ms(),
	};

	return target->is_own ? RELAY_HOLD_WAIT : relay_hold(&holding);
}

/* The target of the entry, which is in no list, cannot be written now. */
static void wait_or_park(struct relay *relay, struct relay_entry *entry)
{
	switch (judge(relay, entry)) {
	case RELAY_HOLD_WAIT:
		hold(relay, entry);
		look_after(relay, entry->target, MIN(entry->target->backoff_ms, SWEEP_MS));
		break;
	case RELAY_HOLD_PARK:
		park_again(relay, entry);
		break;
	case RELAY_HOLD_REFUSE:
		log_say(LOG_WARNING, "%s could not be written for too long: a record is invalid",
			entry->target->name);
		entry->decision.reason = rd_kafka_err2str(entry->target->error);
		redirect(relay, entry, RELAY_REFUSE);
		break;
	}
}

/* --- failing and recovering ------------------------------------------------------------- */

static bool is_full(const struct relay_target *target)
{
	return target->nr_sending >= SENDING_MAX;
}

/* --- delicate targets ------------------------------------------------------------------ */

/*
 * With exactly once, a record that its target refuses aborts the whole turn. So for some time
 * after that, records of this target are first tried alone. If one is too large, the largest are
 * tried first, until one is not refused; from then on only those that are as large as one that was.
 */
static bool is_delicate(const struct relay *relay, const struct relay_entry *entry)
{
	const struct relay_target *target = entry->target;

	return relay->turn && !entry->is_proven && !entry->stripped &&
		(relay_boot_ms() < target->delicate_ms ||
		 (target->refused_bytes && entry->size >= target->refused_bytes));
}

/* Make the largest of the held entries the first one. */
static void find_largest(struct relay_target *target)
{
	struct relay_entry *entry, *largest = TAILQ_FIRST(&target->held);

	TAILQ_FOREACH(entry, &target->held, in_queue)
		if (entry->size > largest->size)
			largest = entry;
	TAILQ_REMOVE(&target->held, largest, in_queue);
	TAILQ_INSERT_HEAD(&target->held, largest, in_queue);
}

static void try_alone(struct relay *relay, struct relay_target *target)
{
	struct relay_entry *entry;

	if (TAILQ_EMPTY(&target->held) || target->checking)
		return;
	if (target->seeks_large)
		find_largest(target);
	entry = TAILQ_FIRST(&target->held);
	entry->isolated = true;
	entry->is_alone = true;
	start_check(relay, target, entry);
	if (!target->checking)
		look_after(relay, target, BACKOFF_MIN_MS);
}

/* Hold an entry until it was tried; if there are too many of them, park it. */
static void hold_alone(struct relay *relay, struct relay_entry *entry)
{
	struct relay_target *target = entry->target;

	if (!target->is_own && relay_pressure_is_above_half(&relay->pressure)) {
		entry->isolated = false;
		park_again(relay, entry);
		return;
	}
	hold(relay, entry);
	try_alone(relay, target);
}

static bool is_largest(const struct relay_target *target, const struct relay_entry *entry)
{
	const struct relay_entry *other;

	TAILQ_FOREACH(other, &target->held, in_queue)
		if (other->size > entry->size)
			return false;
	return true;
}

/* All that was too large is found: the held ones are not to blame. */
static void end_search(struct relay_target *target)
{
	struct relay_entry *entry;

	target->seeks_large = false;
	target->delicate_ms = 0;
	TAILQ_FOREACH(entry, &target->held, in_queue)
		entry->isolated = false;
}

/* What an entry that was tried alone tells about others. */
static void note_size(struct relay_target *target, const struct relay_entry *entry,
		      rd_kafka_resp_err_t error)
{
	if (is_about_size(error)) {
		target->refused_bytes = entry->size;
		target->seeks_large = true;
	} else if (!error && target->refused_bytes) {
		if (entry->size >= target->refused_bytes)
			target->refused_bytes = 0;
		else if (target->seeks_large && is_largest(target, entry))
			end_search(target);
	}
}

/* The first held entry was tried. Returns false if that says nothing about the record itself. */
static bool note_alone(struct relay *relay, struct relay_target *target, rd_kafka_resp_err_t error)
{
	struct relay_entry *entry = TAILQ_FIRST(&target->held);

	if (!entry || !entry->is_alone || (error && !is_about_batch(error)))
		return false;
	release_held(relay, entry);
	entry->is_proven = !error;
	entry->isolated = error;
	note_size(target, entry, error);
	if (error)
		handle_write_error(relay, entry, error);
	else
		send_again(relay, entry);
	return true;
}

/* Send the held entries; an isolated one only if nothing else of its target is in flight. */
static void send_held(struct relay *relay, struct relay_target *target)
{
	struct relay_entry *entry;
	bool isolated = false;

	while (!isolated && !target->failing && target->checked && !is_full(target) &&
	       (entry = TAILQ_FIRST(&target->held))) {
		if (is_delicate(relay, entry)) {
			try_alone(relay, target);
			return;
		}
		isolated = entry->isolated;
		if (isolated && target->nr_sending)
			return;
		release_held(relay, entry);
		send_again(relay, entry);
	}
}

/* The target has answered. */
static void recover(struct relay *relay, struct relay_target *target)
{
	target->checked = true;
	target->suspect = false;
	if (target->failing) {
		log_say(LOG_NOTICE, "%s can be written again", target->name);
		target->failing = false;
		target->logged_ms = 0;
	}
	relay_wake_never(relay, &target->probe);
	send_held(relay, target);
}

/* The target cannot be written. */
static void note_failure(struct relay_target *target, rd_kafka_resp_err_t error)
{
	uint64_t now_ms = relay_boot_ms();

	log_failure(target, error);
	target->suspect = false;
	if (!target->failing) {
		target->failing = true;
		target->failing_ms = now_ms;
		target->backoff_ms = BACKOFF_MIN_MS;
	} else if (target->is_tried) {
		target->backoff_ms = MIN(2 * target->backoff_ms, BACKOFF_MAX_MS);
	}
	target->is_tried = false;
	target->error = error;
	target->lasting = is_lasting(error);
	target->try_ms = now_ms + target->backoff_ms;
	/* Before the next entry is tried: does it exist again? */
	if (is_missing(error) && !target->is_own)
		target->checked = false;
}

/* All entries that wait for the name of a topic that cannot be one. */
static void refuse_held(struct relay *relay, struct relay_target *target)
{
	struct relay_entry *entry;

	while ((entry = TAILQ_FIRST(&target->held))) {
		release_held(relay, entry);
		handle_write_error(relay, entry, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION);
	}
}

/* What check.c has found out. */
static void note_check(struct relay *relay, const char *topic, rd_kafka_resp_err_t error)
{
	struct relay_target key, *target;

	snprintf(key.name, sizeof(key.name), "%s", topic);
	target = RB_FIND(relay_targets, &relay->targets, &key);
	if (!target)
		return;
	target->checking = false;
	if (!target->failing && note_alone(relay, target, error)) {
		recover(relay, target);
	} else if (error == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION) {
		target->invalid = true;
		/* Until then all records for it are refused without another question. */
		target->try_ms = relay_boot_ms() + INVALID_MS;
		refuse_held(relay, target);
	} else if (!error || is_about_batch(error)) {
		recover(relay, target);
	} else {
		note_failure(target, error);
		sweep(relay, target);
	}
	if (!target->nr && !target->is_unused) {
		target->nr++;
		put_target(relay, target);
	}
}

static void start_check(struct relay *relay, struct relay_target *target,
			const struct relay_entry *entry)
{
	struct relay_product product;
	bool whole = entry && relay->turn && relay_send_describe(entry, &product);

	if (whole && product.partition < 0 && target->failing)
		product.partition = target->failed_number;
	target->checking = relay_check_start(relay, target->name, whole ? &product : NULL,
					     note_check);
}

static bool may_try(const struct relay_target *target)
{
	return relay_boot_ms() >= target->try_ms && !target->checking && !target->nr_sending;
}

/* Try a failing target with an entry, which is in no list. Returns whether it was sent. */
static bool try_target(struct relay *relay, struct relay_target *target,
		       struct relay_entry *entry)
{
	if (!may_try(target))
		return false;
	target->is_tried = true;
	target->try_ms = relay_boot_ms() + target->backoff_ms;
	if (relay->turn || (!target->is_own && !target->checked)) {
		start_check(relay, target, target->checked ? entry : NULL);
		return false;
	}
	send_again(relay, entry);
	return true;
}

/* Park the held entries of a failing target whose time is over, and try it. */
static void sweep(struct relay *relay, struct relay_target *target)
{
	struct relay_entry *entry;
	unsigned int nr;

	for (nr = 0; nr < SWEEP_MAX && (entry = TAILQ_FIRST(&target->held)) &&
	     judge(relay, entry) != RELAY_HOLD_WAIT; nr++) {
		release_held(relay, entry);
		wait_or_park(relay, entry);
	}
	entry = TAILQ_FIRST(&target->held);
	if (!entry)
		return;
	if (nr < SWEEP_MAX && may_try(target)) {
		release_held(relay, entry);
		if (!try_target(relay, target, entry))
			hold(relay, entry);
	}
	look_after(relay, target, nr == SWEEP_MAX ? 0 : MIN(target->backoff_ms, SWEEP_MS));
}

/* Write the record to the topic of invalid ones; the target itself has answered. */
static void refuse(struct relay *relay, struct relay_entry *entry, rd_kafka_resp_err_t error)
{
	log_say(LOG_WARNING, "%s refuses a record: %s", entry->target->name,
		rd_kafka_err2str(error));
	if (!entry->target->invalid)
		recover(relay, entry->target);
	entry->decision.reason = rd_kafka_err2str(error);
	redirect(relay, entry, RELAY_REFUSE);
}

/* The record is too large for the topic of invalid ones: write only its place there. */
static void strip(struct relay *relay, struct relay_entry *entry)
{
	log_say(LOG_ERR, "%s refuses the record at %s [%" PRId32 "] offset %" PRId64
		" for its size: only its place is written there", entry->target->name,
		entry->partition->topic, entry->partition->number, entry->offset);
	recover(relay, entry->target);
	entry->stripped = true;
	redirect(relay, entry, RELAY_REFUSE);
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

	if (log_again(&relay->put_off_logged_ms, now_ms, LOG_EVERY_MS))
		log_say(LOG_ERR, "%s has no partition %" PRId32 ": start a relay with --create",
			entry->target->name, entry->partition->number);
	if (now_ms >= entry->target->lacks_ms)
		entry->target->lacks_from = entry->partition->number;
	entry->target->lacks_from = MIN(entry->target->lacks_from, entry->partition->number);
	entry->target->lacks_ms = now_ms + PUT_OFF_MS / 2;
	relay_send_forget(relay, entry);
	relay->handlers.put_off(relay, entry);
	entry->waker.wake = wake_put_off;
	relay_wake_in(relay, &entry->waker, PUT_OFF_MS);
}

/* Did it lack the partition of this entry a short time ago? */
static bool lacks_partition(const struct relay_entry *entry)
{
	return (entry->decision.action == RELAY_PARK ||
		entry->decision.action == RELAY_TAKE_BACK) &&
		relay_boot_ms() < entry->target->lacks_ms &&
		entry->partition->number >= entry->target->lacks_from;
}

/* The record, or another one of its batch, was refused: send it once more, in its own batch. */
static void isolate(struct relay *relay, struct relay_entry *entry, rd_kafka_resp_err_t error)
{
	entry->isolated = true;
	if (relay->turn) {
		entry->target->seeks_large = is_about_size(error);
		entry->target->delicate_ms = relay_boot_ms() + DELICATE_MS;
		hold_alone(relay, entry);
		return;
	}
	hold(relay, entry);
	if (!entry->target->nr_sending)
		look_after(relay, entry->target, 0);
}

/* A write failed, of an entry that is in no list: refuse the record, or try again later. */
static void handle_write_error(struct relay *relay, struct relay_entry *entry,
			       rd_kafka_resp_err_t error)
{
	bool invalid = entry->decision.action == RELAY_REFUSE;
	bool keeps_number = entry->decision.action == RELAY_PARK ||
		entry->decision.action == RELAY_TAKE_BACK;

	relay->stats.send_errors++;
	error = translate_error(entry->target, error);
	if (error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && keeps_number) {
		put_off(relay, entry);
	} else if (is_about_batch(error) && !entry->isolated) {
		isolate(relay, entry, error);
	} else if (is_hopeless(error) && !invalid) {
		refuse(relay, entry, error);
	} else if (is_about_size(error) && !entry->stripped) {
		strip(relay, entry);
	} else {
		note_failure(entry->target, error);
		wait_or_park(relay, entry);
	}
}

/* --- producing ------------------------------------------------------------------------ */

/* A record of our own topics keeps the number of its partition, so that it stays in order. */
static int32_t partition_of(const struct relay_entry *entry)
{
	return entry->decision.action == RELAY_PARK ||
		entry->decision.action == RELAY_TAKE_BACK ? entry->partition->number :
		RD_KAFKA_PARTITION_UA;
}

/* The id that is taken back, and when the record of that id is due. */
static void describe_take_back(const struct relay_entry *entry, struct relay_product *product)
{
	struct relay_text id = relay_entry_header(entry, RELAY_CANCEL);
	struct relay_text due = relay_entry_header(entry, RELAY_DUE);

	product->key = id.data;
	product->key_len = id.len;
	product->value = due.data;
	product->value_len = due.len;
}

bool relay_send_describe(const struct relay_entry *entry, struct relay_product *product)
{
	*product = (struct relay_product){
		.topic = entry->target->name,
		.partition = partition_of(entry),
		.opaque = (void *)&entry->write,
	};
	if (entry->decision.action == RELAY_TAKE_BACK) {
		describe_take_back(entry, product);
		return true;
	}
	if (!entry->stripped) {
		product->key = entry->key;
		product->key_len = entry->key ? entry->key_len : 0;
		product->value = entry->value;
		product->value_len = entry->value ? entry->value_len : 0;
	}
	product->headers = relay_entry_headers(entry);
	return product->headers;
}

rd_kafka_resp_err_t relay_produce(rd_kafka_t *client, const struct relay_product *product)
{
	rd_kafka_vu_t parts[] = {
		{ .vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = product->topic },
		{ .vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = product->partition },
		{ .vtype = RD_KAFKA_VTYPE_KEY,
		  .u.mem = { (void *)product->key, product->key_len } },
		{ .vtype = RD_KAFKA_VTYPE_VALUE,
		  .u.mem = { (void *)product->value, product->value_len } },
		{ .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = product->opaque },
		{ .vtype = RD_KAFKA_VTYPE_MSGFLAGS,
		  .u.i = product->copy ? RD_KAFKA_MSG_F_COPY : 0 },
		{ .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = product->headers },
	};
	size_t nr = ARRAY_SIZE(parts) - !product->headers;
	rd_kafka_error_t *failure = rd_kafka_produceva(client, parts, nr);
	rd_kafka_resp_err_t error = failure ? rd_kafka_error_code(failure) : 0;

	if (error && product->headers)
		rd_kafka_headers_destroy(product->headers);
	rd_kafka_error_destroy(failure);
	return error;
}

/* Hand an entry to librdkafka, which uses its memory until the report. */
static rd_kafka_resp_err_t produce(struct relay *relay, const struct relay_entry *entry)
{
	struct relay_product product;

	if (!relay_send_describe(entry, &product))
		return RD_KAFKA_RESP_ERR__QUEUE_FULL;
	return relay_produce(entry->is_own ? relay->own_producer : relay->producer, &product);
}

/*
 * Not while partitions are revoked or suspended. And not while it is in doubt whether the
 * partitions are still ours. With exactly once a turn takes the entry.
 */
static bool may_produce(const struct relay *relay)
{
	return !relay->turn && !relay->revoking && !relay->doubt &&
		!relay_doubt_stood_still(relay);
}

static rd_kafka_resp_err_t try_produce(struct relay *relay, struct relay_entry *entry)
{
	return may_produce(relay) ? produce(relay, entry) : RD_KAFKA_RESP_ERR__QUEUE_FULL;
}

static void start_sending(struct relay *relay, struct relay_entry *entry)
{
	entry->state = ENTRY_SENDING;
	entry->partition->nr_sending++;
	entry->target->nr_sending++;
	relay->nr_sending++;
}

static void end_sending(struct relay *relay, struct relay_entry *entry)
{
	entry->state = ENTRY_LOOSE;
	relay->nr_sending--;
	entry->target->nr_sending--;
	if (entry->partition)
		entry->partition->nr_sending--;
}

static void block(struct relay *relay, struct relay_entry *entry)
{
	entry->state = ENTRY_BLOCKED;
	TAILQ_INSERT_TAIL(queue_of(relay, entry), entry, in_queue);
}

static void send_to_target(struct relay *relay, struct relay_entry *entry)
{
	rd_kafka_resp_err_t error = try_produce(relay, entry);

	if (!error)
		start_sending(relay, entry);
	else if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL)
		block(relay, entry);
	else
		handle_write_error(relay, entry, error);
}

static uint64_t slice_ms(const struct relay *relay)
{
	return MAX(MIN(GATHER_MS, relay->rules.horizon_ms / GATHER_PART) / GATHER_SLICES, 1);
}

static unsigned int slice_of(const struct relay_entry *entry)
{
	return (entry->decision.bucket + entry->partition->number) % GATHER_SLICES;
}

/*
 * Nobody waits for an entry that goes to a bucket. librdkafka makes a request for each batch of a
 * partition, and a turn takes longer with each partition. So such entries are gathered, and sent
 * together.
 */
static bool gather(struct relay *relay, struct relay_entry *entry)
{
	if (relay->is_sending_blocked || entry->decision.action != RELAY_PARK || entry->isolated)
		return false;
	if (!relay->nr_gathered)
		relay->gather_ms = relay_boot_ms() + slice_ms(relay);
	relay->nr_gathered++;
	relay->gathered_bytes += entry->size;
	entry->state = ENTRY_GATHERED;
	TAILQ_INSERT_TAIL(&relay->gathered, entry, in_queue);
	return true;
}

static bool is_enough(const struct relay *relay)
{
	return relay->nr_gathered >= GATHER_MAX ||
		relay->gathered_bytes >= relay->pressure.cap / 16;
}

uint64_t relay_send_gathers_until(const struct relay *relay)
{
	if (!relay->nr_gathered)
		return UINT64_MAX;
	return is_enough(relay) ? 0 : relay->gather_ms;
}

static void send_slice(struct relay *relay, unsigned int slice)
{
	struct relay_entry *entry, *next;

	TAILQ_FOREACH_SAFE(entry, &relay->gathered, in_queue, next) {
		if (slice_of(entry) != slice)
			continue;
		release_gathered(relay, entry);
		block(relay, entry);
	}
}

static void send_gathered(struct relay *relay)
{
	uint64_t now_ms = relay_boot_ms();
	unsigned int i;

	for (i = 0; i < GATHER_SLICES; i++) {
		if (now_ms < relay_send_gathers_until(relay))
			return;
		send_slice(relay, relay->gather_slice++ % GATHER_SLICES);
		/* It may be later, if there was enough. */
		if (relay->gather_ms <= now_ms)
			relay->gather_ms += slice_ms(relay);
	}
	relay->gather_ms = now_ms + slice_ms(relay);
}

/* Send an entry that has waited: decide again first. */
static void send_again(struct relay *relay, struct relay_entry *entry)
{
	if (!relay->handlers.reconsider(relay, entry))
		send_to_target(relay, entry);
}

/* It was taken back: free it soon, as its waker may be in the current batch of wakers. */
static bool drop_if_taken_back(struct relay *relay, struct relay_entry *entry)
{
	enum relay_action action = entry->decision.action;

	if ((action != RELAY_DELIVER && action != RELAY_PARK) || !relay_cancels_has(relay, entry))
		return false;
	entry->decision.action = RELAY_DROP;
	entry->state = ENTRY_DROPPED;
	TAILQ_INSERT_TAIL(&relay->dropped, entry, in_queue);
	return true;
}

static void wake_unknown(struct relay *relay, struct relay_waker *waker)
{
	relay_send(relay, container_of(waker, struct relay_entry, waker));
}

/* It may have been taken back in time: it waits until that is known. */
static bool wait_until_known(struct relay *relay, struct relay_entry *entry)
{
	if (entry->decision.action != RELAY_DELIVER || relay_cancels_known(relay, entry))
		return false;
	relay->handlers.put_off(relay, entry);
	entry->waker.wake = wake_unknown;
	relay_wake_in(relay, &entry->waker, UNKNOWN_MS);
	return true;
}

static void send_or_hold(struct relay *relay, struct relay_entry *entry)
{
	struct relay_target *target = entry->target;

	if (target->invalid && relay_boot_ms() < target->try_ms) {
		handle_write_error(relay, entry, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION);
	} else if (target->failing) {
		if (!try_target(relay, target, entry))
			wait_or_park(relay, entry);
	} else if (!target->checked) {
		if (!target->checking)
			start_check(relay, target, NULL);
		hold_behind(relay, entry);
	} else if (is_delicate(relay, entry)) {
		hold_alone(relay, entry);
	} else if (is_full(target) || !TAILQ_EMPTY(&target->held)) {
		hold_behind(relay, entry);
	} else if (!gather(relay, entry)) {
		send_to_target(relay, entry);
	}
}

void relay_send(struct relay *relay, struct relay_entry *entry)
{
	char name[RELAY_TOPIC_MAX + 1];
	bool is_own;

	entry->state = ENTRY_LOOSE;
	if (entry->decision.action == RELAY_NEAR)
		entry->decision.action = RELAY_DELIVER;
	if (drop_if_taken_back(relay, entry) || wait_until_known(relay, entry))
		return;
	is_own = name_target(relay, entry, name);
	entry->target = get_target(relay, name, is_own);
	if (!entry->target) {
		log_say(LOG_ERR, "out of memory for a target");
		relay_end(relay, EX_OSERR);
		return;
	}
	entry->is_own = is_own && relay->own_producer;
	entry->target->nr++;
	send_or_hold(relay, entry);
}

/* Returns false if the producer has no room yet: then the entry is the first of its list. */
static bool send_blocked_one(struct relay *relay, struct relay_entries *blocked,
			     struct relay_entry *entry)
{
	relay->is_sending_blocked = true;
	send_again(relay, entry);
	relay->is_sending_blocked = false;
	/* If it is due meanwhile, it may wait for the other producer now, as the last one. */
	if (entry->state != ENTRY_BLOCKED || queue_of(relay, entry) != blocked)
		return true;
	TAILQ_REMOVE(blocked, entry, in_queue);
	TAILQ_INSERT_HEAD(blocked, entry, in_queue);
	return false;
}

static void take_blocked(struct relay *relay, struct relay_entry *entry)
{
	TAILQ_REMOVE(queue_of(relay, entry), entry, in_queue);
	entry->state = ENTRY_LOOSE;
}

/* The producer of these may have room again. */
static void send_blocked(struct relay *relay, struct relay_entries *blocked)
{
	struct relay_entry *entry;

	while (may_produce(relay) && (entry = TAILQ_FIRST(blocked))) {
		take_blocked(relay, entry);
		if (entry->target->failing)
			wait_or_park(relay, entry);
		else if (is_full(entry->target))
			hold_behind(relay, entry);
		else if (!send_blocked_one(relay, blocked, entry))
			return;
	}
}

/* --- turns ---------------------------------------------------------------------------- */

bool relay_send_take(struct relay *relay, struct relay_entry *entry)
{
	struct relay_target *target = entry->target;

	take_blocked(relay, entry);
	if (lacks_partition(entry)) {
		put_off(relay, entry);
		return false;
	}
	if (target->failing) {
		wait_or_park(relay, entry);
		return false;
	}
	if (target->suspect) {
		if (!target->checking)
			start_check(relay, target, entry);
		hold_behind(relay, entry);
		return false;
	}
	if (is_delicate(relay, entry)) {
		hold_alone(relay, entry);
		return false;
	}
	if (relay->handlers.reconsider(relay, entry))
		return false;
	start_sending(relay, entry);
	return true;
}

void relay_send_suspect(struct relay_entry *entry)
{
	entry->target->suspect = true;
}

void relay_send_untaken(struct relay *relay, struct relay_entry *entry)
{
	end_sending(relay, entry);
	if (!entry->partition) {
		relay_send_free(relay, entry);
		return;
	}
	entry->state = ENTRY_BLOCKED;
	TAILQ_INSERT_HEAD(&relay->blocked, entry, in_queue);
}

void relay_send_failed(struct relay *relay, struct relay_entry *entry, rd_kafka_resp_err_t error)
{
	end_sending(relay, entry);
	if (relay->turn)
		entry->target->failed_number = entry->to_number;
	if (!entry->partition)
		relay_send_free(relay, entry);
	else
		handle_write_error(relay, entry, error);
}

/* --- reports -------------------------------------------------------------------------- */

static void note_lateness(struct relay *relay, const struct relay_entry *entry)
{
	uint64_t now_ns = alarms_now_ns(ALARM_WALL);
	uint64_t due_ns = entry->decision.due_ms * NSEC_PER_MSEC;

	if (entry->decision.action == RELAY_DELIVER && now_ns > due_ns)
		histogram_add(&relay->stats.late, now_ns - due_ns);
}

void relay_send_succeeded(struct relay *relay, struct relay_entry *entry)
{
	end_sending(relay, entry);
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
 * After a write that timed out or that was refused, librdkafka starts a new producer epoch. It then
 * gives new sequence numbers to all records that it sends again, of any partition, and brokers no
 * longer recognise a record that they have already.
 */
static void note_epoch(struct relay *relay, bool is_own, rd_kafka_resp_err_t error)
{
	if (error > 0 || error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT ||
	    error == RD_KAFKA_RESP_ERR__BAD_MSG)
		relay->epoch_ms[is_own] = relay_boot_ms();
}

/* A record that is acknowledged within @again_ms was sent only once. */
static bool may_be_twice(const struct relay *relay, const rd_kafka_message_t *message,
			 rd_kafka_resp_err_t error, bool is_own)
{
	uint64_t age_ms = MAX(rd_kafka_message_latency(message), 0) / 1000;
	uint64_t epoch_ms = relay->epoch_ms[is_own];

	if (error)
		return rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
	return epoch_ms && age_ms >= relay->again_ms && relay_boot_ms() < epoch_ms + age_ms;
}

static void report_entry(struct relay *relay, struct relay_entry *entry,
			 const rd_kafka_message_t *message)
{
	rd_kafka_resp_err_t error = client_report_error(message);

	relay->nr_reports++;
	note_epoch(relay, entry->is_own, error);
	relay->stats.maybe_twice += may_be_twice(relay, message, error, entry->is_own);
	if (error)
		relay_send_failed(relay, entry, error);
	else
		relay_send_succeeded(relay, entry);
}

/* The map is written by the relay's own producer. */
static void report_map_write(struct relay *relay, struct relay_map_write *write,
			     const rd_kafka_message_t *message)
{
	rd_kafka_resp_err_t error = client_report_error(message);

	note_epoch(relay, true, error);
	relay->handlers.map_report(relay, write, error);
}

void relay_send_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context)
{
	enum relay_write *write = message->_private;
	struct clock_difference difference = { 0 };
	struct relay *relay = context;

	(void)client;
	clock_difference_reported(&difference, message);
	relay_clocks_add(relay, &difference);
	if (*write == WRITE_ENTRY)
		report_entry(relay, container_of(write, struct relay_entry, write), message);
	else
		report_map_write(relay, container_of(write, struct relay_map_write, write),
				 message);
}

static void free_dropped(struct relay *relay)
{
	struct relay_entry *entry;

	while ((entry = TAILQ_FIRST(&relay->dropped))) {
		TAILQ_REMOVE(&relay->dropped, entry, in_queue);
		entry->state = ENTRY_LOOSE;
		relay->handlers.drop(relay, entry);
	}
}

/* Only reports of @producer end the wait. */
static int poll_producers(struct relay *relay, int timeout_ms)
{
	int nr = relay->own_producer ? rd_kafka_poll(relay->own_producer, 0) : 0;

	return nr + rd_kafka_poll(relay->producer, nr ? 0 : timeout_ms);
}

void relay_send_poll(struct relay *relay, int timeout_ms)
{
	while (poll_producers(relay, timeout_ms))
		timeout_ms = 0;
	send_gathered(relay);
	send_blocked(relay, &relay->blocked);
	send_blocked(relay, &relay->blocked_own);
	free_dropped(relay);
	free_unused(relay);
}
