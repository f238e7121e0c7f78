// SPDX-License-Identifier: GPL-2.0
/*
 * A board: a table of named things with their numbers, which a page shows live.
 *
 * Rows are in an array in the order of names. A pass makes a new array beside it, in which rows
 * that are known appear too: both are in the same order, so that each row is found by going on.
 * Until the pass ends, the array of the last one is whole, and can be written.
 *
 * The rate of a counter is its growth since a base, divided by the time since then. There are two
 * bases. When the newer one is BASE_NS old it becomes the older one, from which rates are reckoned:
 * so that is between one and two times BASE_NS old.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/time.h"
#include "common/util.h"
#include "metrics/board.h"
#include "metrics/history.h"
#include "metrics/json.h"
#include "metrics/site.h"

#define BASE_NS		(5 * NSEC_PER_SEC)

/* Orders that are kept until the next pass ends. */
#define ORDERS_MAX	4

/* The bytes of a name that board_memory() reckons with. */
#define NAME_RECKONED	24

struct base {
	uint64_t time_ns;
	uint64_t value[BOARD_COLUMNS_MAX];
};

/**
 * struct row - a row
 * @time_ns: when it was told last.
 * @moved: while a pass goes on: it is in the arrays of both passes.
 * @value: its numbers.
 * @older: the base of rates.
 * @newer: the next one.
 * @history: the last ten minutes.
 * @name: its name.
 */
struct row {
	uint64_t time_ns;
	bool moved;
	uint64_t value[BOARD_COLUMNS_MAX];
	struct base older;
	struct base newer;
	struct history history;
	char name[];
};

struct rows {
	struct row **row;
	size_t nr;
	size_t room;
	uint64_t left_out;
};

/**
 * struct order - rows in the order of a column
 * @column: its index.
 * @row: the rows; NULL: not made.
 */
struct order {
	size_t column;
	struct row **row;
};

/**
 * struct board - a board
 * @config: as it was made.
 * @rows: the rows of the last pass.
 * @next: those of the pass that goes on.
 * @passed: so many of @rows were passed over in it.
 * @orders: of @rows.
 * @nr_orders: their number.
 */
struct board {
	struct board_config config;
	struct rows rows;
	struct rows next;
	size_t passed;
	struct order orders[ORDERS_MAX];
	size_t nr_orders;
};

size_t board_memory(size_t rows)
{
	/* A row, and its place in two arrays, whose room is up to twice of that, and in orders. */
	return rows * (sizeof(struct row) + NAME_RECKONED +
		       (4 + ORDERS_MAX) * sizeof(struct row *));
}

size_t board_rows(size_t memory)
{
	return memory / board_memory(1);
}

struct board *board_create(const struct board_config *config)
{
	struct board *board = calloc(1, sizeof(*board));

	if (board)
		board->config = *config;
	return board;
}

static void forget_orders(struct board *board)
{
	size_t i;

	for (i = 0; i < board->nr_orders; i++)
		free(board->orders[i].row);
	board->nr_orders = 0;
}

void board_destroy(struct board *board)
{
	size_t i;

	forget_orders(board);
	for (i = 0; i < board->next.nr; i++)
		if (!board->next.row[i]->moved)
			free(board->next.row[i]);
	for (i = 0; i < board->rows.nr; i++)
		free(board->rows.row[i]);
	free(board->next.row);
	free(board->rows.row);
	free(board);
}

/* --- a pass ----------------------------------------------------------------------------- */

void board_begin(struct board *board)
{
	board->passed = 0;
	board->next.nr = 0;
	board->next.left_out = 0;
}

/* The row of this name in the last pass, or NULL. */
static struct row *known_row(struct board *board, const char *name)
{
	int order;

	while (board->passed < board->rows.nr) {
		struct row *row = board->rows.row[board->passed];

		order = strcmp(row->name, name);
		if (order > 0)
			return NULL;
		board->passed++;
		if (!order)
			return row;
	}
	return NULL;
}

static struct row *new_row(const char *name)
{
	size_t len = strlen(name);
	struct row *row = calloc(1, sizeof(*row) + len + 1);

	if (row)
		memcpy(row->name, name, len);
	return row;
}

static bool add_row(struct rows *rows, struct row *row)
{
	size_t room = rows->room ? 2 * rows->room : 64;
	struct row **array;

	if (rows->nr == rows->room) {
		array = reallocarray(rows->row, room, sizeof(*array));
		if (!array)
			return false;
		rows->row = array;
		rows->room = room;
	}
	rows->row[rows->nr++] = row;
	return true;
}

static void set_base(struct base *base, const uint64_t *values, size_t nr, uint64_t now_ns)
{
	memcpy(base->value, values, nr * sizeof(*values));
	base->time_ns = now_ns;
}

/* A counter that shrinks is that of another thing of the same name. */
static bool is_another(const struct board *board, const struct row *row, const uint64_t *values)
{
	size_t i;

	for (i = 0; i < board->config.nr_columns; i++)
		if (board->config.columns[i].counter && values[i] < row->value[i])
			return true;
	return false;
}

static void note_history(const struct board *board, struct row *row, const uint64_t *values,
			 uint64_t now_ns)
{
	const struct board_column *column = board->config.columns;
	unsigned int series = 0;
	size_t i;

	for (i = 0; i < board->config.nr_columns && series < HISTORY_SERIES; i++)
		if (column[i].history)
			history_note(&row->history, now_ns / NSEC_PER_SEC, series++,
				     column[i].counter ? values[i] - row->value[i] : values[i],
				     column[i].counter);
}

static void set_row(const struct board *board, struct row *row, const uint64_t *values,
		    uint64_t now_ns)
{
	size_t nr = board->config.nr_columns;

	if (!row->time_ns || is_another(board, row, values)) {
		memcpy(row->value, values, nr * sizeof(*values));
		set_base(&row->older, values, nr, now_ns);
		set_base(&row->newer, values, nr, now_ns);
	} else if (now_ns - row->newer.time_ns >= BASE_NS) {
		row->older = row->newer;
		set_base(&row->newer, values, nr, now_ns);
	}
	note_history(board, row, values, now_ns);
	memcpy(row->value, values, nr * sizeof(*values));
	row->time_ns = now_ns;
}

void board_row(struct board *board, const char *name, const uint64_t *values, uint64_t now_ns)
{
	struct row *known = known_row(board, name), *row;

	if (board->next.nr == board->config.max_rows) {
		board->next.left_out++;
		return;
	}
	row = known ? known : new_row(name);
	if (row && add_row(&board->next, row)) {
		row->moved = known;
		set_row(board, row, values, now_ns);
		return;
	}
	if (!known)
		free(row);
	board->next.left_out++;
}

void board_end(struct board *board)
{
	struct rows old = board->rows;
	size_t i;

	forget_orders(board);
	for (i = 0; i < old.nr; i++)
		if (!old.row[i]->moved)
			free(old.row[i]);
	board->rows = board->next;
	for (i = 0; i < board->rows.nr; i++)
		board->rows.row[i]->moved = false;
	board->next = (struct rows){ .row = old.row, .room = old.room };
}

/* --- writing ---------------------------------------------------------------------------- */

/* What a column is sorted by: the rate of a counter, in thousandths. */
static uint64_t sort_value(const struct board *board, const struct row *row, size_t column)
{
	uint64_t time_ns = row->time_ns - row->older.time_ns;

	if (!board->config.columns[column].counter)
		return row->value[column];
	if (!time_ns)
		return 0;
	return (uint64_t)((double)(row->value[column] - row->older.value[column]) * 1e12 /
			  (double)time_ns);
}

struct sorting {
	const struct board *board;
	size_t column;
};

/* The largest first; equal ones in the order of names. */
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct sorting *sorting = context;
	const struct row *one = *(struct row *const *)a, *other = *(struct row *const *)b;
	uint64_t x = sort_value(sorting->board, one, sorting->column);
	uint64_t y = sort_value(sorting->board, other, sorting->column);

	if (x != y)
		return x < y ? 1 : -1;
	return strcmp(one->name, other->name);
}

/* The order of a column is made once a pass. Without memory it is that of names. */
static struct row **order_by(struct board *board, size_t column)
{
	struct sorting sorting = { .board = board, .column = column };
	struct order *order;
	size_t i, size = board->rows.nr * sizeof(struct row *);

	for (i = 0; i < board->nr_orders; i++)
		if (board->orders[i].column == column)
			return board->orders[i].row;
	if (board->nr_orders == ORDERS_MAX)
		free(board->orders[--board->nr_orders].row);
	order = &board->orders[board->nr_orders];
	order->column = column;
	order->row = malloc(size);
	if (!order->row)
		return board->rows.row;
	memcpy(order->row, board->rows.row, size);
	qsort_r(order->row, board->rows.nr, sizeof(struct row *), compare_rows, &sorting);
	board->nr_orders++;
	return order->row;
}

static struct row **rows_in_order(struct board *board, const char *sort)
{
	size_t i;

	for (i = 0; board->rows.nr && i < board->config.nr_columns; i++)
		if (!strcmp(sort, board->config.columns[i].key))
			return order_by(board, i);
	return board->rows.row;
}

static void write_columns(const struct board *board, FILE *out)
{
	const struct board_column *column = board->config.columns;
	size_t i;

	for (i = 0; i < board->config.nr_columns && !column[i].history; i++)
		;
	/* Of the first series: that is in the table. */
	if (i < board->config.nr_columns)
		fprintf(out, "\"line\":\"%s\",", column[i].title);
	fputs("\"columns\":[", out);
	for (i = 0; i < board->config.nr_columns; i++) {
		fprintf(out, "%s{\"key\":\"%s\",\"title\":\"%s\",\"help\":\"%s\",\"kind\":\"%s\"",
			i ? "," : "", column[i].key, column[i].title, column[i].help,
			column[i].counter ? "rate" : column[i].seconds ? "seconds" : "number");
		fprintf(out, ",\"bad\":%s}", column[i].bad ? "true" : "false");
	}
	fputs("]", out);
}

/* The rate of a counter; null for other columns. */
static void write_rate(const struct board *board, const struct row *row, size_t column, FILE *out)
{
	uint64_t milli = sort_value(board, row, column);

	if (column)
		fputc(',', out);
	if (board->config.columns[column].counter)
		fprintf(out, "%" PRIu64 ".%03" PRIu64, milli / 1000, milli % 1000);
	else
		fputs("null", out);
}

static void write_row(const struct board *board, const struct row *row, uint64_t now_ns, FILE *out)
{
	size_t i;

	fputs("{\"name\":", out);
	json_text(out, row->name);
	fputs(",\"values\":[", out);
	for (i = 0; i < board->config.nr_columns; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", row->value[i]);
	fputs("],\"rates\":[", out);
	for (i = 0; i < board->config.nr_columns; i++)
		write_rate(board, row, i, out);
	fputs("],\"line\":", out);
	history_write(&row->history, now_ns / NSEC_PER_SEC, 0, out);
	fputc('}', out);
}

static const char *argument_name(const struct board *board, const char *name, char text[64])
{
	snprintf(text, 64, "%s.%s", board->config.name, name);
	return text;
}

static const char *argument(const struct board *board, const struct site_arguments *arguments,
			    const char *name)
{
	char text[64];

	return site_argument(arguments, argument_name(board, name, text));
}

static uint64_t number(const struct board *board, const struct site_arguments *arguments,
		       const char *name, uint64_t missing, uint64_t max)
{
	char text[64];

	return site_number(arguments, argument_name(board, name, text), missing, max);
}

void board_write(struct board *board, const struct site_arguments *arguments, uint64_t now_ns,
		 FILE *out)
{
	struct row **rows = rows_in_order(board, argument(board, arguments, "sort"));
	const char *filter = argument(board, arguments, "filter");
	uint64_t from = number(board, arguments, "from", 0, UINT32_MAX);
	uint64_t count = number(board, arguments, "count", 50, BOARD_SHOWN_MAX);
	uint64_t matched = 0, shown = 0;
	size_t i;

	fprintf(out, "{\"name\":\"%s\",\"title\":\"%s\",", board->config.name, board->config.title);
	write_columns(board, out);
	fputs(",\"rows\":[", out);
	for (i = 0; i < board->rows.nr; i++) {
		if (*filter && !strcasestr(rows[i]->name, filter))
			continue;
		if (matched++ < from || shown == count)
			continue;
		if (shown++)
			fputc(',', out);
		write_row(board, rows[i], now_ns, out);
	}
	fprintf(out, "],\"matched\":%" PRIu64 ",\"total\":%" PRIu64 ",\"left_out\":%" PRIu64 "}",
		matched, board->rows.nr + board->rows.left_out, board->rows.left_out);
}

static int compare_name(const void *name, const void *row)
{
	return strcmp(name, (*(struct row *const *)row)->name);
}

void board_write_history(struct board *board, const char *name, uint64_t now_ns, FILE *out)
{
	const struct board_column *column = board->config.columns;
	struct row **row = board->rows.nr ?
		bsearch(name, board->rows.row, board->rows.nr, sizeof(*row), compare_name) : NULL;
	unsigned int series = 0;
	size_t i;

	if (!row) {
		fputs("null", out);
		return;
	}
	fprintf(out, "{\"step_s\":%d", HISTORY_STEP_S);
	for (i = 0; i < board->config.nr_columns && series < HISTORY_SERIES; i++) {
		if (!column[i].history)
			continue;
		fprintf(out, ",\"%s\":", column[i].key);
		history_write(&(*row)->history, now_ns / NSEC_PER_SEC, series++, out);
	}
	fputc('}', out);
}

/* --- tiles, lateness -------------------------------------------------------------------- */

void board_write_tiles(const struct board_tile *tiles, size_t nr, FILE *out)
{
	size_t i;

	fputs("\"tiles\":[", out);
	for (i = 0; i < nr; i++)
		fprintf(out, "%s{\"key\":\"%s\",\"title\":\"%s\",\"kind\":\"%s\",\"value\":%" PRIu64
			"}", i ? "," : "", tiles[i].key, tiles[i].title, tiles[i].kind,
			tiles[i].value);
	fputc(']', out);
}

void board_write_lateness(const char *name, const char *title, const struct histogram *histogram,
			  FILE *out)
{
	static const struct {
		const char *name;
		unsigned int permille;
	} points[] = { { "p50_us", 500 }, { "p99_us", 990 }, { "p999_us", 999 } };
	uint64_t max_us = histogram->max_ns / NSEC_PER_USEC, us;
	size_t i;

	fprintf(out, "{\"name\":\"%s\",\"title\":\"%s\",\"counts\":[", name, title);
	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", histogram->nr[i]);
	fputs("]", out);
	for (i = 0; i < ARRAY_SIZE(points); i++) {
		us = histogram_permille_us(histogram, points[i].permille);
		fprintf(out, ",\"%s\":%" PRIu64, points[i].name, us < max_us ? us : max_us);
	}
	fprintf(out, ",\"max_us\":%" PRIu64 ",\"count\":%" PRIu64 "}", max_us, histogram->count);
}
