// SPDX-License-Identifier: GPL-2.0
/*
 * Actions of the queue's page.
 *
 * Each becomes a command of the protocol, whose checks and reply are the action's. Here it is only
 * checked that an argument is one word: so it can be nothing but an argument.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "metrics/json.h"
#include "queue/store/browse.h"
#include "queue/web/act.h"
#include "queue/web/jobs.h"
#include "queue/web/reasons.h"
#include "queue/web/state.h"

/* Dead jobs that one request looks at, and the commands that are in flight at a time. */
#define RETRY_MAX	5000
#define IN_FLIGHT	64

#define HTTP_OK		200
#define HTTP_BAD	400
#define HTTP_NOT_FOUND	404
#define HTTP_CONFLICT	409
#define HTTP_ERROR	500
#define HTTP_ENDING	503

/* --- commands --------------------------------------------------------------------------- */

static bool is_word(const char *text)
{
	size_t i;

	for (i = 0; text[i]; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return i > 0 && i <= TUBE_NAME_MAX;
}

/* The argument of a command; NULL: it is not one word. */
static const char *word(const struct site_arguments *arguments, const char *name)
{
	const char *text = site_argument(arguments, name);

	return is_word(text) ? text : NULL;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static unsigned int status_of(const char *reply)
{
	static const char *const good[] = {
		"KICKED", "DELETED", "PURGED", "PAUSED", "POLICY", "USING",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		if (begins(reply, good[i]))
			return HTTP_OK;
	if (begins(reply, "NOT_FOUND"))
		return HTTP_NOT_FOUND;
	if (begins(reply, "BAD_FORMAT") || begins(reply, "UNKNOWN_COMMAND"))
		return HTTP_BAD;
	return HTTP_CONFLICT;
}

static unsigned int say_reply(FILE *out, const char *reply)
{
	fputs("{\"reply\":", out);
	json_text(out, reply);
	fputc('}', out);
	return status_of(reply);
}

static unsigned int say_ending(FILE *out)
{
	return web_say(out, HTTP_ENDING, "The daemon ends, or has no memory for one more client.");
}

static unsigned int say_wrong(FILE *out, const char *sentence)
{
	return web_say(out, HTTP_BAD, sentence);
}

/* Send a command and answer with its reply. */
static unsigned int PRINTF_LIKE(3, 4)
run_command(struct web *web, FILE *out, const char *format, ...)
{
	char reply[WIRE_LINE_MAX];
	va_list args;
	bool sent;

	va_start(args, format);
	sent = wire_vsend(&web->wire, format, args);
	va_end(args);
	return sent && wire_receive(&web->wire, reply) ? say_reply(out, reply) : say_ending(out);
}

/* --- actions of one command ------------------------------------------------------------- */

/* Only asks whether the token is right, which it is. */
unsigned int web_token(const struct site_arguments *arguments, FILE *out, void *context)
{
	(void)arguments;
	(void)context;
	fputs("{\"reply\":\"OK\"}", out);
	return HTTP_OK;
}

/* Kick jobs of a tube: the wire uses it for the moment. */
static unsigned int kick_tube(struct web *web, const char *tube, const char *count, FILE *out)
{
	char reply[WIRE_LINE_MAX], ignored[WIRE_LINE_MAX];
	struct tube_details details;
	unsigned int status;

	/* "use" would make a tube that is not there. */
	status = web_find_tube(web, tube, true, &details, out);
	if (status)
		return status;
	if (!wire_send(&web->wire, "use %s", tube) || !wire_send(&web->wire, "kick %s", count) ||
	    !wire_send(&web->wire, "use default") || !wire_receive(&web->wire, ignored) ||
	    !wire_receive(&web->wire, reply) || !wire_receive(&web->wire, ignored))
		return say_ending(out);
	return say_reply(out, reply);
}

unsigned int web_kick(const struct site_arguments *arguments, FILE *out, void *context)
{
	const char *id = word(arguments, "id");
	const char *tube = word(arguments, "tube"), *count = word(arguments, "count");
	struct web *web = context;

	if (id)
		return run_command(web, out, "kick-job %s", id);
	if (!tube || !count)
		return say_wrong(out, "kick takes an id, or tube and count.");
	return kick_tube(web, tube, count, out);
}

unsigned int web_delete(const struct site_arguments *arguments, FILE *out, void *context)
{
	const char *id = word(arguments, "id");
	struct web *web = context;

	if (!id)
		return say_wrong(out, "delete takes an id.");
	return run_command(web, out, "delete %s", id);
}

unsigned int web_purge(const struct site_arguments *arguments, FILE *out, void *context)
{
	const char *tube = word(arguments, "tube"), *state = word(arguments, "state");
	struct web *web = context;

	if (!tube || !state)
		return say_wrong(out, "purge takes tube and state.");
	return run_command(web, out, "purge %s %s", tube, state);
}

unsigned int web_pause(const struct site_arguments *arguments, FILE *out, void *context)
{
	const char *tube = word(arguments, "tube"), *duration = word(arguments, "duration");
	struct web *web = context;

	if (!tube || !duration)
		return say_wrong(out, "pause takes tube and duration.");
	return run_command(web, out, "pause-tube %s %s", tube, duration);
}

unsigned int web_policy(const struct site_arguments *arguments, FILE *out, void *context)
{
	static const char *const names[] = { "attempts", "base", "factor", "cap", "jitter" };
	const char *tube = word(arguments, "tube"), *dead = word(arguments, "dead");
	const char *value[ARRAY_SIZE(names)];
	struct web *web = context;
	size_t i;

	if (!tube)
		return say_wrong(out, "policy takes a tube.");
	if (!dead && *site_argument(arguments, "dead"))
		return say_wrong(out, "dead is not the name of a tube.");
	if (!strcmp(site_argument(arguments, "default"), "1"))
		return run_command(web, out, "policy %s default", tube);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		value[i] = word(arguments, names[i]);
		if (!value[i])
			return say_wrong(out,
				"policy takes attempts, base, factor, cap, jitter, and perhaps dead; or default=1.");
	}
	return run_command(web, out, "policy %s %s %s %s %s %s%s%s", tube, value[0], value[1],
			   value[2], value[3], value[4], dead ? " " : "", dead ? dead : "");
}

/* --- retrying all dead jobs of a reason ------------------------------------------------- */

/**
 * struct retrying - dead jobs that are kicked
 * @web: the page.
 * @reason: reason_number() of those that are.
 * @looked: jobs that were looked at.
 * @kicked: jobs that were kicked.
 * @in_flight: commands without a reply.
 * @last: the last job that was looked at.
 * @broken: the wire is.
 */
struct retrying {
	struct web *web;
	uint64_t reason;
	uint64_t looked;
	uint64_t kicked;
	unsigned int in_flight;
	struct job_place last;
	bool broken;
};

static void receive_replies(struct retrying *retrying)
{
	char reply[WIRE_LINE_MAX];

	for (; retrying->in_flight && !retrying->broken; retrying->in_flight--) {
		retrying->broken = !wire_receive(&retrying->web->wire, reply);
		if (!retrying->broken && !strcmp(reply, "KICKED"))
			retrying->kicked++;
	}
}

static bool retry_job(void *context, const struct job_place *place)
{
	struct retrying *retrying = context;
	struct job_record record;

	retrying->looked++;
	retrying->last = *place;
	if (store_browse_job(retrying->web->config.store, place->id, &record) ||
	    !record.died_ns ||
	    reason_number(record.reason, record.reason_len) != retrying->reason)
		return true;
	if (!wire_send(&retrying->web->wire, "kick-job %" PRIu64, place->id))
		retrying->broken = true;
	else if (++retrying->in_flight == IN_FLIGHT)
		receive_replies(retrying);
	return !retrying->broken;
}

static unsigned int retry(struct retrying *retrying, const struct job_place *from, FILE *out)
{
	int err = store_browse(retrying->web->config.store, from, RETRY_MAX, retry_job, retrying);

	receive_replies(retrying);
	if (retrying->broken)
		return say_ending(out);
	if (err)
		return web_say(out, HTTP_ERROR, "The store cannot be read; see the log.");
	fprintf(out, "{\"reply\":\"KICKED %" PRIu64 "\",\"looked\":%" PRIu64 ",\"next\":",
		retrying->kicked, retrying->looked);
	if (retrying->looked == RETRY_MAX)
		fprintf(out, "\"%" PRIu64 ".%" PRIu64 "\"}", retrying->last.order,
			retrying->last.id + 1);
	else
		fputs("null}", out);
	return HTTP_OK;
}

unsigned int web_retry(const struct site_arguments *arguments, FILE *out, void *context)
{
	const char *reason = word(arguments, "reason");
	const char *cursor = site_argument(arguments, "cursor");
	struct retrying retrying = { .web = context };
	struct tube_details tube;
	unsigned int status;
	char *end;

	if (!reason)
		return say_wrong(out, "retry takes tube and reason.");
	retrying.reason = strtoull(reason, &end, 16);
	if (*end)
		return say_wrong(out, "reason is a number that /api/reasons has.");
	status = web_find_tube(retrying.web, site_argument(arguments, "tube"), true, &tube,
			       out);
	if (status)
		return status;
	if (*cursor && !reason_cursor(cursor, &tube.first[JOB_BURIED]))
		return say_wrong(out, "This is no cursor of this list.");
	if (!tube.number) {
		fputs("{\"reply\":\"KICKED 0\",\"looked\":0,\"next\":null}", out);
		return HTTP_OK;
	}
	return retry(&retrying, &tube.first[JOB_BURIED], out);
}
