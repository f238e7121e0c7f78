/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A table on a screen that is drawn again and again, as that of top: a title, a heading, rows
 * that are sorted by a column, and a legend of keys.
 *
 * The first column has the name of a row, which is never cut off: a name that is too long stands
 * on lines of its own. The other columns have figures. Those that do not fit into the terminal
 * are left out, the least important first, but never the one by which the rows are sorted.
 */
#ifndef COMMON_TABLE_H
#define COMMON_TABLE_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "common/color.h"
#include "common/number.h"

#define TABLE_COLUMNS	12

/**
 * struct column - a column of a table
 * @name: its heading.
 * @key: its name for --sort, and in the legend.
 * @width: of the heading and the figures, with the blank before them.
 * @rank: of the columns that do not fit, the one with the highest rank is left out first.
 * @alarm: a figure above 0 is shown in a colour that stands out.
 */
struct column {
	const char *name;
	const char *key;
	unsigned int width;
	unsigned int rank;
	bool alarm;
};

/**
 * struct table_row - a row
 * @name: of any bytes; those that are not printable ASCII are shown as "?".
 * @text: the figures, by column; [0] is unused.
 * @value: the same as numbers, for the order.
 * @weight: of rows with the same value, those with a larger weight come first.
 * @place: the place of the row in the order of names.
 * @color: of the row.
 * @source: what the row is about, for the caller.
 */
struct table_row {
	const char *name;
	char text[TABLE_COLUMNS][NUMBER_TEXT];
	double value[TABLE_COLUMNS];
	double weight;
	size_t place;
	enum color color;
	const void *source;
};

/**
 * struct table - how to show rows
 * @columns: the columns; the first one has names.
 * @nr: their number.
 * @name_least: the least width of the first column, if a name is that long.
 * @sort: number of the column by which rows are sorted.
 * @reverse: the smallest figure comes first, or the last name.
 * @paused: the rows are not to change.
 * @width: of the terminal; set by table_fit(), as all below.
 * @name_width: of the first column.
 * @shown: bit n is set if column n is shown.
 */
struct table {
	const struct column *columns;
	size_t nr;
	unsigned int name_least;
	size_t sort;
	bool reverse;
	bool paused;
	unsigned int width;
	unsigned int name_width;
	unsigned int shown;
};

/* Sort by the column that --sort names. */
void table_option_sort(struct table *table, struct argp_state *state, const char *text);

/* A key was pressed. Returns whether the table has to be drawn again. */
bool table_key(struct table *table, char key);

/* Set figures: a number, and a number a second. */
void table_count(struct table_row *row, size_t column, uint64_t value);
void table_rate(struct table_row *row, size_t column, double per_s);

void table_sort(const struct table *table, struct table_row *rows, size_t nr);

/* The length of the longest name of these rows, and of the one of the sum. */
size_t table_longest(const struct table_row *rows, size_t nr, const char *sum);

/* Choose the columns for a terminal of @width characters, whose longest name has @longest. */
void table_fit(struct table *table, unsigned int width, size_t longest);

/* "PROGRAM - WHERE - 12:30:00REST"; without table_fit(), it may have any width. */
void table_title(const struct table *table, const char *program, const char *where, time_t at,
		 const char *rest, FILE *out);
void table_heading(const struct table *table, FILE *out);
void table_row(const struct table *table, const struct table_row *row, FILE *out);

/* The keys, for the last line of the screen. */
void table_legend(const struct table *table, FILE *out);

#endif /* COMMON_TABLE_H */
