// SPDX-License-Identifier: GPL-2.0
/* The fake of librdkafka. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/test/fake_alarm.h"
#include "common/util.h"
#include "relay/commit.h"
#include "relay/send.h"
#include "relay/test/fake_kafka.h"
#include "relay/test/fake_transactions.h"
#include "test/device/harness.h"

struct fake_kafka kafka = { .queue_size = 100000 };

/* --- producing ------------------------------------------------------------------------ */

static struct fake_produced *new_produced(void)
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

rd_kafka_t *fake_own_producer(void)
{
	static char own;

	return (rd_kafka_t *)&own;
}

static void parse_arguments(struct fake_produced *produced, const rd_kafka_vu_t *parts, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (parts[i].vtype == RD_KAFKA_VTYPE_TOPIC)
			strcpy(produced->topic, parts[i].u.cstr);
		else if (parts[i].vtype == RD_KAFKA_VTYPE_PARTITION)
			produced->partition = parts[i].u.i32;
		else if (parts[i].vtype == RD_KAFKA_VTYPE_VALUE)
			produced->value_len = parts[i].u.mem.size;
		else if (parts[i].vtype == RD_KAFKA_VTYPE_HEADERS)
			produced->headers = parts[i].u.headers;
		else if (parts[i].vtype == RD_KAFKA_VTYPE_OPAQUE)
			produced->opaque = parts[i].u.ptr;
	}
}

/* librdkafka would write the entry twice, and report it twice. */
static void refuse_twin(const struct fake_produced *produced)
{
	const enum relay_write *write = produced->opaque;
	size_t i;

	if (kafka.nr_in_flight < 1000)
		for (i = 0; i < kafka.nr_produced; i++)
			ASSERT(!kafka.produced[i].in_flight ||
			       kafka.produced[i].opaque != produced->opaque);
	if (*write == WRITE_ENTRY)
		ASSERT_NE(container_of(write, struct relay_entry, write)->state, ENTRY_SENDING);
}

/* What is written to the map is acknowledged at once, and is not counted. */
static bool is_of_map(const struct fake_produced *produced)
{
	return *(const enum relay_write *)produced->opaque == WRITE_MAP;
}

static rd_kafka_error_t *add_to_transaction(rd_kafka_t *client, struct fake_produced *produced)
{
	rd_kafka_error_t *error = fake_transaction_add(client, produced);

	if (!error && produced->headers)
		rd_kafka_headers_destroy(produced->headers);
	return error;
}

rd_kafka_error_t *rd_kafka_produceva(rd_kafka_t *client, const rd_kafka_vu_t *parts, size_t nr)
{
	bool is_own = client == fake_own_producer(), is_once = is_own || !client;
	struct fake_produced mine = { 0 }, *produced = is_once ? new_produced() : &mine;
	rd_kafka_resp_err_t error;

	parse_arguments(produced, parts, nr);
	/* Threads call those with transactions. */
	if (!is_once)
		return add_to_transaction(client, produced);
	refuse_twin(produced);
	if (is_of_map(produced)) {
		ASSERT(is_own);
		ASSERT_LT(kafka.nr_map_writes, FAKE_MAP_WRITES_MAX);
		kafka.map_writes[kafka.nr_map_writes++] = produced->opaque;
		return NULL;
	}
	error = kafka.nr_in_flight >= kafka.queue_size || (is_own && kafka.own_is_full) ?
		RD_KAFKA_RESP_ERR__QUEUE_FULL : kafka.at_once ? kafka.at_once(produced) : 0;
	if (error)
		return rd_kafka_error_new(error, "%s", "");
	produced->in_flight = true;
	produced->produced_ns = alarms_now_ns(ALARM_BOOT);
	kafka.nr_in_flight++;
	kafka.nr_produced++;
	return NULL;
}

static unsigned int report_map_writes(void)
{
	unsigned int nr = kafka.nr_map_writes, i;
	void *writes[FAKE_MAP_WRITES_MAX];

	memcpy(writes, kafka.map_writes, nr * sizeof(writes[0]));
	kafka.nr_map_writes = 0;
	for (i = 0; i < nr; i++) {
		rd_kafka_message_t message = { ._private = writes[i], .err = kafka.map_error };

		relay_send_report(NULL, &message, kafka.relay);
	}
	return nr;
}

static void report_with(size_t i, rd_kafka_message_t *message)
{
	ASSERT(kafka.produced[i].in_flight);
	message->_private = kafka.produced[i].opaque;
	kafka.produced[i].in_flight = false;
	kafka.nr_in_flight--;
	kafka.nr_events++;
	kafka.reported = &kafka.produced[i];
	relay_send_report(NULL, message, kafka.relay);
}

void fake_report(size_t i, rd_kafka_resp_err_t error)
{
	report_with(i, &(rd_kafka_message_t){ .err = error });
}

void fake_report_inferred(size_t i)
{
	report_with(i, &(rd_kafka_message_t){ .offset = RD_KAFKA_OFFSET_INVALID });
}

void fake_report_all(const char *topic, rd_kafka_resp_err_t error)
{
	size_t nr = kafka.nr_produced, i;

	for (i = 0; i < nr; i++)
		if (kafka.produced[i].in_flight &&
		    (!topic || !strcmp(kafka.produced[i].topic, topic)))
			fake_report(i, error);
}

size_t fake_count(const char *topic, bool in_flight)
{
	size_t nr = 0, i;

	for (i = 0; i < kafka.nr_produced; i++)
		nr += !strcmp(kafka.produced[i].topic, topic) &&
			kafka.produced[i].in_flight >= in_flight;
	return nr;
}

const char *fake_header(size_t i, const char *name)
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
	/* Other records are reported by tests, whoever writes them. */
	if (client == fake_own_producer())
		return report_map_writes();
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
	return kafka.status;
}

int64_t rd_kafka_message_latency(const rd_kafka_message_t *message)
{
	(void)message;
	return kafka.reported ?
		(alarms_now_ns(ALARM_BOOT) - kafka.reported->produced_ns) / 1000 : 0;
}

/* --- partitions ----------------------------------------------------------------------- */

struct fake_partition *fake_partition(const char *topic, int32_t number)
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

static struct fake_partition *partition_of(const rd_kafka_topic_partition_t *partition)
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
		partition_of(&list->elems[i])->paused = true;
	return 0;
}

rd_kafka_resp_err_t rd_kafka_resume_partitions(rd_kafka_t *client,
					       rd_kafka_topic_partition_list_t *list)
{
	int i;

	(void)client;
	kafka.nr_resume_calls++;
	for (i = 0; i < list->cnt; i++)
		partition_of(&list->elems[i])->paused = false;
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
			partition_of(&list->elems[i])->seek = list->elems[i].offset;
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
		struct fake_partition *from = partition_of(to);

		free(to->metadata);
		to->metadata = strdup(from->text);
		to->metadata_size = strlen(from->text);
		to->offset = from->error ? RD_KAFKA_OFFSET_INVALID : from->committed;
		to->err = from->error;
		if (from->nr_errors && !--from->nr_errors)
			from->error = 0;
	}
	if (kafka.at_committed)
		kafka.at_committed();
	return 0;
}

rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t *client,
				    const rd_kafka_topic_partition_list_t *list)
{
	(void)client;
	kafka.nr_assigned = list ? list->cnt : 0;
	return 0;
}

rd_kafka_resp_err_t rd_kafka_assignment(rd_kafka_t *client,
					rd_kafka_topic_partition_list_t **list)
{
	(void)client;
	*list = rd_kafka_topic_partition_list_new(0);
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
	*high = strstr(topic, "-done") ? *low + kafka.nr_map : INT32_MAX;
	if (strstr(topic, "-cancelled"))
		*high = *low + kafka.nr_ids;
	return 0;
}

/* Only for the ends of a log. */
rd_kafka_resp_err_t rd_kafka_offsets_for_times(rd_kafka_t *client,
					       rd_kafka_topic_partition_list_t *list,
					       int timeout_ms)
{
	int64_t low, high;
	int i;

	(void)timeout_ms;
	for (i = 0; i < list->cnt; i++) {
		rd_kafka_topic_partition_t *part = &list->elems[i];

		rd_kafka_get_watermark_offsets(client, part->topic, part->partition, &low, &high);
		part->offset = part->offset == RD_KAFKA_OFFSET_BEGINNING ? low : high;
	}
	return 0;
}

/* Revokes nothing, as after a fatal error. */
rd_kafka_resp_err_t rd_kafka_consumer_close(rd_kafka_t *client)
{
	(void)client;
	return 0;
}

/* --- what the relay asks before it reads or writes ------------------------------------------ */

rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *client, const char *name,
				     rd_kafka_topic_conf_t *conf)
{
	(void)client;
	(void)conf;
	return (rd_kafka_topic_t *)strdup(name);
}

void rd_kafka_topic_destroy(rd_kafka_topic_t *topic)
{
	free(topic);
}

rd_kafka_resp_err_t rd_kafka_metadata(rd_kafka_t *client, int all, rd_kafka_topic_t *topic,
				      const struct rd_kafka_metadata **metadata, int timeout_ms)
{
	struct rd_kafka_metadata *answer = calloc(1, sizeof(*answer));

	(void)client;
	(void)all;
	(void)topic;
	(void)timeout_ms;
	answer->topic_cnt = 1;
	answer->topics = calloc(1, sizeof(*answer->topics));
	answer->topics[0].err = kafka.topic_error;
	*metadata = answer;
	return 0;
}

void rd_kafka_metadata_destroy(const struct rd_kafka_metadata *metadata)
{
	free(metadata->topics);
	free((void *)metadata);
}

static void ask(int32_t partition)
{
	if (kafka.nr_asked < FAKE_PARTITIONS_MAX)
		kafka.asked[kafka.nr_asked++] = partition;
}

int rd_kafka_consume_start_queue(rd_kafka_topic_t *topic, int32_t partition, int64_t offset,
				 rd_kafka_queue_t *queue)
{
	(void)queue;
	if (strstr((const char *)topic, "-cancelled"))
		ask(partition);
	if (strstr((const char *)topic, "-done")) {
		ASSERT_EQ(offset, RD_KAFKA_OFFSET_BEGINNING);
		kafka.nr_map_read = 0;
	}
	return 0;
}

int rd_kafka_consume_stop(rd_kafka_topic_t *topic, int32_t partition)
{
	(void)topic;
	(void)partition;
	return 0;
}

rd_kafka_resp_err_t rd_kafka_seek(rd_kafka_topic_t *topic, int32_t partition, int64_t offset,
				  int timeout_ms)
{
	(void)topic;
	(void)offset;
	ASSERT_EQ(timeout_ms, 0);
	ask(partition);
	return 0;
}

static bool take_asked(int32_t *partition)
{
	unsigned int i;

	for (i = 0; i < kafka.nr_asked; i++) {
		*partition = kafka.asked[i];
		if (kafka.stands_still && !*partition)
			continue;
		kafka.asked[i] = kafka.asked[--kafka.nr_asked];
		return true;
	}
	return false;
}

void fake_map_add(const struct piece_key *key, const struct piece *piece)
{
	struct fake_map_record *record = &kafka.map[kafka.nr_map++];

	ASSERT_LE(kafka.nr_map, FAKE_MAP_MAX);
	record->key_len = piece_key_write(key, record->key);
	record->value_len = piece ? piece_write(piece, key->begin == PIECE_LOW, record->value) : 0;
}

static rd_kafka_message_t *read_map(void)
{
	static rd_kafka_message_t message;
	struct fake_map_record *record = &kafka.map[kafka.nr_map_read];

	message = (rd_kafka_message_t){ .offset = kafka.nr_map_read };
	if (kafka.nr_map_read + 1 == kafka.nr_map && kafka.map_read_error) {
		message.err = kafka.map_read_error;
		kafka.map_read_error = 0;
	} else if (kafka.nr_map_read == kafka.nr_map) {
		message.err = RD_KAFKA_RESP_ERR__PARTITION_EOF;
	} else {
		message.key = record->key;
		message.key_len = record->key_len;
		message.payload = record->value_len ? record->value : NULL;
		message.len = record->value_len;
		kafka.nr_map_read++;
	}
	return &message;
}

/*
 * Of the map, its records. Of the topic of ids that were taken back, the end of each partition
 * that was seeked to it, or an id.
 */
rd_kafka_message_t *rd_kafka_consume_queue(rd_kafka_queue_t *queue, int timeout_ms)
{
	static rd_kafka_message_t message;
	int32_t partition;

	/* The map is read by a thread, which may wait. */
	if (timeout_ms)
		return read_map();
	(void)queue;
	if (!take_asked(&partition))
		return NULL;
	message = (rd_kafka_message_t){ .partition = partition };
	if (kafka.ids_keep_coming) {
		message.key = "id";
		message.key_len = strlen("id");
		message.payload = "1";
		message.len = 1;
		message.offset = kafka.nr_ids++;
	} else {
		message.err = RD_KAFKA_RESP_ERR__PARTITION_EOF;
		message.offset = kafka.nr_ids;
	}
	return &message;
}

void rd_kafka_message_destroy(rd_kafka_message_t *message)
{
	(void)message;
}

void rd_kafka_queue_io_event_enable(rd_kafka_queue_t *queue, int fd, const void *payload,
				    size_t size)
{
	(void)queue;
	(void)fd;
	(void)payload;
	(void)size;
}

rd_kafka_consumer_group_metadata_t *rd_kafka_consumer_group_metadata(rd_kafka_t *client)
{
	(void)client;
	return rd_kafka_consumer_group_metadata_new_with_genid("group", kafka.generation, "member",
							       NULL);
}

rd_kafka_resp_err_t rd_kafka_purge(rd_kafka_t *client, int flags)
{
	if (client == fake_own_producer())
		kafka.own_purged |= flags;
	else if (!client)
		kafka.purged |= flags;
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
	bool is_read = (const void *)fake_message == message;

	*type = kafka.broker_stamps ? RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME :
				      RD_KAFKA_TIMESTAMP_CREATE_TIME;
	return is_read ? fake_message->timestamp_ms : kafka.report_stamp_ms;
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

static struct fake_commit *add_commit(const rd_kafka_topic_partition_list_t *list)
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

static void store_offset(const rd_kafka_topic_partition_t *committed)
{
	struct fake_partition *partition = partition_of(committed);

	ASSERT_LT(committed->metadata_size, FAKE_TEXT_MAX);
	partition->committed = committed->offset;
	snprintf(partition->text, sizeof(partition->text), "%.*s",
		 (int)committed->metadata_size, (const char *)committed->metadata ?: "");
}

void fake_drop_commit(void)
{
	ASSERT_EQ(kafka.nr_unanswered, 1);
	kafka.nr_unanswered = 0;
	rd_kafka_topic_partition_list_destroy(kafka.commits[0].list);
}

void fake_answer_commit(rd_kafka_resp_err_t error)
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
			store_offset(&list->elems[i]);
	}
	commit.report(NULL, error, list, kafka.relay);
	rd_kafka_topic_partition_list_destroy(list);
}

void fake_answer_commits(rd_kafka_resp_err_t error)
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
	add_commit(list);
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
	add_commit(list)->report = report;
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
