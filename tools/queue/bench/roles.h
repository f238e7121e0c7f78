/* SPDX-License-Identifier: GPL-2.0 */
/* The roles of clients: to put, to work, to do both, to wait for delayed jobs, to ask. */
#ifndef QUEUE_BENCH_ROLES_H
#define QUEUE_BENCH_ROLES_H

#include "queue/bench/load.h"

extern const struct role role_put;
extern const struct role role_work;
extern const struct role role_mixed;
extern const struct role role_wait;
extern const struct role role_ask;

/* Is the time for new jobs over? */
bool time_is_over(const struct load *load);

/* When the next put or question of a timed load is due; UINT64_MAX: there is none. */
uint64_t next_put_ns(const struct load *load);

#endif /* QUEUE_BENCH_ROLES_H */
