// SPDX-License-Identifier: GPL-2.0
/* twheelq put: put a job. */
#include <err.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "common/exit.h"
#include "common/time.h"
#include "common/util.h"
#include "queue/cli/body.h"
#include "queue/cli/person.h"
#include "queue/cli/put.h"

#define DEFAULT_PRIORITY	1024
#define DEFAULT_TTR_NS		(60 * NSEC_PER_SEC)

/**
 * struct put - the state of the command
 * @person: --connect and --json.
 * @tube: --tube.
 * @delay_ns: --delay.
 * @at_ms: --at, in ms since 1970; 0: not given.
 * @priority: --priority.
 * @ttr_ns: --ttr.
 * @key: --key.
 * @keep: --keep.
 * @file: --file.
 * @body: BODY.
 */
struct put {
	struct person person;
	const char *tube;
	uint64_t delay_ns;
	uint64_t at_ms;
	uint64_t priority;
	uint64_t ttr_ns;
	const char *key;
	bool keep;
	const char *file;
	const char *body;
};

static void take_tube(struct argp_state *state, char *text, void *values)
{
	((struct put *)values)->tube = person_tube(state, text);
}

static void take_key(struct argp_state *state, char *text, void *values)
{
	((struct put *)values)->key = person_key(state, "a key", text);
}

static void take_time(struct argp_state *state, char *text, void *values)
{
	((struct put *)values)->at_ms = person_time(state, "--at", text);
}

static void take_operand(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	if (nr)
		argp_error(state, "\"%s\" is one argument too many", text);
	((struct put *)values)->body = text;
}

static void check_options(struct argp_state *state, const void *values)
{
	const struct put *put = values;

	if (!put->body == !put->file)
		argp_error(state, put->body ? "give BODY or --file, not both" :
			   "BODY is missing; \"-\" reads it from standard input");
	if (put->at_ms && (put->delay_ns || put->key))
		argp_error(state, "--at does not go together with --delay and --key");
	if (put->keep && !put->key)
		argp_error(state, "--keep needs --key");
}

#define AT(member)	offsetof(struct put, member)

static const struct option_rule rules[] = {
	PERSON_CONNECT,
	PERSON_JSON,
	{ "tube", 't', "NAME", "The tube of the job (default \"default\")",
	  OPTION_OTHER, 0, 0, 0, take_tube },
	{ "delay", 'd', "DURATION", "The job is due after this time (default 0)",
	  OPTION_DURATION, AT(delay_ns), 0, UINT64_MAX, NULL },
	{ "at", 0, "TIME", "The job is due at this time of day, such as \"tomorrow 7:00\"",
	  OPTION_OTHER, 0, 0, 0, take_time },
	{ "priority", 'p', "N", "Lower numbers are served first (default 1024)",
	  OPTION_COUNT, AT(priority), 0, UINT32_MAX, NULL },
	{ "ttr", 0, "DURATION", "The time that a worker has (default 60s)",
	  OPTION_DURATION, AT(ttr_ns), 1, UINT64_MAX, NULL },
	{ "key", 'k', "NAME", "Replace the job of the tube that has this key",
	  OPTION_OTHER, 0, 0, 0, take_key },
	{ "keep", 0, NULL, "With --key: leave a job that has the key as it is",
	  OPTION_FLAG, AT(keep), 0, 0, NULL },
	{ "file", 'f', "FILE", "Take the body from a file",
	  OPTION_TEXT, AT(file), 0, 0, NULL },
};

static const struct option_table table = {
	.rules = rules,
	.nr = ARRAY_SIZE(rules),
	.operands = "[BODY | -]",
	.doc = "Put a job; \"-\" reads its body from standard input.",
	.operand = take_operand,
	.check = check_options,
};

static void send_put(const struct put *put, const struct body *body)
{
	struct connection *connection = put->person.connection;
	uint64_t delay_us = put->delay_ns / NSEC_PER_USEC, ttr_us = put->ttr_ns / NSEC_PER_USEC;

	if (put->at_ms)
		connection_send(connection, "put-at %" PRIu64 " %" PRIu64 " %" PRIu64 "us %zu",
				put->priority, put->at_ms, ttr_us, body->len);
	else if (put->key)
		connection_send(connection, "%s %s %" PRIu64 " %" PRIu64 "us %" PRIu64 "us %zu",
				put->keep ? "keep-unique" : "put-unique", put->key, put->priority,
				delay_us, ttr_us, body->len);
	else
		connection_send(connection, "put %" PRIu64 " %" PRIu64 "us %" PRIu64 "us %zu",
				put->priority, delay_us, ttr_us, body->len);
	connection_send_body(connection, body->bytes, body->len);
}

/* Returns an exit status. */
static int say_result(const struct put *put, const char *line)
{
	static const struct {
		const char *word;
		const char *name;
		const char *format;
	} results[] = {
		{ "INSERTED", "inserted", "job %" PRIu64 " is put\n" },
		{ "REPLACED", "replaced", "job %" PRIu64 " had this key, and is replaced\n" },
		{ "KEPT", "kept", "job %" PRIu64 " has this key, and stays as it is\n" },
		{ "RESERVED", "reserved",
		  "job %" PRIu64 " has this key, and a worker has it: nothing is put\n" },
	};
	const char *rest;
	uint64_t id;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(results); i++) {
		rest = person_after(line, results[i].word);
		if (!rest)
			continue;
		id = strtoull(rest, NULL, 10);
		if (put->person.json)
			person_print_json(json_pack("{s:s, s:I}", "result", results[i].name,
						    "id", (json_int_t)id));
		else
			printf(results[i].format, id);
		return strcmp(results[i].word, "RESERVED") ? 0 : EXIT_CANNOT;
	}
	connection_refused(put->person.connection, line);
}

int put_main(int argc, char **argv)
{
	struct put put = {
		.tube = "default", .priority = DEFAULT_PRIORITY, .ttr_ns = DEFAULT_TTR_NS,
	};
	struct answer answer;
	struct body body;
	int status;

	person_begin(&table, &put, argc, argv);
	body = body_read(put.body, put.file);
	connection_send(put.person.connection, "use %s", put.tube);
	connection_answer(put.person.connection, &answer);
	if (!person_after(answer.line, "USING"))
		connection_refused(put.person.connection, answer.line);
	send_put(&put, &body);
	connection_answer(put.person.connection, &answer);
	status = say_result(&put, answer.line);
	free(body.bytes);
	return person_end(&put.person, status);
}
