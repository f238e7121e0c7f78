// SPDX-License-Identifier: GPL-2.0
/* The clients of Kafka: their settings, what they log, and their errors. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "log.h"
#include "relay.h"
#include "subcommand.h"
#include "util.h"

/* How long closing waits for what is still to be sent. */
#define FLUSH_MS	1000

struct setting {
	const char *name;
	const char *value;
};

static const struct setting both_settings[] = {
	{ "client.id", "twheelq" },
	/* For one record that is so large; it is the other side's to send less. */
	{ "receive.message.max.bytes", "1100000000" },
};

static const struct setting consumer_settings[] = {
	/* What is done is known here only. */
	{ "enable.auto.commit", "false" },
	{ "enable.auto.offset.store", "false" },
	/* Records that are gone are an error: see relay_partition.c. */
	{ "auto.offset.reset", "error" },
	{ "isolation.level", "read_committed" },
	{ "enable.partition.eof", "false" },
	{ "check.crcs", "true" },
	/* Buckets of another horizon may appear. */
	{ "topic.metadata.refresh.interval.ms", "60000" },
	/*
	 * Beside --memory; and when a partition is paused, it is fetched in vain. An answer of
	 * a broker's is larger for one batch that is so.
	 */
	{ "fetch.max.bytes", "16777216" },
	{ "queued.max.messages.kbytes", "16384" },
	{ "queued.min.messages", "10000" },
};

static const struct setting producer_settings[] = {
	/* How large a record may be is for brokers to say. */
	{ "message.max.bytes", "1000000000" },
	{ "enable.idempotence", "true" },
	{ "acks", "all" },
	/* As Kafka's own clients choose partitions: what has one key stays in one. */
	{ "partitioner", "murmur2_random" },
	/* What came compressed may be too large otherwise. */
	{ "compression.type", "lz4" },
	/* A record that was not written for so long goes back to us. */
	{ "message.timeout.ms", "30000" },
};

/* --- what librdkafka tells ------------------------------------------------------------ */

/* Called by its threads too: log_say() writes a line at once. */
static void on_log(const rd_kafka_t *client, int level, const char *what, const char *text)
{
	(void)client;
	/* Of what is told both clients, some is for one; and old brokers cannot be told all. */
	if (!strcmp(what, "CONFWARN") || !strcmp(what, "AUTOCREATE"))
		level = LOG_DEBUG;
	log_say(level, "kafka: %s: %s", what, text);
}

static void on_error(rd_kafka_t *client, int error, const char *text, void *context)
{
	struct relay *relay = context;
	char why[512];

	/* Others are in the log too, and it goes on by itself. */
	if (error != RD_KAFKA_RESP_ERR__FATAL) {
		log_say(LOG_DEBUG, "kafka: %s", text);
		return;
	}
	rd_kafka_fatal_error(client, why, sizeof(why));
	log_say(LOG_ERR, "kafka: %s: nothing can be done but to start anew", why);
	relay_end(relay, EX_UNAVAILABLE);
}

/* --- settings ------------------------------------------------------------------------- */

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char why[512];

	if (!rd_kafka_conf_set(conf, name, value, why, sizeof(why)))
		return true;
	log_say(LOG_ERR, "%s: %s", name, why);
	return false;
}

static bool set_all(rd_kafka_conf_t *conf, const struct setting *settings, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (!set(conf, settings[i].name, settings[i].value))
			return false;
	return true;
}

/* What the relay's promises stand on, and what has an option of its own. */
static bool may_be_told(const struct relay_setting *setting)
{
	static const char *const names[] = {
		"bootstrap.servers", "metadata.broker.list", "group.id", "enable.auto.commit",
		"enable.auto.offset.store", "auto.offset.reset", "enable.idempotence", "acks",
		"request.required.acks", "transactional.id", "message.max.bytes",
		/* Every record has a report, and a time-out is not fatal. */
		"delivery.report.only.error", "enable.gapless.guarantee",
		/* What was aborted is not delivered; what is damaged neither. */
		"isolation.level", "check.crcs", "enable.partition.eof",
	};
	const char *name = setting->name;
	size_t i;

	/* Those of topics have two names. */
	if (!strncmp(name, "topic.", 6))
		name += 6;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return false;
	/* Partitions are revoked all at once here. */
	return strcmp(setting->name, "partition.assignment.strategy") ||
		!strstr(setting->value, "cooperative");
}

static bool set_told_one(rd_kafka_conf_t *conf, const struct relay_setting *setting)
{
	char why[512] = "this is the relay's own to set";

	if (may_be_told(setting) &&
	    !rd_kafka_conf_set(conf, setting->name, setting->value, why, sizeof(why)))
		return true;
	if (setting->path)
		log_say(LOG_ERR, "%s:%u: %s: %s", setting->path, setting->line, setting->name,
			why);
	else
		log_say(LOG_ERR, "-X %s: %s", setting->name, why);
	return false;
}

static bool set_told(rd_kafka_conf_t *conf, const struct relay *relay)
{
	const struct relay_setting *setting;

	STAILQ_FOREACH(setting, &relay->options.settings, entry)
		if (!set_told_one(conf, setting))
			return false;
	return set(conf, "bootstrap.servers", relay->options.brokers);
}

static rd_kafka_conf_t *make_conf(struct relay *relay, const struct setting *settings,
				  size_t nr)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	rd_kafka_conf_set_opaque(conf, relay);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rd_kafka_conf_set_error_cb(conf, on_error);
	if (set_all(conf, both_settings, ARRAY_SIZE(both_settings)) &&
	    set_all(conf, settings, nr) && set_told(conf, relay))
		return conf;
	rd_kafka_conf_destroy(conf);
	return NULL;
}

static rd_kafka_t *make_client(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
	char why[512];
	rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof(why));

	if (client)
		return client;
	rd_kafka_conf_destroy(conf);
	log_say(LOG_ERR, "kafka: %s", why);
	return NULL;
}

/* --- opening and closing -------------------------------------------------------------- */

/* A file that is readable when there is something in a queue. */
static int watch_queue(rd_kafka_queue_t *queue)
{
	static const uint64_t one = 1;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd >= 0)
		rd_kafka_queue_io_event_enable(queue, fd, &one, sizeof(one));
	return fd;
}

static bool open_producer(struct relay *relay)
{
	rd_kafka_conf_t *conf = make_conf(relay, producer_settings,
					  ARRAY_SIZE(producer_settings));
	rd_kafka_queue_t *queue;

	if (!conf)
		return false;
	rd_kafka_conf_set_dr_msg_cb(conf, relay_send_report);
	relay->producer = make_client(RD_KAFKA_PRODUCER, conf);
	if (!relay->producer)
		return false;
	queue = rd_kafka_queue_get_main(relay->producer);
	relay->sender_fd = watch_queue(queue);
	rd_kafka_queue_destroy(queue);
	return relay->sender_fd >= 0;
}

static bool set_group(rd_kafka_conf_t *conf, const struct relay *relay)
{
	char name[RELAY_TOPIC_MAX + 16];

	if (relay->options.group)
		return set(conf, "group.id", relay->options.group);
	snprintf(name, sizeof(name), "twheelq-%s", relay->options.topic);
	return set(conf, "group.id", name);
}

static bool open_consumer(struct relay *relay)
{
	rd_kafka_conf_t *conf = make_conf(relay, consumer_settings,
					  ARRAY_SIZE(consumer_settings));

	if (!conf || !set_group(conf, relay)) {
		if (conf)
			rd_kafka_conf_destroy(conf);
		return false;
	}
	rd_kafka_conf_set_rebalance_cb(conf, relay_group_rebalance);
	rd_kafka_conf_set_offset_commit_cb(conf, relay_commit_report);
	relay->consumer = make_client(RD_KAFKA_CONSUMER, conf);
	if (!relay->consumer)
		return false;
	rd_kafka_poll_set_consumer(relay->consumer);
	relay->reader = rd_kafka_queue_get_consumer(relay->consumer);
	relay->reader_fd = watch_queue(relay->reader);
	relay_doubt_init(relay);
	return relay->reader_fd >= 0;
}

int relay_client_open(struct relay *relay)
{
	return open_producer(relay) && open_consumer(relay) ? 0 : EXIT_CANNOT;
}

void relay_client_close(struct relay *relay)
{
	relay_settings_end(relay);
	if (relay->reader) {
		rd_kafka_queue_io_event_enable(relay->reader, -1, NULL, 0);
		rd_kafka_queue_destroy(relay->reader);
	}
	/* First that whose reports may come yet, and be of the other's partitions. */
	if (relay->producer) {
		rd_kafka_flush(relay->producer, FLUSH_MS);
		rd_kafka_destroy(relay->producer);
	}
	if (relay->consumer)
		rd_kafka_destroy(relay->consumer);
	if (relay->reader_fd >= 0)
		close(relay->reader_fd);
	if (relay->sender_fd >= 0)
		close(relay->sender_fd);
}
