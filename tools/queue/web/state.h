/* SPDX-License-Identifier: GPL-2.0 */
/* The structures of the queue's page for people. */
#ifndef QUEUE_WEB_STATE_H
#define QUEUE_WEB_STATE_H

#include "metrics/board.h"
#include "metrics/errands.h"
#include "metrics/site.h"
#include "queue/jobs/queue.h"
#include "queue/jobs/show.h"
#include "queue/store/stats.h"
#include "queue/web/web.h"
#include "queue/web/wire.h"

/* The tubes whose numbers are copied in one errand: some tens of microseconds. */
#define WEB_TUBES_A_PIECE	128

/**
 * struct web - the page
 * @config: as it was made.
 * @errands: by which its threads ask the loop.
 * @site: the page, as the server of HTTP needs it.
 * @wire: the lane of actions: its client of the daemon.
 * @board: the thread of connections: the tubes. Like all that follows.
 * @in_pass: a pass over the tubes goes on.
 * @pass_ns: when it began, CLOCK_MONOTONIC.
 * @piece: the last tubes of it.
 * @nr_piece: their number.
 * @after: the name of the last of them.
 * @stats: numbers of the queue.
 * @disk_bytes: disk space of the store.
 * @free_bytes: free space of its file system.
 * @health: what is wrong, or "".
 */
struct web {
	struct web_config config;
	struct errands *errands;
	struct site site;
	struct wire wire;
	struct board *board;
	bool in_pass;
	uint64_t pass_ns;
	struct tube_shown piece[WEB_TUBES_A_PIECE];
	size_t nr_piece;
	char after[TUBE_NAME_MAX + 1];
	struct queue_stats stats;
	uint64_t disk_bytes;
	uint64_t free_bytes;
	char health[128];
};

#endif /* QUEUE_WEB_STATE_H */
