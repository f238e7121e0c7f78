/* SPDX-License-Identifier: GPL-2.0 */
/* Between base.c and base_run.c. */
#ifndef TWHEEL_BASE_RUN_H
#define TWHEEL_BASE_RUN_H

#include "base.h"

u64 base_next_work(const struct base *base, u64 now_ns);
void base_start_resume(struct base *base);

void base_run_init(struct base *base);
void base_run_stop(struct base *base);

#endif /* TWHEEL_BASE_RUN_H */
