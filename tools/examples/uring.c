// SPDX-License-Identifier: GPL-2.0
/*
 * Timers in a program that does everything by io_uring: commands go to the device as
 * IORING_OP_URING_CMD, and records come by a read that waits in the ring as any other.
 *
 * One submission has all commands that are ready, and one completion of the read has all
 * records that are ready.  Between them the program sleeps in io_uring_enter().
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <liburing.h>

#include <libtwheel.h>

#define NR_EVENTS	1000
#define SPREAD_NS	(200 * TWHEEL_MILLISECOND)

/* &struct io_uring_cqe.user_data */
enum { COMMANDS, RECORDS };

static struct io_uring ring;
static struct twheel *wheel;
static struct twheel_batch batch;
static struct twheel_submit submission;
static struct twheel_record records[64];
static unsigned int seen[NR_EVENTS], submissions, reads;

static void check(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

/* Fill a batch: each event has another time. */
static void prepare(void)
{
	unsigned int i;

	for (i = 0; i < NR_EVENTS; i++) {
		struct twheel_cmd *cmd = twheel_batch_next(&batch);

		if (!cmd)
			errx(1, "no memory for %u commands", NR_EVENTS);
		twheel_prep_add(cmd, (i * 7919ULL) % NR_EVENTS * SPREAD_NS / NR_EVENTS, i, 0);
	}
}

/* Submit the rest of the batch, from one command on. */
static void submit_from(unsigned int first)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	struct twheel_uring argument = { .argument = (unsigned long)&submission };

	submission = (struct twheel_submit){
		.size = sizeof(submission),
		.cmds = (unsigned long)(batch.cmds + first),
		.nr = batch.nr - first,
		.cmd_size = sizeof(*batch.cmds),
	};
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, twheel_fd(wheel), NULL, 0, 0);
	sqe->cmd_op = TWHEEL_IOC_SUBMIT;
	memcpy(sqe->cmd, &argument, sizeof(argument));
	io_uring_sqe_set_data64(sqe, COMMANDS);
	submissions++;
}

static void submit_read(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_read(sqe, twheel_fd(wheel), records, sizeof(records), 0);
	io_uring_sqe_set_data64(sqe, RECORDS);
	reads++;
}

/* Handle a completion.  Returns the number of its records. */
static unsigned int handle(const struct io_uring_cqe *cqe)
{
	static unsigned int done;
	unsigned int i, nr;

	if (io_uring_cqe_get_data64(cqe) == COMMANDS) {
		check(cqe->res, "cannot submit");
		done += cqe->res;
		/* A signal may have interrupted it. */
		if (done < batch.nr)
			submit_from(done);
		return 0;
	}
	check(cqe->res, "cannot read");
	nr = cqe->res / sizeof(records[0]);
	for (i = 0; i < nr; i++) {
		if (records[i].fired_ns < records[i].due_ns)
			errx(1, "event %llu came early", records[i].data);
		seen[records[i].data]++;
	}
	return nr;
}

int main(void)
{
	unsigned int nr = 0, i;

	check(io_uring_queue_init(8, &ring, 0), "cannot make a ring");
	check(twheel_open(&wheel, NULL), "cannot open /dev/twheel");
	if (!twheel_has(wheel, TWHEEL_FEATURE_URING_CMD))
		errx(1, "this kernel's module has no commands by io_uring");
	/* Blocking, so that a read waits in the ring for records. */
	if (fcntl(twheel_fd(wheel), F_SETFL, 0))
		err(1, "F_SETFL");
	twheel_batch_init(&batch);
	prepare();
	submit_from(0);
	submit_read();
	while (nr < NR_EVENTS) {
		struct io_uring_cqe *cqe;
		unsigned int got;

		check(io_uring_submit(&ring), "cannot enter the ring");
		check(io_uring_wait_cqe(&ring, &cqe), "cannot wait");
		got = handle(cqe);
		nr += got;
		if (got && nr < NR_EVENTS)
			submit_read();
		io_uring_cqe_seen(&ring, cqe);
	}
	for (i = 0; i < NR_EVENTS; i++)
		if (seen[i] != 1)
			errx(1, "event %u came %u times", i, seen[i]);
	printf("%u events armed by io_uring, each came once, none early\n", NR_EVENTS);
	fprintf(stderr, "%u submissions of commands, %u reads\n", submissions, reads);
	twheel_batch_destroy(&batch);
	twheel_close(wheel);
	io_uring_queue_exit(&ring);
	return 0;
}
