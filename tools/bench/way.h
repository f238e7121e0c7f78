/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ways in which a process can have timers, with the same functions for all.
 *
 * A set has timers that are numbered from 0.  Their times are absolute, on
 * CLOCK_MONOTONIC.  All functions take many timers at once, use as few system calls as
 * possible, and count these.  An error ends the program.
 */
#ifndef _WAY_H
#define _WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct way;

/**
 * struct set - timers of one way
 * @way: the way.
 * @nr: the number of timers.
 * @calls: the number of system calls of arm() and the other functions.
 * @told_ns: the time at which collect() learned which timers are due; 0: when it returned.
 * @due_ns: the due time of each timer, which collect() checks; NULL: no check.
 */
struct set {
	const struct way *way;
	__u32 nr;
	__u64 calls;
	__u64 told_ns;
	const __u64 *due_ns;
};

/* Some timers and their due times.  @due_ns is NULL for functions that do not need it. */
struct timers {
	const __u32 *timer;
	const __u64 *due_ns;
	__u32 nr;
};

/**
 * struct way - a way to have timers
 * @name: its name in results.
 * @variant: the name of the variant in results, or NULL.
 * @text: both, for people.
 * @batch: the number of timers of one system call; 0 if each timer needs its own call.
 * @private: more data of the variant.
 * @most: the number of timers above which it takes too long.
 * @why: what takes too long then.
 * @delivers: false if another variant collects in the same way.
 * @lacks: returns why this kernel does not have it, or NULL; may be NULL itself.
 * @open: make a set, with no timer armed.
 * @close: free a set.
 * @arm: arm timers that are not armed.
 * @cancel: disarm timers that are armed.
 * @rearm: give armed timers another time.
 * @query: read the due times of timers; NULL if the way cannot.
 * @collect: return some timers that are due, at most @room; with @wait, at least one.
 *	They are not armed any more.
 * @looks: returns how often the kernel has checked since then whether a timer was moved,
 *	for ways in which this check is nearly all of the cost of a move.  It ends the
 *	program if a timer has expired.  NULL: a move is complete when @rearm returns.
 */
struct way {
	const char *name;
	const char *variant;
	const char *text;
	__u32 batch;
	const void *private;
	__u32 most;
	const char *why;
	bool delivers;

	const char *(*lacks)(void);
	struct set *(*open)(const struct way *way, __u32 nr);
	void (*close)(struct set *set);
	void (*arm)(struct set *set, const struct timers *timers);
	void (*cancel)(struct set *set, const struct timers *timers);
	void (*rearm)(struct set *set, const struct timers *timers);
	void (*query)(struct set *set, const struct timers *timers);
	__u32 (*collect)(struct set *set, __u32 *timers, __u32 room, bool wait);
	__u64 (*looks)(struct set *set);
};

extern const struct way way_submit_1, way_submit_32, way_submit_256;
extern const struct way way_enter_256, way_uring_256;
extern const struct way way_deadline, way_deadline_slack;
extern const struct way way_timerfd, way_posix, way_uring, way_heap;

/* All ways, then NULL. */
extern const struct way *const ways[];

/* NAME.VARIANT, or NAME without a variant, in a static buffer. */
const char *way_name(const struct way *way);

/* The timerfd of a heap for an event loop, and the function to call when it is readable. */
int heap_file(const struct set *set);
void heap_fired(struct set *set);

/* The maximum number of timers of one collect(). */
#define COLLECT_MAX	256

/* Raise the limits that @nr timers need: of files, signals and watches. */
void raise_limits(__u32 nr);

#endif /* _WAY_H */
