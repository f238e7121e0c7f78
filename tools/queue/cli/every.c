// SPDX-License-Identifier: GPL-2.0
/* twheelq every: periodic jobs. */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "queue/cli/body.h"
#include "queue/cli/every.h"
#include "queue/cli/person.h"
#include "queue/cli/yaml.h"

/**
 * struct every - the state of the command
 * @person: --connect and --json.
 * @tube: --tube.
 * @interval_ns: --interval; 0: not given.
 * @first_ms: --first, in ms since 1970; 0: not given.
 * @priority: --priority.
 * @ttr_ns: --ttr.
 * @file: --file.
 * @stop: --stop.
 * @list: --list.
 * @name: NAME.
 * @body: BODY.
 */
struct every {
	struct person person;
	const char *tube;
	uint64_t interval_ns;
	uint64_t first_ms;
	uint64_t priority;
	uint64_t ttr_ns;
	const char *file;
	bool stop;
	bool list;
	const char *name;
	const char *body;
};

static void take_tube(struct argp_state *state, char *text, void *values)
{
	((struct every *)values)->tube = person_tube(state, text);
}

static void take_first(struct argp_state *state, char *text, void *values)
{
	((struct every *)values)->first_ms = person_time(state, "--first", text);
}

static void take_operand(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	struct every *every = values;

	if (nr == 0)
		every->name = person_key(state, "a name", text);
	else if (nr == 1)
		every->body = text;
	else
		argp_error(state, "\"%s\" is one argument too many", text);
}

static void check_options(struct argp_state *state, const void *values)
{
	const struct every *every = values;

	if (every->list && (every->stop || every->name))
		argp_error(state, "--list has no NAME, and does not go together with --stop");
	if (every->list)
		return;
	if (!every->name)
		argp_error(state, "NAME is missing");
	if (every->stop && (every->body || every->file))
		argp_error(state, "--stop has no BODY");
	if (every->stop)
		return;
	if (!every->body == !every->file)
		argp_error(state, every->body ? "give BODY or --file, not both" :
			   "BODY is missing; \"-\" reads it from standard input");
	if (!every->interval_ns || !every->first_ms)
		argp_error(state, "--%s is missing", every->interval_ns ? "first" : "interval");
}

#define AT(member)	offsetof(struct every, member)

static const struct option_rule rules[] = {
	PERSON_CONNECT,
	PERSON_JSON,
	{ "tube", 't', "NAME", "The tube of the jobs (default \"default\")",
	  OPTION_OTHER, 0, 0, 0, take_tube },
	{ "interval", 'i', "DURATION", "The time between jobs",
	  OPTION_DURATION, AT(interval_ns), 1, UINT64_MAX, NULL },
	{ "first", 0, "TIME", "The time of the first job, such as \"tomorrow 7:00\" or now+1m",
	  OPTION_OTHER, 0, 0, 0, take_first },
	{ "priority", 'p', "N", "Lower numbers are served first (default 1024)",
	  OPTION_COUNT, AT(priority), 0, UINT32_MAX, NULL },
	{ "ttr", 0, "DURATION", "The time that a worker has (default 60s)",
	  OPTION_DURATION, AT(ttr_ns), 1, UINT64_MAX, NULL },
	{ "file", 'f', "FILE", "Take the body from a file", OPTION_TEXT, AT(file), 0, 0, NULL },
	{ "stop", 0, NULL, "Put no more jobs of this name", OPTION_FLAG, AT(stop), 0, 0, NULL },
	{ "list", 'l', NULL, "List the periodic jobs of the tube",
	  OPTION_FLAG, AT(list), 0, 0, NULL },
};

static const struct option_table table = {
	.rules = rules,
	.nr = ARRAY_SIZE(rules),
	.operands = "NAME [BODY | -]\n--list",
	.doc = "Put a job again and again, by the wall clock; or stop it, or list those of a\n"
	       "tube.",
	.operand = take_operand,
	.check = check_options,
};

/* --- the commands ------------------------------------------------------------------------- */

static void say(const struct every *every, const char *result, const char *words)
{
	if (every->person.json)
		person_print_json(json_pack("{s:s, s:s, s:s}", "tube", every->tube, "name",
					    every->name, "result", result));
	else
		printf("%s %s in %s\n", every->name, words, every->tube);
}

static int begin(const struct every *every)
{
	struct connection *connection = every->person.connection;
	struct body body = body_read(every->body, every->file);
	struct answer answer;

	connection_send(connection, "every %s %" PRIu64 " %" PRIu64 "us %" PRIu64 " %" PRIu64
			"us %zu", every->name, every->priority,
			(uint64_t)(every->interval_ns / NSEC_PER_USEC), every->first_ms,
			(uint64_t)(every->ttr_ns / NSEC_PER_USEC), body.len);
	connection_send_body(connection, body.bytes, body.len);
	connection_answer(connection, &answer);
	free(body.bytes);
	if (strcmp(answer.line, "EVERY"))
		connection_refused(connection, answer.line);
	say(every, "every", "is put again and again");
	return 0;
}

static int end(struct every *every)
{
	const char *line = person_ask(&every->person, "every-stop %s", every->name);

	if (!strcmp(line, "NOT_FOUND")) {
		warnx("%s has no periodic job \"%s\"", every->tube, every->name);
		return EXIT_CANNOT;
	}
	if (strcmp(line, "STOPPED"))
		connection_refused(every->person.connection, line);
	say(every, "stopped", "is stopped");
	return 0;
}

/* --- the list ----------------------------------------------------------------------------- */

/* A line of the list: "- name: ..." begins a job, "  key: value" goes on with it. */
static void print_pair(const struct every *every, json_t **object, const char *key,
		       char *value)
{
	bool is_name = !strcmp(key, "name");

	if (every->person.json) {
		if (is_name || !strcmp(key, "tube"))
			json_object_set_new(*object, key, yaml_string(value));
		else
			json_object_set_new(*object, key,
					    json_integer((json_int_t)strtoull(value, NULL, 10)));
	} else {
		if (!is_name)
			printf("  %-12s ", key);
		text_put_printable(value, stdout);
		putchar('\n');
	}
}

/* The value of "name: VALUE", without its quotes, which no name has. */
static char *name_of(char *value)
{
	char *name = strchr(value, ' ');

	name = name ? name + 1 : value;
	name += *name == '"';
	name[strcspn(name, "\"")] = '\0';
	return name;
}

static void end_object(json_t **object)
{
	if (*object)
		person_print_json(*object);
	*object = NULL;
}

/* Print a page; @last becomes the name of its last job. Returns the number of its jobs. */
static size_t print_page(const struct every *every, char *last, size_t size)
{
	char *yaml, *rest, *key, *value;
	json_t *object = NULL;
	size_t nr = 0;

	connection_send(every->person.connection, "list-every%s%s", *last ? " " : "", last);
	yaml = connection_receive(every->person.connection);
	if (!yaml)
		return 0;
	rest = yaml;
	while (yaml_next(&rest, &key, &value)) {
		key += strspn(key, " ");
		if (!*key) {
			end_object(&object);
			object = every->person.json ? json_object() : NULL;
			key = "name";
			value = name_of(value);
			snprintf(last, size, "%s", value);
			nr++;
		}
		print_pair(every, &object, key, value);
	}
	end_object(&object);
	free(yaml);
	return nr;
}

static int list(const struct every *every)
{
	char last[256] = "";

	while (print_page(every, last, sizeof(last)))
		;
	return 0;
}

static int run(struct every *every)
{
	if (every->list)
		return list(every);
	return every->stop ? end(every) : begin(every);
}

int every_main(int argc, char **argv)
{
	struct every every = {
		.tube = "default", .priority = 1024, .ttr_ns = 60 * NSEC_PER_SEC,
	};
	const char *line;

	person_begin(&table, &every, argc, argv);
	line = person_ask(&every.person, "use %s", every.tube);
	if (!person_after(line, "USING"))
		connection_refused(every.person.connection, line);
	return person_end(&every.person, run(&every));
}
