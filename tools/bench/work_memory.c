// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the memory of an armed timer: the growth of the memory of the kernel and of the
 * process, divided by the number of timers.
 *
 * The kernel's memory is all that is neither free, nor cached files, nor memory of programs
 * (MemTotal - MemFree - Buffers - Cached - AnonPages of /proc/meminfo, less the free pages
 * on the lists of CPUs).  So other programs should be idle.  The kernel frees some memory
 * with a delay: the benchmark waits until the figure does not change any more.
 */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "work.h"

/* With more timers the memory of each stays the same, and making them takes long. */
#define ENOUGH		100000

struct usage {
	double kernel;
	double process;
};

/* A line "NAME: N kB" of a file. */
static double kib_of(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	unsigned long long kib;
	size_t length = strlen(name);
	char line[128];

	if (!file)
		err(1, "cannot open %s", path);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, length) || line[length] != ':')
			continue;
		if (sscanf(line + length + 1, "%llu", &kib) == 1) {
			fclose(file);
			return kib;
		}
	}
	errx(1, "%s has no %s", path, name);
}

/* Free pages on the lists of CPUs: "count: N" of each zone and CPU. */
static double pages_of_cpus(void)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	unsigned long long count, total = 0;
	char line[256];

	if (!file)
		err(1, "cannot open /proc/zoneinfo");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " count: %llu", &count) == 1)
			total += count;
	fclose(file);
	return total;
}

static struct usage usage_now(void)
{
	static const char meminfo[] = "/proc/meminfo";

	return (struct usage){
		.kernel = 1024 * (kib_of(meminfo, "MemTotal") -
				  kib_of(meminfo, "MemFree") -
				  kib_of(meminfo, "Buffers") -
				  kib_of(meminfo, "Cached") -
				  kib_of(meminfo, "AnonPages")) -
			  sysconf(_SC_PAGESIZE) * pages_of_cpus(),
		.process = 1024 * kib_of("/proc/self/status", "RssAnon"),
	};
}

/* Arm some at a time, so that no buffer grows with the number of timers. */
static void memory_arm_all(struct set *set)
{
	__u32 part[COLLECT_MAX], from, i, nr;
	__u64 due_ns[COLLECT_MAX];
	struct timers timers = { part, due_ns, 0 };

	for (from = 0; from < set->nr; from += nr) {
		nr = set->nr - from < COLLECT_MAX ? set->nr - from : COLLECT_MAX;
		for (i = 0; i < nr; i++)
			part[i] = from + i;
		random_times(due_ns, nr, clock_ns() + FAR_NS, SPAN_NS);
		timers.nr = nr;
		set->way->arm(set, &timers);
	}
}

#define SAME		(64 << 10)
#define TRIES		100

/* The usage when it does not change any more. */
static struct usage settled_usage(void)
{
	const struct timespec while_ns = to_timespec(200000000);
	struct usage before, now = usage_now();
	unsigned int i, calm = 0;

	for (i = 0; i < TRIES && calm < 3; i++) {
		before = now;
		nanosleep(&while_ns, NULL);
		now = usage_now();
		calm = fabs(now.kernel - before.kernel) < SAME ? calm + 1 : 0;
	}
	return now;
}

static struct usage memory_measure(const struct way *way, __u32 nr)
{
	struct usage before, after;
	struct set *set;

	before = settled_usage();
	set = way->open(way, nr);
	memory_arm_all(set);
	after = settled_usage();
	way->close(set);
	return (struct usage){
		.kernel = (after.kernel - before.kernel) / nr,
		.process = (after.process - before.process) / nr,
	};
}

static void memory_by_way(const struct way *way, __u32 nr)
{
	struct usage usage;

	if (!way->batch && way->most <= 1000000 && nr > ENOUGH)
		nr = ENOUGH;
	if (nr > way->most)
		nr = way->most;
	/* The first timer allocates memory that is needed only once. */
	memory_measure(way, 1);
	usage = memory_measure(way, nr);
	printf("%-24s %9u %8.1f %8.1f\n", way->text, nr, usage.kernel,
	       usage.process);
	print_result(usage.kernel, "bytes", "u5.%s.kernel.%u", way->name, nr);
	print_result(usage.process, "bytes", "u5.%s.process.%u", way->name, nr);
}

/* Only one variant of each way: the others take the same memory. */
void work_memory(const struct plan *plan)
{
	unsigned int i;

	printf("\nMemory of an armed timer, in bytes\n\n");
	printf("%-24s %9s %8s %8s\n", "", "armed", "kernel", "process");
	for (i = 0; ways[i]; i++) {
		if (ways[i] == &way_enter_256 || !ways[i]->delivers ||
		    !plan_has(plan, ways[i]))
			continue;
		memory_by_way(ways[i], plan->memory);
	}
}
