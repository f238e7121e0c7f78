/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The format on disk: keys and values of the store.
 *
 *	key				value
 *	'j' id				record of the job, see keys.c
 *	'p' id				body of the job
 *	'r' tube pri id			flags			READY
 *	'd' due id			tube pri flags		DELAYED
 *	'w' due id			tube pri flags		WALL
 *	'q' tube due id			pri flags		DELAYED, by tube
 *	'u' tube due id			pri flags		WALL, by tube
 *	'b' tube order id		pri flags		BURIED
 *	'v' id				empty			reserved mark
 *	'k' tube key			id
 *	't' tube			name and policy
 *	'c' tube			counts of jobs
 *	'm' name			a number
 *	'e' id				record of a schedule, see schedule.h
 *	'f' id				body of its jobs
 *	'n' tube name			id of a schedule
 *	's' time id			empty			when to look at a schedule
 *
 * Numbers in keys are big-endian, so that keys sort as the numbers do. A job has exactly one
 * entry of 'r', 'd', 'w' and 'b': that of its state. A job with an entry 'd' also has an
 * entry 'q', and a job with an entry 'w' also an entry 'u'. A decoder returns false unless
 * the key and the value have the right length and valid contents.
 */
#ifndef QUEUE_STORE_KEYS_H
#define QUEUE_STORE_KEYS_H

#include "queue/store/record.h"

/* The longest name of a number. */
#define STORE_NUMBER_NAME_MAX	16
/*
 * The longest key is a 'k', and a walk may begin a byte behind one; the longest value, except
 * bodies, is the record of a job.
 */
#define STORE_KEY_MAX		(1 + 4 + JOB_KEY_MAX + 1)
#define STORE_VALUE_MAX		(128 + JOB_KEY_MAX + JOB_REASON_MAX)

/* Each writes a key to a buffer of STORE_KEY_MAX bytes and returns its length. */
size_t store_key_id(uint8_t *key, char kind, uint64_t id);
size_t store_key_tube(uint8_t *key, char kind, uint32_t tube);
size_t store_key_unique(uint8_t *key, uint32_t tube, const char *unique, size_t len);
size_t store_key_number(uint8_t *key, const char *name);
size_t store_key_place(uint8_t *key, const struct job_place *place);

/* The entry by tube, for DELAYED and WALL; and the kind of that index, 0 for other states. */
size_t store_key_of_tube(uint8_t *key, const struct job_place *place);
char store_key_tube_kind(enum job_state state);

/* The kind of the index of a state. */
char store_key_kind(enum job_state state);

/* The prefix of all keys of an index; for READY and BURIED, of one tube in that index. */
size_t store_key_prefix(uint8_t *key, const struct job_place *place);

/* Each writes a value to a buffer of STORE_VALUE_MAX bytes and returns its length. */
size_t store_encode_place(uint8_t *value, const struct job_place *place);
size_t store_encode_of_tube(uint8_t *value, const struct job_place *place);
size_t store_encode_job(uint8_t *value, const struct job_record *record);
size_t store_encode_tube(uint8_t *value, const struct tube_record *record);
size_t store_encode_counts(uint8_t *value, const struct tube_counts *counts);
size_t store_encode_u64(uint8_t *value, uint64_t number);

/* Decoders; each returns false if the bytes are not of this format. */
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

#endif /* QUEUE_STORE_KEYS_H */
