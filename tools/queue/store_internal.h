/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the store share: struct store, and what they have for each other.
 *
 *	store.c		changes, and handing them to RocksDB
 *	store_read.c	gets and walks
 *	store_tubes.c	counts by tube, in memory
 *	store_sync.c	the thread that syncs
 *	store_space.c	room on the disk
 *	store_open.c	opening and closing, RocksDB's options
 *	store_dir.c	the directory: whose it is, its lock, its marker, the witness
 *	store_log.c	a look at RocksDB's log before it is opened
 *	store_manifest.c which logs are needed
 *	store_records.c	the format of both
 *	store_scan.c	reading everything once, before it is served
 *	store_scrub.c	reading it now and then, while it is; a thread for what may wait
 *	store_check.c	store_check()
 *	store_repair.c	going on with what is intact
 *	store_salvage.c	copying what can be read of tables and logs
 *	store_pieces.c	the same where RocksDB cannot open them
 *	store_dump.c	store_dump(), and store_load.c the other way round
 *
 * All belongs to the thread of the queue, but for struct store_syncer, struct store_scrubber,
 * and struct store_space, whose fields that two threads use are atomic.
 */
#ifndef TWHEELQ_STORE_INTERNAL_H
#define TWHEELQ_STORE_INTERNAL_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <syslog.h>
#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "store.h"
#include "store_keys.h"

/* The exit status of a process whose log cannot be written: EX_IOERR. */
#define STORE_EXIT_IO	74

/* Names of the store's own numbers; a dot keeps them from those of the queue. */
#define NUMBER_NEXT_ID	".next"
#define NUMBER_CHANGES	".changes"
#define NUMBER_VERSION	".version"

/* So many tables that were written out, and not merged yet, are merged. */
#define STORE_TABLES_COMPACT	12

#define STORE_SECOND_NS		1000000000ull

/* How RocksDB is to read its logs, whose header for C has no name for it. */
#define TOLERATE_TORN_TAIL	0
#define SKIP_CORRUPT		3

/* The version of a store that this program writes, and the only one it reads. */
#define STORE_VERSION	1

/**
 * struct store_head - nothing in an index comes before it
 * @order: priority of READY, else the order.
 * @id: the id.
 *
 * Deleted entries stay on disk for some time, and a walk from the beginning would step
 * over each. It begins here instead.
 */
struct store_head {
	uint64_t order;
	uint64_t id;
};

/**
 * struct store_tube - what is kept in memory of a tube
 * @tube: its number.
 * @counts: jobs by state.
 * @seen: the same, as store_scan() has counted them.
 * @ready: the head of its ready jobs.
 * @buried: and of those that are buried.
 * @dirty: @counts are to be written.
 * @entry: in the tree of tubes.
 * @dirty_entry: in the list of those that are dirty.
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
 * struct store_syncer - the thread that syncs, and what it shares with that of the queue
 * @thread: it.
 * @lock: guards all that follows but what is atomic.
 * @work: there is a commit, or a flush or the end is wanted.
 * @done: something was synced.
 * @committed: the number of the last commit.
 * @changes: the number of the last change in it.
 * @flush_to: up to this commit a real sync is wanted, whatever the policy.
 * @on_disk: up to this commit all is really synced.
 * @running: there is a thread.
 * @stop: end.
 * @synced: what store_synced() tells.
 * @signalled: @event_fd is readable, or is about to be.
 * @event_fd: an eventfd.
 * @witness_fd: a file with the last change that was synced, see store_dir.c.
 * @syncs: how often; and how long.
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

	_Atomic uint64_t synced;
	_Atomic bool signalled;
	int event_fd;
	int witness_fd;
	_Atomic uint64_t syncs;
	_Atomic uint64_t sync_ns;
	_Atomic uint64_t sync_max_ns;
};

/**
 * struct store_space - room on the disk
 * @lock: guards the ballast, which two threads give up or take back.
 * @reserve: bytes that are kept for all but new jobs.
 * @ballast_fd: a file of so many bytes, which is given up when there is no other room.
 * @held: it is there.
 * @room: there is room for new jobs.
 * @deleted: jobs were deleted since that was looked at.
 * @pushing: something of them may still be there; set by the thread that sees to that, to
 *	which the next two belong.
 * @pushes: how often they were pushed down since.
 * @pushed_ns: when it was seen to that last.
 * @errors: how often RocksDB could not go on with its work.
 * @lack_s: for so many seconds the ballast is not taken back, as RocksDB had no room; with
 *	the lock.
 * @looked_ns: when it was looked last.
 * @unwritten: bytes of the log that are in memory.
 * @added: bytes that were handed to RocksDB since it was looked.
 */
struct store_space {
	pthread_mutex_t lock;
	uint64_t reserve;
	int ballast_fd;
	bool held;
	_Atomic bool deleted;
	_Atomic bool pushing;
	unsigned int pushes;
	uint64_t pushed_ns;
	uint64_t errors;
	unsigned int lack_s;
	_Atomic bool room;
	_Atomic uint64_t looked_ns;
	_Atomic uint64_t unwritten;
	_Atomic uint64_t added;
};

/**
 * struct store_scrubber - the thread that reads all of it now and then
 * @thread: it.
 * @lock: guards @stop.
 * @wake: @stop is set.
 * @running: there is a thread.
 * @stop: end.
 * @passes: how often all was read.
 * @bytes: how much was read.
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

/* Bits for ids and keys that the batch has changes of. */
#define TOUCHED_BITS	1024

struct store {
	struct store_config config;
	char *dir;
	char *db_path;
	int dir_fd;
	/* The directory had no store before. */
	bool fresh;
	/* Who opens it looks at everything. */
	bool unscanned;
	/* All of it was read when it was opened. */
	bool scanned;
	/* It is open: damage that is found now is marked; some was; and it is marked. */
	_Atomic bool served;
	_Atomic bool damaged;
	_Atomic bool marked;

	rocksdb_t *db;
	rocksdb_options_t *options;
	rocksdb_cache_t *cache;
	rocksdb_writeoptions_t *write_options;
	rocksdb_readoptions_t *read_options;
	size_t write_buffer;

	/* Changes that RocksDB has not got yet, and which ids and keys they are of. */
	rocksdb_writebatch_t *batch;
	uint64_t touched[TOUCHED_BITS / 64];
	bool pending;
	/* Jobs are deleted in it. */
	bool deletes;
	/* Something has changed since the last commit, handed over or not. */
	bool changed;
	uint64_t commits;
	/* Batches that were ever handed over: the last has written this number. */
	uint64_t changes;
	uint64_t records;
	uint64_t next_id;
	bool next_id_changed;

	struct store_tubes tubes;
	LIST_HEAD(, store_tube) dirty;
	struct store_head delayed;
	struct store_head wall;

	/* What store_get_body() gave out last. */
	rocksdb_pinnableslice_t *body;

	struct store_syncer syncer;
	struct store_scrubber scrubber;
	struct store_space space;
};

#define store_say(store, priority, ...) ((store)->config.log(priority, __VA_ARGS__))

/* store.c */
void store_hand_over(struct store *store);
void store_hand_over_id(struct store *store, uint64_t id);
void store_hand_over_key(struct store *store, uint32_t tube, const char *key, size_t len);
/* For repairs: an entry, or all that a job has but its place, is gone; a job has a place. */
void store_delete_raw(struct store *store, const void *key, size_t key_len);
void store_drop_job(struct store *store, uint64_t id);
void store_keep_job(struct store *store, const struct job_record *record);
/* Say what RocksDB says, free that, and end the process. */
void store_die(struct store *store, const char *what, const char *error)
	__attribute__((noreturn));

/*
 * store_read.c: what it returns for an error of RocksDB, which is said and freed: -EBADMSG,
 * or -EIO if that may pass. In a store that is served, damage is marked, too. Of any thread.
 */
int store_damaged(struct store *store, const char *what, char *error);
bool store_is_damage(const char *error);
void store_mark_damage(struct store *store, const char *what);
/* A number of the store's; returns as store_get(). */
int store_number(struct store *store, const char *name, uint64_t *number);
/* A tube, without counts; returns as store_get(). */
int store_get_tube(struct store *store, uint32_t tube, struct tube_record *record);

/* store_tubes.c */
int store_tubes_load(struct store *store);
void store_tubes_free(struct store *store);
/* A job has come to a place, or has left it. */
void store_tubes_enter(struct store *store, const struct job_place *place);
void store_tubes_leave(struct store *store, const struct job_place *place);
void store_tubes_forget(struct store *store, uint32_t tube);
/* Counts that have changed become part of the batch. */
void store_tubes_write(struct store *store);
struct store_head *store_head(struct store *store, const struct job_place *place);
/* An entry was seen by a scan; and do all that were agree with the counts? */
void store_tubes_see(struct store *store, const struct job_place *place);
bool store_tubes_agree(struct store *store, uint32_t *wrong);

/*
 * store_log.c: returns 0; -EBADMSG, there is damage, and it was said what; or another
 * errno. A torn end is said, and cut off if @cut_torn.
 */
int store_log_look(struct store *store, bool cut_torn);

/*
 * store_manifest.c: the number of the first log that is needed, in the directory of RocksDB's
 * files; 0 where that is not known.
 */
uint64_t store_manifest_first_log(int dir_fd);

/**
 * struct store_entry - an entry as a scan comes to it
 * @kind: the first letter of its key.
 * @sound: it could be decoded; else @job and @tube are of no use.
 * @key: its key, of @key_len bytes.
 * @value_len: how long its value is.
 * @job: 'j': the record; an entry of an index: its place; 'p', 'v': its id.
 * @tube: 't'.
 */
struct store_entry {
	char kind;
	bool sound;
	const char *key;
	size_t key_len;
	size_t value_len;
	struct job_record job;
	struct tube_record tube;
};

/* store_scan.c */
/* Every entry whose kind is @first or greater, in the order of keys. 0 or -EBADMSG. */
int store_scan_entries(struct store *store, char first,
		       bool (*each)(void *context, const struct store_entry *entry),
		       void *context);
/* The same from a key on, without what is not handed over yet: of any thread. */
int store_scan_from(struct store *store, const char *from, size_t len,
		    bool (*each)(void *context, const struct store_entry *entry), void *context);
/* Is it a sound entry of an index? */
bool store_is_place(const struct store_entry *entry);
/* Read every entry, and hold the counts against the indexes. Returns 0 or -EBADMSG. */
int store_scan(struct store *store);

/* store_repair.c: after the files were salvaged. Returns 0 or a negative errno. */
int store_repair_jobs(struct store *store);

/* store_salvage.c: a copy takes the place of db/. Returns 0 or a negative errno. */
int store_salvage(struct store *store);

/*
 * store_pieces.c: call @each while a part of the store is open, which was not to be opened as
 * a whole. Returns 0; -EBADMSG, nothing can be read; or another errno.
 */
int store_each_piece(struct store *store, void (*each)(void *context), void *context);

/* store_scrub.c */
int store_scrub_start(struct store *store);
void store_scrub_stop(struct store *store);

/* store_sync.c */
/* A condition whose time is that of CLOCK_MONOTONIC. Returns 0 or a negative errno. */
int store_monotonic_cond(pthread_cond_t *cond);
/* Its clock, and a time of it. */
uint64_t store_now_ns(void);
struct timespec store_timespec(uint64_t time_ns);
int store_sync_start(struct store *store);
void store_sync_stop(struct store *store);
void store_sync_commit(struct store *store);

/* store_space.c */
int store_space_open(struct store *store);
void store_space_close(struct store *store);
/* Look at the file system, and give the ballast up or take it back. */
void store_space_look(struct store *store);
/* Bytes of the log were handed to RocksDB, or written out: wait until they have room. */
void store_space_add(struct store *store, size_t bytes);
void store_space_write_out(struct store *store);
/* There may be room to be given back: once a second, however often a thread that may wait asks. */
void store_space_push(struct store *store);
/* Wait a little for room, which a failed write was for want of. */
void store_space_retry(struct store *store, unsigned int tries);

/* store_open.c */
/* As store_open(), for reading only; what is in it is not looked at before. */
int store_open_unscanned(struct store **store, const struct store_config *config);
/* What all that reads begins with. */
rocksdb_readoptions_t *store_make_read_options(void);

/* store_dir.c */
/* Lock the directory, and see whose it is; sets @fresh. Returns as store_open(). */
int store_dir_open(struct store *store);
/* A fresh store is made: from now on it is one. Returns 0 or a negative errno. */
int store_dir_made(struct store *store);
void store_dir_close(struct store *store);
/* Damage was found: the next to open the store is told. Returns whether that is on disk. */
bool store_dir_mark(struct store *store, const char *what);
/* Was it? Then says so, and what; @unfinished: it was a repair that did not come to its end. */
bool store_dir_is_marked(struct store *store, bool *unfinished);
void store_dir_unmark(struct store *store);
#define MARK_UNFINISHED	"a repair did not come to its end"
/* Is all there that was synced once? Returns 0 or -EBADMSG. */
int store_witness_open(struct store *store);
void store_witness_write(struct store *store, uint64_t changes);
/* What it says; 0 if it says nothing. */
uint64_t store_witness(const struct store *store);
uint64_t store_dir_bytes(struct store *store);

#endif /* TWHEELQ_STORE_INTERNAL_H */
