// SPDX-License-Identifier: GPL-2.0
/*
 * Loading of the module, the first use of a clock, a CPU that comes up, and a clock that is set
 * back, each allocation of which fails in turn.
 *
 * The module is FAULTS_MODULE, or /twheel.ko. It is loaded anew for each attempt, so that it
 * has everything still to make, and is left unloaded. FAULTS_STEP=N, with N above 1, takes each
 * Nth point only.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/device/util.h"

#include "fault.h"
#include "scene.h"

#define CPU		"/sys/devices/system/cpu/cpu1/"
#define DEBUGFS		"/sys/kernel/debug/twheel"

static int module = -1;

static unsigned int step(void)
{
	const char *text = getenv("FAULTS_STEP");

	return text ? strtoul(text, NULL, 10) : 1;
}

/* --- the module ------------------------------------------------------------- */

static bool is_loaded(void)
{
	return !access("/sys/module/twheel", F_OK);
}

static long load_module(void)
{
	return result_of(syscall(SYS_finit_module, module, "", 0));
}

static void wait_node(void)
{
	while (access("/dev/twheel", R_OK))
		poll(NULL, 0, 1);
}

static void unload(void)
{
	if (is_loaded())
		ASSERT_EQ(result_of(syscall(SYS_delete_module, "twheel", O_NONBLOCK)), 0);
	ASSERT(!is_loaded());
	while (!access("/dev/twheel", F_OK))
		poll(NULL, 0, 1);
	ASSERT(access(DEBUGFS, F_OK));
}

static void load(void)
{
	ASSERT_EQ(load_module(), 0);
	wait_node();
}

static void start(void)
{
	const char *path = getenv("FAULTS_MODULE");

	faults_open();
	module = open(path ? path : "/twheel.ko", O_RDONLY | O_CLOEXEC);
	ASSERT_GE(module, 0);
	unload();
}

/* An event on each clock, of which bases are there. */
static void check_works(int fd)
{
	struct twheel_record record;

	add(fd, 0, NSEC_PER_MSEC, 5);
	wait_readable(fd);
	ASSERT_EQ(read_records(fd, &record, 1), 1);
	ASSERT_EQ(record.data, 5);
	ASSERT_GE(record.fired_ns, record.due_ns);
}

static void check_module_works(void)
{
	int fd = device_open_nonblock();

	check_works(fd);
	close(fd);
}

/* --- faults of calls by the kernel, by kunit/fault_calls.c ------------------ */

#define CALLS		"/sys/module/twheel_fault_calls/parameters/"

static void calls_begin(unsigned int nth, bool all)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", nth);
	ASSERT_EQ(write_file(CALLS "left", "-1"), 0);
	ASSERT_EQ(write_file(CALLS "all", all ? "Y" : "N"), 0);
	ASSERT_EQ(write_file(CALLS "nth", text), 0);
}

/* What the call has left of nth, or -1: the kernel has not called. */
static int calls_left(void)
{
	char text[16] = "";
	int fd = open(CALLS "left", O_RDONLY | O_CLOEXEC);

	ASSERT_GE(fd, 0);
	ASSERT_GT(read(fd, text, sizeof(text) - 1), 0);
	close(fd);
	return atoi(text);
}

static bool calls_end(void)
{
	int left = calls_left();

	ASSERT_GE(left, 0);
	return !left;
}

/* --- loading ---------------------------------------------------------------- */

static const int load_errors[] = { ENOMEM };

static void check_error(long ret, const int *errors, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (ret == -errors[i])
			return;
	}
	test_fail(__FILE__, __LINE__, "seen -%s", strerrorname_np(-ret));
}

/* Returns how many faults it met. */
static unsigned int walk_load(bool all, unsigned int *refused)
{
	unsigned int nth;

	for (nth = 1; nth < FAULTS_MAX; nth += step()) {
		bool fired;
		long ret;

		test_about("%s%u", all ? "from " : "", nth);
		calls_begin(nth, all);
		ret = load_module();
		fired = calls_end();
		ASSERT_EQ(is_loaded(), !ret);
		if (ret) {
			ASSERT(fired);
			check_error(ret, load_errors, ARRAY_SIZE(load_errors));
			++*refused;
		} else {
			wait_node();
			check_module_works();
		}
		unload();
		if (!fired)
			return (nth - 1) / step();
	}
	test_fail(__FILE__, __LINE__, "it never ends without a fault");
}

static void print_points(const char *name, unsigned int points, unsigned int refused)
{
	printf("# %s: %u points, %u refused\n", name, points, refused);
}

TEST_NAMED(load_fails_or_works)
{
	unsigned int refused = 0, points;

	start();
	points = walk_load(false, &refused);
	points += walk_load(true, &refused);
	print_points("load", points, refused);
}

/* --- the first use of a clock ----------------------------------------------- */

static const int config_errors[] = { ENOMEM };

static unsigned int walk_clock(clockid_t clock, bool all, unsigned int *refused)
{
	struct twheel_config config = deadlines_config(clock, 1);
	unsigned int nth;

	for (nth = 1; nth < FAULTS_MAX; nth += step()) {
		bool fired;
		long ret;
		int fd;

		load();
		fd = device_open_nonblock();
		test_about("clock %d: %s%u", clock, all ? "from " : "", nth);
		faults_begin(nth, all);
		ret = result_of(ioctl(fd, TWHEEL_IOC_CONFIG, &config));
		fired = faults_end();
		if (ret) {
			ASSERT(fired);
			/* What has no hook for allocations has one for copies. */
			if (ret != -EFAULT)
				check_error(ret, config_errors, ARRAY_SIZE(config_errors));
			++*refused;
			ASSERT_EQ(fdinfo_number(fd, "clockid"), CLOCK_MONOTONIC);
			ASSERT_EQ(device_ioctl(fd, TWHEEL_IOC_CONFIG, &config), 0);
		}
		check_works(fd);
		close(fd);
		unload();
		if (!fired)
			return (nth - 1) / step();
	}
	test_fail(__FILE__, __LINE__, "it never ends without a fault");
}

TEST_NAMED(first_use_of_a_clock_fails_or_works)
{
	unsigned int refused = 0, points;

	start();
	points = walk_clock(CLOCK_BOOTTIME, false, &refused);
	points += walk_clock(CLOCK_BOOTTIME, true, &refused);
	points += walk_clock(CLOCK_REALTIME, true, &refused);
	print_points("first_use", points, refused);
}

/* --- a CPU that comes up ---------------------------------------------------- */

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };

/* Contexts of all clocks, each with words, and with an event that stays. */
static void open_all(int *fds)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		struct twheel_config config = deadlines_config(clocks[i], 1);

		fds[i] = device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC, &config);
		add(fds[i], 0, FAR_NS, i);
	}
}

static void check_all_work(const int *fds)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		check_works(fds[i]);
		ASSERT_EQ(get_counters(fds[i]).armed, 1);
	}
}

static void close_all(const int *fds)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		close(fds[i]);
}

/* The CPU has a wheel of its own for each clock, which works. */
static void check_cpu_works(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		struct twheel_config config = default_config();
		int fd;

		config.clockid = clocks[i];
		config.flags = TWHEEL_CONFIG_CPU;
		config.cpu = 1;
		fd = device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC, &config);
		ASSERT_EQ(fdinfo_number(fd, "cpu"), 1);
		check_works(fd);
		close(fd);
	}
}

static bool is_online(void)
{
	char text[4] = "";
	int fd = open(CPU "online", O_RDONLY | O_CLOEXEC);

	ASSERT_GE(fd, 0);
	ASSERT_GT(read(fd, text, sizeof(text) - 1), 0);
	close(fd);
	return text[0] == '1';
}

static const int cpu_errors[] = { ENOMEM };

static unsigned int walk_cpu(bool all, unsigned int *refused)
{
	unsigned int nth;

	for (nth = 1; nth < FAULTS_MAX; nth += step()) {
		int fds[ARRAY_SIZE(clocks)], ret;
		bool fired;

		set_cpu_online(1, false);
		load();
		open_all(fds);
		test_about("%s%u", all ? "from " : "", nth);
		calls_begin(nth, all);
		ret = write_file(CPU "online", "1");
		fired = calls_end();
		ASSERT_EQ(is_online(), !ret);
		check_all_work(fds);
		if (ret) {
			ASSERT(fired);
			check_error(ret, cpu_errors, ARRAY_SIZE(cpu_errors));
			++*refused;
			ASSERT_EQ(write_file(CPU "online", "1"), 0);
			check_all_work(fds);
		}
		check_cpu_works();
		close_all(fds);
		unload();
		if (!fired)
			return (nth - 1) / step();
	}
	test_fail(__FILE__, __LINE__, "it never ends without a fault");
}

TEST_NAMED(cpu_comes_up_or_says_why_not)
{
	unsigned int refused = 0, points;

	start();
	keep_cpus();
	points = walk_cpu(false, &refused);
	points += walk_cpu(true, &refused);
	print_points("cpu_up", points, refused);
}

/* The number of a step that a CPU takes when it comes up. */
static int number_of_step(const char *name)
{
	FILE *file = fopen("/sys/devices/system/cpu/hotplug/states", "r");
	char line[128];
	int number = -1;

	ASSERT(file);
	while (fgets(line, sizeof(line), file)) {
		if (strstr(line, name))
			number = atoi(line);
	}
	fclose(file);
	return number;
}

/* The module's step is done then, and has to be undone. */
TEST_NAMED(cpu_that_fails_after_the_module_s_step_leaves_all_as_it_was)
{
	int fds[ARRAY_SIZE(clocks)], number;
	char text[16];

	start();
	keep_cpus();
	set_cpu_online(1, false);
	load();
	open_all(fds);
	number = number_of_step("sched:active");
	ASSERT_GT(number, number_of_step("twheel:online"));
	snprintf(text, sizeof(text), "%d", number);
	ASSERT_EQ(write_file(CPU "hotplug/fail", text), 0);
	ASSERT_EQ(write_file(CPU "online", "1"), -EAGAIN);
	ASSERT(!is_online());
	check_all_work(fds);
	ASSERT_EQ(write_file(CPU "hotplug/fail", "-1"), 0);
	ASSERT_EQ(write_file(CPU "online", "1"), 0);
	check_cpu_works();
	check_all_work(fds);
	close_all(fds);
	unload();
}

/* --- a clock that is set back ----------------------------------------------- */

static int open_realtime(void)
{
	struct twheel_config config = default_config();

	config.clockid = CLOCK_REALTIME;
	config.flags = TWHEEL_CONFIG_CPU;
	return device_open_configured(O_RDWR | O_NONBLOCK | O_CLOEXEC, &config);
}

static long long realtime_number(const char *name)
{
	return base_number(0, CLOCK_REALTIME, name);
}

/* The event is due before where the wheel stands, and is the only one. */
static void check_waits(void)
{
	ASSERT_EQ(realtime_number("gap"), 1);
	ASSERT_GT(realtime_number("next"), realtime_number("now"));
}

static unsigned int walk_set_back(bool all, unsigned int *refused)
{
	unsigned int nth;

	for (nth = 1; nth < FAULTS_MAX; nth++) {
		struct twheel_record record;
		bool fired;
		int fd;

		load();
		fd = open_realtime();
		add(fd, TWHEEL_ABS, clock_ns(CLOCK_REALTIME) + FAR_NS, 1);
		test_about("%s%u", all ? "from " : "", nth);
		calls_begin(nth, all);
		move_clock(-100 * (long long)NSEC_PER_SEC);
		while (calls_left() < 0)
			poll(NULL, 0, 1);
		fired = calls_end();
		add(fd, TWHEEL_ABS, clock_ns(CLOCK_REALTIME) + 2 * NSEC_PER_SEC, 2);
		if (realtime_number("wheels") == 1) {
			ASSERT(fired);
			++*refused;
			check_waits();
			/* The next setting of the clock makes the wheels. */
			move_clock(0);
		}
		wait_readable(fd);
		ASSERT_EQ(read_records(fd, &record, 1), 1);
		ASSERT_EQ(record.data, 2);
		ASSERT_GE(record.fired_ns, record.due_ns);
		ASSERT_GT(realtime_number("wheels"), 1);
		ASSERT_EQ(get_counters(fd).armed, 1);
		move_clock(100 * (long long)NSEC_PER_SEC);
		close(fd);
		unload();
		if (!fired)
			return nth - 1;
	}
	test_fail(__FILE__, __LINE__, "it never ends without a fault");
}

TEST_NAMED(set_back_clock_makes_wheels_now_or_when_it_is_set_again)
{
	unsigned int refused = 0, points;

	keep_clock();
	start();
	points = walk_set_back(false, &refused);
	points += walk_set_back(true, &refused);
	ASSERT_GT(refused, 0);
	print_points("set_back", points, refused);
}
