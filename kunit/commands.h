/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the suites of contexts: single commands, reading and listing.
 *
 * The context of a test is test->priv.
 */
#ifndef TWHEEL_COMMANDS_H
#define TWHEEL_COMMANDS_H

#include <kunit/test.h>
#include <linux/uio.h>

#include "../kmod/command.h"
#include "../kmod/compat.h"
#include "../kmod/context.h"
#include "../kmod/deadlines.h"
#include "../kmod/ready.h"
#include "../kmod/record.h"

#define HOUR_NS		(3600ULL * NSEC_PER_SEC)
#define DAY_NS		(24 * HOUR_NS)

/* Run one command; return its result. */
static inline int run(struct kunit *test, struct twheel_cmd *cmd)
{
	struct context *context = test->priv;
	int ret = twheel_context_begin(context, CONTEXT_BLOCK);

	if (ret)
		return ret;
	ret = twheel_command_run(&context->batch, cmd);
	twheel_context_end(&context->batch);
	return ret;
}

static inline int add(struct kunit *test, u64 delay_ns, u64 *id)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_ADD, .time_ns = delay_ns };
	int ret = run(test, &cmd);

	*id = cmd.id;
	return ret;
}

static inline int modify(struct kunit *test, u64 id, u64 delay_ns)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_MODIFY,
		.id = id,
		.time_ns = delay_ns,
	};

	return run(test, &cmd);
}

static inline int cancel(struct kunit *test, u64 id)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_CANCEL, .id = id };

	return run(test, &cmd);
}

static inline int query(struct kunit *test, u64 id)
{
	struct twheel_cmd cmd = { .op = TWHEEL_OP_QUERY, .id = id };

	return run(test, &cmd);
}

/* --- words ------------------------------------------------------------------ */

static inline int configure_deadlines(struct kunit *test, u32 nr)
{
	struct twheel_config config = {
		.clockid = CLOCK_MONOTONIC,
		.nr_deadlines = nr,
	};

	return twheel_context_configure(test->priv, &config);
}

/* The word itself, which a process would have mapped. */
static inline u64 *word_of(struct kunit *test, u32 index)
{
	const struct context *context = test->priv;

	return &context->deadlines->pages[index / DEADLINES_PAGE][index % DEADLINES_PAGE];
}

static inline void store(struct kunit *test, u32 index, u64 time_ns)
{
	WRITE_ONCE(*word_of(test, index), time_ns);
}

static inline int add_deadline(struct kunit *test, u32 index, u64 slack_ns, u64 *id)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_DEADLINE,
		.slack_ns = slack_ns,
		.key = index,
	};
	int ret = run(test, &cmd);

	*id = cmd.id;
	return ret;
}

static inline int modify_deadline(struct kunit *test, u64 id, u32 index)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_MODIFY,
		.flags = TWHEEL_DEADLINE,
		.id = id,
		.key = index,
	};

	return run(test, &cmd);
}

static inline int complete_event(struct kunit *test, u64 id, u64 value)
{
	struct twheel_cmd cmd = {
		.op = TWHEEL_OP_COMPLETE,
		.id = id,
		.value = value,
	};

	return run(test, &cmd);
}

/* --- records and lists ------------------------------------------------------ */

/* Read up to @nr records; return the number of bytes, or a negative errno. */
static inline ssize_t read_records(struct kunit *test,
				   struct twheel_record *records, size_t nr,
				   unsigned int how)
{
	struct kvec vec = {
		.iov_base = records,
		.iov_len = nr * sizeof(*records),
	};
	struct iov_iter to;

	iov_iter_kvec(&to, ITER_DEST, &vec, 1, vec.iov_len);
	return twheel_context_read(test->priv, &to, how);
}

/* Read one record. It must be there already, or come if @how lets the read wait. */
static inline void read_record(struct kunit *test, struct twheel_record *record,
			       unsigned int how)
{
	KUNIT_ASSERT_EQ(test, read_records(test, record, 1, how),
			(ssize_t)sizeof(*record));
}

static inline void expect_nothing_to_read(struct kunit *test)
{
	struct twheel_record record;

	KUNIT_EXPECT_EQ(test, read_records(test, &record, 1, CONTEXT_NONBLOCK),
			(ssize_t)-EAGAIN);
}

/* List from the cursor on; return the number of entries, or a negative errno. */
static inline ssize_t list_entries(struct kunit *test, u64 *cursor,
				   struct twheel_entry *entries, size_t nr)
{
	struct kvec vec = {
		.iov_base = entries,
		.iov_len = nr * sizeof(*entries),
	};
	struct iov_iter to;

	iov_iter_kvec(&to, ITER_DEST, &vec, 1, vec.iov_len);
	return twheel_context_list(test->priv, cursor, &to, sizeof(*entries));
}

#endif /* TWHEEL_COMMANDS_H */
