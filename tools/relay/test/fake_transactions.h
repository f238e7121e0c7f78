/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fake of librdkafka's producers with transactions, beside fake_kafka.h. A test decides which
 * records are refused, and how the steps of a transaction end; it sees what was committed.
 *
 * Its functions are called by the thread of turn.c, and by those of work.c: a test changes and
 * reads the state only while no turn runs.
 */
#ifndef RELAY_TEST_FAKE_TRANSACTIONS_H
#define RELAY_TEST_FAKE_TRANSACTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/state.h"
#include "relay/test/fake_kafka.h"

/**
 * struct fake_write - a record of a transaction
 * @topic: where to.
 * @number: its partition; those of targets are chosen by librdkafka, and are 0 here.
 * @opaque: what the relay gave with it.
 * @value_len: the length of its value.
 * @position: its place in the transaction.
 */
struct fake_write {
	char topic[RELAY_TOPIC_MAX + 1];
	int32_t number;
	void *opaque;
	size_t value_len;
	size_t position;
};

/**
 * struct fake_transactions - how transactions go, and what they have done
 * @refuse: if set, returns the error of a record's report; each producer asks it.
 * @infers: if set, returns whether a record is reported as written without an offset.
 * @is_silent: records are not reported before their transaction is aborted.
 * @at_once: if set, returns the error of producing a record.
 * @init_error: of rd_kafka_init_transactions(). It can be called again after a time-out.
 * @away: if set, the producers whose ids end so get a time-out there.
 * @begin_error: of rd_kafka_begin_transaction().
 * @offsets_error: of rd_kafka_send_offsets_to_transaction(); what is sent is forgotten then.
 * @commit_error: of rd_kafka_commit_transaction().
 * @commits_all_the_same: with @commit_error: all of it is there nevertheless.
 * @requires_abort: what librdkafka says of an error.
 * @abort_error: of rd_kafka_abort_transaction().
 * @nr_clients: the producers that there are.
 * @nr_made: the producers that were made so far.
 * @nr_ready: those that can begin transactions, or could.
 * @nr_waits: how often rd_kafka_init_transactions() failed.
 * @nr_commits: the transactions that were committed.
 * @nr_same: those of the producer that had committed the one before.
 * @last: the producer of the last one.
 * @nr_aborts: those that were aborted.
 * @most_records: the most records of a transaction that was committed.
 * @committed: their records, without those of the map.
 * @nr_committed: how many there are.
 * @room: capacity of @committed.
 */
struct fake_transactions {
	rd_kafka_resp_err_t (*refuse)(const struct fake_write *write);
	bool (*infers)(const struct fake_write *write);
	bool is_silent;
	rd_kafka_resp_err_t (*at_once)(const struct fake_write *write);
	rd_kafka_resp_err_t init_error;
	const char *away;
	rd_kafka_resp_err_t begin_error;
	rd_kafka_resp_err_t offsets_error;
	rd_kafka_resp_err_t commit_error;
	bool commits_all_the_same;
	bool requires_abort;
	rd_kafka_resp_err_t abort_error;
	unsigned int nr_clients;
	unsigned int nr_made;
	unsigned int nr_ready;
	unsigned int nr_waits;
	unsigned int nr_commits;
	unsigned int nr_same;
	void *last;
	unsigned int nr_aborts;
	size_t most_records;
	struct fake_write *committed;
	size_t nr_committed;
	size_t room;
};

extern struct fake_transactions transactions;

/* How many records of a topic were committed. */
size_t fake_committed(const char *topic);

/* A producer has been given a record: see rd_kafka_produceva() of fake_kafka.c. */
rd_kafka_error_t *fake_transaction_add(rd_kafka_t *client, const struct fake_produced *produced);

#endif /* RELAY_TEST_FAKE_TRANSACTIONS_H */
