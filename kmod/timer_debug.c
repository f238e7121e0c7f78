// SPDX-License-Identifier: GPL-2.0
/*
 * What debugobjects is told of timers: timer_debug.h.
 */
#include "timer_debug.h"

#ifdef CONFIG_DEBUG_OBJECTS_TIMERS
static void *timer_function(void *timer)
{
	return ((struct twheel_timer *)timer)->function;
}

const struct debug_obj_descr twheel_timer_debug = {
	.name = "twheel_timer",
	.debug_hint = timer_function,
};
#endif
