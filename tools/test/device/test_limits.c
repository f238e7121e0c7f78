// SPDX-License-Identifier: GPL-2.0
/*
 * The limit on the events of a user, over all contexts that he opened.
 *
 * tools/test/limits runs these with a limit that is soon reached.  The tests
 * begin as root and become others.  Events are counted in blocks, and so is the
 * limit, rounded up: what a user may have is exact to a block for each context.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/capability.h>

#include "device.h"
#include "util.h"

/* Events of a block. */
#define BLOCK		63

#define USER		1000
#define OTHER_USER	1001

static char node[64];

/* The limit in whole blocks; the device gets a name that everybody may open. */
static long long prepare(void)
{
	long long limit = module_parameter("max_user_events");
	struct stat status;

	if (geteuid())
		test_skip("needs root");
	if (limit < 0)
		test_skip("no sysfs");
	if (limit > 100000)
		test_skip("needs a small max_user_events, not %lld", limit);
	ASSERT_EQ(stat("/dev/twheel", &status), 0);
	snprintf(node, sizeof(node), "/tmp/twheel_%d", getpid());
	unlink(node);
	umask(0);
	ASSERT_EQ(mknod(node, S_IFCHR | 0666, status.st_rdev), 0);
	return (limit + BLOCK - 1) / BLOCK * BLOCK;
}

static void become(uid_t uid)
{
	ASSERT_EQ(setgroups(0, NULL), 0);
	ASSERT_EQ(setresgid(uid, uid, uid), 0);
	ASSERT_EQ(setresuid(uid, uid, uid), 0);

	/* Else what is ours in /proc is root's. */
	ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
}

static int open_node(void)
{
	int fd = open(node, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	ASSERT_GE(fd, 0);
	return fd;
}

/* Arm events until one is refused, or @most; how many these were. */
static long long fill_up_to(int fd, long long most)
{
	long long nr = 0;

	while (nr < most) {
		struct twheel_cmd cmd = make_add(0, FAR_NS, nr);

		if (run(fd, &cmd)) {
			ASSERT_EQ(cmd.result, -ENOSPC);
			ASSERT_EQ(cmd.id, 0);
			break;
		}
		nr++;
	}
	return nr;
}

static long long fill(int fd, long long limit)
{
	long long nr = fill_up_to(fd, limit + 1);

	ASSERT_LE(nr, limit);
	return nr;
}

static void check_full(int fd)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);

	check_refused(fd, &cmd, ENOSPC);
}

/* Check that a user without events may arm as many as the limit allows. */
static void check_all_free(long long limit)
{
	int fd = open_node();

	ASSERT_EQ(fill(fd, limit), limit);
	close(fd);
}

/* --- what is counted -------------------------------------------------------- */

TEST_NAMED(user_limit_ends_what_one_context_may_have)
{
	long long limit = prepare();
	int fd;

	become(USER);
	fd = open_node();
	ASSERT_EQ(fill(fd, limit), limit);
	check_full(fd);
	ASSERT_GT(get_info(fd).max_events, limit);
}

TEST_NAMED(user_limit_counts_all_contexts_of_a_process)
{
	long long limit = prepare(), sum = 0;
	int fds[5];
	size_t i;

	become(USER);
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = open_node();
		sum += fill_up_to(fds[i], i < 4 ? limit / 5 : limit);
	}
	ASSERT_LE(sum, limit);
	ASSERT_GT(sum, limit - BLOCK * (long long)ARRAY_SIZE(fds));
	check_full(fds[4]);
}

TEST_NAMED(user_limit_counts_all_processes_of_a_user)
{
	struct signpost filled = signpost_make(), end = signpost_make();
	long long limit = prepare(), rest;
	pid_t pid;
	int fd;

	become(USER);
	fd = open_node();
	pid = start_child();
	if (!pid) {
		fd = open_node();
		ASSERT_EQ(fill_up_to(fd, limit / 2), limit / 2);
		signpost_tell(&filled);
		signpost_wait(&end);
		_exit(0);
	}
	signpost_wait(&filled);
	rest = fill(fd, limit);
	ASSERT_LE(rest, limit - limit / 2);
	ASSERT_GT(rest, limit - limit / 2 - 2 * BLOCK);
	check_full(fd);

	/* The other context's share is free as soon as that context is gone. */
	signpost_tell(&end);
	wait_child(pid);
	ASSERT_GT(rest + fill(fd, limit), limit - BLOCK);
}

TEST_NAMED(user_limit_of_one_user_leaves_another_alone)
{
	struct signpost filled = signpost_make(), end = signpost_make();
	long long limit = prepare();
	pid_t pid = start_child();
	int fd;

	if (!pid) {
		become(USER);
		fd = open_node();
		fill(fd, limit);
		signpost_tell(&filled);
		signpost_wait(&end);
		check_full(fd);
		_exit(0);
	}
	signpost_wait(&filled);
	become(OTHER_USER);
	check_all_free(limit);
	signpost_tell(&end);
	wait_child(pid);
}

/* Words are charged by pages, as events of the same size: 64 of them. */
TEST_NAMED(user_limit_counts_words_as_events)
{
	long long limit = prepare(), pages = (1000 + 63) / 64;
	const long long repeated[] = { pages, pages, 1, 0, pages - 1, pages + 1, pages };
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, 0);
	unsigned int i;
	int fd, other;

	ASSERT_EQ(module_parameter("max_user_events"), 1000);
	become(USER);
	fd = open_node();
	config.nr_deadlines = pages * 512 + 1;
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), -ENOSPC);
	/* The refused commands left nothing behind. */
	check_all_free(limit);

	/* Words that replace others are charged for what they have more. */
	for (i = 0; i < ARRAY_SIZE(repeated); i++) {
		config.nr_deadlines = repeated[i] * 512;
		test_about("CONFIG %u, %lld pages", i, repeated[i]);
		ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config),
			  repeated[i] > pages ? -ENOSPC : 0);
	}
	check_full(fd);
	other = open_node();
	check_full(other);
	close(other);
	close(fd);
	check_all_free(limit);
}

/* --- what is free again ----------------------------------------------------- */

TEST_NAMED(user_limit_is_free_again_after_close)
{
	long long limit = prepare();
	unsigned int i;

	become(USER);
	for (i = 0; i < 50; i++) {
		test_about("round %u", i);
		check_all_free(limit);
	}
}

TEST_NAMED(user_limit_is_free_again_after_a_process_was_killed)
{
	struct signpost filled = signpost_make();
	long long limit = prepare();
	unsigned int i;

	become(USER);
	for (i = 0; i < 10; i++) {
		pid_t pid = start_child();

		test_about("round %u", i);
		if (!pid) {
			fill(open_node(), limit);
			signpost_tell(&filled);
			pause();
		}
		signpost_wait(&filled);
		kill_child(pid);
		check_all_free(limit);
	}
}

TEST_NAMED(user_limit_is_free_again_after_cancel)
{
	long long limit = prepare(), nr, i;
	int fd, other;
	__u64 *ids;

	become(USER);
	fd = open_node();
	other = open_node();
	ids = map_pages(limit * sizeof(*ids));
	nr = limit;
	add_many(fd, 0, FAR_NS, nr, ids);
	check_full(other);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(cancel(fd, ids[i]), 0);

	/* A context may keep a block for what comes next. */
	ASSERT_GT(fill(other, limit), limit - 2 * BLOCK);
}

TEST_NAMED(user_limit_is_free_again_after_read)
{
	long long limit = prepare(), nr;
	struct twheel_record *records;
	int fd, other;

	become(USER);
	fd = open_node();
	other = open_node();
	records = map_pages(limit * sizeof(*records));
	nr = limit;
	add_many(fd, 0, 0, nr, NULL);
	check_full(other);
	while (get_counters(fd).finished < nr)
		read_records(fd, records, nr);
	ASSERT_GT(fill(other, limit), limit - 2 * BLOCK);
}

TEST_NAMED(user_limit_leaves_room_within_a_block_that_is_counted)
{
	long long limit = prepare();
	int fd;
	__u64 id;

	become(USER);
	fd = open_node();
	id = add(fd, 0, FAR_NS, 1);
	fill(open_node(), limit);
	ASSERT_EQ(cancel(fd, id), 0);
	id = add(fd, 0, FAR_NS, 1);
	ASSERT_EQ(modify(fd, id, 0, 0), 0);
	ASSERT_EQ(wait_record(fd).id, id);
}

TEST_NAMED(user_limit_counts_periodic_events_with_slack_like_others)
{
	long long limit = prepare(), nr = 0;
	int fd;

	become(USER);
	fd = open_node();
	for (;;) {
		struct twheel_cmd cmd = make_periodic(0, FAR_NS, NSEC_PER_SEC,
						      nr);

		cmd.slack_ns = NSEC_PER_MSEC;
		if (run(fd, &cmd))
			break;
		ASSERT_LE(++nr, limit);
	}
	ASSERT_EQ(nr, limit);
}

/* --- whom the limit binds ----------------------------------------------------------- */

TEST_NAMED(user_limit_does_not_bind_who_may_exceed_resources)
{
	long long limit = prepare();

	ASSERT_EQ(fill_up_to(open_node(), limit + 1000), limit + 1000);
}

TEST_NAMED(user_limit_goes_by_who_opened_the_file)
{
	long long limit = prepare();
	int fd = open_node(), other;

	become(USER);
	ASSERT_EQ(fill_up_to(fd, limit + 1000), limit + 1000);
	other = open_node();
	ASSERT_EQ(fill(other, limit), limit);
}

TEST_NAMED(user_limit_of_a_user_binds_root_who_was_given_the_file)
{
	long long limit = prepare();
	int fd;

	ASSERT_EQ(setresuid(USER, USER, 0), 0);
	fd = open_node();
	ASSERT_EQ(setresuid(0, 0, 0), 0);
	ASSERT_EQ(fill(fd, limit), limit);
	check_full(fd);
}

TEST_NAMED(user_limit_binds_root_without_the_capability)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];
	long long limit = prepare();
	int fd;

	ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
	fd = open_node();
	ASSERT_EQ(fill(fd, limit), limit);
	check_full(fd);
}

TEST_NAMED(user_limit_binds_root_of_a_user_namespace)
{
	long long limit = prepare();
	int fd;

	become(USER);
	if (unshare(CLONE_NEWUSER))
		test_skip("no user namespaces: %s", strerrorname_np(errno));
	ASSERT_EQ(write_file("/proc/self/uid_map", "0 1000 1"), 0);
	ASSERT_EQ(geteuid(), 0);
	fd = open_node();
	ASSERT_EQ(fill(fd, limit), limit);
	check_full(fd);
}

/* Add and cancel in a context of one's own until told. */
static void churn(struct signpost *end, long long limit)
{
	struct pollfd pollfd = { .fd = end->fds[0], .events = POLLIN };
	__u64 seed = getpid();

	while (!poll(&pollfd, 1, 0)) {
		int fd = open_node();
		long long nr;

		nr = fill_up_to(fd, next_random(&seed) % limit);
		ASSERT_LE(nr, limit);
		close(fd);
	}
	_exit(0);
}

TEST_NAMED(user_limit_holds_while_processes_come_and_go_and_none_is_lost)
{
	struct signpost end = signpost_make();
	long long limit = prepare();
	unsigned int i;
	pid_t pids[3];

	become(USER);
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = start_child();
		if (!pids[i])
			churn(&end, limit);
	}
	for (i = 0; i < 300; i++) {
		int fd = open_node();

		fill(fd, limit);
		close(fd);
	}
	signpost_tell(&end);
	for (i = 0; i < ARRAY_SIZE(pids); i++)
		wait_child(pids[i]);
	check_all_free(limit);
}

/* --- watches ---------------------------------------------------------------- */

/* Watches are counted in blocks too. */
#define WATCH_BLOCK	64

#define KEY		1

/* Events and their watches, as long as they are not refused: how many of both. */
static long long fill_watches(int fd)
{
	long long nr = 0;

	for (;;) {
		struct twheel_cmd cmd = make_add(0, FAR_NS, nr);
		unsigned int i;

		if (run(fd, &cmd)) {
			ASSERT_EQ(cmd.result, -ENOSPC);
			return nr;
		}
		nr++;
		/* So that all of them go at the same signal. */
		for (i = 0; i < TWHEEL_MAX_WATCHES; i++) {
			int result = watch(fd, cmd.id, KEY, 1);

			if (result) {
				ASSERT_EQ(result, -ENOSPC);
				return nr;
			}
			nr++;
		}
	}
}

/* Check that events and watches together were limited. */
static void check_limited(long long nr, long long limit)
{
	ASSERT_LE(nr, limit + WATCH_BLOCK);
	ASSERT_GT(nr, limit - BLOCK - WATCH_BLOCK);
}

/* Check that another context may have nearly all. */
static void check_nearly_free(long long limit)
{
	int fd = open_node();

	ASSERT_GT(fill(fd, limit), limit - 2 * BLOCK - 2 * WATCH_BLOCK);
	close(fd);
}

TEST_NAMED(user_limit_counts_watches_like_events)
{
	long long limit = prepare();
	int fd;

	become(USER);
	fd = open_node();
	check_limited(fill_watches(fd), limit);
}

TEST_NAMED(user_limit_refuses_a_watch_and_leaves_the_operation)
{
	long long limit = prepare();
	struct twheel_cmd cmd;
	__u64 id, other;
	int fd;

	become(USER);
	fd = open_node();
	other = add_operation(fd, 0, 41);
	ASSERT_EQ(watch(fd, other, 1, 1), 0);
	id = add_operation(fd, 2, 42);
	ASSERT_EQ(watch(fd, id, 2, 1), 0);
	fill_watches(open_node());
	fill(open_node(), limit);
	/* Those of the block that is counted are not refused. */
	while (!watch(fd, id, 3, 1))
		ASSERT_LT(list_one(fd, id).watches, TWHEEL_MAX_WATCHES);
	cmd = make_watch(id, 4, 1);
	check_refused(fd, &cmd, ENOSPC);
	ASSERT_EQ(signal_key(fd, 4, 1), 0);
	ASSERT_EQ(signal_key(fd, 2, 1), 0);
	ASSERT_EQ(complete(fd, id, 1), 0);
	ASSERT_EQ(wait_completed(fd, 1, 0).id, id);
}

TEST_NAMED(user_limit_is_free_again_after_watches_were_satisfied)
{
	struct twheel_record records[64];
	long long limit = prepare();
	int fd;

	become(USER);
	fd = open_node();
	check_limited(fill_watches(fd), limit);
	ASSERT_GT(signal_key(fd, KEY, 1), 0);
	while (read_records(fd, records, ARRAY_SIZE(records)) > 0)
		;
	check_nearly_free(limit);
	check_limited(fill_watches(fd), limit);
}

TEST_NAMED(user_limit_is_free_again_after_operations_were_cancelled)
{
	long long limit = prepare();
	int fd;

	become(USER);
	fd = open_node();
	check_limited(fill_watches(fd), limit);
	ASSERT_GT(signal_quietly(fd, KEY), 0);
	/* The last may have had no watch. */
	ASSERT_LE(get_counters(fd).armed, 1);
	check_nearly_free(limit);
}

TEST_NAMED(user_limit_is_free_again_after_operations_expired_and_were_read)
{
	long long limit = prepare(), nr, i;
	struct twheel_record *records;
	struct twheel_entry *entries;
	struct twheel_list list;
	int fd;

	become(USER);
	fd = open_node();
	check_limited(fill_watches(fd), limit);
	records = map_pages(limit * sizeof(*records));
	entries = map_pages(limit * sizeof(*entries));
	list = make_list(entries, limit);
	nr = device_ioctl(fd, TWHEEL_IOC_LIST, &list);
	ASSERT_GT(nr, 0);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(modify(fd, entries[i].id, 0, 0), 0);
	wait_ready(fd, nr);
	ASSERT_EQ(read_records(fd, records, limit), nr);
	check_nearly_free(limit);
}

TEST_NAMED(user_limit_is_free_again_after_a_close_with_watches)
{
	long long limit = prepare();
	unsigned int i;

	become(USER);
	for (i = 0; i < 20; i++) {
		int fd = open_node();

		test_about("round %u", i);
		check_limited(fill_watches(fd), limit);
		close(fd);
	}
	check_all_free(limit);
}

TEST_NAMED(user_limit_of_watches_does_not_bind_who_may_exceed_resources)
{
	long long limit = prepare(), nr = 0;
	int fd = open_node();

	while (nr < 3 * limit) {
		__u64 id = add(fd, 0, FAR_NS, nr);
		unsigned int i;

		for (i = 0; i < TWHEEL_MAX_WATCHES; i++, nr++)
			ASSERT_EQ(watch(fd, id, KEY, 1), 0);
	}
}

/* --- a batch that fits is not refused ---------------------------------------------- */

/* A thread that asks for a page for which there is never room. */
struct asking {
	int fd;
	atomic_bool stop;
};

static void *ask_for_a_page(void *arg)
{
	struct asking *asking = arg;

	while (!asking->stop) {
		struct twheel_cmd cmd = make_add(0, FAR_NS, 0);

		ASSERT_EQ(run(asking->fd, &cmd), -ENOSPC);
	}
	return NULL;
}

/* An operation with that many watches, and its ADD and theirs all succeed. */
static __u64 add_with_watches(int fd, unsigned int nr)
{
	struct twheel_cmd cmds[1 + TWHEEL_MAX_WATCHES];
	unsigned int i;

	cmds[0] = make_add(0, FAR_NS, 0);
	for (i = 1; i <= nr; i++)
		cmds[i] = make_watch(0, KEY, 1);
	ASSERT_EQ(submit(fd, cmds, 1 + nr), 1 + nr);
	for (i = 0; i <= nr; i++)
		ASSERT_EQ(cmds[i].result, 0);
	return cmds[0].id;
}

/*
 * A page is larger than what is left, a block of watches is not, as each limit is
 * rounded up by itself: 13 pages and 2 blocks of watches are there, of 1,000.
 */
TEST_NAMED(user_limit_refuses_nobody_who_fits_because_of_one_who_does_not)
{
	const unsigned int rounds = test_count(3000);
	struct asking asking = { 0 };
	unsigned int round;
	pthread_t thread;
	int fd;

	if (prepare() != 16 * BLOCK)
		test_skip("needs max_user_events of 1000");
	become(USER);
	fd = open_node();
	add_with_watches(fd, TWHEEL_MAX_WATCHES);
	cancel(fd, add_with_watches(fd, TWHEEL_MAX_WATCHES));
	asking.fd = open_node();
	ASSERT_EQ(fill_up_to(asking.fd, 12 * BLOCK), 12 * BLOCK);
	check_full(asking.fd);

	thread = start_thread(ask_for_a_page, &asking);
	for (round = 0; round < rounds; round++) {
		__u64 second = add_with_watches(fd, TWHEEL_MAX_WATCHES);
		__u64 third = add_with_watches(fd, 1);

		/* The third block is given back, and charged again in the next round. */
		ASSERT_EQ(cancel(fd, second), 0);
		ASSERT_EQ(cancel(fd, third), 0);
	}
	asking.stop = true;
	join_thread(thread);
}
