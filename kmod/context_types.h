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

#include "base.h"
#include "clock.h"
#include "event.h"
#include "uapi/linux/twheel.h"

/* How many commands or records are copied at a time; a context fits a page. */
#define CONTEXT_CHUNK	48

/**
 * struct context_counts - what happened to the events of a context
 * @added: how many were ever added.
 * @finished: how many of them ended by their last record being read.
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
 * struct context - one open file
 * @mutex: serialises commands and the copying-out of records; guards all up to
 *	@ready_lock.  What is set up before the first event is read without it.
 * @clock: the clock of its events.
 * @cpu: the CPU that it is bound to, or BASE_ANY_CPU.
 * @offline_count: how often that CPU had gone down when the context was bound.
 * @namespace_ns: how far the opener's clocks are ahead of the host's.
 * @max_events: how many events it may have at once.
 * @slack_ns: the least slack of an event.
 * @wake_count: how many records make it readable.
 * @wake_delay_ns: with more than one: how old a record makes it readable.
 * @nr_deadlines: how many words it shares with its process.
 * @deadlines: the words, or NULL; what refers to them is set up later than they are.
 * @map_mutex: guards @deadlines and the following; within @mutex, and for mmap(), which
 *	cannot take that one.
 * @mapped: the words were mapped, and stay what they are.
 * @events: its events, charged to the opener's account.
 * @counts: what happened to its events.
 * @keys: the keys that its operations watch; NULL before the first.
 * @nr_watches: how many watches they have.
 * @watches_charged: how many the account has been charged for.
 * @notice: tells that the clock was set.
 * @has_notice: @notice is in use.
 * @offset_ns: clock_offset_ns() when it was last known not to have been set; read
 *	without lock.
 * @used: how many events it has, or more while a batch is under way: an ADD counts at
 *	once, what ends an event when the batch is settled; read without lock.
 * @full: that is as many as it may have; read without lock.
 * @shown_seq: for those who read @shown and what a CONFIG sets without lock.
 * @shown: @counts for fdinfo, whoever holds the mutex and for however long.
 * @reading: the older part of the ready queue.
 * @ready_lock: guards the following, up to @wake_entry.
 * @ready: the younger part of the ready queue, to which expiry adds.
 * @nr_ready: how many events are READY, in both parts; read without lock.
 * @wake_at_ns: when the age of the oldest makes the context readable, on
 *	CLOCK_MONOTONIC; read without lock.
 * @nr_waiting: how many wait for a number of records of their own.
 * @waking: the context is on a wake list.
 * @wake_entry: its place there.
 * @wake_timer: set for @wake_at_ns.
 * @readers: who waits for records; woken one by one.
 * @pollers: who waits in poll() and the like.
 * @refs: one for the file, one for the wake list.
 * @nr_postponed: how often an event that came out waited on, as its word asked for.
 * @nr_locking: how many wait for @mutex.
 * @nr_turns: how often one who had to wait got it; read without lock.
 * @giving_way: who leaves @mutex to those before it goes on.
 * @cmds: room for a chunk of commands, guarded by @mutex.
 * @out: room for a chunk of records, the same room.
 * @entries: room for a chunk of a list, the same room.
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
	struct mutex map_mutex;	/* within those of the context and of an mm */
	bool mapped;
	struct event_table events;
	struct context_counts counts;
	struct rhashtable *keys;
	u64 nr_watches;
	u64 watches_charged;
	struct clock_notice notice;
	bool has_notice;
	s64 offset_ns;
	u64 used;
	bool full;
	seqcount_t shown_seq;
	struct context_counts shown;
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

	atomic_t nr_locking;
	u64 nr_turns;
	wait_queue_head_t giving_way;

	union {
		struct twheel_cmd cmds[CONTEXT_CHUNK];
		struct twheel_record out[CONTEXT_CHUNK];
		struct twheel_entry entries[CONTEXT_CHUNK];
	};
};

static inline struct context *event_context(const struct event *event)
{
	return container_of(page_of(event)->table, struct context, events);
}

/* How many events it has, for the holder of the mutex. */
static inline u64 context_used(const struct context *context)
{
	return counts_used(&context->counts);
}

#endif /* TWHEEL_CONTEXT_TYPES_H */
