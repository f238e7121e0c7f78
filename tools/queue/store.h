/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs on disk: RocksDB, and a thread that syncs its log for many commands at once.
 *
 * The thread of the queue makes changes, which go to RocksDB's memory and the buffer of its
 * log, and are seen by all that reads afterwards. A change has a number. The store's own
 * thread writes the log out and syncs it, again and again while there is something new, and
 * store_synced() tells up to which number all is on disk: a reply that promises something
 * waits for that. With another policy than SYNC_ALWAYS it tells what was written out, which
 * outlives this process but not the machine.
 *
 * Nothing here waits for a sync but store_flush() and store_close(). An error that leaves
 * the store in doubt (EIO of the log) ends the process, loudly: what was not promised yet is
 * not promised then.
 *
 * The store counts jobs by tube and state, and writes the counts with the changes.
 */
#ifndef TWHEELQ_STORE_H
#define TWHEELQ_STORE_H

#include <stdio.h>
#include "record.h"

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
 * @repair: go on without what is damaged, and say what that was.
 * @sync: when changes are synced.
 * @sync_interval_ns: SYNC_INTERVAL: how often.
 * @memory: bytes for buffers and caches, at least 8 MiB.
 * @reserve: bytes of the disk that are kept for all but new jobs; 0: the lesser of 128 MiB and
 *	a quarter of the file system.
 * @scrub_interval_ns: how often all is read in the background, to find damage; 0: never.
 * @log: where to say what was found (a torn tail that was cut, damage); a line each.
 *	The store's own threads call it, too.
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
	uint64_t scrub_interval_ns;
	void (*log)(int priority, const char *format, ...)
		__attribute__((format(printf, 2, 3)));
};

/*
 * Open a store. Returns 0; -ENOENT, there is none; -EBUSY, another process has it;
 * -EPROTO, it is of a newer version, or something else's; -EBADMSG, it is damaged;
 * another errno. @config->log was told more.
 */
int store_open(struct store **store, const struct store_config *config);

/* Sync, and close. */
void store_close(struct store *store);

/* --- changes ------------------------------------------------------------------------ */

/*
 * Each of these is whole or not at all, together with all others that follow it until
 * store_commit() is called or something is read: reading hands over what was changed before
 * it, and so may store_put(), which is the first change to a job in its command. So a command
 * first reads, and then makes its changes with nothing read in between;
 * many commands may share a commit. They cannot fail: what has no room is found before, by
 * store_has_room(); a disk that cannot be written ends the process with status 74.
 */

/*
 * A new job: record, body, its entry in the index and, if it has a key, that; its id is
 * new, and the tube has no other job with the key.
 */
void store_put(struct store *store, const struct job_record *record, const void *body);

/*
 * A job goes from @old, where it is now, to the place of @record, and its record is this.
 * A mark of it is gone. A key that @record has not any more, or takes to another tube, is
 * the caller's to drop, with store_drop_key() after this; to another one a key does not go
 * with store_move().
 */
void store_move(struct store *store, const struct job_place *old,
		const struct job_record *record);

/* The body of a job is another one; its record follows with store_move(). */
void store_replace_body(struct store *store, uint64_t id, const void *body, size_t len);

/* A job, its body, its entry, its mark and, if there is one, its @key are gone. */
void store_delete(struct store *store, const struct job_place *old, const char *key,
		  size_t key_len);

/* The job is reserved: after a restart it will be known that it was. */
void store_mark(struct store *store, uint64_t id);

void store_drop_key(struct store *store, uint32_t tube, const char *key, size_t len);

/* A tube is new, or has another policy; counts are the store's and are ignored. */
void store_put_tube(struct store *store, const struct tube_record *record);

/* A tube without jobs and policy is gone. */
void store_delete_tube(struct store *store, uint32_t tube);

/* A number that is kept under a name of at most 16 letters, such as "clock". */
void store_put_number(struct store *store, const char *name, uint64_t number);

/*
 * All changes so far are one: they are on disk whole or not at all. Returns their number,
 * which grows. Called once or more often a turn of the loop; cheap if nothing has changed.
 */
uint64_t store_commit(struct store *store);

/*
 * The number that changes made now will have, from the commit that follows them. Of use only
 * to who has changed something: while nothing is changed, this number does not come.
 */
uint64_t store_seq(const struct store *store);

/* The number of the last change that was made: when it is synced, all that can be read is. */
uint64_t store_last(const struct store *store);

/* Up to which number all is on disk; and a file that is readable when this has grown. */
uint64_t store_synced(struct store *store);
int store_fd(const struct store *store);

/* Wait until everything is on disk. */
void store_flush(struct store *store);

/*
 * Is there room for new jobs? If not, because the disk has less than the reserve, puts are
 * to be refused; all else goes on, in what is kept for it. Looks at the file system now
 * and then, not each time.
 */
bool store_has_room(struct store *store);

/* --- reading ------------------------------------------------------------------------- */

/*
 * They see all changes before them. -EBADMSG: what was read is damaged, which @log was
 * told; nothing of it is given out, and the store opens only with @repair from then on. -EIO:
 * it cannot be read now, for want of files or memory.
 */

/* Returns 0; -ENOENT, there is no such job; -EBADMSG. */
int store_get(struct store *store, uint64_t id, struct job_record *record);

/*
 * The body, in memory of the store's until the next call of it. Returns as store_get().
 */
int store_get_body(struct store *store, uint64_t id, const void **body, size_t *len);

/* The job with a key in a tube. Returns as store_get(). */
int store_get_key(struct store *store, uint32_t tube, const char *key, size_t len,
		  uint64_t *id);

/* Returns @missing if there is none. */
uint64_t store_get_number(struct store *store, const char *name, uint64_t missing);

/* Greater than any id that was ever put. */
uint64_t store_next_id(const struct store *store);

/* Call @each for every tube, with its counts, until it returns false. */
int store_each_tube(struct store *store,
		    bool (*each)(void *context, const struct tube_record *record),
		    void *context);

/* Call @each for every job that has a mark and an id after @after_id, until it returns false. */
int store_each_mark(struct store *store, uint64_t after_id,
		    bool (*each)(void *context, uint64_t id), void *context);

/* Jobs by tube and state, as they are now. */
const struct tube_counts *store_counts(struct store *store, uint32_t tube);

/*
 * Jobs in the order of an index, from the place @from on (which need not be there; its id
 * and order, or priority, count): READY and BURIED of one tube, DELAYED and WALL of all.
 * @each returns false to end. What it changes is not seen by the walk.
 */
int store_walk(struct store *store, const struct job_place *from,
	       bool (*each)(void *context, const struct job_place *place), void *context);

/*
 * Delayed jobs of one tube, that of @from, whose state is DELAYED or WALL: as store_walk().
 */
int store_walk_tube(struct store *store, const struct job_place *from,
		    bool (*each)(void *context, const struct job_place *place),
		    void *context);

/* Backwards, from the last place that is before or at @from. */
int store_walk_back(struct store *store, const struct job_place *from,
		    bool (*each)(void *context, const struct job_place *place),
		    void *context);

/* --- what it takes -------------------------------------------------------------------- */

/**
 * struct store_stats - for stats and metrics
 * @changes: records written since it was opened.
 * @syncs: how often the log was synced.
 * @sync_ns: how long that took in all.
 * @sync_max_ns: the longest.
 * @disk_bytes: what the directory takes, but for the reserve.
 * @free_bytes: what the file system has left.
 * @memory_bytes: what buffers and caches take.
 * @scrubs: how often all was read in the background.
 * @scrubbed_bytes: what was read then.
 * @damaged: 1 if damage was found since it was opened.
 */
struct store_stats {
	uint64_t changes;
	uint64_t syncs;
	uint64_t sync_ns;
	uint64_t sync_max_ns;
	uint64_t disk_bytes;
	uint64_t free_bytes;
	uint64_t memory_bytes;
	uint64_t scrubs;
	uint64_t scrubbed_bytes;
	uint64_t damaged;
};

void store_stats(struct store *store, struct store_stats *stats);

/* --- for people ----------------------------------------------------------------------- */

/*
 * Read everything, and hold it against itself: blocks, records, indexes, keys, counts.
 * Says what is wrong, a line each, to @out; returns how much is wrong, or a negative errno.
 */
int store_check(const struct store_config *config, FILE *out);

/*
 * Write each job to @out as a line of JSON, see store_dump.c; the other way round. Loading
 * changes nothing if there is anything wrong with a line, which @log is told; -EINVAL then.
 * Jobs keep their ids, which must be free. Return 0 or a negative errno.
 */
int store_dump(const struct store_config *config, FILE *out);
int store_load(const struct store_config *config, FILE *in);

#endif /* TWHEELQ_STORE_H */
