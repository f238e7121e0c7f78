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

/* Modes of reading the log; RocksDB's header for C does not name them. */
#define TOLERATE_TORN_TAIL	0
#define SKIP_CORRUPT		3


/* Set the options of @store from its configuration and its reserve. */
void store_set_options(struct store *store);

/* Options for all reads; the caller destroys them. */
rocksdb_readoptions_t *store_make_read_options(void);

#endif /* QUEUE_STORE_ROCKSDB_H */
