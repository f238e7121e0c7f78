// SPDX-License-Identifier: GPL-2.0
/*
 * A fuzzer of /dev/twheel that is guided by kcov. It runs in a virtual machine, as root, whose
 * module is built with KCOV_INSTRUMENT=y.
 *
 * Several processes, the workers, run programs: series of calls. A program that reaches an edge
 * of the module's code which none has reached before is kept, and later ones are made by
 * changing those that were kept. Each worker runs a batch of programs and is replaced by a new
 * process then. The batch depends on its seed and on the programs kept before it began, which
 * are printed; so a batch can be run again, even if the kernel has crashed in it.
 *
 * On a kernel without kcov, all programs are made at random.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "coverage.h"
#include "random.h"
#include "shared.h"

/* Rounds of the supervisor, of 100 ms each. */
#define ROUND_NS	100000000
#define QUIET_ROUNDS	300
#define DEAD_ROUNDS	3000

/* What the others must have done while a worker has done nothing. */
#define QUIET_CALLS	3000

struct shared *shared;

/**
 * struct worker - a process that runs a batch
 * @pid: the process, 0: none.
 * @calls: how many calls it had made in the last round.
 * @others: how many calls all had made when it made its last one.
 * @quiet: for how many rounds it has made none.
 * @killed: it is to end, because it makes no progress.
 */
struct worker {
	pid_t pid;
	unsigned long calls;
	unsigned long others;
	unsigned int quiet;
	bool killed;
};

static struct worker workers[WORKERS_MAX];

static struct {
	unsigned long calls;
	unsigned long seconds;
	uint64_t seed;
	unsigned int workers;
	const char *corpus;
	const char *program;
	const char *replay;
	unsigned int batch;
	unsigned int batch_programs;
	bool minimize;
	bool points;
	bool keep_memory;
} options = {
	.batch_programs = 100,
	.calls = 100000,
	.seed = 1,
	.workers = 4,
};

/* --- programs ------------------------------------------------------------------------ */

static void keep(const struct program *program, unsigned int nr)
{
	unsigned int i = atomic_fetch_add(&shared->nr_kept, 1);

	if (i >= CORPUS_MAX)
		return;
	shared->kept[i].program = *program;
	shared->kept[i].program.nr = nr;
	shared->kept[i].ready = true;
}

/* One of the first @nr programs; the later ones more often. */
static const struct program *kept_program(struct random *random, unsigned int nr)
{
	unsigned int from = random_below(random, 3) ? 0 : nr / 2;

	return &shared->kept[from + random_below(random, nr - from)].program;
}

static void next_program(struct program *program, struct random *random, unsigned int nr_kept)
{
	if (!nr_kept || !random_below(random, 8)) {
		program_make(program, random);
		return;
	}
	*program = *kept_program(random, nr_kept);
	program_mutate(program, kept_program(random, nr_kept), random);
}

/* Every second worker is a user without privileges, whose limits are low. */
static void start_worker(unsigned int number)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	coverage_open();
	if (number % 2) {
		if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000))
			err(1, "setresuid");
		prctl(PR_SET_DUMPABLE, 1);
	}
	calls_start(number);
}

static void run_batch(unsigned int number, uint64_t seed, unsigned int nr_kept)
{
	struct random random = { seed };
	struct program program;
	unsigned int i, nr;

	start_worker(number);
	for (i = 0; i < options.batch_programs && !shared->failed; i++) {
		next_program(&program, &random, nr_kept);
		nr = calls_run(&program);
		if (nr)
			keep(&program, nr);
	}
	fflush(stdout);
	_exit(0);
}

/* --- what was found before ------------------------------------------------------------ */

/* Read programs, a line each, which "kept " may begin. */
static void read_corpus(const char *path)
{
	FILE *file = fopen(path, "r");
	struct program program;
	size_t size = 0;
	char *line = NULL;

	if (!file)
		err(1, "%s", path);
	while (getline(&line, &size, file) > 0)
		if (program_parse(&program, strncmp(line, "kept ", 5) ? line : line + 5))
			keep(&program, program.nr);
	free(line);
	fclose(file);
}

/* Did a worker end as it should?  If it was killed by its own program, it did. */
static bool has_ended_well(unsigned int number, int status)
{
	bool killed = atomic_exchange(&shared->killed[number], false);

	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL && killed :
	       !WEXITSTATUS(status);
}

/* Run a batch of an earlier run again, whose output is in a file. */
static int replay(const char *path)
{
	unsigned int batch, number, nr_kept;
	char line[128];
	uint64_t seed;
	FILE *file = fopen(path, "r");
	int status;

	read_corpus(path);
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "batch %u worker %u programs %u seed %lu kept %u", &batch, &number,
			   &options.batch_programs, &seed, &nr_kept) != 5 ||
		    batch != options.batch)
			continue;
		if (!fork())
			run_batch(number, seed, nr_kept);
		wait(&status);
		printf("# batch %u ended with status %#x\n", batch, status);
		return !WIFEXITED(status) || WEXITSTATUS(status);
	}
	errx(2, "%s has no batch %u", path, options.batch);
}

/* --- the supervisor -------------------------------------------------------------------- */

static unsigned long all_calls(void)
{
	unsigned long nr = 0;
	unsigned int i;

	for (i = 0; i < options.workers; i++)
		nr += shared->calls[i];
	return nr;
}

/* Print the programs that were kept since the last time; returns how many there are. */
static unsigned int print_kept(void)
{
	static unsigned int printed;

	while (printed < CORPUS_MAX && shared->kept[printed].ready) {
		printf("kept ");
		program_print(&shared->kept[printed++].program, stdout);
	}
	return printed;
}

static void begin_batch(unsigned int number)
{
	static unsigned int batch;
	struct random random = { options.seed + ++batch };
	uint64_t seed = random_next(&random);
	unsigned int nr_kept = print_kept();
	struct worker *worker = &workers[number];

	printf("batch %u worker %u programs %u seed %lu kept %u\n", batch, number,
	       options.batch_programs, seed, nr_kept);
	fflush(stdout);
	*worker = (struct worker){ .calls = shared->calls[number], .others = all_calls() };
	worker->pid = fork();
	if (worker->pid < 0)
		err(1, "fork");
	if (!worker->pid)
		run_batch(number, seed, nr_kept);
}

static void print_file(const char *directory, const char *name)
{
	char path[300], line[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "r");
	printf("# %s\n", path);
	while (file && fgets(line, sizeof(line), file))
		printf("#   %s%s", line, strchr(line, '\n') ? "" : "\n");
	if (file)
		fclose(file);
}

/* Print where the threads of a process group are. */
static void print_stacks(pid_t group)
{
	struct dirent *entry, *thread;
	DIR *processes = opendir("/proc"), *threads;
	char path[270], task[600];
	pid_t pid;

	while (processes && (entry = readdir(processes))) {
		pid = atoi(entry->d_name);
		if (!pid || getpgid(pid) != group)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task", pid);
		threads = opendir(path);
		while (threads && (thread = readdir(threads))) {
			if (thread->d_name[0] == '.')
				continue;
			snprintf(task, sizeof(task), "%s/%s", path, thread->d_name);
			print_file(task, "syscall");
			print_file(task, "stack");
		}
		if (threads)
			closedir(threads);
	}
	if (processes)
		closedir(processes);
}

/* A worker has made no call for long. If its signals are not blocked, that must not be. */
static void stop_quiet(unsigned int number)
{
	struct worker *worker = &workers[number];
	bool allowed = shared->may_hang[number];

	printf("# worker %u has stopped%s\n", number,
	       allowed ? ", as its signals are blocked" : "");
	if (!allowed) {
		print_stacks(worker->pid);
		shared->failed = true;
	}
	fflush(stdout);
	worker->killed = true;
	worker->quiet = 0;
	worker->others = all_calls();
	kill(-worker->pid, SIGKILL);
}

static void watch(unsigned int number)
{
	struct worker *worker = &workers[number];
	unsigned long calls = shared->calls[number];
	bool others_go_on = all_calls() - worker->others > QUIET_CALLS;

	if (calls != worker->calls && !worker->killed) {
		worker->calls = calls;
		worker->others = all_calls();
		worker->quiet = 0;
		return;
	}
	worker->quiet++;
	if (worker->quiet < (others_go_on ? QUIET_ROUNDS : DEAD_ROUNDS))
		return;
	if (!worker->killed) {
		stop_quiet(number);
		return;
	}
	printf("# worker %u does not end, although it was killed\n", number);
	print_stacks(worker->pid);
	shared->failed = true;
	worker->pid = 0;
}

/* --- programs as they are --------------------------------------------------------------- */

/* Run the programs that have not been run, in the worker's process. */
static void run_kept(unsigned int number)
{
	unsigned int i, points;

	start_worker(number);
	while ((i = shared->next++) < shared->nr_kept) {
		points = shared->nr_points;
		calls_run(&shared->kept[i].program);
		if (options.minimize && shared->nr_points > points)
			program_print(&shared->kept[i].program, stdout);
		fflush(stdout);
	}
	_exit(0);
}

/* Wait for a worker that is watched; returns how it ended. */
static int wait_for(unsigned int number)
{
	struct timespec part = { .tv_nsec = ROUND_NS / 10 };
	struct worker *worker = &workers[number];
	pid_t pid = worker->pid;
	unsigned int parts = 0;
	int status = 0;

	while (worker->pid && !waitpid(pid, &status, WNOHANG)) {
		if (++parts % 10 == 0)
			watch(number);
		nanosleep(&part, NULL);
	}
	worker->pid = 0;
	kill(-pid, SIGKILL);
	return status;
}

/*
 * Run all programs that were kept, in two processes after each other: one with privileges, one
 * without. A process is replaced when a program kills it.
 */
static void run_corpus(void)
{
	unsigned int number;

	for (number = 0; number < 2; number++) {
		shared->next = 0;
		while (shared->next < shared->nr_kept && !shared->failed) {
			fflush(stdout);
			workers[number] = (struct worker){ .pid = fork() };
			if (!workers[number].pid)
				run_kept(number);
			if (!has_ended_well(number, wait_for(number)))
				shared->failed = true;
		}
	}
	printf("# the corpus reaches %u places and %u edges, by %u programs\n", shared->nr_points,
	       shared->nr_edges, shared->nr_kept);
}

/* Run one program a hundred times. */
static int run_text(const char *text)
{
	struct program program;
	unsigned int i;

	if (!program_parse(&program, text))
		errx(2, "not a program: %s", text);
	for (i = 0; i < 100; i++)
		keep(&program, program.nr);
	run_corpus();
	return shared->failed;
}

/* A worker has ended. */
static void reap(unsigned int number, int status)
{
	bool stopped = workers[number].killed;

	kill(-workers[number].pid, SIGKILL);
	workers[number].pid = 0;
	if (has_ended_well(number, status) || stopped)
		return;
	printf("# worker %u ended with status %#x\n", number, status);
	shared->failed = true;
}

static void reap_all(void)
{
	unsigned int i;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < options.workers; i++)
			if (workers[i].pid == pid)
				reap(i, status);
}

static unsigned long now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static bool is_over(unsigned long begin)
{
	return shared->failed || all_calls() >= options.calls ||
	       (options.seconds && now_s() - begin >= options.seconds);
}

/* Run batches until it is enough; then wait for those under way. */
static void supervise(void)
{
	struct timespec round = { .tv_nsec = ROUND_NS };
	unsigned long begin = now_s();
	unsigned int i, running;

	do {
		reap_all();
		running = 0;
		for (i = 0; i < options.workers; i++) {
			if (workers[i].pid)
				watch(i);
			else if (!is_over(begin))
				begin_batch(i);
			running += !!workers[i].pid;
		}
		nanosleep(&round, NULL);
	} while (running);
	print_kept();
	printf("# %lu calls in %lu s, %lu programs, %u kept; seed %lu\n", all_calls(),
	       now_s() - begin, shared->programs, shared->nr_kept, options.seed);
}

/* --- options ---------------------------------------------------------------------------- */

static void usage(void)
{
	fprintf(stderr,
		"Usage: device [--calls N] [--seconds N] [--seed N] [--workers N] [--corpus FILE]\n"
		"              [--batch-programs N] [--points] [--keep-memory]\n"
		"       device --minimize --corpus FILE\n"
		"       device --program TEXT\n"
		"       device --replay FILE --batch N\n");
	exit(2);
}

static void parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "calls", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'r' },
		{ "workers", required_argument, NULL, 'w' },
		{ "corpus", required_argument, NULL, 'f' },
		{ "program", required_argument, NULL, 'p' },
		{ "replay", required_argument, NULL, 'l' },
		{ "batch", required_argument, NULL, 'b' },
		{ "batch-programs", required_argument, NULL, 'n' },
		{ "minimize", no_argument, NULL, 'm' },
		{ "points", no_argument, NULL, 'o' },
		{ "keep-memory", no_argument, NULL, 'k' },
		{},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (option) {
		case 'c':
			options.calls = strtoul(optarg, NULL, 0);
			break;
		case 's':
			options.seconds = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			options.seed = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			options.workers = strtoul(optarg, NULL, 0);
			break;
		case 'f':
			options.corpus = optarg;
			break;
		case 'p':
			options.program = optarg;
			break;
		case 'l':
			options.replay = optarg;
			break;
		case 'b':
			options.batch = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			options.batch_programs = strtoul(optarg, NULL, 0);
			break;
		case 'm':
			options.minimize = true;
			break;
		case 'o':
			options.points = true;
			break;
		case 'k':
			options.keep_memory = true;
			break;
		default:
			usage();
		}
	}
	if (optind < argc || !options.workers || options.workers > WORKERS_MAX ||
	    !options.batch_programs)
		usage();
}

/* Print the places that were reached, as distances from the beginning of the code. */
static void print_points(void)
{
	unsigned int i;

	for (i = 0; i < CODE_BYTES; i++)
		if (shared->points[i / 64] >> (i % 64) & 1)
			printf("point %#x\n", i);
}

static int fuzz(void)
{
	if (!coverage_exists())
		printf("# this kernel has no kcov: no program is kept\n");
	if (options.corpus) {
		read_corpus(options.corpus);
		run_corpus();
	}
	supervise();
	calls_print(stdout);
	if (!calls_still_work()) {
		printf("# the device does not work any more\n");
		shared->failed = true;
	}
	if (options.points)
		print_points();
	printf("# %u places and %u edges were reached\n", shared->nr_points, shared->nr_edges);
	return shared->failed;
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		err(1, "mmap");
	shared->keeps_memory = options.keep_memory;
	if (!coverage_find_module())
		errx(1, "the module is not loaded");
	if (options.program)
		return run_text(options.program);
	if (options.replay)
		return replay(options.replay);
	if (options.minimize) {
		read_corpus(options.corpus);
		run_corpus();
		return shared->failed;
	}
	return fuzz();
}
