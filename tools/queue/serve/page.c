// SPDX-License-Identifier: GPL-2.0
/* The page /metrics of the queue. The tables below are in the order of the page. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/util.h"
#include "common/version.h"
#include "metrics/text.h"
#include "queue/jobs/queue.h"
#include "queue/serve/page.h"
#include "queue/store/fault.h"
#include "queue/store/space.h"
#include "queue/store/stats.h"

#define QUEUE(field)	.offset = offsetof(struct queue_stats, field)
#define STORE(field)	.offset = offsetof(struct store_stats, field)
#define TUBE(field)	.offset = offsetof(struct tube_stats, field)

static const struct page_sample queue_samples[] = {
	{ "twheelq_uptime_seconds", "gauge", "Time since the daemon was started.", "",
	  QUEUE(uptime_ns), UNIT_NS },
	{ "twheelq_draining", "gauge", "1 while puts are refused (SIGUSR1).", "",
	  QUEUE(draining), UNIT_BOOL },
	{ "twheelq_jobs", "gauge", "Jobs by state.", "{state=\"ready\"}", QUEUE(ready) },
	{ "twheelq_jobs", NULL, NULL, "{state=\"reserved\"}", QUEUE(reserved) },
	{ "twheelq_jobs", NULL, NULL, "{state=\"delayed\"}", QUEUE(delayed) },
	{ "twheelq_jobs", NULL, NULL, "{state=\"buried\"}", QUEUE(buried) },
	{ "twheelq_urgent_jobs", "gauge", "Ready jobs with a priority below 1024.", "",
	  QUEUE(urgent) },
	{ "twheelq_tubes", "gauge", "Tubes.", "", QUEUE(tubes) },
	{ "twheelq_tubes_max", "gauge", "At this number of tubes no new ones are made.", "",
	  QUEUE(max_tubes) },
	{ "twheelq_schedules", "gauge", "Schedules, which put jobs again and again.", "",
	  QUEUE(schedules) },
	{ "twheelq_resident_jobs", "gauge", "Jobs that are in memory.", "", QUEUE(resident) },
	{ "twheelq_resident_bytes", "gauge", "Memory of these jobs.", "",
	  QUEUE(resident_bytes) },
	{ "twheelq_connections", "gauge", "Open connections.", "",
	  QUEUE(connections) },
	{ "twheelq_producers", "gauge", "Open connections that have put a job.", "",
	  QUEUE(producers) },
	{ "twheelq_workers", "gauge", "Open connections that have asked for a job.", "",
	  QUEUE(workers) },
	{ "twheelq_waiting_connections", "gauge", "Open connections that wait for a job.", "",
	  QUEUE(waiting) },
	{ "twheelq_connections_total", "counter", "Connections opened.", "",
	  QUEUE(total_connections) },
	{ "twheelq_jobs_put_total", "counter", "Jobs put.", "", QUEUE(total_jobs) },
	{ "twheelq_job_timeouts_total", "counter", "Reservations whose time to run has ended.",
	  "", QUEUE(job_timeouts) },
	{ "twheelq_retries_total", "counter", "Failed attempts that are retried.", "",
	  QUEUE(retries) },
	{ "twheelq_dead_total", "counter", "Jobs whose last attempt failed.", "",
	  QUEUE(dead) },
	{ "twheelq_puts_refused_total", "counter", "Puts answered with OUT_OF_MEMORY.", "",
	  QUEUE(refused_full) },
	{ "twheelq_jobs_loaded_total", "counter", "Jobs loaded from disk into memory.", "",
	  QUEUE(loaded) },
	{ "twheelq_jobs_evicted_total", "counter", "Jobs evicted from memory; they stay on disk.",
	  "", QUEUE(evicted) },
};

static const struct page_sample store_samples[] = {
	{ "twheelq_store_changes_total", "counter", "Records written to the store.", "",
	  STORE(changes) },
	{ "twheelq_store_syncs_total", "counter", "Syncs of its log.", "",
	  STORE(syncs) },
	{ "twheelq_store_sync_seconds_total", "counter", "Duration of all these syncs.", "",
	  STORE(sync_ns), UNIT_NS },
	{ "twheelq_store_sync_max_seconds", "gauge", "Duration of the longest sync.", "",
	  STORE(sync_max_ns), UNIT_NS },
	{ "twheelq_store_slow_syncs_total", "counter", "Syncs that took 100 ms or more.", "",
	  STORE(slow_syncs) },
	{ "twheelq_store_disk_bytes", "gauge", "Disk space of the store.", "",
	  STORE(disk_bytes) },
	{ "twheelq_store_free_bytes", "gauge", "Free space of its file system.", "",
	  STORE(free_bytes) },
	{ "twheelq_store_least_free_bytes", "gauge", "With less free space, puts are refused.", "",
	  STORE(least_bytes) },
	{ "twheelq_store_damaged", "gauge", "1 if damage was found since the start.", "",
	  STORE(damaged) },
	{ "twheelq_store_scrubs_total", "counter",
	  "Complete reads in the background, to find damage.", "", STORE(scrubs) },
	{ "twheelq_store_scrubbed_bytes_total", "counter", "Bytes read by these.", "",
	  STORE(scrubbed_bytes) },
	{ "twheelq_store_memory_bytes", "gauge", "Memory of its buffers and caches.", "",
	  STORE(memory_bytes) },
};

/* Samples of each tube; @labels follows the label with its name. */
static const struct page_sample tube_samples[] = {
	{ "twheelq_tube_jobs", "gauge", "Jobs of a tube by state.", ",state=\"ready\"",
	  TUBE(ready) },
	{ "twheelq_tube_jobs", NULL, NULL, ",state=\"reserved\"", TUBE(reserved) },
	{ "twheelq_tube_jobs", NULL, NULL, ",state=\"delayed\"", TUBE(delayed) },
	{ "twheelq_tube_jobs", NULL, NULL, ",state=\"buried\"", TUBE(buried) },
	{ "twheelq_tube_urgent_jobs", "gauge",
	  "Ready jobs of a tube with a priority below 1024.", "", TUBE(urgent) },
	{ "twheelq_tube_waiting_connections", "gauge",
	  "Open connections that wait for a job of a tube.", "", TUBE(waiting) },
	{ "twheelq_tube_oldest_ready_seconds", "gauge",
	  "How long the oldest ready job of a tube has been ready.", "", TUBE(oldest_ready_s) },
	{ "twheelq_tube_jobs_put_total", "counter", "Jobs put into a tube.", "",
	  TUBE(total) },
	{ "twheelq_tube_attempts_total", "counter", "Jobs of a tube given to workers.", "",
	  TUBE(reserves) },
	{ "twheelq_tube_retries_total", "counter",
	  "Failed attempts of jobs of a tube that are retried.", "", TUBE(retries) },
	{ "twheelq_tube_dead_total", "counter",
	  "Jobs of a tube whose last attempt failed.", "", TUBE(dead) },
};

static void write_info(FILE *out, struct alarms *alarms)
{
	page_head(out, "twheelq_build_info", "gauge", "The version of twheelq; always 1.");
	fputs("twheelq_build_info{version=\"", out);
	page_label(out, TWHEEL_VERSION);
	fputs("\"} 1\n", out);
	page_head(out, "twheelq_wheel_info", "gauge",
		  "The timing wheel, of the device or in the process; always 1.");
	fputs("twheelq_wheel_info{make=\"", out);
	page_label(out, alarms_name(alarms));
	fputs("\"} 1\n", out);
}

static void write_commands(FILE *out, const struct protocol *protocol)
{
	unsigned int op;

	page_head(out, "twheelq_commands_total", "counter", "Commands run.");
	for (op = 0; op < NR_OPS; op++)
		fprintf(out, "twheelq_commands_total{command=\"%s\"} %" PRIu64 "\n",
			op == OP_UNKNOWN ? "unknown" : command_name(op), protocol->commands[op]);
}

/* --- lateness ------------------------------------------------------------------------- */

static void write_lateness(FILE *out, const struct queue_stats *stats)
{
	page_head(out, "twheelq_lateness_seconds", "histogram",
		  "Time from when a delayed job is due until it is ready, or reserved.");
	page_histogram(out, "twheelq_lateness_seconds", "ready", &stats->ready_late);
	page_histogram(out, "twheelq_lateness_seconds", "reserved", &stats->reserved_late);
	page_head(out, "twheelq_lateness_max_seconds", "gauge",
		  "The greatest lateness since the start.");
	fputs("twheelq_lateness_max_seconds{to=\"ready\"} ", out);
	page_seconds(out, stats->ready_late.max_ns);
	fputs("twheelq_lateness_max_seconds{to=\"reserved\"} ", out);
	page_seconds(out, stats->reserved_late.max_ns);
}

/* --- tubes ---------------------------------------------------------------------------- */

/**
 * struct tubes - the tubes that have metrics of their own
 * @nr: their number.
 * @left_out: the number of the other tubes.
 * @tube: a copy of the numbers of each, with its name in @name.
 * @name: their names.
 */
struct tubes {
	size_t nr;
	uint64_t left_out;
	struct tube_stats tube[METRICS_MAX_TUBES];
	char name[METRICS_MAX_TUBES][TUBE_NAME_MAX + 1];
};

static void add_tube(void *context, const struct tube_stats *stats)
{
	struct tubes *tubes = context;

	if (tubes->nr == METRICS_MAX_TUBES) {
		tubes->left_out++;
		return;
	}
	tubes->tube[tubes->nr] = *stats;
	snprintf(tubes->name[tubes->nr], sizeof(tubes->name[0]), "%s", stats->name);
	tubes->nr++;
}

/* One sample of each tube. */
static void write_tube_sample(FILE *out, const struct page_sample *sample,
			      const struct tubes *tubes)
{
	size_t i;

	for (i = 0; i < tubes->nr; i++) {
		fprintf(out, "%s{tube=\"", sample->name);
		page_label(out, tubes->name[i]);
		fprintf(out, "\"%s} ", sample->labels);
		page_number(out, sample, &tubes->tube[i]);
	}
}

static void write_tubes(FILE *out, const struct tubes *tubes)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tube_samples); i++) {
		const struct page_sample *sample = &tube_samples[i];

		if (sample->type)
			page_head(out, sample->name, sample->type, sample->help);
		write_tube_sample(out, sample, tubes);
	}
	page_head(out, "twheelq_tubes_left_out", "gauge",
		  "Tubes without metrics of their own: there are too many.");
	fprintf(out, "twheelq_tubes_left_out %" PRIu64 "\n", tubes->left_out);
}

/* It must stay cheap: it is worked out for each request. */
const char *metrics_health(const struct queue *queue, struct store *store)
{
	if (store_is_damaged(store))
		return "damage was found in the store; see the log\n";
	if (!store_has_room(store))
		return "the disk is full: puts are refused\n";
	if (queue_is_draining(queue))
		return "draining: puts are refused\n";
	return NULL;
}

int metrics_page_write(FILE *out, const struct protocol *protocol, struct store *store,
		       struct alarms *alarms)
{
	struct tubes *tubes = calloc(1, sizeof(*tubes));
	struct queue_stats stats;
	struct store_stats disk;

	queue_stats(protocol->queue, &stats);
	store_stats(store, &disk);
	write_info(out, alarms);
	page_samples(out, queue_samples, ARRAY_SIZE(queue_samples), &stats);
	write_commands(out, protocol);
	write_lateness(out, &stats);
	page_samples(out, store_samples, ARRAY_SIZE(store_samples), &disk);
	if (!tubes)
		return -ENOMEM;
	queue_each_tube(protocol->queue, add_tube, tubes);
	write_tubes(out, tubes);
	free(tubes);
	return 0;
}
