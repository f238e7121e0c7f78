// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Commands: what the functions fill in, and one at a time.
 */
#include "wheel.h"

/* Check a command that was filled over old bytes, and make it old bytes again. */
static void check_cmd(struct twheel_cmd *cmd, const struct twheel_cmd *expected)
{
	ASSERT(!memcmp(cmd, expected, sizeof(*cmd)));
	memset(cmd, FILL, sizeof(*cmd));
}

#define CHECK_CMD(cmd, ...) check_cmd(cmd, &(struct twheel_cmd){ __VA_ARGS__ })

TEST(prep_fills_the_whole_command)
{
	struct twheel_cmd cmd;

	memset(&cmd, FILL, sizeof(cmd));
	twheel_prep(&cmd, 1, 2, 3);
	CHECK_CMD(&cmd, .op = 1, .flags = 2, .id = 3);
	twheel_prep_add(&cmd, 4, 5, TWHEEL_ABS);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_ADD, .flags = TWHEEL_ABS, .time_ns = 4, .data = 5);
	twheel_prep_add_deadline(&cmd, 6, 7);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_ADD, .flags = TWHEEL_DEADLINE, .key = 6, .data = 7);
	twheel_prep_modify(&cmd, 8, 9, TWHEEL_ABS);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_MODIFY, .flags = TWHEEL_ABS, .id = 8, .time_ns = 9);
	twheel_prep_modify_deadline(&cmd, 10, 11);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_MODIFY, .flags = TWHEEL_DEADLINE, .id = 10, .key = 11);
	twheel_prep_cancel(&cmd, 12);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_CANCEL, .id = 12);
	twheel_prep_complete(&cmd, 13, 14);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_COMPLETE, .id = 13, .value = 14);
	twheel_prep_watch(&cmd, 15, 16, 17, TWHEEL_LEVEL);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_WATCH, .flags = TWHEEL_LEVEL, .id = 15, .key = 16,
		  .value = 17);
	twheel_prep_signal(&cmd, 18, 19, TWHEEL_QUIET);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_SIGNAL, .flags = TWHEEL_QUIET, .key = 18, .value = 19);
	twheel_prep_query(&cmd, 20);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_QUERY, .id = 20);
}

TEST(cmd_set_adds_to_a_command)
{
	struct twheel_cmd cmd;

	twheel_prep_add(&cmd, 1, 2, 0);
	twheel_cmd_set_interval(&cmd, 3);
	twheel_cmd_set_slack(&cmd, 4);
	twheel_cmd_set_quorum(&cmd, 5);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_ADD, .time_ns = 1, .data = 2, .interval_ns = 3,
		  .slack_ns = 4, .quorum = 5);
	twheel_prep_modify(&cmd, 6, 7, TWHEEL_ABS);
	twheel_cmd_set_data(&cmd, 8);
	CHECK_CMD(&cmd, .op = TWHEEL_OP_MODIFY, .flags = TWHEEL_ABS | TWHEEL_SET_DATA, .id = 6,
		  .time_ns = 7, .data = 8);
}

TEST(add_arms_an_event_and_tells_its_id)
{
	struct twheel *wheel = open_wheel();
	struct twheel_record record;
	__u64 id = 0;

	ASSERT_EQ(twheel_add(wheel, SOON_NS, 42, 0, &id), 0);
	record = wait_one(wheel);
	ASSERT_EQ(record.data, 42);
	ASSERT_EQ(record.id, id);
	ASSERT_EQ(twheel_add(wheel, record.due_ns, 43, TWHEEL_ABS, NULL), 0);
	ASSERT_EQ(wait_one(wheel).due_ns, record.due_ns);
	twheel_close(wheel);
}

TEST(add_that_fails_leaves_the_id)
{
	struct twheel *wheel = open_wheel();
	__u64 id = 5;

	ASSERT_EQ(twheel_add(wheel, SOON_NS, 42, TWHEEL_LEVEL, &id), -EINVAL);
	ASSERT_EQ(id, 5);
	twheel_close(wheel);
}

TEST(modify_gives_an_event_another_time)
{
	struct twheel *wheel = open_wheel();
	__u64 id, due_ns;

	ASSERT_EQ(twheel_add(wheel, FAR_NS, 42, 0, &id), 0);
	ASSERT_EQ(twheel_modify(wheel, id, 2 * FAR_NS, TWHEEL_ABS), 0);
	ASSERT_EQ(twheel_query(wheel, id, &due_ns), TWHEEL_ARMED);
	ASSERT_EQ(due_ns, 2 * FAR_NS);
	ASSERT_EQ(twheel_modify(wheel, id, 0, 0), 0);
	ASSERT_EQ(wait_one(wheel).data, 42);
	ASSERT_EQ(twheel_modify(wheel, id, 0, 0), -ENOENT);
	twheel_close(wheel);
}

TEST(cancel_ends_an_event)
{
	struct twheel *wheel = open_wheel();
	__u64 id;

	ASSERT_EQ(twheel_add(wheel, 0, 42, 0, &id), 0);
	ASSERT_EQ(twheel_cancel(wheel, id), 0);
	ASSERT_EQ(twheel_cancel(wheel, id), -ENOENT);
	ASSERT_EQ(counters_of(wheel).cancelled, 1);
	check_nothing_ready(twheel_fd(wheel));
	twheel_close(wheel);
}

TEST(query_tells_the_state_and_the_time)
{
	struct twheel *wheel = open_wheel();
	__u64 id, due_ns = 1;

	ASSERT_EQ(twheel_query(wheel, 1, &due_ns), -ENOENT);
	ASSERT_EQ(due_ns, 1);
	ASSERT_EQ(twheel_add(wheel, FAR_NS, 1, TWHEEL_ABS, &id), 0);
	ASSERT_EQ(twheel_query(wheel, id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(twheel_query(wheel, id, &due_ns), TWHEEL_ARMED);
	ASSERT_EQ(due_ns, FAR_NS);
	ASSERT_EQ(twheel_modify(wheel, id, 2, TWHEEL_ABS), 0);
	ASSERT_EQ(twheel_query(wheel, id, &due_ns), TWHEEL_READY);
	ASSERT_EQ(due_ns, 2);
	twheel_close(wheel);
}

static void check_completed_with(struct twheel *wheel, __u64 value, __u64 key)
{
	struct twheel_records records = make_records(2);

	ASSERT_EQ(twheel_read(wheel, &records), 1);
	check_completed(&records.records[0], value, key);
	twheel_records_destroy(&records);
}

TEST(complete_ends_an_event_with_a_value)
{
	struct twheel *wheel = open_wheel();
	__u64 id;

	ASSERT_EQ(twheel_add(wheel, FAR_NS, 1, 0, &id), 0);
	ASSERT_EQ(twheel_complete(wheel, id, 7), 0);
	ASSERT_EQ(twheel_complete(wheel, id, 7), -EALREADY);
	check_completed_with(wheel, 7, 0);
	twheel_close(wheel);
}

TEST(watch_and_signal_complete_an_event)
{
	struct twheel *wheel = open_wheel();
	__u64 id;

	ASSERT_EQ(twheel_add(wheel, FAR_NS, 1, 0, &id), 0);
	ASSERT_EQ(twheel_watch(wheel, id, 9, 3, 0), 0);
	ASSERT_EQ(twheel_watch(wheel, id, 8, 10, TWHEEL_LEVEL), 0);
	ASSERT_EQ(twheel_signal(wheel, 8, 9, 0), 0);
	ASSERT_EQ(twheel_signal(wheel, 9, 2, 0), 0);
	ASSERT_EQ(twheel_signal(wheel, 9, 1, 0), 1);
	check_completed_with(wheel, 1, 9);

	ASSERT_EQ(twheel_add(wheel, FAR_NS, 1, 0, &id), 0);
	ASSERT_EQ(twheel_watch(wheel, id, 9, 3, 0), 0);
	ASSERT_EQ(twheel_signal(wheel, 9, 0, TWHEEL_QUIET), 1);
	check_nothing_ready(twheel_fd(wheel));
	twheel_close(wheel);
}

TEST(run_has_the_result_in_the_command_too)
{
	struct twheel *wheel = open_wheel();
	struct twheel_cmd cmd;

	twheel_prep_add(&cmd, FAR_NS, 1, TWHEEL_ABS);
	twheel_cmd_set_slack(&cmd, 5);
	ASSERT_EQ(twheel_run(wheel, &cmd), 0);
	twheel_prep_query(&cmd, cmd.id);
	ASSERT_EQ(twheel_run(wheel, &cmd), TWHEEL_ARMED);
	ASSERT_EQ(cmd.slack_ns, 5);
	twheel_prep_cancel(&cmd, 1);
	ASSERT_EQ(twheel_run(wheel, &cmd), -ENOENT);
	ASSERT_EQ(cmd.result, -ENOENT);
	ASSERT_EQ(twheel_run(wheel, NULL), -EFAULT);
	twheel_close(wheel);
}

TEST(run_goes_on_after_signals)
{
	struct twheel *wheel = open_wheel();
	__u64 id;

	interrupt_next(3);
	ASSERT_EQ(twheel_add(wheel, FAR_NS, 1, 0, &id), 0);
	ASSERT_EQ(nr_interrupted(), 3);
	ASSERT_EQ(counters_of(wheel).added, 1);
	twheel_close(wheel);
}
