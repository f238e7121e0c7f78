// SPDX-License-Identifier: GPL-2.0
/*
 * twheelq top: watches a daemon at work.
 *
 * Rates and lateness are of the time since the look before, so the first comes after one
 * interval. On a terminal each look takes the place of the last, with the tubes, those
 * with the most to do first; elsewhere each is a line.
 */
#include <argp.h>
#include <err.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../twheelctl/clock.h"
#include "../twheelctl/number.h"
#include "../twheelctl/options.h"
#include "../twheelctl/terminal.h"
#include "address.h"
#include "looks.h"
#include "subcommand.h"

/* After how many lines the heading comes again. */
#define LINES_PER_HEADING	20

#define MIN_INTERVAL_NS		(10 * NSEC_PER_MSEC)

/**
 * struct top - the state of the command
 * @address: --connect.
 * @interval_ns: --interval.
 * @count: --count; 0 for any number.
 * @json: --json.
 * @full_screen: it has a terminal.
 * @nr: how many looks there were.
 * @connection: to the daemon.
 * @look: the last look.
 * @rates: what happened before it.
 */
struct top {
	const char *address;
	__u64 interval_ns;
	__u64 count;
	bool json;
	bool full_screen;
	__u64 nr;
	struct connection *connection;
	struct look look;
	struct rates rates;
};

static void look(struct top *top)
{
	struct look before = top->look;

	look_take(&top->look, top->connection, now_ns());
	look_rates(&top->rates, &before, &top->look);
	look_end(&before);
}

/* --- a line --------------------------------------------------------------------------- */

/* "< 1.02ms", or "-" where nothing was late, as nothing came. */
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
	const struct look *look = &top->look;
	const struct rates *rates = &top->rates;
	char p99[NUMBER_TEXT], worst[NUMBER_TEXT];

	if ((top->nr - 1) % LINES_PER_HEADING == 0) {
		fputs("    ready  reserved   delayed    buried     put/s deleted/s", stdout);
		puts(" retries/s    dead/s  p99 late  worst late");
	}
	printf("%9llu %9llu %9llu %9llu %9.0f %9.0f %9.0f %9.0f  %8s  %10s\n",
	       (unsigned long long)look->ready, (unsigned long long)look->reserved,
	       (unsigned long long)look->delayed, (unsigned long long)look->buried,
	       rates->put, rates->deleted, rates->retries, rates->dead,
	       late_format(p99, &rates->late, 990), late_format(worst, &rates->late, 1000));
}

static json_t *json_late(const struct histogram *late, double us)
{
	return late->count ? json_real(us / 1e6) : json_null();
}

static json_t *json_tube(const struct tube_look *tube)
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
	const struct look *look = &top->look;
	const struct rates *rates = &top->rates;
	json_t *tubes = json_array(), *object;
	size_t i;

	for (i = 0; i < look->nr_tubes; i++)
		json_array_append_new(tubes, json_tube(&look->tube[i]));
	object = json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o}",
			   "ready", (json_int_t)look->ready,
			   "reserved", (json_int_t)look->reserved,
			   "delayed", (json_int_t)look->delayed,
			   "buried", (json_int_t)look->buried,
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
	const struct look *look = &top->look;
	const struct rates *rates = &top->rates;
	char p99[NUMBER_TEXT], worst[NUMBER_TEXT], up[NUMBER_TEXT], each[NUMBER_TEXT];

	fprintf(out, "%s, up %s; each %s; q quits\n", top->address,
		duration_format(up, look->uptime_s * 1e9), duration_format(each, top->interval_ns));
	fprintf(out, "jobs: %llu ready, %llu reserved, %llu delayed, %llu buried\n",
		(unsigned long long)look->ready, (unsigned long long)look->reserved,
		(unsigned long long)look->delayed, (unsigned long long)look->buried);
	fprintf(out, "clients: %llu, %llu of them waiting for a job\n",
		(unsigned long long)look->connections, (unsigned long long)look->waiting);
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
	const struct tube_look *x = a, *y = b;
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

static void print_tubes(const struct look *look, FILE *out)
{
	struct tube_look *sorted = calloc(look->nr_tubes + 1, sizeof(*sorted));
	size_t i;

	if (!sorted)
		errx(EXIT_CANNOT, "out of memory for the screen");
	memcpy(sorted, look->tube, look->nr_tubes * sizeof(*sorted));
	qsort(sorted, look->nr_tubes, sizeof(*sorted), compare_work);
	fputs("  put/s deleted/s    ready reserved  delayed   buried  waiting  tube\n", out);
	for (i = 0; i < look->nr_tubes; i++)
		fprintf(out, "%7.0f %9.0f %8llu %8llu %8llu %8llu %8llu  %s\n",
			sorted[i].put_per_s, sorted[i].deleted_per_s,
			(unsigned long long)sorted[i].ready,
			(unsigned long long)sorted[i].reserved,
			(unsigned long long)sorted[i].delayed,
			(unsigned long long)sorted[i].buried,
			(unsigned long long)sorted[i].waiting, sorted[i].name);
	if (look->left_out)
		fprintf(out, "and %zu more\n", look->left_out);
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
	print_tubes(&top->look, out);
	if (fclose(out))
		errx(EXIT_CANNOT, "out of memory for the screen");
	terminal_show(text);
	free(text);
}

/* --- again and again ------------------------------------------------------------------ */

static void show(const struct top *top)
{
	if (top->full_screen)
		draw_screen(top);
	else if (top->json)
		print_json(top);
	else
		print_line(top);
}

/* Waits, with the screen kept in shape. Returns whether to go on. */
static bool wait_for_next(const struct top *top, __u64 until_ns)
{
	struct pollfd none = { .fd = -1 };
	enum terminal_event event;

	if (!top->full_screen) {
		wait_until(&none, 1, until_ns);
		return true;
	}
	while ((event = terminal_wait(until_ns)) == TERMINAL_REDRAW)
		draw_screen(top);
	return event == TERMINAL_TIME;
}

static void watch(struct top *top)
{
	__u64 next_ns = top->look.at_ns;

	while (!top->count || top->nr < top->count) {
		next_ns += top->interval_ns;
		if (!wait_for_next(top, next_ns))
			return;
		look(top);
		if (next_ns + top->interval_ns < top->look.at_ns)
			next_ns = top->look.at_ns;
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
	{ "interval", 'i', "S", 0, "Look each S seconds; default 1", 0 },
	{ "count", 'c', "N", 0, "Exit after N times", 0 },
	{ "json", 'j', NULL, 0, "Print one line of JSON each time", 0 },
	{ 0 }
};

static const struct argp top_argp = {
	.options = top_options,
	.parser = parse_top,
	.doc = "Watch a daemon at work: jobs by state, what becomes of them in a second, and\n"
	       "how late those that were delayed were reserved. On a terminal it fills the\n"
	       "screen, with the tubes, until q or ^C; elsewhere it prints a line each time.",
};

int top_main(int argc, char **argv)
{
	struct top top = {
		.address = ADDRESS_DEFAULT,
		.interval_ns = NSEC_PER_SEC,
	};

	argp_err_exit_status = EXIT_CANNOT;
	argp_parse(&top_argp, argc, argv, 0, NULL, &top);
	top.connection = connection_open(top.address);
	look_take(&top.look, top.connection, now_ns());
	top.full_screen = !top.json && isatty(STDOUT_FILENO);
	setvbuf(stdout, NULL, top.full_screen ? _IOFBF : _IOLBF, BUFSIZ);
	if (top.full_screen)
		terminal_enter();
	watch(&top);
	terminal_leave();
	look_end(&top.look);
	connection_close(top.connection);
	return 0;
}
