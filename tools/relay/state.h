/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The structures of the relay.
 *
 * All of them belong to one thread. librdkafka's own threads reach it only through queues that
 * the loop polls, so there are no locks. Callbacks run within relay_group_read() (records,
 * rebalances, answers to commits) and relay_send_poll() (delivery reports), and while the
 * relay leaves the group and closes its clients.
 *
 * Words: a record is what Kafka has, an entry is a record in memory. An entry is pending from
 * when it is decided until it is done: Kafka has acknowledged the record that was written for
 * it. It is near if it is due within two horizons; otherwise it is parked in a bucket. An entry
 * is sending while librdkafka has it, and held while its target cannot be written.
 */
#ifndef RELAY_STATE_H
#define RELAY_STATE_H

#include <librdkafka/rdkafka.h>
#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "alarm/alarm.h"
#include "alarm/clock.h"
#include "common/histogram.h"
#include "relay/options.h"
#include "relay/rules/rules.h"
#include "relay/rules/runs.h"
#include "relay/rules/watermark.h"

struct relay;
struct relay_checks;
struct relay_target;

/**
 * struct relay_waker - calls a function at a time
 * @alarm: private.
 * @wake: called once, at @time_ms or later; it may set the waker again.
 * @time_ms: the time, by the clock that the waker was set for.
 */
struct relay_waker {
	struct alarm alarm;
	void (*wake)(struct relay *relay, struct relay_waker *waker);
	uint64_t time_ms;
};

/*
 * The states of an entry. It is created when a record is read, and freed when it is done or
 * when its partition is revoked:
 *
 *	        read                  near                due
 *	(Kafka) ----> ENTRY_UNDECIDED ----> ENTRY_NEAR -----------+
 *	                   |                                      v
 *	                   +------- to be sent at once -----> ENTRY_SENDING ---> done
 *	                                                      ^   |     |
 *	                       the producer has room, or the  |   |     | the target fails,
 *	                       target can be written again    |   |     | or the producer is full
 *	                                                      |   v     v
 *	                                                ENTRY_HELD, ENTRY_BLOCKED
 *
 * An entry that is to be parked and is held or blocked is decided again before it is sent, and
 * also when it becomes near while it is held: with time, its bucket becomes too wide.
 */
enum relay_entry_state {
	ENTRY_LOOSE,		/* in no list: between two states, or its alarm is set */
	ENTRY_UNDECIDED,	/* in @undecided of its partition: not decided yet */
	ENTRY_NEAR,		/* its alarm is set for when it is due */
	ENTRY_SENDING,		/* librdkafka has it: its memory must stay */
	ENTRY_HELD,		/* in @held of its target, which cannot be written */
	ENTRY_BLOCKED,		/* in @blocked of the relay: the producer is full */
};

/**
 * struct relay_entry - a record in memory
 * @waker: wakes it when it is due, or when it is to be decided again.
 * @partition: its partition; NULL: that was revoked while librdkafka had the entry.
 * @in_partition: in @entries of @partition, in the order of offsets.
 * @in_queue: in the list that @state names.
 * @state: its state.
 * @target: the topic that it is written to; NULL until it is sent.
 * @isolated: the target refused the batch that it was in: it is sent in a batch of its own.
 * @stripped: too large for the topic of invalid records, too: only its place (topic, partition
 *	and offset) is written there, without its key, value and headers.
 * @decision: what is to be done with it.
 * @offset: its offset.
 * @timestamp_ms: its timestamp; negative: it has none.
 * @size: the memory that it takes, in bytes.
 * @key_len: length of @key; negative if the key is null.
 * @value_len: length of @value; negative if the value is null.
 * @nr_headers: the number of headers in @data.
 * @key: its key, in @data.
 * @value: its value, in @data.
 * @data: headers, key and value, see entry.c.
 */
struct relay_entry {
	struct relay_waker waker;
	struct relay_partition *partition;
	TAILQ_ENTRY(relay_entry) in_partition;
	TAILQ_ENTRY(relay_entry) in_queue;
	enum relay_entry_state state;
	struct relay_target *target;
	bool isolated;
	bool stripped;
	struct relay_decision decision;
	int64_t offset;
	int64_t timestamp_ms;
	size_t size;
	int32_t key_len;
	int32_t value_len;
	uint32_t nr_headers;
	char *key;
	char *value;
	char data[];
};

TAILQ_HEAD(relay_entries, relay_entry);

/* The reasons for which a partition is paused: bits. */
enum relay_pause {
	PAUSE_HEAD = 1,		/* the head of the bucket is not ready */
	PAUSE_MEMORY = 2,	/* backpressure: memory is short */
	PAUSE_WINDOW = 4,	/* the window above the lowest offset not done is full */
	PAUSE_STOPPED = 8,	/* records are missing: until it is assigned again */
};

/**
 * struct relay_partition - a partition that is assigned to this relay
 * @node: in @partitions of the relay.
 * @topic: the name of its topic.
 * @number: its number.
 * @kind: whether the topic is a bucket.
 * @width_ms: the width of the bucket; 0 if the topic is not a bucket.
 * @started: @mark and @next are known. If no offset was ever committed, they are unknown until
 *	the first record is read.
 * @mark: which offsets are done.
 * @mark_bytes: the memory that @mark takes.
 * @next: the offset of the next record that is expected from Kafka.
 * @end: the end of the partition when it was last asked for, see lag.c.
 * @committed: the committed offset; RD_KAFKA_OFFSET_INVALID if there is none.
 * @dirty: a record was done since the last commit, or that commit failed.
 * @commit_ms: the next commit is not before this time of the clock since boot.
 * @done_at_assign: @nr_done of the relay when the partition was assigned. @done and
 *	@done_committed start with this value: no value of an earlier assignment is higher,
 *	which lets a late answer from an earlier assignment be ignored.
 * @done: increases with each record of the partition that is done here.
 * @done_committed: value of @done covered by the last acknowledged commit, less the records
 *	that the commit's text had no room for.
 * @done_before: which offsets were done already when the partition was assigned.
 * @done_text: the text that @done_before reads.
 * @entries: all entries of the partition.
 * @undecided: those of them that are not decided yet.
 * @undecided_bytes: the memory that @undecided takes.
 * @head: wakes when the first of @undecided is ready.
 * @reread_offset: the offset of the head, if it was freed and is to be read from Kafka again
 *	when it is ready; otherwise negative.
 * @reread_timestamp_ms: the timestamp of that record.
 * @nr_rereads: how often librdkafka was told to seek to it.
 * @pauses: bits of enum relay_pause.
 * @is_paused: librdkafka was told to pause the partition.
 * @nr_sending: its entries in state ENTRY_SENDING.
 */
struct relay_partition {
	RB_ENTRY(relay_partition) node;
	char *topic;
	int32_t number;
	enum relay_kind kind;
	uint64_t width_ms;
	bool started;
	struct watermark mark;
	size_t mark_bytes;
	int64_t next;
	int64_t end;
	int64_t committed;
	bool dirty;
	uint64_t commit_ms;
	uint64_t done_at_assign;
	uint64_t done;
	uint64_t done_committed;
	struct runs done_before;
	char *done_text;
	struct relay_entries entries;
	struct relay_entries undecided;
	size_t undecided_bytes;
	struct relay_waker head;
	int64_t reread_offset;
	int64_t reread_timestamp_ms;
	unsigned int nr_rereads;
	unsigned int pauses;
	bool is_paused;
	uint64_t nr_sending;
};

RB_HEAD(relay_partitions, relay_partition);

/**
 * struct relay_target - a topic that is written to
 * @node: in @targets of the relay.
 * @unused: in @unused of the relay, if @nr is 0: freed when no caller may still use it.
 * @is_unused: it is in that list.
 * @nr: entries that have it as their target.
 * @nr_sending: those of them in state ENTRY_SENDING.
 * @invalid: brokers have refused its name as not valid for a topic. From then on librdkafka
 *	reports a topic that it does not know: so the target is kept, to translate that error.
 * @failing: it cannot be written: its entries are in @held, and one at a time is tried.
 * @held: entries that wait because the target fails, or because it has enough in flight.
 * @nr_held: the number of entries in @held.
 * @probe: wakes when the next entry is tried.
 * @backoff_ms: the time between two tries.
 * @logged_ms: when the failure was last logged, by the clock since boot.
 * @labelled: its counters have a label of their own on the page of metrics: it is kept while the
 *	relay runs. The others are counted together.
 * @written: records that it has acknowledged.
 * @parked_again: records that were parked because it cannot be written.
 * @held_since_ms: since when it fails, by the clock since boot; 0: it does not fail.
 * @name: its name.
 */
struct relay_target {
	RB_ENTRY(relay_target) node;
	LIST_ENTRY(relay_target) unused;
	bool is_unused;
	uint64_t nr;
	uint64_t nr_sending;
	bool invalid;
	bool failing;
	struct relay_entries held;
	uint64_t nr_held;
	struct relay_waker probe;
	uint64_t backoff_ms;
	uint64_t logged_ms;
	bool labelled;
	uint64_t written;
	uint64_t parked_again;
	uint64_t held_since_ms;
	char name[RELAY_TOPIC_MAX + 1];
};

/* Targets that are labelled. */
#define RELAY_LABELS_MAX	100

RB_HEAD(relay_targets, relay_target);
LIST_HEAD(relay_unused, relay_target);

/**
 * struct relay_stats - counters for metrics
 * @sent: records that were written and acknowledged, by action.
 * @send_errors: writes that failed; the record is tried again or refused.
 * @maybe_twice: those of them that the broker may have written all the same.
 * @repeated: records that were read again, and skipped.
 * @done_before: records that another relay had done, and were skipped.
 * @rebalances: how often partitions were assigned or revoked.
 * @commit_errors: commits that failed.
 * @standstills: how often the process stood still so long that it may have lost its partitions.
 * @written_other: @written of targets that are not labelled, and were freed.
 * @cancelled: records that were taken back, and not delivered.
 * @cancelled_late: requests to take a record back that came too late to be sure of it.
 * @cancels: ids that are known to be taken back, at the moment.
 * @parked_again: records that were parked because their target cannot be written.
 * @parked_again_other: as @written_other.
 * @gave_way: near records that were parked because memory is short.
 * @turns: transactions that were committed.
 * @turns_aborted: transactions that were aborted.
 * @map_pieces: pieces of the map of done offsets, of the assigned partitions, at the moment.
 * @map_bytes: the memory that they take.
 * @late: from the due time of a record until its target acknowledged it.
 */
struct relay_stats {
	uint64_t sent[RELAY_ACTIONS];
	uint64_t send_errors;
	uint64_t maybe_twice;
	uint64_t repeated;
	uint64_t done_before;
	uint64_t rebalances;
	uint64_t commit_errors;
	uint64_t standstills;
	uint64_t written_other;
	uint64_t cancelled;
	uint64_t cancelled_late;
	uint64_t cancels;
	uint64_t parked_again;
	uint64_t parked_again_other;
	uint64_t gave_way;
	uint64_t turns;
	uint64_t turns_aborted;
	uint64_t map_pieces;
	uint64_t map_bytes;
	struct histogram late;
};

/**
 * struct relay_handlers - functions of higher files that lower files call; set by the loop
 * @done: for send.c: an entry was written and acknowledged (relay_partition_done()).
 * @reconsider: for send.c: decide again (relay_partition_reconsider()).
 * @ask: for doubt.c: ask the group whether the partitions are ours (relay_commit_ask()).
 */
struct relay_handlers {
	void (*done)(struct relay *relay, struct relay_entry *entry);
	bool (*reconsider)(struct relay *relay, struct relay_entry *entry);
	bool (*ask)(struct relay *relay);
};

struct relay {
	struct relay_handlers handlers;
	struct relay_options options;
	struct relay_rules rules;
	struct relay_pressure pressure;
	/* The kinds of partitions that have PAUSE_MEMORY set: a copy of pressure.paused. */
	bool memory_pauses[RELAY_KINDS];
	struct relay_stats stats;

	struct alarms *alarms;

	rd_kafka_t *consumer;
	rd_kafka_t *producer;
	/* The checks of topics, see settings.c; NULL: before they begin. */
	struct relay_checks *settings;
	/* The consumer's queue; for each client, an eventfd that tells of records in its queue. */
	rd_kafka_queue_t *reader;
	int reader_fd;
	int sender_fd;
	/* Partitions are being revoked: nothing is given to the producer. */
	bool revoking;
	/* A fatal error: the loop ends after this turn, with @status. */
	bool ending;
	int status;

	struct relay_partitions partitions;
	uint64_t nr_partitions;
	struct relay_targets targets;
	struct relay_unused unused;
	/* How many targets are labelled. */
	unsigned int nr_labels;
	/* Entries that wait until the producer has room. */
	struct relay_entries blocked;
	/* All entries, and those of them that are near and those that librdkafka has. */
	uint64_t nr_entries;
	uint64_t nr_near;
	uint64_t nr_sending;
	/* Records that were done here, in all partitions that were ever assigned. */
	uint64_t nr_done;
	uint64_t started_ms;
	/* Commits in flight, and when their round started, by the clock since boot. */
	unsigned int nr_commits;
	uint64_t commits_started_ms;
	/* Since when commits fail (0: they do not), and when that was last logged. */
	uint64_t commits_fail_ms;
	uint64_t commits_logged_ms;
	/* When the last turn of the loop started, and session.timeout.ms of the group. */
	uint64_t turn_ms;
	uint64_t session_ms;
	/*
	 * @doubt: after a standstill it is unknown whether our partitions are still ours, since
	 * @doubt_started_ms. @doubt_over: they are. @doubt_asked: questions without an answer;
	 * the last was asked at @doubt_asked_ms.
	 */
	bool doubt;
	bool doubt_over;
	unsigned int doubt_asked;
	uint64_t doubt_started_ms;
	uint64_t doubt_asked_ms;
	/* Asks for the ends of partitions; NULL: nobody does. */
	struct relay_lag *lag;
	/* When it was last logged that a bucket has too few partitions, by the clock since boot. */
	uint64_t put_off_logged_ms;
	/* Brokers refuse metadata with an offset: commits have no text. */
	bool no_text;
};

static inline uint64_t relay_now_ms(void)
{
	return alarms_now_ns(ALARM_WALL) / NSEC_PER_MSEC;
}

/* The clock since boot, which nobody can set. */
static inline uint64_t relay_boot_ms(void)
{
	return alarms_now_ns(ALARM_BOOT) / NSEC_PER_MSEC;
}

/* End the loop after this turn, with a failure. */
static inline void relay_end(struct relay *relay, int status)
{
	relay->ending = true;
	relay->status = status;
}

#endif /* RELAY_STATE_H */
