// SPDX-License-Identifier: GPL-2.0
/*
 * Read all that comes to a topic, and count what is lost, early, late or comes twice.
 *
 * It reads committed records only, as consumers of librdkafka do by default. A record has come
 * when it is here: its lateness has all that happens from its due time until then. "all" is
 * printed when each record has come once, as records may come twice after that.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/time.h"
#include "relay/bench/load.h"

#define POLL_MS		50
#define QUIET_NS	NSEC_PER_SEC
#define BUCKET_US	100000
#define METADATA_MS	30000

/**
 * struct bucket - what came in 100 ms
 * @came: number of records.
 * @late: those of them that were late.
 * @most_us: the lateness of the latest one.
 */
struct bucket {
	uint64_t came;
	uint64_t late;
	int64_t most_us;
};

/**
 * struct ledger - what has come
 * @load: the command line.
 * @times: for each record, how often it came, up to 255.
 * @late_us: the lateness of those that came and are judged, in their order, the first time of each.
 * @nr_late: number of these.
 * @received: records that came.
 * @unique: those of them that had not come before.
 * @early: those that came before they were due.
 * @strange: those that nobody has produced.
 * @first_us: when the first one came, in us since 1970.
 * @last_us: the same of the last unique one.
 * @buckets: from the time of @first_us on.
 * @nr_buckets: number of them.
 */
struct ledger {
	const struct load *load;
	uint8_t *times;
	int64_t *late_us;
	uint64_t nr_late;
	uint64_t received;
	uint64_t unique;
	uint64_t early;
	uint64_t strange;
	uint64_t first_us;
	uint64_t last_us;
	struct bucket *buckets;
	size_t nr_buckets;
};

static void *get_zeroed(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory)
		err(2, "no memory for %zu x %zu bytes", nr, size);
	return memory;
}

/* --- what comes ----------------------------------------------------------------------- */

static struct bucket *bucket_of(struct ledger *ledger, uint64_t now_us)
{
	/* The clock may be set back. */
	size_t i = now_us > ledger->first_us ? (now_us - ledger->first_us) / BUCKET_US : 0;
	size_t nr = ledger->nr_buckets;

	if (i >= nr) {
		ledger->nr_buckets = 2 * (i + 1);
		ledger->buckets = realloc(ledger->buckets,
					  ledger->nr_buckets * sizeof(*ledger->buckets));
		if (!ledger->buckets)
			err(2, "buckets");
		memset(ledger->buckets + nr, 0, (ledger->nr_buckets - nr) * sizeof(struct bucket));
	}
	return &ledger->buckets[i];
}

static void note_lateness(struct ledger *ledger, uint64_t now_us, int64_t late_us)
{
	struct bucket *bucket = bucket_of(ledger, now_us);

	bucket->came++;
	bucket->late += late_us > (int64_t)ledger->load->late_ms * 1000;
	if (late_us > bucket->most_us)
		bucket->most_us = late_us;
	ledger->early += late_us < 0;
}

static void note_first_time(struct ledger *ledger, uint64_t number, uint64_t now_us,
			    int64_t late_us)
{
	if (number >= ledger->load->skip)
		ledger->late_us[ledger->nr_late++] = late_us;
	ledger->unique++;
	ledger->last_us = now_us;
	if (ledger->unique == ledger->load->count) {
		puts("all");
		fflush(stdout);
	}
}

static void receive(struct ledger *ledger, const rd_kafka_message_t *message)
{
	uint64_t now_us = time_now_ns(CLOCK_REALTIME) / NSEC_PER_USEC;
	struct stamp stamp;
	int64_t late_us;

	if (!ledger->received++)
		ledger->first_us = now_us;
	if (message->len < sizeof(stamp)) {
		ledger->strange++;
		return;
	}
	memcpy(&stamp, message->payload, sizeof(stamp));
	if (stamp.number >= ledger->load->count) {
		ledger->strange++;
		return;
	}
	late_us = now_us - stamp.due_ms * 1000;
	note_lateness(ledger, now_us, late_us);
	if (ledger->times[stamp.number] < UINT8_MAX)
		ledger->times[stamp.number]++;
	if (ledger->times[stamp.number] == 1)
		note_first_time(ledger, stamp.number, now_us, late_us);
}

/* --- reading --------------------------------------------------------------------------- */

/* All partitions, from their beginning. */
static void assign(rd_kafka_t *consumer, const char *topic)
{
	rd_kafka_topic_t *handle = rd_kafka_topic_new(consumer, topic, NULL);
	rd_kafka_topic_partition_list_t *partitions;
	const struct rd_kafka_metadata *metadata;
	rd_kafka_resp_err_t error = rd_kafka_metadata(consumer, 0, handle, &metadata, METADATA_MS);
	int i, nr;

	if (error)
		errx(1, "%s: %s", topic, rd_kafka_err2str(error));
	nr = metadata->topics[0].partition_cnt;
	if (!nr)
		errx(1, "there is no topic \"%s\"", topic);
	partitions = rd_kafka_topic_partition_list_new(nr);
	for (i = 0; i < nr; i++)
		rd_kafka_topic_partition_list_add(partitions, topic, i)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(consumer, partitions);
	rd_kafka_topic_partition_list_destroy(partitions);
	rd_kafka_metadata_destroy(metadata);
	rd_kafka_topic_destroy(handle);
}

static void read_all(struct ledger *ledger, rd_kafka_t *consumer)
{
	uint64_t quiet_since_ns = time_now_ns(CLOCK_MONOTONIC);
	rd_kafka_message_t *message;

	while (!load_ends || time_now_ns(CLOCK_MONOTONIC) - quiet_since_ns < QUIET_NS) {
		message = rd_kafka_consumer_poll(consumer, POLL_MS);
		if (!message)
			continue;
		if (message->err)
			warnx("%s", rd_kafka_message_errstr(message));
		else
			receive(ledger, message);
		rd_kafka_message_destroy(message);
		if (load_ends)
			quiet_since_ns = time_now_ns(CLOCK_MONOTONIC);
	}
}

/* --- results --------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

	return first < second ? -1 : first > second;
}

static void print(const char *name, double value, const char *unit)
{
	printf("result %s %.15g %s\n", name, value, unit);
}

static void print_lateness(const struct ledger *ledger)
{
	uint64_t nr = ledger->nr_late;

	if (!nr)
		return;
	qsort(ledger->late_us, nr, sizeof(*ledger->late_us), compare);
	print("p50", ledger->late_us[nr / 2] / 1e3, "ms");
	print("p99", ledger->late_us[nr * 99 / 100] / 1e3, "ms");
	print("p99.9", ledger->late_us[nr * 999 / 1000] / 1e3, "ms");
	print("max", ledger->late_us[nr - 1] / 1e3, "ms");
	print("last", ledger->last_us / 1e6, "s");
}

/* When it began, in us since 1970; how many came, how many of them late, the most late, in us. */
static void write_series(const struct ledger *ledger)
{
	FILE *file = fopen(ledger->load->series, "w");
	size_t i;

	if (!file)
		err(2, "%s", ledger->load->series);
	for (i = 0; i < ledger->nr_buckets; i++)
		if (ledger->buckets[i].came)
			fprintf(file, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n",
				ledger->first_us + i * BUCKET_US, ledger->buckets[i].came,
				ledger->buckets[i].late, ledger->buckets[i].most_us);
	if (fclose(file))
		err(2, "%s", ledger->load->series);
}

void load_ledger(const struct load *load)
{
	static const struct setting settings[] = {
		/* librdkafka demands one. Nothing is committed. */
		{ "group.id", "ledger" },
		{ "enable.auto.commit", "false" },
		{ NULL, NULL },
	};
	rd_kafka_t *consumer = load_client(load, RD_KAFKA_CONSUMER, settings);
	struct ledger ledger = {
		.load = load,
		.times = get_zeroed(load->count, sizeof(*ledger.times)),
		.late_us = get_zeroed(load->count, sizeof(*ledger.late_us)),
	};

	rd_kafka_poll_set_consumer(consumer);
	assign(consumer, load->topic);
	read_all(&ledger, consumer);
	print("received", ledger.received, "records");
	print("lost", load->count - ledger.unique, "records");
	print("duplicates", ledger.received - ledger.strange - ledger.unique, "records");
	print("early", ledger.early, "records");
	print("strange", ledger.strange, "records");
	print_lateness(&ledger);
	if (load->series)
		write_series(&ledger);
	rd_kafka_consumer_close(consumer);
	rd_kafka_destroy(consumer);
	free(ledger.times);
	free(ledger.late_us);
	free(ledger.buckets);
}
