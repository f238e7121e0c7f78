// SPDX-License-Identifier: GPL-2.0
/*
 * Reads partitions up to their ends.
 *
 * A partition is over when the record before its end was read, or when its consumer is at the
 * end: the last offsets before that may be those of markers of transactions, which nobody gets.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "relay/cli/command.h"
#include "relay/cli/scan.h"

#define POLL_MS	1000

static int compare(const void *a, const void *b)
{
	const struct scan_part *left = a, *right = b;
	int order = strcmp(left->topic, right->topic);

	return order ?: (left->number > right->number) - (left->number < right->number);
}

static struct scan_part *find(struct scan_part *parts, size_t nr,
			      const rd_kafka_message_t *message)
{
	const struct scan_part key = {
		.topic = rd_kafka_topic_name(message->rkt), .number = message->partition,
	};

	return bsearch(&key, parts, nr, sizeof(*parts), compare);
}

static void stop_fetching(rd_kafka_t *client, const struct scan_part *part)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

	rd_kafka_topic_partition_list_add(list, part->topic, part->number);
	rd_kafka_pause_partitions(client, list);
	rd_kafka_topic_partition_list_destroy(list);
}

static size_t begin(rd_kafka_t *client, struct scan_part *parts, size_t nr)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(nr);
	rd_kafka_resp_err_t error;
	size_t i;

	for (i = 0; i < nr; i++) {
		parts[i].over = parts[i].from >= parts[i].to;
		if (!parts[i].over)
			rd_kafka_topic_partition_list_add(list, parts[i].topic,
							  parts[i].number)->offset = parts[i].from;
	}
	nr = list->cnt;
	error = nr ? rd_kafka_assign(client, list) : 0;
	rd_kafka_topic_partition_list_destroy(list);
	if (error)
		errx(EXIT_CANNOT, "cannot read: %s", rd_kafka_err2str(error));
	return nr;
}

/* Returns whether the partition is over with this. */
static bool handle(struct scan_part *part, const rd_kafka_message_t *message,
		   scan_record *record, void *context)
{
	if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
		return message->offset >= part->to;
	/* Retention has deleted its first records meanwhile. */
	if (message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) {
		warnx("%s [%d]: %s", part->topic, part->number, rd_kafka_message_errstr(message));
		return true;
	}
	if (message->err)
		errx(EXIT_CANNOT, "cannot read %s [%d]: %s", part->topic, part->number,
		     rd_kafka_message_errstr(message));
	if (message->offset >= part->to)
		return true;
	return !record(part, message, context) || message->offset == part->to - 1;
}

void scan(rd_kafka_t *client, struct scan_part *parts, size_t nr, scan_record *record,
	  void *context)
{
	uint64_t end_ms = command_now_ms() + COMMAND_TIMEOUT_MS;
	size_t left;

	qsort(parts, nr, sizeof(*parts), compare);
	left = begin(client, parts, nr);
	while (left) {
		rd_kafka_message_t *message = rd_kafka_consumer_poll(client, POLL_MS);
		struct scan_part *part;

		if (!message && command_now_ms() > end_ms)
			errx(EXIT_CANNOT, "brokers do not answer: %zu partitions are not read",
			     left);
		if (!message)
			continue;
		part = message->rkt ? find(parts, nr, message) : NULL;
		if (part && !part->over) {
			end_ms = command_now_ms() + COMMAND_TIMEOUT_MS;
			part->over = handle(part, message, record, context);
			left -= part->over;
			if (part->over)
				stop_fetching(client, part);
		} else if (!part && message->err) {
			warnx("kafka: %s", rd_kafka_message_errstr(message));
		}
		rd_kafka_message_destroy(message);
	}
	rd_kafka_assign(client, NULL);
}

struct relay_text scan_header(const rd_kafka_message_t *message, const char *name)
{
	struct relay_text text = { NULL, 0 };
	rd_kafka_headers_t *headers;
	const void *value;
	size_t len;

	if (rd_kafka_message_headers(message, &headers) ||
	    rd_kafka_header_get_last(headers, name, &value, &len))
		return text;
	/* A null value has a length of 0, and counts as a value. */
	return (struct relay_text){ value ?: "", value ? len : 0 };
}

int64_t scan_timestamp(const rd_kafka_message_t *message)
{
	rd_kafka_timestamp_type_t type;
	int64_t ms = rd_kafka_message_timestamp(message, &type);

	return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : ms;
}

int32_t scan_epoch(const rd_kafka_message_t *message)
{
#if RD_KAFKA_VERSION >= 0x02010000
	return rd_kafka_message_leader_epoch(message);
#else
	(void)message;
	return -1;
#endif
}
