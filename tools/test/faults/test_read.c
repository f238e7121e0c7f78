// SPDX-License-Identifier: GPL-2.0
/* read() and LIST: a record that was not copied whole stays, and each is read once. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/device/util.h"

#include "calls.h"

/* --- records ---------------------------------------------------------------- */

static void prepare_read(struct scene *scene)
{
	prepare_events(scene);
	scene_piece(scene, RECORDS, (scene->walk->nr_ready + 1) * sizeof(struct twheel_record));
}

static long call_read(struct scene *scene)
{
	const struct piece *piece = &scene->pieces[RECORDS];

	return result_of(read(scene->fd, piece->user, piece->size));
}

static void check_read(struct scene *scene, long ret)
{
	const size_t size = sizeof(struct twheel_record);

	if (ret < 0)
		return;
	ASSERT_NE(ret, 0);
	ASSERT_EQ(ret % size, 0);
	if (!scene->faulty)
		ASSERT_EQ(ret, scene->walk->nr_ready * size);
	check_records(scene, ret / size, size);
}

#define WALK_READ(walk_name, prepares, calls, ...)	{			\
	.name = walk_name,						\
	.prepare = prepares,						\
	.call = calls,							\
	.check = check_read,						\
	.errors = { EFAULT, ENOMEM },					\
	__VA_ARGS__							\
}

static const struct walk read_one = WALK_READ("read", prepare_read, call_read,
						  .nr_ready = 1, .nr = 2);
static const struct walk read_many = WALK_READ("read_many", prepare_read, call_read,
						   .nr_ready = 130, .nr = 2);

TEST(read_of_a_record)
{
	walk_faults(&read_one);
}

TEST(read_of_records_by_the_hundred)
{
	walk_faults(&read_many);
}

TEST(read_at_the_end_of_memory)
{
	walk_ends(&read_one, RECORDS);
}

TEST(read_of_records_by_the_hundred_at_the_end_of_memory)
{
	walk_ends(&read_many, RECORDS);
}

/* In two parts, neither of which is whole records. */
static long call_readv(struct scene *scene)
{
	const struct piece *piece = &scene->pieces[RECORDS];
	struct iovec parts[] = {
		{ piece->user, 40 },
		{ (char *)piece->user + 40, piece->size - 40 },
	};

	return result_of(readv(scene->fd, parts, 2));
}

static const struct walk readv_parts = WALK_READ("readv", prepare_read, call_readv,
						     .nr_ready = 3);

TEST(readv_in_parts)
{
	walk_faults(&readv_parts);
}

TEST(readv_in_parts_at_the_end_of_memory)
{
	walk_ends(&readv_parts, RECORDS);
}

/* Two periodic events, which are armed again when their records were read. */
static void prepare_periodic(struct scene *scene)
{
	unsigned int i;

	scene_open(scene);
	for (i = 0; i < scene->walk->nr_ready; i++)
		scene_run(scene, make_periodic(0, 0, FAR_NS, i));
	scene_piece(scene, RECORDS, (scene->walk->nr_ready + 1) * sizeof(struct twheel_record));
}

static const struct walk periodic = WALK_READ("read_periodic", prepare_periodic, call_read,
						  .nr_ready = 2);

TEST(read_of_periodic_events)
{
	walk_faults(&periodic);
}

TEST(read_of_periodic_events_at_the_end_of_memory)
{
	walk_ends(&periodic, RECORDS);
}

static void make_completed(struct scene *scene)
{
	unsigned int i;

	scene_open(scene);
	for (i = 0; i < 2; i++) {
		__u64 id = scene_run(scene, make_add(0, FAR_NS, i));

		scene_run(scene, make_watch(id, i, 1));
		scene_run(scene, make_signal(i, 1));
	}
	scene_piece(scene, RECORDS, 3 * sizeof(struct twheel_record));
}

static const struct walk completed = WALK_READ("read_completed", make_completed, call_read,
						   .nr_ready = 2);

TEST(read_of_completed_operations)
{
	walk_faults(&completed);
}

TEST(read_of_completed_operations_at_the_end_of_memory)
{
	walk_ends(&completed, RECORDS);
}

/* --- lists ------------------------------------------------------------------ */

static size_t entry_size(const struct walk *walk)
{
	return walk->stride ? walk->stride : sizeof(struct twheel_entry);
}

static void prepare_list(struct scene *scene)
{
	unsigned int nr = scene->walk->nr_ready + scene->walk->nr;
	struct twheel_list *list;

	prepare_events(scene);
	scene_piece(scene, ENTRIES, nr * entry_size(scene->walk));
	list = scene_piece(scene, ARGUMENT, sizeof(*list));
	*list = (struct twheel_list){
		.size = sizeof(*list),
		.nr = nr,
		.entry_size = entry_size(scene->walk),
		.entries = (uintptr_t)scene->pieces[ENTRIES].user,
	};
	scene->other = nr;
}

static long call_list(struct scene *scene)
{
	return result_of(ioctl(scene->fd, TWHEEL_IOC_LIST, scene->pieces[ARGUMENT].user));
}

/* A list that was cut off goes on behind its last entry. */
static void check_list(struct scene *scene, long ret)
{
	const struct twheel_list *list = scene->pieces[ARGUMENT].user;
	const char *entry = scene->pieces[ENTRIES].user;
	struct twheel_entry rest[200];
	struct twheel_list more = make_list(rest, ARRAY_SIZE(rest));
	long i;

	ASSERT_NE(ret, 0);
	if (!scene->faulty)
		ASSERT_EQ(ret, scene->other);
	for (i = 0; i < ret; i++, entry += entry_size(scene->walk))
		ASSERT_EQ(((const struct twheel_entry *)entry)->data,
			  i < scene->walk->nr_ready ? i : 10000 + i - scene->walk->nr_ready);
	if (ret > 0) {
		more.cursor = list->cursor;
		ASSERT_EQ(device_ioctl(scene->fd, TWHEEL_IOC_LIST, &more), scene->other - ret);
	} else {
		ASSERT_EQ(list->cursor, 0);
	}
}

#define WALK_LIST(walk_name, ...)	{				\
	.name = walk_name,						\
	.prepare = prepare_list,					\
	.call = call_list,						\
	.check = check_list,						\
	.errors = { EFAULT },						\
	__VA_ARGS__							\
}

static const struct walk list_walk = WALK_LIST("list", .nr_ready = 2, .nr = 2);
static const struct walk list_many = WALK_LIST("list_many", .nr_ready = 2, .nr = 130);
static const struct walk list_short = WALK_LIST("list_short", .nr_ready = 2, .nr = 2, .stride = 64);
static const struct walk list_longer = WALK_LIST("list_longer", .nr_ready = 2, .nr = 2,
						 .stride = 80);

TEST(list_of_events)
{
	walk_faults(&list_walk);
	walk_faults(&list_many);
	walk_faults(&list_short);
	walk_faults(&list_longer);
}

TEST(list_at_the_end_of_memory)
{
	walk_ends(&list_walk, ENTRIES);
	walk_ends(&list_short, ENTRIES);
	walk_ends(&list_longer, ENTRIES);
}

TEST(list_whose_argument_is_at_the_end_of_memory)
{
	walk_ends(&list_walk, ARGUMENT);
}
