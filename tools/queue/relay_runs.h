/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which offsets above the committed one are done, as text: it is committed with the offset,
 * as its metadata, so that whoever reads the partition next passes over them.
 *
 *	"2:" low ":" time ":" pending done pending done ...
 *
 * Low is the committed offset, in decimal: text that is of another one says nothing. Time is
 * when it was so, in ms since 1970: a record that is younger has come to an offset which was
 * another's, as a log may lose its end with an unclean election, and is not done. What
 * follows are the lengths of runs, the first of pending offsets, in digits of 5 bits from
 * the lowest to the highest: of the 64 letters of base64, the first 32 are a last digit, the
 * others are not. What the text has no room for counts as pending, and is done again; so
 * does all of a text that is not whole.
 *
 * Who reads a partition to where its last reader was tells both in what it commits: what it
 * has done itself, and what it has not come to yet of what the last one did.
 */
#ifndef TWHEELQ_RELAY_RUNS_H
#define TWHEELQ_RELAY_RUNS_H

#include "relay_watermark.h"

/* With its NUL: brokers take 4096 bytes, if they are not told otherwise. */
#define RUNS_TEXT_MAX	4096

/**
 * struct runs - a text that is being read
 * @text: it, a copy of the owner's; NULL: nothing is done.
 * @time_ms: when it was so.
 * @at: what follows.
 * @begin: of the run of done offsets that is looked at.
 * @end: behind that; also of all that were read.
 */
struct runs {
	const char *text;
	uint64_t time_ms;
	const char *at;
	int64_t begin;
	int64_t end;
};

/*
 * Write, as of now, what is done of what was read, and then what @before has of the rest; as
 * much as there is room for. Returns the length, 0 if nothing above low is done; @left_out is
 * how many offsets that were read and done there was no room for.
 */
size_t runs_write(const struct watermark *mark, const struct runs *before, uint64_t now_ms,
		  char text[RUNS_TEXT_MAX], uint64_t *left_out);

/* Begin to read. Returns false if the text is none, or is not of this offset. */
bool runs_begin(struct runs *runs, const char *text, int64_t low);

/*
 * Is the record of this offset done? They are asked for in their order. A record without a
 * timestamp, which is negative then, is as old as may be.
 */
bool runs_has(struct runs *runs, int64_t offset, int64_t timestamp_ms);

/* Is no offset from this one on done? */
bool runs_over(struct runs *runs, int64_t offset);

#endif /* TWHEELQ_RELAY_RUNS_H */
