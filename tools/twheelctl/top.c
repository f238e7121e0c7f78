// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl top: watches the wheels as they turn.
 *
 * Each refresh reads the files of debugfs once. Rates and lateness are those of the
 * time since the previous refresh, so the first one comes after one interval. On a
 * terminal, each refresh replaces the previous one and draws each wheel; elsewhere,
 * each is a line.
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/time.h"
#include "common/wait.h"
#include "twheelctl/command.h"
#include "twheelctl/draw.h"
#include "twheelctl/json.h"
#include "common/options.h"
#include "twheelctl/rates.h"
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
 * @full_screen: the output is a terminal.
 * @nr: the number of refreshes so far.
 * @wheels: the wheels at the last refresh.
 * @sample: the sums over @wheels.
 * @rates: the rates between the last two refreshes.
 */
struct top {
	struct settings *settings;
	struct draw_style style;
	__u64 interval_ns;
	__u64 count;
	bool json;
	bool full_screen;
	__u64 nr;
	struct wheels wheels;
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
	wheels_free(&top->wheels);
	top->wheels = wheels;
	sample_take(&top->sample, &top->wheels, wait_now_ns());
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

static void print_head(const struct top *top, FILE *out)
{
	const struct rates *rates = &top->rates;
	char text[NUMBER_TEXT];

	fprintf(out, "%.0f events/s, %llu pending, %.0f interrupts/s, %.0f postponed/s\n",
		rates->per_s, rates->pending, rates->interrupts_per_s,
		rates->postponed_per_s);
	fprintf(out, "%.0f cascaded/s; late: p99 %s, ", rates->cascaded_per_s,
		lateness_format(text, rates->p99_ns));
	fprintf(out, "worst %s; ", lateness_format(text, rates->worst_ns));
	fprintf(out, "each %s; q quits\n\n",
		duration_format(text, top->interval_ns));
}

/* Draws the wheels that have been used, and counts the others. */
static void draw_used(const struct top *top, FILE *out)
{
	size_t unused = 0;

	for (size_t i = 0; i < top->wheels.nr; i++) {
		struct wheel *wheel = &top->wheels.wheel[i];
		const struct wheels one = { .wheel = wheel, .nr = 1 };

		if (wheel->armed || wheel->expired || !wheel->online)
			draw_wheels(&one, &top->style, out);
		else
			unused++;
	}
	if (unused)
		fprintf(out, "%zu %s not been used\n", unused,
			unused == 1 ? "wheel has" : "wheels have");
}

static void draw_screen(struct top *top)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		errx(EXIT_FAILURE, "out of memory for the screen");
	top->style.fold = terminal_columns() < DRAW_COLUMNS ? 2 : 1;
	print_head(top, out);
	draw_used(top, out);
	if (fclose(out))
		errx(EXIT_FAILURE, "out of memory for the screen");
	terminal_show(text);
	free(text);
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

/* Waits for the next refresh, and redraws the screen if necessary. Returns false to quit. */
static bool wait_for_next(struct top *top, __u64 until_ns)
{
	enum terminal_event event;

	while ((event = terminal_wait(until_ns)) == TERMINAL_REDRAW)
		draw_screen(top);
	return event == TERMINAL_TIME;
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
	case 'j':
		top->json = true;
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
	{ "json", 'j', NULL, 0, "Print one line of JSON for each refresh", 0 },
	{ 0 }
};

static const struct argp top_argp = {
	.options = top_argp_options,
	.parser = parse_top,
	.children = settings_child,
	.doc = "Watches the wheels of all CPUs and clocks: expired events and interrupts in a\n"
	       "second, pending events, and the lateness of 99 of 100 events and of the worst\n"
	       "one since the previous refresh. On a terminal it fills the screen and draws\n"
	       "each wheel as show does, until q or ^C; elsewhere it prints a line for each\n"
	       "refresh.\n"
	       "\vLateness counts from the beginning of the tick at which an event was to\n"
	       "expire, and is known up to a power of two: \"< 131us\" is 65.5us to 131us. \"-\"\n"
	       "means that no event expired. \"postponed\" counts the events whose time came\n"
	       "when their deadline in shared memory was a later one already: they wait on.\n"
	       "\"cascaded\" counts the events that were moved to a lower level of their wheel.\n"
	       "\n"
	       "Examples:\n"
	       "  twheelctl top\n"
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

	argp_parse(&top_argp, argc, argv, 0, NULL, &top);
	if (!look(&top))
		return STATUS_FAILURE;
	top.full_screen = !top.json && isatty(STDOUT_FILENO);
	setvbuf(stdout, NULL, top.full_screen ? _IOFBF : _IOLBF, BUFSIZ);
	if (top.full_screen)
		terminal_enter();
	status = top_watch(&top);
	terminal_leave();
	wheels_free(&top.wheels);
	return status;
}
