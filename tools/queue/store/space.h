/* SPDX-License-Identifier: GPL-2.0 */
/* Space on the disk: the reserve and its ballast. */
#ifndef QUEUE_STORE_SPACE_H
#define QUEUE_STORE_SPACE_H

#include "queue/store/config.h"

/*
 * Returns whether there is room for new jobs. If not, the caller refuses puts; all other
 * changes go on and use the reserve. The file system is checked at intervals, not each time.
 */
bool store_has_room(struct store *store);
/* The same for a job of so many bytes, which go to the log and then to a table. */
bool store_has_room_for(struct store *store, uint64_t bytes);

/* --- for store/ and integrity/ --- */

int store_space_open(struct store *store);
/* On a full disk, release what opening for writing needs. */
void store_space_for_opening(struct store *store);
/* The same for files of so many bytes, and some small ones. */
void store_space_for_files(struct store *store, uint64_t bytes);
/* RocksDB could not be opened for lack of space: release more. False: there is no more. */
bool store_space_open_again(struct store *store);
/* The same for a copy of the store, by a repair. An eighth is kept, for opening after that. */
bool store_space_copy_again(struct store *store);
void store_space_close(struct store *store);
/* Check the free space, and release the ballast or take it back. */
void store_space_check(struct store *store);
/* Before a write to the log's buffer, or of that buffer to disk: wait for space if need be. */
void store_space_add(struct store *store, size_t bytes);
void store_space_write_out(struct store *store);
/* Instead of the first: after such a write. Instead of the second: false if it would wait. */
void store_space_added(struct store *store, size_t bytes);
bool store_space_try_write_out(struct store *store);
/* Make RocksDB free the space of deleted jobs; at most once a second. It may block. */
void store_space_push(struct store *store);
/* Wait for space after a write failed for lack of it. */
void store_space_retry(struct store *store, unsigned int tries);

#endif /* QUEUE_STORE_SPACE_H */
