// SPDX-License-Identifier: GPL-2.0
/* The options of twheel-relay. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/options.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/options.h"
#include "common/retry_policy.h"
#include "common/text.h"
#include "common/time.h"
#include "common/util.h"
#include "metrics/guard.h"
#include "metrics/http.h"
#include "relay/client/option.h"
#include "relay/options.h"

#define MS_PER_S	1000ULL

#define MEMORY_MIN	MIB

/* Room for the numbers of a policy. */
#define POLICY_TEXT	256
#define SCALE_MAX	10000000ULL

/* The most replicas: a number that every cluster refuses is probably a mistake. */
#define REPLICAS_MAX	100

/* Room for why a regular expression is wrong. */
#define WHY_SIZE	256

/* Memory for an option; relay_options_free() frees it. */
static void *get_memory(struct argp_state *state, size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		argp_failure(state, EXIT_CANNOT, ENOMEM, "an option");
	return memory;
}

/* "MAX,BASE,FACTOR,CAP,JITTER": the words of a policy, with commas between them. */
static bool parse_policy(struct retry_policy *policy, const char *arg)
{
	char words[POLICY_TEXT];
	struct text text = { words, words + strlen(arg) };
	char *comma;

	if (strlen(arg) >= sizeof(words) || strchr(arg, ' ') || *arg == ',' || strstr(arg, ",,"))
		return false;
	strcpy(words, arg);
	while ((comma = strchr(words, ',')))
		*comma = ' ';
	return retry_policy_parse(policy, &text) && text_empty(&text);
}

static void parse_policies(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;
	struct relay_policy *policy = get_memory(state, sizeof(*policy));
	const char *text = client_option_split(state, "--policy", arg);

	client_check_topic(state, "--policy", arg, RELAY_TARGET_MAX);
	policy->target = arg;
	if (!parse_policy(&policy->policy, text))
		argp_error(state,
			   "--policy %s=%s is not ATTEMPTS,BASE,FACTOR,CAP,JITTER, such as %s=25,1s,2,1h,10: with a factor of 1 to 1000, and a jitter of 0 to 100 percent",
			   arg, text, arg);
	STAILQ_INSERT_HEAD(&options->policies, policy, entry);
}

static void parse_setting(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;

	client_option_setting(state, arg, &options->settings);
}

static void parse_config(struct argp_state *state, char *path, void *values)
{
	struct relay_options *options = values;

	client_option_config(state, path, &options->settings);
}

static void parse_topic(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;

	options->topic = client_option_topic(state, arg);
}

static void parse_instance(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;

	client_check_name(state, "--instance", arg, RELAY_INSTANCE_MAX);
	options->instance = arg;
}

static void parse_horizon(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;
	uint64_t ns = 0;

	if (!text_duration(arg, &ns))
		argp_error(state, "--horizon \"%s\" is not a time, such as 10m", arg);
	options->horizon_ms = ns / NSEC_PER_SEC * MS_PER_S;
	if (ns % NSEC_PER_SEC || options->horizon_ms < RELAY_HORIZON_MIN_MS ||
	    options->horizon_ms > RELAY_HORIZON_MAX_MS)
		argp_error(state, "--horizon %s is not whole seconds from 1s to 1d", arg);
}

static void parse_delivery(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;

	if (!strcmp(arg, "at-least-once"))
		options->delivery = RELAY_AT_LEAST_ONCE;
	else if (!strcmp(arg, "exactly-once"))
		options->delivery = RELAY_EXACTLY_ONCE;
	else
		argp_error(state, "--delivery \"%s\" is not at-least-once or exactly-once", arg);
}

/* A time from 0 to @max_ms, which is @max in words. */
static uint64_t parse_ms(struct argp_state *state, const char *option, const char *arg,
			 uint64_t max_ms, const char *max)
{
	uint64_t ns = 0;

	if (!text_duration(arg, &ns))
		argp_error(state, "%s \"%s\" is not a time, such as 60s", option, arg);
	if (ns / NSEC_PER_MSEC > max_ms)
		argp_error(state, "%s %s is longer than %s", option, arg, max);
	return ns / NSEC_PER_MSEC;
}

static void parse_hold(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;

	options->hold_ms = parse_ms(state, "--hold", arg, RELAY_HOLD_LIMIT_MS, "1h");
}

static void parse_hold_max(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;

	options->hold_max_ms = parse_ms(state, "--hold-max", arg, RELAY_HOLD_MAX_LIMIT_MS, "366d");
}

/* Compile @before, @expression and @after; returns what regcomp() does. */
static int compile(regex_t *regex, const char *before, const char *expression, const char *after)
{
	char *text;
	int error;

	if (asprintf(&text, "%s%s%s", before, expression, after) < 0)
		return REG_ESPACE;
	error = regcomp(regex, text, REG_EXTENDED | REG_NOSUB);
	free(text);
	return error;
}

/*
 * Has it a ")" without a "("? The C library takes that for the character, but within the
 * parentheses that we add it would end them: "a)|b" would match all names that begin with a.
 */
static bool closes_too_much(const char *expression)
{
	regex_t regex;

	if (compile(&regex, "(", expression, ""))
		return false;
	regfree(&regex);
	return true;
}

static void parse_targets(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;
	char why[WHY_SIZE] = "Unmatched ) or \\)";
	regex_t regex;
	int error;

	if (!*arg)
		argp_error(state, "--targets is empty: no topic has such a name");
	/* First without our parentheses, so that the error is about what the user wrote. */
	error = compile(&regex, "", arg, "");
	if (!error)
		regfree(&regex);
	if (error)
		regerror(error, &regex, why, sizeof(why));
	if (error || closes_too_much(arg))
		argp_error(state, "--targets \"%s\" is not a regular expression: %s", arg, why);
	if (options->has_targets)
		regfree(&options->targets);
	options->has_targets = !compile(&options->targets, "^(", arg, ")$");
	if (!options->has_targets)
		argp_failure(state, EXIT_CANNOT, ENOMEM, "--targets");
}

static void parse_wheel(struct argp_state *state, char *arg, void *values)
{
	struct relay_options *options = values;

	options->wheel = alarm_backend_option(state, arg);
}

/* --- the table -------------------------------------------------------------------------- */

#define AT(member)	offsetof(struct relay_options, member)

static const struct option_rule rules[] = {
	{ "brokers", 'b', "HOST:PORT,...", "The brokers of Kafka to ask first",
	  OPTION_TEXT, AT(brokers), 0, 0, NULL },
	{ "group", 'g', "NAME", "The consumer group that relays share (default twheelq-TOPIC)",
	  OPTION_TEXT, AT(group), 0, 0, NULL },
	{ "topic", 't', "NAME", "The topic of delays (default delays)",
	  OPTION_OTHER, 0, 0, 0, parse_topic },
	{ "horizon", 0, "DURATION",
	  "Keep records that are due within twice this time in memory (default 10m, from 1s to 1d)",
	  OPTION_OTHER, 0, 0, 0, parse_horizon },
	{ "memory", 'm', "SIZE",
	  "Limit of records in memory; when it is reached, partitions are paused (default 256M)",
	  OPTION_SIZE, AT(memory), MEMORY_MIN, INT64_MAX, NULL },
	{ "delivery", 0, "at-least-once|exactly-once",
	  "What is promised about records that are delivered (default at-least-once)",
	  OPTION_OTHER, 0, 0, 0, parse_delivery },
	{ "instance", 0, "NAME",
	  "The name of this relay in its transactional.id (default: a name of its own)",
	  OPTION_OTHER, 0, 0, 0, parse_instance },
	{ "targets", 0, "REGEX",
	  "Write only to topics whose whole name matches (default: all but those beginning with __)",
	  OPTION_OTHER, 0, 0, 0, parse_targets },
	{ "hold", 0, "DURATION",
	  "Keep records in memory this long if their target cannot be written (default 60s)",
	  OPTION_OTHER, 0, 0, 0, parse_hold },
	{ "hold-max", 0, "DURATION",
	  "After this time, write them to TOPIC.invalid (default 7d)",
	  OPTION_OTHER, 0, 0, 0, parse_hold_max },
	{ "policy", 0, "TARGET=MAX,BASE,FACTOR,CAP,JITTER",
	  "How attempts for a target are retried; may be repeated (default 25,1s,2,1h,10)",
	  OPTION_OTHER, 0, 0, 0, parse_policies },
	{ "create", 0, NULL, "Create the topics that are missing",
	  OPTION_FLAG, AT(create), 0, 0, NULL },
	{ "from-beginning", 0, NULL,
	  "If nothing is committed and the first records are deleted, begin with those that are left",
	  OPTION_FLAG, AT(from_beginning), 0, 0, NULL },
	{ "partitions", 0, "N",
	  "Partitions of each topic that is created (default 12, or as many as TOPIC has)",
	  OPTION_COUNT, AT(partitions), 1, 100000, NULL },
	{ "replicas", 0, "N",
	  "Replicas of each topic that is created (default 3, or as many as there are brokers)",
	  OPTION_COUNT, AT(replicas), 1, REPLICAS_MAX, NULL },
	{ "wheel", 0, "auto|device|process",
	  "Which timing wheel to use (default auto: /dev/twheel if it is there)",
	  OPTION_OTHER, 0, 0, 0, parse_wheel },
	{ "http", 0, "ADDRESS",
	  "Serve a page for people, /metrics for Prometheus, and /healthz at HOST:PORT",
	  OPTION_TEXT, AT(metrics), 0, 0, NULL },
	{ "http-host", 0, "NAME", "A name under which a proxy serves the page",
	  OPTION_TEXT, AT(http_host), 0, 0, NULL },
	/* Its former name. */
	{ "metrics", 0, "ADDRESS", NULL, OPTION_TEXT, AT(metrics), 0, 0, NULL },
	{ "log-level", 0, "LEVEL", "error, warning, notice, info (default) or debug",
	  OPTION_LOG_LEVEL, AT(log_level), 0, 0, NULL },
	{ NULL, 'X', "NAME=VALUE",
	  "A setting of librdkafka, such as security.protocol=ssl; may be repeated",
	  OPTION_OTHER, 0, 0, 0, parse_setting },
	{ "config", 0, "FILE", "A file of settings as of -X, for passwords; may be repeated",
	  OPTION_OTHER, 0, 0, 0, parse_config },
	{ "time-scale", 0, "N", NULL, OPTION_COUNT, AT(scale), 1, SCALE_MAX, NULL },
};

static void check_options(struct argp_state *state, const void *values)
{
	const struct relay_options *options = values;
	const char *wrong = options->metrics ? metrics_check_address(options->metrics) : NULL;

	if (!options->brokers)
		argp_error(state, "--brokers is missing");
	if (wrong)
		argp_error(state, "--http \"%s\" %s", options->metrics, wrong);
	if (options->hold_max_ms < options->hold_ms)
		argp_error(state, "--hold-max is shorter than --hold: make it at least as long");
	if (options->http_host && !guard_is_name(options->http_host))
		argp_error(state, "--http-host \"%s\" is not a name, such as relay.example.org",
			   options->http_host);
	if (options->http_host && !options->metrics)
		argp_error(state, "--http-host is for the page of --http, which is missing");
}

static void refuse_operand(struct argp_state *state, char *text, unsigned int number,
			   void *values)
{
	(void)number;
	(void)values;
	argp_error(state, "\"%s\" is neither a command nor an option", text);
}

void relay_options_parse(struct relay_options *options, int argc, char **argv)
{
	static const struct option_table table = {
		.rules = rules,
		.nr = ARRAY_SIZE(rules),
		.doc = "Delay and retry records of Kafka, until SIGTERM or SIGINT.\n"
		       "\vOther commands, each with its own --help:\n\n"
		       "  status     show the group, what waits, and what is wrong\n"
		       "  list       list the records that wait\n"
		       "  replay     write dead letters to the topic of delays again\n"
		       "  skip       let a stopped partition go on\n"
		       "  run        relay, as without a command",
		.operand = refuse_operand,
		.check = check_options,
	};

	*options = (struct relay_options){
		.topic = "delays",
		.horizon_ms = 600 * MS_PER_S,
		.memory = 256 * MIB,
		.delivery = RELAY_AT_LEAST_ONCE,
		.hold_ms = RELAY_HOLD_MS,
		.hold_max_ms = RELAY_HOLD_MAX_MS,
		.wheel = ALARM_AUTO,
		.log_level = LOG_INFO,
		.scale = 1,
	};
	STAILQ_INIT(&options->policies);
	STAILQ_INIT(&options->settings);
	options_parse(&table, options, argc, argv);
}

void relay_options_free(struct relay_options *options)
{
	struct relay_policy *policy;

	if (options->has_targets)
		regfree(&options->targets);
	options->has_targets = false;
	while ((policy = STAILQ_FIRST(&options->policies))) {
		STAILQ_REMOVE_HEAD(&options->policies, entry);
		free(policy);
	}
	client_settings_free(&options->settings);
}
