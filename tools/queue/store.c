// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of the store: from calls to a batch, and from the batch to RocksDB.
 *
 * Changes collect in a batch in memory. It is handed to RocksDB, whole, by store_commit(),
 * or before that by whatever reads something that the batch has a change of. RocksDB puts
 * it into its memory and into the buffer of its log as one record, which is on disk whole
 * or not at all; no system call is made here. With each batch go the counts of the tubes
 * that it changes, the next id, and a number that counts batches: so whatever is found
 * after a crash is the store as it was after some batch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store_internal.h"

void store_die(struct store *store, const char *what, const char *error)
{
	store_say(store, LOG_ERR, "%s: %s: %s; what was not answered yet is in doubt",
		  store->dir, what, error);
	/* A compaction has met it. */
	if (strstr(error, "Corruption"))
		store_mark_damage(store, what);
	_exit(STORE_EXIT_IO);
}

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

static bool is_touched(const struct store *store, unsigned int bit)
{
	return store->touched[bit / 64] >> bit % 64 & 1;
}

static bool is_full(const char *error)
{
	return strstr(error, "No space") || strstr(error, "Space limit");
}

/*
 * RocksDB takes no writes after it had no room for a table, until it has found some; what is
 * refused then is in no log. Any other error leaves in doubt what is on disk.
 */
static void write_batch(struct store *store)
{
	unsigned int tries = 0;
	char *error = NULL;
	size_t bytes;

	rocksdb_writebatch_data(store->batch, &bytes);
	store_space_add(store, bytes);
	for (;;) {
		rocksdb_write(store->db, store->write_options, store->batch, &error);
		if (!error)
			return;
		if (!is_full(error))
			store_die(store, "cannot write", error);
		rocksdb_free(error);
		error = NULL;
		store_space_retry(store, ++tries);
	}
}

void store_hand_over(struct store *store)
{
	if (!store->pending)
		return;
	store_tubes_write(store);
	if (store->next_id_changed)
		put_number(store, NUMBER_NEXT_ID, store->next_id);
	store->next_id_changed = false;
	put_number(store, NUMBER_CHANGES, ++store->changes);
	write_batch(store);
	/* Only now: before that there may be nothing to be given back yet. */
	if (store->deletes)
		store->space.deleted = true;
	store->deletes = false;
	rocksdb_writebatch_clear(store->batch);
	memset(store->touched, 0, sizeof(store->touched));
	store->pending = false;
}

void store_hand_over_id(struct store *store, uint64_t id)
{
	if (is_touched(store, id % TOUCHED_BITS))
		store_hand_over(store);
}

void store_hand_over_key(struct store *store, uint32_t tube, const char *key, size_t len)
{
	if (is_touched(store, bit_of_key(tube, key, len)))
		store_hand_over(store);
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
 * A batch goes to one table, however large it is, and what is merged at once is so many
 * tables: jobs of many clients are not to become one that the disk has no room to merge. A
 * put is the first change of its command, so nothing is torn apart.
 */
static void bound_batch(struct store *store)
{
	size_t bytes;

	rocksdb_writebatch_data(store->batch, &bytes);
	if (bytes >= store->write_buffer)
		store_hand_over(store);
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
	if (id >= store->next_id) {
		store->next_id = id + 1;
		store->next_id_changed = true;
	}
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
}

/* --- commits ------------------------------------------------------------------------------ */

uint64_t store_commit(struct store *store)
{
	if (!store->changed)
		return store->commits;
	store_hand_over(store);
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
