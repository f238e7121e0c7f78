/* SPDX-License-Identifier: GPL-2.0 */
/* What a test writes to stderr: the log, and messages of argp. */
#ifndef RELAY_TEST_CAUGHT_LIB_H
#define RELAY_TEST_CAUGHT_LIB_H

#include <stdbool.h>

/* From now on, stderr is caught instead of shown; what was caught before is forgotten. */
void catch_stderr(void);

/* Show stderr again. Returns what was caught, which stays until the next catch_stderr(). */
const char *caught(void);

/* Does what was caught until now contain these words? It goes on to be caught. */
bool has_said(const char *words);

/* In how many places does it contain them? */
unsigned int times_said(const char *words);

#endif /* RELAY_TEST_CAUGHT_LIB_H */
