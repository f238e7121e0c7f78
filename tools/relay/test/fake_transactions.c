// SPDX-License-Identifier: GPL-2.0
/* The fake of librdkafka's transactions. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/test/fake_alarm.h"
#include "common/util.h"
#include "relay/kafka.h"
#include "relay/test/fake_kafka.h"
#include "relay/test/fake_transactions.h"
#include "test/device/harness.h"

#define RECORDS_MAX	4096
#define CLIENTS_MAX	8

/**
 * struct fake_client - a producer
 * @id: its transactional id.
 * @report: gets a report of each record.
 * @context: its argument.
 * @open: a transaction has begun.
 * @records: the records of the transaction.
 * @nr: how many there are.
 * @nr_reported: the first so many have a report.
 * @offsets: the offsets that were sent, or NULL.
 */
struct fake_client {
	char id[RELAY_CLIENT_ID_MAX];
	void (*report)(rd_kafka_t *client, const rd_kafka_message_t *message, void *context);
	void *context;
	bool open;
	struct fake_write records[RECORDS_MAX];
	size_t nr;
	size_t nr_reported;
	rd_kafka_topic_partition_list_t *offsets;
};

struct fake_transactions transactions;

/* The producers that there are. */
static struct fake_client *clients[CLIENTS_MAX];
static pthread_mutex_t clients_lock = PTHREAD_MUTEX_INITIALIZER;

/* What a thread has set for the client that it makes next. */
static __thread void (*next_report)(rd_kafka_t *client, const rd_kafka_message_t *message,
				    void *context);
static __thread void *next_context;

static struct fake_client *client_of(rd_kafka_t *client)
{
	return (struct fake_client *)client;
}

static rd_kafka_error_t *error_of(rd_kafka_resp_err_t error)
{
	return error ? rd_kafka_error_new(error, "%s", rd_kafka_err2str(error)) : NULL;
}

/* --- producers ------------------------------------------------------------------------ */

void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *conf,
				 void (*report)(rd_kafka_t *client,
						const rd_kafka_message_t *message, void *context))
{
	(void)conf;
	next_report = report;
}

void rd_kafka_conf_set_opaque(rd_kafka_conf_t *conf, void *context)
{
	(void)conf;
	next_context = context;
}

/* Brokers would fence off the older one of two with the same id. */
static void add_client(struct fake_client *client)
{
	struct fake_client **free_one = NULL;
	size_t i;

	pthread_mutex_lock(&clients_lock);
	for (i = 0; i < CLIENTS_MAX; i++) {
		if (!clients[i])
			free_one = &clients[i];
		else
			ASSERT(strcmp(clients[i]->id, client->id));
	}
	ASSERT(free_one);
	*free_one = client;
	pthread_mutex_unlock(&clients_lock);
}

static void remove_client(struct fake_client *client)
{
	size_t i;

	pthread_mutex_lock(&clients_lock);
	for (i = 0; i < CLIENTS_MAX; i++)
		if (clients[i] == client)
			clients[i] = NULL;
	pthread_mutex_unlock(&clients_lock);
}

rd_kafka_t *rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *why, size_t size)
{
	struct fake_client *client = calloc(1, sizeof(*client));
	size_t id_size = sizeof(client->id);

	(void)why;
	(void)size;
	ASSERT_EQ(type, RD_KAFKA_PRODUCER);
	ASSERT_EQ(rd_kafka_conf_get(conf, "transactional.id", client->id, &id_size),
		  RD_KAFKA_CONF_OK);
	rd_kafka_conf_destroy(conf);
	client->report = next_report;
	client->context = next_context;
	add_client(client);
	__atomic_add_fetch(&transactions.nr_clients, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&transactions.nr_made, 1, __ATOMIC_RELAXED);
	return (rd_kafka_t *)client;
}

static void forget(struct fake_client *client)
{
	if (client->offsets)
		rd_kafka_topic_partition_list_destroy(client->offsets);
	client->offsets = NULL;
	client->open = false;
	client->nr = 0;
	client->nr_reported = 0;
}

void rd_kafka_destroy(rd_kafka_t *client)
{
	remove_client(client_of(client));
	forget(client_of(client));
	free(client);
	__atomic_sub_fetch(&transactions.nr_clients, 1, __ATOMIC_RELAXED);
}

static bool is_away(const struct fake_client *client)
{
	const char *away = __atomic_load_n(&transactions.away, __ATOMIC_RELAXED);

	return away && strlen(client->id) >= strlen(away) &&
		!strcmp(client->id + strlen(client->id) - strlen(away), away);
}

rd_kafka_error_t *rd_kafka_init_transactions(rd_kafka_t *client, int timeout_ms)
{
	rd_kafka_resp_err_t error = __atomic_load_n(&transactions.init_error, __ATOMIC_RELAXED);

	ASSERT_GT(timeout_ms, 0);
	if (is_away(client_of(client)))
		error = RD_KAFKA_RESP_ERR__TIMED_OUT;
	__atomic_add_fetch(error ? &transactions.nr_waits : &transactions.nr_ready, 1,
			   __ATOMIC_RELAXED);
	return error_of(error);
}

int rd_kafka_error_is_retriable(const rd_kafka_error_t *error)
{
	return rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__TIMED_OUT;
}

rd_kafka_resp_err_t rd_kafka_fatal_error(rd_kafka_t *client, char *why, size_t size)
{
	(void)client;
	(void)why;
	(void)size;
	return 0;
}

/* --- a transaction -------------------------------------------------------------------- */

rd_kafka_error_t *rd_kafka_begin_transaction(rd_kafka_t *client)
{
	ASSERT(!client_of(client)->open);
	client_of(client)->open = !transactions.begin_error;
	return error_of(transactions.begin_error);
}

rd_kafka_error_t *fake_transaction_add(rd_kafka_t *client, const struct fake_produced *produced)
{
	struct fake_client *to = client_of(client);
	struct fake_write *write = &to->records[to->nr];
	rd_kafka_resp_err_t error;

	ASSERT(to->open);
	ASSERT_LT(to->nr, RECORDS_MAX);
	snprintf(write->topic, sizeof(write->topic), "%s", produced->topic);
	write->number = produced->partition == RD_KAFKA_PARTITION_UA ? 0 : produced->partition;
	write->opaque = produced->opaque;
	write->value_len = produced->value_len;
	write->position = to->nr;
	error = transactions.at_once ? transactions.at_once(write) : 0;
	to->nr += !error;
	return error_of(error);
}

static void report_all(struct fake_client *client, rd_kafka_resp_err_t error)
{
	while (client->nr_reported < client->nr) {
		const struct fake_write *write = &client->records[client->nr_reported++];
		rd_kafka_message_t message = {
			.err = error ?: transactions.refuse ? transactions.refuse(write) : 0,
			.offset = transactions.infers && transactions.infers(write) ?
				RD_KAFKA_OFFSET_INVALID : 0,
			.partition = write->number,
			._private = write->opaque,
		};

		client->report((rd_kafka_t *)client, &message, client->context);
	}
}

rd_kafka_resp_err_t rd_kafka_flush(rd_kafka_t *client, int timeout_ms)
{
	ASSERT_GT(timeout_ms, 0);
	if (transactions.is_silent)
		fake_advance(timeout_ms * NSEC_PER_MSEC);
	else
		report_all(client_of(client), 0);
	return 0;
}

rd_kafka_error_t *
rd_kafka_send_offsets_to_transaction(rd_kafka_t *client,
				     const rd_kafka_topic_partition_list_t *offsets,
				     const rd_kafka_consumer_group_metadata_t *group,
				     int timeout_ms)
{
	(void)group;
	ASSERT(client_of(client)->open);
	ASSERT_GT(timeout_ms, 0);
	/* Brokers check the group's generation only if there is one. */
	ASSERT_GT(offsets->cnt, 0);
	/* First, they would be refused while the producer's last transaction ends: for 100 ms. */
	ASSERT(transactions.is_silent ||
	       client_of(client)->nr_reported == client_of(client)->nr);
	if (!transactions.offsets_error)
		client_of(client)->offsets = rd_kafka_topic_partition_list_copy(offsets);
	return error_of(transactions.offsets_error);
}

static void keep(const struct fake_write *write)
{
	if (*(const enum relay_write *)write->opaque == WRITE_MAP)
		return;
	if (transactions.nr_committed == transactions.room) {
		transactions.room = transactions.room * 2 + 64;
		transactions.committed = reallocarray(transactions.committed, transactions.room,
						      sizeof(*transactions.committed));
	}
	transactions.committed[transactions.nr_committed++] = *write;
}

static void commit(struct fake_client *client)
{
	size_t i;
	int j;

	for (i = 0; i < client->nr; i++)
		keep(&client->records[i]);
	for (j = 0; j < client->offsets->cnt; j++) {
		const rd_kafka_topic_partition_t *offset = &client->offsets->elems[j];

		fake_partition(offset->topic, offset->partition)->committed = offset->offset;
	}
	if (client->nr > transactions.most_records)
		transactions.most_records = client->nr;
	transactions.nr_commits++;
	transactions.nr_same += transactions.last == client;
	transactions.last = client;
}

rd_kafka_error_t *rd_kafka_commit_transaction(rd_kafka_t *client, int timeout_ms)
{
	ASSERT(client_of(client)->open);
	ASSERT_GT(timeout_ms, 0);
	ASSERT_EQ(client_of(client)->nr_reported, client_of(client)->nr);
	if (!transactions.commit_error || transactions.commits_all_the_same)
		commit(client_of(client));
	if (!transactions.commit_error)
		forget(client_of(client));
	return error_of(transactions.commit_error);
}

rd_kafka_error_t *rd_kafka_abort_transaction(rd_kafka_t *client, int timeout_ms)
{
	ASSERT_GT(timeout_ms, 0);
	if (transactions.abort_error)
		return error_of(transactions.abort_error);
	report_all(client_of(client), RD_KAFKA_RESP_ERR__PURGE_QUEUE);
	forget(client_of(client));
	transactions.nr_aborts++;
	return NULL;
}

int rd_kafka_error_txn_requires_abort(const rd_kafka_error_t *error)
{
	(void)error;
	return transactions.requires_abort;
}

size_t fake_committed(const char *topic)
{
	size_t nr = 0, i;

	for (i = 0; i < transactions.nr_committed; i++)
		nr += !strcmp(transactions.committed[i].topic, topic);
	return nr;
}
