// SPDX-License-Identifier: GPL-2.0
/*
 * Records in memory. They are copies: librdkafka's own record would keep everything in memory
 * that was fetched with it.
 *
 * @data has the headers first, in their order: of each the lengths of name and value, the name
 * with its NUL, and the value; then the key and the value of the record. The length of a null
 * value is -1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "relay/entry.h"
#include "relay/near.h"
#include "relay/state.h"
#include "relay/wake.h"

/* The overhead of malloc for an entry. */
#define MALLOC_BYTES	16

/**
 * struct header - a header of a record; points into the record
 */
struct header {
	const char *name;
	const char *value;
	int32_t name_len;
	int32_t value_len;
};

/* --- copying -------------------------------------------------------------------------- */

static bool message_header(const rd_kafka_headers_t *headers, size_t i, struct header *header)
{
	const void *value;
	size_t len;

	if (!headers || rd_kafka_header_get_all(headers, i, &header->name, &value, &len))
		return false;
	header->name_len = strlen(header->name);
	header->value = value;
	header->value_len = value ? (int32_t)len : -1;
	return true;
}

static size_t length(int32_t len)
{
	return len > 0 ? len : 0;
}

static size_t header_size(const struct header *header)
{
	return 2 * sizeof(int32_t) + header->name_len + 1 + length(header->value_len);
}

static size_t headers_size(const rd_kafka_headers_t *headers)
{
	struct header header;
	size_t size = 0, i;

	for (i = 0; message_header(headers, i, &header); i++)
		size += header_size(&header);
	return size;
}

static char *put(char *to, const void *from, size_t len)
{
	if (len)
		memcpy(to, from, len);
	return to + len;
}

static char *put_header(char *to, const struct header *header)
{
	to = put(to, &header->name_len, sizeof(header->name_len));
	to = put(to, &header->value_len, sizeof(header->value_len));
	to = put(to, header->name, header->name_len + 1);
	return put(to, header->value, length(header->value_len));
}

/* Read the header at @at. Returns where the next one begins. */
static const char *get_header(const char *at, struct header *header)
{
	memcpy(&header->name_len, at, sizeof(header->name_len));
	at += sizeof(header->name_len);
	memcpy(&header->value_len, at, sizeof(header->value_len));
	at += sizeof(header->value_len);
	header->name = at;
	at += header->name_len + 1;
	header->value = header->value_len < 0 ? NULL : at;
	return at + length(header->value_len);
}

/* librdkafka knows the leader epochs of records from 2.1 on. */
static int32_t epoch_of(const rd_kafka_message_t *message)
{
#if RD_KAFKA_VERSION >= 0x020100ff
	return rd_kafka_message_leader_epoch(message);
#else
	(void)message;
	return -1;
#endif
}

static void fill(struct relay_entry *entry, const rd_kafka_message_t *message,
		 const rd_kafka_headers_t *headers)
{
	rd_kafka_timestamp_type_t type;
	struct header header;
	char *to = entry->data;

	for (; message_header(headers, entry->nr_headers, &header); entry->nr_headers++)
		to = put_header(to, &header);
	entry->key = message->key ? to : NULL;
	entry->key_len = message->key ? (int32_t)message->key_len : -1;
	to = put(to, message->key, length(entry->key_len));
	entry->value = message->payload ? to : NULL;
	entry->value_len = message->payload ? (int32_t)message->len : -1;
	put(to, message->payload, length(entry->value_len));
	entry->offset = message->offset;
	entry->timestamp_ms = rd_kafka_message_timestamp(message, &type);
	if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE)
		entry->timestamp_ms = -1;
	entry->epoch = epoch_of(message);
}

struct relay_entry *relay_entry_new(struct relay *relay, const rd_kafka_message_t *message)
{
	rd_kafka_headers_t *headers = NULL;
	struct relay_entry *entry;
	size_t size;

	/* For a record without headers it returns an error, and @headers stays NULL. */
	rd_kafka_message_headers(message, &headers);
	/* One byte more, so that @value of an empty value points into the memory. */
	size = sizeof(*entry) + headers_size(headers) + message->key_len + message->len + 1;
	entry = malloc(size);
	if (!entry)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	entry->write = WRITE_ENTRY;
	entry->size = size + MALLOC_BYTES;
	fill(entry, message, headers);
	relay->nr_entries++;
	relay_pressure_add(&relay->pressure, entry->size);
	return entry;
}

void relay_entry_decided(struct relay_entry *entry)
{
	TAILQ_REMOVE(&entry->partition->undecided, entry, in_queue);
	entry->state = ENTRY_LOOSE;
	entry->partition->undecided_bytes -= entry->size;
}

void relay_entry_stays(struct relay *relay, struct relay_entry *entry)
{
	if (entry->gives_way)
		relay->leaving_bytes -= entry->size;
	entry->gives_way = false;
}

void relay_entry_free(struct relay *relay, struct relay_entry *entry)
{
	struct relay_partition *partition = entry->partition;

	relay_wake_never(relay, &entry->waker);
	if (entry->state == ENTRY_NEAR)
		relay_near_remove(relay, entry);
	relay_entry_stays(relay, entry);
	if (partition && entry->state == ENTRY_UNDECIDED)
		relay_entry_decided(entry);
	if (partition)
		TAILQ_REMOVE(&partition->entries, entry, in_partition);
	relay->nr_entries--;
	relay_pressure_sub(&relay->pressure, entry->size);
	free(entry);
}

/* --- headers -------------------------------------------------------------------------- */

struct relay_text relay_entry_header(const struct relay_entry *entry, const char *name)
{
	struct relay_text text = { NULL, 0 };
	const char *at = entry->data;
	struct header header;
	uint32_t i;

	for (i = 0; i < entry->nr_headers; i++) {
		at = get_header(at, &header);
		if (!strcmp(header.name, name))
			text = (struct relay_text){ header.value, length(header.value_len) };
	}
	return text;
}

/* Is this a header of the relay? It is not copied; the relay may write it again itself. */
static bool is_ours(const char *name)
{
	static const char *const names[] = {
		RELAY_DELIVER_AT, RELAY_DELAY, RELAY_TARGET, RELAY_ID, RELAY_ATTEMPT,
		RELAY_DUE, RELAY_PARKED, RELAY_ERROR, RELAY_TRIES, RELAY_HELD_SINCE,
		RELAY_TIMESTAMP,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Copy the headers that are not ours; those of a refused record all, but an older error. */
static rd_kafka_resp_err_t copy_headers(const struct relay_entry *entry,
					rd_kafka_headers_t *headers)
{
	bool whole = entry->decision.action == RELAY_REFUSE;
	const char *at = entry->data;
	rd_kafka_resp_err_t error = 0;
	struct header header;
	uint32_t i;

	for (i = 0; !entry->stripped && !error && i < entry->nr_headers; i++) {
		at = get_header(at, &header);
		if (whole ? strcmp(header.name, RELAY_ERROR) : !is_ours(header.name))
			error = rd_kafka_header_add(headers, header.name, header.name_len,
						    header.value, length(header.value_len));
	}
	return error;
}

static rd_kafka_resp_err_t add_text(rd_kafka_headers_t *headers, const char *name,
				    const char *text)
{
	return rd_kafka_header_add(headers, name, -1, text, strlen(text));
}

static rd_kafka_resp_err_t add_number(rd_kafka_headers_t *headers, const char *name,
				      uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return add_text(headers, name, text);
}

struct relay_text relay_entry_id(const struct relay_entry *entry, char place[RELAY_PLACE_MAX])
{
	struct relay_text id = relay_entry_header(entry, RELAY_ID);

	if (id.len)
		return id;
	id.len = snprintf(place, RELAY_PLACE_MAX, "%s-%" PRId32 "-%" PRId64,
			  entry->partition->topic, entry->partition->number, entry->offset);
	id.data = place;
	return id;
}

static rd_kafka_resp_err_t add_id(const struct relay_entry *entry, rd_kafka_headers_t *headers)
{
	char place[RELAY_PLACE_MAX];
	struct relay_text id = relay_entry_id(entry, place);

	return rd_kafka_header_add(headers, RELAY_ID, -1, id.data, id.len);
}

/* A refused record keeps its own id, if it had one. */
static rd_kafka_resp_err_t add_error(const struct relay_entry *entry,
				     rd_kafka_headers_t *headers)
{
	bool has_id = !entry->stripped && relay_entry_header(entry, RELAY_ID).len;

	return (has_id ? 0 : add_id(entry, headers)) ?:
		add_text(headers, RELAY_ERROR, entry->decision.reason);
}

/* The timestamp with which the record first appeared. */
static rd_kafka_resp_err_t add_timestamp(const struct relay_entry *entry,
					 rd_kafka_headers_t *headers)
{
	struct relay_text first = relay_entry_header(entry, RELAY_TIMESTAMP);

	if (first.len)
		return rd_kafka_header_add(headers, RELAY_TIMESTAMP, -1, first.data, first.len);
	if (entry->timestamp_ms < 0)
		return 0;
	return add_number(headers, RELAY_TIMESTAMP, entry->timestamp_ms);
}

/* How often its target could not be written, and since when. */
static rd_kafka_resp_err_t add_tries(const struct relay_entry *entry,
				     rd_kafka_headers_t *headers)
{
	if (!entry->decision.tries)
		return 0;
	return add_number(headers, RELAY_TRIES, entry->decision.tries) ?:
		add_number(headers, RELAY_HELD_SINCE, entry->decision.held_since_ms);
}

/*
 * The headers that the relay needs when it reads the parked record again. A record whose dead
 * letters cannot be written has that topic as its target.
 */
static rd_kafka_resp_err_t add_parked(const struct relay_entry *entry,
				      rd_kafka_headers_t *headers)
{
	struct relay_text target = relay_entry_header(entry, RELAY_TARGET);
	char name[RELAY_TOPIC_MAX + 1];

	snprintf(name, sizeof(name), "%.*s%s", (int)target.len, target.data,
		 entry->is_dead ? RELAY_DEAD_SUFFIX : "");
	return add_text(headers, RELAY_TARGET, name) ?:
		add_number(headers, RELAY_PARKED, relay_now_ms()) ?:
		add_tries(entry, headers);
}

static rd_kafka_resp_err_t add_ours(const struct relay_entry *entry,
				    rd_kafka_headers_t *headers)
{
	const struct relay_decision *decision = &entry->decision;

	if (decision->action == RELAY_REFUSE)
		return add_error(entry, headers);
	return add_id(entry, headers) ?:
		add_number(headers, RELAY_DUE, decision->due_ms) ?:
		add_number(headers, RELAY_ATTEMPT, decision->attempt) ?:
		add_timestamp(entry, headers) ?:
		(decision->action == RELAY_PARK ? add_parked(entry, headers) : 0);
}

rd_kafka_headers_t *relay_entry_headers(const struct relay_entry *entry)
{
	rd_kafka_headers_t *headers = rd_kafka_headers_new(entry->nr_headers + 8);

	if (headers && !copy_headers(entry, headers) && !add_ours(entry, headers))
		return headers;
	if (headers)
		rd_kafka_headers_destroy(headers);
	return NULL;
}
