/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tick at which something comes out, as the contract says it, in its words.
 */
#ifndef TWHEEL_TICKS_H
#define TWHEEL_TICKS_H

#include <linux/math64.h>
#include <linux/minmax.h>

#define NEVER_NS	BIT_ULL(63)

static inline u64 first_tick(u64 due_ns, unsigned int shift)
{
	return (due_ns >> shift) + !!(due_ns & (BIT_ULL(shift) - 1));
}

/* What the contract says of slack. */
static inline u64 roundest_tick(u64 due_ns, u64 slack_ns, unsigned int shift)
{
	u64 first = first_tick(due_ns, shift);
	u64 last = (due_ns + slack_ns) >> shift;
	u64 step = 1;

	if (last < first)
		return first;
	while (2 * step <= last - first + 1)
		step *= 2;
	return DIV64_U64_ROUND_UP(first, step) * step;
}

#endif /* TWHEEL_TICKS_H */
