/* SPDX-License-Identifier: GPL-2.0 */
/* The measurements of ways to have timers.  Each prints a table and results. */
#ifndef _WORK_H
#define _WORK_H

#include <stdbool.h>

#include "way.h"

/**
 * struct plan - how much is measured
 * @counts: the numbers of timers, then 0.
 * @operations: the number of operations for a figure.
 * @due: the number of timers that expire.
 * @memory: the number of timers whose memory is measured.
 * @seconds: the duration of the measurement of lateness.
 * @turns: the number of turns of an event loop.
 * @touched: the number of idle timeouts, which are moved again and again.
 * @timeout_s: their duration.
 * @touches: the number of moves for a figure.
 * @ways: names, or beginnings of names, of the ways to measure; NULL: all ways.
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

/* Returns whether to measure this way.  Prints the reason if this kernel lacks it. */
bool plan_has(const struct plan *plan, const struct way *way);

/* End the program if no way has a name of this list. */
void check_ways(const char *names);

/* Arm, cancel and re-arm at random. */
void work_change(const struct plan *plan);

/* Let timers expire, and collect them. */
void work_expire(const struct plan *plan);

/* Memory of an armed timer. */
void work_memory(const struct plan *plan);

/* The time from the due time of a timer until the process knows of it. */
void work_lateness(const struct plan *plan);

/* Several threads, each with its own timers. */
void work_threads(const struct plan *plan);

/* An event loop that serves sockets. */
void work_loop(const struct plan *plan);

/* Timeouts that are moved again and again and never expire. */
void work_touch(const struct plan *plan);

/* Interrupts while nothing is armed. */
void work_idle(const struct plan *plan);

/* The most work that the module did while it held a lock once. */
void work_hold(const struct plan *plan);

/* --- helpers ---------------------------------------------------------------- */

/* The numbers from 0 to @nr - 1. */
__u32 *all_timers(__u32 nr);

/* Read a counter of each base in debugfs.  Returns the number of bases. */
#define BASES_MAX	4096
size_t read_bases(const char *name, __u64 values[BASES_MAX]);

/* Random times from @from_ns, within @span_ns. */
void random_times(__u64 *due_ns, __u32 nr, __u64 from_ns, __u64 span_ns);

/* Longer than it takes to arm or to expire a timer, in ns. */
__u64 enough_ns(void);

/* Spin for some turns; and the number of turns that last a time. */
void spin(__u64 turns);
__u64 turns_of(__u64 ns);

/* Interrupts of all CPUs' own timers so far. */
__u64 interrupts_now(void);

void sleep_until(__u64 ns);

/* A time after the end of any benchmark, and a span of 2^20 ticks. */
#define FAR_NS		(3600 * 1000000000ULL)
#define SPAN_NS		(1ULL << 36)

#endif /* _WORK_H */
