/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel's own debugging is told of timers: lockdep and debugobjects.
 *
 * Of a kernel without them, nothing of this is left.
 */
#ifndef TWHEEL_TIMER_DEBUG_H
#define TWHEEL_TIMER_DEBUG_H

#include <linux/debugobjects.h>
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/sched/task_stack.h>

#include "twheel.h"

#ifdef CONFIG_DEBUG_OBJECTS_TIMERS
extern const struct debug_obj_descr twheel_timer_debug;

/* A timer is set up, and not armed. */
static inline void timer_debug_init(struct twheel_timer *timer)
{
	if (object_is_on_stack(timer))
		debug_object_init_on_stack(timer, &twheel_timer_debug);
	else
		debug_object_init(timer, &twheel_timer_debug);
}

static inline void timer_debug_activate(struct twheel_timer *timer)
{
	debug_object_activate(timer, &twheel_timer_debug);
}

static inline void timer_debug_deactivate(struct twheel_timer *timer)
{
	debug_object_deactivate(timer, &twheel_timer_debug);
}

/* A timer that was shut down: its memory is for other use. */
static inline void timer_debug_free(struct twheel_timer *timer)
{
	debug_object_free(timer, &twheel_timer_debug);
}
#else
static inline void timer_debug_init(struct twheel_timer *timer) { }
static inline void timer_debug_activate(struct twheel_timer *timer) { }
static inline void timer_debug_deactivate(struct twheel_timer *timer) { }
static inline void timer_debug_free(struct twheel_timer *timer) { }
#endif

#ifdef CONFIG_LOCKDEP
/*
 * Call a timer's function as if it held a lock of the timer's own.  The timer may be
 * gone when it returns, so lockdep gets a copy.
 */
static inline void timer_debug_call(struct twheel_timer *timer)
{
	struct lockdep_map map;

	lockdep_copy_map(&map, &timer->lockdep_map);
	lock_map_acquire(&map);
	timer->function(timer);
	lock_map_release(&map);
}

/* Wait for a timer's function as if for that lock, whether it runs or not. */
static inline void timer_debug_wait(struct twheel_timer *timer)
{
	unsigned long flags;

	local_irq_save(flags);
	lock_map_acquire(&timer->lockdep_map);
	lock_map_release(&timer->lockdep_map);
	local_irq_restore(flags);
}
#else
static inline void timer_debug_call(struct twheel_timer *timer)
{
	timer->function(timer);
}

static inline void timer_debug_wait(struct twheel_timer *timer) { }
#endif

#endif /* TWHEEL_TIMER_DEBUG_H */
