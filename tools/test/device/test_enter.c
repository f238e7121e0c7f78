// SPDX-License-Identifier: GPL-2.0
/* TWHEEL_IOC_ENTER: submit, wait and reap in one call. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
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

/* A context with an event that is not due soon, so that more records can come. */
static int open_with_armed(void)
{
	int fd = device_open_nonblock();

	add(fd, 0, FAR_NS, ~0ULL);
	return fd;
}

/* Check that a call is refused as a whole, with its one command not run. */
static void check_enter_refused(const struct twheel_enter *wrong, int error)
{
	struct twheel_cmd cmd = make_add(0, 0, 0), expected = cmd;
	struct twheel_enter arg = *wrong;
	struct twheel_record record;
	int fd = open_with_ready(1);
	struct counters before = get_counters(fd);

	memset(&record, FILL, sizeof(record));
	if (!arg.cmds)
		arg.cmds = (uintptr_t)&cmd;
	if (!arg.records)
		arg.records = (uintptr_t)&record;
	ASSERT_EQ(enter(fd, &arg), -error);
	ASSERT_EQ(memcmp(&cmd, &expected, sizeof(cmd)), 0);
	check_bytes(&record, FILL, sizeof(record));
	check_counters(fd, &before);
}

/* A call that is right, with the addresses left to check_enter_refused(). */
static struct twheel_enter valid_enter(void)
{
	return make_enter(NULL, 1, NULL, 1);
}

/* --- one turn --------------------------------------------------------------- */

TEST(enter_of_nothing_returns_at_once)
{
	struct twheel_enter arg = make_enter(NULL, 0, NULL, 0);
	int fd = device_open_nonblock();

	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.cmds_done, 0);
	ASSERT_EQ(arg.records_done, 0);
	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(fd, &arg), 0);
}

TEST(enter_runs_the_commands_as_submit_does)
{
	struct twheel_cmd cmds[100];
	struct twheel_enter arg = make_enter(cmds, ARRAY_SIZE(cmds), NULL, 0);
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		cmds[i] = make_add(i % 10 ? 0 : TWHEEL_QUIET, FAR_NS, i);
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.cmds_done, ARRAY_SIZE(cmds));
	ASSERT_EQ(arg.records_done, 0);
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		ASSERT_EQ(cmds[i].result, i % 10 ? 0 : -EINVAL);
		ASSERT_EQ(query(fd, cmds[i].id, NULL),
			  i % 10 ? TWHEEL_ARMED : -ENOENT);
	}
}

TEST(enter_copies_the_oldest_records_out)
{
	struct twheel_record records[5];
	struct twheel_enter arg = make_enter(NULL, 0, records, 3);
	int fd = open_with_ready(7);
	size_t i;

	memset(records, FILL, sizeof(records));
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.records_done, 3);
	for (i = 0; i < 3; i++) {
		check_record(&records[i]);
		ASSERT_EQ(records[i].data, i);
	}
	check_bytes(records + 3, FILL, 2 * sizeof(*records));
	ASSERT_EQ(get_counters(fd).finished, 3);
	for (; i < 7; i++)
		ASSERT_EQ(wait_record(fd).data, i);
	check_nothing_ready(fd);
}

TEST(enter_with_more_room_than_records_gives_what_there_is)
{
	struct twheel_record records[10];
	struct twheel_enter arg = make_enter(NULL, 0, records, 10);
	int fd = open_with_ready(4);

	memset(records, FILL, sizeof(records));
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.records_done, 4);
	check_bytes(records + 4, FILL, 6 * sizeof(*records));
}

TEST(enter_gives_the_records_of_its_own_commands)
{
	struct twheel_record record;
	struct twheel_cmd cmd = make_add(TWHEEL_ABS, 1, 42);
	struct twheel_enter arg = make_enter(&cmd, 1, &record, 1);
	int fd = device_open_nonblock();

	arg.min_records = 1;
	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.cmds_done, 1);
	ASSERT_EQ(arg.records_done, 1);
	ASSERT_EQ(record.id, cmd.id);
	ASSERT_EQ(record.data, 42);
}

TEST(enter_gives_no_record_that_its_own_command_suppressed)
{
	struct twheel_record records[3];
	struct twheel_cmd cmds[2];
	struct twheel_enter arg = make_enter(cmds, 2, records, 3);
	int fd = device_open_nonblock();
	__u64 ids[3];

	add_many(fd, 0, 0, 3, ids);
	wait_ready(fd, 3);
	cmds[0] = make_cmd(TWHEEL_OP_CANCEL, ids[0]);
	cmds[1] = make_modify(ids[1], 0, FAR_NS);
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, 0);
	ASSERT_EQ(arg.records_done, 1);
	ASSERT_EQ(records[0].id, ids[2]);
}

TEST(enter_of_100000_commands_and_records)
{
	const size_t nr = test_count(100000);
	struct twheel_record *records = map_before_hole(nr * sizeof(*records));
	struct twheel_cmd *cmds = map_before_hole(nr * sizeof(*cmds));
	struct twheel_enter arg = make_enter(cmds, nr, records, nr);
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < nr; i++)
		cmds[i] = make_add(TWHEEL_ABS, 1, i);
	arg.min_records = nr;
	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.cmds_done, nr);
	ASSERT_EQ(arg.records_done, nr);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(records[i].data, i);
		ASSERT_EQ(records[i].id, cmds[i].id);
	}
}

TEST(enter_takes_turns_of_a_loop)
{
	struct twheel_record records[32];
	struct twheel_cmd cmds[32];
	struct twheel_enter arg = make_enter(cmds, 32, records, 32);
	int fd = device_open_nonblock();
	size_t done = 0, round, i;
	__u64 seed = 7;

	arg.min_records = 32;
	arg.timeout_ns = ENTER_FOR_EVER;
	for (round = 0; round < 100; round++) {
		for (i = 0; i < 32; i++)
			cmds[i] = make_add(0, next_random(&seed) %
					   (5 * NSEC_PER_MSEC), done + i);
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.cmds_done, 32);
		ASSERT_EQ(arg.records_done, 32);
		for (i = 0; i < 32; i++) {
			check_record(&records[i]);
			ASSERT_LT(records[i].data - done, 32);
		}
		done += 32;
	}
	ASSERT_EQ(get_counters(fd).finished, done);
}

/* --- its argument ----------------------------------------------------------- */

TEST(enter_refuses_more_min_records_than_room)
{
	static const __u32 nrs[] = { 0, 1, 100, ~0U - 1 };
	struct twheel_enter arg = valid_enter();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(nrs); i++) {
		test_about("room for %u", nrs[i]);
		arg.nr_records = nrs[i];
		arg.min_records = nrs[i] + 1;
		check_enter_refused(&arg, EINVAL);
		arg.min_records = ~0U;
		check_enter_refused(&arg, EINVAL);
	}
}

TEST(enter_takes_larger_commands_with_tails_of_zeros)
{
	struct {
		struct twheel_cmd cmd;
		unsigned char tail[40];
	} cmds[50];
	struct twheel_enter arg = make_enter(&cmds[0].cmd, ARRAY_SIZE(cmds),
					     NULL, 0);
	int fd = device_open_nonblock();
	size_t i;

	memset(cmds, 0, sizeof(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		cmds[i].cmd = make_add(0, FAR_NS, i);
		cmds[i].tail[i % 40] = i % 5 == 0;
	}
	arg.cmd_size = sizeof(cmds[0]);
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.cmds_done, ARRAY_SIZE(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		ASSERT_EQ(cmds[i].cmd.result, i % 5 ? 0 : -E2BIG);
}

TEST(enter_writes_larger_records_with_tails_of_zeros)
{
	static const __u32 sizes[] = { 65, 72, 100, 128, 1000, PAGE_BYTES };
	struct twheel_record record;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		char *array = map_before_hole(10 * sizes[i]);
		struct twheel_enter arg = make_enter(NULL, 0, (void *)array,
						     10);
		int fd = open_with_ready(10);

		test_about("records of %u bytes", sizes[i]);
		memset(array, FILL, 10 * sizes[i]);
		arg.record_size = sizes[i];
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.records_done, 10);
		for (k = 0; k < 10; k++) {
			memcpy(&record, array + k * sizes[i], sizeof(record));
			check_record(&record);
			ASSERT_EQ(record.data, k);
			check_bytes(array + k * sizes[i] + sizeof(record), 0,
				    sizes[i] - sizeof(record));
		}
	}
}

/* --- memory that is not there ----------------------------------------------- */

TEST(enter_says_how_many_commands_came_before_an_unmapped_page)
{
	static const size_t counts[] = { 1, 31, 32, 33, 63, 64, 65, 200 };
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		struct twheel_cmd *cmds = map_before_hole(counts[i] *
							  sizeof(*cmds));
		struct twheel_enter arg = make_enter(cmds, counts[i] + 100,
						     NULL, 0);
		int fd = device_open_nonblock();

		test_about("%zu commands before the page", counts[i]);
		for (k = 0; k < counts[i]; k++)
			cmds[k] = make_add(0, FAR_NS, k);
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.cmds_done, counts[i]);
		ASSERT_EQ(get_counters(fd).added, counts[i]);
	}
}

TEST(enter_whose_commands_run_into_an_unmapped_page_does_not_wait)
{
	struct twheel_cmd *cmds = map_before_hole(5 * sizeof(*cmds));
	struct twheel_record record;
	struct twheel_enter arg = make_enter(cmds, 6, &record, 1);
	size_t i;

	for (i = 0; i < 5; i++)
		cmds[i] = make_add(0, FAR_NS, i);
	arg.min_records = 1;
	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(device_open_nonblock(), &arg), 0);
	ASSERT_EQ(arg.cmds_done, 5);
	ASSERT_EQ(arg.records_done, 0);
}

TEST(enter_into_unmapped_records_loses_none)
{
	struct twheel_enter arg = make_enter(NULL, 0, NULL, 2);
	int fd = open_with_ready(2);
	struct counters before = get_counters(fd);

	ASSERT_EQ(enter(fd, &arg), -EFAULT);
	arg.records = (uintptr_t)map_before_hole(sizeof(struct twheel_record) -
						 1);
	ASSERT_EQ(enter(fd, &arg), -EFAULT);
	check_counters(fd, &before);
	ASSERT_EQ(wait_record(fd).data, 0);
	ASSERT_EQ(wait_record(fd).data, 1);
}

TEST(enter_that_faults_half_way_gives_the_whole_records_before)
{
	static const size_t counts[] = { 1, 2, 31, 32, 33, 63, 64, 65 };
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		struct twheel_record *records;
		struct twheel_enter arg;
		int fd = open_with_ready(100);

		test_about("%zu records before the page", counts[i]);
		records = map_before_hole(counts[i] * sizeof(*records) + 32);
		arg = make_enter(NULL, 0, records, 100);
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.records_done, counts[i]);
		for (k = 0; k < counts[i]; k++)
			ASSERT_EQ(records[k].data, k);
		for (; k < 100; k++)
			ASSERT_EQ(wait_record(fd).data, k);
		check_nothing_ready(fd);
	}
}

TEST(enter_that_faults_in_its_last_record_does_not_wait_for_it)
{
	size_t room;

	for (room = 1; room < sizeof(struct twheel_record); room += 21) {
		struct twheel_record *records =
			map_before_hole(2 * sizeof(*records) + room);
		struct twheel_enter arg = make_enter(NULL, 0, records, 3);
		int fd = open_with_ready(3);

		test_about("room for 2 records and %zu bytes", room);
		arg.min_records = 3;
		arg.timeout_ns = ENTER_FOR_EVER;
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.records_done, 2);
		ASSERT_EQ(wait_record(fd).data, 2);
	}
}

/* Two pages; a thread flips whether the second one may be written to. */
struct flipped {
	char *pages;
	atomic_bool stop;
};

static void *flip_protection(void *arg)
{
	struct flipped *flipped = arg;
	char *second = flipped->pages + PAGE_BYTES;

	while (!flipped->stop) {
		ASSERT_EQ(mprotect(second, PAGE_BYTES, PROT_READ), 0);
		ASSERT_EQ(mprotect(second, PAGE_BYTES, PROT_READ | PROT_WRITE),
			  0);
	}
	return NULL;
}

TEST(enter_into_records_that_become_read_only_meanwhile_loses_none)
{
	const unsigned int rounds = test_count(5000);
	struct flipped flipped = { .pages = map_pages(2 * PAGE_BYTES) };
	struct twheel_record record;
	int fd = device_open_nonblock();
	__u64 added = 0, read = 0;
	unsigned int round;
	pthread_t thread;
	char *array;
	size_t i;

	/* The fourth record lies across the two pages. */
	array = flipped.pages + PAGE_BYTES - 3 * sizeof(record) - 32;
	thread = start_thread(flip_protection, &flipped);
	for (round = 0; round < rounds; round++) {
		struct twheel_enter arg = make_enter(NULL, 0, (void *)array, 8);

		test_about("round %u", round);
		for (; added < read + 8; added++)
			add(fd, TWHEEL_ABS, 1, added);
		arg.min_records = 8;
		arg.timeout_ns = NSEC_PER_MSEC;
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_GE(arg.records_done, 3);
		for (i = 0; i < arg.records_done; i++) {
			memcpy(&record, array + i * sizeof(record),
			       sizeof(record));
			ASSERT_EQ(record.data, read);
			ASSERT_EQ(record.due_ns, 1);
			read++;
		}
		ASSERT_EQ(get_counters(fd).finished, read);
	}
	flipped.stop = true;
	join_thread(thread);
}

TEST(enter_into_unmapped_records_reports_the_commands)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct twheel_enter arg = make_enter(&cmd, 1, NULL, 1);
	int fd = open_with_ready(1);

	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.cmds_done, 1);
	ASSERT_EQ(arg.records_done, 0);
	ASSERT_EQ(query(fd, cmd.id, NULL), TWHEEL_ARMED);
	wait_record(fd);
}

/* --- how long it waits ------------------------------------------------------ */

/* How long to wait, and what the clock must show afterwards. */
static void check_times_out(__u16 flags, __u64 timeout_ns, __u64 until_ns)
{
	struct twheel_record records[3];
	struct twheel_enter arg = make_enter(NULL, 0, records, 3);
	int fd = open_with_ready(1);

	/* Another record can come. */
	add(fd, 0, FAR_NS, 1);
	arg.flags = flags;
	arg.timeout_ns = timeout_ns;
	arg.min_records = 2;
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_GE(monotonic_ns(), until_ns);

	/* It gives what there is, though it is less than was waited for. */
	ASSERT_EQ(arg.records_done, 1);
	ASSERT_EQ(records[0].data, 0);
	check_nothing_ready(fd);
}

TEST(enter_waits_for_a_relative_time)
{
	check_times_out(0, SOON_NS, monotonic_ns() + SOON_NS);
}

TEST(enter_waits_until_an_absolute_time)
{
	__u64 until_ns = monotonic_ns() + SOON_NS;

	check_times_out(TWHEEL_ENTER_ABS, until_ns, until_ns);
}

TEST(enter_with_an_absolute_time_in_the_past_does_not_wait)
{
	check_times_out(TWHEEL_ENTER_ABS, monotonic_ns() - 1, 0);
	check_times_out(TWHEEL_ENTER_ABS, 1, 0);
}

TEST(enter_with_a_time_of_0_does_not_wait)
{
	check_times_out(0, 0, 0);
	check_times_out(TWHEEL_ENTER_ABS, 0, 0);
}

TEST(enter_that_runs_out_of_time_with_nothing_returns_0)
{
	static const __u64 timeouts[] = { 0, 1, 1000, NSEC_PER_MSEC };
	struct twheel_record record;
	struct twheel_enter arg = make_enter(NULL, 0, &record, 1);
	int fd = device_open_nonblock();
	size_t i;

	memset(&record, FILL, sizeof(record));
	arg.min_records = 1;
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		arg.timeout_ns = timeouts[i];
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.records_done, 0);
		check_bytes(&record, FILL, sizeof(record));
	}
}

TEST(enter_reports_its_commands_when_it_runs_out_of_time)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct twheel_record record;
	struct twheel_enter arg = make_enter(&cmd, 1, &record, 1);

	arg.min_records = 1;
	arg.timeout_ns = NSEC_PER_MSEC;
	ASSERT_EQ(enter(device_open_nonblock(), &arg), 0);
	ASSERT_EQ(arg.cmds_done, 1);
	ASSERT_EQ(arg.records_done, 0);
	ASSERT_EQ(cmd.result, 0);
}

TEST(enter_with_min_records_of_0_does_not_wait)
{
	struct twheel_record record;
	struct twheel_enter arg = make_enter(NULL, 0, &record, 1);

	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(device_open_nonblock(), &arg), 0);
	ASSERT_EQ(arg.records_done, 0);
}

TEST(enter_waits_for_an_event_however_long_the_time)
{
	static const struct {
		__u32 flags;
		__u64 timeout_ns;
	} waits[] = {
		{ 0, ENTER_FOR_EVER }, { TWHEEL_ENTER_ABS, ENTER_FOR_EVER },
		{ 0, ENTER_FOR_EVER - 1 },
		{ TWHEEL_ENTER_ABS, ENTER_FOR_EVER - 1 },
		{ 0, NEVER_NS }, { TWHEEL_ENTER_ABS, NEVER_NS },
		{ 0, NEVER_NS - 1 }, { TWHEEL_ENTER_ABS, NEVER_NS - 1 },
		{ 0, FAR_NS },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		__u64 due_ns = monotonic_ns() + NSEC_PER_MSEC;
		struct twheel_cmd cmd = make_add(TWHEEL_ABS, due_ns, 0);
		struct twheel_record record;
		struct twheel_enter arg = make_enter(&cmd, 1, &record, 1);

		test_about("flags %u, time %llu", waits[i].flags,
			   waits[i].timeout_ns);
		arg.flags = waits[i].flags;
		arg.timeout_ns = waits[i].timeout_ns;
		arg.min_records = 1;
		ASSERT_EQ(enter(device_open_nonblock(), &arg), 0);
		ASSERT_EQ(arg.records_done, 1);
		check_record(&record);
		ASSERT_EQ(record.due_ns, due_ns);
	}
}

TEST(enter_waits_although_the_file_is_o_nonblock)
{
	struct twheel_cmd cmd = make_add(0, SOON_NS, 0);
	struct twheel_record record;
	struct twheel_enter arg = make_enter(&cmd, 1, &record, 1);
	int fd = device_open(O_RDWR);

	arg.min_records = 1;
	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.records_done, 1);
	ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.records_done, 1);
}

TEST(enter_that_does_not_wait_does_not_although_the_file_blocks)
{
	struct twheel_record record;
	struct twheel_enter arg = make_enter(NULL, 0, &record, 1);

	ASSERT_EQ(enter(device_open(O_RDWR), &arg), 0);
	ASSERT_EQ(arg.records_done, 0);
}

/* --- who is woken ----------------------------------------------------------- */

TEST(enter_that_waits_is_woken_by_an_event_armed_meanwhile)
{
	struct waiter waiter = {
		.fd = device_open_nonblock(),
		.min_records = 1,
	};
	pthread_t thread = start_thread(wait_in_enter, &waiter);

	wait_waiter_asleep(&waiter);
	add(waiter.fd, 0, NSEC_PER_MSEC, 42);
	join_thread(thread);
	ASSERT_EQ(waiter.ret, 0);
	ASSERT_EQ(waiter.arg.records_done, 1);
	ASSERT_EQ(waiter.records[0].data, 42);
}

TEST(enter_that_waits_is_woken_by_an_event_past_due_when_armed)
{
	struct waiter waiter = {
		.fd = device_open_nonblock(),
		.min_records = 1,
	};
	pthread_t thread = start_thread(wait_in_enter, &waiter);

	wait_waiter_asleep(&waiter);
	add(waiter.fd, TWHEEL_ABS, 1, 42);
	join_thread(thread);
	ASSERT_EQ(waiter.arg.records_done, 1);
}

TEST(enter_sleeps_on_until_there_are_min_records)
{
	struct waiter waiter = {
		.fd = device_open_nonblock(),
		.min_records = 5,
	};
	__u64 other = add(waiter.fd, 0, FAR_NS, 0);
	pthread_t thread = start_thread(wait_in_enter, &waiter);
	size_t i;

	for (i = 0; i < 4; i++) {
		wait_waiter_asleep(&waiter);
		add(waiter.fd, 0, i % 2 * NSEC_PER_MSEC, i);
		wait_ready(waiter.fd, i + 1);
	}
	wait_waiter_asleep(&waiter);
	ASSERT_EQ(get_counters(waiter.fd).ready, 4);
	add(waiter.fd, 0, NSEC_PER_MSEC, 4);
	join_thread(thread);
	ASSERT_EQ(waiter.ret, 0);
	ASSERT_EQ(waiter.arg.records_done, 5);
	for (i = 0; i < 5; i++)
		ASSERT_EQ(waiter.records[i].data, i);
	ASSERT_EQ(query(waiter.fd, other, NULL), TWHEEL_ARMED);
}

TEST(enter_that_waits_sleeps_on_when_a_record_is_cancelled)
{
	struct waiter waiter = {
		.fd = open_with_armed(),
		.min_records = 2,
	};
	pthread_t thread = start_thread(wait_in_enter, &waiter);
	size_t i;

	for (i = 0; i < 20; i++) {
		__u64 id;

		wait_waiter_asleep(&waiter);
		id = add(waiter.fd, 0, 0, i);
		wait_ready(waiter.fd, 1);
		ASSERT_EQ(cancel(waiter.fd, id), 0);
	}
	wait_waiter_asleep(&waiter);
	add_many(waiter.fd, 0, 0, 2, NULL);
	join_thread(thread);
	ASSERT_EQ(waiter.arg.records_done, 2);
}

TEST(enter_that_needs_more_leaves_the_wake_up_to_one_that_needs_less)
{
	int fd = open_with_armed();
	unsigned int i;

	for (i = 0; i < 50; i++) {
		struct waiter more = { .fd = fd, .min_records = 3 };
		struct waiter less = { .fd = fd, .min_records = 1 };
		pthread_t threads[2];

		test_about("round %u", i);
		threads[0] = start_thread(wait_in_enter, i % 2 ? &more : &less);
		wait_waiter_asleep(i % 2 ? &more : &less);
		threads[1] = start_thread(wait_in_enter, i % 2 ? &less : &more);
		wait_waiter_asleep(i % 2 ? &less : &more);
		add(fd, 0, i % 3 * NSEC_PER_MSEC, 1);
		join_thread(threads[i % 2]);
		ASSERT_EQ(less.arg.records_done, 1);
		wait_waiter_asleep(&more);
		add_many(fd, 0, 0, 3, NULL);
		join_thread(threads[!(i % 2)]);
		ASSERT_EQ(more.arg.records_done, 3);
	}
}

/* Nothing but interrupts keeps us from going on, from here. */
static void take_precedence(void)
{
	struct sched_param param = { .sched_priority = 1 };

	ASSERT_EQ(sched_setscheduler(0, SCHED_FIFO, &param), 0);
}

static void yield_precedence(void)
{
	struct sched_param param = { .sched_priority = 0 };

	ASSERT_EQ(sched_setscheduler(0, SCHED_OTHER, &param), 0);
}

/*
 * On one CPU, so that the record is cancelled before the woken thread runs.  False if that
 * thread did run first and read it: the kernel preempts a thread that seems to have had the
 * CPU for a second.
 */
static bool cancel_before_woken_runs(void)
{
	struct waiter more = { .fd = open_with_armed(), .min_records = 3 };
	struct waiter less = { .fd = more.fd, .min_records = 2 };
	pthread_t threads[2];
	bool cancelled;
	__u64 ids[3];

	threads[0] = start_thread(wait_in_enter, &more);
	wait_waiter_asleep(&more);
	threads[1] = start_thread(wait_in_enter, &less);
	wait_waiter_asleep(&less);

	take_precedence();
	add_many(more.fd, 0, 0, 3, ids);
	cancelled = cancel(more.fd, ids[0]) == 0;
	yield_precedence();
	if (cancelled) {
		join_thread(threads[1]);
		ASSERT_EQ(less.arg.records_done, 2);
		ASSERT(!more.done);
	}
	add_many(more.fd, 0, 0, 3, NULL);
	join_thread(threads[0]);
	if (cancelled)
		ASSERT_EQ(more.arg.records_done, 3);
	else
		join_thread(threads[1]);
	close(more.fd);
	return cancelled;
}

TEST(enter_that_was_woken_for_records_now_cancelled_hands_the_wake_up_on)
{
	unsigned int attempts = 0;

	pin_to_this_cpu();
	do {
		ASSERT_LT(attempts++, 10);
	} while (!cancel_before_woken_runs());
}

TEST(commands_run_while_an_enter_waits)
{
	struct waiter waiter = {
		.fd = device_open_nonblock(),
		.min_records = 1,
	};
	pthread_t thread = start_thread(wait_in_enter, &waiter);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		__u64 id;

		wait_waiter_asleep(&waiter);
		id = add(waiter.fd, 0, FAR_NS, 1);
		ASSERT_EQ(modify(waiter.fd, id, 0, 2 * FAR_NS), 0);
		ASSERT_EQ(cancel(waiter.fd, id), 0);
		ASSERT(!waiter.done);
	}
	add(waiter.fd, 0, 0, 1);
	join_thread(thread);
	ASSERT_EQ(waiter.arg.records_done, 1);
}

TEST(enter_that_leaves_records_behind_wakes_the_next_reader)
{
	struct waiter waiters[3];
	pthread_t threads[ARRAY_SIZE(waiters)];
	int fd = device_open_nonblock();
	unsigned int round;
	size_t i;

	for (round = 0; round < 100; round++) {
		__u64 seen = 0;

		test_about("round %u", round);
		for (i = 0; i < ARRAY_SIZE(waiters); i++) {
			waiters[i] = (struct waiter){
				.fd = fd,
				.min_records = 1,
				.room = 1,
			};
			threads[i] = start_thread(wait_in_enter, &waiters[i]);
			wait_waiter_asleep(&waiters[i]);
		}

		/* All due in one tick, so that one run makes them ready. */
		add_many(fd, TWHEEL_ABS, monotonic_ns() + NSEC_PER_MSEC,
			 ARRAY_SIZE(waiters), NULL);
		for (i = 0; i < ARRAY_SIZE(waiters); i++) {
			join_thread(threads[i]);
			ASSERT_EQ(waiters[i].ret, 0);
			ASSERT_EQ(waiters[i].arg.records_done, 1);
			seen |= 1ULL << waiters[i].records[0].data;
		}
		ASSERT_EQ(seen, (1ULL << ARRAY_SIZE(waiters)) - 1);
	}
}

/* --- several threads -------------------------------------------------------- */

/*
 * Several threads in ENTER, each record to one of them.  At the end every thread
 * gets one record whose data is STOP; one that gets more than one arms more.
 */
#define STOP	(~0ULL)

struct shared_loop {
	int fd;
	size_t nr;
	atomic_size_t next;
	atomic_uchar *seen;
	atomic_size_t total;
};

static unsigned int account_records(struct shared_loop *shared,
				    const struct twheel_record *records,
				    size_t nr)
{
	unsigned int stops = 0;
	size_t i;

	for (i = 0; i < nr; i++) {
		check_record(&records[i]);
		if (records[i].data == STOP) {
			stops++;
			continue;
		}
		ASSERT_LT(records[i].data, shared->nr);
		shared->seen[records[i].data]++;
		shared->total++;
	}
	return stops;
}

static void *loop_by_enter(void *arg)
{
	struct shared_loop *shared = arg;
	struct twheel_record records[16];
	struct twheel_cmd cmds[8];
	unsigned int stops = 0;
	__u64 seed = thread_id();

	while (!stops) {
		size_t first = shared->next, nr, i;
		struct twheel_enter loop;

		do {
			nr = shared->nr - first;
			if (nr > ARRAY_SIZE(cmds))
				nr = ARRAY_SIZE(cmds);
		} while (!atomic_compare_exchange_weak(&shared->next, &first,
						       first + nr));
		for (i = 0; i < nr; i++)
			cmds[i] = make_add(0, next_random(&seed) %
					   NSEC_PER_MSEC, first + i);
		loop = make_enter(cmds, nr, records, ARRAY_SIZE(records));
		loop.min_records = !nr;
		loop.timeout_ns = ENTER_FOR_EVER;
		ASSERT_EQ(enter(shared->fd, &loop), 0);
		ASSERT_EQ(loop.cmds_done, nr);
		stops = account_records(shared, records, loop.records_done);
	}
	while (--stops)
		add(shared->fd, 0, 0, STOP);
	return NULL;
}

TEST(enter_by_two_threads_gives_each_record_to_one_of_them)
{
	struct shared_loop shared = {
		.fd = device_open_nonblock(),
		.nr = test_count(50000),
	};
	pthread_t threads[2];
	size_t i;

	shared.seen = map_pages(shared.nr);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		threads[i] = start_thread(loop_by_enter, &shared);
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

TEST(enter_does_not_heed_the_wake_count)
{
	struct twheel_config config = default_config();
	struct waiter waiter = { .min_records = 1 };
	pthread_t thread;

	config.wake_count = 100;
	config.wake_delay_ns = FAR_NS;
	waiter.fd = device_open_configured(O_RDWR | O_NONBLOCK, &config);
	thread = start_thread(wait_in_enter, &waiter);
	wait_waiter_asleep(&waiter);
	add(waiter.fd, 0, NSEC_PER_MSEC, 42);
	join_thread(thread);
	ASSERT_EQ(waiter.arg.records_done, 1);
	ASSERT_EQ(waiter.records[0].data, 42);
}

/* --- beside other ways ------------------------------------------------------ */

TEST(enter_gives_periodic_records_and_arms_them_again)
{
	struct twheel_record record;
	struct twheel_enter arg = make_enter(NULL, 0, &record, 1);
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + SOON_NS;
	unsigned int i;

	add_by(fd, make_periodic(TWHEEL_ABS, due_ns, 1234567, 0));
	arg.min_records = 1;
	arg.timeout_ns = ENTER_FOR_EVER;
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(enter(fd, &arg), 0);
		ASSERT_EQ(arg.records_done, 1);
		check_expired(&record);
		ASSERT_EQ(record.due_ns, due_ns);
		due_ns += record.count * 1234567;
	}
}

TEST(enter_that_faults_leaves_a_periodic_record)
{
	struct twheel_enter arg = make_enter(NULL, 0, NULL, 1);
	int fd = device_open_nonblock();
	__u64 id = add_by(fd, make_periodic(TWHEEL_ABS, 1, FAR_NS, 0));

	ASSERT_EQ(enter(fd, &arg), -EFAULT);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
	ASSERT_EQ(wait_record(fd).due_ns, 1);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_ARMED);
}

TEST(poll_is_woken_by_an_event_that_enter_arms)
{
	struct twheel_cmd cmd = make_add(0, SOON_NS, 0);
	struct twheel_enter arg = make_enter(&cmd, 1, NULL, 0);
	int fd = device_open_nonblock();

	ASSERT_EQ(enter(fd, &arg), 0);
	wait_readable(fd);
	ASSERT_EQ(wait_record(fd).id, cmd.id);
}

/* --- ENTER does not wait for what cannot come --------------------------------- */

TEST(enter_that_waits_for_two_gets_both_of_one_periodic_event)
{
	struct twheel_record records[2];
	struct twheel_enter arg = make_enter(NULL, 0, records, 2);
	int fd = device_open_nonblock();
	__u64 due_ns = monotonic_ns() + NSEC_PER_MSEC;

	add_by(fd, make_periodic(TWHEEL_ABS, due_ns, SOON_NS, 5));
	arg.min_records = 2;
	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(fd, &arg), 0);
	ASSERT_EQ(arg.records_done, 2);
	check_expired(&records[0]);
	check_expired(&records[1]);
	ASSERT_EQ(records[0].due_ns, due_ns);
	ASSERT_EQ(records[1].due_ns, due_ns + records[0].count * SOON_NS);
}

TEST(enter_with_records_does_not_wait_for_more_when_nothing_is_armed)
{
	struct twheel_record records[3];
	struct twheel_enter arg = make_enter(NULL, 0, records, 3);

	arg.min_records = 3;
	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(open_with_ready(2), &arg), 0);
	ASSERT_EQ(arg.records_done, 2);
}

TEST(enter_that_arms_fewer_than_it_waits_for_gives_these)
{
	struct twheel_cmd cmds[3];
	struct twheel_record records[8];
	struct twheel_enter arg = make_enter(cmds, 3, records, 8);
	size_t i;

	for (i = 0; i < 3; i++)
		cmds[i] = make_add(0, i * NSEC_PER_MSEC, i);
	arg.min_records = 8;
	arg.timeout_ns = ENTER_FOR_EVER;
	ASSERT_EQ(enter(device_open_nonblock(), &arg), 0);
	ASSERT_EQ(arg.records_done, 3);
}

/* One record is at hand, and others may still come: a thread that sleeps. */
static pthread_t start_waiter_with_one(struct waiter *waiter, __u32 min_records)
{
	pthread_t thread;

	waiter->min_records = min_records;
	add(waiter->fd, 0, 0, 1);
	thread = start_thread(wait_in_enter, waiter);
	wait_waiter_asleep(waiter);
	return thread;
}

static void check_ends_with_one(struct waiter *waiter, pthread_t thread)
{
	join_thread(thread);
	ASSERT_EQ(waiter->ret, 0);
	ASSERT_EQ(waiter->arg.records_done, 1);
	ASSERT_EQ(get_counters(waiter->fd).ready, 0);
}

TEST(enter_that_waits_ends_when_the_last_armed_event_is_cancelled)
{
	struct waiter waiter = { .fd = device_open_nonblock() };
	__u64 first = add(waiter.fd, 0, FAR_NS, 0);
	__u64 last = add(waiter.fd, 0, FAR_NS, 0);
	pthread_t thread = start_waiter_with_one(&waiter, 2);

	ASSERT_EQ(cancel(waiter.fd, first), 0);
	wait_waiter_asleep(&waiter);
	ASSERT(!waiter.done);
	ASSERT_EQ(cancel(waiter.fd, last), 0);
	check_ends_with_one(&waiter, thread);
}

TEST(enter_that_waits_ends_when_a_quiet_signal_cancels_the_last_armed_events)
{
	struct waiter waiter = { .fd = device_open_nonblock() };
	pthread_t thread;

	add_watching(waiter.fd, 7, 1, 0);
	add_watching(waiter.fd, 7, 1, 0);
	thread = start_waiter_with_one(&waiter, 2);
	ASSERT_EQ(signal_quietly(waiter.fd, 7), 2);
	check_ends_with_one(&waiter, thread);
}

TEST(enter_that_waits_ends_when_the_last_armed_event_becomes_ready)
{
	struct waiter waiter = { .fd = device_open_nonblock() };
	__u64 last = add(waiter.fd, 0, FAR_NS, 0);
	pthread_t thread = start_waiter_with_one(&waiter, 5);

	ASSERT_EQ(modify(waiter.fd, last, 0, NSEC_PER_MSEC), 0);
	join_thread(thread);
	ASSERT_EQ(waiter.arg.records_done, 2);
	ASSERT_EQ(get_counters(waiter.fd).finished, 2);
}

TEST(enter_that_waits_sleeps_on_when_a_ready_event_is_modified_away)
{
	struct waiter waiter = { .fd = open_with_armed() };
	pthread_t thread = start_waiter_with_one(&waiter, 3);
	__u64 id = add(waiter.fd, 0, 0, 2);
	unsigned int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(modify(waiter.fd, id, 0, FAR_NS), 0);
		wait_waiter_asleep(&waiter);
		ASSERT(!waiter.done);
		ASSERT_EQ(modify(waiter.fd, id, 0, 0), 0);
		wait_ready(waiter.fd, 1);
		wait_waiter_asleep(&waiter);
		ASSERT(!waiter.done);
	}
	add(waiter.fd, 0, 0, 3);
	join_thread(thread);
	ASSERT_EQ(waiter.arg.records_done, 3);
	ASSERT_EQ(waiter.records[1].data, 2);
	ASSERT_EQ(waiter.records[2].data, 3);
}

TEST(enter_that_waits_takes_more_that_others_add_meanwhile)
{
	struct waiter waiter = { .fd = open_with_armed() };
	pthread_t thread = start_waiter_with_one(&waiter, 10);
	__u64 i;

	for (i = 2; i < 10; i++) {
		wait_waiter_asleep(&waiter);
		ASSERT(!waiter.done);
		add(waiter.fd, 0, i % 2 * NSEC_PER_MSEC, i);
		wait_ready(waiter.fd, i - 1);
	}
	add(waiter.fd, 0, 0, 10);
	join_thread(thread);
	ASSERT_EQ(waiter.arg.records_done, 10);
	for (i = 0; i < 10; i++)
		ASSERT_EQ(waiter.records[i].data, i + 1);
}

TEST(enter_that_waits_in_a_full_context_takes_records_and_goes_on)
{
	struct twheel_config config = default_config();
	struct waiter waiter = { .min_records = 3 };
	pthread_t thread;

	config.max_events = 3;
	waiter.fd = device_open_configured(O_RDWR | O_NONBLOCK, &config);
	add_many(waiter.fd, 0, FAR_NS, 2, NULL);
	thread = start_thread(wait_in_enter, &waiter);
	wait_waiter_asleep(&waiter);

	/* It is full each time, and only the record that is taken makes room. */
	add(waiter.fd, 0, 0, 1);
	while (get_counters(waiter.fd).finished < 1)
		poll(NULL, 0, 1);
	wait_waiter_asleep(&waiter);
	ASSERT(!waiter.done);
	add(waiter.fd, 0, NSEC_PER_MSEC, 2);
	while (get_counters(waiter.fd).finished < 2)
		poll(NULL, 0, 1);
	wait_waiter_asleep(&waiter);
	ASSERT(!waiter.done);
	add(waiter.fd, 0, 0, 3);
	join_thread(thread);
	ASSERT_EQ(waiter.ret, 0);
	ASSERT_EQ(waiter.arg.records_done, 3);
	ASSERT_EQ(get_counters(waiter.fd).armed, 2);
}

TEST(enter_in_a_full_context_of_armed_events_waits)
{
	struct twheel_config config = default_config();
	struct waiter waiter = { .min_records = 1 };
	pthread_t thread;
	__u64 id;

	config.max_events = 1;
	waiter.fd = device_open_configured(O_RDWR | O_NONBLOCK, &config);
	id = add(waiter.fd, 0, FAR_NS, 7);
	thread = start_thread(wait_in_enter, &waiter);
	wait_waiter_asleep(&waiter);
	ASSERT(!waiter.done);
	ASSERT_EQ(modify(waiter.fd, id, 0, NSEC_PER_MSEC), 0);
	join_thread(thread);
	ASSERT_EQ(waiter.arg.records_done, 1);
	ASSERT_EQ(waiter.records[0].data, 7);
}

TEST(enters_that_wait_all_end_when_the_last_armed_event_is_cancelled)
{
	struct waiter waiters[3];
	pthread_t threads[ARRAY_SIZE(waiters)];
	int fd = device_open_nonblock();
	unsigned int round;
	size_t i;

	for (round = 0; round < 50; round++) {
		__u64 last = add(fd, 0, FAR_NS, 0);

		test_about("round %u", round);
		for (i = 0; i < ARRAY_SIZE(waiters); i++) {
			waiters[i] = (struct waiter){ .fd = fd };
			threads[i] = start_waiter_with_one(&waiters[i], 3);
		}
		ASSERT_EQ(cancel(fd, last), 0);
		for (i = 0; i < ARRAY_SIZE(waiters); i++)
			check_ends_with_one(&waiters[i], threads[i]);
	}
}

/* They are more than are looked at in hard interrupt context. */
TEST(enters_of_many_tasks_are_woken_by_events_that_come_alone)
{
	struct waiter waiters[40], one = { .fd = open_with_armed(), .min_records = 1 };
	pthread_t threads[ARRAY_SIZE(waiters)], thread;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(waiters); i++) {
		waiters[i] = (struct waiter){ .fd = one.fd, .min_records = 2, .room = 2 };
		threads[i] = start_thread(wait_in_enter, &waiters[i]);
	}
	for (i = 0; i < ARRAY_SIZE(waiters); i++)
		wait_waiter_asleep(&waiters[i]);
	thread = start_thread(wait_in_enter, &one);
	wait_waiter_asleep(&one);
	add(one.fd, 0, NSEC_PER_MSEC, 0);
	join_thread(thread);
	ASSERT_EQ(one.arg.records_done, 1);
	for (i = 0; i < 2 * ARRAY_SIZE(waiters); i++)
		add(one.fd, 0, (i + 1) * NSEC_PER_MSEC, i);
	for (i = 0; i < ARRAY_SIZE(waiters); i++) {
		join_thread(threads[i]);
		ASSERT_EQ(waiters[i].arg.records_done, 2);
	}
	check_nothing_ready(one.fd);
}

TEST(enters_that_wait_for_one_periodic_event_all_get_enough)
{
	struct waiter waiters[3];
	pthread_t threads[ARRAY_SIZE(waiters)];
	int fd = device_open_nonblock();
	__u64 seen = 0, interval_ns = 2 * NSEC_PER_MSEC;
	__u64 first_ns = monotonic_ns() + interval_ns;
	size_t i, k;

	add_by(fd, make_periodic(TWHEEL_ABS, first_ns, interval_ns, 5));
	for (i = 0; i < ARRAY_SIZE(waiters); i++) {
		waiters[i] = (struct waiter){ .fd = fd, .min_records = 3 };
		threads[i] = start_thread(wait_in_enter, &waiters[i]);
	}
	for (i = 0; i < ARRAY_SIZE(waiters); i++) {
		join_thread(threads[i]);
		ASSERT_GE(waiters[i].arg.records_done, 3);
		for (k = 0; k < waiters[i].arg.records_done; k++)
			seen += waiters[i].records[k].count;
	}
	ASSERT_GE(monotonic_ns(), first_ns + (seen - 1) * interval_ns);
	ASSERT_GE(seen, 3 * ARRAY_SIZE(waiters));
}

/* --- timer slack -------------------------------------------------------------- */

/* Wait in ENTER until @until_ns, as a task of this policy; never returns. */
static void __noreturn enter_by_policy(int policy, __u64 until_ns)
{
	const struct sched_param param = { .sched_priority = policy == SCHED_FIFO };
	struct twheel_record record;
	struct twheel_enter arg;
	int fd = open_with_armed();

	if (sched_setscheduler(0, policy, &param))
		_exit(1);
	arg = make_enter(NULL, 0, &record, 1);
	arg.flags = TWHEEL_ENTER_ABS;
	arg.min_records = 1;
	arg.timeout_ns = until_ns;
	enter(fd, &arg);
	_exit(1);
}

/* The slack of the kernel's timer that is set for this time, once there is one. */
static __u64 wait_timer_slack(__u64 until_ns)
{
	unsigned long long first_ns, last_ns;
	char line[256];

	for (;;) {
		FILE *timers = fopen("/proc/timer_list", "re");

		if (!timers)
			test_skip("no /proc/timer_list");
		while (fgets(line, sizeof(line), timers)) {
			if (sscanf(line, " # expires at %llu-%llu nsecs", &first_ns,
				   &last_ns) == 2 && first_ns == until_ns) {
				fclose(timers);
				return last_ns - first_ns;
			}
		}
		fclose(timers);
	}
}

static __u64 enter_slack_ns(int policy)
{
	__u64 until_ns = monotonic_ns() + FAR_NS, slack_ns;
	pid_t child = start_child();

	if (!child)
		enter_by_policy(policy, until_ns);
	slack_ns = wait_timer_slack(until_ns);
	kill_child(child);
	return slack_ns;
}

/* As of poll() and clock_nanosleep(); schedule_hrtimeout_range() sees to it. */
TEST(enter_of_a_real_time_task_has_no_timer_slack)
{
	ASSERT_EQ(prctl(PR_SET_TIMERSLACK, 123456UL), 0);
	ASSERT_EQ(enter_slack_ns(SCHED_OTHER), 123456);
	ASSERT_EQ(enter_slack_ns(SCHED_FIFO), 0);
}
