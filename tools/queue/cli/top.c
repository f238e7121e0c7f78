// SPDX-License-Identifier: GPL-2.0
/*
 * twheelq top: watches a daemon.
 *
 * Rates and lateness cover the time since the snapshot before, so the first output comes after
 * one interval. On a terminal each output replaces the one before and has the tubes, the
 * busiest first; elsewhere each output is a line.
 */
#include <argp.h>
#include <err.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/time.h"
#include "common/wait.h"
#include "common/number.h"
#include "common/options.h"
#include "common/terminal.h"
#include "common/address.h"
#include "queue/cli/snapshot.h"
#include "common/exit.h"
#include "queue/cli/top.h"

/* Number of lines after which the heading is repeated. */
#define LINES_PER_HEADING	20

#define MIN_INTERVAL_NS		(10 * NSEC_PER_MSEC)

/**
 * struct top - the state of the command
 * @address: --connect.
 * @interval_ns: --interval.
 * @count: --count; 0 for any number.
 * @json: --json.
 * @full_screen: the output is a terminal.
 * @nr: number of outputs so far.
 * @connection: connection to the daemon.
 * @snapshot: the last snapshot.
 * @rates: rates between the snapshot before and @snapshot.
 */
struct top {
	const char *address;
	__u64 interval_ns;
	__u64 count;
	bool json;
	bool full_screen;
	__u64 nr;
	struct connection *connection;
	struct snapshot snapshot;
	struct rates rates;
};

static void take_snapshot(struct top *top)
{
	struct snapshot before = top->snapshot;

	snapshot_take(&top->snapshot, top->connection, wait_now_ns());
	snapshot_rates(&top->rates, &before, &top->snapshot);
	snapshot_free(&before);
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
	char p99[NUMBER_TEXT], worst[NUMBER_TEXT];

	if ((top->nr - 1) % LINES_PER_HEADING == 0) {
		fputs("    ready  reserved   delayed    buried     put/s deleted/s", stdout);
		puts(" retries/s    dead/s  p99 late  worst late");
	}
	printf("%9llu %9llu %9llu %9llu %9.0f %9.0f %9.0f %9.0f  %8s  %10s\n",
	       (unsigned long long)snapshot->ready, (unsigned long long)snapshot->reserved,
	       (unsigned long long)snapshot->delayed, (unsigned long long)snapshot->buried,
	       rates->put, rates->deleted, rates->retries, rates->dead,
	       late_format(p99, &rates->late, 990), late_format(worst, &rates->late, 1000));
}

static json_t *json_late(const struct histogram *late, double us)
{
	return late->count ? json_real(us / 1e6) : json_null();
}

static json_t *json_tube(const struct tube_snapshot *tube)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "name", tube->name,
			 "ready", (json_int_t)tube->ready,
			 "reserved", (json_int_t)tube->reserved,
			 "delayed", (json_int_t)tube->delayed,
			 "buried", (json_int_t)tube->buried,
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
	object = json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o}",
			   "ready", (json_int_t)snapshot->ready,
			   "reserved", (json_int_t)snapshot->reserved,
			   "delayed", (json_int_t)snapshot->delayed,
			   "buried", (json_int_t)snapshot->buried,
			   "put_per_s", rates->put, "deleted_per_s", rates->deleted,
			   "timeouts_per_s", rates->timeouts,
			   "retries_per_s", rates->retries, "dead_per_s", rates->dead,
			   "commands_per_s", rates->commands,
			   "p99_below_s", json_late(&rates->late,
						    histogram_permille_us(&rates->late, 990)),
			   "worst_below_s", json_late(&rates->late, rates->late.max_ns / 1e3),
			   "tubes", tubes);
	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

/* --- a screen ------------------------------------------------------------------------- */

static void print_head(const struct top *top, FILE *out)
{
	const struct snapshot *snapshot = &top->snapshot;
	const struct rates *rates = &top->rates;
	char p99[NUMBER_TEXT], worst[NUMBER_TEXT], up[NUMBER_TEXT], each[NUMBER_TEXT];

	fprintf(out, "%s, up %s; each %s; q quits\n", top->address,
		duration_format(up, snapshot->uptime_s * 1e9),
		duration_format(each, top->interval_ns));
	fprintf(out, "jobs: %llu ready, %llu reserved, %llu delayed, %llu buried\n",
		(unsigned long long)snapshot->ready, (unsigned long long)snapshot->reserved,
		(unsigned long long)snapshot->delayed, (unsigned long long)snapshot->buried);
	fprintf(out, "clients: %llu, %llu of them waiting for a job\n",
		(unsigned long long)snapshot->connections, (unsigned long long)snapshot->waiting);
	fprintf(out, "a second: %.0f commands, %.0f put, %.0f deleted, ", rates->commands,
		rates->put, rates->deleted);
	fprintf(out, "%.0f timeouts, %.0f retries, %.0f dead\n", rates->timeouts, rates->retries,
		rates->dead);
	fprintf(out, "late, from due to reserved: p99 %s, worst %s\n\n",
		late_format(p99, &rates->late, 990), late_format(worst, &rates->late, 1000));
}

/* The busiest first, then the fullest, then by name. */
static int compare_work(const void *a, const void *b)
{
	const struct tube_snapshot *x = a, *y = b;
	double x_rate = x->put_per_s + x->deleted_per_s;
	double y_rate = y->put_per_s + y->deleted_per_s;
	uint64_t x_jobs = x->ready + x->reserved + x->delayed + x->buried;
	uint64_t y_jobs = y->ready + y->reserved + y->delayed + y->buried;

	if (x_rate != y_rate)
		return x_rate < y_rate ? 1 : -1;
	if (x_jobs != y_jobs)
		return x_jobs < y_jobs ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void print_tubes(const struct snapshot *snapshot, FILE *out)
{
	struct tube_snapshot *sorted = calloc(snapshot->nr_tubes + 1, sizeof(*sorted));
	size_t i;

	if (!sorted)
		errx(EXIT_CANNOT, "out of memory for the screen");
	memcpy(sorted, snapshot->tube, snapshot->nr_tubes * sizeof(*sorted));
	qsort(sorted, snapshot->nr_tubes, sizeof(*sorted), compare_work);
	fputs("  put/s deleted/s    ready reserved  delayed   buried  waiting  tube\n", out);
	for (i = 0; i < snapshot->nr_tubes; i++)
		fprintf(out, "%7.0f %9.0f %8llu %8llu %8llu %8llu %8llu  %s\n",
			sorted[i].put_per_s, sorted[i].deleted_per_s,
			(unsigned long long)sorted[i].ready,
			(unsigned long long)sorted[i].reserved,
			(unsigned long long)sorted[i].delayed,
			(unsigned long long)sorted[i].buried,
			(unsigned long long)sorted[i].waiting, sorted[i].name);
	if (snapshot->left_out)
		fprintf(out, "and %zu more\n", snapshot->left_out);
	free(sorted);
}

static void draw_screen(const struct top *top)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		errx(EXIT_CANNOT, "out of memory for the screen");
	print_head(top, out);
	print_tubes(&top->snapshot, out);
	if (fclose(out))
		errx(EXIT_CANNOT, "out of memory for the screen");
	terminal_show(text);
	free(text);
}

/* --- the loop ------------------------------------------------------------------------- */

static void show(const struct top *top)
{
	if (top->full_screen)
		draw_screen(top);
	else if (top->json)
		print_json(top);
	else
		print_line(top);
}

/* Wait, and redraw the screen if its size changes. Returns whether to go on. */
static bool wait_for_next(const struct top *top, __u64 until_ns)
{
	enum terminal_event event;

	while ((event = terminal_wait(until_ns)) == TERMINAL_REDRAW)
		draw_screen(top);
	return event == TERMINAL_TIME;
}

static void watch(struct top *top)
{
	__u64 next_ns = top->snapshot.at_ns;

	while (!top->count || top->nr < top->count) {
		next_ns += top->interval_ns;
		if (!wait_for_next(top, next_ns))
			return;
		take_snapshot(top);
		if (next_ns + top->interval_ns < top->snapshot.at_ns)
			next_ns = top->snapshot.at_ns;
		top->nr++;
		show(top);
	}
}

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
	struct top *top = state->input;

	switch (key) {
	case 'a':
		top->address = arg;
		return 0;
	case 'i':
		top->interval_ns = option_seconds(state, "interval", arg, MIN_INTERVAL_NS);
		return 0;
	case 'c':
		top->count = option_count(state, "count", arg, 1, ~0ULL);
		return 0;
	case 'j':
		top->json = true;
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
	{ "json", 'j', NULL, 0, "Print one line of JSON each time", 0 },
	{ 0 }
};

static const struct argp top_argp = {
	.options = top_options,
	.parser = parse_top,
	.doc = "Watch a daemon: jobs by state, puts, deletes and retries per second, and the\n"
	       "lateness of delayed jobs. On a terminal it fills the screen, with the tubes,\n"
	       "until q or ^C; elsewhere it prints a line each time.",
};

int top_main(int argc, char **argv)
{
	struct top top = {
		.address = ADDRESS_DEFAULT,
		.interval_ns = NSEC_PER_SEC,
	};

	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&top_argp, argc, argv, 0, NULL, &top);
	top.connection = connection_open(top.address);
	snapshot_take(&top.snapshot, top.connection, wait_now_ns());
	top.full_screen = !top.json && isatty(STDOUT_FILENO);
	setvbuf(stdout, NULL, top.full_screen ? _IOFBF : _IOLBF, BUFSIZ);
	if (top.full_screen)
		terminal_enter();
	watch(&top);
	terminal_leave();
	snapshot_free(&top.snapshot);
	connection_close(top.connection);
	return 0;
}
