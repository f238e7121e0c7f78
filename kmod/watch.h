/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys, their watches, and which of them a signal satisfies.
 *
 * watch.c tells how they are kept.  The caller serialises all calls that are given
 * the same table of keys.
 */
#ifndef TWHEEL_WATCH_H
#define TWHEEL_WATCH_H

#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/rhashtable-types.h>

#include "twheel.h"

/* What a watch waits for. */
enum watch_kind {
	WATCH_UNLINKED,		/* nothing, yet or any more */
	WATCH_SUM,		/* what signals add up to */
	WATCH_LEVEL,		/* one signal of some value */
	WATCH_ASKED,		/* its operation is asked at each check of the key */
};

/**
 * struct watched_key - a key with watches
 * @hash: its place in the table of keys.
 * @key: the key.
 * @total: what was signalled since it is watched, modulo 2^64.
 * @sums: watches for a sum, by how much is missing.
 * @levels: watches for a level, by level.
 * @asked: watches of the third kind, the one that was checked longest ago first.
 * @refs: how many watches refer to it, and other users.
 */
struct watched_key {
	struct rhash_head hash;
	u64 key;
	u64 total;
	struct rb_root_cached sums;
	struct rb_root_cached levels;
	struct list_head asked;
	unsigned int refs;
};

/**
 * struct watch - what ties an operation to a key
 * @node: SUM, LEVEL: its place among those of the key.
 * @asked: ASKED: the same.
 * @threshold: SUM: the total that satisfies it, modulo 2^64; LEVEL: the value that
 *	does; ASKED: the last check that it was in.
 * @kind: what it waits for.
 * @key: the key.
 * @watcher: whose it is.
 * @siblings: its place among the watches of the watcher.
 */
struct watch {
	union {
		struct rb_node node;
		struct list_head asked;
	};
	u64 threshold;
	enum watch_kind kind;
	struct watched_key *key;
	struct twheel_watcher *watcher;
	struct list_head siblings;
};

int keys_init(struct rhashtable *keys);
void keys_destroy(struct rhashtable *keys);
struct watched_key *keys_get(struct rhashtable *keys, u64 key);
void keys_put(struct rhashtable *keys, struct watched_key *key);
struct watch *key_satisfied(const struct watched_key *key, u64 value);
unsigned int key_count_satisfied(const struct watched_key *key, u64 value,
				 unsigned int max);
struct watch *key_any(const struct watched_key *key);

struct watch *watch_create(struct rhashtable *keys, u64 key, gfp_t gfp);
void watch_link(struct watch *watch, struct twheel_watcher *watcher,
		enum watch_kind kind, u64 need);
void watch_unlink(struct watch *watch);
void watch_free(struct rhashtable *keys, struct watch *watch);

void watcher_init(struct twheel_watcher *watcher);
void watcher_drop(struct rhashtable *keys, struct twheel_watcher *watcher);

int watches_init(void);
void watches_exit(void);

#endif /* TWHEEL_WATCH_H */
