// SPDX-License-Identifier: GPL-2.0
/* Contexts that TWHEEL_CONFIG_CPU binds to a CPU's wheels. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define MAX_CPUS	64

static const clockid_t clocks[] = {
	CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME,
};

static struct twheel_config cpu_config(clockid_t clock, int cpu)
{
	struct twheel_config config = default_config();

	config.flags = TWHEEL_CONFIG_CPU;
	config.clockid = clock;
	config.cpu = cpu;
	return config;
}

static int open_on_cpu(clockid_t clock, int cpu)
{
	struct twheel_config config = cpu_config(clock, cpu);

	return device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC,
				      &config);
}

/* Two CPUs, which the test is about. */
static void need_two_cpus(int cpus[2])
{
	if (get_cpus(cpus, 2) < 2)
		test_skip("one CPU");
}

static void check_config_refused(int fd, int cpu, int error)
{
	struct twheel_config config = cpu_config(CLOCK_MONOTONIC, cpu);
	struct counters before = get_counters(fd);

	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), -error);
	check_counters(fd, &before);
	ASSERT_EQ(fdinfo_number(fd, "cpu"), -1);
}

/* --- which CPU -------------------------------------------------------------- */

TEST(cpu_that_does_not_exist_is_refused)
{
	const int others[] = {
		sysconf(_SC_NPROCESSORS_CONF), 8191, 1 << 20, INT_MAX, INT_MIN,
		-1,
	};
	int fd = device_open_nonblock();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		test_about("CPU %u", others[i]);
		check_config_refused(fd, others[i], EINVAL);
	}
}

TEST(cpu_that_is_offline_is_refused)
{
	int cpus[2], fd;

	need_two_cpus(cpus);
	keep_cpus();
	set_cpu_online(cpus[1], false);
	fd = device_open_nonblock();
	check_config_refused(fd, cpus[1], EINVAL);
	set_cpu_online(cpus[1], true);
	close(open_on_cpu(CLOCK_MONOTONIC, cpus[1]));
}

TEST(cpu_outside_of_the_affinity_mask_is_refused)
{
	int fd = device_open_nonblock(), cpus[2];
	pid_t child;

	need_two_cpus(cpus);
	child = start_child();
	if (!child) {
		struct twheel_config config = cpu_config(CLOCK_MONOTONIC,
							 cpus[0]);

		pin_to_cpu(cpus[0]);
		/* The user nobody, without CAP_SYS_NICE. */
		ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
		check_config_refused(fd, cpus[1], EPERM);
		ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
		_exit(0);
	}
	wait_child(child);
	ASSERT_EQ(fdinfo_number(fd, "cpu"), cpus[0]);
}

TEST(cpu_outside_of_the_affinity_mask_is_taken_with_cap_sys_nice)
{
	int cpus[2], fd;

	if (geteuid())
		test_skip("not root");
	need_two_cpus(cpus);
	pin_to_cpu(cpus[0]);
	fd = open_on_cpu(CLOCK_MONOTONIC, cpus[1]);
	add(fd, 0, SOON_NS, 0);
	wait_record(fd);
}

TEST(cpu_is_told_by_fdinfo)
{
	int cpus[2], fd;

	need_two_cpus(cpus);
	ASSERT_EQ(fdinfo_number(device_open_nonblock(), "cpu"), -1);
	ASSERT_EQ(fdinfo_number(device_open_nonblock(), "moved"), -1);
	fd = open_on_cpu(CLOCK_MONOTONIC, cpus[1]);
	ASSERT_EQ(fdinfo_number(fd, "cpu"), cpus[1]);
	ASSERT_EQ(fdinfo_number(fd, "moved"), 0);
}

/* --- where the events are --------------------------------------------------- */

TEST(cpu_can_be_configured_away_before_the_first_add)
{
	struct twheel_config config = default_config();
	int cpus[2], fd;

	need_two_cpus(cpus);
	need_debugfs();
	fd = open_on_cpu(CLOCK_MONOTONIC, cpus[1]);
	ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
	ASSERT_EQ(fdinfo_number(fd, "cpu"), -1);
	pin_to_cpu(cpus[0]);
	add(fd, 0, FAR_NS, 0);
	ASSERT_EQ(get_counters(fd).armed, 1);
}

/* Arm, modify and so on from one CPU what is bound to another. */
static void check_wheel(clockid_t clock, int cpu, int from_cpu)
{
	const size_t nr = 100;
	__u64 ids[nr], due_ns = clock_ns(clock) + FAR_NS, i;
	int fd = open_on_cpu(clock, cpu);
	long long before, before_from;

	pin_to_cpu(from_cpu);
	/* The first use of a clock gives it its wheels. */
	add(fd, TWHEEL_ABS, due_ns, 0);
	before = base_number(cpu, clock, "armed");
	before_from = base_number(from_cpu, clock, "armed");
	add_many(fd, TWHEEL_ABS, due_ns, nr, ids);
	ASSERT_EQ(base_number(cpu, clock, "armed"), before + nr);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(modify(fd, ids[i], TWHEEL_ABS, due_ns + i), 0);
	ASSERT_EQ(base_number(cpu, clock, "armed"), before + nr);
	ASSERT_EQ(base_number(from_cpu, clock, "armed"), before_from);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(cancel(fd, ids[i]), 0);
	ASSERT_EQ(base_number(cpu, clock, "armed"), before);
	close(fd);
}

TEST(cpu_holds_the_events_of_its_contexts)
{
	int cpus[2];
	size_t i;

	need_two_cpus(cpus);
	need_debugfs();
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		test_about("clock %d", clocks[i]);
		check_wheel(clocks[i], cpus[1], cpus[0]);
		check_wheel(clocks[i], cpus[0], cpus[1]);
	}
}

TEST(cpu_holds_a_periodic_event_that_is_read_elsewhere)
{
	long long before;
	int cpus[2], fd;

	need_two_cpus(cpus);
	need_debugfs();
	fd = open_on_cpu(CLOCK_MONOTONIC, cpus[1]);
	pin_to_cpu(cpus[0]);
	before = base_number(cpus[1], CLOCK_MONOTONIC, "armed");
	add_by(fd, make_periodic(0, SOON_NS, FAR_NS, 0));
	ASSERT_EQ(wait_record(fd).count, 1);
	ASSERT_EQ(base_number(cpus[1], CLOCK_MONOTONIC, "armed"), before + 1);
}

/* If the CPU is not told of the earlier event, this waits for the far one. */
TEST(cpu_is_told_of_an_earlier_event_armed_elsewhere)
{
	const unsigned int rounds = test_count(1000);
	unsigned int round;
	int cpus[2], fd;

	need_two_cpus(cpus);
	fd = open_on_cpu(CLOCK_MONOTONIC, cpus[1]);
	pin_to_cpu(cpus[0]);
	add(fd, 0, FAR_NS, 1);
	for (round = 0; round < rounds; round++) {
		__u64 id = add(fd, 0, FAR_NS / 2, 1);

		add(fd, 0, (round % 10) * 100 * NSEC_PER_USEC, 2);
		ASSERT_EQ(wait_record(fd).data, 2);
		ASSERT_EQ(modify(fd, id, 0, NSEC_PER_MSEC), 0);
		ASSERT_EQ(wait_record(fd).id, id);
	}
	check_nothing_ready(fd);
}

/* --- commands from all CPUs ------------------------------------------------- */

/* Threads on all CPUs that take turns in arming for the same ticks. */
#define TURNS	1000

struct turns {
	int fd;
	int nr_cpus;
	int cpus[MAX_CPUS];
	sem_t sems[MAX_CPUS];	/* it is this one's turn */
	unsigned int nr;
	__u64 due_ns;
	__u64 tick_ns;
	atomic_int next_cpu;	/* index of whose thread is to start */
};

static void *take_turns(void *arg)
{
	struct turns *turns = arg;
	unsigned int me = turns->next_cpu++, turn;

	pin_to_cpu(turns->cpus[me]);
	for (turn = me; turn < turns->nr; turn += turns->nr_cpus) {
		ASSERT_EQ(sem_wait(&turns->sems[me]), 0);
		add(turns->fd, TWHEEL_ABS,
		    turns->due_ns + turn % 3 * turns->tick_ns, turn);
		ASSERT_EQ(sem_post(&turns->sems[(turn + 1) % turns->nr_cpus]),
			  0);
	}
	return NULL;
}

/* Arm by turns; false if the first tick began before the last was armed. */
static bool arm_by_turns(struct turns *turns, __u64 delay_ns)
{
	pthread_t threads[MAX_CPUS];
	int i;

	for (i = 0; i < turns->nr_cpus; i++)
		ASSERT_EQ(sem_init(&turns->sems[i], 0, !i), 0);
	turns->next_cpu = 0;
	turns->due_ns = (monotonic_ns() + delay_ns) / turns->tick_ns *
			turns->tick_ns;
	for (i = 0; i < turns->nr_cpus; i++)
		threads[i] = start_thread(take_turns, turns);
	for (i = 0; i < turns->nr_cpus; i++)
		join_thread(threads[i]);
	return monotonic_ns() < turns->due_ns;
}

TEST(cpu_keeps_the_order_of_arming_from_all_cpus)
{
	struct twheel_record records[TURNS], before = { .due_ns = 0 };
	struct turns turns = { .nr = test_count(TURNS) };
	unsigned int i;

	turns.nr_cpus = get_cpus(turns.cpus, MAX_CPUS);
	turns.fd = open_on_cpu(CLOCK_MONOTONIC, turns.cpus[turns.nr_cpus - 1]);
	turns.tick_ns = get_info(turns.fd).tick_ns;
	for_each_attempt(lead_ns, 20 * SOON_NS) {
		if (arm_by_turns(&turns, lead_ns))
			break;
		wait_ready(turns.fd, turns.nr);
		ASSERT_EQ(read_records(turns.fd, records, TURNS), turns.nr);
	}
	for (i = 0; i < turns.nr; i++) {
		struct twheel_record record = wait_record(turns.fd);

		ASSERT_GE(record.due_ns, before.due_ns);
		if (record.due_ns == before.due_ns)
			ASSERT_GT(record.data, before.data);
		before = record;
	}
}

/* Threads on all CPUs that arm, modify and cancel in one bound context. */
struct churn {
	int fd;
	int cpu;
	unsigned int nr;
	unsigned long long cancelled;
};

static void *churn(void *arg)
{
	struct churn *churn = arg;
	__u64 seed = churn->cpu;
	unsigned int i;

	pin_to_cpu(churn->cpu);
	for (i = 0; i < churn->nr; i++) {
		__u64 id = add(churn->fd, 0, next_random(&seed) %
			       (2 * NSEC_PER_MSEC), 0);
		int result = modify(churn->fd, id, 0, next_random(&seed) %
				    (2 * NSEC_PER_MSEC));

		if (result)
			ASSERT_EQ(result, -ENOENT);
		if (i % 2)
			continue;
		result = cancel(churn->fd, id);
		if (result)
			ASSERT_EQ(result, -ENOENT);
		churn->cancelled += !result;
	}
	return NULL;
}

TEST(cpu_ends_each_event_once_under_commands_from_all_cpus)
{
	int cpus[MAX_CPUS], nr_cpus = get_cpus(cpus, MAX_CPUS), fd, i;
	unsigned long long added = 0, cancelled = 0, read = 0;
	struct churn churns[MAX_CPUS];
	pthread_t threads[MAX_CPUS];

	fd = open_on_cpu(CLOCK_MONOTONIC, cpus[nr_cpus - 1]);
	for (i = 0; i < nr_cpus; i++) {
		churns[i] = (struct churn){
			.fd = fd,
			.cpu = cpus[i],
			.nr = test_count(20000),
		};
		added += churns[i].nr;
		threads[i] = start_thread(churn, &churns[i]);
	}
	while (get_counters(fd).added < (long long)added ||
	       get_counters(fd).armed || get_counters(fd).ready) {
		struct twheel_record records[100];
		long nr, j;

		poll_events(fd, 10);
		nr = read_records(fd, records, 100);
		for (j = 0; j < nr; j++)
			check_record(&records[j]);
		read += nr > 0 ? nr : 0;
	}
	for (i = 0; i < nr_cpus; i++) {
		join_thread(threads[i]);
		cancelled += churns[i].cancelled;
	}
	/* The last command may have been one that arms it again. */
	while (read + cancelled < added) {
		wait_record(fd);
		read++;
	}
	check_nothing_ready(fd);
	ASSERT_EQ(read + cancelled, added);
	ASSERT_EQ(get_counters(fd).cancelled, cancelled);
	ASSERT_EQ(get_counters(fd).finished, read);
}
