// SPDX-License-Identifier: GPL-2.0
/*
 * Files of records, the format of RocksDB's logs and of its list of files.
 *
 * A file consists of blocks of 32 KiB. A record that does not fit into a block is split into
 * pieces; no piece crosses the end of a block:
 *
 *	crc32c of type and bytes, masked (4) | length (2) | type (1) | bytes
 *	type: 1 whole, 2 first piece, 3 one in the middle, 4 last piece
 *
 * All numbers are little-endian.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/integrity/crc32c.h"
#include "queue/integrity/records.h"

#define BLOCK	32768

/* Read the file: a read error of a mapped file would kill the process. */
static int read_all(struct store_records *file, int fd)
{
	struct stat stat;
	ssize_t n;

	if (fstat(fd, &stat))
		return -errno;
	file->bytes = malloc((size_t)stat.st_size + 1);
	if (!file->bytes)
		return -ENOMEM;
	while ((n = read(fd, file->bytes + file->len, (size_t)stat.st_size - file->len)) > 0)
		file->len += (size_t)n;
	return n < 0 ? -errno : 0;
}

int store_records_open(struct store_records *file, int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int ret;

	if (fd < 0)
		return -errno;
	*file = (struct store_records){ 0 };
	ret = read_all(file, fd);
	close(fd);
	if (ret)
		store_records_close(file);
	return ret;
}

void store_records_close(struct store_records *file)
{
	free(file->bytes);
	*file = (struct store_records){ 0 };
}

bool store_records_starts_block(size_t at)
{
	return at % BLOCK == 0;
}

bool store_records_is_intact(const struct store_records *file, size_t at)
{
	size_t room = BLOCK - at % BLOCK;
	const uint8_t *piece = file->bytes + at;
	uint32_t stored, crc;

	if (room > file->len - at)
		room = file->len - at;
	if (room < STORE_RECORD_HEADER || piece[6] < STORE_PIECE_WHOLE ||
	    piece[6] > STORE_PIECE_LAST ||
	    (size_t)STORE_RECORD_HEADER + store_records_piece_len(piece) > room)
		return false;
	memcpy(&stored, piece, sizeof(stored));
	crc = crc32c(piece + 6, (size_t)store_records_piece_len(piece) + 1);
	crc = (crc >> 15 | crc << 17) + 0xa282ead8;
	return le32toh(stored) == crc;
}

size_t store_records_next_block(size_t at)
{
	return at + BLOCK - at % BLOCK;
}

/* The end of a block that is too short for a header is not used. */
size_t store_records_skip_rest(size_t at)
{
	return BLOCK - at % BLOCK < STORE_RECORD_HEADER ? store_records_next_block(at) : at;
}

static void add_to_head(struct store_record_head *head, const uint8_t *piece)
{
	size_t len = store_records_piece_len(piece);

	if (len > sizeof(head->bytes) - head->len)
		len = sizeof(head->bytes) - head->len;
	memcpy(head->bytes + head->len, piece + STORE_RECORD_HEADER, len);
	head->len += len;
}

size_t store_records_read(const struct store_records *file, size_t at,
			  struct store_record_head *head)
{
	bool first = true;
	uint8_t type;

	head->len = 0;
	do {
		at = store_records_skip_rest(at);
		if (at >= file->len || !store_records_is_intact(file, at))
			return STORE_NO_RECORD;
		type = file->bytes[at + 6];
		if (first != (type == STORE_PIECE_WHOLE || type == STORE_PIECE_FIRST))
			return STORE_NO_RECORD;
		first = false;
		add_to_head(head, file->bytes + at);
		at += STORE_RECORD_HEADER + store_records_piece_len(file->bytes + at);
	} while (type == STORE_PIECE_FIRST || type == STORE_PIECE_MIDDLE);
	return at;
}
