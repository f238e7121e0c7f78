/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ways in which a process can have timers, all behind the same few functions.
 *
 * A set has timers that are numbered from 0.  Their times are absolute, on
 * CLOCK_MONOTONIC.  All functions take many timers at once and use as few system calls
 * as the way needs for them, which they count.  What goes wrong ends the program.
 */
#ifndef _WAY_H
#define _WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct way;

/**
 * struct set - timers of one way
 * @way: how they are made.
 * @nr: how many there are.
 * @calls: how many system calls arm() and the others have made.
 * @told_ns: when collect() has learned which timers are due; 0: when it returned.
 * @due_ns: the time asked for of each timer, for collect() to check; NULL: nobody asks.
 */
struct set {
	const struct way *way;
	__u32 nr;
	__u64 calls;
	__u64 told_ns;
	const __u64 *due_ns;
};

/* Which timers, and when each is due; without @due_ns where that does not matter. */
struct timers {
	const __u32 *timer;
	const __u64 *due_ns;
	__u32 nr;
};

/**
 * struct way - a way to have timers
 * @name: what it is called in the names of results.
 * @variant: how it is used, or NULL.
 * @text: both, for people.
 * @batch: how many timers go with one system call; 0 where each needs its own.
 * @private: what else the way knows of its variant.
 * @most: with more timers than these it takes too long.
 * @why: what does.
 * @delivers: false where another variant collects in the same way.
 * @lacks: why this kernel has it not, or NULL; may be NULL itself.
 * @open: make a set, with no timer armed.
 * @close: free it.
 * @arm: arm timers that are not armed.
 * @cancel: disarm timers that are armed.
 * @rearm: give timers that are armed another time.
 * @query: ask when timers are due; NULL where a set cannot tell.
 * @collect: tell some timers that are due, at most @room; with @wait, at least one.
 *	They are not armed any more.
 * @looks: how often the kernel has looked since whether a timer was moved, of a way that
 *	has nearly all of the work then, and not when it is moved: so only that which
 *	waits for it tells what a move costs.  It ends the program if a timer has expired.
 *	NULL: a move is done when @rearm returns.
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

/* All of them, up to a NULL. */
extern const struct way *const ways[];

/* NAME.VARIANT, or NAME where there is none; in memory of this function's. */
const char *way_name(const struct way *way);

/* A heap's timerfd, for an event loop, and what that does when it is readable. */
int heap_file(const struct set *set);
void heap_fired(struct set *set);

/* How many timers one call of collect() can tell. */
#define COLLECT_MAX	256

/* Get used to limits that are in the way of @nr timers: files, signals, watches. */
void raise_limits(__u32 nr);

#endif /* _WAY_H */
