// SPDX-License-Identifier: GPL-2.0
/* Which offsets above the committed one are done, as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "relay/rules/runs.h"

#define DIGIT_BITS	5
#define DIGIT_MORE	(1U << DIGIT_BITS)

/* Digits of the longest length: 40 bits are more than a window's offsets. */
#define DIGITS_MAX	8

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* --- writing -------------------------------------------------------------------------- */

static char *write_length(char *to, uint64_t length)
{
	for (; length >= DIGIT_MORE; length >>= DIGIT_BITS)
		*to++ = letters[DIGIT_MORE | (length & (DIGIT_MORE - 1))];
	*to++ = letters[length];
	return to;
}

/**
 * struct run - the done offsets from @begin up to, not including, @end
 */
struct run {
	int64_t begin;
	int64_t end;
};

/* Find the first run of done offsets from an offset on. Returns false if there is none. */
static bool find_run(const struct watermark *mark, struct runs *before, int64_t offset,
		     struct run *run)
{
	run->begin = watermark_find(mark, offset, false);
	run->end = watermark_find(mark, run->begin, true);
	if (run->begin < run->end)
		return true;
	offset = MAX(offset, mark->next);
	if (runs_over(before, offset))
		return false;
	run->begin = MAX(offset, before->begin);
	run->end = before->end;
	return true;
}

/* The time of the text: if it has a part of @before, that is valid only for that one's time. */
static uint64_t time_of(const struct watermark *mark, struct runs before, uint64_t now_ms)
{
	return runs_over(&before, mark->next) ? now_ms : MIN(now_ms, before.time_ms);
}

size_t runs_write(const struct watermark *mark, const struct runs *before, uint64_t now_ms,
		  char text[RUNS_TEXT_MAX], uint64_t *left_out)
{
	char *last = text + RUNS_TEXT_MAX - 2 * DIGITS_MAX - 1;
	char *to = text + sprintf(text, "2:%" PRId64 ":%" PRIu64 ":", mark->low,
				  time_of(mark, *before, now_ms));
	struct runs rest = *before;
	int64_t offset = mark->low;
	struct run run;

	*left_out = watermark_done_above(mark);
	while (to <= last && find_run(mark, &rest, offset, &run)) {
		to = write_length(to, run.begin - offset);
		to = write_length(to, run.end - run.begin);
		if (run.begin < mark->next)
			*left_out -= run.end - run.begin;
		offset = run.end;
	}
	if (offset == mark->low)
		to = text;
	*to = '\0';
	return to - text;
}

/* --- reading -------------------------------------------------------------------------- */

/* Returns false at the end of the text, or if the next letters are not a number. */
static bool read_length(const char **at, int64_t *length)
{
	unsigned int shift;
	const char *letter;
	unsigned int digit;

	*length = 0;
	for (shift = 0; shift < DIGITS_MAX * DIGIT_BITS; shift += DIGIT_BITS) {
		letter = **at ? strchr(letters, **at) : NULL;
		if (!letter)
			return false;
		++*at;
		digit = letter - letters;
		*length |= (int64_t)(digit & (DIGIT_MORE - 1)) << shift;
		if (digit < DIGIT_MORE)
			return true;
	}
	return false;
}

/* Go to the next run of done offsets. Returns false, and does not move, if there is none. */
static bool next_run(struct runs *runs)
{
	const char *at = runs->at;
	int64_t pending, done, begin, end;

	if (!read_length(&at, &pending) || !read_length(&at, &done) ||
	    __builtin_add_overflow(runs->end, pending, &begin) ||
	    __builtin_add_overflow(begin, done, &end))
		return false;
	runs->at = at;
	runs->begin = begin;
	runs->end = end;
	return true;
}

/* Is the rest of the text complete, and are its runs not empty? */
static bool is_complete(struct runs runs)
{
	int64_t before = runs.end;

	while (next_run(&runs)) {
		if (runs.end == before)
			return false;
		before = runs.end;
	}
	return !*runs.at;
}

bool runs_begin(struct runs *runs, const char *text, int64_t low)
{
	char head[32];
	size_t len = snprintf(head, sizeof(head), "2:%" PRId64 ":", low);
	int time_len = 0;

	*runs = (struct runs){ .begin = low, .end = low };
	if (!text || strncmp(text, head, len) ||
	    sscanf(text + len, "%" SCNu64 ":%n", &runs->time_ms, &time_len) != 1 || !time_len)
		return false;
	runs->text = text;
	runs->at = text + len + time_len;
	if (is_complete(*runs))
		return true;
	runs->text = NULL;
	return false;
}

bool runs_over(struct runs *runs, int64_t offset)
{
	if (!runs->text)
		return true;
	while (offset >= runs->end)
		if (!next_run(runs))
			return true;
	return false;
}

bool runs_has(struct runs *runs, int64_t offset, int64_t timestamp_ms)
{
	return !runs_over(runs, offset) && offset >= runs->begin &&
		(timestamp_ms < 0 || (uint64_t)timestamp_ms <= runs->time_ms);
}
