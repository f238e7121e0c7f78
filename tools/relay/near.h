/* SPDX-License-Identifier: GPL-2.0 */
/* Records that wait in memory until they are due. */
#ifndef RELAY_NEAR_H
#define RELAY_NEAR_H

#include "relay/state.h"

/* Let an entry, which is in no list, wait until it is due. */
void relay_near_add(struct relay *relay, struct relay_entry *entry);
void relay_near_remove(struct relay *relay, struct relay_entry *entry);

/* If memory is short, those entries give way that are due last. */
void relay_near_give_way(struct relay *relay);

#endif /* RELAY_NEAR_H */
