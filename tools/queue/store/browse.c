// SPDX-License-Identifier: GPL-2.0
/* Reads by other threads than the queue's, for pages that people look at. */
#include <errno.h>
#include <rocksdb/c.h>
#include <string.h>

#include "queue/store/browse.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/range.h"
#include "queue/store/rocksdb.h"
#include "queue/store/state.h"

static rocksdb_readoptions_t *make_options(void)
{
	rocksdb_readoptions_t *options = store_make_read_options();

	rocksdb_readoptions_set_fill_cache(options, 0);
	return options;
}

static void begin(struct store *store, struct store_range *range)
{
	store_range_open(store, range, make_options());
	rocksdb_iter_seek_to_first(range->iterator);
}

static int end(struct store *store, struct store_range *range, const char *what, int ret)
{
	char *error = store_range_stop(range);

	return error ? store_damaged(store, what, error) : ret;
}

int store_browse(struct store *store, const struct job_place *from, size_t most,
		 bool (*each)(void *context, const struct job_place *place), void *context)
{
	struct store_range range;
	struct job_place place;
	const char *key, *value;
	size_t key_len, len;
	int ret = 0;

	range.begin_len = store_key_tube_kind(from->state) ?
		store_key_of_tube(range.begin, from) : store_key_place(range.begin, from);
	/* Numbers of tubes end below UINT32_MAX. */
	range.end_len = store_key_tube(range.end, (char)range.begin[0], from->tube + 1);
	begin(store, &range);
	for (; most-- && rocksdb_iter_valid(range.iterator); rocksdb_iter_next(range.iterator)) {
		key = rocksdb_iter_key(range.iterator, &key_len);
		value = rocksdb_iter_value(range.iterator, &len);
		if (!store_decode_place(key, key_len, value, len, &place)) {
			ret = store_damaged(store, "an entry of an index", NULL);
			break;
		}
		if (!each(context, &place))
			break;
	}
	return end(store, &range, "an index", ret);
}

int store_browse_marks(struct store *store, uint64_t from, size_t most,
		       bool (*each)(void *context, uint64_t id), void *context)
{
	struct store_range range;
	const char *key;
	size_t key_len;
	uint64_t id;
	int ret = 0;

	range.begin_len = store_key_id(range.begin, 'v', from);
	range.end[0] = 'v' + 1;
	range.end_len = 1;
	begin(store, &range);
	for (; most-- && rocksdb_iter_valid(range.iterator); rocksdb_iter_next(range.iterator)) {
		key = rocksdb_iter_key(range.iterator, &key_len);
		if (!store_decode_id(key, key_len, 'v', &id)) {
			ret = store_damaged(store, "a mark", NULL);
			break;
		}
		if (!each(context, id))
			break;
	}
	return end(store, &range, "marks", ret);
}

/* The caller destroys *@value if this returns 0. */
static int get(struct store *store, char kind, uint64_t id, const char *what,
	       rocksdb_pinnableslice_t **value)
{
	rocksdb_readoptions_t *options = make_options();
	uint8_t key[STORE_KEY_MAX];
	char *error = NULL;

	*value = rocksdb_get_pinned(store->db, options, (char *)key, store_key_id(key, kind, id),
				    &error);
	rocksdb_readoptions_destroy(options);
	if (error)
		return store_damaged(store, what, error);
	return *value ? 0 : -ENOENT;
}

int store_browse_job(struct store *store, uint64_t id, struct job_record *record)
{
	rocksdb_pinnableslice_t *value;
	const char *bytes;
	size_t len;
	int ret = get(store, 'j', id, "a job", &value);

	if (ret)
		return ret;
	bytes = rocksdb_pinnableslice_value(value, &len);
	if (!store_decode_job(id, bytes, len, record))
		ret = store_damaged(store, "a job", NULL);
	rocksdb_pinnableslice_destroy(value);
	return ret;
}

int store_browse_body(struct store *store, uint64_t id, void *to, size_t size, size_t *len)
{
	rocksdb_pinnableslice_t *value;
	const char *bytes;
	int ret = get(store, 'p', id, "a body", &value);

	if (ret)
		return ret;
	bytes = rocksdb_pinnableslice_value(value, len);
	if (*len > size)
		*len = size;
	memcpy(to, bytes, *len);
	rocksdb_pinnableslice_destroy(value);
	return 0;
}
