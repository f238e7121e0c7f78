// SPDX-License-Identifier: GPL-2.0
/*
 * Keys and watches, of the events of a context and of operations of modules.
 *
 * A watch links an operation to a key.  The key is found in a table, and has its watches
 * sorted by the value that they wait for; the operation has a list of its watches:
 *
 *	table of keys
 *	      |
 *	  watched_key ---- sums:   watch  watch  watch   by what is missing
 *	                   levels: watch  watch          by level
 *	                             |
 *	   operation --------------- + ---- ...          its watches
 *
 * So a signal that satisfies no watch checks only the first one of each kind.  A key is in
 * the table only while it is watched.
 *
 * A watch for a sum stores the total of the key at which it is satisfied.  Both count
 * modulo 2^64, and their difference, the missing value, is between 1 and 2^64 - 1: so
 * nothing overflows, whatever was signalled before.  A signal first takes all watches
 * whose missing value is not more than its own value, and then adds its value to the
 * total; so the order of the remaining watches does not change.
 *
 * There is no lock here.  The mutex of a context guards its keys and watches.  Expiry does
 * not access the watches of an event, because it would need the lock of all keys in an
 * interrupt.  The state of the event alone tells that its watches are dead.  They are
 * unlinked when a signal satisfies or cancels them, or when the event is freed.
 */
#include <linux/rhashtable.h>
#include <linux/slab.h>

#include "watch.h"

static const struct rhashtable_params key_params = {
	.key_len = sizeof_field(struct watched_key, key),
	.key_offset = offsetof(struct watched_key, key),
	.head_offset = offsetof(struct watched_key, hash),
	/* If few keys come and go, the table is not resized each time. */
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
 * keys_put() - drop a reference to a key
 * @keys: the table.
 * @key: the key, which is freed with the last reference.
 */
void keys_put(struct rhashtable *keys, struct watched_key *key)
{
	if (--key->refs)
		return;
	/* No RCU is needed: resizing the table takes the same locks as this. */
	rhashtable_remove_fast(keys, &key->hash, key_params);
	kmem_cache_free(key_cache, key);
}

static struct watch *first_of(const struct rb_root_cached *watches)
{
	return rb_entry_safe(rb_first_cached(watches), struct watch, node);
}

/* The value that signals still have to add up to before they satisfy a watch. */
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
 * key_satisfied() - find a watch that a signal satisfies
 * @key: the key.
 * @value: the value of the signal.
 *
 * When there is none any more, the caller adds @value to the key's total.
 *
 * Return: the one that waits for the lowest value; NULL: there is none.
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
 * key_count_satisfied() - count the watches that a signal would satisfy
 * @key: the key.
 * @value: the value of the signal.
 * @max: where to stop counting.
 */
unsigned int key_count_satisfied(const struct watched_key *key, u64 value,
				 unsigned int max)
{
	unsigned int nr = count_while(&key->sums, max, sum_is_met, value);

	return nr + count_while(&key->levels, max - nr, level_is_met, value);
}

static unsigned int count_siblings(const struct rb_root_cached *watches,
				   unsigned int max)
{
	struct rb_node *node = rb_first_cached(watches);
	unsigned int nr = 0;

	while (nr < max && node) {
		nr += rb_entry(node, struct watch, node)->watcher->nr_watches;
		node = rb_next(node);
	}
	return min(nr, max);
}

/**
 * key_count_siblings() - count the watches of the operations that watch a key
 * @key: the key.
 * @max: where to stop counting.
 *
 * An operation that watches the key twice is counted twice.
 */
unsigned int key_count_siblings(const struct watched_key *key, unsigned int max)
{
	unsigned int nr = count_siblings(&key->sums, max);

	return nr + count_siblings(&key->levels, max - nr);
}

/**
 * key_any() - any watch of a key
 * @key: the key.
 *
 * Return: a watch; NULL: there is none.
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
 * @gfp: the flags for allocating memory.
 *
 * Return: the watch, not linked, for watch_free(); NULL if there is no memory.
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
 * watch_link() - link a watch to its key and to an operation
 * @watch: the watch, not linked.
 * @watcher: the watcher of the operation.
 * @kind: what it waits for.
 * @need: SUM, LEVEL: the value that it waits for, not 0; ASKED: the last check, which it
 *	is not a part of.
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
 * watch_unlink() - unlink a watch from its key and its operation
 * @watch: a watch that is linked; @key and @watcher keep their values.
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
 * watch_free() - free a watch, and its key if this is its last watch
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
 * watcher_init() - prepare the watcher of an operation, without watches
 * @watcher: the watcher.
 */
void watcher_init(struct twheel_watcher *watcher)
{
	INIT_LIST_HEAD(&watcher->watches);
	watcher->nr_watches = 0;
}

/**
 * watcher_drop() - free all watches of an operation
 * @keys: the table of keys.
 * @watcher: the watcher of the operation.
 */
void watcher_drop(struct rhashtable *keys, struct twheel_watcher *watcher)
{
	struct watch *watch, *next;

	list_for_each_entry_safe(watch, next, &watcher->watches, siblings)
		watch_free(keys, watch);
}

/* --- beginning and end ------------------------------------------------------ */

/**
 * watches_init() - make the caches of keys and watches, before the first one
 *
 * Return: 0 or -ENOMEM; then the caller calls watches_exit().
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
 * watches_exit() - free the caches of keys and watches
 */
void watches_exit(void)
{
	kmem_cache_destroy(watch_cache);
	kmem_cache_destroy(key_cache);
}
