/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What disturbs the machine: processes of their own, which end when the round does. They take CPUs
 * down and up, set the wall clock back and forth, send the machine to sleep, and take the memory of
 * a cgroup.
 */
#ifndef TORMENTOR_DISTURB_H
#define TORMENTOR_DISTURB_H

#include <stdbool.h>
#include <stdint.h>

enum sleep_kind {
	SLEEP_NEVER,
	SLEEP_TEST,	/* as the kernel tests it: all but the hardware sleeps, for a second */
	SLEEP_RTC,	/* until an alarm of the clock; a machine with one CPU */
};

/**
 * struct disturbance - what to do
 * @hotplug: CPUs go and come.
 * @clock: the wall clock is set.
 * @memory: a cgroup is full.
 * @sleep: the machine sleeps.
 * @sleep_s: so many seconds after the last time.
 */
struct disturbance {
	bool hotplug;
	bool clock;
	bool memory;
	enum sleep_kind sleep;
	unsigned int sleep_s;
};

/* Make the cgroup. Returns the file by which a process enters it, or NULL: there is none. */
const char *make_cgroup(void);
/* Halve its memory, down to 128 KB. */
void shrink_cgroup(void);
void remove_cgroup(void);

/* Start the processes that do it. */
void disturb(const struct disturbance *disturbance, uint64_t seed);

#endif /* TORMENTOR_DISTURB_H */
