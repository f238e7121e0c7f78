/* SPDX-License-Identifier: GPL-2.0 */
/* The checksum of RocksDB's logs: CRC-32 of Castagnoli. */
#ifndef TWHEELQ_CRC32C_H
#define TWHEELQ_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t len);

#endif /* TWHEELQ_CRC32C_H */
