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
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/utsname.h>

#include "common/color.h"
#include "common/table.h"
#include "common/time.h"
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
 * @settings: the options of all commands.
 * @style: how to draw.
 * @interval_ns: --interval.
 * @count: --count; 0: no limit.
 * @json: --json.
 * @color: --color.
 * @full_screen: the output is a terminal that can be drawn on.
 * @nr: the number of refreshes so far.
 * @host: the name of this machine.
 * @table: the columns of the screen, and the order of its rows.
 * @at: the time of the last refresh.
 * @before: the wheels at the refresh before the last one.
 * @last: the wheels at the last refresh.
 * @sample: the sums over @last.
 * @rates: the rates between the last two refreshes.
 */
struct top {
	struct settings *settings;
	struct draw_style style;
	__u64 interval_ns;
	__u64 count;
	bool json;
	enum color_when color;
	bool full_screen;
	__u64 nr;
	struct utsname host;
	struct table table;
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

	if ((top->nr - 1) % LINES_PER_HEADING == 0)
		puts(heading);
	printf("%10.0f  %10llu  %12.0f  %11.0f  %10.0f  %8s  %10s\n", rates->per_s,
	       rates->pending, rates->interrupts_per_s, rates->postponed_per_s,
	       rates->cascaded_per_s,
	       lateness_format(p99, rates->p99_ns),
	       lateness_format(worst, rates->worst_ns));
}

/* Before the first refresh there are no rates. */
static struct table_row *make_rows(const struct top *top, size_t *nr)
{
	return rows_make(top->nr ? &top->before : &top->last, &top->last, nr);
}

static size_t longest_name(const struct table_row *rows, size_t nr)
{
	size_t longest = strlen("all wheels");

	for (size_t i = 0; i < nr; i++)
		if (strlen(rows[i].name) > longest)
			longest = strlen(rows[i].name);
	return longest;
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
		table_row(&top->table, &rows[i], out);
		draw_wheel(top, rows[i].source, out);
	}
	if (empty)
		fprintf(out, "%zu %s no events\n", empty, empty == 1 ? "wheel has" : "wheels have");
}

static void draw_head(const struct top *top, FILE *out)
{
	char each[NUMBER_TEXT], rest[NUMBER_TEXT + 16];
	struct table_row sum;

	snprintf(rest, sizeof(rest), " - every %s", duration_format(each, top->interval_ns));
	table_title(&top->table, "twheelctl top", top->host.nodename, top->at, rest, out);
	table_heading(&top->table, out);
	rows_sum(&sum, top->nr ? &top->rates : &(struct rates){ .pending = top->sample.pending });
	table_row(&top->table, &sum, out);
}

static void compose(struct top *top, FILE *out)
{
	unsigned int columns = terminal_columns();
	struct table_row *rows;
	size_t nr;

	rows = make_rows(top, &nr);
	top->style.fold = draw_fold(columns);
	table_fit(&top->table, columns, longest_name(rows, nr));
	table_sort(&top->table, rows, nr);
	draw_head(top, out);
	draw_rows(top, rows, nr, out);
	rows_free(rows, nr);
}

static void draw_screen(struct top *top)
{
	char *text = NULL, *legend = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len), *keys = open_memstream(&legend, &len);

	if (!out || !keys)
		errx(EXIT_FAILURE, "out of memory for the screen");
	compose(top, out);
	table_legend(&top->table, keys);
	if (fclose(out) || fclose(keys))
		errx(EXIT_FAILURE, "out of memory for the screen");
	terminal_show(text, legend);
	free(text);
	free(legend);
}

static void show(struct top *top)
{
	if (top->full_screen)
		draw_screen(top);
	else if (top->json)
		print_json(&top->rates);
	else
		print_line(top);
}

/*
 * Waits for the next refresh, which a pause puts off, and redraws the screen if necessary.
 * Returns false to quit.
 */
static bool wait_for_next(struct top *top, __u64 until_ns)
{
	enum terminal_event event;

	for (;;) {
		event = terminal_wait(top->table.paused ? TIME_NEVER_NS : until_ns);
		if (event == TERMINAL_TIME || event == TERMINAL_QUIT)
			return event == TERMINAL_TIME;
		if (event == TERMINAL_REDRAW || table_key(&top->table, terminal_key()))
			draw_screen(top);
	}
}

/* Refreshes until the user quits or @count is reached. */
static enum status top_watch(struct top *top)
{
	__u64 next_ns = top->sample.at_ns;

	while (!top->count || top->nr < top->count) {
		next_ns += top->interval_ns;
		if (!wait_for_next(top, next_ns))
			return STATUS_OK;
		if (!look(top))
			return STATUS_FAILURE;
		if (next_ns + top->interval_ns < top->sample.at_ns)
			next_ns = top->sample.at_ns;
		top->nr++;
		show(top);
	}
	return STATUS_OK;
}

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
	struct top *top = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = top->settings;
		return 0;
	case 'i':
		top->interval_ns = option_seconds(state, "interval", arg,
						  MIN_INTERVAL_NS);
		return 0;
	case 'c':
		top->count = option_count(state, "count", arg, 1, ~0ULL);
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
		top->json = true;
		return 0;
	case 'r':
		top->table.reverse = true;
		return 0;
	case 's':
		table_option_sort(&top->table, state, arg);
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
		.settings = settings,
		.style.ascii = draw_needs_ascii(),
		.interval_ns = NSEC_PER_SEC,
	};
	enum status status;

	rows_table(&top.table);
	argp_parse(&top_argp, argc, argv, 0, NULL, &top);
	color_choose(top.color);
	uname(&top.host);
	if (!look(&top))
		return STATUS_FAILURE;
	top.full_screen = !top.json && terminal_can_draw();
	setvbuf(stdout, NULL, top.full_screen ? _IOFBF : _IOLBF, BUFSIZ);
	if (top.full_screen)
		terminal_enter();
	status = top_watch(&top);
	terminal_leave();
	wheels_free(&top.before.wheels);
	wheels_free(&top.last.wheels);
	return status;
}
