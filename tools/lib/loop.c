// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An event loop's timeouts.
 *
 * A timeout that is started has a slot in the loop's table.  The data of its event has the
 * number and the generation of the slot.  So a record that comes after the timeout was
 * stopped, when its memory may be freed already, is recognised by its old generation.
 *
 * Starts and stops are commands in a batch, which the next turn submits.  While a slot has
 * a command there, another start or stop changes that command.
 *
 * A turn goes through its records twice.  The first pass marks the slots whose events have
 * ended in the kernel, and counts the records of each slot.  The second pass calls the
 * callbacks, which may start or stop any timeout: that resets the count of its slot.
 *
 * fork() copies a loop, but both copies have the same events in the kernel.  So only the
 * process that created it uses it.  In a child it submits nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "private.h"

/* The maximum number of callbacks of a turn. */
#define LOOP_RECORDS	256

/* The number of slots of a new table. */
#define SLOTS_MIN	64

/* The maximum number of slots, which is more than the kernel has events. */
#define SLOTS_MAX	(1U << 31)

/* &struct slot.command */
#define NO_COMMAND	0xffffffffU

/**
 * struct slot - a timeout that is started
 * @timeout: the timeout, or NULL if the slot is free.
 * @id: the id of its event, or 0 if the kernel has none.
 * @slack_ns: its slack.
 * @generation: counts the uses of the slot.
 * @command: the index of its command in the batch, or NO_COMMAND.
 * @due: the number of its records that were read, but not passed to the callback yet.
 * @word: the index of its deadline plus 1, or 0.
 * @next_free: if the slot is free: the next free one, or 0.
 * @periodic: the event in the kernel is periodic.
 */
struct slot {
	struct twheel_timeout *timeout;
	__u64 id;
	__u64 slack_ns;
	__u32 generation;
	__u32 command;
	__u32 due;
	__u32 word;
	__u32 next_free;
	bool periodic;
};

/**
 * struct twheel_loop - timeouts of a wheel
 * @wheel: the wheel.
 * @batch: commands that are not submitted yet.
 * @records: the records of the turn.
 * @slots: the table; slot 0 is not used.
 * @nr_slots: the number of slots, with slot 0.
 * @first_free: a free slot, or 0.
 * @owned: a page of its own, which the kernel fills with zeros in a child of fork().
 * @running: twheel_loop_run() is running.
 */
struct twheel_loop {
	struct twheel *wheel;
	struct twheel_batch batch;
	struct twheel_records records;
	struct slot *slots;
	__u32 nr_slots;
	__u32 first_free;
	bool *owned;
	bool running;
};

/* --- slots ------------------------------------------------------------------------ */

static __u64 slot_data(const struct twheel_loop *loop, const struct slot *slot)
{
	return (__u64)slot->generation << 32 | (slot - loop->slots);
}

/* Finds the slot for the data of an event, or NULL if its generation is an old one. */
static struct slot *slot_of(const struct twheel_loop *loop, __u64 data)
{
	__u32 number = data;
	struct slot *slot;

	if (number >= loop->nr_slots)
		return NULL;
	slot = &loop->slots[number];
	return slot->timeout && slot->generation == data >> 32 ? slot : NULL;
}

static int grow_slots(struct twheel_loop *loop)
{
	__u32 room = loop->nr_slots ? 2 * loop->nr_slots : SLOTS_MIN, i;
	struct slot *slots;

	if (loop->nr_slots == SLOTS_MAX)
		return -ENOMEM;
	slots = reallocarray(loop->slots, room, sizeof(*slots));
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

/* Frees the slot of a timeout that has ended or was stopped. */
static void slot_give(struct twheel_loop *loop, struct slot *slot)
{
	slot->timeout->slot = 0;
	slot->timeout = NULL;
	slot->next_free = loop->first_free;
	loop->first_free = slot - loop->slots;
}

/* --- starting and stopping ---------------------------------------------------------- */

/* Finds the command of a slot in the batch, or adds one.  Returns NULL without memory. */
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

/* Start a timeout, or start it again, by an ADD.  Returns 0 or an error. */
static int start(struct twheel_loop *loop, struct twheel_timeout *timeout,
		 const struct twheel_cmd *add)
{
	struct twheel_cmd *cmd;
	struct slot *slot;
	bool fresh = !timeout->slot;

	if (!*loop->owned)
		return -ECHILD;
	if (!fresh && timeout->loop != loop)
		return -EINVAL;
	if (fresh && slot_take(loop, timeout))
		return -ENOMEM;
	slot = &loop->slots[timeout->slot];
	cmd = slot_command(loop, slot);
	if (!cmd) {
		if (fresh)
			slot_give(loop, slot);
		return -ENOMEM;
	}
	*cmd = *add;
	cmd->data = slot_data(loop, slot);
	if (slot->id) {
		cmd->op = TWHEEL_OP_MODIFY;
		cmd->flags |= TWHEEL_SET_DATA;
		cmd->id = slot->id;
	}
	slot->slack_ns = add->slack_ns;
	slot->word = add->flags & TWHEEL_DEADLINE ? add->key + 1 : 0;
	slot->due = 0;
	return 0;
}

/* Turns a MODIFY whose event has ended into an ADD. */
static void add_instead(struct twheel_cmd *cmd)
{
	cmd->op = TWHEEL_OP_ADD;
	cmd->flags &= ~TWHEEL_SET_DATA;
	cmd->id = 0;
}

/* Checks what the kernel would refuse later, when the caller cannot be told. */
static bool is_refused(const struct twheel_loop *loop, __u64 interval_ns, __u16 flags)
{
	const struct twheel *wheel = loop->wheel;

	if (flags & ~(TWHEEL_ABS | TWHEEL_CANCEL_ON_SET))
		return true;
	if (flags & TWHEEL_CANCEL_ON_SET &&
	    (!(flags & TWHEEL_ABS) || wheel->clock != CLOCK_REALTIME))
		return true;
	return interval_ns && interval_ns < wheel->info.tick_ns;
}

int twheel_timeout_start(struct twheel_loop *loop, struct twheel_timeout *timeout,
			 __u64 time_ns, __u64 interval_ns, __u64 slack_ns, __u16 flags)
{
	struct twheel_cmd add;

	if (is_refused(loop, interval_ns, flags))
		return -EINVAL;
	twheel_prep_add(&add, time_ns, 0, flags);
	twheel_cmd_set_interval(&add, interval_ns);
	twheel_cmd_set_slack(&add, slack_ns);
	return start(loop, timeout, &add);
}

int twheel_timeout_start_deadline(struct twheel_loop *loop, struct twheel_timeout *timeout,
				  __u32 word, __u64 slack_ns)
{
	struct twheel_cmd add;

	if (word >= loop->wheel->nr_words)
		return -EINVAL;
	twheel_prep_add_deadline(&add, word, 0);
	twheel_cmd_set_slack(&add, slack_ns);
	return start(loop, timeout, &add);
}

void twheel_timeout_stop(struct twheel_timeout *timeout)
{
	struct twheel_loop *loop = timeout->loop;
	struct twheel_cmd *cmd;
	struct slot *slot;

	if (!timeout->slot)
		return;
	slot = &loop->slots[timeout->slot];
	/* In a child of fork() the event is the parent's. */
	if (slot->id && *loop->owned) {
		cmd = slot_command(loop, slot);
		if (cmd)
			twheel_prep_cancel(cmd, slot->id);
		else
			twheel_cancel(loop->wheel, slot->id);
	} else if (slot->command != NO_COMMAND) {
		/* No event has this id, so the command has no effect. */
		twheel_prep_query(&loop->batch.cmds[slot->command], 0);
	}
	slot_give(loop, slot);
}

/* --- turns -------------------------------------------------------------------------- */

/*
 * Handle the result of a command.  Returns true if it has to be run again, as an ADD.  If
 * the kernel refused it, the timeout is stopped, and *@error is set unless it is set
 * already.
 */
static bool note_result(struct twheel_loop *loop, struct twheel_cmd *cmd, int *error)
{
	struct slot *slot = slot_of(loop, cmd->data);

	if (!slot)
		return false;
	slot->command = NO_COMMAND;
	if (cmd->result >= 0) {
		slot->id = cmd->id;
		slot->periodic = cmd->interval_ns;
		return false;
	}
	if (slot->id)
		twheel_cancel(loop->wheel, slot->id);
	slot->id = 0;
	/* The event was completed or cancelled by someone else. */
	if (cmd->result == -EALREADY || cmd->result == -ENOENT) {
		add_instead(cmd);
		return true;
	}
	if (!*error)
		*error = cmd->result;
	slot_give(loop, slot);
	return false;
}

/*
 * Remove the first @done commands of the batch, which were run, except those that have to
 * be run again.  Returns 0 or the first error.
 */
static int note_results(struct twheel_loop *loop, unsigned int done)
{
	struct twheel_batch *batch = &loop->batch;
	unsigned int i, nr = 0;
	int error = 0;

	for (i = 0; i < batch->nr; i++) {
		struct twheel_cmd *cmd = &batch->cmds[i];
		struct slot *slot;

		if (i < done && !note_result(loop, cmd, &error))
			continue;
		slot = slot_of(loop, cmd->data);
		if (slot)
			slot->command = nr;
		batch->cmds[nr++] = *cmd;
	}
	batch->nr = nr;
	return error;
}

/* Counts the records of each slot, except those from before a new start of its timeout. */
static void note_records(struct twheel_loop *loop)
{
	const struct twheel_record *record;

	twheel_for_each_record(record, &loop->records) {
		struct slot *slot = slot_of(loop, record->data);

		if (!slot)
			continue;
		if (slot->command == NO_COMMAND)
			slot->due++;
		if (slot->periodic && record->reason == TWHEEL_EXPIRED)
			continue;
		slot->id = 0;
		if (slot->command != NO_COMMAND)
			add_instead(&loop->batch.cmds[slot->command]);
	}
}

/* Submit the batch, and read records.  Returns their number, or an error. */
static int turn(struct twheel_loop *loop, __u64 timeout_ns)
{
	unsigned int done;
	int ret = twheel_enter(loop->wheel, &loop->batch, &done, &loop->records,
			       timeout_ns ? 1 : 0, timeout_ns, NULL);
	int error = note_results(loop, done);

	note_records(loop);
	return error ? error : ret;
}

/* Submit the batch, then wait for records, unless there is an error to return. */
static int wait_turn(struct twheel_loop *loop, __u64 timeout_ns)
{
	bool waits;
	int ret;

	do {
		waits = timeout_ns && !loop->batch.nr;
		ret = turn(loop, waits ? timeout_ns : 0);
	} while (!ret && (loop->batch.nr || (timeout_ns && !waits)));
	return ret;
}

/* If a later deadline was stored while the event expired: arm it again, return true. */
static bool was_postponed(struct twheel_loop *loop, const struct slot *slot,
			  const struct twheel_record *record)
{
	return slot->word && record->reason == TWHEEL_EXPIRED &&
	       twheel_deadline_ns(loop->wheel->words, slot->word - 1) > record->due_ns &&
	       !twheel_timeout_start_deadline(loop, slot->timeout, slot->word - 1,
					      slot->slack_ns);
}

/* Call the callback for a record.  Returns false if its timeout was stopped or restarted. */
static bool tell(struct twheel_loop *loop, const struct twheel_record *record)
{
	struct slot *slot = slot_of(loop, record->data);
	struct twheel_timeout *timeout;

	if (!slot || !slot->due)
		return false;
	slot->due--;
	if (was_postponed(loop, slot, record))
		return false;
	timeout = slot->timeout;
	if (!slot->id && !slot->due)
		slot_give(loop, slot);
	timeout->callback(timeout, record);
	return true;
}

static int tell_all(struct twheel_loop *loop)
{
	const struct twheel_record *record;
	int nr = 0;

	loop->running = true;
	twheel_for_each_record(record, &loop->records) {
		/* A callback may have called fork(), and have returned in the child, too. */
		if (!*loop->owned)
			break;
		nr += tell(loop, record);
	}
	loop->running = false;
	return nr;
}

/* Submit the commands of callbacks, and those left by a signal.  Returns 0 or the first error. */
static int flush(struct twheel_loop *loop)
{
	int error = 0;

	while (loop->batch.nr && *loop->owned) {
		int done = twheel_submit(loop->wheel, &loop->batch);
		int ret = done < 0 ? done : note_results(loop, done);

		if (!error)
			error = ret;
		if (done < 0)
			break;
	}
	return error;
}

int twheel_loop_run(struct twheel_loop *loop, __u64 timeout_ns)
{
	int ret, error, nr;

	if (!*loop->owned)
		return -ECHILD;
	if (loop->running)
		return -EBUSY;
	ret = wait_turn(loop, timeout_ns);
	nr = tell_all(loop);
	error = flush(loop);
	/* A refused timeout is more important than a signal. */
	if (ret < 0 && ret != -EINTR)
		return ret;
	if (error)
		return error;
	return ret < 0 ? ret : nr;
}

/* --- beginning and end ---------------------------------------------------------------- */

/* Returns the page of &struct twheel_loop.owned, or NULL without memory. */
static bool *map_owned(void)
{
	bool *owned = mmap(NULL, sizeof(*owned), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (owned == MAP_FAILED)
		return NULL;
	if (madvise(owned, sizeof(*owned), MADV_WIPEONFORK)) {
		munmap(owned, sizeof(*owned));
		return NULL;
	}
	*owned = true;
	return owned;
}

/* Frees the memory of a loop. */
static void loop_free(struct twheel_loop *loop)
{
	twheel_batch_destroy(&loop->batch);
	twheel_records_destroy(&loop->records);
	if (loop->owned)
		munmap(loop->owned, sizeof(*loop->owned));
	free(loop->slots);
	free(loop);
}

int twheel_loop_create(struct twheel_loop **loop, struct twheel *wheel)
{
	struct twheel_loop *made = calloc(1, sizeof(*made));

	*loop = NULL;
	if (!made)
		return -ENOMEM;
	made->wheel = wheel;
	twheel_batch_init(&made->batch);
	made->owned = map_owned();
	if (!made->owned || twheel_records_init(&made->records, LOOP_RECORDS)) {
		loop_free(made);
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
	if (*loop->owned)
		twheel_submit(loop->wheel, &loop->batch);
	loop_free(loop);
}

int twheel_loop_fd(const struct twheel_loop *loop)
{
	return loop->wheel->fd;
}
