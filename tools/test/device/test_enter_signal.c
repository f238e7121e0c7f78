// SPDX-License-Identifier: GPL-2.0
/* ENTER and signals: a mask for the time of the wait, and a stop and continue. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

/* The kernel's own, which is shorter than the library's. */
#define MASK_BYTES	8

/* A context with an event that is not due soon. */
static int open_with_armed(void)
{
	int fd = device_open_nonblock();

	add(fd, 0, FAR_NS, ~0ULL);
	return fd;
}

/* Block SIGUSR1, whose handler counts, and give the mask that lets it through. */
static sigset_t block_usr1(void)
{
	sigset_t usr1, before;

	count_signals(SIGUSR1, 0);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &usr1, &before), 0);
	sigdelset(&before, SIGUSR1);
	return before;
}

static void check_usr1_blocked(bool blocked)
{
	sigset_t now;

	ASSERT_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	ASSERT_EQ(sigismember(&now, SIGUSR1), blocked);
}

/* An ENTER that waits for ever for one record, with this mask. */
static struct twheel_enter enter_with_mask(struct twheel_record *record,
					   const sigset_t *mask)
{
	struct twheel_enter arg = make_enter(NULL, 0, record, 1);

	arg.min_records = 1;
	arg.timeout_ns = ENTER_FOR_EVER;
	arg.sigmask = (uintptr_t)mask;
	arg.sigset_size = MASK_BYTES;
	return arg;
}

TEST(enter_with_a_mask_is_ended_by_a_signal_that_was_pending)
{
	sigset_t mask = block_usr1();
	struct twheel_record record;
	struct twheel_enter arg = enter_with_mask(&record, &mask);
	int fd = open_with_armed();

	raise(SIGUSR1);
	ASSERT_EQ(signals_counted(), 0);
	ASSERT_EQ(enter(fd, &arg), -EINTR);
	ASSERT_EQ(signals_counted(), 1);
	check_usr1_blocked(true);
}

/* It returns 0 for what it has done, and the handler runs all the same. */
TEST(enter_with_a_mask_that_did_something_has_the_signal_handled)
{
	sigset_t mask = block_usr1();
	struct twheel_record records[2];
	struct twheel_cmd cmd = make_add(0, FAR_NS, 1);
	int fd = open_with_armed(), i;

	for (i = 1; i <= 3; i++) {
		struct twheel_enter arg = enter_with_mask(records, &mask);

		test_about("turn %d", i);
		arg.cmds = (uintptr_t)&cmd;
		arg.nr_cmds = 1;
		raise(SIGUSR1);
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.cmds_done, 1);
		ASSERT_EQ(arg.records_done, 0);
		ASSERT_EQ(signals_counted(), i);
		check_usr1_blocked(true);
	}
}

TEST(enter_with_a_mask_that_gave_too_few_records_has_the_signal_handled)
{
	sigset_t mask = block_usr1();
	struct twheel_record records[2];
	struct twheel_enter arg = enter_with_mask(records, &mask);
	int fd = open_with_armed();

	add(fd, 0, 0, 42);
	wait_ready(fd, 1);
	arg.nr_records = 2;
	arg.min_records = 2;
	raise(SIGUSR1);
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.records_done, 1);
	ASSERT_EQ(records[0].data, 42);
	ASSERT_EQ(signals_counted(), 1);
	check_usr1_blocked(true);
}

TEST(enter_with_a_mask_leaves_a_signal_pending_when_it_gives_records)
{
	sigset_t mask = block_usr1();
	struct twheel_record record;
	struct twheel_enter arg = enter_with_mask(&record, &mask);
	int fd = open_with_armed();

	add(fd, 0, 0, 7);
	wait_ready(fd, 1);
	raise(SIGUSR1);
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.records_done, 1);
	ASSERT_EQ(record.data, 7);
	ASSERT_EQ(signals_counted(), 0);
	check_usr1_blocked(true);
	ASSERT_EQ(enter(fd, &arg), -EINTR);
	ASSERT_EQ(signals_counted(), 1);
}

TEST(enter_with_a_mask_restores_the_old_one_when_time_runs_out)
{
	sigset_t mask = block_usr1();
	struct twheel_record record;
	struct twheel_enter arg = enter_with_mask(&record, &mask);

	arg.timeout_ns = NSEC_PER_MSEC;
	ASSERT_EQ(enter(open_with_armed(), &arg), 0);
	check_usr1_blocked(true);
	raise(SIGUSR1);
	ASSERT_EQ(signals_counted(), 0);
}

/* A thread that signals the one that is in ENTER, or is about to be. */
struct signaller {
	pthread_t target;
	atomic_uint wanted;
	atomic_bool stop;
};

static void *send_signals(void *arg)
{
	struct signaller *signaller = arg;
	unsigned int sent = 0;

	while (!signaller->stop) {
		if (signaller->wanted == sent)
			continue;
		pthread_kill(signaller->target, SIGUSR1);
		sent++;
	}
	return NULL;
}

/*
 * As a program does: nothing to do, so wait.  The signal comes at any moment between
 * that check and the sleep; if one is lost, this sleeps for ever.
 */
TEST(enter_with_a_mask_loses_no_signal_between_a_check_and_the_wait)
{
	const int rounds = test_count(1000);
	sigset_t mask = block_usr1();
	struct twheel_record record;
	struct twheel_enter arg = enter_with_mask(&record, &mask);
	struct signaller signaller = { .target = pthread_self() };
	pthread_t thread = start_thread(send_signals, &signaller);
	int fd = open_with_armed(), round;
	__u64 seed = 3;

	for (round = 0; round < rounds; round++) {
		volatile unsigned int spin = next_random(&seed) % 300;

		ASSERT_EQ(signals_counted(), round);
		signaller.wanted++;
		while (spin)
			spin--;
		ASSERT_EQ(enter(fd, &arg), -EINTR);
	}
	ASSERT_EQ(signals_counted(), rounds);
	signaller.stop = true;
	join_thread(thread);
}

/* A process that waits in ENTER, with or without a mask that blocks all signals. */
struct sleeper {
	int fd;
	struct twheel_enter arg;
	struct twheel_record record;
	long expected;
};

static pid_t start_sleeper(struct sleeper *sleeper)
{
	pid_t pid;

	sleeper->arg.records = (uintptr_t)&sleeper->record;
	pid = start_child();
	if (!pid) {
		ASSERT_EQ(enter(sleeper->fd, &sleeper->arg), sleeper->expected);
		if (!sleeper->expected)
			ASSERT_EQ(sleeper->record.data, 42);
		_exit(0);
	}
	wait_asleep(pid);
	return pid;
}

TEST(enter_with_a_mask_that_blocks_a_signal_does_not_heed_it)
{
	sigset_t all;
	struct sleeper sleeper = { .fd = open_with_armed() };
	pid_t pid;

	sigfillset(&all);
	count_signals(SIGUSR1, 0);
	sleeper.arg = enter_with_mask(&sleeper.record, &all);
	pid = start_sleeper(&sleeper);
	ASSERT_EQ(kill(pid, SIGUSR1), 0);
	wait_asleep(pid);
	add(sleeper.fd, 0, 0, 42);
	wait_child(pid);
}

TEST(enter_with_a_mask_that_blocks_all_is_killed_all_the_same)
{
	sigset_t all;
	struct sleeper sleeper = { .fd = open_with_armed() };

	sigfillset(&all);
	sleeper.arg = enter_with_mask(&sleeper.record, &all);
	kill_child(start_sleeper(&sleeper));
}

static void check_goes_on(__u32 flags, __u64 timeout_ns, const sigset_t *mask)
{
	struct sleeper sleeper = { .fd = open_with_armed() };
	pid_t pid;
	int i;

	sleeper.arg = make_enter(NULL, 0, &sleeper.record, 1);
	sleeper.arg.min_records = 1;
	sleeper.arg.flags = flags;
	sleeper.arg.timeout_ns = timeout_ns;
	if (mask) {
		sleeper.arg.sigmask = (uintptr_t)mask;
		sleeper.arg.sigset_size = MASK_BYTES;
	}
	pid = start_sleeper(&sleeper);
	for (i = 0; i < 3; i++) {
		stop_and_continue(pid);
		wait_asleep(pid);
	}
	add(sleeper.fd, 0, 0, 42);
	wait_child(pid);
}

TEST(enter_that_waits_for_ever_goes_on_after_a_stop_and_continue)
{
	sigset_t none;

	sigemptyset(&none);
	check_goes_on(0, ENTER_FOR_EVER, NULL);
	check_goes_on(0, ENTER_FOR_EVER, &none);
}

TEST(enter_until_an_absolute_time_goes_on_after_a_stop_and_continue)
{
	check_goes_on(TWHEEL_ENTER_ABS, monotonic_ns() + FAR_NS, NULL);
}

/* Begun again, it would wait for longer than asked for. */
TEST(enter_for_a_relative_time_is_ended_by_a_stop_and_continue)
{
	struct sleeper sleeper = {
		.fd = open_with_armed(),
		.expected = -EINTR,
	};
	pid_t pid;

	sleeper.arg = make_enter(NULL, 0, &sleeper.record, 1);
	sleeper.arg.min_records = 1;
	sleeper.arg.timeout_ns = FAR_NS;
	pid = start_sleeper(&sleeper);
	stop_and_continue(pid);
	wait_child(pid);
}

/* Check that a call is refused as a whole, with its one command not run. */
static void check_refused_mask(__u64 sigmask, __u32 sigset_size, __u32 reserved2,
			       int error)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct twheel_record record;
	struct twheel_enter arg = make_enter(&cmd, 1, &record, 1);
	int fd = device_open_nonblock();

	arg.sigmask = sigmask;
	arg.sigset_size = sigset_size;
	arg.reserved2 = reserved2;
	ASSERT_EQ(enter(fd, &arg), -error);
	ASSERT_EQ(cmd.result, FILL_RESULT);
	ASSERT_EQ(get_counters(fd).added, 0);
}

TEST(enter_refuses_a_mask_of_another_size_or_none_with_a_size)
{
	static const __u32 sizes[] = { 0, 1, 4, 7, 9, 16, 128, ~0U };
	sigset_t none;
	size_t i;

	sigemptyset(&none);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		test_about("size %u", sizes[i]);
		check_refused_mask((uintptr_t)&none, sizes[i], 0, EINVAL);
		if (sizes[i])
			check_refused_mask(0, sizes[i], 0, EINVAL);
	}
	check_refused_mask(0, MASK_BYTES, 0, EINVAL);
}

TEST(enter_refuses_the_second_reserved_field)
{
	unsigned int bit;

	for (bit = 0; bit < 32; bit++)
		check_refused_mask(0, 0, 1U << bit, EINVAL);
}

TEST(enter_with_a_mask_that_is_not_there_does_nothing)
{
	check_refused_mask(PAGE_BYTES, MASK_BYTES, 0, EFAULT);
	check_refused_mask((uintptr_t)map_before_hole(MASK_BYTES - 1), MASK_BYTES, 0,
			   EFAULT);
}

TEST(enter_with_a_struct_of_64_bytes_is_served_as_ever)
{
	struct twheel_cmd cmd = make_add(0, SOON_NS, 42);
	struct twheel_record record;
	struct twheel_enter whole = make_enter(&cmd, 1, &record, 1);
	void *arg = map_before_hole(64);

	whole.size = 64;
	whole.min_records = 1;
	whole.timeout_ns = ENTER_FOR_EVER;
	memcpy(arg, &whole, 64);
	ASSERT_EQ(device_ioctl(device_open_nonblock(), TWHEEL_IOC_ENTER, arg), 0);
	memcpy(&whole, arg, 64);
	ASSERT_EQ(whole.cmds_done, 1);
	ASSERT_EQ(whole.records_done, 1);
	ASSERT_EQ(record.data, 42);
}

/* --- what a record says of a signal ------------------------------------------- */

TEST(record_of_a_signal_on_key_0_says_that_it_was_one)
{
	int fd = device_open_nonblock();
	struct twheel_record record;
	__u64 id = add_watching(fd, 0, 1, 7);

	ASSERT_EQ(signal_key(fd, 0, 5), 1);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.reason, TWHEEL_COMPLETED);
	ASSERT_EQ(record.key, 0);
	ASSERT_EQ(record.value, 5);
	ASSERT_EQ(record.flags, TWHEEL_RECORD_SIGNAL);
}

TEST(record_of_a_complete_does_not_say_that_it_was_a_signal)
{
	int fd = device_open_nonblock();
	struct twheel_record record;
	__u64 id = add_watching(fd, 0, 1, 7);

	ASSERT_EQ(complete(fd, id, 5), 0);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(record.reason, TWHEEL_COMPLETED);
	ASSERT_EQ(record.flags, 0);
}

/* A slot that is used again does not bring the flag of the event before. */
TEST(record_of_an_expired_event_does_not_say_that_it_was_a_signal)
{
	int fd = device_open_nonblock();
	struct twheel_record record;

	add_watching(fd, 0, 1, 7);
	ASSERT_EQ(signal_key(fd, 0, 5), 1);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	add(fd, 0, 0, 8);
	ASSERT_EQ(wait_record(fd).flags, 0);
}
