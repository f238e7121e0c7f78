// SPDX-License-Identifier: GPL-2.0
/*
 * Counts interrupts while nothing is armed.  Timers are armed for soon and cancelled, which
 * leaves the hrtimer of a base as it is: it may fire once, and never after that.
 */
#include <stdio.h>

#include "bench.h"
#include "work.h"

#define TIMERS		1000
#define NSEC_PER_MSEC	1000000ULL

static void sleep_ms(__u64 ms)
{
	struct timespec time = to_timespec(ms * NSEC_PER_MSEC);

	nanosleep(&time, NULL);
}

/*
 * Sleep, and return the interrupts of all bases in that time.  @interrupts has their
 * counters before it.  *@most is the maximum of a base.
 */
static __u64 interrupts_in(__u64 ms, __u64 interrupts[BASES_MAX], __u64 *most)
{
	static __u64 now[BASES_MAX];
	__u64 total = 0;
	size_t i, bases;

	sleep_ms(ms);
	bases = read_bases("interrupts", now);
	*most = 0;
	for (i = 0; i < bases; i++) {
		__u64 more = now[i] - interrupts[i];

		total += more;
		if (more > *most)
			*most = more;
		interrupts[i] = now[i];
	}
	return total;
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
	static __u64 interrupts[BASES_MAX];
	__u64 stale, most_stale, idle, most_idle;
	struct set *set;
	size_t bases;

	if (!plan_has(plan, way))
		return;
	set = way->open(way, TIMERS);
	arm_and_cancel(set);
	bases = read_bases("interrupts", interrupts);
	stale = interrupts_in(1000, interrupts, &most_stale);
	idle = interrupts_in(2000, interrupts, &most_idle);
	way->close(set);
	printf("\nInterrupts while nothing is armed: %llu in the first second, of %zu bases,\n"
	       "%llu of one at most; %llu in the next two, %llu of one at most\n",
	       stale, bases, most_stale, idle, most_idle);
	print_result(most_stale, "interrupts", "s1.twheel.stale");
	print_result(idle, "interrupts", "s1.twheel.idle");
}
