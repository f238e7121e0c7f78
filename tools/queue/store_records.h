/* SPDX-License-Identifier: GPL-2.0 */
/* Files of records, as RocksDB writes its logs and its list of tables: see store_records.c. */
#ifndef TWHEELQ_STORE_RECORDS_H
#define TWHEELQ_STORE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_NO_RECORD		SIZE_MAX

/* What comes before the bytes of a piece. */
#define STORE_RECORD_HEADER	7

enum store_piece {
	STORE_PIECE_WHOLE = 1,
	STORE_PIECE_FIRST,
	STORE_PIECE_MIDDLE,
	STORE_PIECE_LAST
};

/**
 * struct store_records - a file
 * @bytes: what it has.
 * @len: how much that is.
 */
struct store_records {
	uint8_t *bytes;
	size_t len;
};

/**
 * struct store_record_head - the first bytes of a record
 * @bytes: these.
 * @len: how many: fewer than there is room for if it has no more.
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

/* Does a block begin at @at? */
bool store_records_starts_block(size_t at);

/* Is there an intact piece at @at, which is within the file? */
bool store_records_is_intact(const struct store_records *file, size_t at);

/* Where the next piece is, if one ended at @at. */
size_t store_records_skip_rest(size_t at);

/* Returns where the record that begins at @at ends, or STORE_NO_RECORD if it is not intact. */
size_t store_records_read(const struct store_records *file, size_t at,
			  struct store_record_head *head);

#endif /* TWHEELQ_STORE_RECORDS_H */
