// SPDX-License-Identifier: GPL-2.0
/* Tables on a screen: figures, order, columns that fit, names that are too long; and colours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/color.h"
#include "common/table.h"
#include "common/text.h"
#include "common/util.h"
#include "test/device/harness.h"

enum { NAME, FIRST, SECOND, THIRD };

static const struct column columns[] = {
	[NAME] =	{ "name", "name", 0, 0, false },
	[FIRST] =	{ "first", "first", 8, 2, false },
	[SECOND] =	{ "second", "second", 8, 1, true },
	[THIRD] =	{ "third", "third", 8, 3, false },
};

static struct table table_of(size_t sort)
{
	return (struct table){
		.columns = columns, .nr = ARRAY_SIZE(columns), .name_least = 10, .sort = sort,
	};
}

static struct table_row row_of(const char *name, uint64_t first, size_t place)
{
	struct table_row row = { .name = name, .place = place };

	table_count(&row, FIRST, first);
	table_count(&row, SECOND, 2);
	table_count(&row, THIRD, 3);
	return row;
}

/* --- figures -------------------------------------------------------------------------- */

TEST(large_counts_are_short)
{
	static const struct {
		uint64_t value;
		const char *text;
	} cases[] = {
		{ 0, "0" }, { 9999999, "9999999" }, { 10000000, "10.0M" }, { 123456789, "123M" },
		{ 999499999, "999M" }, { 999500000, "1.00G" }, { UINT64_MAX, "18.4E" },
	};
	struct table_row row = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		table_count(&row, FIRST, cases[i].value);
		test_about("%s", row.text[FIRST]);
		ASSERT_EQ(strcmp(row.text[FIRST], cases[i].text), 0);
	}
}

TEST(low_rates_have_a_fraction)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "0" }, { 0.26, "0.3" }, { 9.94, "9.9" }, { 9.96, "10" }, { 2e10, "20.0G" },
	};
	struct table_row row = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		table_rate(&row, FIRST, cases[i].value);
		test_about("%s", row.text[FIRST]);
		ASSERT_EQ(strcmp(row.text[FIRST], cases[i].text), 0);
	}
}

/* --- the order ------------------------------------------------------------------------ */

static void expect_order(struct table *table, const char *names)
{
	struct table_row rows[] = { row_of("a", 5, 0), row_of("b", 7, 1), row_of("c", 5, 2) };
	char seen[4] = "";
	size_t i;

	rows[2].weight = 1;
	table_sort(table, rows, ARRAY_SIZE(rows));
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		seen[i] = *rows[i].name;
	test_about("%s, expected %s", seen, names);
	ASSERT_EQ(strcmp(seen, names), 0);
}

TEST(the_largest_comes_first_then_the_one_of_more_weight)
{
	struct table table = table_of(FIRST);

	expect_order(&table, "bca");
	table.reverse = true;
	expect_order(&table, "cab");
	table.sort = SECOND;
	expect_order(&table, "cab");
	table.sort = NAME;
	expect_order(&table, "cba");
	table.reverse = false;
	expect_order(&table, "abc");
}

TEST(the_order_of_rows_with_equal_figures_is_that_of_their_names)
{
	struct table table = table_of(NAME);
	struct table_row rows[40];
	size_t i;

	for (table.sort = NAME; table.sort <= THIRD; table.sort++) {
		for (i = 0; i < ARRAY_SIZE(rows); i++)
			rows[i] = row_of("same", 1, i * 7 % ARRAY_SIZE(rows));
		table_sort(&table, rows, ARRAY_SIZE(rows));
		for (i = 0; i < ARRAY_SIZE(rows); i++)
			ASSERT_EQ(rows[i].place, i);
	}
}

TEST(keys_choose_the_column_in_a_circle)
{
	struct table table = table_of(NAME);

	ASSERT(table_key(&table, '<'));
	ASSERT_EQ(table.sort, THIRD);
	ASSERT(table_key(&table, '>'));
	ASSERT(table_key(&table, '>'));
	ASSERT_EQ(table.sort, FIRST);
	ASSERT(table_key(&table, 'r') && table.reverse);
	ASSERT(table_key(&table, 'p') && table.paused);
	ASSERT(table_key(&table, ' ') && !table.paused);
	ASSERT(!table_key(&table, 'x'));
}

/* --- the columns that fit ------------------------------------------------------------- */

static void expect_shown(size_t sort, unsigned int width, unsigned int shown, unsigned int name)
{
	struct table table = table_of(sort);

	table_fit(&table, width, 30);
	test_about("%u columns, sorted by %zu", width, sort);
	ASSERT_EQ(table.shown, shown);
	ASSERT_EQ(table.name_width, name);
}

TEST(the_least_important_columns_are_left_out_first)
{
	expect_shown(NAME, 200, 0xf, 30);
	expect_shown(NAME, 36, 0xf, 12);
	expect_shown(NAME, 35, 0xf, 11);
	expect_shown(NAME, 34, 0x7, 18);
	expect_shown(NAME, 25, 0x5, 17);
	expect_shown(NAME, 9, 0x1, 9);
}

TEST(the_column_of_the_order_is_never_left_out)
{
	expect_shown(THIRD, 33, 0xd, 17);
	expect_shown(THIRD, 25, 0x9, 17);
	expect_shown(THIRD, 9, 0x9, 1);
}

/* --- lines ---------------------------------------------------------------------------- */

static void expect_row(const char *name, unsigned int width, const char *expected)
{
	struct table table = table_of(FIRST);
	struct table_row row = row_of(name, 1, 0);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	table_fit(&table, width, strlen(name));
	table_row(&table, &row, out);
	fclose(out);
	test_about("%s", text);
	ASSERT_EQ(strcmp(text, expected), 0);
	free(text);
}

TEST(long_names_have_lines_of_their_own)
{
	expect_row("short", 36, "short       1       2       3\n");
	expect_row("012345678901", 36, "012345678901       1       2       3\n");
	expect_row("0123456789012", 36,
		   "0123456789012\n                   1       2       3\n");
	expect_row("01234567890123456789", 12, "012345678901\n23456789\n           1\n");
	expect_row("012345678901234", 12, "012345678901\n234        1\n");
}

TEST(no_byte_of_a_name_commands_the_terminal)
{
	expect_row("a\033[2J\x9b\n\xe2\x80\xae_", 80, "a?[2J?????_       1       2       3\n");
}

static size_t colors_in(const char *text)
{
	size_t nr = 0;

	for (; *text; text++)
		nr += *text == '\033';
	return nr;
}

TEST(figures_above_0_can_stand_out)
{
	struct table table = table_of(FIRST);
	struct table_row row = row_of("a", 1, 0);
	char *text = NULL;
	size_t len;
	FILE *out;

	color_choose(COLOR_ALWAYS);
	table_fit(&table, 80, 1);
	out = open_memstream(&text, &len);
	table_row(&table, &row, out);
	fflush(out);
	ASSERT(strstr(text, "\033[1;31m       2\033[0m"));
	ASSERT_EQ(colors_in(text), 2);
	rewind(out);
	table_count(&row, SECOND, 0);
	table_row(&table, &row, out);
	fclose(out);
	ASSERT_EQ(colors_in(text), 0);
	free(text);
	color_choose(COLOR_NEVER);
}

/* --- colours -------------------------------------------------------------------------- */

/* The output of this test is no terminal. */
TEST(what_is_no_terminal_has_colors_only_if_they_are_asked_for)
{
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	ASSERT_EQ(strlen(color(COLOR_ALARM)), 0);
	if (!isatty(STDOUT_FILENO)) {
		color_choose(COLOR_AUTO);
		ASSERT_EQ(strlen(color(COLOR_ALARM)), 0);
	}
	setenv("NO_COLOR", "1", 1);
	color_choose(COLOR_ALWAYS);
	ASSERT(*color(COLOR_ALARM) == '\033');
	color_choose(COLOR_NEVER);
	ASSERT_EQ(strlen(color(COLOR_ALARM)), 0);
}

TEST(lines_stay_when_a_text_is_made_printable)
{
	char text[] = "a\nb\tc\x7f\xff~";

	text_make_printable(text);
	ASSERT_EQ(strcmp(text, "a\nb?c??~"), 0);
}
