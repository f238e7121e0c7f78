// SPDX-License-Identifier: GPL-2.0
/* Words that are mapped: what could not be mapped can be mapped later, and the words stay. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/device/util.h"

#include "calls.h"

#define WORD_PAGES	3
#define WORD_BYTES	(WORD_PAGES * PAGE_BYTES)
#define NR_WORDS	(WORD_BYTES / sizeof(__u64))

static const struct twheel_config config = {
	.size = sizeof(config),
	.clockid = CLOCK_MONOTONIC,
	.nr_deadlines = NR_WORDS,
};

static long map_words(struct scene *scene)
{
	void *mapping = mmap(NULL, WORD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, scene->fd, 0);

	if (mapping == MAP_FAILED)
		return -errno;
	scene->mapping = mapping;
	return 0;
}

static void prepare_unmapped(struct scene *scene)
{
	scene_open(scene);
	scene->mapping = NULL;
}

static void prepare_mapped(struct scene *scene)
{
	prepare_unmapped(scene);
	ASSERT_EQ(map_words(scene), 0);
}

/* A word on each page is what the kernel reads. */
static void check_words(struct scene *scene)
{
	_Atomic __u64 *words = scene->mapping;
	size_t i;

	for (i = 0; i < NR_WORDS; i += PAGE_BYTES / sizeof(__u64)) {
		__u64 id;

		words[i] = NEVER_NS + i;
		id = scene_run(scene, make_deadline_add(i, 10000 + i));
		ASSERT_EQ(query_time(scene->fd, id), NEVER_NS + i);
	}
}

static void finish_mapped(struct scene *scene)
{
	ASSERT_EQ(munmap(scene->mapping, WORD_BYTES), 0);
}

/*
 * If the kernel fails after it has asked the device, the words count as mapped, and are not
 * replaced any more.
 */
static void check_map(struct scene *scene, long ret)
{
	struct twheel_config again = config;
	long refused;

	if (ret) {
		refused = device_ioctl(scene->fd, TWHEEL_IOC_CONFIG, &again);
		ASSERT(!refused || refused == -EBUSY);
		ASSERT_EQ(map_words(scene), 0);
	}
	check_words(scene);
}

#define WALK_MMAP(walk_name, ...)	{				\
	.name = walk_name,						\
	.config = &config,						\
	.errors = { ENOMEM },						\
	__VA_ARGS__							\
}

static const struct walk map = WALK_MMAP("mmap", .prepare = prepare_unmapped, .call = map_words,
					 .check = check_map, .finish = finish_mapped);

TEST(mmap_of_words)
{
	walk_faults(&map);
}

/* --- unmapping -------------------------------------------------------------- */

static void prepare_used(struct scene *scene)
{
	prepare_mapped(scene);
	check_words(scene);
}

static long call_munmap(struct scene *scene)
{
	return result_of(munmap(scene->mapping, WORD_BYTES));
}

static void check_munmap(struct scene *scene, long ret)
{
	const _Atomic __u64 *words = scene->mapping;

	if (ret) {
		ASSERT_EQ(words[0], NEVER_NS);
		ASSERT_EQ(call_munmap(scene), 0);
	}
	ASSERT_EQ(query_time(scene->fd, scene->ledger.events[1].id),
		  NEVER_NS + PAGE_BYTES / sizeof(__u64));
}

/* In the middle: the kernel needs memory for one mapping more. */
static long call_munmap_middle(struct scene *scene)
{
	return result_of(munmap((char *)scene->mapping + PAGE_BYTES, PAGE_BYTES));
}

static void check_munmap_middle(struct scene *scene, long ret)
{
	_Atomic __u64 *words = scene->mapping;
	size_t page = PAGE_BYTES / sizeof(__u64);

	ASSERT_EQ(words[0], NEVER_NS);
	ASSERT_EQ(words[2 * page], NEVER_NS + 2 * page);
	if (ret)
		ASSERT_EQ(words[page], NEVER_NS + page);
}

static const struct walk unmap = WALK_MMAP("munmap", .prepare = prepare_used, .call = call_munmap,
					   .check = check_munmap);
static const struct walk unmap_middle = WALK_MMAP("munmap_middle", .prepare = prepare_used,
						  .call = call_munmap_middle,
						  .check = check_munmap_middle,
						  .finish = finish_mapped);

TEST(munmap_of_words)
{
	walk_faults(&unmap);
	walk_faults(&unmap_middle);
}

/* --- faults of pages -------------------------------------------------------- */

/* The first store needs page tables. If it gets none, the processor tries again. */
static long call_store(struct scene *scene)
{
	*(_Atomic __u64 *)scene->mapping = 1;
	return 0;
}

static void check_store(struct scene *scene, long ret)
{
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(*(_Atomic __u64 *)scene->mapping, 1);
	check_words(scene);
}

static const struct walk store_walk = WALK_MMAP("word_store", .prepare = prepare_mapped,
						.call = call_store, .check = check_store,
						.finish = finish_mapped, .alone = true);

/* The kernel itself writes to a word, on behalf of another system call. */
static void prepare_pipe(struct scene *scene)
{
	static const __u64 value = NEVER_NS + 5;
	int fds[2];

	prepare_mapped(scene);
	ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
	ASSERT_EQ(write(fds[1], &value, sizeof(value)), sizeof(value));
	close(fds[1]);
	scene->other = fds[0];
}

static long call_copy(struct scene *scene)
{
	return result_of(read(scene->other, scene->mapping, sizeof(__u64)));
}

static void check_copy(struct scene *scene, long ret)
{
	ASSERT_EQ(*(_Atomic __u64 *)scene->mapping, ret > 0 ? NEVER_NS + 5 : 0);
	check_words(scene);
	close(scene->other);
}

static const struct walk copy_walk = {
	.name = "word_copy",
	.prepare = prepare_pipe,
	.call = call_copy,
	.check = check_copy,
	.finish = finish_mapped,
	.config = &config,
	.errors = { EFAULT, ENOMEM },
};

TEST(words_that_are_touched_for_the_first_time)
{
	walk_faults(&store_walk);
	walk_faults(&copy_walk);
}

/* --- fork ------------------------------------------------------------------- */

static long call_fork(struct scene *scene)
{
	pid_t pid = fork();

	if (!pid) {
		*(_Atomic __u64 *)scene->mapping = NEVER_NS + 7;
		_exit(0);
	}
	return result_of(pid);
}

static void check_fork(struct scene *scene, long ret)
{
	if (ret > 0)
		wait_child(ret);
	ASSERT_EQ(*(_Atomic __u64 *)scene->mapping, ret > 0 ? NEVER_NS + 7 : NEVER_NS);
}

static const struct walk fork_walk = {
	.name = "fork",
	.prepare = prepare_used,
	.call = call_fork,
	.check = check_fork,
	.finish = finish_mapped,
	.config = &config,
	.errors = { ENOMEM, EAGAIN },
	.alone = true,
};

TEST(fork_with_words)
{
	walk_faults(&fork_walk);
}
