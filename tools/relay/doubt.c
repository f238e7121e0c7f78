// SPDX-License-Identifier: GPL-2.0
/*
 * Doubt: a relay that stood still (its machine slept, somebody stopped it) may not be a member
 * of the group any more, without knowing that yet. Then its partitions are with other relays,
 * which have sent what became due meanwhile. Brokers do not fence off the records that it
 * sends, but they refuse its commits. So it sends one commit, and nothing else until that is
 * answered:
 *
 *	             stood still                         refused
 *	  (sure) ----------------> asked, sends nothing ---------> sends nothing
 *	    ^                        |                                |
 *	    |     accepted, or no answer                              | partitions are
 *	    |     within a session   |                                | revoked
 *	    +------------------------+--------------------------------+
 *
 * Records that librdkafka has already are sent all the same. On a machine whose clocks all stop
 * with it, such as some virtual machines, the relay cannot notice that it stood still.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#include "common/log.h"
#include "relay/doubt.h"
#include "relay/state.h"

/* How often the group is asked. */
#define ASK_EVERY_MS	1000

/* The session's time-out, if librdkafka does not say it. */
#define SESSION_MS	45000

/* A turn of the loop that takes less than this is not a standstill. */
#define STILL_LEAST_MS	3000

void relay_doubt_init(struct relay *relay)
{
	char text[24];
	size_t size = sizeof(text);

	relay->session_ms = SESSION_MS;
	if (!rd_kafka_conf_get(rd_kafka_conf(relay->consumer), "session.timeout.ms", text, &size))
		relay->session_ms = strtoull(text, NULL, 10);
}

/*
 * Half a session: the group's time-out counts from our last heartbeat, which was some time before
 * the last turn.
 */
bool relay_doubt_stood_still(const struct relay *relay)
{
	return relay->turn_ms &&
		relay_boot_ms() - relay->turn_ms >= MAX(relay->session_ms / 2, STILL_LEAST_MS);
}

static void ask_group(struct relay *relay)
{
	relay->doubt_asked_ms = relay_boot_ms();
	relay->doubt_asked += relay->handlers.ask(relay);
}

void relay_doubt_end(struct relay *relay)
{
	relay->doubt = false;
	relay->doubt_over = false;
}

static void start_doubt(struct relay *relay, uint64_t stood_ms)
{
	relay->stats.standstills++;
	log_say(LOG_WARNING, "the relay stood still for %" PRIu64
		" ms: it sends nothing until the group accepts a commit", stood_ms);
	relay->doubt = true;
	relay->doubt_over = false;
	relay->doubt_started_ms = relay_boot_ms();
	ask_group(relay);
}

/*
 * Has the doubt lasted for a session? librdkafka measures this time, too: if no heartbeat was
 * answered meanwhile, it has revoked our partitions by now.
 */
static bool has_expired(const struct relay *relay)
{
	return relay_boot_ms() >= relay->doubt_started_ms + relay->session_ms;
}

void relay_doubt_check(struct relay *relay)
{
	uint64_t before_ms = relay->turn_ms, now_ms = relay_boot_ms();
	bool stood_still = relay_doubt_stood_still(relay);

	relay->turn_ms = now_ms;
	if (stood_still)
		start_doubt(relay, now_ms - before_ms);
	else if (relay->doubt_over || (relay->doubt && has_expired(relay)))
		relay_doubt_end(relay);
	else if (relay->doubt && !relay->doubt_asked &&
		 now_ms >= relay->doubt_asked_ms + ASK_EVERY_MS)
		ask_group(relay);
}

void relay_doubt_answer(struct relay *relay, rd_kafka_resp_err_t error)
{
	relay->doubt_asked--;
	/* If another question was asked since, only its answer counts. */
	relay->doubt_over |= !error && !relay->doubt_asked;
}
