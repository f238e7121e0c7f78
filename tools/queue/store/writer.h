/* SPDX-License-Identifier: GPL-2.0 */
/* Batches on their way to RocksDB. */
#ifndef QUEUE_STORE_WRITER_H
#define QUEUE_STORE_WRITER_H

#include <stdbool.h>
#include <stddef.h>

struct store;

/*
 * Does much wait to be written? A caller that can wait with more jobs should, because the
 * next ones will make it wait.
 */
bool store_writer_is_behind(const struct store *store);

/* The bytes of the changes since the last commit. */
size_t store_batch_bytes(const struct store *store);

/* --- for store/ and integrity/ --- */

void store_writer_init(struct store *store);
void store_writer_destroy(struct store *store);
/* Take the batch, which is complete. store_writer_drain() writes it, in any thread. */
void store_writer_take(struct store *store);
/* Write what was taken so far. May wait long: for compactions, or for space on the disk. */
void store_writer_drain(struct store *store);
/* The same, but returns false, with some of it left, where it would wait. */
bool store_writer_try(struct store *store);
/* Is nothing left to be written? */
bool store_writer_is_idle(const struct store *store);

#endif /* QUEUE_STORE_WRITER_H */
