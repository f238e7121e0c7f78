// SPDX-License-Identifier: GPL-2.0
/*
 * Timers by a binary heap in the process and one timerfd, as in libraries for event loops.
 * An entry has 16 bytes.  Each timer has the index of its entry, so that it can be
 * cancelled.  The timerfd is set when the earliest time becomes earlier, and after it has
 * fired.  Only one thread may use a heap, as with these libraries.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "way.h"

struct entry {
	__u64 due_ns;
	__u32 timer;
	__u32 unused;
};

/**
 * struct heap_set - a heap
 * @set: the set.
 * @entries: the heap, with @nr entries.
 * @places: the index of each timer's entry.
 * @nr: the number of armed timers.
 * @fd: the timerfd.
 * @set_ns: the time it is set to, or ~0.
 */
struct heap_set {
	struct set set;
	struct entry *entries;
	__u32 *places;
	__u32 nr;
	int fd;
	__u64 set_ns;
};

static struct heap_set *heap(struct set *set)
{
	return (struct heap_set *)set;
}

/* --- the heap --------------------------------------------------------------- */

static void put(struct heap_set *set, __u32 place, struct entry entry)
{
	set->entries[place] = entry;
	set->places[entry.timer] = place;
}

static void sift_up(struct heap_set *set, __u32 place, struct entry entry)
{
	while (place) {
		__u32 parent = (place - 1) / 2;

		if (set->entries[parent].due_ns <= entry.due_ns)
			break;
		put(set, place, set->entries[parent]);
		place = parent;
	}
	put(set, place, entry);
}

static void sift_down(struct heap_set *set, __u32 place, struct entry entry)
{
	for (;;) {
		__u32 child = 2 * place + 1;

		if (child >= set->nr)
			break;
		if (child + 1 < set->nr && set->entries[child + 1].due_ns <
					   set->entries[child].due_ns)
			child++;
		if (entry.due_ns <= set->entries[child].due_ns)
			break;
		put(set, place, set->entries[child]);
		place = child;
	}
	put(set, place, entry);
}

/* Overwrite the entry at @place, and move the new one to its place in the heap. */
static void replace(struct heap_set *set, __u32 place, struct entry entry)
{
	if (place && entry.due_ns < set->entries[(place - 1) / 2].due_ns)
		sift_up(set, place, entry);
	else
		sift_down(set, place, entry);
}

static void take_out(struct heap_set *set, __u32 place)
{
	struct entry last = set->entries[--set->nr];

	if (place != set->nr)
		replace(set, place, last);
}

/* --- the timerfd ------------------------------------------------------------ */

static void set_timerfd(struct heap_set *set)
{
	struct itimerspec time = {};

	set->set_ns = set->entries[0].due_ns;
	time.it_value = to_timespec(set->set_ns);
	if (timerfd_settime(set->fd, TFD_TIMER_ABSTIME, &time, NULL))
		err(1, "timerfd_settime");
	set->set.calls++;
}

static void look_at_first(struct heap_set *set)
{
	if (set->nr && set->entries[0].due_ns < set->set_ns)
		set_timerfd(set);
}

/* --- the functions of a way ------------------------------------------------- */

static void heap_arm(struct set *of, const struct timers *timers)
{
	struct heap_set *set = heap(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		sift_up(set, set->nr++, (struct entry){
			.due_ns = timers->due_ns[i],
			.timer = timers->timer[i],
		});
	look_at_first(set);
}

static void heap_cancel(struct set *of, const struct timers *timers)
{
	struct heap_set *set = heap(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		take_out(set, set->places[timers->timer[i]]);
}

static void heap_rearm(struct set *of, const struct timers *timers)
{
	struct heap_set *set = heap(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		replace(set, set->places[timers->timer[i]], (struct entry){
			.due_ns = timers->due_ns[i],
			.timer = timers->timer[i],
		});
	look_at_first(set);
}

/* The timerfd may have fired for a timer that was cancelled or moved. */
static void read_timerfd(struct heap_set *set)
{
	__u64 count;

	if (read(set->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		err(1, "read of the timerfd");
	set->set.calls++;
	set->set_ns = ~0ULL;
}

int heap_file(const struct set *set)
{
	return ((const struct heap_set *)set)->fd;
}

void heap_fired(struct set *set)
{
	read_timerfd(heap(set));
	look_at_first(heap(set));
}

static __u32 take_due(struct heap_set *set, __u32 *timers, __u32 room)
{
	__u64 now = clock_ns();
	__u32 nr = 0;

	while (nr < room && set->nr && set->entries[0].due_ns <= now) {
		timers[nr++] = set->entries[0].timer;
		take_out(set, 0);
	}
	return nr;
}

static __u32 heap_collect(struct set *of, __u32 *timers, __u32 room, bool wait)
{
	struct heap_set *set = heap(of);
	struct pollfd poll_fd = { .fd = set->fd, .events = POLLIN };
	__u32 nr = take_due(set, timers, room);

	while (!nr && wait) {
		of->calls++;
		if (poll(&poll_fd, 1, -1) != 1)
			err(1, "poll");
		read_timerfd(set);
		nr = take_due(set, timers, room);
		look_at_first(set);
	}
	return nr;
}

static struct set *heap_open(const struct way *way, __u32 nr)
{
	struct heap_set *set = bench_alloc(1, sizeof(*set));

	set->set.way = way;
	set->set.nr = nr;
	set->entries = bench_alloc(nr, sizeof(*set->entries));
	set->places = bench_alloc(nr, sizeof(*set->places));
	set->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (set->fd < 0)
		err(1, "timerfd_create");
	set->set_ns = ~0ULL;
	return &set->set;
}

static void heap_close(struct set *of)
{
	struct heap_set *set = heap(of);

	close(set->fd);
	free(set->entries);
	free(set->places);
	free(set);
}

const struct way way_heap = {
	.name = "heap",
	.text = "heap, one timerfd",
	.most = ~0U,
	.delivers = true,
	.open = heap_open,
	.close = heap_close,
	.arm = heap_arm,
	.cancel = heap_cancel,
	.rearm = heap_rearm,
	.collect = heap_collect,
};
