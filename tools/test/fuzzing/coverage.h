/* SPDX-License-Identifier: GPL-2.0 */
/* Which places in the module the calls of this thread reach: kcov. */
#ifndef FUZZING_COVERAGE_H
#define FUZZING_COVERAGE_H

#include <stdbool.h>

bool coverage_find_module(void);
bool coverage_exists(void);
void coverage_open(void);
void coverage_begin(void);
unsigned int coverage_end(void);

#endif /* FUZZING_COVERAGE_H */
