/* SPDX-License-Identifier: GPL-2.0 */
/* Standard input, output and error of a process. */
#ifndef COMMON_STANDARD_H
#define COMMON_STANDARD_H

/*
 * Open those that are closed, so that no other file gets their numbers: what is printed would go
 * to a socket or into a store. Reading and writing them fails with EBADF as before. And when the
 * program ends with status 0, but what it printed could not be written, the status is EXIT_CANNOT.
 * To be called first in main(). Ends the program with EXIT_CANNOT if /dev/null cannot be opened.
 */
void standard_files_open(void);

/* The same before the end: for programs that print until they are ended. */
void standard_output_check(void);

#endif /* COMMON_STANDARD_H */
