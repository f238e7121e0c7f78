// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The loop, one behaviour at a time.
 */
#include <stdlib.h>
#include <unistd.h>

#include "wheel.h"

/* A timeout and what became of it. */
struct alarm {
	struct twheel_timeout timeout;
	unsigned int called;
	struct twheel_record record;
	/* What the callback does besides, and to which timeout. */
	void (*then)(struct alarm *alarm);
	struct alarm *other;
	struct twheel_loop *loop;
};

static void alarm_rings(struct twheel_timeout *timeout, const struct twheel_record *record)
{
	struct alarm *alarm = timeout->context;

	alarm->called++;
	alarm->record = *record;
	ASSERT_GE(record->count, 1);
	if (record->reason == TWHEEL_EXPIRED)
		ASSERT_GE(record->fired_ns, record->due_ns);
	if (alarm->then)
		alarm->then(alarm);
}

static void make_alarm(struct alarm *alarm, struct twheel_loop *loop,
		       void (*then)(struct alarm *), struct alarm *other)
{
	memset(alarm, 0, sizeof(*alarm));
	memset(&alarm->timeout, FILL, sizeof(alarm->timeout));
	twheel_timeout_init(&alarm->timeout, alarm_rings, alarm);
	ASSERT(!twheel_timeout_pending(&alarm->timeout));
	alarm->then = then;
	alarm->other = other;
	alarm->loop = loop;
}

static struct twheel_loop *make_loop(struct twheel *wheel)
{
	struct twheel_loop *loop;

	ASSERT_EQ(twheel_loop_create(&loop, wheel), 0);
	ASSERT_EQ(twheel_loop_fd(loop), twheel_fd(wheel));
	return loop;
}

static void end_loop(struct twheel_loop *loop, struct twheel *wheel)
{
	twheel_loop_destroy(loop);
	ASSERT_EQ(counters_of(wheel).armed, 0);
	ASSERT_EQ(counters_of(wheel).ready, 0);
	twheel_close(wheel);
}

/* Start it for a time from now. */
static void set_alarm(struct alarm *alarm, __u64 time_ns)
{
	ASSERT_EQ(twheel_timeout_start(alarm->loop, &alarm->timeout, time_ns, 0, 0, 0), 0);
	ASSERT(twheel_timeout_pending(&alarm->timeout));
}

static void set_periodic(struct alarm *alarm, __u64 time_ns, __u64 interval_ns)
{
	ASSERT_EQ(twheel_timeout_start(alarm->loop, &alarm->timeout, time_ns, interval_ns, 0,
				       0), 0);
}

/* Run until it was called so often in all. */
static void run_until(struct alarm *alarm, unsigned int called)
{
	while (alarm->called < called)
		ASSERT_GE(twheel_loop_run(alarm->loop, TWHEEL_NEVER), 0);
	ASSERT_EQ(alarm->called, called);
}

/* Behind the back of the loop, its events become READY, in the order of the list. */
static void make_ready(struct twheel *wheel)
{
	struct twheel_entry entries[10] = {};
	struct twheel_cmd cmd;
	__u64 cursor = 0;
	int nr, i;

	nr = twheel_list(wheel, entries, ARRAY_SIZE(entries), &cursor);
	ASSERT_GT(nr, 0);
	for (i = 0; i < nr; i++) {
		if (entries[i].deadline)
			twheel_prep_modify_deadline(&cmd, entries[i].id,
						    entries[i].deadline - 1);
		else
			twheel_prep_modify(&cmd, entries[i].id, 0, 0);
		ASSERT_EQ(twheel_run(wheel, &cmd), 0);
	}
	ASSERT_EQ(counters_of(wheel).ready, nr);
}

/* Both are started, and READY, and not yet read; @first comes first. */
static void make_both_ready(struct twheel *wheel, struct alarm *first, struct alarm *second)
{
	set_alarm(first, FAR_NS);
	set_alarm(second, FAR_NS);
	ASSERT_EQ(twheel_loop_run(first->loop, 0), 0);
	make_ready(wheel);
}

TEST(timeouts_are_called_once_each_and_in_order)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarms[3];
	__u64 now_ns = twheel_now_ns(wheel);
	int i;

	for (i = 0; i < 3; i++) {
		make_alarm(&alarms[i], loop, NULL, NULL);
		ASSERT_EQ(twheel_timeout_start(loop, &alarms[i].timeout,
					       now_ns + (3 - i) * SOON_NS, 0, 0,
					       TWHEEL_ABS), 0);
	}
	for (i = 2; i >= 0; i--) {
		run_until(&alarms[i], 1);
		ASSERT_EQ(alarms[i].record.due_ns, now_ns + (3 - i) * SOON_NS);
		ASSERT(!twheel_timeout_pending(&alarms[i].timeout));
	}
	for (i = 0; i < 3; i++)
		ASSERT_EQ(alarms[i].called, 1);
	end_loop(loop, wheel);
}

TEST(loop_brings_all_that_was_started_to_the_kernel_without_waiting)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarms[100];
	int i;

	for (i = 0; i < 100; i++) {
		make_alarm(&alarms[i], loop, NULL, NULL);
		set_alarm(&alarms[i], FAR_NS);
	}
	interrupt_next(1);
	cut_next(30);
	ASSERT_EQ(twheel_loop_run(loop, 0), -EINTR);
	ASSERT_EQ(counters_of(wheel).armed, 100);
	end_loop(loop, wheel);
}

TEST(loop_waits_as_long_as_it_may)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	__u64 before_ns = monotonic_ns();
	struct alarm alarm;

	make_alarm(&alarm, loop, NULL, NULL);
	set_alarm(&alarm, FAR_NS);
	ASSERT_EQ(twheel_loop_run(loop, SOON_NS), 0);
	ASSERT_GE(monotonic_ns(), before_ns + SOON_NS);
	start_alarms(0);
	ASSERT_EQ(twheel_loop_run(loop, TWHEEL_NEVER), -EINTR);
	end_loop(loop, wheel);
}

TEST(loop_is_driven_by_a_poll_of_its_file)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;

	make_alarm(&alarm, loop, NULL, NULL);
	set_alarm(&alarm, SOON_NS);
	while (!alarm.called) {
		ASSERT_GE(twheel_loop_run(loop, 0), 0);
		if (!alarm.called)
			wait_readable(twheel_loop_fd(loop));
	}
	check_nothing_ready(twheel_loop_fd(loop));
	end_loop(loop, wheel);
}

TEST(loop_calls_some_hundred_at_a_time_and_none_is_lost)
{
	enum { NR = 1000 };
	struct alarm *alarms = calloc(NR, sizeof(*alarms));
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	int i, called = 0;

	for (i = 0; i < NR; i++) {
		make_alarm(&alarms[i], loop, NULL, NULL);
		set_alarm(&alarms[i], 0);
	}
	while (called < NR) {
		int ret = twheel_loop_run(loop, TWHEEL_NEVER);

		ASSERT_GT(ret, 0);
		called += ret;
	}
	for (i = 0; i < NR; i++)
		ASSERT_EQ(alarms[i].called, 1);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	end_loop(loop, wheel);
	free(alarms);
}

TEST(timeout_that_is_stopped_is_not_called)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm, marker;

	make_alarm(&alarm, loop, NULL, NULL);
	make_alarm(&marker, loop, NULL, NULL);
	twheel_timeout_stop(&alarm.timeout);

	/* before the kernel knows it */
	set_alarm(&alarm, 0);
	twheel_timeout_stop(&alarm.timeout);
	ASSERT(!twheel_timeout_pending(&alarm.timeout));
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT_EQ(counters_of(wheel).added, 0);

	/* when it is armed */
	set_alarm(&alarm, FAR_NS);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	twheel_timeout_stop(&alarm.timeout);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT_EQ(counters_of(wheel).cancelled, 1);

	/* when its record is there, and its memory is somebody else's */
	make_both_ready(wheel, &alarm, &marker);
	twheel_timeout_stop(&alarm.timeout);
	memset(&alarm, FILL, sizeof(alarm));
	run_until(&marker, 1);
	ASSERT_EQ(counters_of(wheel).cancelled, 2);
	end_loop(loop, wheel);
}

static void stop_other(struct alarm *alarm)
{
	twheel_timeout_stop(&alarm->other->timeout);
	memset(alarm->other, FILL, sizeof(*alarm->other));
}

TEST(timeout_that_is_stopped_by_a_callback_of_the_same_turn_is_not_called)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm first, second;

	make_alarm(&first, loop, stop_other, &second);
	make_alarm(&second, loop, NULL, NULL);
	make_both_ready(wheel, &first, &second);
	ASSERT_EQ(twheel_loop_run(loop, 0), 1);
	ASSERT_EQ(first.called, 1);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	end_loop(loop, wheel);
}

static void restart_other(struct alarm *alarm)
{
	set_alarm(alarm->other, FAR_NS);
}

TEST(timeout_that_is_restarted_by_a_callback_of_the_same_turn_is_called_later)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm first, second;

	make_alarm(&first, loop, restart_other, &second);
	make_alarm(&second, loop, NULL, NULL);
	make_both_ready(wheel, &first, &second);
	ASSERT_EQ(twheel_loop_run(loop, 0), 1);
	ASSERT_EQ(second.called, 0);
	ASSERT(twheel_timeout_pending(&second.timeout));
	ASSERT_EQ(counters_of(wheel).armed, 1);
	make_ready(wheel);
	run_until(&second, 1);
	end_loop(loop, wheel);
}

static void restart_self(struct alarm *alarm)
{
	ASSERT(!twheel_timeout_pending(&alarm->timeout));
	if (alarm->called < 5)
		set_alarm(alarm, SOON_NS / 10);
}

TEST(timeout_starts_itself_again)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;

	make_alarm(&alarm, loop, restart_self, NULL);
	set_alarm(&alarm, 0);
	run_until(&alarm, 5);
	ASSERT(!twheel_timeout_pending(&alarm.timeout));
	ASSERT_EQ(counters_of(wheel).finished, 5);
	end_loop(loop, wheel);
}

TEST(timeout_that_is_started_again_before_its_time_has_the_later_one)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;
	__u64 due_ns = twheel_now_ns(wheel) + SOON_NS;

	make_alarm(&alarm, loop, NULL, NULL);
	set_alarm(&alarm, 0);
	set_alarm(&alarm, FAR_NS);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT_EQ(counters_of(wheel).added, 1);
	ASSERT_EQ(twheel_timeout_start(loop, &alarm.timeout, due_ns, 0, 0, TWHEEL_ABS), 0);
	run_until(&alarm, 1);
	ASSERT_EQ(alarm.record.due_ns, due_ns);
	ASSERT_EQ(counters_of(wheel).added, 1);
	end_loop(loop, wheel);
}

static void free_self(struct alarm *alarm)
{
	(*(int *)alarm->other)++;
	twheel_timeout_stop(&alarm->timeout);
	free(alarm);
}

TEST(timeout_frees_itself)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	int freed = 0, i;

	for (i = 0; i < 10; i++) {
		struct alarm *alarm = malloc(sizeof(*alarm));

		make_alarm(alarm, loop, free_self, (void *)&freed);
		if (i % 2)
			set_alarm(alarm, 0);
		else
			set_periodic(alarm, 0, SOON_NS);
	}
	while (freed < 10)
		ASSERT_GE(twheel_loop_run(loop, TWHEEL_NEVER), 0);
	end_loop(loop, wheel);
}

TEST(timeout_with_an_interval_goes_on_until_it_is_stopped)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;
	__u64 first_ns, nr = 0;

	make_alarm(&alarm, loop, NULL, NULL);
	set_periodic(&alarm, SOON_NS, SOON_NS / 4);
	run_until(&alarm, 1);
	first_ns = alarm.record.due_ns;
	while (alarm.called < 6) {
		ASSERT_EQ(alarm.record.due_ns, first_ns + nr * SOON_NS / 4);
		nr += alarm.record.count;
		ASSERT(twheel_timeout_pending(&alarm.timeout));
		run_until(&alarm, alarm.called + 1);
	}
	twheel_timeout_stop(&alarm.timeout);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT_EQ(counters_of(wheel).cancelled, 1);
	end_loop(loop, wheel);
}

static void make_one_shot(struct alarm *alarm)
{
	if (alarm->called == 3)
		set_alarm(alarm, SOON_NS);
}

TEST(timeout_with_an_interval_becomes_one_without)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;

	make_alarm(&alarm, loop, make_one_shot, NULL);
	set_periodic(&alarm, 0, SOON_NS / 4);
	run_until(&alarm, 4);
	ASSERT(!twheel_timeout_pending(&alarm.timeout));
	ASSERT_EQ(alarm.record.count, 1);
	ASSERT_EQ(counters_of(wheel).added, 1);
	ASSERT_EQ(counters_of(wheel).finished, 1);
	end_loop(loop, wheel);
}

TEST(slack_of_a_timeout_is_that_of_its_event)
{
	struct twheel_entry entry = {};
	struct twheel *wheel = open_words(1);
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;
	__u64 cursor = 0;

	make_alarm(&alarm, loop, NULL, NULL);
	ASSERT_EQ(twheel_timeout_start(loop, &alarm.timeout, FAR_NS, 0, 12345, 0), 0);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT_EQ(twheel_list(wheel, &entry, 1, &cursor), 1);
	ASSERT_EQ(entry.slack_ns, 12345);
	twheel_deadline_set(twheel_deadlines(wheel), 0, TWHEEL_NEVER);
	ASSERT_EQ(twheel_timeout_start_deadline(loop, &alarm.timeout, 0, 54321), 0);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	cursor = 0;
	ASSERT_EQ(twheel_list(wheel, &entry, 1, &cursor), 1);
	ASSERT_EQ(entry.slack_ns, 54321);
	ASSERT_EQ(entry.deadline, 1);
	end_loop(loop, wheel);
}

TEST(start_refuses_what_cannot_be_and_changes_nothing)
{
	struct twheel *wheel = open_words(3);
	struct twheel_loop *loop = make_loop(wheel), *other = make_loop(wheel);
	__u64 tick_ns = twheel_info(wheel)->tick_ns;
	struct alarm alarm;
	struct twheel_timeout *timeout = &alarm.timeout;
	int i;

	make_alarm(&alarm, loop, NULL, NULL);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(twheel_timeout_start(loop, timeout, 0, tick_ns - 1, 0, 0), -EINVAL);
		ASSERT_EQ(twheel_timeout_start(loop, timeout, 0, 0, 0, TWHEEL_SET_DATA), -EINVAL);
		ASSERT_EQ(twheel_timeout_start(loop, timeout, 0, 0, 0, TWHEEL_DEADLINE), -EINVAL);
		ASSERT_EQ(twheel_timeout_start(loop, timeout, 0, 0, 0,
					       TWHEEL_ABS | TWHEEL_CANCEL_ON_SET), -EINVAL);
		ASSERT_EQ(twheel_timeout_start_deadline(loop, timeout, 3, 0), -EINVAL);
		ASSERT_EQ(twheel_timeout_pending(timeout), i);
		set_alarm(&alarm, SOON_NS);
		ASSERT_EQ(twheel_timeout_start(other, timeout, 0, 0, 0, 0), -EINVAL);
	}
	run_until(&alarm, 1);
	ASSERT_EQ(twheel_timeout_start(other, timeout, 0, 0, 0, 0), 0);
	ASSERT_EQ(twheel_loop_run(other, TWHEEL_NEVER), 1);
	twheel_loop_destroy(other);
	end_loop(loop, wheel);
}

TEST(start_without_memory_changes_nothing)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarms[70];
	int i, started = 0;

	for (i = 0; i < 70; i++)
		make_alarm(&alarms[i], loop, NULL, NULL);
	lack_memory(true);
	ASSERT_EQ(twheel_timeout_start(loop, &alarms[0].timeout, 0, 0, 0, 0), -ENOMEM);
	ASSERT(!twheel_timeout_pending(&alarms[0].timeout));
	lack_memory(false);
	set_alarm(&alarms[started++], 0);
	lack_memory(true);
	/* The batch has room for some more, and then the table. */
	for (i = 0; i < 2; i++) {
		while (!twheel_timeout_start(loop, &alarms[started].timeout, FAR_NS, 0, 0, 0))
			started++;
		ASSERT(!twheel_timeout_pending(&alarms[started].timeout));
		ASSERT_EQ(twheel_loop_run(loop, 0), !i);
		ASSERT_EQ(counters_of(wheel).added, started);
	}
	lack_memory(false);
	end_loop(loop, wheel);
}

TEST(stop_without_memory_cancels_at_once)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarms[60];
	int i;

	/* More than a batch that was never longer has room for. */
	for (i = 0; i < 60; i++) {
		make_alarm(&alarms[i], loop, NULL, NULL);
		set_alarm(&alarms[i], FAR_NS);
		ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	}
	lack_memory(true);
	for (i = 0; i < 60; i++)
		twheel_timeout_stop(&alarms[i].timeout);
	ASSERT_GT(counters_of(wheel).cancelled, 0);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT_EQ(counters_of(wheel).cancelled, 60);
	lack_memory(false);
	end_loop(loop, wheel);
}

TEST(timeout_that_the_kernel_refuses_is_not_started_any_more)
{
	struct twheel *wheel = open_limited(2);
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarms[4];
	int i;

	for (i = 0; i < 4; i++)
		make_alarm(&alarms[i], loop, NULL, NULL);
	for (i = 0; i < 3; i++)
		set_alarm(&alarms[i], FAR_NS);
	ASSERT_EQ(twheel_loop_run(loop, TWHEEL_NEVER), -ENOSPC);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(twheel_timeout_pending(&alarms[i].timeout), i < 2);

	/* Those that are due are called all the same. */
	set_alarm(&alarms[0], 0);
	set_alarm(&alarms[3], 0);
	ASSERT_EQ(twheel_loop_run(loop, TWHEEL_NEVER), -ENOSPC);
	ASSERT_EQ(alarms[0].called, 1);
	ASSERT_EQ(alarms[3].called, 0);
	set_alarm(&alarms[3], 0);
	run_until(&alarms[3], 1);

	/* That there was a signal too does not hide it. */
	set_alarm(&alarms[0], FAR_NS);
	set_alarm(&alarms[2], FAR_NS);
	interrupt_next(1);
	ASSERT_EQ(twheel_loop_run(loop, TWHEEL_NEVER), -ENOSPC);
	end_loop(loop, wheel);
}

static void start_both_others(struct alarm *alarm)
{
	set_alarm(alarm->other, FAR_NS);
	set_alarm(alarm->other->other, FAR_NS);
}

TEST(timeout_of_a_callback_that_the_kernel_refuses_is_told_of)
{
	struct twheel *wheel = open_limited(2);
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm first, second, third;
	int ret;

	make_alarm(&first, loop, start_both_others, &second);
	make_alarm(&second, loop, NULL, &third);
	make_alarm(&third, loop, NULL, NULL);
	set_alarm(&first, 0);
	ASSERT_EQ(twheel_add(wheel, FAR_NS, 0, 0, NULL), 0);
	do {
		ret = twheel_loop_run(loop, TWHEEL_NEVER);
	} while (!first.called);
	ASSERT_EQ(ret, -ENOSPC);
	ASSERT(twheel_timeout_pending(&second.timeout));
	ASSERT(!twheel_timeout_pending(&third.timeout));
	twheel_loop_destroy(loop);
	ASSERT_EQ(counters_of(wheel).armed, 1);
	twheel_close(wheel);
}

static void run_in_callback(struct alarm *alarm)
{
	ASSERT_EQ(twheel_loop_run(alarm->loop, 0), -EBUSY);
}

TEST(loop_does_not_run_in_a_callback)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;

	make_alarm(&alarm, loop, run_in_callback, NULL);
	set_alarm(&alarm, 0);
	run_until(&alarm, 1);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	end_loop(loop, wheel);
}

TEST(loop_that_ends_stops_its_timeouts)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm armed, waiting, ready;

	make_alarm(&armed, loop, NULL, NULL);
	make_alarm(&waiting, loop, NULL, NULL);
	make_alarm(&ready, loop, NULL, NULL);
	make_both_ready(wheel, &armed, &ready);
	set_alarm(&armed, FAR_NS);
	set_alarm(&waiting, FAR_NS);
	twheel_loop_destroy(loop);
	ASSERT(!twheel_timeout_pending(&armed.timeout));
	ASSERT(!twheel_timeout_pending(&waiting.timeout));
	ASSERT(!twheel_timeout_pending(&ready.timeout));
	check_nothing_ready(twheel_fd(wheel));
	loop = make_loop(wheel);
	end_loop(loop, wheel);
	twheel_loop_destroy(NULL);
}

/* One timeout is armed, and the other's start waits in the batch when the process forks. */
static pid_t fork_with_both(struct alarm *armed, struct alarm *waiting,
			    struct twheel_loop *loop)
{
	make_alarm(armed, loop, NULL, NULL);
	make_alarm(waiting, loop, NULL, NULL);
	set_alarm(armed, FAR_NS);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	set_alarm(waiting, FAR_NS);
	return start_child();
}

static void check_both(struct alarm *armed, struct alarm *waiting, struct twheel *wheel)
{
	ASSERT_EQ(counters_of(wheel).added, 1);
	ASSERT_EQ(counters_of(wheel).armed, 1);
	ASSERT_EQ(twheel_loop_run(armed->loop, 0), 0);
	ASSERT_EQ(counters_of(wheel).added, 2);
	set_alarm(waiting, 0);
	run_until(waiting, 1);
	set_alarm(armed, 0);
	run_until(armed, 1);
}

TEST(loop_that_a_child_ends_goes_on_in_its_parent)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm armed, waiting;
	pid_t pid = fork_with_both(&armed, &waiting, loop);

	if (!pid) {
		twheel_loop_destroy(loop);
		ASSERT(!twheel_timeout_pending(&armed.timeout));
		twheel_close(wheel);
		_exit(0);
	}
	wait_child(pid);
	check_both(&armed, &waiting, wheel);
	end_loop(loop, wheel);
}

TEST(loop_of_a_parent_refuses_a_child)
{
	struct twheel *wheel = open_words(1);
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm armed, waiting;
	pid_t pid = fork_with_both(&armed, &waiting, loop);

	if (!pid) {
		ASSERT_EQ(twheel_loop_run(loop, 0), -ECHILD);
		ASSERT_EQ(twheel_timeout_start(loop, &armed.timeout, 0, 0, 0, 0), -ECHILD);
		ASSERT_EQ(twheel_timeout_start_deadline(loop, &armed.timeout, 0, 0), -ECHILD);
		twheel_timeout_stop(&armed.timeout);
		ASSERT(!twheel_timeout_pending(&armed.timeout));
		ASSERT_EQ(twheel_loop_run(loop, 0), -ECHILD);
		/* A loop of its own works. */
		twheel_close(wheel);
		wheel = open_wheel();
		loop = make_loop(wheel);
		make_alarm(&armed, loop, NULL, NULL);
		set_alarm(&armed, 0);
		run_until(&armed, 1);
		_exit(0);
	}
	wait_child(pid);
	check_both(&armed, &waiting, wheel);
	end_loop(loop, wheel);
}

TEST(record_that_nobody_started_calls_nobody)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;
	__u64 data;

	for (data = 0; data < 100; data++)
		ASSERT_EQ(twheel_add(wheel, 0, data, 0, NULL), 0);
	ASSERT_EQ(twheel_add(wheel, 0, ~0ULL, 0, NULL), 0);
	make_alarm(&alarm, loop, NULL, NULL);
	set_alarm(&alarm, FAR_NS);
	while (counters_of(wheel).ready || counters_of(wheel).armed < 1)
		ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT_EQ(alarm.called, 0);
	end_loop(loop, wheel);
}

/* A signal keeps its MODIFY from being run, and the record of its old time is read. */
TEST(timeout_whose_restart_a_signal_holds_up_is_not_called_for_the_old_time)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm, first;
	__u64 due_ns;

	make_alarm(&alarm, loop, NULL, NULL);
	make_alarm(&first, loop, NULL, NULL);
	set_alarm(&alarm, FAR_NS);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	make_ready(wheel);
	due_ns = twheel_now_ns(wheel) + SOON_NS;
	set_alarm(&first, FAR_NS);
	ASSERT_EQ(twheel_timeout_start(loop, &alarm.timeout, due_ns, 0, 0, TWHEEL_ABS), 0);
	cut_next(1);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT_EQ(nr_interrupted(), 1);
	ASSERT(twheel_timeout_pending(&alarm.timeout));
	run_until(&alarm, 1);
	ASSERT_EQ(alarm.record.due_ns, due_ns);
	end_loop(loop, wheel);
}

TEST(timeout_whose_event_somebody_cancelled_is_started_anew)
{
	struct twheel *wheel = open_wheel();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;

	make_alarm(&alarm, loop, NULL, NULL);
	set_periodic(&alarm, 0, SOON_NS);
	run_until(&alarm, 1);
	ASSERT_EQ(twheel_cancel(wheel, alarm.record.id), 0);
	set_alarm(&alarm, 0);
	run_until(&alarm, 2);
	end_loop(loop, wheel);
}

static struct twheel *open_realtime(void)
{
	struct twheel_config config;
	struct twheel *wheel;

	twheel_config_init(&config);
	config.clockid = CLOCK_REALTIME;
	ASSERT_EQ(twheel_open(&wheel, &config), 0);
	return wheel;
}

static void start_until_set(struct alarm *alarm)
{
	__u64 due_ns = clock_ns(CLOCK_REALTIME) + FAR_NS;

	ASSERT_EQ(twheel_timeout_start(alarm->loop, &alarm->timeout, due_ns, 0, 0,
				       TWHEEL_ABS | TWHEEL_CANCEL_ON_SET), 0);
	ASSERT_EQ(twheel_loop_run(alarm->loop, 0), 0);
	move_clock(NSEC_PER_SEC);
	wait_readable(twheel_loop_fd(alarm->loop));
}

TEST(timeout_is_told_that_the_clock_was_set)
{
	struct twheel *wheel = open_realtime();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;

	keep_clock();
	make_alarm(&alarm, loop, NULL, NULL);
	start_until_set(&alarm);
	ASSERT_EQ(twheel_loop_run(loop, 0), 1);
	ASSERT_EQ(alarm.record.reason, TWHEEL_CLOCK_SET);
	ASSERT(!twheel_timeout_pending(&alarm.timeout));
	end_loop(loop, wheel);
}

TEST(timeout_that_is_restarted_does_not_hear_that_the_clock_was_set)
{
	struct twheel *wheel = open_realtime();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm alarm;

	keep_clock();
	make_alarm(&alarm, loop, NULL, NULL);
	start_until_set(&alarm);
	set_alarm(&alarm, SOON_NS);
	run_until(&alarm, 1);
	ASSERT_EQ(alarm.record.reason, TWHEEL_EXPIRED);
	end_loop(loop, wheel);
}

static void set_clock_and_restart_other(struct alarm *alarm)
{
	move_clock(NSEC_PER_SEC);
	wait_ready(twheel_loop_fd(alarm->loop), 1);
	set_alarm(alarm->other, FAR_NS);
}

/* As above, but its record is there when it is started again, and read by the next turn. */
TEST(timeout_that_a_callback_restarts_does_not_hear_that_the_clock_was_set)
{
	struct twheel *wheel = open_realtime();
	struct twheel_loop *loop = make_loop(wheel);
	struct alarm first, second;

	keep_clock();
	make_alarm(&first, loop, set_clock_and_restart_other, &second);
	make_alarm(&second, loop, NULL, NULL);
	ASSERT_EQ(twheel_timeout_start(loop, &second.timeout, clock_ns(CLOCK_REALTIME) + FAR_NS,
				       0, 0, TWHEEL_ABS | TWHEEL_CANCEL_ON_SET), 0);
	set_alarm(&first, 0);
	run_until(&first, 1);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT_EQ(second.called, 0);
	ASSERT_EQ(counters_of(wheel).armed, 1);
	end_loop(loop, wheel);
}

TEST(timeout_goes_by_a_word)
{
	struct twheel *wheel = open_words(2);
	struct twheel_loop *loop = make_loop(wheel);
	__u64 *words = twheel_deadlines(wheel);
	__u64 now_ns, delay_ns = SOON_NS;
	struct alarm alarm;

	/* On a machine that is slow it may have been called before it is moved. */
	do {
		make_alarm(&alarm, loop, NULL, NULL);
		now_ns = twheel_now_ns(wheel);
		twheel_deadline_set(words, 1, now_ns + delay_ns);
		ASSERT_EQ(twheel_timeout_start_deadline(loop, &alarm.timeout, 1, 0), 0);
		ASSERT_GE(twheel_loop_run(loop, 0), 0);
		twheel_deadline_set(words, 1, now_ns + 4 * delay_ns);
		delay_ns *= 2;
	} while (alarm.called);
	run_until(&alarm, 1);
	ASSERT_EQ(alarm.record.due_ns, twheel_deadline_ns(words, 1));
	ASSERT(!twheel_timeout_pending(&alarm.timeout));

	/* An earlier time, of one that is started. */
	twheel_deadline_set(words, 1, TWHEEL_NEVER);
	ASSERT_EQ(twheel_timeout_start_deadline(loop, &alarm.timeout, 1, 0), 0);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	twheel_deadline_set(words, 1, now_ns);
	ASSERT_EQ(twheel_timeout_start_deadline(loop, &alarm.timeout, 1, 0), 0);
	run_until(&alarm, 2);
	ASSERT_EQ(alarm.record.due_ns, now_ns);

	/* It becomes an ordinary one, though the word says never. */
	twheel_deadline_set(words, 1, TWHEEL_NEVER);
	ASSERT_EQ(twheel_timeout_start_deadline(loop, &alarm.timeout, 1, 0), 0);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	set_alarm(&alarm, 0);
	run_until(&alarm, 3);
	end_loop(loop, wheel);
}

TEST(timeout_whose_word_is_moved_as_it_expires_is_not_called)
{
	struct twheel *wheel = open_words(1);
	struct twheel_loop *loop = make_loop(wheel);
	__u64 *words = twheel_deadlines(wheel);
	struct alarm alarm;
	__u64 due_ns;

	make_alarm(&alarm, loop, NULL, NULL);
	twheel_deadline_set(words, 0, TWHEEL_NEVER);
	ASSERT_EQ(twheel_timeout_start_deadline(loop, &alarm.timeout, 0, 0), 0);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	twheel_deadline_set(words, 0, 0);
	make_ready(wheel);
	due_ns = twheel_now_ns(wheel) + SOON_NS;
	twheel_deadline_set(words, 0, due_ns);
	ASSERT_EQ(twheel_loop_run(loop, 0), 0);
	ASSERT(twheel_timeout_pending(&alarm.timeout));
	run_until(&alarm, 1);
	ASSERT_EQ(alarm.record.due_ns, due_ns);
	end_loop(loop, wheel);
}
