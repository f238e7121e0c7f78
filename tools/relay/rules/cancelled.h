/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ids of records that were taken back, of one partition number. It is what the compacted
 * topic "delays-cancelled" says: its keys are ids, its values are when these records are due, in
 * ms since 1970, as decimal digits. An entry is kept until that time and RELAY_CANCEL_KEEP_MS;
 * then nobody can ask for it any more, and a tombstone removes it from the topic.
 *
 * It is a hash table with a list in each slot. Callers serialize. All zeros is an empty set.
 */
#ifndef RELAY_RULES_CANCELLED_H
#define RELAY_RULES_CANCELLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long an entry is kept after its record is due; not scaled. */
#define RELAY_CANCEL_KEEP_MS	(3600 * 1000ULL)

struct cancelled_entry;

/**
 * struct cancelled - a set of ids
 * @slots: the table.
 * @nr_slots: its length, a power of two; 0: it has no memory yet.
 * @nr: the number of ids.
 * @bytes: the memory that it takes, the table's included.
 * @earliest_ms: no record of the set is due earlier.
 */
struct cancelled {
	struct cancelled_entry **slots;
	size_t nr_slots;
	size_t nr;
	size_t bytes;
	uint64_t earliest_ms;
};

void cancelled_free(struct cancelled *set);

/* Add an id, or replace the time of one. Returns 0 or -ENOMEM, and then changes nothing. */
int cancelled_add(struct cancelled *set, const void *id, size_t len, uint64_t due_ms);

bool cancelled_has(const struct cancelled *set, const void *id, size_t len);

/* Remove an id: a tombstone was read. Returns false if there is no such id. */
bool cancelled_remove(struct cancelled *set, const void *id, size_t len);

/* Called for an id before it is removed; it must not change the set. */
typedef void cancelled_gone(void *context, const void *id, size_t len);

/*
 * Remove the ids whose record was due @keep_ms ago or earlier; when about @most are removed, the
 * others stay until the next call. @gone is called for each of them. This visits all ids if there
 * is one to remove, otherwise it most often visits none. Returns the number of those that were
 * removed.
 */
size_t cancelled_expire(struct cancelled *set, uint64_t now_ms, uint64_t keep_ms, size_t most,
			cancelled_gone *gone, void *context);

/* Write the value of an entry, without a NUL. Returns its length. */
size_t cancelled_value_write(uint64_t due_ms, char text[24]);

/* Returns false if it is not such a value. */
bool cancelled_value_read(const void *value, size_t len, uint64_t *due_ms);

#endif /* RELAY_RULES_CANCELLED_H */
