/* SPDX-License-Identifier: GPL-2.0 */
/* Records that were taken back. */
#ifndef RELAY_CANCELS_H
#define RELAY_CANCELS_H

#include "relay/state.h"

int relay_cancels_open(struct relay *relay);
void relay_cancels_close(struct relay *relay);

/* Becomes readable when an id was taken back. */
int relay_cancels_fd(const struct relay_cancels *cancels);

/* A partition of this number is assigned to us, or is not any more. */
void relay_cancels_take(struct relay *relay, int32_t number);
void relay_cancels_drop(struct relay *relay, int32_t number);

/*
 * The ids of this number are known when those below the offset @end were read, which brokers were
 * asked for at @asked_ms, as relay_boot_ms().
 */
void relay_cancels_expect(struct relay *relay, int32_t number, int64_t end, uint64_t asked_ms);

/* Are the ids of this number known? Before that nothing of this number may be sent. */
bool relay_cancels_ready(struct relay *relay, int32_t number);

/* Read what was taken back, up to a limit for one turn. Returns whether there may be more. */
bool relay_cancels_poll(struct relay *relay);

/* Ask for the ends of the numbers, to know whether all is read. Call this now and then. */
void relay_cancels_ask(struct relay *relay);

/* Forget ids that are long over, and delete them in the topic. Call this now and then. */
void relay_cancels_expire(struct relay *relay);

/* If this record, which is due, was taken back in time, is that known? */
bool relay_cancels_known(struct relay *relay, const struct relay_entry *entry);

/* Was this record taken back? */
bool relay_cancels_has(struct relay *relay, const struct relay_entry *entry);

/* The number of ids that are known, and the memory that they take. */
uint64_t relay_cancels_nr(const struct relay *relay);
uint64_t relay_cancels_bytes(const struct relay *relay);

#endif /* RELAY_CANCELS_H */
