// SPDX-License-Identifier: GPL-2.0
/*
 * Lines of JSON.
 */
#include <err.h>
#include <stdlib.h>

#include "twheelctl/json.h"
#include "common/number.h"

/* An id, a key or a value, as a string. */
json_t *json_u64(__u64 value)
{
	return json_sprintf("%llu", value);
}

/* A time, in seconds. */
json_t *json_seconds(__u64 ns)
{
	return json_real(ns / 1e9);
}

/*
 * A time of the clock, in seconds to the nanosecond. It is a string, because a double is
 * not exact enough.
 */
json_t *json_time(__u64 ns)
{
	char text[NUMBER_TEXT];

	if (ns >= NUMBER_MAX_NS)
		return json_string("never");
	return json_string(seconds_format(text, ns));
}

/*
 * Write an object as one line, and release it.
 *
 * @object: the result of json_pack(); NULL means out of memory.
 *
 * A double keeps fifteen digits of any decimal number: with more, 1.5003 would be
 * printed as 1.5003000000000001.
 */
void json_line(json_t *object, FILE *out)
{
	if (!object)
		errx(EXIT_FAILURE, "out of memory for a line of JSON");
	json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
	fputc('\n', out);
	json_decref(object);
}
