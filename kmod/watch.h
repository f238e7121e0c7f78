/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys, their watches, and which of them a signal satisfies.
 *
 * watch.c tells how they are stored.  The caller serialises all calls for the same table
 * of keys.
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
	WATCH_UNLINKED,		/* nothing: it is not linked */
	WATCH_SUM,		/* signals whose values add up to a value */
	WATCH_LEVEL,		/* one signal of at least a value */
	WATCH_ASKED,		/* each check of the key asks its operation */
};

/**
 * struct watched_key - a key with watches
 * @hash: its place in the table of keys.
 * @key: the key.
 * @total: the sum of the signals since it is watched, modulo 2^64.
 * @sums: watches of the kind SUM, sorted by the missing value.
 * @levels: watches of the kind LEVEL, sorted by the value.
 * @asked: watches of the kind ASKED; the one that was checked longest ago is first.
 * @refs: how many watches, and other users, refer to it.
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
 * struct watch - the link between an operation and a key
 * @node: SUM, LEVEL: its place among those of the key.
 * @asked: ASKED: the same.
 * @threshold: SUM: the total that satisfies it, modulo 2^64; LEVEL: the value that
 *	satisfies it; ASKED: the last check that it was a part of.
 * @kind: what it waits for.
 * @key: the key.
 * @watcher: the watcher of its operation.
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
unsigned int key_count_siblings(const struct watched_key *key, unsigned int max);
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
