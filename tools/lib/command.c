// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Commands: one at a time, and batches of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "private.h"

/* The size of a batch with its first command, and the maximum size. */
#define BATCH_MIN	16U
#define BATCH_MAX	(1U << 30)

/* Run commands.  Returns the number of results written, or an errno if there is none. */
static int run_some(struct twheel *wheel, struct twheel_cmd *cmds, unsigned int nr)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (uintptr_t)cmds,
		.nr = nr,
		.cmd_size = sizeof(*cmds),
	};

	return twheel__ioctl(wheel, TWHEEL_IOC_SUBMIT, &submit);
}

int twheel_run(struct twheel *wheel, struct twheel_cmd *cmd)
{
	int ret = run_some(wheel, cmd, 1);

	return ret < 0 ? ret : cmd->result;
}

int twheel_add(struct twheel *wheel, __u64 time_ns, __u64 data, __u16 flags, __u64 *id)
{
	struct twheel_cmd cmd;
	int ret;

	twheel_prep_add(&cmd, time_ns, data, flags);
	ret = twheel_run(wheel, &cmd);
	if (!ret && id)
		*id = cmd.id;
	return ret;
}

int twheel_modify(struct twheel *wheel, __u64 id, __u64 time_ns, __u16 flags)
{
	struct twheel_cmd cmd;

	twheel_prep_modify(&cmd, id, time_ns, flags);
	return twheel_run(wheel, &cmd);
}

int twheel_cancel(struct twheel *wheel, __u64 id)
{
	struct twheel_cmd cmd;

	twheel_prep_cancel(&cmd, id);
	return twheel_run(wheel, &cmd);
}

int twheel_complete(struct twheel *wheel, __u64 id, __u64 value)
{
	struct twheel_cmd cmd;

	twheel_prep_complete(&cmd, id, value);
	return twheel_run(wheel, &cmd);
}

int twheel_watch(struct twheel *wheel, __u64 id, __u64 key, __u64 need, __u16 flags)
{
	struct twheel_cmd cmd;

	twheel_prep_watch(&cmd, id, key, need, flags);
	return twheel_run(wheel, &cmd);
}

int twheel_signal(struct twheel *wheel, __u64 key, __u64 value, __u16 flags)
{
	struct twheel_cmd cmd;

	twheel_prep_signal(&cmd, key, value, flags);
	return twheel_run(wheel, &cmd);
}

int twheel_query(struct twheel *wheel, __u64 id, __u64 *due_ns)
{
	struct twheel_cmd cmd;
	int ret;

	twheel_prep_query(&cmd, id);
	ret = twheel_run(wheel, &cmd);
	if (ret > 0 && due_ns)
		*due_ns = cmd.time_ns;
	return ret;
}

/* --- batches ---------------------------------------------------------------------- */

int twheel_batch_reserve(struct twheel_batch *batch, unsigned int nr)
{
	unsigned int room = batch->room ? batch->room : BATCH_MIN;
	struct twheel_cmd *cmds;

	if (nr > BATCH_MAX - batch->nr)
		return -ENOMEM;
	while (room - batch->nr < nr)
		room *= 2;
	if (room == batch->room)
		return 0;
	cmds = reallocarray(batch->cmds, room, sizeof(*cmds));
	if (!cmds)
		return -ENOMEM;
	batch->cmds = cmds;
	batch->room = room;
	return 0;
}

struct twheel_cmd *twheel_batch_next(struct twheel_batch *batch)
{
	if (batch->nr == batch->room && twheel_batch_reserve(batch, 1))
		return NULL;
	return &batch->cmds[batch->nr++];
}

void twheel_batch_destroy(struct twheel_batch *batch)
{
	free(batch->cmds);
	twheel_batch_init(batch);
}

int twheel_submit(struct twheel *wheel, struct twheel_batch *batch)
{
	unsigned int done = 0;

	while (done < batch->nr) {
		int ret = run_some(wheel, batch->cmds + done, batch->nr - done);

		if (ret <= 0)
			return done ? (int)done : ret;
		done += ret;
	}
	return done;
}
