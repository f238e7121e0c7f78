// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs of the queue's page: lists, and one with its body.
 *
 * A page of a list is read from the store by the thread of questions: places from an index, then
 * the records. The loop says of BATCH of them at a time what their status is now, as it alone
 * knows which ones are reserved; those of another status are left out. So that a page ends, at
 * most STEPS_MAX places are looked at for it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/time.h"
#include "common/util.h"
#include "metrics/json.h"
#include "queue/store/browse.h"
#include "queue/web/jobs.h"
#include "queue/web/state.h"

#define BATCH		64
#define STEPS_MAX	20000

#define HTTP_OK		200
#define HTTP_BAD	400
#define HTTP_NOT_FOUND	404
#define HTTP_ERROR	500
#define HTTP_ENDING	503

static const char *const status_names[] = {
	[IS_READY] = "ready",
	[IS_RESERVED] = "reserved",
	[IS_DELAYED] = "delayed",
	[IS_BURIED] = "buried",
	[IS_BROKEN] = "damaged",
};

unsigned int web_say(FILE *out, unsigned int status, const char *sentence)
{
	fputs("{\"error\":", out);
	json_text(out, sentence);
	fputc('}', out);
	return status;
}

static unsigned int say_ending(FILE *out)
{
	return web_say(out, HTTP_ENDING, "The daemon ends.");
}

/* --- errands ---------------------------------------------------------------------------- */

struct tube_errand {
	struct queue *queue;
	const char *name;
	struct tube_details *details;
	bool found;
};

static void do_tube_errand(void *context)
{
	struct tube_errand *errand = context;

	errand->found = show_tube(errand->queue, errand->name, errand->details);
}

unsigned int web_find_tube(struct web *web, const char *name, bool must_exist,
			   struct tube_details *details, FILE *out)
{
	struct tube_errand errand = {
		.queue = web->config.queue, .name = name, .details = details,
	};

	if (errands_do(web->errands, do_tube_errand, &errand))
		return say_ending(out);
	if (errand.found)
		return 0;
	if (must_exist)
		return web_say(out, HTTP_NOT_FOUND, "There is no such tube.");
	memset(details, 0, sizeof(*details));
	return 0;
}

/**
 * struct batch - jobs that the loop says the status of
 * @queue: the queue.
 * @nr: their number.
 * @from: where the jobs were found.
 * @shown: the jobs.
 * @record: their records.
 */
struct batch {
	struct queue *queue;
	size_t nr;
	struct job_place from[BATCH];
	struct job_shown shown[BATCH];
	struct job_record record[BATCH];
};

static void show_batch(void *context)
{
	struct batch *batch = context;
	size_t i;

	for (i = 0; i < batch->nr; i++)
		show_job(batch->queue, &batch->shown[i]);
}

/* Read the records of a batch; jobs that are gone, or damaged, leave it. */
static void read_records(struct web *web, struct batch *batch)
{
	size_t i, nr = 0;

	for (i = 0; i < batch->nr; i++) {
		struct job_record *record = &batch->record[nr];

		if (store_browse_job(web->config.store, batch->from[i].id, record))
			continue;
		batch->from[nr] = batch->from[i];
		batch->shown[nr++] = (struct job_shown){
			.place = record->place,
			.created_ns = record->created_ns,
			.origin = record->origin,
		};
	}
	batch->nr = nr;
}

/* --- writing ---------------------------------------------------------------------------- */

static void write_job(const struct job_shown *shown, const struct job_record *record, FILE *out)
{
	fprintf(out, "{\"id\":\"%" PRIu64 "\",\"tube\":", shown->place.id);
	json_text(out, shown->tube_name);
	fprintf(out, ",\"state\":\"%s\",\"pri\":%" PRIu32 ",\"due_ms\":%" PRIu64,
		status_names[shown->status], record->place.pri, shown->due_ms);
	fprintf(out, ",\"age_s\":%" PRIu64 ",\"ttr_ms\":%" PRIu64 ",\"bytes\":%" PRIu32,
		shown->age_ns / (uint64_t)NSEC_PER_SEC, record->ttr_ns / (uint64_t)NSEC_PER_MSEC,
		record->body_len);
	fprintf(out, ",\"attempts\":%u,\"reserves\":%u,\"timeouts\":%u,\"releases\":%u",
		record->attempts, record->reserves + (shown->status == IS_RESERVED),
		record->timeouts, record->releases);
	fprintf(out, ",\"buries\":%u,\"kicks\":%u,\"died_ms\":%" PRIu64 ",\"key\":",
		record->buries, record->kicks, record->died_ns / (uint64_t)NSEC_PER_MSEC);
	json_bytes(out, record->key, record->key_len);
	fputs(",\"reason\":", out);
	json_bytes(out, record->reason, record->reason_len);
	fputs(",\"origin\":", out);
	json_text(out, shown->origin_name);
}

/* --- a page of a list ------------------------------------------------------------------- */

/**
 * struct list - a page of a list that is being made
 * @web: the page of the queue.
 * @tube: the tube.
 * @status: the status of the jobs.
 * @at: where it goes on: the place behind the last job that was looked at.
 * @ended: there are no more jobs behind it.
 * @until_ns: a delayed job that is due later is not ready; and the walk ends.
 * @left: jobs that still fit.
 * @full: none fits, and there is one more.
 * @steps: places that may still be looked at.
 * @written: jobs that were written.
 * @batch: the next ones.
 * @out: the page.
 */
struct list {
	struct web *web;
	struct tube_details tube;
	enum job_status status;
	struct job_place at;
	bool ended;
	uint64_t until_ns;
	size_t left;
	bool full;
	size_t steps;
	size_t written;
	struct batch batch;
	FILE *out;
};

static bool add_place(void *context, const struct job_place *place)
{
	struct list *list = context;
	struct batch *batch = &list->batch;

	if (place->order > list->until_ns) {
		list->ended = true;
		return false;
	}
	batch->from[batch->nr++] = *place;
	list->at = *place;
	list->at.id++;
	return batch->nr < BATCH;
}

static bool add_mark(void *context, uint64_t id)
{
	const struct job_place place = { .id = id };

	return add_place(context, &place);
}

/* Fill the batch from @list->at on. Returns 0 or a negative errno. */
static int read_batch(struct list *list)
{
	struct store *store = list->web->config.store;
	size_t most = list->steps < BATCH ? list->steps : BATCH;
	int err;

	list->batch.nr = 0;
	if (list->status == IS_RESERVED)
		err = store_browse_marks(store, list->at.id, most, add_mark, list);
	else
		err = store_browse(store, &list->at, most, add_place, list);
	if (list->batch.nr < most)
		list->ended = true;
	list->steps -= list->batch.nr;
	return err;
}

/* Write the jobs of the batch that belong to the page, until it is full. */
static void write_batch(struct list *list)
{
	struct batch *batch = &list->batch;
	size_t i;

	for (i = 0; i < batch->nr; i++) {
		const struct job_shown *shown = &batch->shown[i];

		if (shown->status != list->status || shown->tube != list->tube.number)
			continue;
		if (!list->left) {
			/* The next page begins with it. */
			list->at = batch->from[i];
			list->full = true;
			return;
		}
		if (list->written++)
			fputc(',', list->out);
		write_job(shown, &batch->record[i], list->out);
		fputc('}', list->out);
		list->left--;
	}
}

/* Walk an index, or the marks. Returns 0 or a negative errno. */
static int walk(struct list *list)
{
	int err = 0;

	list->ended = false;
	while (!err && !list->ended && !list->full && list->steps) {
		err = read_batch(list);
		read_records(list->web, &list->batch);
		if (!err)
			err = errands_do(list->web->errands, show_batch, &list->batch);
		if (!err)
			write_batch(list);
	}
	return err;
}

/* The indexes that have jobs of a status, in this order. */
static const struct {
	enum job_status status;
	enum job_state state;
} indexes[] = {
	{ IS_READY, JOB_READY }, { IS_READY, JOB_DELAYED }, { IS_READY, JOB_WALL },
	{ IS_DELAYED, JOB_DELAYED }, { IS_DELAYED, JOB_WALL },
	{ IS_BURIED, JOB_BURIED },
	{ IS_RESERVED, JOB_READY },
};

/*
 * Begin with index number @i, at @list->at if @begun, else at its first job. Returns 0 or a
 * negative errno; *@i is the index in which the next page begins, or their number.
 */
static int walk_all(struct list *list, size_t *i, bool begun)
{
	int err = 0;

	for (; *i < ARRAY_SIZE(indexes); (*i)++, begun = false) {
		enum job_state state = indexes[*i].state;

		if (indexes[*i].status != list->status)
			continue;
		if (!begun && list->status == IS_RESERVED)
			list->at = (struct job_place){ .id = 0 };
		else if (!begun)
			list->at = list->tube.first[state];
		list->until_ns = list->status == IS_READY && state != JOB_READY ?
			list->tube.now_ns[state] : UINT64_MAX;
		err = walk(list);
		if (err || list->full || !list->ended)
			break;
	}
	return err;
}

/* A cursor is "INDEX.ORDER.PRIORITY.ID". Returns false if it is not one. */
static bool read_cursor(struct list *list, const char *text, size_t *i)
{
	struct job_place *at = &list->at;
	char end;

	if (sscanf(text, "%zu.%" SCNu64 ".%" SCNu32 ".%" SCNu64 "%c", i, &at->order, &at->pri,
		   &at->id, &end) != 4)
		return false;
	if (*i >= ARRAY_SIZE(indexes) || indexes[*i].status != list->status)
		return false;
	at->state = indexes[*i].state;
	at->tube = list->tube.number;
	return true;
}

static unsigned int write_list(struct list *list, const char *cursor)
{
	bool begun = *cursor, partial;
	size_t i = 0;
	int err = 0;

	if (begun && !read_cursor(list, cursor, &i))
		return web_say(list->out, HTTP_BAD, "This is no cursor of this list.");
	fprintf(list->out, "{\"now_ms\":%" PRIu64 ",\"jobs\":[",
		time_now_ns(CLOCK_REALTIME) / (uint64_t)NSEC_PER_MSEC);
	if (list->tube.number)
		err = walk_all(list, &i, begun);
	else
		i = ARRAY_SIZE(indexes);
	fputs("],\"next\":", list->out);
	if (err || i == ARRAY_SIZE(indexes))
		fputs("null", list->out);
	else
		fprintf(list->out, "\"%zu.%" PRIu64 ".%" PRIu32 ".%" PRIu64 "\"", i,
			list->at.order, list->at.pri, list->at.id);
	/* Then there may be more, although this page is not full. */
	partial = i < ARRAY_SIZE(indexes) && !list->full;
	fprintf(list->out, ",\"partial\":%s}", partial ? "true" : "false");
	return err ? HTTP_ERROR : HTTP_OK;
}

static bool read_status(const char *name, enum job_status *status)
{
	for (*status = IS_READY; *status <= IS_BURIED; (*status)++)
		if (!strcmp(name, status_names[*status]))
			return true;
	return false;
}

unsigned int web_jobs(const struct site_arguments *arguments, FILE *out, void *context)
{
	struct web *web = context;
	struct list *list = calloc(1, sizeof(*list));
	unsigned int status;

	if (!list)
		return web_say(out, HTTP_ERROR, "No memory.");
	list->web = web;
	list->out = out;
	list->batch.queue = web->config.queue;
	list->steps = STEPS_MAX;
	list->left = site_number(arguments, "count", 50, WEB_JOBS_MAX);
	if (!list->left)
		status = web_say(out, HTTP_BAD, "count: 1 to 100.");
	else if (!read_status(site_argument(arguments, "state"), &list->status))
		status = web_say(out, HTTP_BAD, "state: ready, reserved, delayed, buried.");
	else
		status = web_find_tube(web, site_argument(arguments, "tube"), false,
				       &list->tube, out);
	if (!status)
		status = write_list(list, site_argument(arguments, "cursor"));
	free(list);
	return status;
}

/* --- one job ---------------------------------------------------------------------------- */

static void write_body(struct web *web, uint64_t id, uint32_t body_len, FILE *out)
{
	unsigned char bytes[WEB_BODY_MAX];
	size_t len;

	fputs(",\"body\":", out);
	if (store_browse_body(web->config.store, id, bytes, sizeof(bytes), &len)) {
		fputs("null}", out);
		return;
	}
	json_hex(out, bytes, len);
	fprintf(out, ",\"cut\":%s}", len < body_len ? "true" : "false");
}

unsigned int web_job(const struct site_arguments *arguments, FILE *out, void *context)
{
	struct web *web = context;
	struct batch *batch = calloc(1, sizeof(*batch));
	uint64_t id = site_number(arguments, "id", 0, UINT64_MAX);
	unsigned int status = HTTP_OK;

	if (!batch)
		return web_say(out, HTTP_ERROR, "No memory.");
	batch->queue = web->config.queue;
	batch->nr = 1;
	batch->from[0].id = id;
	read_records(web, batch);
	if (!batch->nr) {
		status = web_say(out, HTTP_NOT_FOUND, "There is no such job.");
	} else if (errands_do(web->errands, show_batch, batch)) {
		status = say_ending(out);
	} else {
		write_job(&batch->shown[0], &batch->record[0], out);
		write_body(web, id, batch->record[0].body_len, out);
	}
	free(batch);
	return status;
}
