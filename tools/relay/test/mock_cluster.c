// SPDX-License-Identifier: GPL-2.0
/*
 * librdkafka's mock cluster of Kafka, for tests of the relay: a process of its own, so that
 * relays can be killed while it lives.
 *
 * Usage: mock_cluster [BROKERS]	(default 3)
 *
 * It prints its bootstrap servers as the first line, and then "ok" or "error: WHY" for each
 * line of stdin:
 *
 *	topic NAME PARTITIONS		create a topic; other topics, with 4
 *					partitions, when a client asks for them
 *	broker ID|all up|down		no connections while it is down
 *	leader TOPIC PARTITION ID	set the leader of a partition; -1: none
 *	coordinator GROUP ID		set the coordinator of a group
 *	rtt ID|all MS			delay all answers by MS
 *	error ID|all API COUNT ERROR	the next requests fail: all Produce 3 REQUEST_TIMED_OUT
 *	topic-error TOPIC ERROR		requests for the topic's metadata get this error
 *	quit				also at the end of stdin
 *
 * An API is named as in requests, or is its number. An error is named as Kafka does, or
 * NO_ERROR; _TRANSPORT closes the connection instead.
 *
 * It does not support CreateTopics and transactions. A partition keeps 5 MB or 100,000 records;
 * beyond that the oldest are deleted, as by retention.
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define WORDS_MAX	5
#define ERRORS_MAX	1000

static rd_kafka_mock_cluster_t *cluster;

/* A command, and the number of its words, with its name. */
struct mock_command {
	const char *name;
	int nr_words;
	rd_kafka_resp_err_t (*run)(char **words);
};

static rd_kafka_resp_err_t parse_int(const char *text, int *number)
{
	char *end;

	*number = strtol(text, &end, 10);
	return end == text || *end ? RD_KAFKA_RESP_ERR__INVALID_ARG : 0;
}

static rd_kafka_resp_err_t parse_broker(const char *text, int *broker)
{
	*broker = -1;
	return strcmp(text, "all") ? parse_int(text, broker) : 0;
}

static rd_kafka_resp_err_t parse_error(const char *text, rd_kafka_resp_err_t *error)
{
	const struct rd_kafka_err_desc *errors;
	size_t nr, i;

	rd_kafka_get_err_descs(&errors, &nr);
	for (i = 0; i < nr; i++) {
		if (errors[i].name && !strcmp(errors[i].name, text)) {
			*error = errors[i].code;
			return 0;
		}
	}
	return RD_KAFKA_RESP_ERR__INVALID_ARG;
}

static rd_kafka_resp_err_t parse_api(const char *text, int *api)
{
	static const struct {
		const char *name;
		int api;
	} apis[] = {
		{ "Produce", 0 }, { "Fetch", 1 }, { "ListOffsets", 2 }, { "Metadata", 3 },
		{ "OffsetCommit", 8 }, { "OffsetFetch", 9 }, { "FindCoordinator", 10 },
		{ "JoinGroup", 11 }, { "Heartbeat", 12 }, { "LeaveGroup", 13 },
		{ "SyncGroup", 14 }, { "InitProducerId", 22 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(apis); i++) {
		if (!strcmp(apis[i].name, text)) {
			*api = apis[i].api;
			return 0;
		}
	}
	return parse_int(text, api);
}

static rd_kafka_resp_err_t run_topic(char **words)
{
	int partitions;

	return parse_int(words[2], &partitions) ?:
		rd_kafka_mock_topic_create(cluster, words[1], partitions, 1);
}

static rd_kafka_resp_err_t run_broker(char **words)
{
	rd_kafka_resp_err_t error;
	int broker;

	error = parse_broker(words[1], &broker);
	if (error)
		return error;
	if (!strcmp(words[2], "up"))
		return rd_kafka_mock_broker_set_up(cluster, broker);
	if (!strcmp(words[2], "down"))
		return rd_kafka_mock_broker_set_down(cluster, broker);
	return RD_KAFKA_RESP_ERR__INVALID_ARG;
}

static rd_kafka_resp_err_t run_leader(char **words)
{
	int partition, broker;

	return parse_int(words[2], &partition) ?: parse_int(words[3], &broker) ?:
		rd_kafka_mock_partition_set_leader(cluster, words[1], partition, broker);
}

static rd_kafka_resp_err_t run_coordinator(char **words)
{
	int broker;

	return parse_int(words[2], &broker) ?:
		rd_kafka_mock_coordinator_set(cluster, "group", words[1], broker);
}

static rd_kafka_resp_err_t run_rtt(char **words)
{
	int broker, ms;

	return parse_broker(words[1], &broker) ?: parse_int(words[2], &ms) ?:
		rd_kafka_mock_broker_set_rtt(cluster, broker, ms);
}

/* Make requests to one broker fail, or to all. */
static void push_error(int broker, int api, rd_kafka_resp_err_t error)
{
	if (broker < 0)
		rd_kafka_mock_push_request_errors(cluster, api, 1, error);
	else
		rd_kafka_mock_broker_push_request_error_rtts(cluster, broker, api, 1, error, 0);
}

static rd_kafka_resp_err_t run_error(char **words)
{
	rd_kafka_resp_err_t result, error;
	int broker, api, count, i;

	result = parse_broker(words[1], &broker) ?: parse_api(words[2], &api) ?:
		parse_int(words[3], &count) ?: parse_error(words[4], &error);
	if (result || count < 1 || count > ERRORS_MAX)
		return RD_KAFKA_RESP_ERR__INVALID_ARG;
	for (i = 0; i < count; i++)
		push_error(broker, api, error);
	return 0;
}

static rd_kafka_resp_err_t run_topic_error(char **words)
{
	rd_kafka_resp_err_t error;

	if (parse_error(words[2], &error))
		return RD_KAFKA_RESP_ERR__INVALID_ARG;
	rd_kafka_mock_topic_set_error(cluster, words[1], error);
	return 0;
}

static const struct mock_command commands[] = {
	{ "topic", 3, run_topic },
	{ "broker", 3, run_broker },
	{ "leader", 4, run_leader },
	{ "coordinator", 3, run_coordinator },
	{ "rtt", 3, run_rtt },
	{ "error", 5, run_error },
	{ "topic-error", 3, run_topic_error },
};

static void run(char **words, int nr_words)
{
	rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__INVALID_ARG;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, words[0]) && commands[i].nr_words == nr_words)
			error = commands[i].run(words);
	if (error)
		printf("error: %s\n", rd_kafka_err2str(error));
	else
		puts("ok");
}

static void serve(void)
{
	char *line = NULL, *words[WORDS_MAX], *word, *rest;
	size_t size = 0;
	int nr;

	while (getline(&line, &size, stdin) > 0) {
		nr = 0;
		for (word = strtok_r(line, " \t\n", &rest); word && nr < WORDS_MAX;
		     word = strtok_r(NULL, " \t\n", &rest))
			words[nr++] = word;
		if (nr && !strcmp(words[0], "quit"))
			break;
		if (nr)
			run(words, nr);
	}
	free(line);
}

int main(int argc, char **argv)
{
	int brokers = argc > 1 ? atoi(argv[1]) : 3;
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[256];
	rd_kafka_t *client;

	/* Suppress librdkafka's warning that no brokers are configured. */
	rd_kafka_conf_set(conf, "log_level", "3", why, sizeof(why));
	client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	cluster = client ? rd_kafka_mock_cluster_new(client, brokers) : NULL;
	if (!cluster) {
		fprintf(stderr, "mock_cluster: there is no cluster of %d brokers\n", brokers);
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts(rd_kafka_mock_cluster_bootstraps(cluster));
	serve();
	rd_kafka_mock_cluster_destroy(cluster);
	rd_kafka_destroy(client);
	return 0;
}
