/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The watermark of a partition: the lowest offset that is not done. This is the offset that is
 * committed.
 *
 *	            low                              next
 *	             |                                |
 *	  done  done pend. done  pend. gap  done pend. (not read yet)
 *	             \_________________ window _______/
 *
 * Offsets are read in ascending order and done in any order. Each offset of the window from
 * @low to @next has a bit, which is set while the offset is pending. An offset that Kafka skips
 * (compaction, the end of a transaction) is never pending, and so counts as done. The bits are
 * a ring, whose size is a power of two.
 *
 * Invariant: @low is pending, or equals @next. One thread uses a watermark.
 */
#ifndef RELAY_RULES_WATERMARK_H
#define RELAY_RULES_WATERMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limit of the window's offsets: one word less than a ring of 8 MiB. */
#define WATERMARK_SPAN_MAX	((1ULL << 26) - 64)

/**
 * struct watermark - the watermark of a partition
 * @low: the lowest offset that is not done.
 * @next: the offset after the last one that was read.
 * @pending: the number of pending offsets.
 * @size: the size of the ring in bits; 0: it has no memory yet.
 * @bits: the ring.
 */
struct watermark {
	int64_t low;
	int64_t next;
	uint64_t pending;
	uint64_t size;
	uint64_t *bits;
};

/* Start at the offset that will be read first. */
void watermark_init(struct watermark *mark, int64_t offset);
void watermark_free(struct watermark *mark);

/*
 * An offset was read, @next or a later one: it becomes pending. Returns 0; -EEXIST if it was
 * read before; -ENOSPC if the window would become too long; -ENOMEM.
 */
int watermark_read(struct watermark *mark, int64_t offset);

/* An offset is done. Returns false if it was not pending. */
bool watermark_done(struct watermark *mark, int64_t offset);

/*
 * An offset that was done is pending again: the transaction in which it was done was aborted.
 * @low may move down to it. Returns 0; -EINVAL if it is not below @next; -EEXIST if it is
 * pending; -ENOSPC if the window would become too long; -ENOMEM.
 */
int watermark_undo(struct watermark *mark, int64_t offset);

/*
 * Which of 64 offsets are done? Bit i is that of @offset + i; @offset is a multiple of 64. All
 * offsets below @low are done, and none from @next on.
 */
uint64_t watermark_done_word(const struct watermark *mark, int64_t offset);

/* Was the offset read, and is it not done? */
bool watermark_is_pending(const struct watermark *mark, int64_t offset);

/* The memory of a long window, in bytes; 0 for the size that each partition may have for free. */
size_t watermark_bytes(const struct watermark *mark);

/* The first offset from @offset on that is pending (or done, if not @pending); else @next. */
int64_t watermark_find(const struct watermark *mark, int64_t offset, bool pending);

/* The number of offsets above @low that are done. */
uint64_t watermark_done_above(const struct watermark *mark);

#endif /* RELAY_RULES_WATERMARK_H */
