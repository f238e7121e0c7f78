// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that come and go under armed events, (u), and CPUs that are isolated.
 *
 * The tests that run only if named are those of tools/test/hotplug and
 * tools/test/isolated, which prepare a machine for them.  HOTPLUG_CYCLES in the
 * environment says how often a CPU goes and comes in the long one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
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

/* All CPUs, of which all but the first can be taken down. */
static int need_cpus(int cpus[MAX_CPUS])
{
	int nr = get_cpus(cpus, MAX_CPUS);

	if (nr < 2)
		test_skip("one CPU");
	keep_cpus();
	return nr;
}

static int open_on_cpu(clockid_t clock, int cpu)
{
	struct twheel_config config = default_config();

	config.flags = TWHEEL_CONFIG_CPU;
	config.clockid = clock;
	config.cpu = cpu;
	return device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC,
				      &config);
}

/* --- one CPU goes ----------------------------------------------------------- */

/* Arm events on a CPU for some ticks, in order; it goes before the first of them comes. */
static void arm_in_order_on_cpu_that_goes(int fd, clockid_t clock, const int cpus[],
					  struct twheel_cmd *cmds, size_t nr)
{
	__u64 tick_ns = get_info(fd).tick_ns;
	size_t i;

	for_each_attempt(lead_ns, 20 * SOON_NS) {
		__u64 due_ns = (clock_ns(clock) + lead_ns) / tick_ns * tick_ns;

		pin_to_cpu(cpus[1]);
		for (i = 0; i < nr; i++)
			cmds[i] = make_add(TWHEEL_ABS, due_ns + i % 7 * tick_ns, i);
		ASSERT_EQ(submit(fd, cmds, nr), nr);
		pin_to_cpu(cpus[0]);
		set_cpu_online(cpus[1], false);
		if (clock_ns(clock) < due_ns)
			return;
		for (i = 0; i < nr; i++)
			ASSERT_EQ(cancel(fd, cmds[i].id), 0);
		set_cpu_online(cpus[1], true);
	}
}

TEST(hotplug_events_of_a_cpu_that_goes_come_in_order_and_not_early)
{
	const size_t nr = 5000;
	int cpus[MAX_CPUS];
	size_t i, j;

	need_cpus(cpus);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = device_open_clock(clocks[i]);
		struct twheel_record before = { .due_ns = 0 };
		struct twheel_cmd *cmds = calloc(nr, sizeof(*cmds));

		test_about("clock %d", clocks[i]);
		ASSERT(cmds);
		arm_in_order_on_cpu_that_goes(fd, clocks[i], cpus, cmds, nr);
		for (j = 0; j < nr; j++) {
			struct twheel_record record =
				wait_expired_on(fd, clocks[i]);

			ASSERT_GE(record.due_ns, before.due_ns);
			if (record.due_ns == before.due_ns)
				ASSERT_GT(record.data, before.data);
			before = record;
		}
		check_nothing_ready(fd);
		set_cpu_online(cpus[1], true);
		free(cmds);
	}
}

/* Every second of the events is cancelled; the others are due soon, and come. */
static void cancel_half_and_wait(int fd, clockid_t clock, const __u64 *ids, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (i % 2)
			ASSERT_EQ(cancel(fd, ids[i]), 0);
		else
			ASSERT_EQ(modify(fd, ids[i], 0, SOON_NS), 0);
	}
	for (i = 0; i < nr; i += 2)
		wait_expired_on(fd, clock);
	check_nothing_ready(fd);
}

TEST(hotplug_events_of_a_cpu_that_goes_live_on_another)
{
	const size_t nr = 1000;
	int cpus[MAX_CPUS];
	size_t i, j;

	need_cpus(cpus);
	need_debugfs();
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = device_open_clock(clocks[i]);
		__u64 ids[nr];

		test_about("clock %d", clocks[i]);
		pin_to_cpu(cpus[1]);
		add_many(fd, TWHEEL_ABS, clock_ns(clocks[i]) + FAR_NS, nr,
			 ids);
		ASSERT_EQ(base_number(cpus[1], clocks[i], "online"), 1);
		ASSERT_GE(base_number(cpus[1], clocks[i], "armed"), nr);
		pin_to_cpu(cpus[0]);
		set_cpu_online(cpus[1], false);
		ASSERT_EQ(base_number(cpus[1], clocks[i], "online"), 0);
		ASSERT_EQ(base_number(cpus[1], clocks[i], "armed"), 0);
		ASSERT_EQ(get_counters(fd).armed, nr);
		for (j = 0; j < nr; j++)
			ASSERT_EQ(query(fd, ids[j], NULL), TWHEEL_ARMED);
		cancel_half_and_wait(fd, clocks[i], ids, nr);
		set_cpu_online(cpus[1], true);
		ASSERT_EQ(base_number(cpus[1], clocks[i], "online"), 1);
	}
}

TEST(hotplug_deadlines_leave_the_wheel_of_a_cpu_that_goes)
{
	const size_t nr = 1000;
	int cpus[MAX_CPUS];
	size_t i, j;

	need_cpus(cpus);
	need_debugfs();
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		_Atomic __u64 *words;
		int fd = open_deadlines_on(clocks[i], 1, &words);
		__u64 ids[nr];

		test_about("clock %d", clocks[i]);
		words[0] = clock_ns(clocks[i]) + FAR_NS;
		pin_to_cpu(cpus[1]);
		for (j = 0; j < nr; j++)
			ids[j] = add_deadline(fd, 0, j);
		ASSERT_GE(deadline_base_number(cpus[1], clocks[i], "armed"), nr);
		pin_to_cpu(cpus[0]);
		set_cpu_online(cpus[1], false);
		ASSERT_EQ(deadline_base_number(cpus[1], clocks[i], "online"), 0);
		ASSERT_EQ(deadline_base_number(cpus[1], clocks[i], "armed"), 0);
		ASSERT_EQ(get_counters(fd).armed, nr);
		cancel_half_and_wait(fd, clocks[i], ids, nr);
		set_cpu_online(cpus[1], true);
		ASSERT_EQ(deadline_base_number(cpus[1], clocks[i], "online"), 1);
		close(fd);
	}
}

/*
 * Arm events by words on a CPU that goes. Half of the words are moved before it goes, the
 * others after it, and all before the first time that they had.
 */
static void move_deadlines_of_cpu_that_goes(int fd, clockid_t clock, const int cpus[],
					    _Atomic __u64 *words, size_t nr)
{
	__u64 ids[nr], first_ns;
	size_t i;

	for_each_attempt(lead_ns, 20 * SOON_NS) {
		pin_to_cpu(cpus[1]);
		first_ns = clock_ns(clock) + lead_ns;
		for (i = 0; i < nr; i++) {
			words[i] = first_ns + i * NSEC_PER_USEC;
			ids[i] = add_deadline(fd, i, i);
		}
		pin_to_cpu(cpus[0]);
		for (i = 0; i < nr; i += 2)
			words[i] += lead_ns;
		set_cpu_online(cpus[1], false);
		for (i = 1; i < nr; i += 2)
			words[i] += lead_ns;
		if (clock_ns(clock) < first_ns)
			return;
		for (i = 0; i < nr; i++)
			ASSERT_EQ(cancel(fd, ids[i]), 0);
		set_cpu_online(cpus[1], true);
	}
}

TEST(hotplug_deadlines_of_a_cpu_that_goes_are_followed_on_another)
{
	_Atomic __u64 *words;
	const size_t nr = 1000;
	int cpus[MAX_CPUS];
	size_t i, j;

	need_cpus(cpus);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = open_deadlines_on(clocks[i], nr, &words);
		bool seen[nr];

		test_about("clock %d", clocks[i]);
		memset(seen, 0, sizeof(seen));
		move_deadlines_of_cpu_that_goes(fd, clocks[i], cpus, words, nr);
		ASSERT_EQ(get_counters(fd).armed + get_counters(fd).ready, nr);
		for (j = 0; j < nr; j++) {
			struct twheel_record record =
				wait_expired_on(fd, clocks[i]);

			ASSERT_LT(record.data, nr);
			ASSERT(!seen[record.data]);
			seen[record.data] = true;
			ASSERT_EQ(record.due_ns, words[record.data]);
		}
		check_nothing_ready(fd);
		ASSERT_GE(count_postponed(fd), nr);
		set_cpu_online(cpus[1], true);
	}
}

/* They are postponed again and again while their CPU goes and comes. */
TEST(hotplug_again_and_again_under_events_that_are_postponed)
{
	const unsigned int cycles = test_count(50);
	const size_t nr = 200;
	int cpus[MAX_CPUS], fd;
	_Atomic __u64 *words;
	struct counters counters;
	unsigned int cycle;
	size_t i;

	need_cpus(cpus);
	fd = open_deadlines(nr, &words);
	for (cycle = 0; cycle < cycles; cycle++) {
		pin_to_cpu(cpus[1]);
		for (i = 0; i < nr; i++) {
			words[i] = monotonic_ns() + SOON_NS + i * NSEC_PER_MSEC / 2;
			add_deadline(fd, i, i);
		}
		pin_to_cpu(cpus[0]);
		set_cpu_online(cpus[1], false);
		for (i = 0; i < nr; i++)
			words[i] += SOON_NS;
		set_cpu_online(cpus[1], true);
		for (i = 0; i < nr; i++)
			words[i] += SOON_NS;
		for (i = 0; i < nr; i++)
			wait_record(fd);
		check_nothing_ready(fd);
	}
	counters = get_counters(fd);
	check_sum(&counters);
	ASSERT_EQ(counters.finished, cycles * nr);
	ASSERT_EQ(counters.armed, 0);
	printf("# %lld postponed\n", count_postponed(fd));
}

TEST(hotplug_deadlines_of_a_bound_context_whose_cpu_goes)
{
	struct twheel_config config = deadlines_config(CLOCK_MONOTONIC, 1);
	int cpus[MAX_CPUS], fd;
	_Atomic __u64 *words;
	long long before;
	__u64 id;

	need_cpus(cpus);
	need_debugfs();
	config.flags = TWHEEL_CONFIG_CPU;
	config.cpu = cpus[1];
	fd = device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC, &config);
	words = map_deadlines(fd, 1);
	pin_to_cpu(cpus[0]);
	before = deadline_base_number(cpus[1], CLOCK_MONOTONIC, "postponed");
	id = add_postponed(fd, words, 0, monotonic_ns() + FAR_NS, 1);
	ASSERT_EQ(deadline_base_number(cpus[1], CLOCK_MONOTONIC, "postponed"), before + 1);
	set_cpu_online(cpus[1], false);
	ASSERT_EQ(query_time(fd, id), words[0]);
	words[0] = monotonic_ns() + SOON_NS;
	ASSERT_EQ(modify_deadline(fd, id, 0), 0);
	ASSERT_EQ(wait_record(fd).due_ns, words[0]);
	set_cpu_online(cpus[1], true);
	before = deadline_base_number(cpus[1], CLOCK_MONOTONIC, "postponed");
	id = add_postponed(fd, words, 0, NEVER_NS, 1);
	ASSERT_EQ(deadline_base_number(cpus[1], CLOCK_MONOTONIC, "postponed"), before + 1);
	ASSERT_EQ(cancel(fd, id), 0);
}

TEST(hotplug_operations_of_a_cpu_that_goes_can_be_completed)
{
	const size_t nr = 1000;
	int cpus[MAX_CPUS], fd = device_open_nonblock();
	__u64 ids[nr], due_ns;
	size_t i;

	need_cpus(cpus);
	pin_to_cpu(cpus[1]);
	for (i = 0; i < nr; i++) {
		ids[i] = add_operation(fd, 1 + i % 2, i);
		ASSERT_EQ(watch(fd, ids[i], 1, 1), 0);
		ASSERT_EQ(watch(fd, ids[i], 2, 1 + i), 0);
	}
	pin_to_cpu(cpus[0]);
	ASSERT_EQ(signal_key(fd, 1, 1), nr / 2);
	set_cpu_online(cpus[1], false);
	ASSERT_EQ(get_counters(fd).armed, nr / 2);
	ASSERT_EQ(signal_key(fd, 2, nr / 2), nr / 4);
	ASSERT_EQ(signal_key(fd, 2, 1), 0);
	due_ns = monotonic_ns() + NSEC_PER_MSEC;
	for (i = 1 + nr / 2; i < nr; i += 4)
		ASSERT_EQ(modify(fd, ids[i], TWHEEL_ABS, due_ns), 0);
	wait_ready(fd, nr / 2 + nr / 4 + nr / 8);
	set_cpu_online(cpus[1], true);
	ASSERT_EQ(signal_key(fd, 2, nr), nr / 8);
	ASSERT_EQ(get_counters(fd).ready, nr);
	ASSERT_EQ(get_counters(fd).completed, nr - nr / 8);
}

TEST(hotplug_cpu_that_came_back_takes_events)
{
	int cpus[MAX_CPUS], fd;
	long long before;

	need_cpus(cpus);
	need_debugfs();
	set_cpu_online(cpus[1], false);
	set_cpu_online(cpus[1], true);
	pin_to_cpu(cpus[1]);
	fd = device_open_nonblock();
	before = base_number(cpus[1], CLOCK_MONOTONIC, "armed");
	add(fd, 0, FAR_NS, 1);
	ASSERT_EQ(base_number(cpus[1], CLOCK_MONOTONIC, "armed"), before + 1);
	add(fd, 0, SOON_NS, 2);
	ASSERT_EQ(wait_record(fd).data, 2);
}

/* The runs of a base, from the trace. */
struct runs {
	int elsewhere;		/* how many were on another CPU than its own */
	int expired;		/* how many events they delivered, all together */
};

static struct runs traced_runs(int cpu)
{
	FILE *trace = fopen("/sys/kernel/tracing/trace", "re");
	struct runs runs = { .elsewhere = 0 };
	char line[512], base[48];

	ASSERT(trace);
	snprintf(base, sizeof(base), "twheel_run: base=%d/monotonic expired=", cpu);
	while (fgets(line, sizeof(line), trace)) {
		const char *run = strstr(line, base), *on = strchr(line, '[');

		if (!run || !on)
			continue;
		runs.elsewhere += atoi(on + 1) != cpu;
		runs.expired += atoi(run + strlen(base));
	}
	fclose(trace);
	return runs;
}

static void stop_tracing_runs(const void *arg)
{
	(void)arg;
	write_file("/sys/kernel/tracing/events/twheel/twheel_run/enable", "0");
}

/*
 * The hrtimer of a CPU that went fires on another one after the CPU has come back.
 * From then on the CPU runs its wheel itself, though nothing is armed that is due
 * earlier than what the hrtimer is set for.
 *
 * That one run is enough, unless it is stopped between its kick and its return: on
 * PREEMPT_RT by any task that is more urgent, and on machines whose CPUs are stopped.
 * So a few are let pass of the 20 there were when nothing kicked.
 */
TEST(hotplug_cpu_that_came_back_runs_its_own_wheel)
{
	int cpus[MAX_CPUS], fd = device_open_nonblock(), trace, i;
	__u64 now_ns, next = 1;
	struct runs runs;

	need_cpus(cpus);
	/* See start_tracing() of test_trace.c. */
	write_file("/sys/kernel/tracing/options/record-cmd", "0");
	if (write_file("/sys/kernel/tracing/events/twheel/twheel_run/enable", "1"))
		test_skip("no tracefs");
	at_end(stop_tracing_runs, NULL);
	pin_to_cpu(cpus[1]);
	add(fd, 0, 2 * NSEC_PER_SEC, 0);
	pin_to_cpu(cpus[0]);
	set_cpu_online(cpus[1], false);
	set_cpu_online(cpus[1], true);
	trace = open("/sys/kernel/tracing/trace", O_WRONLY | O_TRUNC | O_CLOEXEC);
	ASSERT_GE(trace, 0);
	close(trace);

	pin_to_cpu(cpus[1]);
	now_ns = monotonic_ns();
	for (i = 1; i <= 20; i++)
		add(fd, TWHEEL_ABS,
		    now_ns + 2 * NSEC_PER_SEC + i * 20 * NSEC_PER_MSEC, i);
	/* The first event has moved to another wheel, and may come at any time. */
	for (i = 0; i <= 20; i++) {
		__u64 data = wait_record(fd).data;

		if (data)
			ASSERT_EQ(data, next++);
	}
	ASSERT_EQ(next, 21);
	/* The last record can be read before its run has left its trace. */
	do {
		runs = traced_runs(cpus[1]);
	} while (runs.expired < 20);
	ASSERT_LE(runs.elsewhere, 10);
}

TEST_NAMED(hotplug_cpu_that_comes_for_the_first_time_gets_its_wheels)
{
	int cpus[MAX_CPUS], cpu, nr = get_cpus(cpus, MAX_CPUS);
	int fd = device_open_nonblock();
	char path[64];
	size_t i;

	need_debugfs();
	keep_cpus();
	cpu = cpus[nr - 1] + 1;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	if (access(path, W_OK))
		test_skip("all CPUs are there");
	if (base_number(cpu, CLOCK_MONOTONIC, "armed") >= 0)
		test_skip("each CPU has come before");
	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		close(device_open_clock(clocks[i]));
	set_cpu_online(cpu, true);
	pin_to_cpu(cpu);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int on_clock = device_open_clock(clocks[i]);

		test_about("clock %d", clocks[i]);
		ASSERT_EQ(base_number(cpu, clocks[i], "online"), 1);
		add(on_clock, 0, FAR_NS, 0);
		add(on_clock, 0, SOON_NS, 1);
		ASSERT_EQ(wait_expired_on(on_clock, clocks[i]).data, 1);
		close(on_clock);
	}
	add(fd, 0, FAR_NS, 2);
	ASSERT_EQ(base_number(cpu, CLOCK_MONOTONIC, "armed"), 1);
	/* Its events move when it goes offline again. */
	pin_to_cpu(cpus[0]);
	set_cpu_online(cpu, false);
	ASSERT_EQ(base_number(cpu, CLOCK_MONOTONIC, "armed"), 0);
	ASSERT_EQ(get_counters(fd).armed, 1);
}

/* fdinfo names the CPU on whose wheel the next event will be. */
static void check_lives_on_cpu(int fd, clockid_t clock)
{
	int cpu = fdinfo_number(fd, "cpu");
	long long before = base_number(cpu, clock, "armed");
	__u64 id;

	ASSERT_GE(cpu, 0);
	ASSERT_EQ(base_number(cpu, clock, "online"), 1);
	id = add(fd, 0, FAR_NS, 0);
	ASSERT_EQ(base_number(cpu, clock, "armed"), before + 1);
	ASSERT_EQ(cancel(fd, id), 0);
}

TEST(hotplug_bound_context_whose_cpu_goes_says_so)
{
	int cpus[MAX_CPUS], fresh, fd, i;

	need_cpus(cpus);
	need_debugfs();
	fd = open_on_cpu(CLOCK_MONOTONIC, cpus[1]);
	add_many(fd, 0, FAR_NS, 100, NULL);
	for (i = 0; i < 3; i++) {
		test_about("round %d", i);
		check_lives_on_cpu(fd, CLOCK_MONOTONIC);
		set_cpu_online(cpus[1], false);
		ASSERT_EQ(fdinfo_number(fd, "moved"), 1);
		ASSERT_NE(fdinfo_number(fd, "cpu"), cpus[1]);
		check_lives_on_cpu(fd, CLOCK_MONOTONIC);
		ASSERT_EQ(get_counters(fd).armed, 100);
		add(fd, 0, SOON_NS, 1);
		ASSERT_EQ(wait_record(fd).data, 1);

		set_cpu_online(cpus[1], true);
		/* New events go there again; those from before do not. */
		ASSERT_EQ(fdinfo_number(fd, "cpu"), cpus[1]);
		ASSERT_EQ(fdinfo_number(fd, "moved"), 1);
		check_lives_on_cpu(fd, CLOCK_MONOTONIC);
		fresh = open_on_cpu(CLOCK_MONOTONIC, cpus[1]);
		ASSERT_EQ(fdinfo_number(fresh, "moved"), 0);
		close(fresh);
	}
}

TEST(hotplug_of_another_cpu_leaves_a_bound_context_alone)
{
	int cpus[MAX_CPUS], fd;

	need_cpus(cpus);
	fd = open_on_cpu(CLOCK_MONOTONIC, cpus[0]);
	add_many(fd, 0, FAR_NS, 100, NULL);
	set_cpu_online(cpus[1], false);
	ASSERT_EQ(fdinfo_number(fd, "cpu"), cpus[0]);
	ASSERT_EQ(fdinfo_number(fd, "moved"), 0);
	add(fd, 0, SOON_NS, 1);
	ASSERT_EQ(wait_record(fd).data, 1);
	set_cpu_online(cpus[1], true);
	ASSERT_EQ(fdinfo_number(fd, "moved"), 0);
}

/* --- CPUs come and go all the while ----------------------------------------- */

/*
 * Half of the events are due far away, and churners cancel them, arm them again
 * and give them other times, all far away, so that each command has one right
 * answer.  The other half expires all the while and is armed again when it was
 * read, by the reader.  Each event is the table's: its data is its index and how
 * often it was armed, so that a record says whether it is the one due.
 */
struct event {
	__u64 id;
	__u64 due_ns;
	__u64 armed;	/* how often */
	bool ended;
};

#define EVENT_SHIFT	32

struct storm {
	int fd;
	size_t nr;
	struct event *events;	/* the first half is the churners' */
	unsigned int churners;
	atomic_uint next_churner;
	atomic_bool stop;	/* the churners */
	atomic_bool drain;	/* the reader arms no more */
	unsigned long long records;
};

static void storm_arm(struct storm *storm, size_t first, size_t nr,
		      __u64 least_ns, __u64 span_ns, __u64 *seed)
{
	struct twheel_cmd cmds[64];
	__u64 now_ns = monotonic_ns();
	size_t i;

	for (i = 0; i < nr; i++) {
		struct event *event = &storm->events[first + i];

		event->due_ns = now_ns + least_ns + next_random(seed) % span_ns;
		event->armed++;
		event->ended = false;
		cmds[i] = make_add(TWHEEL_ABS, event->due_ns,
				   event->armed << EVENT_SHIFT | (first + i));
	}
	ASSERT_EQ(submit(storm->fd, cmds, nr), nr);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(cmds[i].result, 0);
		storm->events[first + i].id = cmds[i].id;
	}
}

/* Each thread has its own share, and stays where the scheduler puts it. */
static void *storm_churn(void *arg)
{
	struct storm *storm = arg;
	unsigned int me = storm->next_churner++;
	size_t share = storm->nr / 2 / storm->churners;
	__u64 seed = me;

	while (!storm->stop) {
		size_t index = me * share + next_random(&seed) % share;
		struct event *event = &storm->events[index];

		if (next_random(&seed) % 2) {
			ASSERT_EQ(cancel(storm->fd, event->id), 0);
			storm_arm(storm, index, 1, FAR_NS, FAR_NS, &seed);
		} else {
			event->due_ns = monotonic_ns() + FAR_NS +
					next_random(&seed) % FAR_NS;
			ASSERT_EQ(modify(storm->fd, event->id, TWHEEL_ABS,
					 event->due_ns), 0);
			ASSERT_EQ(query_time(storm->fd, event->id),
				  event->due_ns);
		}
	}
	return NULL;
}

static void storm_account(struct storm *storm,
			  const struct twheel_record *record)
{
	size_t index = (__u32)record->data;
	struct event *event = &storm->events[index];

	test_about("event %zu", index);
	check_record(record);
	ASSERT_LT(index, storm->nr);
	ASSERT_EQ(record->data >> EVENT_SHIFT, event->armed);
	ASSERT(!event->ended);
	ASSERT_EQ(record->due_ns, event->due_ns);
	event->ended = true;
	storm->records++;
}

static void *storm_read(void *arg)
{
	struct storm *storm = arg;
	struct twheel_record records[256];
	__u64 seed = 77;

	while (!storm->drain) {
		long nr, i;

		poll_events(storm->fd, 10);
		nr = read_records(storm->fd, records, ARRAY_SIZE(records));
		for (i = 0; i < nr; i++) {
			storm_account(storm, &records[i]);
			ASSERT_GE((__u32)records[i].data, storm->nr / 2);
			storm_arm(storm, (__u32)records[i].data, 1, 0,
				  4 * NSEC_PER_SEC, &seed);
		}
	}
	return NULL;
}

/* Give all that is armed a time soon, and read it. */
static void storm_drain(struct storm *storm)
{
	struct counters counters;
	struct twheel_record records[256];
	long nr, i;

	for (i = 0; i < (long)storm->nr / 2; i++) {
		struct event *event = &storm->events[i];

		event->due_ns = monotonic_ns() + NSEC_PER_MSEC;
		ASSERT_EQ(modify(storm->fd, event->id, TWHEEL_ABS,
				 event->due_ns), 0);
	}
	do {
		poll_events(storm->fd, 10);
		nr = read_records(storm->fd, records, ARRAY_SIZE(records));
		for (i = 0; i < nr; i++)
			storm_account(storm, &records[i]);
		counters = get_counters(storm->fd);
	} while (counters.armed || counters.ready);
	for (i = 0; i < (long)storm->nr; i++) {
		test_about("event %ld", i);
		ASSERT(storm->events[i].ended);
	}
	test_about("the sums");
	check_sum(&counters);
	ASSERT_EQ(counters.finished, storm->records);
	check_nothing_ready(storm->fd);
}

static void cycle_cpus(const int *cpus, int nr_cpus, unsigned int cycles)
{
	__u64 seed = 5;

	while (cycles--) {
		int one = cpus[1 + next_random(&seed) % (nr_cpus - 1)];
		int other = cpus[1 + next_random(&seed) % (nr_cpus - 1)];

		set_cpu_online(one, false);
		/* Now and then a second one, and back in another order. */
		if (other != one && cycles % 2)
			set_cpu_online(other, false);
		set_cpu_online(one, true);
		set_cpu_online(other, true);
	}
}

static void storm_under_hotplug(size_t nr, unsigned int cycles)
{
	struct storm storm = { .nr = nr, .churners = 2 };
	int cpus[MAX_CPUS], nr_cpus = need_cpus(cpus);
	pthread_t churners[2], reader;
	__u64 seed = 1;
	size_t i;

	storm.fd = device_open_nonblock();
	storm.events = calloc(nr, sizeof(*storm.events));
	ASSERT(storm.events);
	for (i = 0; i < nr; i += 50) {
		/* From every CPU. */
		pin_to_cpu(cpus[i / 50 % nr_cpus]);
		storm_arm(&storm, i, 50, i < nr / 2 ? FAR_NS : 0,
			  i < nr / 2 ? FAR_NS : 4 * NSEC_PER_SEC, &seed);
	}
	unpin();
	for (i = 0; i < 2; i++)
		churners[i] = start_thread(storm_churn, &storm);
	reader = start_thread(storm_read, &storm);
	cycle_cpus(cpus, nr_cpus, cycles);
	storm.stop = true;
	for (i = 0; i < 2; i++)
		join_thread(churners[i]);
	storm.drain = true;
	join_thread(reader);
	printf("# %u cycles, %llu records, %lld events added, %lld cancelled\n",
	       cycles, storm.records, get_counters(storm.fd).added,
	       get_counters(storm.fd).cancelled);
	storm_drain(&storm);
}

TEST(hotplug_loses_and_doubles_nothing)
{
	storm_under_hotplug(test_count(20000), 5);
}

TEST_NAMED(hotplug_many_cycles_lose_and_double_nothing)
{
	const char *cycles = getenv("HOTPLUG_CYCLES");

	storm_under_hotplug(100000, cycles ? atoi(cycles) : 200);
}

/* Events for a CPU that comes and goes, from CPUs that stay. */
static void *arm_for_ever(void *arg)
{
	struct storm *storm = arg;
	__u64 seed = 3;

	while (!storm->stop) {
		__u64 id = add(storm->fd, 0, FAR_NS, 0);

		add(storm->fd, 0, next_random(&seed) % (5 * NSEC_PER_MSEC), 1);
		ASSERT_EQ(modify(storm->fd, id, 0, 2 * FAR_NS), 0);
		ASSERT_EQ(cancel(storm->fd, id), 0);
	}
	return NULL;
}

TEST(hotplug_of_the_cpu_that_a_busy_context_is_bound_to)
{
	struct storm storm = { .stop = false };
	struct counters counters;
	int cpus[MAX_CPUS], i;
	pthread_t threads[2];

	need_cpus(cpus);
	storm.fd = open_on_cpu(CLOCK_MONOTONIC, cpus[1]);
	for (i = 0; i < 2; i++)
		threads[i] = start_thread(arm_for_ever, &storm);
	for (i = 0; i < 10; i++) {
		struct twheel_record records[256];

		set_cpu_online(cpus[1], i % 2);
		wait_readable(storm.fd);
		while (read_records(storm.fd, records, 256) == 256)
			;
	}
	storm.stop = true;
	for (i = 0; i < 2; i++)
		join_thread(threads[i]);
	do {
		struct twheel_record records[256];

		poll_events(storm.fd, 10);
		read_records(storm.fd, records, 256);
		counters = get_counters(storm.fd);
	} while (counters.armed || counters.ready);
	/* Half were cancelled, half were read. */
	ASSERT_EQ(counters.cancelled, counters.added / 2);
	ASSERT_EQ(counters.finished, counters.added / 2);
}

/* Opened and closed while the CPU that they use is going. */
static void *open_and_close(void *arg)
{
	struct storm *storm = arg;

	while (!storm->stop) {
		int fd = device_open_clock(clocks[storm->next_churner++ % 3]);

		add_many(fd, 0, FAR_NS, 64, NULL);
		add_many(fd, 0, NSEC_PER_MSEC, 64, NULL);
		close(fd);
	}
	return NULL;
}

TEST(hotplug_under_contexts_that_come_and_go)
{
	long long before = armed_on_machine();
	struct storm storm = { .stop = false };
	int cpus[MAX_CPUS], nr_cpus, i;
	pthread_t threads[2];

	nr_cpus = need_cpus(cpus);
	for (i = 0; i < 2; i++)
		threads[i] = start_thread(open_and_close, &storm);
	cycle_cpus(cpus, nr_cpus, 5);
	storm.stop = true;
	for (i = 0; i < 2; i++)
		join_thread(threads[i]);
	wait_armed_on_machine(before);
}

/* --- isolated CPUs ---------------------------------------------------------- */

/* The first CPU in a list of the kernel's, or -1. */
static int first_of_list(const char *path)
{
	return read_number(path);
}

TEST_NAMED(isolated_cpu_has_its_events_on_housekeeping_ones)
{
	int cpu = first_of_list("/sys/devices/system/cpu/nohz_full"), i;
	const size_t nr = 1000;
	size_t j;

	need_debugfs();
	if (cpu < 0)
		test_skip("no CPU is isolated");
	pin_to_cpu(cpu);
	for (i = 0; i < (int)ARRAY_SIZE(clocks); i++) {
		int fd = device_open_clock(clocks[i]), other;
		__u64 due_ns = clock_ns(clocks[i]) + FAR_NS;
		long long before, elsewhere = 0;

		test_about("clock %d", clocks[i]);
		add(fd, TWHEEL_ABS, due_ns, 0);
		before = base_number(cpu, clocks[i], "armed");
		add_many(fd, TWHEEL_ABS, due_ns, nr, NULL);
		ASSERT_EQ(base_number(cpu, clocks[i], "armed"), before);
		ASSERT_EQ(before, 0);
		for (other = 0; other < MAX_CPUS; other++) {
			long long armed = base_number(other, clocks[i],
						      "armed");

			elsewhere += other != cpu && armed > 0 ? armed : 0;
		}
		ASSERT_GE(elsewhere, nr);
		/* Neither early nor lost. */
		for (j = 0; j < nr; j++)
			add(fd, TWHEEL_ABS, clock_ns(clocks[i]) +
			    j * 20 * NSEC_PER_USEC, j);
		for (j = 0; j < nr; j++)
			wait_expired_on(fd, clocks[i]);
		check_nothing_ready(fd);
		close(fd);
	}
}

/* One SUBMIT each, so that each looks for a wheel anew. */
TEST_NAMED(isolated_cpu_has_its_events_always_on_the_same_wheel)
{
	const long long nr = 200;
	int cpu = first_of_list("/sys/devices/system/cpu/nohz_full"), other, i;
	int fd = device_open_nonblock(), wheels = 0;

	need_debugfs();
	if (cpu < 0)
		test_skip("no CPU is isolated");
	pin_to_cpu(cpu);
	for (i = 0; i < nr; i++)
		add(fd, 0, FAR_NS, i);
	for (other = 0; other < MAX_CPUS; other++) {
		long long armed = base_number(other, CLOCK_MONOTONIC, "armed");

		wheels += armed > 0;
		ASSERT(armed <= 0 || armed >= nr);
	}
	ASSERT_EQ(wheels, 1);
}

TEST_NAMED(isolated_cpu_takes_no_interrupts_for_its_events)
{
	int cpu = first_of_list("/sys/devices/system/cpu/nohz_full"), i;
	int fd = device_open_nonblock();
	long long before;

	need_debugfs();
	if (cpu < 0)
		test_skip("no CPU is isolated");
	pin_to_cpu(cpu);
	before = base_number(cpu, CLOCK_MONOTONIC, "interrupts");
	for (i = 0; i < 100; i++) {
		add(fd, 0, NSEC_PER_MSEC, i);
		ASSERT_EQ(wait_record(fd).data, i);
	}
	ASSERT_EQ(base_number(cpu, CLOCK_MONOTONIC, "interrupts"), before);
}

TEST_NAMED(isolated_cpu_can_be_asked_for)
{
	int cpu = first_of_list("/sys/devices/system/cpu/nohz_full"), fd;

	need_debugfs();
	if (cpu < 0)
		test_skip("no CPU is isolated");
	fd = open_on_cpu(CLOCK_MONOTONIC, cpu);
	/* Wherever it is then, fdinfo says so. */
	check_lives_on_cpu(fd, CLOCK_MONOTONIC);
	add(fd, 0, SOON_NS, 1);
	ASSERT_EQ(wait_record(fd).data, 1);
}
