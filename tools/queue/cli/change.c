// SPDX-License-Identifier: GPL-2.0
/* twheelq kick, delete, purge and pause: change jobs and tubes. */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/number.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "queue/cli/change.h"
#include "queue/cli/person.h"

/**
 * struct change - the state of each of these
 * @person: --connect and --json.
 * @by_id: --job of kick: the operands are ids.
 * @yes: --yes of purge.
 * @words: the operands.
 * @nr: their number.
 */
struct change {
	struct person person;
	bool by_id;
	bool yes;
	char **words;
	unsigned int nr;
};

static void take_word(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	struct change *change = values;

	change->words = reallocarray(change->words, nr + 1, sizeof(*change->words));
	if (!change->words)
		argp_failure(state, EXIT_CANNOT, 0, "out of memory");
	change->words[nr] = text;
	change->nr = nr + 1;
}

static void check_ids(struct argp_state *state, const struct change *change)
{
	unsigned int i;

	if (!change->nr)
		argp_error(state, "the id of a job is missing");
	for (i = 0; i < change->nr; i++)
		person_id(state, change->words[i]);
}

/* A command has @nr operands, the first of which is a tube. */
static void check_words(struct argp_state *state, const struct change *change, unsigned int nr,
			const char *missing)
{
	if (!change->nr)
		argp_error(state, "TUBE is missing");
	person_tube(state, change->words[0]);
	if (change->nr < nr)
		argp_error(state, "%s is missing", missing);
	if (change->nr > nr)
		argp_error(state, "\"%s\" is one argument too many", change->words[nr]);
}

/* Send a command for each id. Returns an exit status. */
static int change_ids(struct change *change, const char *command, const char *expected,
		      const char *done_word, const char *missing)
{
	char text[PERSON_JOBS_TEXT];
	struct person *person = &change->person;
	json_t *done = json_array();
	uint64_t id, nr = 0;
	const char *line;
	unsigned int i;

	for (i = 0; i < change->nr; i++) {
		id = strtoull(change->words[i], NULL, 10);
		line = person_ask(person, "%s %" PRIu64, command, id);
		if (!strcmp(line, expected)) {
			json_array_append_new(done, json_integer((json_int_t)id));
			nr++;
		} else if (!strcmp(line, "NOT_FOUND")) {
			warnx("job %" PRIu64 " %s", id, missing);
		} else {
			connection_refused(person->connection, line);
		}
	}
	if (person->json) {
		person_print_json(json_pack("{s:o}", done_word, done));
	} else {
		printf("%s %s\n", person_jobs(text, nr), done_word);
		json_decref(done);
	}
	return nr == change->nr ? 0 : EXIT_CANNOT;
}

static void say_jobs(const struct person *person, const char *what, uint64_t nr)
{
	char text[PERSON_JOBS_TEXT];

	if (person->json)
		person_print_json(json_pack("{s:I}", what, (json_int_t)nr));
	else
		printf("%s %s\n", person_jobs(text, nr), what);
}

/* The number behind a word of an answer. */
static uint64_t number_of(const struct person *person, const char *line, const char *word)
{
	const char *rest = person_after(line, word);

	if (!rest)
		connection_refused(person->connection, line);
	return strtoull(rest, NULL, 10);
}

/* --- kick --------------------------------------------------------------------------------- */

static void check_kick(struct argp_state *state, const void *values)
{
	const struct change *change = values;
	__u64 number;

	if (change->by_id) {
		check_ids(state, change);
		return;
	}
	check_words(state, change, 2, "the number of jobs");
	if (count_parse(change->words[1], &number) || !number)
		argp_error(state, "\"%s\" is not a number of jobs, which is at least 1",
			   change->words[1]);
}

static const struct option_rule kick_rules[] = {
	PERSON_CONNECT,
	PERSON_JSON,
	{ "job", 0, NULL, "Kick the jobs with these ids",
	  OPTION_FLAG, offsetof(struct change, by_id), 0, 0, NULL },
};

static const struct option_table kick_table = {
	.rules = kick_rules,
	.nr = ARRAY_SIZE(kick_rules),
	.operands = "TUBE N\n--job ID...",
	.doc = "Make jobs ready: up to N buried jobs of a tube or, if it has none, delayed\n"
	       "ones. Dead jobs go back to the tube that they came from.",
	.operand = take_word,
	.check = check_kick,
};

static int kick_tube(struct change *change)
{
	struct person *person = &change->person;
	const char *line;

	free(person_stats_tube(person, change->words[0]));
	connection_wait_long(person->connection);
	line = person_ask(person, "use %s", change->words[0]);
	if (!person_after(line, "USING"))
		connection_refused(person->connection, line);
	line = person_ask(person, "kick %s", change->words[1]);
	say_jobs(person, "kicked", number_of(person, line, "KICKED"));
	return 0;
}

int kick_main(int argc, char **argv)
{
	struct change change = { .words = NULL };
	int status;

	person_begin(&kick_table, &change, argc, argv);
	status = change.by_id ? change_ids(&change, "kick-job", "KICKED", "kicked",
					   "is neither buried nor delayed") : kick_tube(&change);
	free(change.words);
	return person_end(&change.person, status);
}

/* --- delete ------------------------------------------------------------------------------- */

static void check_delete(struct argp_state *state, const void *values)
{
	check_ids(state, values);
}

static const struct option_rule delete_rules[] = { PERSON_CONNECT, PERSON_JSON };

static const struct option_table delete_table = {
	.rules = delete_rules,
	.nr = ARRAY_SIZE(delete_rules),
	.operands = "ID...",
	.doc = "Delete jobs. A job that a worker has reserved is not deleted.",
	.operand = take_word,
	.check = check_delete,
};

int delete_main(int argc, char **argv)
{
	struct change change = { .words = NULL };
	int status;

	person_begin(&delete_table, &change, argc, argv);
	status = change_ids(&change, "delete", "DELETED", "deleted",
			    "is not there, or a worker has it");
	free(change.words);
	return person_end(&change.person, status);
}

/* --- purge -------------------------------------------------------------------------------- */

static void check_purge(struct argp_state *state, const void *values)
{
	const struct change *change = values;

	check_words(state, change, 2, "the state of the jobs");
	person_state(state, change->words[1]);
	if (!strcmp(change->words[1], "reserved"))
		argp_error(state, "reserved jobs cannot be purged");
	if (!change->yes && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
		argp_error(state, "--yes is missing: there is no terminal to ask on");
}

static const struct option_rule purge_rules[] = {
	PERSON_CONNECT,
	PERSON_JSON,
	{ "yes", 'y', NULL, "Do not ask", OPTION_FLAG, offsetof(struct change, yes), 0, 0, NULL },
};

static const struct option_table purge_table = {
	.rules = purge_rules,
	.nr = ARRAY_SIZE(purge_rules),
	.operands = "TUBE STATE",
	.doc = "Delete all jobs of a tube that are ready, delayed or buried.",
	.operand = take_word,
	.check = check_purge,
};

/* Ask on the terminal; only "y" and "yes" are yes. */
static bool is_wanted(const struct change *change, uint64_t nr)
{
	char text[PERSON_JOBS_TEXT], line[16] = "";

	fprintf(stderr, "Delete %s of the tube \"%s\" in the state %s? [y/N] ",
		person_jobs(text, nr), change->words[0], change->words[1]);
	if (!fgets(line, sizeof(line), stdin))
		return false;
	line[strcspn(line, "\r\n")] = '\0';
	return !strcmp(line, "y") || !strcmp(line, "yes");
}

static int purge(struct change *change)
{
	struct person *person = &change->person;
	char *yaml = person_stats_tube(person, change->words[0]), key[32];
	const char *line;
	bool wanted;

	snprintf(key, sizeof(key), "current-jobs-%s", change->words[1]);
	wanted = change->yes || is_wanted(change, person_number(yaml, key));
	free(yaml);
	if (!wanted) {
		warnx("nothing is deleted");
		return EXIT_CANNOT;
	}
	connection_wait_long(person->connection);
	line = person_ask(person, "purge %s %s", change->words[0], change->words[1]);
	say_jobs(person, "deleted", number_of(person, line, "PURGED"));
	return 0;
}

int purge_main(int argc, char **argv)
{
	struct change change = { .words = NULL };
	int status;

	person_begin(&purge_table, &change, argc, argv);
	status = purge(&change);
	free(change.words);
	return person_end(&change.person, status);
}

/* --- pause -------------------------------------------------------------------------------- */

static uint64_t duration_of(const char *text)
{
	uint64_t ns = 0;

	return text_duration(text, &ns) ? ns : UINT64_MAX;
}

static void check_pause(struct argp_state *state, const void *values)
{
	const struct change *change = values;

	check_words(state, change, 2, "DURATION");
	if (duration_of(change->words[1]) == UINT64_MAX)
		argp_error(state, "\"%s\" is not a time, such as 30s or 10m; 0 ends a pause",
			   change->words[1]);
}

static const struct option_rule pause_rules[] = { PERSON_CONNECT, PERSON_JSON };

static const struct option_table pause_table = {
	.rules = pause_rules,
	.nr = ARRAY_SIZE(pause_rules),
	.operands = "TUBE DURATION",
	.doc = "Give no jobs of a tube to workers for some time; 0 ends this.",
	.operand = take_word,
	.check = check_pause,
};

int pause_main(int argc, char **argv)
{
	struct change change = { .words = NULL };
	struct person *person = &change.person;
	const char *line;
	uint64_t ns;

	person_begin(&pause_table, &change, argc, argv);
	ns = duration_of(change.words[1]);
	line = person_ask(person, "pause-tube %s %" PRIu64 "us", change.words[0],
			  (uint64_t)(ns / NSEC_PER_USEC));
	if (!strcmp(line, "NOT_FOUND"))
		errx(EXIT_CANNOT, "%s has no tube \"%s\"", person->address, change.words[0]);
	if (strcmp(line, "PAUSED"))
		connection_refused(person->connection, line);
	if (person->json)
		person_print_json(json_pack("{s:s, s:I}", "tube", change.words[0], "pause-ms",
					    (json_int_t)(ns / NSEC_PER_MSEC)));
	else if (ns)
		printf("%s is paused for %s\n", change.words[0], change.words[1]);
	else
		printf("%s is not paused\n", change.words[0]);
	free(change.words);
	return person_end(person, 0);
}
