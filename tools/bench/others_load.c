// SPDX-License-Identifier: GPL-2.0
/*
 * Measures what files that keep a CPU busy do to others on it; for tools/bench/others.
 *
 * Usage: others_load LOAD EVENTS SECONDS COMMAND [ARGUMENT...]
 *
 *   none      nothing: how late others are anyway
 *   word      EVENTS events name one word
 *   words     EVENTS events, each with a word of its own
 *   files     EVENTS events of 100 files, each of which has one word
 *   tick      EVENTS events without words come due at one tick, are read, and are armed again
 *   signal    EVENTS operations are completed by one signal, are read, and are armed again
 *
 * With words, a thread on another CPU stores "in 300 ms" into all of them, 200 times a second.
 * Meanwhile another process arms an event for a random time of each 10 ms, one after the other,
 * and COMMAND, which measures timers of modules, runs on the same CPU.
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define NSEC_PER_MSEC	1000000ULL

#define AHEAD_NS	(300 * NSEC_PER_MSEC)
#define PERIOD_NS	(5 * NSEC_PER_MSEC)
#define GAP_NS		(10 * NSEC_PER_MSEC)

/* How many files "files" has. */
#define FILES		100

/* The CPU of all that is measured, and that of the thread. */
#define THIS_CPU	0
#define OTHER_CPU	1

/**
 * struct load - what a file does
 * @words: its words, or NULL.
 * @next: another file that does the same, or NULL.
 * @name: LOAD.
 * @fd: the file.
 * @nr: how many events it has.
 * @nr_words: how many words it has.
 * @stop: its thread is to end.
 */
struct load {
	_Atomic __u64 *words;
	struct load *next;
	const char *name;
	int fd;
	__u32 nr;
	__u32 nr_words;
	atomic_bool stop;
};

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "cannot stay on CPU %d", cpu);
}

static void sleep_until(__u64 ns)
{
	struct timespec time = to_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
		;
}

/* --- what the file does ------------------------------------------------------- */

static void load_open(struct load *load)
{
	struct twheel_config config = {
		.size = sizeof(config),
		.clockid = CLOCK_MONOTONIC,
		.max_events = load->nr,
		.nr_deadlines = load->nr_words,
	};

	load->fd = device_open();
	if (ioctl(load->fd, TWHEEL_IOC_CONFIG, &config))
		err(1, "CONFIG");
	if (!load->nr_words)
		return;
	load->words = mmap(NULL, load->nr_words * sizeof(__u64), PROT_READ | PROT_WRITE,
			   MAP_SHARED, load->fd, 0);
	if (load->words == MAP_FAILED)
		err(1, "cannot map %u words", load->nr_words);
}

static void store_all(struct load *load)
{
	__u64 due_ns = clock_ns() + AHEAD_NS;
	__u32 i;

	for (; load; load = load->next)
		for (i = 0; i < load->nr_words; i++)
			load->words[i] = due_ns;
}

static void *move_words(void *arg)
{
	struct load *load = arg;

	stay_on(OTHER_CPU);
	while (!load->stop) {
		__u64 next_ns = clock_ns() + PERIOD_NS;

		store_all(load);
		sleep_until(next_ns);
	}
	return NULL;
}

/* Add @nr events that name words, or are due at @due_ns. */
static void load_add(struct load *load, __u32 nr, __u64 due_ns)
{
	struct batch batch = {};
	__u32 i;

	for (i = 0; i < nr; i++) {
		struct twheel_cmd *cmd = batch_next(&batch);

		cmd->op = TWHEEL_OP_ADD;
		cmd->flags = load->words ? TWHEEL_DEADLINE : TWHEEL_ABS;
		cmd->key = load->words ? i % load->nr_words : 0;
		cmd->time_ns = load->words ? 0 : due_ns;
		if (batch.nr < BATCH_MAX && i < nr - 1)
			continue;
		batch_run(load->fd, &batch);
		batch.nr = 0;
	}
}

static void read_all(struct load *load)
{
	static struct twheel_record records[BATCH_MAX];
	__u32 left = load->nr;

	while (left) {
		ssize_t size = read(load->fd, records, sizeof(records));

		if (size > 0)
			left -= size / sizeof(records[0]);
		else
			sched_yield();
	}
}

/* Arm all events for one tick, read them, and so on. */
static void *use_one_tick(void *arg)
{
	struct load *load = arg;

	while (!load->stop) {
		/* They are armed on the CPU that all others use. */
		stay_on(THIS_CPU);
		load_add(load, load->nr, clock_ns() + AHEAD_NS);
		stay_on(OTHER_CPU);
		read_all(load);
	}
	return NULL;
}

/* Add operations that watch a key. */
static void load_watch(struct load *load, __u64 due_ns)
{
	struct batch batch = {};
	__u32 i;

	for (i = 0; i < load->nr; i++) {
		struct twheel_cmd *cmd = batch_next(&batch);

		cmd->op = TWHEEL_OP_ADD;
		cmd->flags = TWHEEL_ABS;
		cmd->time_ns = due_ns;
		cmd = batch_next(&batch);
		cmd->op = TWHEEL_OP_WATCH;
		cmd->key = 1;
		cmd->value = 1;
		if (batch.nr < BATCH_MAX && i < load->nr - 1)
			continue;
		batch_run(load->fd, &batch);
		batch.nr = 0;
	}
}

/* Let one signal complete all operations, read them, and so on. */
static void *use_one_signal(void *arg)
{
	struct load *load = arg;

	while (!load->stop) {
		struct batch batch = { .expected = load->nr };
		struct twheel_cmd *cmd = batch_next(&batch);

		stay_on(THIS_CPU);
		load_watch(load, clock_ns() + 1000 * AHEAD_NS);
		stay_on(OTHER_CPU);
		cmd->op = TWHEEL_OP_SIGNAL;
		cmd->key = 1;
		cmd->value = 1;
		batch_run(load->fd, &batch);
		read_all(load);
	}
	return NULL;
}

/* Share the events among FILES files. */
static void open_more(struct load *load)
{
	unsigned int i;

	load->nr /= FILES;
	for (i = 1; i < FILES; i++) {
		struct load *other = bench_alloc(1, sizeof(*other));

		*other = (struct load){
			.next = load->next, .name = load->name, .nr = load->nr, .nr_words = 1,
		};
		load->next = other;
		load_open(other);
	}
}

/* Begin: returns when all is under way. */
static void load_begin(struct load *load, pthread_t *thread)
{
	void *(*function)(void *arg) = move_words;
	struct load *file;

	if (!strcmp(load->name, "none"))
		return;
	if (!strcmp(load->name, "tick"))
		function = use_one_tick;
	if (!strcmp(load->name, "signal"))
		function = use_one_signal;
	load_open(load);
	if (!strcmp(load->name, "files"))
		open_more(load);
	if (pthread_create(thread, NULL, function, load))
		errx(1, "cannot make a thread");
	if (!load->words)
		return;
	for (file = load; file; file = file->next) {
		while (!file->words[file->nr_words - 1])
			;
		load_add(file, file->nr, 0);
	}
	sleep_until(clock_ns() + 2 * AHEAD_NS);
}

static void load_end(struct load *load, pthread_t thread)
{
	const char *name = load->name;
	__u64 looks = 0;

	if (!load->nr)
		return;
	load->stop = true;
	pthread_join(thread, NULL);
	if (!load->words)
		return;
	for (; load; load = load->next)
		looks += device_counter(load->fd, "postponed");
	print_result(looks, "looks", "d2.looks.%s", name);
}

/* --- what others get ---------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

/* One event after the other, each for a time in the next 10 ms. */
static void measure_events(const char *name, __u32 seconds)
{
	__u32 most = seconds * (1000 * NSEC_PER_MSEC / GAP_NS), nr = 0;
	__u64 *late_ns = bench_alloc(most, sizeof(*late_ns));
	__u64 end_ns = clock_ns() + seconds * 1000 * NSEC_PER_MSEC;
	static const double percents[] = { 50, 99, 100 };
	int fd = device_open(), flags = fcntl(fd, F_GETFL);
	unsigned int i;

	stay_on(THIS_CPU);
	if (fcntl(fd, F_SETFL, flags & ~O_NONBLOCK))
		err(1, "F_SETFL");
	while (nr < most && clock_ns() < end_ns) {
		__u64 due_ns = clock_ns() + NSEC_PER_MSEC + bench_random() % GAP_NS;
		struct batch batch = {};
		struct twheel_cmd *cmd = batch_next(&batch);
		struct twheel_record record;

		cmd->op = TWHEEL_OP_ADD;
		cmd->flags = TWHEEL_ABS;
		cmd->time_ns = due_ns;
		batch_run(fd, &batch);
		device_read(fd, &record, 1);
		if (record.fired_ns < due_ns)
			errx(1, "an event came early");
		late_ns[nr++] = record.fired_ns - due_ns;
	}
	qsort(late_ns, nr, sizeof(*late_ns), compare);
	for (i = 0; i < ARRAY_SIZE(percents); i++) {
		__u32 rank = (nr - 1) * percents[i] / 100;

		print_result(late_ns[rank], "ns", "d2.event.p%g.%s", percents[i], name);
	}
}

static pid_t fork_or_end(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	return pid;
}

static void wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "what was measured meanwhile has failed");
}

int main(int argc, char **argv)
{
	struct load load = {};
	pid_t events, command;
	pthread_t thread;
	__u32 seconds;

	if (argc < 5)
		errx(1, "usage: others_load LOAD EVENTS SECONDS COMMAND [ARGUMENT...]");
	load.name = argv[1];
	seconds = atoi(argv[3]);
	if (strcmp(load.name, "none"))
		load.nr = atoi(argv[2]);
	if (!strcmp(load.name, "word") || !strcmp(load.name, "files"))
		load.nr_words = 1;
	else if (!strcmp(load.name, "words"))
		load.nr_words = load.nr;
	stay_on(THIS_CPU);
	load_begin(&load, &thread);
	events = fork_or_end();
	if (!events) {
		measure_events(load.name, seconds);
		return 0;
	}
	command = fork_or_end();
	if (!command) {
		execvp(argv[4], argv + 4);
		err(1, "cannot run %s", argv[4]);
	}
	wait_for(events);
	wait_for(command);
	load_end(&load, thread);
	return 0;
}
