/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fake of alarm.h whose clocks the test sets. A program that is linked with it has it in
 * place of the alarms.
 */
#ifndef ALARM_TEST_FAKE_ALARM_H
#define ALARM_TEST_FAKE_ALARM_H

#include <stddef.h>

#include "alarm/alarm.h"
#include "common/time.h"

/* The clocks at first: the year 2026, on a machine that was not booted just now. */
#define FAKE_BOOT_NS	(5000 * NSEC_PER_SEC)
#define FAKE_WALL_NS	(1790000000 * NSEC_PER_SEC)

/* Places in the heap are from 1; &struct alarm.node.place has that of an alarm. */
struct fake_heap {
	struct fake_entry *entries;
	size_t nr;
	size_t room;
};

/**
 * struct fake_alarms - the alarms
 * @now_ns: the clocks; a test sets them.
 * @heaps: the armed alarms of each clock, by time and then by the order of arming.
 * @serial: how many alarms were armed so far.
 * @nr_sets: as alarms_clock_was_set().
 * @turn: which clock is the first in alarms_take().
 * @fd: alarms_fd(), which is always readable.
 */
struct fake_alarms {
	uint64_t now_ns[ALARM_CLOCKS];
	struct fake_heap heaps[ALARM_CLOCKS];
	uint64_t serial;
	unsigned int nr_sets;
	unsigned int turn;
	int fd;
};

extern struct fake_alarms fake;

/* Let time go on, by both clocks. */
void fake_advance(uint64_t ns);

/* Set the wall clock. */
void fake_set_wall(int64_t by_ns);

#endif /* ALARM_TEST_FAKE_ALARM_H */
