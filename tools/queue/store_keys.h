/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How jobs and tubes are written down: keys and values of the store.
 *
 *	key				value
 *	'j' id				a job's record, see store_keys.c
 *	'p' id				its body
 *	'r' tube pri id			keyed			READY
 *	'd' due id			tube pri keyed		DELAYED
 *	'w' due id			tube pri keyed		WALL
 *	'q' tube due id			pri keyed		DELAYED, by tube
 *	'u' tube due id			pri keyed		WALL, by tube
 *	'b' tube order id		pri keyed		BURIED
 *	'v' id				nothing			it was reserved
 *	'k' tube key			id
 *	't' tube			name and policy
 *	'c' tube			counts of jobs
 *	'm' name			a number
 *
 * Numbers in keys are big-endian, so that the order of keys is that of numbers. A job has
 * exactly one entry of 'r', 'd', 'w' and 'b': that of its state; and with 'd' one of 'q', with
 * 'w' one of 'u'. Whatever is read is
 * decoded only if it is whole and makes sense; a decoder returns false otherwise.
 */
#ifndef TWHEELQ_STORE_KEYS_H
#define TWHEELQ_STORE_KEYS_H

#include "record.h"

/* Numbers have names of so many letters at most. */
#define STORE_NUMBER_NAME_MAX	16
/* The longest key is that of a job's key; the longest value but a body is a record. */
#define STORE_KEY_MAX		(1 + 4 + JOB_KEY_MAX)
#define STORE_VALUE_MAX		(128 + JOB_KEY_MAX + JOB_REASON_MAX)

/* Each writes a key to a buffer of STORE_KEY_MAX bytes, and returns its length. */
size_t store_key_id(uint8_t *key, char kind, uint64_t id);
size_t store_key_tube(uint8_t *key, char kind, uint32_t tube);
size_t store_key_unique(uint8_t *key, uint32_t tube, const char *unique, size_t len);
size_t store_key_number(uint8_t *key, const char *name);
size_t store_key_place(uint8_t *key, const struct job_place *place);

/* DELAYED and WALL: the entry by tube; the kind of that index, which others have not: 0. */
size_t store_key_of_tube(uint8_t *key, const struct job_place *place);
char store_key_tube_kind(enum job_state state);

/* The kind of the index of a state. */
char store_key_kind(enum job_state state);

/* What all keys of an index begin with: of a tube, where it goes by tube. */
size_t store_key_prefix(uint8_t *key, const struct job_place *place);

/* Values; each returns the length, in a buffer of STORE_VALUE_MAX bytes. */
size_t store_encode_place(uint8_t *value, const struct job_place *place);
size_t store_encode_of_tube(uint8_t *value, const struct job_place *place);
size_t store_encode_job(uint8_t *value, const struct job_record *record);
size_t store_encode_tube(uint8_t *value, const struct tube_record *record);
size_t store_encode_counts(uint8_t *value, const struct tube_counts *counts);
size_t store_encode_u64(uint8_t *value, uint64_t number);

/* The other way round. */
bool store_decode_id(const void *key, size_t key_len, char kind, uint64_t *id);
bool store_decode_place(const void *key, size_t key_len, const void *value, size_t len,
			struct job_place *place);
bool store_decode_job(uint64_t id, const void *value, size_t len,
		      struct job_record *record);
bool store_decode_tube(const void *key, size_t key_len, const void *value, size_t len,
		       struct tube_record *record);
bool store_decode_counts(const void *key, size_t key_len, const void *value, size_t len,
			 uint32_t *tube, struct tube_counts *counts);
bool store_decode_u64(const void *value, size_t len, uint64_t *number);

#endif /* TWHEELQ_STORE_KEYS_H */
