/* SPDX-License-Identifier: GPL-2.0 */
/* The tick at which a node comes out, worked out as the contract defines it. */
#ifndef TWHEEL_TICKS_H
#define TWHEEL_TICKS_H

#include <linux/math.h>
#include <linux/minmax.h>

#define NEVER_NS	BIT_ULL(63)

static inline u64 first_tick(u64 due_ns, unsigned int shift)
{
	return (due_ns >> shift) + !!(due_ns & (BIT_ULL(shift) - 1));
}

/* The tick for a due time with slack, by the contract's definition. */
static inline u64 roundest_tick(u64 due_ns, u64 slack_ns, unsigned int shift)
{
	u64 first = first_tick(due_ns, shift);
	u64 last = (due_ns + slack_ns) >> shift;
	u64 step = 1;

	if (last < first)
		return first;
	while (2 * step <= last - first + 1)
		step *= 2;
	return DIV_ROUND_UP(first, step) * step;
}

#endif /* TWHEEL_TICKS_H */
