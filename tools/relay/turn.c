// SPDX-License-Identifier: GPL-2.0
/*
 * Exactly once: a turn is a transaction. It has records for targets and buckets, what the map is
 * told of them, and the offset of each partition that they are from. So all of that is there,
 * or none of it:
 *
 *	          loop                 thread of this file                 loop
 *	  take from @blocked;  ---->  produce, send offsets with  ---->  committed: free them
 *	  they count as done:         the group's generation,            aborted: undo that,
 *	  offsets, map                commit, or abort                   hold what failed
 *
 * There is one turn at a time. What becomes due meanwhile is in the next one: so turns become
 * larger by themselves when there is more to do. Two producers do them in turns: a transaction is
 * decided when its commit is answered, but until all of its partitions are told so, brokers refuse
 * the next one of the same producer, and librdkafka tries again after 20 ms. Their ids have
 * coordinators of their own, mostly on two brokers: while one is away, the other producer does
 * all turns.
 *
 * What fences off a relay that is not the owner of its partitions any more: the offsets are sent
 * with the generation of the group, as it was when the turn began, and the coordinator of the
 * group refuses any but the present one. It checks that only if there are offsets: so a turn has
 * the offset of each partition that it touches, changed or not, and without a generation there
 * is no turn. The next owner waits until offsets that were accepted are stable, see load.c.
 *
 * If it is unknown how a transaction ended (a time-out, a broker that is gone), the producer is
 * made anew with the same id: that ends the transaction, one way or the other. Then everything
 * is loaded from Kafka again. It may not be used on: the coordinator could take a request to end
 * the old transaction that comes late for one to end the next.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/param.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/util.h"
#include "relay/client/report.h"
#include "relay/clocks.h"
#include "relay/group.h"
#include "relay/kafka.h"
#include "relay/map.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/state.h"
#include "relay/turn.h"

/* Limits of a turn, and what they become at least if turns take too long. */
#define RECORDS_MAX	50000
#define RECORDS_LEAST	100
#define BYTES_MAX	(64 * 1024 * 1024)
#define MAP_MAX		10000

/* How often partitions are committed of which nothing was written: records that are skipped. */
#define IDLE_MS		1000

/*
 * The next turn begins this long after the last one began, at least. What a turn costs brokers
 * depends on the partitions that it touches more than on their records: with 1,000 records a
 * second to 6 partitions, brokers took 1,448 us a record without this, and 881 to 1,158 us with
 * it, in exchange for records that are 20 ms later (p50).
 */
#define START_MS	50

/* How long the next turn waits after one that failed. */
#define AGAIN_MS	200

/*
 * A producer becomes ready in the background, and is asked again and again whether it is. A turn,
 * or the end of the relay, may have to wait for the answer, which takes INIT_STEP_MS at most. A
 * producer that failed is made anew after MAKE_AGAIN_MS.
 */
#define INIT_STEP_MS	50
#define INIT_PAUSE_MS	200
#define MAKE_AGAIN_MS	1000

/* A producer that has not been ready for so long is logged, and again after the other time. */
#define LACK_MS		10000
#define LACK_AGAIN_MS	60000

/* How often transactions that fail are logged. */
#define FAILURE_AGAIN_MS	10000

/* Limits of calls that wait for brokers. */
#define INIT_MS		10000
#define CALL_MS		15000
#define FLUSH_MS	15000
#define FLUSH_STEP_MS	50

/*
 * How long the offsets wait for the records. Right after a transaction its coordinator refuses
 * all of the producer's next one for some ms. librdkafka sends partitions again after 20 ms, but
 * offsets only after retry.backoff.ms, which is 100: so the records go first. But if one of them
 * is not allowed, librdkafka says so when the offsets are sent, and never reports the records.
 */
#define FIRST_MS	50

/* How long a revoke waits for the turn in flight. */
#define WAIT_MS		20000

enum turn_state {
	TURN_IDLE,	/* the loop may begin a turn */
	TURN_RUNNING,	/* the thread has it */
	TURN_OVER,	/* the loop has to handle its end */
};

enum turn_end {
	TURN_COMMITTED,
	TURN_ABORTED,	/* nothing of it is there */
	TURN_FENCED,	/* the same, because the group has another generation */
	TURN_UNKNOWN,	/* nobody knows, and the producer was made anew */
};

/**
 * struct item - a record of a turn
 * @entry: the entry that it is for.
 * @product: what is written.
 */
struct item {
	struct relay_entry *entry;
	struct relay_product product;
};

/**
 * struct writer - one of the producers; the thread's alone
 * @id: its transactional id.
 * @producer: NULL: it is to be made anew.
 * @is_ready: it can begin transactions.
 * @lack_ms: since when it is not ready, of the clock since boot; 0: it is.
 * @logged_ms: when that was last logged; 0: it was not.
 */
struct writer {
	char id[RELAY_CLIENT_ID_MAX];
	rd_kafka_t *producer;
	bool is_ready;
	uint64_t lack_ms;
	uint64_t logged_ms;
};

/**
 * struct relay_turn - turns, and the thread that carries them out
 * @relay: the relay.
 * @thread: the thread.
 * @has_thread: it was started.
 * @fd: an eventfd that says that a turn is over.
 * @lock: guards @state and @ending.
 * @wake: @state has changed, or @ending was set.
 * @state: who has what follows.
 * @ending: the thread is to end.
 * @writers: the producers, which take turns.
 * @writer: that of the present turn, or of the last one.
 * @make_again: when the thread goes on with producers that are not ready, of CLOCK_MONOTONIC.
 * @items: the records.
 * @nr: how many there are.
 * @limit: how many there may be.
 * @clocks: what reports show of the clocks of brokers.
 * @nr_reports: how many reports have come, of records and of the map.
 * @nr_produced: how many there will be.
 * @has_failed: one of them has failed.
 * @writes: what the map is told.
 * @offsets: the offsets; each has @done of its partition as opaque.
 * @group: the group's metadata.
 * @is_unready: there was no turn, as no producer was ready.
 * @end: how the turn has ended.
 * @error: why, if it was not committed.
 * @what: what failed.
 * @again_ms: the next turn is not before this time of the clock since boot.
 * @is_early: the next turn would have begun, had this time come.
 * @idle_ms: the time of the last turn.
 * @logged_ms: when a failure was last logged.
 */
struct relay_turn {
	struct relay *relay;
	pthread_t thread;
	bool has_thread;
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	enum turn_state state;
	bool ending;
	struct writer writers[2];
	struct writer *writer;
	struct timespec make_again;
	struct item items[RECORDS_MAX];
	size_t nr;
	size_t limit;
	struct clock_difference clocks;
	size_t nr_reports;
	size_t nr_produced;
	bool has_failed;
	struct relay_map_writes writes;
	rd_kafka_topic_partition_list_t *offsets;
	rd_kafka_consumer_group_metadata_t *group;
	bool is_unready;
	enum turn_end end;
	rd_kafka_resp_err_t error;
	char what[256];
	uint64_t again_ms;
	bool is_early;
	uint64_t idle_ms;
	uint64_t logged_ms;
};

/* --- the thread: what librdkafka answers ------------------------------------------------ */

/* A record that was not written because another one had failed is not to blame. */
static bool is_purged(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
		error == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT;
}

/* A report: called by librdkafka in the thread. */
static void on_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context)
{
	enum relay_write *write = message->_private;
	struct relay_turn *turn = context;
	rd_kafka_resp_err_t error = client_report_error(message);

	(void)client;
	clock_difference_reported(&turn->clocks, message);
	turn->nr_reports++;
	if (is_purged(error))
		return;
	turn->has_failed |= error;
	if (*write == WRITE_ENTRY) {
		struct relay_entry *entry = container_of(write, struct relay_entry, write);

		entry->error = error;
		entry->is_written = !error;
		entry->to_number = message->partition;
	} else {
		container_of(write, struct relay_map_write, write)->error = error;
	}
}

/* Note what has failed, and free the error. Returns its code. */
static rd_kafka_resp_err_t note_error(struct relay_turn *turn, const char *what,
				      rd_kafka_error_t *error)
{
	rd_kafka_resp_err_t code = rd_kafka_error_code(error);

	turn->error = code;
	snprintf(turn->what, sizeof(turn->what), "%s: %s", what, rd_kafka_error_string(error));
	rd_kafka_error_destroy(error);
	return code;
}

/* --- the thread: the producer ------------------------------------------------------------ */

static void drop_producer(struct writer *writer)
{
	writer->is_ready = false;
	if (!writer->producer)
		return;
	/* The reports of what it has still must not come later: their memory is freed. */
	rd_kafka_purge(writer->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	rd_kafka_destroy(writer->producer);
	writer->producer = NULL;
}

static void log_lack(struct relay_turn *turn, struct writer *writer)
{
	uint64_t now_ms = relay_boot_ms();

	if (!writer->lack_ms)
		writer->lack_ms = now_ms;
	if (now_ms - writer->lack_ms >= LACK_MS &&
	    log_again(&writer->logged_ms, now_ms, LACK_AGAIN_MS))
		log_say(LOG_WARNING, "%s cannot write: %s", writer->id, turn->what);
}

static void note_ready(struct writer *writer)
{
	if (writer->logged_ms)
		log_say(LOG_NOTICE, "%s can write again", writer->id);
	writer->is_ready = true;
	writer->lack_ms = 0;
	writer->logged_ms = 0;
}

/*
 * Make the producer, if there is none, and see whether it is ready. That ends a transaction of
 * its id that is still open. Returns false if it failed: then waiting does not help.
 */
static bool make_ready(struct relay_turn *turn, struct writer *writer)
{
	rd_kafka_error_t *error;
	bool goes_on;

	if (writer->is_ready)
		return true;
	if (!writer->producer)
		writer->producer = relay_client_transactional(turn->relay, writer->id, on_report,
							      turn);
	if (!writer->producer) {
		turn->error = RD_KAFKA_RESP_ERR__FAIL;
		snprintf(turn->what, sizeof(turn->what), "cannot make a producer");
		return false;
	}
	error = rd_kafka_init_transactions(writer->producer, INIT_STEP_MS);
	if (!error) {
		note_ready(writer);
		return true;
	}
	goes_on = rd_kafka_error_is_retriable(error);
	note_error(turn, "cannot begin with transactions", error);
	log_lack(turn, writer);
	if (!goes_on)
		drop_producer(writer);
	return goes_on;
}

static bool is_ending(struct relay_turn *turn)
{
	bool ending;

	pthread_mutex_lock(&turn->lock);
	ending = turn->ending;
	pthread_mutex_unlock(&turn->lock);
	return ending;
}

/* The one that is not the last turn's, unless only that one is ready. NULL if none is. */
static struct writer *ready_writer(struct relay_turn *turn)
{
	struct writer *other = &turn->writers[turn->writer == turn->writers];

	if (other->is_ready)
		return other;
	return turn->writer->is_ready ? turn->writer : NULL;
}

static struct writer *wait_for_writer(struct relay_turn *turn)
{
	struct writer *writer = ready_writer(turn);
	unsigned int step;

	if (!writer) {
		turn->error = RD_KAFKA_RESP_ERR__TIMED_OUT;
		snprintf(turn->what, sizeof(turn->what), "no producer is ready");
	}
	for (step = 0; !writer && step < INIT_MS / INIT_STEP_MS && !is_ending(turn); step++) {
		if (!make_ready(turn, &turn->writers[step % 2]))
			break;
		writer = ready_writer(turn);
	}
	return writer;
}

/* --- the thread: a turn ------------------------------------------------------------------ */

/* The transaction has failed already: the record has no part in that. */
static bool is_of_turn(const struct relay_turn *turn, rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR__STATE || error == RD_KAFKA_RESP_ERR__FATAL ||
		rd_kafka_fatal_error(turn->writer->producer, NULL, 0);
}

static bool produce(struct relay_turn *turn, const struct relay_product *product,
		    rd_kafka_resp_err_t *error)
{
	struct relay_product copy = *product;

	/* The headers are used up even if it fails, so there is one try that may succeed. */
	*error = relay_produce(turn->writer->producer, &copy);
	turn->nr_produced += !*error;
	if (!*error)
		return true;
	turn->error = *error;
	snprintf(turn->what, sizeof(turn->what), "cannot write %s: %s", product->topic,
		 rd_kafka_err2str(*error));
	if (is_of_turn(turn, *error))
		*error = 0;
	return false;
}

static bool produce_write(struct relay_turn *turn, struct relay_map_write *write)
{
	const struct relay_product product = {
		.topic = write->topic,
		.partition = write->number,
		.key = write->key,
		.key_len = write->key_len,
		.value = write->is_tombstone ? NULL : write->value,
		.value_len = write->value_len,
		.opaque = &write->write,
	};

	return produce(turn, &product, &write->error);
}

static void free_headers(struct relay_turn *turn, size_t from)
{
	for (; from < turn->nr; from++)
		if (turn->items[from].product.headers)
			rd_kafka_headers_destroy(turn->items[from].product.headers);
}

/* If buckets lack partitions, all records that need these are found at once. */
static bool produce_items(struct relay_turn *turn)
{
	bool good = true;
	size_t i;

	for (i = 0; i < turn->nr; i++) {
		if (produce(turn, &turn->items[i].product, &turn->items[i].entry->error))
			continue;
		good = false;
		if (turn->error != RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION) {
			free_headers(turn, i + 1);
			break;
		}
	}
	return good;
}

static bool produce_all(struct relay_turn *turn)
{
	struct relay_map_write *write;

	if (!produce_items(turn))
		return false;
	TAILQ_FOREACH(write, &turn->writes, link)
		if (!produce_write(turn, write))
			return false;
	return true;
}

/* Until all have come, or one has failed: the others may wait for message.timeout.ms then. */
static void wait_for_reports(struct relay_turn *turn)
{
	uint64_t end_ms = relay_boot_ms() + FLUSH_MS;

	while (turn->nr_reports < turn->nr_produced && !turn->has_failed &&
	       relay_boot_ms() < end_ms)
		rd_kafka_flush(turn->writer->producer, FLUSH_STEP_MS);
}

/* Wait for all reports. Returns whether all of them are good. */
static bool flush(struct relay_turn *turn)
{
	struct relay_map_write *write;
	size_t i;

	wait_for_reports(turn);
	for (i = 0; i < turn->nr; i++) {
		if (!turn->items[i].entry->error)
			continue;
		turn->error = turn->items[i].entry->error;
		snprintf(turn->what, sizeof(turn->what), "cannot write %.200s: %s",
			 turn->items[i].product.topic, rd_kafka_err2str(turn->error));
		return false;
	}
	TAILQ_FOREACH(write, &turn->writes, link) {
		if (!write->error)
			continue;
		turn->error = write->error;
		snprintf(turn->what, sizeof(turn->what), "cannot write %.200s: %s", write->topic,
			 rd_kafka_err2str(write->error));
		return false;
	}
	if (turn->nr_reports == turn->nr_produced)
		return true;
	turn->error = RD_KAFKA_RESP_ERR__TIMED_OUT;
	snprintf(turn->what, sizeof(turn->what), "records are not acknowledged");
	return false;
}

static bool is_fence(rd_kafka_resp_err_t error)
{
	switch (error) {
	case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
	case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
	case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
		return true;
	default:
		return false;
	}
}

/* Nothing was committed: abort, so that nothing of the turn is there. */
static enum turn_end abort_turn(struct relay_turn *turn)
{
	bool fenced = is_fence(turn->error);
	rd_kafka_resp_err_t before = turn->error;
	rd_kafka_error_t *error = rd_kafka_abort_transaction(turn->writer->producer, CALL_MS);
	char what[sizeof(turn->what)];

	if (!error && turn->nr_reports == turn->nr_produced)
		return fenced ? TURN_FENCED : TURN_ABORTED;
	/* It was not to be committed, so it is aborted when the next producer begins. */
	memcpy(what, turn->what, sizeof(what));
	if (error)
		note_error(turn, "cannot abort", error);
	memcpy(turn->what, what, sizeof(what));
	turn->error = before;
	drop_producer(turn->writer);
	return fenced ? TURN_FENCED : TURN_ABORTED;
}

/* The offsets may be sent again: the coordinator has answered that it is not ready. */
static bool send_offsets(struct relay_turn *turn)
{
	rd_kafka_error_t *error;
	unsigned int times;

	for (times = 0; ; times++) {
		error = rd_kafka_send_offsets_to_transaction(turn->writer->producer, turn->offsets,
							     turn->group, CALL_MS);
		if (!error)
			return true;
		if (!rd_kafka_error_is_retriable(error) || times == 2)
			break;
		rd_kafka_error_destroy(error);
	}
	note_error(turn, "cannot send the offsets", error);
	return false;
}

static enum turn_end commit_turn(struct relay_turn *turn)
{
	rd_kafka_error_t *error = rd_kafka_commit_transaction(turn->writer->producer, CALL_MS);
	enum turn_end end;
	bool abortable;

	if (!error)
		return TURN_COMMITTED;
	abortable = rd_kafka_error_txn_requires_abort(error);
	note_error(turn, "cannot commit", error);
	if (abortable) {
		end = abort_turn(turn);
		/* librdkafka says so also if the commit may have succeeded: then no abort does. */
		return turn->writer->producer ? end : TURN_UNKNOWN;
	}
	drop_producer(turn->writer);
	return TURN_UNKNOWN;
}

static enum turn_end run_turn(struct relay_turn *turn)
{
	struct writer *writer;
	rd_kafka_error_t *error;

	turn->nr_reports = 0;
	turn->nr_produced = 0;
	turn->has_failed = false;
	writer = wait_for_writer(turn);
	turn->is_unready = !writer;
	if (!writer) {
		free_headers(turn, 0);
		return TURN_ABORTED;
	}
	turn->writer = writer;
	error = rd_kafka_begin_transaction(turn->writer->producer);
	if (error) {
		note_error(turn, "cannot begin a transaction", error);
		free_headers(turn, 0);
		drop_producer(turn->writer);
		return TURN_ABORTED;
	}
	if (produce_all(turn)) {
		rd_kafka_flush(turn->writer->producer, FIRST_MS);
		if (send_offsets(turn) && flush(turn))
			return commit_turn(turn);
	} else if (is_of_turn(turn, turn->error)) {
		/* This tells why. */
		send_offsets(turn);
	}
	return abort_turn(turn);
}

static bool is_all_ready(const struct relay_turn *turn)
{
	return turn->writers[0].is_ready && turn->writers[1].is_ready;
}

static void drop_producers(struct relay_turn *turn)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(turn->writers); i++)
		drop_producer(&turn->writers[i]);
}

/* Producers that are not ready are left alone for so long. */
static void pause_making(struct relay_turn *turn, unsigned int ms)
{
	struct timespec *end = &turn->make_again;

	clock_gettime(CLOCK_MONOTONIC, end);
	end->tv_nsec += ms % 1000 * NSEC_PER_MSEC;
	end->tv_sec += ms / 1000 + end->tv_nsec / NSEC_PER_SEC;
	end->tv_nsec %= NSEC_PER_SEC;
}

/*
 * The producers are made at once, also after a turn whose end is unknown: the transactions that
 * they end block the owners of their partitions. They may be those of a relay of our id that was
 * killed: what they touch is loaded when they have ended. Called with the lock, and returns with
 * it; it is free meanwhile.
 */
static void make_producers(struct relay_turn *turn)
{
	size_t i;

	pause_making(turn, INIT_PAUSE_MS);
	for (i = 0; i < ARRAY_SIZE(turn->writers); i++) {
		bool failed;

		if (turn->state == TURN_RUNNING || turn->ending)
			return;
		pthread_mutex_unlock(&turn->lock);
		failed = !make_ready(turn, &turn->writers[i]);
		pthread_mutex_lock(&turn->lock);
		if (failed)
			pause_making(turn, MAKE_AGAIN_MS);
	}
}

static void wait_for_turn(struct relay_turn *turn)
{
	while (turn->state != TURN_RUNNING && !turn->ending) {
		/* If it is over, the loop reads how it has ended. */
		if (turn->state == TURN_OVER || is_all_ready(turn))
			pthread_cond_wait(&turn->wake, &turn->lock);
		else if (pthread_cond_timedwait(&turn->wake, &turn->lock, &turn->make_again))
			make_producers(turn);
	}
}

static void *run_thread(void *context)
{
	struct relay_turn *turn = context;
	static const uint64_t one = 1;
	enum turn_end end;

	pthread_mutex_lock(&turn->lock);
	for (;;) {
		wait_for_turn(turn);
		if (turn->state != TURN_RUNNING)
			break;
		pthread_mutex_unlock(&turn->lock);
		end = run_turn(turn);
		pthread_mutex_lock(&turn->lock);
		turn->end = end;
		turn->state = TURN_OVER;
		pthread_cond_broadcast(&turn->wake);
		(void)!write(turn->fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&turn->lock);
	return NULL;
}

/* --- the loop: the end of a turn ---------------------------------------------------------- */

/* A right is missing, and no record has the blame: librdkafka reports only the transaction. */
static bool is_somebodys(const struct relay_turn *turn)
{
	const struct relay_map_write *write;
	size_t i;

	for (i = 0; i < turn->nr; i++)
		if (turn->items[i].entry->error)
			return false;
	TAILQ_FOREACH(write, &turn->writes, link)
		if (write->error)
			return false;
	return turn->error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
}

/* Another producer with our id has begun, or the coordinator has given our transaction up. */
static bool is_taken_over(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR__FENCED || error == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
		error == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
}

static void log_failure(struct relay_turn *turn)
{
	if (turn->end == TURN_FENCED) {
		log_say(LOG_NOTICE, "a transaction was aborted, the group changes: %s", turn->what);
		return;
	}
	if (!log_again(&turn->logged_ms, relay_boot_ms(), FAILURE_AGAIN_MS))
		return;
	log_say(LOG_WARNING, "a transaction %s: %s", turn->end == TURN_UNKNOWN ?
		"has an unknown end, all is loaded anew" : "was aborted", turn->what);
	if (is_taken_over(turn->error))
		log_say(LOG_WARNING,
			"brokers gave it up, or %s is another relay's, too: each needs its own --instance",
			turn->writer->id);
	if (is_somebodys(turn))
		log_say(LOG_WARNING,
			"Write of a topic is not allowed: each target is tried; Write of %s"
			RELAY_DONE_SUFFIX " is needed, too", turn->relay->rules.topic);
}

static void note_committed(struct relay *relay, const rd_kafka_topic_partition_t *committed)
{
	struct relay_partition *partition;

	partition = relay_partition_find(relay, committed->topic, committed->partition);
	if (!partition || partition->state == PARTITION_LOADING ||
	    (uintptr_t)committed->opaque < partition->done_at_assign)
		return;
	partition->committed = committed->offset;
	partition->commit_ms = relay_boot_ms();
	partition->commit_done = partition->done;
	partition->done_committed = partition->done;
	relay_map_passed(relay, partition, committed->offset);
	relay_partition_account(relay, partition);
}

static void finish_committed(struct relay *relay, struct relay_turn *turn)
{
	struct relay_map_write *write;
	size_t i;
	int j;

	relay->stats.turns++;
	relay->commits_fail_ms = 0;
	turn->limit = MIN(2 * turn->limit, RECORDS_MAX);
	for (i = 0; i < turn->nr; i++)
		relay_send_succeeded(relay, turn->items[i].entry);
	while ((write = TAILQ_FIRST(&turn->writes))) {
		TAILQ_REMOVE(&turn->writes, write, link);
		relay_map_acknowledge(relay, write);
	}
	for (j = 0; j < turn->offsets->cnt; j++)
		note_committed(relay, &turn->offsets->elems[j]);
}

static bool is_too_much(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT || error == RD_KAFKA_RESP_ERR__QUEUE_FULL;
}

/* By target, and number of its partition. */
static int compare_places(const void *a, const void *b)
{
	const struct relay_entry *one = *(struct relay_entry *const *)a;
	const struct relay_entry *other = *(struct relay_entry *const *)b;

	if (one->target != other->target)
		return (uintptr_t)one->target < (uintptr_t)other->target ? -1 : 1;
	return (one->to_number > other->to_number) - (one->to_number < other->to_number);
}

/*
 * Records that came too late, of partitions that have taken others of the turn: the turn was too
 * large for what brokers take in the time of message.timeout.ms. The next ones are smaller, and
 * the targets have no blame, unless turns are as small as can be.
 */
static void forgive(struct relay_turn *turn)
{
	struct relay_entry **written;
	size_t nr = 0, i;

	if (!is_too_much(turn->error) || turn->limit == RECORDS_LEAST)
		return;
	written = calloc(turn->nr + 1, sizeof(*written));
	if (!written)
		return;
	for (i = 0; i < turn->nr; i++)
		if (turn->items[i].entry->is_written)
			written[nr++] = turn->items[i].entry;
	qsort(written, nr, sizeof(*written), compare_places);
	for (i = 0; i < turn->nr; i++) {
		struct relay_entry *entry = turn->items[i].entry;

		if (entry->error == RD_KAFKA_RESP_ERR__QUEUE_FULL ||
		    (is_too_much(entry->error) &&
		     bsearch(&entry, written, nr, sizeof(*written), compare_places)))
			entry->error = 0;
	}
	free(written);
	turn->limit = MAX(MIN(turn->nr, turn->limit) / 2, RECORDS_LEAST);
}

/* Undo what has counted as done. Entries are put back in their order. */
static void finish_aborted(struct relay *relay, struct relay_turn *turn)
{
	bool is_any = is_somebodys(turn);
	size_t i;

	forgive(turn);
	for (i = 0; i < turn->nr; i++) {
		if (turn->items[i].entry->partition)
			relay_partition_undo(relay, turn->items[i].entry);
		if (is_any)
			relay_send_suspect(turn->items[i].entry);
	}
	relay_map_put_back(relay, &turn->writes);
	for (i = turn->nr; i-- > 0;) {
		struct relay_entry *entry = turn->items[i].entry;

		if (entry->error)
			relay_send_failed(relay, entry, entry->error);
		else
			relay_send_untaken(relay, entry);
	}
}

/* Everything that is in memory may be done, or not. */
static void finish_unknown(struct relay *relay, struct relay_turn *turn)
{
	size_t i;

	relay_group_reload(relay);
	for (i = 0; i < turn->nr; i++)
		relay_send_untaken(relay, turn->items[i].entry);
	relay_map_free_writes(&turn->writes);
}

static void note_failing(struct relay *relay)
{
	relay->stats.turns_aborted++;
	if (!relay->commits_fail_ms)
		relay->commits_fail_ms = relay_boot_ms();
}

/* A right is missing, which waiting does not give. */
static bool is_forbidden(rd_kafka_resp_err_t error)
{
	return error == RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED ||
		error == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED ||
		error == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
}

static void finish_failed(struct relay *relay, struct relay_turn *turn)
{
	log_failure(turn);
	note_failing(relay);
	turn->again_ms = relay_boot_ms() + (turn->is_unready ? MAKE_AGAIN_MS : AGAIN_MS);
	if (turn->end == TURN_UNKNOWN)
		finish_unknown(relay, turn);
	else
		finish_aborted(relay, turn);
	if (is_forbidden(turn->error)) {
		log_say(LOG_ERR,
			"%s: --delivery exactly-once needs Write and Describe of %s and %s",
			turn->what, turn->writers[0].id, turn->writers[1].id);
		relay_end(relay, EXIT_CANNOT);
	}
}

static void set_state(struct relay_turn *turn, enum turn_state state)
{
	pthread_mutex_lock(&turn->lock);
	turn->state = state;
	pthread_cond_broadcast(&turn->wake);
	pthread_mutex_unlock(&turn->lock);
}

static void finish(struct relay *relay, struct relay_turn *turn)
{
	turn->idle_ms = relay_boot_ms();
	relay_clocks_add(relay, &turn->clocks);
	if (turn->end == TURN_COMMITTED)
		finish_committed(relay, turn);
	else
		finish_failed(relay, turn);
	rd_kafka_topic_partition_list_destroy(turn->offsets);
	rd_kafka_consumer_group_metadata_destroy(turn->group);
	turn->offsets = NULL;
	turn->group = NULL;
	turn->nr = 0;
	set_state(turn, TURN_IDLE);
}

static bool is_over(struct relay_turn *turn)
{
	bool over;

	pthread_mutex_lock(&turn->lock);
	over = turn->state == TURN_OVER;
	pthread_mutex_unlock(&turn->lock);
	return over;
}

/* --- the loop: a new turn ------------------------------------------------------------------ */

static bool add_item(struct relay *relay, struct relay_turn *turn, struct relay_entry *entry)
{
	struct item *item = &turn->items[turn->nr];

	entry->error = 0;
	entry->is_written = false;
	entry->to_number = RD_KAFKA_PARTITION_UA;
	if (!relay_send_describe(entry, &item->product)) {
		relay_send_untaken(relay, entry);
		return false;
	}
	item->entry = entry;
	turn->nr++;
	relay_partition_expect_done(relay, entry);
	entry->partition->in_turn = true;
	return true;
}

/* An entry that is isolated has a turn for itself. */
static void take_entries(struct relay *relay, struct relay_turn *turn)
{
	struct relay_entry *entry;
	size_t bytes = 0;

	while (turn->nr < turn->limit && bytes < BYTES_MAX / RECORDS_MAX * turn->limit &&
	       (entry = TAILQ_FIRST(&relay->blocked))) {
		bool isolated = entry->isolated;

		if (isolated && turn->nr)
			return;
		if (!relay_send_take(relay, entry))
			continue;
		bytes += entry->size;
		if (!add_item(relay, turn, entry) || isolated)
			return;
	}
}

static void take_deletions(struct relay *relay, struct relay_turn *turn)
{
	struct relay_map_write *write;
	unsigned int nr;

	for (nr = 0; nr < MAP_MAX && (write = TAILQ_FIRST(&relay->map_queue)); nr++) {
		TAILQ_REMOVE(&relay->map_queue, write, link);
		TAILQ_INSERT_TAIL(&turn->writes, write, link);
	}
}

static void take_partition(struct relay *relay, struct relay_turn *turn,
			   struct relay_partition *partition)
{
	rd_kafka_topic_partition_t *to;

	to = rd_kafka_topic_partition_list_add(turn->offsets, partition->topic,
					       partition->number);
	to->offset = partition->mark.low;
	/* Its topic was made anew: these are not offsets of the new one. */
	if (partition->is_void)
		to->offset = MAX(partition->committed, 0);
	to->opaque = (void *)(uintptr_t)partition->done;
	relay_map_collect(relay, partition, &turn->writes);
	partition->dirty = false;
	partition->in_turn = false;
}

static bool is_dirty(const struct relay_partition *partition, bool is_idle)
{
	return partition->in_turn ||
		(is_idle && partition->state == PARTITION_READY &&
		 !partition->is_void &&
		 (partition->dirty || partition->mark.low != partition->committed));
}

static void take_partitions(struct relay *relay, struct relay_turn *turn, bool is_idle)
{
	struct relay_partition *partition, *any = NULL;

	turn->offsets = rd_kafka_topic_partition_list_new(16);
	RB_FOREACH(partition, relay_partitions, &relay->partitions) {
		if (partition->state == PARTITION_READY && !partition->is_void)
			any = partition;
		if (is_dirty(partition, is_idle))
			take_partition(relay, turn, partition);
	}
	/* Deletions alone: without an offset nothing would fence them off. */
	if (!turn->offsets->cnt && !TAILQ_EMPTY(&relay->map_queue) && any && is_idle)
		take_partition(relay, turn, any);
	if (turn->offsets->cnt)
		take_deletions(relay, turn);
}

static void begin(struct relay *relay, struct relay_turn *turn)
{
	bool is_idle = relay_boot_ms() >= turn->idle_ms + IDLE_MS;

	if (TAILQ_EMPTY(&relay->blocked) && !is_idle)
		return;
	turn->group = relay_group_metadata(relay);
	if (!turn->group)
		return;
	take_entries(relay, turn);
	take_partitions(relay, turn, is_idle || turn->nr);
	if (turn->offsets->cnt) {
		turn->again_ms = relay_boot_ms() + START_MS;
		set_state(turn, TURN_RUNNING);
		return;
	}
	rd_kafka_topic_partition_list_destroy(turn->offsets);
	rd_kafka_consumer_group_metadata_destroy(turn->group);
	turn->offsets = NULL;
	turn->group = NULL;
	turn->idle_ms = relay_boot_ms();
}

void relay_turn_run(struct relay *relay)
{
	struct relay_turn *turn = relay->turn;

	if (!turn)
		return;
	if (is_over(turn))
		finish(relay, turn);
	turn->is_early = false;
	if (turn->state != TURN_IDLE || relay->revoking)
		return;
	turn->is_early = relay_boot_ms() < turn->again_ms;
	if (!turn->is_early)
		begin(relay, turn);
}

uint64_t relay_turn_waits_until(const struct relay *relay)
{
	const struct relay_turn *turn = relay->turn;

	/* The clock is not read again: if that time has come meanwhile, the loop must not sleep. */
	return turn && turn->is_early && !TAILQ_EMPTY(&relay->blocked) ? turn->again_ms :
									  UINT64_MAX;
}

bool relay_turn_wait(struct relay *relay)
{
	struct relay_turn *turn = relay->turn;
	struct timespec end;
	int error = 0;

	if (!turn)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += WAIT_MS / 1000;
	pthread_mutex_lock(&turn->lock);
	while (turn->state == TURN_RUNNING && !error)
		error = pthread_cond_timedwait(&turn->wake, &turn->lock, &end);
	pthread_mutex_unlock(&turn->lock);
	if (is_over(turn))
		finish(relay, turn);
	return !error;
}

/* --- opening and closing ------------------------------------------------------------------- */

int relay_turn_fd(const struct relay_turn *turn)
{
	return turn->fd;
}

int relay_turn_open(struct relay *relay)
{
	pthread_condattr_t attributes;
	struct relay_turn *turn;

	if (relay->options.delivery != RELAY_EXACTLY_ONCE)
		return 0;
	turn = calloc(1, sizeof(*turn));
	relay->turn = turn;
	if (turn) {
		turn->relay = relay;
		turn->limit = RECORDS_MAX;
		TAILQ_INIT(&turn->writes);
		pthread_mutex_init(&turn->lock, NULL);
		pthread_condattr_init(&attributes);
		pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
		pthread_cond_init(&turn->wake, &attributes);
		pthread_condattr_destroy(&attributes);
		relay_client_id(relay, "", turn->writers[0].id);
		relay_client_id(relay, "/2", turn->writers[1].id);
		turn->writer = &turn->writers[1];
		turn->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		turn->has_thread = turn->fd >= 0 &&
			!pthread_create(&turn->thread, NULL, run_thread, turn);
		if (turn->has_thread)
			return 0;
	}
	log_say(LOG_ERR, "cannot start a thread: %m");
	return EXIT_CANNOT;
}

void relay_turn_close(struct relay *relay)
{
	struct relay_turn *turn = relay->turn;

	if (!turn)
		return;
	pthread_mutex_lock(&turn->lock);
	turn->ending = true;
	pthread_cond_broadcast(&turn->wake);
	pthread_mutex_unlock(&turn->lock);
	if (turn->has_thread)
		pthread_join(turn->thread, NULL);
	if (turn->state == TURN_OVER)
		finish(relay, turn);
	drop_producers(turn);
	if (turn->fd >= 0)
		close(turn->fd);
	pthread_cond_destroy(&turn->wake);
	pthread_mutex_destroy(&turn->lock);
	free(turn);
	relay->turn = NULL;
}
