/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For other kernel modules: tick-exact timers, O(1) to arm and to cancel, and delayed
 * operations, which end when a condition is true or when their time comes.
 *
 * Timers
 * ------
 * A timer is embedded in its owner's structure, set up once, and then armed,
 * modified and cancelled from any context except NMI.  Its function runs in
 * softirq context, never before the time asked for and never twice at the same time;
 * it may arm its timer again, or free it.
 *
 * Times are in nanoseconds on CLOCK_MONOTONIC.  A timer can have slack, so that it
 * shares a tick with other timers.  Nothing here allocates memory.  The owner frees the
 * timer's memory: after twheel_timer_shutdown(), or in the timer's own function, which
 * must not use it afterwards.
 *
 * Operations
 * ----------
 * An operation waits until its try_complete() returns true, or until its time comes.  It
 * watches keys; whenever one of them is checked, try_complete() is called.  At the end,
 * one function of the owner is called, once: on_complete() or on_expiration().
 *
 *	waiting side				changing side
 *	------------				-------------
 *	twheel_try_complete_else_watch():	change the state
 *	    asks, watches, asks again		twheel_check_and_complete(key)
 *
 * The operation is asked again after it watches, so that no change in between is lost.
 * The owner frees the operation's memory after twheel_operation_cancel_sync(), or in
 * on_complete() or on_expiration(); these may also use it again at once.
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
 * struct twheel_node - the place of a timer or event on a wheel
 * @wheel: its place on a wheel.
 * @base: the number of the base whose lock guards it.
 * @flags: bits 6 and 7: NODE_DEADLINE, NODE_EVENT; the others are for the owner.
 * @state: for the owner.
 * @tag: for the owner.
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
 * @function: the function to call when it expires, in softirq context, with interrupts
 *	enabled and none of twheel's locks held.
 * @postponed_ns: private: the time that twheel_timer_postpone() stored, or 0.
 */
struct twheel_timer {
	struct twheel_node node;
	void (*function)(struct twheel_timer *timer);
	atomic64_t postponed_ns;
#ifdef CONFIG_LOCKDEP
	/* private: held while @function is called, and to wait for it */
	struct lockdep_map lockdep_map;
#endif
};

/* The meaning of the time that twheel_timer_arm() gets. */
#define TWHEEL_TIMER_REL	0	/* relative to now */
#define TWHEEL_TIMER_ABS	1	/* absolute, as ktime_get_ns() counts */

void twheel_timer_init(struct twheel_timer *timer,
		       void (*function)(struct twheel_timer *timer),
		       const char *name, struct lock_class_key *key);

/**
 * twheel_timer_setup() - prepare a timer for its first use
 * @timer: the timer, in memory that stays until twheel_timer_shutdown().
 * @function: the function to call when it expires; in softirq context, with interrupts
 *	enabled.
 *
 * It is a macro, so that lockdep can distinguish the timers of different owners by the
 * place where they are set up: lockdep complains when an owner waits for a function with
 * a lock held that the function takes.
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
 * struct twheel_operation_ops - the functions of an owner of operations
 * @try_complete: is the condition of the operation true?  Called when it begins to
 *	wait and when a key that it watches is checked, never twice at the same time.  If
 *	it returns true, on_complete() is called next.  It must not wait for the operation
 *	to end, nor check a key that the operation watches.
 * @on_complete: the condition was true, or twheel_operation_complete() was called.
 * @on_expiration: the operation's time came first.
 *
 * All are called with none of twheel's locks held, by the function that checks, completes
 * or begins to wait, or in softirq context: so they must not sleep.  The last two may
 * free the operation, or let it wait again.  If they check keys, the functions of the
 * operations that this completes are called from there, on the same stack.
 */
struct twheel_operation_ops {
	bool (*try_complete)(struct twheel_operation *operation);
	void (*on_complete)(struct twheel_operation *operation);
	void (*on_expiration)(struct twheel_operation *operation);
};

/**
 * struct twheel_registry - keys, and the operations that watch them
 * @lock: private, like all fields.
 * @keys: the keys that are watched.
 * @checks: how many times a watched key was checked.
 * @calls: the calls of owners' functions that are in progress.
 * @quiet: tasks that wait for the end of these calls.
 */
struct twheel_registry {
	spinlock_t lock;	/* guards the other fields, and the operations */
	struct rhashtable keys;
	u64 checks;
	struct list_head calls;
	wait_queue_head_t quiet;
};

/**
 * struct twheel_watcher - the watches of one operation
 * @watches: the watches.
 * @nr_watches: how many there are.
 *
 * A part of operations and of events; not for users of this header.
 */
struct twheel_watcher {
	struct list_head watches;
	unsigned int nr_watches;
};

/**
 * struct twheel_operation - a delayed operation
 * @timer: private, like all fields: expires when its time comes.
 * @registry: the registry of the keys that it watches.
 * @ops: its owner's functions.
 * @watcher: its watches.
 * @state: its state: operation.c.
 * @verdict: how it ends if try_complete(), which is being called, returns false.
 * @asking: try_complete() is being called.
 * @again: try_complete() must be called once more.
 * @armed: the timer's function will still use the operation.
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
