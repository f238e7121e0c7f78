// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring, (p): reads that wait without a worker, poll, and SUBMIT by
 * IORING_OP_URING_CMD.  Not in the 32-bit program, as Debian has no 32-bit
 * liburing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device.h"
#include "flipped_page.h"
#include "missing_page.h"
#include "stuck.h"
#include "util.h"

#define RING_ENTRIES	64

static void ring_open(struct io_uring *ring, unsigned int flags)
{
	int error = -io_uring_queue_init(RING_ENTRIES, ring, flags);

	if (error == ENOSYS || error == EPERM)
		test_skip("io_uring: %s", strerror(error));
	ASSERT_EQ(-error, 0);
}

static struct io_uring_sqe *ring_sqe(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	ASSERT(sqe);
	return sqe;
}

/* A polling thread takes entries by itself, and what it has not taken note of counts, too. */
static void ring_submit(struct io_uring *ring, int nr)
{
	int submitted = io_uring_submit(ring);

	if (ring->flags & IORING_SETUP_SQPOLL)
		ASSERT_GE(submitted, 0);
	else
		ASSERT_EQ(submitted, nr);
}

struct completion {
	__u64 user_data;
	int res;
	unsigned int flags;
};

/* Wait for a completion and take it off the ring. */
static struct completion ring_wait(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	struct completion copy;

	ASSERT_EQ(io_uring_wait_cqe(ring, &cqe), 0);
	copy = (struct completion){ cqe->user_data, cqe->res, cqe->flags };
	io_uring_cqe_seen(ring, cqe);
	return copy;
}

static void check_no_completion(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;

	ASSERT_EQ(io_uring_peek_cqe(ring, &cqe), -EAGAIN);
}

static struct io_uring_sqe *ring_read(struct io_uring *ring, int fd,
				      struct twheel_record *records, size_t nr,
				      __u64 user_data)
{
	struct io_uring_sqe *sqe = ring_sqe(ring);

	memset(records, FILL, nr * sizeof(*records));
	io_uring_prep_read(sqe, fd, records, nr * sizeof(*records), -1);
	io_uring_sqe_set_data64(sqe, user_data);
	return sqe;
}

/* The threads that io_uring made for what cannot be done without blocking. */
static unsigned int count_workers(void)
{
	struct dirent *entry;
	unsigned int workers = 0;
	DIR *dir = opendir("/proc/self/task");

	ASSERT(dir);
	while ((entry = readdir(dir))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file))
			workers += !strncmp(name, "iou-wrk", 7);
		fclose(file);
	}
	closedir(dir);
	return workers;
}

/* --- reads ------------------------------------------------------------------ */

static void check_read_waits(int open_flags)
{
	int fd = device_open(O_RDWR | open_flags);
	struct twheel_record record;
	struct completion cqe;
	struct io_uring ring;
	__u64 due_ns;

	ring_open(&ring, 0);
	ring_read(&ring, fd, &record, 1, 7);
	ring_submit(&ring, 1);
	check_no_completion(&ring);
	ASSERT_EQ(count_workers(), 0);

	due_ns = monotonic_ns() + SOON_NS;
	add(fd, TWHEEL_ABS, due_ns, 0x1234);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.user_data, 7);
	ASSERT_EQ(cqe.res, sizeof(record));
	check_record(&record);
	ASSERT_EQ(record.due_ns, due_ns);
	ASSERT_EQ(record.data, 0x1234);
	ASSERT_EQ(count_workers(), 0);
	io_uring_queue_exit(&ring);
}

TEST(uring_read_waits_for_a_record_without_a_worker)
{
	check_read_waits(0);
}

/* The kernel then polls, as it does for sockets, rather than give -EAGAIN. */
TEST(uring_read_of_an_o_nonblock_file_waits_likewise)
{
	check_read_waits(O_NONBLOCK);
}

TEST(uring_read_with_rwf_nowait_does_not_wait)
{
	int fd = device_open(O_RDWR);
	struct twheel_record record;
	struct completion cqe;
	struct io_uring ring;

	ring_open(&ring, 0);
	ring_read(&ring, fd, &record, 1, 0)->rw_flags = RWF_NOWAIT;
	ring_submit(&ring, 1);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, -EAGAIN);

	add(fd, 0, 0, 0);
	ring_read(&ring, fd, &record, 1, 0)->rw_flags = RWF_NOWAIT;
	ring_submit(&ring, 1);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, sizeof(record));
	check_record(&record);
	io_uring_queue_exit(&ring);
}

/* As IORING_OP_READ_MULTISHOT of Linux 6.7, which liburing 2.3 does not know. */
#define READ_MULTISHOT	49

/* The kernel tries the read when the event comes, and again when the other call ends. */
TEST(uring_multishot_read_goes_on_after_it_met_a_call_that_was_held)
{
	static _Alignas(4096) char buffers[4096];
	struct io_uring_buf_ring *group = (struct io_uring_buf_ring *)buffers;
	struct io_uring_buf_reg where = { .ring_addr = (uintptr_t)buffers, .ring_entries = 1 };
	int fd = device_open(O_RDWR);
	struct twheel_record record;
	struct io_uring_sqe *sqe;
	struct completion cqe;
	struct io_uring ring;
	struct stuck stuck;

	ring_open(&ring, 0);
	if (io_uring_register_buf_ring(&ring, &where, 0))
		test_skip("no rings of buffers");
	io_uring_buf_ring_init(group);
	io_uring_buf_ring_add(group, &record, sizeof(record), 0, 0, 0);
	io_uring_buf_ring_advance(group, 1);
	sqe = ring_sqe(&ring);
	io_uring_prep_rw(READ_MULTISHOT, sqe, fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	ring_submit(&ring, 1);
	if (!io_uring_peek_cqe(&ring, &(struct io_uring_cqe *){ 0 })) {
		cqe = ring_wait(&ring);
		ASSERT_EQ(cqe.res, -EINVAL);
		test_skip("no multishot reads");
	}
	add(fd, 0, SOON_NS, 7);
	start_stuck(&stuck, fd);
	wait_readable(fd);
	ASSERT_EQ(io_uring_get_events(&ring), 0);
	finish_stuck(&stuck);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, sizeof(record));
	ASSERT_EQ(record.data, 7);
	io_uring_queue_exit(&ring);
}

TEST(uring_read_gets_what_is_ready_at_once)
{
	struct twheel_record records[10];
	int fd = device_open_nonblock();
	struct completion cqe;
	struct io_uring ring;
	size_t i;

	ring_open(&ring, 0);
	add_many(fd, 0, 0, 7, NULL);
	ring_read(&ring, fd, records, 10, 0);
	ring_submit(&ring, 1);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, 7 * sizeof(*records));
	for (i = 0; i < 7; i++) {
		check_record(&records[i]);
		ASSERT_EQ(records[i].data, i);
	}
	check_bytes(&records[7], FILL, 3 * sizeof(*records));
	check_nothing_ready(fd);
	io_uring_queue_exit(&ring);
}

TEST(uring_read_takes_an_offset_as_meaning_nothing)
{
	int fd = device_open_nonblock();
	struct twheel_record record;
	struct completion cqe;
	struct io_uring ring;

	ring_open(&ring, 0);
	add(fd, 0, 0, 5);
	io_uring_prep_read(ring_sqe(&ring), fd, &record, sizeof(record), 0);
	ring_submit(&ring, 1);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, sizeof(record));
	ASSERT_EQ(record.data, 5);
	io_uring_queue_exit(&ring);
}

TEST(uring_readv_gives_records_over_several_buffers)
{
	struct twheel_record records[4];
	struct iovec iovecs[] = {
		{ records, 40 },
		{ (char *)records + 40, 100 },
		{ (char *)records + 140, sizeof(records) - 140 },
	};
	int fd = device_open_nonblock();
	struct completion cqe;
	struct io_uring ring;
	size_t i;

	ring_open(&ring, 0);
	io_uring_prep_readv(ring_sqe(&ring), fd, iovecs, 3, -1);
	ring_submit(&ring, 1);
	check_no_completion(&ring);
	add_many(fd, 0, 0, 4, NULL);
	cqe = ring_wait(&ring);
	ASSERT_GE(cqe.res, (long)sizeof(*records));
	for (i = 0; i < cqe.res / sizeof(*records); i++) {
		check_record(&records[i]);
		ASSERT_EQ(records[i].data, i);
	}
	ASSERT_EQ(get_counters(fd).ready, 4 - i);
	io_uring_queue_exit(&ring);
}

TEST(uring_read_fixed_fills_a_registered_buffer)
{
	struct twheel_record *records = map_pages(PAGE_BYTES);
	struct iovec iovec = { records, PAGE_BYTES };
	int fd = device_open_nonblock();
	struct completion cqe;
	struct io_uring ring;

	ring_open(&ring, 0);
	ASSERT_EQ(io_uring_register_buffers(&ring, &iovec, 1), 0);
	io_uring_prep_read_fixed(ring_sqe(&ring), fd, records, PAGE_BYTES, -1,
				 0);
	ring_submit(&ring, 1);
	check_no_completion(&ring);
	add(fd, 0, SOON_NS, 5);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, sizeof(*records));
	check_record(records);
	ASSERT_EQ(records->data, 5);
	io_uring_queue_exit(&ring);
}

TEST(uring_read_of_a_registered_file)
{
	int fd = device_open_nonblock();
	struct twheel_record record;
	struct completion cqe;
	struct io_uring ring;

	ring_open(&ring, 0);
	ASSERT_EQ(io_uring_register_files(&ring, &fd, 1), 0);
	ring_read(&ring, 0, &record, 1, 0)->flags |= IOSQE_FIXED_FILE;
	ring_submit(&ring, 1);
	check_no_completion(&ring);
	add(fd, 0, SOON_NS, 5);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, sizeof(record));
	check_record(&record);
	io_uring_queue_exit(&ring);
}

TEST(uring_read_into_less_than_a_record_is_refused)
{
	int fd = device_open_nonblock();
	struct twheel_record record;
	struct completion cqe;
	struct io_uring ring;

	ring_open(&ring, 0);
	add(fd, 0, 0, 0);
	io_uring_prep_read(ring_sqe(&ring), fd, &record, sizeof(record) - 1,
			   -1);
	ring_submit(&ring, 1);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, -EINVAL);
	ASSERT_EQ(get_counters(fd).ready, 1);
	io_uring_queue_exit(&ring);
}

TEST(uring_read_into_nothing_mapped_loses_nothing)
{
	int fd = device_open_nonblock();
	struct completion cqe;
	struct io_uring ring;

	ring_open(&ring, 0);
	add(fd, 0, 0, 5);
	io_uring_prep_read(ring_sqe(&ring), fd, (void *)PAGE_BYTES,
			   sizeof(struct twheel_record), -1);
	ring_submit(&ring, 1);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, -EFAULT);
	ASSERT_EQ(wait_record(fd).data, 5);
	io_uring_queue_exit(&ring);
}

TEST(uring_reads_side_by_side_get_each_record_once)
{
	const unsigned int rounds = test_count(200);
	struct twheel_record records[RING_ENTRIES];
	int fd = device_open_nonblock();
	struct io_uring ring;
	unsigned int round, i;

	ring_open(&ring, 0);
	for (round = 0; round < rounds; round++) {
		bool seen[RING_ENTRIES] = { false };

		for (i = 0; i < RING_ENTRIES; i++)
			ring_read(&ring, fd, &records[i], 1, i);
		ring_submit(&ring, RING_ENTRIES);
		for (i = 0; i < RING_ENTRIES; i++)
			add(fd, 0, i % 8 * 100 * NSEC_PER_USEC, i);
		for (i = 0; i < RING_ENTRIES; i++) {
			struct completion cqe = ring_wait(&ring);
			struct twheel_record *record = &records[cqe.user_data];

			ASSERT_EQ(cqe.res, sizeof(*record));
			check_record(record);
			ASSERT_LT(record->data, RING_ENTRIES);
			ASSERT(!seen[record->data]);
			seen[record->data] = true;
		}
		check_no_completion(&ring);
	}
	ASSERT_EQ(get_counters(fd).finished, (__u64)rounds * RING_ENTRIES);
	ASSERT_EQ(count_workers(), 0);
	io_uring_queue_exit(&ring);
}

TEST(uring_read_that_is_cancelled_loses_nothing)
{
	int fd = device_open_nonblock();
	struct twheel_record record;
	struct completion cqes[2];
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int i;

	ring_open(&ring, 0);
	ring_read(&ring, fd, &record, 1, 0);
	ring_submit(&ring, 1);
	sqe = ring_sqe(&ring);
	io_uring_prep_cancel64(sqe, 0, 0);
	io_uring_sqe_set_data64(sqe, 1);
	ring_submit(&ring, 1);
	for (i = 0; i < 2; i++) {
		struct completion cqe = ring_wait(&ring);

		cqes[cqe.user_data] = cqe;
	}
	ASSERT_EQ(cqes[0].res, -ECANCELED);
	ASSERT_EQ(cqes[1].res, 0);
	add(fd, 0, 0, 5);
	ASSERT_EQ(wait_record(fd).data, 5);
	check_bytes(&record, FILL, sizeof(record));
	io_uring_queue_exit(&ring);
}

TEST(uring_that_is_closed_with_a_read_pending_lets_the_context_go)
{
	long long before = armed_on_machine();
	struct twheel_record record;
	struct io_uring ring;
	int fd;

	fd = device_open(O_RDWR);
	ring_open(&ring, 0);
	add_many(fd, 0, FAR_NS, 1000, NULL);
	ring_read(&ring, fd, &record, 1, 0);
	ring_submit(&ring, 1);
	ASSERT_EQ(armed_on_machine(), before + 1000);
	close(fd);
	ASSERT_EQ(armed_on_machine(), before + 1000);
	io_uring_queue_exit(&ring);
	wait_armed_on_machine(before);
}

/* Have a read pending in a ring for as long as this process lives. */
static void __noreturn hold_ring(struct signpost *armed)
{
	int fd = device_open(O_RDWR);
	struct twheel_record record;
	struct io_uring ring;

	ring_open(&ring, 0);
	add_many(fd, 0, FAR_NS, 1000, NULL);
	ring_read(&ring, fd, &record, 1, 0);
	ring_submit(&ring, 1);
	signpost_tell(armed);
	for (;;)
		pause();
}

TEST(uring_of_a_killed_process_lets_the_context_go)
{
	long long before = armed_on_machine();
	struct signpost armed = signpost_make();
	struct io_uring ring;
	pid_t child;

	ring_open(&ring, 0);
	child = start_child();
	if (!child)
		hold_ring(&armed);
	signpost_wait(&armed);
	ASSERT_EQ(armed_on_machine(), before + 1000);
	kill_child(child);
	wait_armed_on_machine(before);
}

/* --- poll ------------------------------------------------------------------- */

TEST(uring_poll_completes_when_a_record_comes)
{
	int fd = device_open_nonblock();
	struct completion cqe;
	struct io_uring ring;
	__u64 due_ns;

	ring_open(&ring, 0);
	io_uring_prep_poll_add(ring_sqe(&ring), fd, POLLIN | POLLOUT);
	ring_submit(&ring, 1);
	check_no_completion(&ring);
	due_ns = monotonic_ns() + SOON_NS;
	add(fd, TWHEEL_ABS, due_ns, 0);
	cqe = ring_wait(&ring);
	ASSERT_GE(monotonic_ns(), due_ns);
	ASSERT_EQ(cqe.res, POLLIN);

	/* Records that are ready are reported at once. */
	io_uring_prep_poll_add(ring_sqe(&ring), fd, POLLIN);
	ring_submit(&ring, 1);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.res, POLLIN);
	wait_record(fd);
	io_uring_queue_exit(&ring);
}

TEST(uring_multishot_poll_completes_for_each_event_that_comes)
{
	int fd = device_open_nonblock();
	struct io_uring ring;
	int i;

	ring_open(&ring, 0);
	io_uring_prep_poll_multishot(ring_sqe(&ring), fd, POLLIN);
	ring_submit(&ring, 1);
	check_no_completion(&ring);
	for (i = 0; i < 20; i++) {
		struct completion cqe;

		add(fd, 0, NSEC_PER_MSEC, i);
		cqe = ring_wait(&ring);
		ASSERT_EQ(cqe.res, POLLIN);
		ASSERT(cqe.flags & IORING_CQE_F_MORE);
		ASSERT_EQ(wait_record(fd).data, i);
		check_nothing_ready(fd);
	}
	check_no_completion(&ring);
	io_uring_queue_exit(&ring);
}

TEST(uring_poll_and_epoll_and_poll_agree)
{
	int fd = device_open_nonblock(), ready;
	struct io_uring ring;

	ring_open(&ring, 0);
	for (ready = 0; ready < 2; ready++) {
		struct io_uring_cqe *cqe;
		int seen;

		if (ready)
			add(fd, 0, 0, 0);
		io_uring_prep_poll_add(ring_sqe(&ring), fd, POLLIN);
		ring_submit(&ring, 1);
		seen = !io_uring_peek_cqe(&ring, &cqe);
		ASSERT_EQ(seen, ready);
		ASSERT_EQ(!!poll_events(fd, 0), ready);
	}
	io_uring_queue_exit(&ring);
}

/* --- IORING_OP_URING_CMD ---------------------------------------------------- */

static bool kernel_has_uring_cmd(struct io_uring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool has;

	ASSERT(probe);
	has = io_uring_opcode_supported(probe, IORING_OP_URING_CMD);
	io_uring_free_probe(probe);
	return has;
}

/* A ring for commands: the test is about this feature. */
static void command_ring_open(struct io_uring *ring, unsigned int flags)
{
	ring_open(ring, flags);
	if (!kernel_has_uring_cmd(ring))
		test_skip("this kernel has no IORING_OP_URING_CMD");
}

/* The command that the entry carries to the module. */
static struct twheel_uring *sqe_command(struct io_uring_sqe *sqe)
{
	return (struct twheel_uring *)sqe->cmd;
}

/* @argument: the address of a struct twheel_submit. */
static struct io_uring_sqe *ring_command(struct io_uring *ring, int fd,
					 __u32 cmd_op, __u64 argument)
{
	struct io_uring_sqe *sqe = ring_sqe(ring);

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = cmd_op;
	sqe_command(sqe)->argument = argument;
	return sqe;
}

static struct twheel_submit make_submit(struct twheel_cmd *cmds, __u32 nr)
{
	return (struct twheel_submit){
		.size = sizeof(struct twheel_submit),
		.cmds = (uintptr_t)cmds,
		.nr = nr,
		.cmd_size = sizeof(*cmds),
	};
}

static struct io_uring_sqe *ring_submit_cmd(struct io_uring *ring, int fd,
					    const struct twheel_submit *submit)
{
	return ring_command(ring, fd, TWHEEL_IOC_SUBMIT, (uintptr_t)submit);
}

/* The result of the only request. */
static int ring_run(struct io_uring *ring)
{
	ring_submit(ring, 1);
	return ring_wait(ring).res;
}

TEST(uring_feature_bit_is_there_where_the_kernel_has_commands)
{
	int fd = device_open_nonblock();
	struct io_uring ring;

	ring_open(&ring, 0);
	ASSERT_EQ(!!(get_info(fd).features & TWHEEL_FEATURE_URING_CMD),
		  kernel_has_uring_cmd(&ring));
}

static void fill_adds(struct twheel_cmd *cmds, size_t nr, __u64 time_ns)
{
	size_t i;

	for (i = 0; i < nr; i++)
		cmds[i] = make_add(0, time_ns, i);
}

static void check_commands(unsigned int ring_flags, unsigned int sqe_flags)
{
	struct twheel_cmd cmds[10];
	struct twheel_submit submit = make_submit(cmds, ARRAY_SIZE(cmds));
	int fd = device_open_nonblock();
	struct io_uring ring;
	size_t i;

	command_ring_open(&ring, ring_flags);
	fill_adds(cmds, ARRAY_SIZE(cmds), FAR_NS);
	cmds[3].reserved = 1;
	ring_submit_cmd(&ring, fd, &submit)->flags |= sqe_flags;
	ASSERT_EQ(ring_run(&ring), ARRAY_SIZE(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		ASSERT_EQ(cmds[i].result, i == 3 ? -EINVAL : 0);
		if (i != 3)
			ASSERT_EQ(query(fd, cmds[i].id, NULL), TWHEEL_ARMED);
	}
	ASSERT_EQ(get_counters(fd).added, ARRAY_SIZE(cmds) - 1);

	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		cmds[i] = make_modify(cmds[i].id, 0, 0);
	ring_submit_cmd(&ring, fd, &submit)->flags |= sqe_flags;
	ASSERT_EQ(ring_run(&ring), ARRAY_SIZE(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		ASSERT_EQ(cmds[i].result, i == 3 ? -ENOENT : 0);
	for (i = 0; i < ARRAY_SIZE(cmds) - 1; i++)
		wait_record(fd);
	check_nothing_ready(fd);
	io_uring_queue_exit(&ring);
}

TEST(uring_cmd_submits_as_the_ioctl_does)
{
	check_commands(0, 0);
}

TEST(uring_cmd_arms_and_modifies_events_by_words)
{
	_Atomic __u64 *words;
	struct twheel_cmd cmds[3];
	struct twheel_submit submit = make_submit(cmds, ARRAY_SIZE(cmds));
	int fd = open_deadlines(3, &words), i;
	struct io_uring ring;
	__u64 id;

	command_ring_open(&ring, 0);
	words[0] = NEVER_NS;
	words[1] = 5;
	for (i = 0; i < 3; i++)
		cmds[i] = make_deadline_add(i + i / 2, i);
	ring_submit_cmd(&ring, fd, &submit);
	ASSERT_EQ(ring_run(&ring), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, 0);
	ASSERT_EQ(cmds[2].result, -EINVAL);
	ASSERT_EQ(wait_record(fd).due_ns, 5);
	check_nothing_ready(fd);

	words[2] = monotonic_ns() + SOON_NS;
	id = cmds[0].id;
	cmds[0] = make_deadline_modify(id, 2);
	submit.nr = 1;
	ring_submit_cmd(&ring, fd, &submit);
	ASSERT_EQ(ring_run(&ring), 1);
	ASSERT_EQ(cmds[0].result, 0);
	words[2] += SOON_NS;
	ASSERT_EQ(wait_record(fd).id, id);
	check_nothing_ready(fd);
	io_uring_queue_exit(&ring);
}

/* As the ioctl; but an inline call goes on after it, and may sleep. */
TEST(uring_cmd_undoes_adds_when_the_array_becomes_read_only_meanwhile)
{
	const unsigned int rounds = test_count(5000);
	int fd = device_open_nonblock();
	struct twheel_submit submit;
	struct flipped page;
	struct io_uring ring;
	long long added = 0;
	unsigned int round;

	command_ring_open(&ring, 0);
	start_flipping(&page);
	submit = make_submit(page.flipped, CMDS_PER_PAGE);
	for (round = 0; round < rounds; round++) {
		int done;

		test_about("round %u", round);
		/* Every other one is READY at once. */
		fill_adds(page.writable, CMDS_PER_PAGE, round % 2 ? 0 : FAR_NS);
		ring_submit_cmd(&ring, fd, &submit);
		done = ring_run(&ring);
		if (done == -EFAULT)
			done = 0;
		ASSERT_GE(done, 0);
		added += done;
		ASSERT_EQ(get_counters(fd).added, added);
		while (done-- > 0)
			ASSERT_EQ(cancel(fd, page.writable[done].id), 0);
	}
	stop_flipping(&page);
	io_uring_queue_exit(&ring);
}

TEST(uring_cmd_submits_from_a_worker)
{
	check_commands(0, IOSQE_ASYNC);
}

TEST(uring_cmd_submits_from_the_polling_thread)
{
	check_commands(IORING_SETUP_SQPOLL, 0);
}

TEST(uring_cmd_submits_by_large_entries)
{
	check_commands(IORING_SETUP_SQE128 | IORING_SETUP_CQE32, 0);
}

TEST(uring_cmd_submits_a_hundred_thousand_commands)
{
	const __u32 nr = test_count(100000);
	struct twheel_cmd *cmds = calloc(nr, sizeof(*cmds));
	struct twheel_submit submit = make_submit(cmds, nr);
	int fd = device_open_nonblock();
	struct io_uring ring;
	size_t i;

	ASSERT(cmds);
	command_ring_open(&ring, 0);
	fill_adds(cmds, nr, FAR_NS);
	ring_submit_cmd(&ring, fd, &submit);
	ASSERT_EQ(ring_run(&ring), nr);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(cmds[i].result, 0);
	ASSERT_EQ(get_counters(fd).armed, nr);
	io_uring_queue_exit(&ring);
}

TEST(uring_cmd_of_no_commands_is_0)
{
	struct twheel_submit submit = make_submit(NULL, 0);
	int fd = device_open_nonblock();
	struct io_uring ring;

	command_ring_open(&ring, 0);
	ring_submit_cmd(&ring, fd, &submit);
	ASSERT_EQ(ring_run(&ring), 0);
	io_uring_queue_exit(&ring);
}

/* A turn of an event loop in one call: arm, and read when it has come. */
TEST(uring_cmd_linked_with_a_read_waits_for_what_it_armed)
{
	struct twheel_cmd cmd = make_add(0, SOON_NS, 0x1234);
	struct twheel_submit submit = make_submit(&cmd, 1);
	int fd = device_open_nonblock();
	struct twheel_record record;
	struct completion cqe;
	struct io_uring ring;

	command_ring_open(&ring, 0);
	ring_submit_cmd(&ring, fd, &submit)->flags |= IOSQE_IO_LINK;
	ring_read(&ring, fd, &record, 1, 1);
	ring_submit(&ring, 2);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.user_data, 0);
	ASSERT_EQ(cqe.res, 1);
	cqe = ring_wait(&ring);
	ASSERT_EQ(cqe.user_data, 1);
	ASSERT_EQ(cqe.res, sizeof(record));
	check_record(&record);
	ASSERT_EQ(record.id, cmd.id);
	io_uring_queue_exit(&ring);
}

TEST(uring_cmd_watches_and_signals)
{
	struct twheel_cmd cmds[] = {
		make_add(0, FAR_NS, 42),
		make_watch(0, 1, 10),
		make_signal(1, 9),
		make_signal(1, 1),
		make_watch(0, 1, 10),
	};
	struct twheel_submit submit = make_submit(cmds, ARRAY_SIZE(cmds));
	int fd = device_open_nonblock();
	struct io_uring ring;

	command_ring_open(&ring, 0);
	ring_submit_cmd(&ring, fd, &submit);
	ASSERT_EQ(ring_run(&ring), ARRAY_SIZE(cmds));
	ASSERT_EQ(cmds[1].result, 0);
	ASSERT_EQ(cmds[2].result, 0);
	ASSERT_EQ(cmds[3].result, 1);
	ASSERT_EQ(cmds[4].result, -EALREADY);
	ASSERT_EQ(wait_completed(fd, 1, 1).id, cmds[0].id);

	/* The next call has no ADD. */
	cmds[0] = make_watch(0, 1, 10);
	submit = make_submit(cmds, 1);
	ring_submit_cmd(&ring, fd, &submit);
	ASSERT_EQ(ring_run(&ring), 1);
	ASSERT_EQ(cmds[0].result, -ENOENT);
	io_uring_queue_exit(&ring);
}

static void check_submit_refused(struct io_uring *ring, int fd,
				 const struct twheel_submit *submit, int error)
{
	struct counters before = get_counters(fd);

	ring_submit_cmd(ring, fd, submit);
	ASSERT_EQ(ring_run(ring), -error);
	check_counters(fd, &before);
}

TEST(uring_cmd_refuses_what_the_ioctl_refuses)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	const struct twheel_submit good = make_submit(&cmd, 1);
	struct twheel_submit bad;
	int fd = device_open_nonblock();
	struct io_uring ring;

	command_ring_open(&ring, 0);
	check_submit_refused(&ring, fd, NULL, EFAULT);
	check_submit_refused(&ring, fd, (void *)PAGE_BYTES, EFAULT);
	bad = good;
	bad.size = 0;
	check_submit_refused(&ring, fd, &bad, EINVAL);
	bad = good;
	bad.flags = 1;
	check_submit_refused(&ring, fd, &bad, EINVAL);
	bad = good;
	bad.cmd_size = sizeof(cmd) - 1;
	check_submit_refused(&ring, fd, &bad, EINVAL);
	bad = good;
	bad.cmds = PAGE_BYTES;
	check_submit_refused(&ring, fd, &bad, EFAULT);
	ASSERT_EQ(cmd.result, FILL_RESULT);
	io_uring_queue_exit(&ring);
}

TEST(uring_cmd_refuses_more_in_the_entry_than_an_address)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct twheel_submit submit = make_submit(&cmd, 1);
	int fd = device_open_nonblock();
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	command_ring_open(&ring, 0);
	sqe = ring_submit_cmd(&ring, fd, &submit);
	sqe_command(sqe)->reserved = 1;
	ASSERT_EQ(ring_run(&ring), -EINVAL);
	sqe = ring_submit_cmd(&ring, fd, &submit);
	sqe_command(sqe)->reserved = 1ULL << 63;
	ASSERT_EQ(ring_run(&ring), -EINVAL);
	ASSERT_EQ(get_counters(fd).added, 0);
	io_uring_queue_exit(&ring);
}

TEST(uring_cmd_refuses_more_in_a_large_entry_than_an_address)
{
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct twheel_submit submit = make_submit(&cmd, 1);
	int fd = device_open_nonblock();
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	command_ring_open(&ring, IORING_SETUP_SQE128);
	sqe = ring_submit_cmd(&ring, fd, &submit);
	memset(sqe + 1, 0, sizeof(*sqe));
	sqe->cmd[79] = 1;
	ASSERT_EQ(ring_run(&ring), -EINVAL);
	ASSERT_EQ(get_counters(fd).added, 0);
	io_uring_queue_exit(&ring);
}

TEST(uring_cmd_refuses_other_operations)
{
	static const __u32 others[] = {
		0, 1, 2, TWHEEL_IOC_INFO, TWHEEL_IOC_CONFIG, TWHEEL_IOC_ENTER,
		TWHEEL_IOC_LIST, ~0U,
	};
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	struct twheel_submit submit = make_submit(&cmd, 1);
	int fd = device_open_nonblock();
	struct io_uring ring;
	size_t i;

	command_ring_open(&ring, 0);
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		test_about("operation %#x", others[i]);
		ring_command(&ring, fd, others[i], (uintptr_t)&submit);
		ASSERT_EQ(ring_run(&ring), -EOPNOTSUPP);
	}
	ASSERT_EQ(get_counters(fd).added, 0);
	io_uring_queue_exit(&ring);
}

/* Submit commands by workers, some from a page that nobody will provide. */
static void __noreturn submit_from_missing_page(struct signpost *begun)
{
	struct missing_page page = missing_page_map();
	struct twheel_cmd cmd = make_add(0, FAR_NS, 0);
	const struct twheel_submit submits[] = {
		make_submit(&cmd, 1), make_submit(page.memory, 1),
	};
	int fd = device_open_nonblock(), i;
	struct io_uring ring;

	command_ring_open(&ring, 0);
	ring_submit_cmd(&ring, fd, &submits[0])->flags |= IOSQE_ASYNC;
	ASSERT_EQ(ring_run(&ring), 1);
	signpost_tell(begun);
	for (i = 0; i < 32; i++) {
		ring_submit_cmd(&ring, fd, &submits[1])->flags |= IOSQE_ASYNC;
		ring_submit(&ring, 1);
	}
	for (;;)
		pause();
}

/* What is queued when it is killed may be run by a worker that cannot be killed any more. */
TEST(uring_cmd_from_a_missing_page_does_not_keep_a_killed_process)
{
	const unsigned int rounds = test_count(500);
	struct signpost begun = signpost_make();
	unsigned int round;
	struct io_uring ring;
	__u64 seed = 1;
	pid_t child;

	command_ring_open(&ring, 0);
	missing_page_map();
	for (round = 0; round < rounds; round++) {
		const __u64 kill_ns = next_random(&seed) % NSEC_PER_MSEC;
		__u64 begun_ns;

		test_about("round %u", round);
		child = start_child();
		if (!child)
			submit_from_missing_page(&begun);
		signpost_wait(&begun);
		begun_ns = monotonic_ns();
		while (monotonic_ns() - begun_ns < kill_ns)
			;
		kill_child(child);
	}
}

TEST(uring_cmds_and_reads_together_end_each_event_once)
{
	const unsigned int rounds = test_count(500);
	struct twheel_record records[RING_ENTRIES];
	struct twheel_cmd cmds[16];
	struct twheel_submit submit = make_submit(cmds, ARRAY_SIZE(cmds));
	int fd = device_open_nonblock();
	unsigned long long read = 0;
	struct io_uring ring;
	unsigned int round;

	command_ring_open(&ring, 0);
	for (round = 0; round < rounds; round++) {
		struct completion cqe;

		fill_adds(cmds, ARRAY_SIZE(cmds),
			  round % 5 * 50 * NSEC_PER_USEC);
		ring_submit_cmd(&ring, fd, &submit)->user_data = RING_ENTRIES;
		ASSERT_EQ(ring_run(&ring), ARRAY_SIZE(cmds));
		ring_read(&ring, fd, records, RING_ENTRIES, 0);
		ring_submit(&ring, 1);
		cqe = ring_wait(&ring);
		ASSERT_GT(cqe.res, 0);
		read += cqe.res / sizeof(*records);
	}
	while (read < (unsigned long long)rounds * ARRAY_SIZE(cmds)) {
		wait_record(fd);
		read++;
	}
	check_nothing_ready(fd);
	ASSERT_EQ(get_counters(fd).finished, read);
	io_uring_queue_exit(&ring);
}

/* --- commands that need a worker, and those that do not ----------------------- */

/* The most commands, and the most watches met, that are run at once. */
#define INLINE	512

/* Submit these in a ring of their own; how many workers there are then. */
static unsigned int workers_of(int fd, struct twheel_cmd *cmds, __u32 nr)
{
	struct twheel_submit submit = make_submit(cmds, nr);
	struct io_uring ring;
	unsigned int workers;

	command_ring_open(&ring, 0);
	ring_submit_cmd(&ring, fd, &submit);
	ASSERT_EQ(ring_run(&ring), nr);
	workers = count_workers();
	io_uring_queue_exit(&ring);
	return workers;
}

TEST(uring_cmd_submits_512_commands_without_a_worker_and_more_by_one)
{
	struct twheel_cmd cmds[INLINE + 1];
	static const __u32 nrs[] = { 1, 48, 49, 96, 500, INLINE, INLINE + 1 };
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(nrs); i++) {
		int fd = device_open_nonblock();

		test_about("%u commands", nrs[i]);
		fill_adds(cmds, nrs[i], FAR_NS);
		ASSERT_EQ(!!workers_of(fd, cmds, nrs[i]), nrs[i] > INLINE);
		for (k = 0; k < nrs[i]; k++)
			ASSERT_EQ(cmds[k].result, 0);
		ASSERT_EQ(get_counters(fd).added, nrs[i]);
	}
}

/* An ADD each and a WATCH of key 1 for @need. */
static void add_watching_many(int fd, size_t nr, __u64 need)
{
	size_t i;

	for (i = 0; i < nr; i++)
		add_watching(fd, 1, need, i);
}

/*
 * A call that is not run at once must not have been begun either: its ADD is there
 * once.
 */
static void check_signal(struct twheel_cmd signal, int ended, bool by_worker)
{
	struct twheel_cmd cmds[2] = { make_add(0, FAR_NS, 7), signal };
	int fd = device_open_nonblock();

	add_watching_many(fd, 3 * INLINE, 10);
	ASSERT_EQ(!!workers_of(fd, cmds, 2), by_worker);
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, ended);
	ASSERT_EQ(get_counters(fd).added, 3 * INLINE + 1);
}

TEST(uring_cmd_signals_very_many_by_a_worker)
{
	check_signal(make_signal(1, 10), 3 * INLINE, true);
}

TEST(uring_cmd_signals_very_many_quietly_by_a_worker)
{
	check_signal(make_quiet(1), 3 * INLINE, true);
}

TEST(uring_cmd_signals_that_satisfy_none_of_very_many_need_no_worker)
{
	check_signal(make_signal(1, 9), 0, false);
	check_signal(make_signal(2, 10), 0, false);
	check_signal(make_quiet(2), 0, false);
}

TEST(uring_cmd_signals_a_few_of_very_many_without_a_worker)
{
	struct twheel_cmd signal = make_signal(1, 1);
	int fd = device_open_nonblock();

	add_watching_many(fd, 3 * INLINE, 10);
	add_watching_many(fd, INLINE, 1);
	ASSERT_EQ(workers_of(fd, &signal, 1), 0);
	ASSERT_EQ(signal.result, INLINE);
}

/* The first one satisfies none. */
TEST(uring_cmd_signals_that_add_up_for_very_many_are_by_a_worker)
{
	struct twheel_cmd cmds[2] = { make_signal(1, 5), make_signal(1, 5) };
	int fd = device_open_nonblock();

	add_watching_many(fd, 3 * INLINE, 10);
	ASSERT_GT(workers_of(fd, cmds, 2), 0);
	ASSERT_EQ(cmds[0].result, 0);
	ASSERT_EQ(cmds[1].result, 3 * INLINE);
}

TEST(uring_cmd_signals_that_end_very_many_together_are_by_a_worker)
{
	struct twheel_cmd cmds[40];
	int fd = device_open_nonblock();
	size_t i, key;

	for (key = 0; key < ARRAY_SIZE(cmds); key++) {
		for (i = 0; i < 20; i++)
			add_watching(fd, key, 1, i);
		cmds[key] = make_signal(key, 1);
	}
	ASSERT_GT(workers_of(fd, cmds, ARRAY_SIZE(cmds)), 0);
	for (key = 0; key < ARRAY_SIZE(cmds); key++)
		ASSERT_EQ(cmds[key].result, 20);
}

/* Add an operation that waits for one of the 64 keys behind @before. */
static __u64 add_watching_64(int fd, __u64 before)
{
	struct twheel_cmd cmds[1 + TWHEEL_MAX_WATCHES] = { make_add(0, FAR_NS, 0) };
	size_t i;

	for (i = 1; i < ARRAY_SIZE(cmds); i++)
		cmds[i] = make_watch(0, before + i, 10);
	ASSERT_EQ(submit(fd, cmds, ARRAY_SIZE(cmds)), ARRAY_SIZE(cmds));
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		ASSERT_EQ(cmds[i].result, 0);
	return cmds[0].id;
}

/* The same, which has expired; its watches are dead. */
static __u64 add_expired_64(int fd, __u64 before)
{
	__u64 id = add_watching_64(fd, before);

	ASSERT_EQ(modify(fd, id, 0, 0), 0);
	ASSERT_EQ(query(fd, id, NULL), TWHEEL_READY);
	return id;
}

/* So many operations have INLINE watches. */
#define OPERATIONS	(INLINE / TWHEEL_MAX_WATCHES)

TEST(uring_cmd_cancels_of_operations_with_many_watches_are_by_a_worker)
{
	struct twheel_cmd cmds[OPERATIONS + 1];
	size_t nr, i;

	for (nr = OPERATIONS; nr <= OPERATIONS + 1; nr++) {
		int fd = device_open_nonblock();

		test_about("%zu operations", nr);
		/* One more is there, and is not cancelled. */
		add_watching_64(fd, 0);
		for (i = 0; i < nr; i++)
			cmds[i] = make_cmd(TWHEEL_OP_CANCEL,
					   add_watching_64(fd, i * 1000));
		ASSERT_EQ(!!workers_of(fd, cmds, nr), nr > OPERATIONS);
		for (i = 0; i < nr; i++)
			ASSERT_EQ(cmds[i].result, 0);
		ASSERT_EQ(get_counters(fd).armed, 1);
	}
}

TEST(uring_cmd_cancels_of_expired_operations_with_many_watches_are_by_a_worker)
{
	struct twheel_cmd cmds[OPERATIONS + 1];
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		cmds[i] = make_cmd(TWHEEL_OP_CANCEL, add_expired_64(fd, i * 1000));
	ASSERT_GT(workers_of(fd, cmds, ARRAY_SIZE(cmds)), 0);
	check_nothing_ready(fd);
}

TEST(uring_cmd_modifies_expired_operations_with_many_watches_by_a_worker)
{
	struct twheel_cmd cmds[OPERATIONS + 1];
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		cmds[i] = make_modify(add_expired_64(fd, i * 1000), 0, FAR_NS);
	ASSERT_GT(workers_of(fd, cmds, ARRAY_SIZE(cmds)), 0);
	ASSERT_EQ(get_counters(fd).armed, ARRAY_SIZE(cmds));
}

TEST(uring_cmd_modifies_armed_operations_with_many_watches_without_a_worker)
{
	struct twheel_cmd cmds[OPERATIONS + 1];
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		cmds[i] = make_modify(add_watching_64(fd, i * 1000), 0, FAR_NS);
	ASSERT_EQ(workers_of(fd, cmds, ARRAY_SIZE(cmds)), 0);
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		ASSERT_EQ(cmds[i].result, 0);
}

TEST(uring_cmd_signals_operations_with_many_watches_quietly_by_a_worker)
{
	size_t nr, i;

	for (nr = OPERATIONS; nr <= OPERATIONS + 1; nr++) {
		struct twheel_cmd quiet = make_quiet(1000);
		int fd = device_open_nonblock();

		test_about("%zu operations", nr);
		/* Key 1000 is the only one that all of them watch. */
		for (i = 0; i < nr; i++)
			add_watching_64(fd, 1000 - (i % 2 ? 1 : TWHEEL_MAX_WATCHES));
		ASSERT_EQ(!!workers_of(fd, &quiet, 1), nr > OPERATIONS);
		ASSERT_EQ(quiet.result, nr);
	}
}
