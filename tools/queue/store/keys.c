// SPDX-License-Identifier: GPL-2.0
/*
 * The format on disk, see keys.h.
 *
 * The record of a job is: form (1 byte), state (1), keyed (1), key_len (1), reason_len (2),
 * tube, pri, body_len, reserves, timeouts, releases, buries, kicks, attempts, origin (4
 * each), order, created, delay, ttr, died (8 each), the key, the reason. In the second form,
 * of a job of a schedule, schedule and missed (8 each) come before the key. The flags of an
 * entry of an index are keyed, and twice scheduled. The record of a tube
 * is: form, length of its name, length of the name of the policy's dead tube (1 each),
 * max_attempts, jitter (4 each), base, cap, factor (8 each), the two names. All numbers
 * are big-endian.
 */
#include <string.h>

#include "common/util.h"
#include "queue/store/bytes.h"
#include "queue/store/keys.h"
#include "queue/store/record.h"

#define FORM 1
#define FORM_SCHEDULED 2

/* --- keys ------------------------------------------------------------------------------- */

char store_key_kind(enum job_state state)
{
	static const char kinds[] = {
		[JOB_READY] = 'r', [JOB_DELAYED] = 'd', [JOB_WALL] = 'w', [JOB_BURIED] = 'b',
	};

	return kinds[state];
}

size_t store_key_id(uint8_t *key, char kind, uint64_t id)
{
	key[0] = (uint8_t)kind;
	return (size_t)(add_u64(key + 1, id) - key);
}

size_t store_key_tube(uint8_t *key, char kind, uint32_t tube)
{
	key[0] = (uint8_t)kind;
	return (size_t)(add_u32(key + 1, tube) - key);
}

size_t store_key_unique(uint8_t *key, uint32_t tube, const char *unique, size_t len)
{
	key[0] = 'k';
	return (size_t)(add_bytes(add_u32(key + 1, tube), unique, len) - key);
}

size_t store_key_number(uint8_t *key, const char *name)
{
	key[0] = 'm';
	return (size_t)(add_bytes(key + 1, name, strnlen(name, STORE_NUMBER_NAME_MAX)) - key);
}

static bool by_tube(enum job_state state)
{
	return state == JOB_READY || state == JOB_BURIED;
}

size_t store_key_prefix(uint8_t *key, const struct job_place *place)
{
	char kind = store_key_kind(place->state);

	if (by_tube(place->state))
		return store_key_tube(key, kind, place->tube);
	key[0] = (uint8_t)kind;
	return 1;
}

size_t store_key_place(uint8_t *key, const struct job_place *place)
{
	uint8_t *at = key + store_key_prefix(key, place);

	if (place->state == JOB_READY)
		at = add_u32(at, place->pri);
	else
		at = add_u64(at, place->order);
	return (size_t)(add_u64(at, place->id) - key);
}

char store_key_tube_kind(enum job_state state)
{
	switch (state) {
	case JOB_DELAYED:
		return 'q';
	case JOB_WALL:
		return 'u';
	default:
		return 0;
	}
}

size_t store_key_of_tube(uint8_t *key, const struct job_place *place)
{
	uint8_t *at = key + store_key_tube(key, store_key_tube_kind(place->state), place->tube);

	at = add_u64(at, place->order);
	return (size_t)(add_u64(at, place->id) - key);
}

bool store_decode_id(const void *key, size_t key_len, char kind, uint64_t *id)
{
	const uint8_t *at = key;

	if (key_len != 9 || *at++ != (uint8_t)kind)
		return false;
	*id = get_u64(&at);
	return true;
}

/* --- entries of an index ------------------------------------------------------------------ */

static uint8_t flags_of(const struct job_place *place)
{
	return (uint8_t)(place->keyed | place->scheduled << 1);
}

size_t store_encode_place(uint8_t *value, const struct job_place *place)
{
	uint8_t *at = value;

	if (!by_tube(place->state))
		at = add_u32(at, place->tube);
	if (place->state != JOB_READY)
		at = add_u32(at, place->pri);
	*at++ = flags_of(place);
	return (size_t)(at - value);
}

size_t store_encode_of_tube(uint8_t *value, const struct job_place *place)
{
	uint8_t *at = add_u32(value, place->pri);

	*at++ = flags_of(place);
	return (size_t)(at - value);
}

/* Length of keys and values of an index, and whether the key has the tube. */
static const struct index_form {
	char kind;
	uint8_t state;
	bool by_tube;
	uint8_t key_len;
	uint8_t len;
} index_forms[] = {
	{ 'r', JOB_READY, true, 1 + 4 + 4 + 8, 1 },
	{ 'd', JOB_DELAYED, false, 1 + 8 + 8, 4 + 4 + 1 },
	{ 'w', JOB_WALL, false, 1 + 8 + 8, 4 + 4 + 1 },
	{ 'b', JOB_BURIED, true, 1 + 4 + 8 + 8, 4 + 1 },
	{ 'q', JOB_DELAYED, true, 1 + 4 + 8 + 8, 4 + 1 },
	{ 'u', JOB_WALL, true, 1 + 4 + 8 + 8, 4 + 1 },
};

static const struct index_form *form_of(char kind, size_t key_len, size_t len)
{
	const struct index_form *form;

	for (form = index_forms; form < index_forms + ARRAY_SIZE(index_forms); form++)
		if (form->kind == kind)
			return form->key_len == key_len && form->len == len ? form : NULL;
	return NULL;
}

bool store_decode_place(const void *key, size_t key_len, const void *value, size_t len,
			struct job_place *place)
{
	const uint8_t *at = key, *in_value = value;
	const struct index_form *form;

	memset(place, 0, sizeof(*place));
	form = key_len ? form_of((char)*at++, key_len, len) : NULL;
	if (!form)
		return false;
	place->state = form->state;
	place->tube = get_u32(form->by_tube ? &at : &in_value);
	place->pri = get_u32(place->state == JOB_READY ? &at : &in_value);
	if (place->state != JOB_READY)
		place->order = get_u64(&at);
	place->id = get_u64(&at);
	place->keyed = *in_value & 1;
	place->scheduled = *in_value >> 1;
	return place->scheduled <= 1;
}

/* --- records ---------------------------------------------------------------------------- */

#define JOB_HEAD_LEN	(6 + 10 * 4 + 5 * 8)
#define SCHEDULED_LEN	(2 * 8)

size_t store_encode_job(uint8_t *value, const struct job_record *record)
{
	const struct job_place *place = &record->place;
	uint8_t *at = value;

	*at++ = record->schedule ? FORM_SCHEDULED : FORM;
	*at++ = place->state;
	*at++ = place->keyed;
	*at++ = (uint8_t)record->key_len;
	*at++ = (uint8_t)(record->reason_len >> 8);
	*at++ = (uint8_t)record->reason_len;
	at = add_u32(at, place->tube);
	at = add_u32(at, place->pri);
	at = add_u32(at, record->body_len);
	at = add_u32(at, record->reserves);
	at = add_u32(at, record->timeouts);
	at = add_u32(at, record->releases);
	at = add_u32(at, record->buries);
	at = add_u32(at, record->kicks);
	at = add_u32(at, record->attempts);
	at = add_u32(at, record->origin);
	at = add_u64(at, place->order);
	at = add_u64(at, record->created_ns);
	at = add_u64(at, record->delay_ns);
	at = add_u64(at, record->ttr_ns);
	at = add_u64(at, record->died_ns);
	if (record->schedule) {
		at = add_u64(at, record->schedule);
		at = add_u64(at, record->missed);
	}
	at = add_bytes(at, record->key, record->key_len);
	at = add_bytes(at, record->reason, record->reason_len);
	return (size_t)(at - value);
}

static void get_job_numbers(const uint8_t **at, struct job_record *record)
{
	record->place.tube = get_u32(at);
	record->place.pri = get_u32(at);
	record->body_len = get_u32(at);
	record->reserves = get_u32(at);
	record->timeouts = get_u32(at);
	record->releases = get_u32(at);
	record->buries = get_u32(at);
	record->kicks = get_u32(at);
	record->attempts = get_u32(at);
	record->origin = get_u32(at);
	record->place.order = get_u64(at);
	record->created_ns = get_u64(at);
	record->delay_ns = get_u64(at);
	record->ttr_ns = get_u64(at);
	record->died_ns = get_u64(at);
	if (!record->place.scheduled)
		return;
	record->schedule = get_u64(at);
	record->missed = get_u64(at);
}

static bool is_valid_job(const struct job_record *record, size_t len)
{
	return record->place.state <= JOB_BURIED && record->place.keyed <= 1 &&
		record->key_len <= JOB_KEY_MAX && record->reason_len <= JOB_REASON_MAX &&
		len == JOB_HEAD_LEN + (record->place.scheduled ? SCHEDULED_LEN : 0) +
			       (size_t)record->key_len + record->reason_len;
}

bool store_decode_job(uint64_t id, const void *value, size_t len,
		      struct job_record *record)
{
	const uint8_t *at = value;

	memset(record, 0, sizeof(*record));
	if (len < JOB_HEAD_LEN || (*at != FORM && *at != FORM_SCHEDULED))
		return false;
	record->place.scheduled = *at++ == FORM_SCHEDULED;
	record->place.id = id;
	record->place.state = *at++;
	record->place.keyed = *at++;
	record->key_len = *at++;
	record->reason_len = (uint16_t)(at[0] << 8 | at[1]);
	at += 2;
	if (!is_valid_job(record, len))
		return false;
	get_job_numbers(&at, record);
	get_bytes(&at, record->key, record->key_len);
	get_bytes(&at, record->reason, record->reason_len);
	return true;
}

#define TUBE_HEAD_LEN	(3 + 2 * 4 + 3 * 8)

size_t store_encode_tube(uint8_t *value, const struct tube_record *record)
{
	const struct retry_policy *policy = &record->policy;
	size_t name_len = strnlen(record->name, TUBE_NAME_MAX);
	size_t dead_len = strnlen(policy->dead, TUBE_NAME_MAX);
	uint64_t factor;
	uint8_t *at = value;

	memcpy(&factor, &policy->factor, sizeof(factor));
	*at++ = FORM;
	*at++ = (uint8_t)name_len;
	*at++ = (uint8_t)dead_len;
	at = add_u32(at, policy->max_attempts);
	at = add_u32(at, policy->jitter_percent);
	at = add_u64(at, policy->base_ns);
	at = add_u64(at, policy->cap_ns);
	at = add_u64(at, factor);
	at = add_bytes(at, record->name, name_len);
	at = add_bytes(at, policy->dead, dead_len);
	return (size_t)(at - value);
}

static void get_policy_numbers(const uint8_t **at, struct retry_policy *policy)
{
	uint64_t factor;

	policy->max_attempts = get_u32(at);
	policy->jitter_percent = get_u32(at);
	policy->base_ns = get_u64(at);
	policy->cap_ns = get_u64(at);
	factor = get_u64(at);
	memcpy(&policy->factor, &factor, sizeof(factor));
}

bool store_decode_tube(const void *key, size_t key_len, const void *value, size_t len,
		       struct tube_record *record)
{
	const uint8_t *at = key, *in_value = value;
	size_t name_len, dead_len;

	memset(record, 0, sizeof(*record));
	if (key_len != 5 || *at++ != 't' || len < TUBE_HEAD_LEN || *in_value != FORM)
		return false;
	record->tube = get_u32(&at);
	name_len = in_value[1];
	dead_len = in_value[2];
	if (!name_len || name_len > TUBE_NAME_MAX || dead_len > TUBE_NAME_MAX ||
	    len != TUBE_HEAD_LEN + name_len + dead_len)
		return false;
	in_value += 3;
	get_policy_numbers(&in_value, &record->policy);
	get_bytes(&in_value, record->name, name_len);
	get_bytes(&in_value, record->policy.dead, dead_len);
	return true;
}

size_t store_encode_counts(uint8_t *value, const struct tube_counts *counts)
{
	uint8_t *at = value;
	size_t i;

	for (i = 0; i < 4; i++)
		at = add_u64(at, counts->nr[i]);
	at = add_u64(at, counts->urgent);
	at = add_u64(at, counts->died);
	if (counts->schedules)
		at = add_u64(at, counts->schedules);
	return (size_t)(at - value);
}

bool store_decode_counts(const void *key, size_t key_len, const void *value, size_t len,
			 uint32_t *tube, struct tube_counts *counts)
{
	const uint8_t *at = key, *in_value = value;
	size_t i;

	/* Earlier versions did not count the dead; schedules are written if there are any. */
	if (key_len != 5 || *at++ != 'c' || (len != 7 * 8 && len != 6 * 8 && len != 5 * 8))
		return false;
	*tube = get_u32(&at);
	for (i = 0; i < 4; i++)
		counts->nr[i] = get_u64(&in_value);
	counts->urgent = get_u64(&in_value);
	counts->died = len > 5 * 8 ? get_u64(&in_value) : 0;
	counts->schedules = len > 6 * 8 ? get_u64(&in_value) : 0;
	return true;
}

size_t store_encode_u64(uint8_t *value, uint64_t number)
{
	return (size_t)(add_u64(value, number) - value);
}

bool store_decode_u64(const void *value, size_t len, uint64_t *number)
{
	const uint8_t *at = value;

	if (len != 8)
		return false;
	*number = get_u64(&at);
	return true;
}
