// SPDX-License-Identifier: GPL-2.0
/* The ids of records that were taken back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "relay/rules/cancelled.h"

#define SLOTS_MIN	64

/**
 * struct cancelled_entry - an id
 * @next: in the same slot.
 * @hash: of the id.
 * @due_ms: when its record is due.
 * @len: its length.
 * @id: the id.
 */
struct cancelled_entry {
	struct cancelled_entry *next;
	uint64_t hash;
	uint64_t due_ms;
	size_t len;
	char id[];
};

/* FNV-1a, and the finish of splitmix64, as the low bits choose the slot. */
static uint64_t hash_of(const void *id, size_t len)
{
	const unsigned char *byte = id;
	uint64_t hash = 0xcbf29ce484222325;
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3;
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
	return hash ^ hash >> 31;
}

static size_t bytes_of(size_t len)
{
	return sizeof(struct cancelled_entry) + len;
}

static struct cancelled_entry **slot_of(const struct cancelled *set, uint64_t hash)
{
	return &set->slots[hash & (set->nr_slots - 1)];
}

/* Where the id is in its slot; or the end of that, if it is not there. NULL: no table. */
static struct cancelled_entry **find(const struct cancelled *set, const void *id, size_t len,
				     uint64_t hash)
{
	struct cancelled_entry **at;

	if (!set->nr_slots)
		return NULL;
	for (at = slot_of(set, hash); *at; at = &(*at)->next)
		if ((*at)->hash == hash && (*at)->len == len && !memcmp((*at)->id, id, len))
			break;
	return at;
}

static void move_entries(struct cancelled *from, struct cancelled *to)
{
	size_t i;

	for (i = 0; i < from->nr_slots; i++) {
		while (from->slots[i]) {
			struct cancelled_entry *entry = from->slots[i];
			struct cancelled_entry **slot = slot_of(to, entry->hash);

			from->slots[i] = entry->next;
			entry->next = *slot;
			*slot = entry;
		}
	}
}

/* Make room for one more entry: slots have one on average at most. */
static int grow(struct cancelled *set)
{
	struct cancelled larger = *set;

	if (set->nr < set->nr_slots)
		return 0;
	larger.nr_slots = set->nr_slots ? set->nr_slots * 2 : SLOTS_MIN;
	larger.slots = calloc(larger.nr_slots, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	larger.bytes += (larger.nr_slots - set->nr_slots) * sizeof(*set->slots);
	move_entries(set, &larger);
	free(set->slots);
	*set = larger;
	return 0;
}

static int add_new(struct cancelled *set, const void *id, size_t len, uint64_t hash,
		   uint64_t due_ms)
{
	struct cancelled_entry *entry = malloc(bytes_of(len));
	struct cancelled_entry **slot;

	if (!entry || grow(set)) {
		free(entry);
		return -ENOMEM;
	}
	slot = slot_of(set, hash);
	*entry = (struct cancelled_entry){ *slot, hash, due_ms, len };
	memcpy(entry->id, id, len);
	*slot = entry;
	set->bytes += bytes_of(len);
	set->nr++;
	return 0;
}

int cancelled_add(struct cancelled *set, const void *id, size_t len, uint64_t due_ms)
{
	uint64_t hash = hash_of(id, len);
	struct cancelled_entry **at = find(set, id, len, hash);
	int error = 0;

	if (at && *at)
		(*at)->due_ms = due_ms;
	else
		error = add_new(set, id, len, hash, due_ms);
	if (!error && (set->nr == 1 || due_ms < set->earliest_ms))
		set->earliest_ms = due_ms;
	return error;
}

bool cancelled_has(const struct cancelled *set, const void *id, size_t len)
{
	struct cancelled_entry **at = find(set, id, len, hash_of(id, len));

	return at && *at;
}

static void remove_at(struct cancelled *set, struct cancelled_entry **at)
{
	struct cancelled_entry *entry = *at;

	*at = entry->next;
	set->bytes -= bytes_of(entry->len);
	set->nr--;
	free(entry);
}

/* An empty set has no memory. */
static void free_if_empty(struct cancelled *set)
{
	if (!set->nr)
		cancelled_free(set);
}

bool cancelled_remove(struct cancelled *set, const void *id, size_t len)
{
	struct cancelled_entry **at = find(set, id, len, hash_of(id, len));

	if (!at || !*at)
		return false;
	remove_at(set, at);
	free_if_empty(set);
	return true;
}

static void expire_slot(struct cancelled *set, struct cancelled_entry **at, uint64_t until_ms,
			cancelled_gone *gone, void *context)
{
	while (*at) {
		struct cancelled_entry *entry = *at;

		if (entry->due_ms > until_ms) {
			set->earliest_ms = MIN(set->earliest_ms, entry->due_ms);
			at = &entry->next;
			continue;
		}
		gone(context, entry->id, entry->len);
		remove_at(set, at);
	}
}

size_t cancelled_expire(struct cancelled *set, uint64_t now_ms, uint64_t keep_ms, size_t most,
			cancelled_gone *gone, void *context)
{
	size_t before = set->nr, i;

	if (!before || now_ms < keep_ms || set->earliest_ms > now_ms - keep_ms)
		return 0;
	set->earliest_ms = UINT64_MAX;
	for (i = 0; i < set->nr_slots && before - set->nr < most; i++)
		expire_slot(set, &set->slots[i], now_ms - keep_ms, gone, context);
	/* Of those in the other slots nothing is known. */
	if (i < set->nr_slots)
		set->earliest_ms = 0;
	before -= set->nr;
	free_if_empty(set);
	return before;
}

void cancelled_free(struct cancelled *set)
{
	size_t i;

	for (i = 0; i < set->nr_slots; i++)
		while (set->slots[i])
			remove_at(set, &set->slots[i]);
	free(set->slots);
	*set = (struct cancelled){ 0 };
}

size_t cancelled_value_write(uint64_t due_ms, char text[24])
{
	return snprintf(text, 24, "%" PRIu64, due_ms);
}

bool cancelled_value_read(const void *value, size_t len, uint64_t *due_ms)
{
	const unsigned char *digit = value;
	size_t i;

	*due_ms = 0;
	for (i = 0; i < len; i++) {
		if (digit[i] < '0' || digit[i] > '9' || *due_ms > (INT64_MAX - 9) / 10)
			return false;
		*due_ms = *due_ms * 10 + digit[i] - '0';
	}
	return len;
}
