// SPDX-License-Identifier: GPL-2.0
/*
 * Tubes: by name, by number, and how long they exist.
 *
 * A tube exists while a session uses or watches it, while it has jobs, schedules or a policy,
 * while a dead tube has jobs that came from it, or while it is purged. A pause does not keep it.
 * It gets a number, and is written to disk, with its first job, schedule, policy or pause.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/time.h"
#include "queue/jobs/tube.h"
#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/numbers.h"
#include "queue/store/read.h"
#include "queue/store/space.h"

/* This many tubes are allowed with any amount of memory. */
#define MIN_TUBES	1000

/* How often it is logged why puts are refused. */
#define LOG_EVERY_MS	60000

static int compare_names(const struct tube *a, const struct tube *b)
{
	return strcmp(a->name, b->name);
}

static int compare_numbers(const struct tube *a, const struct tube *b)
{
	return a->number < b->number ? -1 : a->number > b->number;
}

RB_PROTOTYPE(name_tree, tube, by_name, compare_names)
RB_PROTOTYPE(number_tree, tube, by_number, compare_numbers)
RB_GENERATE(name_tree, tube, by_name, compare_names)
RB_GENERATE(number_tree, tube, by_number, compare_numbers)

/* A quarter of the memory for jobs is for tubes with names of the greatest length. */
void tubes_init(struct queue *queue)
{
	size_t most = queue->config.memory / 4 / (sizeof(struct tube) + TUBE_NAME_MAX);

	queue->max_tubes = most < MIN_TUBES ? MIN_TUBES : most;
	RB_INIT(&queue->tubes);
	RB_INIT(&queue->tubes_by_number);
	TAILQ_INIT(&queue->to_serve);
	queue->next_tube = 1;
}

struct tube *tube_find(struct queue *queue, const char *name)
{
	struct tube key = { .name = name };

	return RB_FIND(name_tree, &queue->tubes, &key);
}

struct tube *tube_by_number(struct queue *queue, uint32_t number)
{
	struct tube key = { .number = number };

	return RB_FIND(number_tree, &queue->tubes_by_number, &key);
}

/* Log once that the limit is near; again after there were fewer. */
static void warn_of_limit(struct queue *queue)
{
	if (queue->tubes_warned || queue->nr_tubes < queue->max_tubes / 5 * 4)
		return;
	queue->tubes_warned = true;
	log_say(LOG_WARNING,
		"%zu tubes of at most %zu: at the limit no new ones are made. \"policy TUBE default\" ends a tube that is kept by its policy only",
		queue->nr_tubes, queue->max_tubes);
}

static struct tube *tube_new(struct queue *queue, const char *name)
{
	struct tube *tube;

	tube = calloc(1, sizeof(*tube) + strlen(name) + 1);
	if (!tube)
		return NULL;
	tube->name = strcpy((char *)(tube + 1), name);
	RB_INIT(&tube->ready);
	TAILQ_INIT(&tube->waiting);
	TAILQ_INIT(&tube->by_age);
	tube->whole = true;
	RB_INSERT(name_tree, &queue->tubes, tube);
	queue->nr_tubes++;
	warn_of_limit(queue);
	return tube;
}

struct tube *tube_get(struct queue *queue, const char *name)
{
	struct tube *tube = tube_find(queue, name);

	if (tube || queue->nr_tubes >= queue->max_tubes)
		return tube;
	return tube_new(queue, name);
}

static void tube_free(struct queue *queue, struct tube *tube)
{
	alarm_cancel(queue->alarms, &tube->alarm);
	if (tube->to_serve)
		TAILQ_REMOVE(&queue->to_serve, tube, serve_entry);
	if (tube->number)
		RB_REMOVE(number_tree, &queue->tubes_by_number, tube);
	RB_REMOVE(name_tree, &queue->tubes, tube);
	queue->nr_tubes--;
	if (queue->nr_tubes < queue->max_tubes / 2)
		queue->tubes_warned = false;
	free(tube);
}

void tubes_destroy(struct queue *queue)
{
	struct tube *tube;

	while ((tube = RB_MIN(name_tree, &queue->tubes)))
		tube_free(queue, tube);
}

static void set_number(struct queue *queue, struct tube *tube, uint32_t number)
{
	tube->number = number;
	RB_INSERT(number_tree, &queue->tubes_by_number, tube);
	if (number >= queue->next_tube)
		queue->next_tube = number + 1;
}

struct loading {
	struct queue *queue;
	bool no_memory;
};

/* Tubes of the disk are not limited. Their ready jobs are on disk only, at first. */
static bool load_tube(void *context, const struct tube_record *record)
{
	struct loading *loading = context;
	struct queue *queue = loading->queue;
	struct tube *tube = tube_find(queue, record->name) ?: tube_new(queue, record->name);

	loading->no_memory = !tube;
	if (!tube)
		return false;
	set_number(queue, tube, record->tube);
	tube->policy = record->policy;
	tube->whole = !record->counts.nr[JOB_READY];
	tube->cut = (struct job_place){ .tube = record->tube, .state = JOB_READY };
	return true;
}

/* The jobs that the disk has of a tube count for the queue. */
static void count_tube(struct queue *queue, struct tube *tube)
{
	const struct tube_counts *counts = store_counts(queue->store, tube->number);

	tube->nr[IS_READY] = counts->nr[JOB_READY];
	tube->nr[IS_DELAYED] = counts->nr[JOB_DELAYED] + counts->nr[JOB_WALL];
	tube->nr[IS_BURIED] = counts->nr[JOB_BURIED];
	tube->nr_urgent = counts->urgent;
	tube->whole = !tube->nr[IS_READY];
	queue->nr[IS_READY] += tube->nr[IS_READY];
	queue->nr[IS_DELAYED] += tube->nr[IS_DELAYED];
	queue->nr[IS_BURIED] += tube->nr[IS_BURIED];
	queue->stats.urgent += tube->nr_urgent;
	queue->schedules.nr += counts->schedules;
}

int tubes_load(struct queue *queue)
{
	struct loading loading = { .queue = queue };
	struct tube *tube, *next;
	uint64_t number;
	int err = store_get_number(queue->store, NUMBER_TUBE, 1, &number);

	if (err)
		return err;
	queue->next_tube = number;
	err = store_each_tube(queue->store, load_tube, &loading);
	if (loading.no_memory)
		err = -ENOMEM;
	if (err)
		return err;
	for (tube = tube_first(queue); tube; tube = next) {
		next = tube_next(tube);
		count_tube(queue, tube);
		/* The disk may have a tube that was only paused. */
		tube_put(queue, tube);
	}
	return 0;
}

void tube_save(struct queue *queue, struct tube *tube)
{
	struct tube_record record = { .tube = tube->number, .policy = tube->policy };

	strcpy(record.name, tube->name);
	store_put_tube(queue->store, &record);
}

void tube_keep(struct queue *queue, struct tube *tube)
{
	if (tube->number)
		return;
	set_number(queue, tube, queue->next_tube);
	tube->cut = (struct job_place){ .tube = tube->number, .state = JOB_READY };
	store_put_number(queue->store, NUMBER_TUBE, queue->next_tube);
	tube_save(queue, tube);
}

void tube_put(struct queue *queue, struct tube *tube)
{
	if (tube == queue->default_tube || tube->nr_using || tube->nr_watching ||
	    tube->nr_purging || tube->policy.max_attempts || *tube->policy.dead ||
	    nr_of_all(tube->nr) ||
	    store_counts(queue->store, tube->number)->schedules ||
	    store_counts(queue->store, tube->number)->died)
		return;
	if (tube->number)
		store_delete_tube(queue->store, tube->number);
	tube_free(queue, tube);
}

bool queue_is_full(const struct queue *queue)
{
	uint64_t max = queue->config.max_jobs;

	return max && nr_of_all(queue->nr) + queue->schedules.nr >= max;
}

bool tube_is_full(const struct queue *queue, const struct tube *tube)
{
	uint64_t max = queue->config.max_tube_jobs;

	return max && nr_of_all(tube->nr) +
		      store_counts(queue->store, tube->number)->schedules >= max;
}

/* Count a put that is refused. Returns whether to log the reason. */
static bool note_refusal(struct queue *queue, enum refusal reason)
{
	queue->stats.refused_full++;
	return log_again(&queue->refused_ms[reason], time_now_ns(CLOCK_MONOTONIC) / NSEC_PER_MSEC,
			 LOG_EVERY_MS);
}

bool tube_refuses(struct queue *queue, const struct tube *tube)
{
	if (queue_is_full(queue)) {
		if (note_refusal(queue, REFUSAL_JOBS))
			log_say(LOG_WARNING, "puts are refused: there are %llu jobs (--max-jobs)",
				(unsigned long long)queue->config.max_jobs);
		return true;
	}
	if (tube_is_full(queue, tube)) {
		if (note_refusal(queue, REFUSAL_TUBE_JOBS))
			log_say(LOG_WARNING,
				"puts to \"%s\" are refused: it has %llu jobs (--max-tube-jobs)",
				tube->name, (unsigned long long)queue->config.max_tube_jobs);
		return true;
	}
	return false;
}

bool queue_lacks_disk(struct queue *queue)
{
	if (store_has_room(queue->store))
		return false;
	if (note_refusal(queue, REFUSAL_DISK))
		log_say(LOG_WARNING, "puts are refused: the disk has no room beside the reserve");
	return true;
}

void queue_lacks_memory(struct queue *queue)
{
	if (note_refusal(queue, REFUSAL_MEMORY))
		log_say(LOG_WARNING,
			"puts are refused: no memory is left for bodies that come (--memory)");
}

static void end_pause(struct queue *queue, struct tube *tube)
{
	tube->pause_ns = 0;
	queue_serve_later(queue, tube);
	tube_put(queue, tube);
}

void tube_pause(struct queue *queue, struct tube *tube, uint64_t pause_ns)
{
	tube_keep(queue, tube);
	tube->pause_ns = pause_ns;
	tube->pause_until_ns = alarms_now_ns(ALARM_BOOT) + pause_ns;
	tube->cmd_pause++;
	alarm_cancel(queue->alarms, &tube->alarm);
	if (!pause_ns)
		end_pause(queue, tube);
	else
		alarm_add(queue->alarms, &tube->alarm, ID_OF(ID_TUBE, tube->number),
			  ALARM_BOOT, tube->pause_until_ns);
}

void tube_alarm(struct queue *queue, uint32_t number)
{
	struct tube *tube = tube_by_number(queue, number);

	if (tube && tube->pause_ns)
		end_pause(queue, tube);
}

struct tube *tube_first(struct queue *queue)
{
	return RB_MIN(name_tree, &queue->tubes);
}

struct tube *tube_next(struct tube *tube)
{
	return RB_NEXT(name_tree, NULL, tube);
}

struct tube *tube_after(struct queue *queue, const char *name)
{
	struct tube key = { .name = name };
	struct tube *tube = RB_NFIND(name_tree, &queue->tubes, &key);

	return tube && !strcmp(tube->name, name) ? tube_next(tube) : tube;
}
