// SPDX-License-Identifier: GPL-2.0
/*
 * twheelq top: watches a daemon.
 *
 * Rates and lateness cover the time since the snapshot before, so the first output comes after
 * one interval. On a terminal each output replaces the one before and has a table of the tubes,
 * which is sorted by the column that the user chooses; elsewhere each output is a line.
 */
#include <argp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/color.h"
#include "common/screen.h"
#include "common/table.h"
#include "common/time.h"
#include "common/util.h"
#include "common/wait.h"
#include "common/number.h"
#include "common/options.h"
#include "common/terminal.h"
#include "common/address.h"
#include "queue/cli/rows.h"
#include "queue/cli/snapshot.h"
#include "common/exit.h"
#include "queue/cli/top.h"

/* Number of lines after which the heading is repeated. */
#define LINES_PER_HEADING	20

#define MIN_INTERVAL_NS		(10 * NSEC_PER_MSEC)

/**
 * struct top - the state of the command
 * @screen: --interval, --count, --json (only lines), and the table.
 * @address: --connect.
 * @color: --color.
 * @at: the time of @snapshot.
 * @connection: connection to the daemon.
 * @snapshot: the last snapshot.
 * @rates: rates between the snapshot before and @snapshot.
 */
struct top {
	struct screen screen;
	const char *address;
	enum color_when color;
	time_t at;
	struct connection *connection;
	struct snapshot snapshot;
	struct rates rates;
};

static struct top *top_of(struct screen *screen)
{
	return container_of(screen, struct top, screen);
}

static bool refresh(struct screen *screen)
{
	struct top *top = top_of(screen);
	struct snapshot before = top->snapshot;

	snapshot_take(&top->snapshot, top->connection, wait_now_ns());
	top->at = time(NULL);
	snapshot_rates(&top->rates, &before, &top->snapshot);
	snapshot_free(&before);
	return true;
}

/* --- a line --------------------------------------------------------------------------- */

/* "< 1.02ms", or "-" if no delayed job was reserved. */
static const char *late_format(char text[NUMBER_TEXT], const struct histogram *late,
			       unsigned int permille)
{
	char limit[NUMBER_TEXT];

	if (!late->count)
		return strcpy(text, "-");
	duration_format(limit, permille == 1000 ? (double)late->max_ns :
			histogram_permille_us(late, permille) * 1000.0);
	snprintf(text, NUMBER_TEXT, "< %.24s", limit);
	return text;
}

static void print_line(const struct top *top)
{
	const struct snapshot *snapshot = &top->snapshot;
	const struct rates *rates = &top->rates;
	char ready[NUMBER_TEXT], p99[NUMBER_TEXT], worst[NUMBER_TEXT];

	if ((top->screen.nr - 1) % LINES_PER_HEADING == 0) {
		fputs("    ready  reserved   delayed    buried     put/s deleted/s", stdout);
		puts(" retries/s    dead/s  p99 ready  p99 reserved  worst reserved");
	}
	printf("%9llu %9llu %9llu %9llu %9.0f %9.0f %9.0f %9.0f  %9s  %12s  %14s\n",
	       (unsigned long long)snapshot->ready, (unsigned long long)snapshot->reserved,
	       (unsigned long long)snapshot->delayed, (unsigned long long)snapshot->buried,
	       rates->put, rates->deleted, rates->retries, rates->dead,
	       late_format(ready, &rates->ready_late, 990),
	       late_format(p99, &rates->late, 990), late_format(worst, &rates->late, 1000));
}

/* A limit of @late in seconds; null if there were no jobs. */
static void set_limit(json_t *object, const char *start, const char *end,
		      const struct histogram *late, double us)
{
	char key[64];

	snprintf(key, sizeof(key), "%s%s_below_s", start, end);
	json_object_set_new(object, key, late->count ? json_real(us / 1e6) : json_null());
}

static void set_late(json_t *object, const char *start, const struct histogram *late)
{
	set_limit(object, start, "p50", late, histogram_permille_us(late, 500));
	set_limit(object, start, "p99", late, histogram_permille_us(late, 990));
	set_limit(object, start, "worst", late, late->max_ns / 1e3);
}

static json_t *json_tube(const struct tube_snapshot *tube)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "name", tube->name,
			 "ready", (json_int_t)tube->ready,
			 "reserved", (json_int_t)tube->reserved,
			 "delayed", (json_int_t)tube->delayed,
			 "buried", (json_int_t)tube->buried,
			 "dead", (json_int_t)tube->dead,
			 "waiting", (json_int_t)tube->waiting,
			 "put_per_s", tube->put_per_s,
			 "deleted_per_s", tube->deleted_per_s);
}

static void print_json(const struct top *top)
{
	const struct snapshot *snapshot = &top->snapshot;
	const struct rates *rates = &top->rates;
	json_t *tubes = json_array(), *object;
	size_t i;

	for (i = 0; i < snapshot->nr_tubes; i++)
		json_array_append_new(tubes, json_tube(&snapshot->tube[i]));
	object = json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}",
			   "ready", (json_int_t)snapshot->ready,
			   "reserved", (json_int_t)snapshot->reserved,
			   "delayed", (json_int_t)snapshot->delayed,
			   "buried", (json_int_t)snapshot->buried,
			   "put_per_s", rates->put, "deleted_per_s", rates->deleted,
			   "timeouts_per_s", rates->timeouts,
			   "retries_per_s", rates->retries, "dead_per_s", rates->dead,
			   "commands_per_s", rates->commands);
	set_late(object, "", &rates->late);
	set_late(object, "ready_", &rates->ready_late);
	json_object_set_new(object, "tubes", tubes);
	json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(object);
}

static void print(struct screen *screen)
{
	struct top *top = top_of(screen);

	if (screen->only_lines)
		print_json(top);
	else
		print_line(top);
}

/* --- a screen ------------------------------------------------------------------------- */

static void print_title(const struct top *top, FILE *out)
{
	char where[HOST_NAME_LENGTH + 128], up[NUMBER_TEXT], each[NUMBER_TEXT];
	char rest[2 * NUMBER_TEXT + 16];

	snprintf(where, sizeof(where), "%s (%s)", top->snapshot.host, top->address);
	snprintf(rest, sizeof(rest), " - up %s, every %s",
		 duration_format(up, top->snapshot.uptime_s * 1e9),
		 duration_format(each, top->screen.interval_ns));
	table_title(&top->screen.table, "twheelq top", where, top->at, rest, out);
}

static void print_late(const char *what, const struct histogram *late, FILE *out)
{
	char p50[NUMBER_TEXT], p99[NUMBER_TEXT], worst[NUMBER_TEXT];

	fprintf(out, "late to %-9s p50 %-8s  p99 %-8s  worst %s\n", what,
		late_format(p50, late, 500), late_format(p99, late, 990),
		late_format(worst, late, 1000));
}

static void print_dead(double per_s, FILE *out)
{
	if (per_s > 0)
		fprintf(out, "%s%.0f dead%s", color(COLOR_ALARM), per_s, color(COLOR_END));
	else
		fputs("0 dead", out);
}

static void print_head(const struct top *top, FILE *out)
{
	const struct snapshot *snapshot = &top->snapshot;
	const struct rates *rates = &top->rates;

	print_title(top, out);
	fprintf(out, "%llu clients, %llu of them waiting for a job; %.0f commands/s\n",
		(unsigned long long)snapshot->connections, (unsigned long long)snapshot->waiting,
		rates->commands);
	fputs("a second: ", out);
	print_dead(rates->dead, out);
	fprintf(out, ", %.0f retries, %.0f timeouts, %.0f put, %.0f deleted\n", rates->retries,
		rates->timeouts, rates->put, rates->deleted);
	print_late("ready:", &rates->ready_late, out);
	print_late("reserved:", &rates->late, out);
}

static void print_tubes(const struct top *top, const struct table_row *rows, FILE *out)
{
	const struct snapshot *snapshot = &top->snapshot;
	struct table_row sum;
	size_t i;

	table_heading(&top->screen.table, out);
	rows_sum(&sum, snapshot, &top->rates);
	table_row(&top->screen.table, &sum, out);
	for (i = 0; i < snapshot->nr_tubes; i++)
		table_row(&top->screen.table, &rows[i], out);
	if (snapshot->left_out)
		fprintf(out, "and %zu more\n", snapshot->left_out);
}

static void compose(struct screen *screen, FILE *out)
{
	struct top *top = top_of(screen);
	size_t nr = top->snapshot.nr_tubes;
	struct table_row *rows = rows_make(&top->snapshot);

	table_fit(&screen->table, terminal_columns(), table_longest(rows, nr, ROWS_SUM));
	table_sort(&screen->table, rows, nr);
	print_head(top, out);
	print_tubes(top, rows, out);
	free(rows);
}

/* --- the command ---------------------------------------------------------------------- */

static const struct screen_calls calls = {
	.refresh = refresh,
	.compose = compose,
	.print = print,
};

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
	struct top *top = state->input;

	switch (key) {
	case 'a':
		top->address = arg;
		return 0;
	case 'i':
		top->screen.interval_ns = option_seconds(state, "interval", arg, MIN_INTERVAL_NS);
		return 0;
	case 'c':
		top->screen.count = option_count(state, "count", arg, 1, ~0ULL);
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

static const struct argp_option top_options[] = {
	{ "connect", 'a', "ADDRESS", 0,
	  "Where the daemon is: HOST:PORT or unix:PATH (default " ADDRESS_DEFAULT ")", 0 },
	{ "interval", 'i', "S", 0, "Print every S seconds; default 1", 0 },
	{ "count", 'c', "N", 0, "Exit after N times", 0 },
	COLOR_OPTION('C'),
	{ "json", 'j', NULL, 0, "Print one line of JSON each time", 0 },
	{ "sort", 's', "KEY", 0, "Sort the tubes on the screen by this; default work", 0 },
	{ "reverse", 'r', NULL, 0, "Sort them in the reverse order", 0 },
	{ 0 }
};

static const struct argp top_argp = {
	.options = top_options,
	.parser = parse_top,
	.doc = "Watch a daemon: jobs by state, puts, deletes and retries per second, and the\n"
	       "lateness of delayed jobs. On a terminal it fills the screen, with a table of\n"
	       "the tubes; elsewhere it prints a line each time. Keys: < and > choose the\n"
	       "column to sort by, r reverses the order, p pauses, q and ^C quit.\n"
	       "\vKEY is work (puts and deletes), tube, ready, reserved, delayed, buried, dead,\n"
	       "waiting, put or deleted.",
};

int top_main(int argc, char **argv)
{
	struct top top = {
		.address = ADDRESS_DEFAULT,
		.screen = { .calls = &calls, .interval_ns = NSEC_PER_SEC },
	};

	argp_err_exit_status = EXIT_USAGE;
	rows_table(&top.screen.table);
	options_argp(&top_argp, argc, argv, 0, &top);
	color_choose(top.color);
	top.connection = connection_open(top.address);
	snapshot_take(&top.snapshot, top.connection, wait_now_ns());
	top.at = time(NULL);
	screen_watch(&top.screen);
	snapshot_free(&top.snapshot);
	connection_close(top.connection);
	return 0;
}
