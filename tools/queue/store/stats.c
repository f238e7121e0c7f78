// SPDX-License-Identifier: GPL-2.0
/* Statistics of a store. */
#include <string.h>
#include <sys/statvfs.h>

#include "queue/store/dir.h"
#include "queue/store/rocksdb.h"
#include "queue/store/state.h"
#include "queue/store/stats.h"

static uint64_t memory_bytes(struct store *store)
{
	uint64_t buffers = 0;

	rocksdb_property_int(store->db, "rocksdb.cur-size-all-mem-tables", &buffers);
	return buffers + rocksdb_cache_get_usage(store->cache);
}

void store_disk(struct store *store, uint64_t *disk_bytes, uint64_t *free_bytes)
{
	struct statvfs disk;

	if (!fstatvfs(store->dir_fd, &disk))
		*free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	*disk_bytes = store_dir_bytes(store);
}

void store_stats(struct store *store, struct store_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	store_disk(store, &stats->disk_bytes, &stats->free_bytes);
	stats->least_bytes = store->space.least;
	stats->changes = store->records;
	stats->syncs = store->syncer.syncs;
	stats->sync_ns = store->syncer.sync_ns;
	stats->sync_max_ns = store->syncer.sync_max_ns;
	stats->slow_syncs = store->syncer.slow_syncs;
	stats->memory_bytes = memory_bytes(store);
	stats->scrubs = store->scrubber.passes;
	stats->scrubbed_bytes = store->scrubber.bytes;
	stats->damaged = store->damaged;
}

static uint64_t property(struct store *store, const char *name)
{
	uint64_t value = 0;

	rocksdb_property_int(store->db, name, &value);
	return value;
}

bool store_is_behind(struct store *store)
{
	return property(store, "rocksdb.num-files-at-level0") >= STORE_TABLES_BEHIND ||
	       property(store, "rocksdb.num-immutable-mem-table") > 1;
}
