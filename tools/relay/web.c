// SPDX-License-Identifier: GPL-2.0
/*
 * The relay's page for people: targets, partitions, topics of delays, lateness.
 *
 * The loop copies numbers of the relay, and of ROWS_A_PIECE targets or partitions, in one errand,
 * PIECE_MS apart; the thread of the page makes its tables of them. While nobody looks, it does so
 * every 9 s, for the lines of the last ten minutes, and does not ask brokers how much is unread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/time.h"
#include "common/util.h"
#include "common/version.h"
#include "metrics/board.h"
#include "metrics/errands.h"
#include "metrics/json.h"
#include "metrics/site.h"
#include "relay/lag.h"
#include "relay/page.h"
#include "relay/partition.h"
#include "relay/send.h"
#include "relay/state.h"
#include "relay/web.h"

#define ROWS_A_PIECE	64
#define PIECE_MS	2
#define PASS_MS		1000
#define SLOW_PASS_NS	(9 * NSEC_PER_SEC)

/* Rows beyond are counted only. */
#define MAX_TARGETS	2000
#define MAX_PARTITIONS	2000
#define MAX_TOPICS	100

/* --- columns ---------------------------------------------------------------------------- */

static const struct board_column target_columns[] = {
	{ .key = "written", .title = "Written", .counter = true, .history = true,
	  .help = "Records written and acknowledged a second" },
	{ .key = "held", .title = "Held", .bad = true,
	  .help = "Records that wait in memory because the topic cannot be written" },
	{ .key = "parked", .title = "Parked", .counter = true, .bad = true,
	  .help = "Records a second that are parked because the topic cannot be written" },
	{ .key = "failing", .title = "Failing for", .seconds = true, .bad = true,
	  .help = "How long the topic cannot be written" },
};

enum { WRITTEN, HELD, PARKED, FAILING, TARGET_VALUES };

static const struct board_column partition_columns[] = {
	{ .key = "pending", .title = "In work", .history = true,
	  .help = "Records that were read and are not done" },
	{ .key = "unread", .title = "Unread", .help = "Records that were not read yet" },
	{ .key = "done_above", .title = "Done above",
	  .help = "Records that are done above the lowest one that is not" },
	{ .key = "oldest", .title = "Oldest", .seconds = true,
	  .help = "Age of the lowest record that is not done" },
	{ .key = "stopped", .title = "Stopped", .bad = true,
	  .help = "1: records are missing; see the log, and twheel-relay skip" },
};

enum { PENDING, UNREAD, DONE_ABOVE, OLDEST, STOPPED, PARTITION_VALUES };

static const struct board_column topic_columns[] = {
	{ .key = "waiting", .title = "Waiting", .history = true,
	  .help = "Unread records behind a head whose width is not over" },
	{ .key = "late", .title = "Late", .bad = true,
	  .help = "Unread records that could be read now" },
	{ .key = "pending", .title = "In work", .help = "Records that were read and are not done" },
	{ .key = "partitions", .title = "Partitions", .help = "Partitions that this relay has" },
};

enum { WAITING, LATE, TOPIC_PENDING, PARTITIONS, TOPIC_VALUES };

/* --- what is copied --------------------------------------------------------------------- */

/**
 * struct row - a target or a partition
 * @topic: its topic.
 * @number: of a partition.
 * @name: of a partition: its name in the table.
 * @waits: of a partition: its head is not ready.
 * @value: its numbers.
 */
struct row {
	char topic[RELAY_TOPIC_MAX + 1];
	int32_t number;
	char name[RELAY_TOPIC_MAX + 24];
	bool waits;
	uint64_t value[PARTITION_VALUES];
};

/**
 * struct numbers - of the relay
 */
struct numbers {
	uint64_t near;
	uint64_t records;
	uint64_t bytes;
	uint64_t in_flight;
	uint64_t partitions;
	uint64_t targets;
	uint64_t sent[RELAY_ACTIONS];
	uint64_t send_errors;
	uint64_t commit_errors;
	uint64_t uptime_ms;
	struct histogram late;
	char health[512];
};

/* What a pass is at. */
enum phase {
	IDLE,
	TARGETS,
	PARTITIONS_OF_US,
};

/**
 * struct relay_web - the page
 * @relay: what it shows; the loop's.
 * @site: for the server of HTTP.
 * @errands: by which its thread asks the loop.
 * @targets: a board.
 * @partitions: a board.
 * @topics: a board.
 * @phase: of the pass.
 * @watched: somebody looks.
 * @pass_ns: when the last pass began, CLOCK_MONOTONIC.
 * @numbers: of the last pass.
 * @piece: rows of the last piece; the last one says where the next piece begins.
 * @nr_piece: their number.
 * @all: partitions of this pass.
 * @nr_all: their number.
 */
struct relay_web {
	struct relay *relay;
	struct site site;
	struct errands *errands;
	struct board *targets;
	struct board *partitions;
	struct board *topics;
	enum phase phase;
	bool watched;
	uint64_t pass_ns;
	struct numbers numbers;
	struct row piece[ROWS_A_PIECE];
	size_t nr_piece;
	struct row all[MAX_PARTITIONS];
	size_t nr_all;
};

/* --- errands: the loop runs these ------------------------------------------------------- */

static void copy_numbers(void *context)
{
	struct relay_web *web = context;
	struct numbers *numbers = &web->numbers;
	struct relay *relay = web->relay;
	const char *wrong = relay_health(relay);

	if (web->watched)
		relay_lag_ask(relay);
	numbers->near = relay->nr_near;
	numbers->records = relay->nr_entries;
	numbers->bytes = relay->pressure.bytes;
	numbers->in_flight = relay->nr_sending;
	numbers->partitions = relay->nr_partitions;
	numbers->targets = relay->nr_targets;
	memcpy(numbers->sent, relay->stats.sent, sizeof(numbers->sent));
	numbers->send_errors = relay->stats.send_errors;
	numbers->commit_errors = relay->stats.commit_errors;
	numbers->uptime_ms = relay_boot_ms() - relay->started_ms;
	numbers->late = relay->stats.late;
	snprintf(numbers->health, sizeof(numbers->health), "%s", wrong ? wrong : "");
}

/* The first target behind the last one of the piece. */
static struct relay_target *next_target(struct relay_web *web)
{
	struct relay *relay = web->relay;
	struct relay_target *target;
	struct relay_target key;

	if (!web->nr_piece)
		return RB_MIN(relay_targets, &relay->targets);
	strcpy(key.name, web->piece[web->nr_piece - 1].topic);
	target = RB_NFIND(relay_targets, &relay->targets, &key);
	if (target && !strcmp(target->name, key.name))
		target = RB_NEXT(relay_targets, &relay->targets, target);
	return target;
}

static void copy_targets(void *context)
{
	struct relay_web *web = context;
	struct relay_target *target = next_target(web);
	size_t nr;

	for (nr = 0; nr < ROWS_A_PIECE && target; nr++) {
		struct row *row = &web->piece[nr];

		strcpy(row->topic, target->name);
		row->value[WRITTEN] = target->written;
		row->value[HELD] = target->nr_held;
		row->value[PARKED] = target->parked_again;
		row->value[FAILING] = target->failing ?
			(relay_boot_ms() - target->failing_ms) / 1000 : 0;
		target = RB_NEXT(relay_targets, &web->relay->targets, target);
	}
	web->nr_piece = nr;
}

static struct relay_partition *next_partition(struct relay_web *web)
{
	struct relay *relay = web->relay;
	struct row *last = web->nr_piece ? &web->piece[web->nr_piece - 1] : NULL;
	struct relay_partition *partition;
	struct relay_partition key;

	if (!last)
		return RB_MIN(relay_partitions, &relay->partitions);
	key.number = last->number;
	key.topic = last->topic;
	partition = RB_NFIND(relay_partitions, &relay->partitions, &key);
	if (partition && !relay_partition_compare(partition, &key))
		partition = RB_NEXT(relay_partitions, &relay->partitions, partition);
	return partition;
}

static void copy_partition(struct relay *relay, const struct relay_partition *partition,
			   struct row *row)
{
	int64_t lag = relay_lag(relay, partition);

	snprintf(row->topic, sizeof(row->topic), "%s", partition->topic);
	row->number = partition->number;
	snprintf(row->name, sizeof(row->name), "%s [%" PRId32 "]", row->topic, row->number);
	row->waits = partition->pauses & PAUSE_HEAD;
	row->value[PENDING] = partition->mark.pending;
	row->value[UNREAD] = lag > 0 ? lag : 0;
	row->value[DONE_ABOVE] = watermark_done_above(&partition->mark);
	row->value[OLDEST] = relay_page_oldest_s(partition);
	row->value[STOPPED] = !!(partition->pauses & PAUSE_STOPPED);
}

static void copy_partitions(void *context)
{
	struct relay_web *web = context;
	struct relay_partition *partition = next_partition(web);
	size_t nr;

	for (nr = 0; nr < ROWS_A_PIECE && partition; nr++) {
		copy_partition(web->relay, partition, &web->piece[nr]);
		partition = RB_NEXT(relay_partitions, &web->relay->partitions, partition);
	}
	web->nr_piece = nr;
}

/* --- a pass ----------------------------------------------------------------------------- */

static void take_targets(struct relay_web *web, uint64_t now_ns)
{
	size_t i;

	for (i = 0; i < web->nr_piece; i++)
		board_row(web->targets, web->piece[i].topic, web->piece[i].value, now_ns);
}

static void take_partitions(struct relay_web *web)
{
	size_t i;

	for (i = 0; i < web->nr_piece && web->nr_all < MAX_PARTITIONS; i++)
		web->all[web->nr_all++] = web->piece[i];
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

/* The partitions of a topic are beside one another. Returns the index of the next topic. */
static size_t add_topic(struct relay_web *web, size_t first, uint64_t now_ns)
{
	const char *topic = web->all[first].topic;
	uint64_t value[TOPIC_VALUES] = { 0 };
	size_t i;

	for (i = first; i < web->nr_all && !strcmp(web->all[i].topic, topic); i++) {
		const struct row *row = &web->all[i];

		value[row->waits ? WAITING : LATE] += row->value[UNREAD];
		value[TOPIC_PENDING] += row->value[PENDING];
		value[PARTITIONS]++;
	}
	board_row(web->topics, topic, value, now_ns);
	return i;
}

/* All partitions are there: make both tables of them, in the order of names. */
static void end_partitions(struct relay_web *web, uint64_t now_ns)
{
	size_t i;

	qsort(web->all, web->nr_all, sizeof(*web->all), compare_names);
	board_begin(web->partitions);
	for (i = 0; i < web->nr_all; i++)
		board_row(web->partitions, web->all[i].name, web->all[i].value, now_ns);
	board_end(web->partitions);
	board_begin(web->topics);
	for (i = 0; i < web->nr_all;)
		i = add_topic(web, i, now_ns);
	board_end(web->topics);
}

/* Take a piece of the phase; the next one follows if it was the last. Returns if all is over. */
static bool take_piece(struct relay_web *web)
{
	uint64_t now_ns = time_now_ns(CLOCK_MONOTONIC);
	bool last = web->nr_piece < ROWS_A_PIECE;

	if (web->phase == TARGETS)
		take_targets(web, now_ns);
	else
		take_partitions(web);
	if (!last)
		return false;
	web->nr_piece = 0;
	if (web->phase == TARGETS) {
		board_end(web->targets);
		web->nr_all = 0;
		web->phase = PARTITIONS_OF_US;
		return false;
	}
	end_partitions(web, now_ns);
	web->phase = IDLE;
	return true;
}

static int collect(void *context, bool watched, bool *fresh)
{
	struct relay_web *web = context;
	uint64_t now_ns = time_now_ns(CLOCK_MONOTONIC);

	if (web->phase == IDLE) {
		if (!watched && web->pass_ns && now_ns - web->pass_ns < SLOW_PASS_NS)
			return PASS_MS;
		web->pass_ns = now_ns;
		web->watched = watched;
		if (errands_do(web->errands, copy_numbers, web))
			return PASS_MS;
		web->phase = TARGETS;
		web->nr_piece = 0;
		board_begin(web->targets);
	}
	if (errands_do(web->errands, web->phase == TARGETS ? copy_targets : copy_partitions, web))
		return PASS_MS;
	*fresh = take_piece(web);
	return *fresh ? PASS_MS : PIECE_MS;
}

/* --- writing ---------------------------------------------------------------------------- */

static void write_tiles(const struct numbers *numbers, FILE *out)
{
	const struct board_tile tiles[] = {
		{ "near", "Due soon", "number", numbers->near },
		{ "records", "In memory", "number", numbers->records },
		{ "bytes", "Memory", "bytes", numbers->bytes },
		{ "in_flight", "In flight", "number", numbers->in_flight },
		{ "delivered", "Delivered", "rate", numbers->sent[RELAY_DELIVER] },
		{ "parked", "To buckets", "rate", numbers->sent[RELAY_PARK] },
		{ "dead", "Dead", "bad", numbers->sent[RELAY_BURY] },
		{ "invalid", "Invalid", "bad", numbers->sent[RELAY_REFUSE] },
		{ "taken_back", "Taken back", "number", numbers->sent[RELAY_TAKE_BACK] },
		{ "write_errors", "Write errors", "bad", numbers->send_errors },
		{ "commit_errors", "Failed commits", "bad", numbers->commit_errors },
		{ "partitions", "Partitions", "number", numbers->partitions },
	};

	board_write_tiles(tiles, ARRAY_SIZE(tiles), out);
	fputc(',', out);
}

static void frame(const struct site_arguments *arguments, FILE *out, void *context)
{
	struct relay_web *web = context;
	uint64_t now_ns = time_now_ns(CLOCK_MONOTONIC);
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	fputs("{\"product\":\"twheel-relay\",\"version\":\"" TWHEEL_VERSION "\",\"host\":", out);
	json_text(out, host);
	fprintf(out, ",\"now_ms\":%" PRIu64 ",\"uptime_s\":%" PRIu64,
		time_now_ns(CLOCK_REALTIME) / (uint64_t)NSEC_PER_MSEC,
		web->numbers.uptime_ms / 1000);
	fputs(",\"actions\":false,\"health\":", out);
	json_text(out, web->numbers.health);
	fputs(",\"loop\":", out);
	errands_write(web->errands, out);
	fputc(',', out);
	write_tiles(&web->numbers, out);
	fputs("\"lateness\":[", out);
	board_write_lateness("target", "From due to acknowledged by the target",
			     &web->numbers.late, out);
	fputs("],\"boards\":[", out);
	board_write(web->targets, arguments, now_ns, out);
	fputc(',', out);
	board_write(web->topics, arguments, now_ns, out);
	fputc(',', out);
	board_write(web->partitions, arguments, now_ns, out);
	fputs("]}", out);
}

/* --- beginning and end ------------------------------------------------------------------ */

static void begin(void *context, struct errands *errands)
{
	struct relay_web *web = context;

	web->errands = errands;
}

static bool make_boards(struct relay_web *web)
{
	const struct board_config targets = {
		.name = "targets", .title = "Targets", .columns = target_columns,
		.nr_columns = TARGET_VALUES, .max_rows = MAX_TARGETS,
	};
	const struct board_config topics = {
		.name = "topics", .title = "Delays and buckets", .columns = topic_columns,
		.nr_columns = TOPIC_VALUES, .max_rows = MAX_TOPICS,
	};
	const struct board_config partitions = {
		.name = "partitions", .title = "Partitions", .columns = partition_columns,
		.nr_columns = PARTITION_VALUES, .max_rows = MAX_PARTITIONS,
	};

	web->targets = board_create(&targets);
	web->topics = board_create(&topics);
	web->partitions = board_create(&partitions);
	return web->targets && web->topics && web->partitions;
}

struct relay_web *relay_web_create(struct relay *relay, const char *host)
{
	struct relay_web *web = calloc(1, sizeof(*web));

	if (!web)
		return NULL;
	web->relay = relay;
	web->site = (struct site){
		.begin = begin,
		.collect = collect,
		.frame = frame,
		.host = host,
		.context = web,
	};
	if (make_boards(web))
		return web;
	relay_web_destroy(web);
	return NULL;
}

void relay_web_destroy(struct relay_web *web)
{
	if (web->targets)
		board_destroy(web->targets);
	if (web->topics)
		board_destroy(web->topics);
	if (web->partitions)
		board_destroy(web->partitions);
	free(web);
}

const struct site *relay_web_site(const struct relay_web *web)
{
	return &web->site;
}
