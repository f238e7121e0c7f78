// SPDX-License-Identifier: GPL-2.0
/*
 * Time namespaces, (r): absolute times on CLOCK_MONOTONIC and CLOCK_BOOTTIME,
 * in and out, are those of the namespace in which the file was opened, whoever
 * uses it; relative ones are the same everywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x80
#endif

/* How far the clocks of a namespace are ahead of the machine's, in seconds. */
struct offsets {
	long long monotonic_s;
	long long boottime_s;
};

/* Both ways; no clock may be before its zero. */
static const struct offsets offsets[] = {
	{ 100000, 2000000 },
	{ -1, -2 },
};

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };

static int open_namespace(void)
{
	int fd = open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		test_skip("no time namespaces");
	return fd;
}

static void join_namespace(int namespace)
{
	ASSERT_EQ(setns(namespace, CLONE_NEWTIME), 0);
}

/* Go into a new one: the one where we were. */
static int enter_namespace(const struct offsets *by)
{
	int old = open_namespace(), new;
	char text[128];

	while (clock_ns(CLOCK_BOOTTIME) < 3 * NSEC_PER_SEC)
		poll(NULL, 0, 100);
	if (unshare(CLONE_NEWTIME))
		test_skip("unshare(CLONE_NEWTIME): %s", strerror(errno));
	snprintf(text, sizeof(text), "monotonic %lld 0\nboottime %lld 0\n",
		 by->monotonic_s, by->boottime_s);
	ASSERT_EQ(write_file("/proc/self/timens_offsets", text), 0);
	new = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
	ASSERT_GE(new, 0);
	join_namespace(new);
	close(new);
	return old;
}

/* In each namespace, with a context on each clock that was opened there. */
static void for_each_namespace(void (*check)(int fd, clockid_t clock))
{
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		int outside = enter_namespace(&offsets[i]);

		for (j = 0; j < ARRAY_SIZE(clocks); j++) {
			int fd = device_open_clock(clocks[j]);

			test_about("%lld s, clock %d", offsets[i].monotonic_s,
				   clocks[j]);
			check(fd, clocks[j]);
			close(fd);
		}
		join_namespace(outside);
		close(outside);
	}
}

/* --- times in a namespace --------------------------------------------------- */

static void check_absolute(int fd, clockid_t clock)
{
	__u64 due_ns = clock_ns(clock) + SOON_NS;
	__u64 id = add(fd, TWHEEL_ABS, due_ns, 0);
	struct twheel_record record = wait_expired_on(fd, clock);

	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.due_ns, due_ns);

	/* A time that is a little later here must not be due now. */
	due_ns = clock_ns(clock) + FAR_NS;
	id = add(fd, TWHEEL_ABS, due_ns, 0);
	check_armed_for(fd, id, SOON_NS);
}

TEST(timens_absolute_time_is_of_the_namespace)
{
	for_each_namespace(check_absolute);
}

static void check_modify(int fd, clockid_t clock)
{
	__u64 id = add(fd, 0, FAR_NS, 0);
	__u64 due_ns = clock_ns(clock) + SOON_NS;

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	ASSERT_EQ(query_time(fd, id), due_ns);
	ASSERT_EQ(wait_expired_on(fd, clock).due_ns, due_ns);
}

TEST(timens_absolute_time_of_a_modify_is_of_the_namespace)
{
	for_each_namespace(check_modify);
}

static void check_relative(int fd, clockid_t clock)
{
	__u64 before_ns = clock_ns(clock), after_ns;
	struct twheel_record record;

	add(fd, 0, SOON_NS, 0);
	after_ns = clock_ns(clock);
	record = wait_expired_on(fd, clock);
	ASSERT_LE(before_ns + SOON_NS, record.due_ns);
	ASSERT_LE(record.due_ns, after_ns + SOON_NS);
}

TEST(timens_relative_time_is_the_same_everywhere)
{
	for_each_namespace(check_relative);
}

static void check_queried(int fd, clockid_t clock)
{
	__u64 due_ns = clock_ns(clock) + FAR_NS, before_ns, time_ns;
	__u64 id = add(fd, TWHEEL_ABS, due_ns, 0);

	ASSERT_EQ(query_time(fd, id), due_ns);
	ASSERT_EQ(list_one(fd, id).due_ns, due_ns);
	before_ns = clock_ns(clock);
	id = add(fd, 0, FAR_NS, 0);
	time_ns = query_time(fd, id);
	ASSERT_LE(before_ns + FAR_NS, time_ns);
	ASSERT_LE(time_ns, clock_ns(clock) + FAR_NS);
	ASSERT_EQ(list_one(fd, id).due_ns, time_ns);
}

TEST(timens_query_and_list_tell_times_of_the_namespace)
{
	for_each_namespace(check_queried);
}

static void check_periodic(int fd, clockid_t clock)
{
	__u64 due_ns = clock_ns(clock) + SOON_NS;
	__u64 id = add_by(fd, make_periodic(TWHEEL_ABS, due_ns, SOON_NS, 0));
	int i;

	for (i = 0; i < 5; i++) {
		struct twheel_record record = wait_expired_on(fd, clock);

		ASSERT_EQ(record.due_ns, due_ns);
		due_ns += record.count * SOON_NS;
		ASSERT_LE(due_ns - SOON_NS, clock_ns(clock));
	}
	ASSERT_EQ(query_time(fd, id), due_ns);
}

TEST(timens_periods_are_on_the_grid_of_the_namespace)
{
	for_each_namespace(check_periodic);
}

/* The grid may begin before the machine's clock did. */
static void check_old_grid(int fd, clockid_t clock)
{
	const __u64 ago_ns = 500100 * NSEC_PER_MSEC;
	struct twheel_record record;
	__u64 now_ns, due_ns, id;

	if (clock_ns(clock) < ago_ns)
		return;
	due_ns = clock_ns(clock) - ago_ns;
	id = add_by(fd, make_periodic(TWHEEL_ABS, due_ns, NSEC_PER_SEC, 0));
	now_ns = clock_ns(clock);
	record = wait_expired_on(fd, clock);
	ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_GE(record.count, 1 + (now_ns - due_ns) / NSEC_PER_SEC);
	ASSERT_LE(record.count,
		  1 + (clock_ns(clock) - due_ns) / NSEC_PER_SEC);
	ASSERT_EQ(query_time(fd, id), due_ns + record.count * NSEC_PER_SEC);
}

TEST(timens_grid_from_before_the_machine_started_is_counted_whole)
{
	for_each_namespace(check_old_grid);
}

/* Also a time that the machine's clock does not have. */
static void check_past(int fd, clockid_t clock)
{
	const __u64 pasts[] = { 0, 1, clock_ns(clock) - 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pasts); i++) {
		add(fd, TWHEEL_ABS, pasts[i], 0);
		ASSERT_EQ(poll_events(fd, 0), POLLIN);
		ASSERT_EQ(wait_expired_on(fd, clock).due_ns, pasts[i]);
	}
}

TEST(timens_past_is_due_at_once)
{
	for_each_namespace(check_past);
}

static void check_never(int fd, clockid_t clock)
{
	const __u64 nevers[] = { NEVER_NS - 1, NEVER_NS, ~0ULL };
	__u64 ids[ARRAY_SIZE(nevers)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nevers); i++)
		ids[i] = add(fd, TWHEEL_ABS, nevers[i], 0);
	add(fd, 0, SOON_NS, 1);
	ASSERT_EQ(wait_expired_on(fd, clock).data, 1);
	for (i = 0; i < ARRAY_SIZE(nevers); i++)
		ASSERT_EQ(query(fd, ids[i], NULL), TWHEEL_ARMED);
	check_nothing_ready(fd);
}

TEST(timens_never_is_never)
{
	for_each_namespace(check_never);
}

/* The words are mapped, and stored to, in the namespace or out of it. */
static void check_deadlines(int fd, clockid_t clock)
{
	_Atomic __u64 *words;
	struct twheel_config config = deadlines_config(clock, 2);
	__u64 id;

	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
	words = map_deadlines(fd, 2);
	words[0] = clock_ns(clock) + SOON_NS;
	add_deadline(fd, 0, 0);
	ASSERT_EQ(wait_expired_on(fd, clock).due_ns, words[0]);
	words[0] = clock_ns(clock) - 1;
	add_deadline(fd, 0, 0);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	ASSERT_EQ(wait_expired_on(fd, clock).due_ns, words[0]);

	/* A time that is a little later here must not be due now. */
	id = add_postponed(fd, words, 1, clock_ns(clock) + FAR_NS, 0);
	check_armed_for(fd, id, SOON_NS);
	ASSERT_EQ(query_time(fd, id), words[1]);
	ASSERT_EQ(list_one(fd, id).due_ns, words[1]);
	words[1] = clock_ns(clock) + SOON_NS;
	ASSERT_EQ(modify_deadline(fd, id, 1), 0);
	ASSERT_EQ(wait_expired_on(fd, clock).due_ns, words[1]);
	words[1] = NEVER_NS;
	id = add_deadline(fd, 1, 0);
	check_armed_for(fd, id, SOON_NS);
	ASSERT_EQ(query_time(fd, id), NEVER_NS);
}

TEST(timens_deadline_is_of_the_namespace)
{
	for_each_namespace(check_deadlines);
}

static void check_realtime(int fd, clockid_t clock)
{
	__u64 due_ns;

	(void)clock;
	fd = device_open_clock(CLOCK_REALTIME);
	due_ns = clock_ns(CLOCK_REALTIME) + SOON_NS;
	add(fd, TWHEEL_ABS, due_ns, 0);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_REALTIME).due_ns, due_ns);
	close(fd);
}

TEST(timens_has_no_realtime_of_its_own)
{
	for_each_namespace(check_realtime);
}

/* --- which namespace -------------------------------------------------------- */

/* A file opened on one side is used on the other, where the clock differs. */
static void check_fixed(int fd, __u64 openers_now_ns)
{
	__u64 id = add(fd, TWHEEL_ABS, openers_now_ns + FAR_NS, 0);
	struct twheel_record record;

	ASSERT_EQ(query_time(fd, id), openers_now_ns + FAR_NS);
	ASSERT_EQ(list_one(fd, id).due_ns, openers_now_ns + FAR_NS);
	check_armed_for(fd, id, SOON_NS);

	add(fd, TWHEEL_ABS, openers_now_ns + 10 * SOON_NS, 1);
	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.due_ns, openers_now_ns + 10 * SOON_NS);
	ASSERT_GE(record.fired_ns, record.due_ns);
	/* It is not by the other clock, which is far from this one. */
	ASSERT_LT(record.fired_ns, record.due_ns + 50000 * NSEC_PER_SEC);
}

TEST(timens_is_that_of_the_opener_for_those_inside)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = device_open_clock(clocks[i]);
		__u64 now_ns = clock_ns(clocks[i]);
		int outside = enter_namespace(&offsets[0]);

		test_about("clock %d", clocks[i]);
		check_fixed(fd, now_ns);
		join_namespace(outside);
	}
}

TEST(timens_is_that_of_the_opener_for_those_outside)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int outside = enter_namespace(&offsets[0]);
		int fd = device_open_clock(clocks[i]);
		__u64 now_ns = clock_ns(clocks[i]);

		test_about("clock %d", clocks[i]);
		join_namespace(outside);
		check_fixed(fd, now_ns);
	}
}

/* The time of a clock outside, for those in the first namespace. */
static __u64 outside_ns(clockid_t clock)
{
	long long ahead_s = clock == CLOCK_MONOTONIC ? offsets[0].monotonic_s :
						       offsets[0].boottime_s;

	return clock_ns(clock) - ahead_s * NSEC_PER_SEC;
}

/* An event that was armed for one time, and whose word says a later one before that comes. */
static void add_and_store_later(int fd, clockid_t clock, _Atomic __u64 *word)
{
	for_each_attempt(soon_ns, SOON_NS) {
		__u64 first_ns = outside_ns(clock) + soon_ns, id;

		*word = first_ns;
		id = add_deadline(fd, 0, 0);
		ASSERT_EQ(query_time(fd, id), first_ns);
		*word = first_ns + soon_ns;
		if (outside_ns(clock) < first_ns)
			return;
		ASSERT_EQ(cancel(fd, id), 0);
	}
}

/* The process that stores has other clocks than the one that opened the file. */
TEST(timens_deadline_is_of_the_opener_for_those_inside)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		_Atomic __u64 *words;
		int fd = open_deadlines_on(clocks[i], 1, &words), outside;
		struct twheel_record record;

		test_about("clock %d", clocks[i]);
		outside = enter_namespace(&offsets[0]);
		add_and_store_later(fd, clocks[i], &words[0]);
		wait_readable(fd);
		ASSERT_EQ(read_records(fd, &record, 1), 1);
		ASSERT_EQ(record.due_ns, words[0]);
		ASSERT_GE(record.fired_ns, record.due_ns);
		ASSERT_LT(record.fired_ns, record.due_ns + 50000 * NSEC_PER_SEC);
		join_namespace(outside);
	}
}

/* Opened by one process, used by its child, which is born in the namespace. */
TEST(timens_is_that_of_the_opener_for_a_child_born_in_another)
{
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + 10 * SOON_NS;
	pid_t child;

	open_namespace();
	if (unshare(CLONE_NEWTIME))
		test_skip("unshare(CLONE_NEWTIME): %s", strerror(errno));
	ASSERT_EQ(write_file("/proc/self/timens_offsets",
			     "monotonic 100000 0\n"), 0);
	child = start_child();
	if (!child) {
		ASSERT_GE(monotonic_ns(), due_ns + 90000 * NSEC_PER_SEC);
		add(fd, TWHEEL_ABS, due_ns, 0);
		_exit(0);
	}
	wait_child(child);
	ASSERT_EQ(wait_record(fd).due_ns, due_ns);
}

/* The time in which ENTER waits for what does not come. */
static void check_enter(int fd, __u64 timeout_ns)
{
	struct twheel_record record;
	struct twheel_enter arg = make_enter(NULL, 0, &record, 1);

	arg.flags = TWHEEL_ENTER_ABS;
	arg.min_records = 1;
	arg.timeout_ns = timeout_ns;
	/* If this hangs it waits by another clock. */
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.records_done, 0);
}

static void check_enter_inside(int fd, clockid_t clock)
{
	__u64 timeout_ns = monotonic_ns() + SOON_NS;

	(void)clock;
	check_enter(fd, timeout_ns);
	ASSERT_GE(monotonic_ns(), timeout_ns);
}

TEST(timens_enter_waits_until_a_time_of_the_namespace)
{
	for_each_namespace(check_enter_inside);
}

TEST(timens_enter_waits_until_a_time_of_the_opener)
{
	int fd = device_open_nonblock();
	__u64 timeout_ns = monotonic_ns() + 10 * SOON_NS;
	int outside = enter_namespace(&offsets[0]);

	check_enter(fd, timeout_ns);
	join_namespace(outside);
	ASSERT_GE(monotonic_ns(), timeout_ns);
}
