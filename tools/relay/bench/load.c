// SPDX-License-Identifier: GPL-2.0
/*
 * The load of tools/relay/bench/run: a producer of delayed records, a consumer that keeps a
 * ledger of what comes, and a loop that delays nothing.
 *
 * Prints lines "result NAME VALUE UNIT", for tools/bench/judge.
 */
#include <err.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "common/options.h"
#include "common/util.h"
#include "relay/bench/load.h"

#define COUNT_MAX	1000000000ULL
#define SIZE_MAX_BYTES	1000000ULL

atomic_bool load_ends;

static const struct {
	const char *name;
	void (*run)(const struct load *load);
} modes[] = {
	{ "produce", load_produce },
	{ "ledger", load_ledger },
	{ "copy", load_copy },
};

/* --- clients -------------------------------------------------------------------------- */

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char why[256];

	if (rd_kafka_conf_set(conf, name, value, why, sizeof(why)))
		errx(2, "%s", why);
}

static rd_kafka_t *open_client(const struct load *load, rd_kafka_type_t type,
			       rd_kafka_conf_t *conf, const struct setting *settings)
{
	char why[256];
	rd_kafka_t *client;

	set(conf, "bootstrap.servers", load->brokers);
	/* Errors only: new brokers let clients wait for their coordinators. */
	set(conf, "log_level", "3");
	for (; settings->name; settings++)
		set(conf, settings->name, settings->value);
	client = rd_kafka_new(type, conf, why, sizeof(why));
	if (!client)
		errx(2, "%s", why);
	return client;
}

rd_kafka_t *load_client(const struct load *load, rd_kafka_type_t type,
			const struct setting *settings)
{
	return open_client(load, type, rd_kafka_conf_new(), settings);
}

rd_kafka_t *load_producer(const struct load *load,
			  void (*on_report)(rd_kafka_t *client, const rd_kafka_message_t *message,
					    void *context))
{
	static const struct setting settings[] = {
		{ "enable.idempotence", "true" },
		{ "partitioner", "murmur2_random" },
		{ "compression.type", "lz4" },
		{ "linger.ms", "20" },
		{ NULL, NULL },
	};
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	rd_kafka_conf_set_dr_msg_cb(conf, on_report);
	return open_client(load, RD_KAFKA_PRODUCER, conf, settings);
}

/* --- options -------------------------------------------------------------------------- */

#define AT(member)	offsetof(struct load, member)

static const struct option_rule rules[] = {
	{ "brokers", 'b', "HOST:PORT,...", "The brokers to ask first",
	  OPTION_TEXT, AT(brokers), 0, 0, NULL },
	{ "topic", 't', "NAME", "The topic that is written (produce) or read",
	  OPTION_TEXT, AT(topic), 0, 0, NULL },
	{ "target", 0, "NAME", "The topic that the records are for",
	  OPTION_TEXT, AT(target), 0, 0, NULL },
	{ "group", 'g', "NAME", "copy: the consumer group", OPTION_TEXT, AT(group), 0, 0, NULL },
	{ "count", 'n', "N", "Number of records", OPTION_COUNT, AT(count), 1, COUNT_MAX, NULL },
	{ "rate", 0, "N", "produce: so many a second (default: as fast as it goes)",
	  OPTION_COUNT, AT(rate), 1, COUNT_MAX, NULL },
	{ "delay", 0, "MS", "produce: the least delay",
	  OPTION_COUNT, AT(delay_ms), 0, COUNT_MAX, NULL },
	{ "delay-max", 0, "MS", "produce: the greatest delay",
	  OPTION_COUNT, AT(delay_max_ms), 0, COUNT_MAX, NULL },
	{ "due", 0, "MS", "produce: all are due at this time, in ms since 1970",
	  OPTION_COUNT, AT(due_ms), 1, INT64_MAX, NULL },
	{ "size", 0, "BYTES", "produce: bytes of a value (default 100)",
	  OPTION_COUNT, AT(size), sizeof(struct stamp), SIZE_MAX_BYTES, NULL },
	{ "late", 0, "MS", "ledger: what counts as late in --series (default 1000)",
	  OPTION_COUNT, AT(late_ms), 1, COUNT_MAX, NULL },
	{ "skip", 0, "N", "ledger: judge the lateness of all but the first so many records",
	  OPTION_COUNT, AT(skip), 0, COUNT_MAX, NULL },
	{ "series", 0, "FILE", "ledger: write there what came in each 100 ms",
	  OPTION_TEXT, AT(series), 0, 0, NULL },
};

static void take_mode(struct argp_state *state, char *text, unsigned int nr, void *values)
{
	struct load *load = values;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(modes); i++)
		if (!strcmp(text, modes[i].name))
			load->mode = text;
	if (nr || !load->mode)
		argp_error(state, "\"%s\" is not one mode: produce, ledger or copy", text);
}

static void check_options(struct argp_state *state, const void *values)
{
	const struct load *load = values;

	if (!load->mode)
		argp_error(state, "no mode: produce, ledger or copy");
	else if (!load->brokers || !load->topic)
		argp_error(state, "%s wants --brokers and --topic", load->mode);
	else if (strcmp(load->mode, "copy") && !load->count)
		argp_error(state, "%s wants --count", load->mode);
	else if (strcmp(load->mode, "ledger") && !load->target)
		argp_error(state, "%s wants --target", load->mode);
	else if (!strcmp(load->mode, "copy") && !load->group)
		argp_error(state, "copy wants --group");
	if (load->delay_max_ms < load->delay_ms)
		argp_error(state, "--delay-max is less than --delay");
}

static void on_signal(int number)
{
	(void)number;
	load_ends = true;
}

int main(int argc, char **argv)
{
	static const struct option_table table = {
		.rules = rules,
		.nr = ARRAY_SIZE(rules),
		.doc = "Delay records in Kafka, and keep a ledger of those that come.\n"
		       "\vproduce: write records with the headers of twheel-relay, and end.\n"
		       "ledger: read a topic until SIGTERM, and until nothing more comes.\n"
		       "copy: write what comes to another topic at once, until SIGTERM.\n",
		.operands = "MODE",
		.operand = take_mode,
		.check = check_options,
	};
	struct load load = { .size = 100, .late_ms = 1000 };
	struct sigaction action = { .sa_handler = on_signal };
	size_t i;

	options_parse(&table, &load, argc, argv);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	for (i = 0; i < ARRAY_SIZE(modes); i++)
		if (!strcmp(load.mode, modes[i].name))
			modes[i].run(&load);
	return 0;
}
