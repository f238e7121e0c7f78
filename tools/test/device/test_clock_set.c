// SPDX-License-Identifier: GPL-2.0
/*
 * CLOCK_REALTIME while it is set: forward, backward, by a leap second.
 *
 * (s): what is absolute follows the clock, what is relative does not; nothing is
 * early, lost or doubled; TWHEEL_CANCEL_ON_SET tells of it.  Each test puts the
 * clock back.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define HOUR_NS		(3600 * NSEC_PER_SEC)
#define DAY_NS		(24 * HOUR_NS)
#define YEAR_NS		(365 * DAY_NS)

static __u64 realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, at most. */
static long long ahead_ns(void)
{
	long long behind_ns = monotonic_ns();

	return realtime_ns() - behind_ns;
}

/* A context on the clock, which is put back at the end. */
static int open_realtime(void)
{
	keep_clock();
	return device_open_clock(CLOCK_REALTIME);
}

/* The wheel has come as far as the clock now. */
static void advance_wheel(int fd)
{
	add(fd, TWHEEL_ABS, realtime_ns() + NSEC_PER_MSEC, ~0ULL);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data, ~0ULL);
}

/* --- absolute times --------------------------------------------------------- */

TEST(set_forward_delivers_what_has_become_due_and_nothing_else)
{
	int fd = open_realtime();
	__u64 now_ns = realtime_ns(), later;

	pin_to_this_cpu();
	add(fd, TWHEEL_ABS, now_ns + 1000 * NSEC_PER_SEC, 1);
	add(fd, TWHEEL_ABS, now_ns + 2000 * NSEC_PER_SEC, 2);
	later = add(fd, TWHEEL_ABS, now_ns + 50000 * NSEC_PER_SEC, 3);
	move_clock(3000 * NSEC_PER_SEC);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data, 1);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data, 2);
	check_armed_for(fd, later, SOON_NS);
	check_nothing_ready(fd);
}

TEST(set_forward_by_years_delivers_what_has_become_due)
{
	int fd = open_realtime();
	__u64 now_ns = realtime_ns(), year;

	pin_to_this_cpu();
	for (year = 1; year <= 20; year++)
		add(fd, TWHEEL_ABS, now_ns + year * YEAR_NS, year);
	move_clock(20 * YEAR_NS + NSEC_PER_SEC);
	for (year = 1; year <= 20; year++)
		ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data, year);
	check_nothing_ready(fd);
}

TEST(set_backward_puts_off_what_is_absolute)
{
	int fd = open_realtime();
	__u64 due_ns, id;

	/* Again if it came before the clock was set. */
	do {
		advance_wheel(fd);
		due_ns = realtime_ns() + NSEC_PER_SEC;
		id = add(fd, TWHEEL_ABS, due_ns, 0);
		move_clock(-(long long)HOUR_NS);
	} while (query(fd, id, NULL) == TWHEEL_READY && !cancel(fd, id));
	check_armed_for(fd, id, 2 * NSEC_PER_SEC);
	check_nothing_ready(fd);
	ASSERT_EQ(query_time(fd, id), due_ns);
	move_clock(HOUR_NS);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).id, id);
	check_nothing_ready(fd);
}

TEST(set_backward_lets_new_events_come_before_older_ones)
{
	int fd = open_realtime();
	__u64 now_ns, i;

	advance_wheel(fd);
	for (i = 0; i < 100; i++)
		add(fd, TWHEEL_ABS, realtime_ns() + HOUR_NS, 1000);
	now_ns = move_clock(-(long long)DAY_NS);
	for (i = 0; i < 100; i++)
		add(fd, TWHEEL_ABS, now_ns + (100 - i) * NSEC_PER_MSEC,
		    100 - i);
	for (i = 0; i < 100; i++)
		ASSERT_LE(wait_expired_on(fd, CLOCK_REALTIME).data, 100);
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).armed, 100);
	move_clock(2 * DAY_NS);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data, 1000);
	check_nothing_ready(fd);
}

/* The wheel must not stay in the future, where the later of the two would keep it. */
TEST(set_backward_while_nothing_is_armed_makes_nothing_wait_for_the_old_time)
{
	int fd = open_realtime();
	__u64 now_ns, far;

	advance_wheel(fd);
	move_clock(-(long long)DAY_NS);
	/* The module has been told by then, as a rule: it need not have been. */
	poll(NULL, 0, 200);
	now_ns = realtime_ns();
	far = add(fd, TWHEEL_ABS, now_ns + 2 * DAY_NS, 2);
	add(fd, TWHEEL_ABS, now_ns + NSEC_PER_MSEC, 1);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data, 1);
	check_armed_for(fd, far, SOON_NS);
}

TEST(set_backward_leaves_events_to_cancel_and_modify)
{
	const size_t nr = 1000;
	__u64 ids[nr], far_ns, i;
	int fd = open_realtime();

	advance_wheel(fd);
	far_ns = realtime_ns() + HOUR_NS;
	add_many(fd, TWHEEL_ABS, far_ns, nr, ids);
	move_clock(-(long long)DAY_NS);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(query(fd, ids[i], NULL), TWHEEL_ARMED);
		ASSERT_EQ(query_time(fd, ids[i]), far_ns);
		if (i % 2)
			ASSERT_EQ(cancel(fd, ids[i]), 0);
		else
			ASSERT_EQ(modify(fd, ids[i], TWHEEL_ABS,
					 realtime_ns() + NSEC_PER_MSEC), 0);
	}
	for (i = 0; i < nr; i += 2)
		ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data % 2, 0);
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).armed, 0);
	move_clock(2 * DAY_NS);
	check_nothing_ready(fd);
}

/*
 * However many events there are, a small step back moves none of them, and those of
 * one tick stay in their order with what is armed after it.
 */
TEST(set_backward_moves_nothing_and_keeps_the_order_of_a_tick)
{
	const size_t nr = test_count(200000);
	int fd = open_realtime();
	long long cascaded, armed;
	__u64 due_ns, late_ns = 0;
	int cpu, i;

	pin_to_this_cpu();
	cpu = sched_getcpu();
	if (base_number(cpu, CLOCK_REALTIME, "cascaded") < 0)
		test_skip("no debugfs");
	advance_wheel(fd);
	due_ns = realtime_ns() + HOUR_NS;
	add(fd, TWHEEL_ABS, due_ns, 0);
	add_many(fd, TWHEEL_ABS, due_ns + NSEC_PER_SEC, nr, NULL);
	armed = base_number(cpu, CLOCK_REALTIME, "armed");
	cascaded = base_number(cpu, CLOCK_REALTIME, "cascaded");
	for (i = 1; i <= 5; i++) {
		__u64 now_ns = move_clock(-2 * (long long)NSEC_PER_MSEC);

		add(fd, TWHEEL_ABS, due_ns, i);
		add(fd, TWHEEL_ABS, now_ns + NSEC_PER_MSEC, 100 + i);
		ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data, 100 + i);
	}
	/* Those that are as far away as before were not touched. */
	ASSERT_EQ(base_number(cpu, CLOCK_REALTIME, "armed"), armed + 5);
	ASSERT_LE(base_number(cpu, CLOCK_REALTIME, "cascaded"), cascaded + 5);
	move_clock(HOUR_NS - NSEC_PER_MSEC);
	for (i = 0; i <= 5; i++) {
		struct twheel_record record = wait_expired_on(fd, CLOCK_REALTIME);

		ASSERT_EQ(record.data, i);
		late_ns = record.fired_ns - record.due_ns;
	}
	printf("# %llu us late at the end, with %zu others\n", late_ns / 1000, nr);
}

/* Also with the only wheel that there is before the clock is set back for the first time. */
TEST(set_backward_makes_the_wheels_that_are_needed)
{
	int fd = open_realtime(), cpu;

	need_debugfs();
	pin_to_this_cpu();
	cpu = sched_getcpu();
	advance_wheel(fd);
	add(fd, TWHEEL_ABS, realtime_ns() + HOUR_NS, 0);
	ASSERT_GE(base_number(cpu, CLOCK_REALTIME, "wheels"), 1);
	/* At once, so that it may wait for its wheel; on a slow machine it is due by now. */
	add(fd, TWHEEL_ABS, move_clock(-60 * (long long)NSEC_PER_SEC) + NSEC_PER_MSEC, 1);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data, 1);
	while (base_number(cpu, CLOCK_REALTIME, "wheels") != 3)
		poll(NULL, 0, 1);
	ASSERT_EQ(get_counters(fd).armed, 1);
}

/*
 * The kernel's hrtimer code reads the clock once for all that it calls in a row, so
 * with a clock that is set back just then it calls too early.  That must not be again
 * and again until the time has come.
 */
TEST(set_backward_while_events_expire_leaves_the_cpu_to_others)
{
	const size_t rounds = test_count(100), nr = 300;
	int real = open_realtime(), mono = device_open_nonblock(), cpus[2];
	__u64 tick_ns = get_info(real).tick_ns, begin_ns, seed = 1;
	struct twheel_cmd cmds[nr];
	long long interrupts;
	size_t i, j;

	if (get_cpus(cpus, 2) < 2)
		test_skip("one CPU");
	need_debugfs();
	interrupts = base_number(cpus[0], CLOCK_REALTIME, "interrupts");
	begin_ns = monotonic_ns();
	for (i = 0; i < rounds; i++) {
		__u64 now_ns = realtime_ns(), wait_ns;

		pin_to_cpu(cpus[0]);
		for (j = 0; j < nr; j++)
			cmds[j] = make_add(TWHEEL_ABS, now_ns + (j + 1) * tick_ns, 0);
		ASSERT_EQ(submit(real, cmds, nr), nr);
		/* These events make the runs of the other clock long. */
		add_many(mono, 0, NSEC_PER_MSEC + next_random(&seed) % (5 * NSEC_PER_MSEC),
			 2000, NULL);
		pin_to_cpu(cpus[1]);
		wait_ns = monotonic_ns() + next_random(&seed) % (10 * NSEC_PER_MSEC);
		while (monotonic_ns() < wait_ns)
			;
		move_clock(-10 * (long long)NSEC_PER_SEC);
	}
	/* One a tick, of each of the two timers that it has. */
	ASSERT_LE(base_number(cpus[0], CLOCK_REALTIME, "interrupts") - interrupts,
		  2 * (long long)((monotonic_ns() - begin_ns) / tick_ns) + 10);
}

/* Enough to arm many events, and set the clock, before the first one can be due. */
#define MANY_LEAD_NS	(HOUR_NS / 6)

/* Many events, each of which must come once: their times and what was seen. */
struct many {
	int fd;
	size_t nr;
	size_t read;
	__u64 *due_ns;
	bool *seen;
};

static void arm_many(struct many *many, size_t nr, __u64 from_ns, __u64 span_ns)
{
	struct twheel_cmd *cmds = calloc(nr, sizeof(*cmds));
	__u64 seed = many->nr;
	size_t i;

	many->due_ns = realloc(many->due_ns,
			       (many->nr + nr) * sizeof(*many->due_ns));
	many->seen = realloc(many->seen,
			     (many->nr + nr) * sizeof(*many->seen));
	ASSERT(cmds && many->due_ns && many->seen);
	for (i = 0; i < nr; i++) {
		__u64 due_ns = from_ns + next_random(&seed) % span_ns;

		many->due_ns[many->nr + i] = due_ns;
		many->seen[many->nr + i] = false;
		cmds[i] = make_add(TWHEEL_ABS, due_ns, many->nr + i);
	}
	ASSERT_EQ(submit(many->fd, cmds, nr), nr);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(cmds[i].result, 0);
	many->nr += nr;
	free(cmds);
}

/* How many are due and were not read yet. */
static size_t count_due(const struct many *many, __u64 now_ns)
{
	size_t due = 0, i;

	for (i = 0; i < many->nr; i++)
		due += many->due_ns[i] <= now_ns && !many->seen[i];
	return due;
}

/* Read what is ready; none may be due after the clock's latest time. */
static void read_ready(struct many *many, long long clock_ahead_ns)
{
	struct twheel_record records[256];
	long nr, i;

	while ((nr = read_records(many->fd, records, 256)) > 0) {
		__u64 latest_ns = monotonic_ns() + clock_ahead_ns;

		for (i = 0; i < nr; i++) {
			__u64 event = records[i].data;

			ASSERT_LT(event, many->nr);
			ASSERT(!many->seen[event]);
			ASSERT_EQ(records[i].due_ns, many->due_ns[event]);
			ASSERT_LE(records[i].due_ns, latest_ns);
			ASSERT_EQ(records[i].reason, TWHEEL_EXPIRED);
			many->seen[event] = true;
		}
		many->read += nr;
	}
	ASSERT_EQ(nr, -EAGAIN);
}

/* All that is due by now comes, and nothing else. */
static void read_due(struct many *many)
{
	__u64 now_ns = realtime_ns();

	read_ready(many, ahead_ns());
	while (count_due(many, now_ns)) {
		wait_readable(many->fd);
		read_ready(many, ahead_ns());
	}
}

static void check_all_read(struct many *many)
{
	struct counters counters = get_counters(many->fd);

	ASSERT_EQ(many->read, many->nr);
	check_sum(&counters);
	ASSERT_EQ(counters.armed, 0);
	ASSERT_EQ(counters.ready, 0);
	check_nothing_ready(many->fd);
}

TEST(set_backward_with_many_armed_loses_none_and_none_is_early)
{
	struct many many = { .fd = open_realtime() };
	__u64 start_ns = realtime_ns();
	int step;

	arm_many(&many, test_count(100000), start_ns + MANY_LEAD_NS, HOUR_NS);
	advance_wheel(many.fd);
	move_clock(-(long long)HOUR_NS);
	read_due(&many);
	ASSERT_EQ(many.read, 0);
	for (step = 0; step < 16; step++) {
		test_about("step %d forward", step);
		move_clock(HOUR_NS / 6);
		read_due(&many);
	}
	check_all_read(&many);
}

TEST(set_backward_again_and_again_loses_none_and_none_is_early)
{
	struct many many = { .fd = open_realtime() };
	int step;

	for (step = 0; step < 10; step++) {
		test_about("step %d backward", step);
		advance_wheel(many.fd);
		arm_many(&many, test_count(10000),
			 realtime_ns() + MANY_LEAD_NS, HOUR_NS);
		move_clock(-(long long)HOUR_NS);
	}
	read_due(&many);
	ASSERT_EQ(many.read, 0);
	for (step = 0; step < 13; step++) {
		test_about("step %d forward", step);
		move_clock(HOUR_NS);
		read_due(&many);
		/* A little back each time: what has come stays so. */
		move_clock(-(long long)HOUR_NS / 10);
		read_ready(&many, ahead_ns() + HOUR_NS / 10);
	}
	check_all_read(&many);
}

TEST(set_far_back_and_forth_loses_none_and_none_is_early)
{
	struct many many = { .fd = open_realtime() };
	int step;

	arm_many(&many, test_count(10000), realtime_ns() + 20 * NSEC_PER_SEC,
		 2 * YEAR_NS);
	for (step = 0; step < 20; step++) {
		move_clock(-(long long)(step * YEAR_NS / 4));
		arm_many(&many, test_count(1000),
			 realtime_ns() + 20 * NSEC_PER_SEC, YEAR_NS);
		read_due(&many);
		move_clock(step * YEAR_NS / 4 + YEAR_NS / 8);
		read_due(&many);
	}
	move_clock(20 * YEAR_NS);
	read_due(&many);
	check_all_read(&many);
}

/* Sets the clock back and forth by this much until told to stop. */
struct flipper {
	__u64 by_ns;
	atomic_bool stop;
	atomic_uint flips;
};

static void *flip_clock(void *arg)
{
	struct flipper *flipper = arg;

	while (!flipper->stop) {
		move_clock(-(long long)flipper->by_ns);
		move_clock(flipper->by_ns);
		flipper->flips++;
	}
	return NULL;
}

TEST(set_back_and_forth_while_events_expire_loses_none)
{
	struct flipper flipper = { .by_ns = 10 * NSEC_PER_SEC };
	struct many many = { .fd = open_realtime() };
	size_t rounds = test_count(1000), later = 100, i;
	/* It loses a little in each step, and never is further than now. */
	long long latest_ahead_ns = ahead_ns();
	pthread_t thread;

	for (i = 0; i < later; i++)
		add(many.fd, TWHEEL_ABS, realtime_ns() + DAY_NS, FILL_U64);
	thread = start_thread(flip_clock, &flipper);
	for (i = 0; i < rounds || flipper.flips < rounds; i++) {
		/* Half are due now and half were so 10 s ago, or will be. */
		if (i < rounds)
			arm_many(&many, 100, realtime_ns() - 5 * NSEC_PER_SEC,
				 10 * NSEC_PER_SEC);
		read_ready(&many, latest_ahead_ns);
	}
	flipper.stop = true;
	join_thread(thread);
	move_clock(30 * NSEC_PER_SEC);
	read_due(&many);
	ASSERT_EQ(many.read, many.nr);
	ASSERT_EQ(get_counters(many.fd).armed, later);
	check_nothing_ready(many.fd);
}

/* --- deadlines in shared memory --------------------------------------------- */

static int open_realtime_deadlines(__u32 nr, _Atomic __u64 **words)
{
	keep_clock();
	return open_deadlines_on(CLOCK_REALTIME, nr, words);
}

TEST(set_forward_delivers_deadlines_that_have_come_and_postpones_what_was_moved)
{
	_Atomic __u64 *words;
	int fd = open_realtime_deadlines(3, &words);
	__u64 now_ns = realtime_ns(), later;

	/* On one wheel, which delivers them in order. */
	pin_to_this_cpu();
	words[0] = now_ns + 1000 * NSEC_PER_SEC;
	words[1] = now_ns + 2000 * NSEC_PER_SEC;
	words[2] = now_ns + 1500 * NSEC_PER_SEC;
	add_deadline(fd, 0, 0);
	add_deadline(fd, 1, 1);
	later = add_deadline(fd, 2, 2);
	words[2] = now_ns + 50000 * NSEC_PER_SEC;
	move_clock(3000 * NSEC_PER_SEC);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).due_ns, words[0]);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).due_ns, words[1]);
	wait_postponed_after(fd, 0);
	check_armed_for(fd, later, SOON_NS);
	check_nothing_ready(fd);
	move_clock(50000 * NSEC_PER_SEC);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).due_ns, words[2]);
	ASSERT_EQ(count_postponed(fd), 1);
}

TEST(set_backward_puts_off_deadlines)
{
	_Atomic __u64 *words;
	int fd = open_realtime_deadlines(2, &words);
	__u64 id;

	/* Again if it came before the clock was set. */
	do {
		advance_wheel(fd);
		words[0] = realtime_ns() + NSEC_PER_SEC;
		id = add_deadline(fd, 0, 0);
		move_clock(-(long long)HOUR_NS);
	} while (query(fd, id, NULL) == TWHEEL_READY && !cancel(fd, id));
	check_armed_for(fd, id, 2 * NSEC_PER_SEC);
	check_nothing_ready(fd);

	/* An event armed now comes before it; and it can be brought forward. */
	words[1] = realtime_ns() + SOON_NS;
	add_deadline(fd, 1, 1);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).data, 1);
	words[0] = realtime_ns() + SOON_NS;
	ASSERT_EQ(modify_deadline(fd, id, 0), 0);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).due_ns, words[0]);
	check_nothing_ready(fd);
}

/*
 * The clock goes back and forth while the words go on.  An event that comes is at or past
 * what its word said, by the clock as it was then; when all is at rest, all come.
 */
/* Has the kernel looked at no event so far, on a machine that is slow? */
static bool may_look_yet(int fd, size_t round, size_t rounds)
{
	return !count_postponed(fd) && round < 100 * rounds;
}

TEST(set_back_and_forth_while_deadlines_are_moved_loses_none_and_none_is_early)
{
	const size_t rounds = test_count(200), nr = 500;
	struct counters counters;
	_Atomic __u64 *words;
	int fd = open_realtime_deadlines(nr, &words);
	size_t round, i, read = 0, added = nr;
	struct twheel_record record;
	__u64 seed = 3;

	for (i = 0; i < nr; i++) {
		words[i] = realtime_ns() + next_random(&seed) % NSEC_PER_SEC;
		add_deadline(fd, i, i);
	}
	for (round = 0; round < rounds || may_look_yet(fd, round, rounds); round++) {
		long long by_ns = next_random(&seed) % (2 * NSEC_PER_SEC);

		move_clock(round % 2 ? by_ns : -by_ns);
		test_about("round %zu", round);
		for (i = 0; i < nr; i += 1 + next_random(&seed) % 4)
			words[i] = realtime_ns() + next_random(&seed) % NSEC_PER_SEC;
		/* Let the kernel have a look at this time before the next. */
		poll_events(fd, 5);
		while (read_records(fd, &record, 1) == 1) {
			ASSERT_GE(record.fired_ns, record.due_ns);
			ASSERT_EQ(record.reason, TWHEEL_EXPIRED);
			read++;
			added++;
			words[record.data] = realtime_ns() + NSEC_PER_SEC;
			add_deadline(fd, record.data, record.data);
		}
	}
	for (i = 0; i < nr; i++)
		words[i] = realtime_ns() + SOON_NS;
	move_clock(10 * NSEC_PER_SEC);
	for (; read < added; read++) {
		wait_readable(fd);
		ASSERT_EQ(read_records(fd, &record, 1), 1);
		ASSERT_GE(record.fired_ns, record.due_ns);
	}
	check_nothing_ready(fd);
	counters = get_counters(fd);
	check_sum(&counters);
	ASSERT_EQ(counters.finished, added);
	printf("# %zu events, postponed %lld times\n", added, count_postponed(fd));
	ASSERT_GT(count_postponed(fd), 0);
}

/* --- other clocks, relative times ------------------------------------------- */

static void check_other_clock(clockid_t clock)
{
	int fd = device_open_clock(clock);
	__u64 absolute = add(fd, TWHEEL_ABS,
			     clock_ns(clock) + 1000 * NSEC_PER_SEC, 0);
	__u64 relative = add(fd, 0, 1000 * NSEC_PER_SEC, 0), due_ns;

	move_clock(HOUR_NS);
	check_armed_for(fd, absolute, SOON_NS);
	check_armed_for(fd, relative, SOON_NS);
	move_clock(-2 * (long long)HOUR_NS);
	due_ns = clock_ns(clock) + SOON_NS;
	add(fd, TWHEEL_ABS, due_ns, 1);
	ASSERT_EQ(wait_expired_on(fd, clock).due_ns, due_ns);
}

TEST(set_does_not_move_the_other_clocks)
{
	keep_clock();
	check_other_clock(CLOCK_MONOTONIC);
	check_other_clock(CLOCK_BOOTTIME);
}

/* Relative times on CLOCK_REALTIME are kept by CLOCK_MONOTONIC. */
static void check_relative(int fd, long long by_ns, __u64 interval_ns)
{
	__u64 before_ns = monotonic_ns(), delay_ns = 10 * SOON_NS, id;
	struct twheel_record record;

	id = add_by(fd, make_periodic(0, delay_ns, interval_ns, 0));
	move_clock(by_ns);
	/* If this hangs it waits for the clock. */
	wait_readable(fd);
	ASSERT_GE(monotonic_ns(), before_ns + delay_ns);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.reason, TWHEEL_EXPIRED);
	if (interval_ns)
		ASSERT_EQ(cancel(fd, id), 0);
	else
		ASSERT_EQ(record.count, 1);
	check_nothing_ready(fd);
}

TEST(set_does_not_move_a_relative_time)
{
	int fd = open_realtime();

	check_relative(fd, HOUR_NS, 0);
	check_relative(fd, -2 * (long long)HOUR_NS, 0);
}

TEST(set_does_not_move_the_relative_first_time_of_a_periodic_event)
{
	int fd = open_realtime();

	check_relative(fd, HOUR_NS, HOUR_NS);
	check_relative(fd, -2 * (long long)HOUR_NS, HOUR_NS);
}

TEST(set_does_not_move_the_relative_time_of_a_modify)
{
	int fd = open_realtime();
	__u64 id = add(fd, TWHEEL_ABS, realtime_ns() + DAY_NS, 0), before_ns;

	before_ns = monotonic_ns();
	ASSERT_EQ(modify(fd, id, 0, 10 * SOON_NS), 0);
	move_clock(-(long long)HOUR_NS);
	wait_readable(fd);
	ASSERT_GE(monotonic_ns(), before_ns + 10 * SOON_NS);

	/* And back: from relative to absolute. */
	ASSERT_EQ(cancel(fd, id), 0);
	id = add(fd, 0, DAY_NS, 0);
	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, realtime_ns() + HOUR_NS / 2), 0);
	move_clock(HOUR_NS);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).id, id);
}

/* --- periodic events -------------------------------------------------------- */

TEST(set_forward_counts_the_periods_that_were_jumped_over)
{
	const __u64 interval_ns = NSEC_PER_SEC;
	int fd = open_realtime();
	__u64 first_ns = realtime_ns() + interval_ns, covered = 0;
	struct twheel_record record;

	add_by(fd, make_periodic(TWHEEL_ABS, first_ns, interval_ns, 0));
	move_clock(1000 * interval_ns);
	while (covered < 1000) {
		record = wait_expired_on(fd, CLOCK_REALTIME);
		ASSERT_EQ(record.due_ns, first_ns + covered * interval_ns);
		covered += record.count;
		ASSERT_LE(first_ns + (covered - 1) * interval_ns,
			  realtime_ns());
	}
}

TEST(set_backward_repeats_no_period)
{
	const __u64 interval_ns = SOON_NS;
	int fd = open_realtime();
	__u64 due_ns = realtime_ns() + interval_ns, id;
	int i;

	id = add_by(fd, make_periodic(TWHEEL_ABS, due_ns, interval_ns, 0));
	for (i = 0; i < 10; i++) {
		struct twheel_record record =
			wait_expired_on(fd, CLOCK_REALTIME);

		ASSERT_EQ(record.due_ns, due_ns);
		due_ns += record.count * interval_ns;
	}
	move_clock(-(long long)HOUR_NS);
	/* It may have come just before. */
	while (poll_events(fd, 0)) {
		struct twheel_record record;

		ASSERT_EQ(read_records(fd, &record, 1), 1);
		ASSERT_EQ(record.due_ns, due_ns);
		ASSERT_GE(record.count, 1);
		due_ns += record.count * interval_ns;
	}
	check_armed_for(fd, id, 5 * interval_ns);
	check_nothing_ready(fd);
	move_clock(2 * HOUR_NS);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).due_ns, due_ns);
}

/* --- leap seconds ----------------------------------------------------------- */

static int ntp_status(int status)
{
	struct timex timex = { .modes = ADJ_STATUS, .status = status };
	int state = adjtimex(&timex);

	ASSERT_GE(state, 0);
	return state;
}

/*
 * Where events are put, around the end of a day.  What follows the midnight at once
 * is not here: the kernel inserts the second up to a tick of its own later, and a
 * tick is late where a machine stands still.
 */
static const long long around_ns[] = {
	-1500000000, -500000000, 900000000, 950000000, 1500000000, 2500000000,
};

struct leap {
	int fd;
	__u64 midnight_ns;
	__u64 realtime_ns;	/* both clocks at one moment before it */
	__u64 monotonic_ns;
};

/* The kernel has to know of a leap for a second, and all has to be armed. */
#define LEAP_KNOWN_NS	(2 * NSEC_PER_SEC)

/* At that time before the end of a day that has one second more, or less. */
static struct leap try_around_leap(int fd, int status, __u64 lead_ns, __u64 *ids)
{
	struct leap leap = { .fd = fd };
	size_t i;

	ntp_status(STA_PLL);
	ntp_status(0);
	leap.midnight_ns = (realtime_ns() / DAY_NS + 1) * DAY_NS;
	set_clock(leap.midnight_ns - lead_ns);
	ntp_status(status);
	/* In this order, so that we wait no shorter than by the other clock. */
	leap.monotonic_ns = monotonic_ns();
	leap.realtime_ns = realtime_ns();
	for (i = 0; i < ARRAY_SIZE(around_ns); i++)
		ids[i] = add(fd, TWHEEL_ABS, leap.midnight_ns + around_ns[i], i);
	return leap;
}

/* Again, earlier in the day, if the machine stood still until it was too late. */
static struct leap arm_around_leap(int fd, int status)
{
	__u64 ids[ARRAY_SIZE(around_ns)];
	size_t i;

	pin_to_this_cpu();
	for_each_attempt(lead_ns, 10 * SOON_NS) {
		struct leap leap = try_around_leap(fd, status, LEAP_KNOWN_NS + lead_ns, ids);

		if (realtime_ns() + LEAP_KNOWN_NS < leap.midnight_ns)
			return leap;
		for (i = 0; i < ARRAY_SIZE(around_ns); i++)
			ASSERT_EQ(cancel(fd, ids[i]), 0);
	}
}

/* How much CLOCK_REALTIME was moved since, to the second. */
static long long moved_s(const struct leap *leap)
{
	long long before_ns = leap->realtime_ns - leap->monotonic_ns;

	long long moved_ns = ahead_ns() - before_ns;
	long long half_ns = NSEC_PER_SEC / 2;

	return (moved_ns + (moved_ns < 0 ? -half_ns : half_ns)) /
		(2 * half_ns);
}

/* All come once, in order, and those after midnight @leap_ns later or sooner. */
static void read_around_leap(const struct leap *leap, long long leap_ns)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(around_ns); i++) {
		__u64 due_ns = leap->midnight_ns + around_ns[i];
		struct twheel_record record;
		__u64 wait_ns;

		test_about("%lld ns from midnight", around_ns[i]);
		wait_readable(leap->fd);
		wait_ns = monotonic_ns() - leap->monotonic_ns;
		ASSERT_EQ(read_records(leap->fd, &record, 1), 1);
		ASSERT_EQ(record.data, i);
		ASSERT_EQ(record.due_ns, due_ns);
		ASSERT_EQ(record.reason, TWHEEL_EXPIRED);
		ASSERT_GE(record.fired_ns, due_ns);
		if (around_ns[i] > 0)
			ASSERT_GE(wait_ns, due_ns - leap->realtime_ns +
				  leap_ns);
	}
	check_nothing_ready(leap->fd);
}

TEST(set_by_an_inserted_leap_second_makes_nothing_early)
{
	struct leap leap = arm_around_leap(open_realtime(), STA_INS);

	read_around_leap(&leap, NSEC_PER_SEC);
	ASSERT_EQ(moved_s(&leap), -1);
}

TEST(set_by_a_deleted_leap_second_loses_nothing)
{
	struct leap leap = arm_around_leap(open_realtime(), STA_DEL);

	read_around_leap(&leap, -(long long)NSEC_PER_SEC);
	ASSERT_EQ(moved_s(&leap), 1);
}

/* --- TWHEEL_CANCEL_ON_SET --------------------------------------------------- */

#define ON_SET	(TWHEEL_ABS | TWHEEL_CANCEL_ON_SET)

static __u64 add_on_set(int fd, __u64 data)
{
	return add(fd, ON_SET, realtime_ns() + 10 * YEAR_NS, data);
}

static struct twheel_record wait_clock_set(int fd, __u64 set_to_ns)
{
	struct twheel_record record;

	memset(&record, FILL, sizeof(record));
	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.reason, TWHEEL_CLOCK_SET);
	ASSERT_EQ(record.count, 1);
	ASSERT_EQ(record.value, 0);
	ASSERT_EQ(record.key, 0);
	ASSERT_EQ(record.flags, 0);
	ASSERT_GE(record.fired_ns, set_to_ns);
	ASSERT_LE(record.fired_ns, realtime_ns());
	return record;
}

static void check_on_set(long long by_ns)
{
	int fd = open_realtime();
	__u64 due_ns = realtime_ns() + 10 * YEAR_NS;
	__u64 id = add(fd, ON_SET, due_ns, 0x1234);
	__u64 other = add(fd, TWHEEL_ABS, due_ns, 0), set_to_ns;
	struct twheel_record record;

	set_to_ns = move_clock(by_ns);
	record = wait_clock_set(fd, set_to_ns);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.data, 0x1234);
	ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	check_armed_for(fd, other, SOON_NS);
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).finished, 1);
}

TEST(set_forward_ends_an_event_with_cancel_on_set)
{
	check_on_set(HOUR_NS);
}

TEST(set_backward_ends_an_event_with_cancel_on_set)
{
	check_on_set(-(long long)HOUR_NS);
}

TEST(set_by_a_millisecond_ends_an_event_with_cancel_on_set)
{
	check_on_set(NSEC_PER_MSEC);
}

TEST(set_by_settimeofday_ends_an_event_with_cancel_on_set)
{
	int fd = open_realtime();
	struct timeval time;

	add_on_set(fd, 0);
	ASSERT_EQ(gettimeofday(&time, NULL), 0);
	time.tv_sec += 100;
	ASSERT_EQ(settimeofday(&time, NULL), 0);
	wait_clock_set(fd, time.tv_sec * NSEC_PER_SEC);
}

/* In one step, whatever the time is now. */
static void add_to_clock(int seconds)
{
	struct timex timex = {
		.modes = ADJ_SETOFFSET | ADJ_NANO,
		.time.tv_sec = seconds,
	};

	ASSERT_GE(adjtimex(&timex), 0);
}

TEST(set_by_adjtimex_with_an_offset_ends_an_event_with_cancel_on_set)
{
	int fd = open_realtime();
	__u64 before_ns = realtime_ns();

	add_on_set(fd, 0);
	add_to_clock(100);
	wait_clock_set(fd, before_ns + 100 * NSEC_PER_SEC);
}

/* The offset to CLOCK_MONOTONIC is the same again, perhaps before the module looks at it. */
TEST(set_forward_and_back_ends_an_event_with_cancel_on_set)
{
	int fd = open_realtime(), i;
	struct twheel_record record;
	__u64 id;

	for (i = 0; i < 20; i++) {
		id = add_on_set(fd, 0);
		add_to_clock(100);
		add_to_clock(-100);
		wait_readable(fd);
		ASSERT_EQ(read_records(fd, &record, 1), 1);
		ASSERT_EQ(record.reason, TWHEEL_CLOCK_SET);
		ASSERT_EQ(record.id, id);
	}
	check_nothing_ready(fd);
}

/**
 * struct setter - a thread that sets the clock forward and back, on a CPU of its own
 * @cpu: the CPU.
 * @shared: there is no other one.
 * @wanted: how often so far, to be raised by one for each set.
 * @done: how often it has been set.
 * @end: it is to end.
 */
struct setter {
	int cpu;
	bool shared;
	atomic_ulong wanted;
	atomic_ulong done;
	atomic_bool end;
};

static void let_other_run(const struct setter *setter)
{
	if (setter->shared)
		sched_yield();
}

static void *set_when_wanted(void *arg)
{
	struct setter *setter = arg;
	unsigned long done = 0;

	pin_to_cpu(setter->cpu);
	while (!atomic_load(&setter->end)) {
		if (atomic_load(&setter->wanted) == done) {
			let_other_run(setter);
			continue;
		}
		add_to_clock(done % 2 ? -100 : 100);
		atomic_store(&setter->done, ++done);
	}
	return NULL;
}

/* Return as soon as the vDSO shows it, while adjtimex() is perhaps not over. */
static void see_set(struct setter *setter)
{
	long long begun_ns = realtime_ns();

	atomic_fetch_add(&setter->wanted, 1);
	while (llabs((long long)realtime_ns() - begun_ns) < 50LL * NSEC_PER_SEC)
		let_other_run(setter);
}

/* A program that has read the new time adds an event for it, which is not of the time before. */
TEST(set_that_was_seen_does_not_end_an_event_that_is_added_then)
{
	int fd = open_realtime(), cpus[2];
	size_t nr_cpus = get_cpus(cpus, 2);
	struct setter setter = {
		.cpu = cpus[nr_cpus - 1],
		.shared = nr_cpus == 1,
	};
	const unsigned long nr = test_count(50000);
	const __u64 end_ns = monotonic_ns() + 10 * NSEC_PER_SEC;
	struct twheel_record records[2];
	pthread_t thread;
	__u64 before, after;
	unsigned long i;

	pin_to_cpu(cpus[0]);
	thread = start_thread(set_when_wanted, &setter);
	/* Once in some ten thousand; fewer will do where each waits for a CPU. */
	for (i = 1; i <= nr && monotonic_ns() < end_ns; i++) {
		test_about("set %lu", i);
		before = add_on_set(fd, 0);
		see_set(&setter);
		after = add_on_set(fd, 1);
		wait_readable(fd);
		ASSERT_EQ(read_records(fd, records, 2), 1);
		ASSERT_EQ(records[0].id, before);
		ASSERT_EQ(records[0].reason, TWHEEL_CLOCK_SET);
		while (atomic_load(&setter.done) < i)
			let_other_run(&setter);
		ASSERT_EQ(cancel(fd, after), 0);
	}
	atomic_store(&setter.end, true);
	join_thread(thread);
}

TEST(set_ends_an_event_that_is_never_due)
{
	int fd = open_realtime();
	__u64 id = add(fd, ON_SET, NEVER_NS, 0);

	ASSERT_EQ(wait_clock_set(fd, move_clock(HOUR_NS)).id, id);
	id = add(fd, ON_SET, ~0ULL, 0);
	ASSERT_EQ(wait_clock_set(fd, move_clock(HOUR_NS)).id, id);
}

TEST(set_ends_a_periodic_event_with_cancel_on_set)
{
	int fd = open_realtime();
	__u64 id = add_by(fd, make_periodic(ON_SET, realtime_ns() + DAY_NS,
					    HOUR_NS, 0));

	ASSERT_EQ(wait_clock_set(fd, move_clock(HOUR_NS)).id, id);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	move_clock(2 * DAY_NS);
	check_nothing_ready(fd);
}

/* It expired before: the first record says so, the second that the clock was set. */
TEST(set_ends_a_periodic_event_whose_record_is_unread)
{
	const __u64 due_ns = realtime_ns();
	int fd = open_realtime();
	__u64 id = add_by(fd, make_periodic(ON_SET, due_ns, HOUR_NS, 0));
	__u64 other = add_on_set(fd, 0), set_to_ns;
	struct twheel_record record;

	wait_ready(fd, 1);
	set_to_ns = move_clock(2 * HOUR_NS);
	/* The notice has come when the other one has ended. */
	wait_ready(fd, 2);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.reason, TWHEEL_EXPIRED);
	ASSERT_EQ(wait_clock_set(fd, set_to_ns).id, other);
	ASSERT_EQ(wait_clock_set(fd, set_to_ns).id, id);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	check_nothing_ready(fd);
}

TEST(set_ends_a_periodic_event_whose_record_was_read)
{
	const __u64 due_ns = realtime_ns();
	int fd = open_realtime();
	__u64 id = add_by(fd, make_periodic(ON_SET, due_ns, HOUR_NS, 0));
	struct twheel_record record;

	wait_ready(fd, 1);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.reason, TWHEEL_EXPIRED);
	check_armed_for(fd, id, SOON_NS);
	ASSERT_EQ(wait_clock_set(fd, move_clock(2 * HOUR_NS)).id, id);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	check_nothing_ready(fd);
}

TEST(set_ends_many_events_once_each)
{
	const size_t nr = test_count(50000);
	bool *seen = calloc(nr, sizeof(*seen));
	int fd = open_realtime();
	__u64 set_to_ns, i;

	ASSERT(seen);
	add_many(fd, ON_SET, realtime_ns() + 10 * YEAR_NS, nr, NULL);
	set_to_ns = move_clock(HOUR_NS);
	for (i = 0; i < nr; i++) {
		struct twheel_record record = wait_clock_set(fd, set_to_ns);

		ASSERT_LT(record.data, nr);
		ASSERT(!seen[record.data]);
		seen[record.data] = true;
	}
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).armed, 0);
}

TEST(set_twice_gives_one_record)
{
	int fd = open_realtime();
	__u64 id = add_on_set(fd, 0), other;

	move_clock(HOUR_NS);
	wait_readable(fd);
	move_clock(HOUR_NS);
	other = add_on_set(fd, 0);
	move_clock(HOUR_NS);
	wait_ready(fd, 2);
	ASSERT_EQ(wait_clock_set(fd, 0).id, id);
	ASSERT_EQ(wait_clock_set(fd, 0).id, other);
	move_clock(HOUR_NS);
	check_nothing_ready(fd);
}

TEST(set_does_not_end_an_event_that_has_expired)
{
	int fd = open_realtime();
	__u64 id = add(fd, ON_SET, realtime_ns() + NSEC_PER_MSEC, 0), other;

	wait_readable(fd);
	other = add_on_set(fd, 0);
	move_clock(HOUR_NS);
	wait_ready(fd, 2);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).id, id);
	ASSERT_EQ(wait_clock_set(fd, 0).id, other);
	check_nothing_ready(fd);
}

TEST(set_over_the_due_time_ends_an_event_once)
{
	const size_t nr = test_count(1000);
	int fd = open_realtime();
	size_t i;

	add_many(fd, ON_SET, realtime_ns() + HOUR_NS, nr, NULL);
	move_clock(2 * HOUR_NS);
	wait_ready(fd, nr);
	for (i = 0; i < nr; i++) {
		struct twheel_record record;

		ASSERT_EQ(read_records(fd, &record, 1), 1);
		if (record.reason != TWHEEL_CLOCK_SET)
			check_expired_on(&record, CLOCK_REALTIME);
	}
	check_nothing_ready(fd);
}

TEST(set_record_that_is_not_read_yet_refuses_modify)
{
	struct twheel_cmd cmd;
	int fd = open_realtime();
	__u64 id = add_on_set(fd, 0x1234);

	move_clock(HOUR_NS);
	wait_readable(fd);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
	ASSERT_EQ(list_one(fd, id).state, TWHEEL_READY);
	ASSERT_EQ(list_one(fd, id).reason, TWHEEL_CLOCK_SET);
	cmd = make_modify(id, 0, FAR_NS);
	check_refused(fd, &cmd, EALREADY);
	cmd = make_modify(id, ON_SET, realtime_ns() + DAY_NS);
	check_refused(fd, &cmd, EALREADY);
	ASSERT_EQ(wait_clock_set(fd, 0).data, 0x1234);
}

/* --- TWHEEL_CANCEL_ON_SET of operations ------------------------------------- */

TEST(set_ends_an_operation_and_its_watches)
{
	struct twheel_cmd cmd;
	int fd = open_realtime();
	__u64 id = add_on_set(fd, 0x1234);

	ASSERT_EQ(watch(fd, id, 1, 1), 0);
	ASSERT_EQ(watch_level(fd, id, 2, 1), 0);
	move_clock(HOUR_NS);
	wait_readable(fd);
	ASSERT_EQ(list_one(fd, id).watches, 0);
	ASSERT_EQ(signal_key(fd, 1, 1), 0);
	ASSERT_EQ(signal_quietly(fd, 2), 0);
	cmd = make_complete(id, 1);
	check_refused(fd, &cmd, EALREADY);
	cmd = make_watch(id, 3, 1);
	check_refused(fd, &cmd, EALREADY);
	ASSERT_EQ(get_counters(fd).completed, 0);
	ASSERT_EQ(wait_clock_set(fd, 0).id, id);
	ASSERT_EQ(signal_key(fd, 1, 1), 0);
	check_nothing_ready(fd);
}

TEST(set_does_not_end_an_operation_that_was_completed)
{
	struct twheel_record record;
	int fd = open_realtime();
	__u64 id = add_on_set(fd, 0x1234), other;

	ASSERT_EQ(watch(fd, id, 1, 1), 0);
	ASSERT_EQ(signal_key(fd, 1, 5), 1);
	other = add_on_set(fd, 0x4321);
	move_clock(HOUR_NS);
	wait_ready(fd, 2);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.reason, TWHEEL_COMPLETED);
	ASSERT_EQ(record.value, 5);
	ASSERT_EQ(record.key, 1);
	ASSERT_EQ(wait_clock_set(fd, 0).id, other);
	check_nothing_ready(fd);
}

/* Signals keys from 0 on, one by one; counts what that ended. */
struct set_signaller {
	int fd;
	size_t nr;
	size_t ended;
	atomic_bool begun;
};

static void *signal_one_by_one(void *arg)
{
	struct set_signaller *signaller = arg;
	size_t i;

	for (i = 0; i < signaller->nr; i++) {
		signaller->ended += signal_key(signaller->fd, i, 1);
		signaller->begun = true;
	}
	return NULL;
}

TEST(set_against_signals_ends_each_operation_once)
{
	struct set_signaller signaller = { .nr = test_count(20000) };
	size_t completed = 0, i;
	unsigned char *seen;
	pthread_t thread;

	signaller.fd = open_realtime();
	seen = map_pages(signaller.nr);
	for (i = 0; i < signaller.nr; i++)
		ASSERT_EQ(watch(signaller.fd, add_on_set(signaller.fd, i), i,
				1), 0);
	thread = start_thread(signal_one_by_one, &signaller);
	while (!signaller.begun)
		;
	move_clock(HOUR_NS);
	join_thread(thread);
	for (i = 0; i < signaller.nr; i++) {
		struct twheel_record record;

		wait_readable(signaller.fd);
		ASSERT_EQ(read_records(signaller.fd, &record, 1), 1);
		ASSERT_LT(record.data, signaller.nr);
		ASSERT_EQ(seen[record.data]++, 0);
		if (record.reason == TWHEEL_COMPLETED)
			completed++;
		else
			ASSERT_EQ(record.reason, TWHEEL_CLOCK_SET);
		ASSERT_EQ(record.key, record.reason == TWHEEL_COMPLETED ?
			  record.data : 0);
	}
	ASSERT_EQ(completed, signaller.ended);
	ASSERT_EQ(get_counters(signaller.fd).completed, completed);
	check_nothing_ready(signaller.fd);
}

/* --- TWHEEL_CANCEL_ON_SET beside CANCEL and MODIFY -------------------------- */

TEST(set_record_that_is_not_read_yet_can_be_cancelled)
{
	int fd = open_realtime();
	__u64 id = add_on_set(fd, 0);

	move_clock(HOUR_NS);
	wait_readable(fd);
	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
	ASSERT_EQ(cancel(fd, id), -ENOENT);
	ASSERT_EQ(get_counters(fd).cancelled, 1);
}

TEST(set_ends_an_event_that_modify_gave_cancel_on_set)
{
	int fd = open_realtime();
	__u64 due_ns = realtime_ns() + 10 * YEAR_NS;
	__u64 with = add(fd, TWHEEL_ABS, due_ns, 0);
	__u64 without = add(fd, ON_SET, due_ns, 0);

	ASSERT_EQ(modify(fd, with, ON_SET, due_ns), 0);
	ASSERT_EQ(modify(fd, without, TWHEEL_ABS, due_ns), 0);
	ASSERT_EQ(wait_clock_set(fd, move_clock(HOUR_NS)).id, with);
	check_armed_for(fd, without, SOON_NS);
	check_nothing_ready(fd);
}

TEST(set_ends_an_event_that_modify_gave_another_time)
{
	int fd = open_realtime();
	__u64 id = add_on_set(fd, 0), i;

	for (i = 1; i <= 100; i++)
		ASSERT_EQ(modify(fd, id, ON_SET, realtime_ns() + i * DAY_NS),
			  0);
	ASSERT_EQ(wait_clock_set(fd, move_clock(HOUR_NS)).id, id);
	check_nothing_ready(fd);
}

TEST(set_does_not_end_an_event_that_was_cancelled)
{
	int fd = open_realtime();
	__u64 kept = add_on_set(fd, 0), id = add_on_set(fd, 0);

	ASSERT_EQ(cancel(fd, id), 0);
	ASSERT_EQ(wait_clock_set(fd, move_clock(HOUR_NS)).id, kept);
	check_nothing_ready(fd);
}

/*
 * Contexts learn of a set one after the other, some a little later.  This test looks only
 * when contexts that were opened before and after its own have learnt of it.
 */
TEST(set_does_not_end_an_event_that_is_armed_after_it)
{
	int rounds = test_count(200), before, fd, after;

	keep_clock();
	before = device_open_clock(CLOCK_REALTIME);
	fd = device_open_clock(CLOCK_REALTIME);
	after = device_open_clock(CLOCK_REALTIME);
	while (rounds--) {
		__u64 old, new;

		test_about("%d rounds to go", rounds);
		add_on_set(before, 0);
		old = add_on_set(fd, 0);
		add_on_set(after, 0);
		move_clock((rounds % 2 ? 1 : -1) * (long long)HOUR_NS);
		new = add_on_set(fd, 1);
		ASSERT_EQ(wait_clock_set(fd, 0).id, old);
		wait_clock_set(before, 0);
		wait_clock_set(after, 0);
		ASSERT_EQ(query(fd, new, NULL), TWHEEL_ARMED);
		check_nothing_ready(fd);
		ASSERT_EQ(cancel(fd, new), 0);
	}
}

TEST(set_is_not_what_slewing_does)
{
	struct timex faster = {
		.modes = ADJ_TICK | ADJ_FREQUENCY,
		.tick = 10100,
		.freq = 100 << 16,
	};
	struct timeval second = { .tv_sec = 1 };
	int fd = open_realtime();
	__u64 id = add_on_set(fd, 0);

	ASSERT_EQ(adjtime(&second, NULL), 0);
	check_armed_for(fd, id, 10 * SOON_NS);
	ASSERT_GE(adjtimex(&faster), 0);
	check_armed_for(fd, id, 10 * SOON_NS);
	check_nothing_ready(fd);
	ASSERT_EQ(wait_clock_set(fd, move_clock(HOUR_NS)).id, id);
}

TEST(set_wakes_a_reader_that_waits)
{
	struct twheel_config config = default_config();
	struct twheel_record record;
	pid_t child, parent = getpid();
	int fd;

	keep_clock();
	config.clockid = CLOCK_REALTIME;
	fd = device_open_configured(O_RDWR, &config);
	add_on_set(fd, 7);
	child = start_child();
	if (!child) {
		wait_asleep(parent);
		move_clock(HOUR_NS);
		_exit(0);
	}
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.data, 7);
	ASSERT_EQ(record.reason, TWHEEL_CLOCK_SET);
	wait_child(child);
}

/* Events with the flag, due about now, while the clock is set all the time. */
TEST(set_against_expiry_and_cancel_ends_each_event_once)
{
	struct flipper flipper = { .by_ns = 5 * NSEC_PER_MSEC };
	const size_t nr = test_count(20000);
	unsigned char *ends = calloc(nr, 1);
	int fd = open_realtime();
	pthread_t thread;
	__u64 seed = 1;
	size_t i;

	ASSERT(ends);
	thread = start_thread(flip_clock, &flipper);
	for (i = 0; i < nr; i++) {
		__u64 id = add(fd, ON_SET, realtime_ns() +
			       next_random(&seed) % (10 * NSEC_PER_MSEC), i);
		struct twheel_record record;

		if (i % 4 == 0) {
			ASSERT_EQ(cancel(fd, id), 0);
			ends[i]++;
		}
		if (i % 2 && read_records(fd, &record, 1) == 1) {
			ASSERT_LT(record.data, nr);
			ends[record.data]++;
		}
	}
	flipper.stop = true;
	join_thread(thread);
	move_clock(HOUR_NS);
	wait_ready(fd, nr - get_counters(fd).finished -
		   get_counters(fd).cancelled);
	while (poll_events(fd, 0)) {
		struct twheel_record record;

		ASSERT_EQ(read_records(fd, &record, 1), 1);
		ends[record.data]++;
	}
	for (i = 0; i < nr; i++) {
		test_about("event %zu", i);
		ASSERT_EQ(ends[i], 1);
	}
	ASSERT_EQ(get_counters(fd).armed, 0);
}

static void check_flag_refused(clockid_t clock, __u16 flags, __u64 time_ns)
{
	int fd = device_open_clock(clock);
	__u64 id = add(fd, 0, FAR_NS, 0);
	struct twheel_cmd cmd = make_add(flags, time_ns, 0);

	test_about("clock %d, flags %d", clock, flags);
	check_refused(fd, &cmd, EINVAL);
	cmd = make_modify(id, flags, time_ns);
	check_refused(fd, &cmd, EINVAL);
}

TEST(set_cancels_only_absolute_times_of_the_realtime_clock)
{
	check_flag_refused(CLOCK_MONOTONIC, ON_SET, FAR_NS);
	check_flag_refused(CLOCK_BOOTTIME, ON_SET, FAR_NS);
	check_flag_refused(CLOCK_MONOTONIC, TWHEEL_CANCEL_ON_SET, FAR_NS);
	check_flag_refused(CLOCK_BOOTTIME, TWHEEL_CANCEL_ON_SET, FAR_NS);
	check_flag_refused(CLOCK_REALTIME, TWHEEL_CANCEL_ON_SET, FAR_NS);
}
