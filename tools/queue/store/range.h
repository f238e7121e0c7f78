/* SPDX-License-Identifier: GPL-2.0 */
/* A range of keys, and the iterator that walks it. */
#ifndef QUEUE_STORE_RANGE_H
#define QUEUE_STORE_RANGE_H

#include <rocksdb/c.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/store/keys.h"

struct store;

/**
 * struct store_range - the keys from @begin up to, but without, @end
 * @begin: the first key. The iterator uses both until it is destroyed.
 * @begin_len: its bytes.
 * @end: the first key behind them.
 * @end_len: its bytes.
 * @last: the last key that was read, for walks that go on past damage.
 * @last_len: its bytes.
 * @prefix_len: so many first bytes are the same in all keys.
 * @options: of the iterator's reads.
 * @iterator: at an entry of the range, or at none.
 */
struct store_range {
	uint8_t begin[STORE_KEY_MAX];
	size_t begin_len;
	uint8_t end[STORE_KEY_MAX];
	size_t end_len;
	uint8_t last[STORE_KEY_MAX];
	size_t last_len;
	size_t prefix_len;
	rocksdb_readoptions_t *options;
	rocksdb_iterator_t *iterator;
};

/* The end is the first key after all keys with this prefix: the prefix plus one. */
void store_range_end(struct store_range *range, const uint8_t *prefix, size_t len);

/* Make the iterator. @options are the range's from now on. */
void store_range_open(struct store *store, struct store_range *range,
		      rocksdb_readoptions_t *options);

/* Destroy the iterator. Returns the error that it met, which the caller frees, or NULL. */
char *store_range_stop(struct store_range *range);

/*
 * For the queue's thread: returns @ret, or the error that the iterator met: @what is damaged, or
 * cannot be read, see store_unread().
 */
int store_range_close(struct store *store, struct store_range *range, const char *what, int ret);

#endif
