// SPDX-License-Identifier: GPL-2.0
/*
 * Doubt: a relay that stood still (its machine slept, somebody stopped it) may be in the
 * group no more and not know that yet. Then what came due meanwhile is with others, who have
 * sent it. Brokers do not keep its records out, but they refuse its commits. So one of these
 * is sent, and nothing else until it is answered:
 *
 *	             stood still                      refused
 *	  (sure) ----------------> asked, sends nothing ------> sends nothing
 *	    ^                        |                             |
 *	    |   taken, or no answer  |                             | partitions are taken
 *	    +------------------------+-----------------------------+
 *
 * What librdkafka has already is sent all the same. A machine whose clocks all stop with it,
 * as those of some virtual machines, cannot tell.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#include "log.h"
#include "relay.h"

/* How often it is asked. */
#define ASK_EVERY_MS	1000

/* librdkafka's, if it cannot be asked. */
#define SESSION_MS	45000

/* A turn that takes less is none. */
#define STILL_LEAST_MS	3000

void relay_doubt_init(struct relay *relay)
{
	char text[24];
	size_t size = sizeof(text);

	relay->session_ms = SESSION_MS;
	if (!rd_kafka_conf_get(rd_kafka_conf(relay->consumer), "session.timeout.ms", text, &size))
		relay->session_ms = strtoull(text, NULL, 10);
}

/* The group waits from our last word, which was somewhat before the last turn. */
bool relay_doubt_stood_still(const struct relay *relay)
{
	return relay->turned_ms &&
		relay_boot_ms() - relay->turned_ms >= MAX(relay->session_ms / 2, STILL_LEAST_MS);
}

static void ask(struct relay *relay)
{
	relay->doubt_asked_ms = relay_boot_ms();
	relay->doubt_asked += relay_commit_ask(relay);
}

void relay_doubt_end(struct relay *relay)
{
	relay->doubt = false;
	relay->doubt_over = false;
}

static void begin(struct relay *relay, uint64_t stood_ms)
{
	relay->stats.standstills++;
	log_say(LOG_WARNING, "it stood still for %" PRIu64
		" ms: nothing is sent until the group takes a commit", stood_ms);
	relay->doubt = true;
	relay->doubt_over = false;
	relay->doubt_begun_ms = relay_boot_ms();
	ask(relay);
}

/*
 * librdkafka counts the time of the session too: if no heartbeat was answered since then, it
 * has told us by now that our partitions are gone.
 */
static bool is_old(const struct relay *relay)
{
	return relay_boot_ms() >= relay->doubt_begun_ms + relay->session_ms;
}

void relay_doubt_look(struct relay *relay)
{
	uint64_t before_ms = relay->turned_ms, now_ms = relay_boot_ms();
	bool stood_still = relay_doubt_stood_still(relay);

	relay->turned_ms = now_ms;
	if (stood_still)
		begin(relay, now_ms - before_ms);
	else if (relay->doubt_over || (relay->doubt && is_old(relay)))
		relay_doubt_end(relay);
	else if (relay->doubt && !relay->doubt_asked &&
		 now_ms >= relay->doubt_asked_ms + ASK_EVERY_MS)
		ask(relay);
}

void relay_doubt_answer(struct relay *relay, rd_kafka_resp_err_t error)
{
	relay->doubt_asked--;
	/* If it was asked again since, it is that answer which tells. */
	relay->doubt_over |= !error && !relay->doubt_asked;
}
