/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock of delays.
 *
 * While the daemon runs it advances as CLOCK_BOOTTIME does, so that setting the wall clock
 * does not change a delay; while the daemon does not run, it advances as the wall clock does.
 * It is the wall clock's time less the skew, which is how far the wall clock was set since
 * the store was created. The store keeps the skew.
 */
#ifndef ALARM_CLOCK_H
#define ALARM_CLOCK_H

#include <stdint.h>

struct clock {
	uint64_t base_ns;	/* its time when the machine was booted */
};

/* Start it; @skew_ns is what clock_skew_ns() was, or 0 in a new store. */
void clock_start(struct clock *clock, uint64_t skew_ns);

/* By how much it would be behind @last_ns, a time that it has had, if it were started now. */
uint64_t clock_behind_ns(uint64_t skew_ns, uint64_t last_ns);

/* Start it at @last_ns. */
void clock_go_on(struct clock *clock, uint64_t last_ns);

uint64_t clock_now_ns(const struct clock *clock);

/* A time of this clock as one of ALARM_BOOT, for alarms; 0 if it was before the boot. */
uint64_t clock_to_boot_ns(const struct clock *clock, uint64_t time_ns);

/* How far the wall clock is ahead of this one, modulo 2^64. */
uint64_t clock_skew_ns(const struct clock *clock);

#endif /* ALARM_CLOCK_H */
