// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32C (Castagnoli), eight bytes at a time: table[n][b] is the effect of the byte b on the
 * checksum when n more bytes have followed it.
 */
#include <pthread.h>
#include <string.h>
#include <endian.h>

#include "queue/integrity/crc32c.h"

#define POLYNOMIAL 0x82f63b78u

static uint32_t table[8][256];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static uint32_t of_byte(uint32_t crc)
{
	int bit;

	for (bit = 0; bit < 8; bit++)
		crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
	return crc;
}

static void make_table(void)
{
	uint32_t byte;
	int n;

	for (byte = 0; byte < 256; byte++) {
		table[0][byte] = of_byte(byte);
		for (n = 1; n < 8; n++)
			table[n][byte] = of_byte(table[n - 1][byte]);
	}
}

static uint32_t eight_bytes(uint64_t word)
{
	uint32_t crc = 0;
	int n;

	for (n = 0; n < 8; n++)
		crc ^= table[7 - n][word >> 8 * n & 0xff];
	return crc;
}

uint32_t crc32c(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint32_t crc = ~0u;
	uint64_t word;

	pthread_once(&made, make_table);
	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		crc = eight_bytes(le64toh(word) ^ crc);
	}
	while (len--)
		crc = crc >> 8 ^ table[0][(crc ^ *at++) & 0xff];
	return ~crc;
}
