/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Budget: the time that runs take on a CPU, and the pause when it is used up.
 *
 * budget.c tells how it works.  The fast paths are inline, because the shortest run takes
 * only a few hundred instructions.
 */
#ifndef TWHEEL_BUDGET_H
#define TWHEEL_BUDGET_H

#include <linux/minmax.h>
#include <linux/percpu.h>

#include "base.h"

/* The time that a run may take before it leaves the CPU to others. */
#define BUDGET_RUN_NS	(1 * NSEC_PER_MSEC)

/*
 * The longest pause.  A virtual machine may be stopped for seconds in the middle of a
 * run; its timers must not wait that long again.
 */
#define BUDGET_PAUSE_NS	(100 * NSEC_PER_MSEC)

/**
 * struct kind_budget - the time that runs of the bases of a kind take on a CPU
 * @pause_end_ns: when the pause ends; 0, or a time that has passed: there is no pause.
 * @last: the base whose run caused the last pause; the other bases are resumed before it.
 * @run_end_ns: when the last run ended.
 * @run_ns: how long it took, together with the runs right before it; 0 if a pause
 *	followed.
 *
 * Times are spare time: budget_spare_ns().
 */
struct kind_budget {
	u64 pause_end_ns;
	const struct base *last;
	u64 run_end_ns;
	u64 run_ns;
};

/**
 * struct budget - the time that runs of all bases take on a CPU
 * @ran_ns: how long all runs took, ever.
 * @kinds: the budget of each kind of bases.
 *
 * Touched on that CPU only, with interrupts off.
 */
struct budget {
	u64 ran_ns;
	struct kind_budget kinds[BASE_KINDS];
};

/**
 * struct run_time - the time that a run has taken so far
 * @start_ns: when it began, on CLOCK_MONOTONIC.
 * @spent_ns: how long it had taken when that was last checked.
 * @carried_ns: how long the runs right before it took; it is part of the same budget.
 */
struct run_time {
	u64 start_ns;
	u64 spent_ns;
	u64 carried_ns;
};

DECLARE_PER_CPU(struct budget, twheel_budgets);

u64 budget_resume_ns(const struct base *base);
u64 budget_time_to_resume_ns(const struct base *base);
void budget_pause(const struct base *base, u64 ran_ns);

/* Spare time: CLOCK_MONOTONIC less the time that runs took on this CPU. */
static inline u64 budget_spare_ns(u64 now_ns)
{
	return now_ns - this_cpu_read(twheel_budgets.ran_ns);
}

/*
 * At least how long a pause of the base's kind on this CPU, or of @base alone, lasts;
 * 0: there is no pause.
 */
static inline u64 budget_pause_left_ns(const struct base *base)
{
	if (!this_cpu_read(twheel_budgets.kinds[base->kind].pause_end_ns) &&
	    !base->not_before_ns)
		return 0;
	return budget_time_to_resume_ns(base);
}

/* Is there a pause of that kind on this CPU, or has it ended without a run since then? */
static inline bool budget_has_pause(enum base_kind kind)
{
	return this_cpu_read(twheel_budgets.kinds[kind].pause_end_ns);
}

/* The pause of the base's kind on this CPU is over. */
static inline void budget_end_pause(const struct base *base)
{
	this_cpu_write(twheel_budgets.kinds[base->kind].pause_end_ns, 0);
}

/*
 * A run of @base begins.  If less spare time has passed since the last run of its kind
 * than that run took, both share one budget.  Otherwise many short runs could take the
 * whole CPU from tasks.
 */
static inline void budget_begin(struct run_time *time, const struct base *base,
				u64 now_ns)
{
	const struct kind_budget *budget = this_cpu_ptr(&twheel_budgets.kinds[base->kind]);

	time->start_ns = now_ns;
	if (budget_spare_ns(now_ns) - budget->run_end_ns < budget->run_ns)
		time->carried_ns = budget->run_ns;
}

/* Has the run used up its time? */
static inline bool budget_is_used_up(struct run_time *time, u64 now_ns)
{
	time->spent_ns = now_ns - time->start_ns;
	return time->carried_ns + time->spent_ns >= BUDGET_RUN_NS;
}

/* A run of @base ends.  If it has used up its time, there is a pause. */
static inline void budget_end(const struct run_time *time, const struct base *base,
			      bool used_up)
{
	struct kind_budget *budget = this_cpu_ptr(&twheel_budgets.kinds[base->kind]);
	u64 ran_ns = time->carried_ns + time->spent_ns;

	this_cpu_add(twheel_budgets.ran_ns, min_t(u64, time->spent_ns, BUDGET_PAUSE_NS));
	budget->run_end_ns = budget_spare_ns(time->start_ns + time->spent_ns);
	budget->run_ns = used_up ? 0 : ran_ns;
	if (used_up)
		budget_pause(base, ran_ns);
}

#endif /* TWHEEL_BUDGET_H */
