/* SPDX-License-Identifier: GPL-2.0 */
/* Opening a store in pieces if RocksDB cannot open it as a whole. */
#ifndef QUEUE_INTEGRITY_PIECES_H
#define QUEUE_INTEGRITY_PIECES_H

#include "queue/store/config.h"

/*
 * Open one piece of the store after the other, and call @each while it is open. Returns 0;
 * -EBADMSG, nothing can be read; -ENOSPC, there is no space for tables of the logs; or another
 * negative errno.
 */
int store_each_piece(struct store *store, void (*each)(void *context), void *context);
/* Remove what a call that was stopped has left. */
void store_remove_pieces(const struct store *store);

#endif /* QUEUE_INTEGRITY_PIECES_H */
