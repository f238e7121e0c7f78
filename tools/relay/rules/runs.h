/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which offsets above the committed one are done, as text. It is the metadata of the committed
 * offset, so that the next reader of the partition skips these records.
 *
 *	"2:" low ":" time ":" pending done pending done ...
 *
 * Low is the committed offset, in decimal: text for another offset is ignored. Time is when the
 * text was written, in ms since 1970: a younger record is not done. It has an offset that
 * belonged to another record before, because a log may lose its end in an unclean election.
 * Then follow the lengths of runs: a run is a range of offsets that are all pending, or all
 * done. Runs of pending and of done offsets alternate, beginning with pending ones. A length is
 * written in digits of 5 bits, the lowest digit first: of the 64 letters of base64, the first
 * 32 are the last digit of a number, the others are not. Offsets for which the text has no room
 * count as pending, and are done again; the same holds for all of a text that is not complete.
 *
 * A relay that has not read yet as far as the partition's last reader commits both: what it has
 * done itself, and of what the last reader had done the part that it has not read yet.
 */
#ifndef RELAY_RULES_RUNS_H
#define RELAY_RULES_RUNS_H

#include "relay/rules/watermark.h"

/* With its NUL. The default of brokers' limit is 4096 bytes. */
#define RUNS_TEXT_MAX	4096

/**
 * struct runs - a reader of such a text
 * @text: the text, which belongs to the caller; NULL: nothing is done.
 * @time_ms: when it was written.
 * @at: the part of it that is not read yet.
 * @begin: the first offset of the current run of done offsets.
 * @end: the offset after that run.
 */
struct runs {
	const char *text;
	uint64_t time_ms;
	const char *at;
	int64_t begin;
	int64_t end;
};

/*
 * Write which of the offsets that were read are done, and for later offsets which are done
 * according to @before; as much as there is room for. Returns the length, 0 if nothing above
 * low is done. @left_out is set to the number of offsets that were read and are done but did
 * not fit.
 */
size_t runs_write(const struct watermark *mark, const struct runs *before, uint64_t now_ms,
		  char text[RUNS_TEXT_MAX], uint64_t *left_out);

/* Start to read. Returns false if the text is not valid, or is not for the offset @low. */
bool runs_begin(struct runs *runs, const char *text, int64_t low);

/*
 * Is the record at this offset done? Callers ask in the order of offsets. A record without a
 * timestamp (negative) counts as old.
 */
bool runs_has(struct runs *runs, int64_t offset, int64_t timestamp_ms);

/* Are there no done offsets from this one on? Callers ask in the order of offsets. */
bool runs_over(struct runs *runs, int64_t offset);

#endif /* RELAY_RULES_RUNS_H */
