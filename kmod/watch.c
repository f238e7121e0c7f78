// SPDX-License-Identifier: GPL-2.0
/*
 * Keys and watches, of the events of a context and of operations of modules.
 *
 * A watch ties an operation to a key.  A table finds the key, which has its watches
 * sorted by what they wait for, and the operation has a list of them:
 *
 *	table of keys
 *	      |
 *	  watched_key ---- sums:   watch  watch  watch   by what is missing
 *	                   levels: watch  watch          by level
 *	                             |
 *	   operation --------------- + ---- ...          its watches
 *
 * So a signal looks at the first of each kind, and that is all if it satisfies
 * none.  A key is in the table while it is watched and no longer.
 *
 * A watch for a sum notes the key's total at which it is satisfied.  Both count
 * modulo 2^64 and their difference, which is what is missing, is between 1 and
 * 2^64 - 1: nothing overflows, whatever was signalled before.  A signal goes to the
 * total after it has taken all watches with no more missing than its value; so the
 * order of those that are left does not change.
 *
 * There is no lock here.  Those of a context are guarded by its mutex.  When the
 * time of an event comes, nobody looks at its watches: that would need the lock of
 * all keys in an interrupt.  Its state alone tells that they are dead.  They are
 * unlinked when a signal meets them, or with the event.
 */
#include <linux/rhashtable.h>
#include <linux/slab.h>

#include "watch.h"

static const struct rhashtable_params key_params = {
	.key_len = sizeof_field(struct watched_key, key),
	.key_offset = offsetof(struct watched_key, key),
	.head_offset = offsetof(struct watched_key, hash),
	/* Few keys that come and go do not resize it all the time. */
	.min_size = 64,
	.automatic_shrinking = true,
};

static struct kmem_cache *key_cache;
static struct kmem_cache *watch_cache;

/* --- keys ------------------------------------------------------------------- */

/**
 * keys_init() - make an empty table of keys
 * @keys: the table.
 *
 * Context: a task; sleeps.
 *
 * Return: 0 or -ENOMEM.
 */
int keys_init(struct rhashtable *keys)
{
	return rhashtable_init(keys, &key_params);
}

/**
 * keys_destroy() - free a table without keys
 * @keys: the table.
 *
 * Context: a task; sleeps.
 */
void keys_destroy(struct rhashtable *keys)
{
	WARN_ON_ONCE(atomic_read(&keys->nelems));
	rhashtable_destroy(keys);
}

static struct watched_key *keys_add(struct rhashtable *keys, u64 number, gfp_t gfp)
{
	struct watched_key *key = kmem_cache_alloc(key_cache, gfp);

	if (!key)
		return NULL;
	*key = (struct watched_key){
		.key = number,
		.refs = 1,
		.sums = RB_ROOT_CACHED,
		.levels = RB_ROOT_CACHED,
	};
	INIT_LIST_HEAD(&key->asked);
	if (rhashtable_insert_fast(keys, &key->hash, key_params)) {
		kmem_cache_free(key_cache, key);
		return NULL;
	}
	return key;
}

/**
 * keys_get() - find a key
 * @keys: the table.
 * @number: the key.
 *
 * Return: the key, for keys_put(); NULL: it has no watches.
 */
struct watched_key *keys_get(struct rhashtable *keys, u64 number)
{
	struct watched_key *key = rhashtable_lookup_fast(keys, &number, key_params);

	if (key)
		key->refs++;
	return key;
}

/**
 * keys_put() - let go of a key
 * @keys: the table.
 * @key: the key, which is freed if nobody else refers to it.
 */
void keys_put(struct rhashtable *keys, struct watched_key *key)
{
	if (--key->refs)
		return;
	/* Who resizes the table looks at it under the locks that this takes. */
	rhashtable_remove_fast(keys, &key->hash, key_params);
	kmem_cache_free(key_cache, key);
}

static struct watch *first_of(const struct rb_root_cached *watches)
{
	return rb_entry_safe(rb_first_cached(watches), struct watch, node);
}

/* What signals have to add up to before they satisfy a watch. */
static u64 missing(const struct watch *watch)
{
	return watch->threshold - watch->key->total;
}

static bool sum_is_met(const struct watch *watch, u64 value)
{
	return missing(watch) <= value;
}

static bool level_is_met(const struct watch *watch, u64 value)
{
	return watch->threshold <= value;
}

/**
 * key_satisfied() - a watch that a signal satisfies
 * @key: the key.
 * @value: the signal's.
 *
 * When there is none any more, @value is to be added to the key's total.
 *
 * Return: the one that waits for least; NULL: none.
 */
struct watch *key_satisfied(const struct watched_key *key, u64 value)
{
	struct watch *watch = first_of(&key->sums);

	if (watch && sum_is_met(watch, value))
		return watch;
	watch = first_of(&key->levels);
	return watch && level_is_met(watch, value) ? watch : NULL;
}

static unsigned int count_while(const struct rb_root_cached *watches, unsigned int max,
				bool (*is_met)(const struct watch *watch, u64 value),
				u64 value)
{
	struct rb_node *node = rb_first_cached(watches);
	unsigned int nr = 0;

	while (nr < max && node && is_met(rb_entry(node, struct watch, node), value)) {
		nr++;
		node = rb_next(node);
	}
	return nr;
}

/**
 * key_count_satisfied() - how many watches a signal satisfies
 * @key: the key.
 * @value: the signal's.
 * @max: do not count further.
 */
unsigned int key_count_satisfied(const struct watched_key *key, u64 value,
				 unsigned int max)
{
	unsigned int nr = count_while(&key->sums, max, sum_is_met, value);

	return nr + count_while(&key->levels, max - nr, level_is_met, value);
}

/**
 * key_any() - a watch of a key, whatever it waits for
 * @key: the key.
 *
 * Return: one; NULL: there is none.
 */
struct watch *key_any(const struct watched_key *key)
{
	return first_of(&key->sums) ?: first_of(&key->levels);
}

/* --- watches ---------------------------------------------------------------- */

/**
 * watch_create() - make a watch of a key
 * @keys: the table of keys.
 * @number: the key; new if it has no watch yet.
 * @gfp: how to get the memory.
 *
 * Return: the watch, not linked, for watch_free(); NULL for want of memory.
 */
struct watch *watch_create(struct rhashtable *keys, u64 number, gfp_t gfp)
{
	struct watch *watch = kmem_cache_alloc(watch_cache, gfp);

	if (!watch)
		return NULL;
	watch->kind = WATCH_UNLINKED;
	watch->key = keys_get(keys, number);
	if (watch->key)
		return watch;

	watch->key = keys_add(keys, number, gfp);
	if (!watch->key) {
		kmem_cache_free(watch_cache, watch);
		return NULL;
	}
	return watch;
}

#define watch_of(rb)	rb_entry(rb, struct watch, node)

static bool misses_less(struct rb_node *a, const struct rb_node *b)
{
	return missing(watch_of(a)) < missing(watch_of(b));
}

static bool is_lower(struct rb_node *a, const struct rb_node *b)
{
	return watch_of(a)->threshold < watch_of(b)->threshold;
}

/**
 * watch_link() - let a watch wait
 * @watch: the watch, not linked.
 * @watcher: whose it becomes.
 * @kind: what for.
 * @need: how much, not 0; of an ASKED one, the last check, of which it is no part.
 */
void watch_link(struct watch *watch, struct twheel_watcher *watcher,
		enum watch_kind kind, u64 need)
{
	struct watched_key *key = watch->key;

	watch->kind = kind;
	watch->threshold = need;
	watch->watcher = watcher;
	list_add_tail(&watch->siblings, &watcher->watches);
	watcher->nr_watches++;
	switch (kind) {
	case WATCH_SUM:
		watch->threshold += key->total;
		rb_add_cached(&watch->node, &key->sums, misses_less);
		break;
	case WATCH_LEVEL:
		rb_add_cached(&watch->node, &key->levels, is_lower);
		break;
	default:
		list_add_tail(&watch->asked, &key->asked);
		break;
	}
}

/**
 * watch_unlink() - let a watch wait no longer
 * @watch: a watch that is linked; its key and watcher stay known.
 */
void watch_unlink(struct watch *watch)
{
	struct watched_key *key = watch->key;

	switch (watch->kind) {
	case WATCH_SUM:
		rb_erase_cached(&watch->node, &key->sums);
		break;
	case WATCH_LEVEL:
		rb_erase_cached(&watch->node, &key->levels);
		break;
	default:
		list_del(&watch->asked);
		break;
	}
	watch->kind = WATCH_UNLINKED;
	list_del(&watch->siblings);
	watch->watcher->nr_watches--;
}

/**
 * watch_free() - free a watch, and its key if that was the last one
 * @keys: the table of keys.
 * @watch: the watch, linked or not.
 */
void watch_free(struct rhashtable *keys, struct watch *watch)
{
	if (watch->kind != WATCH_UNLINKED)
		watch_unlink(watch);
	keys_put(keys, watch->key);
	kmem_cache_free(watch_cache, watch);
}

/**
 * watcher_init() - make an operation that has no watches
 * @watcher: the operation's.
 */
void watcher_init(struct twheel_watcher *watcher)
{
	INIT_LIST_HEAD(&watcher->watches);
	watcher->nr_watches = 0;
}

/**
 * watcher_drop() - free all watches of an operation
 * @keys: the table of keys.
 * @watcher: the operation's.
 */
void watcher_drop(struct rhashtable *keys, struct twheel_watcher *watcher)
{
	struct watch *watch, *next;

	list_for_each_entry_safe(watch, next, &watcher->watches, siblings)
		watch_free(keys, watch);
}

/* --- beginning and end ------------------------------------------------------ */

/**
 * watches_init() - before the first watch
 *
 * Return: 0 or -ENOMEM; then watches_exit() undoes what was done.
 */
int watches_init(void)
{
	key_cache = kmem_cache_create("twheel_keys", sizeof(struct watched_key), 0,
				      0, NULL);
	watch_cache = kmem_cache_create("twheel_watches", sizeof(struct watch), 0,
					0, NULL);
	return key_cache && watch_cache ? 0 : -ENOMEM;
}

/**
 * watches_exit() - after the last one
 */
void watches_exit(void)
{
	kmem_cache_destroy(watch_cache);
	kmem_cache_destroy(key_cache);
}
