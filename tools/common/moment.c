// SPDX-License-Identifier: GPL-2.0
/*
 * Parses a moment in wall-clock time.
 *
 * These forms of systemd.time(7) are known:
 *
 *	now, now+90s, +90s		from now on
 *	@1700000000, @1700000000.25	seconds since 1970
 *	12:30, 12:30:15			the next such time of day
 *	today, tomorrow [12:30[:15]]
 *	2026-12-24 [12:30[:15]]		also with a T between them
 *	... UTC				all but the first two, in UTC and not in local time
 *
 * Without a time of day, a day means its midnight, or its first moment if clocks are put forward
 * then. Without a day, a time of day that today does not have is that of the next day that has it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/time.h"
#include "common/moment.h"
#include "common/number.h"

#define WHAT_IS_KNOWN	"is not a time such as 12:30, \"tomorrow 7:00\", \"2026-12-24 18:00\", now+90s or @1700000000"

/* On one of so many days in a row, each time of day exists. */
#define MAX_DAYS	7

/* Returns the text after a word at its beginning, or NULL if it does not begin with it. */
static const char *after(const char *text, const char *word)
{
	size_t length = strlen(word);

	return strncmp(text, word, length) ? NULL : text + length;
}

/* Cuts " UTC" or "Z" off the end of a time. Returns whether it was there. */
static bool cut_utc(char *text)
{
	char *end = text + strlen(text);

	if (end - text > 4 && !strcmp(end - 4, " UTC"))
		end -= 4;
	else if (end - text > 1 && end[-1] == 'Z')
		end--;
	else
		return false;
	*end = '\0';
	return true;
}

/*
 * Parses a number of up to @most digits, and the text that has to follow it. Returns the
 * text after both, or NULL if they are not there.
 */
static const char *parse_number(const char *text, size_t most, const char *follows,
				int *number)
{
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > most)
		return NULL;
	*number = atoi(text);
	return after(text + digits, follows);
}

/* Parses a time of day. Returns false if @text is not one. */
static bool parse_clock(const char *text, struct tm *tm)
{
	int hour, minute, second = 0;
	const char *rest;

	text = parse_number(text, 2, ":", &hour);
	if (!text)
		return false;
	rest = parse_number(text, 2, ":", &minute);
	if (rest)
		text = parse_number(rest, 2, "", &second);
	else
		text = parse_number(text, 2, "", &minute);
	if (!text || *text || hour > 23 || minute > 59 || second > 59)
		return false;
	tm->tm_hour = hour;
	tm->tm_min = minute;
	tm->tm_sec = second;
	return true;
}

/* Parses a date at the beginning of a text. Returns the text after it, or NULL. */
static const char *parse_date(const char *text, struct tm *tm)
{
	int year, month, day;

	text = parse_number(text, 4, "-", &year);
	if (text)
		text = parse_number(text, 2, "-", &month);
	if (text)
		text = parse_number(text, 2, "", &day);
	if (!text || month < 1 || month > 12 || day < 1 || day > 31)
		return NULL;
	tm->tm_year = year - 1900;
	tm->tm_mon = month - 1;
	tm->tm_mday = day;
	return text;
}

/*
 * Converts a broken-down time to seconds. Returns false if it does not exist: there is no such
 * day, or clocks are put forward then.
 */
static bool to_seconds(const struct tm *tm, bool utc, time_t *seconds)
{
	struct tm made = *tm;

	made.tm_isdst = -1;
	*seconds = utc ? timegm(&made) : mktime(&made);
	return made.tm_mday == tm->tm_mday && made.tm_mon == tm->tm_mon &&
	       made.tm_hour == tm->tm_hour && made.tm_min == tm->tm_min;
}

static bool is_before_day(time_t seconds, const struct tm *day)
{
	struct tm tm;

	localtime_r(&seconds, &tm);
	if (tm.tm_year != day->tm_year)
		return tm.tm_year < day->tm_year;
	if (tm.tm_mon != day->tm_mon)
		return tm.tm_mon < day->tm_mon;
	return tm.tm_mday < day->tm_mday;
}

/*
 * Finds the first moment of a local day at whose beginning clocks are put forward. Returns
 * false if there is no such day.
 */
static bool day_begin(const struct tm *day, time_t *seconds)
{
	struct tm noon = *day;
	time_t before;

	noon.tm_hour = 12;
	if (!to_seconds(&noon, false, seconds))
		return false;
	before = *seconds - 24 * 60 * 60;
	while (before + 1 < *seconds) {
		time_t middle = before + (*seconds - before) / 2;

		if (is_before_day(middle, day))
			before = middle;
		else
			*seconds = middle;
	}
	return true;
}

/* Moves a broken-down time to the next day. */
static void next_day(struct tm *tm)
{
	struct tm noon = { .tm_year = tm->tm_year, .tm_mon = tm->tm_mon,
			   .tm_mday = tm->tm_mday + 1, .tm_hour = 12 };

	timegm(&noon);
	tm->tm_year = noon.tm_year;
	tm->tm_mon = noon.tm_mon;
	tm->tm_mday = noon.tm_mday;
}

/*
 * Parses the day that a text begins with, into @tm. Returns the text after it, without the
 * space or T before a time of day; or NULL if the text does not begin with a day.
 */
static const char *parse_day(const char *text, struct tm *tm)
{
	const char *rest = after(text, "today");

	if (!rest) {
		rest = after(text, "tomorrow");
		if (rest)
			next_day(tm);
		else
			rest = parse_date(text, tm);
	}
	if (rest && (*rest == ' ' || *rest == 'T') && rest[1])
		rest++;
	return rest;
}

/* Returns whether a space or T stands between a day and its time of day. */
static bool is_apart(const char *rest)
{
	return rest[-1] == ' ' || rest[-1] == 'T';
}

/* Finds the next moment with a time of day, where clocks are put forward on some day. */
static bool next_time_of_day(struct tm *tm, bool utc, time_t now, time_t *seconds)
{
	for (int days = 0; days < MAX_DAYS; days++) {
		if (to_seconds(tm, utc, seconds) && *seconds > now)
			return true;
		next_day(tm);
	}
	return false;
}

static const char *parse_calendar(char *text, __u64 now_ns, __u64 *ns)
{
	time_t now = now_ns / NSEC_PER_SEC, seconds;
	bool utc = cut_utc(text), exists;
	const char *rest;
	struct tm tm;

	if (utc)
		gmtime_r(&now, &tm);
	else
		localtime_r(&now, &tm);
	tm.tm_hour = 0;
	tm.tm_min = 0;
	tm.tm_sec = 0;
	rest = parse_day(text, &tm);
	if (rest ? *rest && (!is_apart(rest) || !parse_clock(rest, &tm)) :
		   !parse_clock(text, &tm))
		return WHAT_IS_KNOWN;

	if (!rest)
		exists = next_time_of_day(&tm, utc, now, &seconds);
	else
		exists = to_seconds(&tm, utc, &seconds) ||
			 (!*rest && !utc && day_begin(&tm, &seconds));
	if (!exists)
		return "does not exist: there is no such day, or clocks are put forward then";
	if (seconds < 0)
		return "is before 1970";
	if ((__u64)seconds > NUMBER_MAX_NS / NSEC_PER_SEC)
		return "is more than 292 years after 1970";
	*ns = seconds * NSEC_PER_SEC;
	return NULL;
}

/*
 * Parses a moment into ns since 1970.
 *
 * @now_ns: the current time.
 *
 * Return: NULL, or the second half of a message that begins with the text.
 */
const char *moment_parse(const char *text, __u64 now_ns, __u64 *ns)
{
	const char *rest = after(text, "now"), *wrong;
	char copy[64];

	if (text[0] == '@')
		return seconds_parse(text + 1, ns) ? WHAT_IS_KNOWN : NULL;
	if (!rest)
		rest = text[0] == '+' ? text : NULL;
	if (rest && !*rest) {
		*ns = now_ns;
		return NULL;
	}
	if (rest && *rest == '+') {
		wrong = duration_parse(rest + 1, ns);
		if (!wrong)
			*ns += now_ns;
		return wrong;
	}
	if (rest || snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return WHAT_IS_KNOWN;
	return parse_calendar(copy, now_ns, ns);
}
