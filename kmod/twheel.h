/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For other kernel modules: timers, tick-exact, O(1) to arm and to cancel, and
 * delayed operations, which end when a condition holds or at their time.
 *
 * Timers
 * ------
 * A timer is embedded in its owner's structure, set up once, and then armed,
 * modified and cancelled from any context except NMI.  Its function runs in
 * softirq context, never before the time asked for and never twice at once; it
 * may arm its timer again, or free it.
 *
 * Times are in nanoseconds on CLOCK_MONOTONIC.  A timer may be given slack, so
 * that its tick becomes one that neighbours share.  Nothing here allocates memory.
 * The owner frees the timer's memory, after twheel_timer_shutdown() or in the
 * timer's own function as the last thing done with it.
 *
 * Operations
 * ----------
 * An operation waits until its try_complete() says that what it waits for holds,
 * or until its time.  It watches keys, and is asked whenever one of them is
 * checked.  Then one function of its owner's is called, once: on_complete() or
 * on_expiration().
 *
 *	who waits				who changes something
 *	---------				---------------------
 *	twheel_try_complete_else_watch()	change it
 *	    asks, watches, asks again		twheel_check_and_complete(key)
 *
 * Asking again after it watches is what makes a change between the two safe.  The
 * owner frees the operation's memory, after twheel_operation_cancel_sync() or in
 * on_complete() or on_expiration(), where it may also be used again at once.
 */
#ifndef TWHEEL_H
#define TWHEEL_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/lockdep_types.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "wheel.h"

/**
 * struct twheel_node - where something that waits is
 * @wheel: its place on a wheel.
 * @base: which base's lock guards it.
 * @flags: what it is a part of; the rest is its owner's.
 * @state: its owner's.
 * @tag: its owner's.
 *
 * A part of timers and of events; not for users of this header.
 */
struct twheel_node {
	struct wheel_node wheel;
	u16 base;
	u8 flags;
	u8 state;
	u32 tag;
};

/**
 * struct twheel_timer - a timer
 * @node: private.
 * @function: what to call when it expires, in softirq context, with no lock of
 *	ours held and interrupts on.
 * @postponed_ns: private: what twheel_timer_postpone() stored, or 0.
 */
struct twheel_timer {
	struct twheel_node node;
	void (*function)(struct twheel_timer *timer);
	atomic64_t postponed_ns;
#ifdef CONFIG_LOCKDEP
	/* private: held around @function, and by who waits for it */
	struct lockdep_map lockdep_map;
#endif
};

/* How to understand the time given to twheel_timer_arm(). */
#define TWHEEL_TIMER_REL	0	/* from now */
#define TWHEEL_TIMER_ABS	1	/* as ktime_get_ns() counts */

void twheel_timer_init(struct twheel_timer *timer,
		       void (*function)(struct twheel_timer *timer),
		       const char *name, struct lock_class_key *key);

/**
 * twheel_timer_setup() - prepare a timer for its first use
 * @timer: the timer, in memory that stays until twheel_timer_shutdown().
 * @function: what to call when it expires; in softirq context, interrupts on.
 *
 * A macro, so that lockdep knows the timers of different owners apart, by the place
 * where they are set up: it complains when an owner waits for a function with a lock
 * held that the function takes.
 *
 * Context: any.
 */
#define twheel_timer_setup(timer, function)				\
	do {								\
		static struct lock_class_key twheel_timer_key;		\
									\
		twheel_timer_init(timer, function, #timer,		\
				  &twheel_timer_key);			\
	} while (0)

int twheel_timer_arm(struct twheel_timer *timer, u64 time_ns, u64 slack_ns,
		     unsigned int flags);
int twheel_timer_modify(struct twheel_timer *timer, u64 time_ns, u64 slack_ns,
			unsigned int flags);
bool twheel_timer_cancel(struct twheel_timer *timer);
bool twheel_timer_cancel_sync(struct twheel_timer *timer);
bool twheel_timer_shutdown(struct twheel_timer *timer);
bool twheel_timer_pending(struct twheel_timer *timer);
void twheel_timer_postpone(struct twheel_timer *timer, u64 time_ns);

/* The most keys that an operation may watch. */
#define TWHEEL_OPERATION_KEYS	64

struct twheel_operation;

/**
 * struct twheel_operation_ops - what an owner does with its operations
 * @try_complete: does what the operation waits for hold?  Called when it begins to
 *	wait and when a key that it watches is checked, never twice at once.  When
 *	it says yes, on_complete() follows.  Must not wait for the operation to
 *	end, nor check a key that the operation watches.
 * @on_complete: it held, or twheel_operation_complete() was called.
 * @on_expiration: the operation's time came first.
 *
 * All are called with no lock of ours held, from whoever checks, completes or
 * begins to wait, or in softirq context: so they must not sleep.  The last two may
 * free the operation, or let it wait again; if they check keys, what that completes
 * is called from there, on the same stack.
 */
struct twheel_operation_ops {
	bool (*try_complete)(struct twheel_operation *operation);
	void (*on_complete)(struct twheel_operation *operation);
	void (*on_expiration)(struct twheel_operation *operation);
};

/**
 * struct twheel_registry - keys, and the operations that watch them
 * @lock: private, as all of it.
 * @keys: the keys that are watched.
 * @checks: how many checks there were of keys that were watched.
 * @calls: calls of owners' functions that are under way.
 * @quiet: who waits for them.
 */
struct twheel_registry {
	spinlock_t lock;	/* guards all below, and the operations */
	struct rhashtable keys;
	u64 checks;
	struct list_head calls;
	wait_queue_head_t quiet;
};

/**
 * struct twheel_watcher - the watches of one operation
 * @watches: these.
 * @nr_watches: how many they are.
 *
 * A part of operations and of events; not for users of this header.
 */
struct twheel_watcher {
	struct list_head watches;
	unsigned int nr_watches;
};

/**
 * struct twheel_operation - a delayed operation
 * @timer: private, as all of it: for its time.
 * @registry: where the keys are that it watches.
 * @ops: its owner's functions.
 * @watcher: its watches.
 * @state: where it is in its life.
 * @verdict: how it ends if try_complete(), which is being called, says no.
 * @asking: try_complete() is being called.
 * @again: it must be called once more.
 * @armed: the timer's function will still look at the operation.
 */
struct twheel_operation {
	struct twheel_timer timer;
	struct twheel_registry *registry;
	const struct twheel_operation_ops *ops;
	struct twheel_watcher watcher;
	u8 state;
	u8 verdict;
	bool asking;
	bool again;
	bool armed;
};

int twheel_registry_init(struct twheel_registry *registry);
void twheel_registry_destroy(struct twheel_registry *registry);
void twheel_operation_setup(struct twheel_operation *operation,
			    struct twheel_registry *registry,
			    const struct twheel_operation_ops *ops);
int twheel_try_complete_else_watch(struct twheel_operation *operation,
				   const u64 *keys, unsigned int nr_keys,
				   u64 time_ns, u64 slack_ns, unsigned int flags);
unsigned int twheel_check_and_complete(struct twheel_registry *registry, u64 key);
bool twheel_operation_complete(struct twheel_operation *operation);
bool twheel_operation_cancel_sync(struct twheel_operation *operation);

#endif /* TWHEEL_H */
