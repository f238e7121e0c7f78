/* SPDX-License-Identifier: GPL-2.0 */
/* The topics of the relay. */
#ifndef RELAY_TOPICS_H
#define RELAY_TOPICS_H

#include "relay/state.h"

/*
 * Create the topics that are missing, if the options say so, and check those that exist.
 * Logs what is wrong; returns an exit status.
 */
int relay_topics_open(struct relay *relay);

#endif /* RELAY_TOPICS_H */
