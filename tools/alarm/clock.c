// SPDX-License-Identifier: GPL-2.0
/* The clock of delays. */
#include "alarm/alarm.h"
#include "alarm/clock.h"
#include "common/time.h"

/* Two readings of a clock that are farther apart are not from the same moment. */
#define SAME_MOMENT_NS	(NSEC_PER_MSEC / 10)

/* The wall clock's time at boot, by readings of both clocks at the same moment. */
static uint64_t boot_wall_ns(void)
{
	uint64_t before_ns, wall_ns, after_ns;

	do {
		before_ns = alarms_now_ns(ALARM_BOOT);
		wall_ns = alarms_now_ns(ALARM_WALL);
		after_ns = alarms_now_ns(ALARM_BOOT);
	} while (after_ns - before_ns > SAME_MOMENT_NS);
	return wall_ns - after_ns;
}

void clock_start(struct clock *clock, uint64_t skew_ns)
{
	clock->base_ns = boot_wall_ns() - skew_ns;
}

uint64_t clock_behind_ns(uint64_t skew_ns, uint64_t last_ns)
{
	uint64_t behind_ns = last_ns - (alarms_now_ns(ALARM_WALL) - skew_ns);

	return (int64_t)behind_ns < 0 ? 0 : behind_ns;
}

void clock_go_on(struct clock *clock, uint64_t last_ns)
{
	clock->base_ns = last_ns - alarms_now_ns(ALARM_BOOT);
}

uint64_t clock_now_ns(const struct clock *clock)
{
	return alarms_now_ns(ALARM_BOOT) + clock->base_ns;
}

uint64_t clock_to_boot_ns(const struct clock *clock, uint64_t time_ns)
{
	uint64_t boot_ns = time_ns - clock->base_ns;

	/* The difference wraps, as base_ns does if the wall clock is before 1970 + skew. */
	return (int64_t)boot_ns < 0 ? 0 : boot_ns;
}

uint64_t clock_skew_ns(const struct clock *clock)
{
	return boot_wall_ns() - clock->base_ns;
}
