/* SPDX-License-Identifier: GPL-2.0 */
/* RocksDB's own log. */
#ifndef QUEUE_STORE_INFO_LOG_H
#define QUEUE_STORE_INFO_LOG_H

#include <stdbool.h>

#include <rocksdb/c.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Let RocksDB hand its errors to @log, in any of its threads, and write no log of its own.
 * Its log would lie beside the data, and when the disk is full, Debian's RocksDB, which has
 * assertions, ends the process because that log cannot be written.
 *
 * *@lacks_space, if not NULL, becomes true if rocksdb_repair_db() left out a log because there was
 * no space for its table, which that does not return.
 */
void info_log_set(rocksdb_options_t *options, void (*log)(int priority, const char *format, ...),
		  bool *lacks_space);

#ifdef __cplusplus
}
#endif

#endif /* QUEUE_STORE_INFO_LOG_H */
