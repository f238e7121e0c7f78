/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which records of a partition were replayed: a set of offsets, as ranges. It is kept as the
 * committed offset of a consumer group, below which all were replayed, and text with it:
 *
 *	"r1:" begin "-" end "," begin "-" end ...
 *
 * A range has its first offset and the one after its last, in decimal. Ranges are in order, and
 * between two there is at least one offset that was not replayed.
 */
#ifndef RELAY_CLI_REPLAYED_H
#define RELAY_CLI_REPLAYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With its NUL. The default of brokers' limit is 4096 bytes. */
#define REPLAYED_TEXT_MAX	4096

struct replayed_range {
	int64_t begin;
	int64_t end;
};

/**
 * struct replayed - the offsets that were replayed
 * @low: all offsets below it were.
 * @range: ranges above it, in their order.
 * @nr: how many there are.
 * @room: for how many there is memory.
 */
struct replayed {
	int64_t low;
	struct replayed_range *range;
	size_t nr;
	size_t room;
};

/* Begin with a commit; @text may be NULL. A text that is not valid counts as empty. */
void replayed_init(struct replayed *set, int64_t low, const char *text, size_t len);
void replayed_free(struct replayed *set);

bool replayed_has(const struct replayed *set, int64_t offset);

/* Offsets are added in any order. Returns 0 or -ENOMEM. */
int replayed_add(struct replayed *set, int64_t offset);

/* There are no records below this offset any more: they count as replayed. */
void replayed_raise(struct replayed *set, int64_t low);

/*
 * Write the text, of as many ranges as there is room for, from the first one on; it is empty
 * without ranges. Returns how many offsets are left out, which will not count as replayed.
 */
uint64_t replayed_write(const struct replayed *set, char text[REPLAYED_TEXT_MAX]);

#endif /* RELAY_CLI_REPLAYED_H */
