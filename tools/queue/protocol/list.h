/* SPDX-License-Identifier: GPL-2.0 */
/* The replies to list-tubes, list-tubes-watched and list-jobs. */
#ifndef QUEUE_PROTOCOL_LIST_H
#define QUEUE_PROTOCOL_LIST_H

#include "queue/protocol/peer.h"

void list_tubes(struct peer *peer);
void list_watched(struct peer *peer);
void list_jobs(struct peer *peer, const struct command *command);

#endif /* QUEUE_PROTOCOL_LIST_H */
