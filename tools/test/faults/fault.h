/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults that the kernel injects into one thread: each allocation of memory and each copy from
 * or to user memory fails in turn, alone or with all that follow.
 *
 * The kernel's fail-nth says which one fails: of slab memory, of pages, of copies by
 * copy_from_user() and its like. What copies without these, by unsafe_get_user(), fails where
 * the page has to be brought in first, as pages.h sees to. A second thread sets it up and reads
 * it back, because the thread itself would meet its own faults.
 */
#ifndef FAULTS_FAULT_H
#define FAULTS_FAULT_H

#include <stdbool.h>

/* The most faults that a call is given before it is said never to succeed. */
#define FAULTS_MAX	5000

/*
 * Set the kernel's knobs; the test is skipped where it has none. From then on the faults are those
 * of this thread.
 */
void faults_open(void);

/* Of all that could fail in a thread with make-it-fail, let so many in a hundred fail. */
void faults_set_probability(const char *percent);

/*
 * From now on let the @nth allocation or copy of this thread fail, counting from 1; with @all,
 * also those after it.
 */
void faults_begin(unsigned int nth, bool all);

/* Let no more fail; returns whether one did. */
bool faults_end(void);

/*
 * The same for another thread of the machine, one of the kernel for instance, and without
 * @all's limit to this one.
 */
void faults_begin_of(int tid, unsigned int nth, bool all);
bool faults_end_of(int tid);

#endif /* FAULTS_FAULT_H */
