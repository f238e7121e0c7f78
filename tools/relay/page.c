// SPDX-License-Identifier: GPL-2.0
/*
 * The relay's page of metrics, and its health.
 *
 * The number of lines is bounded: of targets, the first RELAY_LABELS_MAX have lines of their own,
 * and all others are counted together.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/param.h>

#include "common/util.h"
#include "common/version.h"
#include "metrics/text.h"
#include "relay/cancels.h"
#include "relay/clocks.h"
#include "relay/lag.h"
#include "relay/map.h"
#include "relay/page.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/state.h"

static const char *const action_names[RELAY_ACTIONS] = {
	[RELAY_REFUSE] = "invalid",
	[RELAY_PARK] = "bucket",
	[RELAY_DELIVER] = "target",
	[RELAY_BURY] = "dead",
	[RELAY_TAKE_BACK] = "cancelled",
};

/* What the targets without a label are called: this is no name of a topic. */
#define OTHER_TARGETS	"(other)"

/* Commits that have failed for this time are unhealthy. */
#define COMMITS_FAIL_MS	60000

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
	uint64_t horizon_ns;
	uint64_t cancels;
	uint64_t map_pieces;
	uint64_t map_bytes;
	uint64_t ahead_ns;
	uint64_t behind_ns;
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
	{ "twheel_relay_horizon_seconds", "gauge",
	  "The horizon. All relays of a group should have the same.", "",
	  NUMBERS(horizon_ns), UNIT_NS },
	{ "twheel_relay_cancels", "gauge",
	  "Ids of records that are taken back, and are known at the moment.", "",
	  NUMBERS(cancels) },
	{ "twheel_relay_map_pieces", "gauge", "Pieces of the map of done records.", "",
	  NUMBERS(map_pieces) },
	{ "twheel_relay_map_bytes", "gauge", "Memory of these pieces.", "",
	  NUMBERS(map_bytes) },
	{ "twheel_relay_clock_difference_seconds", "gauge",
	  "How far clocks of brokers were from this machine's, at least, in the last two minutes.",
	  "{brokers=\"ahead\"}", NUMBERS(ahead_ns), UNIT_NS },
	{ "twheel_relay_clock_difference_seconds", NULL, NULL, "{brokers=\"behind\"}",
	  NUMBERS(behind_ns), UNIT_NS },
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
	  "Records that may have been written twice.", "",
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
	{ "twheel_relay_kept_total", "counter",
	  "Partitions that were revoked and assigned again at once, and not read again.", "",
	  RELAY(stats.kept) },
	{ "twheel_relay_standstills_total", "counter",
	  "How often the relay did not run for half of session.timeout.ms.", "",
	  RELAY(stats.standstills) },
	{ "twheel_relay_gave_way_total", "counter",
	  "Records that were due soon, and parked because memory is short.", "",
	  RELAY(stats.gave_way) },
	{ "twheel_relay_parked_again_total", "counter",
	  "Records that were parked because their target cannot be written.", "",
	  RELAY(stats.parked_again) },
	{ "twheel_relay_cancelled_total", "counter",
	  "Records that were taken back, and not delivered.", "", RELAY(stats.cancelled) },
	{ "twheel_relay_cancelled_late_total", "counter",
	  "Requests to take a record back that came too late to be sure of it.", "",
	  RELAY(stats.cancelled_late) },
	{ "twheel_relay_turns_total", "counter", "Transactions that were committed.", "",
	  RELAY(stats.turns) },
	{ "twheel_relay_turns_aborted_total", "counter", "Transactions that were aborted.", "",
	  RELAY(stats.turns_aborted) },
};

static void count(struct relay *relay, struct numbers *numbers)
{
	struct clock_difference clocks = relay_clocks_get(relay);
	struct relay_partition *partition;
	struct relay_target *target;

	*numbers = (struct numbers){
		.ahead_ns = clocks.ahead_ms * NSEC_PER_MSEC,
		.behind_ns = clocks.behind_ms * NSEC_PER_MSEC,
		.uptime_ns = (relay_boot_ms() - relay->started_ms) * NSEC_PER_MSEC,
		.horizon_ns = relay->options.horizon_ms * NSEC_PER_MSEC,
		.cancels = relay_cancels_nr(relay),
	};
	if (relay->commits_fail_ms)
		numbers->commits_fail_ns = (relay_boot_ms() - relay->commits_fail_ms) *
			NSEC_PER_MSEC;
	RB_FOREACH(partition, relay_partitions, &relay->partitions) {
		numbers->partitions++;
		numbers->duplicates += partition->done - partition->done_committed;
		numbers->map_pieces += relay_map_pieces(partition);
		numbers->map_bytes += relay_map_bytes(partition);
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

/* --- targets -------------------------------------------------------------------------- */

static uint64_t written_to(const struct relay_target *target)
{
	return target->written;
}

static uint64_t parked_again_of(const struct relay_target *target)
{
	return target->parked_again;
}

static uint64_t held_for(const struct relay_target *target)
{
	return target->nr_held;
}

static uint64_t is_failing(const struct relay_target *target)
{
	return target->failing;
}

static uint64_t failing_seconds(const struct relay_target *target)
{
	return target->failing ? (relay_boot_ms() - target->failing_ms) / 1000 : 0;
}

/**
 * struct target_family - a number that each target has
 * @name: its name.
 * @type: its type.
 * @help: its help.
 * @value: the number of a target.
 * @freed: where the sum of targets that were freed is; 0: this has no sum.
 * @largest: of several targets, the largest number counts, and not the sum.
 */
struct target_family {
	const char *name;
	const char *type;
	const char *help;
	uint64_t (*value)(const struct relay_target *target);
	size_t freed;
	bool largest;
};

static const struct target_family target_families[] = {
	{ "twheel_relay_target_written_total", "counter",
	  "Records that were written to the topic and acknowledged.", written_to,
	  offsetof(struct relay, stats.written_other), false },
	{ "twheel_relay_target_parked_again_total", "counter",
	  "Records that were parked because the topic cannot be written.", parked_again_of,
	  offsetof(struct relay, stats.parked_again_other), false },
	{ "twheel_relay_target_held", "gauge",
	  "Records that wait in memory because the topic cannot be written.", held_for, 0, false },
	{ "twheel_relay_target_failing", "gauge", "1 if the topic cannot be written.", is_failing,
	  0, true },
	{ "twheel_relay_target_failing_seconds", "gauge",
	  "For how long the topic cannot be written, or 0.", failing_seconds, 0, true },
};

static void write_target(FILE *out, const char *family, const char *target, uint64_t value)
{
	fprintf(out, "%s{target=\"", family);
	page_label(out, target);
	fprintf(out, "\"} %" PRIu64 "\n", value);
}

static void write_target_family(FILE *out, struct relay *relay,
				const struct target_family *family)
{
	uint64_t other = family->freed ? *(uint64_t *)((char *)relay + family->freed) : 0;
	bool has_other = relay->nr_labels >= RELAY_LABELS_MAX;
	struct relay_target *target;

	page_head(out, family->name, family->type, family->help);
	RB_FOREACH(target, relay_targets, &relay->targets) {
		uint64_t value = family->value(target);

		if (target->labelled)
			write_target(out, family->name, target->name, value);
		else
			other = family->largest ? MAX(other, value) : other + value;
	}
	if (has_other)
		write_target(out, family->name, OTHER_TARGETS, other);
}

static void write_targets(FILE *out, struct relay *relay)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(target_families); i++)
		write_target_family(out, relay, &target_families[i]);
}

/* --- topics --------------------------------------------------------------------------- */

/* The topic of delays and buckets, also those of another horizon. */
#define TOPICS_MAX	(4 * RELAY_BUCKETS_MAX)

/**
 * struct topic - what was not read of a topic's partitions that are ours
 * @name: its name.
 * @waiting: records that wait behind a head whose width is not over.
 * @late: the others: they could be read now.
 */
struct topic {
	const char *name;
	uint64_t waiting;
	uint64_t late;
};

static struct topic *find_topic(struct topic topics[TOPICS_MAX], size_t *nr, const char *name)
{
	size_t i;

	for (i = 0; i < *nr; i++)
		if (!strcmp(topics[i].name, name))
			return &topics[i];
	if (*nr == TOPICS_MAX)
		return NULL;
	topics[*nr] = (struct topic){ .name = name };
	return &topics[(*nr)++];
}

static size_t count_topics(struct relay *relay, struct topic topics[TOPICS_MAX])
{
	struct relay_partition *partition;
	size_t nr = 0;

	RB_FOREACH(partition, relay_partitions, &relay->partitions) {
		struct topic *topic = find_topic(topics, &nr, partition->topic);
		int64_t lag = relay_lag(relay, partition);

		if (!topic || lag < 0)
			continue;
		if (partition->pauses & PAUSE_HEAD)
			topic->waiting += lag;
		else
			topic->late += lag;
	}
	return nr;
}

static void write_topics(FILE *out, struct relay *relay)
{
	struct topic topics[TOPICS_MAX];
	size_t nr = count_topics(relay, topics), i;

	page_head(out, "twheel_relay_topic_waiting", "gauge",
		  "Records that were not read because the width of their bucket is not over.");
	for (i = 0; i < nr; i++)
		fprintf(out, "twheel_relay_topic_waiting{topic=\"%s\"} %" PRIu64 "\n",
			topics[i].name, topics[i].waiting);
	page_head(out, "twheel_relay_topic_late", "gauge",
		  "Records that were not read, and could be.");
	for (i = 0; i < nr; i++)
		fprintf(out, "twheel_relay_topic_late{topic=\"%s\"} %" PRIu64 "\n",
			topics[i].name, topics[i].late);
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

uint64_t relay_page_oldest_s(const struct relay_partition *partition)
{
	const struct relay_entry *entry = TAILQ_FIRST(&partition->entries);
	int64_t timestamp_ms = entry ? entry->timestamp_ms :
		partition->reread_offset >= 0 ? partition->reread_timestamp_ms : -1;
	int64_t now_ms = relay_now_ms();

	if (timestamp_ms < 0 || timestamp_ms > now_ms)
		return 0;
	return (now_ms - timestamp_ms) / 1000;
}

static int64_t oldest_of(struct relay *relay, const struct relay_partition *partition)
{
	(void)relay;
	return relay_page_oldest_s(partition);
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

	for (i = 0; i < ARRAY_SIZE(partition_samples); i++) {
		page_head(out, partition_samples[i].name, "gauge", partition_samples[i].help);
		RB_FOREACH(partition, relay_partitions, &relay->partitions)
			fprintf(out, "%s{topic=\"%s\",partition=\"%" PRId32 "\"} %" PRId64 "\n",
				partition_samples[i].name, partition->topic, partition->number,
				partition_samples[i].value(relay, partition));
	}
}

/* --- health --------------------------------------------------------------------------- */

/* A target that cannot be written is not unhealthy: its records wait, and nothing else does. */
const char *relay_health(void *context)
{
	static char why[RELAY_TOPIC_MAX + 128];
	struct relay *relay = context;
	struct relay_partition *partition;

	RB_FOREACH(partition, relay_partitions, &relay->partitions) {
		if (!(partition->pauses & PAUSE_STOPPED))
			continue;
		snprintf(why, sizeof(why), "%s [%" PRId32 "] is stopped at offset %" PRId64
			 ", as records are missing; see the log, and twheel-relay skip\n",
			 partition->topic, partition->number, partition->next);
		return why;
	}
	if (relay->commits_fail_ms && relay_boot_ms() - relay->commits_fail_ms >= COMMITS_FAIL_MS)
		return "commits have failed for more than a minute; see the log\n";
	return NULL;
}

int relay_page_write(FILE *out, void *context)
{
	struct relay *relay = context;
	struct numbers numbers;

	relay_lag_ask(relay);
	count(relay, &numbers);
	write_info(out, relay);
	page_samples(out, number_samples, ARRAY_SIZE(number_samples), &numbers);
	page_samples(out, relay_samples, ARRAY_SIZE(relay_samples), relay);
	write_sent(out, relay);
	page_head(out, "twheel_relay_lateness_seconds", "histogram",
		  "From the due time of a record until its target acknowledged it.");
	page_histogram(out, "twheel_relay_lateness_seconds", "target", &relay->stats.late);
	write_targets(out, relay);
	write_topics(out, relay);
	write_partitions(out, relay);
	return 0;
}
