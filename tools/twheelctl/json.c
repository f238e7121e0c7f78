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

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		errx(EXIT_FAILURE, "out of memory");
	return memory;
}

/* Let a lack of memory for JSON end the program: then nothing is left out of an object. */
void json_setup(void)
{
	json_set_alloc_funcs(allocate, free);
}

/*
 * Write an object as one line, and release it. The caller checks ferror().
 *
 * @object: the result of json_pack(); NULL means that a text is not UTF-8.
 *
 * A double keeps fifteen digits of any decimal number: with more, 1.5003 would be
 * printed as 1.5003000000000001.
 */
void json_write(json_t *object, FILE *out)
{
	if (!object)
		errx(EXIT_FAILURE, "a text is not UTF-8, as all JSON is");
	json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(15));
	fputc('\n', out);
	json_decref(object);
}

/* The same; what cannot be written ends the program. */
void json_line(json_t *object, FILE *out)
{
	json_write(object, out);
	if (ferror(out))
		err(EXIT_FAILURE, "cannot write");
}
