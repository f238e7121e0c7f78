// SPDX-License-Identifier: GPL-2.0
/* twheelq peek and jobs: show a job, and list those of a tube. */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/number.h"
#include "common/time.h"
#include "common/util.h"
#include "queue/cli/body.h"
#include "queue/cli/peek.h"
#include "queue/cli/person.h"
#include "queue/cli/yaml.h"

/* The jobs of a page; all of them are asked for before an answer is read. */
#define PAGE_JOBS	200

/**
 * struct peek - the state of peek and of jobs
 * @person: --connect and --json.
 * @raw: --raw.
 * @limit: --limit.
 * @tube: TUBE, or the id of a job.
 * @state: STATE; NULL: @tube is an id, and of jobs: all states.
 * @id: the id.
 */
struct peek {
	struct person person;
	bool raw;
	uint64_t limit;
	const char *tube;
	const char *state;
	uint64_t id;
};

/* --- a job as JSON or as text ------------------------------------------------------------- */

/* Are these numbers that are shown? The others are of no use, or shown in another form. */
static bool is_shown(const char *key)
{
	static const char *const left_out[] = { "id", "file", "time-left", "age" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(left_out); i++)
		if (!strcmp(key, left_out[i]))
			return false;
	return true;
}

static bool is_text_key(const char *key)
{
	return !strcmp(key, "tube") || !strcmp(key, "state") || !strcmp(key, "key") ||
		!strcmp(key, "origin-tube") || !strcmp(key, "reason");
}

/* The answer to stats-job, which is overwritten. */
static json_t *json_of_job(char *yaml)
{
	json_t *object = json_object();
	char *key, *value;

	while (yaml_next(&yaml, &key, &value))
		if (is_text_key(key))
			body_set_json(object, key, value, strlen(value));
		else if (strcmp(key, "file"))
			json_object_set_new(object, key,
					    json_integer((json_int_t)strtoull(value, NULL, 10)));
	return object;
}

static void print_time(const char *key, uint64_t unix_ms)
{
	time_t seconds = (time_t)(unix_ms / 1000);
	char text[32] = "";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	printf("  %-12s %s\n", key, text);
}

/* Reasons have any bytes; they are shown in a line. */
static void print_words(const char *value)
{
	const char *p;

	if (!person_is_text(value, strlen(value)))
		for (p = value; *p; p++)
			putchar(*p >= ' ' && *p < 0x7f ? *p : '?');
	else
		for (p = value; *p; p++)
			putchar(*p == '\n' || *p == '\t' ? ' ' : *p);
	putchar('\n');
}

static void print_pair(const char *key, const char *value)
{
	char number[NUMBER_TEXT];

	if (!strcmp(key, "died")) {
		print_time(key, strtoull(value, NULL, 10));
	} else if (!strcmp(key, "time-left-ms")) {
		printf("  %-12s %s\n", "time-left",
		       duration_format(number, strtod(value, NULL) * NSEC_PER_MSEC));
	} else if (!strcmp(key, "delay") || !strcmp(key, "ttr")) {
		printf("  %-12s %s s\n", key, value);
	} else {
		printf("  %-12s ", key);
		print_words(value);
	}
}

static void print_job(uint64_t id, char *yaml)
{
	char *key, *value;

	printf("job %" PRIu64 "\n", id);
	while (yaml_next(&yaml, &key, &value))
		if (is_shown(key))
			print_pair(key, value);
}

/* --- peek --------------------------------------------------------------------------------- */

static void show_job(const struct peek *peek, uint64_t id, const struct answer *body)
{
	char *yaml;

	if (peek->raw) {
		if (isatty(STDOUT_FILENO) && !person_is_text(body->body, body->len))
			errx(EXIT_CANNOT, "the body is no text: write it to a file or a pipe");
		fwrite(body->body, 1, body->len, stdout);
		return;
	}
	connection_send(peek->person.connection, "stats-job %" PRIu64, id);
	yaml = connection_receive(peek->person.connection);
	if (!yaml)
		errx(EXIT_CANNOT, "job %" PRIu64 " is gone just now", id);
	if (peek->person.json) {
		json_t *object = json_of_job(yaml);

		body_set_json(object, "body", body->body, body->len);
		person_print_json(object);
	} else {
		print_job(id, yaml);
		printf("body of %zu byte%s%s:\n", body->len, body->len == 1 ? "" : "s",
		       person_is_text(body->body, body->len) ? "" : ", in hex");
		body_print(body->body, body->len);
	}
	free(yaml);
}

static void send_peek(struct peek *peek)
{
	if (!peek->state) {
		connection_send(peek->person.connection, "peek %" PRIu64, peek->id);
		return;
	}
	free(person_stats_tube(&peek->person, peek->tube));
	connection_send(peek->person.connection, "use %s", peek->tube);
	connection_send(peek->person.connection, "peek-%s", peek->state);
}

static int show_first(struct peek *peek)
{
	struct answer answer;
	const char *rest;

	send_peek(peek);
	if (peek->state)
		connection_answer(peek->person.connection, &answer);
	connection_answer(peek->person.connection, &answer);
	if (!strcmp(answer.line, "NOT_FOUND")) {
		if (peek->state)
			warnx("the tube \"%s\" has no %s job", peek->tube, peek->state);
		else
			warnx("there is no job %" PRIu64, peek->id);
		return EXIT_CANNOT;
	}
	rest = person_after(answer.line, "FOUND");
	if (!rest || !answer.body)
		connection_refused(peek->person.connection, answer.line);
	show_job(peek, strtoull(rest, NULL, 10), &answer);
	free(answer.body);
	return 0;
}

static void take_peek(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	struct peek *peek = values;

	if (nr == 0)
		peek->tube = text;
	else if (nr == 1)
		peek->state = person_state(state, text);
	else
		argp_error(state, "\"%s\" is one argument too many", text);
}

static void check_peek(struct argp_state *state, const void *values)
{
	const struct peek *peek = values;

	if (!peek->tube)
		argp_error(state, "the id of a job is missing, or TUBE and STATE");
	else if (!peek->state)
		person_id(state, peek->tube);
	else
		person_tube(state, peek->tube);
	if (peek->state && !strcmp(peek->state, "reserved"))
		argp_error(state, "a reserved job is shown by its id only");
	if (peek->raw && peek->person.json)
		argp_error(state, "--raw and --json do not go together");
}

static const struct option_rule peek_rules[] = {
	PERSON_CONNECT,
	PERSON_JSON,
	{ "raw", 'r', NULL, "Write the bytes of the body, and nothing else",
	  OPTION_FLAG, offsetof(struct peek, raw), 0, 0, NULL },
};

static const struct option_table peek_table = {
	.rules = peek_rules,
	.nr = ARRAY_SIZE(peek_rules),
	.operands = "ID\nTUBE STATE",
	.doc = "Show a job and its body: that of an id, or the next one of a tube that is\n"
	       "ready, delayed or buried.",
	.operand = take_peek,
	.check = check_peek,
};

int peek_main(int argc, char **argv)
{
	struct peek peek = { .tube = NULL };

	person_begin(&peek_table, &peek, argc, argv);
	if (!peek.state)
		peek.id = strtoull(peek.tube, NULL, 10);
	return person_end(&peek.person, show_first(&peek));
}

/* --- jobs --------------------------------------------------------------------------------- */

static void print_heading(void)
{
	printf("%20s %-8s %10s %8s %12s  %s\n", "id", "state", "priority", "attempts", "time left",
	       "key, or reason");
}

/* The time until a job is due or its TTR ends; "-": neither. */
static const char *left_text(char text[NUMBER_TEXT], uint64_t ms)
{
	return ms ? duration_format(text, (double)ms * NSEC_PER_MSEC) : "-";
}

/* A job may be gone, or be in another state, since its page was made. */
static void print_line(const struct peek *peek, uint64_t id, char *yaml)
{
	char left[NUMBER_TEXT], *state, *words;

	if (peek->person.json) {
		person_print_json(json_of_job(yaml));
		return;
	}
	state = person_value(yaml, "state");
	words = person_value(yaml, "reason");
	if (!words)
		words = person_value(yaml, "key");
	printf("%20" PRIu64 " %-8s %10" PRIu64 " %8" PRIu64 " %12s  ", id, state ? state : "",
	       person_number(yaml, "pri"), person_number(yaml, "attempts"),
	       left_text(left, person_number(yaml, "time-left-ms")));
	print_words(words ? words : "");
	free(state);
	free(words);
}

static void print_ids(struct peek *peek, const uint64_t *ids, size_t nr)
{
	char *yaml;
	size_t i;

	for (i = 0; i < nr; i++)
		connection_send(peek->person.connection, "stats-job %" PRIu64, ids[i]);
	for (i = 0; i < nr; i++) {
		yaml = connection_receive(peek->person.connection);
		if (yaml)
			print_line(peek, ids[i], yaml);
		free(yaml);
	}
}

/* Print a page. Returns the number of its jobs; @cursor becomes that of the next one. */
static size_t print_page(struct peek *peek, const char *state, char *cursor, size_t size,
			 uint64_t most)
{
	uint64_t ids[PAGE_JOBS];
	char *yaml, *rest, *key, *value;
	size_t nr = 0;

	connection_send(peek->person.connection, "list-jobs %s %s %s %" PRIu64, peek->tube, state,
			cursor, most);
	yaml = connection_receive(peek->person.connection);
	if (!yaml)
		return 0;
	rest = yaml;
	while (yaml_next(&rest, &key, &value))
		if (!strcmp(key, "next"))
			snprintf(cursor, size, "%s", value);
		else if (nr < PAGE_JOBS)
			ids[nr++] = strtoull(key, NULL, 10);
	free(yaml);
	print_ids(peek, ids, nr);
	return nr;
}

static void list_state(struct peek *peek, const char *state, uint64_t *left)
{
	char cursor[80] = "0";
	uint64_t most;
	size_t nr;

	do {
		most = *left < PAGE_JOBS ? *left : PAGE_JOBS;
		nr = most ? print_page(peek, state, cursor, sizeof(cursor), most) : 0;
		*left -= nr;
	} while (nr);
}

static void take_jobs(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	struct peek *peek = values;

	if (nr == 0)
		peek->tube = person_tube(state, text);
	else if (nr == 1)
		peek->state = person_state(state, text);
	else
		argp_error(state, "\"%s\" is one argument too many", text);
}

static void check_jobs(struct argp_state *state, const void *values)
{
	if (!((const struct peek *)values)->tube)
		argp_error(state, "TUBE is missing");
}

static const struct option_rule jobs_rules[] = {
	PERSON_CONNECT,
	PERSON_JSON,
	{ "limit", 'n', "N", "List at most so many jobs (default 100)",
	  OPTION_COUNT, offsetof(struct peek, limit), 1, UINT64_MAX, NULL },
};

static const struct option_table jobs_table = {
	.rules = jobs_rules,
	.nr = ARRAY_SIZE(jobs_rules),
	.operands = "TUBE [STATE]",
	.doc = "List the jobs of a tube that are ready, reserved, delayed or buried; without\n"
	       "STATE, all of them.",
	.operand = take_jobs,
	.check = check_jobs,
};

int jobs_main(int argc, char **argv)
{
	static const char *const states[] = { "ready", "reserved", "delayed", "buried" };
	struct peek peek = { .limit = 100 };
	uint64_t left;
	size_t i;

	person_begin(&jobs_table, &peek, argc, argv);
	left = peek.limit;
	free(person_stats_tube(&peek.person, peek.tube));
	if (!peek.person.json)
		print_heading();
	for (i = 0; i < ARRAY_SIZE(states); i++)
		if (!peek.state || !strcmp(peek.state, states[i]))
			list_state(&peek, states[i], &left);
	return person_end(&peek.person, 0);
}
