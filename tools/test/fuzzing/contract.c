// SPDX-License-Identifier: GPL-2.0
/*
 * The contract of the device's ioctls, stated a second time: what a caller is promised by
 * kmod/uapi/linux/twheel.h, one command after the other, a byte at a time.
 *
 * Nothing here is shared with kmod/command.c and kmod/device.c but the layout of structures. It
 * has no chunks, no tables of fields, and no shortcuts for frequent calls.
 */
#include "contract.h"

#define SIZE_OF_COMMAND		64
#define SIZE_OF_RECORD		64
#define ENTRY_SHORTEST		64

/* All features that there are. */
#define FEATURES_EXPECTED	0x7ff

/* --- memory --------------------------------------------------------------------------- */

static bool readable(const struct arena *arena, u64 at)
{
	return at >= ARENA_AT && at - ARENA_AT < arena->size;
}

static bool writable(const struct arena *arena, u64 at)
{
	return readable(arena, at) &&
	       !(at - ARENA_AT >= arena->hole && at - ARENA_AT < arena->hole_end);
}

static bool can_write(const struct arena *arena, u64 at, u64 size)
{
	while (size--)
		if (!writable(arena, at++))
			return false;
	return true;
}

static bool fetch(const struct arena *arena, void *to, u64 at, u64 size)
{
	u8 *byte = to;

	for (; size--; at++) {
		if (!readable(arena, at))
			return false;
		*byte++ = arena->bytes[at - ARENA_AT];
	}
	return true;
}

/* All of it or nothing. */
static bool put(struct arena *arena, u64 at, const void *from, u64 size)
{
	if (!can_write(arena, at, size))
		return false;
	memcpy(arena->bytes + (at - ARENA_AT), from, size);
	return true;
}

/* 0: all bytes are 0; -E2BIG: one is not; -EFAULT: one that comes before cannot be read. */
static int all_zero(const struct arena *arena, u64 at, u64 size)
{
	u8 byte;

	while (size--) {
		if (!fetch(arena, &byte, at++, 1))
			return -EFAULT;
		if (byte)
			return -E2BIG;
	}
	return 0;
}

/* Read a struct that begins with its size: that size, or an errno. */
static long fetch_argument(const struct arena *arena, void *to, u64 ours, u64 at)
{
	u32 size;
	int ret;

	memset(to, 0, ours);
	if (!fetch(arena, &size, at, sizeof(size)))
		return -EFAULT;
	if (size < 4)
		return -EINVAL;
	if (size > 4096)
		return -E2BIG;
	ret = size > ours ? all_zero(arena, at + ours, size - ours) : 0;
	if (ret)
		return ret;
	if (!fetch(arena, to, at, size < ours ? size : ours))
		return -EFAULT;
	return size;
}

/* May a struct that grows be this long? */
static int check_length(u32 size, u32 least)
{
	if (size < least)
		return -EINVAL;
	return size > 4096 ? -E2BIG : 0;
}

/* --- commands ------------------------------------------------------------------------- */

static bool is_arming(const struct twheel_cmd *cmd)
{
	return cmd->op == TWHEEL_OP_ADD || cmd->op == TWHEEL_OP_MODIFY;
}

/* The flags of each op. */
static bool flags_are_right(const struct twheel_cmd *cmd)
{
	switch (cmd->op) {
	case TWHEEL_OP_ADD:
		return !(cmd->flags & ~(1 | 2 | 32));
	case TWHEEL_OP_MODIFY:
		return !(cmd->flags & ~(1 | 2 | 16 | 32));
	case TWHEEL_OP_WATCH:
		return !(cmd->flags & ~4);
	case TWHEEL_OP_SIGNAL:
		return !(cmd->flags & ~8);
	default:
		return !cmd->flags;
	}
}

/* Fields that a command does not use are 0. */
static bool unused_are_zero(const struct twheel_cmd *cmd)
{
	bool deadline = cmd->flags & TWHEEL_DEADLINE;

	if (cmd->reserved)
		return false;
	if (cmd->op == TWHEEL_OP_SIGNAL && cmd->id)
		return false;
	if ((cmd->op == TWHEEL_OP_CANCEL || cmd->op == TWHEEL_OP_QUERY) && cmd->data)
		return false;
	if (cmd->op == TWHEEL_OP_MODIFY && !(cmd->flags & TWHEEL_SET_DATA) && cmd->data)
		return false;
	if (!is_arming(cmd) && cmd->op != TWHEEL_OP_QUERY &&
	    (cmd->time_ns || cmd->interval_ns || cmd->slack_ns))
		return false;
	if (is_arming(cmd) && deadline && (cmd->time_ns || cmd->interval_ns))
		return false;
	if (cmd->op != TWHEEL_OP_WATCH && cmd->op != TWHEEL_OP_SIGNAL && !deadline && cmd->key)
		return false;
	return cmd->op == TWHEEL_OP_ADD || !cmd->quorum;
}

/* Numbers that are not allowed. */
static bool values_are_right(const struct twheel_cmd *cmd)
{
	if (cmd->op == TWHEEL_OP_WATCH && !cmd->value)
		return false;
	if (!is_arming(cmd))
		return true;
	if (cmd->flags & TWHEEL_DEADLINE && cmd->flags & (TWHEEL_ABS | TWHEEL_CANCEL_ON_SET))
		return false;
	if (cmd->interval_ns && cmd->interval_ns < 65536)
		return false;
	return cmd->quorum <= TWHEEL_MAX_WATCHES && !(cmd->quorum && cmd->interval_ns);
}

static bool is_well_formed(const struct twheel_cmd *cmd)
{
	if (cmd->op < TWHEEL_OP_ADD || cmd->op > TWHEEL_OP_QUERY)
		return false;
	return flags_are_right(cmd) && unused_are_zero(cmd) && values_are_right(cmd);
}

/* Run one command, which has been read; @newer: there is more of it than we know. */
static void run_command(struct world *world, struct twheel_cmd *cmd, bool newer, u64 *last_add)
{
	/* The id of an ADD is out. */
	if (cmd->op == TWHEEL_OP_ADD)
		cmd->id = 0;
	if (newer)
		cmd->result = -E2BIG;
	else if (!is_well_formed(cmd))
		cmd->result = -EINVAL;
	else
		cmd->result = world_run(world, cmd, *last_add);
	if (cmd->op == TWHEEL_OP_ADD)
		*last_add = cmd->id;
}

/* Can the fields that the command writes be written? */
static bool results_fit(const struct arena *arena, const struct twheel_cmd *cmd, u64 at)
{
	if (!can_write(arena, at + offsetof(struct twheel_cmd, result), sizeof(cmd->result)))
		return false;
	if (cmd->op == TWHEEL_OP_ADD)
		return can_write(arena, at + offsetof(struct twheel_cmd, id), sizeof(cmd->id));
	return cmd->op != TWHEEL_OP_QUERY ||
	       can_write(arena, at + offsetof(struct twheel_cmd, time_ns), 3 * sizeof(u64));
}

static void put_results(struct arena *arena, const struct twheel_cmd *cmd, u64 at)
{
	put(arena, at + offsetof(struct twheel_cmd, result), &cmd->result, sizeof(cmd->result));
	if (cmd->op == TWHEEL_OP_ADD)
		put(arena, at + offsetof(struct twheel_cmd, id), &cmd->id, sizeof(cmd->id));
	if (cmd->op == TWHEEL_OP_QUERY)
		put(arena, at + offsetof(struct twheel_cmd, time_ns), &cmd->time_ns,
		    3 * sizeof(u64));
}

/* Run commands up to the first one whose result cannot be written; returns how many. */
static u32 run_commands(struct world *world, struct arena *arena, u64 at, u32 nr, u32 size)
{
	u64 last_add = 0;
	u32 i;

	for (i = 0; i < nr; i++, at += size) {
		struct twheel_cmd cmd;
		int tail;

		if (!fetch(arena, &cmd, at, sizeof(cmd)))
			break;
		tail = all_zero(arena, at + SIZE_OF_COMMAND, size - SIZE_OF_COMMAND);
		if (tail == -EFAULT || !results_fit(arena, &cmd, at))
			break;
		run_command(world, &cmd, tail == -E2BIG, &last_add);
		put_results(arena, &cmd, at);
	}
	return i;
}

/* --- ioctls --------------------------------------------------------------------------- */

static long info(struct arena *arena, u64 at)
{
	struct twheel_info info;
	long size = fetch_argument(arena, &info, sizeof(info), at);

	if (size < 0)
		return size;
	info.size = size;
	info.abi = 1;
	info.features = FEATURES_EXPECTED;
	info.tick_ns = 65536;
	info.max_events = 1000;
	return put(arena, at, &info, size < 32 ? size : 32) ? 0 : -EFAULT;
}

static long config(struct world *world, struct arena *arena, u64 at)
{
	struct twheel_config config;
	long size = fetch_argument(arena, &config, sizeof(config), at);

	if (size < 0)
		return size;
	if (config.flags > TWHEEL_CONFIG_CPU || (!config.flags && config.cpu))
		return -EINVAL;
	if (config.clockid != CLOCK_REALTIME && config.clockid != CLOCK_MONOTONIC &&
	    config.clockid != CLOCK_BOOTTIME)
		return -EINVAL;
	/* A delay is required if more than one record is waited for, and else not allowed. */
	if (config.wake_count > 1 ? !config.wake_delay_ns : config.wake_delay_ns)
		return -EINVAL;
	world->nr_asked++;
	return world->configure;
}

static long submit(struct world *world, struct arena *arena, u64 at)
{
	struct twheel_submit submit;
	long size = fetch_argument(arena, &submit, sizeof(submit), at);
	u32 done;
	int ret;

	if (size < 0)
		return size;
	if (submit.flags)
		return -EINVAL;
	if (!submit.nr)
		return 0;
	ret = check_length(submit.cmd_size, SIZE_OF_COMMAND);
	if (ret)
		return ret;
	done = run_commands(world, arena, submit.cmds, submit.nr, submit.cmd_size);
	return done ? (long)done : -EFAULT;
}

static int check_enter(const struct arena *arena, const struct twheel_enter *enter)
{
	u64 mask;
	int ret = 0;

	if (enter->flags > TWHEEL_ENTER_ABS || enter->reserved || enter->reserved2 ||
	    enter->min_records > enter->nr_records ||
	    enter->sigset_size != (enter->sigmask ? 8U : 0))
		return -EINVAL;
	if (enter->nr_cmds)
		ret = check_length(enter->cmd_size, SIZE_OF_COMMAND);
	if (!ret && enter->nr_records)
		ret = check_length(enter->record_size, SIZE_OF_RECORD);
	if (!ret && enter->sigmask && !fetch(arena, &mask, enter->sigmask, sizeof(mask)))
		ret = -EFAULT;
	return ret;
}

/* Write how much was done, as far as the caller's struct has room for it. */
static bool put_done(struct arena *arena, const struct twheel_enter *enter, u64 at, u64 size)
{
	u64 offset = offsetof(struct twheel_enter, cmds_done), len = 8;

	if (size <= offset)
		return true;
	if (size - offset < len)
		len = size - offset;
	return put(arena, at + offset, &enter->cmds_done, len);
}

static long enter_run(struct world *world, struct arena *arena, struct twheel_enter *enter)
{
	bool all;

	enter->cmds_done = run_commands(world, arena, enter->cmds, enter->nr_cmds,
					enter->cmd_size);
	all = enter->cmds_done == enter->nr_cmds;
	if (all || enter->cmds_done)
		enter->records_done = world->records < enter->nr_records ? world->records :
				      enter->nr_records;
	return all || enter->cmds_done ? 0 : -EFAULT;
}

static long enter(struct world *world, struct arena *arena, u64 at)
{
	struct twheel_enter enter;
	long size = fetch_argument(arena, &enter, sizeof(enter), at), ret;

	if (size < 0)
		return size;
	if (!put_done(arena, &enter, at, size))
		return -EFAULT;
	enter.cmds_done = 0;
	enter.records_done = 0;
	ret = check_enter(arena, &enter);
	if (!ret)
		ret = enter_run(world, arena, &enter);
	put_done(arena, &enter, at, size);
	return ret;
}

static long list(struct world *world, struct arena *arena, u64 at)
{
	struct twheel_list list;
	long size = fetch_argument(arena, &list, sizeof(list), at);
	u64 nr;
	int ret;

	if (size < 0)
		return size;
	if (list.reserved)
		return -EINVAL;
	ret = check_length(list.entry_size, ENTRY_SHORTEST);
	if (ret)
		return ret;
	nr = list.nr < world->entries ? list.nr : world->entries;
	list.cursor += nr;
	if (nr && size > 16 && !put(arena, at + 16, &list.cursor, size < 24 ? size - 16 : 8))
		return -EFAULT;
	return nr;
}

/**
 * contract_ioctl() - what an ioctl has to do
 * @world: what is below.
 * @arena: the caller's memory.
 * @request: the request.
 * @argument: the address of the argument.
 *
 * Return: what it has to return.
 */
long contract_ioctl(struct world *world, struct arena *arena, unsigned int request, u64 argument)
{
	/* Only type and number count. */
	if ((request >> 8 & 0xff) != 0xbe)
		return -ENOTTY;
	switch (request & 0xff) {
	case 0:
		return info(arena, argument);
	case 1:
		return config(world, arena, argument);
	case 2:
		return submit(world, arena, argument);
	case 3:
		return enter(world, arena, argument);
	case 4:
		return list(world, arena, argument);
	default:
		return -ENOTTY;
	}
}

/**
 * contract_uring() - what a request of io_uring has to do
 * @world: what is below.
 * @arena: the caller's memory.
 * @request: the request, as of an ioctl.
 * @area: the part of the sqe that is for the device.
 * @is_long: the sqe is one of 128 bytes.
 *
 * Return: the result of the request.
 */
long contract_uring(struct world *world, struct arena *arena, unsigned int request,
		    const u8 *area, bool is_long)
{
	u64 argument;
	unsigned int i;

	if ((request & 0xffff) != (0xbe << 8 | 2))
		return -EOPNOTSUPP;
	for (i = sizeof(argument); i < (is_long ? 80U : 16U); i++)
		if (area[i])
			return -EINVAL;
	memcpy(&argument, area, sizeof(argument));
	return submit(world, arena, argument);
}
