// SPDX-License-Identifier: GPL-2.0
/* Helpers of all measurements. */
#include <err.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "work.h"

/* "twheel" means each of its variants. */
static bool means(const char *name, size_t length, const struct way *way)
{
	const char *whole = way_name(way);

	return !strncmp(name, whole, length) &&
	       (!whole[length] || whole[length] == '.');
}

/* The next name of a list with commas, and NULL after the last. */
static const char *next_name(const char *name)
{
	const char *comma = strchr(name, ',');

	return comma ? comma + 1 : NULL;
}

static bool is_named(const char *names, const struct way *way)
{
	for (; names; names = next_name(names))
		if (means(names, strcspn(names, ","), way))
			return true;
	return false;
}

void check_ways(const char *names)
{
	unsigned int i;

	for (; names; names = next_name(names)) {
		int length = strcspn(names, ",");

		for (i = 0; ways[i]; i++)
			if (means(names, length, ways[i]))
				break;
		if (!ways[i])
			errx(2, "--way has no \"%.*s\"; see --help", length,
			     names);
	}
}

bool plan_has(const struct plan *plan, const struct way *way)
{
	const char *lack;

	if (plan->ways && !is_named(plan->ways, way))
		return false;
	lack = way->lacks ? way->lacks() : NULL;
	if (lack)
		printf("%-24s not here: %s\n", way->text, lack);
	return !lack;
}

static __u64 read_base(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	size_t length = strlen(name);
	unsigned long long value;
	bool found = false;
	char line[1024];

	if (!file)
		err(1, "cannot open %s", path);
	while (!found && fgets(line, sizeof(line), file))
		found = !strncmp(line, name, length) &&
			sscanf(line + length, ":%llu", &value) == 1;
	if (!found)
		errx(1, "%s lacks a line \"%s:\"", path, name);
	fclose(file);
	return value;
}

#define BASES		"/sys/kernel/debug/twheel/*"

size_t read_bases(const char *name, __u64 values[BASES_MAX])
{
	size_t i, bases;
	glob_t files;

	if (glob(BASES, 0, NULL, &files))
		errx(1, "there is no %s", BASES);
	bases = files.gl_pathc;
	if (bases > BASES_MAX)
		errx(1, "there are %zu bases, more than %u", bases, BASES_MAX);
	for (i = 0; i < bases; i++)
		values[i] = read_base(files.gl_pathv[i], name);
	globfree(&files);
	return bases;
}

__u32 *all_timers(__u32 nr)
{
	__u32 *timers = bench_alloc(nr, sizeof(*timers)), i;

	for (i = 0; i < nr; i++)
		timers[i] = i;
	return timers;
}

void random_times(__u64 *due_ns, __u32 nr, __u64 from_ns, __u64 span_ns)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		due_ns[i] = from_ns + bench_random() % span_ns;
}

/*
 * Longer than it takes to arm and to expire a timer: on an ordinary processor, and on one
 * whose instructions take 8 ns.
 */
#define REAL_NS		20000ULL
#define COUNTED_NS	100000ULL

__u64 enough_ns(void)
{
	return clock_is_real() ? REAL_NS : COUNTED_NS;
}

void spin(__u64 turns)
{
	while (turns--)
		asm volatile("");
}

__u64 turns_of(__u64 ns)
{
	const __u64 turns = 1000000;
	__u64 begin = clock_ns();

	spin(turns);
	return (double)ns / (clock_ns() - begin + 1) * turns;
}

__u64 interrupts_now(void)
{
	unsigned long long count, total = 0;
	FILE *file = fopen("/proc/interrupts", "r");
	char line[4096], *at;
	int length;

	if (!file)
		err(1, "cannot open /proc/interrupts");
	while (fgets(line, sizeof(line), file)) {
		at = strstr(line, "LOC:");
		if (!at)
			continue;
		for (at += 4; sscanf(at, "%llu%n", &count, &length) == 1;
		     at += length)
			total += count;
	}
	fclose(file);
	return total;
}

void sleep_until(__u64 ns)
{
	struct timespec time = to_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
		;
}
