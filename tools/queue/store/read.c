// SPDX-License-Identifier: GPL-2.0
/*
 * Gets and walks of the store.
 *
 * Each passes the batch to RocksDB first, if the batch may have a change of the data that is
 * read. A walk sees the index as it was when the walk started. It starts at the head of the
 * index, see state.h, and moves the head forward to the first entry that it finds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/range.h"
#include "queue/store/read.h"
#include "queue/store/rocksdb.h"
#include "queue/store/state.h"

/* --- gets --------------------------------------------------------------------------------- */

/* The caller destroys *@value if it is not NULL. */
static int get_value(struct store *store, const void *key, size_t key_len, const char *what,
		     rocksdb_pinnableslice_t **value)
{
	char *error = NULL;

	*value = rocksdb_get_pinned(store->db, store->read_options, key, key_len, &error);
	if (error)
		return store_unread(store, what, error);
	return *value ? 0 : -ENOENT;
}

int store_get_unchanged(struct store *store, uint64_t id, struct job_record *record)
{
	uint8_t key[STORE_KEY_MAX];
	rocksdb_pinnableslice_t *value;
	const char *bytes;
	size_t len;
	int ret;

	ret = get_value(store, key, store_key_id(key, 'j', id), "a job", &value);
	if (ret)
		return ret;
	bytes = rocksdb_pinnableslice_value(value, &len);
	if (!store_decode_job(id, bytes, len, record))
		ret = store_damaged(store, "a job", NULL);
	rocksdb_pinnableslice_destroy(value);
	return ret;
}

int store_get(struct store *store, uint64_t id, struct job_record *record)
{
	store_hand_over_id(store, id);
	return store_get_unchanged(store, id, record);
}

int store_get_tube(struct store *store, uint32_t tube, struct tube_record *record)
{
	uint8_t key[STORE_KEY_MAX];
	rocksdb_pinnableslice_t *value;
	size_t key_len = store_key_tube(key, 't', tube), len;
	const char *bytes;
	int ret;

	store_hand_over(store);
	ret = get_value(store, key, key_len, "a tube", &value);

	if (ret)
		return ret;
	bytes = rocksdb_pinnableslice_value(value, &len);
	if (!store_decode_tube(key, key_len, bytes, len, record))
		ret = store_damaged(store, "a tube", NULL);
	rocksdb_pinnableslice_destroy(value);
	return ret;
}

static void drop_body(struct store *store)
{
	if (store->body)
		rocksdb_pinnableslice_destroy(store->body);
	store->body = NULL;
}

int store_get_body_of(struct store *store, char kind, uint64_t id, const void **body,
		      size_t *len)
{
	uint8_t key[STORE_KEY_MAX];
	int ret;

	drop_body(store);
	store_hand_over_id(store, id);
	ret = get_value(store, key, store_key_id(key, kind, id), "a body", &store->body);
	if (ret)
		return ret;
	*body = rocksdb_pinnableslice_value(store->body, len);
	return 0;
}

int store_get_body(struct store *store, uint64_t id, const void **body, size_t *len)
{
	return store_get_body_of(store, 'p', id, body, len);
}

int store_get_raw(struct store *store, const void *key, size_t key_len, const char *what,
		  rocksdb_pinnableslice_t **value)
{
	return get_value(store, key, key_len, what, value);
}

static int get_u64(struct store *store, const void *key, size_t key_len, const char *what,
		   uint64_t *number)
{
	rocksdb_pinnableslice_t *value;
	const char *bytes;
	size_t len;
	int ret = get_value(store, key, key_len, what, &value);

	if (ret)
		return ret;
	bytes = rocksdb_pinnableslice_value(value, &len);
	if (!store_decode_u64(bytes, len, number))
		ret = store_damaged(store, what, NULL);
	rocksdb_pinnableslice_destroy(value);
	return ret;
}

int store_get_key(struct store *store, uint32_t tube, const char *unique, size_t len,
		  uint64_t *id)
{
	uint8_t key[STORE_KEY_MAX];

	store_hand_over_key(store, tube, unique, len);
	return get_u64(store, key, store_key_unique(key, tube, unique, len), "a key", id);
}

int store_number(struct store *store, const char *name, uint64_t *number)
{
	uint8_t key[STORE_KEY_MAX];

	store_hand_over_key(store, 0, name, strlen(name));
	return get_u64(store, key, store_key_number(key, name), "a number", number);
}

int store_get_number(struct store *store, const char *name, uint64_t missing, uint64_t *number)
{
	int ret = store_number(store, name, number);

	if (ret == -ENOENT)
		*number = missing;
	return ret == -ENOENT ? 0 : ret;
}

uint64_t store_next_id(const struct store *store)
{
	return store->next_id;
}

/* --- walks -------------------------------------------------------------------------------- */

static void range_of_kind(struct store *store, struct store_range *range, char kind)
{
	range->begin[0] = (uint8_t)kind;
	range->begin_len = 1;
	store_range_end(range, range->begin, 1);
	store_range_open(store, range, store_make_read_options());
	rocksdb_iter_seek_to_first(range->iterator);
}

/* The index of @place, from its head. */
static void range_of_index(struct store *store, struct store_range *range,
			   const struct job_place *place)
{
	const struct store_head *head = store_head(store, place);
	struct job_place first = *place;

	range->prefix_len = store_key_prefix(range->begin, place);
	store_range_end(range, range->begin, range->prefix_len);
	first.order = head->order;
	first.pri = (uint32_t)head->order;
	first.id = head->id;
	range->begin_len = store_key_place(range->begin, &first);
	store_range_open(store, range, store_make_read_options());
}

static bool range_place(struct store_range *range, struct job_place *place)
{
	size_t key_len, len;
	const char *key = rocksdb_iter_key(range->iterator, &key_len);
	const char *value = rocksdb_iter_value(range->iterator, &len);

	return store_decode_place(key, key_len, value, len, place);
}

static void save_last(struct store_range *range)
{
	size_t len;
	const char *key = rocksdb_iter_key(range->iterator, &len);

	if (len > sizeof(range->last))
		return;
	memcpy(range->last, key, len);
	range->last_len = len;
}

static int each_place(struct store *store, struct store_range *range,
		      void (*next)(rocksdb_iterator_t *iterator),
		      bool (*each)(void *context, const struct job_place *place),
		      void *context)
{
	struct job_place place;
	int ret = 0;

	/* Skip an invalid entry: the entries after it can still be read. */
	for (; rocksdb_iter_valid(range->iterator); next(range->iterator)) {
		save_last(range);
		if (!range_place(range, &place))
			ret = store_damaged(store, "an entry of an index", NULL);
		else if (!each(context, &place))
			break;
	}
	return ret;
}

/* --- walks past what is damaged ----------------------------------------------------------- */

/*
 * The suffix of a key, the bytes after its prefix, is used as a number here. Seek the key with
 * this suffix, with a new iterator: an iterator that has found damage may report it again.
 * Returns whether the walk can go on from there.
 */
static bool seek_suffix(struct store *store, struct store_range *range, unsigned __int128 suffix)
{
	uint8_t key[STORE_KEY_MAX];
	char *error = NULL;
	size_t i;

	memcpy(key, range->last, range->last_len);
	for (i = range->last_len; i-- > range->prefix_len; suffix >>= 8)
		key[i] = (uint8_t)suffix;
	rocksdb_iter_destroy(range->iterator);
	range->iterator = rocksdb_create_iterator(store->db, range->options);
	rocksdb_iter_seek(range->iterator, (char *)key, range->last_len);
	rocksdb_iter_get_error(range->iterator, &error);
	rocksdb_free(error);
	return !error;
}

static unsigned __int128 last_suffix(const struct store_range *range)
{
	unsigned __int128 suffix = 0;
	size_t i;

	for (i = range->prefix_len; i < range->last_len; i++)
		suffix = suffix << 8 | range->last[i];
	return suffix;
}

/*
 * The iterator cannot read the data after the last entry. Find the first suffix from which it
 * can read, by doubling steps and then bisection. Returns false if there is none.
 */
static bool skip_damage(struct store *store, struct store_range *range)
{
	unsigned int unused = 128 - 8 * (unsigned int)(range->last_len - range->prefix_len);
	unsigned __int128 most = ~(unsigned __int128)0 >> unused;
	unsigned __int128 cannot = last_suffix(range), can, step = 1;

	/* A step that has overflowed is 0. */
	while (step && step <= most - cannot && !seek_suffix(store, range, cannot + step)) {
		cannot += step;
		step *= 2;
	}
	if (!step || step > most - cannot)
		return false;
	can = cannot + step;
	while (can - cannot > 1) {
		unsigned __int128 middle = cannot + (can - cannot) / 2;

		if (seek_suffix(store, range, middle))
			can = middle;
		else
			cannot = middle;
	}
	return seek_suffix(store, range, can);
}

/* Walk from the current position of the iterator and @range->last. Closes the range. */
static int walk_places(struct store *store, struct store_range *range,
		       bool (*each)(void *context, const struct job_place *place), void *context)
{
	char *error = NULL;
	int ret;

	ret = each_place(store, range, rocksdb_iter_next, each, context);
	rocksdb_iter_get_error(range->iterator, &error);
	while (error) {
		ret = store_unread(store, "an index", error);
		error = NULL;
		if (ret == -EIO || !skip_damage(store, range))
			break;
		if (each_place(store, range, rocksdb_iter_next, each, context))
			ret = -EBADMSG;
		rocksdb_iter_get_error(range->iterator, &error);
	}
	rocksdb_iter_destroy(range->iterator);
	rocksdb_readoptions_destroy(range->options);
	return ret;
}

/* --- walks through an index --------------------------------------------------------------- */

/* Returns whether @place is not after the head of its index. */
static bool is_before_head(const struct store_head *head, const struct job_place *place)
{
	uint64_t order = place->state == JOB_READY ? place->pri : place->order;

	return order < head->order || (order == head->order && place->id <= head->id);
}

/* A walk from the head has found the first entry: move the head there. */
static void move_head(struct store_head *head, struct store_range *range)
{
	struct job_place place;

	if (!rocksdb_iter_valid(range->iterator))
		*head = (struct store_head){ .order = UINT64_MAX, .id = UINT64_MAX };
	else if (range_place(range, &place))
		*head = (struct store_head){
			.order = place.state == JOB_READY ? place.pri : place.order,
			.id = place.id,
		};
}

int store_walk(struct store *store, const struct job_place *from,
	       bool (*each)(void *context, const struct job_place *place), void *context)
{
	struct store_head *head = store_head(store, from);
	struct store_range range;
	char *error = NULL;

	store_hand_over(store);
	range_of_index(store, &range, from);
	memcpy(range.last, range.begin, range.begin_len);
	range.last_len = range.begin_len;
	if (is_before_head(head, from)) {
		rocksdb_iter_seek_to_first(range.iterator);
		rocksdb_iter_get_error(range.iterator, &error);
		if (!error)
			move_head(head, &range);
		rocksdb_free(error);
	} else {
		range.last_len = store_key_place(range.last, from);
		rocksdb_iter_seek(range.iterator, (char *)range.last, range.last_len);
	}
	return walk_places(store, &range, each, context);
}

int store_walk_tube(struct store *store, const struct job_place *from,
		    bool (*each)(void *context, const struct job_place *place),
		    void *context)
{
	struct store_range range;

	store_hand_over(store);
	range.begin_len = store_key_tube(range.begin, store_key_tube_kind(from->state),
					 from->tube);
	range.prefix_len = range.begin_len;
	store_range_end(&range, range.begin, range.begin_len);
	range.begin_len = store_key_of_tube(range.begin, from);
	memcpy(range.last, range.begin, range.begin_len);
	range.last_len = range.begin_len;
	store_range_open(store, &range, store_make_read_options());
	rocksdb_iter_seek_to_first(range.iterator);
	return walk_places(store, &range, each, context);
}

int store_walk_back(struct store *store, const struct job_place *from,
		    bool (*each)(void *context, const struct job_place *place),
		    void *context)
{
	uint8_t key[STORE_KEY_MAX];
	struct store_range range;

	store_hand_over(store);
	range_of_index(store, &range, from);
	rocksdb_iter_seek_for_prev(range.iterator, (char *)key, store_key_place(key, from));
	return store_range_close(store, &range, "an index",
			   each_place(store, &range, rocksdb_iter_prev, each, context));
}

int store_each_mark(struct store *store, uint64_t after_id,
		    bool (*each)(void *context, uint64_t id), void *context)
{
	struct store_range range;
	const char *key;
	size_t key_len;
	uint64_t id;
	int ret = 0;

	store_hand_over(store);
	range.begin_len = store_key_id(range.begin, 'v', after_id + 1);
	store_range_end(&range, (const uint8_t *)"v", 1);
	store_range_open(store, &range, store_make_read_options());
	rocksdb_iter_seek_to_first(range.iterator);
	for (; rocksdb_iter_valid(range.iterator); rocksdb_iter_next(range.iterator)) {
		key = rocksdb_iter_key(range.iterator, &key_len);
		if (!store_decode_id(key, key_len, 'v', &id)) {
			ret = store_damaged(store, "a mark", NULL);
			break;
		}
		if (!each(context, id))
			break;
	}
	return store_range_close(store, &range, "marks", ret);
}

int store_each_tube(struct store *store,
		    bool (*each)(void *context, const struct tube_record *record),
		    void *context)
{
	struct tube_record record;
	struct store_range range;
	const char *key, *value;
	size_t key_len, len;
	int ret = 0;

	store_hand_over(store);
	range_of_kind(store, &range, 't');
	for (; rocksdb_iter_valid(range.iterator); rocksdb_iter_next(range.iterator)) {
		key = rocksdb_iter_key(range.iterator, &key_len);
		value = rocksdb_iter_value(range.iterator, &len);
		if (!store_decode_tube(key, key_len, value, len, &record)) {
			ret = store_damaged(store, "a tube", NULL);
			break;
		}
		record.counts = *store_counts(store, record.tube);
		if (!each(context, &record))
			break;
	}
	return store_range_close(store, &range, "tubes", ret);
}

int store_each_raw(struct store *store, const void *prefix, size_t prefix_len, const void *from,
		   size_t from_len, const char *what, store_raw_fn *each, void *context)
{
	struct store_range range;
	const char *key, *value;
	size_t key_len, len;
	bool more = true;

	store_hand_over(store);
	memcpy(range.begin, from, from_len);
	range.begin_len = from_len;
	store_range_end(&range, prefix, prefix_len);
	store_range_open(store, &range, store_make_read_options());
	rocksdb_iter_seek_to_first(range.iterator);
	for (; more && rocksdb_iter_valid(range.iterator); rocksdb_iter_next(range.iterator)) {
		key = rocksdb_iter_key(range.iterator, &key_len);
		value = rocksdb_iter_value(range.iterator, &len);
		more = each(context, key, key_len, value, len);
	}
	return store_range_close(store, &range, what, 0);
}
