// SPDX-License-Identifier: GPL-2.0
/*
 * twheelq policy: how failed jobs of a tube are retried.
 *
 * What no option says stays as it is, or is the default in a tube without a policy.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/number.h"
#include "common/retry_policy.h"
#include "common/time.h"
#include "common/util.h"
#include "queue/cli/person.h"
#include "queue/cli/policy.h"

/* No option has this value. */
#define NOT_GIVEN	UINT64_MAX

/**
 * struct policy_command - the state of the command
 * @person: --connect and --json.
 * @tube: TUBE.
 * @attempts: --attempts.
 * @base_ns: --base.
 * @factor: --factor; NULL: not given.
 * @cap_ns: --cap.
 * @jitter: --jitter.
 * @dead: --dead-tube; NULL: not given.
 * @to_default: --default.
 */
struct policy_command {
	struct person person;
	const char *tube;
	uint64_t attempts;
	uint64_t base_ns;
	const char *factor;
	uint64_t cap_ns;
	uint64_t jitter;
	const char *dead;
	bool to_default;
};

static bool sets_policy(const struct policy_command *command)
{
	return command->attempts != NOT_GIVEN || command->base_ns != NOT_GIVEN ||
		command->factor || command->cap_ns != NOT_GIVEN ||
		command->jitter != NOT_GIVEN || command->dead;
}

static void take_dead(struct argp_state *state, char *text, void *values)
{
	((struct policy_command *)values)->dead = person_tube(state, text);
}

static void take_factor(struct argp_state *state, char *text, void *values)
{
	struct retry_policy policy;
	char line[100];
	struct text rest = { line, line };
	int len = snprintf(line, sizeof(line), " 1 1 %s 1 0", text);

	rest.end += len < (int)sizeof(line) ? len : 0;
	if (strchr(text, ' ') || !retry_policy_parse(&policy, &rest) || !text_empty(&rest))
		argp_error(state, "--factor \"%s\" is not a factor, such as 2 or 1.5", text);
	((struct policy_command *)values)->factor = text;
}

static void take_operand(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	if (nr)
		argp_error(state, "\"%s\" is one argument too many", text);
	((struct policy_command *)values)->tube = person_tube(state, text);
}

static void check_options(struct argp_state *state, const void *values)
{
	const struct policy_command *command = values;

	if (!command->tube)
		argp_error(state, "TUBE is missing");
	if (command->to_default && sets_policy(command))
		argp_error(state, "--default does not go together with other options");
}

#define AT(member)	offsetof(struct policy_command, member)

static const struct option_rule rules[] = {
	PERSON_CONNECT,
	PERSON_JSON,
	{ "attempts", 'n', "N", "A job is dead after so many failed attempts",
	  OPTION_COUNT, AT(attempts), 1, UINT32_MAX, NULL },
	{ "base", 'b', "DURATION", "The delay of the first retry",
	  OPTION_DURATION, AT(base_ns), 0, NOT_GIVEN - 1, NULL },
	{ "factor", 'f', "N", "Each delay is so many times the one before",
	  OPTION_OTHER, 0, 0, 0, take_factor },
	{ "cap", 'c', "DURATION", "The longest delay",
	  OPTION_DURATION, AT(cap_ns), 0, NOT_GIVEN - 1, NULL },
	{ "jitter", 0, "N", "Delays are longer or shorter by up to so many percent",
	  OPTION_COUNT, AT(jitter), 0, 100, NULL },
	{ "dead-tube", 0, "NAME", "Where dead jobs go",
	  OPTION_OTHER, 0, 0, 0, take_dead },
	{ "default", 0, NULL, "Take the policy away", OPTION_FLAG, AT(to_default), 0, 0, NULL },
};

static const struct option_table table = {
	.rules = rules,
	.nr = ARRAY_SIZE(rules),
	.operands = "TUBE",
	.doc = "Show how failed jobs of a tube are retried, or set it. What no option says\n"
	       "stays as it is.",
	.operand = take_operand,
	.check = check_options,
};

/* --- showing ------------------------------------------------------------------------------ */

static void show(struct policy_command *command)
{
	char base[NUMBER_TEXT], cap[NUMBER_TEXT];
	char *yaml = person_stats_tube(&command->person, command->tube);
	char *which = person_value(yaml, "policy"), *factor = person_value(yaml, "policy-factor");
	char *dead = person_value(yaml, "policy-dead-tube");
	uint64_t attempts = person_number(yaml, "policy-max-attempts");
	uint64_t base_ms = person_number(yaml, "policy-base-ms");
	uint64_t cap_ms = person_number(yaml, "policy-cap-ms");
	uint64_t jitter = person_number(yaml, "policy-jitter-percent");

	if (!which || !factor || !dead)
		connection_refused(command->person.connection, "a tube without a policy");
	if (command->person.json)
		person_print_json(json_pack("{s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:s}",
					    "tube", command->tube, "policy", which,
					    "attempts", (json_int_t)attempts,
					    "base-ms", (json_int_t)base_ms,
					    "factor", strtod(factor, NULL),
					    "cap-ms", (json_int_t)cap_ms,
					    "jitter-percent", (json_int_t)jitter,
					    "dead-tube", dead));
	else
		printf("%s (%s): %" PRIu64 " attempts, base %s, factor %s, cap %s, jitter %"
		       PRIu64 " %%, dead tube %s\n", command->tube, which, attempts,
		       duration_format(base, (double)base_ms * NSEC_PER_MSEC), factor,
		       duration_format(cap, (double)cap_ms * NSEC_PER_MSEC), jitter, dead);
	free(which);
	free(factor);
	free(dead);
	free(yaml);
}

/* --- setting ------------------------------------------------------------------------------ */

static uint64_t chosen(uint64_t given, const char *yaml, const char *key, uint64_t unit,
		       uint64_t missing)
{
	if (given != NOT_GIVEN)
		return given / unit;
	return yaml ? person_number(yaml, key) : missing / unit;
}

/* The present policy; NULL: there is no such tube yet. */
static char *present(struct policy_command *command)
{
	connection_send(command->person.connection, "stats-tube %s", command->tube);
	return connection_receive(command->person.connection);
}

static void set(struct policy_command *command)
{
	const struct retry_policy *missing = &retry_policy_default;
	char *yaml = present(command);
	char *dead = yaml ? person_value(yaml, "policy-dead-tube") : NULL;
	char *factor = yaml ? person_value(yaml, "policy-factor") : NULL;

	person_tell(&command->person, "POLICY",
		    "policy %s %" PRIu64 " %" PRIu64 "ms %s %" PRIu64 "ms %" PRIu64 "%s%s",
		    command->tube,
		    chosen(command->attempts, yaml, "policy-max-attempts", 1,
			   missing->max_attempts),
		    chosen(command->base_ns, yaml, "policy-base-ms", NSEC_PER_MSEC,
			   missing->base_ns),
		    command->factor ? command->factor : factor ? factor : "2",
		    chosen(command->cap_ns, yaml, "policy-cap-ms", NSEC_PER_MSEC, missing->cap_ns),
		    chosen(command->jitter, yaml, "policy-jitter-percent", 1,
			   missing->jitter_percent),
		    command->dead || dead ? " " : "",
		    command->dead ? command->dead : dead ? dead : "");
	free(dead);
	free(factor);
	free(yaml);
}

static void take_away(struct policy_command *command)
{
	person_tell(&command->person, "POLICY", "policy %s default", command->tube);
	if (command->person.json)
		person_print_json(json_pack("{s:s, s:s}", "tube", command->tube, "policy",
					    "default"));
	else
		printf("%s has no policy of its own\n", command->tube);
}

int policy_main(int argc, char **argv)
{
	struct policy_command command = {
		.attempts = NOT_GIVEN, .base_ns = NOT_GIVEN, .cap_ns = NOT_GIVEN,
		.jitter = NOT_GIVEN,
	};

	person_begin(&table, &command, argc, argv);
	if (command.to_default)
		take_away(&command);
	else if (sets_policy(&command))
		set(&command);
	if (!command.to_default)
		show(&command);
	return person_end(&command.person, 0);
}
