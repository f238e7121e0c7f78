/* SPDX-License-Identifier: GPL-2.0 */
/* Exactly once: a turn is a transaction of records, the map and offsets. */
#ifndef RELAY_TURN_H
#define RELAY_TURN_H

#include "relay/state.h"

/* Open what --delivery exactly-once needs. Logs what is wrong; returns an exit status. */
int relay_turn_open(struct relay *relay);
void relay_turn_close(struct relay *relay);

/* Becomes readable when a turn is over. */
int relay_turn_fd(const struct relay_turn *turn);

/* Handle the end of a turn, and begin the next one if there is something to do. */
void relay_turn_run(struct relay *relay);

/* When the next turn may begin, if there is something to do that waits for that alone. */
uint64_t relay_turn_waits_until(const struct relay *relay);

/*
 * Wait for the end of the turn in flight, for a limited time. Returns whether it has ended, and
 * how is known. Does nothing with at least once.
 */
bool relay_turn_wait(struct relay *relay);

#endif /* RELAY_TURN_H */
