// SPDX-License-Identifier: GPL-2.0
/*
 * Records that were taken back. Whoever takes a record back produces a record to the topic of
 * delays; the relay that reads it writes the id to the topic of cancelled ids, which each relay
 * follows in the partitions whose numbers it has. A record that is due is not sent if its id is
 * known by then:
 *
 *	                       partition n             partition n
 *	twheel-cancel --> delays ------> delays-cancelled ------> each relay that has a
 *	                                                          partition n of any topic
 *
 * So nothing of a number is sent before its ids were read up to their end.
 *
 * Later ids have to be known, too: those that were in the topic RELAY_CANCEL_BEFORE_MS before a
 * record was due. A leader that does not answer says nothing of that, nor does one without new
 * records. So each number is asked for its end now and then, and what is due waits if there was no
 * answer for too long. To ask is to seek to where it is read already: what librdkafka then gives,
 * a record or the end, is from a request that was made after that. With records, the end is known
 * from the answer, too, and is to be reached.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "relay/cancels.h"
#include "relay/entry.h"
#include "relay/map.h"
#include "relay/partition.h"
#include "relay/rules/cancelled.h"
#include "relay/state.h"

/* How many ids are read in a turn of the loop. */
#define BATCH		500

/*
 * How often ids that are over are looked for, and about how many are deleted at a time: each takes
 * memory until that is written.
 */
#define EXPIRE_EVERY_MS	60000
#define EXPIRE_MOST	10000

/*
 * When an end is asked for after an answer, and when once more if there is none: an answer that is
 * on its way is dropped then, so this is longer than librdkafka waits for one.
 */
#define ASK_EVERY_MS	1000
#define ASK_AGAIN_MS	120000

/* How often it is logged that records wait. */
#define LOG_EVERY_MS	60000

/**
 * struct number - the ids of a partition number
 * @link: in the list of all numbers.
 * @number: the number.
 * @nr_partitions: how many partitions of this number are ours.
 * @ids: the ids.
 * @bytes: the memory of @ids that the relay has accounted.
 * @next: the offset after the last record that was read.
 * @end: up to where it is to be read before it is ready; negative: unknown.
 * @is_ready: it was read up to there.
 * @known_ms: all ids that were in the topic then are known; as relay_boot_ms(), which all here is.
 * @asked_ms: when its end was asked for; 0: that was answered.
 * @goal: the end by that answer; negative: none has come.
 * @logged_ms: when it was last logged that records wait; 0: none does.
 */
struct number {
	LIST_ENTRY(number) link;
	int32_t number;
	unsigned int nr_partitions;
	struct cancelled ids;
	size_t bytes;
	int64_t next;
	int64_t end;
	bool is_ready;
	uint64_t known_ms;
	uint64_t asked_ms;
	int64_t goal;
	uint64_t logged_ms;
};

/**
 * struct relay_cancels - all of them
 * @numbers: the numbers that are followed.
 * @topic: the topic of cancelled ids.
 * @queue: receives its records.
 * @fd: an eventfd that tells of them.
 * @expire_ms: when ids that are over are looked for next.
 */
struct relay_cancels {
	LIST_HEAD(, number) numbers;
	rd_kafka_topic_t *topic;
	rd_kafka_queue_t *queue;
	int fd;
	uint64_t expire_ms;
};

int relay_cancels_open(struct relay *relay)
{
	static const uint64_t one = 1;
	struct relay_cancels *cancels = calloc(1, sizeof(*cancels));
	char name[RELAY_TOPIC_MAX + 1];

	if (!cancels) {
		log_say(LOG_ERR, "out of memory");
		return EXIT_CANNOT;
	}
	relay->cancels = cancels;
	snprintf(name, sizeof(name), "%s" RELAY_CANCELLED_SUFFIX, relay->rules.topic);
	cancels->topic = rd_kafka_topic_new(relay->follower, name, NULL);
	cancels->queue = rd_kafka_queue_new(relay->follower);
	cancels->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cancels->fd < 0) {
		log_say(LOG_ERR, "cannot poll: %m");
		return EXIT_CANNOT;
	}
	rd_kafka_queue_io_event_enable(cancels->queue, cancels->fd, &one, sizeof(one));
	return 0;
}

int relay_cancels_fd(const struct relay_cancels *cancels)
{
	return cancels->fd;
}

static struct number *find(const struct relay *relay, int32_t nr)
{
	struct number *number;

	LIST_FOREACH(number, &relay->cancels->numbers, link)
		if (number->number == nr)
			return number;
	return NULL;
}

/* --- which numbers are followed --------------------------------------------------------- */

static void account(struct relay *relay, struct number *number)
{
	relay_pressure_sub(&relay->pressure, number->bytes);
	number->bytes = number->ids.bytes;
	relay_pressure_add(&relay->pressure, number->bytes);
}

static struct number *new_number(struct relay *relay, int32_t nr)
{
	struct relay_cancels *cancels = relay->cancels;
	struct number *number = calloc(1, sizeof(*number));

	if (!number) {
		log_say(LOG_ERR, "out of memory for ids that were taken back");
		relay_end(relay, EX_OSERR);
		return NULL;
	}
	number->number = nr;
	number->end = -1;
	LIST_INSERT_HEAD(&cancels->numbers, number, link);
	if (rd_kafka_consume_start_queue(cancels->topic, nr, RD_KAFKA_OFFSET_BEGINNING,
					 cancels->queue))
		log_say(LOG_ERR, "%s [%" PRId32 "]: %s", rd_kafka_topic_name(cancels->topic), nr,
			rd_kafka_err2str(rd_kafka_last_error()));
	return number;
}

void relay_cancels_take(struct relay *relay, int32_t nr)
{
	struct number *number = find(relay, nr) ?: new_number(relay, nr);

	if (number)
		number->nr_partitions++;
}

static void free_number(struct relay *relay, struct number *number)
{
	rd_kafka_consume_stop(relay->cancels->topic, number->number);
	cancelled_free(&number->ids);
	account(relay, number);
	LIST_REMOVE(number, link);
	free(number);
}

void relay_cancels_drop(struct relay *relay, int32_t nr)
{
	struct number *number = find(relay, nr);

	if (number && !--number->nr_partitions)
		free_number(relay, number);
}

void relay_cancels_close(struct relay *relay)
{
	struct relay_cancels *cancels = relay->cancels;
	struct number *number;

	if (!cancels)
		return;
	while ((number = LIST_FIRST(&cancels->numbers)))
		free_number(relay, number);
	if (cancels->queue) {
		rd_kafka_queue_io_event_enable(cancels->queue, -1, NULL, 0);
		rd_kafka_queue_destroy(cancels->queue);
	}
	if (cancels->topic)
		rd_kafka_topic_destroy(cancels->topic);
	if (cancels->fd >= 0)
		close(cancels->fd);
	free(cancels);
	relay->cancels = NULL;
}

/* --- reading ---------------------------------------------------------------------------- */

/* Its topic may be made anew later, and be shorter. */
static void note_ready(struct number *number)
{
	number->is_ready |= number->end >= 0 && number->next >= number->end;
}

bool relay_cancels_ready(struct relay *relay, int32_t nr)
{
	const struct number *number = find(relay, nr);

	return number && number->is_ready;
}

void relay_cancels_expect(struct relay *relay, int32_t nr, int64_t end, uint64_t asked_ms)
{
	struct number *number = find(relay, nr);

	/* What was read once is known. */
	if (!number || number->end >= 0)
		return;
	number->end = end;
	number->known_ms = asked_ms;
	note_ready(number);
}

/* All that was in the topic when it was asked is read. */
static void note_known(const struct relay *relay, struct number *number)
{
	number->known_ms = number->asked_ms;
	number->asked_ms = 0;
	if (number->logged_ms)
		log_say(LOG_NOTICE, "%s [%" PRId32 "] is known to its end again",
			rd_kafka_topic_name(relay->cancels->topic), number->number);
	number->logged_ms = 0;
}

/* A record or the end was read. */
static void note_answer(const struct relay *relay, struct number *number, bool is_end)
{
	int64_t low;

	if (!number->asked_ms)
		return;
	if (number->goal < 0 && !is_end &&
	    rd_kafka_get_watermark_offsets(relay->follower,
					   rd_kafka_topic_name(relay->cancels->topic),
					   number->number, &low, &number->goal))
		number->goal = -1;
	if (is_end || (number->goal >= 0 && number->next >= number->goal))
		note_known(relay, number);
}

static bool is_to_be_asked(const struct number *number)
{
	uint64_t now_ms = relay_boot_ms();

	if (!number->is_ready)
		return false;
	return number->asked_ms ? now_ms >= number->asked_ms + ASK_AGAIN_MS :
		now_ms >= number->known_ms + ASK_EVERY_MS;
}

void relay_cancels_ask(struct relay *relay)
{
	struct relay_cancels *cancels = relay->cancels;
	struct number *number;

	LIST_FOREACH(number, &cancels->numbers, link) {
		if (!is_to_be_asked(number))
			continue;
		number->asked_ms = relay_boot_ms();
		number->goal = -1;
		/* Without a time-out it does not wait. */
		if (rd_kafka_seek(cancels->topic, number->number, number->next, 0))
			number->asked_ms = 0;
	}
}

static void note_id(struct relay *relay, struct number *number,
		    const rd_kafka_message_t *message)
{
	uint64_t due_ms;
	int error = 0;

	if (!message->payload)
		cancelled_remove(&number->ids, message->key, message->key_len);
	else if (message->key && cancelled_value_read(message->payload, message->len, &due_ms))
		error = cancelled_add(&number->ids, message->key, message->key_len, due_ms);
	if (error) {
		log_say(LOG_ERR, "out of memory for ids that were taken back");
		relay_end(relay, EX_OSERR);
	}
	account(relay, number);
}

static void read_message(struct relay *relay, const rd_kafka_message_t *message)
{
	struct number *number = find(relay, message->partition);
	bool is_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF, was_ready;

	if (!number)
		return;
	was_ready = number->is_ready;
	if (message->err && !is_end) {
		log_say(LOG_WARNING, "%s [%" PRId32 "]: %s",
			rd_kafka_topic_name(relay->cancels->topic), message->partition,
			rd_kafka_message_errstr(message));
		return;
	}
	if (!is_end)
		note_id(relay, number, message);
	number->next = message->offset + !is_end;
	note_ready(number);
	note_answer(relay, number, is_end);
	relay->assign_again |= !was_ready && number->is_ready;
}

bool relay_cancels_poll(struct relay *relay)
{
	rd_kafka_message_t *message;
	unsigned int nr;

	for (nr = 0; nr < BATCH; nr++) {
		message = rd_kafka_consume_queue(relay->cancels->queue, 0);
		if (!message)
			return false;
		read_message(relay, message);
		rd_kafka_message_destroy(message);
	}
	return true;
}

/* --- looking and forgetting ------------------------------------------------------------- */

bool relay_cancels_has(struct relay *relay, const struct relay_entry *entry)
{
	const struct number *number = find(relay, entry->partition->number);
	char place[RELAY_PLACE_MAX];
	struct relay_text id;

	if (!number || !number->ids.nr)
		return false;
	id = relay_entry_id(entry, place);
	return cancelled_has(&number->ids, id.data, id.len);
}

static void log_wait(const struct relay *relay, struct number *number, uint64_t age_ms)
{
	if (!log_again(&number->logged_ms, relay_boot_ms(), LOG_EVERY_MS))
		return;
	log_say(LOG_WARNING, "%s [%" PRId32 "] was not read to its end for %" PRIu64
		" s: what is due of partitions %" PRId32 " waits, as it may have been taken back",
		rd_kafka_topic_name(relay->cancels->topic), number->number, age_ms / 1000,
		number->number);
}

bool relay_cancels_known(struct relay *relay, const struct relay_entry *entry)
{
	struct number *number = find(relay, entry->partition->number);
	uint64_t now_ms = relay_now_ms(), due_ms = entry->decision.due_ms;
	uint64_t late_ms = now_ms > due_ms ? (now_ms - due_ms) / relay->rules.scale : 0;
	uint64_t age_ms = number ? relay_boot_ms() - number->known_ms : 0;

	if (age_ms <= RELAY_CANCEL_BEFORE_MS + late_ms)
		return true;
	log_wait(relay, number, age_ms);
	return false;
}

uint64_t relay_cancels_nr(const struct relay *relay)
{
	const struct number *number;
	uint64_t nr = 0;

	LIST_FOREACH(number, &relay->cancels->numbers, link)
		nr += number->ids.nr;
	return nr;
}

uint64_t relay_cancels_bytes(const struct relay *relay)
{
	const struct number *number;
	uint64_t bytes = 0;

	LIST_FOREACH(number, &relay->cancels->numbers, link)
		bytes += number->bytes;
	return bytes;
}

struct expiry {
	struct relay *relay;
	const struct number *number;
};

static void delete_id(void *context, const void *id, size_t len)
{
	const struct expiry *expiry = context;

	relay_map_queue_deletion(expiry->relay, rd_kafka_topic_name(expiry->relay->cancels->topic),
				 expiry->number->number, id, len);
}

/* Only the relay that has the partition of the topic of delays deletes ids. */
static size_t expire(struct relay *relay, struct number *number, size_t most)
{
	struct expiry expiry = { relay, number };
	size_t nr;

	if (!relay_partition_find(relay, relay->rules.topic, number->number))
		return 0;
	nr = cancelled_expire(&number->ids, relay_now_ms(), RELAY_CANCEL_KEEP_MS, most, delete_id,
			      &expiry);
	account(relay, number);
	return nr;
}

void relay_cancels_expire(struct relay *relay)
{
	struct number *number;
	size_t nr = 0;

	if (relay_boot_ms() < relay->cancels->expire_ms || !TAILQ_EMPTY(&relay->map_queue))
		return;
	LIST_FOREACH(number, &relay->cancels->numbers, link)
		if (nr < EXPIRE_MOST)
			nr += expire(relay, number, EXPIRE_MOST - nr);
	if (nr < EXPIRE_MOST)
		relay->cancels->expire_ms = relay_boot_ms() + EXPIRE_EVERY_MS;
}
