/* SPDX-License-Identifier: GPL-2.0 */
/* Exceptions of RocksDB that nobody catches. */
#ifndef QUEUE_STORE_TERMINATE_H
#define QUEUE_STORE_TERMINATE_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * RocksDB throws where there is no memory, or no thread can be started. From now on, an exception
 * in any thread ends the process with @status, after a message to @log; else it would be SIGABRT,
 * like that of an assertion.
 */
void store_end_by_exceptions(void (*log)(int priority, const char *format, ...), int status);

#ifdef __cplusplus
}
#endif

#endif /* QUEUE_STORE_TERMINATE_H */
