// SPDX-License-Identifier: GPL-2.0
/* The replies to stats, stats-tube and stats-job. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/util.h"
#include "common/version.h"
#include "queue/jobs/job.h"
#include "queue/jobs/retry.h"
#include "queue/jobs/tube.h"
#include "queue/protocol/stats.h"
#include "queue/protocol/yaml.h"
#include "queue/store/counts.h"
#include "queue/store/dir.h"
#include "queue/store/read.h"
#include "queue/store/schedule.h"
#include "queue/store/stats.h"

/* --- the queue ------------------------------------------------------------------------ */

static void yaml_ops(struct yaml *yaml, const struct protocol *protocol,
		     const enum command_op *ops, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		fprintf(yaml->file, "cmd-%s: %llu\n", command_name(ops[i]),
			(unsigned long long)protocol->commands[ops[i]]);
}

/* With the names of beanstalkd, in its order. */
static void yaml_commands(struct yaml *yaml, const struct protocol *protocol)
{
	static const enum command_op ops[] = {
		OP_PUT, OP_PEEK, OP_PEEK_READY, OP_PEEK_DELAYED, OP_PEEK_BURIED, OP_RESERVE,
		OP_RESERVE_WITH_TIMEOUT, OP_DELETE, OP_RELEASE, OP_USE, OP_WATCH, OP_IGNORE,
		OP_BURY, OP_KICK, OP_TOUCH, OP_STATS, OP_STATS_JOB, OP_STATS_TUBE,
		OP_LIST_TUBES, OP_LIST_TUBE_USED, OP_LIST_TUBES_WATCHED, OP_PAUSE_TUBE,
	};

	yaml_ops(yaml, protocol, ops, ARRAY_SIZE(ops));
}

static void yaml_more_commands(struct yaml *yaml, const struct protocol *protocol)
{
	static const enum command_op ops[] = {
		OP_RESERVE_JOB, OP_KICK_JOB, OP_PUT_AT, OP_PUT_UNIQUE, OP_KEEP_UNIQUE,
		OP_RESCHEDULE, OP_FAIL, OP_POLICY, OP_LIST_JOBS, OP_EVERY, OP_EVERY_STOP,
		OP_LIST_EVERY, OP_PURGE, OP_BACKUP,
	};

	yaml_ops(yaml, protocol, ops, ARRAY_SIZE(ops));
}

static void yaml_times(struct yaml *yaml)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	fprintf(yaml->file, "rusage-utime: %ld.%06ld\nrusage-stime: %ld.%06ld\n",
		(long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec,
		(long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec);
}

static void yaml_machine(struct yaml *yaml, const struct queue *queue)
{
	struct utsname name;

	uname(&name);
	yaml_word(yaml, "id", queue->instance);
	yaml_text(yaml, "hostname", name.nodename, strlen(name.nodename));
	yaml_text(yaml, "os", name.version, strlen(name.version));
	yaml_word(yaml, "platform", name.machine);
}

static void yaml_lateness(struct yaml *yaml, const char *what,
			  const struct histogram *histogram)
{
	static const struct {
		const char *name;
		unsigned int permille;
	} points[] = { { "p50", 500 }, { "p99", 990 }, { "p999", 999 } };
	uint64_t max_us = histogram->max_ns / NSEC_PER_USEC, us;
	char key[64];
	size_t i;

	snprintf(key, sizeof(key), "%s-count", what);
	yaml_number(yaml, key, histogram->count);
	for (i = 0; i < ARRAY_SIZE(points); i++) {
		snprintf(key, sizeof(key), "%s-%s-us", what, points[i].name);
		us = histogram_permille_us(histogram, points[i].permille);
		yaml_number(yaml, key, us < max_us ? us : max_us);
	}
	snprintf(key, sizeof(key), "%s-max-us", what);
	yaml_number(yaml, key, max_us);
	for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!histogram->nr[i])
			continue;
		snprintf(key, sizeof(key), "%s-below-%llu-us", what,
			 (unsigned long long)histogram_limit_us(i));
		yaml_number(yaml, key, histogram->nr[i]);
	}
}

static void yaml_sync(struct yaml *yaml, const struct queue_config *config)
{
	switch (config->sync) {
	case SYNC_ALWAYS:
		yaml_word(yaml, "sync", "always");
		break;
	case SYNC_INTERVAL:
		fprintf(yaml->file, "sync: %llums\n",
			(unsigned long long)(config->sync_interval_ns / NSEC_PER_MSEC));
		break;
	case SYNC_NEVER:
		yaml_word(yaml, "sync", "never");
		break;
	}
}

/* Where "twheelq backup" finds the backups. */
static void yaml_directory(struct yaml *yaml, const struct queue *queue)
{
	char path[PATH_MAX];

	store_dir_path(queue->store, path, sizeof(path));
	yaml_text(yaml, "disk-directory", path, strlen(path));
}

/* Keys that beanstalkd does not have. */
static void yaml_own(struct yaml *yaml, const struct peer *peer, const struct queue_stats *stats)
{
	struct queue *queue = peer->session.queue;
	struct store_stats store;

	store_stats(queue->store, &store);
	yaml_more_commands(yaml, peer->protocol);
	yaml_word(yaml, "wheel", alarms_name(queue->alarms));
	yaml_sync(yaml, &queue->config);
	yaml_number(yaml, "tubes-max", stats->max_tubes);
	yaml_number(yaml, "current-schedules", stats->schedules);
	yaml_number(yaml, "jobs-in-memory", stats->resident);
	yaml_number(yaml, "jobs-in-memory-bytes", stats->resident_bytes);
	yaml_number(yaml, "jobs-loaded", stats->loaded);
	yaml_number(yaml, "jobs-evicted", stats->evicted);
	yaml_number(yaml, "retries", stats->retries);
	yaml_number(yaml, "dead", stats->dead);
	yaml_number(yaml, "refused-full", stats->refused_full);
	yaml_number(yaml, "syncs", store.syncs);
	yaml_number(yaml, "sync-max-us", store.sync_max_ns / 1000);
	yaml_directory(yaml, queue);
	yaml_number(yaml, "disk-bytes", store.disk_bytes);
	yaml_number(yaml, "disk-free-bytes", store.free_bytes);
	yaml_number(yaml, "disk-damaged", store.damaged);
	yaml_lateness(yaml, "due-to-ready", &stats->ready_late);
	yaml_lateness(yaml, "due-to-reserved", &stats->reserved_late);
}

void stats_of_queue(struct peer *peer)
{
	struct queue *queue = peer->session.queue;
	struct queue_stats stats;
	struct yaml yaml;

	if (!yaml_begin(&yaml, peer))
		return;
	queue_stats(queue, &stats);
	yaml_number(&yaml, "current-jobs-urgent", stats.urgent);
	yaml_number(&yaml, "current-jobs-ready", stats.ready);
	yaml_number(&yaml, "current-jobs-reserved", stats.reserved);
	yaml_number(&yaml, "current-jobs-delayed", stats.delayed);
	yaml_number(&yaml, "current-jobs-buried", stats.buried);
	yaml_commands(&yaml, peer->protocol);
	yaml_number(&yaml, "job-timeouts", stats.job_timeouts);
	yaml_number(&yaml, "total-jobs", stats.total_jobs);
	yaml_number(&yaml, "max-job-size", queue->config.max_job_size);
	yaml_number(&yaml, "current-tubes", stats.tubes);
	yaml_number(&yaml, "current-connections", stats.connections);
	yaml_number(&yaml, "current-producers", stats.producers);
	yaml_number(&yaml, "current-workers", stats.workers);
	yaml_number(&yaml, "current-waiting", stats.waiting);
	yaml_number(&yaml, "total-connections", stats.total_connections);
	yaml_number(&yaml, "pid", getpid());
	yaml_word(&yaml, "version", "\"" TWHEEL_VERSION "\"");
	yaml_times(&yaml);
	yaml_seconds(&yaml, "uptime", stats.uptime_ns);
	/* twheelq has no binlog. Clients of beanstalkd may read these keys all the same. */
	yaml_number(&yaml, "binlog-oldest-index", 0);
	yaml_number(&yaml, "binlog-current-index", 0);
	yaml_number(&yaml, "binlog-records-migrated", 0);
	yaml_number(&yaml, "binlog-records-written", 0);
	yaml_number(&yaml, "binlog-max-size", 0);
	yaml_word(&yaml, "draining", stats.draining ? "true" : "false");
	yaml_machine(&yaml, queue);
	yaml_own(&yaml, peer, &stats);
	yaml_say(&yaml, peer, 0);
}

/* --- a tube --------------------------------------------------------------------------- */

static uint64_t left_ns(uint64_t until_ns, uint64_t now_ns)
{
	return until_ns > now_ns ? until_ns - now_ns : 0;
}

static void yaml_policy(struct yaml *yaml, const struct tube *tube)
{
	struct retry_policy policy = retry_policy_of(tube);

	yaml_word(yaml, "policy", tube->policy.max_attempts ? "set" : "default");
	yaml_number(yaml, "policy-max-attempts", policy.max_attempts);
	yaml_number(yaml, "policy-base-ms", policy.base_ns / NSEC_PER_MSEC);
	fprintf(yaml->file, "policy-factor: %g\n", policy.factor);
	yaml_number(yaml, "policy-cap-ms", policy.cap_ns / NSEC_PER_MSEC);
	yaml_number(yaml, "policy-jitter-percent", policy.jitter_percent);
	yaml_word(yaml, "policy-dead-tube", policy.dead);
}

void stats_of_tube(struct peer *peer, const char *name)
{
	struct tube *tube = tube_find(peer->session.queue, name);
	const struct tube_counts *counts;
	struct yaml yaml;

	if (!tube) {
		peer_say(peer, 0, "NOT_FOUND");
		return;
	}
	if (!yaml_begin(&yaml, peer))
		return;
	yaml_word(&yaml, "name", tube->name);
	yaml_number(&yaml, "current-jobs-urgent", tube->nr_urgent);
	yaml_number(&yaml, "current-jobs-ready", tube->nr[IS_READY]);
	yaml_number(&yaml, "current-jobs-reserved", tube->nr[IS_RESERVED]);
	yaml_number(&yaml, "current-jobs-delayed", tube->nr[IS_DELAYED]);
	yaml_number(&yaml, "current-jobs-buried", tube->nr[IS_BURIED]);
	yaml_number(&yaml, "total-jobs", tube->total_jobs);
	yaml_number(&yaml, "current-using", tube->nr_using);
	yaml_number(&yaml, "current-watching", tube->nr_watching);
	yaml_number(&yaml, "current-waiting", tube->nr_waiting);
	yaml_number(&yaml, "cmd-delete", tube->cmd_delete);
	yaml_number(&yaml, "cmd-pause-tube", tube->cmd_pause);
	yaml_seconds(&yaml, "pause", tube->pause_ns);
	yaml_seconds(&yaml, "pause-time-left",
		     tube->pause_ns ? left_ns(tube->pause_until_ns,
					      alarms_now_ns(ALARM_BOOT)) : 0);
	counts = store_counts(peer->session.queue->store, tube->number);
	yaml_number(&yaml, "current-jobs-dead", counts->died);
	yaml_number(&yaml, "current-schedules", counts->schedules);
	yaml_policy(&yaml, tube);
	yaml_say(&yaml, peer, 0);
}

/* --- a job ---------------------------------------------------------------------------- */

static const char *const status_names[NR_STATUS] = {
	[IS_READY] = "ready",
	[IS_RESERVED] = "reserved",
	[IS_DELAYED] = "delayed",
	[IS_BURIED] = "buried",
	[IS_BROKEN] = "damaged",
};

static uint64_t job_left_ns(struct queue *queue, const struct job *job)
{
	if (job->status == IS_RESERVED)
		return left_ns(job->deadline_ns, alarms_now_ns(ALARM_BOOT));
	if (job->status != IS_DELAYED)
		return 0;
	return left_ns(job->order, job->stored == JOB_WALL ? alarms_now_ns(ALARM_WALL) :
							     clock_now_ns(&queue->clock));
}

static void yaml_own_job(struct yaml *yaml, struct queue *queue,
			 const struct job_record *record, uint64_t left)
{
	struct tube *origin = tube_by_number(queue, record->origin);
	struct schedule_record schedule;

	yaml_number(yaml, "time-left-ms", left / NSEC_PER_MSEC);
	yaml_number(yaml, "attempts", record->attempts);
	if (record->key_len)
		fprintf(yaml->file, "key: %.*s\n", record->key_len, record->key);
	if (record->schedule && !store_get_schedule(queue->store, record->schedule, &schedule))
		yaml_text(yaml, "every", schedule.name, schedule.name_len);
	if (record->schedule)
		yaml_number(yaml, "missed", record->missed);
	if (origin)
		yaml_word(yaml, "origin-tube", origin->name);
	if (record->died_ns)
		yaml_number(yaml, "died", record->died_ns / NSEC_PER_MSEC);
	if (record->reason_len)
		yaml_text(yaml, "reason", record->reason, record->reason_len);
}

static void yaml_job(struct yaml *yaml, struct queue *queue, const struct job *job,
		     const struct job_record *record)
{
	uint64_t left = job_left_ns(queue, job);
	bool reserved = job->status == IS_RESERVED;

	yaml_number(yaml, "id", job_id(job));
	yaml_word(yaml, "tube", job->tube->name);
	yaml_word(yaml, "state", status_names[job->status]);
	yaml_number(yaml, "pri", job->pri);
	yaml_seconds(yaml, "age", left_ns(clock_now_ns(&queue->clock), record->created_ns));
	yaml_seconds(yaml, "delay", record->delay_ns);
	yaml_seconds(yaml, "ttr", record->ttr_ns);
	yaml_seconds(yaml, "time-left", left);
	yaml_number(yaml, "file", 0);
	yaml_number(yaml, "reserves", record->reserves + reserved);
	yaml_number(yaml, "timeouts", record->timeouts);
	yaml_number(yaml, "releases", record->releases);
	yaml_number(yaml, "buries", record->buries);
	yaml_number(yaml, "kicks", record->kicks);
	yaml_own_job(yaml, queue, record, left);
}

void stats_of_job(struct peer *peer, uint64_t id)
{
	struct queue *queue = peer->session.queue;
	struct job_record record;
	struct yaml yaml;
	struct job *job;
	uint64_t seq;
	int err = job_find(queue, id, &job, &record);

	if (!err && !record.place.id)
		err = store_get(queue->store, id, &record);
	if (err) {
		peer_say(peer, 0, err == -ENOENT ? "NOT_FOUND" : "INTERNAL_ERROR");
		return;
	}
	if (!yaml_begin(&yaml, peer)) {
		job_settle(queue, job);
		return;
	}
	yaml_job(&yaml, queue, job, &record);
	seq = job->seq;
	job_settle(queue, job);
	yaml_say(&yaml, peer, seq);
}

