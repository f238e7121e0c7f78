/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which offsets above the committed one are done, as text: it is committed with the offset,
 * as its metadata, so that whoever reads the partition next passes over them.
 *
 *	"1:" low ":" pending done pending done ...
 *
 * Low is the committed offset, in decimal: text that is of another one says nothing. What
 * follows are the lengths of runs, the first of pending offsets, in digits of 5 bits from
 * the lowest to the highest: of the 64 letters of base64, the first 32 are a last digit, the
 * others are not. What the text has no room for counts as pending, and is done again; so
 * does all of a text that is not whole.
 */
#ifndef TWHEELQ_RELAY_RUNS_H
#define TWHEELQ_RELAY_RUNS_H

#include "relay_watermark.h"

/* With its NUL: brokers take 4096 bytes, if they are not told otherwise. */
#define RUNS_TEXT_MAX	4096

/**
 * struct runs - a text that is being read
 * @text: it, a copy of the owner's; NULL: nothing is done.
 * @at: what follows.
 * @begin: of the run of done offsets that is looked at.
 * @end: behind that; also of all that were read.
 */
struct runs {
	const char *text;
	const char *at;
	int64_t begin;
	int64_t end;
};

/*
 * Write as much as there is room for: what is done of that which was read, and behind it
 * what was done before, as far as that was not read again. Returns the length, 0 if nothing
 * above low is done.
 */
size_t runs_write(const struct watermark *mark, struct runs before, char text[RUNS_TEXT_MAX]);

/* Begin to read. Returns false if the text is none, or is not of this offset. */
bool runs_begin(struct runs *runs, const char *text, int64_t low);

/* Is this offset done? They are asked for in their order. */
bool runs_has(struct runs *runs, int64_t offset);

/* Is no offset from this one on done? */
bool runs_over(struct runs *runs, int64_t offset);

#endif /* TWHEELQ_RELAY_RUNS_H */
