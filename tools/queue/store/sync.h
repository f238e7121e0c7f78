/* SPDX-License-Identifier: GPL-2.0 */
/* The sync thread, and the number of the last commit that is on disk. */
#ifndef QUEUE_STORE_SYNC_H
#define QUEUE_STORE_SYNC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include "queue/store/config.h"

/*
 * The number of the last commit that is on disk, and of all before it; and a file descriptor
 * that becomes readable when this number has grown.
 */
uint64_t store_synced(struct store *store);
int store_fd(const struct store *store);

/*
 * Before a commit, and after it: @nr clients, 0, 1, or 2 for more, wait for replies. One is served
 * soonest if the store does not leave the sync to its thread; and when none waits, a commit may be
 * synced later. If store_sync_later() returns true, call it again within STORE_LATER_MS.
 */
#define STORE_LATER_MS		5
void store_sync_waiting(struct store *store, unsigned int nr);
bool store_sync_later(struct store *store, unsigned int nr);

/* Wait until everything is on disk. */
void store_flush(struct store *store);


/* --- for store/ and integrity/ --- */

/* Initialize a condition whose timeouts use CLOCK_MONOTONIC. Returns 0 or a negative errno. */
int store_monotonic_cond(pthread_cond_t *cond);
/* Start the sync thread. Returns 0 or a negative errno. */
int store_sync_start(struct store *store);
void store_sync_stop(struct store *store);
/* Make store_fd() readable: the queue's thread has something to do. */
void store_wake(struct store *store);
/* Tell the sync thread of a new commit. */
void store_sync_commit(struct store *store);

#endif /* QUEUE_STORE_SYNC_H */
