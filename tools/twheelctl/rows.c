// SPDX-License-Identifier: GPL-2.0
/*
 * The table of top: a row for each wheel, and one for all of them.
 */
#include <err.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "twheelctl/rows.h"

enum {
	NAME,
	ARMED,
	NEXT,
	EXPIRED,
	INTERRUPTS,
	P99,
	WORST,
	CASCADED,
	POSTPONED,
};

static const struct column columns[] = {
	[NAME] =	{ "wheel", "wheel", 0, 0, false },
	[ARMED] =	{ "armed", "armed", 9, 1, false },
	[NEXT] =	{ "next", "next", 8, 5, false },
	[EXPIRED] =	{ "events/s", "events", 10, 2, false },
	[INTERRUPTS] =	{ "interrupts/s", "interrupts", 14, 4, false },
	[P99] =		{ "p99 late", "p99", 10, 3, false },
	[WORST] =	{ "worst late", "worst", 12, 6, false },
	[CASCADED] =	{ "cascaded/s", "cascaded", 12, 7, false },
	[POSTPONED] =	{ "postponed/s", "postponed", 13, 8, false },
};

/* "cpu1 monotonic" fits, and "cpu1 monotonic deadlines" if there is room. */
#define NAME_LEAST	16

void rows_table(struct table *table)
{
	table->columns = columns;
	table->nr = ARRAY_SIZE(columns);
	table->name_least = NAME_LEAST;
	table->sort = NAME;
}

static void set_late(struct table_row *row, size_t column, __u64 below_ns)
{
	row->value[column] = below_ns;
	lateness_format(row->text[column], below_ns);
}

static void set_rates(struct table_row *row, const struct rates *rates)
{
	table_count(row, ARMED, rates->pending);
	table_rate(row, EXPIRED, rates->per_s);
	table_rate(row, INTERRUPTS, rates->interrupts_per_s);
	table_rate(row, CASCADED, rates->cascaded_per_s);
	table_rate(row, POSTPONED, rates->postponed_per_s);
	set_late(row, P99, rates->p99_ns);
	set_late(row, WORST, rates->worst_ns);
}

void rows_sum(struct table_row *row, const struct rates *rates)
{
	*row = (struct table_row){ .name = ROWS_SUM, .color = COLOR_STRONG };
	set_rates(row, rates);
}

/* The soonest has the largest value, so that it comes first. */
static void set_next(struct table_row *row, const struct wheel *wheel)
{
	double left_ns = wheel->next <= wheel->now ? 0 :
			 (double)(wheel->next - wheel->now) * wheel->tick_ns;

	row->value[NEXT] = wheel->next ? -left_ns : -INFINITY;
	if (!wheel->next)
		strcpy(row->text[NEXT], "-");
	else if (!left_ns)
		strcpy(row->text[NEXT], "due");
	else
		duration_format(row->text[NEXT], left_ns);
}

static char *name_of(const struct wheel *wheel)
{
	const char *kind = strcmp(wheel->kind, WHEEL_PLAIN) ? wheel->kind : "";
	char *name;

	if (asprintf(&name, "cpu%u %s%s%s%s", wheel->cpu, wheel->clock, *kind ? " " : "", kind,
		     wheel->online ? "" : " (offline)") < 0)
		errx(EXIT_FAILURE, "out of memory for the screen");
	return name;
}

static const struct wheel *same_wheel(const struct wheels *wheels, const struct wheel *wheel)
{
	for (size_t i = 0; i < wheels->nr; i++) {
		const struct wheel *other = &wheels->wheel[i];

		if (other->cpu == wheel->cpu && !strcmp(other->clock, wheel->clock) &&
		    !strcmp(other->kind, wheel->kind))
			return other;
	}
	return NULL;
}

/* A wheel that was not there before has counted from 0. */
static void wheel_rates(struct rates *rates, const struct look *before, const struct look *after,
			const struct wheel *wheel)
{
	const struct wheel *old = same_wheel(&before->wheels, wheel);
	const struct wheels then = { .wheel = (struct wheel *)old, .nr = old ? 1 : 0 };
	const struct wheels now = { .wheel = (struct wheel *)wheel, .nr = 1 };
	struct sample sample_then, sample_now;

	sample_take(&sample_then, &then, before->at_ns);
	sample_take(&sample_now, &now, after->at_ns);
	rates_between(rates, &sample_then, &sample_now);
}

/* Has it events, or has it done anything? One that is offline is shown in any case. */
static bool is_shown(const struct wheel *wheel)
{
	return wheel->armed || wheel->gap || wheel->expired || wheel->interrupts || !wheel->online;
}

struct table_row *rows_make(const struct look *before, const struct look *after, size_t *nr)
{
	struct table_row *rows = calloc(after->wheels.nr + 1, sizeof(*rows));
	struct rates rates;

	if (!rows)
		errx(EXIT_FAILURE, "out of memory for the screen");
	*nr = 0;
	for (size_t i = 0; i < after->wheels.nr; i++) {
		const struct wheel *wheel = &after->wheels.wheel[i];
		struct table_row *row = &rows[*nr];

		if (!is_shown(wheel))
			continue;
		row->name = name_of(wheel);
		row->place = (*nr)++;
		row->color = wheel->online ? COLOR_END : COLOR_ALARM;
		row->source = wheel;
		wheel_rates(&rates, before, after, wheel);
		set_rates(row, &rates);
		set_next(row, wheel);
	}
	return rows;
}

void rows_free(struct table_row *rows, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free((char *)rows[i].name);
	free(rows);
}
