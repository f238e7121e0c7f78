// SPDX-License-Identifier: GPL-2.0
/* The table of top: a row for each tube, and one for all of them. */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/util.h"
#include "queue/cli/rows.h"

enum {
	NAME,
	READY,
	RESERVED,
	DELAYED,
	BURIED,
	DEAD,
	WAITING,
	WORK,
	PUT,
	DELETED,
};

static const struct column columns[] = {
	[NAME] =	{ "tube", "tube", 0, 0, false },
	[READY] =	{ "ready", "ready", 8, 1, false },
	[RESERVED] =	{ "reserved", "reserved", 9, 4, false },
	[DELAYED] =	{ "delayed", "delayed", 8, 3, false },
	[BURIED] =	{ "buried", "buried", 8, 2, true },
	[DEAD] =	{ "dead", "dead", 8, 5, true },
	[WAITING] =	{ "waiting", "waiting", 9, 7, false },
	[WORK] =	{ "work/s", "work", 8, 6, false },
	[PUT] =		{ "put/s", "put", 8, 8, false },
	[DELETED] =	{ "deleted/s", "deleted", 11, 9, false },
};

/* Leaves room for the states of jobs and one more column in 60 characters. */
#define NAME_LEAST	16

void rows_table(struct table *table)
{
	table->columns = columns;
	table->nr = ARRAY_SIZE(columns);
	table->name_least = NAME_LEAST;
	table->sort = WORK;
}

static void set_work(struct table_row *row, double put_per_s, double deleted_per_s)
{
	table_rate(row, WORK, put_per_s + deleted_per_s);
	table_rate(row, PUT, put_per_s);
	table_rate(row, DELETED, deleted_per_s);
}

/* "-" if tubes were left out: only they know how many died there. It still may be an alarm. */
static void sum_dead(struct table_row *row, const struct snapshot *snapshot)
{
	uint64_t dead = 0;
	size_t i;

	for (i = 0; i < snapshot->nr_tubes; i++)
		dead += snapshot->tube[i].dead;
	table_count(row, DEAD, dead);
	if (snapshot->left_out)
		strcpy(row->text[DEAD], "-");
}

void rows_sum(struct table_row *row, const struct snapshot *snapshot, const struct rates *rates)
{
	*row = (struct table_row){ .name = ROWS_SUM, .color = COLOR_STRONG };
	table_count(row, READY, snapshot->ready);
	table_count(row, RESERVED, snapshot->reserved);
	table_count(row, DELAYED, snapshot->delayed);
	table_count(row, BURIED, snapshot->buried);
	sum_dead(row, snapshot);
	table_count(row, WAITING, snapshot->waiting);
	set_work(row, rates->put, rates->deleted);
}

/* Of tubes that are as busy, the fullest comes first. */
static void set_row(struct table_row *row, const struct tube_snapshot *tube)
{
	row->name = tube->name;
	row->weight = tube->ready + tube->reserved + tube->delayed + tube->buried;
	table_count(row, READY, tube->ready);
	table_count(row, RESERVED, tube->reserved);
	table_count(row, DELAYED, tube->delayed);
	table_count(row, BURIED, tube->buried);
	table_count(row, DEAD, tube->dead);
	table_count(row, WAITING, tube->waiting);
	set_work(row, tube->put_per_s, tube->deleted_per_s);
}

struct table_row *rows_make(const struct snapshot *snapshot)
{
	struct table_row *rows = calloc(snapshot->nr_tubes + 1, sizeof(*rows));
	size_t i;

	if (!rows)
		errx(EXIT_CANNOT, "out of memory for the screen");
	for (i = 0; i < snapshot->nr_tubes; i++) {
		rows[i].place = i;
		set_row(&rows[i], &snapshot->tube[i]);
	}
	return rows;
}
