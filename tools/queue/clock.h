/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue's clock: that of delays.
 *
 * It goes as CLOCK_BOOTTIME does while the daemon runs, so that nobody who sets the wall
 * clock changes a delay; and it goes on by the wall clock while the daemon does not run. It
 * is the wall clock's time less @skew, which is how far that was set since the store was
 * made, and which the store keeps.
 */
#ifndef TWHEELQ_CLOCK_H
#define TWHEELQ_CLOCK_H

#include "alarm.h"

#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

struct clock {
	uint64_t base_ns;	/* its time when the machine was booted */
};

/* The wall clock's time at boot, from readings that nothing came between. */
static inline uint64_t clock_boot_wall_ns(void)
{
	uint64_t before_ns, wall_ns, after_ns;

	do {
		before_ns = alarms_now_ns(ALARM_BOOT);
		wall_ns = alarms_now_ns(ALARM_WALL);
		after_ns = alarms_now_ns(ALARM_BOOT);
	} while (after_ns - before_ns > NSEC_PER_MSEC / 10);
	return wall_ns - after_ns;
}

/* Begin; @skew_ns is what clock_skew_ns() was, or 0 in a new store. */
static inline void clock_start(struct clock *clock, uint64_t skew_ns)
{
	clock->base_ns = clock_boot_wall_ns() - skew_ns;
}

static inline uint64_t clock_now_ns(const struct clock *clock)
{
	return alarms_now_ns(ALARM_BOOT) + clock->base_ns;
}

/* A time of this clock as one of ALARM_BOOT, for alarms; 0 if that was before the boot. */
static inline uint64_t clock_to_boot_ns(const struct clock *clock, uint64_t time_ns)
{
	uint64_t boot_ns = time_ns - clock->base_ns;

	/* The difference wraps, as base_ns does where the wall clock is before 1970 + skew. */
	return (int64_t)boot_ns < 0 ? 0 : boot_ns;
}

/* How far the wall clock is ahead of this one, modulo 2^64. */
static inline uint64_t clock_skew_ns(const struct clock *clock)
{
	return clock_boot_wall_ns() - clock->base_ns;
}

#endif /* TWHEELQ_CLOCK_H */
