/* SPDX-License-Identifier: GPL-2.0 */
/* Statistics of a store. */
#ifndef QUEUE_STORE_STATS_H
#define QUEUE_STORE_STATS_H

#include "common/time.h"
#include "queue/store/config.h"

#define STORE_SLOW_SYNC_NS	(100 * NSEC_PER_MSEC)

/**
 * struct store_stats - statistics for stats and metrics
 * @changes: number of records written since the store was opened.
 * @syncs: number of syncs of the log.
 * @sync_ns: total time of these syncs.
 * @sync_max_ns: time of the longest sync.
 * @slow_syncs: number of syncs that took STORE_SLOW_SYNC_NS or more.
 * @disk_bytes: disk space of the directory, without the reserve.
 * @free_bytes: free space of the file system.
 * @least_bytes: with less free space, puts are refused.
 * @memory_bytes: memory of buffers and caches.
 * @scrubs: number of full reads in the background.
 * @scrubbed_bytes: bytes read by them.
 * @damaged: 1 if damage was found since the store was opened.
 */
struct store_stats {
	uint64_t changes;
	uint64_t syncs;
	uint64_t sync_ns;
	uint64_t sync_max_ns;
	uint64_t slow_syncs;
	uint64_t disk_bytes;
	uint64_t free_bytes;
	uint64_t least_bytes;
	uint64_t memory_bytes;
	uint64_t scrubs;
	uint64_t scrubbed_bytes;
	uint64_t damaged;
};

void store_stats(struct store *store, struct store_stats *stats);

/* For any thread: @disk_bytes and @free_bytes of them. */
void store_disk(struct store *store, uint64_t *disk_bytes, uint64_t *free_bytes);

/*
 * Are the compactions behind? Then more changes would delay all commands: work that can wait
 * does so.
 */
bool store_is_behind(struct store *store);

#endif /* QUEUE_STORE_STATS_H */
