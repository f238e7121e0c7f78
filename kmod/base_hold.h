/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Holds of a base's lock, and what is done to nodes in them.
 *
 * Everything that arms and cancels nodes comes through here, so the fast paths are
 * inline.  With many nodes, each node is a cache miss, and a processor waits for two
 * misses at the same time only if few instructions, and above all few stores, are between
 * them.  A hold on the stack stays in registers as long as no function gets its address.
 * base.c has the slow paths, and tells who may touch what.
 */
#ifndef TWHEEL_BASE_HOLD_H
#define TWHEEL_BASE_HOLD_H

#include <linux/ktime.h>
#include <linux/overflow.h>

#include "base.h"
#include "compat.h"
#include "trace.h"

/**
 * struct base_hold - a hold of one base's lock
 * @base: the base whose lock is held, with interrupts off; NULL: none.
 * @flags: the interrupt flags to restore when the hold ends.
 * @now_ns: what hold_now_ns() returns; 0: the clock was not read yet.
 * @touched: how many nodes were touched since the lock was taken.
 * @began_ns: when the lock was taken, in a kernel that debugs spinlocks.
 * @program: the hrtimer must be set when the hold ends.
 * @serves: @base was found to serve @cpu.
 * @cpu: see @serves; a CPU, or BASE_ANY_CPU.
 *
 * With it a series of commands takes the lock once, reads the clock at most once, and
 * determines once on which base to arm.  The lock is dropped when another base is needed,
 * after BASE_BATCH nodes, and by base_release().
 */
struct base_hold {
	struct base *base;
	unsigned long flags;
	u64 now_ns;
#ifdef CONFIG_DEBUG_SPINLOCK
	u64 began_ns;
#endif
	unsigned int touched;
	bool program;
	bool serves;
	unsigned int cpu;
};

/* --- for the functions below ------------------------------------------------ */

u64 base_read_clock(struct base *base);
bool base_program_or_kick(struct base *base, u64 now_ns);
void base_kick(struct base *base);
void base_hold_serving(struct base_hold *hold, unsigned int role,
		       unsigned int cpu);
void base_hold_another(struct base_hold *hold, const struct twheel_node *node);
bool base_serves(const struct base *base, unsigned int cpu);
struct base *base_lock_serving(unsigned int role, unsigned int cpu);

/**
 * hold_now_ns() - the time, on the base's clock
 * @hold: a hold of a base.
 *
 * The clock is read at the first call in a hold, because many holds need no time.
 */
static inline u64 hold_now_ns(struct base_hold *hold)
{
	if (!hold->now_ns)
		hold->now_ns = base_read_clock(hold->base);
	return hold->now_ns;
}

#ifdef CONFIG_DEBUG_SPINLOCK
static inline void hold_note_begin(struct base_hold *hold)
{
	hold->began_ns = ktime_get_mono_fast_ns();
}

static inline void hold_note_length(struct base_hold *hold)
{
	struct base *base = hold->base;

	base->longest_hold_ns = max(base->longest_hold_ns,
				    ktime_get_mono_fast_ns() - hold->began_ns);
}
#else
static inline void hold_note_begin(struct base_hold *hold) { }
static inline void hold_note_length(struct base_hold *hold) { }
#endif

/* The lock of @base was taken: the hold begins. */
static inline void hold_begin(struct base_hold *hold, struct base *base)
{
	hold->base = base;
	hold->now_ns = 0;
	hold->touched = 0;
	hold->program = false;
	hold->serves = false;
	hold_note_begin(hold);
}

/* Interrupts are off.  sparse: the hold owns the lock until hold_leave(). */
static inline void hold_enter(struct base_hold *hold, struct base *base)
{
	raw_spin_lock(&base->lock);
	__release(&base->lock);
	hold_begin(hold, base);
}

/* Hold the base that serves @cpu.  Interrupts are off. */
static inline void hold_enter_cpu(struct base_hold *hold, unsigned int role,
				  unsigned int cpu)
{
	hold_begin(hold, base_lock_serving(role, cpu));
	hold->serves = true;
	hold->cpu = cpu;
}

static inline void hold_leave(struct base_hold *hold)
{
	struct base *base = hold->base;
	bool kick = unlikely(hold->program) && !base->running &&
		    base_program_or_kick(base, hold_now_ns(hold));

	if (hold->touched > base->most_touched)
		base->most_touched = hold->touched;
	hold_note_length(hold);
	hold->base = NULL;
	hold->serves = false;
	__acquire(&base->lock);
	raw_spin_unlock(&base->lock);
	if (unlikely(kick))
		base_kick(base);
}

/* Set the hrtimer when the hold ends, if @tick is before the tick it is set for. */
static inline void hold_wants(struct base_hold *hold, u64 tick)
{
	if (unlikely(tick < hold->base->programmed_tick))
		hold->program = true;
}

/* --- holds ------------------------------------------------------------------ */

/* Assert that a base is held. */
static inline void base_assert_held(const struct base_hold *hold)
{
	lockdep_assert_held(&hold->base->lock);
}

/*
 * The tick at which the clock was last read: a wheel may be advanced to it.  A clock that
 * can be set back is read now.
 */
static inline u64 hold_tick(struct base_hold *hold)
{
	if (hold->base->clock == BASE_REALTIME)
		hold_now_ns(hold);
	return hold->base->read_tick;
}

/**
 * base_release() - end a hold
 * @hold: a hold, of a base or of none.
 *
 * Sets the hrtimer if a node was armed for an earlier tick.
 */
static inline void base_release(struct base_hold *hold)
{
	if (!hold->base)
		return;
	hold_leave(hold);
	local_irq_restore(hold->flags);
}

/**
 * base_hold_cpu() - hold the base that nodes are armed on
 * @hold: a hold, of a base or of none.
 * @role: the role of the base: base_role().
 * @cpu: the CPU that their owner names, or BASE_ANY_CPU.
 *
 * Context: any but NMI.  Interrupts are off until base_release().
 */
static inline void base_hold_cpu(struct base_hold *hold, unsigned int role,
				 unsigned int cpu)
{
	if (hold->serves && hold->cpu == cpu && hold->base->role == role &&
	    hold->touched < BASE_BATCH)
		hold->touched++;
	else
		base_hold_serving(hold, role, cpu);
}

/* Hold the base that a node names, if it is still the same then.  None is held. */
static __always_inline bool hold_enter_node(struct base_hold *hold,
					    const struct twheel_node *node)
{
	unsigned int number = READ_ONCE(node->base);
	struct base *base;

	if (unlikely(number == BASE_MIGRATING))
		return false;
	local_irq_save(hold->flags);
	base = base_of_number(number);
	hold_enter(hold, base);
	hold->touched = 1;
	if (likely(READ_ONCE(node->base) == base->number))
		return true;
	base_release(hold);
	return false;
}

/**
 * base_hold_first() - hold the base that a node is on, or was last
 * @hold: a hold of none.
 * @node: the node.
 *
 * Context: any but NMI.  Interrupts are off until base_release().
 */
static inline void base_hold_first(struct base_hold *hold,
				   const struct twheel_node *node)
{
	while (!hold_enter_node(hold, node))
		cpu_relax();
}

/**
 * base_hold_node() - hold the base that a node is on, or was last
 * @hold: a hold, of a base or of none.
 * @node: the node.
 *
 * Context: any but NMI.  Interrupts are off until base_release().
 */
static __always_inline void base_hold_node(struct base_hold *hold,
					   const struct twheel_node *node)
{
	/* While a base is held, no node that names it changes to another base. */
	if (!hold->base) {
		if (hold_enter_node(hold, node))
			return;
	} else if (READ_ONCE(node->base) == hold->base->number &&
		   hold->touched < BASE_BATCH) {
		hold->touched++;
		return;
	}
	base_hold_another(hold, node);
}

/**
 * base_move_here() - let a node be armed on the CPU that we are on
 * @hold: a hold of the base of @node; then of the base that serves this CPU.
 * @node: a node that is on no wheel.
 */
static inline void base_move_here(struct base_hold *hold, struct twheel_node *node)
{
	const struct base *base = hold->base;

	if (likely(!twheel_may_be_isolated() && base->cpu == smp_processor_id() &&
		   base->online))
		return;
	if (base_serves(base, BASE_ANY_CPU))
		return;
	WRITE_ONCE(node->base, BASE_MIGRATING);
	hold_leave(hold);
	hold_begin(hold, base_lock_serving(base->role, BASE_ANY_CPU));
	hold->touched = 1;
	WRITE_ONCE(node->base, hold->base->number);
}

/* --- nodes ------------------------------------------------------------------ */

/**
 * base_due_tick() - the tick at which a node comes out
 * @due_ns: when it is due, on the base's clock; 2^63 and more is never.
 * @slack_ns: how much later than @due_ns it may come out.
 */
static inline u64 base_due_tick(u64 due_ns, u64 slack_ns)
{
	u64 last_ns;

	if (unlikely(due_ns >= BASE_NEVER_NS))
		return base_tick_at(BASE_NEVER_NS);
	if (!slack_ns)
		return base_tick_after(due_ns);
	if (check_add_overflow(due_ns, slack_ns, &last_ns))
		last_ns = S64_MAX;
	return wheel_roundest(base_tick_after(due_ns),
			      base_tick_at(min_t(u64, last_ns, S64_MAX)));
}

/**
 * base_sees_to() - can a node be armed for a tick without reading the clock?
 * @hold: a hold of a base.
 * @tick: the tick, on the base's clock.
 *
 * Return: true if the tick was in the future when the clock was last read, and the
 * hrtimer is set for it or for an earlier tick, or a kick that sets it is in flight, or
 * @rest is scheduled.  The next run takes the node out.  False during a run, which would
 * also handle nodes that have become due meanwhile.
 */
static inline bool base_sees_to(const struct base_hold *hold, u64 tick)
{
	const struct base *base = hold->base;

	base_assert_held(hold);
	return likely(tick >= base->programmed_tick && tick > base->read_tick &&
		      !base->running && base->clock != BASE_REALTIME);
}

/**
 * base_arm() - put a node on the wheel of the base that is held
 * @hold: a hold of a base.
 * @node: a node that is on no wheel.
 * @due_tick: the tick at which it comes out: base_due_tick().
 * @due_ns: for the trace: when it is due.
 */
static __always_inline void base_arm(struct base_hold *hold, struct twheel_node *node,
				     u64 due_tick, u64 due_ns)
{
	struct base *base = hold->base;

	base_assert_held(hold);
	WRITE_ONCE(node->base, base->number);
	hold_wants(hold, wheels_add(&base->wheels, &node->wheel, due_tick,
				    hold_tick(hold)));
	trace_twheel_arm(base, node, due_ns, base_tick_ns(due_tick));
}

/**
 * base_disarm() - take a node off its wheel before its time
 * @hold: a hold of the base of @node.
 * @node: a node that is on a wheel, or has just come out of it.
 */
static inline void base_disarm(struct base_hold *hold, struct twheel_node *node)
{
	base_assert_held(hold);
	wheels_del(&hold->base->wheels, &node->wheel);
	trace_twheel_cancel(hold->base, node);
}

/**
 * base_complete() - take a node off its wheel because a signal completed it
 * @hold: a hold of the base of @node.
 * @node: a node that is on a wheel.
 * @key: for the trace: the key of the signal that completed it.
 * @value: for the trace: the value.
 */
static inline void base_complete(struct base_hold *hold, struct twheel_node *node,
				 u64 key, u64 value)
{
	base_assert_held(hold);
	wheels_del(&hold->base->wheels, &node->wheel);
	trace_twheel_complete(hold->base, node, key, value);
}

#endif /* TWHEEL_BASE_HOLD_H */
