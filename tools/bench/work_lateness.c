// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how late a waiting process knows of its timers: 2,000 a second, at random times.
 * The clock is read when the call that reports a timer has returned.  What a way has to do
 * after that, such as to read each timerfd, is not included.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "work.h"

#define RATE		2000
#define NSEC_PER_SEC	1000000000ULL

/* The percentiles that are printed. */
static const double percents[] = {
	1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 100
};

static int lateness_compare(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

/* The lateness of each timer.  *@early counts early timers, whose lateness is 0. */
static __u64 *lateness_measure(const struct way *way, __u32 nr, __u32 *early)
{
	__u64 *due_ns = bench_alloc(nr, sizeof(*due_ns));
	__u64 *late_ns = bench_alloc(nr, sizeof(*late_ns));
	__u32 *all = all_timers(nr), got[COLLECT_MAX], some, left, i;
	const struct timers timers = { all, due_ns, nr };
	struct set *set = way->open(way, nr);

	random_times(due_ns, nr, clock_ns() + NSEC_PER_SEC,
		     nr * NSEC_PER_SEC / RATE);
	set->due_ns = due_ns;
	way->arm(set, &timers);
	for (left = nr; left; left -= some) {
		__u64 now;

		some = way->collect(set, got, COLLECT_MAX, true);
		now = set->told_ns ? set->told_ns : clock_ns();
		if (some > left)
			errx(1, "%u timers come when %u are left", some, left);
		for (i = 0; i < some; i++) {
			bool is_early = now < due_ns[got[i]];

			*early += is_early;
			late_ns[got[i]] = is_early ? 0 : now - due_ns[got[i]];
		}
	}
	way->close(set);
	free(due_ns);
	free(all);
	qsort(late_ns, nr, sizeof(*late_ns), lateness_compare);
	return late_ns;
}

static double percentile(const __u64 *sorted, __u32 nr, double percent)
{
	__u32 rank = nr * percent / 100;

	return sorted[rank < nr ? rank : nr - 1];
}

/* Where instructions are counted, these are ns of a processor of that speed. */
static const char *unit(void)
{
	return clock_is_real() ? "ns" : "virtual_ns";
}

static void lateness_print(const struct way *way, const __u64 *late_ns, __u32 nr,
			   __u32 early)
{
	unsigned int i;

	printf("%-24s", way->text);
	for (i = 0; i < ARRAY_SIZE(percents); i++)
		printf(" %7.0f", percentile(late_ns, nr, percents[i]) / 1000);
	printf("\n");
	for (i = 0; i < ARRAY_SIZE(percents); i++)
		print_result(percentile(late_ns, nr, percents[i]), unit(),
			     "lateness.%s.p%g", way_name(way), percents[i]);
	print_result(early, "timers", "l2.%s.early", way_name(way));
}

void work_lateness(const struct plan *plan)
{
	const __u32 nr = plan->seconds * RATE;
	unsigned int i;

	printf("\n%u timers, %u a second: how late the process knows of so many percent of\n"
	       "them at most, in us (%s)\n\n",
	       nr, RATE, clock_is_real() ? "on the clock" :
		"of a processor that counts instructions");
	printf("%-24s", "");
	for (i = 0; i < ARRAY_SIZE(percents); i++)
		printf(" %6g%%", percents[i]);
	printf("\n");
	for (i = 0; ways[i]; i++) {
		__u64 *late_ns;
		__u32 early = 0;

		if (!ways[i]->delivers || !plan_has(plan, ways[i]))
			continue;
		late_ns = lateness_measure(ways[i], nr, &early);
		lateness_print(ways[i], late_ns, nr, early);
		free(late_ns);
	}
}
