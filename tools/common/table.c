// SPDX-License-Identifier: GPL-2.0
/* A table on a screen that is drawn again and again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/table.h"
#include "common/text.h"
#include "common/util.h"

/* Room for the time of day. */
#define CLOCK_TEXT	16

/* Room for the name of a host and the address of a daemon; the rest is cut off. */
#define PLACE_TEXT	256

/* --- figures -------------------------------------------------------------------------- */

/* Numbers of more digits are shown in thousands, millions and so on. */
#define TOO_LARGE	1e7

/* "12.3M": three digits, and a letter for the power of 1000. */
static void format_large(char text[NUMBER_TEXT], double value)
{
	static const char letters[] = "kMGTPE";
	size_t i = 0;

	value /= 1000;
	for (; value >= 999.5 && letters[i + 1]; i++)
		value /= 1000;
	snprintf(text, NUMBER_TEXT, "%.*f%c", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value,
		 letters[i]);
}

void table_count(struct table_row *row, size_t column, uint64_t value)
{
	row->value[column] = value;
	if (value >= TOO_LARGE)
		format_large(row->text[column], value);
	else
		snprintf(row->text[column], NUMBER_TEXT, "%llu", (unsigned long long)value);
}

void table_rate(struct table_row *row, size_t column, double per_s)
{
	row->value[column] = per_s;
	if (per_s >= TOO_LARGE)
		format_large(row->text[column], per_s);
	else
		snprintf(row->text[column], NUMBER_TEXT, "%.*f", per_s > 0 && per_s < 9.95,
			 per_s);
}

/* --- the order ------------------------------------------------------------------------ */

void table_option_sort(struct table *table, struct argp_state *state, const char *text)
{
	char known[256] = "";
	size_t i, len = 0;

	for (i = 0; i < table->nr; i++) {
		if (!strcmp(table->columns[i].key, text)) {
			table->sort = i;
			return;
		}
		len += snprintf(known + len, sizeof(known) - len, "%s%s",
				i == 0 ? "" : i + 1 < table->nr ? ", " : " or ",
				table->columns[i].key);
	}
	argp_error(state, "--sort \"%s\" is not %s", text, known);
}

bool table_key(struct table *table, char key)
{
	switch (key) {
	case '<':
	case ',':
		table->sort = (table->sort + table->nr - 1) % table->nr;
		return true;
	case '>':
	case '.':
		table->sort = (table->sort + 1) % table->nr;
		return true;
	case 'r':
		table->reverse = !table->reverse;
		return true;
	case 'p':
	case ' ':
		table->paused = !table->paused;
		return true;
	default:
		return false;
	}
}

static int compare(double x, double y)
{
	return (x > y) - (x < y);
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct table_row *x = a, *y = b;
	const struct table *table = arg;
	int by_place = compare(x->place, y->place), order = by_place;

	if (table->sort)
		order = compare(y->value[table->sort], x->value[table->sort]);
	if (order)
		return table->reverse ? -order : order;
	order = compare(y->weight, x->weight);
	return order ? order : by_place;
}

void table_sort(const struct table *table, struct table_row *rows, size_t nr)
{
	if (nr > 1)
		qsort_r(rows, nr, sizeof(*rows), compare_rows, (void *)table);
}

/* --- the columns that fit ------------------------------------------------------------- */

static unsigned int smaller(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static unsigned int larger(unsigned int a, unsigned int b)
{
	return a > b ? a : b;
}

static bool is_shown(const struct table *table, size_t column)
{
	return table->shown & 1U << column;
}

static unsigned int figures_width(const struct table *table)
{
	unsigned int width = 0;
	size_t i;

	for (i = 1; i < table->nr; i++)
		if (is_shown(table, i))
			width += table->columns[i].width;
	return width;
}

/* The least important of the shown columns, but not the sorted one; 0: there is no other. */
static size_t least_important(const struct table *table)
{
	size_t least = 0, i;

	for (i = 1; i < table->nr; i++)
		if (is_shown(table, i) && i != table->sort &&
		    (!least || table->columns[i].rank > table->columns[least].rank))
			least = i;
	return least;
}

size_t table_longest(const struct table_row *rows, size_t nr, const char *sum)
{
	size_t longest = strlen(sum), i;

	for (i = 0; i < nr; i++)
		if (strlen(rows[i].name) > longest)
			longest = strlen(rows[i].name);
	return longest;
}

/* Names have a third of the width, and what figures leave. */
void table_fit(struct table *table, unsigned int width, size_t longest)
{
	unsigned int name = strlen(table->columns[0].name) + 1;
	unsigned int wanted, figures;
	size_t column;

	name = longest > name ? smaller(longest, width) : name;
	wanted = smaller(name, larger(width / 3, table->name_least));
	table->width = width;
	table->shown = (1U << table->nr) - 1;
	while ((figures = figures_width(table)) + wanted > width) {
		column = least_important(table);
		if (!column)
			break;
		table->shown &= ~(1U << column);
	}
	table->name_width = smaller(name, figures < width ? width - figures : 0);
}

/* --- lines ---------------------------------------------------------------------------- */

/* What does not fit is left out: the rest, or the end of @where, but not the time. */
void table_title(const struct table *table, const char *program, const char *where, time_t at,
		 const char *rest, FILE *out)
{
	char clock[CLOCK_TEXT] = "", place[PLACE_TEXT];
	const char *paused = table->paused ? " - paused" : "";
	size_t width = table->width ? table->width : SIZE_MAX, used;
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(place, sizeof(place), "%s", where);
	used = strlen(program) + strlen(" -  - ") + strlen(clock) + strlen(paused);
	if (used < width && strlen(place) > width - used)
		place[width - used] = '\0';
	used += strlen(place);
	fprintf(out, "%s%s - ", color(COLOR_TITLE), program);
	text_put_printable(place, out);
	fprintf(out, " - %s%s%s%s\n", clock, paused, color(COLOR_END),
		used < width && strlen(rest) <= width - used ? rest : "");
}

/* The mark before the heading says which end of the order comes first. */
static const char *mark_of(const struct table *table, size_t column)
{
	if (column != table->sort)
		return "";
	return (column == 0) == table->reverse ? ">" : "<";
}

static void print_heading(const struct table *table, size_t column, FILE *out)
{
	const char *name = table->columns[column].name, *mark = mark_of(table, column);
	int width = column ? table->columns[column].width : table->name_width;
	int blanks = larger(width, strlen(name) + strlen(mark)) - strlen(name) - strlen(mark);

	fputs(color(COLOR_HEADING), out);
	fprintf(out, "%*s", column ? blanks : 0, "");
	if (*mark)
		fprintf(out, "%s%s", color(COLOR_END), color(COLOR_SORTED));
	fprintf(out, "%s%s", mark, name);
	if (*mark)
		fprintf(out, "%s%s", color(COLOR_END), color(COLOR_HEADING));
	fprintf(out, "%*s%s", column ? 0 : blanks, "", color(COLOR_END));
}

void table_heading(const struct table *table, FILE *out)
{
	size_t i;

	for (i = 0; i < table->nr; i++)
		if (is_shown(table, i))
			print_heading(table, i, out);
	fputc('\n', out);
}

/* A name that is too long for its column has lines of its own, however long it is. */
static void print_name(const struct table *table, const struct table_row *row, FILE *out)
{
	size_t len = strlen(row->name), part = len;
	const char *name = row->name;
	char piece[table->width + 1];

	if (row->color != COLOR_END)
		fputs(color(row->color), out);
	for (; len > table->name_width; name += part, len -= part) {
		part = smaller(len, table->width);
		snprintf(piece, sizeof(piece), "%.*s", (int)part, name);
		text_put_printable(piece, out);
		fputc('\n', out);
	}
	text_put_printable(name, out);
	fprintf(out, "%*s", (int)(table->name_width - len), "");
	if (row->color != COLOR_END)
		fputs(color(COLOR_END), out);
}

static enum color color_of(const struct table *table, const struct table_row *row, size_t column)
{
	return table->columns[column].alarm && row->value[column] > 0 ? COLOR_ALARM : row->color;
}

static void print_figure(const struct table *table, const struct table_row *row, size_t column,
			 FILE *out)
{
	int width = table->columns[column].width;
	enum color which = color_of(table, row, column);

	if (which == COLOR_END)
		fprintf(out, "%*s", width, row->text[column]);
	else
		fprintf(out, "%s%*s%s", color(which), width, row->text[column],
			color(COLOR_END));
}

void table_row(const struct table *table, const struct table_row *row, FILE *out)
{
	size_t i;

	print_name(table, row, out);
	for (i = 1; i < table->nr; i++)
		if (is_shown(table, i))
			print_figure(table, row, i, out);
	fputc('\n', out);
}

/* --- the legend ----------------------------------------------------------------------- */

static void print_key(const char *key, const char *what, FILE *out)
{
	fprintf(out, "%s%s%s %s", color(COLOR_STRONG), key, color(COLOR_END), what);
}

void table_legend(const struct table *table, FILE *out)
{
	const char *sort = table->columns[table->sort].key;
	const char *pause = table->paused ? "go on" : "pause";
	size_t hidden = table->nr - __builtin_popcount(table->shown);
	char note[48] = "";

	if (hidden)
		snprintf(note, sizeof(note), "  (%zu column%s not shown)", hidden,
			 hidden == 1 ? "" : "s");
	print_key("< >", "sort by", out);
	fprintf(out, " %s  ", sort);
	print_key("r", "reverse  ", out);
	print_key("p", pause, out);
	fputs("  ", out);
	print_key("q", "quit", out);
	if (strlen("< > sort by   r reverse  p pause  q quit") + strlen(sort) + strlen(note) <=
	    table->width)
		fputs(note, out);
}
