/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CPUs: the bases of each of them are made when they are needed, follow the CPUs that
 * come and go, and are freed at the end.
 */
#ifndef TWHEEL_CPU_H
#define TWHEEL_CPU_H

#include "base.h"

unsigned int bases_offline_count(unsigned int cpu);

int bases_use(enum base_kind kind, enum base_clock clock);
int bases_init(const struct base_ops *ops, void (*made)(struct base *base));
void bases_ignore_changes(void);
void bases_exit(void);

#endif /* TWHEEL_CPU_H */
