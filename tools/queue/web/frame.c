// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of the queue's page: what the queue is like now.
 *
 * The loop copies the numbers of the queue, and of WEB_TUBES_A_PIECE tubes, in one errand; a pass
 * over all tubes takes as many errands as it needs, PIECE_MS apart.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/time.h"
#include "common/util.h"
#include "common/version.h"
#include "metrics/json.h"
#include "queue/web/frame.h"
#include "queue/web/state.h"

#define PIECE_MS	2
#define PASS_NS		(1 * NSEC_PER_SEC)
/* While nobody looks, and there are more tubes than one errand has. */
#define SLOW_PASS_NS	(9 * NSEC_PER_SEC)

static const struct board_column columns[] = {
	{ .key = "ready", .title = "Ready", .help = "Jobs that a worker can have now",
	  .history = true },
	{ .key = "delayed", .title = "Delayed", .help = "Jobs that are due later" },
	{ .key = "reserved", .title = "Reserved", .help = "Jobs that a worker has" },
	{ .key = "buried", .title = "Buried", .bad = true,
	  .help = "Jobs in this tube that nobody gets until they are kicked" },
	{ .key = "dead", .title = "Dead", .bad = true,
	  .help = "Jobs of this tube whose last attempt failed, wherever they are buried" },
	{ .key = "oldest", .title = "Oldest", .seconds = true,
	  .help = "How long the oldest ready job has been ready" },
	{ .key = "put", .title = "Put", .help = "Jobs put a second",
	  .counter = true, .history = true },
	{ .key = "deleted", .title = "Done", .help = "Jobs deleted a second",
	  .counter = true, .history = true },
	{ .key = "retries", .title = "Retries", .help = "Failed attempts a second",
	  .counter = true },
	{ .key = "waiting", .title = "Idle workers",
	  .help = "Connections that wait for a job of this tube" },
};

struct board *web_make_board(size_t memory)
{
	const struct board_config config = {
		.name = "tubes",
		.title = "Tubes",
		.columns = columns,
		.nr_columns = ARRAY_SIZE(columns),
		.max_rows = board_rows(memory),
	};

	return board_create(&config);
}

/* --- collecting ------------------------------------------------------------------------- */

static void copy_numbers(struct web *web)
{
	const char *wrong = web->config.health(web->config.context);

	show_queue(web->config.queue, &web->stats);
	snprintf(web->health, sizeof(web->health), "%s", wrong ? wrong : "");
}

/* In the loop. */
static void copy_piece(void *context)
{
	struct web *web = context;

	if (!*web->after)
		copy_numbers(web);
	web->nr_piece = show_tubes(web->config.queue, web->after, web->piece, WEB_TUBES_A_PIECE);
}

static void take_piece(struct web *web)
{
	uint64_t now_ns = time_now_ns(CLOCK_MONOTONIC);
	size_t i;

	for (i = 0; i < web->nr_piece; i++) {
		const struct tube_shown *tube = &web->piece[i];
		const uint64_t values[] = {
			tube->ready, tube->delayed, tube->reserved, tube->buried, tube->dead,
			tube->oldest_ready_s, tube->put, tube->deleted, tube->retries,
			tube->waiting,
		};

		board_row(web->board, tube->name, values, now_ns);
	}
	if (web->nr_piece)
		strcpy(web->after, web->piece[web->nr_piece - 1].name);
}

static bool is_time_for_a_pass(const struct web *web, bool watched)
{
	bool slow = !watched && web->stats.tubes > WEB_TUBES_A_PIECE;

	return time_now_ns(CLOCK_MONOTONIC) - web->pass_ns >= (slow ? SLOW_PASS_NS : PASS_NS) -
		PIECE_MS * NSEC_PER_MSEC;
}

static int ms_to_next_pass(const struct web *web)
{
	uint64_t past_ns = time_now_ns(CLOCK_MONOTONIC) - web->pass_ns;

	return past_ns < PASS_NS ? (int)((PASS_NS - past_ns) / NSEC_PER_MSEC) : PIECE_MS;
}

int web_collect(void *context, bool watched, bool *fresh)
{
	struct web *web = context;

	if (!web->in_pass) {
		if (!is_time_for_a_pass(web, watched))
			return PASS_NS / NSEC_PER_MSEC;
		web->in_pass = true;
		web->pass_ns = time_now_ns(CLOCK_MONOTONIC);
		*web->after = '\0';
		board_begin(web->board);
		store_disk(web->config.store, &web->disk_bytes, &web->free_bytes);
	}
	/* The program ends. */
	if (errands_do(web->errands, copy_piece, web))
		return PASS_NS / NSEC_PER_MSEC;
	take_piece(web);
	if (web->nr_piece == WEB_TUBES_A_PIECE)
		return PIECE_MS;
	board_end(web->board);
	web->in_pass = false;
	*fresh = true;
	return ms_to_next_pass(web);
}

/* --- writing ---------------------------------------------------------------------------- */

static void write_number(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, ",\"%s\":%" PRIu64, key, value);
}

static void write_tiles(const struct web *web, FILE *out)
{
	const struct queue_stats *stats = &web->stats;
	const struct board_tile tiles[] = {
		{ "ready", "Ready", "number", stats->ready },
		{ "delayed", "Delayed", "number", stats->delayed },
		{ "reserved", "Reserved", "number", stats->reserved },
		{ "buried", "Buried", "bad", stats->buried },
		{ "put", "Put", "rate", stats->total_jobs },
		{ "retries", "Retries", "rate", stats->retries },
		{ "died", "Died", "bad", stats->dead },
		{ "timeouts", "Timeouts", "number", stats->job_timeouts },
		{ "refused", "Puts refused", "bad", stats->refused_full },
		{ "connections", "Connections", "number", stats->connections },
		{ "disk_bytes", "Store", "bytes", web->disk_bytes },
		{ "free_bytes", "Free on disk", "bytes", web->free_bytes },
	};

	board_write_tiles(tiles, ARRAY_SIZE(tiles), out);
}

static void write_policy(const struct tube_details *details, FILE *out)
{
	const struct retry_policy *policy = &details->policy;

	fprintf(out, "\"policy\":{\"set\":%s", details->has_policy ? "true" : "false");
	write_number(out, "max_attempts", policy->max_attempts);
	write_number(out, "base_ms", policy->base_ns / NSEC_PER_MSEC);
	fprintf(out, ",\"factor\":%g", policy->factor);
	write_number(out, "cap_ms", policy->cap_ns / NSEC_PER_MSEC);
	write_number(out, "jitter_percent", policy->jitter_percent);
	fputs(",\"dead_tube\":", out);
	json_text(out, policy->dead);
	fputc('}', out);
}

/**
 * struct asking - the errand that asks for a tube
 */
struct asking {
	struct queue *queue;
	const char *name;
	struct tube_details details;
	bool found;
};

static void ask(void *context)
{
	struct asking *asking = context;

	asking->found = show_tube(asking->queue, asking->name, &asking->details);
}

/* The tube that a page has open. */
static void write_tube(struct web *web, const char *name, uint64_t now_ns, FILE *out)
{
	struct asking asking = { .queue = web->config.queue, .name = name };
	const struct tube_shown *numbers = &asking.details.numbers;

	fputs(",\"tube\":{\"name\":", out);
	json_text(out, name);
	if (errands_do(web->errands, ask, &asking) || !asking.found) {
		fputs(",\"found\":false}", out);
		return;
	}
	fputs(",\"found\":true", out);
	write_number(out, "ready", numbers->ready);
	write_number(out, "delayed", numbers->delayed);
	write_number(out, "reserved", numbers->reserved);
	write_number(out, "buried", numbers->buried);
	write_number(out, "dead", numbers->dead);
	write_number(out, "put", numbers->put);
	write_number(out, "deleted", numbers->deleted);
	write_number(out, "waiting", numbers->waiting);
	write_number(out, "using", asking.details.using);
	write_number(out, "watching", asking.details.watching);
	write_number(out, "pause_left_ms", asking.details.pause_left_ns / NSEC_PER_MSEC);
	fputc(',', out);
	write_policy(&asking.details, out);
	fputs(",\"history\":", out);
	board_write_history(web->board, name, now_ns, out);
	fputc('}', out);
}

void web_frame(const struct site_arguments *arguments, FILE *out, void *context)
{
	struct web *web = context;
	const char *tube = site_argument(arguments, "tube");
	uint64_t now_ns = time_now_ns(CLOCK_MONOTONIC);
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	fputs("{\"product\":\"twheelq\",\"version\":\"" TWHEEL_VERSION "\",\"host\":", out);
	json_text(out, host);
	fprintf(out, ",\"now_ms\":%" PRIu64, time_now_ns(CLOCK_REALTIME) / (uint64_t)NSEC_PER_MSEC);
	write_number(out, "uptime_s", web->stats.uptime_ns / NSEC_PER_SEC);
	fprintf(out, ",\"actions\":%s,\"health\":", web->config.token ? "true" : "false");
	json_text(out, web->health);
	/* What all pages have cost the loop. */
	fputs(",\"loop\":", out);
	errands_write(web->errands, out);
	fprintf(out, ",\"draining\":%s,", web->stats.draining ? "true" : "false");
	write_tiles(web, out);
	fputs(",\"lateness\":[", out);
	board_write_lateness("ready", "From due to ready", &web->stats.ready_late, out);
	fputc(',', out);
	board_write_lateness("reserved", "From due to reserved", &web->stats.reserved_late, out);
	fputs("],\"boards\":[", out);
	board_write(web->board, arguments, now_ns, out);
	fputc(']', out);
	if (*tube)
		write_tube(web, tube, now_ns, out);
	fputc('}', out);
}
