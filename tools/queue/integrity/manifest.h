/* SPDX-License-Identifier: GPL-2.0 */
/* RocksDB's list of files, MANIFEST. */
#ifndef QUEUE_INTEGRITY_MANIFEST_H
#define QUEUE_INTEGRITY_MANIFEST_H

#include <stdint.h>

/*
 * Returns the number of the first log that is still needed in the directory of RocksDB's
 * files, or 0 if it is unknown.
 */
uint64_t store_manifest_first_log(int dir_fd);

#endif /* QUEUE_INTEGRITY_MANIFEST_H */
