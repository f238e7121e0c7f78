// SPDX-License-Identifier: GPL-2.0
/* The replies to list-tubes, list-tubes-watched, list-jobs and list-every. */
#include <string.h>

#include "common/util.h"
#include "queue/jobs/resident.h"
#include "queue/jobs/show.h"
#include "queue/jobs/tube.h"
#include "queue/protocol/list.h"
#include "queue/protocol/yaml.h"
#include "queue/store/batch.h"
#include "queue/store/read.h"
#include "queue/store/schedule.h"

/* The limit of the jobs in a page of list-jobs, and of the schedules in one of list-every. */
#define MAX_LISTED	10000
#define MAX_SCHEDULES	1000

void list_tubes(struct peer *peer)
{
	struct tube *tube;
	struct yaml yaml;

	if (!yaml_begin(&yaml, peer))
		return;
	for (tube = tube_first(peer->session.queue); tube; tube = tube_next(tube))
		yaml_item(&yaml, tube->name);
	yaml_say(&yaml, peer, 0);
}

void list_watched(struct peer *peer)
{
	struct watch *watch;
	struct yaml yaml;

	if (!yaml_begin(&yaml, peer))
		return;
	TAILQ_FOREACH(watch, &peer->session.watches, entry)
		yaml_item(&yaml, watch->tube->name);
	yaml_say(&yaml, peer, 0);
}

/* --- list-jobs ------------------------------------------------------------------------ */

/**
 * struct page - a page of list-jobs
 * @queue: the queue.
 * @tube: the tube.
 * @status: the status of the jobs.
 * @after_id: the last job of the page before.
 * @left: the number of jobs that still fit.
 * @last: the place of the last job of this page.
 * @until_ns: by index: a delayed job that is due later is not ready.
 * @file: the page.
 */
struct page {
	struct queue *queue;
	struct tube *tube;
	enum job_status status;
	uint64_t after_id;
	uint64_t left;
	struct job_place last;
	uint64_t until_ns[JOB_BURIED + 1];
	FILE *file;
};

static bool page_add(struct page *page, const struct job_place *place)
{
	fprintf(page->file, "%llu: %llu\n", (unsigned long long)place->id,
		(unsigned long long)show_due_ms(page->queue, place, page->status));
	page->last = *place;
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
	/* A job that is due counts as delayed until it is loaded. */
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
 * Walk the indexes that have jobs of the status, in this order, from the place of the last job
 * of the page before.
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

/* Is the last job of the page before in an index that has jobs of this status? */
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

/* The place behind which the next page begins, whatever becomes of the job. */
static bool find_place(const struct page *page, const struct command *command,
		       struct job_place *after)
{
	struct job_record record;

	*after = command->after;
	after->tube = page->tube->number;
	if (!command->id || page->status == IS_RESERVED)
		return true;
	if (!after->id) {
		if (store_get(page->queue->store, command->id, &record) ||
		    record.place.tube != page->tube->number)
			return false;
		*after = record.place;
	}
	return page_goes_on(page, after);
}

/* The cursor of the next page: the end of this one. */
static void page_say_cursor(const struct page *page)
{
	const struct job_place *last = &page->last;

	if (last->id)
		fprintf(page->file, "next: %llu/%u/%llu\n", (unsigned long long)last->id,
			last->state, (unsigned long long)(last->state == JOB_READY ?
							  last->pri : last->order));
}

void list_jobs(struct peer *peer, const struct command *command)
{
	static const enum job_status statuses[] = {
		[LIST_READY] = IS_READY,
		[LIST_RESERVED] = IS_RESERVED,
		[LIST_DELAYED] = IS_DELAYED,
		[LIST_BURIED] = IS_BURIED,
	};
	struct queue *queue = peer->session.queue;
	struct job_place after;
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

	if (!page.tube || !find_place(&page, command, &after)) {
		peer_say(peer, 0, "NOT_FOUND");
		return;
	}
	if (!yaml_begin(&yaml, peer))
		return;
	page.file = yaml.file;
	/* Do not walk an index all of whose jobs are in another status, in memory. */
	if (!page.tube->nr[page.status])
		page.left = 0;
	if (page.left && page.status == IS_RESERVED)
		store_each_mark(queue->store, command->id, page_mark, &page);
	else if (page.left)
		page_walk(&page, &after);
	page_say_cursor(&page);
	yaml_say(&yaml, peer, 0);
}

/* --- list-every ----------------------------------------------------------------------- */

struct every_page {
	struct peer *peer;
	uint64_t now_ns;
	size_t left;
	struct yaml yaml;
};

static void page_schedule(struct every_page *page, const struct schedule_record *record)
{
	const char *tube = page->peer->session.used->name;
	struct yaml *yaml = &page->yaml;

	yaml_text(yaml, "- name", record->name, record->name_len);
	yaml_text(yaml, "  tube", tube, strlen(tube));
	yaml_number(yaml, "  pri", record->pri);
	yaml_number(yaml, "  interval-ms", record->interval_ns / NSEC_PER_MSEC);
	yaml_number(yaml, "  next", record->next_ns / NSEC_PER_MSEC);
	yaml_number(yaml, "  ttr-ms", record->ttr_ns / NSEC_PER_MSEC);
	yaml_number(yaml, "  bytes", record->body_len);
	yaml_number(yaml, "  missed", record->missed + schedule_passed(record, page->now_ns));
	yaml_number(yaml, "  last-job", record->last);
}

static bool page_next_schedule(void *context, uint64_t id)
{
	struct every_page *page = context;
	struct schedule_record record;

	/* A damaged one is logged, and left out. */
	if (!store_get_schedule(page->peer->session.queue->store, id, &record))
		page_schedule(page, &record);
	return --page->left > 0;
}

void list_every(struct peer *peer, const char *after)
{
	struct store *store = peer->session.queue->store;
	struct every_page page = {
		.peer = peer, .now_ns = alarms_now_ns(ALARM_WALL), .left = MAX_SCHEDULES,
	};

	if (!yaml_begin(&page.yaml, peer))
		return;
	store_list_schedules(store, peer->session.used->number, after, page_next_schedule, &page);
	yaml_say(&page.yaml, peer, store_last(store));
}
