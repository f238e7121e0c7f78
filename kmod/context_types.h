/* SPDX-License-Identifier: GPL-2.0 */
/*
 * struct context, which all files about contexts share.
 *
 * context.c tells the object model, the lifetimes and the locking.
 */
#ifndef TWHEEL_CONTEXT_TYPES_H
#define TWHEEL_CONTEXT_TYPES_H

#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "base_hold.h"
#include "clock.h"
#include "event.h"
#include "uapi/linux/twheel.h"

/* How many commands or records are copied at a time; so many that a context fits a page. */
#define CONTEXT_CHUNK	48

/* The same of the entries of a list, which are larger. */
#define CONTEXT_ENTRIES	42

/**
 * struct context_counts - what happened to the events of a context
 * @added: how many were ever added.
 * @finished: how many ended because their last record was read.
 * @cancelled: how many ended by being cancelled.
 * @completed: how many were ever completed.
 * @records: how many records were read.
 */
struct context_counts {
	u64 added;
	u64 finished;
	u64 cancelled;
	u64 completed;
	u64 records;
};

static inline u64 counts_used(const struct context_counts *counts)
{
	return counts->added - counts->finished - counts->cancelled;
}

/**
 * struct context_batch - a series of commands to one context, under its mutex
 * @context: the context.
 * @hold: the base that is held, if one is.
 * @wake: contexts to wake after the last spinlock was dropped.
 * @last_add: the event of the last ADD in this call; 0: none, or it failed.
 * @counts: what happened to events, up to now.
 *
 * Each context has one, because only the holder of its mutex runs commands.  Between two
 * series it is settled: it holds no base, has none to wake, and its counts are those of
 * the context.
 */
struct context_batch {
	struct context *context;
	struct base_hold hold;
	struct list_head wake;
	u64 last_add;
	struct context_counts counts;
};

/**
 * struct context - one open file
 * @mutex: serialises commands and copying records out; guards all fields up to
 *	@ready_lock.  The fields that only CONFIG changes are read without it.
 * @clock: the clock of its events.
 * @cpu: the CPU that it is bound to, or BASE_ANY_CPU.
 * @offline_count: how often that CPU had gone down when the context was bound to it.
 * @namespace_ns: how far the clocks of the opener's time namespace are ahead of the host's.
 * @max_events: how many events it may have at once.
 * @slack_ns: the least slack of an event.
 * @wake_count: how many records make it readable.
 * @wake_delay_ns: if @wake_count is more than one: the age of a record that makes it
 *	readable, too.
 * @nr_deadlines: how many words it shares with its process.
 * @deadlines: the words, or NULL; they are made before any event refers to them.
 * @map_mutex: guards @deadlines and @mapped; taken within @mutex, or by mmap(), which
 *	must not take @mutex.
 * @mapped: the words were mapped; they are not replaced any more.
 * @events: its events, charged to the opener's account.
 * @batch: the series of commands under way.
 * @counts: what had happened to its events when @batch was settled last.
 * @counts_seq: for reading @counts, and the fields that a CONFIG sets, without a lock.
 * @keys: the keys that its operations watch; NULL before the first.
 * @nr_watches: how many watches they have.
 * @watches_charged: how many watches the account has been charged for.
 * @notice: runs its work when the clock was set.
 * @has_notice: @notice is in use.
 * @nr_sets: clock_nr_sets() when @notice was begun or at the last sweep; if it differs
 *	now, the clock was set since then; read without a lock.
 * @used: how many events it has, or more while a batch is under way: an ADD is counted at
 *	once, the end of an event when the batch is settled; read without a lock.
 * @full: @used is as many as it may have; read without a lock.
 * @reading: the older part of the ready queue.
 * @ready_lock: guards the following, up to @wake_entry.
 * @ready: the younger part of the ready queue, to which expiry adds.
 * @nr_ready: how many events are READY, in both parts; read without a lock.
 * @wake_at_ns: when the age of the oldest record makes the context readable, on
 *	CLOCK_MONOTONIC; read without a lock.
 * @nr_waiting: how many tasks wait in ENTER, each for a number of records of its own.
 * @waking: the context is on a wake list.
 * @wake_entry: its place there.
 * @wake_timer: set for @wake_at_ns.
 * @readers: tasks that wait for records; woken one by one.
 * @pollers: tasks that wait in poll(), select() and epoll.
 * @refs: references: one of the file, one of the wake list that it is on.
 * @nr_postponed: how often an event came out and went back because its word had a later
 *	time.
 * @looks_since_ns: since when @nr_looks counts, on CLOCK_MONOTONIC.
 * @nr_looks: how often a base that was behind looked at the word of an event; any base
 *	writes it, with its own lock held only.
 * @nr_locking: how many tasks wait for @mutex.
 * @nr_turns: how often a task that had to wait for @mutex got it; read without a lock.
 * @poll_again: a task did not wait for @mutex, and perhaps did not get it: lock_nowait().
 * @giving_way: tasks that wait until another one has had @mutex: context_give_way().
 * @cmds: memory for a chunk of commands, guarded by @mutex.
 * @out: the same memory, for a chunk of records.
 * @entries: the same memory, for a chunk of a list.
 */
struct context {
	struct mutex mutex;	/* serialises what processes do */
	enum base_clock clock;
	unsigned int cpu;
	unsigned int offline_count;
	s64 namespace_ns[BASE_CLOCKS];
	u64 max_events;
	u64 slack_ns;
	u32 wake_count;
	u64 wake_delay_ns;
	u32 nr_deadlines;
	struct deadlines *deadlines;
	struct mutex map_mutex;	/* order of locks: HACKING.md */
	bool mapped;
	struct event_table events;
	struct context_batch batch;
	struct context_counts counts;
	seqcount_t counts_seq;
	struct rhashtable *keys;
	u64 nr_watches;
	u64 watches_charged;
	struct clock_notice notice;
	bool has_notice;
	unsigned long nr_sets;
	u64 used;
	bool full;
	struct list_head reading;

	raw_spinlock_t ready_lock;
	struct list_head ready;
	u64 nr_ready;
	u64 wake_at_ns;
	unsigned int nr_waiting;
	bool waking;
	struct list_head wake_entry;

	struct hrtimer wake_timer;
	wait_queue_head_t readers;
	wait_queue_head_t pollers;
	refcount_t refs;
	atomic64_t nr_postponed;
	u64 looks_since_ns;
	u32 nr_looks;

	atomic_t nr_locking;
	unsigned int poll_again;
	u64 nr_turns;
	wait_queue_head_t giving_way;

	union {
		struct twheel_cmd cmds[CONTEXT_CHUNK];
		struct twheel_record out[CONTEXT_CHUNK];
		struct twheel_entry entries[CONTEXT_ENTRIES];
	};
};

static_assert(CONTEXT_ENTRIES * sizeof(struct twheel_entry) <=
	      CONTEXT_CHUNK * sizeof(struct twheel_cmd));

static inline struct context *event_context(const struct event *event)
{
	return container_of(page_of(event)->table, struct context, events);
}

#endif /* TWHEEL_CONTEXT_TYPES_H */
