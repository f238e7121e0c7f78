/* SPDX-License-Identifier: GPL-2.0 */
/* Files of records, the format of RocksDB's logs and of its list of files: see records.c. */
#ifndef QUEUE_INTEGRITY_RECORDS_H
#define QUEUE_INTEGRITY_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_NO_RECORD		SIZE_MAX

/* Length of the header of a piece. */
#define STORE_RECORD_HEADER	7

enum store_piece {
	STORE_PIECE_WHOLE = 1,
	STORE_PIECE_FIRST,
	STORE_PIECE_MIDDLE,
	STORE_PIECE_LAST
};

/**
 * struct store_records - a file of records
 * @bytes: contents of the file.
 * @len: length of the file.
 */
struct store_records {
	uint8_t *bytes;
	size_t len;
};

/**
 * struct store_record_head - the first bytes of a record
 * @bytes: the bytes.
 * @len: their number; less than the size of @bytes if the record is shorter.
 */
struct store_record_head {
	uint8_t bytes[256];
	size_t len;
};

/* Read a file of a directory. Returns 0 or a negative errno. */
int store_records_open(struct store_records *file, int dir_fd, const char *name);
void store_records_close(struct store_records *file);

static inline uint16_t store_records_piece_len(const uint8_t *piece)
{
	return (uint16_t)(piece[4] | piece[5] << 8);
}

/* Returns whether a block starts at @at. */
bool store_records_starts_block(size_t at);

/* Returns where the block after that of @at starts. */
size_t store_records_next_block(size_t at);

/* Returns whether there is an intact piece at @at, a position within the file. */
bool store_records_is_intact(const struct store_records *file, size_t at);

/* Returns the position of the next piece after one that ends at @at. */
size_t store_records_skip_rest(size_t at);

/* Returns the end of the record that starts at @at, or STORE_NO_RECORD if it is not intact. */
size_t store_records_read(const struct store_records *file, size_t at,
			  struct store_record_head *head);

#endif /* QUEUE_INTEGRITY_RECORDS_H */
