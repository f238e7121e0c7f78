// SPDX-License-Identifier: GPL-2.0
/*
 * Signals during read(), SUBMIT and ENTER: what was done is reported, nothing
 * is lost, and a process may be killed at any moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.h"
#include "stuck.h"
#include "util.h"
#include "waiter.h"

/* --- calls that wait -------------------------------------------------------- */

static void interrupt(struct waiter *caller, pthread_t thread)
{
	wait_waiter_asleep(caller);
	ASSERT_EQ(pthread_kill(thread, SIGUSR1), 0);
}

TEST(enter_that_waits_is_interrupted_by_a_signal)
{
	static const struct {
		__u32 flags;
		__u64 timeout_ns;
	} waits[] = {
		{ 0, ENTER_FOR_EVER }, { TWHEEL_ENTER_ABS, ENTER_FOR_EVER },
		{ 0, FAR_NS }, { TWHEEL_ENTER_ABS, 2 * FAR_NS },
	};
	size_t i;

	count_signals(SIGUSR1, 0);
	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		struct waiter caller = {
			.fd = device_open_nonblock(),
			.min_records = 1,
			.flags = waits[i].flags,
			.timeout_ns = waits[i].timeout_ns,
		};
		pthread_t thread = start_thread(wait_in_enter, &caller);

		test_about("wait %zu", i);
		interrupt(&caller, thread);
		join_thread(thread);
		ASSERT_EQ(caller.ret, -EINTR);
		ASSERT_EQ(signals_counted(), i + 1);
	}
}

TEST(enter_interrupted_by_a_signal_reports_its_commands)
{
	struct twheel_cmd cmds[100];
	struct waiter caller = {
		.fd = device_open_nonblock(),
		.cmds = cmds,
		.nr_cmds = ARRAY_SIZE(cmds),
		.min_records = 1,
	};
	pthread_t thread;
	size_t i;

	count_signals(SIGUSR1, SA_RESTART);
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		cmds[i] = make_add(0, FAR_NS, i);
	thread = start_thread(wait_in_enter, &caller);
	while (get_counters(caller.fd).added < (long long)ARRAY_SIZE(cmds))
		poll(NULL, 0, 1);
	interrupt(&caller, thread);
	join_thread(thread);
	ASSERT_EQ(caller.ret, 0);
	ASSERT_EQ(caller.arg.cmds_done, ARRAY_SIZE(cmds));
	ASSERT_EQ(caller.arg.records_done, 0);
	ASSERT_EQ(get_counters(caller.fd).added, ARRAY_SIZE(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		ASSERT_EQ(query(caller.fd, cmds[i].id, NULL), TWHEEL_ARMED);
}

/* Check that the record is either with the caller or still to be read. */
static void check_one_record_somewhere(struct waiter *caller)
{
	if (caller->ret == 0 && caller->arg.records_done) {
		ASSERT_EQ(caller->arg.records_done, 1);
		check_record(&caller->records[0]);
		check_nothing_ready(caller->fd);
		return;
	}
	if (caller->ret)
		ASSERT_EQ(caller->ret, -EINTR);
	wait_record(caller->fd);
	check_nothing_ready(caller->fd);
}

TEST(enter_interrupted_with_fewer_than_min_records_loses_none)
{
	struct waiter caller = {
		.fd = device_open_nonblock(),
		.min_records = 3,
	};
	pthread_t thread;

	count_signals(SIGUSR1, 0);
	add(caller.fd, 0, FAR_NS, 0);
	add(caller.fd, 0, 0, 42);
	wait_ready(caller.fd, 1);
	thread = start_thread(wait_in_enter, &caller);
	interrupt(&caller, thread);
	join_thread(thread);
	check_one_record_somewhere(&caller);
}

TEST(enter_with_a_pending_signal_loses_no_record_that_is_ready)
{
	struct waiter caller = {
		.fd = device_open_nonblock(),
		.min_records = 1,
	};
	sigset_t set, before;
	pid_t pid;

	/* A child's handler runs as soon as the call is over. */
	add(caller.fd, 0, 0, 42);
	wait_ready(caller.fd, 1);
	pid = start_child();
	if (!pid) {
		count_signals(SIGUSR1, 0);
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		ASSERT_EQ(sigprocmask(SIG_BLOCK, &set, &before), 0);
		ASSERT_EQ(raise(SIGUSR1), 0);
		ASSERT_EQ(sigprocmask(SIG_SETMASK, &before, NULL), 0);
		wait_in_enter(&caller);
		check_one_record_somewhere(&caller);
		_exit(0);
	}
	wait_child(pid);
	ASSERT_EQ(get_counters(caller.fd).finished, 1);
}

TEST(enter_and_a_signal_with_sa_restart_lose_nothing)
{
	struct waiter caller = {
		.fd = device_open_nonblock(),
		.min_records = 1,
	};
	pthread_t thread;

	count_signals(SIGUSR1, SA_RESTART);
	thread = start_thread(wait_in_enter, &caller);
	interrupt(&caller, thread);
	wait_signal_after(0);

	/* It has ended or goes on; either way the record comes once. */
	add(caller.fd, 0, 0, 42);
	join_thread(thread);
	check_one_record_somewhere(&caller);
}

/* --- many signals ----------------------------------------------------------- */

TEST(enter_of_a_loop_under_signals_loses_nothing)
{
	const size_t nr = test_count(50000);
	struct twheel_record records[64];
	int fd = device_open_nonblock();
	struct twheel_cmd cmds[64];
	size_t armed = 0, reaped = 0, i;
	unsigned char *seen = map_pages(nr);

	start_alarms(0);
	while (reaped < nr) {
		size_t nr_cmds = nr - armed;
		struct twheel_enter arg;
		long ret;

		if (nr_cmds > ARRAY_SIZE(cmds))
			nr_cmds = ARRAY_SIZE(cmds);
		for (i = 0; i < nr_cmds; i++)
			cmds[i] = make_add(0, i * 10000, armed + i);
		arg = make_enter(cmds, nr_cmds, records, ARRAY_SIZE(records));
		arg.min_records = nr - reaped;
		if (arg.min_records > ARRAY_SIZE(records))
			arg.min_records = ARRAY_SIZE(records);
		arg.timeout_ns = ENTER_FOR_EVER;
		ret = enter(fd, &arg);
		if (ret == -EINTR)
			continue;
		ASSERT_EQ(ret, 0);
		armed += arg.cmds_done;
		reaped += arg.records_done;
		for (i = 0; i < arg.records_done; i++)
			seen[records[i].data]++;
		for (i = 0; i < nr_cmds; i++)
			ASSERT_EQ(cmds[i].result,
				  i < arg.cmds_done ? 0 : FILL_RESULT);
		ASSERT_EQ(get_counters(fd).added, armed);
		ASSERT_EQ(get_counters(fd).finished, reaped);
	}
	check_bytes(seen, 1, nr);
	check_nothing_ready(fd);
}

static void check_read_loop(int fd, size_t nr, bool restarts)
{
	unsigned char *seen = map_pages(nr);
	struct twheel_record records[16];
	size_t done = 0;
	long ret, i;

	while (done < nr) {
		ret = read_records(fd, records, ARRAY_SIZE(records));
		if (ret == -EINTR && !restarts)
			continue;
		ASSERT_GT(ret, 0);
		for (i = 0; i < ret; i++)
			seen[records[i].data]++;
		done += ret;
	}
	check_bytes(seen, 1, nr);
	ASSERT_EQ(get_counters(fd).finished, nr);
}

TEST(read_of_a_loop_under_signals_loses_nothing)
{
	const size_t nr = test_count(20000);
	int fd = device_open(O_RDWR), other = device_open(O_RDWR);

	add_many(fd, 0, 0, nr, NULL);
	add_many(other, 0, SOON_NS, nr, NULL);
	start_alarms(0);
	check_read_loop(fd, nr, false);
	start_alarms(SA_RESTART);
	check_read_loop(other, nr, true);
}

TEST(read_under_signals_waits_for_an_event_with_sa_restart)
{
	int fd = device_open(O_RDWR);
	unsigned int i;

	start_alarms(SA_RESTART);
	for (i = 0; i < 20; i++) {
		__u64 due_ns = monotonic_ns() + SOON_NS;
		struct twheel_record record;

		add(fd, TWHEEL_ABS, due_ns, i);
		ASSERT_EQ(read_records(fd, &record, 1), 1);
		ASSERT_EQ(record.data, i);
	}
	ASSERT_GT(signals_counted(), 0);
}

/* --- calls that wait for one that cannot go on ------------------------------ */

/*
 * Check that a call which another keeps waiting is interrupted by a signal, and
 * did nothing.  One record is ready all the time.
 */
static void check_interrupted(void *(*call)(void *arg))
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 2);
	struct waiter caller = {
		.fd = device_open(O_RDWR),
		.cmds = &cmd,
		.nr_cmds = 1,
	};
	struct stuck stuck;
	pthread_t thread;

	count_signals(SIGUSR1, 0);
	add(caller.fd, 0, 0, 42);
	start_stuck(&stuck, caller.fd);
	thread = start_thread(call, &caller);
	interrupt(&caller, thread);
	join_thread(thread);
	ASSERT_EQ(caller.ret, -EINTR);
	ASSERT_EQ(cmd.result, FILL_RESULT);
	finish_stuck(&stuck);
	ASSERT_EQ(get_counters(caller.fd).added, 2);
	ASSERT_EQ(wait_record(caller.fd).data, 42);
}

static void *call_list(void *arg)
{
	struct waiter *caller = arg;
	struct twheel_entry entry;
	struct twheel_list list = make_list(&entry, 1);

	waiter_begin(caller);
	waiter_end(caller, device_ioctl(caller->fd, TWHEEL_IOC_LIST, &list));
	return NULL;
}

static void *call_config(void *arg)
{
	struct waiter *caller = arg;
	struct twheel_config config = default_config();

	waiter_begin(caller);
	waiter_end(caller, device_ioctl(caller->fd, TWHEEL_IOC_CONFIG,
					&config));
	return NULL;
}

TEST(submit_that_waits_for_another_is_interrupted_by_a_signal)
{
	check_interrupted(wait_in_submit);
}

TEST(enter_that_waits_for_another_is_interrupted_by_a_signal)
{
	check_interrupted(wait_in_enter);
}

TEST(list_that_waits_for_another_is_interrupted_by_a_signal)
{
	check_interrupted(call_list);
}

TEST(config_that_waits_for_another_is_interrupted_by_a_signal)
{
	check_interrupted(call_config);
}

TEST(read_that_waits_for_another_is_interrupted_by_a_signal)
{
	check_interrupted(wait_in_read);
}

TEST(submit_that_waits_for_another_goes_on_after_a_signal_with_sa_restart)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 2);
	struct waiter caller = {
		.fd = device_open_nonblock(),
		.cmds = &cmd,
		.nr_cmds = 1,
	};
	struct stuck stuck;
	pthread_t thread;

	count_signals(SIGUSR1, SA_RESTART);
	start_stuck(&stuck, caller.fd);
	thread = start_thread(wait_in_submit, &caller);
	interrupt(&caller, thread);
	wait_signal_after(0);
	wait_waiter_asleep(&caller);
	finish_stuck(&stuck);
	join_thread(thread);
	ASSERT_EQ(caller.ret, 1);
	ASSERT_EQ(cmd.result, 0);
	ASSERT_EQ(get_counters(caller.fd).added, 2);
}

TEST(events_expire_while_a_submit_cannot_go_on)
{
	int fd = device_open_nonblock();
	struct stuck stuck;

	add(fd, 0, SOON_NS, 42);
	start_stuck(&stuck, fd);
	wait_readable(fd);
	finish_stuck(&stuck);
	ASSERT_EQ(wait_record(fd).data, 42);
}

/* --- SIGKILL ---------------------------------------------------------------- */

/* The child's use of the context until it is killed. */
static void read_for_ever(int fd)
{
	struct twheel_record records[7];

	for (;;)
		ASSERT_GT(read_records(fd, records, ARRAY_SIZE(records)), 0);
}

static void submit_for_ever(int fd)
{
	const size_t nr = 10000;
	struct twheel_cmd *cmds = map_pages(nr * sizeof(*cmds));
	size_t i;

	for (;;) {
		for (i = 0; i < nr; i++)
			cmds[i] = make_add(0, i % 2 ? 0 : FAR_NS, i);
		submit(fd, cmds, nr);
		for (i = 0; i < nr; i++)
			cmds[i] = make_cmd(TWHEEL_OP_CANCEL, cmds[i].id);
		submit(fd, cmds, nr);
	}
}

static void enter_for_ever(int fd)
{
	struct twheel_record records[64];
	struct twheel_cmd cmds[64];

	for (;;) {
		struct twheel_enter arg = make_enter(cmds, 64, records, 64);
		size_t i;

		for (i = 0; i < 64; i++)
			cmds[i] = make_add(0, i * 20000, i);
		arg.min_records = 64;
		arg.timeout_ns = ENTER_FOR_EVER;
		ASSERT_EQ(enter(fd, &arg), 0);
	}
}

/*
 * Check that a context goes on working, with all its events accounted for, each
 * time a process that used it was killed.
 */
static void check_survives_kill(int flags, void (*use)(int fd))
{
	const unsigned int rounds = test_count(100);
	int fd = device_open(O_RDWR | flags);
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		struct counters counters;
		__u64 until_ns, id;
		pid_t pid;

		test_about("round %u", i);
		if (!flags)
			add_many(fd, 0, 0, 500, NULL);
		pid = start_child();
		if (!pid) {
			use(fd);
			_exit(1);
		}
		until_ns = monotonic_ns() + i % 20 * 500 * NSEC_PER_USEC;
		while (monotonic_ns() < until_ns)
			;
		kill_child(pid);
		counters = get_counters(fd);
		check_sum(&counters);
		ASSERT_EQ(counters.records, counters.finished);
		id = add(fd, 0, FAR_NS, 1);
		ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
		ASSERT_EQ(cancel(fd, id), 0);
	}
}

TEST(kill_of_a_process_in_read_leaves_a_context_that_works)
{
	check_survives_kill(0, read_for_ever);
}

TEST(kill_of_a_process_in_submit_leaves_a_context_that_works)
{
	check_survives_kill(O_NONBLOCK, submit_for_ever);
}

TEST(kill_of_a_process_in_enter_leaves_a_context_that_works)
{
	check_survives_kill(O_NONBLOCK, enter_for_ever);
}

/* Kill a child that sleeps in a call. */
static void check_killed_asleep(int fd, void (*use)(int fd))
{
	pid_t pid = start_child();

	if (!pid) {
		use(fd);
		_exit(0);
	}
	wait_asleep(pid);
	kill_child(pid);
	add(fd, 0, 0, 42);
	ASSERT_EQ(wait_record(fd).data, 42);
}

static void read_once(int fd)
{
	struct twheel_record record;

	read_records(fd, &record, 1);
}

static void enter_once(int fd)
{
	struct twheel_record record;
	struct twheel_enter arg = make_enter(NULL, 0, &record, 1);

	arg.min_records = 1;
	arg.timeout_ns = ENTER_FOR_EVER;
	enter(fd, &arg);
}

TEST(kill_of_a_process_asleep_in_read_leaves_the_record_to_others)
{
	check_killed_asleep(device_open(O_RDWR), read_once);
}

TEST(kill_of_a_process_asleep_in_enter_leaves_the_record_to_others)
{
	check_killed_asleep(device_open(O_RDWR), enter_once);
}
