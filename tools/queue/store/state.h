/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The structures of an open store, for the files of store/ and integrity/.
 *
 * The queue's thread owns everything except struct store_syncer, struct store_writer,
 * struct store_scrubber, struct store_backup and struct store_space: their fields are guarded
 * by their locks, or are atomic.
 */
#ifndef QUEUE_STORE_STATE_H
#define QUEUE_STORE_STATE_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <syslog.h>
#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "queue/store/config.h"
#include "queue/store/numbers.h"
#include "queue/store/record.h"

/* The exit status of a process whose log cannot be written: EX_IOERR. */
#define STORE_EXIT_IO	74

/* The version of the format that this program writes, and the only one that it reads. */
#define STORE_VERSION	1

/**
 * struct store_head - lower bound of the first entry of an index
 * @order: READY: the priority; else @order of the place.
 * @id: the id.
 *
 * Deleted entries stay on disk for some time, and a walk from the first key would step over
 * each of them. It starts at the head instead.
 */
struct store_head {
	uint64_t order;
	uint64_t id;
};

/**
 * struct store_tube - a tube in memory
 * @tube: number of the tube.
 * @counts: jobs by state.
 * @seen: jobs by state, as store_scan() has counted them.
 * @ready: head of the index of ready jobs.
 * @buried: head of the index of buried jobs.
 * @dirty: @counts have changed and are not in the batch.
 * @entry: node in the tree of tubes.
 * @dirty_entry: link in the list of dirty tubes.
 */
struct store_tube {
	uint32_t tube;
	struct tube_counts counts;
	struct tube_counts seen;
	struct store_head ready;
	struct store_head buried;
	bool dirty;

	RB_ENTRY(store_tube) entry;
	LIST_ENTRY(store_tube) dirty_entry;
};

RB_HEAD(store_tubes, store_tube);

/**
 * struct store_syncer - the sync thread, and the fields that it shares with the queue's thread
 * @thread: the sync thread.
 * @lock: guards the fields from @committed to @busy, and changes of @synced.
 * @work: signalled for a commit, a flush and the stop.
 * @done: signalled after a write or a sync.
 * @committed: number of the last commit.
 * @changes: number of the last batch in that commit.
 * @flush_to: store_flush() waits for a sync up to this commit, whatever the policy.
 * @on_disk: all commits up to this one are synced.
 * @running: the thread exists.
 * @stop: the thread must end.
 * @busy: a sync for SYNC_ALWAYS is under way, in either thread.
 * @alone: the queue's thread only: for so many commits in succession one client has waited.
 * @nr_waiting: clients that wait for the next commit: 0, 1, or 2 for more; 2 until
 *	store_sync_waiting() tells. This and the next two fields are of the queue's thread only.
 * @here_ns: the queue's thread syncs and writes only after this time.
 * @later_ns: not 0: commits were left for this time.
 * @synced: the result of store_synced().
 * @signalled: @event_fd is readable, or is about to be.
 * @event_fd: eventfd that is readable when @synced has grown.
 * @witness_fd: file with the number of the last synced batch, see dir.c.
 * @files_lock: guards the next field.
 * @log_number: RocksDB's log that was the newest one when db/ was listed; 0, db/ was not yet.
 * @syncs: number of syncs.
 * @sync_ns: total time of the syncs.
 * @sync_max_ns: time of the longest sync.
 * @slow_syncs: number of syncs that took STORE_SLOW_SYNC_NS or more.
 */
struct store_syncer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t done;
	uint64_t committed;
	uint64_t changes;
	uint64_t flush_to;
	uint64_t on_disk;
	bool running;
	bool stop;
	bool busy;
	unsigned int alone;
	unsigned int nr_waiting;
	uint64_t here_ns;
	uint64_t later_ns;

	_Atomic uint64_t synced;
	_Atomic bool signalled;
	int event_fd;
	int witness_fd;
	pthread_mutex_t files_lock;
	uint64_t log_number;
	_Atomic uint64_t syncs;
	_Atomic uint64_t sync_ns;
	_Atomic uint64_t sync_max_ns;
	_Atomic uint64_t slow_syncs;
};

/**
 * struct store_writer - batches on their way to RocksDB: writer.c
 * @lock: guards @taken.
 * @writing: held by the thread that writes; taken before @lock.
 * @taken: batches, the oldest first.
 * @bytes: their bytes, with those of the batch that is being written.
 */
struct store_writer {
	pthread_mutex_t lock;
	pthread_mutex_t writing;
	STAILQ_HEAD(, store_taken) taken;
	_Atomic size_t bytes;
};

/**
 * struct store_space - space on the disk
 * @lock: guards the ballast, which two threads release and take back, and @lack_s.
 * @reserve: disk space in bytes that new jobs must leave free.
 * @ballast_fd: a file of @reserve bytes, which is shortened when the disk is full.
 * @ballast: its present size in bytes.
 * @held: the ballast has its full size.
 * @stuck: it could not be released the last time.
 * @deleted: jobs were deleted since the last push.
 * @pushing: deleted data may still be on disk. This and the next three fields belong to the
 *	scrub thread.
 * @pushes: number of pushes since the last delete.
 * @pushed_ns: time of the last push.
 * @errors: RocksDB's count of background errors at the last push.
 * @lack_s: seconds for which the ballast is not taken back, because RocksDB had no space.
 * @lack_errors: that count at the beginning of these seconds.
 * @least: free space that new jobs need, beside the ballast.
 * @room: there is room for new jobs.
 * @checked_ns: time of the last check of the free space.
 * @unwritten: bytes of the log that are in memory.
 * @added: bytes passed to RocksDB since the last check.
 * @spent: bytes passed to RocksDB since a part of the ballast was released.
 */
struct store_space {
	pthread_mutex_t lock;
	uint64_t reserve;
	int ballast_fd;
	uint64_t ballast;
	bool held;
	bool stuck;
	_Atomic bool deleted;
	_Atomic bool pushing;
	unsigned int pushes;
	uint64_t pushed_ns;
	uint64_t errors;
	unsigned int lack_s;
	uint64_t lack_errors;
	_Atomic uint64_t least;
	_Atomic bool room;
	_Atomic uint64_t checked_ns;
	_Atomic uint64_t unwritten;
	_Atomic uint64_t added;
	_Atomic uint64_t spent;
};

/**
 * struct store_scrubber - the scrub thread, which reads the whole store at intervals
 * @thread: the scrub thread.
 * @lock: guards @stop.
 * @wake: signalled when @stop is set.
 * @running: the thread exists.
 * @stop: the thread must end.
 * @passes: number of full reads.
 * @bytes: bytes read.
 */
struct store_scrubber {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool running;
	bool stop;
	_Atomic uint64_t passes;
	_Atomic uint64_t bytes;
};

/**
 * struct store_backup - the backup that is being made, in a thread of its own
 * @thread: the thread.
 * @running: the thread exists.
 * @name: name of the backup.
 * @changes: number of the last batch before it began.
 * @result: valid when @ended is set: 0 or a negative errno.
 * @ended: the thread has ended, or is about to.
 * @stop: the thread must end.
 */
struct store_backup {
	pthread_t thread;
	bool running;
	char *name;
	uint64_t changes;
	int result;
	_Atomic bool ended;
	_Atomic bool stop;
};

/*
 * Bits of a hash of the ids and keys that batches change. A read of another job that has one
 * of these bits waits for the writer: so there are many.
 */
#define TOUCHED_BITS	65536

struct store {
	struct store_config config;
	char *dir;
	/* The directory, and db/, by a descriptor; by name if it is only read, or without /proc. */
	char *path;
	char *db_path;
	/* The name of db/, which has to lead to this inode. */
	char *db_name;
	int db_fd;
	dev_t db_device;
	ino_t db_inode;
	int dir_fd;
	/* The directory had no store before this open. */
	bool fresh;
	/* Opened by store_open_unscanned(): the caller reads everything itself. */
	bool unscanned;
	/* For a repair: RocksDB can open it as a whole, see store_salvage_try(). */
	bool openable;
	/* The whole store was read when it was opened. */
	bool scanned;
	/* The store is in use: damage that is found from now on is marked on disk. */
	_Atomic bool served;
	/* Damage was found while the store was in use. */
	_Atomic bool damaged;
	/* The damage is marked on disk. */
	_Atomic bool marked;

	rocksdb_t *db;
	rocksdb_options_t *options;
	rocksdb_cache_t *cache;
	rocksdb_writeoptions_t *write_options;
	/* A write with these fails where it would wait for compactions. */
	rocksdb_writeoptions_t *write_at_once;
	rocksdb_readoptions_t *read_options;
	size_t write_buffer;

	/*
	 * The batch: changes that the writer has not taken, and a hash of the ids and keys in
	 * it; and one of those in the batches that it may not have written.
	 */
	rocksdb_writebatch_t *batch;
	uint64_t touched[TOUCHED_BITS / 64];
	uint64_t touched_before[TOUCHED_BITS / 64];
	bool pending;
	/* The batch deletes jobs. */
	bool deletes;
	/* There was a change since the last commit. */
	bool changed;
	uint64_t commits;
	/* Number of batches ever taken by the writer; each batch writes its own number. */
	uint64_t changes;
	uint64_t records;
	uint64_t next_id;
	bool next_id_changed;

	struct store_tubes tubes;
	LIST_HEAD(, store_tube) dirty;
	struct store_head delayed;
	struct store_head wall;
	struct store_head schedules;

	/* The last result of store_get_body(). */
	rocksdb_pinnableslice_t *body;

	struct store_syncer syncer;
	struct store_writer writer;
	struct store_scrubber scrubber;
	struct store_backup backup;
	struct store_space space;
};

#endif /* QUEUE_STORE_STATE_H */
