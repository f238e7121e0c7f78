// SPDX-License-Identifier: GPL-2.0
/* A view of the store: a snapshot of RocksDB. */
#include <rocksdb/c.h>
#include <stdlib.h>

#include "queue/store/batch.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/rocksdb.h"
#include "queue/store/state.h"
#include "queue/store/view.h"

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

/* The first key of the walk, and the kind and the tube that all keys of it begin with. */
static size_t first_key(const struct job_place *from, uint8_t *key)
{
	if (store_key_tube_kind(from->state))
		return store_key_of_tube(key, from);
	return store_key_place(key, from);
}

static int view_each(struct store_view *view, rocksdb_iterator_t *iterator, uint32_t tube,
		     bool (*each)(void *context, const struct job_place *place),
		     void *context)
{
	struct job_place place;
	const char *key, *value;
	size_t key_len, len;

	for (; rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
		key = rocksdb_iter_key(iterator, &key_len);
		value = rocksdb_iter_value(iterator, &len);
		if (!store_decode_place(key, key_len, value, len, &place) || place.tube != tube)
			return store_damaged(view->store, "an index", NULL);
		if (!each(context, &place))
			break;
	}
	return 0;
}

int store_view_walk(struct store_view *view, const struct job_place *from,
		    bool (*each)(void *context, const struct job_place *place),
		    void *context)
{
	uint8_t begin[STORE_KEY_MAX], end[STORE_KEY_MAX];
	size_t len = first_key(from, begin);
	rocksdb_iterator_t *iterator;
	char *error = NULL;
	int ret;

	/* Numbers of tubes end below UINT32_MAX. */
	rocksdb_readoptions_set_iterate_upper_bound(view->options, (char *)end,
						    store_key_tube(end, (char)begin[0],
								   from->tube + 1));
	iterator = rocksdb_create_iterator(view->store->db, view->options);
	rocksdb_iter_seek(iterator, (char *)begin, len);
	ret = view_each(view, iterator, from->tube, each, context);
	rocksdb_iter_get_error(iterator, &error);
	rocksdb_iter_destroy(iterator);
	return error ? store_damaged(view->store, "an index", error) : ret;
}

bool store_view_is_marked(struct store_view *view, uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];
	size_t len = store_key_id(key, 'v', id);
	rocksdb_pinnableslice_t *value;
	char *error = NULL;

	value = rocksdb_get_pinned(view->store->db, view->options, (char *)key, len, &error);
	if (error)
		store_damaged(view->store, "a mark", error);
	if (value)
		rocksdb_pinnableslice_destroy(value);
	return value;
}
