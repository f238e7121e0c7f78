// SPDX-License-Identifier: GPL-2.0
/*
 * Why the dead jobs of a tube have died: counted by reason.
 *
 * A million records cannot be read at once: an answer counts the next JOBS_MAX ones, and has a
 * cursor. Of reasons beyond REASONS_MAX only the number of jobs is told.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/stdlib.h>

#include "common/time.h"
#include "metrics/json.h"
#include "queue/store/browse.h"
#include "queue/web/jobs.h"
#include "queue/web/reasons.h"
#include "queue/web/state.h"

#define JOBS_MAX	20000
#define REASONS_MAX	100

#define HTTP_OK		200
#define HTTP_BAD	400
#define HTTP_ERROR	500

/* --- numbers of reasons ----------------------------------------------------------------- */

static pthread_once_t seeded = PTHREAD_ONCE_INIT;
static uint64_t seed;

static void make_seed(void)
{
	seed = (uint64_t)arc4random() << 32 | arc4random();
}

/* FNV-1a with a seed, and a last step that mixes all bits. */
uint64_t reason_number(const void *reason, size_t len)
{
	const unsigned char *bytes = reason;
	uint64_t hash;
	size_t i;

	pthread_once(&seeded, make_seed);
	hash = seed;
	for (i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
	hash ^= hash >> 32;
	return (hash * 0x9e3779b97f4a7c15ULL) ^ (hash >> 29);
}

bool reason_cursor(const char *text, struct job_place *from)
{
	char end;

	return sscanf(text, "%" SCNu64 ".%" SCNu64 "%c", &from->order, &from->id, &end) == 2;
}

/* --- counting --------------------------------------------------------------------------- */

/**
 * struct reason - a reason
 * @number: reason_number() of it.
 * @count: the dead jobs that have it.
 * @first: the id of one of them.
 * @died_ns: when the last of them died.
 * @len: its length.
 * @text: it.
 */
struct reason {
	uint64_t number;
	uint64_t count;
	uint64_t first;
	uint64_t died_ns;
	size_t len;
	char text[JOB_REASON_MAX];
};

/**
 * struct counting - an answer that is being made
 * @store: where the jobs are.
 * @looked: jobs that were looked at.
 * @buried: those of them that have not died: somebody has buried them.
 * @more: those that have other reasons.
 * @last: the last one.
 * @nr: number of reasons.
 * @reason: the reasons.
 */
struct counting {
	struct store *store;
	uint64_t looked;
	uint64_t buried;
	uint64_t more;
	struct job_place last;
	size_t nr;
	struct reason reason[REASONS_MAX];
};

static void count_reason(struct counting *counting, const struct job_record *record)
{
	uint64_t number = reason_number(record->reason, record->reason_len);
	struct reason *reason;
	size_t i;

	for (i = 0; i < counting->nr && counting->reason[i].number != number; i++)
		;
	if (i == REASONS_MAX) {
		counting->more++;
		return;
	}
	reason = &counting->reason[i];
	if (i == counting->nr) {
		counting->nr++;
		reason->number = number;
		reason->first = record->place.id;
		reason->len = record->reason_len;
		memcpy(reason->text, record->reason, record->reason_len);
	}
	reason->count++;
	if (record->died_ns > reason->died_ns)
		reason->died_ns = record->died_ns;
}

static bool count_job(void *context, const struct job_place *place)
{
	struct counting *counting = context;
	struct job_record record;

	counting->looked++;
	counting->last = *place;
	if (store_browse_job(counting->store, place->id, &record))
		return true;
	if (record.died_ns)
		count_reason(counting, &record);
	else
		counting->buried++;
	return true;
}

static void write_counting(const struct counting *counting, FILE *out)
{
	const struct reason *reason;
	size_t i;

	fputs("{\"reasons\":[", out);
	for (i = 0; i < counting->nr; i++) {
		reason = &counting->reason[i];
		fprintf(out, "%s{\"number\":\"%016" PRIx64 "\",\"count\":%" PRIu64
			",\"first\":\"%" PRIu64 "\",\"died_ms\":%" PRIu64 ",\"reason\":",
			i ? "," : "", reason->number, reason->count, reason->first,
			reason->died_ns / (uint64_t)NSEC_PER_MSEC);
		json_bytes(out, reason->text, reason->len);
		fputc('}', out);
	}
	fprintf(out, "],\"other_reasons\":%" PRIu64 ",\"not_dead\":%" PRIu64 ",\"looked\":%" PRIu64,
		counting->more, counting->buried, counting->looked);
	if (counting->looked == JOBS_MAX)
		fprintf(out, ",\"next\":\"%" PRIu64 ".%" PRIu64 "\"}", counting->last.order,
			counting->last.id + 1);
	else
		fputs(",\"next\":null}", out);
}

unsigned int web_reasons(const struct site_arguments *arguments, FILE *out, void *context)
{
	struct web *web = context;
	const char *cursor = site_argument(arguments, "cursor");
	struct counting *counting;
	struct tube_details tube;
	unsigned int status;

	status = web_find_tube(web, site_argument(arguments, "tube"), false, &tube, out);
	if (status)
		return status;
	if (*cursor && !reason_cursor(cursor, &tube.first[JOB_BURIED]))
		return web_say(out, HTTP_BAD, "This is no cursor of this list.");
	counting = calloc(1, sizeof(*counting));
	if (!counting)
		return web_say(out, HTTP_ERROR, "No memory.");
	counting->store = web->config.store;
	if (tube.number && store_browse(counting->store, &tube.first[JOB_BURIED], JOBS_MAX,
					count_job, counting)) {
		status = web_say(out, HTTP_ERROR, "The store cannot be read; see the log.");
	} else {
		write_counting(counting, out);
		status = HTTP_OK;
	}
	free(counting);
	return status;
}
