/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writing and reading the keys and values of the store: numbers are big-endian, so that keys
 * sort as the numbers do. Each function returns, or moves @at to, the byte behind.
 */
#ifndef QUEUE_STORE_BYTES_H
#define QUEUE_STORE_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t *add_u32(uint8_t *at, uint32_t number)
{
	number = htobe32(number);
	memcpy(at, &number, sizeof(number));
	return at + sizeof(number);
}

static inline uint8_t *add_u64(uint8_t *at, uint64_t number)
{
	number = htobe64(number);
	memcpy(at, &number, sizeof(number));
	return at + sizeof(number);
}

static inline uint8_t *add_bytes(uint8_t *at, const void *bytes, size_t len)
{
	if (len)
		memcpy(at, bytes, len);
	return at + len;
}

static inline uint32_t get_u32(const uint8_t **at)
{
	uint32_t number;

	memcpy(&number, *at, sizeof(number));
	*at += sizeof(number);
	return be32toh(number);
}

static inline uint64_t get_u64(const uint8_t **at)
{
	uint64_t number;

	memcpy(&number, *at, sizeof(number));
	*at += sizeof(number);
	return be64toh(number);
}

static inline void get_bytes(const uint8_t **at, void *bytes, size_t len)
{
	if (len)
		memcpy(bytes, *at, len);
	*at += len;
}

#endif /* QUEUE_STORE_BYTES_H */
