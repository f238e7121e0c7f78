/* SPDX-License-Identifier: GPL-2.0 */
/* Repair of a store: the second step, after salvage. */
#ifndef QUEUE_INTEGRITY_REPAIR_H
#define QUEUE_INTEGRITY_REPAIR_H

#include "queue/store/config.h"

/* Rebuild indexes, keys and counts from the salvaged records. Returns 0 or a negative errno. */
int store_repair_jobs(struct store *store);

#endif /* QUEUE_INTEGRITY_REPAIR_H */
