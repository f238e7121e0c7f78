// SPDX-License-Identifier: GPL-2.0
/* Which records of a partition were replayed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/cli/replayed.h"

#define HEAD	"r1:"

/* Two numbers, and what is before and between them. */
#define RANGE_TEXT_MAX	48

/* The index of the first range that ends after an offset. */
static size_t find(const struct replayed *set, int64_t offset)
{
	size_t begin = 0, end = set->nr;

	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;

		if (set->range[middle].end > offset)
			end = middle;
		else
			begin = middle + 1;
	}
	return begin;
}

static void remove_ranges(struct replayed *set, size_t at, size_t nr)
{
	memmove(&set->range[at], &set->range[at + nr], (set->nr - at - nr) * sizeof(*set->range));
	set->nr -= nr;
}

static int insert_range(struct replayed *set, size_t at, int64_t begin, int64_t end)
{
	if (set->nr == set->room) {
		size_t room = set->room ? 2 * set->room : 16;
		struct replayed_range *range = reallocarray(set->range, room, sizeof(*range));

		if (!range)
			return -ENOMEM;
		set->range = range;
		set->room = room;
	}
	memmove(&set->range[at + 1], &set->range[at], (set->nr - at) * sizeof(*set->range));
	set->range[at] = (struct replayed_range){ begin, end };
	set->nr++;
	return 0;
}

/* The first range may begin at the low offset now. */
static void advance(struct replayed *set)
{
	size_t nr = 0;

	while (nr < set->nr && set->range[nr].begin <= set->low) {
		if (set->range[nr].end > set->low)
			set->low = set->range[nr].end;
		nr++;
	}
	if (nr)
		remove_ranges(set, 0, nr);
}

/* Read the ranges of a text. Returns false if it is not valid. */
static bool read_text(struct replayed *set, const char *text)
{
	int64_t last = set->low, begin, end;
	int used = 0;

	if (strncmp(text, HEAD, strlen(HEAD)))
		return false;
	text += strlen(HEAD);
	while (sscanf(text, "%" SCNd64 "-%" SCNd64 "%n", &begin, &end, &used) == 2) {
		if (begin <= last || end <= begin || insert_range(set, set->nr, begin, end))
			return false;
		last = end;
		text += used;
		if (!*text)
			return true;
		if (*text++ != ',')
			return false;
	}
	return false;
}

void replayed_init(struct replayed *set, int64_t low, const char *text, size_t len)
{
	char *copy = text ? strndup(text, len) : NULL;

	*set = (struct replayed){ .low = low };
	if (copy && !read_text(set, copy))
		set->nr = 0;
	free(copy);
}

void replayed_free(struct replayed *set)
{
	free(set->range);
	*set = (struct replayed){ 0 };
}

bool replayed_has(const struct replayed *set, int64_t offset)
{
	size_t at = find(set, offset);

	return offset < set->low || (at < set->nr && set->range[at].begin <= offset);
}

int replayed_add(struct replayed *set, int64_t offset)
{
	size_t at = find(set, offset);
	int error = 0;

	if (replayed_has(set, offset))
		return 0;
	if (at && set->range[at - 1].end == offset) {
		set->range[at - 1].end++;
		if (at < set->nr && set->range[at].begin == offset + 1) {
			set->range[at - 1].end = set->range[at].end;
			remove_ranges(set, at, 1);
		}
	} else if (at < set->nr && set->range[at].begin == offset + 1) {
		set->range[at].begin--;
	} else {
		error = insert_range(set, at, offset, offset + 1);
	}
	advance(set);
	return error;
}

void replayed_raise(struct replayed *set, int64_t low)
{
	if (low > set->low)
		set->low = low;
	advance(set);
}

/* The text of a range, with what is before it. Returns its length. */
static size_t range_text(const struct replayed_range *range, const char *before,
			 char text[RANGE_TEXT_MAX])
{
	return snprintf(text, RANGE_TEXT_MAX, "%s%" PRId64 "-%" PRId64, before, range->begin,
			range->end);
}

uint64_t replayed_write(const struct replayed *set, char text[REPLAYED_TEXT_MAX])
{
	char range[RANGE_TEXT_MAX];
	size_t used = 0, len, i;
	uint64_t left_out = 0;

	for (i = 0; i < set->nr; i++) {
		len = range_text(&set->range[i], i ? "," : HEAD, range);
		if (used + len >= REPLAYED_TEXT_MAX)
			break;
		memcpy(text + used, range, len);
		used += len;
	}
	text[used] = '\0';
	for (; i < set->nr; i++)
		left_out += set->range[i].end - set->range[i].begin;
	return left_out;
}
