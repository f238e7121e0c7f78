/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the tests: memory, clocks, threads, processes.
 */
#ifndef DEVICE_TEST_UTIL_H
#define DEVICE_TEST_UTIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include <linux/types.h>

/* Fresh zeroed pages for @size bytes. */
void *map_pages(size_t size);

/*
 * @size bytes that end where a page ends; the next page is not accessible.
 * The pages before are, so that there may be more room in front.
 */
void *map_before_hole(size_t size);

/*
 * @writable bytes up to the end of a page, and @read_only bytes, which must
 * be whole pages, behind them.
 */
void *map_before_read_only(size_t writable, size_t read_only);

/* Take the right to write to whole pages away. */
void make_read_only(void *pages, size_t size);

/* Check that all bytes have this value. */
void check_bytes(const void *bytes, int value, size_t size);

__u64 monotonic_ns(void);

/* The next of a fixed sequence of random numbers, one for each seed. */
__u64 next_random(__u64 *seed);

/* The first @nr CPUs that we may run on, as long as we are not pinned. */
size_t get_cpus(int *cpus, size_t nr);

/* Stay on a CPU; on the one where we are. */
void pin_to_cpu(int cpu);
void pin_to_this_cpu(void);

pthread_t start_thread(void *(*run)(void *arg), void *arg);
void join_thread(pthread_t thread);
pid_t thread_id(void);

/* Wait until a thread (or process, by its pid) sleeps in the kernel. */
void wait_asleep(pid_t tid);

/* Let @signal come: with sigaction's @flags, it is counted. */
void count_signals(int signal, int flags);
int signals_counted(void);

/* Wait until more than @nr signals came. */
void wait_signal_after(int nr);

/* Send ourselves SIGALRM once a millisecond from now on. */
void start_alarms(int flags);

/*
 * Fork; 0 in the child.  The child must end by _exit().
 */
pid_t start_child(void);

/* Wait for the child's end and check that it exited with 0. */
void wait_child(pid_t pid);

/* Stop the child and let it go on, perhaps to its end: that it does is not waited for. */
void stop_and_continue(pid_t pid);

/* Kill the child by SIGKILL and wait for its end. */
void kill_child(pid_t pid);

/* One process tells another that it has come so far: a pipe, one byte each. */
struct signpost {
	int fds[2];
};

struct signpost signpost_make(void);
void signpost_tell(struct signpost *post);
void signpost_wait(struct signpost *post);

/* Is this a kernel built to find bugs, whose memory use says nothing? */
bool is_debug_kernel(void);

__u64 clock_ns(clockid_t clock);

/*
 * Have @undo called with a copy of @arg when the test is over, however it ends.
 * Call it first: the child that does it keeps open all files that are open now.
 */
void at_end(void (*undo)(const void *arg), const void *arg);

/*
 * CLOCK_REALTIME goes on as if nothing had happened when the test is over.  The
 * test is skipped where we may not set it.
 */
void keep_clock(void);

/* Set CLOCK_REALTIME, or move it by so much; where it was set to. */
void set_clock(__u64 time_ns);
__u64 move_clock(long long by_ns);

/*
 * All CPUs that are online now will be so again when the test is over, or it is
 * skipped, where CPUs cannot be taken down.
 */
void keep_cpus(void);

/* Take a CPU down or up. */
void set_cpu_online(int cpu, bool online);

/* Stay on a CPU no longer. */
void unpin(void);

/* Fresh zeroed pages that are shared with children. */
void *map_shared_pages(size_t size);

/* Write a text to an existing file: 0 or -errno. */
int write_file(const char *path, const char *text);

#endif /* DEVICE_TEST_UTIL_H */
