// SPDX-License-Identifier: GPL-2.0
/* The relay's page of metrics. */
#include <inttypes.h>

#include "common/util.h"
#include "common/version.h"
#include "metrics/text.h"
#include "relay/lag.h"
#include "relay/page.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/state.h"

static const char *const action_names[RELAY_ACTIONS] = {
	[RELAY_REFUSE] = "invalid",
	[RELAY_PARK] = "bucket",
	[RELAY_DELIVER] = "target",
	[RELAY_BURY] = "dead",
};

/* --- numbers of the relay ------------------------------------------------------------- */

/**
 * struct numbers - values that are computed for each page
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
	{ "twheel_relay_uptime_seconds", "gauge", "Time since the relay was started.", "",
	  NUMBERS(uptime_ns), UNIT_NS },
	{ "twheel_relay_partitions", "gauge", "Partitions that are assigned to this relay.", "",
	  NUMBERS(partitions) },
	{ "twheel_relay_duplicates_possible", "gauge",
	  "Records done but not committed: if the relay is killed now, they are delivered again.",
	  "", NUMBERS(duplicates) },
	{ "twheel_relay_targets_failing", "gauge", "Topics that cannot be written.", "",
	  NUMBERS(failing) },
	{ "twheel_relay_records_held", "gauge",
	  "Records that wait for topics that cannot be written.", "",
	  NUMBERS(held) },
	{ "twheel_relay_commits_failing_seconds", "gauge",
	  "For how long commits have failed, or 0.", "", NUMBERS(commits_fail_ns), UNIT_NS },
};

static const struct page_sample relay_samples[] = {
	{ "twheel_relay_records", "gauge", "Records in memory.", "", RELAY(nr_entries) },
	{ "twheel_relay_near", "gauge", "Records that wait on the timing wheel.", "",
	  RELAY(nr_near) },
	{ "twheel_relay_bytes", "gauge", "Memory of the records in memory.", "",
	  RELAY(pressure.bytes) },
	{ "twheel_relay_bytes_cap", "gauge",
	  "Limit of the memory of records.", "", RELAY(pressure.cap) },
	{ "twheel_relay_paused", "gauge", "1 if partitions are paused because memory is short.",
	  "{kind=\"delays\"}", RELAY(pressure.paused[RELAY_INPUT]), UNIT_BOOL },
	{ "twheel_relay_paused", NULL, NULL, "{kind=\"buckets\"}",
	  RELAY(pressure.paused[RELAY_BUCKET]), UNIT_BOOL },
	{ "twheel_relay_in_flight", "gauge", "Records written and not acknowledged yet.", "",
	  RELAY(nr_sending) },
	{ "twheel_relay_write_errors_total", "counter",
	  "Attempts to write that failed.", "", RELAY(stats.send_errors) },
	{ "twheel_relay_write_unknown_total", "counter",
	  "Failed attempts whose record the broker may have written all the same.", "",
	  RELAY(stats.maybe_twice) },
	{ "twheel_relay_repeated_total", "counter",
	  "Records that were read again, and skipped.", "", RELAY(stats.repeated) },
	{ "twheel_relay_done_before_total", "counter",
	  "Records that another relay had done, and were skipped.", "",
	  RELAY(stats.done_before) },
	{ "twheel_relay_rebalances_total", "counter",
	  "Times that partitions were assigned or revoked.", "", RELAY(stats.rebalances) },
	{ "twheel_relay_commit_errors_total", "counter", "Commits that failed.", "",
	  RELAY(stats.commit_errors) },
	{ "twheel_relay_standstills_total", "counter",
	  "How often the relay did not run for half of session.timeout.ms.", "",
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
		numbers->duplicates += partition->done - partition->done_committed;
	}
	RB_FOREACH(target, relay_targets, &relay->targets) {
		numbers->failing += target->failing;
		numbers->held += target->nr_held;
	}
}

static void write_info(FILE *out, const struct relay *relay)
{
	page_head(out, "twheel_relay_info", "gauge",
		  "Version, timing wheel and topic; always 1.");
	fputs("twheel_relay_info{version=\"" TWHEEL_VERSION "\",wheel=\"", out);
	page_label(out, alarms_name(relay->alarms));
	fputs("\",topic=\"", out);
	page_label(out, relay->options.topic);
	fputs("\"} 1\n", out);
}

static void write_sent(FILE *out, const struct relay *relay)
{
	size_t i;

	page_head(out, "twheel_relay_written_total", "counter",
		  "Records that were written and acknowledged.");
	for (i = 0; i < RELAY_ACTIONS; i++)
		if (action_names[i])
			fprintf(out, "twheel_relay_written_total{to=\"%s\"} %" PRIu64 "\n",
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

/* The age of the record at the lowest offset that is not done, by its timestamp. */
static int64_t oldest_of(struct relay *relay, const struct relay_partition *partition)
{
	const struct relay_entry *entry = TAILQ_FIRST(&partition->entries);
	int64_t timestamp_ms = entry ? entry->timestamp_ms :
		partition->reread_offset >= 0 ? partition->reread_timestamp_ms : -1;
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
	{ "twheel_relay_partition_lag", "Records that were not read yet.", relay_lag },
	{ "twheel_relay_partition_pending",
	  "Records that were read and are not done.", pending_of },
	{ "twheel_relay_partition_done_above",
	  "Records that are done above the lowest one that is not done.", done_of },
	{ "twheel_relay_partition_oldest_seconds", "Age of the lowest record that is not done.",
	  oldest_of },
	{ "twheel_relay_partition_stopped",
	  "1 if the partition is stopped because records are missing.",
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

const char *relay_health(void *context)
{
	struct relay *relay = context;
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions)
		if (partition->pauses & PAUSE_STOPPED)
			return "a partition is stopped, as records are missing; see the log\n";
	return NULL;
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
	page_head(out, "twheel_relay_lateness_seconds", "histogram",
		  "From the due time of a record until its target acknowledged it.");
	page_histogram(out, "twheel_relay_lateness_seconds", "target", &relay->stats.late);
	write_partitions(out, relay);
	return 0;
}
