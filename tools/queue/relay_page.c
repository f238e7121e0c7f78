// SPDX-License-Identifier: GPL-2.0
/* The page of metrics of the relay. */
#include <inttypes.h>

#include "metrics_text.h"
#include "relay.h"
#include "util.h"
#include "version.h"

static const char *const action_names[RELAY_ACTIONS] = {
	[RELAY_REFUSE] = "invalid",
	[RELAY_PARK] = "bucket",
	[RELAY_DELIVER] = "target",
	[RELAY_BURY] = "dead",
};

/* --- numbers of the relay ------------------------------------------------------------- */

/**
 * struct numbers - what is worked out for a page
 */
struct numbers {
	uint64_t uptime_ns;
	uint64_t partitions;
	uint64_t duplicates;
	uint64_t failing;
	uint64_t held;
	uint64_t commits_fail_ns;
};

#define NUMBERS(field)	.offset = offsetof(struct numbers, field)
#define RELAY(field)	.offset = offsetof(struct relay, field)

static const struct page_sample number_samples[] = {
	{ "twheelq_relay_uptime_seconds", "gauge", "Time since the relay was started.", "",
	  NUMBERS(uptime_ns), UNIT_NS },
	{ "twheelq_relay_partitions", "gauge", "Partitions that are assigned to it.", "",
	  NUMBERS(partitions) },
	{ "twheelq_relay_duplicates_possible", "gauge",
	  "Records written and not known to Kafka as done: if it ends now, these come again.",
	  "", NUMBERS(duplicates) },
	{ "twheelq_relay_targets_failing", "gauge", "Topics that cannot be written.", "",
	  NUMBERS(failing) },
	{ "twheelq_relay_records_held", "gauge", "Records that wait for these.", "",
	  NUMBERS(held) },
	{ "twheelq_relay_commits_failing_seconds", "gauge",
	  "Since when commits fail; 0: they do not.", "", NUMBERS(commits_fail_ns), UNIT_NS },
};

static const struct page_sample relay_samples[] = {
	{ "twheelq_relay_records", "gauge", "Records in memory.", "", RELAY(nr_entries) },
	{ "twheelq_relay_near", "gauge", "Of these, those that wait on the timing wheel.", "",
	  RELAY(nr_near) },
	{ "twheelq_relay_bytes", "gauge", "What records in memory take.", "",
	  RELAY(pressure.bytes) },
	{ "twheelq_relay_bytes_cap", "gauge", "What they may take.", "", RELAY(pressure.cap) },
	{ "twheelq_relay_paused", "gauge", "1 if partitions are paused for want of memory.",
	  "{kind=\"delays\"}", RELAY(pressure.paused[RELAY_INPUT]), UNIT_BOOL },
	{ "twheelq_relay_paused", NULL, NULL, "{kind=\"buckets\"}",
	  RELAY(pressure.paused[RELAY_BUCKET]), UNIT_BOOL },
	{ "twheelq_relay_in_flight", "gauge", "Records written, but for the report.", "",
	  RELAY(nr_sending) },
	{ "twheelq_relay_write_errors_total", "counter",
	  "Records that could not be written, each time.", "", RELAY(stats.send_errors) },
	{ "twheelq_relay_write_unknown_total", "counter",
	  "Of these, those that may have been written all the same.", "",
	  RELAY(stats.maybe_twice) },
	{ "twheelq_relay_repeated_total", "counter",
	  "Records that were read again, and passed over.", "", RELAY(stats.repeated) },
	{ "twheelq_relay_done_before_total", "counter",
	  "Records that another relay had done, and were passed over.", "",
	  RELAY(stats.done_before) },
	{ "twheelq_relay_rebalances_total", "counter",
	  "Times that partitions were assigned or revoked.", "", RELAY(stats.rebalances) },
	{ "twheelq_relay_commit_errors_total", "counter", "Commits that failed.", "",
	  RELAY(stats.commit_errors) },
	{ "twheelq_relay_standstills_total", "counter",
	  "Times that it did not turn to its work for half a session.", "",
	  RELAY(stats.standstills) },
};

static void count(struct relay *relay, struct numbers *numbers)
{
	struct relay_partition *partition;
	struct relay_target *target;

	*numbers = (struct numbers){
		.uptime_ns = (relay_boot_ms() - relay->started_ms) * NSEC_PER_MSEC,
	};
	if (relay->commits_fail_ms)
		numbers->commits_fail_ns = (relay_boot_ms() - relay->commits_fail_ms) *
			NSEC_PER_MSEC;
	RB_FOREACH(partition, relay_partitions, &relay->partitions) {
		numbers->partitions++;
		numbers->duplicates += partition->done - partition->told;
	}
	RB_FOREACH(target, relay_targets, &relay->targets) {
		numbers->failing += target->failing;
		numbers->held += target->nr_held;
	}
}

static void write_info(FILE *out, const struct relay *relay)
{
	page_head(out, "twheelq_relay_info", "gauge",
		  "Version, timing wheel and topic; always 1.");
	fputs("twheelq_relay_info{version=\"" TWHEELQ_VERSION "\",wheel=\"", out);
	page_label(out, alarms_name(relay->alarms));
	fputs("\",topic=\"", out);
	page_label(out, relay->options.topic);
	fputs("\"} 1\n", out);
}

static void write_sent(FILE *out, const struct relay *relay)
{
	size_t i;

	page_head(out, "twheelq_relay_written_total", "counter", "Records that were written.");
	for (i = 0; i < RELAY_ACTIONS; i++)
		if (action_names[i])
			fprintf(out, "twheelq_relay_written_total{to=\"%s\"} %" PRIu64 "\n",
				action_names[i], relay->stats.sent[i]);
}

/* --- partitions ----------------------------------------------------------------------- */

static int64_t done_of(struct relay *relay, const struct relay_partition *partition)
{
	(void)relay;
	return watermark_done_above(&partition->mark);
}

static int64_t pending_of(struct relay *relay, const struct relay_partition *partition)
{
	(void)relay;
	return partition->mark.pending;
}

static int64_t stopped_of(struct relay *relay, const struct relay_partition *partition)
{
	(void)relay;
	return !!(partition->pauses & PAUSE_STOPPED);
}

/* The age of the lowest offset not done, by its record's timestamp. */
static int64_t oldest_of(struct relay *relay, const struct relay_partition *partition)
{
	const struct relay_entry *entry = TAILQ_FIRST(&partition->entries);
	int64_t timestamp_ms = entry ? entry->timestamp_ms :
		partition->awaited >= 0 ? partition->awaited_timestamp_ms : -1;
	int64_t now_ms = relay_now_ms();

	(void)relay;
	if (timestamp_ms < 0 || timestamp_ms > now_ms)
		return 0;
	return (now_ms - timestamp_ms) / 1000;
}

static const struct {
	const char *name;
	const char *help;
	int64_t (*value)(struct relay *relay, const struct relay_partition *partition);
} partition_samples[] = {
	{ "twheelq_relay_partition_lag", "Records that it has not read yet.", relay_lag },
	{ "twheelq_relay_partition_pending", "Records read and not done.", pending_of },
	{ "twheelq_relay_partition_done_above",
	  "Records done above the lowest that is not.", done_of },
	{ "twheelq_relay_partition_oldest_seconds", "Age of the lowest that is not done.",
	  oldest_of },
	{ "twheelq_relay_partition_stopped", "1 if it is stopped: records are gone.",
	  stopped_of },
};

static void write_partitions(FILE *out, struct relay *relay)
{
	struct relay_partition *partition;
	size_t i;

	relay_lag_ask(relay);
	for (i = 0; i < ARRAY_SIZE(partition_samples); i++) {
		page_head(out, partition_samples[i].name, "gauge", partition_samples[i].help);
		RB_FOREACH(partition, relay_partitions, &relay->partitions)
			fprintf(out, "%s{topic=\"%s\",partition=\"%" PRId32 "\"} %" PRId64 "\n",
				partition_samples[i].name, partition->topic, partition->number,
				partition_samples[i].value(relay, partition));
	}
}

int relay_page_write(FILE *out, void *context)
{
	struct relay *relay = context;
	struct numbers numbers;

	count(relay, &numbers);
	write_info(out, relay);
	page_samples(out, number_samples, ARRAY_SIZE(number_samples), &numbers);
	page_samples(out, relay_samples, ARRAY_SIZE(relay_samples), relay);
	write_sent(out, relay);
	page_head(out, "twheelq_relay_lateness_seconds", "histogram",
		  "From when a record was due to when its target had it.");
	page_histogram(out, "twheelq_relay_lateness_seconds", "target", &relay->stats.late);
	write_partitions(out, relay);
	return 0;
}
