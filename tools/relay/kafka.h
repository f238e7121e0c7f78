/* SPDX-License-Identifier: GPL-2.0 */
/* The clients of librdkafka: their settings, log and errors. */
#ifndef RELAY_KAFKA_H
#define RELAY_KAFKA_H

#include "relay/state.h"

/* Make the consumer and the producer. Logs what is wrong; returns an exit status. */
int relay_client_open(struct relay *relay);
void relay_client_close(struct relay *relay);

/* Room for the name of a group, and for a transactional id. */
#define RELAY_GROUP_MAX		256
#define RELAY_CLIENT_ID_MAX	(RELAY_GROUP_MAX + 400)

/* The name of the consumer group. */
void relay_client_group(const struct relay *relay, char name[RELAY_GROUP_MAX]);

/*
 * A transactional id of this relay: it is the same each time that it starts, and differs between
 * relays. So a relay that starts again ends the transaction that it left open. @part is empty, or
 * begins with a slash, which no name of a relay has.
 */
void relay_client_id(struct relay *relay, const char *part, char id[RELAY_CLIENT_ID_MAX]);

/* Called by the thread that uses the producer, with the context given. */
typedef void relay_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context);

/*
 * Make a producer of transactions. May be called in any thread. Logs what is wrong; returns
 * NULL then. The caller destroys it.
 */
rd_kafka_t *relay_client_transactional(struct relay *relay, const char *id, relay_report *report,
				       void *context);

#endif /* RELAY_KAFKA_H */
