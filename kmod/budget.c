// SPDX-License-Identifier: GPL-2.0
/*
 * Budget: the time that runs take on a CPU, and the pause when it is used up.
 *
 * A run that has used up its time (BUDGET_RUN_NS) is followed by a pause as long as the
 * run was, so that tasks get as much of the CPU as expiry did.  The pause holds for the
 * bases of the same kind of all clocks of the CPU.  They take turns: the base that caused
 * the pause is resumed a nanosecond after the others.
 *
 * Bases of other kinds run meanwhile.  What they take is not what tasks get, so pauses,
 * and the time between two runs that share a budget, are measured in spare time: it passes
 * only while no base runs.
 *
 *	             |<------- pause of kind A -------->|
 *	CPU   A runs | tasks | B runs | C runs | tasks  | A runs
 *	spare        |-------|                 |--------|
 *
 * So tasks get at least as much of the CPU as each of the kinds: half of it if one kind
 * has too much to do, a quarter of it if all three have.  A pause comes to its end
 * whatever the others do, because they pause as well.
 *
 * When @resume of a base calls, some spare time may be left, because others have run since
 * it was set.  Then it is set again.
 */
#include <linux/ktime.h>

#include "budget.h"

DEFINE_PER_CPU(struct budget, twheel_budgets);

/*
 * The earliest time at which a base may be run on this CPU, on CLOCK_MONOTONIC, if no other
 * base runs before it.
 */
u64 budget_resume_ns(const struct base *base)
{
	const struct budget *budget = this_cpu_ptr(&twheel_budgets);
	const struct kind_budget *kind = &budget->kinds[base->kind];

	if (!kind->pause_end_ns)
		return base->not_before_ns;
	return max(base->not_before_ns,
		   kind->pause_end_ns + budget->ran_ns + (kind->last == base));
}

/* The slow path of budget_pause_left_ns(). */
u64 budget_time_to_resume_ns(const struct base *base)
{
	u64 until_ns = budget_resume_ns(base), now_ns = ktime_get_ns();

	return now_ns < until_ns ? until_ns - now_ns : 0;
}

/*
 * Begin a pause of the base's kind on this CPU, after runs that took @ran_ns; the last run
 * was of @base.
 */
void budget_pause(const struct base *base, u64 ran_ns)
{
	struct kind_budget *budget = this_cpu_ptr(&twheel_budgets.kinds[base->kind]);

	budget->pause_end_ns = budget->run_end_ns + min_t(u64, ran_ns, BUDGET_PAUSE_NS);
	budget->last = base;
}
