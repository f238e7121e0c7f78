// SPDX-License-Identifier: GPL-2.0
/*
 * Files whose words never rest, and what becomes of other files' events on the same CPU.
 *
 * Many events name one word, which a thread on another CPU moves all the time, so that the
 * kernel always has words to look at. How long another file's event waits for that is
 * judged by the number of these looks and not by time.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "device.h"
#include "util.h"

/*
 * How far ahead of the clock the words are: at first, and at most. The thread that moves them
 * must not stand still for longer.
 */
#define AHEAD_NS	(5 * NSEC_PER_MSEC)
#define AHEAD_MAX_NS	NSEC_PER_SEC

/* So few that reading the counters of all of them takes no time. */
#define MANY_FILES	10

/* So many times in a row an event comes before half of the words were looked at. */
#define ROUNDS		5

/**
 * struct restless - files whose events never come to rest
 * @words: the word of each file.
 * @fds: the files.
 * @nr_files: how many files there are.
 * @nr: how many events they have all together.
 * @ahead_ns: how far ahead of the clock the words are.
 * @cpus: the CPU that the events are on, and that of the thread.
 * @stop: the thread is to end.
 * @thread: moves the words.
 */
struct restless {
	_Atomic __u64 **words;
	int *fds;
	size_t nr_files;
	size_t nr;
	_Atomic __u64 ahead_ns;
	int cpus[2];
	atomic_bool stop;
	pthread_t thread;
};

static void *move_words(void *arg)
{
	struct restless *restless = arg;

	pin_to_cpu(restless->cpus[1]);
	while (!restless->stop) {
		__u64 due_ns = monotonic_ns() + restless->ahead_ns;
		size_t i;

		for (i = 0; i < restless->nr_files; i++)
			*restless->words[i] = due_ns;
	}
	return NULL;
}

/* Add @nr events that name the word of a file. */
static void add_restless(int fd, size_t nr)
{
	struct twheel_cmd cmds[256];
	size_t i;

	while (nr) {
		size_t some = nr < ARRAY_SIZE(cmds) ? nr : ARRAY_SIZE(cmds);

		for (i = 0; i < some; i++)
			cmds[i] = make_deadline_add(0, 0);
		ASSERT_EQ(submit(fd, cmds, some), some);
		nr -= some;
	}
}

/* Add anew the events that were due, because the thread stood still. Returns their number. */
static size_t add_again(struct restless *restless)
{
	struct twheel_record records[256];
	size_t again = 0, i;
	long nr;

	for (i = 0; i < restless->nr_files; i++) {
		while (poll_events(restless->fds[i], 0)) {
			nr = read_records(restless->fds[i], records, ARRAY_SIZE(records));
			ASSERT_GE(nr, 1);
			add_restless(restless->fds[i], nr);
			again += nr;
		}
	}
	return again;
}

static long long count_looks(const struct restless *restless)
{
	long long looks = 0;
	size_t i;

	for (i = 0; i < restless->nr_files; i++)
		looks += count_postponed(restless->fds[i]);
	return looks;
}

static void begin_restless(struct restless *restless, size_t nr_files, size_t nr)
{
	size_t i;

	*restless = (struct restless){
		.nr_files = nr_files, .nr = nr, .ahead_ns = AHEAD_NS,
	};
	if (get_cpus(restless->cpus, 2) < 2)
		test_skip("one CPU");
	restless->fds = map_pages(nr_files * sizeof(*restless->fds));
	restless->words = map_pages(nr_files * sizeof(*restless->words));
	for (i = 0; i < nr_files; i++)
		restless->fds[i] = open_deadlines(1, &restless->words[i]);
	pin_to_cpu(restless->cpus[0]);
	ASSERT_EQ(pthread_create(&restless->thread, NULL, move_words, restless), 0);
	while (!*restless->words[nr_files - 1])
		;
	for (i = 0; i < nr_files; i++)
		add_restless(restless->fds[i], nr / nr_files);
}

static void end_restless(struct restless *restless)
{
	size_t i;

	restless->stop = true;
	ASSERT_EQ(pthread_join(restless->thread, NULL), 0);
	for (i = 0; i < restless->nr_files; i++)
		close(restless->fds[i]);
}

/*
 * Let an event of another file be due again and again, until some in a row came before half
 * of the words were looked at once. Each time the words must have moved without a rest.
 */
static void check_others(struct restless *restless, void (*add_other)(int fd, __u64 due_ns),
			 int other)
{
	unsigned int rounds = 0, late = 0;
	long long looks;

	/* The first looks, when all events are due at once, take their time. */
	while (count_looks(restless) < (long long)(4 * restless->nr))
		add_again(restless);
	while (rounds < ROUNDS) {
		struct twheel_record record;
		__u64 due_ns;

		add_again(restless);
		looks = count_looks(restless);
		due_ns = monotonic_ns() + 2 * NSEC_PER_MSEC;
		add_other(other, due_ns);
		record = wait_record(other);
		ASSERT_EQ(record.due_ns, due_ns);
		ASSERT_GE(record.fired_ns, due_ns);
		looks = count_looks(restless) - looks;
		if (add_again(restless)) {
			if (restless->ahead_ns < AHEAD_MAX_NS)
				restless->ahead_ns *= 2;
			continue;
		}
		if (!looks)
			continue;
		if (looks < (long long)restless->nr / 2) {
			rounds++;
		} else {
			late++;
			rounds = 0;
		}
	}
	printf("# %u came after half of the looks, the last one after %lld of %zu\n", late,
	       looks, restless->nr);
}

static void add_plain(int fd, __u64 due_ns)
{
	add(fd, TWHEEL_ABS, due_ns, 0);
}

static _Atomic __u64 *other_word;

static void add_by_word(int fd, __u64 due_ns)
{
	*other_word = due_ns;
	add_deadline(fd, 0, 0);
}

/* Many events for whatever kernel this is: looks at all of them take much longer than a run. */
static size_t many(void)
{
	return test_count(200000) < 20000 ? 20000 : test_count(200000);
}

TEST(deadline_that_never_rests_does_not_hold_up_plain_events)
{
	struct restless restless;

	begin_restless(&restless, 1, many());
	check_others(&restless, add_plain, device_open_nonblock());
	end_restless(&restless);
}

TEST(deadline_that_never_rests_does_not_hold_up_deadlines_of_other_files)
{
	struct restless restless;

	begin_restless(&restless, 1, many());
	check_others(&restless, add_by_word, open_deadlines(1, &other_word));
	end_restless(&restless);
}

TEST(deadlines_of_many_files_that_never_rest_do_not_hold_up_those_of_another)
{
	struct restless restless;

	begin_restless(&restless, MANY_FILES, many());
	check_others(&restless, add_by_word, open_deadlines(1, &other_word));
	end_restless(&restless);
}

/* While it never rests, an event that is put off is neither lost nor early. */
TEST(deadline_that_never_rests_comes_once_when_it_does)
{
	struct restless restless;
	struct twheel_record records[256];
	struct counters counters;
	__u64 due_ns;
	long nr, i;

	begin_restless(&restless, 1, many() / 4);
	while (count_looks(&restless) < (long long)(4 * restless.nr))
		add_again(&restless);
	restless.stop = true;
	ASSERT_EQ(pthread_join(restless.thread, NULL), 0);
	due_ns = *restless.words[0];
	do {
		counters = get_counters(restless.fds[0]);
		while (poll_events(restless.fds[0], 10)) {
			nr = read_records(restless.fds[0], records, ARRAY_SIZE(records));
			for (i = 0; i < nr; i++) {
				ASSERT_LE(records[i].due_ns, due_ns);
				ASSERT_GE(records[i].fired_ns, records[i].due_ns);
			}
		}
	} while (counters.armed);
	check_nothing_ready(restless.fds[0]);
	counters = get_counters(restless.fds[0]);
	check_sum(&counters);
	ASSERT_EQ(counters.finished, counters.added);
	close(restless.fds[0]);
}
