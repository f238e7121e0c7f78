/* SPDX-License-Identifier: GPL-2.0 */
/* Alarms of the relay. */
#ifndef RELAY_WAKE_H
#define RELAY_WAKE_H

#include "relay/state.h"

/* Call @waker->wake once, at @time_ms of the wall clock. */
void relay_wake_at(struct relay *relay, struct relay_waker *waker, uint64_t time_ms);

/* Call it once, in @ms, however the wall clock is set meanwhile. */
void relay_wake_in(struct relay *relay, struct relay_waker *waker, uint64_t ms);
void relay_wake_never(struct relay *relay, struct relay_waker *waker);

/* Is @waker set? */
bool relay_wake_pending(const struct relay_waker *waker);

/* Call the wakers that are due, up to a limit for one turn. Returns whether more may be due. */
bool relay_wake_due(struct relay *relay);

/* Hand changed alarms to the wheel: before the loop sleeps. */
void relay_wake_flush(struct relay *relay);

#endif /* RELAY_WAKE_H */
