// SPDX-License-Identifier: GPL-2.0
/*
 * Changes to the store: from calls to a batch.
 *
 * Changes are collected in a batch in memory. store_commit() gives the whole batch to the
 * writer, which passes it to RocksDB: writer.c. A read of something that was changed and may
 * not be written waits for that. RocksDB copies the batch to its memtable and, as one record,
 * to the buffer of its log. A record of the log is on disk whole or not at all. Each batch
 * also has the counts of the tubes that it changes, the next id, and a number that counts
 * batches. So after a crash the store is as it was after some batch.
 */
#include <stdlib.h>
#include <string.h>

#include "queue/store/batch.h"
#include "queue/store/counts.h"
#include "queue/store/keys.h"
#include "queue/store/state.h"
#include "queue/store/sync.h"
#include "queue/store/writer.h"

#define IDS_SKIPPED	(1ull << 40)
/* What a move of a job without a key and a reason takes of a batch, and some more. */
#define MOVE_BYTES	320

/* --- the batch ---------------------------------------------------------------------------- */

static void batch_put(struct store *store, const void *key, size_t key_len,
		      const void *value, size_t len)
{
	rocksdb_writebatch_put(store->batch, key, key_len, value, len);
	store->pending = true;
	store->changed = true;
	store->records++;
}

static void batch_delete(struct store *store, const void *key, size_t key_len)
{
	rocksdb_writebatch_delete(store->batch, key, key_len);
	store->pending = true;
	store->changed = true;
	store->records++;
}

static void put_number(struct store *store, const char *name, uint64_t number)
{
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];

	batch_put(store, key, store_key_number(key, name), value,
		  store_encode_u64(value, number));
}

static unsigned int bit_of_key(uint32_t tube, const char *key, size_t len)
{
	uint32_t hash = 2166136261u ^ tube;

	while (len--)
		hash = (hash ^ (uint8_t)*key++) * 16777619u;
	return hash % TOUCHED_BITS;
}

static void touch(struct store *store, unsigned int bit)
{
	store->touched[bit / 64] |= 1ULL << bit % 64;
}

static bool is_touched(const uint64_t *touched, unsigned int bit)
{
	return touched[bit / 64] >> bit % 64 & 1;
}

/* Complete the batch, and let the writer take it. */
static void end_batch(struct store *store)
{
	size_t i;

	if (!store->pending)
		return;
	store_tubes_write(store);
	if (store->next_id_changed)
		put_number(store, NUMBER_NEXT_ID, store->next_id);
	store->next_id_changed = false;
	put_number(store, NUMBER_CHANGES, ++store->changes);
	if (store_writer_is_idle(store))
		memset(store->touched_before, 0, sizeof(store->touched_before));
	for (i = 0; i < TOUCHED_BITS / 64; i++)
		store->touched_before[i] |= store->touched[i];
	memset(store->touched, 0, sizeof(store->touched));
	store_writer_take(store);
	store->deletes = false;
	store->pending = false;
}

void store_hand_over(struct store *store)
{
	end_batch(store);
	if (!store_writer_is_idle(store))
		store_writer_drain(store);
}

static void hand_over_bit(struct store *store, unsigned int bit)
{
	if (is_touched(store->touched, bit))
		store_hand_over(store);
	else if (is_touched(store->touched_before, bit) && !store_writer_is_idle(store))
		store_writer_drain(store);
}

void store_hand_over_id(struct store *store, uint64_t id)
{
	hand_over_bit(store, id % TOUCHED_BITS);
}

void store_hand_over_key(struct store *store, uint32_t tube, const char *key, size_t len)
{
	hand_over_bit(store, bit_of_key(tube, key, len));
}

/* --- changes ------------------------------------------------------------------------------ */

static void put_entry(struct store *store, const struct job_place *place)
{
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];

	batch_put(store, key, store_key_place(key, place), value,
		  store_encode_place(value, place));
	if (store_key_tube_kind(place->state))
		batch_put(store, key, store_key_of_tube(key, place), value,
			  store_encode_of_tube(value, place));
	store_tubes_enter(store, place);
}

static void delete_entry(struct store *store, const struct job_place *place)
{
	uint8_t key[STORE_KEY_MAX];

	batch_delete(store, key, store_key_place(key, place));
	if (store_key_tube_kind(place->state))
		batch_delete(store, key, store_key_of_tube(key, place));
	store_tubes_leave(store, place);
}

static void put_record(struct store *store, const struct job_record *record)
{
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];

	batch_put(store, key, store_key_id(key, 'j', record->place.id), value,
		  store_encode_job(value, record));
	touch(store, record->place.id % TOUCHED_BITS);
}

static void delete_of_id(struct store *store, char kind, uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];

	batch_delete(store, key, store_key_id(key, kind, id));
	touch(store, id % TOUCHED_BITS);
}

static void put_key(struct store *store, const struct job_record *record)
{
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
	size_t len = store_key_unique(key, record->place.tube, record->key, record->key_len);

	batch_put(store, key, len, value, store_encode_u64(value, record->place.id));
	touch(store, bit_of_key(record->place.tube, record->key, record->key_len));
}

/*
 * A batch becomes one table, however large it is, and a compaction reads a fixed number of
 * tables: a batch of the jobs of many clients must not become a table that the disk has no
 * room to compact. A put is the first change of its command, so no command is split.
 */
static void bound_batch(struct store *store)
{
	size_t bytes;

	rocksdb_writebatch_data(store->batch, &bytes);
	if (bytes >= store->write_buffer)
		end_batch(store);
}

size_t store_move_bytes(const struct job_record *record)
{
	return MOVE_BYTES + record->key_len + record->reason_len;
}

/* A batch becomes one table; the reserve has room for a table of this size: rocksdb.c. */
size_t store_move_bytes_most(const struct store *store)
{
	return store->space.reserve / 16;
}

void store_put(struct store *store, const struct job_record *record, const void *body)
{
	uint64_t id = record->place.id;

	bound_batch(store);
	store_replace_body(store, id, body, record->body_len);
	put_record(store, record);
	put_entry(store, &record->place);
	if (record->key_len)
		put_key(store, record);
	if (record->origin)
		store_count_died(store, record->origin, 1);
	store_use_id(store, id);
}

void store_skip_ids(struct store *store, uint64_t last)
{
	if (store->next_id <= last)
		store->next_id = last + 1;
	store->next_id += IDS_SKIPPED;
	put_number(store, NUMBER_NEXT_ID, store->next_id);
}

void store_move(struct store *store, const struct job_place *old,
		const struct job_record *record)
{
	delete_entry(store, old);
	put_entry(store, &record->place);
	put_record(store, record);
	delete_of_id(store, 'v', record->place.id);
}

void store_replace_body(struct store *store, uint64_t id, const void *body, size_t len)
{
	uint8_t key[STORE_KEY_MAX];

	batch_put(store, key, store_key_id(key, 'p', id), body, len);
	touch(store, id % TOUCHED_BITS);
}

void store_delete(struct store *store, const struct job_place *old, const char *key,
		  size_t key_len)
{
	delete_entry(store, old);
	delete_of_id(store, 'j', old->id);
	delete_of_id(store, 'p', old->id);
	delete_of_id(store, 'v', old->id);
	if (key_len)
		store_drop_key(store, old->tube, key, key_len);
	store->deletes = true;
}

void store_mark(struct store *store, uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];

	batch_put(store, key, store_key_id(key, 'v', id), "", 0);
	touch(store, id % TOUCHED_BITS);
}

void store_drop_key(struct store *store, uint32_t tube, const char *unique, size_t len)
{
	uint8_t key[STORE_KEY_MAX];

	batch_delete(store, key, store_key_unique(key, tube, unique, len));
	touch(store, bit_of_key(tube, unique, len));
}

void store_put_tube(struct store *store, const struct tube_record *record)
{
	uint8_t key[STORE_KEY_MAX], value[3 + 2 * 4 + 3 * 8 + 2 * TUBE_NAME_MAX];

	batch_put(store, key, store_key_tube(key, 't', record->tube), value,
		  store_encode_tube(value, record));
}

void store_delete_tube(struct store *store, uint32_t tube)
{
	uint8_t key[STORE_KEY_MAX];

	batch_delete(store, key, store_key_tube(key, 't', tube));
	batch_delete(store, key, store_key_tube(key, 'c', tube));
	store_tubes_forget(store, tube);
}

void store_put_number(struct store *store, const char *name, uint64_t number)
{
	put_number(store, name, number);
	touch(store, bit_of_key(0, name, strlen(name)));
}

void store_delete_raw(struct store *store, const void *key, size_t key_len)
{
	batch_delete(store, key, key_len);
}

void store_drop_job(struct store *store, uint64_t id)
{
	delete_of_id(store, 'j', id);
	delete_of_id(store, 'p', id);
	delete_of_id(store, 'v', id);
}

void store_keep_job(struct store *store, const struct job_record *record)
{
	put_record(store, record);
	put_entry(store, &record->place);
	if (record->key_len)
		put_key(store, record);
	if (record->origin)
		store_count_died(store, record->origin, 1);
}

/* --- for the other files of store/ ---------------------------------------------------------- */

void store_batch_put(struct store *store, const void *key, size_t key_len, const void *value,
		     size_t len)
{
	batch_put(store, key, key_len, value, len);
}

void store_batch_bound(struct store *store)
{
	bound_batch(store);
}

void store_touch_id(struct store *store, uint64_t id)
{
	touch(store, id % TOUCHED_BITS);
}

void store_touch_key(struct store *store, uint32_t tube, const char *key, size_t len)
{
	touch(store, bit_of_key(tube, key, len));
}

void store_use_id(struct store *store, uint64_t id)
{
	if (id < store->next_id)
		return;
	store->next_id = id + 1;
	store->next_id_changed = true;
}

/* --- commits ------------------------------------------------------------------------------ */

uint64_t store_commit(struct store *store)
{
	if (!store->changed)
		return store->commits;
	end_batch(store);
	store->changed = false;
	store->commits++;
	store_sync_commit(store);
	return store->commits;
}

uint64_t store_seq(const struct store *store)
{
	return store->commits + 1;
}

uint64_t store_last(const struct store *store)
{
	return store->commits + store->changed;
}
