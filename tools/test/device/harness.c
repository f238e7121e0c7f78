// SPDX-License-Identifier: GPL-2.0
/*
 * The harness: picks the tests, runs each in a process of its own and prints
 * the results as TAP.
 */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

#define DEFAULT_TIMEOUT_S	240
#define KILL_TIMEOUT_S		30

/* Taints that mean trouble: bad page (KASAN too), oops, warning, lockup. */
#define TAINT_TROUBLE	(1UL << 5 | 1UL << 7 | 1UL << 9 | 1UL << 14)

enum verdict { VERDICT_OK, VERDICT_SKIPPED, VERDICT_FAILED };

/* Shared memory through which the processes of a test report to the harness. */
struct report {
	bool failed;
	bool skipped;
	char reason[256];
};

static struct test *tests;
static struct test **tests_tail = &tests;
static struct report *report;
static __thread char about[256];
static unsigned int timeout_s = DEFAULT_TIMEOUT_S;
static unsigned long divisor = 1;
static bool times;

void test_register(struct test *test)
{
	*tests_tail = test;
	tests_tail = &test->next;
}

unsigned long test_count(unsigned long n)
{
	unsigned long least = n / 10 < 100 ? n / 10 : 100;

	return n / divisor > least ? n / divisor : least;
}

void test_about(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(about, sizeof(about), fmt, args);
	va_end(args);
}

void test_skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(report->reason, sizeof(report->reason), fmt, args);
	va_end(args);
	report->skipped = true;
	_exit(0);
}

/* Ends every process of the test at once, so that none waits for another. */
static void __noreturn end_failed(void)
{
	report->failed = true;
	kill(0, SIGKILL);
	_exit(1);
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	printf("# %s:%d: %s%s%s%s\n", file, line, text, *about ? " (" : "",
	       about, *about ? ")" : "");
	end_failed();
}

/* A value as people read it: an errno by its name, a large one in hex too. */
static void describe(char *text, size_t size, long long value)
{
	const char *name = NULL;

	if (value < 0 && value >= -4095)
		name = strerrorname_np(-(int)value);
	if (name)
		snprintf(text, size, "%lld (-%s)", value, name);
	else if (value < -4095 || value > 0xffff)
		snprintf(text, size, "%lld (%#llx)", value, value);
	else
		snprintf(text, size, "%lld", value);
}

void test_fail_compare(const char *file, int line, const char *what,
		       long long seen, const char *op, long long expected)
{
	char seen_text[64], expected_text[64];

	describe(seen_text, sizeof(seen_text), seen);
	describe(expected_text, sizeof(expected_text), expected);
	test_fail(file, line, "%s: seen %s, expected %s %s", what, seen_text,
		  op, expected_text);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static unsigned long read_taint(void)
{
	FILE *file = fopen("/proc/sys/kernel/tainted", "r");
	unsigned long taint = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%lu", &taint) != 1)
		taint = 0;
	fclose(file);
	return taint;
}

/*
 * Waits for @pid's end and leaves it a zombie, so that its group still exists.  A machine
 * that stands still, however long, takes a second of the time that there is.
 */
static bool wait_end(pid_t pid, siginfo_t *end, double for_s)
{
	struct timespec step = { .tv_sec = 1 };
	double begin_s, took_s;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		memset(end, 0, sizeof(*end));
		waitid(P_PID, pid, end, WEXITED | WNOHANG | WNOWAIT);
		if (end->si_pid == pid)
			return true;
		if (for_s <= 0)
			return false;
		/* A process that became another user cannot end its group. */
		if (report->failed)
			kill(-pid, SIGKILL);
		begin_s = now_s();
		sigtimedwait(&set, NULL, &step);
		took_s = now_s() - begin_s;
		for_s -= took_s < 1 ? took_s : 1;
	}
}

static enum verdict judge(const siginfo_t *end, bool timed_out,
			  unsigned long new_taint)
{
	if (timed_out) {
		printf("# still running after %u s\n", timeout_s);
	} else if (report->failed) {
		;
	} else if (end->si_code != CLD_EXITED) {
		printf("# killed by signal %d (%s)\n", end->si_status,
		       strsignal(end->si_status));
	} else if (end->si_status) {
		printf("# exit status seen %d, expected 0\n", end->si_status);
	} else if (new_taint & TAINT_TROUBLE) {
		printf("# the kernel found fault, see dmesg: taint %#lx is new\n",
		       new_taint);
	} else {
		return report->skipped ? VERDICT_SKIPPED : VERDICT_OK;
	}
	return VERDICT_FAILED;
}

static void __noreturn bail_out(const char *why)
{
	printf("Bail out! %s\n", why);
	exit(1);
}

static enum verdict run_test(const struct test *test)
{
	unsigned long taint = read_taint();
	double start_s = now_s();
	enum verdict verdict;
	bool timed_out;
	siginfo_t end;
	pid_t pid;

	memset(report, 0, sizeof(*report));
	pid = fork();
	if (pid < 0)
		bail_out("fork failed");
	if (!pid) {
		sigset_t none;

		setpgid(0, 0);
		/* Whoever kills this program does not know the group of the test. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		test->run();
		_exit(0);
	}
	setpgid(pid, pid);

	timed_out = !wait_end(pid, &end, timeout_s);
	kill(-pid, SIGKILL);
	if (!wait_end(pid, &end, KILL_TIMEOUT_S))
		bail_out("the test's process does not die");
	while (waitpid(-1, NULL, 0) > 0)
		;

	verdict = judge(&end, timed_out, read_taint() & ~taint);
	if (times)
		printf("# %s took %.3f s\n", test->name, now_s() - start_s);
	return verdict;
}

/* The last name that matches decides. If the first one leaves out, all others are meant. */
static bool is_named(const struct test *test, char **names)
{
	bool is_named = (!*names || **names == '!') && !test->only_if_named;

	for (; *names; names++) {
		bool leave_out = **names == '!';

		if (!fnmatch(*names + leave_out, test->name, 0))
			is_named = !leave_out;
	}
	return is_named;
}

static bool name_exists(const char *name)
{
	const struct test *test;

	name += *name == '!';
	for (test = tests; test; test = test->next) {
		if (!fnmatch(name, test->name, 0))
			return true;
	}
	return false;
}

static int run_tests(char **names)
{
	static const char * const words[] = {
		[VERDICT_OK] = "ok",
		[VERDICT_SKIPPED] = "ok",
		[VERDICT_FAILED] = "not ok",
	};
	unsigned int number = 0, planned = 0, counts[3] = { 0 };
	const struct test *test;

	for (test = tests; test; test = test->next)
		planned += is_named(test, names);
	printf("1..%u\n", planned);

	for (test = tests; test; test = test->next) {
		enum verdict verdict;

		if (!is_named(test, names))
			continue;
		verdict = run_test(test);
		counts[verdict]++;
		printf("%s %u - %s", words[verdict], ++number, test->name);
		if (verdict == VERDICT_SKIPPED)
			printf(" # SKIP %s", report->reason);
		printf("\n");
	}
	printf("# %u passed, %u failed, %u skipped\n", counts[VERDICT_OK],
	       counts[VERDICT_FAILED], counts[VERDICT_SKIPPED]);
	return counts[VERDICT_FAILED] || !counts[VERDICT_OK];
}

static void __noreturn usage(FILE *to, int status)
{
	fprintf(to,
		"usage: device_test [--quick[=N]] [--times] [--timeout SECONDS] [NAME...]\n"
		"       device_test --list\n"
		"Tests /dev/twheel and prints TAP; all tests, or those named: 'enter_*' are some,\n"
		"'!enter_*' leaves them out.\n"
		"Those of a script in tools/test run only where they are named.\n"
		"  --quick    a tenth, or an Nth, of the counts in the long tests\n"
		"  --times    say how long each test took\n"
		"  --timeout  how long a test may take (default %u s)\n"
		"  --list     print the names of the tests\n",
		DEFAULT_TIMEOUT_S);
	exit(status);
}

static void list_tests(void)
{
	const struct test *test;

	for (test = tests; test; test = test->next)
		puts(test->name);
}

static unsigned long parse_divisor(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || value < 1 || value > 1000000) {
		fprintf(stderr, "device_test: --quick=%s: need 1 to 1000000\n", text);
		exit(2);
	}
	return value;
}

static unsigned int parse_timeout(const char *text)
{
	char *end;
	unsigned long value;

	if (!text)
		usage(stderr, 2);
	value = strtoul(text, &end, 10);
	if (*end || !value || value > 86400) {
		fprintf(stderr,
			"device_test: --timeout %s: need 1 to 86400 seconds\n",
			text);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	sigset_t set;
	int i;

	for (i = 1; i < argc && !strncmp(argv[i], "--", 2); i++) {
		if (!strcmp(argv[i], "--quick")) {
			divisor = 10;
		} else if (!strncmp(argv[i], "--quick=", 8)) {
			divisor = parse_divisor(argv[i] + 8);
		} else if (!strcmp(argv[i], "--times")) {
			times = true;
		} else if (!strcmp(argv[i], "--timeout")) {
			timeout_s = parse_timeout(argv[++i]);
		} else if (!strcmp(argv[i], "--list")) {
			list_tests();
			return 0;
		} else if (!strcmp(argv[i], "--help")) {
			usage(stdout, 0);
		} else {
			usage(stderr, 2);
		}
	}
	argv += i;
	for (i = 0; argv[i]; i++) {
		if (!name_exists(argv[i])) {
			fprintf(stderr,
				"device_test: %s: no such test, see --list\n",
				argv[i]);
			return 2;
		}
	}

	/* Whole lines only, as the tests' processes print to the same place. */
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED)
		bail_out("no memory");

	/* Orphans of a test come to us, so that they are gone before the next. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return run_tests(argv);
}
