// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines in shared memory: events whose time is a word, which a store moves.
 *
 * A test that wants an event to be postponed stores the later time before the one that
 * it is armed for comes: add_postponed() begins anew where it was too late for that, and
 * so does a test whose other steps come in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"
#include "waiter.h"

#define WORDS		16

static const clockid_t clocks[] = {
	CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME,
};

/* Check that an event is armed, for a time that is far off, and that its word says this. */
static void check_waits_for(int fd, __u64 id, __u64 index, __u64 due_ns)
{
	struct twheel_entry entry = list_one(fd, id);
	struct twheel_cmd answer;

	ASSERT_EQ(query(fd, id, &answer), TWHEEL_ARMED);
	ASSERT_EQ(answer.time_ns, due_ns);
	ASSERT_EQ(answer.interval_ns, 0);
	ASSERT_EQ(entry.state, TWHEEL_ARMED);
	ASSERT_EQ(entry.due_ns, due_ns);
	ASSERT_EQ(entry.interval_ns, 0);
	ASSERT_EQ(entry.deadline, index + 1);
}

/* Wait for the only record that there is, of this event, due at that time. */
static struct twheel_record wait_only_record(int fd, __u64 id, __u64 due_ns)
{
	struct twheel_record record = wait_record(fd);

	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.due_ns, due_ns);
	check_nothing_ready(fd);
	return record;
}

/*
 * Store to the word of an event that is armed for what it says.  True: that has not come,
 * so that the kernel will see what is stored now.
 */
static bool store_in_time(_Atomic __u64 *word, __u64 value)
{
	__u64 armed_ns = *word;

	*word = value;
	return monotonic_ns() < armed_ns;
}

/*
 * Arm an event, which waits for a time that is far off, for one that comes soon, and have
 * its word say never; it is postponed, or false: it is READY, as the time had come.
 */
static bool postpone(int fd, _Atomic __u64 *words, __u64 index, __u64 id, __u64 soon_ns)
{
	long long before = count_postponed(fd);

	words[index] = monotonic_ns() + soon_ns;
	ASSERT_EQ(modify_deadline(fd, id, index), 0);
	words[index] = NEVER_NS;
	return wait_event_postponed_after(fd, id, before);
}

static void check_all_ended(int fd, long long finished, long long cancelled)
{
	struct counters counters = get_counters(fd);

	check_sum(&counters);
	ASSERT_EQ(counters.armed, 0);
	ASSERT_EQ(counters.ready, 0);
	ASSERT_EQ(counters.finished, finished);
	ASSERT_EQ(counters.cancelled, cancelled);
}

/* --- what is refused -------------------------------------------------------- */

/* Check that no command with an index beyond the words is run. */
static void check_refused_indices(int fd, struct twheel_cmd cmd)
{
	static const __u64 beyond[] = {
		WORDS, WORDS + 1, 511, 512, 1ULL << 32, (1ULL << 32) + 1, NEVER_NS, ~0ULL,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(beyond); i++) {
		test_about("op %u, index %#llx", cmd.op, beyond[i]);
		cmd.key = beyond[i];
		check_refused(fd, &cmd, EINVAL);
	}
	cmd.key = WORDS - 1;
	ASSERT_EQ(run(fd, &cmd), 0);
}

TEST(deadline_index_beyond_the_words_is_refused)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id;

	words[WORDS - 1] = NEVER_NS;
	check_refused_indices(fd, make_deadline_add(0, 0));
	id = add(fd, TWHEEL_ABS, NEVER_NS, 0);
	check_refused_indices(fd, make_deadline_modify(id, 0));
	check_waits_for(fd, id, WORDS - 1, NEVER_NS);
}

TEST(deadline_of_a_context_without_words_is_refused)
{
	int fd = device_open_nonblock();
	struct twheel_cmd add_cmd = make_deadline_add(0, 0);
	struct twheel_cmd modify_cmd = make_deadline_modify(add(fd, 0, FAR_NS, 0), 0);

	check_refused(fd, &add_cmd, EINVAL);
	check_refused(fd, &modify_cmd, EINVAL);
}

/* Check that a command is refused whose word is its time, if it tells another too. */
static void check_refused_times(int fd, const struct twheel_cmd *valid)
{
	static const __u16 flags[] = {
		TWHEEL_ABS, TWHEEL_CANCEL_ON_SET, TWHEEL_ABS | TWHEEL_CANCEL_ON_SET,
	};
	static const __u64 times[] = { 1, FAR_NS, NEVER_NS, ~0ULL };
	struct twheel_cmd cmd;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		test_about("op %u, flags %u", valid->op, flags[i]);
		cmd = *valid;
		cmd.flags |= flags[i];
		check_refused(fd, &cmd, EINVAL);
	}
	for (i = 0; i < ARRAY_SIZE(times); i++) {
		test_about("op %u, time %#llx", valid->op, times[i]);
		cmd = *valid;
		cmd.time_ns = times[i];
		check_refused(fd, &cmd, EINVAL);
		cmd = *valid;
		cmd.interval_ns = times[i];
		check_refused(fd, &cmd, EINVAL);
	}
	cmd = *valid;
	ASSERT_EQ(run(fd, &cmd), 0);
}

TEST(deadline_with_a_time_or_a_flag_of_one_is_refused)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME };
	struct twheel_cmd add_cmd = make_deadline_add(0, 0), modify_cmd;
	_Atomic __u64 *words;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = open_deadlines_on(clocks[i], WORDS, &words);

		words[0] = NEVER_NS;
		check_refused_times(fd, &add_cmd);
		modify_cmd = make_deadline_modify(add_deadline(fd, 0, 0), 0);
		check_refused_times(fd, &modify_cmd);
	}
}

TEST(deadline_index_without_the_flag_is_refused)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id = add(fd, 0, FAR_NS, 0);
	struct twheel_cmd add_cmd = make_add(0, FAR_NS, 0);
	struct twheel_cmd modify_cmd = make_modify(id, 0, FAR_NS);

	for (add_cmd.key = 1; add_cmd.key; add_cmd.key <<= 1) {
		test_about("key %#llx", add_cmd.key);
		modify_cmd.key = add_cmd.key;
		check_refused(fd, &add_cmd, EINVAL);
		check_refused(fd, &modify_cmd, EINVAL);
	}
}

TEST(deadline_that_is_refused_leaves_the_event_as_it_was)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	struct twheel_cmd cmd;
	__u64 id;

	words[3] = monotonic_ns() + FAR_NS;
	words[4] = 1;
	id = add_deadline(fd, 3, 0);
	cmd = make_deadline_modify(id, WORDS);
	check_refused(fd, &cmd, EINVAL);
	cmd = make_deadline_modify(id, 4);
	cmd.interval_ns = NSEC_PER_SEC;
	check_refused(fd, &cmd, EINVAL);
	check_waits_for(fd, id, 3, words[3]);
}

TEST(deadline_counts_to_the_limit_as_any_event)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, 1);
	struct twheel_cmd cmd = make_deadline_add(0, 0);
	int fd;

	config.max_events = 1;
	fd = device_open_configured(O_RDWR | O_NONBLOCK, &config);
	map_deadlines(fd, 1)[0] = NEVER_NS;
	add_deadline(fd, 0, 0);
	check_refused(fd, &cmd, ENOSPC);
}

/* --- when it is due --------------------------------------------------------- */

TEST(deadline_that_is_past_is_due_at_once)
{
	const __u64 pasts[] = { 0, 1, monotonic_ns() - 1, monotonic_ns() };
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pasts); i++) {
		struct twheel_entry entry;
		__u64 id;

		words[i] = pasts[i];
		id = add_deadline(fd, i, 42);
		ASSERT_EQ(poll_events(fd, 0), POLLIN);
		entry = list_one(fd, id);
		ASSERT_EQ(entry.state, TWHEEL_READY);
		ASSERT_EQ(entry.reason, TWHEEL_EXPIRED);
		ASSERT_EQ(entry.deadline, i + 1);
		ASSERT_EQ(wait_only_record(fd, id, pasts[i]).data, 42);
	}
	ASSERT_EQ(count_postponed(fd), 0);
}

TEST(deadline_that_comes_is_due_then)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words), i;

	for (i = 0; i < 10; i++) {
		__u64 id;

		words[i] = monotonic_ns() + i * NSEC_PER_MSEC;
		id = add_deadline(fd, i, i);
		ASSERT_EQ(wait_only_record(fd, id, words[i]).data, i);
	}
	ASSERT_EQ(count_postponed(fd), 0);
	check_all_ended(fd, 10, 0);
}

TEST(deadline_of_never_parks_the_event)
{
	const __u64 nevers[] = { NEVER_NS, NEVER_NS + 1, ~0ULL };
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 ids[ARRAY_SIZE(nevers)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nevers); i++) {
		words[i] = nevers[i];
		ids[i] = add_deadline(fd, i, i);
	}
	check_armed_for(fd, ids[0], SOON_NS);
	for (i = 0; i < ARRAY_SIZE(nevers); i++)
		check_waits_for(fd, ids[i], i, nevers[i]);

	ASSERT_EQ(cancel(fd, ids[0]), 0);
	ASSERT_EQ(query(fd, ids[0], NULL), -ENOENT);
	words[1] = 1;
	ASSERT_EQ(modify_deadline(fd, ids[1], 1), 0);
	wait_only_record(fd, ids[1], 1);
	words[2] = monotonic_ns() + SOON_NS;
	ASSERT_EQ(modify_deadline(fd, ids[2], 2), 0);
	wait_only_record(fd, ids[2], words[2]);
	check_all_ended(fd, 2, 1);
}

TEST(deadline_that_becomes_never_parks_the_event)
{
	const __u64 nevers[] = { NEVER_NS, ~0ULL };
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nevers); i++) {
		__u64 id = add_postponed(fd, words, i, nevers[i], i);

		check_armed_for(fd, id, SOON_NS);
		check_waits_for(fd, id, i, nevers[i]);
		ASSERT_EQ(cancel(fd, id), 0);
	}
	check_nothing_ready(fd);
}

TEST(deadline_events_of_one_word_are_due_together)
{
	const size_t nr = 100;
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	unsigned char seen[nr];
	size_t i;

	memset(seen, 0, sizeof(seen));
	words[5] = monotonic_ns() + SOON_NS;
	for (i = 0; i < nr; i++)
		add_deadline(fd, 5, i);
	words[5] = monotonic_ns() + 3 * SOON_NS;
	for (i = 0; i < nr; i++) {
		struct twheel_record record = wait_record(fd);

		ASSERT_LT(record.data, nr);
		seen[record.data]++;
		/* The machine may have stood still. */
		if (count_postponed(fd) == (long long)nr)
			ASSERT_EQ(record.due_ns, words[5]);
	}
	check_bytes(seen, 1, nr);
	check_all_ended(fd, nr, 0);
}

TEST(deadlines_come_in_the_order_of_their_ticks)
{
	const size_t nr = 500;
	struct twheel_record before = { .due_ns = 0 };
	_Atomic __u64 *words;
	int fd = open_deadlines(nr, &words);
	__u64 tick_ns = get_info(fd).tick_ns, start_ns;
	struct twheel_cmd cmds[nr];
	size_t i;

	/* All of them wait for one time, and then each for its own. */
	pin_to_this_cpu();
	start_ns = (monotonic_ns() + 10 * SOON_NS) / tick_ns * tick_ns;
	for (i = 0; i < nr; i++) {
		words[i] = start_ns;
		cmds[i] = make_deadline_add(i, i);
	}
	ASSERT_EQ(submit(fd, cmds, nr), nr);
	for (i = 0; i < nr; i++)
		words[i] = start_ns + (1000 + i * 7 % nr) * tick_ns;
	for (i = 0; i < nr; i++) {
		struct twheel_record record = wait_record(fd);

		if (count_postponed(fd) == (long long)nr)
			ASSERT_GT(record.due_ns, before.due_ns);
		before = record;
	}
	check_nothing_ready(fd);
	printf("# %lld of %zu were postponed\n", count_postponed(fd), nr);
}

/* --- a store of a later time ------------------------------------------------ */

TEST(deadline_stored_later_postpones_the_event)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 later_ns = monotonic_ns() + FAR_NS;
	__u64 id = add_postponed(fd, words, 7, later_ns, 42);

	check_waits_for(fd, id, 7, later_ns);
	check_nothing_ready(fd);
	check_armed_for(fd, id, SOON_NS);
	check_nothing_ready(fd);
}

/*
 * Store a later time, wait until the one before has come, and so on: was each in time? They
 * are soon_ns apart or more, the first from what the word said before: a look that comes
 * late finds the word ahead of it.
 */
static bool postpone_again_and_again(int fd, _Atomic __u64 *word, __u64 id, __u64 soon_ns)
{
	int i;

	for (i = 0; i < 10; i++) {
		long long before = count_postponed(fd);

		*word = monotonic_ns() + 2 * soon_ns;
		if (!wait_event_postponed_after(fd, id, before))
			return false;
	}
	return true;
}

TEST(deadline_stored_later_again_and_again_is_due_at_the_last)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	unsigned int late = 0;
	__u64 id;

	for_each_attempt(soon_ns, SOON_NS) {
		words[7] = monotonic_ns() + soon_ns;
		id = add_deadline(fd, 7, 42);
		if (postpone_again_and_again(fd, &words[7], id, soon_ns))
			break;
		ASSERT_EQ(cancel(fd, id), 0);
		late++;
	}
	wait_only_record(fd, id, words[7]);
	check_all_ended(fd, 1, late);
}

/* A store that the kernel never looks at costs nothing. */
TEST(deadline_stored_a_thousand_times_is_looked_at_when_the_first_comes)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(1, &words), i;
	long long before;
	__u64 id;

	for_each_attempt(soon_ns, 10 * SOON_NS) {
		__u64 first_ns;

		before = count_postponed(fd);
		first_ns = monotonic_ns() + soon_ns;
		words[0] = first_ns;
		id = add_deadline(fd, 0, 42);
		for (i = 1; i <= 1000; i++)
			words[0] = monotonic_ns() + soon_ns;
		if (monotonic_ns() < first_ns)
			break;
		ASSERT_EQ(cancel(fd, id), 0);
	}
	wait_only_record(fd, id, words[0]);
	ASSERT_LE(count_postponed(fd), before + 1);
}

/*
 * Wait until a thread that says that it sleeps has left its CPU.  It is asked for the call
 * that it is in, and that answer waits.
 */
static void wait_off_cpu(pid_t tid)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	do {
		FILE *file = fopen(path, "r");

		ASSERT(file);
		ASSERT(fgets(line, sizeof(line), file));
		fclose(file);
	} while (!strncmp(line, "running", strlen("running")));
}

/* How often a thread, which is asleep, went to sleep: counted as it leaves its CPU. */
static long long count_sleeps(pid_t tid)
{
	char path[64];
	long long sleeps;

	wait_off_cpu(tid);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	sleeps = number_in_file(path, "voluntary_ctxt_switches");
	ASSERT_GE(sleeps, 0);
	return sleeps;
}

/* Of a thread that is asleep: it has slept without a break. */
static void check_slept_on(struct waiter *waiter, long long sleeps)
{
	wait_asleep(waiter->tid);
	ASSERT_EQ(count_sleeps(waiter->tid), sleeps);
	ASSERT(!waiter->done);
}

/* Arm events whose words then say never: all are postponed, or one came before. */
static bool postpone_many(int fd, _Atomic __u64 *words, __u64 *ids, size_t nr,
			  __u64 soon_ns)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		words[i] = monotonic_ns() + soon_ns;
		ids[i] = add_deadline(fd, i, i);
		words[i] = NEVER_NS;
	}
	while (count_postponed(fd) < (long long)nr) {
		if (get_counters(fd).armed < (long long)nr)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}

/* One attempt, in a context of its own. False if an event expired and woke the waiter. */
static bool wakes_nobody(void *(*wait)(void *waiter), int flags, __u64 soon_ns)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, WORDS);
	struct waiter waiter = { .min_records = 1 };
	_Atomic __u64 *words;
	pthread_t thread;
	long long sleeps;
	__u64 ids[10];

	waiter.fd = device_open_configured(O_RDWR | flags, &config);
	words = map_deadlines(waiter.fd, WORDS);
	words[0] = NEVER_NS;
	thread = start_thread(wait, &waiter);
	wait_waiter_asleep(&waiter);
	wait_asleep(waiter.tid);
	/* Arm events and let them be postponed: none of this concerns the waiter. */
	sleeps = count_sleeps(waiter.tid);
	if (!postpone_many(waiter.fd, words, ids, ARRAY_SIZE(ids), soon_ns)) {
		join_thread(thread);
		return false;
	}
	check_slept_on(&waiter, sleeps);
	words[9] = 1;
	ASSERT_EQ(modify_deadline(waiter.fd, ids[9], 9), 0);
	join_thread(thread);
	ASSERT_EQ(waiter.records[0].id, ids[9]);
	return true;
}

static void check_wakes_nobody(void *(*wait)(void *waiter), int flags)
{
	for_each_attempt(soon_ns, SOON_NS) {
		if (wakes_nobody(wait, flags, soon_ns))
			break;
	}
}

TEST(deadline_that_is_postponed_wakes_no_reader)
{
	check_wakes_nobody(wait_in_read, 0);
}

TEST(deadline_that_is_postponed_wakes_nobody_in_poll)
{
	check_wakes_nobody(wait_in_poll, O_NONBLOCK);
}

TEST(deadline_that_is_postponed_wakes_nobody_in_epoll)
{
	check_wakes_nobody(wait_in_epoll, O_NONBLOCK);
}

TEST(deadline_that_is_postponed_wakes_nobody_in_enter)
{
	check_wakes_nobody(wait_in_enter, 0);
}

TEST(deadline_that_is_postponed_counts_as_postponed_and_not_as_expired)
{
	long long expired, base_postponed, cancelled;
	_Atomic __u64 *words;
	int fd, cpus[1];

	need_debugfs();
	get_cpus(cpus, 1);
	pin_to_cpu(cpus[0]);
	fd = open_deadlines(WORDS, &words);
	/* Again if an attempt came too late, and so an event was due. */
	do {
		__u64 id;

		cancelled = get_counters(fd).cancelled;
		expired = deadline_base_number(cpus[0], CLOCK_MONOTONIC, "expired");
		base_postponed = deadline_base_number(cpus[0], CLOCK_MONOTONIC, "postponed");
		id = add_postponed(fd, words, 0, NEVER_NS, 0);
		ASSERT_EQ(cancel(fd, id), 0);
	} while (get_counters(fd).cancelled != cancelled + 1);
	ASSERT_EQ(deadline_base_number(cpus[0], CLOCK_MONOTONIC, "expired"), expired);
	ASSERT_EQ(deadline_base_number(cpus[0], CLOCK_MONOTONIC, "postponed"),
		  base_postponed + 1);
}

/* How many events are on the two wheels of a CPU and clock. */
struct on_wheels {
	long long plain;
	long long deadlines;
};

static struct on_wheels count_on_wheels(int cpu, clockid_t clock)
{
	return (struct on_wheels){
		.plain = base_number(cpu, clock, "armed"),
		.deadlines = deadline_base_number(cpu, clock, "armed"),
	};
}

/* Check that there are as many more than before. */
static void check_on_wheels(int cpu, clockid_t clock, struct on_wheels before,
			    long long plain, long long deadlines)
{
	struct on_wheels now = count_on_wheels(cpu, clock);

	ASSERT_EQ(now.plain, before.plain + plain);
	ASSERT_EQ(now.deadlines, before.deadlines + deadlines);
}

TEST(deadline_events_are_on_a_wheel_of_their_own)
{
	size_t i, j;

	need_debugfs();
	pin_to_this_cpu();
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int cpu = sched_getcpu(), fd;
		struct on_wheels before;
		_Atomic __u64 *words;

		test_about("clock %d", clocks[i]);
		fd = open_deadlines_on(clocks[i], WORDS, &words);
		words[0] = clock_ns(clocks[i]) + FAR_NS;
		before = count_on_wheels(cpu, clocks[i]);
		for (j = 0; j < 10; j++)
			add_deadline(fd, 0, j);
		check_on_wheels(cpu, clocks[i], before, 0, 10);
		add(fd, TWHEEL_ABS, words[0], 0);
		check_on_wheels(cpu, clocks[i], before, 1, 10);
		close(fd);
	}
}

/* Let an event go from its word to a time, and back, a number of times. */
static void move_between_wheels(int fd, clockid_t clock, int cpu, _Atomic __u64 *words)
{
	struct on_wheels before = count_on_wheels(cpu, clock);
	__u64 far_ns = clock_ns(clock) + FAR_NS, id;
	unsigned int i;

	words[0] = far_ns;
	id = add_deadline(fd, 0, 1);
	for (i = 0; i < 100; i++) {
		check_on_wheels(cpu, clock, before, 0, 1);
		ASSERT_EQ(modify(fd, id, TWHEEL_ABS, far_ns + i), 0);
		check_on_wheels(cpu, clock, before, 1, 0);
		ASSERT_EQ(query_time(fd, id), far_ns + i);
		ASSERT_EQ(modify_deadline(fd, id, 0), 0);
		ASSERT_EQ(query_time(fd, id), far_ns);
	}
	ASSERT_EQ(cancel(fd, id), 0);
	check_on_wheels(cpu, clock, before, 0, 0);
}

TEST(deadline_event_that_becomes_a_plain_one_goes_to_the_other_wheel_and_back)
{
	size_t nr, i, j;
	int cpus[2];

	need_debugfs();
	nr = get_cpus(cpus, ARRAY_SIZE(cpus));
	pin_to_cpu(cpus[0]);
	/* Armed on the own CPU, and bound to another one. */
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		for (j = 0; j < nr; j++) {
			struct twheel_config config = deadlines_config(clocks[i], 1);
			_Atomic __u64 *words;
			int fd;

			test_about("clock %d, CPU %d", clocks[i], cpus[j]);
			config.flags = TWHEEL_CONFIG_CPU;
			config.cpu = cpus[j];
			fd = device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC, &config);
			words = map_deadlines(fd, 1);
			move_between_wheels(fd, clocks[i], cpus[j], words);
			close(fd);
		}
	}
}

TEST(deadline_event_that_goes_between_wheels_while_it_is_due_ends_once)
{
	const unsigned int rounds = test_count(2000);
	_Atomic __u64 *words;
	unsigned int i, j;
	int fd;

	fd = open_deadlines(1, &words);
	for (i = 0; i < rounds; i++) {
		__u64 due_ns = monotonic_ns() + 100 * NSEC_PER_USEC + i * 13 % 70000, id;
		struct twheel_record record;

		words[0] = due_ns;
		id = add_deadline(fd, 0, i);
		for (j = 0; j < 8; j++) {
			ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
			ASSERT_EQ(modify_deadline(fd, id, 0), 0);
		}
		record = wait_record(fd);
		ASSERT_EQ(record.id, id);
		ASSERT_EQ(record.due_ns, due_ns);
		ASSERT_GE(record.fired_ns, due_ns);
	}
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).finished, rounds);
	ASSERT_EQ(get_counters(fd).armed, 0);
}

#define COARSE_TICKS	1024

TEST(deadline_keeps_its_slack_when_it_is_postponed)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(1, &words);
	__u64 tick_ns = get_info(fd).tick_ns, coarse_ns = COARSE_TICKS * tick_ns;
	struct twheel_cmd cmd = make_deadline_add(0, 0), answer;
	struct twheel_record record;
	long long before;

	cmd.slack_ns = coarse_ns;
	for_each_attempt(soon_ns, SOON_NS) {
		before = count_postponed(fd);
		words[0] = monotonic_ns() + soon_ns;
		cmd.id = add_by(fd, cmd);
		/* After a round tick, so that without slack it comes well before the next. */
		words[0] = ((words[0] + soon_ns) / coarse_ns + 4) * coarse_ns + 1;
		if (wait_event_postponed_after(fd, cmd.id, before) &&
		    query(fd, cmd.id, &answer) == TWHEEL_ARMED)
			break;
		ASSERT_EQ(cancel(fd, cmd.id), 0);
	}
	ASSERT_EQ(answer.slack_ns, cmd.slack_ns);
	ASSERT_EQ(list_one(fd, cmd.id).slack_ns, cmd.slack_ns);
	record = wait_only_record(fd, cmd.id, words[0]);
	ASSERT_GE(record.fired_ns, (words[0] / coarse_ns + 1) * coarse_ns);
}

TEST(deadline_has_at_least_the_slack_of_its_context)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, 1);
	int fd;

	config.slack_ns = 777;
	fd = device_open_configured(O_RDWR | O_NONBLOCK, &config);
	map_deadlines(fd, 1)[0] = NEVER_NS;
	ASSERT_EQ(list_one(fd, add_deadline(fd, 0, 0)).slack_ns, 777);
}

/* --- a store of an earlier time --------------------------------------------- */

TEST(deadline_stored_earlier_is_seen_when_the_old_one_comes)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 old_ns, id;

	for_each_attempt(soon_ns, SOON_NS) {
		old_ns = monotonic_ns() + soon_ns;
		words[2] = old_ns;
		id = add_deadline(fd, 2, 42);
		if (store_in_time(&words[2], 5))
			break;
		ASSERT_EQ(cancel(fd, id), 0);
	}
	ASSERT_GE(wait_only_record(fd, id, 5).fired_ns, old_ns);
	ASSERT_EQ(count_postponed(fd), 0);
}

TEST(deadline_stored_earlier_is_seen_at_once_by_modify)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id;

	words[2] = monotonic_ns() + FAR_NS;
	id = add_deadline(fd, 2, 42);
	words[2] = monotonic_ns() + SOON_NS;
	check_waits_for(fd, id, 2, words[2]);
	ASSERT_EQ(modify_deadline(fd, id, 2), 0);
	wait_only_record(fd, id, words[2]);

	words[2] = monotonic_ns() + FAR_NS;
	id = add_deadline(fd, 2, 42);
	words[2] = 7;
	ASSERT_EQ(modify_deadline(fd, id, 2), 0);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	wait_only_record(fd, id, 7);
}

/* --- MODIFY ----------------------------------------------------------------- */

TEST(deadline_modify_to_another_word)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id;

	words[2] = monotonic_ns() + 2 * FAR_NS;
	words[3] = monotonic_ns() + FAR_NS;
	id = add_deadline(fd, 3, 42);
	ASSERT_EQ(modify_deadline(fd, id, 2), 0);
	words[3] = 1;
	check_waits_for(fd, id, 2, words[2]);
	words[2] = monotonic_ns() + SOON_NS;
	ASSERT_EQ(modify_deadline(fd, id, 2), 0);
	ASSERT_EQ(wait_only_record(fd, id, words[2]).data, 42);
}

TEST(deadline_modify_replaces_slack_and_with_set_data_the_data)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	struct twheel_cmd cmd = make_deadline_add(0, 1);
	__u64 id;

	words[0] = NEVER_NS;
	words[1] = 5;
	cmd.slack_ns = 10;
	id = add_by(fd, cmd);
	cmd = make_deadline_modify(id, 0);
	cmd.slack_ns = 20;
	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_EQ(list_one(fd, id).slack_ns, 20);
	ASSERT_EQ(list_one(fd, id).data, 1);
	cmd = make_deadline_modify(id, 1);
	cmd.flags |= TWHEEL_SET_DATA;
	cmd.data = 2;
	ASSERT_EQ(run(fd, &cmd), 0);
	ASSERT_EQ(wait_only_record(fd, id, 5).data, 2);
}

TEST(deadline_modify_without_the_flag_makes_it_an_ordinary_event)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 due_ns = monotonic_ns() + 5 * SOON_NS, id;

	words[3] = monotonic_ns() + FAR_NS;
	id = add_deadline(fd, 3, 42);
	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, due_ns), 0);
	words[3] = 2 * FAR_NS;
	ASSERT_EQ(list_one(fd, id).deadline, 0);
	ASSERT_EQ(list_one(fd, id).due_ns, due_ns);
	ASSERT_EQ(query_time(fd, id), due_ns);
	wait_only_record(fd, id, due_ns);
	ASSERT_EQ(count_postponed(fd), 0);
}

TEST(deadline_modify_lets_an_ordinary_event_follow_a_word)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id = add(fd, 0, FAR_NS, 42);

	words[3] = monotonic_ns() + FAR_NS;
	ASSERT_EQ(modify_deadline(fd, id, 3), 0);
	check_waits_for(fd, id, 3, words[3]);
	for_each_attempt(soon_ns, SOON_NS) {
		ASSERT_EQ(modify(fd, id, 0, FAR_NS), 0);
		words[3] = monotonic_ns() + soon_ns;
		ASSERT_EQ(modify_deadline(fd, id, 3), 0);
		if (store_in_time(&words[3], monotonic_ns() + 2 * soon_ns))
			break;
	}
	wait_only_record(fd, id, words[3]);
}

TEST(deadline_modify_back_and_forth)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id = add(fd, 0, FAR_NS, 42), i;

	for (i = 0; i < WORDS; i++) {
		words[i] = FAR_NS + i;
		ASSERT_EQ(modify_deadline(fd, id, i), 0);
		check_waits_for(fd, id, i, FAR_NS + i);
		ASSERT_EQ(modify(fd, id, TWHEEL_ABS, 2 * FAR_NS + i), 0);
		ASSERT_EQ(list_one(fd, id).deadline, 0);
		ASSERT_EQ(query_time(fd, id), 2 * FAR_NS + i);
	}
	ASSERT_EQ(modify(fd, id, 0, 0), 0);
	ASSERT_EQ(wait_record(fd).id, id);
}

TEST(deadline_modify_of_a_ready_event_suppresses_its_record_and_arms_it_again)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id;

	words[3] = 1;
	words[4] = monotonic_ns() + FAR_NS;
	id = add_deadline(fd, 3, 42);
	wait_readable(fd);
	ASSERT_EQ(modify_deadline(fd, id, 4), 0);
	check_nothing_ready(fd);
	check_waits_for(fd, id, 4, words[4]);
	words[4] = monotonic_ns() + SOON_NS;
	ASSERT_EQ(modify_deadline(fd, id, 4), 0);
	wait_only_record(fd, id, words[4]);
	check_all_ended(fd, 1, 0);
}

TEST(deadline_modify_of_a_ready_ordinary_event_arms_it_by_the_word)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id = add(fd, 0, 0, 42);

	wait_readable(fd);
	words[9] = monotonic_ns() + SOON_NS;
	ASSERT_EQ(modify_deadline(fd, id, 9), 0);
	wait_only_record(fd, id, words[9]);
	check_all_ended(fd, 1, 0);
}

TEST(deadline_modify_makes_a_periodic_event_one_shot)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id = add_by(fd, make_periodic(0, FAR_NS, NSEC_PER_SEC, 42));

	words[9] = monotonic_ns() + 2 * FAR_NS;
	ASSERT_EQ(modify_deadline(fd, id, 9), 0);
	check_waits_for(fd, id, 9, words[9]);
	words[9] = monotonic_ns() + SOON_NS;
	ASSERT_EQ(modify_deadline(fd, id, 9), 0);
	wait_only_record(fd, id, words[9]);
	check_all_ended(fd, 1, 0);
}

TEST(deadline_modify_makes_it_a_periodic_event)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 due_ns = monotonic_ns(), id;
	struct twheel_cmd cmd;

	words[9] = NEVER_NS;
	id = add_deadline(fd, 9, 42);
	cmd = make_modify(id, TWHEEL_ABS, due_ns);
	cmd.interval_ns = NSEC_PER_SEC;
	ASSERT_EQ(run(fd, &cmd), 0);
	wait_readable(fd);
	ASSERT_EQ(list_one(fd, id).interval_ns, NSEC_PER_SEC);
	ASSERT_EQ(list_one(fd, id).deadline, 0);
	while (query(fd, id, NULL) == TWHEEL_READY) {
		struct twheel_record record;

		ASSERT_EQ(read_records(fd, &record, 1), 1);
		ASSERT_EQ(record.due_ns, due_ns);
		due_ns += record.count * NSEC_PER_SEC;
	}
	ASSERT_EQ(query_time(fd, id), due_ns);
}

/* --- QUERY, LIST, CANCEL and fdinfo ----------------------------------------- */

TEST(deadline_query_and_list_tell_what_the_word_says_until_it_is_ready)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id, value;

	words[6] = monotonic_ns() + FAR_NS;
	id = add_deadline(fd, 6, 42);
	for (value = 1; value; value <<= 1) {
		words[6] = value;
		check_waits_for(fd, id, 6, value);
	}
	words[6] = 12345;
	ASSERT_EQ(modify_deadline(fd, id, 6), 0);
	words[6] = 99;
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
	ASSERT_EQ(query_time(fd, id), 12345);
	ASSERT_EQ(list_one(fd, id).due_ns, 12345);
	ASSERT_EQ(list_one(fd, id).deadline, 7);
	wait_only_record(fd, id, 12345);
}

TEST(deadline_list_tells_the_words_of_all_events)
{
	struct twheel_entry entries[200];
	struct twheel_list list = make_list(entries, ARRAY_SIZE(entries));
	_Atomic __u64 *words;
	int fd = open_deadlines(1000, &words), i;

	for (i = 0; i < 100; i++) {
		words[9 * i] = FAR_NS + i;
		add_deadline(fd, 9 * i, 9 * i + 1);
		add(fd, 0, FAR_NS, 0);
	}
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_LIST, &list), ARRAY_SIZE(entries));
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(entries[i].deadline, entries[i].data);
		if (entries[i].deadline)
			ASSERT_EQ(entries[i].due_ns, words[entries[i].deadline - 1]);
	}
}

TEST(deadline_cancel_ends_it_armed_postponed_and_ready)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	struct counters before;
	__u64 id;

	words[0] = NEVER_NS;
	ASSERT_EQ(cancel(fd, add_deadline(fd, 0, 0)), 0);
	id = add_postponed(fd, words, 1, NEVER_NS, 1);
	ASSERT_EQ(cancel(fd, id), 0);
	ASSERT_EQ(cancel(fd, id), -ENOENT);
	words[2] = 1;
	id = add_deadline(fd, 2, 2);
	wait_readable(fd);
	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
	before = get_counters(fd);
	check_all_ended(fd, 0, before.added);
	/* Its slot may be that of another event now, which is an ordinary one. */
	id = add(fd, 0, FAR_NS, 3);
	ASSERT_EQ(list_one(fd, id).deadline, 0);
	ASSERT_EQ(list_one(fd, id).interval_ns, 0);
}

TEST(deadline_lines_of_fdinfo_are_there_if_there_are_words)
{
	_Atomic __u64 *words;
	int with = open_deadlines(WORDS, &words), without = device_open_nonblock();

	ASSERT_EQ(fdinfo_number(with, "deadlines"), WORDS);
	ASSERT_EQ(fdinfo_number(with, "postponed"), 0);
	ASSERT_EQ(fdinfo_number(without, "deadlines"), -1);
	ASSERT_EQ(fdinfo_number(without, "postponed"), -1);
}

TEST(deadline_counters_add_up_through_its_life)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	struct counters expected = get_counters(fd);
	__u64 id = add_postponed(fd, words, 3, NEVER_NS, 0);

	/* Attempts at it that came too late were cancelled. */
	expected.cancelled = get_counters(fd).cancelled;
	expected.added = expected.cancelled + 1;
	expected.armed = 1;
	check_counters(fd, &expected);
	words[3] = 0;
	ASSERT_EQ(modify_deadline(fd, id, 3), 0);
	expected.armed = 0;
	expected.ready = 1;
	check_counters(fd, &expected);
	wait_record(fd);
	expected.ready = 0;
	expected.finished = 1;
	expected.records = 1;
	check_counters(fd, &expected);
}

/* --- operations ------------------------------------------------------------- */

/* The index is not 0, as it has the place of what other events have. */
#define INDEX		5

TEST(deadline_operation_is_completed_by_a_signal)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	struct twheel_record record;
	struct twheel_entry entry;
	__u64 id;

	words[INDEX] = monotonic_ns() + FAR_NS;
	id = add_deadline(fd, INDEX, 42);
	ASSERT_EQ(watch(fd, id, 11, 10), 0);
	check_waits_for(fd, id, INDEX, words[INDEX]);
	words[INDEX] = monotonic_ns() + 2 * FAR_NS;
	ASSERT_EQ(signal_key(fd, 11, 9), 0);
	ASSERT_EQ(signal_key(fd, 11, 3), 1);

	entry = list_one(fd, id);
	ASSERT_EQ(entry.state, TWHEEL_READY);
	ASSERT_EQ(entry.reason, TWHEEL_COMPLETED);
	ASSERT_EQ(entry.deadline, INDEX + 1);
	ASSERT_EQ(entry.due_ns, words[INDEX]);
	record = wait_completed(fd, 3, 11);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.data, 42);
	ASSERT_EQ(record.flags, TWHEEL_RECORD_SIGNAL);
	ASSERT_EQ(record.due_ns, words[INDEX]);
	check_all_ended(fd, 1, 0);
}

static void check_completed_by_id(int fd, _Atomic __u64 *words, __u64 id)
{
	__u64 due_ns = words[INDEX];
	struct twheel_record record;

	ASSERT_EQ(complete(fd, id, 777), 0);
	ASSERT_EQ(complete(fd, id, 778), -EALREADY);
	ASSERT_EQ(modify_deadline(fd, id, INDEX), -EALREADY);
	words[INDEX] = 3;
	ASSERT_EQ(query_time(fd, id), due_ns);
	ASSERT_EQ(list_one(fd, id).deadline, INDEX + 1);
	ASSERT_EQ(list_one(fd, id).reason, TWHEEL_COMPLETED);
	record = wait_completed(fd, 777, 0);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_EQ(record.flags, 0);
	check_nothing_ready(fd);
}

TEST(deadline_is_completed_by_its_id)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);

	words[INDEX] = monotonic_ns() + FAR_NS;
	check_completed_by_id(fd, words, add_deadline(fd, INDEX, 42));
	check_completed_by_id(fd, words,
			      add_postponed(fd, words, INDEX, NEVER_NS, 42));
}

TEST(deadline_operation_is_completed_by_its_id)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id;

	words[INDEX] = ~0ULL;
	id = add_deadline(fd, INDEX, 42);
	ASSERT_EQ(watch(fd, id, 11, 10), 0);
	check_completed_by_id(fd, words, id);
}

/* An operation of a quorum of two, whose word says never: one watch has had its signal. */
static __u64 add_half_done(int fd)
{
	struct twheel_cmd cmd = make_deadline_add(INDEX, 42);
	__u64 id;

	cmd.quorum = 2;
	id = add_by(fd, cmd);
	ASSERT_EQ(watch(fd, id, 11, 10), 0);
	ASSERT_EQ(watch(fd, id, 12, 10), 0);
	ASSERT_EQ(signal_key(fd, 11, 10), 0);
	ASSERT_EQ(list_one(fd, id).quorum, 2);
	ASSERT_EQ(list_one(fd, id).watches, 1);
	return id;
}

TEST(deadline_operation_expires_at_the_last_time_stored)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	unsigned int late = 0;
	__u64 id;

	for_each_attempt(soon_ns, SOON_NS) {
		words[INDEX] = NEVER_NS;
		id = add_half_done(fd);
		words[INDEX] = monotonic_ns() + soon_ns;
		ASSERT_EQ(modify_deadline(fd, id, INDEX), 0);
		if (store_in_time(&words[INDEX], monotonic_ns() + 2 * soon_ns))
			break;
		ASSERT_EQ(cancel(fd, id), 0);
		late++;
	}
	wait_only_record(fd, id, words[INDEX]);
	ASSERT_EQ(signal_key(fd, 12, 10), 0);
	check_all_ended(fd, 1, late);
}

TEST(deadline_operation_of_a_quorum_is_completed_while_it_is_postponed)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words), i;
	struct twheel_cmd cmd = make_deadline_add(INDEX, 42);
	struct twheel_record record;
	unsigned int late = 0;
	__u64 id;

	words[INDEX] = NEVER_NS;
	cmd.quorum = 3;
	for_each_attempt(soon_ns, SOON_NS) {
		id = add_by(fd, cmd);
		for (i = 1; i <= 4; i++)
			ASSERT_EQ(watch_level(fd, id, i, i), 0);
		if (postpone(fd, words, INDEX, id, soon_ns))
			break;
		ASSERT_EQ(cancel(fd, id), 0);
		late++;
	}
	check_waits_for(fd, id, INDEX, NEVER_NS);
	ASSERT_EQ(signal_key(fd, 1, 1), 0);
	ASSERT_EQ(signal_key(fd, 2, 1), 0);
	ASSERT_EQ(signal_key(fd, 3, 3), 0);
	ASSERT_EQ(signal_key(fd, 4, 5), 1);
	record = wait_completed(fd, 5, 4);
	ASSERT_EQ(record.due_ns, NEVER_NS);
	check_all_ended(fd, 1, late);
}

TEST(deadline_operation_that_watches_after_it_was_postponed_keeps_its_word)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id = add_postponed(fd, words, INDEX, monotonic_ns() + FAR_NS, 42);

	ASSERT_EQ(watch(fd, id, 11, 10), 0);
	check_waits_for(fd, id, INDEX, words[INDEX]);
	words[INDEX] = monotonic_ns() + 2 * FAR_NS;
	ASSERT_EQ(modify_deadline(fd, id, INDEX), 0);
	ASSERT_EQ(list_one(fd, id).watches, 1);
	words[INDEX] = monotonic_ns() + SOON_NS;
	ASSERT_EQ(modify_deadline(fd, id, INDEX), 0);
	wait_only_record(fd, id, words[INDEX]);
}

TEST(deadline_operation_is_cancelled_by_a_quiet_signal)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u64 id = add_postponed(fd, words, INDEX, NEVER_NS, 42);
	long long cancelled = get_counters(fd).cancelled;

	ASSERT_EQ(watch(fd, id, 11, 10), 0);
	ASSERT_EQ(signal_quietly(fd, 11), 1);
	ASSERT_EQ(query(fd, id, NULL), -ENOENT);
	check_all_ended(fd, 0, cancelled + 1);
}

TEST(deadline_operation_may_become_ordinary_and_back_and_keeps_its_watches)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	struct twheel_cmd cmd;
	__u64 id;

	words[INDEX] = NEVER_NS;
	id = add_deadline(fd, INDEX, 42);
	ASSERT_EQ(watch(fd, id, 11, 10), 0);
	cmd = make_modify(id, 0, FAR_NS);
	cmd.interval_ns = NSEC_PER_SEC;
	check_refused(fd, &cmd, EINVAL);
	check_waits_for(fd, id, INDEX, NEVER_NS);

	ASSERT_EQ(modify(fd, id, TWHEEL_ABS, 2 * FAR_NS), 0);
	ASSERT_EQ(list_one(fd, id).deadline, 0);
	ASSERT_EQ(list_one(fd, id).interval_ns, 0);
	ASSERT_EQ(list_one(fd, id).watches, 1);
	words[INDEX + 1] = FAR_NS;
	ASSERT_EQ(modify_deadline(fd, id, INDEX + 1), 0);
	check_waits_for(fd, id, INDEX + 1, FAR_NS);
	ASSERT_EQ(signal_key(fd, 11, 10), 1);
	ASSERT_EQ(wait_completed(fd, 10, 11).due_ns, FAR_NS);
}

/* One that expired begins anew, without watches. */
TEST(deadline_operation_that_expired_is_armed_again_by_modify)
{
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);
	__u32 quorum;

	for (quorum = 1; quorum <= 2; quorum++) {
		struct twheel_cmd cmd = make_deadline_add(INDEX, 42);
		__u64 id;

		test_about("quorum %u", quorum);
		words[INDEX] = NEVER_NS;
		cmd.quorum = quorum;
		id = add_by(fd, cmd);
		ASSERT_EQ(watch(fd, id, 11, 10), 0);
		words[INDEX] = 1;
		ASSERT_EQ(modify_deadline(fd, id, INDEX), 0);
		wait_readable(fd);
		words[INDEX + 1] = NEVER_NS;
		ASSERT_EQ(modify_deadline(fd, id, INDEX + 1), 0);
		check_nothing_ready(fd);
		check_waits_for(fd, id, INDEX + 1, NEVER_NS);
		ASSERT_EQ(list_one(fd, id).watches, 0);
		ASSERT_EQ(signal_key(fd, 11, 10), 0);
		words[INDEX + 1] = 2;
		ASSERT_EQ(modify_deadline(fd, id, INDEX + 1), 0);
		wait_only_record(fd, id, 2);
	}
}

/* --- where records are waited for by number --------------------------------- */

TEST(deadline_that_is_postponed_does_not_count_to_the_wake_count)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, WORDS);
	struct twheel_record records[4];
	_Atomic __u64 *words;
	__u64 id;
	int fd;

	config.wake_count = 2;
	config.wake_delay_ns = FAR_NS;
	fd = device_open_configured(O_RDWR | O_NONBLOCK, &config);
	words = map_deadlines(fd, WORDS);
	id = add_postponed(fd, words, 1, NEVER_NS, 1);
	ASSERT_EQ(poll_events(fd, 0), 0);
	add_deadline(fd, 0, 2);
	ASSERT_EQ(get_counters(fd).ready, 1);
	ASSERT_EQ(poll_events(fd, 0), 0);
	words[1] = 1;
	ASSERT_EQ(modify_deadline(fd, id, 1), 0);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	ASSERT_EQ(read_records(fd, records, 4), 2);
	ASSERT_EQ(records[0].data, 2);
	ASSERT_EQ(records[1].id, id);
}

TEST(deadline_commands_of_enter_are_run_and_their_records_come)
{
	struct twheel_record records[2];
	_Atomic __u64 *words;
	int fd = open_deadlines(WORDS, &words);

	pin_to_this_cpu();
	/* An event that is past due when armed is ready at once: the other may come second. */
	for_each_attempt(soon_ns, SOON_NS) {
		struct twheel_cmd cmds[2] = {
			make_deadline_add(0, 0), make_deadline_add(1, 1),
		};
		struct twheel_enter arg = make_enter(cmds, 2, records, 2);
		int i;

		words[0] = monotonic_ns() + 2 * soon_ns;
		words[1] = monotonic_ns() + soon_ns;
		arg.min_records = 2;
		arg.timeout_ns = ENTER_FOR_EVER;
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.cmds_done, 2);
		ASSERT_EQ(arg.records_done, 2);
		ASSERT_EQ(records[0].data + records[1].data, 1);
		for (i = 0; i < 2; i++)
			ASSERT_EQ(records[i].due_ns, words[records[i].data]);
		if (records[0].data == 1)
			break;
	}
}
