// SPDX-License-Identifier: GPL-2.0
/*
 * Torture of /dev/twheel by processes and threads that arm, modify, cancel, complete, signal, read
 * and postpone the same events, pass the files to each other, fork, and are killed, while CPUs come
 * and go, the clock is set, memory is short and the machine sleeps.
 *
 * It goes in rounds of some seconds. In a round the processes write what they do into a ledger
 * (ledger.h); when they have ended, the judge (judge.h) holds it against what must be.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chance.h"
#include "disturb.h"
#include "drain.h"
#include "files.h"
#include "judge.h"
#include "ledger.h"
#include "worker.h"

#define PROCESSES_MAX	32
/* How much longer it may take until everything was done. */
#define SLOW_NS		(300 * SECOND_NS)

static struct {
	unsigned int seconds;
	unsigned int round_ms;
	unsigned int processes;
	unsigned int threads;
	unsigned int kill_ms;
	unsigned int logs;
	unsigned int log_kb;
	uint64_t seed;
	bool fails;
	struct disturbance disturbance;
} options = {
	.seconds = 10,
	.round_ms = 2000,
	.processes = 5,
	.threads = 2,
	.kill_ms = 150,
	.logs = 128,
	.log_kb = 1024,
	.seed = 1,
};

static const char *cgroup;
static pid_t processes[PROCESSES_MAX];
static int fds[FILES_MAX];
static uint64_t chance, nr_rounds, nr_killed, nr_started;

static void __attribute__((noreturn)) fail(const char *what, int error)
{
	printf("tormentor: %s: %s\n", what, strerror(-error));
	exit(1);
}

/* --- processes ------------------------------------------------------------------------ */

/* Memory is short for every fourth process. */
static void start_worker(unsigned int place)
{
	struct worker_options worker = {
		.nr_threads = options.threads,
		.seed = next_random(&chance),
		.fails = options.fails,
	};
	pid_t pid;

	if (cgroup && place % 4 == 3) {
		worker.cgroup = cgroup;
		worker.nr_threads = 1;
	}
	fflush(stdout);
	pid = fork();
	if (!pid)
		work(&worker);
	processes[place] = pid > 0 ? pid : 0;
	nr_started += pid > 0;
}

static bool has_free_logs(void)
{
	return ledger->nr_logs + options.threads <= ledger->logs_limit;
}

/* It is one of processes[], a child of such a one, or one that disturbs. */
static void forget(pid_t pid, int status)
{
	unsigned int i;

	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		fault(&figures.other, "a process ended by signal %d", WTERMSIG(status));
	for (i = 0; i < options.processes; i++)
		if (processes[i] == pid)
			processes[i] = 0;
}

/* Returns whether there are any children. */
static bool reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		forget(pid, status);
	return !pid;
}

static void start_missing(void)
{
	unsigned int i;

	for (i = 0; i < options.processes; i++)
		if (!processes[i] && has_free_logs())
			start_worker(i);
}

static void kill_any(void)
{
	unsigned int place = random_below(&chance, options.processes);

	if (processes[place] && !kill(processes[place], SIGKILL))
		nr_killed++;
}

static bool is_running(pid_t pid)
{
	unsigned int i;

	for (i = 0; i < options.processes; i++)
		if (processes[i] == pid)
			return true;
	return false;
}

/* Interrupt threads in what they wait for: all, or one. */
static void interrupt(bool all)
{
	unsigned int first = all ? 0 : random_below(&chance, ledger->nr_logs), i;

	for (i = first; i < ledger->nr_logs && (all || i == first); i++) {
		pid_t pid = ledger->logs[i].pid, tid = ledger->logs[i].tid;

		if (pid && pid != getpid() && (all || is_running(pid)))
			syscall(SYS_tgkill, pid, tid, SIGUSR1);
	}
}

/* --- a round -------------------------------------------------------------------------- */

/* Files that workers send in their end, and those that nobody took from the market. */
static void collect_files(int socket)
{
	struct held held;

	while (take_file(socket, &held)) {
		if (fds[held.number] < 0)
			fds[held.number] = held.fd;
		else
			close(held.fd);
	}
}

static void let_them_work(void)
{
	uint64_t end_ns = now_ns() + options.round_ms * MILLISECOND_NS;
	uint64_t kill_ns = now_ns();

	while (now_ns() < end_ns && has_free_logs()) {
		reap();
		start_missing();
		interrupt(false);
		if (options.kill_ms && now_ns() >= kill_ns) {
			kill_any();
			kill_ns = now_ns() + random_below(&chance, 2 * options.kill_ms) *
				  MILLISECOND_NS;
		}
		usleep(5000);
	}
}

static void end_them(void)
{
	ledger->stop = true;
	while (reap()) {
		interrupt(true);
		collect_files(hand_in[1]);
		usleep(2000);
	}
	collect_files(hand_in[1]);
	collect_files(market[1]);
	close_sockets();
}

static void run_round(void)
{
	unsigned int i;
	int log, error;

	ledger_reset();
	log = log_take();
	error = make_sockets();
	if (error)
		fail("sockets", error);
	for (i = 0; i < FILES_MAX; i++)
		fds[i] = -1;
	if (!open_common_files(&chance))
		fail("/dev/twheel cannot be opened", -errno);
	for (i = 0; i < nr_files(); i++)
		fds[i] = ledger->files[i].fd;
	/* A slow machine does not fill it in a round. */
	if (cgroup && nr_rounds && !ledger->hog_refused)
		shrink_cgroup();
	disturb(&options.disturbance, next_random(&chance));
	let_them_work();
	end_them();
	ledger_end();
	for (i = 0; i < nr_files(); i++)
		if (fds[i] >= 0)
			drain(&log, i, fds[i]);
	judge();
	for (i = 0; i < nr_files(); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	nr_rounds++;
}

/* --- main ----------------------------------------------------------------------------- */

static const struct option long_options[] = {
	{ "seconds", required_argument, NULL, 's' },
	{ "round-ms", required_argument, NULL, 'r' },
	{ "processes", required_argument, NULL, 'p' },
	{ "threads", required_argument, NULL, 't' },
	{ "kill-ms", required_argument, NULL, 'k' },
	{ "logs", required_argument, NULL, 'l' },
	{ "log-kb", required_argument, NULL, 'b' },
	{ "seed", required_argument, NULL, 'S' },
	{ "hotplug", no_argument, NULL, 'h' },
	{ "clock", no_argument, NULL, 'c' },
	{ "memory", no_argument, NULL, 'm' },
	{ "failing-allocations", no_argument, NULL, 'f' },
	{ "sleep-test", required_argument, NULL, 'x' },
	{ "sleep-rtc", required_argument, NULL, 'y' },
	{ }
};

static bool take_option(int option, const char *value)
{
	unsigned long number = value ? strtoul(value, NULL, 10) : 0;

	switch (option) {
	case 's':
		options.seconds = number;
		break;
	case 'r':
		options.round_ms = number;
		break;
	case 'p':
		options.processes = number;
		break;
	case 't':
		options.threads = number;
		break;
	case 'k':
		options.kill_ms = number;
		break;
	case 'l':
		options.logs = number;
		break;
	case 'b':
		options.log_kb = number;
		break;
	case 'S':
		options.seed = number;
		break;
	case 'h':
		options.disturbance.hotplug = true;
		break;
	case 'c':
		options.disturbance.clock = true;
		break;
	case 'm':
		options.disturbance.memory = true;
		break;
	case 'f':
		options.fails = true;
		break;
	case 'x':
	case 'y':
		options.disturbance.sleep = option == 'x' ? SLEEP_TEST : SLEEP_RTC;
		options.disturbance.sleep_s = number;
		break;
	default:
		return false;
	}
	return true;
}

static bool take_options(int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (!take_option(option, optarg))
			return false;
	return optind == argc && options.processes && options.processes <= PROCESSES_MAX &&
	       options.threads && options.threads <= 16 && options.logs <= LOGS_MAX &&
	       options.logs > LOGS_RESERVED;
}

/* A line without a name ends a row. */
static void print_figures(void)
{
	const struct figures *f = &figures;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "rounds", nr_rounds },
		{ "processes", nr_started },
		{ "killed", nr_killed },
		{ "forked", ledger->forked },
		{ "files", f->files },
		{ "passed", ledger->passed },
		{ "duplicated", ledger->duplicated },
		{ "unmapped", ledger->unmapped },
		{ },
		{ "hotplugs", ledger->hotplugs },
		{ "clock sets", ledger->clock_sets },
		{ "suspends", ledger->suspends },
		{ "hog's events", ledger->hog_events },
		{ "hog refused", ledger->hog_refused },
		{ },
		{ "calls", f->calls },
		{ "cut off", f->unfinished },
		{ "stores", f->stores },
		{ "postponed", f->postponed },
		{ "modified", f->modified },
		{ "completed", f->completed },
		{ "signalled", f->signalled },
		{ "quieted", f->quieted },
		{ "without room", f->refused },
		{ "without memory", f->no_memory },
		{ },
		{ "armed", f->added },
		{ "expired", f->expired },
		{ "of periods", f->expirations },
		{ "ended by the clock", f->clock_set },
		{ "cancelled", f->cancelled },
		{ "left", f->left },
		{ "closed", f->closed },
		{ },
		{ "early", f->early },
		{ "lost", f->lost },
		{ "doubled", f->doubled },
		{ "other", f->other },
	};
	const char *before = "";
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].name)
			printf("%s%s %lu", before, rows[i].name, rows[i].value);
		else
			printf("\n");
		before = rows[i].name ? ", " : "";
	}
	printf("\n");
}

/* A machine can be so slow that it takes longer than it should to do each thing once. */
static bool was_everything_done(void)
{
	const struct disturbance *disturbance = &options.disturbance;

	return figures.expired && figures.cancelled && figures.completed && figures.signalled &&
	       figures.modified && figures.postponed && figures.quieted && figures.refused &&
	       figures.expirations && ledger->passed && ledger->forked &&
	       (nr_killed || !options.kill_ms) &&
	       (figures.no_memory || !options.fails) &&
	       (ledger->hotplugs || !disturbance->hotplug) &&
	       (ledger->hog_refused || !disturbance->memory) &&
	       (figures.clock_set || !disturbance->clock) &&
	       (ledger->suspends || !disturbance->sleep);
}

int main(int argc, char **argv)
{
	uint64_t end_ns;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!take_options(argc, argv)) {
		printf("Usage: tormentor [--seconds N] [--seed N] ...: see main.c\n");
		return 2;
	}
	chance = options.seed;
	if (ledger_make(options.logs, options.log_kb * 1024UL))
		fail("no memory for the ledger", -ENOMEM);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGUSR1, SIG_IGN);
	if (options.disturbance.memory)
		cgroup = make_cgroup();
	end_ns = now_ns() + options.seconds * SECOND_NS;
	do {
		run_round();
	} while (now_ns() < end_ns || (!was_everything_done() && now_ns() < end_ns + SLOW_NS));
	if (cgroup)
		remove_cgroup();
	print_figures();
	if (!was_everything_done())
		fault(&figures.other, "not everything was done at least once");
	return figures.early || figures.lost || figures.doubled || figures.other;
}
