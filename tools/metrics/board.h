/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A board: a table of named things with their numbers, which a page shows live: tubes, targets.
 *
 * The program tells the numbers of all things again and again: a pass, in the order of their
 * names. The board keeps the last numbers, works out rates of counters, and remembers the last
 * ten minutes of up to HISTORY_SERIES columns. One thread uses it.
 */
#ifndef METRICS_BOARD_H
#define METRICS_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/histogram.h"

#define BOARD_COLUMNS_MAX	12

/* The most rows that a page shows at a time. */
#define BOARD_SHOWN_MAX		200

/**
 * struct board_column - a column
 * @key: its name in JSON.
 * @title: its name for people.
 * @help: one sentence.
 * @counter: it only grows, and the page shows its rate; else it is a number of things now.
 * @seconds: it is a time in seconds.
 * @bad: more than 0 is to be noticed.
 * @history: the last ten minutes are kept.
 */
struct board_column {
	const char *key;
	const char *title;
	const char *help;
	bool counter;
	bool seconds;
	bool bad;
	bool history;
};

struct board;
struct site_arguments;

/**
 * struct board_config - a board
 * @name: in JSON.
 * @title: for people.
 * @columns: its columns.
 * @nr_columns: their number.
 * @max_rows: rows beyond are only counted.
 */
struct board_config {
	const char *name;
	const char *title;
	const struct board_column *columns;
	size_t nr_columns;
	size_t max_rows;
};

/* The memory of a board with so many rows, whose names have 24 characters; and the reverse. */
size_t board_memory(size_t rows);
size_t board_rows(size_t memory);

/* Returns NULL without memory. */
struct board *board_create(const struct board_config *config);
void board_destroy(struct board *board);

/* A pass: begin it, tell each row in the order of names, end it. Rows not told of are gone. */
void board_begin(struct board *board);
void board_row(struct board *board, const char *name, const uint64_t *values, uint64_t now_ns);
void board_end(struct board *board);

/*
 * Write the part of a board that a page wants as an object of JSON. @now_ns: CLOCK_MONOTONIC, as
 * for board_row(). The arguments, each behind the name of the board and a dot:
 *
 *	sort	the key of a column, the largest first; else the order is that of names
 *	filter	only names that have this in them, in upper or lower case
 *	from	pass over so many rows
 *	count	the most rows, 50 if it is not given
 */
void board_write(struct board *board, const struct site_arguments *arguments, uint64_t now_ns,
		 FILE *out);

/* Write the series of a row as an object of JSON, by the keys of columns; null: no such row. */
void board_write_history(struct board *board, const char *name, uint64_t now_ns, FILE *out);

/**
 * struct board_tile - a number for people
 * @key: its name for the page.
 * @title: what people read.
 * @kind: "number"; "bytes"; "rate", a counter, of which the page shows the growth; or "bad", which
 *	stands out unless it is 0.
 * @value: the number.
 */
struct board_tile {
	const char *key;
	const char *title;
	const char *kind;
	uint64_t value;
};

/* Write "tiles" and an array of them. */
void board_write_tiles(const struct board_tile *tiles, size_t nr, FILE *out);

/* Write a histogram of times as an object of JSON; @title is for people. */
void board_write_lateness(const char *name, const char *title, const struct histogram *histogram,
			  FILE *out);

#endif /* METRICS_BOARD_H */
