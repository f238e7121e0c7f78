// SPDX-License-Identifier: GPL-2.0
/*
 * The alarms: one suite for both backends.
 *
 * Tests of the device are skipped where there is none. Two kinds of tests run only where
 * they are named, as tools/test/alarm does in a machine of its own: clock_*, which set the
 * wall clock, and full_*, which want a module that was loaded with max_events=1000.
 *
 * alarm_fake_test is the same program with fake_wheel.c in place of the device: full_* there
 * want FAKE_WHEEL_ROOM=1000, and faulty_* FAKE_WHEEL_FAULT=2.
 */
#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "alarm/backend.h"
#include "common/time.h"
#include "test/device/harness.h"

#define MS_NS		NSEC_PER_MSEC
#define SECOND_NS	NSEC_PER_SEC
#define HOUR_NS		(3600 * SECOND_NS)
#define DAY_NS		(24 * HOUR_NS)

/* The number of ids that alarms_take() is asked for. */
#define SOME		64

static const char * const clock_names[] = { "boot", "wall" };

/* The device and the process, or the end of the test. */
static struct alarms *open_backend(enum alarm_backend backend)
{
	struct alarms *alarms;
	int ret = alarms_open(&alarms, backend);

	if (backend == ALARM_DEVICE && ret)
		test_skip("/dev/twheel: %s", strerror(-ret));
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(alarms_backend(alarms), backend);
	return alarms;
}

static void run_with(enum alarm_backend backend, void (*run)(struct alarms *alarms))
{
	struct alarms *alarms = open_backend(backend);

	run(alarms);
	alarms_close(alarms);
}

/* A test of each backend. */
#define BOTH_REGISTER(fn, process_fn, device_fn, register)		\
	static void fn(struct alarms *alarms);				\
	register(process_fn)						\
	{								\
		run_with(ALARM_PROCESS, fn);				\
	}								\
	register(device_fn)						\
	{								\
		run_with(ALARM_DEVICE, fn);				\
	}								\
	static void fn(struct alarms *alarms)

#define BOTH(fn)	BOTH_REGISTER(fn, process_##fn, device_##fn, TEST)

/* A test of each backend that sets the clock of the machine: process_* must not name it. */
#define BOTH_CLOCK(fn)	BOTH_REGISTER(fn, clock_process_##fn, clock_device_##fn, TEST_NAMED)

static uint64_t boot_ns(void)
{
	return alarms_now_ns(ALARM_BOOT);
}

static bool is_readable(struct alarms *alarms, int timeout_ms)
{
	struct pollfd fd = { .fd = alarms_fd(alarms), .events = POLLIN };

	return poll(&fd, 1, timeout_ms) == 1;
}

/* Sleep until something can be taken, and take at most @nr; it may be nothing. */
static size_t wait_take(struct alarms *alarms, uint64_t *ids, size_t nr)
{
	alarms_flush(alarms);
	ASSERT(is_readable(alarms, -1));
	return alarms_take(alarms, ids, nr);
}

/* The next id, which has to be the only one that is due. */
static uint64_t wait_one(struct alarms *alarms)
{
	uint64_t ids[SOME];
	size_t nr;

	do {
		nr = wait_take(alarms, ids, SOME);
	} while (!nr);
	ASSERT_EQ(nr, 1);
	return ids[0];
}

/* Take @nr ids, however many calls that takes, and no more. */
static void wait_all(struct alarms *alarms, uint64_t *ids, size_t nr)
{
	size_t taken = 0;

	while (taken < nr)
		taken += wait_take(alarms, ids + taken, nr - taken);
}

/* Nothing is due, and no file is readable. */
static void check_quiet(struct alarms *alarms)
{
	uint64_t ids[SOME];

	ASSERT_EQ(alarms_take(alarms, ids, SOME), 0);
	alarms_flush(alarms);
	ASSERT(!is_readable(alarms, 0));
}

/* The same, of a time that may have passed: false if it has. */
static bool check_quiet_until(struct alarms *alarms, uint64_t due_ns)
{
	uint64_t ids[SOME];
	size_t nr = alarms_take(alarms, ids, SOME);
	bool readable;

	alarms_flush(alarms);
	readable = is_readable(alarms, 0);
	if (boot_ns() >= due_ns)
		return false;
	ASSERT_EQ(nr, 0);
	ASSERT(!readable);
	return true;
}

static void sleep_until(enum alarm_clock clock, uint64_t time_ns)
{
	while (alarms_now_ns(clock) < time_ns)
		poll(NULL, 0, 1);
}

/* Something is due soon: the kernel has it, and its time has passed. */
static void let_fire(struct alarms *alarms, uint64_t due_ns)
{
	alarms_flush(alarms);
	sleep_until(ALARM_BOOT, due_ns);
	ASSERT(is_readable(alarms, -1));
}

static struct alarm *make_alarms(size_t nr)
{
	struct alarm *made = calloc(nr, sizeof(*made));

	ASSERT(made);
	return made;
}

static uint64_t random_below(uint64_t limit)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

/* --- times ------------------------------------------------------------------------------ */

BOTH(time_comes_and_is_not_early)
{
	enum { NR = 200 };
	struct alarm *made = make_alarms(NR);
	uint64_t due_ns[NR], ids[NR], i;

	for (i = 0; i < NR; i++) {
		enum alarm_clock clock = i % ALARM_CLOCKS;

		due_ns[i] = alarms_now_ns(clock) + random_below(100 * MS_NS);
		alarm_add(alarms, &made[i], i, clock, due_ns[i]);
	}
	for (i = 0; i < NR; i++) {
		wait_all(alarms, ids, 1);
		test_about("alarm %llu", (unsigned long long)ids[0]);
		ASSERT_LE(due_ns[ids[0]], alarms_now_ns(ids[0] % ALARM_CLOCKS));
		ASSERT(!alarm_pending(&made[ids[0]]));
		due_ns[ids[0]] = UINT64_MAX;
	}
	check_quiet(alarms);
	free(made);
}

BOTH(past_time_comes_at_once)
{
	struct alarm made[6] = { 0 };
	uint64_t ids[6], sum = 0;
	int clock, i;

	for (clock = 0; clock < ALARM_CLOCKS; clock++) {
		uint64_t now_ns = alarms_now_ns(clock);
		uint64_t due_ns[] = { 0, 1, now_ns };

		for (i = 0; i < 3; i++)
			alarm_add(alarms, &made[3 * clock + i], 1 << (3 * clock + i), clock,
				  due_ns[i]);
	}
	wait_all(alarms, ids, 6);
	for (i = 0; i < 6; i++)
		sum += ids[i];
	ASSERT_EQ(sum, 63);
	check_quiet(alarms);
}

BOTH(far_time_does_not_come)
{
	uint64_t far_ns[] = { DAY_NS, 365 * DAY_NS, 200 * 365 * DAY_NS, INT64_MAX,
			      INT64_MAX + 1ULL, UINT64_MAX - 1, UINT64_MAX };
	enum { NR = sizeof(far_ns) / sizeof(*far_ns) };
	struct alarm made[2 * NR] = { 0 }, soon = { 0 };
	uint64_t now_ns;
	size_t i;

	for (i = 0; i < 2 * NR; i++) {
		now_ns = alarms_now_ns(i / NR);
		if (far_ns[i % NR] > UINT64_MAX - now_ns)
			now_ns = 0;
		alarm_add(alarms, &made[i], i, i / NR, now_ns + far_ns[i % NR]);
	}
	alarm_add(alarms, &soon, 77, ALARM_BOOT, boot_ns() + 30 * MS_NS);
	ASSERT_EQ(wait_one(alarms), 77);
	check_quiet(alarms);
	for (i = 0; i < 2 * NR; i++) {
		ASSERT(alarm_pending(&made[i]));
		alarm_cancel(alarms, &made[i]);
		ASSERT(!alarm_pending(&made[i]));
	}
	check_quiet(alarms);
}

/* --- order ------------------------------------------------------------------------------ */

/*
 * Arm many for one instant or later, which is far enough away: try again with more time if it
 * came before all were armed. Returns the instant.
 */
static uint64_t arm_in_time(struct alarms *alarms, struct alarm *made, size_t nr,
			    enum alarm_clock clock,
			    void (*arm)(struct alarms *alarms, struct alarm *made, size_t nr,
					enum alarm_clock clock, uint64_t due_ns))
{
	uint64_t ahead_ns, due_ns;
	size_t i;

	for (ahead_ns = 250 * MS_NS;; ahead_ns *= 2) {
		due_ns = alarms_now_ns(clock) + ahead_ns;
		arm(alarms, made, nr, clock, due_ns);
		alarms_flush(alarms);
		if (alarms_now_ns(clock) < due_ns)
			return due_ns;
		for (i = 0; i < nr; i++)
			alarm_cancel(alarms, &made[i]);
	}
}

/* The last one first. */
static void arm_backwards(struct alarms *alarms, struct alarm *made, size_t nr,
			  enum alarm_clock clock, uint64_t due_ns)
{
	while (nr--)
		alarm_add(alarms, &made[nr], nr, clock, due_ns + nr * 2 * MS_NS);
}

static void check_order_by_time(struct alarms *alarms, enum alarm_clock clock)
{
	enum { NR = 50 };
	struct alarm *made = make_alarms(NR);
	uint64_t ids[NR], due_ns;
	int i;

	test_about("clock %s", clock_names[clock]);
	due_ns = arm_in_time(alarms, made, NR, clock, arm_backwards);
	sleep_until(clock, due_ns + NR * 2 * MS_NS);
	wait_all(alarms, ids, NR);
	for (i = 0; i < NR; i++)
		ASSERT_EQ(ids[i], i);
	check_quiet(alarms);
	free(made);
}

BOTH(order_is_that_of_times)
{
	check_order_by_time(alarms, ALARM_BOOT);
	check_order_by_time(alarms, ALARM_WALL);
}

/* From near and from far; and every third is moved there last, and so is the youngest. */
static void arm_and_move(struct alarms *alarms, struct alarm *made, size_t nr,
			 enum alarm_clock clock, uint64_t due_ns)
{
	uint64_t now_ns = alarms_now_ns(clock), i;

	for (i = 0; i < nr; i++) {
		uint64_t first_ns = i % 3 ? due_ns : due_ns - 1000 * i;

		alarm_add(alarms, &made[i], i, clock, first_ns);
		if (i % 50 == 0)
			alarms_flush(alarms);
		if (i % 100 == 99)
			sleep_until(clock, now_ns + (due_ns - now_ns) / (2 * nr) * i);
	}
	for (i = 0; i < nr; i += 3)
		alarm_move(alarms, &made[i], due_ns);
}

static void check_order_of_arming(struct alarms *alarms, enum alarm_clock clock)
{
	enum { NR = 300 };
	struct alarm *made = make_alarms(NR);
	uint64_t ids[NR], i;

	test_about("clock %s", clock_names[clock]);
	arm_in_time(alarms, made, NR, clock, arm_and_move);
	for (i = 0; i < NR / 2; i++)
		wait_all(alarms, &ids[i], 1);
	wait_all(alarms, ids + i, NR - i);
	for (i = 0; i < NR; i++) {
		uint64_t third = NR / 3, young = i - 2 * third;

		ASSERT_EQ(ids[i], i < 2 * third ? i / 2 * 3 + 1 + i % 2 : young * 3);
	}
	free(made);
}

BOTH(order_of_one_time_is_that_of_arming)
{
	check_order_of_arming(alarms, ALARM_BOOT);
	check_order_of_arming(alarms, ALARM_WALL);
}

static void arm_herd(struct alarms *alarms, struct alarm *made, size_t nr,
		     enum alarm_clock clock, uint64_t due_ns)
{
	size_t i;

	for (i = 0; i < nr; i++)
		alarm_add(alarms, &made[i], i, clock, due_ns);
}

BOTH(herd_of_one_instant_comes_whole_and_in_order)
{
	const size_t nr = test_count(100000);
	struct alarm *made = make_alarms(nr);
	uint64_t *ids = calloc(nr, sizeof(*ids)), due_ns;
	size_t i;

	ASSERT(ids);
	due_ns = arm_in_time(alarms, made, nr, ALARM_BOOT, arm_herd);
	wait_all(alarms, ids, nr);
	ASSERT_LE(due_ns, boot_ns());
	for (i = 0; i < nr; i++)
		ASSERT_EQ(ids[i], i);
	check_quiet(alarms);
	free(ids);
	free(made);
}

/* --- changes ---------------------------------------------------------------------------- */

/* Free memory at once, so that the sanitizer finds a later use. */
BOTH(cancelled_one_does_not_come_and_its_memory_is_free)
{
	uint64_t due_ns = boot_ns() + 50 * MS_NS;
	struct alarm *made[300], last = { 0 };
	int i;

	for (i = 0; i < 300; i++) {
		made[i] = make_alarms(1);
		alarm_add(alarms, made[i], i, ALARM_BOOT, due_ns);
	}
	/* A third before the kernel knows of it, a third after, a third when it has fired. */
	for (i = 0; i < 300; i++) {
		if (i == 100)
			alarms_flush(alarms);
		if (i == 200)
			let_fire(alarms, due_ns);
		alarm_cancel(alarms, made[i]);
		ASSERT(!alarm_pending(made[i]));
		free(made[i]);
	}
	check_quiet(alarms);
	alarm_add(alarms, &last, 1000, ALARM_BOOT, boot_ns() + 20 * MS_NS);
	ASSERT_EQ(wait_one(alarms), 1000);
}

/* Arm four, and move them all to @due_ns. */
static void arm_and_move_four(struct alarms *alarms, struct alarm *made, uint64_t due_ns)
{
	uint64_t now_ns = boot_ns();
	int i;

	for (i = 0; i < 3; i++)
		alarm_add(alarms, &made[i], i, ALARM_BOOT, now_ns + 20 * MS_NS);
	alarm_add(alarms, &made[3], 3, ALARM_BOOT, now_ns + DAY_NS);
	/* Before the kernel knows of it, after, and when it has fired; and to an earlier time. */
	alarm_move(alarms, &made[0], due_ns);
	alarms_flush(alarms);
	alarm_move(alarms, &made[1], due_ns + MS_NS);
	alarm_move(alarms, &made[1], due_ns);
	let_fire(alarms, now_ns + 20 * MS_NS);
	alarm_move(alarms, &made[2], due_ns);
	alarm_move(alarms, &made[3], due_ns);
}

BOTH(moved_one_comes_once_at_its_last_time)
{
	uint64_t ahead_ns, due_ns, ids[4];
	struct alarm made[4] = { 0 };
	int i;

	for (ahead_ns = 300 * MS_NS;; ahead_ns *= 2) {
		due_ns = boot_ns() + ahead_ns;
		arm_and_move_four(alarms, made, due_ns);
		if (check_quiet_until(alarms, due_ns))
			break;
		for (i = 0; i < 4; i++)
			alarm_cancel(alarms, &made[i]);
	}
	wait_all(alarms, ids, 4);
	ASSERT_LE(due_ns, boot_ns());
	for (i = 0; i < 4; i++)
		ASSERT_EQ(ids[i], i);
	check_quiet(alarms);
}

BOTH(fired_one_can_be_put_off_and_taken_later)
{
	struct alarm moved = { 0 }, other = { 0 };
	uint64_t id;
	int i;

	for (i = 0; i < 20; i++) {
		uint64_t due_ns = boot_ns() + 2 * MS_NS, later_ns;

		alarm_add(alarms, &moved, 1, ALARM_BOOT, due_ns);
		alarm_add(alarms, &other, 2, ALARM_BOOT, due_ns);
		let_fire(alarms, due_ns);
		later_ns = boot_ns() + 50 * MS_NS;
		alarm_move(alarms, &moved, later_ns);
		wait_all(alarms, &id, 1);
		ASSERT_EQ(id, 2);
		wait_all(alarms, &id, 1);
		ASSERT_EQ(id, 1);
		ASSERT_LE(later_ns, boot_ns());
	}
}

BOTH(taken_one_can_be_armed_again)
{
	struct alarm alarm = { 0 };
	uint64_t i;

	for (i = 0; i < 50; i++) {
		uint64_t due_ns = boot_ns() + 3 * MS_NS;

		/* By alarm_move() as well, which keeps the id. */
		if (i % 2)
			alarm_move(alarms, &alarm, due_ns);
		else
			alarm_add(alarms, &alarm, i, ALARM_BOOT, due_ns);
		ASSERT(alarm_pending(&alarm));
		ASSERT_EQ(wait_one(alarms), i / 2 * 2);
		ASSERT(!alarm_pending(&alarm));
		ASSERT_LE(due_ns, boot_ns());
	}
}

BOTH(alarm_goes_to_another_clock)
{
	struct alarm alarm = { 0 };
	uint64_t due_ns;

	alarm_add(alarms, &alarm, 1, ALARM_BOOT, boot_ns() + DAY_NS);
	alarm_cancel(alarms, &alarm);
	due_ns = alarms_now_ns(ALARM_WALL) + 10 * MS_NS;
	alarm_add(alarms, &alarm, 2, ALARM_WALL, due_ns);
	ASSERT_EQ(wait_one(alarms), 2);
	ASSERT_LE(due_ns, alarms_now_ns(ALARM_WALL));
}

/* Every second one, and another day's; half of these are cancelled. */
static void arm_move_and_cancel(struct alarms *alarms, struct alarm *made, size_t nr,
				enum alarm_clock clock, uint64_t due_ns)
{
	uint64_t i;

	for (i = 0; i < nr; i++)
		alarm_add(alarms, &made[i], i, clock, due_ns + 1000 * i);
	for (i = 0; i < nr; i++)
		alarm_move(alarms, &made[i], i % 2 ? due_ns : due_ns + DAY_NS);
	for (i = 0; i < nr; i += 4)
		alarm_cancel(alarms, &made[i]);
}

BOTH(more_changes_than_a_batch_holds_count_each)
{
	enum { NR = 10000 };
	struct alarm *made = make_alarms(NR);
	uint64_t *ids = calloc(NR, sizeof(*ids)), i;

	ASSERT(ids);
	arm_in_time(alarms, made, NR, ALARM_BOOT, arm_move_and_cancel);
	wait_all(alarms, ids, NR / 2);
	for (i = 0; i < NR / 2; i++)
		ASSERT_EQ(ids[i], 2 * i + 1);
	check_quiet(alarms);
	for (i = 0; i < NR; i++)
		ASSERT_EQ(alarm_pending(&made[i]), i % 4 == 2);
	free(ids);
	free(made);
}

/* --- the caller's side -------------------------------------------------------------------- */

BOTH(nothing_armed_is_nothing_to_do)
{
	struct alarm idle = { 0 };
	uint64_t id;

	ASSERT(!alarm_pending(&idle));
	alarm_cancel(alarms, &idle);
	check_quiet(alarms);
	check_quiet(alarms);
	ASSERT_EQ(alarms_clock_was_set(alarms), 0);
	ASSERT_EQ(alarms_take(alarms, &id, 0), 0);
}

/*
 * Twenty are due, which have @ns to come where they are taken from. Takes them all; false if
 * a take gave fewer than it was asked for.
 */
static bool take_in_pieces(struct alarms *alarms, uint64_t ns)
{
	static const size_t pieces[] = { 1, 1, 1, 1, 1, 3, 3, 3, 3, 3 };
	struct alarm made[2][10] = { 0 };
	size_t taken = 0, piece, nr;
	uint64_t ids[20], now_ns;
	bool whole = true;
	int clock, i;

	for (clock = 0; clock < ALARM_CLOCKS; clock++) {
		now_ns = alarms_now_ns(clock);
		for (i = 0; i < 10; i++)
			alarm_add(alarms, &made[clock][i], i, clock, now_ns);
	}
	alarms_flush(alarms);
	sleep_until(ALARM_BOOT, boot_ns() + ns);
	for (piece = 0; taken < 20; piece += piece < 9) {
		size_t most = piece < 9 ? pieces[piece] : 20;

		nr = piece < 5 ? alarms_take(alarms, ids, most) : wait_take(alarms, ids, most);
		ASSERT_LE(nr, most);
		whole &= nr == pieces[piece];
		taken += nr;
	}
	check_quiet(alarms);
	return whole;
}

/* Of the device they come in an interrupt, for which the processor may have to stand still. */
BOTH(take_gives_as_many_as_it_is_asked_for)
{
	uint64_t ns = 50 * MS_NS;

	while (!take_in_pieces(alarms, ns)) {
		ns *= 2;
		ASSERT_LT(ns, 60 * SECOND_NS);
	}
}

/* One clock that always has something due does not keep the other from coming. */
BOTH(clocks_take_turns)
{
	struct alarm busy[4] = { 0 }, wall = { 0 };
	uint64_t id;
	int i;

	for (i = 0; i < 4; i++)
		alarm_add(alarms, &busy[i], i, ALARM_BOOT, 0);
	alarm_add(alarms, &wall, 99, ALARM_WALL, 0);
	do {
		wait_all(alarms, &id, 1);
		if (id != 99)
			alarm_add(alarms, &busy[id], id, ALARM_BOOT, 0);
	} while (id != 99);
}

BOTH(process_has_alarms_of_its_own)
{
	struct alarm alarm = { 0 };
	struct alarms *own;
	pid_t child;
	int status;

	alarm_add(alarms, &alarm, 1, ALARM_BOOT, boot_ns() + 100 * MS_NS);
	alarms_flush(alarms);
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		struct alarm other = { 0 };

		own = open_backend(alarms_backend(alarms));
		alarm_add(own, &other, 2, ALARM_BOOT, boot_ns() + 50 * MS_NS);
		ASSERT_EQ(wait_one(own), 2);
		sleep_until(ALARM_BOOT, boot_ns() + 100 * MS_NS);
		check_quiet(own);
		alarms_close(own);
		_exit(0);
	}
	ASSERT_EQ(wait_one(alarms), 1);
	ASSERT_EQ(waitpid(child, &status, 0), child);
	ASSERT_EQ(status, 0);
	check_quiet(alarms);
}

BOTH(close_ends_what_is_armed)
{
	struct alarm *made = make_alarms(20);
	struct alarms *own = open_backend(alarms_backend(alarms));
	int i;

	for (i = 0; i < 20; i++) {
		alarm_add(own, &made[i], i, i % 2, i % 3 ? UINT64_MAX : 0);
		if (i == 10)
			alarms_flush(own);
	}
	free(made);
	alarms_close(own);
	check_quiet(alarms);
}

TEST(auto_takes_the_device_where_there_is_one)
{
	struct alarms *alarms, *device;
	bool has_device = !alarms_open(&device, ALARM_DEVICE);

	ASSERT_EQ(alarms_open(&alarms, ALARM_AUTO), 0);
	ASSERT_EQ(alarms_backend(alarms), has_device ? ALARM_DEVICE : ALARM_PROCESS);
	ASSERT(!strcmp(alarms_name(alarms), has_device ? "device" : "process"));
	if (has_device)
		ASSERT_EQ(access("/dev/twheel", R_OK | W_OK), 0);
	else
		ASSERT(!device);
}

TEST(open_says_that_there_are_no_files_left)
{
	const struct rlimit few = { .rlim_cur = 3, .rlim_max = 3 };
	struct alarms *alarms;

	ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	ASSERT_EQ(alarms_open(&alarms, ALARM_PROCESS), -EMFILE);
	ASSERT(!alarms);
	ASSERT_EQ(alarms_open(&alarms, ALARM_DEVICE), -EMFILE);
	ASSERT_EQ(alarms_open(&alarms, ALARM_AUTO), -EMFILE);
}

/* --- a model -------------------------------------------------------------------------------- */

/**
 * struct model - what every alarm should do
 * @alarms: the alarms.
 * @nr: how many.
 * @alarm: each; NULL: it is cancelled, and its memory freed.
 * @due_ns: the last time that each was given; 0: its id must not come.
 * @came: how many ids came.
 */
struct model {
	struct alarms *alarms;
	size_t nr;
	struct alarm **alarm;
	uint64_t *due_ns;
	size_t came;
};

static enum alarm_clock model_clock(size_t i)
{
	return i % 4 == 3 ? ALARM_WALL : ALARM_BOOT;
}

/* Mostly soon; some past, some far. */
static uint64_t model_time_ns(enum alarm_clock clock)
{
	uint64_t now_ns = alarms_now_ns(clock);

	switch (random_below(10)) {
	case 0:
		return now_ns - random_below(DAY_NS) % now_ns;
	case 1:
		return now_ns + DAY_NS + random_below(1000 * DAY_NS);
	case 2:
		return now_ns + 20 * MS_NS;
	default:
		return now_ns + random_below(40 * MS_NS);
	}
}

static void model_arm(struct model *model, size_t i)
{
	enum alarm_clock clock = model_clock(i);
	uint64_t time_ns = model_time_ns(clock);

	if (model->alarm[i]) {
		alarm_move(model->alarms, model->alarm[i], time_ns);
	} else {
		model->alarm[i] = make_alarms(1);
		alarm_add(model->alarms, model->alarm[i], i, clock, time_ns);
	}
	model->due_ns[i] = time_ns;
}

static void model_cancel(struct model *model, size_t i)
{
	if (!model->alarm[i])
		return;
	ASSERT_EQ(alarm_pending(model->alarm[i]), !!model->due_ns[i]);
	alarm_cancel(model->alarms, model->alarm[i]);
	free(model->alarm[i]);
	model->alarm[i] = NULL;
	model->due_ns[i] = 0;
}

static void model_take(struct model *model)
{
	uint64_t ids[SOME];
	size_t nr = alarms_take(model->alarms, ids, 1 + random_below(SOME)), i;

	for (i = 0; i < nr; i++) {
		test_about("alarm %llu", (unsigned long long)ids[i]);
		ASSERT_LT(ids[i], model->nr);
		ASSERT_NE(model->due_ns[ids[i]], 0);
		ASSERT_LE(model->due_ns[ids[i]], alarms_now_ns(model_clock(ids[i])));
		ASSERT(!alarm_pending(model->alarm[ids[i]]));
		model->due_ns[ids[i]] = 0;
		model->came++;
	}
}

static void model_step(struct model *model)
{
	switch (random_below(16)) {
	case 0:
	case 1:
		alarms_flush(model->alarms);
		break;
	case 2:
		model_take(model);
		break;
	case 3:
		alarms_flush(model->alarms);
		is_readable(model->alarms, 1);
		break;
	case 4:
	case 5:
	case 6:
		model_cancel(model, random_below(model->nr));
		break;
	default:
		model_arm(model, random_below(model->nr));
	}
}

/* Is one armed for a time before @limit_ns from now? */
static bool model_has_near(const struct model *model, uint64_t limit_ns)
{
	size_t i;

	for (i = 0; i < model->nr; i++)
		if (model->due_ns[i] &&
		    model->due_ns[i] < alarms_now_ns(model_clock(i)) + limit_ns)
			return true;
	return false;
}

/* Whatever is near comes, and what is far does not. */
static void model_finish(struct model *model)
{
	size_t i;

	while (model_has_near(model, HOUR_NS)) {
		alarms_flush(model->alarms);
		ASSERT(is_readable(model->alarms, -1));
		model_take(model);
	}
	check_quiet(model->alarms);
	for (i = 0; i < model->nr; i++)
		model_cancel(model, i);
	check_quiet(model->alarms);
}

static void run_model(struct alarms *alarms, size_t nr, unsigned long steps)
{
	struct model model = { .alarms = alarms, .nr = nr };

	model.alarm = calloc(nr, sizeof(*model.alarm));
	model.due_ns = calloc(nr, sizeof(*model.due_ns));
	ASSERT(model.alarm && model.due_ns);
	while (steps--)
		model_step(&model);
	model_finish(&model);
	printf("# %zu came\n", model.came);
	ASSERT_GT(model.came, 0);
	free(model.alarm);
	free(model.due_ns);
}

BOTH(few_alarms_agree_with_a_model)
{
	run_model(alarms, 20, test_count(100000));
}

BOTH(many_alarms_agree_with_a_model)
{
	run_model(alarms, 20000, test_count(300000));
}

/* --- the clock is set: these run where they are named ------------------------------- */

static void set_machine_clock(uint64_t time_ns)
{
	struct timespec time = time_spec(time_ns);

	if (clock_settime(CLOCK_REALTIME, &time))
		test_skip("the clock cannot be set: %s", strerror(errno));
}

static uint64_t wall_ns(void)
{
	return alarms_now_ns(ALARM_WALL);
}

/* Returns what the clock says now. */
static uint64_t move_clock(int64_t by_ns)
{
	uint64_t time_ns = wall_ns() + by_ns;

	set_machine_clock(time_ns);
	return time_ns;
}

/* It was set, which can be seen by who waits, and is told once. */
static void check_set_is_told(struct alarms *alarms)
{
	ASSERT(is_readable(alarms, -1));
	ASSERT_GT(alarms_clock_was_set(alarms), 0);
	ASSERT_EQ(alarms_clock_was_set(alarms), 0);
}

BOTH_CLOCK(set_forward_brings_what_has_become_due)
{
	struct alarm near = { 0 }, far = { 0 }, boot = { 0 };
	uint64_t now_ns = wall_ns();

	alarm_add(alarms, &near, 1, ALARM_WALL, now_ns + HOUR_NS);
	alarm_add(alarms, &far, 2, ALARM_WALL, now_ns + 5 * HOUR_NS);
	alarm_add(alarms, &boot, 3, ALARM_BOOT, boot_ns() + HOUR_NS);
	check_quiet(alarms);
	move_clock(2 * HOUR_NS);
	check_set_is_told(alarms);
	ASSERT_EQ(wait_one(alarms), 1);
	check_quiet(alarms);
	move_clock(-(int64_t)2 * HOUR_NS);
	check_set_is_told(alarms);
	check_quiet(alarms);
}

BOTH_CLOCK(set_is_remembered_by_take)
{
	uint64_t id;

	move_clock(HOUR_NS);
	ASSERT_EQ(alarms_take(alarms, &id, 1), 0);
	alarms_flush(alarms);
	ASSERT(!is_readable(alarms, 0));
	move_clock(-(int64_t)HOUR_NS);
	ASSERT_EQ(alarms_take(alarms, &id, 1), 0);
	ASSERT_EQ(alarms_clock_was_set(alarms), 2);
	ASSERT_EQ(alarms_clock_was_set(alarms), 0);
}

BOTH_CLOCK(set_back_puts_off_and_lets_new_ones_come_first)
{
	struct alarm old = { 0 }, new = { 0 }, past = { 0 };
	uint64_t due_ns, now_ns;

	/* The wheel stands at the present. */
	alarm_add(alarms, &past, 1, ALARM_WALL, wall_ns());
	ASSERT_EQ(wait_one(alarms), 1);
	due_ns = wall_ns() + HOUR_NS;
	alarm_add(alarms, &old, 2, ALARM_WALL, due_ns);
	alarms_flush(alarms);
	now_ns = move_clock(-(int64_t)DAY_NS);
	check_set_is_told(alarms);
	alarm_add(alarms, &new, 3, ALARM_WALL, now_ns + 20 * MS_NS);
	ASSERT_EQ(wait_one(alarms), 3);
	ASSERT_LE(now_ns + 20 * MS_NS, wall_ns());
	check_quiet(alarms);
	ASSERT(alarm_pending(&old));
	move_clock(DAY_NS + HOUR_NS);
	ASSERT_EQ(wait_one(alarms), 2);
	ASSERT_LE(due_ns, wall_ns());
	move_clock(-(int64_t)HOUR_NS);
}

BOTH_CLOCK(set_back_after_the_expiry_was_not_taken_makes_no_noise)
{
	struct alarm alarm = { 0 };
	uint64_t ids[SOME];
	size_t nr;

	alarm_add(alarms, &alarm, 1, ALARM_WALL, wall_ns() + 10 * MS_NS);
	alarms_flush(alarms);
	ASSERT(is_readable(alarms, -1));
	move_clock(-(int64_t)HOUR_NS);
	/* It was due when the clock said so: it may come, or wait for the time once more. */
	nr = alarms_take(alarms, ids, SOME);
	ASSERT_EQ(nr, !alarm_pending(&alarm));
	check_quiet(alarms);
	move_clock(HOUR_NS + SECOND_NS);
	if (!nr)
		ASSERT_EQ(wait_one(alarms), 1);
	alarms_clock_was_set(alarms);
	check_quiet(alarms);
}

/* Does a base of the device have nodes, and its first wheel only? */
static bool lacks_wheels(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned int armed = 0, wheels = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "armed: %u", &armed) != 1 &&
		    sscanf(line, "wheels: %u", &wheels) == 1)
			break;
	if (file)
		fclose(file);
	return armed && wheels == 1;
}

/*
 * A work makes the device's other wheels when the clock was set back. What has become due
 * before comes in the order of arming. The work may have nothing to do, or not be seen
 * without debugfs: then this ends by itself.
 */
static void wait_for_wheels(void)
{
	unsigned int tries;
	size_t i, lacking;
	glob_t bases;

	for (tries = 0, lacking = 1; lacking && tries < 2000; tries++) {
		lacking = 0;
		if (glob("/sys/kernel/debug/twheel/cpu*-realtime", 0, NULL, &bases))
			return;
		for (i = 0; i < bases.gl_pathc; i++)
			lacking += lacks_wheels(bases.gl_pathv[i]);
		globfree(&bases);
		if (lacking)
			poll(NULL, 0, 1);
	}
}

/* Arm @each alarms after each of @times times that the clock is set back by an hour. */
static void arm_and_set_back(struct alarms *alarms, struct alarm *made, uint64_t *due_ns,
			     size_t times, size_t each)
{
	size_t i;

	for (i = 0; i < times * each; i++) {
		if (i % each == 0) {
			move_clock(-(int64_t)HOUR_NS);
			alarms_clock_was_set(alarms);
			check_quiet(alarms);
		}
		due_ns[i] = wall_ns() + HOUR_NS / 2 + random_below(3 * HOUR_NS);
		alarm_add(alarms, &made[i], i, ALARM_WALL, due_ns[i]);
	}
	check_quiet(alarms);
}

/* All are due now: each comes once, and if @ordered, by ticks, which are at most 2 ms. */
static void check_all_come(struct alarms *alarms, uint64_t *due_ns, size_t nr, bool ordered)
{
	uint64_t *ids = calloc(nr, sizeof(*ids)), before_ns = 0, i;

	ASSERT(ids);
	wait_all(alarms, ids, nr);
	for (i = 0; i < nr; i++) {
		uint64_t this_ns = due_ns[ids[i]];

		test_about("id %llu", (unsigned long long)ids[i]);
		ASSERT_LE(this_ns, wall_ns());
		if (ordered)
			ASSERT_LE(before_ns, this_ns + 2 * MS_NS);
		before_ns = this_ns;
		due_ns[ids[i]] = UINT64_MAX;
	}
	free(ids);
}

static void set_back_many_times(struct alarms *alarms, size_t times, bool ordered)
{
	enum { EACH = 500 };
	struct alarm *made = make_alarms(times * EACH);
	uint64_t *due_ns = calloc(times * EACH, sizeof(*due_ns));

	ASSERT(due_ns);
	arm_and_set_back(alarms, made, due_ns, times, EACH);
	if (ordered)
		wait_for_wheels();
	move_clock((times + 4) * HOUR_NS);
	check_all_come(alarms, due_ns, times * EACH, ordered);
	move_clock(-(int64_t)4 * HOUR_NS);
	alarms_clock_was_set(alarms);
	check_quiet(alarms);
	free(made);
	free(due_ns);
}

/* As many wheels as there are have something. */
BOTH_CLOCK(set_back_twice_keeps_order)
{
	set_back_many_times(alarms, 2, true);
}

/* There are not wheels enough, and the device empties them while alarms become due. */
BOTH_CLOCK(set_back_many_times_loses_nothing)
{
	set_back_many_times(alarms, 12, false);
}

/* --- a device that is full: these run where they are named -------------------------- */

/* Events that each wheel has room for: the parameter max_events. */
#define LIMIT		1000

/* Alarms on the device with @nr armed by the boot clock, far away. */
static struct alarms *open_with_far(struct alarm *made, size_t nr)
{
	struct alarms *alarms = open_backend(ALARM_DEVICE);
	size_t i;

	for (i = 0; i < nr; i++)
		alarm_add(alarms, &made[i], i, ALARM_BOOT, boot_ns() + HOUR_NS);
	alarms_flush(alarms);
	return alarms;
}

static size_t nr_in_state(const struct alarm *made, size_t nr, enum alarm_state state)
{
	size_t i, found = 0;

	for (i = 0; i < nr; i++)
		found += made[i].state == state;
	return found;
}

TEST_NAMED(full_device_has_as_many_as_it_has_room_for_and_the_process_the_rest)
{
	struct alarm *made = make_alarms(LIMIT + 500), wall = { 0 };
	struct alarms *alarms = open_with_far(made, LIMIT + 500);

	ASSERT_EQ(nr_in_state(made, LIMIT, ALARM_ON_DEVICE), LIMIT);
	ASSERT_EQ(nr_in_state(made + LIMIT, 500, ALARM_IN_PROCESS), 500);
	check_quiet(alarms);
	/* The other clock's wheel has room of its own. */
	alarm_add(alarms, &wall, 7, ALARM_WALL, alarms_now_ns(ALARM_WALL) + HOUR_NS);
	alarms_flush(alarms);
	ASSERT_EQ(wall.state, ALARM_ON_DEVICE);
	alarms_close(alarms);
	free(made);
}

TEST_NAMED(full_device_lets_all_alarms_come_and_none_early)
{
	enum { NR = 3 * LIMIT };
	struct alarm *made = make_alarms(NR);
	struct alarms *alarms = open_backend(ALARM_DEVICE);
	uint64_t *due_ns = calloc(NR, sizeof(*due_ns)), i, id;

	ASSERT(due_ns);
	for (i = 0; i < NR; i++) {
		due_ns[i] = alarms_now_ns(i % 2) + 500 * MS_NS + random_below(100 * MS_NS);
		alarm_add(alarms, &made[i], i, i % 2, due_ns[i]);
	}
	for (i = 0; i < NR; i++) {
		wait_all(alarms, &id, 1);
		ASSERT_LE(due_ns[id], alarms_now_ns(id % 2));
		ASSERT(!alarm_pending(&made[id]));
		due_ns[id] = UINT64_MAX;
	}
	check_quiet(alarms);
	alarms_close(alarms);
	free(due_ns);
	free(made);
}

TEST_NAMED(full_device_has_room_again_when_events_end_there)
{
	struct alarm *made = make_alarms(LIMIT), *late = make_alarms(4);
	struct alarms *alarms = open_with_far(made, LIMIT);
	int i;

	for (i = 0; i < 3; i++)
		alarm_add(alarms, &late[i], LIMIT + i, ALARM_BOOT, boot_ns() + HOUR_NS);
	alarms_flush(alarms);
	ASSERT_EQ(nr_in_state(late, 3, ALARM_IN_PROCESS), 3);
	/* One that fires, and one that is cancelled: for a new one, and for one that is moved. */
	alarm_move(alarms, &made[5], 0);
	ASSERT_EQ(wait_one(alarms), 5);
	alarm_cancel(alarms, &made[6]);
	alarm_add(alarms, &late[3], LIMIT + 3, ALARM_BOOT, boot_ns() + HOUR_NS);
	alarm_move(alarms, &late[1], boot_ns() + 2 * HOUR_NS);
	alarms_flush(alarms);
	ASSERT_EQ(late[3].state, ALARM_ON_DEVICE);
	ASSERT_EQ(late[1].state, ALARM_ON_DEVICE);
	ASSERT_EQ(late[0].state, ALARM_IN_PROCESS);
	ASSERT_EQ(late[2].state, ALARM_IN_PROCESS);
	/* It is full again. */
	alarm_move(alarms, &late[0], boot_ns() + 2 * HOUR_NS);
	alarms_flush(alarms);
	ASSERT_EQ(late[0].state, ALARM_IN_PROCESS);
	check_quiet(alarms);
	alarms_close(alarms);
	free(late);
	free(made);
}

/* Memory is freed at once, so that a later use of it is found. */
TEST_NAMED(full_device_alarms_in_the_process_are_cancelled_and_moved)
{
	enum { NR = 300 };
	struct alarm *far = make_alarms(LIMIT), *made[NR];
	struct alarms *alarms = open_with_far(far, LIMIT);
	uint64_t due_ns = boot_ns() + 50 * MS_NS, later_ns, ids[NR];
	int i;

	for (i = 0; i < NR; i++) {
		made[i] = make_alarms(1);
		alarm_add(alarms, made[i], i, ALARM_BOOT, due_ns);
	}
	alarms_flush(alarms);
	for (i = 0; i < NR; i++)
		ASSERT_EQ(made[i]->state, ALARM_IN_PROCESS);
	/* The first hundred are cancelled before they are due, and the next after it. */
	for (i = 0; i < 200; i++) {
		if (i == 100)
			let_fire(alarms, due_ns);
		alarm_cancel(alarms, made[i]);
		ASSERT(!alarm_pending(made[i]));
		free(made[i]);
	}
	/* The others are put off; of these, a half for good. */
	later_ns = boot_ns() + 50 * MS_NS;
	for (i = 200; i < NR; i++)
		alarm_move(alarms, made[i], i % 2 ? later_ns : boot_ns() + DAY_NS);
	wait_all(alarms, ids, 50);
	ASSERT_LE(later_ns, boot_ns());
	for (i = 0; i < 50; i++)
		ASSERT_EQ(ids[i], 201 + 2 * i);
	check_quiet(alarms);
	for (i = 200; i < NR; i++) {
		ASSERT_EQ(alarm_pending(made[i]), i % 2 == 0);
		alarm_cancel(alarms, made[i]);
		free(made[i]);
	}
	check_quiet(alarms);
	alarms_close(alarms);
	free(far);
}

/* More than a batch: alarms go to the process while others are added, moved and cancelled. */
TEST_NAMED(full_device_refuses_in_the_middle_of_adding)
{
	enum { NR = 20000 };
	struct alarm *made = make_alarms(NR);
	struct alarms *alarms = open_with_far(made, NR);
	uint64_t *ids = calloc(NR, sizeof(*ids)), i;
	bool *came = calloc(NR, sizeof(*came));

	ASSERT(ids && came);
	for (i = 0; i < NR; i++)
		alarm_move(alarms, &made[i], boot_ns() + DAY_NS);
	for (i = 0; i < NR; i += 2) {
		alarm_cancel(alarms, &made[i]);
		memset(&made[i], 0xff, sizeof(made[i]));
	}
	alarms_flush(alarms);
	for (i = 1; i < NR; i += 2)
		alarm_move(alarms, &made[i], 0);
	wait_all(alarms, ids, NR / 2);
	for (i = 0; i < NR / 2; i++) {
		ASSERT_EQ(ids[i] % 2, 1);
		ASSERT(!came[ids[i]]);
		came[ids[i]] = true;
	}
	check_quiet(alarms);
	alarms_close(alarms);
	free(came);
	free(ids);
	free(made);
}

/* Alarms on the device that are always due do not keep one in the process from coming. */
TEST_NAMED(full_device_and_process_take_turns)
{
	struct alarm *made = make_alarms(LIMIT), late = { 0 };
	struct alarms *alarms = open_with_far(made, LIMIT);
	uint64_t id;
	int i;

	alarm_add(alarms, &late, 5000, ALARM_BOOT, 0);
	for (i = 0; i < 4; i++)
		alarm_move(alarms, &made[i], 0);
	alarms_flush(alarms);
	ASSERT_EQ(late.state, ALARM_IN_PROCESS);
	do {
		wait_all(alarms, &id, 1);
		if (id != 5000)
			alarm_add(alarms, &made[id], id, ALARM_BOOT, 0);
	} while (id != 5000);
	alarms_close(alarms);
	free(made);
}

TEST_NAMED(full_device_agrees_with_a_model)
{
	struct alarms *alarms = open_backend(ALARM_DEVICE);

	run_model(alarms, 12 * LIMIT, test_count(300000));
	alarms_close(alarms);
}

/*
 * There is memory for every second batch that has to grow. In one of the rounds the batch is
 * full when the alarm is moved that is on the device.
 */
TEST_NAMED(faulty_device_lets_an_alarm_come_once_that_moves_without_memory)
{
	enum { MOST = 70 };
	size_t others, i, nr_moved_to_process = 0;

	for (others = 0; others < MOST; others++) {
		struct alarms *alarms = open_backend(ALARM_DEVICE);
		struct alarm *made = make_alarms(MOST + 1);
		uint64_t ids[MOST + 1], now_ns = alarms_now_ns(ALARM_BOOT);
		uint64_t moved_ns = now_ns + 3 * MS_NS;
		bool was_on_device;

		alarm_add(alarms, &made[0], 0, ALARM_BOOT, now_ns + MS_NS);
		alarms_flush(alarms);
		was_on_device = made[0].state == ALARM_ON_DEVICE;
		for (i = 1; i <= others; i++)
			alarm_add(alarms, &made[i], i, ALARM_BOOT, now_ns + MS_NS);
		alarm_move(alarms, &made[0], moved_ns);
		nr_moved_to_process += was_on_device && made[0].state == ALARM_IN_PROCESS;
		test_about("beside %zu others", others);
		wait_all(alarms, ids, others + 1);
		ASSERT_GE(alarms_now_ns(ALARM_BOOT), moved_ns);
		check_quiet(alarms);
		free(made);
		alarms_close(alarms);
	}
	ASSERT_GT(nr_moved_to_process, 0);
}

TEST_NAMED(full_device_is_closed_with_alarms_in_the_process)
{
	struct alarm *made = make_alarms(LIMIT + 20), own = { 0 };
	struct alarms *alarms = open_with_far(made, LIMIT + 20), *other;

	ASSERT_EQ(nr_in_state(made, LIMIT + 20, ALARM_IN_PROCESS), 20);
	free(made);
	alarms_close(alarms);
	other = open_backend(ALARM_DEVICE);
	alarm_add(other, &own, 1, ALARM_BOOT, 0);
	ASSERT_EQ(wait_one(other), 1);
	ASSERT_EQ(own.state, ALARM_IDLE);
	alarms_close(other);
}

/* This sets the clock as well. */
TEST_NAMED(clock_full_device_brings_what_it_refused_when_the_clock_is_set)
{
	struct alarm *made = make_alarms(LIMIT + 2);
	struct alarms *alarms = open_backend(ALARM_DEVICE);
	uint64_t now_ns = wall_ns(), i;

	for (i = 0; i < LIMIT; i++)
		alarm_add(alarms, &made[i], i, ALARM_WALL, now_ns + DAY_NS);
	alarm_add(alarms, &made[LIMIT], LIMIT, ALARM_WALL, now_ns + HOUR_NS);
	alarm_add(alarms, &made[LIMIT + 1], LIMIT + 1, ALARM_WALL, now_ns + 5 * HOUR_NS);
	check_quiet(alarms);
	ASSERT_EQ(nr_in_state(made, LIMIT + 2, ALARM_IN_PROCESS), 2);
	move_clock(2 * HOUR_NS);
	check_set_is_told(alarms);
	ASSERT_EQ(wait_one(alarms), LIMIT);
	check_quiet(alarms);
	move_clock(-(int64_t)4 * HOUR_NS);
	check_set_is_told(alarms);
	/* Due before all that the wheel in the process stood at. */
	alarm_add(alarms, &made[LIMIT], LIMIT, ALARM_WALL, wall_ns() + 20 * MS_NS);
	ASSERT_EQ(wait_one(alarms), LIMIT);
	ASSERT(alarm_pending(&made[LIMIT + 1]));
	move_clock(2 * HOUR_NS);
	alarms_clock_was_set(alarms);
	check_quiet(alarms);
	alarms_close(alarms);
	free(made);
}
