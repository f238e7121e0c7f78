/* SPDX-License-Identifier: GPL-2.0 */
/* Headers in a damaged log on which RocksDB loops for ever: see recycled.c. */
#ifndef QUEUE_INTEGRITY_RECYCLED_H
#define QUEUE_INTEGRITY_RECYCLED_H

#include "queue/store/config.h"

/*
 * Clear these headers in all logs, before RocksDB skips damaged records. A changed log is kept
 * as it was, with ".damaged" after its name. Returns 0 or a negative errno.
 */
int store_clear_recycled(struct store *store);

#endif /* QUEUE_INTEGRITY_RECYCLED_H */
