/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the commands share: their options, clients of Kafka, and how they print.
 *
 * No byte that a terminal would take for a command is printed, wherever it comes from. An error
 * ends the program, with a line on stderr and EXIT_CANNOT.
 */
#ifndef RELAY_CLI_COMMAND_H
#define RELAY_CLI_COMMAND_H

#include <jansson.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"
#include "relay/client/config.h"
#include "relay/rules/rules.h"

/* How long brokers may take to answer. */
#define COMMAND_TIMEOUT_MS	30000

/* Room for the name of a group. */
#define COMMAND_GROUP_MAX	(RELAY_TOPIC_MAX + 32)

/**
 * struct command - what each command has
 * @brokers: --brokers.
 * @group: --group, or the group of the topic.
 * @topic: --topic.
 * @settings: -X and --config.
 * @json: --json.
 * @scale: --time-scale, for tests.
 * @group_memory: the name of the default group.
 */
struct command {
	const char *brokers;
	const char *group;
	const char *topic;
	struct relay_settings settings;
	bool json;
	uint64_t scale;
	char group_memory[COMMAND_GROUP_MAX];
};

#define COMMAND(member)	offsetof(struct command, member)

/* The rules of these options; the structure of the values begins with struct command. */
#define COMMAND_BROKERS { \
	"brokers", 'b', "HOST:PORT,...", "The brokers of Kafka to ask first", \
	OPTION_TEXT, COMMAND(brokers), 0, 0, NULL }
#define COMMAND_GROUP { \
	"group", 'g', "NAME", "The consumer group of the relays (default twheelq-TOPIC)", \
	OPTION_TEXT, COMMAND(group), 0, 0, NULL }
#define COMMAND_TOPIC { \
	"topic", 't', "NAME", "The topic of delays (default delays)", \
	OPTION_OTHER, 0, 0, 0, command_parse_topic }
#define COMMAND_SETTING { \
	NULL, 'X', "NAME=VALUE", \
	"A setting of librdkafka, such as security.protocol=ssl; may be repeated", \
	OPTION_OTHER, 0, 0, 0, command_parse_setting }
#define COMMAND_CONFIG { \
	"config", 0, "FILE", "A file of settings as of -X, for passwords; may be repeated", \
	OPTION_OTHER, 0, 0, 0, command_parse_config }
#define COMMAND_SCALE { \
	"time-scale", 0, "N", NULL, OPTION_COUNT, COMMAND(scale), 1, 10000000, NULL }
#define COMMAND_JSON { \
	"json", 'j', NULL, "Print JSON", OPTION_FLAG, COMMAND(json), 0, 0, NULL }

void command_parse_topic(struct argp_state *state, char *arg, void *values);
void command_parse_setting(struct argp_state *state, char *arg, void *values);
void command_parse_config(struct argp_state *state, char *arg, void *values);

/* A moment in wall-clock time, in ms since 1970. */
uint64_t command_time(struct argp_state *state, const char *option, const char *text);

/* Parse the options into @values, which begin with struct command. */
void command_begin(const struct option_table *table, void *values, int argc, char **argv);

/* Free the options, and write what was printed. Returns @status, or EXIT_CANNOT. */
int command_end(struct command *command, int status);

/* --- clients ------------------------------------------------------------------------------ */

/* A consumer that is of the group, but never joins it, and reads committed records only. */
rd_kafka_t *command_consumer(const struct command *command, const char *group);

/* A producer; @report is called for each record, within rd_kafka_poll(). */
rd_kafka_t *command_producer(const struct command *command,
			     void (*report)(rd_kafka_t *, const rd_kafka_message_t *, void *),
			     void *context);

/* --- printing ----------------------------------------------------------------------------- */

/* Bytes as a string, with "?" for what is not to be printed. The caller frees it. */
char *command_text(const char *bytes, size_t len);

/* Such a string of JSON. */
json_t *command_json_text(const char *bytes, size_t len);

/* Print a line of JSON, and free it. */
void command_print_json(json_t *object);

/* "2026-11-25T04:35:30.123Z". Returns @text. */
#define COMMAND_TIME_TEXT	40
const char *command_time_text(char text[COMMAND_TIME_TEXT], uint64_t ms);

/* "2.50 h", with as many digits as a person wants. Returns @text. */
#define COMMAND_AGE_TEXT	40
const char *command_age_text(char text[COMMAND_AGE_TEXT], uint64_t ms);

uint64_t command_now_ms(void);

/* Memory, or the end of the program. */
void *command_memory(void *memory);

#endif /* RELAY_CLI_COMMAND_H */
