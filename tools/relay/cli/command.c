// SPDX-License-Identifier: GPL-2.0
/* What the commands share. */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/moment.h"
#include "common/number.h"
#include "common/time.h"
#include "common/util.h"
#include "relay/cli/command.h"
#include "relay/client/option.h"

/* --- options ------------------------------------------------------------------------------ */

void command_parse_topic(struct argp_state *state, char *arg, void *values)
{
	struct command *command = values;

	command->topic = client_option_topic(state, arg);
}

void command_parse_setting(struct argp_state *state, char *arg, void *values)
{
	struct command *command = values;

	client_option_setting(state, arg, &command->settings);
}

void command_parse_config(struct argp_state *state, char *arg, void *values)
{
	struct command *command = values;

	client_option_config(state, arg, &command->settings);
}

uint64_t command_time(struct argp_state *state, const char *option, const char *text)
{
	__u64 ns = 0;
	const char *wrong = moment_parse(text, time_now_ns(CLOCK_REALTIME), &ns);

	if (wrong)
		argp_error(state, "%s \"%s\" %s", option, text, wrong);
	return ns / NSEC_PER_MSEC;
}

void command_begin(const struct option_table *table, void *values, int argc, char **argv)
{
	struct command *command = values;

	command->topic = CLIENT_TOPIC;
	command->scale = 1;
	STAILQ_INIT(&command->settings);
	log_set_level(LOG_WARNING);
	options_parse(table, values, argc, argv);
	if (!command->brokers) {
		warnx("--brokers is missing");
		exit(EXIT_USAGE);
	}
	snprintf(command->group_memory, sizeof(command->group_memory), CLIENT_GROUP_PREFIX "%s",
		 command->topic);
	if (!command->group)
		command->group = command->group_memory;
}

int command_end(struct command *command, int status)
{
	client_settings_free(&command->settings);
	return status;
}

/* --- clients ------------------------------------------------------------------------------ */

struct setting {
	const char *name;
	const char *value;
};

static const struct setting consumer_settings[] = {
	{ "enable.auto.commit", "false" },
	{ "enable.auto.offset.store", "false" },
	{ "auto.offset.reset", "error" },
	{ "isolation.level", "read_committed" },
	{ "enable.partition.eof", "true" },
	{ "check.crcs", "true" },
};

static const struct setting producer_settings[] = {
	{ "message.max.bytes", "1000000000" },
	{ "enable.idempotence", "true" },
	{ "partitioner", "murmur2_random" },
	{ "compression.type", "lz4" },
	{ "message.timeout.ms", "30000" },
};

static void on_log(const rd_kafka_t *client, int level, const char *what, const char *text)
{
	(void)client;
	if (strcmp(what, "CONFWARN"))
		log_say(level, "kafka: %s", text);
}

/* librdkafka logs errors, too, and recovers by itself. */
static void on_error(rd_kafka_t *client, int error, const char *text, void *context)
{
	(void)client;
	(void)error;
	(void)text;
	(void)context;
}

/* What a setting names, and not its value, which may be a secret. */
static void set_user_setting(rd_kafka_conf_t *conf, const struct relay_setting *setting)
{
	char why[512];

	if (!rd_kafka_conf_set(conf, setting->name, setting->value, why, sizeof(why)))
		return;
	if (setting->path)
		warnx("%s:%u: %s: %s", setting->path, setting->line, setting->name, why);
	else
		warnx("-X %s: %s", setting->name, why);
	exit(EXIT_USAGE);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char why[512];

	if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)))
		errx(EXIT_CANNOT, "%s: %s", name, why);
}

/* Ours come last: the files of the relay may be used here as well. */
static rd_kafka_conf_t *make_conf(const struct command *command, const struct setting *settings,
				  size_t nr)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const struct relay_setting *setting;
	size_t i;

	set(conf, "client.id", "twheel-relay-cli");
	STAILQ_FOREACH(setting, &command->settings, entry)
		set_user_setting(conf, setting);
	for (i = 0; i < nr; i++)
		set(conf, settings[i].name, settings[i].value);
	set(conf, "bootstrap.servers", command->brokers);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rd_kafka_conf_set_error_cb(conf, on_error);
	return conf;
}

static rd_kafka_t *make_client(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
	char why[512];
	rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof(why));

	if (!client)
		errx(EXIT_CANNOT, "kafka: %s", why);
	return client;
}

rd_kafka_t *command_consumer(const struct command *command, const char *group)
{
	rd_kafka_conf_t *conf = make_conf(command, consumer_settings,
					  ARRAY_SIZE(consumer_settings));
	rd_kafka_t *client;

	set(conf, "group.id", group);
	client = make_client(RD_KAFKA_CONSUMER, conf);
	rd_kafka_poll_set_consumer(client);
	return client;
}

rd_kafka_t *command_producer(const struct command *command,
			     void (*report)(rd_kafka_t *, const rd_kafka_message_t *, void *),
			     void *context)
{
	rd_kafka_conf_t *conf = make_conf(command, producer_settings,
					  ARRAY_SIZE(producer_settings));

	rd_kafka_conf_set_dr_msg_cb(conf, report);
	rd_kafka_conf_set_opaque(conf, context);
	return make_client(RD_KAFKA_PRODUCER, conf);
}

/* --- printing ----------------------------------------------------------------------------- */

char *command_text(const char *bytes, size_t len)
{
	char *text = command_memory(malloc(len + 1));
	size_t i;

	for (i = 0; i < len; i++)
		text[i] = bytes[i] >= ' ' && bytes[i] < 0x7f ? bytes[i] : '?';
	text[len] = '\0';
	return text;
}

json_t *command_json_text(const char *bytes, size_t len)
{
	json_t *string = json_stringn(bytes, len);
	char *text;

	if (string)
		return string;
	text = command_text(bytes, len);
	string = json_string(text);
	free(text);
	return string;
}

void command_print_json(json_t *object)
{
	json_dumpf(command_memory(object), stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(object);
}

const char *command_time_text(char text[COMMAND_TIME_TEXT], uint64_t ms)
{
	time_t seconds = ms / 1000;
	struct tm tm;
	size_t len;

	/* A year of more than four digits is no time that anybody waits for. */
	if (ms / 1000 > 253402300799 || !gmtime_r(&seconds, &tm)) {
		snprintf(text, COMMAND_TIME_TEXT, "%" PRIu64, ms);
		return text;
	}
	len = strftime(text, COMMAND_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, COMMAND_TIME_TEXT - len, ".%03uZ", (unsigned int)(ms % 1000));
	return text;
}

const char *command_age_text(char text[COMMAND_AGE_TEXT], uint64_t ms)
{
	static const struct {
		uint64_t ms;
		const char *name;
	} units[] = {
		{ 24 * 3600 * 1000, "d" }, { 3600 * 1000, "h" }, { 60 * 1000, "min" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(units); i++) {
		if (ms < 2 * units[i].ms)
			continue;
		snprintf(text, COMMAND_AGE_TEXT, "%.1f %s", (double)ms / units[i].ms,
			 units[i].name);
		return text;
	}
	snprintf(text, COMMAND_AGE_TEXT, "%.1f s", (double)ms / 1000);
	return text;
}

uint64_t command_now_ms(void)
{
	return time_now_ns(CLOCK_REALTIME) / NSEC_PER_MSEC;
}

void *command_memory(void *memory)
{
	if (!memory)
		errx(EXIT_CANNOT, "out of memory");
	return memory;
}
