// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks of brokers, by the timestamps that they give to records of topics with
 * message.timestamp.type=LogAppendTime. What a record shows is a bound:
 *
 *	      produced          reported, or read
 *	----------|--------------------|---------------> our clock
 *	   ^                                    ^
 *	   a timestamp here is of a clock       one here is of a clock
 *	   that is behind ours                  that is ahead of ours
 */
#include <inttypes.h>
#include <sys/param.h>

#include "common/log.h"
#include "relay/clocks.h"
#include "relay/state.h"

#define MINUTE_MS	60000ULL

/* A difference above this is logged, and how often. */
#define LARGE_MS	1000
#define LOG_EVERY_MS	600000

/* The timestamp that a broker has given; negative: there is none. */
static int64_t stamp_of(const rd_kafka_message_t *message)
{
	rd_kafka_timestamp_type_t type;
	int64_t stamp_ms = rd_kafka_message_timestamp(message, &type);

	return type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME ? stamp_ms : -1;
}

void clock_difference_read(struct clock_difference *difference,
			   const rd_kafka_message_t *message)
{
	int64_t stamp_ms = stamp_of(message), now_ms = relay_now_ms();

	if (stamp_ms > now_ms)
		difference->ahead_ms = MAX(difference->ahead_ms, (uint64_t)(stamp_ms - now_ms));
}

void clock_difference_reported(struct clock_difference *difference,
			       const rd_kafka_message_t *message)
{
	int64_t stamp_ms = message->err ? -1 : stamp_of(message), produced_ms;

	if (stamp_ms < 0)
		return;
	clock_difference_read(difference, message);
	produced_ms = relay_now_ms() - MAX(rd_kafka_message_latency(message), 0) / 1000;
	if (stamp_ms < produced_ms)
		difference->behind_ms = MAX(difference->behind_ms,
					    (uint64_t)(produced_ms - stamp_ms));
}

/* Begin another minute, if it has come. */
static void turn_minute(struct relay_clocks *clocks)
{
	uint64_t minute = relay_boot_ms() / MINUTE_MS;

	if (minute == clocks->minute)
		return;
	clocks->last = minute == clocks->minute + 1 ? clocks->now : (struct clock_difference){ 0 };
	clocks->now = (struct clock_difference){ 0 };
	clocks->minute = minute;
}

void relay_clocks_add(struct relay *relay, struct clock_difference *difference)
{
	struct relay_clocks *clocks = &relay->clocks;
	uint64_t largest_ms = MAX(difference->ahead_ms, difference->behind_ms);

	if (!largest_ms)
		return;
	turn_minute(clocks);
	clocks->now.ahead_ms = MAX(clocks->now.ahead_ms, difference->ahead_ms);
	clocks->now.behind_ms = MAX(clocks->now.behind_ms, difference->behind_ms);
	if (largest_ms > LARGE_MS && log_again(&clocks->logged_ms, relay_boot_ms(), LOG_EVERY_MS))
		log_say(LOG_WARNING,
			"the clock of a broker is %" PRIu64 " ms %s this machine's", largest_ms,
			largest_ms == difference->ahead_ms ? "ahead of" : "behind");
	*difference = (struct clock_difference){ 0 };
}

struct clock_difference relay_clocks_get(struct relay *relay)
{
	struct relay_clocks *clocks = &relay->clocks;

	turn_minute(clocks);
	return (struct clock_difference){
		.ahead_ms = MAX(clocks->now.ahead_ms, clocks->last.ahead_ms),
		.behind_ms = MAX(clocks->now.behind_ms, clocks->last.behind_ms),
	};
}
