// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost of timers to a process, for each way to have them.
 *
 * All ways (way.h) do the same work, which the head of each work_*.c describes.  The output
 * has tables for people, and lines "result NAME VALUE UNIT" for programs.  No time is
 * checked, but each result is: an error ends the program with status 1.
 */
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "work.h"

static const struct plan full = {
	.counts = { 1000, 10000, 100000, 1000000 },
	.operations = 16384,
	.due = 10000,
	.memory = 1000000,
	.seconds = 5,
	.turns = 1000,
	.touched = 100000,
	.timeout_s = 30,
	.touches = 1000000,
};

/* Fewer operations are enough where instructions are counted: all runs are alike. */
static const struct plan counted = {
	.counts = { 1000, 10000, 100000 },
	.operations = 4096,
	.due = 10000,
	.memory = 100000,
	.seconds = 2,
	.turns = 200,
	.touched = 100000,
	.timeout_s = 30,
	.touches = 1000000,
};

static const struct plan quick = {
	.counts = { 1000 },
	.operations = 1024,
	.due = 1000,
	.memory = 20000,
	.seconds = 1,
	.turns = 20,
	.touched = 1000,
	.timeout_s = 1,
	.touches = 8192,
};

/* A clock that counts instructions, that of an emulated processor, and a real one. */
#define COUNTED		1
#define EMULATED	2
#define REAL		4
#define ANY		(COUNTED | EMULATED | REAL)

static unsigned int this_clock(void)
{
	if (!clock_is_real())
		return COUNTED;
	return processor_is_emulated() ? EMULATED : REAL;
}

/**
 * struct work - a measurement
 * @name: its name for --work.
 * @run: does it.
 * @clocks: the clocks on which its figures are meaningful.
 */
static const struct work {
	const char *name;
	void (*run)(const struct plan *plan);
	unsigned int clocks;
} works[] = {
	{ "change", work_change, ANY },
	{ "expire", work_expire, COUNTED | REAL },
	{ "lateness", work_lateness, ANY },
	{ "loop", work_loop, ANY },
	{ "touch", work_touch, COUNTED | REAL },
	{ "idle", work_idle, ANY },
	{ "memory", work_memory, EMULATED | REAL },
	{ "threads", work_threads, EMULATED | REAL },
	{ "hold", work_hold, EMULATED | REAL },
};

static void usage(void)
{
	printf("Usage: timers [OPTION...]\n\n"
	       "What timers cost a process: by /dev/twheel, timerfd, timer_create, io_uring, and a\n"
	       "heap of its own with one timerfd.\n\n"
	       "  --work WHAT,...     only this: change, expire, lateness, loop, touch, idle,\n"
	       "                      memory, threads, hold; without it, all that says something on\n"
	       "                      this clock\n"
	       "  --way WAY,...       only by these: twheel (or twheel.submit256, twheel.deadline and\n"
	       "                      so on), timerfd, posix, io_uring, heap\n"
	       "  --count N           change timers with N of them armed only\n"
	       "  --quick             fewer of everything: does it work?\n"
	       "  --instruction-ns N  the clock counts instructions, each as N ns (QEMU's -icount):\n"
	       "                      tell instructions\n"
	       "  --help              this text\n");
}

static __u32 number(const char *option, const char *text, __u32 least)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < least ||
	    value > INT_MAX)
		errx(2, "%s \"%s\" is not a number from %u to %d", option, text,
		     least, INT_MAX);
	return value;
}

static bool in_list(const char *list, const char *name)
{
	const char *at = list;

	while (at) {
		size_t length = strcspn(at, ",");

		if (length == strlen(name) && !strncmp(at, name, length))
			return true;
		at = strchr(at, ',');
		if (at)
			at++;
	}
	return false;
}

/* The options of the command line. */
struct request {
	const char *works;
	const char *ways;
	__u32 count;
	bool quick;
};

static void parse(int argc, char **argv, struct request *request)
{
	static const struct option options[] = {
		{ "work", required_argument, NULL, 'w' },
		{ "way", required_argument, NULL, 'y' },
		{ "count", required_argument, NULL, 'c' },
		{ "quick", no_argument, NULL, 'q' },
		{ "instruction-ns", required_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'w':
			request->works = optarg;
			break;
		case 'y':
			request->ways = optarg;
			break;
		case 'c':
			request->count = number("--count", optarg, 100);
			break;
		case 'q':
			request->quick = true;
			break;
		case 'i':
			clock_instructions(number("--instruction-ns", optarg, 1));
			break;
		case 'h':
			usage();
			exit(0);
		default:
			exit(2);
		}
	}
	if (optind < argc)
		errx(2, "there is nothing to do with \"%s\"; see --help",
		     argv[optind]);
}

static void check_names(const struct request *request)
{
	char *names = strdup(request->works ? request->works : ""), *name;
	unsigned int i;

	for (name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		for (i = 0; i < ARRAY_SIZE(works); i++)
			if (!strcmp(name, works[i].name))
				break;
		if (i == ARRAY_SIZE(works))
			errx(2, "--work has no \"%s\"; see --help", name);
	}
	free(names);
	if (request->ways)
		check_ways(request->ways);
}

static struct plan make_plan(const struct request *request)
{
	struct plan plan = request->quick ? quick :
			   clock_is_real() ? full : counted;

	plan.ways = request->ways;
	if (request->count) {
		plan.counts[0] = request->count;
		plan.counts[1] = 0;
	}
	return plan;
}

int main(int argc, char **argv)
{
	struct request request = {};
	struct plan plan;
	unsigned int i;

	parse(argc, argv, &request);
	check_names(&request);
	plan = make_plan(&request);
	if (clock_is_real())
		print_where();
	for (i = 0; i < ARRAY_SIZE(works); i++) {
		if (request.works ? in_list(request.works, works[i].name) :
		    works[i].clocks & this_clock())
			works[i].run(&plan);
	}
	return 0;
}
