// SPDX-License-Identifier: GPL-2.0
/*
 * What this relay writes to the map of done offsets (rules/pieces.h has its format).
 *
 * The window of a partition is cut into ranges as long as a piece. A range is dirty when a record
 * of it was done since its piece was written. At each tick (at least once) or with each turn
 * (exactly once) the dirty ranges that have done records above the low offset are written, as
 * well as the low offset itself. A piece has only what this relay knows by itself: the pieces of
 * earlier owners stay as they are beside it.
 *
 *	             done                 tick, turn             commit acknowledged
 *	  (no range) ----> dirty --------------------> written ----------------------> deleted
 *	                     ^                            |     that is above the range
 *	                     +------ done, or failed -----+
 *
 * Pieces are deleted, ours and those of earlier owners, only when an offset above them is
 * committed, and that is acknowledged: until then they are all that says what is done.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sysexits.h>

#include "common/log.h"
#include "common/util.h"
#include "relay/map.h"
#include "relay/partition.h"
#include "relay/rules/runs.h"
#include "relay/send.h"
#include "relay/state.h"

/* How long an orderly end waits for acknowledgements. */
#define WAIT_MS		10000

/* Not the producer of the map ends a wait when it reports. */
#define POLL_MS		10

/* How often a failure that goes on is logged. */
#define LOG_EVERY_MS	60000

static int compare_ranges(const struct relay_range *a, const struct relay_range *b)
{
	return (a->begin > b->begin) - (a->begin < b->begin);
}

RB_PROTOTYPE(relay_ranges, relay_range, node, compare_ranges)
RB_GENERATE(relay_ranges, relay_range, node, compare_ranges)

/* --- ranges --------------------------------------------------------------------------- */

static int64_t begin_of(int64_t offset)
{
	return offset - offset % PIECE_SPAN;
}

static struct relay_range *get_range(struct relay_partition *partition, int64_t offset)
{
	const struct relay_range key = { .begin = begin_of(offset) };
	struct relay_range *range;

	range = RB_FIND(relay_ranges, &partition->ranges, (struct relay_range *)&key);
	if (range)
		return range;
	range = calloc(1, sizeof(*range));
	if (!range)
		return NULL;
	range->begin = key.begin;
	range->newest_ms = -1;
	range->epoch = -1;
	RB_INSERT(relay_ranges, &partition->ranges, range);
	partition->nr_ranges++;
	return range;
}

static void free_range(struct relay_partition *partition, struct relay_range *range)
{
	RB_REMOVE(relay_ranges, &partition->ranges, range);
	partition->nr_ranges--;
	free(range);
}

static void end_for_memory(struct relay *relay)
{
	log_say(LOG_ERR, "out of memory for the map");
	relay_end(relay, EX_OSERR);
}

void relay_map_note(struct relay *relay, struct relay_partition *partition, int64_t offset,
		    int64_t timestamp_ms, int32_t epoch)
{
	struct relay_range *range = get_range(partition, offset);

	if (!range) {
		end_for_memory(relay);
		return;
	}
	range->newest_ms = MAX(range->newest_ms, timestamp_ms);
	range->epoch = MAX(range->epoch, epoch);
	range->dirty = true;
	partition->newest_ms = MAX(partition->newest_ms, timestamp_ms);
	partition->epoch = MAX(partition->epoch, epoch);
}

void relay_map_free(struct relay_partition *partition)
{
	struct relay_range *range;

	while ((range = RB_MIN(relay_ranges, &partition->ranges)))
		free_range(partition, range);
	done_map_free(&partition->before);
}

size_t relay_map_bytes(const struct relay_partition *partition)
{
	return partition->before.bytes + partition->nr_ranges * sizeof(struct relay_range);
}

uint64_t relay_map_pieces(const struct relay_partition *partition)
{
	return partition->before.bytes / sizeof(struct done_piece) + partition->nr_ranges;
}

/* --- writes --------------------------------------------------------------------------- */

static struct relay_map_write *new_write(struct relay *relay, size_t key_len, size_t value_len)
{
	struct relay_map_write *write = calloc(1, sizeof(*write) + value_len + key_len);

	if (!write) {
		end_for_memory(relay);
		return NULL;
	}
	write->write = WRITE_MAP;
	write->key_len = key_len;
	write->value_len = value_len;
	write->key = (char *)write->value + value_len;
	return write;
}

/* A piece, a low offset, or, if @piece is NULL, a tombstone. */
static struct relay_map_write *new_piece(struct relay *relay,
					 const struct relay_partition *partition, int64_t begin,
					 int64_t generation, const struct piece *piece)
{
	struct piece_key key = {
		.partition = partition->number,
		.begin = begin,
		.generation = generation,
	};
	unsigned char value[PIECE_VALUE_MAX];
	struct relay_map_write *write;
	char text[PIECE_KEY_MAX];
	size_t key_len, value_len;

	snprintf(key.topic, sizeof(key.topic), "%s", partition->topic);
	key_len = piece_key_write(&key, text);
	value_len = piece ? piece_write(piece, begin == PIECE_LOW, value) : 0;
	write = new_write(relay, key_len, value_len);
	if (!write)
		return NULL;
	memcpy(write->key, text, key_len);
	memcpy(write->value, value, value_len);
	write->serial = partition->serial;
	snprintf(write->topic, sizeof(write->topic), "%s" RELAY_DONE_SUFFIX,
		 relay->rules.topic);
	snprintf(write->about, sizeof(write->about), "%s", partition->topic);
	write->number = partition->number;
	write->begin = begin;
	write->low = piece && begin == PIECE_LOW ? piece->low : -1;
	write->is_tombstone = !piece;
	return write;
}

static void add_write(struct relay_map_writes *list, struct relay_map_write *write)
{
	if (write)
		TAILQ_INSERT_TAIL(list, write, link);
}

void relay_map_queue_deletion(struct relay *relay, const char *topic, int32_t number,
			      const void *key, size_t len)
{
	struct relay_map_write *write = new_write(relay, len, 0);

	if (!write)
		return;
	memcpy(write->key, key, len);
	snprintf(write->topic, sizeof(write->topic), "%s", topic);
	write->number = number;
	write->is_tombstone = true;
	add_write(&relay->map_queue, write);
}

void relay_map_free_writes(struct relay_map_writes *list)
{
	struct relay_map_write *write;

	while ((write = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, write, link);
		free(write);
	}
}

/* --- what there is to write ----------------------------------------------------------- */

/*
 * All offsets below this one are known to Kafka as done, or will be together with what is written
 * now. With at least once the group may refuse the commit of the low offset, as it does in some
 * rebalances: so the map says what is done from the last one on that was acknowledged.
 */
static int64_t known_from(const struct relay *relay, const struct relay_partition *partition)
{
	return relay->turn ? partition->mark.low :
		MIN(partition->mark.low, MAX(partition->committed, 0));
}

/* Fill in what is done in a range. Returns whether a part of that is not known. */
static bool fill_piece(const struct relay_partition *partition, const struct relay_range *range,
		       int64_t known, struct piece *piece)
{
	int64_t end = MIN(range->begin + PIECE_SPAN, partition->mark.next);
	int64_t first = MAX(range->begin, known);
	unsigned int i;

	*piece = (struct piece){ .newest_ms = range->newest_ms, .epoch = range->epoch };
	for (i = 0; i < PIECE_WORDS; i++)
		piece->bits[i] = watermark_done_word(&partition->mark, range->begin + i * 64);
	if (first < partition->mark.low)
		return true;
	return first < end && watermark_find(&partition->mark, first, false) < end;
}

static void collect_ranges(struct relay *relay, struct relay_partition *partition,
			   struct relay_map_writes *list)
{
	int64_t known = known_from(relay, partition);
	struct relay_range *range, *next;
	struct piece piece;

	RB_FOREACH_SAFE(range, relay_ranges, &partition->ranges, next) {
		bool passed = range->begin + PIECE_SPAN <= known;

		if (passed && !range->written) {
			free_range(partition, range);
		} else if (range->dirty && fill_piece(partition, range, known, &piece)) {
			add_write(list, new_piece(relay, partition, range->begin,
						  partition->generation, &piece));
			range->written = true;
			range->dirty = false;
		}
	}
}

static void collect_low(struct relay *relay, struct relay_partition *partition,
			struct relay_map_writes *list)
{
	const struct piece piece = {
		.newest_ms = partition->newest_ms,
		.epoch = partition->epoch,
		.low = partition->mark.low,
	};

	if (piece.low == partition->low_written)
		return;
	add_write(list, new_piece(relay, partition, PIECE_LOW, partition->generation, &piece));
	partition->low_written = piece.low;
}

void relay_map_collect(struct relay *relay, struct relay_partition *partition,
		       struct relay_map_writes *list)
{
	collect_ranges(relay, partition, list);
	collect_low(relay, partition, list);
}

static struct relay_partition *find_partition(struct relay *relay,
					      const struct relay_map_write *write)
{
	struct relay_partition *partition;

	if (!write->serial)
		return NULL;
	partition = relay_partition_find(relay, write->about, write->number);
	return partition && partition->serial == write->serial ? partition : NULL;
}

/* What was written has failed: it is to be written again. Frees the write, or queues it. */
static void put_back(struct relay *relay, struct relay_map_write *write)
{
	struct relay_partition *partition = find_partition(relay, write);
	struct relay_range *range;

	if (write->is_tombstone || !write->serial) {
		TAILQ_INSERT_TAIL(&relay->map_queue, write, link);
		return;
	}
	if (partition && write->begin == PIECE_LOW) {
		partition->low_written = -1;
	} else if (partition) {
		range = get_range(partition, write->begin);
		if (range) {
			range->dirty = true;
			range->written = true;
		}
	}
	free(write);
}

void relay_map_put_back(struct relay *relay, struct relay_map_writes *list)
{
	struct relay_map_write *write;

	while ((write = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, write, link);
		put_back(relay, write);
	}
}

static void queue_tombstone(struct relay *relay, const struct relay_partition *partition,
			    int64_t begin, int64_t generation)
{
	add_write(&relay->map_queue, new_piece(relay, partition, begin, generation, NULL));
}

/* The low offsets of earlier owners are not needed when the map has ours. */
static void delete_other_lows(struct relay *relay, struct relay_partition *partition)
{
	const struct done_piece *piece;

	while ((piece = done_map_passed_low(&partition->before, partition->low_mapped,
					    partition->generation))) {
		queue_tombstone(relay, partition, PIECE_LOW, piece->generation);
		done_map_remove(&partition->before, PIECE_LOW, piece->generation);
	}
}

void relay_map_passed(struct relay *relay, struct relay_partition *partition, int64_t low)
{
	const struct done_piece *piece;
	struct relay_range *range;

	while ((range = RB_MIN(relay_ranges, &partition->ranges)) &&
	       range->begin + PIECE_SPAN <= low) {
		if (range->written)
			queue_tombstone(relay, partition, range->begin, partition->generation);
		free_range(partition, range);
	}
	while ((piece = done_map_passed(&partition->before, low))) {
		queue_tombstone(relay, partition, piece->begin, piece->generation);
		done_map_remove(&partition->before, piece->begin, piece->generation);
	}
	delete_other_lows(relay, partition);
}

/* --- the text of version 1 ------------------------------------------------------------ */

/* Set the bits of the offsets of a piece that are done. Returns the offset after the piece. */
static int64_t import_piece(struct runs *runs, int64_t offset, struct piece *piece)
{
	int64_t begin = begin_of(offset), end = begin + PIECE_SPAN;

	*piece = (struct piece){ .newest_ms = runs->time_ms, .epoch = -1 };
	for (; offset < end && !runs_over(runs, offset); offset++)
		if (offset >= runs->begin)
			piece->bits[(offset - begin) / 64] |= 1ULL << (offset - begin) % 64;
	return end;
}

/*
 * The pieces get generation 0, which no relay has. They are not what this relay knows, so a write
 * of one that fails is repeated as it is.
 */
static void queue_imported(struct relay *relay, const struct relay_partition *partition,
			   int64_t begin, const struct piece *piece)
{
	struct relay_map_write *write = new_piece(relay, partition, begin, 0, piece);

	if (write)
		write->serial = 0;
	add_write(&relay->map_queue, write);
}

void relay_map_import(struct relay *relay, struct relay_partition *partition, const char *text,
		      int64_t committed)
{
	int64_t offset = committed;
	struct piece piece;
	struct runs runs;

	if (!runs_begin(&runs, text, committed))
		return;
	while (!runs_over(&runs, offset)) {
		int64_t begin = begin_of(offset);

		offset = import_piece(&runs, offset, &piece);
		queue_imported(relay, partition, begin, &piece);
		if (done_map_add(&partition->before, begin, 0, &piece))
			end_for_memory(relay);
	}
}

/* --- at least once -------------------------------------------------------------------- */

static rd_kafka_resp_err_t produce(struct relay *relay, struct relay_map_write *write)
{
	const struct relay_product product = {
		.topic = write->topic,
		.partition = write->number,
		.key = write->key,
		.key_len = write->key_len,
		.value = write->is_tombstone ? NULL : write->value,
		.value_len = write->value_len,
		.opaque = write,
	};

	return relay_produce(relay->own_producer, &product);
}

static void produce_all(struct relay *relay, struct relay_map_writes *list)
{
	struct relay_map_write *write;

	while ((write = TAILQ_FIRST(list)) && !produce(relay, write)) {
		TAILQ_REMOVE(list, write, link);
		relay->map_writes++;
	}
}

void relay_map_acknowledge(struct relay *relay, struct relay_map_write *write)
{
	struct relay_partition *partition = find_partition(relay, write);

	if (partition)
		partition->low_mapped = MAX(partition->low_mapped, write->low);
	free(write);
}

static void note_mapped(struct relay_partition *partition)
{
	partition->done_mapped = partition->map_done;
	partition->done_committed = MIN(partition->done_mapped, partition->commit_done);
}

/* Not while earlier writes of the partition are on their way: they would tell less. */
static void flush_partition(struct relay *relay, struct relay_partition *partition)
{
	struct relay_map_writes list = TAILQ_HEAD_INITIALIZER(list);
	struct relay_map_write *write;

	if (partition->state == PARTITION_LOADING || partition->map_writes)
		return;
	relay_map_collect(relay, partition, &list);
	partition->map_done = partition->done;
	partition->map_failed = false;
	TAILQ_FOREACH(write, &list, link) {
		write->is_counted = true;
		partition->map_writes++;
	}
	produce_all(relay, &list);
	TAILQ_FOREACH(write, &list, link)
		partition->map_writes--;
	partition->map_failed = !TAILQ_EMPTY(&list);
	relay_map_put_back(relay, &list);
	if (!partition->map_writes && !partition->map_failed)
		note_mapped(partition);
}

void relay_map_flush(struct relay *relay)
{
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		flush_partition(relay, partition);
	produce_all(relay, &relay->map_queue);
}

bool relay_map_wait(struct relay *relay)
{
	uint64_t end_ms = relay_boot_ms() + WAIT_MS;

	while (relay->map_writes && relay_boot_ms() < end_ms)
		relay_send_poll(relay, POLL_MS);
	return !relay->map_writes;
}

static void log_failure(struct relay *relay, const struct relay_map_write *write,
			rd_kafka_resp_err_t error)
{
	if (log_again(&relay->map_logged_ms, relay_boot_ms(), LOG_EVERY_MS))
		log_say(LOG_ERR,
			"%s cannot be written, so records come twice if another relay goes on: %s",
			write->topic, rd_kafka_err2str(error));
}

void relay_map_report(struct relay *relay, struct relay_map_write *write,
		      rd_kafka_resp_err_t error)
{
	struct relay_partition *partition = find_partition(relay, write);

	relay->map_writes--;
	if (error)
		log_failure(relay, write, error);
	if (partition && write->is_counted) {
		partition->map_failed |= !!error;
		if (!--partition->map_writes && !partition->map_failed)
			note_mapped(partition);
	}
	if (error)
		put_back(relay, write);
	else
		relay_map_acknowledge(relay, write);
}
