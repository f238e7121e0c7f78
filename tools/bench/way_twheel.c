// SPDX-License-Identifier: GPL-2.0
/*
 * Timers by /dev/twheel: SUBMITs of 1, 32 and 256 commands, ENTER, SUBMIT by io_uring,
 * and deadlines in shared memory, which a store moves.  All but ENTER collect by read().
 */
#include <err.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "way.h"

struct twheel_set;

/**
 * struct how - how commands are run
 * @run: runs the commands of the batch.
 * @ring: @run needs an io_uring.
 * @deadlines: times are in shared memory.
 * @slack_ns: the slack of all events.
 */
struct how {
	void (*run)(struct twheel_set *set);
	bool ring;
	bool deadlines;
	__u64 slack_ns;
};

struct twheel_set {
	struct set set;
	const struct how *how;
	int fd;
	struct io_uring ring;
	__u64 *ids;
	struct batch batch;
	__u64 *deadlines;
};

static struct twheel_set *twheel(struct set *set)
{
	return (struct twheel_set *)set;
}

/* --- running commands ------------------------------------------------------- */

static void run_submit(struct twheel_set *set)
{
	batch_submit(set->fd, &set->batch);
}

static void call_enter(struct twheel_set *set, struct twheel_enter *enter)
{
	enter->size = sizeof(*enter);
	enter->cmd_size = sizeof(struct twheel_cmd);
	enter->record_size = sizeof(struct twheel_record);
	if (ioctl(set->fd, TWHEEL_IOC_ENTER, enter))
		err(1, "ENTER");
}

static void run_enter(struct twheel_set *set)
{
	struct twheel_enter enter = {
		.cmds = (unsigned long)set->batch.cmds,
		.nr_cmds = set->batch.nr,
	};

	call_enter(set, &enter);
	expect("commands done", enter.cmds_done, set->batch.nr);
}

static void run_uring(struct twheel_set *set)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (unsigned long)set->batch.cmds,
		.nr = set->batch.nr,
		.cmd_size = sizeof(struct twheel_cmd),
	};
	struct io_uring_sqe *sqe = io_uring_get_sqe(&set->ring);
	struct twheel_uring argument = { .argument = (unsigned long)&submit };
	struct io_uring_cqe *cqe;

	if (!sqe)
		errx(1, "io_uring has no entry left");
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = set->fd;
	sqe->cmd_op = TWHEEL_IOC_SUBMIT;
	memcpy(sqe->cmd, &argument, sizeof(argument));
	if (io_uring_submit_and_wait(&set->ring, 1) != 1 ||
	    io_uring_wait_cqe(&set->ring, &cqe))
		errx(1, "io_uring did not take a command");
	expect("commands done", cqe->res, set->batch.nr);
	io_uring_cqe_seen(&set->ring, cqe);
}

/* Run the batch.  Only ADDs return an id. */
static void flush(struct twheel_set *set)
{
	unsigned int i;

	if (!set->batch.nr)
		return;
	set->how->run(set);
	set->set.calls++;
	batch_check(&set->batch);
	for (i = 0; i < set->batch.nr; i++) {
		const struct twheel_cmd *cmd = &set->batch.cmds[i];

		if (cmd->op == TWHEEL_OP_ADD)
			set->ids[cmd->data] = cmd->id;
	}
	set->batch.nr = 0;
}

static struct twheel_cmd *next_command(struct twheel_set *set, __u16 op)
{
	struct twheel_cmd *cmd;

	if (set->batch.nr == set->set.way->batch)
		flush(set);
	cmd = batch_next(&set->batch);
	cmd->op = op;
	return cmd;
}

/* --- the functions of a way ------------------------------------------------- */

static void twheel_arm(struct set *of, const struct timers *timers)
{
	struct twheel_set *set = twheel(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++) {
		struct twheel_cmd *cmd = next_command(set, TWHEEL_OP_ADD);

		cmd->flags = TWHEEL_ABS;
		cmd->data = timers->timer[i];
		cmd->time_ns = timers->due_ns[i];
	}
	flush(set);
}

static void twheel_cancel(struct set *of, const struct timers *timers)
{
	struct twheel_set *set = twheel(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++)
		next_command(set, TWHEEL_OP_CANCEL)->id =
			set->ids[timers->timer[i]];
	flush(set);
}

static void twheel_rearm(struct set *of, const struct timers *timers)
{
	struct twheel_set *set = twheel(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++) {
		struct twheel_cmd *cmd = next_command(set, TWHEEL_OP_MODIFY);

		cmd->flags = TWHEEL_ABS;
		cmd->id = set->ids[timers->timer[i]];
		cmd->time_ns = timers->due_ns[i];
	}
	flush(set);
}

static void twheel_query(struct set *of, const struct timers *timers)
{
	struct twheel_set *set = twheel(of);
	__u32 i;

	set->batch.expected = TWHEEL_ARMED;
	for (i = 0; i < timers->nr; i++)
		next_command(set, TWHEEL_OP_QUERY)->id =
			set->ids[timers->timer[i]];
	flush(set);
	set->batch.expected = 0;
}

static __u32 take_records(const struct set *of, const struct twheel_record *records,
			  __u32 nr, __u32 *timers)
{
	__u32 i;

	for (i = 0; i < nr; i++) {
		__u64 due_ns = of->due_ns ? of->due_ns[records[i].data] : records[i].due_ns;

		if (records[i].fired_ns < due_ns)
			errx(1, "timer %llu fired %llu ns early", records[i].data,
			     due_ns - records[i].fired_ns);
		timers[i] = records[i].data;
	}
	return nr;
}

/* Wait for the file, then read it, as an event loop does. */
static __u32 collect_read(struct set *of, __u32 *timers, __u32 room, bool wait)
{
	struct twheel_record records[COLLECT_MAX];
	struct pollfd poll_fd = { .fd = twheel(of)->fd, .events = POLLIN };
	ssize_t size;

	if (wait) {
		of->calls++;
		if (poll(&poll_fd, 1, -1) != 1)
			err(1, "poll");
	}
	of->calls++;
	size = read(poll_fd.fd, records, room * sizeof(*records));
	if (size < 0 && errno != EAGAIN)
		err(1, "read");
	return size < 0 ? 0 : take_records(of, records, size / sizeof(*records),
					   timers);
}

static __u32 collect_enter(struct set *of, __u32 *timers, __u32 room, bool wait)
{
	struct twheel_record records[COLLECT_MAX];
	struct twheel_enter enter = {
		.records = (unsigned long)records,
		.nr_records = room,
		.min_records = wait,
		.timeout_ns = wait ? ~0ULL : 0,
	};

	of->calls++;
	call_enter(twheel(of), &enter);
	return take_records(of, records, enter.records_done, timers);
}

/* --- one command a call, as a program without batches writes it ------------- */

static void run_one(struct twheel_set *set, struct twheel_cmd *cmd, int expected)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (unsigned long)cmd,
		.nr = 1,
		.cmd_size = sizeof(*cmd),
	};

	if (ioctl(set->fd, TWHEEL_IOC_SUBMIT, &submit) != 1)
		err(1, "SUBMIT of a command");
	if (cmd->result != expected)
		errx(1, "a command with op %u gives %d, not %d", cmd->op, cmd->result,
		     expected);
	set->set.calls++;
}

static void one_arm(struct set *of, const struct timers *timers)
{
	struct twheel_set *set = twheel(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_ADD,
			.flags = TWHEEL_ABS,
			.data = timers->timer[i],
			.time_ns = timers->due_ns[i],
		};

		run_one(set, &cmd, 0);
		set->ids[timers->timer[i]] = cmd.id;
	}
}

static void one_cancel(struct set *of, const struct timers *timers)
{
	struct twheel_set *set = twheel(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_CANCEL,
			.id = set->ids[timers->timer[i]],
		};

		run_one(set, &cmd, 0);
	}
}

static void one_rearm(struct set *of, const struct timers *timers)
{
	struct twheel_set *set = twheel(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_MODIFY,
			.flags = TWHEEL_ABS,
			.id = set->ids[timers->timer[i]],
			.time_ns = timers->due_ns[i],
		};

		run_one(set, &cmd, 0);
	}
}

static void one_query(struct set *of, const struct timers *timers)
{
	struct twheel_set *set = twheel(of);
	__u32 i;

	for (i = 0; i < timers->nr; i++) {
		struct twheel_cmd cmd = {
			.op = TWHEEL_OP_QUERY,
			.id = set->ids[timers->timer[i]],
		};

		run_one(set, &cmd, TWHEEL_ARMED);
	}
}

/* --- deadlines in shared memory --------------------------------------------- */

static size_t deadlines_size(const struct twheel_set *set)
{
	return set->set.nr * sizeof(*set->deadlines);
}

static void map_deadlines(struct twheel_set *set)
{
	struct twheel_config config = {
		.size = sizeof(config),
		.clockid = CLOCK_MONOTONIC,
		.nr_deadlines = set->set.nr,
		.slack_ns = set->how->slack_ns,
	};

	if (ioctl(set->fd, TWHEEL_IOC_CONFIG, &config))
		err(1, "CONFIG of %u deadlines", set->set.nr);
	set->deadlines = mmap(NULL, deadlines_size(set), PROT_READ | PROT_WRITE,
			      MAP_SHARED, set->fd, 0);
	if (set->deadlines == MAP_FAILED)
		err(1, "cannot map %u deadlines", set->set.nr);
}

/* One store: the kernel may read the word at any moment. */
static void deadline_move(struct set *of, const struct timers *timers)
{
	__u64 *deadlines = twheel(of)->deadlines;
	const struct timers these = *timers;
	__u32 i;

	for (i = 0; i < these.nr; i++)
		__atomic_store_n(&deadlines[these.timer[i]], these.due_ns[i],
				 __ATOMIC_RELAXED);
}

static void deadline_arm(struct set *of, const struct timers *timers)
{
	struct twheel_set *set = twheel(of);
	__u32 i;

	deadline_move(of, timers);
	for (i = 0; i < timers->nr; i++) {
		struct twheel_cmd *cmd = next_command(set, TWHEEL_OP_ADD);

		cmd->flags = TWHEEL_DEADLINE;
		cmd->data = timers->timer[i];
		cmd->key = timers->timer[i];
	}
	flush(set);
}

static __u64 deadline_looks(struct set *of)
{
	struct twheel_set *set = twheel(of);

	expect("events that expired although they were moved",
	       device_counter(set->fd, "ready"), 0);
	return device_counter(set->fd, "postponed");
}

/* --- a set ------------------------------------------------------------------ */

static struct set *twheel_open(const struct way *way, __u32 nr)
{
	struct twheel_set *set = bench_alloc(1, sizeof(*set));

	set->set.way = way;
	set->set.nr = nr;
	set->how = way->private;
	set->fd = device_open();
	set->ids = bench_alloc(nr, sizeof(*set->ids));
	if (set->how->ring && io_uring_queue_init(1, &set->ring, 0))
		errx(1, "cannot have an io_uring");
	if (set->how->deadlines)
		map_deadlines(set);
	return &set->set;
}

static void twheel_close(struct set *of)
{
	struct twheel_set *set = twheel(of);

	if (set->how->ring)
		io_uring_queue_exit(&set->ring);
	if (set->how->deadlines)
		munmap(set->deadlines, deadlines_size(set));
	close(set->fd);
	free(set->ids);
	free(set);
}

static bool has_feature(__u64 feature)
{
	struct twheel_info info = { .size = sizeof(info) };
	int fd = device_open();

	if (ioctl(fd, TWHEEL_IOC_INFO, &info))
		err(1, "INFO");
	close(fd);
	return info.features & feature;
}

static const char *lacks_command(void)
{
	return has_feature(TWHEEL_FEATURE_URING_CMD) ? NULL :
		"this kernel has no IORING_OP_URING_CMD";
}

static const char *lacks_deadlines(void)
{
	return has_feature(TWHEEL_FEATURE_DEADLINES) ? NULL :
		"this kernel has no deadlines";
}

/* --- the variants ----------------------------------------------------------- */

static const struct how by_submit = { .run = run_submit };
static const struct how by_enter = { .run = run_enter };
static const struct how by_uring = { .run = run_uring, .ring = true };

#define VARIANT(variant_name, variant_text, commands, how)		\
	.name = "twheel", .variant = variant_name,			\
	.text = "twheel " variant_text, .batch = commands,		\
	.private = &(how), .most = ~0U, .open = twheel_open,		\
	.close = twheel_close, .arm = twheel_arm,			\
	.cancel = twheel_cancel, .rearm = twheel_rearm,			\
	.query = twheel_query

const struct way way_submit_1 = {
	.name = "twheel", .variant = "submit1", .text = "twheel SUBMIT of 1",
	.batch = 1, .private = &by_submit, .most = ~0U,
	.open = twheel_open, .close = twheel_close,
	.arm = one_arm, .cancel = one_cancel,
	.rearm = one_rearm, .query = one_query,
	.collect = collect_read,
};

const struct way way_submit_32 = {
	VARIANT("submit32", "SUBMIT of 32", 32, by_submit),
	.collect = collect_read,
};

const struct way way_submit_256 = {
	VARIANT("submit256", "SUBMIT of 256", 256, by_submit),
	.collect = collect_read, .delivers = true,
};

const struct way way_enter_256 = {
	VARIANT("enter256", "ENTER of 256", 256, by_enter),
	.collect = collect_enter, .delivers = true,
};

const struct way way_uring_256 = {
	VARIANT("uring256", "uring_cmd of 256", 256, by_uring),
	.collect = collect_read, .lacks = lacks_command,
};

/* For programs for which a timeout of 30 s may be that late. */
#define SLACK_NS	100000000ULL

static const struct how by_store = { .run = run_submit, .deadlines = true };
static const struct how by_store_slack = {
	.run = run_submit, .deadlines = true, .slack_ns = SLACK_NS,
};

#define DEADLINE(variant_name, variant_text, how)			\
	.name = "twheel", .variant = variant_name,			\
	.text = "twheel " variant_text, .batch = BATCH_MAX,		\
	.private = &(how), .most = ~0U, .lacks = lacks_deadlines,	\
	.open = twheel_open, .close = twheel_close,			\
	.arm = deadline_arm, .cancel = twheel_cancel,			\
	.rearm = deadline_move, .looks = deadline_looks

const struct way way_deadline = {
	DEADLINE("deadline", "a store", by_store),
};

const struct way way_deadline_slack = {
	DEADLINE("deadline_slack", "a store, slack", by_store_slack),
};
