// SPDX-License-Identifier: GPL-2.0
/*
 * A model of Kafka and of several relays, which use the rules of rules/.
 *
 * Time advances in steps of a second. The topic of delays and each bucket have partitions, with a
 * log, an owner and a committed offset. A relay reads its partitions. A record that it produces is
 * appended to its log after some time, and some time later the relay gets the delivery report.
 * A relay may crash at any step: then it forgets everything, records that it has produced may or
 * may not be appended, and each of its partitions gets another owner later, which reads it from
 * the committed offset. A rebalance revokes partitions of relays that live: these stop reading,
 * wait for their reports, and commit.
 *
 * Each relay has a clock of its own. The true time is that of the producers.
 *
 * The map of done offsets is written at once, before the commit: map_model_test.c is about that.
 * When memory is short, near records give way: those first that are due last.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/device/harness.h"
#include "relay/rules/pieces.h"
#include "relay/rules/rules.h"
#include "relay/rules/watermark.h"
#include "common/retry_policy.h"
#include "common/util.h"

#define SECOND_MS	1000ULL
#define DAY_MS		(24 * 3600 * SECOND_MS)
#define HORIZON_MS	(600 * SECOND_MS)

#define NR_RELAYS	4
#define NR_PARTITIONS	4
#define NR_LOGS		(NR_PARTITIONS * (1 + RELAY_BUCKETS_MAX))

/* The most by which two clocks differ; each differs from the truth by half of it. */
#define CLOCKS_DIFFER_MS	(5 * SECOND_MS)
/* From when a record is produced to its delivery report, at most, if a test says nothing else. */
#define HOP_S			60
/* How long a partition is without an owner after a crash, at most. */
#define ORPHAN_S		60
#define COMMIT_EVERY_S		5

/* Events are at most 2H and the clocks' difference in the future. */
#define SLOTS			2048

/* The memory that a near record takes in the model. */
#define RECORD_BYTES		100ULL

/* The most near records of a relay whose memory is limited. */
#define NEAR_MAX		1000

/* The time of the first step: times before 2001 are refused. */
#define BEGIN_MS		(RELAY_TIME_MIN_MS + 1000 * SECOND_MS)

enum event_kind {
	EVENT_ALARM,	/* a near record of @log at @offset is due */
	EVENT_APPEND,	/* a record is appended to its log, or to its target */
	EVENT_REPORT,	/* the record of @log at @offset is done */
};

/**
 * struct message - a record in a log
 * @id: its index among the records that were sent.
 * @moves: how often it was parked.
 * @parked_ms: when it was last parked.
 * @appended_ms: when it was appended to this log, in true time.
 */
struct message {
	uint32_t id;
	uint32_t moves;
	uint64_t parked_ms;
	uint64_t appended_ms;
};

/**
 * struct event - what happens at a step
 * @next: in the same slot.
 * @log: the log with the record, in @generation of that.
 * @to: the log that the record is appended to; NULL: the target.
 */
struct event {
	struct event *next;
	enum event_kind kind;
	struct log *log;
	struct log *to;
	uint32_t generation;
	int64_t offset;
	struct message message;
};

/**
 * struct log - a partition
 * @message: all records that were ever appended to it.
 * @width_ms: the width of its bucket; 0 for the topic of delays.
 * @append_step: nothing is appended earlier than at this step: records of a producer stay in
 *	order.
 * @committed: the committed offset; @done: the map of what is done above it.
 * @newest_ms: the newest time of the records that the owner has read.
 * @owner: its owner; NULL: it gets one at @orphan_until.
 * @generation: counts the owners.
 * @readable_ms: since when it has this owner, in true time.
 * @mark: which offsets are done; @dirty: more than is committed.
 * @head_ms: the owner reads on at this time of its clock.
 * @in_flight: records that were produced and not reported.
 * @revoking: the owner waits for @in_flight to become 0.
 */
struct log {
	struct message *message;
	int64_t nr;
	int64_t room;
	unsigned int partition;
	uint64_t width_ms;
	uint64_t append_step;

	int64_t committed;
	struct done_map done;
	int64_t newest_ms;
	struct relay *owner;
	uint64_t orphan_until;
	uint32_t generation;
	uint64_t readable_ms;

	struct watermark mark;
	bool dirty;
	uint64_t head_ms;
	uint64_t in_flight;
	uint64_t near;
	bool revoking;
};

/* A near record. */
struct near {
	struct log *log;
	int64_t offset;
	uint64_t due_ms;
};

/**
 * struct relay - a relay
 * @near: its near records, if its memory is limited.
 */
struct relay {
	int64_t skew_ms;
	struct relay_pressure pressure;
	struct near near[NEAR_MAX];
	unsigned int nr_near;
};

/**
 * struct sent - a record that was sent, and its deliveries
 */
struct sent {
	uint64_t at_ms;
	uint64_t due_ms;
	uint32_t delivered;
};

/* The whole model, and the settings of a test. */
static struct world {
	struct relay_rules rules;
	struct relay relays[NR_RELAYS];
	struct log logs[NR_LOGS];
	unsigned int nr_logs;
	struct event *slots[SLOTS];
	struct event *free_events;
	struct sent *sent;
	uint32_t nr_sent;
	uint64_t step;

	uint64_t span_s;	/* records are sent within it */
	uint64_t crash_every_s;
	uint64_t hop_s;		/* see HOP_S */
	bool no_map;		/* what is done above the committed offset is not kept */
	bool in_time;		/* memory is sufficient to deliver all records in time */
	uint64_t cap;

	uint64_t delivered;
	uint64_t again;		/* records that may be produced once more */
	uint64_t crashes;
	uint64_t rebalances;
	uint32_t most_moves;
	uint64_t most_bytes;
	uint64_t pauses;
	uint64_t ways;		/* how often a record gave way */
} world;

/* --- chance and time ------------------------------------------------------------------ */

static uint64_t random_state = 88172645463325252;

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return n ? (random_state >> 11) % n : 0;
}

static uint64_t true_ms(void)
{
	return BEGIN_MS + world.step * SECOND_MS;
}

static uint64_t clock_ms(const struct relay *relay)
{
	return true_ms() + relay->skew_ms;
}

/* --- events --------------------------------------------------------------------------- */

static struct event *new_event(void)
{
	struct event *event = world.free_events;
	size_t i;

	if (!event) {
		event = calloc(1024, sizeof(*event));
		ASSERT(event);
		for (i = 0; i < 1023; i++)
			event[i].next = &event[i + 1];
	}
	world.free_events = event->next;
	return event;
}

static void add_event(const struct event *what, uint64_t step)
{
	struct event **slot = &world.slots[step % SLOTS];
	struct event *event = new_event();

	ASSERT_GT(step, world.step);
	ASSERT_LT(step, world.step + SLOTS);
	*event = *what;
	event->next = *slot;
	*slot = event;
}

/* --- logs ----------------------------------------------------------------------------- */

static void append(struct log *log, struct message message)
{
	if (log->nr == log->room) {
		log->room = log->room ? log->room * 2 : 1024;
		log->message = realloc(log->message, log->room * sizeof(*log->message));
		ASSERT(log->message);
	}
	message.appended_ms = true_ms();
	log->message[log->nr++] = message;
}

static struct log *bucket_log(unsigned int bucket, unsigned int partition)
{
	return &world.logs[(1 + bucket) * NR_PARTITIONS + partition];
}

/* The timestamp of a record, by the clock of its producer. */
static int64_t timestamp_of(const struct log *log, int64_t offset)
{
	const struct message *message = &log->message[offset];

	return log->width_ms ? message->parked_ms : world.sent[message->id].at_ms;
}

static void write_piece(struct log *log, int64_t begin)
{
	struct piece piece = { .newest_ms = log->newest_ms, .epoch = -1 };
	int i;

	for (i = 0; i < PIECE_WORDS; i++)
		piece.bits[i] = watermark_done_word(&log->mark, begin + i * 64);
	ASSERT_EQ(done_map_add(&log->done, begin, log->generation, &piece), 0);
}

static void commit(struct log *log)
{
	const struct done_piece *passed;
	int64_t begin;

	if (!log->dirty)
		return;
	ASSERT_GE(log->mark.low, log->committed);
	for (begin = piece_begin(log->mark.low); !world.no_map && begin < log->mark.next;
	     begin += PIECE_SPAN)
		write_piece(log, begin);
	log->committed = log->mark.low;
	log->dirty = false;
	while ((passed = done_map_passed(&log->done, log->committed)))
		done_map_remove(&log->done, passed->begin, passed->generation);
}

static bool was_done(const struct log *log, int64_t offset)
{
	return done_map_has(&log->done, true, offset, timestamp_of(log, offset), -1);
}

/* Count the records above the committed offset that may be in another log: they come twice. */
static uint64_t produced_above(const struct log *log)
{
	uint64_t again = log->in_flight;
	int64_t offset;

	for (offset = log->committed; offset < log->mark.next; offset++)
		again += !watermark_is_pending(&log->mark, offset) &&
			!was_done(log, offset);
	return again;
}

static void forget_near(struct log *log)
{
	struct relay *relay = log->owner;
	unsigned int i;

	for (i = relay->nr_near; i-- > 0;)
		if (relay->near[i].log == log)
			relay->near[i] = relay->near[--relay->nr_near];
}

/* The owner forgets the partition, and another relay gets it within some seconds. */
static void leave(struct log *log, uint64_t within_s)
{
	world.again += produced_above(log);
	relay_pressure_sub(&log->owner->pressure, log->near * RECORD_BYTES);
	forget_near(log);
	watermark_free(&log->mark);
	log->owner = NULL;
	log->generation++;
	log->in_flight = 0;
	log->near = 0;
	log->revoking = false;
	log->orphan_until = world.step + 1 + random_below(within_s);
}

static void assign(struct log *log, struct relay *relay)
{
	log->owner = relay;
	log->generation++;
	log->readable_ms = true_ms();
	log->head_ms = 0;
	watermark_init(&log->mark, log->committed);
	log->newest_ms = -1;
}

static void end_revoke(struct log *log)
{
	if (log->in_flight)
		return;
	commit(log);
	leave(log, 3);
}

/* --- a relay -------------------------------------------------------------------------- */

/* Produce a record of a partition to a log or to its target. */
static void produce(struct log *log, int64_t offset, const struct message *message,
		    struct log *to)
{
	struct event event = {
		.kind = EVENT_APPEND,
		.log = log,
		.to = to,
		.generation = log->generation,
		.offset = offset,
		.message = *message,
	};
	uint64_t append_step = world.step + 1 + random_below(world.hop_s / 2);

	if (to && append_step < to->append_step)
		append_step = to->append_step;
	if (to)
		to->append_step = append_step;
	add_event(&event, append_step);
	log->in_flight++;
}

static void park(struct log *log, int64_t offset, unsigned int bucket)
{
	struct message message = log->message[offset];
	uint64_t delay_ms = world.sent[message.id].due_ms - world.sent[message.id].at_ms;

	/* Small buckets are never for a record's first wait. */
	ASSERT_GE(bucket, world.rules.nr_small);
	message.moves++;
	message.parked_ms = clock_ms(log->owner);
	if (message.moves > world.most_moves)
		world.most_moves = message.moves;
	/* moves <= log2(delay / H) + 1; with a slow clock the delay is longer. */
	ASSERT_LE(HORIZON_MS << (message.moves - 1), delay_ms + CLOCKS_DIFFER_MS);
	produce(log, offset, &message, bucket_log(bucket, log->partition));
}

static void deliver(struct log *log, int64_t offset)
{
	const struct message *message = &log->message[offset];
	const struct sent *sent = &world.sent[message->id];
	uint64_t latest_ms = sent->due_ms + CLOCKS_DIFFER_MS;

	/* Half of the clocks' difference is the most by which a clock differs from the truth. */
	ASSERT_GE(true_ms() + CLOCKS_DIFFER_MS / 2, sent->due_ms);
	if (latest_ms < log->readable_ms)
		latest_ms = log->readable_ms;
	if (latest_ms < message->appended_ms)
		latest_ms = message->appended_ms;
	if (world.in_time)
		ASSERT_LE(true_ms(), latest_ms + 2 * SECOND_MS);
	produce(log, offset, message, NULL);
}

static void keep_near(struct log *log, int64_t offset, uint64_t due_ms)
{
	struct event event = {
		.kind = EVENT_ALARM,
		.log = log,
		.generation = log->generation,
		.offset = offset,
	};
	uint64_t left_ms = due_ms - clock_ms(log->owner);

	relay_pressure_add(&log->owner->pressure, RECORD_BYTES);
	log->near++;
	if (log->owner->pressure.bytes > world.most_bytes)
		world.most_bytes = log->owner->pressure.bytes;
	add_event(&event, world.step + (left_ms + SECOND_MS - 1) / SECOND_MS);
	if (world.cap == UINT64_MAX)
		return;
	ASSERT_LT(log->owner->nr_near, NEAR_MAX);
	log->owner->near[log->owner->nr_near++] = (struct near){ log, offset, due_ms };
}

/* The record that is due last; NULL: there is none. */
static struct near *last_near(struct relay *relay)
{
	struct near *last = NULL;
	unsigned int i;

	for (i = 0; i < relay->nr_near; i++)
		if (!last || relay->near[i].due_ms > last->due_ms)
			last = &relay->near[i];
	return last;
}

static void remove_near(struct relay *relay, struct near *near)
{
	relay_pressure_sub(&relay->pressure, RECORD_BYTES);
	near->log->near--;
	*near = relay->near[--relay->nr_near];
}

/* Park a near record, unless it is due too soon for any bucket. */
static bool give_way(struct relay *relay, struct near *near)
{
	int bucket = relay_give_way_bucket(&world.rules, near->due_ms - clock_ms(relay));
	struct message message = near->log->message[near->offset];

	if (near->due_ms < clock_ms(relay) || bucket < 0)
		return false;
	message.parked_ms = clock_ms(relay);
	produce(near->log, near->offset, &message, bucket_log(bucket, near->log->partition));
	remove_near(relay, near);
	world.ways++;
	return true;
}

static void make_room(struct relay *relay)
{
	struct near *last;

	while (relay->pressure.give_way && (last = last_near(relay)))
		if (last->log->revoking || !give_way(relay, last))
			break;
}

static struct near *find_near(struct relay *relay, const struct log *log, int64_t offset)
{
	unsigned int i;

	for (i = 0; i < relay->nr_near; i++)
		if (relay->near[i].log == log && relay->near[i].offset == offset)
			return &relay->near[i];
	return NULL;
}

/* A near record is due, unless it has given way. */
static void on_alarm(struct log *log, int64_t offset)
{
	struct near *near;

	if (world.cap == UINT64_MAX) {
		relay_pressure_sub(&log->owner->pressure, RECORD_BYTES);
		log->near--;
	} else {
		near = find_near(log->owner, log, offset);
		if (!near)
			return;
		remove_near(log->owner, near);
	}
	deliver(log, offset);
}

/* No record waits in a bucket behind one that is ready later, except for the time of a hop. */
static void look_at_wait(const struct log *log, const struct message *message)
{
	uint64_t latest_ms = message->parked_ms + log->width_ms + world.hop_s * SECOND_MS;

	if (!world.in_time || !log->width_ms)
		return;
	if (latest_ms < log->readable_ms)
		latest_ms = log->readable_ms;
	if (latest_ms < message->appended_ms)
		latest_ms = message->appended_ms;
	ASSERT_LE(true_ms(), latest_ms + relay_linger_ms(&world.rules, log->width_ms) +
		  CLOCKS_DIFFER_MS + 2 * SECOND_MS);
}

/* Write a number as text, faster than printf(): there are millions. */
static struct relay_text text_of(char *end, uint64_t number)
{
	char *begin = end;

	do {
		*--begin = '0' + number % 10;
		number /= 10;
	} while (number);
	return (struct relay_text){ begin, end - begin };
}

static void decide(const struct log *log, int64_t offset, struct relay_decision *decision)
{
	const struct message *message = &log->message[offset];
	const struct sent *sent = &world.sent[message->id];
	struct relay_record record = {
		.width_ms = log->width_ms,
		.timestamp_ms = sent->at_ms,
		.policy = &retry_policy_default,
		.target = { "target", 6 },
	};
	char due[24], parked[24];

	if (log->width_ms) {
		record.due = text_of(due + sizeof(due), sent->due_ms);
		record.parked = text_of(parked + sizeof(parked), message->parked_ms);
	} else if (message->id % 2) {
		record.deliver_at = text_of(due + sizeof(due), sent->due_ms);
	} else {
		record.delay = text_of(due + sizeof(due), sent->due_ms - sent->at_ms);
	}
	relay_decide(&world.rules, &record, clock_ms(log->owner), decision);
	ASSERT_EQ(decision->due_ms, sent->due_ms);
}

/* Read one record. Returns false if it has to wait. */
static bool read_record(struct log *log)
{
	int64_t offset = log->mark.next;
	struct relay_decision decision;

	if (log->newest_ms < timestamp_of(log, offset))
		log->newest_ms = timestamp_of(log, offset);
	if (was_done(log, offset)) {
		ASSERT_EQ(watermark_read(&log->mark, offset), 0);
		ASSERT(watermark_done(&log->mark, offset));
		log->dirty = true;
		return true;
	}
	decide(log, offset, &decision);
	if (decision.action == RELAY_WAIT) {
		log->head_ms = decision.until_ms +
			relay_linger_ms(&world.rules, log->width_ms);
		return false;
	}
	look_at_wait(log, &log->message[offset]);
	ASSERT_EQ(watermark_read(&log->mark, offset), 0);
	if (decision.action == RELAY_PARK) {
		park(log, offset, decision.bucket);
	} else if (decision.action == RELAY_NEAR) {
		keep_near(log, offset, decision.due_ms);
		make_room(log->owner);
	} else {
		ASSERT_EQ(decision.action, RELAY_DELIVER);
		deliver(log, offset);
	}
	return true;
}

static bool is_paused(const struct log *log)
{
	return log->owner->pressure.paused[log->width_ms ? RELAY_BUCKET : RELAY_INPUT];
}

static void read_log(struct log *log)
{
	if (log->revoking || log->head_ms > clock_ms(log->owner))
		return;
	while (log->mark.next < log->nr && !is_paused(log))
		if (!read_record(log))
			return;
	world.pauses += log->mark.next < log->nr;
}

/* --- what happens --------------------------------------------------------------------- */

static void on_append(struct event *event)
{
	struct event report = *event;

	/* The relay may crash before the record has left. */
	if (event->generation != event->log->generation && random_below(2))
		return;
	if (event->to) {
		append(event->to, event->message);
	} else {
		world.sent[event->message.id].delivered++;
		world.delivered++;
	}
	report.kind = EVENT_REPORT;
	add_event(&report, world.step + 1 + random_below(world.hop_s / 2));
}

static void on_event(struct event *event)
{
	struct log *log = event->log;
	bool ours = event->generation == log->generation;

	if (event->kind == EVENT_APPEND) {
		on_append(event);
	} else if (ours && event->kind == EVENT_REPORT) {
		ASSERT(watermark_done(&log->mark, event->offset));
		log->dirty = true;
		log->in_flight--;
		if (log->revoking)
			end_revoke(log);
	} else if (ours && !log->revoking) {
		on_alarm(log, event->offset);
	}
}

static void run_events(void)
{
	struct event **slot = &world.slots[world.step % SLOTS];

	while (*slot) {
		struct event *event = *slot;

		*slot = event->next;
		on_event(event);
		event->next = world.free_events;
		world.free_events = event;
	}
}

static void crash(struct relay *relay)
{
	unsigned int i;

	for (i = 0; i < world.nr_logs; i++)
		if (world.logs[i].owner == relay)
			leave(&world.logs[i], ORPHAN_S);
	world.crashes++;
}

/* Some partitions are assigned to another relay. */
static void rebalance(void)
{
	unsigned int i;

	for (i = 0; i < world.nr_logs; i++) {
		struct log *log = &world.logs[i];

		if (!log->owner || log->revoking || random_below(4))
			continue;
		log->revoking = true;
		end_revoke(log);
	}
	world.rebalances++;
}

static void make_trouble(void)
{
	if (random_below(world.crash_every_s))
		return;
	if (random_below(2))
		crash(&world.relays[random_below(NR_RELAYS)]);
	else
		rebalance();
}

static void run_logs(void)
{
	unsigned int i;

	for (i = 0; i < world.nr_logs; i++) {
		struct log *log = &world.logs[i];

		if (!log->owner && log->orphan_until <= world.step)
			assign(log, &world.relays[random_below(NR_RELAYS)]);
		if (!log->owner)
			continue;
		read_log(log);
		if (world.step % COMMIT_EVERY_S == i % COMMIT_EVERY_S)
			commit(log);
	}
}

/* Half of the delays are spread evenly, half have as many of each magnitude. */
static uint64_t random_delay_ms(void)
{
	if (random_below(2))
		return random_below(30 * DAY_MS);
	return random_below(30 * DAY_MS >> random_below(20));
}

static void send_some(uint32_t *nr)
{
	uint64_t until = world.nr_sent * (world.step + 1) / world.span_s;

	for (; *nr < until && *nr < world.nr_sent; ++*nr) {
		struct sent *sent = &world.sent[*nr];

		sent->at_ms = true_ms() - random_below(SECOND_MS);
		sent->due_ms = sent->at_ms + random_delay_ms();
		append(&world.logs[random_below(NR_PARTITIONS)], (struct message){ .id = *nr });
	}
}

/* Are all records of all logs done and committed? */
static bool is_over(void)
{
	unsigned int i;

	for (i = 0; i < world.nr_logs; i++)
		if (world.logs[i].committed < world.logs[i].nr)
			return false;
	return true;
}

/* --- the tests ------------------------------------------------------------------------ */

static void make_world(uint32_t nr_sent)
{
	unsigned int i;

	relay_rules_init(&world.rules, "delays", HORIZON_MS, 1);
	world.hop_s = world.hop_s ?: HOP_S;
	world.nr_sent = nr_sent;
	world.sent = calloc(nr_sent, sizeof(*world.sent));
	ASSERT(world.sent);
	world.nr_logs = NR_PARTITIONS * (1 + world.rules.nr_buckets);
	for (i = 0; i < world.nr_logs; i++) {
		world.logs[i].partition = i % NR_PARTITIONS;
		if (i >= NR_PARTITIONS)
			world.logs[i].width_ms = world.rules.width_ms[i / NR_PARTITIONS - 1];
	}
	for (i = 0; i < NR_RELAYS; i++) {
		world.relays[i].skew_ms = random_below(CLOCKS_DIFFER_MS + 1) -
			CLOCKS_DIFFER_MS / 2;
		world.relays[i].pressure.cap = world.cap;
	}
	/* Clocks differ as much as is allowed. */
	world.relays[0].skew_ms = -(int64_t)(CLOCKS_DIFFER_MS / 2);
	world.relays[1].skew_ms = CLOCKS_DIFFER_MS / 2;
}

static void run_world(void)
{
	uint64_t end = world.span_s + 60 * DAY_MS / SECOND_MS;
	uint32_t nr = 0;

	do {
		run_events();
		make_trouble();
		send_some(&nr);
		run_logs();
		world.step++;
		ASSERT_LT(world.step, end);
	} while (nr < world.nr_sent || !is_over());
}

static void look_at_ledger(void)
{
	uint32_t i;

	for (i = 0; i < world.nr_sent; i++)
		ASSERT_GE(world.sent[i].delivered, 1);
	ASSERT_LE(world.delivered - world.nr_sent, world.again);
	printf("# %u sent, %lu duplicates of %lu possible, %u moves at most\n", world.nr_sent,
	       world.delivered - world.nr_sent, world.again, world.most_moves);
	printf("# %lu crashes, %lu rebalances\n", world.crashes, world.rebalances);
}

TEST(a_million_delays_survive_crashes_and_rebalances)
{
	world.span_s = 2 * DAY_MS / SECOND_MS;
	world.crash_every_s = 1500;
	world.in_time = true;
	world.cap = UINT64_MAX;
	make_world(test_count(1000000));
	run_world();
	look_at_ledger();
	ASSERT_GT(world.crashes, 100);
	ASSERT_GT(world.rebalances, 100);
}

TEST(without_the_map_only_records_above_the_watermark_come_twice)
{
	world.span_s = DAY_MS / SECOND_MS;
	world.crash_every_s = 1500;
	world.no_map = true;
	world.in_time = true;
	world.cap = UINT64_MAX;
	make_world(test_count(100000));
	run_world();
	look_at_ledger();
	ASSERT_GT(world.delivered, world.nr_sent);
}

TEST(without_trouble_nothing_is_delivered_twice)
{
	world.span_s = DAY_MS / SECOND_MS;
	world.crash_every_s = UINT64_MAX;
	world.in_time = true;
	world.cap = UINT64_MAX;
	make_world(50000);
	run_world();
	look_at_ledger();
	ASSERT_EQ(world.delivered, world.nr_sent);
}

TEST(with_little_memory_near_records_give_way_and_none_is_late)
{
	world.span_s = DAY_MS / SECOND_MS;
	world.crash_every_s = 5000;
	world.hop_s = 2;
	world.in_time = true;
	world.cap = 24 * RECORD_BYTES;
	make_world(50000);
	run_world();
	look_at_ledger();
	printf("# %lu gave way\n", world.ways);
	ASSERT_GT(world.ways, 1000);
	ASSERT_EQ(world.pauses, 0);
	ASSERT_LE(world.most_bytes, world.cap);
}

TEST(if_too_much_is_due_at_once_partitions_are_paused_and_nothing_is_lost)
{
	world.span_s = DAY_MS / SECOND_MS / 10;
	world.crash_every_s = 5000;
	world.cap = 16 * RECORD_BYTES;
	make_world(50000);
	run_world();
	look_at_ledger();
	ASSERT_GT(world.pauses, 0);
	ASSERT_LE(world.most_bytes, world.cap);
}
