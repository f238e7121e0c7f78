// SPDX-License-Identifier: GPL-2.0
/*
 * A machine that sleeps, (t): CLOCK_BOOTTIME and CLOCK_REALTIME go on meanwhile,
 * CLOCK_MONOTONIC stands still.
 *
 * Only a virtual machine is sent to sleep, and only to S3, from which an alarm
 * of its RTC wakes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

#define ALARM	"/sys/class/rtc/rtc0/wakealarm"

static bool file_has(const char *path, const char *word)
{
	bool found = false;
	char line[4096];
	FILE *file = fopen(path, "r");

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, word);
	fclose(file);
	return found;
}

static void need_sleep(void)
{
	if (!file_has("/proc/cpuinfo", " hypervisor"))
		test_skip("not a virtual machine");
	if (!file_has("/sys/power/state", "mem") ||
	    !file_has("/sys/power/mem_sleep", "deep"))
		test_skip("the machine has no S3");
	if (access(ALARM, W_OK))
		test_skip("no RTC to wake it up");
	if (write_file("/sys/power/mem_sleep", "deep"))
		test_skip("S3 cannot be chosen");
}

/* For how long: the alarm must not come before the machine is asleep. */
static unsigned int sleep_s(void)
{
	return is_debug_kernel() ? 15 : 8;
}

/* How much further than CLOCK_MONOTONIC CLOCK_BOOTTIME is. */
static long long slept_ns(void)
{
	long long monotonic = monotonic_ns();

	return clock_ns(CLOCK_BOOTTIME) - monotonic;
}

/*
 * Sleep until the alarm.  The count of wake-ups, written back, lets the kernel
 * give up when the alarm comes while it is still about to sleep.
 */
static void sleep_once(void)
{
	long long before_ns = slept_ns();
	char count[32], alarm[32];
	int error;

	snprintf(count, sizeof(count), "%lld",
		 read_number("/sys/power/wakeup_count"));
	write_file("/sys/power/wakeup_count", count);
	ASSERT_EQ(write_file(ALARM, "0"), 0);
	snprintf(alarm, sizeof(alarm), "+%u", sleep_s());
	ASSERT_EQ(write_file(ALARM, alarm), 0);
	error = write_file("/sys/power/state", "mem");
	if (error)
		test_skip("the machine does not sleep: %s", strerror(-error));
	if (slept_ns() - before_ns < (long long)NSEC_PER_SEC)
		test_skip("the machine did not sleep for a second");
}

static void arm_at_random(int fd, clockid_t clock, size_t nr, __u64 *seed)
{
	__u64 span_ns = 3 * sleep_s() * NSEC_PER_SEC / 2, now_ns = clock_ns(clock);
	struct twheel_cmd *cmds = calloc(nr, sizeof(*cmds));
	size_t i;

	ASSERT(cmds);
	for (i = 0; i < nr; i++)
		cmds[i] = make_add(TWHEEL_ABS,
				   now_ns + next_random(seed) % span_ns, i);
	ASSERT_EQ(submit(fd, cmds, nr), nr);
	free(cmds);
}

static void read_each_once(int fd, clockid_t clock, size_t nr)
{
	bool *seen = calloc(nr, sizeof(*seen));
	size_t i;

	ASSERT(seen);
	for (i = 0; i < nr; i++) {
		struct twheel_record record = wait_expired_on(fd, clock);

		ASSERT_LT(record.data, nr);
		ASSERT(!seen[record.data]);
		seen[record.data] = true;
	}
	check_nothing_ready(fd);
	free(seen);
}

/* Two events that are due after the same time, each on its clock. */
struct pair {
	int boottime;
	int monotonic;
	__u64 due_ns;		/* on CLOCK_MONOTONIC, at the earliest */
};

static struct pair arm_pair(void)
{
	__u64 delay_ns = sleep_s() * NSEC_PER_SEC / 2;
	struct pair pair = {
		.boottime = device_open_clock(CLOCK_BOOTTIME),
		.monotonic = device_open_clock(CLOCK_MONOTONIC),
		.due_ns = monotonic_ns() + delay_ns,
	};

	add(pair.boottime, 0, delay_ns, 0);
	add(pair.monotonic, 0, delay_ns, 0);
	return pair;
}

/*
 * On one clock the time is over on waking up, on the other it has just begun: unless the
 * machine stood still before or after it slept.
 */
static void read_pair(const struct pair *pair)
{
	bool in_time = monotonic_ns() < pair->due_ns;
	struct twheel_record early, late;

	early = wait_expired_on(pair->boottime, CLOCK_BOOTTIME);
	late = wait_expired_on(pair->monotonic, CLOCK_MONOTONIC);
	if (in_time)
		ASSERT_LE(early.fired_ns - slept_ns(), late.fired_ns);
	else
		printf("# it took too long to fall asleep or to wake up\n");
	check_nothing_ready(pair->boottime);
	check_nothing_ready(pair->monotonic);
}

/* All in one, as some machines wake up at once when they sleep again. */
TEST_NAMED(suspend_counts_for_boottime_only_and_no_event_is_lost_or_early)
{
	static const clockid_t clocks[] = {
		CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_MONOTONIC,
	};
	const size_t nr = test_count(10000);
	int fds[ARRAY_SIZE(clocks)];
	struct pair pair;
	__u64 seed = 1;
	size_t i;

	need_sleep();
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		fds[i] = device_open_clock(clocks[i]);
		arm_at_random(fds[i], clocks[i], nr, &seed);
	}
	pair = arm_pair();
	sleep_once();
	read_pair(&pair);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		test_about("clock %d", clocks[i]);
		read_each_once(fds[i], clocks[i], nr);
	}
}
