/* SPDX-License-Identifier: GPL-2.0 */
/* The calls of programs: made, and their results judged. */
#ifndef FUZZING_CALLS_H
#define FUZZING_CALLS_H

#include "memory.h"
#include "program.h"

void calls_start(unsigned int worker);
unsigned int calls_run(const struct program *program);
void calls_print(FILE *file);
bool calls_still_work(void);

#endif /* FUZZING_CALLS_H */
