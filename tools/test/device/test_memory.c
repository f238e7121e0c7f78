// SPDX-License-Identifier: GPL-2.0
/* The memory that events take, and the cgroup that is charged for it. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define CGROUPS		"/sys/fs/cgroup"
#define NR_EVENTS	200000
#define BATCH		1000
#define MEBIBYTE	(1024 * 1024LL)

/* An event is at least its data, its time and its place in a list. */
#define LEAST_EVENT_BYTES	32
#define MOST_EVENT_BYTES	96

struct cgroup {
	char path[128];
};

/* A cgroup of version 2, for a child of ours to enter. */
static struct cgroup cgroup_make(void)
{
	struct cgroup cgroup;

	if (access(CGROUPS "/cgroup.controllers", R_OK)) {
		/* Not mounted: do so, for us alone. */
		if (unshare(CLONE_NEWNS) ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", CGROUPS, "cgroup2", 0, NULL))
			test_skip("no cgroup v2");
	}
	write_file(CGROUPS "/cgroup.subtree_control", "+memory");
	snprintf(cgroup.path, sizeof(cgroup.path), CGROUPS "/device_test_%d",
		 getpid());
	if (mkdir(cgroup.path, 0755))
		test_skip("cannot make a cgroup: %s", strerror(errno));
	return cgroup;
}

static void cgroup_file(const struct cgroup *cgroup, const char *name,
			char path[256])
{
	snprintf(path, 256, "%s/%s", cgroup->path, name);
}

static int cgroup_write(const struct cgroup *cgroup, const char *name,
			const char *text)
{
	char path[256];

	cgroup_file(cgroup, name, path);
	return write_file(path, text);
}

/* The number behind a word in a file of the cgroup, or -1. */
static long long cgroup_value(const struct cgroup *cgroup, const char *name,
			      const char *word)
{
	char path[256], line[256], found[64];
	long long value;
	FILE *file;

	cgroup_file(cgroup, name, path);
	file = fopen(path, "r");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %lld", found, &value) == 2 &&
		    !strcmp(found, word)) {
			fclose(file);
			return value;
		}
	}
	fclose(file);
	return -1;
}

static long long kernel_memory(const struct cgroup *cgroup)
{
	return cgroup_value(cgroup, "memory.stat", "kernel");
}

static void cgroup_enter(const struct cgroup *cgroup)
{
	ASSERT_EQ(cgroup_write(cgroup, "cgroup.procs", "0"), 0);
}

static void cgroup_remove(const struct cgroup *cgroup)
{
	ASSERT_EQ(rmdir(cgroup->path), 0);
}

/* One whose memory is limited, as the controller's file has it. */
static struct cgroup cgroup_make_limited(const char *limit)
{
	struct cgroup cgroup = cgroup_make();

	if (cgroup_write(&cgroup, "memory.max", limit)) {
		cgroup_remove(&cgroup);
		test_skip("no memory controller");
	}
	return cgroup;
}

/* --- events ----------------------------------------------------------------- */

/* The kernel memory of a cgroup before and after NR_EVENTS were armed. */
struct usage {
	long long before;
	long long armed;
};

/* Zeroed memory that child processes share. */
static void *map_shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	ASSERT(memory != MAP_FAILED);
	return memory;
}

static void arm_in_cgroup(const struct cgroup *cgroup, struct usage *usage)
{
	size_t done;
	int fd;

	/* Once with few, so that what is needed once is there. */
	cgroup_enter(cgroup);
	fd = device_open_nonblock();
	add_many(fd, 0, FAR_NS, BATCH, NULL);
	close(fd);

	usage->before = kernel_memory(cgroup);
	fd = device_open_nonblock();
	for (done = 0; done < NR_EVENTS; done += BATCH)
		add_many(fd, 0, FAR_NS, BATCH, NULL);
	usage->armed = kernel_memory(cgroup);
	close(fd);

	/* Freed memory may be given back a little later. */
	while (kernel_memory(cgroup) > usage->before + MEBIBYTE)
		usleep(1000);
}

/* The bytes that the kernel charged for each of NR_EVENTS. */
static double measure_event_bytes(void)
{
	struct cgroup cgroup = cgroup_make();
	struct usage *usage = map_shared(sizeof(*usage));
	pid_t pid;

	if (kernel_memory(&cgroup) < 0) {
		cgroup_remove(&cgroup);
		test_skip("memory.stat does not tell the kernel's memory");
	}
	pid = start_child();
	if (!pid) {
		arm_in_cgroup(&cgroup, usage);
		_exit(0);
	}
	wait_child(pid);
	cgroup_remove(&cgroup);
	return (double)(usage->armed - usage->before) / NR_EVENTS;
}

TEST(memory_of_an_event_is_at_most_96_bytes)
{
	double bytes;

	if (is_debug_kernel())
		test_skip("a debug kernel needs more memory");
	bytes = measure_event_bytes();
	printf("# %.1f bytes for each of %d armed events\n", bytes, NR_EVENTS);
	ASSERT_LE(bytes * 10, MOST_EVENT_BYTES * 10);
}

TEST(memory_is_charged_to_the_cgroup_of_the_caller_until_the_close)
{
	ASSERT_GE(measure_event_bytes(), LEAST_EVENT_BYTES);
}

/* Few at a time: what is refused takes long, as the kernel looks for memory first. */
#define LIMITED_BATCH	20

/* Where a child that arms until that fails has come. */
struct progress {
	struct twheel_cmd cmds[LIMITED_BATCH];
	size_t armed;
	int result;
};

/*
 * Nothing in here may need new memory once the limit is reached, as that would
 * end the process: all that is written to is there before.
 */
static void arm_until_refused(int fd, struct progress *progress)
{
	while (!progress->result) {
		size_t i;

		for (i = 0; i < LIMITED_BATCH; i++)
			progress->cmds[i] = make_add(0, FAR_NS, i);
		if (submit(fd, progress->cmds, LIMITED_BATCH) != LIMITED_BATCH)
			_exit(2);
		for (i = 0; i < LIMITED_BATCH; i++) {
			if (!progress->cmds[i].result)
				progress->armed++;
			else
				progress->result = progress->cmds[i].result;
		}
	}
}

TEST(memory_limit_of_a_cgroup_ends_in_a_refused_add)
{
	const long long limit = 8 * MEBIBYTE;
	struct progress *progress = map_shared(sizeof(*progress));
	struct cgroup cgroup = cgroup_make_limited("8M");
	int fd = device_open_nonblock();
	struct counters counters;
	pid_t pid;

	pid = start_child();
	if (!pid) {
		cgroup_enter(&cgroup);
		arm_until_refused(fd, progress);
		_exit(0);
	}
	wait_child(pid);
	if (progress->result != -ENOSPC)
		ASSERT_EQ(progress->result, -ENOMEM);
	ASSERT_GT(progress->armed, 0);
	ASSERT_LE(progress->armed, limit / LEAST_EVENT_BYTES);

	/* The events armed before are there; outside of the cgroup, more can be armed. */
	counters = get_counters(fd);
	ASSERT_EQ(counters.added, progress->armed);
	ASSERT_EQ(counters.armed, progress->armed);
	add(fd, 0, 0, 42);
	ASSERT_EQ(wait_record(fd).data, 42);

	ASSERT_EQ(close(fd), 0);
	cgroup_remove(&cgroup);
}

/* --- deadlines -------------------------------------------------------------- */

#define NR_DEADLINES	(1U << 20)

static long configure_deadlines(int fd, __u32 nr)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, nr);

	return device_ioctl(fd, TWHEEL_IOC_CONFIG, &config);
}

/* All pages are charged by CONFIG: a store must not fail for want of memory. */
TEST(memory_of_deadlines_is_charged_to_the_cgroup_of_the_caller)
{
	struct cgroup cgroup = cgroup_make_limited("4M");
	long *result = map_shared(sizeof(*result));
	int fd = device_open_nonblock();
	pid_t pid;

	ASSERT_GT(NR_DEADLINES * sizeof(__u64), 4 * MEBIBYTE);
	pid = start_child();
	if (!pid) {
		cgroup_enter(&cgroup);
		*result = configure_deadlines(fd, NR_DEADLINES);
		_exit(0);
	}
	wait_child(pid);
	ASSERT_EQ(*result, -ENOMEM);
	ASSERT_EQ(fdinfo_number(fd, "deadlines"), -1);

	/* We, outside, can have them; and it did not set anything up. */
	ASSERT_EQ(configure_deadlines(fd, NR_DEADLINES), 0);
	ASSERT_EQ(fdinfo_number(fd, "deadlines"), NR_DEADLINES);
	ASSERT_EQ(close(fd), 0);
	cgroup_remove(&cgroup);
}

/* --- operations ------------------------------------------------------------- */

/* Operations of a round, and what each of them watches. */
#define NR_OPERATIONS	10000
#define NR_WATCHES	3

/*
 * Arm operations, each with watches of keys of its own and one that all share, of
 * which the first completes it.
 */
static void add_operations(int fd, __u64 round)
{
	struct twheel_cmd cmds[(1 + NR_WATCHES) * 100];
	__u64 key = round * NR_OPERATIONS;
	unsigned int done, i;

	for (done = 0; done < NR_OPERATIONS; done += 100) {
		for (i = 0; i < 100; i++, key++) {
			struct twheel_cmd *cmd = &cmds[(1 + NR_WATCHES) * i];

			cmd[0] = make_add(0, FAR_NS, key);
			cmd[1] = make_watch(0, 2 * key, 1);
			cmd[2] = make_level(0, 2 * key + 1, 1);
			cmd[3] = make_watch(0, ~0ULL, 1 + key);
		}
		ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)),
			  ARRAY_SIZE(cmds));
		for (i = 0; i < ARRAY_SIZE(cmds); i++)
			ASSERT_EQ(cmds[i].result, 0);
	}
}

static void complete_operations(int fd, __u64 round)
{
	__u64 key = round * NR_OPERATIONS;
	struct twheel_record records[100];
	struct twheel_cmd cmds[100];
	unsigned int done, i;

	for (done = 0; done < NR_OPERATIONS; done += 100) {
		for (i = 0; i < 100; i++, key++)
			cmds[i] = make_signal(2 * key, 1);
		ASSERT_EQ(submit(fd, cmds, 100), 100);
		for (i = 0; i < 100; i++)
			ASSERT_EQ(cmds[i].result, 1);
		ASSERT_EQ(read_records(fd, records, 100), 100);
	}
}

static void wait_kernel_memory(const struct cgroup *cgroup, long long most)
{
	/* Freed memory may be given back a little later. */
	while (kernel_memory(cgroup) > most)
		usleep(1000);
}

static void complete_in_cgroup(const struct cgroup *cgroup, size_t operations,
			       struct usage *usage)
{
	long long fresh;
	__u64 round;
	int fd;

	cgroup_enter(cgroup);
	fd = device_open_nonblock();
	fresh = kernel_memory(cgroup);
	add_operations(fd, 0);
	usage->armed = kernel_memory(cgroup);
	complete_operations(fd, 0);

	/* With the same context, whose keys are others each time. */
	usage->before = kernel_memory(cgroup);
	for (round = 1; round < operations / NR_OPERATIONS; round++) {
		add_operations(fd, round);
		complete_operations(fd, round);
	}
	wait_kernel_memory(cgroup, usage->before + MEBIBYTE);
	usage->armed -= fresh;
	close(fd);
	wait_kernel_memory(cgroup, fresh + MEBIBYTE);
}

TEST(memory_is_back_after_a_million_operations_that_were_completed_early)
{
	const size_t operations = test_count(1000000);
	struct usage *usage = map_shared(sizeof(*usage));
	struct cgroup cgroup;
	pid_t pid;

	if (is_debug_kernel())
		test_skip("a debug kernel keeps what is freed for a while");
	cgroup = cgroup_make();
	if (kernel_memory(&cgroup) < 0) {
		cgroup_remove(&cgroup);
		test_skip("memory.stat does not tell the kernel's memory");
	}
	pid = start_child();
	if (!pid) {
		complete_in_cgroup(&cgroup, operations, usage);
		_exit(0);
	}
	wait_child(pid);
	cgroup_remove(&cgroup);
	printf("# %.1f bytes for each of %d operations with %d watches and 2 keys\n",
	       (double)usage->armed / NR_OPERATIONS, NR_OPERATIONS, NR_WATCHES);

	/* It is charged: more than events alone would be. */
	ASSERT_GT(usage->armed, (1 + NR_WATCHES) * LEAST_EVENT_BYTES *
		  (long long)NR_OPERATIONS);
}

/* The same as arm_until_refused() with operations of 9 watches each, one at a time. */
static void watch_until_refused(int fd, struct progress *progress)
{
	const size_t nr = 10;

	while (!progress->result) {
		bool is_watched = false;
		size_t i;

		for (i = 0; i < nr; i++)
			progress->cmds[i] = i ? make_watch(0, 1, 1) :
					    make_add(0, FAR_NS, i);
		if (submit(fd, progress->cmds, nr) != (long)nr)
			_exit(2);
		/* Memory can be refused to one watch and be there for the next. */
		for (i = 1; i < nr; i++)
			is_watched |= !progress->cmds[i].result;
		progress->armed += is_watched;
		/* An ADD that fails leaves its WATCHes without an event. */
		for (i = 0; i < nr; i++) {
			int result = progress->cmds[i].result;

			if (result && result != -ENOENT)
				progress->result = result;
		}
	}
}

TEST(memory_limit_of_a_cgroup_ends_in_a_refused_watch)
{
	struct progress *progress = map_shared(sizeof(*progress));
	struct cgroup cgroup = cgroup_make_limited("8M");
	int fd = device_open_nonblock();
	struct counters counters;
	pid_t pid;

	pid = start_child();
	if (!pid) {
		cgroup_enter(&cgroup);
		watch_until_refused(fd, progress);
		_exit(0);
	}
	wait_child(pid);
	ASSERT_EQ(progress->result, -ENOMEM);
	ASSERT_GT(progress->armed, 0);

	/* The watches from before are there, and no others. */
	ASSERT_EQ(signal_key(fd, 1, 1), progress->armed);
	counters = get_counters(fd);
	check_sum(&counters);
	ASSERT_EQ(counters.ready, progress->armed);
	ASSERT_LE(counters.armed, 1);
	ASSERT_EQ(signal_key(fd, 1, 1), 0);

	ASSERT_EQ(close(fd), 0);
	cgroup_remove(&cgroup);
}
