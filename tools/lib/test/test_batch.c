// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Batches.
 */
#include "wheel.h"

#define MANY	1000

/* Append ADDs of data from @first on, due at once. */
static void append_adds(struct twheel_batch *batch, unsigned int first, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct twheel_cmd *cmd = twheel_batch_next(batch);

		ASSERT(cmd);
		twheel_prep_add(cmd, 0, first + i, 0);
	}
}

/* Check that data from @first on is to be read, in order, and nothing else. */
static void check_data(struct twheel *wheel, unsigned int first, unsigned int nr)
{
	struct twheel_records records = make_records(nr + 1);
	const struct twheel_record *record;

	ASSERT_EQ(twheel_read(wheel, &records), nr);
	twheel_for_each_record(record, &records)
		ASSERT_EQ(record->data, first++);
	twheel_records_destroy(&records);
}

TEST(batch_grows_and_each_command_has_its_result)
{
	struct twheel *wheel = open_wheel();
	struct twheel_batch batch;
	unsigned int i;

	twheel_batch_init(&batch);
	ASSERT(!batch.cmds && !batch.nr);
	append_adds(&batch, 0, MANY);
	ASSERT_EQ(batch.nr, MANY);
	ASSERT_GE(batch.room, MANY);
	batch.cmds[7].flags = TWHEEL_LEVEL;
	ASSERT_EQ(twheel_submit(wheel, &batch), MANY);
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(batch.cmds[i].result, i == 7 ? -EINVAL : 0);
		ASSERT_EQ(!batch.cmds[i].id, i == 7);
	}
	ASSERT_EQ(counters_of(wheel).added, MANY - 1);
	twheel_batch_destroy(&batch);
	ASSERT(!batch.cmds && !batch.nr && !batch.room);
	append_adds(&batch, 0, 1);
	twheel_batch_destroy(&batch);
	twheel_close(wheel);
}

TEST(batch_begins_anew_in_the_same_memory)
{
	struct twheel *wheel = open_wheel();
	struct twheel_batch batch;
	unsigned int room;
	void *cmds;

	twheel_batch_init(&batch);
	append_adds(&batch, 0, 50);
	cmds = batch.cmds;
	room = batch.room;
	ASSERT_EQ(twheel_submit(wheel, &batch), 50);
	twheel_batch_clear(&batch);
	check_data(wheel, 0, 50);
	ASSERT_EQ(twheel_submit(wheel, &batch), 0);
	append_adds(&batch, 100, 50);
	ASSERT(batch.cmds == cmds && batch.room == room);
	ASSERT_EQ(twheel_submit(wheel, &batch), 50);
	check_data(wheel, 100, 50);
	twheel_batch_destroy(&batch);
	twheel_close(wheel);
}

TEST(reserve_makes_room_so_that_commands_stay_where_they_are)
{
	struct twheel_batch batch;
	void *cmds;

	twheel_batch_init(&batch);
	append_adds(&batch, 0, 3);
	ASSERT_EQ(twheel_batch_reserve(&batch, MANY), 0);
	ASSERT_EQ(batch.nr, 3);
	ASSERT_GE(batch.room, MANY + 3);
	ASSERT_EQ(batch.cmds[2].data, 2);
	cmds = batch.cmds;
	append_adds(&batch, 3, MANY);
	ASSERT(batch.cmds == cmds);
	ASSERT_EQ(twheel_batch_reserve(&batch, 0), 0);
	twheel_batch_destroy(&batch);
}

TEST(reserve_of_too_much_is_no_memory_and_leaves_the_batch)
{
	struct twheel_batch batch;
	unsigned int room;

	twheel_batch_init(&batch);
	ASSERT_EQ(twheel_batch_reserve(&batch, ~0U), -ENOMEM);
	ASSERT_EQ(twheel_batch_reserve(&batch, 1U << 31), -ENOMEM);
	append_adds(&batch, 0, 1);
	room = batch.room;
	ASSERT_EQ(twheel_batch_reserve(&batch, ~0U), -ENOMEM);
	ASSERT_EQ(twheel_batch_reserve(&batch, 1U << 30), -ENOMEM);
	lack_memory(true);
	ASSERT_EQ(twheel_batch_reserve(&batch, room), -ENOMEM);
	while (batch.nr < room)
		ASSERT(twheel_batch_next(&batch));
	ASSERT(!twheel_batch_next(&batch));
	ASSERT_EQ(batch.nr, room);
	ASSERT_EQ(batch.cmds[0].op, TWHEEL_OP_ADD);
	lack_memory(false);
	ASSERT(twheel_batch_next(&batch));
	twheel_batch_destroy(&batch);
}

TEST(submit_goes_on_after_signals)
{
	struct twheel *wheel = open_wheel();
	struct twheel_batch batch;
	unsigned int i;

	twheel_batch_init(&batch);
	append_adds(&batch, 0, MANY);
	interrupt_next(1);
	cut_next(300);
	interrupt_by_chance(2);
	ASSERT_EQ(twheel_submit(wheel, &batch), MANY);
	interrupt_by_chance(0);
	ASSERT_GE(nr_interrupted(), 2);
	for (i = 0; i < MANY; i++)
		ASSERT(batch.cmds[i].id);
	check_data(wheel, 0, MANY);
	twheel_batch_destroy(&batch);
	twheel_close(wheel);
}

TEST(submit_says_how_many_could_be_run)
{
	struct twheel_cmd *cmds = map_before_hole(3 * sizeof(*cmds));
	struct twheel_batch batch = { .cmds = cmds, .nr = 5, .room = 5 };
	struct twheel *wheel = open_wheel();
	unsigned int i;

	for (i = 0; i < 3; i++)
		twheel_prep_add(&cmds[i], 0, i, 0);
	ASSERT_EQ(twheel_submit(wheel, &batch), 3);
	check_data(wheel, 0, 3);
	batch.cmds = cmds + 3;
	ASSERT_EQ(twheel_submit(wheel, &batch), -EFAULT);
	twheel_close(wheel);
}

TEST(watches_without_id_are_of_the_add_before_them)
{
	struct twheel *wheel = open_wheel();
	struct twheel_batch batch;

	twheel_batch_init(&batch);
	twheel_prep_add(twheel_batch_next(&batch), FAR_NS, 5, 0);
	twheel_cmd_set_quorum(&batch.cmds[0], 2);
	twheel_prep_watch(twheel_batch_next(&batch), 0, 1, 10, 0);
	twheel_prep_watch(twheel_batch_next(&batch), 0, 2, 10, 0);
	twheel_prep_signal(twheel_batch_next(&batch), 1, 10, 0);
	twheel_prep_signal(twheel_batch_next(&batch), 2, 10, 0);
	ASSERT_EQ(twheel_submit(wheel, &batch), 5);
	ASSERT_EQ(batch.cmds[3].result, 0);
	ASSERT_EQ(batch.cmds[4].result, 1);
	twheel_batch_destroy(&batch);
	twheel_close(wheel);
}
