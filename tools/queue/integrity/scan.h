/* SPDX-License-Identifier: GPL-2.0 */
/* A scan: read and decode every entry of a store. */
#ifndef QUEUE_INTEGRITY_SCAN_H
#define QUEUE_INTEGRITY_SCAN_H

#include "queue/store/config.h"
#include "queue/store/record.h"
#include "queue/store/schedule.h"

/**
 * struct store_entry - an entry that a scan has read
 * @kind: first letter of the key.
 * @sound: the entry could be decoded; if not, @job and @tube are not valid.
 * @key: the key.
 * @key_len: length of @key.
 * @value: the value.
 * @value_len: length of @value.
 * @job: 'j': the record; an entry of an index: its place; 'p', 'v': its id.
 * @tube: 't': the record.
 * @schedule: 'e': the record; 'f': its id; 's': its id, and the time as @at_ns.
 */
struct store_entry {
	char kind;
	bool sound;
	const char *key;
	size_t key_len;
	const char *value;
	size_t value_len;
	struct job_record job;
	struct tube_record tube;
	struct schedule_record schedule;
};

/*
 * Call @each for every entry whose kind is @first or greater, in the order of keys, until it
 * returns false. Returns 0, -EBADMSG or -EIO.
 */
int store_scan_entries(struct store *store, char first,
		       bool (*each)(void *context, const struct store_entry *entry),
		       void *context);
/* The same from a key on, but without the changes in the batch. Any thread may call it. */
int store_scan_from(struct store *store, const char *from, size_t len,
		    bool (*each)(void *context, const struct store_entry *entry), void *context);
/* Returns whether the entry is a sound one of an index by state. */
bool store_is_place(const struct store_entry *entry);
/* Read every entry, and compare the counts with the indexes. Returns 0, -EBADMSG or -EIO. */
int store_scan(struct store *store);

#endif /* QUEUE_INTEGRITY_SCAN_H */
