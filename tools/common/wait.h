/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiting, and the clock that a program waits by: CLOCK_MONOTONIC, unless it chooses
 * another one.
 *
 * A program that reads the time and waits only by these functions can be tested with a
 * clock of the test's own: the test is linked with other functions of these names.
 */
#ifndef COMMON_WAIT_H
#define COMMON_WAIT_H

#include <poll.h>
#include <stdint.h>
#include <time.h>

/* Choose the clock. */
void wait_choose_clock(clockid_t clock);

/* The time of that clock, in ns. */
uint64_t wait_now_ns(void);

/* The time of a clock that cannot be set, to measure how long something takes. */
uint64_t wait_steady_ns(void);

/*
 * Wait until one of the files has an event that poll() is to wait for, or until the clock
 * says @until_ns, which may be TIME_NEVER_NS. Returns how many files have one: 0 also after
 * a signal, and from time to time if the clock can be set; or a negative errno.
 */
int wait_until(struct pollfd *files, nfds_t nr, uint64_t until_ns);

#endif /* COMMON_WAIT_H */
