// SPDX-License-Identifier: GPL-2.0
/*
 * Delayed operations by the hundred thousand, one SIGNAL that ends them all, and
 * who is woken by it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "device.h"
#include "util.h"
#include "waiter.h"

#define KEY		0x1234

/* As many commands as make an operation that watches KEY. */
#define BATCH		500

/*
 * Arm @nr operations that wait for a sum of 1, 2, ... @nr on KEY, in an order
 * that is not this one.  The data is the need less 1.
 */
static void add_waiting(int fd, size_t nr, __u64 *ids)
{
	struct twheel_cmd *cmds = calloc(2 * BATCH, sizeof(*cmds));
	size_t done, i;

	ASSERT(cmds);
	for (done = 0; done < nr; done += i) {
		for (i = 0; i < BATCH && done + i < nr; i++) {
			/* 7919 is prime, and does not divide our numbers. */
			__u64 data = (done + i) * 7919ULL % nr;

			cmds[2 * i] = make_add(0, FAR_NS, data);
			cmds[2 * i + 1] = make_watch(0, KEY, 1 + data);
		}
		ASSERT_EQ(submit(fd, cmds, 2 * i), 2 * i);
		while (i--) {
			ASSERT_EQ(cmds[2 * i].result, 0);
			ASSERT_EQ(cmds[2 * i + 1].result, 0);
			if (ids)
				ids[cmds[2 * i].data] = cmds[2 * i].id;
		}
		i = done + BATCH < nr ? BATCH : nr - done;
	}
	free(cmds);
}

/* Read all that is ready: the data of each record, in turn. */
static size_t read_data(int fd, __u64 *data, size_t room)
{
	struct twheel_record records[256];
	size_t nr = 0;
	long ret, i;

	while ((ret = read_records(fd, records, ARRAY_SIZE(records))) > 0) {
		ASSERT_LE(nr + ret, room);
		for (i = 0; i < ret; i++) {
			ASSERT_EQ(records[i].reason, TWHEEL_COMPLETED);
			ASSERT_EQ(records[i].key, KEY);
			ASSERT_EQ(records[i].count, 1);
			data[nr++] = records[i].data;
		}
	}
	ASSERT_EQ(ret, -EAGAIN);
	return nr;
}

/* Check that the rest was read, in the order of the needs. */
static void check_read_from(int fd, size_t from, size_t nr)
{
	__u64 *data = map_pages(nr * sizeof(*data));
	size_t i;

	ASSERT_EQ(read_data(fd, data, nr), nr - from);
	for (i = from; i < nr; i++) {
		test_about("record %zu", i);
		ASSERT_EQ(data[i - from], i);
	}
}

static void check_all_finished(int fd, long long nr)
{
	struct counters counters = get_counters(fd);

	check_sum(&counters);
	ASSERT_EQ(counters.added, nr);
	ASSERT_EQ(counters.finished, nr);
	ASSERT_EQ(counters.completed, nr);
	ASSERT_EQ(counters.records, nr);
}

TEST(signal_ends_100000_operations_in_the_order_of_their_needs)
{
	const size_t nr = test_count(100000);
	int fd = device_open_nonblock();

	add_waiting(fd, nr, NULL);
	ASSERT_EQ(signal_key(fd, KEY, nr), nr);
	ASSERT_EQ(get_counters(fd).ready, nr);
	ASSERT_EQ(get_counters(fd).completed, nr);
	check_read_from(fd, 0, nr);
	check_all_finished(fd, nr);
}

TEST(signal_ends_those_of_100000_operations_that_it_reaches)
{
	const size_t nr = test_count(100000);
	int fd = device_open_nonblock();

	add_waiting(fd, nr, NULL);
	ASSERT_EQ(signal_key(fd, KEY, nr / 2), nr / 2);
	ASSERT_EQ(get_counters(fd).ready, nr / 2);
	check_read_from(fd, 0, nr / 2);
	ASSERT_EQ(signal_key(fd, KEY, nr / 2 - 1), nr / 2 - 1);
	check_read_from(fd, nr / 2, nr - 1);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	check_read_from(fd, nr - 1, nr);
	check_all_finished(fd, nr);
}

TEST(signal_ends_operations_of_several_cpus_in_the_order_of_their_needs)
{
	const size_t nr = 1200;
	int fd = device_open_nonblock(), cpus[4];
	size_t nr_cpus = get_cpus(cpus, ARRAY_SIZE(cpus)), i;

	/* Each in the wheel of another CPU than the one before it. */
	for (i = 0; i < nr; i++) {
		__u64 data = i * 7919ULL % nr;

		pin_to_cpu(cpus[i % nr_cpus]);
		add_watching(fd, KEY, 1 + data, data);
	}
	ASSERT_EQ(signal_key(fd, KEY, nr), nr);
	check_read_from(fd, 0, nr);
}

TEST(signals_of_100000_keys_each_end_the_operation_of_theirs)
{
	const size_t nr = test_count(100000);
	struct twheel_cmd *cmds = map_pages(2 * nr * sizeof(*cmds));
	int fd = device_open_nonblock();
	struct twheel_record *records;
	size_t i;

	for (i = 0; i < nr; i++) {
		cmds[2 * i] = make_add(0, FAR_NS, i);
		cmds[2 * i + 1] = make_watch(0, (__u64)i << 20, 1);
	}
	ASSERT_EQ(submit(fd, cmds, 2 * nr), 2 * nr);
	/* All keys, in another order, with keys between them that have no watch. */
	for (i = 0; i < nr; i++) {
		__u64 key = i * 7919ULL % nr << 20;

		ASSERT_EQ(cmds[2 * i].result, 0);
		ASSERT_EQ(cmds[2 * i + 1].result, 0);
		cmds[2 * i] = make_signal(key, 1 + i);
		cmds[2 * i + 1] = make_signal(key + 1, 1 + i);
	}
	ASSERT_EQ(submit(fd, cmds, 2 * nr), 2 * nr);
	records = map_pages(nr * sizeof(*records));
	ASSERT_EQ(read_records(fd, records, nr), nr);
	for (i = 0; i < nr; i++) {
		test_about("record %zu", i);
		ASSERT_EQ(cmds[2 * i].result, 1);
		ASSERT_EQ(cmds[2 * i + 1].result, 0);
		check_completed(&records[i], 1 + i, cmds[2 * i].key);
		ASSERT_EQ(records[i].data, cmds[2 * i].key >> 20);
	}
	check_all_finished(fd, nr);
}

TEST(quiet_signal_cancels_100000_operations)
{
	const size_t nr = test_count(100000);
	int fd = device_open_nonblock();
	struct counters counters;

	add_waiting(fd, nr, NULL);
	ASSERT_EQ(signal_quietly(fd, KEY), nr);
	check_nothing_ready(fd);
	counters = get_counters(fd);
	check_sum(&counters);
	ASSERT_EQ(counters.cancelled, nr);
	ASSERT_EQ(counters.completed, 0);
	ASSERT_EQ(signal_key(fd, KEY, nr), 0);
}

TEST(signal_is_not_cut_short_by_a_signal_that_does_not_kill)
{
	const size_t nr = test_count(100000);
	int fd = device_open_nonblock();

	add_waiting(fd, nr, NULL);
	start_alarms(0);
	ASSERT_EQ(signal_key(fd, KEY, nr), nr);
	ASSERT_EQ(get_counters(fd).ready, nr);
}

/* --- one command ------------------------------------------------------------ */

/* One thread looks at operations while another ends all of them. */
struct looker {
	int fd;
	size_t nr;
	__u64 *ids;
	atomic_bool looked;
	atomic_bool ended;
	size_t before;			/* looks that saw all armed */
};

/* The results of one call of 40 commands on 40 operations that are alike. */
static int look(struct looker *looker, __u64 *seed)
{
	struct twheel_cmd cmds[40];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		size_t which = next_random(seed) % looker->nr;

		/* The last of them and the first are in it always. */
		if (i == 0)
			which = looker->nr - 1;
		else if (i == 1)
			which = 0;
		cmds[i] = make_cmd(TWHEEL_OP_QUERY, looker->ids[which]);
	}
	ASSERT_EQ(submit(looker->fd, cmds, ARRAY_SIZE(cmds)),
		  ARRAY_SIZE(cmds));
	for (i = 1; i < ARRAY_SIZE(cmds); i++)
		ASSERT_EQ(cmds[i].result, cmds[0].result);
	return cmds[0].result;
}

static void *look_until_ended(void *arg)
{
	struct looker *looker = arg;
	__u64 seed = 1;
	int state;

	do {
		bool ended = looker->ended;

		state = look(looker, &seed);
		if (ended)
			ASSERT_EQ(state, TWHEEL_READY);
		if (state == TWHEEL_ARMED)
			looker->before++;
		looker->looked = true;
	} while (state == TWHEEL_ARMED);
	ASSERT_EQ(state, TWHEEL_READY);
	/* Nothing can come after it has ended all. */
	ASSERT_EQ(look(looker, &seed), TWHEEL_READY);
	return NULL;
}

TEST(commands_beside_a_signal_see_none_or_all_of_what_it_ends)
{
	struct looker looker = {
		.fd = device_open_nonblock(),
		.nr = test_count(100000),
	};
	pthread_t threads[2];
	size_t i;

	looker.ids = map_pages(looker.nr * sizeof(*looker.ids));
	add_waiting(looker.fd, looker.nr, looker.ids);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = start_thread(look_until_ended, &looker);
	while (!looker.looked)
		poll(NULL, 0, 1);
	ASSERT_EQ(signal_key(looker.fd, KEY, looker.nr), looker.nr);
	looker.ended = true;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		join_thread(threads[i]);
	ASSERT_GT(looker.before, 0);
}

struct signaller {
	int fd;
	size_t nr;
	atomic_int result;
};

static void *signal_all(void *arg)
{
	struct signaller *signaller = arg;

	signaller->result = signal_key(signaller->fd, KEY, signaller->nr);
	return NULL;
}

TEST(read_beside_a_signal_finds_none_or_all_of_what_it_ends)
{
	struct signaller signaller = {
		.fd = device_open_nonblock(),
		.nr = test_count(100000),
	};
	struct twheel_record *records;
	pthread_t thread;
	long ret;

	records = map_pages(signaller.nr * sizeof(*records));
	add_waiting(signaller.fd, signaller.nr, NULL);
	thread = start_thread(signal_all, &signaller);
	do {
		ret = read_records(signaller.fd, records, signaller.nr);
	} while (ret == -EAGAIN);
	ASSERT_EQ(ret, signaller.nr);
	join_thread(thread);
	ASSERT_EQ(signaller.result, signaller.nr);
	check_all_finished(signaller.fd, signaller.nr);
}

TEST(signals_of_two_threads_on_one_key_end_each_operation_once)
{
	struct signaller signallers[2];
	pthread_t threads[2];
	size_t nr = test_count(100000), i;
	int fd = device_open_nonblock();

	add_waiting(fd, nr, NULL);
	for (i = 0; i < 2; i++) {
		signallers[i].fd = fd;
		signallers[i].nr = nr;
		threads[i] = start_thread(signal_all, &signallers[i]);
	}
	for (i = 0; i < 2; i++)
		join_thread(threads[i]);
	ASSERT_EQ(signallers[0].result + signallers[1].result, nr);
	check_read_from(fd, 0, nr);
	check_all_finished(fd, nr);
}

/* Events that expire while a SIGNAL ends operations on the same wheels. */
TEST(events_expire_while_a_signal_ends_100000_operations)
{
	struct signaller signaller = {
		.fd = device_open_nonblock(),
		.nr = test_count(100000),
	};
	int other = device_open_nonblock();
	pthread_t thread;
	unsigned int i;

	add_waiting(signaller.fd, signaller.nr, NULL);
	thread = start_thread(signal_all, &signaller);
	for (i = 0; i < 50; i++) {
		add(other, 0, NSEC_PER_MSEC, i);
		ASSERT_EQ(wait_record(other).data, i);
	}
	join_thread(thread);
	ASSERT_EQ(signaller.result, signaller.nr);
}

/* Wait until a wheel has lost an event. */
static void wait_fewer_armed(long long armed)
{
	while (armed_on_machine() >= armed)
		;
}

/*
 * Kill a child in a SIGNAL that ends @nr operations: how many it ended, of which
 * nothing was read.
 */
static size_t kill_in_signal(int fd, size_t nr)
{
	struct counters counters;
	long long armed;
	pid_t pid;

	add_waiting(fd, nr, NULL);
	armed = armed_on_machine();
	pid = start_child();
	if (!pid) {
		signal_key(fd, KEY, nr);
		for (;;)
			pause();
	}
	wait_fewer_armed(armed);
	kill_child(pid);
	counters = get_counters(fd);
	check_sum(&counters);
	ASSERT_EQ(counters.armed + counters.ready, nr);
	ASSERT_EQ(counters.cancelled, 0);
	return counters.ready;
}

/* A SIGNAL must be cut short once; mostly it is in the first round. */
#define CUT_ROUNDS	200
#define CUT_MOST	100000

/* How many operations the next round has: a fast processor ends a few before the kill comes. */
static size_t next_to_cut(size_t nr, unsigned int round)
{
	return round % 10 == 9 && nr <= CUT_MOST / 2 ? 2 * nr : nr;
}

TEST(kill_of_a_process_in_a_large_signal_leaves_a_context_that_works)
{
	__u64 *data = map_pages(CUT_MOST * sizeof(*data));
	size_t nr = test_count(CUT_MOST);
	unsigned int round, cut = 0;

	for (round = 0; round < CUT_ROUNDS && !cut; nr = next_to_cut(nr, round++)) {
		int fd = device_open_nonblock();
		size_t ended = kill_in_signal(fd, nr), i;

		cut += ended < nr;
		ASSERT_EQ(get_counters(fd).completed, ended);
		ASSERT_EQ(read_data(fd, data, nr), ended);
		for (i = 0; i < ended; i++)
			ASSERT_EQ(data[i], i);

		/* Nothing more comes of it, and the rest can be ended. */
		check_nothing_ready(fd);
		add_watching(fd, KEY, 1, 0);
		ASSERT_EQ(signal_key(fd, KEY, nr), nr - ended + 1);
		ASSERT_EQ(read_data(fd, data, nr), nr - ended + 1);
		check_all_finished(fd, nr + 1);
		close(fd);
	}
	ASSERT_GT(cut, 0);
}

TEST(kill_of_a_process_in_a_large_quiet_signal_leaves_counters_that_add_up)
{
	size_t nr = test_count(CUT_MOST);
	unsigned int round, cut = 0;

	for (round = 0; round < CUT_ROUNDS && !cut; nr = next_to_cut(nr, round++)) {
		int fd = device_open_nonblock();
		struct counters counters;
		long long armed;
		pid_t pid;

		add_waiting(fd, nr, NULL);
		armed = armed_on_machine();
		pid = start_child();
		if (!pid) {
			signal_quietly(fd, KEY);
			for (;;)
				pause();
		}
		wait_fewer_armed(armed);
		kill_child(pid);
		counters = get_counters(fd);
		check_sum(&counters);
		ASSERT_EQ(counters.armed + counters.cancelled, nr);
		ASSERT_EQ(signal_quietly(fd, KEY), counters.armed);
		ASSERT_EQ(get_counters(fd).cancelled, nr);
		check_nothing_ready(fd);
		cut += counters.armed && counters.cancelled;
		close(fd);
	}
	ASSERT_GT(cut, 0);
}

/* --- who is woken ----------------------------------------------------------- */

static void check_woken(void *(*wait)(void *arg), bool by_id)
{
	unsigned int i;

	for (i = 0; i < 20; i++) {
		struct waiter waiter = {
			.fd = device_open(O_RDWR),
			.min_records = 1,
		};
		__u64 id = add_watching(waiter.fd, KEY, 5, 42);
		pthread_t thread = start_thread(wait, &waiter);

		wait_waiter_asleep(&waiter);
		if (by_id) {
			ASSERT_EQ(complete(waiter.fd, id, 7), 0);
		} else {
			ASSERT_EQ(signal_key(waiter.fd, KEY, 4), 0);
			ASSERT_EQ(signal_key(waiter.fd, KEY, 7), 1);
		}
		join_thread(thread);
		check_completed(&waiter.records[0], 7, by_id ? 0 : KEY);
		ASSERT_EQ(waiter.records[0].id, id);
		close(waiter.fd);
	}
}

TEST(read_that_waits_is_woken_by_a_signal_command)
{
	check_woken(wait_in_read, false);
}

TEST(read_that_waits_is_woken_by_complete)
{
	check_woken(wait_in_read, true);
}

TEST(enter_that_waits_is_woken_by_a_signal_command)
{
	check_woken(wait_in_enter, false);
}

TEST(enter_that_waits_is_woken_by_complete)
{
	check_woken(wait_in_enter, true);
}

TEST(poll_that_waits_is_woken_by_a_signal_command)
{
	check_woken(wait_in_poll, false);
}

TEST(poll_that_waits_is_woken_by_complete)
{
	check_woken(wait_in_poll, true);
}

TEST(epoll_by_edge_is_woken_by_a_signal_command)
{
	check_woken(wait_in_epoll, false);
}

TEST(epoll_by_edge_is_woken_by_complete)
{
	check_woken(wait_in_epoll, true);
}

TEST(signal_that_ends_several_operations_wakes_as_many_who_wait)
{
	int fd = device_open(O_RDWR);
	struct waiter waiters[6];
	unsigned char seen[6] = { 0 };
	pthread_t threads[6];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(waiters); i++) {
		add_watching(fd, KEY, 5, i);
		waiters[i] = (struct waiter){
			.fd = fd,
			.room = 1,
			.min_records = 1,
		};
		threads[i] = start_thread(i % 2 ? wait_in_read : wait_in_enter,
					  &waiters[i]);
		wait_waiter_asleep(&waiters[i]);
	}
	ASSERT_EQ(signal_key(fd, KEY, 5), ARRAY_SIZE(waiters));
	for (i = 0; i < ARRAY_SIZE(waiters); i++) {
		join_thread(threads[i]);
		check_completed(&waiters[i].records[0], 5, KEY);
		ASSERT_LT(waiters[i].records[0].data, ARRAY_SIZE(seen));
		seen[waiters[i].records[0].data]++;
	}
	check_bytes(seen, 1, sizeof(seen));
}

TEST(enter_gives_the_record_of_what_its_own_signal_ends)
{
	struct twheel_record records[2];
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 42),
		make_watch(0, KEY, 1),
		make_signal(KEY, 1),
		make_add(0, FAR_NS, 43),
		make_watch(0, KEY, 1),
		make_signal(KEY, 2),
	};
	struct twheel_enter arg = make_enter(cmds, ARRAY_SIZE(cmds), records,
					     2);
	int fd = device_open_nonblock();

	arg.min_records = 2;
	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.records_done, 2);
	check_completed(&records[0], 1, KEY);
	check_completed(&records[1], 2, KEY);
	ASSERT_EQ(records[0].data, 42);
	ASSERT_EQ(records[1].data, 43);
}

static int open_waking(__u32 count, __u64 delay_ns)
{
	struct twheel_config config = default_config();

	config.wake_count = count;
	config.wake_delay_ns = delay_ns;
	return device_open_configured(O_RDWR | O_NONBLOCK, &config);
}

TEST(wake_count_is_reached_by_completed_operations)
{
	int fd = open_waking(3, FAR_NS);
	unsigned int i;

	for (i = 0; i < 5; i++)
		add_watching(fd, KEY, 1 + i, i);
	ASSERT_EQ(signal_key(fd, KEY, 2), 2);
	ASSERT_EQ(poll_events(fd, 0), 0);
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
	ASSERT_EQ(wait_completed(fd, 2, KEY).data, 0);
	ASSERT_EQ(poll_events(fd, 0), 0);
	ASSERT_EQ(complete(fd, add(fd, 0, FAR_NS, 9), 1), 0);
	ASSERT_EQ(poll_events(fd, 0), POLLIN);
}

TEST(wake_delay_runs_for_a_completed_operation)
{
	__u64 before_ns, delay_ns = SOON_NS;
	int fd = open_waking(100, delay_ns);

	add_watching(fd, KEY, 1, 42);
	before_ns = monotonic_ns();
	ASSERT_EQ(signal_key(fd, KEY, 1), 1);
	wait_readable(fd);
	ASSERT_GE(monotonic_ns(), before_ns + delay_ns);
	ASSERT_EQ(wait_completed(fd, 1, KEY).data, 42);
}

/* --- fdinfo while much happens ---------------------------------------------- */

struct churner {
	int fd;
	size_t rounds;
	atomic_bool done;
};

static void *churn_operations(void *arg)
{
	struct twheel_record records[64];
	struct churner *churner = arg;
	struct twheel_cmd cmds[64];
	__u64 seed = 4;
	size_t round, i;

	for (round = 0; round < churner->rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(cmds); i += 2) {
			__u64 delay_ns = next_random(&seed) % NSEC_PER_MSEC;

			cmds[i] = make_add(0, i % 4 ? FAR_NS : delay_ns, i);
			cmds[i + 1] = make_watch(0, i % 8, 1 + i);
		}
		ASSERT_EQ(submit(churner->fd, cmds, 64), 64);
		ASSERT_EQ(complete(churner->fd, cmds[2].id, 1), 0);
		signal_key(churner->fd, 0, 30);
		signal_key(churner->fd, 2, 30);
		signal_key(churner->fd, 4, 64);
		signal_quietly(churner->fd, 6);
		signal_quietly(churner->fd, 2);
		read_records(churner->fd, records, ARRAY_SIZE(records));
	}
	churner->done = true;
	return NULL;
}

TEST(fdinfo_of_operations_adds_up_at_every_look)
{
	struct churner churner = {
		.fd = device_open_nonblock(),
		.rounds = test_count(2000),
	};
	pthread_t thread = start_thread(churn_operations, &churner);
	struct counters last = { 0 };

	while (!churner.done) {
		struct counters now = get_counters(churner.fd);

		check_sum(&now);
		ASSERT_GE(now.added, last.added);
		ASSERT_GE(now.finished, last.finished);
		ASSERT_GE(now.cancelled, last.cancelled);
		ASSERT_GE(now.completed, last.completed);
		ASSERT_GE(now.armed, 0);
		ASSERT_GE(now.ready, 0);
		ASSERT_EQ(now.records, now.finished);
		last = now;
	}
	join_thread(thread);
	last = get_counters(churner.fd);
	check_sum(&last);
	ASSERT_GT(last.completed, 0);
	ASSERT_GT(last.cancelled, 0);
}
