/* SPDX-License-Identifier: GPL-2.0 */
/* Checksums of all blocks of RocksDB's tables. */
#ifndef QUEUE_STORE_VERIFY_H
#define QUEUE_STORE_VERIFY_H

#include <rocksdb/c.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Read all blocks of all tables, also filters and indexes, which a walk does not read. Returns
 * NULL, or the error, for rocksdb_free().
 */
char *verify_tables(rocksdb_t *db);

#ifdef __cplusplus
}
#endif

#endif /* QUEUE_STORE_VERIFY_H */
