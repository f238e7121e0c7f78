/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Words of a line: numbers and durations. Pure, so that it can be fuzzed.
 *
 * Each function that parses takes what it understands off the front of a text. It returns
 * false if the text does not begin with that; the text is undefined then.
 */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/time.h"

/* The longest duration, as in beanstalkd: the sum with a clock's time fits in 64 bits. */
#define TEXT_DURATION_MAX_NS	(UINT32_MAX * NSEC_PER_SEC)

/**
 * struct text - the rest of a line
 * @start: its first byte.
 * @end: behind its last one.
 */
struct text {
	const char *start;
	const char *end;
};

bool text_empty(const struct text *text);
bool text_is(const struct text *text, const char *word);
bool text_is_digit(char c);

/* The next word, after any spaces. */
bool text_word(struct text *text, struct text *word);

/* The digits that a text begins with, a number up to @max; there has to be a digit. */
bool text_digits(struct text *text, uint64_t max, uint64_t *value);

/*
 * The fraction that a text may begin with (".5"), in parts of @whole, rounded down; 0 if
 * there is none. @whole is less than 2^60.
 */
bool text_fraction(struct text *text, uint64_t whole, uint64_t *value);

/* A number with a fraction or without ("1.5"), of units of @unit_ns, up to @max_ns < 2^63. */
bool text_decimal(struct text *text, uint64_t unit_ns, uint64_t max_ns, uint64_t *ns);

/* Split "1.5ms" behind the last digit or dot. */
void text_split_unit(const struct text *word, struct text *number, struct text *unit);

/* The length of a unit of time, "ns" to "d"; 0: it is not one. */
uint64_t text_unit_ns(const struct text *unit);

/* A word that is a number up to @max, and one that is a number of 32 bits. */
bool text_number(struct text *text, uint64_t max, uint64_t *value);
bool text_u32(struct text *text, uint32_t *value);

/*
 * A word that is a duration ("250ms", "1.5s", "2h", "5" seconds), shorter than 2^32 seconds,
 * as in commands of the queue; and a string that is one. number.h has the durations of
 * twheelctl, which must have a unit.
 */
bool text_next_duration(struct text *text, uint64_t *ns);
bool text_duration(const char *text, uint64_t *ns);

/*
 * A terminal takes some bytes for commands; bidirectional characters reorder what it shows, and
 * wide ones take two columns. So of what others have written, bytes that are not printable ASCII
 * become "?": in a string, whose lines stay, or on their way to @out.
 */
void text_make_printable(char *string);
void text_put_printable(const char *string, FILE *out);

#endif /* COMMON_TEXT_H */
