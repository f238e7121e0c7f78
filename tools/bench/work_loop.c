// SPDX-License-Identifier: GPL-2.0
/*
 * Measures an event loop with 100 sockets and 10,000 timers, which are like timeouts of
 * connections: nearly all are moved before they fire.
 *
 * In each turn some sockets are readable, and each of these moves ten timers to a later
 * time.  One timer in a hundred is moved to an early time instead, and fires.  Fired timers
 * are armed again in the next turn.  The figures are the system calls of a turn, without
 * the read() of each socket, and the cost of a turn, with these.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"
#include "work.h"

#define SOCKETS		100
#define TIMERS		10000
#define SERVED		10	/* sockets in a turn */
#define MOVED		10	/* timers for each of them */
#define FIRES_OF	100	/* one in this number is moved to soon */
#define SOON_NS		1000000ULL

/* The data of an epoll event: a timer, a socket, or the file of all timers. */
#define FIRST_SOCKET	TIMERS
#define TIMERS_FILE	(TIMERS + SOCKETS)

struct design;

/**
 * struct loop - an event loop
 * @design: its way to have timers.
 * @epoll: the epoll file.
 * @served: the sockets that it serves.
 * @clients: the other ends of these.
 * @calls: system calls so far.
 * @fired: timers that have fired so far.
 * @armed: which timers are armed.
 * @change: the timers to be moved or armed in this turn, @nr of them.
 * @due_ns: when they are due.
 * @later: those that have fired, to be armed in the next turn.
 * @nr_later: the number of these.
 * @fd: ours: the device; heap: the timerfd is the set's.
 * @ids: ours: of each timer.
 * @fds: timerfd: of each timer.
 * @set: heap: the timers.
 */
struct loop {
	const struct design *design;
	int epoll;
	int served[SOCKETS];
	int clients[SOCKETS];
	__u64 calls;
	__u64 fired;
	bool armed[TIMERS];
	__u32 change[BATCH_MAX];
	__u64 due_ns[BATCH_MAX];
	__u32 nr;
	__u32 later[BATCH_MAX];
	__u32 nr_later;

	int fd;
	__u64 ids[TIMERS];
	int fds[TIMERS];
	struct set *set;
};

/**
 * struct design - a way for an event loop to have timers
 * @name: its name in results.
 * @text: its name for people.
 * @open: make the timers, and add their files to epoll.
 * @close: free the timers.
 * @ready: handle an epoll event of a timer or of the file of all timers.
 * @change: arm or move the timers to be changed, and collect those that have fired.
 */
struct design {
	const char *name;
	const char *text;
	void (*open)(struct loop *loop);
	void (*close)(struct loop *loop);
	void (*ready)(struct loop *loop, __u32 timer);
	void (*change)(struct loop *loop);
};

static void epoll_add(struct loop *loop, int fd, __u32 what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = what };

	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

static void put_change(struct loop *loop, __u32 timer, __u64 due_ns)
{
	if (loop->nr == BATCH_MAX)
		errx(1, "more than %u changes in a turn", BATCH_MAX);
	loop->change[loop->nr] = timer;
	loop->due_ns[loop->nr++] = due_ns;
}

static void timer_fired(struct loop *loop, __u32 timer)
{
	loop->fired++;
	loop->armed[timer] = false;
	if (loop->nr_later == BATCH_MAX)
		errx(1, "more than %u timers fired in a turn", BATCH_MAX);
	loop->later[loop->nr_later++] = timer;
}

/* --- ours: one ENTER a turn, which changes timers and takes records ---------- */

static void twheel_open(struct loop *loop)
{
	loop->fd = device_open();
	epoll_add(loop, loop->fd, TIMERS_FILE);
}

static void twheel_close(struct loop *loop)
{
	close(loop->fd);
}

/* ENTER in change() reads the records. */
static void twheel_ready(struct loop *loop, __u32 timer)
{
	(void)loop;
	(void)timer;
}

static void fill_batch(const struct loop *loop, struct batch *batch)
{
	__u32 i;

	for (i = 0; i < loop->nr; i++) {
		struct twheel_cmd *cmd = batch_next(batch);
		__u32 timer = loop->change[i];

		cmd->op = loop->armed[timer] ? TWHEEL_OP_MODIFY : TWHEEL_OP_ADD;
		cmd->flags = TWHEEL_ABS;
		cmd->time_ns = loop->due_ns[i];
		if (loop->armed[timer])
			cmd->id = loop->ids[timer];
		else
			cmd->data = timer;
	}
}

static void twheel_change(struct loop *loop)
{
	static struct twheel_record records[BATCH_MAX];
	static struct batch batch;
	struct twheel_enter enter = {
		.size = sizeof(enter),
		.cmds = (unsigned long)batch.cmds,
		.records = (unsigned long)records,
		.nr_records = BATCH_MAX,
		.cmd_size = sizeof(struct twheel_cmd),
		.record_size = sizeof(struct twheel_record),
	};
	__u32 i;

	batch.nr = 0;
	fill_batch(loop, &batch);
	enter.nr_cmds = batch.nr;
	loop->calls++;
	if (ioctl(loop->fd, TWHEEL_IOC_ENTER, &enter))
		err(1, "ENTER");
	expect("commands done", enter.cmds_done, batch.nr);
	batch_check(&batch);
	for (i = 0; i < batch.nr; i++) {
		loop->ids[loop->change[i]] = batch.cmds[i].id;
		loop->armed[loop->change[i]] = true;
	}
	for (i = 0; i < enter.records_done; i++)
		timer_fired(loop, records[i].data);
}

/* --- a timerfd for each timer ------------------------------------------------- */

static void timerfds_open(struct loop *loop)
{
	__u32 i;

	raise_limits(TIMERS);
	for (i = 0; i < TIMERS; i++) {
		loop->fds[i] = timerfd_create(CLOCK_MONOTONIC,
					      TFD_NONBLOCK | TFD_CLOEXEC);
		if (loop->fds[i] < 0)
			err(1, "timerfd_create");
		epoll_add(loop, loop->fds[i], i);
	}
}

static void timerfds_close(struct loop *loop)
{
	__u32 i;

	for (i = 0; i < TIMERS; i++)
		close(loop->fds[i]);
}

static void timerfds_ready(struct loop *loop, __u32 timer)
{
	__u64 count;

	loop->calls++;
	if (read(loop->fds[timer], &count, sizeof(count)) < 0)
		err(1, "read of a timerfd");
	timer_fired(loop, timer);
}

static void timerfds_change(struct loop *loop)
{
	__u32 i;

	for (i = 0; i < loop->nr; i++) {
		struct itimerspec time = {
			.it_value = to_timespec(loop->due_ns[i])
		};

		loop->calls++;
		if (timerfd_settime(loop->fds[loop->change[i]],
				    TFD_TIMER_ABSTIME, &time, NULL))
			err(1, "timerfd_settime");
		loop->armed[loop->change[i]] = true;
	}
}

/* --- a heap and one timerfd ---------------------------------------------------- */

static void heap_open(struct loop *loop)
{
	loop->set = way_heap.open(&way_heap, TIMERS);
	epoll_add(loop, heap_file(loop->set), TIMERS_FILE);
}

static void heap_close(struct loop *loop)
{
	way_heap.close(loop->set);
}

static void heap_ready(struct loop *loop, __u32 timer)
{
	(void)timer;
	heap_fired(loop->set);
}

static void heap_change(struct loop *loop)
{
	__u32 got[COLLECT_MAX], nr, i;

	for (i = 0; i < loop->nr; i++) {
		const struct timers one = {
			&loop->change[i], &loop->due_ns[i], 1
		};
		bool armed = loop->armed[loop->change[i]];

		(armed ? way_heap.rearm : way_heap.arm)(loop->set, &one);
		loop->armed[loop->change[i]] = true;
	}
	nr = way_heap.collect(loop->set, got, COLLECT_MAX, false);
	for (i = 0; i < nr; i++)
		timer_fired(loop, got[i]);
	loop->calls += loop->set->calls;
	loop->set->calls = 0;
}

static const struct design designs[] = {
	{ "twheel", "twheel, ENTER", twheel_open, twheel_close, twheel_ready,
	  twheel_change },
	{ "timerfd", "a timerfd each", timerfds_open, timerfds_close,
	  timerfds_ready, timerfds_change },
	{ "heap", "heap, one timerfd", heap_open, heap_close, heap_ready,
	  heap_change },
};

/* --- the loop -------------------------------------------------------------------- */

static void open_sockets(struct loop *loop)
{
	int pair[2];
	__u32 i;

	for (i = 0; i < SOCKETS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
			err(1, "socketpair");
		loop->served[i] = pair[0];
		loop->clients[i] = pair[1];
		epoll_add(loop, pair[0], FIRST_SOCKET + i);
	}
}

/* Let some clients send a byte each. */
static void poke(struct loop *loop)
{
	__u32 i;

	for (i = 0; i < SERVED; i++)
		if (write(loop->clients[bench_random() % SOCKETS], "", 1) != 1)
			err(1, "write to a socket");
}

static __u64 next_time(__u64 now)
{
	return now + (bench_random() % FIRES_OF ? FAR_NS : SOON_NS);
}

static bool is_to_change(const struct loop *loop, __u32 timer)
{
	__u32 i;

	for (i = 0; i < loop->nr; i++)
		if (loop->change[i] == timer)
			return true;
	return false;
}

/* Read a socket, and move some timers of its connection. */
static void serve(struct loop *loop, __u32 socket, __u64 now)
{
	const __u32 each = TIMERS / SOCKETS;
	char bytes[64];
	__u32 i;

	if (read(loop->served[socket], bytes, sizeof(bytes)) < 1)
		err(1, "read of a socket");
	for (i = 0; i < MOVED; i++) {
		__u32 timer = socket * each + bench_random() % each;

		if (loop->armed[timer] && !is_to_change(loop, timer))
			put_change(loop, timer, next_time(now));
	}
}

static void turn(struct loop *loop)
{
	struct epoll_event events[COLLECT_MAX];
	__u64 now;
	int nr, i;

	loop->nr = 0;
	loop->calls++;
	nr = epoll_wait(loop->epoll, events, COLLECT_MAX, -1);
	if (nr < 0)
		err(1, "epoll_wait");
	now = clock_ns();
	while (loop->nr_later)
		put_change(loop, loop->later[--loop->nr_later], now + FAR_NS);
	for (i = 0; i < nr; i++) {
		__u32 what = events[i].data.u32;

		if (what >= FIRST_SOCKET && what < TIMERS_FILE)
			serve(loop, what - FIRST_SOCKET, now);
		else
			loop->design->ready(loop, what);
	}
	loop->design->change(loop);
}

static void loop_arm_all(struct loop *loop)
{
	__u64 now = clock_ns();
	__u32 i;

	for (i = 0; i < TIMERS; i++) {
		put_change(loop, i, now + FAR_NS + bench_random() % SPAN_NS);
		if (loop->nr == BATCH_MAX || i == TIMERS - 1) {
			loop->design->change(loop);
			loop->nr = 0;
		}
	}
}

struct figures {
	double calls;
	double most_calls;
	double cost;
	double changes;
	double fired;
};

static void run_turns(struct loop *loop, __u32 turns, struct figures *figures)
{
	__u64 cost = 0, calls = 0, changes = 0, begin, fired = loop->fired;
	__u32 i;

	for (i = 0; i < turns; i++) {
		poke(loop);
		loop->calls = 0;
		begin = thread_cost();
		turn(loop);
		cost += thread_cost() - begin;
		calls += loop->calls;
		changes += loop->nr;
		if (loop->calls > figures->most_calls)
			figures->most_calls = loop->calls;
	}
	figures->calls = (double)calls / turns;
	figures->cost = (double)cost / turns;
	figures->changes = (double)changes / turns;
	figures->fired = (double)(loop->fired - fired) / turns;
}

static void loop_measure(const struct design *design, __u32 turns,
			 struct figures *figures)
{
	struct loop *loop = bench_alloc(1, sizeof(*loop));
	__u32 i;

	*figures = (struct figures){};
	loop->design = design;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0)
		err(1, "epoll_create1");
	design->open(loop);
	open_sockets(loop);
	loop_arm_all(loop);
	run_turns(loop, turns, figures);
	design->close(loop);
	for (i = 0; i < SOCKETS; i++) {
		close(loop->served[i]);
		close(loop->clients[i]);
	}
	close(loop->epoll);
	free(loop);
}

static void loop_print(const struct design *design, const struct figures *figures)
{
	printf("%-24s %8.2f %8.0f %10.0f %8.1f %8.2f\n", design->text,
	       figures->calls, figures->most_calls, figures->cost,
	       figures->changes, figures->fired);
	print_result(figures->calls, "calls", "u4.%s.calls", design->name);
	print_result(figures->most_calls, "calls", "u4.%s.most", design->name);
	print_result(figures->cost, clock_unit(), "u4.%s.turn", design->name);
}

void work_loop(const struct plan *plan)
{
	struct figures figures;
	unsigned int i;

	printf("\nA turn of an event loop, %u of them: system calls but for serving, the most\n"
	       "of any turn, %s, timers changed, timers fired\n\n",
	       plan->turns, clock_unit());
	printf("%-24s %8s %8s %10s %8s %8s\n", "", "calls", "most",
	       clock_unit(), "changed", "fired");
	for (i = 0; i < ARRAY_SIZE(designs); i++) {
		loop_measure(&designs[i], plan->turns, &figures);
		loop_print(&designs[i], &figures);
	}
}
