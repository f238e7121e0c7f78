// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring: SUBMIT, read and poll. If an entry of the ring was not taken, nothing was done; else
 * the completion says what was.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "test/device/util.h"

#include "calls.h"

static struct io_uring ring;

static struct io_uring_sqe *ring_sqe(void)
{
	struct io_uring_sqe *sqe;

	ASSERT_EQ(io_uring_queue_init(4, &ring, 0), 0);
	sqe = io_uring_get_sqe(&ring);
	ASSERT(sqe);
	return sqe;
}

static long call_ring(struct scene *scene)
{
	(void)scene;
	return io_uring_submit(&ring);
}

static int ring_wait(void)
{
	struct io_uring_cqe *cqe;
	int res;

	ASSERT_EQ(io_uring_wait_cqe(&ring, &cqe), 0);
	res = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return res;
}

static void finish_ring(struct scene *scene)
{
	(void)scene;
	io_uring_queue_exit(&ring);
}

/* What a completion may say; the first of them is that of the call without a ring. */
static void check_result(const struct scene *scene, int res)
{
	if (res >= 0)
		return;
	ASSERT(scene->faulty);
	ASSERT(res == -EFAULT || res == -ENOMEM || res == -EAGAIN || res == -ECANCELED);
}

static unsigned int turn(struct scene *scene, struct twheel_cmd *cmds)
{
	(void)scene;
	cmds[0] = make_add(0, 0, 0);
	cmds[1] = make_add(0, FAR_NS, 1);
	cmds[2] = make_watch(0, 1, 1);
	return 3;
}

static void prepare_uring_submit(struct scene *scene)
{
	struct twheel_uring command = { 0 };
	struct io_uring_sqe *sqe;

	prepare_submit(scene);
	command.argument = (uintptr_t)scene->pieces[ARGUMENT].user;
	sqe = ring_sqe();
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, scene->fd, NULL, 0, 0);
	sqe->cmd_op = TWHEEL_IOC_SUBMIT;
	memcpy(sqe->cmd, &command, sizeof(command));
}

static void check_uring_submit(struct scene *scene, long ret)
{
	int res;

	if (ret < 0)
		return;
	ASSERT_EQ(ret, 1);
	res = ring_wait();
	check_result(scene, res);
	check_submit(scene, res);
}

#define WALK_RING(walk_name, ...)	{				\
	.name = walk_name,						\
	.call = call_ring,						\
	.finish = finish_ring,						\
	.errors = { EAGAIN, ENOMEM, EFAULT },				\
	__VA_ARGS__							\
}

static const struct walk submit_walk = WALK_RING("uring_submit", .prepare = prepare_uring_submit,
						 .check = check_uring_submit, .commands = turn);

TEST(uring_submit_of_commands)
{
	walk_faults(&submit_walk);
}

static void prepare_uring_read(struct scene *scene)
{
	unsigned int size = 3 * sizeof(struct twheel_record);

	prepare_events(scene);
	scene_piece(scene, RECORDS, size);
	io_uring_prep_read(ring_sqe(), scene->fd, scene->pieces[RECORDS].user, size, -1);
}

static void check_uring_read(struct scene *scene, long ret)
{
	int res;

	if (ret < 0)
		return;
	res = ring_wait();
	check_result(scene, res);
	if (res >= 0)
		check_records(scene, res / sizeof(struct twheel_record),
			      sizeof(struct twheel_record));
}

static const struct walk read_walk = WALK_RING("uring_read", .prepare = prepare_uring_read,
					       .check = check_uring_read, .nr_ready = 2, .nr = 1);

TEST(uring_read_of_records)
{
	walk_faults(&read_walk);
}

/* Of a file with nothing to read: it waits, or has failed. */
static void prepare_uring_poll(struct scene *scene)
{
	prepare_events(scene);
	io_uring_prep_poll_add(ring_sqe(), scene->fd, POLLIN);
}

static void check_uring_poll(struct scene *scene, long ret)
{
	int res;

	scene_run(scene, make_add(0, 0, 0));
	if (ret < 0)
		return;
	res = ring_wait();
	check_result(scene, res);
	if (res >= 0)
		ASSERT(res & POLLIN);
}

static const struct walk poll_walk = WALK_RING("uring_poll", .prepare = prepare_uring_poll,
					       .check = check_uring_poll, .nr = 1);

static void check_uring_read_later(struct scene *scene, long ret)
{
	scene_run(scene, make_add(0, 0, 0));
	check_uring_read(scene, ret);
}

static const struct walk wait_walk = WALK_RING("uring_read_waiting", .prepare = prepare_uring_read,
					       .check = check_uring_read_later, .nr = 1);

TEST(uring_that_waits_for_a_record)
{
	walk_faults(&poll_walk);
	walk_faults(&wait_walk);
}
