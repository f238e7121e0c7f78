/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The watermark of a partition: the lowest offset that is not done, which is what is
 * committed.
 *
 *	            low                              next
 *	             |                                |
 *	  done  done pend. done  pend. gap  done pend. (not read yet)
 *	             \_________________ window _______/
 *
 * Offsets are read in their order and done in any. In memory there is one bit for each
 * offset of the window from @low to @next: it is set while that offset is pending. An
 * offset that Kafka has left out (compaction, the end of a transaction) is never pending
 * and so counts as done. The bits are a ring, whose size is a power of two.
 *
 * What always holds: @low is pending, or is @next. All belongs to one thread.
 */
#ifndef TWHEELQ_RELAY_WATERMARK_H
#define TWHEELQ_RELAY_WATERMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The window has so many offsets at most, which are 8 MiB of bits: a word less than the ring. */
#define WATERMARK_SPAN_MAX	((1ULL << 26) - 64)

/**
 * struct watermark - of a partition
 * @low: the lowest offset that is not done.
 * @next: the one after the last that was read.
 * @pending: how many are not done.
 * @size: of the ring, in bits; 0: it has no memory yet.
 * @bits: the ring.
 */
struct watermark {
	int64_t low;
	int64_t next;
	uint64_t pending;
	uint64_t size;
	uint64_t *bits;
};

/* Begin at the offset that will be read first. */
void watermark_init(struct watermark *mark, int64_t offset);
void watermark_free(struct watermark *mark);

/*
 * An offset was read, @next or a later one: it is pending. Returns 0; -EEXIST: it was read
 * before; -ENOSPC: the window would be too long; -ENOMEM.
 */
int watermark_read(struct watermark *mark, int64_t offset);

/* It is done. Returns false if it was not pending. */
bool watermark_done(struct watermark *mark, int64_t offset);

/* Was it read, and is it not done? */
bool watermark_is_pending(const struct watermark *mark, int64_t offset);

/* What a long window takes in memory; 0 for one that any partition may have. */
size_t watermark_bytes(const struct watermark *mark);

/* The first offset from this one on that is pending, or that is done; @next if none is. */
int64_t watermark_find(const struct watermark *mark, int64_t offset, bool pending);

/* Offsets above @low that are done: after a crash they are read, and done, again. */
uint64_t watermark_done_above(const struct watermark *mark);

#endif /* TWHEELQ_RELAY_WATERMARK_H */
