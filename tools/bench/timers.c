// SPDX-License-Identifier: GPL-2.0
/*
 * What timers cost a process, by each of the ways to have them.
 *
 * The same work is done by all ways (way.h): what it is, is told at the head of each
 * work_*.c.  For people there are tables, for programs lines "result NAME VALUE UNIT".
 * Nothing is asserted of times; but what is not as it has to be ends the program with
 * status 1.
 */
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "work.h"

static const struct plan full = {
	.counts = { 1000, 10000, 100000, 1000000 },
	.operations = 16384,
	.due = 10000,
	.memory = 1000000,
	.seconds = 5,
	.turns = 1000,
};

/* Counting instructions takes fewer of them: each run is alike. */
static const struct plan counted = {
	.counts = { 1000, 10000, 100000 },
	.operations = 4096,
	.due = 10000,
	.memory = 100000,
	.seconds = 2,
	.turns = 200,
};

static const struct plan quick = {
	.counts = { 1000 },
	.operations = 1024,
	.due = 1000,
	.memory = 20000,
	.seconds = 1,
	.turns = 20,
};

/**
 * struct work - something to measure
 * @name: what --work calls it.
 * @run: measures it.
 * @clock: it says nothing where instructions are counted.
 */
static const struct work {
	const char *name;
	void (*run)(const struct plan *plan);
	bool clock;
} works[] = {
	{ "change", work_change, false },
	{ "expire", work_expire, false },
};

static void usage(void)
{
	printf("Usage: timers [OPTION...]\n\n"
	       "What timers cost a process: by /dev/twheel, timerfd, timer_create, io_uring, and a\n"
	       "heap of its own with one timerfd.\n\n"
	       "  --work WHAT,...     only this: change, expire\n"
	       "  --way WAY,...       only by these: twheel (or twheel.submit256 and so on), timerfd,\n"
	       "                      posix, io_uring, heap\n"
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

int main(int argc, char **argv)
{
	const struct plan *plan = NULL;
	unsigned int i;

	static const struct option options[] = {
		{ "work", required_argument, NULL, 'w' },
		{ "way", required_argument, NULL, 'y' },
		{ "count", required_argument, NULL, 'c' },
		{ "quick", no_argument, NULL, 'q' },
		{ "instruction-ns", required_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	const char *work = NULL, *way = NULL;
	struct plan p;
	__u32 count = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'w': work = optarg; break;
		case 'y': way = optarg; break;
		case 'c': count = number("--count", optarg, 100); break;
		case 'q': plan = &quick; break;
		case 'i': clock_instructions(number("--instruction-ns", optarg, 1)); break;
		case 'h': usage(); return 0;
		default: return 2;
		}
	}
	if (!plan)
		plan = clock_is_real() ? &full : &counted;
	p = *plan;
	p.ways = way;
	if (count) { p.counts[0] = count; p.counts[1] = 0; }
	for (i = 0; i < ARRAY_SIZE(works); i++)
		if (!work || in_list(work, works[i].name))
			works[i].run(&p);
	return 0;
}
