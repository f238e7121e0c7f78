/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the library calls in the C library, done by the test first: so that signals come
 * and memory ends just where the test wants it.
 */
#ifndef LIB_TEST_INTERCEPT_H
#define LIB_TEST_INTERCEPT_H

#include <stdbool.h>

/* The next so many ioctls of the device are interrupted before they have done anything. */
void interrupt_next(unsigned int nr);

/* The next SUBMIT or ENTER does so many commands only, as if a signal had come then. */
void cut_next(unsigned int nr);

/*
 * From now on, of calls that submit, one in @one_in is interrupted, and one in as many cut
 * somewhere, by chance; 0: none.
 */
void interrupt_by_chance(unsigned int one_in);

/* How many were interrupted or cut by now. */
unsigned long nr_interrupted(void);

/* Arrays do not grow. */
void lack_memory(bool lack);

#endif /* LIB_TEST_INTERCEPT_H */
