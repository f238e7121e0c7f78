// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An event loop's timeouts.
 *
 * A timeout that is started has a slot of the loop's table, and the data of its event is
 * the slot's number with a generation: so a record that comes when the timeout was
 * stopped, and its memory perhaps freed, leads to a slot that knows nothing of it.
 *
 * What is started and stopped becomes a command in a batch, which the next turn submits.
 * As long as a slot's command waits there, starting and stopping change that command.
 *
 * The records of a turn are looked at twice.  First each slot learns that its event has
 * ended in the kernel, and how many of its records wait to be told.  Then the callbacks
 * are called, which may start or stop any timeout: both forget what waits.
 */
#include <errno.h>
#include <stdlib.h>

#include "private.h"

/* How many callbacks a turn calls at most. */
#define LOOP_RECORDS	256

/* Slots of the first table. */
#define SLOTS_MIN	64

/* &struct slot.command */
#define NO_COMMAND	0xffffffffU

/**
 * struct slot - a timeout that is started
 * @timeout: the timeout, or NULL: the slot is free.
 * @id: its event, or 0: the kernel has none.
 * @generation: which use of the slot this is.
 * @command: where in the batch its command is, or NO_COMMAND.
 * @due: how many of its records were read and not told yet.
 * @periodic: its event, as the kernel knows it, goes on after a record.
 * @next_free: of a free one: the next such, or 0.
 */
struct slot {
	struct twheel_timeout *timeout;
	__u64 id;
	__u32 generation;
	__u32 command;
	__u32 due;
	bool periodic;
	__u32 next_free;
};

/**
 * struct twheel_loop - timeouts of a wheel
 * @wheel: the wheel.
 * @batch: what the kernel has not been told yet.
 * @records: of the turn.
 * @slots: the table; slot 0 is not used.
 * @nr_slots: how many there are, with that one.
 * @first_free: a free one, or 0.
 * @running: a turn is under way.
 */
struct twheel_loop {
	struct twheel *wheel;
	struct twheel_batch batch;
	struct twheel_records records;
	struct slot *slots;
	__u32 nr_slots;
	__u32 first_free;
	bool running;
};

/* --- slots ------------------------------------------------------------------------ */

static __u64 slot_data(const struct twheel_loop *loop, __u32 slot)
{
	return (__u64)loop->slots[slot].generation << 32 | slot;
}

/* The slot of an event's data, or 0 if that use of it is over. */
static __u32 slot_of(const struct twheel_loop *loop, __u64 data)
{
	__u32 slot = data;

	if (slot >= loop->nr_slots || !loop->slots[slot].timeout ||
	    loop->slots[slot].generation != data >> 32)
		return 0;
	return slot;
}

static int grow_slots(struct twheel_loop *loop)
{
	__u32 room = loop->nr_slots ? 2 * loop->nr_slots : SLOTS_MIN, i;
	struct slot *slots = reallocarray(loop->slots, room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	memset(slots + loop->nr_slots, 0, (room - loop->nr_slots) * sizeof(*slots));
	for (i = room - 1; i >= (loop->nr_slots ? loop->nr_slots : 1); i--) {
		slots[i].next_free = loop->first_free;
		loop->first_free = i;
	}
	loop->slots = slots;
	loop->nr_slots = room;
	return 0;
}

/* Give a timeout a slot.  Returns 0 or -ENOMEM. */
static int slot_take(struct twheel_loop *loop, struct twheel_timeout *timeout)
{
	struct slot *slot;

	if (!loop->first_free && grow_slots(loop))
		return -ENOMEM;
	timeout->slot = loop->first_free;
	timeout->loop = loop;
	slot = &loop->slots[timeout->slot];
	loop->first_free = slot->next_free;
	*slot = (struct slot){
		.timeout = timeout,
		.generation = slot->generation + 1,
		.command = NO_COMMAND,
	};
	return 0;
}

/* The timeout of a slot is not started any more. */
static void slot_give(struct twheel_loop *loop, __u32 number)
{
	struct slot *slot = &loop->slots[number];

	slot->timeout->slot = 0;
	slot->timeout = NULL;
	slot->next_free = loop->first_free;
	loop->first_free = number;
}

/* --- starting and stopping ---------------------------------------------------------- */

/* The command of a slot, which is in the batch or gets a place there; NULL: no memory. */
static struct twheel_cmd *slot_command(struct twheel_loop *loop, struct slot *slot)
{
	struct twheel_cmd *cmd;

	if (slot->command != NO_COMMAND)
		return &loop->batch.cmds[slot->command];
	cmd = twheel_batch_next(&loop->batch);
	if (cmd)
		slot->command = loop->batch.nr - 1;
	return cmd;
}

int twheel_timeout_start(struct twheel_loop *loop, struct twheel_timeout *timeout,
			 __u64 time_ns, __u64 interval_ns, __u64 slack_ns, __u16 flags)
{
	struct twheel_cmd *cmd;
	struct slot *slot;
	bool fresh = !timeout->slot;

	if (!fresh && timeout->loop != loop)
		return -EINVAL;
	if (fresh && slot_take(loop, timeout))
		return -ENOMEM;
	slot = &loop->slots[timeout->slot];
	cmd = slot_command(loop, slot);
	if (!cmd) {
		if (fresh)
			slot_give(loop, timeout->slot);
		return -ENOMEM;
	}
	if (slot->id)
		twheel_prep_modify(cmd, slot->id, time_ns, flags | TWHEEL_SET_DATA);
	else
		twheel_prep_add(cmd, time_ns, 0, flags);
	cmd->data = slot_data(loop, timeout->slot);
	twheel_cmd_set_interval(cmd, interval_ns);
	twheel_cmd_set_slack(cmd, slack_ns);
	slot->due = 0;
	return 0;
}

void twheel_timeout_stop(struct twheel_timeout *timeout)
{
	struct twheel_loop *loop = timeout->loop;
	struct twheel_cmd *cmd;
	struct slot *slot;

	if (!timeout->slot)
		return;
	slot = &loop->slots[timeout->slot];
	if (slot->id) {
		cmd = slot_command(loop, slot);
		if (cmd)
			twheel_prep_cancel(cmd, slot->id);
		else
			while (twheel_cancel(loop->wheel, slot->id) == -EINTR)
				;
	} else if (slot->command != NO_COMMAND) {
		/* There is no such event, so this does nothing. */
		twheel_prep_query(&loop->batch.cmds[slot->command], 0);
	}
	slot_give(loop, timeout->slot);
}

/* --- turns -------------------------------------------------------------------------- */

/* A command of a timeout was run.  Returns 0, or why that is not started any more. */
static int note_result(struct twheel_loop *loop, const struct twheel_cmd *cmd)
{
	__u32 number = slot_of(loop, cmd->data);
	struct slot *slot = &loop->slots[number];

	if ((cmd->op != TWHEEL_OP_ADD && cmd->op != TWHEEL_OP_MODIFY) || !number)
		return 0;
	slot->command = NO_COMMAND;
	if (cmd->op == TWHEEL_OP_ADD)
		slot->id = cmd->id;
	if (cmd->result >= 0) {
		slot->periodic = cmd->interval_ns;
		return 0;
	}
	/* It has ended, for another reason than its time, and its record is to come. */
	if (cmd->result == -EALREADY)
		return 0;
	if (slot->id)
		while (twheel_cancel(loop->wheel, slot->id) == -EINTR)
			;
	slot_give(loop, number);
	return cmd->result;
}

/* The first @done commands were run; the rest waits on.  Returns 0 or the first error. */
static int note_results(struct twheel_loop *loop, unsigned int done)
{
	struct twheel_batch *batch = &loop->batch;
	unsigned int i;
	int error = 0;

	for (i = 0; i < done; i++) {
		int ret = note_result(loop, &batch->cmds[i]);

		if (!error)
			error = ret;
	}
	batch->nr -= done;
	memmove(batch->cmds, batch->cmds + done, batch->nr * sizeof(*batch->cmds));
	for (i = 0; i < batch->nr; i++) {
		__u32 number = slot_of(loop, batch->cmds[i].data);

		if (number)
			loop->slots[number].command = i;
	}
	return error;
}

/* The event of a slot is gone: what was to change it has to arm a new one. */
static void note_end(struct twheel_loop *loop, struct slot *slot)
{
	struct twheel_cmd *cmd;

	slot->id = 0;
	if (slot->command == NO_COMMAND)
		return;
	cmd = &loop->batch.cmds[slot->command];
	cmd->op = TWHEEL_OP_ADD;
	cmd->id = 0;
	cmd->flags &= ~TWHEEL_SET_DATA;
}

/* Records were read; those of timeouts that were started again since do not count. */
static void note_records(struct twheel_loop *loop)
{
	const struct twheel_record *record;

	twheel_for_each_record(record, &loop->records) {
		__u32 number = slot_of(loop, record->data);
		struct slot *slot = &loop->slots[number];

		if (!number)
			continue;
		slot->due += slot->command == NO_COMMAND;
		if (!slot->periodic || record->reason != TWHEEL_EXPIRED)
			note_end(loop, slot);
	}
}

/* Tell a record to its timeout; true if there is one that has not forgotten it. */
static bool tell(struct twheel_loop *loop, const struct twheel_record *record)
{
	__u32 number = slot_of(loop, record->data);
	struct slot *slot = &loop->slots[number];
	struct twheel_timeout *timeout;

	if (!number || !slot->due)
		return false;
	slot->due--;
	timeout = slot->timeout;
	if (!slot->id)
		slot_give(loop, number);
	timeout->callback(timeout, record);
	return true;
}

static int tell_all(struct twheel_loop *loop)
{
	const struct twheel_record *record;
	int nr = 0;

	note_records(loop);
	loop->running = true;
	twheel_for_each_record(record, &loop->records)
		nr += tell(loop, record);
	loop->running = false;
	return nr;
}

/* Submit what a signal left, or callbacks have queued.  Returns as note_results(). */
static int flush(struct twheel_loop *loop)
{
	int done = loop->batch.nr ? twheel_submit(loop->wheel, &loop->batch) : 0;

	return done < 0 ? done : note_results(loop, done);
}

int twheel_loop_run(struct twheel_loop *loop, __u64 timeout_ns)
{
	unsigned int done = 0;
	int ret, error, nr;

	if (loop->running)
		return -EBUSY;
	ret = twheel_enter(loop->wheel, &loop->batch, &done, &loop->records,
			   timeout_ns ? 1 : 0, timeout_ns, NULL);
	error = note_results(loop, done);
	if (ret >= 0 && !error)
		error = flush(loop);
	nr = tell_all(loop);
	if (ret >= 0 && !error)
		error = flush(loop);
	if (error)
		return error;
	return ret < 0 ? ret : nr;
}

/* --- beginning and end ---------------------------------------------------------------- */

int twheel_loop_create(struct twheel_loop **loop, struct twheel *wheel)
{
	struct twheel_loop *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->wheel = wheel;
	twheel_batch_init(&made->batch);
	if (twheel_records_init(&made->records, LOOP_RECORDS)) {
		free(made);
		return -ENOMEM;
	}
	*loop = made;
	return 0;
}

void twheel_loop_destroy(struct twheel_loop *loop)
{
	__u32 i;

	if (!loop)
		return;
	for (i = 1; i < loop->nr_slots; i++)
		if (loop->slots[i].timeout)
			twheel_timeout_stop(loop->slots[i].timeout);
	twheel_submit(loop->wheel, &loop->batch);
	twheel_batch_destroy(&loop->batch);
	twheel_records_destroy(&loop->records);
	free(loop->slots);
	free(loop);
}

int twheel_loop_fd(const struct twheel_loop *loop)
{
	return loop->wheel->fd;
}
