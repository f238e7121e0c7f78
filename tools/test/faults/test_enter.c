// SPDX-License-Identifier: GPL-2.0
/* ENTER: what was done is said, and nothing else was done. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "test/device/util.h"

#include "calls.h"

#define MASK_BYTES	8

static size_t record_size(const struct walk *walk)
{
	return walk->stride ? walk->stride : sizeof(struct twheel_record);
}

/* Two records are READY before; one comes by a command. */
static unsigned int turn(struct scene *scene, struct twheel_cmd *cmds)
{
	(void)scene;
	cmds[0] = make_add(0, FAR_NS, 100);
	cmds[1] = make_watch(0, 1, 1);
	cmds[2] = make_add(0, 0, 50);
	return 3;
}

static void prepare_enter(struct scene *scene)
{
	struct twheel_enter *enter;
	unsigned int nr;
	sigset_t mask;

	/* After the call the mask is again as it was. */
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	prepare_events(scene);
	nr = prepare_commands(scene);
	scene_piece(scene, RECORDS, 4 * record_size(scene->walk));
	memset(scene_piece(scene, MASK, MASK_BYTES), 0, MASK_BYTES);
	enter = scene_piece(scene, ARGUMENT, sizeof(*enter));
	*enter = (struct twheel_enter){
		.size = sizeof(*enter),
		.cmds = (uintptr_t)scene->pieces[COMMANDS].user,
		.records = (uintptr_t)scene->pieces[RECORDS].user,
		.timeout_ns = NSEC_PER_MSEC,
		.nr_cmds = nr,
		.nr_records = 4,
		.min_records = 3,
		.cmd_size = scene->walk->stride ? scene->walk->stride : sizeof(struct twheel_cmd),
		.record_size = record_size(scene->walk),
		.cmds_done = FILL,
		.records_done = FILL,
		.sigmask = (uintptr_t)scene->pieces[MASK].user,
		.sigset_size = MASK_BYTES,
	};
	scene->other = nr;
}

static long call_enter(struct scene *scene)
{
	return result_of(ioctl(scene->fd, TWHEEL_IOC_ENTER, scene->pieces[ARGUMENT].user));
}

/*
 * The results of commands are written when they are run, and those of the call at its end. It was
 * tried before whether that can be done. If it cannot be any more, the call says EFAULT, and what
 * it has done is seen in the commands and the records.
 */
static void find_done(struct scene *scene, __u32 *cmds, __u32 *records)
{
	const char *cmd = scene->pieces[COMMANDS].user;
	const char *record = scene->pieces[RECORDS].user;
	size_t size = scene->walk->stride ? scene->walk->stride : sizeof(struct twheel_cmd);
	size_t i;

	for (*cmds = 0, i = 0; i < (size_t)scene->other; i++, cmd += size)
		*cmds += ((const struct twheel_cmd *)cmd)->result != FILL_RESULT;
	for (*records = 0, i = 0; i < 4; i++, record += record_size(scene->walk))
		*records += !((const struct twheel_record *)record)->flags;
}

static void check_enter(struct scene *scene, long ret)
{
	const struct twheel_enter *enter = scene->pieces[ARGUMENT].user;
	__u32 cmds = enter->cmds_done, records = enter->records_done;
	sigset_t mask;

	if (ret)
		find_done(scene, &cmds, &records);
	if (ret && scene->ends)
		ASSERT_EQ(cmds + records, 0);
	if (!scene->faulty)
		ASSERT_EQ(cmds == (__u32)scene->other && records == 3, true);
	check_commands(scene, cmds);
	check_records(scene, records, record_size(scene->walk));
	sigprocmask(SIG_SETMASK, NULL, &mask);
	ASSERT(sigismember(&mask, SIGUSR1));
}

#define WALK_ENTER(walk_name, ...)	{				\
	.name = walk_name,						\
	.prepare = prepare_enter,					\
	.call = call_enter,						\
	.check = check_enter,						\
	.errors = { EFAULT },						\
	.commands = turn,						\
	.nr_ready = 2,							\
	.nr = 2,							\
	__VA_ARGS__							\
}

static const struct walk enter_walk = WALK_ENTER("enter");
static const struct walk longer = WALK_ENTER("enter_longer", .stride = 80);

TEST(enter_of_a_turn)
{
	walk_faults(&enter_walk);
}

TEST(enter_of_a_turn_with_longer_structures)
{
	walk_faults(&longer);
}

TEST(enter_whose_argument_is_at_the_end_of_memory)
{
	walk_ends(&enter_walk, ARGUMENT);
}

TEST(enter_whose_commands_are_at_the_end_of_memory)
{
	walk_ends(&enter_walk, COMMANDS);
	walk_ends(&longer, COMMANDS);
}

TEST(enter_whose_records_are_at_the_end_of_memory)
{
	walk_ends(&enter_walk, RECORDS);
	walk_ends(&longer, RECORDS);
}

TEST(enter_whose_signal_mask_is_at_the_end_of_memory)
{
	walk_ends(&enter_walk, MASK);
}
