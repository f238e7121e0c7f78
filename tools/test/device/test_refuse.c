// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments that an operation does not use are refused: every flag, every field, every
 * bit of it, in a command that is otherwise valid.  A table says what there is of
 * each operation; a new flag or field is a word or a line more in it.
 */
#include <errno.h>
#include <string.h>

#include "device.h"
#include "util.h"

/**
 * struct command - what an operation takes
 * @op: which one.
 * @known_flags: its flags, whether or not they go together.
 * @unused: the fields that it does not use.
 */
struct command {
	__u16 op;
	__u16 known_flags;
	struct field unused[8];
};

static const struct command add_command = {
	.op = TWHEEL_OP_ADD,
	.known_flags = TWHEEL_ABS | TWHEEL_CANCEL_ON_SET | TWHEEL_DEADLINE,
	.unused = {
		FIELD(twheel_cmd, key),		/* without TWHEEL_DEADLINE */
		FIELD(twheel_cmd, reserved),
	},
};

static const struct command modify_command = {
	.op = TWHEEL_OP_MODIFY,
	.known_flags = TWHEEL_ABS | TWHEEL_CANCEL_ON_SET | TWHEEL_SET_DATA |
		       TWHEEL_DEADLINE,
	.unused = {
		FIELD(twheel_cmd, data),	/* without TWHEEL_SET_DATA */
		FIELD(twheel_cmd, key),		/* without TWHEEL_DEADLINE */
		FIELD(twheel_cmd, quorum),
		FIELD(twheel_cmd, reserved),
	},
};

static const struct command cancel_command = {
	.op = TWHEEL_OP_CANCEL,
	.unused = {
		FIELD(twheel_cmd, data),
		FIELD(twheel_cmd, time_ns),
		FIELD(twheel_cmd, interval_ns),
		FIELD(twheel_cmd, slack_ns),
		FIELD(twheel_cmd, key),
		FIELD(twheel_cmd, quorum),
		FIELD(twheel_cmd, reserved),
	},
};

static const struct command query_command = {
	.op = TWHEEL_OP_QUERY,
	.unused = {
		FIELD(twheel_cmd, data),
		FIELD(twheel_cmd, key),
		FIELD(twheel_cmd, quorum),
		FIELD(twheel_cmd, reserved),
	},
};

static const struct command complete_command = {
	.op = TWHEEL_OP_COMPLETE,
	.unused = {
		FIELD(twheel_cmd, time_ns),
		FIELD(twheel_cmd, interval_ns),
		FIELD(twheel_cmd, slack_ns),
		FIELD(twheel_cmd, key),
		FIELD(twheel_cmd, quorum),
		FIELD(twheel_cmd, reserved),
	},
};

static const struct command watch_command = {
	.op = TWHEEL_OP_WATCH,
	.known_flags = TWHEEL_LEVEL,
	.unused = {
		FIELD(twheel_cmd, time_ns),
		FIELD(twheel_cmd, interval_ns),
		FIELD(twheel_cmd, slack_ns),
		FIELD(twheel_cmd, quorum),
		FIELD(twheel_cmd, reserved),
	},
};

static const struct command signal_command = {
	.op = TWHEEL_OP_SIGNAL,
	.known_flags = TWHEEL_QUIET,
	.unused = {
		FIELD(twheel_cmd, id),
		FIELD(twheel_cmd, time_ns),
		FIELD(twheel_cmd, interval_ns),
		FIELD(twheel_cmd, slack_ns),
		FIELD(twheel_cmd, quorum),
		FIELD(twheel_cmd, reserved),
	},
};

/* A context with one event, and the valid command of which one thing is wrong. */
struct subject {
	int fd;
	__u64 id;
	__u64 time_ns;
	struct twheel_cmd cmd;
};

static struct subject make_subject(__u16 op)
{
	struct subject subject = { .fd = device_open_nonblock() };
	__u64 id = add(subject.fd, 0, FAR_NS, 1);

	subject.id = id;
	subject.time_ns = query_time(subject.fd, id);
	switch (op) {
	case TWHEEL_OP_ADD:
		subject.cmd = make_add(0, FAR_NS, 2);
		break;
	case TWHEEL_OP_MODIFY:
		subject.cmd = make_modify(id, 0, 2 * FAR_NS);
		break;
	case TWHEEL_OP_SIGNAL:
		subject.cmd = make_cmd(op, 0);
		subject.cmd.key = 1;
		break;
	case TWHEEL_OP_WATCH:
		subject.cmd = make_cmd(op, id);
		subject.cmd.key = 1;
		subject.cmd.value = 1;
		break;
	default:
		subject.cmd = make_cmd(op, id);
		break;
	}
	return subject;
}

/* Check that the event was left alone, and that the command was valid. */
static void check_subject(struct subject *subject)
{
	ASSERT_EQ(query_time(subject->fd, subject->id), subject->time_ns);
	ASSERT_NE(run(subject->fd, &subject->cmd), -EINVAL);
}

static void refuses_flags_of_others(const struct command *command)
{
	struct subject subject = make_subject(command->op);
	unsigned int bit;

	for (bit = 0; bit < 16; bit++) {
		struct twheel_cmd cmd = subject.cmd;

		test_about("op %u, flags, bit %u", command->op, bit);
		cmd.flags = 1U << bit;
		if (!(cmd.flags & command->known_flags))
			check_refused(subject.fd, &cmd, EINVAL);
	}
	check_subject(&subject);
}

static void refuses_fields_it_does_not_use(const struct command *command)
{
	struct subject subject = make_subject(command->op);
	const struct field *field;
	unsigned int bit;

	for (field = command->unused; field->name; field++) {
		for (bit = 0; bit < 8 * field->size; bit++) {
			struct twheel_cmd cmd = subject.cmd;

			test_about("op %u, %s, bit %u", command->op,
				   field->name, bit);
			set_field(&cmd, field, 1ULL << bit);
			check_refused(subject.fd, &cmd, EINVAL);
		}
	}
	check_subject(&subject);
}

#define TEST_ONE(op, rule)						\
	TEST(op##_##rule)						\
	{								\
		rule(&op##_command);					\
	}

#define TEST_ALL(rule)							\
	TEST_ONE(add, rule)						\
	TEST_ONE(modify, rule)						\
	TEST_ONE(cancel, rule)						\
	TEST_ONE(query, rule)						\
	TEST_ONE(complete, rule)					\
	TEST_ONE(watch, rule)						\
	TEST_ONE(signal, rule)

TEST_ALL(refuses_flags_of_others)
TEST_ALL(refuses_fields_it_does_not_use)

TEST(watch_refuses_a_need_of_zero)
{
	struct subject subject = make_subject(TWHEEL_OP_WATCH);
	struct twheel_cmd cmd = subject.cmd;

	cmd.value = 0;
	check_refused(subject.fd, &cmd, EINVAL);
	check_subject(&subject);
}

TEST(submit_refuses_unknown_operations)
{
	struct subject subject = make_subject(TWHEEL_OP_CANCEL);
	unsigned int op;

	for (op = 0; op <= 0xffff; op += op < 64 ? 1 : 251) {
		struct twheel_cmd cmd = subject.cmd;

		test_about("operation %u", op);
		cmd.op = op;
		if (op < TWHEEL_OP_ADD || op > TWHEEL_OP_QUERY)
			check_refused(subject.fd, &cmd, EINVAL);
	}
	check_subject(&subject);
}

TEST(add_refuses_a_quorum_above_64)
{
	static const __u32 quorums[] = { 65, 128, 1U << 31, ~0U };
	struct subject subject = make_subject(TWHEEL_OP_ADD);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(quorums); i++) {
		struct twheel_cmd cmd = subject.cmd;

		test_about("quorum %u", quorums[i]);
		cmd.quorum = quorums[i];
		check_refused(subject.fd, &cmd, EINVAL);
	}
	check_subject(&subject);
}

static void check_refuses_interval_below_tick(__u16 op)
{
	struct subject subject = make_subject(op);
	__u64 tick_ns = get_info(subject.fd).tick_ns;
	struct twheel_cmd cmd = subject.cmd;

	cmd.interval_ns = 1;
	check_refused(subject.fd, &cmd, EINVAL);
	cmd.interval_ns = tick_ns - 1;
	check_refused(subject.fd, &cmd, EINVAL);
	check_subject(&subject);
}

TEST(add_refuses_an_interval_below_a_tick)
{
	check_refuses_interval_below_tick(TWHEEL_OP_ADD);
}

TEST(modify_refuses_an_interval_below_a_tick)
{
	check_refuses_interval_below_tick(TWHEEL_OP_MODIFY);
}

static void check_refuses_cancel_on_set(__u16 op, __u16 flags)
{
	struct subject subject = make_subject(op);
	struct twheel_cmd cmd = subject.cmd;

	cmd.flags = TWHEEL_CANCEL_ON_SET | flags;
	check_refused(subject.fd, &cmd, EINVAL);
	check_subject(&subject);
}

TEST(add_refuses_cancel_on_set_of_a_relative_time)
{
	check_refuses_cancel_on_set(TWHEEL_OP_ADD, 0);
}

TEST(modify_refuses_cancel_on_set_of_a_relative_time)
{
	check_refuses_cancel_on_set(TWHEEL_OP_MODIFY, 0);
}

TEST(add_refuses_cancel_on_set_on_the_monotonic_clock)
{
	check_refuses_cancel_on_set(TWHEEL_OP_ADD, TWHEEL_ABS);
}

TEST(modify_refuses_cancel_on_set_on_the_monotonic_clock)
{
	check_refuses_cancel_on_set(TWHEEL_OP_MODIFY, TWHEEL_ABS);
}
