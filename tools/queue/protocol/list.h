/* SPDX-License-Identifier: GPL-2.0 */
/* The replies to list-tubes, list-tubes-watched, list-jobs and list-every. */
#ifndef QUEUE_PROTOCOL_LIST_H
#define QUEUE_PROTOCOL_LIST_H

#include "queue/protocol/peer.h"

void list_tubes(struct peer *peer);
void list_watched(struct peer *peer);
/* The schedules of the tube in use, of those after the name @after only. */
void list_every(struct peer *peer, const char *after);
void list_jobs(struct peer *peer, const struct command *command);

#endif /* QUEUE_PROTOCOL_LIST_H */
