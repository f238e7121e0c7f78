// SPDX-License-Identifier: GPL-2.0
/* Options of programs, over argp. */
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/number.h"
#include "common/options.h"
#include "common/text.h"
#include "common/time.h"

/* argp's keys of options without a short form: this and the number of the rule. */
#define LONG_ONLY	256

/* Room for a size as text. */
#define SIZE_TEXT	24

/* --- values ----------------------------------------------------------------------------- */

uint64_t option_count(struct argp_state *state, const char *name, const char *text,
		      uint64_t min, uint64_t max)
{
	__u64 value;

	if (count_parse(text, &value) || value < min || value > max)
		argp_error(state, "--%s \"%s\" is not a whole number from %" PRIu64 " to %" PRIu64,
			   name, text, min, max);
	return value;
}

uint64_t option_seconds(struct argp_state *state, const char *name, const char *text,
			uint64_t min_ns)
{
	const char *wrong;
	__u64 ns;

	wrong = seconds_parse(text, &ns);
	if (wrong)
		argp_error(state, "--%s \"%s\" %s", name, text, wrong);
	if (ns < min_ns)
		argp_error(state, "--%s \"%s\" is less than %g", name, text,
			   (double)min_ns / NSEC_PER_SEC);
	return ns;
}

uint64_t option_duration(struct argp_state *state, const char *name, const char *text)
{
	const char *wrong;
	__u64 ns;

	wrong = duration_parse(text, &ns);
	if (wrong)
		argp_error(state, "--%s \"%s\" %s", name, text, wrong);
	return ns;
}

/* --- values of a table ------------------------------------------------------------------ */

/* Digits, and K, M or G. */
static bool parse_size(const char *text, uint64_t *size)
{
	static const char units[] = "KMG";
	struct text rest = { text, text + strlen(text) };
	uint64_t unit = 1, value;
	const char *which;

	if (!text_digits(&rest, INT64_MAX, &value))
		return false;
	which = text_empty(&rest) ? NULL : strchr(units, *rest.start);
	if (which) {
		unit = KIB << (10 * (which - units));
		rest.start++;
	}
	*size = value * unit;
	return text_empty(&rest) && value <= INT64_MAX / unit;
}

/* Bytes in the largest unit that divides them. */
static const char *format_size(char text[SIZE_TEXT], uint64_t size)
{
	static const char units[] = "\0KMG";
	size_t unit = 0;

	while (unit < 3 && size && size % KIB == 0) {
		size /= KIB;
		unit++;
	}
	snprintf(text, SIZE_TEXT, "%" PRIu64 "%.1s", size, &units[unit]);
	return text;
}

static uint64_t size_of(struct argp_state *state, const struct option_rule *rule,
			const char *text)
{
	char limit[SIZE_TEXT];
	uint64_t size = 0;

	if (!parse_size(text, &size))
		argp_error(state, "--%s \"%s\" is not a size, such as 65535 or 256M", rule->name,
			   text);
	if (size < rule->min)
		argp_error(state, "--%s %s is less than %s", rule->name, text,
			   format_size(limit, rule->min));
	if (size > rule->max)
		argp_error(state, "--%s %s is more than %s", rule->name, text,
			   format_size(limit, rule->max));
	return size;
}

static uint64_t duration_of(struct argp_state *state, const struct option_rule *rule,
			    const char *text)
{
	uint64_t ns;

	if (!text_duration(text, &ns) || ns < rule->min || ns > rule->max)
		argp_error(state, "--%s \"%s\" is not a time%s, such as 50ms, 10m or 2h",
			   rule->name, text, rule->min ? " longer than 0" : "");
	return ns;
}

static int log_level_of(struct argp_state *state, const struct option_rule *rule,
			const char *text)
{
	int level = log_level_parse(text);

	if (level < 0)
		argp_error(state, "--%s \"%s\" is not error, warning, notice, info or debug",
			   rule->name, text);
	return level;
}

static void parse_value(struct argp_state *state, const struct option_rule *rule, char *text,
			void *values)
{
	void *member = (char *)values + rule->offset;

	switch (rule->kind) {
	case OPTION_FLAG:
		*(bool *)member = true;
		break;
	case OPTION_TEXT:
		if (!*text)
			argp_error(state, "--%s is empty", rule->name);
		*(const char **)member = text;
		break;
	case OPTION_COUNT:
		*(uint64_t *)member = option_count(state, rule->name, text, rule->min, rule->max);
		break;
	case OPTION_SIZE:
		*(uint64_t *)member = size_of(state, rule, text);
		break;
	case OPTION_DURATION:
		*(uint64_t *)member = duration_of(state, rule, text);
		break;
	case OPTION_LOG_LEVEL:
		*(int *)member = log_level_of(state, rule, text);
		break;
	case OPTION_OTHER:
		rule->parse(state, text, values);
		break;
	}
}

/* --- the table -------------------------------------------------------------------------- */

/* The context of parse(). */
struct input {
	const struct option_table *table;
	void *values;
};

static int key_of(const struct option_table *table, size_t i)
{
	return table->rules[i].key ? table->rules[i].key : LONG_ONLY + (int)i;
}

static const struct option_rule *rule_of(const struct option_table *table, int key)
{
	size_t i;

	for (i = 0; i < table->nr; i++)
		if (key_of(table, i) == key)
			return &table->rules[i];
	return NULL;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	const struct input *input = state->input;
	const struct option_rule *rule;

	switch (key) {
	case ARGP_KEY_ARG:
		if (input->table->operand)
			input->table->operand(state, text, state->arg_num, input->values);
		else
			argp_error(state, "\"%s\" is not an option", text);
		return 0;
	case ARGP_KEY_END:
		if (input->table->check)
			input->table->check(state, input->values);
		return 0;
	default:
		rule = rule_of(input->table, key);
		if (!rule)
			return ARGP_ERR_UNKNOWN;
		parse_value(state, rule, text, input->values);
		return 0;
	}
}

static struct argp_option *options_of_argp(const struct option_table *table)
{
	struct argp_option *options = calloc(table->nr + 1, sizeof(*options));
	size_t i;

	if (!options)
		errx(EXIT_CANNOT, "out of memory");
	for (i = 0; i < table->nr; i++) {
		const struct option_rule *rule = &table->rules[i];

		options[i] = (struct argp_option){
			.name = rule->name,
			.key = key_of(table, i),
			.arg = rule->value,
			.flags = rule->help ? 0 : OPTION_HIDDEN,
			.doc = rule->help,
		};
	}
	return options;
}

void options_argp(const struct argp *argp, int argc, char **argv, unsigned int flags,
		  void *input)
{
	/* A wrong option has ended the program already. */
	if (argp_parse(argp, argc, argv, flags, NULL, input))
		errx(EXIT_CANNOT, "out of memory");
}

void options_parse(const struct option_table *table, void *values, int argc, char **argv)
{
	struct argp_option *options = options_of_argp(table);
	const struct argp argp = {
		.options = options, .parser = parse, .args_doc = table->operands,
		.doc = table->doc,
	};
	struct input input = { table, values };

	argp_err_exit_status = EXIT_USAGE;
	options_argp(&argp, argc, argv, 0, &input);
	free(options);
}
