// SPDX-License-Identifier: GPL-2.0
/*
 * Counts of jobs by tube and state, in memory, and the heads of the indexes.
 *
 * The count of a state always equals the number of entries in its index, where the changes
 * that are still in the batch are included. The count of jobs that died follows from their
 * records, and is not in stores of earlier versions, so a scan does not check it. Each batch
 * also writes the counts of the tubes that it changes. A head is never after the first entry
 * of its index.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "queue/store/counts.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/state.h"

#define URGENT_PRI 1024

static int compare_tubes(const struct store_tube *a, const struct store_tube *b)
{
	return a->tube < b->tube ? -1 : a->tube > b->tube;
}

RB_PROTOTYPE(store_tubes, store_tube, entry, compare_tubes)
RB_GENERATE(store_tubes, store_tube, entry, compare_tubes)

static struct store_tube *find_tube(struct store *store, uint32_t tube)
{
	struct store_tube key = { .tube = tube };

	return RB_FIND(store_tubes, &store->tubes, &key);
}

/* Without memory the counts would become wrong: end the process. */
static struct store_tube *get_tube(struct store *store, uint32_t number)
{
	struct store_tube *tube = find_tube(store, number);

	if (tube)
		return tube;
	tube = calloc(1, sizeof(*tube));
	if (!tube)
		abort();
	tube->tube = number;
	RB_INSERT(store_tubes, &store->tubes, tube);
	return tube;
}

static void make_dirty(struct store *store, struct store_tube *tube)
{
	if (!tube->dirty)
		LIST_INSERT_HEAD(&store->dirty, tube, dirty_entry);
	tube->dirty = true;
}

static void add(struct tube_counts *counts, const struct job_place *place, int64_t n)
{
	counts->nr[place->state] += (uint64_t)n;
	if (place->state == JOB_READY && place->pri < URGENT_PRI)
		counts->urgent += (uint64_t)n;
}

static void count(struct store *store, const struct job_place *place, int64_t n)
{
	struct store_tube *tube = get_tube(store, place->tube);

	add(&tube->counts, place, n);
	make_dirty(store, tube);
}

void store_count_died(struct store *store, uint32_t number, int by)
{
	struct store_tube *tube = get_tube(store, number);

	/* A job that died under an earlier version was not counted. */
	if (by < 0 && !tube->counts.died)
		return;
	tube->counts.died += (uint64_t)by;
	make_dirty(store, tube);
}

void store_count_schedules(struct store *store, uint32_t number, int by)
{
	struct store_tube *tube = get_tube(store, number);

	tube->counts.schedules += (uint64_t)by;
	make_dirty(store, tube);
}

void store_tubes_see_schedule(struct store *store, uint32_t number)
{
	get_tube(store, number)->seen.schedules++;
}

void store_tubes_see(struct store *store, const struct job_place *place)
{
	add(&get_tube(store, place->tube)->seen, place, 1);
}

bool store_tubes_agree(struct store *store, uint32_t *wrong)
{
	struct store_tube *tube;

	RB_FOREACH(tube, store_tubes, &store->tubes) {
		if (memcmp(&tube->counts, &tube->seen, offsetof(struct tube_counts, died))) {
			*wrong = tube->tube;
			return false;
		}
	}
	return true;
}

struct store_head *store_head(struct store *store, const struct job_place *place)
{
	switch (place->state) {
	case JOB_DELAYED:
		return &store->delayed;
	case JOB_WALL:
		return &store->wall;
	case JOB_READY:
		return &get_tube(store, place->tube)->ready;
	default:
		return &get_tube(store, place->tube)->buried;
	}
}

void store_first_place(struct store *store, struct job_place *place)
{
	const struct store_head *head = store_head(store, place);

	place->order = place->state == JOB_READY ? 0 : head->order;
	place->pri = 0;
	if (place->state == JOB_READY)
		place->pri = head->order < UINT32_MAX ? (uint32_t)head->order : UINT32_MAX;
	/* The head of DELAYED and WALL is that of all tubes. */
	place->id = store_key_tube_kind(place->state) ? 0 : head->id;
}

void store_tubes_enter(struct store *store, const struct job_place *place)
{
	struct store_head *head = store_head(store, place);
	uint64_t order = place->state == JOB_READY ? place->pri : place->order;

	count(store, place, 1);
	if (order < head->order || (order == head->order && place->id < head->id))
		*head = (struct store_head){ .order = order, .id = place->id };
}

void store_tubes_leave(struct store *store, const struct job_place *place)
{
	count(store, place, -1);
}

void store_tubes_forget(struct store *store, uint32_t number)
{
	struct store_tube *tube = find_tube(store, number);

	if (!tube)
		return;
	if (tube->dirty)
		LIST_REMOVE(tube, dirty_entry);
	RB_REMOVE(store_tubes, &store->tubes, tube);
	free(tube);
}

void store_tubes_write(struct store *store)
{
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
	struct store_tube *tube;

	while ((tube = LIST_FIRST(&store->dirty))) {
		size_t key_len = store_key_tube(key, 'c', tube->tube);

		rocksdb_writebatch_put(store->batch, (char *)key, key_len, (char *)value,
				       store_encode_counts(value, &tube->counts));
		LIST_REMOVE(tube, dirty_entry);
		tube->dirty = false;
	}
}

const struct tube_counts *store_counts(struct store *store, uint32_t number)
{
	static const struct tube_counts none;
	struct store_tube *tube = find_tube(store, number);

	return tube ? &tube->counts : &none;
}

int store_tubes_load(struct store *store)
{
	rocksdb_iterator_t *iterator = rocksdb_create_iterator(store->db, store->read_options);
	struct tube_counts counts;
	const char *key, *value;
	size_t key_len, len;
	uint32_t number;
	char *error = NULL;
	int ret = 0;

	for (rocksdb_iter_seek(iterator, "c", 1); rocksdb_iter_valid(iterator);
	     rocksdb_iter_next(iterator)) {
		key = rocksdb_iter_key(iterator, &key_len);
		if (*key != 'c')
			break;
		value = rocksdb_iter_value(iterator, &len);
		if (!store_decode_counts(key, key_len, value, len, &number, &counts)) {
			ret = store_damaged(store, "counts of a tube", NULL);
			break;
		}
		get_tube(store, number)->counts = counts;
	}
	rocksdb_iter_get_error(iterator, &error);
	rocksdb_iter_destroy(iterator);
	return error ? store_damaged(store, "counts of tubes", error) : ret;
}

void store_tubes_free(struct store *store)
{
	struct store_tube *tube;

	while ((tube = RB_MIN(store_tubes, &store->tubes)))
		store_tubes_forget(store, tube->tube);
}
