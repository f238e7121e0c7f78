/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The structures of the relay.
 *
 * All of them belong to the thread of the loop. librdkafka's own threads reach it only through
 * queues that the loop polls, and the relay's other threads (work.c, turn.c) only by jobs and
 * turns, which belong to them from when they are handed over until they are handed back. So
 * there are no locks here. Callbacks run within relay_group_read() (records, rebalances,
 * answers to commits) and relay_send_poll() (delivery reports), and while the relay leaves the
 * group and closes its clients.
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
#include "relay/clocks.h"
#include "relay/options.h"
#include "relay/rules/pieces.h"
#include "relay/rules/rules.h"
#include "relay/rules/watermark.h"

struct relay;
struct relay_cancels;
struct relay_checker;
struct relay_load;
struct relay_checks;
struct relay_target;
struct relay_turn;
struct relay_work;

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

/* What librdkafka has been given to write: the first member of the structures below. */
enum relay_write {
	WRITE_ENTRY,		/* struct relay_entry */
	WRITE_MAP,		/* struct relay_map_write */
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
 * An entry for a bucket is ENTRY_GATHERED for a moment before it is sent.
 *
 * A near entry that gives way to others, because memory is short, and an entry whose target
 * cannot be written for long, are sent to a bucket. An entry that is to be parked and is held or
 * blocked is decided again before it is sent, and also when it becomes near while it is held:
 * with time, its bucket becomes too wide.
 */
enum relay_entry_state {
	ENTRY_LOOSE,		/* in no list: between two states, or its alarm is set */
	ENTRY_UNDECIDED,	/* in @undecided of its partition: not decided yet */
	ENTRY_NEAR,		/* in @near of the relay, and its alarm is set for when it is due */
	ENTRY_SENDING,		/* librdkafka has it: its memory must stay */
	ENTRY_HELD,		/* in @held of its target, which cannot be written */
	ENTRY_GATHERED,		/* in @gathered of the relay: it is sent together with others */
	ENTRY_BLOCKED,		/* in @blocked or @blocked_own: its producer is full, or no turn */
	ENTRY_DROPPED,		/* in @dropped of the relay: it was taken back */
};

/**
 * struct relay_entry - a record in memory
 * @write: WRITE_ENTRY.
 * @waker: wakes it when it is due, or when it is to be decided again.
 * @partition: its partition; NULL: that was revoked while librdkafka had the entry.
 * @in_partition: in @entries of @partition, in the order of offsets.
 * @in_queue: in the list that @state names.
 * @in_near: in @near of the relay, in state ENTRY_NEAR.
 * @state: its state.
 * @target: the topic that it is written to; NULL until it is sent.
 * @is_own: it is written by @own_producer of the relay.
 * @isolated: the target refused the batch that it was in: it is sent in a batch of its own.
 * @is_put_off: it has waited because its bucket has no partition of its number.
 * @is_alone: held: it is tried alone now.
 * @is_proven: its target has taken it in a transaction that was aborted.
 * @is_written: in a turn: Kafka has acknowledged it, but not the turn.
 * @to_number: in a turn: the partition of its target; negative: it is not known.
 * @stripped: too large for the topic of invalid records, too: only its place (topic, partition
 *	and offset) is written there, without its key, value and headers.
 * @gives_way: it is being parked to make room in memory.
 * @is_parked_again: it is being parked because its target cannot be written.
 * @is_dead: its target is that of dead letters.
 * @error: in a turn: why it could not be written.
 * @decision: what is to be done with it.
 * @offset: its offset.
 * @timestamp_ms: its timestamp; negative: it has none.
 * @epoch: the leader epoch of its record; negative: unknown.
 * @size: the memory that it takes, in bytes.
 * @key_len: length of @key; negative if the key is null.
 * @value_len: length of @value; negative if the value is null.
 * @nr_headers: the number of headers in @data.
 * @key: its key, in @data.
 * @value: its value, in @data.
 * @data: headers, key and value, see entry.c.
 */
struct relay_entry {
	enum relay_write write;
	struct relay_waker waker;
	struct relay_partition *partition;
	TAILQ_ENTRY(relay_entry) in_partition;
	TAILQ_ENTRY(relay_entry) in_queue;
	RB_ENTRY(relay_entry) in_near;
	enum relay_entry_state state;
	struct relay_target *target;
	bool is_own;
	bool isolated;
	bool is_put_off;
	bool is_alone;
	bool is_proven;
	bool is_written;
	int32_t to_number;
	bool stripped;
	bool gives_way;
	bool is_parked_again;
	bool is_dead;
	rd_kafka_resp_err_t error;
	struct relay_decision decision;
	int64_t offset;
	int64_t timestamp_ms;
	int32_t epoch;
	size_t size;
	int32_t key_len;
	int32_t value_len;
	uint32_t nr_headers;
	char *key;
	char *value;
	char data[];
};

TAILQ_HEAD(relay_entries, relay_entry);
RB_HEAD(relay_near, relay_entry);

/* The reasons for which a partition is paused: bits. */
enum relay_pause {
	PAUSE_HEAD = 1,		/* the head of the bucket is not ready */
	PAUSE_MEMORY = 2,	/* backpressure: memory is short */
	PAUSE_WINDOW = 4,	/* the window above the lowest offset not done is full */
	PAUSE_STOPPED = 8,	/* records are missing: until it is assigned again */
	PAUSE_PUT_OFF = 16,	/* a record waits for a partition of its bucket, or for ids */
};

/*
 * The states of a partition:
 *
 *	           assigned                    loaded
 *	(others') ----------> PARTITION_LOADING ------> PARTITION_READY
 *	    ^                        |                    |        ^
 *	    |                        | revoked            v        | assigned to us in the
 *	    |                        |           PARTITION_SUSPENDED  next generation
 *	    |                        v                    |
 *	    +-------------- (forgotten) <-----------------+ assigned to another relay
 *
 * While it is loading, the group is asked for the committed offset, and the map of done offsets is
 * read. While it is suspended nothing is read or sent, but all is kept: if the group assigns
 * the partition to this relay in the very next generation, no other relay can have had it in
 * between, and it goes on at once.
 */
enum relay_partition_state {
	PARTITION_LOADING,
	PARTITION_READY,
	PARTITION_SUSPENDED,
};

/**
 * struct relay_range - a range of offsets for which the map may get a piece of ours
 * @node: in @ranges of the partition, by @begin.
 * @begin: the first offset of the range.
 * @newest_ms: the newest timestamp of the records in it that are done; negative: none.
 * @epoch: the latest leader epoch of them; negative: unknown.
 * @dirty: a record of it was done since the piece was written, or that failed.
 * @written: the map may have a piece with our generation.
 */
struct relay_range {
	RB_ENTRY(relay_range) node;
	int64_t begin;
	int64_t newest_ms;
	int32_t epoch;
	bool dirty;
	bool written;
};

RB_HEAD(relay_ranges, relay_range);

/**
 * struct relay_partition - a partition that is assigned to this relay
 * @node: in @partitions of the relay.
 * @topic: the name of its topic.
 * @number: its number.
 * @serial: differs between all partitions that were ever assigned: an answer for an earlier
 *	assignment is so recognised.
 * @kind: whether the topic is a bucket.
 * @width_ms: the width of the bucket; 0 if the topic is not a bucket.
 * @state: its state.
 * @loaded: it is loading, and waits only for the ids that were taken back.
 * @is_void: what is known of it is not about the records that it has now: it is not committed.
 * @generation: see piece_generation().
 * @mark: which offsets are done.
 * @mark_bytes: the memory that @mark, @ranges and @before take.
 * @next: the offset of the next record that is expected from Kafka.
 * @end: the end of the partition when it was last asked for, see lag.c.
 * @at_end: the value of @next with which the end of the partition was reached.
 * @log_end: that end; between the two are only ends of transactions.
 * @committed: the committed offset; RD_KAFKA_OFFSET_INVALID if there is none.
 * @commit_ms: when it was last committed, by the clock since boot.
 * @dirty: a record was done since the last commit, or that commit failed.
 * @done_at_assign: @nr_done of the relay when the partition was assigned. The counts below
 *	start with this value: no value of an earlier assignment is higher, which lets a late
 *	answer from an earlier assignment be ignored.
 * @done: increases with each record of the partition that is done here.
 * @done_committed: value of @done covered by both acknowledged commits and pieces of the map:
 *	the records counted since may come twice.
 * @commit_done: value of @done covered by the last acknowledged commit.
 * @before: what other relays have written of the map, as it was read when the partition was
 *	assigned.
 * @use_low: the group had no committed offset: the map's low offset counts.
 * @ranges: what the map gets from us.
 * @nr_ranges: how many there are.
 * @newest_ms: the newest timestamp of all records that are done; negative: none.
 * @epoch: the latest leader epoch of them; negative: unknown.
 * @last_epoch: the leader epoch of the last record that was read; negative: unknown.
 * @low_written: the low offset that the map was last given; negative: none.
 * @low_mapped: the highest one that is acknowledged; negative: none.
 * @map_writes: writes to the map that are not acknowledged yet.
 * @map_failed: one of them has failed.
 * @map_done: value of @done when they were written.
 * @done_mapped: value of @done covered by acknowledged pieces.
 * @entries: all entries of the partition.
 * @undecided: those of them that are not decided yet.
 * @undecided_bytes: the memory that @undecided takes.
 * @head: wakes when the first of @undecided is ready.
 * @reread_offset: the offset of the head, if it was freed and is to be read from Kafka again
 *	when it is ready; otherwise negative.
 * @reread_timestamp_ms: the timestamp of that record.
 * @pauses: bits of enum relay_pause.
 * @is_paused: librdkafka was told to pause the partition.
 * @nr_sending: its entries in state ENTRY_SENDING.
 * @nr_put_off: its entries that wait for a partition of a bucket.
 * @in_turn: the turn that is being put together has some of its records.
 */
struct relay_partition {
	RB_ENTRY(relay_partition) node;
	char *topic;
	int32_t number;
	uint64_t serial;
	enum relay_kind kind;
	uint64_t width_ms;
	enum relay_partition_state state;
	bool loaded;
	bool is_void;
	int64_t generation;
	struct watermark mark;
	size_t mark_bytes;
	int64_t next;
	int64_t end;
	int64_t at_end;
	int64_t log_end;
	int64_t committed;
	uint64_t commit_ms;
	bool dirty;
	uint64_t done_at_assign;
	uint64_t done;
	uint64_t done_committed;
	uint64_t commit_done;
	struct done_map before;
	bool use_low;
	struct relay_ranges ranges;
	uint64_t nr_ranges;
	int64_t newest_ms;
	int32_t epoch;
	int32_t last_epoch;
	int64_t low_written;
	int64_t low_mapped;
	unsigned int map_writes;
	bool map_failed;
	uint64_t map_done;
	uint64_t done_mapped;
	struct relay_entries entries;
	struct relay_entries undecided;
	size_t undecided_bytes;
	struct relay_waker head;
	int64_t reread_offset;
	int64_t reread_timestamp_ms;
	unsigned int pauses;
	bool is_paused;
	uint64_t nr_sending;
	uint64_t nr_put_off;
	bool in_turn;
};

RB_HEAD(relay_partitions, relay_partition);

/**
 * struct relay_map_write - a record for the map or for the topic of cancelled ids
 * @write: WRITE_MAP.
 * @link: in a list of the relay or of a turn.
 * @serial: of the partition that it is about; 0: none.
 * @topic: the topic that is written.
 * @number: the number of the partition that is written, and of the one that it is about.
 * @about: the topic of the partition that it is about, for looking that up.
 * @begin: the first offset of the range, or PIECE_LOW.
 * @low: the low offset, if it is one; else negative.
 * @is_tombstone: the key is to be deleted.
 * @is_counted: it is one of @map_writes of its partition.
 * @error: in a turn: why it could not be written.
 * @key_len: the length of @key.
 * @value_len: the length of @value.
 * @key: the key.
 * @value: the value.
 */
struct relay_map_write {
	enum relay_write write;
	TAILQ_ENTRY(relay_map_write) link;
	uint64_t serial;
	char topic[RELAY_TOPIC_MAX + 1];
	int32_t number;
	char about[RELAY_TOPIC_MAX + 1];
	int64_t begin;
	int64_t low;
	bool is_tombstone;
	bool is_counted;
	rd_kafka_resp_err_t error;
	size_t key_len;
	size_t value_len;
	char *key;
	unsigned char value[];
};

TAILQ_HEAD(relay_map_writes, relay_map_write);

/**
 * struct relay_target - a topic that is written to
 * @node: in @targets of the relay.
 * @unused: in @unused of the relay, if @nr is 0: freed when no caller may still use it.
 * @is_unused: it is in that list.
 * @nr: entries that have it as their target.
 * @nr_sending: those of them in state ENTRY_SENDING.
 * @is_own: it is a topic of the relay's own: a bucket, or that of invalid records.
 * @invalid: brokers have refused its name as not valid for a topic. From then on librdkafka
 *	reports a topic that it does not know: so the target is kept, to translate that error.
 * @checking: work.c finds out whether the topic exists, or whether it can be written.
 * @checked: it exists.
 * @failing: it cannot be written: its entries are in @held, and one at a time is tried.
 * @failing_ms: since when, by the clock since boot.
 * @lasting: the reason is not one that passes by itself: the topic is missing, or the relay may
 *	not write it.
 * @error: the reason.
 * @held: entries that wait because the target fails, or because it has enough in flight.
 * @nr_held: the number of entries in @held.
 * @probe: wakes when the next entry is tried, or when held entries have waited long enough.
 * @try_ms: when the next entry is tried, by the clock since boot.
 * @is_tried: one was tried since the last failure.
 * @suspect: it may be the reason why a turn was aborted: it is tried alone.
 * @lacks_from: a bucket: it has no partition of this number, nor any above it;
 * @lacks_ms: until then of the clock since boot, this is not tried again.
 * @delicate_ms: until then of the clock since boot, its records are tried alone.
 * @seeks_large: that is because of the size of one of them: the largest is tried first.
 * @refused_bytes: the size of a record that it has refused for that: such records, and larger ones,
 *	are always tried alone; 0: none.
 * @failed_number: its partition that failed last, in a turn, which is tried; negative: any.
 * @backoff_ms: the time between two tries.
 * @logged_ms: when the failure was last logged, by the clock since boot.
 * @labelled: its counters have a label of their own on the page of metrics: it is kept while the
 *	relay runs. The others are counted together.
 * @written: records that it has acknowledged.
 * @parked_again: records that were parked because it cannot be written.
 * @name: its name.
 */
struct relay_target {
	RB_ENTRY(relay_target) node;
	LIST_ENTRY(relay_target) unused;
	bool is_unused;
	uint64_t nr;
	uint64_t nr_sending;
	bool is_own;
	bool invalid;
	bool checking;
	bool checked;
	bool failing;
	uint64_t failing_ms;
	bool lasting;
	rd_kafka_resp_err_t error;
	struct relay_entries held;
	uint64_t nr_held;
	struct relay_waker probe;
	uint64_t try_ms;
	bool is_tried;
	bool suspect;
	int32_t lacks_from;
	uint64_t lacks_ms;
	int32_t failed_number;
	uint64_t delicate_ms;
	bool seeks_large;
	size_t refused_bytes;
	uint64_t backoff_ms;
	uint64_t logged_ms;
	bool labelled;
	uint64_t written;
	uint64_t parked_again;
	char name[RELAY_TOPIC_MAX + 1];
};

/* Targets that are labelled. */
#define RELAY_LABELS_MAX	100

RB_HEAD(relay_targets, relay_target);
LIST_HEAD(relay_unused, relay_target);
LIST_HEAD(relay_loads, relay_load);

/**
 * struct relay_stats - counters for metrics
 * @sent: records that were written and acknowledged, by action.
 * @send_errors: writes that failed; the record is tried again or refused.
 * @maybe_twice: those of them that the broker may have written all the same, and writes that
 *	succeeded and may have been made twice.
 * @repeated: records that were read again, and skipped.
 * @done_before: records that another relay had done, and were skipped.
 * @rebalances: how often partitions were assigned or revoked.
 * @kept: partitions that were revoked and assigned to us again at once, and not read again.
 * @commit_errors: commits that failed.
 * @standstills: how often the process stood still so long that it may have lost its partitions.
 * @gave_way: near records that were parked because memory was short.
 * @parked_again: records that were parked because their target could not be written.
 * @cancelled: records that were taken back.
 * @cancelled_late: records that take back another one less than 5 s before it is due.
 * @written_other: @written of targets that are not labelled, and were freed.
 * @parked_again_other: as @written_other.
 * @turns: transactions that were committed.
 * @turns_aborted: transactions that were aborted, or whose end is unknown.
 * @late: from the due time of a record until its target acknowledged it.
 */
struct relay_stats {
	uint64_t sent[RELAY_ACTIONS];
	uint64_t send_errors;
	uint64_t maybe_twice;
	uint64_t repeated;
	uint64_t done_before;
	uint64_t rebalances;
	uint64_t kept;
	uint64_t commit_errors;
	uint64_t standstills;
	uint64_t gave_way;
	uint64_t parked_again;
	uint64_t cancelled;
	uint64_t cancelled_late;
	uint64_t turns;
	uint64_t turns_aborted;
	uint64_t written_other;
	uint64_t parked_again_other;
	struct histogram late;
};

/**
 * struct relay_handlers - functions of higher files that lower files call; set by the loop
 * @done: for send.c: an entry was written and acknowledged (relay_partition_done()).
 * @reconsider: for send.c: decide again (relay_partition_reconsider()).
 * @drop: for send.c: an entry is done without being written (relay_partition_drop()).
 * @put_off: for send.c: an entry waits for a partition of a bucket (relay_partition_put_off()).
 * @ask: for doubt.c: ask the group whether the partitions are ours (relay_commit_ask()).
 * @map_report: for send.c: a write to the map was acknowledged, or failed (relay_map_report()).
 */
struct relay_handlers {
	void (*done)(struct relay *relay, struct relay_entry *entry);
	bool (*reconsider)(struct relay *relay, struct relay_entry *entry);
	void (*drop)(struct relay *relay, struct relay_entry *entry);
	void (*put_off)(struct relay *relay, struct relay_entry *entry);
	bool (*ask)(struct relay *relay);
	void (*map_report)(struct relay *relay, struct relay_map_write *write,
			   rd_kafka_resp_err_t error);
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
	struct relay_work *work;
	struct relay_loads loads;
	struct relay_cancels *cancels;

	/*
	 * The member of the group; the client that reads the map and the cancelled ids; the one
	 * that writes to targets, which with exactly once only asks: turn.c writes then; and, at
	 * least once, the one that writes to the relay's own topics. Brokers do what comes on a
	 * connection one after the other, and each write waits for the other replicas: what is
	 * due would be behind what only moves.
	 */
	rd_kafka_t *consumer;
	rd_kafka_t *follower;
	rd_kafka_t *producer;
	rd_kafka_t *own_producer;
	/* The checks of topics, see settings.c; NULL: before they begin. */
	struct relay_checks *settings;
	/* The consumer's queue; eventfds that tell of its records, and of producers' reports. */
	rd_kafka_queue_t *reader;
	int reader_fd;
	int sender_fd;
	/*
	 * Nothing is given to the producer: partitions are being revoked, or the group has not
	 * assigned any since.
	 */
	bool revoking;
	/* A fatal error: the loop ends after this turn, with @status. */
	bool ending;
	int status;

	struct relay_partitions partitions;
	uint64_t nr_partitions;
	/* The serial number of the last partition that was assigned. */
	uint64_t serial;
	/* The generation in which partitions were suspended; negative: they are not. */
	int32_t suspended;
	/* Some records may come twice, although the relay ended in order. */
	bool unclean;
	/* Partitions were loaded that librdkafka has not been told to read. */
	bool assign_again;
	/* When it was last told what to read, by the clock since boot. */
	uint64_t applied_ms;
	struct relay_targets targets;
	uint64_t nr_targets;
	struct relay_unused unused;
	/* How many targets are labelled. */
	unsigned int nr_labels;
	/* Entries that wait until the producer has room, or for a turn; those of @own_producer. */
	struct relay_entries blocked;
	struct relay_entries blocked_own;
	/* Those that are gathered, and when and which of them are sent next: see send.c. */
	struct relay_entries gathered;
	unsigned int nr_gathered;
	size_t gathered_bytes;
	uint64_t gather_ms;
	unsigned int gather_slice;
	bool is_sending_blocked;
	/* Entries that were taken back, and are freed soon. */
	struct relay_entries dropped;
	/* Entries that wait to be due, the first one first. */
	struct relay_near near;
	/* All entries, and those of them that are near and those that librdkafka has. */
	uint64_t nr_entries;
	uint64_t nr_near;
	uint64_t nr_sending;
	/* Reports of entries that librdkafka has given. */
	uint64_t nr_reports;
	/*
	 * When @producer and @own_producer last started a new epoch, see send.c; 0: never. A
	 * record is sent again after @again_ms at the earliest.
	 */
	uint64_t epoch_ms[2];
	uint64_t again_ms;
	/* The memory of entries that give way and are not done yet. */
	uint64_t leaving_bytes;
	/* Tombstones and other writes to the map that wait for the next tick or turn. */
	struct relay_map_writes map_queue;
	/* Writes to the map that librdkafka has. */
	unsigned int map_writes;
	/* What the last reports of the map have failed with, and when that was logged. */
	uint64_t map_logged_ms;
	/* Exactly once: what writes; NULL: at least once. */
	struct relay_turn *turn;
	struct relay_checker *checker;
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
	/* The same of memory that is short. */
	uint64_t memory_logged_ms;
	struct relay_clocks clocks;
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
