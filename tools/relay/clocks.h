/* SPDX-License-Identifier: GPL-2.0 */
/* How far the clocks of brokers are from that of this machine. */
#ifndef RELAY_CLOCKS_H
#define RELAY_CLOCKS_H

#include <librdkafka/rdkafka.h>
#include <stdint.h>

struct relay;

/**
 * struct clock_difference - the largest difference that records show, by the brokers' timestamps
 * @ahead_ms: so far a broker's clock was ahead of this machine's, at least.
 * @behind_ms: or behind.
 */
struct clock_difference {
	uint64_t ahead_ms;
	uint64_t behind_ms;
};

/**
 * struct relay_clocks - that difference in this minute and in the one before
 * @now: of this minute.
 * @last: of the one before.
 * @minute: when that began, by the clock since boot, in minutes.
 * @logged_ms: when it was last logged that the difference is large, by the same clock.
 */
struct relay_clocks {
	struct clock_difference now;
	struct clock_difference last;
	uint64_t minute;
	uint64_t logged_ms;
};

/*
 * A record was read, which a broker has stamped before; or one that was produced by us is reported,
 * which a broker has stamped meanwhile. For any thread, but @difference. Timestamps of producers
 * (CreateTime) say nothing.
 */
void clock_difference_read(struct clock_difference *difference,
			   const rd_kafka_message_t *message);
void clock_difference_reported(struct clock_difference *difference,
			       const rd_kafka_message_t *message);

/* Take what one of these has found out into account; it is empty again then. */
void relay_clocks_add(struct relay *relay, struct clock_difference *difference);

/* The largest difference of the last one to two minutes. */
struct clock_difference relay_clocks_get(struct relay *relay);

#endif /* RELAY_CLOCKS_H */
