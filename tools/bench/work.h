/* SPDX-License-Identifier: GPL-2.0 */
/* What is measured of the ways to have timers.  Each prints its table and its results. */
#ifndef _WORK_H
#define _WORK_H

#include <stdbool.h>

#include "way.h"

/**
 * struct plan - how much is measured
 * @counts: with how many timers, up to a 0.
 * @operations: how many are enough for a figure.
 * @due: how many timers expire.
 * @memory: how many are held to see what memory they take.
 * @seconds: how long the lateness of timers is watched.
 * @turns: of an event loop.
 * @touched: how many idle timeouts there are, of which one is moved again and again.
 * @timeout_s: how long these are.
 * @touches: how many moves are enough for a figure.
 * @ways: names of the ways to measure, all that begin so; NULL: all.
 */
struct plan {
	__u32 counts[8];
	__u32 operations;
	__u32 due;
	__u32 memory;
	__u32 seconds;
	__u32 turns;
	__u32 touched;
	__u32 timeout_s;
	__u32 touches;
	const char *ways;
};

/* Is this way to be measured, and can it be?  Where it cannot, say so. */
bool plan_has(const struct plan *plan, const struct way *way);

/* End the program if a name in this list means no way. */
void check_ways(const char *names);

/* Arm, cancel and re-arm at random. */
void work_change(const struct plan *plan);

/* Let timers expire, and collect them. */
void work_expire(const struct plan *plan);

/* Memory of an armed timer. */
void work_memory(const struct plan *plan);

/* How late the process knows of timers. */
void work_lateness(const struct plan *plan);

/* Several threads, each with its own timers. */
void work_threads(const struct plan *plan);

/* An event loop that serves sockets. */
void work_loop(const struct plan *plan);

/* Timeouts that are moved again and again and never expire. */
void work_touch(const struct plan *plan);

/* Interrupts while nothing is armed. */
void work_idle(const struct plan *plan);

/* What the module has done at most while it held a lock once. */
void work_hold(const struct plan *plan);

/* --- what they share -------------------------------------------------------- */

/* The numbers from 0 to @nr - 1. */
__u32 *all_timers(__u32 nr);

/* The number that each base of the module shows by this name; how many bases there are. */
#define BASES_MAX	4096
size_t read_bases(const char *name, __u64 values[BASES_MAX]);

/* Times from @from_ns on, by chance within @span_ns. */
void random_times(__u64 *due_ns, __u32 nr, __u64 from_ns, __u64 span_ns);

/* More than it takes to arm a timer, or for one to expire, in ns. */
__u64 enough_ns(void);

/* Spin so many turns; how many of them last that long. */
void spin(__u64 turns);
__u64 turns_of(__u64 ns);

/* Interrupts of all CPUs' own timers so far. */
__u64 interrupts_now(void);

void sleep_until(__u64 ns);

/* A time that no benchmark lives to see, and a span of 2^20 ticks. */
#define FAR_NS		(3600 * 1000000000ULL)
#define SPAN_NS		(1ULL << 36)

#endif /* _WORK_H */
