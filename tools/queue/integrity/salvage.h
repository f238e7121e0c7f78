/* SPDX-License-Identifier: GPL-2.0 */
/* Salvage: copy the readable data of a damaged store. The first step of a repair. */
#ifndef QUEUE_INTEGRITY_SALVAGE_H
#define QUEUE_INTEGRITY_SALVAGE_H

#include "queue/store/config.h"

/*
 * Find out whether RocksDB can open a damaged store as a whole. On some damaged headers of its
 * logs RocksDB 7.8 loops for ever when it skips what is damaged: headers that look as if the log
 * was written over an older one. So a child opens the store first, with limits on its time. Call
 * it before RocksDB has threads, which a fork does not copy.
 *
 * Returns 0, or a negative errno if there is no telling now, as there is no process, memory or file
 * for it.
 */
int store_salvage_try(struct store *store);

/* Copy the readable data, and replace db/ by the copy. Returns 0 or a negative errno. */
int store_salvage(struct store *store);

#endif /* QUEUE_INTEGRITY_SALVAGE_H */
