// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers and times as text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "common.h"
#include "number.h"

#define DIGITS	"0123456789"

static const struct unit {
	const char *name;
	__u64 ns;
} units[] = {
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "s",  NSEC_PER_SEC },
	{ "m",  60 * NSEC_PER_SEC },
	{ "h",  3600 * NSEC_PER_SEC },
	{ "d",  86400 * NSEC_PER_SEC },
	{ "y",  31557600 * NSEC_PER_SEC },
};

#define NR_UNITS	ARRAY_SIZE(units)

/* A year is for telling spans of the upper levels: nobody arms by it. */
#define NR_PARSED_UNITS	(NR_UNITS - 1)

static const char *digits_parse(const char *digits, size_t nr, __u64 max,
				__u64 *value)
{
	*value = 0;
	for (size_t i = 0; i < nr; i++) {
		__u64 digit = digits[i] - '0';

		if (*value > (max - digit) / 10)
			return "is too large";
		*value = *value * 10 + digit;
	}
	return NULL;
}

/*
 * The fraction 0.DIGITS of a unit, rounded down.  From the last digit to the
 * first, so that nothing overflows; rounding at each step loses nothing.
 */
static __u64 fraction_of(const char *digits, size_t nr, __u64 unit_ns)
{
	__u64 ns = 0;

	while (nr--)
		ns = (ns + (digits[nr] - '0') * unit_ns) / 10;
	return ns;
}

/* The first @len characters of @text as DIGITS or DIGITS.DIGITS units. */
static const char *decimal_parse(const char *text, size_t len, __u64 unit_ns,
				 __u64 *ns)
{
	size_t whole = strspn(text, DIGITS);
	size_t fraction = 0;
	const char *wrong;

	if (whole < len && text[whole] == '.')
		fraction = strspn(text + whole + 1, DIGITS);
	if (!whole || whole + (fraction ? 1 + fraction : 0) != len)
		return "is not a number such as 2 or 1.5";

	wrong = digits_parse(text, whole, NUMBER_MAX_NS / unit_ns - 1, ns);
	if (wrong)
		return "is longer than 292 years";
	*ns = *ns * unit_ns + fraction_of(text + whole + 1, fraction, unit_ns);
	return NULL;
}

/* A whole number. */
const char *count_parse(const char *text, __u64 *value)
{
	size_t len = strspn(text, DIGITS);

	if (!len || text[len])
		return "is not a whole number";
	return digits_parse(text, len, ~0ULL, value);
}

/* A time in seconds, without a unit. */
const char *seconds_parse(const char *text, __u64 *ns)
{
	const char *wrong = decimal_parse(text, strlen(text), NSEC_PER_SEC, ns);

	if (wrong && !duration_parse(text, ns))
		return "has a unit: this is in seconds, without one";
	return wrong;
}

/* A time with its unit: 1.5s, 250us. */
const char *duration_parse(const char *text, __u64 *ns)
{
	size_t len = strspn(text, DIGITS ".");

	if (!len)
		return "is not a number with a unit, such as 1.5s";
	for (size_t i = 0; i < NR_PARSED_UNITS; i++)
		if (!strcmp(text + len, units[i].name))
			return decimal_parse(text, len, units[i].ns, ns);
	if (!text[len])
		return "lacks its unit: one of ns us ms s m h d";
	return "has an unknown unit: known are ns us ms s m h d";
}

/* A time in seconds, to the nanosecond. */
const char *seconds_format(char text[NUMBER_TEXT], __u64 ns)
{
	snprintf(text, NUMBER_TEXT, "%llu.%09llu", ns / NSEC_PER_SEC,
		 ns % NSEC_PER_SEC);
	return text;
}

/* A time with its unit, in three digits, for people. */
const char *duration_format(char text[NUMBER_TEXT], double ns)
{
	size_t i = NR_UNITS - 1;
	double value;

	while (i && ns < 0.9995 * units[i].ns)
		i--;
	value = ns / units[i].ns;
	snprintf(text, NUMBER_TEXT, "%.*f%s",
		 i == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value,
		 units[i].name);
	return text;
}
