// SPDX-License-Identifier: GPL-2.0
/* A context outlives forks and passed files, and the last close frees all of it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "util.h"
#include "waiter.h"

/* --- one context, several holders ------------------------------------------- */

TEST(fork_shares_the_context)
{
	int fd = device_open_nonblock();
	pid_t pid = start_child();

	if (!pid) {
		add(fd, 0, NSEC_PER_MSEC, 42);
		_exit(0);
	}
	ASSERT_EQ(wait_record(fd).data, 42);
	wait_child(pid);
	ASSERT_EQ(get_counters(fd).added, 1);
}

TEST(fork_events_outlive_the_process_that_armed_them)
{
	int fd = device_open_nonblock();
	pid_t pid = start_child();

	if (!pid) {
		add(fd, 0, SOON_NS, 42);
		_exit(0);
	}
	wait_child(pid);
	ASSERT_EQ(get_counters(fd).added, 1);
	ASSERT_EQ(wait_record(fd).data, 42);
}

TEST(fork_a_child_may_cancel_what_its_parent_armed)
{
	int fd = device_open_nonblock();
	__u64 id = add(fd, 0, FAR_NS, 1);
	pid_t pid = start_child();

	if (!pid) {
		ASSERT_EQ(cancel(fd, id), 0);
		_exit(0);
	}
	wait_child(pid);
	ASSERT_EQ(cancel(fd, id), -ENOENT);
}

TEST(dup_shares_the_context)
{
	int fd = device_open_nonblock();
	int copy = dup(fd);
	__u64 id;

	ASSERT_GE(copy, 0);
	id = add(fd, 0, FAR_NS, 1);
	ASSERT_EQ(query(copy, id, NULL), TWHEEL_ARMED);
	ASSERT_EQ(close(fd), 0);
	ASSERT_EQ(modify(copy, id, 0, 0), 0);
	ASSERT_EQ(wait_record(copy).id, id);
}

static void send_fd(int unix_socket, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = "" };
	struct iovec iov = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	ASSERT_EQ(sendmsg(unix_socket, &message, 0), 1);
}

static int receive_fd(int unix_socket)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header;
	int fd;

	ASSERT_EQ(recvmsg(unix_socket, &message, 0), 1);
	header = CMSG_FIRSTHDR(&message);
	ASSERT(header);
	ASSERT_EQ(header->cmsg_type, SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/* Two connected sockets. */
static void make_sockets(int sockets[2])
{
	if (!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return;
	if (errno == EAFNOSUPPORT)
		test_skip("no AF_UNIX");
	ASSERT_EQ(errno, 0);
}

TEST(passing_the_fd_to_another_process_shares_the_context)
{
	int sockets[2];
	pid_t pid;
	int fd;

	make_sockets(sockets);
	pid = start_child();
	if (!pid) {
		fd = device_open_nonblock();
		add(fd, 0, SOON_NS, 42);
		send_fd(sockets[1], fd);
		_exit(0);
	}
	fd = receive_fd(sockets[0]);
	wait_child(pid);
	ASSERT_EQ(wait_record(fd).data, 42);
	ASSERT_EQ(get_counters(fd).added, 1);
}

TEST(passing_the_fd_keeps_the_context_while_it_is_under_way)
{
	int sockets[2];
	int fd;

	make_sockets(sockets);
	fd = device_open_nonblock();
	add(fd, 0, 0, 42);
	send_fd(sockets[1], fd);
	ASSERT_EQ(close(fd), 0);
	fd = receive_fd(sockets[0]);
	ASSERT_EQ(wait_record(fd).data, 42);
}

/* --- close ------------------------------------------------------------------ */

TEST(close_ends_all_armed_events)
{
	const size_t nr = test_count(100000);
	long long armed = armed_on_machine();
	int fd = device_open_nonblock();

	add_many(fd, 0, FAR_NS, nr, NULL);
	ASSERT_EQ(armed_on_machine(), armed + nr);
	ASSERT_EQ(close(fd), 0);
	wait_armed_on_machine(armed);
}

/* Arm events on one CPU that are due soon, and close on another meanwhile. */
static void close_while_due(int arming_cpu, int closing_cpu)
{
	const unsigned int rounds = test_count(1000);
	struct twheel_cmd cmds[50];
	unsigned int round;
	size_t i;

	for (round = 0; round < rounds; round++) {
		__u64 due_ns = monotonic_ns() + 300 * NSEC_PER_USEC;
		size_t nr = round % 2 ? 1 : ARRAY_SIZE(cmds);
		int fd = device_open_nonblock();

		pin_to_cpu(arming_cpu);
		for (i = 0; i < nr; i++)
			cmds[i] = make_add(TWHEEL_ABS,
					   due_ns + i * 10 * NSEC_PER_USEC, i);
		ASSERT_EQ(submit(fd, cmds, nr), nr);
		pin_to_cpu(closing_cpu);
		while (monotonic_ns() < due_ns + round % 50 * 10 *
					NSEC_PER_USEC)
			;
		ASSERT_EQ(close(fd), 0);
	}
}

TEST(close_while_events_expire)
{
	close_while_due(sched_getcpu(), sched_getcpu());
}

TEST(close_while_events_expire_on_another_cpu)
{
	int cpus[2];

	if (get_cpus(cpus, 2) < 2)
		test_skip("one CPU");
	close_while_due(cpus[0], cpus[1]);
}

TEST(close_with_unread_records)
{
	const size_t nr = test_count(10000);
	long long armed = armed_on_machine();
	int fd = device_open_nonblock();

	add_many(fd, 0, 0, nr, NULL);
	wait_ready(fd, nr);
	ASSERT_EQ(close(fd), 0);
	wait_armed_on_machine(armed);
}

TEST(close_of_one_copy_keeps_the_events)
{
	long long armed = armed_on_machine();
	int fd = device_open_nonblock();
	int copy = dup(fd);

	add_many(fd, 0, FAR_NS, 100, NULL);
	ASSERT_EQ(close(fd), 0);
	ASSERT_EQ(armed_on_machine(), armed + 100);
	ASSERT_EQ(close(copy), 0);
	wait_armed_on_machine(armed);
}

TEST(close_while_a_thread_reads_lets_the_read_end)
{
	struct waiter waiter = { .fd = device_open(O_RDWR) };
	pthread_t thread = start_thread(wait_in_read, &waiter);

	wait_waiter_asleep(&waiter);
	add(waiter.fd, 0, SOON_NS, 42);
	ASSERT_EQ(close(waiter.fd), 0);
	join_thread(thread);
	ASSERT_EQ(waiter.ret, 1);
	ASSERT_EQ(waiter.records[0].data, 42);
}

TEST(killing_a_reader_leaves_the_record_to_others)
{
	int fd = device_open(O_RDWR | O_CLOEXEC);
	pid_t pid = start_child();

	if (!pid) {
		struct twheel_record record;

		read_records(fd, &record, 1);
		_exit(0);
	}
	wait_asleep(pid);
	kill_child(pid);
	add(fd, 0, 0, 42);
	ASSERT_EQ(wait_record(fd).data, 42);
}

/* --- processes that end or exec --------------------------------------------- */

/* A child that arms @nr events in a context of its own. */
static void arm_in_child(struct signpost *post, size_t nr, int flags)
{
	int fd = device_open(O_RDWR | flags);

	add_many(fd, 0, FAR_NS, nr, NULL);
	signpost_tell(post);
}

TEST(exit_ends_armed_events)
{
	struct signpost post = signpost_make();
	long long armed = armed_on_machine();
	pid_t pid = start_child();

	if (!pid) {
		arm_in_child(&post, 1000, 0);
		_exit(0);
	}
	signpost_wait(&post);
	wait_child(pid);
	wait_armed_on_machine(armed);
}

TEST(killing_a_process_ends_its_armed_events)
{
	struct signpost post = signpost_make();
	long long armed = armed_on_machine();
	pid_t pid = start_child();

	if (!pid) {
		arm_in_child(&post, 1000, 0);
		pause();
	}
	signpost_wait(&post);
	ASSERT_EQ(armed_on_machine(), armed + 1000);
	kill_child(pid);
	wait_armed_on_machine(armed);
}

/*
 * A child that arms 1,000 events and executes `cat`, which lives until its
 * input ends.  The input's other end is returned.
 */
static int exec_with_events(int flags)
{
	struct signpost post = signpost_make();
	int input[2];
	char byte;

	ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
	if (!start_child()) {
		ASSERT_EQ(dup2(input[0], STDIN_FILENO), STDIN_FILENO);
		arm_in_child(&post, 1000, flags);
		execl("/bin/cat", "cat", NULL);
		ASSERT_EQ(errno, 0);
	}
	signpost_wait(&post);

	/* The last copy of this end is closed by the exec. */
	ASSERT_EQ(close(post.fds[1]), 0);
	ASSERT_EQ(read(post.fds[0], &byte, 1), 0);
	ASSERT_EQ(close(input[0]), 0);
	return input[1];
}

static void need_cat(void)
{
	if (access("/bin/cat", X_OK))
		test_skip("no /bin/cat");
}

TEST(exec_closes_a_file_that_was_opened_so)
{
	long long armed = armed_on_machine();

	need_cat();
	exec_with_events(O_CLOEXEC);
	wait_armed_on_machine(armed);
}

TEST(exec_keeps_a_file_that_was_not_opened_so)
{
	long long armed = armed_on_machine();
	int input;

	need_cat();
	input = exec_with_events(0);
	ASSERT_EQ(armed_on_machine(), armed + 1000);
	ASSERT_EQ(close(input), 0);
	wait_armed_on_machine(armed);
}

/* --- several contexts ------------------------------------------------------- */

TEST(two_contexts_do_not_see_each_other)
{
	int fd = device_open_nonblock(), other = device_open_nonblock();
	struct counters before = get_counters(other);
	__u64 id = add(fd, 0, 0, 1);

	wait_readable(fd);
	check_nothing_ready(other);
	check_counters(other, &before);
	ASSERT_EQ(cancel(other, id), -ENOENT);
	ASSERT_EQ(wait_record(fd).data, 1);
}

TEST(two_contexts_get_their_own_records)
{
	int fds[2] = { device_open_nonblock(), device_open_nonblock() };
	size_t i;

	for (i = 0; i < 2000; i++)
		add(fds[i % 2], 0, (i % 7) * NSEC_PER_MSEC, i);
	for (i = 0; i < 2000; i++)
		ASSERT_EQ(wait_record(fds[i % 2]).data % 2, i % 2);
	check_nothing_ready(fds[0]);
	check_nothing_ready(fds[1]);
}

TEST(many_contexts_come_and_go)
{
	const unsigned int rounds = test_count(2000);
	long long armed = armed_on_machine();
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		int fd = device_open_nonblock();

		add_many(fd, 0, FAR_NS, i % 5, NULL);
		ASSERT_EQ(close(fd), 0);
	}
	wait_armed_on_machine(armed);
}

/* --- what a file of another kind could do ----------------------------------- */

TEST(mmap_is_refused)
{
	int fd = device_open_nonblock();
	void *map = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	ASSERT(map == MAP_FAILED);
	ASSERT_EQ(errno, ENODEV);
	ASSERT_EQ(cancel(fd, add(fd, 0, FAR_NS, 0)), 0);
}

TEST(fsync_is_refused)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(fsync(fd), -1);
	ASSERT_EQ(errno, EINVAL);
	ASSERT_EQ(cancel(fd, add(fd, 0, FAR_NS, 0)), 0);
}

TEST(ftruncate_is_refused)
{
	int fd = device_open_nonblock();

	ASSERT_EQ(ftruncate(fd, 0), -1);
	ASSERT_EQ(errno, EINVAL);
	ASSERT_EQ(cancel(fd, add(fd, 0, FAR_NS, 0)), 0);
}

TEST(an_unprivileged_user_may_use_what_root_has_opened)
{
	int fd = device_open_nonblock();
	__u64 id;

	if (geteuid())
		test_skip("needs root");
	ASSERT_EQ(setresgid(65534, 65534, 65534), 0);
	ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
	id = add(fd, 0, FAR_NS, 1);
	ASSERT_EQ(modify(fd, id, 0, NSEC_PER_MSEC), 0);
	ASSERT_EQ(wait_record(fd).id, id);
	id = add(fd, 0, FAR_NS, 1);
	ASSERT_EQ(cancel(fd, id), 0);
	ASSERT_EQ(get_info(fd).abi, TWHEEL_ABI_VERSION);
}
