// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl top: watches the wheels as they turn.
 *
 * Each refresh reads the files of debugfs once. Rates and lateness are those of the
 * time since the previous refresh, so the first one comes after one interval. On a
 * terminal, each refresh replaces the previous one: it has a table of the wheels, which is
 * sorted by the column that the user chooses, and draws each wheel below its row. Elsewhere,
 * each refresh is a line.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/utsname.h>

#include "common/color.h"
#include "common/screen.h"
#include "common/table.h"
#include "common/time.h"
#include "common/util.h"
#include "common/wait.h"
#include "twheelctl/command.h"
#include "twheelctl/draw.h"
#include "twheelctl/json.h"
#include "common/options.h"
#include "twheelctl/rates.h"
#include "twheelctl/rows.h"
#include "common/terminal.h"

static const char heading[] =
	"  events/s     pending  interrupts/s  postponed/s  cascaded/s  p99 late  worst late";

/* The heading is repeated after this number of lines. */
#define LINES_PER_HEADING	20

#define MIN_INTERVAL_NS		(10 * NSEC_PER_MSEC)

/**
 * struct top - the state of the command
 * @screen: --interval, --count, --json (only lines), and the table.
 * @settings: the options of all commands.
 * @style: how to draw.
 * @color: --color.
 * @host: the name of this machine.
 * @at: the time of the last refresh.
 * @before: the wheels at the refresh before the last one.
 * @last: the wheels at the last refresh.
 * @sample: the sums over @last.
 * @rates: the rates between the last two refreshes.
 */
struct top {
	struct screen screen;
	struct settings *settings;
	struct draw_style style;
	enum color_when color;
	struct utsname host;
	time_t at;
	struct look before;
	struct look last;
	struct sample sample;
	struct rates rates;
};

/* Reads the files. Returns false after a message if that failed. */
static bool look(struct top *top)
{
	struct sample before = top->sample;
	struct wheels wheels;

	if (wheels_read(&wheels, top->settings->debugfs))
		return false;
	wheels_free(&top->before.wheels);
	top->before = top->last;
	top->last = (struct look){ .at_ns = wait_now_ns(), .wheels = wheels };
	top->at = time(NULL);
	sample_take(&top->sample, &top->last.wheels, top->last.at_ns);
	rates_between(&top->rates, &before, &top->sample);
	return true;
}

static struct top *top_of(struct screen *screen)
{
	return container_of(screen, struct top, screen);
}

static bool refresh(struct screen *screen)
{
	return look(top_of(screen));
}

static json_t *json_lateness(__u64 below_ns)
{
	return below_ns && below_ns != RATES_ENDLESS ? json_integer(below_ns) :
	       json_null();
}

static void print_json(const struct rates *rates)
{
	json_line(json_pack("{s:I, s:f, s:I, s:f, s:f, s:f, s:o, s:o}",
			    "expired", (json_int_t)rates->expired,
			    "events_per_s", rates->per_s,
			    "pending", (json_int_t)rates->pending,
			    "interrupts_per_s", rates->interrupts_per_s,
			    "postponed_per_s", rates->postponed_per_s,
			    "cascaded_per_s", rates->cascaded_per_s,
			    "p99_below_ns", json_lateness(rates->p99_ns),
			    "worst_below_ns", json_lateness(rates->worst_ns)),
		  stdout);
}

static void print_line(const struct top *top)
{
	const struct rates *rates = &top->rates;
	char p99[NUMBER_TEXT], worst[NUMBER_TEXT];

	if ((top->screen.nr - 1) % LINES_PER_HEADING == 0)
		puts(heading);
	printf("%10.0f  %10llu  %12.0f  %11.0f  %10.0f  %8s  %10s\n", rates->per_s,
	       rates->pending, rates->interrupts_per_s, rates->postponed_per_s,
	       rates->cascaded_per_s,
	       lateness_format(p99, rates->p99_ns),
	       lateness_format(worst, rates->worst_ns));
}

static void print(struct screen *screen)
{
	struct top *top = top_of(screen);

	if (screen->only_lines)
		print_json(&top->rates);
	else
		print_line(top);
}

/* Before the first refresh there are no rates. */
static struct table_row *make_rows(const struct top *top, size_t *nr)
{
	return rows_make(top->screen.nr ? &top->before : &top->last, &top->last, nr);
}

static void draw_wheel(const struct top *top, const struct wheel *wheel, FILE *out)
{
	draw_levels(wheel, &top->style, out);
	if (wheel->gap)
		fprintf(out, "  %llu events are before clk, since the clock was set back\n",
			wheel->gap);
}

static void draw_rows(const struct top *top, const struct table_row *rows, size_t nr, FILE *out)
{
	size_t empty = top->last.wheels.nr - nr;

	for (size_t i = 0; i < nr; i++) {
		table_row(&top->screen.table, &rows[i], out);
		draw_wheel(top, rows[i].source, out);
	}
	if (empty)
		fprintf(out, "%zu %s no events\n", empty, empty == 1 ? "wheel has" : "wheels have");
}

static void draw_head(const struct top *top, FILE *out)
{
	char each[NUMBER_TEXT], rest[NUMBER_TEXT + 16];
	const struct rates none = { .pending = top->sample.pending };
	struct table_row sum;

	snprintf(rest, sizeof(rest), " - every %s", duration_format(each, top->screen.interval_ns));
	table_title(&top->screen.table, "twheelctl top", top->host.nodename, top->at, rest, out);
	table_heading(&top->screen.table, out);
	rows_sum(&sum, top->screen.nr ? &top->rates : &none);
	table_row(&top->screen.table, &sum, out);
}

static void compose(struct screen *screen, FILE *out)
{
	struct top *top = top_of(screen);
	unsigned int columns = terminal_columns();
	struct table_row *rows;
	size_t nr;

	rows = make_rows(top, &nr);
	top->style.fold = draw_fold(columns);
	table_fit(&screen->table, columns, table_longest(rows, nr, ROWS_SUM));
	table_sort(&screen->table, rows, nr);
	draw_head(top, out);
	draw_rows(top, rows, nr, out);
	rows_free(rows, nr);
}

static const struct screen_calls calls = {
	.refresh = refresh,
	.compose = compose,
	.print = print,
};

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
	struct top *top = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = top->settings;
		return 0;
	case 'i':
		top->screen.interval_ns = option_seconds(state, "interval", arg, MIN_INTERVAL_NS);
		return 0;
	case 'c':
		top->screen.count = option_count(state, "count", arg, 1, ~0ULL);
		return 0;
	case 'a':
		top->style.all = true;
		return 0;
	case 'A':
		top->style.ascii = true;
		return 0;
	case 'C':
		top->color = option_color(state, arg);
		return 0;
	case 'j':
		top->screen.only_lines = true;
		return 0;
	case 'r':
		top->screen.table.reverse = true;
		return 0;
	case 's':
		table_option_sort(&top->screen.table, state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option top_argp_options[] = {
	{ "interval", 'i', "S", 0, "Refresh each S seconds; default 1", 0 },
	{ "count", 'c', "N", 0, "Exit after N refreshes", 0 },
	{ "all", 'a', NULL, 0, "Draw empty levels too", 0 },
	{ "ascii", 'A', NULL, 0,
	  "Draw with ASCII characters; the default if the locale is not UTF-8", 0 },
	COLOR_OPTION('C'),
	{ "json", 'j', NULL, 0, "Print one line of JSON for each refresh", 0 },
	{ "sort", 's', "KEY", 0, "Sort the wheels on the screen by this; default wheel", 0 },
	{ "reverse", 'r', NULL, 0, "Sort them in the reverse order", 0 },
	{ 0 }
};

static const struct argp top_argp = {
	.options = top_argp_options,
	.parser = parse_top,
	.children = settings_child,
	.doc = "Watches the wheels of all CPUs and clocks: expired events and interrupts in a\n"
	       "second, pending events, and the lateness of 99 of 100 events and of the worst\n"
	       "one since the previous refresh. On a terminal it fills the screen with a\n"
	       "table of the wheels, and draws each of them as show does; elsewhere it prints\n"
	       "a line for each refresh. Keys: < and > choose the column to sort by, r\n"
	       "reverses the order, p pauses, q and ^C quit.\n"
	       "\vLateness counts from the beginning of the tick at which an event was to\n"
	       "expire, and is known up to a power of two: \"< 131us\" is 65.5us to 131us. \"-\"\n"
	       "means that no event expired. \"postponed\" counts the events whose time came\n"
	       "when their deadline in shared memory was a later one already: they wait on.\n"
	       "\"cascaded\" counts the events that were moved to a lower level of their wheel.\n"
	       "\n"
	       "KEY is wheel, armed, next, events, interrupts, p99, worst, cascaded or\n"
	       "postponed.\n"
	       "\n"
	       "Examples:\n"
	       "  twheelctl top --sort events\n"
	       "  twheelctl top --count 10 --json",
};

enum status top_main(int argc, char **argv, struct settings *settings)
{
	struct top top = {
		.screen = { .calls = &calls, .interval_ns = NSEC_PER_SEC },
		.settings = settings,
		.style.ascii = draw_needs_ascii(),
	};
	bool went_well;

	rows_table(&top.screen.table);
	options_argp(&top_argp, argc, argv, 0, &top);
	color_choose(top.color);
	uname(&top.host);
	if (!look(&top))
		return STATUS_FAILURE;
	went_well = screen_watch(&top.screen);
	wheels_free(&top.before.wheels);
	wheels_free(&top.last.wheels);
	return went_well ? STATUS_OK : STATUS_FAILURE;
}
