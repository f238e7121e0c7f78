// SPDX-License-Identifier: GPL-2.0
/*
 * Faults at random under a load: threads with a context each add, change, complete, cancel and
 * read events, while one allocation and one copy in ten fails. In the end each event has ended
 * exactly once, and none came early.
 *
 * FAULTS_SECONDS=N is how long, 20 by default.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/device/util.h"

#include "fault.h"
#include "scene.h"

#define THREADS		4
#define SLOTS		1024
#define BATCH		8
#define LONGER		80

/* Of each hundred allocations and copies, so many fail. */
#define PROBABILITY	"10"

enum ending { NOT_THERE, LIVE, COMPLETED };

/* An event, whose data is the index of its slot. */
struct slot {
	__u64 id;
	__u64 due_ns;
	enum ending ending;
	bool watches;
};

struct worker {
	pthread_t thread;
	pid_t tid;
	__u64 seed;
	int fd;
	struct slot slots[SLOTS];
	/* What was done, by what was returned. */
	long long added;
	long long finished;
	long long cancelled;
	long long completed;
	/* How often there was no memory, and how often it could not be copied. */
	unsigned long no_memory;
	unsigned long no_copy;
};

static struct worker workers[THREADS];
static atomic_bool stop;
static sem_t started, stopped, go_on;

static __u64 draw(struct worker *worker, __u64 n)
{
	return next_random(&worker->seed) % n;
}

static struct slot *any_slot(struct worker *worker)
{
	return &worker->slots[draw(worker, SLOTS)];
}

/* Mostly soon, sometimes past, and sometimes never in this test. */
static __u64 draw_due_ns(struct worker *worker)
{
	__u64 now_ns = monotonic_ns();

	switch (draw(worker, 8)) {
	case 0:
		return now_ns - draw(worker, NSEC_PER_MSEC);
	case 1:
		return now_ns + FAR_NS;
	default:
		return now_ns + draw(worker, 20 * NSEC_PER_MSEC);
	}
}

/* --- commands --------------------------------------------------------------- */

/* A command about any slot. */
static void choose(struct worker *worker, struct twheel_cmd *cmd, struct slot **about)
{
	struct slot *slot = any_slot(worker);

	*about = slot;
	if (!slot->id) {
		*cmd = make_add(TWHEEL_ABS, draw_due_ns(worker), slot - worker->slots);
		return;
	}
	switch (draw(worker, 5)) {
	case 0:
		*cmd = make_cmd(TWHEEL_OP_CANCEL, slot->id);
		break;
	case 1:
		*cmd = make_modify(slot->id, TWHEEL_ABS, draw_due_ns(worker));
		break;
	case 2:
		*cmd = make_complete(slot->id, 1);
		break;
	case 3:
		*cmd = make_watch(slot->id, slot - worker->slots, 1);
		break;
	default:
		*cmd = make_signal(slot - worker->slots, 1);
	}
}

static void end_slot(struct slot *slot)
{
	*slot = (struct slot){ 0 };
}

static void note_add(struct worker *worker, struct slot *slot, const struct twheel_cmd *cmd)
{
	if (cmd->result) {
		ASSERT_EQ(cmd->result, -ENOMEM);
		ASSERT_EQ(cmd->id, 0);
		worker->no_memory++;
		return;
	}
	ASSERT_NE(cmd->id, 0);
	worker->added++;
	*slot = (struct slot){ .id = cmd->id, .due_ns = cmd->time_ns, .ending = LIVE };
}

/* The event exists, because only this thread ends any. */
static void note(struct worker *worker, struct slot *slot, const struct twheel_cmd *cmd)
{
	int result = cmd->result;

	if (cmd->op == TWHEEL_OP_ADD) {
		note_add(worker, slot, cmd);
		return;
	}
	worker->no_memory += result == -ENOMEM;
	switch (cmd->op) {
	case TWHEEL_OP_CANCEL:
		ASSERT_EQ(result, 0);
		worker->cancelled++;
		end_slot(slot);
		break;
	case TWHEEL_OP_MODIFY:
		ASSERT_EQ(result, slot->ending == COMPLETED ? -EALREADY : 0);
		if (!result)
			slot->due_ns = cmd->time_ns;
		break;
	case TWHEEL_OP_COMPLETE:
		if (slot->ending == COMPLETED)
			ASSERT_EQ(result, -EALREADY);
		else
			ASSERT(!result || result == -EALREADY);
		worker->completed += !result;
		if (!result)
			slot->ending = COMPLETED;
		break;
	case TWHEEL_OP_WATCH:
		ASSERT(!result || result == -ENOMEM || result == -EALREADY || result == -ENOSPC);
		if (!result)
			slot->watches = true;
		break;
	default:
		/* Its watches may be dead, because it has expired. */
		ASSERT(result == 0 || (result == 1 && slot->watches));
		worker->completed += result;
		if (result)
			slot->ending = COMPLETED;
	}
}

/* Some commands, each about another slot; half of the time in structs that are longer. */
static void submit_some(struct worker *worker)
{
	static __thread char memory[BATCH * LONGER] __attribute__((aligned(8)));
	size_t size = draw(worker, 2) ? LONGER : sizeof(struct twheel_cmd);
	struct slot *about[BATCH];
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (uintptr_t)memory,
		.cmd_size = size,
	};
	unsigned int nr = 1 + draw(worker, BATCH), i, j;
	long done;

	memset(memory, 0, sizeof(memory));
	for (i = 0; i < nr; i++) {
		struct twheel_cmd cmd;

		choose(worker, &cmd, &about[submit.nr]);
		for (j = 0; j < submit.nr && about[j] != about[submit.nr]; j++)
			;
		if (j < submit.nr)
			continue;
		memcpy(memory + submit.nr++ * size, &cmd, sizeof(cmd));
	}
	done = device_ioctl(worker->fd, TWHEEL_IOC_SUBMIT, &submit);
	if (done < 0)
		ASSERT_EQ(done, -EFAULT);
	worker->no_copy += done != submit.nr;
	for (i = 0; (long)i < done; i++) {
		struct twheel_cmd cmd;

		memcpy(&cmd, memory + i * size, sizeof(cmd));
		note(worker, about[i], &cmd);
	}
}

/* --- records ---------------------------------------------------------------- */

static void note_record(struct worker *worker, const struct twheel_record *record)
{
	struct slot *slot;

	ASSERT_LT(record->data, SLOTS);
	slot = &worker->slots[record->data];
	ASSERT_NE(slot->id, 0);
	ASSERT_EQ(record->id, slot->id);
	ASSERT_EQ(record->count, 1);
	ASSERT_EQ(record->due_ns, slot->due_ns);
	ASSERT_LE(record->fired_ns, monotonic_ns());
	if (slot->ending == COMPLETED) {
		ASSERT_EQ(record->reason, TWHEEL_COMPLETED);
	} else {
		ASSERT_EQ(record->reason, TWHEEL_EXPIRED);
		ASSERT_GE(record->fired_ns, record->due_ns);
	}
	worker->finished++;
	end_slot(slot);
}

/* Half of the time in two parts, neither of which is whole records. */
static void read_some(struct worker *worker)
{
	struct twheel_record records[BATCH];
	struct iovec parts[] = {
		{ records, 100 },
		{ (char *)records + 100, sizeof(records) - 100 },
	};
	long ret, i;

	if (draw(worker, 2))
		ret = result_of(readv(worker->fd, parts, 2));
	else
		ret = result_of(read(worker->fd, records, sizeof(records)));
	worker->no_copy += ret == -EFAULT;
	if (ret < 0) {
		ASSERT(ret == -EFAULT || ret == -EAGAIN || ret == -ENOMEM);
		return;
	}
	ASSERT_EQ(ret % sizeof(records[0]), 0);
	for (i = 0; i < ret / (long)sizeof(records[0]); i++)
		note_record(worker, &records[i]);
}

/* --- files ------------------------------------------------------------------ */

/* Another context comes, gets words and events, and goes with them. */
static void come_and_go(struct worker *worker)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };
	struct twheel_config config = deadlines_config(clocks[draw(worker, 3)], 1000);
	struct twheel_cmd cmd = make_add(0, draw(worker, NSEC_PER_MSEC), 0);
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (uintptr_t)&cmd,
		.nr = 1,
		.cmd_size = sizeof(cmd),
	};
	int fd = open("/dev/twheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	long ret;

	if (fd < 0) {
		ASSERT(errno == ENOMEM || errno == EFAULT);
		worker->no_memory += errno == ENOMEM;
		return;
	}
	ret = device_ioctl(fd, TWHEEL_IOC_CONFIG, &config);
	ASSERT(!ret || ret == -ENOMEM || ret == -EFAULT);
	worker->no_memory += ret == -ENOMEM;
	ret = device_ioctl(fd, TWHEEL_IOC_SUBMIT, &submit);
	ASSERT(ret == 1 || ret == -EFAULT);
	ASSERT_EQ(close(fd), 0);
}

/* --- workers ---------------------------------------------------------------- */

static void *work(void *arg)
{
	struct worker *worker = arg;

	worker->tid = thread_id();
	sem_post(&started);
	while (!stop) {
		__u64 what = draw(worker, 16);

		if (!what)
			come_and_go(worker);
		else if (what < 6)
			read_some(worker);
		else
			submit_some(worker);
	}
	sem_post(&stopped);
	while (sem_wait(&go_on))
		;
	return NULL;
}

static bool is_far(const struct slot *slot)
{
	return slot->ending == LIVE && slot->due_ns > monotonic_ns() + FAR_NS / 2;
}

/* Without faults: what is far off is cancelled, and all the rest comes. */
static void drain(struct worker *worker)
{
	struct counters counters;
	struct twheel_record record;
	size_t i, left = 0;

	for (i = 0; i < SLOTS; i++) {
		struct slot *slot = &worker->slots[i];

		if (is_far(slot)) {
			ASSERT_EQ(cancel(worker->fd, slot->id), 0);
			worker->cancelled++;
			end_slot(slot);
		}
		left += slot->id != 0;
	}
	while (left--) {
		wait_readable(worker->fd);
		ASSERT_EQ(read_records(worker->fd, &record, 1), 1);
		note_record(worker, &record);
	}
	check_nothing_ready(worker->fd);
	counters = get_counters(worker->fd);
	check_sum(&counters);
	ASSERT_EQ(counters.added, worker->added);
	ASSERT_EQ(counters.finished, worker->finished);
	ASSERT_EQ(counters.cancelled, worker->cancelled);
	ASSERT_EQ(counters.completed, worker->completed);
	ASSERT_EQ(counters.armed + counters.ready, 0);
}

static void wait_for_all(sem_t *sem)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		while (sem_wait(sem))
			;
	}
}

static void start_workers(void)
{
	unsigned int i;

	sem_init(&started, 0, 0);
	sem_init(&stopped, 0, 0);
	sem_init(&go_on, 0, 0);
	for (i = 0; i < THREADS; i++) {
		workers[i].seed = i + 1;
		workers[i].fd = device_open_nonblock();
		workers[i].thread = start_thread(work, &workers[i]);
	}
	wait_for_all(&started);
	for (i = 0; i < THREADS; i++)
		faults_begin_of(workers[i].tid, 0, true);
}

static void stop_workers(void)
{
	unsigned int i;

	stop = true;
	wait_for_all(&stopped);
	for (i = 0; i < THREADS; i++)
		faults_end_of(workers[i].tid);
	for (i = 0; i < THREADS; i++)
		sem_post(&go_on);
	for (i = 0; i < THREADS; i++)
		join_thread(workers[i].thread);
}

TEST_NAMED(random_faults_lose_and_double_nothing)
{
	const char *seconds = getenv("FAULTS_SECONDS");
	unsigned long no_memory = 0, no_copy = 0, added = 0, finished = 0;
	__u64 until_ns;
	unsigned int i;

	faults_open();
	faults_set_probability(PROBABILITY);
	start_workers();
	until_ns = monotonic_ns() + (seconds ? strtoul(seconds, NULL, 10) : 20) * NSEC_PER_SEC;
	while (monotonic_ns() < until_ns)
		poll(NULL, 0, 100);
	stop_workers();
	for (i = 0; i < THREADS; i++) {
		drain(&workers[i]);
		no_memory += workers[i].no_memory;
		no_copy += workers[i].no_copy;
		added += workers[i].added;
		finished += workers[i].finished;
	}
	printf("# %lu events added, %lu read; no memory %lu times, no copy %lu times\n", added,
	       finished, no_memory, no_copy);
	ASSERT_GT(finished, 0);
	ASSERT_GT(no_memory, 0);
	ASSERT_GT(no_copy, 0);
}
