/* SPDX-License-Identifier: GPL-2.0 */
/* Producing: delivery reports, and targets that cannot be written. */
#ifndef RELAY_SEND_H
#define RELAY_SEND_H

#include "relay/state.h"

/* Send an entry, which is in no list, as its decision says. */
void relay_send(struct relay *relay, struct relay_entry *entry);

/* Remove an entry from the list in which it waits to be sent. */
void relay_send_forget(struct relay *relay, struct relay_entry *entry);

/* Free an entry in any state but ENTRY_SENDING. */
void relay_send_free(struct relay *relay, struct relay_entry *entry);

/* Handle delivery reports. Waits up to @timeout_ms for the first. */
void relay_send_poll(struct relay *relay, int timeout_ms);

/* Callback for librdkafka. */
void relay_send_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *context);

RB_PROTOTYPE(relay_targets, relay_target, node, relay_target_compare);
int relay_target_compare(const struct relay_target *a, const struct relay_target *b);

#endif /* RELAY_SEND_H */
