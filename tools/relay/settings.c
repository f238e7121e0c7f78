// SPDX-License-Identifier: GPL-2.0
/*
 * Checks the relay's topics while it runs. The loop calls relay_settings_check() at each tick,
 * which makes a step if the answer is there that it waits for:
 *
 *	            each minute            it has more partitions
 *	   RESTING -------------> COUNTING ---------------+
 *	    ^  |  each hour                               v            --create
 *	    |  +--------------------------------------> LISTING ------------------> ADDING
 *	    |                                           |  ^                          |
 *	    |                  all is there, or it      |  | again each tick, until   |
 *	    +--- DESCRIBING <--- does not become so ----+  +--- brokers know them ----+
 *	          ^
 *	        (start)
 *
 * COUNTING asks for the partitions of the topic of delays, LISTING for those of all topics,
 * DESCRIBING for the topics' settings. What is wrong is logged, each hour again; or each ten
 * minutes as long as --create cannot add what is missing.
 *
 * At the start, settings that would lose records end the relay: it has not begun yet, and
 * somebody is looking. Later it goes on: its end would stop all delays, and save nothing.
 *
 * A topic that is missing is created only at the start. One that was deleted while relays run is
 * not: somebody may be about to create it with other settings.
 */
#include <stdlib.h>

#include "common/exit.h"
#include "common/log.h"
#include "relay/create.h"
#include "relay/describe.h"
#include "relay/query.h"
#include "relay/settings.h"

#define COUNT_EVERY_MS	(60 * 1000ULL)
#define LIST_EVERY_MS	(3600 * 1000ULL)
/* The same, while partitions could not be added. */
#define ADD_EVERY_MS	(600 * 1000ULL)
/* These are scaled in tests, but not down to nothing. */
#define LEAST_EVERY_MS	2000ULL

/* How often brokers are asked for partitions that were added, a second apart. */
#define LIST_TIMES	15

enum step {
	RESTING,
	COUNTING,
	LISTING,
	ADDING,
	DESCRIBING,
};

/**
 * struct relay_checks - the checks of topics
 * @step: what it waits for.
 * @at_start: the settings are asked for the first time.
 * @silent: it was logged that the settings cannot be read.
 * @count_ms: when partitions are counted next, by the clock since boot.
 * @list_ms: when all is checked next.
 * @tries: how often the topics may still be listed until all is there that was added.
 * @topics: the topics as they were last seen.
 * @query: the question of COUNTING and LISTING.
 * @queue: receives the answers of ADDING and DESCRIBING.
 */
struct relay_checks {
	enum step step;
	bool at_start;
	bool silent;
	uint64_t count_ms;
	uint64_t list_ms;
	unsigned int tries;
	struct relay_topics topics;
	struct relay_query *query;
	rd_kafka_queue_t *queue;
};

static uint64_t scaled(const struct relay *relay, uint64_t ms)
{
	ms /= relay->rules.scale;
	return ms > LEAST_EVERY_MS ? ms : LEAST_EVERY_MS;
}

static void rest(struct relay *relay)
{
	struct relay_checks *checks = relay->settings;

	checks->step = RESTING;
	checks->count_ms = relay_boot_ms() + scaled(relay, COUNT_EVERY_MS);
}

/* --- settings ------------------------------------------------------------------------- */

static void describe(struct relay *relay)
{
	struct relay_checks *checks = relay->settings;
	bool again = relay->options.create && !relay_topics_complete(&checks->topics);

	checks->list_ms = relay_boot_ms() + scaled(relay, again ? ADD_EVERY_MS : LIST_EVERY_MS);
	if (relay_describe(relay, &checks->topics, checks->queue))
		checks->step = DESCRIBING;
	else
		rest(relay);
}

static void described(struct relay *relay, rd_kafka_event_t *event)
{
	struct relay_checks *checks = relay->settings;

	if (relay_described(&checks->topics, event, &checks->silent) && checks->at_start)
		relay_end(relay, EXIT_CANNOT);
	checks->at_start = false;
	log_say(LOG_DEBUG, "the topics are checked");
	rest(relay);
}

/* --- partitions ----------------------------------------------------------------------- */

static void count(struct relay *relay)
{
	struct relay_checks *checks = relay->settings;

	checks->query = relay_query_start(relay->consumer, relay->rules.topic);
	checks->step = checks->query ? COUNTING : RESTING;
}

static void list(struct relay *relay)
{
	struct relay_checks *checks = relay->settings;

	checks->query = relay_query_start(relay->consumer, NULL);
	checks->step = checks->query ? LISTING : RESTING;
}

static void list_afresh(struct relay *relay)
{
	relay->settings->tries = 0;
	list(relay);
}

static void counted(struct relay *relay, const struct rd_kafka_metadata *metadata)
{
	struct relay_checks *checks = relay->settings;
	const struct rd_kafka_metadata_topic *topic = metadata->topics;
	int before = checks->topics.topic[0].partitions;

	if (metadata->topic_cnt != 1 || topic->err || topic->partition_cnt <= before) {
		rest(relay);
		return;
	}
	log_say(LOG_NOTICE, "%s has %d partitions now, and had %d", topic->topic,
		topic->partition_cnt, before);
	list_afresh(relay);
}

/* Log what is wrong, and go on with the settings. */
static void judge(struct relay *relay)
{
	relay_topics_judge(&relay->settings->topics, &relay->options);
	describe(relay);
}

static void listed(struct relay *relay, const struct rd_kafka_metadata *metadata)
{
	struct relay_checks *checks = relay->settings;

	relay_topics_fill(&checks->topics, metadata);
	if (checks->tries) {
		/* Partitions were added; other brokers may know them only a while later. */
		checks->tries--;
		if (!relay_topics_complete(&checks->topics) && checks->tries)
			list(relay);
		else
			judge(relay);
	} else if (relay->options.create &&
		   relay_create_partitions(relay, &checks->topics, checks->queue)) {
		checks->step = ADDING;
	} else {
		judge(relay);
	}
}

static void added(struct relay *relay, rd_kafka_event_t *event)
{
	relay_create_answered(event);
	relay->settings->tries = LIST_TIMES;
	list(relay);
}

/* The answer of a query is there. */
static void answered(struct relay *relay)
{
	struct relay_checks *checks = relay->settings;
	enum step step = checks->step;
	const struct rd_kafka_metadata *metadata;

	metadata = relay_query_end(checks->query);
	checks->query = NULL;
	rest(relay);
	if (!metadata) {
		if (checks->list_ms < checks->count_ms)
			checks->list_ms = checks->count_ms;
		return;
	}
	if (step == COUNTING)
		counted(relay, metadata);
	else
		listed(relay, metadata);
	rd_kafka_metadata_destroy(metadata);
}

/* --- steps ---------------------------------------------------------------------------- */

int relay_settings_start(struct relay *relay, const struct relay_topics *topics)
{
	struct relay_checks *checks = calloc(1, sizeof(*checks));

	if (!checks) {
		log_say(LOG_ERR, "not enough memory");
		return EX_OSERR;
	}
	checks->at_start = true;
	checks->topics = *topics;
	checks->queue = rd_kafka_queue_new(relay->consumer);
	relay->settings = checks;
	describe(relay);
	return 0;
}

void relay_settings_end(struct relay *relay)
{
	struct relay_checks *checks = relay->settings;
	const struct rd_kafka_metadata *metadata = NULL;

	if (!checks)
		return;
	if (checks->query)
		metadata = relay_query_end(checks->query);
	if (metadata)
		rd_kafka_metadata_destroy(metadata);
	rd_kafka_queue_destroy(checks->queue);
	free(checks);
	relay->settings = NULL;
}

static void check_event(struct relay *relay)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(relay->settings->queue, 0);

	if (event && relay->settings->step == ADDING)
		added(relay, event);
	else if (event)
		described(relay, event);
}

static void check_again(struct relay *relay)
{
	const struct relay_checks *checks = relay->settings;
	uint64_t now_ms = relay_boot_ms();

	if (now_ms >= checks->list_ms)
		list_afresh(relay);
	else if (now_ms >= checks->count_ms)
		count(relay);
}

void relay_settings_check(struct relay *relay)
{
	struct relay_checks *checks = relay->settings;

	if (!checks)
		return;
	switch (checks->step) {
	case RESTING:
		check_again(relay);
		break;
	case COUNTING:
	case LISTING:
		if (relay_query_is_over(checks->query))
			answered(relay);
		break;
	case ADDING:
	case DESCRIBING:
		check_event(relay);
		break;
	}
}
