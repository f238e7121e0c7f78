// SPDX-License-Identifier: GPL-2.0
/* What the subcommands share that do what a person would do by hand. */
#include <err.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/moment.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "queue/cli/person.h"
#include "queue/cli/yaml.h"
#include "queue/store/name.h"

void person_begin(const struct option_table *table, void *values, int argc, char **argv)
{
	struct person *person = values;

	if (!person->address)
		person->address = ADDRESS_DEFAULT;
	options_parse(table, values, argc, argv);
	person->connection = connection_open(person->address);
}

int person_end(struct person *person, int status)
{
	connection_close(person->connection);
	return status;
}

/* --- operands ----------------------------------------------------------------------------- */

const char *person_tube(struct argp_state *state, const char *text)
{
	if (!name_is_tube(text, strlen(text)))
		argp_error(state, "\"%s\" is not the name of a tube", text);
	return text;
}

const char *person_key(struct argp_state *state, const char *what, const char *text)
{
	if (!name_is_key(text, strlen(text)))
		argp_error(state, "\"%s\" is not %s: letters, digits and any of " NAME_KEY_BYTES,
			   text, what);
	return text;
}

const char *person_state(struct argp_state *state, const char *text)
{
	static const char *const states[] = { "ready", "reserved", "delayed", "buried" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(states); i++)
		if (!strcmp(text, states[i]))
			return text;
	argp_error(state, "\"%s\" is not a state: ready, reserved, delayed or buried", text);
	return NULL;
}

uint64_t person_id(struct argp_state *state, const char *text)
{
	struct text rest = { text, text + strlen(text) };
	uint64_t id = 0;

	if (!text_digits(&rest, UINT64_MAX, &id) || !text_empty(&rest))
		argp_error(state, "\"%s\" is not the id of a job", text);
	return id;
}

uint64_t person_time(struct argp_state *state, const char *what, const char *text)
{
	__u64 ns = 0;
	const char *wrong = moment_parse(text, time_now_ns(CLOCK_REALTIME), &ns);

	if (wrong)
		argp_error(state, "%s \"%s\" %s", what, text, wrong);
	return ns / NSEC_PER_MSEC;
}

/* --- asking ------------------------------------------------------------------------------- */

static const char *receive_line(struct person *person)
{
	static struct answer answer;

	connection_answer(person->connection, &answer);
	free(answer.body);
	return answer.line;
}

static void send_args(struct person *person, const char *format, va_list args)
{
	char line[1024];

	vsnprintf(line, sizeof(line), format, args);
	connection_send(person->connection, "%s", line);
}

const char *person_ask(struct person *person, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	send_args(person, format, args);
	va_end(args);
	return receive_line(person);
}

void person_tell(struct person *person, const char *expected, const char *format, ...)
{
	const char *line;
	va_list args;

	va_start(args, format);
	send_args(person, format, args);
	va_end(args);
	line = receive_line(person);
	if (strcmp(line, expected))
		connection_refused(person->connection, line);
}

const char *person_after(const char *line, const char *word)
{
	size_t len = strlen(word);

	return strncmp(line, word, len) || line[len] != ' ' ? NULL : line + len + 1;
}

char *person_stats_tube(struct person *person, const char *tube)
{
	char *yaml;

	connection_send(person->connection, "stats-tube %s", tube);
	yaml = connection_receive(person->connection);
	if (!yaml)
		errx(EXIT_CANNOT, "%s has no tube \"%s\"", person->address, tube);
	return yaml;
}

char *person_value(const char *yaml, const char *key)
{
	char *copy = strdup(yaml), *rest = copy, *seen, *value, *found = NULL;

	if (!copy)
		errx(EXIT_CANNOT, "out of memory");
	while (!found && yaml_next(&rest, &seen, &value))
		if (!strcmp(seen, key))
			found = strdup(value);
	free(copy);
	return found;
}

uint64_t person_number(const char *yaml, const char *key)
{
	char *value = person_value(yaml, key);
	uint64_t number = value ? strtoull(value, NULL, 10) : 0;

	free(value);
	return number;
}

/* --- printing ----------------------------------------------------------------------------- */

void person_print_json(json_t *object)
{
	if (!object)
		errx(EXIT_CANNOT, "out of memory");
	json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(object);
}

const char *person_jobs(char text[PERSON_JOBS_TEXT], uint64_t nr)
{
	snprintf(text, PERSON_JOBS_TEXT, "%" PRIu64 " job%s", nr, nr == 1 ? "" : "s");
	return text;
}

/* In UTF-8, 0xc2 and a byte below 0xa0 are a control character. */
bool person_is_text(const char *bytes, size_t len)
{
	json_t *string = json_stringn(bytes, len);
	size_t i;

	json_decref(string);
	for (i = 0; string && i < len; i++) {
		unsigned char c = bytes[i];

		if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
			return false;
		if (c == 0xc2 && i + 1 < len && (unsigned char)bytes[i + 1] < 0xa0)
			return false;
	}
	return string;
}
