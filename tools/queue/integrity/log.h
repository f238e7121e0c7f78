/* SPDX-License-Identifier: GPL-2.0 */
/* A check of RocksDB's logs before RocksDB opens them. */
#ifndef QUEUE_INTEGRITY_LOG_H
#define QUEUE_INTEGRITY_LOG_H

#include "queue/store/config.h"

/*
 * Check the logs. Returns 0; -EBADMSG, there is damage, which is logged; or another negative
 * errno. A torn end is logged, and cut off if @cut_torn.
 */
int store_log_check(struct store *store, bool cut_torn);

#endif /* QUEUE_INTEGRITY_LOG_H */
