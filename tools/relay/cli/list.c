// SPDX-License-Identifier: GPL-2.0
/*
 * twheel-relay list: the records that wait.
 *
 * All of them are read, from the offsets that the group has committed, by a consumer that is no
 * member of the group; those that the map calls done are passed over. To print those that are due
 * first, only as many as are to be printed are kept, and some more: when there are twice as many,
 * they are sorted, and the later half is dropped.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <bsd/sys/tree.h>

#include "common/exit.h"
#include "common/util.h"
#include "relay/cli/cluster.h"
#include "relay/cli/list.h"
#include "relay/cli/record.h"
#include "relay/rules/cancelled.h"

#define LIMIT		100
#define LIMIT_MAX	1000000

/**
 * struct row - a record to be printed
 * @has_due: @due_ms is known. Others come last.
 * @due_ms: when it is due.
 * @place: where it is.
 * @offset: its offset there.
 * @json: all that is known of it.
 */
struct row {
	bool has_due;
	uint64_t due_ms;
	const struct place *place;
	int64_t offset;
	json_t *json;
};

/**
 * struct total - the records of one target
 * @node: in the tree of all, by @target.
 * @records: how many there are.
 * @held: those of them that its failing has parked.
 * @cancelled: those of them that were taken back.
 * @first_ms: when the first of them is due; 0: none of them says so.
 * @last_ms: when the last of them is due.
 * @target: its name.
 */
struct total {
	RB_ENTRY(total) node;
	uint64_t records;
	uint64_t held;
	uint64_t cancelled;
	uint64_t first_ms;
	uint64_t last_ms;
	char target[];
};

RB_HEAD(totals, total);

struct list {
	struct command command;
	const char *target;
	uint64_t due_before_ms;
	uint64_t limit;
	bool summary;
	struct cluster cluster;
	uint64_t now_ms;
	struct cancelled cancelled;
	struct row *row;
	size_t nr;
	size_t room;
	uint64_t left_out;
	struct totals totals;
};

static int compare_totals(const struct total *a, const struct total *b)
{
	return strcmp(a->target, b->target);
}

RB_PROTOTYPE(totals, total, node, compare_totals);
RB_GENERATE(totals, total, node, compare_totals);

/* --- options ------------------------------------------------------------------------------ */

static void parse_due_before(struct argp_state *state, char *arg, void *values)
{
	struct list *list = values;

	list->due_before_ms = command_time(state, "--due-before", arg);
}

#define AT(member)	offsetof(struct list, member)

static const struct option_rule rules[] = {
	COMMAND_BROKERS, COMMAND_GROUP, COMMAND_TOPIC, COMMAND_JSON, COMMAND_SETTING,
	COMMAND_CONFIG, COMMAND_SCALE,
	{ "target", 0, "NAME", "Only the records for this topic",
	  OPTION_TEXT, AT(target), 0, 0, NULL },
	{ "due-before", 0, "TIME",
	  "Only records that are due before a time, such as now, now+1h or @1700000000",
	  OPTION_OTHER, 0, 0, 0, parse_due_before },
	{ "limit", 0, "N", "Print the first N of them (default 100)",
	  OPTION_COUNT, AT(limit), 1, LIMIT_MAX, NULL },
	{ "summary", 0, NULL, "Print only the number of records for each target",
	  OPTION_FLAG, AT(summary), 0, 0, NULL },
};

/* --- records that were taken back --------------------------------------------------------- */

static bool read_cancelled(const struct scan_part *part, const rd_kafka_message_t *message,
			   void *context)
{
	struct list *list = context;
	uint64_t due_ms;

	(void)part;
	if (!message->payload)
		cancelled_remove(&list->cancelled, message->key, message->key_len);
	else if (cancelled_value_read(message->payload, message->len, &due_ms) &&
		 cancelled_add(&list->cancelled, message->key, message->key_len, due_ms))
		errx(EXIT_CANNOT, "out of memory");
	return true;
}

static void read_all_cancelled(struct list *list)
{
	char topic[RELAY_TOPIC_MAX + 32];
	struct scan_part *parts;
	size_t nr;

	snprintf(topic, sizeof(topic), "%s" RELAY_CANCELLED_SUFFIX, list->command.topic);
	nr = cluster_ask_topic(&list->cluster, topic, &parts);
	scan(list->cluster.client, parts, nr, read_cancelled, list);
	free(parts);
}

/* --- rows --------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	if (left->has_due != right->has_due)
		return left->has_due ? -1 : 1;
	if (left->has_due && left->due_ms != right->due_ms)
		return left->due_ms < right->due_ms ? -1 : 1;
	if (left->place != right->place)
		return left->place < right->place ? -1 : 1;
	return (left->offset > right->offset) - (left->offset < right->offset);
}

/* Sort the rows, and drop those beyond the limit. */
static void cut(struct list *list)
{
	qsort(list->row, list->nr, sizeof(*list->row), compare_rows);
	while (list->nr > list->limit) {
		json_decref(list->row[--list->nr].json);
		list->left_out++;
	}
}

static json_t *optional(bool known, uint64_t value)
{
	return known ? json_integer(value) : json_null();
}

#define JSON_ROW	"{s:o, s:o, s:o, s:s, s:i, s:I, s:I, s:I, s:o, s:b, s:b, s:o}"

static json_t *make_json(const struct record *record, const struct place *place, int64_t offset,
			 bool cancelled)
{
	json_t *target = record->target.data ?
		command_json_text(record->target.data, record->target.len) : json_null();

	return command_memory(json_pack(JSON_ROW,
		"id", command_json_text(record->id.data, record->id.len),
		"due_ms", optional(record->has_due, record->due_ms),
		"target", target, "topic", place->topic, "partition", place->number,
		"offset", (json_int_t)offset, "attempt", (json_int_t)record->attempt,
		"tries", (json_int_t)record->tries,
		"held_since_ms", optional(record->held_since_ms, record->held_since_ms),
		"takes_back", record->takes_back, "taken_back", cancelled,
		"error", record->why ? json_string(record->why) : json_null()));
}

static void add_row(struct list *list, const struct record *record, const struct place *place,
		    int64_t offset, bool cancelled)
{
	if (list->nr == list->room) {
		list->room = 2 * MAX(list->room, list->limit);
		list->row = command_memory(reallocarray(list->row, list->room,
							sizeof(*list->row)));
	}
	list->row[list->nr++] = (struct row){
		.has_due = record->has_due, .due_ms = record->due_ms, .place = place,
		.offset = offset, .json = make_json(record, place, offset, cancelled),
	};
	if (list->nr == 2 * list->limit)
		cut(list);
}

static struct total *find_total(struct list *list, const struct record *record)
{
	char *target = record->target.data ? command_text(record->target.data, record->target.len) :
		command_memory(strdup("-"));
	struct total *total = command_memory(calloc(1, sizeof(*total) + strlen(target) + 1));
	struct total *found;

	memcpy(total->target, target, strlen(target));
	free(target);
	found = RB_INSERT(totals, &list->totals, total);
	if (found)
		free(total);
	return found ?: total;
}

static void add_total(struct list *list, const struct record *record, bool cancelled)
{
	struct total *total = find_total(list, record);

	total->records++;
	total->held += !!record->tries;
	total->cancelled += cancelled;
	if (!record->has_due)
		return;
	if (!total->first_ms || record->due_ms < total->first_ms)
		total->first_ms = record->due_ms;
	total->last_ms = MAX(total->last_ms, record->due_ms);
}

static bool is_wanted(const struct list *list, const struct record *record)
{
	if (list->target && (record->target.len != strlen(list->target) ||
			     memcmp(record->target.data, list->target, record->target.len)))
		return false;
	return !list->due_before_ms ||
		(record->has_due && record->due_ms < list->due_before_ms);
}

static bool read_record(const struct scan_part *part, const rd_kafka_message_t *message,
			void *context)
{
	const struct place *place = part->context;
	struct list *list = context;
	struct record record;
	bool cancelled;

	if (record_is_done(place, message))
		return true;
	record_read(&record, &list->cluster.rules, place->width_ms, message, list->now_ms);
	if (!is_wanted(list, &record))
		return true;
	cancelled = !record.takes_back &&
		cancelled_has(&list->cancelled, record.id.data, record.id.len);
	if (list->summary)
		add_total(list, &record, cancelled);
	else
		add_row(list, &record, place, message->offset, cancelled);
	return true;
}

/* --- printing ----------------------------------------------------------------------------- */

static uint64_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* A string of JSON, as a terminal may have it; "-": it is null. The caller frees it. */
static char *text_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_string(value) ?
		command_text(json_string_value(value), json_string_length(value)) :
		command_memory(strdup("-"));
}

static const char *state_of(const json_t *row)
{
	if (json_is_true(json_object_get(row, "takes_back")))
		return "takes that one back";
	if (json_is_true(json_object_get(row, "taken_back")))
		return "taken back";
	return json_string_value(json_object_get(row, "error")) ?: "-";
}

static const char *time_of(char text[COMMAND_TIME_TEXT], const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);

	return json_is_integer(value) ? command_time_text(text, json_integer_value(value)) : "-";
}

/* The columns of the table, and those of them that are as wide as their longest text. */
enum column {
	COLUMN_ID,
	COLUMN_DUE,
	COLUMN_TARGET,
	COLUMN_PLACE,
	COLUMN_TRIES,
	COLUMN_HELD,
	COLUMN_ERROR,
	COLUMNS
};

/* The texts of a row; the caller frees them. */
static void make_cells(const json_t *row, char *cells[COLUMNS])
{
	char due[COMMAND_TIME_TEXT], held[COMMAND_TIME_TEXT];

	cells[COLUMN_ID] = text_of(row, "id");
	cells[COLUMN_DUE] = strdup(time_of(due, row, "due_ms"));
	cells[COLUMN_TARGET] = text_of(row, "target");
	if (asprintf(&cells[COLUMN_PLACE], "%s/%" PRIu64 "/%" PRIu64,
		     json_string_value(json_object_get(row, "topic")), number_of(row, "partition"),
		     number_of(row, "offset")) < 0)
		cells[COLUMN_PLACE] = NULL;
	if (asprintf(&cells[COLUMN_TRIES], "%" PRIu64, number_of(row, "tries")) < 0)
		cells[COLUMN_TRIES] = NULL;
	cells[COLUMN_HELD] = strdup(time_of(held, row, "held_since_ms"));
	cells[COLUMN_ERROR] = strdup(state_of(row));
}

static void free_cells(char *cells[COLUMNS])
{
	size_t i;

	for (i = 0; i < COLUMNS; i++)
		free(cells[i]);
}

static void widen(const char *const cells[COLUMNS], int width[COLUMNS])
{
	size_t i;

	for (i = 0; i < COLUMNS; i++)
		width[i] = MAX(width[i], (int)strlen(command_memory((void *)cells[i])));
}

static void print_cells(const char *const cells[COLUMNS], const int width[COLUMNS])
{
	size_t i;

	for (i = 0; i < COLUMN_ERROR; i++)
		printf("%-*s  ", width[i], cells[i]);
	puts(cells[COLUMN_ERROR]);
}

/* Call @each for the texts of each row. */
static void each_row(const struct list *list, int width[COLUMNS],
		     void (*each)(const char *const cells[COLUMNS], int width[COLUMNS]))
{
	char *cells[COLUMNS];
	size_t i;

	for (i = 0; i < list->nr; i++) {
		make_cells(list->row[i].json, cells);
		each((const char *const *)cells, width);
		free_cells(cells);
	}
}

static void print_row(const char *const cells[COLUMNS], int width[COLUMNS])
{
	print_cells(cells, width);
}

static void print_table(const struct list *list)
{
	static const char *const heads[COLUMNS] = {
		"id", "due", "target", "topic/partition/offset", "tries", "held since", "error",
	};
	int width[COLUMNS] = { 0 };

	widen(heads, width);
	each_row(list, width, widen);
	print_cells(heads, width);
	each_row(list, width, print_row);
	if (list->left_out)
		printf("and %" PRIu64 " more; --limit tells how many are printed\n",
		       list->left_out);
}

static void print_rows(struct list *list)
{
	size_t i;

	cut(list);
	if (!list->command.json)
		print_table(list);
	for (i = 0; i < list->nr; i++)
		if (list->command.json)
			command_print_json(list->row[i].json);
		else
			json_decref(list->row[i].json);
	free(list->row);
}

static void print_json_total(const struct total *total)
{
	json_t *json = json_pack("{s:s, s:I, s:I, s:I, s:o, s:o}", "target", total->target,
				 "records", (json_int_t)total->records,
				 "held", (json_int_t)total->held,
				 "taken_back", (json_int_t)total->cancelled,
				 "first_due_ms", optional(total->first_ms, total->first_ms),
				 "last_due_ms", optional(total->first_ms, total->last_ms));

	command_print_json(json);
}

static void print_total(const struct list *list, const struct total *total)
{
	char first[COMMAND_TIME_TEXT] = "-", last[COMMAND_TIME_TEXT] = "-";

	if (list->command.json) {
		print_json_total(total);
		return;
	}
	if (total->first_ms) {
		command_time_text(first, total->first_ms);
		command_time_text(last, total->last_ms);
	}
	printf("%-32s %10" PRIu64 " %8" PRIu64 " %10" PRIu64 "  %-24s %s\n", total->target,
	       total->records, total->held, total->cancelled, first, last);
}

static void print_totals(struct list *list)
{
	struct total *total, *next;

	if (!list->command.json)
		printf("%-32s %10s %8s %10s  %-24s %s\n", "target", "records", "held",
		       "taken back", "first due", "last due");
	RB_FOREACH_SAFE(total, totals, &list->totals, next) {
		print_total(list, total);
		RB_REMOVE(totals, &list->totals, total);
		free(total);
	}
}

int list_main(int argc, char **argv)
{
	static const struct option_table table = {
		.rules = rules,
		.nr = ARRAY_SIZE(rules),
		.doc = "List the records that wait, those first that are due first.",
	};
	struct list list = { .limit = LIMIT };
	struct scan_part *parts;
	size_t nr;

	command_begin(&table, &list, argc, argv);
	cluster_open(&list.cluster, &list.command, RELAY_HORIZON_MIN_MS);
	if (!cluster_partitions(&list.cluster, list.command.topic))
		errx(EXIT_CANNOT, "there is no topic %s", list.command.topic);
	list.now_ms = command_now_ms();
	cluster_read_done(&list.cluster);
	read_all_cancelled(&list);
	cluster_ask(&list.cluster);
	nr = cluster_parts(&list.cluster, &parts);
	scan(list.cluster.client, parts, nr, read_record, &list);
	free(parts);
	if (list.summary)
		print_totals(&list);
	else
		print_rows(&list);
	cancelled_free(&list.cancelled);
	cluster_close(&list.cluster);
	return command_end(&list.command, 0);
}
