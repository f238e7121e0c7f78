/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the subcommands share that do by a daemon's commands what a person would do by hand:
 * put, peek, jobs, kick, delete, purge, pause, policy, every and backup.
 *
 * No byte that a terminal would take for a command is printed, wherever it comes from.
 */
#ifndef QUEUE_CLI_PERSON_H
#define QUEUE_CLI_PERSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/address.h"
#include "common/options.h"
#include "queue/cli/connection.h"

/**
 * struct person - what each of these subcommands has
 * @address: --connect.
 * @json: --json.
 * @connection: the connection to the daemon.
 */
struct person {
	const char *address;
	bool json;
	struct connection *connection;
};

/* The rules of these options; the structure of the values begins with struct person. */
#define PERSON_CONNECT { \
	"connect", 'a', "ADDRESS", \
	"Where the daemon is: HOST:PORT or unix:PATH (default " ADDRESS_DEFAULT ")", \
	OPTION_TEXT, offsetof(struct person, address), 0, 0, NULL }

#define PERSON_JSON { \
	"json", 'j', NULL, "Print JSON", OPTION_FLAG, offsetof(struct person, json), 0, 0, NULL }

/* Parse the options into @values, which begin with struct person, and connect. */
void person_begin(const struct option_table *table, void *values, int argc, char **argv);

/* End the connection, and write what was printed. Returns @status, or EXIT_CANNOT. */
int person_end(struct person *person, int status);

/* --- operands: wrong ones end the program ------------------------------------------------ */

const char *person_tube(struct argp_state *state, const char *text);
const char *person_key(struct argp_state *state, const char *what, const char *text);
const char *person_state(struct argp_state *state, const char *text);
uint64_t person_id(struct argp_state *state, const char *text);
/* A time as moment_parse() knows it, in ms since 1970. */
uint64_t person_time(struct argp_state *state, const char *what, const char *text);

/* --- asking ------------------------------------------------------------------------------ */

/* Send a command, and receive its answer, whose body nobody needs. Returns its line. */
const char *person_ask(struct person *person, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for an answer of one line that has to be @expected. */
void person_tell(struct person *person, const char *expected, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The rest of a line that begins with a word and a space; NULL: it does not. */
const char *person_after(const char *line, const char *word);

/* The YAML of stats-tube, which the caller frees. The program ends if there is no such tube. */
char *person_stats_tube(struct person *person, const char *tube);

/* The value of a key of YAML, which the caller frees; NULL: there is none. */
char *person_value(const char *yaml, const char *key);
uint64_t person_number(const char *yaml, const char *key);

/* --- printing ---------------------------------------------------------------------------- */

/* Print a line of JSON, and free it. */
void person_print_json(json_t *object);

/* "17 jobs", "1 job". Returns @text. */
#define PERSON_JOBS_TEXT 32
const char *person_jobs(char text[PERSON_JOBS_TEXT], uint64_t nr);

/* May these bytes be shown as text? They are UTF-8, and have no control characters but \n, \t. */
bool person_is_text(const char *bytes, size_t len);

#endif /* QUEUE_CLI_PERSON_H */
