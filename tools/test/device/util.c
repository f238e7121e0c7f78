// SPDX-License-Identifier: GPL-2.0
/* Helpers of the tests: memory, clocks, threads, processes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

static size_t whole_pages(size_t size)
{
	return (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

void *map_pages(size_t size)
{
	void *pages = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT(pages != MAP_FAILED);
	return pages;
}

void *map_before_hole(size_t size)
{
	char *pages = map_pages(whole_pages(size) + PAGE_BYTES);
	char *hole = pages + whole_pages(size);

	ASSERT_EQ(mprotect(hole, PAGE_BYTES, PROT_NONE), 0);
	return hole - size;
}

void *map_before_read_only(size_t writable, size_t read_only)
{
	char *pages = map_pages(whole_pages(writable) + read_only);

	return pages + whole_pages(writable) - writable;
}

void make_read_only(void *pages, size_t size)
{
	ASSERT_EQ(mprotect(pages, size, PROT_READ), 0);
}

void check_bytes(const void *bytes, int value, size_t size)
{
	const unsigned char *byte = bytes;
	size_t i;

	for (i = 0; i < size; i++) {
		if (byte[i] != value)
			test_fail(__FILE__, __LINE__,
				  "byte %zu of %zu: seen %#x, expected %#x",
				  i, size, byte[i], value);
	}
}

__u64 monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

__u64 next_random(__u64 *seed)
{
	/* splitmix64 */
	__u64 value = *seed += 0x9e3779b97f4a7c15ULL;

	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
	return value ^ (value >> 31);
}

size_t get_cpus(int *cpus, size_t nr)
{
	cpu_set_t allowed;
	size_t found = 0;
	int cpu;

	ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (cpu = 0; cpu < CPU_SETSIZE && found < nr; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			cpus[found++] = cpu;
	}
	return found;
}

void pin_to_cpu(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	ASSERT_EQ(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

void pin_to_this_cpu(void)
{
	pin_to_cpu(sched_getcpu());
}

pthread_t start_thread(void *(*thread_run)(void *arg), void *arg)
{
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, thread_run, arg), 0);
	return thread;
}

void join_thread(pthread_t thread)
{
	ASSERT_EQ(pthread_join(thread, NULL), 0);
}

pid_t thread_id(void)
{
	return syscall(SYS_gettid);
}

static char thread_state(pid_t tid)
{
	char path[64], line[512] = "";
	const char *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	file = fopen(path, "r");
	ASSERT(file);
	ASSERT(fgets(line, sizeof(line), file));
	fclose(file);
	end = strrchr(line, ')');
	ASSERT(end);
	return end[2];
}

void wait_asleep(pid_t tid)
{
	while (thread_state(tid) != 'S')
		poll(NULL, 0, 1);
}

static atomic_int signals;

static void count_signal(int signal)
{
	(void)signal;
	signals++;
}

void count_signals(int signal, int flags)
{
	struct sigaction action = {
		.sa_handler = count_signal,
		.sa_flags = flags,
	};

	ASSERT_EQ(sigaction(signal, &action, NULL), 0);
}

int signals_counted(void)
{
	return signals;
}

void wait_signal_after(int nr)
{
	while (signals <= nr)
		poll(NULL, 0, 1);
}

void start_alarms(int flags)
{
	struct itimerval interval = {
		.it_interval.tv_usec = 1000,
		.it_value.tv_usec = 1000,
	};

	count_signals(SIGALRM, flags);
	ASSERT_EQ(setitimer(ITIMER_REAL, &interval, NULL), 0);
}

pid_t start_child(void)
{
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	return pid;
}

void wait_child(pid_t pid)
{
	int status;

	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT(WIFEXITED(status));
	ASSERT_EQ(WEXITSTATUS(status), 0);
}

void stop_and_continue(pid_t pid)
{
	int status;

	ASSERT_EQ(kill(pid, SIGSTOP), 0);
	ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
	ASSERT(WIFSTOPPED(status));
	ASSERT_EQ(kill(pid, SIGCONT), 0);
}

void kill_child(pid_t pid)
{
	int status;

	ASSERT_EQ(kill(pid, SIGKILL), 0);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT(WIFSIGNALED(status));
}

struct signpost signpost_make(void)
{
	struct signpost post;

	ASSERT_EQ(pipe2(post.fds, O_CLOEXEC), 0);
	return post;
}

void signpost_tell(struct signpost *post)
{
	ASSERT_EQ(write(post->fds[1], "", 1), 1);
}

void signpost_wait(struct signpost *post)
{
	char byte;

	ASSERT_EQ(read(post->fds[0], &byte, 1), 1);
}

bool is_debug_kernel(void)
{
	bool found = false;
	char line[512];
	FILE *file = fopen("/proc/kallsyms", "r");

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, " kasan_report") ||
			strstr(line, " __debug_object_init");
	fclose(file);
	return found;
}

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		error = -errno;
	close(fd);
	return error;
}

__u64 clock_ns(clockid_t clock)
{
	struct timespec now;

	ASSERT_EQ(clock_gettime(clock, &now), 0);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

void at_end(void (*undo)(const void *arg), const void *arg)
{
	struct signpost end = signpost_make();
	pid_t pid = start_child();
	char byte;

	if (!pid) {
		close(end.fds[1]);
		setpgid(0, 0);
		while (read(end.fds[0], &byte, 1))
			;
		undo(arg);
		_exit(0);
	}
	/* Leave the group that is killed at the end; only the test holds the other end. */
	setpgid(pid, pid);
	close(end.fds[0]);
}

/* CLOCK_REALTIME as it was: how far from CLOCK_MONOTONIC, and its rate. */
struct kept_clock {
	long long offset_ns;
	struct timex rate;
};

static void restore_clock(const void *arg)
{
	const struct kept_clock *kept = arg;
	struct timex rate = kept->rate;

	/* Without the PLL all that NTP knows is forgotten, leap seconds too. */
	rate.modes = ADJ_STATUS;
	rate.status = STA_PLL;
	ASSERT_GE(adjtimex(&rate), 0);
	rate = kept->rate;
	rate.status &= ~(STA_PLL | STA_INS | STA_DEL);
	rate.modes = ADJ_STATUS | ADJ_TICK | ADJ_FREQUENCY;
	ASSERT_GE(adjtimex(&rate), 0);
	set_clock(monotonic_ns() + kept->offset_ns);
}

void keep_clock(void)
{
	static struct kept_clock kept;
	__u64 now_ns = clock_ns(CLOCK_REALTIME);
	struct timespec now = {
		.tv_sec = now_ns / NSEC_PER_SEC,
		.tv_nsec = now_ns % NSEC_PER_SEC,
	};

	kept.offset_ns = now_ns - monotonic_ns();
	ASSERT_GE(adjtimex(&kept.rate), 0);
	if (clock_settime(CLOCK_REALTIME, &now))
		test_skip("the clock cannot be set: %s", strerror(errno));
	at_end(restore_clock, &kept);
}

void set_clock(__u64 time_ns)
{
	struct timespec time = {
		.tv_sec = time_ns / NSEC_PER_SEC,
		.tv_nsec = time_ns % NSEC_PER_SEC,
	};

	ASSERT_EQ(clock_settime(CLOCK_REALTIME, &time), 0);
}

__u64 move_clock(long long by_ns)
{
	__u64 time_ns = clock_ns(CLOCK_REALTIME) + by_ns;

	set_clock(time_ns);
	return time_ns;
}

static int write_cpu_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online",
		 cpu);
	return write_file(path, online ? "1" : "0");
}

static void restore_cpus(const void *arg)
{
	const cpu_set_t *cpus = arg;
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, cpus))
			write_cpu_online(cpu, true);
	}
}

void keep_cpus(void)
{
	static cpu_set_t cpus;

	ASSERT_EQ(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	if (access("/sys/devices/system/cpu/cpu1/online", W_OK))
		test_skip("CPUs cannot be taken down");
	at_end(restore_cpus, &cpus);
}

void set_cpu_online(int cpu, bool online)
{
	int error;

	/* The kernel may be busy with something that keeps CPUs as they are. */
	do {
		error = write_cpu_online(cpu, online);
	} while (error == -EBUSY || error == -EAGAIN);
	ASSERT_EQ(error, 0);
}

void unpin(void)
{
	cpu_set_t cpus;

	memset(&cpus, 0xff, sizeof(cpus));
	ASSERT_EQ(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

void *map_shared_pages(size_t size)
{
	void *pages = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ASSERT(pages != MAP_FAILED);
	return pages;
}
