// SPDX-License-Identifier: GPL-2.0
/* The file: open, close, INFO, CONFIG, poll, epoll, fdinfo, debugfs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/device/util.h"

#include "calls.h"

/* --- open and close --------------------------------------------------------- */

static void prepare_open(struct scene *scene)
{
	scene->files = count_files();
}

static long call_open(struct scene *scene)
{
	(void)scene;
	return result_of(open("/dev/twheel", O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

static void check_open(struct scene *scene, long ret)
{
	if (ret >= 0)
		scene->fd = ret;
	ASSERT_EQ(count_files(), scene->files + (ret >= 0));
}

static const struct walk open_walk = {
	.name = "open",
	.prepare = prepare_open,
	.call = call_open,
	.check = check_open,
	.errors = { ENOMEM, EFAULT },
};

TEST(open_of_the_device)
{
	walk_faults(&open_walk);
}

/* Those of a user have an account, which lives as long as the user has a file. */
static const struct walk open_counted = {
	.name = "open_counted",
	.prepare = prepare_open,
	.call = call_open,
	.check = check_open,
	.errors = { ENOMEM, EFAULT },
};

TEST(open_that_is_counted_to_its_user)
{
	become_counted();
	walk_faults(&open_counted);
}

static void prepare_close(struct scene *scene)
{
	__u64 id;

	scene_open(scene);
	scene->other = scene->fd;
	make_events(scene);
	id = scene_run(scene, make_periodic(0, FAR_NS, FAR_NS, 0));
	scene_run(scene, make_complete(id, 1));
	id = scene_run(scene, make_add(0, FAR_NS, 0));
	scene_run(scene, make_watch(id, 1, 1));
}

static long call_close(struct scene *scene)
{
	return result_of(close(scene->other));
}

/* It cannot fail, and takes all events off their wheels. */
static void check_close(struct scene *scene, long ret)
{
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(fcntl(scene->other, F_GETFD), -1);
	ASSERT_EQ(armed_on_machine(), 0);
	scene->fd = -1;
}

static const struct walk close_walk = {
	.name = "close",
	.prepare = prepare_close,
	.call = call_close,
	.check = check_close,
	.nr_ready = 2,
	.nr = 130,
};

TEST(close_with_all_kinds_of_events)
{
	walk_faults(&close_walk);
}

/* --- INFO and CONFIG -------------------------------------------------------- */

static void prepare_info(struct scene *scene)
{
	struct twheel_info *info;

	prepare_events(scene);
	info = scene_piece(scene, ARGUMENT, sizeof(*info));
	info->size = sizeof(*info);
}

static long call_info(struct scene *scene)
{
	return result_of(ioctl(scene->fd, TWHEEL_IOC_INFO, scene->pieces[ARGUMENT].user));
}

static void check_info(struct scene *scene, long ret)
{
	const struct twheel_info *info = scene->pieces[ARGUMENT].user;

	if (!ret)
		ASSERT_EQ(info->abi, TWHEEL_ABI_VERSION);
}

static const struct walk info_walk = {
	.name = "info",
	.prepare = prepare_info,
	.call = call_info,
	.check = check_info,
	.errors = { EFAULT },
	.nr_ready = 1,
	.nr = 1,
};

TEST(info_of_a_file)
{
	walk_faults(&info_walk);
}

TEST(info_at_the_end_of_memory)
{
	walk_ends(&info_walk, ARGUMENT);
}

static const struct twheel_config before_config = {
	.size = sizeof(before_config),
	.clockid = CLOCK_BOOTTIME,
	.max_events = 1000,
	.slack_ns = 1,
	.nr_deadlines = 3,
};

static void prepare_config(struct scene *scene)
{
	struct twheel_config *config;

	scene_open(scene);
	config = scene_piece(scene, ARGUMENT, sizeof(*config));
	*config = (struct twheel_config){
		.size = sizeof(*config),
		.clockid = CLOCK_MONOTONIC,
		.max_events = 5000,
		.slack_ns = 2,
		.wake_count = 1,
		.nr_deadlines = scene->walk->nr,
	};
}

static long call_config(struct scene *scene)
{
	return result_of(ioctl(scene->fd, TWHEEL_IOC_CONFIG, scene->pieces[ARGUMENT].user));
}

static void check_is_configured(int fd, const struct twheel_config *config)
{
	ASSERT_EQ(fdinfo_number(fd, "clockid"), config->clockid);
	ASSERT_EQ(fdinfo_number(fd, "max_events"), config->max_events);
	ASSERT_EQ(fdinfo_number(fd, "slack_ns"), config->slack_ns);
	ASSERT_EQ(fdinfo_number(fd, "deadlines"), config->nr_deadlines);
}

static void check_words_can_be_mapped(struct scene *scene, __u32 nr)
{
	_Atomic __u64 *words = map_deadlines(scene->fd, nr);

	words[0] = NEVER_NS;
	scene_run(scene, make_deadline_add(0, 0));
	ASSERT_EQ(munmap((void *)words, nr * sizeof(*words)), 0);
}

/* It is all of it as before, or all of it as was asked for. */
static void check_config(struct scene *scene, long ret)
{
	const struct twheel_config *config = scene->pieces[ARGUMENT].user;

	if (ret)
		config = &before_config;
	check_is_configured(scene->fd, config);
	check_words_can_be_mapped(scene, config->nr_deadlines);
}

#define WALK_CONFIG(walk_name, ...)	{				\
	.name = walk_name,						\
	.prepare = prepare_config,					\
	.call = call_config,						\
	.check = check_config,						\
	.errors = { EFAULT, ENOMEM },					\
	.config = &before_config,					\
	__VA_ARGS__							\
}

static const struct walk config_walk = WALK_CONFIG("config", .nr = 1);
static const struct walk config_pages = WALK_CONFIG("config_pages", .nr = 5000);

TEST(config_with_words)
{
	walk_faults(&config_walk);
	walk_faults(&config_pages);
}

TEST(config_at_the_end_of_memory)
{
	walk_ends(&config_walk, ARGUMENT);
}

/* --- poll and epoll --------------------------------------------------------- */

static long call_poll(struct scene *scene)
{
	struct pollfd pollfd = { .fd = scene->fd, .events = POLLIN };

	return result_of(poll(&pollfd, 1, 0));
}

static void check_one(struct scene *scene, long ret)
{
	(void)scene;
	if (ret >= 0)
		ASSERT_EQ(ret, 1);
}

static const struct walk poll_walk = {
	.name = "poll",
	.prepare = prepare_events,
	.call = call_poll,
	.check = check_one,
	.errors = { EFAULT, ENOMEM },
	.nr_ready = 1,
};

TEST(poll_of_a_file)
{
	walk_faults(&poll_walk);
}

static void prepare_epoll(struct scene *scene)
{
	prepare_events(scene);
	scene->other = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_GE(scene->other, 0);
}

static void finish_other(struct scene *scene)
{
	close(scene->other);
}

static long call_epoll_add(struct scene *scene)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	return result_of(epoll_ctl(scene->other, EPOLL_CTL_ADD, scene->fd, &event));
}

/* After a failure it can be added. It tells of what is there, and of what comes. */
static void check_epoll_add(struct scene *scene, long ret)
{
	struct epoll_event event;

	ASSERT_LE(ret, 0);
	if (ret)
		ASSERT_EQ(call_epoll_add(scene), 0);
	ASSERT_EQ(epoll_wait(scene->other, &event, 1, FOR_EVER), 1);
	ASSERT_EQ(epoll_wait(scene->other, &event, 1, 0), 0);
	scene_run(scene, make_add(0, 0, 5000));
	ASSERT_EQ(epoll_wait(scene->other, &event, 1, FOR_EVER), 1);
}

static const struct walk epoll_add = {
	.name = "epoll_ctl",
	.prepare = prepare_epoll,
	.call = call_epoll_add,
	.check = check_epoll_add,
	.finish = finish_other,
	.errors = { EFAULT, ENOMEM },
	.nr_ready = 1,
};

TEST(epoll_ctl_of_a_file)
{
	walk_faults(&epoll_add);
}

static void prepare_epoll_wait(struct scene *scene)
{
	prepare_epoll(scene);
	ASSERT_EQ(call_epoll_add(scene), 0);
	scene_piece(scene, ARGUMENT, sizeof(struct epoll_event));
}

static long call_epoll_wait(struct scene *scene)
{
	return result_of(epoll_wait(scene->other, scene->pieces[ARGUMENT].user, 1, 0));
}

/* An event of epoll that could not be copied is told again. */
static void check_epoll_wait(struct scene *scene, long ret)
{
	struct epoll_event event;

	ASSERT_EQ(epoll_wait(scene->other, &event, 1, 0), ret != 1);
	check_one(scene, ret);
}

static const struct walk epoll_wait_walk = {
	.name = "epoll_wait",
	.prepare = prepare_epoll_wait,
	.call = call_epoll_wait,
	.check = check_epoll_wait,
	.finish = finish_other,
	.errors = { EFAULT },
	.nr_ready = 1,
};

TEST(epoll_wait_for_a_file)
{
	walk_faults(&epoll_wait_walk);
}

/* --- fdinfo and debugfs ----------------------------------------------------- */

static char path[64];

static void prepare_fdinfo(struct scene *scene)
{
	prepare_events(scene);
	scene->files = count_files();
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", scene->fd);
}

static void prepare_debugfs(struct scene *scene)
{
	need_debugfs();
	prepare_events(scene);
	scene->files = count_files();
	snprintf(path, sizeof(path), "/sys/kernel/debug/twheel/cpu0-monotonic");
}

static long call_open_path(struct scene *scene)
{
	(void)scene;
	return result_of(open(path, O_RDONLY | O_CLOEXEC));
}

static void check_open_path(struct scene *scene, long ret)
{
	if (ret >= 0)
		close(ret);
	ASSERT_EQ(count_files(), scene->files);
}

/* procfs says that there is no such file if there is no memory for its inode. */
#define WALK_OPEN(walk_name, ...)	{				\
	.name = walk_name,						\
	.call = call_open_path,						\
	.check = check_open_path,					\
	.errors = { EFAULT, ENOMEM, ENOENT },				\
	.nr_ready = 1,							\
	.nr = 1,							\
	__VA_ARGS__							\
}

static const struct walk fdinfo_open = WALK_OPEN("fdinfo_open", .prepare = prepare_fdinfo);
static const struct walk debugfs_open = WALK_OPEN("debugfs_open", .prepare = prepare_debugfs);

static void open_path(struct scene *scene)
{
	scene->other = call_open_path(scene);
	ASSERT_GE(scene->other, 0);
	scene_piece(scene, RECORDS, 4096);
}

static void prepare_fdinfo_read(struct scene *scene)
{
	prepare_fdinfo(scene);
	open_path(scene);
}

static void prepare_debugfs_read(struct scene *scene)
{
	prepare_debugfs(scene);
	open_path(scene);
}

static long call_read_path(struct scene *scene)
{
	return result_of(read(scene->other, scene->pieces[RECORDS].user, 4096));
}

/* After a failure, the file has all of its text. */
static void check_read_path(struct scene *scene, long ret)
{
	char text[4096];

	if (ret < 0)
		ret = read(scene->other, text, sizeof(text));
	else
		memcpy(text, scene->pieces[RECORDS].user, ret);
	ASSERT_GT(ret, 100);
	ASSERT(memmem(text, ret, "armed:\t", 7));
}

#define WALK_READ_PATH(walk_name, ...)	{				\
	.name = walk_name,						\
	.call = call_read_path,						\
	.check = check_read_path,					\
	.finish = finish_other,						\
	.errors = { EFAULT, ENOMEM },					\
	.nr_ready = 1,							\
	.nr = 1,							\
	__VA_ARGS__							\
}

static const struct walk fdinfo_read = WALK_READ_PATH("fdinfo_read",
						      .prepare = prepare_fdinfo_read);
static const struct walk debugfs_read = WALK_READ_PATH("debugfs_read",
						       .prepare = prepare_debugfs_read);

TEST(fdinfo_of_a_file)
{
	walk_faults(&fdinfo_open);
	walk_faults(&fdinfo_read);
}

TEST(debugfs_of_a_wheel)
{
	walk_faults(&debugfs_open);
	walk_faults(&debugfs_read);
}
