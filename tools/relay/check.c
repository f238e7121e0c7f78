// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a target exists, and can be written.
 *
 * librdkafka finds out that a topic is missing only after some time, and meanwhile keeps what was
 * produced to it. So brokers are asked for each target before it is written first, and again
 * when it was missing. They are not asked in a way that makes them create the topic.
 *
 * With exactly once, one record that cannot be written aborts the whole transaction. So a target
 * that has failed is tried in a transaction of its own, by a producer with an id of its own. This
 * transaction is always aborted: no consumer that reads committed records sees the record. All of
 * this waits for brokers, so it runs in a thread of work.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/util.h"
#include "relay/check.h"
#include "relay/kafka.h"
#include "relay/query.h"
#include "relay/send.h"
#include "relay/state.h"
#include "relay/work.h"

/* The limit of calls that wait for brokers. */
#define TRY_MS		10000

/* Only one target is tried at a time: no partition has this number. */
#define TRY_NUMBER	INT32_MAX

/**
 * struct relay_checker - what tries targets
 * @producer: a transactional producer, made when it is first needed. Only the job with TRY_NUMBER
 *	uses it.
 * @error: of the last report.
 */
struct relay_checker {
	rd_kafka_t *producer;
	rd_kafka_resp_err_t error;
};

/**
 * struct check - a question
 * @job: the job.
 * @checked: called with the answer.
 * @topic: the topic.
 * @has_product: it is to be tried with @product.
 * @product: a record; its key and value are copies.
 * @error: the answer.
 */
struct check {
	struct relay_job job;
	relay_checked *checked;
	char topic[RELAY_TOPIC_MAX + 1];
	bool has_product;
	struct relay_product product;
	rd_kafka_resp_err_t error;
};

/* --- can it be written? ---------------------------------------------------------------- */

static void on_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context)
{
	struct relay_checker *checker = context;

	(void)client;
	checker->error = message->err;
}

static bool have_producer(struct relay *relay, struct relay_checker *checker)
{
	char id[RELAY_CLIENT_ID_MAX];
	rd_kafka_error_t *error;

	if (checker->producer)
		return true;
	relay_client_id(relay, "/check", id);
	checker->producer = relay_client_transactional(relay, id, on_report, checker);
	if (!checker->producer)
		return false;
	error = rd_kafka_init_transactions(checker->producer, TRY_MS);
	if (!error)
		return true;
	log_say(LOG_WARNING, "cannot begin with transactions as %s: %s", id,
		rd_kafka_error_string(error));
	rd_kafka_error_destroy(error);
	rd_kafka_destroy(checker->producer);
	checker->producer = NULL;
	return false;
}

/*
 * librdkafka drops the record, and does not say why, if the coordinator refuses the topic: its user
 * may not write it. With other errors of the coordinator it tries again.
 */
static rd_kafka_resp_err_t error_of(const struct relay_checker *checker)
{
	return checker->error == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
		checker->error == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT ?
		RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED : checker->error;
}

/* Returns whether the producer can be used on. */
static bool end_try(struct relay_checker *checker)
{
	rd_kafka_error_t *error = rd_kafka_abort_transaction(checker->producer, TRY_MS);
	bool ended = !error;

	rd_kafka_error_destroy(error);
	return ended;
}

static rd_kafka_resp_err_t try_product(struct relay *relay, struct relay_checker *checker,
				       struct check *check)
{
	rd_kafka_error_t *failure;
	rd_kafka_resp_err_t error;

	if (!have_producer(relay, checker))
		return RD_KAFKA_RESP_ERR__STATE;
	failure = rd_kafka_begin_transaction(checker->producer);
	error = failure ? rd_kafka_error_code(failure) : 0;
	rd_kafka_error_destroy(failure);
	checker->error = RD_KAFKA_RESP_ERR__TIMED_OUT;
	if (!error) {
		check->has_product = false;
		error = relay_produce(checker->producer, &check->product);
	}
	if (!error) {
		rd_kafka_flush(checker->producer, TRY_MS);
		error = error_of(checker);
	}
	if (!end_try(checker)) {
		rd_kafka_destroy(checker->producer);
		checker->producer = NULL;
	}
	return error;
}

/* --- the job --------------------------------------------------------------------------- */

static bool run(struct relay *relay, struct relay_job *job)
{
	struct check *check = container_of(job, struct check, job);

	check->error = relay_query_topic(relay->producer, check->topic);
	if (check->error == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
		return false;
	if (!check->error && check->has_product)
		check->error = try_product(relay, relay->checker, check);
	return true;
}

static void done(struct relay *relay, struct relay_job *job)
{
	struct check *check = container_of(job, struct check, job);

	if (!relay_work_over(relay, job))
		check->checked(relay, check->topic, check->error);
	if (check->has_product && check->product.headers)
		rd_kafka_headers_destroy(check->product.headers);
	free((void *)check->product.key);
	free((void *)check->product.value);
	free(check);
}

static void *copy(const void *from, size_t len)
{
	void *to = from ? malloc(len + 1) : NULL;

	return to ? memcpy(to, from, len) : NULL;
}

static void copy_product(struct check *check, const struct relay_product *product)
{
	check->job.number = TRY_NUMBER;
	check->has_product = true;
	check->product = *product;
	check->product.topic = check->topic;
	check->product.key = copy(product->key, product->key_len);
	check->product.value = copy(product->value, product->value_len);
	check->product.opaque = NULL;
	check->product.copy = true;
}

bool relay_check_start(struct relay *relay, const char *topic,
		       const struct relay_product *product, relay_checked *checked)
{
	struct check *check = calloc(1, sizeof(*check));

	if (!check) {
		if (product && product->headers)
			rd_kafka_headers_destroy(product->headers);
		return false;
	}
	check->job = (struct relay_job){ .number = -1, .run = run, .done = done };
	check->checked = checked;
	snprintf(check->topic, sizeof(check->topic), "%s", topic);
	if (product)
		copy_product(check, product);
	relay_work_add(relay, &check->job);
	return true;
}

int relay_check_open(struct relay *relay)
{
	relay->checker = calloc(1, sizeof(*relay->checker));
	if (relay->checker)
		return 0;
	log_say(LOG_ERR, "out of memory");
	return EXIT_CANNOT;
}

/* After relay_work_close(): no job runs any more. */
void relay_check_close(struct relay *relay)
{
	if (relay->checker && relay->checker->producer)
		rd_kafka_destroy(relay->checker->producer);
	free(relay->checker);
	relay->checker = NULL;
}
