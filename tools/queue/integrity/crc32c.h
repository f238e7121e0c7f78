/* SPDX-License-Identifier: GPL-2.0 */
/* The checksum of RocksDB's logs: CRC-32C (Castagnoli). */
#ifndef QUEUE_INTEGRITY_CRC32C_H
#define QUEUE_INTEGRITY_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t len);

#endif /* QUEUE_INTEGRITY_CRC32C_H */
