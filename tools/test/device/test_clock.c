// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts on CLOCK_MONOTONIC, CLOCK_BOOTTIME and CLOCK_REALTIME, while nobody
 * sets the clock.
 *
 * Of the behaviours that tests of timers look for, here for each clock:
 * (b) exactly once, (c) the past, (d) never early, (f) periods, (m) order.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

static const clockid_t clocks[] = {
	CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME,
};

/* Do something with a fresh context on each of the clocks. */
static void for_each_clock(void (*check)(int fd, clockid_t clock))
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = device_open_clock(clocks[i]);

		test_about("clock %d", clocks[i]);
		check(fd, clocks[i]);
		close(fd);
	}
}

/* --- which clock ------------------------------------------------------------ */

TEST(clock_is_as_configured_and_fdinfo_tells_it)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = device_open_clock(clocks[i]);

		ASSERT_EQ(get_counters(fd).clockid, clocks[i]);
	}
}

TEST(clock_can_be_configured_again_before_the_first_add)
{
	struct twheel_config config = default_config();
	int fd = device_open_clock(CLOCK_REALTIME);
	__u64 due_ns = clock_ns(CLOCK_BOOTTIME) + SOON_NS;

	config.clockid = CLOCK_BOOTTIME;
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
	ASSERT_EQ(get_counters(fd).clockid, CLOCK_BOOTTIME);
	add(fd, TWHEEL_ABS, due_ns, 0);
	ASSERT_EQ(wait_expired_on(fd, CLOCK_BOOTTIME).due_ns, due_ns);
}

TEST(clock_without_a_wheel_is_refused)
{
	static const clockid_t others[] = {
		CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
		CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
		CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME_ALARM,
		CLOCK_BOOTTIME_ALARM, CLOCK_TAI, 10, 12, 100, INT_MAX,
		-1, -2, -5, INT_MIN,
	};
	int fd = device_open_clock(CLOCK_BOOTTIME);
	struct counters before = get_counters(fd);
	struct twheel_config config = default_config();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		test_about("clock %d", others[i]);
		config.clockid = others[i];
		ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config),
			  -EINVAL);
		check_counters(fd, &before);
	}
}

/* --- times on it ------------------------------------------------------------ */

static void check_absolute(int fd, clockid_t clock)
{
	__u64 due_ns = clock_ns(clock) + SOON_NS;
	__u64 id = add(fd, TWHEEL_ABS, due_ns, 0x1234);
	struct twheel_record record = wait_expired_on(fd, clock);

	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.data, 0x1234);
	ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_EQ(record.count, 1);
	check_nothing_ready(fd);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
}

/* (b) (d) */
TEST(clock_absolute_event_comes_once_and_not_before_its_time)
{
	for_each_clock(check_absolute);
}

static void check_relative(int fd, clockid_t clock)
{
	static const __u64 delays[] = {
		1, NSEC_PER_MSEC, SOON_NS, 5 * SOON_NS,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		__u64 before_ns = clock_ns(clock), after_ns;
		struct twheel_record record;

		add(fd, 0, delays[i], i);
		after_ns = clock_ns(clock);
		record = wait_expired_on(fd, clock);
		ASSERT_EQ(record.data, i);
		ASSERT_LE(before_ns + delays[i], record.due_ns);
		ASSERT_LE(record.due_ns, after_ns + delays[i]);
	}
}

/* (d) */
TEST(clock_relative_event_is_due_that_long_after_the_call)
{
	for_each_clock(check_relative);
}

static void check_past(int fd, clockid_t clock)
{
	const __u64 pasts[] = { 0, 1, NSEC_PER_MSEC, clock_ns(clock) - 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pasts); i++) {
		add(fd, TWHEEL_ABS, pasts[i], 0);
		ASSERT_EQ(poll_events(fd, 0), POLLIN);
		ASSERT_EQ(wait_expired_on(fd, clock).due_ns, pasts[i]);
	}
	add(fd, 0, 0, 0);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	wait_expired_on(fd, clock);
}

/* (c) */
TEST(clock_past_time_is_due_at_once)
{
	for_each_clock(check_past);
}

static void check_query(int fd, clockid_t clock)
{
	__u64 due_ns = clock_ns(clock) + FAR_NS, before_ns, after_ns, time_ns;
	__u64 id = add(fd, TWHEEL_ABS, due_ns, 0);

	ASSERT_EQ(query_time(fd, id), due_ns);
	ASSERT_EQ(list_one(fd, id).due_ns, due_ns);
	before_ns = clock_ns(clock);
	id = add(fd, 0, FAR_NS, 0);
	after_ns = clock_ns(clock);
	time_ns = query_time(fd, id);
	ASSERT_LE(before_ns + FAR_NS, time_ns);
	ASSERT_LE(time_ns, after_ns + FAR_NS);
	ASSERT_EQ(list_one(fd, id).due_ns, time_ns);
}

TEST(clock_query_and_list_tell_the_absolute_time_on_it)
{
	for_each_clock(check_query);
}

static void check_never(int fd, clockid_t clock)
{
	const __u64 nevers[] = { NEVER_NS, ~0ULL };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nevers); i++) {
		__u64 absolute = add(fd, TWHEEL_ABS, nevers[i], 0);
		__u64 relative = add(fd, 0, nevers[i], 0);

		add(fd, 0, SOON_NS, 1);
		ASSERT_EQ(wait_expired_on(fd, clock).data, 1);
		ASSERT_EQ(query(fd, absolute, NULL), TWHEEL_ARMED);
		ASSERT_EQ(query(fd, relative, NULL), TWHEEL_ARMED);
		check_nothing_ready(fd);
	}
	/* It is the end of the clock that makes it overflow. */
	add(fd, 0, NEVER_NS - clock_ns(clock), 0);
	add(fd, 0, SOON_NS, 1);
	ASSERT_EQ(wait_expired_on(fd, clock).data, 1);
	check_nothing_ready(fd);
}

TEST(clock_time_from_2_to_the_63_on_is_never)
{
	for_each_clock(check_never);
}

/* Read records of one periodic event, until they cover that many periods. */
static void check_grid(int fd, clockid_t clock, __u64 first_ns,
		       __u64 interval_ns, __u64 periods)
{
	__u64 covered = 0;

	while (covered < periods) {
		struct twheel_record record = wait_expired_on(fd, clock);

		ASSERT_EQ(record.due_ns, first_ns + covered * interval_ns);
		covered += record.count;
		/* All that it covers had come when it was read. */
		ASSERT_GE(clock_ns(clock),
			  first_ns + (covered - 1) * interval_ns);
	}
}

static void check_periodic(int fd, clockid_t clock)
{
	const __u64 interval_ns = 3 * NSEC_PER_MSEC + 333;
	__u64 first_ns = clock_ns(clock) + SOON_NS;
	__u64 id = add_by(fd, make_periodic(TWHEEL_ABS, first_ns, interval_ns,
					    0));

	check_grid(fd, clock, first_ns, interval_ns, 30);
	ASSERT_EQ(cancel(fd, id), 0);

	id = add_by(fd, make_periodic(0, SOON_NS, interval_ns, 0));
	first_ns = query_time(fd, id);
	check_grid(fd, clock, first_ns, interval_ns, 30);
	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
}

/* (f) */
TEST(clock_periodic_event_stays_on_its_grid)
{
	for_each_clock(check_periodic);
}

static void check_modify(int fd, clockid_t clock)
{
	__u64 id = add(fd, 0, FAR_NS, 0);
	__u64 due_ns = clock_ns(clock) + SOON_NS, before_ns;
	struct twheel_record record;

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	ASSERT_EQ(query_time(fd, id), due_ns);
	ASSERT_EQ(wait_expired_on(fd, clock).due_ns, due_ns);

	id = add(fd, TWHEEL_ABS, clock_ns(clock) + FAR_NS, 0);
	before_ns = clock_ns(clock);
	ASSERT_EQ(modify(fd, id, 0, SOON_NS), 0);
	record = wait_expired_on(fd, clock);
	ASSERT_GE(record.due_ns, before_ns + SOON_NS);

	id = add(fd, 0, FAR_NS, 0);
	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, 1), 0);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	ASSERT_EQ(wait_expired_on(fd, clock).due_ns, 1);
}

TEST(clock_modify_takes_absolute_and_relative_times)
{
	for_each_clock(check_modify);
}

/* --- wheels ----------------------------------------------------------------- */

#define ORDERED	500

/* When the first tick is, all having been armed before it; else 0. */
static __u64 arm_in_five_ticks(int fd, clockid_t clock, __u64 delay_ns)
{
	__u64 tick_ns = get_info(fd).tick_ns, due_ns, i;
	struct twheel_cmd cmds[ORDERED];

	due_ns = (clock_ns(clock) + delay_ns) / tick_ns * tick_ns;
	for (i = 0; i < ORDERED; i++)
		cmds[i] = make_add(TWHEEL_ABS, due_ns + i % 5 * tick_ns, i);
	ASSERT_EQ(submit(fd, cmds, ORDERED), ORDERED);
	return clock_ns(clock) < due_ns ? due_ns : 0;
}

static void check_order(int fd, clockid_t clock)
{
	struct twheel_record before = { .due_ns = 0 }, records[ORDERED];
	size_t i;

	/* No order is promised among events that are past due when they are armed. */
	for_each_attempt(lead_ns, SOON_NS) {
		if (arm_in_five_ticks(fd, clock, lead_ns))
			break;
		wait_ready(fd, ORDERED);
		ASSERT_EQ(read_records(fd, records, ORDERED), ORDERED);
	}
	for (i = 0; i < ORDERED; i++) {
		struct twheel_record record = wait_expired_on(fd, clock);

		ASSERT_GE(record.due_ns, before.due_ns);
		if (record.due_ns == before.due_ns)
			ASSERT_GT(record.data, before.data);
		before = record;
	}
	check_nothing_ready(fd);
}

/* (m) */
TEST(clock_events_come_by_tick_and_in_order_of_arming)
{
	pin_to_this_cpu();
	for_each_clock(check_order);
}

/* Events of many distances on all clocks at once. */
#define EACH	2000

static void arm_at_random(int fd, clockid_t clock, __u64 *seed)
{
	size_t i;

	for (i = 0; i < EACH; i++) {
		__u64 delay_ns = next_random(seed) %
				 (1ULL << (16 + next_random(seed) % 14));

		if (next_random(seed) % 2)
			add(fd, 0, delay_ns, i);
		else
			add(fd, TWHEEL_ABS, clock_ns(clock) + delay_ns, i);
	}
}

static void read_each_once(int fd, clockid_t clock)
{
	bool seen[EACH] = { false };
	size_t i;

	for (i = 0; i < EACH; i++) {
		struct twheel_record record = wait_expired_on(fd, clock);

		ASSERT_LT(record.data, EACH);
		ASSERT(!seen[record.data]);
		seen[record.data] = true;
	}
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).finished, EACH);
}

/* (b) (d) */
TEST(clock_all_at_once_give_each_event_once)
{
	int fds[ARRAY_SIZE(clocks)];
	__u64 seed = 1;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		fds[i] = device_open_clock(clocks[i]);
		arm_at_random(fds[i], clocks[i], &seed);
	}
	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		read_each_once(fds[i], clocks[i]);
}

TEST(clock_events_go_to_the_wheel_of_their_clock)
{
	size_t i, j;

	need_debugfs();
	pin_to_this_cpu();
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = device_open_clock(clocks[i]), cpu = sched_getcpu();
		long long before[ARRAY_SIZE(clocks)], now;
		__u64 due_ns = clock_ns(clocks[i]) + FAR_NS;

		add(fd, TWHEEL_ABS, due_ns, 0);
		for (j = 0; j < ARRAY_SIZE(clocks); j++)
			before[j] = base_number(cpu, clocks[j], "armed");
		ASSERT_GE(before[i], 1);
		add_many(fd, TWHEEL_ABS, due_ns, 10, NULL);
		for (j = 0; j < ARRAY_SIZE(clocks); j++) {
			now = base_number(cpu, clocks[j], "armed");
			ASSERT_EQ(now, before[j] + (i == j ? 10 : 0));
		}
	}
}
