// SPDX-License-Identifier: GPL-2.0
/* Which offsets above the committed one are done, as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "relay_runs.h"

#define DIGIT_BITS	5
#define DIGIT_MORE	(1U << DIGIT_BITS)

/* As many as a run may have: the window's offsets are fewer. */
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

/*
 * The end of the run of pending or of done offsets that begins at an offset: by the mark
 * what was read, by the text of before what was not.
 */
static int64_t end_of_run(const struct watermark *mark, struct runs *before, int64_t offset,
			  bool pending)
{
	while (offset < mark->next && watermark_is_pending(mark, offset) == pending)
		offset++;
	if (offset < mark->next || runs_over(before, offset))
		return offset;
	if (offset < before->begin)
		return pending ? before->begin : offset;
	return pending ? offset : before->end;
}

size_t runs_write(const struct watermark *mark, struct runs before, char text[RUNS_TEXT_MAX])
{
	char *last = text + RUNS_TEXT_MAX - 2 * DIGITS_MAX - 1;
	char *to = text + sprintf(text, "1:%" PRId64 ":", mark->low);
	int64_t offset = mark->low;
	char *written = NULL;

	while (to <= last) {
		int64_t done = end_of_run(mark, &before, offset, true);
		int64_t end = end_of_run(mark, &before, done, false);

		if (done == end)
			break;
		to = write_length(to, done - offset);
		to = write_length(to, end - done);
		written = to;
		offset = end;
	}
	if (!written)
		to = text;
	*to = '\0';
	return to - text;
}

/* --- reading -------------------------------------------------------------------------- */

/* Returns false at the end of the text, or at what is no number. */
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

/* Go to the next run of done offsets. Returns false, and stays, where there is none. */
static bool next_run(struct runs *runs)
{
	const char *at = runs->at;
	int64_t pending, done;

	if (!read_length(&at, &pending) || !read_length(&at, &done))
		return false;
	runs->at = at;
	runs->begin = runs->end + pending;
	runs->end = runs->begin + done;
	return true;
}

/* Is the text whole, from here on? */
static bool is_whole(struct runs runs)
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
	size_t len = snprintf(head, sizeof(head), "1:%" PRId64 ":", low);

	*runs = (struct runs){ .begin = low, .end = low };
	if (!text || strncmp(text, head, len))
		return false;
	runs->text = text;
	runs->at = text + len;
	if (is_whole(*runs))
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

bool runs_has(struct runs *runs, int64_t offset)
{
	return !runs_over(runs, offset) && offset >= runs->begin;
}
