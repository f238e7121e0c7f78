/* SPDX-License-Identifier: GPL-2.0 */
/* The options of RocksDB. */
#ifndef QUEUE_STORE_ROCKSDB_H
#define QUEUE_STORE_ROCKSDB_H

#include <rocksdb/c.h>
#include "queue/store/config.h"

/* The number of tables in level 0 that starts a compaction. */
#define STORE_TABLES_COMPACT	12
/* From this number on, work that can wait does so; a third more slow all writes down. */
#define STORE_TABLES_BEHIND	18

/* Set the options of @store from its configuration and its reserve. */
void store_set_options(struct store *store);

/* A copy of the options that skips damaged records of the logs; the caller destroys it. */
rocksdb_options_t *store_make_salvage_options(const struct store *store);

/* Options for all reads; the caller destroys them. */
rocksdb_readoptions_t *store_make_read_options(void);

#endif /* QUEUE_STORE_ROCKSDB_H */
