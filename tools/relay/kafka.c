// SPDX-License-Identifier: GPL-2.0
/* The clients of librdkafka: their settings, log and errors. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/util.h"
#include "relay/client/option.h"
#include "relay/commit.h"
#include "relay/doubt.h"
#include "relay/group.h"
#include "relay/kafka.h"
#include "relay/send.h"
#include "relay/settings.h"
#include "relay/state.h"

/* How long brokers may wait for ids that were taken back, at most. */
#define FETCH_WAIT_MS	"500"

/* How many relays of one group a machine may have. */
#define NUMBERS_MAX	1000

/* How long closing waits for records in flight. */
#define FLUSH_MS	1000

struct setting {
	const char *name;
	const char *value;
};

static const struct setting both_settings[] = {
	{ "client.id", "twheel-relay" },
	/* A single record may be this large; producers and brokers set the lower limits. */
	{ "receive.message.max.bytes", "1100000000" },
};

static const struct setting consumer_settings[] = {
	/* Only the relay knows which records are done. */
	{ "enable.auto.commit", "false" },
	{ "enable.auto.offset.store", "false" },
	/* Missing records are an error: see partition.c. */
	{ "auto.offset.reset", "error" },
	{ "isolation.level", "read_committed" },
	/* The ends of transactions have offsets, too: so we learn which of them are behind us. */
	{ "enable.partition.eof", "true" },
	{ "check.crcs", "true" },
	/* Buckets of another horizon may appear. */
	{ "topic.metadata.refresh.interval.ms", "60000" },
	/* A rebalance takes until all members know of it, and they learn it by a heartbeat. */
	{ "heartbeat.interval.ms", "1000" },
	/*
	 * These buffers are not part of --memory, and when a partition is paused, they were
	 * fetched in vain. A broker's answer may be larger than this if one batch is. With fewer
	 * messages in a partition's buffer, fetches are too small: half as many records a second.
	 */
	{ "fetch.max.bytes", "16777216" },
	{ "queued.max.messages.kbytes", "65536" },
	{ "queued.min.messages", "100000" },
};

/* For the map, and the ids that were taken back. */
static const struct setting follower_settings[] = {
	{ "isolation.level", "read_committed" },
	{ "enable.partition.eof", "true" },
	{ "check.crcs", "true" },
	/* Compacted topics lose their first records. */
	{ "auto.offset.reset", "earliest" },
	{ "queued.max.messages.kbytes", "4096" },
};

static const struct setting producer_settings[] = {
	/* Brokers decide how large a record may be. */
	{ "message.max.bytes", "1000000000" },
	{ "enable.idempotence", "true" },
	{ "acks", "all" },
	/* The partitioner of Kafka's own clients: records of a key stay in one partition. */
	{ "partitioner", "murmur2_random" },
	/* A record that was compressed when it was read may be too large without compression. */
	{ "compression.type", "lz4" },
	/*
	 * A request has the batch of one partition, and with replicas each costs some 1 ms of
	 * brokers' processors: with the default of 5 ms, a batch has one record at 1,000 a second.
	 */
	{ "linger.ms", "20" },
	/* Asking whether a topic exists must not create it. */
	{ "allow.auto.create.topics", "false" },
	/* Until then, a topic that brokers do not know may be one that they do not know yet. */
	{ "topic.metadata.propagation.max.ms", "5000" },
	/* With this client we ask for the ends of all that is written: see load.c. */
	{ "isolation.level", "read_uncommitted" },
};

static const struct setting once_settings[] = {
	/* After this time without success, a record is reported to us as failed. */
	{ "message.timeout.ms", "30000" },
};

/*
 * The transaction of a relay that was killed holds up the next owner of its partitions for this
 * time, if it does not start again before. A record that cannot be written aborts its turn, so
 * that is noticed soon.
 */
static const struct setting transaction_settings[] = {
	{ "transaction.timeout.ms", "20000" },
	{ "message.timeout.ms", "8000" },
	/* All records of a turn are there at once. */
	{ "linger.ms", "0" },
	/* Nor can a turn be larger than the queue: it would be aborted again and again. */
	{ "queue.buffering.max.messages", "1000000" },
	{ "queue.buffering.max.kbytes", "1048576" },
};

/* --- log and errors of librdkafka ----------------------------------------------------- */

/* librdkafka's threads call this too; log_say() writes a line in one call. */
static void on_log(const rd_kafka_t *client, int level, const char *what, const char *text)
{
	(void)client;
	/* Expected: a setting of both clients that only one has, or that old brokers lack. */
	if (!strcmp(what, "CONFWARN") || !strcmp(what, "AUTOCREATE"))
		level = LOG_DEBUG;
	log_say(level, "kafka: %s: %s", what, text);
}

static void on_error(rd_kafka_t *client, int error, const char *text, void *context)
{
	struct relay *relay = context;
	char why[512];

	/* librdkafka logs the other errors, too, and recovers by itself. */
	if (error != RD_KAFKA_RESP_ERR__FATAL) {
		log_say(LOG_DEBUG, "kafka: %s", text);
		return;
	}
	rd_kafka_fatal_error(client, why, sizeof(why));
	log_say(LOG_ERR, "kafka: fatal error: %s: start the relay again", why);
	relay_end(relay, EX_UNAVAILABLE);
}

/* A fatal error of a producer of transactions ends only that one: it is made anew. */
static void on_transaction_error(rd_kafka_t *client, int error, const char *text, void *context)
{
	(void)client;
	(void)context;
	log_say(LOG_DEBUG, "kafka: %s: %s", rd_kafka_err2name(error), text);
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

/* Settings of topics have two names. */
static bool is_one_of(const struct relay_setting *setting, const char *const *names, size_t nr)
{
	const char *name = setting->name + (strncmp(setting->name, "topic.", 6) ? 0 : 6);
	size_t i;

	for (i = 0; i < nr; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Not settings that the relay's promises depend on, and those that have their own option. */
static bool is_allowed(const struct relay_setting *setting)
{
	static const char *const names[] = {
		"bootstrap.servers", "metadata.broker.list", "group.id", "enable.auto.commit",
		"enable.auto.offset.store", "auto.offset.reset", "enable.idempotence", "acks",
		"request.required.acks", "transactional.id", "message.max.bytes",
		/* The relay needs a report of every record, and a time-out must not be fatal. */
		"delivery.report.only.error", "enable.gapless.guarantee",
		/* Records of aborted transactions and damaged records must not be delivered. */
		"isolation.level", "check.crcs", "enable.partition.eof",
	};

	if (is_one_of(setting, names, ARRAY_SIZE(names)))
		return false;
	/* The relay expects that the whole assignment is revoked at once. */
	return strcmp(setting->name, "partition.assignment.strategy") ||
		!strstr(setting->value, "cooperative");
}

static bool set_user_setting(rd_kafka_conf_t *conf, const struct relay_setting *setting)
{
	char why[512] = "this is the relay's own to set";

	if (is_allowed(setting) &&
	    !rd_kafka_conf_set(conf, setting->name, setting->value, why, sizeof(why)))
		return true;
	if (setting->path)
		log_say(LOG_ERR, "%s:%u: %s: %s", setting->path, setting->line, setting->name,
			why);
	else
		log_say(LOG_ERR, "-X %s: %s", setting->name, why);
	return false;
}

static bool set_user_settings(rd_kafka_conf_t *conf, const struct relay *relay)
{
	const struct relay_setting *setting;

	STAILQ_FOREACH(setting, &relay->options.settings, entry)
		if (!set_user_setting(conf, setting))
			return false;
	return set(conf, "bootstrap.servers", relay->options.brokers);
}

/* Of the settings that all clients may have, the relay's producers have some of their own. */
static void warn_of_setting(const struct relay_setting *setting)
{
	static const char *const names[] = {
		"message.timeout.ms", "delivery.timeout.ms", "transaction.timeout.ms",
	};

	if (is_one_of(setting, names, ARRAY_SIZE(names)))
		log_say(LOG_WARNING, "%s has no effect: the relay has its own", setting->name);
}

static rd_kafka_conf_t *make_conf(struct relay *relay, const struct setting *settings,
				  size_t nr)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	rd_kafka_conf_set_opaque(conf, relay);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rd_kafka_conf_set_error_cb(conf, on_error);
	if (set_all(conf, both_settings, ARRAY_SIZE(both_settings)) &&
	    set_all(conf, settings, nr) && set_user_settings(conf, relay))
		return conf;
	rd_kafka_conf_destroy(conf);
	return NULL;
}

/* The settings of a producer, and those of one of its kinds, which hold if the user has others. */
static rd_kafka_conf_t *make_producer_conf(struct relay *relay, const struct setting *settings,
					   size_t nr)
{
	rd_kafka_conf_t *conf = make_conf(relay, producer_settings,
					  ARRAY_SIZE(producer_settings));

	if (!conf || set_all(conf, settings, nr))
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

static int make_eventfd(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* The eventfd becomes readable when an event is added to the queue. */
static void watch_queue(rd_kafka_queue_t *queue, int fd)
{
	static const uint64_t one = 1;

	rd_kafka_queue_io_event_enable(queue, fd, &one, sizeof(one));
}

static rd_kafka_t *make_producer(struct relay *relay)
{
	rd_kafka_conf_t *conf = make_producer_conf(relay, once_settings,
						   ARRAY_SIZE(once_settings));

	if (!conf)
		return NULL;
	rd_kafka_conf_set_dr_msg_cb(conf, relay_send_report);
	return make_client(RD_KAFKA_PRODUCER, conf);
}

static void watch_client(rd_kafka_t *client, int fd)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_get_main(client);

	watch_queue(queue, fd);
	rd_kafka_queue_destroy(queue);
}

/* How soon librdkafka sends a record again. Its later versions take up to a fifth off. */
static uint64_t again_ms(rd_kafka_t *producer)
{
	char text[32];
	size_t size = sizeof(text);

	if (rd_kafka_conf_get(rd_kafka_conf(producer), "retry.backoff.ms", text, &size))
		return 0;
	return strtoull(text, NULL, 10) * 4 / 5;
}

static bool open_producers(struct relay *relay)
{
	relay->sender_fd = make_eventfd();
	if (relay->sender_fd < 0)
		return false;
	relay->producer = make_producer(relay);
	if (!relay->producer)
		return false;
	relay->again_ms = again_ms(relay->producer);
	watch_client(relay->producer, relay->sender_fd);
	if (relay->options.delivery == RELAY_EXACTLY_ONCE)
		return true;
	relay->own_producer = make_producer(relay);
	if (!relay->own_producer)
		return false;
	watch_client(relay->own_producer, relay->sender_fd);
	return true;
}

void relay_client_group(const struct relay *relay, char name[RELAY_GROUP_MAX])
{
	/* The default group of earlier versions: committed offsets belong to it. */
	if (relay->options.group)
		snprintf(name, RELAY_GROUP_MAX, "%s", relay->options.group);
	else
		snprintf(name, RELAY_GROUP_MAX, CLIENT_GROUP_PREFIX "%s", relay->options.topic);
}

static bool set_group(rd_kafka_conf_t *conf, const struct relay *relay)
{
	char name[RELAY_GROUP_MAX];

	relay_client_group(relay, name);
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
	relay_doubt_init(relay);
	relay->reader_fd = make_eventfd();
	if (relay->reader_fd < 0)
		return false;
	watch_queue(relay->reader, relay->reader_fd);
	return true;
}

/* Whether all is read has to be known within RELAY_CANCEL_BEFORE_MS, whatever the user has set. */
static bool bound_wait(rd_kafka_conf_t *conf)
{
	char value[24] = "";
	size_t size = sizeof(value);

	rd_kafka_conf_get(conf, "fetch.wait.max.ms", value, &size);
	return atoi(value) <= atoi(FETCH_WAIT_MS) || set(conf, "fetch.wait.max.ms", FETCH_WAIT_MS);
}

static bool open_follower(struct relay *relay)
{
	rd_kafka_conf_t *conf = make_conf(relay, follower_settings,
					  ARRAY_SIZE(follower_settings));

	if (conf && !bound_wait(conf)) {
		rd_kafka_conf_destroy(conf);
		conf = NULL;
	}
	relay->follower = conf ? make_client(RD_KAFKA_CONSUMER, conf) : NULL;
	return relay->follower;
}

/* --- transactions --------------------------------------------------------------------- */

/*
 * A number that no other relay of this group on this machine has. It is free again when the
 * process ends, however that happens: an abstract address of a socket.
 */
static unsigned int take_number(const char *group)
{
	static unsigned int number;
	unsigned int i;

	for (i = 1; !number && i <= NUMBERS_MAX; i++) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
			 "twheel-relay/%u/%.80s", i, group);
		/* It stays open until the process ends. */
		if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)))
			number = i;
		else if (fd >= 0)
			close(fd);
	}
	return number;
}

static void name_instance(struct relay *relay, const char *group, char *text, size_t size)
{
	char host[HOST_NAME_MAX + 1] = "host";

	if (relay->options.instance) {
		snprintf(text, size, "%s", relay->options.instance);
		return;
	}
	gethostname(host, sizeof(host) - 1);
	snprintf(text, size, "%s-%u", host, take_number(group));
}

void relay_client_id(struct relay *relay, const char *part, char id[RELAY_CLIENT_ID_MAX])
{
	char instance[HOST_NAME_MAX + 16], group[RELAY_GROUP_MAX];

	relay_client_group(relay, group);
	name_instance(relay, group, instance, sizeof(instance));
	snprintf(id, RELAY_CLIENT_ID_MAX, "%.249s-%s%s", group, instance, part);
}

rd_kafka_t *relay_client_transactional(struct relay *relay, const char *id, relay_report *report,
				       void *context)
{
	rd_kafka_conf_t *conf = make_producer_conf(relay, transaction_settings,
						   ARRAY_SIZE(transaction_settings));

	if (!conf)
		return NULL;
	if (!set(conf, "transactional.id", id)) {
		rd_kafka_conf_destroy(conf);
		return NULL;
	}
	rd_kafka_conf_set_opaque(conf, context);
	rd_kafka_conf_set_error_cb(conf, on_transaction_error);
	rd_kafka_conf_set_dr_msg_cb(conf, report);
	return make_client(RD_KAFKA_PRODUCER, conf);
}

/* The user's settings are right: they are refused before anything begins. */
static bool check_user_settings(const struct relay *relay)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	bool right = set_user_settings(conf, relay);
	const struct relay_setting *setting;

	rd_kafka_conf_destroy(conf);
	STAILQ_FOREACH(setting, &relay->options.settings, entry)
		warn_of_setting(setting);
	return right;
}

int relay_client_open(struct relay *relay)
{
	if (!check_user_settings(relay))
		return EXIT_USAGE;
	return open_producers(relay) && open_follower(relay) && open_consumer(relay) ? 0 :
		EXIT_CANNOT;
}

static void close_producer(rd_kafka_t *producer)
{
	if (!producer)
		return;
	rd_kafka_flush(producer, FLUSH_MS);
	rd_kafka_destroy(producer);
}

void relay_client_close(struct relay *relay)
{
	relay_settings_end(relay);
	if (relay->reader) {
		rd_kafka_queue_io_event_enable(relay->reader, -1, NULL, 0);
		rd_kafka_queue_destroy(relay->reader);
	}
	/* The producers first: their reports refer to the consumer's partitions. */
	close_producer(relay->own_producer);
	close_producer(relay->producer);
	if (relay->consumer)
		rd_kafka_destroy(relay->consumer);
	if (relay->follower)
		rd_kafka_destroy(relay->follower);
	if (relay->reader_fd >= 0)
		close(relay->reader_fd);
	if (relay->sender_fd >= 0)
		close(relay->sender_fd);
}
