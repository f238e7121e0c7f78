// SPDX-License-Identifier: GPL-2.0
/* What disturbs the machine: see disturb.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chance.h"
#include "disturb.h"
#include "ledger.h"
#include "settle.h"

#define CGROUPS		"/sys/fs/cgroup"
#define CGROUP		CGROUPS "/tormentor"
#define CGROUP_KB	4096
#define CGROUP_KB_LEAST	128
#define ALARM		"/sys/class/rtc/rtc0/wakealarm"
#define ALARM_S		8
#define CPUS_MAX	64
#define HOG_BATCH	500

static uint64_t chance;

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

static void pause_ms(unsigned int most)
{
	usleep(1000 * random_below(&chance, most));
}

/* --- CPUs ----------------------------------------------------------------------------- */

static bool set_online(unsigned int cpu, bool online)
{
	char path[64];
	bool done;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	cpus_lock();
	done = write_text(path, online ? "1" : "0");
	cpus_unlock();
	return done;
}

static void change_cpus(void)
{
	long nr = sysconf(_SC_NPROCESSORS_CONF);

	while (!ledger->stop && nr > 1) {
		unsigned int cpu = 1 + random_below(&chance, nr - 1);

		if (set_online(cpu, false)) {
			pause_ms(50);
			while (!set_online(cpu, true))
				pause_ms(10);
			ledger->hotplugs++;
		}
		pause_ms(200);
	}
}

/* --- the clock ------------------------------------------------------------------------ */

/* By seconds at most, half of the time back. */
static void set_clock(void)
{
	struct timespec time;
	int64_t step_ns = random_below(&chance, 4 * SECOND_NS) - 2 * SECOND_NS;
	int set = note_clock_set(-1);
	uint64_t to_ns;

	if (set < 0)
		return;
	if (one_in(&chance, 2))
		step_ns /= 1000;
	to_ns = clock_ns(CLOCK_REALTIME) + step_ns;
	time = (struct timespec){ to_ns / SECOND_NS, to_ns % SECOND_NS };
	if (!clock_settime(CLOCK_REALTIME, &time))
		ledger->clock_sets++;
	note_clock_set(set);
}

static bool sleep_by_test(void)
{
	bool slept;

	write_text("/sys/module/suspend/parameters/pm_test_delay", "1");
	slept = write_text("/sys/power/pm_test", "core") && write_text("/sys/power/state", "mem");
	write_text("/sys/power/pm_test", "none");
	return slept;
}

static bool sleep_by_rtc(void)
{
	char alarm[16];

	snprintf(alarm, sizeof(alarm), "+%u", ALARM_S);
	return write_text("/sys/power/mem_sleep", "deep") && write_text(ALARM, "0") &&
	       write_text(ALARM, alarm) && write_text("/sys/power/state", "mem");
}

/* The wall clock goes on meanwhile, and CLOCK_MONOTONIC does not. */
static void sleep_once(enum sleep_kind kind)
{
	uint64_t before_ns = clock_ns(CLOCK_BOOTTIME) - now_ns();
	int set = note_clock_set(-1);
	bool slept;

	if (set < 0)
		return;
	/*
	 * A machine can be so slow that its tasks do not stop in 20 s, which is the default; and
	 * sometimes they never do, see the script "excused".
	 */
	write_text("/sys/power/pm_freeze_timeout", "60000");
	slept = kind == SLEEP_TEST ? sleep_by_test() : sleep_by_rtc();
	note_clock_set(set);
	/* The clocks differ by more than before, and so the machine was asleep. */
	if (slept && clock_ns(CLOCK_BOOTTIME) - now_ns() > before_ns + MILLISECOND_NS)
		ledger->suspends++;
}

static void change_clock(const struct disturbance *disturbance)
{
	while (!ledger->stop) {
		if (disturbance->clock)
			set_clock();
		pause_ms(100);
		if (disturbance->sleep == SLEEP_NEVER || now_ns() < ledger->sleep_ns)
			continue;
		sleep_once(disturbance->sleep);
		ledger->sleep_ns = now_ns() + disturbance->sleep_s * SECOND_NS;
	}
}

/* --- memory --------------------------------------------------------------------------- */

static unsigned int cgroup_kb = CGROUP_KB;

static bool limit_cgroup(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%uK", cgroup_kb);
	return write_text(CGROUP "/memory.max", text);
}

const char *make_cgroup(void)
{
	write_text(CGROUPS "/cgroup.subtree_control", "+memory");
	if (mkdir(CGROUP, 0755) && errno != EEXIST)
		return NULL;
	if (!limit_cgroup()) {
		rmdir(CGROUP);
		return NULL;
	}
	return CGROUP "/cgroup.procs";
}

void shrink_cgroup(void)
{
	if (cgroup_kb == CGROUP_KB_LEAST)
		return;
	cgroup_kb /= 2;
	limit_cgroup();
}

void remove_cgroup(void)
{
	rmdir(CGROUP);
}

/*
 * Events take all memory of the cgroup, again and again. The kernel refuses events then, where it
 * would kill a process that takes memory of its own.
 */
static void take_memory(void)
{
	static struct twheel_cmd cmds[HOG_BATCH];
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.cmds = (uintptr_t)cmds,
		.nr = HOG_BATCH,
		.cmd_size = sizeof(cmds[0]),
	};
	int fds[16] = { 0 };
	unsigned int i, file = 0;

	for (i = 0; i < HOG_BATCH; i++)
		cmds[i] = (struct twheel_cmd){ .op = TWHEEL_OP_ADD, .time_ns = 1000 * SECOND_NS };
	for (i = 0; i < 16; i++)
		fds[i] = open("/dev/twheel", O_RDWR | O_CLOEXEC);
	settle_memory();
	if (!write_text(CGROUP "/cgroup.procs", "0"))
		return;
	while (!ledger->stop) {
		if (ioctl(fds[file], TWHEEL_IOC_SUBMIT, &submit) <= 0)
			break;
		if (cmds[HOG_BATCH - 1].result >= 0) {
			ledger->hog_events += HOG_BATCH;
			continue;
		}
		ledger->hog_refused++;
		pause_ms(20);
		if (one_in(&chance, 4))
			close(fds[file++]);
		if (file == 16)
			break;
	}
}

/* --- all of it ------------------------------------------------------------------------ */

static bool start(uint64_t seed)
{
	if (fork())
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, SIG_IGN);
	chance = seed;
	return true;
}

void disturb(const struct disturbance *disturbance, uint64_t seed)
{
	if (disturbance->hotplug && start(seed)) {
		change_cpus();
		_exit(0);
	}
	if ((disturbance->clock || disturbance->sleep) && start(seed + 1)) {
		change_clock(disturbance);
		_exit(0);
	}
	if (disturbance->memory && start(seed + 2)) {
		take_memory();
		_exit(0);
	}
}
