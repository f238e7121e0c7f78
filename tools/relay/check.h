/* SPDX-License-Identifier: GPL-2.0 */
/* Whether a target exists, and can be written. */
#ifndef RELAY_CHECK_H
#define RELAY_CHECK_H

#include "relay/send.h"
#include "relay/state.h"

/* Called in the loop with the answer for a topic: 0, or why it cannot be written. */
typedef void relay_checked(struct relay *relay, const char *topic, rd_kafka_resp_err_t error);

/*
 * Find out whether a topic exists and, if @product is not NULL, whether that record can be
 * written: in a transaction that is aborted, so that nobody reads it. Copies what it needs, and
 * takes the headers. Returns false if there is no memory.
 */
bool relay_check_start(struct relay *relay, const char *topic,
		       const struct relay_product *product, relay_checked *checked);

int relay_check_open(struct relay *relay);
void relay_check_close(struct relay *relay);

#endif /* RELAY_CHECK_H */
