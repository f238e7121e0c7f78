/* SPDX-License-Identifier: GPL-2.0 */
/* The clients of librdkafka: their settings, log and errors. */
#ifndef RELAY_KAFKA_H
#define RELAY_KAFKA_H

#include "relay/state.h"

/* Make the consumer and the producer. Logs what is wrong; returns an exit status. */
int relay_client_open(struct relay *relay);
void relay_client_close(struct relay *relay);

#endif /* RELAY_KAFKA_H */
