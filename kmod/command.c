// SPDX-License-Identifier: GPL-2.0
/*
 * Commands: which are well-formed, what each one does, and how a series of them is run.
 *
 * The commands of a call are run in chunks.  A chunk is copied in, its commands are run
 * one after the other, and their results are written.  A command whose result cannot be
 * written must not be run, because the caller would not know of it.  So before a chunk is
 * run, the result fields are written back as they were read, and the chunk ends at the
 * first command where that fails.  If the memory is unmapped between the two writes even
 * so, an ADD is undone, because its id could not be written.
 *
 * Many programs have one command a call, which costs less than the call.  For them
 * command_submit_one() does the same, with the same functions, and without chunks.
 */
#include <linux/compat.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "command.h"
#include "compat.h"
#include "context.h"
#include "event_operation.h"
#include "event_time.h"
#include "ready.h"
#include "record.h"
#include "user_words.h"

/* Fields that a command uses, as input or as output; others must be 0. */
enum field {
	FIELD_ID	= BIT(0),
	FIELD_DATA	= BIT(1),
	FIELD_TIME	= BIT(2),
	FIELD_INTERVAL	= BIT(3),
	FIELD_SLACK	= BIT(4),
	FIELD_KEY	= BIT(5),
	FIELD_QUORUM	= BIT(6),
};

#define FIELDS_TIMING	(FIELD_TIME | FIELD_INTERVAL | FIELD_SLACK)

/* With TWHEEL_DEADLINE: fields that the word replaces, and flags that are not allowed. */
#define FIELDS_TOLD	(FIELD_TIME | FIELD_INTERVAL)
#define FLAGS_TOLD	(TWHEEL_ABS | TWHEEL_CANCEL_ON_SET)

/* Further checks of a command. */
enum check {
	CHECK_DATA	= BIT(0),	/* data is 0 without TWHEEL_SET_DATA */
	CHECK_INTERVAL	= BIT(1),	/* check_interval_and_quorum() */
	CHECK_VALUE	= BIT(2),	/* value is not 0 */
};

/**
 * struct command_rules - the rules of an op
 * @op: the op.
 * @flags: the flags that it accepts.
 * @fields: the fields that it uses.
 * @checks: the checks of their values.
 * @run: the function that runs it.
 */
struct command_rules {
	u16 op;
	u16 flags;
	u16 fields;
	u16 checks;
	int (*run)(struct context_batch *batch, struct twheel_cmd *cmd);
};

/* command_run() compares in this order, so the most frequent ones come first. */
static const struct command_rules rules_of[] = {
	{
		.op = TWHEEL_OP_ADD,
		.flags = TWHEEL_ABS | TWHEEL_CANCEL_ON_SET | TWHEEL_DEADLINE,
		.fields = FIELD_ID | FIELD_DATA | FIELDS_TIMING | FIELD_QUORUM,
		.checks = CHECK_INTERVAL,
		.run = context_add,
	}, {
		.op = TWHEEL_OP_CANCEL,
		.fields = FIELD_ID,
		.run = context_cancel,
	}, {
		.op = TWHEEL_OP_MODIFY,
		.flags = TWHEEL_ABS | TWHEEL_CANCEL_ON_SET | TWHEEL_SET_DATA |
			 TWHEEL_DEADLINE,
		.fields = FIELD_ID | FIELD_DATA | FIELDS_TIMING,
		.checks = CHECK_DATA | CHECK_INTERVAL,
		.run = context_modify,
	}, {
		.op = TWHEEL_OP_SIGNAL,
		.flags = TWHEEL_QUIET,
		.fields = FIELD_DATA | FIELD_KEY,
		.run = context_signal,
	}, {
		.op = TWHEEL_OP_WATCH,
		.flags = TWHEEL_LEVEL,
		.fields = FIELD_ID | FIELD_DATA | FIELD_KEY,
		.checks = CHECK_VALUE,
		.run = context_watch,
	}, {
		.op = TWHEEL_OP_QUERY,
		.fields = FIELD_ID | FIELDS_TIMING,
		.run = context_query,
	}, {
		.op = TWHEEL_OP_COMPLETE,
		.fields = FIELD_ID | FIELD_DATA,
		.run = context_complete,
	},
};

/*
 * Not 0 if a field that is not used has a value.
 *
 * Without the __always_inline here and below, an ADD takes 371 -> 384 instructions
 * (tools/bench/timers).
 */
static __always_inline u64 unused_fields(const struct twheel_cmd *cmd, u16 used)
{
	return (used & FIELD_ID ? 0 : cmd->id) |
	       (used & FIELD_DATA ? 0 : cmd->data) |
	       (used & FIELD_TIME ? 0 : cmd->time_ns) |
	       (used & FIELD_INTERVAL ? 0 : cmd->interval_ns) |
	       (used & FIELD_SLACK ? 0 : cmd->slack_ns) |
	       (used & FIELD_KEY ? 0 : cmd->key) |
	       (used & FIELD_QUORUM ? 0 : cmd->quorum) |
	       cmd->reserved;
}

static __always_inline int check_interval_and_quorum(const struct twheel_cmd *cmd)
{
	if (!cmd->interval_ns && !cmd->quorum)
		return 0;
	if (cmd->interval_ns && cmd->interval_ns < base_tick_ns(1))
		return -EINVAL;
	if (cmd->quorum > TWHEEL_MAX_WATCHES || (cmd->quorum && cmd->interval_ns))
		return -EINVAL;
	return 0;
}

static __always_inline int command_check(const struct twheel_cmd *cmd,
					 const struct command_rules *rules)
{
	if (cmd->flags & ~rules->flags)
		return -EINVAL;
	if (cmd->flags & TWHEEL_DEADLINE) {
		if (cmd->flags & FLAGS_TOLD ||
		    unused_fields(cmd, (rules->fields & ~FIELDS_TOLD) | FIELD_KEY))
			return -EINVAL;
	} else if (unused_fields(cmd, rules->fields)) {
		return -EINVAL;
	}
	if (rules->checks & CHECK_DATA && cmd->data && !(cmd->flags & TWHEEL_SET_DATA))
		return -EINVAL;
	if (rules->checks & CHECK_VALUE && !cmd->value)
		return -EINVAL;
	return rules->checks & CHECK_INTERVAL ? check_interval_and_quorum(cmd) : 0;
}

static __always_inline int check_and_run(struct context_batch *batch,
					 struct twheel_cmd *cmd,
					 const struct command_rules *rules)
{
	bool adds = rules->op == TWHEEL_OP_ADD;
	int ret;

	/* The id of an ADD that fails is 0. */
	if (adds)
		cmd->id = 0;
	ret = command_check(cmd, rules) ?: rules->run(batch, cmd);
	if (adds)
		batch->last_add = cmd->id;
	return ret;
}

/* Refuse a command whose struct is longer than ours, and not 0 behind the end of ours. */
static int refuse_newer(struct context_batch *batch, struct twheel_cmd *cmd)
{
	if (cmd->op == TWHEEL_OP_ADD) {
		cmd->id = 0;
		batch->last_add = 0;
	}
	return -E2BIG;
}

/*
 * The compiler unrolls the loop.  So it knows the rules of each turn, generates only the
 * checks that they ask for, and leaves the loop after the turn of the op.
 */
static __always_inline int command_run(struct context_batch *batch,
				       struct twheel_cmd *cmd)
{
	unsigned int op = cmd->op, i;
	int ret = -EINVAL;

#pragma GCC unroll 8
	for (i = 0; i < ARRAY_SIZE(rules_of); i++)
		if (op == rules_of[i].op)
			ret = check_and_run(batch, cmd, &rules_of[i]);
	return ret;
}

/**
 * twheel_command_run() - check and run one command
 * @batch: the batch that it is in.
 * @cmd: the command; its output fields are written, except the result.
 *
 * Return: the result.
 */
int twheel_command_run(struct context_batch *batch, struct twheel_cmd *cmd)
{
	return command_run(batch, cmd);
}
EXPORT_SYMBOL_FOR_KUNIT(twheel_command_run);

/*
 * The most commands that io_uring's first attempt runs, and the most watches that they
 * may unlink.
 */
#define COMMAND_INLINE	512

/**
 * struct chunk - a part of the commands of a call
 * @cmds: a copy of them.
 * @user: the caller's commands, to which the results are written.
 * @stride: the distance from one to the next there.
 * @nr: how many there are.
 * @newer: a bit for each command that is not 0 behind the end of our struct.
 */
struct chunk {
	struct twheel_cmd *cmds;
	char __user *user;
	size_t stride;
	unsigned int nr;
	u64 newer;
};

static __always_inline struct twheel_cmd __user *chunk_user(const struct chunk *chunk,
							    unsigned int i)
{
	return (struct twheel_cmd __user *)(chunk->user + i * chunk->stride);
}

/*
 * Write the output fields of a command, while user memory is accessible; false: they
 * cannot be written.
 */
static __always_inline bool put_result(const struct twheel_cmd *cmd,
				       struct twheel_cmd __user *user)
{
	unsafe_put_user(cmd->result, &user->result, fault);
	if (cmd->op == TWHEEL_OP_ADD)
		unsafe_put_user(cmd->id, &user->id, fault);
	if (cmd->op != TWHEEL_OP_QUERY)
		return true;
	unsafe_put_user(cmd->time_ns, &user->time_ns, fault);
	unsafe_put_user(cmd->interval_ns, &user->interval_ns, fault);
	unsafe_put_user(cmd->slack_ns, &user->slack_ns, fault);
	return true;
fault:
	return false;
}

/* Write the results; return how many could be written. */
static unsigned int write_results(const struct chunk *chunk)
{
	unsigned int i;

	might_fault();
	if (!user_write_access_begin(chunk->user, chunk->nr * chunk->stride))
		return 0;
	for (i = 0; i < chunk->nr; i++)
		if (!put_result(&chunk->cmds[i], chunk_user(chunk, i)))
			break;
	user_write_access_end();
	return i;
}

/* Copy commands that are longer than ours, until one cannot be read. */
static unsigned int copy_longer(struct chunk *chunk)
{
	size_t tail = chunk->stride - sizeof(struct twheel_cmd);
	unsigned int i;

	for (i = 0; i < chunk->nr; i++) {
		struct twheel_cmd __user *user = chunk_user(chunk, i);
		int zeros;

		if (copy_from_user(&chunk->cmds[i], user, sizeof(*user)))
			break;
		zeros = check_zeroed_user(user + 1, tail);
		if (zeros < 0)
			break;
		if (!zeros)
			chunk->newer |= BIT_ULL(i);
	}
	return i;
}

/*
 * Copy a command, while user memory is accessible, and write its result fields back as
 * they were read; false: it cannot be read, or they cannot be written.
 */
static __always_inline bool get_command(struct twheel_cmd *cmd,
					struct twheel_cmd __user *user)
{
	static_assert(sizeof(*cmd) == USER_WORDS_SIZE);
	return get_user_words(cmd, user) && put_result(cmd, user);
}

/* Copy commands, and write their result fields back as they were read. */
static unsigned int copy_in(struct chunk *chunk)
{
	struct twheel_cmd __user *user = (struct twheel_cmd __user *)chunk->user;
	struct twheel_cmd *cmds = chunk->cmds;
	unsigned int nr = chunk->nr, i;

	chunk->newer = 0;
	if (chunk->stride != sizeof(*user)) {
		chunk->nr = copy_longer(chunk);
		return write_results(chunk);
	}
	might_fault();
	if (!user_access_begin(user, nr * sizeof(*user)))
		return 0;
	for (i = 0; i < nr; i++)
		if (!get_command(&cmds[i], &user[i]))
			break;
	user_access_end();
	return i;
}

static void run_chunk(struct context_batch *batch, struct chunk *chunk)
{
	struct twheel_cmd *cmd = chunk->cmds, *end = cmd + chunk->nr;
	u64 newer = chunk->newer;

	for (; cmd < end; cmd++, newer >>= 1) {
		if (newer & 1)
			cmd->result = refuse_newer(batch, cmd);
		else
			cmd->result = command_run(batch, cmd);
	}
	batch_settle(batch);
}

/* The result of a command could not be written: undo it if it is an ADD. */
static void undo_command(struct context_batch *batch, const struct twheel_cmd *cmd)
{
	if (cmd->op == TWHEEL_OP_ADD && !cmd->result)
		context_undo_add(batch, cmd->id);
}

/* Run a chunk; return how many commands had their result written. */
static unsigned int submit_chunk(struct context_batch *batch, struct chunk *chunk)
{
	unsigned int i, done;

	chunk->nr = copy_in(chunk);
	run_chunk(batch, chunk);
	done = write_results(chunk);
	for (i = done; i < chunk->nr; i++)
		undo_command(batch, &chunk->cmds[i]);
	/* The caller may sleep now. */
	base_release(&batch->hold);
	return done;
}

/**
 * struct commands - the commands of a call
 * @user: address of the first one.
 * @stride: the distance from one to the next.
 * @nr: how many there are.
 * @done: how many had their result written.
 */
struct commands {
	u64 user;
	u32 stride;
	u32 nr;
	u32 done;
};

/* Is the caller's struct, of @stride bytes, long enough, and not absurdly long? */
static int check_stride(size_t stride, size_t size)
{
	if (stride < size)
		return -EINVAL;
	return stride > PAGE_SIZE ? -E2BIG : 0;
}

static void __user *command_user(const struct commands *commands, u32 i)
{
	return u64_to_user_ptr(commands->user + (u64)i * commands->stride);
}

/* Run up to @nr of the remaining commands, in one chunk; false: not all could be done. */
static bool run_next(struct context_batch *batch, struct commands *commands,
		     u32 nr)
{
	struct chunk chunk = {
		.cmds = batch->context->cmds,
		.user = command_user(commands, commands->done),
		.stride = commands->stride,
		.nr = min3(nr, commands->nr - commands->done, (u32)CONTEXT_CHUNK),
	};
	unsigned int asked = chunk.nr;
	unsigned int done = submit_chunk(batch, &chunk);

	commands->done += done;
	return done == asked;
}

static bool is_watch_without_id(const struct twheel_cmd __user *cmd)
{
	u16 op;
	u64 id;

	return !get_user(op, &cmd->op) && op == TWHEEL_OP_WATCH &&
	       !get_user(id, &cmd->id) && !id;
}

/* How many of the next commands are WATCHes without id?  At most TWHEEL_MAX_WATCHES. */
static u32 count_belonging(const struct commands *commands)
{
	u32 nr = 0;

	while (nr < TWHEEL_MAX_WATCHES && nr < commands->nr - commands->done &&
	       is_watch_without_id(command_user(commands, commands->done + nr)))
		nr++;
	return nr;
}

/* Run a chunk, and after it the WATCHes that belong to its last ADD. */
static bool run_some(struct context_batch *batch, struct commands *commands)
{
	bool whole = run_next(batch, commands, CONTEXT_CHUNK);
	u32 end = commands->done;

	if (whole)
		end += count_belonging(commands);
	while (whole && commands->done < end) {
		cond_resched();
		whole = run_next(batch, commands, end - commands->done);
	}
	return whole;
}

/*
 * Run commands, in chunks, until one cannot be done whole or a signal comes.  The mutex
 * is dropped in between, so that no other task waits for long.  But a WATCH of the ADD
 * before it is run with that ADD: if the call ended between them, the next call would not
 * know the ADD.
 *
 * Returns 0, or the error that ended it.
 */
static int run_commands(struct context *context, struct commands *commands)
{
	struct context_batch *batch = &context->batch;
	bool tired = false;
	u64 last_add = 0;

	while (commands->done < commands->nr) {
		int ret = twheel_context_begin(context, CONTEXT_BLOCK);
		bool whole;

		if (ret)
			return ret;
		batch->last_add = last_add;
		whole = run_some(batch, commands);
		last_add = batch->last_add;
		twheel_context_end(batch);
		if (!whole)
			return -EFAULT;
		if (commands->done == commands->nr)
			break;
		if (task_sigpending(current))
			return -ERESTARTSYS;
		ret = context_give_way(context, &tired);
		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}

/* Does a command have TWHEEL_CANCEL_ON_SET, so that it would sweep all events? */
static bool chunk_sweeps(const struct chunk *chunk)
{
	unsigned int i;

	for (i = 0; i < chunk->nr; i++) {
		if (chunk->cmds[i].flags & TWHEEL_CANCEL_ON_SET)
			return true;
	}
	return false;
}

/*
 * How many watches would the commands of a chunk unlink?  At most @max are counted.
 * Because signals on a key add up, the value of each is taken to be the sum of all
 * SIGNALs of the call up to it, @sum.
 */
static unsigned int chunk_unlinks(struct context *context, const struct chunk *chunk,
				  u64 *sum, unsigned int max)
{
	unsigned int nr = 0, i;

	for (i = 0; i < chunk->nr && nr < max; i++) {
		const struct twheel_cmd *cmd = &chunk->cmds[i];

		if (cmd->op == TWHEEL_OP_SIGNAL)
			*sum = add_saturating(*sum, cmd->value);
		nr += context_unlinks(context, cmd, *sum, max - nr);
	}
	return nr;
}

/*
 * Would these commands take long?  They are checked before the first one is run, because
 * a command must not be run twice.  A caller that changes them meanwhile gets a long
 * call, which delays only others of its own context and ring.
 */
static bool take_long(struct context *context, const struct commands *commands)
{
	bool sweeps = context_wants_sweep(context);
	unsigned int unlinked = 0;
	u64 sum = 0;
	struct chunk chunk = {
		.cmds = context->cmds,
		.stride = commands->stride,
	};
	u32 i;

	if (commands->nr > COMMAND_INLINE)
		return true;
	if (!sweeps && context->nr_watches <= COMMAND_INLINE)
		return false;
	for (i = 0; i < commands->nr; i += CONTEXT_CHUNK) {
		chunk.user = command_user(commands, i);
		chunk.nr = min_t(u32, commands->nr - i, CONTEXT_CHUNK);
		chunk.nr = copy_in(&chunk);
		if (sweeps && chunk_sweeps(&chunk))
			return true;
		unlinked += chunk_unlinks(context, &chunk, &sum,
					  COMMAND_INLINE + 1 - unlinked);
		if (unlinked > COMMAND_INLINE)
			return true;
	}
	return false;
}

/*
 * Run commands without waiting for the mutex, and all of them while it is held: a command
 * must not be run twice.
 *
 * Returns as run_commands(), or -EAGAIN: nothing was done.
 */
static int run_inline(struct context *context, struct commands *commands)
{
	struct context_batch *batch = &context->batch;
	int ret = twheel_context_begin(context, CONTEXT_NOWAIT);

	if (ret)
		return ret;
	if (take_long(context, commands))
		ret = -EAGAIN;
	while (!ret && commands->done < commands->nr) {
		if (!run_some(batch, commands))
			ret = -EFAULT;
		else if (task_sigpending(current))
			ret = -ERESTARTSYS;
		cond_resched();
	}
	twheel_context_end(batch);
	return ret;
}

static __always_inline bool read_command(struct twheel_cmd *cmd,
					 struct twheel_cmd __user *user)
{
	bool ok;

	might_fault();
	if (!user_access_begin(user, sizeof(*user)))
		return false;
	ok = get_command(cmd, user);
	user_access_end();
	return ok;
}

static __always_inline bool write_result(const struct twheel_cmd *cmd,
					 struct twheel_cmd __user *user)
{
	bool ok;

	might_fault();
	if (!user_write_access_begin(user, sizeof(*user)))
		return false;
	ok = put_result(cmd, user);
	user_write_access_end();
	return ok;
}

/**
 * command_submit_one() - run the only command of a call
 * @context: the context.
 * @user: the command, in a struct as long as ours.
 *
 * Return: as command_submit().
 */
long command_submit_one(struct context *context, struct twheel_cmd __user *user)
{
	struct context_batch *batch = &context->batch;
	struct twheel_cmd *cmd = &context->cmds[0];
	int ret = context_lock(context, CONTEXT_BLOCK);

	if (ret)
		return ret;
	batch->last_add = 0;
	if (!read_command(cmd, user))
		goto fault;
	cmd->result = command_run(batch, cmd);
	batch_settle(batch);
	if (!write_result(cmd, user)) {
		undo_command(batch, cmd);
		goto fault;
	}
	/* Nothing has happened since the batch was settled. */
	events_trim(&context->events);
	context_unlock(context);
	return 1;
fault:
	twheel_context_end(batch);
	return -EFAULT;
}

/**
 * command_submit() - run the commands of a call, in order
 * @context: the context.
 * @submit: the call; the caller has handled its size.
 * @how: CONTEXT_BLOCK; or CONTEXT_NOWAIT: fail with -EAGAIN instead of waiting.
 *
 * Return: how many commands had their result written; if none had: -EINVAL,
 * malformed; -E2BIG, commands of more than a page; -EFAULT; -ERESTARTSYS; -EAGAIN.
 */
long command_submit(struct context *context, const struct twheel_submit *submit,
		    unsigned int how)
{
	struct commands commands = {
		.user = submit->cmds,
		.stride = submit->cmd_size,
		.nr = min_t(u32, submit->nr, INT_MAX),
	};
	int ret;

	if (submit->flags)
		return -EINVAL;
	if (!submit->nr)
		return 0;
	ret = check_stride(submit->cmd_size, sizeof(struct twheel_cmd));
	if (ret)
		return ret;
	if (how & CONTEXT_NOWAIT)
		ret = run_inline(context, &commands);
	else
		ret = run_commands(context, &commands);
	return commands.done ? (long)commands.done : ret;
}

/*
 * Is an ENTER well-formed?  cmd_size is checked only if nr_cmds is not 0, and record_size
 * only if nr_records is not 0.
 */
static int check_enter(const struct twheel_enter *enter)
{
	int ret = 0;

	if (enter->flags & ~TWHEEL_ENTER_ABS || enter->reserved || enter->reserved2 ||
	    enter->min_records > enter->nr_records)
		return -EINVAL;
	if (enter->sigset_size != (enter->sigmask ? sizeof(sigset_t) : 0))
		return -EINVAL;
	if (enter->nr_cmds)
		ret = check_stride(enter->cmd_size, sizeof(struct twheel_cmd));
	if (!ret && enter->nr_records)
		ret = check_stride(enter->record_size,
				   sizeof(struct twheel_record));
	return ret;
}

/* Copy the caller's signal mask in, if there is one. */
static int copy_sigmask(const struct twheel_enter *enter, sigset_t *mask)
{
	void __user *user = u64_to_user_ptr(enter->sigmask);

	if (!user)
		return 0;
#ifdef CONFIG_COMPAT
	if (in_compat_syscall())
		return get_compat_sigset(mask, user);
#endif
	return copy_from_user(mask, user, sizeof(*mask)) ? -EFAULT : 0;
}

/*
 * The next two are set_user_sigmask() and restore_saved_sigmask_unless(), which are not
 * for modules: the mask is in force from here to the end of the system call.
 */
static void set_sigmask(sigset_t *mask)
{
	sigdelsetmask(mask, sigmask(SIGKILL) | sigmask(SIGSTOP));
	set_restore_sigmask();
	current->saved_sigmask = current->blocked;
	sigprocmask(SIG_SETMASK, mask, NULL);
}

/* If a signal ends the call, its handler runs with the mask, which is restored after it. */
static void restore_sigmask_unless(bool interrupted)
{
	if (!interrupted && test_and_clear_restore_sigmask())
		sigprocmask(SIG_SETMASK, &current->saved_sigmask, NULL);
}

/* When ENTER stops waiting, on the host's CLOCK_MONOTONIC; KTIME_MAX: never. */
static ktime_t enter_until(const struct context *context,
			   const struct twheel_enter *enter)
{
	u64 until_ns = enter->timeout_ns;

	if (enter->flags & TWHEEL_ENTER_ABS)
		until_ns = context_host_ns(context, BASE_MONOTONIC, until_ns);
	else if (check_add_overflow(ktime_get_ns(), until_ns, &until_ns))
		until_ns = U64_MAX;
	return min_t(u64, until_ns, KTIME_MAX);
}

/* Does ENTER want more records, and is there room for one? */
static bool wants_more(const struct twheel_enter *enter, const struct iov_iter *to)
{
	return enter->records_done < enter->min_records &&
	       iov_iter_count(to) >= enter->record_size;
}

/*
 * Copy records out until there are as many as asked for, or the time is over, or no more
 * can come because no event is left.  At least one was copied out in the last case.
 *
 * Returns 0, or the error that ended it.
 */
static int reap_records(struct context *context, struct twheel_enter *enter,
			bool may_wait)
{
	ktime_t until = enter_until(context, enter);
	bool in_time = may_wait;
	struct iov_iter to;
	u64 left;

	iov_iter_ubuf(&to, READ, u64_to_user_ptr(enter->records),
		      (size_t)enter->nr_records * enter->record_size);
	for (;;) {
		ssize_t ret = context_reap(context, &to, enter->record_size, &left);

		if (ret < 0)
			return ret;
		enter->records_done += ret;
		/* There may be more records, but the signal comes first. */
		if (ret && wants_more(enter, &to) && signal_pending(current))
			return -ERESTARTSYS;
		if (!in_time || !wants_more(enter, &to) ||
		    (enter->records_done && !left))
			return 0;
		ret = context_wait_for(context,
				       enter->min_records - enter->records_done,
				       enter->records_done,
				       until == KTIME_MAX ? NULL : &until);
		if (ret == -ERESTARTSYS)
			return ret;
		in_time = !ret;
	}
}

/*
 * The error of an ENTER that was interrupted and has done nothing.  The kernel may restart
 * it, unless that would make its wait longer.
 */
static int interrupted_error(const struct twheel_enter *enter)
{
	bool relative = enter->timeout_ns && enter->timeout_ns != U64_MAX &&
			!(enter->flags & TWHEEL_ENTER_ABS);

	return relative ? -EINTR : -ERESTARTNOHAND;
}

/* Run the commands of an ENTER and copy records out; 0, or the error that ended it. */
static int enter_by_parts(struct context *context, struct twheel_enter *enter,
			  sigset_t *mask)
{
	struct commands commands = {
		.user = enter->cmds,
		.stride = enter->cmd_size,
		.nr = enter->nr_cmds,
	};
	int ret = run_commands(context, &commands);
	bool may_wait = enter->timeout_ns && !ret;

	enter->cmds_done = commands.done;
	/* A caller whose commands failed does not wait for records. */
	if (may_wait && enter->sigmask)
		set_sigmask(mask);
	if (enter->nr_records && (!ret || commands.done))
		ret = reap_records(context, enter, may_wait);
	return ret;
}

/**
 * command_enter() - a turn of an event loop
 * @context: the context.
 * @enter: the call; the caller has handled its size.  cmds_done and records_done are
 *	written.
 *
 * Return: 0, something was done or the time ran out; else -EINVAL, malformed;
 * -E2BIG, commands or records of more than a page; -EFAULT; -EINTR;
 * -ERESTARTNOHAND, which is -EINTR if there is a handler.
 */
long command_enter(struct context *context, struct twheel_enter *enter)
{
	int ret = check_enter(enter);
	bool interrupted;
	sigset_t mask;

	enter->cmds_done = 0;
	enter->records_done = 0;
	if (!ret)
		ret = copy_sigmask(enter, &mask);
	if (ret)
		return ret;

	ret = enter_by_parts(context, enter, &mask);
	/* The handler runs when the call returns, also if it returns 0. */
	interrupted = ret == -ERESTARTSYS;
	if (enter->cmds_done || enter->records_done)
		ret = 0;
	else if (ret == -ERESTARTSYS)
		ret = interrupted_error(enter);
	restore_sigmask_unless(interrupted);
	return ret;
}

/**
 * command_list() - a page of a list of the events
 * @context: the context.
 * @list: the call; the caller has handled its size.  The cursor is written.
 *
 * Return: how many entries were written; -EINVAL, malformed; -E2BIG, entries of
 * more than a page; -EFAULT; -ERESTARTSYS.
 */
long command_list(struct context *context, struct twheel_list *list)
{
	u32 nr = min_t(u32, list->nr, INT_MAX);
	struct iov_iter to;
	int ret;

	if (list->reserved)
		return -EINVAL;
	/* Entries without flags are accepted. */
	ret = check_stride(list->entry_size, offsetof(struct twheel_entry, flags));
	if (ret)
		return ret;
	iov_iter_ubuf(&to, READ, u64_to_user_ptr(list->entries),
		      (size_t)nr * list->entry_size);
	return twheel_context_list(context, &list->cursor, &to, list->entry_size);
}
