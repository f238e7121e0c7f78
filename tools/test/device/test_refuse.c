// SPDX-License-Identifier: GPL-2.0
/*
 * What an operation does not use is refused: every flag, every field, every
 * bit of it, in a command that is otherwise valid.
 */
#include <errno.h>
#include <string.h>

#include "device.h"
#include "util.h"

struct field {
	const char *name;
	size_t offset;
	size_t size;
};

#define FIELD(member) {							\
	.name = #member,						\
	.offset = offsetof(struct twheel_cmd, member),			\
	.size = sizeof(((struct twheel_cmd *)NULL)->member),		\
}

static const struct field id_field = FIELD(id);
static const struct field data_field = FIELD(data);
static const struct field time_field = FIELD(time_ns);
static const struct field interval_field = FIELD(interval_ns);
static const struct field slack_field = FIELD(slack_ns);
static const struct field key_field = FIELD(key);
static const struct field quorum_field = FIELD(quorum);
static const struct field reserved_field = FIELD(reserved);

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

static void check_refuses_flags_but(__u16 op, __u16 known)
{
	struct subject subject = make_subject(op);
	unsigned int bit;

	for (bit = 0; bit < 16; bit++) {
		struct twheel_cmd cmd = subject.cmd;

		test_about("bit %u", bit);
		cmd.flags |= 1U << bit;
		if (!(known & (1U << bit)))
			check_refused(subject.fd, &cmd, EINVAL);
	}
	check_subject(&subject);
}

static void check_refuses_fields(__u16 op, const struct field *fields,
				 size_t nr)
{
	struct subject subject = make_subject(op);
	size_t i, bit;

	for (i = 0; i < nr; i++) {
		for (bit = 0; bit < fields[i].size * 8; bit++) {
			struct twheel_cmd cmd = subject.cmd;
			unsigned char *bytes = (unsigned char *)&cmd;

			test_about("%s, bit %zu", fields[i].name, bit);
			bytes[fields[i].offset + bit / 8] = 1U << bit % 8;
			check_refused(subject.fd, &cmd, EINVAL);
		}
	}
	check_subject(&subject);
}

TEST(add_refuses_flags_of_others)
{
	check_refuses_flags_but(TWHEEL_OP_ADD,
				TWHEEL_ABS | TWHEEL_CANCEL_ON_SET);
}

TEST(add_refuses_fields_it_does_not_use)
{
	const struct field fields[] = { key_field, reserved_field };

	check_refuses_fields(TWHEEL_OP_ADD, fields, ARRAY_SIZE(fields));
}

TEST(modify_refuses_flags_of_others)
{
	check_refuses_flags_but(TWHEEL_OP_MODIFY,
				TWHEEL_ABS | TWHEEL_CANCEL_ON_SET |
				TWHEEL_SET_DATA);
}

TEST(modify_refuses_fields_it_does_not_use)
{
	const struct field fields[] = {
		data_field, key_field, quorum_field, reserved_field,
	};

	check_refuses_fields(TWHEEL_OP_MODIFY, fields, ARRAY_SIZE(fields));
}

TEST(cancel_refuses_flags)
{
	check_refuses_flags_but(TWHEEL_OP_CANCEL, 0);
}

TEST(cancel_refuses_fields_it_does_not_use)
{
	const struct field fields[] = {
		data_field, time_field, interval_field, slack_field, key_field,
		quorum_field, reserved_field,
	};

	check_refuses_fields(TWHEEL_OP_CANCEL, fields, ARRAY_SIZE(fields));
}

TEST(query_refuses_flags)
{
	check_refuses_flags_but(TWHEEL_OP_QUERY, 0);
}

TEST(query_refuses_fields_it_does_not_use)
{
	const struct field fields[] = {
		data_field, key_field, quorum_field, reserved_field,
	};

	check_refuses_fields(TWHEEL_OP_QUERY, fields, ARRAY_SIZE(fields));
}

TEST(complete_refuses_flags)
{
	check_refuses_flags_but(TWHEEL_OP_COMPLETE, 0);
}

TEST(complete_refuses_fields_it_does_not_use)
{
	const struct field fields[] = {
		time_field, interval_field, slack_field, key_field,
		quorum_field, reserved_field,
	};

	check_refuses_fields(TWHEEL_OP_COMPLETE, fields, ARRAY_SIZE(fields));
}

TEST(watch_refuses_flags_of_others)
{
	check_refuses_flags_but(TWHEEL_OP_WATCH, TWHEEL_LEVEL);
}

TEST(watch_refuses_fields_it_does_not_use)
{
	const struct field fields[] = {
		time_field, interval_field, slack_field, quorum_field,
		reserved_field,
	};

	check_refuses_fields(TWHEEL_OP_WATCH, fields, ARRAY_SIZE(fields));
}

TEST(watch_refuses_a_need_of_zero)
{
	struct subject subject = make_subject(TWHEEL_OP_WATCH);
	struct twheel_cmd cmd = subject.cmd;

	cmd.value = 0;
	check_refused(subject.fd, &cmd, EINVAL);
	check_subject(&subject);
}

TEST(signal_refuses_flags_of_others)
{
	check_refuses_flags_but(TWHEEL_OP_SIGNAL, TWHEEL_QUIET);
}

TEST(signal_refuses_fields_it_does_not_use)
{
	const struct field fields[] = {
		id_field, time_field, interval_field, slack_field,
		quorum_field, reserved_field,
	};

	check_refuses_fields(TWHEEL_OP_SIGNAL, fields, ARRAY_SIZE(fields));
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
