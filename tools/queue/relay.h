/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The relay: what its files share.
 *
 *	relay.c			opening, the loop, closing
 *	relay_client.c		clients of Kafka: their settings, log and errors
 *	relay_topics.c		topics are made, and looked at
 *	relay_settings.c	their settings are looked at
 *	relay_group.c		partitions come and go: rebalances
 *	relay_partition.c	records of a partition: read, decided, done; pauses
 *	relay_entry.c		records in memory
 *	relay_send.c		producing, delivery reports, targets that cannot be written
 *	relay_commit.c		commits
 *	relay_doubt.c		whether partitions are ours yet, after a standstill
 *	relay_wake.c		alarms
 *	relay_page.c		metrics
 *	relay_lag.c		of these, what was not read
 *	relay_rules.c		what is to be done with a record: pure
 *	relay_watermark.c	which offsets are done: pure
 *	relay_runs.c		the same as text, for whoever is next: pure
 *
 * All belongs to one thread. librdkafka's own threads reach it only through queues, which
 * the loop polls: there are no locks. Callbacks run within relay_group_read() (records,
 * rebalances, answers to commits) and relay_send_poll() (delivery reports), and when the
 * relay leaves the group and closes its clients.
 */
#ifndef TWHEELQ_RELAY_H
#define TWHEELQ_RELAY_H

#include <librdkafka/rdkafka.h>
#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "alarm.h"
#include "clock.h"
#include "histogram.h"
#include "relay_options.h"
#include "relay_rules.h"
#include "relay_runs.h"
#include "relay_watermark.h"

struct relay;
struct relay_target;

/**
 * struct relay_waker - something that is called at a time
 * @alarm: private.
 * @wake: called at @time_ms of @clock or later; then it is idle.
 * @refused: the device had no room; it is tried again.
 * @entry: then, in the list of those.
 */
struct relay_waker {
	struct alarm alarm;
	void (*wake)(struct relay *relay, struct relay_waker *waker);
	enum alarm_clock clock;
	uint64_t time_ms;
	bool refused;
	TAILQ_ENTRY(relay_waker) entry;
};

TAILQ_HEAD(relay_wakers, relay_waker);

/*
 * Where an entry is. It is made when a record is read, and freed when it is done or when
 * its partition goes:
 *
 *	        read              near                  due
 *	(Kafka) ----> ENTRY_AHEAD ----> ENTRY_NEAR -----------------+
 *	                   |                                        v
 *	                   +-------- to be sent at once ------> ENTRY_SENDING ---> done
 *	                                                        ^   |     |
 *	                       there is room, or the target     |   |     | no room at the
 *	                       can be written again             |   |     | producer
 *	                                                        |   v     v
 *	                                                  ENTRY_HELD, ENTRY_BLOCKED
 *
 * One that is to be parked and is held or blocked is decided again before it is sent, and
 * when it is near while it is held: a bucket that is right now is too wide later.
 */
enum relay_entry_state {
	ENTRY_LOOSE,	/* in no list: on its way to one, or its alarm puts it there */
	ENTRY_AHEAD,	/* in @ahead of its partition: not decided yet */
	ENTRY_NEAR,	/* its alarm is set */
	ENTRY_SENDING,	/* librdkafka has it: its memory must stay */
	ENTRY_HELD,	/* in @held of its target, which cannot be written */
	ENTRY_BLOCKED,	/* in @blocked of the relay */
};

/**
 * struct relay_entry - a record in memory
 * @waker: for when it is due.
 * @partition: whose it is; NULL: the partition has gone, and librdkafka has it still.
 * @in_partition: in @entries of that, in the order of offsets.
 * @in_queue: in the list that @state says.
 * @state: where it is.
 * @target: where it goes, from when it is sent.
 * @alone: its target refused the batch that it was in: it is sent without others.
 * @bare: the invalid ones do not take it either: they get where it is, and nothing of it.
 * @decision: what is done with it.
 * @offset: its own.
 * @timestamp_ms: its own; negative: it has none.
 * @size: bytes that it takes.
 * @key_len: negative where the key is null; the same of the value.
 * @nr_headers: how many follow.
 * @data: headers, key and value, see relay_entry.c.
 */
struct relay_entry {
	struct relay_waker waker;
	struct relay_partition *partition;
	TAILQ_ENTRY(relay_entry) in_partition;
	TAILQ_ENTRY(relay_entry) in_queue;
	enum relay_entry_state state;
	struct relay_target *target;
	bool alone;
	bool bare;
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

/* Why a partition is not read: bits. */
enum relay_pause {
	PAUSE_HEAD = 1,		/* its head is not ready */
	PAUSE_MEMORY = 2,	/* there is too much in memory */
	PAUSE_WINDOW = 4,	/* too much was read above the lowest offset not done */
	PAUSE_STOPPED = 8,	/* records are gone: until it is assigned anew */
};

/**
 * struct relay_partition - one that is assigned to this relay
 * @node: in the tree of those.
 * @topic: of which topic.
 * @number: which.
 * @kind: a bucket's, or not; @width_ms is 0 if it is not.
 * @begun: @mark and @next are known: they are not until the first record is read, where
 *	nothing was ever committed.
 * @mark: which offsets are done.
 * @mark_bytes: what that takes in memory.
 * @next: what Kafka gives next.
 * @end: where it ended when somebody asked, see relay_lag.c.
 * @committed: what is committed, RD_KAFKA_OFFSET_INVALID if nothing is.
 * @dirty: something was done that is not committed.
 * @commit_ms: it is committed again at this time, of the clock since boot, or later.
 * @done_at_first: @nr_done of the relay when it was assigned. The two that follow begin
 *	there, so that a late answer to a commit of the time before tells nothing.
 * @done: goes up with each record of it that was done here.
 * @told: what @done was when that was committed which Kafka has; less those of them that
 *	the commit had no room for.
 * @done_before: what of it was done when it was assigned; its text is @done_text.
 * @entries: all that is in memory.
 * @ahead: of these, those not decided; they take @ahead_bytes.
 * @head: wakes when the first of @ahead is ready.
 * @awaited: the offset of that, if it was put back into Kafka, so to speak, to be read again
 *	then; negative: it was not. Its timestamp is @awaited_timestamp_ms.
 * @nr_seeks: how often Kafka was asked for it.
 * @pauses: bits of enum relay_pause.
 * @is_paused: librdkafka was told to pause it.
 * @nr_sending: entries that librdkafka has.
 */
struct relay_partition {
	RB_ENTRY(relay_partition) node;
	char *topic;
	int32_t number;
	enum relay_kind kind;
	uint64_t width_ms;
	bool begun;
	struct watermark mark;
	size_t mark_bytes;
	int64_t next;
	int64_t end;
	int64_t committed;
	bool dirty;
	uint64_t commit_ms;
	uint64_t done_at_first;
	uint64_t done;
	uint64_t told;
	struct runs done_before;
	char *done_text;
	struct relay_entries entries;
	struct relay_entries ahead;
	size_t ahead_bytes;
	struct relay_waker head;
	int64_t awaited;
	int64_t awaited_timestamp_ms;
	unsigned int nr_seeks;
	unsigned int pauses;
	bool is_paused;
	uint64_t nr_sending;
};

RB_HEAD(relay_partitions, relay_partition);

/**
 * struct relay_target - a topic that is written to
 * @node: in the tree of those.
 * @unused: it has none, and goes when nobody may be in the middle of it.
 * @is_unused: it is in that list.
 * @nr: entries that have it as their target.
 * @nr_sending: of these, those that librdkafka has.
 * @invalid: brokers have said that it is no name for a topic. librdkafka knows no topic of
 *	that name from then on: so the target is remembered, too.
 * @failing: it cannot be written: entries for it are in @held, and one at a time is tried.
 *	There are some, too, when it has enough in flight.
 * @held: these.
 * @nr_held: how many.
 * @probe: wakes when the next is tried.
 * @backoff_ms: how long until then.
 * @said_ms: when it was last said that it cannot be written, by the clock since boot.
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
	uint64_t said_ms;
	char name[RELAY_TOPIC_MAX + 1];
};

RB_HEAD(relay_targets, relay_target);
LIST_HEAD(relay_unused, relay_target);

/**
 * struct relay_stats - for metrics
 * @sent: records that were written, by what was done with them.
 * @send_errors: that failed, and are tried again or given up.
 * @maybe_twice: of these, those that may have been written all the same.
 * @repeated: records that came again from Kafka and were passed over.
 * @done_before: records that another relay had done, and were passed over.
 * @rebalances: partitions were assigned or revoked.
 * @commit_errors: commits that failed.
 * @standstills: times that nothing ran for so long that it was asked who has its partitions.
 * @late: how late records were written to their targets, the delivery report included.
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
	struct histogram late;
};

struct relay {
	struct relay_options options;
	struct relay_rules rules;
	struct relay_pressure pressure;
	/* What of it partitions were told. */
	bool pressed[RELAY_KINDS];
	struct relay_stats stats;

	struct alarms *alarms;
	struct relay_wakers refused;
	uint64_t nr_refused;

	rd_kafka_t *consumer;
	rd_kafka_t *producer;
	/* Where the answer about settings comes; NULL: it is not waited for. */
	rd_kafka_queue_t *settings;
	/* The consumer's queue, and an eventfd for each client. */
	rd_kafka_queue_t *reader;
	int reader_fd;
	int sender_fd;
	/* Partitions are being taken from us: nothing is given to the producer. */
	bool stopped;
	/* A fatal error of a client: end. */
	bool over;
	int status;

	struct relay_partitions partitions;
	uint64_t nr_partitions;
	struct relay_targets targets;
	struct relay_unused unused;
	/* What goes to the producer again when that has room, and how much it has now. */
	struct relay_entries blocked;
	uint64_t nr_entries;
	uint64_t nr_near;
	uint64_t nr_sending;
	/* Records that were done here, of all partitions that it ever had. */
	uint64_t nr_done;
	uint64_t started_ms;
	/* Commits that have no answer yet, and when they began, of the clock since boot. */
	unsigned int nr_commits;
	uint64_t commits_begun_ms;
	/* Since when they fail, and when that was said; 0: they do not. */
	uint64_t commits_fail_ms;
	uint64_t commits_said_ms;
	/* When a turn of the loop began, and for how long the group waits for a word of ours. */
	uint64_t turned_ms;
	uint64_t session_ms;
	/*
	 * Whether partitions are ours is not known, and since when; it is known now; how many
	 * times it was asked without an answer, and when that was last.
	 */
	bool doubt;
	bool doubt_over;
	unsigned int doubt_asked;
	uint64_t doubt_begun_ms;
	uint64_t doubt_asked_ms;
	uint64_t lag_asked_ms;
	/* When it was said that a bucket has too few partitions, by the clock since boot. */
	uint64_t put_off_said_ms;
	/* Brokers take no text with an offset. */
	bool no_text;
};

static inline uint64_t relay_now_ms(void)
{
	return alarms_now_ns(ALARM_WALL) / NSEC_PER_MSEC;
}

/* Of the clock since boot, which nobody sets. */
static inline uint64_t relay_boot_ms(void)
{
	return alarms_now_ns(ALARM_BOOT) / NSEC_PER_MSEC;
}

/* End as soon as may be, with a failure. */
static inline void relay_end(struct relay *relay, int status)
{
	relay->over = true;
	relay->status = status;
}

/* --- relay_wake.c --------------------------------------------------------------------- */

/* Call @waker->wake at a time of the wall clock, once; or not at all. */
void relay_wake_at(struct relay *relay, struct relay_waker *waker, uint64_t time_ms);
/* The same after some time, whatever becomes of the wall clock. */
void relay_wake_in(struct relay *relay, struct relay_waker *waker, uint64_t ms);
void relay_wake_never(struct relay *relay, struct relay_waker *waker);

/* Will it be called? */
bool relay_wake_pending(const struct relay_waker *waker);

/* Wake those whose time has come, as many as fit a turn. Returns whether there may be more. */
bool relay_wake_due(struct relay *relay);

/* Before the loop sleeps. */
void relay_wake_flush(struct relay *relay);

/* Try again what the device had no room for: once a second. */
void relay_wake_refused(struct relay *relay);

/* --- relay_client.c ------------------------------------------------------------------- */

/* Make consumer and producer; says what is wrong, and returns an exit status. */
int relay_client_open(struct relay *relay);
void relay_client_close(struct relay *relay);

/* --- relay_topics.c ------------------------------------------------------------------- */

/* Make what is missing, if that was asked for, and look at what is there; the same. */
int relay_topics_open(struct relay *relay);

/* --- relay_settings.c ----------------------------------------------------------------- */

enum relay_opinion {
	RELAY_RIGHT,
	RELAY_DOUBTFUL,		/* it depends on how much there is */
	RELAY_WRONG,		/* records would be lost */
};

/* What is to be thought of a setting of a topic. */
enum relay_opinion relay_settings_judge(const struct relay_rules *rules, const char *topic,
					const char *name, const char *value);

/* Ask brokers for those of our topics; look at the answer when it is there; or never. */
void relay_settings_ask(struct relay *relay);
void relay_settings_look(struct relay *relay);
void relay_settings_end(struct relay *relay);

/* --- relay_group.c -------------------------------------------------------------------- */

/* Join the group. Returns an exit status. */
int relay_group_join(struct relay *relay);

/* Read records, as many as fit a turn. Returns whether there may be more. */
bool relay_group_read(struct relay *relay);

/* Leave it: what is in flight is waited for and committed. */
void relay_group_leave(struct relay *relay);

/* For librdkafka. */
void relay_group_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t error,
			   rd_kafka_topic_partition_list_t *list, void *context);

/* --- relay_partition.c ---------------------------------------------------------------- */

/* One is assigned: its committed offset is RD_KAFKA_OFFSET_INVALID at the first time. */
void relay_partition_add(struct relay *relay, const rd_kafka_topic_partition_t *assigned);

/* Forget it and all its entries, but those that librdkafka has. */
void relay_partition_forget(struct relay *relay, struct relay_partition *partition);

struct relay_partition *relay_partition_find(struct relay *relay, const char *topic,
					     int32_t number);

/* A record, or an error of its partition, has come. */
void relay_partition_read(struct relay *relay, const rd_kafka_message_t *message);

/*
 * Decide again about an entry that was to be parked, and could not be until now. Returns
 * false if it is to be sent where it was; else that was done with it which is right now.
 */
bool relay_partition_reconsider(struct relay *relay, struct relay_entry *entry);

/* Take an entry out of those that are not decided. */
void relay_partition_take_ahead(struct relay_partition *partition, struct relay_entry *entry);

/* Its entry is done. */
void relay_partition_done(struct relay *relay, struct relay_entry *entry);

/* Pause those that memory lacks for, or let them go on. */
void relay_partition_press(struct relay *relay);
/* The same for those that are new. */
void relay_partition_press_all(struct relay *relay);

int relay_partition_compare(const struct relay_partition *a, const struct relay_partition *b);
RB_PROTOTYPE(relay_partitions, relay_partition, node, relay_partition_compare);

/* --- relay_entry.c -------------------------------------------------------------------- */

/* A copy of a record; NULL: there is no memory. */
struct relay_entry *relay_entry_new(struct relay *relay, const rd_kafka_message_t *message);

/* Free it, wherever it is but at librdkafka. */
void relay_entry_free(struct relay *relay, struct relay_entry *entry);

/* The last of the headers of a name. */
struct relay_text relay_entry_header(const struct relay_entry *entry, const char *name);

/* The headers that it is sent with; NULL: there is no memory. */
rd_kafka_headers_t *relay_entry_headers(const struct relay_entry *entry);

/* --- relay_send.c --------------------------------------------------------------------- */

/* Send an entry, which is in no list, where its decision says. */
void relay_send(struct relay *relay, struct relay_entry *entry);

/* Take it out of where it waits to be sent. */
void relay_send_forget(struct relay *relay, struct relay_entry *entry);

/* Take delivery reports; waits for the first for up to @timeout_ms. */
void relay_send_poll(struct relay *relay, int timeout_ms);

/* For librdkafka. */
void relay_send_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context);

RB_PROTOTYPE(relay_targets, relay_target, node, relay_target_compare);
int relay_target_compare(const struct relay_target *a, const struct relay_target *b);

/* --- relay_commit.c ------------------------------------------------------------------- */

/* Begin to commit what has changed. */
void relay_commit(struct relay *relay);

/* Commit it for some partitions, and wait for that; not for ever. */
void relay_commit_wait(struct relay *relay, const rd_kafka_topic_partition_list_t *list);

/* For librdkafka. */
void relay_commit_report(rd_kafka_t *client, rd_kafka_resp_err_t error,
			 rd_kafka_topic_partition_list_t *list, void *context);

/*
 * Commit one partition, so that the answer, which relay_doubt_answer() gets, tells whether it
 * is ours. Returns whether there will be one.
 */
bool relay_commit_ask(struct relay *relay);

/* --- relay_doubt.c -------------------------------------------------------------------- */

/* When the consumer is there. */
void relay_doubt_init(struct relay *relay);

/*
 * When a turn of the loop begins, right before what waits is sent: did all stand still? Or is
 * that over, so that what came due meanwhile goes before what is read now?
 */
void relay_doubt_look(struct relay *relay);

/* Has it stood still since then? */
bool relay_doubt_stood_still(const struct relay *relay);

/* The group has answered. */
void relay_doubt_answer(struct relay *relay, rd_kafka_resp_err_t error);

/* Our partitions are taken: there is nothing left to doubt. */
void relay_doubt_end(struct relay *relay);

/* --- relay_lag.c ---------------------------------------------------------------------- */

/* Ask where partitions end that are paused, if that was not done a moment ago. */
void relay_lag_ask(struct relay *relay);

/* Records of a partition that are in Kafka and were not read; -1: that is not known yet. */
int64_t relay_lag(struct relay *relay, const struct relay_partition *partition);

/* --- relay_page.c --------------------------------------------------------------------- */

/* For metrics_open(); @context is the relay. */
int relay_page_write(FILE *out, void *context);

#endif /* TWHEELQ_RELAY_H */
