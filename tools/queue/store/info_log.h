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
 * *@ignored, if not NULL, becomes the store_errno() of a file that rocksdb_repair_db() left out,
 * which that does not return, if it is no damage.
 */
void info_log_set(rocksdb_options_t *options, void (*log)(int priority, const char *format, ...),
		  int *ignored);

#ifdef __cplusplus
}
#endif

#endif /* QUEUE_STORE_INFO_LOG_H */
