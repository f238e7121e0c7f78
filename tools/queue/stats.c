// SPDX-License-Identifier: GPL-2.0
/* What is told of the queue, of a tube and of a job: beanstalkd's YAML, and more keys. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core.h"
#include "version.h"

/* A page of list-jobs has so many at most. */
#define MAX_LISTED	10000

/* --- YAML ----------------------------------------------------------------------------- */

struct yaml {
	FILE *file;
	char *text;
	size_t len;
};

static bool yaml_begin(struct yaml *yaml)
{
	yaml->file = open_memstream(&yaml->text, &yaml->len);
	if (!yaml->file)
		return false;
	fputs("---\n", yaml->file);
	return true;
}

static void yaml_number(struct yaml *yaml, const char *key, uint64_t number)
{
	fprintf(yaml->file, "%s: %llu\n", key, (unsigned long long)number);
}

static void yaml_word(struct yaml *yaml, const char *key, const char *word)
{
	fprintf(yaml->file, "%s: %s\n", key, word);
}

/* Any bytes, quoted. */
static void yaml_text(struct yaml *yaml, const char *key, const char *text, size_t len)
{
	size_t i;

	fprintf(yaml->file, "%s: \"", key);
	for (i = 0; i < len; i++) {
		unsigned char c = text[i];

		if (c == '"' || c == '\\')
			fprintf(yaml->file, "\\%c", c);
		else if (c < ' ' || c >= 0x7f)
			fprintf(yaml->file, "\\x%02x", c);
		else
			fputc(c, yaml->file);
	}
	fputs("\"\n", yaml->file);
}

/* Beanstalkd's times are whole seconds. */
static void yaml_seconds(struct yaml *yaml, const char *key, uint64_t ns)
{
	yaml_number(yaml, key, ns / NSEC_PER_SEC);
}

/* Say it, and free it; @seq is as of session_reply(). */
static bool yaml_say(struct yaml *yaml, struct session *session, uint64_t seq)
{
	char line[64];

	if (fclose(yaml->file)) {
		free(yaml->text);
		session_say(session, 0, "OUT_OF_MEMORY");
		return true;
	}
	snprintf(line, sizeof(line), "OK %zu\r\n", yaml->len);
	session_reply(session, seq, line, yaml->text, yaml->len);
	free(yaml->text);
	return true;
}

static bool no_memory(struct session *session)
{
	session_say(session, 0, "OUT_OF_MEMORY");
	return true;
}

/* --- the queue ------------------------------------------------------------------------ */

void queue_stats(struct queue *queue, struct queue_stats *stats)
{
	struct session *session;
	size_t i;

	*stats = queue->stats;
	stats->ready = queue->nr[IS_READY];
	stats->reserved = queue->nr[IS_RESERVED];
	stats->delayed = queue->nr[IS_DELAYED];
	stats->buried = queue->nr[IS_BURIED];
	stats->tubes = queue->nr_tubes;
	stats->resident = queue->nr_resident;
	stats->resident_bytes = queue->nr_resident * sizeof(struct job);
	stats->connections = queue->nr_sessions;
	for (i = 0; i < SESSION_BUCKETS; i++)
		LIST_FOREACH(session, &queue->sessions[i], entry) {
			stats->producers += session->producer;
			stats->workers += session->worker;
		}
	stats->uptime_ns = alarms_now_ns(ALARM_BOOT) - queue->start_ns;
	stats->draining = queue->draining;
}

static void yaml_ops(struct yaml *yaml, const struct queue_stats *stats,
		     const enum command_op *ops, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		fprintf(yaml->file, "cmd-%s: %llu\n", command_name(ops[i]),
			(unsigned long long)stats->commands[ops[i]]);
}

/* As beanstalkd names them, in its order. */
static void yaml_commands(struct yaml *yaml, const struct queue_stats *stats)
{
	static const enum command_op ops[] = {
		OP_PUT, OP_PEEK, OP_PEEK_READY, OP_PEEK_DELAYED, OP_PEEK_BURIED, OP_RESERVE,
		OP_RESERVE_WITH_TIMEOUT, OP_DELETE, OP_RELEASE, OP_USE, OP_WATCH, OP_IGNORE,
		OP_BURY, OP_KICK, OP_TOUCH, OP_STATS, OP_STATS_JOB, OP_STATS_TUBE,
		OP_LIST_TUBES, OP_LIST_TUBE_USED, OP_LIST_TUBES_WATCHED, OP_PAUSE_TUBE,
	};

	yaml_ops(yaml, stats, ops, ARRAY_SIZE(ops));
}

static void yaml_more_commands(struct yaml *yaml, const struct queue_stats *stats)
{
	static const enum command_op ops[] = {
		OP_RESERVE_JOB, OP_KICK_JOB, OP_PUT_AT, OP_PUT_UNIQUE, OP_RESCHEDULE, OP_FAIL,
		OP_POLICY, OP_LIST_JOBS,
	};

	yaml_ops(yaml, stats, ops, ARRAY_SIZE(ops));
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
	char key[64];
	size_t i;

	snprintf(key, sizeof(key), "%s-count", what);
	yaml_number(yaml, key, histogram->count);
	for (i = 0; i < ARRAY_SIZE(points); i++) {
		snprintf(key, sizeof(key), "%s-%s-us", what, points[i].name);
		yaml_number(yaml, key, histogram_permille_us(histogram, points[i].permille));
	}
	snprintf(key, sizeof(key), "%s-max-us", what);
	yaml_number(yaml, key, histogram->max_ns / 1000);
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

/* What beanstalkd does not have. */
static void yaml_own(struct yaml *yaml, struct queue *queue, const struct queue_stats *stats)
{
	struct store_stats store;

	store_stats(queue->store, &store);
	yaml_more_commands(yaml, stats);
	yaml_word(yaml, "wheel", alarms_name(queue->alarms));
	yaml_sync(yaml, &queue->config);
	yaml_number(yaml, "jobs-in-memory", stats->resident);
	yaml_number(yaml, "jobs-in-memory-bytes", stats->resident_bytes);
	yaml_number(yaml, "jobs-loaded", stats->loaded);
	yaml_number(yaml, "jobs-evicted", stats->evicted);
	yaml_number(yaml, "retries", stats->retries);
	yaml_number(yaml, "dead", stats->dead);
	yaml_number(yaml, "refused-full", stats->refused_full);
	yaml_number(yaml, "syncs", store.syncs);
	yaml_number(yaml, "sync-max-us", store.sync_max_ns / 1000);
	yaml_number(yaml, "disk-bytes", store.disk_bytes);
	yaml_number(yaml, "disk-free-bytes", store.free_bytes);
	yaml_number(yaml, "disk-damaged", store.damaged);
	yaml_lateness(yaml, "due-to-ready", &stats->ready_late);
	yaml_lateness(yaml, "due-to-reserved", &stats->reserved_late);
}

bool stats_of_queue(struct session *session)
{
	struct queue *queue = session->queue;
	struct queue_stats stats;
	struct yaml yaml;

	if (!yaml_begin(&yaml))
		return no_memory(session);
	queue_stats(queue, &stats);
	yaml_number(&yaml, "current-jobs-urgent", stats.urgent);
	yaml_number(&yaml, "current-jobs-ready", stats.ready);
	yaml_number(&yaml, "current-jobs-reserved", stats.reserved);
	yaml_number(&yaml, "current-jobs-delayed", stats.delayed);
	yaml_number(&yaml, "current-jobs-buried", stats.buried);
	yaml_commands(&yaml, &stats);
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
	yaml_word(&yaml, "version", "\"" TWHEELQ_VERSION "\"");
	yaml_times(&yaml);
	yaml_seconds(&yaml, "uptime", stats.uptime_ns);
	/* There is no binlog; the keys are there for those who look for them. */
	yaml_number(&yaml, "binlog-oldest-index", 0);
	yaml_number(&yaml, "binlog-current-index", 0);
	yaml_number(&yaml, "binlog-records-migrated", 0);
	yaml_number(&yaml, "binlog-records-written", 0);
	yaml_number(&yaml, "binlog-max-size", 0);
	yaml_word(&yaml, "draining", stats.draining ? "true" : "false");
	yaml_machine(&yaml, queue);
	yaml_own(&yaml, queue, &stats);
	return yaml_say(&yaml, session, 0);
}

/* --- a tube --------------------------------------------------------------------------- */

void queue_each_tube(struct queue *queue,
		     void (*each)(void *context, const struct tube_stats *stats),
		     void *context)
{
	struct tube *tube;

	for (tube = tube_first(queue); tube; tube = tube_next(tube)) {
		struct tube_stats stats = {
			.name = tube->name,
			.urgent = tube->nr_urgent,
			.ready = tube->nr[IS_READY],
			.reserved = tube->nr[IS_RESERVED],
			.delayed = tube->nr[IS_DELAYED],
			.buried = tube->nr[IS_BURIED],
			.waiting = tube->nr_waiting,
			.total = tube->total_jobs,
		};

		each(context, &stats);
	}
}

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

bool stats_of_tube(struct session *session, const char *name)
{
	struct tube *tube = tube_find(session->queue, name);
	struct yaml yaml;

	if (!tube) {
		session_say(session, 0, "NOT_FOUND");
		return true;
	}
	if (!yaml_begin(&yaml))
		return no_memory(session);
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
	yaml_policy(&yaml, tube);
	return yaml_say(&yaml, session, 0);
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

	yaml_number(yaml, "time-left-ms", left / NSEC_PER_MSEC);
	yaml_number(yaml, "attempts", record->attempts);
	if (record->key_len)
		fprintf(yaml->file, "key: %.*s\n", record->key_len, record->key);
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

bool stats_of_job(struct session *session, uint64_t id)
{
	struct queue *queue = session->queue;
	struct job_record record;
	struct yaml yaml;
	struct job *job;
	uint64_t seq;
	int err = store_get(queue->store, id, &record);

	if (!err)
		err = job_find(queue, id, &job);
	if (err) {
		session_say(session, 0, err == -ENOENT ? "NOT_FOUND" : "INTERNAL_ERROR");
		return true;
	}
	if (!yaml_begin(&yaml)) {
		job_settle(queue, job);
		return no_memory(session);
	}
	yaml_job(&yaml, queue, job, &record);
	seq = job->seq;
	job_settle(queue, job);
	return yaml_say(&yaml, session, seq);
}

/* --- lists ---------------------------------------------------------------------------- */

bool list_tubes(struct session *session)
{
	struct tube *tube;
	struct yaml yaml;

	if (!yaml_begin(&yaml))
		return no_memory(session);
	for (tube = tube_first(session->queue); tube; tube = tube_next(tube))
		fprintf(yaml.file, "- %s\n", tube->name);
	return yaml_say(&yaml, session, 0);
}

bool list_watched(struct session *session)
{
	struct watch *watch;
	struct yaml yaml;

	if (!yaml_begin(&yaml))
		return no_memory(session);
	TAILQ_FOREACH(watch, &session->watches, entry)
		fprintf(yaml.file, "- %s\n", watch->tube->name);
	return yaml_say(&yaml, session, 0);
}

/* --- list-jobs ------------------------------------------------------------------------ */

struct page {
	struct queue *queue;
	struct tube *tube;
	enum job_status status;
	uint64_t after_id;
	uint64_t left;
	uint64_t until_ns[JOB_BURIED + 1];	/* what is due later is not ready */
	FILE *file;
};

/* When it is due, or its time to run is over, by the wall clock; 0: neither. */
static uint64_t due_unix_ms(struct queue *queue, const struct job_place *place,
			    enum job_status status)
{
	struct job *job = job_resident(queue, place->id);
	uint64_t due_ns = 0;

	if (status == IS_RESERVED)
		due_ns = job->deadline_ns + queue->clock.base_ns +
			 clock_skew_ns(&queue->clock);
	else if (status == IS_DELAYED && place->state == JOB_WALL)
		due_ns = place->order;
	else if (status == IS_DELAYED)
		due_ns = place->order + clock_skew_ns(&queue->clock);
	return due_ns / NSEC_PER_MSEC;
}

static bool page_add(struct page *page, const struct job_place *place)
{
	fprintf(page->file, "%llu: %llu\n", (unsigned long long)place->id,
		(unsigned long long)due_unix_ms(page->queue, place, page->status));
	return --page->left > 0;
}

static bool page_one(void *context, const struct job_place *place)
{
	struct page *page = context;
	struct job *job = job_resident(page->queue, place->id);

	if (page->status == IS_READY && place->order > page->until_ns[place->state])
		return false;
	if (place->id == page->after_id || (job && job->status != page->status))
		return true;
	/* What is due, and not in memory yet, is delayed until it is. */
	if (!job && page->status == IS_READY && place->state != JOB_READY)
		return true;
	return page_add(page, place);
}

static bool page_mark(void *context, uint64_t id)
{
	struct page *page = context;
	struct job *job = job_resident(page->queue, id);
	struct job_place place;

	if (!job || job->status != IS_RESERVED ||
	    job->tube != page->tube)
		return true;
	place = job_place(job);
	return page_add(page, &place);
}

/*
 * The indexes that have jobs of a status, in their order; a page goes on from the place of
 * the last job of the one before.
 */
static void page_walk(struct page *page, const struct job_place *after)
{
	static const struct {
		enum job_status status;
		enum job_state state;
	} indexes[] = {
		{ IS_READY, JOB_READY }, { IS_READY, JOB_DELAYED }, { IS_READY, JOB_WALL },
		{ IS_DELAYED, JOB_DELAYED }, { IS_DELAYED, JOB_WALL },
		{ IS_BURIED, JOB_BURIED },
	};
	bool begun = !after->id;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(indexes) && page->left; i++) {
		struct job_place from = { .tube = page->tube->number };

		if (indexes[i].status != page->status)
			continue;
		from.state = indexes[i].state;
		if (!begun && from.state == after->state)
			from = *after;
		else if (!begun)
			continue;
		begun = true;
		if (from.state == JOB_DELAYED || from.state == JOB_WALL)
			store_walk_tube(page->queue->store, &from, page_one, page);
		else
			store_walk(page->queue->store, &from, page_one, page);
	}
}

/* Is the last job of the page before still in an index that has jobs of this status? */
static bool page_goes_on(const struct page *page, const struct job_place *after)
{
	switch (page->status) {
	case IS_READY:
		return after->state != JOB_BURIED &&
		       after->order <= page->until_ns[after->state];
	case IS_DELAYED:
		return after->state == JOB_DELAYED || after->state == JOB_WALL;
	default:
		return after->state == JOB_BURIED;
	}
}

bool list_jobs(struct session *session, const struct command *command)
{
	static const enum job_status statuses[] = {
		[LIST_READY] = IS_READY,
		[LIST_RESERVED] = IS_RESERVED,
		[LIST_DELAYED] = IS_DELAYED,
		[LIST_BURIED] = IS_BURIED,
	};
	struct queue *queue = session->queue;
	struct job_record after = { .place.id = 0 };
	struct page page = {
		.queue = queue,
		.tube = tube_find(queue, command->tube),
		.status = statuses[command->state],
		.after_id = command->id,
		.left = command->count < MAX_LISTED ? command->count : MAX_LISTED,
		.until_ns[JOB_DELAYED] = clock_now_ns(&queue->clock),
		.until_ns[JOB_WALL] = alarms_now_ns(ALARM_WALL),
	};
	struct yaml yaml;

	/* A page goes on from a job that is still there. */
	if (!page.tube || (page.status != IS_RESERVED && command->id &&
			   (store_get(queue->store, command->id, &after) ||
			    after.place.tube != page.tube->number ||
			    !page_goes_on(&page, &after.place)))) {
		session_say(session, 0, "NOT_FOUND");
		return true;
	}
	if (!yaml_begin(&yaml))
		return no_memory(session);
	page.file = yaml.file;
	if (page.left && page.tube->number && page.status == IS_RESERVED)
		store_each_mark(queue->store, command->id, page_mark, &page);
	else if (page.left && page.tube->number)
		page_walk(&page, &after.place);
	return yaml_say(&yaml, session, 0);
}
