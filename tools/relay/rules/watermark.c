// SPDX-License-Identifier: GPL-2.0
/* The watermark of a partition: the lowest offset that is not done. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "relay/rules/watermark.h"

#define WORD_BITS	64
#define SIZE_MIN	1024ULL

void watermark_init(struct watermark *mark, int64_t offset)
{
	*mark = (struct watermark){ .low = offset, .next = offset };
}

void watermark_free(struct watermark *mark)
{
	free(mark->bits);
	mark->bits = NULL;
	mark->size = 0;
}

static uint64_t *word_of(const struct watermark *mark, int64_t offset)
{
	return &mark->bits[((uint64_t)offset & (mark->size - 1)) / WORD_BITS];
}

static uint64_t bit_of(int64_t offset)
{
	return 1ULL << ((uint64_t)offset % WORD_BITS);
}

/* Copy the bits of the window, a word at a time, to where they are in a larger ring. */
static void move_bits(const struct watermark *from, const struct watermark *to)
{
	int64_t offset = from->low - from->low % WORD_BITS;

	for (; offset < from->next; offset += WORD_BITS)
		*word_of(to, offset) |= *word_of(from, offset);
}

/* Make the ring large enough for a window of @span offsets. */
static int grow(struct watermark *mark, uint64_t span)
{
	struct watermark larger = *mark;

	larger.size = mark->size ?: SIZE_MIN;
	/* One word stays free: otherwise the window's ends could share a word of the ring. */
	while (larger.size - WORD_BITS < span)
		larger.size *= 2;
	if (larger.size == mark->size)
		return 0;
	larger.bits = calloc(larger.size / WORD_BITS, sizeof(*larger.bits));
	if (!larger.bits)
		return -ENOMEM;
	if (mark->size)
		move_bits(mark, &larger);
	free(mark->bits);
	*mark = larger;
	return 0;
}

int watermark_read(struct watermark *mark, int64_t offset)
{
	int64_t low = mark->pending ? mark->low : offset;
	uint64_t span = offset - low + 1;
	int error;

	if (offset < mark->next)
		return -EEXIST;
	if (span > WATERMARK_SPAN_MAX)
		return -ENOSPC;
	error = grow(mark, span);
	if (error)
		return error;
	mark->low = low;
	mark->next = offset + 1;
	mark->pending++;
	*word_of(mark, offset) |= bit_of(offset);
	return 0;
}

int watermark_undo(struct watermark *mark, int64_t offset)
{
	int64_t low = offset < mark->low ? offset : mark->low;
	uint64_t span = mark->next - low;
	int error;

	if (offset >= mark->next)
		return -EINVAL;
	if (watermark_is_pending(mark, offset))
		return -EEXIST;
	if (span > WATERMARK_SPAN_MAX)
		return -ENOSPC;
	error = grow(mark, span);
	if (error)
		return error;
	/* Bits of the ring that are not in the window are clear: those that join it are done. */
	mark->low = low;
	mark->pending++;
	*word_of(mark, offset) |= bit_of(offset);
	return 0;
}

uint64_t watermark_done_word(const struct watermark *mark, int64_t offset)
{
	int64_t read = mark->next - offset;
	uint64_t pending = 0;

	if (read <= 0)
		return 0;
	/* Without anything pending, the ring may have no memory. */
	if (mark->pending && offset + WORD_BITS > mark->low)
		pending = *word_of(mark, offset);
	return ~pending & (read < WORD_BITS ? (1ULL << read) - 1 : ~0ULL);
}

size_t watermark_bytes(const struct watermark *mark)
{
	return mark->size > SIZE_MIN ? mark->size / 8 : 0;
}

/* One word at a time: windows are long, and most words are all pending or all done. */
int64_t watermark_find(const struct watermark *mark, int64_t offset, bool pending)
{
	while (offset < mark->next) {
		uint64_t word = *word_of(mark, offset);
		uint64_t rest = (pending ? word : ~word) & -bit_of(offset);

		offset -= offset % WORD_BITS;
		offset += rest ? __builtin_ctzll(rest) : WORD_BITS;
		if (rest)
			break;
	}
	return offset < mark->next ? offset : mark->next;
}

bool watermark_is_pending(const struct watermark *mark, int64_t offset)
{
	return offset >= mark->low && offset < mark->next &&
		(*word_of(mark, offset) & bit_of(offset));
}

bool watermark_done(struct watermark *mark, int64_t offset)
{
	if (!watermark_is_pending(mark, offset))
		return false;
	*word_of(mark, offset) &= ~bit_of(offset);
	mark->pending--;
	if (offset == mark->low)
		mark->low = watermark_find(mark, offset, true);
	/* Free the memory of a long window. */
	if (!mark->pending && mark->size > SIZE_MIN)
		watermark_free(mark);
	return true;
}

uint64_t watermark_done_above(const struct watermark *mark)
{
	return mark->next - mark->low - mark->pending;
}
