// SPDX-License-Identifier: GPL-2.0
/* A view of the store: a snapshot of RocksDB. */
#include <rocksdb/c.h>
#include <stdlib.h>
#include <string.h>

#include "queue/store/batch.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/rocksdb.h"
#include "queue/store/state.h"
#include "queue/store/view.h"

/* After so many entries that the view does not have, seek the next one that it has. */
#define NEXT_MOST	16

struct store_view {
	struct store *store;
	const rocksdb_snapshot_t *snapshot;
	rocksdb_readoptions_t *options;
};

struct store_view *store_view_open(struct store *store)
{
	struct store_view *view = calloc(1, sizeof(*view));

	if (!view)
		return NULL;
	store_hand_over(store);
	view->store = store;
	view->snapshot = rocksdb_create_snapshot(store->db);
	view->options = store_make_read_options();
	rocksdb_readoptions_set_snapshot(view->options, view->snapshot);
	return view;
}

void store_view_close(struct store_view *view)
{
	rocksdb_readoptions_destroy(view->options);
	rocksdb_release_snapshot(view->store->db, view->snapshot);
	free(view);
}

/* The first key of the walk. */
static size_t first_key(const struct job_place *from, uint8_t *key)
{
	if (store_key_tube_kind(from->state))
		return store_key_of_tube(key, from);
	return store_key_place(key, from);
}

/**
 * struct sides - a walk through an index as it was, and beside it as it is
 * @view: the view.
 * @then: entries of the view.
 * @now: present entries.
 */
struct sides {
	struct store_view *view;
	rocksdb_iterator_t *then;
	rocksdb_iterator_t *now;
};

static int compare_keys(const struct sides *sides)
{
	size_t len, now_len;
	const char *key = rocksdb_iter_key(sides->then, &len);
	const char *now = rocksdb_iter_key(sides->now, &now_len);
	int difference = memcmp(now, key, len < now_len ? len : now_len);

	return difference ? difference : (int)now_len - (int)len;
}

/* Is the entry of the view there now? New entries before it are passed over. */
static bool is_there_now(const struct sides *sides)
{
	unsigned int steps;
	const char *key;
	size_t len;

	for (steps = 0; steps < NEXT_MOST; steps++) {
		if (!rocksdb_iter_valid(sides->now))
			return false;
		if (compare_keys(sides) >= 0)
			return !compare_keys(sides);
		rocksdb_iter_next(sides->now);
	}
	key = rocksdb_iter_key(sides->then, &len);
	rocksdb_iter_seek(sides->now, key, len);
	return rocksdb_iter_valid(sides->now) && !compare_keys(sides);
}

static int view_each(const struct sides *sides, uint32_t tube,
		     bool (*each)(void *context, const struct job_place *place, bool same),
		     void *context)
{
	struct job_place place;
	const char *key, *value;
	size_t key_len, len;

	for (; rocksdb_iter_valid(sides->then); rocksdb_iter_next(sides->then)) {
		key = rocksdb_iter_key(sides->then, &key_len);
		value = rocksdb_iter_value(sides->then, &len);
		if (!store_decode_place(key, key_len, value, len, &place) || place.tube != tube)
			return store_damaged(sides->view->store, "an index", NULL);
		if (!each(context, &place, is_there_now(sides)))
			break;
	}
	return 0;
}

static void set_bounds(rocksdb_readoptions_t *options, const struct job_place *from,
		       const uint8_t *begin, size_t len, uint8_t *end)
{
	rocksdb_readoptions_set_iterate_lower_bound(options, (const char *)begin, len);
	/* Numbers of tubes end below UINT32_MAX. */
	rocksdb_readoptions_set_iterate_upper_bound(options, (char *)end,
						    store_key_tube(end, (char)begin[0],
								   from->tube + 1));
}

static int close_side(struct store *store, rocksdb_iterator_t *iterator, int ret)
{
	char *error = NULL;

	rocksdb_iter_get_error(iterator, &error);
	rocksdb_iter_destroy(iterator);
	return error ? store_unread(store, "an index", error) : ret;
}

int store_view_walk(struct store_view *view, const struct job_place *from,
		    bool (*each)(void *context, const struct job_place *place, bool same),
		    void *context)
{
	rocksdb_readoptions_t *now_options = store_make_read_options();
	uint8_t begin[STORE_KEY_MAX], end[STORE_KEY_MAX];
	size_t len = first_key(from, begin);
	struct sides sides = { .view = view };
	int ret;

	store_hand_over(view->store);
	set_bounds(view->options, from, begin, len, end);
	set_bounds(now_options, from, begin, len, end);
	sides.then = rocksdb_create_iterator(view->store->db, view->options);
	sides.now = rocksdb_create_iterator(view->store->db, now_options);
	rocksdb_iter_seek_to_first(sides.then);
	rocksdb_iter_seek_to_first(sides.now);
	ret = view_each(&sides, from->tube, each, context);
	ret = close_side(view->store, sides.then, ret);
	ret = close_side(view->store, sides.now, ret);
	rocksdb_readoptions_destroy(now_options);
	return ret;
}

bool store_view_is_marked(struct store_view *view, uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];
	size_t len = store_key_id(key, 'v', id);
	rocksdb_pinnableslice_t *value;
	char *error = NULL;

	value = rocksdb_get_pinned(view->store->db, view->options, (char *)key, len, &error);
	if (error) {
		store_unread(view->store, "a mark", error);
		return true;
	}
	if (value)
		rocksdb_pinnableslice_destroy(value);
	return value;
}
