// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Records, turns of an event loop, and lists.
 */
#include <signal.h>
#include <unistd.h>

#include "wheel.h"

static void arm(struct twheel *wheel, __u64 time_ns, __u64 data)
{
	ASSERT_EQ(twheel_add(wheel, time_ns, data, 0, NULL), 0);
}

TEST(records_init_refuses_no_room_and_too_much)
{
	struct twheel_records records;

	memset(&records, FILL, sizeof(records));
	ASSERT_EQ(twheel_records_init(&records, 0), -EINVAL);
	ASSERT(!records.records && !records.nr && !records.room);
	ASSERT_EQ(twheel_records_init(&records, ~0U), -ENOMEM);
	ASSERT(!records.records && !records.nr && !records.room);
	twheel_records_destroy(&records);
	ASSERT_EQ(twheel_records_init(&records, 3), 0);
	ASSERT(records.records && !records.nr);
	ASSERT_EQ(records.room, 3);
	twheel_records_destroy(&records);
	ASSERT(!records.records && !records.nr && !records.room);
}

TEST(read_takes_what_is_there_as_far_as_there_is_room)
{
	struct twheel_records records = make_records(2);
	struct twheel *wheel = open_wheel();
	const struct twheel_record *record;
	__u64 data = 1;

	ASSERT_EQ(twheel_read(wheel, &records), 0);
	arm(wheel, 0, 1);
	arm(wheel, 0, 2);
	arm(wheel, 0, 3);
	ASSERT_EQ(twheel_read(wheel, &records), 2);
	ASSERT_EQ(records.nr, 2);
	twheel_for_each_record(record, &records)
		ASSERT_EQ(record->data, data++);
	ASSERT_EQ(data, 3);
	ASSERT_EQ(twheel_read(wheel, &records), 1);
	ASSERT_EQ(records.records[0].data, 3);
	ASSERT_EQ(records.nr, 1);
	ASSERT_EQ(twheel_read(wheel, &records), 0);
	ASSERT_EQ(records.nr, 0);
	twheel_records_destroy(&records);
	twheel_close(wheel);
}

TEST(wait_ends_with_a_record_or_when_the_time_is_up)
{
	struct twheel_records records = make_records(4);
	struct twheel *wheel = open_wheel();
	__u64 before_ns = monotonic_ns();

	ASSERT_EQ(twheel_wait(wheel, &records, SOON_NS), 0);
	ASSERT_GE(monotonic_ns(), before_ns + SOON_NS);
	ASSERT_EQ(twheel_wait(wheel, &records, 0), 0);
	arm(wheel, SOON_NS, 1);
	arm(wheel, FAR_NS, 2);
	ASSERT_EQ(twheel_wait(wheel, &records, TWHEEL_NEVER), 1);
	ASSERT_EQ(records.records[0].data, 1);
	check_record(&records.records[0]);
	twheel_records_destroy(&records);
	twheel_close(wheel);
}

TEST(wait_ends_with_a_signal)
{
	struct twheel_records records = make_records(4);
	struct twheel *wheel = open_wheel();

	arm(wheel, FAR_NS, 1);
	start_alarms(0);
	ASSERT_EQ(twheel_wait(wheel, &records, FAR_NS), -EINTR);
	ASSERT_EQ(records.nr, 0);
	ASSERT_EQ(twheel_wait(wheel, &records, TWHEEL_NEVER), -EINTR);
	ASSERT_GE(signals_counted(), 2);
	twheel_records_destroy(&records);
	twheel_close(wheel);
}

static int wait_long(struct twheel *wheel, struct twheel_records *records)
{
	return twheel_wait(wheel, records, FAR_NS);
}

static int wait_longest(struct twheel *wheel, struct twheel_records *records)
{
	return twheel_wait(wheel, records, TWHEEL_NEVER - 1);
}

static int enter_long(struct twheel *wheel, struct twheel_records *records)
{
	sigset_t none;

	sigemptyset(&none);
	return twheel_enter(wheel, NULL, NULL, records, 1, FAR_NS, &none);
}

/* The loop drops the record, so one comes, but no callback is called. */
static int run_long(struct twheel *wheel, struct twheel_records *records)
{
	struct twheel_loop *loop;

	(void)records;
	ASSERT_EQ(twheel_loop_create(&loop, wheel), 0);
	return twheel_loop_run(loop, FAR_NS) + 1;
}

TEST(waits_go_on_after_a_stop_and_continue)
{
	static int (*const waits[])(struct twheel *, struct twheel_records *) = {
		wait_long, wait_longest, enter_long, run_long,
	};
	struct twheel_records records = make_records(4);
	struct twheel *wheel = open_wheel();
	size_t i;
	int turn;

	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		pid_t pid = start_child();

		test_about("wait %zu", i);
		if (!pid) {
			ASSERT_EQ(waits[i](wheel, &records), 1);
			_exit(0);
		}
		wait_asleep(pid);
		for (turn = 0; turn < 3; turn++) {
			stop_and_continue(pid);
			wait_asleep(pid);
		}
		arm(wheel, 0, 1);
		wait_child(pid);
	}
	twheel_records_destroy(&records);
	twheel_close(wheel);
}

TEST(enter_is_a_turn_of_an_event_loop)
{
	struct twheel_records records = make_records(4);
	struct twheel *wheel = open_wheel();
	struct twheel_batch batch;
	unsigned int done = 77;

	twheel_batch_init(&batch);
	twheel_prep_add(twheel_batch_next(&batch), SOON_NS, 1, 0);
	twheel_prep_add(twheel_batch_next(&batch), SOON_NS, 2, 0);
	twheel_prep_add(twheel_batch_next(&batch), FAR_NS, 3, 0);
	ASSERT_EQ(twheel_enter(wheel, &batch, &done, &records, 2, TWHEEL_NEVER, NULL), 2);
	ASSERT_EQ(done, 3);
	ASSERT_EQ(batch.nr, 3);
	ASSERT_EQ(records.nr, 2);
	ASSERT(batch.cmds[2].id);
	ASSERT_EQ(twheel_enter(wheel, NULL, NULL, &records, 0, 0, NULL), 0);
	ASSERT_EQ(twheel_enter(wheel, NULL, &done, &records, 1, SOON_NS, NULL), 0);
	ASSERT_EQ(done, 0);
	ASSERT_EQ(twheel_enter(wheel, NULL, NULL, &records, 5, 0, NULL), -EINVAL);
	twheel_batch_destroy(&batch);
	twheel_records_destroy(&records);
	twheel_close(wheel);
}

TEST(enter_says_how_many_commands_came_before_a_signal)
{
	struct twheel_records records = make_records(4);
	struct twheel *wheel = open_wheel();
	struct twheel_batch batch;
	unsigned int done;

	twheel_batch_init(&batch);
	twheel_prep_add(twheel_batch_next(&batch), 0, 1, 0);
	twheel_prep_add(twheel_batch_next(&batch), 0, 2, 0);
	cut_next(1);
	ASSERT_EQ(twheel_enter(wheel, &batch, &done, &records, 1, TWHEEL_NEVER, NULL), 1);
	ASSERT_EQ(done, 1);
	interrupt_next(1);
	done = 77;
	ASSERT_EQ(twheel_enter(wheel, &batch, &done, &records, 1, TWHEEL_NEVER, NULL), -EINTR);
	ASSERT_EQ(done, 0);
	ASSERT_EQ(records.nr, 0);
	twheel_batch_destroy(&batch);
	twheel_records_destroy(&records);
	twheel_close(wheel);
}

TEST(enter_lets_signals_in_by_its_mask)
{
	struct twheel_records records = make_records(4);
	struct twheel *wheel = open_wheel();
	sigset_t none, alarm;

	sigemptyset(&none);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	count_signals(SIGALRM, 0);
	ASSERT_EQ(sigprocmask(SIG_BLOCK, &alarm, NULL), 0);
	raise(SIGALRM);
	ASSERT_EQ(twheel_enter(wheel, NULL, NULL, &records, 1, SOON_NS, NULL), 0);
	ASSERT_EQ(signals_counted(), 0);
	ASSERT_EQ(twheel_enter(wheel, NULL, NULL, &records, 1, FAR_NS, &none), -EINTR);
	ASSERT_EQ(signals_counted(), 1);
	twheel_records_destroy(&records);
	twheel_close(wheel);
}

TEST(list_pages_through_the_events)
{
	struct twheel_entry entries[2] = {};
	struct twheel *wheel = open_wheel();
	__u64 cursor = 0, seen = 0;
	__u64 data;
	int nr, i;

	for (data = 0; data < 5; data++)
		arm(wheel, FAR_NS, data);
	interrupt_next(1);
	while ((nr = twheel_list(wheel, entries, 2, &cursor))) {
		ASSERT_GT(nr, 0);
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(entries[i].state, TWHEEL_ARMED);
			ASSERT_EQ(entries[i].flags, TWHEEL_ABS);
			ASSERT(!(seen & 1ULL << entries[i].data));
			seen |= 1ULL << entries[i].data;
		}
	}
	ASSERT_EQ(seen, 0x1f);
	cursor = 0;
	ASSERT_EQ(twheel_list(wheel, NULL, 2, &cursor), -EFAULT);
	ASSERT_EQ(cursor, 0);
	twheel_close(wheel);
}

/* twheel_list() as it was a function of the library, of entries of 64 bytes. */
int list_of_old_programs(struct twheel *wheel, void *entries, unsigned int nr,
			 __u64 *cursor) __asm__("twheel_list");

TEST(list_writes_entries_of_the_size_that_a_program_has)
{
	enum { NR = 5, OLD = 64 };
	struct twheel *wheel = open_wheel();
	struct twheel_entry entries[NR] = {};
	unsigned char array[(NR + 1) * OLD];
	__u64 cursor = 0;
	int older, i;

	for (i = 0; i < NR; i++)
		arm(wheel, FAR_NS, i);
	ASSERT_EQ(twheel_list(wheel, entries, NR, &cursor), NR);
	for (older = 0; older < 2; older++) {
		memset(array, 0xcc, sizeof(array));
		cursor = 0;
		ASSERT_EQ(older ? list_of_old_programs(wheel, array, NR, &cursor) :
			  twheel_list_sized(wheel, array, OLD, NR, &cursor), NR);
		for (i = 0; i < NR; i++)
			ASSERT_EQ(memcmp(array + i * OLD, &entries[i], OLD), 0);
		for (i = NR * OLD; i < (NR + 1) * OLD; i++)
			ASSERT_EQ(array[i], 0xcc);
	}
	cursor = 0;
	ASSERT_EQ(twheel_list_sized(wheel, array, OLD - 1, NR, &cursor), -EINVAL);
	/* The low half of the size is a right one. */
	if (sizeof(size_t) > sizeof(__u32))
		ASSERT_EQ(twheel_list_sized(wheel, array, ~(size_t)0 << 16 << 16 | OLD, NR,
					    &cursor), -EINVAL);
	twheel_close(wheel);
}

static void *read_all(void *arg)
{
	struct twheel_records records = make_records(7);
	const struct twheel_record *record;
	struct twheel *wheel = arg;
	uintptr_t sum = 0;

	do {
		ASSERT_GE(twheel_wait(wheel, &records, TWHEEL_NEVER), 0);
		twheel_for_each_record(record, &records)
			sum += record->data;
	} while (!records.nr || records.records[records.nr - 1].data);
	twheel_records_destroy(&records);
	return (void *)sum;
}

/* Data 0 ends a reader, which then has read all that came before it. */
TEST(threads_share_a_wheel_and_each_record_goes_to_one)
{
	struct twheel *wheel = open_wheel();
	pthread_t readers[2];
	uintptr_t sum = 0;
	void *part;
	__u64 data;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(readers); i++)
		readers[i] = start_thread(read_all, wheel);
	for (data = 1; data <= 2000; data++)
		arm(wheel, 0, data);
	while (counters_of(wheel).finished < 2000)
		sched_yield();
	for (i = 0; i < ARRAY_SIZE(readers); i++) {
		arm(wheel, 0, 0);
		while (counters_of(wheel).finished < 2001 + (long long)i)
			sched_yield();
	}
	for (i = 0; i < ARRAY_SIZE(readers); i++) {
		ASSERT_EQ(pthread_join(readers[i], &part), 0);
		sum += (uintptr_t)part;
	}
	ASSERT_EQ(sum, 2000 * 2001 / 2);
	twheel_close(wheel);
}
