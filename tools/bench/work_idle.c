// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts while nothing is armed: timers are armed for soon and cancelled, which
 * leaves the hrtimer of a base as it is.  That may call once; after it nothing may.
 */
#include <err.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "work.h"

#define TIMERS		1000
#define NSEC_PER_MSEC	1000000ULL

#define BASES		"/sys/kernel/debug/twheel/*"

/* The interrupts of all bases, and how many bases there are. */
static __u64 twheel_interrupts(size_t *bases)
{
	unsigned long long count, total = 0;
	char line[1024];
	glob_t files;
	size_t i;

	if (glob(BASES, 0, NULL, &files))
		errx(1, "there is no %s", BASES);
	for (i = 0; i < files.gl_pathc; i++) {
		FILE *file = fopen(files.gl_pathv[i], "r");

		if (!file)
			err(1, "cannot open %s", files.gl_pathv[i]);
		while (fgets(line, sizeof(line), file))
			if (sscanf(line, "interrupts: %llu", &count) == 1)
				total += count;
		fclose(file);
	}
	*bases = files.gl_pathc;
	globfree(&files);
	return total;
}

static void sleep_ms(__u64 ms)
{
	struct timespec time = to_timespec(ms * NSEC_PER_MSEC);

	nanosleep(&time, NULL);
}

static void arm_and_cancel(struct set *set)
{
	__u32 all[TIMERS], i;
	__u64 due_ns[TIMERS];
	const struct timers timers = { all, due_ns, TIMERS };

	for (i = 0; i < TIMERS; i++)
		all[i] = i;
	random_times(due_ns, TIMERS, clock_ns() + 500 * NSEC_PER_MSEC,
		     200 * NSEC_PER_MSEC);
	set->way->arm(set, &timers);
	set->way->cancel(set, &timers);
}

void work_idle(const struct plan *plan)
{
	const struct way *way = &way_submit_256;
	__u64 before, stale, idle;
	struct set *set;
	size_t bases;

	if (!plan_has(plan, way))
		return;
	set = way->open(way, TIMERS);
	arm_and_cancel(set);
	before = twheel_interrupts(&bases);
	sleep_ms(1000);
	stale = twheel_interrupts(&bases) - before;
	sleep_ms(2000);
	idle = twheel_interrupts(&bases) - before - stale;
	way->close(set);
	printf("\nInterrupts while nothing is armed: %llu in the first second, of %zu bases;\n"
	       "%llu in the next two\n", stale, bases, idle);
	print_result((double)stale / bases, "interrupts", "s1.twheel.stale");
	print_result(idle, "interrupts", "s1.twheel.idle");
}
