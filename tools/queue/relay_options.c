// SPDX-License-Identifier: GPL-2.0
/* The options of "twheelq relay". */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "command.h"
#include "log.h"
#include "relay_config.h"
#include "relay_options.h"
#include "subcommand.h"

#define NS_PER_S	1000000000ULL
#define MS_PER_S	1000ULL

#define MEMORY_MIN	MIB
#define SCALE_MAX	10000000ULL

/* Leaves room for the width of a bucket, and for ".invalid". */
#define TOPIC_MAX	(RELAY_TOPIC_MAX - 16)

enum option_key {
	OPTION_BROKERS = 'b',
	OPTION_GROUP = 'g',
	OPTION_TOPIC = 't',
	OPTION_MEMORY = 'm',
	OPTION_SETTING = 'X',
	OPTION_HORIZON = 256,
	OPTION_POLICY,
	OPTION_METRICS,
	OPTION_CREATE,
	OPTION_BEGINNING,
	OPTION_PARTITIONS,
	OPTION_WHEEL,
	OPTION_LOG_LEVEL,
	OPTION_CONFIG,
	OPTION_SCALE,
};

static const struct argp_option argp_options[] = {
	{ "brokers", OPTION_BROKERS, "HOST:PORT,...", 0, "Where Kafka is", 0 },
	{ "group", OPTION_GROUP, "NAME", 0,
	  "The consumer group that relays share (default twheelq-TOPIC)", 0 },
	{ "topic", OPTION_TOPIC, "NAME", 0, "Where delays come from (default delays)", 0 },
	{ "horizon", OPTION_HORIZON, "DURATION", 0,
	  "What is due within two of it is in memory (default 10m, from 1s to 1d)", 0 },
	{ "memory", OPTION_MEMORY, "SIZE", 0,
	  "For records in memory; when it is full, partitions are paused (default 256M)", 0 },
	{ "policy", OPTION_POLICY, "TARGET=MAX,BASE,FACTOR,CAP,JITTER", 0,
	  "How attempts for a target are retried; may be repeated (default 25,1s,2,1h,10)", 0 },
	{ "create", OPTION_CREATE, NULL, 0, "Make the topics that are missing", 0 },
	{ "from-beginning", OPTION_BEGINNING, NULL, 0,
	  "Read what is left where nothing is committed and the first records are gone", 0 },
	{ "partitions", OPTION_PARTITIONS, "N", 0,
	  "Of a topic that is made (default 12, or as many as TOPIC has)", 0 },
	{ "wheel", OPTION_WHEEL, "auto|device|process", 0,
	  "Which timing wheel (default auto: /dev/twheel if it is there)", 0 },
	{ "metrics", OPTION_METRICS, "ADDRESS", 0, "Where Prometheus finds /metrics", 0 },
	{ "log-level", OPTION_LOG_LEVEL, "LEVEL", 0,
	  "error, warning, notice, info (default) or debug", 0 },
	{ NULL, OPTION_SETTING, "NAME=VALUE", 0,
	  "A setting of librdkafka's, such as security.protocol=ssl; may be repeated", 0 },
	{ "config", OPTION_CONFIG, "FILE", 0,
	  "Lines of such settings, for passwords; may be repeated", 0 },
	{ "time-scale", OPTION_SCALE, "N", OPTION_HIDDEN, NULL, 0 },
	{ 0 }
};

/* Memory for an option, which stays. */
static void *get_memory(struct argp_state *state, size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		argp_failure(state, EXIT_CANNOT, ENOMEM, "an option");
	return memory;
}

/* Split "NAME=VALUE", and return where the value is. */
static char *split(struct argp_state *state, const char *option, char *arg)
{
	char *equals = strchr(arg, '=');

	if (!equals || equals == arg)
		argp_error(state, "%s \"%s\" is not NAME=VALUE", option, arg);
	else
		*equals++ = '\0';
	return equals;
}

/* The numbers are those of the queue's command: "policy TUBE MAX BASE FACTOR CAP JITTER". */
static bool parse_policy(struct retry_policy *policy, const char *text)
{
	struct command command;
	char line[LINE_MAX_LEN];
	int len = snprintf(line, sizeof(line), "policy x %s", text);
	char *comma;

	if (len >= (int)sizeof(line) || strchr(text, ' '))
		return false;
	while ((comma = strchr(line, ',')))
		*comma = ' ';
	if (command_parse(&command, line, len) || *command.policy.dead)
		return false;
	*policy = command.policy;
	return true;
}

static void take_policy(struct argp_state *state, char *arg, struct relay_options *options)
{
	struct relay_policy *policy = get_memory(state, sizeof(*policy));
	const char *text = split(state, "--policy", arg);

	policy->target = arg;
	if (!parse_policy(&policy->policy, text))
		argp_error(state, "--policy %s=%s is no policy, such as %s=25,1s,2,1h,10", arg,
			   text, arg);
	STAILQ_INSERT_HEAD(&options->policies, policy, entry);
}

static void take_setting(struct argp_state *state, char *arg, struct relay_options *options)
{
	struct relay_setting *setting = get_memory(state, sizeof(*setting));

	setting->value = split(state, "-X", arg);
	setting->name = arg;
	STAILQ_INSERT_TAIL(&options->settings, setting, entry);
}

static void take_config(struct argp_state *state, const char *path,
			struct relay_options *options)
{
	char why[RELAY_CONFIG_WHY];

	if (!relay_config_read(path, &options->settings, why))
		argp_failure(state, EXIT_CANNOT, 0, "--config: %s", why);
	if (relay_config_is_open(path))
		log_say(LOG_WARNING, "%s can be read by everybody; chmod o-r if it has a secret",
			path);
}

static void take_topic(struct argp_state *state, const char *arg, struct relay_options *options)
{
	size_t len = 0;

	while (isalnum((unsigned char)arg[len]) || (arg[len] && strchr("._-", arg[len])))
		len++;
	if (!len || arg[len] || len > TOPIC_MAX)
		argp_error(state, "--topic \"%s\" is not up to %d letters, digits and \"._-\"", arg,
			   (int)TOPIC_MAX);
	options->topic = arg;
}

static void take_horizon(struct argp_state *state, const char *arg,
			 struct relay_options *options)
{
	uint64_t ns;

	take_duration(state, "horizon", arg, &ns);
	options->horizon_ms = ns / NS_PER_S * MS_PER_S;
	if (ns % NS_PER_S || options->horizon_ms < RELAY_HORIZON_MIN_MS ||
	    options->horizon_ms > RELAY_HORIZON_MAX_MS)
		argp_error(state, "--horizon %s is no whole number of seconds from 1s to 1d", arg);
}

static error_t parse_number(int key, const char *arg, struct argp_state *state)
{
	struct relay_options *options = state->input;

	switch (key) {
	case OPTION_HORIZON:
		take_horizon(state, arg, options);
		return 0;
	case OPTION_MEMORY:
		take_size(state, "memory", arg, MEMORY_MIN, INT64_MAX, &options->memory);
		return 0;
	case OPTION_PARTITIONS:
		take_count(state, "partitions", arg, 1, 100000, &options->partitions);
		return 0;
	case OPTION_SCALE:
		take_count(state, "time-scale", arg, 1, SCALE_MAX, &options->scale);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_text(int key, char *arg, struct argp_state *state)
{
	struct relay_options *options = state->input;

	switch (key) {
	case OPTION_BROKERS:
		options->brokers = arg;
		return 0;
	case OPTION_GROUP:
		options->group = arg;
		return 0;
	case OPTION_TOPIC:
		take_topic(state, arg, options);
		return 0;
	case OPTION_POLICY:
		take_policy(state, arg, options);
		return 0;
	case OPTION_SETTING:
		take_setting(state, arg, options);
		return 0;
	case OPTION_CONFIG:
		take_config(state, arg, options);
		return 0;
	case OPTION_METRICS:
		options->metrics = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_manner(int key, char *arg, struct argp_state *state)
{
	struct relay_options *options = state->input;

	switch (key) {
	case OPTION_CREATE:
		options->create = true;
		return 0;
	case OPTION_BEGINNING:
		options->from_beginning = true;
		return 0;
	case OPTION_WHEEL:
		options->make = take_wheel(state, arg);
		return 0;
	case OPTION_LOG_LEVEL:
		options->log_level = take_log_level(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is no option", arg);
		return 0;
	case ARGP_KEY_END:
		if (!options->brokers)
			argp_error(state, "--brokers is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (!parse_number(key, arg, state) || !parse_text(key, arg, state))
		return 0;
	return parse_manner(key, arg, state);
}

void relay_options_parse(struct relay_options *options, int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options,
		.parser = parse,
		.doc = "Delay and retry records of Kafka: until SIGTERM or SIGINT.",
	};

	*options = (struct relay_options){
		.topic = "delays",
		.horizon_ms = 600 * MS_PER_S,
		.memory = 256 * MIB,
		.make = ALARM_AUTO,
		.log_level = LOG_INFO,
		.scale = 1,
	};
	STAILQ_INIT(&options->policies);
	STAILQ_INIT(&options->settings);
	argp_err_exit_status = EXIT_CANNOT;
	argp_parse(&argp, argc, argv, 0, NULL, options);
}

void relay_options_free(struct relay_options *options)
{
	struct relay_setting *setting;
	struct relay_policy *policy;

	while ((policy = STAILQ_FIRST(&options->policies))) {
		STAILQ_REMOVE_HEAD(&options->policies, entry);
		free(policy);
	}
	while ((setting = STAILQ_FIRST(&options->settings))) {
		STAILQ_REMOVE_HEAD(&options->settings, entry);
		free(setting);
	}
}
