// SPDX-License-Identifier: GPL-2.0
/* read() of records. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device.h"
#include "util.h"
#include "waiter.h"

/* A context with @nr records to be read, whose data is 0, 1, ... */
static int open_with_ready(size_t nr)
{
	int fd = device_open_nonblock();

	add_many(fd, 0, 0, nr, NULL);
	wait_ready(fd, nr);
	return fd;
}

/* Check that what is left to be read begins at @first and ends before @end. */
static void check_rest(int fd, __u64 first, __u64 end)
{
	for (; first < end; first++)
		ASSERT_EQ(wait_record(fd).data, first);
	check_nothing_ready(fd);
}

static long read_bytes(int fd, void *buffer, size_t size)
{
	ssize_t ret = read(fd, buffer, size);

	return ret < 0 ? -errno : ret;
}

/* --- what it gives ---------------------------------------------------------- */

TEST(read_of_a_fresh_context_would_block)
{
	check_nothing_ready(device_open_nonblock());
}

TEST(read_of_a_context_with_armed_events_would_block)
{
	int fd = device_open_nonblock();

	add(fd, 0, FAR_NS, 0);
	check_nothing_ready(fd);
}

TEST(read_with_a_short_buffer_is_refused)
{
	struct twheel_record record;
	int fd = open_with_ready(1);
	size_t size;

	memset(&record, FILL, sizeof(record));
	for (size = 0; size < sizeof(record); size++) {
		test_about("%zu bytes", size);
		ASSERT_EQ(read_bytes(fd, &record, size), -EINVAL);
		check_bytes(&record, FILL, sizeof(record));
	}
	check_rest(fd, 0, 1);
}

TEST(read_with_a_short_buffer_is_refused_when_nothing_is_ready)
{
	struct twheel_record record;

	ASSERT_EQ(read_bytes(device_open_nonblock(), &record,
			     sizeof(record) - 1), -EINVAL);
}

TEST(read_gives_an_event_once)
{
	int fd = device_open_nonblock();

	add(fd, 0, NSEC_PER_MSEC, 1);
	ASSERT_EQ(wait_record(fd).data, 1);
	check_nothing_ready(fd);
}

TEST(read_gives_all_that_fit_the_oldest_first)
{
	struct twheel_record records[100];
	int fd = open_with_ready(ARRAY_SIZE(records));
	size_t i;

	ASSERT_EQ(read_records(fd, records, ARRAY_SIZE(records)),
		  ARRAY_SIZE(records));
	for (i = 0; i < ARRAY_SIZE(records); i++) {
		check_record(&records[i]);
		ASSERT_EQ(records[i].data, i);
	}
	check_nothing_ready(fd);
}

TEST(read_with_more_room_than_records_gives_what_there_is)
{
	struct twheel_record records[10];
	int fd = open_with_ready(3);

	memset(records, FILL, sizeof(records));
	ASSERT_EQ(read_records(fd, records, ARRAY_SIZE(records)), 3);
	check_bytes(records + 3, FILL, 7 * sizeof(*records));
	check_nothing_ready(fd);
}

TEST(read_with_room_for_two_and_a_half_gives_two)
{
	struct twheel_record records[3];
	int fd = open_with_ready(5);

	memset(records, FILL, sizeof(records));
	ASSERT_EQ(read_bytes(fd, records, 2 * sizeof(*records) + 32),
		  2 * sizeof(*records));
	check_bytes(records + 2, FILL, sizeof(*records));
	check_rest(fd, 2, 5);
}

TEST(read_of_a_large_number_at_once)
{
	const size_t nr = 10000;
	struct twheel_record *records = map_pages(nr * sizeof(*records));
	int fd = open_with_ready(nr);
	size_t done = 0, i;

	while (done < nr) {
		long ret = read_records(fd, records + done, nr - done);

		ASSERT_GT(ret, 0);
		done += ret;
	}
	for (i = 0; i < nr; i++)
		ASSERT_EQ(records[i].data, i);
	check_nothing_ready(fd);
}

/* --- where to --------------------------------------------------------------- */

TEST(read_into_an_unaligned_buffer)
{
	struct twheel_record record;
	char buffer[4 * sizeof(record) + 1];
	int fd = open_with_ready(4);
	size_t i;

	ASSERT_EQ(read_bytes(fd, buffer + 1, sizeof(buffer) - 1),
		  4 * sizeof(record));
	for (i = 0; i < 4; i++) {
		memcpy(&record, buffer + 1 + i * sizeof(record),
		       sizeof(record));
		ASSERT_EQ(record.data, i);
	}
}

TEST(read_that_faults_half_way_gives_the_whole_records_before)
{
	const size_t whole = 2, extra = 32;
	struct twheel_record *records =
		map_before_hole(whole * sizeof(*records) + extra);
	int fd = open_with_ready(6);

	ASSERT_EQ(read_records(fd, records, 4), whole);
	ASSERT_EQ(records[0].data, 0);
	ASSERT_EQ(records[1].data, 1);

	/* Nothing whole fits any more: the third record stays at the head. */
	ASSERT_EQ(read_records(fd, records + 2, 2), -EFAULT);
	ASSERT_EQ(read_records(fd, records + 2, 1), -EFAULT);
	check_rest(fd, 2, 6);
}

TEST(read_into_a_bad_pointer_loses_nothing)
{
	int fd = open_with_ready(3);
	struct counters before = get_counters(fd);

	ASSERT_EQ(read_records(fd, NULL, 3), -EFAULT);
	ASSERT_EQ(read_records(fd, map_before_hole(0), 3), -EFAULT);
	check_counters(fd, &before);
	check_rest(fd, 0, 3);
}

TEST(read_into_a_read_only_page_loses_nothing)
{
	struct twheel_record *records =
		map_before_read_only(2 * sizeof(*records), PAGE_BYTES);
	int fd = open_with_ready(5);

	make_read_only(records + 2, PAGE_BYTES);
	ASSERT_EQ(read_records(fd, records, 5), 2);
	ASSERT_EQ(read_records(fd, records + 2, 3), -EFAULT);
	check_rest(fd, 2, 5);
}

TEST(read_that_faults_leaves_an_event_that_can_be_cancelled)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, 0, 0);

	wait_readable(fd);
	ASSERT_EQ(read_records(fd, NULL, 1), -EFAULT);
	ASSERT_EQ(cancel(fd, id), 0);
	check_nothing_ready(fd);
}

static void check_readv(size_t step)
{
	struct twheel_record records[10];
	struct iovec iov[sizeof(records)];
	int fd = open_with_ready(ARRAY_SIZE(records));
	size_t done = 0, i;
	int nr = 0;

	test_about("pieces of %zu bytes", step);
	while (done < sizeof(records)) {
		size_t left = sizeof(records) - done;

		iov[nr].iov_base = (char *)records + done;
		iov[nr].iov_len = left < step ? left : step;
		done += iov[nr].iov_len;
		nr++;
	}
	ASSERT_EQ(readv(fd, iov, nr), sizeof(records));
	for (i = 0; i < ARRAY_SIZE(records); i++) {
		check_record(&records[i]);
		ASSERT_EQ(records[i].data, i);
	}
	check_nothing_ready(fd);
}

TEST(readv_takes_pieces_of_any_size)
{
	static const size_t steps[] = { 1, 3, 7, 63, 64, 65, 100, 127, 320 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		check_readv(steps[i]);
}

TEST(readv_with_a_bad_piece_gives_the_whole_records_before_it)
{
	struct twheel_record records[4];
	struct iovec iov[] = {
		{ .iov_base = records, .iov_len = 100 },
		{ .iov_base = (char *)records + 100, .iov_len = 60 },
		{ .iov_base = map_before_hole(0), .iov_len = 96 },
	};
	int fd = open_with_ready(4);

	ASSERT_EQ(readv(fd, iov, ARRAY_SIZE(iov)), 2 * sizeof(*records));
	ASSERT_EQ(records[0].data, 0);
	ASSERT_EQ(records[1].data, 1);
	check_rest(fd, 2, 4);
}

TEST(readv_with_less_room_than_a_record_is_refused)
{
	char bytes[63];
	struct iovec iov[] = {
		{ .iov_base = bytes, .iov_len = 31 },
		{ .iov_base = bytes + 31, .iov_len = 32 },
	};
	int fd = open_with_ready(1);

	ASSERT_EQ(readv(fd, iov, ARRAY_SIZE(iov)), -1);
	ASSERT_EQ(errno, EINVAL);
	check_rest(fd, 0, 1);
}

/* --- what a stream refuses -------------------------------------------------- */

TEST(positions_are_refused)
{
	struct twheel_record record = { 0 };
	int fd = open_with_ready(1);

	ASSERT_EQ(pread(fd, &record, sizeof(record), 0), -1);
	ASSERT_EQ(errno, ESPIPE);
	ASSERT_EQ(pwrite(fd, &record, sizeof(record), 0), -1);
	ASSERT_EQ(errno, ESPIPE);
	ASSERT_EQ(lseek(fd, 0, SEEK_SET), -1);
	ASSERT_EQ(errno, ESPIPE);
	ASSERT_EQ(lseek(fd, 0, SEEK_CUR), -1);
	ASSERT_EQ(errno, ESPIPE);
	check_rest(fd, 0, 1);
}

TEST(writing_is_refused)
{
	struct twheel_record record = { 0 };
	int fd = open_with_ready(1);

	ASSERT_EQ(write(fd, &record, sizeof(record)), -1);
	ASSERT_EQ(errno, EINVAL);
	check_rest(fd, 0, 1);
}

TEST(writing_is_refused_when_open_for_reading_only)
{
	int fd = device_open(O_RDONLY | O_NONBLOCK);
	struct twheel_record record = { 0 };

	ASSERT_EQ(write(fd, &record, sizeof(record)), -1);
	ASSERT_EQ(errno, EBADF);
}

TEST(reading_is_refused_when_open_for_writing_only)
{
	int fd = device_open(O_WRONLY | O_NONBLOCK);
	struct twheel_record record;

	ASSERT_EQ(read_records(fd, &record, 1), -EBADF);
}

/* --- waiting ---------------------------------------------------------------- */

TEST(read_waits_until_an_event_is_due)
{
	struct twheel_record record;
	int fd = device_open(O_RDWR);
	__u64 due_ns = monotonic_ns() + SOON_NS;

	add(fd, TWHEEL_ABS, due_ns, 1);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	check_record(&record);
	ASSERT_EQ(record.due_ns, due_ns);
}

TEST(read_that_waits_is_woken_by_an_event_armed_meanwhile)
{
	struct waiter reader = { .fd = device_open(O_RDWR) };
	pthread_t thread = start_thread(wait_in_read, &reader);

	wait_waiter_asleep(&reader);
	add(reader.fd, 0, NSEC_PER_MSEC, 1);
	join_thread(thread);
	ASSERT_EQ(reader.ret, 1);
	ASSERT_EQ(reader.records[0].data, 1);
}

TEST(read_that_waits_is_woken_by_an_event_past_due_when_armed)
{
	struct waiter reader = { .fd = device_open(O_RDWR) };
	pthread_t thread = start_thread(wait_in_read, &reader);

	wait_waiter_asleep(&reader);
	add(reader.fd, TWHEEL_ABS, 1, 1);
	join_thread(thread);
	ASSERT_EQ(reader.ret, 1);
	ASSERT_EQ(reader.records[0].due_ns, 1);
}

TEST(read_that_waits_is_woken_by_a_modify_to_the_past)
{
	struct waiter reader = { .fd = device_open(O_RDWR) };
	__u64 id = add(reader.fd, 0, FAR_NS, 1);
	pthread_t thread = start_thread(wait_in_read, &reader);

	wait_waiter_asleep(&reader);
	ASSERT_EQ(modify(reader.fd, id, TWHEEL_ABS, 1), 0);
	join_thread(thread);
	ASSERT_EQ(reader.ret, 1);
	ASSERT_EQ(reader.records[0].id, id);
}

TEST(commands_run_while_a_read_waits)
{
	struct waiter reader = { .fd = device_open(O_RDWR) };
	pthread_t thread = start_thread(wait_in_read, &reader);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		__u64 id;

		wait_waiter_asleep(&reader);
		id = add(reader.fd, 0, FAR_NS, 1);
		ASSERT_EQ(modify(reader.fd, id, 0, 2 * FAR_NS), 0);
		ASSERT_EQ(cancel(reader.fd, id), 0);
		ASSERT(!reader.done);
	}
	add(reader.fd, 0, 0, 1);
	join_thread(thread);
	ASSERT_EQ(reader.ret, 1);
}

TEST(read_that_waits_sleeps_on_when_the_record_is_cancelled_first)
{
	struct waiter reader = { .fd = device_open(O_RDWR) };
	pthread_t thread = start_thread(wait_in_read, &reader);
	unsigned int i;
	int result;

	/* Due at once and cancelled in the same call, before the reader can. */
	for (i = 0; i < 100; i++) {
		struct twheel_cmd cmds[2] = { make_add(0, FAR_NS, 1) };

		wait_waiter_asleep(&reader);
		ASSERT_EQ(submit(reader.fd, cmds, 1), 1);
		cmds[1] = make_cmd(TWHEEL_OP_CANCEL, cmds[0].id);
		cmds[0] = make_modify(cmds[0].id, TWHEEL_ABS, 1);
		ASSERT_EQ(submit(reader.fd, cmds, 2), 2);
		ASSERT_EQ(cmds[0].result, 0);
		result = cmds[1].result;
		if (result)
			break;
		ASSERT(!reader.done);
	}
	if (i == 100)
		add(reader.fd, 0, 0, 1);
	else
		ASSERT_EQ(result, -ENOENT);
	join_thread(thread);
	ASSERT_EQ(reader.ret, 1);
	ASSERT_EQ(get_counters(reader.fd).records, 1);
}

TEST(read_that_waits_is_interrupted_by_a_signal)
{
	struct waiter reader = { .fd = device_open(O_RDWR) };
	pthread_t thread;

	count_signals(SIGUSR1, 0);
	thread = start_thread(wait_in_read, &reader);
	wait_waiter_asleep(&reader);
	ASSERT_EQ(pthread_kill(thread, SIGUSR1), 0);
	join_thread(thread);
	ASSERT_EQ(reader.ret, -EINTR);
	ASSERT_EQ(signals_counted(), 1);
}

TEST(read_goes_on_after_a_signal_with_sa_restart)
{
	struct waiter reader = { .fd = device_open(O_RDWR) };
	pthread_t thread;
	int i;

	count_signals(SIGUSR1, SA_RESTART);
	thread = start_thread(wait_in_read, &reader);
	for (i = 0; i < 10; i++) {
		wait_waiter_asleep(&reader);
		ASSERT_EQ(pthread_kill(thread, SIGUSR1), 0);
		wait_signal_after(i);
	}
	wait_waiter_asleep(&reader);
	add(reader.fd, 0, 0, 7);
	join_thread(thread);
	ASSERT_EQ(reader.ret, 1);
	ASSERT_EQ(reader.records[0].data, 7);
}

/* --- several threads -------------------------------------------------------- */

/*
 * Several readers, each record to one of them.  At the end every reader gets
 * one record whose data is STOP; one that gets more than one has more armed.
 */
#define STOP	(~0ULL)

struct shared_read {
	int fd;
	size_t nr;
	atomic_uchar *seen;
	atomic_size_t total;
};

static void *read_until_stop(void *arg)
{
	struct shared_read *shared = arg;
	struct twheel_record records[16];
	int stops = 0;

	while (!stops) {
		long ret = read_records(shared->fd, records,
					ARRAY_SIZE(records));
		long i;

		ASSERT_GT(ret, 0);
		for (i = 0; i < ret; i++) {
			check_record(&records[i]);
			if (records[i].data == STOP) {
				stops++;
				continue;
			}
			ASSERT_LT(records[i].data, shared->nr);
			shared->seen[records[i].data]++;
			shared->total++;
		}
	}
	while (--stops)
		add(shared->fd, 0, 0, STOP);
	return NULL;
}

TEST(read_by_two_threads_gives_each_record_to_one_of_them)
{
	struct shared_read shared = {
		.fd = device_open(O_RDWR),
		.nr = test_count(100000),
	};
	struct twheel_cmd *cmds = map_pages(1000 * sizeof(*cmds));
	pthread_t threads[2];
	size_t done, i;
	__u64 seed = 3;

	shared.seen = map_pages(shared.nr);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = start_thread(read_until_stop, &shared);
	for (done = 0; done < shared.nr; done += 1000) {
		for (i = 0; i < 1000; i++)
			cmds[i] = make_add(0, next_random(&seed) %
					   (5 * NSEC_PER_MSEC), done + i);
		ASSERT_EQ(submit(shared.fd, cmds, 1000), 1000);
	}
	while (shared.total < shared.nr)
		poll(NULL, 0, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		add(shared.fd, 0, 0, STOP);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		join_thread(threads[i]);

	for (i = 0; i < shared.nr; i++)
		ASSERT_EQ(shared.seen[i], 1);
	ASSERT_EQ(get_counters(shared.fd).added,
		  get_counters(shared.fd).finished);
}

TEST(read_that_leaves_records_behind_wakes_the_next_reader)
{
	struct waiter readers[4];
	pthread_t threads[ARRAY_SIZE(readers)];
	int fd = device_open(O_RDWR);
	unsigned int round;
	size_t i;

	for (round = 0; round < 100; round++) {
		__u64 seen = 0;

		test_about("round %u", round);
		for (i = 0; i < ARRAY_SIZE(readers); i++) {
			readers[i] = (struct waiter){ .fd = fd, .room = 1 };
			threads[i] = start_thread(wait_in_read, &readers[i]);
		}
		for (i = 0; i < ARRAY_SIZE(readers); i++)
			wait_waiter_asleep(&readers[i]);

		/* All due in one tick, so that one run makes them ready. */
		add_many(fd, TWHEEL_ABS, monotonic_ns() + NSEC_PER_MSEC,
			 ARRAY_SIZE(readers), NULL);
		for (i = 0; i < ARRAY_SIZE(readers); i++) {
			join_thread(threads[i]);
			ASSERT_EQ(readers[i].ret, 1);
			seen |= 1ULL << readers[i].records[0].data;
		}
		ASSERT_EQ(seen, (1ULL << ARRAY_SIZE(readers)) - 1);
	}
}

TEST(read_that_faults_leaves_the_record_to_the_next_reader)
{
	struct waiter reader = { .fd = device_open(O_RDWR) };
	struct twheel_record *bad = map_before_hole(0);
	pthread_t thread;

	add(reader.fd, 0, 0, 1);
	wait_readable(reader.fd);
	ASSERT_EQ(read_records(reader.fd, bad, 1), -EFAULT);
	thread = start_thread(wait_in_read, &reader);
	join_thread(thread);
	ASSERT_EQ(reader.ret, 1);
	ASSERT_EQ(reader.records[0].data, 1);
}

/* --- not waiting ------------------------------------------------------------ */

TEST(read_with_o_nonblock_set_later_does_not_wait)
{
	struct twheel_record record;
	int fd = device_open(O_RDWR);

	ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	ASSERT_EQ(read_records(fd, &record, 1), -EAGAIN);
}

TEST(preadv2_with_rwf_nowait_does_not_wait_or_is_refused)
{
	struct twheel_record record;
	struct iovec iov = { .iov_base = &record, .iov_len = sizeof(record) };
	int fd = device_open(O_RDWR);
	ssize_t ret = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

	ASSERT_EQ(ret, -1);
	if (errno == EOPNOTSUPP)
		return;
	ASSERT_EQ(errno, EAGAIN);
	add(fd, 0, 0, 1);
	wait_readable(fd);
	ASSERT_EQ(preadv2(fd, &iov, 1, -1, RWF_NOWAIT), sizeof(record));
	ASSERT_EQ(record.data, 1);
}
