// SPDX-License-Identifier: GPL-2.0
/* SUBMIT: commands that were not done say so, and have done nothing. */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "test/device/util.h"

#include "calls.h"

#define WALK_SUBMIT(walk_name, ...)	{				\
	.name = walk_name,						\
	.prepare = prepare_submit,					\
	.call = call_submit,						\
	.check = check_submit,						\
	.errors = { EFAULT },						\
	__VA_ARGS__							\
}

static unsigned int one_add(struct scene *scene, struct twheel_cmd *cmds)
{
	cmds[0] = make_add(0, FAR_NS, scene->ledger.nr);
	return 1;
}

static unsigned int many_adds(struct scene *scene, struct twheel_cmd *cmds)
{
	unsigned int i;

	for (i = 0; i < scene->walk->nr; i++)
		cmds[i] = make_add(0, i % 2 ? FAR_NS : 0, i);
	return scene->walk->nr;
}

/* The first event of a context, and so its first page. */
static const struct walk first_add = WALK_SUBMIT("submit_add", .commands = one_add);

TEST(submit_of_the_first_add)
{
	walk_faults(&first_add);
}

TEST(submit_of_the_first_add_at_the_end_of_memory)
{
	walk_ends(&first_add, COMMANDS);
}

TEST(submit_whose_argument_is_at_the_end_of_memory)
{
	walk_ends(&first_add, ARGUMENT);
}

/* Several chunks, and several pages of events. */
static const struct walk many = WALK_SUBMIT("submit_adds", .nr = 130, .commands = many_adds);

TEST(submit_of_adds_by_the_hundred)
{
	walk_faults(&many);
}

TEST(submit_of_adds_by_the_hundred_at_the_end_of_memory)
{
	walk_ends(&many, COMMANDS);
}

/* So many pages that their numbers need a longer array. */
static void fill_pages(struct scene *scene)
{
	unsigned int i;

	for (i = 0; i < 8 * 63; i++)
		scene_run(scene, make_add(0, FAR_NS, i));
}

static const struct walk grow = WALK_SUBMIT("submit_add_ninth_page", .commands = one_add,
					    .before = fill_pages);

TEST(submit_of_an_add_for_which_the_numbers_grow)
{
	walk_faults(&grow);
}

static unsigned int one_operation(struct scene *scene, struct twheel_cmd *cmds)
{
	one_add(scene, cmds);
	cmds[0].quorum = 2;
	return 1;
}

static const struct walk operation = WALK_SUBMIT("submit_add_quorum", .commands = one_operation);

TEST(submit_of_an_add_with_a_quorum)
{
	walk_faults(&operation);
}

/* The first watches of a context: its table of keys, and keys. */
static unsigned int watches(struct scene *scene, struct twheel_cmd *cmds)
{
	unsigned int i;

	one_add(scene, cmds);
	for (i = 1; i <= 3; i++)
		cmds[i] = make_watch(0, i, 1);
	return 4;
}

static const struct walk watching = WALK_SUBMIT("submit_watches", .commands = watches);

TEST(submit_of_watches)
{
	walk_faults(&watching);
}

TEST(submit_of_watches_at_the_end_of_memory)
{
	walk_ends(&watching, COMMANDS);
}

/* What is not added is not counted: the module warns if the last file of a user leaves any. */
static const struct walk add_counted = WALK_SUBMIT("submit_add_counted", .commands = one_add);
static const struct walk watch_counted = WALK_SUBMIT("submit_watches_counted",
						     .commands = watches);

TEST(submit_that_is_counted_to_its_user)
{
	become_counted();
	walk_faults(&add_counted);
	walk_faults(&watch_counted);
}

/* Two READY events, two ARMED ones, one that is periodic, and two operations. */
static __u64 ids[7];

static void make_seven(struct scene *scene)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		ids[i] = scene_run(scene, make_add(0, i < 2 ? 0 : FAR_NS, i));
	ids[4] = scene_run(scene, make_periodic(0, FAR_NS, FAR_NS, 4));
	for (i = 5; i < 7; i++) {
		ids[i] = scene_run(scene, make_add(0, FAR_NS, i));
		scene_run(scene, make_watch(ids[i], i, 1));
	}
}

static unsigned int one_of_the_seven(struct scene *scene, struct twheel_cmd *cmds)
{
	switch (scene->walk->nr) {
	case 0:
		cmds[0] = make_cmd(TWHEEL_OP_CANCEL, ids[0]);
		break;
	case 1:
		cmds[0] = make_cmd(TWHEEL_OP_CANCEL, ids[2]);
		break;
	case 2:
		cmds[0] = make_modify(ids[1], 0, FAR_NS);
		break;
	case 3:
		cmds[0] = make_modify(ids[3], 0, 0);
		break;
	case 4:
		cmds[0] = make_cmd(TWHEEL_OP_QUERY, ids[3]);
		break;
	case 5:
		cmds[0] = make_complete(ids[3], 1);
		break;
	case 6:
		cmds[0] = make_complete(ids[4], 1);
		break;
	case 7:
		cmds[0] = make_signal(5, 1);
		break;
	case 8:
		cmds[0] = make_quiet(6);
		break;
	case 9:
		cmds[0] = make_watch(ids[6], 6, 1);
		break;
	case 10:
		cmds[0] = make_watch(ids[3], 9, 1);
		break;
	default:
		return 0;
	}
	return 1;
}

#define OF_SEVEN	.before = make_seven, .commands = one_of_the_seven

static const struct walk of_seven[] = {
	WALK_SUBMIT("submit_cancel_ready", OF_SEVEN, .nr = 0),
	WALK_SUBMIT("submit_cancel", OF_SEVEN, .nr = 1),
	WALK_SUBMIT("submit_modify_ready", OF_SEVEN, .nr = 2),
	WALK_SUBMIT("submit_modify", OF_SEVEN, .nr = 3),
	WALK_SUBMIT("submit_query", OF_SEVEN, .nr = 4),
	WALK_SUBMIT("submit_complete", OF_SEVEN, .nr = 5),
	WALK_SUBMIT("submit_complete_periodic", OF_SEVEN, .nr = 6),
	WALK_SUBMIT("submit_signal", OF_SEVEN, .nr = 7),
	WALK_SUBMIT("submit_signal_quietly", OF_SEVEN, .nr = 8),
	WALK_SUBMIT("submit_watch_once_more", OF_SEVEN, .nr = 9),
	WALK_SUBMIT("submit_watch_another_key", OF_SEVEN, .nr = 10),
};

TEST(submit_of_one_command_of_each_kind)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(of_seven); i++)
		walk_faults(&of_seven[i]);
}

TEST(submit_of_one_command_of_each_kind_at_the_end_of_memory)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(of_seven); i++)
		walk_ends(&of_seven[i], COMMANDS);
}

/* All of it in one call; the event that is modified becomes the youngest of the READY ones. */
static unsigned int all_of_the_seven(struct scene *scene, struct twheel_cmd *cmds)
{
	unsigned int nr = 0;

	(void)scene;
	cmds[nr++] = make_add(0, FAR_NS, 7);
	cmds[nr++] = make_watch(0, 7, 1);
	cmds[nr++] = make_cmd(TWHEEL_OP_CANCEL, ids[0]);
	cmds[nr++] = make_modify(ids[1], 0, FAR_NS);
	cmds[nr++] = make_cmd(TWHEEL_OP_QUERY, ids[2]);
	cmds[nr++] = make_modify(ids[3], 0, 0);
	cmds[nr++] = make_complete(ids[4], 1);
	cmds[nr++] = make_signal(5, 1);
	cmds[nr++] = make_quiet(6);
	cmds[nr++] = make_cmd(TWHEEL_OP_CANCEL, ids[2]);
	return nr;
}

static const struct walk mixture = WALK_SUBMIT("submit_mixture", .before = make_seven,
					       .commands = all_of_the_seven);

TEST(submit_of_a_mixture)
{
	walk_faults(&mixture);
}

TEST(submit_of_a_mixture_at_the_end_of_memory)
{
	walk_ends(&mixture, COMMANDS);
}

static const struct walk longer = WALK_SUBMIT("submit_longer", .before = make_seven,
					      .commands = all_of_the_seven, .stride = 80);

TEST(submit_of_longer_commands)
{
	walk_faults(&longer);
}

TEST(submit_of_longer_commands_at_the_end_of_memory)
{
	walk_ends(&longer, COMMANDS);
}

/* --- on another clock, and with words --------------------------------------- */

static unsigned int one_cancel_on_set(struct scene *scene, struct twheel_cmd *cmds)
{
	__u64 far_ns = clock_ns(CLOCK_REALTIME) + FAR_NS;

	cmds[0] = make_add(TWHEEL_ABS | TWHEEL_CANCEL_ON_SET, far_ns, scene->ledger.nr);
	return 1;
}

static const struct twheel_config realtime = {
	.size = sizeof(realtime),
	.clockid = CLOCK_REALTIME,
};

static const struct walk on_set = WALK_SUBMIT("submit_add_cancel_on_set", .config = &realtime,
					      .commands = one_cancel_on_set);

TEST(submit_of_an_add_that_the_clock_ends)
{
	walk_faults(&on_set);
}

static const struct twheel_config words = {
	.size = sizeof(words),
	.clockid = CLOCK_MONOTONIC,
	.nr_deadlines = 1,
};

static void set_the_word(struct scene *scene)
{
	_Atomic __u64 *word = map_deadlines(scene->fd, 1);

	*word = NEVER_NS;
	scene->mapping = (void *)word;
}

static void add_by_the_word(struct scene *scene)
{
	set_the_word(scene);
	ids[0] = scene_run(scene, make_deadline_add(0, 0));
}

static void unmap_the_word(struct scene *scene)
{
	ASSERT_EQ(munmap(scene->mapping, PAGE_BYTES), 0);
}

static unsigned int one_word(struct scene *scene, struct twheel_cmd *cmds)
{
	cmds[0] = make_deadline_add(0, scene->ledger.nr);
	return 1;
}

static unsigned int complete_the_first(struct scene *scene, struct twheel_cmd *cmds)
{
	cmds[0] = make_complete(ids[0], scene->ledger.nr);
	return 1;
}

static const struct walk by_word = WALK_SUBMIT("submit_add_by_word", .config = &words,
					       .before = set_the_word, .commands = one_word,
					       .finish = unmap_the_word);
static const struct walk complete_word = WALK_SUBMIT("submit_complete_by_word", .config = &words,
						     .before = add_by_the_word,
						     .commands = complete_the_first,
						     .finish = unmap_the_word);

TEST(submit_of_an_event_whose_time_is_a_word)
{
	walk_faults(&by_word);
	walk_faults(&complete_word);
}
