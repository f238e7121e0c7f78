/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fake of what the relay calls of librdkafka, so that a test decides when a record is
 * reported and how, which calls fail, and what was committed. Lists, headers and errors are
 * librdkafka's own.
 *
 * It is strict where librdkafka is not: an entry that is produced while it is in flight ends
 * the test.
 */
#ifndef FAKE_KAFKA_H
#define FAKE_KAFKA_H

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fake_alarm.h"
#include "harness.h"
#include "relay.h"

/**
 * struct fake_produced - a record that was given to the producer
 * @opaque: the relay's, whose memory must be there while it is @in_flight.
 */
struct fake_produced {
	char topic[RELAY_TOPIC_MAX + 1];
	int32_t partition;
	size_t value_len;
	rd_kafka_headers_t *headers;
	void *opaque;
	bool in_flight;
};

/**
 * struct fake_partition - what the consumer knows of one
 * @committed: RD_KAFKA_OFFSET_INVALID: nothing is. @text goes with it.
 * @error: what who asks for its committed offset is told; @nr_errors times, or always if 0.
 * @begins: its first offset.
 * @seek: where it was told to read from, -1: nowhere.
 */
struct fake_partition {
	char topic[RELAY_TOPIC_MAX + 1];
	int32_t number;
	int64_t committed;
	char text[RUNS_TEXT_MAX];
	rd_kafka_resp_err_t error;
	unsigned int nr_errors;
	int64_t begins;
	int64_t seek;
	bool paused;
};

#define FAKE_PARTITIONS_MAX	512
#define FAKE_COMMITS_MAX	64

/**
 * struct fake_message - a record that is read
 */
struct fake_message {
	rd_kafka_message_t message;
	int64_t timestamp_ms;
	rd_kafka_headers_t *headers;
	rd_kafka_resp_err_t headers_error;
};

/* A commit, and who is told of its answer. */
struct fake_commit {
	rd_kafka_topic_partition_list_t *list;
	void (*report)(rd_kafka_t *client, rd_kafka_resp_err_t error,
		       rd_kafka_topic_partition_list_t *list, void *context);
};

static struct fake_kafka {
	struct relay *relay;
	struct fake_produced *produced;
	size_t nr_produced;
	size_t room;
	size_t nr_in_flight;
	size_t queue_size;	/* in flight at most */
	/* What producev() says to a record at once, and what each poll does. */
	rd_kafka_resp_err_t (*at_once)(const struct fake_produced *produced);
	void (*at_poll)(void);
	unsigned int nr_events;	/* that this poll has told of */

	struct fake_partition partitions[FAKE_PARTITIONS_MAX];
	unsigned int nr_partitions;
	bool lost;
	unsigned int nr_assigned;
	unsigned int nr_pause_calls;
	unsigned int nr_resume_calls;
	unsigned int nr_seeks;
	rd_kafka_resp_err_t seek_error;

	/* Commits that nobody has answered, and how those who wait for one are answered. */
	struct fake_commit commits[FAKE_COMMITS_MAX];
	unsigned int nr_unanswered;
	unsigned int nr_commits;
	int most_committed;	/* partitions at a time */
	rd_kafka_resp_err_t commit_refused;
	rd_kafka_resp_err_t wait_answer;
} kafka = { .queue_size = 100000 };

/* --- producing ------------------------------------------------------------------------ */

static struct fake_produced *fake_new_produced(void)
{
	struct fake_produced *produced;

	if (kafka.nr_produced == kafka.room) {
		kafka.room = kafka.room * 2 + 64;
		kafka.produced = reallocarray(kafka.produced, kafka.room, sizeof(*produced));
	}
	produced = &kafka.produced[kafka.nr_produced];
	memset(produced, 0, sizeof(*produced));
	return produced;
}

static void fake_take_arguments(struct fake_produced *produced, va_list arguments)
{
	for (;;) {
		switch (va_arg(arguments, rd_kafka_vtype_t)) {
		case RD_KAFKA_VTYPE_END:
			return;
		case RD_KAFKA_VTYPE_TOPIC:
			strcpy(produced->topic, va_arg(arguments, const char *));
			break;
		case RD_KAFKA_VTYPE_PARTITION:
			produced->partition = va_arg(arguments, int32_t);
			break;
		case RD_KAFKA_VTYPE_KEY:
			va_arg(arguments, void *);
			va_arg(arguments, size_t);
			break;
		case RD_KAFKA_VTYPE_VALUE:
			va_arg(arguments, void *);
			produced->value_len = va_arg(arguments, size_t);
			break;
		case RD_KAFKA_VTYPE_HEADERS:
			produced->headers = va_arg(arguments, rd_kafka_headers_t *);
			break;
		case RD_KAFKA_VTYPE_OPAQUE:
			produced->opaque = va_arg(arguments, void *);
			break;
		default:
			ASSERT(false);
		}
	}
}

/* librdkafka would write it twice, and report it twice. */
static void fake_look_for_twin(const struct fake_produced *produced)
{
	const struct relay_entry *entry = produced->opaque;
	size_t i;

	if (kafka.nr_in_flight < 1000)
		for (i = 0; i < kafka.nr_produced; i++)
			ASSERT(!kafka.produced[i].in_flight ||
			       kafka.produced[i].opaque != produced->opaque);
	ASSERT_NE(entry->state, ENTRY_SENDING);
}

rd_kafka_resp_err_t rd_kafka_producev(rd_kafka_t *client, ...)
{
	struct fake_produced *produced = fake_new_produced();
	rd_kafka_resp_err_t error;
	va_list arguments;

	(void)client;
	va_start(arguments, client);
	fake_take_arguments(produced, arguments);
	va_end(arguments);
	fake_look_for_twin(produced);
	if (kafka.nr_in_flight >= kafka.queue_size)
		return RD_KAFKA_RESP_ERR__QUEUE_FULL;
	error = kafka.at_once ? kafka.at_once(produced) : 0;
	if (error)
		return error;
	produced->in_flight = true;
	kafka.nr_in_flight++;
	kafka.nr_produced++;
	return 0;
}

static inline void fake_report_with(size_t i, rd_kafka_message_t *message)
{
	ASSERT(kafka.produced[i].in_flight);
	message->_private = kafka.produced[i].opaque;
	kafka.produced[i].in_flight = false;
	kafka.nr_in_flight--;
	kafka.nr_events++;
	relay_send_report(NULL, message, kafka.relay);
}

/* The delivery report of a record. */
static inline void fake_report(size_t i, rd_kafka_resp_err_t error)
{
	fake_report_with(i, &(rd_kafka_message_t){ .err = error });
}

/* That of one which is only inferred to be written, as a later one was. */
static inline void fake_report_inferred(size_t i)
{
	fake_report_with(i, &(rd_kafka_message_t){ .offset = RD_KAFKA_OFFSET_INVALID });
}

/* Those of all that are in flight to a topic; NULL: to any. */
static inline void fake_report_all(const char *topic, rd_kafka_resp_err_t error)
{
	size_t nr = kafka.nr_produced, i;

	for (i = 0; i < nr; i++)
		if (kafka.produced[i].in_flight &&
		    (!topic || !strcmp(kafka.produced[i].topic, topic)))
			fake_report(i, error);
}

static inline size_t fake_count(const char *topic, bool in_flight)
{
	size_t nr = 0, i;

	for (i = 0; i < kafka.nr_produced; i++)
		nr += !strcmp(kafka.produced[i].topic, topic) &&
			kafka.produced[i].in_flight >= in_flight;
	return nr;
}

/* A header of a record that was produced; "": it has none of that name. */
static inline const char *fake_header(size_t i, const char *name)
{
	static char text[512];
	const void *value;
	size_t len;

	if (rd_kafka_header_get_last(kafka.produced[i].headers, name, &value, &len))
		return "";
	snprintf(text, sizeof(text), "%.*s", (int)len, (const char *)value);
	return text;
}

int rd_kafka_poll(rd_kafka_t *client, int timeout_ms)
{
	(void)client;
	kafka.nr_events = 0;
	if (kafka.at_poll)
		kafka.at_poll();
	if (!kafka.nr_events && timeout_ms > 0)
		fake_advance(timeout_ms * NSEC_PER_MSEC);
	return kafka.nr_events;
}

rd_kafka_msg_status_t rd_kafka_message_status(const rd_kafka_message_t *message)
{
	(void)message;
	return RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
}

/* --- partitions ----------------------------------------------------------------------- */

static struct fake_partition *fake_partition(const char *topic, int32_t number)
{
	struct fake_partition *partition;
	unsigned int i;

	for (i = 0; i < kafka.nr_partitions; i++)
		if (kafka.partitions[i].number == number &&
		    !strcmp(kafka.partitions[i].topic, topic))
			return &kafka.partitions[i];
	ASSERT_LT(kafka.nr_partitions, FAKE_PARTITIONS_MAX);
	partition = &kafka.partitions[kafka.nr_partitions++];
	strcpy(partition->topic, topic);
	partition->number = number;
	partition->committed = RD_KAFKA_OFFSET_INVALID;
	partition->seek = -1;
	return partition;
}

static struct fake_partition *fake_of(const rd_kafka_topic_partition_t *partition)
{
	return fake_partition(partition->topic, partition->partition);
}

rd_kafka_resp_err_t rd_kafka_pause_partitions(rd_kafka_t *client,
					      rd_kafka_topic_partition_list_t *list)
{
	int i;

	(void)client;
	kafka.nr_pause_calls++;
	for (i = 0; i < list->cnt; i++)
		fake_of(&list->elems[i])->paused = true;
	return 0;
}

rd_kafka_resp_err_t rd_kafka_resume_partitions(rd_kafka_t *client,
					       rd_kafka_topic_partition_list_t *list)
{
	int i;

	(void)client;
	kafka.nr_resume_calls++;
	for (i = 0; i < list->cnt; i++)
		fake_of(&list->elems[i])->paused = false;
	return 0;
}

rd_kafka_error_t *rd_kafka_seek_partitions(rd_kafka_t *client,
					   rd_kafka_topic_partition_list_t *list,
					   int timeout_ms)
{
	int i;

	(void)client;
	ASSERT_GT(timeout_ms, 0);
	for (i = 0; i < list->cnt; i++) {
		list->elems[i].err = kafka.seek_error;
		if (!kafka.seek_error)
			fake_of(&list->elems[i])->seek = list->elems[i].offset;
	}
	kafka.nr_seeks++;
	return NULL;
}

rd_kafka_resp_err_t rd_kafka_committed(rd_kafka_t *client,
				       rd_kafka_topic_partition_list_t *list, int timeout_ms)
{
	int i;

	(void)client;
	(void)timeout_ms;
	for (i = 0; i < list->cnt; i++) {
		rd_kafka_topic_partition_t *to = &list->elems[i];
		struct fake_partition *from = fake_of(to);

		free(to->metadata);
		to->metadata = strdup(from->text);
		to->metadata_size = strlen(from->text);
		to->offset = from->error ? RD_KAFKA_OFFSET_INVALID : from->committed;
		to->err = from->error;
		if (from->nr_errors && !--from->nr_errors)
			from->error = 0;
	}
	return 0;
}

rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t *client,
				    const rd_kafka_topic_partition_list_t *list)
{
	(void)client;
	kafka.nr_assigned = list ? list->cnt : 0;
	return 0;
}

int rd_kafka_assignment_lost(rd_kafka_t *client)
{
	(void)client;
	return kafka.lost;
}

rd_kafka_resp_err_t rd_kafka_get_watermark_offsets(rd_kafka_t *client, const char *topic,
						   int32_t partition, int64_t *low,
						   int64_t *high)
{
	(void)client;
	*low = fake_partition(topic, partition)->begins;
	*high = *low;
	return 0;
}

rd_kafka_resp_err_t rd_kafka_query_watermark_offsets(rd_kafka_t *client, const char *topic,
						     int32_t partition, int64_t *low,
						     int64_t *high, int timeout_ms)
{
	(void)timeout_ms;
	return rd_kafka_get_watermark_offsets(client, topic, partition, low, high);
}

/* As after a fatal error: nothing is revoked. */
rd_kafka_resp_err_t rd_kafka_consumer_close(rd_kafka_t *client)
{
	(void)client;
	return 0;
}

/* --- records -------------------------------------------------------------------------- */

rd_kafka_resp_err_t rd_kafka_message_headers(const rd_kafka_message_t *message,
					     rd_kafka_headers_t **headers)
{
	const struct fake_message *fake_message = message->_private;

	*headers = fake_message->headers;
	if (fake_message->headers_error)
		return fake_message->headers_error;
	return *headers ? 0 : RD_KAFKA_RESP_ERR__NOENT;
}

int64_t rd_kafka_message_timestamp(const rd_kafka_message_t *message,
				   rd_kafka_timestamp_type_t *type)
{
	const struct fake_message *fake_message = message->_private;

	*type = RD_KAFKA_TIMESTAMP_CREATE_TIME;
	return fake_message->timestamp_ms;
}

const char *rd_kafka_message_errstr(const rd_kafka_message_t *message)
{
	return rd_kafka_err2str(message->err);
}

const char *rd_kafka_topic_name(const rd_kafka_topic_t *topic)
{
	return (const char *)topic;
}

/* --- commits -------------------------------------------------------------------------- */

static struct fake_commit *fake_take_commit(const rd_kafka_topic_partition_list_t *list)
{
	struct fake_commit *commit = &kafka.commits[kafka.nr_unanswered++];

	ASSERT_LE(kafka.nr_unanswered, FAKE_COMMITS_MAX);
	commit->list = rd_kafka_topic_partition_list_copy(list);
	commit->report = relay_commit_report;
	kafka.nr_commits++;
	if (list->cnt > kafka.most_committed)
		kafka.most_committed = list->cnt;
	return commit;
}

static void fake_store(const rd_kafka_topic_partition_t *committed)
{
	struct fake_partition *partition = fake_of(committed);

	ASSERT_LT(committed->metadata_size, RUNS_TEXT_MAX);
	partition->committed = committed->offset;
	snprintf(partition->text, sizeof(partition->text), "%.*s",
		 (int)committed->metadata_size, (const char *)committed->metadata ?: "");
}

/* Broken off: nobody answers it. */
static inline void fake_drop_commit(void)
{
	ASSERT_EQ(kafka.nr_unanswered, 1);
	kafka.nr_unanswered = 0;
	rd_kafka_topic_partition_list_destroy(kafka.commits[0].list);
}

/* Answer the oldest commit. */
static void fake_answer_commit(rd_kafka_resp_err_t error)
{
	struct fake_commit commit = kafka.commits[0];
	rd_kafka_topic_partition_list_t *list = commit.list;
	int i;

	ASSERT_GT(kafka.nr_unanswered, 0);
	memmove(kafka.commits, kafka.commits + 1,
		--kafka.nr_unanswered * sizeof(kafka.commits[0]));
	for (i = 0; i < list->cnt; i++) {
		list->elems[i].err = error;
		if (!error)
			fake_store(&list->elems[i]);
	}
	commit.report(NULL, error, list, kafka.relay);
	rd_kafka_topic_partition_list_destroy(list);
}

static inline void fake_answer_commits(rd_kafka_resp_err_t error)
{
	while (kafka.nr_unanswered)
		fake_answer_commit(error);
}

rd_kafka_resp_err_t rd_kafka_commit(rd_kafka_t *client,
				    const rd_kafka_topic_partition_list_t *list, int async)
{
	(void)client;
	ASSERT(async);
	if (kafka.commit_refused)
		return kafka.commit_refused;
	fake_take_commit(list);
	return 0;
}

rd_kafka_resp_err_t rd_kafka_commit_queue(rd_kafka_t *client,
					  const rd_kafka_topic_partition_list_t *list,
					  rd_kafka_queue_t *queue,
					  void (*report)(rd_kafka_t *client,
							 rd_kafka_resp_err_t error,
							 rd_kafka_topic_partition_list_t *list,
							 void *context),
					  void *context)
{
	(void)client;
	(void)queue;
	ASSERT(context == kafka.relay);
	if (kafka.commit_refused)
		return kafka.commit_refused;
	fake_take_commit(list)->report = report;
	return 0;
}

rd_kafka_queue_t *rd_kafka_queue_new(rd_kafka_t *client)
{
	(void)client;
	return (rd_kafka_queue_t *)&kafka;
}

void rd_kafka_queue_destroy(rd_kafka_queue_t *queue)
{
	(void)queue;
}

int rd_kafka_queue_poll_callback(rd_kafka_queue_t *queue, int timeout_ms)
{
	(void)queue;
	(void)timeout_ms;
	if (!kafka.nr_unanswered)
		return 0;
	fake_answer_commit(kafka.wait_answer);
	return 1;
}

#endif /* FAKE_KAFKA_H */
