/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs on disk: RocksDB, and a thread that syncs its log for many commands at once.
 *
 * The queue's thread makes changes, and every later read sees them. Each commit has a number.
 * The sync thread passes commits to RocksDB, writes the log and syncs it, again and again
 * while there are new ones. store_synced() returns the
 * number of the last commit that is on disk: a reply that promises durability waits until
 * this covers its commit. With a policy other than SYNC_ALWAYS, the number is that of the
 * last commit that was written, which survives a crash of this process but not of the machine.
 *
 * Only store_flush() and store_close() wait for a sync. After an error that leaves the state
 * on disk unknown (EIO of the log) the process logs it and ends: replies that still wait for
 * the sync are never sent.
 *
 * The store counts jobs by tube and state, and writes the counts with the changes.
 */
#ifndef QUEUE_STORE_CONFIG_H
#define QUEUE_STORE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

enum store_sync {
	SYNC_ALWAYS,
	SYNC_INTERVAL,
	SYNC_NEVER
};

/**
 * struct store_config - how to open a store
 * @dir: its directory.
 * @create: make it if there is none.
 * @read_only: change nothing: for check and dump.
 * @repair: drop damaged jobs, log them, and start with the rest.
 * @sync: when commits are synced.
 * @sync_interval_ns: the time between syncs, for SYNC_INTERVAL.
 * @memory: bytes for buffers and caches, at least 8 MiB.
 * @reserve: disk space in bytes that new jobs must leave free; 0: a sixteenth of what is
 *	free, from 128 MiB (or a quarter of the file system, if that is less) to 1 GiB.
 * @open_tables: how many files RocksDB has open at a time, without those of its log; 0: 256.
 *	It takes 20 at least.
 * @scrub_interval_ns: the time between full reads in the background that look for damage;
 *	0: never.
 * @log: logs a line about something found (the torn end of a log, damage). The store's
 *	own threads call it, too.
 */
struct store_config {
	const char *dir;
	bool create;
	bool read_only;
	bool repair;
	enum store_sync sync;
	uint64_t sync_interval_ns;
	size_t memory;
	uint64_t reserve;
	unsigned int open_tables;
	uint64_t scrub_interval_ns;
	void (*log)(int priority, const char *format, ...)
		__attribute__((format(printf, 2, 3)));
};

#endif /* QUEUE_STORE_CONFIG_H */
