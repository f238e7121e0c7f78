// SPDX-License-Identifier: GPL-2.0
/* Faults that the kernel injects into one thread. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/device/device.h"
#include "test/device/util.h"

#include "fault.h"

#define DEBUGFS		"/sys/kernel/debug/"

/*
 * Of the two threads, one makes the call and the other one arms and disarms its faults. Waiting
 * for a semaphore neither allocates memory nor copies any, so only the call meets them.
 */
static struct {
	bool opened;
	pid_t tid;
	int fail_nth;
	int make_it_fail;
	unsigned int nth;
	bool all;
	bool fired;
	sem_t begin;
	sem_t begun;
	sem_t end;
	sem_t ended;
} helper;

struct knob {
	const char *path;
	const char *value;
};

/* What fails by probability fails only in threads that have make-it-fail. */
static const struct knob knobs[] = {
	{ "failslab/ignore-gfp-wait", "N" },
	{ "failslab/cache-filter", "Y" },
	{ "fail_page_alloc/ignore-gfp-wait", "N" },
	{ "fail_page_alloc/ignore-gfp-highmem", "N" },
	{ "fail_page_alloc/min-order", "0" },
};

static const char * const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };

static const struct knob knobs_of_each[] = {
	{ "verbose", "0" },
	{ "task-filter", "Y" },
	{ "interval", "1" },
	{ "space", "0" },
	{ "times", "-1" },
	{ "probability", "100" },
};

static void set_knob(const char *path, const char *value)
{
	int ret = write_file(path, value);

	if (ret)
		test_fail(__FILE__, __LINE__, "%s: seen -%s", path, strerrorname_np(-ret));
}

static void set_knobs(void)
{
	char path[128];
	size_t i, j;

	if (access(DEBUGFS "fail_usercopy", F_OK))
		test_skip("the kernel injects no faults");
	for (i = 0; i < ARRAY_SIZE(knobs); i++) {
		snprintf(path, sizeof(path), DEBUGFS "%s", knobs[i].path);
		set_knob(path, knobs[i].value);
	}
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (j = 0; j < ARRAY_SIZE(knobs_of_each); j++) {
			snprintf(path, sizeof(path), DEBUGFS "%s/%s", kinds[i],
				 knobs_of_each[j].path);
			set_knob(path, knobs_of_each[j].value);
		}
	}
}

void faults_set_probability(const char *percent)
{
	char path[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), DEBUGFS "%s/probability", kinds[i]);
		set_knob(path, percent);
	}
}

static int open_of(pid_t tid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	return fd;
}

static void write_number(int fd, unsigned int number)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", number);

	ASSERT_EQ(pwrite(fd, text, length, 0), length);
}

static unsigned int read_number_of(int fd)
{
	char text[16] = "";

	ASSERT_GT(pread(fd, text, sizeof(text) - 1, 0), 0);
	return strtoul(text, NULL, 10);
}

/* The number first: until it is reached, nothing fails by probability. */
static void begin(int fail_nth, int make_it_fail, unsigned int nth, bool all)
{
	write_number(fail_nth, nth);
	write_number(make_it_fail, all);
}

static bool end(int fail_nth, int make_it_fail)
{
	unsigned int left = read_number_of(fail_nth);

	write_number(make_it_fail, 0);
	write_number(fail_nth, 0);
	return !left;
}

void faults_begin_of(int tid, unsigned int nth, bool all)
{
	int fail_nth = open_of(tid, "fail-nth"), make_it_fail = open_of(tid, "make-it-fail");

	begin(fail_nth, make_it_fail, nth, all);
	close(fail_nth);
	close(make_it_fail);
}

bool faults_end_of(int tid)
{
	int fail_nth = open_of(tid, "fail-nth"), make_it_fail = open_of(tid, "make-it-fail");
	bool fired = end(fail_nth, make_it_fail);

	close(fail_nth);
	close(make_it_fail);
	return fired;
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		ASSERT_EQ(errno, EINTR);
}

static void *help(void *arg)
{
	for (;;) {
		wait_for(&helper.begin);
		begin(helper.fail_nth, helper.make_it_fail, helper.nth, helper.all);
		sem_post(&helper.begun);
		wait_for(&helper.end);
		helper.fired = end(helper.fail_nth, helper.make_it_fail);
		sem_post(&helper.ended);
	}
	return arg;
}

void faults_open(void)
{
	if (helper.opened)
		return;
	helper.opened = true;
	set_knobs();
	helper.tid = thread_id();
	helper.fail_nth = open_of(helper.tid, "fail-nth");
	helper.make_it_fail = open_of(helper.tid, "make-it-fail");
	sem_init(&helper.begin, 0, 0);
	sem_init(&helper.begun, 0, 0);
	sem_init(&helper.end, 0, 0);
	sem_init(&helper.ended, 0, 0);
	start_thread(help, NULL);
}

void faults_begin(unsigned int nth, bool all)
{
	helper.nth = nth;
	helper.all = all;
	sem_post(&helper.begin);
	wait_for(&helper.begun);
}

bool faults_end(void)
{
	sem_post(&helper.end);
	wait_for(&helper.ended);
	return helper.fired;
}
