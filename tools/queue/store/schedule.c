// SPDX-License-Identifier: GPL-2.0
/*
 * Schedules on disk, see schedule.h.
 *
 * The record of a schedule is: form, length of its name (1 byte each), tube, pri, body_len (4
 * each), ttr, interval, next, at, missed, last (8 each), the name.
 */
#include <errno.h>
#include <rocksdb/c.h>
#include <string.h>

#include "queue/store/batch.h"
#include "queue/store/bytes.h"
#include "queue/store/counts.h"
#include "queue/store/fault.h"
#include "queue/store/keys.h"
#include "queue/store/read.h"
#include "queue/store/schedule.h"
#include "queue/store/state.h"

#define FORM		1
#define HEAD_LEN	(2 + 3 * 4 + 6 * 8)

uint64_t schedule_passed(const struct schedule_record *record, uint64_t now_ns)
{
	if (now_ns < record->next_ns)
		return 0;
	return (now_ns - record->next_ns) / record->interval_ns + 1;
}

/* --- keys and values ---------------------------------------------------------------------- */

size_t store_key_schedule_name(uint8_t *key, uint32_t tube, const char *name, size_t len)
{
	return (size_t)(add_bytes(key + store_key_tube(key, 'n', tube), name, len) - key);
}

size_t store_key_schedule_time(uint8_t *key, uint64_t at_ns, uint64_t id)
{
	*key = 's';
	return (size_t)(add_u64(add_u64(key + 1, at_ns), id) - key);
}

bool store_decode_schedule_time(const void *key, size_t key_len, uint64_t *at_ns, uint64_t *id)
{
	const uint8_t *at = key;

	if (key_len != 1 + 8 + 8 || *at++ != 's')
		return false;
	*at_ns = get_u64(&at);
	*id = get_u64(&at);
	return true;
}

size_t store_encode_schedule(uint8_t *value, const struct schedule_record *record)
{
	uint8_t *at = value;

	*at++ = FORM;
	*at++ = record->name_len;
	at = add_u32(at, record->tube);
	at = add_u32(at, record->pri);
	at = add_u32(at, record->body_len);
	at = add_u64(at, record->ttr_ns);
	at = add_u64(at, record->interval_ns);
	at = add_u64(at, record->next_ns);
	at = add_u64(at, record->at_ns);
	at = add_u64(at, record->missed);
	at = add_u64(at, record->last);
	return (size_t)(add_bytes(at, record->name, record->name_len) - value);
}

bool store_decode_schedule(uint64_t id, const void *value, size_t len,
			   struct schedule_record *record)
{
	const uint8_t *at = value;

	memset(record, 0, sizeof(*record));
	if (len < HEAD_LEN || *at++ != FORM)
		return false;
	record->id = id;
	record->name_len = *at++;
	if (!record->name_len || record->name_len > JOB_KEY_MAX ||
	    len != HEAD_LEN + (size_t)record->name_len)
		return false;
	record->tube = get_u32(&at);
	record->pri = get_u32(&at);
	record->body_len = get_u32(&at);
	record->ttr_ns = get_u64(&at);
	record->interval_ns = get_u64(&at);
	record->next_ns = get_u64(&at);
	record->at_ns = get_u64(&at);
	record->missed = get_u64(&at);
	record->last = get_u64(&at);
	get_bytes(&at, record->name, record->name_len);
	return record->interval_ns > 0;
}

/* --- reads -------------------------------------------------------------------------------- */

int store_get_schedule(struct store *store, uint64_t id, struct schedule_record *record)
{
	uint8_t key[STORE_KEY_MAX];
	rocksdb_pinnableslice_t *value;
	const char *bytes;
	size_t len;
	int ret;

	store_hand_over_id(store, id);
	ret = store_get_raw(store, key, store_key_id(key, 'e', id), "a schedule", &value);
	if (ret)
		return ret;
	bytes = rocksdb_pinnableslice_value(value, &len);
	if (!store_decode_schedule(id, bytes, len, record))
		ret = store_damaged(store, "a schedule", NULL);
	rocksdb_pinnableslice_destroy(value);
	return ret;
}

int store_find_schedule(struct store *store, uint32_t tube, const char *name, uint64_t *id)
{
	size_t name_len = strnlen(name, JOB_KEY_MAX), len;
	uint8_t key[STORE_KEY_MAX];
	rocksdb_pinnableslice_t *value;
	const char *bytes;
	int ret;

	store_hand_over_key(store, tube, name, name_len);
	ret = store_get_raw(store, key, store_key_schedule_name(key, tube, name, name_len),
			    "the name of a schedule", &value);
	if (ret)
		return ret;
	bytes = rocksdb_pinnableslice_value(value, &len);
	if (!store_decode_u64(bytes, len, id))
		ret = store_damaged(store, "the name of a schedule", NULL);
	rocksdb_pinnableslice_destroy(value);
	return ret;
}

int store_get_schedule_body(struct store *store, uint64_t id, const void **body, size_t *len)
{
	return store_get_body_of(store, 'f', id, body, len);
}

/* --- walks -------------------------------------------------------------------------------- */

struct time_walk {
	struct store *store;
	bool (*each)(void *context, uint64_t at_ns, uint64_t id);
	void *context;
	bool begun;
	int ret;
};

static bool walk_time(void *context, const char *key, size_t key_len, const char *value,
		      size_t len)
{
	struct time_walk *walk = context;
	uint64_t at_ns, id;

	(void)value;
	if (!store_decode_schedule_time(key, key_len, &at_ns, &id) || len) {
		walk->ret = store_damaged(walk->store, "the time of a schedule", NULL);
		return false;
	}
	if (!walk->begun)
		walk->store->schedules = (struct store_head){ .order = at_ns, .id = id };
	walk->begun = true;
	return walk->each(walk->context, at_ns, id);
}

/* From the head of the index, which moves to the first entry. */
int store_walk_schedules(struct store *store,
			 bool (*each)(void *context, uint64_t at_ns, uint64_t id),
			 void *context)
{
	struct time_walk walk = { .store = store, .each = each, .context = context };
	const struct store_head *head = &store->schedules;
	uint8_t from[STORE_KEY_MAX];
	size_t len = store_key_schedule_time(from, head->order, head->id);
	int ret;

	ret = store_each_raw(store, "s", 1, from, len, "the times of schedules", walk_time,
			     &walk);
	if (!ret && !walk.begun)
		store->schedules = (struct store_head){ .order = UINT64_MAX, .id = UINT64_MAX };
	return ret ? ret : walk.ret;
}

struct name_walk {
	struct store *store;
	bool (*each)(void *context, uint64_t id);
	void *context;
	int ret;
};

static bool walk_name(void *context, const char *key, size_t key_len, const char *value,
		      size_t len)
{
	struct name_walk *walk = context;
	uint64_t id;

	(void)key;
	(void)key_len;
	if (store_decode_u64(value, len, &id))
		return walk->each(walk->context, id);
	walk->ret = store_damaged(walk->store, "the name of a schedule", NULL);
	return false;
}

int store_list_schedules(struct store *store, uint32_t tube, const char *after,
			 bool (*each)(void *context, uint64_t id), void *context)
{
	struct name_walk walk = { .store = store, .each = each, .context = context };
	uint8_t prefix[STORE_KEY_MAX], from[STORE_KEY_MAX + 1];
	size_t prefix_len = store_key_tube(prefix, 'n', tube), len;
	int ret;

	/* The first name behind @after is that with a byte 0 more. */
	len = store_key_schedule_name(from, tube, after, strnlen(after, JOB_KEY_MAX));
	if (*after)
		from[len++] = 0;
	ret = store_each_raw(store, prefix, prefix_len, from, len, "the names of schedules",
			     walk_name, &walk);
	return ret ? ret : walk.ret;
}

/* --- changes ------------------------------------------------------------------------------ */

static void put_time(struct store *store, uint64_t at_ns, uint64_t id)
{
	struct store_head *head = &store->schedules;
	uint8_t key[STORE_KEY_MAX];

	store_batch_put(store, key, store_key_schedule_time(key, at_ns, id), "", 0);
	if (at_ns < head->order || (at_ns == head->order && id < head->id))
		*head = (struct store_head){ .order = at_ns, .id = id };
}

void store_drop_schedule_time(struct store *store, uint64_t at_ns, uint64_t id)
{
	uint8_t key[STORE_KEY_MAX];

	store_delete_raw(store, key, store_key_schedule_time(key, at_ns, id));
}

static void put_record(struct store *store, const struct schedule_record *record)
{
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];

	store_batch_put(store, key, store_key_id(key, 'e', record->id), value,
			store_encode_schedule(value, record));
	store_touch_id(store, record->id);
}

void store_keep_schedule(struct store *store, const struct schedule_record *record)
{
	uint8_t key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
	size_t len = store_key_schedule_name(key, record->tube, record->name, record->name_len);

	store_batch_put(store, key, len, value, store_encode_u64(value, record->id));
	store_touch_key(store, record->tube, record->name, record->name_len);
	put_record(store, record);
	if (record->at_ns)
		put_time(store, record->at_ns, record->id);
	store_count_schedules(store, record->tube, 1);
}

void store_put_schedule(struct store *store, const struct schedule_record *record,
			const void *body)
{
	store_batch_bound(store);
	store_replace_schedule_body(store, record->id, body, record->body_len);
	store_keep_schedule(store, record);
	store_use_id(store, record->id);
}

void store_move_schedule(struct store *store, uint64_t old_at_ns,
			 const struct schedule_record *record)
{
	if (old_at_ns)
		store_drop_schedule_time(store, old_at_ns, record->id);
	if (record->at_ns)
		put_time(store, record->at_ns, record->id);
	put_record(store, record);
}

void store_replace_schedule_body(struct store *store, uint64_t id, const void *body, size_t len)
{
	uint8_t key[STORE_KEY_MAX];

	store_batch_put(store, key, store_key_id(key, 'f', id), body, len);
	store_touch_id(store, id);
}

void store_delete_schedule(struct store *store, const struct schedule_record *record)
{
	uint8_t key[STORE_KEY_MAX];

	store_delete_raw(store, key, store_key_id(key, 'e', record->id));
	store_delete_raw(store, key, store_key_id(key, 'f', record->id));
	store_touch_id(store, record->id);
	store_delete_raw(store, key, store_key_schedule_name(key, record->tube, record->name,
							     record->name_len));
	store_touch_key(store, record->tube, record->name, record->name_len);
	if (record->at_ns)
		store_drop_schedule_time(store, record->at_ns, record->id);
	store_count_schedules(store, record->tube, -1);
	store->deletes = true;
}

void store_wake_schedule(struct store *store, uint64_t id)
{
	put_time(store, 0, id);
}
