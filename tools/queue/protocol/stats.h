/* SPDX-License-Identifier: GPL-2.0 */
/* The replies to stats, stats-tube and stats-job: beanstalkd's YAML with more keys. */
#ifndef QUEUE_PROTOCOL_STATS_H
#define QUEUE_PROTOCOL_STATS_H

#include "queue/protocol/peer.h"

void stats_of_queue(struct peer *peer);
void stats_of_tube(struct peer *peer, const char *name);
void stats_of_job(struct peer *peer, uint64_t id);

#endif /* QUEUE_PROTOCOL_STATS_H */
