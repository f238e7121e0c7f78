// SPDX-License-Identifier: GPL-2.0
/* Words of a line: numbers and durations. */
#include <string.h>

#include "common/text.h"
#include "common/time.h"
#include "common/util.h"

bool text_empty(const struct text *text)
{
	return text->start == text->end;
}

bool text_is(const struct text *text, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(text->end - text->start) == len && !memcmp(text->start, word, len);
}

bool text_word(struct text *text, struct text *word)
{
	while (!text_empty(text) && *text->start == ' ')
		text->start++;
	word->start = text->start;
	while (!text_empty(text) && *text->start != ' ')
		text->start++;
	word->end = text->start;
	return !text_empty(word);
}

bool text_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool text_digits(struct text *text, uint64_t max, uint64_t *value)
{
	uint64_t digit;

	if (text_empty(text) || !text_is_digit(*text->start))
		return false;
	for (*value = 0; !text_empty(text) && text_is_digit(*text->start); text->start++) {
		digit = *text->start - '0';
		if (digit > max || *value > (max - digit) / 10)
			return false;
		*value = *value * 10 + digit;
	}
	return true;
}

bool text_number(struct text *text, uint64_t max, uint64_t *value)
{
	struct text word;

	return text_word(text, &word) && text_digits(&word, max, value) && text_empty(&word);
}

bool text_u32(struct text *text, uint32_t *value)
{
	uint64_t number;

	if (!text_number(text, UINT32_MAX, &number))
		return false;
	*value = number;
	return true;
}

/*
 * From the last digit to the first, so that nothing overflows; rounding down at each step
 * gives the same as rounding down at the end.
 */
bool text_fraction(struct text *text, uint64_t whole, uint64_t *value)
{
	const char *first, *digit;

	*value = 0;
	if (text_empty(text) || *text->start != '.')
		return true;
	first = ++text->start;
	while (!text_empty(text) && text_is_digit(*text->start))
		text->start++;
	for (digit = text->start; digit > first; digit--)
		*value = (*value + (digit[-1] - '0') * whole) / 10;
	return text->start > first;
}

uint64_t text_unit_ns(const struct text *unit)
{
	size_t i;

	for (i = 0; i < TIME_UNITS_PARSED; i++)
		if (text_is(unit, time_units[i].name))
			return time_units[i].ns;
	return 0;
}

void text_split_unit(const struct text *word, struct text *number, struct text *unit)
{
	*number = *unit = *word;
	while (!text_empty(unit) && (text_is_digit(*unit->start) || *unit->start == '.'))
		unit->start++;
	number->end = unit->start;
}

bool text_decimal(struct text *text, uint64_t unit_ns, uint64_t max_ns, uint64_t *ns)
{
	uint64_t whole, fraction;

	if (!text_digits(text, max_ns / unit_ns, &whole) ||
	    !text_fraction(text, unit_ns, &fraction))
		return false;
	*ns = whole * unit_ns + fraction;
	return *ns <= max_ns;
}

/* "5", "250ms", "1.5h": as commands of the queue have it, without nanoseconds. */
static bool duration_of_word(const struct text *word, uint64_t *ns)
{
	struct text number, unit;
	uint64_t unit_ns;

	text_split_unit(word, &number, &unit);
	unit_ns = text_empty(&unit) ? NSEC_PER_SEC : text_unit_ns(&unit);
	return unit_ns >= NSEC_PER_USEC &&
		text_decimal(&number, unit_ns, TEXT_DURATION_MAX_NS, ns) && text_empty(&number);
}

bool text_next_duration(struct text *text, uint64_t *ns)
{
	struct text word;

	return text_word(text, &word) && duration_of_word(&word, ns);
}

bool text_duration(const char *text, uint64_t *ns)
{
	struct text word = { text, text + strlen(text) };

	return duration_of_word(&word, ns);
}

static bool is_printable(char c)
{
	return c >= ' ' && c < 0x7f;
}

void text_make_printable(char *string)
{
	for (; *string; string++)
		if (!is_printable(*string) && *string != '\n')
			*string = '?';
}

void text_put_printable(const char *string, FILE *out)
{
	for (; *string; string++)
		fputc(is_printable(*string) ? *string : '?', out);
}
