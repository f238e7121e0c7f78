// SPDX-License-Identifier: GPL-2.0
/* Numbers and times as text. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/number.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"

#define DIGITS	"0123456789"

static struct text text_of(const char *string)
{
	return (struct text){ string, string + strlen(string) };
}

static bool is_decimal(const struct text *number)
{
	struct text rest = *number;
	uint64_t ignored;

	while (!text_empty(&rest) && text_is_digit(*rest.start))
		rest.start++;
	return rest.start > number->start && text_fraction(&rest, 1, &ignored) &&
		text_empty(&rest);
}

/* DIGITS or DIGITS.DIGITS units. */
static const char *decimal_parse(struct text number, uint64_t unit_ns, __u64 *ns)
{
	uint64_t value;

	if (!is_decimal(&number))
		return "is not a number such as 2 or 1.5";
	if (!text_decimal(&number, unit_ns, NUMBER_MAX_NS, &value))
		return "is longer than 292 years";
	*ns = value;
	return NULL;
}

const char *count_parse(const char *string, __u64 *value)
{
	struct text text = text_of(string);
	uint64_t count;

	if (!*string || string[strspn(string, DIGITS)])
		return "is not a whole number";
	if (!text_digits(&text, UINT64_MAX, &count))
		return "is too large";
	*value = count;
	return NULL;
}

const char *seconds_parse(const char *string, __u64 *ns)
{
	const char *wrong = decimal_parse(text_of(string), NSEC_PER_SEC, ns);

	if (wrong && !duration_parse(string, ns))
		return "has a unit: this is in seconds, without one";
	return wrong;
}

const char *duration_parse(const char *string, __u64 *ns)
{
	struct text word = text_of(string), number, unit;

	text_split_unit(&word, &number, &unit);
	if (text_empty(&number))
		return "is not a number with a unit, such as 1.5s";
	if (text_empty(&unit))
		return "lacks its unit: one of ns us ms s m h d";
	if (!text_unit_ns(&unit))
		return "has an unknown unit: known are ns us ms s m h d";
	return decimal_parse(number, text_unit_ns(&unit), ns);
}

const char *seconds_format(char text[NUMBER_TEXT], __u64 ns)
{
	snprintf(text, NUMBER_TEXT, "%llu.%09llu", ns / NSEC_PER_SEC,
		 ns % NSEC_PER_SEC);
	return text;
}

const char *duration_format(char text[NUMBER_TEXT], double ns)
{
	size_t i = TIME_UNITS - 1;
	double value;

	while (i && ns < 0.9995 * time_units[i].ns)
		i--;
	value = ns / time_units[i].ns;
	snprintf(text, NUMBER_TEXT, "%.*f%s",
		 i == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value,
		 time_units[i].name);
	return text;
}
