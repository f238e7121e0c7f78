/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Options of programs, over argp.
 *
 * A program with many options has a table of them, one rule an option, and options_parse()
 * stores their values in a structure of the program. A program with a parser of its own
 * calls option_count() and the like for the values.
 *
 * A wrong value ends the program with EXIT_USAGE and a message that names the option and the
 * value, and says what would be right.
 */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include <argp.h>
#include <stdint.h>

#define KIB	1024ULL
#define MIB	(1024 * KIB)
#define GIB	(1024 * MIB)

/* The kind of an option's value, and the type of the member that gets it. */
enum option_kind {
	OPTION_FLAG,		/* no value; bool, which becomes true */
	OPTION_TEXT,		/* any text that is not empty; const char * */
	OPTION_COUNT,		/* a number; uint64_t */
	OPTION_SIZE,		/* bytes: a number, and K, M or G; uint64_t */
	OPTION_DURATION,	/* "50ms", "2h", "5" seconds; uint64_t in ns */
	OPTION_LOG_LEVEL,	/* "error" to "debug"; int, a priority of syslog */
	OPTION_OTHER		/* the rule's function parses it */
};

/**
 * struct option_rule - an option
 * @name: without "--"; NULL: it has only a short form.
 * @key: its short form, a character; or 0.
 * @value: the name of its value in --help; NULL for OPTION_FLAG.
 * @help: its line in --help; NULL: --help does not show it.
 * @kind: what its value is.
 * @offset: of the member that gets it.
 * @min: the least value of OPTION_COUNT, OPTION_SIZE and OPTION_DURATION.
 * @max: the largest one.
 * @parse: for OPTION_OTHER, parses @text into the program's structure.
 */
struct option_rule {
	const char *name;
	int key;
	const char *value;
	const char *help;
	enum option_kind kind;
	size_t offset;
	uint64_t min;
	uint64_t max;
	void (*parse)(struct argp_state *state, char *text, void *values);
};

/**
 * struct option_table - the options of a program
 * @rules: an array of them.
 * @nr: how many there are.
 * @doc: what --help says before the options.
 * @operands: what --help calls the operands; NULL: there are none.
 * @operand: takes the operand number @nr, from 0 on.
 * @check: called after all options were parsed, for limits that depend on one another; or NULL.
 */
struct option_table {
	const struct option_rule *rules;
	size_t nr;
	const char *doc;
	const char *operands;
	void (*operand)(struct argp_state *state, char *text, unsigned int nr, void *values);
	void (*check)(struct argp_state *state, const void *values);
};

/* argp_parse(), which ends the program without memory. */
void options_argp(const struct argp *argp, int argc, char **argv, unsigned int flags,
		  void *input);

/* Parse the options of a program into @values, which has the defaults. */
void options_parse(const struct option_table *table, void *values, int argc, char **argv);

/* --- values, for parsers of argp ------------------------------------------------------- */

/* A number from @min to @max. */
uint64_t option_count(struct argp_state *state, const char *name, const char *text,
		      uint64_t min, uint64_t max);

/* A time in seconds without a unit ("1.5"), of at least @min_ns. Returns ns. */
uint64_t option_seconds(struct argp_state *state, const char *name, const char *text,
			uint64_t min_ns);

/* A time with its unit ("1.5s"). Returns ns. */
uint64_t option_duration(struct argp_state *state, const char *name, const char *text);

#endif /* COMMON_OPTIONS_H */
