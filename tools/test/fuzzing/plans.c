// SPDX-License-Identifier: GPL-2.0
/* What the bytes of a plan mean: numbers, sizes, times, commands. */
#include <string.h>

#include "plans.h"

#define NSEC_PER_SEC	1000000000ULL

static const uint64_t numbers[] = {
	1, 2, 0, 3, 5, 63, 64, 65, 100, 511, 512, 513, 4096, 1 << 16, 1 << 20, 0x7fffffff,
	0x80000000, 0xffffffff, 1ULL << 32, (1ULL << 62) + 1, (1ULL << 63) - 1, 1ULL << 63,
	UINT64_MAX - 1, UINT64_MAX,
};

/* In ns. Most are so short that events expire while a program runs. */
static const uint64_t times[] = {
	100000, 0, 1, 1000, 20000, 65535, 65536, 65537, 131072, 200000, 300000, 500000, 1000000,
	1000000, 2000000, 3000000, 5000000, 20000000, NSEC_PER_SEC, 3600 * NSEC_PER_SEC,
	1ULL << 40, 1ULL << 50, 1ULL << 62, (1ULL << 63) - 2, (1ULL << 63) - 1, 1ULL << 63,
	UINT64_MAX,
};

/* Those up to here are added to the present time if they have to be absolute. */
#define TIMES_NEAR	22

static const uint64_t intervals[] = {
	0, 65536, 100000, 1000000, 131072, 65535, 1, 65537, NSEC_PER_SEC, 1ULL << 62, 1ULL << 63,
	UINT64_MAX,
};

/* Many commands take long, and seldom reach more than a few. */
static const uint32_t few[] = { 1, 1, 2, 3, 4, 1, 2, 5, 8, 0 };
static const uint32_t some[] = { 16, 47, 48, 49, 50 };
static const uint32_t many[] = {
	96, 97, 150, 300, 512, 513, 0x7fffffff, 0x80000000, 0xffffffff,
};

/* A number, most of which are at some limit. */
uint64_t plan_number(uint8_t byte)
{
	if (byte >= 240)
		return byte * 0x9e3779b97f4a7c15ULL;
	return numbers[byte % LENGTH(numbers)];
}

static uint64_t now_ns(int clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

uint64_t plan_time(uint8_t byte, bool absolute, int clock)
{
	unsigned int i = byte % LENGTH(times);

	return times[i] + (absolute && i < TIMES_NEAR ? now_ns(clock) : 0);
}

/* The size of a structure, if it is a little wrong. */
uint32_t plan_size(uint8_t byte, size_t natural)
{
	switch (byte % 16) {
	case 1:
		return natural - 1;
	case 2:
		return natural + 1;
	case 3:
		return natural - 8;
	case 4:
	case 5:
		return natural + 8 * (1 + byte / 16);
	case 6:
		return byte / 16;
	case 7:
		return 4096;
	case 8:
		return 4097;
	case 9:
		return 0xffffffff;
	case 10:
		return 64;
	case 11:
		return natural - 4 * (byte / 16);
	default:
		return natural;
	}
}

/* How many commands, records or entries. */
uint32_t plan_count(uint8_t byte)
{
	if (byte < 220)
		return few[byte % LENGTH(few)];
	if (byte < 247)
		return some[byte % LENGTH(some)];
	return many[byte % LENGTH(many)];
}

/* --- commands ------------------------------------------------------------------------ */

static const uint16_t ops[] = {
	TWHEEL_OP_ADD, TWHEEL_OP_ADD, TWHEEL_OP_MODIFY, TWHEEL_OP_CANCEL, TWHEEL_OP_ADD,
	TWHEEL_OP_WATCH, TWHEEL_OP_SIGNAL, TWHEEL_OP_COMPLETE, TWHEEL_OP_ADD, TWHEEL_OP_MODIFY,
	TWHEEL_OP_QUERY, TWHEEL_OP_WATCH, TWHEEL_OP_SIGNAL, TWHEEL_OP_WATCH, TWHEEL_OP_ADD,
	TWHEEL_OP_CANCEL, TWHEEL_OP_ADD, 0, 8, 0xffff,
};

static const uint16_t flags_of[] = {
	[TWHEEL_OP_ADD] = TWHEEL_ABS | TWHEEL_CANCEL_ON_SET | TWHEEL_DEADLINE,
	[TWHEEL_OP_MODIFY] = TWHEEL_ABS | TWHEEL_CANCEL_ON_SET | TWHEEL_SET_DATA | TWHEEL_DEADLINE,
	[TWHEEL_OP_WATCH] = TWHEEL_LEVEL,
	[TWHEEL_OP_SIGNAL] = TWHEEL_QUIET,
	[TWHEEL_OP_QUERY] = 0,
};

static uint64_t id_of(const struct file_note *note, uint8_t byte)
{
	unsigned int nr = note->nr_ids > 8 ? 8 : note->nr_ids;
	uint64_t id = nr ? note->ids[(note->nr_ids - 1 - byte / 8 % nr) % NOTED_IDS] : 0;

	switch (byte % 8) {
	case 4:
		return 0;
	case 5:
		return id ^ (1ULL << (byte / 8 + 32));
	case 6:
		return id + byte / 8;
	case 7:
		return plan_number(byte / 8);
	default:
		return id;
	}
}

static uint64_t key_of(uint8_t byte)
{
	return byte < 192 ? byte % 4 : plan_number(byte);
}

static uint32_t quorum_of(uint8_t byte)
{
	static const uint32_t quorums[] = { 0, 1, 2, 2, 3, 64, 65, 0xffffffff };

	return quorums[byte % LENGTH(quorums)];
}

static void plan_timing(struct twheel_cmd *cmd, const struct command_plan *plan,
			const struct file_note *note)
{
	cmd->slack_ns = plan->slack ? plan_time(plan->slack, false, 0) : 0;
	if (cmd->flags & TWHEEL_DEADLINE) {
		cmd->flags &= ~(TWHEEL_ABS | TWHEEL_CANCEL_ON_SET);
		cmd->key = key_of(plan->key);
		return;
	}
	if (cmd->flags & TWHEEL_CANCEL_ON_SET)
		cmd->flags |= TWHEEL_ABS;
	cmd->time_ns = plan_time(plan->time, cmd->flags & TWHEEL_ABS, note->clock);
	cmd->interval_ns = intervals[plan->interval % LENGTH(intervals)];
}

/* A command that is well-formed, unless a number in it is not. */
static void plan_fields(struct twheel_cmd *cmd, const struct command_plan *plan,
			const struct file_note *note)
{
	if (cmd->op <= TWHEEL_OP_QUERY)
		cmd->flags = plan->flags & flags_of[cmd->op];
	if (cmd->op != TWHEEL_OP_ADD && cmd->op != TWHEEL_OP_SIGNAL)
		cmd->id = id_of(note, plan->id);
	switch (cmd->op) {
	case TWHEEL_OP_ADD:
		cmd->data = plan->value;
		plan_timing(cmd, plan, note);
		if (!cmd->interval_ns || plan->quorum > 128)
			cmd->quorum = quorum_of(plan->quorum);
		break;
	case TWHEEL_OP_MODIFY:
		cmd->data = cmd->flags & TWHEEL_SET_DATA ? plan->value : 0;
		plan_timing(cmd, plan, note);
		break;
	case TWHEEL_OP_COMPLETE:
		cmd->value = plan_number(plan->value);
		break;
	case TWHEEL_OP_WATCH:
	case TWHEEL_OP_SIGNAL:
		cmd->value = plan_number(plan->value);
		cmd->key = key_of(plan->key);
		break;
	}
}

static void plan_mistake(struct twheel_cmd *cmd, uint8_t wrong)
{
	switch (wrong % 10) {
	case 1:
		cmd->reserved = plan_number(wrong / 10);
		break;
	case 2:
		cmd->flags |= 1 << (wrong / 10 % 16);
		break;
	case 3:
		cmd->key = plan_number(wrong / 10);
		break;
	case 4:
		cmd->quorum = plan_number(wrong / 10);
		break;
	case 5:
		cmd->time_ns = plan_number(wrong / 10);
		break;
	case 6:
		cmd->interval_ns = plan_number(wrong / 10);
		break;
	case 7:
		cmd->id = plan_number(wrong / 10);
		break;
	case 8:
		cmd->data = plan_number(wrong / 10);
		break;
	case 9:
		cmd->op = wrong / 10;
		break;
	}
}

/**
 * plan_command() - make a command
 * @cmd: the command.
 * @plan: its plan.
 * @note: the file that it is for, whose events it may name.
 */
void plan_command(struct twheel_cmd *cmd, const struct command_plan *plan,
		  const struct file_note *note)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->op = ops[plan->op % LENGTH(ops)];
	cmd->result = -0x5a5a;
	plan_fields(cmd, plan, note);
	if (plan->wrong)
		plan_mistake(cmd, plan->wrong);
}
