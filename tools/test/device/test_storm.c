// SPDX-License-Identifier: GPL-2.0
/*
 * What nobody may do to others on a CPU, (x): arm in the past as fast as it
 * can.
 *
 * A victim sleeps for short times on a CPU, again and again, and counts how
 * often it woke up.  Beside it runs a process without privileges, in turns a
 * storm and a loop of getpid(), which is as much as any process may do.  The
 * victim must not wake up much less often beside the storm.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define TURNS		5
#define TURN_NS		(200 * NSEC_PER_MSEC)

/* How many times less often is still no harm; a starved timer never fires. */
#define RATIO		10

#define NOBODY		65534

/* A storm: once before all, and then as fast as it can. */
struct storm {
	const char *name;
	clockid_t clock;
	void (*prepare)(int fd);
	void (*step)(int fd);
};

/* Memory shared by the victim and the process beside it. */
struct shared {
	atomic_bool storming;
	atomic_ullong steps[2];		/* of getpid(), of the storm */
};

static void call_getpid(int fd)
{
	(void)fd;
	syscall(SYS_getpid);
}

static void __noreturn run_beside(const struct storm *storm,
				  struct shared *shared, int fd)
{
	pin_to_this_cpu();
	if (!geteuid())
		ASSERT_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	if (storm->prepare)
		storm->prepare(fd);
	for (;;) {
		bool storming = shared->storming;

		if (storming)
			storm->step(fd);
		else
			call_getpid(fd);
		shared->steps[storming]++;
	}
}

/* How often a plain timer fires in a turn. */
static unsigned long long count_sleeps(void)
{
	const struct timespec nap = { .tv_nsec = NSEC_PER_MSEC };
	__u64 end_ns = monotonic_ns() + TURN_NS;
	unsigned long long sleeps = 0;

	while (monotonic_ns() < end_ns) {
		nanosleep(&nap, NULL);
		sleeps++;
	}
	return sleeps;
}

static void check_storm(const struct storm *storm)
{
	struct shared *shared = map_shared_pages(sizeof(*shared));
	unsigned long long sleeps[2] = { 0 };
	int turn, fd = device_open_clock(storm->clock);
	pid_t beside;

	pin_to_this_cpu();
	beside = start_child();
	if (!beside)
		run_beside(storm, shared, fd);
	for (turn = 0; turn < 2 * TURNS; turn++) {
		bool storming = turn % 2;

		shared->storming = storming;
		sleeps[storming] += count_sleeps();
	}
	kill_child(beside);
	printf("# %s: %llu sleeps beside %llu steps, %llu beside %llu getpid()\n",
	       storm->name, sleeps[1], (unsigned long long)shared->steps[1],
	       sleeps[0], (unsigned long long)shared->steps[0]);
	ASSERT_GT(shared->steps[1], 0);
	ASSERT_GE(sleeps[1] * RATIO, sleeps[0]);
}

/* --- one-shot events -------------------------------------------------------- */

static __u64 the_event;

static void add_the_event(int fd)
{
	the_event = add(fd, 0, FAR_NS, 0);
}

static void modify_to_the_past(int fd)
{
	ASSERT_EQ(modify(fd, the_event, TWHEEL_ABS, 1), 0);
}

TEST(storm_of_modify_to_the_past_starves_no_timer)
{
	static const struct storm storm = {
		.name = "MODIFY to 1 ns, absolute",
		.clock = CLOCK_MONOTONIC,
		.prepare = add_the_event,
		.step = modify_to_the_past,
	};

	check_storm(&storm);
}

static void modify_to_now(int fd)
{
	ASSERT_EQ(modify(fd, the_event, 0, 0), 0);
}

TEST(storm_of_modify_to_now_on_realtime_starves_no_timer)
{
	static const struct storm storm = {
		.name = "MODIFY to 0 ns, relative, on CLOCK_REALTIME",
		.clock = CLOCK_REALTIME,
		.prepare = add_the_event,
		.step = modify_to_now,
	};

	check_storm(&storm);
}

static void arm_in_the_past_and_read(int fd)
{
	struct twheel_record record;

	add(fd, TWHEEL_ABS, 1, 0);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
}

TEST(storm_of_add_in_the_past_and_read_starves_no_timer)
{
	static const struct storm storm = {
		.name = "ADD at 1 ns, absolute, and read()",
		.clock = CLOCK_MONOTONIC,
		.step = arm_in_the_past_and_read,
	};

	check_storm(&storm);
}

#define MANY	1000

static struct twheel_cmd many_cmds[MANY];

static void modify_many(int fd, __u16 flags, __u64 time_ns)
{
	int i;

	for (i = 0; i < MANY; i++)
		many_cmds[i] = make_modify(many_cmds[i].id, flags, time_ns);
	ASSERT_EQ(submit(fd, many_cmds, MANY), MANY);
}

static void add_many_far(int fd)
{
	int i;

	for (i = 0; i < MANY; i++)
		many_cmds[i] = make_add(0, FAR_NS, i);
	ASSERT_EQ(submit(fd, many_cmds, MANY), MANY);
}

static void modify_many_to_the_past(int fd)
{
	modify_many(fd, TWHEEL_ABS, 1);
}

TEST(storm_of_many_modified_to_the_past_starves_no_timer)
{
	static const struct storm storm = {
		.name = "1,000 MODIFY to 1 ns, absolute, in a call",
		.clock = CLOCK_MONOTONIC,
		.prepare = add_many_far,
		.step = modify_many_to_the_past,
	};

	check_storm(&storm);
}

/* All of them are due at the next tick, over and over again. */
static void modify_many_to_the_next_tick(int fd)
{
	modify_many(fd, 0, 1);
}

TEST(storm_of_many_modified_to_the_next_tick_starves_no_timer)
{
	static const struct storm storm = {
		.name = "1,000 MODIFY to 1 ns from now, in a call",
		.clock = CLOCK_MONOTONIC,
		.prepare = add_many_far,
		.step = modify_many_to_the_next_tick,
	};

	check_storm(&storm);
}

/* --- periodic events -------------------------------------------------------- */

static void add_many_periodic(int fd)
{
	__u64 tick_ns = get_info(fd).tick_ns;
	int i;

	for (i = 0; i < MANY; i++)
		many_cmds[i] = make_periodic(TWHEEL_ABS, 1, tick_ns, i);
	ASSERT_EQ(submit(fd, many_cmds, MANY), MANY);
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(many_cmds[i].result, 0);
}

TEST(storm_of_unread_periodic_events_starves_no_timer)
{
	static const struct storm storm = {
		.name = "1,000 periodic events of one tick, unread",
		.clock = CLOCK_MONOTONIC,
		.prepare = add_many_periodic,
		.step = call_getpid,
	};

	check_storm(&storm);
}

static void read_all(int fd)
{
	struct twheel_record records[256];
	long nr = read_records(fd, records, ARRAY_SIZE(records));

	if (nr < 0)
		ASSERT_EQ(nr, -EAGAIN);
}

TEST(storm_of_periodic_events_read_at_once_starves_no_timer)
{
	static const struct storm storm = {
		.name = "1,000 periodic events of one tick, read",
		.clock = CLOCK_MONOTONIC,
		.prepare = add_many_periodic,
		.step = read_all,
	};

	check_storm(&storm);
}

/*
 * What brought timers of the kernel to their knees in 2026: an absolute time of
 * 1 ns and the smallest interval, given again as soon as it is ready.
 */
static void modify_periodic_to_the_past(int fd)
{
	struct twheel_cmd cmd = make_modify(many_cmds[0].id, TWHEEL_ABS, 1);

	cmd.interval_ns = get_info(fd).tick_ns;
	ASSERT_EQ(run(fd, &cmd), 0);
}

TEST(storm_of_a_periodic_event_set_to_1_ns_starves_no_timer)
{
	static const struct storm storm = {
		.name = "MODIFY of periodic events to 1 ns, absolute",
		.clock = CLOCK_MONOTONIC,
		.prepare = add_many_periodic,
		.step = modify_periodic_to_the_past,
	};

	check_storm(&storm);
}

/* A thread on one CPU whose events are on the wheel of another. */
struct elsewhere {
	int fd;
	int cpu;
	atomic_bool storming;
	atomic_bool stop;
};

/*
 * A storm of one CPU on the wheel of another; the loop of getpid() is there so
 * that the other CPU is as busy without it.
 */
static void *storm_from_elsewhere(void *arg)
{
	struct elsewhere *elsewhere = arg;

	pin_to_cpu(elsewhere->cpu);
	while (!elsewhere->stop) {
		if (elsewhere->storming)
			modify_many(elsewhere->fd, 0, 1);
		else
			call_getpid(elsewhere->fd);
	}
	return NULL;
}

TEST(storm_from_another_cpu_starves_no_timer)
{
	struct twheel_config config = default_config();
	struct elsewhere elsewhere = { .stop = false };
	unsigned long long sleeps[2] = { 0 };
	pthread_t thread;
	int cpus[2], turn;

	if (get_cpus(cpus, 2) < 2)
		test_skip("one CPU");
	config.flags = TWHEEL_CONFIG_CPU;
	config.cpu = cpus[0];
	elsewhere.cpu = cpus[1];
	elsewhere.fd = device_open_configured(O_RDWR | O_NONBLOCK, &config);
	add_many_far(elsewhere.fd);
	pin_to_cpu(cpus[0]);
	thread = start_thread(storm_from_elsewhere, &elsewhere);
	for (turn = 0; turn < 2 * TURNS; turn++) {
		bool storming = turn % 2;

		elsewhere.storming = storming;
		sleeps[storming] += count_sleeps();
	}
	elsewhere.stop = true;
	join_thread(thread);
	printf("# from elsewhere: %llu sleeps beside the storm, %llu without\n",
	       sleeps[1], sleeps[0]);
	/*
	 * Less is asked for than above: the CPU does the work of all that the
	 * other arms, and an emulated one waits for locks whose holder stands
	 * still.
	 */
	ASSERT_GE(sleeps[1] * 5 * RATIO, sleeps[0]);
}
